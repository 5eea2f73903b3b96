//! `slotted demo`: demonstrate the package on a private server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use comfy_table::presets::ASCII_FULL_CONDENSED;
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use super::output::outln;
use super::{Outcome, interrupt, private, progress};
use crate::bench::{self, Comparison, Contender, Rounds, Setting, Target};
use crate::package::{Options, Package};
use crate::server::PrivateServer;
use crate::{render, script};

/// Demonstrate the package on a private server.
///
/// Starts a temporary server without network, installs setup.sql, and runs the examples of the article of 2012. Then many
/// connections increment one row, and after that one counter of the package. The command checks both totals. At the end
/// it stops the server and removes its files, also after Ctrl-C.
///
/// The server is the mysqld or mariadbd of the environment variable SLOTTED_SERVER. If the variable is not set, the
/// command searches the PATH, and then the servers in ~/.cache/slotted.
#[derive(Debug, Args)]
pub struct Demo {
    /// The duration of each of the two loads, in seconds
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,

    /// The number of connections that increment at the same time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: u32,

    /// The number of slots of the counter
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = crate::package::slot_count)]
    slots: u32,
}

/// The table style of the servers' command-line clients.
const LIKE_THE_CLIENT: TableStyle = ASCII_FULL_CONDENSED.header_separator(LineStyle::new('+', '-', '+', '+'));
/// Printed after the slots of a counter.
const SLOTS: &str = "\
The rows are the slots of the counter. This connection has incremented one of them. Other connections increment other
slots at the same time, and do not wait for it. counter_get returns the sum.
";
const TOUR: &str = include_str!("../../templates/tour.sql");

impl Demo {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let outcome = private::with_private_server(self.connections, |program, server| {
            outln!("A private {} server, {}", program.version, program.path.display())?;
            self.play(server, interrupt::stop())
        })?;
        if outcome == Outcome::Fine {
            outln!("The server is stopped and its files are removed.")?;
            let program = std::env::args().next().unwrap_or_else(|| "slotted".into());
            outln!(
                "\nNext, with your own server:\n\
                 \x20 {program} generate counters --stdout | mysql mydb        installs the package\n\
                 \x20 {program} bench --host HOST --user USER --password       compares on your server, in a schema of its own\n\
                 \x20 {program} advise --host HOST --user USER --password      finds rows that connections wait for"
            )?;
        }
        Ok(outcome)
    }

    fn play(&self, server: &PrivateServer, interrupted: &AtomicBool) -> anyhow::Result<Outcome> {
        let stop = || interrupted.load(Ordering::Relaxed);
        let mut connection = Conn::new(server.options())?;
        connection.query_drop("CREATE DATABASE demo")?;
        connection.query_drop("USE demo")?;

        outln!("\nInstalling setup.sql of the package counters, as a DBA would source it.\n")?;
        let package = Package::new(Options::default())?;
        execute(&mut connection, &render::setup(&package))?;
        let mut explain = false;
        for statement in script::statements(TOUR) {
            if stop() {
                return Ok(Outcome::Interrupted);
            }
            if statement.starts_with("call counter_reset") {
                // start_date has a resolution of one second. The reset must set a later one.
                thread::sleep(Duration::from_millis(1100));
            }
            print_result(&mut connection, &statement)?;
            if statement.starts_with("SELECT counter_get") {
                explain = true;
            } else if std::mem::take(&mut explain) {
                outln!("{SLOTS}")?;
            }
        }

        outln!(
            "Now {} connections increment for {} seconds: first one row, then one counter of {} slots.",
            self.connections,
            self.seconds,
            self.slots
        )?;
        let setting = Setting {
            connections: self.connections,
            slots: self.slots,
            duration: Duration::from_secs(self.seconds),
            ..Setting::default()
        };
        // A second schema, because the first one has a table counters.
        connection.query_drop("CREATE DATABASE demo_load")?;
        let target = Target::server(
            server.options().db_name(Some("demo_load")),
            Some(server.process()),
        );
        let contenders = ["single-row", "counters"]
            .into_iter()
            .filter_map(Contender::named)
            .collect();
        let mut rounds = Rounds::prepare(contenders, target, setting.clone())?;
        progress::during(setting.duration * 2, |bar| {
            rounds.round(true, interrupted, |name| bar.message(name))
        })?;
        if stop() {
            return Ok(Outcome::Interrupted);
        }
        let summaries = rounds.summaries();
        let comparison = Comparison { setting, summaries };
        outln!("\n{}\n", bench::table(&comparison))?;
        outln!("{}", bench::bars(&comparison))?;
        for one in &comparison.summaries {
            outln!(
                "{}: {} increments acknowledged, the total increased by {}: exact.",
                one.name,
                one.done,
                one.grown
            )?;
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

/// Runs a statement and prints the output of a command-line client.
fn print_result(connection: &mut Conn, statement: &str) -> anyhow::Result<()> {
    outln!("mysql> {statement};")?;
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
        outln!("Query OK, {affected} row{s} affected\n")?;
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
    outln!("{table}\n")?;
    Ok(())
}

fn text(value: &Value) -> String {
    match value {
        Value::NULL => "NULL".into(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.as_sql(true),
    }
}
