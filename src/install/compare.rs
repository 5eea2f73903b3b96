//! Reads the objects of a package in a database, and compares them with the rendered ones.
//!
//! The server prints a routine with its original body, and the tokens of both statements are compared. It rewrites the query
//! of a view, and the columns of both views are compared. The checks of the scripts compare the table.

use std::collections::BTreeSet;
use std::fmt;

use mysql::Conn;
use mysql::prelude::Queryable;
use serde::Serialize;

use super::facts::Facts;
use super::privileges::Privileges;
use crate::package::{Ident, Options, Package, Routine};
use crate::render::{self, Object, ObjectKind};
use crate::script::{Dialect, tokens};
use crate::server::Version;

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
    /// The account cannot read its definition. The text is the missing privilege.
    Hidden(String),
    /// It is not in the package, but other options of the package create it.
    Obsolete,
    /// It has the name of an object of the package, but it is not of a package.
    Foreign,
}

/// An object of a package, and how the one in a database differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectState {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name.
    pub name: Ident,
    /// How it differs.
    pub state: State,
}

/// The kind and the name, such as `procedure counter_add`.
impl fmt::Display for ObjectState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name.name())
    }
}

/// A stored routine or event as the server reads its CREATE statement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    parameters: Vec<String>,
    returns: Vec<String>,
    data_access: String,
    security: String,
    comment: String,
    body: Vec<String>,
}

impl Stored {
    /// Parses a CREATE statement, of a script or of SHOW CREATE.
    fn parse(statement: &str, dialect: Dialect) -> Option<Self> {
        let tokens = tokens(statement, dialect);
        let is = |at: usize, word: &str| {
            tokens
                .get(at)
                .is_some_and(|token: &String| token.eq_ignore_ascii_case(word))
        };
        let mut at = (0..tokens.len()).find(|&at| is(at, "PROCEDURE") || is(at, "FUNCTION"))? + 2;
        let first = at + 1;
        let mut depth = 0;
        while let Some(token) = tokens.get(at) {
            depth += i32::from(token == "(") - i32::from(token == ")");
            at += 1;
            if depth == 0 {
                break;
            }
        }
        let lower = |tokens: &[String]| {
            tokens
                .iter()
                .map(|token| token.to_lowercase())
                .collect::<Vec<_>>()
        };
        let mut stored = Self {
            parameters: lower(tokens.get(first..at.checked_sub(1)?)?),
            returns: Vec::new(),
            data_access: "CONTAINS SQL".into(),
            security: "DEFINER".into(),
            comment: String::new(),
            body: Vec::new(),
        };
        loop {
            let rest = tokens.get(at..)?;
            let word = rest.first()?.to_uppercase();
            at += match word.as_str() {
                "RETURNS" => {
                    // MariaDB prints the display width of an integer.
                    stored.returns = lower(&rest[1..2]);
                    let width = rest.get(2).is_some_and(|token| token == "(");
                    if width { 5 } else { 2 }
                }
                "MODIFIES" | "READS" => {
                    stored.data_access = format!("{word} SQL DATA");
                    3
                }
                "CONTAINS" | "NO" => {
                    stored.data_access = format!("{word} SQL");
                    2
                }
                "LANGUAGE" => 2,
                "NOT" => 2,
                "DETERMINISTIC" => 1,
                "SQL" => {
                    stored.security = rest.get(2)?.to_uppercase();
                    3
                }
                "COMMENT" => {
                    stored.comment = rest.get(1)?.trim_start_matches('\'').to_owned();
                    2
                }
                _ => break,
            };
        }
        stored.body = tokens[at..].to_vec();
        Some(stored)
    }

    fn differences(&self, actual: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        let mut say = |differs: bool, text: &str| {
            if differs {
                differences.push(text.to_owned());
            }
        };
        say(self.parameters != actual.parameters, "the parameters differ");
        say(self.returns != actual.returns, "the return type differs");
        say(
            self.data_access != actual.data_access,
            &format!("{} instead of {}", actual.data_access, self.data_access),
        );
        say(
            self.security != actual.security,
            &format!("SQL SECURITY {} instead of {}", actual.security, self.security),
        );
        say(self.comment != actual.comment, "the COMMENT differs");
        if self.body != actual.body {
            let exempt = without_set_statement(&self.body);
            say(
                true,
                if exempt == actual.body {
                    "the body has lost SET STATEMENT innodb_snapshot_isolation=OFF: calls can fail with error 1020"
                } else {
                    "the body differs"
                },
            );
        }
        differences
    }
}

/// The tokens of a body without each `SET STATEMENT ... FOR`.
fn without_set_statement(body: &[String]) -> Vec<String> {
    let mut rest = body.iter().peekable();
    let mut tokens = Vec::new();
    while let Some(token) = rest.next() {
        let statement = rest
            .peek()
            .is_some_and(|next| next.eq_ignore_ascii_case("STATEMENT"));
        if token.eq_ignore_ascii_case("SET") && statement {
            let _ = rest.by_ref().find(|token| token.eq_ignore_ascii_case("FOR"));
        } else {
            tokens.push(token.clone());
        }
    }
    tokens
}

/// The states of all objects of a package in the order of [`render::objects`], and after them those of the objects of other
/// options of the package that exist.
///
/// # Errors
/// The connection fails.
pub fn states(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<ObjectState>> {
    let dialect = Version::of(connection)?.dialect();
    let objects = render::objects(package);
    let kind_of = |routine: &Routine| match routine.kind() {
        "FUNCTION" => ObjectKind::Function,
        _ => ObjectKind::Procedure,
    };
    let absent: Vec<_> = package.absent().collect();
    let stored = objects.iter().map(|object| (object.kind, &object.name));
    let stored = stored.filter(|(kind, _)| kind.is_routine() || *kind == ObjectKind::Event);
    let others = absent.iter().map(|(routine, name)| (kind_of(routine), *name));
    let event = package.event().map(|name| (ObjectKind::Event, name));
    let stored: Vec<_> = stored.chain(others).chain(event).collect();
    let facts = &mut Facts::read(connection, &stored)?;
    let mut states = Vec::new();
    for object in objects {
        let state = state(connection, facts, package, &object, dialect)?;
        let Object { kind, name, .. } = object;
        states.push(ObjectState { kind, name, state });
    }
    let mut routines = states.iter().filter(|object| object.kind.is_routine());
    if routines.all(|routine| routine.state == State::Missing)
        && states
            .iter()
            .any(|object| object.kind == ObjectKind::View && object.state != State::Missing)
        && !Privileges::read(connection)?.sees_routines()
    {
        // The server answers as if there were none.
        for routine in states.iter_mut().filter(|object| object.kind.is_routine()) {
            routine.state = hidden(dialect);
        }
    }
    let mut obsolete = |kind, name: &Ident| -> mysql::Result<()> {
        if facts.created(connection, kind, name)?.is_some() {
            states.push(ObjectState {
                kind,
                name: name.clone(),
                state: State::Obsolete,
            });
        }
        Ok(())
    };
    for (routine, name) in absent {
        obsolete(kind_of(&routine), name)?;
    }
    if let (None, Some(name)) = (&package.options.rollup_every, package.event()) {
        obsolete(ObjectKind::Event, name)?;
    }
    Ok(states)
}

fn state(
    connection: &mut Conn,
    facts: &mut Facts,
    package: &Package,
    object: &Object,
    dialect: Dialect,
) -> mysql::Result<State> {
    match object.kind {
        ObjectKind::Table if object.name == package.options.table => table_state(connection, package),
        ObjectKind::Table => Ok(if exists(connection, &object.name)? {
            State::Same
        } else {
            State::Missing
        }),
        ObjectKind::View => view_state(connection, facts, package, object),
        ObjectKind::Event => event_state(connection, facts, package, object),
        ObjectKind::Procedure | ObjectKind::Function => {
            let Some(created) = show_create(connection, facts, object.kind, &object.name)? else {
                return Ok(State::Missing);
            };
            let Some(statement) = &created.statement else {
                return Ok(hidden(dialect));
            };
            let statements = object.statements();
            let expected = statements
                .last()
                .and_then(|statement| Stored::parse(statement, dialect));
            let expected = expected.expect("a rendered routine can be parsed");
            let Some(actual) = Stored::parse(statement, dialect) else {
                return Ok(State::Changed(vec!["a statement that cannot be parsed".into()]));
            };
            // The manual of a package begins with one of these words, and each routine uses the table.
            let table = package.options.table.to_string();
            let manual = ["Description\n", "Private. "];
            if !manual.iter().any(|word| actual.comment.starts_with(word)) && !actual.body.contains(&table) {
                return Ok(State::Foreign);
            }
            let mut differences = expected.differences(&actual);
            differences.extend(created.session_differences(&package.options));
            created_state(connection, facts, package, &created, differences)
        }
    }
}

fn hidden(dialect: Dialect) -> State {
    State::Hidden(
        if dialect.mariadb {
            "SHOW CREATE ROUTINE"
        } else {
            "SHOW_ROUTINE"
        }
        .into(),
    )
}

fn of_differences(differences: Vec<String>) -> State {
    if differences.is_empty() {
        State::Same
    } else {
        State::Changed(differences)
    }
}

/// The state of a routine or an event with these differences and those of its definer.
fn created_state(
    connection: &mut Conn,
    facts: &mut Facts,
    package: &Package,
    created: &Created,
    mut differences: Vec<String>,
) -> mysql::Result<State> {
    if let Some(definer) = created.definer() {
        differences.extend(definer_differences(connection, facts, package, &definer));
    }
    Ok(of_differences(differences))
}

/// A row of SHOW CREATE.
struct Created {
    sql_mode: String,
    /// None if the account cannot see it.
    statement: Option<String>,
    collation: String,
}

impl Created {
    /// The account in `DEFINER = ...`.
    fn definer(&self) -> Option<String> {
        let statement = self.statement.as_deref()?;
        let (_, rest) = statement.split_once("DEFINER=")?;
        let mut end = 0;
        let mut quoted = false;
        for (at, c) in rest.char_indices() {
            match c {
                '`' => quoted = !quoted,
                ' ' if !quoted => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        Some(rest[..end].to_owned())
    }

    fn session_differences(&self, options: &Options) -> Vec<String> {
        let set = |mode: &str| mode.split(',').map(str::to_owned).collect::<BTreeSet<_>>();
        let mut differences = Vec::new();
        if set(&self.sql_mode) != set(render::SQL_MODE) {
            differences.push(format!(
                "sql_mode {}",
                if self.sql_mode.is_empty() {
                    "''"
                } else {
                    &self.sql_mode
                }
            ));
        }
        let collation = options.collation.to_string();
        // MariaDB 11.8 has new names for some collations.
        if self.collation != collation {
            differences.push(format!(
                "collation_connection {} instead of {collation}",
                self.collation
            ));
        }
        differences
    }
}

/// SHOW CREATE of a routine or an event. None if it does not exist.
fn show_create(
    connection: &mut Conn,
    facts: &mut Facts,
    kind: ObjectKind,
    name: &Ident,
) -> mysql::Result<Option<Created>> {
    let event = usize::from(kind == ObjectKind::Event);
    Ok(facts.created(connection, kind, name)?.map(|row| Created {
        sql_mode: row.get(1).unwrap_or_default(),
        statement: row.get::<Option<String>, _>(2 + event).flatten(),
        collation: row
            .get::<Option<String>, _>(4 + event)
            .flatten()
            .unwrap_or_default(),
    }))
}

/// Whether the definer is the wanted one, and exists.
fn definer_differences(
    connection: &mut Conn,
    facts: &mut Facts,
    package: &Package,
    definer: &str,
) -> Vec<String> {
    let mut differences = Vec::new();
    let plain = definer.replace('`', "");
    if let Some(wanted) = &package.options.definer
        && wanted.plain() != plain
    {
        differences.push(format!("definer {plain} instead of {}", wanted.plain()));
    }
    if facts.account_exists(connection, &plain) == Some(false) {
        differences.push(format!("the definer {plain} {NO_DEFINER}"));
    }
    differences
}

/// The end of the difference that an object has no definer.
pub(super) const NO_DEFINER: &str = "does not exist: calls fail with error 1449 until it is created";

/// Whether an account exists. None if the account of the connection does not have SELECT on mysql.user.
pub(super) fn account_exists(connection: &mut Conn, plain: &str) -> Option<bool> {
    let (user, host) = plain.rsplit_once('@').unwrap_or((plain, "%"));
    let query = "SELECT COUNT(*) FROM mysql.user WHERE User = ? AND Host = ?";
    let found: mysql::Result<Option<u64>> = connection.exec_first(query, (user, host));
    found.ok().flatten().map(|found| found > 0)
}

fn exists(connection: &mut Conn, name: &Ident) -> mysql::Result<bool> {
    let found: Option<u64> = connection.exec_first(
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?",
        (name.name(),),
    )?;
    Ok(found.unwrap_or_default() > 0)
}

/// The text of a check, or None if there is no problem.
///
/// # Errors
/// The connection fails.
pub fn problem(connection: &mut Conn, check: &str) -> mysql::Result<Option<String>> {
    // One question for both statements.
    let mut results = connection.query_iter(format!("{check};\nSELECT @slotted_problem"))?;
    let mut problem = None;
    while let Some(result) = results.iter() {
        for row in result {
            problem = row?.get::<Option<String>, _>(0).flatten();
        }
    }
    Ok(problem)
}

fn table_state(connection: &mut Conn, package: &Package) -> mysql::Result<State> {
    if !exists(connection, &package.options.table)? {
        return Ok(State::Missing);
    }
    let mut differences = Vec::new();
    for check in render::checks(package) {
        if let render::Check::Table(check) | render::Check::Slots(check) = check
            && differences.is_empty()
        {
            differences.extend(problem(connection, &check)?);
        }
    }
    Ok(of_differences(differences))
}

fn view_state(
    connection: &mut Conn,
    facts: &mut Facts,
    package: &Package,
    object: &Object,
) -> mysql::Result<State> {
    let found: Option<(String, String)> = connection.exec_first(
        "SELECT SECURITY_TYPE, DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?",
        (object.name.name(),),
    )?;
    let Some((security, definer)) = found else {
        return Ok(if exists(connection, &object.name)? {
            State::Foreign
        } else {
            State::Missing
        });
    };
    let mut differences = definer_differences(connection, facts, package, &definer);
    let wanted = package.options.security.sql();
    if security != wanted {
        differences.push(format!("SQL SECURITY {security} instead of {wanted}"));
    }
    // The server rewrites the query of a view, so that its text cannot be compared. Preparing reads no row.
    let statement = object.statements().pop().unwrap_or_default();
    let (_, query) = statement.split_once(" AS\n").unwrap_or_default();
    let of_view = format!("SELECT * FROM {}", object.name);
    let (expected, actual) = (columns(connection, query)?, columns(connection, &of_view)?);
    let no_definer = differences.iter().any(|one| one.ends_with(NO_DEFINER));
    if actual.is_none() && no_definer {
        // The server cannot read the view.
    } else if expected != actual {
        let known = if object.name == package.package {
            "version"
        } else {
            "total"
        };
        if actual.is_some_and(|columns| columns.iter().all(|column| column != known)) {
            return Ok(State::Foreign);
        }
        differences.push("the columns differ".into());
    } else if object.name == package.package {
        let values: Option<(String, String)> =
            connection.query_first(format!("SELECT version, arguments FROM {}", object.name))?;
        let (version, arguments) = values.unwrap_or_default();
        if version != env!("CARGO_PKG_VERSION") {
            differences.push(format!(
                "version {version} instead of {}",
                env!("CARGO_PKG_VERSION")
            ));
        }
        let wanted = package.options.arguments();
        if arguments != wanted {
            differences.push(format!("the options {arguments} instead of {wanted}"));
        }
    }
    Ok(of_differences(differences))
}

/// The names of a query's columns. None if the server rejects the query.
fn columns(connection: &mut Conn, query: &str) -> mysql::Result<Option<Vec<String>>> {
    match connection.prep(query) {
        Ok(statement) => {
            let of_statement = statement.columns();
            let columns = of_statement
                .iter()
                .map(|column| column.name_str().into_owned())
                .collect();
            connection.close(statement)?;
            Ok(Some(columns))
        }
        Err(mysql::Error::MySqlError(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn event_state(
    connection: &mut Conn,
    facts: &mut Facts,
    package: &Package,
    object: &Object,
) -> mysql::Result<State> {
    let Some(created) = show_create(connection, facts, ObjectKind::Event, &object.name)? else {
        return Ok(State::Missing);
    };
    let definition: Option<String> = connection.exec_first(
        "SELECT EVENT_DEFINITION FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE() AND EVENT_NAME = ?",
        (object.name.name(),),
    )?;
    let mut differences = Vec::new();
    let expected = format!("CALL {}(NULL)", object.name);
    if definition.as_deref().map(str::trim) != Some(expected.as_str()) {
        differences.push("the body differs".to_owned());
    }
    let statement = created.statement.clone().unwrap_or_default();
    if let Some(every) = &package.options.rollup_every
        && !statement
            .to_uppercase()
            .contains(&format!("EVERY {every}").to_uppercase())
    {
        differences.push(format!("the interval is not {every}"));
    }
    created_state(connection, facts, package, &created, differences)
}

/// The version and the arguments of each package in the current database, from its view `counter_package`. A view without
/// the column `arguments` is of an older version.
///
/// # Errors
/// The connection fails.
pub fn installed(connection: &mut Conn) -> mysql::Result<Vec<Installed>> {
    let views: Vec<(String, u8)> = connection.query(
        "SELECT TABLE_NAME, MAX(COLUMN_NAME = 'arguments')
           FROM information_schema.COLUMNS
          WHERE TABLE_SCHEMA = DATABASE()
            AND COLUMN_NAME IN ('version', 'package', 'key_columns', 'default_slots', 'table_name', 'prefix', 'arguments')
          GROUP BY TABLE_NAME
         HAVING SUM(COLUMN_NAME <> 'arguments') = 6
          ORDER BY TABLE_NAME",
    )?;
    let mut packages = Vec::new();
    for (view, complete) in views {
        let name = Ident::new(&view).expect("the server has this name");
        let arguments = if complete == 1 { "arguments" } else { "NULL" };
        let row: mysql::Result<Option<(String, Option<String>)>> =
            connection.query_first(format!("SELECT version, {arguments} FROM {name}"));
        packages.push(match row {
            Ok(Some((version, arguments))) => Installed {
                view,
                version,
                arguments,
                error: None,
            },
            Ok(None) => continue,
            Err(mysql::Error::MySqlError(error)) => Installed {
                view,
                version: String::new(),
                arguments: None,
                error: Some(format!(
                    "ERROR {} ({}): {}",
                    error.code, error.state, error.message
                )),
            },
            Err(error) => return Err(error),
        });
    }
    Ok(packages)
}

/// A package as its view describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The name of the view.
    pub view: String,
    /// The version of the package.
    pub version: String,
    /// The arguments of `slotted generate`, quoted for a shell. None in an older version.
    pub arguments: Option<String>,
    /// Why the view cannot be read.
    pub error: Option<String>,
}
