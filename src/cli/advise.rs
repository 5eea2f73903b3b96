//! `slotted advise`: recommend the number of slots for the counters of a server.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};
use jiff::Timestamp;
use mysql::Conn;
use mysql::prelude::Queryable;
use serde_json::{Value, json};

use super::connection::Connection;
use super::file::NewFile;
use super::output::{JSON_VERSION, in_line, note, outln, shown};
use super::{Outcome, interrupt, progress};
use crate::advise::{self, Advice, Counter, Verdict, Watched};
use crate::connect::Session;
use crate::package::Ident;
use crate::report::{self, Advised};

/// The number of counters in the table of the report.
const COUNTERS: usize = 20;

/// Recommend the number of slots for the counters of a server.
///
/// Watches the row lock waits of the server. Reports for each counter the recommended number of slots, the reason, and the
/// time of a read. Also finds rows that several sessions increment, which counters can replace.
///
/// Run it while the server has its usual load. It changes nothing. The account needs the privileges PROCESS and SELECT on
/// *.*, and on MySQL also SELECT on performance_schema.*. With --database, SELECT on this database is sufficient, and only
/// its counters and rows are observed. What the account cannot see is in the report, with the GRANT statement.
///
/// Exits with 0 if it recommends nothing, with 1 if it recommends a change, and with 2 if it could not see everything.
#[derive(Debug, Args)]
pub struct Advise {
    /// The time to watch, in seconds
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = super::bench::seconds)]
    seconds: f64,

    /// Watch again and again, and print a line for each change of the recommendations, until Ctrl-C
    #[arg(long)]
    watch: bool,

    /// Print one JSON object, with --watch one in a line for each observation
    #[arg(long)]
    json: bool,

    /// Also write a page in HTML that explains the recommendations: one file, which loads nothing from the network
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    html: Option<PathBuf>,

    #[command(flatten)]
    connection: Connection,
}

/// An observation of a server, or of all nodes of a cluster.
struct Observation {
    environment: Vec<(&'static str, String)>,
    /// The tables of named counters whose engine is not InnoDB.
    not_innodb: Vec<String>,
    watched: Watched,
    advice: Vec<Advice>,
}

impl Advise {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let interrupted = interrupt::stop();
        let file = NewFile::create("--html", self.html.as_deref())?;
        let mut nodes = self.connection.connect_all()?;
        if self.watch {
            self.watch(nodes, interrupted);
            return Ok(Outcome::Interrupted);
        }
        let duration = Duration::from_secs_f64(self.seconds);
        let observation = progress::during(duration, |bar| {
            bar.message("watching");
            observe(&mut nodes, duration, interrupted)
        })?;
        if self.json {
            outln!("{:#}", observation.json())?;
        } else {
            observation.print()?;
        }
        if let Some(file) = file {
            file.write(&report::advise_page(&Advised {
                environment: &observation.environment,
                watched: &observation.watched,
                advice: &observation.advice,
                not_innodb: &observation.not_innodb,
                action,
            }))?;
        }
        Ok(if interrupted.load(Ordering::Relaxed) {
            Outcome::Interrupted
        } else {
            observation.outcome()
        })
    }

    /// Observes until Ctrl-C. Connects again if a connection is lost.
    fn watch(&self, mut nodes: Vec<Session>, interrupted: &AtomicBool) {
        let duration = Duration::from_secs_f64(self.seconds);
        let mut before: BTreeMap<String, String> = BTreeMap::new();
        note!(
            "watching for {} s at a time, a line for each {}; Ctrl-C ends",
            self.seconds,
            if self.json { "observation" } else { "change" }
        );
        while !interrupted.load(Ordering::Relaxed) {
            let observed = observe(&mut nodes, duration, interrupted);
            if interrupted.load(Ordering::Relaxed) {
                return;
            }
            let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
            let lines = match observed {
                Ok(observation) if self.json => {
                    let mut object = observation.json();
                    object["at"] = json!(now.to_string());
                    vec![object.to_string()]
                }
                Ok(observation) => {
                    let states = observation.states();
                    let lines = changes(&before, &states);
                    before = states;
                    lines.iter().map(|line| format!("{now} {line}")).collect()
                }
                Err(error) => {
                    let states =
                        BTreeMap::from([("the server".to_owned(), format!("not observed: {error:#}"))]);
                    let lines = changes(&before, &states);
                    before = states;
                    thread::sleep(duration.min(Duration::from_secs(1)));
                    if let Ok(connected) = self.connection.connect_all() {
                        nodes = connected;
                    }
                    lines.iter().map(|line| format!("{now} {line}")).collect()
                }
            };
            for line in lines {
                // A reader that has ended, such as head, ends the command.
                if writeln!(io::stdout(), "{}", shown(&line)).is_err() {
                    return;
                }
            }
        }
    }
}

/// Observes all nodes at the same time.
fn observe(
    nodes: &mut [Session],
    duration: Duration,
    interrupted: &AtomicBool,
) -> anyhow::Result<Observation> {
    let (environment, not_innodb) = match nodes {
        [first, ..] => (super::bench::environment(first)?, engines(first)?),
        [] => unreachable!("there is at least one connection"),
    };
    let watched = thread::scope(|scope| {
        let watching: Vec<_> = nodes
            .iter_mut()
            .map(|node| scope.spawn(|| advise::watch(node, duration, interrupted)))
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        watching
            .into_iter()
            .map(join)
            .collect::<Result<Vec<_>, mysql::Error>>()
    })?;
    let watched = Watched::of_nodes(watched);
    Ok(Observation {
        environment,
        not_innodb,
        advice: watched.advice(),
        watched,
    })
}

/// The lines for states that are new, differ or have ended.
fn changes(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let kind = |state: &str| state.split(':').next().unwrap_or_default().to_owned();
    let changed = now
        .iter()
        .filter(|(subject, state)| before.get(*subject).map(|old| kind(old)) != Some(kind(state)))
        .map(|(subject, state)| format!("{subject}: {state}"));
    let ended = before.keys().filter(|subject| !now.contains_key(*subject));
    changed
        .chain(ended.map(|subject| format!("{subject}: no recommendation any more")))
        .collect()
}

impl Observation {
    fn outcome(&self) -> Outcome {
        if !self.watched.cannot_see.is_empty() {
            Outcome::Incomplete
        } else if self.changes().next().is_some() || !self.not_innodb.is_empty() {
            Outcome::Differs
        } else {
            Outcome::Fine
        }
    }

    /// The recommendations that change something.
    fn changes(&self) -> impl Iterator<Item = &Advice> {
        self.advice.iter().filter(|advice| advice.verdict.is_change())
    }

    /// What a line of `--watch` says, by subject.
    fn states(&self) -> BTreeMap<String, String> {
        let advice = self.changes().map(|one| {
            (
                in_line(&one.subject).into_owned(),
                format!("{}: {}", kind(one.verdict), in_line(&one.because)),
            )
        });
        let unseen = self.watched.cannot_see.iter().map(|one| {
            (
                in_line(&one.what).into_owned(),
                format!("cannot be observed: {}", in_line(&one.remedy)),
            )
        });
        let engines = self
            .not_innodb
            .iter()
            .map(|table| (in_line(table).into_owned(), "the engine is not InnoDB".to_owned()));
        advice.chain(unseen).chain(engines).collect()
    }

    fn json(&self) -> Value {
        let environment = self
            .environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)));
        json!({
            "schema_version": JSON_VERSION,
            "environment": environment.collect::<serde_json::Map<_, _>>(),
            "not_innodb": self.not_innodb,
            "watched": self.watched,
            "cannot_see": self.watched.cannot_see,
            "advice": self.advice,
        })
    }

    fn print(&self) -> io::Result<()> {
        let Self {
            environment,
            not_innodb,
            watched,
            advice,
        } = self;
        let line = |(name, value): &(&str, String)| format!("{name} {value}");
        outln!(
            "{}\n",
            environment.iter().map(line).collect::<Vec<_>>().join(", ")
        )?;
        outln!(
            "Watched for {:.1} s: at most {} sessions connected, at most {} running, {} row lock waits of {:.1} s in total.\n",
            watched.seconds,
            watched.connected,
            watched.running,
            watched.row_lock_waits,
            watched.row_lock_ms as f64 / 1000.0
        )?;
        if !watched.counters.is_empty() {
            outln!("{}", counters(watched, advice))?;
            let more = watched.counters.len().saturating_sub(COUNTERS);
            if more > 0 {
                outln!("and {more} more counters, see --json")?;
            }
            outln!("")?;
        }
        for table in not_innodb {
            outln!(
                "{0}: the engine is not InnoDB, so every increment locks the whole table\n  \
                 ALTER TABLE {0} ENGINE = InnoDB;\n",
                in_line(table)
            )?;
        }
        for one in self.changes() {
            outln!(
                "{}\n  {}: {}",
                in_line(&one.subject),
                action(one.verdict),
                in_line(&one.because)
            )?;
            if let Some((now, Some(then))) = one.read_us {
                outln!("  a read takes {now:.0} us, and about {then:.0} us after the change")?;
            }
            for line in one.run.lines() {
                outln!("  {line}")?;
            }
            outln!("")?;
        }
        for one in &watched.cannot_see {
            outln!("cannot see {}\n  {}\n", in_line(&one.what), in_line(&one.remedy))?;
        }
        outln!("{}", self.summary())
    }

    /// The last line of the report.
    fn summary(&self) -> String {
        let changes = self.changes().count();
        let fine = self
            .advice
            .iter()
            .filter(|one| one.verdict == Verdict::Fine)
            .count();
        let load = self.watched.row_lock_waits > 0 || self.watched.counters.iter().any(|one| one.counted > 0);
        if !self.watched.cannot_see.is_empty() {
            format!("recommended changes: {changes}; grant what is missing, and run the command again")
        } else if !load && changes == 0 {
            "no counter was incremented, and no session waited for a row lock: run the command under the usual load".into()
        } else if self.advice.is_empty() {
            "no counter and no hot row found".into()
        } else {
            format!("recommended changes: {changes}, fine: {fine}")
        }
    }
}

/// The tables of named counters whose engine is not InnoDB, as a statement needs their names. Other engines lock the whole table.
fn engines(connection: &mut Conn) -> anyhow::Result<Vec<String>> {
    let place = |(schema, table): (String, String)| {
        let [schema, table] = [schema, table].map(|name| Ident::stored(name).plain());
        format!("{schema}.{table}")
    };
    Ok(connection.query_map(
        "SELECT columns.TABLE_SCHEMA, columns.TABLE_NAME
           FROM information_schema.COLUMNS AS columns
           JOIN information_schema.TABLES AS tables
             ON tables.TABLE_SCHEMA = columns.TABLE_SCHEMA
            AND tables.TABLE_NAME = columns.TABLE_NAME
            AND tables.TABLE_TYPE = 'BASE TABLE'
            AND tables.ENGINE <> 'InnoDB'
          WHERE columns.COLUMN_NAME IN ('counter_name', 'counter_id', 'start_date', 'counter')
          GROUP BY columns.TABLE_SCHEMA, columns.TABLE_NAME
         HAVING COUNT(*) = 4",
        place,
    )?)
}

/// The recommended change, for a reader.
fn action(verdict: Verdict) -> String {
    match verdict {
        Verdict::Grow(slots) => format!("grow to {slots} slots"),
        Verdict::Shrink(slots) => format!("shrink to {slots} slots"),
        Verdict::Adopt(slots) => format!("replace it by a counter of {slots} slots"),
        Verdict::Records(slots) => format!("replace it by counters of {slots} slots for the rows"),
        Verdict::Fine | Verdict::Inspect | Verdict::Correct | Verdict::Unknown => kind(verdict).into(),
    }
}

/// The recommended change without the number of slots, which follows the number of connections.
fn kind(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fine => "fine",
        Verdict::Inspect => "find the transactions that hold its locks",
        Verdict::Grow(_) => "grow",
        Verdict::Shrink(_) => "shrink",
        Verdict::Adopt(_) => "replace it by a counter",
        Verdict::Records(_) => "replace it by counters for the rows",
        Verdict::Correct => "correct it",
        Verdict::Unknown => "not known",
    }
}

/// A table with a row for each counter.
fn counters(watched: &Watched, advice: &[Advice]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header([
        "counter", "slots", "in use", "skew", "count/s", "waiting", "read us", "advice",
    ]);
    let of = |counter: &Counter| advice.iter().find(|one| one.subject == counter.subject());
    for one in watched.counters.iter().take(COUNTERS) {
        table.add_row([
            in_line(&one.subject()).into_owned(),
            one.slots.to_string(),
            one.busy_slots.to_string(),
            format!("{:.1}", one.skew),
            format!("{:.0}", one.counted as f64 / watched.seconds.max(1e-9)),
            if watched.sees_waits {
                format!("{:.1}", one.waiting)
            } else {
                "not known".into()
            },
            one.read_us
                .map_or_else(String::new, |(all, _)| format!("{all:.0}")),
            of(one).map_or_else(String::new, |advice| action(advice.verdict)),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(6) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
