//! Random sequences of calls and of the statements of queries.sql, compared with a model: a map of totals.
//!
//! `.._equal_the_model` proves what each call returns and leaves, at each isolation level, in transactions with savepoints, when it is
//! killed and when the table is damaged: one connection after the other. `interleaved_..` proves that no count is lost between transactions
//! that overlap. The sequences are the same in each run. SLOTTED_MODEL_CASES runs more of them, and SLOTTED_MODEL_SEED runs others.

mod interleaved;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;
use std::{env, thread};

use mysql::prelude::Queryable;
use mysql::{Conn, Params, Value};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseResult, TestError, TestRng, TestRunner};
use slotted::package::{Options, Package, Slots};
use slotted::script::{self, Query};

use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, bounded, cases, error_of, keyed, package};

/// The sequences of a promise in a test run. They take a few seconds.
const CASES: u32 = 40;

/// The fixed number of slots in the model.
const FIXED: i64 = 4;

/// The key columns as arguments of a call: a name, or the columns of a record. Only the first two (three of a column) are valid.
type Key = &'static str;

const LONG: Key = "REPEAT('x', 101)";
const NAMES: [Key; 4] = ["'a'", "'b'", "NULL", LONG];
const RECORDS: [Key; 4] = ["1, 7", "1, 8", "NULL, 7", "3000000000, 7"];
const ROWS: [Key; 4] = ["1", "2", "3", "NULL"];

/// The largest value of the column: INT UNSIGNED.
const LARGEST: i128 = u32::MAX as i128;

/// The ends of BIGINT, and half of it.
const EXTREMES: [i64; 6] = [i64::MIN, i64::MIN + 1, -(1 << 62), 1 << 62, i64::MAX - 1, i64::MAX];

/// The error of a bounded slot that would be negative, on both families.
const CHECK: u16 = 3819;

/// A number that is out of range, in an assignment or in an expression.
const RANGE: u16 = 1264;

#[derive(Clone, Debug)]
enum Call {
    Setup(Key, Option<i64>, Option<i64>),
    Increment(Key),
    Add(Key, Option<i64>),
    AddMany(Vec<(Key, i64)>),
    Take(Key, Option<i64>),
    Reset(Key, Option<i64>, bool),
    Resize(Key, Option<i64>),
    Compact(Key),
    Delete(Key),
    Get(Key),
    Rollup(Option<i64>),
    /// A statement of the application that changes the row of the column.
    Row(Key, Change),
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Add(i64),
    Delete,
    Replace(Option<i64>),
}

/// How a call is made: by a routine, by the statements of queries.sql, or by a routine with KILL QUERY after so many microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Routine,
    Plain,
    Killed(u64),
}

#[derive(Clone, Debug)]
enum Step {
    Call(Call, How),
    /// A person deletes a slot, or gives it a negative number.
    Damage(Key, i64, bool),
    /// Begins a transaction, perhaps with a snapshot that is older than its first statement.
    Begin(bool),
    Commit,
    Rollback,
    Savepoint(&'static str),
    RollbackTo(&'static str),
    Release(&'static str),
}

/// A step and the number of the connection that runs it.
type Steps = Vec<(usize, Step)>;

/// The value that a statement returns, or the number of its error.
type Outcome = Result<Option<i128>, u16>;

/// A counter of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counter {
    total: i128,
    /// The number of slots, if it is known.
    slots: Option<i64>,
    /// The column, if its row exists: a part of the total.
    row: Option<i128>,
    /// Whether a person has changed its rows. A call can then fail, and changes nothing.
    damaged: bool,
}

/// The counters by their keys. A record whose total is 0 is one without rows.
type Counters = BTreeMap<String, Counter>;

/// What the rows of a counter have on the server: the sum of all, the lowest and the highest count, and the column.
type Read = BTreeMap<String, (i128, i128, i128, Option<i128>)>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    PerCounter,
    Fixed,
    Bounded,
    Records,
    Column,
}

/// The outcome of a statement. Both families have one number for what is the same.
fn outcome<T>(result: mysql::Result<T>) -> Result<T, u16> {
    result.map_err(|error| match error_of::<()>(Err(error)).0 {
        4025 => CHECK,
        1690 => RANGE,
        number => number,
    })
}

fn number(value: Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(number.into()),
        Value::UInt(number) => Some(number.into()),
        Value::Bytes(text) => Some(String::from_utf8_lossy(&text).parse().expect("a number")),
        _ => None,
    }
}

/// The entries of an add_many.
fn json(entries: &[(Key, i64)]) -> String {
    let entries: Vec<_> = entries.iter().map(|(key, amount)| format!("[{}, {amount}]", key.replace("NULL", "null"))).collect();
    format!("[{}]", entries.join(", "))
}

impl Call {
    /// The keys, and the amounts or values.
    fn arguments(&self) -> (Vec<Key>, Vec<i64>) {
        match self {
            Self::Rollup(_) => (Vec::new(), Vec::new()),
            Self::AddMany(entries) => entries.iter().copied().unzip(),
            Self::Setup(key, _, amount) | Self::Add(key, amount) | Self::Take(key, amount) | Self::Reset(key, amount, _) => {
                (vec![key], amount.iter().copied().collect())
            }
            Self::Increment(key) | Self::Resize(key, _) | Self::Compact(key) | Self::Delete(key) | Self::Get(key) | Self::Row(key, _) => {
                (vec![key], Vec::new())
            }
        }
    }

    fn keys(&self) -> Vec<Key> {
        self.arguments().0
    }

    /// Whether queries.sql has a statement for it.
    fn has_statement(&self, form: Form) -> bool {
        match self {
            Self::Increment(_) => true,
            // The view of a column has no such row.
            Self::Get(key) => form != Form::Column || *key != "NULL",
            // The statement of a bounded counter says: use take.
            Self::Add(_, amount) => form != Form::Bounded || amount.is_some_and(|amount| amount >= 0),
            Self::Take(_, amount) => amount.is_some_and(|amount| amount > 0),
            // The statement checks no value.
            Self::AddMany(_) => !self.keys().contains(&RECORDS[3]),
            _ => false,
        }
    }
}

fn large(number: i128) -> bool {
    number.unsigned_abs() >= 1 << 61
}

impl Form {
    fn package(self) -> Package {
        let fixed = |options: &mut Options| options.slots = Slots::Fixed(FIXED as u32);
        match self {
            Self::PerCounter => package(|_| {}),
            Self::Fixed => package(fixed),
            Self::Bounded => bounded(|_| {}),
            Self::Records => keyed(fixed),
            Self::Column => of_column("articles.views", "id BIGINT", fixed),
        }
    }

    fn records(self) -> bool {
        matches!(self, Self::Records | Self::Column)
    }

    fn keys(self) -> &'static [Key] {
        match self {
            Self::Records => &RECORDS,
            Self::Column => &ROWS,
            _ => &NAMES,
        }
    }

    fn sql(self, call: &Call) -> String {
        let prefix = match self {
            Self::PerCounter | Self::Fixed => "counter",
            Self::Bounded => "bounded_counter",
            Self::Records => "slotted_counter",
            Self::Column => "articles_views",
        };
        let or_null = |number: &Option<i64>| number.map_or("NULL".to_owned(), |number| number.to_string());
        let (verb, arguments) = match call {
            Call::Setup(key, slots, value) => ("setup", format!("{key}, NULL, {}, {}", or_null(slots), or_null(value))),
            Call::Increment(key) => ("increment", key.to_string()),
            Call::Add(key, amount) => ("add", format!("{key}, {}", or_null(amount))),
            Call::AddMany(entries) => ("add_many", format!("'{}'", json(entries))),
            Call::Take(key, amount) => ("take", format!("{key}, {}", or_null(amount))),
            Call::Reset(key, value, _) if self.records() => ("reset", format!("{key}, {}", or_null(value))),
            Call::Reset(key, value, restart) => ("reset", format!("{key}, {}, {restart}", or_null(value))),
            Call::Resize(key, slots) => ("resize", format!("{key}, {}", or_null(slots))),
            Call::Compact(key) => ("compact", key.to_string()),
            Call::Delete(key) => ("delete", key.to_string()),
            Call::Rollup(records) => ("rollup", or_null(records)),
            Call::Get(key) => return format!("SELECT {prefix}_get({key})"),
            Call::Row(key, Change::Add(amount)) => {
                return format!("UPDATE articles SET views = COALESCE(views, 0) + ({amount}) WHERE id = {key}");
            }
            Call::Row(key, Change::Delete) => return format!("DELETE FROM articles WHERE id = {key}"),
            Call::Row(key, Change::Replace(value)) => {
                return format!("REPLACE INTO articles (id, views) VALUES ({key}, {})", or_null(value));
            }
        };
        format!("CALL {prefix}_{verb}({arguments})")
    }

    /// The error of a call whose arguments no counter can have. Statements do not convert their values.
    fn rejected(self, call: &Call, plain: bool) -> Option<u16> {
        let has = |key: Key| call.keys().contains(&key);
        match call {
            Call::Get(_) if plain && self.records() => return None,
            Call::AddMany(_) if has(RECORDS[3]) => return Some(30015),
            _ if has(RECORDS[3]) => return Some(RANGE),
            _ if has(LONG) && plain && (self != Self::Fixed || matches!(call, Call::Get(_))) => return Some(30003),
            _ if has(LONG) => return Some(1406),
            _ => {}
        }
        let null = has("NULL") || has("NULL, 7");
        match call {
            Call::Setup(_, slots, _) if self == Self::Fixed && slots.is_some_and(|slots| slots != FIXED) => Some(30006),
            Call::Resize(_, slots) if self == Self::Fixed && slots.is_some_and(|slots| slots != FIXED) => Some(30006),
            Call::Setup(_, Some(..1), _) | Call::Resize(_, Some(..1)) => Some(30005),
            Call::Resize(_, None) if self != Self::Fixed => Some(30005),
            Call::Setup(..) if null => Some(1048),
            Call::Setup(_, _, Some(..0)) if self == Self::Bounded => Some(CHECK),
            Call::Take(_, None | Some(..1)) => Some(30017),
            Call::Rollup(Some(..1)) => Some(30012),
            Call::Increment(_) | Call::Add(..) | Call::AddMany(_) | Call::Reset(..) if null && self.records() => Some(1048),
            Call::Add(_, None) if self.records() => Some(1048),
            _ => None,
        }
    }

    /// What a call does to the counters, and what it returns. After an error, the counters are as before.
    fn call(self, counters: &mut Counters, call: &Call, plain: bool) -> Outcome {
        if let Some(error) = self.rejected(call, plain) {
            return Err(error);
        }
        // A record without rows has the total 0.
        let key = call.keys().first().map_or(String::new(), |key| key.to_string());
        let now = counters.get(&key).copied();
        if now.is_none() && !self.records() && !matches!(call, Call::Setup(..)) {
            return Err(30003);
        }
        let Counter { mut total, mut slots, mut row, mut damaged } = now.unwrap_or_default();
        let before = row;
        let rejected = |counter: &Counter| counter.row.is_some_and(|row| row != counter.total) && !(0..=LARGEST).contains(&counter.total);
        if self.records() && !matches!(call, Call::Get(_) | Call::Rollup(_)) {
            slots = None;
        }
        match call {
            Call::Setup(..) if now.is_some_and(|counter| !counter.damaged) => return Err(30004),
            Call::Setup(_, number, value) => {
                slots = number.or(Some(if self == Self::Fixed { FIXED } else { 5 }));
                // It creates the slots that a damaged counter has lost.
                total += i128::from(value.unwrap_or(0));
            }
            Call::Increment(_) => total += 1,
            Call::Add(_, None) => return Err(1048),
            Call::Add(_, Some(amount @ ..0)) if self == Self::Bounded && total + i128::from(*amount) < 0 => return Err(30016),
            Call::Add(_, Some(amount)) => total += i128::from(*amount),
            Call::AddMany(entries) => {
                for (key, amount) in entries {
                    let counter = counters.entry(key.to_string()).or_default();
                    (counter.total, counter.slots) = (counter.total + i128::from(*amount), None);
                }
                return Ok(None);
            }
            Call::Take(_, amount) if total < amount.unwrap_or(0).into() => return Err(30016),
            Call::Take(_, amount) => total -= i128::from(amount.unwrap_or(0)),
            Call::Reset(_, Some(..0), _) if self == Self::Bounded => return Err(CHECK),
            Call::Reset(_, value, _) => total = value.unwrap_or(0).into(),
            Call::Resize(_, number) => (slots, damaged) = (number.or(Some(FIXED)), false),
            Call::Compact(_) if rejected(&now.unwrap_or_default()) => return Err(30013),
            Call::Compact(_) => slots = Some(1),
            Call::Delete(_) if row.is_none() => {
                counters.remove(&key);
                return Ok(None);
            }
            Call::Delete(_) => total = row.unwrap_or(0),
            // A statement shows a total that exceeds BIGINT, except that of a column, which reads the view.
            Call::Get(_) if plain && self == Self::Column => return Ok(row.map(|_| total.clamp(i64::MIN.into(), i64::MAX.into()))),
            Call::Get(_) if plain || i64::try_from(total).is_ok() => return Ok(Some(total)),
            Call::Get(_) => return Err(RANGE),
            Call::Rollup(_) if counters.values().any(rejected) => return Err(30013),
            Call::Rollup(_) => return Ok(None),
            Call::Row(_, Change::Add(amount)) if row.is_some_and(|row| row + i128::from(*amount) < 0) => return Err(RANGE),
            Call::Row(_, Change::Add(amount)) => row = row.map(|row| row + i128::from(*amount)),
            Call::Row(_, Change::Delete) => row = None,
            Call::Row(_, Change::Replace(value)) => row = Some(value.unwrap_or(0).into()),
        }
        total += row.unwrap_or(0) - before.unwrap_or(0);
        counters.insert(key, Counter { total, slots, row, damaged });
        Ok(None)
    }

    /// What the rows of a connection have.
    fn read(self, connection: &mut Conn, table: &str) -> Read {
        let query = match self {
            Self::Records => format!(
                "SELECT CONCAT(record_type, ', ', record_id), CAST(SUM(count) AS CHAR), MIN(count), MAX(count), NULL FROM {table} \
                 GROUP BY record_type, record_id HAVING SUM(count) <> 0"
            ),
            Self::Column => format!(
                "SELECT CAST(id AS CHAR), CAST(SUM(count) AS CHAR), MIN(count), MAX(count), MAX(view) FROM ( \
                 SELECT id, count, NULL AS view FROM {table} \
                 UNION ALL SELECT id, COALESCE(views, 0), COALESCE(views, 0) FROM articles) AS parts \
                 GROUP BY id HAVING SUM(count) <> 0 OR MAX(view) IS NOT NULL"
            ),
            _ => format!(
                "SELECT CONCAT('\\'', counter_name, '\\''), CAST(SUM(counter) AS CHAR), MIN(counter), MAX(counter), NULL FROM {table} \
                 GROUP BY counter_name"
            ),
        };
        let found = |(key, total, least, most, row): (String, String, i64, i64, Option<i64>)| {
            (key, (total.parse().expect("a number"), least.into(), most.into(), row.map(i128::from)))
        };
        connection.query_map(&query, found).expect(&query).into_iter().collect()
    }

    /// The counters with the columns that were read, if they are what was read: a call may move counts into the column.
    fn matching(self, mut counters: Counters, read: &Read) -> Option<Counters> {
        if self.records() {
            counters.retain(|_, counter| counter.total != 0 || counter.row.is_some());
        }
        for (key, counter) in &mut counters {
            let (total, least, _, row) = *read.get(key)?;
            let moved = row == counter.row || row == Some(total);
            if total != counter.total || row.is_some() != counter.row.is_some() || !moved || self == Self::Bounded && least < 0 {
                return None;
            }
            counter.row = row;
        }
        (read.len() == counters.len()).then_some(counters)
    }

    /// Calls, with the weight of the ends of BIGINT among amounts.
    fn calls(self, extremes: u32) -> BoxedStrategy<Call> {
        let keys = self.keys();
        let key = move || prop_oneof![24 => Just(keys[0]), 12 => Just(keys[1]), 1 => prop::sample::select(keys[2..].to_vec())];
        // A column cannot have a negative total.
        let least = if self == Self::Column { -60i64 } else { -20 };
        let extreme = || prop::sample::select(EXTREMES.to_vec());
        let value = move || prop::option::weighted(0.9, prop_oneof![40 => least / 4..100, extremes => extreme()]);
        let amount = move || prop::option::weighted(0.95, prop_oneof![40 => least..60, extremes => extreme()]);
        let mut calls = vec![
            (4, key().prop_map(Call::Increment).boxed()),
            (4, (key(), amount()).prop_map(|(key, amount)| Call::Add(key, amount)).boxed()),
            (2, (key(), value(), any::<bool>()).prop_map(|(key, value, restart)| Call::Reset(key, value, restart)).boxed()),
            (1, key().prop_map(Call::Delete).boxed()),
            (2, key().prop_map(Call::Get).boxed()),
        ];
        let slots = match self {
            Self::Fixed => prop::option::of(FIXED - 1..=FIXED).boxed(),
            _ => prop::option::weighted(0.9, 0i64..9).boxed(),
        };
        if self.records() {
            let entry = (key(), prop_oneof![60 => -5i64..20, extremes => extreme()]);
            calls.push((3, prop::collection::vec(entry, 0..4).prop_map(Call::AddMany).boxed()));
            calls.push((2, key().prop_map(Call::Compact).boxed()));
        } else {
            let setup = (key(), slots.clone(), value()).prop_map(|(key, slots, value)| Call::Setup(key, slots, value));
            calls.push((2, setup.boxed()));
            calls.push((2, (key(), slots).prop_map(|(key, slots)| Call::Resize(key, slots)).boxed()));
        }
        if self == Self::Bounded {
            let amount = prop_oneof![3 => -1i64..2, 30 => 1i64..60, extremes => extreme()];
            calls.push((6, (key(), prop::option::weighted(0.97, amount)).prop_map(|(key, amount)| Call::Take(key, amount)).boxed()));
        }
        if self == Self::Column {
            let row = prop_oneof![
                4 => (-5i64..20).prop_map(Change::Add),
                1 => Just(Change::Delete),
                2 => prop::option::weighted(0.8, 0i64..100).prop_map(Change::Replace),
            ];
            calls.push((4, prop::option::of(0i64..4).prop_map(Call::Rollup).boxed()));
            calls.push((4, (prop::sample::select(ROWS[..3].to_vec()), row).prop_map(|(key, row)| Call::Row(key, row)).boxed()));
        }
        prop::strategy::Union::new_weighted(calls).boxed()
    }

    /// Steps in any order. A part of the sequences has totals near the ends of BIGINT.
    fn steps(self) -> impl Strategy<Value = Steps> {
        let steps = |extremes: u32| {
            let calls = self.calls(extremes);
            let plain = calls.clone().prop_filter("no statement", move |call| call.has_statement(self));
            let name = || prop::sample::select(vec!["s1", "s2"]);
            // Without slot 1, only a bounded counter is sure to return an error.
            let slots = if self == Self::Bounded { 1i64..4 } else { 2..4 };
            let damage = (prop::sample::select(NAMES[..2].to_vec()), slots, any::<bool>());
            let damage = damage.prop_map(|(key, slot, lost)| Step::Damage(key, slot, lost));
            let step = prop_oneof![
                14 => calls.clone().prop_map(|call| Step::Call(call, How::Routine)),
                6 => plain.prop_map(|call| Step::Call(call, How::Plain)),
                6 => (calls, 0..900u64).prop_map(|(call, after)| Step::Call(call, How::Killed(after))),
                if self.records() { 0 } else { 1 } => damage,
                3 => any::<bool>().prop_map(Step::Begin),
                1 => Just(Step::Commit),
                1 => Just(Step::Rollback),
                2 => name().prop_map(Step::Savepoint),
                2 => name().prop_map(Step::RollbackTo),
                1 => name().prop_map(Step::Release),
            ];
            prop::collection::vec((0..CONNECTIONS, step), 1..40)
        };
        prop_oneof![5 => steps(1), 1 => steps(20)]
    }
}

/// The connections of a sequence. They select different slots, so that a counter has counts in several slots.
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
        (Step::Begin(_), _) => {
            committed = open.take();
            *open = Some(Transaction { now: begin, savepoints: Vec::new() });
        }
        (Step::Commit, _) => committed = open.take(),
        (Step::Rollback, _) => *open = None,
        (Step::RollbackTo(_) | Step::Release(_), None) => return Err(1305),
        (Step::Savepoint(name), Some(Transaction { now, savepoints })) => {
            savepoints.retain(|(other, _)| other != name);
            savepoints.push((name, now.clone()));
        }
        (Step::RollbackTo(name) | Step::Release(name), Some(Transaction { now, savepoints })) => {
            let at = savepoints.iter().position(|(other, _)| other == name).ok_or(1305u16)?;
            if matches!(step, Step::RollbackTo(_)) {
                *now = savepoints[at].1.clone();
                savepoints.truncate(at + 1);
            } else {
                savepoints.truncate(at);
            }
        }
        // Outside a transaction, the savepoint ends with its statement.
        _ => {}
    }
    Ok(committed.map(|transaction| transaction.now))
}

/// The isolation levels of the connections.
type Isolation = [&'static str; CONNECTIONS];

/// A package on a server, and the connections that use it.
struct Subject<'a> {
    form: Form,
    schema: Schema<'a>,
    table: String,
    queries: BTreeMap<String, Query>,
    callers: Vec<Conn>,
    observer: Conn,
    killer: Conn,
    /// The statements of the sequence, to paste into clients.
    script: String,
}

impl<'a> Subject<'a> {
    fn new(server: &'a Server, form: Form) -> Self {
        let (package, schema) = (form.package(), server.schema());
        if form == Form::Column {
            schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT UNSIGNED NULL) ENGINE = InnoDB");
        }
        schema.install(&package);
        let queries = script::queries(&schema.file(&package, "queries.sql")).into_iter();
        Self {
            form,
            table: package.options.table.to_string(),
            queries: queries.map(|query| (query.name.clone(), query)).collect(),
            // With 4 slots, they select three different ones.
            callers: [1, 2, 7].map(|remainder| schema.connect_with_id(remainder, 12)).into(),
            observer: schema.connect(),
            killer: schema.connect(),
            schema,
            script: String::new(),
        }
    }

    /// Ends all transactions and deletes all counters.
    fn restart(&mut self, isolation: Isolation) {
        self.script.clear();
        for (number, (caller, level)) in self.callers.iter_mut().zip(isolation).enumerate() {
            let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
            caller.query_drop("ROLLBACK").expect("a rollback");
            caller.query_drop(&level).expect("an isolation level");
            self.script += &format!("{number}: {level};\n");
        }
        self.schema.run(&format!("DELETE FROM {}", self.table));
        if self.form == Form::Column {
            self.schema.run("DELETE FROM articles; INSERT INTO articles (id, views) VALUES (1, 10)");
        }
    }

    /// Runs a step, and adds it to the script.
    fn run(&mut self, connection: usize, step: &Step) -> Outcome {
        let statement = match step {
            Step::Call(call, _) => self.form.sql(call),
            Step::Damage(key, slot, lost) => {
                let act = if *lost { format!("DELETE FROM {}", self.table) } else { format!("UPDATE {} SET counter_id = -counter_id", self.table) };
                format!("{act} WHERE counter_name = {key} AND counter_id = {slot}")
            }
            Step::Begin(false) => "START TRANSACTION".to_owned(),
            Step::Begin(true) => "START TRANSACTION WITH CONSISTENT SNAPSHOT".to_owned(),
            Step::Commit => "COMMIT".to_owned(),
            Step::Rollback => "ROLLBACK".to_owned(),
            Step::Savepoint(name) => format!("SAVEPOINT {name}"),
            Step::RollbackTo(name) => format!("ROLLBACK TO SAVEPOINT {name}"),
            Step::Release(name) => format!("RELEASE SAVEPOINT {name}"),
        };
        let caller = &mut self.callers[connection];
        let call = |caller: &mut Conn| outcome(caller.query_first::<Option<Value>, _>(&statement)).map(|value| value.flatten().and_then(number));
        let (how, result) = match step {
            Step::Call(call, How::Plain) => ("by queries.sql ", plain(&self.queries, self.form, caller, call)),
            Step::Call(_, How::Killed(after)) => {
                let (kill, killer) = (format!("KILL QUERY {}", caller.connection_id()), &mut self.killer);
                let result = thread::scope(|scope| {
                    scope.spawn(|| {
                        thread::sleep(Duration::from_micros(*after));
                        killer.query_drop(&kill).expect("KILL QUERY");
                    });
                    call(caller)
                });
                // A KILL after the end of the call can end the next statement.
                let _ = caller.query_drop("DO 0");
                ("killed ", result)
            }
            _ => ("", call(caller)),
        };
        self.script += &format!("{connection}: {how}{statement}; -- {result:?}\n");
        result
    }

    /// The failure of a sequence at its last statement.
    fn fails(&self, what: &str, found: impl Debug, expected: impl Debug) -> TestCaseError {
        TestCaseError::fail(format!("{}-- {what}: {found:?}, expected {expected:?}", self.script))
    }

    /// Compares what a connection reads from the view with the counters of the model.
    fn compare_view(&mut self, connection: usize, model: &Counters) -> Result<(), String> {
        let query = match self.form {
            Form::Records => "SELECT CONCAT(record_type, ', ', record_id), total, slots FROM slotted_counter_totals WHERE total <> 0",
            Form::Column => "SELECT CAST(id AS CHAR), total, NULL FROM articles_views_totals",
            Form::Bounded => "SELECT CONCAT('\\'', counter_name, '\\''), total, slots FROM bounded_counter_totals",
            _ => "SELECT CONCAT('\\'', counter_name, '\\''), total, slots FROM counter_totals",
        };
        let rows: Vec<(String, i64, Option<i64>)> = self.callers[connection].query(query).expect(query);
        let shown = model.values().filter(|counter| self.form != Form::Column || counter.row.is_some()).count();
        let equal = rows.len() == shown
            && rows.iter().all(|(key, total, slots)| {
                let counter = model.get(key).copied().unwrap_or_default();
                let known = counter.slots.filter(|_| !counter.damaged && self.form != Form::Column);
                // A total beyond the range of BIGINT is shown as the end of the range.
                i128::from(*total) == counter.total.clamp(i64::MIN.into(), i64::MAX.into()) && (known.is_none() || known == *slots)
            });
        if equal { Ok(()) } else { Err(format!("{rows:?}")) }
    }
}

/// Executes the statements of queries.sql for a call, as their comments say.
fn plain(queries: &BTreeMap<String, Query>, form: Form, connection: &mut Conn, call: &Call) -> Outcome {
    let (name, key, amount) = match call {
        Call::Increment(key) => ("increment", *key, Value::NULL),
        Call::Add(key, amount) => ("add", *key, (*amount).into()),
        Call::Take(key, amount) => ("take", *key, (*amount).into()),
        Call::AddMany(entries) => ("add_many", "", json(entries).into()),
        Call::Get(key) => ("get", *key, Value::NULL),
        _ => panic!("no statement: {call:?}"),
    };
    // The first value and the number of changed rows.
    let mut execute = |name: &str, slots: Option<i64>| {
        let mut key = key.split(", ").map(|part| match part {
            "NULL" => Value::NULL,
            part => part.parse::<i64>().map_or(part.trim_matches('\'').into(), Value::from),
        });
        let values = queries[name].parameters.iter().map(|parameter| match parameter.as_str() {
            "amount" | "amounts" => amount.clone(),
            "slots" => slots.into(),
            _ if call.keys() == [LONG] => "x".repeat(101).into(),
            _ => key.next().expect("a column of the key"),
        });
        let values: Vec<Value> = values.collect();
        let mut rows = outcome(connection.exec_iter(&queries[name].sql, Params::from(values)))?;
        let affected = rows.affected_rows();
        let first = outcome(rows.next().transpose())?;
        Ok::<_, u16>((first.and_then(|row| number(row.unwrap().remove(0))), affected))
    };
    if form.records() || name == "get" {
        let (value, _) = execute(name, None)?;
        return if name == "get" && value.is_none() && !form.records() { Err(30003) } else { Ok(value) };
    }
    let slots = if form == Form::Fixed { FIXED } else { execute("slots", None)?.0.ok_or(30003u16)? as i64 };
    let changed = execute(name, Some(slots))?.1 == 1;
    if !changed && form != Form::Fixed && name != "take" && amount != Value::Int(0) {
        return if execute(name, Some(1))?.1 == 1 { Ok(None) } else { Err(30003) };
    }
    if changed { Ok(None) } else { outcome(connection.query_drop(form.sql(call))).map(|()| None) }
}

/// The model of transactions that run one after the other.
struct Model {
    committed: Counters,
    open: Option<Transaction<Counters>>,
    /// The connection of the open transaction.
    connection: usize,
}

impl Model {
    /// The counters that the connection of the next step reads.
    fn now(&mut self) -> &mut Counters {
        self.open.as_mut().map_or(&mut self.committed, |open| &mut open.now)
    }

    /// The states in which a step that has returned `found` may leave the counters, or what it should have returned. `before` is what the
    /// rows had.
    fn step(&mut self, form: Form, hides_kills: bool, step: &Step, before: &Read, found: Outcome) -> Result<Vec<Counters>, Outcome> {
        let Step::Call(call, how) = step else {
            let begin = self.now().clone();
            let expected = control(&mut self.open, step, begin).map(|committed| {
                self.committed = committed.unwrap_or_else(|| std::mem::take(&mut self.committed));
                None
            });
            return if found == expected { Ok(vec![self.now().clone()]) } else { Err(expected) };
        };
        let killed = matches!(how, How::Killed(_));
        let mut before_it = self.now().clone();
        let mut after = before_it.clone();
        let expected = form.call(&mut after, call, *how == How::Plain);
        let is_damaged = |key: &Key| before_it.get(*key).is_some_and(|counter| counter.damaged);
        let (damaged, large) = (call.keys().iter().any(is_damaged), call.arguments().1.into_iter().any(|amount| large(amount.into())) || has_large(before));
        let forget = |counters: &mut Counters| counters.values_mut().for_each(|counter| counter.slots = None);
        if killed || damaged || large {
            forget(&mut before_it);
        }
        let counts = matches!(call, Call::Increment(_) | Call::Add(..) | Call::AddMany(_) | Call::Take(..) | Call::Get(_));
        match found {
            // The count of a slot exceeds BIGINT.
            Err(RANGE) if large && !matches!(call, Call::Get(_) | Call::Row(..)) => Ok(vec![before_it]),
            Err(30003 | 30004 | 30016 | 30021 | 1062) if damaged => Ok(vec![before_it]),
            // No total has changed. A session that is killed does not enter a handler, such as that of a setup (1062), of SAVEPOINT (1305), of
            // SET TRANSACTION (1568) and of a roll-up (1690).
            Err(30021 | 1062 | 1305 | 1568 | RANGE) if killed => Ok(vec![before_it]),
            Err(1317 | 1105 | 1329) if killed => {
                forget(&mut after);
                Ok(vec![before_it, after])
            }
            Ok(_) if killed && hides_kills && !counts => {
                forget(&mut after);
                Ok(vec![after, before_it])
            }
            _ if found == expected => Ok(vec![after]),
            _ => Err(expected),
        }
    }
}

fn has_large(read: &Read) -> bool {
    read.values().any(|(total, least, most, _)| [total, least, most].into_iter().any(|number| large(*number)))
}

/// Runs the sequence on the server and in the model, and compares them after each step.
fn run(subject: &mut Subject<'_>, isolation: Isolation, steps: &Steps) -> TestCaseResult {
    let form = subject.form;
    subject.restart(isolation);
    let first = if form == Form::Column { vec![("1".to_owned(), Counter { total: 10, row: Some(10), ..Counter::default() })] } else { Vec::new() };
    let mut model = Model { committed: first.into_iter().collect(), open: None, connection: 0 };
    let mut before = form.read(&mut subject.observer, &subject.table);
    // Most calls of named counters need one.
    let slots = (form != Form::Fixed).then_some(4);
    let setup = (!form.records()).then(|| (0, Step::Call(Call::Setup(NAMES[0], slots, Some(10)), How::Routine)));
    for (connection, step) in setup.iter().chain(steps).chain(&[(0, Step::Rollback)]) {
        let connection = if model.open.is_some() { model.connection } else { *connection };
        model.connection = connection;
        let found = subject.run(connection, step);
        let hides_kills = !subject.schema.server.is_mysql();
        let states = match model.step(form, hides_kills, step, &before, found) {
            Ok(states) => states,
            Err(expected) => return Err(subject.fails("result", found, expected)),
        };
        let caller = &mut subject.callers[connection];
        before = form.read(caller, &subject.table);
        if let Step::Damage(key, ..) = step {
            if let Some(counter) = model.now().get_mut(*key) {
                (counter.total, counter.damaged) = (before.get(*key).map_or(0, |read| read.0), true);
            }
            model.now().retain(|key, _| before.contains_key(key));
        } else {
            match states.iter().find_map(|state| form.matching(state.clone(), &before)) {
                Some(state) => *model.now() = state,
                None => return Err(subject.fails("rows", &before, states)),
            }
        }
        let fits = |(total, _, _, row): &(i128, i128, i128, Option<i128>)| row.is_some_and(|row| row != *total) && (0..=LARGEST).contains(total);
        if matches!((step, found), (Step::Call(Call::Rollup(_), How::Routine), Ok(_) | Err(30013))) && before.values().any(fits) {
            return Err(subject.fails("pending after a roll-up", &before, "none"));
        }
        if let Err(found) = subject.compare_view(connection, model.now()) {
            return Err(subject.fails("view", found, model.now()));
        }
        // No call commits: another connection reads the counters as they were before the transaction.
        let committed = form.read(&mut subject.observer, &subject.table);
        if form.matching(model.committed.clone(), &committed).is_none() {
            return Err(subject.fails("committed", committed, &model.committed));
        }
    }
    Ok(())
}

/// A number from the environment.
fn setting(name: &str) -> Option<u64> {
    env::var(name).ok().map(|number| number.parse().unwrap_or_else(|_| panic!("{name} is not a number: {number}")))
}

fn first_seed() -> u64 {
    setting("SLOTTED_MODEL_SEED").unwrap_or(1)
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

fn equals_the_model(server: &Server, form: Form) {
    let cases = setting("SLOTTED_MODEL_CASES").map_or(cases(CASES), |cases| cases as u32);
    let subject = RefCell::new(Subject::new(server, form));
    let levels = vec!["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
    let isolation = prop::array::uniform3(prop::sample::select(levels));
    sequences(cases, first_seed(), (isolation, form.steps()), |(isolation, steps)| run(&mut subject.borrow_mut(), isolation, &steps));
}

/// A promise of each model for a package.
macro_rules! promises_of {
    ($($form:ident $alone:ident $interleaved:ident)*) => {
        $(fn $alone(server: &Server) {
            equals_the_model(server, Form::$form);
        }

        fn $interleaved(server: &Server) {
            interleaved::equals_the_model(server, Form::$form);
        })*

        pub fn promises(mut module: Module<'_>) {
            $(module.on_servers($alone);)*
            $(module.on_servers($interleaved);)*
        }
    };
}

promises_of! {
    PerCounter counters_equal_the_model interleaved_calls_of_counters_equal_the_model
    Fixed counters_with_fixed_slots_equal_the_model interleaved_calls_of_counters_with_fixed_slots_equal_the_model
    Bounded bounded_counters_equal_the_model interleaved_calls_of_bounded_counters_equal_the_model
    Records slotted_counters_equal_the_model interleaved_calls_of_slotted_counters_equal_the_model
    Column columns_equal_the_model interleaved_calls_of_columns_equal_the_model
}
