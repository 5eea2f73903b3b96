//! The counts in the table of a package.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::package::{Ident, KeyType, Package, SqlStr, Subject};

/// After the name of the table, in a query: a view has no index, so the server rejects one that its owner has put in the place of the table since
/// the comparison (1176), instead of executing the functions that it calls.
pub const OF_TABLE: &str = "FORCE INDEX (PRIMARY)";

/// The number of characters of a name that is shown.
const NAME_MAX: usize = 255;

/// A counter of a package.
pub struct Counter {
    /// Its name, or its key.
    pub name: String,
    /// The sum of its slots.
    pub total: i128,
    /// The number of its slots.
    pub slots: u64,
}

/// The counters of a package, of a column the records with pending counts.
pub struct Counts {
    /// Those with the highest totals.
    pub most: Vec<Counter>,
    /// The number of all.
    pub number: usize,
    /// The sum of all.
    pub sum: String,
}

/// Reads the counts of a package, with at most `limit` counters.
///
/// # Errors
/// The connection fails, or the account cannot read the table of the package.
pub fn counters(connection: &mut Conn, package: &Package, limit: usize) -> mysql::Result<Counts> {
    let count = if package.options.is_named() { "counter" } else { "`count`" };
    let key: Vec<_> = package.options.key().iter().map(|column| column.name.to_string()).collect();
    let shown = package.options.key().iter().map(|column| match column.kind {
        KeyType::Binary(..) => format!("CONCAT('0x', HEX({}))", column.name),
        _ => column.name.to_string(),
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    // Bytes, because a client with the character set binary can write some that are no characters.
    let having = if package.options.column().is_some() { "HAVING SUM(`count`) <> 0" } else { "" };
    type Fields = (Option<Vec<u8>>, String, u64, usize, String);
    let rows: Vec<Fields> = connection.query(format!(
        "SELECT LEFT(CAST(CONCAT_WS({}, {shown}) AS CHAR), {NAME_MAX}),
                CAST(COALESCE(SUM({count}), 0) AS CHAR),
                COUNT(*),
                COUNT(*) OVER (),
                CAST(SUM(SUM({count})) OVER () AS CHAR)
           FROM {} {OF_TABLE}
          GROUP BY {} {having}
          ORDER BY SUM({count}) DESC
          LIMIT {limit}",
        SqlStr(", "),
        package.options.table,
        key.join(", ")
    ))?;
    let (number, sum) = rows.first().map_or((0, "0".to_owned()), |row| (row.3, row.4.clone()));
    let counter = |(name, total, slots, ..): Fields| Counter {
        name: String::from_utf8_lossy(&name.unwrap_or_default()).into_owned(),
        total: total.parse().unwrap_or_default(),
        slots,
    };
    Ok(Counts { most: rows.into_iter().map(counter).collect(), number, sum })
}

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
