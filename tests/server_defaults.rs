//! Commands and scripts on servers whose defaults are unusual. What they print is what another session sees.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::{Package, Slots};
use slotted::render;

use crate::advise::{printed, slotted};
use crate::support::{Module, Server, bounded, error_of, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .private()
        .on_families(commands_do_not_depend_on_the_defaults_of_the_server)
        .on_servers(scripts_do_not_depend_on_the_defaults_of_the_server)
        .on(|name| name.starts_with("mariadb"), resizes_without_memory_for_temporary_tables_are_exact_or_change_nothing)
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

/// A server with these defaults and the database `app`.
struct Unusual {
    server: Server,
    /// A session that keeps the usual defaults.
    other: Conn,
}

impl Unusual {
    fn of(server: &Server) -> Self {
        let server = server.another(&[]);
        let mut other = server.connect();
        for statement in ["CREATE DATABASE app", "USE app", "CREATE USER app, dba"] {
            other.query_drop(statement).expect(statement);
        }
        for default in DEFAULTS {
            other.query_drop(format!("SET GLOBAL {default}")).expect(default);
        }
        let of_family = if server.is_mysql() {
            "transaction_isolation = 'SERIALIZABLE', GLOBAL sql_require_primary_key = 1,
             GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE'"
        } else {
            "tx_isolation = 'SERIALIZABLE', GLOBAL sql_mode = 'ORACLE,NO_BACKSLASH_ESCAPES'"
        };
        other.query_drop(format!("SET GLOBAL {of_family}")).expect(of_family);
        Self { server, other }
    }

    /// Runs statements in the other session.
    fn run(&mut self, statements: &str) {
        self.other.query_drop(statements).expect(statements);
    }

    /// Asserts what the other session sees.
    fn sees(&mut self, query: &str, wanted: &str, said: &str) {
        let found: Option<String> = self.other.query_first(format!("SELECT CAST(({query}) AS CHAR)")).expect(query);
        assert_eq!(found.as_deref(), Some(wanted), "{query}: {said}");
    }

    /// Runs a command, and asserts its exit code and what the other session sees. Returns what the command printed.
    fn command(&mut self, arguments: &[&str], query: &str, wanted: &str) -> String {
        let output = slotted(&[arguments, &["--url", &self.server.url(), "--database", "app"]].concat());
        let said = printed(&output);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        self.sees(query, wanted, &said);
        said
    }

    /// Sources a script with the client of the server, and asserts that the settings of the session are the same after it, and what the
    /// other session sees.
    fn source(&mut self, package: &Package, name: &str, query: &str, wanted: &str) {
        let settings = "SELECT CONCAT_WS(' ', @@autocommit, @@character_set_client, @@character_set_connection, @@character_set_results, \
                        @@collation_connection, @@lock_wait_timeout, @@sql_big_selects, @@sql_mode, @@sql_safe_updates, @@sql_select_limit) AS settings;\n";
        let script = render::file(&package.clone().of_family(self.server.version.family), name);
        let script = format!(
            "SET NAMES latin1 COLLATE latin1_bin; SET character_set_results = NULL;\n{settings}{script}{settings}"
        );
        let said = self.server.client("app").pipe(&["--skip-column-names"], &script);
        assert!(said.success, "{name}: {said:?}");
        let lines: Vec<_> = said.stdout.lines().collect();
        assert_eq!(lines.first(), lines.last(), "{name}");
        assert!(lines.len() > 1 && lines[0].contains(" latin1 latin1 latin1_bin "), "{name}: {lines:?}");
        self.sees(query, wanted, name);
    }
}

const ROUTINES: &str = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'app' AND ROUTINE_NAME IN ('counter_get', 'counter_add')";
const TOTALS: &str = "SELECT CONCAT(slots, ' ', total) FROM counter_totals";

fn commands_do_not_depend_on_the_defaults_of_the_server(server: &Server) {
    let mut unusual = Unusual::of(server);
    unusual.command(&["install", "counters"], ROUTINES, "2");
    let again = unusual.command(&["install", "counters"], ROUTINES, "2");
    assert!(again.contains("nothing to do"), "{again}");
    // An upgrade keeps a privilege on a routine.
    unusual.run("GRANT EXECUTE ON PROCEDURE counter_add TO app");
    unusual.run("ALTER PROCEDURE counter_add COMMENT 'old'");
    let kept = "SELECT COUNT(*) FROM mysql.procs_priv AS granted JOIN information_schema.ROUTINES AS one ON one.ROUTINE_NAME = granted.Routine_name
                 WHERE one.ROUTINE_SCHEMA = 'app' AND one.ROUTINE_COMMENT <> 'old' AND granted.User = 'app'";
    unusual.command(&["install", "counters"], kept, "1");
    unusual.run("CALL counter_setup('hot', NULL, 20, 5)");
    unusual.command(&["status"], TOTALS, "20 5");
    unusual.run("CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB");
    unusual.run("INSERT INTO pages VALUES (1, 40)");
    unusual.command(&["install", "--column", "pages.views"], ROUTINES, "2");
    unusual.run("CALL pages_views_add(1, 2)");
    unusual.command(&["status", "--json"], "SELECT views FROM pages", "40");
    unusual.command(&["uninstall", "pages.views", "--with-data", "--yes"], "SELECT views FROM pages", "42");
    // The connections that open the load are idle for longer than wait_timeout.
    let bench = ["bench", "single-row", "counters", "--seconds", "2.5", "--rounds", "1", "--connections", "4"];
    unusual.command(
        &bench,
        "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'slotted_bench'",
        "0",
    );
    unusual.command(&["uninstall", "counters", "--with-data", "--yes"], ROUTINES, "0");
}

fn scripts_do_not_depend_on_the_defaults_of_the_server(server: &Server) {
    let [few, many] = [5, 20].map(|slots| {
        package(|options| {
            options.slots = Slots::Fixed(slots);
            options.definer = Some("slotted@localhost".parse().expect("an account"));
        })
    });
    let mut unusual = Unusual::of(server);
    unusual.source(&few, "setup.sql", ROUTINES, "2");
    unusual.source(&few, "accounts.sql", "SELECT COUNT(*) FROM mysql.user WHERE user = 'slotted'", "1");
    unusual.source(
        &few,
        "grants.sql",
        "SELECT COUNT(*) FROM mysql.procs_priv WHERE User = 'app' AND Routine_name IN ('counter_add', 'counter_get')",
        "2",
    );
    unusual.run("CALL counter_setup('hot', NULL, NULL, 42)");
    unusual.source(&many, "resize.sql", TOTALS, "20 42");
    unusual.source(&many, "create_procedures.sql", "SELECT arguments LIKE '% --slots 20 %' FROM counter_package", "1");
    let rows = "SELECT CONCAT(COUNT(DISTINCT counter_name), ' ', COUNT(*)) FROM counters";
    unusual.source(&many, "test_insertdata.sql", rows, "1501 30020");
    unusual.source(&many, "uninstall.sql", ROUTINES, "0");
    unusual.source(&keyed(|_| {}), "create_tables.sql", "SELECT COUNT(*) FROM slotted_counters", "0");
    unusual.source(&keyed(|_| {}), "create_procedures.sql", "SELECT slotted_counter_get(1, 7)", "0");
}

/// MariaDB drops and replaces a routine that an open transaction has called. It waits only for a lock of all tables.
fn scripts_wait_for_an_open_transaction_for_seconds(server: &Server) {
    let schema = server.schema();
    let package = package(|_| {});
    schema.install(&package);
    schema.run("CALL counter_setup('hot', NULL, 5, NULL)");
    // Each in a slot of its own, so that none waits for a row.
    let [mut open, mut other] = [0, 1].map(|slot| schema.connect_with_id(slot, 5));
    other.query_drop("SET SESSION lock_wait_timeout = 30").expect("a time");
    open.query_drop("START TRANSACTION").expect("a transaction");
    open.query_drop("CALL counter_increment('hot')").expect("a call");
    let scripts = ["create_procedures.sql", "uninstall.sql"];
    for name in scripts {
        let ended = AtomicBool::new(false);
        let called = thread::scope(|scope| {
            scope.spawn(|| {
                let begin = Instant::now();
                let said = schema.client().pipe(&[], &schema.file(&package, name));
                ended.store(true, SeqCst);
                assert!(!said.success && said.stderr.contains("ERROR 1205"), "{name}: {said:?}");
                // The default is a year. Ten times as long as the longest wait of a script and of a call behind it.
                let took = begin.elapsed();
                assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(30), "{name}: {took:?}");
            });
            while !ended.load(SeqCst) {
                let called = other.query_drop("CALL counter_increment('hot')");
                if called.is_err() {
                    // Otherwise the script waits for it.
                    open.query_drop("COMMIT").expect("a commit");
                    return called;
                }
                thread::sleep(Duration::from_millis(50));
            }
            Ok(())
        });
        called.expect("a call beside a script");
    }
    open.query_drop("COMMIT").expect("a commit");
    for name in scripts {
        let said = schema.client().pipe(&[], &schema.file(&package, name));
        assert!(said.success, "{name}: {said:?}");
    }
}

/// The temporary tables are on the disk. With a limit for those, which have no other place, calls fail.
fn resizes_without_memory_for_temporary_tables_are_exact_or_change_nothing(server: &Server) {
    let server = &server.another(&["--tmp-memory-table-size=0"]);
    let schema = server.schema();
    for package in [package(|_| {}), bounded(|_| {})] {
        schema.install(&package);
        let (table, prefix) = (&package.options.table, package.options.prefix.name());
        schema.run(&format!("CALL {prefix}setup('hot', NULL, 1000, 12345)"));
        let slots =
            || schema.first::<(u64, i64)>(&format!("SELECT COUNT(*), CAST(SUM(counter) AS SIGNED) FROM {table}"));
        for slots_wanted in [2000, 1990] {
            schema.run(&format!("CALL {prefix}resize('hot', {slots_wanted})"));
            assert_eq!(slots(), (slots_wanted, 12345), "{prefix}");
        }
        let before = schema.rows(table);
        let mut connection = schema.connect();
        connection.query_drop("SET SESSION tmp_disk_table_size = 1024").expect("a limit");
        assert_eq!(error_of(connection.query_drop(format!("CALL {prefix}resize('hot', 3000)"))).0, 1114, "{prefix}");
        assert!(schema.rows(table) == before, "{prefix}");
    }
}
