//! Load from many connections, and what was measured.

mod chart;
mod contender;
mod load;
mod report;
mod rounds;

pub use chart::svg;
pub use contender::{Contender, NAMES, PARTS};
pub use load::{Measured, run};
pub use report::{Comparison, Report, bars, csv, json, markdown, table};
pub use rounds::{Latency, Rounds, RoundsError, Summary};

use std::time::Duration;

use mysql::Opts;

/// The server that is loaded.
#[derive(Debug, Clone)]
pub struct Target {
    /// How to connect, with the schema that the contenders are in.
    pub options: Opts,
    /// The number of its process, where it is one of ours.
    pub process: Option<u32>,
}

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
    /// How much each increment adds: an application that counts in memory and writes now and then.
    pub amount: u32,
    /// The share of calls that read the counter instead, 0 to 1.
    pub reads: f64,
    /// How long each load lasts. A statement that is under way then is finished.
    pub duration: Duration,
}

impl Setting {
    /// How long the connections count before the clock starts: as long as after it, a second at most.
    ///
    /// The first calls of a connection cost more: it parses the routine, 0.6 to 1.2 milliseconds on all servers, and its
    /// memory is not in the processors' caches yet. With 250 connections in loads of 0.4 and of 4 seconds, without a
    /// warm-up but for one call, `counters-fixed` reached 0.82 and 0.92 of the floor on MariaDB 10.11, 0.76 and 0.91 on
    /// 11.8. An application's connections live longer than a load.
    pub fn warm_up(&self) -> Duration {
        self.duration.min(Duration::from_secs(1))
    }
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            connections: 64,
            slots: 100,
            counters: 1,
            zipf: 0.0,
            hold: None,
            amount: 1,
            reads: 0.0,
            duration: Duration::from_secs(3),
        }
    }
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
        if self.amount > 1 {
            write!(f, ", {} added per call", self.amount)?;
        }
        if self.reads > 0.0 {
            write!(f, ", {:.0} % reads", self.reads * 100.0)?;
        }
        match self.hold {
            Some(hold) => write!(f, ", transactions of {} ms", hold.as_millis()),
            None => write!(f, ", autocommit"),
        }
    }
}
