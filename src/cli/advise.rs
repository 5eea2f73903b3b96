//! `slotted advise`: what sessions wait for, and one sentence about it.

use std::io;
use std::time::Duration;

use clap::Args;
use mysql::prelude::Queryable;

use super::connection::{Connection, seconds};
use super::output::{JSON_VERSION, Outcome, in_line, note, outln};
use crate::advise::{self, Watched};
use crate::install;

/// Say which counters and rows sessions wait for, and what to do.
///
/// Samples the row locks that sessions wait for, while the server has its usual load. For each counter or row, prints how many sessions
/// wait on average, with which statement, and one sentence: more slots, slots for a column, or to look at it. It changes nothing.
///
/// The account needs PROCESS on *.* and SELECT and SHOW VIEW on the databases, and on MySQL SELECT on performance_schema.*. If it cannot see
/// everything, the report contains the GRANT statement. With --database, only rows of this database are reported.
///
/// Exits with 0 if there is nothing to do, with 1 if sessions wait, and with 2 if the account could not see everything.
#[derive(Debug, Args)]
pub struct Advise {
    /// The time to watch, in seconds
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = seconds)]
    seconds: f64,

    /// Print a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

impl Advise {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let (mut connection, _) = self.connection.open()?;
        let database: Option<String> = connection.query_first("SELECT DATABASE()")?.flatten();
        let installed = install::installed(&mut connection, database.is_none())?;
        // None is a package whose view this account cannot read. Other views are not packages.
        let packages = installed.into_iter().filter(|one| one.version.is_none() || one.package.is_some());
        let packages: Vec<_> = packages.map(|one| (one.schema, one.package)).collect();
        note!("watching for {} s", self.seconds);
        let mut watched = advise::watch(&mut connection, Duration::from_secs_f64(self.seconds), &packages)?;
        watched.advise(&mut connection, database.as_deref(), &packages)?;
        if self.json {
            let mut object = serde_json::to_value(&watched)?;
            object["schema_version"] = JSON_VERSION.into();
            outln!("{object:#}")?;
        } else {
            print(&watched)?;
        }
        Ok(match (watched.unseen.is_empty(), watched.advice.is_empty()) {
            (false, _) => Outcome::Incomplete,
            (true, false) => Outcome::Differs,
            (true, true) => Outcome::Fine,
        })
    }
}

fn print(watched: &Watched) -> io::Result<()> {
    outln!("On average, {:.1} sessions wait for a row lock.", watched.waiting)?;
    for one in &watched.advice {
        let (waiting, place) = (one.waiting, format!("{}.{} ({})", one.database, one.table, one.key));
        outln!("\n{}: {waiting:.1} of them, with", in_line(&place))?;
        let statement = one.statement.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in [&statement, &one.sentence].into_iter().chain(&one.run) {
            outln!("  {}", in_line(line))?;
        }
    }
    if watched.advice.is_empty() && watched.unseen.is_empty() {
        outln!("No counter and no row that this command has watched needs a change.")?;
    }
    for (what, remedy) in &watched.unseen {
        let (what, remedy) = (in_line(what), in_line(remedy));
        outln!("\nThis account cannot see {what}:\n  {remedy}")?;
    }
    Ok(())
}
