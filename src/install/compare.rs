//! Compares the objects of a package in a database with the rendered ones.
//!
//! Routines are compared token by token: the server prints them with their original body. It rewrites the query of a view, of which the words
//! are compared. The checks of the scripts compare the table. Nothing that is found is executed: the account can have privileges that its
//! owner does not have.

use std::collections::BTreeSet;
use std::fmt;

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use serde::Serialize;

use super::installed::{installed, text};
use super::stored::Stored;
use crate::package::{Definer, Ident, Package};
use crate::render::{self, Task};
use crate::script::tokens;

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
    fn of(differences: impl IntoIterator<Item = String>) -> Self {
        let differences: Vec<_> = differences.into_iter().collect();
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
pub fn states(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<ObjectState>> {
    let mut states = vec![of("table", package.options.table.name(), table_state(connection, package)?)];
    for view in [&package.totals, &package.description] {
        let mut state = account_state(connection, package, view)?;
        if state == State::Same && *view == package.description {
            state = package_state(connection, package)?;
        }
        if state == State::Same {
            state = query_state(connection, package, view)?;
        }
        states.push(of("view", view.name(), state));
    }
    states.extend(routine_states(connection, package)?);
    Ok(states)
}

/// Compares the account that a view runs as: its SQL SECURITY, and its definer, if the options name one.
fn account_state(connection: &mut Conn, package: &Package, view: &Ident) -> mysql::Result<State> {
    let query = "SELECT DEFINER, SECURITY_TYPE FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
    let Some((definer, security)) = connection.exec_first::<(String, String), _, _>(query, (view.name(),))? else {
        return Ok(State::Missing);
    };
    let wanted = package.options.security.sql();
    let other = (security != wanted).then(|| format!("SQL SECURITY {security} instead of {wanted}"));
    let is_other = |wanted: &&Definer| !definer.is_empty() && Definer::stored(&definer).as_ref() != Some(*wanted);
    let wanted = package.options.definer.as_ref().filter(is_other);
    let definer = wanted.map(|wanted| format!("the definer is {definer} instead of {}", wanted.plain()));
    Ok(State::of(other.into_iter().chain(definer)))
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
    let created = show_create(connection, package)?;
    let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
    // To the server, names of routines with other accents are the same: it would call this one.
    let is_ours = |one: &&Created| package.routines().any(|(_, name)| same(name.name(), &one.name));
    let stranger = created.iter().find(|one| !is_ours(one));
    let mut states = Vec::new();
    for step in render::plan(package, Task::Replace) {
        let Some(object) = step.created_routine() else { continue };
        let (kind, name) = (object.kind.to_lowercase(), object.name.name());
        let found = created.iter().find(|one| one.kind == kind && same(&one.name, name));
        let state = match (found, stranger) {
            (Some(found), _) => found.state(package, step.statements.last().map_or("", String::as_str)),
            (None, Some(one)) => State::of([format!("the database has the routine {} instead", one.name)]),
            (None, None) => State::Missing,
        };
        states.push(of(&kind, name, state));
    }
    Ok(states)
}

/// A row of SHOW CREATE.
struct Created {
    kind: String,
    name: String,
    sql_mode: String,
    /// None if the account cannot see it.
    statement: Option<String>,
    character_set: String,
    collation: String,
}

impl Created {
    /// Compares it with a rendered statement, and the settings of the session that created it, which the server stores with it.
    fn state(&self, package: &Package, rendered: &str) -> State {
        let Some(statement) = &self.statement else {
            return State::Hidden;
        };
        let mut differences = match (Stored::parse(rendered), Stored::parse(statement)) {
            (Some(rendered), Some(found)) => rendered.differences(&found),
            _ => vec!["it is no routine of a package".into()],
        };
        let set = |mode: &str| mode.split(',').map(str::to_owned).collect::<BTreeSet<_>>();
        if set(&self.sql_mode) != set(render::SQL_MODE) {
            differences.push(format!("sql_mode '{}'", self.sql_mode));
        }
        // In another one, the server can have read a quote or a comment where the text that it prints contains none.
        if self.character_set != "utf8mb4" {
            differences.push(format!("character_set_client {}", self.character_set));
        }
        // MariaDB 11.8 has new names for some collations.
        let collation = package.options.collation();
        if self.collation != collation.of_arguments() {
            let wanted = collation.of_arguments();
            differences.push(format!("collation_connection {} instead of {wanted}", self.collation));
        }
        State::of(differences)
    }
}

/// The routines with names of the package that exist, read with one packet.
fn show_create(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<Created>> {
    let query = format!(
        "SELECT LOWER(ROUTINE_TYPE), CAST(ROUTINE_NAME AS CHAR)
           FROM information_schema.ROUTINES
          WHERE ROUTINE_SCHEMA = DATABASE() AND (ROUTINE_TYPE, ROUTINE_NAME) IN ({})",
        package.names()
    );
    let existing: Vec<(String, String)> = connection.query(query)?;
    let statement = |(kind, name): &(String, String)| format!("SHOW CREATE {kind} {}", Ident::stored(name));
    let statements: Vec<_> = existing.iter().map(statement).collect();
    let mut created = Vec::new();
    if statements.is_empty() {
        return Ok(created);
    }
    let column = |row: &Row, at| row.get::<Option<Vec<u8>>, _>(at).flatten().map(text);
    let mut results = connection.query_iter(statements.join("; "))?;
    for (kind, name) in existing {
        if let Some(row) = results.iter().and_then(|mut rows| rows.next()) {
            let row = row?;
            let [sql_mode, character_set, collation] = [1, 3, 4].map(|at| column(&row, at).unwrap_or_default());
            created.push(Created { kind, name, sql_mode, statement: column(&row, 2), character_set, collation });
        }
    }
    Ok(created)
}

/// The check of the script compares the table.
fn table_state(connection: &mut Conn, package: &Package) -> mysql::Result<State> {
    let query = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
    if connection.exec_first(query, (package.options.table.name(),))? == Some(0) {
        return Ok(State::Missing);
    }
    let parent = package.options.column().map(|column| &column.table);
    Ok(match hold(connection, [&package.options.table].into_iter().chain(parent))? {
        State::Same => State::of(check(connection, package, Task::Replace)?),
        State::Missing => State::of(parent.map(|parent| format!("the table {} is missing", parent.name()))),
        held => held,
    })
}

/// Why no table of the package can be created: the table of the column differs. The check of the script, as a query.
pub(super) fn rejected(connection: &mut Conn, package: &Package) -> mysql::Result<Option<String>> {
    let Some(column) = package.options.column() else { return Ok(None) };
    match hold(connection, [&column.table])? {
        State::Same => check(connection, package, Task::Create),
        other => Ok(Some(format!("table {}: {other}", column.table.name()))),
    }
}

/// What the check of a script says, in a transaction that holds the tables.
fn check(connection: &mut Conn, package: &Package, task: Task) -> mysql::Result<Option<String>> {
    let why: Option<Option<String>> = connection.query_first(render::table_check(package, task))?;
    connection.query_drop("COMMIT")?;
    Ok(why.flatten())
}

/// Begins a transaction that holds tables: on MariaDB, information_schema.COLUMNS executes functions of a view that its owner puts in the place.
/// A view has no index, so that the server rejects it unopened (1176).
pub fn hold<'a>(connection: &mut Conn, tables: impl IntoIterator<Item = &'a Ident>) -> mysql::Result<State> {
    connection.query_drop("START TRANSACTION")?;
    for table in tables {
        let query = "SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY NON_UNIQUE, INDEX_NAME <> 'PRIMARY'";
        let index: Option<String> = connection.exec_first(query, (table.name(),))?;
        let index = Ident::stored(index.unwrap_or_else(|| "PRIMARY".to_owned()));
        // The query cache of MariaDB, which locks nothing, has no answer with CONNECTION_ID.
        let query = format!("SELECT CONNECTION_ID() FROM {table} FORCE INDEX ({index}) LIMIT 0");
        let state = match connection.query_drop(query) {
            Ok(()) => continue,
            Err(mysql::Error::MySqlError(error)) => match error.code {
                1142 | 1143 => State::Hidden,
                1146 => State::Missing,
                1176 => State::of([format!("{} is not a table with a key", table.name())]),
                _ => return Err(error.into()),
            },
            Err(error) => return Err(error),
        };
        connection.query_drop("COMMIT")?;
        return Ok(state);
    }
    Ok(State::Same)
}

/// The words, numbers and operators of the query are compared, whose names the server qualifies with the database: a restore that stopped
/// leaves views of the number 1.
fn query_state(connection: &mut Conn, package: &Package, view: &Ident) -> mysql::Result<State> {
    let query = "SELECT VIEW_DEFINITION, LOWER(DATABASE()) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
    let found: Option<(Option<Vec<u8>>, String)> = connection.exec_first(query, (view.name(),))?;
    let (found, database) = found.unwrap_or_default();
    let steps = render::plan(package, Task::Create);
    let step = steps.iter().find(|step| step.object.as_ref().is_some_and(|object| object.name == *view));
    let mut wanted = step.map_or_else(Vec::new, |step| tokens(&step.statements.concat()));
    // The servers print COUNT(*) as count(0).
    wanted.iter_mut().filter(|token| *token == "*").for_each(|token| *token = "0".to_owned());
    let found = tokens(&text(found.unwrap_or_default()));
    if found.is_empty() {
        return Ok(State::Hidden);
    }
    let words = |tokens: &[String]| {
        let words = tokens.iter().map(|token| token.trim_matches('`').replace("``", "`").to_lowercase());
        let words = words.skip_while(|word| word != "select");
        words.filter(|word| !["(", " (", ")", ".", ";", &database].contains(&word.as_str())).collect::<BTreeSet<_>>()
    };
    // The server prints the name of a stored function in backticks.
    let calls = found.windows(2).any(|pair| pair[0].starts_with('`') && pair[1].trim() == "(");
    Ok(State::of((calls || words(&wanted) != words(&found)).then(|| "the query differs".to_owned())))
}

fn package_state(connection: &mut Conn, package: &Package) -> mysql::Result<State> {
    let name = package.description.name();
    // With lower_case_table_names = 1, the server stores the name in lower case.
    let found = installed(connection, false)?.into_iter().filter(|one| one.view.to_lowercase() == name.to_lowercase());
    let Some(found) = found.min_by_key(|one| one.view != name) else {
        return Ok(State::of(["it has no version and options".to_owned()]));
    };
    let Some(version) = found.version else {
        return Ok(State::Hidden);
    };
    let arguments = found.package.map_or("of another format".to_owned(), |found| found.options.arguments());
    let values = [
        ("version", version, env!("CARGO_PKG_VERSION").to_owned()),
        ("the options", arguments, package.options.arguments()),
    ];
    let differing = values.into_iter().filter(|(_, found, wanted)| found != wanted);
    Ok(State::of(differing.map(|(what, found, wanted)| format!("{what} {found} instead of {wanted}"))))
}
