//! `slotted adopt`: move the counts of a row, a column or a table into a package.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};
use mysql::Conn;

use super::connection::Connection;
use super::install::database;
use super::output::{note, outln};
use super::package::installed;
use super::{Outcome, hinted, interrupt, progress};
use crate::adopt::{self, AdoptError, Move, Place, Sums};
use crate::connect::Session;
use crate::package::{
    Ident, Kind, Limit, NAME_MAX, Origins, Package, Prefix, Routine, Source, SqlStr, names,
};

/// Move the count of a row, or all counts of a column, into counters.
///
/// Adds the counts to the package in the database of the connection and sets them to 0, in transactions. The application can
/// write the column meanwhile. Run the command again when all instances of the application call the package in place of the
/// UPDATE: it moves the counts that the column has received since the first run. No order of these steps loses a count.
///
/// A row: --table, --column, --where and --counter. The counter is created if it does not exist. A column that a statement compares
/// with a limit, or on which a generated column depends, is rejected, because 0 would be a wrong value: with --limit, a bounded counter has what is left to the limit, and
/// the old statements find nothing left.
///
/// A column: --from pages.hits --key id moves all rows into the records of slotted_counters, and --from pages.hits into named
/// counters. --from TABLE moves a table of slots of the article of 2012, of the Slotted Counter Pattern, or of
/// activerecord-slotted_counters. The rows are moved in batches. After an interruption, run the command again: it moves the
/// rest.
#[derive(Debug, Args)]
pub struct Adopt {
    /// The table of the row, as TABLE or SCHEMA.TABLE
    #[arg(long, value_name = "TABLE", value_parser = table, required_unless_present = "from", conflicts_with = "from")]
    table: Option<Place>,

    /// The column with the count
    #[arg(long, required_unless_present = "from", conflicts_with = "from")]
    column: Option<Ident>,

    /// The column or the number that the column must not exceed. What is left to it is moved into a bounded counter, and the column
    /// is set to it
    #[arg(long, value_name = "LIMIT", conflicts_with = "from")]
    limit: Option<Limit>,

    /// The WHERE condition, which must match exactly one row
    #[arg(
        long = "where",
        value_name = "CONDITION",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    condition: Option<String>,

    /// The name of the counter
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    counter: Option<String>,

    /// The column of all rows, as TABLE.COLUMN or SCHEMA.TABLE.COLUMN, or a table of slots
    #[arg(long, value_name = "PLACE", value_parser = place)]
    from: Option<Place>,

    /// The columns of the table that have the key of slotted_counters, in the order of the key, or with its names and with values:
    /// record_type=123,record_id=id [default: the columns with the names of the key]
    #[arg(long, value_name = "COLUMNS", requires = "from")]
    key: Option<Origins>,

    /// An SQL expression for the names of the counters [default: such as 'pages.hits id = 1']
    #[arg(long, value_name = "EXPRESSION", requires = "from", conflicts_with = "key")]
    name: Option<String>,

    /// The number of rows of a batch, which are locked until it is moved [default: 10000, or 1000 for named counters]
    #[arg(long, value_name = "N", requires = "from", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    batch: Option<u64>,

    /// The number of connections that move batches, if different rows have different records
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    connections: u32,

    /// Add the counts to a counter that was made for another row, and those of keys that are equal in the collation of the
    /// package
    #[arg(long)]
    into_existing: bool,

    /// Move the counts although a statement compares the column with a limit, or other data depends on it, such as a statement that
    /// the application does not execute any more
    #[arg(long)]
    despite_comparisons: bool,

    /// The number of slots of a new counter [default: the default of the package]
    #[arg(long, value_name = "N", value_parser = crate::package::slot_count)]
    slots: Option<u32>,

    /// The prefix of the package's routines, if the database has several packages. A bounded package is only used if it is named,
    /// or if there is no other
    #[arg(long)]
    prefix: Option<Prefix>,

    #[command(flatten)]
    connection: Connection,
}

fn place(text: &str) -> Result<Place, String> {
    let names = names(text).map_err(|error| error.to_string())?;
    if names.len() > 3 {
        return Err("expected TABLE, TABLE.COLUMN or SCHEMA.TABLE.COLUMN".into());
    }
    Ok(Place(names))
}

fn table(text: &str) -> Result<Place, String> {
    let place = place(text)?;
    if place.0.len() > 2 {
        return Err("expected TABLE or SCHEMA.TABLE".into());
    }
    Ok(place)
}

impl Adopt {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut connection = self.connection.connect()?;
        let database = database(&mut connection)?;
        let packages = packages(&mut connection, &database)?;
        let package = self.package(&packages)?;
        adopt::prepare(&mut connection, package)?;
        let place = match (&self.from, &self.table, &self.column) {
            (Some(from), ..) => from.clone(),
            (None, Some(Place(table)), Some(column)) => {
                let schema = database.parse().ok().filter(|_| table.len() == 1);
                Place(
                    schema
                        .into_iter()
                        .chain(table.iter().cloned())
                        .chain([column.clone()])
                        .collect(),
                )
            }
            _ => unreachable!("clap requires them"),
        };
        let source = adopt::read(&mut connection, &place, self.limit.as_ref(), package, &packages)
            .map_err(explained)?;
        self.check_comparisons(&mut connection, &source, package)?;
        match (&self.condition, &self.counter) {
            (Some(condition), Some(name)) => self.row(&mut connection, package, &source, condition, name),
            _ => self.column(&mut connection, package, &source, interrupt::stop()),
        }
    }

    /// Rejects a move after which a statement would decide by a wrong value.
    fn check_comparisons(
        &self,
        connection: &mut Conn,
        source: &Source,
        package: &Package,
    ) -> anyhow::Result<()> {
        if self.despite_comparisons {
            return Ok(());
        }
        let found = adopt::comparisons(connection, source, package).map_err(explained)?;
        found.rejected(source, package).map_err(explained)?;
        if !found.complete {
            note!(
                "the server does not show all statements of the application: before you go on, check that none compares {} with a limit",
                source.plain()
            );
        }
        Ok(())
    }

    /// The package of --prefix, or the only one that is suitable and not bounded.
    fn package<'a>(&self, packages: &'a [Package]) -> anyhow::Result<&'a Package> {
        let suitable = |package: &&Package| {
            let of_kind = match package.options.kind {
                Kind::Counters => self.key.is_none(),
                Kind::SlottedCounters => self.from.is_some() && self.name.is_none(),
            };
            of_kind
                && (self.limit.is_none() || package.options.bounded)
                && self
                    .prefix
                    .as_ref()
                    .is_none_or(|prefix| *prefix == package.options.prefix)
        };
        let mut suitable: Vec<_> = packages.iter().filter(suitable).collect();
        // The counts of a bounded package were not below 0, which only the application knows.
        if self.prefix.is_none() && suitable.iter().any(|package| !package.options.bounded) {
            suitable.retain(|package| !package.options.bounded);
        }
        let list = |packages: &[&Package]| {
            packages
                .iter()
                .map(|package| package.options.prefix.name())
                .collect::<Vec<_>>()
                .join(", ")
        };
        match suitable[..] {
            [package] => Ok(package),
            [] => Err(hinted(
                "the database has no suitable package",
                format!(
                    "a row needs a package counters, --limit a bounded one, and --key a package slotted_counters: run slotted install; \
                     the prefixes of its packages are: {}",
                    list(&packages.iter().collect::<Vec<_>>())
                ),
            )),
            _ => Err(hinted(
                "the database has several packages",
                format!("add --prefix, one of: {}", list(&suitable)),
            )),
        }
    }

    fn row(
        &self,
        connection: &mut Conn,
        package: &Package,
        source: &Source,
        condition: &str,
        name: &str,
    ) -> anyhow::Result<Outcome> {
        if name.chars().count() > NAME_MAX as usize {
            let message = format!("the name of a counter has at most {NAME_MAX} characters: {name}");
            return Err(hinted(message, "give a shorter --counter that no other row has"));
        }
        let counter = (name, self.slots, self.into_existing);
        let moved = adopt::move_row(connection, package, source, condition, counter).map_err(explained)?;
        let created = if moved.created { "created, " } else { "" };
        let to = source
            .limit
            .as_ref()
            .map_or_else(|| "0".to_owned(), ToString::to_string);
        outln!(
            "{name}: {created}added {} from {}, set the row to {to}",
            moved.count,
            source.plain()
        )?;
        match package.routine(Routine::Take) {
            Some(take) => outln!("Take with: CALL {take}({}, amount);", SqlStr(name))?,
            None => {
                let increment = package.routine(Routine::Increment).expect("every package has it");
                outln!("Increment with: CALL {increment}({});", SqlStr(name))?;
            }
        }
        outln!("Run the command again when the application no longer updates the row.")?;
        Ok(Outcome::Fine)
    }

    fn column(
        &self,
        connection: &mut Session,
        package: &Package,
        source: &Source,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Outcome> {
        let mut work = || -> Result<_, AdoptError> {
            let mut moving = match package.options.kind {
                Kind::Counters => Move::to_named(package, source, self.name.clone())?,
                Kind::SlottedCounters => Move::to_records(package, source, self.key.as_ref())?,
            };
            moving.batch = self.batch.unwrap_or(match package.options.kind {
                Kind::Counters => 1_000,
                Kind::SlottedCounters => 10_000,
            });
            (moving.slots, moving.into_existing) = (self.slots, self.into_existing);
            note!("reading {}", source.plain());
            moving.check(connection)?;
            let before = moving.sums(connection)?;
            let start = Instant::now();
            let options = connection.options().clone();
            let connect = || Session::open(&options);
            let total = match package.options.kind {
                Kind::Counters => before.rows,
                Kind::SlottedCounters => before.counts,
            };
            let moved = progress::counted(total, |bar| {
                bar.message("moving rows");
                moving.run(&connect, self.connections, before.rows, interrupted, &|rows| {
                    bar.advance(rows)
                })
            })?;
            let seconds = start.elapsed().as_secs_f64();
            let connection = connection.after_idle().map_err(|error| AdoptError::Server {
                action: "connect again, and the counts are moved",
                error,
            })?;
            Ok((before, moved, seconds, moving.sums(connection)?))
        };
        let (before, rows, seconds, after) = work().map_err(explained)?;
        outln!("{}", report(package, source, before, after))?;
        outln!(
            "{rows} rows moved in {seconds:.1} s: {:.0} rows/s",
            rows as f64 / seconds.max(0.001)
        )?;
        if interrupted.load(Ordering::Relaxed) {
            note!("interrupted; run the command again: it moves what is left");
            return Ok(Outcome::Interrupted);
        }
        if after.counts == 0 {
            outln!("Nothing is left in the column.")?;
        } else {
            outln!(
                "{} rows have received counts meanwhile, with a sum of {}.",
                after.counts,
                after.source
            )?;
        }
        outln!("Run the command again when no instance of the application writes the column.")?;
        Ok(Outcome::Fine)
    }
}

/// The packages of the database.
fn packages(connection: &mut Conn, database: &str) -> anyhow::Result<Vec<Package>> {
    let packages: Vec<Package> = installed(connection)?
        .into_iter()
        .map(|found| found.package)
        .collect();
    if packages.is_empty() {
        let message = format!("the database {database} has no package");
        return Err(hinted(message, "run slotted install in this database first"));
    }
    Ok(packages)
}

/// The sums before and after.
fn report(package: &Package, source: &Source, before: Sums, after: Sums) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_header(["sum", "before", "after"]);
    let mut row = |name: String, before: i128, after: i128| {
        table.add_row([name, before.to_string(), after.to_string()]);
    };
    row(source.plain(), before.source, after.source);
    row(package.options.table.plain(), before.package, after.package);
    row(
        "both".into(),
        before.source.saturating_add(before.package),
        after.source.saturating_add(after.package),
    );
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn explained(error: AdoptError) -> anyhow::Error {
    let hint = error.hint();
    hinted(error, hint)
}
