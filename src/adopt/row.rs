//! Moves the count of one row.

use mysql::prelude::Queryable;
use mysql::{Conn, Value};

use super::column::text;
use super::{AdoptError, Counter, Doing, Result, complete};
use crate::package::{Package, Source, SqlStr};
use crate::render::{Adopt, Target};

/// What a move has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Whether it has created the counter.
    pub created: bool,
    /// The count that it has moved.
    pub count: i64,
}

/// Moves the count of the row that a condition finds into a named counter. A counter of another row is rejected unless
/// `into_existing`.
///
/// # Errors
/// The condition does not find exactly one row, the count is not a BIGINT, the row has no limit, the counter was made for another row, or the server
/// rejects a statement. Nothing is changed.
pub fn move_row(
    connection: &mut Conn,
    package: &Package,
    source: &Source,
    condition: &str,
    (name, slots, into_existing): (&str, Option<u32>, bool),
) -> Result<Moved> {
    let target = Target::Named {
        name: None,
        design: None,
    };
    let statements = Adopt::new(package, source, &target);
    let equal = format!("{} AND {}", statements.compared(">="), statements.compared("<="));
    complete(connection, |transaction| {
        // A prepared statement returns numbers as numbers.
        let rows: Vec<mysql::Row> = transaction
            .exec(statements.row(condition), ())
            .doing("read the row")?;
        let rows: Vec<Vec<Value>> = rows.into_iter().map(mysql::Row::unwrap).collect();
        let [row] = &rows[..] else {
            let number = if rows.is_empty() {
                "no row"
            } else {
                "more than one row"
            };
            return Err(AdoptError::rejected(
                format!(
                    "the condition matches {number} of {}: {condition}",
                    source.place()
                ),
                "give a --where that matches exactly one row, such as its primary key",
            ));
        };
        let count = left(&row[0], &row[1], source)?;
        let identity = match &row[2] {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        };
        let identity = text(identity, source)?;
        let counter = Counter {
            name,
            identity,
            slots,
            into_existing,
        };
        // A condition can find the row by another key than that of the first move. Two counters would share its total.
        let query = format!(
            "SELECT counter_name FROM {} WHERE CAST(description AS BINARY) = CAST(? AS BINARY) AND counter_name <> ? LIMIT 1",
            package.totals
        );
        let other: Option<Vec<u8>> = transaction
            .exec_first(query, (identity, name))
            .doing("query the counters")?;
        if let Some(other) = other.filter(|_| !into_existing) {
            let other = String::from_utf8_lossy(&other).into_owned();
            return Err(AdoptError::rejected(
                format!("the row has the counter {}", SqlStr(&other)),
                "give this counter, or add --into-existing to move what the row has now into another one",
            ));
        }
        let created = counter.add(transaction, package, count)?;
        if count != 0 || row[0] == Value::NULL {
            if source.key.is_empty() {
                transaction.query_drop(statements.zero(condition))
            } else {
                let key = source.bound(&row[3..]);
                transaction.exec_drop(statements.zero(&equal), [key.clone(), key].concat())
            }
            .doing("set the row to 0")?;
            // A row that meets the condition only now would lose its count.
            if transaction.affected_rows() != 1 {
                return Err(AdoptError::Changed);
            }
        }
        Ok(Moved { created, count })
    })
}

/// What is moved of a row: its count, or what is left to its limit.
fn left(count: &Value, limit: &Value, source: &Source) -> Result<i64> {
    let count = count_of(count, source)?;
    let Some(name) = &source.limit else {
        return Ok(count);
    };
    if *limit == Value::NULL {
        return Err(AdoptError::rejected(
            format!("the limit {name} of the row is NULL"),
            "set the limit of the row, or leave out --limit if it has none",
        ));
    }
    count_of(limit, source)?.checked_sub(count).ok_or_else(|| {
        AdoptError::rejected(
            format!("{name} minus {} exceeds the range of BIGINT", source.plain()),
            "correct the row",
        )
    })
}

fn count_of(value: &Value, source: &Source) -> Result<i64> {
    let text = match value {
        Value::NULL => return Ok(0),
        Value::Int(count) => return Ok(*count),
        Value::UInt(count) => count.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.as_sql(true),
    };
    text.parse().map_err(|_| {
        AdoptError::rejected(
            format!(
                "the value of {} is not an integer in the range of BIGINT: {text}",
                source.plain()
            ),
            "correct the row, or give another column",
        )
    })
}
