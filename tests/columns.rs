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
use crate::exactness::SetOnDrop;
use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, error_of, file};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_column_is_moved_and_moved_back_with_three_commands)
        .waits()
        .on_servers(increments_wait_for_the_row_of_a_foreign_key_which_status_names)
        .on_servers(uninstall_moves_the_counts_of_open_transactions)
        .on_servers(the_last_rollup_waits_for_a_row_that_other_programs_update)
        .on_servers(nothing_is_dropped_while_a_transaction_that_has_counted_is_open)
        .on_servers(down_follows_a_migration_that_failed_at_any_statement)
        .on_servers(down_ends_behind_an_open_transaction_and_is_repeated)
        .on_servers(the_key_of_the_package_is_that_of_the_table)
        .on_servers(columns_with_names_of_the_routines_are_counted_or_rejected)
        .on_servers(text_keys_of_other_character_sets_are_compared_as_in_the_table)
        .on_servers(roll_ups_that_would_lose_or_double_counts_are_rejected)
        .on_servers(columns_with_names_in_quotes_are_kept_and_uninstalled)
        .on_servers(the_package_of_a_column_is_found_by_the_options_of_its_names)
        .on(|name: &str| name.starts_with("mariadb"), a_system_versioned_table_has_its_history)
        .on_families(a_key_whose_collation_has_changed_is_a_warning)
        .on_families(a_table_that_has_the_name_of_the_slots_is_kept)
        .on_families(a_package_of_another_column_is_not_replaced)
        .on_families(a_table_that_cannot_have_a_package_is_rejected_with_a_remedy);
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
    schema.run(&line("UPDATE").replace("UPDATE articles SET", "UPDATE articles SET updated_at = updated_at,"));
    for _ in 0..3 {
        schema.run(&line("CALL articles_views_increment"));
    }
    assert_eq!(schema.first::<i64>(&line("SELECT articles_views_get")), 9);
    assert_eq!(schema.first::<i64>("SELECT views FROM articles WHERE id = 1"), 6);
    schema.run(&line("CALL articles_views_rollup"));
    assert_eq!(schema.first::<(i64, i64)>("SELECT views, YEAR(updated_at) FROM articles WHERE id = 1"), (9, 2000));
    assert!(succeeds(&schema, &["install", "--column", "articles.views"]).contains("nothing to do"));
    succeeds(&schema, &["status"]);
    succeeds(&schema, &["status", "--column", "articles.views"]);

    schema.run("CALL articles_views_add(2, 4); CALL articles_views_add(77, 2)");
    schema.run("CALL articles_views_rollup(NULL)");
    assert_eq!(schema.first::<i64>("SELECT views FROM articles WHERE id = 2"), 10);
    schema.run("CALL articles_views_add(1, -100000); ALTER TABLE articles ADD CONSTRAINT positive CHECK (views >= 0)");
    let rejected = schema.connect().query_drop("CALL articles_views_rollup(NULL)").expect_err("a rejected total");
    assert!(rejected.to_string().contains("articles.views cannot have the total of 1: "), "{rejected}");
    let status = succeeds(&schema, &["status"]);
    assert!(status.contains("articles.views: 2 records with pending counts, -99998 in all"), "{status}");
    assert!(status.contains("1 record without a row: 2 stay pending"), "{status}");
    schema.run("CALL articles_views_add(1, -3000000000)");
    let status = succeeds(&schema, &["status"]);
    assert!(status.contains("1 record whose total the column cannot have, such as 1"), "{status}");
    schema.run("CALL articles_views_add(1, 3000100001)");

    let removed = succeeds(&schema, &["uninstall", "--column", "articles.views"]);
    assert!(removed.contains("pending counts of 1 records (2 in all) stay in the table"), "{removed}");
    assert_eq!(schema.first::<i64>("SELECT views FROM articles WHERE id = 1"), 10);
    let left = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    assert_eq!(schema.first::<u64>(left), 0);
    schema.run("DELETE FROM articles_views");
    let message = "has no package of articles.views";
    assert!(printed(&slotted(&schema, &["uninstall", "--column", "articles.views"])).contains(message));
}

fn increments_wait_for_the_row_of_a_foreign_key_which_status_names(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5)");
    succeeds(&schema, &["install", "--column", "articles.views"]);
    schema.run("ALTER TABLE articles_views ADD CONSTRAINT to_article FOREIGN KEY (id) REFERENCES articles (id) ON DELETE CASCADE");
    let (mut editor, mut caller) = (schema.connect(), schema.connect());
    editor.query_drop("START TRANSACTION").expect("a transaction");
    editor.query_drop("UPDATE articles SET views = 6 WHERE id = 1").expect("an update");
    caller.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a setting");
    let error = caller.query_drop("CALL articles_views_increment(1)").expect_err("the row is locked");
    assert!(error.to_string().contains("1205"), "{error}");
    editor.query_drop("ROLLBACK").expect("the end");
    let status = printed(&slotted(&schema, &["status"]));
    assert!(status.contains("the foreign key `to_article` refers to `articles`"), "{status}");
}

/// A transaction that has counted is open when the package is removed. On MySQL, DROP PROCEDURE waits for it.
fn uninstall_moves_the_counts_of_open_transactions(server: &Server) {
    for with_data in [false, true] {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5)");
        succeeds(&schema, &["install", "--column", "articles.views"]);
        let data: &[&str] = if with_data { &["--with-data", "--yes"] } else { &[] };
        let arguments = [&["uninstall", "--column", "articles.views"], data].concat();
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
    let kept = slotted(&schema, &["uninstall", "--column", "articles.views", "--with-data", "--yes"]);
    assert_eq!(kept.status.code(), Some(2), "{}", printed(&kept));
    assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM articles_views"), 7);
    schema.run("DELETE FROM articles_views");
    succeeds(&schema, &["uninstall", "--column", "articles.views", "--with-data", "--yes"]);
}

/// The programs that were not changed, or that were changed back, hold the lock of the row almost all the time.
fn the_last_rollup_waits_for_a_row_that_other_programs_update(server: &Server) {
    let column = || of_column("articles.views", "id INT", |_| {});
    let down = migration(&column(), "down.json");
    let uninstall = script::statements(&file(&column(), "uninstall.sql"));
    for statements in [Some(down), Some(uninstall), None] {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5), (2, 0)");
        schema.install(&column());
        schema.run("CALL articles_views_add(1, 100); CALL articles_views_add(2, 3)");
        let (stop, updated) = (AtomicBool::new(false), AtomicI64::new(0));
        thread::scope(|scope| {
            let _end = SetOnDrop(&stop);
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
            match statements {
                Some(statements) => {
                    let mut connection = schema.connect();
                    for statement in statements {
                        connection.query_drop(&statement).expect(&statement);
                    }
                }
                None => _ = succeeds(&schema, &["uninstall", "--column", "articles.views"]),
            }
        });
        let views: i64 = schema.first("SELECT views FROM articles WHERE id = 1");
        assert_eq!(views, 105 + updated.into_inner());
        assert_eq!(schema.first::<i64>("SELECT views FROM articles WHERE id = 2"), 3);
    }
}

/// On MySQL, the first DROP PROCEDURE waits for the transaction. On MariaDB, DO would hide the lock wait timeout.
fn nothing_is_dropped_while_a_transaction_that_has_counted_is_open(server: &Server) {
    let server = &server.another(&["--innodb-lock-wait-timeout=1"]);
    let package = of_column("articles.views", "id INT", |_| {});
    let uninstall = script::statements(&file(&package, "uninstall.sql"));
    let statements = |statements: Vec<String>| {
        move |schema: &Schema<'_>| {
            let mut connection = schema.connect();
            let done = statements.iter().try_for_each(|statement| connection.query_drop(statement));
            done.map_err(|error| error.to_string())
        }
    };
    let tool = |schema: &Schema<'_>| {
        let output = slotted(schema, &["uninstall", "--column", "articles.views", "--with-data", "--yes"]);
        if output.status.success() { Ok(()) } else { Err(printed(&output)) }
    };
    let (down, uninstall) = (statements(migration(&package, "down.json")), statements(uninstall));
    type Removal<'a> = &'a dyn Fn(&Schema<'_>) -> Result<(), String>;
    let ways: [(Removal<'_>, &str); 3] = [(&down, "1205"), (&uninstall, "1205"), (&tool, "still open")];
    // The tool repeats a DROP that waits until the transaction ends.
    for (remove, message) in ways.into_iter().take(if server.is_mysql() { 2 } else { 3 }) {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5)");
        succeeds(&schema, &["install", "--column", "articles.views"]);
        let mut open = schema.connect();
        open.query_drop("START TRANSACTION").expect("a transaction");
        open.query_drop("CALL articles_views_add(1, 7)").expect("a call");
        let error = remove(&schema).expect_err("a transaction is open");
        assert!(error.contains(message), "{error}");
        open.query_drop("COMMIT").expect("a commit");
        remove(&schema).expect("a removal");
        assert_eq!(schema.first::<i64>("SELECT views FROM articles"), 12, "{message}");
    }
}

/// The statements of a file for migration tools.
fn migration(package: &Package, name: &str) -> Vec<String> {
    let files = files_of(package, Format::Statements);
    let file = files.into_iter().find(|file| file.name == name).expect("a file");
    serde_json::from_str(&file.text).expect("JSON")
}

fn down_follows_a_migration_that_failed_at_any_statement(server: &Server) {
    let package = of_column("articles.views", "id INT", |_| {});
    let (up, down) = (migration(&package, "up.json"), migration(&package, "down.json"));
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    for executed in 0..=up.len() {
        let mut connection = schema.connect();
        for statement in up[..executed].iter().chain(&down) {
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
    let down = migration(&package, "down.json");
    for used in ["SELECT * FROM articles_views_totals", "SELECT * FROM articles_views", "SELECT * FROM articles_views_package", "SELECT articles_views_get(1)"] {
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
            "--key 'slug VARCHAR(40)' --collation utf8mb4_bin",
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
        assert_eq!((total(&one), total(&other), value()), (5, 26, "5,24".into()), "{table}.{column}");
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
    let names = ["moved", "parent", "target", "next", "last", "record", "number", "batch", "idle", "locked", "share", "own", "found", "have", "more"];
    let schema = server.schema();
    let columns: Vec<_> = names.iter().map(|name| format!("`{name}` INT")).collect();
    schema.run(&format!("CREATE TABLE items ({}, hits INT NOT NULL, PRIMARY KEY (`{}`)) ENGINE = InnoDB", columns.join(", "), names.join("`, `")));
    succeeds(&schema, &["install", "--column", "items.hits"]);
    counts(&schema, "items_hits_", "items", "hits", names.len());
    for name in ["p_id", "V_id", "total", "slots", "pending", "entry"] {
        let schema = server.schema();
        schema.run(&format!("CREATE TABLE items (id INT, `{name}` INT, hits INT NOT NULL, PRIMARY KEY (id, `{name}`)) ENGINE = InnoDB"));
        let rejected = slotted(&schema, &["install", "--column", "items.hits"]);
        let said = printed(&rejected);
        assert_eq!(rejected.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(&format!("a key column cannot be named '{name}'")) && said.contains("change this column"), "{said}");
        assert_eq!(schema.first::<i64>("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"), 1, "{name}");
    }
}

/// With and without strict mode, which changes a character that a character set lacks to a question mark.
fn text_keys_of_other_character_sets_are_compared_as_in_the_table(server: &Server) {
    for (kind, charset, collation, ours, equal, other, lacks) in [
        ("VARCHAR(40)", "latin1", "latin1_swedish_ci", "Gård", "GÅRD", "Gard", "Кафе"),
        ("VARCHAR(40)", "latin1", "latin1_german1_ci", "Müller", "MULLER", "Mueller", "Мюллер"),
        ("CHAR(40)", "latin1", "latin1_bin", "Café", "Café", "café", "☕"),
        ("VARCHAR(36)", "ascii", "ascii_general_ci", "a-1", "A-1", "a-2", "ä-1"),
        ("CHAR(36)", "ascii", "ascii_bin", "a-1", "a-1", "A-1", "ä-1"),
        ("VARCHAR(40)", "ucs2", "ucs2_general_ci", "Gård", "GÅRD", "Kafe", "😀"),
        ("VARCHAR(40)", "utf8mb3", "utf8mb3_general_ci", "Кафе", "КАФЕ", "Kafe", "😀"),
    ] {
        let schema = server.schema();
        schema.run(&format!(
            "ALTER DATABASE CHARACTER SET {charset}; CREATE TABLE items (slug {kind} CHARACTER SET {charset} COLLATE {collation} PRIMARY KEY, hits INT NOT NULL) \
             ENGINE = InnoDB; INSERT INTO items VALUES ('{ours}', 5), ('{other}', 7), ('?', 0)"
        ));
        succeeds(&schema, &["install", "--column", "items.hits"]);
        assert!(succeeds(&schema, &["install", "--column", "items.hits"]).contains("nothing to do"), "{collation}");
        for mode in ["DEFAULT", "''"] {
            let mut connection = schema.connect();
            connection.query_drop(format!("SET SESSION sql_mode = {mode}")).expect("a setting");
            let before: i64 = schema.first(&format!("SELECT items_hits_get('{ours}')"));
            connection
                .query_drop(format!(
                    "CALL items_hits_increment('{ours}'); CALL items_hits_add('{equal}', 2); \
                     CALL items_hits_add_many('[[\"{ours}\", 3], [\"{equal}\", 4], [\"{other}\", 1]]')"
                ))
                .expect("calls");
            for key in [ours, equal] {
                let total: i64 = connection.query_first(format!("SELECT items_hits_get('{key}')")).expect("a total").expect("a row");
                assert_eq!(total, before + 10, "{collation} {mode} {key}");
            }
            for call in ["increment('{}')", "add('{}', 1)", "reset('{}', 9)", "delete('{}')", "compact('{}')"] {
                let call = call.replace("{}", lacks);
                let error = connection.query_drop(format!("CALL items_hits_{call}")).expect_err(&format!("{collation} {mode} {call}"));
                assert!(error.to_string().contains("30010"), "{collation} {mode} {call}: {error}");
            }
            let get = connection.query_first::<i64, _>(format!("SELECT items_hits_get('{lacks}')"));
            let error = get.expect_err(&format!("{collation} {mode} get"));
            assert!(error.to_string().contains("30010"), "{collation} {mode}: {error}");
            let many = format!("CALL items_hits_add_many('[[\"{ours}\", 1], [\"{lacks}\", 1]]')");
            let error = connection.query_drop(many).expect_err(&format!("{collation} {mode} add_many"));
            assert!(error.to_string().contains("30015"), "{collation} {mode}: {error}");
            let many = "SELECT GROUP_CONCAT(total ORDER BY total) FROM items_hits_totals";
            let before: String = schema.first(many);
            schema.run("CALL items_hits_rollup(NULL)");
            assert_eq!(schema.first::<String>(many), before, "{collation} {mode}");
            assert_eq!(schema.first::<i64>("SELECT hits FROM items WHERE slug = '?'"), 0, "{collation} {mode}");
        }
        let hits = format!("SELECT hits FROM items WHERE slug = '{ours}'");
        assert_eq!(schema.first::<i64>(&hits), 25, "{collation}");
        schema.run(&format!("CALL items_hits_add('{ours}', 5); CALL items_hits_reset('{equal}', 8)"));
        assert_eq!(schema.first::<i64>(&hits), 8, "{collation}");
        schema.run(&format!("CALL items_hits_add('{ours}', 5); CALL items_hits_delete('{equal}')"));
        assert_eq!(schema.first::<i64>(&format!("SELECT items_hits_get('{ours}')")), 8, "{collation}");
        succeeds(&schema, &["status"]);
        let totals = "SELECT GROUP_CONCAT(hits ORDER BY hits) FROM items WHERE slug <> '?'";
        let (before, more): (String, i64) = (schema.first(totals), 5_000_000_000);
        schema.run(&format!("CALL items_hits_add('{ours}', {more}); CALL items_hits_add('{other}', 1)"));
        for call in [format!("compact('{ours}')"), "rollup(NULL)".into(), "rollup(1)".into()] {
            let (number, text) = error_of(schema.connect().query_drop(format!("CALL items_hits_{call}")));
            assert!(number == 30013 && text.contains(&format!("cannot have the total of {ours}: ")), "{collation} {call}: {text}");
        }
        assert_ne!(schema.first::<String>(totals), before, "{collation}: the other record is moved");
        assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM items_hits"), more, "{collation}");
        assert!(succeeds(&schema, &["status"]).contains(&format!("such as {ours}")), "{collation}");
        schema.run(&format!("CALL items_hits_add('{ours}', -{more})"));
        succeeds(&schema, &["uninstall", "--column", "items.hits", "--with-data", "--yes"]);
    }
}

fn roll_ups_that_would_lose_or_double_counts_are_rejected(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE t1 (id BIGINT PRIMARY KEY, v INT NOT NULL) ENGINE = InnoDB; \
         CREATE TABLE t3 (k INT, n INT, PRIMARY KEY (k, n)) ENGINE = InnoDB",
    );
    let rejected = |command: &[&str], more: &[&str], message: &str| {
        let said = slotted(&schema, &[command, more].concat());
        assert_eq!(said.status.code(), Some(2), "{more:?}: {}", printed(&said));
        assert!(printed(&said).contains(message), "{more:?}: {}", printed(&said));
    };
    let package = &["install", "slotted_counters"][..];
    rejected(package, &["--column", "t1.v", "--key", "id BIGINT", "--keep", "V"], "the column 'v' gets the counts: it cannot keep its value");
    rejected(&["install"], &["--column", "t3.n"], "the column 'n' identifies a row: it cannot get the counts");
    let routines = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    assert_eq!(schema.first::<u64>(routines), 0);
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
    succeeds(&schema, &["uninstall", "--column", "items.n"]);
    let row = "SELECT n, YEAR(`upd at`) + YEAR(`geändert, am`) + YEAR(`a``b`) + YEAR(plain) FROM items";
    assert_eq!(schema.first::<(i64, i64)>(row), (1, 8000));
    let keep = ["--key", "id INT", "--keep", "`upd at`,plain,`a``b`"];
    succeeds(&schema, &[&["install", "--column", "items.n"], &keep[..]].concat());
    schema.run("CALL items_n_increment(1)");
    succeeds(&schema, &["uninstall"]);
    let row = "SELECT n, YEAR(`upd at`) + YEAR(`a``b`) + YEAR(plain), YEAR(`geändert, am`) > 2000 FROM items";
    assert_eq!(schema.first::<(i64, i64, bool)>(row), (2, 6000, true));
}

fn the_package_of_a_column_is_found_by_the_options_of_its_names(server: &Server) {
    let schema = server.schema();
    let long = "t".repeat(64);
    schema.run(&format!(
        "CREATE TABLE items (id INT PRIMARY KEY, n INT NOT NULL) ENGINE = InnoDB; CREATE TABLE {long} LIKE items; \
         INSERT INTO items VALUES (1, 5); INSERT INTO {long} VALUES (1, 5)"
    ));
    for table in ["items", &long] {
        let column = format!("{table}.n");
        let options = ["--column", &column, "--table", "lo", "--prefix", "lo_"];
        let with = |command: &'static str| [&[command], &options[..]].concat();
        succeeds(&schema, &with("install"));
        schema.run("CALL lo_increment(1)");
        succeeds(&schema, &with("status"));
        // The package of this name is of another column.
        let other = slotted(&schema, &["uninstall", "--column", "items.id", "--table", "lo", "--prefix", "lo_"]);
        assert!(printed(&other).contains("has no package of items.id"), "{}", printed(&other));
        succeeds(&schema, &[&with("uninstall")[..], &["--with-data", "--yes"]].concat());
        assert_eq!(schema.first::<i64>(&format!("SELECT n FROM {table}")), 6, "{table}");
    }
}

/// Only MariaDB has such tables.
fn a_system_versioned_table_has_its_history(server: &Server) {
    for columns in ["", ", a TIMESTAMP(6) GENERATED ALWAYS AS ROW START, b TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (a, b)"] {
        let schema = server.schema();
        schema.run(&format!(
            "CREATE TABLE items (id INT PRIMARY KEY, n TINYINT NOT NULL{columns}) ENGINE = InnoDB WITH SYSTEM VERSIONING; INSERT INTO items (id, n) VALUES (1, 5), (2, 7), (3, 1)"
        ));
        succeeds(&schema, &["install", "--column", "items.n"]);
        schema.run("CALL items_n_add(1, 3); CALL items_n_add(2, 400); CALL items_n_add(9, 1)");
        let (number, text) = error_of(schema.connect().query_drop("CALL items_n_rollup(NULL)"));
        assert!(number == 30013 && text.contains("the total of 2: "), "{text}");
        schema.run("CALL items_n_add(2, -390); CALL items_n_rollup(1); CALL items_n_add(3, 4); CALL items_n_reset(3, 6); DELETE FROM items WHERE id = 2");
        let now: Vec<(i64, i64)> = schema.query("SELECT id, items_n_get(id) FROM items ORDER BY id");
        assert_eq!(now, [(1, 8), (3, 6)]);
        let history: Vec<(i64, i64)> = schema.query("SELECT id, n FROM items FOR SYSTEM_TIME ALL ORDER BY id, n");
        assert_eq!(history, [(1, 5), (1, 8), (2, 7), (2, 17), (3, 1), (3, 6)]);
        assert!(succeeds(&schema, &["status"]).contains("1 record without a row: 1 stay pending"));
        succeeds(&schema, &["uninstall", "--column", "items.n"]);
    }
}

fn a_key_whose_collation_has_changed_is_a_warning(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE items (slug VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT NOT NULL) CHARACTER SET utf8mb4 ENGINE = InnoDB");
    succeeds(&schema, &["install", "--column", "items.n"]);
    let warning = "warning: items.slug has the collation utf8mb4_bin, and the table of the slots utf8mb4_general_ci";
    assert!(!succeeds(&schema, &["status"]).contains("warning"));
    schema.run("ALTER TABLE items MODIFY slug VARCHAR(9) COLLATE utf8mb4_bin");
    let said = succeeds(&schema, &["status"]);
    assert!(said.contains(warning) && said.contains("--collation utf8mb4_bin"), "{said}");
    let problem = printed(&slotted(&schema, &["install", "--column", "items.n"]));
    assert!(problem.contains("ALTER TABLE"), "{problem}");
}

fn a_table_that_cannot_have_a_package_is_rejected_with_a_remedy(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE plain (n INT) ENGINE = InnoDB; CREATE TABLE words (id INT PRIMARY KEY, n VARCHAR(9), half DECIMAL(9, 1), \
         twice INT GENERATED ALWAYS AS (id * 2) STORED) ENGINE = InnoDB; CREATE TABLE mine (id INT PRIMARY KEY, n INT) ENGINE = MyISAM; \
         CREATE VIEW seen AS SELECT id, 1 AS n FROM words; CREATE TABLE moments (id TIMESTAMP(3) PRIMARY KEY, n INT) ENGINE = InnoDB",
    );
    for (column, message, hint) in [
        ("nothing.n", "the database has no table nothing", "give TABLE.COLUMN"),
        ("words.nothing", "words has no column nothing", "give a column"),
        ("words.n", "words.n is varchar(9): counts are integers", "integer column"),
        ("words.half", "words.half is decimal(9,1): counts are integers", "integer column"),
        ("words.twice", "is a generated column", "computed from"),
        ("plain.n", "plain has no primary key", "add a primary key"),
        ("mine.n", "mine is MyISAM, not an InnoDB table", "ENGINE = InnoDB"),
        ("seen.n", "seen is a view, not an InnoDB table", "the table that stores the column"),
        ("moments.n", "cannot be the key of a package", "change this column"),
    ] {
        let output = slotted(&schema, &["install", "--column", column]);
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{column}: {text}");
        assert!(text.contains(message) && text.contains(hint) && text.contains("nothing has been changed"), "{column}: {text}");
    }
    for (arguments, message) in [
        (&["install", "--column", "words"][..], "expected TABLE.COLUMN"),
        (&["install", "--column", "words.id", "--bounded"], "cannot be used with bounded counters"),
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
    assert!(said.contains("package of user_post.count with these names") && said.contains("choose another --table and --prefix"), "{said}");
    succeeds(&schema, &["install", "--column", "user.post_count", "--table", "user_posts", "--prefix", "user_posts_"]);
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
    assert!(said.contains("other objects have the names of the package: table articles_views\n    choose another --table"), "{said}");
    assert!(!said.contains("ALTER TABLE"), "{said}");
    let options = ["slotted_counters", "--key", "id INT", "--table", "articles_views"];
    let said = printed(&slotted(&schema, &[&["status"], &options[..]].concat()));
    assert!(said.contains("table articles_views: foreign") && !said.contains("ALTER TABLE"), "{said}");
    let data = slotted(&schema, &[&["uninstall", "--with-data", "--yes"], &options[..]].concat());
    assert_eq!(data.status.code(), Some(2), "{}", printed(&data));
    succeeds(&schema, &["install", "--column", "articles.views", "--table", "articles_views_slots"]);
    schema.run("CALL articles_views_increment(1)");
    schema.run("CALL articles_views_rollup(NULL)");
    succeeds(&schema, &["uninstall", "--with-data", "--yes"]);
    assert_eq!(schema.first::<i64>("SELECT views FROM articles"), 6);
    assert_eq!(schema.first::<i64>(mine), 107);
}
