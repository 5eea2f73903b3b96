//! Commands and scripts on servers whose defaults are unusual. What they print is what another session sees.

use mysql::Row;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .private()
        .on_families(commands_do_not_depend_on_the_defaults_of_the_server)
        .on_servers(scripts_do_not_depend_on_the_defaults_of_the_server)
        .on(|name| name.starts_with("mariadb"), names_in_lower_case_are_those_of_the_package)
        .on(|name| name.starts_with("mariadb"), resizes_without_memory_for_temporary_tables_are_exact_or_change_nothing)
        .waits()
        .on(|name| name.starts_with("mysql"), scripts_wait_for_an_open_transaction_for_seconds);
}

/// The defaults of new sessions. The limits, of the client with --safe-updates, come last: they apply to statements that set others.
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

/// A schema on a server with these defaults. Its session that queries share is older than they are, and keeps the usual ones.
fn unusual(server: &Server) -> Schema<'_> {
    let schema = Schema::named(server, "app", "");
    run(&schema, "CREATE USER app, dba");
    DEFAULTS.iter().for_each(|default| run(&schema, &format!("SET GLOBAL {default}")));
    let of_family = if server.is_mysql() {
        "transaction_isolation = 'SERIALIZABLE', GLOBAL sql_require_primary_key = 1,
         GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE'"
    } else {
        "tx_isolation = 'SERIALIZABLE', GLOBAL sql_mode = 'ORACLE,NO_BACKSLASH_ESCAPES'"
    };
    run(&schema, &format!("SET GLOBAL {of_family}"));
    schema
}

/// Runs a statement in the session with the usual defaults.
fn run(schema: &Schema<'_>, statement: &str) {
    schema.query::<Row>(statement);
}

/// Asserts what the session with the usual defaults sees after a command or script.
fn sees(schema: &Schema<'_>, query: &str, wanted: &str, said: &str) {
    let found: String = schema.first(&format!("SELECT CAST(({query}) AS CHAR)"));
    assert_eq!(found, wanted, "{query}: {said}");
}

const ROUTINES: &str = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'app' AND ROUTINE_NAME IN ('counter_get', 'counter_add')";
const TOTALS: &str = "SELECT CONCAT(slots, ' ', total) FROM counter_totals";

fn commands_do_not_depend_on_the_defaults_of_the_server(server: &Server) {
    let server = server.another(&[]);
    let schema = unusual(&server);
    let command = |words: &str, query: &str, wanted: &str| sees(&schema, query, wanted, &ends(&schema, 0, words));
    command("install counters", ROUTINES, "2");
    has(&ends(&schema, 0, "install counters"), &["nothing to do"]);
    // An upgrade keeps a privilege on a routine.
    run(&schema, "GRANT EXECUTE ON PROCEDURE counter_add TO app");
    run(&schema, "ALTER PROCEDURE counter_add COMMENT 'old'");
    let kept = "SELECT COUNT(*) FROM mysql.procs_priv AS granted JOIN information_schema.ROUTINES AS one ON one.ROUTINE_NAME = granted.Routine_name
                 WHERE one.ROUTINE_SCHEMA = 'app' AND one.ROUTINE_COMMENT <> 'old' AND granted.User = 'app'";
    command("install counters", kept, "1");
    run(&schema, "CALL counter_setup('hot', NULL, 20, 5)");
    command("status", TOTALS, "20 5");
    run(&schema, "CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB");
    run(&schema, "INSERT INTO pages VALUES (1, 40)");
    command("install --column pages.views", ROUTINES, "2");
    run(&schema, "CALL pages_views_add(1, 2)");
    command("status --json", "SELECT views FROM pages", "40");
    command("uninstall pages.views --with-data --yes", "SELECT views FROM pages", "42");
    // The connections that open the load are idle for longer than wait_timeout.
    let bench = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'slotted_bench'";
    command("bench single-row counters --seconds 2.5 --rounds 1 --connections 4", bench, "0");
    command("uninstall counters --with-data --yes", ROUTINES, "0");
}

/// With this setting, which MySQL takes from the first start, the server stores the names of tables and views in lower case, and finds them in any.
fn names_in_lower_case_are_those_of_the_package(server: &Server) {
    let server = server.another(&["--lower-case-table-names=1"]);
    let schema = server.schema();
    schema.run("CREATE TABLE Articles (Id INT PRIMARY KEY, Views INT NOT NULL)");
    for words in [
        "install counters --table Hits --prefix Hit_",
        "install slotted_counters --prefix S_",
        "install --column Articles.Views",
    ] {
        ends(&schema, 0, words);
        ends(&schema, 0, "status");
        has(&ends(&schema, 0, words), &["nothing to do"]);
    }
    for words in ["status Hits", "uninstall Hits", "uninstall Articles.Views --with-data --yes"] {
        ends(&schema, 0, words);
    }
}

/// By the client of the server. The settings of its session are the same after a script.
fn scripts_do_not_depend_on_the_defaults_of_the_server(server: &Server) {
    let [few, many] = [5, 20].map(|slots| {
        package(|options| {
            options.subject.set_slots(slots);
            as_slotted(options);
        })
    });
    let records = keyed(|_| {});
    let server = server.another(&[]);
    let schema = unusual(&server);
    let settings = "SELECT CONCAT_WS(' ', @@autocommit, @@character_set_client, @@character_set_connection, @@character_set_results,
                    @@collation_connection, @@lock_wait_timeout, @@sql_big_selects, @@sql_mode, @@sql_safe_updates, @@sql_select_limit) AS settings;";
    let granted =
        "SELECT COUNT(*) FROM mysql.procs_priv WHERE User = 'app' AND Routine_name IN ('counter_add', 'counter_get')";
    let counted = "SELECT CONCAT(COUNT(DISTINCT counter_name), ' ', COUNT(*)) FROM counters";
    for (package, name, query, wanted) in [
        (&few, "setup.sql", ROUTINES, "2"),
        (&few, "accounts.sql", "SELECT COUNT(*) FROM mysql.user WHERE user = 'slotted'", "1"),
        (&few, "grants.sql", granted, "2"),
        (&many, "create_procedures.sql", "SELECT options LIKE '%[\"slots\",\"20\"]%' FROM counter_package", "1"),
        (&many, "test_insertdata.sql", counted, "1501 30005"),
        (&many, "uninstall.sql", ROUTINES, "0"),
        (&records, "create_tables.sql", "SELECT COUNT(*) FROM slotted_counters", "0"),
        (&records, "create_procedures.sql", "SELECT slotted_counter_get(1, 7)", "0"),
    ] {
        let names = "SET NAMES latin1 COLLATE latin1_bin; SET character_set_results = NULL;";
        let script = format!("{names}\n{settings}\n{}{settings}\n", schema.file(package, name));
        let said = schema.client().pipe(&["--skip-column-names"], &script);
        assert!(said.success, "{name}: {said:?}");
        let lines: Vec<_> = said.stdout.lines().collect();
        assert!(lines.len() > 1 && lines.first() == lines.last(), "{name}: {lines:?}");
        has(lines[0], &[" latin1 latin1 latin1_bin "]);
        sees(&schema, query, wanted, name);
        if name == "grants.sql" {
            run(&schema, "CALL counter_setup('hot', NULL, NULL, 42)");
        }
    }
}

/// MariaDB drops and replaces a routine that an open transaction has called. It waits only for a lock of all tables.
fn scripts_wait_for_an_open_transaction_for_seconds(server: &Server) {
    let (schema, package) = (server.schema(), package(|_| {}));
    schema.install(&package);
    schema.run("CALL counter_setup('hot', NULL, 5, NULL)");
    let mut other = schema.connect_with_id(1, 5);
    other.query_drop("SET SESSION lock_wait_timeout = 30").expect("a time");
    for name in ["create_procedures.sql", "uninstall.sql"] {
        let source = || schema.client().pipe(&[], &schema.file(&package, name));
        let (said, took) = thread::scope(|scope| {
            // In another slot, so that none waits for a row. It ends also if a call fails, so that the script does.
            let mut open = schema.connect_with_id(0, 5);
            run_all(&mut open, &["START TRANSACTION", "CALL counter_increment('hot')"]).expect("an increment");
            let begin = Instant::now();
            let script = scope.spawn(source);
            while !script.is_finished() {
                other.query_drop("CALL counter_increment('hot')").expect("a call during a script");
                thread::sleep(Duration::from_millis(50));
            }
            (script.join().expect("the client runs"), begin.elapsed())
        });
        assert!(!said.success && said.stderr.contains("ERROR 1205"), "{name}: {said:?}");
        // The default is a year. Ten times as long as the longest wait of a script and of a call behind it.
        assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(30), "{name}: {took:?}");
        let said = source();
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
        for slots in [2000, 1990] {
            schema.run(&format!("CALL {prefix}resize('hot', {slots})"));
            let found = format!("SELECT COUNT(*), CAST(SUM(counter) AS SIGNED) FROM {table}");
            assert_eq!(schema.first::<(u64, i64)>(&found), (slots, 12345), "{prefix}");
        }
        let before = schema.rows(table);
        let mut connection = schema.connect();
        connection.query_drop("SET SESSION tmp_disk_table_size = 1024").expect("a limit");
        assert_eq!(error_of(connection.query_drop(format!("CALL {prefix}resize('hot', 3000)"))).0, 1114, "{prefix}");
        assert!(schema.rows(table) == before, "{prefix}");
    }
}
