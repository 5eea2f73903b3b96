//! `slotted uninstall`: removes a package from a database.

use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use mysql::prelude::Queryable;

use super::connection::Connection;
use super::install::{database, explained, waits};
use super::output::note;
use super::package::{Chosen, Found};
use super::{Outcome, confirmed, hinted, interrupt};
use crate::connect::Session;
use crate::install::column;
use crate::install::compare::{self, ObjectState, State};
use crate::install::{self, Plan};
use crate::package::{Ident, Package, PackageError, Roles, Routine};
use crate::render::{self, Object, ObjectKind};

/// Remove the routines, views and events of a package from a database.
///
/// If counts belong to a column, the command first calls the roll-up, and says which counts remain in the slots.
/// The table with the counts stays. With --with-data, the command also drops the table, after a question that names the
/// counters and their totals. Without PACKAGE, the database must have exactly one package.
#[derive(Debug, Args)]
pub struct Uninstall {
    /// Also drop the table with all counts
    #[arg(long)]
    with_data: bool,

    /// Do not ask before --with-data drops the table
    #[arg(long, requires = "with_data")]
    yes: bool,

    #[command(flatten)]
    chosen: Chosen,

    #[command(flatten)]
    connection: Connection,
}

/// The errors after which it is repeated: a lock wait time-out, a deadlock, and a conflict with another node of a cluster.
const REPEATED: [u16; 4] = [1205, 1213, 1180, 3101];

/// How often the last roll-up is repeated while other transactions have locks, and the time between two calls.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_secs(1);
/// How long a statement of it waits for a row, in seconds.
const LOCK_WAIT: u32 = 5;

impl Uninstall {
    /// Calls the roll-up for the last time. Returns the number of the records whose counts remain in the slots, and their sum.
    fn last_rollup(
        &self,
        connection: &mut Session,
        package: &Package,
        states: &[ObjectState],
    ) -> anyhow::Result<Option<(u64, String)>> {
        let has = |name: &Ident| {
            states.iter().any(|object| {
                object.name == *name && !matches!(object.state, State::Missing | State::Foreign)
            })
        };
        let Some(rollup) = package
            .routine(Routine::Rollup)
            .filter(|name| has(name) && has(&package.options.table))
        else {
            return Ok(None);
        };
        note!("call {}", rollup.name());
        connection.query_drop(format!(
            "SET SESSION innodb_lock_wait_timeout = CAST(LEAST(@@SESSION.innodb_lock_wait_timeout, {LOCK_WAIT}) AS UNSIGNED)"
        ))?;
        let mut remain = None;
        for attempt in 1..=TRIES {
            // Waits for the transactions that have counted. They cannot count again. SET, because DO hides a lock wait timeout on MariaDB.
            let locked = connection.query_drop(format!(
                "SET @slotted_locked = (SELECT COUNT(*) FROM {} LOCK IN SHARE MODE)",
                package.options.table
            ));
            // At first what no other transaction has locked, then the rest.
            let statements = if attempt == 1 {
                vec![format!("CALL {rollup}(NULL)")]
            } else {
                render::waiting_rollup(package)
            };
            for statement in statements {
                match connection.query_drop(&statement) {
                    // All other totals are changed.
                    Err(mysql::Error::MySqlError(error))
                        if error.code == PackageError::TotalRejected.number() =>
                    {
                        note!("warning: {}", error.message);
                    }
                    // A row of the column's table, or a transaction of another node, can be locked now.
                    Err(mysql::Error::MySqlError(error)) if REPEATED.contains(&error.code) => {
                        connection.query_drop("ROLLBACK")?;
                        break;
                    }
                    other => {
                        other.with_context(|| format!("{} failed; the roll-up is kept", rollup.name()))?
                    }
                }
            }
            let (records, counts) = column::remaining(connection, package)?;
            remain = (records > 0 && package.options.column.is_some()).then_some((records, counts));
            let movable = column::pending(connection, package)?;
            let movable = movable.iter().any(|of| of.records > of.without_row + of.rejected);
            if let Some(reason) = interrupt::reason() {
                return Err(reason);
            }
            match locked {
                Ok(()) if !movable => break,
                Err(mysql::Error::MySqlError(error)) if REPEATED.contains(&error.code) => {
                    if attempt == TRIES {
                        return Err(hinted(
                            format!(
                                "transactions that have counted are still open ({}); {} and the table are kept",
                                error.message,
                                rollup.name()
                            ),
                            "end these transactions with COMMIT, and run the command again",
                        ));
                    }
                }
                other => other?,
            }
            if attempt == 1 {
                note!("waiting for transactions that have counted");
            }
            thread::sleep(PAUSE);
        }
        Ok(remain)
    }

    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut connection = self.connection.connect()?;
        let database = database(&mut connection)?;
        let mut found = self.chosen.packages(&mut connection, &database)?;
        if found.len() > 1 {
            let names = found.iter().map(|one| one.package.options.arguments());
            return Err(hinted(
                format!("the database {database} has {} packages", found.len()),
                format!("give one of them: {}", names.collect::<Vec<_>>().join("; ")),
            ));
        }
        let Found {
            package, arguments, ..
        } = found.remove(0);
        let table = &package.options.table;
        if let Some(arguments) = &arguments
            && *arguments != package.options.arguments()
        {
            return Err(hinted(
                format!("the database {database} has the package with other options: {arguments}"),
                "omit PACKAGE, or give these options",
            ));
        }
        // From here on, no installation changes what the states say.
        install::lock(&mut connection).map_err(explained)?;
        let states = compare::states(&mut connection, &package)?;
        let of_table = states
            .iter()
            .find(|object| object.kind == ObjectKind::Table)
            .map(|object| &object.state);
        if self.with_data && arguments.is_none() && !matches!(of_table, Some(State::Same | State::Missing)) {
            return Err(hinted(
                format!(
                    "the table {} is not like the table of the package; nothing has been changed",
                    table.name()
                ),
                "omit --with-data, and drop the table yourself if it is not needed",
            ));
        }
        let shared = compare::installed(&mut connection, false)?
            .into_iter()
            .find(|other| {
                other.view != package.package.name() && other.value("table_name") == Some(table.name())
            });
        if let Some(other) = shared.filter(|_| self.with_data) {
            return Err(hinted(
                format!(
                    "the package of the view {} has the same table, {}; nothing has been changed",
                    other.view,
                    table.name()
                ),
                "omit --with-data, which keeps the table",
            ));
        }
        if self.with_data && !self.yes {
            // Not from the view of the database, which can have another query.
            let totals = render::objects(&package)
                .iter()
                .find(|object| object.name == package.totals)
                .and_then(Object::query);
            let what = if package.options.column.is_some() {
                let pending = column::pending(&mut connection, &package)?;
                let pending = pending
                    .iter()
                    .map(|of| format!("{} of {} records", of.counts, of.records));
                format!(
                    "Pending counts, which are moved before: {}. The column stays.",
                    pending.collect::<Vec<_>>().join(", ")
                )
            } else {
                let counts: mysql::Result<Vec<(String, String)>> = connection.query(format!(
                "SELECT CAST(COUNT(*) AS CHAR), CAST(COALESCE(SUM(total), 0) AS CHAR) FROM ({}) AS totals",
                totals.expect("every package has this view")
            ));
                let (counters, total) = counts
                    .ok()
                    .and_then(|mut rows| rows.pop())
                    .unwrap_or_else(|| ("?".into(), "?".into()));
                format!("Counters: {counters}. Sum of their totals: {total}.")
            };
            note!("This drops the table {database}.{}. {what}", table.name());
            if !confirmed("the name of the table to drop it", table.name())? {
                return Ok(Outcome::Differs);
            }
        }
        let [first, rest] = install::removal(&package, &states, self.with_data);
        let nothing = first.is_empty() && rest.is_empty();
        let remove = |connection: &mut Session, steps| {
            let plan = Plan {
                steps,
                ..Plan::default()
            };
            let report = |step: &install::Step| {
                note!("{}", step.action);
                Ok(())
            };
            install::apply(connection, &plan, interrupt::stop(), report, waits).map_err(explained)
        };
        // After the routines that count, so that nothing counts after the last roll-up.
        remove(&mut connection, first)?;
        let remain = self.last_rollup(&mut connection, &package, &states)?;
        if let Some((records, pending)) = remain.as_ref().filter(|_| self.with_data) {
            return Err(hinted(
                format!(
                    "the table {} still has pending counts of {records} records ({pending} in all); it and the roll-up are kept",
                    table.name()
                ),
                format!(
                    "slotted status says why they cannot be moved. Delete them if they are not needed (DELETE FROM {table}), and run the command again"
                ),
            ));
        }
        remove(&mut connection, rest)?;
        if nothing {
            note!("the database {database} has nothing of the package");
        }
        for object in states.iter().filter(|object| object.state == State::Foreign) {
            note!("kept {object}, which is not of a package");
        }
        if let Some((records, pending)) = &remain {
            note!(
                "pending counts of {records} records ({pending} in all) stay in the table: they have no row, their column rejects the total, or another \
                 transaction or node has them. To move them later, install again and uninstall"
            );
        }
        if !self.with_data && !matches!(of_table, Some(State::Missing) | None) {
            if package.options.column.is_some() && remain.is_none() {
                note!(
                    "the table {} is kept; it has no pending counts. To drop it: DROP TABLE {table}",
                    table.name()
                );
            } else {
                note!("the table {} and its counts are kept", table.name());
            }
        }
        if !nothing {
            let Roles { application, admin } = package.roles();
            let account = package.options.definer.as_ref();
            let account = account.map_or_else(String::new, |account| format!("; DROP USER {account}"));
            note!(
                "the roles and accounts of the package are kept. If they exist and no other package and no other database uses them: \
                 DROP ROLE {application}, {admin}{account}"
            );
        }
        Ok(Outcome::Fine)
    }
}
