//! The files of a package: the scripts that a DBA sources, the plain statements, and the files for migration tools, which send statements
//! through a driver: DELIMITER is a command of the client.

use super::plan::plan;
use super::sql::{COLUMN_DIFFERS, DDL_TIMEOUT, KEY_NOT_UNIQUE, NOT_KEPT, Sql, TABLE_DIFFERS, filters, text};
use super::step::Task;
use crate::package::{DESCRIPTION_MAX, Definer, Ident, NAME_MAX, Options, Package, Routine as R, Security};

/// How the files of a package separate statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// With DELIMITER, for the command-line client.
    Client,
    /// Without DELIMITER: one text with many statements, for a tool that sends a file as it is.
    Plain,
    /// A JSON array of statements, for a tool that sends one statement at a time.
    Statements,
}

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name in the folder of the package.
    pub name: &'static str,
    /// All of it.
    pub text: String,
}

/// All files of a package.
pub fn files(package: &Package) -> Vec<File> {
    let (sql, o) = (Sql::of(package, Task::Create), &package.options);
    let mut files = vec![
        ("setup.sql", text!(sql, path = "files/setup.sql")),
        ("create_tables.sql", text!(sql, path = "files/create_tables.sql")),
        ("create_procedures.sql", text!(sql, path = "files/create_procedures.sql")),
        ("uninstall.sql", text!(sql, path = "files/uninstall.sql")),
        ("grants.sql", text!(sql, path = "files/grants.sql")),
    ];
    if o.definer.is_some() {
        files.push(("accounts.sql", text!(sql, path = "files/accounts.sql")));
    }
    if o.is_named() {
        files.push(("test_insertdata.sql", text!(sql, path = "files/test_insertdata.sql")));
        files.push(("queries.sql", text!(sql, path = "files/queries_of_counters.sql")));
    } else {
        files.push(("queries.sql", text!(sql, path = "files/queries_of_records.sql")));
    }
    // Each ends with one line end.
    files.into_iter().map(|(name, text)| File { name, text: text.trim_end().to_owned() + "\n" }).collect()
}

/// A SELECT that returns how the table of the column in the current database and, for `Task::Replace`, that of the package differ: a
/// sentence, or NULL. A package without a column has conditions for `Task::Replace` only.
pub fn table_check(package: &Package, task: Task) -> String {
    format!("SELECT CASE{} END", text!(Sql::of(package, task), path = "files/_check.sql", block = "conditions"))
}

/// The body of the event that calls the roll-up, and the lines that create it on a schedule such as `EVERY 10 SECOND`, for the client.
pub fn event(name: &Ident, schedule: &str, definer: Option<&Definer>) -> (String, String) {
    let (name, definer) = (name.typed(), definer.map_or_else(String::new, |definer| format!(" DEFINER = {definer}")));
    let body = format!(
        "BEGIN SET autocommit = 1, lock_wait_timeout = 1, innodb_lock_wait_timeout = 1; CALL {name}(NULL); END"
    );
    let lines = format!("DELIMITER ;;\nCREATE{definer} EVENT {name} ON SCHEDULE {schedule} DO {body};;\nDELIMITER ;");
    (body, lines)
}

/// The files of a package in a format.
pub fn files_of(package: &Package, format: Format) -> Vec<File> {
    let statements = |task| -> Vec<_> { plan(package, task).into_iter().flat_map(|step| step.statements).collect() };
    let banner = Sql::of(package, Task::Create).banner();
    let (up, down) = (Task::Create, Task::RemoveAll);
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
