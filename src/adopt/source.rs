//! Finds the column in a database, and checks that its counts can be moved.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::{AdoptError, Doing, Result, ident};
use crate::package::{Ident, Limit, Package, Source, SourceColumn};

/// One to three names: TABLE, TABLE.COLUMN, SCHEMA.TABLE or SCHEMA.TABLE.COLUMN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(pub Vec<Ident>);

impl Place {
    /// The database, the table and the column. Two names are a table and its column, if the current database has the table.
    fn resolve(&self, connection: &mut Conn, database: &str) -> Result<(String, Ident, Option<Ident>)> {
        let own =
            |table: &Ident, column: Option<&Ident>| (database.to_owned(), table.clone(), column.cloned());
        match &self.0[..] {
            [schema, table, column] => Ok((schema.name().to_owned(), table.clone(), Some(column.clone()))),
            [first, second] => Ok(if table_of(connection, database, first)?.is_some() {
                own(first, Some(second))
            } else {
                (first.name().to_owned(), second.clone(), None)
            }),
            [table] => Ok(own(table, None)),
            _ => Err(AdoptError::rejected(
                "--from has more than three names",
                "give SCHEMA.TABLE.COLUMN",
            )),
        }
    }
}

/// The schema, the name, the type, the engine and whether it has transactions.
type TableRow = (String, String, String, Option<String>, Option<String>);

fn table_of(connection: &mut Conn, schema: &str, table: &Ident) -> Result<Option<TableRow>> {
    let query = "SELECT t.TABLE_SCHEMA, t.TABLE_NAME, t.TABLE_TYPE, t.ENGINE, e.TRANSACTIONS
                   FROM information_schema.TABLES AS t
                   LEFT JOIN information_schema.ENGINES AS e
                     ON e.ENGINE = t.ENGINE
                  WHERE t.TABLE_SCHEMA = ?
                    AND t.TABLE_NAME = ?";
    connection
        .exec_first(query, (schema, table.name()))
        .doing("read information_schema")
}

/// Rejects a table whose changes a rollback would not undo.
fn transactional(table: &TableRow) -> Result<()> {
    let (schema, name, kind, engine, transactions) = table;
    let name = format!("{}.{}", ident(schema).plain(), ident(name).plain());
    if kind.ends_with("VIEW") || engine.is_none() {
        return Err(AdoptError::rejected(
            format!("{name} is a view"),
            "give the table that stores the column",
        ));
    }
    if transactions.as_deref() != Some("YES") {
        let engine = engine.as_deref().unwrap_or_default();
        return Err(AdoptError::rejected(
            format!(
                "{name} uses the engine {engine}, which has no transactions: counts of other sessions would be lost"
            ),
            format!("ALTER TABLE {name} ENGINE = InnoDB"),
        ));
    }
    Ok(())
}

/// The columns that a known table of slots has beside its counts. Its counts are in the column.
const DESIGNS: [(&str, &[&str]); 3] = [
    (
        "counter",
        &["counter_name", "counter_id", "description", "start_date"],
    ),
    ("count", &["record_type", "record_id", "slot"]),
    (
        "count",
        &[
            "associated_record_id",
            "associated_record_type",
            "counter_name",
            "slot",
        ],
    ),
];

/// Reads the columns of a source, and checks that its counts can be moved into the package.
///
/// # Errors
/// The table or the column does not exist, is generated, does not have integers, has no transactions, or belongs to a package
/// of this database.
pub fn read(
    connection: &mut Conn,
    place: &Place,
    limit: Option<&Limit>,
    package: &Package,
    installed: &[Package],
) -> Result<Source> {
    let database: Option<Option<String>> = connection
        .query_first("SELECT DATABASE()")
        .doing("read the database")?;
    let database = database.flatten().unwrap_or_default();
    let (schema, table, column) = place.resolve(connection, &database)?;
    let Some(found) = table_of(connection, &schema, &table)? else {
        return Err(AdoptError::rejected(
            format!("there is no table {}.{}", ident(&schema).plain(), table.plain()),
            "give the table as TABLE or SCHEMA.TABLE; a temporary table cannot be moved",
        ));
    };
    transactional(&found)?;
    if let Some(own) = table_of(connection, &database, &package.options.table)? {
        transactional(&own)?;
    }
    let (schema, table) = (ident(&found.0), ident(&found.1));
    let own = schema.name() == database;
    if own && installed.iter().any(|package| package.options.table == table) {
        return Err(AdoptError::rejected(
            format!("{} is the table of a package", table.plain()),
            "a count is moved to another counter with counter_add",
        ));
    }
    let columns = columns(connection, schema.name(), table.name()).doing("read the columns of the table")?;
    let (index, key) =
        key(connection, schema.name(), table.name(), &columns).doing("read the indexes of the table")?;
    let mut source = Source {
        schema,
        table,
        column: column.clone().unwrap_or_else(|| ident("count")),
        columns,
        key,
        index,
        limit: None,
    };
    let has = |name: &&str| source.column(&ident(name)).is_some();
    if column.is_none() {
        let design = DESIGNS
            .iter()
            .find(|(counts, others)| has(counts) && others.iter().all(has));
        let Some((counts, _)) = design else {
            return Err(AdoptError::rejected(
                format!("{} is not a table of a known design", source.place()),
                "give the column with the counts: --from TABLE.COLUMN",
            ));
        };
        source.column = ident(counts);
    }
    let Some(counts) = source.column(&source.column).cloned() else {
        return Err(AdoptError::rejected(
            format!("{} has no column {}", source.place(), source.column.plain()),
            "correct the name of the column",
        ));
    };
    source.column = counts.name.clone();
    if let Some(why) = counts.uncountable() {
        let hint = if counts.generated.is_some() {
            "give the column that it is computed from".to_owned()
        } else {
            format!("ALTER TABLE {} MODIFY {} BIGINT", source.place(), source.column)
        };
        return Err(AdoptError::rejected(format!("{} {why}", source.plain()), hint));
    }
    if let Some(limit) = limit {
        source.limit = Some(of_row(limit, &source)?);
    }
    let rollups = installed
        .iter()
        .flat_map(Package::rollups)
        .map(|(rollup, _)| rollup);
    for rollup in rollups.filter(|_| own) {
        if rollup.table == source.table && rollup.target == source.column {
            return Err(AdoptError::rejected(
                format!("a roll-up writes {}", source.plain()),
                "leave the counts in the column: they belong to the totals of the package",
            ));
        }
    }
    Ok(source)
}

/// A limit as the server writes it.
fn of_row(limit: &Limit, source: &Source) -> Result<Limit> {
    let Limit::Column(name) = limit else {
        return Ok(limit.clone());
    };
    match source.column(name) {
        Some(column) if column.is_integer() => Ok(Limit::Column(column.name.clone())),
        Some(column) => Err(AdoptError::rejected(
            format!(
                "the limit {} is {}: a counter counts integers",
                name.plain(),
                column.kind
            ),
            "give a column of integers, or a number",
        )),
        None => Err(AdoptError::rejected(
            format!("{} has no column {}", source.place(), name.plain()),
            "correct the name of the column",
        )),
    }
}

/// The columns of a table.
///
/// # Errors
/// The connection fails.
pub(crate) fn columns(connection: &mut Conn, schema: &str, table: &str) -> mysql::Result<Vec<SourceColumn>> {
    let query = "SELECT COLUMN_NAME, LOWER(DATA_TYPE), COALESCE(NUMERIC_SCALE, 0), COLLATION_NAME,
                        IS_NULLABLE = 'YES', NULLIF(GENERATION_EXPRESSION, ''), LOWER(EXTRA) LIKE '%on update%',
                        LOWER(COLUMN_TYPE) LIKE '%unsigned%', COLUMN_TYPE
                   FROM information_schema.COLUMNS
                  WHERE TABLE_SCHEMA = ?
                    AND TABLE_NAME = ?
                  ORDER BY ORDINAL_POSITION";
    let row = |(name, kind, scale, collation, null, generated, on_update, unsigned, definition): (
        String,
        String,
        u64,
        Option<String>,
        bool,
        Option<String>,
        bool,
        bool,
        String,
    )| {
        SourceColumn {
            name: ident(&name),
            unsigned: unsigned && !["enum", "set"].contains(&kind.as_str()),
            kind,
            definition,
            scale,
            collation,
            null,
            generated: generated.map(plain_strings),
            on_update,
        }
    };
    connection.exec_map(query, (schema, table), row)
}

/// An expression as MySQL stores it, with its strings as 'text': MySQL writes _utf8mb4\\'text\\'.
fn plain_strings(expression: String) -> String {
    expression.replace("\\'", "'")
}

/// The unique indexes of a table on expressions, each with its expression. An index on several has several rows.
///
/// # Errors
/// The connection fails.
pub(crate) fn expressions(
    connection: &mut Conn,
    schema: &str,
    table: &str,
) -> mysql::Result<Vec<(String, String)>> {
    let query = "SELECT INDEX_NAME, EXPRESSION
                   FROM information_schema.STATISTICS
                  WHERE TABLE_SCHEMA = ?
                    AND TABLE_NAME = ?
                    AND NON_UNIQUE = 0
                    AND EXPRESSION IS NOT NULL";
    match connection.exec::<(String, String), _, _>(query, (schema, table)) {
        // MariaDB has no index on an expression, and no such column.
        Err(mysql::Error::MySqlError(error)) if error.code == 1054 => Ok(Vec::new()),
        rows => Ok(rows?
            .into_iter()
            .map(|(name, text)| (name, plain_strings(text)))
            .collect()),
    }
}

/// The views of a schema with their definitions, if the account may read them.
///
/// # Errors
/// The connection fails.
pub(crate) fn views(connection: &mut Conn, schema: &str) -> mysql::Result<Vec<(String, String)>> {
    let query = "SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ?";
    let row = |(name, definition): (String, Option<Vec<u8>>)| {
        let definition = definition.unwrap_or_default();
        (name, String::from_utf8_lossy(&definition).into_owned())
    };
    connection.exec_map(query, (schema,), row)
}

/// The conditions of the CHECK constraints of a table.
///
/// # Errors
/// The connection fails.
pub(crate) fn checks(connection: &mut Conn, schema: &str, table: &str) -> mysql::Result<Vec<String>> {
    // MariaDB has the table in CHECK_CONSTRAINTS, where the names of different tables can be equal. MySQL has it elsewhere.
    let of_mariadb = "SELECT CHECK_CLAUSE
                        FROM information_schema.CHECK_CONSTRAINTS
                       WHERE CONSTRAINT_SCHEMA = ?
                         AND TABLE_NAME = ?";
    let of_mysql = "SELECT c.CHECK_CLAUSE
                      FROM information_schema.CHECK_CONSTRAINTS AS c
                      JOIN information_schema.TABLE_CONSTRAINTS AS t
                        ON t.CONSTRAINT_SCHEMA = c.CONSTRAINT_SCHEMA
                       AND t.CONSTRAINT_NAME = c.CONSTRAINT_NAME
                     WHERE t.TABLE_SCHEMA = ?
                       AND t.TABLE_NAME = ?";
    match connection.exec(of_mariadb, (schema, table)) {
        Err(mysql::Error::MySqlError(error)) if error.code == 1054 => {
            let checks: Vec<String> = connection.exec(of_mysql, (schema, table))?;
            Ok(checks.into_iter().map(plain_strings).collect())
        }
        // A server before CHECK constraints has no such table.
        Err(mysql::Error::MySqlError(error)) if error.code == 1109 => Ok(Vec::new()),
        checks => checks,
    }
}

/// The primary key, or another unique index whose columns do not allow NULL, and its columns.
///
/// # Errors
/// The connection fails.
pub(crate) fn key(
    connection: &mut Conn,
    schema: &str,
    table: &str,
    columns: &[SourceColumn],
) -> mysql::Result<(Option<Ident>, Vec<SourceColumn>)> {
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
    for index in parts.chunk_by(|one, next| one.0 == next.0) {
        // A part of an index on an expression has no column.
        let column = |(_, name): &(String, Option<String>)| {
            let name = name.as_deref()?;
            columns
                .iter()
                .find(|column| column.name.name() == name && !column.null)
                .cloned()
        };
        if let Some(key) = index.iter().map(column).collect::<Option<Vec<_>>>() {
            return Ok((Some(ident(&index[0].0)), key));
        }
    }
    Ok((None, Vec::new()))
}
