//! The benchmark: load from many connections, and reports of it.

mod chart;
mod contender;
mod limits;
mod load;
mod report;
mod rounds;

pub use chart::svg;
pub(crate) use chart::{GROUND, Layout, Panel, measured, panels};
pub use contender::{CONTENDERS, Contender, Kind, Statements};
pub use limits::{LOADS, Limits, Load, Run};
pub use load::{At, Measured, hidden_waits, run};
pub use report::{Comparison, NotMeasured, Report, bars, csv, json, markdown, not_measured, table};
pub(crate) use report::{cells, share, unit};
pub use rounds::{Latency, Rejected, Rounds, RoundsError, Summary};

use std::time::Duration;

use mysql::Opts;

use crate::server::Cluster;

/// The server or the cluster under load.
#[derive(Debug, Clone)]
pub struct Target {
    /// How to connect to each node, with the schema of the contenders. Of a server without a cluster, one.
    pub nodes: Vec<Opts>,
    /// The kind of the cluster. None for one server, which may be a node of a cluster.
    pub cluster: Option<Cluster>,
    /// The process ids of the nodes, if they are private servers.
    pub processes: Vec<u32>,
}

impl Target {
    /// One server.
    pub fn server(options: impl Into<Opts>, process: Option<u32>) -> Self {
        Self {
            nodes: vec![options.into()],
            cluster: None,
            processes: process.into_iter().collect(),
        }
    }
}

/// The parameters of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Connections that send statements at the same time.
    pub connections: u32,
    /// The nodes of a cluster that the connections spread over: the first ones of [`Target::nodes`]. Without a cluster, 1.
    pub nodes: u32,
    /// Slots of each counter.
    pub slots: u32,
    /// The number of counters.
    pub counters: u32,
    /// How unevenly the connections choose among the counters: the exponent of Zipf's distribution. 0 is evenly.
    pub zipf: f64,
    /// The time between the increment and the commit of a transaction. None is autocommit.
    pub hold: Option<Duration>,
    /// The amount that each increment adds. An application that counts in memory adds more than 1.
    pub amount: u32,
    /// The counts in a call of a contender that adds to many counters.
    pub batch: u32,
    /// The share of calls that read the counter, 0 to 1. The other calls increment it.
    pub reads: f64,
    /// Whether each call opens a connection, as programs without a pool do. Its time is a part of the latency.
    pub connect: bool,
    /// The duration of each load. Statements that have started by then complete.
    pub duration: Duration,
}

impl Setting {
    /// The setting without options.
    pub const DEFAULT: Self = Self {
        connections: 64,
        nodes: 1,
        slots: 100,
        counters: 1,
        zipf: 0.0,
        hold: None,
        amount: 1,
        batch: 100,
        reads: 0.0,
        connect: false,
        duration: Duration::from_secs(1),
    };

    /// How long the connections count before the measurement starts: as long as the measurement, at most a second.
    ///
    /// The first calls of a connection take longer, because each connection parses each routine. The connections of an
    /// application live longer than a load.
    pub fn warm_up(&self) -> Duration {
        self.duration.min(Duration::from_secs(1))
    }
}

impl Default for Setting {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = |n: u32| if n == 1 { "" } else { "s" };
        write!(
            f,
            "{} connection{}{}, {} counter{} of {} slot{}",
            self.connections,
            s(self.connections),
            on_nodes(self.nodes),
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
        if self.connect {
            write!(f, ", a new connection for each call")?;
        }
        match self.hold {
            Some(hold) => write!(f, ", transactions of {} ms", hold.as_millis()),
            None => write!(f, ", autocommit"),
        }
    }
}

/// The end of a text about connections on several nodes of a cluster.
pub(crate) fn on_nodes(nodes: u32) -> String {
    if nodes > 1 {
        format!(" on {nodes} nodes")
    } else {
        String::new()
    }
}

/// The middle of sorted figures, or the mean of the two in the middle.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    if figures.len() % 2 == 1 {
        figures[middle]
    } else {
        f64::midpoint(figures[middle - 1], figures[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(vec![7.0]), 7.0);
    }
}
