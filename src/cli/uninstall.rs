//! `slotted uninstall`: removes a package from a database.

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use super::connection::Connection;
use super::install::{database, explained};
use super::output::{in_line, note};
use super::package::{Found, Name};
use super::{Outcome, confirmed, hinted};
use crate::install::{self, column};
use crate::package::Package;

/// The number of the records that are listed whose counts remain.
const RECORDS: usize = 20;

/// Remove the routines and views of a package from a database.
///
/// Executes uninstall.sql of slotted generate. If counts belong to a column, a last roll-up moves them, and the command lists those that
/// remain in the table: of records that have no row, or whose total the column rejects. The table stays. With --with-data, the command
/// also drops the table, after a question that names its counts.
#[derive(Debug, Args)]
pub struct Uninstall {
    /// Also drop the table with all counts
    #[arg(long)]
    with_data: bool,

    /// Do not ask before --with-data drops the table
    #[arg(long, requires = "with_data")]
    yes: bool,

    #[command(flatten)]
    name: Name,

    #[command(flatten)]
    connection: Connection,
}

impl Uninstall {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut connection = self.connection.connect()?;
        let database = database(&mut connection)?;
        let all = self.name.packages(&mut connection, &database)?;
        let [Found { package, .. }] = &all[..] else {
            let names = all.iter().map(|one| one.package.package.name());
            return Err(hinted(
                format!("the database {database} has {} packages", all.len()),
                format!("name one of them by its view: {}", names.collect::<Vec<_>>().join(", ")),
            ));
        };
        let fails = |error, connection: &mut Conn| explained(error, connection, package);
        install::check_removal(&mut connection, package).map_err(|error| fails(error, &mut connection))?;
        let table = package.options.table.name();
        if self.with_data {
            not_shared(&mut connection, package)?;
            if !self.yes {
                note!(
                    "This drops the table {}.{}. {}",
                    in_line(&database),
                    in_line(table),
                    counts(&mut connection, package)
                );
                if !confirmed("the name of the table to drop it", table)? {
                    return Ok(Outcome::Differs);
                }
            }
        }
        let remain = install::uninstall(&mut connection, package, &mut |said| note!("{}", in_line(said)));
        let remain = remain.map_err(|error| fails(error, &mut connection))?;
        self.end(&mut connection, package, &remain)?;
        note!("accounts are kept");
        Ok(Outcome::Fine)
    }

    /// Lists the records whose counts remain, and drops the table if there is none.
    fn end(&self, connection: &mut Conn, package: &Package, remain: &[Row]) -> anyhow::Result<()> {
        let table = package.options.table.name();
        if !remain.is_empty() {
            note!(
                "records that keep their counts in the table, because they have no row or the column rejects the total: {}",
                remain.len()
            );
            remain.iter().take(RECORDS).for_each(|row| note!("  {}", in_line(&described(row))));
        }
        if !self.with_data {
            note!(
                "the table {} is kept. To drop it with all counts: DROP TABLE {}",
                in_line(table),
                package.options.table
            );
        } else if !remain.is_empty() {
            return Err(hinted(
                format!("the table {table} has counts that could not be moved; it is kept"),
                format!("move or delete them, then run: DROP TABLE {}", package.options.table),
            ));
        } else {
            connection.query_drop(format!("DROP TABLE IF EXISTS {}", package.options.table))?;
            note!("drop table {}", in_line(table));
        }
        Ok(())
    }
}

/// Rejects to drop the table of another package.
fn not_shared(connection: &mut Conn, package: &Package) -> anyhow::Result<()> {
    let others = super::package::installed(connection)?;
    let shared = others
        .iter()
        .find(|other| other.package.package != package.package && other.package.options.table == package.options.table);
    shared.map_or(Ok(()), |other| {
        Err(hinted(
            format!(
                "the package of the view {} has the same table, {}; nothing has been changed",
                other.package.package.name(),
                package.options.table.name()
            ),
            "omit --with-data, which keeps the table",
        ))
    })
}

/// What the table has, for the question.
fn counts(connection: &mut Conn, package: &Package) -> String {
    if package.options.column().is_some() {
        let (records, counts) = column::remaining(connection, package).unwrap_or_default();
        return format!("Pending counts, which are moved before: {counts} of {records} records. The column stays.");
    }
    let column = if package.options.is_named() { "counter" } else { "`count`" };
    let query = format!("SELECT CAST(COALESCE(SUM({column}), 0) AS CHAR) FROM {}", package.options.table);
    let sum: Option<String> = connection.query_first(query).ok().flatten();
    format!("The sum of its counts is {}.", sum.unwrap_or_else(|| "not known".into()))
}

/// The values of a row.
fn described(row: &Row) -> String {
    let value = |value: &Value| match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.as_sql(true),
    };
    let values = row.columns_ref().iter().zip(row.clone().unwrap());
    let values = values.map(|(column, one)| format!("{} {}", column.name_str(), value(&one)));
    values.collect::<Vec<_>>().join(", ")
}
