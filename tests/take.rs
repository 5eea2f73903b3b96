//! counter_take: a total that does not fall below 0.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;
use rand::RngExt;
use slotted::package::{Package, Pick, Slots};

use crate::queries::Queries;
use crate::support::{Module, Schema, Server, calls, error_of, keyed, package, variants};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_take_succeeds_exactly_if_the_total_is_enough)
        .on_servers(random_calls_agree_with_a_number)
        .on_servers(a_rollback_gives_the_amount_back)
        .on_servers(the_last_one_is_sold_once_and_not_lost)
        .on_servers(a_caller_with_enough_does_not_wait_for_a_search)
        .on_servers(concurrent_takes_sell_everything_and_no_more)
        .on_servers(takes_in_transactions_sell_everything_and_no_more)
        .on_servers(takes_during_adds_and_resizes_are_exact)
        .on_servers(takes_during_resets_are_exact)
        .on_servers(invalid_takes_are_rejected_and_change_nothing)
        .on_servers(takes_by_query_are_exact)
        .on_servers(a_take_of_a_record_succeeds_exactly_if_the_total_is_enough)
        .on_servers(concurrent_takes_of_a_record_sell_everything_and_no_more)
        .on(|name| name.starts_with("mysql"), a_take_from_the_own_slot_locks_one_record);
}

const NOT_ENOUGH: u16 = 30016;

fn with_stock<'a>(server: &'a Server, package: &Package, slots: u32, stock: i64) -> Schema<'a> {
    let schema = server.schema();
    schema.install(package);
    let slots = if package.options.slots == Slots::PerCounter { slots.to_string() } else { "NULL".into() };
    schema.run(&format!("CALL counter_setup('seats', NULL, {slots}, {stock})"));
    schema
}

const NAMED: &str = "CALL counter_take('seats', ?)";
const KEYED: &str = "CALL slotted_counter_take(1, 7, ?)";

/// Whether the amount was taken.
fn take(connection: &mut Conn, amount: i64) -> mysql::Result<bool> {
    take_by(NAMED, connection, amount)
}

fn take_by(call: &str, connection: &mut Conn, amount: i64) -> mysql::Result<bool> {
    match connection.exec_drop(call, (amount,)) {
        Err(mysql::Error::MySqlError(error)) if error.code == NOT_ENOUGH => Ok(false),
        other => other.map(|()| true),
    }
}

fn total(schema: &Schema<'_>) -> i64 {
    schema.first("SELECT counter_get('seats')")
}

fn a_take_succeeds_exactly_if_the_total_is_enough(server: &Server) {
    const COUNTS: [i64; 5] = [-4, 0, 1, 3, 10];
    let package = package(|_| {});
    let schema = with_stock(server, &package, 3, 0);
    let mut connection = schema.connect();
    let mut cases = 0;
    for first in COUNTS {
        for second in COUNTS {
            for third in COUNTS {
                for amount in [1, 2, 4, 7, 12, 31] {
                    let set = format!(
                        "UPDATE counters SET counter = ELT(counter_id, {first}, {second}, {third}) WHERE counter_id > 0"
                    );
                    schema.run(&format!("DELETE FROM counters WHERE counter_id < 1; {set}"));
                    let before = schema.rows(&package.options.table);
                    let total_before = first + second + third;
                    // Twice: the second call may find row 0.
                    let mut left = total_before;
                    for _ in 0..2 {
                        let result = connection.exec_drop("CALL counter_take('seats', ?)", (amount,));
                        if left >= amount {
                            result.unwrap_or_else(|error| panic!("{amount} of {first}, {second}, {third}: {error}"));
                            left -= amount;
                        } else {
                            let message = format!("counter_take: not enough: {left} left of 'seats'");
                            assert_eq!(error_of(result), (NOT_ENOUGH, message), "{amount} of {first}, {second}, {third}");
                        }
                        assert_eq!(total(&schema), left, "{amount} of {first}, {second}, {third}");
                    }
                    if total_before < amount {
                        assert!(schema.rows(&package.options.table) == before, "{amount} of {first}, {second}, {third}");
                    }
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 750);
}

fn random_calls_agree_with_a_number(server: &Server) {
    for (what, package) in variants() {
        let schema = with_stock(server, &package, 4, 50);
        let mut random = rand::rng();
        let mut connections: Vec<_> = (0..5).map(|_| schema.connect()).collect();
        let mut number = 50_i64;
        let mut done = Vec::new();
        for _ in calls(1500) {
            let connection = &mut connections[random.random_range(0..5)];
            let amount = random.random_range(1..12_i64);
            let call = match random.random_range(0..100) {
                0..60 => format!("take('seats', {amount})"),
                60..80 => format!("add('seats', {amount})"),
                80..93 => format!("add('seats', {})", -amount),
                93..96 => format!("reset('seats', {}, FALSE)", amount - 3),
                _ if package.options.slots == Slots::PerCounter => format!("resize('seats', {amount})"),
                _ => continue,
            };
            done.push(call.clone());
            let result = connection.query_drop(format!("CALL counter_{call}"));
            let short = call.starts_with("take") && number < amount;
            assert_eq!(result.is_err(), short, "{what}: {number}: {result:?} after {:?}", &done[done.len().saturating_sub(9)..]);
            if short {
                assert_eq!(error_of(result).0, NOT_ENOUGH, "{what}");
            } else if call.starts_with("take") {
                number -= amount;
            } else if call.starts_with("reset") {
                number = amount - 3;
            } else if call.starts_with("add") {
                number += if call.contains('-') { -amount } else { amount };
            }
            assert_eq!(total(&schema), number, "{what}: {:?}", &done[done.len().saturating_sub(9)..]);
        }
    }
}

fn a_rollback_gives_the_amount_back(server: &Server) {
    for (what, package) in variants() {
        let schema = with_stock(server, &package, 4, 10);
        for amount in [1, 7, 10] {
            let mut connection = schema.connect();
            connection.query_drop("START TRANSACTION").expect("a transaction");
            assert!(take(&mut connection, amount).expect(&what));
            assert_eq!(total(&schema), 10, "{what}: another session sees an uncommitted take");
            connection.query_drop("ROLLBACK").expect("a rollback");
            assert_eq!(total(&schema), 10, "{what}");
        }
    }
}

fn the_last_one_is_sold_once_and_not_lost(server: &Server) {
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        for end in ["COMMIT", "ROLLBACK"] {
            let package = package(|_| {});
            let schema = with_stock(server, &package, 4, 1);
            let mut first = schema.isolated(isolation);
            first.query_drop("START TRANSACTION").expect("a transaction");
            assert!(take(&mut first, 1).expect("a take"));
            thread::scope(|scope| {
                let (send, receive) = mpsc::channel();
                let schema = &schema;
                scope.spawn(move || {
                    let mut second = schema.isolated(isolation);
                    send.send(take(&mut second, 1).expect("a take")).expect("a receiver");
                });
                let early = receive.recv_timeout(Duration::from_millis(300));
                assert!(early.is_err(), "{isolation}: decided before the {end}: {early:?}");
                first.query_drop(end).expect(end);
                assert_eq!(receive.recv().expect("a result"), end == "ROLLBACK", "{isolation}: {end}");
            });
            assert_eq!(total(&schema), 0, "{isolation}: {end}");
        }
    }
}

/// A connection for each slot of the counter, which has so many slots.
fn one_for_each_slot(schema: &Schema<'_>, slots: u32) -> Vec<Conn> {
    let mut connections = BTreeMap::new();
    while connections.len() < slots as usize {
        let connection = schema.isolated("REPEATABLE READ");
        connections.entry(connection.connection_id() % slots).or_insert(connection);
    }
    connections.into_values().collect()
}

fn a_caller_with_enough_does_not_wait_for_a_search(server: &Server) {
    const SLOTS: u32 = 6;
    let package = package(|_| {});
    let schema = with_stock(server, &package, SLOTS, 60);
    let mut connections = one_for_each_slot(&schema, SLOTS);
    // The first search spreads the stock: 10 in each slot, and 1 was taken from one.
    assert!(take(&mut connections[1], 1).expect("a take"));
    schema.run("UPDATE counters SET counter = 10 WHERE counter_id > 0");
    let mut searching = connections.remove(3);
    searching.query_drop("START TRANSACTION").expect("a transaction");
    assert!(take(&mut searching, 15).expect("a take"));
    let mut waited = 0;
    for connection in &mut connections {
        connection.query_drop("SET innodb_lock_wait_timeout = 1").expect("a timeout");
        match take(connection, 1) {
            Ok(true) => {}
            result => {
                assert_eq!(error_of(result).0, 1205);
                waited += 1;
            }
        }
    }
    // The search has taken from one slot, whose connection waits for it as for any transaction that has changed the slot.
    assert!(waited <= 1, "{waited} connections have waited");
    searching.query_drop("ROLLBACK").expect("a rollback");
    assert_eq!(total(&schema), 60 - 5 + waited);
}

/// What a load has sold and how.
#[derive(Default)]
struct Sales {
    sold: AtomicI64,
    put: AtomicI64,
    below: AtomicU64,
    errors: std::sync::Mutex<BTreeMap<u16, u64>>,
}

impl Sales {
    /// Sells until the counter is empty.
    fn sell(&self, call: &str, connection: &mut Conn, transactions: bool) {
        let mut random = rand::rng();
        loop {
            let amount = random.random_range(1..=5);
            let rollback = transactions && random.random_bool(0.1);
            let result = if transactions {
                connection.query_drop("START TRANSACTION").and_then(|()| take_by(call, connection, amount)).and_then(|taken| {
                    connection.query_drop(if rollback { "ROLLBACK" } else { "COMMIT" }).map(|()| taken)
                })
            } else {
                take_by(call, connection, amount)
            };
            match result {
                Ok(true) if rollback => {}
                Ok(true) => _ = self.sold.fetch_add(amount, SeqCst),
                Ok(false) if amount == 1 => return,
                Ok(false) => {}
                Err(error) => {
                    let number = error_of::<()>(Err(error)).0;
                    *self.errors.lock().expect("errors").entry(number).or_default() += 1;
                    assert!([1213, 1020].contains(&number), "{number}");
                    connection.query_drop("ROLLBACK").expect("a rollback");
                }
            }
        }
    }

    /// Reads the total until the load has stopped.
    fn watch(&self, get: &str, schema: &Schema<'_>, stop: &AtomicBool) {
        let mut connection = schema.connect();
        while !stop.load(SeqCst) {
            let total: Option<i64> = connection.query_first(get).expect("a read");
            if total < Some(0) {
                self.below.fetch_add(1, SeqCst);
            }
        }
    }
}

/// 32 connections sell all of a stock, each call or transaction 1 to 5 pieces.
fn sell_out(schema: &Schema<'_>, [call, get]: [&str; 2], isolation: &str, transactions: bool, stock: i64) {
    const CONNECTIONS: usize = 32;
    let sales = Sales::default();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = super::exactness::SetOnDrop(&stop);
        scope.spawn(|| sales.watch(get, schema, &stop));
        let sellers: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let mut connection = schema.isolated(isolation);
                let sales = &sales;
                scope.spawn(move || sales.sell(call, &mut connection, transactions))
            })
            .collect();
        sellers.into_iter().for_each(|seller| seller.join().expect("a seller"));
    });
    let (version, errors) = (&schema.server.version, sales.errors.lock().expect("errors"));
    eprintln!("{version}, {call}, {isolation}, transactions {transactions}: sold {:?}, errors {errors:?}", sales.sold);
    assert_eq!(sales.sold.load(SeqCst), stock);
    assert_eq!(schema.first::<i64>(get), 0);
    // A read of MariaDB during a commit can be wrong: docs/mariadb-reads.md.
    if schema.server.is_mysql() {
        assert_eq!(sales.below.load(SeqCst), 0, "reads below 0");
    }
}

fn sell_out_named(server: &Server, isolation: &str, transactions: bool, stock: i64, pick: Pick) {
    let package = package(|options| options.pick = pick);
    let schema = with_stock(server, &package, 40, stock);
    sell_out(&schema, [NAMED, "SELECT counter_get('seats')"], isolation, transactions, stock);
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM counters WHERE counter <> 0"), 0, "a slot is not 0");
}

fn concurrent_takes_sell_everything_and_no_more(server: &Server) {
    sell_out_named(server, "REPEATABLE READ", false, 20_000, Pick::Connection);
    sell_out_named(server, "REPEATABLE READ", false, 5_000, Pick::Random);
}

fn takes_in_transactions_sell_everything_and_no_more(server: &Server) {
    sell_out_named(server, "REPEATABLE READ", true, 10_000, Pick::Connection);
    sell_out_named(server, "READ COMMITTED", true, 10_000, Pick::Connection);
}

fn takes_during_adds_and_resizes_are_exact(server: &Server) {
    const STOCK: i64 = 1000;
    let package = package(|_| {});
    let schema = with_stock(server, &package, 20, STOCK);
    let sales = Sales::default();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = super::exactness::SetOnDrop(&stop);
        scope.spawn(|| sales.watch("SELECT counter_get('seats')", &schema, &stop));
        scope.spawn(|| {
            let mut connection = schema.connect();
            for slots in [3, 30, 7].into_iter().cycle() {
                let result = connection.query_drop(format!("CALL counter_resize('seats', {slots})"));
                if let Err(error) = result {
                    assert_eq!(error_of::<()>(Err(error)).0, 1213);
                }
                if stop.load(SeqCst) {
                    break;
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        let suppliers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = schema.connect();
                    for _ in calls(400) {
                        // One and the same piece is put in and taken back, so that the total does not fall below 0.
                        for amount in [5, 3, -3] {
                            let call = format!("CALL counter_add('seats', {amount})");
                            while let Err(error) = connection.query_drop(&call) {
                                assert_eq!(error_of::<()>(Err(error)).0, 1213);
                            }
                            sales.put.fetch_add(amount, SeqCst);
                        }
                    }
                })
            })
            .collect();
        let sellers: Vec<_> = (0..12)
            .map(|_| {
                let mut connection = schema.connect();
                let sales = &sales;
                scope.spawn(move || sales.sell(NAMED, &mut connection, false))
            })
            .collect();
        suppliers.into_iter().for_each(|supplier| supplier.join().expect("a supplier"));
        sellers.into_iter().for_each(|seller| seller.join().expect("a seller"));
    });
    eprintln!("{}: sold {:?}, put {:?}, errors {:?}", server.version, sales.sold, sales.put, sales.errors);
    assert_eq!(sales.sold.load(SeqCst) + total(&schema), STOCK + sales.put.load(SeqCst));
}

/// A transaction that locks all slots knows what its reset removes.
fn takes_during_resets_are_exact(server: &Server) {
    const STOCK: i64 = 500;
    let package = package(|_| {});
    let schema = with_stock(server, &package, 20, STOCK);
    let sales = Sales::default();
    let stop = AtomicBool::new(false);
    let (resets, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let _stop = super::exactness::SetOnDrop(&stop);
        scope.spawn(|| sales.watch("SELECT counter_get('seats')", &schema, &stop));
        scope.spawn(|| {
            let _ended = super::exactness::SetOnDrop(&ended);
            let mut connection = schema.connect();
            for _ in calls(200) {
                let mut reset = || -> mysql::Result<i64> {
                    let mut transaction = connection.start_transaction(mysql::TxOpts::default())?;
                    let sum = "SELECT SUM(counter) FROM counters WHERE counter_name = 'seats' ORDER BY counter_id DESC FOR UPDATE";
                    let removed: Option<i64> = transaction.query_first(sum)?;
                    transaction.query_drop(format!("CALL counter_reset('seats', {STOCK}, FALSE)"))?;
                    transaction.commit()?;
                    Ok(STOCK - removed.expect("a sum"))
                };
                match reset() {
                    Ok(more) => {
                        sales.put.fetch_add(more, SeqCst);
                        resets.fetch_add(1, SeqCst);
                    }
                    Err(error) => assert_eq!(error_of::<()>(Err(error)).0, 1213),
                }
                thread::sleep(Duration::from_millis(5));
            }
        });
        let sellers: Vec<_> = (0..16)
            .map(|_| {
                let (mut connection, sales, ended) = (schema.connect(), &sales, &ended);
                scope.spawn(move || {
                    while !ended.load(SeqCst) {
                        sales.sell(NAMED, &mut connection, false);
                    }
                })
            })
            .collect();
        sellers.into_iter().for_each(|seller| seller.join().expect("a seller"));
    });
    eprintln!("{}: sold {:?}, resets {resets:?}, errors {:?}", server.version, sales.sold, sales.errors);
    assert!(resets.load(SeqCst) >= 10, "{resets:?}");
    assert_eq!(sales.sold.load(SeqCst) + total(&schema), STOCK + sales.put.load(SeqCst));
    if server.is_mysql() {
        assert_eq!(sales.below.load(SeqCst), 0, "reads below 0");
    }
}

fn invalid_takes_are_rejected_and_change_nothing(server: &Server) {
    let package = package(|_| {});
    let schema = with_stock(server, &package, 4, 10);
    let mut connection = schema.connect();
    let before = schema.rows(&package.options.table);
    for (arguments, number, text) in [
        ("'seats', NULL", 30017, "p_amount must be at least 1"),
        ("'seats', 0", 30017, "p_amount must be at least 1"),
        ("'seats', -1", 30017, "p_amount must be at least 1"),
        ("'seats', -9223372036854775808", 30017, "p_amount must be at least 1"),
        ("'seats', 9223372036854775807", NOT_ENOUGH, "not enough: 10 left of 'seats'"),
        ("'other', 1", 30003, "unknown counter 'other'"),
        ("NULL, 1", 30001, "p_counter_name is NULL or empty"),
        ("'', 0", 30001, "p_counter_name is NULL or empty"),
        ("REPEAT('x', 101), 1", 30002, "p_counter_name is longer than 100 characters"),
        ("CONCAT('seats', REPEAT(' ', 254), 'y'), 1", 30002, "p_counter_name is longer than 100 characters"),
    ] {
        connection.query_drop("SET sql_mode = ''").expect("a mode");
        let (error, message) = error_of(connection.query_drop(format!("CALL counter_take({arguments})")));
        assert_eq!((error, message), (number, format!("counter_take: {text}")), "{arguments}");
        assert!(schema.rows(&package.options.table) == before, "{arguments} has changed a row");
    }
}

fn takes_by_query_are_exact(server: &Server) {
    for (what, package) in variants() {
        let queries = Queries::of(&package);
        let schema = with_stock(server, &package, 6, 0);
        schema.run("UPDATE counters SET counter = 5");
        let stock = total(&schema);
        let mut connection = schema.connect();
        let slots = queries.slots(&mut connection, "seats").expect("the counter exists");
        let mut taken = 0;
        while queries.take(&mut connection, "seats", slots, 2) {
            taken += 2;
        }
        // A slot with one left cannot give two.
        assert_eq!((taken, total(&schema)), (stock / 5 * 4, stock / 5), "{what}");
    }
}

fn a_take_from_the_own_slot_locks_one_record(server: &Server) {
    for (what, package) in variants() {
        let schema = with_stock(server, &package, 5, 0);
        schema.run("UPDATE counters SET counter = 10");
        for mark in [false, true] {
            if mark {
                schema.run("INSERT INTO counters SELECT counter_name, 0, NULL, start_date, 0 FROM counters WHERE counter_id = 1");
            }
            let mut connection = schema.isolated("REPEATABLE READ");
            connection.query_drop("START TRANSACTION").expect("a transaction");
            assert!(take(&mut connection, 3).expect(&what));
            let locks = schema.data_locks();
            let locks: Vec<_> = locks.iter().map(|(kind, mode)| (kind.as_str(), mode.as_str())).collect();
            assert_eq!(locks, [("RECORD", "X,REC_NOT_GAP"), ("TABLE", "IX")], "{what}, {mark}");
            connection.query_drop("ROLLBACK").expect("a rollback");
        }
    }
}

fn a_take_of_a_record_succeeds_exactly_if_the_total_is_enough(server: &Server) {
    for pick in [Pick::Connection, Pick::Random] {
        let package = keyed(|options| (options.slots, options.pick) = (Slots::Fixed(3), pick));
        let schema = server.schema();
        schema.install(&package);
        let mut connection = schema.connect();
        // None is a slot that does not exist.
        const COUNTS: [Option<i64>; 5] = [None, Some(-4), Some(0), Some(3), Some(10)];
        for first in COUNTS {
            for second in COUNTS {
                for third in COUNTS {
                    for amount in [1, 4, 12] {
                        schema.run("DELETE FROM slotted_counters");
                        for (slot, count) in [first, second, third].into_iter().enumerate() {
                            if let Some(count) = count {
                                schema.run(&format!("INSERT INTO slotted_counters VALUES (1, 7, {slot}, {count})"));
                            }
                        }
                        let before = schema.rows(&package.options.table);
                        let mut left: i64 = [first, second, third].into_iter().flatten().sum();
                        for call in 0..2 {
                            let result = connection.exec_drop(KEYED, (amount,));
                            if left >= amount {
                                result.unwrap_or_else(|error| panic!("{amount} of {first:?}, {second:?}, {third:?}: {error}"));
                                left -= amount;
                            } else {
                                let message = format!("slotted_counter_take: not enough: {left} left");
                                assert_eq!(error_of(result), (NOT_ENOUGH, message));
                                assert!(call == 1 || schema.rows(&package.options.table) == before);
                            }
                            assert_eq!(schema.first::<i64>("SELECT slotted_counter_get(1, 7)"), left);
                        }
                    }
                }
            }
        }
    }
}

fn concurrent_takes_of_a_record_sell_everything_and_no_more(server: &Server) {
    for (isolation, transactions) in [("REPEATABLE READ", false), ("REPEATABLE READ", true), ("READ COMMITTED", true)] {
        let schema = server.schema();
        schema.install(&keyed(|options| options.slots = Slots::Fixed(40)));
        schema.run("CALL slotted_counter_add(1, 7, 1000)");
        sell_out(&schema, [KEYED, "SELECT slotted_counter_get(1, 7)"], isolation, transactions, 1000);
    }
}
