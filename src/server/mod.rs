//! Servers: the family and version of a server, the server programs of this machine, and private servers.

mod find;
mod private;
mod version;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::package::{Ident, SqlStr};

pub use find::{Program, cache_folder, find, provided};
pub use private::{PrivateServer, StartError};
pub use version::Version;

/// The account of a connection, quoted for a statement.
pub fn account(connection: &mut Conn) -> mysql::Result<String> {
    let account: Option<String> = connection.query_first("SELECT CURRENT_USER()")?;
    let account = account.unwrap_or_default();
    let (user, host) = account.rsplit_once('@').unwrap_or((&account, "%"));
    Ok(format!("{}@{}", SqlStr(user), SqlStr(host)))
}

/// The statement that grants an account privileges on a database, without the wildcards that `%` and `_` would be. If the account has a row
/// with these wildcards, it grants the privileges of this row, too, because the server would read only the new one.
/// Source: MySQL manual, "Access Control, Stage 2: Request Verification".
pub fn grant(connection: &mut Conn, privileges: &str, database: &str, account: &str) -> mysql::Result<String> {
    let query = "SELECT PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES
                  WHERE BINARY GRANTEE = BINARY ? AND BINARY TABLE_SCHEMA = BINARY ? AND NOT FIND_IN_SET(PRIVILEGE_TYPE, ?) AND PRIVILEGE_TYPE <> 'USAGE'";
    let known = (account.replace('`', "'"), database, privileges.replace(", ", ","));
    let more: Vec<String> = connection.exec(query, known)?;
    let privileges = [&[privileges.to_owned()], &more[..]].concat().join(", ");
    let place = database.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    Ok(format!("GRANT {privileges} ON {}.* TO {account}", Ident::stored(place)))
}
