//! Ratios of contenders over many runs, each run on new servers. The figures of one server differ from those of the next
//! one by a tenth and more, so a single run is not enough to compare contenders. Pure.

use std::time::Duration;

use askama::Template;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use super::report::{percent, times};
use super::{Contender, Measured, Rounds, Setting, median};

/// A load, and the contenders whose ratios it measures.
#[derive(Debug, Clone)]
pub struct Load {
    /// The name in `--loads`.
    pub name: &'static str,
    /// The heading in the report.
    pub title: &'static str,
    setting: Setting,
    contenders: &'static [&'static str],
    /// The contenders that the others are compared to, and by which figure.
    bases: &'static [(&'static str, Figure)],
}

/// The figure of a round that a ratio compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    Rate,
    /// The 99th percentile of the latency of increments.
    P99,
}

use Figure::{P99, Rate};

/// All loads, in the order of a report.
pub static LOADS: [Load; 8] = [
    Load {
        name: "connections-64",
        title: "64 connections, 100 slots",
        setting: Setting::DEFAULT,
        contenders: &[
            "uncontended",
            "uncontended-call",
            "counters-call",
            "counters-query",
            "queries-call",
            "single-row",
            "counters",
            "counters-fixed",
            "slotted_counters",
        ],
        bases: &[("uncontended", Rate), ("single-row", Rate)],
    },
    Load {
        name: "plain-statements",
        title: "64 connections, 100 slots, statements of queries.sql",
        setting: Setting::DEFAULT,
        contenders: &["uncontended", "queries", "counters-plain", "counters-fixed-plain"],
        bases: &[("uncontended", Rate)],
    },
    Load {
        name: "published",
        title: "64 connections, 100 slots, published designs",
        setting: Setting::DEFAULT,
        contenders: &[
            "uncontended",
            "published-upsert",
            "article-2012",
            "counters",
            "counters-fixed",
        ],
        bases: &[("published-upsert", Rate), ("article-2012", Rate)],
    },
    Load {
        name: "transactions",
        title: "Transactions of 5 ms",
        setting: Setting {
            hold: Some(Duration::from_millis(5)),
            ..Setting::DEFAULT
        },
        contenders: &[
            "uncontended",
            "counters-call",
            "counters-query",
            "single-row",
            "counters",
            "counters-fixed",
        ],
        bases: &[("uncontended", Rate), ("single-row", Rate)],
    },
    Load {
        name: "connections-250",
        title: "250 connections, 512 slots",
        setting: Setting {
            connections: 250,
            slots: 512,
            ..Setting::DEFAULT
        },
        contenders: &["uncontended", "counters-call", "counters-fixed"],
        bases: &[("uncontended", Rate)],
    },
    Load {
        name: "slot-selection",
        title: "250 connections, 100 slots",
        setting: Setting {
            connections: 250,
            ..Setting::DEFAULT
        },
        contenders: &["counters", "counters-random"],
        bases: &[("counters-random", Rate), ("counters-random", P99)],
    },
    Load {
        name: "connections-1",
        title: "1 connection",
        setting: Setting {
            connections: 1,
            ..Setting::DEFAULT
        },
        contenders: &["counters-call", "single-row", "counters-fixed"],
        bases: &[("single-row", Rate)],
    },
    Load {
        name: "reads",
        title: "Reads, 1 connection",
        // With a single counter in the table, the plain SUM of counters-call may be a table scan.
        setting: Setting {
            connections: 1,
            counters: 100,
            reads: 1.0,
            ..Setting::DEFAULT
        },
        contenders: &["counters-call", "counters-query", "counters"],
        bases: &[("counters-call", Rate)],
    },
];

/// The loads as values of `--loads`.
impl ValueEnum for Load {
    fn value_variants<'a>() -> &'a [Self] {
        &LOADS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.title))
    }
}

/// A row of the report.
struct Ratio {
    of: &'static str,
    to: &'static str,
    figure: Figure,
}

impl Load {
    /// How each contender is loaded, and for how long.
    pub fn setting(&self, duration: Duration) -> Setting {
        Setting {
            duration,
            ..self.setting.clone()
        }
    }

    /// The contenders.
    ///
    /// # Panics
    /// If a name is not in the table of contenders.
    pub fn contenders(&self) -> Vec<Contender> {
        let named = |name: &&str| Contender::named(name).expect("a name of the table");
        self.contenders.iter().map(named).collect()
    }

    /// The ratios of a run, in the order of the report. None if the run has no round.
    pub fn ratios(&self, rounds: &Rounds) -> Option<Vec<f64>> {
        let ratio = |Ratio { of, to, figure }| {
            rounds.ratio(of, to, |measured: &Measured| match figure {
                Rate => measured.rate(),
                P99 => measured.increments.value_at_quantile(0.99) as f64,
            })
        };
        self.rows().map(ratio).collect()
    }

    fn rows(&self) -> impl Iterator<Item = Ratio> {
        let Self {
            contenders, bases, ..
        } = *self;
        bases.iter().flat_map(move |&(to, figure)| {
            let others = contenders.iter().filter(move |&&of| of != to);
            others.map(move |&of| Ratio { of, to, figure })
        })
    }
}

impl Ratio {
    fn base(&self) -> String {
        match self.figure {
            Rate => self.to.to_owned(),
            P99 => format!("{}, p99", self.to),
        }
    }

    /// The median, the minimum and the maximum of the runs.
    fn cell(&self, runs: Vec<f64>) -> String {
        let text = if self.to == "uncontended" { percent } else { times };
        let (least, most) = runs.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &run| {
            (least.min(run), most.max(run))
        });
        format!("{} ({} to {})", text(median(runs)), text(least), text(most))
    }
}

/// The ratios that a load of a run has measured on a server.
#[derive(Debug, Clone)]
pub struct Run {
    /// The index of the load in [`Limits::loads`].
    pub load: usize,
    /// The index of the server in [`Limits::servers`].
    pub server: usize,
    /// In the order of [`Load::ratios`].
    pub ratios: Vec<f64>,
}

/// The result of all runs.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How often each load was measured on each server.
    pub times: u32,
    /// The measured rounds of each run.
    pub rounds: u32,
    /// The duration of a contender in a round.
    pub duration: Duration,
    /// The loads.
    pub loads: Vec<Load>,
    /// The names of the servers.
    pub servers: Vec<String>,
    /// All runs of all loads on all servers.
    pub runs: Vec<Run>,
}

#[derive(Template)]
#[template(path = "bench/limits.md")]
struct Page<'a> {
    limits: &'a Limits,
    seconds: f64,
    sections: Vec<Section>,
}

struct Section {
    title: &'static str,
    setting: Setting,
    table: String,
}

impl Limits {
    /// The report in Markdown. It has the median of the runs for each ratio, with the minimum and the maximum.
    pub fn markdown(&self) -> String {
        let section = |(at, load): (usize, &Load)| Section {
            title: load.title,
            setting: load.setting.clone(),
            table: self.table(at, load),
        };
        let page = Page {
            limits: self,
            seconds: self.duration.as_secs_f64(),
            sections: self.loads.iter().enumerate().map(section).collect(),
        };
        let text = page.render().expect("a template of text renders");
        format!("{}\n", text.trim_end())
    }

    fn table(&self, load: usize, of: &Load) -> String {
        let mut table = Table::new();
        table.load_style(ASCII_MARKDOWN);
        table.set_header(
            ["", "to"]
                .into_iter()
                .chain(self.servers.iter().map(String::as_str)),
        );
        for (at, ratio) in of.rows().enumerate() {
            let cell = |server| {
                let runs = self
                    .runs
                    .iter()
                    .filter(|run| (run.load, run.server) == (load, server));
                ratio.cell(runs.map(|run| run.ratios[at]).collect())
            };
            let cells = (0..self.servers.len()).map(cell);
            table.add_row([ratio.of.to_owned(), ratio.base()].into_iter().chain(cells));
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_compare_contenders_of_the_table() {
        for load in LOADS.iter() {
            let names: Vec<_> = load.contenders().iter().map(|contender| contender.name).collect();
            assert!(
                load.bases.iter().all(|(base, _)| names.contains(base)),
                "{}",
                load.name
            );
        }
    }

    #[test]
    fn a_cell_has_the_median_and_the_range_of_the_runs() {
        let ratio = |to, figure| Ratio {
            of: "counters",
            to,
            figure,
        };
        let runs = || vec![0.76, 0.44, 0.611];
        assert_eq!(ratio("uncontended", Rate).cell(runs()), "61 % (44 % to 76 %)");
        assert_eq!(ratio("single-row", Rate).cell(runs()), "0.61x (0.44x to 0.76x)");
        assert_eq!(ratio("counters-random", P99).base(), "counters-random, p99");
    }
}
