//! Connections of the tool: the options of the clients, TLS, passwords, option files, and what the errors say.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use slotted::connect::option_file;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .plain(a_server_that_is_not_there_is_explained)
        .plain(ctrl_c_ends_a_command_at_once)
        .on_families(values_in_option_files_are_those_of_the_client)
        .private()
        .on_one_server(the_options_are_those_of_the_client)
        .on_families(every_command_connects_with_tls)
        .on(|name| name.starts_with("mysql"), an_account_that_needs_a_certificate_connects_with_it)
        .on(|name| name == "mariadb-10.11", a_server_without_tls_is_explained)
        .on_families(a_password_can_have_every_character)
        .on_one_server(a_password_is_asked_for_on_the_terminal)
        .on_one_server(option_files_are_read_as_the_clients_read_them)
        .on(|name| name.starts_with("mysql"), an_account_that_is_rejected_is_explained);
}

/// The tool without the settings of this machine.
fn alone(arguments: &[&str]) -> Command {
    let mut command = slotted(arguments);
    for name in ["SLOTTED_URL", "MYSQL_PWD", "MYSQL_HOME", "MARIADB_HOME"] {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent");
    command
}

/// A command that is short and connects.
fn advise(arguments: &[&str]) -> Command {
    alone(&[&["advise", "--seconds", "0.1"], arguments].concat())
}

fn connects(command: &mut Command) {
    exits(command, 0);
}

/// The command fails with this error, and the hint contains this text. No output has the password.
fn fails(command: &mut Command, error: &str, hint: &str) {
    let text = exits(command, 2);
    let after = text.split_once(error).and_then(|(_, rest)| rest.split_once("hint: "));
    assert!(after.is_some_and(|(_, after)| after.contains(hint)) && !text.contains("s3cret"), "{command:?}: {text}");
}

impl Network {
    /// Creates an account with all privileges, and returns its short command with these arguments.
    fn account(&self, user: &str, password: &str) -> impl Fn(&[&str]) -> Command {
        let password = password.replace('\\', "\\\\").replace('\'', "''");
        let (user, port) = (user.to_owned(), self.port.clone());
        let create = format!("CREATE USER '{user}'@'localhost' IDENTIFIED BY '{password}'");
        let grant = format!("GRANT ALL ON *.* TO '{user}'@'localhost' WITH GRANT OPTION");
        run_all(&mut self.server.connect(), &[create, grant]).expect("an account");
        move |arguments| advise(&[&["-h", "127.0.0.1", "-P", &port, "-u", &user], arguments].concat())
    }
}

/// The message says what was tried, and the hint names all options that say where a server is.
fn a_server_that_is_not_there_is_explained() {
    for (place, error) in [
        (["--url", "mysql://127.0.0.1:1/db"], "127.0.0.1:1: Connection refused"),
        (["-S", "/nonexistent/socket"], "/nonexistent/socket: "),
        (["-h", "no.such.host.invalid"], "no.such.host.invalid:3306: "),
    ] {
        let hint = "--host and --port, --socket or --url say where it is, and --user who connects";
        fails(&mut advise(&place), &format!("cannot connect to {error}"), hint);
    }
}

/// The server accepts the connection, and never answers. What a command has made is removed before, as promises of bench and demo say.
fn ctrl_c_ends_a_command_at_once() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("mysql://root@{}/db", listener.local_addr().expect("its number"));
        let mut command = slotted(&["status", "--url", &url]);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("slotted runs");
        let _connection = listener.accept().expect("a connection");
        let sent = Instant::now();
        interrupt(signal, process.id());
        // The exit code that shells give to Ctrl-C.
        assert_eq!(process.wait().expect("the end").code(), Some(130), "{signal}");
        assert!(sent.elapsed() < Duration::from_secs(10), "{signal}: {:?}", sent.elapsed());
    }
}

fn client_connects(server: &Server, arguments: &[&str]) {
    let said = Command::new(server.client_program()).args(arguments).args(["-e", "DO 1"]).output().expect("a client");
    assert!(said.status.success(), "{arguments:?}: {}", printed(&said));
}

/// The same arguments connect the client of the server and the tool.
fn the_options_are_those_of_the_client(server: &Server) {
    let network = server.network();
    let _ = network.account("user", "s3cret");
    let port = &network.port;
    let options = mysql::Opts::from(network.server.options());
    let socket = options.get_socket().expect("a socket");
    for arguments in [
        &["-h127.0.0.1", &format!("-P{port}"), "-uuser", "-ps3cret", "-Dmysql"][..],
        &["--host=127.0.0.1", &format!("--port={port}"), "--user=user", "--password=s3cret", "--database=mysql"],
        &["-S", socket, "-u", "user", "-ps3cret"],
        &["-h", "localhost", &format!("--socket={socket}"), "-u", "user", "-ps3cret"],
    ] {
        client_connects(&network.server, &[&["--no-defaults"], arguments].concat());
        connects(&mut advise(arguments));
    }
}

/// MySQL and MariaDB 11.8 create a certificate when they start, MySQL also a file with its authority.
fn every_command_connects_with_tls(server: &Server) {
    let network = Network::start(server, &["--require-secure-transport=ON"]);
    let as_user = network.account("user", "s3cret");
    let with = |mode: &str, more: &[&str]| as_user(&[&["-ps3cret", "--ssl-mode", mode], more].concat());
    connects(&mut as_user(&["-ps3cret"]));
    connects(&mut with("REQUIRED", &[]));
    fails(&mut with("disabled", &[]), "cannot connect to 127.0.0.1:", "--ssl-mode REQUIRED");
    fails(&mut with("VERIFY_CA", &[]), "certificate", "--ssl-ca");
    if server.is_mysql() {
        let authority = network.server.folder().join("data/ca.pem").display().to_string();
        connects(&mut with("VERIFY_CA", &["--ssl-ca", &authority]));
        let wrong = authority.replace("ca.pem", "client-cert.pem");
        fails(&mut as_user(&["-ps3cret", "--ssl-ca", &wrong]), "certificate", "--ssl-ca");
        // The certificate of the server is for no host.
        fails(&mut with("VERIFY_IDENTITY", &["--ssl-ca", &authority]), "certificate", "--ssl-ca");
    }
    for option in ["--ssl-ca", "--ssl-cert", "--ssl-key"] {
        let missing = printed(&with("VERIFY_CA", &[option, "/nonexistent"]).output().expect("slotted runs"));
        assert!(missing.contains("cannot read /nonexistent: "), "{missing}");
    }
    let url = format!("mysql://user:s3cret@127.0.0.1:{}", network.port);
    network.server.connect().query_drop("CREATE DATABASE app").expect("a database");
    // The connections of a load use TLS too.
    let bench = "bench counters --connections 2 --seconds 0.1 --rounds 1";
    for words in ["install counters -D app", "status -D app", "uninstall --with-data --yes -D app", bench] {
        connects(alone(&words.split(' ').collect::<Vec<_>>()).args(["--url", &url, "--ssl-mode", "REQUIRED"]));
    }
}

/// MySQL creates the certificate of a client, too.
fn an_account_that_needs_a_certificate_connects_with_it(server: &Server) {
    let network = server.network();
    let as_user = network.account("certified", "s3cret");
    network.server.connect().query_drop("ALTER USER certified@localhost REQUIRE X509").expect("a change");
    let [cert, key] = ["cert", "key"].map(|name| network.server.folder().join(format!("data/client-{name}.pem")));
    let [cert, key] = [cert.display(), key.display()];
    fails(&mut as_user(&["-ps3cret"]), "ERROR 1045", "--ssl-cert and --ssl-key");
    connects(&mut as_user(&["-ps3cret", &format!("--ssl-cert={cert}"), &format!("--ssl-key={key}")]));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my.cnf");
    fs::write(&file, format!("[client]\npassword=s3cret\nssl-cert={cert}\nssl_key={key}\n")).expect("a file");
    connects(&mut as_user(&["--defaults-file", &file.display().to_string()]));
}

/// It has no certificate.
fn a_server_without_tls_is_explained(server: &Server) {
    let as_user = server.network().account("plain", "s3cret");
    fails(&mut as_user(&["-ps3cret", "--ssl-mode", "REQUIRED"]), "does not support TLS", "--ssl-mode DISABLED");
}

fn a_password_can_have_every_character(server: &Server) {
    let network = server.network();
    // All printable characters of ASCII, and one beyond.
    let password: String = (' '..='~').chain(['é']).collect();
    let as_user = network.account("us/er", &password);
    let encoded: String = password.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let url = |password: &str| format!("mysql://us%2Fer{password}@127.0.0.1:{}", network.port);
    let option = format!("--password={password}");

    connects(&mut as_user(&[&format!("-p{password}")]));
    connects(as_user(&[]).env("MYSQL_PWD", &password));
    // The password of the URL precedes the variable, and the option precedes both.
    connects(advise(&[]).env("SLOTTED_URL", url(&format!(":{encoded}"))).env("MYSQL_PWD", "other"));
    connects(advise(&["--url", &url("")]).env("MYSQL_PWD", &password));
    connects(&mut advise(&["--url", &url(":wrong"), &option]));
    fails(advise(&["--url", &url(""), "--password="]).env("MYSQL_PWD", &password), "(using password: NO)", "");
    // The clients of the server read the file in the same way.
    let folder = tempfile::tempdir().expect("a folder");
    let quoted = format!("'{}'", password.replace('\\', "\\\\").replace('\'', "\\'"));
    let file = folder.path().join("my.cnf");
    fs::write(&file, format!("[client]\npassword = {quoted} # the password\n")).expect("a file");
    let defaults = format!("--defaults-file={}", file.display());
    connects(&mut as_user(&[&defaults]));
    client_connects(server, &[&defaults, "--host=127.0.0.1", "--user=us/er", &format!("--port={}", network.port)]);
}

fn a_password_is_asked_for_on_the_terminal(server: &Server) {
    let network = server.network();
    let as_user = network.account("asked", "s3cret");
    for option in ["-p", "--password"] {
        let mut command = as_user(&[option]);
        command.stdin(Stdio::inherit());
        let mut terminal = rexpect::session::spawn_command(command, Some(60_000)).expect("a terminal");
        terminal.exp_string(&format!("Password of asked@127.0.0.1:{}: ", network.port)).expect("a question");
        terminal.send_line("s3cret").expect("an answer");
        let printed = terminal.exp_eof().expect("the end");
        assert!(!printed.contains("error") && !printed.contains("s3cret"), "{printed}");
    }
    fails(&mut as_user(&[]), "ERROR 1045", "add -p, which asks for it");
}

/// The client prints the options of a file with --print-defaults.
fn values_in_option_files_are_those_of_the_client(server: &Server) {
    // What follows the name in each line, between bars.
    let lines = "= a # b|=p#q ; b|=\"a#b\" # it's \"b\"|=\"a\"#b|=\"a\\\"#b\"|=\"a\\\\\"|=\"\" |='a#b|=it's #x|='\
                 |=\\s\\t\\b\\\\\\x\\|=a\\#b|='a\"|=\u{b}a\u{c}|=\u{3000}a\u{3000}| # a=b|";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my.cnf");
    let options: String = lines.split('|').enumerate().map(|(n, line)| format!("line-{n}{line}\n")).collect();
    fs::write(&file, format!("[client]\n{options}")).expect("a file");
    let mut client = Command::new(server.client_program());
    let output = client.arg(format!("--defaults-file={}", file.display())).arg("--print-defaults").output();
    let said = printed(&output.expect("the client runs")).replace('\n', " ");
    let entries = option_file::read(&file).expect("an option file").expect("a file of this account alone");
    assert_eq!(entries.len(), 17);
    for entry in entries {
        let value = entry.value.map(|value| format!("={value}")).unwrap_or_default();
        let option = format!(" --{}{value} ", entry.name);
        assert!(said.contains(&option), "{option:?}\n{said}");
    }
}

fn option_files_are_read_as_the_clients_read_them(server: &Server) {
    let network = server.network();
    let as_filed = network.account("filed", "s3cret");
    let _ = network.account("other", "another");
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let own = format!("[slotted]\nuser=filed\nport={}\n", network.port);
    let clients = "!includedir /etc/mysql/conf.d/\n[client]\nhost=127.0.0.1\nuser=other\npassword=\"s3cret\"\nquick\n[mysqldump]\nport = 1\n";
    let file = write(".my.cnf", &format!("{clients}{own}"));
    connects(&mut advise(&["--defaults-file", &file]));
    connects(advise(&[]).env("HOME", folder.path()));
    let mut other = advise(&["--defaults-file", &file, "-u", "other"]);
    fails(&mut other, "ERROR 1045 (28000): Access denied for user 'other'", "check --user");
    fails(as_filed(&["--no-defaults"]).env("HOME", folder.path()), "ERROR 1045", "add -p");
    for (file, error) in [
        ("/nonexistent".to_owned(), "cannot read the option file /nonexistent"),
        (write("wrong.cnf", "[slotted]\nslots = 5\n"), "unknown option slots"),
        (write("line.cnf", "[client]\nuser=a\n\n[broken\n"), "cannot parse line 4 of the option file"),
        (write("first.cnf", "user=a\n"), "cannot parse line 1 of the option file"),
    ] {
        fails(&mut advise(&["--defaults-file", &file]), error, "correct the file");
    }
    for lines in ["ssl-mode=verify_ca", "ssl\nssl-verify-server-cert=1", "loose_ssl_verify_server_cert\nssl"] {
        let file = write("tls.cnf", &format!("[client]\npassword=s3cret\n{lines}\n"));
        fails(&mut as_filed(&["--defaults-file", &file]), "certificate", "--ssl-ca");
    }
    // The clients ignore a file that every account can write.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("permissions");
    fails(&mut as_filed(&["--defaults-file", &file]), "warning: the option file", "add -p");
}

fn an_account_that_is_rejected_is_explained(server: &Server) {
    let network = Network::start(server, &[]);
    let as_user = network.account("user", "right");
    let run = |statement: &str| network.server.connect().query_drop(statement).expect(statement);
    fails(&mut as_user(&["-ps3cret"]), "ERROR 1045", "check --user and --password");
    fails(&mut as_user(&["-pright", "-D", "missing"]), "ERROR 1049 (42000)", "create the database");
    run("CREATE USER old IDENTIFIED WITH sha256_password BY 's3cret'");
    let mut old = advise(&["-h127.0.0.1", "-P", &network.port, "-uold", "-ps3cret", "-Dmissing"]);
    fails(&mut old, "protocol: `sha256_password`", "ALTER USER ... IDENTIFIED WITH caching_sha2_password");
    run("ALTER USER old IDENTIFIED WITH caching_sha2_password BY 's3cret'");
    fails(&mut old, "ERROR 1044 (42000)", "create the database");
    run("SET GLOBAL max_connections = 10");
    let open: Vec<_> = (0..11).map_while(|_| mysql::Conn::new(network.server.options()).ok()).collect();
    assert!(open.len() >= 10, "{}", open.len());
    fails(&mut as_user(&["-pright"]), "1040", "the server says why");
}
