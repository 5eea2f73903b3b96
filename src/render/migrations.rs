//! The files for migration tools, which send statements through a driver: DELIMITER is a command of the client.

use super::files::{File, all};
use crate::package::Package;
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
    let client = all(package, format != Format::Client);
    let statements = |name: &str| -> Vec<String> {
        let file = client.iter().find(|file| file.name == name);
        script::statements(&file.expect("every package has it").text)
    };
    let up = statements("setup.sql");
    let down = statements("uninstall.sql");
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
            plain("down.sql", "Drops the routines, the views and the table, unless the table has counts.", &down),
        ],
        Format::Statements => vec![json("up.json", &up), json("down.json", &down)],
    }
}
