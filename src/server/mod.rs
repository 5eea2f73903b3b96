//! Servers: the family and version of a server, the server programs of this machine, and private servers.

mod find;
mod private;
mod version;

use mysql::prelude::Queryable;

use crate::package::SqlStr;

pub use find::{Program, cache_folder, find, provided};
pub use private::{PrivateServer, StartError};
pub use version::Version;

/// The account of a connection, quoted for a statement.
pub fn account(connection: &mut mysql::Conn) -> mysql::Result<String> {
    let account: Option<String> = connection.query_first("SELECT CURRENT_USER()")?;
    let account = account.unwrap_or_default();
    let (user, host) = account.rsplit_once('@').unwrap_or((&account, "%"));
    Ok(format!("{}@{}", SqlStr(user), SqlStr(host)))
}
