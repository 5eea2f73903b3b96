//! What a server must have, although an installation would succeed without it.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::column::Problem;
use crate::package::Package;
use crate::server::{Flavour, Version};

/// A version whose server accepts the scripts, and on which the routines would fail or count wrong.
///
/// # Errors
/// The connection fails.
pub fn version(connection: &mut Conn, package: &Package) -> mysql::Result<Option<Problem>> {
    let version = Version::of(connection)?;
    let number = (version.major, version.minor, version.patch);
    let upgrade = |what: String, to: &str| {
        Some(Problem {
            what,
            remedy: format!("upgrade the server to {to} or later"),
        })
    };
    Ok(match version.flavour {
        Flavour::MariaDb if number < (10, 6, 0) => upgrade(format!("{version} is too old"), "MariaDB 10.6"),
        Flavour::MySql if number < (8, 0, 0) => upgrade(format!("{version} is too old"), "MySQL 8.0"),
        Flavour::MySql if package.options.bounded && number < (8, 0, 16) => upgrade(
            format!("{version} does not enforce CHECK, which keeps bounded counters from falling below 0"),
            "MySQL 8.0.16",
        ),
        // Early releases of these series execute the comments for MariaDB 10.11.8 and later, and do not have the variable in them.
        Flavour::MariaDb if ((11, 0, 0)..(11, 4, 2)).contains(&number) => {
            let variable: Option<(String, String)> =
                connection.query_first("SHOW GLOBAL VARIABLES LIKE 'innodb_snapshot_isolation'")?;
            match variable {
                Some(_) => None,
                None => upgrade(
                    format!("{version} has no innodb_snapshot_isolation, which the routines set"),
                    "MariaDB 11.4.2",
                ),
            }
        }
        _ => None,
    })
}

/// Several nodes of a cluster that accept writes and have the same auto_increment_increment of 1 select the same slots: half of the calls
/// would conflict. None if the account cannot see the members.
///
/// # Errors
/// The connection fails.
pub fn shared_slots(connection: &mut Conn) -> mysql::Result<Option<Problem>> {
    let writers = match Version::of(connection)?.flavour {
        Flavour::MySql => {
            "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_ROLE = 'PRIMARY'"
        }
        Flavour::MariaDb => {
            "SELECT COALESCE(MAX(VARIABLE_VALUE), 0) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_CLUSTER_SIZE'"
        }
    };
    let writers: Option<u64> = connection.query_first(writers).ok().flatten();
    let increment: Option<u64> = connection.query_first("SELECT @@GLOBAL.auto_increment_increment")?;
    Ok((writers > Some(1) && increment == Some(1)).then(|| Problem {
        what: format!(
            "{} nodes accept writes, and auto_increment_increment is 1: connections of different nodes change the same slots and conflict",
            writers.unwrap_or_default()
        ),
        remedy: "give each node an auto_increment_offset of its own, and all of them an auto_increment_increment of at least the number of nodes".into(),
    }))
}
