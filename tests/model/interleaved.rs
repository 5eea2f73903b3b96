//! Transactions of three connections whose statements are interleaved, at READ COMMITTED and REPEATABLE READ with old snapshots: each total
//! is that of the statements in the order in which they end, because their locks remain until the end of the transaction.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::{panic, thread};

use mysql::prelude::Queryable;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::{
    BEGIN, CONNECTIONS, Call, Change, Form, Isolation, Key, Outcome, Step, Steps, Subject, Transaction, control,
    first_seed, sequences, setting,
};
use crate::support::{Server, cases};

/// The sequences of a promise. Each waits for some locks for a second.
const CASES: u32 = 24;

/// The workers that run sequences at the same time, because most of the time they wait for locks.
const WORKERS: u64 = 12;

/// What a call adds to a total, or the total that it sets.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Add(i64),
    Set(i64),
}

fn effects(call: &Call) -> Vec<(Key, Effect)> {
    match call {
        Call::Increment(key) => vec![(key, Effect::Add(1))],
        Call::Add(key, Some(amount)) | Call::Row(key, Change::Add(amount)) => vec![(key, Effect::Add(*amount))],
        Call::AddMany(entries) => entries.iter().map(|(key, amount)| (*key, Effect::Add(*amount))).collect(),
        Call::Take(key, Some(amount)) => vec![(key, Effect::Add(-amount))],
        Call::Reset(key, value, _) => vec![(key, Effect::Set(value.unwrap_or(0)))],
        Call::Delete(key) => vec![(key, Effect::Set(0))],
        _ => Vec::new(),
    }
}

/// Effects by the number of their statement.
type Effects = BTreeMap<usize, Vec<(Key, Effect)>>;

struct Model {
    form: Form,
    isolation: Isolation,
    committed: Effects,
    open: [Option<Transaction<Effects>>; CONNECTIONS],
    statements: usize,
}

impl Model {
    /// The committed total, with what the open transaction of a connection has changed.
    fn total(&self, key: Key, connection: Option<usize>) -> i64 {
        let mut visible = self.committed.clone();
        if let Some(open) = connection.and_then(|connection| self.open[connection].as_ref()) {
            visible.extend(open.now.clone());
        }
        let of_key = visible.into_values().flatten().filter(|(other, _)| *other == key);
        of_key.fold(0, |total, (_, effect)| match effect {
            Effect::Add(amount) => total + amount,
            Effect::Set(value) => value,
        })
    }

    /// What a step returns that has returned `found`.
    fn step(&mut self, connection: usize, step: &Step, found: Outcome) -> Outcome {
        self.statements += 1;
        let call = match step {
            Step::Call(call) | Step::Killed(call, _) => call,
            Step::Control(statement) => {
                if let Some(effects) = control(&mut self.open[connection], statement, Effects::new())? {
                    self.committed.extend(effects);
                }
                return Ok(None);
            }
        };
        match found {
            // The call waits for another transaction. It has changed nothing.
            Err(1205) => return found,
            // MariaDB 11.8 rejects a statement of the application that is not exempt (1020).
            Err(1213) | Err(1020) if found == Err(1213) || matches!(call, Call::Row(..)) => {
                self.open[connection] = None;
                return found;
            }
            Err(30013) if matches!(call, Call::Rollup(_) | Call::Compact(_)) => return found,
            _ => {}
        }
        if let Some(error) = self.form.rejected(call) {
            return Err(error);
        }
        match call {
            _ if !self.form.records() && !self.form.keys()[..2].contains(&call.keys()[0]) => return Err(30003),
            Call::Add(_, None) => return Err(1048),
            // What a read returns depends on the time of the snapshot.
            Call::Get(_) if self.isolation[connection] == "REPEATABLE READ" && self.open[connection].is_some() => {
                return found;
            }
            Call::Get(key) => return Ok(Some(self.total(key, Some(connection)))),
            // A rejection does not: it is decided by what is committed.
            Call::Take(key, amount) if self.total(key, Some(connection)) < amount.unwrap_or(0) => return Err(30016),
            Call::Add(key, Some(amount @ ..0))
                if self.form == Form::Bounded && self.total(key, Some(connection)) < -amount =>
            {
                return Err(30016);
            }
            _ => {}
        }
        let now = self.open[connection].as_mut().map_or(&mut self.committed, |open| &mut open.now);
        now.insert(self.statements, effects(call));
        Ok(None)
    }
}

/// Calls that only depend on the totals of existing counters.
fn calls(form: Form) -> BoxedStrategy<Call> {
    let depends = move |call: &Call| match call {
        Call::Setup(..) | Call::Row(_, Change::Delete | Change::Replace(_) | Change::Add(..0)) => true,
        Call::Delete(_) => form != Form::Records,
        Call::Reset(_, Some(..0), _) => form == Form::Bounded,
        _ => false,
    };
    form.calls().prop_filter("depends on more", move |call| !depends(call)).boxed()
}

/// The calls and transactions of three connections, in any order.
fn steps(form: Form) -> impl Strategy<Value = Steps> {
    let call = calls(form).prop_map(Step::Call).boxed();
    let saved = prop::collection::vec(call.clone(), 0..3).prop_map(|calls| {
        [vec![Step::Control("SAVEPOINT s1")], calls, vec![Step::Control("ROLLBACK TO SAVEPOINT s1")]].concat()
    });
    let part = prop_oneof![2 => call.clone().prop_map(|call| vec![call]), 1 => saved];
    let begin = prop::sample::select(&BEGIN[..]).prop_map(Step::Control);
    let end = prop::sample::select(vec!["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]).prop_map(Step::Control);
    let transaction = (begin, prop::collection::vec(part, 1..4), end)
        .prop_map(|(begin, parts, end)| [vec![begin], parts.concat(), vec![end]].concat());
    let work = prop_oneof![1 => call.prop_map(|call| vec![call]), 1 => transaction];
    let programs = prop::array::uniform3(prop::collection::vec(work, 0..4));
    (programs, prop::collection::vec(0..CONNECTIONS, 40)).prop_map(|(programs, order)| {
        let mut programs = programs.map(|program| program.into_iter().flatten());
        // At the end what is left: a connection has at most three transactions of 14 steps.
        let order = order.into_iter().chain((0..CONNECTIONS).cycle().take(CONNECTIONS * 3 * 14));
        order.filter_map(|connection| Some((connection, programs[connection].next()?))).collect()
    })
}

/// Runs statements of three connections one after the other. A statement that waits for a lock ends with an error.
fn run(subject: &mut Subject<'_>, isolation: Isolation, steps: &Steps) -> TestCaseResult {
    let form = subject.form;
    subject.restart(isolation);
    let mut model = Model { form, isolation, committed: Effects::new(), open: Default::default(), statements: 0 };
    let slots = (form != Form::Fixed).then_some(4);
    let keys = &form.keys()[..2];
    for key in keys {
        let first = if form.records() { Call::Reset(key, Some(30), false) } else { Call::Setup(key, slots, Some(30)) };
        assert_eq!(subject.run(0, &Step::Call(first)), Ok(None));
        model.statements += 1;
        model.committed.insert(model.statements, vec![(key, Effect::Set(30))]);
    }
    if form == Form::Column {
        subject.schema.run("INSERT INTO articles (id, views) VALUES (2, 0), (3, 0)");
    }
    let commits = (0..CONNECTIONS).map(|connection| (connection, Step::Control("COMMIT")));
    for (connection, step) in steps.iter().cloned().chain(commits) {
        let found = subject.run(connection, &step);
        let expected = model.step(connection, &step, found);
        if found != expected {
            return Err(subject.fails("result", found, expected));
        }
    }
    // Maintenance that has waited for a lock may not be complete. A second call completes it.
    for key in keys {
        let call = match form {
            Form::PerCounter | Form::Bounded => Call::Resize(key, Some(3)),
            Form::Fixed => Call::Resize(key, None),
            Form::Records => Call::Compact(key),
            Form::Column => Call::Rollup(None),
        };
        let found = subject.run(0, &Step::Call(call));
        // A column cannot have a negative total.
        if found != Ok(None) && (form != Form::Column || found != Err(30013)) {
            return Err(subject.fails("maintenance", found, "no error"));
        }
    }
    let read = form.read(&mut subject.observer, &subject.table);
    let totals: BTreeMap<_, _> =
        read.iter().filter(|(_, read)| read.0 != 0).map(|(key, read)| (key.clone(), read.0)).collect();
    let valid = form.keys().iter().filter(|key| !key.contains("NULL"));
    let expected: BTreeMap<_, _> =
        valid.map(|key| (key.to_string(), model.total(key, None))).filter(|(_, total)| *total != 0).collect();
    if totals != expected {
        return Err(subject.fails("totals", totals, expected));
    }
    let pending = |(total, _, row): &(i64, i64, Option<i64>)| *total >= 0 && row.is_some_and(|row| row != *total);
    if read.values().any(|found| pending(found) || form == Form::Bounded && found.1 < 0) {
        return Err(subject.fails("rows", read, "nothing negative or pending"));
    }
    Ok(())
}

pub fn equals_the_model(server: &Server, form: Form) {
    let all = setting("SLOTTED_MODEL_CASES").map_or(cases(CASES), |cases| cases as u32);
    thread::scope(|scope| {
        let worker = |number: u64| {
            scope.spawn(move || {
                let mut subject = Subject::new(server, form);
                for caller in &mut subject.callers {
                    caller.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a timeout");
                }
                let subject = RefCell::new(subject);
                let isolation = prop::array::uniform3(prop::sample::select(vec!["READ COMMITTED", "REPEATABLE READ"]));
                let seed = first_seed() * WORKERS + number;
                sequences(all.div_ceil(WORKERS as u32), seed, (isolation, steps(form)), |(isolation, steps)| {
                    run(&mut subject.borrow_mut(), isolation, &steps)
                });
            })
        };
        let workers: Vec<_> = (0..WORKERS).map(worker).collect();
        // The message of a worker is that of the promise.
        workers.into_iter().for_each(|worker| worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
    });
}
