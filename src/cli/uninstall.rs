//! `slotted uninstall`: removes a package from a database.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use clap::Args;
use mysql::Conn;

use super::connection::Connection;
use super::explained::explained;
use super::output::{Outcome, hinted, in_line, note};
use super::package::Name;
use crate::install;
use crate::package::{Ident, Package, shell_word};

/// The number of the records that are listed whose counts remain.
const RECORDS: usize = 20;

/// Remove the routines and views of a package from a database.
///
/// Executes uninstall.sql of slotted generate. If counts belong to a column, a last roll-up moves them, and the command lists those that
/// remain: of records that have no row, or whose total the column rejects. It calls no roll-up of another definer, and ends if counts are
/// pending. The table stays. With --with-data, the command also drops the table, after a question that names its counts.
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
        let (mut connection, database, _) = self.connection.connect_to_database()?;
        let all = self.name.packages(&mut connection, &database)?;
        let [(package, _)] = &all[..] else {
            let names = all.iter().map(|(one, _)| shell_word(one.description.name()));
            return Err(hinted(
                format!("the database {database} has {} packages", all.len()),
                format!("name one of them by its view: {}", names.collect::<Vec<_>>().join(", ")),
            ));
        };
        self.remove(&mut connection, package, &database).map_err(|error| match error.downcast() {
            Ok(error) => explained(error, &mut connection),
            Err(error) => error,
        })
    }

    fn remove(&self, connection: &mut Conn, package: &Package, database: &str) -> anyhow::Result<Outcome> {
        install::check_removal(connection, package, self.with_data)?;
        let mut seen = None;
        if self.with_data {
            not_shared(connection, package)?;
            let sum = install::sum(connection, package, &package.options.table)?;
            if !self.asked(package, database, &sum)? {
                return Ok(Outcome::Differs);
            }
            seen = Some(sum);
        }
        let say = &mut |said: &str| note!("{}", in_line(said));
        install::uninstall(connection, package, say)?;
        if package.options.column().is_some() {
            list_remaining(connection, package)?;
        }
        let table = &package.options.table;
        match seen {
            Some(seen) => install::drop_table(connection, package, &seen, say)?,
            None => {
                let (name, drop) = (in_line(table.name()), format!("DROP TABLE {}.{table}", Ident::stored(database)));
                note!("the table {name} is kept. To drop it with all counts: {}", in_line(&drop));
            }
        }
        note!("accounts are kept");
        Ok(Outcome::Fine)
    }

    /// Says what is dropped, and asks for the name of the table on the terminal, unless the command line has answered.
    fn asked(&self, package: &Package, database: &str, sum: &str) -> anyhow::Result<bool> {
        let table = package.options.table.name();
        let what = if package.options.column().is_some() { "The column stays" } else { "All counts are deleted" };
        let (database, name) = (in_line(database), in_line(table));
        note!("This drops the table {database}.{name}, whose counts have the sum {sum}. {what}.");
        if self.yes {
            return Ok(true);
        }
        if !io::stdin().is_terminal() {
            return Err(hinted(
                "there is no terminal to ask on; nothing has been changed",
                "add --yes to delete the data without a question",
            ));
        }
        eprint!("Type the name of the table to drop it: ");
        io::stderr().flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        let confirmed = answer.trim() == table;
        if !confirmed {
            note!("the answer is not {name}; nothing has been changed");
        }
        Ok(confirmed)
    }
}

/// An error if the table belongs to another package, also to one that this version cannot read.
fn not_shared(connection: &mut Conn, package: &Package) -> anyhow::Result<()> {
    let others = install::installed(connection, false)?;
    let mut others =
        others.iter().filter(|other| other.view.to_lowercase() != package.description.name().to_lowercase());
    let uses = |other: &&install::Installed| {
        let table = |package: &Package| package.options.table.name().to_lowercase();
        other.package.as_ref().is_none_or(|other| table(other) == table(package))
    };
    others.find(uses).map_or(Ok(()), |other| {
        Err(hinted(
            format!(
                "the package of the view {} can have the same table, {}; nothing has been changed",
                in_line(&other.view),
                package.options.table.name()
            ),
            "omit --with-data, which keeps the table",
        ))
    })
}

/// Lists the records whose counts remain in the table.
fn list_remaining(connection: &mut Conn, package: &Package) -> anyhow::Result<()> {
    let remain = install::counters(connection, package, RECORDS);
    let remain = remain.context("the routines are dropped, but counts can remain in a table that was renamed")?;
    if remain.number > 0 {
        let why = "because they have no row, the column rejects the counts, or there was no roll-up";
        note!("records that keep their counts in the table, {why}: {}", remain.number);
        remain.most.iter().for_each(|one| note!("  {}: {}", in_line(&one.name), one.total));
    }
    Ok(())
}
