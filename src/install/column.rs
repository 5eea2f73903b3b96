//! What the server says about the table of a column whose counts a package has.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::preflight::Problem;
use crate::package::{Collation, Ident, Key, KeyType, Package, TableColumn};
use crate::render;

/// The key of the table and the properties of its columns that a package depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// The primary key, or another unique index without NULL, with the types of its columns.
    pub key: Key,
    /// The collation of the text columns of the key.
    pub collation: Option<Collation>,
    /// The columns with ON UPDATE CURRENT_TIMESTAMP.
    pub on_update: Vec<Ident>,
    /// Whether a column of the key has a type that MySQL does not have.
    pub mariadb: bool,
}

/// The types of a table that is no view. MariaDB has the second one.
const STORED: [&str; 2] = ["BASE TABLE", "SYSTEM VERSIONED"];

/// Reads the table of a column in the current database.
///
/// # Errors
/// The connection fails. What does not fit a package is the inner error.
pub fn parent(connection: &mut Conn, column: &TableColumn) -> mysql::Result<Result<Parent, Problem>> {
    let problem = |what: String, remedy: &str| Problem {
        what,
        remedy: remedy.into(),
    };
    let query = "SELECT TABLE_TYPE, COALESCE(ENGINE, '') FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
    let table: Option<(String, String)> = connection.exec_first(query, (column.table.name(),))?;
    let name = column.table.plain();
    match &table {
        None => {
            let what = format!("the database has no table {name}, or this account cannot see it");
            return Ok(Err(problem(
                what,
                "give TABLE.COLUMN of a table in --database, as an account that can read it",
            )));
        }
        Some((kind, engine)) if !STORED.contains(&kind.as_str()) || engine.to_lowercase() != "innodb" => {
            let engine = if engine.is_empty() { "a view" } else { engine };
            let what = format!(
                "{name} is {engine}, not an InnoDB table: column and slots cannot change in one transaction"
            );
            return Ok(Err(problem(
                what,
                &format!(
                    "give the table that stores the column; ALTER TABLE {name} ENGINE = InnoDB changes a table"
                ),
            )));
        }
        Some(_) => {}
    }
    let database: Option<String> = connection.query_first("SELECT DATABASE()")?;
    let database = database.unwrap_or_default();
    let columns = columns(connection, &database, column.table.name())?;
    let found = columns
        .iter()
        .find(|one| one.name.name().to_lowercase() == column.column.name().to_lowercase());
    match found {
        None => {
            let what = format!("{name} has no column {}", column.column.plain());
            return Ok(Err(problem(what, "give a column of the table")));
        }
        Some(found) if !found.is_integer() => {
            let what = format!("{column} is {}: counts are integers", found.definition);
            return Ok(Err(problem(
                what,
                "give an integer column, or change its type with ALTER TABLE",
            )));
        }
        Some(found) if found.generated => {
            return Ok(Err(problem(
                format!("{column} is a generated column"),
                "give the column that it is computed from",
            )));
        }
        Some(_) => {}
    }
    let key = key_of(connection, &database, column.table.name(), &columns)?;
    if key.is_empty() {
        let what = format!("{name} has no primary key, and no unique index whose columns are NOT NULL");
        return Ok(Err(problem(what, "add a primary key")));
    }
    let mut collations: Vec<_> = key.iter().filter_map(|column| column.collation.clone()).collect();
    collations.dedup();
    let collation = match &collations[..] {
        [] => None,
        [one] => match one.parse::<Collation>() {
            Ok(collation) => Some(collation),
            Err(error) => {
                let what = format!("the key of {name} has the collation {one}: {error}");
                return Ok(Err(problem(what, "change the collation with ALTER TABLE")));
            }
        },
        _ => {
            let what = format!(
                "the columns of the key of {name} have the collations {}",
                collations.join(" and ")
            );
            return Ok(Err(problem(what, "give them one collation with ALTER TABLE")));
        }
    };
    let definitions: Vec<_> = key
        .iter()
        .map(|column| format!("{} {}", column.name.plain(), kind(column)))
        .collect();
    match definitions.join(", ").parse::<Key>() {
        Ok(key_columns) => Ok(Ok(Parent {
            mariadb: key.iter().any(|column| column.kind == "uuid"),
            key: key_columns,
            collation,
            on_update: columns
                .iter()
                .filter(|one| one.on_update)
                .map(|one| one.name.clone())
                .collect(),
        })),
        Err(error) => {
            let what = format!(
                "the key of {name} ({}) cannot be the key of a package: {error}",
                definitions.join(", ")
            );
            Ok(Err(problem(what, "change this column of the key")))
        }
    }
}

/// The type of a key column as an option has it. MariaDB writes a display width.
fn kind(column: &Column) -> String {
    let kind = column.kind.to_uppercase();
    match column.kind.as_str() {
        _ if column.is_integer() && column.definition.contains("unsigned") => format!("{kind} UNSIGNED"),
        _ if column.is_integer() => kind,
        _ => column.definition.to_uppercase(),
    }
}

/// A column of a table, from `information_schema.COLUMNS`.
#[derive(Debug, Clone)]
struct Column {
    name: Ident,
    /// DATA_TYPE, in lower case.
    kind: String,
    /// COLUMN_TYPE.
    definition: String,
    collation: Option<String>,
    null: bool,
    generated: bool,
    /// Whether an UPDATE of another column changes it.
    on_update: bool,
}

impl Column {
    fn is_integer(&self) -> bool {
        ["tinyint", "smallint", "mediumint", "int", "bigint"].contains(&self.kind.as_str())
    }
}

fn columns(connection: &mut Conn, schema: &str, table: &str) -> mysql::Result<Vec<Column>> {
    let query = "SELECT COLUMN_NAME, LOWER(DATA_TYPE), COLUMN_TYPE, COLLATION_NAME, IS_NULLABLE = 'YES',
                        COALESCE(GENERATION_EXPRESSION, '') <> '', LOWER(EXTRA) LIKE '%on update%'
                   FROM information_schema.COLUMNS
                  WHERE TABLE_SCHEMA = ?
                    AND TABLE_NAME = ?
                  ORDER BY ORDINAL_POSITION";
    connection.exec_map(
        query,
        (schema, table),
        |(name, kind, definition, collation, null, generated, on_update): (String, _, _, _, _, _, _)| {
            Column {
                name: Ident::stored(name),
                kind,
                definition,
                collation,
                null,
                generated,
                on_update,
            }
        },
    )
}

/// The columns of the primary key, or of another unique index without NULL. Empty if the table has neither.
fn key_of(
    connection: &mut Conn,
    schema: &str,
    table: &str,
    columns: &[Column],
) -> mysql::Result<Vec<Column>> {
    // MariaDB adds the end of a row's version to each unique index of a system-versioned table: only current rows are read.
    let query = "SELECT INDEX_NAME, COLUMN_NAME
                   FROM information_schema.STATISTICS
                  WHERE TABLE_SCHEMA = ?
                    AND TABLE_NAME = ?
                    AND NON_UNIQUE = 0
                    AND COALESCE(COLUMN_NAME, '') NOT IN (
                      SELECT COLUMN_NAME
                        FROM information_schema.COLUMNS
                       WHERE TABLE_SCHEMA = ?
                         AND TABLE_NAME = ?
                         AND GENERATION_EXPRESSION = 'ROW END'
                    )
                  ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX";
    let parts: Vec<(String, Option<String>)> = connection.exec(query, (schema, table, schema, table))?;
    // A part of an index on an expression has no column.
    let column = |(_, name): &(String, Option<String>)| {
        let found = columns
            .iter()
            .find(|column| Some(column.name.name()) == name.as_deref());
        found.filter(|column| !column.null).cloned()
    };
    let mut indexes = parts.chunk_by(|one, next| one.0 == next.0);
    Ok(indexes
        .find_map(|index| index.iter().map(column).collect())
        .unwrap_or_default())
}

/// What the tables of the roll-ups do not have, before an installation changes anything.
///
/// # Errors
/// The connection fails.
pub(super) fn missing(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<Problem>> {
    let mut problems = Vec::new();
    if let Some(column) = &package.options.column {
        let query = "SELECT LOWER(COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
        let columns: Vec<String> = connection.exec(query, (column.table.name(),))?;
        let key = package.options.key.0.iter().map(|column| &column.name);
        let needed = key.chain([&column.column]).chain(&package.options.keep.0);
        let lacks: Vec<_> = needed
            .filter(|name| !columns.contains(&name.name().to_lowercase()))
            .map(Ident::plain)
            .collect();
        let table = column.table.plain();
        if columns.is_empty() {
            problems.push(Problem {
                what: format!("the database has no table {table}, or this account cannot see it: the view of the totals reads it"),
                remedy: "create the table first, or correct --column".into(),
            });
        } else if !lacks.is_empty() {
            problems.push(Problem {
                what: format!("the table {table} has no column {}", lacks.join(", ")),
                remedy: "correct --column, --key or --keep".into(),
            });
        }
    }
    Ok(problems)
}

/// The text columns that identify a row, and whose collation is not that of the package: ALTER TABLE has changed one of both.
pub(super) fn other_collations(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<Problem>> {
    let database: Option<String> = connection.query_first("SELECT DATABASE()")?;
    let (database, ours) = (
        database.unwrap_or_default(),
        package.options.collation.to_string(),
    );
    let mut problems = Vec::new();
    if let Some(column) = &package.options.column {
        let columns = columns(connection, &database, column.table.name())?;
        for id in package.options.key.0.iter().map(|column| &column.name) {
            let of_id = |one: &&Column| one.name.name().to_lowercase() == id.name().to_lowercase();
            let collation = columns.iter().find(of_id).and_then(|one| one.collation.as_ref());
            if let Some(theirs) = collation.filter(|theirs| **theirs != ours) {
                problems.push(Problem {
                    what: format!(
                        "{}.{} has the collation {theirs}, and the table of the slots {ours}: counts of one row can be added to another",
                        column.table.plain(),
                        id.plain()
                    ),
                    remedy: format!(
                        "install with --collation {theirs}, which prints the ALTER TABLE of the slots, or give the column its collation again"
                    ),
                });
            }
        }
    }
    Ok(problems)
}

/// The pending counts of a column.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Pending {
    /// The column, as `articles.views`.
    pub column: String,
    /// The number of records that have pending counts, and the sum of these.
    pub records: u64,
    /// The sum of the pending counts.
    pub counts: String,
    /// The number of these records that have no row, and the sum of their counts.
    pub without_row: u64,
    /// The sum of the counts of records without a row.
    pub counts_without_row: String,
    /// The number of records whose total the type of the column cannot have.
    pub rejected: u64,
    /// One of them.
    pub rejected_record: Option<String>,
}

/// The pending counts of each column of a package. A column whose table cannot be read is left out.
///
/// # Errors
/// The connection fails.
pub fn pending(connection: &mut Conn, package: &Package) -> mysql::Result<Vec<Pending>> {
    let mut all = Vec::new();
    if let Some(of) = &package.options.column {
        // A view of this name could call functions with the privileges of this account.
        let query = "SELECT c.COLUMN_TYPE
                       FROM information_schema.COLUMNS AS c
                       JOIN information_schema.TABLES AS t
                      USING (TABLE_SCHEMA, TABLE_NAME)
                      WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND c.COLUMN_NAME = ?
                        AND t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')";
        let kind: Option<Vec<u8>> = connection.exec_first(query, (of.table.name(), of.column.name()))?;
        let Some(kind) = kind else { return Ok(all) };
        let (least, most) = range(&String::from_utf8_lossy(&kind));
        type Row = (u64, String, u64, String, u64, Option<Vec<u8>>);
        let row: mysql::Result<Option<Row>> =
            connection.query_first(render::pending_sums(package, least, most).unwrap_or_default());
        let (records, counts, without_row, counts_without_row, rejected, record) = match row {
            Err(mysql::Error::MySqlError(_)) | Ok(None) => return Ok(all),
            Err(error) => return Err(error),
            Ok(Some(row)) => row,
        };
        all.push(Pending {
            column: of.to_string(),
            records,
            counts,
            without_row,
            counts_without_row,
            rejected,
            rejected_record: record.map(|text| String::from_utf8_lossy(&text).into_owned()),
        });
    }
    Ok(all)
}

/// The number of the records that have counts in the slots, of whatever column, and the sum of these.
///
/// # Errors
/// The connection fails, or the account cannot read the table of the package.
pub fn remaining(connection: &mut Conn, package: &Package) -> mysql::Result<(u64, String)> {
    let key = package.options.key.0.iter().map(|column| column.name.to_string());
    let query = format!(
        "SELECT COUNT(*), CAST(COALESCE(SUM(counts), 0) AS CHAR)
           FROM (SELECT SUM(`count`) AS counts FROM {} GROUP BY {} HAVING SUM(`count`) <> 0) AS remaining",
        package.options.table,
        key.collect::<Vec<_>>().join(", ")
    );
    Ok(connection.query_first(query)?.unwrap_or_default())
}

/// The range of an integer type in COLUMN_TYPE. Of another type, that of BIGINT.
fn range(kind: &str) -> (i128, i128) {
    let kind = kind.to_lowercase();
    let name = kind
        .split(|c: char| !c.is_ascii_alphabetic())
        .next()
        .unwrap_or_default();
    let text = if kind.contains("unsigned") {
        format!("{name} UNSIGNED")
    } else {
        name.to_owned()
    };
    match KeyType::parse(&text) {
        Some(KeyType::Integer(_, least, most)) => (least, most),
        _ => (i64::MIN.into(), i64::MAX.into()),
    }
}
