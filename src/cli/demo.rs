//! `slotted demo`: see it work on a real server of your own, and leave nothing behind.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use comfy_table::presets::ASCII_FULL_CONDENSED;
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use super::{Outcome, private, progress};
use crate::bench::{self, Comparison, Contender, Rounds, Setting, Target};
use crate::package::{Options, Package};
use crate::server::PrivateServer;
use crate::{render, script};

/// Show the package at work on a private throw-away server.
///
/// Starts the mysqld or mariadbd that it finds (environment variable SLOTTED_SERVER, PATH, what scripts/servers has
/// made) in a folder of its own, without network; sources setup.sql; plays the tour of the article that the package
/// comes from; increments one row, then one slotted counter, from many connections at once, and proves both totals.
/// Everything is removed in the end, also after Ctrl-C.
#[derive(Debug, Args)]
pub struct Demo {
    /// How long each of the two loads lasts
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,

    /// How many connections increment at once
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: u32,

    /// How many slots the slotted counter has
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = crate::package::slot_count)]
    slots: u32,
}

/// Tables as the servers' own clients draw them.
const LIKE_THE_CLIENT: TableStyle = ASCII_FULL_CONDENSED.header_separator(LineStyle::new('+', '-', '+', '+'));
const TOUR: &str = include_str!("../../templates/tour.sql");

impl Demo {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let interrupted = private::on_interrupt()?;
        let outcome = private::with_private_server(self.connections, &interrupted, |program, server| {
            println!("A private {} server, {}", program.version, program.path.display());
            self.play(server, &interrupted)
        })?;
        if outcome == Outcome::Fine {
            println!("The server is stopped and its files are removed.");
        }
        Ok(outcome)
    }

    fn play(&self, server: &PrivateServer, interrupted: &AtomicBool) -> anyhow::Result<Outcome> {
        let stop = || interrupted.load(Ordering::Relaxed);
        let mut connection = Conn::new(server.options())?;
        connection.query_drop("CREATE DATABASE demo")?;
        connection.query_drop("USE demo")?;

        println!("\nInstalling generated/counters/setup.sql, as a DBA would source it.\n");
        let package = Package::new(Options::default())?;
        execute(&mut connection, &render::setup(&package))?;
        for statement in script::statements(TOUR) {
            if stop() {
                return Ok(Outcome::Interrupted);
            }
            if statement.starts_with("call counter_reset") {
                // A start_date is no finer than a second: let the reset move it.
                thread::sleep(Duration::from_millis(1100));
            }
            print_result(&mut connection, &statement)?;
        }

        println!(
            "Now {} connections increment at once, {} seconds each: one row, then one counter of {} slots.",
            self.connections, self.seconds, self.slots
        );
        let setting = Setting {
            connections: self.connections,
            slots: self.slots,
            duration: Duration::from_secs(self.seconds),
            ..Setting::default()
        };
        // A schema of its own: the tour's has the table already.
        connection.query_drop("CREATE DATABASE demo_load")?;
        let target = Target {
            options: server.options().db_name(Some("demo_load")).into(),
            process: Some(server.process()),
        };
        let contenders = ["single-row", "counters"]
            .into_iter()
            .filter_map(Contender::named)
            .collect();
        let mut rounds = Rounds::prepare(contenders, target, setting.clone())?;
        progress::during(setting.duration * 2, |bar| {
            rounds.round(true, interrupted, |name| bar.set_message(name))
        })?;
        if stop() {
            return Ok(Outcome::Interrupted);
        }
        let summaries = rounds.summaries();
        let comparison = Comparison { setting, summaries };
        println!("\n{}\n", bench::table(&comparison));
        println!("{}", bench::bars(&comparison));
        for one in &comparison.summaries {
            println!(
                "{}: {} increments acknowledged, the total grew by {}: exact.",
                one.name, one.done, one.grown
            );
        }
        Ok(Outcome::Fine)
    }
}

fn execute(connection: &mut Conn, text: &str) -> anyhow::Result<()> {
    for statement in script::statements(text) {
        connection
            .query_drop(&statement)
            .with_context(|| format!("in: {}", statement.lines().next().unwrap_or_default()))?;
    }
    Ok(())
}

/// Runs a statement and prints what a client would.
fn print_result(connection: &mut Conn, statement: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "mysql> {statement};")?;
    let mut result = connection.query_iter(statement)?;
    let names: Vec<_> = result
        .columns()
        .as_ref()
        .iter()
        .map(|column| column.name_str().into_owned())
        .collect();
    let affected = result.affected_rows();
    let rows = result.by_ref().collect::<Result<Vec<Row>, _>>()?;
    drop(result);
    if names.is_empty() {
        let s = if affected == 1 { "" } else { "s" };
        writeln!(out, "Query OK, {affected} row{s} affected\n")?;
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(LIKE_THE_CLIENT).set_header(names);
    let mut numbers = Vec::new();
    for row in rows {
        let values = row.unwrap();
        numbers = values
            .iter()
            .map(|value| text(value).parse::<i64>().is_ok())
            .collect();
        table.add_row(values.iter().map(text));
    }
    for (column, _) in numbers.iter().enumerate().filter(|(_, number)| **number) {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out, "{table}\n")?;
    Ok(())
}

fn text(value: &Value) -> String {
    match value {
        Value::NULL => "NULL".into(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.as_sql(true),
    }
}
