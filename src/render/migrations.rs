//! The files for migration tools, which send statements through a driver: DELIMITER is a command of the client.

use super::files::{File, files};
use super::plan::plan;
use super::sql::Sql;
use super::step::Task;
use crate::package::Package;

/// How the files of a package separate statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// With DELIMITER, for the command-line client.
    #[default]
    Client,
    /// Without DELIMITER: one text with many statements, for a tool that sends a file as it is.
    Plain,
    /// A JSON array of statements, for a tool that sends one statement at a time.
    Statements,
}

/// The files of a package in a format.
pub fn files_of(package: &Package, format: Format) -> Vec<File> {
    let statements = |task| -> Vec<_> { plan(package, task).into_iter().flat_map(|step| step.statements).collect() };
    let banner = Sql::of(package, Task::Create).banner();
    let (up, down) = (Task::Create, Task::Remove { with_table: true });
    let plain = |name, purpose: &str, task| {
        let text = format!("{banner}\n-- {purpose}\n\n{};\n", statements(task).join(";\n\n"));
        File { name, text }
    };
    let json = |name, task| {
        let text = serde_json::to_string_pretty(&statements(task)).expect("strings") + "\n";
        File { name, text }
    };
    match format {
        Format::Client => files(package),
        Format::Plain => vec![
            plain("up.sql", "Creates the table, the routines and the views.", up),
            plain("down.sql", "Drops the routines, the views and the table, unless the table has counts.", down),
        ],
        Format::Statements => vec![json("up.json", up), json("down.json", down)],
    }
}
