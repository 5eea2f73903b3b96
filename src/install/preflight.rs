//! What a server must have before an installation changes anything.

use std::collections::BTreeSet;

use mysql::Conn;
use mysql::prelude::Queryable;

use super::compare::{self, State};
use super::{InstallError, Plan};
use crate::package::{Package, Servers};
use crate::render::{self, Check, ObjectKind};
use crate::server::{Flavour, Version};

/// A reason why an installation would fail, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

/// The privileges of an account, in upper case: those on all databases and those on the current one.
#[derive(Debug, Default)]
struct Privileges {
    global: BTreeSet<String>,
    schema: BTreeSet<String>,
}

impl Privileges {
    fn read(connection: &mut Conn, schema: &str) -> mysql::Result<Self> {
        let lines: Vec<String> = connection.query("SHOW GRANTS")?;
        let mut privileges = Self::default();
        for line in &lines {
            let Some((names, rest)) = line
                .strip_prefix("GRANT ")
                .and_then(|line| line.split_once(" ON "))
            else {
                continue;
            };
            let scope = rest.split(" TO ").next().unwrap_or_default();
            let into = if scope == "*.*" {
                &mut privileges.global
            } else if scope
                .strip_suffix(".*")
                .is_some_and(|pattern| matches(pattern, schema))
            {
                &mut privileges.schema
            } else {
                continue;
            };
            into.extend(names.split(", ").map(|name| name.trim().to_uppercase()));
        }
        Ok(privileges)
    }

    /// Whether the account has a privilege that can be granted on a database.
    fn has(&self, name: &str) -> bool {
        let names = [name, "ALL PRIVILEGES", "ALL"];
        names
            .iter()
            .any(|name| self.global.contains(*name) || self.schema.contains(*name))
    }

    /// Whether the account has one of these privileges on all databases.
    fn has_global(&self, names: &[&str]) -> bool {
        let all = ["ALL PRIVILEGES", "ALL"];
        names.iter().chain(&all).any(|name| self.global.contains(*name))
    }
}

/// Whether the database in a GRANT is this one. `_` and `%` are wildcards unless a backslash is before them.
fn matches(pattern: &str, schema: &str) -> bool {
    let pattern = pattern.trim_matches('`').replace("``", "`");
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = schema.chars().collect();
    fn from(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['\\', c, rest @ ..] => text.first() == Some(c) && from(rest, &text[1..]),
            ['%', rest @ ..] => (0..=text.len()).any(|skipped| from(rest, &text[skipped..])),
            ['_', rest @ ..] => !text.is_empty() && from(rest, &text[1..]),
            [c, rest @ ..] => text.first() == Some(c) && from(rest, &text[1..]),
        }
    }
    from(&pattern, &text)
}

/// Everything that would make the steps of a plan fail, before anything is changed.
///
/// # Errors
/// The connection fails.
pub fn check(connection: &mut Conn, package: &Package, plan: &Plan) -> Result<Vec<Problem>, InstallError> {
    let mut problems = Vec::new();
    let mut say = |what: String, remedy: String| problems.push(Problem { what, remedy });
    let version = Version::of(connection)?;
    let mariadb = version.flavour == Flavour::MariaDb;
    let oldest = if mariadb { (10, 6) } else { (8, 0) };
    if (version.major, version.minor) < oldest {
        say(
            format!("{version} is too old: the SQL needs MySQL 8.0 or MariaDB 10.6"),
            "upgrade the server".into(),
        );
    }
    let wanted = package.options.servers;
    if wanted == Servers::Mysql && mariadb || wanted == Servers::Mariadb && !mariadb {
        say(
            format!("the server is {version}, and the package is rendered with --server {wanted}"),
            "omit --server, or use --server both".into(),
        );
    }
    let Some(schema) = connection
        .query_first::<Option<String>, _>("SELECT DATABASE()")?
        .flatten()
    else {
        say(
            "no database is selected".into(),
            "add --database, or the name of the database to the URL".into(),
        );
        return Ok(problems);
    };
    let account: String = connection
        .query_first("SELECT CURRENT_USER()")?
        .unwrap_or_default();
    let grantee = {
        let (user, host) = account.rsplit_once('@').unwrap_or((account.as_str(), "%"));
        format!("'{user}'@'{host}'")
    };
    let privileges = Privileges::read(connection, &schema)?;

    let read_only = if mariadb {
        "SELECT @@GLOBAL.read_only"
    } else {
        "SELECT @@GLOBAL.read_only + @@GLOBAL.super_read_only"
    };
    // MariaDB 11.8 has names in place of 0 and 1.
    let read_only: String = connection.query_first(read_only)?.unwrap_or_default();
    let allowed = privileges.has_global(&["SUPER", "CONNECTION_ADMIN", "READ_ONLY ADMIN", "READ ONLY ADMIN"]);
    if read_only == "2" || !["0", "OFF"].contains(&read_only.as_str()) && !allowed {
        say(
            "the server is read-only, as a replica is".into(),
            "install on the source: replication creates the package on its replicas".into(),
        );
    }

    let states = compare::states(connection, package)?;
    let creates_table = states
        .iter()
        .any(|(kind, _, state)| *kind == ObjectKind::Table && *state == State::Missing);
    let has_routines = states.iter().any(|(kind, _, state)| {
        matches!(kind, ObjectKind::Procedure | ObjectKind::Function) && *state != State::Same
    });
    let replaces = states.iter().any(|(kind, _, state)| {
        matches!(kind, ObjectKind::Procedure | ObjectKind::Function)
            && !matches!(state, State::Same | State::Missing)
    });
    let views = states
        .iter()
        .any(|(kind, _, state)| *kind == ObjectKind::View && *state != State::Same);
    let event = states
        .iter()
        .any(|(kind, _, state)| *kind == ObjectKind::Event && *state != State::Same);
    let mut needed = Vec::new();
    for (needs, names) in [
        (creates_table, &["CREATE"][..]),
        (has_routines, &["CREATE ROUTINE"]),
        (replaces, &["ALTER ROUTINE"]),
        (views, &["CREATE VIEW", "DROP", "SELECT"]),
        (event, &["EVENT"]),
    ] {
        if needs {
            needed.extend(names.iter().copied().filter(|name| !privileges.has(name)));
        }
    }
    needed.dedup();
    if !needed.is_empty() && !plan.steps.is_empty() {
        say(
            format!("the account {account} does not have {}", needed.join(", ")),
            format!(
                "GRANT {} ON `{}`.* TO {grantee};",
                needed.join(", "),
                schema.replace('_', "\\_")
            ),
        );
    }
    if let Some(definer) = &package.options.definer
        && definer.plain() != account
        && !privileges.has_global(&["SUPER", "SET_ANY_DEFINER", "SET_USER_ID", "SET USER"])
    {
        let name = match (mariadb, version.major) {
            (true, _) => "SET USER",
            (false, 8) => "SET_USER_ID",
            (false, _) => "SET_ANY_DEFINER",
        };
        say(
            format!(
                "the account {account} cannot create routines for the definer {}",
                definer.plain()
            ),
            format!("GRANT {name} ON *.* TO {grantee};"),
        );
    }
    for check in render::checks(package) {
        let (applies, check, remedy) = match check {
            Check::Function(check) => {
                let function = states.iter().find(|(kind, ..)| *kind == ObjectKind::Function);
                (
                    function.is_some_and(|(.., state)| *state != State::Same),
                    check,
                    "see the problem",
                )
            }
            Check::Table(check) => (
                !creates_table,
                check,
                "see the problem, or choose another --table and --prefix",
            ),
            Check::Slots(check) => (!creates_table, check, "see the problem"),
        };
        // The check of slots reads the columns that the check of the table requires.
        let readable = !problems_about(&problems, &package.options.table.to_string());
        if applies
            && readable
            && let Some(problem) = compare::problem(connection, &check)?
        {
            problems.push(of_check(&problem, remedy));
        }
    }
    if !mariadb && replaces {
        let readable =
            connection.query_first::<u64, _>("SELECT COUNT(*) FROM mysql.procs_priv WHERE Db = DATABASE()");
        if let Err(mysql::Error::MySqlError(_)) = readable {
            problems.push(Problem {
                what: "MySQL removes the privileges on a routine when it is replaced, and this account cannot read them".into(),
                remedy: format!("GRANT SELECT ON mysql.procs_priv TO {grantee};"),
            });
        }
    }
    for (kind, name, state) in &states {
        if let State::Hidden(privilege) = state {
            problems.push(Problem {
                what: format!(
                    "the account {account} cannot see the body of {} {}",
                    kind.sql().to_lowercase(),
                    name.name()
                ),
                remedy: format!("grant {privilege}, or connect as the definer"),
            });
            break;
        }
    }
    Ok(problems)
}

fn problems_about(problems: &[Problem], table: &str) -> bool {
    problems
        .iter()
        .any(|problem| problem.what.contains(&format!("the table {table}")))
}

/// A check says what is wrong and what to do in one text. The remedy follows the first full stop.
fn of_check(text: &str, remedy: &str) -> Problem {
    let (what, rest) = text.split_once(". ").unwrap_or((text, remedy));
    Problem {
        what: what.to_owned(),
        remedy: rest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn the_database_of_a_grant_is_a_pattern() {
        for (pattern, schema, expected) in [
            ("`app`", "app", true),
            ("`app`", "apps", false),
            ("`a_b`", "axb", true),
            ("`a\\_b`", "axb", false),
            ("`a\\_b`", "a_b", true),
            ("`app%`", "apps", true),
            ("`%`", "anything", true),
        ] {
            assert_eq!(matches(pattern, schema), expected, "{pattern} {schema}");
        }
    }
}
