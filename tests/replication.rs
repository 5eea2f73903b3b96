//! Rows on other servers: a replica with the default format of the binary log, ROW on MySQL and MIXED on MariaDB, and a dump.

use std::process::Command;

use mysql::{Row, Value};

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(rows_of_a_dump_move_to_the_other_server)
        .private()
        .on_servers(a_replica_has_the_same_rows_and_rejects_calls);
}

/// The schema on both servers.
const SCHEMA: &str = "app";

/// The number of records and of rows of their parent table.
const RECORDS: usize = 40;

/// The time that a replica has to apply all changes, or an event to run.
const TIMEOUT: Duration = Duration::from_secs(120);

struct Pair {
    source: Server,
    replica: Server,
}

impl Pair {
    fn start(server: &Server) -> Self {
        let port = free_ports(1)[0];
        let port_argument = format!("--port={port}");
        let formats: &[&str] = if server.is_mysql() {
            &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
        } else {
            &["--slave-parallel-threads=4"]
        };
        let start =
            |own: &[&str]| server.another(&[formats, &["--event-scheduler=ON", "--log-bin=binlog"], own].concat());
        let source = start(&["--server-id=1", "--skip-networking=0", "--bind-address=127.0.0.1", &port_argument]);
        let replica = start(&["--server-id=2", "--read-only=ON"]);
        let (follow, of) = if server.is_mysql() {
            ("CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1", "SOURCE")
        } else {
            ("CHANGE MASTER TO MASTER_USE_GTID = slave_pos", "MASTER")
        };
        let account = format!("{of}_USER = 'replica', {of}_PASSWORD = 'secret'");
        for (server, statement) in [
            (&source, "CREATE USER replica@'%' IDENTIFIED BY 'secret'"),
            (&source, "GRANT REPLICATION SLAVE ON *.* TO replica@'%'"),
            (&replica, &format!("{follow}, {of}_HOST = '127.0.0.1', {of}_PORT = {port}, {account}")),
            (&replica, "START REPLICA"),
        ] {
            server.connect().query_drop(statement).expect(statement);
        }
        Self { source, replica }
    }

    /// Waits until the replica has applied all changes of the source.
    fn wait(&self) {
        let (position, wait) = if self.source.is_mysql() {
            ("SELECT @@GLOBAL.gtid_executed", "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?)")
        } else {
            ("SELECT @@GLOBAL.gtid_binlog_pos", "SELECT MASTER_GTID_WAIT(?, ?)")
        };
        let position: Option<String> = self.source.connect().query_first(position).expect("a position");
        let mut replica = self.replica.connect();
        let waited: Option<i64> = replica.exec_first(wait, (position, TIMEOUT.as_secs())).expect("the replica");
        let status: Vec<Row> = replica.query("SHOW REPLICA STATUS").expect("the status");
        assert_eq!(waited, Some(0), "{status:?}");
    }
}

/// A connection of the application.
fn application(server: &Server) -> Conn {
    let options = server.options().user(Some("app")).pass(Some("secret"));
    Conn::new(options.db_name(Some(SCHEMA))).expect("a connection")
}

/// All rows of all tables, and the definitions of all routines.
fn contents(server: &Server) -> Vec<Vec<Vec<Value>>> {
    let mut connection = Conn::new(server.options().db_name(Some(SCHEMA))).expect("a connection");
    let routines =
        "(SELECT ROUTINE_NAME, ROUTINE_DEFINITION, DEFINER, SECURITY_TYPE, SQL_MODE FROM information_schema.ROUTINES
                      WHERE ROUTINE_SCHEMA = DATABASE()) AS routines";
    let rows = |table: &str| {
        let rows: Vec<Row> = connection.query(format!("SELECT * FROM {table} ORDER BY 1, 2, 3")).expect(table);
        assert!(!rows.is_empty(), "{table}");
        rows.into_iter().map(Row::unwrap).collect()
    };
    [routines, "counters", "bounded_counters", "slotted_counters", "pages_views", "pages"].map(rows).into()
}

/// Increments, half of them in transactions of several statements, of which some are rolled back.
fn write(connection: &mut Conn, counted: &AtomicI64) {
    let mut random = rand::rng();
    let (record, amount): (usize, i64) = (random.random_range(1..=RECORDS), random.random_range(-3..=9));
    let (begin, end) = match random.random_range(0..10) {
        0..5 => ("DO 0", "DO 0"),
        5..9 => ("START TRANSACTION", "COMMIT"),
        _ => ("START TRANSACTION", "ROLLBACK"),
    };
    let statements = [
        begin,
        &format!("CALL pages_views_add({record}, {amount})"),
        &format!("UPDATE pages SET title = CONCAT('title ', {amount}) WHERE id = {record}"),
        "CALL counter_increment('hot')",
        &format!("CALL bounded_counter_{}('seats', {record})", if amount < 3 { "add" } else { "take" }),
        &format!("CALL counter_add('counted', {amount})"),
        end,
    ];
    let completed = statements.iter().try_for_each(|statement| match connection.query_drop(statement) {
        // The seats are sold out.
        Err(mysql::Error::MySqlError(error)) if error.code == 30016 => Ok(()),
        result => result,
    });
    if let Err(error) = completed {
        repeatable(error);
        connection.query_drop("ROLLBACK").expect("a rollback");
    } else if end != "ROLLBACK" {
        counted.fetch_add(amount, SeqCst);
    }
}

/// Everything else that changes tables, one statement after the other.
fn maintain(schema: &Schema<'_>) {
    let (mut connection, mut random) = (schema.connect(), rand::rng());
    for turn in calls(200) {
        let record = random.random_range(1..=RECORDS);
        let call = match turn % 9 {
            0 => format!("counter_resize('hot', {})", random.random_range(1..=60)),
            1 => format!("counter_reset('hot', {record}, {})", turn % 2),
            2 => format!("slotted_counter_add(2, {record}, {turn})"),
            3 => format!("slotted_counter_compact(2, {record})"),
            4 => "pages_views_rollup(7)".into(),
            5 => format!("counter_setup('once {turn}', NULL, {record}, {turn})"),
            6 => format!("counter_delete('once {}')", turn - 1),
            7 => format!("slotted_counter_reset(2, {record}, {turn})"),
            _ => format!("slotted_counter_delete(2, {record})"),
        };
        let _ = connection.query_drop(format!("CALL {call}")).map_err(repeatable);
    }
    schema.run("CALL slotted_counter_add(1, 2, 3)");
}

fn a_replica_has_the_same_rows_and_rejects_calls(server: &Server) {
    let pair = Pair::start(server);
    let schema = Schema::named(&pair.source, SCHEMA, "");
    let pages: Vec<_> = (1..=RECORDS).map(|id| format!("({id}, 'title', 0)")).collect();
    schema.run(&format!(
        "CREATE TABLE pages (id BIGINT PRIMARY KEY, title VARCHAR(50) NOT NULL, views BIGINT NOT NULL) ENGINE = InnoDB;
         INSERT INTO pages VALUES {}; CREATE USER app@'%' IDENTIFIED BY 'secret'",
        pages.join(", ")
    ));
    for words in ["counters", "bounded_counters", "slotted_counters", "--column pages.views --key 'id BIGINT'"] {
        let package = parsed(&format!("{words} --definer slotted@localhost"));
        ["setup.sql", "accounts.sql"].iter().for_each(|file| schema.run(&schema.file(&package, file)));
    }
    schema.run(&format!("GRANT SELECT, UPDATE ON pages TO app@'%'; GRANT EXECUTE ON {SCHEMA}.* TO app@'%'"));
    let event = "CREATE DEFINER = slotted@localhost EVENT pages_views_rollup ON SCHEDULE EVERY 1 SECOND DO BEGIN SET autocommit = 1, \
                 lock_wait_timeout = 1, innodb_lock_wait_timeout = 1; CALL pages_views_rollup(NULL); END";
    schema.after(&[event]);
    schema.run("CALL counter_setup('hot', NULL, 20, 0); CALL counter_setup('counted', NULL, 20, 0); CALL bounded_counter_setup('seats', NULL, 20, 5000)");

    let counted = AtomicI64::new(0);
    let part = |connection: &mut Conn, _| write(connection, &counted);
    beside((0..6).map(|_| application(schema.server)), part, || maintain(&schema));
    schema.run("CALL pages_views_add(2, 7)");
    // An event runs only if its definer has the privilege EVENT.
    until("the event", || schema.first::<bool>("SELECT SUM(count) IS NULL OR SUM(count) = 0 FROM pages_views"));
    schema.run("ALTER DEFINER = slotted@localhost EVENT pages_views_rollup DISABLE; CALL pages_views_rollup(NULL); CALL pages_views_add(1, 5)");
    assert_eq!(schema.first::<i64>("SELECT counter_get('counted')"), counted.into_inner());
    pair.wait();
    for (source, replica) in contents(&pair.source).iter().zip(contents(&pair.replica)) {
        assert_eq!(*source, replica);
    }

    // The replica answers reads.
    let mut connection = application(&pair.replica);
    for call in ["counter_increment('hot')", "bounded_counter_take('seats', 1)", "pages_views_increment(1)"] {
        assert_eq!(error_of(connection.query_drop(format!("CALL {call}"))).0, 1290, "{call}");
    }
    let total: Option<i64> = connection.query_first("SELECT counter_get('counted')").expect("a read");
    assert_eq!(total, Some(schema.first("SELECT counter_get('counted')")));

    // The event of a replica is disabled, and that is right. After a failover it is not.
    schema.run("ALTER DEFINER = slotted@localhost EVENT pages_views_rollup ENABLE");
    pair.wait();
    let place = ["status", "pages.views", "--url", &pair.replica.url(), "--database", SCHEMA];
    let status = |code| exits(&mut slotted(&place), code);
    assert!(!status(0).contains("ALTER"));
    let mut root = Conn::new(pair.replica.options().db_name(Some(SCHEMA))).expect("a connection");
    run_all(&mut root, &["STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL read_only = 0"]).expect("a failover");
    let said = status(1);
    let remedy = "ALTER DEFINER = `slotted`@`localhost` EVENT `pages_views_rollup` ENABLE";
    assert!(said.contains(remedy), "{said}");
    run(&mut root, remedy);
    status(0);
    let definer: Option<String> = root
        .query_first("SELECT DEFINER FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'app'")
        .expect("the event");
    assert_eq!(definer.as_deref(), Some("slotted@localhost"));
}

/// The packages, the queries of their totals, and the calls after which these totals are `41`.
const PACKAGES: [(&str, &str, &str); 5] = [
    (
        "counters",
        "SELECT counter_get('\u{e9}\u{1F600}')",
        "CALL counter_setup('\u{e9}\u{1F600}', 'it''s', 7, 40); CALL counter_increment('\u{c9}\u{1F600}')",
    ),
    ("slotted_counters", "SELECT slotted_counter_get(1, 2)", "CALL slotted_counter_add(1, 2, 41)"),
    (
        "slotted_counters --key 'hash BINARY(4)' --table hashes --prefix hash_",
        "SELECT hash_get(0x00FF275C)",
        "CALL hash_add(0x00FF275C, 41)",
    ),
    (
        "--column articles.views --key 'url VARCHAR(50)'",
        "SELECT articles_views_get('/\u{4e2d}')",
        "INSERT INTO articles VALUES ('/\u{4e2d}', 30); CALL articles_views_add('/\u{4e2d}', 11)",
    ),
    (
        "bounded_counters",
        "SELECT bounded_counter_get('seats')",
        "CALL bounded_counter_setup('seats', NULL, 3, 50); CALL bounded_counter_take('seats', 9)",
    ),
];

/// A schema with the tables and the packages.
fn created(server: &Server) -> Schema<'_> {
    let schema = server.schema();
    let key = "url VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY";
    schema.run(&format!("CREATE TABLE articles ({key}, views BIGINT NOT NULL CHECK (views >= 0)) ENGINE = InnoDB"));
    PACKAGES.iter().for_each(|(words, ..)| schema.install(&parsed(words)));
    schema
}

/// The rows of a schema, dumped with the options of the page.
fn dump(schema: &Schema<'_>) -> String {
    let page = std::fs::read_to_string(root().join("docs/operations.md")).expect("the page");
    let (_, section) = page.split_once("## Between MySQL and MariaDB").expect("the section");
    let (_, command) = section.split_once("mysqldump ").expect("a dump");
    let (options, _) = command.split_once(" mydb`").expect("a dump of the database");
    let client = schema.client().command(&[], root());
    // The last argument names the schema.
    let account = client.get_args().take(client.get_args().len() - 1);
    let mut dump = Command::new(schema.server.dump());
    let output = dump.args(account).args(options.split(' ')).arg(&schema.name).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// As docs/operations.md describes it.
fn rows_of_a_dump_move_to_the_other_server(server: &Server) {
    let schema = created(server);
    PACKAGES.iter().for_each(|(_, _, calls)| schema.run(calls));
    let rows = dump(&schema);
    for other in servers_of_this_run().iter().filter(|other| other.is_mysql() != server.is_mysql()) {
        let moved = created(other);
        let said = moved.client().pipe(&[], &rows);
        assert!(said.success, "to {}: {said:?}", other.version);
        for (words, query, _) in PACKAGES {
            let table = &parsed(words).options.table;
            assert_eq!(moved.rows(table), schema.rows(table), "to {}: {table}", other.version);
            assert_eq!(moved.first::<i64>(query), 41, "to {}: {query}", other.version);
        }
        moved.run("CALL counter_increment('\u{e9}\u{1F600}'); CALL articles_views_rollup(NULL); CALL articles_views_increment('/\u{4e2d}')");
        let totals = "SELECT counter_get('\u{e9}\u{1F600}'), views, articles_views_get(url) FROM articles";
        assert_eq!(moved.first::<(i64, i64, i64)>(totals), (42, 41, 42), "to {}", other.version);
        assert_eq!(error_of(moved.connect().query_drop("CALL bounded_counter_take('seats', 42)")).0, 30016);
    }
}
