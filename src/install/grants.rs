//! The privileges on a routine that MySQL removes when it drops the routine.
//!
//! What the server has stored is data: names are quoted, and privileges are known ones.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::InstallError;
use crate::package::SqlStr;
use crate::render::Object;

/// The privileges that an account can have on a routine, as in `mysql.procs_priv`, and in a statement. `Grant` is the option.
/// Source: MySQL manual, "Grant Tables".
const PRIVILEGES: [(&str, &str); 2] = [("Execute", "EXECUTE"), ("Alter Routine", "ALTER ROUTINE")];
const OPTION: &str = "Grant";

/// The statements that grant what accounts have on a routine of the current database.
///
/// # Errors
/// The connection fails, or the account cannot read `mysql.procs_priv`.
pub(super) fn read(connection: &mut Conn, routine: &Object) -> Result<Vec<String>, InstallError> {
    let query = "SELECT User, Host, Proc_priv FROM mysql.procs_priv WHERE Db = DATABASE() AND Routine_type = ? AND Routine_name = ?";
    let rows: mysql::Result<Vec<(String, String, String)>> =
        connection.exec(query, (routine.kind, routine.name.name()));
    if let Err(mysql::Error::MySqlError(error)) = &rows
        && error.code == 1142
    {
        return Err(InstallError::HiddenGrants(routine.to_string(), error.message.clone()));
    }
    let known = |name: &str| name.is_empty() || name == OPTION || PRIVILEGES.iter().any(|(stored, _)| *stored == name);
    let grant = |(user, host, privileges): (String, String, String)| {
        let all: Vec<_> = privileges.split(',').collect();
        let names = PRIVILEGES.iter().filter(|(stored, _)| all.contains(stored)).map(|(_, name)| *name);
        let names: Vec<_> = names.collect();
        all.iter().all(|name| known(name)).then(|| {
            format!(
                "GRANT {} ON {} {} TO {}@{}{}",
                if names.is_empty() { "USAGE".to_owned() } else { names.join(", ") },
                routine.kind,
                routine.name,
                SqlStr(&user),
                SqlStr(&host),
                if all.contains(&OPTION) { " WITH GRANT OPTION" } else { "" }
            )
        })
    };
    Ok(rows?.into_iter().filter_map(grant).collect())
}
