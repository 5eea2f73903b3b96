//! `slotted demo`: demonstrate the package on a private server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use comfy_table::presets::ASCII_FULL_CONDENSED;
use comfy_table::{LineStyle, Table};
use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use super::output::{Outcome, outln, value};
use super::{interrupt, private};
use crate::bench::{self, Contender, Setting};
use crate::package::{Options, Package};
use crate::render::{self, Task};
use crate::script;
use crate::server::{PrivateServer, Version};

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

const TOUR: &str = include_str!("../../templates/tour.sql");
/// The statement of the tour after which the slots are printed, and what is said about them.
const SLOTS: &str = "SELECT * FROM counters WHERE counter_name = 'test2'";
const ABOUT_SLOTS: &str = "\
The rows are the slots of the counter. This connection has incremented one of them. Other connections increment other
slots at the same time, and do not wait for it. counter_get returns the sum.
";

impl Demo {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let outcome = private::with_private_server(self.connections, |program, server| {
            outln!("A private {} server, {}", program.version, program.path.display())?;
            let stop = interrupt::stop();
            tour(&mut Conn::new(server.options())?, stop)?;
            if stop.load(Ordering::Relaxed) { Ok(Outcome::Interrupted) } else { self.compare(server, stop) }
        })?;
        if outcome == Outcome::Fine {
            let program = std::env::args().next().unwrap_or_else(|| "slotted".into());
            outln!(
                "The server is stopped and its files are removed.\n\n\
                 Next, with your own server:\n\
                 \x20 {program} generate counters --stdout | mysql mydb        installs the package\n\
                 \x20 {program} bench --host HOST --user USER --password       compares on your server, in a schema of its own\n\
                 \x20 {program} advise --host HOST --user USER --password      finds rows that connections wait for"
            )?;
        }
        Ok(outcome)
    }

    /// Loads one row and then one counter.
    fn compare(&self, server: &PrivateServer, stop: &AtomicBool) -> anyhow::Result<Outcome> {
        outln!(
            "Now {} connections increment for {} seconds: first one row, then one counter of {} slots.",
            self.connections,
            self.seconds,
            self.slots
        )?;
        let setting = Setting {
            connections: self.connections,
            slots: self.slots,
            hold: None,
            duration: Duration::from_secs(self.seconds),
        };
        let contenders = ["single-row", "counters"].map(|name| Contender::built_in(name).expect("a contender"));
        let report = bench::compare(&server.options().into(), &contenders, &[setting], 1, stop, |_| {})?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
        outln!("\n{}", bench::table(&report))?;
        for one in &report.results {
            let (name, acknowledged, grown) = (&one.contender, one.acknowledged, one.grown);
            outln!("{name}: {acknowledged} increments acknowledged, the total increased by {grown}: exact.")?;
        }
        Ok(Outcome::Fine)
    }
}

/// Installs the package and runs the examples of the article.
fn tour(connection: &mut Conn, stop: &AtomicBool) -> anyhow::Result<()> {
    outln!("\nInstalling setup.sql of the package counters, as a DBA would source it.\n")?;
    let package = Package::new(Options::default())?.of_family(Version::of(connection)?.family);
    let setup = render::plan(&package, Task::Create).into_iter().flat_map(|step| step.statements);
    for statement in ["CREATE DATABASE demo", "USE demo"].map(str::to_owned).into_iter().chain(setup) {
        connection.query_drop(&statement).with_context(|| statement)?;
    }
    let mut about = Some(ABOUT_SLOTS);
    for statement in script::statements(TOUR).into_iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
        if statement.starts_with("call counter_reset") {
            // start_date has a resolution of one second. The reset must set a later one.
            thread::sleep(Duration::from_millis(1100));
        }
        outln!("mysql> {statement};\n{}\n", result(connection, &statement)?)?;
        if let Some(about) = about.take_if(|_| statement == SLOTS) {
            outln!("{about}")?;
        }
    }
    Ok(())
}

/// The output of a command-line client for a statement.
fn result(connection: &mut Conn, statement: &str) -> anyhow::Result<String> {
    let mut result = connection.query_iter(statement)?;
    let names: Vec<_> = result.columns().as_ref().iter().map(|column| column.name_str().into_owned()).collect();
    if names.is_empty() {
        let affected = result.affected_rows();
        return Ok(format!("Query OK, {affected} row{} affected", if affected == 1 { "" } else { "s" }));
    }
    let mut table = Table::new();
    table.load_style(ASCII_FULL_CONDENSED.header_separator(LineStyle::new('+', '-', '+', '+'))).set_header(names);
    for row in result.by_ref().collect::<Result<Vec<Row>, _>>()? {
        table.add_row(row.unwrap().iter().map(value));
    }
    Ok(table.to_string())
}
