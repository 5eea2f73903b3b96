//! Counts that belong to a column: the total is the column and the slots, and a roll-up moves the counts of the slots into the column.

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(moving_writers_over_and_back_under_load_is_exact)
        .on_servers(the_total_is_the_column_and_the_slots)
        .on_servers(a_rollup_waits_for_no_record_without_pending_counts)
        .on_servers(a_rollup_reads_what_is_pending)
        .on_servers(the_archive_of_a_column_delays_nobody)
        .on_servers(a_total_that_is_rejected_stays_pending_and_stops_no_other)
        .on_servers(counts_of_long_keys_are_moved_once)
        .on_servers(what_a_trigger_makes_of_the_value_is_the_value)
        .on_servers(a_reset_sets_the_total_and_loses_no_concurrent_increment)
        .on_servers(killed_rollups_move_each_count_once)
        .on_servers(an_error_in_a_transaction_takes_the_move_back)
        .on_servers(errors_of_long_keys_and_of_deadlocks_lose_no_count)
        .on_servers(a_copy_of_the_table_with_its_triggers_keeps_the_counts)
        .waits()
        .on_servers(a_rollup_in_a_transaction_is_a_part_of_it)
        .on_servers(a_rollup_moves_what_is_free_and_waits_once_for_what_is_locked)
        .on_servers(a_rollup_that_waits_delays_no_other_writer)
        .on_servers(a_part_that_the_row_rejects_stays_until_the_rest_is_free)
        .on_servers(a_record_that_is_locked_all_the_time_is_moved)
        .on_servers(a_gap_that_a_transaction_has_locked_stops_its_record_alone)
        .on_servers(a_rollup_that_waits_a_second_delays_child_rows_for_a_second)
        .on_servers(maintenance_leaves_no_isolation_level_behind)
        .on_servers(the_column_of_a_saturated_record_stays_a_second_behind);
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

/// Writers of the column: the package is installed under their load, most of them call the routines later, and no one at the end, when the
/// package is removed under the same load. Roll-ups of all sizes, rollbacks, and readers that see no total fall.
fn moving_writers_over_and_back_under_load_is_exact(server: &Server) {
    const ARTICLES: usize = 9;
    let schema = &server.schema();
    create_articles(schema, ARTICLES as u32);
    let counted = [const { AtomicI64::new(0) }; ARTICLES + 1];
    let (moved, is_installed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let [rolled_up, reads] = [const { AtomicU64::new(0) }; 2];
    // Of four writers, `moved` call the routines.
    let write = |connection: &mut Conn, writer: usize| {
        let mut random = rand::rng();
        let id = random.random_range(1..=ARTICLES);
        let count = if writer % 4 < moved.load(SeqCst) {
            format!("CALL articles_views_increment({id})")
        } else {
            format!("UPDATE articles SET views = views + 1 WHERE id = {id}")
        };
        let end = if random.random_bool(0.2) { "ROLLBACK" } else { "COMMIT" };
        let (transaction, alone) = (["START TRANSACTION", &count, end], random.random_bool(0.5));
        match run_all(connection, if alone { &transaction[1..2] } else { &transaction }) {
            Ok(()) => _ = counted[id].fetch_add(i64::from(alone || end == "COMMIT"), SeqCst),
            Err(mysql::Error::MySqlError(error)) if error.code == 1305 && !is_installed.load(SeqCst) => {}
            Err(error) => _ = repeatable(error),
        }
        run(connection, "ROLLBACK");
    };
    let roll_up = |connection: &mut Conn, size: usize| {
        if is_installed.load(SeqCst) {
            let rollup = number_of(connection.query_drop(format!("CALL articles_views_rollup({size})")));
            // MariaDB also queues for locks that it skips, so that one of two at once can be a deadlock.
            assert!(rollup == 0 || rollup == 1205 && !server.is_mysql() || !is_installed.load(SeqCst), "{rollup}");
            rolled_up.fetch_add(1, SeqCst);
        }
        thread::sleep(Duration::from_millis(2));
    };
    let last = [const { AtomicI64::new(0) }; 2 * (ARTICLES + 1)];
    let read = |connection: &mut Conn, reader: usize| {
        for id in 1..=ARTICLES {
            let read = ["SELECT articles_views_get(?)", "SELECT total FROM articles_views_totals WHERE id = ?"][reader];
            let total: mysql::Result<Option<i64>> = connection.exec_first(read, (id,));
            if is_installed.load(SeqCst) {
                let total = total.expect(read).expect("a row");
                let before = last[reader * ARTICLES + id].swap(total, SeqCst);
                assert!(total >= before, "{read}: {total} of article {id} after {before}");
                reads.fetch_add(1, SeqCst);
            }
        }
    };
    let part = |connection: &mut Conn, number| match number {
        0..16 => write(connection, number),
        16..19 => roll_up(connection, [1, 9, 1000][number - 16]),
        _ => read(connection, number - 19),
    };
    beside((0..21).map(|_| schema.connect()), part, || {
        ends(schema, 0, "install --column articles.views");
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
        ends(schema, 0, "uninstall articles.views");
    });
    assert_eq!(pending(schema), 0);
    for (id, counted) in counted.iter().enumerate().skip(1) {
        assert_eq!(views(schema, id as u32), Some(id as i64 + counted.load(SeqCst)), "article {id}");
    }
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
    let mut connection = schema.after(&[READ_COMMITTED, "START TRANSACTION", "CALL articles_views_add(1, 5)", ROLLUP]);
    let own: Option<i64> = connection.query_first("SELECT views FROM articles WHERE id = 1").expect("views");
    assert_eq!((own, views(&schema, 1)), (Some(6), Some(1)));
    schema.impatient().query_drop("CALL articles_views_add(2, 0)").expect("an increment");
    connection.query_drop("ROLLBACK").expect("a rollback");
    assert_eq!((get(&schema, 1), views(&schema, 1)), (1, Some(1)));
    // Without autocommit, a transaction begins with the call.
    schema.run("CALL articles_views_add(3, 5)");
    schema.after(&["SET autocommit = 0", ROLLUP, "ROLLBACK"]);
    assert_eq!((get(&schema, 3), views(&schema, 3)), (8, Some(3)));
    schema.run("CALL articles_views_reset(3, 3)");
    // The compaction of a record waits for its slots, too. Meanwhile it locks no gap.
    schema.run("INSERT INTO articles_views VALUES (2, 601, 1), (2, 602, 1)");
    let _counting =
        schema.after(&["START TRANSACTION", "UPDATE articles_views SET count = 2 WHERE id = 2 AND slot = 602"]);
    let (waited, ()) = schema.while_waiting(&mut schema.impatient(), &["CALL articles_views_compact(2)"], || {
        run(&mut schema.impatient(), "INSERT INTO articles_views VALUES (2, 600, 1)");
    });
    assert_eq!(error_of(waited).0, 1205);
    let _owner = schema.after(&["START TRANSACTION", "SELECT * FROM articles WHERE id = 1 FOR UPDATE"]);
    schema.run("CALL articles_views_add(1, 5)");
    let mut connection = schema.after(&["START TRANSACTION", "CALL articles_views_add(3, 7)", ROLLUP]);
    let left: Vec<u32> = connection.query("SELECT id FROM articles_views WHERE count <> 0 AND id <> 2").expect("ids");
    assert_eq!(left, [1]);
    connection.query_drop("ROLLBACK").expect("a rollback");
    assert_eq!(get(&schema, 3), 3);
}

/// A job has locked many rows, of a table with and without a trigger. After the error, no transaction is open: the next count is committed.
fn a_rollup_moves_what_is_free_and_waits_once_for_what_is_locked(server: &Server) {
    for trigger in ["DO 0", "CREATE TRIGGER changed AFTER UPDATE ON articles FOR EACH ROW SET @changed = 1"] {
        let schema = installed(server, 50);
        schema.run(&format!("{trigger}; INSERT INTO articles_views SELECT id, 1, IF(id = 40, -100, 2) FROM articles"));
        let lock = "UPDATE articles SET title = 'mine' WHERE id IN (2, 4, 6, 8, 10, 12)";
        let mut job = schema.after(&[READ_COMMITTED, "START TRANSACTION", lock]);
        let mut roller = schema.impatient();
        let begin = Instant::now();
        let (number, text) = error_of(roller.query_drop(ROLLUP));
        let both = text.contains(" (1205); articles.views rejects the counts of 40: ");
        assert!(number == 30013 && both, "{trigger}: {number} {text}");
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
    let mut owner = schema.after(&["START TRANSACTION", lock]);
    let (moved, ()) = schema.while_waiting(&mut schema.connect(), &[ROLLUP], || {
        meanwhile();
        run(&mut owner, "COMMIT");
    });
    moved.expect(ROLLUP);
    assert_eq!(pending(schema), 0);
}

/// While it waits for a slot, the row and the other slots are free, and while it waits for a row, the slots are. Also with an index that
/// begins with the key and contains the column, from which MariaDB reads the row.
fn a_rollup_that_waits_delays_no_other_writer(server: &Server) {
    for index in ["DO 0", "ALTER TABLE articles ADD KEY (id, views)"] {
        let schema = installed(server, 3);
        let other = |statement: &str| run(&mut schema.impatient(), statement);
        schema.run(&format!("{index}; INSERT INTO articles_views VALUES (1, 7, 2), (1, 9, 3), (2, 9, 5), (3, 9, 5)"));
        rollup_behind(&schema, "SELECT * FROM articles_views WHERE id = 1 AND slot = 7 FOR UPDATE", || {
            let moved = schema.first::<i64>("SELECT count FROM articles_views WHERE id = 1 AND slot = 9");
            assert_eq!(moved, 0, "the free slot of the record is moved");
            other("UPDATE articles SET title = 'other' WHERE id = 1");
            other("UPDATE articles_views SET count = count + 1 WHERE id = 1 AND slot = 9");
        });
        assert_eq!(views(&schema, 1), Some(1 + 2 + 3 + 1), "{index}");
        schema.run("INSERT INTO articles_views VALUES (1, 11, 1), (2, 11, 1)");
        rollup_behind(&schema, "SELECT title FROM articles WHERE id = 2 FOR UPDATE", || {
            other("UPDATE articles_views SET count = count + 1 WHERE id = 2 AND slot = 11");
            let all = ["START TRANSACTION", "UPDATE articles_views SET count = count + 1", "ROLLBACK"];
            run_all(&mut schema.impatient(), &all).expect("no slot is locked");
        });
        assert_eq!([1, 2, 3].map(|id| views(&schema, id)), [Some(7 + 1), Some(2 + 5 + 2), Some(3 + 5)], "{index}");
    }
}

/// 0 views, of which one slot has 10 and is locked, and another -4. The roll-up moves none, and does not wait for the slot of the next record.
fn a_part_that_the_row_rejects_stays_until_the_rest_is_free(server: &Server) {
    let schema = installed(server, 2);
    schema.run("UPDATE articles SET views = 0; REPLACE INTO articles_views VALUES (1, 1, 10), (1, 0, -4), (2, 0, 0)");
    let mut next = schema.after(&["START TRANSACTION", "SELECT * FROM articles_views WHERE id = 2 FOR UPDATE"]);
    let lock = "SELECT * FROM articles_views WHERE id = 1 AND slot = 1 FOR UPDATE";
    let mut open = schema.after(&["START TRANSACTION", lock]);
    for begin in ["DO 0", "BEGIN"] {
        let mut caller = schema.after(&[begin]);
        let (number, message) = error_of(caller.query_drop(ROLLUP));
        assert!(number == 1205 && message.contains("locked 1: Out of range"), "{begin}: {number} {message}");
        run(&mut caller, "COMMIT");
        assert_eq!((views(&schema, 1), pending(&schema)), (Some(0), 6));
    }
    [&mut open, &mut next].into_iter().for_each(|session| run(session, "COMMIT"));
    schema.run(ROLLUP);
    assert_eq!(views(&schema, 1), Some(6));
    // A slot that appears meanwhile hides none that is locked, and none that is locked meanwhile is left in silence.
    let new = "SELECT * FROM articles_views WHERE id = 1 AND slot = 2 FOR UPDATE";
    for count in [10, 0, 10, 0, 10, 0] {
        let counts = format!("REPLACE INTO articles_views VALUES (1, 1, {count}), (2, 1, 1)");
        schema.run(&format!("DELETE FROM articles_views WHERE id = 1; {counts}"));
        let mut held = schema.after(&["START TRANSACTION", if count > 0 { lock } else { "DO 0" }]);
        let mut row = schema.after(&["START TRANSACTION", "SELECT * FROM articles WHERE id = 2 FOR UPDATE"]);
        let (moved, came_first) = schema.while_waiting(&mut schema.impatient(), &[ROLLUP], || {
            let came_first = schema.first::<u8>("SELECT COUNT(*) FROM articles_views WHERE id = 1") == 0;
            schema.run("INSERT INTO articles_views VALUES (1, 2, 1)");
            run(&mut held, if count > 0 { "DO 0" } else { new });
            run(&mut row, "COMMIT");
            came_first
        });
        assert!(came_first || number_of(moved) == 1205, "{count}");
    }
}

/// Each record has a slot of 0 after its roll-up, until the next one deletes it.
fn a_rollup_waits_for_no_record_without_pending_counts(server: &Server) {
    let schema = installed(server, 1);
    schema.run("INSERT INTO articles_views VALUES (1, 5, 0)");
    let _owner = schema.after(&["START TRANSACTION", "SELECT * FROM articles WHERE id = 1 FOR UPDATE"]);
    run(&mut schema.impatient(), ROLLUP);
}

/// Sessions that lock the row or the slot in one transaction after the other: a child of a foreign key, which holds a shared lock on the row
/// until COMMIT, a writer of the row, and a call. Ten of at most 100 roll-ups move something. Without waiting, few would.
fn a_record_that_is_locked_all_the_time_is_moved(server: &Server) {
    let (child, call) = ("INSERT INTO likes (article) VALUES (1)", "CALL articles_views_increment(1)");
    let row = "UPDATE articles SET title = 'other' WHERE id = 1";
    for (sessions, steps) in [
        (8, [child, call, "DO SLEEP(0.005)"]),
        (8, [call, child, "DO SLEEP(0.005)"]),
        (6, [row, call, "DO SLEEP(0.01)"]),
        (1, [call, "DO SLEEP(0.05)", "DO 0"]),
    ] {
        let schema = &installed(server, 1);
        schema.run("CREATE TABLE likes (id BIGINT AUTO_INCREMENT PRIMARY KEY, article BIGINT NOT NULL, FOREIGN KEY (article) REFERENCES articles (id)) ENGINE = InnoDB");
        let counted = AtomicI64::new(0);
        let all = [&["START TRANSACTION"][..], &steps, &["COMMIT"]].concat();
        let count = |connection: &mut Conn, _| match run_all(connection, &all) {
            Ok(()) => _ = counted.fetch_add(1, SeqCst),
            Err(error) => assert!(steps[1] == child && repeatable(error) == 1213, "no deadlock in this order"),
        };
        let mut roller = schema.connect();
        let moves = |_: &u32| {
            thread::sleep(Duration::from_millis(60));
            let before = views(schema, 1);
            roller.query_drop(ROLLUP).map_err(repeatable).unwrap_or_default();
            views(schema, 1) > before
        };
        // The roll-up waits for the slot and then moves it, unless the next increment comes first. Without the wait, 1 in 100 moves.
        let moved = beside((0..sessions).map(|_| schema.connect()), count, || (0..100).filter(moves).take(5).count());
        assert_eq!(moved, 5, "roll-ups, of {counted:?} increments: {steps:?}");
        schema.run(ROLLUP);
        assert_eq!(views(schema, 1), Some(1 + counted.load(SeqCst)), "{steps:?}");
    }
}

fn a_rollup_reads_what_is_pending(server: &Server) {
    let schema = installed(server, 10_000);
    schema.run("INSERT INTO articles_views SELECT id, 0, 1 FROM articles; ANALYZE TABLE articles_views; ANALYZE TABLE articles");
    let reads = |statement: &str| reads(&mut schema.after(&[statement]));
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
    let [create, autocommit, rollup, rollback, isolation, copy, views_of_the_day] = &statements[from..] else {
        panic!("{statements:?}")
    };
    schema.run(&format!("{create}; INSERT INTO archived_views SELECT CURRENT_DATE - INTERVAL 5 DAY, id, views FROM articles WHERE id < 20"));
    schema.run("CALL articles_views_increment(1)");
    let mut archive = schema.after(&[autocommit, rollup, rollback, isolation, "START TRANSACTION", copy]);
    let mut other = schema.impatient();
    for id in 1..=21 {
        for statement in ["CALL articles_views_increment(?)", "UPDATE articles SET views = views + 1 WHERE id = ?"] {
            other.exec_drop(statement, (id,)).expect(statement);
        }
    }
    other
        .query_drop("INSERT INTO articles (id, views) VALUES (21, 0); CALL articles_views_rollup(NULL)")
        .expect("no wait");
    archive.query_drop("COMMIT").expect("a commit");
    let views: Vec<(u32, i64)> = schema.query(views_of_the_day);
    assert_eq!(views.into_iter().filter(|(_, views)| *views != 0).collect::<Vec<_>>(), [(1, 1), (20, 20)]);
    assert_eq!(schema.first::<i64>("SELECT SUM(views) FROM articles"), 210 + 1 + 20 + 21);
}

/// The routines run as the account of accounts.sql. An error that is not of a total ends the call.
fn a_total_that_is_rejected_stays_pending_and_stops_no_other(server: &Server) {
    let account = format!("slotted_{}@localhost", std::process::id());
    let package = of_column("articles.views", "id BIGINT", |options| {
        options.definer = Some(account.parse().expect("an account"))
    });
    let trigger = |when: &str, body: &str| {
        format!("CREATE TRIGGER fails {when} UPDATE ON articles FOR EACH ROW IF NEW.views < 0 THEN {body}; END IF")
    };
    let signal = |state: &str| format!("SIGNAL SQLSTATE '{state}' SET MESSAGE_TEXT = 'too few', MYSQL_ERRNO = 5000");
    let stored =
        |kind: &str, value: &str| format!("ALTER TABLE articles ADD code {kind} GENERATED ALWAYS AS ({value}) STORED");
    for (change, number, message) in [
        ("ALTER TABLE articles MODIFY views INT UNSIGNED", 30013, "out of range"),
        ("ALTER TABLE articles MODIFY views TINYINT ;; UPDATE articles SET views = 10", 30013, "out of range"),
        ("ALTER TABLE articles ADD CONSTRAINT positive CHECK (views >= 0)", 30013, "positive"),
        (&trigger("AFTER", &signal("45001")), 30013, "too few"),
        (&trigger("BEFORE", &signal("HY000")), 30013, "too few"),
        (&trigger("BEFORE", &signal("22007")), 30013, "too few"),
        (&trigger("AFTER", &signal("02777")), 30013, "too few"),
        (&trigger("BEFORE", "BEGIN DECLARE v INT; DECLARE c CURSOR FOR SELECT 1 FROM DUAL WHERE FALSE; OPEN c; FETCH c INTO v; END"), 30013, "no data"),
        ("ALTER TABLE articles MODIFY views INT NOT NULL ;; CREATE TRIGGER fails BEFORE UPDATE ON articles FOR EACH ROW SET NEW.views = IF(NEW.views < 0, NULL, NEW.views)", 30013, "null"),
        ("INSERT INTO articles (id, views) VALUES (0, -1002) ;; ALTER TABLE articles ADD UNIQUE (views)", 30013, "duplicate entry"),
        (
            "CREATE TABLE tiers (tier INT PRIMARY KEY) ENGINE = InnoDB ;; INSERT INTO tiers VALUES (0) ;;
             ALTER TABLE articles ADD tier INT GENERATED ALWAYS AS (IF(views < 0, -1, 0)) STORED, ADD FOREIGN KEY (tier) REFERENCES tiers (tier)",
            30013,
            "a child row",
        ),
        (&stored("VARCHAR(3)", "CONCAT('', views)"), 30013, "too long"),
        (&stored("DATE", "IF(views < 0, CONCAT('no date', views), '2026-01-01')"), 30013, "date"),
        (&stored("DOUBLE", "IF(views < 0, POW(10, 999), 1)"), 30013, "double"),
        (
            "ALTER TABLE articles MODIFY views INT NOT NULL, ADD UNIQUE (views) ;; CREATE TABLE likes (views INT NOT NULL, FOREIGN KEY (views) REFERENCES articles (views)) ENGINE = InnoDB ;;
             INSERT INTO likes VALUES (70)",
            30013,
            "foreign key",
        ),
        (&trigger("BEFORE", "INSERT INTO nothing VALUES (1)"), 1146, "nothing"),
        (&trigger("BEFORE", "CALL nothing()"), 1305, "nothing"),
    ] {
        let schema = server.schema();
        create_articles(&schema, 12);
        schema.run("ALTER TABLE articles MODIFY views INT, DROP KEY views; UPDATE articles SET views = 10 * id");
        ["setup.sql", "accounts.sql"].iter().for_each(|name| schema.run(&schema.file(&package, name)));
        change.split(";;").for_each(|statement| _ = schema.after( &[statement]));
        let column = views(&schema, 7);
        schema.run("INSERT INTO articles_views SELECT id, 1, IF(id = 7, -1072, 2) FROM articles WHERE id > 0; INSERT INTO articles_views VALUES (7, 2, 1)");
        let mut before = schema.after(&["START TRANSACTION WITH CONSISTENT SNAPSHOT"]);
        schema.run("DELETE FROM articles_views WHERE slot = 2");
        for (setting, call) in [("DO 0", "rollup(NULL)"), ("DO 0", "rollup(1)"), ("SET max_error_count = 0", "rollup(20)"), ("DO 0", "compact(7)")] {
            let called = schema.after( &[setting]).query_drop(format!("CALL articles_views_{call}"));
            assert!(called.is_err(), "{change}, {call}");
            let (found, text) = error_of(called);
            let told = if setting == "DO 0" { message } else { "" };
            assert!(found == number && text.to_lowercase().contains(told), "{change}, {call}: {found} {text}");
            let (routine, _) = call.split_once('(').expect("a call");
            let start = format!("articles_views_{routine}: articles.views rejects the counts of 7: ");
            assert!(number != 30013 || text.starts_with(&start), "{change}: {text}");
            assert_eq!((views(&schema, 7), pending_ids(&schema).contains(&7)), (column, true), "{change}, {call}");
            if number == 30013 {
                assert_eq!((pending_ids(&schema), pending(&schema)), (vec![7], -1072), "{change}, {call}");
            }
        }
        // Its snapshot contains a slot that does not exist any more.
        assert_eq!(error_of(before.query_drop("CALL articles_views_compact(7)")).0, number, "{change}");
    }
    server.connect().query_drop(format!("DROP USER {account}")).expect("DROP USER");
}

/// MySQL buffers by keys of at most 512 bytes, and the servers sort by the first 1,024. The keys differ in the last character.
fn counts_of_long_keys_are_moved_once(server: &Server) {
    let text = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY";
    for (kind, length, more) in [
        ("VARCHAR", 100, text),
        ("VARCHAR", 255, text),
        ("VARCHAR", 600, text),
        ("VARBINARY", 2000, "PRIMARY KEY"),
        ("VARBINARY", 600, "NOT NULL UNIQUE, long_key VARBINARY(1000) DEFAULT (UUID()) PRIMARY KEY"),
    ] {
        let (schema, key) = (server.schema(), format!("url {kind}({length})"));
        schema.run(&format!("CREATE TABLE articles ({key} {more}, views INT NOT NULL) ENGINE = InnoDB"));
        schema.install(&of_column("articles.views", &key, |_| {}));
        schema.run(&format!(
            "INSERT INTO articles (url, views) VALUES (CONCAT(REPEAT('a', {0}), 'b'), 0), (CONCAT(REPEAT('a', {0}), 'c'), 0);
             INSERT INTO articles_views SELECT url, slot, slot FROM articles JOIN (SELECT 1 AS slot UNION SELECT 2 UNION SELECT 3 UNION SELECT 4) AS slots",
            length - 1
        ));
        for call in ["rollup(NULL)", "rollup(1)", "rollup(NULL)"] {
            schema.run(&format!("CALL articles_views_{call}"));
            assert_eq!(schema.query::<i64>("SELECT views FROM articles"), [10, 10], "{key}: {call}");
            assert_eq!(pending(&schema), 0, "{key}: {call}");
        }
    }
}

/// A trigger that the account of the routines cannot see, because it has no privilege on triggers. Other programs have it, too.
fn what_a_trigger_makes_of_the_value_is_the_value(server: &Server) {
    let schema = installed(server, 2);
    schema.after(&["CREATE TRIGGER least BEFORE UPDATE ON articles FOR EACH ROW SET NEW.views = LEAST(NEW.views, 3)"]);
    for call in ["rollup(NULL)", "rollup(1)", "compact(1)"] {
        schema.run(&format!("UPDATE articles SET views = 0; INSERT INTO articles_views VALUES (1, 600, 7), (1, 601, -2); CALL articles_views_{call}"));
        assert_eq!((views(&schema, 1), pending(&schema)), (Some(3), 0), "{call}");
        schema.run("DELETE FROM articles_views");
    }
    // A row that clears its own counts stops no other.
    schema.run("DROP TRIGGER least; INSERT INTO articles_views VALUES (1, 600, 7), (2, 600, 1); CREATE TRIGGER clear AFTER UPDATE ON articles FOR EACH ROW DELETE FROM articles_views WHERE id = NEW.id");
    let before = schema.first::<i64>("SELECT SUM(views) FROM articles");
    schema.run(ROLLUP);
    assert_eq!((schema.first::<i64>("SELECT SUM(views) FROM articles"), pending(&schema)), (before + 8, 0));
}

/// An UPDATE by an index over the column has locked the gap of the new value of article 2. On MariaDB, the error ends the call past its
/// handlers, and its transaction stays open, but a COMMIT saves no half of a move.
fn a_gap_that_a_transaction_has_locked_stops_its_record_alone(server: &Server) {
    let schema = installed(server, 40);
    schema.run("UPDATE articles SET views = 10 * id; INSERT INTO articles_views SELECT id, 9, IF(id = 2, 500, IF(id = 40, -1, 1)) FROM articles");
    let mut owner = schema.after(&["START TRANSACTION", "UPDATE articles SET title = 'x' WHERE views > 450"]);
    let (mut roller, begin) = (schema.impatient(), Instant::now());
    for call in [ROLLUP, "CALL articles_views_compact(2)"] {
        let (number, text) = error_of(roller.query_drop(call));
        assert_eq!(number, 1205, "{text}");
        if server.is_mysql() && call == ROLLUP {
            assert_eq!(text, "articles_views_rollup: others have locked 2 (1205)");
            assert_eq!(pending_ids(&schema), [2]);
            schema.run("UPDATE articles SET views = views + 0 WHERE id = 1");
        }
        roller.query_drop("CALL articles_views_add(1, 7)").expect("a count");
        roller.query_drop("COMMIT").expect("a commit");
    }
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    owner.query_drop("COMMIT").expect("a commit");
    schema.run(ROLLUP);
    let sum = 10 * 820 + 38 - 1 + 500 + 2 * 7;
    assert_eq!((schema.first::<i64>("SELECT SUM(views) FROM articles"), pending(&schema)), (sum, 0));
}

/// A child row locks the row of its article for other writers until COMMIT. The roll-up waits for it, and later child rows for the roll-up.
fn a_rollup_that_waits_a_second_delays_child_rows_for_a_second(server: &Server) {
    let schema = installed(server, 1);
    schema.run("CREATE TABLE likes (article BIGINT NOT NULL, FOREIGN KEY (article) REFERENCES articles (id)) ENGINE = InnoDB; CALL articles_views_add(1, 5)");
    let _open = schema.after(&["START TRANSACTION", "INSERT INTO likes VALUES (1)"]);
    let (waited, took) = schema.while_waiting(&mut schema.impatient(), &[ROLLUP], || {
        let begin = Instant::now();
        schema.run("INSERT INTO likes VALUES (1)");
        begin.elapsed()
    });
    assert!(error_of(waited).0 == 1205 && took < Duration::from_secs(10), "{took:?}");
    assert_eq!(get(&schema, 1), 6);
}

/// After a success, also in the transaction that a session without autocommit begins with the call, and after errors before and within the
/// transaction of a routine. A session that KILL QUERY has interrupted can have an open transaction, which it ends with ROLLBACK.
fn maintenance_leaves_no_isolation_level_behind(server: &Server) {
    let schema = installed(server, 2);
    schema.install(&keyed(|_| {}));
    // At READ COMMITTED, the second SELECT would see what another session has added.
    let is_repeatable = |connection: &mut Conn, begin: &str, what: &str| {
        run(connection, "SET SESSION lock_wait_timeout = 50, innodb_lock_wait_timeout = 50");
        run(connection, begin);
        let mut read = || connection.query_first::<i64, _>("SELECT COUNT(*) FROM likes").expect(what);
        let first = read();
        schema.run("INSERT INTO likes VALUES ()");
        assert_eq!(first, read(), "{what}");
        run(connection, "ROLLBACK");
    };
    schema.run("CREATE TABLE likes (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE = InnoDB");
    let slots = "REPLACE INTO slotted_counters VALUES (1, 1, 1, 5), (1, 1, 2, 5)";
    let refill = || schema.run(&format!("CALL articles_views_reset(1, 9); {slots}"));
    let (begin, patience) = ("START TRANSACTION", "SET SESSION lock_wait_timeout = 1, innodb_lock_wait_timeout = 1");
    let of_column =
        "articles_views_rollup(NULL); articles_views_compact(1); articles_views_reset(1, 7); articles_views_delete(1)";
    let of_record = "slotted_counter_reset(1, 1, 7); slotted_counter_compact(1, 1); slotted_counter_delete(1, 1)";
    for call in of_column.split("; ").chain(of_record.split("; ")) {
        let call = &format!("CALL {call}")[..];
        for (autocommit, begin) in [(0, "DO 0"), (1, begin)] {
            refill();
            let autocommit = format!("SET autocommit = {autocommit}");
            is_repeatable(&mut schema.after(&[&autocommit, call]), begin, &format!("{autocommit}; {call}"));
        }
        refill();
        let mut session = schema.after(&[patience]);
        let table = if call.contains("slotted") { "slotted_counters" } else { "articles_views" };
        let (lock, id) = (format!("LOCK TABLES {table} WRITE"), session.connection_id());
        let mut owner = schema.after(&[begin, &format!("UPDATE {table} SET count = count + 1")]);
        assert!([0, 1205].contains(&number_of(session.query_drop(call))), "{call}");
        run(&mut owner, "ROLLBACK");
        is_repeatable(&mut session, begin, call);
        run(&mut session, patience);
        let (hide, show) = (format!("RENAME TABLE {table} TO hidden"), format!("RENAME TABLE hidden TO {table}"));
        for (before, number, after) in [(&lock[..], 1205, "UNLOCK TABLES"), (&hide, 1146, &show)] {
            run(&mut owner, before);
            assert_eq!(number_of(session.query_drop(call)), number, "{call}");
            run(&mut owner, after);
            is_repeatable(&mut session, begin, call);
        }
        run(&mut owner, &lock);
        let (killed, ()) = schema.while_waiting(&mut session, &[call], || schema.run(&format!("KILL QUERY {id}")));
        assert_eq!(error_of(killed).0, 1317, "{call}");
        run(&mut owner, "UNLOCK TABLES");
        run(&mut session, "ROLLBACK");
        is_repeatable(&mut session, begin, call);
    }
}

/// 64 sessions, each in transactions of 5 ms, lock the 16 slots of one record all the time, with child rows the row, before or after the slot.
fn the_column_of_a_saturated_record_stays_a_second_behind(server: &Server) {
    let (child, call) = ("INSERT INTO likes VALUES (1)", "CALL articles_views_increment(1)");
    for [first, second] in [["DO 0", call], [child, call], [call, child]] {
        let schema = &server.schema();
        create_articles(schema, 1);
        schema.run("CREATE TABLE likes (article BIGINT NOT NULL, FOREIGN KEY (article) REFERENCES articles (id)) ENGINE = InnoDB");
        schema.install(&of_column("articles.views", "id BIGINT", |options| {
            options.subject.set_slots(16);
        }));
        let (counted, mut roller) = (AtomicI64::new(0), schema.impatient());
        let steps = ["START TRANSACTION", first, second, "DO SLEEP(0.005)", "COMMIT"];
        let count = |connection: &mut Conn, _| match run_all(connection, &steps) {
            Ok(()) => _ = counted.fetch_add(1, SeqCst),
            Err(error) => _ = repeatable(error),
        };
        // What was counted a second before is in the column, in most of the looks: a machine that is busy can be late once.
        let is_late = |_: &u32| {
            let before = counted.load(SeqCst);
            let end = Instant::now() + Duration::from_secs(1);
            while Instant::now() < end {
                roller.query_drop(ROLLUP).map_err(repeatable).unwrap_or_default();
                thread::sleep(Duration::from_millis(500));
            }
            views(schema, 1).is_none_or(|views| views < before)
        };
        let late = beside((0..64).map(|_| schema.connect()), count, || (0..5).filter(is_late).count());
        assert!(late <= 2, "{late} of 5 looks were late: {first}, {second}");
        schema.run(ROLLUP);
        assert_eq!((views(schema, 1), pending(schema)), (Some(1 + counted.load(SeqCst)), 0));
    }
}

/// Beside increments and roll-ups of the record, a total after a reset to 0 is only what was counted after it.
fn a_reset_sets_the_total_and_loses_no_concurrent_increment(server: &Server) {
    let (schema, counted) = (installed(server, 2), AtomicI64::new(0));
    let call = |connection: &mut Conn, number| {
        let call = if number == 0 { "rollup(1)" } else { "increment(2)" };
        match connection.query_drop(format!("CALL articles_views_{call}")) {
            Ok(()) => _ = counted.fetch_add(i64::from(number > 0), SeqCst),
            // The maintenance of one record can deadlock with it.
            Err(error) => _ = repeatable(error),
        }
    };
    beside((0..4).map(|_| schema.connect()), call, || {
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
    schema.run("CALL articles_views_reset(2, 0); CALL articles_views_add(2, 9); INSERT INTO articles_views VALUES (3, 1, 1), (3, 7, 5)");
    // The row is inserted, and gets the counts of slot 7, while a reset waits for slot 1.
    let mut open = schema.after(&["BEGIN", "UPDATE articles_views SET count = 2 WHERE id = 3 AND slot = 1"]);
    let insert = || {
        schema.run(&format!("INSERT INTO articles (id, title) VALUES (3, 'new'); BEGIN; {ROLLUP}; COMMIT"));
        run(&mut open, "COMMIT");
    };
    schema.while_waiting(&mut schema.connect(), &["CALL articles_views_reset(3, 50)"], insert).0.expect("a reset");
    assert_eq!([2, 3].map(|id| get(&schema, id)), [9, 50]);
}

/// As columns.md says, the session executes ROLLBACK after an error. KILL QUERY can also end a statement without an error (MariaDB 11.8).
fn killed_rollups_move_each_count_once(server: &Server) {
    let (schema, mut counted) = (installed(server, 20), 0);
    let mut roller = schema.connect();
    schema.under_kills(roller.connection_id(), 3000, |hits| {
        for round in calls(300) {
            let slots = format!("INSERT INTO articles_views SELECT id, {}, 3 FROM articles", round % 7);
            schema.run(&format!("{slots} ON DUPLICATE KEY UPDATE count = count + 3"));
            counted += 20 * 3;
            for call in [ROLLUP, "CALL articles_views_compact(3)"] {
                let is_killed = roller.query_drop(call).is_err();
                hits.fetch_add(u64::from(is_killed), SeqCst);
                // A call that succeeds leaves no transaction with half a move.
                while roller.query_drop(if is_killed { "ROLLBACK" } else { "COMMIT" }).is_err() {}
            }
        }
    });
    let state = || (schema.first::<i64>("SELECT CAST(SUM(views) AS SIGNED) FROM articles"), pending(&schema));
    let (sum, left) = state();
    assert_eq!(sum + left, 210 + counted);
    schema.run(ROLLUP);
    assert_eq!(state(), (210 + counted, 0));
}

/// An error that is no rejection, and the rejection of a count that is younger than the snapshot. The caller commits all the same.
fn an_error_in_a_transaction_takes_the_move_back(server: &Server) {
    for (change, number) in [("RENAME COLUMN views TO v", 1054), ("MODIFY views TINYINT UNSIGNED", 30013)] {
        for call in [ROLLUP, "CALL articles_views_compact(1)"] {
            let schema = installed(server, 2);
            schema.run("CALL articles_views_reset(1, 5); CALL articles_views_rollup(1); CALL articles_views_add(2, 1)");
            let mut caller = schema.isolated("REPEATABLE READ");
            schema.run(&format!("ALTER TABLE articles {change}"));
            run_all(&mut caller, &["START TRANSACTION", "SELECT COUNT(*) FROM articles_views"]).expect("a snapshot");
            schema.run("CALL articles_views_add(1, 300)");
            assert_eq!(number_of(caller.query_drop(call)), number, "{change}: {call}");
            caller.query_drop("COMMIT").expect("a commit");
            let counts = schema.query::<i64>("SELECT count FROM articles_views WHERE id = 1");
            assert!(counts.contains(&300), "{change}: {call}");
        }
    }
}

/// The names of two records in an error are cut, and triggers signal what the servers signal, of the row and of a slot.
fn errors_of_long_keys_and_of_deadlocks_lose_no_count(server: &Server) {
    let schema = server.schema();
    let columns =
        "url VARCHAR(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, views INT UNSIGNED NOT NULL DEFAULT 0";
    schema.run(&format!("CREATE TABLE articles ({columns}) ENGINE = InnoDB; INSERT INTO articles (url) VALUES (REPEAT('a', 600)), ('b'), (REPEAT('c', 700))"));
    schema.install(&of_column("articles.views", "url VARCHAR(700)", |_| {}));
    schema.run("INSERT INTO articles_views SELECT url, 7, IF(url LIKE 'a%', -1, 3) FROM articles");
    let _owner = schema.after(&["START TRANSACTION", "SELECT * FROM articles WHERE url LIKE 'c%' FOR UPDATE"]);
    let (number, text) = error_of(schema.impatient().query_drop(ROLLUP));
    assert!(number == 30013 && text.contains("others have locked ccc"), "{number} {text}");
    assert_eq!((pending(&schema), schema.first::<i64>("SELECT SUM(views) FROM articles")), (-1 + 3, 3));
    let (number, text) = error_of(schema.connect().query_drop("CALL articles_views_compact(REPEAT('a', 600))"));
    assert!(number == 30013 && text.contains("rejects the counts of aaa"), "{number} {text}");
    let slots = "articles_views";
    for (table, number, more) in [("articles", 1213, ""), (slots, 1205, ""), (slots, 1205, ", (2, 8, 4)")] {
        let schema = installed(server, 3);
        let signal = format!("IF NEW.id = 2 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = {number}; END IF");
        run(&mut schema.connect(), &format!("CREATE TRIGGER fails BEFORE UPDATE ON {table} FOR EACH ROW {signal}"));
        schema.run(&format!("INSERT INTO articles_views VALUES (1, 7, 10), (2, 7, 10){more}, (3, 7, 10)"));
        let total = get(&schema, 2);
        for call in [ROLLUP, "CALL articles_views_compact(2)"] {
            assert!([1205, 1213].contains(&error_of(schema.connect().query_drop(call)).0), "{call}");
            assert_eq!((get(&schema, 2), views(&schema, 2)), (total, Some(2)), "{table}{more}: {call}");
        }
    }
}

/// The statements of pt-online-schema-change with --preserve-triggers, which copies the trigger of columns.md to the new table.
fn a_copy_of_the_table_with_its_triggers_keeps_the_counts(server: &Server) {
    let schema = installed(server, 4);
    let blocks = sql_statements("docs/columns.md", "Deleted rows");
    let trigger = blocks.iter().find(|one| one.starts_with("CREATE TRIGGER articles_deleted")).expect("the trigger");
    let of_copy =
        trigger.replacen("articles_deleted AFTER DELETE ON articles", "of_copy AFTER DELETE ON articles_new", 1);
    assert_ne!(&of_copy, trigger);
    let replace = "REPLACE INTO articles_new (id, title, views) VALUES (NEW.id, NEW.title, NEW.views)";
    for statement in [
        trigger,
        "CREATE TABLE articles_new LIKE articles",
        &of_copy,
        &format!("CREATE TRIGGER pt_ins AFTER INSERT ON articles FOR EACH ROW {replace}"),
        &format!("CREATE TRIGGER pt_upd AFTER UPDATE ON articles FOR EACH ROW {replace}"),
        "CREATE TRIGGER pt_del AFTER DELETE ON articles FOR EACH ROW DELETE IGNORE FROM articles_new WHERE id = OLD.id",
        "INSERT INTO articles_views SELECT id, 7, 10 FROM articles",
        "INSERT IGNORE INTO articles_new SELECT * FROM articles",
    ] {
        schema.after(&[statement]);
    }
    for _ in 0..2 {
        schema.run("UPDATE articles SET title = CONCAT(title, 'x'); CALL articles_views_increment(1)");
        schema.run(ROLLUP);
        schema.run("CALL articles_views_add(2, 5)");
    }
    schema.run("CALL articles_views_add(3, 1); DELETE FROM articles WHERE id = 3");
    schema.run("DROP TRIGGER pt_ins; DROP TRIGGER pt_upd; DROP TRIGGER pt_del; RENAME TABLE articles TO articles_old, articles_new TO articles");
    schema.run(ROLLUP);
    assert_eq!(schema.query::<i64>("SELECT views FROM articles ORDER BY id"), [1 + 10 + 2, 2 + 10 + 10, 4 + 10]);
    assert_eq!(pending(&schema), 0);
}
