//! The counts in the table of a package.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::package::{Ident, Package, Subject};

/// After the name of the table, in a query: a view has no index, so the server rejects one that its owner has put in the place of the table since
/// the comparison (1176), instead of executing the functions that it calls.
pub const OF_TABLE: &str = "FORCE INDEX (PRIMARY)";

/// The sum of the counts in a table of the package, of a column that of their absolute values.
///
/// # Errors
/// The connection fails, or the account cannot read the table.
pub fn sum(connection: &mut Conn, package: &Package, table: &Ident) -> mysql::Result<String> {
    let count = match package.options.subject {
        Subject::Named { .. } | Subject::Bounded => "counter",
        Subject::Records { .. } => "`count`",
        Subject::Column { .. } => "ABS(`count`)",
    };
    let sum =
        connection.query_first(format!("SELECT CAST(COALESCE(SUM({count}), 0) AS CHAR) FROM {table} {OF_TABLE}"))?;
    Ok(sum.unwrap_or_default())
}

/// The number of the records that have counts in the slots, and the sum of these.
///
/// # Errors
/// The connection fails, or the account cannot read the table of the package.
pub fn remaining(connection: &mut Conn, package: &Package) -> mysql::Result<(u64, String)> {
    let key: Vec<_> = package.options.key().iter().map(|column| column.name.to_string()).collect();
    let (table, key) = (&package.options.table, key.join(", "));
    let remaining = connection.query_first(format!(
        "SELECT COUNT(*), CAST(COALESCE(SUM(counts), 0) AS CHAR)
           FROM (SELECT SUM(`count`) AS counts FROM {table} {OF_TABLE} GROUP BY {key} HAVING SUM(`count`) <> 0) AS remaining"
    ))?;
    Ok(remaining.unwrap_or_default())
}
