//! The programs of examples/ count, repeat what has not counted, and do not repeat what may have counted.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::support::{Module, Network, SESSIONS, Schema, Server, file, free_ports, package, provided, root};

pub fn promises(mut module: Module<'_>) {
    module
        .needs("examples")
        .plain(the_page_lists_every_example_with_the_installed_version)
        .private()
        .on_families(each_example_counts_and_repeats_after_a_lock_wait_timeout)
        .on_families(each_example_tells_an_unknown_counter_from_a_lost_connection)
        .on_families(no_example_repeats_a_transaction_whose_commit_may_have_counted);
}

/// The time after which a test gives up.
const LONG: Duration = Duration::from_secs(120);
/// The exit codes of the examples.
const UNKNOWN_COUNTER: i32 = 3;
const CONNECTION_LOST: i32 = 4;

/// The command lines of the examples. Those of Go and Java are compiled once in a run.
fn examples() -> &'static [Vec<OsString>] {
    static EXAMPLES: OnceLock<Vec<Vec<OsString>>> = OnceLock::new();
    EXAMPLES.get_or_init(|| {
        let source = |name: &str| root().join("examples").join(name).into_os_string();
        let python = provided("examples").join("venv/bin/python").into_os_string();
        let compiled = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples");
        fs::create_dir_all(&compiled).expect("a folder");
        let go = compiled.join("with_go_sql_driver").into_os_string();
        compile(
            Command::new("go")
                .args(["build".into(), "-o".into(), go.clone(), source("go/with_go_sql_driver.go")])
                // The driver is a package of the system.
                .envs([("GO111MODULE", "off"), ("GOPATH", "/usr/share/gocode")]),
        );
        compile(Command::new("javac").args(["-d".into(), compiled.clone().into_os_string(), source("java/WithMariadb.java")]));
        let mut classes = compiled.into_os_string();
        classes.push(":/usr/share/java/mariadb-java-client.jar");
        let rust = Path::new(env!("CARGO_BIN_EXE_slotted")).with_file_name("examples").join("with_mysql");
        assert!(rust.is_file(), "{} is not compiled: run cargo build --examples", rust.display());
        vec![
            vec![python.clone(), source("python/with_pymysql.py")],
            vec![python, source("python/with_mysql_connector.py")],
            vec!["node".into(), source("node/with_mysql2.js")],
            vec!["php".into(), source("php/with_pdo.php")],
            vec![go],
            vec!["java".into(), "-cp".into(), classes, "WithMariadb".into()],
            vec!["ruby".into(), source("ruby/with_mysql2.rb")],
            vec![rust.into_os_string()],
        ]
    })
}

const REMEDY: &str = "run scripts/servers examples";

fn compile(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: {REMEDY}"));
    assert!(output.status.success(), "{command:?}: {}\n{REMEDY}", String::from_utf8_lossy(&output.stderr));
}

fn the_page_lists_every_example_with_the_installed_version() {
    let page = fs::read_to_string(root().join("examples/README.md")).expect("the page");
    let script = fs::read_to_string(root().join("scripts/servers")).expect("the script");
    let folders = ["python", "node", "php", "go", "java", "ruby", "rust"];
    let files = folders.iter().flat_map(|folder| fs::read_dir(root().join("examples").join(folder)).expect(folder));
    let files: Vec<_> = files.map(|entry| entry.expect("a file").file_name()).collect();
    assert_eq!(files.len(), examples().len(), "{files:?}");
    for file in files {
        let file = file.to_string_lossy();
        assert!(page.contains(&format!("/{file})")), "{file} is not in the table");
    }
    for (driver, version) in [("PyMySQL[rsa]==", "PyMySQL | "), ("mysql-connector-python==", "mysql-connector-python | ")] {
        let installed = script.split(driver).last().and_then(|rest| rest.split(['"', ')', ' ']).next()).expect("a version");
        assert!(page.contains(&format!("{version}{installed} |")), "{driver}{installed}");
    }
}

/// The database of an application on a server that listens on a port. Its account has the name of the database.
struct Application<'a> {
    network: &'a Network,
    schema: Schema<'a>,
}

impl<'a> Application<'a> {
    fn new(server: &'a Server) -> Self {
        let network = server.network();
        let schema = network.server.schema();
        let package = package(|_| {});
        schema.run("SET GLOBAL innodb_lock_wait_timeout = 1");
        schema.install(&package);
        schema.run(&file(&package, "grants.sql"));
        for counter in ["orders", "views", "clicks"] {
            schema.run(&format!("CALL counter_setup('{counter}', NULL, NULL, NULL)"));
        }
        schema.run("CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, item VARCHAR(100) NOT NULL)");
        Self { network, schema }
    }

    /// Deletes the orders and the counts, and creates the account again. MySQL has no password of a new account in its cache,
    /// so that the first login is a full one.
    fn reset(&self) {
        let to = if self.network.server.is_mysql() { "TO" } else { "FOR" };
        let (schema, account) = (self.schema.ident(), format!("'{}'@'localhost'", self.schema.name));
        self.schema.run(&format!(
            "DELETE FROM orders;
             UPDATE counters SET counter = 0;
             DROP USER IF EXISTS {account};
             CREATE USER {account} IDENTIFIED BY 's3cret';
             GRANT counter_app TO {account};
             SET DEFAULT ROLE counter_app {to} {account};
             GRANT INSERT ON {schema}.orders TO {account};"
        ));
    }

    /// The number of orders, and the total of their counter.
    fn counted(&self) -> (u64, i64) {
        self.schema.first("SELECT (SELECT COUNT(*) FROM orders), counter_get('orders')")
    }

    /// A transaction that has locked all slots of the counter of orders.
    fn locked(&self) -> Conn {
        let mut connection = self.schema.connect();
        connection.query_drop("BEGIN").expect("a transaction");
        connection.query_drop("UPDATE counters SET counter = counter + 1 WHERE counter_name = 'orders'").expect("locks");
        connection
    }

    /// Starts an example, which connects to a port.
    fn start(&self, example: &[OsString], port: &str, arguments: &[&str]) -> Running {
        let mut command = Command::new(&example[0]);
        command
            .args(&example[1..])
            .args(arguments)
            .envs([("SLOTTED_HOST", "127.0.0.1"), ("SLOTTED_PORT", port), ("SLOTTED_PASSWORD", "s3cret")])
            .envs([("SLOTTED_USER", &self.schema.name), ("SLOTTED_DATABASE", &self.schema.name)])
            .env("NODE_PATH", provided("examples").join("node_modules"));
        Running::start(&mut command)
    }
}

/// An example at work. It is killed if the test fails.
struct Running {
    command: String,
    child: Child,
    stdout: Output,
    stderr: Output,
    begin: Instant,
}

/// What a program has printed until now, and the thread that reads it.
struct Output(Arc<Mutex<String>>, Option<thread::JoinHandle<()>>);

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let printed = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                printed.lock().expect("the text").push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
        });
        Self(text, Some(reader))
    }

    fn text(&self) -> String {
        self.0.lock().expect("the text").clone()
    }
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}: {REMEDY}"));
        let stdout = Output::of(child.stdout.take().expect("a pipe"));
        let stderr = Output::of(child.stderr.take().expect("a pipe"));
        Self { command: format!("{command:?}"), child, stdout, stderr, begin: Instant::now() }
    }

    /// Does `step` until the example has ended or `step` returns true.
    fn until(&mut self, mut step: impl FnMut(&Self) -> bool) {
        while self.child.try_wait().expect("its status").is_none() && !step(self) {
            assert!(self.begin.elapsed() < LONG, "{} does not end: {}", self.command, self.stderr.text());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end. Asserts the exit code, and that stderr contains each of the texts. Returns stdout.
    #[track_caller]
    fn ends(mut self, code: i32, texts: &[&str]) -> String {
        self.until(|_| false);
        for output in [&mut self.stdout, &mut self.stderr] {
            output.1.take().expect("a reader").join().expect("the end of the output");
        }
        let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
        let status = self.child.wait().expect("the end");
        let as_expected = status.code() == Some(code) && texts.iter().all(|text| stderr.contains(text));
        assert!(as_expected, "{}: {status}, expected {code} and {texts:?}\n{stdout}{stderr}", self.command);
        stdout
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn each_example_counts_and_repeats_after_a_lock_wait_timeout(server: &Server) {
    let application = Application::new(server);
    for example in examples() {
        application.reset();
        let mut holder = application.locked();
        let mut running = application.start(example, &application.network.port, &[]);
        running.until(|running| running.stderr.text().contains("repeat after error 1205"));
        holder.query_drop("ROLLBACK").expect("a rollback");
        let stdout = running.ends(0, &["repeat after error 1205"]);
        assert_eq!(stdout, "total of the counter: 1\nclicks 100\nviews 1000\n", "{example:?}");
        assert_eq!(application.counted(), (1, 1), "{example:?}");
    }
}

fn each_example_tells_an_unknown_counter_from_a_lost_connection(server: &Server) {
    let application = Application::new(server);
    let mut administrator = application.network.server.connect();
    for example in examples() {
        application.reset();
        let unknown = application.start(example, &application.network.port, &["ordres"]);
        unknown.ends(UNKNOWN_COUNTER, &["unknown counter: ", "unknown counter 'ordres'"]);

        let closed = application.start(example, &free_ports(1)[0].to_string(), &[]);
        closed.ends(CONNECTION_LOST, &["connection lost: "]);

        let mut holder = application.locked();
        // While a procedure runs, USER is the account of the procedure.
        let calling = format!(
            "SELECT ID FROM {SESSIONS} WHERE DB = '{}' AND INFO LIKE '%counter%' AND ID <> {}",
            application.schema.name,
            holder.connection_id()
        );
        let mut killed = application.start(example, &application.network.port, &[]);
        killed.until(|_| {
            let session: Option<u64> = administrator.query_first(&calling).expect(&calling);
            // The call can have ended with error 1205 meanwhile. Then the next one is killed.
            session.is_some_and(|session| administrator.query_drop(format!("KILL {session}")).is_ok())
        });
        killed.ends(CONNECTION_LOST, &["connection lost: ", "the transaction has not counted"]);
        holder.query_drop("ROLLBACK").expect("a rollback");
        assert_eq!(application.counted(), (0, 0), "{example:?}");
    }
}

fn no_example_repeats_a_transaction_whose_commit_may_have_counted(server: &Server) {
    let application = Application::new(server);
    for example in examples() {
        application.reset();
        // After this login, MySQL has the password in its cache: no driver needs TLS, in which the proxy would not see COMMIT.
        let port = application.network.port.parse().expect("a port");
        let login = OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(port).prefer_socket(false);
        Conn::new(login.user(Some(&application.schema.name)).pass(Some("s3cret"))).expect("a login");
        let (proxy, cut) = proxy(port);
        application.start(example, &proxy, &[]).ends(CONNECTION_LOST, &["connection lost: ", "the transaction may have counted"]);
        assert!(cut.load(SeqCst), "{example:?}");
        assert_eq!(application.counted(), (1, 1), "{example:?}");
    }
}

/// The port of a proxy for one connection to a server, which it closes instead of passing on the answer to `COMMIT`. The
/// flag is set when it has seen `COMMIT`.
fn proxy(server: u16) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    let cut = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&cut);
    thread::spawn(move || serve(listener, server, &seen));
    (port.to_string(), cut)
}

fn serve(listener: TcpListener, port: u16, cut: &AtomicBool) -> io::Result<()> {
    let (client, _) = listener.accept()?;
    // A second connection is rejected.
    drop(listener);
    let server = TcpStream::connect(("127.0.0.1", port))?;
    (&client).write_all(&greeting_without_tls(&server)?)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = pass(&server, &client, |_| !cut.load(SeqCst));
        });
        pass(&client, &server, |request| {
            // Not SET autocommit.
            let commits = String::from_utf8_lossy(request).to_lowercase().replace("autocommit", "").contains("commit");
            cut.fetch_or(commits, SeqCst);
            true
        })
    })
}

/// Passes bytes on as long as `open` returns true, and then closes both connections.
fn pass(mut from: &TcpStream, mut to: &TcpStream, open: impl Fn(&[u8]) -> bool) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = from.read(&mut buffer).unwrap_or(0);
        if length == 0 || !open(&buffer[..length]) || to.write_all(&buffer[..length]).is_err() {
            from.shutdown(Shutdown::Both)?;
            return to.shutdown(Shutdown::Both);
        }
    }
}

/// The first packet of a server, without its capability CLIENT_SSL.
fn greeting_without_tls(mut server: &TcpStream) -> io::Result<Vec<u8>> {
    let mut packet = vec![0; 4];
    server.read_exact(&mut packet)?;
    let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]) as usize;
    packet.resize(4 + length, 0);
    server.read_exact(&mut packet[4..])?;
    // The protocol, the version up to its NUL, the connection ID, 8 bytes of the nonce and a zero precede the capabilities.
    let version = packet[5..].iter().position(|byte| *byte == 0).expect("the end of the version");
    let capabilities = 5 + version + 1 + 4 + 8 + 1;
    packet[capabilities + 1] &= !0x08;
    Ok(packet)
}
