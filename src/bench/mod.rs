//! Load from many connections, and what was measured.

mod contender;
mod load;
mod report;
mod rounds;

pub use contender::{Contender, NAMES};
pub use load::{Measured, run};
pub use report::{bars, json, markdown, table};
pub use rounds::{Rounds, RoundsError, Summary};

use std::time::Duration;

/// How a load is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Connections that all send at once.
    pub connections: u32,
    /// Slots of each counter.
    pub slots: u32,
    /// How many counters there are.
    pub counters: u32,
    /// How unevenly they are counted: the exponent of Zipf's distribution, 0 for evenly.
    pub zipf: f64,
    /// How long a transaction works between its increment and its commit; None is autocommit.
    pub hold: Option<Duration>,
    /// How long each load lasts. A statement that is under way then is finished.
    pub duration: Duration,
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = |n: u32| if n == 1 { "" } else { "s" };
        write!(
            f,
            "{} connection{}, {} counter{} of {} slot{}",
            self.connections,
            s(self.connections),
            self.counters,
            s(self.counters),
            self.slots,
            s(self.slots)
        )?;
        if self.counters > 1 {
            write!(f, ", Zipf {}", self.zipf)?;
        }
        match self.hold {
            Some(hold) => write!(f, ", transactions of {} ms", hold.as_millis()),
            None => write!(f, ", autocommit"),
        }
    }
}
