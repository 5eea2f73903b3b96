//! What a server must have before an installation changes anything.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::compare::{self, ObjectState, State};
use super::privileges::Privileges;
use super::{InstallError, Plan};
use crate::cluster::{self, Clash};
use crate::package::{Package, Security, Servers};
use crate::render::{self, Check, ObjectKind};
use crate::server::{Flavour, Version};

/// A reason why an installation would fail, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// The problem.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

/// The databases of the servers themselves.
const SYSTEM: [&str; 4] = ["mysql", "sys", "information_schema", "performance_schema"];

/// Everything that would make the steps of a plan fail, before anything is changed.
///
/// # Errors
/// The connection fails.
pub fn check(connection: &mut Conn, package: &Package, plan: &Plan) -> Result<Vec<Problem>, InstallError> {
    let mut preflight = Preflight {
        version: Version::of(connection)?,
        privileges: Privileges::read(connection)?,
        states: &plan.states,
        package,
        problems: Vec::new(),
    };
    preflight.server(connection)?;
    if !plan.steps.is_empty() {
        preflight.account();
        preflight.definer(connection);
        preflight.routine_privileges(connection, plan);
    }
    preflight.names();
    preflight
        .problems
        .extend(super::column::missing(connection, package)?);
    preflight.checks(connection)?;
    Ok(preflight.problems)
}

/// What does not fit the cluster of the server, as far as one node shows it. The package can be installed nevertheless.
///
/// # Errors
/// The connection fails.
pub fn clashes(connection: &mut Conn, package: &Package, database: &str) -> Result<Vec<Clash>, InstallError> {
    let mut node = cluster::node(connection)?;
    if node.cluster.is_some() {
        let mut table = cluster::Table::of(database, package);
        // What the account cannot read, the preflight has named if the installation needs it.
        table.read(connection, &mut Vec::new())?;
        node.tables.push(table);
    }
    Ok(cluster::clashes(&[node]))
}

/// The table of routines that the database has, if it does not exist: it was renamed or dropped. An installation creates the table
/// first, and an uninstallation drops it last.
pub fn lost_table(package: &Package, states: &[ObjectState]) -> Option<Problem> {
    let table = &package.options.table;
    let missing = |object: &&ObjectState| object.kind == ObjectKind::Table && object.name == *table;
    let lost = states.iter().find(missing)?.state == State::Missing;
    let routine = states.iter().find(|object| {
        object.kind.is_routine() && !matches!(object.state, State::Missing | State::Foreign)
    })?;
    lost.then(|| Problem {
        what: format!(
            "the table {} with the counts does not exist, but the database has {routine}: the table was renamed or dropped",
            table.name()
        ),
        remedy: format!(
            "give the table its name again: RENAME TABLE ... TO {table}; or restore it from a backup; or add --new-table for an empty \
             table"
        ),
    })
}

struct Preflight<'a> {
    version: Version,
    privileges: Privileges,
    states: &'a [ObjectState],
    package: &'a Package,
    problems: Vec<Problem>,
}

impl Preflight<'_> {
    fn say(&mut self, what: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(Problem {
            what: what.into(),
            remedy: remedy.into(),
        });
    }

    fn mariadb(&self) -> bool {
        self.version.flavour == Flavour::MariaDb
    }

    /// Whether an object is in one of these states.
    fn any(&self, of: impl Fn(ObjectKind) -> bool, state: impl Fn(&State) -> bool) -> bool {
        self.states
            .iter()
            .any(|object| of(object.kind) && state(&object.state))
    }

    fn server(&mut self, connection: &mut Conn) -> Result<(), InstallError> {
        let (version, wanted) = (self.version, self.package.options.servers);
        let oldest = if self.mariadb() { (10, 6) } else { (8, 0) };
        if (version.major, version.minor) < oldest {
            self.say(
                format!("{version} is too old: the SQL needs MySQL 8.0 or MariaDB 10.6"),
                "upgrade the server",
            );
        }
        if wanted == Servers::Mysql && self.mariadb() || wanted == Servers::Mariadb && !self.mariadb() {
            self.say(
                format!("the server is {version}, and the package is rendered with --server {wanted}"),
                "omit --server, or use --server both",
            );
        }
        if self.package.options.bounded
            && !self.mariadb()
            && (version.major, version.minor, version.patch) < (8, 0, 16)
        {
            self.say(
                format!(
                    "{version} does not enforce CHECK, which keeps bounded counters from falling below 0"
                ),
                "upgrade the server to MySQL 8.0.16 or later",
            );
        }
        // Early releases of these series execute the comments for MariaDB 10.11.8 and later, and do not have the variable in them.
        if self.mariadb() && ((11, 0)..=(11, 4)).contains(&(version.major, version.minor)) {
            let query = "SHOW GLOBAL VARIABLES LIKE 'innodb_snapshot_isolation'";
            let variable: Option<(String, String)> = connection.query_first(query)?;
            if variable.is_none() {
                self.say(
                    format!(
                        "{version}.{} has no innodb_snapshot_isolation, which the routines set",
                        version.patch
                    ),
                    "upgrade the server to MariaDB 11.4.2 or later",
                );
            }
        }
        let database: Option<Option<String>> = connection.query_first("SELECT DATABASE()")?;
        if let Some(name) = database
            .flatten()
            .filter(|name| SYSTEM.contains(&name.to_lowercase().as_str()))
        {
            self.say(
                format!("{name} is a database of the server itself"),
                "give the database of an application with --database",
            );
        }
        let read_only = if self.mariadb() {
            "SELECT @@GLOBAL.read_only"
        } else {
            "SELECT @@GLOBAL.read_only + @@GLOBAL.super_read_only"
        };
        // MariaDB 11.8 has names in place of 0 and 1.
        let read_only: String = connection.query_first(read_only)?.unwrap_or_default();
        let administrators = ["SUPER", "CONNECTION_ADMIN", "READ_ONLY ADMIN", "READ ONLY ADMIN"];
        let allowed = self.privileges.has_global(&administrators);
        if read_only == "2" || !["0", "OFF"].contains(&read_only.as_str()) && !allowed {
            self.say(
                "the server is read-only, as a replica is",
                "install on the source: replication creates the package on its replicas",
            );
        }
        Ok(())
    }

    /// The privileges for the statements, and those that the routines need if this account is their definer.
    fn account(&mut self) {
        let differs = |state: &State| !matches!(state, State::Same);
        let creates_table = self.any(|kind| kind == ObjectKind::Table, |state| *state == State::Missing);
        let routines = self.any(ObjectKind::is_routine, differs);
        let own = self.package.options.definer.is_none();
        let views = self.any(|kind| kind == ObjectKind::View, differs);
        let events = self.any(|kind| kind == ObjectKind::Event, differs);
        // MariaDB runs routines, views and events without the roles of their definer, and MySQL with its default roles.
        let runs_as_own = own && self.package.options.security == Security::Definer;
        let without_roles = self.mariadb() && (runs_as_own || own && events);
        let (mut needed, mut of_roles): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for (needs, by_definer, names) in [
            (creates_table, false, &["CREATE"][..]),
            // DROP PROCEDURE IF EXISTS needs the privilege also if there is none.
            (routines, false, &["CREATE ROUTINE", "ALTER ROUTINE"]),
            (
                routines && own,
                true,
                &["SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE"],
            ),
            (views, false, &["CREATE VIEW", "DROP"]),
            (views, own, &["SELECT"]),
            (events, own, &["EVENT"]),
        ] {
            for name in names.iter().filter(|_| needs) {
                let list = if !self.privileges.has(name) {
                    &mut needed
                } else if by_definer && without_roles && !self.privileges.has_without_roles(name) {
                    &mut of_roles
                } else {
                    continue;
                };
                if !list.contains(name) {
                    list.push(name);
                }
            }
        }
        if !of_roles.is_empty() {
            let names = of_roles.join(", ");
            let remedy = self.privileges.on_schema(&names);
            self.say(
                format!(
                    "the account {} has {names} only by a role: without --definer, it is the definer, and MariaDB runs routines and views \
                     without the roles of their definer (1370, 1356)",
                    self.privileges.account
                ),
                remedy,
            );
        }
        if !needed.is_empty() {
            let names = needed.join(", ");
            let remedy = self.privileges.on_schema(&names);
            self.say(
                format!("the account {} does not have {names}", self.privileges.account),
                remedy,
            );
        }
    }

    fn definer(&mut self, connection: &mut Conn) {
        let Some(definer) = &self.package.options.definer else {
            return;
        };
        let plain = definer.plain();
        let account = self.privileges.account.clone();
        if plain == account {
            return;
        }
        if !self
            .privileges
            .has_global(&["SUPER", "SET_ANY_DEFINER", "SET_USER_ID", "SET USER"])
        {
            let name = match (self.mariadb(), self.version.major) {
                (true, _) => "SET USER",
                (false, 8) => "SET_USER_ID",
                (false, _) => "SET_ANY_DEFINER",
            };
            let remedy = self.privileges.on(name, "*.*");
            self.say(
                format!("the account {account} cannot create routines for the definer {plain}"),
                remedy,
            );
        }
        let nonexistent = ["SUPER", "ALLOW_NONEXISTENT_DEFINER", "SET_USER_ID"];
        if !self.mariadb()
            && compare::account_exists(connection, &plain) == Some(false)
            && !self.privileges.has_global(&nonexistent)
        {
            self.say(
                format!("the definer {plain} does not exist"),
                format!("create it: CREATE USER {definer} ACCOUNT LOCK; after the installation, source accounts.sql of slotted generate {}", self.package.options.arguments()),
            );
        }
    }

    /// What replacing a routine needs on MySQL, which drops it with the privileges on it.
    fn routine_privileges(&mut self, connection: &mut Conn, plan: &Plan) {
        let replaced = |state: &State| matches!(state, State::Changed(_) | State::Hidden(_));
        if self.mariadb() || !self.any(ObjectKind::is_routine, replaced) {
            return;
        }
        let readable: mysql::Result<Option<u64>> =
            connection.query_first("SELECT COUNT(*) FROM mysql.procs_priv WHERE Db = DATABASE()");
        if readable.is_err() {
            let remedy = self.privileges.on("SELECT", "mysql.procs_priv");
            self.say(
                "MySQL removes the privileges on a routine when it is replaced, and this account cannot read them",
                remedy,
            );
        } else if plan.grants && !self.privileges.can_grant() {
            let remedy = self.privileges.on_schema("EXECUTE, ALTER ROUTINE, GRANT OPTION");
            self.say(
                "MySQL removes the privileges on a routine when it is replaced, and this account cannot grant them again",
                remedy,
            );
        }
    }

    /// Objects with the names of the package that are not of a package, or whose definition cannot be read.
    fn names(&mut self) {
        let mut others = Vec::new();
        let mut hidden = None;
        for object in self.states {
            match &object.state {
                State::Foreign => others.push(object.to_string()),
                // The account does not have EVENT, which it needs for the installation, too.
                State::Hidden(_) if object.kind == ObjectKind::Event => {}
                State::Hidden(privilege) => hidden = hidden.or(Some((object, privilege))),
                _ => {}
            }
        }
        if !others.is_empty() {
            self.say(
                format!(
                    "other objects have the names of the package: {}",
                    others.join(", ")
                ),
                "choose another --table or --prefix, or drop them if they are not needed",
            );
        }
        if let Some((object, privilege)) = hidden {
            let remedy = match object.scope() {
                Some(place) => self.privileges.on(privilege, place),
                None => self.privileges.on_schema(privilege),
            };
            let remedy = format!("connect as the definer, or: {remedy}");
            self.say(
                format!(
                    "the account {} cannot read the definition of {object}",
                    self.privileges.account
                ),
                remedy,
            );
        }
    }

    /// The checks of the scripts.
    fn checks(&mut self, connection: &mut Conn) -> Result<(), InstallError> {
        let no_table = self.any(
            |kind| kind == ObjectKind::Table,
            |state| matches!(state, State::Missing | State::Foreign | State::Hidden(_)),
        );
        let function = self.any(|kind| kind == ObjectKind::Function, |state| *state != State::Same);
        for check in render::checks(self.package) {
            let (applies, check) = match check {
                Check::Function(check) => (function, check),
                Check::Table(check) | Check::Slots(check) => (!no_table, check),
            };
            if !applies {
                continue;
            }
            if let Some(problem) = compare::problem(connection, &check)? {
                // A check has the problem and the remedy in one text. The remedy follows the first full stop.
                let (what, remedy) = problem.split_once(". ").unwrap_or((&problem, "correct it"));
                let table = what.starts_with("the table ");
                self.say(what, remedy);
                if table {
                    // The check of the slots reads the columns that the check of the table requires.
                    break;
                }
            }
        }
        Ok(())
    }
}

/// What an administrator has to know about the server of a package: each with what to do.
///
/// # Errors
/// The connection fails.
pub fn warnings(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<Problem>> {
    let mut warnings = Vec::new();
    warnings.extend(super::column::other_collations(connection, package)?);
    let binary_log: Option<(bool, String)> =
        connection.query_first("SELECT @@GLOBAL.log_bin, @@GLOBAL.binlog_format")?;
    if binary_log.is_some_and(|(on, format)| on && format == "STATEMENT") {
        let more = if package.options.bounded {
            ", and the totals of a replica or a restored server can be others after takes"
        } else if package.options.column.is_some() {
            ", and the column of a replica or a restored server can have another part of the total"
        } else {
            ""
        };
        warnings.push(Problem {
            what: format!("binlog_format is STATEMENT: calls at READ COMMITTED fail (1665){more}"),
            remedy: "set binlog_format to ROW or MIXED".into(),
        });
    }
    Ok(warnings)
}
