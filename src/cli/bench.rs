//! `slotted bench`: compares ways to count on a server.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts};

use super::connection::Connection;
use super::file::NewFile;
use super::nodes::Nodes;
use super::output::{JSON_VERSION, note, out, outln};
use super::{Outcome, hinted, interrupt, private, progress};
use crate::bench::{
    self, CONTENDERS, Comparison, Contender, Kind, NotMeasured, Report, Rounds, RoundsError, Setting, Target,
};
use crate::connect::cause;
use crate::install::privileges::Privileges;
use crate::report;
use crate::server::{Cluster, PrivateServer, Version};

/// The schema of the contenders. The schema of the second setting is slotted_bench_2, and so on.
const SCHEMA: &str = "slotted_bench";
/// All schemas of the bench, as a pattern of GRANT.
const SCHEMAS: &str = "`slotted\\_bench%`.*";

/// Group Replication has no more. Source: MySQL manual, "Group Replication Limitations".
const MOST_NODES: i64 = 9;

/// The rounds and their seconds of a run that takes longer than the default, and has less noise.
const RELIABLE: (u32, f64) = (5, 3.0);

/// A missing privilege on a schema, on a table, on all databases, and on a routine.
/// Source: MySQL manual, "Server Error Message Reference".
const DENIED: [u16; 4] = [1044, 1142, 1227, 1370];

/// Compare the throughput of counters with other ways to count.
///
/// Contenders take turns in rounds, so that other work of the machine affects all of them. After each load, the total
/// must equal the acknowledged increments. The report has the medians of the rounds. The default options take less than two
/// minutes; --rounds 5 --seconds 3 gives figures with less spread.
///
/// Without a server, the command starts a private server with durable settings and removes it afterwards. With --url, --host,
/// --socket or another option of the connection, or with SLOTTED_URL, it measures that server: it creates the schema
/// slotted_bench, which must not exist, and drops it at the end, also after Ctrl-C. A second Ctrl-C ends it at once. If
/// --nodes, --connections or --slots is a list, each further setting has a schema of its own: slotted_bench_2 and so on. The
/// account needs all privileges on `slotted\_bench%`.*, and PROCESS for the number of sessions that wait.
///
/// With one --url for each node of a Galera cluster or of a group of Group Replication, the connections spread evenly over the
/// nodes. The report has the share of the calls that the cluster rejected, and the errors. The total must equal the acknowledged
/// increments on each node. Without a server, --nodes 3 starts a private cluster of three nodes.
#[derive(Debug, Args)]
pub struct Bench {
    /// The ways to count to measure [default: all except the parts]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_enum)]
    contenders: Vec<Contender>,

    /// The number of connections that count at the same time; a list measures each number
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "64",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    connections: Vec<u32>,

    /// The number of nodes of a cluster that the connections spread over; a list measures each number [default: all URLs]
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=MOST_NODES)
    )]
    nodes: Vec<u32>,

    /// The number of slots of a counter; a list measures each number
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "100",
        value_parser = crate::package::slot_count
    )]
    slots: Vec<u32>,

    /// The number of counters
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    counters: u32,

    /// The exponent of Zipf's distribution, by which a connection chooses a counter; 0 chooses evenly
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = exponent)]
    zipf: f64,

    /// Increment in a transaction that waits this many milliseconds before its commit [default: autocommit]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    hold: Option<u64>,

    /// The amount that a call adds; an application that counts in memory adds more than 1
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    add_per_call: u32,

    /// The counts in a call of counters-many and records-many; the other contenders add one amount per call
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,

    /// Open a connection for each call, as programs without a pool do; the first call of a connection parses the routines
    #[arg(long)]
    connect_per_call: bool,

    /// The share of calls that read the counter, 0 to 1; the other calls increment it
    #[arg(long, value_name = "R", default_value_t = 0.0, value_parser = share)]
    read_ratio: f64,

    /// The duration of a contender in a round, after a warm-up of the same length and at most a second
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,

    /// The number of measured rounds, after one that is not measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Print the report as one JSON object
    #[arg(long, group = "format")]
    json: bool,

    /// Print the report as CSV, a line for each contender and setting
    #[arg(long, group = "format")]
    csv: bool,

    /// Print the report in Markdown
    #[arg(long, group = "format")]
    markdown: bool,

    /// Also draw the throughput as an SVG: lines over nodes, connections and slots, or bars for a single setting
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Also write a page in HTML that explains the figures: one file, which loads nothing from the network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    #[command(flatten)]
    connection: Connection,
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
    pub(super) fn run(mut self) -> anyhow::Result<Outcome> {
        let interrupted = interrupt::stop();
        let files = vec![
            NewFile::create("--svg", self.svg.as_deref())?,
            NewFile::create("--html", self.html.as_deref())?,
        ];
        if self.connection.is_given() {
            let nodes = {
                let options = self.connection.options()?;
                Nodes::new(vec![(Conn::new(options.clone())?, options)], Vec::new())
            }?;
            if self.nodes.is_empty() {
                self.nodes.push(nodes.all.len() as u32);
            }
            let outcome = self.measure(nodes, files, interrupted)?;
            if outcome == Outcome::Interrupted {
                note!("interrupted; the schema {SCHEMA} has been dropped");
            }
            Ok(outcome)
        } else {
            if self.nodes.is_empty() {
                self.nodes.push(1);
            }
            let connected = |server: &PrivateServer| {
                let options: Opts = server.options().into();
                let connection = Conn::new(options.clone()).context("cannot connect")?;
                anyhow::Ok((connection, options))
            };
            let most = self.connections.iter().copied().max().unwrap_or_default();
            match self.nodes.iter().max() {
                Some(&nodes @ 2..) => private::with_private_cluster(nodes, most, |servers| {
                    let nodes = servers.iter().map(connected).collect::<Result<_, _>>()?;
                    let processes = servers.iter().map(PrivateServer::process).collect();
                    self.measure(Nodes::new(nodes, processes)?, files, interrupted)
                }),
                _ => private::with_private_server(most, |_, server| {
                    let nodes = Nodes::new(vec![connected(server)?], vec![server.process()])?;
                    self.measure(nodes, files, interrupted)
                }),
            }
        }
    }

    /// Each number of nodes with each number of connections and of slots.
    fn settings(&self) -> Vec<Setting> {
        let numbers = self.nodes.iter().flat_map(|&nodes| {
            let connections = self.connections.iter();
            connections.flat_map(move |&connections| {
                self.slots.iter().map(move |&slots| (nodes, connections, slots))
            })
        });
        let mut settings: Vec<Setting> = Vec::new();
        for (nodes, connections, slots) in numbers {
            let setting = Setting {
                connections,
                nodes,
                slots,
                counters: self.counters,
                zipf: self.zipf,
                hold: self.hold.map(Duration::from_millis),
                amount: self.add_per_call,
                batch: self.batch,
                reads: self.read_ratio,
                connect: self.connect_per_call,
                duration: Duration::from_secs_f64(self.seconds),
            };
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
        settings
    }

    /// Creates the schemas, measures, and drops the schemas.
    fn measure(
        &self,
        mut nodes: Nodes,
        files: Vec<Option<NewFile>>,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Outcome> {
        let settings = self.settings();
        nodes.check_number(&settings)?;
        let schemas: Vec<_> = (1..=settings.len())
            .map(|n| {
                if n == 1 {
                    SCHEMA.to_owned()
                } else {
                    format!("{SCHEMA}_{n}")
                }
            })
            .collect();
        let privileges = Privileges::read(nodes.first())?;
        let cluster = nodes.cluster;
        for connection in &mut nodes.all {
            self.preflight(connection, cluster, &schemas, &privileges)?;
        }
        let _hold = interrupt::hold();
        let mut created = Vec::new();
        let measured = schemas
            .iter()
            .try_for_each(|schema| {
                nodes
                    .first()
                    .query_drop(format!("CREATE DATABASE {schema}"))
                    .map_err(|error| {
                        self.explained(&format!("cannot create the schema {schema}"), error, &privileges)
                    })?;
                created.push(schema);
                nodes.wait_for(schema, interrupted)
            })
            .and_then(|()| {
                let hidden = bench::hidden_waits(nodes.first())?.map(|error| NotMeasured {
                    what: "sessions waiting".into(),
                    because: cause(&error),
                    remedy: privileges.on("PROCESS", "*.*"),
                });
                Ok(Report {
                    environment: nodes.environment()?,
                    comparisons: Vec::new(),
                    not_measured: hidden.into_iter().collect(),
                })
            })
            .and_then(|report| {
                let targets = schemas.iter().map(|schema| nodes.target(schema)).collect();
                self.compare(settings, targets, report, &privileges, files, interrupted)
            });
        for schema in created {
            nodes
                .first()
                .query_drop(format!("DROP DATABASE {schema}"))
                .with_context(|| format!("cannot drop the schema {schema}"))?;
        }
        measured
    }

    /// Checks of a node before anything is changed.
    fn preflight(
        &self,
        connection: &mut Conn,
        cluster: Option<Cluster>,
        schemas: &[String],
        privileges: &Privileges,
    ) -> anyhow::Result<()> {
        for schema in schemas {
            let read = |connection: &mut Conn| {
                let query = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?";
                connection.exec_first::<String, _, _>(query, (schema,))
            };
            // A node that is behind can still have the schema of a bench that has just ended.
            let found = match cluster {
                Some(cluster) => cluster.reading(connection, read)?,
                None => read(connection)?,
            };
            if found.is_some() {
                return Err(hinted(
                    format!("the schema {schema} already exists"),
                    format!("if a killed bench has left it: DROP DATABASE {schema}"),
                ));
            }
        }
        let most: Option<u32> = connection.query_first("SELECT @@max_connections")?;
        let needed = self.needed_connections();
        if most.is_some_and(|most| most < needed) {
            return Err(hinted(
                format!("max_connections of the server is {}", most.unwrap_or_default()),
                format!("choose fewer --connections, or run: SET GLOBAL max_connections = {needed}"),
            ));
        }
        // The value of the session is the limit of the account, which can be lower or higher than that of the server.
        let most: Option<u32> = connection.query_first("SELECT @@max_user_connections")?;
        if let Some(most @ 1..) = most.filter(|&most| most < needed) {
            return Err(hinted(
                format!(
                    "{} may have {most} connections at the same time",
                    privileges.account
                ),
                self.more_connections(privileges),
            ));
        }
        Ok(())
    }

    /// The connections to a node: one more for the first connection, and one for the connection that reads the totals.
    fn needed_connections(&self) -> u32 {
        let settings = self.settings();
        let of_a_node = settings.iter().map(|one| one.connections.div_ceil(one.nodes));
        of_a_node.max().unwrap_or_default() + 2
    }

    fn more_connections(&self, privileges: &Privileges) -> String {
        format!(
            "the bench needs {}, and other programs may need some: choose fewer --connections, or raise the limit with ALTER USER {} WITH MAX_USER_CONNECTIONS",
            self.needed_connections(),
            privileges.grantee()
        )
    }

    /// Adds a hint to an error that `what` has caused, if a privilege is missing or a limit of the account is exceeded.
    fn explained(&self, what: &str, error: mysql::Error, privileges: &Privileges) -> anyhow::Error {
        let hint = match &error {
            mysql::Error::MySqlError(server) if DENIED.contains(&server.code) => {
                privileges.on("ALL", SCHEMAS)
            }
            // The account has as many connections as it may have, also with those of other programs.
            mysql::Error::MySqlError(server)
                if server.code == 1203 || server.message.contains("max_user_connections") =>
            {
                self.more_connections(privileges)
            }
            mysql::Error::MySqlError(server) if server.code == 1226 => {
                format!(
                    "raise the limit that the message names: ALTER USER {} WITH ...",
                    privileges.grantee()
                )
            }
            mysql::Error::MySqlError(server) if server.code == 1040 => {
                "choose fewer --connections, or raise max_connections of the server".into()
            }
            _ => return anyhow::Error::new(error).context(what.to_owned()),
        };
        let message = format!("{what}: {}", cause(&error));
        hinted(message, hint)
    }

    /// Creates the contenders. Those that the account cannot create go into the report.
    fn prepare(
        &self,
        all: &mut [Rounds],
        contenders: &mut Vec<Contender>,
        report: &mut Report,
        privileges: &Privileges,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<()> {
        let loads = all.len() * contenders.len();
        progress::counted(loads as u64, |bar| {
            for rounds in all {
                for &contender in contenders.iter() {
                    if interrupted.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    bar.message(&format!("creating {}", contender.name));
                    match rounds.add(contender) {
                        Err(RoundsError::MySql(what, error)) => {
                            let missing = rejected(what, &error, privileges)
                                .ok_or_else(|| self.explained(what, error, privileges))?;
                            if !report.not_measured.contains(&missing) {
                                report.not_measured.push(missing);
                            }
                        }
                        added => added?,
                    }
                    bar.advance(1);
                }
            }
            anyhow::Ok(())
        })?;
        let missing = |name: &str| report.not_measured.iter().find(|one| one.what == name);
        let all_missing = contenders
            .iter()
            .map(|one| missing(one.name))
            .collect::<Option<Vec<_>>>();
        if let Some([one, ..]) = all_missing.as_deref() {
            return Err(hinted(
                format!("no contender can be created. {}: {}", one.what, one.because),
                one.remedy.clone(),
            ));
        }
        contenders.retain(|one| missing(one.name).is_none());
        Ok(())
    }

    fn compare(
        &self,
        settings: Vec<Setting>,
        targets: Vec<Target>,
        mut report: Report,
        privileges: &Privileges,
        files: Vec<Option<NewFile>>,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Outcome> {
        let wanted = |contender: &Contender| {
            if self.contenders.is_empty() {
                !matches!(contender.kind, Kind::Part | Kind::Extra)
            } else {
                self.contenders.iter().any(|one| one.name == contender.name)
            }
        };
        let mut contenders: Vec<_> = CONTENDERS.into_iter().filter(wanted).collect();
        let mut all: Vec<_> = targets
            .into_iter()
            .zip(settings)
            .map(|(target, setting)| Rounds::new(target, setting))
            .collect();
        self.prepare(&mut all, &mut contenders, &mut report, privileges, interrupted)?;
        let loads = all.len() * contenders.len();
        let lasting = lasting(loads, self.rounds, self.seconds);
        let several = all.len() > 1;
        let compared = progress::during(lasting, |bar| {
            (0..=self.rounds).try_for_each(|round| {
                all.iter_mut().try_for_each(|rounds| {
                    let mut message = if round == 0 {
                        "warm-up".to_owned()
                    } else {
                        format!("round {round}")
                    };
                    if several {
                        let Setting {
                            connections,
                            nodes,
                            slots,
                            ..
                        } = rounds.setting;
                        message += &format!(", {connections} x {slots}{}", bench::on_nodes(nodes));
                    }
                    rounds.round(round > 0, interrupted, |name| {
                        bar.message(&format!("{message}: {name}"))
                    })
                })
            })
        });
        report.comparisons = all
            .into_iter()
            .map(|rounds| Comparison {
                summaries: rounds.summaries(),
                setting: rounds.setting,
            })
            .filter(|one| !one.summaries.is_empty())
            .collect();
        self.print(&report)?;
        // Do not replace an existing file with an empty one.
        if !report.comparisons.is_empty() {
            for (file, text) in files.into_iter().zip([bench::svg, report::bench_page]) {
                if let Some(file) = file {
                    file.write(&text(&report))?;
                }
            }
        }
        compared.map_err(|error| match error {
            RoundsError::MySql(name, error) => self.explained(name, error, privileges),
            error => error.into(),
        })?;
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
        let (rounds, seconds) = RELIABLE;
        if !self.json && !self.csv && self.rounds < rounds && self.seconds < seconds {
            let about = self::lasting(loads, rounds, seconds).as_secs_f64();
            note!("for figures with less spread: --rounds {rounds} --seconds {seconds}, about {about:.0} s");
        }
        Ok(Outcome::Fine)
    }

    fn print(&self, report: &Report) -> anyhow::Result<()> {
        if self.json {
            let mut object = bench::json(report);
            object["schema_version"] = JSON_VERSION.into();
            outln!("{object:#}")?;
            return Ok(());
        }
        if self.csv {
            out!("{}", bench::csv(report)?)?;
            bench::not_measured(report)
                .lines()
                .for_each(|line| note!("{line}"));
            return Ok(());
        }
        let line = |(name, value): &(&str, String)| format!("{name} {value}");
        outln!(
            "{}",
            report.environment.iter().map(line).collect::<Vec<_>>().join(", ")
        )?;
        for comparison in &report.comparisons {
            outln!("\n{}\n", comparison.setting)?;
            if self.markdown {
                outln!("{}", bench::markdown(comparison))?;
            } else {
                outln!("{}\n\n{}", bench::table(comparison), bench::bars(comparison))?;
            }
        }
        out!("{}", bench::not_measured(report))?;
        Ok(())
    }
}

/// A contender whose tables or routines the account cannot create. None for other errors.
fn rejected(contender: &str, error: &mysql::Error, privileges: &Privileges) -> Option<NotMeasured> {
    let mysql::Error::MySqlError(server) = error else {
        return None;
    };
    // The scripts of the packages check this before the server does, and raise their message as the name of an engine (1286).
    let setting = "log_bin_trust_function_creators";
    let (because, remedy) = if server.code == 1419 || server.code == 1286 && server.message.contains(setting)
    {
        let checked = server
            .message
            .split(['\'', '.'])
            .nth(1)
            .filter(|_| server.code == 1286);
        (
            checked.map_or_else(|| cause(error), str::to_owned),
            format!("an administrator can run: SET GLOBAL {setting} = ON;"),
        )
    } else if DENIED.contains(&server.code) {
        (cause(error), privileges.on("ALL", SCHEMAS))
    } else {
        return None;
    };
    Some(NotMeasured {
        what: contender.to_owned(),
        because,
        remedy,
    })
}

/// The duration of a number of loads in all rounds, and in the one that is not measured.
fn lasting(loads: usize, rounds: u32, seconds: f64) -> Duration {
    let setting = Setting {
        duration: Duration::from_secs_f64(seconds),
        ..Setting::DEFAULT
    };
    (setting.warm_up() + setting.duration) * loads as u32 * (rounds + 1)
}

/// The properties of the server and of the client that the figures depend on.
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
        (
            "time",
            connection
                .query_first("SELECT CONCAT(UTC_TIMESTAMP(), ' UTC')")?
                .unwrap_or_default(),
        ),
    ])
}

/// The place of the client, as the server sees it. Source: MySQL manual, "SHOW PROCESSLIST": the host of a TCP connection
/// has a port, the host of a socket connection has none. An account needs no privilege to see its own connections.
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
