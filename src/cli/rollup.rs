//! `slotted rollup`: moves pending counts into their columns, once or again and again.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use mysql::prelude::Queryable;

use super::connection::Connection;
use super::install::database;
use super::maintain::REPEATED;
use super::output::{note, outln};
use super::package::installed;
use super::{Outcome, hinted, interrupt};
use crate::connect::{Session, cause};
use crate::install::column;
use crate::package::{Package, PackageError, Prefix, RECORDS_MAX, Routine};

/// Move pending counts into their columns.
///
/// Calls the roll-up of each package of the database whose counts belong to a column, such as articles_views_rollup. On a cluster, each
/// node moves the slots that it writes itself: give one --url for each node. A call that conflicts with another node is repeated.
///
/// Exits with 1 if a column cannot have a total. All other counts are moved.
#[derive(Debug, Args)]
pub struct Rollup {
    /// The first part of the names of the routines, if only one package of the database is meant
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<Prefix>,

    /// The number of records of a batch [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(RECORDS_MAX)))]
    records: Option<u32>,

    /// Repeat the calls after this time, in seconds, until the command is stopped
    #[arg(long, value_name = "S", value_parser = seconds)]
    every: Option<Duration>,

    #[command(flatten)]
    connection: Connection,
}

fn seconds(text: &str) -> Result<Duration, String> {
    crate::connect::seconds(text).ok_or_else(|| "a number of seconds from 0.1 to 3600 is needed".into())
}

/// The time between two tries of a call, and between two looks for Ctrl-C.
const PAUSE: Duration = Duration::from_millis(100);

/// How often a call that conflicts is repeated.
const TRIES: u32 = 20;

impl Rollup {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut nodes = self.connection.connect_all()?;
        let database = database(&mut nodes[0])?;
        let mut packages: Vec<Package> = installed(&mut nodes[0])?
            .into_iter()
            .map(|one| one.package)
            .collect();
        packages.retain(|package| {
            package.routine(Routine::Rollup).is_some()
                && self
                    .prefix
                    .as_ref()
                    .is_none_or(|prefix| *prefix == package.options.prefix)
        });
        if packages.is_empty() {
            return Err(hinted(
                format!("no package of the database {database} has counts that belong to a column"),
                "slotted install --column TABLE.COLUMN installs one; give --database, or another --prefix",
            ));
        }
        if let Some(every) = self.every {
            let names: Vec<_> = packages
                .iter()
                .map(|package| package.options.table.name())
                .collect();
            note!(
                "rolling up {} every {} s until it is stopped",
                names.join(", "),
                every.as_secs_f64()
            );
        }
        let mut outcome = Outcome::Fine;
        let mut said = String::new();
        loop {
            let begin = Instant::now();
            for package in &packages {
                let rejected = match self.call(&mut nodes, package) {
                    // A server that is restarted does not end the command.
                    Err(error) if self.every.is_some() && self.lost(&mut nodes) => {
                        note!("warning: {error:#}; trying again");
                        continue;
                    }
                    called => called?,
                };
                if let Some(message) = &rejected {
                    outcome = Outcome::Differs;
                    if *message != said {
                        note!("warning: {message}");
                        said.clone_from(message);
                    }
                }
                if self.every.is_none() {
                    let (pending, _) = column::remaining(&mut nodes[0], package)?;
                    let seconds = begin.elapsed().as_secs_f64();
                    let table = package.options.table.name();
                    outln!("{table}: rolled up in {seconds:.1} s, {pending} records are pending")?;
                }
            }
            let Some(every) = self.every else {
                return Ok(outcome);
            };
            while begin.elapsed() < every {
                if let Some(reason) = interrupt::reason() {
                    return Err(reason);
                }
                thread::sleep(PAUSE.min(every));
            }
        }
    }

    /// Whether a connection was lost. Connects again, if this is possible now.
    fn lost(&self, nodes: &mut Vec<Session>) -> bool {
        let lost = interrupt::reason().is_none() && nodes.iter_mut().any(|node| node.ping().is_err());
        if lost && let Ok(connected) = self.connection.connect_all() {
            *nodes = connected;
        }
        lost
    }

    /// Calls the roll-up of a package on each node. Returns the message if a column cannot have a total.
    fn call(&self, nodes: &mut [Session], package: &Package) -> anyhow::Result<Option<String>> {
        let routine = package.routine(Routine::Rollup).expect("chosen by it");
        let records = self
            .records
            .map_or("NULL".to_owned(), |records| records.to_string());
        let call = format!("CALL {routine}({records})");
        let mut rejected = None;
        for (at, node) in nodes.iter_mut().enumerate() {
            let mut tries = 0;
            loop {
                tries += 1;
                let called = node.query_drop(&call);
                // No handler of MariaDB catches some errors of an UPDATE of several tables: the transaction of the call stays open.
                if called.is_err() {
                    let _ = node.query_drop("ROLLBACK");
                }
                match called {
                    Ok(()) => break,
                    Err(mysql::Error::MySqlError(error))
                        if error.code == PackageError::TotalRejected.number() =>
                    {
                        rejected = Some(error.message);
                        break;
                    }
                    Err(mysql::Error::MySqlError(error))
                        if REPEATED.contains(&error.code) && tries < TRIES =>
                    {
                        thread::sleep(PAUSE)
                    }
                    Err(error) => {
                        if let Some(reason) = interrupt::reason() {
                            return Err(reason);
                        }
                        let node = if at == 0 {
                            String::new()
                        } else {
                            format!(" on node {}", at + 1)
                        };
                        return Err(hinted(
                            format!("{call} failed{node}: {}", cause(&error)),
                            "no count is lost: run the command again when the cause is removed",
                        ));
                    }
                }
            }
        }
        Ok(rejected)
    }
}
