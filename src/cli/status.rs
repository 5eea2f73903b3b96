//! `slotted status`: compares the packages of a database with the rendered ones.

use clap::Args;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};
use mysql::Conn;
use mysql::prelude::Queryable;
use serde::Serialize;
use serde_json::{Value, json};

use super::connection::Connection;
use super::install::database;
use super::output::{JSON_VERSION, in_line, out, outln};
use super::package::{self, Chosen};
use super::{Outcome, interrupt};
use crate::cluster::{self, CannotSee, Clash, Node};
use crate::connect::{Session, cause};
use crate::install::column::{self, Pending};
use crate::install::compare::{self, ObjectState, State};
use crate::install::definer;
use crate::install::preflight::{self, Problem};
use crate::number::count;
use crate::package::{KeyType, Kind, Package, Slots, SqlStr};
use crate::render::ObjectKind;
use crate::server::Version;

/// The number of counters in the report, those with the highest totals.
const COUNTERS: usize = 20;

/// The number of characters of a name in the report.
const NAME_MAX: usize = 255;

/// Compare the packages of a database with the rendered ones.
///
/// Reports each object as same, changed, missing, hidden, obsolete or foreign, also if a client or a migration has installed it, and
/// the counters with the highest totals. Only reads.
///
/// On a cluster, give one --url for each node. Also reports the settings, tables and versions that do not fit the cluster, each
/// with the statement that corrects it, the connections of all nodes, and the transactions that the cluster has rejected.
///
/// Exits with 0 if all objects are the same, with 1 if one differs or does not fit the cluster, and with 2 if the command fails or
/// could not see everything.
#[derive(Debug, Args)]
pub struct Status {
    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    chosen: Chosen,

    #[command(flatten)]
    connection: Connection,
}

/// A counter of a package.
#[derive(Debug, Serialize)]
struct Counter {
    name: String,
    /// The sum of the slots: the pending counts if the counter belongs to a column.
    total: i128,
    slots: u64,
    /// The number of slots that the connections of one node use. None if `auto_increment_increment` is 1, and 0 if all nodes
    /// use the same slots.
    slots_per_node: Option<u32>,
    /// The highest count of a slot as a multiple of the mean. 1 is even.
    skew: f64,
    resize_incomplete: bool,
}

/// A package, and how the nodes have it.
struct Report {
    package: Package,
    version: Option<String>,
    /// Of each node.
    states: Vec<Vec<ObjectState>>,
    counters: Vec<Counter>,
    pending: Vec<Pending>,
    /// What the server does not do for the columns.
    warnings: Vec<Problem>,
    /// What the account of the routines can do outside the database.
    note: Option<Problem>,
}

/// What the command has found.
struct Found {
    database: String,
    server: String,
    nodes: Vec<Node>,
    reports: Vec<Report>,
    clashes: Vec<Clash>,
    cannot_see: Vec<CannotSee>,
}

impl Status {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut connections = self.connection.connect_all()?;
        let found = Found::read(&self.chosen, &mut connections)?;
        // What was ended on the server is missing.
        if let Some(reason) = interrupt::reason() {
            return Err(reason);
        }
        if self.json {
            outln!("{:#}", found.json())?;
        } else {
            out!("{}", found.text())?;
        }
        Ok(found.outcome())
    }
}

impl Found {
    fn read(chosen: &Chosen, connections: &mut [Session]) -> anyhow::Result<Self> {
        let mut nodes = Vec::new();
        for connection in connections.iter_mut() {
            nodes.push(cluster::node(connection)?);
        }
        let several = connections.len() > 1;
        // An error says on which node.
        let on = |node: usize, error: anyhow::Error| match several {
            true => error.context(nodes[node].name.clone()),
            false => error,
        };
        let mut packages: Vec<package::Found> = Vec::new();
        let mut databases = Vec::new();
        let mut versions = Vec::new();
        for (node, connection) in connections.iter_mut().enumerate() {
            databases.push(database(connection).map_err(|error| on(node, error))?);
            let of_node = chosen
                .packages(connection, &databases[node])
                .map_err(|error| on(node, error))?;
            versions.push(compare::installed(connection, false)?);
            for found in of_node {
                if !packages
                    .iter()
                    .any(|one| one.package.package == found.package.package)
                {
                    packages.push(found);
                }
            }
        }
        let increment = nodes[0].increment;
        let mut cannot_see: Vec<_> = nodes
            .iter_mut()
            .flat_map(|node| std::mem::take(&mut node.cannot_see))
            .collect();
        let mut reports = Vec::new();
        for package::Found { package, version, .. } in packages {
            let mut states = Vec::new();
            for (node, connection) in connections.iter_mut().enumerate() {
                states.push(compare::states(connection, &package)?);
                let mut table = cluster::Table::of(&databases[node], &package);
                let mut of_node = versions[node]
                    .iter()
                    .filter(|one| one.view == package.package.name());
                table.version = of_node
                    .next()
                    .and_then(|one| Some(one.value("version")?.to_owned()));
                if nodes[node].cluster.is_some() {
                    table.read(connection, &mut cannot_see)?;
                }
                nodes[node].tables.push(table);
            }
            let shared = increment;
            // A view of this name could call functions with the privileges of this account.
            let stores = |object: &ObjectState| {
                object.kind == ObjectKind::Table
                    && object.name == package.options.table
                    && !matches!(object.state, State::Missing | State::Foreign)
            };
            let read = match states[0].iter().any(stores) {
                true => counters(&mut connections[0], &package, shared),
                false => Ok(Vec::new()),
            };
            if let Err(error) = &read
                && !cluster::denied(error)
                && states[0].iter().all(|object| object.state == State::Same)
            {
                cannot_see.push(CannotSee {
                    what: format!(
                        "the counters of {}: {}",
                        package.options.arguments(),
                        cause(error)
                    ),
                    remedy: "correct the rows of the table".into(),
                });
            }
            let counters = read.unwrap_or_default();
            let pending = match states[0].iter().any(stores) {
                true => column::pending(&mut connections[0], &package)?,
                false => Vec::new(),
            };
            reports.push(Report {
                version,
                states,
                counters,
                pending,
                warnings: preflight::warnings(&mut connections[0], &package)?,
                note: definer::note(&mut connections[0], &package)?,
                package,
            });
        }
        if cluster::several_write(&nodes) {
            cannot_see.extend(cluster::unseen(
                &nodes,
                "the packages, the versions and the settings",
            ));
        }
        Ok(Self {
            server: Version::of(&mut connections[0])?.to_string(),
            database: databases.swap_remove(0),
            clashes: cluster::clashes(&nodes),
            nodes,
            reports,
            cannot_see,
        })
    }

    /// Whether all objects of all nodes have one of these states.
    fn all(&self, of: impl Fn(&State) -> bool) -> bool {
        let mut objects = self
            .reports
            .iter()
            .flat_map(|report| report.states.iter().flatten());
        objects.all(|object| of(&object.state))
    }

    fn same(&self) -> bool {
        self.all(|state| *state == State::Same)
    }

    /// What differs counts more than what the account cannot see.
    fn outcome(&self) -> Outcome {
        let differs = !self.all(|state| matches!(state, State::Same | State::Hidden(_)));
        if differs || self.clashes.iter().any(|clash| clash.alarm) {
            Outcome::Differs
        } else if !self.same() || !self.cannot_see.is_empty() {
            Outcome::Incomplete
        } else {
            Outcome::Fine
        }
    }

    fn json(&self) -> Value {
        let objects = |states: &[ObjectState]| -> Vec<Value> {
            let objects = states.iter().map(|ObjectState { kind, name, state }| {
                let mut object = json!({ "kind": kind.to_string(), "name": name.name() });
                let state = serde_json::to_value(state).unwrap_or_default();
                if let (Some(object), Some(state)) = (object.as_object_mut(), state.as_object()) {
                    object.extend(state.clone());
                }
                object
            });
            objects.collect()
        };
        let packages = self.reports.iter().map(|report| {
            let others = self.nodes.iter().zip(&report.states).skip(1);
            let others =
                others.map(|(node, states)| json!({ "node": node.name, "objects": objects(states) }));
            json!({
                "version": report.version,
                "arguments": report.package.options.arguments(),
                "objects": objects(&report.states[0]),
                "other_nodes": others.collect::<Vec<_>>(),
                "counters": report.counters,
                "pending": report.pending,
                "warnings": report.warnings,
                "note": report.note,
            })
        });
        json!({
            "schema_version": JSON_VERSION,
            "server": self.server,
            "database": self.database,
            "tool": env!("CARGO_PKG_VERSION"),
            "same": self.same(),
            "connections": self.connections(),
            "nodes": self.nodes,
            "clashes": self.clashes,
            "cannot_see": self.cannot_see,
            "packages": packages.collect::<Vec<_>>(),
        })
    }

    /// The connections of all nodes.
    fn connections(&self) -> u32 {
        self.nodes.iter().map(|node| node.connected).sum()
    }

    fn text(&self) -> String {
        let cluster = self
            .nodes
            .iter()
            .find_map(|node| node.cluster.as_ref().filter(|one| one.joined));
        let of_cluster = cluster.map_or_else(String::new, |cluster| {
            format!(", {} of {}", cluster.kind, count(cluster.size.into(), "node"))
        });
        let mut text = format!(
            "{}{of_cluster}, database {}, compared with slotted {}\n",
            self.server,
            in_line(&self.database),
            env!("CARGO_PKG_VERSION")
        );
        if cluster.is_some() || self.nodes.len() > 1 {
            let connections = count(self.connections().into(), "connection");
            let observed = count(self.nodes.len() as u64, "server");
            text += &format!("\n{}\n{connections} on {observed}\n", table_of(&self.nodes));
        }
        for report in &self.reports {
            text += &report.described(&self.nodes);
        }
        for Clash {
            subject,
            because,
            run,
            alarm,
        } in &self.clashes
        {
            let hint = if *alarm { "" } else { "hint: " };
            text += &format!("\n{hint}{}: {}\n", in_line(subject), in_line(because));
            text.extend(run.lines().map(|line| format!("  {line}\n")));
        }
        for CannotSee { what, remedy } in &self.cannot_see {
            text += &format!("\ncannot see {}\n  {}\n", in_line(what), in_line(remedy));
        }
        text
    }
}

/// A line for each node.
fn table_of(nodes: &[Node]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header([
        "node",
        "server",
        "state",
        "writes",
        "increment",
        "offset",
        "connections",
        "rejected by certification",
    ]);
    for node in nodes {
        let rejected = node
            .certification
            .iter()
            .map(|(name, number)| format!("{name} {number}"));
        table.add_row([
            node.name.clone(),
            node.version.clone(),
            node.cluster
                .as_ref()
                .map_or_else(|| "no cluster".into(), |cluster| cluster.state.clone()),
            if node.read_only { "no" } else { "yes" }.into(),
            node.increment.to_string(),
            node.offset.to_string(),
            node.connected.to_string(),
            rejected.collect::<Vec<_>>().join("\n"),
        ]);
    }
    for column in table.column_iter_mut().skip(4).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

impl Report {
    fn described(&self, nodes: &[Node]) -> String {
        let arguments = self.package.options.arguments();
        let version = in_line(self.version.as_deref().unwrap_or("not known"));
        let mut text = format!("\n{arguments}, version {version}\n");
        let is_same = |object: &ObjectState| object.state == State::Same;
        let differs = !self.states.iter().flatten().all(is_same);
        for (node, states) in nodes.iter().zip(&self.states) {
            let on = match nodes {
                [_] => String::new(),
                _ => format!("{}: ", node.name),
            };
            for object in states {
                let difference = match &object.state {
                    State::Same => continue,
                    State::Changed(differences) => format!("changed: {}", in_line(&differences.join("; "))),
                    State::Missing => "missing".into(),
                    State::Hidden(privilege) => format!(
                        "hidden: this account cannot see it without {privilege} on {}",
                        object.scope().unwrap_or("the database")
                    ),
                    State::Obsolete => "obsolete: other options of the package have created it".into(),
                    State::Foreign => "foreign: an object with this name that is not of a package".into(),
                };
                text += &format!("  {on}{object}: {difference}\n");
            }
            let (same, all) = (
                states.iter().filter(|object| is_same(object)).count(),
                states.len(),
            );
            if differs || nodes.len() == 1 {
                text += &format!("  {on}{same} of {all} objects are the same\n");
            }
        }
        let mut objects = self.states.iter().flatten();
        if self.package.options.definer.is_some() && objects.clone().any(ObjectState::lacks_definer) {
            text +=
                &format!("  To create the definer: source accounts.sql of slotted generate {arguments}\n");
        }
        let lost = self
            .states
            .iter()
            .find_map(|states| preflight::lost_table(&self.package, states));
        if let Some(Problem { what, remedy }) = lost {
            text += &format!("  {what}\n    {remedy}\n");
        } else if objects.any(|object| object.is_left(&self.package)) {
            text += &format!("  To install what differs: slotted install {arguments}\n");
        } else if !differs && nodes.len() > 1 {
            text += &format!(
                "  all objects are the same on {}\n",
                count(nodes.len() as u64, "server")
            );
        }
        for Pending {
            column,
            records,
            counts,
            without_row,
            counts_without_row,
            rejected,
            rejected_record,
        } in &self.pending
        {
            text += &format!(
                "  {column}: {} with pending counts, {counts} in all\n",
                count(*records, "record")
            );
            if *without_row > 0 {
                let records = count(*without_row, "record");
                text += &format!("    {records} without a row: {counts_without_row} stay pending\n");
            }
            if let Some(record) = rejected_record {
                let records = count(*rejected, "record");
                text += &format!(
                    "    {records} whose total the column cannot have, such as {}\n",
                    in_line(record)
                );
            }
        }
        for Problem { what, remedy } in &self.warnings {
            text += &format!("  warning: {what}\n    {remedy}\n");
        }
        if let Some(Problem { what, remedy }) = &self.note {
            let remedy = remedy.replace('\n', "\n  ");
            text += &format!("  note: {}\n    {remedy}\n", in_line(what));
        }
        if self.counters.is_empty() {
            return text;
        }
        let pending = self.package.options.column.is_some();
        text + &format!("{}\n", counters_of(&self.counters, pending))
    }
}

/// A line for each counter.
fn counters_of(counters: &[Counter], pending: bool) -> Table {
    let per_node = counters.iter().any(|one| one.slots_per_node.is_some());
    // The slots of a column have what is pending.
    let total = if pending { "pending" } else { "total" };
    let mut header = vec!["counter", total, "slots", "skew", ""];
    if per_node {
        header.insert(3, "per node");
    }
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header(header);
    for one in counters {
        let mut row = vec![
            in_line(&one.name).into_owned(),
            one.total.to_string(),
            one.slots.to_string(),
        ];
        if per_node {
            row.push(match one.slots_per_node {
                Some(0) | None => "shared".into(),
                Some(slots) => slots.to_string(),
            });
        }
        row.push(format!("{:.1}", one.skew));
        row.push(
            if one.resize_incomplete {
                "a resize was interrupted"
            } else {
                ""
            }
            .into(),
        );
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1).take(3 + usize::from(per_node)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The counters with the highest totals. An error of the server means that the table is not as the package needs it, or that a
/// privilege is missing.
fn counters(connection: &mut Conn, package: &Package, shared: u32) -> mysql::Result<Vec<Counter>> {
    let table = &package.options.table;
    let (name, slot, count) = match package.options.kind {
        Kind::Counters => ("counter_name".to_owned(), "counter_id", "counter"),
        Kind::SlottedCounters => {
            // Bytes are written as the commands read them.
            let columns = package.options.key.0.iter().map(|column| match column.kind {
                KeyType::Binary(..) => format!("CONCAT('0x', HEX({}))", column.name),
                _ => column.name.to_string(),
            });
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
    // The table of another package can have bytes that are no characters, and NULL.
    type Row = (Option<Vec<u8>>, String, u64, f64, u8);
    let rows: Vec<Row> = connection.query(format!(
        "SELECT LEFT(CAST({name} AS CHAR), {NAME_MAX}),
                CAST(COALESCE(SUM({count}), 0) AS CHAR),
                COALESCE(SUM({usable}), 0),
                COALESCE(MAX({count}) * 1e0 * COUNT(*) / NULLIF(SUM({count}), 0), 1),
                COALESCE({incomplete}, 0)
           FROM {table}
          GROUP BY 1
          ORDER BY SUM({count}) DESC
          LIMIT {COUNTERS}"
    ))?;
    let counter = |(name, total, slots, skew, incomplete): Row| Counter {
        name: String::from_utf8_lossy(&name.unwrap_or_default()).into_owned(),
        total: total.parse().unwrap_or_default(),
        slots,
        slots_per_node: (shared > 1).then(|| {
            // Records have only the slots that were inserted.
            let slots = match package.options.slots {
                Slots::Fixed(slots) if package.options.kind == Kind::SlottedCounters => slots,
                _ => slots as u32,
            };
            cluster::slots_per_node(slots, shared)
        }),
        skew,
        resize_incomplete: incomplete == 1,
    };
    Ok(rows.into_iter().map(counter).collect())
}
