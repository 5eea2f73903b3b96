//! The commands for counts that belong to a column.

use std::collections::BTreeSet;

use slotted::package::Package;
use slotted::render::{Format, files_of};

use crate::installing::ends_as;
use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_families(uninstall_drops_no_table_with_counts_that_are_added_meanwhile)
        .on_servers(a_removal_ends_behind_an_open_transaction_and_is_repeated)
        .on_servers(down_follows_a_migration_that_failed_at_any_statement)
        .on_servers(down_fails_while_counts_are_left)
        .on_servers(down_loses_no_count_that_is_committed_meanwhile)
        .on_servers(each_key_and_each_name_is_counted_by_each_routine)
        .on_servers(text_keys_of_other_character_sets_are_compared_as_in_the_table)
        .on_servers(columns_with_names_in_quotes_are_kept_and_uninstalled)
        .on_one_server(a_package_of_another_column_is_not_replaced)
        .on_families(a_table_that_cannot_have_a_package_is_rejected_with_a_remedy)
        .on_servers(uninstall_ends_whatever_the_total_of_a_record_is)
        .on_families(status_names_what_a_column_has_lost_and_uninstall_stops)
        .on_families(status_names_an_event_that_cannot_run_with_the_statement_that_helps)
        .on_servers(a_package_without_an_event_is_removed_without_the_privilege_event)
        .waits()
        .on_families(a_column_is_moved_and_moved_back_with_three_commands);
}

const ARTICLES: &str = "CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5)";

const INSTALL: &str = "install --column articles.views";

fn articles_views() -> Package {
    of_column("articles.views", "id INT", |_| {})
}

/// A transaction that has counted is open when the package is removed. On MySQL, DROP PROCEDURE waits for it.
fn a_column_is_moved_and_moved_back_with_three_commands(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE articles (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, views INT NOT NULL DEFAULT 0, updated_at TIMESTAMP NOT NULL \
         DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP) ENGINE = InnoDB; \
         INSERT INTO articles (views, updated_at) VALUES (5, '2000-01-01'), (6, '2000-01-01')",
    );
    let said = ends(&schema, 0, INSTALL);
    has(&said, &["with all privileges of your account for its routines"]);
    let line = |start: &str| {
        let line = said.lines().map(str::trim).find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("{start}: {said}")).replace('?', "1")
    };
    schema.run(&line("UPDATE").replace("SET", "SET updated_at = updated_at,"));
    (0..3).for_each(|_| schema.run(&line("CALL articles_views_increment")));
    assert_eq!(schema.first::<i64>(&line("SELECT articles_views_get")), 9);
    assert_eq!(schema.first::<i64>("SELECT views FROM articles WHERE id = 1"), 6);
    schema.run(&line("CALL articles_views_rollup"));
    assert_eq!(schema.first::<(i64, i64)>("SELECT views, YEAR(updated_at) FROM articles WHERE id = 1"), (9, 2000));
    has(&ends(&schema, 0, INSTALL), &["nothing to do"]);
    schema.run("CALL articles_views_add(77, 2)");
    has(&ends(&schema, 0, "status articles.views"), &["articles.views: 2 pending counts of 1 records"]);
    let event = "CREATE EVENT articles_views_rollup ON SCHEDULE EVERY 1 DAY STARTS '2037-01-01' DO CALL articles_views_rollup(NULL)";
    schema.run(event);
    let all = schema.objects();
    let mut open = schema.after(&["START TRANSACTION", "CALL articles_views_add(2, 4)"]);
    let removed = thread::scope(|scope| {
        let removed = scope.spawn(|| ends(&schema, 0, "uninstall articles.views"));
        thread::sleep(Duration::from_millis(1500));
        open.query_drop("COMMIT").expect("a commit");
        removed.join().expect("a removal")
    });
    let why =
        "in the table, because they have no row, the column rejects the counts, or there was no roll-up: 1\n  77: 2\n";
    has(&removed, &[why, "drop event articles_views_rollup\n"]);
    assert_eq!(schema.query::<i64>("SELECT views FROM articles ORDER BY id"), [9, 10]);
    assert_eq!(schema.objects(), 2);
    let dropped: Vec<_> = removed.lines().filter(|line| line.starts_with("drop ")).collect();
    assert_eq!((dropped.len(), dropped.iter().collect::<BTreeSet<_>>().len()), (all - 2, all - 2), "{removed}");
    // Counts that cannot be moved are not dropped, all others are moved, also by a roll-up that runs as the caller.
    ends(&schema, 0, &format!("{INSTALL} --security invoker"));
    schema.run("CALL articles_views_add(1, 5)");
    has(&ends(&schema, 2, "uninstall articles.views --with-data --yes"), &["DROP TABLE `articles_views`"]);
    let counts = "SELECT CAST(SUM(count) AS SIGNED), (SELECT views FROM articles WHERE id = 1) FROM articles_views";
    assert_eq!(schema.first::<(i64, i64)>(counts), (2, 14));
    has(&ends(&schema, 2, "uninstall articles.views"), &["has no package with the name articles.views"]);
    ends(&schema, 0, INSTALL);
    schema.run(&format!("DROP PROCEDURE articles_views_rollup; {event}"));
    has(&ends(&schema, 0, "uninstall"), &[why, "drop event articles_views_rollup\n"]);
}

/// A plain statement needs no routine.
fn uninstall_drops_no_table_with_counts_that_are_added_meanwhile(server: &Server) {
    for _ in 0..3 {
        let schema = server.schema();
        schema.run(&format!("{ARTICLES}; UPDATE articles SET views = 0"));
        ends(&schema, 0, INSTALL);
        let counted = AtomicI64::new(0);
        let add = |connection: &mut Conn, _| {
            let add = "INSERT INTO articles_views VALUES (1, 3, 1) ON DUPLICATE KEY UPDATE count = count + 1";
            match connection.query_drop(add) {
                Ok(()) => _ = counted.fetch_add(1, SeqCst),
                lost => assert_eq!(error_of(lost).0, 1146),
            }
        };
        let uninstall = || schema.slotted("uninstall articles.views --with-data --yes").output().expect("slotted runs");
        let said = beside([schema.connect(), schema.connect()], add, uninstall);
        let kept = schema.objects() > 1;
        assert_eq!(said.status.code(), Some(if kept { 2 } else { 0 }), "{}", printed(&said));
        let left = if kept { schema.first("SELECT CAST(SUM(count) AS SIGNED) FROM articles_views") } else { 0 };
        assert_eq!(left + schema.first::<i64>("SELECT CAST(SUM(views) AS SIGNED) FROM articles"), counted.into_inner());
    }
}

/// The first transaction has counted, the other one only read. Wherever a run ends, the next one does the rest.
fn a_removal_ends_behind_an_open_transaction_and_is_repeated(server: &Server) {
    let schema = server.schema();
    schema.run(ARTICLES);
    schema.install(&articles_views());
    let run = || run_all(&mut schema.impatient(), &migration(server, &articles_views(), "down.json"));
    let plain = "INSERT INTO articles_views VALUES (1, 600, 7)";
    for used in ["CALL articles_views_add(1, 7)", plain, "SELECT * FROM articles_views"] {
        let (mut open, begin) = (schema.after(&["START TRANSACTION", used]), Instant::now());
        let error = error_of(run());
        assert_eq!(error.0, 1205, "{used}: {error:?}");
        // 2 s for one statement. Without a limit, the default of MariaDB is a day.
        assert!(begin.elapsed() < Duration::from_secs(60), "{used}: {:?}", begin.elapsed());
        open.query_drop("COMMIT").expect("a commit");
    }
    run().expect("the rest");
    assert_eq!((schema.first::<i64>("SELECT views FROM articles"), schema.objects()), (19, 1));
}

/// The statements of a file for migration tools.
fn migration(server: &Server, package: &Package, name: &str) -> Vec<String> {
    let files = files_of(&package.clone().of_family(server.version.family), Format::Statements);
    let file = files.into_iter().find(|file| file.name == name).expect("a file");
    serde_json::from_str(&file.text).expect("JSON")
}

fn down_follows_a_migration_that_failed_at_any_statement(server: &Server) {
    let [up, down] = ["up.json", "down.json"].map(|name| migration(server, &articles_views(), name));
    let event =
        ["CREATE EVENT articles_views_rollup ON SCHEDULE EVERY 1 DAY DO CALL articles_views_rollup(NULL)".to_owned()];
    let schema = server.schema();
    schema.run(ARTICLES);
    for executed in 0..=up.len() {
        let event = if executed == up.len() { &event[..] } else { &[] };
        let result = run_all(&mut schema.connect(), &[&up[..executed], event, &down].concat());
        result.unwrap_or_else(|error| panic!("after {executed} of {}: {error}", up.len()));
        assert_eq!(schema.objects(), 1, "after {executed}");
    }
}

/// A record without a row, and one whose total the column rejects. A named counter, a stock and a record have no column.
fn down_fails_while_counts_are_left(server: &Server) {
    for (package, count, left, clear) in [
        (articles_views(), "add_many('[[77, 2], [1, 3]]')", "77 2", "DELETE FROM articles_views WHERE id = 77"),
        (package(|_| {}), "setup('a', NULL, 3, 7)", "a 7", "CALL counter_delete('a')"),
        (bounded(|_| {}), "setup('b', NULL, 3, 7)", "b 7", "CALL bounded_counter_reset('b', 0, FALSE)"),
        (keyed(|_| {}), "add(1, 2, -5)", "1, 2 -5", "CALL slotted_counter_delete(1, 2)"),
    ] {
        let prefix = package.options.prefix.name();
        let schema = server.schema();
        schema.run(ARTICLES);
        schema.install(&package);
        schema.run(&format!("CALL {prefix}{count}"));
        let run = || run_all(&mut schema.connect(), &migration(server, &package, "down.json"));
        for attempt in 1..=2 {
            let text = format!("the table has counts, move or delete them first: {left}");
            assert_eq!(error_of(run()), (30022, text), "{attempt}");
        }
        schema.run(clear);
        run().expect("the rest");
        assert_eq!(schema.objects(), 1, "{count}");
    }
}

/// A transaction that has counted with a plain statement commits while down waits for it.
fn down_loses_no_count_that_is_committed_meanwhile(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    schema.run("CALL counter_setup('a', NULL, 4, 0)");
    let down = migration(server, &package(|_| {}), "down.json");
    let mut open = schema.after(&["START TRANSACTION", "CALL counter_add('a', 1000)"]);
    let (dropped, ()) = schema.while_waiting(&mut schema.connect(), &down, || run(&mut open, "COMMIT"));
    assert!([30022, 1205].contains(&error_of(dropped).0));
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 1000);
}

/// Creates a table, counts its records by each routine, and rolls them up in batches of each size.
fn tour(schema: &Schema<'_>, [table, column]: [&str; 2], columns: &str, primary: &str, keys: &[&str]) {
    schema.run(&format!(
        "CREATE TABLE `{table}` ({columns}, `{column}` INT NOT NULL, PRIMARY KEY ({primary})) ENGINE = InnoDB"
    ));
    ends(schema, 0, &format!("install --column {table}.{column}"));
    for (at, key) in keys.iter().enumerate() {
        schema.run(&format!("INSERT INTO `{table}` ({primary}, `{column}`) VALUES ({key}, {at})"));
    }
    let what = format!("{table}.{column}, {primary}");
    let json = |key: &str| key.replace("x'", "'").replace('\'', "\"");
    let sql = |calls: &str| {
        let calls = calls.replace("CALL ", &format!("CALL {table}_{column}_"));
        calls.replace("{1}", keys[0]).replace("{2}", keys[1])
    };
    let read = format!("SELECT `{column}`, {table}_{column}_get({primary}) FROM `{table}` ORDER BY 1");
    let found = || schema.query::<(usize, usize)>(&read);
    for (batch, all) in ["-1", "0", "1", "2", "2147483647", "NULL"].into_iter().zip([10, 20, 30, 40, 50, 60]) {
        keys.iter().for_each(|key| schema.run(&sql(&format!("CALL add({key}, 10)"))));
        schema.run(&sql(&format!("CALL rollup({batch})")));
        let moved: Vec<_> = (all..all + keys.len()).map(|total| (total, total)).collect();
        assert_eq!(found(), moved, "{what}, {batch}");
    }
    let many = format!("CALL add_many('[[{}, 4], [{}, 1]]')", json(keys[0]), json(keys[1]));
    for (calls, expected) in [
        (&many[..], [(60, 64), (61, 62)]),
        ("CALL increment({1}); CALL reset({2}, 50); CALL increment({2})", [(60, 65), (61, 51)]),
        ("CALL delete({2}); CALL compact({1})", [(61, 61), (65, 65)]),
    ] {
        schema.run(&sql(calls));
        let found = found();
        assert!(expected.iter().all(|record| found.contains(record)), "{what}: {calls}: {found:?}");
    }
    // A message names the record, whatever its type is.
    schema.run(&sql("CALL add({1}, 1 << 40)"));
    for call in ["CALL rollup(NULL)", "CALL rollup(1)", "CALL compact({1})"] {
        let (number, text) = error_of(schema.connect().query_drop(sql(call)));
        let named = format!("rejects the counts of {}: ", json(keys[0]).replace('"', ""));
        assert!(number == 30013 && text.contains(&named), "{what}: {call}: {number} {text}");
    }
}

/// A parameter or a variable of a routine, and the name of a table in a statement, precede a column of the same name.
fn each_key_and_each_name_is_counted_by_each_routine(server: &Server) {
    let names = "moved, parent, idle_slot, record, number, batch, `locked`, found, free, `end`, own, place, round, `year_month`, `row_number`";
    let [first, second] = [1, 2].map(|last| format!("{}{last}", "7, ".repeat(names.matches(',').count())));
    let text = "slug VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
    let times = ["'2026-11-23 10:00:00', x'00'", "'9999-12-31 00:00:00', x''"];
    for (name, columns, primary, keys) in [
        (["slots", "total"], "id TINYINT UNSIGNED", "id", &["0", "7", "255"][..]),
        (["parent", "moved"], "a INT(5), b BIGINT(20) UNSIGNED", "b, a", &["7, -8", "7, 9", "18446744073709551615, 8"]),
        (["moved", "slot"], text, "slug", &["'b'", "'B'", "'/中'", "'/?'", "''"]),
        (["batch", "count"], "a BINARY(2), day DATE", "a, day", &["x'0001', '2026-11-23'", "x'ff00', '1999-12-31'"]),
        (["found", "pending"], "at DATETIME, b VARBINARY(9)", "at, b", &times),
        (["items", "v_total"], &format!("{} INT", names.replace(',', " INT,")), names, &[&first, &second]),
        (["locked", "p_value"], "id INT", "id", &["1", "2"]),
        // Types of which information_schema has a display width on MySQL, too.
        (["flags", "n"], "flag BOOLEAN, code INT(6) ZEROFILL", "flag, code", &["0, 7", "1, 4294967295"]),
    ] {
        tour(&server.schema(), name, columns, primary, keys);
    }
}

fn text_keys_of_other_character_sets_are_compared_as_in_the_table(server: &Server) {
    for (kind, charset, collation, [ours, equal, other, lacks]) in [
        ("VARCHAR(40)", "latin1", "latin1_swedish_ci", ["Gård", "GÅRD", "Gard", "Кафе"]),
        ("CHAR(36)", "ascii", "ascii_bin", ["a-1", "a-1", "A-1", "ä-1"]),
        ("VARCHAR(40)", "utf8mb3", "utf8mb3_general_ci", ["Кафе", "КАФЕ", "Kafe", "😀"]),
    ] {
        let schema = server.schema();
        schema.run(&format!("ALTER DATABASE CHARACTER SET {charset}"));
        let columns = format!("slug {kind} CHARACTER SET {charset} COLLATE {collation}");
        let keys = [&format!("'{ours}'")[..], &format!("'{other}'"), "'?'"];
        tour(&schema, ["items", "hits"], &columns, "slug", &keys);
        has(&ends(&schema, 0, "install --column items.hits"), &["nothing to do"]);
        // No call counts on another record, such as '?'.
        for call in ["increment('{}')", "add('{}', 1)", "reset('{}', 9)", "add_many('[[\"{}\", 1]]')"] {
            let call = call.replace("{}", lacks);
            assert!(schema.connect().query_drop(format!("CALL items_hits_{call}")).is_err(), "{collation} {call}");
        }
        for call in ["reset('{}', 9)", "add_many('[[\"{}\", 3]]')", "add('{}', 2)", "compact('{}')"] {
            schema.run(&format!("CALL items_hits_{}", call.replace("{}", equal)));
        }
        let found = format!("SELECT hits, items_hits_get('{equal}') FROM items WHERE slug = '{ours}'");
        assert_eq!(schema.first::<(i64, i64)>(&found), (14, 14), "{collation}");
    }
}

/// Columns with ON UPDATE, and dates that strict modes reject.
fn columns_with_names_in_quotes_are_kept_and_uninstalled(server: &Server) {
    let schema = server.schema();
    let timestamp = "TIMESTAMP NULL DEFAULT '2000-01-01' ON UPDATE CURRENT_TIMESTAMP";
    schema.run(&format!(
        "SET sql_mode = ''; CREATE TABLE items (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0, `upd at` {timestamp}, `geändert, am` {timestamp}, `a``'b` {timestamp}, \
         plain {timestamp}, zero DATETIME NOT NULL, part DATE NOT NULL) ENGINE = InnoDB; INSERT INTO items (id, zero, part) VALUES (1, '0000-00-00', '2020-00-00')"
    ));
    let kept = "neither a call nor a roll-up changes `upd at`,`geändert, am`,`a``'b`,plain.\n";
    has(&ends(&schema, 0, "install --column items.n"), &[kept]);
    for call in ["rollup(NULL)", "rollup(1)", "compact(1)"] {
        schema.run(&format!("CALL items_n_increment(1); CALL items_n_{call}"));
    }
    schema.run("CALL items_n_increment(1)");
    assert!(!ends(&schema, 0, "status").contains("changed"));
    ends(&schema, 0, "uninstall items.n");
    let row = "SELECT n, YEAR(`upd at`) + YEAR(`geändert, am`) + YEAR(`a``'b`) + YEAR(plain), CONCAT(zero, ' ', part) FROM items";
    assert_eq!(schema.first::<(i64, i64, String)>(row), (4, 8000, "0000-00-00 00:00:00 2020-00-00".into()));
}

fn a_table_that_cannot_have_a_package_is_rejected_with_a_remedy(server: &Server) {
    let schema = server.schema();
    for (name, rest) in [
        ("plain", "(n INT) ENGINE = InnoDB"),
        ("words", "(id INT PRIMARY KEY, n VARCHAR(9), twice INT GENERATED ALWAYS AS (id * 2) STORED) ENGINE = InnoDB"),
        ("mine", "(id INT PRIMARY KEY, n INT) ENGINE = MyISAM"),
        ("prices", "(id INT PRIMARY KEY, n DECIMAL(10, 2)) ENGINE = InnoDB"),
        ("floats", "(id INT PRIMARY KEY, n FLOAT(10, 0)) ENGINE = InnoDB"),
        ("moments", "(id TIMESTAMP(3) PRIMARY KEY, n INT) ENGINE = InnoDB"),
        ("posts", "(id INT, day DATE, n INT NOT NULL, PRIMARY KEY (id, day)) ENGINE = InnoDB"),
        ("pools", "(Value INT PRIMARY KEY, n INT) ENGINE = InnoDB"),
        ("pages", "(V_id INT PRIMARY KEY, n INT) ENGINE = InnoDB"),
        ("stamps", "(id INT PRIMARY KEY, n INT, `am, at` TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP) ENGINE = InnoDB"),
        ("notes", "(id INT PRIMARY KEY, n INT, `a\nb` TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP) ENGINE = InnoDB"),
        ("wide", "(id CHAR(9) CHARACTER SET utf16 PRIMARY KEY, n INT) ENGINE = InnoDB"),
        ("users", "(id INT PRIMARY KEY, n INT) ENGINE = InnoDB"),
        ("users_n", "(id INT PRIMARY KEY, count INT) ENGINE = InnoDB"),
    ] {
        schema.run(&format!("CREATE TABLE {name} {rest}"));
    }
    schema.run("CREATE VIEW seen AS SELECT id, 1 AS n FROM words; INSERT INTO users_n VALUES (1, 7)");
    let (column, unchanged) = ("the column is missing, generated or not an integer", "no routine has been changed");
    for (arguments, message, hint) in [
        ("notes.n", "a name must not contain the control character U+000A", "rename the column"),
        ("nothing.n", "the database has no table nothing", "give TABLE.COLUMN"),
        ("words.nothing", column, "correct it"),
        ("words.n", column, "correct it"),
        ("words.twice", column, "correct it"),
        ("plain.n", "plain has no primary key", "add a primary key"),
        ("mine.n", "its table is not InnoDB", "correct it"),
        ("prices.n", column, "correct it"),
        ("floats.n", column, "correct it"),
        ("seen.n", "seen has no primary key", "add a primary key"),
        ("moments.n", "cannot be the key of a package", "another unique index"),
        ("users.n", "the table is missing or differs", unchanged),
        ("posts.n --key 'id INT'", "the key is not unique", unchanged),
        ("stamps.n --key 'id INT'", "each roll-up would change a column with ON UPDATE", unchanged),
        ("wide.n", "no connection can have the character set", "change the collation"),
        ("words", "expected TABLE.COLUMN", ""),
        ("pools.n", "a key column cannot be named 'Value'", ""),
        ("pages.n", "a key column cannot be named 'V_id'", ""),
        ("words.id counters", "use the package slotted_counters", ""),
    ] {
        let unchanged = if hint.is_empty() { "" } else { "has been changed" };
        has(&ends(&schema, 2, &format!("install --column {arguments}")), &[message, hint, unchanged]);
    }
    assert_eq!((schema.objects(), schema.first::<i64>("SELECT count FROM users_n")), (15, 7));
    ends(&schema, 0, "install --column users.n --table users_slots");
}

/// The names of a package are those of the table and the column, with an underscore between them.
fn a_package_of_another_column_is_not_replaced(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE user_post (id INT PRIMARY KEY, `count` INT NOT NULL) ENGINE = InnoDB; CREATE TABLE user (id INT PRIMARY KEY, post_count INT NOT NULL) ENGINE = InnoDB");
    ends(&schema, 0, "install --column user_post.count");
    let why = ["the package of user_post.count has these names", "choose another --table and --prefix"];
    has(&ends(&schema, 2, "install --column user.post_count"), &why);
    ends(&schema, 0, "install --column user.post_count --table user_posts --prefix user_posts_");
    // A second package would have a part of the counts.
    let why = "the package of the view user_post_count_package already counts user_post.count";
    has(&ends(&schema, 2, "install --column user_post.count --table more --prefix more_"), &[why]);
}

/// A total beyond the type of the column, and a renamed column. What remains is listed and is in the table.
fn uninstall_ends_whatever_the_total_of_a_record_is(server: &Server) {
    let rename = "ALTER TABLE articles RENAME COLUMN views TO seen";
    for (change, column, add, second) in [("DO 0", "views", 100, 7), (rename, "seen", 1, 0)] {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views TINYINT UNSIGNED NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 250), (2, 0)");
        schema.install(&articles_views());
        schema.run(&format!("CALL articles_views_add(1, {add}); CALL articles_views_add(2, 7); {change}"));
        if change == rename {
            // Nothing could be moved: the command stops before it changes anything.
            has(&ends(&schema, 2, "uninstall"), &["the column is missing", "source uninstall.sql"]);
        }
        let said = schema.client().pipe(&[], &schema.file(&articles_views(), "uninstall.sql"));
        assert!(said.success && said.stdout.contains(&format!("1\t{add}")), "{change}: {said:?}");
        let pending = "SELECT CAST(SUM(count) AS SIGNED) FROM articles_views WHERE id = 1";
        assert_eq!((schema.first::<i64>(pending), schema.objects()), (add, 2), "{change}");
        assert_eq!(schema.query::<i64>(&format!("SELECT {column} FROM articles ORDER BY id")), [250, second]);
    }
}

/// The last roll-up would execute the function of a view, and two rows with one id would both get the counts.
fn status_names_what_a_column_has_lost_and_uninstall_stops(server: &Server) {
    let schema = server.schema();
    schema.run(ARTICLES);
    ends(&schema, 0, INSTALL);
    schema.run("CALL articles_views_add(1, 3)");
    let (differs, not_unique) = ("table articles_views: differs: ", "articles is not a table with a key");
    let [renamed, back] = [("views", "seen"), ("seen", "views")]
        .map(|(from, to)| format!("ALTER TABLE articles RENAME COLUMN {from} TO {to}"));
    let viewed = "RENAME TABLE articles_views TO moved; CREATE VIEW articles_views AS SELECT * FROM moved";
    let twice = "ALTER TABLE articles DROP PRIMARY KEY; INSERT INTO articles VALUES (1, 20)";
    let once = "DELETE FROM articles WHERE views = 20; ALTER TABLE articles ADD PRIMARY KEY (id)";
    let stamped = "ALTER TABLE articles ADD at TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP";
    for (change, words, undo) in [
        (&renamed[..], differs, &back[..]),
        (viewed, differs, "DROP VIEW articles_views; RENAME TABLE moved TO articles_views"),
        ("RENAME TABLE articles TO h", "differs: the table articles is missing", "RENAME TABLE h TO articles"),
        (twice, not_unique, once),
        (stamped, "each roll-up would change a column with ON UPDATE", "ALTER TABLE articles DROP COLUMN at"),
    ] {
        schema.run(change);
        has(&ends(&schema, 1, "status"), &[words]);
        if change != stamped {
            for words in ["uninstall", "uninstall --with-data --yes"] {
                has(&ends(&schema, 2, words), &["nothing has been changed"]);
            }
            let script = schema.client().pipe(&[], &schema.file(&articles_views(), "create_procedures.sql"));
            assert!(!script.success, "{change}: {script:?}");
        }
        schema.run(undo);
        ends(&schema, 0, "status");
        assert_eq!(schema.first::<(i64, i64)>("SELECT views, articles_views_get(1) FROM articles"), (5, 8), "{change}");
    }
    schema.run("RENAME TABLE articles_views TO hidden");
    has(&ends(&schema, 2, "uninstall"), &["counts can remain in a table that was renamed"]);
}

/// The server writes into its error log alone why an event does not run. Each remedy is executed as printed.
fn status_names_an_event_that_cannot_run_with_the_statement_that_helps(server: &Server) {
    let schema = server.schema();
    schema.run(ARTICLES);
    let said = ends(&schema, 0, INSTALL);
    let event = said.lines().map(str::trim).find(|line| line.starts_with("CREATE EVENT")).expect("an event");
    let definer = Account::new(&schema, "d", "USAGE");
    let (place, name) = (format!("`{}`", schema.name.replace('_', "\\_")), format!("'{}'@'%'", definer.name));
    schema.run(&format!("GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE, EVENT ON {place}.* TO {name}"));
    let definer = format!("DEFINER = {name} EVENT");
    schema.after(&[&event.trim_end_matches(';').replace("10 SECOND", "7 HOUR").replace("EVENT", &definer)]);
    let event = format!("{definer} articles_views_rollup");
    let scheduler_is_on = schema.first::<String>("SELECT @@GLOBAL.event_scheduler") == "ON";
    let said = ends(&schema, i32::from(!scheduler_is_on), "status");
    assert_eq!(said.contains("the event scheduler is not ON"), !scheduler_is_on, "{said}");
    let sees = Account::new(&schema, "s", "SELECT, SHOW VIEW, EVENT, EXECUTE");
    if server.is_mysql() {
        schema.run(&format!("GRANT SHOW_ROUTINE ON *.* TO '{}'@'%'", sees.name));
    }
    let said = ends_as(&sees, &schema, 2, "status");
    has(&said, &["event articles_views_rollup: this account cannot see it"]);
    schema.run(rest_of_line(&said, "To see it, run as an administrator: "));
    let revoke = |privileges: &str| format!("REVOKE {privileges} ON {place}.* FROM {name}");
    if server.is_mysql() {
        // The event runs with the privileges of a default role.
        let (role, both) = (format!("'{}_r'@'%'", schema.name), "EVENT, EXECUTE");
        schema.run(&format!("CREATE ROLE {role}; GRANT {both} ON {place}.* TO {role}; {}", revoke(both)));
        schema.run(&format!("GRANT {role} TO {name}; ALTER USER {name} DEFAULT ROLE {role}"));
        ends(&schema, 0, "status");
        schema.run(&format!("DROP ROLE {role}; GRANT {both} ON {place}.* TO {name}"));
    }
    let routine = format!("GRANT EXECUTE ON PROCEDURE articles_views_rollup TO {name}");
    let schedule = |when: &str| format!("ALTER {event} ON SCHEDULE EVERY 7 HOUR STARTS {when} ON COMPLETION PRESERVE");
    for (change, words) in [
        (revoke("EVENT"), "which lacks EVENT"),
        (revoke("EVENT, EXECUTE"), "which lacks EVENT, EXECUTE"),
        (format!("{}; {routine}", revoke("EVENT, EXECUTE")), "which lacks EVENT\n"),
        (schedule("'2037-01-01'"), "does not begin before 2037-01-01 00:00:00"),
        (schedule("NOW() - INTERVAL 9 DAY ENDS NOW() + INTERVAL 1 SECOND"), "has ended at "),
        (format!("ALTER {event} DISABLE"), "is DISABLED"),
        (format!("ALTER {event} DO DROP TABLE articles"), "calls something else than BEGIN SET autocommit = 1"),
        (format!("ALTER {event} ENABLE; DROP USER {name}"), "which does not exist"),
    ] {
        schema.run(&change);
        thread::sleep(Duration::from_millis(if words.contains("ended") { 2100 } else { 0 }));
        has(&ends_as(&sees, &schema, 1, "status"), &[words]);
        let said = ends(&schema, 1, "status");
        let remedy: Vec<_> = said.lines().filter(|line| line.starts_with("    ")).collect();
        assert!(schema.client().pipe(&[], &(remedy.join("\n") + ";\n")).success, "{remedy:?}");
        let said = printed(&schema.slotted("status").output().expect("slotted runs"));
        assert!(!said.contains(words.trim()), "{change}: {said}");
    }
}

fn a_package_without_an_event_is_removed_without_the_privilege_event(server: &Server) {
    let schema = server.schema();
    schema.run(ARTICLES);
    let privileges =
        "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EXECUTE";
    let account = Account::new(&schema, "e", privileges);
    let package = of_column("articles.views", "id INT", |options| options.function = false);
    let source = |name| source(&mut account.connect(), &schema.file(&package, name)).expect(name);
    ["setup.sql", "uninstall.sql"].into_iter().for_each(source);
    assert_eq!(schema.objects(), 2);
}
