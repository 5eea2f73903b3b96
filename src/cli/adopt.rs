//! `slotted adopt`: a count that one row holds becomes a counter.

use anyhow::Context;
use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, TxOpts, Value};

use super::{Hinted, Outcome};
use crate::package::{Ident, Prefix};

/// Move the count of one row into a counter.
///
/// The count goes to the counter, which is made where it is not there, and the row is left with 0, both in one
/// transaction: nothing is lost or counted twice. Run it once more when the application calls the counter instead of
/// changing the row; what was counted in the row meanwhile is added.
///
/// The package must be installed in the schema of the URL.
#[derive(Debug, Args)]
pub struct Adopt {
    /// The schema with the package, as mysql://user:password@host:port/schema
    #[arg(long)]
    url: String,

    /// The table of the row, TABLE or SCHEMA.TABLE
    #[arg(long, value_name = "TABLE", value_parser = table)]
    table: String,

    /// The column with the count
    #[arg(long)]
    column: Ident,

    /// What is true of the row alone, as SQL has it after WHERE
    #[arg(long = "where", value_name = "CONDITION")]
    condition: String,

    /// The name of the counter
    #[arg(long, value_name = "NAME")]
    counter: String,

    /// How many slots a new counter gets [default: the package's]
    #[arg(long, value_name = "N", value_parser = crate::package::slot_count)]
    slots: Option<u32>,

    /// What the names of the package's routines begin with
    #[arg(long, default_value = "counter_")]
    prefix: Prefix,
}

fn table(text: &str) -> Result<String, String> {
    let names = text.split('.').map(str::parse).collect::<Result<Vec<Ident>, _>>();
    let names = names.map_err(|error| error.to_string())?;
    if names.len() > 2 {
        return Err("TABLE or SCHEMA.TABLE is needed".into());
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
        let options = Opts::from_url(&self.url).context("--url")?;
        let mut connection = Conn::new(options).context("cannot connect")?;
        // Dropped without a commit, it is rolled back.
        let mut transaction = connection.start_transaction(TxOpts::default())?;

        let rows: Vec<Value> = transaction
            .query(format!(
                "SELECT {column} FROM {table} WHERE {condition} FOR UPDATE"
            ))
            .context("cannot read the row")?;
        let [value] = rows.as_slice() else {
            return Err(Hinted {
                message: format!("{} rows of {table} are meant by: {condition}", rows.len()),
                hint: "give a --where that is true of one row alone, such as its primary key".into(),
            }
            .into());
        };
        let count = match value {
            Value::NULL => 0,
            Value::Int(count) => *count,
            Value::UInt(count) => i64::try_from(*count).context("the count does not fit a BIGINT")?,
            other => String::from_utf8_lossy(other.as_sql(true).trim_matches('\'').as_bytes())
                .parse()
                .with_context(|| {
                    format!(
                        "{column} holds no whole number that fits a BIGINT: {}",
                        other.as_sql(true)
                    )
                })?,
        };

        let query = format!("SELECT counter_name FROM {totals} WHERE counter_name = ?");
        let there: Result<Option<String>, _> = transaction.exec_first(query, (&self.counter,));
        let there = there.map_err(|error| Hinted {
            message: format!("cannot look for the counter: {error}"),
            hint: "install generated/counters/setup.sql in the schema of the URL first".into(),
        })?;
        if there.is_none() {
            let description = format!("Moved from {} of {table}", column.name());
            let description: String = description.chars().take(255).collect();
            transaction
                .exec_drop(
                    format!("CALL {setup}(?, ?, ?, ?)"),
                    (&self.counter, description, self.slots, count),
                )
                .context("cannot make the counter")?;
        } else if count != 0 {
            transaction
                .exec_drop(format!("CALL {add}(?, ?)"), (&self.counter, count))
                .context("cannot add to the counter")?;
        }
        transaction
            .query_drop(format!("UPDATE {table} SET {column} = 0 WHERE {condition}"))
            .context("cannot take the count out of the row")?;
        transaction
            .commit()
            .context("cannot commit, nothing was changed")?;

        let verb = if there.is_none() { "now holds" } else { "was given" };
        println!(
            "{}: {verb} {count} of {table}, which is left with 0",
            self.counter
        );
        println!(
            "Count with: CALL {}({});",
            name("increment")?,
            crate::package::SqlStr(&self.counter)
        );
        println!("Run this again when nothing changes the row any more.");
        Ok(Outcome::Fine)
    }
}
