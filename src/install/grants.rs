//! The privileges on a routine that MySQL removes when it drops the routine.
//!
//! What the server has stored is data: names are quoted, and privileges are known ones.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::InstallError;
use crate::package::{SqlStr, quoted};

/// The privileges that an account can have on a routine, as in `mysql.procs_priv`, and in a statement. `Grant` is the option.
/// Source: MySQL manual, "Grant Tables".
const PRIVILEGES: [(&str, &str); 2] = [("Execute", "EXECUTE"), ("Alter Routine", "ALTER ROUTINE")];
const OPTION: &str = "Grant";

/// What an account has on a routine.
pub(super) struct Grant {
    kind: String,
    routine: String,
    user: String,
    host: String,
    /// As in `mysql.procs_priv`, separated by commas.
    privileges: String,
}

impl Grant {
    pub(super) fn statement(&self) -> String {
        let has = |name: &str| self.privileges.split(',').any(|one| one == name);
        let names = PRIVILEGES.iter().filter(|(stored, _)| has(stored)).map(|(_, name)| *name);
        let names: Vec<_> = names.collect();
        format!(
            "GRANT {} ON {} {} TO {}@{}{}",
            if names.is_empty() { "USAGE".to_owned() } else { names.join(", ") },
            self.kind,
            quoted(&self.routine),
            SqlStr(&self.user),
            SqlStr(&self.host),
            if has(OPTION) { " WITH GRANT OPTION" } else { "" }
        )
    }
}

/// What accounts have on a routine of the current database.
///
/// # Errors
/// The connection fails, or the account cannot read `mysql.procs_priv`.
pub(super) fn read(connection: &mut Conn, kind: &str, routine: &str) -> Result<Vec<Grant>, InstallError> {
    let kind = kind.to_uppercase();
    let query = "SELECT User, Host, Proc_priv FROM mysql.procs_priv WHERE Db = DATABASE() AND Routine_type = ? AND Routine_name = ?";
    let rows: mysql::Result<Vec<(String, String, String)>> = connection.exec(query, (&kind, routine));
    match rows {
        Err(mysql::Error::MySqlError(error)) if error.code == 1142 => {
            Err(InstallError::HiddenGrants(format!("{} {routine}", kind.to_lowercase()), error.message))
        }
        rows => {
            let known = |name: &str| name == OPTION || PRIVILEGES.iter().any(|(stored, _)| *stored == name);
            let rows = rows?.into_iter();
            let known =
                rows.filter(|(.., privileges)| privileges.split(',').all(|name| name.is_empty() || known(name)));
            let grant = |(user, host, privileges)| Grant {
                kind: kind.clone(),
                routine: routine.to_owned(),
                user,
                host,
                privileges,
            };
            Ok(known.map(grant).collect())
        }
    }
}
