//! Installs a package in a database, and compares an installed package with a rendered one.

pub mod column;
pub mod compare;
pub mod definer;
mod facts;
mod kept;
pub mod preflight;
pub mod privileges;
mod table;
mod view;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::connect::{Session, cause};
use crate::package::{IdentError, Package, Routine};
use crate::render::{self, Object, ObjectKind};
use crate::script::tokens;
use crate::server::{Flavour, Version};
use compare::{ObjectState, State};
use kept::{Grant, Kept};

/// The time to wait for another installation in the same database, in seconds.
const LOCK_TIMEOUT: u32 = 600;

/// How often a statement that waits for transactions is executed, and the pause between two times, in which the calls go on.
const DDL_TRIES: u32 = 20;
const DDL_PAUSE: Duration = Duration::from_secs(1);

/// How often the pause looks for the end of the command.
const INTERVAL: Duration = Duration::from_millis(20);

/// The error of a wait that has timed out.
const LOCK_WAIT: u16 = 1205;

/// The error of a statement that another session has ended.
const ENDED: u16 = 1317;

/// A package that cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The connection fails, or the server rejects a statement.
    #[error("{}", cause(.0))]
    MySql(#[from] mysql::Error),
    /// The server rejects a statement.
    #[error("cannot {action}: ERROR {} ({}): {}", .error.code, .error.state, .error.message)]
    Rejected {
        /// What the statement does.
        action: String,
        /// The answer of the server.
        error: mysql::MySqlError,
    },
    /// The command was told to end before this step.
    #[error("ended before: {0}")]
    Stopped(String),
    /// Another session installs a package in this database.
    #[error("another installation in this database has not ended within {LOCK_TIMEOUT} s")]
    Locked,
    /// A table with the name that an installation uses is not one of it.
    #[error("{table} is not the table in which an interrupted installation keeps privileges: {difference}")]
    Foreign {
        /// The name of the table or view.
        table: String,
        /// How it differs.
        difference: String,
    },
    /// The prefix and a suffix are too long together.
    #[error("{0}")]
    Name(#[from] IdentError),
}

/// A step of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What the step does, such as `create procedure counter_add`.
    pub action: String,
    /// The statements, in order. The server gets them in one packet, so that it completes them if the command is killed.
    pub statements: Vec<String>,
}

/// The steps from an installed package, or none, to the wanted one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The settings of the session, which the server stores with each routine.
    pub session: Vec<String>,
    /// The states of the objects before the steps.
    pub states: Vec<ObjectState>,
    /// The steps. Empty if the database has the package already.
    pub steps: Vec<Step>,
    /// Whether the steps grant privileges on routines again.
    pub grants: bool,
}

/// Compares the database with the package, and returns the steps that are left. Changes nothing.
///
/// # Errors
/// The connection fails.
pub fn plan(connection: &mut Conn, package: &Package) -> Result<Plan, InstallError> {
    let server = Version::of(connection)?;
    let objects = render::objects(package);
    let states = compare::states(connection, package)?;
    let pending: Vec<(&Object, &State)> = objects
        .iter()
        .zip(&states)
        .filter(|(_, object)| object.is_left(package))
        .map(|(object, one)| (object, &one.state))
        .collect();
    let kept = Kept::of(package)?;
    let mut left = None;
    let mut grants = Vec::new();
    // MariaDB replaces a routine in one statement, which keeps the privileges.
    if server.flavour == Flavour::MySql {
        left = kept.read(connection, &objects)?;
        let replaced = pending.iter().filter(|(_, state)| **state != State::Missing);
        let replaced: Vec<_> = replaced
            .map(|(object, _)| *object)
            .filter(|object| object.kind.is_routine())
            .collect();
        if !replaced.is_empty() {
            grants = kept::granted(connection, &replaced)?;
        }
    }
    // A statement for the other servers is a comment, which is no statement.
    let executes = |statement: &String| !tokens(statement, server.dialect()).is_empty();
    let has_table = left.is_some();
    let left = left.unwrap_or_default();
    grants.retain(|grant| !left.contains(grant));
    let mut steps = Vec::new();
    if !grants.is_empty() {
        steps.push(Step {
            action: format!("keep the privileges on routines in table {}", kept.name()),
            statements: kept.keep(&grants),
        });
    }
    for (object, state) in &pending {
        let verb = match state {
            State::Missing => "create",
            _ => "replace",
        };
        // MySQL drops a routine with the privileges on it. A routine without them rejects the calls of applications.
        let of_object = left.iter().chain(&grants).filter(|grant| grant.is_on(object));
        let statements = object
            .statements()
            .into_iter()
            .filter(executes)
            .chain(of_object.map(Grant::statement));
        steps.push(Step {
            action: format!("{verb} {object}"),
            statements: statements.collect(),
        });
    }
    // The view with the version comes last: it says that all the rest is installed.
    let version = pending
        .last()
        .is_some_and(|(object, _)| object.name == package.package);
    let last = steps.split_off(steps.len() - usize::from(version));
    for object in states.iter().filter(|object| object.state == State::Obsolete) {
        steps.push(Step {
            action: format!("drop {object}, of other options"),
            statements: vec![drop_statement(object)],
        });
    }
    let restores = has_table || !grants.is_empty();
    if restores {
        let is_done = |grant: &Grant| pending.iter().any(|(object, _)| grant.is_on(object));
        let rest = left.iter().filter(|grant| !is_done(grant));
        let mut statements: Vec<_> = rest.map(Grant::statement).collect();
        statements.push(kept.drop());
        steps.push(Step {
            action: format!("drop table {}", kept.name()),
            statements,
        });
    }
    steps.extend(last);
    Ok(Plan {
        session: render::session(package),
        states,
        steps,
        grants: restores,
    })
}

/// Takes the lock that only one installation in a database has at a time. The connection has it until it ends.
///
/// # Errors
/// The connection fails, or another installation does not end.
pub fn lock(connection: &mut Conn) -> Result<(), InstallError> {
    let taken: Option<Option<u8>> = connection.query_first(format!(
        "SELECT GET_LOCK(LEFT(CONCAT('slotted ', DATABASE()), 64), {LOCK_TIMEOUT})"
    ))?;
    if taken.flatten() == Some(1) {
        Ok(())
    } else {
        Err(InstallError::Locked)
    }
}

/// Executes the steps of a plan. Calls `before` with each step, and `waits` with a step that waits for other sessions and with what is
/// known of them. When `stop` is set or the server ends a statement, completes the step that has begun, and no further one.
///
/// # Errors
/// The connection fails, the server rejects a statement, or the command ends. What has been executed stays: a new plan has the steps
/// that are left.
pub fn apply(
    connection: &mut Session,
    plan: &Plan,
    stop: &AtomicBool,
    mut before: impl FnMut(&Step) -> Result<(), InstallError>,
    mut waits: impl FnMut(&Step, &str),
) -> Result<(), InstallError> {
    connection.query_drop(format!("SET SESSION lock_wait_timeout = {}", render::DDL_TIMEOUT))?;
    for statement in &plan.session {
        connection.query_drop(statement)?;
    }
    for step in &plan.steps {
        let stopped = || InstallError::Stopped(step.action.clone());
        if stop.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        before(step)?;
        let (mut rest, mut tries, mut ended) = (&step.statements[..], 1, false);
        while let Err((done, error)) = execute(connection, rest) {
            let begun = rest.len() < step.statements.len() || done > 0;
            rest = &rest[done..];
            match error {
                mysql::Error::MySqlError(error) if error.code == LOCK_WAIT && tries < DDL_TRIES => {
                    waits(step, &users(connection));
                    let begin = Instant::now();
                    while begin.elapsed() < DDL_PAUSE && !begun {
                        if stop.load(Ordering::Relaxed) {
                            return Err(stopped());
                        }
                        thread::sleep(INTERVAL);
                    }
                    tries += 1;
                }
                // A routine that is dropped is created again.
                mysql::Error::MySqlError(error) if error.code == ENDED && begun && tries < DDL_TRIES => {
                    connection.complete();
                    ended = true;
                    tries += 1;
                }
                mysql::Error::MySqlError(error) => {
                    return Err(InstallError::Rejected {
                        action: step.action.clone(),
                        error,
                    });
                }
                error => return Err(error.into()),
            }
        }
        if ended {
            return Err(InstallError::Stopped(format!("what follows: {}", step.action)));
        }
    }
    Ok(())
}

/// Executes statements that the server gets in one packet. The error has the number of statements before the one that failed.
fn execute(connection: &mut Conn, statements: &[String]) -> Result<(), (usize, mysql::Error)> {
    let mut results = connection
        .query_iter(statements.join(";\n"))
        .map_err(|error| (0, error))?;
    let mut done = 0;
    while let Some(result) = results.iter() {
        for row in result {
            row.map_err(|error| (done, error))?;
        }
        done += 1;
    }
    Ok(())
}

/// The sessions that can be the ones a statement waits for, those first that are in their state for the longest time. Empty if the
/// server or the account does not show them.
fn users(connection: &mut Conn) -> String {
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
    let users: Vec<String> = found
        .find_map(|users| users.ok().filter(|users: &Vec<String>| !users.is_empty()))
        .unwrap_or_default();
    users.join(", ")
}

/// The steps that drop what a database has of a package, and with `data` its tables: those before the last roll-up, and those after it. Objects with the same names that are not
/// of a package stay.
pub fn removal(package: &Package, states: &[ObjectState], data: bool) -> [Vec<Step>; 2] {
    let order = [
        ObjectKind::Event,
        ObjectKind::Procedure,
        ObjectKind::Function,
        ObjectKind::View,
        ObjectKind::Table,
    ];
    let routine_of = |object: &ObjectState| {
        let mut routines = package
            .routines()
            .filter(|(_, name)| **name == object.name && object.kind.is_routine());
        routines.next().map(|(routine, _)| routine)
    };
    let mut states: Vec<_> = states.iter().collect();
    // The roll-up after the routines that it calls: an interrupted command can be repeated.
    let last = |object: &&ObjectState| {
        [Routine::Fail, Routine::Move, Routine::Rollup]
            .iter()
            .position(|last| Some(*last) == routine_of(object))
    };
    states.sort_by_key(|object| (order.iter().position(|kind| *kind == object.kind), last(object)));
    let dropped = states
        .into_iter()
        .filter(|object| !matches!(object.state, State::Missing | State::Foreign))
        .filter(|object| data || object.kind != ObjectKind::Table)
        // The view with the version is the last one: an interrupted command can be repeated.
        .partition::<Vec<_>, _>(|object| object.name != package.package);
    let step = |object: &ObjectState| Step {
        action: format!("drop {object}"),
        statements: vec![drop_statement(object)],
    };
    let counts = |object: &&ObjectState| {
        object.kind == ObjectKind::Event
            || routine_of(object).is_some_and(|routine| !package.serves_rollup(routine))
    };
    let (first, rest): (Vec<_>, Vec<_>) = dropped.0.into_iter().partition(counts);
    [
        first.into_iter().map(step).collect(),
        rest.into_iter().chain(dropped.1).map(step).collect(),
    ]
}

/// The statement that drops an object.
fn drop_statement(object: &ObjectState) -> String {
    format!("DROP {} IF EXISTS {}", object.kind.sql(), object.name)
}
