//! Counts that belong to a column: the total is the column and the slots, and a roll-up moves the counts of the slots into the column.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use rand::RngExt;
use slotted::package::{Options, Package, TableColumn};

use crate::advise::printed;
use crate::queries::Queries;
use crate::support::{Module, Schema, Server, calls, cases, error_of, file, keyed, repeatable};

pub fn promises(mut module: Module<'_>) {
    module
        .alone()
        .on_servers(moving_writers_over_and_back_under_load_is_exact)
        .on_servers(the_total_is_the_column_and_the_slots)
        .on_servers(a_rollup_in_a_transaction_is_a_part_of_it)
        .on_servers(a_rollup_waits_for_no_row_and_delays_no_writer)
        .on_servers(a_rollup_reads_what_is_pending)
        .on_servers(a_total_that_does_not_fit_stays_pending_and_stops_no_other)
        .on_servers(a_rollup_finds_each_record_that_does_not_fit)
        .on_servers(a_killed_rollup_of_a_table_with_a_check_changes_nothing)
        .on_servers(a_rollup_leaves_no_transaction_open)
        .on(|name: &str| name.starts_with("mysql"), a_rollup_of_the_hypergraph_optimizer_moves_each_count_once)
        .on_servers(a_reset_sets_the_column_and_loses_no_concurrent_increment)
        .on_servers(changes_of_the_parent_lose_no_pending_count)
        .on_servers(columns_with_on_update_keep_their_values)
        .on_servers(records_of_every_key_type_are_moved)
        .on_servers(an_empty_slot_is_deleted_by_the_next_rollup)
        .on_servers(other_options_leave_no_rollup)
        .on_servers(uninstall_does_the_last_rollup_and_returns_what_remains)
        .on_servers(invalid_arguments_are_rejected_and_change_nothing)
        .waits()
        .on_servers(only_idle_records_are_compacted);
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

/// Runs a command of the tool that succeeds.
#[track_caller]
fn tool(schema: &Schema<'_>, arguments: &[&str]) {
    let place = ["--url", &schema.server.url(), "--database", &schema.name];
    let output = Command::new(env!("CARGO_BIN_EXE_slotted")).args(arguments).args(place).output().expect("slotted runs");
    assert!(output.status.success(), "{arguments:?}: {}", printed(&output));
}

/// A schema with the package and the articles 1 to `rows`, whose views are their ids.
fn installed(server: &Server, rows: u32) -> Schema<'_> {
    let schema = server.schema();
    create_articles(&schema, rows);
    schema.install(&articles());
    schema
}

/// The articles 1 to `rows`, whose views are their ids.
fn create_articles(schema: &Schema<'_>, rows: u32) {
    schema.run(
        "CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT UNSIGNED, title VARCHAR(50) NOT NULL DEFAULT 'title', KEY (views)) \
         ENGINE = InnoDB",
    );
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

fn get(schema: &Schema<'_>, id: u32) -> i64 {
    schema.first(&format!("SELECT articles_views_get({id})"))
}

/// Ends the other sessions of a load, also if an assertion fails.
struct End<'a>(&'a AtomicBool);

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
    fn add(&self, id: u32, amount: i64, certain: bool) {
        let mut counted = self.0.lock().expect("no session failed");
        let (least, most) = counted.entry(id).or_default();
        *most += amount;
        if certain {
            *least += amount;
        }
    }
}

/// Writers of the column. The package is installed under their load, three quarters of them call the routines later, and no one at the
/// end, when the package is removed under the same load. Roll-ups of all sizes, rollbacks, a reader that sees no total fall, and after a
/// while KILL of roll-ups and of writers.
fn moving_writers_over_and_back_under_load_is_exact(server: &Server) {
    const ARTICLES: u32 = 9;
    const WRITERS: u32 = 16;
    let schema = server.schema();
    create_articles(&schema, ARTICLES);
    let counted = Counted::default();
    // The share of the writers that call the routines, in quarters.
    let moved = AtomicU64::new(0);
    let [stop, killing, is_installed] = [const { AtomicBool::new(false) }; 3];
    let [transactions, deadlocks, rolled_up, reads, conflicts] = [const { AtomicU64::new(0) }; 5];
    let sessions = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let mut all = Vec::new();
        for writer in 0..WRITERS {
            let (schema, counted, moved, stop, sessions) = (&schema, &counted, &moved, &stop, &sessions);
            let (transactions, deadlocks, is_installed) = (&transactions, &deadlocks, &is_installed);
            all.push(scope.spawn(move || {
                let mut random = rand::rng();
                let mut connection: Option<Conn> = None;
                while !stop.load(SeqCst) {
                    let mut session = connection.take().unwrap_or_else(|| {
                        let session = schema.connect();
                        sessions.lock().expect("sessions").push(session.connection_id());
                        session
                    });
                    let id = random.random_range(1..=ARTICLES);
                    let by_routine = u64::from(writer % 4) < moved.load(SeqCst);
                    let statement = if by_routine {
                        format!("CALL articles_views_increment({id})")
                    } else {
                        format!("UPDATE articles SET views = views + 1 WHERE id = {id}")
                    };
                    let transaction = random.random_bool(0.3);
                    let rolled_back = transaction && random.random_bool(0.3);
                    let mut statements = vec![statement];
                    if transaction {
                        statements.insert(0, "START TRANSACTION".into());
                        statements.push(if rolled_back { "ROLLBACK" } else { "COMMIT" }.into());
                    }
                    let mut error = None;
                    let mut silent = false;
                    for statement in &statements {
                        if let Err(got) = session.query_drop(statement) {
                            error = Some((statement.clone(), got));
                            break;
                        }
                        // KILL QUERY can end an UPDATE of MariaDB without an error.
                        silent |= statement.starts_with("UPDATE") && session.affected_rows() == 0;
                    }
                    transactions.fetch_add(1, SeqCst);
                    match error {
                        None if rolled_back => {}
                        None if silent => {
                            eprintln!("{}: an UPDATE that was killed has returned no error", schema.server.version);
                            counted.add(id, 1, false);
                        }
                        None => counted.add(id, 1, true),
                        Some((at, mysql::Error::MySqlError(error))) if [1213, 1205].contains(&error.code) => {
                            assert!(at != "COMMIT", "{error}");
                            deadlocks.fetch_add(1, SeqCst);
                            if session.query_drop("ROLLBACK").is_err() {
                                continue;
                            }
                        }
                        // The package is being removed: the call has not counted.
                        Some((_, mysql::Error::MySqlError(error))) if error.code == 1305 && !is_installed.load(SeqCst) => {
                            if session.query_drop("ROLLBACK").is_err() {
                                continue;
                            }
                        }
                        // Killed: whether it has counted is not known.
                        Some(_) => {
                            if !rolled_back {
                                counted.add(id, 1, false);
                            }
                            if session.query_drop("ROLLBACK").is_err() {
                                continue;
                            }
                        }
                    }
                    connection = Some(session);
                }
            }));
        }
        for size in [1, 9, 1000] {
            let (schema, stop, sessions, rolled_up, killing) = (&schema, &stop, &sessions, &rolled_up, &killing);
            let (conflicts, is_installed) = (&conflicts, &is_installed);
            all.push(scope.spawn(move || {
                let mut connection: Option<Conn> = None;
                while !stop.load(SeqCst) {
                    if !is_installed.load(SeqCst) {
                        thread::sleep(Duration::from_millis(2));
                        continue;
                    }
                    let mut session = connection.take().unwrap_or_else(|| {
                        let session = schema.connect();
                        sessions.lock().expect("sessions").push(session.connection_id());
                        session
                    });
                    match session.query_drop(format!("CALL articles_views_rollup({size})")) {
                        Ok(()) => _ = rolled_up.fetch_add(1, SeqCst),
                        Err(error) => {
                            // A roll-up can be the victim of a deadlock with another one, more often after KILL. Nothing has changed then.
                            let text = error.to_string();
                            assert!(!text.contains("1205"), "{text}");
                            if text.contains("1213") && !killing.load(SeqCst) {
                                conflicts.fetch_add(1, SeqCst);
                            }
                            if session.ping().is_err() {
                                continue;
                            }
                            // A session goes on: what it does next commits what it has left.
                            let next = session.query_drop("START TRANSACTION").and_then(|()| session.query_drop("COMMIT"));
                            if next.is_err() {
                                continue;
                            }
                        }
                    }
                    connection = Some(session);
                    thread::sleep(Duration::from_millis(2));
                }
            }));
        }
        for read in ["SELECT articles_views_get(?)", "SELECT total FROM articles_views_totals WHERE id = ?"] {
            let (schema, stop, reads, is_installed) = (&schema, &stop, &reads, &is_installed);
            all.push(scope.spawn(move || {
                let mut connection = schema.connect();
                let mut last = BTreeMap::<u32, i64>::new();
                while !stop.load(SeqCst) {
                    if !is_installed.load(SeqCst) {
                        thread::sleep(Duration::from_millis(2));
                        continue;
                    }
                    for id in 1..=ARTICLES {
                        let total: mysql::Result<Option<i64>> = connection.exec_first(read, (id,));
                        if total.is_err() && !is_installed.load(SeqCst) {
                            break;
                        }
                        let total = total.expect(read).expect("a row");
                        let before = last.insert(id, total).unwrap_or_default();
                        assert!(total >= before, "{read}: {total} of article {id} after {before}");
                        reads.fetch_add(1, SeqCst);
                    }
                }
            }));
        }
        let end = End(&stop);
        // KILL, in the milliseconds after the writers were moved one quarter further, and back.
        let mut administrator = schema.connect();
        let mut random = rand::rng();
        tool(&schema, &["install", "--column", "articles.views"]);
        is_installed.store(true, SeqCst);
        for (phase, share) in [1, 2, 3, 1, 2, 3, 3, 1, 0].into_iter().enumerate() {
            moved.store(share, SeqCst);
            killing.store(phase > 2, SeqCst);
            for _ in 0..cases(40) {
                thread::sleep(Duration::from_millis(15));
                if phase < 3 {
                    continue;
                }
                let chosen = {
                    let mut sessions = sessions.lock().expect("sessions");
                    if sessions.is_empty() {
                        continue;
                    }
                    let at = random.random_range(0..sessions.len());
                    let kill = if random.random_bool(0.2) { "KILL" } else { "KILL QUERY" };
                    let session = sessions[at];
                    if kill == "KILL" {
                        sessions.swap_remove(at);
                    }
                    format!("{kill} {session}")
                };
                // The session can have ended.
                _ = administrator.query_drop(chosen);
            }
        }
        is_installed.store(false, SeqCst);
        tool(&schema, &["uninstall", "articles.views"]);
        drop(end);
        all.into_iter().for_each(|session| session.join().expect("a session"));
    });
    // A session that was killed can still commit or roll back.
    thread::sleep(Duration::from_millis(300));
    let left = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    assert_eq!(schema.first::<u64>(left), 0);
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM articles_views"), 0, "every slot has become empty");
    for (id, (least, most)) in counted.0.into_inner().expect("no session failed") {
        let views = views(&schema, id).expect("views") - i64::from(id);
        assert!((least..=most).contains(&views), "{views} views of article {id}, and from {least} to {most} were counted");
    }
    let [transactions, deadlocks, rolled_up, reads] = [transactions, deadlocks, rolled_up, reads].map(AtomicU64::into_inner);
    eprintln!("{}: {transactions} transactions, {deadlocks} deadlocks, {rolled_up} roll-ups, {reads} reads", server.version);
    let conflicts = conflicts.into_inner();
    assert!(conflicts * 20 <= rolled_up, "{conflicts} of {rolled_up} roll-ups were rolled back without KILL");
    assert!(rolled_up > 20 && reads > 100, "{rolled_up} roll-ups, {reads} reads");
    assert!(deadlocks * 500 <= transactions + 500, "{deadlocks} deadlocks in {transactions} transactions");
}

fn the_total_is_the_column_and_the_slots(server: &Server) {
    let schema = installed(server, 3);
    let package = articles();
    let queries = Queries::of(&package);
    let mut connection = schema.connect();
    schema.run("UPDATE articles SET views = NULL WHERE id = 2; CALL articles_views_add(1, 5); CALL articles_views_add(2, 7)");
    schema.run("CALL articles_views_add(9, 4); INSERT INTO articles_views VALUES (1, 100, 20)");
    let expected = [(1, 26), (2, 7), (3, 3), (9, 4), (10, 0)];
    for _ in 0..3 {
        for (id, total) in expected {
            assert_eq!(get(&schema, id), total, "article {id}");
            let plain: Vec<i64> = queries.rows(&mut connection, "get", vec![id.into(), id.into()]);
            assert_eq!(plain, [total], "article {id}");
        }
        let page: Vec<Row> = queries.rows(&mut connection, "page_of_articles_views", vec![2.into()]);
        assert_eq!(page.len(), 2);
        for row in page {
            let (id, total): (u32, i64) = (row.get("id").expect("an id"), row.get("total").expect("a total"));
            assert!(expected.contains(&(id, total)), "{id}: {total}");
        }
        let totals: Vec<(u32, i64)> = connection.query("SELECT id, total FROM articles_views_totals ORDER BY id").expect("totals");
        assert_eq!(totals, expected[..3]);
        schema.run(ROLLUP);
    }
    assert_eq!([1, 2, 3].map(|id| views(&schema, id)), [Some(26), Some(7), Some(3)]);
    let left: Vec<(u32, i64, bool)> = queries.rows(&mut connection, "pending_of_articles_views", Vec::new());
    assert_eq!(left, [(9, 4, false)], "an article without a row stays pending");
}

fn a_rollup_in_a_transaction_is_a_part_of_it(server: &Server) {
    let schema = installed(server, 3);
    for isolation in ["REPEATABLE READ", "READ COMMITTED", "SERIALIZABLE"] {
        let mut connection = schema.isolated(isolation);
        for (end, moved) in [("ROLLBACK", 0), ("COMMIT", 5)] {
            let before = views(&schema, 1).expect("views");
            connection.query_drop("START TRANSACTION").expect("a transaction");
            connection.query_drop("CALL articles_views_add(1, 5)").expect("an increment");
            connection.query_drop(ROLLUP).expect("a roll-up");
            let own: Option<i64> = connection.query_first("SELECT views FROM articles WHERE id = 1").expect("views");
            assert_eq!(own, Some(before + 5), "{isolation}");
            assert_eq!(views(&schema, 1), Some(before), "{isolation}: not committed");
            connection.query_drop(end).expect(end);
            assert_eq!(get(&schema, 1), before + moved, "{isolation}, {end}");
            assert_eq!(views(&schema, 1), Some(before + moved), "{isolation}, {end}");
        }
    }
    // Without autocommit, the call is a part of the transaction that it begins.
    let mut connection = schema.connect();
    connection.query_drop("SET autocommit = 0").expect("a setting");
    schema.run("CALL articles_views_add(2, 5)");
    connection.query_drop(ROLLUP).expect("a roll-up");
    assert_eq!(views(&schema, 2), Some(2));
    connection.query_drop("COMMIT").expect("a commit");
    assert_eq!(views(&schema, 2), Some(7));
}

fn a_rollup_waits_for_no_row_and_delays_no_writer(server: &Server) {
    for (rows, primary) in [(2, true), (3, false), (9, true), (500, false)] {
        let schema = server.schema();
        let key = if primary { "id BIGINT PRIMARY KEY" } else { "number INT AUTO_INCREMENT PRIMARY KEY, id BIGINT NOT NULL UNIQUE" };
        schema.run(&format!("CREATE TABLE articles ({key}, views INT, title VARCHAR(50)) ENGINE = InnoDB"));
        let ids: Vec<_> = (1..=rows).map(|id| format!("({id}, 0)")).collect();
        schema.run(&format!("INSERT INTO articles (id, views) VALUES {}", ids.join(", ")));
        schema.install(&articles());
        schema.run("INSERT INTO articles_views SELECT id, 0, 5 FROM articles; INSERT INTO articles_views VALUES (1, 7, 2)");
        let mut owner = schema.connect();
        let mut writer = schema.connect_with_id(7, 521);
        for (connection, statements) in [
            (&mut owner, ["START TRANSACTION", "UPDATE articles SET title = 'mine' WHERE id = 2"]),
            (&mut writer, ["START TRANSACTION", "CALL articles_views_increment(1)"]),
        ] {
            statements.into_iter().for_each(|statement| connection.query_drop(statement).expect(statement));
        }
        for isolation in ["REPEATABLE READ", "READ COMMITTED", "SERIALIZABLE"] {
            for batch in ["1", "NULL"] {
                let mut roller = schema.isolated(isolation);
                roller.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a time-out");
                roller.query_drop(format!("CALL articles_views_rollup({batch})")).expect("no wait");
                assert_eq!(pending(&schema), 5 + 2, "{rows} rows, {isolation}: the article and the slot that are locked");
            }
            let mut other = schema.connect_with_id(8, 521);
            other.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a time-out");
            other.query_drop("UPDATE articles SET title = 'other' WHERE id <> 2 LIMIT 1").expect("no wait");
            other.query_drop("CALL articles_views_add(1, 1); ").expect("no wait");
            other.query_drop("CALL articles_views_add(1, -1)").expect("no wait");
        }
        owner.query_drop("COMMIT").expect("a commit");
        writer.query_drop("COMMIT").expect("a commit");
        schema.run(ROLLUP);
        assert_eq!(pending(&schema), 0);
        let sum: i64 = schema.first("SELECT CAST(SUM(views) AS SIGNED) FROM articles");
        assert_eq!(sum, 5 * rows as i64 + 3, "{rows} rows");
    }
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
    assert!(all < 30 * 20_000, "{all} reads for 20,000 pending records");
    reads(ROLLUP);
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM articles_views"), 0);
    schema.run("INSERT INTO articles_views SELECT id, 0, 1 FROM articles WHERE id % 1000 = 7");
    let few = reads(ROLLUP);
    assert!(few < 40 * 20, "{few} reads for 20 pending records");
    reads(ROLLUP);
    let none = reads(ROLLUP);
    assert!(none < 20, "{none} reads if nothing is pending");
}

fn a_total_that_does_not_fit_stays_pending_and_stops_no_other(server: &Server) {
    let schema = installed(server, 50);
    let check = |what: &str, setup: &str, undo: &str, message: &str| {
        schema.connect().query_drop(setup).expect(setup);
        let before = views(&schema, 7);
        schema.run("INSERT INTO articles_views SELECT id, 1, IF(id = 7, -100, 2) FROM articles");
        let totals: Vec<i64> = (1..=50).map(|id| get(&schema, id)).collect();
        for batch in ["NULL", "1", "20"] {
            let (number, text) = error_of(schema.connect().query_drop(format!("CALL articles_views_rollup({batch})")));
            assert_eq!(number, 30013, "{what}: {text}");
            assert!(text.starts_with("articles_views_rollup: articles.views cannot have the total of 7: "), "{what}: {text}");
            assert!(text.to_lowercase().contains(message), "{what}: {text}");
            assert_eq!(views(&schema, 7), before, "{what}");
            assert_eq!(pending(&schema), -100, "{what}: all others are moved");
            assert_eq!((1..=50).map(|id| get(&schema, id)).collect::<Vec<_>>(), totals, "{what}");
        }
        schema.run(undo);
        schema.run("CALL articles_views_delete(7)");
        schema.run(ROLLUP);
    };
    check("out of range", "DO 0", "DO 0", "out of range");
    schema.run("ALTER TABLE articles MODIFY views INT NOT NULL");
    check("CHECK", "ALTER TABLE articles ADD CONSTRAINT positive CHECK (views >= 0)", "ALTER TABLE articles DROP CONSTRAINT positive", "positive");
    check(
        "a trigger",
        "CREATE TRIGGER rejects BEFORE UPDATE ON articles FOR EACH ROW BEGIN IF NEW.views < 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT \
         = 'too few'; END IF; END",
        "DROP TRIGGER rejects",
        "too few",
    );
    check(
        "a trigger with another state",
        "CREATE TRIGGER rejects BEFORE UPDATE ON articles FOR EACH ROW BEGIN IF NEW.views < 0 THEN SIGNAL SQLSTATE '45001' SET MESSAGE_TEXT \
         = 'too few'; END IF; END",
        "DROP TRIGGER rejects",
        "too few",
    );
    let rejects = |body: &str| {
        format!("CREATE TRIGGER rejects BEFORE UPDATE ON articles FOR EACH ROW BEGIN DECLARE v_two INT; IF NEW.views < 0 THEN {body}; END IF; END")
    };
    for (what, body, message) in [
        ("a trigger with another error", "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 5000, MESSAGE_TEXT = 'too few'", "too few"),
        ("a subquery of a trigger", "SET v_two = (SELECT 1 UNION SELECT 2)", "more than 1 row"),
        ("a CASE of a trigger", "CASE NEW.views WHEN 5 THEN SET v_two = 1; END CASE", "case not found"),
    ] {
        check(what, &rejects(body), "DROP TRIGGER rejects", message);
    }
    // An error that is not of a total ends the call.
    for body in ["INSERT INTO nothing VALUES (1)", "CALL nothing()"] {
        schema.connect().query_drop(rejects(body)).expect("a trigger");
        schema.run("INSERT INTO articles_views SELECT id, 1, -100 FROM articles WHERE id = 7");
        let (number, text) = error_of(schema.connect().query_drop(ROLLUP));
        assert!([1146, 1305].contains(&number), "{number} {text}");
        schema.run("DROP TRIGGER rejects; CALL articles_views_delete(7)");
    }
    schema.run("ALTER TABLE articles ADD quotient INT GENERATED ALWAYS AS (1000 DIV (views + 93)) STORED");
    check("a division in a generated column", "DO 0", "DO 0", "division by 0");
    // A reset has the same total whether the column has it or the slots.
    schema.run("CALL articles_views_reset(7, -93)");
    assert_eq!((views(&schema, 7), get(&schema, 7)), (Some(7), -93));
    schema.run("CALL articles_views_delete(7); ALTER TABLE articles DROP quotient");
    schema.run("CREATE TABLE allowed (n INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO allowed SELECT DISTINCT views + 2 * n FROM articles, (SELECT 0 AS n UNION SELECT 1) AS twice");
    check("a foreign key", "ALTER TABLE articles ADD FOREIGN KEY named (views) REFERENCES allowed (n)", "DO 0", "a child row");
    let name: String = schema.first("SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE() AND TABLE_NAME = 'articles'");
    schema.run(&format!("ALTER TABLE articles DROP FOREIGN KEY {name}"));
    schema.run("UPDATE articles SET views = 1000 * id; INSERT INTO articles (id, views) VALUES (0, 6898)");
    check("a unique index", "ALTER TABLE articles ADD UNIQUE one (views)", "ALTER TABLE articles DROP INDEX one; DELETE FROM articles WHERE id = 0; DELETE FROM articles_views WHERE id = 0", "duplicate entry");
    schema.run("UPDATE articles SET views = id; ALTER TABLE articles ADD code VARCHAR(2) GENERATED ALWAYS AS (CONCAT('', views)) STORED");
    check("a generated column", "DO 0", "DO 0", "too long");
}

/// The transactions of a call are its own, whatever COMMIT does in the session.
fn a_rollup_leaves_no_transaction_open(server: &Server) {
    let schema = installed(server, 5);
    for completion in ["NO_CHAIN", "CHAIN", "RELEASE"] {
        let mut connection = schema.connect();
        connection.query_drop(format!("SET completion_type = '{completion}'")).expect("a setting");
        schema.run("INSERT INTO articles_views SELECT id, 1, 2 FROM articles ON DUPLICATE KEY UPDATE count = articles_views.count + 2");
        connection.query_drop("CALL articles_views_rollup(1)").expect(completion);
        assert_eq!(pending(&schema), 0, "{completion}");
        connection.query_drop("CALL articles_views_increment(1)").expect(completion);
        drop(connection);
        assert_eq!(pending(&schema), 1, "{completion}: the increment has committed");
        schema.run("CALL articles_views_delete(1)");
    }
}

fn a_rollup_finds_each_record_that_does_not_fit(server: &Server) {
    let schema = installed(server, 1000);
    schema.run("INSERT INTO articles_views SELECT id, 1, IF(id % 97 = 3, -2000, 1) FROM articles");
    let (number, text) = error_of(schema.connect().query_drop(ROLLUP));
    assert_eq!(number, 30013);
    assert!(text.contains(" of 3: "), "the first one is named: {text}");
    let left: Vec<(u32, i64)> = schema.query("SELECT id, count FROM articles_views WHERE count <> 0 ORDER BY id");
    let expected: Vec<_> = (1..=1000).filter(|id| id % 97 == 3).map(|id| (id, -2000)).collect();
    assert_eq!(left, expected);
    // The column gets a type that has them.
    schema.run("ALTER TABLE articles MODIFY views INT");
    schema.run(ROLLUP);
    assert_eq!(pending(&schema), 0);
    assert_eq!(views(&schema, 100), Some(100 - 2000));
}

fn a_rollup_of_the_hypergraph_optimizer_moves_each_count_once(server: &Server) {
    let schema = installed(server, 5);
    let counted = AtomicU64::new(0);
    let end = Instant::now() + Duration::from_secs(4);
    thread::scope(|scope| {
        for session in 0..5 {
            let (schema, counted) = (&schema, &counted);
            scope.spawn(move || {
                let mut random = rand::rng();
                let mut connection = schema.connect();
                connection.query_drop("SET SESSION optimizer_switch = 'hypergraph_optimizer=on'").expect("a setting");
                while Instant::now() < end {
                    let id = random.random_range(1..=5);
                    let (call, amount) = match random.random_range(0..10) {
                        0..4 => (format!("CALL articles_views_increment({id})"), 1),
                        4..6 => (format!("CALL articles_views_add_many('[[{id}, 2], [{}, 3]]')", id % 5 + 1), 5),
                        6 => (format!("CALL articles_views_compact({id})"), 0),
                        _ => (format!("CALL articles_views_rollup({})", if session % 2 == 0 { "NULL" } else { "1" }), 0),
                    };
                    match connection.query_drop(&call) {
                        Ok(()) => _ = counted.fetch_add(amount, SeqCst),
                        Err(error) => _ = repeatable(error),
                    }
                }
            });
        }
    });
    let total: u64 = schema.first("SELECT CAST((SELECT SUM(views) FROM articles) + (SELECT COALESCE(SUM(count), 0) FROM articles_views) AS UNSIGNED)");
    eprintln!("{}: {} counts", server.version, counted.load(SeqCst));
    assert_eq!(total, 15 + counted.into_inner());
}

/// The session goes on after KILL QUERY: what it does next commits what the call has left.
fn a_killed_rollup_of_a_table_with_a_check_changes_nothing(server: &Server) {
    let schema = installed(server, 9);
    schema.run("ALTER TABLE articles ADD CONSTRAINT positive CHECK (views >= 0)");
    let expected: i64 = (1..=9).sum();
    let sum = "SELECT CAST((SELECT SUM(views) FROM articles) + (SELECT COALESCE(SUM(count), 0) FROM articles_views) AS SIGNED)";
    let mut session = schema.connect();
    let (id, stop) = (session.connection_id(), AtomicBool::new(false));
    let mut killed = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = rand::rng();
            let mut killer = schema.connect();
            while !stop.load(SeqCst) {
                thread::sleep(Duration::from_micros(random.random_range(100..2000)));
                killer.query_drop(format!("KILL QUERY {id}")).expect("a session");
            }
        });
        let end = Instant::now() + Duration::from_secs(2);
        let mut calls = 0;
        while Instant::now() < end {
            // An amount of each sign: the sum of all does not change.
            let amount = if calls % 2 == 0 { 1 } else { -1 };
            calls += 1;
            schema.run(&format!("INSERT INTO articles_views SELECT id, 1, {amount} FROM articles ON DUPLICATE KEY UPDATE count = articles_views.count + {amount}"));
            killed += u64::from(session.query_drop(ROLLUP).is_err());
            // These statements can be killed, too.
            while session.query_drop("START TRANSACTION").and_then(|()| session.query_drop("COMMIT")).is_err() {}
        }
        if calls % 2 == 1 {
            schema.run("INSERT INTO articles_views SELECT id, 1, -1 FROM articles ON DUPLICATE KEY UPDATE count = articles_views.count - 1");
        }
        stop.store(true, SeqCst);
    });
    eprintln!("{}: {killed} roll-ups killed", server.version);
    assert!(killed > 20, "{killed} roll-ups were killed");
    assert_eq!(schema.first::<i64>(sum), expected);
}

/// Each round: some increments of several connections, a reset to 0, and others, at the same time as roll-ups.
fn a_reset_sets_the_column_and_loses_no_concurrent_increment(server: &Server) {
    let schema = installed(server, 2);
    schema.run("CALL articles_views_add(1, 40); CALL articles_views_reset(1, 7)");
    assert_eq!((views(&schema, 1), get(&schema, 1)), (Some(7), 7));
    for value in ["NULL", "0"] {
        schema.run(&format!("CALL articles_views_add(1, 40); CALL articles_views_reset(1, {value})"));
        assert_eq!((views(&schema, 1), get(&schema, 1)), (Some(0), 0));
    }
    // A value that the column cannot have is the total, and stays pending.
    schema.run("CALL articles_views_reset(1, -3)");
    assert_eq!((views(&schema, 1), get(&schema, 1)), (Some(0), -3));
    schema.run("CALL articles_views_reset(1, 0)");
    // Another transaction has the row of the article: the reset waits for it, as it waits for slots.
    let mut owner = schema.connect();
    owner.query_drop("START TRANSACTION").expect("a transaction");
    owner.query_drop("UPDATE articles SET views = views + 5 WHERE id = 1").expect("an update");
    thread::scope(|scope| {
        let reset = scope.spawn(|| schema.run("CALL articles_views_reset(1, 100)"));
        thread::sleep(Duration::from_millis(200));
        owner.query_drop("COMMIT").expect("a commit");
        reset.join().expect("a reset");
    });
    assert_eq!(get(&schema, 1), 100);

    // Increments of three connections all the time, and resets to the total that the next reset returns: what is read in the
    // transaction of a reset and what is counted add up.
    let (stop, counted, barrier) = (AtomicBool::new(false), AtomicU64::new(0), Barrier::new(5));
    let archived = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut connection = schema.connect();
                barrier.wait();
                while !stop.load(SeqCst) {
                    connection.query_drop("CALL articles_views_increment(2)").expect("an increment");
                    counted.fetch_add(1, SeqCst);
                }
            });
        }
        scope.spawn(|| {
            let mut connection = schema.connect();
            barrier.wait();
            while !stop.load(SeqCst) {
                // The maintenance of the same record can deadlock with it.
                if let Err(error) = connection.query_drop("CALL articles_views_rollup(1)") {
                    repeatable(error);
                }
            }
        });
        let end = End(&stop);
        let mut connection = schema.connect();
        barrier.wait();
        let mut resets = 0;
        for _ in calls(200) {
            // Totals after a reset to 0 are only what was counted after it.
            let before = counted.load(SeqCst);
            let Ok(()) = connection.query_drop("CALL articles_views_reset(2, 0)") else { continue };
            let total: Option<i64> = connection.query_first("SELECT articles_views_get(2)").expect("a total");
            let after = counted.load(SeqCst);
            // Each of the three can have counted one that it has not yet reported.
            let most = (after - before) as i64 + 3;
            assert!(total.is_some_and(|total| (0..=most).contains(&total)), "{total:?} after a reset, and at most {most} were counted");
            resets += 1;
        }
        drop(end);
        resets
    });
    assert!(archived > 10, "{archived} resets");
    schema.run(ROLLUP);
    schema.run("CALL articles_views_reset(2, 0); CALL articles_views_add(2, 9)");
    assert_eq!(get(&schema, 2), 9);
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
    // Deleted: the counts stay pending until the row or the counter ends.
    pend();
    schema.run("DELETE FROM articles WHERE id = 1");
    schema.run(ROLLUP);
    assert_eq!((pending(&schema), get(&schema, 1)), (10, 10));
    schema.run("CALL articles_views_delete(1)");
    assert_eq!(get(&schema, 1), 0);
    // A trigger deletes them with the row.
    schema.run("CREATE TRIGGER deletes AFTER DELETE ON articles FOR EACH ROW DELETE FROM articles_views WHERE id = OLD.id");
    schema.run("CALL articles_views_add(2, 10); DELETE FROM articles WHERE id = 2");
    assert_eq!(pending(&schema), 0);
    // NULL counts as 0.
    schema.run("UPDATE articles SET views = NULL WHERE id = 3; CALL articles_views_add(3, 4)");
    schema.run(ROLLUP);
    assert_eq!(views(&schema, 3), Some(4));
    // The slots or the articles are restored alone, or emptied: the other half is as it was.
    schema.run("CALL articles_views_add(4, 5); CREATE TABLE copy LIKE articles_views; INSERT INTO copy SELECT * FROM articles_views");
    schema.run("CALL articles_views_add(4, 5); TRUNCATE TABLE articles_views; INSERT INTO articles_views SELECT * FROM copy");
    assert_eq!(get(&schema, 4), 9);
    schema.run("ALTER TABLE articles_views ENGINE = InnoDB; OPTIMIZE TABLE articles_views, articles; ALTER TABLE articles ADD note INT");
    schema.run(ROLLUP);
    assert_eq!(views(&schema, 4), Some(9));
}

fn columns_with_on_update_keep_their_values(server: &Server) {
    for (keep, kept) in [(true, true), (false, false)] {
        let schema = server.schema();
        schema.run(
            "CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL, `changed at` DATETIME ON UPDATE CURRENT_TIMESTAMP, \
             seen TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP) ENGINE = InnoDB; \
             INSERT INTO articles VALUES (1, 1, '2000-01-01', '2000-01-01')",
        );
        let package = of_column("articles.views", "id BIGINT", |options| {
            if keep {
                options.keep = "changed at,seen".parse().expect("names");
            }
        });
        schema.install(&package);
        schema.run("CALL articles_views_add(1, 2); CALL articles_views_rollup(NULL); CALL articles_views_add(1, 2)");
        schema.run("CALL articles_views_reset(1, 5)");
        let query = "SELECT views, YEAR(`changed at`), YEAR(seen) FROM articles";
        let (views, changed, seen): (i64, i64, i64) = schema.first(query);
        assert_eq!((views, changed == 2000, seen == 2000), (5, kept, kept));
    }
}

fn records_of_every_key_type_are_moved(server: &Server) {
    let values = |values: &[&'static str]| values.to_vec();
    for (kind, values) in [
        ("TINYINT UNSIGNED", values(&["0", "7", "255"])),
        ("BIGINT UNSIGNED", values(&["0", "7", "18446744073709551615"])),
        ("DATE", values(&["'2026-11-23'", "'1999-12-31'", "'2026-01-01'"])),
        ("DATETIME", values(&["'2026-11-23 10:00:00'", "'1999-12-31 23:59:59'", "'2026-11-23 10:00:01'"])),
        ("VARCHAR(20)", values(&["'b'", "'a'", "'it''s'", "'/中'", "'/?'"])),
        ("CHAR(9)", values(&["'b'", "'a'", "''"])),
        ("BINARY(2)", values(&["0x0001", "0xff00"])),
        ("VARBINARY(9)", values(&["0x0001", "0xff00", "''"])),
    ] {
        let text = if kind.contains("CHAR") { "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci" } else { "" };
        for columns in 1..=3 {
            let schema = server.schema();
            let names: Vec<_> = ["a", "b", "c"].into_iter().take(columns).collect();
            let definitions: Vec<_> = names.iter().map(|name| format!("{name} {kind} {text}")).collect();
            let key: Vec<_> = names.iter().map(|name| format!("{name} {kind}")).collect();
            schema.run(&format!(
                "CREATE TABLE parents ({}, n BIGINT NOT NULL DEFAULT 0, PRIMARY KEY ({})) ENGINE = InnoDB",
                definitions.join(", "),
                names.join(", ")
            ));
            let package = of_column("parents.n", &key.join(", "), |_| {});
            schema.install(&package);
            // All pairs and triples of values.
            let mut keys = vec![Vec::new()];
            for _ in 0..columns {
                keys = keys.iter().flat_map(|key| values.iter().map(|value| [&key[..], &[*value]].concat())).collect();
            }
            for (at, key) in keys.iter().enumerate() {
                let key = key.join(", ");
                schema.run(&format!("INSERT INTO parents VALUES ({key}, {at}); CALL parents_n_add({key}, {})", 1000 + at));
            }
            for batch in ["1", "2", "NULL"] {
                schema.run(&format!("CALL parents_n_rollup({batch})"));
                let mut wrong = Vec::new();
                for (at, key) in keys.iter().enumerate() {
                    let equal: Vec<_> = names.iter().zip(key).map(|(name, value)| format!("{name} = {value}")).collect();
                    let column: usize = schema.first(&format!("SELECT n FROM parents WHERE {}", equal.join(" AND ")));
                    let total: usize = schema.first(&format!("SELECT parents_n_get({})", key.join(", ")));
                    if (column, total) != (1000 + 2 * at, 1000 + 2 * at) {
                        wrong.push((key, column, total));
                    }
                }
                assert!(wrong.is_empty(), "{kind}, {columns} columns, {batch}: {wrong:?}");
            }
        }
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

fn other_options_leave_no_rollup(server: &Server) {
    let without = keyed(|options| {
        options.prefix = "articles_views_".parse().expect("a prefix");
        options.table = "articles_views".parse().expect("a table");
        options.key = "id BIGINT".parse().expect("a key");
        options.function = false;
    });
    let left = "SELECT GROUP_CONCAT(ROUTINE_NAME ORDER BY LENGTH(ROUTINE_NAME)) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = \
                DATABASE() AND ROUTINE_NAME REGEXP 'get$|rollup$|move$'";
    let any = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    for end in ["create_procedures.sql", "uninstall.sql"] {
        let schema = installed(server, 1);
        assert_eq!(schema.first::<String>(left), "articles_views_get,_articles_views_move,articles_views_rollup");
        schema.run(&file(&without, end));
        assert_eq!(schema.first::<u64>(any), if end == "uninstall.sql" { 0 } else { without.routines().count() as u64 }, "{end}");
    }
}

fn uninstall_does_the_last_rollup_and_returns_what_remains(server: &Server) {
    let schema = installed(server, 3);
    schema.run("CALL articles_views_add(1, 5); CALL articles_views_add(9, 4)");
    let said = server.client(&schema.name).pipe(&["--batch"], &file(&articles(), "uninstall.sql"));
    assert!(said.success, "{said:?}");
    assert_eq!(said.stdout.trim(), "id\tpending\n9\t4");
    assert_eq!(views(&schema, 1), Some(6));
    assert_eq!(pending(&schema), 4, "the table is kept");
}

fn invalid_arguments_are_rejected_and_change_nothing(server: &Server) {
    let schema = installed(server, 3);
    schema.run("CALL articles_views_add(2, 5)");
    let tables = ["articles", "articles_views"].map(|table| table.parse().expect("a name"));
    let before: Vec<Vec<Vec<Value>>> = tables.iter().map(|table| schema.rows(table)).collect();
    for mode in ["DEFAULT", "''"] {
        let mut connection = schema.connect();
        connection.query_drop(format!("SET SESSION sql_mode = {mode}")).expect("a mode");
        for (call, number, message) in [
            ("rollup(0)", 30012, "p_records must be between 1 and 10000"),
            ("rollup(-1)", 30012, "p_records must be between 1 and 10000"),
            ("rollup(10001)", 30012, "p_records must be between 1 and 10000"),
            ("compact(NULL)", 30009, "column 'id' cannot be NULL"),
            ("reset(NULL, 1)", 30009, "column 'id' cannot be NULL"),
        ] {
            let got = error_of(connection.query::<Row, _>(format!("CALL articles_views_{call}")));
            let routine = call.split('(').next().unwrap_or_default();
            assert_eq!(got, (number, format!("articles_views_{routine}: {message}")), "{mode}: {call}");
            assert_eq!(tables.iter().map(|table| schema.rows(table)).collect::<Vec<_>>(), before, "{mode}: {call}");
        }
    }
    schema.run("DROP TABLE articles");
    assert_eq!(error_of(schema.connect().query_drop(ROLLUP)).0, 1146, "no such table");
    let connection = &mut schema.connect();
    assert_eq!(error_of(connection.query_drop(ROLLUP)).0, 1146);
    let open: Option<u64> = connection
        .query_first("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = CONNECTION_ID() AND trx_rows_locked > 0")
        .expect("transactions");
    assert_eq!(open, Some(0), "no transaction is left open");
}

fn only_idle_records_are_compacted(server: &Server) {
    let schema = server.schema();
    schema.install(&keyed(|_| {}));
    let rows: Vec<_> = (1..=5).flat_map(|record| [0, 7, 9].map(|slot| format!("(1, {record}, {slot}, {record})"))).collect();
    schema.run(&format!("INSERT INTO slotted_counters VALUES (1, 9, 4, 4), {}", rows.join(", ")));
    let busy = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut connection = schema.connect();
            while busy.load(SeqCst) {
                connection.query_drop("CALL slotted_counter_increment(1, 3)").expect("an increment");
                thread::sleep(Duration::from_millis(5));
            }
        });
        let spread = "SELECT COUNT(*) FROM slotted_counter_totals WHERE slots > 1";
        schema.run("CALL slotted_counter_compact_idle(2, 2)");
        assert_eq!(schema.first::<u64>(spread), 3, "at most p_records are compacted");
        schema.run("CALL slotted_counter_compact_idle(2, NULL)");
        busy.store(false, SeqCst);
        assert_eq!(schema.first::<u64>(spread), 1, "the record that is incremented is not compacted");
    });
    let mut connection = schema.connect();
    let totals: Vec<(i64, i64, i64)> = connection
        .query("SELECT record_id, slots, total FROM slotted_counter_totals WHERE record_id <> 3 ORDER BY record_id")
        .expect("totals");
    assert_eq!(totals, [(1, 1, 3), (2, 1, 6), (4, 1, 12), (5, 1, 15), (9, 1, 4)]);
    assert!(schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters WHERE record_id = 3") > 2);
}
