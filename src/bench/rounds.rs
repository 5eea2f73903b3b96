//! Contenders side by side: in rounds, so that what the machine does besides hits all of them alike.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use hdrhistogram::Histogram;
use mysql::prelude::Queryable;
use mysql::{Conn, Params};

use super::contender::{Contender, filled_for, values};
use super::load::{Measured, run};
use super::{Setting, Target};

/// A comparison that is under way.
#[derive(Debug)]
pub struct Rounds {
    target: Target,
    /// How they are loaded.
    pub setting: Setting,
    contenders: Vec<Contender>,
    measured: Vec<Vec<Measured>>,
}

/// Why a comparison ended.
#[derive(Debug, thiserror::Error)]
pub enum RoundsError {
    /// The server, or the way to it.
    #[error("{0}: {1}")]
    MySql(&'static str, #[source] mysql::Error),
    /// A total is not what was acknowledged: the contender cannot count.
    #[error("{name} has lost count: increments of {done} were acknowledged, and the total grew by {grown}")]
    Lost {
        /// Which contender.
        name: &'static str,
        /// What was acknowledged.
        done: i64,
        /// How much the total grew.
        grown: i64,
    },
}

/// All rounds of one contender.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Summary {
    /// Which contender.
    pub name: &'static str,
    /// Increments and reads a second, the median of the rounds.
    pub per_second: f64,
    /// The rate as a multiple of the floor's in the same round, the median; None without a floor.
    pub to_floor: Option<f64>,
    /// The same for the single row.
    pub to_single_row: Option<f64>,
    /// How long increments take; None where there were none.
    pub increments: Option<Latency>,
    /// How long reads take; None where there were none.
    pub reads: Option<Latency>,
    /// Refused calls of all rounds, by the number of the error.
    pub refused: BTreeMap<u16, u64>,
    /// What a call costs the server of the time of its processors, microseconds, the median of the rounds; None where the
    /// server's process is not ours.
    pub server_cpu_us: Option<f64>,
    /// How often a row lock was waited for, in all rounds.
    pub row_lock_waits: u64,
    /// What the increments that were acknowledged add up to, in all rounds.
    pub done: u64,
    /// How much the total has grown by them.
    pub grown: i64,
    /// How many rounds there were.
    pub rounds: usize,
}

/// How long calls of one kind take, milliseconds.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Latency {
    /// What half of the calls did not exceed, the median of the rounds.
    pub p50_ms: f64,
    /// The same for 99 of 100 calls.
    pub p99_ms: f64,
    /// The longest of all rounds.
    pub max_ms: f64,
}

impl Rounds {
    /// Makes and fills the tables of all contenders.
    ///
    /// # Errors
    /// Those of the server.
    pub fn prepare(
        contenders: Vec<Contender>,
        target: Target,
        setting: Setting,
    ) -> Result<Self, RoundsError> {
        for contender in &contenders {
            fill(contender, &target, &setting).map_err(|error| RoundsError::MySql(contender.name, error))?;
        }
        Ok(Self {
            target,
            setting,
            measured: vec![Vec::new(); contenders.len()],
            contenders,
        })
    }

    /// Loads each contender once. Where `counts` is false it is a warm-up: proved, but not measured. The order turns
    /// with each round. `begins` hears of each load before it is made. Setting `interrupted` ends the round early, and
    /// the load that it has cut short is not measured.
    ///
    /// # Errors
    /// Those of the server, and a total that is not what was acknowledged.
    pub fn round(
        &mut self,
        counts: bool,
        interrupted: &AtomicBool,
        mut begins: impl FnMut(&'static str),
    ) -> Result<(), RoundsError> {
        let turn = self.measured.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..self.contenders.len() {
            let at = (at + turn) % self.contenders.len();
            let contender = &self.contenders[at];
            if interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
            begins(contender.name);
            let mysql = |error| RoundsError::MySql(contender.name, error);
            let measured = run(contender, &self.target, &self.setting, interrupted).map_err(mysql)?;
            let (name, done, grown) = (contender.name, measured.done as i64, measured.grown);
            if grown != done {
                return Err(RoundsError::Lost { name, done, grown });
            }
            if counts && !interrupted.load(Ordering::Relaxed) {
                self.measured[at].push(measured);
            }
        }
        Ok(())
    }

    /// What was measured so far, a line for each contender that was.
    pub fn summaries(&self) -> Vec<Summary> {
        let of = |name: &str| {
            let at = self
                .contenders
                .iter()
                .position(|contender| contender.name == name)?;
            Some(&self.measured[at])
        };
        let (floor, single_row) = (of("floor"), of("single-row"));
        self.measured
            .iter()
            .filter(|rounds| !rounds.is_empty())
            .map(|rounds| summary(rounds, floor, single_row))
            .collect()
    }
}

fn summary(
    rounds: &[Measured],
    floor: Option<&Vec<Measured>>,
    single_row: Option<&Vec<Measured>>,
) -> Summary {
    let ratio = |to: Option<&Vec<Measured>>| {
        let pairs = rounds.iter().zip(to?);
        Some(pairs.map(|(one, to)| one.rate() / to.rate()).collect::<Vec<_>>())
            .filter(|ratios| !ratios.is_empty())
            .map(median)
    };
    let mut refused = BTreeMap::new();
    for (error, times) in rounds.iter().flat_map(|one| &one.refused) {
        *refused.entry(*error).or_default() += times;
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
    Summary {
        name: rounds[0].name,
        per_second: median(rounds.iter().map(Measured::rate).collect()),
        to_floor: ratio(floor),
        to_single_row: ratio(single_row),
        increments: latency(&|one| &one.increments),
        reads: latency(&|one| &one.reads),
        refused,
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

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    if figures.len() % 2 == 1 {
        figures[middle]
    } else {
        f64::midpoint(figures[middle - 1], figures[middle])
    }
}

fn fill(contender: &Contender, target: &Target, setting: &Setting) -> Result<(), mysql::Error> {
    let mut connection = Conn::new(target.options.clone())?;
    for statement in &contender.setup {
        connection.query_drop(statement)?;
    }
    if let Some(fill) = &contender.fill {
        connection.query_drop("START TRANSACTION")?;
        for who in filled_for(fill, setting) {
            connection.exec_drop(&fill.sql, Params::Positional(values(fill, who, setting)))?;
        }
        connection.query_drop("COMMIT")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(vec![7.0]), 7.0);
    }
}
