//! The privileges on routines while MySQL drops and creates them.
//!
//! An interrupted installation leaves them in a table, and the next one grants them. The owner of the schema can write this table:
//! it has data, never a statement, and a row that is not a privilege on a routine of the package is an error.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::InstallError;
use crate::package::{Ident, IdentError, Package, SqlStr};
use crate::render::Object;

/// The columns of the table.
const COLUMNS: &str = "routine_type,routine_name,user,host,privileges";

/// The privileges that an account can have on a routine, as in `mysql.procs_priv`, and in a statement. `Grant` is the option.
/// Source: MySQL manual, "Grant Tables".
const PRIVILEGES: [(&str, &str); 2] = [("Execute", "EXECUTE"), ("Alter Routine", "ALTER ROUTINE")];
const OPTION: &str = "Grant";

/// What an account has on a routine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    /// PROCEDURE or FUNCTION.
    kind: &'static str,
    routine: Ident,
    user: String,
    host: String,
    /// As in `mysql.procs_priv`, separated by commas. Each is one of [`PRIVILEGES`] or the option.
    privileges: String,
}

impl Grant {
    /// None if a privilege is none that a routine can have.
    fn of(object: &Object, user: String, host: String, privileges: String) -> Option<Self> {
        let known = |name: &str| name == OPTION || PRIVILEGES.iter().any(|(stored, _)| *stored == name);
        privileges
            .split(',')
            .filter(|name| !name.is_empty())
            .all(known)
            .then(|| Self {
                kind: object.kind.sql(),
                routine: object.name.clone(),
                user,
                host,
                privileges,
            })
    }

    /// Whether it is on this routine.
    pub(super) fn is_on(&self, object: &Object) -> bool {
        object.kind.sql() == self.kind && object.name == self.routine
    }

    pub(super) fn statement(&self) -> String {
        let has = |name: &str| self.privileges.split(',').any(|one| one == name);
        let names: Vec<_> = PRIVILEGES
            .iter()
            .filter(|(stored, _)| has(stored))
            .map(|(_, name)| *name)
            .collect();
        let names = if names.is_empty() {
            "USAGE".to_owned()
        } else {
            names.join(", ")
        };
        format!(
            "GRANT {names} ON {} {} TO {}@{}{}",
            self.kind,
            self.routine,
            SqlStr(&self.user),
            SqlStr(&self.host),
            if has(OPTION) { " WITH GRANT OPTION" } else { "" }
        )
    }

    fn row(&self) -> String {
        let values = [
            self.kind,
            self.routine.name(),
            &self.user,
            &self.host,
            &self.privileges,
        ];
        let values: Vec<_> = values.iter().map(|value| SqlStr(value).to_string()).collect();
        format!("({})", values.join(", "))
    }
}

/// What accounts have on these routines. Empty if this account cannot read it; the preflight says so.
pub(super) fn granted(connection: &mut Conn, routines: &[&Object]) -> Result<Vec<Grant>, InstallError> {
    type Row = (String, String, String, String, String);
    let rows: mysql::Result<Vec<Row>> = connection
        .query("SELECT Routine_type, Routine_name, User, Host, Proc_priv FROM mysql.procs_priv WHERE Db = DATABASE()");
    let rows = match rows {
        Err(mysql::Error::MySqlError(error)) if error.code == 1142 => Vec::new(),
        other => other?,
    };
    let grant = |(kind, name, user, host, privileges): Row| {
        // The names of routines are not case-sensitive.
        let object = routines
            .iter()
            .find(|one| one.kind.sql() == kind && one.name.name().to_lowercase() == name.to_lowercase())?;
        Grant::of(object, user, host, privileges)
    };
    Ok(rows.into_iter().filter_map(grant).collect())
}

/// The table.
pub(super) struct Kept(Ident);

impl Kept {
    pub(super) fn of(package: &Package) -> Result<Self, IdentError> {
        Ok(Self(package.options.prefix.join("upgrade")?))
    }

    pub(super) fn name(&self) -> &str {
        self.0.name()
    }

    /// What an interrupted installation has left. None if it has left no table.
    pub(super) fn read(
        &self,
        connection: &mut Conn,
        objects: &[Object],
    ) -> Result<Option<Vec<Grant>>, InstallError> {
        let foreign = |difference: &str| InstallError::Foreign {
            table: self.name().to_owned(),
            difference: difference.to_owned(),
        };
        // A view can call functions when it is read, so its type is the first question.
        let found: Option<(String, Option<String>)> = connection.exec_first(
            "SELECT t.TABLE_TYPE, (SELECT GROUP_CONCAT(c.COLUMN_NAME ORDER BY c.ORDINAL_POSITION)
                                     FROM information_schema.COLUMNS AS c
                                    WHERE c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME AND c.EXTRA NOT LIKE '%GENERATED%')
               FROM information_schema.TABLES AS t WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = ?",
            (self.name(),),
        )?;
        match found {
            None => return Ok(None),
            Some((kind, _)) if kind != "BASE TABLE" => return Err(foreign("it is no table")),
            Some((_, columns)) if columns.as_deref() != Some(COLUMNS) => {
                return Err(foreign("it has other columns"));
            }
            Some(_) => {}
        }
        // Bytes, because a table that is not ours can have any, and NULL.
        type Bytes = Option<Vec<u8>>;
        let rows: Vec<(Bytes, Bytes, Bytes, Bytes, Bytes)> =
            connection.query(format!("SELECT {COLUMNS} FROM {}", self.0))?;
        let text = |value: Bytes| String::from_utf8(value.unwrap_or_default()).unwrap_or_default();
        let grant = |(kind, name, user, host, privileges): (Bytes, Bytes, Bytes, Bytes, Bytes)| {
            let (kind, name) = (text(kind), text(name));
            let object = objects
                .iter()
                .find(|one| one.kind.is_routine() && one.kind.sql() == kind && one.name.name() == name)?;
            Grant::of(object, text(user), text(host), text(privileges))
        };
        let grants: Option<Vec<_>> = rows.into_iter().map(grant).collect();
        grants
            .map(Some)
            .ok_or_else(|| foreign("a row is no privilege on a routine of the package"))
    }

    pub(super) fn keep(&self, grants: &[Grant]) -> Vec<String> {
        let rows: Vec<_> = grants.iter().map(Grant::row).collect();
        let columns = COLUMNS
            .split(',')
            .map(|name| format!("{name} VARCHAR(255) NOT NULL"))
            .collect::<Vec<_>>();
        vec![
            format!(
                "CREATE TABLE IF NOT EXISTS {} ({}) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 \
                 COMMENT = 'Privileges on routines during an upgrade'",
                self.0,
                columns.join(", ")
            ),
            format!("INSERT INTO {} ({COLUMNS}) VALUES {}", self.0, rows.join(", ")),
        ]
    }

    pub(super) fn drop(&self) -> String {
        format!("DROP TABLE {}", self.0)
    }
}
