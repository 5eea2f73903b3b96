//! Connections of the tool: the options of the clients, TLS, passwords, option files, and what the errors say.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use mysql::prelude::Queryable;
use mysql::{DriverError, MySqlError};
use slotted::connect::{ConnectError, option_file};

use crate::support::{Module, Network, Server, free_ports};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(every_error_is_as_reviewed)
        .plain(a_url_that_cannot_be_used_is_explained)
        .plain(a_server_that_is_not_there_is_explained)
        .on_families(values_in_option_files_are_those_of_the_client)
        .private()
        .on_one_server(the_options_are_those_of_the_client)
        .on_families(every_command_connects_with_tls)
        .on_families(a_password_can_have_every_character)
        .on_one_server(a_password_is_asked_for_on_the_terminal)
        .on_one_server(option_files_are_read_as_the_clients_read_them)
        .on(|name| name.starts_with("mysql"), an_account_that_is_rejected_is_explained);
}

/// The message and the remedy of each kind of error.
fn every_error_is_as_reviewed() {
    let answer = |code, message: &str| {
        mysql::Error::MySqlError(MySqlError { state: "HY000".into(), message: message.into(), code })
    };
    let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "Connection refused (os error 111)");
    let errors = [
        (true, mysql::Error::IoError(refused)),
        (true, mysql::Error::DriverError(DriverError::TlsNotSupported)),
        (true, mysql::Error::DriverError(DriverError::UnknownAuthPlugin("sha256_password".into()))),
        (false, answer(1045, "Access denied for user 'user'@'client' (using password: NO)")),
        (true, answer(1045, "Access denied for user 'user'@'client' (using password: YES)")),
        (true, answer(1044, "Access denied for user 'user'@'client' to database 'app'")),
        (true, answer(1130, "Host 'client' is not allowed to connect to this MySQL server")),
        (
            true,
            answer(3159, "Connections using insecure transport are prohibited while --require_secure_transport=ON."),
        ),
        (true, answer(1040, "Too many connections")),
    ];
    let texts = errors.map(|(password, error)| {
        let error = ConnectError { place: "db1:3306".into(), account: "user@db1:3306".into(), password, error };
        format!("error: {error}\nhint: {}\n", error.hint())
    });
    insta::assert_snapshot!("errors", texts.join("\n"));
}

/// The tool without the settings of this machine.
fn slotted(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    for name in ["SLOTTED_URL", "MYSQL_PWD", "MYSQL_HOME", "MARIADB_HOME"] {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent").args(arguments).stdin(Stdio::null());
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Short, and it connects.
const ADVISE: [&str; 3] = ["advise", "--seconds", "0.1"];

fn connects(command: &mut Command) {
    let output = command.output().expect("slotted runs");
    assert_eq!(output.status.code(), Some(0), "{command:?}: {}", stderr(&output));
}

/// The command fails with this error, and the hint contains this text. No output has the password.
fn fails(command: &mut Command, error: &str, hint: &str) {
    let output = command.output().expect("slotted runs");
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{command:?}: {text}");
    assert!(text.contains(error) && text.contains("hint: ") && text.contains(hint), "{command:?}: {text}");
    assert!(!text.contains("s3cret"), "{text}");
}

impl Network {
    fn command(&self, command: &[&str], arguments: &[&str]) -> Command {
        let place = ["-h", "127.0.0.1", "-P", &self.port];
        slotted(&[command, &place, arguments].concat())
    }
}

/// The same arguments connect the client of the server and the tool.
fn the_options_are_those_of_the_client(server: &Server) {
    let network = server.network();
    network.account("'user'@'localhost'", "s3cret", "");
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
        connects(slotted(&ADVISE).args(arguments));
    }
}

fn client_connects(server: &Server, arguments: &[&str]) {
    let said = Command::new(server.client_program()).args(arguments).args(["-e", "DO 1"]).output().expect("a client");
    assert!(said.status.success(), "{arguments:?}: {}", stderr(&said));
}

/// MySQL and MariaDB 11.8 create a certificate when they start, MySQL also a file with its authority.
fn every_command_connects_with_tls(server: &Server) {
    let network = Network::start(server, &["--require-secure-transport=ON"]);
    network.account("'user'@'localhost'", "s3cret", "");
    let command =
        |words: &[&str], arguments: &[&str]| network.command(words, &[&["-u", "user", "-ps3cret"], arguments].concat());
    let advise = |mode: &str, authority: &[&str]| command(&ADVISE, &[&["--ssl-mode", mode], authority].concat());

    connects(&mut command(&ADVISE, &[]));
    connects(&mut advise("REQUIRED", &[]));
    fails(&mut advise("disabled", &[]), "cannot connect to 127.0.0.1:", "--ssl-mode REQUIRED");
    fails(&mut advise("VERIFY_CA", &[]), "certificate", "--ssl-ca");
    if server.is_mysql() {
        let authority = network.server.process().1.join("data/ca.pem").display().to_string();
        connects(&mut advise("VERIFY_CA", &["--ssl-ca", &authority]));
        // The certificate of the server is for no host.
        fails(&mut advise("VERIFY_IDENTITY", &["--ssl-ca", &authority]), "certificate", "--ssl-ca");
    }
    let missing = advise("VERIFY_CA", &["--ssl-ca", "/nonexistent"]).output().expect("slotted runs");
    assert!(stderr(&missing).contains("cannot read /nonexistent: "), "{}", stderr(&missing));

    let url = format!("mysql://user:s3cret@127.0.0.1:{}", network.port);
    connects(slotted(&ADVISE).args(["--url", &url, "--ssl-mode", "REQUIRED"]));
    network.server.connect().query_drop("CREATE DATABASE app").expect("a database");
    // The connections of a load use TLS too.
    let bench = "bench counters --connections 2 --seconds 0.1 --rounds 1";
    for words in ["install counters -D app", "status -D app", "uninstall --with-data --yes -D app", bench] {
        connects(&mut command(&words.split(' ').collect::<Vec<_>>(), &[]));
    }
}

fn a_password_can_have_every_character(server: &Server) {
    let network = server.network();
    // All printable characters of ASCII, and one beyond.
    let password: String = (' '..='~').chain(['é']).collect();
    network.account("'us/er'@'localhost'", &password, "");
    let advise = |arguments: &[&str]| network.command(&ADVISE, &[&["--user", "us/er"], arguments].concat());
    let encoded: String = password.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let at = |password: &str| format!("mysql://us%2Fer{password}@127.0.0.1:{}", network.port);

    connects(&mut advise(&[&format!("-p{password}")]));
    connects(advise(&[]).env("MYSQL_PWD", &password));
    // The password of the URL precedes the variable, and the option precedes both.
    connects(slotted(&ADVISE).env("SLOTTED_URL", at(&format!(":{encoded}"))).env("MYSQL_PWD", "other"));
    connects(slotted(&ADVISE).args(["--url", &at("")]).env("MYSQL_PWD", &password));
    connects(slotted(&ADVISE).args(["--url", &at(":wrong"), &format!("--password={password}")]));
    fails(
        slotted(&ADVISE).args(["--url", &at(""), "--password="]).env("MYSQL_PWD", &password),
        "(using password: NO)",
        "",
    );
    // The clients of the server read the file in the same way.
    let folder = tempfile::tempdir().expect("a folder");
    let quoted = format!("'{}'", password.replace('\\', "\\\\").replace('\'', "\\'"));
    let file = folder.path().join("my.cnf");
    fs::write(&file, format!("[client]\npassword = {quoted} # the password\n")).expect("a file");
    let defaults = format!("--defaults-file={}", file.display());
    connects(&mut advise(&[&defaults]));
    client_connects(server, &[&defaults, "--host=127.0.0.1", "--user=us/er", &format!("--port={}", network.port)]);
}

fn a_password_is_asked_for_on_the_terminal(server: &Server) {
    let network = server.network();
    network.account("'asked'@'localhost'", "s3cret", "");
    for option in ["-p", "--password"] {
        let mut command = network.command(&ADVISE, &[option, "-u", "asked"]);
        // Of the terminal.
        command.stdin(Stdio::inherit());
        let mut terminal = rexpect::session::spawn_command(command, Some(60_000)).expect("a terminal");
        terminal.exp_string(&format!("Password of asked@127.0.0.1:{}: ", network.port)).expect("a question");
        terminal.send_line("s3cret").expect("an answer");
        let printed = terminal.exp_eof().expect("the end");
        assert!(!printed.contains("error") && !printed.contains("s3cret"), "{printed}");
    }
    fails(&mut network.command(&ADVISE, &["-u", "asked"]), "ERROR 1045", "add -p, which asks for it");
}

/// The client prints the options of a file with --print-defaults.
fn values_in_option_files_are_those_of_the_client(server: &Server) {
    let lines = [
        r##"= a # b"##,
        r##"=p#q ; b"##,
        r##"="a#b" # it's "b""##,
        r##"="a"#b"##,
        r##"="a\"#b""##,
        r##"="a\\""##,
        r##"="" "##,
        r##"='a#b"##,
        r##"=it's #x"##,
        r##"='"##,
        r##"=\s\t\b\\\x\"##,
        r##"=a\#b"##,
        r##"='a""##,
        "=\u{b}a\u{c}",
        "=\u{3000}a\u{3000}",
        " # a=b",
        "",
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my.cnf");
    let options: String = lines.iter().enumerate().map(|(n, line)| format!("line-{n}{line}\n")).collect();
    fs::write(&file, format!("[client]\n{options}")).expect("a file");
    let mut client = Command::new(server.client_program());
    let output = client.arg(format!("--defaults-file={}", file.display())).arg("--print-defaults").output();
    let printed = String::from_utf8(output.expect("the client runs").stdout).expect("UTF-8").replace('\n', " ");
    let entries = option_file::read(&file).expect("an option file").expect("a file of this account alone");
    assert_eq!(entries.len(), lines.len());
    for entry in entries {
        let value = entry.value.map(|value| format!("={value}")).unwrap_or_default();
        let option = format!(" --{}{value} ", entry.name);
        assert!(printed.contains(&option), "{option:?}\n{printed}");
    }
}

fn option_files_are_read_as_the_clients_read_them(server: &Server) {
    let network = server.network();
    network.account("'filed'@'localhost'", "s3cret", "");
    network.account("'other'@'localhost'", "another", "");
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let own = format!("[slotted]\nuser=filed\nport={}\n", network.port);
    let clients = "!includedir /etc/mysql/conf.d/\n[client]\nhost=127.0.0.1\nuser=other\npassword=\"s3cret\"\nquick\n[mysqldump]\nport = 1\n";
    let file = write(".my.cnf", &format!("{clients}{own}"));
    let with = |file: &str, arguments: &[&str]| slotted(&[&ADVISE[..], &["--defaults-file", file], arguments].concat());
    connects(&mut with(&file, &[]));
    connects(slotted(&ADVISE).env("HOME", folder.path()));
    // The command line overrides the file.
    fails(&mut with(&file, &["-u", "other"]), "ERROR 1045 (28000): Access denied for user 'other'", "check --user");
    fails(
        network.command(&ADVISE, &["--no-defaults", "-u", "filed"]).env("HOME", folder.path()),
        "ERROR 1045",
        "add -p",
    );
    for (file, error) in [
        ("/nonexistent".to_owned(), "cannot read the option file /nonexistent"),
        (write("wrong.cnf", "[slotted]\nslots = 5\n"), "unknown option slots"),
        (write("line.cnf", "[client]\nuser=a\n\n[broken\n"), "cannot parse line 4 of the option file"),
        (write("first.cnf", "user=a\n"), "cannot parse line 1 of the option file"),
    ] {
        fails(&mut with(&file, &[]), error, "correct the file");
    }
    // The clients ignore a file that every account can write.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("permissions");
    fails(
        &mut network.command(&ADVISE, &["--defaults-file", &file, "-u", "filed"]),
        "warning: the option file",
        "add -p",
    );
}

fn an_account_that_is_rejected_is_explained(server: &Server) {
    let network = Network::start(server, &[]);
    network.account("'user'@'localhost'", "right", "");
    let advise = |arguments: &[&str]| network.command(&ADVISE, arguments);
    fails(&mut advise(&["-u", "user", "-ps3cret"]), "ERROR 1045", "check --user and --password");
    fails(&mut advise(&["-u", "user", "-pright", "-D", "missing"]), "ERROR 1049 (42000)", "create the database");
    let mut connection = network.server.connect();
    let mut run = |statement: &str| connection.query_drop(statement).expect(statement);
    let old = ["-u", "old", "-ps3cret", "-D", "missing"];
    run("CREATE USER 'old'@'%' IDENTIFIED WITH sha256_password BY 's3cret'");
    fails(&mut advise(&old), "protocol: `sha256_password`", "ALTER USER ... IDENTIFIED WITH caching_sha2_password");
    // As the hint says.
    run("ALTER USER 'old'@'%' IDENTIFIED WITH caching_sha2_password BY 's3cret'");
    fails(&mut advise(&old), "ERROR 1044 (42000)", "create the database");
    run("SET GLOBAL max_connections = 10");
    let open: Vec<_> = (0..11).map_while(|_| mysql::Conn::new(network.server.options()).ok()).collect();
    assert!(open.len() >= 10, "{}", open.len());
    fails(&mut advise(&["-u", "user", "-pright"]), "1040", "the server says why");
}

fn a_url_that_cannot_be_used_is_explained() {
    let mut texts = String::new();
    for url in [
        "mysql://user:12#s3cret@host/db",
        "mysql://user:s3cret@host/db?ssl-mode=REQUIRED",
        "mysql://user:s3cret@host:port/db",
        "postgres://user:s3cret@host",
        "s3cret",
    ] {
        fails(slotted(&ADVISE).env("SLOTTED_URL", url), "the URL ", "is %3F");
        let output = slotted(&ADVISE).args(["--url", url]).output().expect("slotted runs");
        texts += &format!("$ slotted advise --url '{url}'\n{}\n", stderr(&output));
    }
    insta::assert_snapshot!("urls", texts);
}

/// The message says what was tried, and the hint names all options that say where a server is.
fn a_server_that_is_not_there_is_explained() {
    let address = format!("127.0.0.1:{}", free_ports(1)[0]);
    for (arguments, error) in [
        (["--url", &format!("mysql://{address}/db")], format!("{address}: Connection refused")),
        (["-S", "/nonexistent/socket"], "/nonexistent/socket: ".to_owned()),
        (["-h", "no.such.host.invalid"], "no.such.host.invalid:3306: ".to_owned()),
    ] {
        let hint = "--host and --port, --socket or --url say where it is, and --user who connects";
        fails(slotted(&ADVISE).args(arguments), &format!("cannot connect to {error}"), hint);
    }
}
