//! Random sequences of calls, compared with a model: a map of totals, and a copy of it for each savepoint.
//!
//! The sequences are the same in each run. SLOTTED_MODEL_CASES runs more of them, and SLOTTED_MODEL_SEED runs others.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::fmt::Debug;
use std::ops::Range;
use std::panic;
use std::thread;

use mysql::Conn;
use mysql::prelude::Queryable;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseResult, TestError, TestRng, TestRunner};
use slotted::package::{Package, Slots};

use crate::support::{Module, Schema, Server, bounded, bounded_keyed, cases, error_of, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(counters_equal_the_model)
        .on_servers(counters_with_fixed_slots_equal_the_model)
        .on_servers(slotted_counters_equal_the_model)
        .on_servers(interleaved_transactions_of_counters_equal_the_model)
        .on_servers(interleaved_transactions_of_slotted_counters_equal_the_model)
        .on_servers(bounded_counters_equal_the_model)
        .on_servers(bounded_records_equal_the_model)
        .on_servers(interleaved_transactions_of_bounded_counters_equal_the_model)
        .on_servers(interleaved_transactions_of_bounded_records_equal_the_model);
}

/// The sequences of a promise in a test run. They take a few seconds.
const CASES: u32 = 80;

/// The interleaved sequences of a promise. Each waits for some locks for a second.
const INTERLEAVED_CASES: u32 = 24;

/// The fixed number of slots in the model.
const FIXED: i64 = 4;

const ISOLATION_LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// The key columns as arguments of a call: a name, or the columns of a record. Some are not valid.
type Key = &'static str;

const NAMES: [Key; 3] = ["'a'", "'b'", "NULL"];
const RECORDS: [Key; 4] = ["1, 7", "1, 8", "NULL, 7", "3000000000, 7"];

#[derive(Clone, Debug)]
enum Call {
    Setup(Key, Option<i64>, Option<i64>),
    Increment(Key),
    Add(Key, Option<i64>),
    AddMany(Vec<(Key, i64)>),
    Take(Key, i64),
    Reset(Key, Option<i64>, bool),
    Resize(Key, i64),
    Compact(Key),
    CompactIdle,
    Delete(Key),
    Get(Key),
}

#[derive(Clone, Debug)]
enum Step {
    Call(Call),
    Begin,
    Commit,
    Rollback,
    Savepoint(&'static str),
    RollbackTo(&'static str),
    Release(&'static str),
}

/// A step and the number of the connection that runs it. A transaction stays on its connection.
type Steps = Vec<(usize, Step)>;

/// The value that a statement returns, or the number of its error.
type Outcome = Result<Option<i64>, u16>;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Counter {
    total: i64,
    /// The number of rows of a record, which is only known after a compaction.
    slots: Option<i64>,
}

type Counters = BTreeMap<String, Counter>;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    PerCounter,
    Fixed,
    Records,
    Bounded,
    BoundedRecords,
}

/// The error of a key that is not valid.
fn key_error(key: Key) -> Option<u16> {
    match key {
        "NULL" => Some(30001),
        "NULL, 7" => Some(30009),
        "3000000000, 7" => Some(30010),
        _ => None,
    }
}

impl Kind {
    fn package(self) -> Package {
        match self {
            Self::PerCounter => package(|_| {}),
            Self::Fixed => package(|options| options.slots = Slots::Fixed(FIXED as u32)),
            Self::Records => keyed(|options| options.slots = Slots::Fixed(FIXED as u32)),
            Self::Bounded => bounded(|_| {}),
            Self::BoundedRecords => bounded_keyed(|options| options.slots = Slots::Fixed(FIXED as u32)),
        }
    }

    fn records(self) -> bool {
        matches!(self, Self::Records | Self::BoundedRecords)
    }

    fn bounded(self) -> bool {
        matches!(self, Self::Bounded | Self::BoundedRecords)
    }

    /// The slots that a setup of named counters creates, if the number is an argument.
    fn slots_argument(self) -> Option<i64> {
        (self != Self::Fixed).then_some(4)
    }

    /// Takes an amount, if the total is enough.
    fn take(self, counters: &mut Counters, key: Key, amount: i64) -> Outcome {
        self.change(counters, key, |total| if total < amount { Err(30016) } else { Ok(total - amount) })
    }

    /// Changes a total. A record without rows has the total 0.
    fn change(self, counters: &mut Counters, key: Key, change: impl Fn(i64) -> Result<i64, u16>) -> Outcome {
        if self.records() {
            let before = counters.get(key).map_or(0, |counter| counter.total);
            let total = change(before)?;
            if total != before {
                counters.insert(key.to_owned(), Counter { total, slots: None });
            }
        } else {
            let counter = counters.get_mut(key).ok_or(30003u16)?;
            counter.total = change(counter.total)?;
        }
        Ok(None)
    }

    /// What a call does to the counters, and what it returns. After an error, the counters are as before.
    fn call(self, counters: &mut Counters, call: &Call) -> Outcome {
        let records = self.records();
        match call {
            Call::AddMany(entries) if entries.iter().any(|(key, _)| key_error(key).is_some()) => Err(30015),
            Call::AddMany(entries) if self.bounded() && entries.iter().any(|(_, amount)| *amount < 0) => Err(30020),
            Call::AddMany(entries) => {
                let mut sums: BTreeMap<Key, i64> = BTreeMap::new();
                entries.iter().for_each(|(key, amount)| *sums.entry(key).or_default() += amount);
                let mut after = counters.clone();
                for (key, amount) in sums {
                    self.change(&mut after, key, |total| Ok(total + amount))?;
                }
                *counters = after;
                Ok(None)
            }
            Call::CompactIdle => {
                counters.values_mut().for_each(|counter| counter.slots = Some(1));
                Ok(None)
            }
            Call::Setup(key, ..)
            | Call::Increment(key)
            | Call::Add(key, _)
            | Call::Take(key, _)
            | Call::Reset(key, ..)
            | Call::Resize(key, _)
            | Call::Compact(key)
            | Call::Delete(key)
            | Call::Get(key)
                if key_error(key).is_some() =>
            {
                Err(key_error(key).expect("an error"))
            }
            Call::Setup(_, _, Some(value)) | Call::Reset(_, Some(value), _) if self.bounded() && *value < 0 => Err(30019),
            Call::Setup(key, _, _) if records && counters.contains_key(*key) => Err(30004),
            Call::Setup(key, _, value) if records => {
                counters.insert(key.to_string(), Counter { total: value.unwrap_or(0), slots: None });
                Ok(None)
            }
            Call::Setup(key, slots, value) => {
                let slots = match self {
                    Self::Fixed if slots.is_some_and(|slots| slots != FIXED) => return Err(30006),
                    Self::Fixed => FIXED,
                    _ => slots.unwrap_or(5),
                };
                if slots < 1 {
                    return Err(30005);
                }
                if counters.contains_key(*key) {
                    return Err(30004);
                }
                let counter = Counter { total: value.unwrap_or(0), slots: Some(slots) };
                counters.insert(key.to_string(), counter);
                Ok(None)
            }
            Call::Increment(key) => self.change(counters, key, |total| Ok(total + 1)),
            Call::Add(_, None) => Err(30007),
            Call::Add(key, Some(amount)) if self.bounded() && *amount < 0 => self.take(counters, key, -amount),
            Call::Add(key, Some(amount)) => self.change(counters, key, |total| Ok(total + amount)),
            Call::Take(_, amount) if *amount < 1 => Err(30017),
            Call::Take(key, amount) => self.take(counters, key, *amount),
            Call::Reset(key, value, _) if records => {
                counters.insert(key.to_string(), Counter { total: value.unwrap_or(0), slots: None });
                Ok(None)
            }
            Call::Reset(key, value, _) => self.change(counters, key, |_| Ok(value.unwrap_or(0))),
            Call::Resize(_, slots) if *slots < 1 => Err(30005),
            Call::Resize(key, slots) => {
                counters.get_mut(*key).ok_or(30003u16)?.slots = Some(*slots);
                Ok(None)
            }
            Call::Compact(key) => {
                if let Some(counter) = counters.get_mut(*key) {
                    counter.slots = Some(1);
                }
                Ok(None)
            }
            Call::Delete(key) => match counters.remove(*key) {
                None if !records => Err(30003),
                _ => Ok(None),
            },
            Call::Get(key) => match counters.get(*key) {
                None if !records => Err(30003),
                counter => Ok(Some(counter.map_or(0, |counter| counter.total))),
            },
        }
    }

    fn statement(self, step: &Step) -> String {
        let prefix = match self {
            Self::PerCounter | Self::Fixed => "counter",
            Self::Records => "slotted_counter",
            Self::Bounded => "bounded_counter",
            Self::BoundedRecords => "bounded_slotted_counter",
        };
        let or_null = |number: &Option<i64>| number.map_or("NULL".to_owned(), |number| number.to_string());
        let call = match step {
            Step::Call(call) => call,
            Step::Begin => return "START TRANSACTION".to_owned(),
            Step::Commit => return "COMMIT".to_owned(),
            Step::Rollback => return "ROLLBACK".to_owned(),
            Step::Savepoint(name) => return format!("SAVEPOINT {name}"),
            Step::RollbackTo(name) => return format!("ROLLBACK TO SAVEPOINT {name}"),
            Step::Release(name) => return format!("RELEASE SAVEPOINT {name}"),
        };
        match call {
            Call::Setup(key, _, value) if self.records() => {
                format!("CALL {prefix}_setup({key}, {})", or_null(value))
            }
            Call::Setup(key, slots, value) => {
                format!("CALL {prefix}_setup({key}, NULL, {}, {})", or_null(slots), or_null(value))
            }
            Call::Increment(key) => format!("CALL {prefix}_increment({key})"),
            Call::Add(key, amount) => format!("CALL {prefix}_add({key}, {})", or_null(amount)),
            Call::AddMany(entries) => {
                let json = |key: Key| key.replace('\'', "\"").replace("NULL", "null");
                let entries: Vec<_> =
                    entries.iter().map(|(key, amount)| format!("[{}, {amount}]", json(key))).collect();
                format!("CALL {prefix}_add_many('[{}]')", entries.join(", "))
            }
            Call::Take(key, amount) => format!("CALL {prefix}_take({key}, {amount})"),
            Call::Reset(key, value, _) if self.records() => {
                format!("CALL {prefix}_reset({key}, {})", or_null(value))
            }
            Call::Reset(key, value, restart) => {
                format!("CALL {prefix}_reset({key}, {}, {restart})", or_null(value))
            }
            Call::Resize(key, slots) => format!("CALL {prefix}_resize({key}, {slots})"),
            Call::Compact(key) => format!("CALL {prefix}_compact({key})"),
            Call::CompactIdle => format!("CALL {prefix}_compact_idle(0, NULL)"),
            Call::Delete(key) => format!("CALL {prefix}_delete({key})"),
            Call::Get(key) => format!("SELECT {prefix}_get({key})"),
        }
    }

    /// The totals and the numbers of slots that a connection reads. A resize that is incomplete is a failure.
    fn read(self, connection: &mut Conn) -> Counters {
        let bounded = if self.bounded() { "bounded_" } else { "" };
        let query = if self.records() {
            format!("SELECT CONCAT(record_type, ', ', record_id), total, slots, 0 FROM {bounded}slotted_counter_totals")
        } else {
            format!("SELECT CONCAT('\\'', counter_name, '\\''), total, slots, resize_incomplete FROM {bounded}counter_totals")
        };
        let counter = |(key, total, slots, incomplete): (String, i64, i64, i64)| {
            let slots = if incomplete == 0 { slots } else { -1 };
            (key, Counter { total, slots: Some(slots) })
        };
        connection.query_map(&query, counter).expect(&query).into_iter().collect()
    }

    fn calls(self) -> BoxedStrategy<Call> {
        let key = move || match self {
            Self::Records | Self::BoundedRecords => prop_oneof![
                12 => Just(RECORDS[0]), 6 => Just(RECORDS[1]), 1 => Just(RECORDS[2]), 1 => Just(RECORDS[3])
            ]
            .boxed(),
            _ => prop_oneof![12 => Just(NAMES[0]), 6 => Just(NAMES[1]), 1 => Just(NAMES[2])].boxed(),
        };
        let value = || prop::option::weighted(0.9, -5i64..100);
        let changes = prop_oneof![
            4 => key().prop_map(Call::Increment),
            4 => (key(), prop::option::weighted(0.95, -20i64..60)).prop_map(|(key, amount)| Call::Add(key, amount)),
            3 => prop::collection::vec((key(), -5i64..20), 0..4).prop_map(Call::AddMany),
            2 => (key(), value(), any::<bool>())
                .prop_map(|(key, value, restart)| Call::Reset(key, value, restart)),
            1 => key().prop_map(Call::Delete),
            2 => key().prop_map(Call::Get),
        ];
        let setup = |slots: BoxedStrategy<Option<i64>>| {
            (key(), slots, value()).prop_map(|(key, slots, value)| Call::Setup(key, slots, value))
        };
        let take = || {
            (key(), prop_oneof![1 => -1i64..2, 6 => 1i64..40]).prop_map(|(key, amount)| Call::Take(key, amount))
        };
        let more = match self {
            Self::Bounded => prop_oneof![
                1 => setup(prop::option::of(0i64..8).boxed()),
                2 => (key(), 0i64..9).prop_map(|(key, slots)| Call::Resize(key, slots)),
                6 => take(),
            ]
            .boxed(),
            Self::BoundedRecords => prop_oneof![
                1 => setup(Just(None).boxed()),
                4 => key().prop_map(Call::Compact),
                1 => Just(Call::CompactIdle),
                10 => take(),
            ]
            .boxed(),
            Self::PerCounter => prop_oneof![
                1 => setup(prop::option::of(0i64..8).boxed()),
                2 => (key(), 0i64..9).prop_map(|(key, slots)| Call::Resize(key, slots)),
            ]
            .boxed(),
            Self::Fixed => setup(prop::option::of(FIXED - 1..=FIXED).boxed()).boxed(),
            Self::Records => prop_oneof![4 => key().prop_map(Call::Compact), 1 => Just(Call::CompactIdle)].boxed(),
        };
        prop_oneof![if self.bounded() { 2 } else { 5 } => changes, 1 => more].boxed()
    }

    /// Calls that only depend on the totals of existing counters. Those of bounded counters subtract only by a take.
    fn interleaved_calls(self) -> BoxedStrategy<Call> {
        let keys = if self.records() { [RECORDS[0], RECORDS[1]] } else { [NAMES[0], NAMES[1]] };
        let least: i64 = if self.bounded() { 0 } else { -30 };
        let key = move || prop_oneof![4 => Just(keys[0]), 1 => Just(keys[1])];
        let more = if self.records() {
            key().prop_map(Call::Compact).boxed()
        } else {
            (key(), 1i64..9).prop_map(|(key, slots)| Call::Resize(key, slots)).boxed()
        };
        let take = if self.bounded() {
            (key(), 1i64..40).prop_map(|(key, amount)| Call::Take(key, amount)).boxed()
        } else {
            (key(), -40i64..0).prop_map(|(key, amount)| Call::Add(key, Some(amount))).boxed()
        };
        prop_oneof![
            5 => key().prop_map(Call::Increment),
            3 => (key(), least..60).prop_map(|(key, amount)| Call::Add(key, Some(amount))),
            2 => prop::collection::vec((key(), least / 3..20), 1..3).prop_map(Call::AddMany),
            5 => take,
            1 => (key(), 0i64..100).prop_map(|(key, value)| Call::Reset(key, Some(value), false)),
            3 => key().prop_map(Call::Get),
            2 => more,
        ]
        .boxed()
    }

    fn interleaved_steps(self) -> impl Strategy<Value = Steps> {
        self.steps_of(self.interleaved_calls(), [10, 3, 4, 2], 4..25)
    }

    fn steps(self) -> impl Strategy<Value = Steps> {
        self.steps_of(self.calls(), [20, 3, 1, 1], 1..40)
    }

    /// Steps with the weights of calls, and of the begin, the commit and the rollback of a transaction.
    fn steps_of(self, calls: BoxedStrategy<Call>, weights: [u32; 4], length: Range<usize>) -> impl Strategy<Value = Steps> {
        let name = || prop::sample::select(vec!["s1", "s2"]);
        let step = prop_oneof![
            weights[0] => calls.prop_map(Step::Call),
            weights[1] => Just(Step::Begin),
            weights[2] => Just(Step::Commit),
            weights[3] => Just(Step::Rollback),
            2 => name().prop_map(Step::Savepoint),
            2 => name().prop_map(Step::RollbackTo),
            1 => name().prop_map(Step::Release),
        ];
        prop::collection::vec((0..CONNECTIONS, step), length)
    }
}

/// The connections of a sequence. Most of them select different slots, so that a counter has counts in several slots.
const CONNECTIONS: usize = 3;

/// A transaction: its state, and a copy of the state for each savepoint.
struct Transaction<T> {
    now: T,
    savepoints: Vec<(&'static str, T)>,
}

/// Controls the transaction of a connection. `begin` is the state of a new one. Returns the state that is committed.
fn control<T: Clone>(open: &mut Option<Transaction<T>>, step: &Step, begin: T) -> Result<Option<T>, u16> {
    let mut committed = None;
    match (step, &mut *open) {
        (Step::Begin, _) => {
            committed = open.take();
            *open = Some(Transaction { now: begin, savepoints: Vec::new() });
        }
        (Step::Commit, _) => committed = open.take(),
        (Step::Rollback, _) => *open = None,
        // Outside a transaction, the savepoint ends with its statement.
        (Step::Savepoint(_) | Step::Call(_), None) => {}
        (Step::Savepoint(name), Some(Transaction { now, savepoints })) => {
            savepoints.retain(|(other, _)| other != name);
            savepoints.push((name, now.clone()));
        }
        (Step::RollbackTo(_) | Step::Release(_), None) => return Err(1305),
        (Step::RollbackTo(name), Some(Transaction { now, savepoints })) => {
            let at = savepoints.iter().position(|(other, _)| other == name).ok_or(1305u16)?;
            savepoints.truncate(at + 1);
            *now = savepoints[at].1.clone();
        }
        (Step::Release(name), Some(Transaction { savepoints, .. })) => {
            let at = savepoints.iter().position(|(other, _)| other == name).ok_or(1305u16)?;
            savepoints.truncate(at);
        }
        (Step::Call(_), Some(_)) => {}
    }
    Ok(committed.map(|transaction| transaction.now))
}

/// The model of transactions that run one after the other.
struct Model {
    kind: Kind,
    committed: Counters,
    open: Option<Transaction<Counters>>,
    /// The connection of the open transaction.
    connection: usize,
}

impl Model {
    fn new(kind: Kind) -> Self {
        Self { kind, committed: Counters::new(), open: None, connection: 0 }
    }

    /// The counters that the connection of the next step reads.
    fn counters(&self) -> &Counters {
        self.open.as_ref().map_or(&self.committed, |open| &open.now)
    }

    fn step(&mut self, connection: usize, step: &Step) -> Outcome {
        self.connection = connection;
        if let Step::Call(call) = step {
            let counters = self.open.as_mut().map_or(&mut self.committed, |open| &mut open.now);
            return self.kind.call(counters, call);
        }
        let begin = self.counters().clone();
        if let Some(counters) = control(&mut self.open, step, begin)? {
            self.committed = counters;
        }
        Ok(None)
    }
}

/// What a call adds to a total, or the total that it sets.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Add(i64),
    Set(i64),
}

impl Effect {
    fn of(call: &Call) -> Vec<(Key, Self)> {
        match call {
            Call::Increment(key) => vec![(key, Self::Add(1))],
            Call::Add(key, Some(amount)) => vec![(key, Self::Add(*amount))],
            Call::AddMany(entries) => entries.iter().map(|(key, amount)| (*key, Self::Add(*amount))).collect(),
            Call::Take(key, amount) => vec![(key, Self::Add(-amount))],
            Call::Reset(key, value, _) => vec![(key, Self::Set(value.unwrap_or(0)))],
            _ => Vec::new(),
        }
    }
}

/// Effects by the number of their statement. The statements are serializable in the order in which they end, because
/// their locks remain until the end of the transaction.
type Effects = BTreeMap<usize, Vec<(Key, Effect)>>;

/// The model of transactions whose statements are interleaved.
struct Interleaved {
    isolation: &'static str,
    committed: Effects,
    open: [Option<Transaction<Effects>>; CONNECTIONS],
    statements: usize,
}

impl Interleaved {
    fn new(isolation: &'static str) -> Self {
        Self { isolation, committed: Effects::new(), open: Default::default(), statements: 0 }
    }

    /// The total for a connection. With `takes`, without the amounts that other transactions have taken and not committed.
    fn total(&self, key: Key, connection: Option<usize>, takes: bool) -> i64 {
        let mut visible = self.committed.clone();
        for (number, open) in self.open.iter().enumerate() {
            for (statement, effects) in open.iter().flat_map(|open| &open.now) {
                let is_take = effects.iter().all(|(_, effect)| matches!(effect, Effect::Add(amount) if *amount < 0));
                if connection == Some(number) || takes && is_take {
                    visible.insert(*statement, effects.clone());
                }
            }
        }
        let of_key = visible.into_values().flatten().filter(|(other, _)| *other == key);
        of_key.fold(0, |total, (_, effect)| match effect {
            Effect::Add(amount) => total + amount,
            Effect::Set(value) => value,
        })
    }

    /// What a statement returns that has returned `found`.
    fn step(&mut self, connection: usize, step: &Step, found: Outcome) -> Outcome {
        self.statements += 1;
        let Step::Call(call) = step else {
            if let Some(effects) = control(&mut self.open[connection], step, Effects::new())? {
                self.committed.extend(effects);
            }
            return Ok(None);
        };
        match found {
            // The call waits for another transaction. It has changed nothing.
            Err(1205) => return found,
            Err(number) if number == 1213 || number == 1020 && self.isolation == "SERIALIZABLE" => {
                self.open[connection] = None;
                return found;
            }
            _ => {}
        }
        // A read and the decision of a take depend on the time of the snapshot.
        let snapshot = self.isolation == "REPEATABLE READ" && self.open[connection].is_some();
        match call {
            Call::Get(_) if snapshot && found.is_ok() => return found,
            Call::Get(key) => return Ok(Some(self.total(key, Some(connection), false))),
            Call::Take(key, amount) => {
                let short = self.total(key, Some(connection), false) < *amount;
                if found == Err(30016) && (short || snapshot) || self.total(key, Some(connection), true) < *amount {
                    return Err(30016);
                }
            }
            _ => {}
        }
        let effects = self.open[connection].as_mut().map_or(&mut self.committed, |open| &mut open.now);
        effects.insert(self.statements, Effect::of(call));
        Ok(None)
    }
}

/// Whether the counters of a server equal those of the model.
fn equal(server: &Counters, model: &Counters) -> bool {
    server.len() == model.len()
        && server.iter().zip(model).all(|((key, found), (of_model, expected))| {
            let slots = expected.slots.is_none() || expected.slots == found.slots;
            key == of_model && found.total == expected.total && slots
        })
}

struct Connections {
    callers: Vec<Conn>,
    observer: Conn,
}

impl Connections {
    fn new(schema: &Schema<'_>) -> Self {
        // With 4 slots, they select the slots 1, 2 and 3 of a record.
        let callers = [1, 2, 7].map(|remainder| schema.connect_with_id(remainder, 12)).into();
        Self { callers, observer: schema.connect() }
    }

    /// Ends all transactions and deletes all counters.
    fn restart(&mut self, table: &str, isolation: &str) {
        for caller in &mut self.callers {
            caller.query_drop("ROLLBACK").expect("a rollback");
            let isolation = format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}");
            caller.query_drop(isolation).expect("an isolation level");
        }
        self.observer.query_drop(format!("DELETE FROM {table}")).expect("no rows");
    }

    fn call(&mut self, connection: usize, statement: &str) -> Outcome {
        match self.callers[connection].query_first::<Option<i64>, _>(statement) {
            Ok(value) => Ok(value.flatten()),
            error => Err(error_of(error).0),
        }
    }
}

/// The statements of a sequence, to paste into a client.
struct Script {
    text: String,
    connection: usize,
}

impl Script {
    fn new(isolation: &str) -> Self {
        Self { text: format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation};\n"), connection: 0 }
    }

    fn add(&mut self, connection: usize, statement: &str) {
        if connection != self.connection {
            self.text += &format!("-- connection {connection}, with the same isolation level:\n");
            self.connection = connection;
        }
        self.text += &format!("{statement};\n");
    }

    /// The failure of a sequence at its last statement.
    fn fails(&self, what: &str, found: impl Debug, expected: impl Debug) -> TestCaseError {
        TestCaseError::fail(format!("{}-- {what}: {found:?}, expected {expected:?}", self.text))
    }
}

/// Runs the sequence on the server and in the model, and compares them after each step.
fn run(connections: &mut Connections, table: &str, kind: Kind, isolation: &str, steps: &Steps) -> TestCaseResult {
    connections.restart(table, isolation);
    let mut model = Model::new(kind);
    let mut script = Script::new(isolation);
    // Most calls of named counters need one.
    let setup =
        (!kind.records()).then(|| (0, Step::Call(Call::Setup(NAMES[0], kind.slots_argument(), Some(10)))));
    for (connection, step) in setup.iter().chain(steps).chain(&[(0, Step::Rollback)]) {
        let connection = if model.open.is_some() { model.connection } else { *connection };
        let statement = kind.statement(step);
        script.add(connection, &statement);
        let found = connections.call(connection, &statement);
        let expected = model.step(connection, step);
        if found != expected {
            return Err(script.fails("result", found, expected));
        }
        let counters = kind.read(&mut connections.callers[connection]);
        if !equal(&counters, model.counters()) {
            return Err(script.fails("counters", counters, model.counters()));
        }
        // No call commits: another connection reads the counters as they were before the transaction.
        let committed = kind.read(&mut connections.observer);
        if !equal(&committed, &model.committed) {
            return Err(script.fails("committed", committed, &model.committed));
        }
    }
    Ok(())
}

/// A number from the environment.
fn setting(name: &str) -> Option<u64> {
    env::var(name).ok().map(|number| number.parse().unwrap_or_else(|_| panic!("{name} is not a number: {number}")))
}

/// Runs sequences until one fails, and prints the shortest one that fails.
fn sequences<S: Strategy>(cases: u32, seed: u64, strategy: S, test: impl Fn(S::Value) -> TestCaseResult) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    // A sequence that waits for locks takes seconds.
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 5000,
        max_shrink_time: 60_000,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    match runner.run(&strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(reason, _)) => {
            panic!("the shortest sequence with SLOTTED_MODEL_SEED={} that fails:\n{reason}", first_seed())
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

fn first_seed() -> u64 {
    setting("SLOTTED_MODEL_SEED").unwrap_or(1)
}

fn equals_the_model(server: &Server, kind: Kind) {
    let package = kind.package();
    let cases = setting("SLOTTED_MODEL_CASES").map_or(cases(CASES), |cases| cases as u32);
    let schema = server.schema();
    schema.install(&package);
    let table = package.options.table.to_string();
    let connections = RefCell::new(Connections::new(&schema));
    let isolation = prop::sample::select(ISOLATION_LEVELS.to_vec());
    sequences(cases, first_seed(), (isolation, kind.steps()), |(isolation, steps)| {
        run(&mut connections.borrow_mut(), &table, kind, isolation, &steps)
    });
}

/// Runs statements of three connections one after the other. A statement that waits for a lock ends with an error.
fn run_interleaved(
    connections: &mut Connections,
    table: &str,
    kind: Kind,
    isolation: &'static str,
    steps: &Steps,
) -> TestCaseResult {
    connections.restart(table, isolation);
    let mut model = Interleaved::new(isolation);
    let mut script = Script::new(isolation);
    let setup = |key| match kind {
        Kind::Records => Call::Add(key, Some(30)),
        _ => Call::Setup(key, kind.slots_argument(), Some(30)),
    };
    let keys = if kind.records() { &RECORDS[..2] } else { &NAMES[..2] };
    for key in keys {
        let statement = kind.statement(&Step::Call(setup(key)));
        script.add(0, &statement);
        assert_eq!(connections.call(0, &statement), Ok(None));
        model.statements += 1;
        model.committed.insert(model.statements, vec![(key, Effect::Set(30))]);
    }
    let commits = (0..CONNECTIONS).map(|connection| (connection, Step::Commit));
    for (connection, step) in steps.iter().cloned().chain(commits) {
        let statement = kind.statement(&step);
        script.add(connection, &statement);
        let found = connections.call(connection, &statement);
        if let Err(error) = found {
            script.text += &format!("-- error {error}\n");
        }
        let expected = model.step(connection, &step, found);
        if found != expected {
            return Err(script.fails("result", found, expected));
        }
    }
    // A call that has waited for a lock can have changed a part of the slots. A second call completes the work.
    for key in keys {
        let call = match kind {
            Kind::PerCounter | Kind::Bounded => Call::Resize(key, 3),
            Kind::Fixed => continue,
            Kind::Records | Kind::BoundedRecords => Call::Compact(key),
        };
        let statement = kind.statement(&Step::Call(call));
        script.add(0, &statement);
        assert_eq!(connections.call(0, &statement), Ok(None), "{}", script.text);
    }
    let slots = match kind {
        Kind::PerCounter | Kind::Bounded => 3,
        Kind::Fixed => FIXED,
        Kind::Records | Kind::BoundedRecords => 1,
    };
    let counter = |key: &Key| (key.to_string(), Counter { total: model.total(key, None, false), slots: Some(slots) });
    let expected: Counters = keys.iter().map(counter).collect();
    let found = kind.read(&mut connections.observer);
    if !equal(&found, &expected) {
        return Err(script.fails("counters", found, expected));
    }
    Ok(())
}

/// The workers that run interleaved sequences at the same time, because most of the time they wait for locks.
const WORKERS: u64 = 8;

fn interleaved_equals_the_model(server: &Server, kind: Kind) {
    let package = kind.package();
    let all = setting("SLOTTED_MODEL_CASES").map_or(cases(INTERLEAVED_CASES), |cases| cases as u32);
    thread::scope(|scope| {
        let worker = |number: u64| {
            let package = &package;
            scope.spawn(move || {
                let schema = server.schema();
                schema.install(package);
                let table = package.options.table.to_string();
                let mut connections = Connections::new(&schema);
                for caller in &mut connections.callers {
                    caller.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a timeout");
                }
                let connections = RefCell::new(connections);
                let isolation = prop::sample::select(ISOLATION_LEVELS[1..].to_vec());
                let seed = first_seed() * WORKERS + number;
                let strategy = (isolation, kind.interleaved_steps());
                sequences(all.div_ceil(WORKERS as u32), seed, strategy, |(isolation, steps)| {
                    run_interleaved(&mut connections.borrow_mut(), &table, kind, isolation, &steps)
                });
            })
        };
        let workers: Vec<_> = (0..WORKERS).map(worker).collect();
        // The message of a worker is that of the promise.
        workers.into_iter().for_each(|worker| worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
    });
}

fn counters_equal_the_model(server: &Server) {
    equals_the_model(server, Kind::PerCounter);
}

fn counters_with_fixed_slots_equal_the_model(server: &Server) {
    equals_the_model(server, Kind::Fixed);
}

fn slotted_counters_equal_the_model(server: &Server) {
    equals_the_model(server, Kind::Records);
}

fn interleaved_transactions_of_counters_equal_the_model(server: &Server) {
    interleaved_equals_the_model(server, Kind::PerCounter);
}

fn interleaved_transactions_of_slotted_counters_equal_the_model(server: &Server) {
    interleaved_equals_the_model(server, Kind::Records);
}

fn bounded_counters_equal_the_model(server: &Server) {
    equals_the_model(server, Kind::Bounded);
}

fn bounded_records_equal_the_model(server: &Server) {
    equals_the_model(server, Kind::BoundedRecords);
}

fn interleaved_transactions_of_bounded_counters_equal_the_model(server: &Server) {
    interleaved_equals_the_model(server, Kind::Bounded);
}

fn interleaved_transactions_of_bounded_records_equal_the_model(server: &Server) {
    interleaved_equals_the_model(server, Kind::BoundedRecords);
}
