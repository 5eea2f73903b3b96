//! `slotted demo`: see it work on a real server of your own, and leave nothing behind.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use comfy_table::presets::ASCII_FULL_CONDENSED;
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use indicatif::{ProgressBar, ProgressStyle};
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, Row, Value};

use super::{Hinted, Outcome};
use crate::bench::{self, Load, Measured};
use crate::package::{Options, Package};
use crate::server::{self, PrivateServer, StartError};
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
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1000))]
    connections: u64,

    /// How many slots the slotted counter has
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = crate::package::slot_count)]
    slots: u32,
}

/// What a server with a replica has and MySQL has by default: a binary log that survives a crash. MariaDB has none by
/// default, and lets others at a row before the commit is on disk.
const DURABLE: &[&str] = &["--log-bin", "--sync-binlog=1", "--server-id=1"];

const SINGLE_ROW_SETUP: &str = include_str!("../../templates/bench/single_row_setup.sql");
const SINGLE_ROW_INCREMENT: &str = include_str!("../../templates/bench/single_row_increment.sql");
const SINGLE_ROW_TOTAL: &str = include_str!("../../templates/bench/single_row_total.sql");
/// Tables as the servers' own clients draw them.
const LIKE_THE_CLIENT: TableStyle = ASCII_FULL_CONDENSED.header_separator(LineStyle::new('+', '-', '+', '+'));
const TOUR: &str = include_str!("../../templates/tour.sql");

impl Demo {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&interrupted);
        ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).context("cannot handle Ctrl-C")?;
        let program = server::find().map_err(|error| Hinted {
            message: error.to_string(),
            hint: error.hint().to_owned(),
        })?;

        let spinner = ProgressBar::new_spinner();
        spinner.set_message(format!(
            "starting a private {} server ({})",
            program.version,
            program.path.display()
        ));
        spinner.enable_steady_tick(Duration::from_millis(100));
        // The clients' connections, ours, and a spare one.
        let connections = format!("--max-connections={}", self.connections + 10);
        let started = PrivateServer::start(
            &program,
            &[&[connections.as_str()], DURABLE].concat(),
            &interrupted,
        );
        spinner.finish_and_clear();
        let server = match started {
            Ok(server) => server,
            Err(StartError::Interrupted) => return Ok(interrupted_message()),
            Err(error) => return Err(error.into()),
        };

        println!("A private {} server, {}", program.version, program.path.display());
        let played = self.play(&server, &interrupted);
        if played.is_err() {
            eprintln!("the server's log ends with:\n{}", server.last_log_lines());
        }
        let folder = server.folder().to_owned();
        drop(server);
        ensure!(
            !folder.exists(),
            "the server's folder could not be removed: {}",
            folder.display()
        );
        let outcome = played?;
        if outcome == Outcome::Interrupted {
            return Ok(interrupted_message());
        }
        println!("The server is stopped and its files are removed.");
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

        execute(&mut connection, SINGLE_ROW_SETUP)?;
        connection.exec_drop("CALL counter_setup('demo', NULL, ?, NULL)", (self.slots,))?;
        println!(
            "Now {} connections increment at once, {} seconds each: one row, then one counter of {} slots.",
            self.connections, self.seconds, self.slots
        );
        let opts: Opts = server.options().db_name(Some("demo")).into();
        let contenders = [
            ("one row", SINGLE_ROW_INCREMENT, SINGLE_ROW_TOTAL),
            (
                "slotted counter",
                "CALL counter_increment('demo')",
                "SELECT counter_get('demo')",
            ),
        ];
        let mut measured = Vec::new();
        for (name, increment, total) in contenders {
            let one = self.load(name, &opts, increment, interrupted)?;
            if stop() {
                return Ok(Outcome::Interrupted);
            }
            let total: Option<u64> = connection.query_first(total)?;
            ensure!(
                total == Some(one.done),
                "{name}: {} increments were acknowledged and the total is {total:?}",
                one.done
            );
            measured.push(one);
        }
        println!("\n{}\n", bench::table(&measured));
        println!("{}", bench::bars(&measured));
        for one in &measured {
            println!(
                "{}: {} increments acknowledged, total {}: exact.",
                one.name, one.done, one.done
            );
        }
        Ok(Outcome::Fine)
    }

    /// Runs one load with a progress bar.
    fn load(
        &self,
        name: &str,
        opts: &Opts,
        statement: &str,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Measured> {
        let load = Load {
            connections: self.connections as usize,
            duration: Duration::from_secs(self.seconds),
        };
        let bar = ProgressBar::new(load.duration.as_millis() as u64);
        bar.set_style(ProgressStyle::with_template("{msg:16} {wide_bar} {elapsed}")?);
        bar.set_message(name.to_owned());
        let measured = thread::scope(|scope| {
            let running = scope.spawn(|| bench::run(name, opts, statement, load, interrupted));
            let start = Instant::now();
            while !running.is_finished() {
                bar.set_position(start.elapsed().min(load.duration).as_millis() as u64);
                thread::sleep(Duration::from_millis(50));
            }
            running
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        bar.finish_and_clear();
        Ok(measured?)
    }
}

fn interrupted_message() -> Outcome {
    eprintln!("interrupted; the server is stopped and its files are removed");
    Outcome::Interrupted
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
