//! The privileges on a routine that MySQL removes when it drops the routine.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::error::InstallError;
use crate::package::SqlStr;
use crate::render::Object;

/// The statements that grant what accounts have on a routine of the current database.
///
/// # Errors
/// The connection fails, or the account cannot read `mysql.procs_priv`.
pub(super) fn read(connection: &mut Conn, routine: &Object) -> Result<Vec<String>, InstallError> {
    // Source: MySQL manual, "Grant Tables".
    let query = "SELECT User, Host,
                        CONCAT_WS(', ', IF(FIND_IN_SET('Execute', Proc_priv), 'EXECUTE', NULL),
                          IF(FIND_IN_SET('Alter Routine', Proc_priv), 'ALTER ROUTINE', NULL)),
                        FIND_IN_SET('Grant', Proc_priv) > 0
                   FROM mysql.procs_priv
                  WHERE Db = DATABASE() AND Routine_type = ? AND Routine_name = ?";
    type Privileges = (String, String, String, bool);
    let rows: mysql::Result<Vec<Privileges>> = connection.exec(query, (routine.kind, routine.name.name()));
    if let Err(mysql::Error::MySqlError(error)) = &rows
        && error.code == 1142
    {
        return Err(InstallError::HiddenGrants(routine.to_string(), error.message.clone()));
    }
    let grant = |(user, host, privileges, option): Privileges| {
        let privileges = if privileges.is_empty() { "USAGE" } else { &privileges };
        let option = if option { " WITH GRANT OPTION" } else { "" };
        let (user, host) = (SqlStr(user), SqlStr(host));
        format!("GRANT {privileges} ON {} {} TO {user}@{host}{option}", routine.kind, routine.name)
    };
    Ok(rows?.into_iter().map(grant).collect())
}
