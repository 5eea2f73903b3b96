//! Bounded counters: no total falls below 0, and no slot.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use slotted::package::{Options, Package, Pick, Slots};

use crate::exactness::SetOnDrop;
use crate::support::{Module, Schema, Server, bounded, calls, cases, error_of, repeatable};

pub fn promises(mut module: Module<'_>) {
    let mysql = |name: &str| name.starts_with("mysql");
    module
        .plain(options_that_do_not_fit_are_rejected)
        .on_servers(each_error_changes_nothing)
        .on_servers(no_statement_makes_a_slot_negative)
        .on_servers(random_calls_of_three_sessions_agree_with_a_number)
        .on_servers(calls_of_16_sessions_make_no_total_and_no_slot_negative)
        .on_servers(a_sale_by_32_sessions_is_exact_and_without_deadlocks)
        .on_servers(a_take_decides_by_what_is_committed)
        .waits()
        .on_servers(an_amount_that_is_rolled_back_is_not_sold)
        .on_servers(a_transaction_holds_the_slots_that_the_manual_of_take_names)
        .on_servers(a_take_that_waits_for_slot_1_holds_no_other_slot)
        .on(mysql, a_take_from_the_own_slot_locks_one_record_and_no_gap)
        .on_servers(calls_of_a_damaged_counter_end_with_an_error)
        .on_servers(a_killed_take_takes_its_amount_or_returns_an_error)
        .on(mysql, takes_of_the_hypergraph_optimizer_take_their_amounts);
}

const NOT_ENOUGH: u16 = 30016;
const SLOTS: u32 = 10;

fn installed(server: &Server) -> Schema<'_> {
    let schema = server.schema();
    schema.install(&bounded(|_| {}));
    schema
}

/// Creates the counter anew, with these counts of its slots.
fn fill(schema: &Schema<'_>, counts: impl IntoIterator<Item = i64>) {
    let row = |(slot, count)| format!("('seats', {slot}, NULL, '2026-01-01', {count})");
    let rows: Vec<_> = (1..).zip(counts).map(row).collect();
    schema.run("DELETE FROM bounded_counters");
    schema.run(&format!(
        "INSERT INTO bounded_counters VALUES {}",
        rows.join(", ")
    ));
}

fn call(routine: &str, amount: i64) -> String {
    format!("CALL bounded_counter_{routine}('seats', {amount})")
}

fn total(schema: &Schema<'_>) -> i64 {
    schema.first("SELECT CAST(COALESCE(SUM(counter), 0) AS SIGNED) FROM bounded_counters")
}

fn least(schema: &Schema<'_>) -> i64 {
    schema.first("SELECT COALESCE(MIN(counter), 0) FROM bounded_counters")
}

/// All slots: their numbers, start dates and counts.
fn slots(schema: &Schema<'_>) -> Vec<(i64, String, i64)> {
    schema.query(
        "SELECT counter_id, CAST(start_date AS CHAR), counter FROM bounded_counters ORDER BY counter_id",
    )
}

/// The number of the error of a statement, or 0.
fn error(connection: &mut Conn, statement: &str) -> u16 {
    match connection.query_drop(statement) {
        Ok(()) => 0,
        result => error_of(result).0,
    }
}

fn run(connection: &mut Conn, statement: &str) {
    connection
        .query_drop(statement)
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

fn isolate(connection: &mut Conn, level: &str) {
    run(
        connection,
        &format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"),
    );
}

fn options_that_do_not_fit_are_rejected() {
    type Change = fn(&mut Options);
    let cases: [(Change, &str); 2] = [
        (
            |options| options.pick = Pick::Random,
            "--pick random cannot be used with bounded counters",
        ),
        (
            |options| options.slots = Slots::Fixed(20),
            "--slots 20 cannot be used with bounded_counters",
        ),
    ];
    for (change, message) in cases {
        let mut options = Options::bounded_counters();
        change(&mut options);
        let rejected = Package::new(options).expect_err(message).to_string();
        assert!(rejected.starts_with(message), "{rejected}");
    }
}

fn each_error_changes_nothing(server: &Server) {
    let negative = if server.is_mysql() { 3819 } else { 4025 };
    let schema = installed(server);
    fill(&schema, [4, 3, 2, 1]);
    let mut connection = schema.connect();
    let before = slots(&schema);
    run(&mut connection, "SET sql_mode = ''");
    for (routine, arguments, number, text) in [
        ("setup", "'other', NULL, 3, -1", negative, ""),
        (
            "setup",
            "'SEATS', NULL, 3, 1",
            30004,
            "there is already a counter 'SEATS'",
        ),
        (
            "setup",
            "'other', NULL, 0, 1",
            30005,
            "p_slots must be between 1 and 10000, not 0",
        ),
        (
            "setup",
            "'other', NULL, 10001, 1",
            30005,
            "p_slots must be between 1 and 10000, not 10001",
        ),
        ("setup", "NULL, NULL, 3, 1", 1048, ""),
        ("increment", "'other'", 30003, "unknown counter 'other'"),
        ("add", "'seats', NULL", 1048, ""),
        ("add", "'other', 0", 30003, "unknown counter 'other'"),
        ("add", "'seats', -11", 30016, ""),
        ("add", "'seats', -9223372036854775808", 1690, ""),
        ("take", "'seats', 0", 30017, "p_amount must be at least 1"),
        ("take", "'seats', -1", 30017, "p_amount must be at least 1"),
        ("take", "'seats', NULL", 30017, "p_amount must be at least 1"),
        ("take", "'other', 1", 30003, "unknown counter 'other'"),
        ("take", "'seats', 11", 30016, "not enough: 10 left of 'seats'"),
        (
            "take",
            "'seats', 9223372036854775807",
            30016,
            "not enough: 10 left of 'seats'",
        ),
        ("reset", "'seats', -1, TRUE", negative, ""),
        ("reset", "'other', 1, TRUE", 30003, "unknown counter 'other'"),
        (
            "resize",
            "'seats', NULL",
            30005,
            "p_slots must be between 1 and 10000, not NULL",
        ),
        ("resize", "'other', 3", 30003, "unknown counter 'other'"),
        ("delete", "'other'", 30003, "unknown counter 'other'"),
    ] {
        let call = format!("CALL bounded_counter_{routine}({arguments})");
        let (got, message) = error_of(connection.query_drop(&call));
        assert_eq!(got, number, "{call}: {message}");
        assert!(
            text.is_empty() || message == format!("bounded_counter_{routine}: {text}"),
            "{call}: {message}"
        );
        assert!(slots(&schema) == before, "{call} has changed a row");
    }
    // The greatest total, and the greatest amount.
    run(
        &mut connection,
        &format!("CALL bounded_counter_reset('seats', {}, FALSE)", i64::MAX),
    );
    assert_eq!(total(&schema), i64::MAX);
    run(&mut connection, &call("take", i64::MAX));
    run(&mut connection, &call("add", 0));
    assert_eq!(total(&schema), 0);
}

/// The CHECK of the table rejects a negative count, whoever writes it.
fn no_statement_makes_a_slot_negative(server: &Server) {
    let schema = installed(server);
    fill(&schema, [5]);
    let mut connection = schema.connect();
    let insert = "INSERT INTO bounded_counters VALUES ('seats', 1, NULL, NOW(), 1) ON DUPLICATE KEY UPDATE";
    for mode in ["''", "'STRICT_TRANS_TABLES'", "'NO_UNSIGNED_SUBTRACTION'"] {
        run(&mut connection, &format!("SET sql_mode = {mode}"));
        for statement in [
            "UPDATE bounded_counters SET counter = counter - 9",
            "UPDATE bounded_counters SET counter = '-9' WHERE counter_id = 1",
            "REPLACE INTO bounded_counters VALUES ('seats', 1, NULL, NOW(), -9)",
            &format!("{insert} counter = counter - 9"),
        ] {
            let number = error(&mut connection, statement);
            assert_eq!(
                number,
                if server.is_mysql() { 3819 } else { 4025 },
                "{mode}: {statement}"
            );
        }
        // IGNORE skips the row.
        run(
            &mut connection,
            "UPDATE IGNORE bounded_counters SET counter = counter - 9",
        );
        assert_eq!((total(&schema), least(&schema)), (5, 5), "{mode}");
    }
    // MariaDB can switch the check off. The routines do not rely on it.
    if !server.is_mysql() {
        run(&mut connection, "SET check_constraint_checks = OFF");
        assert_eq!(error(&mut connection, &call("take", 6)), NOT_ENOUGH);
        assert_eq!(error(&mut connection, &call("add", -6)), NOT_ENOUGH);
        assert_eq!(total(&schema), 5);
    }
}

/// A session of the random calls.
struct Caller {
    connection: Conn,
    level: &'static str,
    open: bool,
    /// Whether the transaction has changed the counter.
    changed: bool,
}

/// One sequence of 30 calls. While a transaction has changed the counter, the other sessions only read.
fn sequence(schema: &Schema<'_>, callers: &mut [Caller], seed: u64) {
    const LEVELS: [&str; 4] = [
        "READ UNCOMMITTED",
        "READ COMMITTED",
        "REPEATABLE READ",
        "SERIALIZABLE",
    ];
    let mut random = StdRng::seed_from_u64(seed);
    schema.run("DELETE FROM bounded_counters");
    let mut number = [0, 3, 40, 400, 5000][random.random_range(0..5)];
    schema.run(&format!(
        "CALL bounded_counter_setup('seats', NULL, {}, {number})",
        random.random_range(1..7)
    ));
    for caller in callers.iter_mut() {
        caller.level = LEVELS[random.random_range(0..4)];
        isolate(&mut caller.connection, caller.level);
    }
    // The number in the transaction that has changed the counter.
    let mut inner = number;
    let mut done: Vec<String> = Vec::new();
    for _ in 0..30 {
        let changing = callers.iter().position(|caller| caller.changed);
        let at = changing
            .filter(|_| random.random_bool(0.85))
            .unwrap_or_else(|| random.random_range(0..3));
        let caller = &mut callers[at];
        let log = |what: &str| format!("{at}: {what}");
        if !caller.open && random.random_bool(0.3) {
            run(&mut caller.connection, "START TRANSACTION");
            caller.open = true;
            done.push(log(&format!("START TRANSACTION, {}", caller.level)));
            // At SERIALIZABLE, a read in a transaction locks.
            if caller.level != "SERIALIZABLE" && random.random_bool(0.6) {
                run(&mut caller.connection, "SELECT bounded_counter_get('seats')");
                done.push(log("get"));
            }
        } else if caller.open && random.random_bool(0.3) {
            let end = ["COMMIT", "ROLLBACK"][random.random_range(0..2)];
            run(&mut caller.connection, end);
            done.push(log(end));
            if caller.changed && end == "COMMIT" {
                number = inner;
            }
            (caller.open, caller.changed) = (false, false);
        } else if changing.is_none_or(|changing| changing == at) {
            let now = if caller.changed { inner } else { number };
            let amount = [1, 2, 3, 7, 12, 50, random.random_range(1..900)][random.random_range(0..7)];
            let (call, next) = match random.random_range(0..100) {
                0..14 => ("CALL bounded_counter_increment('seats')".to_owned(), now + 1),
                14..36 => (call("add", amount), now + amount),
                36..54 => (call("add", -amount), now - amount),
                54..88 => (call("take", amount), now - amount),
                88..92 => (
                    format!("CALL bounded_counter_reset('seats', {}, FALSE)", amount - 1),
                    amount - 1,
                ),
                _ => (call("resize", random.random_range(1..9)), now),
            };
            done.push(log(&call));
            let before = (next < 0 && !caller.open).then(|| slots(schema));
            let result = caller.connection.query_drop(&call);
            if next < 0 {
                let (error, message) = error_of(result);
                assert_eq!(error, NOT_ENOUGH, "{message} after {done:?}");
                assert!(
                    message.contains(&format!("not enough: {now} left")),
                    "{message}, {now}: {done:?}"
                );
                if let Some(before) = before {
                    assert!(slots(schema) == before, "a row has changed: {done:?}");
                }
            } else if let Err(error) = result {
                panic!("{error} after {done:?}");
            }
            let next = if next < 0 { now } else { next };
            if caller.open {
                (caller.changed, inner) = (true, next);
            } else {
                number = next;
            }
        }
        assert_eq!(total(schema), number, "sequence {seed}: {done:?}");
        assert!(least(schema) >= 0, "sequence {seed}: {done:?}");
    }
    for caller in callers {
        run(&mut caller.connection, "COMMIT");
        if caller.changed {
            number = inner;
        }
        (caller.open, caller.changed) = (false, false);
    }
    assert_eq!(total(schema), number, "sequence {seed}: {done:?}");
}

fn random_calls_of_three_sessions_agree_with_a_number(server: &Server) {
    let schema = installed(server);
    let caller = |at| Caller {
        connection: schema.connect_with_id(at, SLOTS),
        level: "",
        open: false,
        changed: false,
    };
    let mut callers = [0, 3, 6].map(caller);
    (0..cases(75)).for_each(|seed| sequence(&schema, &mut callers, seed.into()));
}

fn calls_of_16_sessions_make_no_total_and_no_slot_negative(server: &Server) {
    let schema = &installed(server);
    fill(schema, [30; SLOTS as usize]);
    let end = Instant::now() + Duration::from_millis(2500);
    let (moved, done, below) = (&AtomicI64::new(0), &AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..16 {
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed);
                let mut connection = schema.connect();
                isolate(
                    &mut connection,
                    ["REPEATABLE READ", "READ COMMITTED", "READ UNCOMMITTED"][seed as usize % 3],
                );
                while Instant::now() < end {
                    let transaction = random.random_bool(0.3);
                    let mut changed = 0;
                    let mut work = || -> mysql::Result<()> {
                        if transaction {
                            connection.query_drop("START TRANSACTION")?;
                        }
                        for _ in 0..if transaction { random.random_range(1..4) } else { 1 } {
                            let amount = [1, 1, 2, 5, 20, 60][random.random_range(0..6)];
                            let (call, change) = match random.random_range(0..100) {
                                0..50 if seed < 2 && !transaction => {
                                    (call("resize", [1, 3, 10, 30][random.random_range(0..4)]), 0)
                                }
                                0..58 => (call("take", amount), -amount),
                                58..92 => (call("add", amount), amount),
                                _ => (call("add", -amount), -amount),
                            };
                            match connection.query_drop(call) {
                                Err(mysql::Error::MySqlError(error)) if error.code == NOT_ENOUGH => {}
                                other => {
                                    other?;
                                    changed += change;
                                }
                            }
                            done.fetch_add(1, SeqCst);
                        }
                        if transaction {
                            let end = if random.random_bool(0.3) {
                                "ROLLBACK"
                            } else {
                                "COMMIT"
                            };
                            connection.query_drop(end)?;
                            changed = if end == "COMMIT" { changed } else { 0 };
                        }
                        Ok(())
                    };
                    match work() {
                        Ok(()) => _ = moved.fetch_add(changed, SeqCst),
                        Err(error) => {
                            repeatable(error);
                            run(&mut connection, "ROLLBACK");
                        }
                    }
                }
            });
        }
        while Instant::now() < end {
            if least(schema) < 0 || total(schema) < 0 {
                below.fetch_add(1, SeqCst);
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
    eprintln!("{}: {done:?} calls", server.version);
    assert!(done.load(SeqCst) > 20, "{done:?}");
    assert_eq!(below.load(SeqCst), 0);
    assert_eq!(total(schema), 300 + moved.load(SeqCst));
}

/// How the pieces of a sale are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sale {
    Autocommit,
    /// One order in ten is rolled back.
    Transactions,
    /// One piece in ten comes back, in a transaction of its own.
    Returns,
}

fn a_sale_by_32_sessions_is_exact_and_without_deadlocks(server: &Server) {
    for (sale, level) in [
        (Sale::Autocommit, "REPEATABLE READ"),
        (Sale::Transactions, "REPEATABLE READ"),
        (Sale::Transactions, "READ COMMITTED"),
        (Sale::Returns, "REPEATABLE READ"),
    ] {
        sell_out(server, sale, level);
    }
}

fn sell_out(server: &Server, sale: Sale, level: &str) {
    const PIECES: i64 = 6000;
    let schema = &installed(server);
    schema.run(&format!(
        "CALL bounded_counter_setup('seats', NULL, 127, {PIECES})"
    ));
    let (sold, errors) = (&AtomicI64::new(0), &Mutex::new(BTreeMap::<u16, u64>::new()));
    let end = Instant::now() + Duration::from_secs(60);
    thread::scope(|scope| {
        for seed in 0..32 {
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed);
                let mut connection = schema.isolated(level);
                let mut change = |call: &str, end: &str| {
                    let error = if sale == Sale::Autocommit {
                        error(&mut connection, call)
                    } else {
                        run(&mut connection, "START TRANSACTION");
                        let error = error(&mut connection, call);
                        run(&mut connection, end);
                        error
                    };
                    if error != 0 && error != NOT_ENOUGH {
                        *errors.lock().expect("errors").entry(error).or_default() += 1;
                    }
                    error
                };
                while Instant::now() < end {
                    let amount = random.random_range(1..=9);
                    let keep = sale != Sale::Transactions || random.random_bool(0.9);
                    match change(&call("take", amount), if keep { "COMMIT" } else { "ROLLBACK" }) {
                        0 if keep => _ = sold.fetch_add(amount, SeqCst),
                        NOT_ENOUGH if amount == 1 => break,
                        _ => continue,
                    }
                    if sale == Sale::Returns
                        && random.random_bool(0.1)
                        && change(&call("add", amount), "COMMIT") == 0
                    {
                        sold.fetch_sub(amount, SeqCst);
                    }
                }
            });
        }
    });
    let errors = errors.lock().expect("errors");
    eprintln!("{}, {sale:?}, {level}: errors {errors:?}", server.version);
    assert_eq!(
        (sold.load(SeqCst), total(schema)),
        (PIECES, 0),
        "{sale:?}, {level}: {errors:?}"
    );
    // A transaction of one call can be the victim of two others that collect slots.
    let most = if sale == Sale::Autocommit { 0 } else { 5 };
    let deadlocks = errors.get(&1213).copied().unwrap_or(0);
    assert!(
        deadlocks <= most && errors.keys().all(|error| *error == 1213),
        "{sale:?}, {level}: {errors:?}"
    );
}

/// Whatever the session has read before, and whichever level of isolation it has, also for one transaction alone.
fn a_take_decides_by_what_is_committed(server: &Server) {
    let schema = installed(server);
    for (level, next) in [
        ("REPEATABLE READ", ""),
        ("READ COMMITTED", ""),
        ("READ UNCOMMITTED", ""),
        ("SERIALIZABLE", "READ COMMITTED"),
        ("READ COMMITTED", "REPEATABLE READ"),
        ("READ UNCOMMITTED", "REPEATABLE READ"),
        ("REPEATABLE READ", "READ UNCOMMITTED"),
    ] {
        let mut connection = schema.connect_with_id(3, SLOTS);
        isolate(&mut connection, level);
        run(&mut connection, "SET SESSION innodb_lock_wait_timeout = 5");
        // A transaction that has read the counter before the statement of another session.
        let mut after = |counts: [i64; SLOTS as usize], meanwhile: &str, calls: &[&str]| {
            fill(&schema, counts);
            if !next.is_empty() {
                run(
                    &mut connection,
                    &format!("SET TRANSACTION ISOLATION LEVEL {next}"),
                );
            }
            run(&mut connection, "START TRANSACTION");
            run(&mut connection, "SELECT bounded_counter_get('seats')");
            schema.run(meanwhile);
            let results: Vec<_> = calls
                .iter()
                .map(|call| error(&mut connection, &format!("CALL bounded_counter_{call}")))
                .collect();
            run(&mut connection, "COMMIT");
            (results, total(&schema))
        };
        let what = format!("{level} {next}");
        let (nothing, own) = ([0; SLOTS as usize], [0, 0, 0, 10, 0, 0, 0, 0, 0, 0]);
        let elsewhere = [0, 0, 0, 0, 0, 0, 10, 0, 0, 0];
        let take = |amount| format!("take('seats', {amount})");
        // It was added since.
        for add in [
            "UPDATE bounded_counters SET counter = 10 WHERE counter_id = 4",
            &call("add", 10),
        ] {
            assert_eq!(
                after(nothing, add, &[&take(11), &take(10), &take(1)]),
                (vec![NOT_ENOUGH, 0, NOT_ENOUGH], 0),
                "{what}"
            );
        }
        for counts in [own, elsewhere] {
            // It was taken since, or the counter was deleted, or has another number of slots.
            assert_eq!(
                after(counts, &call("take", 8), &[&take(3), &take(2)]),
                (vec![NOT_ENOUGH, 0], 0),
                "{what}"
            );
            assert_eq!(
                after(counts, "CALL bounded_counter_delete('seats')", &[&take(3)]),
                (vec![30003], 0),
                "{what}"
            );
            for slots in [1, 3, 12] {
                let calls = [
                    "increment('seats')",
                    "add('seats', 4)",
                    &take(6),
                    &take(9),
                    &take(10),
                ];
                let expected = (vec![0, 0, 0, 0, NOT_ENOUGH], 0);
                assert_eq!(
                    after(counts, &call("resize", slots), &calls),
                    expected,
                    "{what}, {slots} slots"
                );
            }
        }
    }
}

/// An amount that a transaction has added is not there before its COMMIT, and what it has taken is there again after its ROLLBACK.
fn an_amount_that_is_rolled_back_is_not_sold(server: &Server) {
    let schema = installed(server);
    for (level, next) in [
        ("READ UNCOMMITTED", ""),
        ("READ COMMITTED", ""),
        ("REPEATABLE READ", ""),
        ("REPEATABLE READ", "READ UNCOMMITTED"),
    ] {
        let what = format!("{level} {next}");
        let (mut first, mut second) = (schema.connect_with_id(5, SLOTS), schema.connect_with_id(7, SLOTS));
        isolate(&mut second, level);
        run(&mut second, "SET SESSION innodb_lock_wait_timeout = 1");
        let mut take = |amount| {
            if !next.is_empty() {
                run(&mut second, &format!("SET TRANSACTION ISOLATION LEVEL {next}"));
            }
            error(&mut second, &call("take", amount))
        };
        fill(&schema, [5, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        run(&mut first, "START TRANSACTION");
        run(&mut first, &call("add", 5));
        let waited = take(10);
        assert!([1205, NOT_ENOUGH].contains(&waited), "{what}: {waited}");
        assert_eq!(take(5), 0, "{what}");
        run(&mut first, "ROLLBACK");
        assert_eq!(take(1), NOT_ENOUGH, "{what}");

        fill(&schema, [5, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        run(&mut first, "START TRANSACTION");
        run(&mut first, &call("take", 5));
        assert_eq!(take(5), 1205, "{what}: it waits for the slot");
        run(&mut first, "ROLLBACK");
        assert_eq!((take(5), total(&schema)), (0, 0), "{what}");
    }
}

/// The slots of the counter that other transactions hold.
fn held(schema: &Schema<'_>) -> Vec<u32> {
    let mut connection = schema.isolated("READ COMMITTED");
    let slot = "SELECT counter FROM bounded_counters WHERE counter_name = 'seats' AND counter_id =";
    // MySQL returns 3572, MariaDB 1205.
    let mut is_held =
        |number: &u32| error(&mut connection, &format!("{slot} {number} FOR UPDATE NOWAIT")) != 0;
    (1..=SLOTS).filter(|number| is_held(number)).collect()
}

fn a_transaction_holds_the_slots_that_the_manual_of_take_names(server: &Server) {
    let schema = installed(server);
    let all: Vec<_> = (1..=SLOTS).collect();
    for level in ["REPEATABLE READ", "READ COMMITTED"] {
        // Its slot is 4.
        let mut transaction = schema.connect_with_id(3, SLOTS);
        let mut other = schema.connect_with_id(7, SLOTS);
        isolate(&mut transaction, level);
        isolate(&mut other, level);
        run(&mut other, "SET SESSION innodb_lock_wait_timeout = 1");
        let mut take = |counts: [i64; SLOTS as usize], expected: u16| {
            run(&mut transaction, "ROLLBACK");
            fill(&schema, counts);
            run(&mut transaction, "START TRANSACTION");
            assert_eq!(error(&mut transaction, &call("take", 3)), expected, "{level}");
            held(&schema)
        };
        assert_eq!(
            take([100; 10], 0),
            [4],
            "{level}: the slot of the connection has enough"
        );
        assert_eq!(
            take([20, 2, 2, 2, 2, 2, 2, 2, 2, 2], 0),
            [1],
            "{level}: the last pieces are in slot 1"
        );
        assert_eq!(
            take([0, 0, 0, 0, 0, 0, 900, 0, 0, 0], 0),
            all,
            "{level}: all counts were collected"
        );
        assert_eq!(take([0; 10], NOT_ENOUGH), all, "{level}: a rejection");
        // Outside of a transaction, a rejection waits for none of these locks, and a change does.
        assert_eq!(error(&mut other, &call("take", 3)), NOT_ENOUGH, "{level}");
        assert_eq!(error(&mut other, &call("add", 3)), 1205, "{level}");
        run(&mut transaction, "ROLLBACK");
        // Counts are collected from the slots that no other transaction holds. Afterwards, nothing stays locked.
        fill(&schema, [0, 100, 100, 0, 100, 100, 100, 100, 100, 100]);
        let mut third = schema.connect_with_id(5, SLOTS);
        run(&mut third, "START TRANSACTION");
        run(&mut third, &call("add", 1));
        run(&mut transaction, "SET SESSION innodb_lock_wait_timeout = 1");
        run(&mut transaction, &call("take", 3));
        assert_eq!(held(&schema), [6], "{level}");
        run(&mut third, "COMMIT");
        assert_eq!(total(&schema), 798, "{level}");
    }
}

/// Calls that lock several slots queue at slot 1 and do not deadlock.
fn a_take_that_waits_for_slot_1_holds_no_other_slot(server: &Server) {
    let schema = installed(server);
    let mut holder = schema.connect_with_id(0, SLOTS);
    // The counts have to be collected; the last pieces are in slot 1; a rejection in a transaction.
    for (counts, amount, expected) in [
        ([0, 0, 0, 0, 0, 0, 900, 0, 0, 0], 3, 0),
        ([50, 0, 0, 0, 0, 0, 40, 0, 0, 0], 3, 0),
        ([50, 0, 0, 0, 0, 0, 40, 0, 0, 0], 99, NOT_ENOUGH),
    ] {
        fill(&schema, counts);
        let mut taker = schema.connect_with_id(3, SLOTS);
        run(&mut taker, "START TRANSACTION");
        run(&mut holder, "START TRANSACTION");
        run(&mut holder, "CALL bounded_counter_increment('seats')");
        thread::scope(|scope| {
            let take = scope.spawn(|| error(&mut taker, &call("take", amount)));
            thread::sleep(Duration::from_millis(200));
            assert_eq!(held(&schema), [1], "a take of {amount}");
            run(&mut holder, "COMMIT");
            assert_eq!(take.join().expect("a take"), expected, "a take of {amount}");
        });
    }
}

fn a_take_from_the_own_slot_locks_one_record_and_no_gap(server: &Server) {
    let schema = installed(server);
    fill(&schema, [30; SLOTS as usize]);
    for call in [call("take", 3), call("add", 3), call("add", -3)] {
        let mut connection = schema.isolated("REPEATABLE READ");
        run(&mut connection, "START TRANSACTION");
        run(&mut connection, &call);
        let locks = schema.data_locks();
        let locks: Vec<_> = locks
            .iter()
            .map(|(kind, mode)| (kind.as_str(), mode.as_str()))
            .collect();
        assert_eq!(locks, [("RECORD", "X,REC_NOT_GAP"), ("TABLE", "IX")], "{call}");
        run(&mut connection, "ROLLBACK");
    }
}

/// A counter that has lost slot 1, or whose negative slot has a count. Its slots have 6 each.
fn calls_of_a_damaged_counter_end_with_an_error(server: &Server) {
    let schema = installed(server);
    let mut connection = schema.connect_with_id(0, 5);
    let without = [
        "take('seats', 20)",
        "take('seats', 40)",
        "increment('seats')",
        "add('seats', 0)",
        "reset('seats', 3, FALSE)",
        "resize('seats', 2)",
        "resize('seats', 9)",
    ];
    for (damage, calls) in [
        ("DELETE FROM bounded_counters WHERE counter_id = 1", &without[..]),
        (
            "UPDATE bounded_counters SET counter_id = 0 WHERE counter_id = 1",
            &without,
        ),
        (
            "UPDATE bounded_counters SET counter_id = -3 WHERE counter_id = 1",
            &without,
        ),
        ("UPDATE bounded_counters SET counter_id = -counter_id", &without),
        (
            "INSERT INTO bounded_counters VALUES ('seats', -3, NULL, NOW(), 50)",
            &["take('seats', 60)", "take('seats', 99)", "resize('seats', 2)"],
        ),
    ] {
        fill(&schema, [6; 5]);
        schema.run(damage);
        let before = slots(&schema);
        for call in calls {
            let number = error(&mut connection, &format!("CALL bounded_counter_{call}"));
            assert!(
                [30003, NOT_ENOUGH, 30021, 1062].contains(&number),
                "{damage}, {call}: {number}"
            );
            assert!(slots(&schema) == before, "{damage}, {call} has changed a row");
        }
    }
    // The reset of the counter with a negative slot, and its resize to a number that it has not, leave a total that is right.
    run(&mut connection, &call("resize", 9));
    assert_eq!(total(&schema), 80);
    run(&mut connection, "CALL bounded_counter_reset('seats', 7, FALSE)");
    run(&mut connection, &call("resize", 2));
    assert_eq!((total(&schema), slots(&schema).len()), (7, 2));
}

fn a_killed_take_takes_its_amount_or_returns_an_error(server: &Server) {
    let schema = &installed(server);
    let mut takers = [0, 3, 6].map(|at| schema.connect_with_id(at, SLOTS));
    let ids = takers.each_ref().map(Conn::connection_id);
    let done = &AtomicBool::new(false);
    let mut met = BTreeMap::<(u16, bool), u32>::new();
    thread::scope(|scope| {
        let _done = SetOnDrop(done);
        scope.spawn(move || {
            let mut killer = schema.connect();
            let mut random = StdRng::seed_from_u64(7);
            while !done.load(SeqCst) {
                // A session without a statement goes on.
                let _ = killer.query_drop(format!("KILL QUERY {}", ids[random.random_range(0..3)]));
                thread::sleep(Duration::from_micros(random.random_range(0..1500)));
            }
        });
        for round in calls(900) {
            // The slot of the connection has enough, or slot 1 has the last pieces, or the counts have to be collected.
            let counts = [
                [100; 10],
                [20, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                [0, 90, 0, 90, 90, 0, 90, 0, 90, 0],
                [0; 10],
            ][round % 4];
            let before: i64 = counts.iter().sum();
            fill(schema, counts);
            let number = error(&mut takers[round / 4 % 3], &call("take", 4));
            let taken = before - total(schema);
            *met.entry((number, taken == 4)).or_default() += 1;
            assert!(
                taken == 4 || taken == 0 && number != 0,
                "round {round}: error {number}, {taken} taken"
            );
            // A KILL can also show as 1105, 1329, or as the error 1305 of the savepoint, whose handler it comes before.
            let expected = [
                if before < 4 { NOT_ENOUGH } else { 0 },
                30021,
                1317,
                1105,
                1329,
                1305,
            ];
            assert!(expected.contains(&number), "round {round}: {number}");
        }
    });
    eprintln!("{}: {met:?}", server.version);
    assert!(
        met.keys().any(|(number, _)| ![0, NOT_ENOUGH].contains(number)),
        "no call was killed: {met:?}"
    );
}

/// The server can join tables in another order than the statement has them.
fn takes_of_the_hypergraph_optimizer_take_their_amounts(server: &Server) {
    let schema = installed(server);
    fill(&schema, (0..SLOTS).map(|slot| 100 * i64::from(slot)));
    let mut connection = schema.connect_with_id(0, SLOTS);
    run(
        &mut connection,
        "SET SESSION optimizer_switch = 'hypergraph_optimizer=on'",
    );
    let mut left = total(&schema);
    for amount in [1, 150, 650, 100, 50, 5, 2000] {
        run(&mut connection, &call("take", amount));
        left -= amount;
        assert_eq!(total(&schema), left, "after a take of {amount}");
    }
    assert_eq!(error(&mut connection, &call("take", left + 1)), NOT_ENOUGH);
    run(&mut connection, &call("resize", 3));
    run(&mut connection, &call("resize", 12));
    assert_eq!(total(&schema), left);
}
