//! Counters of records: created by the first increment, exact, compacted, reset and deleted beside increments.

use std::sync::Barrier;

use mysql::Row;
use slotted::package::Key;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(every_key_type_identifies_its_record)
        .on_servers(a_char_key_with_trailing_spaces_is_the_record_that_it_counts_for)
        .on_servers(totals_are_exact_during_compactions_which_never_deadlock)
        .on_servers(concurrent_first_increments_are_exact)
        .on_servers(an_increment_after_a_delete_is_kept_by_a_concurrent_compaction)
        .on_servers(a_compaction_leaves_one_slot_and_a_reset_the_value_in_one)
        .on_servers(resets_of_a_record_during_its_increments_never_deadlock)
        .on_servers(an_increment_of_a_neighbouring_record_does_not_wait_for_maintenance)
        .on_servers(invalid_arguments_are_rejected_and_change_nothing)
        .on_servers(a_record_is_read_by_its_key);
}

/// A CHAR column does not store trailing spaces, which a collation without padding distinguishes.
fn a_char_key_with_trailing_spaces_is_the_record_that_it_counts_for(server: &Server) {
    let without_padding = if server.is_mysql() { "utf8mb4_0900_ai_ci" } else { "utf8mb4_general_nopad_ci" };
    for collation in ["utf8mb4_general_ci", without_padding] {
        let package = keyed(|options| {
            options.subject = records("a CHAR(3)".parse().expect("a key"));
            options.collation = collation.parse().ok();
        });
        let schema = server.installed([&package]);
        for call in ["increment('a ')", "add('a', 2)", "add_many('[[\"a \", 3], [\"a\", 1]]')", "compact('a  ')"] {
            schema.run(&format!("CALL slotted_counter_{call}"));
        }
        assert_eq!(schema.first::<i64>("SELECT slotted_counter_get('a ')"), 7, "{collation}");
        assert_eq!(schema.first::<i64>("SELECT slotted_counter_get('a')"), 7, "{collation}");
        schema.run("CALL slotted_counter_reset('a ', 1); CALL slotted_counter_add('a', 1)");
        let totals = schema.first::<(String, i64)>("SELECT a, total FROM slotted_counter_totals");
        assert_eq!(totals, ("a".into(), 2), "{collation}");
        schema.run("CALL slotted_counter_delete('a  ')");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters"), 0, "{collation}");
    }
}

fn every_key_type_identifies_its_record(server: &Server) {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("a TINYINT", &["-128", "127", "0"], &["-129", "128"]),
        ("a TINYINT UNSIGNED", &["0", "255"], &["-1", "256"]),
        ("a SMALLINT", &["-32768", "32767"], &["-32769", "32768"]),
        ("a SMALLINT UNSIGNED", &["0", "65535"], &["-1", "65536"]),
        ("a MEDIUMINT", &["-8388608", "8388607"], &["8388608"]),
        ("a MEDIUMINT UNSIGNED", &["0", "16777215"], &["-1", "16777216"]),
        ("a INT UNSIGNED", &["0", "4294967295"], &["-1", "4294967296"]),
        ("a BIGINT", &["-9223372036854775808", "9223372036854775807"], &["9223372036854775808"]),
        ("a BIGINT UNSIGNED", &["0", "18446744073709551615"], &["-1"]),
        ("a CHAR(3)", &["'abc'", "''", "'\u{e9}\u{e8}\u{ea}'"], &["'abcd'", "'abc d'"]),
        ("a VARCHAR(3)", &["'abc'", "'ABC'", "'a''b'"], &["'abcd'", "'abc d'"]),
        ("a BINARY(2)", &["x'0001'", "x'ff00'"], &["x'000102'"]),
        ("a VARBINARY(3)", &["x'00'", "x''", "x'000001'"], &["x'00000000'"]),
        ("a DATE", &["'2026-11-23'", "'2026-11-24'", "'9999-12-31'"], &["'2026-02-30'", "'yesterday'", "''"]),
        ("a DATETIME", &["'2026-11-23 10:00:00'", "'2026-11-23 10:00:01'"], &["'2026-11-23 25:00:00'", "''"]),
        ("`the key` INT", &["5"], &["4294967296"]),
        ("`back``tick` VARCHAR(9)", &["'x'"], &["'0123456789'"]),
        ("`select` INT", &["5"], &["NULL + 'a'"]),
    ];
    for (key, good, bad) in cases {
        let package = keyed(|options| options.subject = records(key.parse::<Key>().expect(key)));
        let schema = server.installed([&package]);
        let mut connection = schema.connect();
        for value in *good {
            let calls = "increment({}); increment({}); compact({}); add({}, 5); reset({}, 1); increment({})";
            for call in calls.split("; ") {
                run(&mut connection, &format!("CALL slotted_counter_{}", call.replace("{}", value)));
            }
            let total: Option<i64> = connection.query_first(format!("SELECT slotted_counter_get({value})")).expect(key);
            assert_eq!(total, Some(2), "{key}: {value}");
        }
        let rows: u64 = schema.first("SELECT COUNT(*) FROM slotted_counter_totals");
        assert_eq!(rows, good.len() as u64, "{key}");
        let before = schema.rows(&package.options.table);
        for value in *bad {
            for (call, more) in [
                ("CALL slotted_counter_increment", ""),
                ("CALL slotted_counter_add", ", 7"),
                ("CALL slotted_counter_reset", ", 7"),
            ] {
                let call = format!("{call}({value}{more})");
                let (number, message) = error_of(connection.query_drop(&call));
                assert!([1048, 1264, 1265, 1292, 1406].contains(&number), "{key}: {call}: {number} {message}");
                assert_eq!(schema.rows(&package.options.table), before, "{key}: {call}");
            }
        }
        connection.query_drop(format!("CALL slotted_counter_delete({})", good[0])).expect(key);
        let rows: u64 = schema.first("SELECT COUNT(*) FROM slotted_counter_totals");
        assert_eq!(rows, good.len() as u64 - 1, "{key}: after a delete");
        // The script compares the table with its own columns.
        schema.run(&schema.file(&package, "create_procedures.sql"));
    }
}

/// Of many records with more slots than writers, and of one whose writers share them. Increments that have waited for slots which were deleted
/// lock the same gap: the server can roll back one of them, not the compaction.
fn totals_are_exact_during_compactions_which_never_deadlock(server: &Server) {
    const RECORDS: usize = 30;
    for (isolation, records, slots, writers) in
        [("REPEATABLE READ", RECORDS, 521, 32), ("READ COMMITTED", RECORDS, 521, 32), ("REPEATABLE READ", 1, 8, 13)]
    {
        let schema = server.installed([&keyed(|options| options.subject.set_slots(slots))]);
        let expected = [const { AtomicI64::new(0) }; RECORDS];
        let compactions = AtomicUsize::new(0);
        let write = || {
            let (mut connection, mut random) = (schema.isolated(isolation), rand::rng());
            for _ in calls(150) {
                let (record, amount) = (random.random_range(0..records), random.random_range(-1..=3));
                repeat(&mut connection, &[&format!("CALL slotted_counter_add(1, {record}, {amount})")]);
                expected[record].fetch_add(amount, SeqCst);
            }
        };
        let compact = |connection: &mut Conn, _| {
            let record = compactions.fetch_add(1, SeqCst) % records;
            run(connection, &format!("CALL slotted_counter_compact(1, {record})"));
        };
        beside((0..3).map(|_| schema.isolated(isolation)), compact, || at_once(writers, write));
        assert!(compactions.into_inner() > 3);
        let totals = (0..RECORDS).map(|record| schema.first(&format!("SELECT slotted_counter_get(1, {record})")));
        assert_eq!(totals.collect::<Vec<i64>>(), expected.map(AtomicI64::into_inner), "{isolation}, {slots} slots");
    }
}

/// 32 connections increment the same 20 new records, alone or two in a transaction, in one order, with own and with shared slots.
fn concurrent_first_increments_are_exact(server: &Server) {
    const CONNECTIONS: i64 = 32;
    const RECORDS: i64 = 20;
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        for (transactions, slots) in [(false, 8), (true, 100), (true, 8)] {
            let schema = server.installed([&keyed(|options| options.subject.set_slots(slots))]);
            let barrier = Barrier::new(CONNECTIONS as usize);
            let session = || {
                let mut connection = schema.isolated(isolation);
                barrier.wait();
                for first in (1..=RECORDS).step_by(2) {
                    let call = |record| format!("CALL slotted_counter_increment(1, {record})");
                    let all = ["START TRANSACTION", &call(first), &call(first + 1), "DO SLEEP(0.005)", "COMMIT"];
                    let counted = run_all(&mut connection, if transactions { &all } else { &all[1..3] });
                    counted.unwrap_or_else(|error| panic!("{isolation}, {slots} slots: {error}"));
                }
            };
            at_once(CONNECTIONS as usize, session);
            let found: (i64, i64, i64) =
                schema.first("SELECT COUNT(*), MIN(total), MAX(total) FROM slotted_counter_totals");
            assert_eq!(found, (RECORDS, CONNECTIONS, CONNECTIONS), "{isolation}, {slots} slots");
            let (rows, last): (i64, u32) = schema.first("SELECT COUNT(*), MAX(slot) FROM slotted_counters");
            assert!(rows > RECORDS && last < slots, "{rows} slots, the last is {last}");
        }
    }
}

fn an_increment_after_a_delete_is_kept_by_a_concurrent_compaction(server: &Server) {
    let schema = server.installed([&keyed(|_| {})]);
    let compact = |connection: &mut Conn, _| _ = repeat(connection, &["CALL slotted_counter_compact(1, 1)"]);
    beside([(); 2].map(|()| schema.isolated("READ COMMITTED")), compact, || {
        let mut connection = schema.connect();
        for round in calls(400) {
            for call in ["delete(1, 1)", "increment(1, 1)", "add(1, 1, 6)"] {
                repeat(&mut connection, &[&format!("CALL slotted_counter_{call}")]);
            }
            let total: Option<i64> = connection.query_first("SELECT slotted_counter_get(1, 1)").expect("a total");
            assert_eq!(total, Some(7), "round {round}");
        }
    });
}

fn a_compaction_leaves_one_slot_and_a_reset_the_value_in_one(server: &Server) {
    let schema = server.installed([&keyed(|_| {})]);
    let slots = || schema.query::<(u32, i64)>("SELECT slot, count FROM slotted_counters WHERE record_id = 1");
    let before =
        "INSERT INTO slotted_counters VALUES (1, 0, 3, 1), (1, 2, 0, 1), (1, 1, 3, 5), (1, 1, 9, -2), (1, 1, 520, 4)";
    schema.run(before);
    schema.run("CALL slotted_counter_compact(1, 1)");
    assert_eq!(slots(), [(3, 7)]);
    schema.run("CALL slotted_counter_compact(1, 1); CALL slotted_counter_compact(1, 5)");
    assert_eq!(slots(), [(3, 7)]);
    schema.run("INSERT INTO slotted_counters VALUES (1, 1, 9, 8); CALL slotted_counter_reset(1, 1, 4)");
    assert_eq!(slots(), [(3, 4), (9, 0)]);
    schema.run("CALL slotted_counter_reset(1, 1, NULL); CALL slotted_counter_compact(1, 1)");
    assert_eq!(slots(), [], "a record whose total is 0");
    assert_eq!(schema.first::<i64>("SELECT CAST(SUM(count) AS SIGNED) FROM slotted_counters"), 2, "the other records");
}

/// In transactions as well, as long as no slot is new.
fn resets_of_a_record_during_its_increments_never_deadlock(server: &Server) {
    let schema = &server.installed([&keyed(|options| options.subject.set_slots(8))]);
    let slots: Vec<_> = (0..8).map(|slot| format!("(2, 2, {slot}, 1)")).collect();
    schema.run(&format!("INSERT INTO slotted_counters VALUES {}", slots.join(", ")));
    for (begin, end, key, increments) in [("DO 0", "DO 0", "1, 1", 13), ("START TRANSACTION", "COMMIT", "2, 2", 2)] {
        let sessions = AtomicUsize::new(0);
        at_once(3 + increments, || {
            let routine = if sessions.fetch_add(1, SeqCst) < 3 { "reset({}, 5)" } else { "increment({})" };
            let call = format!("CALL slotted_counter_{}", routine.replace("{}", key));
            let mut connection = schema.isolated("REPEATABLE READ");
            for _ in calls(150) {
                if let Err(error) = run_all(&mut connection, &[begin, &call, end]) {
                    assert_ne!(repeatable(error), 1213, "{begin}: {call}");
                }
            }
        });
        schema.run(&format!("CALL slotted_counter_reset({key}, 5)"));
        assert_eq!(schema.first::<i64>(&format!("SELECT slotted_counter_get({key})")), 5);
    }
}

/// Outside a transaction, maintenance locks the slots of its record and no gap.
fn an_increment_of_a_neighbouring_record_does_not_wait_for_maintenance(server: &Server) {
    let schema = server.installed([&keyed(|_| {})]);
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    let calls = "slotted_counter_reset(1, 2, 5); slotted_counter_compact(1, 2); articles_views_reset(2, 5); articles_views_compact(2); \
                 articles_views_rollup(NULL)";
    for call in calls.split("; ") {
        schema.run(
            "DELETE FROM articles; DELETE FROM articles_views; DELETE FROM slotted_counters; INSERT INTO articles VALUES (1, 1), (2, 2), (3, 3);
             INSERT INTO slotted_counters VALUES (1, 2, 0, 1), (1, 2, 10, 1), (1, 2, 520, 1); INSERT INTO articles_views VALUES (2, 0, 1), (2, 10, 1), (2, 520, 1)",
        );
        let mut open = schema.after(&[
            "START TRANSACTION",
            "UPDATE slotted_counters SET count = 2 WHERE record_type = 1 AND record_id = 2 AND slot = 10",
            "UPDATE articles_views SET count = 2 WHERE id = 2 AND slot = 10",
        ]);
        let call = format!("CALL {call}");
        let (maintained, ()) = schema.while_waiting(&mut schema.isolated("REPEATABLE READ"), &[&call], || {
            let mut connection = schema.after(&["SET SESSION innodb_lock_wait_timeout = 2"]);
            for neighbour in ["slotted_counter_increment(1, ", "articles_views_increment("] {
                [1, 3].iter().for_each(|record| run(&mut connection, &format!("CALL {neighbour}{record})")));
            }
            run(&mut open, "COMMIT");
        });
        maintained.expect(&call);
    }
}

fn invalid_arguments_are_rejected_and_change_nothing(server: &Server) {
    let package = keyed(|_| {});
    let schema = server.installed([&package]);
    schema.run("CALL slotted_counter_add(2147483647, 1, 3)");
    // One full slot in (1, 1) for each connection, and two slots with the maximum of BIGINT in (5, 5).
    let full: Vec<_> = (0..521).map(|slot| format!("(1, 1, {slot}, 9223372036854775807)")).collect();
    schema.run(&format!("INSERT INTO slotted_counters VALUES {}", full.join(", ")));
    schema.run("INSERT INTO slotted_counters VALUES (5, 5, 0, 9223372036854775807), (5, 5, 1, 9223372036854775807)");
    let before = schema.rows(&package.options.table);
    let mut connection = schema.connect();
    for (call, number) in [
        ("CALL slotted_counter_increment(NULL, 1)", 1048),
        ("CALL slotted_counter_add(1, 1, NULL)", 1048),
        ("CALL slotted_counter_reset(1, NULL, 1)", 1048),
        ("CALL slotted_counter_increment(2147483648, 1)", 1264),
        ("CALL slotted_counter_add(-2147483649, 1, 1)", 1264),
        ("CALL slotted_counter_add(1, 1, 9223372036854775808)", 1264),
        ("CALL slotted_counter_compact(2147483648, 1)", 1264),
        ("SELECT slotted_counter_get(2147483648, 1)", 1264),
        ("SELECT slotted_counter_get(5, 5)", 1264),
        ("CALL slotted_counter_compact(5, 5)", 1264),
        ("CALL slotted_counter_increment(1, 1)", 1690),
        ("CALL slotted_counter_add(1, 1, 1)", 1690),
    ] {
        assert_eq!(number_of(connection.query::<Row, _>(call)), number, "{call}");
        assert_eq!(schema.rows(&package.options.table), before, "{call}");
    }
    // No record has a key that is NULL.
    for call in ["CALL slotted_counter_delete(NULL, 1)", "CALL slotted_counter_compact(1, NULL)"] {
        connection.query_drop(call).expect(call);
    }
    assert_eq!(schema.first::<i64>("SELECT slotted_counter_get(NULL, 1)"), 0);
    assert_eq!(schema.rows(&package.options.table), before);
}

fn a_record_is_read_by_its_key(server: &Server) {
    for (key, row, record) in [
        ("record_type INT, record_id BIGINT", "{n} MOD 7, {n}", "6, 13"),
        ("page_id BIGINT, day DATE", "{n} MOD 7, '2000-01-01' + INTERVAL {n} DAY", "6, '2000-01-14'"),
        ("day DATETIME, page_id BIGINT UNSIGNED", "'2000-01-01' + INTERVAL {n} HOUR, {n}", "'2000-01-01 13:00', 13"),
        ("year SMALLINT, name VARCHAR(9)", "2000 + {n} MOD 9, {n}", "2004, '13'"),
    ] {
        let package = keyed(|options| options.subject = records(key.parse().expect("a key")));
        let schema = server.installed([&package]);
        let rows: Vec<_> = (0..5000)
            .map(|number: u32| format!("({}, {}, 1)", row.replace("{n}", &number.to_string()), number % 3))
            .collect();
        schema.run(&format!("INSERT INTO slotted_counters VALUES {}", rows.join(", ")));
        schema.run("ANALYZE TABLE slotted_counters");
        let mut connection = schema.connect();
        let columns: Vec<_> = package.options.key().iter().map(|column| column.name.to_string()).collect();
        let query = format!("SELECT total FROM slotted_counter_totals WHERE ({}) = ({record})", columns.join(", "));
        let before = reads(&mut connection);
        let of_status = reads(&mut connection) - before;
        let calls = "CALL slotted_counter_increment({}); SELECT slotted_counter_get({}); CALL slotted_counter_reset({}, 3); \
                     CALL slotted_counter_compact({}); CALL slotted_counter_delete({})";
        for statement in [&query[..]].into_iter().chain(calls.split("; ")) {
            let statement = statement.replace("{}", record);
            connection.query::<Row, _>(&statement).expect(&statement);
            let start = reads(&mut connection);
            connection.query::<Row, _>(&statement).expect(&statement);
            let read = reads(&mut connection) - start - of_status;
            assert!(read <= 40, "{statement} reads {read} rows");
        }
    }
}
