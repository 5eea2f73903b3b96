//! `slotted adopt`: no count is lost or counted twice, whatever else happens, and a rejected move changes nothing.

use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Value};
use rand::RngExt;
use slotted::package::{Options, Slots};

use super::advise::{printed, url};
use crate::support::{
    Module, SESSIONS, Schema, Server, bounded, keyed, measured, package, repeatable, sql_blocks,
};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_moved_row_loses_no_increment)
        .on_families(a_rejected_move_changes_nothing)
        .on_servers(a_value_that_a_statement_compares_with_a_limit_is_not_set_to_0)
        .on_servers(a_count_that_something_else_depends_on_is_not_moved)
        .on_families(what_is_left_to_a_limit_is_moved)
        .on_families(a_counter_of_another_row_is_rejected)
        .on_servers(a_column_is_moved_with_any_key)
        .on_families(keys_that_the_package_would_add_up_are_rejected)
        .on_servers(a_column_becomes_named_counters)
        .on_servers(tables_of_known_designs_are_moved)
        .on_servers(a_killed_move_is_completed_by_another_one)
        .on_families(an_interrupted_move_ends_after_a_batch)
        .on_servers(the_order_of_a_cut_over_loses_no_count)
        .on_families(a_move_is_not_much_slower_than_an_insert)
        .private()
        .on_servers(a_row_that_meets_the_condition_later_keeps_its_count);
}

/// The command with its arguments, for a schema.
fn command(schema: &Schema<'_>, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    command.args(["adopt", "--url", &url(schema.server, schema)]).args(arguments);
    command.stdin(Stdio::null());
    command
}

fn adopt(schema: &Schema<'_>, arguments: &[&str]) -> Output {
    command(schema, arguments).output().expect("slotted runs")
}

/// A move that succeeds.
#[track_caller]
pub fn moves(schema: &Schema<'_>, arguments: &[&str]) -> String {
    let output = adopt(schema, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", printed(&output));
    printed(&output)
}

/// The arguments for a row of `pages`.
fn row<'a>(condition: &'a str, column: &'a str, name: &'a str) -> Vec<&'a str> {
    vec!["--table", "pages", "--column", column, "--where", condition, "--counter", name]
}

/// Checks that a move fails with a message and a hint, and that these tables keep their rows.
#[track_caller]
fn rejected(schema: &Schema<'_>, arguments: &[&str], tables: &[&str], message: &str, hint: &str) {
    let rows = || -> Vec<Vec<Vec<Value>>> {
        tables.iter().map(|table| schema.rows(&table.parse().expect("a name"))).collect()
    };
    let before = rows();
    let output = adopt(schema, arguments);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert!(text.contains(message) && text.contains(&format!("hint: {hint}")), "{arguments:?}: {text}");
    assert_eq!(rows(), before, "{message}");
}

fn a_moved_row_loses_no_increment(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CREATE TABLE pages (id INT PRIMARY KEY, hits INT NULL) ENGINE = InnoDB; INSERT INTO pages VALUES (1, NULL)");
    let arguments = [&row("id = 1", "hits", "pages")[..], &["--slots", "9"]].concat();
    moves(&schema, &arguments);
    let done: u64 = thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = schema.connect();
                    let update = "UPDATE pages SET hits = hits + 1 WHERE id = 1";
                    (0..100).filter(|_| connection.query_drop(update).map_err(repeatable).is_ok()).count() as u64
                })
            })
            .collect();
        (0..4).for_each(|_| _ = moves(&schema, &arguments));
        writers.into_iter().map(|writer| writer.join().expect("a writer")).sum()
    });
    moves(&schema, &arguments);
    let totals: (u64, u64, u64) = schema.first("SELECT total, slots, (SELECT hits FROM pages) FROM counter_totals");
    assert_eq!(totals, (done, 9, 0));
    assert!(done > 700);
}

/// The engines of a server without transactions.
fn engines(server: &Server) -> &'static [&'static str] {
    if server.is_mysql() { &["MyISAM"] } else { &["MyISAM", "Aria"] }
}

fn a_rejected_move_changes_nothing(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE TABLE pages (id INT PRIMARY KEY, hits INT, name VARCHAR(9), price DECIMAL(9, 2), twice INT AS (CHAR_LENGTH(name) * 2),
                             site INT NULL, note LONGTEXT) ENGINE = InnoDB;
         INSERT INTO pages (id, hits, name, price) VALUES (1, 5, 'x', 1.5), (2, 6, 'y', 2);
         CREATE VIEW seen AS SELECT * FROM pages",
    );
    let all = |arguments: &[&str], message: &str, hint: &str| rejected(&schema, arguments, &["pages"], message, hint);
    let of_row = |condition: &str, column: &str, message: &str, hint: &str| {
        rejected(&schema, &row(condition, column, "pages"), &["pages"], message, hint);
    };
    of_row("id = 1", "hits", "has no package", "run slotted install in this database first");
    schema.install(&package(|_| {}));
    of_row("id > 0", "hits", "the condition matches more than one row of", "give a --where");
    of_row("id = 3", "hits", "the condition matches no row of", "give a --where");
    of_row("id = 1", "name", "is varchar: a counter counts integers", "ALTER TABLE");
    of_row("id = 1", "price", "is decimal: a counter counts integers", "ALTER TABLE");
    of_row("id = 1", "note", "is longtext: a counter counts integers", "ALTER TABLE");
    of_row("id = 1", "no_such", "has no column no_such", "correct the name");
    of_row("id = 1", "twice", "is a generated column", "give the column");
    of_row("no_such = 1", "hits", "cannot read the row", "remove the cause");
    let view = ["--table", "seen", "--column", "hits", "--where", "id = 1", "--counter", "pages"];
    all(&view, "is a view", "give the table");
    let long = "x".repeat(101);
    all(&row("id = 1", "hits", &long), "at most 100 characters", "give a shorter --counter");
    all(&["--from", "pages.price"], "is decimal: a counter counts integers", "ALTER TABLE");
    all(&["--from", "pages"], "is not a table of a known design", "give the column");
    all(&["--from", "nothing.hits"], "there is no table", "give the table");
    all(&["--from", "pages.hits", "--name", "REPEAT(name, 101)"], "at most 100 characters", "give an expression");
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM counters"), 0);
    all(&["--from", "pages.hits", "--key", "id"], "no suitable package", "a row needs");

    schema.install(&keyed(|options| {
        options.key = "site INT, page BIGINT".parse().expect("a key");
        options.rollups = vec!["site=1:pages.id:site".parse().expect("a roll-up")];
    }));
    all(&["--from", "pages.hits", "--key", "id"], "no value for the key column page", "add --key");
    all(&["--from", "pages.hits", "--key", "no_such,id"], "has no column no_such", "add --key");
    all(&["--from", "pages.hits", "--key", "site,id"], "2 rows of", "give these rows a key");
    all(&["--from", "pages.hits", "--key", "name,id"], "of type varchar cannot be the key column site", "render the package");
    all(&["--from", "pages.site", "--key", "1,id"], "a roll-up writes", "leave the counts in the column");
    all(&["--from", "slotted_counters", "--key", "1,site"], "is the table of a package", "a count is moved");
    // A key that is too long for its column, in the second batch.
    schema.run("ALTER TABLE pages MODIFY id BIGINT; INSERT INTO pages (id, hits) VALUES (3, 4), (3000000000, 7)");
    let before: Vec<Vec<Value>> = schema.rows(&"pages".parse().expect("a name"));
    let output = adopt(&schema, &["--from", "pages.hits", "--key", "id,1", "--batch", "3"]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(printed(&output).contains("hint: a value does not fit the package"), "{}", printed(&output));
    let after = schema.rows(&"pages".parse().expect("a name"));
    assert_eq!(after.last(), before.last());
    assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM slotted_counters"), 5 + 6 + 4);

    for engine in engines(server) {
        schema.run(&format!("ALTER TABLE pages ENGINE = {engine}"));
        let message = format!("uses the engine {engine}, which has no transactions");
        let hint = format!("ALTER TABLE {}.pages ENGINE = InnoDB", schema.name);
        all(&row("id = 1", "hits", "pages"), &message, &hint);
        all(&["--from", "pages.hits", "--key", "1,id"], &message, &hint);
        schema.run(&format!("ALTER TABLE pages ENGINE = InnoDB; ALTER TABLE counters ENGINE = {engine}"));
        let hint = format!("ALTER TABLE {}.counters ENGINE = InnoDB", schema.name);
        all(&row("id = 1", "hits", "pages"), &message, &hint);
        schema.run("ALTER TABLE counters ENGINE = InnoDB");
    }
}

/// The rule of a coupon: at most 500 uses, also while instances of the application execute the old statement.
fn a_value_that_a_statement_compares_with_a_limit_is_not_set_to_0(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&bounded(|_| {}));
    schema.run(
        "CREATE TABLE pages (id INT PRIMARY KEY, used INT NOT NULL, max_uses INT NOT NULL, stock INT NOT NULL, seen INT NOT NULL,
                             checked INT NOT NULL, CHECK (checked < 100)) ENGINE = InnoDB;
         INSERT INTO pages VALUES (7, 0, 500, 500, 5, 5);
         CREATE TRIGGER of_seen BEFORE DELETE ON pages FOR EACH ROW
           UPDATE pages SET seen = seen + 1 WHERE id = OLD.id AND seen < 9",
    );
    let tables = ["pages", "counters", "bounded_counters"];
    let uses = "UPDATE pages SET used = used + 1 WHERE id = 7 AND used < max_uses";
    let takes = "UPDATE pages SET stock = stock - 1 WHERE id = 7 AND stock >= 1";
    let prefix = |package: &'static str| ["--prefix", package];
    let of = |column: &'static str, more: &[&'static str]| {
        [&row("id = 7", column, column)[..], more].concat()
    };
    let hint = "if the column must not exceed a limit, use a bounded package with --limit";
    for (column, what) in [("checked", "CHECK ("), ("seen", "TRIGGER of_seen: UPDATE pages SET seen")] {
        let message = format!(".pages.{column}, which the move sets to 0: {what}");
        rejected(&schema, &of(column, &prefix("counter_")), &tables, &message, hint);
    }

    // On a server that has run many promises, the table of digests has no place for other statements, as adopt warns.
    let full = "SELECT COUNT(*) >= @@performance_schema_digests_size FROM performance_schema.events_statements_summary_by_digest";
    if server.is_mysql() && schema.first::<bool>(full) {
        schema.run("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest");
    }
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let sold = AtomicU64::new(0);
    // The server shows the statements that run, if it does not keep those of the past. A transaction keeps them waiting.
    let mut holder = schema.connect();
    holder.query_drop("START TRANSACTION").expect("a transaction");
    holder.query_drop("SELECT id FROM pages WHERE id = 7 FOR UPDATE").expect("the lock");
    let count = |statement: &'static str, done: &AtomicU64| {
        let mut connection = schema.connect();
        while !stop.load(SeqCst) {
            connection.query_drop(statement).map_err(repeatable).ok();
            done.fetch_add(connection.affected_rows(), SeqCst);
            thread::sleep(Duration::from_millis(20));
        }
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            let (count, done, sold) = (&count, &done, &sold);
            scope.spawn(move || count(uses, done));
            scope.spawn(move || count(takes, sold));
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            if server.is_mysql() {
                // The digest of a statement exists when it has ended.
                holder.query_drop("ROLLBACK").expect("a rollback");
                thread::sleep(Duration::from_millis(100));
            }
            thread::sleep(Duration::from_millis(100));
            let arguments = of("used", &prefix("counter_"));
            let output = adopt(&schema, &arguments);
            assert!(printed(&output).contains(".pages.used, which the move sets to 0: UPDATE"), "{}", printed(&output));
            let output = adopt(&schema, &of("used", &prefix("bounded_counter_")));
            assert!(printed(&output).contains("hint: if the column has an upper limit, add --limit"), "{}", printed(&output));
            let output = adopt(&schema, &of("stock", &prefix("counter_")));
            assert!(printed(&output).contains(".pages.stock, which the move sets to 0: UPDATE"), "{}", printed(&output));
            let output = adopt(&schema, &of("used", &["--limit", "stock", "--prefix", "bounded_counter_"]));
            assert!(printed(&output).contains(".pages.used, which the move sets to `stock`: UPDATE"), "{}", printed(&output));
            holder.query_drop("ROLLBACK").expect("a rollback");
            moves(&schema, &of("used", &["--limit", "max_uses"]));
            moves(&schema, &of("stock", &prefix("bounded_counter_")));
            // The instances that are replaced.
            let mut connection = schema.connect();
            for (name, done) in [("used", &done), ("stock", &sold)] {
                for _ in 0..10 {
                    if connection.query_drop(format!("CALL bounded_counter_take('{name}', 1)")).is_ok() {
                        done.fetch_add(1, SeqCst);
                    }
                }
            }
            thread::sleep(Duration::from_millis(100));
        }));
        stop.store(true, SeqCst);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let left: (u64, u64) = schema.first("SELECT CAST(bounded_counter_get('used') AS UNSIGNED), CAST(bounded_counter_get('stock') AS UNSIGNED)");
    let rows: (u64, u64) = schema.first("SELECT used, stock FROM pages");
    assert_eq!((rows, left), ((500, 0), (500 - done.load(SeqCst), 500 - sold.load(SeqCst))));
    assert!(done.load(SeqCst) > 0 && sold.load(SeqCst) > 0);

    // A statement that the application does not execute any more.
    schema.run("ALTER TABLE pages DROP COLUMN stock");
    let moved = [&of("seen", &["--despite-comparisons"])[..], &prefix("counter_")].concat();
    moves(&schema, &moved);
    assert_eq!(schema.first::<i64>("SELECT counter_get('seen')"), 5);
}

/// Each table `t1`, `t2`, .. has one thing that a move would break: a statement that runs, or what is stored in the schema. The name
/// of the table is `{t}`.
fn a_count_that_something_else_depends_on_is_not_moved(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let running = [
        ("UPDATE {t} SET used = used + (used < max_uses) WHERE id = 7", "UPDATE {t} SET"),
        ("UPDATE {t} SET used = used + 1, closed = used >= max_uses WHERE id = 7", "UPDATE {t} SET"),
        ("SELECT used < max_uses FROM {t} WHERE id = 7 FOR UPDATE", "SELECT used <"),
        ("UPDATE {t} SET used = used - 1 WHERE id = 7 AND used <> 0", "UPDATE {t} SET"),
    ];
    let mut stored = vec![
        (
            "CREATE PROCEDURE p_{t}(p INT) main: BEGIN UPDATE {t} SET used = used + 1 WHERE id = p AND used < max_uses; END",
            "PROCEDURE p_{t}: main: BEGIN UPDATE",
        ),
        (
            "CREATE PROCEDURE p_{t}(p INT) BEGIN
               IF p < 0 THEN SET @x = 1; ELSE UPDATE {t} SET used = used + 1 WHERE id = p AND used < max_uses; END IF;
             END",
            "PROCEDURE p_{t}: ELSE UPDATE",
        ),
        (
            "CREATE FUNCTION f_{t}(p INT) RETURNS INT READS SQL DATA
               RETURN (SELECT COUNT(*) FROM {t} WHERE id = p AND used < max_uses)",
            "FUNCTION f_{t}: RETURN (SELECT",
        ),
        (
            "CREATE PROCEDURE p_{t}(p INT) BEGIN
               DECLARE v INT;
               DECLARE c CURSOR FOR SELECT used FROM {t} WHERE id = p FOR UPDATE;
               OPEN c; FETCH c INTO v;
               IF v < 3 THEN UPDATE {t} SET used = used + 1 WHERE id = p; END IF;
             END",
            "PROCEDURE p_{t}: IF v < 3",
        ),
        (
            "CREATE TRIGGER of_{t} BEFORE UPDATE ON {t} FOR EACH ROW
               IF NEW.used > NEW.max_uses THEN SIGNAL SQLSTATE '45000'; END IF",
            "TRIGGER of_{t}: IF NEW.used >",
        ),
        ("ALTER TABLE {t} ADD left_ INT AS (max_uses - used) STORED, ADD CHECK (left_ >= 0)", "the generated column left_ = "),
        ("ALTER TABLE {t} ADD left_ INT UNSIGNED AS (max_uses - used) STORED", "the generated column left_ = "),
        ("ALTER TABLE {t} ADD is_open TINYINT AS (used < max_uses) STORED", "the generated column is_open = "),
        ("ALTER TABLE {t} ADD next_ INT AS (used + 1) VIRTUAL, ADD UNIQUE (next_)", "the generated column next_ = "),
        ("CREATE VIEW v_{t} AS SELECT * FROM {t} WHERE used < max_uses", "the view v_{t}"),
        (
            "CREATE VIEW v_{t} AS SELECT id, used AS uses FROM {t};
             CREATE PROCEDURE p_{t}(p INT) UPDATE v_{t} SET uses = uses + 1 WHERE id = p AND uses < 3",
            "PROCEDURE p_{t}: UPDATE v_{t} SET",
        ),
    ];
    if server.is_mysql() {
        stored.push(("CREATE UNIQUE INDEX next_ ON {t} ((used + 1))", "the unique index next_ on "));
    }
    let table = |at: usize| format!("t{at}");
    for at in 0..running.len() + stored.len() + 1 {
        schema.run(&format!(
            "CREATE TABLE {t} (id INT PRIMARY KEY, used INT NOT NULL, max_uses INT NOT NULL, closed INT NOT NULL) ENGINE = InnoDB;
             INSERT INTO {t} VALUES (7, 2, 3, 0)",
            t = table(at)
        ));
    }
    let not_moved = |at: usize, what: &str| {
        let (t, what) = (table(at), what.replace("{t}", &table(at)));
        let arguments = ["--table", &t, "--column", "used", "--where", "id = 7", "--counter", &t];
        let message = format!(".{t}.used, which the move sets to 0: {what}");
        rejected(&schema, &arguments, &[&t, "counters"], &message, if what.starts_with("the ") { "drop or change" } else { "if the" });
    };
    for (at, (create, what)) in stored.iter().enumerate() {
        let at = running.len() + at;
        let (statement, schema) = (create.replace("{t}", &table(at)), &schema);
        let mut connection = schema.connect();
        statement.split(";\n             CREATE").enumerate().for_each(|(part, text)| {
            let text = if part == 0 { text.to_owned() } else { format!("CREATE{text}") };
            connection.query_drop(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        });
        not_moved(at, what);
    }

    // A routine of another schema.
    let (other, t) = (server.schema(), table(0));
    let body = format!("UPDATE {}.{t} SET used = used + 1 WHERE id = p AND used < max_uses", schema.name);
    other.connect().query_drop(format!("CREATE PROCEDURE use_it(p INT) {body}")).expect("a procedure");
    not_moved(0, &format!("PROCEDURE {}.use_it: {body}", other.name));
    drop(other);

    // A transaction keeps the statements waiting, because MariaDB does not keep those of the past.
    let mut holder = schema.connect();
    holder.query_drop("START TRANSACTION").expect("a transaction");
    for at in 0..running.len() {
        holder.query_drop(format!("SELECT id FROM {} WHERE id = 7 FOR UPDATE", table(at))).expect("the lock");
    }
    thread::scope(|scope| {
        for (at, (statement, _)) in running.iter().enumerate() {
            let (statement, schema) = (statement.replace("{t}", &table(at)), &schema);
            scope.spawn(move || schema.connect().query_drop(&statement).expect(&statement));
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut witness = schema.connect();
            let end = Instant::now() + Duration::from_secs(30);
            let waits = |row: &mysql::Row| {
                row.get::<Option<String>, _>("db").flatten().as_ref() == Some(&schema.name)
                    && row.get::<Option<String>, _>("Info").flatten().is_some_and(|text| text.contains("max_uses") || text.contains("<> 0"))
            };
            while witness.query::<mysql::Row, _>("SHOW FULL PROCESSLIST").expect("the sessions").iter().filter(|row| waits(row)).count()
                < running.len()
            {
                assert!(Instant::now() < end, "the statements do not wait");
                thread::sleep(Duration::from_millis(10));
            }
            running.iter().enumerate().for_each(|(at, (_, what))| not_moved(at, what));
        }));
        holder.query_drop("ROLLBACK").expect("a rollback");
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });

    // What only adds, reads, sorts or sums.
    let plain = table(running.len() + stored.len());
    schema.run(&format!(
        "CREATE VIEW v_plain AS SELECT id, used FROM {plain};
         UPDATE {plain} SET used = used + 1, closed = 0 WHERE id = 7;
         UPDATE v_plain SET used = used + 1 WHERE id = 7;
         SELECT used, max_uses - used AS uses FROM {plain} WHERE id < 9 ORDER BY used DESC;
         SELECT SUM(used), COUNT(*) FROM {plain} GROUP BY closed;
         INSERT INTO {plain} VALUES (7, 1, 0, 0) ON DUPLICATE KEY UPDATE used = used + 1"
    ));
    schema
        .connect()
        .query_drop(format!(
            "CREATE PROCEDURE p_plain(p INT) main: BEGIN
               DECLARE v INT;
               IF p < 3 THEN UPDATE {plain} SET used = used + 1 WHERE id = p; END IF;
               SELECT used INTO v FROM {plain} WHERE id = p;
               SELECT v;
             END"
        ))
        .expect("a procedure");
    moves(&schema, &["--table", &plain, "--column", "used", "--where", "id = 7", "--counter", "plain"]);
    assert_eq!(schema.first::<i64>("SELECT counter_get('plain')"), 5);
}

fn what_is_left_to_a_limit_is_moved(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run(
        "CREATE TABLE pages (id INT PRIMARY KEY, used INT, max_uses BIGINT, price DECIMAL(9, 2)) ENGINE = InnoDB;
         INSERT INTO pages VALUES (1, NULL, 10, 1), (2, 4, NULL, 1), (3, 12, 10, 1), (4, -2, 9223372036854775807, 1)",
    );
    let limited = |condition: &'static str, limit: &'static str| {
        [&row(condition, "used", condition)[..], &["--limit", limit]].concat()
    };
    let of = |arguments: &[&str], message: &str, hint: &str| rejected(&schema, arguments, &["pages"], message, hint);
    of(&limited("id = 1", "max_uses"), "no suitable package", "a row needs a package counters, --limit a bounded one");
    schema.install(&bounded(|_| {}));
    of(&limited("id = 1", "no_such"), "has no column no_such", "correct the name");
    of(&limited("id = 1", "price"), "the limit price is decimal", "give a column of integers");
    of(&limited("id = 2", "max_uses"), "the limit `max_uses` of the row is NULL", "set the limit");
    of(&limited("id = 3", "max_uses"), "cannot create the counter", "remove the cause");
    of(&limited("id = 4", "max_uses"), "exceeds the range of BIGINT", "correct the row");

    moves(&schema, &limited("id = 1", "max_uses"));
    moves(&schema, &limited("id = 3", "20"));
    let total = |name: &str| schema.first::<i64>(&format!("SELECT CAST(bounded_counter_get('{name}') AS SIGNED)"));
    let rows = || schema.first::<(i64, i64)>("SELECT MIN(used), MAX(used) FROM pages WHERE id IN (1, 3)");
    assert_eq!((total("id = 1"), total("id = 3"), rows()), (10, 8, (10, 20)));
    // A use that is given back, and a limit that is raised.
    schema.run("UPDATE pages SET used = used - 1, max_uses = max_uses + 5 WHERE id = 1");
    moves(&schema, &limited("id = 1", "max_uses"));
    assert_eq!((total("id = 1"), rows().0), (16, 15));
    // A limit that is lowered takes what is left.
    schema.run("UPDATE pages SET max_uses = 5 WHERE id = 1");
    moves(&schema, &limited("id = 1", "max_uses"));
    assert_eq!((total("id = 1"), rows().0), (6, 5));
}

fn a_counter_of_another_row_is_rejected(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let url = "https://example.com/".repeat(6);
    schema.run(&format!(
        "CREATE TABLE pages (name VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, hits INT) ENGINE = InnoDB;
         INSERT INTO pages VALUES ('aBc', 1), ('AbC', 10), ('it''s', 5), ('{url}1', 100), ('{url}2', 1000),
                                  ('{long}1', 7), ('{long}2', 8);
         CREATE TABLE plain (hits INT, other INT) ENGINE = InnoDB; INSERT INTO plain VALUES (3, 0)",
        long = "x".repeat(290),
    ));
    let tables = ["pages", "counters"];
    let other = |condition: &str, name: &str| {
        rejected(&schema, &row(condition, "hits", name), &tables, "was made for another row", "choose another name");
    };
    let total = |name: &str| schema.first::<i64>(&format!("SELECT CAST(counter_get('{name}') AS SIGNED)"));

    // Names that are equal in the collation of the counters.
    moves(&schema, &row("name = 'aBc'", "hits", "aBc"));
    // The same row, which another condition finds: two counters would share its total.
    schema.run("ALTER TABLE pages ADD COLUMN sku INT; UPDATE pages SET sku = 7, hits = 1 WHERE name = 'aBc'");
    rejected(&schema, &row("sku = 7", "hits", "second"), &tables, "the row has the counter 'aBc'", "give this counter");
    moves(&schema, &row("sku = 7", "hits", "aBc"));
    schema.run("ALTER TABLE pages DROP COLUMN sku; CALL counter_add('aBc', -1)");
    other("name = 'AbC'", "AbC");
    // Names that are equal because they are truncated.
    let name: String = url.chars().take(100).collect();
    moves(&schema, &row(&format!("name = '{url}1'"), "hits", &name));
    other(&format!("name = '{url}2'"), &name);
    // Rows that differ only in the end of a long key.
    moves(&schema, &row(&format!("name LIKE '{}%1'", "x".repeat(290)), "hits", "long"));
    other(&format!("name LIKE '{}%2'", "x".repeat(290)), "long");
    assert_eq!(schema.first::<u64>("SELECT CHAR_LENGTH(description) FROM counter_totals WHERE counter_name = 'long'"), 255);
    // A counter that was not made for a row.
    schema.run("CALL counter_setup('mine', NULL, NULL, 50)");
    other("name = 'AbC'", "mine");
    assert_eq!((total("aBc"), total(&name), total("mine")), (1, 100, 50));

    // The same row again, found by another condition.
    schema.run("UPDATE pages SET hits = 2 WHERE name = 'aBc'");
    moves(&schema, &row("name LIKE '_Bc'", "hits", "aBc"));
    moves(&schema, &row("name LIKE 'it_s'", "hits", "quoted"));
    moves(&schema, &row("name = 'it''s'", "hits", "quoted"));
    assert_eq!((total("aBc"), total("quoted")), (3, 5));
    let of_plain = |condition, name| ["--table", "plain", "--column", "hits", "--where", condition, "--counter", name];
    moves(&schema, &of_plain("TRUE", "plain"));
    rejected(&schema, &of_plain("hits = 0", "plain"), &["plain", "counters"], "was made for another row", "choose another name");

    let into = [&row("name = 'AbC'", "hits", "AbC")[..], &["--into-existing"]].concat();
    moves(&schema, &into);
    assert_eq!(total("aBc"), 13);
}

/// At READ COMMITTED, which is the default of this server, a row can meet the condition after the row was read.
fn a_row_that_meets_the_condition_later_keeps_its_count(server: &Server) {
    let server = server.another(&["--transaction-isolation=READ-COMMITTED"]);
    let schema = server.schema();
    schema.install(&package(|options| options.slots = Slots::Fixed(1)));
    schema.run(
        "CREATE TABLE pages (id INT PRIMARY KEY, hits INT, hot INT) ENGINE = InnoDB;
         INSERT INTO pages VALUES (1, 5, 1), (2, 7, 0)",
    );
    let arguments = row("hot = 1", "hits", "hot page");
    moves(&schema, &arguments);
    schema.run("UPDATE pages SET hits = 5 WHERE id = 1");
    let mut holder = schema.connect();
    holder.query_drop("START TRANSACTION").expect("a transaction");
    holder.query_drop("UPDATE counters SET counter = counter + 0, description = description").expect("the lock");
    holder.query_drop("SELECT * FROM counters FOR UPDATE").expect("the lock");
    thread::scope(|scope| {
        let running = scope.spawn(|| adopt(&schema, &arguments));
        // Until the command waits for the slot of the counter.
        let waits = format!("SELECT COUNT(*) FROM {SESSIONS} WHERE INFO LIKE '%UPDATE%counter%' AND ID <> CONNECTION_ID()");
        let end = Instant::now() + Duration::from_secs(20);
        while schema.first::<u64>(&waits) == 0 && Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_millis(200));
        let writer = scope.spawn(|| schema.run("UPDATE pages SET hot = 1 WHERE id = 2"));
        thread::sleep(Duration::from_millis(300));
        holder.query_drop("COMMIT").expect("a commit");
        let output = running.join().expect("the command");
        assert!(output.status.success(), "{}", printed(&output));
        writer.join().expect("the writer");
    });
    let sums: (i64, i64) = schema.first("SELECT CAST(SUM(hits) AS SIGNED), CAST(counter_get('hot page') AS SIGNED) FROM pages");
    assert_eq!(sums, (7, 10));
}

fn a_column_is_moved_with_any_key(server: &Server) {
    let tables = [
        ("INT PRIMARY KEY", "n", "BIGINT", "n"),
        ("BIGINT UNSIGNED PRIMARY KEY", "n + 9223372036854775808", "BIGINT UNSIGNED", "n + 9223372036854775808"),
        ("VARCHAR(50) CHARACTER SET latin1 PRIMARY KEY", "CONCAT('käse ', n)", "VARCHAR(50)", "CONCAT('käse ', n)"),
        ("VARCHAR(99) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY", "CONCAT(n, '😀')", "VARCHAR(99)", "CONCAT(n, '😀')"),
        ("VARBINARY(16) PRIMARY KEY", "CONCAT(UNHEX('00FF27'), n)", "VARBINARY(16)", "CONCAT(UNHEX('00FF27'), n)"),
        ("ENUM('z', 'y', 'x', 'w', 'v', 'u', 't', 's', 'r', 'q', 'p', 'o', 'n') PRIMARY KEY", "n", "VARCHAR(9)", "ELT(n, 'z', 'y', 'x', 'w', 'v', 'u', 't', 's', 'r', 'q', 'p', 'o', 'n')"),
        ("DATE PRIMARY KEY", "'2026-01-01' + INTERVAL n DAY", "DATE", "'2026-01-01' + INTERVAL n DAY"),
        ("DECIMAL(30, 0) PRIMARY KEY", "n + 10000000000000000", "BIGINT", "n + 10000000000000000"),
        ("INT NOT NULL UNIQUE", "n", "INT", "n"),
        ("INT", "n", "INT", "n"),
        ("INT NOT NULL, b TIMESTAMP NOT NULL DEFAULT '2026-03-01 00:00:00', PRIMARY KEY (b, id)", "n", "INT", "n"),
        ("INT NOT NULL, b INT NOT NULL DEFAULT 0, c CHAR(3) NOT NULL DEFAULT 'x', PRIMARY KEY (b, id, c)", "n", "INT", "n"),
    ];
    for (definition, value, key, expected) in tables {
        let schema = server.schema();
        schema.install(&keyed(|options| options.key = format!("page {key}").parse().expect("a key")));
        schema.run(&format!(
            "CREATE TABLE numbers (n INT PRIMARY KEY) ENGINE = InnoDB;
             INSERT INTO numbers VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13);
             CREATE TABLE pages (
               hits INT NULL, changed TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP, id {definition}
             ) ENGINE = InnoDB;
             INSERT INTO pages (hits, id) SELECT IF(n = 4, NULL, n - 3), {value} FROM numbers;
             UPDATE pages SET changed = '2001-02-03 04:05:06'"
        ));
        let arguments = ["--from", "pages.hits", "--key", "id", "--batch", "3", "--connections", "3"];
        let text = moves(&schema, &arguments);
        assert!(text.contains("11 rows moved in"), "{definition}: {text}");
        assert!(text.contains("Nothing is left"), "{definition}: {text}");
        let wrong = format!(
            "SELECT COUNT(*) FROM numbers LEFT JOIN slotted_counters AS c ON c.page = {expected}
              WHERE COALESCE(c.count, 0) <> IF(n = 4, 0, n - 3) OR c.slot <> 0"
        );
        assert_eq!(schema.first::<u64>(&wrong), 0, "{definition}");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters"), 11, "{definition}");
        let left = "SELECT COUNT(*) FROM pages WHERE hits <> 0 OR changed <> '2001-02-03 04:05:06'";
        assert_eq!(schema.first::<u64>(left), 0, "{definition}");
        // Counts that the column receives later are added.
        schema.run("UPDATE pages SET hits = hits + 2");
        let text = moves(&schema, &arguments);
        assert!(text.contains("12 rows moved in"), "{definition}: {text}");
        assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM slotted_counters"), 51 + 24);
        moves(&schema, &arguments);
        assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM slotted_counters"), 51 + 24);
    }
}

fn keys_that_the_package_would_add_up_are_rejected(server: &Server) {
    let schema = server.schema();
    schema.install(&keyed(|options| options.key = "site INT, page VARCHAR(300)".parse().expect("a key")));
    schema.install(&package(|_| {}));
    schema.run(
        "CREATE TABLE pages (
           page VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, hits INT
         ) ENGINE = InnoDB;
         INSERT INTO pages VALUES ('aBc', 1), ('AbC', 10), ('other', 100)",
    );
    let tables = ["pages", "slotted_counters", "counters"];
    let arguments = ["--from", "pages.hits", "--key", "7,page"];
    let message = "two keys of";
    rejected(&schema, &arguments, &tables, message, "render the package with --collation");
    let named = ["--from", "pages.hits", "--name", "page"];
    rejected(&schema, &named, &tables, message, "give an expression for different names");
    // A count that was moved before is still a count of another key.
    schema.run("UPDATE pages SET hits = 0 WHERE page = 'aBc'");
    rejected(&schema, &arguments, &tables, message, "render the package with --collation");
    // Keys that differ in a trailing space.
    let nopad = if server.is_mysql() { "utf8mb4_0900_bin" } else { "utf8mb4_nopad_bin" };
    schema.run(&format!(
        "ALTER TABLE pages MODIFY page VARCHAR(300) CHARACTER SET utf8mb4 COLLATE {nopad};
         UPDATE pages SET page = 'AbC ' WHERE page = 'aBc'"
    ));
    rejected(&schema, &arguments, &tables, message, "render the package with --collation");

    schema.run("UPDATE pages SET hits = 1 WHERE page = 'AbC '");
    moves(&schema, &[&arguments[..], &["--into-existing"]].concat());
    assert_eq!(schema.first::<i64>("SELECT CAST(slotted_counter_get(7, 'abc') AS SIGNED)"), 11);
    schema.run("UPDATE pages SET hits = 5");
    moves(&schema, &[&named[..], &["--into-existing"]].concat());
    assert_eq!(schema.first::<i64>("SELECT CAST(counter_get('abc') AS SIGNED)"), 10);

    let schema = server.schema();
    schema.install(&keyed(|options| {
        options.key = "site INT, page VARCHAR(300)".parse().expect("a key");
        options.collation = "utf8mb4_bin".parse().expect("a collation");
    }));
    schema.run(
        "CREATE TABLE pages (page VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, hits INT) ENGINE = InnoDB;
         INSERT INTO pages VALUES ('aBc', 1), ('AbC', 10)",
    );
    moves(&schema, &arguments);
    assert_eq!(schema.first::<i64>("SELECT CAST(slotted_counter_get(7, 'AbC') AS SIGNED)"), 10);
}

fn a_column_becomes_named_counters(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run(
        "CREATE TABLE pages (site INT, url VARCHAR(50), hits INT, PRIMARY KEY (site, url)) ENGINE = InnoDB;
         INSERT INTO pages VALUES (1, '/', 5), (1, '/it''s', 0), (2, '/', -3), (2, '/x', NULL)",
    );
    let arguments = ["--from", "pages.hits", "--batch", "2", "--slots", "3"];
    let text = moves(&schema, &arguments);
    assert!(text.contains("4 rows moved in"), "{text}");
    let totals = || -> Vec<(String, i64, u64)> {
        let query = "SELECT counter_name, CAST(total AS SIGNED), slots FROM counter_totals ORDER BY counter_name";
        schema.connect().query(query).expect("the totals")
    };
    let of = |name: &str, total| (format!("pages.hits {name}"), total, 3);
    let expected = [of("site = 1 AND url = '/'", 5), of("site = 1 AND url = '/it\\'s'", 0), of("site = 2 AND url = '/'", -3), of("site = 2 AND url = '/x'", 0)];
    assert_eq!(totals(), expected);
    // The same rows one by one, and all again.
    schema.run("UPDATE pages SET hits = 4 WHERE site = 1 AND url = '/'");
    moves(&schema, &row("url = '/' AND site = 1", "hits", "pages.hits site = 1 AND url = '/'"));
    schema.run("UPDATE pages SET hits = 4 WHERE site = 2 AND url = '/'");
    moves(&schema, &arguments);
    assert_eq!((totals()[0].1, totals()[2].1), (9, 1));
    // Counters of other rows.
    let other = ["--from", "pages.hits", "--name", "CONCAT('pages.hits site = 1 AND url = ', QUOTE('/'), REPEAT('x', site - 1), url)"];
    moves(&schema, &other);
    schema.run("CREATE TABLE others LIKE pages; INSERT INTO others VALUES (1, '/', 5), (3, '/', 6)");
    let name = ["--from", "others.hits", "--name", "CONCAT('pages.hits site = ', site, ' AND url = ', QUOTE(url))"];
    rejected(&schema, &name, &["others", "counters"], "was made for another row", "choose another name");
    assert_eq!(schema.first::<i64>("SELECT CAST(SUM(hits) AS SIGNED) FROM pages"), 0);
}

fn tables_of_known_designs_are_moved(server: &Server) {
    let page = "docs/existing-tables.md";
    let old = server.schema();
    for section in ["The table of the 2012 article", "A table of slots with an upsert"] {
        old.run(&sql_blocks(page, section)[0]);
    }
    let gem = server.schema();
    gem.run(&sql_blocks(page, "The table of activerecord-slotted_counters")[0]);

    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|_| {}));
    let article_key = |options: &mut Options| {
        let key = "associated_record_id BIGINT, associated_record_type VARCHAR(255), counter_name VARCHAR(255)";
        options.key = key.parse().expect("a key");
        options.table = "article_counters".parse().expect("a name");
        options.prefix = "article_counter_".parse().expect("a prefix");
    };
    schema.install(&keyed(article_key));

    let article = format!("{}.counters", old.name);
    let arguments = ["--from", &article, "--prefix", "counter_"];
    for _ in 0..2 {
        moves(&schema, &arguments);
        let totals: (String, String, i64, u64) =
            schema.first("SELECT counter_name, description, CAST(total AS SIGNED), slots FROM counter_totals");
        assert_eq!(totals, ("test1".into(), "first".into(), 1005, 5));
    }
    let published = format!("{}.slotted_counters", old.name);
    let text = moves(&schema, &["--from", &published, "--prefix", "slotted_counter_"]);
    assert!(text.contains("3 rows moved in"), "{text}");
    assert_eq!(schema.first::<(i64, i64)>("SELECT slotted_counter_get(123, 456), slotted_counter_get(123, 458)"), (42, 5));
    // A package that does not have all columns of the record.
    let of_gem = format!("{}.slotted_counters", gem.name);
    let mapped = ["--from", &of_gem, "--prefix", "slotted_counter_", "--key", "1,associated_record_id"];
    rejected(&schema, &mapped, &["slotted_counters"], "also have the column", "render the package with this column");
    moves(&schema, &["--from", &of_gem, "--prefix", "article_counter_"]);
    assert_eq!(schema.first::<i64>("SELECT article_counter_get(7, 'Article', 'comments_count')"), 42);
    for (schema, table) in [(&old, "slotted_counters"), (&gem, "slotted_counters")] {
        assert_eq!(schema.first::<i64>(&format!("SELECT CAST(SUM(count) AS SIGNED) FROM {table}")), 0);
    }
}

const RECORDS: u32 = 20_000;

/// A table of pages and a package with their records.
fn pages(schema: &Schema<'_>) {
    schema.install(&keyed(|options| options.key = "page BIGINT".parse().expect("a key")));
    let rows: Vec<_> = (1..=RECORDS).map(|id| format!("({id}, {})", id % 7)).collect();
    schema.run(&format!(
        "CREATE TABLE pages (id BIGINT PRIMARY KEY, hits INT NOT NULL) ENGINE = InnoDB; INSERT INTO pages VALUES {}",
        rows.join(", ")
    ));
}

/// The number of moves that are killed.
const KILLED: usize = 6;

/// The sum of the column and of the counters, in one snapshot.
const BOTH: &str = "SELECT CAST((SELECT SUM(hits) FROM pages) + (SELECT COALESCE(SUM(count), 0) FROM slotted_counters) AS SIGNED)";

const COLUMN: [&str; 8] = ["--from", "pages.hits", "--key", "id", "--batch", "500", "--connections", "3"];

/// Counts once in a random row, in the column or in the package.
fn count(connection: &mut Conn, in_package: bool, records: u32) -> bool {
    let record = rand::rng().random_range(1..=records);
    let statement = if in_package {
        format!("CALL slotted_counter_increment({record})")
    } else {
        format!("UPDATE pages SET hits = hits + 1 WHERE id = {record}")
    };
    connection.query_drop(statement).map_err(repeatable).is_ok()
}

fn kill(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
    assert!(status.success());
}

fn a_killed_move_is_completed_by_another_one(server: &Server) {
    let schema = server.schema();
    pages(&schema);
    let initial: i64 = schema.first(BOTH);
    let (done, counted) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut killed = 0;
    thread::scope(|scope| {
        for writer in 0..6 {
            let (schema, done, counted) = (&schema, &done, &counted);
            scope.spawn(move || {
                let mut connection = schema.connect();
                while !done.load(SeqCst) {
                    counted.fetch_add(u64::from(count(&mut connection, writer % 2 == 0, RECORDS)), SeqCst);
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        // A move that ends before its signal is followed by one that gets it earlier. How long a move takes depends on the machine.
        let (mut latest, mut moves) = (700, 0);
        while killed < KILLED {
            moves += 1;
            assert!(moves < 100, "{killed} of {moves} moves killed");
            let mut child = command(&schema, &COLUMN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("slotted runs");
            thread::sleep(Duration::from_millis(rand::rng().random_range(latest / 10..latest)));
            if child.try_wait().expect("its status").is_none() {
                kill(&child, "-KILL");
                killed += 1;
            } else {
                latest = (latest * 3 / 4).max(20);
            }
            child.wait().expect("its end");
            schema.run("UPDATE pages SET hits = hits + 1 WHERE id % 3 = 0");
            counted.fetch_add(u64::from(RECORDS / 3), SeqCst);
        }
        done.store(true, SeqCst);
    });
    let counted = counted.into_inner();
    let text = moves(&schema, &COLUMN);
    assert!(text.contains("Nothing is left in the column."), "{text}");
    let total: i64 = schema.first("SELECT CAST(SUM(count) AS SIGNED) FROM slotted_counters");
    assert_eq!(total, initial + counted as i64);
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM pages WHERE hits <> 0"), 0);
    eprintln!("{}: {killed} moves killed, {counted} counts, none lost", server.version);
}

fn an_interrupted_move_ends_after_a_batch(server: &Server) {
    let schema = server.schema();
    pages(&schema);
    let initial: i64 = schema.first(BOTH);
    let mut small = COLUMN;
    (small[5], small[7]) = ("20", "1");
    let child = command(&schema, &small).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("slotted runs");
    let end = Instant::now() + Duration::from_secs(30);
    while schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters") == 0 && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    kill(&child, "-INT");
    let output = child.wait_with_output().expect("its end");
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("interrupted; run the command again"), "{text}");
    assert_eq!(schema.first::<i64>(BOTH), initial);
    assert_ne!(schema.first::<i64>("SELECT CAST(SUM(hits) AS SIGNED) FROM pages"), 0);
    let output = adopt(&schema, &COLUMN);
    let text = printed(&output);
    assert!(text.contains("Nothing is left"), "{text}");
    assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM slotted_counters"), initial);
    // Without a terminal, the progress is printed as lines.
    let progress = String::from_utf8_lossy(&output.stderr).lines().filter(|line| line.contains(" rows")).count();
    assert!(progress > 0, "{text}");
}

/// The steps of the page: readers read both, 12 writers go over one after the other, and moves run at any time.
fn the_order_of_a_cut_over_loses_no_count(server: &Server) {
    const WRITERS: usize = 12;
    const HOT: u32 = 50;
    let schema = server.schema();
    pages(&schema);
    let initial: i64 = schema.first(BOTH);
    let (over, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (started, counted, checks) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (schema, over, done, started, counted) = (&schema, &over, &done, &started, &counted);
            scope.spawn(move || {
                let mut connection = schema.connect();
                while !done.load(SeqCst) {
                    started.fetch_add(1, SeqCst);
                    let counts = count(&mut connection, over.load(SeqCst) > writer, HOT);
                    counted.fetch_add(u64::from(counts), SeqCst);
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        scope.spawn(|| {
            let mut connection = schema.connect();
            while !done.load(SeqCst) {
                let least = counted.load(SeqCst) as i64;
                let both: i64 = connection.query_first(BOTH).expect("the sums").expect("a row");
                let most = started.load(SeqCst) as i64;
                let seen = both - initial;
                // A panic in a scope waits for the other threads.
                if !(least..=most).contains(&seen) {
                    done.store(true, SeqCst);
                    panic!("{least} to {most} counts, and {seen} are seen");
                }
                checks.fetch_add(1, SeqCst);
            }
        });
        scope.spawn(|| {
            let mut connection = schema.connect();
            let mut last = 0;
            while !done.load(SeqCst) {
                let read = "SELECT hits + slotted_counter_get(id) FROM pages WHERE id = 1";
                let total: i64 = connection.query_first(read).expect("a total").expect("a row");
                if total < last {
                    done.store(true, SeqCst);
                    panic!("the total went from {last} to {total}");
                }
                last = total;
            }
        });
        for writers in 0..=WRITERS {
            over.store(writers, SeqCst);
            thread::sleep(Duration::from_millis(100));
            if writers % 4 == 0 {
                moves(&schema, &COLUMN);
            }
        }
        done.store(true, SeqCst);
    });
    let text = moves(&schema, &COLUMN);
    assert!(text.contains("Nothing is left in the column."), "{text}");
    let counted = counted.into_inner();
    assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM slotted_counters"), initial + counted as i64);
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM pages WHERE hits <> 0"), 0);
    eprintln!("{}: {counted} counts of {WRITERS} writers, {checks:?} snapshots", server.version);
}

/// The limit is wide enough for a machine with other work.
fn a_move_is_not_much_slower_than_an_insert(server: &Server) {
    let schema = server.schema();
    pages(&schema);
    schema.run("CREATE TABLE inserted LIKE slotted_counters");
    measured(|| {
        schema.run("TRUNCATE TABLE inserted; UPDATE pages SET hits = 1");
        let start = Instant::now();
        schema.run("INSERT INTO inserted SELECT id, 0, hits FROM pages");
        let insert = start.elapsed();
        let text = moves(&schema, &["--from", "pages.hits", "--key", "id"]);
        let (_, rest) = text.split_once(" moved in ").expect("a duration");
        let seconds: f64 = rest.split(' ').next().expect("a number").parse().expect("a number");
        let shown = format!("{}: INSERT ... SELECT {insert:?}, adopt {seconds} s", server.version);
        eprintln!("{shown}");
        if seconds < 10.0 * insert.as_secs_f64() + 1.0 { Ok(()) } else { Err(shown) }
    });
}
