//! The commands and statements that a hint names, for the current database.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::package::{Family, Ident, Options, shell_word};
use crate::server::{self, Version, account};

/// The current database.
fn database(connection: &mut Conn) -> mysql::Result<String> {
    Ok(connection.query_first::<Option<String>, _>("SELECT DATABASE()")?.flatten().unwrap_or_default())
}

/// The command that installs a package with these options in the current database.
pub fn command(connection: &mut Conn, options: &Options) -> mysql::Result<String> {
    Ok(format!("slotted install {} --database {}", options.arguments(), shell_word(&database(connection)?)))
}

/// The statement that grants an account privileges on the current database.
pub fn grant(connection: &mut Conn, privileges: &str, account: &str) -> mysql::Result<String> {
    let database = database(connection)?;
    server::grant(connection, privileges, &database, account)
}

/// Whether this account sees each view of the current database: the servers list those on which an account has a privilege.
pub fn sees(connection: &mut Conn) -> mysql::Result<bool> {
    let query = "SELECT COUNT(*) > 0
                   FROM (SELECT GRANTEE, PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES
                          UNION ALL
                         SELECT GRANTEE, PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES WHERE DATABASE() LIKE TABLE_SCHEMA) AS privileges
                  WHERE GRANTEE = ? AND PRIVILEGE_TYPE = 'SELECT'";
    let account = account(connection)?;
    Ok(connection.exec_first(query, (account,))? == Some(true))
}

/// How this account gets what it needs to see the objects of the packages in the current database, also what the definer of an event may do.
pub fn sight(connection: &mut Conn, event: bool) -> mysql::Result<String> {
    let account = account(connection)?;
    let is_mysql = Version::of(connection)?.family == Family::Mysql;
    let mut grants = vec![if is_mysql { "SHOW_ROUTINE ON *.*" } else { "SELECT ON mysql.proc" }];
    if event {
        // Not the passwords.
        grants.extend([
            "SELECT (User, Host, Event_priv, Execute_priv) ON mysql.user",
            "SELECT (User, Host, Db, Event_priv, Execute_priv) ON mysql.db",
            "SELECT (User, Host, Db, Routine_name, Proc_priv) ON mysql.procs_priv",
        ]);
        grants.extend(is_mysql.then_some("SELECT ON mysql.default_roles"));
    }
    let grants: String = grants.iter().map(|what| format!("; GRANT {what} TO {account}")).collect();
    Ok(format!("run as an administrator: {}{grants}", grant(connection, "SELECT, SHOW VIEW", &account)?))
}

/// What to do about a table that was renamed or dropped.
pub fn lost(connection: &mut Conn, table: &str) -> mysql::Result<String> {
    let database = database(connection)?;
    let [word, database] = [table, &database].map(shell_word);
    Ok(format!(
        "give the table its name again: RENAME TABLE ... TO {}; or restore it from a backup; for an empty table, run slotted uninstall {word} \
         --database {database} first",
        Ident::stored(table).plain()
    ))
}
