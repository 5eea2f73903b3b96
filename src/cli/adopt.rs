//! `slotted adopt`: move the count of a row into a counter.

use std::sync::atomic::AtomicBool;

use anyhow::Context;
use clap::Args;
use mysql::prelude::Queryable;
use mysql::{TxOpts, Value};

use super::connection::Connection;
use super::{Outcome, hinted};
use crate::package::{Ident, Prefix};

/// Move the count of one row into a counter.
///
/// Adds the count of the row to the counter and sets the row to 0, in one transaction. Creates the counter if it does not
/// exist. Run the command again when the application increments the counter and no longer updates the row: it moves the
/// count that the row has received since the first run.
///
/// The package must be installed in the database of the connection.
#[derive(Debug, Args)]
pub struct Adopt {
    /// The table of the row, as TABLE or SCHEMA.TABLE
    #[arg(long, value_name = "TABLE", value_parser = table)]
    table: String,

    /// The column with the count
    #[arg(long)]
    column: Ident,

    /// The WHERE condition, which must match exactly one row
    #[arg(long = "where", value_name = "CONDITION")]
    condition: String,

    /// The name of the counter
    #[arg(long, value_name = "NAME")]
    counter: String,

    /// The number of slots of a new counter [default: the default of the package]
    #[arg(long, value_name = "N", value_parser = crate::package::slot_count)]
    slots: Option<u32>,

    /// The prefix of the package's routines
    #[arg(long, default_value = "counter_")]
    prefix: Prefix,

    #[command(flatten)]
    connection: Connection,
}

fn table(text: &str) -> Result<String, String> {
    let names = text.split('.').map(str::parse).collect::<Result<Vec<Ident>, _>>();
    let names = names.map_err(|error| error.to_string())?;
    if names.len() > 2 {
        return Err("expected TABLE or SCHEMA.TABLE".into());
    }
    Ok(names.iter().map(Ident::to_string).collect::<Vec<_>>().join("."))
}

impl Adopt {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let Self {
            table,
            column,
            condition,
            ..
        } = &self;
        let name = |suffix: &str| self.prefix.join(suffix).context("--prefix");
        let (setup, add, totals) = (name("setup")?, name("add")?, name("totals")?);
        let (mut connection, _) = self.connection.connect(&AtomicBool::new(false))?;
        // An error drops the transaction, which rolls it back.
        let mut transaction = connection.start_transaction(TxOpts::default())?;

        let rows: Vec<Value> = transaction
            .query(format!(
                "SELECT {column} FROM {table} WHERE {condition} FOR UPDATE"
            ))
            .context("cannot read the row")?;
        let [value] = rows.as_slice() else {
            return Err(hinted(
                format!(
                    "the condition matches {} rows of {table}, expected 1: {condition}",
                    rows.len()
                ),
                "give a --where that matches exactly one row, such as its primary key",
            ));
        };
        let count = match value {
            Value::NULL => 0,
            Value::Int(count) => *count,
            Value::UInt(count) => i64::try_from(*count).context("the count exceeds the range of BIGINT")?,
            other => String::from_utf8_lossy(other.as_sql(true).trim_matches('\'').as_bytes())
                .parse()
                .with_context(|| {
                    format!(
                        "the value of {column} is not an integer in the range of BIGINT: {}",
                        other.as_sql(true)
                    )
                })?,
        };

        let query = format!("SELECT counter_name FROM {totals} WHERE counter_name = ?");
        let existing: Result<Option<String>, _> = transaction.exec_first(query, (&self.counter,));
        let existing = existing.map_err(|error| {
            hinted(
                format!("cannot query the counter: {error}"),
                "install generated/counters/setup.sql in this database first",
            )
        })?;
        if existing.is_none() {
            let description = format!("Moved from {} of {table}", column.name());
            let description: String = description.chars().take(255).collect();
            transaction
                .exec_drop(
                    format!("CALL {setup}(?, ?, ?, ?)"),
                    (&self.counter, description, self.slots, count),
                )
                .context("cannot create the counter")?;
        } else if count != 0 {
            transaction
                .exec_drop(format!("CALL {add}(?, ?)"), (&self.counter, count))
                .context("cannot add to the counter")?;
        }
        transaction
            .query_drop(format!("UPDATE {table} SET {column} = 0 WHERE {condition}"))
            .context("cannot set the row to 0")?;
        transaction.commit().context("cannot commit")?;

        let created = if existing.is_none() { "created, " } else { "" };
        println!(
            "{}: {created}added {count} from {table}, set the row to 0",
            self.counter
        );
        println!(
            "Increment with: CALL {}({});",
            name("increment")?,
            crate::package::SqlStr(&self.counter)
        );
        println!("Run the command again when the application no longer updates the row.");
        Ok(Outcome::Fine)
    }
}
