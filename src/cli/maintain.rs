//! `slotted resize`, `reset`, `compact` and `delete`: call a routine of maintenance until it succeeds.

use std::fmt;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Params, Value};

use super::connection::Connection;
use super::install::database;
use super::output::{note, outln};
use super::package::installed;
use super::{Interrupted, Outcome, confirmed, hinted, interrupt, progress};
use crate::connect::{Session, cause};
use crate::package::{self, KeyType, Kind, Package, Prefix, Routine, slot_count};

/// The time between two calls.
const PAUSE: Duration = Duration::from_millis(100);

/// The errors after which a call is repeated: a deadlock, a conflict with another node of a cluster, and a lock wait time-out.
/// Source: MySQL manual, "How to Minimize and Handle Deadlocks"; measured on Galera and Group Replication.
pub(super) const REPEATED: [u16; 4] = [1205, 1213, 1180, GROUP_CONFLICT];

/// A conflict with another node of Group Replication.
const GROUP_CONFLICT: u16 = 3101;

/// Change the number of slots of a counter.
///
/// Calls counter_resize until it succeeds: a call can time out while a transaction has locked a slot, or conflict with another
/// node of a cluster. Each call continues where the previous one ended. The total does not change.
#[derive(Debug, Args)]
pub struct Resize {
    /// The name of the counter
    name: String,

    /// The new number of slots
    #[arg(value_parser = slot_count)]
    slots: u32,

    #[command(flatten)]
    subject: Subject,
}

/// Set the total of a counter or record.
///
/// Calls counter_reset or slotted_counter_reset until it succeeds. On a node of a cluster, the slots are reset one after the other.
#[derive(Debug, Args)]
pub struct Reset {
    #[command(flatten)]
    key: Key,

    /// The new total
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    value: i64,

    /// Also set the start_date of a named counter to now
    #[arg(long)]
    restart: bool,

    #[command(flatten)]
    subject: Subject,
}

/// Move the counts of a record into one slot.
///
/// Calls slotted_counter_compact until it succeeds. The total does not change.
#[derive(Debug, Args)]
pub struct Compact {
    #[command(flatten)]
    key: Key,

    #[command(flatten)]
    subject: Subject,
}

/// Delete a counter or record.
///
/// Calls counter_delete or slotted_counter_delete until it succeeds, after a question with the total.
#[derive(Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    key: Key,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    subject: Subject,
}

/// What identifies a counter or record.
#[derive(Debug, Args)]
struct Key {
    /// The name of the counter, or the values of the key columns of a record; 0x and hexadecimal digits are bytes
    #[arg(required = true, allow_negative_numbers = true)]
    key: Vec<String>,
}

/// The package, and how long the command tries.
#[derive(Debug, Args)]
struct Subject {
    /// The first part of the names of the routines, if the database has several packages
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<Prefix>,

    /// The time after which the command ends without success, seconds. A call that still waits is ended on the server
    #[arg(long, value_name = "S", default_value = "60", value_parser = timeout)]
    timeout: Duration,

    #[command(flatten)]
    connection: Connection,
}

fn timeout(text: &str) -> Result<Duration, String> {
    crate::connect::seconds(text).ok_or_else(|| "a number of seconds from 0.1 to 3600 is needed".into())
}

impl Resize {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut counter = Counter::find(self.subject, &[self.name], Routine::Resize)?;
        counter.call(&[self.slots.into()], "resized")
    }
}

impl Reset {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut counter = Counter::find(self.subject, &self.key.key, Routine::Reset)?;
        let mut arguments = vec![Value::from(self.value)];
        if counter.package.options.kind == Kind::Counters {
            arguments.push(self.restart.into());
        } else if self.restart {
            return Err(hinted("a record has no start_date", "omit --restart"));
        }
        counter.call(&arguments, "reset")
    }
}

impl Compact {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        Counter::find(self.subject, &self.key.key, Routine::Compact)?.call(&[], "compacted")
    }
}

impl Delete {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut counter = Counter::find(self.subject, &self.key.key, Routine::Delete)?;
        if !self.yes {
            let before = counter.state()?;
            let name = &counter.name;
            note!("This deletes {name}, {before}.");
            if !confirmed("its name to delete it", name)? {
                return Ok(Outcome::Differs);
            }
        }
        counter.call(&[], "deleted")
    }
}

/// A counter or record of a database.
struct Counter {
    /// The nodes of a cluster. They execute the calls in turn.
    nodes: Vec<Session>,
    package: Package,
    routine: Routine,
    /// As in messages.
    name: String,
    key: Vec<Value>,
}

/// The slots and the total of a counter or record.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Missing,
    Found { slots: u64, total: String },
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no slots"),
            Self::Found { slots, total } => write!(f, "{slots} slots, total {total}"),
        }
    }
}

impl Counter {
    /// The counter of a package with the routine, and with as many key columns as `key` has values.
    fn find(subject: Subject, key: &[String], routine: Routine) -> anyhow::Result<Self> {
        interrupt::limit(subject.timeout);
        let mut nodes = subject.connection.connect_all()?;
        // If the server takes no second connection, which would end a call that waits, the call ends by itself.
        let seconds = subject.timeout.as_secs() + 2;
        for node in &mut nodes {
            node.query_drop(format!(
                "SET SESSION innodb_lock_wait_timeout = CAST(LEAST(@@SESSION.innodb_lock_wait_timeout, {seconds}) AS UNSIGNED),
                     SESSION lock_wait_timeout = CAST(LEAST(@@SESSION.lock_wait_timeout, {seconds}) AS UNSIGNED)"
            ))?;
        }
        let database = database(&mut nodes[0])?;
        let mut packages: Vec<Package> = installed(&mut nodes[0])?
            .into_iter()
            .map(|one| one.package)
            .collect();
        let all = packages.len();
        packages.retain(|package| {
            let options = &package.options;
            package.routine(routine).is_some()
                && options.key.0.len() == key.len()
                && subject
                    .prefix
                    .as_ref()
                    .is_none_or(|prefix| *prefix == options.prefix)
        });
        let package = match packages.len() {
            1 => packages.remove(0),
            0 => {
                return Err(hinted(
                    format!(
                        "none of the {all} packages of the database {database} has a routine {} with a key of {} values",
                        routine.suffix(),
                        key.len()
                    ),
                    "give another --database, or a value for each column of the key, as slotted status prints them",
                ));
            }
            _ => {
                let prefixes: Vec<_> = packages
                    .iter()
                    .map(|package| package.options.prefix.name())
                    .collect();
                return Err(hinted(
                    format!(
                        "{} packages of the database {database} can have it",
                        packages.len()
                    ),
                    format!("give --prefix with one of: {}", prefixes.join(", ")),
                ));
            }
        };
        let values = key.iter().zip(&package.options.key.0);
        let values = values.map(|(value, column)| match column.kind {
            KeyType::Binary(..) if value.starts_with("0x") => match value.parse()? {
                package::Value::Binary(bytes) => Ok(Value::Bytes(bytes)),
                _ => unreachable!("0x begins bytes"),
            },
            _ => Ok(value.as_str().into()),
        });
        let mut counter = Self {
            nodes,
            key: values.collect::<anyhow::Result<_>>()?,
            name: key.join(", "),
            package,
            routine,
        };
        if counter.state()? == State::Missing {
            let subject = match counter.package.options.kind {
                Kind::Counters => "counter",
                Kind::SlottedCounters => "record",
            };
            return Err(hinted(
                format!("the database {database} has no {subject} {}", counter.name),
                "slotted status lists those with the highest totals",
            ));
        }
        Ok(counter)
    }

    fn state(&mut self) -> anyhow::Result<State> {
        self.state_on(0)
    }

    fn state_on(&mut self, node: usize) -> anyhow::Result<State> {
        let columns = self
            .package
            .options
            .key
            .0
            .iter()
            .map(|column| format!("{} = ?", column.name));
        let query = format!(
            "SELECT CAST(COALESCE(slots, 0) AS UNSIGNED), COALESCE(CAST(total AS CHAR), 0) FROM {} WHERE {}",
            self.package.totals,
            columns.collect::<Vec<_>>().join(" AND ")
        );
        let row: Option<(u64, String)> = self.nodes[node]
            .exec_first(query, self.key.clone())
            .with_context(|| format!("cannot read {}", self.package.totals.name()))?;
        Ok(row.map_or(State::Missing, |(slots, total)| State::Found { slots, total }))
    }

    /// Calls the routine until it succeeds. Then waits until all nodes have as many slots as the one that it was called on.
    fn call(&mut self, arguments: &[Value], done: &str) -> anyhow::Result<Outcome> {
        let before = self.state()?;
        let routine = self.package.routine(self.routine).expect("found by it");
        let values = [self.key.as_slice(), arguments].concat();
        let call = format!("CALL {routine}({})", vec!["?"; values.len()].join(", "));
        let begin = Instant::now();
        let nodes = &mut self.nodes;
        let (mut calls, mut node) = (0, 0);
        let at_once = self.routine == Routine::Resize && nodes.len() > 1;
        let mut work = || {
            // Each node retires its own slots before it changes those of others: a node that is behind still increments its
            // slots after another node has retired them, and these increments fail (3101).
            if at_once {
                calls = nodes.len();
                let resize = |node: &mut Session| execute(node, &call, &values);
                let results: Vec<_> = thread::scope(|scope| {
                    let started: Vec<_> = nodes
                        .iter_mut()
                        .map(|node| scope.spawn(|| resize(node)))
                        .collect();
                    started
                        .into_iter()
                        .map(|one| one.join().expect("no panic"))
                        .collect()
                });
                if let Some(done) = results.iter().position(Result::is_ok) {
                    node = done;
                    return Ok(None);
                }
            }
            loop {
                // A node that is behind cannot change the slots of another node, but that node can.
                node = calls % nodes.len();
                calls += 1;
                let stopped = || interrupt::stop().load(Ordering::Relaxed);
                match execute(&mut nodes[node], &call, &values) {
                    Ok(()) => return Ok(None),
                    Err(mysql::Error::MySqlError(error)) if stopped() || REPEATED.contains(&error.code) => {
                        if stopped() {
                            return Ok(Some(error));
                        }
                    }
                    Err(error) => return Err(error),
                }
                thread::sleep(PAUSE);
            }
        };
        let result = progress::waiting(&format!("{}: calling {}", self.name, routine.name()), &mut work);
        let error = result.map_err(|error| anyhow::anyhow!("CALL {routine} failed: {}", cause(&error)))?;
        let seconds = begin.elapsed().as_secs_f64();
        let times = if calls == 1 {
            "1 call".into()
        } else {
            format!("{calls} calls")
        };
        if let Some(error) = error {
            // The call that was ended has made progress, or nothing.
            self.nodes[node].complete();
            if let Ok(state) = self.state_on(node) {
                note!("{}: {state}; to complete it, run the command again", self.name);
            }
            let reason = interrupt::reason().unwrap_or_else(|| Interrupted.into());
            if reason.is::<Interrupted>() {
                return Err(reason);
            }
            return Err(hinted(
                format!(
                    "no call has succeeded: {times} in {seconds:.1} s, the last one with ERROR {} ({}): {}",
                    error.code, error.state, error.message
                ),
                match error.code {
                    GROUP_CONFLICT => {
                        "other nodes change the slots all the time, and this node is behind; give one --url for each node"
                    }
                    _ => {
                        "a transaction has locked the slots, or other sessions change them all the time: end the transaction, or run the \
                         command again with a higher --timeout"
                    }
                },
            ));
        }
        // The other nodes can be behind this one.
        let after = self.state_on(node)?;
        outln!("{}: {done} by {times} in {seconds:.1} s", self.name)?;
        outln!("before: {before}")?;
        outln!("after:  {after}")?;
        self.wait_for_nodes(node, &after)?;
        Ok(Outcome::Fine)
    }

    /// Waits until the other nodes have applied the change of a node.
    fn wait_for_nodes(&mut self, changed: usize, wanted: &State) -> anyhow::Result<()> {
        let slots = |state: &State| match state {
            State::Missing => 0,
            State::Found { slots, .. } => *slots,
        };
        for node in (0..self.nodes.len()).filter(|node| *node != changed) {
            let number = node + 1;
            loop {
                let state = self.state_on(node).with_context(|| {
                    format!("node {number} does not say whether it has applied the change")
                })?;
                // A compacted record gets new slots at once.
                if self.routine == Routine::Compact || slots(&state) == slots(wanted) {
                    outln!("node {number}: {state}")?;
                    break;
                }
                if interrupt::stop().load(Ordering::Relaxed) {
                    return Err(hinted(
                        format!("node {number} has not applied the change: {state}"),
                        format!(
                            "node {} has completed the change, and each node of its cluster applies it when it receives it; a URL of another \
                             cluster has other slots",
                            changed + 1
                        ),
                    ));
                }
                thread::sleep(PAUSE);
            }
        }
        Ok(())
    }
}

fn execute(node: &mut Session, call: &str, values: &[Value]) -> mysql::Result<()> {
    node.exec_drop(call, Params::Positional(values.to_vec()))
}
