//! Counts that belong to a column: the total is the column and the slots, and a roll-up moves the counts of the slots into the column.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use rand::RngExt;
use slotted::package::{Options, Package, TableColumn};

use crate::columns::succeeds;
use crate::support::{Module, Schema, Server, SetOnDrop, cases, error_of, repeatable, sql_statements, until};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(moving_writers_over_and_back_under_load_is_exact)
        .on_servers(the_total_is_the_column_and_the_slots)
        .waits()
        .on_servers(a_rollup_in_a_transaction_is_a_part_of_it)
        .waits()
        .on_servers(a_rollup_moves_what_is_free_and_waits_once_for_what_is_locked)
        .waits()
        .on_servers(a_rollup_that_waits_delays_no_other_writer)
        .waits()
        .on_servers(a_total_is_rejected_only_if_all_slots_are_known)
        .waits()
        .on_servers(a_record_that_is_locked_all_the_time_is_moved)
        .on_servers(a_rollup_reads_what_is_pending)
        .on_servers(the_archive_of_a_column_delays_nobody)
        .on_servers(a_total_that_is_rejected_stays_pending_and_stops_no_other)
        .on_servers(only_triggers_and_constraints_of_the_column_make_a_rollup_go_record_by_record)
        .on_servers(a_reset_sets_the_total_and_loses_no_concurrent_increment)
        .on_servers(invalid_arguments_are_rejected_and_change_nothing)
        .waits()
        .on_servers(a_rollup_beside_a_rename_ends_no_server);
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
    create_articles(&schema, rows);
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    schema
}

fn create_articles(schema: &Schema<'_>, rows: u32) {
    let rows: Vec<_> = (1..=rows).map(|id| format!("({id}, {id})")).collect();
    schema.run(&format!(
        "CREATE TABLE articles (id BIGINT PRIMARY KEY, title VARCHAR(50) NOT NULL DEFAULT 'title', views INT UNSIGNED, KEY (views)) ENGINE = InnoDB;
         INSERT INTO articles (id, views) VALUES {}",
        rows.join(", ")
    ));
}

const ROLLUP: &str = "CALL articles_views_rollup(NULL)";
const READ_COMMITTED: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

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

/// A connection that has executed statements, such as those that lock something in a transaction.
pub fn after(schema: &Schema<'_>, statements: &[&str]) -> Conn {
    let mut connection = schema.connect();
    for statement in statements {
        connection.query_drop(statement).expect(statement);
    }
    connection
}

/// A connection that waits for a lock for 1 s at most.
fn impatient(schema: &Schema<'_>) -> Conn {
    after(schema, &["SET SESSION innodb_lock_wait_timeout = 1"])
}

/// Writers of the column: the package is installed under their load, most of them call the routines later, and no one at the end, when the
/// package is removed under the same load. Roll-ups of all sizes, rollbacks, and readers that see no total fall.
fn moving_writers_over_and_back_under_load_is_exact(server: &Server) {
    const ARTICLES: usize = 9;
    let schema = &server.schema();
    create_articles(schema, ARTICLES as u32);
    let counted = &[const { AtomicI64::new(0) }; ARTICLES + 1];
    // The share of the writers that call the routines, in quarters.
    let moved = &AtomicU64::new(0);
    let [stop, is_installed] = &[const { AtomicBool::new(false) }; 2];
    let [transactions, deadlocks, rolled_up, reads] = &[const { AtomicU64::new(0) }; 4];
    thread::scope(|scope| {
        for writer in 0..16 {
            scope.spawn(move || {
                let (mut connection, mut random) = (schema.connect(), rand::rng());
                while !stop.load(SeqCst) {
                    let id = random.random_range(1..=ARTICLES);
                    let count = if writer % 4 < moved.load(SeqCst) {
                        format!("CALL articles_views_increment({id})")
                    } else {
                        format!("UPDATE articles SET views = views + 1 WHERE id = {id}")
                    };
                    let end = if random.random_bool(0.2) { "ROLLBACK" } else { "COMMIT" };
                    let transaction = ["START TRANSACTION", &count, end];
                    let alone = random.random_bool(0.5);
                    let statements = if alone { &transaction[1..2] } else { &transaction };
                    transactions.fetch_add(1, SeqCst);
                    match statements.iter().try_for_each(|statement| connection.query_drop(statement)) {
                        Ok(()) => _ = counted[id].fetch_add(i64::from(alone || end == "COMMIT"), SeqCst),
                        // The package is being removed.
                        Err(mysql::Error::MySqlError(error)) if error.code == 1305 && !is_installed.load(SeqCst) => {}
                        Err(error) => _ = deadlocks.fetch_add(u64::from(repeatable(error) == 1213), SeqCst),
                    }
                    connection.query_drop("ROLLBACK").expect("a rollback");
                }
            });
        }
        for size in [1, 9, 1000] {
            scope.spawn(move || {
                let mut connection = schema.connect();
                while !stop.load(SeqCst) {
                    if is_installed.load(SeqCst) {
                        let rollup = connection.query_drop(format!("CALL articles_views_rollup({size})"));
                        let is_removed = rollup.is_err() && !is_installed.load(SeqCst);
                        assert!(rollup.is_ok() || is_removed, "{rollup:?}");
                        rolled_up.fetch_add(1, SeqCst);
                    }
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        for read in ["SELECT articles_views_get(?)", "SELECT total FROM articles_views_totals WHERE id = ?"] {
            scope.spawn(move || {
                let (mut connection, mut last) = (schema.connect(), [0; ARTICLES + 1]);
                for id in (1..=ARTICLES).cycle().take_while(|_| !stop.load(SeqCst)) {
                    let total: mysql::Result<Option<i64>> = connection.exec_first(read, (id,));
                    if is_installed.load(SeqCst) {
                        let total = total.expect(read).expect("a row");
                        assert!(total >= last[id], "{read}: {total} of article {id} after {}", last[id]);
                        last[id] = total;
                        reads.fetch_add(1, SeqCst);
                    }
                }
            });
        }
        let _end = SetOnDrop(stop);
        succeeds(schema, &["install", "--column", "articles.views"]);
        is_installed.store(true, SeqCst);
        for share in [1, 3, 2, 3, 0] {
            moved.store(share, SeqCst);
            let before = [&rolled_up, &reads].map(|number| number.load(SeqCst));
            thread::sleep(Duration::from_millis(15) * cases(50));
            until("5 roll-ups and 20 reads", || {
                rolled_up.load(SeqCst) >= before[0] + 5 && reads.load(SeqCst) >= before[1] + 20
            });
        }
        is_installed.store(false, SeqCst);
        succeeds(schema, &["uninstall", "articles.views"]);
    });
    assert_eq!(pending(schema), 0);
    for (id, counted) in counted.iter().enumerate().skip(1) {
        assert_eq!(views(schema, id as u32), Some(id as i64 + counted.load(SeqCst)), "article {id}");
    }
    let [transactions, deadlocks] = [transactions, deadlocks].map(|number| number.load(SeqCst));
    assert!(deadlocks * 500 <= transactions + 500, "{deadlocks} deadlocks in {transactions} transactions");
}

/// A slot that stays empty is deleted by the next roll-up.
fn the_total_is_the_column_and_the_slots(server: &Server) {
    let schema = installed(server, 3);
    schema.run(
        "UPDATE articles SET views = NULL WHERE id = 2; CALL articles_views_add(2, 7); CALL articles_views_add(9, 4);
         INSERT INTO articles_views VALUES (1, 90, 5), (1, 100, 20), (3, 0, 5), (3, 9, -5)",
    );
    for _ in 0..3 {
        assert_eq!([1, 2, 3, 9, 10].map(|id| get(&schema, id)), [26, 7, 3, 4, 0]);
        let totals: Vec<(u32, i64)> = schema.query("SELECT id, total FROM articles_views_totals ORDER BY id");
        assert_eq!(totals, [(1, 26), (2, 7), (3, 3)]);
        schema.run(ROLLUP);
    }
    assert_eq!([1, 2, 3].map(|id| views(&schema, id)), [Some(26), Some(7), Some(3)]);
    let slots: Vec<(u32, i64)> = schema.query("SELECT id, count FROM articles_views");
    assert_eq!(slots, [(9, 4)], "an article without a row stays pending");
    schema.run(&format!("INSERT INTO articles (id, views) VALUES (9, 1); {ROLLUP}"));
    assert_eq!(views(&schema, 9), Some(5));
}

fn a_rollup_in_a_transaction_is_a_part_of_it(server: &Server) {
    let schema = installed(server, 3);
    let mut connection =
        after(&schema, &[READ_COMMITTED, "START TRANSACTION", "CALL articles_views_add(1, 5)", ROLLUP]);
    let own: Option<i64> = connection.query_first("SELECT views FROM articles WHERE id = 1").expect("views");
    assert_eq!((own, views(&schema, 1)), (Some(6), Some(1)));
    // The first increment of the next record does not wait.
    impatient(&schema).query_drop("CALL articles_views_add(2, 0)").expect("an increment");
    connection.query_drop("ROLLBACK").expect("a rollback");
    assert_eq!((get(&schema, 1), views(&schema, 1)), (1, Some(1)));
    // Without autocommit, it leaves slots that are 0, which others would wait for.
    schema.run("CALL articles_views_add(3, 0)");
    let _open = after(&schema, &["SET autocommit = 0", ROLLUP]);
    impatient(&schema).query_drop("UPDATE articles_views SET count = 0 WHERE id = 3").expect("no lock");
    // The compaction of a record waits for its slots, too. Meanwhile it locks no gap.
    schema.run("INSERT INTO articles_views VALUES (2, 601, 1), (2, 602, 1)");
    let _counting =
        after(&schema, &["START TRANSACTION", "UPDATE articles_views SET count = 2 WHERE id = 2 AND slot = 602"]);
    let mut job = impatient(&schema);
    thread::scope(|scope| {
        let waits = scope.spawn(move || error_of(job.query_drop("CALL articles_views_compact(2)")).0);
        thread::sleep(Duration::from_millis(300));
        let first = impatient(&schema).query_drop("INSERT INTO articles_views VALUES (2, 600, 1)");
        assert_eq!(waits.join().expect("a session"), 1205);
        first.expect("a slot beside the record");
    });
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

/// A row that stays locked, and a job that has locked many rows: with batches, and with the UPDATE of one record, which a trigger needs. After
/// the error, no transaction is open: what the session counts next is committed.
fn a_rollup_moves_what_is_free_and_waits_once_for_what_is_locked(server: &Server) {
    for trigger in ["DO 0", "CREATE TRIGGER changed AFTER UPDATE ON articles FOR EACH ROW SET @changed = 1"] {
        let schema = installed(server, 50);
        schema.run(&format!("{trigger}; INSERT INTO articles_views SELECT id, 1, IF(id = 40, -100, 2) FROM articles"));
        let lock = "UPDATE articles SET title = 'mine' WHERE id IN (2, 4, 6, 8, 10, 12)";
        let mut job = after(&schema, &[READ_COMMITTED, "START TRANSACTION", lock]);
        let mut roller = impatient(&schema);
        let begin = Instant::now();
        assert_eq!(error_of(roller.query_drop(ROLLUP)).0, 1205, "{trigger}");
        assert!(begin.elapsed() < Duration::from_secs(4), "{trigger}: {:?}", begin.elapsed());
        roller.query_drop("CALL articles_views_add(1, 7)").expect("a count");
        assert_eq!(pending_ids(&schema), [1, 2, 4, 6, 8, 10, 12, 40], "{trigger}");
        job.query_drop("COMMIT").expect("a commit");
        assert_eq!(error_of(roller.query_drop(ROLLUP)).0, 30013, "{trigger}");
        roller.query_drop("CALL articles_views_add(3, 7)").expect("a count");
        assert_eq!(pending_ids(&schema), [3, 40], "{trigger}");
    }
}

/// Starts a roll-up, which waits for what another transaction has locked until `meanwhile` has ended.
fn rollup_behind(schema: &Schema<'_>, lock: &str, meanwhile: impl FnOnce()) {
    thread::scope(|scope| {
        let mut owner = after(schema, &["START TRANSACTION", lock]);
        let rollup = scope.spawn(|| schema.run(ROLLUP));
        thread::sleep(Duration::from_millis(500));
        assert!(!rollup.is_finished(), "it waits");
        meanwhile();
        owner.query_drop("COMMIT").expect("a commit");
    });
    assert_eq!(pending(schema), 0);
}

/// While it waits for a slot, the row and the other slots are free, and while it waits for a row, the slots are.
fn a_rollup_that_waits_delays_no_other_writer(server: &Server) {
    let schema = installed(server, 3);
    let other = |statement: &str| impatient(&schema).query_drop(statement).expect(statement);
    schema.run("INSERT INTO articles_views VALUES (1, 7, 2), (1, 9, 3), (2, 9, 5)");
    rollup_behind(&schema, "SELECT * FROM articles_views WHERE id = 1 AND slot = 7 FOR UPDATE", || {
        assert_eq!(pending(&schema), 2, "all others are moved");
        other("UPDATE articles SET title = 'other' WHERE id = 1");
        other("UPDATE articles_views SET count = count + 1 WHERE id = 1 AND slot = 9");
    });
    assert_eq!(views(&schema, 1), Some(1 + 2 + 3 + 1));
    schema.run("INSERT INTO articles_views VALUES (2, 11, 1)");
    rollup_behind(&schema, "UPDATE articles SET title = 'mine' WHERE id = 2", || {
        other("UPDATE articles_views SET count = count + 1 WHERE id = 2 AND slot = 11");
    });
    assert_eq!(views(&schema, 2), Some(2 + 5 + 2));
}

/// 0 views, of which one slot has 10 and is locked, and another -4. The last round waits for one of the two, by chance.
fn a_total_is_rejected_only_if_all_slots_are_known(server: &Server) {
    let schema = installed(server, 1);
    for _ in 0..8 {
        schema.run("UPDATE articles SET views = 0; REPLACE INTO articles_views VALUES (1, 1, 10), (1, 2, -4)");
        rollup_behind(&schema, "SELECT * FROM articles_views WHERE id = 1 AND slot = 1 FOR UPDATE", || {});
        assert_eq!(views(&schema, 1), Some(6));
    }
}

/// Sessions that lock the row or the slot in one transaction after the other: a child of a foreign key, which holds a shared lock on the row
/// until COMMIT, a writer of the row, and a call. Ten of at most 100 roll-ups move something. Without waiting, few would.
fn a_record_that_is_locked_all_the_time_is_moved(server: &Server) {
    let (child, row, call) = (
        "INSERT INTO likes (article) VALUES (1)",
        "UPDATE articles SET title = 'other' WHERE id = 1",
        "CALL articles_views_increment(1)",
    );
    for (sessions, steps) in [
        (8, [child, call, "DO SLEEP(0.005)"]),
        (8, [call, child, "DO SLEEP(0.005)"]),
        (6, [row, call, "DO SLEEP(0.01)"]),
        (1, [call, "DO SLEEP(0.05)", "DO 0"]),
    ] {
        let schema = &installed(server, 1);
        schema.run("CREATE TABLE likes (id BIGINT AUTO_INCREMENT PRIMARY KEY, article BIGINT NOT NULL, FOREIGN KEY (article) REFERENCES articles (id)) ENGINE = InnoDB");
        let (stop, counted) = (&AtomicBool::new(false), &AtomicI64::new(0));
        thread::scope(|scope| {
            let _end = SetOnDrop(stop);
            for _ in 0..sessions {
                scope.spawn(move || {
                    let mut connection = schema.connect();
                    while !stop.load(SeqCst) {
                        let all = [&["START TRANSACTION"][..], &steps[..], &["COMMIT"]].concat();
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
            let has_moved = |_: &u32| {
                thread::sleep(Duration::from_millis(60));
                let before = views(schema, 1);
                roller.query_drop(ROLLUP).map_err(repeatable).unwrap_or_default();
                views(schema, 1) > before
            };
            // The roll-up waits for the slot and then moves it, unless the next increment comes first. Without the wait, 1 in 100 moves.
            let moves = (0..100).filter(has_moved).take(5).count();
            assert_eq!(moves, 5, "roll-ups, of {counted:?} increments: {steps:?}");
        });
        schema.run(ROLLUP);
        assert_eq!(views(schema, 1), Some(1 + counted.load(SeqCst)), "{steps:?}");
    }
}

fn a_rollup_reads_what_is_pending(server: &Server) {
    let schema = installed(server, 10_000);
    schema.run("INSERT INTO articles_views SELECT id, 0, 1 FROM articles; ANALYZE TABLE articles_views; ANALYZE TABLE articles");
    let reads = |statement: &str| -> u64 {
        let mut connection = after(&schema, &[statement]);
        let rows: Vec<(String, u64)> = connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'").expect("status");
        rows.iter().map(|(_, count)| count).sum()
    };
    // Of each slot: to find the batch, to lock it and its article, to change both, and in temporary tables.
    let all = reads("CALL articles_views_rollup(100)");
    assert!(all < 60 * 10_000, "{all} reads for 10,000 pending records");
    reads(ROLLUP);
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM articles_views"), 0);
    schema.run("INSERT INTO articles_views SELECT id, 0, 1 FROM articles WHERE id % 500 = 7");
    let [few, _, none] = [(); 3].map(|()| reads(ROLLUP));
    assert!(few < 80 * 20, "{few} reads for 20 pending records");
    assert!(none < 60, "{none} reads if nothing is pending");
}

fn the_archive_of_a_column_delays_nobody(server: &Server) {
    let schema = installed(server, 20);
    let statements = sql_statements("docs/columns.md", "Reads");
    let from = statements.iter().position(|one| one.starts_with("CREATE TABLE archived_views")).expect("the archive");
    let [create, autocommit, rollup, isolation, copy, views_of_the_day] = &statements[from..] else {
        panic!("{statements:?}")
    };
    schema.run(&format!("{create}; INSERT INTO archived_views SELECT CURRENT_DATE - INTERVAL 5 DAY, id, views FROM articles WHERE id < 20"));
    schema.run("CALL articles_views_increment(1)");
    let mut archive = after(&schema, &[autocommit, rollup, isolation, "START TRANSACTION", copy]);
    let mut other = impatient(&schema);
    for id in 1..=21 {
        for statement in ["CALL articles_views_increment(?)", "UPDATE articles SET views = views + 1 WHERE id = ?"] {
            other.exec_drop(statement, (id,)).expect(statement);
        }
    }
    other
        .query_drop("INSERT INTO articles (id, views) VALUES (21, 0); CALL articles_views_rollup(NULL)")
        .expect("no wait");
    archive.query_drop("COMMIT").expect("a commit");
    // The last copy is older than a day, and has no article 20.
    let views: Vec<(u32, i64)> = schema.query(views_of_the_day);
    assert_eq!(views.into_iter().filter(|(_, views)| *views != 0).collect::<Vec<_>>(), [(1, 1), (20, 20)]);
    assert_eq!(schema.first::<i64>("SELECT SUM(views) FROM articles"), 210 + 1 + 20 + 21);
}

/// The routines run as the account of accounts.sql, which sees the triggers and constraints of the table by its privileges. An error that is
/// not of a total ends the call.
fn a_total_that_is_rejected_stays_pending_and_stops_no_other(server: &Server) {
    let account = format!("slotted_{}@localhost", std::process::id());
    let package = of_column("articles.views", "id BIGINT", |options| {
        options.definer = Some(account.parse().expect("an account"))
    });
    let trigger = |when: &str, body: &str| {
        format!("CREATE TRIGGER fails {when} UPDATE ON articles FOR EACH ROW IF NEW.views < 0 THEN {body}; END IF")
    };
    let signal = |state: &str| format!("SIGNAL SQLSTATE '{state}' SET MESSAGE_TEXT = 'too few', MYSQL_ERRNO = 5000");
    let changed = "a trigger has changed the value";
    for (change, number, message) in [
        ("ALTER TABLE articles MODIFY views INT UNSIGNED", 30013, "out of range"),
        ("ALTER TABLE articles ADD CONSTRAINT positive CHECK (views >= 0)", 30013, "positive"),
        (&trigger("BEFORE", &signal("45000")), 30013, "too few"),
        (&trigger("AFTER", &signal("45000")), 30013, "too few"),
        (&trigger("AFTER", &signal("02000")), 30013, "too few"),
        (&trigger("BEFORE", "SET NEW.views = OLD.views"), 30013, changed),
        (&trigger("BEFORE", "SET NEW.views = NEW.views + 1"), 30013, changed),
        (&trigger("BEFORE", "SET NEW.views = NULL"), 30013, ""),
        // The new total of article 0, which is moved first.
        ("INSERT INTO articles (id, views) VALUES (0, -1002); ALTER TABLE articles ADD UNIQUE (views)", 30013, "duplicate entry"),
        (
            "CREATE TABLE tiers (tier INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO tiers VALUES (0);
             ALTER TABLE articles ADD tier INT GENERATED ALWAYS AS (IF(views < 0, -1, 0)) STORED, ADD FOREIGN KEY (tier) REFERENCES tiers (tier)",
            30013,
            "a child row",
        ),
        (
            "ALTER TABLE articles ADD code VARCHAR(3) GENERATED ALWAYS AS (CONCAT('', views)) STORED",
            30013,
            "too long",
        ),
        (&trigger("BEFORE", "INSERT INTO nothing VALUES (1)"), 1146, "nothing"),
        (&trigger("BEFORE", "CALL nothing()"), 1305, "nothing"),
        (&trigger("BEFORE", &signal("45001")), 5000, "too few"),
    ] {
        let schema = server.schema();
        create_articles(&schema, 50);
        schema.run("ALTER TABLE articles MODIFY views INT; UPDATE articles SET views = 10 * id");
        ["setup.sql", "accounts.sql"].iter().for_each(|name| schema.run(&schema.file(&package, name)));
        after(&schema, &[change]);
        schema.run("INSERT INTO articles_views SELECT id, 1, IF(id = 7, -1070, 2) FROM articles");
        for call in ["rollup(NULL)", "rollup(1)", "rollup(20)", "compact(7)"] {
            let (found, text) = error_of(schema.connect().query_drop(format!("CALL articles_views_{call}")));
            assert!(found == number && text.to_lowercase().contains(message), "{change}, {call}: {found} {text}");
            let (routine, _) = call.split_once('(').expect("a call");
            let start = format!("articles_views_{routine}: articles.views rejects the total of 7: ");
            assert!(number != 30013 || text.starts_with(&start), "{change}: {text}");
            assert_eq!((views(&schema, 7), get(&schema, 7)), (Some(70), -1000), "{change}, {call}");
            // What comes before is moved.
            let left = pending_ids(&schema);
            assert!(left[0] == 7 && (left.len() == 1 || number != 30013), "{change}, {call}: {left:?}");
        }
    }
    server.connect().query_drop(format!("DROP USER {account}")).expect("DROP USER");
}

/// A batch is one UPDATE, whatever the other columns of the table have.
fn only_triggers_and_constraints_of_the_column_make_a_rollup_go_record_by_record(server: &Server) {
    let trigger = "CREATE TRIGGER changed BEFORE UPDATE ON articles FOR EACH ROW SET NEW.title = 'changed'";
    for change in [
        "DO 0",
        trigger,
        "ALTER TABLE articles ADD CONSTRAINT few CHECK (Views < 1000000)",
        "ALTER TABLE articles ADD UNIQUE one (place, views)",
        "ALTER TABLE articles ADD more INT GENERATED ALWAYS AS (views + 1) STORED",
    ] {
        let schema = installed(server, 200);
        schema.run(
            "ALTER TABLE articles ADD json JSON, ADD place INT, ADD UNIQUE (place), ADD CHECK (place < 1000), ADD twice INT GENERATED ALWAYS AS (2 * place) STORED;
             CREATE TABLE likes (id BIGINT, FOREIGN KEY (id) REFERENCES articles (id)) ENGINE = InnoDB; INSERT INTO likes SELECT id FROM articles",
        );
        let mut connection =
            after(&schema, &[change, "INSERT INTO articles_views SELECT id, 1, 1 FROM articles", ROLLUP]);
        let (_, updates): (String, u64) =
            connection.query_first("SHOW SESSION STATUS LIKE 'Com_update_multi'").expect("status").expect("a row");
        // Handlers of MySQL catch the errors of constraints in batches, too.
        let record_by_record = change == trigger || change != "DO 0" && !server.is_mysql();
        assert_eq!((updates, pending(&schema)), (if record_by_record { 200 } else { 1 }, 0), "{change}");
    }
}

/// Beside increments and roll-ups of the record, a total after a reset to 0 is only what was counted after it.
fn a_reset_sets_the_total_and_loses_no_concurrent_increment(server: &Server) {
    let schema = &installed(server, 2);
    let (stop, counted) = (&AtomicBool::new(false), &AtomicI64::new(0));
    thread::scope(|scope| {
        let _end = SetOnDrop(stop);
        for call in ["rollup(1)", "increment(2)", "increment(2)", "increment(2)"] {
            scope.spawn(move || {
                let mut connection = schema.connect();
                while !stop.load(SeqCst) {
                    match connection.query_drop(format!("CALL articles_views_{call}")) {
                        Ok(()) => _ = counted.fetch_add(i64::from(call != "rollup(1)"), SeqCst),
                        // The maintenance of one record can deadlock with it.
                        Err(error) => _ = repeatable(error),
                    }
                }
            });
        }
        let (mut connection, mut resets, end) = (schema.connect(), 0, Instant::now() + Duration::from_secs(2));
        while Instant::now() < end || resets < 10 {
            let before = counted.load(SeqCst);
            if connection.query_drop("CALL articles_views_reset(2, 0)").map_err(repeatable).is_err() {
                continue;
            }
            let total: i64 = connection.query_first("SELECT articles_views_get(2)").expect("a total").expect("a row");
            // Each of the three can have counted one that it has not yet reported.
            let most = counted.load(SeqCst) - before + 3;
            assert!((0..=most).contains(&total), "{total} after a reset, and at most {most} were counted");
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
    let (usual, hypergraph) = ("DO 0", "SET SESSION optimizer_switch = 'hypergraph_optimizer=on'");
    let range = "articles_views_rollup: p_records must be between 1 and 10000";
    let optimizer = "the roll-up needs hypergraph_optimizer=off";
    for (setting, call, expected) in [
        (usual, "rollup(0)", (30012, range)),
        (usual, "rollup(10001)", (30012, range)),
        (hypergraph, "rollup(NULL)", (30022, optimizer)),
        (hypergraph, "rollup(1)", (30022, optimizer)),
        (hypergraph, "compact(2)", (30022, optimizer)),
    ] {
        if setting == usual || server.is_mysql() {
            let (number, text) = error_of(after(&schema, &[setting]).query_drop(format!("CALL articles_views_{call}")));
            assert_eq!((number, &text[..]), expected, "{call}");
            assert_eq!((views(&schema, 2), pending(&schema)), (Some(2), 5), "{call}");
        }
    }
}

/// An UPDATE of two tables that waits for the RENAME of a table with triggers ends MariaDB. A batch, and the UPDATE of one record.
fn a_rollup_beside_a_rename_ends_no_server(server: &Server) {
    let server = server.another(&[]);
    let schema = installed(&server, 3);
    schema.run("CREATE TRIGGER changed AFTER UPDATE ON articles FOR EACH ROW SET @changed = 1");
    for call in ["CALL _articles_views_move(1, 9, FALSE, @rejected)", "CALL articles_views_compact(1)"] {
        let mut caller = after(&schema, &["CALL articles_views_add(1, 5)", call, "CALL articles_views_add(1, 5)"]);
        thread::scope(|scope| {
            let mut reader = after(&schema, &["START TRANSACTION", "SELECT COUNT(*) FROM articles"]);
            scope.spawn(|| schema.run("RENAME TABLE articles TO other, other TO articles"));
            thread::sleep(Duration::from_millis(300));
            let called = scope.spawn(move || caller.query_drop(call));
            thread::sleep(Duration::from_millis(300));
            let waits = !called.is_finished();
            reader.query_drop("COMMIT").expect("a commit");
            let called = called.join().expect("a session");
            assert!(called.is_ok() || error_of(called).0 == 1205, "{call}");
            // MariaDB does not let it wait.
            assert_eq!(waits, server.is_mysql(), "{call}");
        });
        schema.run(ROLLUP);
        assert_eq!(pending(&schema), 0, "{call}");
    }
}
