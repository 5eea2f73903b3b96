//! Counters of records: created by the first increment, exact, compacted concurrently with increments.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use rand::RngExt;
use slotted::package::{Key, KeyType, Package, Pick, Routine, Slots};

use crate::queries::Queries;
use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, calls, error_of, file, keyed, repeatable};

pub fn promises(mut module: Module<'_>) {
    let mysql = |name: &str| name.starts_with("mysql");
    module
        .on_servers(increments_of_one_record_are_exact)
        .on_servers(the_key_can_be_a_url)
        .on_servers(every_key_type_identifies_its_record)
        .on_servers(a_fraction_of_a_second_is_ignored_in_a_key)
        .on_servers(add_many_rejects_a_date_with_more_text)
        .on_servers(a_char_key_with_trailing_spaces_is_the_record_that_it_counts_for)
        .on_servers(totals_are_exact_during_compactions_and_rollups)
        .on_servers(concurrent_first_increments_are_exact)
        .on_servers(an_increment_after_a_delete_is_kept_by_a_concurrent_compaction)
        .on_servers(a_reset_sets_the_total)
        .on_servers(resets_concurrent_with_increments_never_deadlock)
        .on_servers(compactions_and_resets_of_one_record_never_deadlock)
        .on_servers(calls_work_after_a_select_in_the_same_transaction)
        .on_servers(a_rollback_reverts_every_call)
        .on_servers(invalid_arguments_are_rejected_and_change_nothing)
        .on_servers(a_record_is_read_by_its_key)
        .on(mysql, an_increment_of_an_existing_slot_locks_one_record_and_no_gap);
}

fn installed<'a>(server: &'a Server, package: &Package) -> Schema<'a> {
    let schema = server.schema();
    schema.install(package);
    schema
}

fn increments_of_one_record_are_exact(server: &Server) {
    for pick in [Pick::Connection, Pick::Random] {
        let schema = installed(server, &keyed(|options| options.pick = pick));
        assert_eq!(schema.first::<i64>("SELECT slotted_counter_get(123, 456)"), 0, "a record without slots");
        for _ in 0..11 {
            schema.run("CALL slotted_counter_increment(123, 456)");
        }
        let sum = "SELECT CAST(SUM(count) AS SIGNED) FROM slotted_counters WHERE record_type = 123 AND record_id = 456";
        assert_eq!(schema.first::<i64>(sum), 11);
        assert_eq!(schema.first::<i64>("SELECT slotted_counter_get(123, 456)"), 11);
        let (slots, least, most): (u64, i64, i64) =
            schema.first("SELECT COUNT(*), MIN(slot), MAX(slot) FROM slotted_counters");
        // Eleven connections, or eleven random selections, use several of the 521 slots.
        assert!(slots > 1 && least >= 0 && most < 521, "{slots} slots from {least} to {most}");
        let row: (i64, i64, u64, i64) = schema.first("SELECT * FROM slotted_counter_totals");
        assert_eq!(row, (123, 456, slots, 11));
        schema.run("CALL slotted_counter_add(123, 456, -20)");
        assert_eq!(schema.first::<i64>("SELECT slotted_counter_get(123, 456)"), -9);
        schema.run("CALL slotted_counter_compact(123, 456)");
        assert_eq!(schema.first::<(i64, i64)>("SELECT slots, total FROM slotted_counter_totals"), (1, -9));
        schema.run("CALL slotted_counter_delete(123, 456); CALL slotted_counter_delete(123, 456)");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters"), 0);
    }
}

fn the_key_can_be_a_url(server: &Server) {
    let package = keyed(|options| {
        options.key = "url VARCHAR(256)".parse().expect("a key");
        options.table = "pageviews_counts".parse().expect("a table");
        options.prefix = "pageview_".parse().expect("a prefix");
    });
    let schema = installed(server, &package);
    for _ in 0..3 {
        schema.run("CALL pageview_increment('/home')");
    }
    schema.run("CALL pageview_increment('/about'); CALL pageview_increment('/HOME')");
    assert_eq!(schema.first::<i64>("SELECT pageview_get('/home')"), 4);
    let sum = "SELECT CAST(SUM(count) AS SIGNED) as count FROM pageviews_counts WHERE url = '/home'";
    assert_eq!(schema.first::<i64>(sum), 4);
    assert_eq!(schema.first::<(String, i64)>("SELECT url, total FROM pageview_totals WHERE url = '/about'").1, 1);
}

/// A value of the key as JSON, as an expression.
fn json(package: &Package, value: &str) -> String {
    match package.options.key.0[0].kind {
        KeyType::Integer(..) => value.to_owned(),
        KeyType::Binary(..) => format!("JSON_QUOTE(HEX({value}))"),
        _ => format!("JSON_QUOTE(CAST({value} AS CHAR))"),
    }
}

/// MySQL rounds a fraction of a second: the last half second of a day would count for the next day.
fn a_fraction_of_a_second_is_ignored_in_a_key(server: &Server) {
    for (key, stored) in [("a DATE", "2026-11-25"), ("a DATETIME", "2026-11-25 23:59:59")] {
        let package = keyed(|options| options.key = key.parse().expect(key));
        let schema = installed(server, &package);
        let moment = "TIMESTAMP '2026-11-25 23:59:59.700000'";
        for call in ["increment({})", "add({}, 2)", "compact({})", "reset({}, 4)", "add({}, 1)"] {
            schema.run(&format!("CALL slotted_counter_{}", call.replace("{}", moment)));
        }
        schema.run("CALL slotted_counter_add_many('[[\"2026-11-25 23:59:59.7\", 2]]')");
        assert_eq!(schema.first::<i64>(&format!("SELECT slotted_counter_get({moment})")), 7, "{key}");
        let rows: Vec<(String, i64)> =
            schema.connect().query("SELECT CAST(a AS CHAR), total FROM slotted_counter_totals").expect(key);
        assert_eq!(rows, [(stored.to_owned(), 7)], "{key}");
        schema.run(&format!("CALL slotted_counter_delete({moment})"));
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters"), 0, "{key}");
    }
}

fn add_many_rejects_a_date_with_more_text(server: &Server) {
    for key in ["a DATE", "a DATETIME"] {
        let package = keyed(|options| options.key = key.parse().expect(key));
        let schema = installed(server, &package);
        let mut connection = schema.connect();
        for text in [
            "2026-11-23abc",
            "2026-11-23T10:00:00.000Z",
            "2026-11-23T10:00:00+02:00",
            "2026-11-23 10:00:00 ",
            "2026-11-23 10",
            "20261123",
            "2026-11-31",
        ] {
            let result = connection.query_drop(format!("CALL slotted_counter_add_many('[[\"{text}\", 1]]')"));
            assert_eq!(error_of(result).0, 30015, "{key}: {text}");
        }
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters"), 0, "{key}");
        for text in ["2026-11-23", "2026-11-23 00:00:00", "2026-11-23T00:00:00", "2026-11-23 00:00:00.000"] {
            schema.run(&format!("CALL slotted_counter_add_many('[[\"{text}\", 1]]')"));
        }
        assert_eq!(schema.first::<i64>("SELECT slotted_counter_get('2026-11-23')"), 4, "{key}");
    }
}

/// A CHAR column does not store trailing spaces, which a collation without padding distinguishes.
fn a_char_key_with_trailing_spaces_is_the_record_that_it_counts_for(server: &Server) {
    let without_padding = if server.is_mysql() { "utf8mb4_0900_ai_ci" } else { "utf8mb4_general_nopad_ci" };
    for collation in ["utf8mb4_general_ci", without_padding] {
        let package = keyed(|options| {
            options.key = "a CHAR(3)".parse().expect("a key");
            options.collation = collation.parse().expect("a collation");
        });
        let schema = installed(server, &package);
        for call in ["increment('a ')", "add('a', 2)", "add_many('[[\"a \", 3], [\"a\", 1]]')", "compact('a  ')"] {
            schema.run(&format!("CALL slotted_counter_{call}"));
        }
        assert_eq!(schema.first::<i64>("SELECT slotted_counter_get('a ')"), 7, "{collation}");
        assert_eq!(schema.first::<i64>("SELECT slotted_counter_get('a')"), 7, "{collation}");
        schema.run("CALL slotted_counter_reset('a ', 1); CALL slotted_counter_add('a', 1)");
        assert_eq!(schema.first::<(String, i64)>("SELECT a, total FROM slotted_counter_totals"), ("a".into(), 2), "{collation}");
        schema.run("CALL slotted_counter_delete('a  ')");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters"), 0, "{collation}");
    }
}

fn every_key_type_identifies_its_record(server: &Server) {
    // In strict mode, the server rejects some arguments before the routine runs.
    const OF_THE_SERVER: [u16; 4] = [1264, 1265, 1292, 1406];
    let cases = [
        ("a TINYINT", vec!["-128", "127", "0"], vec!["-129", "128"]),
        ("a TINYINT UNSIGNED", vec!["0", "255"], vec!["-1", "256"]),
        ("a SMALLINT", vec!["-32768", "32767"], vec!["-32769", "32768"]),
        ("a SMALLINT UNSIGNED", vec!["0", "65535"], vec!["-1", "65536"]),
        ("a MEDIUMINT", vec!["-8388608", "8388607"], vec!["8388608"]),
        ("a MEDIUMINT UNSIGNED", vec!["0", "16777215"], vec!["-1", "16777216"]),
        ("a INT UNSIGNED", vec!["0", "4294967295"], vec!["-1", "4294967296"]),
        ("a BIGINT", vec!["-9223372036854775808", "9223372036854775807"], vec![]),
        ("a BIGINT UNSIGNED", vec!["0", "18446744073709551615"], vec![]),
        ("a CHAR(3)", vec!["'abc'", "''", "'\u{e9}\u{e8}\u{ea}'"], vec!["'abcd'", "'abc d'"]),
        ("a VARCHAR(3)", vec!["'abc'", "'a''b'"], vec!["'abcd'", "'abc d'"]),
        ("a BINARY(2)", vec!["x'0001'", "x'ff00'"], vec!["x'00'", "x'000102'"]),
        ("a VARBINARY(3)", vec!["x'00'", "x''", "x'000001'"], vec!["x'00000000'"]),
        (
            "a DATE",
            vec!["'2026-11-23'", "'2026-11-24'", "'1000-01-01'", "'9999-12-31'"],
            vec!["'2026-02-30'", "'yesterday'", "''", "'0999-12-31'"],
        ),
        (
            "a DATETIME",
            vec!["'2026-11-23 10:00:00'", "'2026-11-23 10:00:01'", "'2026-11-24'"],
            vec!["'2026-11-23 25:00:00'", "''", "'0999-12-31 23:59:59'"],
        ),
        ("`the key` INT", vec!["5"], vec!["4294967296"]),
        ("`back``tick` VARCHAR(9)", vec!["'x'"], vec!["'0123456789'"]),
        ("`select` INT", vec!["5"], vec![]),
    ];
    for (key, good, bad) in cases {
        let package = keyed(|options| options.key = key.parse::<Key>().expect(key));
        let schema = installed(server, &package);
        let queries = Queries::of(&package);
        let mut connection = schema.connect();
        for value in &good {
            for call in ["increment({})", "increment({})", "compact({})", "add({}, 5)", "reset({}, 1)"] {
                let call = call.replace("{}", value);
                connection.query_drop(format!("CALL slotted_counter_{call}")).expect(key);
            }
            let parameter: Value = connection.query_first(format!("SELECT {value}")).expect(key).expect("a row");
            queries.exec(&mut connection, "increment", vec![parameter]).expect(key);
            let array = format!("CONCAT('[[', {}, ', 3]]')", json(&package, value));
            connection.query_drop(format!("CALL slotted_counter_add_many({array})")).expect(key);
            let array: String = connection.query_first(format!("SELECT {array}")).expect(key).expect("a row");
            queries.exec(&mut connection, "add_many", vec![array.into()]).expect(key);
            let total: Option<i64> =
                connection.query_first(format!("SELECT slotted_counter_get({value})")).expect(key);
            assert_eq!(total, Some(8), "{key}: {value}");
        }
        let rows: u64 = schema.first("SELECT COUNT(*) FROM slotted_counter_totals");
        assert_eq!(rows, good.len() as u64, "{key}");
        let before = schema.rows(&package.options.table);
        for value in bad {
            let array = format!("CONCAT('[[', {}, ', 3]]')", json(&package, value));
            let (number, _) = error_of(connection.query_drop(format!("CALL slotted_counter_add_many({array})")));
            assert_eq!(number, 30015, "{key}: {value}");
            // Also without strict mode, in which a truncated key would identify another record.
            for mode in ["DEFAULT", "''"] {
                connection.query_drop(format!("SET SESSION sql_mode = {mode}")).expect("a mode");
                for (verb, routine, more) in [
                    ("CALL", "increment", ""),
                    ("CALL", "add", ", 7"),
                    ("CALL", "reset", ", 7"),
                    ("CALL", "delete", ""),
                    ("CALL", "compact", ""),
                    ("SELECT", "get", ""),
                ] {
                    let call = format!("{verb} slotted_counter_{routine}({value}{more})");
                    let result = connection.query::<Row, _>(&call);
                    assert!(result.is_err(), "{key}: {call}: not rejected");
                    let (number, message) = error_of(result);
                    if mode == "DEFAULT" && OF_THE_SERVER.contains(&number) {
                        continue;
                    }
                    let column = package.options.key.0[0].name.name();
                    let wrong = "value out of range or of wrong length for column";
                    let expected = (30010, format!("slotted_counter_{routine}: {wrong} '{column}'"));
                    assert_eq!((number, message), expected, "{key}: {call}");
                    assert_eq!(schema.rows(&package.options.table), before, "{key}: {call}");
                }
            }
        }
        connection.query_drop(format!("CALL slotted_counter_delete({})", good[0])).expect(key);
        let rows: u64 = schema.first("SELECT COUNT(*) FROM slotted_counter_totals");
        assert_eq!(rows, good.len() as u64 - 1, "{key}: after a delete");
        // The script compares the table with its own columns.
        schema.run(&file(&package, "create_procedures.sql"));
    }
}

/// A random record. Low numbers are more frequent, approximately as in Zipf's distribution with exponent 1.
fn zipf(random: &mut impl RngExt, records: u32) -> u32 {
    // The inverse of the cumulative distribution of the density 1/x.
    let exponent: f64 = random.random_range(0.0..1.0);
    (f64::from(records).powf(exponent) as u32).clamp(1, records)
}

fn totals_are_exact_during_compactions_and_rollups(server: &Server) {
    const RECORDS: u32 = 1000;
    const WRITERS: usize = 64;
    const CALLS: usize = 150;
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        let package = of_column("parents.total", "id INT", |_| {});
        let schema = server.schema();
        schema.run("CREATE TABLE parents (id INT PRIMARY KEY, total BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB");
        schema.install(&package);
        let parents: Vec<_> = (1..=RECORDS).map(|id| format!("({id})")).collect();
        schema.run(&format!("INSERT INTO parents (id) VALUES {}", parents.join(", ")));
        let roll_up = "CALL parents_total_rollup(100)";
        let done = AtomicBool::new(false);
        let expected = Mutex::new(BTreeMap::<u32, i64>::new());
        let [compactions, deadlocks, rolled_up, done_calls] = [const { AtomicU64::new(0) }; 4];
        thread::scope(|scope| {
            let roller = scope.spawn(|| {
                let mut connection = schema.isolated(isolation);
                while !done.load(SeqCst) {
                    // A compaction of the same record can deadlock with it.
                    if let Err(error) = connection.query_drop(roll_up) {
                        repeatable(error);
                        continue;
                    }
                    rolled_up.fetch_add(1, SeqCst);
                }
            });
            let compactor = scope.spawn(|| {
                let mut connection = schema.isolated(isolation);
                let mut random = rand::rng();
                while !done.load(SeqCst) {
                    let record = zipf(&mut random, RECORDS);
                    match connection.exec_drop("CALL parents_total_compact(?)", (record,)) {
                        Ok(()) => compactions.fetch_add(1, SeqCst),
                        Err(error) => {
                            repeatable(error);
                            0
                        }
                    };
                }
            });
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| {
                    scope.spawn(|| {
                        let mut connection = schema.isolated(isolation);
                        let mut random = rand::rng();
                        let mut counted = BTreeMap::<u32, i64>::new();
                        for _ in calls(CALLS) {
                            done_calls.fetch_add(1, SeqCst);
                            let record = zipf(&mut random, RECORDS);
                            let amount = if random.random_bool(0.7) { 1 } else { random.random_range(-3..=3) };
                            // An upsert that inserts a slot can become the victim of a deadlock with a compaction of the
                            // record. The server has rolled it back, and it is repeated.
                            while let Err(error) =
                                connection.exec_drop("CALL parents_total_add(?, ?)", (record, amount))
                            {
                                repeatable(error);
                                deadlocks.fetch_add(1, SeqCst);
                            }
                            *counted.entry(record).or_default() += amount;
                        }
                        let mut expected = expected.lock().expect("no writer failed");
                        for (record, amount) in counted {
                            *expected.entry(record).or_default() += amount;
                        }
                    })
                })
                .collect();
            let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            done.store(true, SeqCst);
            compactor.join().expect("the compactor");
            roller.join().expect("the roll-up");
            written.into_iter().for_each(|result| result.expect("a writer"));
        });
        let mut connection = schema.connect();
        let totals: Vec<(u32, i64)> = connection
            .query("SELECT id, CAST(total AS SIGNED) FROM parents_total_totals ORDER BY 1")
            .expect("totals");
        connection.query_drop(roll_up).expect("a roll-up");
        let columns: Vec<(u32, i64)> = connection.query("SELECT id, total FROM parents WHERE total <> 0").expect("columns");
        let counted: Vec<_> = totals.iter().copied().filter(|(_, total)| *total != 0).collect();
        assert_eq!(columns, counted, "{isolation}");
        let mut expected = expected.into_inner().expect("no writer failed");
        for (record, total) in &totals {
            assert_eq!(expected.remove(record).unwrap_or(0), *total, "record {record}");
        }
        assert!(expected.values().all(|amount| *amount == 0), "{expected:?}");
        eprintln!(
            "{}, {isolation}: {} calls, {} records, {} compactions, {} roll-ups, {} calls repeated",
            server.version,
            done_calls.load(SeqCst),
            totals.len(),
            compactions.load(SeqCst),
            rolled_up.load(SeqCst),
            deadlocks.load(SeqCst)
        );
        assert!(compactions.load(SeqCst) > 0 && rolled_up.load(SeqCst) > 0);
    }
}

/// 64 connections increment the same 20 new records, and repeat a transaction after a deadlock. Returns the number of
/// deadlocks.
fn create_at_once(schema: &Schema<'_>, isolation: &str, transactions: bool, opposing: bool) -> u64 {
    const CONNECTIONS: i64 = 64;
    const RECORDS: i64 = 20;
    let (barrier, deadlocks, number) = (Barrier::new(CONNECTIONS as usize), AtomicU64::new(0), AtomicI64::new(0));
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut connection = schema.isolated(isolation);
                let backwards = opposing && number.fetch_add(1, SeqCst) % 2 == 1;
                barrier.wait();
                for first in (1..=RECORDS).step_by(2) {
                    let pair = if backwards { [first + 1, first] } else { [first, first + 1] };
                    // The records of one transaction are repeated together.
                    for records in pair.chunks(if transactions { 2 } else { 1 }) {
                        loop {
                        let mut count = || -> mysql::Result<()> {
                            if transactions {
                                connection.query_drop("START TRANSACTION")?;
                            }
                            for record in records {
                                connection.exec_drop("CALL slotted_counter_increment(1, ?)", (record,))?;
                            }
                            if transactions {
                                thread::sleep(Duration::from_millis(5));
                                connection.query_drop("COMMIT")?;
                            }
                            Ok(())
                        };
                        let Err(error) = count() else { break };
                        if repeatable(error) == 1213 {
                            assert!(transactions, "a call outside a transaction never deadlocks");
                            deadlocks.fetch_add(1, SeqCst);
                        }
                        connection.query_drop("ROLLBACK").expect("a rollback");
                    }
                    }
                }
            });
        }
    });
    let (records, least, most): (i64, i64, i64) =
        schema.first("SELECT COUNT(*), MIN(total), MAX(total) FROM slotted_counter_totals");
    assert_eq!((records, least, most), (RECORDS, CONNECTIONS, CONNECTIONS), "{isolation}");
    deadlocks.load(SeqCst)
}

fn concurrent_first_increments_are_exact(server: &Server) {
    // With 100 slots each of the 64 connections has its own slot. With 8 slots eight connections share a slot, and
    // transactions that increment two records in opposing orders deadlock.
    let cases = [(false, false, 100), (false, false, 8), (true, false, 100), (true, false, 8), (true, true, 8)];
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        for (transactions, opposing, slots) in cases {
            let schema = installed(server, &keyed(|options| options.slots = Slots::Fixed(slots)));
            let deadlocks = create_at_once(&schema, isolation, transactions, opposing);
            eprintln!(
                "{}, {isolation}, transactions {transactions}, opposing {opposing}, {slots} slots: {deadlocks} deadlocks",
                server.version
            );
            assert!(opposing || deadlocks == 0, "{isolation}: {deadlocks} deadlocks in one order");
        }
    }
}

fn an_increment_after_a_delete_is_kept_by_a_concurrent_compaction(server: &Server) {
    const ROUNDS: usize = 800;
    let schema = installed(server, &keyed(|_| {}));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut connection = schema.isolated("READ COMMITTED");
                while !done.load(SeqCst) {
                    if let Err(error) = connection.query_drop("CALL slotted_counter_compact(1, 1)") {
                        repeatable(error);
                    }
                }
            });
        }
        let check = || -> Result<(), String> {
            let mut connection = schema.connect();
            for round in calls(ROUNDS) {
                for call in ["delete(1, 1)", "increment(1, 1)", "add(1, 1, 6)"] {
                    while let Err(error) = connection.query_drop(format!("CALL slotted_counter_{call}")) {
                        let (number, message) = error_of::<()>(Err(error));
                        if ![1213, 1205].contains(&number) {
                            return Err(format!("round {round}: {message}"));
                        }
                    }
                }
                let total: Option<i64> =
                    connection.query_first("SELECT slotted_counter_get(1, 1)").map_err(|e| e.to_string())?;
                if total != Some(7) {
                    return Err(format!("round {round}: {total:?}"));
                }
            }
            Ok(())
        };
        let checked = check();
        done.store(true, SeqCst);
        assert_eq!(checked, Ok(()));
    });
}

fn a_reset_sets_the_total(server: &Server) {
    let schema = installed(server, &keyed(|_| {}));
    for before in ["", "CALL slotted_counter_increment(1, 1)", "CALL slotted_counter_increment(1, 1)"] {
        schema.run(before);
        schema.run("CALL slotted_counter_reset(1, 1, 50)");
        assert_eq!(schema.first::<i64>("SELECT slotted_counter_get(1, 1)"), 50);
    }
    schema.run("CALL slotted_counter_reset(1, 1, NULL); CALL slotted_counter_reset(2, 2, -3)");
    assert_eq!(schema.first::<(i64, i64)>("SELECT slotted_counter_get(1, 1), slotted_counter_get(2, 2)"), (0, -3));
}

fn resets_concurrent_with_increments_never_deadlock(server: &Server) {
    const CALLS: usize = 150;
    let schema = installed(server, &keyed(|options| options.slots = Slots::Fixed(8)));
    let slots: Vec<_> = (0..8).map(|slot| format!("(1, 1, {slot}, 0)")).collect();
    schema.run(&format!("INSERT INTO slotted_counters VALUES {}", slots.join(", ")));
    let deadlocks = AtomicU64::new(0);
    thread::scope(|scope| {
        for connection in 0..16 {
            let call = ["CALL slotted_counter_increment(1, 1)", "CALL slotted_counter_reset(1, 1, 5)"][connection % 2];
            let (schema, deadlocks) = (&schema, &deadlocks);
            scope.spawn(move || {
                let mut connection = schema.isolated("REPEATABLE READ");
                for _ in calls(CALLS) {
                    if let Err(error) = connection.query_drop(call) {
                        deadlocks.fetch_add(u64::from(repeatable(error) == 1213), SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(deadlocks.into_inner(), 0);
    schema.run("CALL slotted_counter_reset(1, 1, 5)");
    assert_eq!(schema.first::<i64>("SELECT slotted_counter_get(1, 1)"), 5);
}

fn calls_work_after_a_select_in_the_same_transaction(server: &Server) {
    for (call, total) in [
        ("CALL slotted_counter_increment(1, 1)", 4),
        ("CALL slotted_counter_add(1, 1, 7)", 10),
        ("CALL slotted_counter_reset(1, 1, 9)", 9),
        ("CALL slotted_counter_compact(1, 1)", 3),
        ("CALL slotted_counter_delete(1, 1)", 0),
    ] {
        // With one slot, the other connections and the transaction change the same row.
        let schema = installed(server, &keyed(|o| o.slots = Slots::Fixed(1)));
        schema.run("CALL slotted_counter_increment(1, 1)");
        let mut connection = schema.isolated("REPEATABLE READ");
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection.query_drop("SELECT * FROM slotted_counters").expect("a read");
        schema.run("CALL slotted_counter_increment(1, 1); CALL slotted_counter_increment(1, 1)");
        connection.query_drop(call).unwrap_or_else(|error| panic!("{call}: {error}"));
        connection.query_drop("COMMIT").expect("a commit");
        assert_eq!(schema.first::<i64>("SELECT slotted_counter_get(1, 1)"), total, "{call}");
    }
}

fn a_rollback_reverts_every_call(server: &Server) {
    let package = keyed(|_| {});
    let schema = installed(server, &package);
    schema.run("CALL slotted_counter_add(1, 1, 5)");
    let before = schema.rows(&package.options.table);
    let mut connection = schema.connect();
    for call in ["increment(1, 1)", "increment(2, 2)", "add(1, 1, 9)", "reset(1, 1, 1)", "compact(1, 1)", "delete(1, 1)"] {
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection.query_drop(format!("CALL slotted_counter_{call}")).expect(call);
        assert_eq!(schema.rows(&package.options.table), before, "{call}: not before the commit");
        connection.query_drop("ROLLBACK").expect("a rollback");
        assert_eq!(schema.rows(&package.options.table), before, "{call}");
    }
}

fn invalid_arguments_are_rejected_and_change_nothing(server: &Server) {
    let package = keyed(|_| {});
    let schema = installed(server, &package);
    schema.run("CALL slotted_counter_add(1, 1, 9223372036854775807); CALL slotted_counter_add(2147483647, 1, 3)");
    // Two slots with the maximum of BIGINT.
    schema.run("INSERT INTO slotted_counters VALUES (5, 5, 0, 9223372036854775807), (5, 5, 1, 9223372036854775807)");
    let before = schema.rows(&package.options.table);
    for mode in ["DEFAULT", "''"] {
        let mut connection = schema.connect();
        connection.query_drop(format!("SET SESSION sql_mode = {mode}")).expect("a mode");
        let mut rejected = |call: &str, number: u16, message: &str| {
            let result = connection.query::<Row, _>(call);
            assert!(result.is_err(), "not rejected: {call}");
            let got = error_of(result);
            assert!(got.0 == number && got.1.contains(message), "{mode}: {call}: {got:?}");
            assert_eq!(schema.rows(&package.options.table), before, "{mode}: {call}");
        };
        for (routine, name) in package.routines().filter(|(routine, _)| !routine.is_private() && !matches!(routine, Routine::CompactIdle | Routine::AddMany)) {
            let verb = if routine == Routine::Get { "SELECT" } else { "CALL" };
            let more = if matches!(routine, Routine::Add | Routine::Reset) { ", 1" } else { "" };
            let name = name.name();
            for (key, number, message) in [
                ("NULL, 1", 30009, "column 'record_type' cannot be NULL"),
                ("1, NULL", 30009, "column 'record_id' cannot be NULL"),
                ("NULL, NULL", 30009, "column 'record_type' cannot be NULL"),
                ("2147483648, 1", 30010, "value out of range or of wrong length for column 'record_type'"),
                ("-2147483649, 1", 30010, "value out of range or of wrong length for column 'record_type'"),
            ] {
                rejected(&format!("{verb} {name}({key}{more})"), number, &format!("{name}: {message}"));
            }
        }
        rejected("CALL slotted_counter_add(1, 1, NULL)", 30007, "slotted_counter_add: p_amount is NULL");
        rejected("SELECT slotted_counter_get(5, 5)", 30008, "slotted_counter_get: the total exceeds the range of BIGINT");
        rejected("CALL slotted_counter_compact(5, 5)", 30008, "slotted_counter_compact: the total exceeds the range of BIGINT");
        connection.query_drop("CALL slotted_counter_add(9, 9, 0)").expect("add 0");
        assert_eq!(schema.rows(&package.options.table), before, "0 inserts no slot");
    }
    let package = keyed(|options| options.slots = Slots::Fixed(1));
    let schema = installed(server, &package);
    schema.run("CALL slotted_counter_add(1, 1, 9223372036854775807)");
    let full = error_of(schema.connect().query_drop("CALL slotted_counter_increment(1, 1)"));
    assert_eq!(full.0, 1690);
}

fn a_record_is_read_by_its_key(server: &Server) {
    for (key, row, record) in [
        ("record_type INT, record_id BIGINT", "{n} MOD 7, {n}", "6, 13"),
        ("page_id BIGINT, day DATE", "{n} MOD 7, '2000-01-01' + INTERVAL {n} DAY", "6, '2000-01-14'"),
        ("day DATETIME, page_id BIGINT UNSIGNED", "'2000-01-01' + INTERVAL {n} HOUR, {n}", "'2000-01-01 13:00', 13"),
        ("year SMALLINT, name VARCHAR(9)", "2000 + {n} MOD 9, {n}", "2004, '13'"),
    ] {
        let package = keyed(|options| options.key = key.parse().expect("a key"));
        let schema = installed(server, &package);
        let rows: Vec<_> = (0..5000)
            .map(|number: u32| format!("({}, {}, 1)", row.replace("{n}", &number.to_string()), number % 3))
            .collect();
        schema.run(&format!("INSERT INTO slotted_counters VALUES {}", rows.join(", ")));
        schema.run("ANALYZE TABLE slotted_counters");
        let mut connection = schema.connect();
        let columns: Vec<_> = package.options.key.0.iter().map(|column| column.name.to_string()).collect();
        let query =
            format!("SELECT total FROM slotted_counter_totals WHERE ({}) = ({record})", columns.join(", "));
        let plan: Vec<Row> = connection.query(format!("EXPLAIN FORMAT=TRADITIONAL {query}")).expect("a plan");
        let step = |row: &Row, column: &str| row.get::<Option<String>, _>(column).flatten().unwrap_or_default();
        let base: Vec<_> = plan.iter().filter(|row| step(row, "table") == "slotted_counters").collect();
        assert_eq!(base.len(), 1, "{plan:?}");
        let found = (step(base[0], "type"), step(base[0], "key"));
        assert_eq!((found.0.as_str(), found.1.as_str()), ("ref", "PRIMARY"), "{key}: {plan:?}");
        let reads = |connection: &mut Conn| -> i64 {
            let rows: Vec<(String, i64)> = connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'").expect("status");
            rows.iter().map(|(_, count)| count).sum()
        };
        let of_status = -(reads(&mut connection) - reads(&mut connection));
        for statement in [
            query,
            format!("CALL slotted_counter_increment({record})"),
            format!("SELECT slotted_counter_get({record})"),
            format!("CALL slotted_counter_reset({record}, 3)"),
            format!("CALL slotted_counter_compact({record})"),
            format!("CALL slotted_counter_delete({record})"),
        ] {
            connection.query::<Row, _>(&statement).expect(&statement);
            let start = reads(&mut connection);
            connection.query::<Row, _>(&statement).expect(&statement);
            let read = reads(&mut connection) - start - of_status;
            assert!(read <= 40, "{statement} reads {read} rows");
        }
    }
}

fn an_increment_of_an_existing_slot_locks_one_record_and_no_gap(server: &Server) {
    for pick in [Pick::Connection, Pick::Random] {
        let package = keyed(|options| (options.pick, options.slots) = (pick, Slots::Fixed(1)));
        let schema = installed(server, &package);
        schema.run("CALL slotted_counter_increment(1, 1); CALL slotted_counter_increment(1, 2)");
        let mut connection = schema.isolated("REPEATABLE READ");
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection.query_drop("SELECT slotted_counter_get(1, 1)").expect("a read");
        assert_eq!(schema.data_locks(), []);
        connection.query_drop("CALL slotted_counter_increment(1, 1)").expect("an increment");
        let locks = schema.data_locks();
        let locks: Vec<_> = locks.iter().map(|(kind, mode)| (kind.as_str(), mode.as_str())).collect();
        assert_eq!(locks, [("RECORD", "X,REC_NOT_GAP"), ("TABLE", "IX")]);
    }
}

/// All maintenance of a record locks slot 0 first.
fn compactions_and_resets_of_one_record_never_deadlock(server: &Server) {
    let schema = server.schema();
    schema.install(&keyed(|_| {}));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut connection = schema.connect();
                while !done.load(SeqCst) {
                    if let Err(error) = connection.query_drop("CALL slotted_counter_increment(1, 1)") {
                        repeatable(error);
                    }
                }
            });
        }
        let statements = ["CALL slotted_counter_compact(1, 1)", "CALL slotted_counter_compact(1, 1)", "CALL slotted_counter_reset(1, 1, 0)"];
        let maintained = statements.map(|statement| {
            let schema = &schema;
            scope.spawn(move || {
                let mut connection = schema.connect();
                calls(500).try_for_each(|_| connection.query_drop(statement))
            })
        });
        let results = maintained.map(|session| session.join());
        done.store(true, SeqCst);
        for result in results {
            result.expect("a session").expect("no deadlock");
        }
    });
}
