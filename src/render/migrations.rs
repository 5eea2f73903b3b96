//! The files for migration tools, which send statements through a driver: DELIMITER is a command of the client.

use super::files::{File, files};
use crate::package::{Package, Routine as R};
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

/// A file for migration tools: its name, the file of the client with its statements, and whether it drops the tables.
struct Part {
    plain: &'static str,
    json: &'static str,
    source: &'static str,
    drops_tables: bool,
    purpose: &'static str,
}

const PARTS: [Part; 6] = [
    Part {
        plain: "up.sql",
        json: "up.json",
        source: "setup.sql",
        drops_tables: false,
        purpose: "Creates the table, the routines and the views.",
    },
    Part {
        plain: "down.sql",
        json: "down.json",
        source: "uninstall.sql",
        drops_tables: true,
        purpose: "Drops the routines, the views and the table WITH ALL COUNTS.",
    },
    Part {
        plain: "tables_up.sql",
        json: "tables_up.json",
        source: "create_tables.sql",
        drops_tables: false,
        purpose: "Creates the table.",
    },
    Part {
        plain: "tables_down.sql",
        json: "tables_down.json",
        source: "create_tables.sql",
        drops_tables: true,
        purpose: "Drops the table WITH ALL COUNTS.",
    },
    Part {
        plain: "routines_up.sql",
        json: "routines_up.json",
        source: "create_procedures.sql",
        drops_tables: false,
        purpose: "Creates or replaces the routines and the views.",
    },
    Part {
        plain: "routines_down.sql",
        json: "routines_down.json",
        source: "uninstall.sql",
        drops_tables: false,
        purpose: "Drops the routines and the views. The table and its counts are kept.",
    },
];

/// The files of a package in a format.
pub fn files_of(package: &Package, format: Format) -> Vec<File> {
    let client = files(package);
    if format == Format::Client {
        return client;
    }
    let part = |part: Part| {
        let of = |name: &str| {
            let file = client.iter().find(|file| file.name == name);
            let statements = script::statements(&file.expect("every package has it").text);
            statements.into_iter().map(not_empty).collect::<Vec<String>>()
        };
        let mut statements = of(part.source);
        if part.drops_tables {
            let is_table = |statement: &String| statement.contains("CREATE TABLE ");
            statements.retain(|statement| !is_table(statement));
            // Before the session has its own time to wait for a table again.
            let drop = format!("DROP TABLE IF EXISTS {}", package.options.table);
            statements.insert(statements.len() - 1, drop);
            // The last roll-up reads the table, which a migration that failed at once has not created.
            if part.source == "uninstall.sql"
                && package.routine(R::Rollup).is_some()
                && let Some(create) = of("create_tables.sql").into_iter().find(is_table)
                && let Some(first) = statements
                    .iter()
                    .position(|statement| statement.starts_with("DROP "))
            {
                statements.insert(
                    first,
                    create.replacen("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1),
                );
            }
        }
        if format == Format::Statements {
            let text = serde_json::to_string_pretty(&statements).expect("strings");
            return File {
                name: part.json,
                text: text + "\n",
            };
        }
        // The banner of setup.sql says how the file is rendered.
        let banner = client
            .first()
            .map(|file| file.text.lines().take(2).collect::<Vec<_>>().join("\n"));
        let text = format!(
            "{}\n--\n-- {}\n\n{};\n",
            banner.unwrap_or_default(),
            part.purpose,
            statements.join(";\n\n")
        );
        File {
            name: part.plain,
            text,
        }
    };
    PARTS.into_iter().map(part).collect()
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
