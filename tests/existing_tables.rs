//! Tables and queries of docs/existing-tables.md, while connections write. The SQL is the SQL of the page.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;
use rand::RngExt;
use slotted::package::Package;
use slotted::script;

use crate::support::{Module, Server, calls, error_of, file, keyed, package, repeatable, sql_blocks};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_move_of_an_existing_table_at_any_time_loses_no_count)
        .on_servers(the_table_of_the_article_is_changed_under_callers)
        .on_servers(totals_of_many_records_read_only_their_slots)
        .on_servers(a_recount_under_writers_is_exact);
}

fn blocks(section: &str) -> Vec<String> {
    sql_blocks("docs/existing-tables.md", section)
}

/// Runs statements until the first error.
fn run(connection: &mut Conn, text: &str) -> mysql::Result<()> {
    script::statements(text).iter().try_for_each(|statement| connection.query_drop(statement))
}

/// Runs a transaction of the page until the server does not roll it back.
fn complete(connection: &mut Conn, text: &str) {
    while let Err(error) = run(connection, text) {
        repeatable(error);
        connection.query_drop("ROLLBACK").expect("a rollback");
    }
}

const RECORDS: u32 = 200;

/// 12 writers go over to the routine one after the other. The counts are moved in between, too.
fn a_move_of_an_existing_table_at_any_time_loses_no_count(server: &Server) {
    let published = keyed(|options| {
        options.table = "record_counters".parse().expect("a name");
        options.prefix = "record_counter_".parse().expect("a prefix");
    });
    let gem = keyed(|options| {
        let key = "associated_record_id BIGINT, associated_record_type VARCHAR(255), counter_name VARCHAR(255)";
        options.key = key.parse().expect("a key");
        options.table = "article_counters".parse().expect("a name");
        options.prefix = "article_counter_".parse().expect("a prefix");
    });
    let before: [(&Package, &str, &str, &str); 2] = [
        (
            &published,
            "A table of slots with an upsert",
            "INSERT INTO slotted_counters (record_type, record_id, slot, count) VALUES (123, {}, RAND() * 100, 1) \
             ON DUPLICATE KEY UPDATE count = count + 1",
            "CALL record_counter_increment(123, {})",
        ),
        (
            &gem,
            "The table of activerecord-slotted_counters",
            "INSERT INTO slotted_counters (counter_name, associated_record_type, associated_record_id, slot, count, \
             created_at, updated_at) VALUES ('comments_count', 'Article', {}, FLOOR(RAND() * 100), 1, NOW(), NOW()) \
             ON DUPLICATE KEY UPDATE count = slotted_counters.count + VALUES(count)",
            "CALL article_counter_increment({}, 'Article', 'comments_count')",
        ),
    ];
    for (package, section, old, new) in before {
        const WRITERS: usize = 12;
        let schema = server.schema();
        let sql = blocks(section);
        // The page adds rows to its table, which are counts too.
        schema.run(&sql[0]);
        let initial: i64 = schema.first("SELECT CAST(SUM(count) AS SIGNED) FROM slotted_counters");
        schema.install(package);
        // The table of the gem is moved with the command of the page, the other one with its SQL.
        let transaction = sql[1].starts_with("SET").then_some(&sql[1]);
        let move_counts = || match transaction {
            Some(transaction) => complete(&mut schema.connect(), transaction),
            None => _ = super::adopt::moves(&schema, &["--from", "slotted_counters"]),
        };
        let (moved, done) = (AtomicUsize::new(0), AtomicBool::new(false));
        let counted = AtomicU64::new(0);
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (schema, moved, done, counted) = (&schema, &moved, &done, &counted);
                scope.spawn(move || {
                    let mut connection = schema.connect();
                    let mut random = rand::rng();
                    while !done.load(SeqCst) {
                        let record = random.random_range(1..=RECORDS).to_string();
                        let statement = if moved.load(SeqCst) > writer { new } else { old };
                        match connection.query_drop(statement.replace("{}", &record)) {
                            Ok(()) => counted.fetch_add(1, SeqCst),
                            Err(error) => u64::from(repeatable(error)),
                        };
                        thread::sleep(Duration::from_millis(2));
                    }
                });
            }
            for writers in 1..=WRITERS {
                moved.store(writers, SeqCst);
                thread::sleep(Duration::from_millis(100));
                if writers % 3 == 0 {
                    move_counts();
                }
            }
            done.store(true, SeqCst);
        });
        // The last statement of a writer to the old table can be later than the move.
        move_counts();
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters WHERE count <> 0"), 0);
        assert!(transaction.is_none() || schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters") == 0);
        let total = format!("SELECT CAST(SUM(count) AS SIGNED) FROM {}", package.options.table);
        let counted = counted.into_inner();
        assert_eq!(schema.first::<i64>(&total), initial + counted as i64, "{section}");
        eprintln!("{}, {section}: {counted} counts of 12 writers, none lost", server.version);
    }
}

fn the_table_of_the_article_is_changed_under_callers(server: &Server) {
    let schema = server.schema();
    let [create, alter] = &blocks("The table of the 2012 article")[..] else { panic!("two blocks") };
    schema.run(create);
    schema.run(
        "DELIMITER ;;
         CREATE PROCEDURE counter_increment(IN p_counter_name VARCHAR(50))
         BEGIN
           DECLARE v_slots, v_slot INT;
           SELECT COUNT(*) INTO v_slots FROM counters WHERE counter_name = p_counter_name;
           SET v_slot = 1 + FLOOR(RAND() * v_slots);
           UPDATE counters SET counter = counter + 1 WHERE counter_name = p_counter_name AND counter_id = v_slot;
         END;;
         DELIMITER ;",
    );
    let (done, counted, rejected) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut connection = schema.connect();
                while !done.load(SeqCst) {
                    match connection.query_drop("CALL counter_increment('test1')") {
                        Ok(()) => _ = counted.fetch_add(1, SeqCst),
                        Err(error) => {
                            let (number, message) = error_of::<()>(Err(error));
                            // 1305: MySQL drops the procedure before it creates it.
                            assert!([1267, 1305].contains(&number), "{number}: {message}");
                            rejected.fetch_add(1, SeqCst);
                        }
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        thread::sleep(Duration::from_millis(200));
        let mut connection = schema.connect();
        let script = file(&package(|_| {}), "create_procedures.sql");
        let (number, message) = error_of(run(&mut connection, &script));
        // The page shows the statement that the script prints.
        let cure = message.split_once(" Run: ").expect("a statement").1.trim_end_matches('\'').replace('`', "");
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace(';', "");
        let changed = (run(&mut schema.connect(), alter), run(&mut schema.connect(), &script));
        thread::sleep(Duration::from_millis(200));
        done.store(true, SeqCst);
        assert_eq!((number, plain(&cure)), (1286, plain(alter)));
        changed.0.expect("ALTER TABLE");
        changed.1.expect("create_procedures.sql");
    });
    let counted = counted.into_inner();
    assert_eq!(schema.first::<u64>("SELECT counter_get('test1')"), 1005 + counted);
    eprintln!("{}: {counted} calls during the change counted, {rejected:?} rejected", server.version);
}

fn totals_of_many_records_read_only_their_slots(server: &Server) {
    let schema = server.schema();
    schema.install(&keyed(|_| {}));
    schema.run(
        "CREATE TABLE posts (id BIGINT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO posts VALUES (7), (9);
         CREATE TABLE names (name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY);
         INSERT INTO names VALUES ('name 7')",
    );
    let rows: Vec<_> = (1..=2000).map(|id| format!("(1, {id}, 0, 3), (1, {id}, 5, {id})")).collect();
    schema.run(&format!("INSERT INTO slotted_counters VALUES {}", rows.join(", ")));
    schema.install(&package(|_| {}));
    let names: Vec<_> = (1..=1000).map(|id| format!("('name {id}', 1, NULL, NOW(), {id})")).collect();
    schema.run(&format!("INSERT INTO counters VALUES {}; ANALYZE TABLE counters, slotted_counters", names.join(", ")));
    for (query, expected) in [
        ("SELECT total FROM slotted_counter_totals WHERE record_type = 1 AND record_id IN (7, 9) ORDER BY 1", vec![10, 12]),
        (
            "SELECT SUM(c.count) FROM posts LEFT JOIN slotted_counters AS c ON c.record_type = 1 \
             AND c.record_id = posts.id GROUP BY posts.id ORDER BY 1",
            vec![10, 12],
        ),
        (
            "SELECT SUM(c.counter) FROM names JOIN counters AS c \
             ON c.counter_name = names.name COLLATE utf8mb4_general_ci GROUP BY names.name",
            vec![7],
        ),
    ] {
        let mut connection = schema.connect();
        let before = super::surroundings::connection_reads(&mut connection);
        let totals: Vec<i64> = connection.query(query).expect(query);
        let reads = super::surroundings::connection_reads(&mut connection) - before;
        assert_eq!(totals, expected, "{query}");
        assert!(reads < 100, "{reads} reads: {query}");
    }
}

fn a_recount_under_writers_is_exact(server: &Server) {
    let schema = server.schema();
    schema.install(&keyed(|_| {}));
    let comments = blocks("Recount").remove(0);
    schema.run(comments.split("INSERT").next().expect("the table"));
    // The drift: a comment that was not counted, and counts without a comment.
    schema.run("INSERT INTO comments (post_id) VALUES (456); CALL slotted_counter_add(123, 456, 40)");
    let query = "SELECT CAST((SELECT COUNT(*) FROM comments WHERE post_id = 456) - \
                 (SELECT COALESCE(SUM(count), 0) FROM slotted_counters WHERE record_type = 123 AND record_id = 456) AS SIGNED)";
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut connection = schema.connect();
                while !done.load(SeqCst) {
                    let transaction = "START TRANSACTION; INSERT INTO comments (post_id) VALUES (456); \
                                       CALL slotted_counter_increment(123, 456); COMMIT";
                    complete(&mut connection, transaction);
                }
            });
        }
        let mut connection = schema.connect();
        for _ in calls(200) {
            // One of the recounts finds the drift, all others find none.
            let drift: i64 = connection.query_first(query).expect("the drift").expect("a row");
            connection.exec_drop("CALL slotted_counter_add(123, 456, ?)", (drift,)).expect("the correction");
        }
        done.store(true, SeqCst);
    });
    assert_eq!(schema.first::<i64>(query), 0);
    eprintln!("{}: {} comments", server.version, schema.first::<u64>("SELECT COUNT(*) FROM comments"));
}
