//! `slotted advise`: what sessions wait for, and one sentence about it.

use std::io;
use std::time::Duration;

use clap::Args;
use mysql::Conn;
use mysql::prelude::Queryable;
use serde_json::{Value, json};

use super::Outcome;
use super::connection::Connection;
use super::output::{JSON_VERSION, in_line, note, outln};
use crate::advise::{self, Advice, Watched};
use crate::install::compare;
use crate::package::Package;

/// Say which counters and rows sessions wait for, and what to do.
///
/// Samples the row locks that sessions wait for, while the server has its usual load. For each counter or row, prints how many
/// sessions wait on average, with which statement, and one sentence: more slots, slots for a column, or to look at it. It changes
/// nothing.
///
/// The account needs PROCESS on *.* and SELECT and SHOW VIEW on the databases, and on MySQL SELECT on performance_schema.*. If it cannot see
/// everything, the report contains the GRANT statement. With --database, only rows of this database are reported.
///
/// Exits with 0 if there is nothing to do, with 1 if sessions wait, and with 2 if the account could not see everything.
#[derive(Debug, Args)]
pub struct Advise {
    /// The time to watch, in seconds
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = super::bench::seconds)]
    seconds: f64,

    /// Print a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

impl Advise {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut connection = self.connection.connect()?;
        let packages = packages(&mut connection)?;
        note!("watching for {} s", self.seconds);
        let duration = Duration::from_secs_f64(self.seconds);
        let mut watched = advise::watch(&mut connection, duration, &packages)?;
        let advice = watched.advice(&mut connection, &packages)?;
        if self.json {
            outln!("{:#}", as_json(&watched, &advice))?;
        } else {
            print(&watched, &advice)?;
        }
        Ok(match (watched.unseen.is_empty(), advice.is_empty()) {
            (false, _) => Outcome::Incomplete,
            (true, false) => Outcome::Differs,
            (true, true) => Outcome::Fine,
        })
    }
}

/// The packages of the current database, or of all databases, each with its database.
fn packages(connection: &mut Conn) -> anyhow::Result<Vec<(String, Option<Package>)>> {
    let database: Option<String> = connection.query_first("SELECT DATABASE()")?.flatten();
    let installed = compare::installed(connection, database.is_none())?;
    let package = |one: compare::Installed| match one.version {
        None => Some((one.schema, None)),
        Some(_) => Some((one.schema, Some(one.package?))),
    };
    Ok(installed.into_iter().filter_map(package).collect())
}

fn as_json(watched: &Watched, advice: &[Advice]) -> Value {
    let advice = advice.iter().map(|one| {
        json!({
            "database": one.database,
            "table": one.table,
            "key": one.key,
            "waiting": one.waiting,
            "statement": one.statement,
            "sentence": one.sentence,
            "run": one.run,
        })
    });
    json!({
        "schema_version": JSON_VERSION,
        "connected": watched.connected,
        "running": watched.running,
        "waiting": watched.waiting,
        "advice": advice.collect::<Vec<_>>(),
        "cannot_see": watched.unseen,
    })
}

fn print(watched: &Watched, advice: &[Advice]) -> io::Result<()> {
    outln!("On average, {:.1} sessions wait for a row lock.", watched.waiting)?;
    for one in advice {
        let (waiting, place) = (one.waiting, format!("{}.{} ({})", one.database, one.table, one.key));
        outln!("\n{}: {waiting:.1} of them, with", in_line(&place))?;
        let statement = one.statement.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in [&statement, &one.sentence].into_iter().chain(&one.run) {
            outln!("  {}", in_line(line))?;
        }
    }
    if advice.is_empty() && watched.unseen.is_empty() {
        outln!("No counter and no row that this command has watched needs a change.")?;
    }
    for (what, remedy) in &watched.unseen {
        let (what, remedy) = (in_line(what), in_line(remedy));
        outln!("\nThis account cannot see {what}:\n  {remedy}")?;
    }
    Ok(())
}
