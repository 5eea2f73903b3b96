//! The files for migration tools, which send statements through a driver: DELIMITER is a command of the client.

use super::files::{File, files};
use crate::package::{Package, Routine};
use crate::script;

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
    let client = files(package);
    let statements = |name: &str| -> Vec<String> {
        let file = client.iter().find(|file| file.name == name);
        let statements = script::statements(&file.expect("every package has it").text);
        statements.into_iter().map(not_empty).collect()
    };
    let up = statements("setup.sql");
    let mut down = statements("uninstall.sql");
    // Before the session has its own time to wait for a table again.
    let drop = format!("DROP TABLE IF EXISTS {}", package.options.table);
    down.insert(down.len() - 1, drop);
    // The last roll-up reads the table, which a migration that failed at once has not created.
    if package.routine(Routine::Rollup).is_some()
        && let Some(create) = up.iter().find(|statement| statement.contains("CREATE TABLE "))
        && let Some(first) = down.iter().position(|statement| statement.starts_with("DROP "))
    {
        let create = create.replacen("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1);
        down.insert(first, create);
    }
    // The banner of setup.sql says how the file is rendered.
    let banner = client[0].text.lines().take(2).collect::<Vec<_>>().join("\n");
    let plain = |name, purpose: &str, statements: &[String]| File {
        name,
        text: format!("{banner}\n--\n-- {purpose}\n\n{};\n", statements.join(";\n\n")),
    };
    let json = |name, statements: &[String]| File {
        name,
        text: serde_json::to_string_pretty(statements).expect("strings") + "\n",
    };
    match format {
        Format::Client => client,
        Format::Plain => vec![
            plain("up.sql", "Creates the table, the routines and the views.", &up),
            plain(
                "down.sql",
                "Drops the routines, the views and the table WITH ALL COUNTS.",
                &down,
            ),
        ],
        Format::Statements => vec![json("up.json", &up), json("down.json", &down)],
    }
}

/// The statement, not empty on the server that does not execute its comment: in a text with many statements, both servers
/// reject an empty one with error 1064.
fn not_empty(statement: String) -> String {
    if !statement.ends_with("*/") {
        statement
    } else if statement.starts_with("/*!80000") {
        statement + " /*M!100000 DO 0 */"
    } else if statement.starts_with("/*M!100000") {
        statement + " /*!80000 DO 0 */"
    } else {
        statement
    }
}
