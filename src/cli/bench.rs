//! `slotted bench`: compares ways to count on a server.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use mysql::Opts;

use super::connection::{Connection, seconds};
use super::output::{JSON_VERSION, Outcome, hinted, note, out, outln};
use super::{interrupt, private};
use crate::bench::{self, BUILT_IN, BenchError, Contender, Report, SCHEMA, Setting};

/// The number of contenders that are measured without an argument: those that increment one counter.
const COMPARED: usize = 8;

/// Compare ways to count: increments per second of many connections
///
/// Without a server, the command starts a private server with durable settings and removes it afterwards. With --url, --host or
/// another option of the connection, it measures that server: each load creates the schema slotted_bench, which must not exist, and
/// drops it, even after Ctrl-C. The account needs all privileges on slotted_bench.*.
///
/// Contenders take turns in rounds, so that other work of the machine affects all of them. After each load, the total must
/// equal the acknowledged increments; otherwise the command ends with exit code 1. The report contains the medians of the rounds.
///
/// A file of --contender contains the sections `-- setup`, `-- increment`, `-- read` and `-- total`, each after a line with its name.
/// The last three are one statement each. `{connection}` is the number of the connection, `{connections}` and `{slots}` are the
/// options, and `{random}` is a number from 1 to 1000, another one in each call. Lines before the first section can be
/// `-- package: NAME`, which installs counters, counters-fixed, slotted_counters or bounded_counters, and `-- counts: N`, if an
/// increment adds N to the total; `{entries}` is N times `[123, {random}, 1]`, for add_many.
#[derive(Debug, Args)]
pub struct Bench {
    /// The ways to count [default: the first eight, unless --contender gives a file]
    #[arg(value_name = "CONTENDER", value_parser = names())]
    names: Vec<String>,

    /// A way to count of your own: a file of SQL, see below; can be given several times
    #[arg(long = "contender", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The number of connections that increment at the same time; a list measures each number
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "64",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    connections: Vec<u32>,

    /// The number of slots of the counter
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = crate::package::slot_count)]
    slots: u32,

    /// Increment in a transaction that waits this many milliseconds before its commit [default: autocommit]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=1000))]
    hold: Option<u64>,

    /// Increment in a transaction that works this many milliseconds before the increment; with --hold, before and after it
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=1000))]
    work: Option<u64>,

    /// The duration of a contender in a round, after a warm-up of the same length and at most a second
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,

    /// The number of rounds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,

    /// Also write a page with the picture and the figures: one file, which loads nothing
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Also draw the rates: lines over the connections, or bars for one number of connections
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    #[command(flatten)]
    connection: Connection,
}

fn names() -> PossibleValuesParser {
    let value = |(name, text): &(&'static str, &'static str)| PossibleValue::new(*name).help(bench::description(text));
    BUILT_IN.iter().map(value).collect::<Vec<_>>().into()
}

impl Bench {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let contenders = self.contenders()?;
        if self.html.is_some() && self.html == self.svg {
            bail!("--html and --svg name the same file");
        }
        for path in [&self.html, &self.svg].into_iter().flatten() {
            // A file that exists stays until the load has ended, and no empty one stays if it does not end.
            let is_new = !path.exists();
            let opened = File::options().append(true).create(true).open(path);
            opened.with_context(|| format!("cannot write {}", path.display()))?;
            if is_new {
                fs::remove_file(path)?;
            }
        }
        if self.connection.is_given() {
            return self.measure(&self.connection.options()?, &contenders);
        }
        let most = self.connections.iter().copied().max().unwrap_or_default();
        private::with_private_server(most, |_, server| self.measure(&server.options().into(), &contenders))
    }

    fn contenders(&self) -> anyhow::Result<Vec<Contender>> {
        let names: Vec<&str> = if self.names.is_empty() && self.files.is_empty() {
            BUILT_IN.iter().take(COMPARED).map(|(name, _)| *name).collect()
        } else {
            self.names.iter().map(String::as_str).collect()
        };
        let mut contenders: Vec<_> = names.into_iter().filter_map(Contender::built_in).collect();
        for path in &self.files {
            let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
            let contender = Contender::parse(&name, &text);
            contenders.push(contender.map_err(|error| hinted(error, "slotted bench --help describes the sections"))?);
        }
        let mut names = HashSet::new();
        match contenders.iter().find(|one| !names.insert(&one.name)) {
            Some(Contender { name, .. }) => bail!("two contenders have the name {name}"),
            None => Ok(contenders),
        }
    }

    fn settings(&self) -> Vec<Setting> {
        let milliseconds = |number: Option<u64>| Duration::from_millis(number.unwrap_or(0));
        let setting = |&connections: &u32| Setting {
            connections,
            slots: self.slots,
            hold: self.work.or(self.hold).map(|_| [self.work, self.hold].map(milliseconds)),
            duration: Duration::from_secs_f64(self.seconds),
        };
        let mut settings: Vec<_> = self.connections.iter().map(setting).collect();
        settings.sort_by_key(|setting| setting.connections);
        settings.dedup();
        settings
    }

    fn measure(&self, server: &Opts, contenders: &[Contender]) -> anyhow::Result<Outcome> {
        let stop = interrupt::hold();
        let begins = |round| note!("round {round} of {}", self.rounds);
        let report = match bench::compare(server, contenders, &self.settings(), self.rounds, stop, begins) {
            Err(error @ BenchError::Lost(..)) => {
                note!("error: {error}");
                return Ok(Outcome::Differs);
            }
            report => report.map_err(explained)?,
        };
        let interrupted = stop.load(std::sync::atomic::Ordering::Relaxed);
        if !(interrupted && report.results.is_empty()) {
            self.write(&report)?;
        }
        if interrupted {
            note!("interrupted; the schema {SCHEMA} has been dropped");
        }
        Ok(if interrupted { Outcome::Interrupted } else { Outcome::Fine })
    }

    fn write(&self, report: &Report) -> anyhow::Result<()> {
        if self.json {
            let mut object = serde_json::to_value(report)?;
            object["schema_version"] = JSON_VERSION.into();
            outln!("{object:#}")?;
        } else {
            out!("{}", bench::table(report))?;
        }
        for (path, draw) in [(&self.html, bench::html as fn(&Report) -> String), (&self.svg, bench::svg)] {
            if let Some(path) = path {
                fs::write(path, draw(report)).with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// Adds what to do to an error of the server. Source of the numbers: MySQL manual, "Server Error Message Reference".
fn explained(error: BenchError) -> anyhow::Error {
    let number = match &error {
        BenchError::Server(_, mysql::Error::MySqlError(error)) => error.code,
        BenchError::Exists => 1007,
        _ => 0,
    };
    match number {
        1007 => hinted(error, format!("if a killed bench has left it: DROP DATABASE {SCHEMA}")),
        1044 | 1142 | 1370 => hinted(error, format!("GRANT ALL ON {SCHEMA}.* to the account")),
        1040 | 1203 | 1226 => hinted(error, "choose fewer --connections, or raise the limit that the message names"),
        _ => error.into(),
    }
}
