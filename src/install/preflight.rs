//! What a server must have, although an installation would succeed without it, or has succeeded.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::column::Problem;
use crate::package::{Family, Package};
use crate::server::Version;

/// A version whose server accepts the scripts, and on which the routines would fail or count wrong.
///
/// # Errors
/// The connection fails.
pub fn version(connection: &mut Conn) -> mysql::Result<Option<Problem>> {
    let version = Version::of(connection)?;
    let number = (version.major, version.minor, version.patch);
    let upgrade = |to: &str| {
        Some(Problem { what: format!("{version} is too old"), remedy: format!("upgrade the server to {to} or later") })
    };
    Ok(match version.family {
        Family::Mysql if number < (8, 0, 16) => upgrade("MySQL 8.0.16"),
        Family::Mariadb if number < (10, 11, 8) || ((11, 0, 0)..(11, 4, 2)).contains(&number) => {
            upgrade("MariaDB 10.11.8 or 11.4.2")
        }
        _ => None,
    })
}

/// A package without slots of nodes on a node of a cluster. Its scripts reject such a server, which can have become one later.
///
/// # Errors
/// The connection fails.
pub fn cluster(connection: &mut Conn, package: &Package) -> mysql::Result<Option<Problem>> {
    let query = match Version::of(connection)?.family {
        Family::Mysql => {
            "SELECT VARIABLE_VALUE = 'OFF' FROM performance_schema.global_variables WHERE VARIABLE_NAME = 'group_replication_single_primary_mode'"
        }
        Family::Mariadb => {
            "SELECT VARIABLE_VALUE > 1 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_cluster_size'"
        }
    };
    let writers: Option<bool> = connection.query_first(query)?;
    Ok((writers == Some(true) && !package.options.cluster).then(|| Problem {
        what: "all nodes of this cluster accept writes: calls on different nodes conflict (1213), because they use the same slots".to_owned(),
        remedy: format!("run slotted install {} --cluster", package.options.arguments()),
    }))
}
