//! A source and a replica: MySQL with row-based replication, MariaDB with the format MIXED, and both with STATEMENT.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use rand::RngExt;
use slotted::package::{Options, Package, Slots};


use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, bounded, bounded_keyed, calls, error_of, file, free_ports, keyed, package, repeatable, root};

pub fn promises(mut module: Module<'_>) {
    module
        .private()
        .on_servers(a_replica_has_the_same_rows_and_can_become_the_source)
        .on_servers(statements_leave_the_totals_of_the_page);
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
        Self::of_format(server, if server.is_mysql() { "ROW" } else { "MIXED" })
    }

    fn of_format(server: &Server, format: &str) -> Self {
        let port = free_ports(1)[0];
        let format = format!("--binlog-format={format}");
        let formats: &[&str] = if server.is_mysql() {
            &["--gtid-mode=ON", "--enforce-gtid-consistency=ON", &format]
        } else {
            &["--slave-parallel-threads=4", &format]
        };
        let port_argument = format!("--port={port}");
        let start = |own: &[&str]| {
            let of_both = ["--event-scheduler=ON", "--log-bin=binlog"];
            server.another(&[formats, &of_both, own].concat())
        };
        let source = start(&["--server-id=1", "--skip-networking=0", "--bind-address=127.0.0.1", &port_argument]);
        let replica = start(&["--server-id=2", "--read-only=ON"]);
        let pair = Self { source, replica };
        pair.source
            .connect()
            .query_drop("CREATE USER replica@'%' IDENTIFIED BY 'secret'")
            .expect("an account");
        pair.source
            .connect()
            .query_drop("GRANT REPLICATION SLAVE ON *.* TO replica@'%'")
            .expect("its privilege");
        let follow = if server.is_mysql() {
            [
                format!(
                    "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'replica', \
                     SOURCE_PASSWORD = 'secret', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1"
                ),
                "START REPLICA".into(),
            ]
        } else {
            [
                format!(
                    "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'replica', \
                     MASTER_PASSWORD = 'secret', MASTER_USE_GTID = slave_pos"
                ),
                "START REPLICA".into(),
            ]
        };
        let mut connection = pair.replica.connect();
        for statement in follow {
            connection.query_drop(&statement).expect("replication");
        }
        pair
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
        let waited: Option<i64> = replica
            .exec_first(wait, (position, TIMEOUT.as_secs()))
            .expect("the replica");
        let status: Vec<Row> = replica.query("SHOW REPLICA STATUS").expect("the status");
        assert_eq!(waited, Some(0), "{status:?}");
    }

    /// A connection of the application.
    fn application(server: &Server) -> Conn {
        let options = server.options().user(Some("app")).pass(Some("secret"));
        Conn::new(options.db_name(Some(SCHEMA))).expect("a connection")
    }
}

/// All rows of all tables, and the definitions of all routines and events.
fn contents(server: &Server) -> Vec<(String, Vec<Vec<Value>>)> {
    let mut connection = Conn::new(server.options().db_name(Some(SCHEMA))).expect("a connection");
    let tables: Vec<String> = connection
        .query(
            "SELECT TABLE_NAME FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' ORDER BY 1",
        )
        .expect("the tables");
    let queries = tables.into_iter().map(|table| {
        let key: Vec<String> = connection
            .exec(
                "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
                 AND TABLE_NAME = ? AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX",
                (&table,),
            )
            .expect("the key");
        format!("SELECT * FROM {table} ORDER BY {}", key.join(", "))
    });
    let mut queries: Vec<_> = queries.collect();
    queries.push(
        "SELECT ROUTINE_NAME, ROUTINE_DEFINITION, DEFINER, SECURITY_TYPE, SQL_MODE FROM information_schema.ROUTINES \
         WHERE ROUTINE_SCHEMA = DATABASE() ORDER BY 1"
            .into(),
    );
    let rows = |query: String| {
        let rows: Vec<Row> = connection.query(&query).expect(&query);
        (query, rows.into_iter().map(Row::unwrap).collect())
    };
    queries.into_iter().map(rows).collect()
}

fn packages() -> [Package; 3] {
    let of_account = |options: &mut Options| options.definer = Some("slotted@localhost".parse().expect("an account"));
    [package(of_account), keyed(of_account), of_column("pages.views", "id BIGINT", of_account)]
}

/// Increments in transactions of several statements, of which some are rolled back.
fn write(schema: &Schema<'_>, done: &AtomicBool, counted: &AtomicI64) {
    let mut random = rand::rng();
    let mut connection = Pair::application(schema.server);
    while !done.load(SeqCst) {
        let record = random.random_range(1..=RECORDS);
        let amount = random.random_range(-3..=9);
        let transaction = random.random_bool(0.5);
        let mut statements = vec![format!("CALL pages_views_add({record}, {amount})")];
        if transaction {
            statements.insert(0, "START TRANSACTION".into());
            statements.push(format!("UPDATE pages SET title = CONCAT('title ', {amount}) WHERE id = {record}"));
        }
        statements.push("CALL counter_increment('hot')".into());
        statements.push(format!("CALL counter_add('counted', {amount})"));
        let rolled_back = transaction && random.random_bool(0.2);
        if transaction {
            statements.push(if rolled_back { "ROLLBACK" } else { "COMMIT" }.into());
        }
        let mut completed = 0;
        for statement in &statements {
            match connection.query_drop(statement) {
                Ok(()) => completed += 1,
                Err(error) => {
                    repeatable(error);
                    connection.query_drop("ROLLBACK").expect("a rollback");
                    break;
                }
            }
        }
        // Without a transaction, the last statement counts on its own.
        if completed == statements.len() && !rolled_back {
            counted.fetch_add(amount, SeqCst);
        }
    }
}

/// Everything else that changes tables, one statement after the other.
fn maintain(schema: &Schema<'_>) {
    let mut connection = schema.connect();
    let mut random = rand::rng();
    let mut completed = 0;
    for turn in calls(200) {
        let record = random.random_range(1..=RECORDS);
        let statement = match turn % 9 {
            0 => format!("CALL counter_resize('hot', {})", random.random_range(1..=60)),
            1 => format!("CALL counter_reset('hot', {record}, {})", turn % 2),
            2 => format!("CALL slotted_counter_add(2, {record}, {turn})"),
            3 => "CALL slotted_counter_compact_idle(0, 1000)".into(),
            4 => "CALL pages_views_rollup(7)".into(),
            5 => format!("CALL counter_setup('once {turn}', NULL, {record}, {turn})"),
            6 => format!("CALL counter_delete('once {}')", turn - 1),
            7 => format!("CALL slotted_counter_reset(2, {record}, {turn})"),
            _ => format!("CALL slotted_counter_delete(2, {record})"),
        };
        match connection.query_drop(&statement) {
            Ok(()) => completed += 1,
            Err(error) => _ = repeatable(error),
        }
    }
    eprintln!("{}: {completed} statements of maintenance", schema.server.version);
}

fn a_replica_has_the_same_rows_and_can_become_the_source(server: &Server) {
    let pair = Pair::start(server);
    let schema = Schema::named(&pair.source, SCHEMA, "");
    let pages: Vec<_> = (1..=RECORDS).map(|id| format!("({id}, 'title', 0)")).collect();
    schema.run(&format!(
        "CREATE TABLE pages (id BIGINT PRIMARY KEY, title VARCHAR(50) NOT NULL, views BIGINT NOT NULL) ENGINE = InnoDB;
         INSERT INTO pages VALUES {}; CREATE USER app@'%' IDENTIFIED BY 'secret'",
        pages.join(", ")
    ));
    for package in packages() {
        schema.run(&file(&package, "setup.sql"));
        schema.run(&file(&package, "accounts.sql"));
    }
    schema.run(&format!("GRANT SELECT, UPDATE ON pages TO app@'%'; GRANT EXECUTE ON {SCHEMA}.* TO app@'%'"));
    // An event runs only if its definer has this privilege.
    schema.run(&format!("GRANT EVENT ON {SCHEMA}.* TO slotted@localhost"));
    schema.run(
        "CREATE DEFINER = slotted@localhost EVENT pages_views_rollup ON SCHEDULE EVERY 1 SECOND DO CALL pages_views_rollup(NULL)",
    );
    schema.run("CALL counter_setup('hot', NULL, 20, 0); CALL counter_setup('counted', NULL, 20, 0)");

    let (done, counted) = (AtomicBool::new(false), AtomicI64::new(0));
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| write(&schema, &done, &counted));
        }
        maintain(&schema);
        done.store(true, SeqCst);
    });
    schema.run("ALTER DEFINER = slotted@localhost EVENT pages_views_rollup DISABLE; CALL pages_views_rollup(NULL)");
    assert_eq!(schema.first::<i64>("SELECT counter_get('counted')"), counted.into_inner());
    pair.wait();
    let of_source = contents(&pair.source);
    for (source, replica) in of_source.iter().zip(contents(&pair.replica)) {
        assert_eq!(*source, replica);
    }
    schema.run("ALTER DEFINER = slotted@localhost EVENT pages_views_rollup ENABLE");
    pair.wait();

    // The replica rejects calls, also of administrators of counters, and answers reads.
    let mut connection = Pair::application(&pair.replica);
    for call in ["CALL counter_increment('hot')", "CALL counter_add('hot', 2)", "CALL pages_views_increment(1)"] {
        let error = error_of(connection.query_drop(call));
        assert_eq!(error.0, 1290, "{call}: {error:?}");
    }
    let total: Option<i64> = connection.query_first("SELECT counter_get('counted')").expect("a read");
    assert_eq!(total, Some(schema.first("SELECT counter_get('counted')")));
    let rows: usize = of_source.iter().map(|(_, rows)| rows.len()).sum();
    eprintln!("{}: {} queries with {rows} rows are equal on the replica", server.version, of_source.len());

    // A failover: the replica becomes the source. Its event is not enabled.
    let mut administrator = Conn::new(pair.replica.options().db_name(Some(SCHEMA))).expect("a connection");
    let event = "SELECT STATUS FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()";
    let status: Option<String> = administrator.query_first(event).expect("the event");
    assert!(status.as_deref().is_some_and(|status| status.ends_with("SIDE_DISABLED")), "{status:?}");
    schema.run("SET GLOBAL read_only = ON");
    for statement in
        ["STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL read_only = OFF", "ALTER DEFINER = slotted@localhost EVENT pages_views_rollup ENABLE"]
    {
        administrator.query_drop(statement).expect(statement);
    }
    connection.query_drop("CALL pages_views_add(1, 1000)").expect("an increment");
    let start = Instant::now();
    let differs = "SELECT COUNT(*) FROM pages WHERE views <> pages_views_get(id)";
    while administrator.query_first::<u64, _>(differs).expect("the pages") != Some(0) {
        assert!(start.elapsed() < TIMEOUT, "the event does not run");
        thread::sleep(Duration::from_millis(100));
    }
}

/// A row of the table in docs/operations.md about `binlog_format = STATEMENT`: a package, what is called after its prefix, and the
/// statements around them. {k} is a counter or record, {n} an amount.
struct Load {
    row: &'static str,
    package: Package,
    key: &'static str,
    before: &'static str,
    calls: &'static [&'static str],
    more: &'static [&'static str],
}

fn loads() -> Vec<Load> {
    let named: &[&str] = &[
        "increment('{k}')", "add('{k}', {n})", "add('{k}', -{n})", "add_many('[[\"{k}\", {n}], [\"1\", 3]]')", "resize('{k}', {n})", "reset('{k}', {n}, TRUE)",
    ];
    let fixed: &[&str] = &["increment('{k}')", "add('{k}', -{n})", "add_many('[[\"{k}\", {n}], [\"1\", 3]]')", "reset('{k}', {n}, TRUE)", "resize('{k}', NULL)"];
    let deleted: &[&str] = &["CALL counter_delete('{k}')", "CALL counter_setup('{k}', NULL, NULL, {n})"];
    let setup = "CALL counter_setup('1', NULL, NULL, 0); CALL counter_setup('2', NULL, NULL, 0); CALL counter_setup('3', NULL, NULL, 0)";
    let of_counters = "| `counters`, `counters-fixed` | all | equal |";
    let of_bounded = "| bounded | all but those of the next row | equal |";
    vec![
        Load { row: of_counters, package: package(|_| {}), key: "counter_name", before: setup, calls: named, more: deleted },
        Load {
            row: of_counters,
            package: package(|options| options.slots = Slots::Fixed(7)),
            key: "counter_name",
            before: setup,
            calls: fixed,
            more: deleted,
        },
        Load {
            row: "| `slotted_counters` | all | equal |",
            package: keyed(|_| {}),
            key: "record_id",
            before: "DO 0",
            calls: &[
                "increment(1, {k})", "add(1, {k}, -{n})", "add_many('[[1, {k}, {n}], [1, 3, 3]]')", "compact(1, {k})", "compact_idle(0, NULL)", "reset(1, {k}, {n})",
                "delete(1, {k})",
            ],
            more: &[],
        },
        Load {
            row: "| of a [column](columns.md) | all but those of the next row | equal, but the column can have another part of it |",
            package: articles(),
            key: "id",
            before: "INSERT INTO articles VALUES (1, 100), (2, 0), (3, 7)",
            calls: &["increment({k})", "add({k}, -{n})", "add_many('[[{k}, {n}], [3, 3]]')", "rollup(NULL)", "rollup(1)", "compact({k})", "reset({k}, {n})"],
            more: &["UPDATE articles SET views = views + 1 WHERE id = {k}"],
        },
        Load {
            row: of_bounded,
            package: bounded(|_| {}),
            key: "counter_name",
            before: "CALL bounded_counter_setup('1', NULL, NULL, 0); CALL bounded_counter_setup('2', NULL, NULL, 0); \
                     CALL bounded_counter_setup('3', NULL, NULL, 0)",
            calls: &["increment('{k}')", "add('{k}', {n})", "add_many('[[\"{k}\", {n}]]')", "resize('{k}', {n})", "reset('{k}', {n}, TRUE)"],
            more: &["CALL bounded_counter_delete('{k}')", "CALL bounded_counter_setup('{k}', NULL, NULL, {n})"],
        },
        Load {
            row: of_bounded,
            package: bounded_keyed(|_| {}),
            key: "record_id",
            before: "DO 0",
            calls: &["increment(1, {k})", "add(1, {k}, {n})", "add_many('[[1, {k}, {n}]]')", "compact(1, {k})", "reset(1, {k}, {n})", "delete(1, {k})", "setup(1, {k}, {n})"],
            more: &[],
        },
    ]
}

fn articles() -> Package {
    of_column("articles.views", "id BIGINT", |_| {})
}

/// A schema of the source with the package.
fn installed<'a>(source: &'a Server, package: &Package) -> Schema<'a> {
    let schema = source.schema();
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB");
    schema.install(package);
    schema
}

impl Load {
    /// Six connections call at random, half of them in transactions, of which some are rolled back.
    fn run(&self, schema: &Schema<'_>) {
        let prefix = self.package.options.prefix.name();
        let statements: Vec<String> =
            self.calls.iter().map(|call| format!("CALL {prefix}{call}")).chain(self.more.iter().map(|one| (*one).to_owned())).collect();
        let connection = || {
            let (mut connection, mut random) = (schema.connect(), rand::rng());
            for _ in calls(40) {
                let transaction = random.random_bool(0.5);
                let mut all: Vec<String> = (0..random.random_range(1..4))
                    .map(|_| {
                        let statement = &statements[random.random_range(0..statements.len())];
                        filled(statement, random.random_range(1..=3), random.random_range(1..=9))
                    })
                    .collect();
                if transaction {
                    all.insert(0, "START TRANSACTION".into());
                    all.push(if random.random_bool(0.2) { "ROLLBACK" } else { "COMMIT" }.into());
                }
                for statement in &all {
                    match connection.query_drop(statement) {
                        // A counter that exists or not, and a record that is created while it is deleted.
                        Err(mysql::Error::MySqlError(error)) if [30003, 30004, 1317].contains(&error.code) => {}
                        Err(error) => {
                            // MariaDB 11.8 rejects the change of a row that has changed since the snapshot.
                            if !matches!(&error, mysql::Error::MySqlError(error) if error.code == 1020) {
                                repeatable(error);
                            }
                            connection.query_drop("ROLLBACK").expect("a rollback");
                            break;
                        }
                        Ok(()) => {}
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(connection);
            }
        });
    }
}

fn filled(statement: &str, key: u32, amount: u32) -> String {
    statement.replace("{k}", &key.to_string()).replace("{n}", &amount.to_string())
}

/// The totals on the source and on the replica.
fn totals(pair: &Pair, schema: &Schema<'_>, package: &Package, key: &str) -> [Vec<(String, i64)>; 2] {
    let query = format!("SELECT CAST({key} AS CHAR), total FROM {} ORDER BY 1", package.totals);
    let mut replica = Conn::new(pair.replica.options().db_name(Some(&schema.name))).expect("a connection");
    [schema.query(&query), replica.query(&query).expect("the totals")]
}

/// A replica skips other locked rows than the source did (SKIP LOCKED).
fn statements_leave_the_totals_of_the_page(server: &Server) {
    let page = std::fs::read_to_string(root().join("docs/operations.md")).expect("the page");
    let pair = Pair::of_format(server, "STATEMENT");
    let loads = loads();
    let schemas: Vec<_> = loads.iter().map(|load| installed(&pair.source, &load.package)).collect();
    for (load, schema) in loads.iter().zip(&schemas) {
        assert!(page.contains(load.row), "{}", load.row);
        schema.run(load.before);
        load.run(schema);
    }
    pair.wait();
    for (load, schema) in loads.iter().zip(&schemas) {
        let [source, replica] = totals(&pair, schema, &load.package, load.key);
        assert_eq!(source, replica, "{}", load.row);
        // The calls of a session at READ COMMITTED.
        let mut connection = schema.isolated("READ COMMITTED");
        let call = format!("CALL {}{}", load.package.options.prefix.name(), filled(load.calls[1], 1, 5));
        let called = connection.query_drop(&call);
        assert_eq!(error_of(called).0, 1665, "{call}");
    }
    differs_after_a_take(&pair, &page);
    differs_after_a_deletion(&pair, &page);
}

/// B takes from the slots that A has not locked. On the replica, B also empties the slot of A, and then A finds too little there.
fn differs_after_a_take(pair: &Pair, page: &str) {
    assert!(page.contains("| bounded | `take`, `add` of a negative amount | can differ |"));
    let package = bounded(|_| {});
    let schema = installed(&pair.source, &package);
    schema.run("CALL bounded_counter_setup('a', NULL, 3, 0); UPDATE bounded_counters SET counter = 10");
    let (mut a, mut b) = (schema.connect_with_id(2, 3), schema.connect_with_id(1, 3));
    a.query_drop("START TRANSACTION").expect("a transaction");
    a.query_drop("CALL bounded_counter_take('a', 10)").expect("a take");
    b.query_drop("CALL bounded_counter_take('a', 15)").expect("a take");
    // Otherwise, the replica can execute both at the same time, as the source did.
    pair.wait();
    a.query_drop("COMMIT").expect("a commit");
    pair.wait();
    let [source, replica] = totals(pair, &schema, &package, "counter_name");
    assert_eq!((source[0].1, replica[0].1), (5, 15));
}

/// The roll-up skips a slot that A has locked, and moves it on the replica. The deletion of the slots leaves the column.
fn differs_after_a_deletion(pair: &Pair, page: &str) {
    assert!(page.contains("| of a column | `delete`, and statements that set the column | can differ |"));
    let package = articles();
    let schema = installed(&pair.source, &package);
    schema.run("INSERT INTO articles VALUES (1, 100); INSERT INTO articles_views VALUES (1, 1, 5), (1, 2, 3)");
    let mut a = schema.connect_with_id(1, 521);
    a.query_drop("START TRANSACTION").expect("a transaction");
    a.query_drop("CALL articles_views_increment(1)").expect("an increment");
    schema.run("CALL articles_views_rollup(NULL)");
    pair.wait();
    a.query_drop("COMMIT").expect("a commit");
    pair.wait();
    let [source, replica] = totals(pair, &schema, &package, "id");
    assert_eq!((source[0].1, replica[0].1), (109, 109));
    schema.run("CALL articles_views_delete(1)");
    pair.wait();
    let [source, replica] = totals(pair, &schema, &package, "id");
    assert_eq!((source[0].1, replica[0].1), (103, 108));
}
