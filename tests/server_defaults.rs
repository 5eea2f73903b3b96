//! Commands and scripts on servers whose defaults are unusual. What they print is what another session sees.

use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::{Package, Slots};
use slotted::render;

use crate::advise::{printed, slotted};
use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, bounded, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .private()
        .on_families(commands_do_not_depend_on_the_defaults_of_the_server)
        .on_servers(scripts_do_not_depend_on_the_defaults_of_the_server)
        .waits()
        .on_servers(calls_are_exact_without_memory_for_temporary_tables)
        .on(|name| name.starts_with("mariadb"), calls_without_temporary_tables_change_nothing)
        .waits()
        .on_servers(scripts_wait_for_a_global_read_lock_for_seconds)
        .waits()
        .on(|name| name.starts_with("mysql"), scripts_wait_for_an_open_transaction_for_seconds);
}

/// The defaults of new sessions. The limits come last, because they apply to the statements that set the others. Those of joins, rows and
/// updates are those of the client with --safe-updates.
const DEFAULTS: [&str; 9] = [
    "autocommit = 0",
    "completion_type = 'RELEASE'",
    "wait_timeout = 2",
    "time_zone = '+05:30'",
    "foreign_key_checks = 0",
    "max_join_size = 1000000",
    "sql_select_limit = 1",
    "sql_safe_updates = 1",
    "sql_auto_is_null = 1",
];

/// A file of a package for a server.
fn file(server: &Server, package: &Package, name: &str) -> String {
    render::file(&package.clone().of_family(server.version.family), name)
}

/// A server with these defaults and the database `app`.
struct Unusual {
    server: Server,
    /// The sql_mode, for messages.
    mode: &'static str,
    /// A session that keeps the usual defaults.
    other: Conn,
}

impl Unusual {
    /// A server with each unusual sql_mode.
    fn all(server: &Server) -> impl Iterator<Item = Self> {
        let modes: &[&'static str] = if server.is_mysql() {
            &["ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE"]
        } else {
            &["ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE", "ORACLE"]
        };
        modes.iter().map(|mode| {
            let server = server.another(&[]);
            let mut other = server.connect();
            let isolation = if server.is_mysql() { "transaction_isolation" } else { "tx_isolation" };
            for statement in ["CREATE DATABASE app", "USE app"] {
                other.query_drop(statement).expect(statement);
            }
            for default in DEFAULTS {
                other.query_drop(format!("SET GLOBAL {default}")).expect(default);
            }
            other.query_drop(format!("SET GLOBAL {isolation} = 'SERIALIZABLE', GLOBAL sql_mode = '{mode}'")).expect(mode);
            Self { server, mode, other }
        })
    }

    /// Asserts what the other session sees.
    fn sees(&mut self, query: &str, wanted: &str, said: &str) {
        let found: Option<String> = self.other.query_first(format!("SELECT CAST(({query}) AS CHAR)")).expect(query);
        assert_eq!(found.as_deref(), Some(wanted), "{}: {query}: {said}", self.mode);
    }

    /// Runs a command, and asserts its exit code and what the other session sees. Returns what the command printed.
    fn command(&mut self, arguments: &[&str], query: &str, wanted: &str) -> String {
        let output = slotted(&[arguments, &["--url", &self.server.url(), "--database", "app"]].concat());
        let said = printed(&output);
        assert_eq!(output.status.code(), Some(0), "{}, {arguments:?}: {said}", self.mode);
        self.sees(query, wanted, &said);
        said
    }

    /// Sources a script with the client of the server, and asserts that the settings of the session are the same after it.
    fn source(&mut self, package: &Package, name: &str) {
        let settings = "SELECT CONCAT_WS(' ', @@autocommit, @@character_set_client, @@character_set_results, @@collation_connection, \
                        @@lock_wait_timeout, @@sql_big_selects, @@sql_mode, @@sql_safe_updates, @@sql_select_limit) AS settings;\n";
        let said = self.server.client("app").pipe(&["--skip-column-names"], &format!("{settings}{}{settings}", file(&self.server, package, name)));
        assert!(said.success, "{}, {name}: {said:?}", self.mode);
        let lines: Vec<_> = said.stdout.lines().collect();
        assert_eq!(lines.first(), lines.last(), "{}, {name}", self.mode);
        assert!(lines.len() > 1 && ["0", "OFF"].iter().any(|off| lines[0].starts_with(off)), "{}, {name}: {lines:?}", self.mode);
    }
}

const ROUTINES: &str = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'app' AND ROUTINE_NAME IN ('counter_get', 'counter_add')";
const TOTALS: &str = "SELECT CONCAT(slots, ' ', total) FROM counter_totals";

fn commands_do_not_depend_on_the_defaults_of_the_server(server: &Server) {
    for mut unusual in Unusual::all(server) {
        let mode = unusual.mode;
        unusual.command(&["install", "counters"], ROUTINES, "2");
        let again = unusual.command(&["install", "counters"], ROUTINES, "2");
        assert!(again.contains("nothing to do"), "{mode}: {again}");
        let comment = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'app' AND ROUTINE_COMMENT = 'old'";
        unusual.other.query_drop("ALTER PROCEDURE counter_add COMMENT 'old'").expect("another routine");
        unusual.command(&["install", "counters"], comment, "0");
        unusual.other.query_drop("CALL counter_setup('hot', NULL, 20, 5)").expect("a counter");
        unusual.command(&["status"], TOTALS, "20 5");
        unusual.other.query_drop("CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB").expect("a table");
        unusual.other.query_drop("INSERT INTO pages VALUES (1, 40)").expect("a row");
        unusual.command(&["install", "--column", "pages.views"], ROUTINES, "2");
        unusual.other.query_drop("CALL pages_views_add(1, 2)").expect("a count");
        unusual.command(&["status", "--json"], "SELECT views FROM pages", "40");
        unusual.command(&["uninstall", "pages.views", "--with-data", "--yes"], "SELECT views FROM pages", "42");
        // The connections that open the load are idle for longer than wait_timeout.
        let bench = ["bench", "single-row", "counters", "--seconds", "2.5", "--rounds", "1", "--connections", "4"];
        unusual.command(&bench, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'slotted_bench'", "0");
        unusual.command(&["uninstall", "counters", "--with-data", "--yes"], ROUTINES, "0");
    }
}

fn scripts_do_not_depend_on_the_defaults_of_the_server(server: &Server) {
    let fixed = |slots| {
        package(|options| {
            options.slots = Slots::Fixed(slots);
            options.definer = Some("slotted@localhost".parse().expect("an account"));
        })
    };
    let (few, many) = (fixed(5), fixed(20));
    for mut unusual in Unusual::all(server) {
        unusual.source(&few, "setup.sql");
        unusual.sees(ROUTINES, "2", "setup.sql");
        let account = "SELECT COUNT(*) FROM mysql.user WHERE user = 'slotted'";
        unusual.source(&few, "accounts.sql");
        unusual.sees(account, "1", "accounts.sql");
        unusual.other.query_drop("CREATE USER app, dba").expect("accounts");
        unusual.source(&few, "grants.sql");
        unusual.sees("SELECT COUNT(*) FROM mysql.procs_priv WHERE User = 'app' AND Routine_name IN ('counter_add', 'counter_get')", "2", "grants.sql");
        unusual.other.query_drop("CALL counter_setup('hot', NULL, NULL, 41); CALL counter_increment('hot')").expect("a counter");
        unusual.source(&many, "resize.sql");
        unusual.sees(TOTALS, "20 42", "resize.sql");
        unusual.source(&many, "create_procedures.sql");
        unusual.sees("SELECT arguments LIKE '% --slots 20 %' FROM counter_package", "1", "create_procedures.sql");
        unusual.source(&many, "test_insertdata.sql");
        unusual.sees("SELECT CONCAT(COUNT(DISTINCT counter_name), ' ', COUNT(*)) FROM counters", "1501 30020", "test_insertdata.sql");
        unusual.source(&many, "uninstall.sql");
        unusual.sees(ROUTINES, "0", "uninstall.sql");

        unusual.source(&keyed(|_| {}), "create_tables.sql");
        unusual.source(&keyed(|_| {}), "create_procedures.sql");
        unusual.other.query_drop("CALL slotted_counter_increment(1, 7)").expect("an increment");
        unusual.sees("SELECT slotted_counter_get(1, 7)", "1", "create_procedures.sql");
    }
}

/// Ten times as long as the longest wait of a script and of a call behind it.
const LONG: Duration = Duration::from_secs(30);

/// Sources a script while something blocks it, and asserts that it ends with error 1205 after some seconds.
fn ends(server: &Server, schema: &str, package: &Package, name: &str) {
    let begin = Instant::now();
    let said = server.client(schema).pipe(&[], &file(server, package, name));
    let took = begin.elapsed();
    assert!(!said.success && said.stderr.contains("ERROR 1205"), "{name}: {said:?}");
    // The default is a day on MariaDB and a year on MySQL.
    assert!(took >= Duration::from_secs(1) && took < LONG, "{name}: {took:?}");
}

fn scripts_wait_for_a_global_read_lock_for_seconds(server: &Server) {
    let server = server.another(&[]);
    let schema = server.schema();
    let package = package(|_| {});
    schema.install(&package);
    schema.run("CALL counter_setup('hot', NULL, NULL, 41)");
    let mut blocking = server.connect();
    blocking.query_drop("FLUSH TABLES WITH READ LOCK").expect("a lock");
    let mut scripts = vec!["create_procedures.sql"];
    // On MariaDB, DROP PROCEDURE waits for this lock without a limit.
    if server.is_mysql() {
        scripts.push("uninstall.sql");
    }
    thread::scope(|scope| {
        let (server, schema) = (&server, &schema.name);
        let package = &package;
        let start = |&name| scope.spawn(move || ends(server, schema, package, name));
        let running: Vec<_> = scripts.iter().map(start).collect();
        let end = Instant::now() + LONG;
        while !running.iter().all(thread::ScopedJoinHandle::is_finished) && Instant::now() < end {
            thread::sleep(Duration::from_millis(50));
        }
        blocking.query_drop("UNLOCK TABLES").expect("no lock");
    });
    schema.run("CALL counter_increment('hot')");
    assert_eq!(schema.first::<i64>("SELECT counter_get('hot')"), 42);
    for name in scripts {
        let said = schema.client().pipe(&[], &schema.file(&package, name));
        assert!(said.success, "{name}: {said:?}");
    }
}

/// MariaDB drops and replaces a routine that an open transaction has called.
fn scripts_wait_for_an_open_transaction_for_seconds(server: &Server) {
    let schema = server.schema();
    let package = package(|_| {});
    schema.install(&package);
    schema.run("CALL counter_setup('hot', NULL, 5, NULL)");
    // Each in a slot of its own, so that none waits for a row.
    let [mut open, mut other] = [0, 1].map(|slot| schema.connect_with_id(slot, 5));
    other.query_drop(format!("SET SESSION lock_wait_timeout = {}", LONG.as_secs())).expect("a time");
    open.query_drop("START TRANSACTION").expect("a transaction");
    open.query_drop("CALL counter_increment('hot')").expect("a call");
    let scripts = ["create_procedures.sql", "uninstall.sql"];
    for name in scripts {
        thread::scope(|scope| {
            let ended = scope.spawn(|| ends(server, &schema.name, &package, name));
            let mut called = Ok(());
            while !ended.is_finished() && called.is_ok() {
                called = other.query_drop("CALL counter_increment('hot')");
                thread::sleep(Duration::from_millis(50));
            }
            if called.is_err() {
                // Otherwise the script waits for it.
                open.query_drop("COMMIT").expect("a commit");
            }
            called.expect("a call beside a script");
        });
    }
    open.query_drop("COMMIT").expect("a commit");
    let left = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    for (name, routines) in scripts.into_iter().zip([package.routines().count(), 0]) {
        let said = schema.client().pipe(&[], &schema.file(&package, name));
        assert!(said.success, "{name}: {said:?}");
        assert_eq!(schema.first::<usize>(left), routines, "{name}");
    }
}

/// A server with named counters `hot` of 1,000 slots, 1,000 further counters, and 1,000 records with a roll-up. All have counts.
fn with_counts<'a>(server: &'a Server, named: &[Package]) -> Schema<'a> {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB;
         INSERT INTO articles (id) SELECT number FROM JSON_TABLE(CONCAT('[0', REPEAT(',0', 999), ']'), '$[*]' COLUMNS (number FOR ORDINALITY)) AS numbers",
    );
    let column = of_column("articles.views", "id BIGINT", |_| {});
    schema.install(&column);
    schema.run(&format!("INSERT INTO {} SELECT id, 0, id FROM articles", column.options.table));
    for package in named {
        schema.install(package);
        let (table, prefix) = (&package.options.table, package.options.prefix.name());
        schema.run(&format!("INSERT INTO {table} SELECT CONCAT('c', id), 1, NULL, NOW(), 1 FROM articles; CALL {prefix}setup('hot', NULL, 1000, 12345)"));
    }
    schema
}

/// The server has the smallest memory that it accepts for temporary tables. On MySQL, other sessions use it.
fn calls_are_exact_without_memory_for_temporary_tables(server: &Server) {
    let small: &[&str] = if server.is_mysql() {
        &["--temptable-max-ram=2097152", "--temptable-max-mmap=0", "--max-connections=200"]
    } else {
        &["--tmp-memory-table-size=0", "--max-heap-table-size=16384"]
    };
    let server = &server.another(small);
    let named = [package(|_| {}), bounded(|_| {})];
    let schema = with_counts(server, &named);
    let status = if server.is_mysql() { "TempTable_count_hit_max_ram" } else { "Created_tmp_disk_tables" };
    let on_disk = || schema.first::<(String, u64)>(&format!("SHOW GLOBAL STATUS LIKE '{status}'")).1;
    let others = if server.is_mysql() { use_temptable(&schema) } else { Vec::new() };
    let before = on_disk();
    for package in &named {
        let prefix = package.options.prefix.name();
        let is = |what: &str, wanted: i64| {
            let total: i64 = schema.first(&format!("SELECT {prefix}get('hot')"));
            let slots: i64 = schema.first(&format!("SELECT CAST(slots AS SIGNED) FROM {} WHERE counter_name = 'hot'", package.totals));
            assert_eq!((slots, total), (wanted, 12345), "{prefix}{what}");
        };
        is("setup", 1000);
        for slots in [2000, 1990] {
            schema.run(&format!("CALL {prefix}resize('hot', {slots})"));
            is("resize", slots);
        }
        schema.run(&format!("CALL {prefix}reset('hot', 7, FALSE)"));
        let sum = format!("SELECT CAST(SUM(counter) AS SIGNED) FROM {}", package.options.table);
        assert_eq!(schema.first::<i64>(&sum), 1000 + 7, "{prefix}");
    }
    let entries = Vec::from_iter((1..=1000).map(|id| format!("[{id},{id}]"))).join(",");
    schema.run(&format!("CALL articles_views_add_many('[{entries}]'); CALL articles_views_rollup(NULL)"));
    let (rows, exact): (u32, u32) = schema.first("SELECT COUNT(*), CAST(SUM(views = 2 * id) AS SIGNED) FROM articles");
    assert_eq!((rows, exact), (1000, 1000));
    assert!(on_disk() > before, "all temporary tables have been in memory");
    for id in others {
        server.connect().query_drop(format!("KILL {id}")).expect("a session");
    }
}

/// Sessions that use all memory of TempTable: a temporary table of each is in one of the blocks that sessions share.
fn use_temptable(schema: &Schema<'_>) -> Vec<u32> {
    let used = "SELECT COALESCE(SUM(CURRENT_NUMBER_OF_BYTES_USED), 0) FROM performance_schema.memory_summary_global_by_event_name
                 WHERE EVENT_NAME = 'memory/temptable/physical_ram'";
    schema.run("CREATE TABLE wide (id INT PRIMARY KEY, text VARCHAR(1000)) ENGINE = InnoDB; INSERT INTO wide SELECT id, REPEAT('x', 1000) FROM articles WHERE id <= 800");
    let ids = (0..4).map(|_| {
        let mut connection = schema.connect();
        let id = connection.connection_id();
        // Ends with its session.
        thread::spawn(move || connection.query_drop("SELECT SLEEP(600) FROM (SELECT id, text FROM wide LIMIT 800) AS copied WHERE id = 1"));
        id
    });
    let ids = ids.collect();
    let end = Instant::now() + Duration::from_secs(60);
    while schema.first::<u64>(used) < 2 << 20 {
        assert!(Instant::now() < end, "memory is left");
        thread::sleep(Duration::from_millis(20));
    }
    ids
}

/// A limit of MariaDB for temporary tables on the disk, which have no other place here.
fn calls_without_temporary_tables_change_nothing(server: &Server) {
    let server = &server.another(&["--tmp-memory-table-size=0"]);
    let named = [package(|_| {}), bounded(|_| {})];
    let schema = with_counts(server, &named);
    let state = || -> Vec<(String, i64, i64)> {
        let tables = ["counters", "bounded_counters"].map(|table| {
            format!("SELECT '{table}', COUNT(*), CAST(SUM(counter * (1 + CRC32(counter_name) % 9) * counter_id) AS SIGNED) FROM {table}")
        });
        let records = "SELECT 'records', COUNT(*), CAST(SUM(count * record) AS SIGNED) FROM (SELECT id AS record, count FROM articles_views) AS counts
                       UNION ALL SELECT 'articles', COUNT(*), SUM(views) FROM articles";
        schema.query(&format!("{} UNION ALL {} UNION ALL {records}", tables[0], tables[1]))
    };
    let before = state();
    let mut calls = vec!["CALL articles_views_rollup(NULL)".to_owned()];
    for package in &named {
        let prefix = package.options.prefix.name();
        calls.push(format!("CALL {prefix}resize('hot', 2000)"));
    }
    let mut connection = schema.connect();
    connection.query_drop("SET SESSION tmp_disk_table_size = 1024").expect("a limit");
    for call in calls {
        let result = connection.query_drop(&call);
        let shown = &call[..call.len().min(60)];
        assert!(matches!(&result, Err(mysql::Error::MySqlError(error)) if error.code == 1114), "{shown}: {result:?}");
        assert_eq!(state(), before, "{shown}");
    }
}
