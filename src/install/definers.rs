//! The accounts that the routines of a package run as, and with whose privileges. Only the routines say it: the owner of a database can write any
//! account into the view of a package.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::error::Problem;
use super::hint::command;
use crate::package::{Definer, Options, Package, Security};

/// What the routines of a package have, each value once, that of most first.
fn of_routines(connection: &mut Conn, package: &Package, column: &str) -> mysql::Result<Vec<String>> {
    // To the collation of information_schema, Root and root are one account.
    connection.query(format!(
        "SELECT CAST({column} AS CHAR) COLLATE utf8mb4_bin AS value
           FROM information_schema.ROUTINES
          WHERE ROUTINE_SCHEMA = DATABASE() AND (ROUTINE_TYPE, ROUTINE_NAME) IN ({})
          GROUP BY value
          ORDER BY COUNT(*) DESC, value",
        package.names()
    ))
}

/// The definers of the routines of a package. None: one that no option can name, or that this account cannot see.
pub fn all(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<Option<Definer>>> {
    let found = of_routines(connection, package, "DEFINER")?;
    Ok(found.iter().map(|definer| Definer::stored(definer)).collect())
}

/// Whether the routines have another SQL SECURITY than the view says: all of them, or some that run as the definer.
pub fn have_other(connection: &mut Conn, package: &Package, security: Security) -> mysql::Result<bool> {
    let found = of_routines(connection, package, "SECURITY_TYPE")?;
    Ok(found.iter().any(|one| one != security.sql()) && (found.len() == 1 || security == Security::Invoker))
}

/// Whether this account is the definer of all routines. It calls no others: the owner of the database can replace one just before its call.
pub fn calls(connection: &mut Conn, package: &Package) -> mysql::Result<bool> {
    let own = connection.query_first::<String, _>("SELECT CURRENT_USER()")?.and_then(|own| Definer::stored(&own));
    Ok(own.is_some() && all(connection, package)? == [own])
}

/// Routines of several accounts, although the options name none: one of them could be dropped, or lack a privilege.
pub fn mixed(connection: &mut Conn, package: &Package) -> mysql::Result<Option<Problem>> {
    let definers: Vec<_> = all(connection, package)?.into_iter().flatten().collect();
    if package.options.definer.is_some() || definers.len() < 2 {
        return Ok(None);
    }
    let names: Vec<_> = definers.iter().map(Definer::plain).collect();
    let what = format!("the routines of {} have several definers: {}", package.own_name(), names.join(", "));
    let options = Options { definer: definers.into_iter().next(), ..package.options.clone() };
    Ok(Some(Problem { what, remedy: format!("as the owner of the database, run {}", command(connection, &options)?) }))
}
