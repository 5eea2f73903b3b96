//! Sources the files of a package in a database, statement by statement, as a DBA does with the client of the server.

pub mod column;
pub mod compare;
mod grants;
mod installed;
pub mod preflight;
mod stored;
mod trial;

pub use installed::{Installed, installed};

use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, MySqlError, Row};

use crate::connect::cause;
use crate::package::Package;
use crate::render;
use crate::script::{self, Dialect, tokens};
use crate::server::{Flavour, Version};
use compare::{ObjectState, State};

/// The time to wait for another installation in the same database, in seconds.
const LOCK_TIMEOUT: u32 = 600;

/// How often a statement that waits for transactions is executed, and the pause between two times, in which the calls go on.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_secs(1);

/// How long a statement of the last roll-up waits for a row, in seconds.
const ROW_TIMEOUT: u32 = 2;

/// A package that cannot be installed or uninstalled.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The connection fails.
    #[error("{}", cause(.0))]
    MySql(#[from] mysql::Error),
    /// The server rejects a statement.
    #[error("cannot {action}: ERROR {} ({}): {}", .error.code, .error.state, .error.message)]
    Rejected {
        /// What the statement does, such as `create procedure counter_add`.
        action: String,
        /// The answer of the server.
        error: MySqlError,
        /// The privileges that the routine had, and that the server did not grant again.
        lost: Vec<String>,
    },
    /// A check at the beginning of a script has found a problem. It says what to do.
    #[error("{0}")]
    Check(String),
    /// The table with the counts does not exist, but the database has routines of the package.
    #[error("the table {0} does not exist, but the database has {1}: the table was renamed or dropped")]
    LostTable(String, String),
    /// What an uninstallation would read or call is not that of the package.
    #[error("{0}: {1}")]
    Differs(String, String),
    /// The last roll-up would change other rows than those of the counts, or none.
    #[error("{}", .0.what)]
    Parent(column::Problem),
    /// MySQL would drop a routine with privileges that this account cannot read.
    #[error(
        "MySQL removes the privileges on {0} when it is replaced, and this account cannot read them: {1}"
    )]
    HiddenGrants(String, String),
    /// The package is installed, but its routines do not work.
    #[error("the package is installed, but the trial of its routines failed at {statement}: ERROR {} ({}): {}", .error.code, .error.state, .error.message)]
    Trial {
        /// The statement of the trial.
        statement: String,
        /// The answer of the server.
        error: MySqlError,
    },
    /// Another session installs a package in this database.
    #[error("another installation in this database has not ended within {LOCK_TIMEOUT} s")]
    Locked,
}

/// What an installation tells the user while it runs.
pub type Say<'a> = &'a mut dyn FnMut(&str);

/// Installs or upgrades a package: sources `create_tables.sql` if the table does not exist, then `create_procedures.sql` without the routines
/// that are equal, and tries the routines in a transaction that is rolled back. Returns whether something was not the same.
///
/// # Errors
/// The connection fails, or the server rejects a statement. What has been executed stays: the next installation does the rest.
pub fn install(connection: &mut Conn, package: &Package, say: Say<'_>) -> Result<bool, InstallError> {
    lock(connection)?;
    let states = compare::states(connection, package)?;
    let changes = states.iter().any(|object| object.state != State::Same);
    if changes {
        for name in files(package, &states)? {
            source(connection, package, &states, name, say)?;
        }
    }
    let states = compare::states(connection, package)?;
    if let Some(other) = states.iter().find(|object| object.state != State::Same) {
        say(&format!(
            "warning: {other}: {}; the routines were not tried",
            other.state
        ));
        return Ok(changes);
    }
    if let Some(why) = trial::run(connection, package)? {
        say(&format!("the routines were not tried: {why}"));
    }
    Ok(changes)
}

/// The names of the files that an installation sources in a database with these objects.
///
/// # Errors
/// The table was renamed or dropped. An empty one would hide that its counts are missing.
pub fn files(package: &Package, states: &[ObjectState]) -> Result<&'static [&'static str], InstallError> {
    let table = package.options.table.name();
    let has_table = states
        .iter()
        .any(|object| object.kind == "table" && object.state != State::Missing);
    let routine = states
        .iter()
        .find(|object| object.is_routine() && object.state != State::Missing);
    match routine {
        _ if has_table => Ok(&["create_procedures.sql"]),
        None => Ok(&["create_tables.sql", "create_procedures.sql"]),
        Some(routine) => Err(InstallError::LostTable(table.to_owned(), routine.to_string())),
    }
}

/// Removes a package: sources `uninstall.sql`. Returns the records whose counts remain in the table, each with its key and the sum.
///
/// # Errors
/// The connection fails, or the server rejects a statement. What has been executed stays: the next call does the rest.
pub fn uninstall(connection: &mut Conn, package: &Package, say: Say<'_>) -> Result<Vec<Row>, InstallError> {
    lock(connection)?;
    check_removal(connection, package)?;
    connection.query_drop(format!("SET SESSION innodb_lock_wait_timeout = {ROW_TIMEOUT}"))?;
    source(connection, package, &[], "uninstall.sql", say)
}

/// Checks what an uninstallation reads and calls: a view in the place of the table, or a routine that somebody else has written, would be
/// executed as this account, and without its unique key a row would get the counts of another.
///
/// # Errors
/// The connection fails, or something differs.
pub fn check_removal(connection: &mut Conn, package: &Package) -> Result<(), InstallError> {
    let states = compare::states(connection, package)?;
    let differs = |object: &&ObjectState| {
        let mut routines = package.routines();
        let called =
            routines.any(|(routine, name)| package.serves_rollup(routine) && name.name() == object.name);
        let read = object.kind == "table" && package.options.column.is_some();
        (called || read) && !matches!(object.state, State::Same | State::Missing)
    };
    if let Some(object) = states.iter().find(differs) {
        return Err(InstallError::Differs(
            object.to_string(),
            object.state.to_string(),
        ));
    }
    if compare::is_view(connection, package.options.table.name())? {
        let table = package.options.table.name().to_owned();
        return Err(InstallError::Differs(table, "it is a view".into()));
    }
    match column::problems(connection, package, false)?.into_iter().next() {
        Some(problem) => Err(InstallError::Parent(problem)),
        None => Ok(()),
    }
}

/// Takes the lock that only one installation in a database has at a time. The connection has it until it ends.
fn lock(connection: &mut Conn) -> Result<(), InstallError> {
    let taken: Option<Option<u8>> = connection.query_first(format!(
        "SELECT GET_LOCK(LEFT(CONCAT('slotted ', DATABASE()), 64), {LOCK_TIMEOUT})"
    ))?;
    if taken.flatten() == Some(1) {
        Ok(())
    } else {
        Err(InstallError::Locked)
    }
}

/// Executes the statements of a file of the package, except for the routines that are the same, and returns the rows of their results.
fn source(
    connection: &mut Conn,
    package: &Package,
    states: &[ObjectState],
    name: &str,
    say: Say<'_>,
) -> Result<Vec<Row>, InstallError> {
    let server = Version::of(connection)?;
    let mut rows = Vec::new();
    for unit in units(&render::file(package, name), server.dialect()) {
        let state = states
            .iter()
            .find(|object| unit.is_of(object))
            .map(|object| &object.state);
        let exists = state.is_some_and(|state| *state != State::Missing);
        // A routine of other options is dropped at the end of the file. Without one, DROP would wait for nothing.
        if unit.is_routine() && (state == Some(&State::Same) || !states.is_empty() && state.is_none()) {
            continue;
        }
        let mut statements = unit.statements.clone();
        let action = unit.action(exists);
        // MariaDB replaces a routine in one statement, which keeps the privileges.
        if server.flavour == Flavour::MySql && exists && statements.len() > 1 {
            for grant in grants::read(connection, &unit.kind, &unit.name)? {
                // The server answers now whether this account can grant it, before it drops the routine.
                execute(
                    connection,
                    &[grant.statement()],
                    &format!("keep the privileges to {action}"),
                    say,
                )?;
                statements.push(grant.statement());
            }
        }
        if !unit.kind.is_empty() {
            say(&action);
        }
        rows.extend(execute(connection, &statements, &action, say)?);
    }
    Ok(rows)
}

/// Statements that belong together: one, or DROP and CREATE of a routine. The server gets them in one packet, so that it completes them if
/// the command is killed.
struct Unit {
    statements: Vec<String>,
    /// CREATE or DROP.
    verb: String,
    /// The kind of the object in lower case, such as `procedure`. Empty if the statement creates and drops nothing.
    kind: String,
    name: String,
}

impl Unit {
    fn is_routine(&self) -> bool {
        ["procedure", "function"].contains(&self.kind.as_str())
    }

    fn is_of(&self, object: &ObjectState) -> bool {
        self.kind == object.kind && self.name.to_lowercase() == object.name.to_lowercase()
    }

    /// What it does, such as `create procedure counter_add`.
    fn action(&self, exists: bool) -> String {
        let verb = match self.verb.as_str() {
            "CREATE" if exists => "replace",
            "CREATE" => "create",
            "DROP" => "drop",
            _ => return self.statements[0].lines().next().unwrap_or_default().to_owned(),
        };
        format!("{verb} {} {}", self.kind, self.name)
    }
}

/// The statements of a script for a server. A statement for the other servers is a comment, which is no statement.
fn units(text: &str, dialect: Dialect) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for statement in script::statements(text) {
        let tokens = tokens(&statement, dialect);
        let Some(verb) = tokens.first().map(|verb| verb.to_uppercase()) else {
            continue;
        };
        let (kind, name) = compare::object(&tokens).unwrap_or_default();
        match units.last_mut() {
            Some(last)
                if last.verb == "DROP" && verb == "CREATE" && last.is_routine() && last.name == name =>
            {
                last.statements.push(statement);
                last.verb = verb;
            }
            _ => units.push(Unit {
                statements: vec![statement],
                verb,
                kind,
                name,
            }),
        }
    }
    units
}

/// Executes statements in one packet, and again those that wait for other sessions.
fn execute(
    connection: &mut Conn,
    statements: &[String],
    action: &str,
    say: Say<'_>,
) -> Result<Vec<Row>, InstallError> {
    let (mut rest, mut attempt) = (statements, 0);
    loop {
        attempt += 1;
        let (done, error) = match packet(connection, rest) {
            Ok(rows) => return Ok(rows),
            Err((done, mysql::Error::MySqlError(error))) => (done, error),
            Err((_, error)) => return Err(error.into()),
        };
        rest = &rest[done..];
        match error.code {
            // 1213, and 1180 and 3101 on a cluster: the last roll-up. It can have a transaction.
            1205 | 1213 | 1180 | 3101 if attempt < TRIES => {
                say(&format!("waiting to {action}: {}", blockers(connection)));
                connection.query_drop("ROLLBACK")?;
                // A routine that is dropped is created again at once.
                if rest.len() == statements.len() {
                    thread::sleep(PAUSE);
                }
            }
            1286 => return Err(InstallError::Check(quoted(&error.message))),
            _ => {
                let grant = |statement: &&String| statement.starts_with("GRANT ") && statements.len() > 1;
                let lost = rest
                    .iter()
                    .filter(grant)
                    .filter(|_| rest.len() < statements.len());
                let lost = lost.cloned().collect();
                return Err(InstallError::Rejected {
                    action: action.to_owned(),
                    error,
                    lost,
                });
            }
        }
    }
}

/// Executes statements that the server gets in one packet. The error has the number of statements before the one that failed.
fn packet(connection: &mut Conn, statements: &[String]) -> Result<Vec<Row>, (usize, mysql::Error)> {
    let mut results = connection
        .query_iter(statements.join(";\n"))
        .map_err(|error| (0, error))?;
    let (mut rows, mut done) = (Vec::new(), 0);
    while let Some(result) = results.iter() {
        for row in result {
            rows.push(row.map_err(|error| (done, error))?);
        }
        done += 1;
    }
    Ok(rows)
}

/// The text that a check of a script has put into the name of a storage engine: error 1286 is the way in which plain SQL can say something.
fn quoted(message: &str) -> String {
    let text = message
        .split_once('\'')
        .and_then(|(_, rest)| rest.rsplit_once('\''));
    text.map_or(message, |(text, _)| text).to_owned()
}

/// The sessions that can be the ones a statement waits for, those first that are in their state for the longest time.
fn blockers(connection: &mut Conn) -> String {
    // MariaDB has the table with the plugin metadata_lock_info. A thread of the server has no user and no host.
    let queries = [
        "SELECT CONCAT('connection ', PROCESSLIST_ID, ' of ', COALESCE(PROCESSLIST_USER, ''), '@', COALESCE(PROCESSLIST_HOST, ''),
                ' (', COALESCE(PROCESSLIST_COMMAND, ''), ', ', COALESCE(PROCESSLIST_TIME, 0), ' s)')
           FROM performance_schema.threads
          WHERE THREAD_ID IN (
                  SELECT OWNER_THREAD_ID
                    FROM performance_schema.metadata_locks
                   WHERE LOCK_STATUS = 'GRANTED'
                     AND (
                       OBJECT_SCHEMA = DATABASE() AND LOCK_DURATION = 'TRANSACTION'
                       OR OBJECT_TYPE IN ('GLOBAL', 'COMMIT', 'BACKUP LOCK') AND LOCK_DURATION = 'EXPLICIT'
                     )
                )
            AND PROCESSLIST_ID <> CONNECTION_ID()
          ORDER BY PROCESSLIST_TIME DESC
          LIMIT 3",
        "SELECT CONCAT('connection ', ID, ' of ', USER, '@', HOST, ' (', COMMAND, ', ', COALESCE(TIME, 0), ' s)')
           FROM information_schema.PROCESSLIST
          WHERE ID IN (
                  SELECT THREAD_ID
                    FROM information_schema.METADATA_LOCK_INFO
                   WHERE TABLE_SCHEMA IN (DATABASE(), '')
                )
            AND ID <> CONNECTION_ID()
          ORDER BY TIME DESC
          LIMIT 3",
    ];
    let mut found = queries.iter().map(|query| connection.query(query));
    let users: Option<Vec<String>> =
        found.find_map(|users| users.ok().filter(|users: &Vec<String>| !users.is_empty()));
    match users {
        Some(users) => format!(
            "other sessions have used it or lock all tables: {}; to continue, end them with COMMIT, UNLOCK TABLES or KILL",
            users.join(", ")
        ),
        None => "other sessions have used it or lock all tables, which this account or server does not show"
            .to_owned(),
    }
}
