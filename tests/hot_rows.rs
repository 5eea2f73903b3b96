//! `slotted advise` finds rows that any statement makes hot, by keys of any type, and its commands move their counts.

use std::process::Command;
use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;
use serde_json::Value;

use crate::advise::{advised_in, printed, slotted, under_load, url};
use crate::support::{Module, Schema, Server, package};

pub fn promises(mut module: Module<'_>) {
    module
        .alone()
        .on_families(a_key_of_any_type_becomes_a_condition_that_finds_its_row)
        .on_families(names_of_counters_differ_if_the_rows_differ)
        .on_families(many_hot_rows_of_a_table_become_records)
        .on_families(a_statement_that_is_not_known_to_count_is_reported)
        .on_families(a_hot_table_without_row_locks_is_reported)
        .private()
        .on(|server| server.starts_with("mysql"), without_performance_schema_no_row_is_called_fine);
}

/// The duration of a transaction. It is long, so that a few sessions are enough to make a row hot on a busy machine.
const HOLD: Duration = Duration::from_millis(30);

/// The recommendation for a row of a table.
fn advice(report: &Value, schema: &Schema<'_>, table: &str, condition: &str) -> Value {
    let subject = format!("{}.{table}: {condition}", schema.ident().name());
    let found = report["advice"].as_array().expect("a list").iter().find(|one| one["subject"] == subject);
    found.unwrap_or_else(|| panic!("{subject} in {report:#}")).clone()
}

/// Types of a primary key, and a value of each.
const KEYS: [(&str, &str); 42] = [
    ("TINYINT", "-5"),
    ("TINYINT UNSIGNED", "200"),
    ("MEDIUMINT", "-70000"),
    ("BIGINT", "-9000000000000000000"),
    ("BIGINT UNSIGNED", "18446744073709551615"),
    ("DECIMAL(20,4)", "-12345.6789"),
    ("DECIMAL(5,0)", "42"),
    ("DECIMAL(30,12)", "123456789012345678.000000000001"),
    ("FLOAT", "0.1"),
    ("DOUBLE", "-2.25e100"),
    ("BIT(12)", "b'101000000001'"),
    ("DATE", "'2026-11-23'"),
    ("TIME", "'-12:34:56'"),
    ("TIME", "'800:00:01'"),
    ("TIME(3)", "'12:34:56.789'"),
    ("TIME(6)", "'-00:00:00.000001'"),
    ("DATETIME", "'2026-11-23 10:20:30'"),
    ("DATETIME(3)", "'2026-11-23 10:20:30.123'"),
    ("DATETIME(6)", "'1000-01-01 00:00:00.000001'"),
    ("TIMESTAMP", "'2026-11-23 10:20:30'"),
    ("TIMESTAMP(3)", "'2026-11-23 10:20:30.789'"),
    ("YEAR", "2026"),
    ("CHAR(10)", "'ab c'"),
    ("CHAR(10) CHARACTER SET latin1", "'été'"),
    ("VARCHAR(20) CHARACTER SET utf8mb4", "'it''s é'"),
    ("VARCHAR(20) COLLATE utf8mb4_bin", "'aBc'"),
    ("VARCHAR(20)", "'back\\\\slash, x'"),
    ("VARCHAR(20)", "'line\\nbreak'"),
    ("VARCHAR(20)", "''"),
    ("VARCHAR(20)", "'0x41'"),
    ("VARCHAR(20) CHARACTER SET utf16", "'hé'"),
    ("VARCHAR(700)", "REPEAT('y', 600)"),
    ("BINARY(4)", "x'00ff'"),
    ("VARBINARY(10)", "x'00ff27'"),
    ("BINARY(16)", "x'6ba7b8109dad11d180b400c04fd430c8'"),
    ("ENUM('view','it''s')", "'it''s'"),
    ("SET('a','b','c')", "'a,c'"),
    // MariaDB
    ("INET4", "'10.1.2.3'"),
    ("INET6", "'2001:db8::1'"),
    ("INET6", "'::ffff:10.1.2.3'"),
    ("UUID", "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'"),
    ("UUID", "'017f22e2-79b0-7cc3-98c4-dc0c0c07398f'"),
];

fn a_key_of_any_type_becomes_a_condition_that_finds_its_row(server: &Server) {
    let schema = server.schema();
    let of_server = |kind: &str| !server.is_mysql() || !kind.starts_with("INET") && kind != "UUID";
    let keys: Vec<_> = KEYS.iter().filter(|(kind, _)| of_server(kind)).collect();
    for (at, (kind, value)) in keys.iter().enumerate() {
        // The reserved word and the secondary index are part of the promise.
        schema.run(&format!(
            "CREATE TABLE keys{at} (`key` {kind} NOT NULL PRIMARY KEY, n INT NOT NULL, hits BIGINT NOT NULL DEFAULT 0, KEY (n))
             ENGINE = InnoDB;
             INSERT INTO keys{at} (`key`, n) VALUES ({value}, 1)"
        ));
    }
    // Without a WHERE, only the key of the lock can tell the row.
    let statements: Vec<_> = (0..keys.len()).map(|at| format!("UPDATE keys{at} SET hits = hits + 1")).collect();
    let load: Vec<_> = statements.iter().map(|statement| (statement.as_str(), 2)).collect();
    let report = under_load(&schema, HOLD, &load, || {
        thread::sleep(Duration::from_millis(500));
        advised_in(server, &schema, "4")
    });
    for (at, (kind, value)) in keys.iter().enumerate() {
        let subject = format!("{}.keys{at}: ", schema.ident().name());
        let mut advice = report["advice"].as_array().expect("a list").iter();
        let found = advice.find_map(|one| one["subject"].as_str()?.strip_prefix(&subject));
        let condition = found.unwrap_or_else(|| panic!("{kind} {value}: {report:#}"));
        assert!(condition.starts_with("`key` = "), "{kind} {value}: {condition}");
        let found: Vec<u64> = schema.connect().query(format!("SELECT n FROM keys{at} WHERE {condition}")).expect("a query");
        assert_eq!(found, [1], "{kind} {value}: {condition}");
    }
}

fn names_of_counters_differ_if_the_rows_differ(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let long = "x".repeat(120);
    let keys = ["aBc", "AbC", "abc", &format!("{long}1"), &format!("{long}2"), "é", "e"];
    let mut load = Vec::new();
    for (at, key) in keys.iter().enumerate() {
        // A table for each row: several hot rows of one table get another recommendation.
        schema.run(&format!(
            "CREATE TABLE IF NOT EXISTS pages{} (url VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY,
               hits BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB;
             INSERT INTO pages{} (url) VALUES ('{key}')",
            at % 7,
            at % 7
        ));
        load.push((format!("UPDATE pages{at} SET hits = hits + 1 WHERE url = '{key}'"), 2));
    }
    let load: Vec<_> = load.iter().map(|(statement, sessions)| (statement.as_str(), *sessions)).collect();
    let report = under_load(&schema, HOLD, &load, || {
        thread::sleep(Duration::from_millis(300));
        advised_in(server, &schema, "2")
    });
    // As if all rows were in one table.
    let names: Vec<String> = report["advice"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            let run = one["run"].as_str().expect("a command");
            let words = shlex::split(run).expect("words");
            let at = words.iter().position(|word| word == "--counter").expect("--counter");
            words[at + 1].split_once('.').expect("a table").1.to_owned()
        })
        .collect();
    assert_eq!(names.len(), keys.len(), "{report:#}");
    for name in &names {
        schema.run(&format!("CALL counter_setup({}, NULL, 2, 0)", slotted::package::SqlStr(name)));
        assert!(name.chars().count() <= 100, "{name}");
    }
    assert_eq!(schema.first::<usize>("SELECT COUNT(*) FROM counter_totals"), keys.len());
}

fn many_hot_rows_of_a_table_become_records(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE pages (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, hits BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB;
         INSERT INTO pages (hits) VALUES (10), (20), (30)",
    );
    let load = [
        ("UPDATE pages SET hits = hits + 1 WHERE id = 1", 3),
        ("UPDATE pages SET hits = hits + 1 WHERE id = 2", 3),
    ];
    let report = under_load(&schema, HOLD, &load, || {
        thread::sleep(Duration::from_millis(300));
        advised_in(server, &schema, "2")
    });
    let found = advice(&report, &schema, "pages", "hits of 2 rows");
    assert_eq!(found["verdict"]["do"], "records", "{found:#}");
    let run = found["run"].as_str().expect("commands");
    let before: i64 = schema.first("SELECT CAST(SUM(hits) AS SIGNED) FROM pages");
    let url = format!("'{}'", url(server, &schema));
    for line in run.lines().take_while(|line| *line != "-- Or a counter for each of these rows:") {
        if line.starts_with("slotted") {
            let line = line.replacen("slotted", env!("CARGO_BIN_EXE_slotted"), 1).replace("URL", &url);
            let output = Command::new("sh").args(["-c", &line]).output().expect("sh runs");
            assert!(output.status.success(), "{line}: {}", printed(&output));
        }
    }
    schema.run("CALL pages_hits_add(1, 5); CALL pages_hits_rollup(NULL)");
    let hits: Vec<i64> = schema.connect().query("SELECT hits FROM pages ORDER BY id").expect("a query");
    assert_eq!(hits.iter().sum::<i64>(), before + 5, "{run}");
    assert_eq!(hits[2], 30);
}

fn a_statement_that_is_not_known_to_count_is_reported(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE pages (id INT PRIMARY KEY, hits BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO pages VALUES (7, 0);
         CREATE TABLE numbers (id BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO numbers VALUES (0);
         CREATE TABLE plain (name VARCHAR(9), hits BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO plain VALUES ('a', 0)",
    );
    let load = [
        ("SELECT hits FROM pages WHERE id = 7 FOR UPDATE", 3),
        ("UPDATE numbers SET id = LAST_INSERT_ID(id + 1)", 3),
        ("UPDATE plain SET hits = hits + 1 WHERE plain.name = 'a'", 3),
    ];
    let report = under_load(&schema, HOLD, &load, || {
        thread::sleep(Duration::from_millis(300));
        advised_in(server, &schema, "2")
    });
    let inspect = |table: &str, condition: &str, because: &str| {
        let found = advice(&report, &schema, table, condition);
        assert_eq!(found["verdict"]["do"], "inspect", "{found}");
        assert!(found["because"].as_str().is_some_and(|text| text.contains(because)), "{found}");
    };
    inspect("pages", "id = 7", "with SELECT hits FROM pages WHERE id = 7 FOR UPDATE. A counter cannot replace it: it is not known to count");
    inspect("numbers", "a row that is not known", "use AUTO_INCREMENT");
    inspect("plain", "a row that is not known", "the table has no unique key that finds the row: add a primary key");
    let output = slotted(&["advise", "--url", &server.url(), "--database", schema.ident().name(), "--seconds", "0.5"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let shown = "no counter was incremented, and no session waited for a row lock: run the command under the usual load";
    // Other tests of this server have row lock waits.
    let other = "no counter and no hot row found";
    assert!(printed(&output).contains(shown) || printed(&output).contains(other), "{}", printed(&output));
}

fn a_hot_table_without_row_locks_is_reported(server: &Server) {
    let schema = server.schema();
    let engines = if server.is_mysql() { &["MyISAM"][..] } else { &["MyISAM", "Aria"] };
    for engine in engines {
        schema.run(&format!(
            "CREATE TABLE `{engine} pages` (id INT PRIMARY KEY, hits BIGINT NOT NULL) ENGINE = {engine};
             INSERT INTO `{engine} pages` VALUES (7, 0)"
        ));
        let statement = format!("UPDATE `{engine} pages` SET hits = hits + 1 + SLEEP(0.02) WHERE id = 7");
        let report = under_load(&schema, Duration::ZERO, &[(&statement, 4)], || advised_in(server, &schema, "1"));
        let found = advice(&report, &schema, &format!("{engine} pages"), "all rows");
        assert_eq!(found["verdict"]["do"], "inspect", "{found}");
        assert!(found["because"].as_str().is_some_and(|text| text.contains("locks the whole table")), "{found}");
        schema.run(found["run"].as_str().expect("a statement"));
        let engine: String = schema.first(&format!(
            "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{engine} pages'"
        ));
        assert_eq!(engine, "InnoDB");
    }
}

fn without_performance_schema_no_row_is_called_fine(server: &Server) {
    let private = server.another(&["--performance-schema=OFF"]);
    let schema = private.schema();
    schema.run("CREATE TABLE pages (id INT PRIMARY KEY, hits BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO pages VALUES (7, 0)");
    let output = under_load(&schema, HOLD, &[("UPDATE pages SET hits = hits + 1 WHERE id = 7", 4)], || {
        thread::sleep(Duration::from_millis(300));
        slotted(&["advise", "--url", &private.url(), "--seconds", "1"])
    });
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(printed(&output).contains("cannot see the row lock waits: performance_schema is OFF, and"), "{}", printed(&output));
    assert!(printed(&output).contains("transactions wait for a row lock now"), "{}", printed(&output));
    assert!(printed(&output).contains("set performance_schema = ON in my.cnf"), "{}", printed(&output));
}
