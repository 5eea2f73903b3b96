//! The privileges of the account, from SHOW GRANTS.

use std::collections::BTreeSet;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::package::{SqlStr, quoted};

/// The privileges of an account, in upper case: those on all databases and those on the current one.
#[derive(Debug, Default)]
pub struct Privileges {
    /// The account, as in CURRENT_USER().
    pub account: String,
    global: BTreeSet<String>,
    schema: BTreeSet<String>,
    /// Those on all databases that are revoked on the current one. Source: MySQL manual, "Privilege Restriction Using Partial Revokes".
    revoked: BTreeSet<String>,
    /// Those that MariaDB grants to the account itself or to PUBLIC, and not to a role. MySQL shows them together.
    without_roles: BTreeSet<String>,
    grantable: bool,
    /// Whether it has SELECT on the table in which MariaDB stores routines.
    reads_routines: bool,
    /// The database as the remedy of a missing privilege names it.
    pattern: String,
}

impl Privileges {
    /// Reads the privileges of the account of a connection.
    ///
    /// # Errors
    /// The connection fails.
    pub fn read(connection: &mut Conn) -> mysql::Result<Self> {
        Self::shown(connection, None)
    }

    /// Reads the privileges of an account, such as root@localhost, on all databases and on the current one.
    ///
    /// # Errors
    /// The connection fails, the account does not exist, or it is another one and this account has no SELECT on the database mysql.
    pub fn of_account(connection: &mut Conn, account: String) -> mysql::Result<Self> {
        Self::shown(connection, Some(account))
    }

    /// Without an account, those of the connection.
    fn shown(connection: &mut Conn, account: Option<String>) -> mysql::Result<Self> {
        let place: Option<(String, Option<String>, bool)> = connection
            .query_first("SELECT CURRENT_USER(), DATABASE(), /*!80016 @@GLOBAL.partial_revokes + */ 0")?;
        let (own, schema, literal) = place.unwrap_or_default();
        let of_account = account.as_deref().map(grantee);
        let of_account = of_account.map_or_else(String::new, |account| format!(" FOR {account}"));
        let lines: Vec<String> = connection.query(format!("SHOW GRANTS{of_account}"))?;
        let account = account.unwrap_or(own);
        Ok(Self::of(account, &schema.unwrap_or_default(), &lines, literal))
    }

    /// The privileges in the lines of SHOW GRANTS. `literal` says that the names of databases in them are no patterns, as with
    /// partial_revokes. Source: MySQL manual, "GRANT Statement".
    fn of(account: String, schema: &str, lines: &[String], literal: bool) -> Self {
        let mut escaped = schema.replace('`', "``");
        if !literal {
            escaped = escaped
                .replace('\\', "\\\\")
                .replace('_', "\\_")
                .replace('%', "\\%");
        }
        let mut privileges = Self {
            account,
            pattern: format!("`{escaped}`"),
            ..Self::default()
        };
        let (user, host) = parts(&privileges.account);
        let itself = [
            format!(" TO {}@{}", quoted(user), quoted(host)),
            " TO PUBLIC".into(),
        ];
        let list = |names: &str| {
            let names = names.split(", ").map(|name| name.trim().to_uppercase());
            names.collect::<Vec<_>>()
        };
        for line in lines {
            let revoked = line
                .strip_prefix("REVOKE ")
                .and_then(|line| line.split_once(" ON "));
            if let Some((names, rest)) = revoked
                && rest.starts_with(&format!("{}.*", quoted(schema)))
            {
                privileges.revoked.extend(list(names));
            }
            let Some((names, rest)) = line
                .strip_prefix("GRANT ")
                .and_then(|line| line.split_once(" ON "))
            else {
                continue;
            };
            let scope = rest.split(" TO ").next().unwrap_or_default();
            let into = match scope.strip_suffix(".*") {
                Some("*") => &mut privileges.global,
                Some(pattern)
                    if literal && pattern == quoted(schema) || !literal && matches(pattern, schema) =>
                {
                    // Another pattern for the same database would hide the privileges of this one.
                    privileges.pattern = pattern.to_owned();
                    &mut privileges.schema
                }
                _ => {
                    privileges.reads_routines |= ["`mysql`.*", "`mysql`.`proc`"].contains(&scope)
                        && list(names)
                            .iter()
                            .any(|name| ["SELECT", "ALL PRIVILEGES"].contains(&&name[..]));
                    continue;
                }
            };
            into.extend(list(names));
            if itself.iter().any(|grantee| rest.contains(grantee)) {
                privileges.without_roles.extend(list(names));
            }
            privileges.grantable |= line.contains(" WITH GRANT OPTION");
        }
        privileges
    }

    /// Whether the account has a privilege that can be granted on a database.
    pub fn has(&self, name: &str) -> bool {
        let names = [name, "ALL PRIVILEGES", "ALL"];
        let of = |set: &BTreeSet<String>| names.iter().any(|name| set.contains(*name));
        of(&self.schema) || of(&self.global) && !of(&self.revoked)
    }

    /// Whether an account of MariaDB has a privilege that can be granted on a database also without its roles.
    pub fn has_without_roles(&self, name: &str) -> bool {
        [name, "ALL PRIVILEGES", "ALL"]
            .iter()
            .any(|name| self.without_roles.contains(*name))
    }

    /// Whether the account has one of these privileges on all databases.
    pub fn has_global(&self, names: &[&str]) -> bool {
        let all = ["ALL PRIVILEGES", "ALL"];
        names.iter().chain(&all).any(|name| self.global.contains(*name))
    }

    /// Whether the account can grant its privileges on the database.
    pub fn can_grant(&self) -> bool {
        self.grantable
    }

    /// Whether the account sees the routines of the database.
    pub fn sees_routines(&self) -> bool {
        ["EXECUTE", "CREATE ROUTINE", "ALTER ROUTINE"]
            .iter()
            .any(|name| self.has(name))
            || self.has_global(&["SELECT", "SHOW_ROUTINE", "SHOW CREATE ROUTINE"])
            || self.reads_routines
    }

    /// Whether the account sees the tables and views of the database. It also sees those on which it has a privilege alone.
    pub fn sees_tables(&self) -> bool {
        let names = [
            "SELECT",
            "INSERT",
            "UPDATE",
            "DELETE",
            "CREATE",
            "DROP",
            "REFERENCES",
            "INDEX",
            "ALTER",
            "CREATE VIEW",
            "SHOW VIEW",
            "TRIGGER",
        ];
        names.iter().any(|name| self.has(name))
    }

    /// The GRANT statement for privileges on the database.
    pub fn on_schema(&self, names: &str) -> String {
        format!("GRANT {names} ON {}.* TO {};", self.pattern, self.grantee())
    }

    /// The GRANT statement for privileges on all databases or on one table.
    pub fn on(&self, names: &str, place: &str) -> String {
        format!("GRANT {names} ON {place} TO {};", self.grantee())
    }

    /// The account, quoted for a statement.
    pub fn grantee(&self) -> String {
        grantee(&self.account)
    }
}

fn grantee(account: &str) -> String {
    let (user, host) = parts(account);
    format!("{}@{}", SqlStr(user), SqlStr(host))
}

/// The user and the host.
fn parts(account: &str) -> (&str, &str) {
    account.rsplit_once('@').unwrap_or((account, "%"))
}

/// Whether the database in a GRANT is this one. `_` and `%` are wildcards unless a backslash is before them.
fn matches(pattern: &str, schema: &str) -> bool {
    fn from(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['\\', c, rest @ ..] => text.first() == Some(c) && from(rest, &text[1..]),
            ['%', rest @ ..] => (0..=text.len()).any(|skipped| from(rest, &text[skipped..])),
            ['_', rest @ ..] => !text.is_empty() && from(rest, &text[1..]),
            [c, rest @ ..] => text.first() == Some(c) && from(rest, &text[1..]),
        }
    }
    let pattern: Vec<char> = pattern.trim_matches('`').replace("``", "`").chars().collect();
    from(&pattern, &schema.chars().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::{Privileges, matches};

    #[test]
    fn a_partial_revoke_takes_a_privilege_from_one_database() {
        let lines = [
            "GRANT SELECT, INSERT, CREATE ROUTINE ON *.* TO `a`@`b`".to_owned(),
            "REVOKE INSERT, CREATE ROUTINE ON `app`.* FROM `a`@`b`".to_owned(),
            "GRANT INSERT ON `other`.* TO `a`@`b`".to_owned(),
        ];
        let has = |schema: &str, name: &str| Privileges::of("a@b".into(), schema, &lines, true).has(name);
        assert!(has("app", "SELECT") && !has("app", "INSERT") && !has("app", "CREATE ROUTINE"));
        assert!(has("other", "INSERT") && has("more", "CREATE ROUTINE"));
    }

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
