//! The figures of a benchmark, and what they depend on.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::load::{BenchError, at};
use crate::server::Version;

/// The result of a benchmark.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Report {
    /// The properties of the server and of the client that the figures depend on.
    #[serde(serialize_with = "as_map")]
    pub environment: Vec<(&'static str, String)>,
    /// Slots of a counter.
    pub slots: u32,
    /// The time before the increment in its transaction, milliseconds. None is autocommit.
    pub work_ms: Option<u64>,
    /// The time between increment and commit.
    pub hold_ms: Option<u64>,
    /// The duration of a load, seconds.
    pub seconds: f64,
    /// One for each number of connections and contender.
    pub results: Vec<Summary>,
}

fn as_map<S: serde::Serializer>(pairs: &[(&'static str, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (name, value)))
}

/// The properties of a server and of this machine.
///
/// # Errors
/// Errors of the server or of the connection.
pub(super) fn environment(connection: &mut Conn) -> Result<Vec<(&'static str, String)>, BenchError> {
    const VARIABLES: [&str; 5] =
        ["version", "log_bin", "sync_binlog", "innodb_flush_log_at_trx_commit", "innodb_buffer_pool_size"];
    let failed = at("cannot read the settings of the server");
    let mut environment = vec![("server", Version::of(connection).map_err(&failed)?.to_string())];
    for name in VARIABLES {
        let value: Option<String> = connection.query_first(format!("SELECT @@GLOBAL.{name}")).map_err(&failed)?;
        environment.push((name, value.unwrap_or_default()));
    }
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    environment.push(("cores of the client", cores.to_string()));
    Ok(environment)
}

impl Report {
    /// What was measured: `one counter of 100 slots, autocommit, median of 3 rounds of 1 s`.
    pub fn setting(&self) -> String {
        let hold = match self.work_ms.zip(self.hold_ms) {
            None => "autocommit".to_owned(),
            Some((0, after)) => format!("transactions of {after} ms"),
            Some((before, after)) => format!("transactions of {before} ms before and {after} ms after the increment"),
        };
        let rounds = self.results.iter().map(|one| one.rounds).max().unwrap_or(0);
        let s = |number: u32| if number == 1 { "" } else { "s" };
        format!(
            "one counter of {} slot{}, {hold}, median of {rounds} round{} of {} s",
            self.slots,
            s(self.slots),
            s(rounds as u32),
            self.seconds
        )
    }
}

/// The result of a contender over all rounds.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Summary {
    /// The contender.
    pub contender: String,
    /// The connections that incremented at the same time.
    pub connections: u32,
    /// Increments per second, the median of the rounds. A batch counts as its increments.
    pub per_second: f64,
    /// The same of the slowest round.
    pub lowest: f64,
    /// The same of the fastest round.
    pub highest: f64,
    /// The ratio to `uncontended` in the same round, the median of the rounds. None if it was not measured.
    pub to_uncontended: Option<f64>,
    /// The 50th percentile of the time of a call, milliseconds, the median of the rounds.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The time of a read after the load, milliseconds, the median of the rounds.
    pub read_ms: f64,
    /// The CPU time of the server for an increment, microseconds, the median of the rounds. None if it is on another machine.
    pub cpu_us: Option<f64>,
    /// The calls of all rounds that failed with 1213, 1205 or 1020, and were repeated.
    pub retries: u64,
    /// The counts of all rounds that the server has acknowledged.
    pub acknowledged: u64,
    /// The growth of the total in all rounds, which is the same.
    pub grown: i64,
    /// The number of rounds.
    pub rounds: usize,
}
