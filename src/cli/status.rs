//! `slotted status`: compares the packages of a database with the rendered ones.

use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use mysql::Conn;
use serde_json::{Value, json};

use super::connection::Connection;
use super::output::{JSON_VERSION, Outcome, in_line, out, outln};
use super::package::Name;
use crate::install::compare::{self, ObjectState, State};
use crate::install::{self, Counter, Counts, Problem, column, definers, hint, preflight, trial};
use crate::package::{Package, TableColumn};
use crate::server::Version;

/// The number of counters in the report, those with the highest totals.
const COUNTERS: usize = 5;

/// Compare the packages of a database with the rendered ones.
///
/// Compares the table, the views and the routines, whoever has installed them, and what counts of a column depend on: the column, its key,
/// and the event that calls the roll-up. Shows the counters with the highest totals and what is pending. Only reads.
///
/// Exits with 0 if everything is the same, with 1 if something differs, and with 2 if the command fails or could not see everything.
#[derive(Debug, Args)]
pub struct Status {
    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    name: Name,

    #[command(flatten)]
    connection: Connection,
}

/// What the command has found of a package.
struct PackageReport {
    package: Package,
    version: String,
    objects: Vec<ObjectState>,
    /// None if the table does not exist or differs.
    counts: Option<Counts>,
    /// What to do about the objects that differ.
    hints: Vec<String>,
    problems: Vec<Problem>,
}

impl Status {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let (mut connection, database, _) = self.connection.connect_to_database()?;
        let server = Version::of(&mut connection)?.to_string();
        let found = self.name.packages(&mut connection, &database)?.into_iter();
        let reports = found.map(|one| PackageReport::read(&mut connection, one)).collect::<Result<Vec<_>, _>>()?;
        let outcome = reports.iter().map(PackageReport::outcome).fold(Outcome::Fine, |all, one| match (all, one) {
            (Outcome::Differs, _) | (_, Outcome::Fine) => all,
            _ => one,
        });
        if self.json {
            let packages: Vec<_> = reports.iter().map(PackageReport::json).collect();
            let report = json!({
                "schema_version": JSON_VERSION,
                "server": server,
                "database": database,
                "tool": env!("CARGO_PKG_VERSION"),
                "same": outcome == Outcome::Fine,
                "packages": packages,
            });
            outln!("{report:#}")?;
        } else {
            outln!("{server}, database {}, compared with slotted {}", in_line(&database), env!("CARGO_PKG_VERSION"))?;
            for report in &reports {
                out!("{}", report.text())?;
            }
        }
        Ok(outcome)
    }
}

impl PackageReport {
    fn read(connection: &mut Conn, (mut package, version): (Package, String)) -> anyhow::Result<Self> {
        let mut objects = compare::states(connection, &package)?;
        // The owner of the database can write any account into the view, but not into a routine.
        let found = definers::all(connection, &package)?;
        package.options.definer = package.options.definer.filter(|definer| found.contains(&Some(definer.clone())));
        compare::hide(&mut objects);
        // A view of this name could call functions with the privileges of this account.
        let stores = objects.iter().any(|object| object.kind == "table" && object.state == State::Same);
        let counts = stores.then(|| install::counters(connection, &package, COUNTERS)).transpose()?;
        let mut problems = Vec::new();
        let has = |of: fn(&State) -> bool| objects.iter().any(|one| one.is_routine() && of(&one.state));
        let found = column::event_problem(connection, &package);
        let denied = matches!(&found, Err(mysql::Error::MySqlError(error)) if error.code == 1142)
            || matches!(found, Ok(Some(_))) && has(|state| *state == State::Hidden);
        // A routine of somebody else with such a name says nothing of the account that an event may run as.
        match package.event() {
            _ if has(|state| matches!(state, State::Changed(_))) => {}
            Some(event) if denied => objects.push(compare::of("event", event.name(), State::Hidden)),
            _ => problems.extend(found?),
        }
        problems.extend(preflight::definer(connection, &package)?);
        problems.extend(preflight::cluster(connection, &package)?);
        problems.extend(definers::mixed(connection, &package)?);
        let added = trial::added(connection, &package, &package.options.table)?;
        problems.extend(
            added.map(|what| Problem { what, remedy: "each call executes it: drop it, unless you need it".to_owned() }),
        );
        let hints = hints(connection, &package, &objects)?;
        Ok(Self { package, version, objects, counts, hints, problems })
    }

    /// What differs counts more than what the account cannot see.
    fn outcome(&self) -> Outcome {
        let any = |of: fn(&State) -> bool| self.objects.iter().any(|object| of(&object.state));
        if !self.problems.is_empty() || any(|state| matches!(state, State::Changed(_) | State::Missing)) {
            Outcome::Differs
        } else if any(|state| *state == State::Hidden) {
            Outcome::Incomplete
        } else {
            Outcome::Fine
        }
    }

    fn json(&self) -> Value {
        // JSON has no integers outside of i64 and u64.
        let number = |total: i128| serde_json::to_value(total).unwrap_or_else(|_| total.to_string().into());
        let (counts, total) = (self.counts.as_ref(), self.package.options.column().map_or("total", |_| "pending"));
        let pending = |(column, counts): (&TableColumn, &Counts)| json!({ "column": column.to_string(), "records": counts.number, "counts": counts.sum });
        let counter = |one: &Counter| json!({ "name": one.name, total: number(one.total), "slots": one.slots });
        json!({
            "version": self.version,
            "arguments": self.package.options.arguments(),
            "objects": self.objects,
            "counters": counts.map_or(vec![], |counts| counts.most.iter().map(counter).collect()),
            "more_counters": counts.map_or(0, |counts| counts.number - counts.most.len()),
            "pending": self.package.options.column().zip(counts).map(pending),
            "problems": self.problems,
        })
    }

    fn text(&self) -> String {
        let arguments = self.package.options.arguments();
        let mut text = format!("\n{arguments}, version {}\n", in_line(&self.version));
        let mut same = 0;
        for object in &self.objects {
            match &object.state {
                State::Same => same += 1,
                state => text += &format!("  {}\n", in_line(&format!("{object}: {state}"))),
            }
        }
        text += &format!("  {same} of {} objects are the same\n", self.objects.len());
        for hint in &self.hints {
            text += &format!("  {}\n", in_line(hint));
        }
        for Problem { what, remedy } in &self.problems {
            text += &format!("  {}\n", in_line(what));
            remedy.lines().for_each(|line| text += &format!("    {}\n", in_line(line)));
        }
        let Some(counts) = &self.counts else { return text };
        if let Some(column) = self.package.options.column() {
            text += &format!("  {column}: {} pending counts of {} records\n", counts.sum, counts.number);
        }
        if !counts.most.is_empty() {
            text += &format!("{}\n", table(&counts.most, self.package.options.column().map_or("total", |_| "pending")));
        }
        let more = counts.number - counts.most.len();
        if more > 0 {
            text += &format!("  and {more} more\n");
        }
        text
    }
}

/// A line for each counter.
fn table(counters: &[Counter], total: &str) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["counter", total, "slots"]);
    for one in counters {
        table.add_row([in_line(&one.name), one.total.to_string(), one.slots.to_string()]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// How to install the objects that differ, or to see those that are hidden. A table that differs is for a person, as its state says.
fn hints(connection: &mut Conn, package: &Package, objects: &[ObjectState]) -> mysql::Result<Vec<String>> {
    let differing: Vec<_> = objects.iter().filter(|object| object.state != State::Same).collect();
    let is_changed = |object: &&ObjectState| object.kind == "table" && matches!(object.state, State::Changed(_));
    if differing.is_empty() || differing.iter().any(is_changed) {
        return Ok(vec![]);
    }
    if differing.iter().any(|object| object.state == State::Hidden) {
        let is_event = differing.iter().any(|object| object.kind == "event");
        return Ok(vec![format!("To see it, {}", hint::sight(connection, is_event)?)]);
    }
    if install::steps(package, objects).is_err() {
        return Ok(vec![format!("To repair it, {}", hint::lost(connection, package.options.table.name())?)]);
    }
    let command = hint::command(connection, &package.options)?;
    Ok(vec![format!("To install what differs, as the owner of the database: {command}")])
}
