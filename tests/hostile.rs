//! A schema whose owner plants names, types, values, views and statements for the administrator who runs the commands.

use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use slotted::install::compare::{State, states};
use slotted::package::Package;
use slotted::script;

use crate::support::{Module, Schema, Server, bounded, bounded_keyed, file, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_view_with_another_query_is_changed_and_replaced)
        .on_servers(a_planted_view_is_read_and_not_executed)
        .on_servers(status_names_the_routines_that_a_changed_table_stops)
        .on_servers(a_lost_table_is_not_replaced_by_an_empty_one_without_a_word)
        .on_servers(a_bounded_package_without_its_check_differs)
        .on_servers(a_table_of_two_packages_is_not_dropped)
        .on_servers(a_lost_column_of_counts_is_not_replaced_by_an_empty_one)
        .on_servers(status_prints_keys_as_sql_reads_them)
        .on_servers(any_table_and_any_view_is_read)
        .alone()
        .on_servers(what_is_planted_in_a_schema_is_quoted_in_every_statement);
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

/// The output of a command that ends with this exit code.
#[track_caller]
fn ends(schema: &Schema<'_>, code: i32, arguments: &[&str]) -> String {
    let output = slotted(schema, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", printed(&output));
    printed(&output)
}

fn state_of(schema: &Schema<'_>, package: &Package, name: &str) -> State {
    let states = states(&mut schema.connect(), package).expect("states");
    states.into_iter().find(|object| object.name.name() == name).expect("the object").state
}

/// A function that tells whether somebody has executed it.
fn spy(schema: &Schema<'_>) {
    schema.run("CREATE TABLE pwned_by (account VARCHAR(255)) ENGINE = InnoDB");
    let mut connection = schema.connect();
    connection
        .query_drop(
            "CREATE FUNCTION pwned() RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER
             BEGIN INSERT INTO pwned_by VALUES (CURRENT_USER()); RETURN 1; END",
        )
        .expect("a function");
}

fn a_view_with_another_query_is_changed_and_replaced(server: &Server) {
    let wanted = package(|_| {});
    let (schema, other) = (server.schema(), server.schema());
    for one in [&schema, &other] {
        ends(one, 0, &["install", "counters"]);
    }
    schema.run("CALL counter_setup('a', NULL, 3, 7)");
    let created: mysql::Row = schema.connect().query_first("SHOW CREATE VIEW counter_totals").expect("a view").expect("a row");
    let text: String = created.get(1).expect("its text");
    let text = text.replacen("CREATE", "CREATE OR REPLACE", 1);
    let total = "cast(sum(`counters`.`counter`) as signed)";
    assert!(text.contains(total), "{text}");
    let placeholder = "CREATE OR REPLACE VIEW counter_totals AS SELECT 1 AS counter_name, 1 AS description, 1 AS start_date, 1 AS slots, 1 AS total, 1 AS resize_incomplete";
    for change in [
        text.replace(total, "cast((2 * sum(`counters`.`counter`)) as signed)"),
        text.replace(total, "cast(max(`counters`.`counter`) as signed)"),
        text.replace(" group by", " where (`counters`.`counter` > 0) group by"),
        text.replace("from `counters`", &format!("from {}.`counters`", other.ident())).replace("`counters`.`", &format!("{}.`counters`.`", other.ident())),
        // What mysqldump creates first, and what stays if the restore stops.
        placeholder.to_owned(),
        placeholder.replace("1 AS total", "NULL AS total"),
    ] {
        schema.connect().query_drop(&change).unwrap_or_else(|error| panic!("{error}: {change}"));
        assert_eq!(state_of(&schema, &wanted, "counter_totals"), State::Changed(vec!["the query differs".into()]), "{change}");
        let status = ends(&schema, 1, &["status"]);
        assert!(status.contains("view counter_totals: changed: the query differs"), "{status}");
        assert!(ends(&schema, 0, &["install", "counters"]).contains("replace view counter_totals"));
        assert_eq!(state_of(&schema, &wanted, "counter_totals"), State::Same);
        assert_eq!(schema.first::<i64>("SELECT total FROM counter_totals"), 7);
    }
    let columns = "package, 1 AS key_columns, 1 AS slots, 1 AS default_slots, 1 AS pick, 1 AS table_name, 1 AS prefix, 1 AS collation_name, 1 AS security, 1 AS definer, 1 AS servers";
    for values in [format!("1 AS version, 1 AS {columns}, 1 AS arguments"), format!("NULL AS version, NULL AS {columns}, NULL AS arguments")] {
        schema.run(&format!("CREATE OR REPLACE VIEW counter_package AS SELECT {values}"));
        let found = ends(&schema, 2, &["status"]);
        assert!(found.contains("the view counter_package") && found.contains("name the package with its options"), "{found}");
        assert!(ends(&schema, 1, &["status", "counters"]).contains("view counter_package: changed: version"));
        ends(&schema, 0, &["install", "counters"]);
        ends(&schema, 0, &["status"]);
    }
}

fn a_planted_view_is_read_and_not_executed(server: &Server) {
    let schema = server.schema();
    spy(&schema);
    ends(&schema, 0, &["install", "counters"]);
    schema.run("CALL counter_setup('a', NULL, 3, 7)");
    let columns = "'counters' AS package, 'x' AS key_columns, '5' AS slots, 5 AS default_slots, 'connection' AS pick, 'planted' AS table_name, 'p_' AS prefix, 'counters' AS arguments";
    schema.run(&format!(
        "CREATE OR REPLACE SQL SECURITY INVOKER VIEW counter_totals AS
         SELECT counter_name, description, start_date, 1 AS slots, pwned() AS total, 0 AS resize_incomplete FROM counters;
         CREATE OR REPLACE SQL SECURITY INVOKER VIEW counter_package AS SELECT CONCAT('0.1.0', pwned()) AS version, {columns};
         CREATE SQL SECURITY INVOKER VIEW p_package AS SELECT '0.1.0' AS version, {columns};
         CREATE SQL SECURITY INVOKER VIEW planted AS SELECT CONCAT('x', pwned()) AS counter_name, 1 AS counter_id, NULL AS description, NOW() AS start_date, pwned() AS counter"
    ));
    for arguments in [
        &["status"][..],
        &["status", "counters"],
        &["status", "counters", "--table", "planted", "--prefix", "p_"],
        &["status", "--json"],
        &["advise", "--seconds", "0.3"],
        &["install", "counters", "--table", "planted", "--prefix", "p_"],
        &["uninstall", "counters", "--table", "planted", "--prefix", "p_", "--with-data", "--yes"],
        &["install", "counters"],
    ] {
        slotted(&schema, arguments);
    }
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM pwned_by"), 0);
    // The witness sees an execution.
    schema.run("DO pwned()");
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM pwned_by"), 1);
    // The view with the name of the table is not of a package.
    let status = ends(&schema, 1, &["status", "counters", "--table", "planted", "--prefix", "p_"]);
    assert!(status.contains("table planted: foreign"), "{status}");
}

fn status_names_the_routines_that_a_changed_table_stops(server: &Server) {
    let named = "CALL counter_setup('b', NULL, 3, 0)";
    let keyed_call = "CALL slotted_counter_increment(1, 2)";
    let list = |numbers: &str| format!("ALTER TABLE counters PARTITION BY LIST (counter_id) (PARTITION p VALUES IN ({numbers}))");
    for (kind, changes, call, error, said) in [
        ("counters", "ALTER TABLE counters ADD team INT NOT NULL".to_owned(), named, 1364, "the column `team` is NOT NULL without a default, so that counter_setup, counter_resize"),
        ("slotted_counters", "ALTER TABLE slotted_counters ADD team INT NOT NULL".to_owned(), keyed_call, 1364, "so that slotted_counter_increment, slotted_counter_add"),
        ("counters", list("1,2"), named, 1526, "so that counter_setup, counter_resize fail with error 1526"),
        ("counters", list("-5,-4,-3,-2,-1,1,2,3,4"), "CALL counter_setup('b', NULL, NULL, 0)", 1526, "fail with error 1526"),
        ("counters", "ALTER TABLE counters PARTITION BY RANGE (counter_id) (PARTITION p VALUES LESS THAN (3))".to_owned(), named, 1526, "LESS THAN MAXVALUE"),
        (
            "slotted_counters",
            "CREATE TABLE pages (id BIGINT PRIMARY KEY) ENGINE = InnoDB; ALTER TABLE slotted_counters ADD CONSTRAINT `to'page` FOREIGN KEY (record_id) REFERENCES pages (id)".to_owned(),
            keyed_call,
            1452,
            "the foreign key `to'page` refers to `pages`: slotted_counter_increment",
        ),
    ] {
        let schema = server.schema();
        ends(&schema, 0, &["install", kind]);
        if kind == "slotted_counters" && changes.contains("FOREIGN") {
            // MariaDB creates an index for the key, which needs the type of the column.
            schema.run("ALTER TABLE slotted_counters ADD KEY (record_id)");
        }
        schema.run(&changes);
        let status = ends(&schema, 1, &["status"]);
        assert!(status.contains(said) && status.contains("Run: ALTER TABLE"), "{changes}: {status}");
        assert!(!status.contains("To install what differs"), "{status}");
        let failed = schema.connect().query_drop(call);
        assert_eq!(crate::support::error_of(failed).0, error, "{changes}");
        // An upgrade is possible, and says it, too.
        assert!(ends(&schema, 0, &["install", kind]).contains(said), "{changes}");
    }
    for harmless in [
        "ALTER TABLE counters MODIFY counter BIGINT NOT NULL FIRST",
        "ALTER TABLE counters ADD team INT NOT NULL DEFAULT 7, ADD more ENUM('a') NOT NULL, ADD twice INT AS (counter * 2) VIRTUAL",
        "ALTER TABLE counters PARTITION BY KEY () PARTITIONS 3",
        "ALTER TABLE counters PARTITION BY LIST (counter_id) (PARTITION p VALUES IN (-5,-4,-3,-2,-1), PARTITION q VALUES IN (1,2,3,4,5))",
        "ALTER TABLE counters ADD team INT NOT NULL; CREATE TRIGGER filled BEFORE INSERT ON counters FOR EACH ROW SET NEW.team = 1",
    ] {
        // On MariaDB, a trigger cannot give the value (1364).
        if harmless.contains("TRIGGER") && !server.is_mysql() {
            continue;
        }
        let schema = server.schema();
        ends(&schema, 0, &["install", "counters"]);
        schema.run(harmless);
        assert_eq!(state_of(&schema, &package(|_| {}), "counters"), State::Same, "{harmless}");
        schema.run("CALL counter_setup('b', NULL, NULL, 0)");
    }
}

/// A column that is added in its place would have 0 in all rows.
/// Without the CHECK, a take succeeds although a negative slot makes the total too small.
fn a_bounded_package_without_its_check_differs(server: &Server) {
    for (bounded_package, column) in [(bounded(|_| {}), "counter"), (bounded_keyed(|_| {}), "`count`")] {
        let table = bounded_package.options.table.name().to_owned();
        let arguments = [bounded_package.options.kind.name(), "--bounded"];
        let [install, status] = ["install", "status"].map(|command| [&[command], &arguments[..]].concat());
        let drop = if server.is_mysql() { "DROP CHECK" } else { "DROP CONSTRAINT" };
        let mut changes = vec![format!("{drop} {table}_not_negative"), format!("{drop} {table}_not_negative, ADD CHECK ({column} >= -5)")];
        if server.is_mysql() {
            changes.push(format!("ALTER CHECK {table}_not_negative NOT ENFORCED"));
        }
        for change in changes {
            let schema = server.schema();
            ends(&schema, 0, &install);
            ends(&schema, 0, &status);
            schema.run(&format!("ALTER TABLE {table} {change}"));
            let script = schema.client().pipe(&[], &file(&bounded_package, "create_procedures.sql"));
            assert!(!script.success, "{script:?}");
            for said in [ends(&schema, 1, &status), ends(&schema, 2, &install), script.stderr] {
                let remedy = format!("Run: ALTER TABLE `{table}` ADD CHECK ({column} >= 0)");
                assert!(said.contains("has no CHECK that keeps slots from being negative") && said.contains(&remedy), "{said}");
            }
            schema.run(&format!("ALTER TABLE {table} ADD CHECK ({column} >= 0)"));
            ends(&schema, 0, &status);
            ends(&schema, 0, &install);
        }
    }
    let schema = server.schema();
    ends(&schema, 0, &["install", "counters"]);
    let said = ends(&schema, 2, &["install", "counters", "--bounded", "--table", "counters", "--prefix", "counter_"]);
    assert!(said.contains("has no CHECK that keeps slots from being negative"), "{said}");
}

fn a_table_of_two_packages_is_not_dropped(server: &Server) {
    let schema = server.schema();
    ends(&schema, 0, &["install", "counters"]);
    ends(&schema, 0, &["install", "counters", "--prefix", "other_"]);
    schema.run("CALL counter_setup('a', NULL, 3, 7)");
    let said = ends(&schema, 2, &["uninstall", "counters", "--prefix", "other_", "--with-data", "--yes"]);
    assert!(said.contains("the package of the view counter_package has the same table, counters; nothing has been changed"), "{said}");
    ends(&schema, 0, &["uninstall", "counters", "--prefix", "other_"]);
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 7);
    ends(&schema, 0, &["uninstall", "--with-data", "--yes"]);
}

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
        let script = schema.client().pipe(&[], &file(&script, "create_procedures.sql"));
        assert!(!script.success, "{script:?}");
        for said in [ends(&schema, 1, &["status"]), ends(&schema, 2, &["install", kind]), script.stderr] {
            assert!(said.contains(&format!("has no column {column} with the counts: it was renamed or dropped")), "{said}");
            assert!(!said.contains("ADD "), "{said}");
        }
        // The remedy.
        schema.run(&format!("ALTER TABLE {kind} RENAME COLUMN cnt TO {column}"));
        ends(&schema, 0, &["status"]);
        assert_eq!(schema.first::<u64>(&format!("SELECT SUM({column}) FROM {kind}")), 7);
    }
}

fn a_lost_table_is_not_replaced_by_an_empty_one_without_a_word(server: &Server) {
    let schema = server.schema();
    ends(&schema, 0, &["install", "counters"]);
    schema.run("CALL counter_setup('a', NULL, 3, 7); RENAME TABLE counters TO counters_old");
    let status = ends(&schema, 1, &["status"]);
    assert!(status.contains("table counters: missing") && status.contains("RENAME TABLE ... TO `counters`"), "{status}");
    assert!(!status.contains("To install what differs"), "{status}");
    let rejected = ends(&schema, 2, &["install", "counters"]);
    for text in ["nothing has been changed", "the table was renamed or dropped", "RENAME TABLE ... TO `counters`", "--new-table"] {
        assert!(rejected.contains(text), "{text}: {rejected}");
    }
    let tables: u64 = schema.first("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'counters'");
    assert_eq!(tables, 0);
    schema.run("RENAME TABLE counters_old TO counters");
    assert!(ends(&schema, 0, &["install", "counters"]).contains("nothing to do"));
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 7);
    schema.run("DROP TABLE counters");
    ends(&schema, 2, &["install", "counters"]);
    assert!(ends(&schema, 0, &["install", "counters", "--new-table"]).contains("create table counters"));
    schema.run("CALL counter_setup('a', NULL, 3, 1)");
}

fn status_prints_keys_as_sql_reads_them(server: &Server) {
    let schema = server.schema();
    ends(&schema, 0, &["install", "slotted_counters", "--key", "id BINARY(16), day DATE"]);
    schema.run(
        "INSERT INTO slotted_counters VALUES (0xff00fe80c0c1f5ff00c328a0a1e228a1, '2026-11-25', 3, 9223372036854775807),
                                             (0xff00fe80c0c1f5ff00c328a0a1e228a1, '2026-11-25', 4, -5);
         SET SESSION sql_mode = ''; INSERT INTO slotted_counters VALUES (0x00, '0000-00-00', 3, -9223372036854775808)",
    );
    let status = ends(&schema, 0, &["status"]);
    let key = "0xFF00FE80C0C1F5FF00C328A0A1E228A1, 2026-11-25";
    assert!(status.contains(key) && status.contains("9223372036854775802"), "{status}");
    assert!(status.contains("0x00000000000000000000000000000000, 0000-00-00") && status.contains("-9223372036854775808"), "{status}");
    let key: Vec<&str> = key.split(", ").collect();
    schema.run(&format!("CALL slotted_counter_reset({}, '{}', 41)", key[0], key[1]));
    assert_eq!(schema.first::<i64>("SELECT total FROM slotted_counter_totals WHERE day = '2026-11-25'"), 41);
}

/// Types with the values that are hard to read, as literals.
const TYPES: [(&str, &[&str]); 20] = [
    ("BIGINT", &["-9223372036854775808", "9223372036854775807", "0"]),
    ("BIGINT UNSIGNED", &["18446744073709551615"]),
    ("DECIMAL(65,30)", &["-99999999999999999999999999999999999.999999999999999999999999999999", "0.5"]),
    ("DOUBLE", &["-1.7976931348623157e308", "1e-320"]),
    ("BINARY(16)", &["0xff00fe80c0c1f5ff00c328a0a1e228a1"]),
    ("VARBINARY(40)", &["0xc328", "''", "0x00"]),
    ("VARCHAR(100) CHARACTER SET latin1", &["'caf\u{e9}'", "'=1+1'"]),
    ("VARCHAR(50) CHARACTER SET utf8mb4", &["'\u{1f600}\u{202e}'", "'it''s `b`\\n\\r\\0\\Z'", "''"]),
    ("VARCHAR(20) CHARACTER SET ucs2", &["'\u{4e2d}'"]),
    ("CHAR(10) CHARACTER SET utf16", &["'\u{1f600}'"]),
    ("LONGTEXT", &["REPEAT('x', 70000)"]),
    ("LONGBLOB", &["REPEAT(0xff, 70000)"]),
    ("DATE", &["'0000-00-00'", "'2026-02-00'", "'9999-12-31'"]),
    ("DATETIME(6)", &["'0000-00-00 00:00:00'", "'9999-12-31 23:59:59.999999'"]),
    ("TIMESTAMP NULL", &["NULL", "'1970-01-02 00:00:01'"]),
    ("TIME(3)", &["'-838:59:59'"]),
    ("YEAR", &["0", "2155"]),
    ("BIT(64)", &["0xffffffffffffffff", "0"]),
    ("ENUM('a','it''s')", &["'it''s'", "''"]),
    ("JSON", &["'{\"a\": [1, null]}'", "'null'"]),
];

/// Reads tables and views of random types under the names of the packages.
fn any_table_and_any_view_is_read(server: &Server) {
    for seed in 0..5 {
        let mut random = StdRng::seed_from_u64(seed);
        let schema = server.schema();
        ends(&schema, 0, &["install", "slotted_counters", "--prefix", "good_", "--table", "good", "--key", "name VARBINARY(100)"]);
        ends(&schema, 0, &["install", "counters", "--prefix", "n_", "--table", "n"]);
        let mut connection = schema.connect();
        connection.query_drop("SET sql_mode = '', NAMES utf8mb4").expect("a session");
        let mut table = |random: &mut StdRng, name: &str, columns: &[&str]| {
            let mut definitions = Vec::new();
            let mut values = Vec::new();
            for column in columns {
                if random.random_ratio(1, 12) {
                    continue;
                }
                let (kind, of_kind) = TYPES.choose(random).expect("a type");
                let key = random.random_ratio(1, 3) && !kind.contains("LONG") && !kind.contains("JSON");
                let null = if kind.contains("NULL") || random.random_ratio(1, 2) { "" } else { " NOT NULL" };
                definitions.push(format!("`{column}` {kind}{null}{}", if key { ", KEY (`@`)".replace('@', column) } else { String::new() }));
                values.push(of_kind.choose(random).expect("a value").to_string());
            }
            // A source can have a key of any type that can be one.
            let id = definitions.first().filter(|first| first.starts_with("`id`") && !["LONG", "JSON"].iter().any(|kind| first.contains(kind)));
            if id.is_some() && random.random_ratio(2, 3) {
                definitions.push("UNIQUE KEY (id)".into());
            }
            definitions.push("`\u{1b}[1m\nx``'` INT NOT NULL DEFAULT 1".into());
            let engine = ["InnoDB", "InnoDB", "MyISAM"].choose(random).expect("an engine");
            let create = format!("CREATE TABLE {name} ({}) ENGINE = {engine}", definitions.join(", "));
            connection.query_drop(&create).unwrap_or_else(|error| panic!("{error}: {create}"));
            let row = format!("INSERT IGNORE INTO {name} VALUES ({})", values.iter().map(String::as_str).chain(["2"]).collect::<Vec<_>>().join(", "));
            connection.query_drop(&row).unwrap_or_else(|error| panic!("{error}: {row}"));
        };
        table(&mut random, "counters", &["counter_name", "counter_id", "description", "start_date", "counter"]);
        table(&mut random, "slotted_counters", &["record_type", "record_id", "slot", "count"]);
        table(&mut random, "source", &["id", "hits", "name"]);
        let view = |random: &mut StdRng, name: &str, columns: &[&str]| {
            let mut value = |column: &&str| {
                let (_, values) = TYPES.choose(random).expect("a type");
                let value = match random.random_range(0..6) {
                    0 => "NULL".into(),
                    1 => "'counters'".to_owned(),
                    2 => "5".into(),
                    _ => values.choose(random).expect("a value").to_string(),
                };
                format!("{value} AS {column}")
            };
            let create = format!("CREATE VIEW {name} AS SELECT {}", columns.iter().map(&mut value).collect::<Vec<_>>().join(", "));
            schema.connect().query_drop(&create).unwrap_or_else(|error| panic!("{error}: {create}"));
        };
        view(&mut random, "counter_totals", &["counter_name", "description", "start_date", "slots", "total", "resize_incomplete"]);
        view(
            &mut random,
            "counter_package",
            &["version", "package", "key_columns", "slots", "default_slots", "pick", "table_name", "prefix", "collation_name", "security", "definer", "servers", "arguments"],
        );
        for arguments in [
            &["status"][..],
            &["status", "--json"],
            &["status", "counters"],
            &["status", "slotted_counters"],
            &["status", "good", "--help"],
            &["install", "counters"],
            &["install", "slotted_counters"],
            &["advise", "--seconds", "0.1"],
            &["uninstall", "counters"],
            // The views that describe no package are in the way of the others.
            &["uninstall", "counters", "--with-data", "--yes"],
        ] {
            let output = slotted(&schema, arguments);
            if arguments[0] == "uninstall" {
                schema.run("DROP VIEW IF EXISTS counter_package");
            }
            if arguments.contains(&"--json") && !output.stdout.is_empty() {
                serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|error| panic!("{seed}: {error}"));
            }
        }
    }
}

/// What is planted, between the characters that end a name, a text, a comment or a statement.
const ENDS: [&str; 16] = ["`", "'", "\"", "``", "\\'", "\\", "*/", "-- ", "#", ";", "\n", "=", "<b>", "|", "\u{1b}[31m", "\u{202e}"];

fn planted(end: &str) -> String {
    format!("x{end}; DO pwned() {end}y")
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

/// Whether a statement has what is planted outside of quotes. A server executes some comments.
fn executes(statement: &str) -> bool {
    script::pieces(statement).any(|piece| {
        if piece.starts_with(['`', '\'', '"']) {
            return false;
        }
        let executed = piece.strip_prefix("/*!").or_else(|| piece.strip_prefix("/*M!"));
        match executed.and_then(|text| text.strip_suffix("*/")) {
            Some(text) => executes(text),
            None => piece.contains("pwned"),
        }
    })
}

/// The general log of a server in its table, until the end of a promise.
struct GeneralLog<'a> {
    server: &'a Server,
    before: (String, u8),
}

impl<'a> GeneralLog<'a> {
    fn of(server: &'a Server) -> Self {
        let mut administrator = server.connect();
        let before = administrator.query_first("SELECT @@GLOBAL.log_output, @@GLOBAL.general_log").expect("settings").expect("a row");
        administrator.query_drop("SET GLOBAL log_output = 'TABLE', GLOBAL general_log = 1").expect("a log");
        Self { server, before }
    }
}

impl Drop for GeneralLog<'_> {
    fn drop(&mut self) {
        let (output, on) = &self.before;
        let _ = self.server.connect().query_drop(format!("SET GLOBAL general_log = {on}, GLOBAL log_output = '{output}'"));
    }
}

fn what_is_planted_in_a_schema_is_quoted_in_every_statement(server: &Server) {
    assert!(executes("SELECT 1; DO pwned()") && executes("SELECT 1 /* pwned */") && executes("/*!80000 DO pwned() */") && !executes("/*!80000 DO `pwned` */") && !executes("SELECT 'pwned()', `x``pwned`"));
    let name = format!("slotted_h`'\"; DO pwned() -- {}", std::process::id());
    let schema = Schema::named(server, &name, "");
    spy(&schema);
    let mut owner = schema.connect();
    let mut create = |statement: String| owner.query_drop(&statement).unwrap_or_else(|error| panic!("{error}: {statement}"));
    // 16 tables with rows, 16 views, 4 routines, 4 triggers.
    for end in ENDS {
        let name = planted(end);
        let (table, value) = (quoted(&name), text(&name));
        create(format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, {table} BIGINT NOT NULL, name VARCHAR(100) CHARACTER SET utf8mb4 NOT NULL, kind ENUM({value}) NOT NULL) ENGINE = InnoDB"
        ));
        create(format!("INSERT INTO {table} VALUES (1, 7, {value}, {value}), (2, 8, CONCAT('2', {value}), {value})"));
        create(format!(
            "CREATE VIEW {} AS SELECT {value} AS version, 'counters' AS package, {value} AS key_columns, {value} AS slots, 5 AS default_slots,
             {value} AS pick, {value} AS table_name, {value} AS prefix, {value} AS arguments",
            quoted(&format!("{name}package"))
        ));
    }
    for end in &ENDS[..4] {
        let name = planted(end);
        create(format!("CREATE PROCEDURE {} () COMMENT {} SELECT 1", quoted(&name), text(&name)));
        create(format!("CREATE TRIGGER {0} BEFORE UPDATE ON {0} FOR EACH ROW SET NEW.id = NEW.id", quoted(&name)));
    }
    let begin: String = schema.first("SELECT CAST(NOW(6) AS CHAR)");
    let log = GeneralLog::of(server);
    let mut attackers = Vec::new();

    // Options with such names, a key and a counter.
    let hostile_table = planted("`");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let options = ["--table", hostile_table.as_str(), "--prefix", "p'`; DO pwned() -- "];
    let new_options = ["--table", "t\"'`; DO pwned() -- z", "--prefix", "p'`; DO pwned() -- "];
    let generated = Command::new(env!("CARGO_BIN_EXE_slotted")).args(["generate", "counters"]).args(new_options).args(["--out", &path]).output().expect("slotted runs");
    assert_eq!(generated.status.code(), Some(0), "{}", printed(&generated));
    // A table of this name exists, and is not of the package.
    ends(&schema, 2, &[&["install", "counters"][..], &options].concat());
    ends(&schema, 0, &[&["install", "counters"][..], &new_options].concat());
    ends(&schema, 0, &["install", "slotted_counters", "--key", "`k``; DO pwned() -- z` VARCHAR(100)", "--prefix", "r`'; DO pwned() #"]);
    ends(&schema, 0, &["install", "counters", "--prefix", "n_"]);
    ends(&schema, 0, &[&["status", "counters"][..], &new_options].concat());
    ends(&schema, 2, &["status"]);
    for end in ENDS {
        let name = planted(end);
        let call = format!("CALL n_setup({}, {}, 5, 1)", text(&name), text(&name));
        owner.query_drop(&call).expect("a counter");
        attackers.push(owner.connection_id());
    }
    let status = ends(&schema, 0, &["status", "counters", "--prefix", "n_"]);
    assert!(status.contains("x\\u000a; DO pwned() \\u000ay") && status.contains("\\u001b[31m"), "{status}");
    let json = slotted(&schema, &["status", "counters", "--prefix", "n_", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["packages"][0]["counters"].as_array().map(Vec::len), Some(16), "{json:#}");
    for end in ENDS {
        owner.query_drop(format!("DROP VIEW {}", quoted(&format!("{}package", planted(end))))).expect("a view");
    }
    ends(&schema, 0, &["status"]);

    // Sessions that wait with planted conditions, names and values.
    let (stop, stopped) = mpsc::channel::<()>();
    let holder_name = planted("'");
    let mut holder = schema.connect();
    let table = quoted(&holder_name);
    holder.query_drop("START TRANSACTION").expect("a transaction");
    holder.query_drop(format!("UPDATE {table} SET {table} = {table} + 1 WHERE id = 1")).expect("a lock");
    // The rows of a table without a key are described by the condition of the statement, if they are by anything.
    schema.run("CREATE TABLE hits (id INT, name VARCHAR(100), n BIGINT) ENGINE = InnoDB; INSERT INTO hits VALUES (1, 'x', 0)");
    holder.query_drop("UPDATE hits SET n = n + 1").expect("a lock");
    attackers.push(holder.connection_id());
    let conditions = ["SLEEP(0) = 0 AND pwned() = 1", "pwned() = 1", "(@pwned := 1) = 1", "EXISTS (SELECT 1 FROM pwned_by) = 0", "name = 'x'' OR pwned() OR '''", "kind <> 'x\\' OR pwned() -- '"];
    let mut ids = Vec::new();
    thread::scope(|scope| {
        let of_keyed = conditions.map(|condition| format!("UPDATE {table} SET {table} = {table} + 1 WHERE id = 1 AND {condition}"));
        let of_keyless = conditions.map(|condition| format!("UPDATE hits SET n = n + 1 WHERE {}", condition.replace("kind", "name")));
        for statement in of_keyed.into_iter().chain(of_keyless) {
            let mut waiting = schema.connect();
            ids.push(waiting.connection_id());
            scope.spawn(move || {
                // It ends when the holder ends, and its transaction is not committed.
                let _ = waiting.query_drop("START TRANSACTION");
                let _ = waiting.query_drop(statement);
            });
        }
        let seen = |connection: &mut Conn| -> u64 {
            connection.query_first("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE 'UPDATE hits%'").expect("waits").unwrap_or_default()
        };
        let mut witness = schema.connect();
        ids.push(witness.connection_id());
        let until = Instant::now() + Duration::from_secs(20);
        while seen(&mut witness) < 4 && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        let before: u64 = schema.first("SELECT COUNT(*) FROM pwned_by");
        let advised = slotted(&schema, &["advise", "--seconds", "1"]);
        assert!(printed(&advised).contains("pwned"), "{}", printed(&advised));
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM pwned_by"), before, "the command executes no condition");
        drop(stop);
        let _ = stopped.recv();
        drop(holder);
    });
    attackers.extend(ids);
    ends(&schema, 0, &["bench", "counters", "--connections", "2", "--seconds", "0.1", "--rounds", "1"]);
    ends(&schema, 0, &["uninstall", "counters", "--prefix", "n_", "--with-data", "--yes"]);
    ends(&schema, 0, &[&["uninstall", "counters"][..], &new_options, &["--with-data", "--yes"]].concat());

    drop(log);
    let mut administrator = server.connect();
    attackers.push(schema.first("SELECT CONNECTION_ID()"));
    let own = attackers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let statements: Vec<Vec<u8>> = administrator
        .query(format!("SELECT argument FROM mysql.general_log WHERE event_time >= '{begin}' AND thread_id NOT IN ({own}) AND argument LIKE '%pwned%' AND command_type IN ('Query', 'Prepare', 'Execute')"))
        .expect("the log");
    assert!(statements.len() > 100, "{} statements", statements.len());
    for statement in &statements {
        let statement = String::from_utf8_lossy(statement);
        assert!(!executes(&statement), "{statement}");
    }
}
