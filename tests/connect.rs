//! Connections of the tool: TLS, passwords, option files, time-outs, and what the errors say.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{DriverError, MySqlError};
use slotted::connect::{ConnectError, option_file};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::support::{Module, Network, Server};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(every_error_is_as_reviewed)
        .plain(a_url_that_cannot_be_used_is_explained)
        .plain(a_host_that_does_not_answer_ends_after_the_timeout)
        .plain(ctrl_c_ends_a_connection_at_once)
        .plain(a_server_that_is_not_there_is_explained)
        .on_families(values_in_option_files_are_those_of_the_client)
        .private()
        .on_families(every_command_connects_with_tls)
        .on_families(a_password_can_have_every_character)
        .on_one_server(a_password_is_asked_for_on_the_terminal)
        .waits()
        .on_one_server(no_password_is_in_the_arguments_of_the_process)
        .on_families(option_files_are_read_as_the_clients_read_them)
        .on_families(an_account_that_is_rejected_is_explained);
}

/// The message and the remedy of each kind of error.
fn every_error_is_as_reviewed() {
    let driver = |password, error| ConnectError::Driver {
        place: "db1:3306".into(),
        account: "user@db1:3306".into(),
        password,
        error,
    };
    let answer = |code, state: &str, message: &str| {
        let (state, message) = (state.to_owned(), message.to_owned());
        driver(true, mysql::Error::MySqlError(MySqlError { state, message, code }))
    };
    let denied = "Access denied for user 'user'@'client' (using password: NO)";
    let without_password = MySqlError { state: "28000".into(), message: denied.into(), code: 1045 };
    let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "Connection refused (os error 111)");
    let not_readable = std::io::Error::new(std::io::ErrorKind::PermissionDenied, "Permission denied (os error 13)");
    let errors = [
        ConnectError::Timeout { place: "db1:3306".into(), after: Duration::from_secs(10) },
        ConnectError::Interrupted,
        ConnectError::Ended { place: "db1:3306".into() },
        ConnectError::File { path: "ca.pem".into(), error: not_readable },
        ConnectError::HalfIdentity,
        driver(false, mysql::Error::MySqlError(without_password)),
        driver(true, mysql::Error::IoError(refused)),
        driver(true, mysql::Error::DriverError(DriverError::TlsNotSupported)),
        driver(true, mysql::Error::DriverError(DriverError::UnknownAuthPlugin("sha256_password".into()))),
        answer(1045, "28000", "Access denied for user 'user'@'client' (using password: YES)"),
        answer(1044, "42000", "Access denied for user 'user'@'client' to database 'app'"),
        answer(1049, "42000", "Unknown database 'app'"),
        answer(1040, "08004", "Too many connections"),
        answer(1129, "HY000", "Host 'client' is blocked because of many connection errors"),
        answer(1130, "HY000", "Host 'client' is not allowed to connect to this MySQL server"),
        answer(3159, "HY000", "Connections using insecure transport are prohibited while --require_secure_transport=ON."),
        answer(3118, "HY000", "Access denied for user 'user'@'client'. Account is locked."),
    ];
    let texts = errors.iter().map(|error| format!("error: {error}\nhint: {}\n", error.hint()));
    insta::assert_snapshot!("errors", texts.collect::<Vec<_>>().join("\n"));
}

/// The tool without the settings of this machine.
fn slotted(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    for name in ["SLOTTED_URL", "SLOTTED_PASSWORD", "MYSQL_PWD", "MYSQL_HOME", "MARIADB_HOME"] {
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
    assert!(text.contains(error) && text.contains(&format!("hint: {hint}")), "{command:?}: {text}");
    assert!(!text.contains("s3cret"), "{text}");
}

impl Network {
    fn command(&self, command: &[&str], arguments: &[&str]) -> Command {
        let place = ["--host", "127.0.0.1", "--port", &self.port];
        slotted(&[command, &place, arguments].concat())
    }
}

/// Files with an authority, and a server and a client that it has signed.
struct Certificates {
    folder: TempDir,
}

impl Certificates {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        let named = |name: &str, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            let mut params = CertificateParams::new(hosts).expect("host names");
            params.distinguished_name.push(DnType::CommonName, name);
            params
        };
        let mut authority = named("authority of the test", &[]);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        write("ca.pem", &authority.self_signed(&key).expect("a certificate").pem());
        let issuer = Issuer::new(authority, key);
        // 127.0.0.1 is no name of the server.
        for (name, host) in [("server", "localhost"), ("client", "client")] {
            let key = KeyPair::generate().expect("a key");
            let certificate = named(name, &[host]).signed_by(&key, &issuer).expect("a certificate");
            write(&format!("{name}.pem"), &certificate.pem());
            write(&format!("{name}-key.pem"), &key.serialize_pem());
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

fn every_command_connects_with_tls(server: &Server) {
    let (ours, other) = (Certificates::new(), Certificates::new());
    let files = [
        format!("--ssl-ca={}", ours.path("ca.pem")),
        format!("--ssl-cert={}", ours.path("server.pem")),
        format!("--ssl-key={}", ours.path("server-key.pem")),
    ];
    let arguments: Vec<&str> = files.iter().map(String::as_str).chain(["--require-secure-transport=ON"]).collect();
    let network = Network::start(server, &arguments);
    network.account("'user'@'localhost'", "s3cret", "");
    network.account("'identified'@'localhost'", "s3cret", "REQUIRE X509");
    let (ca, other_ca) = (ours.path("ca.pem"), other.path("ca.pem"));
    let user = ["--user", "user", "--password=s3cret"];
    let advise = |arguments: &[&str]| network.command(&ADVISE, &[&user, arguments].concat());

    connects(&mut advise(&[]));
    connects(&mut advise(&["--ssl-mode", "required"]));
    connects(&mut advise(&["--ssl-mode", "verify-ca", "--ssl-ca", &ca]));
    let at = |host: &str, ca: &str| format!("mysql://user:s3cret@{host}:{}?ssl-mode=VERIFY_IDENTITY&ssl-ca={ca}", network.port);
    // Without TCP, the host localhost is the socket. A URL with a port names the port.
    connects(slotted(&ADVISE).args(["--url", &at("localhost", &ca)]));
    // MariaDB 10.11 answers as to a wrong password.
    let hint = if server.is_mysql() { "the server requires TLS" } else { "" };
    fails(&mut advise(&["--ssl-mode", "disabled"]), "cannot connect to 127.0.0.1:", hint);
    fails(&mut advise(&["--ssl-mode", "verify-ca"]), "invalid peer certificate: ", "give the certificate of the authority");
    fails(&mut advise(&["--ssl-mode", "verify-ca", "--ssl-ca", &other_ca]), "invalid peer certificate: ", "give the certificate of the authority");
    fails(slotted(&ADVISE).args(["--url", &at("localhost", &other_ca)]), "invalid peer certificate: ", "give the certificate of the authority");
    fails(slotted(&ADVISE).args(["--url", &at("127.0.0.1", &ca)]), "not valid for name", "connect to the host name in the certificate");
    fails(&mut advise(&["--ssl-mode", "verify-ca", "--ssl-ca", "/nonexistent"]), "cannot read /nonexistent: ", "give a file");

    let (certificate, key) = (ours.path("client.pem"), ours.path("client-key.pem"));
    let identity = ["--user", "identified", "--password=s3cret", "--ssl-cert", &certificate, "--ssl-key", &key];
    connects(&mut network.command(&ADVISE, &identity));
    fails(&mut network.command(&ADVISE, &identity[..2]), "ERROR 1045 (28000)", "identified@127.0.0.1:");

    // The connections of the load use TLS too.
    let bench = ["bench", "counters", "--connections", "2", "--seconds", "0.1", "--rounds", "1", "--slots", "2"];
    connects(&mut network.command(&bench, &[&user[..], &["--ssl-mode", "required"]].concat()));
    let mut connection = network.server.connect();
    connection.query_drop("CREATE DATABASE app").expect("a database");
    connection.query_drop("CREATE TABLE app.pages (id INT PRIMARY KEY, hits INT)").expect("a table");
    connection.query_drop("INSERT INTO app.pages VALUES (1, 7)").expect("a row");
    let app = ["--database", "app"];
    for command in [&["install", "counters"][..], &["status"], &["uninstall", "--with-data", "--yes"]] {
        connects(&mut network.command(command, &[&user[..], &app].concat()));
    }
}

/// All printable characters of ASCII, and one beyond.
fn every_character() -> String {
    (' '..='~').chain(['é']).collect()
}

fn a_password_can_have_every_character(server: &Server) {
    let network = server.network();
    let password = every_character();
    network.account("'us/er'@'localhost'", &password, "");
    let advise = |arguments: &[&str]| network.command(&ADVISE, &[&["--user", "us/er"], arguments].concat());

    connects(&mut advise(&[&format!("--password={password}")]));
    connects(advise(&[]).env("MYSQL_PWD", &password));
    connects(advise(&[]).env("SLOTTED_PASSWORD", &password));
    let encoded = percent_encoding::utf8_percent_encode(&password, percent_encoding::NON_ALPHANUMERIC);
    let url = format!("mysql://us%2Fer:{encoded}@127.0.0.1:{}", network.port);
    connects(slotted(&ADVISE).args(["--url", &url]));
    connects(slotted(&ADVISE).env("SLOTTED_URL", &url));
    // The password of the URL precedes the variables, and the option precedes the URL.
    connects(slotted(&ADVISE).env("SLOTTED_URL", &url).env("SLOTTED_PASSWORD", "other").env("MYSQL_PWD", "other"));
    // A URL without a password is as the options without it.
    let without = format!("mysql://us%2Fer@127.0.0.1:{}", network.port);
    connects(slotted(&ADVISE).args(["--url", &without]).env("SLOTTED_PASSWORD", &password).env("MYSQL_PWD", "other"));
    connects(slotted(&ADVISE).env("SLOTTED_URL", &without).env("MYSQL_PWD", &password));
    let none = [&ADVISE[..], &["--url", &without, "--password="]].concat();
    fails(slotted(&none).env("SLOTTED_PASSWORD", &password), "(using password: NO)", "");
    let wrong = format!("mysql://us%2Fer:wrong@127.0.0.1:{}", network.port);
    connects(slotted(&ADVISE).args(["--url", &wrong, &format!("--password={password}")]));
    let folder = tempfile::tempdir().expect("a folder");
    let quoted = format!("'{}'", password.replace('\\', "\\\\").replace('\'', "\\'"));
    let file = folder.path().join("my.cnf");
    fs::write(&file, format!("[client]\npassword = {quoted} # the password\n")).expect("a file");
    connects(&mut advise(&["--defaults-file", &file.display().to_string()]));
    // The clients of the server read the file in the same way.
    let name = if server.is_mysql() { "mysql" } else { "mariadb" };
    let client = Command::new(server.tool(&[name]))
        .arg(format!("--defaults-file={}", file.display()))
        .args(["--host=127.0.0.1", "--user=us/er", "-e", "DO 1"])
        .arg(format!("--port={}", network.port))
        .output()
        .expect("a client");
    assert!(client.status.success(), "{}", stderr(&client));
}

fn a_password_is_asked_for_on_the_terminal(server: &Server) {
    let network = server.network();
    network.account("'asked'@'localhost'", "s3cret", "");
    for arguments in [&["--user", "asked", "--password"][..], &["--user", "asked"]] {
        let mut command = network.command(&ADVISE, arguments);
        // Of the terminal.
        command.stdin(Stdio::inherit());
        let mut terminal = rexpect::session::spawn_command(command, Some(60_000)).expect("a terminal");
        terminal.exp_string(&format!("Password of asked@127.0.0.1:{}: ", network.port)).expect("a question");
        terminal.send_line("s3cret").expect("an answer");
        let printed = terminal.exp_eof().expect("the end");
        assert!(printed.contains("sessions wait for a row lock"), "{printed}");
        assert!(!printed.contains("s3cret"), "{printed}");
    }
}

fn no_password_is_in_the_arguments_of_the_process(server: &Server) {
    let network = server.network();
    network.account("'argued'@'localhost'", "s3cret", "");
    let url = format!("mysql://argued:s3cret@127.0.0.1:{}", network.port);
    for arguments in [
        &["--host", "127.0.0.1", "--port", &network.port, "--user", "argued", "--password=s3cret"][..],
        &["--url", &url],
        &[&format!("--url={url}")],
    ] {
        let mut command = slotted(&["advise", "--seconds", "2"]);
        let mut child = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("slotted runs");
        thread::sleep(Duration::from_secs(1));
        let listed = fs::read(format!("/proc/{}/cmdline", child.id())).expect("the arguments");
        let listed = String::from_utf8_lossy(&listed).replace('\0', " ");
        assert!(listed.contains("advise") && !listed.contains("s3cret"), "{listed}");
        assert!(child.wait().expect("the end").success());
    }
}

/// The client prints the options of a file with --print-defaults.
fn values_in_option_files_are_those_of_the_client(server: &Server) {
    let lines = [
        r##"=p#q"##,
        r##"= a # b"##,
        r##"=a ; b"##,
        r##"="a#b" # c"##,
        r##"="a" # it's "b""##,
        r##"="a"#b"##,
        r##"="a" b"##,
        r##"="a\"#b""##,
        r##"="a\\""##,
        r##"="" "##,
        r##"='it's'"##,
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
    let client = server.client_program();
    let output = Command::new(&client).arg(format!("--defaults-file={}", file.display())).arg("--print-defaults").output();
    let printed = String::from_utf8(output.expect("the client runs").stdout).expect("UTF-8").replace('\n', " ");
    let entries = option_file::read(&file, &mut |path| panic!("{} is ignored", path.display())).expect("an option file");
    assert_eq!(entries.len(), lines.len());
    for entry in entries {
        let value = entry.value.map(|value| format!("={value}")).unwrap_or_default();
        let option = format!(" --{}{value} ", entry.name);
        assert!(printed.contains(&option), "{option:?}\n{printed}");
    }
}

fn option_files_are_read_as_the_clients_read_them(server: &Server) {
    let network = server.network();
    network.account("'user'@'localhost'", "s3cret", "");
    network.account("'other'@'localhost'", "another", "");
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    };
    let port = &network.port;
    write("more.cnf", format!("[client]\nport = {port}\nquick\n[mysqldump]\nuser = nobody\n"));
    let main = write(
        ".my.cnf",
        format!("!include {}\n[client]\nhost=127.0.0.1\nuser=user\npassword=\"s3cret\"\n[slotted_eu]\nuser=other\n", folder.path().join("more.cnf").display()),
    );
    let file = main.display().to_string();
    connects(slotted(&ADVISE).args(["--defaults-file", &file]));
    connects(slotted(&ADVISE).env("HOME", folder.path()));
    let suffix = ["--defaults-file", &file, "--defaults-group-suffix", "_eu"];
    fails(slotted(&ADVISE).args(suffix), "ERROR 1045 (28000): Access denied for user 'other'", "check user and password");
    // The command line overrides the file.
    connects(slotted(&ADVISE).args(suffix).args(["--user", "user"]));
    fails(slotted(&ADVISE).args(["--no-defaults", "--host", "127.0.0.1", "--port", port, "--user", "user"]), "ERROR 1045", "user@127.0.0.1:");
    fails(slotted(&ADVISE).args(["--defaults-file", "/nonexistent"]), "cannot read the option file /nonexistent", "correct the file");
    let wrong = write("wrong.cnf", "[slotted]\nslots = 5\n".into()).display().to_string();
    fails(slotted(&ADVISE).args(["--defaults-file", &wrong]), "unknown option slots", "correct the option file");
    let line = write("line.cnf", "[client]\nuser=a\n\n[broken\n".into()).display().to_string();
    fails(slotted(&ADVISE).args(["--defaults-file", &line]), "cannot parse line 4 of the option file", "correct the file");

    // The clients ignore a file that every account can write.
    fs::set_permissions(&main, fs::Permissions::from_mode(0o666)).expect("permissions");
    let output = slotted(&ADVISE).args(["--defaults-file", &file, "--host", "127.0.0.1", "--port", port, "--user", "user"]).output();
    let output = output.expect("slotted runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("warning: the option file"), "{}", stderr(&output));
}

fn an_account_that_is_rejected_is_explained(server: &Server) {
    let network = Network::start(server, &[]);
    network.account("'user'@'localhost'", "right", "");
    let user = ["--user", "user"];
    fails(&mut network.command(&ADVISE, &[&user[..], &["--password=s3cret"]].concat()), "ERROR 1045", "check user and password");
    fails(&mut network.command(&ADVISE, &user), "ERROR 1045", "user@127.0.0.1");
    let missing = [&user[..], &["--password=right", "--database", "missing"]].concat();
    fails(&mut network.command(&ADVISE, &missing), "ERROR 1049 (42000)", "create the database");
    if server.is_mysql() {
        let mut connection = network.server.connect();
        connection.query_drop("CREATE USER 'old'@'%' IDENTIFIED WITH sha256_password BY 's3cret'").expect("an account");
        let old = ["--user", "old", "--password=s3cret"];
        fails(&mut network.command(&ADVISE, &old), "protocol: `sha256_password`", "check the user: MySQL answers with any plugin if the account does not exist. If it exists, its plugin sha256_password is not supported: ALTER USER");
        // As the hint says.
        connection.query_drop("ALTER USER 'old'@'%' IDENTIFIED WITH caching_sha2_password BY 's3cret'").expect("an account");
        fails(&mut network.command(&ADVISE, &[&old[..], &["--database", "missing"]].concat()), "ERROR 1044 (42000)", "");
    }
    network.server.connect().query_drop("SET GLOBAL max_connections = 10").expect("a setting");
    let open: Vec<_> = (0..11).map_while(|_| mysql::Conn::new(network.server.options()).ok()).collect();
    assert!(open.len() >= 10, "{}", open.len());
    fails(&mut network.command(&ADVISE, &[&user[..], &["--password=right"]].concat()), "1040", "wait until other connections");
}

fn a_url_that_cannot_be_used_is_explained() {
    let mut texts = String::new();
    for (url, error, hint) in [
        ("mysql://user:s3cret#1@host/db", "the URL cannot be parsed: invalid port number", "percent-encode"),
        ("mysql://user:12#s3cret@host/db", "the URL has an unexpected #", "percent-encode"),
        ("mysql://user:12/s3cret@host/db", "the URL has an unexpected /", "percent-encode"),
        ("mysql://user:12?s3cret@host/db", "the URL has an unknown parameter", "the parameters are"),
        ("postgres://user:s3cret@host", "the URL must begin with mysql://", "percent-encode"),
        ("s3cret", "the URL cannot be parsed: relative URL without a base", "percent-encode"),
        ("mysql://user:s3cret@host?ssl-mode=sometimes", "the value of ssl-mode is not valid", "the parameters are"),
    ] {
        fails(slotted(&ADVISE).args(["--url", url]), error, hint);
        fails(slotted(&ADVISE).env("SLOTTED_URL", url), error, hint);
        let output = slotted(&ADVISE).args(["--url", url]).output().expect("slotted runs");
        texts += &format!("$ slotted advise --url '{url}'\n{}\n", stderr(&output));
    }
    insta::assert_snapshot!("urls", texts);
}

/// A port whose connections are accepted by the kernel, and never answered.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port().to_string();
    (listener, port)
}

fn a_host_that_does_not_answer_ends_after_the_timeout() {
    let (_listener, port) = silent();
    for command in [
        &["advise"][..],
        &["bench"],
    ] {
        let start = Instant::now();
        let place = ["--host", "127.0.0.1", "--port", &port, "--user", "u", "--connect-timeout", "0.5"];
        let error = format!("127.0.0.1:{port} did not answer within 0.5 s");
        fails(slotted(command).args(place), &error, "check that a server listens");
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    }
}

fn ctrl_c_ends_a_connection_at_once() {
    let (_listener, port) = silent();
    for command in ["advise", "bench"] {
        let mut child = slotted(&[command, "--host", "127.0.0.1", "--port", &port, "--user", "u", "--connect-timeout", "600"])
            .stderr(Stdio::null())
            .spawn()
            .expect("slotted runs");
        thread::sleep(Duration::from_millis(500));
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
        assert!(kill.success());
        let end = Instant::now() + Duration::from_secs(10);
        let status = loop {
            if let Some(status) = child.try_wait().expect("its status") {
                break status;
            }
            assert!(Instant::now() < end, "{command} is still running");
            thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(status.code(), Some(130), "{command}");
    }
}

fn a_server_that_is_not_there_is_explained() {
    let (listener, port) = silent();
    drop(listener);
    let place = ["--host", "127.0.0.1", "--port", &port, "--user", "u"];
    fails(slotted(&ADVISE).args(place), "Connection refused", "check that the server is running");
    assert!(!Path::new("/nonexistent/socket").exists());
    fails(slotted(&ADVISE).args(["--socket", "/nonexistent/socket"]), "cannot connect to /nonexistent/socket", "check that the server is running");
    fails(slotted(&ADVISE).args(["--host", "no.such.host.invalid", "--connect-timeout", "60"]), "cannot connect to no.such.host.invalid:3306", "check");
}
