//! `slotted bench`: all ways to count, side by side, on a server of your own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};
use tempfile::NamedTempFile;

use super::{Hinted, Outcome, private, progress};
use crate::bench::{self, Comparison, Contender, NAMES, PARTS, Report, Rounds, Setting, Target};
use crate::server::Version;

/// The schema that the contenders are in. Those of a second setting are in slotted_bench_2, and so on.
const SCHEMA: &str = "slotted_bench";

/// Measure all ways to count side by side.
///
/// Contenders take turns in rounds, so that what the machine does besides hits all of them, and after each load the
/// total must be what was acknowledged. Reported are medians of the rounds.
///
/// Without --url the server is a private one that is thrown away, with durable defaults. With --url the bench works in a
/// schema slotted_bench, which must not be there, and drops it in the end, also after Ctrl-C. Where there are several
/// settings, because --connections or --slots has a list, each has its own: slotted_bench_2 and so on.
#[derive(Debug, Args)]
pub struct Bench {
    /// The server to measure, as mysql://user:password@host:port; without it, a private one
    #[arg(long)]
    url: Option<String>,

    /// What to measure [default: all but counters-look and queries-call, which are parts of ours]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_parser = NAMES)]
    contenders: Vec<String>,

    /// How many connections count at once; a list measures each
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "64",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    connections: Vec<u32>,

    /// How many slots a counter has; a list measures each
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "100",
        value_parser = crate::package::slot_count
    )]
    slots: Vec<u32>,

    /// How many counters there are
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    counters: u32,

    /// How unevenly they are counted: the exponent of Zipf's distribution, 0 for evenly
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = exponent)]
    zipf: f64,

    /// Count in transactions that work so many milliseconds before they commit
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    hold: Option<u64>,

    /// How much a call adds, as if the application counted in memory in between
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    add_per_call: u32,

    /// Which share of the calls read the counter, 0 to 1
    #[arg(long, value_name = "R", default_value_t = 0.0, value_parser = share)]
    read_ratio: f64,

    /// How long each contender is measured in each round, after as long a warm-up, but a second at most
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,

    /// How many rounds are measured, after one that is not
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Print one JSON object
    #[arg(long, group = "format")]
    json: bool,

    /// Print a line of CSV for each contender and setting
    #[arg(long, group = "format")]
    csv: bool,

    /// Print Markdown
    #[arg(long, group = "format")]
    markdown: bool,

    /// Draw it too: over connections and over slots where there are several, else bars
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "a number from 0 to 1 is needed".into())
}

fn exponent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=10.0).contains(number));
    number.ok_or_else(|| "a number from 0 to 10 is needed".into())
}

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.1..=3600.0).contains(number));
    number.ok_or_else(|| "a number of seconds from 0.1 to 3600 is needed".into())
}

impl Bench {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let interrupted = private::on_interrupt()?;
        // Made before the work, so that it is not lost for a folder that is not there.
        let picture = self.svg.as_deref().map(beside).transpose()?;
        match &self.url {
            Some(url) => {
                let options = Opts::from_url(url).context("--url")?;
                let outcome = self.measure(&options, None, picture, &interrupted)?;
                if outcome == Outcome::Interrupted {
                    eprintln!("interrupted; the schema {SCHEMA} is dropped");
                }
                Ok(outcome)
            }
            None => private::with_private_server(self.most_connections(), &interrupted, |_, server| {
                self.measure(
                    &server.options().into(),
                    Some(server.process()),
                    picture,
                    &interrupted,
                )
            }),
        }
    }

    fn most_connections(&self) -> u32 {
        self.connections.iter().copied().max().unwrap_or_default()
    }

    /// Every number of connections with every number of slots.
    fn settings(&self) -> Vec<Setting> {
        let mut settings: Vec<Setting> = Vec::new();
        for &connections in &self.connections {
            for &slots in &self.slots {
                let setting = Setting {
                    connections,
                    slots,
                    counters: self.counters,
                    zipf: self.zipf,
                    hold: self.hold.map(Duration::from_millis),
                    amount: self.add_per_call,
                    reads: self.read_ratio,
                    duration: Duration::from_secs_f64(self.seconds),
                };
                if !settings.contains(&setting) {
                    settings.push(setting);
                }
            }
        }
        settings
    }

    /// Measures in schemas that are made for it and dropped in the end.
    fn measure(
        &self,
        options: &Opts,
        process: Option<u32>,
        picture: Option<NamedTempFile>,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Outcome> {
        let mut connection = Conn::new(options.clone()).context("cannot connect")?;
        let settings = self.settings();
        let schemas: Vec<_> = (1..=settings.len())
            .map(|n| {
                if n == 1 {
                    SCHEMA.to_owned()
                } else {
                    format!("{SCHEMA}_{n}")
                }
            })
            .collect();
        self.refuse(&mut connection, &schemas)?;
        let mut made = Vec::new();
        let measured = schemas
            .iter()
            .try_for_each(|schema| {
                connection
                    .query_drop(format!("CREATE DATABASE {schema}"))
                    .with_context(|| format!("cannot make the schema {schema}"))?;
                made.push(schema);
                anyhow::Ok(())
            })
            .and_then(|()| environment(&mut connection))
            .and_then(|environment| {
                let targets = schemas
                    .iter()
                    .map(|schema| Target {
                        options: OptsBuilder::from_opts(options.clone())
                            .db_name(Some(schema))
                            .into(),
                        process,
                    })
                    .collect();
                self.compare(settings, targets, environment, picture, interrupted)
            });
        for schema in made {
            connection
                .query_drop(format!("DROP DATABASE {schema}"))
                .with_context(|| format!("cannot drop the schema {schema}"))?;
        }
        measured
    }

    /// What the server has no room for.
    fn refuse(&self, connection: &mut Conn, schemas: &[String]) -> anyhow::Result<()> {
        for schema in schemas {
            let there: Option<String> = connection.exec_first(
                "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?",
                (schema,),
            )?;
            if there.is_some() {
                return Err(Hinted {
                    message: format!("there already is a schema {schema}"),
                    hint: format!("where a bench was killed it is left over: DROP DATABASE {schema}"),
                }
                .into());
            }
        }
        let most: Option<u32> = connection.query_first("SELECT @@max_connections")?;
        // The one here, and the one that observes.
        let needed = self.most_connections() + 2;
        if most.is_some_and(|most| most < needed) {
            return Err(Hinted {
                message: format!("the server takes {} connections", most.unwrap_or_default()),
                hint: format!("choose fewer --connections, or: SET GLOBAL max_connections = {needed}"),
            }
            .into());
        }
        Ok(())
    }

    fn compare(
        &self,
        settings: Vec<Setting>,
        targets: Vec<Target>,
        environment: Vec<(&'static str, String)>,
        picture: Option<NamedTempFile>,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Outcome> {
        let wanted = |name: &str| {
            if self.contenders.is_empty() {
                !PARTS.contains(&name)
            } else {
                self.contenders.iter().any(|one| one == name)
            }
        };
        let mut all = Vec::new();
        let mut lasting = Duration::ZERO;
        for (setting, target) in settings.into_iter().zip(targets) {
            let contenders = NAMES
                .into_iter()
                .filter(|name| wanted(name))
                .filter_map(|name| Contender::named(name, &setting).transpose())
                .collect::<Result<Vec<_>, _>>()?;
            lasting += (setting.warm_up() + setting.duration) * contenders.len() as u32 * (self.rounds + 1);
            all.push(Rounds::prepare(contenders, target, setting)?);
        }
        let several = all.len() > 1;
        let compared = progress::during(lasting, |bar| {
            (0..=self.rounds).try_for_each(|round| {
                all.iter_mut().try_for_each(|rounds| {
                    let mut what = if round == 0 {
                        "warm-up".to_owned()
                    } else {
                        format!("round {round}")
                    };
                    if several {
                        what += &format!(", {} x {}", rounds.setting.connections, rounds.setting.slots);
                    }
                    rounds.round(round > 0, interrupted, |name| {
                        bar.set_message(format!("{what}: {name}"))
                    })
                })
            })
        });
        let report = Report {
            environment,
            comparisons: all
                .into_iter()
                .map(|rounds| Comparison {
                    summaries: rounds.summaries(),
                    setting: rounds.setting,
                })
                .filter(|one| !one.summaries.is_empty())
                .collect(),
        };
        self.print(&report)?;
        // An empty picture would only replace a good one.
        let picture = picture.filter(|_| !report.comparisons.is_empty());
        if let Some((mut file, path)) = picture.zip(self.svg.as_deref()) {
            file.write_all(bench::svg(&report).as_bytes())?;
            file.persist(path).with_context(|| path.display().to_string())?;
            eprintln!("drawn: {}", path.display());
        }
        compared?;
        Ok(if interrupted.load(Ordering::Relaxed) {
            Outcome::Interrupted
        } else {
            Outcome::Fine
        })
    }

    fn print(&self, report: &Report) -> anyhow::Result<()> {
        if self.json {
            println!("{:#}", bench::json(report));
            return Ok(());
        }
        if self.csv {
            print!("{}", bench::csv(report)?);
            return Ok(());
        }
        let line = |(name, value): &(&str, String)| format!("{name} {value}");
        println!(
            "{}",
            report.environment.iter().map(line).collect::<Vec<_>>().join(", ")
        );
        for comparison in &report.comparisons {
            println!("\n{}\n", comparison.setting);
            if self.markdown {
                println!("{}", bench::markdown(comparison));
            } else {
                println!("{}\n\n{}", bench::table(comparison), bench::bars(comparison));
            }
        }
        Ok(())
    }
}

/// A new file in the folder of `path`.
fn beside(path: &Path) -> anyhow::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // As any file that is made: tempfile's own are for nobody else.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    builder
        .tempfile_in(folder)
        .with_context(|| format!("--svg: cannot write to {}", folder.display()))
}

/// What figures depend on.
pub(super) fn environment(connection: &mut Conn) -> anyhow::Result<Vec<(&'static str, String)>> {
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
        ("client", client(connection)?),
    ])
}

/// Where the client runs, as the server sees it. Source: MySQL manual, "SHOW PROCESSLIST": the host of a TCP connection
/// has a port, that of a socket has none; everybody may see their own.
fn client(connection: &mut Conn) -> anyhow::Result<String> {
    let id = u64::from(connection.connection_id());
    let rows: Vec<mysql::Row> = connection.query("SHOW PROCESSLIST")?;
    let own = rows.iter().find(|row| row.get::<u64, _>("Id") == Some(id));
    let host: String = own.and_then(|row| row.get("Host")).unwrap_or_default();
    Ok(match host.rsplit_once(':') {
        None => "on the server's machine, over its socket".into(),
        Some(("localhost" | "127.0.0.1" | "::1", _)) => "on the server's machine, over TCP".into(),
        Some((host, _)) => format!("at {host}, over TCP"),
    })
}
