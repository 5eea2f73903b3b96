//! Commands on servers whose defaults are unusual. What a command prints is what another session sees.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::advise::{printed, slotted};
use crate::support::{Module, Server};

pub fn promises(mut module: Module<'_>) {
    module
        .private()
        .on_servers(commands_do_not_depend_on_the_defaults_of_the_server);
}

/// The defaults of new sessions. The limits come last, because they apply to the statements that set the others.
const DEFAULTS: [&str; 8] = [
    "autocommit = 0",
    "completion_type = 'RELEASE'",
    "wait_timeout = 3",
    "foreign_key_checks = 0",
    "max_join_size = 1",
    "sql_select_limit = 1",
    "sql_safe_updates = 1",
    "sql_auto_is_null = 1",
];

fn commands_do_not_depend_on_the_defaults_of_the_server(server: &Server) {
    let modes: &[&str] = if !server.is_mysql() {
        &["ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE", "ORACLE"]
    } else {
        &["ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE"]
    };
    for mode in modes {
        let server = server.another(&[]);
        // This session keeps the usual defaults.
        let mut other = server.connect();
        let isolation = if server.is_mysql() { "transaction_isolation" } else { "tx_isolation" };
        for statement in ["CREATE DATABASE app", "USE app"] {
            other.query_drop(statement).expect(statement);
        }
        for default in DEFAULTS {
            other.query_drop(format!("SET GLOBAL {default}")).expect(default);
        }
        other.query_drop(format!("SET GLOBAL {isolation} = 'SERIALIZABLE', GLOBAL sql_mode = '{mode}'")).expect(mode);
        let url = server.url();
        let run = |other: &mut Conn, arguments: &[&str], query: &str, wanted: &str| {
            let output = slotted(&[arguments, &["--url", &url, "--database", "app"]].concat());
            assert_eq!(output.status.code(), Some(0), "{mode}, {arguments:?}: {}", printed(&output));
            let found: Option<String> = other.query_first(format!("SELECT CAST(({query}) AS CHAR)")).expect(query);
            assert_eq!(found.as_deref(), Some(wanted), "{mode}, {arguments:?}: {}", printed(&output));
            printed(&output)
        };
        let slots = "SELECT CONCAT(slots, ' ', total) FROM counter_totals";
        let installed = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'app' AND ROUTINE_NAME = 'counter_get'";
        run(&mut other, &["install", "counters"], installed, "1");
        let again = run(&mut other, &["install", "counters"], installed, "1");
        assert!(again.contains("nothing to do"), "{mode}: {again}");
        other.query_drop("CALL counter_setup('hot', NULL, 20, 5)").expect("a counter");
        let said = run(&mut other, &["resize", "hot", "7"], slots, "7 5");
        assert!(said.contains("after:  7 slots, total 5\n"), "{mode}: {said}");
        run(&mut other, &["reset", "hot", "--value", "-2"], slots, "7 -2");
        run(&mut other, &["status"], slots, "7 -2");
        other.query_drop("CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB").expect("a table");
        other.query_drop("INSERT INTO pages VALUES (1, 40), (2, 50)").expect("rows");
        let adopt = ["adopt", "--from", "pages.views"];
        run(&mut other, &adopt, "SELECT GROUP_CONCAT(total ORDER BY total) FROM counter_totals", "-2,40,50");
        run(&mut other, &["delete", "hot", "--yes"], "SELECT COUNT(DISTINCT counter_name) FROM counters", "2");
        let bench = ["bench", "--contenders", "single-row,counters", "--seconds", "0.2", "--rounds", "1", "--connections", "4"];
        run(&mut other, &bench, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'slotted_bench'", "0");
        run(&mut other, &["uninstall", "counters", "--with-data", "--yes"], installed, "0");
    }
}
