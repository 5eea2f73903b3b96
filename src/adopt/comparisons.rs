//! Finds what depends on the value of a column: statements that compare it, and objects of the schema. If the value is moved, they
//! are wrong.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;

use super::source::{checks, expressions, views};
use super::{AdoptError, Doing, Result};
use crate::package::{Limit, Package, Source, quoted};
use crate::statement::{Compared, Table};

/// The number of times that the running statements are read if the server does not keep those of the past.
const SAMPLES: u32 = 4;

/// The time between them.
const PAUSE: Duration = Duration::from_millis(50);

/// What depends on the value of a column, and is wrong after the move.
#[derive(Debug, Default)]
pub struct Comparisons {
    /// Generated columns, unique indexes and views.
    pub objects: Vec<String>,
    /// Statements and CHECK constraints.
    pub statements: Vec<String>,
    /// Whether the server keeps the statements of the past, and the account can read them.
    pub complete: bool,
}

impl Comparisons {
    /// Rejects a move after which something is wrong.
    ///
    /// # Errors
    /// There is such an object or statement.
    pub fn rejected(&self, source: &Source, package: &Package) -> Result<()> {
        let to = source.limit.as_ref().map_or_else(|| "0".into(), Limit::to_string);
        if let Some(object) = self.objects.first() {
            return Err(AdoptError::rejected(
                format!(
                    "an object depends on {}, which the move sets to {to}: {object}",
                    source.plain()
                ),
                "drop or change it first. If the application does not decide by it, and its readers can have the wrong value, add \
                 --despite-comparisons",
            ));
        }
        let Some(first) = self.statements.first() else {
            return Ok(());
        };
        let hint = if source.limit.is_some() {
            "compare the column with this limit alone, as in WHERE used < max_uses, or replace the statement first"
        } else if package.options.bounded {
            "if the column has an upper limit, add --limit with the column or the number of the limit: then the counter has what is \
             left to it"
        } else {
            "if the column must not exceed a limit, use a bounded package with --limit, or without it if the column must not fall \
             below 0"
        };
        Err(AdoptError::rejected(
            format!(
                "a statement depends on {}, which the move sets to {to}: {first}",
                source.plain()
            ),
            format!(
                "{hint}. If the application does not execute the statement any more, or if it only reports, add --despite-comparisons"
            ),
        ))
    }
}

/// What depends on the column of a source: generated columns, unique indexes and views, and the statements that compare it. These
/// are those that the server has executed since its start, those that run, and those of routines, triggers, events and CHECK
/// constraints.
///
/// # Errors
/// The connection fails.
pub fn comparisons(connection: &mut Conn, source: &Source, package: &Package) -> Result<Comparisons> {
    let (schema, name) = (source.schema.name(), source.table.name());
    let column = source.column.name();
    let table = Table {
        schema: schema.to_owned(),
        name: name.to_owned(),
        columns: source.columns.clone(),
        checks: checks(connection, schema, name).doing("read the constraints")?,
        expressions: expressions(connection, schema, name).doing("read the indexes of the table")?,
        views: views(connection, schema).doing("read the views")?,
        ..Table::default()
    };
    let right = |compared: &Compared| match (&source.limit, compared) {
        (_, Compared::Not) => true,
        (None, Compared::Least) => package.options.bounded,
        (Some(Limit::Number(_)), Compared::Most(with)) => with.is_empty(),
        (Some(Limit::Column(limit)), Compared::Most(with)) => *with == [limit.name()],
        _ => false,
    };
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut add = |what: &str, text: &str, rows: &[&str]| {
        let statements = table.compared(text, column, rows).into_iter();
        found.extend(statements.filter(|(_, how)| !right(how)).map(|(statement, _)| {
            let statement: Vec<&str> = statement.split_whitespace().collect();
            format!("{what}{}", statement.join(" "))
        }));
    };
    // A statement has the name of the table or of a view.
    let names = table.relations(column).into_iter().map(|(name, _)| name);
    let past = past(connection, schema, names).doing("read the statements of the server")?;
    let complete = past.as_ref().is_some_and(|(_, complete)| *complete);
    for text in past.into_iter().flat_map(|(texts, _)| texts) {
        add("", &text, &[]);
    }
    for sample in 0..if complete { 1 } else { SAMPLES } {
        if sample > 0 {
            thread::sleep(PAUSE);
        }
        for text in running(connection).doing("read the running statements")? {
            add("", &text, &[]);
        }
    }
    for query in STORED {
        let stored: Vec<Stored> = connection
            .exec(query, (schema, schema))
            .doing("read the routines")?;
        for (place, kind, object, of, body) in stored {
            let object = if place == schema {
                object
            } else {
                format!("{place}.{object}")
            };
            let rows: &[&str] = if of.as_deref() == Some(name) {
                &["NEW", "OLD"]
            } else {
                &[]
            };
            let body = body.unwrap_or_default();
            add(
                &format!("{kind} {object}: "),
                &String::from_utf8_lossy(&body),
                rows,
            );
        }
    }
    let checks = table
        .checks
        .iter()
        .filter(|check| !right(&table.checked(check, column)));
    Ok(Comparisons {
        objects: table.dependents(column),
        statements: checks
            .map(|check| format!("CHECK ({check})"))
            .chain(found)
            .collect(),
        complete,
    })
}

/// The schema, the kind, the name, the table and the body of routines, triggers and events: those of a schema, and the routines and
/// events of others that contain its name. The body is NULL if the account may not read it.
const STORED: [&str; 3] = [
    "SELECT ROUTINE_SCHEMA, ROUTINE_TYPE, ROUTINE_NAME, NULL, ROUTINE_DEFINITION FROM information_schema.ROUTINES
      WHERE ROUTINE_SCHEMA = ? OR LOCATE(?, ROUTINE_DEFINITION) > 0",
    "SELECT EVENT_SCHEMA, 'EVENT', EVENT_NAME, NULL, EVENT_DEFINITION FROM information_schema.EVENTS
      WHERE EVENT_SCHEMA = ? OR LOCATE(?, EVENT_DEFINITION) > 0",
    // Without the schema, MariaDB opens all tables of the server.
    "SELECT TRIGGER_SCHEMA, 'TRIGGER', TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_STATEMENT FROM information_schema.TRIGGERS
      WHERE TRIGGER_SCHEMA = ? AND EVENT_OBJECT_SCHEMA = ?",
];

/// A row of [`STORED`].
type Stored = (String, String, String, Option<String>, Option<Vec<u8>>);

/// The statements since the start of the server that contain one of some names, without their values, and whether these are all.
/// None if the server does not keep them, or if the account may not read them.
fn past(
    connection: &mut Conn,
    schema: &str,
    names: impl Iterator<Item = String>,
) -> mysql::Result<Option<(Vec<String>, bool)>> {
    if connection.query_first("SELECT @@performance_schema")? != Some(1_u8) {
        return Ok(None);
    }
    let query = "SELECT DIGEST_TEXT
                   FROM performance_schema.events_statements_summary_by_digest
                  WHERE DIGEST_TEXT IS NULL
                     OR LOCATE(?, LOWER(DIGEST_TEXT)) > 0 AND (SCHEMA_NAME = ? OR LOCATE(?, DIGEST_TEXT) > 0)";
    let (mut past, mut complete) = (Vec::new(), true);
    for name in names {
        let texts: mysql::Result<Vec<Option<Vec<u8>>>> =
            connection.exec(query, (name, schema, quoted(schema)));
        match texts {
            Err(mysql::Error::MySqlError(error)) if [1142, 1044].contains(&error.code) => return Ok(None),
            texts => {
                let texts = texts?;
                // If the table is full, the other statements are in a row without a text.
                complete &= texts.iter().all(Option::is_some);
                let text = |bytes: Vec<u8>| prepared(&String::from_utf8_lossy(&bytes));
                past.extend(texts.into_iter().flatten().map(text));
            }
        }
    }
    Ok(Some((past, complete)))
}

/// A statement without the words before it that prepare it.
fn prepared(text: &str) -> String {
    let words = ["PREPARE ", "EXECUTE ", "DEALLOCATE "];
    let inside = words.into_iter().find_map(|word| text.strip_prefix(word));
    inside.unwrap_or(text).to_owned()
}

/// The statements that other sessions execute now, as far as the account can see them.
fn running(connection: &mut Conn) -> mysql::Result<Vec<String>> {
    let own = connection.connection_id();
    // On MySQL, information_schema.PROCESSLIST fails if a statement has a character of 4 bytes (3854).
    let rows: Vec<mysql::Row> = connection.query("SHOW FULL PROCESSLIST")?;
    let other = |row: &mysql::Row| row.get::<u64, _>("Id") != Some(own.into());
    let texts = rows.into_iter().filter(other);
    let info = |mut row: mysql::Row| row.take::<Option<Vec<u8>>, _>("Info").flatten();
    Ok(texts
        .filter_map(info)
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .collect())
}
