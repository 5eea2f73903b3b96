//! What a server must have, although an installation would succeed without it, or has succeeded.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::error::Problem;
use super::hint::{command, grant};
use crate::package::{Family, Options, Package};
use crate::server::Version;

/// A version whose server accepts the scripts, and on which the routines would fail or count wrong.
pub fn version(connection: &mut Conn) -> mysql::Result<Option<Problem>> {
    let version = Version::of(connection)?;
    let number = (version.major, version.minor, version.patch);
    let upgrade =
        |to: &str| Some(Problem::new(format!("{version} is too old"), format!("upgrade the server to {to} or later")));
    Ok(match version.family {
        Family::Mysql if number < (8, 0, 16) => upgrade("MySQL 8.0.16"),
        Family::Mariadb if number < (10, 11, 8) || ((11, 0, 0)..(11, 4, 2)).contains(&number) => {
            upgrade("MariaDB 10.11.8 or 11.4.2")
        }
        _ => None,
    })
}

/// A definer that does not exist: each call would fail (1449). An account that cannot see others does not learn it.
pub fn definer(connection: &mut Conn, package: &Package) -> mysql::Result<Option<Problem>> {
    let Some(definer) = &package.options.definer else { return Ok(None) };
    // MariaDB answers with columns before the error.
    let grants = connection.query::<String, _>(format!("SHOW GRANTS FOR {definer}"));
    // "There is no such grant". Source: MySQL manual, "Server Error Message Reference".
    if !matches!(&grants, Err(mysql::Error::MySqlError(error)) if error.code == 1141) {
        return Ok(None);
    }
    let event = package.options.column().map_or("", |_| ", EVENT");
    let privileges = format!("SELECT, INSERT, UPDATE, DELETE, EXECUTE{event}");
    let grant = grant(connection, &privileges, &definer.to_string())?;
    let remedy = format!("run as an administrator: CREATE USER {definer} ACCOUNT LOCK; {grant}");
    Ok(Some(Problem { what: format!("the definer {} does not exist", definer.plain()), remedy }))
}

/// A package without slots of nodes on a node of a cluster. Its scripts reject such a server, which can have become one later.
pub fn cluster(connection: &mut Conn, package: &Package) -> mysql::Result<Option<Problem>> {
    let query = if package.options.mariadb() {
        "SELECT VARIABLE_VALUE > 1 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_cluster_size'"
    } else {
        "SELECT VARIABLE_VALUE = 'OFF' FROM performance_schema.global_variables WHERE VARIABLE_NAME = 'group_replication_single_primary_mode'"
    };
    let writers: Option<bool> = connection.query_first(query)?;
    if writers != Some(true) || package.options.cluster {
        return Ok(None);
    }
    let command = command(connection, &Options { cluster: true, ..package.options.clone() })?;
    Ok(Some(Problem {
        what: "all nodes of this cluster accept writes: calls on different nodes conflict (1213), because they use the same slots".to_owned(),
        remedy: format!("as the owner of the database, run {command}"),
    }))
}
