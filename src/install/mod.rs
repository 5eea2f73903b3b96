//! Installs and removes a package: executes the steps of its plan, each in one packet.

pub(crate) mod column;
pub(crate) mod compare;
mod counts;
pub(crate) mod definers;
mod error;
mod grants;
pub(crate) mod hint;
mod installed;
pub(crate) mod preflight;
mod stored;
pub(crate) mod trial;

pub use counts::{Counter, Counts, OF_TABLE, counters, sum};
pub use error::{InstallError, Problem};
pub use installed::{Installed, installed};

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::package::{Ident, Package};
use crate::render::{self, Object, Purpose, Step, Task};
use compare::{ObjectState, State};
use error::LOCK_TIMEOUT;

/// How often a statement that waits for transactions is executed, and the pause between two times, during which calls continue.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_secs(1);

/// What an installation tells the user while it runs.
pub type Say<'a> = &'a mut dyn FnMut(&str);

/// Executes the [`steps`], and tries the routines in a transaction that is rolled back. Returns whether it had steps, and whether something differs.
///
/// # Errors
/// The connection fails, or the server rejects a statement. What has been executed stays: the next installation does the rest.
pub fn install(connection: &mut Conn, package: &Package, say: Say<'_>) -> Result<(bool, bool), InstallError> {
    lock(connection, say)?;
    let states = compare::states(connection, package)?;
    let changes = states.iter().any(|object| object.state != State::Same);
    if changes {
        let steps = steps(package, &states)?;
        compare::rejected(connection, package)?.map_or(Ok(()), |why| Err(InstallError::Check(why)))?;
        execute(connection, package, &states, &steps, say)?;
    }
    let states = compare::states(connection, package)?;
    if let Some(other) = states.iter().find(|object| object.state != State::Same) {
        say(&format!("warning: {other}: {}; the routines were not tried", other.state));
        let differs = |object: &ObjectState| !matches!(object.state, State::Same | State::Hidden);
        return Ok((changes, states.iter().any(differs)));
    }
    if let Some(why) = trial::run(connection, package)? {
        say(&format!("the routines were not tried: {why}"));
    }
    Ok((changes, false))
}

/// The steps of an installation in a database with these objects: all of them, or, if the table exists, without the routines that are the
/// same.
///
/// # Errors
/// The table differs, or it was renamed or dropped: an empty one would hide that its counts are missing.
pub fn steps(package: &Package, states: &[ObjectState]) -> Result<Vec<Step>, InstallError> {
    let exists = |object: &&ObjectState| object.state != State::Missing;
    if let Some(table) = states.iter().filter(exists).find(|object| object.kind == "table") {
        if let State::Changed(why) = &table.state {
            return Err(InstallError::Check(why.join("; ")));
        }
        let mut steps = render::plan(package, Task::Replace);
        steps.retain(|step| !step.is_of_routine() || state(step, states) != Some(&State::Same));
        return Ok(steps);
    }
    states.iter().find(exists).map_or(Ok(render::plan(package, Task::Create)), |left| {
        Err(InstallError::LostTable(package.options.table.name().to_owned(), left.to_string()))
    })
}

/// The state of the object of a step.
fn state<'a>(step: &Step, states: &'a [ObjectState]) -> Option<&'a State> {
    let Object { kind, name } = step.object.as_ref()?;
    let is_it = |found: &&ObjectState| found.name == name.name() && found.kind.eq_ignore_ascii_case(kind);
    states.iter().find(is_it).map(|found| &found.state)
}

/// Removes a package: executes the steps of `uninstall.sql`.
///
/// # Errors
/// The connection fails, or the server rejects a statement. What has been executed stays: the next call does the rest.
pub fn uninstall(connection: &mut Conn, package: &Package, say: Say<'_>) -> Result<(), InstallError> {
    lock(connection, say)?;
    let states = check_removal(connection, package, false)?;
    // For the last roll-up, behind whose waits for a row others wait.
    connection.query_drop("SET SESSION innodb_lock_wait_timeout = 1")?;
    execute(connection, package, &states, &render::plan(package, Task::Remove), say)
}

/// Drops the table of a package whose routines were dropped, unless its counts have changed: those of a column must have been moved, and others
/// must have the sum that the user has seen. While the table has another name, nothing can count in it.
///
/// # Errors
/// The connection fails, the counts have changed, or the server rejects a statement.
pub fn drop_table(connection: &mut Conn, package: &Package, seen: &str, say: Say<'_>) -> Result<(), InstallError> {
    let (table, hidden) = (&package.options.table, package.temporary());
    let rename = |from: &Ident, to: &Ident| [format!("RENAME TABLE {from} TO {to}")];
    connection.query_drop(format!("SET SESSION lock_wait_timeout = {}", render::DDL_TIMEOUT))?;
    execute_patiently(connection, &rename(table, &hidden), &[], &format!("drop table {}", table.name()), say)?;
    let expected = if package.options.column().is_some() { "0" } else { seen };
    let dropped = match sum(connection, package, &hidden) {
        Ok(now) if now != expected => Err(InstallError::Counts(table.name().to_owned(), now, expected.to_owned())),
        Ok(_) => execute_patiently(
            connection,
            &[format!("DROP TABLE {hidden}")],
            &[],
            &format!("drop table {}", table.name()),
            say,
        ),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = dropped {
        let action = format!("rename the table {} to {} again", hidden.name(), table.name());
        execute_patiently(connection, &rename(&hidden, table), &[], &action, say)?;
        return Err(error);
    }
    say(&format!("drop table {}", table.name()));
    Ok(())
}

/// Checks what an uninstallation drops and reads: an object that differs can be of somebody else, a view in the place of the table would be
/// executed as this account, and without its unique key a row would get the counts of another. Returns the states of the objects.
///
/// # Errors
/// The connection fails, or something differs.
pub fn check_removal(connection: &mut Conn, package: &Package, all: bool) -> Result<Vec<ObjectState>, InstallError> {
    let states = compare::states(connection, package)?;
    let differs = |object: &&ObjectState| match &object.state {
        State::Same | State::Missing => false,
        _ if object.kind == "table" => all || package.options.column().is_some(),
        // Not the description of another version.
        state => *state != State::Hidden && object.name != package.description.name(),
    };
    if let Some(object) = states.iter().find(differs) {
        return Err(InstallError::Differs(object.to_string(), object.state.to_string()));
    }
    Ok(states)
}

/// Takes the lock that only one installation in a database has at a time. The connection has it until it ends.
fn lock(connection: &mut Conn, say: Say<'_>) -> Result<(), InstallError> {
    for timeout in [0, LOCK_TIMEOUT] {
        let query = format!("SELECT GET_LOCK(LEFT(CONCAT('slotted ', DATABASE()), 64), {timeout})");
        if connection.query_first::<Option<u8>, _>(query)?.flatten() == Some(1) {
            return Ok(());
        }
        say("waiting for another installation in this database");
    }
    Err(InstallError::Locked)
}

fn execute(
    connection: &mut Conn,
    package: &Package,
    states: &[ObjectState],
    steps: &[Step],
    say: Say<'_>,
) -> Result<(), InstallError> {
    let mut said = BTreeSet::new();
    // The owner of the database could put another procedure in the place of the one that checks: this account would execute it.
    for step in steps.iter().filter(|step| step.purpose != Purpose::Check) {
        let exists = state(step, states).is_some_and(|state| *state != State::Missing);
        let action = step.action(exists);
        let mut grants = Vec::new();
        // MariaDB replaces a routine in one statement, which keeps the privileges.
        if let Some(routine) = step.created_routine().filter(|_| !package.options.mariadb() && exists) {
            grants = grants::read(connection, routine)?;
            // The server answers now whether this account can grant them, before it drops the routine.
            execute_patiently(connection, &grants, &[], &format!("grant the privileges on {routine} again"), say)?;
        }
        // Some routines are dropped twice: before a roll-up, and with all others.
        let lasts = step.object.is_some() && step.purpose != Purpose::Try;
        if lasts && (exists || step.purpose == Purpose::Create) && said.insert(action.clone()) {
            say(&action);
        }
        let of_move = if step.purpose == Purpose::Move { moves(connection, package, states, say)? } else { None };
        execute_patiently(connection, of_move.as_ref().unwrap_or(&step.statements), &grants, &action, say)?;
    }
    Ok(())
}

/// What an account executes that does not call the last roll-up: it drops its event after all counts were moved, and without it nothing.
fn moves(
    connection: &mut Conn,
    package: &Package,
    states: &[ObjectState],
    say: Say<'_>,
) -> Result<Option<Vec<String>>, InstallError> {
    let table = &package.options.table;
    let exists = |name: &&Ident| states.iter().any(|one| one.name == name.name() && one.state != State::Missing);
    let rollup = package.event().filter(exists);
    let calls = rollup.is_some() && definers::calls(connection, package)?;
    if let Some(rollup) = rollup.filter(|_| exists(&table) && !calls) {
        // Waits for the transactions that have counted.
        let lock = format!("SELECT COUNT(*) FROM {table} {OF_TABLE} LOCK IN SHARE MODE");
        execute_patiently(connection, &[lock], &[], "look for pending counts", say)?;
        let pending = sum(connection, package, table)?;
        if pending != "0" {
            return Err(InstallError::Pending(pending, rollup.name().to_owned()));
        }
    }
    let event = column::event(connection, package)?.map(|(event, _)| event);
    event.iter().for_each(|event| say(&format!("drop event {}", event.name())));
    Ok((!calls).then(|| event.iter().map(|event| format!("DROP EVENT {event}")).collect()))
}

/// Executes statements and then grants in one packet, and again those that wait for other sessions.
fn execute_patiently(
    connection: &mut Conn,
    statements: &[String],
    grants: &[String],
    action: &str,
    say: Say<'_>,
) -> Result<(), InstallError> {
    let all = [statements, grants].concat();
    let (mut rest, mut attempt) = (&all[..], 0);
    loop {
        attempt += 1;
        let (done, error) = match packet(connection, rest) {
            Ok(()) => return Ok(()),
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
                if rest.len() == all.len() {
                    thread::sleep(PAUSE);
                }
            }
            _ => {
                // They have gone with the routine.
                let from = if rest.len() < all.len() { rest.len().saturating_sub(grants.len()) } else { rest.len() };
                let lost = rest[from..].to_vec();
                return Err(InstallError::Rejected { action: action.to_owned(), error, lost });
            }
        }
    }
}

/// Executes statements that the server gets in one packet. The error has the number of statements before the one that failed.
fn packet(connection: &mut Conn, statements: &[String]) -> Result<(), (usize, mysql::Error)> {
    if statements.is_empty() {
        return Ok(());
    }
    let mut results = connection.query_iter(statements.join(";\n")).map_err(|error| (0, error))?;
    let mut done = 0;
    while let Some(mut result) = results.iter() {
        result.try_for_each(|row| row.map(drop)).map_err(|error| (done, error))?;
        done += 1;
    }
    Ok(())
}

/// The sessions that can be the ones a statement waits for, the longest in their state first. Only MySQL shows them;
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
