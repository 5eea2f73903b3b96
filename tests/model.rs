//! Random sequences of calls, compared with a model: a map of totals.
//!
//! `.._equal_the_model` proves what each call returns and leaves, at each isolation level, in transactions with savepoints and when it is
//! killed: one connection after the other. `interleaved_..` proves that no count is lost between transactions that overlap. The sequences
//! are the same in each run. SLOTTED_MODEL_CASES runs more of them, and SLOTTED_MODEL_SEED runs others.

mod interleaved;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;
use std::{env, thread};

use mysql::Conn;
use mysql::prelude::Queryable;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseResult, TestError, TestRng, TestRunner};
use slotted::package::{Options, Package, Slots};

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

#[derive(Clone, Debug)]
enum Step {
    Call(Call),
    /// A call with KILL QUERY after so many microseconds.
    Killed(Call, u64),
    /// Begins or ends a transaction or a savepoint.
    Control(&'static str),
}

/// The second one reads a snapshot that is older than its first statement.
const BEGIN: [&str; 2] = ["START TRANSACTION", "START TRANSACTION WITH CONSISTENT SNAPSHOT"];

/// A step and the number of the connection that runs it.
type Steps = Vec<(usize, Step)>;

/// The value that a statement returns, or the number of its error.
type Outcome = Result<Option<i64>, u16>;

/// A counter of the model: the total, and the column, if its row exists, which is a part of the total.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counter {
    total: i64,
    row: Option<i64>,
}

/// The counters by their keys. A record whose total is 0 is one without rows.
type Counters = BTreeMap<String, Counter>;

/// What the rows of a counter have on the server: the sum of all, the lowest count, and the column.
type Read = BTreeMap<String, (i64, i64, Option<i64>)>;

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

/// The entries of an add_many.
fn json(entries: &[(Key, i64)]) -> String {
    let entries: Vec<_> =
        entries.iter().map(|(key, amount)| format!("[{}, {amount}]", key.replace("NULL", "null"))).collect();
    format!("[{}]", entries.join(", "))
}

impl Call {
    fn keys(&self) -> Vec<Key> {
        match self {
            Self::Rollup(_) => Vec::new(),
            Self::AddMany(entries) => entries.iter().map(|(key, _)| *key).collect(),
            Self::Setup(key, ..)
            | Self::Increment(key)
            | Self::Add(key, _)
            | Self::Take(key, _)
            | Self::Reset(key, ..) => vec![*key],
            Self::Resize(key, _) | Self::Compact(key) | Self::Delete(key) | Self::Get(key) | Self::Row(key, _) => {
                vec![*key]
            }
        }
    }
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

    /// What the names of the routines and of the view begin with.
    fn prefix(self) -> &'static str {
        match self {
            Self::PerCounter | Self::Fixed => "counter",
            Self::Bounded => "bounded_counter",
            Self::Records => "slotted_counter",
            Self::Column => "articles_views",
        }
    }

    /// The SQL of the key as the arguments of a call have it.
    fn key(self) -> &'static str {
        match self {
            Self::Records => "CONCAT(record_type, ', ', record_id)",
            Self::Column => "CAST(id AS CHAR)",
            _ => "CONCAT('\\'', counter_name, '\\'')",
        }
    }

    fn sql(self, call: &Call) -> String {
        let prefix = self.prefix();
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

    /// The error of a call whose arguments no counter can have.
    fn rejected(self, call: &Call) -> Option<u16> {
        let has = |key: Key| call.keys().contains(&key);
        match call {
            Call::AddMany(_) if has(RECORDS[3]) => return Some(30015),
            _ if has(RECORDS[3]) => return Some(RANGE),
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
            Call::Increment(_) | Call::Add(..) | Call::AddMany(_) | Call::Reset(..) if null && self.records() => {
                Some(1048)
            }
            Call::Add(_, None) if self.records() => Some(1048),
            _ => None,
        }
    }

    /// What a call does to the counters, and what it returns. After an error, the counters are as before.
    fn call(self, counters: &mut Counters, call: &Call) -> Outcome {
        if let Some(error) = self.rejected(call) {
            return Err(error);
        }
        // A record without rows has the total 0.
        let key = call.keys().first().map_or(String::new(), |key| key.to_string());
        let now = counters.get(&key).copied();
        if now.is_none() && !self.records() && !matches!(call, Call::Setup(..)) {
            return Err(30003);
        }
        let Counter { mut total, mut row } = now.unwrap_or_default();
        let before = row;
        let rejected = |counter: &Counter| counter.total < 0 && counter.row.is_some_and(|row| row != counter.total);
        match call {
            Call::Setup(..) if now.is_some() => return Err(30004),
            Call::Setup(_, _, value) => total = value.unwrap_or(0),
            Call::Increment(_) => total += 1,
            Call::Add(_, None) => return Err(1048),
            Call::Add(_, Some(amount @ ..0)) if self == Self::Bounded && total + amount < 0 => return Err(30016),
            Call::Add(_, Some(amount)) => total += amount,
            Call::AddMany(entries) => {
                for (key, amount) in entries {
                    counters.entry(key.to_string()).or_default().total += amount;
                }
                return Ok(None);
            }
            Call::Take(_, amount) if total < amount.unwrap_or(0) => return Err(30016),
            Call::Take(_, amount) => total -= amount.unwrap_or(0),
            Call::Reset(_, Some(..0), _) if self == Self::Bounded => return Err(CHECK),
            Call::Reset(_, value, _) => total = value.unwrap_or(0),
            Call::Resize(..) => {}
            Call::Compact(_) if rejected(&now.unwrap_or_default()) => return Err(30013),
            Call::Compact(_) => {}
            Call::Delete(_) if row.is_none() => {
                counters.remove(&key);
                return Ok(None);
            }
            Call::Delete(_) => total = row.unwrap_or(0),
            Call::Get(_) => return Ok(Some(total)),
            Call::Rollup(_) if counters.values().any(rejected) => return Err(30013),
            Call::Rollup(_) => return Ok(None),
            Call::Row(_, Change::Add(amount)) if row.is_some_and(|row| row + amount < 0) => return Err(RANGE),
            Call::Row(_, Change::Add(amount)) => row = row.map(|row| row + amount),
            Call::Row(_, Change::Delete) => row = None,
            Call::Row(_, Change::Replace(value)) => row = Some(value.unwrap_or(0)),
        }
        total += row.unwrap_or(0) - before.unwrap_or(0);
        counters.insert(key, Counter { total, row });
        Ok(None)
    }

    /// What the rows of a connection have.
    fn read(self, connection: &mut Conn, table: &str) -> Read {
        let (count, row, from) = match self {
            Self::Records => ("count", "NULL", table.to_owned()),
            Self::Column => {
                let column = "SELECT id, COALESCE(views, 0), COALESCE(views, 0) FROM articles";
                (
                    "count",
                    "MAX(view)",
                    format!("(SELECT id, count, NULL AS view FROM {table} UNION ALL {column}) AS parts"),
                )
            }
            _ => ("counter", "NULL", table.to_owned()),
        };
        let query = format!(
            "SELECT {} AS name, CAST(SUM({count}) AS SIGNED), MIN({count}), {row} FROM {from} GROUP BY name",
            self.key()
        );
        let found: Vec<(String, i64, i64, Option<i64>)> = connection.query(&query).expect(&query);
        let found = found.into_iter().map(|(key, total, least, row)| (key, (total, least, row)));
        // A record without counts is one without rows.
        found.filter(|(_, (total, _, row))| !self.records() || *total != 0 || row.is_some()).collect()
    }

    /// The counters with the columns that were read, if they are what was read: a call may move counts into the column.
    fn matching(self, mut counters: Counters, read: &Read) -> Option<Counters> {
        if self.records() {
            counters.retain(|_, counter| counter.total != 0 || counter.row.is_some());
        }
        for (key, counter) in &mut counters {
            let (total, least, row) = *read.get(key)?;
            let moved = row == counter.row || row == Some(total);
            if total != counter.total
                || row.is_some() != counter.row.is_some()
                || !moved
                || self == Self::Bounded && least < 0
            {
                return None;
            }
            counter.row = row;
        }
        (read.len() == counters.len()).then_some(counters)
    }

    fn calls(self) -> BoxedStrategy<Call> {
        let keys = self.keys();
        let key = move || prop_oneof![24 => Just(keys[0]), 12 => Just(keys[1]), 1 => prop::sample::select(keys[2..].to_vec())];
        // A column cannot have a negative total.
        let least = if self == Self::Column { -60i64 } else { -20 };
        let value = move || prop::option::weighted(0.9, least / 4..100);
        let amount = move || prop::option::weighted(0.95, least..60);
        let mut calls = vec![
            (4, key().prop_map(Call::Increment).boxed()),
            (4, (key(), amount()).prop_map(|(key, amount)| Call::Add(key, amount)).boxed()),
            (
                2,
                (key(), value(), any::<bool>())
                    .prop_map(|(key, value, restart)| Call::Reset(key, value, restart))
                    .boxed(),
            ),
            (1, key().prop_map(Call::Delete).boxed()),
            (2, key().prop_map(Call::Get).boxed()),
        ];
        let slots = match self {
            Self::Fixed => prop::option::of(FIXED - 1..=FIXED).boxed(),
            _ => prop::option::weighted(0.9, 0i64..9).boxed(),
        };
        if self.records() {
            let entries = prop::collection::vec((key(), -5i64..20), 0..4);
            calls.push((3, entries.prop_map(Call::AddMany).boxed()));
            calls.push((2, key().prop_map(Call::Compact).boxed()));
        } else {
            let setup = (key(), slots.clone(), value()).prop_map(|(key, slots, value)| Call::Setup(key, slots, value));
            calls.push((2, setup.boxed()));
            calls.push((2, (key(), slots).prop_map(|(key, slots)| Call::Resize(key, slots)).boxed()));
        }
        if self == Self::Bounded {
            let amount = prop_oneof![3 => -1i64..2, 30 => 1i64..60];
            calls.push((
                6,
                (key(), prop::option::weighted(0.97, amount)).prop_map(|(key, amount)| Call::Take(key, amount)).boxed(),
            ));
        }
        if self == Self::Column {
            let row = prop_oneof![
                4 => (-5i64..20).prop_map(Change::Add),
                1 => Just(Change::Delete),
                2 => prop::option::weighted(0.8, 0i64..100).prop_map(Change::Replace),
            ];
            calls.push((4, prop::option::of(0i64..4).prop_map(Call::Rollup).boxed()));
            calls.push((
                4,
                (prop::sample::select(ROWS[..3].to_vec()), row).prop_map(|(key, row)| Call::Row(key, row)).boxed(),
            ));
        }
        prop::strategy::Union::new_weighted(calls).boxed()
    }

    /// Steps in any order.
    fn steps(self) -> impl Strategy<Value = Steps> {
        let savepoints = vec![
            "SAVEPOINT s1",
            "SAVEPOINT s2",
            "ROLLBACK TO SAVEPOINT s1",
            "ROLLBACK TO SAVEPOINT s2",
            "RELEASE SAVEPOINT s1",
        ];
        let step = prop_oneof![
            20 => self.calls().prop_map(Step::Call),
            6 => (self.calls(), 0..900u64).prop_map(|(call, after)| Step::Killed(call, after)),
            3 => prop::sample::select(&BEGIN[..]).prop_map(Step::Control),
            2 => prop::sample::select(vec!["COMMIT", "ROLLBACK"]).prop_map(Step::Control),
            5 => prop::sample::select(savepoints).prop_map(Step::Control),
        ];
        prop::collection::vec((0..CONNECTIONS, step), 1..40)
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
fn control<T: Clone>(open: &mut Option<Transaction<T>>, statement: &'static str, begin: T) -> Result<Option<T>, u16> {
    let (verb, name) = statement.rsplit_once(' ').unwrap_or((statement, ""));
    let mut committed = None;
    match (verb, &mut *open) {
        _ if BEGIN.contains(&statement) => committed = open.replace(Transaction { now: begin, savepoints: Vec::new() }),
        ("COMMIT", _) => committed = open.take(),
        ("ROLLBACK", _) => *open = None,
        ("SAVEPOINT", Some(open)) => {
            open.savepoints.retain(|(other, _)| *other != name);
            open.savepoints.push((name, open.now.clone()));
        }
        // Outside a transaction, the savepoint ends with its statement.
        ("SAVEPOINT", None) => {}
        (_, None) => return Err(1305),
        (_, Some(open)) => {
            let at = open.savepoints.iter().position(|(other, _)| *other == name).ok_or(1305u16)?;
            open.savepoints.truncate(at + 1);
            if verb == "ROLLBACK TO SAVEPOINT" {
                open.now = open.savepoints[at].1.clone();
            } else {
                open.savepoints.pop();
            }
        }
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
        Self {
            form,
            table: package.options.table.to_string(),
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
            Step::Call(call) | Step::Killed(call, _) => self.form.sql(call),
            Step::Control(statement) => (*statement).to_owned(),
        };
        let caller = &mut self.callers[connection];
        let call = |caller: &mut Conn| outcome(caller.query_first::<Option<i64>, _>(&statement)).map(Option::flatten);
        let (how, result) = match step {
            Step::Killed(_, after) => {
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
        let only = if self.form == Form::Records { " WHERE total <> 0" } else { "" };
        let query = format!("SELECT {}, total FROM {}_totals{only}", self.form.key(), self.form.prefix());
        let mut rows: Vec<(String, i64)> = self.callers[connection].query(&query).expect(&query);
        rows.sort();
        let shown = model.iter().filter(|(_, counter)| self.form != Form::Column || counter.row.is_some());
        let equal = rows == shown.map(|(key, counter)| (key.clone(), counter.total)).collect::<Vec<_>>();
        if equal { Ok(()) } else { Err(format!("{rows:?}")) }
    }
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

    /// The states in which a step that has returned `found` may leave the counters, or what it should have returned.
    fn step(&mut self, form: Form, hides_kills: bool, step: &Step, found: Outcome) -> Result<Vec<Counters>, Outcome> {
        let (call, killed) = match step {
            Step::Call(call) => (call, false),
            Step::Killed(call, _) => (call, true),
            Step::Control(statement) => {
                let begin = self.now().clone();
                let expected = control(&mut self.open, statement, begin).map(|committed| {
                    self.committed = committed.unwrap_or_else(|| std::mem::take(&mut self.committed));
                    None
                });
                return if found == expected { Ok(vec![self.now().clone()]) } else { Err(expected) };
            }
        };
        let before = self.now().clone();
        let mut after = before.clone();
        let expected = form.call(&mut after, call);
        let counts =
            matches!(call, Call::Increment(_) | Call::Add(..) | Call::AddMany(_) | Call::Take(..) | Call::Get(_));
        match found {
            // No total has changed. A session that is killed does not enter a handler, such as that of a setup (1062), of SAVEPOINT (1305), of
            // SET TRANSACTION (1568) and of a roll-up (1690).
            Err(30021 | 1062 | 1305 | 1568 | RANGE) if killed => Ok(vec![before]),
            Err(1317 | 1105 | 1329) if killed => Ok(vec![before, after]),
            Ok(_) if killed && hides_kills && !counts => Ok(vec![after, before]),
            _ if found == expected => Ok(vec![after]),
            _ => Err(expected),
        }
    }
}

/// Runs the sequence on the server and in the model, and compares them after each step.
fn run(subject: &mut Subject<'_>, isolation: Isolation, steps: &Steps) -> TestCaseResult {
    let form = subject.form;
    subject.restart(isolation);
    let first = (form == Form::Column).then(|| ("1".to_owned(), Counter { total: 10, row: Some(10) }));
    let mut model = Model { committed: first.into_iter().collect(), open: None, connection: 0 };
    // Most calls of named counters need one.
    let slots = (form != Form::Fixed).then_some(4);
    let setup = (!form.records()).then(|| (0, Step::Call(Call::Setup(NAMES[0], slots, Some(10)))));
    for (connection, step) in setup.iter().chain(steps).chain(&[(0, Step::Control("ROLLBACK"))]) {
        let connection = if model.open.is_some() { model.connection } else { *connection };
        model.connection = connection;
        let found = subject.run(connection, step);
        let hides_kills = !subject.schema.server.is_mysql();
        let states = match model.step(form, hides_kills, step, found) {
            Ok(states) => states,
            Err(expected) => return Err(subject.fails("result", found, expected)),
        };
        let rows = form.read(&mut subject.callers[connection], &subject.table);
        match states.iter().find_map(|state| form.matching(state.clone(), &rows)) {
            Some(state) => *model.now() = state,
            None => return Err(subject.fails("rows", &rows, states)),
        }
        let rolled_up = matches!((step, found), (Step::Call(Call::Rollup(_)), Ok(_) | Err(30013)));
        if rolled_up && rows.values().any(|(total, _, row)| *total >= 0 && row.is_some_and(|row| row != *total)) {
            return Err(subject.fails("pending after a roll-up", &rows, "none"));
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
    sequences(cases, first_seed(), (isolation, form.steps()), |(isolation, steps)| {
        run(&mut subject.borrow_mut(), isolation, &steps)
    });
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
