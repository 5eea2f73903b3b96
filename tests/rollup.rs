//! Counts that belong to a column: the total is the column and the slots, and a roll-up moves the counts of the slots into the column.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use rand::RngExt;
use slotted::package::{Options, Package, TableColumn};

use crate::columns::succeeds;
use crate::support::{Module, Schema, Server, cases, error_of, repeatable};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(moving_writers_over_and_back_under_load_is_exact)
        .on_servers(the_total_is_the_column_and_the_slots)
        .waits()
        .on_servers(a_rollup_in_a_transaction_is_a_part_of_it)
        .waits()
        .on_servers(a_rollup_moves_what_is_free_and_waits_once_for_what_is_locked)
        .waits()
        .on_servers(a_rollup_that_waits_for_a_slot_delays_no_other_writer)
        .waits()
        .on_servers(a_row_that_its_children_lock_all_the_time_is_moved)
        .waits()
        .on_servers(a_slot_that_is_locked_nearly_all_the_time_is_moved)
        .on_servers(a_rollup_reads_what_is_pending)
        .on_servers(a_total_that_is_rejected_stays_pending_and_stops_no_other)
        .waits()
        .on_servers(a_total_is_rejected_only_if_all_slots_are_known)
        .on_servers(only_triggers_and_constraints_of_the_column_make_a_rollup_go_record_by_record)
        .on_servers(an_error_that_is_not_of_a_total_ends_the_call)
        .waits()
        .on_servers(a_rollup_that_fails_leaves_no_transaction_open)
        .on_servers(a_reset_sets_the_total_and_loses_no_concurrent_increment)
        .waits()
        .on_servers(a_rename_beside_rollups_ends_no_server)
        .on_servers(invalid_arguments_are_rejected_and_change_nothing);
}

/// A package whose counts belong to a column.
pub fn of_column(column: &str, key: &str, change: impl FnOnce(&mut Options)) -> Package {
    let column: TableColumn = column.parse().expect("a column");
    // Some names need others of the package.
    let mut options = Options::of_column(&column).unwrap_or_else(Options::slotted_counters);
    options.column = Some(column);
    options.key = key.parse().expect("a key");
    change(&mut options);
    Package::new(options).expect("valid options")
}

/// A schema with the package and the articles 1 to `rows`, whose views are their ids.
fn installed(server: &Server, rows: u32) -> Schema<'_> {
    let schema = server.schema();
    create_articles(&schema, rows, "views INT UNSIGNED, KEY (views)");
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    schema
}

/// The articles 1 to `rows`, whose views are their ids.
fn create_articles(schema: &Schema<'_>, rows: u32, column: &str) {
    schema.run(&format!("CREATE TABLE articles (id BIGINT PRIMARY KEY, title VARCHAR(50) NOT NULL DEFAULT 'title', {column}) ENGINE = InnoDB"));
    for rows in (1..=rows).collect::<Vec<_>>().chunks(10_000) {
        let rows: Vec<_> = rows.iter().map(|id| format!("({id}, {id})")).collect();
        schema.run(&format!("INSERT INTO articles (id, views) VALUES {}", rows.join(", ")));
    }
}

const ROLLUP: &str = "CALL articles_views_rollup(NULL)";

/// The column of an article.
fn views(schema: &Schema<'_>, id: u32) -> Option<i64> {
    schema.first(&format!("SELECT views FROM articles WHERE id = {id}"))
}

/// The pending counts of all articles.
fn pending(schema: &Schema<'_>) -> i64 {
    schema.first("SELECT CAST(COALESCE(SUM(count), 0) AS SIGNED) FROM articles_views")
}

/// The articles that have pending counts.
fn pending_ids(schema: &Schema<'_>) -> Vec<u32> {
    schema.query("SELECT id FROM articles_views GROUP BY id HAVING SUM(count) <> 0 ORDER BY id")
}

fn get(schema: &Schema<'_>, id: u32) -> i64 {
    schema.first(&format!("SELECT articles_views_get({id})"))
}

/// What the columns and the slots have together.
fn sum(schema: &Schema<'_>) -> i64 {
    schema.first("SELECT CAST((SELECT SUM(views) FROM articles) + (SELECT COALESCE(SUM(count), 0) FROM articles_views) AS SIGNED)")
}

/// A connection that waits for a lock for 1 s at most.
fn impatient(schema: &Schema<'_>) -> Conn {
    after(schema, &["SET SESSION innodb_lock_wait_timeout = 1"])
}

/// A connection that has executed statements, such as those that lock something in a transaction.
pub fn after(schema: &Schema<'_>, statements: &[&str]) -> Conn {
    let mut connection = schema.connect();
    for statement in statements {
        connection.query_drop(statement).expect(statement);
    }
    connection
}

/// Ends the other sessions of a load, also if an assertion fails.
pub struct End<'a>(pub &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// What the sessions of a load have done to each article: at least and at most, because the result of a call that was killed is not
/// known.
#[derive(Default)]
struct Counted(Mutex<BTreeMap<u32, (i64, i64)>>);

impl Counted {
    fn add(&self, id: u32, certain: bool) {
        let mut counted = self.0.lock().expect("no session failed");
        let (least, most) = counted.entry(id).or_default();
        *most += 1;
        *least += i64::from(certain);
    }
}

/// Writers of the column: the package is installed under their load, most of them call the routines later, and no one at the end, when the
/// package is removed under the same load. Roll-ups of all sizes, rollbacks, readers that see no total fall, and KILL of roll-ups and writers.
fn moving_writers_over_and_back_under_load_is_exact(server: &Server) {
    const ARTICLES: u32 = 9;
    let schema = &server.schema();
    create_articles(schema, ARTICLES, "views INT UNSIGNED, KEY (views)");
    let (counted, sessions) = (&Counted::default(), &Mutex::new(Vec::new()));
    // The share of the writers that call the routines, in quarters.
    let moved = &AtomicU64::new(0);
    let [stop, is_installed] = &[const { AtomicBool::new(false) }; 2];
    let [transactions, deadlocks, rolled_up, reads] = &[const { AtomicU64::new(0) }; 4];
    let session = || {
        let session = schema.connect();
        sessions.lock().expect("sessions").push(session.connection_id());
        session
    };
    thread::scope(|scope| {
        for writer in 0..16 {
            scope.spawn(move || {
                let mut random = rand::rng();
                let mut connection = session();
                while !stop.load(SeqCst) {
                    let id = random.random_range(1..=ARTICLES);
                    let statement = if writer % 4 < moved.load(SeqCst) {
                        format!("CALL articles_views_increment({id})")
                    } else {
                        format!("UPDATE articles SET views = views + 1 WHERE id = {id}")
                    };
                    let rolled_back = random.random_bool(0.1);
                    let statements = match random.random_range(0..3) {
                        0 | 1 if !rolled_back => vec![statement],
                        _ => vec![
                            "START TRANSACTION".into(),
                            statement,
                            if rolled_back { "ROLLBACK" } else { "COMMIT" }.into(),
                        ],
                    };
                    transactions.fetch_add(1, SeqCst);
                    let mut silent = false;
                    let done = statements.iter().try_for_each(|statement| {
                        connection.query_drop(statement)?;
                        // KILL QUERY can end an UPDATE of MariaDB without an error.
                        silent |= statement.starts_with("UPDATE") && connection.affected_rows() == 0;
                        Ok(())
                    });
                    match done {
                        Ok(()) if rolled_back => {}
                        Ok(()) => counted.add(id, !silent),
                        Err(mysql::Error::MySqlError(error)) if [1213, 1205].contains(&error.code) => {
                            _ = deadlocks.fetch_add(1, SeqCst)
                        }
                        // The package is being removed: the call has not counted.
                        Err(mysql::Error::MySqlError(error)) if error.code == 1305 && !is_installed.load(SeqCst) => {}
                        // Killed: whether it has counted is not known.
                        Err(_) if rolled_back => {}
                        Err(_) => counted.add(id, false),
                    }
                    if connection.query_drop("ROLLBACK").is_err() && connection.query_drop("ROLLBACK").is_err() {
                        connection = session();
                    }
                }
            });
        }
        for size in [1, 9, 1000] {
            scope.spawn(move || {
                let mut connection = session();
                while !stop.load(SeqCst) {
                    if is_installed.load(SeqCst) {
                        match connection.query_drop(format!("CALL articles_views_rollup({size})")) {
                            Ok(()) => _ = rolled_up.fetch_add(1, SeqCst),
                            Err(error) => assert!(!error.to_string().contains("1205"), "{error}"),
                        }
                        // A session goes on: what it does next commits what the call has left.
                        if connection
                            .query_drop("START TRANSACTION")
                            .and_then(|()| connection.query_drop("COMMIT"))
                            .is_err()
                        {
                            connection = session();
                        }
                    }
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        for read in ["SELECT articles_views_get(?)", "SELECT total FROM articles_views_totals WHERE id = ?"] {
            scope.spawn(move || {
                let mut connection = schema.connect();
                let mut last = BTreeMap::<u32, i64>::new();
                for id in (1..=ARTICLES).cycle().take_while(|_| !stop.load(SeqCst)) {
                    let total: mysql::Result<Option<i64>> = connection.exec_first(read, (id,));
                    if !is_installed.load(SeqCst) {
                        thread::sleep(Duration::from_millis(2));
                        continue;
                    }
                    let total = total.expect(read).expect("a row");
                    let before = last.insert(id, total).unwrap_or_default();
                    assert!(total >= before, "{read}: {total} of article {id} after {before}");
                    reads.fetch_add(1, SeqCst);
                }
            });
        }
        let end = End(stop);
        let mut administrator = schema.connect();
        let mut random = rand::rng();
        succeeds(schema, &["install", "--column", "articles.views"]);
        is_installed.store(true, SeqCst);
        for (phase, share) in [1, 3, 2, 3, 0].into_iter().enumerate() {
            moved.store(share, SeqCst);
            for _ in 0..cases(50) {
                thread::sleep(Duration::from_millis(15));
                let sessions = sessions.lock().expect("sessions");
                let killed = sessions[random.random_range(0..sessions.len())];
                if phase > 0 {
                    // The session can have ended.
                    _ = administrator
                        .query_drop(format!("KILL {} {killed}", if random.random_bool(0.2) { "" } else { "QUERY" }));
                }
            }
        }
        is_installed.store(false, SeqCst);
        succeeds(schema, &["uninstall", "articles.views"]);
        drop(end);
    });
    // A session that was killed can still commit or roll back.
    thread::sleep(Duration::from_millis(300));
    assert_eq!(pending(schema), 0);
    for (id, (least, most)) in counted.0.lock().expect("no session failed").iter() {
        let views = views(schema, *id).expect("views") - i64::from(*id);
        assert!(
            (*least..=*most).contains(&views),
            "{views} views of article {id}, and from {least} to {most} were counted"
        );
    }
    let [transactions, deadlocks, rolled_up, reads] =
        [transactions, deadlocks, rolled_up, reads].map(|number| number.load(SeqCst));
    assert!(rolled_up > 20 && reads > 100, "{rolled_up} roll-ups, {reads} reads");
    assert!(deadlocks * 500 <= transactions + 500, "{deadlocks} deadlocks in {transactions} transactions");
}

/// A slot that stays empty is deleted by the next roll-up.
fn the_total_is_the_column_and_the_slots(server: &Server) {
    let schema = installed(server, 3);
    schema.run(
        "UPDATE articles SET views = NULL WHERE id = 2; CALL articles_views_add(2, 7); CALL articles_views_add(9, 4)",
    );
    schema.run("INSERT INTO articles_views VALUES (1, 90, 5), (1, 100, 20), (3, 0, 5), (3, 9, -5)");
    for _ in 0..3 {
        for (id, total) in [(1, 26), (2, 7), (3, 3), (9, 4), (10, 0)] {
            assert_eq!(get(&schema, id), total, "article {id}");
        }
        let totals: Vec<(u32, i64)> = schema.query("SELECT id, total FROM articles_views_totals ORDER BY id");
        assert_eq!(totals, [(1, 26), (2, 7), (3, 3)]);
        schema.run(ROLLUP);
    }
    assert_eq!([1, 2, 3].map(|id| views(&schema, id)), [Some(26), Some(7), Some(3)]);
    let slots: Vec<(u32, i64)> = schema.query("SELECT id, count FROM articles_views");
    assert_eq!(slots, [(9, 4)], "an article without a row stays pending");
    schema.run("INSERT INTO articles (id, views) VALUES (9, 1)");
    schema.run(ROLLUP);
    assert_eq!(views(&schema, 9), Some(5));
}

fn a_rollup_in_a_transaction_is_a_part_of_it(server: &Server) {
    let schema = installed(server, 3);
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        let mut connection = schema.isolated(isolation);
        for (end, moved) in [("ROLLBACK", 0), ("COMMIT", 5)] {
            let before = views(&schema, 1).expect("views");
            for statement in ["START TRANSACTION", "CALL articles_views_add(1, 5)", ROLLUP] {
                connection.query_drop(statement).expect(statement);
            }
            let own: Option<i64> = connection.query_first("SELECT views FROM articles WHERE id = 1").expect("views");
            assert_eq!((own, views(&schema, 1)), (Some(before + 5), Some(before)), "{isolation}");
            if isolation == "READ COMMITTED" {
                // The first increment of the next record does not wait.
                impatient(&schema).query_drop("CALL articles_views_add(2, 0)").expect(isolation);
            }
            connection.query_drop(end).expect(end);
            assert_eq!(
                (get(&schema, 1), views(&schema, 1)),
                (before + moved, Some(before + moved)),
                "{isolation}, {end}"
            );
        }
    }
    // An error that can have ended the transaction ends the call. MariaDB answers a timeout of 0 with 1180, which has rolled back all.
    let _owner = after(&schema, &["START TRANSACTION", "SELECT * FROM articles WHERE id = 1 FOR UPDATE"]);
    schema.run("CALL articles_views_add(1, 5)");
    for timeout in [0, 1] {
        let timeout = format!("SET SESSION innodb_lock_wait_timeout = {timeout}");
        let mut connection = after(&schema, &[&timeout, "START TRANSACTION", "CALL articles_views_add(3, 7)"]);
        let (number, text) = error_of(connection.query_drop(ROLLUP));
        assert!([1180, 1205].contains(&number), "{text}");
        connection.query_drop("ROLLBACK").expect("a rollback");
        assert_eq!(get(&schema, 3), 3, "{timeout}");
    }
}

/// A row that stays locked, and a job that has locked many rows: with batches, and with the UPDATE of one record, which a trigger needs.
fn a_rollup_moves_what_is_free_and_waits_once_for_what_is_locked(server: &Server) {
    for trigger in [None, Some("CREATE TRIGGER changed AFTER UPDATE ON articles FOR EACH ROW SET @changed = 1")] {
        let schema = installed(server, 50);
        trigger.into_iter().for_each(|trigger| schema.connect().query_drop(trigger).expect(trigger));
        schema.run("INSERT INTO articles_views SELECT id, 1, IF(id = 40, -100, 2) FROM articles");
        let mut job = schema.isolated("READ COMMITTED");
        for statement in ["START TRANSACTION", "UPDATE articles SET title = 'mine' WHERE id IN (2, 4, 6, 8, 10, 12)"] {
            job.query_drop(statement).expect(statement);
        }
        let mut roller = impatient(&schema);
        let begin = Instant::now();
        assert_eq!(error_of(roller.query_drop(ROLLUP)).0, 1205, "{trigger:?}");
        assert!(begin.elapsed() < Duration::from_secs(4), "{trigger:?}: {:?}", begin.elapsed());
        assert_eq!(pending_ids(&schema), [2, 4, 6, 8, 10, 12, 40], "{trigger:?}");
        job.query_drop("COMMIT").expect("a commit");
        assert_eq!(error_of(roller.query_drop(ROLLUP)).0, 30013, "{trigger:?}");
        assert_eq!(pending_ids(&schema), [40], "{trigger:?}");
    }
}

/// The transaction that holds the slot does not make others wait for the roll-up, neither for the row nor for other slots.
fn a_rollup_that_waits_for_a_slot_delays_no_other_writer(server: &Server) {
    let schema = installed(server, 3);
    schema.run("INSERT INTO articles_views VALUES (1, 7, 2), (1, 9, 3), (2, 9, 5)");
    let mut owner =
        after(&schema, &["START TRANSACTION", "SELECT * FROM articles_views WHERE id = 1 AND slot = 7 FOR UPDATE"]);
    thread::scope(|scope| {
        let rollup = scope.spawn(|| schema.run(ROLLUP));
        thread::sleep(Duration::from_millis(700));
        assert_eq!(pending(&schema), 2, "all others are moved");
        assert!(!rollup.is_finished(), "it waits");
        let mut other = impatient(&schema);
        for statement in [
            "UPDATE articles SET title = 'other' WHERE id = 1",
            "UPDATE articles_views SET count = count + 1 WHERE id = 1 AND slot = 9",
        ] {
            other.query_drop(statement).expect(statement);
        }
        owner.query_drop("COMMIT").expect("a commit");
        rollup.join().expect("a roll-up");
    });
    assert_eq!((views(&schema, 1), pending(&schema)), (Some(7), 0));
    // While it waits for a row, the slots of the record are free.
    schema.run("INSERT INTO articles_views VALUES (2, 11, 1)");
    let mut owner = after(&schema, &["START TRANSACTION", "UPDATE articles SET title = 'mine' WHERE id = 2"]);
    thread::scope(|scope| {
        let rollup = scope.spawn(|| schema.run(ROLLUP));
        thread::sleep(Duration::from_millis(500));
        impatient(&schema)
            .query_drop("UPDATE articles_views SET count = count + 1 WHERE id = 2 AND slot = 11")
            .expect("a free slot");
        owner.query_drop("COMMIT").expect("a commit");
        rollup.join().expect("a roll-up");
    });
    assert_eq!(views(&schema, 2), Some(2 + 5 + 2));
}

/// A foreign key: each child holds a shared lock on its article until COMMIT. Increments come after the child, or before.
fn a_row_that_its_children_lock_all_the_time_is_moved(server: &Server) {
    let (child, count) = ("INSERT INTO likes (article) VALUES (1)", "CALL articles_views_increment(1)");
    for steps in [[child, count], [count, child]] {
        let schema = &installed(server, 1);
        schema.run("CREATE TABLE likes (id BIGINT AUTO_INCREMENT PRIMARY KEY, article BIGINT NOT NULL, FOREIGN KEY (article) REFERENCES articles (id)) ENGINE = InnoDB");
        let (stop, counted) = (&AtomicBool::new(false), &AtomicU64::new(0));
        thread::scope(|scope| {
            let _end = End(stop);
            for _ in 0..8 {
                scope.spawn(move || {
                    let mut connection = schema.connect();
                    while !stop.load(SeqCst) {
                        let all = ["START TRANSACTION", steps[0], steps[1], "DO SLEEP(0.005)", "COMMIT"];
                        match all.iter().try_for_each(|statement| connection.query_drop(statement)) {
                            Ok(()) => _ = counted.fetch_add(1, SeqCst),
                            Err(error) => {
                                assert!(steps[1] == child && repeatable(error) == 1213, "no deadlock in this order")
                            }
                        }
                    }
                });
            }
            let mut roller = schema.connect();
            let (begin, mut last, mut moved) = (Instant::now(), views(schema, 1), 0);
            // The column follows: it grows ten times.
            while moved < 10 && begin.elapsed() < Duration::from_secs(60) {
                roller.query_drop(ROLLUP).map_err(repeatable).unwrap_or_default();
                let now = views(schema, 1);
                moved += u32::from(now > last);
                last = now;
                thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(moved, 10, "{steps:?}, {counted:?}");
        });
        schema.run(ROLLUP);
        assert_eq!(views(schema, 1), Some(1 + counted.load(SeqCst) as i64));
    }
}

fn a_slot_that_is_locked_nearly_all_the_time_is_moved(server: &Server) {
    let schema = &installed(server, 1);
    let (stop, counted) = (&AtomicBool::new(false), &AtomicU64::new(0));
    thread::scope(|scope| {
        let _end = End(stop);
        scope.spawn(move || {
            let mut connection = schema.connect();
            while !stop.load(SeqCst) {
                for statement in ["START TRANSACTION", "CALL articles_views_increment(1)", "DO SLEEP(0.05)", "COMMIT"] {
                    connection.query_drop(statement).expect(statement);
                }
                counted.fetch_add(1, SeqCst);
            }
        });
        // Without waiting, few of the calls would find the slot free.
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(120));
            schema.run(ROLLUP);
        }
        let (moved, counted) = (views(schema, 1).expect("views") as u64, counted.load(SeqCst));
        assert!(moved * 2 > counted && counted > 5, "{moved} of {counted} increments are moved");
    });
}

fn a_rollup_reads_what_is_pending(server: &Server) {
    let schema = installed(server, 20_000);
    schema.run("INSERT INTO articles_views SELECT id, 0, 1 FROM articles");
    schema.run("ANALYZE TABLE articles_views; ANALYZE TABLE articles");
    let mut connection = schema.connect();
    let mut reads = |statement: &str| -> u64 {
        connection.query_drop("FLUSH STATUS").expect("flush");
        connection.query_drop(statement).expect(statement);
        let rows: Vec<(String, u64)> = connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'").expect("status");
        rows.iter().map(|(_, count)| count).sum()
    };
    // Of each slot: to find the batch, to lock it and its article, to change both, and in temporary tables.
    let all = reads("CALL articles_views_rollup(100)");
    assert!(all < 60 * 20_000, "{all} reads for 20,000 pending records");
    reads(ROLLUP);
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM articles_views"), 0);
    schema.run("INSERT INTO articles_views SELECT id, 0, 1 FROM articles WHERE id % 1000 = 7");
    let few = reads(ROLLUP);
    assert!(few < 80 * 20, "{few} reads for 20 pending records");
    reads(ROLLUP);
    let none = reads(ROLLUP);
    assert!(none < 60, "{none} reads if nothing is pending");
}

/// The routines run as the account of accounts.sql, which sees the triggers and constraints of the table by its privileges.
fn a_total_that_is_rejected_stays_pending_and_stops_no_other(server: &Server) {
    let schema = server.schema();
    let account = format!("{}_d@localhost", schema.name.replace("slotted_test", "st"));
    create_articles(&schema, 50, "views INT UNSIGNED, KEY (views)");
    let package = of_column("articles.views", "id BIGINT", |options| {
        options.definer = Some(account.parse().expect("an account"))
    });
    schema.install(&package);
    schema.run(&schema.file(&package, "accounts.sql"));
    let check = |setup: &str, undo: &str, message: &str| {
        schema.connect().query_drop(setup).expect(setup);
        let before = views(&schema, 7);
        schema.run("INSERT INTO articles_views SELECT id, 1, IF(id = 7, -100, 2) FROM articles");
        let total = sum(&schema);
        for call in ["rollup(NULL)", "rollup(1)", "rollup(20)", "compact(7)"] {
            let (number, text) = error_of(schema.connect().query_drop(format!("CALL articles_views_{call}")));
            let (routine, _) = call.split_once('(').expect("a call");
            let start = format!("articles_views_{routine}: articles.views rejects the total of 7: ");
            assert!(
                number == 30013 && text.starts_with(&start) && text.to_lowercase().contains(message),
                "{setup}: {number} {text}"
            );
            assert_eq!(
                (views(&schema, 7), pending_ids(&schema), sum(&schema)),
                (before, vec![7], total),
                "{setup}, {call}"
            );
        }
        schema.run(&format!("{undo}; CALL articles_views_delete(7); {ROLLUP}"));
    };
    check("DO 0", "ALTER TABLE articles MODIFY views INT NOT NULL", "out of range");
    check(
        "ALTER TABLE articles ADD CONSTRAINT positive CHECK (views >= 0)",
        "ALTER TABLE articles DROP CONSTRAINT positive",
        "positive",
    );
    for (when, body, message) in [
        ("BEFORE", "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'too few'", "too few"),
        ("AFTER", "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'too few'", "too few"),
        ("AFTER", "SIGNAL SQLSTATE '02000' SET MESSAGE_TEXT = 'too few'", "too few"),
        ("BEFORE", "SET NEW.views = OLD.views", "a trigger has changed the value"),
        ("BEFORE", "SET NEW.views = NEW.views + 1", "a trigger has changed the value"),
        ("BEFORE", "SET NEW.views = NULL", ""),
    ] {
        check(
            &format!(
                "CREATE TRIGGER rejects {when} UPDATE ON articles FOR EACH ROW IF NEW.views < 0 THEN {body}; END IF"
            ),
            "DROP TRIGGER rejects",
            message,
        );
    }
    schema.run("UPDATE articles SET views = 1000 * id; INSERT INTO articles (id, views) VALUES (0, 6898)");
    check(
        "ALTER TABLE articles ADD UNIQUE (views)",
        "ALTER TABLE articles DROP INDEX views_2; DELETE FROM articles WHERE id = 0; CALL articles_views_delete(0)",
        "duplicate entry",
    );
    schema.run("UPDATE articles SET views = id; CREATE TABLE tiers (tier INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO tiers VALUES (0)");
    check(
        "ALTER TABLE articles ADD tier INT GENERATED ALWAYS AS (IF(views < 0, -1, 0)) STORED, ADD CONSTRAINT of_tier FOREIGN KEY (tier) REFERENCES tiers (tier)",
        "ALTER TABLE articles DROP FOREIGN KEY of_tier; ALTER TABLE articles DROP tier",
        "a child row",
    );
    check(
        "ALTER TABLE articles ADD code VARCHAR(2) GENERATED ALWAYS AS (CONCAT('', views)) STORED",
        "DO 0",
        "too long",
    );
    schema.run(&format!("DROP USER {account}"));
}

/// 0 views, of which one slot has 10 and is locked, and another -4. The last round waits for one of the two, by chance.
fn a_total_is_rejected_only_if_all_slots_are_known(server: &Server) {
    let schema = installed(server, 1);
    for _ in 0..8 {
        schema.run("UPDATE articles SET views = 0; REPLACE INTO articles_views VALUES (1, 1, 10), (1, 2, -4)");
        let mut owner =
            after(&schema, &["START TRANSACTION", "SELECT * FROM articles_views WHERE id = 1 AND slot = 1 FOR UPDATE"]);
        thread::scope(|scope| {
            let rollup = scope.spawn(|| schema.run(ROLLUP));
            thread::sleep(Duration::from_millis(300));
            owner.query_drop("COMMIT").expect("a commit");
            rollup.join().expect("a roll-up");
        });
        assert_eq!((views(&schema, 1), pending(&schema)), (Some(6), 0));
    }
}

/// A batch is one UPDATE, whatever the other columns of the table have.
fn only_triggers_and_constraints_of_the_column_make_a_rollup_go_record_by_record(server: &Server) {
    let schema = installed(server, 200);
    schema.run(
        "ALTER TABLE articles ADD json JSON, ADD place INT, ADD UNIQUE (place), ADD CHECK (place < 1000), ADD twice INT GENERATED ALWAYS AS (2 * place) STORED;
         CREATE TABLE likes (id BIGINT, FOREIGN KEY (id) REFERENCES articles (id)) ENGINE = InnoDB; INSERT INTO likes SELECT id FROM articles",
    );
    let updates = || -> u64 {
        schema.run("INSERT INTO articles_views SELECT id, 1, 1 FROM articles ON DUPLICATE KEY UPDATE count = 1");
        let mut connection = schema.connect();
        connection.query_drop(ROLLUP).expect("a roll-up");
        let (_, updates): (String, u64) =
            connection.query_first("SHOW SESSION STATUS LIKE 'Com_update_multi'").expect("status").expect("a row");
        assert_eq!(pending(&schema), 0);
        updates
    };
    assert_eq!(updates(), 1);
    for (change, undo) in [
        (
            "CREATE TRIGGER changed BEFORE UPDATE ON articles FOR EACH ROW SET NEW.title = 'changed'",
            "DROP TRIGGER changed",
        ),
        ("ALTER TABLE articles ADD CONSTRAINT few CHECK (Views < 1000000)", "ALTER TABLE articles DROP CONSTRAINT few"),
        ("ALTER TABLE articles ADD UNIQUE one (place, views)", "ALTER TABLE articles DROP INDEX one"),
        ("ALTER TABLE articles ADD more INT GENERATED ALWAYS AS (views + 1) STORED", "DO 0"),
    ] {
        schema.connect().query_drop(change).expect(change);
        // Handlers of MySQL catch the errors of constraints in batches, too.
        let batches = server.is_mysql() && !change.contains("TRIGGER");
        assert_eq!(updates(), if batches { 1 } else { 200 }, "{change}");
        schema.run(undo);
    }
}

fn an_error_that_is_not_of_a_total_ends_the_call(server: &Server) {
    let schema = installed(server, 9);
    for (body, expected) in [
        ("INSERT INTO nothing VALUES (1)", 1146),
        ("CALL nothing()", 1305),
        ("SIGNAL SQLSTATE '45001' SET MYSQL_ERRNO = 5000", 5000),
    ] {
        let trigger =
            format!("CREATE TRIGGER fails BEFORE UPDATE ON articles FOR EACH ROW IF OLD.id = 7 THEN {body}; END IF");
        schema.connect().query_drop(&trigger).expect(&trigger);
        schema.run("INSERT INTO articles_views SELECT id, 1, 1 FROM articles ON DUPLICATE KEY UPDATE count = articles_views.count + 1");
        let total = sum(&schema);
        assert_eq!(error_of(schema.connect().query_drop(ROLLUP)).0, expected);
        assert_eq!((pending_ids(&schema).first(), sum(&schema)), (Some(&7), total), "what comes before is moved");
        schema.run("DROP TRIGGER fails");
    }
    schema.run("DROP TABLE articles");
    assert_eq!(error_of(schema.connect().query_drop(ROLLUP)).0, 1146);
}

/// What the session counts afterwards is committed.
fn a_rollup_that_fails_leaves_no_transaction_open(server: &Server) {
    let schema = installed(server, 5);
    schema.run(
        "CREATE TABLE tiers (tier INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO tiers VALUES (0);
         ALTER TABLE articles ADD tier INT GENERATED ALWAYS AS (views DIV 1000) STORED, ADD FOREIGN KEY (tier) REFERENCES tiers (tier)",
    );
    let counts_on = |mut session: Conn, what: &str| {
        let total = sum(&schema);
        session.query_drop("CALL articles_views_add(2, 7)").expect(what);
        drop(session);
        assert_eq!(sum(&schema), total + 7, "{what}");
    };
    schema.run("CALL articles_views_add(1, 5000)");
    let mut session = schema.connect();
    assert_eq!(error_of(session.query_drop(ROLLUP)).0, 30013);
    counts_on(session, "a rejected total");
    schema.run("CALL articles_views_add(1, -4000)");
    let mut owner = after(&schema, &["START TRANSACTION", "SELECT * FROM articles WHERE id = 1 FOR UPDATE"]);
    let mut session = impatient(&schema);
    assert_eq!(error_of(session.query_drop(ROLLUP)).0, 1205);
    counts_on(session, "a lock wait timeout");
    let mut session = schema.connect();
    let id = session.connection_id();
    thread::scope(|scope| {
        let rollup = scope.spawn(move || {
            assert_eq!(error_of(session.query_drop(ROLLUP)).0, 1317);
            session
        });
        thread::sleep(Duration::from_millis(500));
        schema.run(&format!("KILL QUERY {id}"));
        counts_on(rollup.join().expect("a session"), "KILL QUERY");
    });
    owner.query_drop("COMMIT").expect("a commit");
    for completion in ["SET completion_type = 'CHAIN'", "SET completion_type = 'RELEASE'"] {
        let mut session = after(&schema, &[completion]);
        _ = session.query_drop("CALL articles_views_rollup(1)");
        counts_on(session, completion);
    }
}

/// Beside increments and roll-ups of the record, a total after a reset to 0 is only what was counted after it.
fn a_reset_sets_the_total_and_loses_no_concurrent_increment(server: &Server) {
    let schema = &installed(server, 2);
    let (stop, counted) = (&AtomicBool::new(false), &AtomicU64::new(0));
    thread::scope(|scope| {
        let _end = End(stop);
        for call in ["rollup(1)", "increment(2)", "increment(2)", "increment(2)"] {
            scope.spawn(move || {
                let mut connection = schema.connect();
                while !stop.load(SeqCst) {
                    match connection.query_drop(format!("CALL articles_views_{call}")) {
                        Ok(()) => _ = counted.fetch_add(u64::from(call != "rollup(1)"), SeqCst),
                        // The maintenance of one record can deadlock with it.
                        Err(error) => _ = repeatable(error),
                    }
                }
            });
        }
        let mut connection = schema.connect();
        let mut resets = 0;
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end || resets < 10 {
            let before = counted.load(SeqCst);
            if connection.query_drop("CALL articles_views_reset(2, 0)").map_err(repeatable).is_err() {
                continue;
            }
            let total: Option<i64> = connection.query_first("SELECT articles_views_get(2)").expect("a total");
            // Each of the three can have counted one that it has not yet reported.
            let most = (counted.load(SeqCst) - before) as i64 + 3;
            assert!(
                total.is_some_and(|total| (0..=most).contains(&total)),
                "{total:?} after a reset, and at most {most} were counted"
            );
            resets += 1;
        }
    });
    schema.run("CALL articles_views_reset(2, 0); CALL articles_views_add(2, 9)");
    assert_eq!(get(schema, 2), 9);
}

/// The optimizer hypergraph_optimizer of MySQL reads rows before it locks them: counts would be moved twice.
fn invalid_arguments_are_rejected_and_change_nothing(server: &Server) {
    let schema = installed(server, 3);
    schema.run("CALL articles_views_add(2, 5)");
    let rows = || ["articles", "articles_views"].map(|table| schema.rows(&table.parse().expect("a name")));
    let before = rows();
    let range = [
        ("rollup(0)", 30012),
        ("rollup(-1)", 30012),
        ("rollup(10001)", 30012),
        ("reset(NULL, 1)", 1048),
        ("add(NULL, 1)", 1048),
        ("add(2, NULL)", 1048),
    ];
    let optimizer = [("rollup(NULL)", 30022), ("rollup(1)", 30022), ("compact(2)", 30022)];
    for (call, number) in range.into_iter().chain(optimizer.into_iter().filter(|_| server.is_mysql())) {
        let setting = if number == 30022 { "SET SESSION optimizer_switch = 'hypergraph_optimizer=on'" } else { "DO 0" };
        let (got, text) = error_of(after(&schema, &[setting]).query_drop(format!("CALL articles_views_{call}")));
        assert_eq!(got, number, "{call}: {text}");
        assert!(number != 30012 || text == "articles_views_rollup: p_records must be between 1 and 10000", "{text}");
        assert_eq!(rows(), before, "{call}");
    }
}

/// An UPDATE of two tables that waits for the RENAME of a table with triggers ends MariaDB.
fn a_rename_beside_rollups_ends_no_server(server: &Server) {
    let server = server.another(&[]);
    let schema = &installed(&server, 3);
    schema
        .connect()
        .query_drop("CREATE TRIGGER changed AFTER UPDATE ON articles FOR EACH ROW SET @changed = 1")
        .expect("a trigger");
    let end = Instant::now() + Duration::from_secs(4);
    let renames = &AtomicU64::new(0);
    thread::scope(|scope| {
        for call in [ROLLUP, "CALL articles_views_compact(1)", ROLLUP] {
            scope.spawn(move || {
                let mut connection = schema.connect();
                while Instant::now() < end {
                    // 1146 between both names, 1205 while the RENAME waits.
                    _ = connection.query_drop("CALL articles_views_increment(1)");
                    _ = connection.query_drop(call);
                }
            });
        }
        // The transactions for which the RENAME waits.
        scope.spawn(move || {
            let mut connection = schema.connect();
            while Instant::now() < end {
                for statement in ["START TRANSACTION", "SELECT COUNT(*) FROM articles", "DO SLEEP(0.02)", "COMMIT"] {
                    _ = connection.query_drop(statement);
                }
            }
        });
        scope.spawn(move || {
            let mut connection = after(schema, &["SET SESSION lock_wait_timeout = 2"]);
            while Instant::now() < end {
                let renamed = connection.query_drop("RENAME TABLE articles TO other, other TO articles");
                renames.fetch_add(u64::from(renamed.is_ok()), SeqCst);
            }
        });
    });
    assert!(renames.load(SeqCst) > 3, "{} renames", renames.load(SeqCst));
    schema.run(ROLLUP);
    assert_eq!(pending(schema), 0);
}
