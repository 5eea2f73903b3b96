//! `slotted status`: compares the packages of a database with the rendered ones.

use std::sync::atomic::AtomicBool;

use clap::Args;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};
use mysql::Conn;
use mysql::prelude::Queryable;
use serde::Serialize;
use serde_json::json;

use super::Outcome;
use super::connection::Connection;
use super::install::database;
use super::output::out;
use super::package::{Chosen, Found};
use crate::install::compare::{self, ObjectState, State};
use crate::package::{Kind, Package, SqlStr};
use crate::server::Version;

/// The number of counters in the report, those with the highest totals.
const COUNTERS: usize = 20;

/// Compare the packages of a database with the rendered ones.
///
/// Reports each object as same, changed, missing, hidden, obsolete or foreign, also if a client or a migration has installed it, and
/// the counters with the highest totals. Only reads. Exits with 0 if all objects are the same, with 1 if one differs, and
/// with 2 if the command fails.
#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    chosen: Chosen,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

/// A counter of a package.
#[derive(Debug, Serialize)]
struct Counter {
    name: String,
    total: i128,
    slots: u64,
    /// The highest count of a slot as a multiple of the mean. 1 is even.
    skew: f64,
    resize_incomplete: bool,
}

impl Status {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let (mut connection, _) = self.connection.connect(&AtomicBool::new(false))?;
        let database = database(&mut connection)?;
        let server = Version::of(&mut connection)?.to_string();
        let mut same = true;
        let mut reports = Vec::new();
        for Found { package, version, .. } in self.chosen.packages(&mut connection, &database)? {
            let states = compare::states(&mut connection, &package)?;
            let counters = counters(&mut connection, &package).unwrap_or_default();
            same &= states.iter().all(|object| object.state == State::Same);
            reports.push((package, version, states, counters));
        }
        let text = if self.json {
            let packages = reports.iter().map(|(package, version, states, counters)| {
                let objects = states.iter().map(|ObjectState { kind, name, state }| {
                    let mut object = json!({ "kind": kind.to_string(), "name": name.name() });
                    let state = serde_json::to_value(state).unwrap_or_default();
                    if let (Some(object), Some(state)) = (object.as_object_mut(), state.as_object()) {
                        object.extend(state.clone());
                    }
                    object
                });
                json!({
                    "version": version,
                    "arguments": package.options.arguments(),
                    "objects": objects.collect::<Vec<_>>(),
                    "counters": counters,
                })
            });
            format!(
                "{:#}\n",
                json!({
                    "server": server,
                    "database": database,
                    "tool": env!("CARGO_PKG_VERSION"),
                    "same": same,
                    "packages": packages.collect::<Vec<_>>(),
                })
            )
        } else {
            let tool = env!("CARGO_PKG_VERSION");
            let mut text = format!("{server}, database {database}, compared with slotted {tool}\n");
            for (package, version, states, counters) in &reports {
                text += &described(package, version.as_deref(), states, counters);
            }
            text
        };
        out!("{text}")?;
        Ok(if same { Outcome::Fine } else { Outcome::Differs })
    }
}

/// The report of a package.
fn described(
    package: &Package,
    version: Option<&str>,
    states: &[ObjectState],
    counters: &[Counter],
) -> String {
    let arguments = package.options.arguments();
    let mut text = format!("\n{arguments}, version {}\n", version.unwrap_or("not known"));
    let differing: Vec<_> = states
        .iter()
        .filter(|object| object.state != State::Same)
        .collect();
    for object in &differing {
        let difference = match &object.state {
            State::Same => continue,
            State::Changed(differences) => format!("changed: {}", differences.join("; ")),
            State::Missing => "missing".into(),
            State::Hidden(privilege) => {
                format!("hidden: to read the definition, this account needs {privilege} ON *.*")
            }
            State::Obsolete => "obsolete: other options of the package have created it".into(),
            State::Foreign => "foreign: an object with this name that is not of a package".into(),
        };
        text += &format!("  {object}: {difference}\n");
    }
    let same = states.len() - differing.len();
    text += &format!("  {same} of {} objects are the same\n", states.len());
    if !differing.is_empty() {
        text += &format!("  To install what differs: slotted install {arguments}\n");
    }
    if counters.is_empty() {
        return text;
    }
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_header(["counter", "total", "slots", "skew", ""]);
    for one in counters {
        table.add_row([
            one.name.clone(),
            one.total.to_string(),
            one.slots.to_string(),
            format!("{:.1}", one.skew),
            if one.resize_incomplete {
                "a resize was interrupted"
            } else {
                ""
            }
            .to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    text + &format!("{table}\n")
}

/// The counters with the highest totals. An error of the server means that the table or a privilege is missing.
fn counters(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<Counter>> {
    let table = &package.options.table;
    let (name, slot, count) = match package.options.kind {
        Kind::Counters => ("counter_name".to_owned(), "counter_id", "counter"),
        Kind::SlottedCounters => {
            let columns = package.options.key.0.iter().map(|column| column.name.to_string());
            let separator = SqlStr(", ");
            (
                format!(
                    "CONCAT_WS({separator}, {})",
                    columns.collect::<Vec<_>>().join(", ")
                ),
                "slot",
                "`count`",
            )
        }
    };
    // Row 0 of a named counter is a mark, and negative slots are those of a resize that was interrupted.
    let usable = if package.options.kind == Kind::Counters {
        format!("{slot} > 0")
    } else {
        "TRUE".into()
    };
    let incomplete = if package.options.kind == Kind::Counters {
        format!("MIN({slot}) < 0")
    } else {
        "FALSE".into()
    };
    let rows: Vec<(String, String, u64, f64, u8)> = connection.query(format!(
        "SELECT CAST({name} AS CHAR),
                CAST(SUM({count}) AS CHAR),
                SUM({usable}),
                CAST(COALESCE(MAX({count}) * COUNT(*) / NULLIF(SUM({count}), 0), 1) AS DOUBLE),
                {incomplete}
           FROM {table}
          GROUP BY 1
          ORDER BY SUM({count}) DESC
          LIMIT {COUNTERS}"
    ))?;
    let counter = |(name, total, slots, skew, incomplete): (String, String, u64, f64, u8)| Counter {
        name,
        total: total.parse().unwrap_or_default(),
        slots,
        skew,
        resize_incomplete: incomplete == 1,
    };
    Ok(rows.into_iter().map(counter).collect())
}
