//! Compares the objects of a package in a database with the rendered ones.
//!
//! Routines are compared token by token: the server prints them with their original body. It rewrites the query of a view, of which the names
//! and types of the columns are compared. The checks of the scripts compare the table. Nothing that is found is executed: the account can
//! have privileges that its owner does not have.

use std::collections::BTreeSet;
use std::fmt;

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use serde::Serialize;

use super::installed::text;
pub use super::installed::{Installed, installed};
use super::stored::Stored;
use crate::package::{Ident, Package, SqlStr, Subject};
use crate::render::{self, Task};

/// How an object in a database differs from the object of the package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "differences")]
pub enum State {
    /// It is the same.
    Same,
    /// It differs. Each text is one difference.
    Changed(Vec<String>),
    /// It does not exist.
    Missing,
    /// This account cannot see it.
    Hidden,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.write_str("same"),
            Self::Changed(differences) => write!(f, "differs: {}", differences.join("; ")),
            Self::Missing => f.write_str("missing"),
            Self::Hidden => f.write_str("this account cannot see it"),
        }
    }
}

impl State {
    fn of(differences: Vec<String>) -> Self {
        if differences.is_empty() { Self::Same } else { Self::Changed(differences) }
    }
}

/// An object of a package, and how the one in a database differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectState {
    /// What it is: `table`, `view`, `procedure`, `function` or `event`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// How it differs.
    #[serde(flatten)]
    pub state: State,
}

impl ObjectState {
    /// Whether it is a procedure or a function.
    pub fn is_routine(&self) -> bool {
        ["procedure", "function"].contains(&self.kind.as_str())
    }
}

/// The kind and the name, such as `procedure counter_add`.
impl fmt::Display for ObjectState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// The states of the table, the views and the routines of a package.
///
/// # Errors
/// The connection fails.
pub fn states(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<ObjectState>> {
    let (table, totals, view) = (&package.options.table, &package.totals, &package.package);
    let mut states = vec![
        of("table", table.name(), table_state(connection, package)?),
        of("view", totals.name(), totals_state(connection, package)?),
        of("view", view.name(), package_state(connection, package)?),
    ];
    for view in states[1..].iter_mut().filter(|view| view.state == State::Same) {
        view.state = State::of(definer_difference(connection, package, &view.name)?);
    }
    states.extend(routine_states(connection, package)?);
    Ok(states)
}

/// The definer of a view, if the options name another one.
fn definer_difference(connection: &mut Conn, package: &Package, view: &str) -> mysql::Result<Vec<String>> {
    let query = "SELECT DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND DEFINER <> ''";
    let found: Option<String> = connection.exec_first(query, (view,))?;
    let (Some(wanted), Some(found)) = (&package.options.definer, found) else {
        return Ok(vec![]);
    };
    let same = found.parse().as_ref() == Ok(wanted);
    Ok(if same { vec![] } else { vec![format!("the definer is {found} instead of {}", wanted.plain())] })
}

/// Tells missing objects from those that the account cannot see: the server answers as if neither existed. An account that sees a part of the
/// package, but the text of no routine, does not see the rest.
pub fn hide(states: &mut [ObjectState]) {
    let seen = |object: &ObjectState| !matches!(object.state, State::Missing | State::Hidden);
    if !states.iter().any(|object| object.is_routine() && seen(object)) {
        let missing = states.iter_mut().filter(|object| object.state == State::Missing);
        missing.for_each(|object| object.state = State::Hidden);
    }
}

pub(crate) fn of(kind: &str, name: &str, state: State) -> ObjectState {
    let (kind, name) = (kind.to_owned(), name.to_owned());
    ObjectState { kind, name, state }
}

/// The states of the routines in the order of `create_procedures.sql`.
fn routine_states(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<ObjectState>> {
    let steps = render::plan(package, Task::Replace);
    let rendered = steps.iter().filter_map(|step| Some((step.routine()?, Stored::parse(step.statements.last()?)?)));
    let created = show_create(connection, package)?;
    let find = |kind: &str, name: &str| {
        created.iter().find(|one| one.kind == kind && one.name.to_lowercase() == name.to_lowercase())
    };
    let is_ours =
        |one: &&Created| package.routines().any(|(_, name)| name.name().to_lowercase() == one.name.to_lowercase());
    // To the server, names of routines with other accents are the same: it would call this one.
    let stranger = created.iter().find(|one| !is_ours(one));
    let collation = package.options.collation();
    let states = rendered
        .map(|(object, rendered)| {
            let (kind, name) = (object.kind.to_lowercase(), object.name.name());
            let state = match find(&kind, name) {
                None => stranger.map_or(State::Missing, |one| {
                    State::Changed(vec![format!("the database has the routine {} instead", one.name)])
                }),
                Some(Created { statement: None, .. }) => State::Hidden,
                Some(created) => {
                    let actual = created.statement.as_ref().and_then(|text| Stored::parse(text));
                    let mut differences = actual
                        .map_or(vec!["it is no routine of a package".into()], |actual| rendered.differences(&actual));
                    differences.extend(created.session_differences(collation.of_arguments()));
                    State::of(differences)
                }
            };
            of(&kind, name, state)
        })
        .collect();
    Ok(states)
}

/// A row of SHOW CREATE.
struct Created {
    kind: String,
    name: String,
    sql_mode: String,
    /// None if the account cannot see it.
    statement: Option<String>,
    collation: String,
}

impl Created {
    /// The settings of the session that created it, which the server stores with it.
    fn session_differences(&self, collation: &str) -> Vec<String> {
        let set = |mode: &str| mode.split(',').map(str::to_owned).collect::<BTreeSet<_>>();
        let mut differences = Vec::new();
        if set(&self.sql_mode) != set(render::SQL_MODE) {
            differences.push(format!("sql_mode '{}'", self.sql_mode));
        }
        // MariaDB 11.8 has new names for some collations.
        if self.collation != collation {
            differences.push(format!("collation_connection {} instead of {collation}", self.collation));
        }
        differences
    }
}

/// The routines with names of the package that exist, read with one packet.
fn show_create(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<Created>> {
    let names = package.routines().map(|(_, name)| SqlStr(name.name()).to_string());
    let query = format!(
        "SELECT LOWER(ROUTINE_TYPE), CAST(ROUTINE_NAME AS CHAR)
           FROM information_schema.ROUTINES
          WHERE ROUTINE_SCHEMA = DATABASE()
            AND ROUTINE_NAME IN ({})",
        names.collect::<Vec<_>>().join(", ")
    );
    let mut existing: Vec<(String, String)> = connection.query(query)?;
    let statement = |(kind, name): &(String, String)| format!("SHOW CREATE {kind} {}", Ident::stored(name));
    let statements: Vec<_> = existing.iter().map(statement).collect();
    let mut created = Vec::new();
    if statements.is_empty() {
        return Ok(created);
    }
    let column = |row: &Row, at| row.get::<Option<Vec<u8>>, _>(at).flatten().map(text);
    let mut results = connection.query_iter(statements.join("; "))?;
    let mut existing = existing.drain(..);
    while let (Some(result), Some((kind, name))) = (results.iter(), existing.next()) {
        for row in result {
            let row = row?;
            created.push(Created {
                kind: kind.clone(),
                name: name.clone(),
                sql_mode: column(&row, 1).unwrap_or_default(),
                statement: column(&row, 2),
                collation: column(&row, 4).unwrap_or_default(),
            });
        }
    }
    Ok(created)
}

/// The columns of a table or a view with their data types, in order.
fn columns(connection: &mut Conn, name: &str) -> mysql::Result<Vec<(String, String)>> {
    connection.exec(
        "SELECT COLUMN_NAME, LOWER(DATA_TYPE)
           FROM information_schema.COLUMNS
          WHERE TABLE_SCHEMA = DATABASE()
            AND TABLE_NAME = ?
          ORDER BY ORDINAL_POSITION",
        (name,),
    )
}

fn exists(connection: &mut Conn, name: &str) -> mysql::Result<bool> {
    let query = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
    let found: Option<u64> = connection.exec_first(query, (name,))?;
    Ok(found != Some(0))
}

/// Whether a name is that of a view.
pub(super) fn is_view(connection: &mut Conn, name: &str) -> mysql::Result<bool> {
    let query = "SELECT COUNT(*) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
    let found: Option<u64> = connection.exec_first(query, (name,))?;
    Ok(found != Some(0))
}

/// The check of the script compares the table.
fn table_state(connection: &mut Conn, package: &Package) -> mysql::Result<State> {
    let table = &package.options.table;
    if !exists(connection, table.name())? {
        return Ok(State::Missing);
    }
    // An account with SHOW VIEW alone sees the table, and no column.
    if columns(connection, table.name())?.is_empty() {
        return Ok(State::Hidden);
    }
    let problem: Option<Option<String>> = connection.query_first(render::table_check(package))?;
    Ok(State::of(problem.flatten().into_iter().collect()))
}

/// The names of the columns are compared, and the type of the total: a restore that stopped leaves views of the number 1.
fn totals_state(connection: &mut Conn, package: &Package) -> mysql::Result<State> {
    let name = package.totals.name();
    if !exists(connection, name)? {
        return Ok(State::Missing);
    }
    let more: &[_] = match package.options.subject {
        Subject::Named { .. } | Subject::Bounded => &["description", "start_date", "slots", "total"],
        Subject::Records { .. } => &["slots", "total"],
        Subject::Column { .. } => &["total"],
    };
    let key = package.options.key().iter().map(|column| column.name.name());
    let (names, types): (Vec<_>, Vec<_>) = columns(connection, name)?.into_iter().unzip();
    let same = key.chain(more.iter().copied()).eq(names) && types.last().is_some_and(|kind| kind == "bigint");
    Ok(State::of(if same { vec![] } else { vec!["the columns differ".to_owned()] }))
}

fn package_state(connection: &mut Conn, package: &Package) -> mysql::Result<State> {
    let name = package.package.name();
    if !exists(connection, name)? {
        return Ok(State::Missing);
    }
    // With lower_case_table_names = 1, the server stores the name in lower case.
    let found = installed(connection, false)?.into_iter().filter(|one| one.view.to_lowercase() == name.to_lowercase());
    let Some(found) = found.min_by_key(|one| one.view != name) else {
        return Ok(State::Changed(vec!["it has no version and options".to_owned()]));
    };
    let Some(version) = found.version else {
        return Ok(State::Hidden);
    };
    let arguments = |package: Package| package.options.arguments();
    let mut differences = Vec::new();
    for (what, value, wanted) in [
        ("version", version, env!("CARGO_PKG_VERSION").to_owned()),
        ("the options", found.package.map_or("of another format".to_owned(), arguments), package.options.arguments()),
    ] {
        if value != wanted {
            differences.push(format!("{what} {value} instead of {wanted}"));
        }
    }
    Ok(State::of(differences))
}
