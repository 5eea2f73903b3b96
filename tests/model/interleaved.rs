//! Transactions of three connections whose statements are interleaved, at READ COMMITTED and REPEATABLE READ with old snapshots: each total
//! is that of the statements in the order in which they end, because their locks remain until the end of the transaction.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::{
    CONNECTIONS, Call, FIXED, Form, Isolation, Key, Outcome, Step, Steps, Subject, Transaction, Verb, control,
    first_seed, sequences, setting, steps,
};
use crate::support::*;

/// The sequences of a promise. Each waits for some locks for a second.
const CASES: u32 = 24;

/// The workers that run sequences at the same time, because most of the time they wait for locks.
const WORKERS: u64 = 12;

/// Calls that have returned no error, by the number of their statement.
type Calls = BTreeMap<usize, Call>;

struct Model {
    form: Form,
    isolation: Isolation,
    committed: Calls,
    open: [Option<Transaction<Calls>>; CONNECTIONS],
    statements: usize,
}

impl Model {
    /// The committed total, with what the open transaction of a connection has changed.
    fn total(&self, key: Key, connection: Option<usize>) -> i64 {
        let mut visible = self.committed.clone();
        if let Some(open) = connection.and_then(|connection| self.open[connection].as_ref()) {
            visible.extend(open.now.clone());
        }
        visible.values().fold(0, |total, call| match &call.verb {
            Verb::AddMany(entries) => {
                entries.iter().filter(|entry| entry.0 == key).map(|entry| entry.1).sum::<i64>() + total
            }
            _ if call.key != key => total,
            Verb::Increment => total + 1,
            Verb::Add(amount) | Verb::RowAdd(amount) => total + amount,
            Verb::Take(amount) => total - amount,
            Verb::Setup(_, value) | Verb::Reset(value, _) => value.unwrap_or(0),
            Verb::Delete => 0,
            _ => total,
        })
    }

    /// What a step returns that has returned `found`.
    fn step(&mut self, connection: usize, step: &Step, found: Outcome) -> Outcome {
        self.statements += 1;
        let call = match step {
            Step::Call(call) | Step::Killed(call, _) => call,
            Step::Control(statement) => {
                if let Some(calls) = control(&mut self.open[connection], statement, Calls::new())? {
                    self.committed.extend(calls);
                }
                return Ok(None);
            }
        };
        let total = self.total(call.key, Some(connection));
        let old = self.isolation[connection] == "REPEATABLE READ" && self.open[connection].is_some();
        match (&call.verb, found) {
            // The call waits for another transaction. It has changed nothing.
            (_, Err(1205)) => return found,
            (Verb::Compact | Verb::Rollup(_), Err(30013)) => return found,
            // 1020: MariaDB 11.8 rejects a statement of the application that is not exempt.
            (_, Err(1213)) | (Verb::RowAdd(_), Err(1020)) => {
                self.open[connection] = None;
                return found;
            }
            // What a read returns depends on the time of the snapshot.
            (Verb::Get, _) => return if old { found } else { Ok(Some(total)) },
            // A rejection does not: it is decided by what is committed.
            (Verb::Take(amount), _) if total < *amount => return Err(30016),
            (Verb::Add(amount), _) if self.form == Form::Bounded && total + amount < 0 => return Err(30016),
            _ => {}
        }
        let now = self.open[connection].as_mut().map_or(&mut self.committed, |open| &mut open.now);
        now.insert(self.statements, call.clone());
        Ok(None)
    }
}

/// Calls that only depend on the totals of existing counters.
fn calls(form: Form) -> BoxedStrategy<Call> {
    let depends = move |call: &Call| match call.verb {
        Verb::Setup(..) | Verb::RowDelete | Verb::RowReplace(_) | Verb::RowAdd(..0) => true,
        Verb::Delete => form != Form::Records,
        Verb::Reset(Some(..0), _) => form == Form::Bounded,
        _ => false,
    };
    form.calls().prop_filter("depends on more", move |call| !depends(call)).boxed()
}

/// Runs statements of three connections one after the other. A statement that waits for a lock ends with an error.
fn run(subject: &mut Subject<'_>, isolation: Isolation, steps: &Steps) -> TestCaseResult {
    let (form, (keys, ..)) = (subject.form, subject.form.names());
    subject.restart(isolation);
    let mut model = Model { form, isolation, committed: Calls::new(), open: Default::default(), statements: 0 };
    let first = if form.records() { Verb::Reset(Some(30), false) } else { Verb::Setup(FIXED, Some(30)) };
    let setup = keys.iter().map(|key| (0, Step::Call(Call { key, verb: first.clone() })));
    if form == Form::Column {
        subject.schema.run("INSERT INTO articles (id, views) VALUES (2, 0), (3, 0)");
    }
    let commits = (0..CONNECTIONS).map(|connection| (connection, Step::Control("COMMIT")));
    for (connection, step) in setup.chain(steps.iter().cloned()).chain(commits) {
        // Which calls a KILL ends is not a matter of locks.
        let step = if let Step::Killed(call, _) = step { Step::Call(call) } else { step };
        let found = subject.run(connection, true, &step);
        let expected = model.step(connection, &step, found);
        if found != expected {
            return Err(subject.fails("result", found, expected));
        }
    }
    // Maintenance that has waited for a lock may not be complete. A second call completes it.
    for key in keys {
        let verb = match form {
            Form::PerCounter | Form::Bounded => Verb::Resize(3),
            Form::Fixed => Verb::Resize(FIXED),
            Form::Records => Verb::Compact,
            Form::Column => Verb::Rollup(None),
        };
        let found = subject.run(0, true, &Step::Call(Call { key, verb }));
        // A column cannot have a negative total.
        if found != Ok(None) && (form != Form::Column || found != Err(30013)) {
            return Err(subject.fails("maintenance", found, "no error"));
        }
    }
    let read = form.read(&mut subject.observer, &subject.table);
    for key in keys {
        let (expected, (total, least, row)) = (model.total(key, None), read.get(*key).copied().unwrap_or((0, 0, None)));
        let pending = total >= 0 && row.is_some_and(|row| row != total);
        if total != expected || pending || form == Form::Bounded && least < 0 {
            return Err(subject.fails("rows", read, format!("{expected}, and nothing negative or pending")));
        }
    }
    Ok(())
}

pub fn equals_the_model(server: &Server, form: Form) {
    let all = setting("SLOTTED_MODEL_CASES").map_or(cases(CASES), |cases| cases as u32);
    let next = AtomicU64::new(first_seed() * WORKERS);
    at_once(WORKERS as usize, || {
        let mut subject = Subject::new(server, form);
        for caller in &mut subject.callers {
            caller.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a timeout");
        }
        let subject = RefCell::new(subject);
        let isolation = prop::array::uniform3(prop::sample::select(vec!["READ COMMITTED", "REPEATABLE READ"]));
        let (seed, steps) = (next.fetch_add(1, SeqCst), steps(calls(form), 8));
        sequences(all.div_ceil(WORKERS as u32), seed, &(isolation, steps), |(isolation, steps)| {
            run(&mut subject.borrow_mut(), isolation, &steps)
        });
    });
}
