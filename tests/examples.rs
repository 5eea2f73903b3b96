//! The programs of examples/ count, repeat what has not counted, and do not repeat what may have counted.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use mysql::{Conn, OptsBuilder};

use slotted::package::Package;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .needs("examples")
        .plain(the_page_lists_every_example_its_driver_and_what_it_reads_of_an_error)
        .plain(each_example_repeats_what_the_page_about_stock_repeats)
        .private()
        .on_families(each_example_does_its_jobs_and_repeats_after_a_lock_wait_timeout_and_kill_query)
        .on_families(each_example_tells_sold_out_an_unknown_counter_and_no_server_apart)
        .on_families(each_example_orders_exactly_once_while_its_sessions_are_killed);
}

/// The exit codes of the examples.
const UNKNOWN_COUNTER: i32 = 3;
const CONNECTION_LOST: i32 = 4;
const SOLD_OUT: i32 = 5;

/// The files.
const FILES: [&str; 8] = [
    "python/with_pymysql.py",
    "python/with_mysql_connector.py",
    "node/with_mysql2.js",
    "php/with_pdo.php",
    "go/with_go_sql_driver.go",
    "java/WithMariadb.java",
    "ruby/with_mysql2.rb",
    "rust/with_mysql.rs",
];

/// The command lines of the examples. Those of Go and Java are compiled once in a run.
fn examples() -> &'static [Vec<OsString>] {
    static EXAMPLES: OnceLock<Vec<Vec<OsString>>> = OnceLock::new();
    EXAMPLES.get_or_init(|| {
        let sources = FILES.map(|name| root().join("examples").join(name).into_os_string());
        let [pymysql, connector, node, php, go_source, java, ruby, _] = sources;
        let python = provided("examples").join("venv/bin/python").into_os_string();
        let compiled = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples");
        fs::create_dir_all(&compiled).expect("a folder");
        let go = compiled.join("with_go_sql_driver").into_os_string();
        // The driver is a package of the system.
        let environment = [("GO111MODULE", "off"), ("GOPATH", "/usr/share/gocode")];
        compile(Command::new("go").args(["build", "-o"]).args([&go, &go_source]).envs(environment));
        compile(Command::new("javac").arg("-d").args([compiled.as_os_str(), &*java]));
        let mut classes = compiled.into_os_string();
        classes.push(":/usr/share/java/mariadb-java-client.jar");
        let rust = Path::new(env!("CARGO_BIN_EXE_slotted")).with_file_name("examples").join("with_mysql");
        assert!(rust.is_file(), "{} is not compiled: run cargo build --examples", rust.display());
        vec![
            vec![python.clone(), pymysql],
            vec![python, connector],
            vec!["node".into(), node],
            vec!["php".into(), php],
            vec![go],
            vec!["java".into(), "-cp".into(), classes, "WithMariadb".into()],
            vec!["ruby".into(), ruby],
            vec![rust.into_os_string()],
        ]
    })
}

fn compile(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: run scripts/servers examples"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn the_page_lists_every_example_its_driver_and_what_it_reads_of_an_error() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (page, script) = (read("examples/README.md"), read("scripts/servers"));
    let folders: BTreeSet<_> = FILES.iter().filter_map(|file| file.split('/').next()).collect();
    let files = folders.iter().map(|folder| fs::read_dir(root().join("examples").join(folder)).expect(folder).count());
    assert_eq!(files.sum::<usize>(), FILES.len(), "{folders:?}");
    for (driver, extra) in [("PyMySQL", "[rsa]=="), ("mysql-connector-python", "==")] {
        let (_, rest) = script.rsplit_once(&format!("{driver}{extra}")).expect("a version");
        let version = rest.split(['"', ')', ' ']).next().unwrap_or_default();
        assert!(page.contains(&format!("{driver} | {version} |")), "{driver} {version}");
    }
    for file in FILES {
        let row = page.lines().find(|line| line.contains(&format!("({file})"))).expect(file);
        let (example, number) = (read(&format!("examples/{file}")), row.rsplit(" | ").next().expect("a cell"));
        assert!(number.contains('`'), "{row}");
        for expression in number.split('`').skip(1).step_by(2) {
            assert!(example.contains(expression), "{file}: {expression}");
        }
    }
}

/// Error 2006 and the like are numbers of the drivers.
fn each_example_repeats_what_the_page_about_stock_repeats() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let numbers = |text: &str| -> BTreeSet<u16> {
        let words = text.split(|c: char| !c.is_ascii_digit()).filter(|word| word.len() > 3);
        words.filter_map(|word| word.parse().ok()).filter(|number| !(2000..2100).contains(number)).collect()
    };
    let page = read("docs/stock.md");
    let (_, table) = page.split_once("<!-- retries:").expect("the table");
    let rows = table.lines().skip(3).take_while(|line| !line.starts_with("| 1062 "));
    let wanted = rows.map(|row| numbers(row.split(" | ").next().expect("a cell"))).reduce(|all, row| &all | &row);
    for file in FILES {
        let program = read(&format!("examples/{file}"));
        let lists = program.lines().skip_while(|line| !line.contains("1305: a savepoint")).take(9);
        let code = lists.filter(|line| !line.trim_start().starts_with(['#', '/'])).collect::<String>();
        let list = code.split(['{', '[', '(']).map(numbers).filter(|list| !list.is_empty());
        assert!(program.contains("1927") && program.contains("3169"), "{file}: KILL");
        let found = list.reduce(|all, list| &all | &list).map(|all| &all | &BTreeSet::from([1927, 3169]));
        assert_eq!(found, wanted, "{file}");
    }
}

/// The packages of the examples.
fn packages() -> [Package; 3] {
    [package(|_| {}), bounded(|_| {}), of_column("articles.views", "id BIGINT", |_| {})]
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
        schema.run("SET GLOBAL innodb_lock_wait_timeout = 1");
        // As examples/README.md does.
        schema.run(
            "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, request CHAR(32) NOT NULL UNIQUE, seats INT NOT NULL);
             CREATE TABLE counter_operations (operation BINARY(16) PRIMARY KEY);
             CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL);
             INSERT INTO articles VALUES (1, 1000);",
        );
        packages().iter().for_each(|package| schema.install(package));
        let setup = |counter: &str| schema.run(&format!("CALL counter_setup('{counter}', NULL, NULL, NULL)"));
        ["orders", "impressions", "clicks"].iter().for_each(|counter| setup(counter));
        schema.run("CALL bounded_counter_setup('seats', NULL, 17, 500)");
        Self { network, schema }
    }

    /// Deletes all orders and counts, and creates the account again. MySQL has no new account in its cache: the first login is a full one.
    fn reset(&self, seats: u32) {
        let (schema, account) = (self.schema.ident(), format!("'{}'@'localhost'", self.schema.name));
        self.schema.run(&format!(
            "DELETE FROM orders;
             UPDATE counters SET counter = 0;
             UPDATE articles SET views = 1000;
             DELETE FROM articles_views;
             CALL bounded_counter_reset('seats', {seats}, FALSE);
             DROP USER IF EXISTS {account};
             CREATE USER {account} IDENTIFIED BY 's3cret';
             GRANT INSERT ON {schema}.orders TO {account};
             GRANT INSERT ON {schema}.counter_operations TO {account};
             GRANT SELECT ON {schema}.articles TO {account};"
        ));
        for grants in packages().map(|package| self.schema.file(&package, "grants.sql")) {
            self.schema.run(&grants.replace("'app'@'%'", &account).replace("'dba'@'%'", "root@localhost"));
        }
    }

    /// The number of orders, the total of their counter, and the seats that are left.
    fn counted(&self) -> (u64, i64, i64) {
        self.schema.first("SELECT (SELECT COUNT(*) FROM orders), counter_get('orders'), bounded_counter_get('seats')")
    }

    /// A transaction that has locked all slots of a counter.
    fn locked(&self, table: &str, counter: &str) -> Conn {
        let update = format!("UPDATE {table} SET counter = counter + 1 WHERE counter_name = '{counter}'");
        self.schema.after(&["BEGIN", &update])
    }

    /// Runs an example, which connects to a port. Asserts the exit code, and that stderr contains each of the texts. Returns stdout.
    #[track_caller]
    fn runs(
        &self,
        example: &[OsString],
        (port, arguments): (&str, Option<&[&str]>),
        meanwhile: impl FnOnce(),
        (code, texts): (i32, &[&str]),
    ) -> String {
        let mut command = Command::new("timeout");
        command
            .arg("120")
            .args(example)
            .args(arguments.unwrap_or_default())
            .envs([("SLOTTED_HOST", "127.0.0.1"), ("SLOTTED_PORT", port), ("SLOTTED_PASSWORD", "s3cret")])
            .envs([("SLOTTED_USER", &self.schema.name), ("SLOTTED_DATABASE", &self.schema.name)])
            .env("NODE_PATH", provided("examples").join("node_modules"));
        let output = thread::scope(|scope| {
            let running = scope.spawn(|| command.output().expect("timeout"));
            meanwhile();
            running.join().expect("an output")
        });
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let as_expected = output.status.code() == Some(code) && texts.iter().all(|text| stderr.contains(text));
        assert!(as_expected, "{example:?}: {}, expected {code} and {texts:?}\n{stdout}{stderr}", output.status);
        stdout
    }

    /// The session of an example that calls a procedure, if one does. Its USER is the account of the procedure meanwhile.
    fn calling(&self, holder: &Conn) -> Option<u32> {
        let calling =
            format!("SELECT ID FROM {SESSIONS} WHERE DB = '{}' AND INFO LIKE '%counter%' AND ID <> ", self.schema.name);
        let query = format!("{calling}{}", holder.connection_id());
        self.network.server.connect().query_first(&query).expect(&query)
    }
}

fn each_example_does_its_jobs_and_repeats_after_a_lock_wait_timeout_and_kill_query(server: &Server) {
    let application = Application::new(server);
    for example in examples() {
        for (table, counter, error) in
            [("counters", "orders", 1205), ("bounded_counters", "seats", 1205), ("counters", "orders", 1317)]
        {
            application.reset(500);
            let seconds = if error == 1205 { 1 } else { 50 };
            application.schema.run(&format!("SET GLOBAL innodb_lock_wait_timeout = {seconds}"));
            let mut holder = application.locked(table, counter);
            let release = || {
                let waits = |session| application.schema.waits(session);
                until("it waits", || application.calling(&holder).is_some_and(waits));
                if error == 1317 {
                    let session = application.calling(&holder).expect("it waits");
                    application.schema.run(&format!("KILL QUERY {session}"));
                }
                // It repeats the call at once, which waits again.
                thread::sleep(Duration::from_millis(if error == 1317 { 500 } else { 2500 }));
                holder.query_drop("ROLLBACK").expect("a rollback");
            };
            let place = (&*application.network.port, None);
            let stdout = application.runs(example, place, release, (0, &[&format!("repeat after error {error}")]));
            let counts =
                "orders: 1\nseats left: 498\nviews: 1001 (1000 in the column)\nclicks: 100\nimpressions: 1000\n";
            assert_eq!(stdout, counts, "{example:?}");
            assert_eq!(application.counted(), (1, 1, 498), "{example:?}");
            application.schema.run("CALL articles_views_rollup(NULL)");
            assert_eq!(application.schema.first::<i64>("SELECT views FROM articles"), 1001, "{example:?}");
        }
    }
}

fn each_example_tells_sold_out_an_unknown_counter_and_no_server_apart(server: &Server) {
    let application = Application::new(server);
    let port = &application.network.port;
    for example in examples() {
        application.reset(1);
        let sold_out = (SOLD_OUT, &["sold out: ", "not enough: 1 left of 'seats'"][..]);
        application.runs(example, (port, None), || {}, sold_out);
        assert_eq!(application.counted(), (0, 0, 1), "{example:?}");
        let unknown = (UNKNOWN_COUNTER, &["unknown counter: ", "unknown counter 'ordres'"][..]);
        application.runs(example, (port, Some(&["ordres"])), || {}, unknown);
        let nobody = free_ports(1)[0].to_string();
        application.runs(example, (&nobody, None), || {}, (CONNECTION_LOST, &["connection lost: "]));
        assert_eq!(application.counted(), (0, 0, 1), "{example:?}");
    }
}

/// The answer to the first COMMIT is lost, and then sessions are killed.
fn each_example_orders_exactly_once_while_its_sessions_are_killed(server: &Server) {
    const ORDERS: u64 = 600;
    let application = Application::new(server);
    for example in examples() {
        application.reset(2000);
        // After this login, MySQL has the password in its cache: no driver needs TLS, in which the proxy would not see COMMIT.
        let port = application.network.port.parse().expect("a port");
        let login = OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(port).prefer_socket(false);
        Conn::new(login.user(Some(&application.schema.name)).pass(Some("s3cret"))).expect("a login");
        let (proxy, cut) = proxy(port);
        let kill = || {
            let mut killer = application.network.server.connect();
            // Neither the first login nor what follows the last order is repeated.
            let placed = format!("(SELECT COUNT(*) FROM {}.orders)", application.schema.ident());
            let sessions = format!(
                "SELECT ID FROM {SESSIONS} WHERE USER = '{}' AND {placed} BETWEEN 1 AND {}",
                application.schema.name,
                ORDERS / 3
            );
            for pause in (1..50).take_while(|_| application.counted().0 <= ORDERS / 3) {
                for session in killer.query::<u32, _>(&sessions).expect("sessions") {
                    let _ = killer.query_drop(format!("KILL {session}"));
                }
                thread::sleep(Duration::from_millis(100 * pause));
            }
        };
        let orders = ORDERS.to_string();
        application.runs(example, (&proxy, Some(&["orders", &orders])), kill, (0, &["repeat after error"]));
        assert!(cut.load(SeqCst), "{example:?}");
        assert_eq!(application.counted(), (ORDERS, ORDERS as i64, 2000 - 2 * ORDERS as i64), "{example:?}");
    }
}

/// The port of a proxy that closes a connection instead of passing on the answer to the first `COMMIT`, and whether it has.
fn proxy(server: u16) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    let cut = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&cut);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let seen = Arc::clone(&seen);
            thread::spawn(move || serve(&client, server, &seen));
        }
    });
    (port.to_string(), cut)
}

fn serve(mut client: &TcpStream, port: u16, cut: &AtomicBool) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", port))?;
    client.write_all(&greeting_without_tls(&server)?)?;
    let closes = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| _ = pass(&server, client, |_| !closes.load(SeqCst)));
        pass(client, &server, |request| {
            // Not SET autocommit.
            let commits = String::from_utf8_lossy(request).to_lowercase().replace("autocommit", "").contains("commit");
            if commits && !cut.swap(true, SeqCst) {
                closes.store(true, SeqCst);
            }
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
            // The first one fails if the server has reset the connection of a session that was killed.
            return from.shutdown(Shutdown::Both).or(Ok(())).and(to.shutdown(Shutdown::Both));
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
