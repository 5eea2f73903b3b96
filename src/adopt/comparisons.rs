//! Finds the statements that compare a column with a limit. If its value is moved, they decide by a wrong value.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;

use super::source::checks;
use super::{AdoptError, Doing, Result};
use crate::package::{Limit, Package, Source, quoted};
use crate::statement::{Compared, Table};

/// The number of times that the running statements are read if the server does not keep those of the past.
const SAMPLES: u32 = 4;

/// The time between them.
const PAUSE: Duration = Duration::from_millis(50);

/// The statements that compare a column.
#[derive(Debug, Default)]
pub struct Comparisons {
    /// Those that are not right after the move.
    pub wrong: Vec<String>,
    /// Whether the server keeps the statements of the past, and the account can read them.
    pub complete: bool,
}

impl Comparisons {
    /// Rejects a move after which a statement is not right.
    ///
    /// # Errors
    /// There is such a statement.
    pub fn rejected(&self, source: &Source, package: &Package) -> Result<()> {
        let Some(first) = self.wrong.first() else {
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
                "a statement compares {}, which the move sets to {}: {first}",
                source.plain(),
                source.limit.as_ref().map_or_else(|| "0".into(), Limit::to_string),
            ),
            format!(
                "{hint}. If the application does not execute the statement any more, or if it only reports, add --despite-comparisons"
            ),
        ))
    }
}

/// The statements that compare the column of a source: those that the server has executed since its start, those that run, and
/// those of routines, triggers, events and CHECK constraints.
///
/// # Errors
/// The connection fails.
pub fn comparisons(connection: &mut Conn, source: &Source, package: &Package) -> Result<Comparisons> {
    let schema = source.schema.name();
    let name = source.column.name();
    let mut texts: BTreeSet<String> = BTreeSet::new();
    let past = past(connection, schema, name).doing("read the statements of the server")?;
    let complete = past.as_ref().is_some_and(|(_, complete)| *complete);
    texts.extend(past.into_iter().flat_map(|(texts, _)| texts));
    for sample in 0..if complete { 1 } else { SAMPLES } {
        if sample > 0 {
            thread::sleep(PAUSE);
        }
        texts.extend(running(connection).doing("read the running statements")?);
    }
    for query in STORED {
        let bodies: Vec<Option<Vec<u8>>> = connection.exec(query, (schema,)).doing("read the routines")?;
        for body in bodies.into_iter().flatten() {
            texts.extend(String::from_utf8_lossy(&body).split(';').map(str::to_owned));
        }
    }
    let table = Table {
        schema: schema.to_owned(),
        name: source.table.name().to_owned(),
        columns: source.columns.clone(),
        checks: checks(connection, schema, source.table.name()).doing("read the constraints")?,
        ..Table::default()
    };
    let right = |compared: Compared| match (&source.limit, compared) {
        (_, Compared::Not) => true,
        (None, Compared::Least) => package.options.bounded,
        (Some(Limit::Number(_)), Compared::Most(with)) => with.is_empty(),
        (Some(Limit::Column(limit)), Compared::Most(with)) => with == [limit.name()],
        _ => false,
    };
    let wrong = texts
        .into_iter()
        .filter(|text| !right(table.compared(text, name)));
    let wrong = wrong.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let checks = table
        .checks
        .iter()
        .filter(|check| !right(table.checked(check, name)));
    Ok(Comparisons {
        wrong: checks
            .map(|check| format!("CHECK ({check})"))
            .chain(wrong)
            .collect(),
        complete,
    })
}

/// The bodies of the routines, triggers and events of a schema. NULL if the account may not read one.
const STORED: [&str; 3] = [
    "SELECT ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = ?",
    "SELECT ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ?",
    "SELECT EVENT_DEFINITION FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ?",
];

/// The statements since the start of the server that contain a name, without their values, and whether these are all. None if the
/// server does not keep them, or if the account may not read them.
fn past(connection: &mut Conn, schema: &str, name: &str) -> mysql::Result<Option<(Vec<String>, bool)>> {
    if connection.query_first("SELECT @@performance_schema")? != Some(1_u8) {
        return Ok(None);
    }
    let query = "SELECT DIGEST_TEXT
                   FROM performance_schema.events_statements_summary_by_digest
                  WHERE DIGEST_TEXT IS NULL
                     OR LOCATE(?, DIGEST_TEXT) > 0 AND (SCHEMA_NAME = ? OR LOCATE(?, DIGEST_TEXT) > 0)";
    let texts: mysql::Result<Vec<Option<Vec<u8>>>> = connection.exec(query, (name, schema, quoted(schema)));
    match texts {
        Err(mysql::Error::MySqlError(error)) if [1142, 1044].contains(&error.code) => Ok(None),
        texts => {
            let texts = texts?;
            // If the table is full, the other statements are in a row without a text.
            let complete = texts.iter().all(Option::is_some);
            let text = |bytes: Vec<u8>| prepared(&String::from_utf8_lossy(&bytes));
            Ok(Some((texts.into_iter().flatten().map(text).collect(), complete)))
        }
    }
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
