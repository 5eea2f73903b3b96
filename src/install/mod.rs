//! Sources the files of a package in a database, statement by statement, as a DBA does with the client of the server.

pub mod column;
pub mod compare;
mod grants;
mod installed;
pub mod preflight;
mod stored;
mod trial;

pub use installed::{Installed, installed};

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, MySqlError, Row};

use crate::connect::cause;
use crate::package::{Family, Package, quoted};
use crate::render;
use crate::script::{self, tokens};
use crate::server::Version;
use compare::{ObjectState, State};

/// The time to wait for another installation in the same database, in seconds.
const LOCK_TIMEOUT: u32 = 600;

/// How often a statement that waits for transactions is executed, and the pause between two times, in which the calls go on.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_secs(1);

/// How long a statement of the last roll-up waits for a row, in seconds.
const ROW_TIMEOUT: u32 = 1;

/// The error with which a script rejects the server or a table.
const REJECTED: u16 = 30022;

const UNINSTALL: &str = "uninstall.sql";

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
    /// A script rejects the server or a table, and says what to do.
    #[error("{0}")]
    Check(String),
    /// The table with the counts does not exist, but the database has routines of the package.
    #[error("the table {0} does not exist, but the database has {1}: the table was renamed or dropped")]
    LostTable(String, String),
    /// What an uninstallation would read or call is not that of the package.
    #[error("{0}: {1}")]
    Differs(String, String),
    /// MySQL would drop a routine with privileges that this account cannot read.
    #[error("MySQL removes the privileges on {0} when it is replaced, and this account cannot read them: {1}")]
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

/// Installs or upgrades a package: sources `setup.sql`, or if the table exists `create_procedures.sql` without the routines that are equal,
/// and tries the routines in a transaction that is rolled back. Returns whether something was not the same.
///
/// # Errors
/// The connection fails, or the server rejects a statement. What has been executed stays: the next installation does the rest.
pub fn install(connection: &mut Conn, package: &Package, say: Say<'_>) -> Result<bool, InstallError> {
    lock(connection)?;
    let states = compare::states(connection, package)?;
    let changes = states.iter().any(|object| object.state != State::Same);
    if changes {
        source(connection, package, &states, file(package, &states)?, say)?;
    }
    let states = compare::states(connection, package)?;
    if let Some(other) = states.iter().find(|object| object.state != State::Same) {
        say(&format!("warning: {other}: {}; the routines were not tried", other.state));
        return Ok(changes);
    }
    if let Some(why) = trial::run(connection, package)? {
        say(&format!("the routines were not tried: {why}"));
    }
    Ok(changes)
}

/// The name of the file that an installation sources in a database with these objects.
///
/// # Errors
/// The table was renamed or dropped. An empty one would hide that its counts are missing.
pub fn file(package: &Package, states: &[ObjectState]) -> Result<&'static str, InstallError> {
    let exists = |object: &&ObjectState| object.state != State::Missing;
    if states.iter().filter(exists).any(|object| object.kind == "table") {
        return Ok("create_procedures.sql");
    }
    match states.iter().filter(exists).find(|object| object.is_routine()) {
        None => Ok("setup.sql"),
        Some(routine) => {
            let table = package.options.table.name().to_owned();
            Err(InstallError::LostTable(table, routine.to_string()))
        }
    }
}

/// Removes a package: sources `uninstall.sql`. Returns the records whose counts remain in the table, each with its key and the sum.
///
/// # Errors
/// The connection fails, or the server rejects a statement. What has been executed stays: the next call does the rest.
pub fn uninstall(connection: &mut Conn, package: &Package, say: Say<'_>) -> Result<Vec<Row>, InstallError> {
    lock(connection)?;
    let states = check_removal(connection, package)?;
    connection.query_drop(format!("SET SESSION innodb_lock_wait_timeout = {ROW_TIMEOUT}"))?;
    source(connection, package, &states, UNINSTALL, say)
}

/// Checks what an uninstallation reads and calls: a view in the place of the table, or a routine that somebody else has written, would be
/// executed as this account, and without its unique key a row would get the counts of another. Returns the states of the objects.
///
/// # Errors
/// The connection fails, or something differs.
pub fn check_removal(connection: &mut Conn, package: &Package) -> Result<Vec<ObjectState>, InstallError> {
    let states = compare::states(connection, package)?;
    let differs = |object: &&ObjectState| {
        let mut routines = package.routines();
        let called = routines.any(|(routine, name)| package.serves_rollup(routine) && name.name() == object.name);
        let read = object.kind == "table" && package.options.column.is_some();
        (called || read) && !matches!(object.state, State::Same | State::Missing)
    };
    if let Some(object) = states.iter().find(differs) {
        return Err(InstallError::Differs(object.to_string(), object.state.to_string()));
    }
    if compare::is_view(connection, package.options.table.name())? {
        let table = package.options.table.name().to_owned();
        return Err(InstallError::Differs(table, "it is a view".into()));
    }
    Ok(states)
}

/// Takes the lock that only one installation in a database has at a time. The connection has it until it ends.
fn lock(connection: &mut Conn) -> Result<(), InstallError> {
    let taken: Option<Option<u8>> =
        connection.query_first(format!("SELECT GET_LOCK(LEFT(CONCAT('slotted ', DATABASE()), 64), {LOCK_TIMEOUT})"))?;
    if taken.flatten() == Some(1) { Ok(()) } else { Err(InstallError::Locked) }
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
    let event = if name == UNINSTALL { column::event(connection, package)? } else { None };
    let (mut rows, mut said) = (Vec::new(), BTreeSet::new());
    for unit in units(&render::file(package, name)) {
        let state = states.iter().find(|object| unit.is_of(object)).map(|object| &object.state);
        let exists = state.is_some_and(|state| *state != State::Missing);
        if name != UNINSTALL && unit.is_routine() && state == Some(&State::Same) {
            continue;
        }
        let mut statements = unit.statements.clone();
        let action = unit.action(exists, name);
        // MariaDB replaces a routine in one statement, which keeps the privileges.
        if server.family == Family::Mysql && exists && statements.len() > 1 {
            for grant in grants::read(connection, &unit.kind, &unit.name)? {
                // The server answers now whether this account can grant it, before it drops the routine.
                execute(connection, &[grant.statement()], &format!("keep the privileges to {action}"), say)?;
                statements.push(grant.statement());
            }
        }
        if let Some((event, _)) = event.as_ref().filter(|_| unit.is_block()) {
            say(&format!("drop event {}", event.name()));
        }
        // A file drops some routines twice: before a roll-up, and with all others.
        let is_object = !unit.kind.is_empty() && !unit.is_internal() && (exists || unit.verb != "DROP");
        if is_object && said.insert(action.clone()) {
            say(&action);
        }
        let mut executed = execute(connection, &statements, &action, say);
        if let Err(InstallError::Rejected { error, .. }) = &mut executed
            && unit.is_internal()
        {
            // MySQL: "alter routine command denied to user 'a'@'%' for routine 'mydb._counter_script'".
            error.message.truncate(error.message.find(" for routine").unwrap_or(error.message.len()));
        }
        if matches!(executed, Err(InstallError::Check(_))) {
            // The routine that has rejected the server or the table. MariaDB needs none.
            let name = quoted(&format!("_{}script", package.options.prefix.name()));
            connection.query_drop(format!("DROP PROCEDURE IF EXISTS {name}"))?;
        }
        rows.extend(executed?);
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

    /// Whether it is a routine that a file creates, calls and drops.
    fn is_internal(&self) -> bool {
        self.name.ends_with("_script")
    }

    /// Whether it checks the server and the table, or moves pending counts.
    fn is_block(&self) -> bool {
        ["CALL", "BEGIN"].contains(&self.verb.as_str())
    }

    /// A package has one function. The script tries before with another one whether the server accepts it.
    fn is_of(&self, object: &ObjectState) -> bool {
        let same = self.kind == "function" || self.name.to_lowercase() == object.name.to_lowercase();
        self.kind == object.kind && same
    }

    /// What it does in a file, such as `create procedure counter_add`.
    fn action(&self, exists: bool, file: &str) -> String {
        let verb = match self.verb.as_str() {
            verb if self.is_internal() => return format!("{} a {}", verb.to_lowercase(), self.kind),
            _ if self.is_block() && file == UNINSTALL => return "move the pending counts".to_owned(),
            _ if self.is_block() => return "check the server and the table".to_owned(),
            "CREATE" if exists => "replace",
            "CREATE" => "create",
            "DROP" => "drop",
            _ => return self.statements[0].lines().next().unwrap_or_default().to_owned(),
        };
        format!("{verb} {} {}", self.kind, self.name)
    }
}

/// The statements of a script.
fn units(text: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for statement in script::statements(text) {
        let tokens = tokens(&statement);
        let Some(verb) = tokens.first().map(|verb| verb.to_uppercase()) else {
            continue;
        };
        let (kind, name) = compare::object(&tokens).unwrap_or_default();
        match units.last_mut() {
            Some(last) if last.verb == "DROP" && verb == "CREATE" && last.is_routine() && last.name == name => {
                last.statements.push(statement);
                last.verb = verb;
            }
            _ => units.push(Unit { statements: vec![statement], verb, kind, name }),
        }
    }
    units
}

/// Executes statements in one packet, and again those that wait for other sessions.
fn execute(connection: &mut Conn, statements: &[String], action: &str, say: Say<'_>) -> Result<Vec<Row>, InstallError> {
    let (mut rest, mut attempt) = (statements, 0);
    loop {
        attempt += 1;
        let (done, error) = match packet(connection, rest) {
            Ok(rows) => return Ok(rows),
            Err((done, mysql::Error::MySqlError(error))) => (done, error),
            Err((_, error)) => return Err(error.into()),
        };
        // A statement can return several results.
        rest = rest.get(done..).unwrap_or_default();
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
            REJECTED => return Err(InstallError::Check(error.message)),
            _ => {
                let grant = |statement: &&String| statement.starts_with("GRANT ") && statements.len() > 1;
                let lost = rest.iter().filter(grant).filter(|_| rest.len() < statements.len());
                let lost = lost.cloned().collect();
                return Err(InstallError::Rejected { action: action.to_owned(), error, lost });
            }
        }
    }
}

/// Executes statements that the server gets in one packet. The error has the number of statements before the one that failed.
fn packet(connection: &mut Conn, statements: &[String]) -> Result<Vec<Row>, (usize, mysql::Error)> {
    let mut results = connection.query_iter(statements.join(";\n")).map_err(|error| (0, error))?;
    let (mut rows, mut done) = (Vec::new(), 0);
    while let Some(result) = results.iter() {
        for row in result {
            rows.push(row.map_err(|error| (done, error))?);
        }
        done += 1;
    }
    Ok(rows)
}

/// The sessions that can be the ones a statement waits for, those first that are in their state for the longest time. Only MySQL shows them;
/// MariaDB replaces a routine that a transaction has used.
fn blockers(connection: &mut Conn) -> String {
    // A thread of the server has no user and no host.
    let query = "SELECT CONCAT('connection ', PROCESSLIST_ID, ' of ', COALESCE(PROCESSLIST_USER, ''), '@', COALESCE(PROCESSLIST_HOST, ''),
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
          LIMIT 3";
    let users: Vec<String> = connection.query(query).unwrap_or_default();
    if users.is_empty() {
        return "other sessions have used it or lock all tables, which this account or server does not show".into();
    }
    format!(
        "other sessions have used it or lock all tables: {}; to continue, end them with COMMIT, UNLOCK TABLES or KILL",
        users.join(", ")
    )
}
