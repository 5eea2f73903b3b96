//! The commands for counts that belong to a column.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use slotted::package::Package;
use slotted::render::{Format, files_of};
use slotted::script;

use crate::advise::printed;
use crate::rollup::{End, of_column};
use crate::support::{Module, Schema, Server, error_of, keyed};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_column_is_moved_and_moved_back_with_three_commands)
        .waits()
        .on_servers(uninstall_moves_the_counts_of_open_transactions)
        .on_servers(the_last_rollup_waits_for_a_row_that_other_programs_update)
        .on_servers(nothing_is_dropped_while_a_transaction_that_has_counted_is_open)
        .on_servers(down_follows_a_migration_that_failed_at_any_statement)
        .on_servers(down_ends_behind_an_open_transaction_and_is_repeated)
        .on_servers(the_key_of_the_package_is_that_of_the_table)
        .on_servers(columns_with_names_of_the_routines_are_counted_or_rejected)
        .on_servers(text_keys_of_other_character_sets_are_compared_as_in_the_table)
        .on_servers(columns_with_names_in_quotes_are_kept_and_uninstalled)
        .on_families(a_table_that_has_the_name_of_the_slots_is_kept)
        .on_families(a_package_of_another_column_is_not_replaced)
        .on_families(a_table_that_cannot_have_a_package_is_rejected_with_a_remedy)
        .on_servers(uninstall_ends_whatever_the_total_of_a_record_is)
        .on_servers(uninstall_stops_if_the_table_is_a_view)
        .on_servers(uninstall_stops_if_the_key_is_not_unique_any_more)
        .on_servers(status_names_what_a_column_has_lost)
        .on_servers(a_package_without_an_event_is_removed_without_the_privilege_event)
        .private()
        .on_servers(the_printed_event_calls_the_rollup_whatever_autocommit_is);
}

fn slotted(schema: &Schema<'_>, arguments: &[&str]) -> Output {
    command(schema, arguments).output().expect("slotted runs")
}

fn command(schema: &Schema<'_>, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    command.args(arguments).args(["--url", &schema.server.url(), "--database", &schema.name]);
    command
}

/// Returns what a command that succeeds printed.
#[track_caller]
fn succeeds(schema: &Schema<'_>, arguments: &[&str]) -> String {
    let output = slotted(schema, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", printed(&output));
    printed(&output)
}

fn a_column_is_moved_and_moved_back_with_three_commands(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE articles (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, views INT NOT NULL DEFAULT 0, updated_at TIMESTAMP NOT NULL \
         DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP) ENGINE = InnoDB; \
         INSERT INTO articles (views, updated_at) VALUES (5, '2000-01-01'), (6, '2000-01-01')",
    );
    let said = succeeds(&schema, &["install", "--column", "articles.views"]);
    let line = |start: &str| {
        let line = said.lines().map(str::trim).find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("{start}: {said}")).replace('?', "1")
    };
    // Each statement as printed.
    schema.run(&line("UPDATE").replace("SET", "SET updated_at = updated_at,"));
    for _ in 0..3 {
        schema.run(&line("CALL articles_views_increment"));
    }
    assert_eq!(schema.first::<i64>(&line("SELECT articles_views_get")), 9);
    assert_eq!(schema.first::<i64>("SELECT views FROM articles WHERE id = 1"), 6);
    schema.run(&line("CALL articles_views_rollup"));
    assert_eq!(schema.first::<(i64, i64)>("SELECT views, YEAR(updated_at) FROM articles WHERE id = 1"), (9, 2000));
    assert!(succeeds(&schema, &["install", "--column", "articles.views"]).contains("nothing to do"));
    succeeds(&schema, &["status"]);
    succeeds(&schema, &["status", "articles.views"]);

    schema.run("CALL articles_views_add(2, 4); CALL articles_views_add(77, 2); CALL articles_views_rollup(NULL)");
    assert_eq!(schema.first::<i64>("SELECT views FROM articles WHERE id = 2"), 10);
    let status = succeeds(&schema, &["status"]);
    assert!(status.contains("articles.views: 2 pending counts of 1 records"), "{status}");

    let removed = succeeds(&schema, &["uninstall", "articles.views"]);
    assert!(removed.contains("records that keep their counts in the table, because they have no row or the column rejects the total: 1\n") && removed.contains("id 77, pending 2"), "{removed}");
    assert_eq!(schema.first::<i64>("SELECT views FROM articles WHERE id = 1"), 9);
    let left = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    assert_eq!(schema.first::<u64>(left), 0);
    schema.run("DELETE FROM articles_views");
    let message = "has no package with the name articles.views";
    assert!(printed(&slotted(&schema, &["uninstall", "articles.views"])).contains(message));
}

/// A transaction that has counted is open when the package is removed. On MySQL, DROP PROCEDURE waits for it.
fn uninstall_moves_the_counts_of_open_transactions(server: &Server) {
    for with_data in [false, true] {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5)");
        succeeds(&schema, &["install", "--column", "articles.views"]);
        let data: &[&str] = if with_data { &["--with-data", "--yes"] } else { &[] };
        let arguments = [&["uninstall", "articles.views"], data].concat();
        let mut open = schema.connect();
        open.query_drop("START TRANSACTION").expect("a transaction");
        open.query_drop("CALL articles_views_add(1, 7)").expect("a call");
        thread::scope(|scope| {
            let removed = scope.spawn(|| succeeds(&schema, &arguments));
            thread::sleep(Duration::from_millis(1500));
            open.query_drop("COMMIT").expect("a commit");
            removed.join().expect("a removal");
        });
        assert_eq!(schema.first::<i64>("SELECT views FROM articles"), 12, "{with_data}");
    }
    // Counts that cannot be moved are not dropped.
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    succeeds(&schema, &["install", "--column", "articles.views"]);
    schema.run("CALL articles_views_add(9, 7)");
    let kept = slotted(&schema, &["uninstall", "articles.views", "--with-data", "--yes"]);
    assert_eq!(kept.status.code(), Some(2), "{}", printed(&kept));
    assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM articles_views"), 7);
    assert!(printed(&kept).contains("DROP TABLE `articles_views`"), "{}", printed(&kept));
}

/// The programs that were not changed, or that were changed back, hold the lock of the row almost all the time.
fn the_last_rollup_waits_for_a_row_that_other_programs_update(server: &Server) {
    let package = of_column("articles.views", "id INT", |_| {});
    for by_tool in [false, true] {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5), (2, 0)");
        schema.install(&package);
        schema.run("CALL articles_views_add(1, 100); CALL articles_views_add(2, 3)");
        let (stop, updated) = (AtomicBool::new(false), AtomicI64::new(0));
        thread::scope(|scope| {
            let _end = End(&stop);
            for _ in 0..6 {
                let (schema, stop, updated) = (&schema, &stop, &updated);
                scope.spawn(move || {
                    let mut connection = schema.connect();
                    while !stop.load(SeqCst) {
                        for statement in ["START TRANSACTION", "UPDATE articles SET views = views + 1 WHERE id = 1", "DO SLEEP(0.01)", "COMMIT"] {
                            connection.query_drop(statement).expect(statement);
                        }
                        updated.fetch_add(1, SeqCst);
                    }
                });
            }
            thread::sleep(Duration::from_millis(200));
            if by_tool {
                succeeds(&schema, &["uninstall", "articles.views"]);
            } else {
                schema.run(&schema.file(&package, "uninstall.sql"));
            }
        });
        let views: i64 = schema.first("SELECT views FROM articles WHERE id = 1");
        assert_eq!(views, 105 + updated.into_inner());
        assert_eq!(schema.first::<i64>("SELECT views FROM articles WHERE id = 2"), 3);
    }
}

/// On MySQL, the first DROP PROCEDURE waits for the transaction.
fn nothing_is_dropped_while_a_transaction_that_has_counted_is_open(server: &Server) {
    let server = server.another(&["--innodb-lock-wait-timeout=1"]);
    let package = of_column("articles.views", "id INT", |_| {});
    // On MySQL, the tool repeats a DROP that waits until the transaction ends.
    for by_tool in [false, true].into_iter().take(if server.is_mysql() { 1 } else { 2 }) {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5)");
        schema.install(&package);
        let remove = || {
            if by_tool {
                let output = slotted(&schema, &["uninstall", "articles.views", "--with-data", "--yes"]);
                if output.status.success() { Ok(()) } else { Err(printed(&output)) }
            } else {
                let mut connection = schema.connect();
                let statements = script::statements(&schema.file(&package, "uninstall.sql"));
                let done = statements.iter().try_for_each(|statement| connection.query_drop(statement));
                done.map_err(|error| error.to_string())
            }
        };
        let mut open = schema.connect();
        open.query_drop("START TRANSACTION").expect("a transaction");
        open.query_drop("CALL articles_views_add(1, 7)").expect("a call");
        let error = remove().expect_err("a transaction is open");
        assert!(error.contains("1205"), "{error}");
        open.query_drop("COMMIT").expect("a commit");
        remove().expect("a removal");
        assert_eq!(schema.first::<i64>("SELECT views FROM articles"), 12, "{by_tool}");
    }
}

/// The statements of a file for migration tools.
fn migration(server: &Server, package: &Package, name: &str) -> Vec<String> {
    let files = files_of(&package.clone().of_family(server.version.family), Format::Statements);
    let file = files.into_iter().find(|file| file.name == name).expect("a file");
    serde_json::from_str(&file.text).expect("JSON")
}

fn down_follows_a_migration_that_failed_at_any_statement(server: &Server) {
    let package = of_column("articles.views", "id INT", |_| {});
    let (up, down) = (migration(server, &package, "up.json"), migration(server, &package, "down.json"));
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    for executed in 0..=up.len() {
        let mut connection = schema.connect();
        let event = "CREATE EVENT articles_views_rollup ON SCHEDULE EVERY 1 DAY DO CALL articles_views_rollup(NULL)".to_owned();
        let event = (executed == up.len()).then_some(&event);
        for statement in up[..executed].iter().chain(event).chain(&down) {
            connection.query_drop(statement).unwrap_or_else(|error| panic!("after {executed} of {}: {error} in {statement}", up.len()));
        }
        let objects = "SELECT (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE())
                            + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())
                            + (SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE())";
        assert_eq!(schema.first::<i64>(objects), 1, "after {executed}");
    }
}

/// Wherever the first run ends, the next one drops the rest.
fn down_ends_behind_an_open_transaction_and_is_repeated(server: &Server) {
    let package = of_column("articles.views", "id INT", |_| {});
    let down = migration(server, &package, "down.json");
    for used in ["SELECT * FROM articles_views", "SELECT articles_views_get(1)"] {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5)");
        schema.install(&package);
        schema.run("CALL articles_views_add(1, 2)");
        let mut open = schema.connect();
        open.query_drop("START TRANSACTION").expect("a transaction");
        open.query_drop(used).expect(used);
        let run = || {
            let mut connection = schema.connect();
            down.iter().try_for_each(|statement| connection.query_drop(statement))
        };
        let begin = Instant::now();
        let error = error_of(run());
        assert_eq!(error.0, 1205, "{used}: {error:?}");
        // 2 s for one statement. Without a limit, the default of MariaDB is a day.
        assert!(begin.elapsed() < Duration::from_secs(60), "{used}: {:?}", begin.elapsed());
        open.query_drop("COMMIT").expect("a commit");
        run().unwrap_or_else(|error| panic!("{used}: {error}"));
        assert_eq!(schema.first::<i64>("SELECT views FROM articles"), 7, "{used}");
        assert_eq!(schema.first::<i64>("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"), 1, "{used}");
    }
}

fn the_key_of_the_package_is_that_of_the_table(server: &Server) {
    for (key, primary, options, one) in [
        ("id TINYINT UNSIGNED", "id", "--key 'id TINYINT UNSIGNED'", "7"),
        ("a INT(5), b BIGINT(20) UNSIGNED", "b, a", "--key 'b BIGINT UNSIGNED, a INT'", "7, 8"),
        (
            "slug VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            "slug",
            "--key 'slug VARCHAR(40)'",
            "'Ä'",
        ),
        ("token BINARY(16), day DATE", "token, day", "--key 'token BINARY(16), day DATE'", "REPEAT('x', 16), '2026-11-25'"),
    ] {
        let schema = server.schema();
        schema.run(&format!("CREATE TABLE items ({key}, hits SMALLINT NULL, PRIMARY KEY ({primary})) ENGINE = InnoDB"));
        let dry = succeeds(&schema, &["install", "--column", "items.hits", "--dry-run"]);
        let unquoted = |text: &str| text.replace("'\\''", "'").replace('"', "'").replace("''", "'");
        assert!(unquoted(&dry).contains(&unquoted(options)), "{options}: {}", &dry[dry.len().saturating_sub(3000)..]);
        succeeds(&schema, &["install", "--column", "items.hits"]);
        schema.run(&format!("INSERT INTO items ({primary}, hits) VALUES ({one}, 40); CALL items_hits_add({one}, 2)"));
        assert_eq!(schema.first::<i64>(&format!("SELECT items_hits_get({one})")), 42, "{key}");
        schema.run("CALL items_hits_rollup(NULL)");
        assert_eq!(schema.first::<i64>("SELECT hits FROM items"), 42, "{key}");
        succeeds(&schema, &["status"]);
    }
}

/// A parameter or a variable of a routine precedes a column of the same name.
fn columns_with_names_of_the_routines_are_counted_or_rejected(server: &Server) {
    // Two records that differ in the last column of the key, and each routine.
    let counts = |schema: &Schema<'_>, prefix: &str, table: &str, column: &str, columns: usize| {
        let record = |last: &str| [vec!["7"; columns - 1], vec![last]].concat().join(", ");
        let (one, other) = (record("1"), record("2"));
        schema.run(&format!(
            "INSERT INTO `{table}` VALUES ({one}, 10), ({other}, 20); CALL `{prefix}increment`({one}); CALL `{prefix}add`({other}, 3); \
             CALL `{prefix}add_many`('[[{one}, 4], [{other}, 1]]')"
        ));
        let total = |key: &str| schema.first::<i64>(&format!("SELECT `{prefix}get`({key})"));
        assert_eq!((total(&one), total(&other)), (15, 24), "{table}.{column}");
        let value = || schema.first::<String>(&format!("SELECT GROUP_CONCAT(`{column}` ORDER BY `{column}`) FROM `{table}`"));
        schema.run(&format!("CALL `{prefix}rollup`(NULL)"));
        assert_eq!(value(), "15,24", "{table}.{column}");
        schema.run(&format!("CALL `{prefix}add`({one}, 2); CALL `{prefix}add`({other}, 2); CALL `{prefix}reset`({one}, 5)"));
        assert_eq!((total(&one), total(&other), value()), (5, 26, "15,24".into()), "{table}.{column}");
        schema.run(&format!("CALL `{prefix}delete`({other}); CALL `{prefix}add`({one}, 1); CALL `{prefix}compact`({one}); CALL `{prefix}rollup`(1)"));
        assert_eq!((total(&one), total(&other), value()), (6, 24, "6,24".into()), "{table}.{column}");
    };
    for column in ["v_total", "p_value", "slot", "count", "pending", "total", "moved"] {
        let schema = server.schema();
        schema.run(&format!("CREATE TABLE items (id INT PRIMARY KEY, `{column}` INT NOT NULL) ENGINE = InnoDB"));
        succeeds(&schema, &["install", "--column", &format!("items.{column}")]);
        counts(&schema, &format!("items_{column}_"), "items", column, 1);
    }
    for table in ["slots", "parent", "target", "moved", "v_batch"] {
        let schema = server.schema();
        schema.run(&format!("CREATE TABLE `{table}` (id INT PRIMARY KEY, hits INT NOT NULL) ENGINE = InnoDB"));
        succeeds(&schema, &["install", "--column", &format!("{table}.hits")]);
        counts(&schema, &format!("{table}_hits_"), table, "hits", 1);
    }
    // The names of columns and tables in the statements of the routines.
    let names = ["moved", "parent", "idle_slot", "record", "number", "batch", "idle", "locked", "found", "more", "any_slot", "place", "numbered", "sums"];
    let schema = server.schema();
    let columns: Vec<_> = names.iter().map(|name| format!("`{name}` INT")).collect();
    schema.run(&format!("CREATE TABLE items ({}, hits INT NOT NULL, PRIMARY KEY (`{}`)) ENGINE = InnoDB", columns.join(", "), names.join("`, `")));
    succeeds(&schema, &["install", "--column", "items.hits"]);
    counts(&schema, "items_hits_", "items", "hits", names.len());
    for name in ["p_id", "V_id", "total", "Records", "round", "wait"] {
        let schema = server.schema();
        schema.run(&format!("CREATE TABLE items (id INT, `{name}` INT, hits INT NOT NULL, PRIMARY KEY (id, `{name}`)) ENGINE = InnoDB"));
        let rejected = slotted(&schema, &["install", "--column", "items.hits"]);
        let said = printed(&rejected);
        assert_eq!(rejected.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(&format!("a key column cannot be named '{name}'")), "{said}");
        assert_eq!(schema.first::<i64>("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"), 1, "{name}");
    }
}

fn text_keys_of_other_character_sets_are_compared_as_in_the_table(server: &Server) {
    for (kind, charset, collation, ours, equal, other, lacks) in [
        ("VARCHAR(40)", "latin1", "latin1_swedish_ci", "Gård", "GÅRD", "Gard", "Кафе"),
        ("CHAR(36)", "ascii", "ascii_bin", "a-1", "a-1", "A-1", "ä-1"),
        ("VARCHAR(40)", "utf8mb3", "utf8mb3_general_ci", "Кафе", "КАФЕ", "Kafe", "😀"),
    ] {
        let schema = server.schema();
        schema.run(&format!(
            "ALTER DATABASE CHARACTER SET {charset}; CREATE TABLE items (slug {kind} CHARACTER SET {charset} COLLATE {collation} PRIMARY KEY, hits INT NOT NULL) \
             ENGINE = InnoDB; INSERT INTO items VALUES ('{ours}', 5), ('{other}', 7), ('?', 0)"
        ));
        succeeds(&schema, &["install", "--column", "items.hits"]);
        assert!(succeeds(&schema, &["install", "--column", "items.hits"]).contains("nothing to do"), "{collation}");
        schema.run(&format!(
            "CALL items_hits_increment('{ours}'); CALL items_hits_add('{equal}', 2); \
             CALL items_hits_add_many('[[\"{ours}\", 3], [\"{equal}\", 4], [\"{other}\", 1]]')"
        ));
        // No call counts on another record, such as '?'.
        for call in ["increment('{}')", "add('{}', 1)", "reset('{}', 9)", "add_many('[[\"{}\", 1]]')"] {
            let call = call.replace("{}", lacks);
            let error = schema.connect().query_drop(format!("CALL items_hits_{call}"));
            assert!(error.is_err(), "{collation} {call}");
        }
        for batch in ["1", "NULL"] {
            for key in [ours, equal] {
                assert_eq!(schema.first::<i64>(&format!("SELECT items_hits_get('{key}')")), 15, "{collation} {key}");
            }
            schema.run(&format!("CALL items_hits_rollup({batch})"));
        }
        assert_eq!(schema.first::<String>("SELECT GROUP_CONCAT(hits ORDER BY hits) FROM items"), "0,8,15", "{collation}");
        schema.run(&format!("CALL items_hits_add('{ours}', 5); CALL items_hits_reset('{equal}', 9); CALL items_hits_add('{other}', 1); CALL items_hits_delete('{other}')"));
        schema.run(&format!("CALL items_hits_compact('{equal}'); CALL items_hits_add('{ours}', 5000000000)"));
        assert_eq!(schema.first::<String>("SELECT GROUP_CONCAT(hits ORDER BY hits) FROM items"), "0,8,9", "{collation}");
        for call in [format!("compact('{ours}')"), "rollup(NULL)".into(), "rollup(1)".into()] {
            let (number, text) = error_of(schema.connect().query_drop(format!("CALL items_hits_{call}")));
            assert!(number == 30013 && text.contains(&format!("rejects the total of {ours}: ")), "{collation} {call}: {text}");
        }
        schema.run(&format!("CALL items_hits_add('{ours}', -5000000000)"));
        succeeds(&schema, &["uninstall", "items.hits", "--with-data", "--yes"]);
    }
}

fn columns_with_names_in_quotes_are_kept_and_uninstalled(server: &Server) {
    let schema = server.schema();
    let timestamp = "TIMESTAMP NULL DEFAULT '2000-01-01' ON UPDATE CURRENT_TIMESTAMP";
    schema.run(&format!(
        "CREATE TABLE items (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0, `upd at` {timestamp}, `geändert, am` {timestamp}, `a``b` {timestamp}, plain {timestamp}) \
         ENGINE = InnoDB; INSERT INTO items (id) VALUES (1)"
    ));
    succeeds(&schema, &["install", "--column", "items.n"]);
    assert!(succeeds(&schema, &["install", "--column", "items.n"]).contains("nothing to do"));
    schema.run("CALL items_n_increment(1)");
    let status = succeeds(&schema, &["status"]);
    assert!(!status.contains("changed"), "{status}");
    succeeds(&schema, &["uninstall", "items.n"]);
    let row = "SELECT n, YEAR(`upd at`) + YEAR(`geändert, am`) + YEAR(`a``b`) + YEAR(plain) FROM items";
    assert_eq!(schema.first::<(i64, i64)>(row), (1, 8000));
    // A column that would change with each roll-up is named.
    let keep = ["--key", "id INT", "--keep", "`upd at`,plain,`a``b`"];
    let rejected = slotted(&schema, &[&["install", "--column", "items.n"], &keep[..]].concat());
    assert_eq!(rejected.status.code(), Some(2), "{}", printed(&rejected));
    assert!(printed(&rejected).contains("each roll-up changes items.geändert, am"), "{}", printed(&rejected));
    succeeds(&schema, &["install", "--column", "items.n", "--key", "id INT", "--keep", "`upd at`,plain,`a``b`,`geändert, am`"]);
    schema.run("CALL items_n_increment(1)");
    succeeds(&schema, &["uninstall"]);
    assert_eq!(schema.first::<(i64, i64)>(row), (2, 8000));
}

fn a_table_that_cannot_have_a_package_is_rejected_with_a_remedy(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE plain (n INT) ENGINE = InnoDB; CREATE TABLE words (id INT PRIMARY KEY, n VARCHAR(9), \
         twice INT GENERATED ALWAYS AS (id * 2) STORED) ENGINE = InnoDB; CREATE TABLE mine (id INT PRIMARY KEY, n INT) ENGINE = MyISAM; \
         CREATE VIEW seen AS SELECT id, 1 AS n FROM words; CREATE TABLE moments (id TIMESTAMP(3) PRIMARY KEY, n INT) ENGINE = InnoDB",
    );
    for (column, message, hint) in [
        ("nothing.n", "the database has no table nothing", "give TABLE.COLUMN"),
        ("words.nothing", "the column is no integer or generated", "correct it"),
        ("words.n", "the column is no integer or generated", "correct it"),
        ("words.twice", "the column is no integer or generated", "correct it"),
        ("plain.n", "plain has no primary key", "add a primary key"),
        ("mine.n", "the table of the column is not InnoDB", "correct it"),
        ("seen.n", "seen has no primary key", "add a primary key"),
        ("moments.n", "cannot be the key of a package", "another unique index"),
    ] {
        let output = slotted(&schema, &["install", "--column", column]);
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{column}: {text}");
        assert!(text.contains(message) && text.contains(hint) && text.contains("has been changed"), "{column}: {text}");
    }
    for (arguments, message) in [
        (&["install", "--column", "words"][..], "expected TABLE.COLUMN"),
        (&["install", "counters", "--column", "words.id"], "use the package slotted_counters"),
    ] {
        let output = slotted(&schema, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", printed(&output));
        assert!(printed(&output).contains(message), "{arguments:?}: {}", printed(&output));
    }
    let left = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    assert_eq!(schema.first::<u64>(left), 0);
}

/// The names of a package are those of the table and the column, with an underscore between them.
fn a_package_of_another_column_is_not_replaced(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE user_post (id INT PRIMARY KEY, `count` INT NOT NULL) ENGINE = InnoDB; INSERT INTO user_post VALUES (1, 10);
         CREATE TABLE user (id INT PRIMARY KEY, post_count INT NOT NULL) ENGINE = InnoDB; INSERT INTO user VALUES (1, 1000)",
    );
    succeeds(&schema, &["install", "--column", "user_post.count"]);
    schema.run("CALL user_post_count_add(1, 5)");
    let rejected = slotted(&schema, &["install", "--column", "user.post_count"]);
    assert_eq!(rejected.status.code(), Some(2), "{}", printed(&rejected));
    let said = printed(&rejected);
    assert!(said.contains("the package of user_post.count has these names") && said.contains("choose another --table and --prefix"), "{said}");
    succeeds(&schema, &["install", "--column", "user.post_count", "--table", "user_posts", "--prefix", "user_posts_"]);
    // A second package would have a part of the counts.
    let second = slotted(&schema, &["install", "--column", "user_post.count", "--table", "more", "--prefix", "more_"]);
    assert_eq!(second.status.code(), Some(2), "{}", printed(&second));
    assert!(printed(&second).contains("the package of the view user_post_count_package already counts user_post.count"), "{}", printed(&second));
    schema.run("CALL user_post_count_rollup(NULL); CALL user_posts_increment(1); CALL user_posts_rollup(NULL)");
    assert_eq!(schema.first::<(i64, i64)>("SELECT user_post.`count`, post_count FROM user_post JOIN user USING (id)"), (15, 1001));
}

fn a_table_that_has_the_name_of_the_slots_is_kept(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL DEFAULT 0) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5);
         CREATE TABLE articles_views (id INT PRIMARY KEY, count INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles_views VALUES (1, 7)",
    );
    let mine = "SELECT COUNT(*) * 100 + SUM(count) FROM articles_views";
    let rejected = slotted(&schema, &["install", "--column", "articles.views"]);
    assert_eq!(rejected.status.code(), Some(2), "{}", printed(&rejected));
    let said = printed(&rejected);
    assert!(said.contains("the table is missing or differs") && said.contains("no routine has been changed"), "{said}");
    succeeds(&schema, &["install", "--column", "articles.views", "--table", "articles_views_slots"]);
    schema.run("CALL articles_views_increment(1)");
    succeeds(&schema, &["uninstall", "--with-data", "--yes"]);
    assert_eq!(schema.first::<i64>("SELECT views FROM articles"), 6);
    assert_eq!(schema.first::<i64>(mine), 107);
}

/// The last roll-up would execute the function of a view.
fn uninstall_stops_if_the_table_is_a_view(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 10)");
    succeeds(&schema, &["install", "--column", "articles.views"]);
    schema.run("CALL articles_views_add(1, 3); RENAME TABLE articles_views TO moved; CREATE VIEW articles_views AS SELECT id, slot, `count` FROM moved");
    for more in [&[][..], &["--with-data", "--yes"]] {
        let stopped = slotted(&schema, &[&["uninstall"], more].concat());
        let said = printed(&stopped);
        assert_eq!(stopped.status.code(), Some(2), "{said}");
        assert!(said.contains("table articles_views: differs") && said.contains("nothing has been changed"), "{said}");
    }
    assert_eq!(schema.first::<(i64, i64)>("SELECT views, (SELECT SUM(count) FROM moved) FROM articles"), (10, 3));
}

/// Two rows with one id would both get the counts.
fn uninstall_stops_if_the_key_is_not_unique_any_more(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 10)");
    succeeds(&schema, &["install", "--column", "articles.views"]);
    schema.run("CALL articles_views_add(1, 3); ALTER TABLE articles DROP PRIMARY KEY; INSERT INTO articles VALUES (1, 20)");
    for (command, code) in [("status", 1), ("uninstall", 2)] {
        let output = slotted(&schema, &[command]);
        assert!(output.status.code() == Some(code) && printed(&output).contains("the key is not unique"), "{}", printed(&output));
    }
    let script = schema.client().pipe(&[], &schema.file(&of_column("articles.views", "id INT", |_| {}), "create_procedures.sql"));
    assert!(!script.success && script.stderr.contains("30022"), "{script:?}");
    assert_eq!(schema.first::<(i64, i64)>("SELECT CAST(SUM(views) AS SIGNED), (SELECT CAST(SUM(count) AS SIGNED) FROM articles_views) FROM articles"), (30, 3));
}

/// A total beyond the type of the column, a negative one, a CHECK, and a renamed column.
fn uninstall_ends_whatever_the_total_of_a_record_is(server: &Server) {
    let package = || of_column("articles.views", "id INT", |_| {});
    for (change, add, views) in [
        ("DO 0", 100, "250,7"),
        ("DO 0", -251, "250,7"),
        ("ALTER TABLE articles ADD CONSTRAINT few CHECK (views < 252)", 2, "250,7"),
        ("ALTER TABLE articles RENAME COLUMN views TO seen", 1, ""),
    ] {
        for by_tool in [false, true] {
            let schema = server.schema();
            schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views TINYINT UNSIGNED NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 250), (2, 0)");
            succeeds(&schema, &["install", "--column", "articles.views"]);
            schema.run(&format!("CALL articles_views_add(1, {add}); CALL articles_views_add(2, 7); {change}"));
            if by_tool && views.is_empty() {
                // Nothing could be moved: the command stops before it changes anything.
                let said = printed(&slotted(&schema, &["uninstall"]));
                assert!(said.contains("the table of the column") && said.contains("nothing has been changed"), "{said}");
                assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM articles_views"), add + 7);
                continue;
            }
            let said = if by_tool {
                succeeds(&schema, &["uninstall"])
            } else {
                let said = schema.client().pipe(&[], &schema.file(&package(), "uninstall.sql"));
                assert!(said.success, "{change}: {said:?}");
                said.stdout
            };
            // What remains is listed and is in the table.
            let listed = if by_tool { format!("id 1, pending {add}") } else { format!("1\t{add}") };
            assert!(said.contains(&listed), "{change}: {said}");
            assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM articles_views WHERE id = 1"), add, "{change}");
            if !views.is_empty() {
                assert_eq!(schema.first::<String>("SELECT GROUP_CONCAT(views ORDER BY id) FROM articles"), views, "{change}");
            }
            let left: Vec<String> = schema.query(
                "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()
                  UNION ALL SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()",
            );
            assert!(left.is_empty(), "{change}: {left:?}");
        }
    }
}

fn status_names_what_a_column_has_lost(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5)");
    let event = succeeds(&schema, &["install", "--column", "articles.views"]);
    let event = event.lines().find_map(|line| line.trim().strip_suffix(";;").filter(|line| line.starts_with("CREATE EVENT"))).expect("an event");
    schema.connect().query_drop(event).expect(event);
    let scheduler: String = schema.first("SELECT @@GLOBAL.event_scheduler");
    let status = || {
        let output = slotted(&schema, &["status"]);
        (output.status.code(), printed(&output))
    };
    let (code, said) = status();
    assert_eq!((code, said.contains("the event scheduler is not ON")), (Some(i32::from(scheduler != "ON")), scheduler != "ON"), "{said}");
    for (change, words, undo) in [
        ("ALTER TABLE articles RENAME COLUMN views TO seen", "table articles_views: differs", "ALTER TABLE articles RENAME COLUMN seen TO views"),
        (
            "ALTER TABLE articles ADD at TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
            "each roll-up changes articles.at, which has ON UPDATE",
            "ALTER TABLE articles DROP COLUMN at",
        ),
        ("ALTER EVENT articles_views_rollup DISABLE", "the event articles_views_rollup is DISABLED", "ALTER EVENT articles_views_rollup ENABLE"),
    ] {
        schema.run(change);
        let (code, said) = status();
        assert!(code == Some(1) && said.contains(words), "{change}: {said}");
        schema.run(undo);
        let (_, said) = status();
        assert!(!said.contains(words), "{undo}: {said}");
    }
    // A key that is not unique would double the counts: it is rejected before anything changes.
    schema.run("DROP EVENT articles_views_rollup; CREATE TABLE posts (id INT, day DATE, views INT NOT NULL, PRIMARY KEY (id, day)) ENGINE = InnoDB");
    let said = slotted(&schema, &["install", "--column", "posts.views", "--key", "id INT"]);
    assert_eq!(said.status.code(), Some(2), "{}", printed(&said));
    assert!(printed(&said).contains("the key is not unique") && printed(&said).contains("no routine has been changed"), "{}", printed(&said));
}

fn a_package_without_an_event_is_removed_without_the_privilege_event(server: &Server) {
    let schema = server.schema();
    let user = format!("{}_e", schema.name);
    schema.run(&format!(
        "CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB;
         CREATE USER '{user}'@'%'; GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EXECUTE ON {}.* TO '{user}'@'%'",
        schema.ident()
    ));
    for package in [keyed(|options| options.function = false), of_column("articles.views", "id INT", |options| options.function = false)] {
        for by_tool in [false, true] {
            let url = server.url_of(&user, None);
            let words = shlex::split(&package.options.arguments()).expect("words");
            let tool = |words: &[&str]| {
                let output = Command::new(env!("CARGO_BIN_EXE_slotted")).args(words).args(["--url", &url, "--database", &schema.name]).output().expect("slotted runs");
                assert_eq!(output.status.code(), Some(0), "{words:?}: {}", printed(&output));
            };
            tool(&[&["install"], &words.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
            if by_tool {
                tool(&["uninstall"]);
            } else {
                let said = server.client_of(&schema.options().user(Some(&user)).pass(None::<&str>).into(), &schema.name).pipe(&[], &schema.file(&package, "uninstall.sql"));
                assert!(said.success, "{said:?}");
            }
            let left: u64 = schema.first("SELECT COUNT(*) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()");
            assert_eq!(left, 0, "{by_tool}");
        }
    }
    schema.run(&format!("DROP USER '{user}'@'%'"));
}

fn the_printed_event_calls_the_rollup_whatever_autocommit_is(server: &Server) {
    let server = server.another(&["--autocommit=0", "--event-scheduler=ON"]);
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5); COMMIT");
    let said = succeeds(&schema, &["install", "--column", "articles.views"]);
    let (_, printed) = said.split_once("DELIMITER ;;\n").expect("an event");
    let (event, _) = printed.split_once("DELIMITER ;\n").expect("its end");
    let event = event.replace("EVERY 10 SECOND", "EVERY 1 SECOND");
    let created = schema.client().pipe(&[], &format!("DELIMITER ;;\n{event}\nDELIMITER ;\n"));
    assert!(created.success, "{created:?}");
    schema.run("CALL articles_views_add(1, 7); COMMIT");
    let end = Instant::now() + Duration::from_secs(30);
    while schema.connect().query_first::<i64, _>("SELECT views FROM articles").expect("views") != Some(12) {
        assert!(Instant::now() < end, "the event has moved nothing");
        thread::sleep(Duration::from_millis(100));
    }
    succeeds(&schema, &["uninstall"]);
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()"), 0);
}
