//! The benchmark: contenders, their load by many connections, the proof of each total, and the report.

mod chart;
mod contender;
mod figures;
mod load;
mod report;
mod rounds;

use std::time::Duration;

pub use chart::svg;
pub use contender::{BUILT_IN, Contender, ContenderError, Statement, description};
pub use figures::{Report, Summary};
pub use load::{BenchError, Measured, SCHEMA, run};
pub use report::{html, table};
pub use rounds::compare;

/// The parameters of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Connections that increment at the same time, from 1.
    pub connections: u32,
    /// Slots of a counter, from 1.
    pub slots: u32,
    /// The time that a transaction works before the increment, and between the increment and its commit. None is autocommit.
    pub hold: Option<[Duration; 2]>,
    /// The duration of the measurement. Statements that have begun by then complete.
    pub duration: Duration,
}

/// The middle of some figures, or the mean of the two in the middle.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    if figures.len() % 2 == 1 { figures[middle] } else { f64::midpoint(figures[middle - 1], figures[middle]) }
}

/// A number without decimals, with commas between thousands.
fn thousands(number: f64) -> String {
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
