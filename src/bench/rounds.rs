//! Contenders in rounds: they take turns, so that other work of the machine affects all of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use hdrhistogram::Histogram;
use mysql::prelude::Queryable;
use mysql::{Conn, Params};

use super::contender::{Contender, Statements, filled_for, values};
use super::load::{Measured, run};
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
    #[error("{0}: {1}")]
    Options(&'static str, #[source] OptionsError),
    /// An error of the server or of the connection.
    #[error("{0}: {1}")]
    MySql(&'static str, #[source] mysql::Error),
    /// The total differs from the acknowledged increments.
    #[error(
        "{name} has lost count: the server acknowledged increments of {done}, but the total grew by {grown}"
    )]
    Lost {
        /// The contender.
        name: &'static str,
        /// The acknowledged increments.
        done: i64,
        /// The growth of the total.
        grown: i64,
    },
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
    /// Rejected calls of all rounds, by error number.
    pub rejected: BTreeMap<u16, u64>,
    /// The server's CPU time for a call, microseconds, the median of the rounds. None if it is unknown.
    pub server_cpu_us: Option<f64>,
    /// The row lock waits of all rounds.
    pub row_lock_waits: u64,
    /// The sum of the acknowledged increments of all rounds.
    pub done: u64,
    /// The growth of the total in all rounds.
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
    /// Creates and fills the tables of all contenders.
    ///
    /// # Errors
    /// Errors of the server, and a number of slots that the packages do not support.
    pub fn prepare(
        contenders: Vec<Contender>,
        target: Target,
        setting: Setting,
    ) -> Result<Self, RoundsError> {
        let entry = |contender: Contender| -> Result<Entry, RoundsError> {
            let statements = contender
                .statements(&setting)
                .map_err(|error| RoundsError::Options(contender.name, error))?;
            fill(&statements, &target, &setting)
                .map_err(|error| RoundsError::MySql(contender.name, error))?;
            Ok(Entry {
                contender,
                statements,
                measured: Vec::new(),
            })
        };
        let entries = contenders.into_iter().map(entry).collect::<Result<_, _>>()?;
        Ok(Self {
            target,
            setting,
            entries,
        })
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
            let (done, grown) = (measured.done as i64, measured.grown);
            if grown != done {
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
        for (error, times) in rounds.iter().flat_map(|one| &one.rejected) {
            *rejected.entry(*error).or_default() += times;
        }
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
            rejected,
            server_cpu_us: rounds
                .iter()
                .map(Measured::server_cpu_us)
                .collect::<Option<Vec<_>>>()
                .map(median),
            row_lock_waits: rounds.iter().map(|one| one.row_lock_waits).sum(),
            done: rounds.iter().map(|one| one.done).sum(),
            grown: rounds.iter().map(|one| one.grown).sum(),
            rounds: rounds.len(),
        }
    }
}

fn fill(statements: &Statements, target: &Target, setting: &Setting) -> Result<(), mysql::Error> {
    let mut connection = Conn::new(target.options.clone())?;
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
