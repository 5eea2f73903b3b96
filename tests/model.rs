//! Random sequences of calls, compared with a model: a map of totals.
//!
//! `.._equal_the_model` proves what each call returns and leaves, at each isolation level, in transactions with savepoints and when it is
//! killed: one connection after the other. `interleaved_..` proves that no count is lost between transactions that overlap. The sequences
//! are the same in each run. SLOTTED_MODEL_CASES runs more of them, and SLOTTED_MODEL_SEED runs others.

mod interleaved;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::{env, thread};

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseResult, TestError, TestRng, TestRunner};
use slotted::package::{Options, Package};

use crate::support::*;

/// The sequences of a promise in a test run. They take a few seconds.
const CASES: u32 = 40;

/// The fixed number of slots in the model.
const FIXED: i64 = 4;

/// The key columns as arguments of a call: a name, or the columns of a record.
type Key = &'static str;

/// The error of a bounded slot that would be negative, on both families.
const CHECK: u16 = 3819;

/// A number that is out of range, in an assignment or in an expression.
const RANGE: u16 = 1264;

/// A call, or a statement of the application. Its arguments are valid: bad_input and others prove which ones are rejected.
#[derive(Clone, Debug)]
struct Call {
    key: Key,
    verb: Verb,
}

#[derive(Clone, Debug)]
enum Verb {
    Setup(i64, Option<i64>),
    Increment,
    Add(i64),
    /// Has keys of its own.
    AddMany(Vec<(Key, i64)>),
    Take(i64),
    Reset(Option<i64>, bool),
    Resize(i64),
    Compact,
    Delete,
    Get,
    /// Moves the counts of all keys.
    Rollup(Option<i64>),
    /// The application changes the row of the column.
    RowAdd(i64),
    RowDelete,
    RowReplace(Option<i64>),
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

impl Form {
    /// Whether a session ends its transaction after a KILL of the call, because the call has several statements.
    fn is_rolled_back(self, call: &Call) -> bool {
        self == Self::Column && matches!(call.verb, Verb::Rollup(_) | Verb::Compact | Verb::Reset(..))
    }

    fn package(self) -> Package {
        let fixed = |options: &mut Options| options.subject.set_slots(FIXED as u32);
        match self {
            Self::PerCounter => package(|_| {}),
            Self::Fixed => package(fixed),
            Self::Bounded => bounded(|_| {}),
            Self::Records => keyed(fixed),
            Self::Column => of_column("articles.views", "id BIGINT", fixed),
        }
    }

    /// The keys, what the names of the routines and of the view begin with, and the SQL of a key as the arguments of a call have it.
    fn names(self) -> (&'static [Key], &'static str, &'static str) {
        const NAME: &str = "CONCAT('\\'', counter_name, '\\'')";
        match self {
            Self::PerCounter | Self::Fixed => (&["'a'", "'b'"], "counter", NAME),
            Self::Bounded => (&["'a'", "'b'"], "bounded_counter", NAME),
            Self::Records => (&["1, 7", "1, 8"], "slotted_counter", "CONCAT(record_type, ', ', record_id)"),
            Self::Column => (&["1", "2", "3"], "articles_views", "CAST(id AS CHAR)"),
        }
    }

    fn records(self) -> bool {
        matches!(self, Self::Records | Self::Column)
    }

    fn sql(self, Call { key, verb }: &Call) -> String {
        let (_, prefix, _) = self.names();
        let or_null = |number: &Option<i64>| number.map_or("NULL".to_owned(), |number| number.to_string());
        let call = match verb {
            Verb::Setup(slots, value) => format!("setup({key}, NULL, {slots}, {})", or_null(value)),
            Verb::Increment => format!("increment({key})"),
            Verb::Add(amount) => format!("add({key}, {amount})"),
            Verb::AddMany(entries) => {
                let entries: Vec<_> = entries.iter().map(|(key, amount)| format!("[{key}, {amount}]")).collect();
                format!("add_many('[{}]')", entries.join(", "))
            }
            Verb::Take(amount) => format!("take({key}, {amount})"),
            Verb::Reset(value, _) if self.records() => format!("reset({key}, {})", or_null(value)),
            Verb::Reset(value, restart) => format!("reset({key}, {}, {restart})", or_null(value)),
            Verb::Resize(slots) => format!("resize({key}, {slots})"),
            Verb::Compact => format!("compact({key})"),
            Verb::Delete => format!("delete({key})"),
            Verb::Rollup(records) => format!("rollup({})", or_null(records)),
            Verb::Get => return format!("SELECT {prefix}_get({key})"),
            Verb::RowAdd(amount) => {
                return format!("UPDATE articles SET views = COALESCE(views, 0) + ({amount}) WHERE id = {key}");
            }
            Verb::RowDelete => return format!("DELETE FROM articles WHERE id = {key}"),
            Verb::RowReplace(value) => {
                return format!("REPLACE INTO articles (id, views) VALUES ({key}, {})", or_null(value));
            }
        };
        format!("CALL {prefix}_{call}")
    }

    /// What a call does to the counters, and what it returns. After an error, the counters are as before.
    fn call(self, counters: &mut Counters, call: &Call) -> Outcome {
        let now = counters.get(call.key).copied();
        if now.is_none() && !self.records() && !matches!(call.verb, Verb::Setup(..)) {
            return Err(30003);
        }
        // A record without rows has the total 0.
        let Counter { mut total, mut row } = now.unwrap_or_default();
        let before = row;
        let rejected = |counter: &Counter| counter.total < 0 && counter.row.is_some_and(|row| row != counter.total);
        match &call.verb {
            Verb::Setup(_, Some(..0)) | Verb::Reset(Some(..0), _) if self == Self::Bounded => return Err(CHECK),
            Verb::Setup(..) if now.is_some() => return Err(30004),
            Verb::Setup(_, value) | Verb::Reset(value, _) => total = value.unwrap_or(0),
            Verb::Increment => total += 1,
            Verb::Add(amount) if self == Self::Bounded && total + amount < 0 => return Err(30016),
            Verb::Add(amount) => total += amount,
            Verb::AddMany(entries) => {
                for (key, amount) in entries {
                    counters.entry(key.to_string()).or_default().total += amount;
                }
                return Ok(None);
            }
            Verb::Take(amount) if total < *amount => return Err(30016),
            Verb::Take(amount) => total -= amount,
            Verb::Resize(_) => {}
            Verb::Compact if rejected(&now.unwrap_or_default()) => return Err(30013),
            Verb::Compact => {}
            Verb::Delete if row.is_none() => {
                counters.remove(call.key);
                return Ok(None);
            }
            Verb::Delete => total = row.unwrap_or(0),
            Verb::Get => return Ok(Some(total)),
            Verb::Rollup(_) if counters.values().any(rejected) => return Err(30013),
            Verb::Rollup(_) => return Ok(None),
            Verb::RowAdd(amount) if row.is_some_and(|row| row + amount < 0) => return Err(RANGE),
            Verb::RowAdd(amount) => row = row.map(|row| row + amount),
            Verb::RowDelete => row = None,
            Verb::RowReplace(value) => row = Some(value.unwrap_or(0)),
        }
        total += row.unwrap_or(0) - before.unwrap_or(0);
        counters.insert(call.key.to_owned(), Counter { total, row });
        Ok(None)
    }

    /// What the rows of a connection have.
    fn read(self, connection: &mut Conn, table: &str) -> Read {
        let (count, row, from) = match self {
            Self::Column => {
                let column = "SELECT id, COALESCE(views, 0), COALESCE(views, 0) FROM articles";
                let slots = format!("SELECT id, count, NULL AS view FROM {table}");
                ("count", "MAX(view)", format!("({slots} UNION ALL {column}) AS parts"))
            }
            Self::Records => ("count", "NULL", table.to_owned()),
            _ => ("counter", "NULL", table.to_owned()),
        };
        let (_, _, key) = self.names();
        let query = format!("SELECT {key}, CAST(SUM({count}) AS SIGNED), MIN({count}), {row} FROM {from} GROUP BY 1");
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
            let moved = counter.row.is_some() && row == Some(total);
            let negative = self == Self::Bounded && least < 0;
            if total != counter.total || !(row == counter.row || moved) || negative {
                return None;
            }
            counter.row = row;
        }
        (read.len() == counters.len()).then_some(counters)
    }

    fn calls(self) -> BoxedStrategy<Call> {
        let (keys, ..) = self.names();
        let slots = if self == Self::Fixed { FIXED..FIXED + 1 } else { 1..9 };
        // A column cannot have a negative total.
        let least = if self == Self::Column { -60i64 } else { -20 };
        let value = prop::option::weighted(0.9, least / 4..100);
        let reset = (value.clone(), any::<bool>()).prop_map(|(value, restart)| Verb::Reset(value, restart));
        let mut verbs = vec![
            (4, Just(Verb::Increment).boxed()),
            (4, (least..60).prop_map(Verb::Add).boxed()),
            (2, reset.boxed()),
            (1, Just(Verb::Delete).boxed()),
            (2, Just(Verb::Get).boxed()),
        ];
        if self.records() {
            let entries = prop::collection::vec((prop::sample::select(keys), -5i64..20), 0..4);
            verbs.extend([(3, entries.prop_map(Verb::AddMany).boxed()), (2, Just(Verb::Compact).boxed())]);
        } else {
            let setup = (slots.clone(), value).prop_map(|(slots, value)| Verb::Setup(slots, value));
            verbs.extend([(2, setup.boxed()), (2, slots.prop_map(Verb::Resize).boxed())]);
        }
        match self {
            Self::Bounded => verbs.push((6, (1i64..60).prop_map(Verb::Take).boxed())),
            Self::Column => verbs.extend([
                (4, prop::option::of(1i64..4).prop_map(Verb::Rollup).boxed()),
                (2, (-5i64..20).prop_map(Verb::RowAdd).boxed()),
                (1, Just(Verb::RowDelete).boxed()),
                (1, prop::option::weighted(0.8, 0i64..100).prop_map(Verb::RowReplace).boxed()),
            ]),
            _ => {}
        }
        // The first key more often, so that calls meet.
        let key = prop_oneof![Just(keys[0]), prop::sample::select(keys)];
        (key, prop::strategy::Union::new_weighted(verbs)).prop_map(|(key, verb)| Call { key, verb }).boxed()
    }
}

/// Steps in any order. The weights of a call and of a START TRANSACTION are 26 and `begin`.
fn steps(calls: BoxedStrategy<Call>, begin: u32) -> impl Strategy<Value = Steps> {
    let savepoints = ["SAVEPOINT s1", "SAVEPOINT s2", "ROLLBACK TO s1", "ROLLBACK TO s2", "RELEASE SAVEPOINT s1"];
    let step = prop_oneof![
        20 => calls.clone().prop_map(Step::Call),
        6 => (calls, 0..900u64).prop_map(|(call, after)| Step::Killed(call, after)),
        begin => prop::sample::select(&BEGIN[..]).prop_map(Step::Control),
        2 => prop::sample::select(vec!["COMMIT", "ROLLBACK"]).prop_map(Step::Control),
        5 => prop::sample::select(savepoints.to_vec()).prop_map(Step::Control),
    ];
    prop::collection::vec((0..CONNECTIONS, step), 1..40)
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
            if verb == "ROLLBACK TO" {
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
    /// The calls of all sequences that a KILL has ended.
    killed: usize,
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
            killed: 0,
        }
    }

    /// Ends all transactions and deletes all counters.
    fn restart(&mut self, isolation: Isolation) {
        self.script.clear();
        for (number, (caller, level)) in self.callers.iter_mut().zip(isolation).enumerate() {
            // With safe updates, a session rejects a change of rows that are not chosen by a key (1175).
            let safe = format!("SET SESSION sql_safe_updates = {}", number == 2);
            for setting in [format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"), safe] {
                caller.query_drop(format!("ROLLBACK; {setting}")).expect("a setting");
                self.script += &format!("{number}: {setting};\n");
            }
        }
        self.schema.run(&format!("DELETE FROM {}", self.table));
        if self.form == Form::Column {
            self.schema.run("DELETE FROM articles; INSERT INTO articles (id, views) VALUES (1, 10)");
        }
    }

    /// Runs a step, and adds it to the script.
    fn run(&mut self, connection: usize, in_transaction: bool, step: &Step) -> Outcome {
        let statement = match step {
            Step::Call(call) | Step::Killed(call, _) => self.form.sql(call),
            Step::Control(statement) => (*statement).to_owned(),
        };
        let caller = &mut self.callers[connection];
        let call = |caller: &mut Conn| match caller.query_first::<Option<i64>, _>(&statement) {
            Ok(value) => Ok(value.flatten()),
            // Both families have one number for what is the same.
            error => match error_of(error).0 {
                4025 => Err(CHECK),
                1690 => Err(RANGE),
                number => Err(number),
            },
        };
        let (how, result) = match step {
            Step::Killed(killed, after) => {
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
                // As the manuals say: the maintenance of a record can have begun a transaction, and that of a column has several statements.
                if !in_transaction || self.form.is_rolled_back(killed) {
                    caller.query_drop("ROLLBACK").expect("a rollback");
                }
                self.killed += usize::from(result == Err(1317));
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
        let (_, prefix, key) = self.form.names();
        let query = format!("SELECT {key}, total FROM {prefix}_totals{only}");
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
        if killed && self.open.is_some() && form.is_rolled_back(call) {
            self.open = None;
            return Ok(vec![self.committed.clone()]);
        }
        let before = self.now().clone();
        let mut after = before.clone();
        let expected = form.call(&mut after, call);
        let counts = matches!(call.verb, Verb::Increment | Verb::Add(_) | Verb::AddMany(_) | Verb::Take(_) | Verb::Get);
        match found {
            // No total has changed. A killed session enters no handler, such as those of a setup (1062), SAVEPOINT (1305) and a roll-up.
            Err(30021 | 1062 | 1305 | RANGE) if killed => Ok(vec![before]),
            // A KILL that ends MySQL's search for a key is 1175 with safe updates.
            Err(1317 | 1105 | 1329 | 1175) if killed => Ok(vec![before, after]),
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
    let setup = Call { key: "'a'", verb: Verb::Setup(FIXED, Some(10)) };
    let setup = (!form.records()).then_some((0, Step::Call(setup)));
    for (connection, step) in setup.iter().chain(steps).chain(&[(0, Step::Control("ROLLBACK"))]) {
        let connection = if model.open.is_some() { model.connection } else { *connection };
        model.connection = connection;
        let found = subject.run(connection, model.open.is_some(), step);
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
        let rolled_up = matches!((step, found), (Step::Call(Call { verb: Verb::Rollup(_), .. }), Ok(_) | Err(30013)));
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
fn sequences<S: Strategy>(cases: u32, seed: u64, strategy: &S, test: impl Fn(S::Value) -> TestCaseResult) {
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
    match runner.run(strategy, test) {
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
    let strategy = (isolation, steps(form.calls(), 3));
    // Whether a KILL meets a call is chance.
    for seed in first_seed()..first_seed() + 10 {
        sequences(cases, seed, &strategy, |(isolation, steps)| run(&mut subject.borrow_mut(), isolation, &steps));
        if subject.borrow().killed > 0 {
            return;
        }
    }
    panic!("no KILL has ended a call");
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
