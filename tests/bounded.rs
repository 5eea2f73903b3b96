//! Bounded counters: no total falls below 0, and no slot.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use slotted::package::{Kind, Options, Package, Pick, Slots};

use crate::advise::{printed, slotted};
use crate::support::{Module, Schema, Server, bounded, bounded_keyed, cases as random_cases, error_of, file, repeatable, root};

pub fn promises(mut module: Module<'_>) {
    let mysql = |name: &str| name.starts_with("mysql");
    module
        .plain(options_that_do_not_fit_are_rejected)
        .on_servers(an_add_many_takes_nothing_and_a_take_sells_no_more_than_is_left)
        .on_servers(an_amount_taken_after_an_old_snapshot_is_not_sold_twice)
        .on_servers(an_amount_that_is_rolled_back_is_not_sold)
        .on_servers(a_plain_take_changes_at_most_one_row)
        .on_servers(plain_compactions_and_takes_agree)
        .on_servers(a_take_that_waits_finds_what_is_left)
        .on_servers(a_take_that_fails_in_an_old_snapshot_changes_nothing)
        .on_servers(random_calls_of_three_connections_agree_with_a_number)
        .on_servers(concurrent_calls_never_make_a_total_or_a_slot_negative)
        .on_servers(a_sale_of_a_named_counter_by_32_connections_ends_at_0)
        .on_servers(a_sale_of_a_record_by_32_connections_ends_at_0)
        .on_servers(a_sale_of_what_other_connections_have_left_ends_at_0)
        .on_servers(a_quota_is_set_once)
        .on_servers(invalid_arguments_are_rejected_and_change_nothing)
        .on_servers(no_statement_of_a_hand_makes_a_slot_negative)
        .on_servers(each_plain_statement_of_named_counters_works)
        .on_servers(packages_are_installed_by_their_names)
        .on(mysql, takes_of_the_hypergraph_optimizer_take_their_amounts)
        .on(mysql, a_take_from_the_own_slot_locks_one_record)
        .private()
        .on_servers(keys_of_all_types_are_counted)
        .on_servers(a_take_while_a_counter_of_nodes_grows_takes_its_amount);
}

const NOT_ENOUGH: u16 = 30016;
const SLOTS: u32 = 10;

/// Named counters and records, the latter with 10 slots.
struct Case {
    package: Package,
    table: &'static str,
    key: &'static str,
    condition: &'static str,
    slot: &'static str,
    count: &'static str,
    first: u32,
}

fn named() -> Case {
    Case {
        package: bounded(|_| {}),
        table: "bounded_counters",
        key: "'seats'",
        condition: "counter_name = 'seats'",
        slot: "counter_id",
        count: "counter",
        first: 1,
    }
}

fn records() -> Case {
    Case {
        package: bounded_keyed(|options| options.slots = Slots::Fixed(SLOTS)),
        table: "bounded_slotted_counters",
        key: "1, 7",
        condition: "record_type = 1 AND record_id = 7",
        slot: "slot",
        count: "`count`",
        first: 0,
    }
}

fn cases() -> [Case; 2] {
    [named(), records()]
}

impl Case {
    fn is_named(&self) -> bool {
        self.package.options.kind == Kind::Counters
    }

    fn install<'a>(&self, server: &'a Server) -> Schema<'a> {
        let schema = server.schema();
        schema.install(&self.package);
        schema
    }

    /// A call with further arguments.
    fn call(&self, routine: &str, arguments: &str) -> String {
        let comma = if arguments.is_empty() { "" } else { ", " };
        format!("CALL {}{routine}({}{comma}{arguments})", self.package.options.prefix.name(), self.key)
    }

    fn setup(&self, slots: u32, value: i64) -> String {
        if self.is_named() {
            self.call("setup", &format!("NULL, {slots}, {value}"))
        } else {
            self.call("setup", &value.to_string())
        }
    }

    fn reset(&self, value: i64) -> String {
        self.call("reset", &format!("{value}{}", if self.is_named() { ", FALSE" } else { "" }))
    }

    fn add_many(&self, amounts: &[i64]) -> String {
        let key = if self.is_named() { "\"seats\"" } else { self.key };
        let entries: Vec<_> = amounts.iter().map(|amount| format!("[{key}, {amount}]")).collect();
        format!("CALL {}add_many('[{}]')", self.package.options.prefix.name(), entries.join(", "))
    }

    fn get(&self) -> String {
        format!("SELECT {}get({})", self.package.options.prefix.name(), self.key)
    }

    fn total(&self, schema: &Schema<'_>) -> i64 {
        schema.first(&format!(
            "SELECT CAST(COALESCE(SUM({}), 0) AS SIGNED) FROM {} WHERE {}",
            self.count, self.table, self.condition
        ))
    }

    fn least(&self, schema: &Schema<'_>) -> i64 {
        schema.first(&format!("SELECT COALESCE(MIN({}), 0) FROM {}", self.count, self.table))
    }

    /// A connection whose ID is this number modulo the number of slots.
    fn connection(&self, schema: &Schema<'_>, number: u32) -> Conn {
        schema.connect_with_id(number % SLOTS, SLOTS)
    }

    /// Gives the slot of the connections of a number an amount.
    fn put(&self, schema: &Schema<'_>, number: u32, amount: i64) {
        let slot = number % SLOTS + 1;
        if self.is_named() {
            schema.run(&format!("UPDATE {} SET counter = {amount} WHERE counter_id = {slot}", self.table));
        } else {
            schema.run(&format!("REPLACE INTO {} VALUES (1, 7, {slot}, {amount})", self.table));
        }
    }

    /// A record that has only been added to has no slot 0.
    fn without_first(&self, schema: &Schema<'_>) {
        if !self.is_named() {
            schema.run(&format!("DELETE FROM {} WHERE slot = 0", self.table));
        }
    }
}

/// The number of the error of a statement, or 0.
fn error(connection: &mut Conn, statement: &str) -> u16 {
    match connection.query_drop(statement) {
        Ok(()) => 0,
        result => error_of(result).0,
    }
}

fn run(connection: &mut Conn, statement: &str) {
    connection.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
}

fn isolate(connection: &mut Conn, level: &str) {
    run(connection, &format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
}

fn options_that_do_not_fit_are_rejected() {
    type Change = fn(&mut Options);
    let cases: [(Kind, Change, &str); 4] = [
        (Kind::Counters, |options| options.pick = Pick::Random, "--pick random cannot be used with bounded counters"),
        (Kind::SlottedCounters, |options| options.pick = Pick::Random, "--pick random cannot be used with bounded counters"),
        (Kind::Counters, |options| options.slots = Slots::Fixed(20), "--slots 20 cannot be used with bounded_counters"),
        (
            Kind::SlottedCounters,
            |options| options.column = Some("pages.views".parse().expect("a column")),
            "--column cannot be used with bounded counters: the amount that can be taken is in the slots, not in a column",
        ),
    ];
    for (kind, change, message) in cases {
        let mut options = Options::bounded(kind);
        change(&mut options);
        let rejected = Package::new(options).expect_err(message).to_string();
        assert!(rejected.starts_with(message), "{rejected}");
    }
}

fn an_add_many_takes_nothing_and_a_take_sells_no_more_than_is_left(server: &Server) {
    for case in cases() {
        let schema = case.install(server);
        schema.run(&case.setup(2, 30));
        let (mut x, mut y) = (case.connection(&schema, 1), case.connection(&schema, 2));
        run(&mut x, &case.call("take", "1"));
        let many = y.query_drop(case.add_many(&[5, -20]));
        let prefix = case.package.options.prefix.name();
        assert_eq!(error_of(many), (30020, format!("{prefix}add_many: entry 2 must have an amount of at least 0")));
        assert_eq!(error(&mut y, &case.add_many(&[20, -20])), 30020);
        assert_eq!(case.total(&schema), 29);
        run(&mut y, &case.call("add", "-20"));
        assert_eq!(error(&mut x, &case.call("take", "14")), NOT_ENOUGH);
        assert_eq!(case.total(&schema), 9);
    }
}

fn an_amount_taken_after_an_old_snapshot_is_not_sold_twice(server: &Server) {
    for case in cases() {
        let schema = case.install(server);
        schema.run(&case.setup(2, 30));
        let (mut x, mut y) = (case.connection(&schema, 2), case.connection(&schema, 1));
        run(&mut y, "START TRANSACTION");
        run(&mut y, &case.get());
        run(&mut x, &case.call("take", "1"));
        run(&mut y, &case.call("add", "-20"));
        run(&mut y, "COMMIT");
        assert_eq!(error(&mut x, &case.call("take", "14")), NOT_ENOUGH);
        assert_eq!(case.total(&schema), 9);
    }
}

/// Runs a statement in another thread, `meanwhile` after it has begun to wait, and returns the number of its error.
fn beside<T>(connection: &mut Conn, statement: &str, meanwhile: impl FnOnce() -> T) -> (u16, T) {
    thread::scope(|scope| {
        let call = scope.spawn(|| error(connection, statement));
        thread::sleep(Duration::from_millis(250));
        let result = meanwhile();
        (call.join().expect("a call"), result)
    })
}

fn an_amount_that_is_rolled_back_is_not_sold(server: &Server) {
    for case in cases() {
        let schema = case.install(server);
        for level in ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ"] {
            schema.run(&format!("DELETE FROM {}", case.table));
            schema.run(&case.setup(SLOTS, 0));
            case.put(&schema, 5, 10);
            let mut connections = [5, 5, 7].map(|number| case.connection(&schema, number));
            connections.iter_mut().for_each(|connection| isolate(connection, level));
            let [mut a, mut b, mut c] = connections;
            run(&mut a, "START TRANSACTION");
            run(&mut a, &case.call("increment", ""));
            let (first, (second, ())) = beside(&mut b, &case.call("take", "10"), || {
                beside(&mut c, &case.call("add", "-8"), || run(&mut a, "ROLLBACK"))
            });
            let mut errors = [first, second];
            errors.sort_unstable();
            assert_eq!(errors, [0, NOT_ENOUGH], "{level}");
            assert_eq!(case.total(&schema), if first == 0 { 0 } else { 2 }, "{level}");
        }
    }
}

/// A statement of queries.sql.
fn query(case: &Case, name: &str) -> String {
    let queries = slotted::script::queries(&file(&case.package, "queries.sql"));
    queries.into_iter().find(|query| query.name == name).unwrap_or_else(|| panic!("{name}")).sql
}

/// Executes a statement of queries.sql and returns the number of rows that it changed. The same value is passed for each
/// parameter of the same name.
fn execute(connection: &mut Conn, case: &Case, name: &str, values: &[(&str, i64)]) -> mysql::Result<u64> {
    let queries = slotted::script::queries(&file(&case.package, "queries.sql"));
    let query = queries.into_iter().find(|query| query.name == name).unwrap_or_else(|| panic!("{name}"));
    let value = |parameter: &String| match parameter.as_str() {
        "counter_name" => mysql::Value::from("seats"),
        "record_type" => 1.into(),
        "record_id" => 7.into(),
        "description" => mysql::Value::NULL,
        other => values.iter().find(|(name, _)| *name == other).unwrap_or_else(|| panic!("{name}: {other}")).1.into(),
    };
    let values: Vec<_> = query.parameters.iter().map(value).collect();
    Ok(connection.exec_iter(&query.sql, values)?.affected_rows())
}

fn a_plain_take_changes_at_most_one_row(server: &Server) {
    for case in cases() {
        let schema = case.install(server);
        schema.run(&case.setup(SLOTS, 0));
        (0..SLOTS).for_each(|number| case.put(&schema, number, 30));
        let mut taken = 0;
        for number in 0..SLOTS {
            let mut connection = case.connection(&schema, number);
            for name in ["take", "take_on_nodes"] {
                for _ in 0..6 {
                    let values = [("amount", 3), ("slots", SLOTS.into())];
                    let changed = execute(&mut connection, &case, name, &values).expect(name);
                    assert!(changed <= 1, "{name}: {changed}");
                    taken += 3 * changed as i64;
                }
            }
        }
        assert_eq!((taken, case.total(&schema)), (300, 0));
        assert_eq!(query(&case, "take").matches("CONNECTION_ID()").count(), 1);
    }
}

fn plain_compactions_and_takes_agree(server: &Server) {
    let case = records();
    let schema = case.install(server);
    case.put(&schema, 4, 10);
    let mut connection = schema.connect();
    let mut plain = |name: &str, values: &[(&str, i64)]| execute(&mut connection, &case, name, values).expect(name);
    plain("first_slot", &[]);
    assert_eq!(plain("take_from_slot", &[("amount", 6), ("slot", 5)]), 1);
    plain("compact", &[]);
    plain("compact_rest", &[]);
    assert_eq!(plain("take_from_slot", &[("amount", 8), ("slot", 0)]), 0);
    assert_eq!(schema.first::<(i64, i64)>("SELECT slot, `count` FROM bounded_slotted_counters"), (0, 4));
    plain("reset", &[("value", 9)]);
    plain("increment", &[]);
    plain("add_on_nodes", &[("amount", 2)]);
    assert_eq!(case.total(&schema), 12);
    assert_eq!(plain("take", &[("amount", 2)]), 1);
    let rejected = execute(&mut schema.connect(), &case, "add", &[("amount", -5)]);
    assert!([3819, 4025].contains(&error_of(rejected).0));
    assert_eq!(case.total(&schema), 10);
    execute(&mut schema.connect(), &case, "delete", &[]).expect("delete");
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM bounded_slotted_counters"), 0);
    execute(&mut schema.connect(), &case, "setup", &[("value", 3)]).expect("setup");
    assert_eq!(error_of(execute(&mut schema.connect(), &case, "setup", &[("value", 3)])).0, 1062);
}

fn each_plain_statement_of_named_counters_works(server: &Server) {
    let case = named();
    let schema = case.install(server);
    let mut connection = schema.connect();
    let mut plain = |name: &str, values: &[(&str, i64)]| execute(&mut connection, &case, name, values).expect(name);
    assert_eq!(plain("setup", &[("value", 20), ("slots", 4)]), 4);
    for name in ["increment", "increment_on_nodes"] {
        assert_eq!(plain(name, &[("slots", 4)]), 1);
    }
    for name in ["add", "add_on_nodes"] {
        assert_eq!(plain(name, &[("slots", 4), ("amount", 4)]), 1);
    }
    assert_eq!(case.total(&schema), 30);
    plain("grow", &[("slots", 9)]);
    assert_eq!(schema.first::<(i64, i64)>("SELECT slots, total FROM bounded_counter_totals"), (9, 30));
    for slot in (3..=9).rev() {
        plain("remove_slot", &[("slot", slot)]);
        assert_eq!(case.total(&schema), 30);
    }
    assert_eq!(plain("delete_retired", &[("retired", 7)]), 7);
    let row: (i64, i64, bool) = schema.first("SELECT slots, total, resize_incomplete FROM bounded_counter_totals");
    assert_eq!(row, (2, 30, false));
    plain("reset", &[("value", 12), ("restart", 1)]);
    assert_eq!(case.total(&schema), 12);
    assert_eq!(plain("delete", &[]), 2);
}

fn a_take_that_waits_finds_what_is_left(server: &Server) {
    for case in cases() {
        let schema = case.install(server);
        schema.run(&case.setup(SLOTS, 0));
        case.put(&schema, 5, 1000);
        case.without_first(&schema);
        let [mut x, mut y, mut t] = [7, 7, 9].map(|number| case.connection(&schema, number));
        for connection in [&mut x, &mut y, &mut t] {
            run(connection, "START TRANSACTION");
        }
        run(&mut x, &case.call("take", "1"));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let incremented = scope.spawn(|| {
                run(&mut y, &case.call("increment", ""));
                // The take can wait for this transaction.
                while !done.load(SeqCst) {
                    thread::sleep(Duration::from_millis(50));
                    run(&mut y, "COMMIT");
                }
                run(&mut y, "COMMIT");
            });
            let (taken, ()) = beside(&mut t, &case.call("take", "600"), || run(&mut x, "COMMIT"));
            // The increment can wait for the take.
            run(&mut t, "COMMIT");
            done.store(true, SeqCst);
            incremented.join().expect("an increment");
            assert_eq!(taken, 0);
        });
        assert_eq!(case.total(&schema), 400);
    }
}

fn a_take_that_fails_in_an_old_snapshot_changes_nothing(server: &Server) {
    for case in cases() {
        let schema = case.install(server);
        // The amount was in another slot, or in that of the connection.
        for number in [5, 3] {
            schema.run(&case.setup(SLOTS, 0));
            case.put(&schema, number, 5);
            case.without_first(&schema);
            let mut connection = case.connection(&schema, 3);
            run(&mut connection, "START TRANSACTION");
            run(&mut connection, &format!("SELECT * FROM {}", case.table));
            schema.run(&case.call("delete", ""));
            assert!([NOT_ENOUGH, 30003].contains(&error(&mut connection, &case.call("take", "1"))));
            run(&mut connection, "COMMIT");
            assert!(schema.rows(&case.package.options.table).is_empty());
        }
    }
}

/// A connection of the random calls.
struct Caller {
    connection: Conn,
    level: &'static str,
    open: bool,
    /// Whether the transaction has changed the counter.
    changed: bool,
}

/// One sequence of 30 calls. While a transaction has changed the counter, the other connections only read.
fn sequence(case: &Case, schema: &Schema<'_>, callers: &mut [Caller], seed: u64) {
    const LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
    let mut random = StdRng::seed_from_u64(seed);
    schema.run(&format!("DELETE FROM {}", case.table));
    let mut number = [0, 3, 40, 400, 5000][random.random_range(0..5)];
    if !case.is_named() && random.random_bool(0.5) {
        schema.run(&case.call("add", &number.to_string()));
    } else {
        schema.run(&case.setup(random.random_range(1..7), number));
    }
    for caller in callers.iter_mut() {
        caller.level = LEVELS[random.random_range(0..4)];
        isolate(&mut caller.connection, caller.level);
    }
    // The number in the transaction that has changed the counter.
    let mut inner = number;
    let mut done: Vec<String> = Vec::new();
    for _ in 0..30 {
        let changing = callers.iter().position(|caller| caller.changed);
        let at = changing.filter(|_| random.random_bool(0.85)).unwrap_or_else(|| random.random_range(0..3));
        let caller = &mut callers[at];
        let log = |what: &str| format!("{at}: {what}");
        if !caller.open && random.random_bool(0.3) {
            run(&mut caller.connection, "START TRANSACTION");
            caller.open = true;
            done.push(log(&format!("START TRANSACTION, {}", caller.level)));
            // At SERIALIZABLE, a read in a transaction locks.
            if caller.level != "SERIALIZABLE" && random.random_bool(0.6) {
                run(&mut caller.connection, &case.get());
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
                0..14 => (case.call("increment", ""), now + 1),
                14..34 => (case.call("add", &amount.to_string()), now + amount),
                34..54 => (case.call("add", &(-amount).to_string()), now - amount),
                54..82 => (case.call("take", &amount.to_string()), now - amount),
                82..88 => (case.add_many(&[amount, 2]), now + amount + 2),
                88..92 => (case.reset(amount - 1), amount - 1),
                _ if case.is_named() => (case.call("resize", &random.random_range(1..9).to_string()), now),
                _ => (case.call("compact", ""), now),
            };
            done.push(log(&call));
            let before = (next < 0 && !caller.open).then(|| schema.rows(&case.package.options.table));
            let result = caller.connection.query_drop(&call);
            if next < 0 {
                let (error, message) = error_of(result);
                assert_eq!(error, NOT_ENOUGH, "{message} after {done:?}");
                assert!(message.contains(&format!("not enough: {now} left")), "{message}, {now}: {done:?}");
                if let Some(before) = before {
                    assert!(schema.rows(&case.package.options.table) == before, "a row has changed: {done:?}");
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
        assert_eq!(case.total(schema), number, "sequence {seed}: {done:?}");
        assert!(case.least(schema) >= 0, "sequence {seed}: {done:?}");
    }
    for caller in callers {
        run(&mut caller.connection, "COMMIT");
        if caller.changed {
            number = inner;
        }
        (caller.open, caller.changed) = (false, false);
    }
    assert_eq!(case.total(schema), number, "sequence {seed}: {done:?}");
}

fn random_calls_of_three_connections_agree_with_a_number(server: &Server) {
    for case in cases() {
        let schema = case.install(server);
        let sequences = random_cases(75);
        let caller = |at: u32| Caller { connection: case.connection(&schema, 3 * at), level: "", open: false, changed: false };
        let mut callers = [0, 1, 2].map(caller);
        (0..sequences).for_each(|seed| sequence(&case, &schema, &mut callers, seed.into()));
        eprintln!("{}: {sequences} sequences of 30", server.version);
    }
}

fn concurrent_calls_never_make_a_total_or_a_slot_negative(server: &Server) {
    const CONNECTIONS: u64 = 16;
    for case in cases() {
        let schema = case.install(server);
        schema.run(&case.setup(SLOTS, 300));
        let end = Instant::now() + Duration::from_millis(2500);
        let (moved, done, below) = (AtomicI64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for seed in 0..CONNECTIONS {
                let (case, schema, moved, done) = (&case, &schema, &moved, &done);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed);
                    let mut connection = schema.connect();
                    isolate(&mut connection, ["REPEATABLE READ", "READ COMMITTED", "READ UNCOMMITTED"][seed as usize % 3]);
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
                                        let slots = [1, 3, 10, 30][random.random_range(0..4)];
                                        let resize = case.call("resize", &slots.to_string());
                                        (if case.is_named() { resize } else { case.call("compact", "") }, 0)
                                    }
                                    0..50 => (case.call("take", &amount.to_string()), -amount),
                                    50..75 => (case.call("add", &amount.to_string()), amount),
                                    75..85 => (case.call("increment", ""), 1),
                                    85..92 => (case.call("add", &(-amount).to_string()), -amount),
                                    _ => (case.add_many(&[amount]), amount),
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
                                let end = if random.random_bool(0.3) { "ROLLBACK" } else { "COMMIT" };
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
            scope.spawn(|| {
                while Instant::now() < end {
                    let total = case.total(&schema);
                    if case.least(&schema) < 0 || total < 0 {
                        below.fetch_add(1, SeqCst);
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            });
        });
        eprintln!("{}: {done:?} calls", server.version);
        assert!(done.load(SeqCst) > 20, "{done:?}");
        assert_eq!(below.load(SeqCst), 0);
        assert_eq!(case.total(&schema), 300 + moved.load(SeqCst));
    }
}

/// The slot that a take finds in one statement can be another one for the number of slots that it has read before.
fn a_take_while_a_counter_of_nodes_grows_takes_its_amount(server: &Server) {
    let server = server.another(&["--auto-increment-increment=3"]);
    let schema = server.schema();
    schema.install(&bounded(|_| {}));
    let (mut taker, mut table) = (schema.connect(), schema.connect());
    let mut random = rand::rng();
    let (end, mut calls) = (Instant::now() + Duration::from_secs(3), 0);
    // The slots of the connection: the node has one of the first three.
    run(&mut table, "CALL bounded_counter_setup('s', NULL, 4, 0)");
    run(&mut taker, "CALL bounded_counter_increment('s')");
    let own: u32 = schema.first("SELECT counter_id FROM bounded_counters WHERE counter > 0");
    while Instant::now() < end {
        calls += 1;
        run(&mut table, "CALL bounded_counter_delete('s')");
        run(&mut table, "CALL bounded_counter_setup('s', NULL, 4, 0)");
        run(&mut table, &format!("UPDATE bounded_counters SET counter = IF(counter_id = {own}, 5, IF(counter_id = 1 + MOD({own}, 3), 1000, 0))"));
        thread::scope(|scope| {
            let take = scope.spawn(|| run(&mut taker, "CALL bounded_counter_take('s', 8)"));
            thread::sleep(Duration::from_micros(random.random_range(0..800)));
            // The statement of an insertion of slots, which comes between two statements of the take.
            run(&mut table, "LOCK TABLES bounded_counters WRITE");
            let slots: Vec<_> = (5..=8).map(|slot| format!("('s', {slot}, NOW(), {})", if slot == own + 4 { 900 } else { 0 })).collect();
            run(&mut table, &format!("INSERT INTO bounded_counters (counter_name, counter_id, start_date, counter) VALUES {}", slots.join(", ")));
            run(&mut table, "UNLOCK TABLES");
            take.join().expect("a take");
        });
        let total: i64 = schema.first("SELECT CAST(SUM(counter) AS SIGNED) FROM bounded_counters");
        assert_eq!(total, 1905 - 8, "call {calls}");
    }
    eprintln!("{}: {calls} takes", server.version);
}

/// The server can join tables in another order than the statement has them.
fn takes_of_the_hypergraph_optimizer_take_their_amounts(server: &Server) {
    for case in cases() {
        let schema = case.install(server);
        schema.run(&case.setup(SLOTS, 0));
        for slot in 1..SLOTS {
            case.put(&schema, slot, 100 * i64::from(slot));
        }
        let mut connection = case.connection(&schema, 0);
        run(&mut connection, "SET SESSION optimizer_switch = 'hypergraph_optimizer=on'");
        let mut left = case.total(&schema);
        for amount in [1, 150, 650, 100, 50, 5, 2000] {
            run(&mut connection, &case.call("take", &amount.to_string()));
            left -= amount;
            assert_eq!(case.total(&schema), left, "{} after a take of {amount}", case.table);
        }
        assert_eq!(error(&mut connection, &case.call("take", &(left + 1).to_string())), NOT_ENOUGH);
    }
}

fn a_sale_of_a_named_counter_by_32_connections_ends_at_0(server: &Server) {
    for (level, transactions) in [("REPEATABLE READ", false), ("REPEATABLE READ", true), ("READ COMMITTED", true)] {
        sell_out(server, &named(), level, transactions);
    }
}

fn a_sale_of_a_record_by_32_connections_ends_at_0(server: &Server) {
    let records = Case { package: bounded_keyed(|_| {}), ..records() };
    for (level, transactions) in [("REPEATABLE READ", false), ("REPEATABLE READ", true), ("READ COMMITTED", true)] {
        sell_out(server, &records, level, transactions);
    }
}

/// As after a restart of the application: none of the new connections has a slot of its own.
fn a_sale_of_what_other_connections_have_left_ends_at_0(server: &Server) {
    let case = Case { package: bounded_keyed(|_| {}), ..records() };
    for level in ["REPEATABLE READ", "READ COMMITTED"] {
        let schema = case.install(server);
        schema.run(
            "INSERT INTO bounded_slotted_counters WITH RECURSIVE others(n) AS (SELECT 60 UNION ALL SELECT n + 1 FROM others WHERE n < 95)
             SELECT 1, 7, 1 + MOD(CONNECTION_ID() + n, 521), 139 FROM others;
             INSERT INTO bounded_slotted_counters VALUES (1, 7, 0, 139)",
        );
        sell_all(server, &case, &schema, level, true, 37 * 139);
    }
}

fn sell_out(server: &Server, case: &Case, level: &str, transactions: bool) {
    const PIECES: i64 = 10_000;
    let schema = case.install(server);
    schema.run(&case.setup(40, PIECES));
    sell_all(server, case, &schema, level, transactions, PIECES);
}

fn sell_all(server: &Server, case: &Case, schema: &Schema<'_>, level: &str, transactions: bool, pieces: i64) {
    let end = Instant::now() + Duration::from_secs(60);
    let (sold, errors) = (AtomicI64::new(0), Mutex::new(BTreeMap::<u16, u64>::new()));
    thread::scope(|scope| {
        for seed in 0..32 {
            let (sold, errors) = (&sold, &errors);
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed);
                let mut connection = schema.connect();
                isolate(&mut connection, level);
                while Instant::now() < end {
                    let amount = random.random_range(1..=9);
                    if transactions {
                        run(&mut connection, "START TRANSACTION");
                    }
                    let error = error(&mut connection, &case.call("take", &amount.to_string()));
                    let keep = error == 0 && !(transactions && random.random_bool(0.1));
                    if transactions {
                        run(&mut connection, if keep { "COMMIT" } else { "ROLLBACK" });
                    }
                    match error {
                        0 if keep => _ = sold.fetch_add(amount, SeqCst),
                        0 => {}
                        NOT_ENOUGH if amount == 1 => break,
                        NOT_ENOUGH => {}
                        _ => *errors.lock().expect("errors").entry(error).or_default() += 1,
                    }
                }
            });
        }
    });
    let errors = errors.into_inner().expect("errors");
    eprintln!("{}, {}, {level}, transactions {transactions}: errors {errors:?}", server.version, case.table);
    assert_eq!(sold.load(SeqCst), pieces, "{level}: {errors:?}");
    assert_eq!(case.total(schema), 0, "{level}");
    assert!(errors.keys().all(|error| transactions && *error == 1213), "{level}: {errors:?}");
    assert!(errors.get(&1213).is_none_or(|deadlocks| *deadlocks <= 40), "{level}: {errors:?}");
}

fn a_quota_is_set_once(server: &Server) {
    const CONNECTIONS: usize = 16;
    for case in cases() {
        let schema = case.install(server);
        let connections: Vec<_> = (0..CONNECTIONS).map(|_| Mutex::new(schema.connect())).collect();
        for _ in 0..10 {
            let (barrier, taken) = (Barrier::new(CONNECTIONS), AtomicU64::new(0));
            let request = |connection: &Mutex<Conn>| {
                let connection = &mut *connection.lock().expect("a connection");
                barrier.wait();
                let result = error(connection, &case.setup(5, 40));
                for _ in 0..4 {
                    if error(connection, &case.call("take", "1")) == 0 {
                        taken.fetch_add(1, SeqCst);
                    }
                }
                result
            };
            let mut results: Vec<u16> = thread::scope(|scope| {
                let request = &request;
                let requests: Vec<_> = connections.iter().map(|one| scope.spawn(move || request(one))).collect();
                requests.into_iter().map(|request| request.join().expect("a request")).collect()
            });
            results.sort_unstable();
            assert_eq!(results[0], 0);
            assert!(results[1..].iter().all(|result| *result == 30004), "{results:?}");
            assert_eq!((taken.load(SeqCst), case.total(&schema)), (40, 0));
            schema.run(&case.call("delete", ""));
        }
    }
}

fn invalid_arguments_are_rejected_and_change_nothing(server: &Server) {
    let named = "bounded_counter_";
    let keyed = "bounded_slotted_counter_";
    let rejected: &[(&str, &str, &str, u16, &str)] = &[
        (named, "setup", "'other', NULL, 3, -1", 30019, "p_value must be at least 0"),
        (named, "setup", "'seats', NULL, 3, 1", 30004, "counter 'seats' already exists"),
        (named, "setup", "'other', NULL, 0, 1", 30005, "p_slots must be between 1 and 10000, not 0"),
        (named, "setup", "'', NULL, 3, 1", 30001, "p_counter_name is NULL or empty"),
        (named, "increment", "'other'", 30003, "unknown counter 'other'"),
        (named, "increment", "CONCAT('seats', REPEAT(' ', 254), 'y')", 30002, "p_counter_name is longer than 100 characters"),
        (named, "add", "'seats', NULL", 30007, "p_amount is NULL"),
        (named, "add", "'other', 0", 30003, "unknown counter 'other'"),
        (named, "take", "'seats', 0", 30017, "p_amount must be at least 1"),
        (named, "take", "'seats', NULL", 30017, "p_amount must be at least 1"),
        (named, "take", "NULL, 1", 30001, "p_counter_name is NULL or empty"),
        (named, "take", "'other', 1", 30003, "unknown counter 'other'"),
        (named, "take", "CONCAT('seats', REPEAT(' ', 254), 'y'), 1", 30002, "p_counter_name is longer than 100 characters"),
        (named, "take", "'seats', 9223372036854775807", 30016, "not enough: 10 left of 'seats'"),
        (named, "add_many", "NULL", 30014, "p_amounts must be a JSON array of at most 10000 entries"),
        (named, "add_many", "'[[\"seats\", 1], [\"other\", 1]]'", 30003, "unknown counter 'other'"),
        (named, "add_many", "'[[\"seats\", 1], [\"seats\", 15e-1]]'", 30015, "entry 2 must be an array of a name and an integer"),
        (named, "add_many", "'[[\"seats\", -1]]'", 30020, "entry 1 must have an amount of at least 0"),
        (named, "reset", "'seats', -1, TRUE", 30019, "p_value must be at least 0"),
        (named, "reset", "'other', 1, TRUE", 30003, "unknown counter 'other'"),
        (named, "resize", "'seats', NULL", 30005, "p_slots must be between 1 and 10000, not NULL"),
        (named, "resize", "'other', 3", 30003, "unknown counter 'other'"),
        (named, "delete", "'other'", 30003, "unknown counter 'other'"),
        (keyed, "setup", "1, 7, 5", 30004, "the record already has a counter"),
        (keyed, "setup", "1, 8, -1", 30019, "p_value must be at least 0"),
        (keyed, "increment", "NULL, 7", 30009, "column 'record_type' cannot be NULL"),
        (keyed, "increment", "2147483648, 7", 30010, "value out of range or of wrong length for column 'record_type'"),
        (keyed, "add", "1, 7, NULL", 30007, "p_amount is NULL"),
        (keyed, "add", "1, NULL, 3", 30009, "column 'record_id' cannot be NULL"),
        (keyed, "take", "1, 7, 0", 30017, "p_amount must be at least 1"),
        (keyed, "take", "1, NULL, 1", 30009, "column 'record_id' cannot be NULL"),
        (keyed, "take", "1, 8, 1", 30016, "not enough: 0 left"),
        (keyed, "add_many", "'[[1, 7, 15e-1]]'", 30015, "entry 1 must be an array of the key and an integer"),
        (keyed, "add_many", "'[[1, 7, 1], [1, 15e-1, 1]]'", 30015, "entry 2 must be an array of the key and an integer"),
        (keyed, "add_many", "'[[1, 7, 1], [1, 7, -1]]'", 30020, "entry 2 must have an amount of at least 0"),
        (keyed, "reset", "1, 7, -1", 30019, "p_value must be at least 0"),
        (keyed, "delete", "1, NULL", 30009, "column 'record_id' cannot be NULL"),
    ];
    for case in cases() {
        let schema = case.install(server);
        schema.run(&case.setup(4, 10));
        let mut connection = schema.connect();
        let before = schema.rows(&case.package.options.table);
        // A server without strict mode cuts a name that is too long.
        run(&mut connection, "SET sql_mode = ''");
        for (_, routine, arguments, number, text) in
            rejected.iter().filter(|one| one.0 == case.package.options.prefix.name())
        {
            let name = format!("{}{routine}", case.package.options.prefix.name());
            let call = format!("CALL {name}({arguments})");
            let got = error_of(connection.query_drop(&call));
            assert_eq!(got, (*number, format!("{name}: {text}")), "{call}");
            assert!(schema.rows(&case.package.options.table) == before, "{call} has changed a row");
        }
        // A call that succeeds with the values at the limits.
        run(&mut connection, &case.reset(i64::MAX));
        assert_eq!(case.total(&schema), i64::MAX);
        run(&mut connection, &case.call("take", &i64::MAX.to_string()));
        run(&mut connection, &case.call("add", "0"));
        assert_eq!(case.total(&schema), 0);
    }
    let schema = cases()[0].install(server);
    let mut connection = schema.connect();
    run(&mut connection, "SET sql_mode = ''");
    let long = error(&mut connection, "CALL bounded_counter_setup('seats', REPEAT('x', 300), 3, 0)");
    assert!([1265, 1406].contains(&long), "{long}");
}

fn no_statement_of_a_hand_makes_a_slot_negative(server: &Server) {
    for case in cases() {
        let schema = case.install(server);
        schema.run(&case.setup(1, 5));
        let (table, count, slot, first) = (case.table, case.count, case.slot, case.first);
        let (columns, row) = if case.is_named() {
            ("counter_name, counter_id, start_date, counter", format!("'seats', {first}, NOW()"))
        } else {
            ("record_type, record_id, slot, `count`", format!("1, 7, {first}"))
        };
        let mut connection = schema.connect();
        for mode in ["''", "'STRICT_TRANS_TABLES'", "'NO_UNSIGNED_SUBTRACTION'"] {
            run(&mut connection, &format!("SET sql_mode = {mode}"));
            for statement in [
                format!("UPDATE {table} SET {count} = {count} - 9"),
                format!("UPDATE {table} SET {count} = -9"),
                format!("UPDATE {table} SET {count} = '-9' WHERE {slot} = {first}"),
                format!("INSERT INTO {table} ({columns}) VALUES ({row}, 1) ON DUPLICATE KEY UPDATE {count} = {count} - 9"),
                format!("INSERT INTO {table} ({columns}) VALUES ({row}, -9) ON DUPLICATE KEY UPDATE {count} = -9"),
                format!("REPLACE INTO {table} ({columns}) VALUES ({row}, -9)"),
            ] {
                let number = error(&mut connection, &statement);
                assert_eq!(number, if server.is_mysql() { 3819 } else { 4025 }, "{mode}: {statement}");
            }
            // IGNORE skips the row.
            run(&mut connection, &format!("UPDATE IGNORE {table} SET {count} = {count} - 9"));
            assert_eq!((case.total(&schema), case.least(&schema)), (5, 5), "{mode}");
        }
        // MariaDB can switch the check off. The routines do not rely on it.
        if !server.is_mysql() {
            run(&mut connection, "SET check_constraint_checks = OFF");
            assert_eq!(error(&mut connection, &case.call("take", "6")), NOT_ENOUGH);
            assert_eq!(error(&mut connection, &case.call("add", "-6")), NOT_ENOUGH);
            assert_eq!(case.total(&schema), 5);
        }
    }
}

/// The names are those of the folders in generated/.
fn packages_are_installed_by_their_names(server: &Server) {
    for (name, view, arguments) in [
        ("counters", "counter_package", "counters"),
        ("counters-fixed", "counter_package", "counters --slots 20"),
        ("slotted_counters", "slotted_counter_package", "slotted_counters"),
        ("bounded_counters", "bounded_counter_package", "counters --bounded"),
    ] {
        let schema = server.schema();
        let output = slotted(&["install", name, "--url", &server.url(), "--database", &schema.name]);
        assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
        assert_eq!(schema.first::<String>(&format!("SELECT arguments FROM {view}")), arguments);
        let rendered = slotted(&["generate", name, "--stdout"]).stdout;
        let committed = std::fs::read(root().join(format!("generated/{name}/setup.sql"))).expect("a committed file");
        assert!(rendered == committed, "{name}");
    }
}

fn keys_of_all_types_are_counted(server: &Server) {
    let nodes = &server.another(&["--auto-increment-increment=3"]);
    for key in ["url VARCHAR(200), day DATE", "site BINARY(2), kind CHAR(2), y SMALLINT", "id BIGINT UNSIGNED"] {
        for server in [server, nodes] {
            let package = bounded_keyed(|options| options.key = key.parse().expect("a key"));
            let schema = server.schema();
            schema.install(&package);
            let (values, json) = match package.options.key.0.len() {
                1 => ("18446744073709551615", "18446744073709551615"),
                2 => ("'/', '2026-12-31'", "\"/\", \"2026-12-31\""),
                _ => ("'xy', 'b', 2026", "\"7879\", \"b\", 2026"),
            };
            let mut connection = schema.connect();
            let call = |routine: &str, more: &str| format!("CALL bounded_slotted_counter_{routine}({values}{more})");
            run(&mut connection, &call("increment", ""));
            run(&mut connection, &call("add", ", 9"));
            run(&mut connection, &format!("CALL bounded_slotted_counter_add_many('[[{json}, 5]]')"));
            run(&mut connection, &call("take", ", 4"));
            run(&mut schema.connect(), &call("take", ", 10"));
            assert_eq!(error(&mut connection, &call("take", ", 2")), NOT_ENOUGH, "{key}");
            run(&mut connection, &call("compact", ""));
            assert_eq!(schema.first::<i64>(&format!("SELECT bounded_slotted_counter_get({values})")), 1, "{key}");
            run(&mut connection, "CALL bounded_slotted_counter_compact_idle(0, NULL)");
            run(&mut connection, &call("reset", ", 3"));
            run(&mut connection, &call("delete", ""));
            assert_eq!(schema.first::<i64>("SELECT COUNT(*) FROM bounded_slotted_counters"), 0, "{key}");
        }
    }
}

fn a_take_from_the_own_slot_locks_one_record(server: &Server) {
    for case in cases() {
        let schema = case.install(server);
        schema.run(&case.setup(SLOTS, 0));
        (0..SLOTS).for_each(|number| case.put(&schema, number, 30));
        for call in [case.call("take", "3"), case.call("increment", "")] {
            let mut connection = schema.isolated("REPEATABLE READ");
            run(&mut connection, "START TRANSACTION");
            run(&mut connection, &call);
            let locks = schema.data_locks();
            let locks: Vec<_> = locks.iter().map(|(kind, mode)| (kind.as_str(), mode.as_str())).collect();
            assert_eq!(locks, [("RECORD", "X,REC_NOT_GAP"), ("TABLE", "IX")], "{call}");
            run(&mut connection, "ROLLBACK");
        }
    }
}
