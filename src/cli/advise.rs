//! `slotted advise`: recommend the number of slots for the counters of a server.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};
use mysql::Conn;
use mysql::prelude::Queryable;
use serde_json::json;

use super::bench::NewFile;
use super::connection::Connection;
use super::{Hinted, Outcome, private, progress};
use crate::advise::{self, Advice, Counter, Verdict, WatchError, Watched};
use crate::report::{self, Advised};
use crate::server::Version;

/// Recommend the number of slots for the counters of a server.
///
/// Watches the row lock waits of the server. Reports for each counter the recommended number of slots, the reason, and the
/// time of a read. Also finds rows that several sessions increment, which a counter can replace.
///
/// Run it while the server has its usual load. It changes nothing. The account needs the privilege PROCESS, and on MySQL
/// also SELECT on performance_schema. Exits with 1 if it recommends a change.
#[derive(Debug, Args)]
pub struct Advise {
    /// The time to watch, in seconds
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = super::bench::seconds)]
    seconds: f64,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Also write a page in HTML that explains the recommendations: one file, which loads nothing from the network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    #[command(flatten)]
    connection: Connection,
}

impl Advise {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let interrupted = private::on_interrupt(true)?;
        let file = NewFile::create("--html", self.html.as_deref())?;
        let (mut connection, _) = self.connection.connect(&interrupted)?;
        let environment = super::bench::environment(&mut connection)?;
        let engines = engines(&mut connection)?;
        let duration = Duration::from_secs_f64(self.seconds);
        let watched = progress::during(duration, |bar| {
            bar.set_message("watching");
            advise::watch(&mut connection, duration, &interrupted)
        });
        let watched = watched.map_err(|error| match error {
            WatchError::Privilege(_) => hinted(&mut connection, &error),
            WatchError::MySql(error) => error.into(),
        })?;
        let advice = watched.advice();
        if self.json {
            let environment = environment
                .iter()
                .map(|(name, value)| ((*name).to_owned(), json!(value)));
            println!(
                "{:#}",
                json!({
                    "environment": environment.collect::<serde_json::Map<_, _>>(),
                    "not_innodb": engines,
                    "watched": watched,
                    "advice": advice,
                })
            );
        } else {
            print(&environment, &engines, &watched, &advice);
        }
        if let Some(file) = file {
            file.write(&report::advise_page(&Advised {
                environment: &environment,
                watched: &watched,
                advice: &advice,
                not_innodb: &engines,
                cannot_see: &[],
                action,
            }))?;
        }
        Ok(if interrupted.load(std::sync::atomic::Ordering::Relaxed) {
            Outcome::Interrupted
        } else if advice.iter().any(|one| one.verdict != Verdict::Fine) || !engines.is_empty() {
            Outcome::Differs
        } else {
            Outcome::Fine
        })
    }
}

fn hinted(connection: &mut Conn, error: &WatchError) -> anyhow::Error {
    let account: Option<String> = connection.query_first("SELECT CURRENT_USER()").ok().flatten();
    let (user, host) = account
        .as_deref()
        .and_then(|account| account.rsplit_once('@'))
        .unwrap_or(("user", "host"));
    let mut hint = format!("GRANT PROCESS ON *.* TO '{user}'@'{host}'");
    if Version::of(connection).is_ok_and(|version| version.flavour == crate::server::Flavour::MySql) {
        hint += &format!("; GRANT SELECT ON performance_schema.* TO '{user}'@'{host}'");
    }
    Hinted {
        message: error.to_string(),
        hint,
    }
    .into()
}

/// The tables of named counters whose engine is not InnoDB. Other engines lock the whole table.
fn engines(connection: &mut Conn) -> anyhow::Result<Vec<String>> {
    Ok(connection.query(
        "SELECT CONCAT(columns.TABLE_SCHEMA, '.', columns.TABLE_NAME)
           FROM information_schema.COLUMNS AS columns
           JOIN information_schema.TABLES AS tables
             ON tables.TABLE_SCHEMA = columns.TABLE_SCHEMA
            AND tables.TABLE_NAME = columns.TABLE_NAME
            AND tables.TABLE_TYPE = 'BASE TABLE'
            AND tables.ENGINE <> 'InnoDB'
          WHERE columns.COLUMN_NAME IN ('counter_name', 'counter_id', 'start_date', 'counter')
          GROUP BY columns.TABLE_SCHEMA, columns.TABLE_NAME
         HAVING COUNT(*) = 4",
    )?)
}

fn print(environment: &[(&str, String)], engines: &[String], watched: &Watched, advice: &[Advice]) {
    let line = |(name, value): &(&str, String)| format!("{name} {value}");
    println!(
        "{}\n",
        environment.iter().map(line).collect::<Vec<_>>().join(", ")
    );
    println!(
        "Watched for {:.1} s: at most {} sessions connected, at most {} running, {} row lock waits of {:.1} s in total.\n",
        watched.seconds,
        watched.connected,
        watched.running,
        watched.row_lock_waits,
        watched.row_lock_ms as f64 / 1000.0
    );
    if !watched.counters.is_empty() {
        println!("{}\n", counters(watched, advice));
    }
    for table in engines {
        println!(
            "{table}: the engine is not InnoDB, so every increment locks the whole table\n  \
             ALTER TABLE {table} ENGINE = InnoDB;\n"
        );
    }
    for one in advice.iter().filter(|one| one.verdict != Verdict::Fine) {
        println!("{}\n  {}: {}", one.subject, action(one.verdict), one.because);
        if let Some((now, Some(then))) = one.read_us {
            println!("  a read takes {now:.0} us, and about {then:.0} us after the change");
        }
        for line in one.run.lines() {
            println!("  {line}");
        }
        println!();
    }
    let fine = advice.iter().filter(|one| one.verdict == Verdict::Fine).count();
    let found = match (advice.is_empty(), advice.len() - fine) {
        (true, _) => "no counter and no hot row found".to_owned(),
        (false, rest) => format!("recommended changes: {rest}, fine: {fine}"),
    };
    println!("{found}");
}

/// The recommended change, for a reader.
fn action(verdict: Verdict) -> String {
    match verdict {
        Verdict::Fine => "fine".into(),
        Verdict::Inspect => "find the transactions that hold its locks".into(),
        Verdict::Grow(slots) => format!("grow to {slots} slots"),
        Verdict::Shrink(slots) => format!("shrink to {slots} slots"),
        Verdict::Adopt(slots) => format!("replace it by a counter of {slots} slots"),
    }
}

/// A table with a row for each counter.
fn counters(watched: &Watched, advice: &[Advice]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header([
        "counter", "slots", "in use", "skew", "count/s", "waiting", "read us", "advice",
    ]);
    let of = |counter: &Counter| advice.iter().find(|one| one.subject == counter.subject());
    for one in &watched.counters {
        table.add_row([
            one.subject(),
            one.slots.to_string(),
            one.busy_slots.to_string(),
            format!("{:.1}", one.skew),
            format!("{:.0}", one.counted as f64 / watched.seconds.max(1e-9)),
            format!("{:.1}", one.waiting),
            format!("{:.0}", one.read_us),
            of(one).map_or_else(String::new, |advice| action(advice.verdict)),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(6) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
