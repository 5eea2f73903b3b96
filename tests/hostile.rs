//! A schema whose owner plants views, routines, triggers and tables for the administrator who runs the commands.

use std::process::{Command, Output, Stdio};

use mysql::prelude::Queryable;

use crate::support::{Module, Schema, Server, bounded, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_families(a_lost_table_is_not_replaced_by_an_empty_one)
        .on_families(a_bounded_package_without_its_check_differs)
        .on_families(a_table_of_two_packages_is_not_dropped)
        .on_families(a_lost_column_of_counts_is_not_replaced_by_an_empty_one)
        .on_families(status_prints_the_bytes_of_keys)
        .private()
        .on_families(nothing_that_is_planted_in_a_schema_is_executed);
}

/// The tool in a database, as the administrator.
fn slotted(schema: &Schema<'_>, arguments: &[&str]) -> Output {
    let command = arguments[0];
    let mut all = vec![command, "--url"];
    let url = schema.server.url();
    all.extend([url.as_str(), "--database", &schema.name]);
    all.extend(&arguments[1..]);
    let output = Command::new(env!("CARGO_BIN_EXE_slotted")).args(&all).stdin(Stdio::null()).output().expect("slotted runs");
    let text = printed(&output);
    assert!(matches!(output.status.code(), Some(0..=2)), "{arguments:?}: {text}");
    assert!(!text.contains("panicked"), "{arguments:?}: {text}");
    // What a terminal executes: control characters, and those that change the direction.
    let executed = |c: char| c.is_control() && c != '\n' && c != '\t' || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.contains(executed), "{arguments:?}: {text:?}");
    output
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn ends(schema: &Schema<'_>, code: i32, arguments: &[&str]) -> String {
    let output = slotted(schema, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", printed(&output));
    printed(&output)
}

/// A function that tells whether somebody has executed it, even in a transaction that was rolled back.
fn spy(schema: &Schema<'_>) {
    schema.run("CREATE TABLE pwned_by (account VARCHAR(255)) ENGINE = MyISAM");
    let mut connection = schema.connect();
    connection
        .query_drop(
            "CREATE FUNCTION pwned() RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER
             BEGIN INSERT INTO pwned_by VALUES (CURRENT_USER()); RETURN 1; END",
        )
        .expect("a function");
}

/// The table of the function and the general log of the server are the witnesses.
fn nothing_that_is_planted_in_a_schema_is_executed(server: &Server) {
    let server = server.another(&["--log-bin-trust-function-creators=1", "--log-output=TABLE"]);
    let totals = "counter_name, description, start_date, 1 AS slots, pwned() AS total FROM counters";
    let package = "pwned() AS version, 'counters' AS arguments";
    for plant in [
        format!("CREATE OR REPLACE SQL SECURITY INVOKER VIEW counter_totals AS SELECT {totals}"),
        format!("CREATE OR REPLACE SQL SECURITY INVOKER VIEW counter_package AS SELECT {package}"),
        format!("CREATE SQL SECURITY INVOKER VIEW p_package AS SELECT {package}"),
        "CREATE TRIGGER planted BEFORE INSERT ON counters FOR EACH ROW SET NEW.description = pwned()".to_owned(),
        "CREATE TRIGGER planted BEFORE UPDATE ON articles FOR EACH ROW SET NEW.views = NEW.views + 0 * pwned()".to_owned(),
        "DROP PROCEDURE counter_increment; CREATE PROCEDURE counter_increment(p_name TEXT) SQL SECURITY INVOKER DO pwned()".to_owned(),
        "DROP PROCEDURE _counter_must_exist; CREATE PROCEDURE _counter_must_exist(a TEXT, b TEXT) SQL SECURITY INVOKER DO pwned()".to_owned(),
        "DROP FUNCTION counter_get; CREATE FUNCTION counter_get(p_name TEXT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER RETURN pwned()".to_owned(),
        "DROP PROCEDURE articles_views_rollup; CREATE PROCEDURE articles_views_rollup(p_records INT) SQL SECURITY INVOKER DO pwned()".to_owned(),
        "DROP PROCEDURE _articles_views_move; CREATE PROCEDURE _articles_views_move(a INT, b INT, c INT, d INT) SQL SECURITY INVOKER DO pwned()".to_owned(),
        "RENAME TABLE counters TO hidden; CREATE SQL SECURITY INVOKER VIEW counters AS SELECT counter_name, counter_id, description, start_date, pwned() AS counter FROM hidden".to_owned(),
    ] {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5)");
        spy(&schema);
        for install in [&["install", "counters"][..], &["install", "--column", "articles.views"]] {
            ends(&schema, 0, install);
        }
        schema.run(&plant);
        let mut root = server.connect();
        root.query_drop("SET GLOBAL general_log = 1").expect("a log");
        for arguments in [
            &["status"][..],
            &["status", "counters", "--json"],
            // Before the installation replaces the routines.
            &["uninstall", "articles.views"],
            &["install", "counters", "--dry-run"],
            &["install", "counters"],
            &["install", "--column", "articles.views"],
            &["status"],
            &["uninstall", "counters", "--with-data", "--yes"],
        ] {
            slotted(&schema, arguments);
        }
        root.query_drop("SET GLOBAL general_log = 0").expect("no log");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM pwned_by"), 0, "{plant}");
        let logged: Vec<Vec<u8>> = root.query("SELECT argument FROM mysql.general_log WHERE argument LIKE '%pwned%' OR argument LIKE '%SELECT%FROM%p_package%'").expect("the log");
        let logged: Vec<_> = logged.iter().map(|statement| String::from_utf8_lossy(statement)).collect();
        assert!(logged.iter().all(|statement| statement.starts_with("SELECT argument")), "{plant}: {logged:#?}");
        root.query_drop("TRUNCATE mysql.general_log").expect("an empty log");
        // The witness sees an execution.
        schema.run("DO pwned()");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM pwned_by"), 1);
    }
}

/// Without the CHECK, a take succeeds although a negative slot makes the total too small.
fn a_bounded_package_without_its_check_differs(server: &Server) {
    let (package, table) = (bounded(|_| {}), "bounded_counters");
    let query = "SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = DATABASE() AND CONSTRAINT_TYPE = 'CHECK'";
    let drop = if server.is_mysql() { "DROP CHECK" } else { "DROP CONSTRAINT" };
    let mut changes = vec![format!("{drop} NAME"), format!("{drop} NAME, ADD CHECK (counter >= -5)")];
    if server.is_mysql() {
        changes.push("ALTER CHECK NAME NOT ENFORCED".into());
    }
    for change in changes {
        let schema = server.schema();
        ends(&schema, 0, &["install", table]);
        ends(&schema, 0, &["status"]);
        let name: String = schema.first(query);
        schema.run(&format!("ALTER TABLE {table} {}", change.replace("NAME", &format!("`{name}`"))));
        let script = schema.client().pipe(&[], &schema.file(&package, "create_procedures.sql"));
        assert!(!script.success && script.stderr.contains("ERROR 30022"), "{script:?}");
        for said in [ends(&schema, 1, &["status"]), ends(&schema, 2, &["install", table]), script.stderr] {
            assert!(said.contains("differs: ") && said.contains("SHOW CREATE TABLE"), "{said}");
        }
    }
    let schema = server.schema();
    ends(&schema, 0, &["install", "counters"]);
    let said = ends(&schema, 2, &["install", table, "--table", "counters", "--prefix", "counter_"]);
    assert!(said.contains("the table is missing or differs"), "{said}");
}

/// The names of the packages are those of their tables: one has to be dropped from its view.
fn a_table_of_two_packages_is_not_dropped(server: &Server) {
    let schema = server.schema();
    ends(&schema, 0, &["install", "counters"]);
    ends(&schema, 0, &["install", "counters", "--prefix", "other_"]);
    schema.run("CALL counter_setup('a', NULL, 3, 7)");
    let said = ends(&schema, 2, &["uninstall", "other_package", "--with-data", "--yes"]);
    assert!(said.contains("the package of the view counter_package has the same table, counters; nothing has been changed"), "{said}");
    ends(&schema, 0, &["uninstall", "other_package"]);
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 7);
    ends(&schema, 0, &["uninstall", "--with-data", "--yes"]);
}

/// A column that is added in its place would have 0 in all rows.
fn a_lost_column_of_counts_is_not_replaced_by_an_empty_one(server: &Server) {
    for (kind, column, total) in [
        ("counters", "counter", "CALL counter_setup('a', NULL, 3, 7)"),
        ("slotted_counters", "`count`", "CALL slotted_counter_add(1, 1, 7)"),
    ] {
        let schema = server.schema();
        ends(&schema, 0, &["install", kind]);
        schema.run(total);
        schema.run(&format!("ALTER TABLE {kind} RENAME COLUMN {column} TO cnt"));
        let script = if kind == "counters" { package(|_| {}) } else { keyed(|_| {}) };
        let script = schema.client().pipe(&[], &schema.file(&script, "create_procedures.sql"));
        assert!(!script.success, "{script:?}");
        for said in [ends(&schema, 1, &["status"]), ends(&schema, 2, &["install", kind]), script.stderr] {
            assert!(said.contains("differs: ") && !said.contains("ADD "), "{said}");
        }
        // The remedy.
        schema.run(&format!("ALTER TABLE {kind} RENAME COLUMN cnt TO {column}"));
        ends(&schema, 0, &["status"]);
        assert_eq!(schema.first::<u64>(&format!("SELECT SUM({column}) FROM {kind}")), 7);
    }
}

fn a_lost_table_is_not_replaced_by_an_empty_one(server: &Server) {
    let schema = server.schema();
    ends(&schema, 0, &["install", "counters"]);
    schema.run("CALL counter_setup('a', NULL, 3, 7); RENAME TABLE counters TO counters_old");
    assert!(ends(&schema, 1, &["status"]).contains("table counters: missing"));
    for arguments in [&["install", "counters"][..], &["install", "counters", "--dry-run"]] {
        let rejected = ends(&schema, 2, arguments);
        for text in ["the table was renamed or dropped", "nothing has been changed", "RENAME TABLE ... TO counters"] {
            assert!(rejected.contains(text), "{text}: {rejected}");
        }
    }
    let tables = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'counters'";
    assert_eq!(schema.first::<u64>(tables), 0);
    schema.run("RENAME TABLE counters_old TO counters");
    assert!(ends(&schema, 0, &["install", "counters"]).contains("nothing to do"));
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 7);
    // The way to an empty table, with and without a roll-up.
    schema.run("DROP TABLE counters; CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    ends(&schema, 0, &["uninstall"]);
    ends(&schema, 0, &["install", "counters"]);
    ends(&schema, 0, &["install", "--column", "articles.views"]);
    schema.run("DROP TABLE articles_views");
    ends(&schema, 0, &["uninstall", "articles.views"]);
    ends(&schema, 0, &["install", "--column", "articles.views"]);
    ends(&schema, 0, &["status"]);
}

fn status_prints_the_bytes_of_keys(server: &Server) {
    let schema = server.schema();
    ends(&schema, 0, &["install", "slotted_counters", "--key", "id BINARY(16), day DATE"]);
    schema.run(
        "INSERT INTO slotted_counters VALUES (0xff00fe80c0c1f5ff00c328a0a1e228a1, '2026-11-25', 3, 9223372036854775807),
                                             (0xff00fe80c0c1f5ff00c328a0a1e228a1, '2026-11-25', 4, -5);
         SET SESSION sql_mode = ''; INSERT INTO slotted_counters VALUES (0x00, '0000-00-00', 3, -9223372036854775808)",
    );
    let status = ends(&schema, 0, &["status"]);
    for text in ["0xFF00FE80C0C1F5FF00C328A0A1E228A1, 2026-11-25", "9223372036854775802", "0x00000000000000000000000000000000, 0000-00-00"] {
        assert!(status.contains(text), "{text}: {status}");
    }
    // A terminal would execute what a name contains.
    ends(&schema, 0, &["install", "counters"]);
    schema.run("CALL counter_setup('x\u{1b}[31m\n\u{202e}y', NULL, NULL, 1)");
    assert!(ends(&schema, 0, &["status", "counters"]).contains("x\\u001b[31m\\u000a\\u202ey"));
}
