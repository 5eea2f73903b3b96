//! The commands for counts that belong to a column.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use slotted::package::Package;
use slotted::render::{Format, files_of};
use slotted::script;

use crate::advise::printed;
use crate::rollup::{End, after, of_column};
use crate::support::{Module, Schema, Server, error_of};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_column_is_moved_and_moved_back_with_three_commands)
        .waits()
        .on_servers(uninstall_moves_the_counts_of_open_transactions)
        .on_servers(the_last_rollup_waits_for_a_row_that_other_programs_update)
        .waits()
        .on_servers(a_removal_ends_behind_an_open_transaction_and_is_repeated)
        .on_servers(down_follows_a_migration_that_failed_at_any_statement)
        .on_servers(the_key_of_the_package_is_that_of_the_table)
        .on_servers(columns_with_names_of_the_routines_are_counted_or_rejected)
        .on_servers(text_keys_of_other_character_sets_are_compared_as_in_the_table)
        .on_servers(columns_with_names_in_quotes_are_kept_and_uninstalled)
        .on_families(a_package_of_another_column_is_not_replaced)
        .on_families(a_table_that_cannot_have_a_package_is_rejected_with_a_remedy)
        .on_servers(uninstall_ends_whatever_the_total_of_a_record_is)
        .on_families(uninstall_stops_if_the_table_is_a_view_or_the_key_is_not_unique)
        .on_families(status_names_what_a_column_has_lost)
        .on_servers(a_package_without_an_event_is_removed_without_the_privilege_event);
}

const ARTICLES: &str = "CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5)";

fn package() -> Package {
    of_column("articles.views", "id INT", |_| {})
}

fn slotted(schema: &Schema<'_>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    let place = ["--url", &schema.server.url(), "--database", &schema.name];
    command.args(arguments).args(place).output().expect("slotted runs")
}

/// Returns what a command that succeeds printed.
#[track_caller]
pub fn succeeds(schema: &Schema<'_>, arguments: &[&str]) -> String {
    ends(schema, arguments, 0)
}

/// Returns what a command that fails printed.
#[track_caller]
fn fails(schema: &Schema<'_>, arguments: &[&str]) -> String {
    ends(schema, arguments, 2)
}

#[track_caller]
fn ends(schema: &Schema<'_>, arguments: &[&str], code: i32) -> String {
    let output = slotted(schema, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", printed(&output));
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
    assert!(
        removed.contains(
            "records that keep their counts in the table, because they have no row or the column rejects the total: 1\n"
        ) && removed.contains("id 77, pending 2"),
        "{removed}"
    );
    assert_eq!(schema.first::<i64>("SELECT views FROM articles WHERE id = 1"), 9);
    let left = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    assert_eq!(schema.first::<u64>(left), 0);
    schema.run("DELETE FROM articles_views");
    let message = "has no package with the name articles.views";
    assert!(printed(&slotted(&schema, &["uninstall", "articles.views"])).contains(message));
}

/// A transaction that has counted is open when the package is removed. On MySQL, DROP PROCEDURE waits for it.
fn uninstall_moves_the_counts_of_open_transactions(server: &Server) {
    let schema = server.schema();
    schema.run(ARTICLES);
    let remove = ["uninstall", "articles.views", "--with-data", "--yes"];
    succeeds(&schema, &["install", "--column", "articles.views"]);
    let mut open = after(&schema, &["START TRANSACTION", "CALL articles_views_add(1, 7)"]);
    thread::scope(|scope| {
        let removed = scope.spawn(|| succeeds(&schema, &remove));
        thread::sleep(Duration::from_millis(1500));
        open.query_drop("COMMIT").expect("a commit");
        removed.join().expect("a removal");
    });
    assert_eq!(schema.first::<i64>("SELECT views FROM articles"), 12);
    // Counts that cannot be moved are not dropped.
    succeeds(&schema, &["install", "--column", "articles.views"]);
    schema.run("CALL articles_views_add(9, 7)");
    let said = fails(&schema, &remove);
    assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM articles_views"), 7);
    assert!(said.contains("DROP TABLE `articles_views`"), "{said}");
}

/// The programs that were not changed, or that were changed back, hold the lock of the row almost all the time.
fn the_last_rollup_waits_for_a_row_that_other_programs_update(server: &Server) {
    let package = package();
    let schema = &server.schema();
    schema.run(ARTICLES);
    schema.install(&package);
    schema.run("INSERT INTO articles VALUES (2, 0); CALL articles_views_add(1, 100); CALL articles_views_add(2, 3)");
    let (stop, updated) = (&AtomicBool::new(false), &AtomicI64::new(0));
    thread::scope(|scope| {
        let _end = End(stop);
        for _ in 0..6 {
            scope.spawn(move || {
                let mut connection = schema.connect();
                while !stop.load(SeqCst) {
                    for statement in [
                        "START TRANSACTION",
                        "UPDATE articles SET views = views + 1 WHERE id = 1",
                        "DO SLEEP(0.01)",
                        "COMMIT",
                    ] {
                        connection.query_drop(statement).expect(statement);
                    }
                    updated.fetch_add(1, SeqCst);
                }
            });
        }
        thread::sleep(Duration::from_millis(200));
        schema.run(&schema.file(&package, "uninstall.sql"));
    });
    let rows: Vec<i64> = schema.query("SELECT views FROM articles ORDER BY id");
    assert_eq!(rows, [105 + updated.load(SeqCst), 3]);
}

/// It has counted, or only read. Wherever the first run ends, the next one does the rest.
fn a_removal_ends_behind_an_open_transaction_and_is_repeated(server: &Server) {
    let package = package();
    for (file, used, total, left) in [
        ("uninstall.sql", "CALL articles_views_add(1, 7)", 14, 2),
        ("down.json", "SELECT * FROM articles_views", 7, 1),
        ("down.json", "SELECT articles_views_get(1)", 7, 1),
    ] {
        let schema = server.schema();
        schema.run(ARTICLES);
        schema.install(&package);
        schema.run("CALL articles_views_add(1, 2)");
        let statements = match file {
            "down.json" => migration(server, &package, file),
            _ => script::statements(&schema.file(&package, file)),
        };
        let run = || {
            let mut connection = after(&schema, &["SET SESSION innodb_lock_wait_timeout = 1"]);
            statements.iter().try_for_each(|statement| connection.query_drop(statement))
        };
        let mut open = after(&schema, &["START TRANSACTION", used]);
        let begin = Instant::now();
        let error = error_of(run());
        assert_eq!(error.0, 1205, "{used}: {error:?}");
        // 2 s for one statement. Without a limit, the default of MariaDB is a day.
        assert!(begin.elapsed() < Duration::from_secs(60), "{used}: {:?}", begin.elapsed());
        open.query_drop("COMMIT").expect("a commit");
        run().unwrap_or_else(|error| panic!("{used}: {error}"));
        assert_eq!(schema.first::<i64>("SELECT views FROM articles"), total, "{used}");
        assert_eq!(
            schema.first::<i64>("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"),
            left,
            "{used}"
        );
    }
}

/// The statements of a file for migration tools.
fn migration(server: &Server, package: &Package, name: &str) -> Vec<String> {
    let files = files_of(&package.clone().of_family(server.version.family), Format::Statements);
    let file = files.into_iter().find(|file| file.name == name).expect("a file");
    serde_json::from_str(&file.text).expect("JSON")
}

fn down_follows_a_migration_that_failed_at_any_statement(server: &Server) {
    let package = package();
    let (up, down) = (migration(server, &package, "up.json"), migration(server, &package, "down.json"));
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    for executed in 0..=up.len() {
        let mut connection = schema.connect();
        let event =
            "CREATE EVENT articles_views_rollup ON SCHEDULE EVERY 1 DAY DO CALL articles_views_rollup(NULL)".to_owned();
        let event = (executed == up.len()).then_some(&event);
        for statement in up[..executed].iter().chain(event).chain(&down) {
            connection
                .query_drop(statement)
                .unwrap_or_else(|error| panic!("after {executed} of {}: {error} in {statement}", up.len()));
        }
        let objects = "SELECT (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE())
                            + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())
                            + (SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE())";
        assert_eq!(schema.first::<i64>(objects), 1, "after {executed}");
    }
}

/// The keys of real tables, of one and of several columns, in batches of each size.
fn the_key_of_the_package_is_that_of_the_table(server: &Server) {
    let cases: [(&str, &str, &str, &[&str]); 5] = [
        ("id TINYINT UNSIGNED", "id", "id TINYINT UNSIGNED", &["0", "7", "255"]),
        (
            "a INT(5), b BIGINT(20) UNSIGNED",
            "b, a",
            "b BIGINT UNSIGNED, a INT",
            &["0, 8", "7, -8", "7, 9", "18446744073709551615, 8"],
        ),
        (
            "slug VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            "slug",
            "slug VARCHAR(40)",
            &["'b'", "'B'", "'it''s'", "'/中'", "'/?'", "''"],
        ),
        (
            "token BINARY(2), day DATE",
            "token, day",
            "token BINARY(2), day DATE",
            &["0x0001, '2026-11-23'", "0xff00, '1999-12-31'", "0xff00, '2026-01-01'"],
        ),
        (
            "at DATETIME, raw VARBINARY(9)",
            "at, raw",
            "at DATETIME, raw VARBINARY(9)",
            &["'2026-11-23 10:00:00', 0x00ff", "'2026-11-23 10:00:01', 0x00ff", "'2026-11-23 10:00:00', ''"],
        ),
    ];
    for (columns, primary, option, keys) in cases {
        let schema = server.schema();
        schema
            .run(&format!("CREATE TABLE items ({columns}, hits BIGINT NULL, PRIMARY KEY ({primary})) ENGINE = InnoDB"));
        let dry = succeeds(&schema, &["install", "--column", "items.hits", "--dry-run"]);
        let unquoted = |text: &str| text.replace("'\\''", "'").replace('"', "'").replace("''", "'");
        assert!(
            unquoted(&dry).contains(&format!("--key '{option}'")),
            "{option}: {}",
            &dry[dry.len().saturating_sub(3000)..]
        );
        succeeds(&schema, &["install", "--column", "items.hits"]);
        for (at, key) in keys.iter().enumerate() {
            schema.run(&format!("INSERT INTO items ({primary}, hits) VALUES ({key}, {at})"));
        }
        for batch in ["1", "2", "NULL"] {
            for (at, key) in keys.iter().enumerate() {
                schema.run(&format!("CALL items_hits_add({key}, {})", 1000 + at));
            }
            schema.run(&format!("CALL items_hits_rollup({batch})"));
            assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM items_hits WHERE count <> 0"), 0, "{option}, {batch}");
        }
        for (at, key) in keys.iter().enumerate() {
            let totals: (usize, usize) =
                schema.first(&format!("SELECT hits, items_hits_get({key}) FROM items WHERE ({primary}) = ({key})"));
            assert_eq!(totals, (3000 + 4 * at, 3000 + 4 * at), "{option}: {key}");
        }
        // A message names the record, whatever its type is.
        schema.run(&format!("ALTER TABLE items MODIFY hits INT; CALL items_hits_add({}, 1 << 40)", keys[0]));
        let (number, text) = error_of(schema.connect().query_drop("CALL items_hits_rollup(NULL)"));
        assert!(number == 30013 && text.contains("rejects the total of"), "{option}: {text}");
    }
}

/// A parameter or a variable of a routine precedes a column of the same name.
fn columns_with_names_of_the_routines_are_counted_or_rejected(server: &Server) {
    let names = [
        "moved",
        "parent",
        "idle_slot",
        "record",
        "number",
        "batch",
        "idle",
        "locked",
        "found",
        "more",
        "any_slot",
        "place",
        "numbered",
        "sums",
    ];
    for (table, column, key) in [
        ("items", "v_total", &["id"][..]),
        ("items", "p_value", &["id"]),
        ("items", "slot", &["id"]),
        ("items", "count", &["id"]),
        ("items", "pending", &["id"]),
        ("slots", "total", &["id"]),
        ("parent", "moved", &["id"]),
        ("moved", "hits", &["id"]),
        ("items", "hits", &names),
    ] {
        let schema = server.schema();
        let columns: Vec<_> = key.iter().map(|name| format!("`{name}` INT")).collect();
        schema.run(&format!(
            "CREATE TABLE `{table}` ({}, `{column}` INT NOT NULL, PRIMARY KEY (`{}`)) ENGINE = InnoDB",
            columns.join(", "),
            key.join("`, `")
        ));
        succeeds(&schema, &["install", "--column", &format!("{table}.{column}")]);
        // Two records that differ in the last column of the key, and each routine.
        let record = |last| [vec!["7"; key.len() - 1], vec![last]].concat().join(", ");
        let (one, other) = (record("1"), record("2"));
        let call = |text: &str| {
            schema.run(
                &text.replace("CALL ", &format!("CALL {table}_{column}_")).replace("{1}", &one).replace("{2}", &other),
            )
        };
        let found = || -> (i64, i64, String) {
            let get = format!("{table}_{column}_get");
            schema.first(&format!(
                "SELECT {get}({one}), {get}({other}), GROUP_CONCAT(`{column}` ORDER BY `{column}`) FROM `{table}`"
            ))
        };
        schema.run(&format!("INSERT INTO `{table}` VALUES ({one}, 10), ({other}, 20)"));
        call("CALL increment({1}); CALL add({2}, 3); CALL add_many('[[{1}, 4], [{2}, 1]]'); CALL rollup(NULL)");
        assert_eq!(found(), (15, 24, "15,24".into()), "{table}.{column}");
        call("CALL add({1}, 2); CALL add({2}, 2); CALL reset({1}, 5)");
        assert_eq!(found(), (5, 26, "15,24".into()), "{table}.{column}");
        call("CALL delete({2}); CALL add({1}, 1); CALL compact({1}); CALL rollup(1)");
        assert_eq!(found(), (6, 24, "6,24".into()), "{table}.{column}");
    }
    for name in ["p_id", "V_id", "total", "Records", "round", "wait"] {
        let schema = server.schema();
        schema.run(&format!(
            "CREATE TABLE items (id INT, `{name}` INT, hits INT NOT NULL, PRIMARY KEY (id, `{name}`)) ENGINE = InnoDB"
        ));
        let said = fails(&schema, &["install", "--column", "items.hits"]);
        assert!(said.contains(&format!("a key column cannot be named '{name}'")), "{said}");
        assert_eq!(
            schema.first::<i64>("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"),
            1,
            "{name}"
        );
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
        // No call counts on another record, such as '?'.
        for call in ["increment('{}')", "add('{}', 1)", "reset('{}', 9)", "add_many('[[\"{}\", 1]]')"] {
            let call = call.replace("{}", lacks);
            assert!(schema.connect().query_drop(format!("CALL items_hits_{call}")).is_err(), "{collation} {call}");
        }
        let hits = || schema.first::<String>("SELECT GROUP_CONCAT(hits ORDER BY hits) FROM items");
        schema.run(&format!("CALL items_hits_increment('{ours}'); CALL items_hits_add('{equal}', 2)"));
        schema.run(&format!("CALL items_hits_add_many('[[\"{ours}\", 3], [\"{equal}\", 4], [\"{other}\", 1]]'); CALL items_hits_rollup(NULL)"));
        assert_eq!(
            (hits(), schema.first::<i64>(&format!("SELECT items_hits_get('{equal}')"))),
            ("0,8,15".into(), 15),
            "{collation}"
        );
        schema.run(&format!(
            "CALL items_hits_add('{ours}', 5); CALL items_hits_reset('{equal}', 9); CALL items_hits_add('{other}', 1)"
        ));
        schema.run(&format!("CALL items_hits_delete('{other}'); CALL items_hits_compact('{equal}'); CALL items_hits_add('{ours}', 5000000000)"));
        assert_eq!(hits(), "0,8,9", "{collation}");
        for call in [format!("compact('{ours}')"), "rollup(NULL)".into(), "rollup(1)".into()] {
            let (number, text) = error_of(schema.connect().query_drop(format!("CALL items_hits_{call}")));
            assert!(
                number == 30013 && text.contains(&format!("rejects the total of {ours}: ")),
                "{collation} {call}: {text}"
            );
        }
    }
}

/// Columns with ON UPDATE, and dates that strict modes reject.
fn columns_with_names_in_quotes_are_kept_and_uninstalled(server: &Server) {
    let schema = server.schema();
    let timestamp = "TIMESTAMP NULL DEFAULT '2000-01-01' ON UPDATE CURRENT_TIMESTAMP";
    schema.run(&format!(
        "SET sql_mode = ''; CREATE TABLE items (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0, `upd at` {timestamp}, `geändert, am` {timestamp}, `a``b` {timestamp}, \
         plain {timestamp}, zero DATETIME NOT NULL, part DATE NOT NULL) ENGINE = InnoDB; INSERT INTO items (id, zero, part) VALUES (1, '0000-00-00', '2020-00-00')"
    ));
    let row = "SELECT n, YEAR(`upd at`) + YEAR(`geändert, am`) + YEAR(`a``b`) + YEAR(plain), CONCAT(zero, ' ', part) FROM items";
    succeeds(&schema, &["install", "--column", "items.n"]);
    for call in ["rollup(NULL)", "rollup(1)", "compact(1)"] {
        schema.run(&format!("CALL items_n_increment(1); CALL items_n_{call}"));
    }
    schema.run("CALL items_n_increment(1)");
    let status = succeeds(&schema, &["status"]);
    assert!(!status.contains("changed"), "{status}");
    succeeds(&schema, &["uninstall", "items.n"]);
    assert_eq!(schema.first::<(i64, i64, String)>(row), (4, 8000, "0000-00-00 00:00:00 2020-00-00".into()));
    // A column that would change with each roll-up is named.
    let keep = |names| ["install", "--column", "items.n", "--key", "id INT", "--keep", names];
    let said = fails(&schema, &keep("`upd at`,plain,`a``b`"));
    assert!(said.contains("each roll-up changes items.geändert, am"), "{said}");
    succeeds(&schema, &keep("`upd at`,plain,`a``b`,`geändert, am`"));
    schema.run("CALL items_n_increment(1)");
    succeeds(&schema, &["uninstall"]);
    assert_eq!(schema.first::<(i64, i64, String)>(row).1, 8000);
}

fn a_table_that_cannot_have_a_package_is_rejected_with_a_remedy(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE plain (n INT) ENGINE = InnoDB; CREATE TABLE words (id INT PRIMARY KEY, n VARCHAR(9), \
         twice INT GENERATED ALWAYS AS (id * 2) STORED) ENGINE = InnoDB; CREATE TABLE mine (id INT PRIMARY KEY, n INT) ENGINE = MyISAM; \
         CREATE TABLE prices (id INT PRIMARY KEY, n DECIMAL(10, 2)) ENGINE = InnoDB; \
         CREATE VIEW seen AS SELECT id, 1 AS n FROM words; CREATE TABLE moments (id TIMESTAMP(3) PRIMARY KEY, n INT) ENGINE = InnoDB; \
         CREATE TABLE posts (id INT, day DATE, n INT NOT NULL, PRIMARY KEY (id, day)) ENGINE = InnoDB; \
         CREATE TABLE users (id INT PRIMARY KEY, n INT) ENGINE = InnoDB; CREATE TABLE users_n (id INT PRIMARY KEY, count INT) ENGINE = InnoDB; \
         INSERT INTO users_n VALUES (1, 7)",
    );
    for (arguments, message, hint) in [
        (&["nothing.n"][..], "the database has no table nothing", "give TABLE.COLUMN"),
        (&["words.nothing"], "the column is missing, no integer or generated", "correct it"),
        (&["words.n"], "the column is missing, no integer or generated", "correct it"),
        (&["words.twice"], "the column is missing, no integer or generated", "correct it"),
        (&["plain.n"], "plain has no primary key", "add a primary key"),
        (&["mine.n"], "its table is not InnoDB", "correct it"),
        (&["prices.n"], "the column is missing, no integer or generated", "correct it"),
        (&["seen.n"], "seen has no primary key", "add a primary key"),
        (&["moments.n"], "cannot be the key of a package", "another unique index"),
        (&["users.n"], "the table is missing or differs", "no routine has been changed"),
        (&["posts.n", "--key", "id INT"], "the key is not unique", "no routine has been changed"),
        (&["words"], "expected TABLE.COLUMN", ""),
    ] {
        let said = fails(&schema, &[&["install", "--column"], arguments].concat());
        assert!(said.contains(message) && said.contains(hint), "{arguments:?}: {said}");
        assert!(said.contains("has been changed") || hint.is_empty(), "{arguments:?}: {said}");
    }
    let said = fails(&schema, &["install", "counters", "--column", "words.id"]);
    assert!(said.contains("use the package slotted_counters"), "{said}");
    let left = "SELECT (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()), SUM(count) FROM users_n";
    assert_eq!(schema.first::<(u64, u64)>(left), (0, 7));
    succeeds(&schema, &["install", "--column", "users.n", "--table", "users_slots"]);
}

/// The names of a package are those of the table and the column, with an underscore between them.
fn a_package_of_another_column_is_not_replaced(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE user_post (id INT PRIMARY KEY, `count` INT NOT NULL) ENGINE = InnoDB; CREATE TABLE user (id INT PRIMARY KEY, post_count INT NOT NULL) ENGINE = InnoDB");
    succeeds(&schema, &["install", "--column", "user_post.count"]);
    let said = fails(&schema, &["install", "--column", "user.post_count"]);
    assert!(
        said.contains("the package of user_post.count has these names")
            && said.contains("choose another --table and --prefix"),
        "{said}"
    );
    succeeds(&schema, &["install", "--column", "user.post_count", "--table", "user_posts", "--prefix", "user_posts_"]);
    // A second package would have a part of the counts.
    let said = fails(&schema, &["install", "--column", "user_post.count", "--table", "more", "--prefix", "more_"]);
    assert!(said.contains("the package of the view user_post_count_package already counts user_post.count"), "{said}");
}

/// The last roll-up would execute the function of a view, and two rows with one id would both get the counts.
fn uninstall_stops_if_the_table_is_a_view_or_the_key_is_not_unique(server: &Server) {
    for (change, message, sums) in [
        (
            "RENAME TABLE articles_views TO moved; CREATE VIEW articles_views AS SELECT id, slot, `count` FROM moved",
            "table articles_views: differs",
            (5, 3),
        ),
        (
            "ALTER TABLE articles DROP PRIMARY KEY; INSERT INTO articles VALUES (1, 20)",
            "the key is not unique",
            (25, 3),
        ),
    ] {
        let schema = server.schema();
        schema.run(ARTICLES);
        succeeds(&schema, &["install", "--column", "articles.views"]);
        schema.run(&format!("CALL articles_views_add(1, 3); {change}"));
        for more in [&[][..], &["--with-data", "--yes"]] {
            let said = fails(&schema, &[&["uninstall"], more].concat());
            assert!(said.contains(message) && said.contains("nothing has been changed"), "{said}");
        }
        let script = schema.client().pipe(&[], &schema.file(&package(), "create_procedures.sql"));
        assert!(!script.success, "{script:?}");
        let found =
            "SELECT CAST(SUM(views) AS SIGNED), (SELECT CAST(SUM(count) AS SIGNED) FROM articles_views) FROM articles";
        assert_eq!(schema.first::<(i64, i64)>(found), sums);
    }
}

/// A total beyond the type of the column, a negative one, a CHECK, and a renamed column. What remains is listed and is in the table.
fn uninstall_ends_whatever_the_total_of_a_record_is(server: &Server) {
    for (change, add, views) in [
        ("DO 0", 100, "250,7"),
        ("DO 0", -251, "250,7"),
        ("ALTER TABLE articles ADD CONSTRAINT few CHECK (views < 252)", 2, "250,7"),
        ("ALTER TABLE articles RENAME COLUMN views TO seen", 1, ""),
    ] {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views TINYINT UNSIGNED NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 250), (2, 0)");
        schema.install(&package());
        schema.run(&format!("CALL articles_views_add(1, {add}); CALL articles_views_add(2, 7); {change}"));
        if views.is_empty() {
            // Nothing could be moved: the command stops before it changes anything.
            let said = fails(&schema, &["uninstall"]);
            assert!(said.contains("the column is missing") && said.contains("source uninstall.sql"), "{said}");
        }
        let said = schema.client().pipe(&[], &schema.file(&package(), "uninstall.sql"));
        assert!(said.success && said.stdout.contains(&format!("1\t{add}")), "{change}: {said:?}");
        assert_eq!(
            schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM articles_views WHERE id = 1"),
            add,
            "{change}"
        );
        if !views.is_empty() {
            assert_eq!(
                schema.first::<String>("SELECT GROUP_CONCAT(views ORDER BY id) FROM articles"),
                views,
                "{change}"
            );
        }
        let left: Vec<String> = schema.query(
            "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()
              UNION ALL SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()",
        );
        assert!(left.is_empty(), "{change}: {left:?}");
    }
}

fn status_names_what_a_column_has_lost(server: &Server) {
    let schema = server.schema();
    schema.run(ARTICLES);
    let event = succeeds(&schema, &["install", "--column", "articles.views"]);
    let event = event
        .lines()
        .find_map(|line| line.trim().strip_suffix(";;").filter(|line| line.starts_with("CREATE EVENT")))
        .expect("an event");
    schema.connect().query_drop(event).expect(event);
    let scheduler: String = schema.first("SELECT @@GLOBAL.event_scheduler");
    for (change, words, undo) in [
        (
            "ALTER TABLE articles RENAME COLUMN views TO seen",
            "table articles_views: differs",
            "ALTER TABLE articles RENAME COLUMN seen TO views",
        ),
        (
            "ALTER TABLE articles ADD at TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
            "each roll-up changes articles.at, which has ON UPDATE",
            "ALTER TABLE articles DROP COLUMN at",
        ),
        (
            "ALTER EVENT articles_views_rollup DISABLE",
            "the event articles_views_rollup is DISABLED",
            "ALTER EVENT articles_views_rollup ENABLE",
        ),
    ] {
        schema.run(change);
        let output = slotted(&schema, &["status"]);
        assert!(output.status.code() == Some(1) && printed(&output).contains(words), "{change}: {}", printed(&output));
        schema.run(undo);
        let output = slotted(&schema, &["status"]);
        let (code, said) = (output.status.code(), printed(&output));
        assert_eq!(
            (code, said.contains("the event scheduler is not ON")),
            (Some(i32::from(scheduler != "ON")), scheduler != "ON"),
            "{said}"
        );
        assert!(!said.contains(words), "{undo}: {said}");
    }
}

fn a_package_without_an_event_is_removed_without_the_privilege_event(server: &Server) {
    let schema = server.schema();
    let user = format!("{}_e", schema.name);
    schema.run(&format!(
        "{ARTICLES}; CREATE USER '{user}'@'%'; GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EXECUTE \
         ON {}.* TO '{user}'@'%'",
        schema.ident()
    ));
    let package = of_column("articles.views", "id INT", |options| options.function = false);
    let mut connection = Conn::new(schema.options().user(Some(&user)).pass(None::<&str>)).expect("a connection");
    for statement in
        ["setup.sql", "uninstall.sql"].iter().flat_map(|file| script::statements(&schema.file(&package, file)))
    {
        connection.query_drop(&statement).unwrap_or_else(|error| panic!("{error} in {statement}"));
    }
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()"), 0);
    schema.run(&format!("DROP USER '{user}'@'%'"));
}
