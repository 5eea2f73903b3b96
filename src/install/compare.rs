//! Reads the objects of a package in a database, and compares them with the rendered ones.
//!
//! The server prints a routine with its original body, and the tokens of both statements are compared. It rewrites the query
//! of a view, and a normal form of both queries is compared. The checks of the scripts compare the table. Nothing executes a
//! view or a routine of the database: the account can have privileges that their owners do not have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mysql::Conn;
use mysql::prelude::Queryable;
use serde::Serialize;

use super::facts::Facts;
use super::privileges::Privileges;
use super::table;
use super::view::{self, Qualifiers};
use crate::package::{Ident, Kind, Options, Package, Routine, quoted};
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
    /// The account cannot see it or read its definition, or it does not exist. The text is the missing privilege, and
    /// [`ObjectState::scope`] says where.
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

impl ObjectState {
    /// Whether an installation changes the object. A table that exists is never changed. Creating an object again does not create its
    /// definer; without --definer, the account of the installation becomes the definer.
    pub fn is_left(&self, package: &Package) -> bool {
        match &self.state {
            State::Same | State::Hidden(_) | State::Foreign => false,
            State::Changed(_) if self.kind == ObjectKind::Table => false,
            State::Changed(differences) if package.options.definer.is_some() => {
                differences.iter().any(|one| !one.ends_with(NO_DEFINER))
            }
            State::Changed(_) | State::Missing | State::Obsolete => true,
        }
    }

    /// Where the account needs the privilege to see it, as GRANT has it. None is the database.
    pub fn scope(&self) -> Option<&'static str> {
        match &self.state {
            State::Hidden(privilege) if self.kind.is_routine() => {
                Some(if privilege == SELECT { "mysql.proc" } else { "*.*" })
            }
            _ => None,
        }
    }

    /// Whether its definer does not exist.
    pub fn lacks_definer(&self) -> bool {
        let State::Changed(differences) = &self.state else {
            return false;
        };
        differences.iter().any(|one| one.ends_with(NO_DEFINER))
    }
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
    hide(connection, &mut states, dialect)?;
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
        ObjectKind::Table => Ok(match table_type(connection, &object.name)?.as_deref() {
            None => State::Missing,
            Some(BASE_TABLE | "SYSTEM VERSIONED") => State::Same,
            Some(_) => State::Foreign,
        }),
        ObjectKind::View => view_state(connection, facts, package, object, dialect),
        // No package has one.
        ObjectKind::Event => Ok(State::Same),
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

/// The privilege to see tables and their columns. Some versions of MariaDB show routines to an account with it on mysql.proc.
const SELECT: &str = "SELECT";

/// The server answers an account without privileges as if an object did not exist. If one is missing, the account can perhaps not
/// see it. If all are, they are: there is no package.
fn hide(connection: &mut Conn, states: &mut [ObjectState], dialect: Dialect) -> mysql::Result<()> {
    let all = states.iter().all(|object| object.state == State::Missing);
    let missing = |object: &&mut ObjectState| {
        object.state == State::Missing && (!all || object.kind == ObjectKind::Event)
    };
    let mut missing: Vec<_> = states.iter_mut().filter(missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let privileges = Privileges::read(connection)?;
    for object in &mut missing {
        let (sees, state) = match object.kind {
            ObjectKind::Table | ObjectKind::View => (privileges.sees_tables(), State::Hidden(SELECT.into())),
            ObjectKind::Procedure | ObjectKind::Function => (privileges.sees_routines(), hidden(dialect)),
            ObjectKind::Event => (privileges.has(EVENT), State::Hidden(EVENT.into())),
        };
        if !sees {
            object.state = state;
        }
    }
    Ok(())
}

/// The server shows no event to an account without it.
const EVENT: &str = "EVENT";

/// The state of a routine that the account does not see.
fn hidden(dialect: Dialect) -> State {
    let privilege = match dialect {
        Dialect { mariadb: false, .. } => "SHOW_ROUTINE",
        Dialect { version, .. } if version >= 110_300 => "SHOW CREATE ROUTINE",
        Dialect { .. } => SELECT,
    };
    State::Hidden(privilege.into())
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
        let collation = options.collation.of_arguments();
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
    let column = |row: &mysql::Row, at| row.get::<Option<Vec<u8>>, _>(at).flatten().map(text);
    Ok(facts.created(connection, kind, name)?.map(|row| Created {
        sql_mode: column(row, 1).unwrap_or_default(),
        statement: column(row, 2 + event),
        collation: column(row, 4 + event).unwrap_or_default(),
    }))
}

/// The text of a definition. A client with the character set binary can create one whose bytes are no characters.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
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
const NO_DEFINER: &str = "does not exist: calls fail with error 1449 until it is created";

/// Whether an account exists. None if the account of the connection does not have SELECT on mysql.user.
pub(super) fn account_exists(connection: &mut Conn, plain: &str) -> Option<bool> {
    let (user, host) = plain.rsplit_once('@').unwrap_or((plain, "%"));
    let query = "SELECT COUNT(*) FROM mysql.user WHERE User = ? AND Host = ?";
    let found: mysql::Result<Option<u64>> = connection.exec_first(query, (user, host));
    found.ok().flatten().map(|found| found > 0)
}

/// The type of a table that stores rows, in `TABLE_TYPE` of `information_schema.TABLES`. MariaDB has another one for a table with
/// system versioning.
pub(crate) const BASE_TABLE: &str = "BASE TABLE";

fn table_type(connection: &mut Conn, name: &Ident) -> mysql::Result<Option<String>> {
    connection.exec_first(
        "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?",
        (name.name(),),
    )
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
    let slot = match package.options.kind {
        Kind::Counters => "counter_id",
        Kind::SlottedCounters => "slot",
    };
    let found: Option<(String, Option<bool>)> = connection.exec_first(
        "SELECT TABLE_TYPE,
                (
                  SELECT MAX(columns.COLUMN_NAME = ?)
                    FROM information_schema.COLUMNS AS columns
                   WHERE columns.TABLE_SCHEMA = tables.TABLE_SCHEMA
                     AND columns.TABLE_NAME = tables.TABLE_NAME
                )
           FROM information_schema.TABLES AS tables
          WHERE TABLE_SCHEMA = DATABASE()
            AND TABLE_NAME = ?",
        (slot, package.options.table.name()),
    )?;
    match found.as_ref().map(|(kind, has_slots)| (&kind[..], *has_slots)) {
        None => return Ok(State::Missing),
        // A table without slots is none of a package, whatever has been changed in it.
        Some((BASE_TABLE | "SYSTEM VERSIONED", Some(true))) => {}
        // An account with SHOW VIEW alone sees the table, and no column.
        Some((BASE_TABLE | "SYSTEM VERSIONED", None)) => return Ok(State::Hidden(SELECT.into())),
        Some(_) => return Ok(State::Foreign),
    }
    let mut differences = Vec::new();
    for check in render::checks(package) {
        if let render::Check::Table(check) | render::Check::Slots(check) = check
            && differences.is_empty()
        {
            differences.extend(problem(connection, &check)?);
        }
    }
    if differences.is_empty() {
        differences = table::differences(connection, package)?;
    }
    Ok(of_differences(differences))
}

fn view_state(
    connection: &mut Conn,
    facts: &mut Facts,
    package: &Package,
    object: &Object,
    dialect: Dialect,
) -> mysql::Result<State> {
    let found: Option<(String, String, Option<Vec<u8>>)> = connection.exec_first(
        "SELECT SECURITY_TYPE, DEFINER, VIEW_DEFINITION
           FROM information_schema.VIEWS
          WHERE TABLE_SCHEMA = DATABASE()
            AND TABLE_NAME = ?",
        (object.name.name(),),
    )?;
    let Some((security, definer, query)) = found else {
        return Ok(match table_type(connection, &object.name)? {
            Some(_) => State::Foreign,
            None => State::Missing,
        });
    };
    let query = text(query.unwrap_or_default());
    if query.is_empty() {
        return Ok(State::Hidden(SHOW_VIEW.into()));
    }
    let mut differences = definer_differences(connection, facts, package, &definer);
    let wanted = package.options.security.sql();
    if security != wanted {
        differences.push(format!("SQL SECURITY {security} instead of {wanted}"));
    }
    let rendered = object.query().expect("a view has a query");
    let place: Option<(String, u8)> =
        connection.query_first("SELECT DATABASE(), @@GLOBAL.lower_case_table_names")?;
    let (schema, cases) = place.unwrap_or_default();
    let of = Qualifiers {
        schema: &schema,
        table: package.options.table.name(),
        ignores_case: cases > 0,
    };
    if view::normal(&rendered, of, dialect) != view::normal(&query, of, dialect) {
        let of_package = object.name == package.package;
        let known = if of_package { "version" } else { "total" };
        let column: Option<u64> = connection.exec_first(
            "SELECT COUNT(*)
               FROM information_schema.COLUMNS
              WHERE TABLE_SCHEMA = DATABASE()
                AND TABLE_NAME = ?
                AND COLUMN_NAME = ?",
            (object.name.name(), known),
        )?;
        // MariaDB has no columns for a view whose table is missing or has other columns.
        let named = || {
            view::normal(&query, of, dialect)
                .split(' ')
                .any(|word| word == known)
        };
        if column == Some(0) && !named() {
            return Ok(State::Foreign);
        }
        let values = view::values(&query, dialect).filter(|_| of_package);
        differences.extend(match values {
            Some(values) => value_differences(package, &values),
            None => vec!["the query differs".to_owned()],
        });
    }
    Ok(of_differences(differences))
}

/// The privilege to read the query of a view.
const SHOW_VIEW: &str = "SHOW VIEW";

/// How the values of the view of a package differ.
fn value_differences(package: &Package, values: &Values) -> Vec<String> {
    let value = |name: &str| values.get(name).and_then(Option::as_deref).unwrap_or("NULL");
    let mut differences = Vec::new();
    let (version, wanted) = (value("version"), env!("CARGO_PKG_VERSION"));
    if version != wanted {
        differences.push(format!("version {version} instead of {wanted}"));
    }
    let (arguments, wanted) = (value("arguments"), package.options.arguments());
    if arguments != wanted {
        differences.push(format!("the options {arguments} instead of {wanted}"));
    }
    if differences.is_empty() {
        differences.push("the values differ".into());
    }
    differences
}

/// The values of the view of a package by the names of its columns. None is NULL.
pub type Values = BTreeMap<String, Option<String>>;

/// The columns of the view of a package by which it is found, because the first part of its name is an option. A view without the column
/// `arguments` is of an older version.
const COLUMNS: &str = "'version', 'package', 'key_columns', 'default_slots', 'table_name', 'prefix'";

/// The packages of the current database, or of all databases, from their views such as `counter_package`.
///
/// The values are read from the text of a view. To select from it would execute the functions that a view calls which is not of
/// a package, with the privileges of the account of the connection. A view is selected from only if the account cannot read its
/// text.
///
/// # Errors
/// The connection fails.
pub fn installed(connection: &mut Conn, all: bool) -> mysql::Result<Vec<Installed>> {
    let dialect = Version::of(connection)?.dialect();
    let place = if all { "TRUE" } else { "TABLE_SCHEMA = DATABASE()" };
    let views: Vec<(String, String, bool)> = connection.query(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, MAX(COLUMN_NAME = 'arguments')
           FROM information_schema.COLUMNS
          WHERE {place}
            AND TABLE_NAME LIKE '%package'
            AND COLUMN_NAME IN ({COLUMNS}, 'arguments')
          GROUP BY TABLE_SCHEMA, TABLE_NAME
         HAVING SUM(COLUMN_NAME <> 'arguments') = 6
          ORDER BY TABLE_SCHEMA, TABLE_NAME"
    ))?;
    let mut packages = Vec::new();
    for (schema, view, complete) in views {
        let found: Option<Option<Vec<u8>>> = connection.exec_first(
            "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?",
            (&schema, &view),
        )?;
        // A table is not a package.
        let Some(query) = found else { continue };
        let query = text(query.unwrap_or_default());
        let values = if query.is_empty() {
            selected(connection, &schema, &view, complete)
        } else {
            Ok(view::values(&query, dialect))
        };
        let (values, error) = match values {
            Ok(values) => (values, None),
            Err(error @ mysql::Error::MySqlError(_)) => (None, Some(error)),
            Err(error) => return Err(error),
        };
        packages.push(Installed {
            schema,
            view,
            values,
            error,
        });
    }
    Ok(packages)
}

/// The values of a view whose text the account cannot read.
fn selected(
    connection: &mut Conn,
    schema: &str,
    view: &str,
    complete: bool,
) -> mysql::Result<Option<Values>> {
    let columns = if complete {
        "version, package, slots, default_slots, pick, table_name, prefix, arguments"
    } else {
        "version, package, slots, default_slots, pick, table_name, prefix"
    };
    let row: Option<mysql::Row> = connection.query_first(format!(
        "SELECT {columns} FROM {}.{}",
        quoted(schema),
        quoted(view)
    ))?;
    Ok(row.map(|row| {
        let names = columns.split(", ").map(str::to_owned);
        let value = |value| match value {
            mysql::Value::Bytes(bytes) => Some(text(bytes)),
            mysql::Value::NULL => None,
            other => Some(other.as_sql(true)),
        };
        names.zip(row.unwrap().into_iter().map(value)).collect()
    }))
}

/// A package as its view describes it.
#[derive(Debug)]
pub struct Installed {
    /// The database of the view.
    pub schema: String,
    /// The name of the view.
    pub view: String,
    /// The values of its columns. None if the view is not as a package creates it, or cannot be read.
    pub values: Option<Values>,
    /// Why the view cannot be read.
    pub error: Option<mysql::Error>,
}

impl Installed {
    /// The value of a column. None if it is NULL.
    pub fn value(&self, column: &str) -> Option<&str> {
        self.values.as_ref()?.get(column)?.as_deref()
    }
}
