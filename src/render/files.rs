//! The files of a package: the scripts that a DBA sources, and the plain statements.

use super::sql::{COLUMN_DIFFERS, DDL_TIMEOUT, KEY_NOT_UNIQUE, NOT_KEPT, Sql, TABLE_DIFFERS, filters, text};
use super::step::Task;
use crate::package::{DESCRIPTION_MAX, NAME_MAX, Options, Package, Routine as R, Security};

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

/// A SELECT that returns how the table in the current database, or that of the column, differs: a sentence, or NULL.
pub fn table_check(package: &Package) -> String {
    text!(Sql::of(package, Task::Replace), path = "files/_table_check.sql")
}
