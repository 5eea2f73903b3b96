//! `slotted limits`: compares ways to count over many runs, each on new servers.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::file::NewFile;
use super::output::{note, out};
use super::{Outcome, bench, hinted, interrupt, private, progress};
use crate::bench::{LOADS, Load, Rounds, Run, Target};
use crate::server::{PrivateServer, Program};

/// Compare contenders of the bench over many runs, each on new private servers.
///
/// The figures of one server differ from those of the next one by a tenth and more. This command therefore measures each
/// load many times, each time on a new private server with durable settings, and reports the median ratios with their
/// minimum and maximum, in Markdown. With the default options, a run takes about three minutes for each server.
#[derive(Debug, Args)]
pub struct Limits {
    /// The program of a server to measure, mysqld or mariadbd; can be given several times [default: the server that bench
    /// starts]
    #[arg(long = "server", value_name = "PATH")]
    servers: Vec<PathBuf>,

    /// The loads to measure [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_enum)]
    loads: Vec<Load>,

    /// The number of runs
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// The number of measured rounds of a run, after one that is not measured
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// The duration of a contender in a round, after a warm-up of the same length and at most a second
    #[arg(long, value_name = "S", default_value_t = 0.4, value_parser = bench::seconds)]
    seconds: f64,

    /// Write the report to a file [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The schema of the contenders.
const SCHEMA: &str = "slotted_limits";

impl Limits {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let interrupted = interrupt::stop();
        let programs = self.programs()?;
        let file = NewFile::create("--out", self.out.as_deref())?;
        let mut limits = crate::bench::Limits {
            times: self.runs,
            rounds: self.rounds,
            duration: Duration::from_secs_f64(self.seconds),
            loads: if self.loads.is_empty() {
                LOADS.to_vec()
            } else {
                self.loads.clone()
            },
            servers: programs
                .iter()
                .map(|program| program.version.to_string())
                .collect(),
            runs: Vec::new(),
        };
        for run in 1..=self.runs {
            for (server, program) in programs.iter().enumerate() {
                for (at, load) in limits.loads.iter().enumerate() {
                    note!("run {run} of {}, {}: {}", self.runs, program.version, load.title);
                    let setting = load.setting(limits.duration);
                    let outcome =
                        private::on_private_server(program, setting.connections, |_, private_server| {
                            let rounds = self.measure(load, private_server, interrupted)?;
                            if interrupted.load(Ordering::Relaxed) {
                                return Ok(Outcome::Interrupted);
                            }
                            let ratios = load.ratios(&rounds).context("a contender was not measured")?;
                            limits.runs.push(Run {
                                load: at,
                                server,
                                ratios,
                            });
                            Ok(Outcome::Fine)
                        })?;
                    if outcome == Outcome::Interrupted {
                        return Ok(outcome);
                    }
                }
            }
        }
        let report = limits.markdown();
        match file {
            Some(file) => file.write(&report)?,
            None => out!("{report}")?,
        }
        Ok(Outcome::Fine)
    }

    fn programs(&self) -> anyhow::Result<Vec<Program>> {
        if self.servers.is_empty() {
            return Ok(vec![private::find()?]);
        }
        let program = |path: &PathBuf| {
            Program::at(path).ok_or_else(|| {
                let message = format!("--server: {} is not a server program", path.display());
                hinted(message, "name the file of mysqld or mariadbd")
            })
        };
        self.servers.iter().map(program).collect()
    }

    /// The rounds of a load on a new server.
    fn measure(
        &self,
        load: &Load,
        server: &PrivateServer,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Rounds> {
        let mut connection = Conn::new(server.options())?;
        connection.query_drop(format!("CREATE DATABASE {SCHEMA}"))?;
        let target = Target::server(server.options().db_name(Some(SCHEMA)), Some(server.process()));
        let setting = load.setting(Duration::from_secs_f64(self.seconds));
        let contenders = load.contenders();
        let lasting = (setting.warm_up() + setting.duration) * contenders.len() as u32 * (self.rounds + 1);
        let mut rounds = Rounds::prepare(contenders, target, setting)?;
        progress::during(lasting, |bar| {
            (0..=self.rounds)
                .try_for_each(|round| rounds.round(round > 0, interrupted, |name| bar.message(name)))
        })?;
        Ok(rounds)
    }
}
