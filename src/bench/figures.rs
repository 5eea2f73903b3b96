//! The figures of a benchmark, and what they depend on.

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

/// The middle of some figures, or the mean of the two in the middle.
pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    if figures.len() % 2 == 1 { figures[middle] } else { f64::midpoint(figures[middle - 1], figures[middle]) }
}

/// A number without decimals, with commas between thousands.
pub(super) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::{median, thousands};

    #[test]
    fn figures_are_in_the_middle_and_have_commas() {
        assert_eq!([vec![3.0, 1.0, 2.0], vec![4.0, 1.0, 2.0, 3.0]].map(median), [2.0, 2.5]);
        assert_eq!([0.0, 999.4, 1000.0, 1_234_567.0].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
