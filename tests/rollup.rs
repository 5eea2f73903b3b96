//! Counts that belong to a column: the total is the column and the slots, and a roll-up moves the counts of the slots into the column.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use rand::RngExt;
use slotted::package::{Options, Package, TableColumn};

use crate::advise::printed;
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
        .on_servers(a_trigger_that_changes_the_value_is_an_error_and_no_loss)
        .on_servers(only_triggers_and_constraints_of_the_column_make_a_rollup_go_record_by_record)
        .on_servers(an_error_that_is_not_of_a_total_ends_the_call)
        .waits()
        .on_servers(a_rollup_that_fails_leaves_no_transaction_open)
        .on(|name: &str| name.starts_with("mysql"), a_rollup_with_the_hypergraph_optimizer_is_rejected)
        .waits()
        .on_servers(reset_delete_and_compact_lock_no_gap_beside_the_record)
        .on_servers(a_reset_sets_the_total_and_loses_no_concurrent_increment)
        .on_servers(changes_of_the_parent_lose_no_pending_count)
        .on_servers(columns_with_on_update_and_zero_dates_keep_their_values)
        .on_servers(records_of_every_key_type_are_moved)
        .on_servers(an_empty_slot_is_deleted_by_the_next_rollup)
        .on_servers(invalid_arguments_are_rejected_and_change_nothing)
        .private()
        .on_servers(a_rename_beside_rollups_ends_no_server);
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

fn articles() -> Package {
    of_column("articles.views", "id BIGINT", |_| {})
}

/// A schema with the package and the articles 1 to `rows`, whose views are their ids.
fn installed(server: &Server, rows: u32) -> Schema<'_> {
    with_column(server, rows, "views INT UNSIGNED, KEY (views)")
}

/// The same with another definition of the column.
fn with_column<'a>(server: &'a Server, rows: u32, column: &str) -> Schema<'a> {
    let schema = server.schema();
    create_articles(&schema, rows, column);
    schema.install(&articles());
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
fn after(schema: &Schema<'_>, statements: &[&str]) -> Conn {
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
    let tool = |arguments: &[&str]| {
        let place = ["--url", &server.url(), "--database", &schema.name];
        let output = Command::new(env!("CARGO_BIN_EXE_slotted")).args(arguments).args(place).output().expect("slotted runs");
        assert!(output.status.success(), "{arguments:?}: {}", printed(&output));
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
                        _ => vec!["START TRANSACTION".into(), statement, if rolled_back { "ROLLBACK" } else { "COMMIT" }.into()],
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
                        Err(mysql::Error::MySqlError(error)) if [1213, 1205].contains(&error.code) => _ = deadlocks.fetch_add(1, SeqCst),
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
                        if connection.query_drop("START TRANSACTION").and_then(|()| connection.query_drop("COMMIT")).is_err() {
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
        tool(&["install", "--column", "articles.views"]);
        is_installed.store(true, SeqCst);
        for (phase, share) in [1, 3, 2, 3, 0].into_iter().enumerate() {
            moved.store(share, SeqCst);
            for _ in 0..cases(50) {
                thread::sleep(Duration::from_millis(15));
                let sessions = sessions.lock().expect("sessions");
                let killed = sessions[random.random_range(0..sessions.len())];
                if phase > 0 {
                    // The session can have ended.
                    _ = administrator.query_drop(format!("KILL {} {killed}", if random.random_bool(0.2) { "" } else { "QUERY" }));
                }
            }
        }
        is_installed.store(false, SeqCst);
        tool(&["uninstall", "articles.views"]);
        drop(end);
    });
    // A session that was killed can still commit or roll back.
    thread::sleep(Duration::from_millis(300));
    assert_eq!(pending(schema), 0);
    for (id, (least, most)) in counted.0.lock().expect("no session failed").iter() {
        let views = views(schema, *id).expect("views") - i64::from(*id);
        assert!((*least..=*most).contains(&views), "{views} views of article {id}, and from {least} to {most} were counted");
    }
    let [transactions, deadlocks, rolled_up, reads] = [transactions, deadlocks, rolled_up, reads].map(|number| number.load(SeqCst));
    eprintln!("{}: {transactions} transactions, {deadlocks} deadlocks, {rolled_up} roll-ups, {reads} reads", server.version);
    assert!(rolled_up > 20 && reads > 100, "{rolled_up} roll-ups, {reads} reads");
    assert!(deadlocks * 500 <= transactions + 500, "{deadlocks} deadlocks in {transactions} transactions");
}

fn the_total_is_the_column_and_the_slots(server: &Server) {
    let schema = installed(server, 3);
    schema.run("UPDATE articles SET views = NULL WHERE id = 2; CALL articles_views_add(1, 5); CALL articles_views_add(2, 7)");
    schema.run("CALL articles_views_add(9, 4); INSERT INTO articles_views VALUES (1, 100, 20)");
    for _ in 0..3 {
        for (id, total) in [(1, 26), (2, 7), (3, 3), (9, 4), (10, 0)] {
            assert_eq!(get(&schema, id), total, "article {id}");
        }
        let totals: Vec<(u32, i64)> = schema.query("SELECT id, total FROM articles_views_totals ORDER BY id");
        assert_eq!(totals, [(1, 26), (2, 7), (3, 3)]);
        schema.run(ROLLUP);
    }
    assert_eq!([1, 2, 3].map(|id| views(&schema, id)), [Some(26), Some(7), Some(3)]);
    assert_eq!(pending_ids(&schema), [9], "an article without a row stays pending");
    schema.run("INSERT INTO articles (id, views) VALUES (9, 1)");
    schema.run(ROLLUP);
    assert_eq!(views(&schema, 9), Some(5));
}

fn a_rollup_in_a_transaction_is_a_part_of_it(server: &Server) {
    let schema = installed(server, 3);
    for isolation in ["REPEATABLE READ", "READ COMMITTED", "SERIALIZABLE"] {
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
            assert_eq!((get(&schema, 1), views(&schema, 1)), (before + moved, Some(before + moved)), "{isolation}, {end}");
        }
    }
    // Without autocommit, the call is a part of the transaction that it begins.
    schema.run("CALL articles_views_add(2, 5)");
    let mut connection = after(&schema, &["SET autocommit = 0", ROLLUP]);
    assert_eq!(views(&schema, 2), Some(2));
    connection.query_drop("COMMIT").expect("a commit");
    assert_eq!(views(&schema, 2), Some(7));
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
    let mut owner = after(&schema, &["START TRANSACTION", "SELECT * FROM articles_views WHERE id = 1 AND slot = 7 FOR UPDATE"]);
    thread::scope(|scope| {
        let rollup = scope.spawn(|| schema.run(ROLLUP));
        thread::sleep(Duration::from_millis(700));
        assert_eq!(pending(&schema), 2, "all others are moved");
        assert!(!rollup.is_finished(), "it waits");
        let mut other = impatient(&schema);
        for statement in ["UPDATE articles SET title = 'other' WHERE id = 1", "UPDATE articles_views SET count = count + 1 WHERE id = 1 AND slot = 9"] {
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
        impatient(&schema).query_drop("UPDATE articles_views SET count = count + 1 WHERE id = 2 AND slot = 11").expect("a free slot");
        owner.query_drop("COMMIT").expect("a commit");
        rollup.join().expect("a roll-up");
    });
    assert_eq!(views(&schema, 2), Some(2 + 5 + 2));
}

/// A foreign key: each child holds a shared lock on its article until COMMIT. Increments come after the child, or before.
fn a_row_that_its_children_lock_all_the_time_is_moved(server: &Server) {
    for increment_first in [false, true] {
        let schema = &installed(server, 1);
        schema.run(
            "CREATE TABLE likes (id BIGINT AUTO_INCREMENT PRIMARY KEY, article BIGINT NOT NULL, FOREIGN KEY (article) REFERENCES articles (id)) ENGINE = InnoDB",
        );
        let [stop, likes] = [&AtomicU64::new(0), &AtomicU64::new(0)];
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(move || {
                    let mut connection = schema.connect();
                    let mut statements = ["INSERT INTO likes (article) VALUES (1)", "CALL articles_views_increment(1)"];
                    if increment_first {
                        statements.reverse();
                    }
                    while stop.load(SeqCst) == 0 {
                        let all = ["START TRANSACTION", statements[0], statements[1], "DO SLEEP(0.005)", "COMMIT"];
                        match all.iter().try_for_each(|statement| connection.query_drop(statement)) {
                            Ok(()) => _ = likes.fetch_add(1, SeqCst),
                            Err(error) => assert!(increment_first && repeatable(error) == 1213, "no deadlock in this order"),
                        }
                    }
                });
            }
            let mut roller = schema.connect();
            let (begin, mut moved) = (Instant::now(), 0);
            // The column follows: it grows ten times.
            let mut last = views(schema, 1);
            while moved < 10 && begin.elapsed() < Duration::from_secs(60) {
                roller.query_drop(ROLLUP).map_err(repeatable).unwrap_or_default();
                let now = views(schema, 1);
                moved += u32::from(now > last);
                last = now;
                thread::sleep(Duration::from_millis(20));
            }
            stop.store(1, SeqCst);
            assert_eq!(moved, 10, "{} likes", likes.load(SeqCst));
        });
        schema.run(ROLLUP);
        assert_eq!(views(schema, 1), Some(1 + likes.load(SeqCst) as i64));
    }
}

fn a_slot_that_is_locked_nearly_all_the_time_is_moved(server: &Server) {
    let schema = &installed(server, 1);
    let [stop, counted] = [&AtomicU64::new(0), &AtomicU64::new(0)];
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut connection = schema.connect();
            while stop.load(SeqCst) == 0 {
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
        stop.store(1, SeqCst);
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

fn a_total_that_is_rejected_stays_pending_and_stops_no_other(server: &Server) {
    let schema = installed(server, 50);
    let check = |what: &str, setup: &str, undo: &str, message: &str| {
        schema.connect().query_drop(setup).expect(setup);
        let before = views(&schema, 7);
        schema.run("INSERT INTO articles_views SELECT id, 1, IF(id = 7, -100, 2) FROM articles");
        let total = sum(&schema);
        for batch in ["NULL", "1", "20"] {
            let (number, text) = error_of(schema.connect().query_drop(format!("CALL articles_views_rollup({batch})")));
            assert_eq!(number, 30013, "{what}: {text}");
            assert!(text.starts_with("articles_views_rollup: articles.views rejects the total of 7: "), "{what}: {text}");
            assert!(text.to_lowercase().contains(message), "{what}: {text}");
            assert_eq!((views(&schema, 7), pending_ids(&schema), sum(&schema)), (before, vec![7], total), "{what}, {batch}");
        }
        let (number, text) = error_of(schema.connect().query_drop("CALL articles_views_compact(7)"));
        assert!(number == 30013 && text.starts_with("articles_views_compact: articles.views rejects the total of 7: "), "{what}: {text}");
        schema.run(undo);
        schema.run("CALL articles_views_delete(7)");
        schema.run(ROLLUP);
    };
    check("out of range", "DO 0", "DO 0", "out of range");
    schema.run("ALTER TABLE articles MODIFY views INT NOT NULL");
    check("CHECK", "ALTER TABLE articles ADD CONSTRAINT positive CHECK (views >= 0)", "ALTER TABLE articles DROP CONSTRAINT positive", "positive");
    for when in ["BEFORE", "AFTER"] {
        let trigger = format!("CREATE TRIGGER rejects {when} UPDATE ON articles FOR EACH ROW IF NEW.views < 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'too few'; END IF");
        check(when, &trigger, "DROP TRIGGER rejects", "too few");
    }
    let unique = "ALTER TABLE articles ADD UNIQUE (views)";
    schema.run("UPDATE articles SET views = 1000 * id; INSERT INTO articles (id, views) VALUES (0, 6898)");
    check("a unique index", unique, "ALTER TABLE articles DROP INDEX views_2; DELETE FROM articles WHERE id = 0; DELETE FROM articles_views WHERE id = 0", "duplicate entry");
    schema.run(
        "UPDATE articles SET views = id; CREATE TABLE tiers (tier INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO tiers VALUES (0);
         ALTER TABLE articles ADD tier INT GENERATED ALWAYS AS (IF(views < 0, -1, 0)) STORED, ADD FOREIGN KEY of_tier (tier) REFERENCES tiers (tier)",
    );
    check("a foreign key of a generated column", "DO 0", "DO 0", "a child row");
    let name: String = schema.first("SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE() AND TABLE_NAME = 'articles'");
    schema.run(&format!("ALTER TABLE articles DROP FOREIGN KEY {name}; ALTER TABLE articles DROP tier, ADD code VARCHAR(2) GENERATED ALWAYS AS (CONCAT('', views)) STORED"));
    check("a generated column", "DO 0", "DO 0", "too long");
}

/// 0 views, of which one slot has 10 and is locked, and another -4.
fn a_total_is_rejected_only_if_all_slots_are_known(server: &Server) {
    let schema = installed(server, 1);
    schema.run("UPDATE articles SET views = 0; INSERT INTO articles_views VALUES (1, 1, 10), (1, 2, -4)");
    let mut owner = after(&schema, &["START TRANSACTION", "SELECT * FROM articles_views WHERE slot = 1 FOR UPDATE"]);
    thread::scope(|scope| {
        let rollup = scope.spawn(|| schema.run(ROLLUP));
        thread::sleep(Duration::from_millis(500));
        owner.query_drop("COMMIT").expect("a commit");
        rollup.join().expect("a roll-up");
    });
    assert_eq!((views(&schema, 1), pending(&schema)), (Some(6), 0));
}

/// The routines run as the account of accounts.sql, which sees the triggers and constraints of the table by its privileges.
fn a_trigger_that_changes_the_value_is_an_error_and_no_loss(server: &Server) {
    let schema = server.schema();
    let name = format!("{}_d", schema.name.replace("slotted_test", "st"));
    create_articles(&schema, 5, "views INT NOT NULL");
    let package = of_column("articles.views", "id BIGINT", |options| options.definer = Some(format!("{name}@localhost").parse().expect("an account")));
    schema.install(&package);
    schema.run(&schema.file(&package, "accounts.sql"));
    for (body, what) in [("SET NEW.views = OLD.views", "puts it back"), ("SET NEW.views = NEW.views + 1", "adds"), ("SET NEW.views = NULL", "NULL")] {
        let trigger = format!("CREATE TRIGGER changes BEFORE UPDATE ON articles FOR EACH ROW IF OLD.id = 2 THEN {body}; END IF");
        schema.connect().query_drop(&trigger).expect(&trigger);
        schema.run("INSERT INTO articles_views SELECT id, 1, 4 FROM articles");
        let total = sum(&schema);
        for call in [ROLLUP, "CALL articles_views_compact(2)"] {
            let (number, text) = error_of(schema.connect().query_drop(call));
            assert_eq!(number, 30013, "{what}: {text}");
            assert!(what == "NULL" || text.ends_with("rejects the total of 2: a trigger has changed the value"), "{what}: {text}");
            assert_eq!((pending_ids(&schema), sum(&schema)), (vec![2], total), "{what}");
        }
        schema.run("DROP TRIGGER changes; CALL articles_views_rollup(NULL); CALL articles_views_rollup(NULL)");
        assert_eq!((pending(&schema), sum(&schema)), (0, total), "{what}");
    }
    // The account sees constraints, too, which no handler of MariaDB catches in a batch.
    schema.run("ALTER TABLE articles ADD CHECK (views < 100); INSERT INTO articles_views SELECT id, 1, IF(id = 2, 100, 1) FROM articles");
    assert_eq!(error_of(schema.connect().query_drop(ROLLUP)).0, 30013);
    assert_eq!(pending_ids(&schema), [2]);
    schema.run(&format!("DROP USER {name}@localhost"));
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
        let (_, updates): (String, u64) = connection.query_first("SHOW SESSION STATUS LIKE 'Com_update_multi'").expect("status").expect("a row");
        assert_eq!(pending(&schema), 0);
        updates
    };
    assert_eq!(updates(), 1);
    for (change, undo) in [
        ("CREATE TRIGGER changed BEFORE UPDATE ON articles FOR EACH ROW SET NEW.title = 'changed'", "DROP TRIGGER changed"),
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
    for (body, expected) in [("INSERT INTO nothing VALUES (1)", 1146), ("CALL nothing()", 1305), ("SIGNAL SQLSTATE '45001' SET MYSQL_ERRNO = 5000", 5000)] {
        let trigger = format!("CREATE TRIGGER fails BEFORE UPDATE ON articles FOR EACH ROW IF OLD.id = 7 THEN {body}; END IF");
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
    for completion in ["CHAIN", "RELEASE"] {
        let completion = format!("SET completion_type = '{completion}'");
        let mut session = after(&schema, &[&completion]);
        _ = session.query_drop("CALL articles_views_rollup(1)");
        counts_on(session, &completion);
    }
}

/// This optimizer, which is off by default, reads rows before it locks them: counts were moved twice.
fn a_rollup_with_the_hypergraph_optimizer_is_rejected(server: &Server) {
    let schema = installed(server, 5);
    schema.run("CALL articles_views_add(1, 4)");
    let total = sum(&schema);
    for call in [ROLLUP, "CALL articles_views_rollup(1)", "CALL articles_views_compact(1)"] {
        let mut connection = after(&schema, &["SET SESSION optimizer_switch = 'hypergraph_optimizer=on'"]);
        assert_eq!(error_of(connection.query_drop(call)).0, 30022, "{call}");
        assert_eq!((sum(&schema), pending(&schema)), (total, 4), "{call}");
    }
    schema.run(ROLLUP);
    assert_eq!((sum(&schema), pending(&schema)), (total, 0));
}

/// Outside a transaction, while the call waits for a slot of its record; inside, a roll-up and a compact as well.
fn reset_delete_and_compact_lock_no_gap_beside_the_record(server: &Server) {
    let schema = installed(server, 5);
    schema.run("CALL articles_views_add(2, 1)");
    for call in ["CALL articles_views_delete(2)", "CALL articles_views_reset(2, 5)", "CALL articles_views_compact(2)", ROLLUP] {
        let mut owner = after(&schema, &["START TRANSACTION", "INSERT INTO articles_views VALUES (2, 600, 0)"]);
        thread::scope(|scope| {
            let called = scope.spawn(|| schema.run(call));
            thread::sleep(Duration::from_millis(300));
            for id in [1, 3] {
                let slot = rand::rng().random_range(0..500);
                let first = format!("INSERT INTO articles_views VALUES ({id}, {slot}, 0) ON DUPLICATE KEY UPDATE count = count");
                impatient(&schema).query_drop(&first).expect(call);
            }
            owner.query_drop("ROLLBACK").expect("a rollback");
            called.join().expect(call);
        });
    }
}

/// Resets and roll-ups of a record beside increments: a total after a reset to 0 is only what was counted after it.
fn a_reset_sets_the_total_and_loses_no_concurrent_increment(server: &Server) {
    let schema = &installed(server, 2);
    for (value, total) in [("7", 7), ("NULL", 0), ("0", 0), ("-3", -3)] {
        schema.run(&format!("CALL articles_views_add(1, 40); CALL articles_views_reset(1, {value})"));
        assert_eq!(get(schema, 1), total);
        _ = schema.connect().query_drop(ROLLUP);
        assert_eq!((get(schema, 1), views(schema, 1)), (total, Some(total.max(0))), "the column cannot have -3");
    }
    schema.run("CALL articles_views_reset(1, 0)");
    let [stop, counted] = [&AtomicU64::new(0), &AtomicU64::new(0)];
    thread::scope(|scope| {
        for session in 0..4 {
            scope.spawn(move || {
                let mut connection = schema.connect();
                let call = if session == 0 { "CALL articles_views_rollup(1)" } else { "CALL articles_views_increment(2)" };
                while stop.load(SeqCst) == 0 {
                    match connection.query_drop(call) {
                        Ok(()) => _ = counted.fetch_add(u64::from(session > 0), SeqCst),
                        // The maintenance of one record can deadlock with it.
                        Err(error) => _ = repeatable(error),
                    }
                }
            });
        }
        let mut connection = schema.connect();
        let mut resets = 0;
        let end = Instant::now() + Duration::from_secs(3);
        while Instant::now() < end || resets < 10 {
            let before = counted.load(SeqCst);
            if connection.query_drop("CALL articles_views_reset(2, 0)").map_err(repeatable).is_err() {
                continue;
            }
            let total: Option<i64> = connection.query_first("SELECT articles_views_get(2)").expect("a total");
            // Each of the three can have counted one that it has not yet reported.
            let most = (counted.load(SeqCst) - before) as i64 + 3;
            if !total.is_some_and(|total| (0..=most).contains(&total)) {
                stop.store(1, SeqCst);
                panic!("{total:?} after a reset, and at most {most} were counted");
            }
            resets += 1;
        }
        stop.store(1, SeqCst);
    });
    schema.run("CALL articles_views_reset(2, 0); CALL articles_views_add(2, 9)");
    assert_eq!(get(schema, 2), 9);
}

fn changes_of_the_parent_lose_no_pending_count(server: &Server) {
    let schema = installed(server, 4);
    let pend = || schema.run("CALL articles_views_add(1, 10)");
    // Set by hand: the pending counts are added to the new value.
    pend();
    schema.run("UPDATE articles SET views = 1000 WHERE id = 1");
    assert_eq!(get(&schema, 1), 1010);
    schema.run(ROLLUP);
    assert_eq!(views(&schema, 1), Some(1010));
    // Deleted and inserted again with a count of its own, by two statements or one.
    for again in ["DELETE FROM articles WHERE id = 1; INSERT INTO articles (id, views) VALUES (1, 60)", "REPLACE INTO articles (id, views) VALUES (1, 60)"] {
        pend();
        schema.run(again);
        assert_eq!(get(&schema, 1), 70, "{again}");
        schema.run(ROLLUP);
        assert_eq!(views(&schema, 1), Some(70), "{again}");
    }
    // Deleted: the counts stay pending until they are deleted.
    pend();
    schema.run("DELETE FROM articles WHERE id = 1; CALL articles_views_rollup(NULL)");
    assert_eq!((pending(&schema), get(&schema, 1)), (10, 10));
    schema.run("CALL articles_views_delete(1)");
    assert_eq!(get(&schema, 1), 0);
    // NULL counts as 0.
    schema.run("UPDATE articles SET views = NULL WHERE id = 3; CALL articles_views_add(3, 4); CALL articles_views_rollup(NULL)");
    assert_eq!(views(&schema, 3), Some(4));
    // The slots are restored alone: the other half is as it was.
    schema.run("CALL articles_views_add(4, 5); CREATE TABLE copy LIKE articles_views; INSERT INTO copy SELECT * FROM articles_views");
    schema.run("CALL articles_views_add(4, 5); TRUNCATE TABLE articles_views; INSERT INTO articles_views SELECT * FROM copy");
    schema.run("ALTER TABLE articles_views ENGINE = InnoDB; OPTIMIZE TABLE articles_views, articles; ALTER TABLE articles ADD note INT");
    schema.run(ROLLUP);
    assert_eq!(views(&schema, 4), Some(9));
}

fn columns_with_on_update_and_zero_dates_keep_their_values(server: &Server) {
    for (keep, kept) in [("changed at,seen", true), ("", false)] {
        let schema = server.schema();
        after(
            &schema,
            &[
                "SET sql_mode = ''",
                "CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL, `changed at` DATETIME ON UPDATE CURRENT_TIMESTAMP, zero DATETIME NOT NULL, part DATE NOT NULL, \
                 seen TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP) ENGINE = InnoDB",
                "INSERT INTO articles VALUES (1, 1, '2000-01-01', '0000-00-00', '2020-00-00', '0000-00-00'), (2, 1, '2000-01-01', '0000-00-00', '2020-00-00', '2000-01-01')",
            ],
        );
        schema.install(&of_column("articles.views", "id BIGINT", |options| {
            if !keep.is_empty() {
                options.keep = keep.parse().expect("names");
            }
        }));
        for call in [ROLLUP, "CALL articles_views_rollup(1)", "CALL articles_views_compact(2)"] {
            schema.run(&format!("CALL articles_views_add(1, 1); CALL articles_views_add(2, 1); {call}"));
        }
        let rows: Vec<(i64, i64, String, String)> =
            schema.query("SELECT YEAR(`changed at`), YEAR(seen), CAST(zero AS CHAR), CAST(part AS CHAR) FROM articles ORDER BY id");
        for ((changed, seen, zero, part), year) in rows.into_iter().zip([0, 2000]) {
            assert_eq!((changed == 2000, seen == year), (kept, kept));
            assert_eq!((zero.as_str(), part.as_str()), ("0000-00-00 00:00:00", "2020-00-00"));
        }
        assert_eq!(sum(&schema), 2 + 6);
    }
}

/// The keys of real tables, of one and of several columns, in batches of each size.
fn records_of_every_key_type_are_moved(server: &Server) {
    let bin = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
    let cases: [(&[&str], &[&str]); 5] = [
        (&["TINYINT UNSIGNED"], &["0", "7", "255"]),
        (&["BIGINT UNSIGNED", "DATE"], &["0, '2026-11-23'", "7, '1999-12-31'", "7, '2026-01-01'", "18446744073709551615, '2026-01-01'"]),
        (&["VARCHAR(20)"], &["'b'", "'B'", "'it''s'", "'/中'", "'/?'", "''"]),
        (&["BINARY(2)", "CHAR(9)"], &["0x0001, 'a'", "0xff00, 'a'", "0xff00, 'A'", "0x0001, ''"]),
        (&["INT", "DATETIME", "VARBINARY(9)"], &["-1, '2026-11-23 10:00:00', 0x00ff", "-1, '2026-11-23 10:00:01', 0x00ff", "-1, '2026-11-23 10:00:00', ''", "5, '1999-12-31 23:59:59', 0x00"]),
    ];
    for (kinds, keys) in cases {
        let schema = server.schema();
        let named = |of: &dyn Fn(&str, &str) -> String, between: &str| -> String {
            ["a", "b", "c"].iter().zip(kinds).map(|(name, kind)| of(name, kind)).collect::<Vec<_>>().join(between)
        };
        let column = |name: &str, kind: &str| format!("{name} {kind} {}", if kind.contains("CHAR") { bin } else { "" });
        let names = named(&|name, _| name.into(), ", ");
        schema.run(&format!("CREATE TABLE parents ({}, n BIGINT NOT NULL DEFAULT 0, PRIMARY KEY ({names})) ENGINE = InnoDB", named(&column, ", ")));
        schema.install(&of_column("parents.n", &named(&|name, kind| format!("{name} {kind}"), ", "), |_| {}));
        for (at, key) in keys.iter().enumerate() {
            schema.run(&format!("INSERT INTO parents VALUES ({key}, {at})"));
        }
        for batch in ["1", "2", "NULL"] {
            for (at, key) in keys.iter().enumerate() {
                schema.run(&format!("CALL parents_n_add({key}, {})", 1000 + at));
            }
            schema.run(&format!("CALL parents_n_rollup({batch})"));
            let left: u64 = schema.first("SELECT COUNT(*) FROM parents_n WHERE count <> 0");
            assert_eq!(left, 0, "{kinds:?}, {batch}");
        }
        for (at, key) in keys.iter().enumerate() {
            let column: usize = schema.first(&format!("SELECT n FROM parents WHERE ({names}) = ({key})"));
            let total: usize = schema.first(&format!("SELECT parents_n_get({key})"));
            assert_eq!((column, total), (3000 + 4 * at, 3000 + 4 * at), "{kinds:?}: {key}");
        }
        // A message names the record, whatever its type is.
        schema.run(&format!("ALTER TABLE parents MODIFY n INT NOT NULL; CALL parents_n_add({}, 1 << 40)", keys[0]));
        let (number, text) = error_of(schema.connect().query_drop("CALL parents_n_rollup(NULL)"));
        assert!(number == 30013 && text.contains("rejects the total of"), "{kinds:?}: {text}");
    }
}

fn an_empty_slot_is_deleted_by_the_next_rollup(server: &Server) {
    let schema = installed(server, 3);
    schema.run("INSERT INTO articles_views VALUES (1, 0, 5), (1, 9, -5), (2, 3, 0), (9, 3, 0), (9, 4, 1)");
    let slots = || -> Vec<(u32, u32, i64)> { schema.query("SELECT id, slot, count FROM articles_views ORDER BY id, slot") };
    schema.run(ROLLUP);
    assert_eq!(slots(), [(1, 0, 0), (1, 9, 0), (9, 4, 1)]);
    assert_eq!(views(&schema, 1), Some(1));
    schema.run(ROLLUP);
    assert_eq!(slots(), [(9, 4, 1)], "an article without a row keeps its counts");
}

fn invalid_arguments_are_rejected_and_change_nothing(server: &Server) {
    let schema = installed(server, 3);
    schema.run("CALL articles_views_add(2, 5)");
    let before: Vec<Vec<_>> = ["articles", "articles_views"].iter().map(|table| schema.rows(&table.parse().expect("a name"))).collect();
    for (call, number) in [("rollup(0)", 30012), ("rollup(-1)", 30012), ("rollup(10001)", 30012), ("reset(NULL, 1)", 1048), ("add(NULL, 1)", 1048), ("add(2, NULL)", 1048)] {
        let (got, text) = error_of(schema.connect().query::<Row, _>(format!("CALL articles_views_{call}")));
        assert_eq!(got, number, "{call}: {text}");
        assert!(number != 30012 || text == "articles_views_rollup: p_records must be between 1 and 10000", "{text}");
        let after: Vec<Vec<_>> = ["articles", "articles_views"].iter().map(|table| schema.rows(&table.parse().expect("a name"))).collect();
        assert_eq!(after, before, "{call}");
    }
}

/// An UPDATE of two tables that waits for the RENAME of a table with triggers ends MariaDB.
fn a_rename_beside_rollups_ends_no_server(server: &Server) {
    let server = server.another(&[]);
    let schema = &installed(&server, 3);
    schema.connect().query_drop("CREATE TRIGGER changed AFTER UPDATE ON articles FOR EACH ROW SET @changed = 1").expect("a trigger");
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
