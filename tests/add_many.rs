//! counter_add_many and slotted_counter_add_many: many counts in one call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

use mysql::Value;
use mysql::prelude::Queryable;
use rand::RngExt;
use rand::seq::SliceRandom;
use slotted::package::{Package, Pick, Slots};

use crate::queries::Queries;
use crate::support::{Module, Schema, Server, calls, error_of, keyed, package, variants};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(each_counter_gets_the_sum_of_its_amounts)
        .on_servers(the_change_is_part_of_the_transaction)
        .on_servers(an_array_with_one_invalid_entry_changes_nothing)
        .on_servers(calls_with_the_same_counters_in_any_order_do_not_deadlock)
        .on_servers(all_counters_are_changed_during_resizes)
        .on_servers(a_call_in_an_old_snapshot_finds_its_counters)
        .on_servers(ten_thousand_entries_are_one_call)
        .on(|name| name.starts_with("mysql"), a_call_locks_one_slot_of_each_counter);
}

/// Both kinds of package, with the ways to select a slot.
fn packages() -> Vec<(String, Package)> {
    let mut packages = variants();
    for pick in [Pick::Connection, Pick::Random] {
        packages.push((format!("records, {pick}"), keyed(|options| options.pick = pick)));
    }
    packages
}

fn is_keyed(package: &Package) -> bool {
    package.options.key.0.len() == 2
}

/// The beginning of an entry for the counter or record with this number.
fn key(package: &Package, number: u64) -> String {
    if is_keyed(package) { format!("1, {number}") } else { format!("\"c{number}\"") }
}

fn array(package: &Package, amounts: impl IntoIterator<Item = (u64, i64)>) -> String {
    let entry = |(number, amount)| format!("[{}, {amount}]", key(package, number));
    format!("[{}]", amounts.into_iter().map(entry).collect::<Vec<_>>().join(", "))
}

fn routine(package: &Package) -> &'static str {
    if is_keyed(package) { "slotted_counter_add_many" } else { "counter_add_many" }
}

/// Installs a package, with so many counters.
fn with_counters<'a>(server: &'a Server, package: &Package, counters: u64, slots: u32) -> Schema<'a> {
    let schema = server.schema();
    schema.install(package);
    if !is_keyed(package) {
        let slots = if package.options.slots == Slots::PerCounter { slots.to_string() } else { "NULL".into() };
        let setup = |number| format!("CALL counter_setup('c{number}', NULL, {slots}, 0)");
        schema.run(&(0..counters).map(setup).collect::<Vec<_>>().join(";"));
    }
    schema
}

fn total(schema: &Schema<'_>, package: &Package, number: u64) -> i64 {
    if is_keyed(package) {
        schema.first(&format!("SELECT slotted_counter_get(1, {number})"))
    } else {
        schema.first(&format!("SELECT counter_get('c{number}')"))
    }
}

fn each_counter_gets_the_sum_of_its_amounts(server: &Server) {
    for (what, package) in packages() {
        let schema = with_counters(server, &package, 4, 7);
        let queries = Queries::of(&package);
        let mut connection = schema.connect();
        let amounts = array(&package, [(1, 3), (0, -7), (1, 4), (2, 5), (2, -5), (3, 0)]);
        let call = format!("CALL {}(?)", routine(&package));
        connection.exec_drop(&call, (&amounts,)).expect(&what);
        // White space, and a counter in upper case.
        let spaced = amounts.replace(',', " ,\n\t").replace("c1", "C1");
        connection.exec_drop(&call, (&spaced,)).expect(&what);
        connection.exec_drop(&call, ("[]",)).expect(&what);
        let totals = |expected: [i64; 4]| {
            for (number, expected) in (0..).zip(expected) {
                assert_eq!(total(&schema, &package, number), expected, "{what}: {number}");
            }
        };
        totals([-14, 14, 0, 0]);
        if is_keyed(&package) {
            let slots: u64 = schema.first("SELECT COUNT(*) FROM slotted_counters");
            assert!(slots <= 4, "{what}: an amount of 0 has created a slot");
        }
        queries.add_many(&mut connection, amounts.as_str());
        totals([-21, 21, 0, 0]);
    }
}

fn the_change_is_part_of_the_transaction(server: &Server) {
    for (what, package) in packages() {
        let schema = with_counters(server, &package, 2, 7);
        let mut connection = schema.connect();
        connection.query_drop("START TRANSACTION").expect("a transaction");
        let call = format!("CALL {}(?)", routine(&package));
        connection.exec_drop(&call, (array(&package, [(0, 1), (1, 2)]),)).expect(&what);
        assert_eq!(total(&schema, &package, 1), 0, "{what}: another session");
        connection.query_drop("ROLLBACK").expect("a rollback");
        assert_eq!([0, 1].map(|number| total(&schema, &package, number)), [0, 0], "{what}");
    }
}

fn an_array_with_one_invalid_entry_changes_nothing(server: &Server) {
    const NO_ARRAY: &str = "p_amounts must be a JSON array of at most 10000 entries";
    for (what, package) in packages() {
        let schema = with_counters(server, &package, 2, 7);
        let good = key(&package, 0);
        let mut connection = schema.connect();
        let call = format!("CALL {}(?)", routine(&package));
        connection.exec_drop(&call, (format!("[[{good}, 1]]"),)).expect(&what);
        let before = schema.rows(&package.options.table);
        let mut check = |amounts: Value, number: u16, text: &str| {
            for mode in ["DEFAULT", "''"] {
                connection.query_drop(format!("SET sql_mode = {mode}")).expect("a mode");
                let (error, message) = error_of(connection.exec_drop(&call, (&amounts,)));
                assert_eq!((error, message), (number, format!("{}: {text}", routine(&package))), "{what}: {amounts:?}");
            }
            assert!(schema.rows(&package.options.table) == before, "{what}: {amounts:?} has changed a row");
        };
        check(Value::NULL, 30014, NO_ARRAY);
        let long = format!("[{}[{good}, 1]]", format!("[{good}, 1],").repeat(10_000));
        for amounts in ["", " ", "[[", "x", "5", "null", "\"[]\"", "{\"c0\": 1}", "[[1, 2, 3],]", &long] {
            check(amounts.into(), 30014, NO_ARRAY);
        }
        let invalid = |text: &str| text.replace("{}", &good);
        let mut entries: Vec<String> = [
            "5", "\"c0\"", "null", "{\"c0\": 1}", "[]", "[{}]", "[{}, null]", "[{}, \"1\"]", "[{}, 1.5]",
            "[{}, true]", "[{}, [1]]", "[{}, {\"a\": 1}]", "[{}, 1, 2]", "[{}, 9223372036854775808]",
            "[{}, -9223372036854775809]", "[{}, 99999999999999999999]", "[{}, 1e400]", "[[{}, 1]]",
        ]
        .map(invalid)
        .into();
        let keys: &[&str] = if is_keyed(&package) {
            &["[1, null, 1]", "[null, 1, 1]", "[1, \"1\", 1]", "[1, 1.5, 1]", "[3000000000, 1, 1]", "[1, [1], 1]"]
        } else {
            &["[null, 1]", "[5, 1]", "[\"\", 1]", "[\"  \", 1]", "[[\"c0\"], 1]", "[true, 1]"]
        };
        entries.extend(keys.iter().map(|&entry| entry.to_owned()));
        if !is_keyed(&package) {
            entries.push(format!("[\"{}\", 1]", "c".repeat(101)));
            // Equal to 'c0' after a truncation.
            entries.push(format!("[\"c0{}x\", 1]", " ".repeat(300)));
        }
        let kind = if is_keyed(&package) { "the key" } else { "a name" };
        for entry in entries {
            // 1e400 is not JSON for MySQL.
            if entry.contains("1e400") && server.is_mysql() {
                check(format!("[[{good}, 1], {entry}]").into(), 30014, NO_ARRAY);
                continue;
            }
            let text = format!("entry 2 must be an array of {kind} and an integer");
            check(format!("[[{good}, 1], {entry}, 7]").into(), 30015, &text);
        }
        if !is_keyed(&package) {
            let unknown = format!("[[{good}, 1], [\"it's \\\"\", 0], [\"a\", 2]]");
            check(unknown.into(), 30003, "unknown counter 'it's \"'");
            check(format!("[[{good}, 1], [\"a\", 2], [\"b\", 2]]").into(), 30003, "unknown counter 'a'");
        }
        let most = i64::MAX;
        let (error, _) = error_of(connection.exec_drop(&call, (array(&package, [(1, 1), (0, most), (0, most)]),)));
        assert!([1264, 1690].contains(&error), "{what}: {error}");
        assert!(schema.rows(&package.options.table) == before, "{what}");
    }
}

fn calls_with_the_same_counters_in_any_order_do_not_deadlock(server: &Server) {
    const CONNECTIONS: u64 = 16;
    const COUNTERS: u64 = 40;
    for (what, package) in packages() {
        // Fewer slots than connections, so that calls wait for each other.
        let schema = with_counters(server, &package, COUNTERS, 3);
        let sum = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let mut random = rand::rng();
                    let mut connection = schema.connect();
                    let call = connection.prep(format!("CALL {}(?)", routine(&package))).expect("a call");
                    for _ in calls(25) {
                        let mut amounts: Vec<_> = (0..COUNTERS).map(|number| (number, random.random_range(1..9))).collect();
                        amounts.shuffle(&mut random);
                        amounts.truncate(30);
                        connection.exec_drop(&call, (array(&package, amounts.iter().copied()),)).expect("no deadlock");
                        sum.fetch_add(amounts.iter().map(|(_, amount)| *amount as u64).sum(), SeqCst);
                    }
                });
            }
        });
        let totals: i64 = (0..COUNTERS).map(|number| total(&schema, &package, number)).sum();
        assert_eq!(totals as u64, sum.load(SeqCst), "{what}");
    }
}

fn all_counters_are_changed_during_resizes(server: &Server) {
    const COUNTERS: u64 = 5;
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        let package = package(|_| {});
        let schema = with_counters(server, &package, COUNTERS, 20);
        let stop = AtomicBool::new(false);
        let (sum, resizes) = (AtomicU64::new(0), AtomicU64::new(0));
        let errors = thread::scope(|scope| {
            let _stop = super::exactness::SetOnDrop(&stop);
            scope.spawn(|| {
                let mut connection = schema.connect();
                for slots in [1, 20, 4].into_iter().cycle() {
                    for counter in 0..COUNTERS {
                        if connection.query_drop(format!("CALL counter_resize('c{counter}', {slots})")).is_ok() {
                            resizes.fetch_add(1, SeqCst);
                        }
                    }
                    if stop.load(SeqCst) {
                        break;
                    }
                }
            });
            let writers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let mut connection = schema.isolated(isolation);
                        let mut errors = BTreeMap::<u16, u64>::new();
                        let call = connection.prep("CALL counter_add_many(?)").expect("a call");
                        for _ in calls(300) {
                            match connection.exec_drop(&call, (array(&package, (0..COUNTERS).map(|number| (number, 1))),)) {
                                Ok(()) => _ = sum.fetch_add(1, SeqCst),
                                Err(error) => *errors.entry(error_of::<()>(Err(error)).0).or_default() += 1,
                            }
                        }
                        errors
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().expect("a writer")).collect::<Vec<_>>()
        });
        eprintln!("{}, {isolation}: {sum:?} calls, {resizes:?} resizes, errors {errors:?}", server.version);
        assert!(errors.iter().all(|errors| errors.keys().all(|&number| number == 1213)), "{errors:?}");
        for number in 0..COUNTERS {
            assert_eq!(total(&schema, &package, number) as u64, sum.load(SeqCst), "{isolation}");
        }
        assert!(sum.load(SeqCst) > 0 && resizes.load(SeqCst) > 0);
    }
}

fn a_call_in_an_old_snapshot_finds_its_counters(server: &Server) {
    for (what, package) in variants() {
        let schema = with_counters(server, &package, 2, 7);
        let mut connection = schema.isolated("REPEATABLE READ");
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection.query_drop("SELECT * FROM counters").expect("a snapshot");
        schema.run("CALL counter_setup('c2', NULL, NULL, 0); CALL counter_delete('c1')");
        if package.options.slots == Slots::PerCounter {
            schema.run("CALL counter_resize('c0', 1)");
        }
        let call = "CALL counter_add_many(?)";
        connection.exec_drop(call, (array(&package, [(0, 1), (2, 2)]),)).expect(&what);
        let (error, message) = error_of(connection.exec_drop(call, (array(&package, [(0, 1), (1, 1), (2, 2)]),)));
        assert_eq!((error, message), (30003, "counter_add_many: unknown counter 'c1'".into()), "{what}");
        connection.query_drop("COMMIT").expect("a commit");
        assert_eq!([0, 2].map(|number| total(&schema, &package, number)), [1, 2], "{what}");
    }
}

fn ten_thousand_entries_are_one_call(server: &Server) {
    for package in [package(|_| {}), keyed(|_| {})] {
        let schema = with_counters(server, &package, 1000, 2);
        let amounts = array(&package, (0..10_000).map(|entry| (entry * 7919 % 1000, 1)));
        let mut connection = schema.connect();
        connection.exec_drop(format!("CALL {}(?)", routine(&package)), (amounts,)).expect("a call");
        let count = if is_keyed(&package) { "count" } else { "counter" };
        let table = package.options.table.name();
        let read = format!("SELECT CAST(SUM({count}) AS SIGNED), CAST(MAX({count}) AS SIGNED) FROM {table}");
        assert_eq!(schema.first::<(i64, i64)>(&read), (10_000, 10));
    }
}

fn a_call_locks_one_slot_of_each_counter(server: &Server) {
    for (what, package) in packages() {
        let schema = with_counters(server, &package, 5, 7);
        let call = format!("CALL {}(?)", routine(&package));
        let mut connection = schema.isolated("REPEATABLE READ");
        // The slots of a record exist after the first call.
        connection.exec_drop(&call, (array(&package, (0..5).map(|number| (number, 1))),)).expect(&what);
        if package.options.pick == Pick::Random && is_keyed(&package) {
            continue;
        }
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection.exec_drop(&call, (array(&package, [(4, 1), (0, 1), (2, 1)]),)).expect(&what);
        let locks = schema.data_locks();
        let records: Vec<_> = locks.iter().filter(|(kind, _)| kind == "RECORD").map(|(_, mode)| mode.as_str()).collect();
        assert_eq!(records, ["X,REC_NOT_GAP"; 3], "{what}");
        connection.query_drop("ROLLBACK").expect("a rollback");
    }
}
