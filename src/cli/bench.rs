//! `slotted bench`: all ways to count, side by side, on a server of your own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};

use super::{Hinted, Outcome, private, progress};
use crate::bench::{self, Contender, NAMES, Rounds, Setting};
use crate::server::Version;

/// The schema that the contenders are in.
const SCHEMA: &str = "slotted_bench";

/// Measure all ways to count side by side.
///
/// Contenders take turns in rounds, so that what the machine does besides hits all of them, and after each load the
/// total must be what was acknowledged. Reported are medians of the rounds.
///
/// Without --url the server is a private one that is thrown away, with durable defaults. With --url the bench works in a
/// schema slotted_bench, which must not be there, and drops it in the end, also after Ctrl-C.
#[derive(Debug, Args)]
pub struct Bench {
    /// The server to measure, as mysql://user:password@host:port; without it, a private one
    #[arg(long)]
    url: Option<String>,

    /// What to measure [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_parser = NAMES)]
    contenders: Vec<String>,

    /// How many connections count at once
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: u32,

    /// How many slots a counter has
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = crate::package::slot_count)]
    slots: u32,

    /// How many counters there are
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    counters: u32,

    /// How unevenly they are counted: the exponent of Zipf's distribution, 0 for evenly
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = exponent)]
    zipf: f64,

    /// Count in transactions that work so many milliseconds before they commit
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    hold: Option<u64>,

    /// How long each contender is loaded in each round
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,

    /// How many rounds are measured, after one that is not
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Print one JSON object
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print Markdown
    #[arg(long)]
    markdown: bool,
}

fn exponent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=10.0).contains(number));
    number.ok_or_else(|| "a number from 0 to 10 is needed".into())
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.1..=3600.0).contains(number));
    number.ok_or_else(|| "a number of seconds from 0.1 to 3600 is needed".into())
}

impl Bench {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let interrupted = private::on_interrupt()?;
        match &self.url {
            Some(url) => {
                let options = Opts::from_url(url).context("--url")?;
                let outcome = self.measure(&options, &interrupted)?;
                if outcome == Outcome::Interrupted {
                    eprintln!("interrupted; the schema {SCHEMA} is dropped");
                }
                Ok(outcome)
            }
            None => private::with_private_server(self.connections, &interrupted, |_, server| {
                self.measure(&server.options().into(), &interrupted)
            }),
        }
    }

    fn setting(&self) -> Setting {
        Setting {
            connections: self.connections,
            slots: self.slots,
            counters: self.counters,
            zipf: self.zipf,
            hold: self.hold.map(Duration::from_millis),
            duration: Duration::from_secs_f64(self.seconds),
        }
    }

    /// Measures in a schema that is made for it and dropped in the end.
    fn measure(&self, options: &Opts, interrupted: &AtomicBool) -> anyhow::Result<Outcome> {
        let mut connection = Conn::new(options.clone()).context("cannot connect")?;
        let there: Option<String> = connection.exec_first(
            "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?",
            (SCHEMA,),
        )?;
        if there.is_some() {
            return Err(Hinted {
                message: format!("there already is a schema {SCHEMA}"),
                hint: format!("where a bench was killed it is left over: DROP DATABASE {SCHEMA}"),
            }
            .into());
        }
        connection
            .query_drop(format!("CREATE DATABASE {SCHEMA}"))
            .context("cannot make a schema")?;
        let environment = environment(&mut connection);
        let inside: Opts = OptsBuilder::from_opts(options.clone())
            .db_name(Some(SCHEMA))
            .into();
        let measured = environment.and_then(|environment| self.compare(&inside, &environment, interrupted));
        connection
            .query_drop(format!("DROP DATABASE {SCHEMA}"))
            .context("cannot drop the schema")?;
        measured
    }

    fn compare(
        &self,
        options: &Opts,
        environment: &[(&'static str, String)],
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Outcome> {
        let setting = self.setting();
        let wanted = |name: &str| self.contenders.is_empty() || self.contenders.iter().any(|one| one == name);
        let contenders = NAMES
            .into_iter()
            .filter(|name| wanted(name))
            .filter_map(|name| Contender::named(name, &setting).transpose())
            .collect::<Result<Vec<_>, _>>()?;
        let loads = contenders.len() as u32 * (self.rounds + 1);
        let mut rounds = Rounds::prepare(contenders, options, &setting)?;
        let compared = progress::during(setting.duration * loads, |bar| {
            (0..=self.rounds).try_for_each(|round| {
                rounds.round(round > 0, interrupted, |name| {
                    let what = if round == 0 {
                        "warm-up".to_owned()
                    } else {
                        format!("round {round}")
                    };
                    bar.set_message(format!("{what}: {name}"));
                })
            })
        });
        let summaries = rounds.summaries();
        if self.json {
            println!("{:#}", bench::json(environment, &setting, &summaries));
        } else {
            let line = |(name, value): &(&str, String)| format!("{name} {value}");
            println!(
                "{}\n",
                environment.iter().map(line).collect::<Vec<_>>().join(", ")
            );
            println!("{setting}\n");
            if self.markdown {
                println!("{}", bench::markdown(&summaries));
            } else {
                println!("{}\n\n{}", bench::table(&summaries), bench::bars(&summaries));
            }
        }
        compared?;
        Ok(if interrupted.load(Ordering::Relaxed) {
            Outcome::Interrupted
        } else {
            Outcome::Fine
        })
    }
}

/// What figures depend on.
fn environment(connection: &mut Conn) -> anyhow::Result<Vec<(&'static str, String)>> {
    let version = Version::of(connection)?.to_string();
    let mut variable = |name: &str| -> anyhow::Result<String> {
        let row: Option<(String, String)> =
            connection.exec_first("SHOW GLOBAL VARIABLES WHERE Variable_name = ?", (name,))?;
        Ok(row.map_or_else(|| "none".to_owned(), |(_, value)| value))
    };
    let isolation = match variable("transaction_isolation")?.as_str() {
        "none" => variable("tx_isolation")?,
        isolation => isolation.to_owned(),
    };
    Ok(vec![
        ("server", version),
        ("version", variable("version")?),
        ("isolation", isolation),
        ("log_bin", variable("log_bin")?),
        ("sync_binlog", variable("sync_binlog")?),
        (
            "innodb_flush_log_at_trx_commit",
            variable("innodb_flush_log_at_trx_commit")?,
        ),
        ("innodb_buffer_pool_size", variable("innodb_buffer_pool_size")?),
        (
            "cores of the client",
            thread::available_parallelism().map_or_else(|_| "unknown".to_owned(), |n| n.to_string()),
        ),
    ])
}
