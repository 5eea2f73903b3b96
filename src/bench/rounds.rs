//! Contenders in rounds: they take turns, so that other work of the machine affects all of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use hdrhistogram::Histogram;
use mysql::prelude::Queryable;
use mysql::{Conn, Params};

use super::contender::{Contender, Statements, filled_for, values};
use super::load::{At, Measured, run};
use super::{Setting, Target, median};
use crate::package::OptionsError;

/// A comparison of contenders.
#[derive(Debug)]
pub struct Rounds {
    target: Target,
    /// The parameters of each load.
    pub setting: Setting,
    entries: Vec<Entry>,
}

/// A contender and its loads, one for each round.
#[derive(Debug)]
struct Entry {
    contender: Contender,
    statements: Statements,
    measured: Vec<Measured>,
}

/// Why a comparison ended.
#[derive(Debug, thiserror::Error)]
pub enum RoundsError {
    /// A package cannot have the number of slots of the setting.
    #[error("{0}")]
    Options(&'static str, #[source] OptionsError),
    /// An error of the server or of the connection.
    #[error("{0}")]
    MySql(&'static str, #[source] mysql::Error),
    /// The total differs from the acknowledged increments.
    #[error("{name} has lost count: the server acknowledged increments of {done}, but {}", grew(.grown))]
    Lost {
        /// The contender.
        name: &'static str,
        /// The acknowledged increments.
        done: i64,
        /// The growth of the total on each node.
        grown: Vec<i64>,
    },
}

fn grew(grown: &[i64]) -> String {
    if let [grown] = grown {
        return format!("the total grew by {grown}");
    }
    let grown: Vec<_> = grown.iter().map(i64::to_string).collect();
    format!("the total grew by {} on the nodes", grown.join(", "))
}

/// Calls that the server rejected with the same error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Rejected {
    /// The error number.
    pub error: u16,
    /// Where.
    pub at: At,
    /// The number of calls.
    pub calls: u64,
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = match self.at {
            At::Statement => "",
            At::Commit => " at COMMIT",
        };
        write!(f, "{}{at}: {}", self.error, self.calls)
    }
}

/// The result of a contender over all rounds.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Summary {
    /// The contender.
    pub name: &'static str,
    /// Increments and reads per second, the median of the rounds.
    pub per_second: f64,
    /// The same figure of the slowest round.
    pub least_per_second: f64,
    /// The same figure of the fastest round.
    pub most_per_second: f64,
    /// The ratio of the rate to that of `uncontended` in the same round, the median of the rounds. None if `uncontended`
    /// was not measured.
    pub to_uncontended: Option<f64>,
    /// The same for `single-row`.
    pub to_single_row: Option<f64>,
    /// The latency of increments. None without increments.
    pub increments: Option<Latency>,
    /// The latency of reads. None without reads.
    pub reads: Option<Latency>,
    /// Rejected calls of all rounds, by error number and place.
    pub rejected: Vec<Rejected>,
    /// The share of the rejected calls in all calls of all rounds, 0 to 1.
    pub rejected_share: f64,
    /// The server's CPU time for a call, microseconds, the median of the rounds. None if it is unknown.
    pub server_cpu_us: Option<f64>,
    /// The row lock waits of all rounds. None if the server is not a private one, because the server counts the waits of all
    /// sessions.
    pub row_lock_waits: Option<u64>,
    /// The mean number of connections that wait for a row lock, the median of the rounds. Sampled. None if the account has no
    /// privilege to read it, or if the loads are too short for so many connections.
    pub waiting_sessions: Option<f64>,
    /// How long after a load the last node of a cluster has applied all its increments, milliseconds, the median of the
    /// rounds. None without a cluster.
    pub behind_ms: Option<f64>,
    /// The sum of the acknowledged increments of all rounds.
    pub done: u64,
    /// The growth of the total in all rounds, which is the same on all nodes.
    pub grown: i64,
    /// The number of rounds.
    pub rounds: usize,
}

/// The latency of increments or of reads, milliseconds.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Latency {
    /// The 50th percentile of a round, the median of the rounds.
    pub p50_ms: f64,
    /// The 99th percentile of a round, the median of the rounds.
    pub p99_ms: f64,
    /// The longest call of all rounds.
    pub max_ms: f64,
}

impl Rounds {
    /// A comparison without contenders.
    pub fn new(target: Target, setting: Setting) -> Self {
        Self {
            target,
            setting,
            entries: Vec::new(),
        }
    }

    /// A comparison of contenders, see [`add`](Self::add).
    ///
    /// # Errors
    /// Errors of the server, and a number of slots that the packages do not support.
    pub fn prepare(
        contenders: Vec<Contender>,
        target: Target,
        setting: Setting,
    ) -> Result<Self, RoundsError> {
        let mut rounds = Self::new(target, setting);
        for contender in contenders {
            rounds.add(contender)?;
        }
        Ok(rounds)
    }

    /// Creates and fills the tables of a contender.
    ///
    /// # Errors
    /// Errors of the server, and a number of slots that the packages do not support. The contender is then not in the
    /// comparison.
    pub fn add(&mut self, contender: Contender) -> Result<(), RoundsError> {
        let statements = contender
            .statements(&self.setting)
            .map_err(|error| RoundsError::Options(contender.name, error))?;
        fill(&statements, &self.target, &self.setting)
            .map_err(|error| RoundsError::MySql(contender.name, error))?;
        self.entries.push(Entry {
            contender,
            statements,
            measured: Vec::new(),
        });
        Ok(())
    }

    /// Loads each contender once. With `counts` false the round checks the totals, but is not in the result. Each round
    /// begins with the next contender. `begins` is called before each load. Setting `interrupted` ends the round early,
    /// without the result of the interrupted load.
    ///
    /// # Errors
    /// Errors of the server, and a total that differs from the acknowledged increments.
    pub fn round(
        &mut self,
        counts: bool,
        interrupted: &AtomicBool,
        mut begins: impl FnMut(&'static str),
    ) -> Result<(), RoundsError> {
        let turn = self
            .entries
            .iter()
            .map(|entry| entry.measured.len())
            .max()
            .unwrap_or(0);
        for at in 0..self.entries.len() {
            let at = (at + turn) % self.entries.len();
            let entry = &mut self.entries[at];
            if interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
            let name = entry.contender.name;
            begins(name);
            let measured = run(&entry.statements, &self.target, &self.setting, interrupted)
                .map_err(|error| RoundsError::MySql(name, error))?;
            let done = measured.done as i64;
            if measured.grown.iter().any(|&grown| grown != done) {
                let grown = measured.grown;
                return Err(RoundsError::Lost { name, done, grown });
            }
            if counts && !interrupted.load(Ordering::Relaxed) {
                entry.measured.push(measured);
            }
        }
        Ok(())
    }

    /// The result so far, for each contender with a measured round.
    pub fn summaries(&self) -> Vec<Summary> {
        self.entries
            .iter()
            .filter(|entry| !entry.measured.is_empty())
            .map(|entry| self.summary(entry))
            .collect()
    }

    /// The median over the rounds of the ratio of a figure of two contenders in the same round. None if one of them was
    /// not measured.
    pub fn ratio(&self, of: &str, to: &str, figure: impl Fn(&Measured) -> f64) -> Option<f64> {
        let measured = |name: &str| {
            let entry = self.entries.iter().find(|entry| entry.contender.name == name)?;
            Some(&entry.measured)
        };
        let pairs = measured(of)?.iter().zip(measured(to)?);
        let ratios: Vec<_> = pairs.map(|(of, to)| figure(of) / figure(to)).collect();
        (!ratios.is_empty()).then(|| median(ratios))
    }

    fn summary(
        &self,
        Entry {
            contender,
            measured: rounds,
            ..
        }: &Entry,
    ) -> Summary {
        let mut rejected = BTreeMap::new();
        for (rejection, times) in rounds.iter().flat_map(|one| &one.rejected) {
            *rejected.entry(*rejection).or_default() += times;
        }
        let (tried, not_done) = rounds
            .iter()
            .map(Measured::tried)
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let latency = |of: &dyn Fn(&Measured) -> &Histogram<u64>| {
            let at = |quantile| {
                rounds
                    .iter()
                    .map(move |one| of(one).value_at_quantile(quantile) as f64 / 1000.0)
            };
            rounds.iter().any(|one| !of(one).is_empty()).then(|| Latency {
                p50_ms: median(at(0.5).collect()),
                p99_ms: median(at(0.99).collect()),
                max_ms: at(1.0).fold(0.0, f64::max),
            })
        };
        let median_of_all = |figure: fn(&Measured) -> Option<f64>| {
            let figures: Option<Vec<_>> = rounds.iter().map(figure).collect();
            figures.map(median)
        };
        let rates = || rounds.iter().map(Measured::rate);
        Summary {
            name: contender.name,
            per_second: median(rates().collect()),
            least_per_second: rates().fold(f64::INFINITY, f64::min),
            most_per_second: rates().fold(0.0, f64::max),
            to_uncontended: self.ratio(contender.name, "uncontended", Measured::rate),
            to_single_row: self.ratio(contender.name, "single-row", Measured::rate),
            increments: latency(&|one| &one.increments),
            reads: latency(&|one| &one.reads),
            rejected: rejected
                .into_iter()
                .map(|((error, at), calls)| Rejected { error, at, calls })
                .collect(),
            rejected_share: not_done as f64 / tried.max(1) as f64,
            server_cpu_us: median_of_all(Measured::server_cpu_us),
            row_lock_waits: rounds.iter().map(|one| one.row_lock_waits).sum(),
            waiting_sessions: median_of_all(|one| one.waiting),
            behind_ms: median_of_all(|one| Some(one.behind?.as_secs_f64() * 1e3)),
            done: rounds.iter().map(|one| one.done).sum(),
            grown: rounds.iter().filter_map(|one| one.grown.first()).sum(),
            rounds: rounds.len(),
        }
    }
}

fn fill(statements: &Statements, target: &Target, setting: &Setting) -> Result<(), mysql::Error> {
    // The other nodes of a cluster get the tables and rows from the first one.
    let mut connection = Conn::new(target.nodes[0].clone())?;
    for statement in &statements.setup {
        connection.query_drop(statement)?;
    }
    if let Some(fill) = &statements.fill {
        connection.query_drop("START TRANSACTION")?;
        for who in filled_for(fill, setting) {
            connection.exec_drop(
                &fill.sql,
                Params::Positional(values(fill, who, setting, || who.counter)),
            )?;
        }
        connection.query_drop("COMMIT")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::RoundsError;

    #[test]
    fn a_total_that_differs_is_named_for_each_node() {
        let lost = |grown: &[i64]| {
            let (name, grown) = ("single-row", grown.to_vec());
            RoundsError::Lost { name, done: 7, grown }.to_string()
        };
        let start =
            "single-row has lost count: the server acknowledged increments of 7, but the total grew by ";
        assert_eq!(lost(&[6]), format!("{start}6"));
        assert_eq!(lost(&[7, 7, 6]), format!("{start}7, 7, 6 on the nodes"));
    }
}
