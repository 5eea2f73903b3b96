//! The files of a package: the scripts that a DBA sources, and the plain statements.

use super::plan::Task;
use super::sql::Sql;
use super::{filters, text};
use crate::package::{
    BATCH, DESCRIPTION_MAX, ENTRIES_MAX, Ident, KeyType, MAX_SLOTS, NAME_MAX, Options, Package, Routine as R, Security,
};

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name in the folder of the package.
    pub name: &'static str,
    /// All of it.
    pub text: String,
}

/// The sql_mode that the server stores with each routine. Without NO_ZERO_DATE: a roll-up changes rows of people, which can contain zero
/// dates.
pub const SQL_MODE: &str = "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION";

/// How long a statement of a script or of an installation waits for transactions that have used an object, in seconds. New calls
/// of the object wait behind it. Source: MySQL manual, "Metadata Locking".
pub const DDL_TIMEOUT: u32 = 2;

const NAMED: bool = true;
const RECORDS: bool = false;

/// The CREATE statement of a routine of the package.
pub(super) fn routine(sql: Sql<'_>, of: R) -> String {
    let of_column = sql.package.options.column().is_some();
    match (sql.package.options.is_named(), of) {
        (_, R::Fail) => text!(sql, path = "counters/fail.sql"),
        (NAMED, R::MustExist) => text!(sql, path = "counters/must_exist.sql"),
        (NAMED, R::AddElsewhere) => text!(sql, path = "counters/add_elsewhere.sql"),
        (NAMED, R::Steps) => text!(sql, path = "cluster/counter_steps.sql"),
        (NAMED, R::Setup) => text!(sql, path = "counters/setup.sql"),
        (NAMED, R::Increment) => text!(sql, path = "counters/increment.sql"),
        (NAMED, R::Add) => text!(sql, path = "counters/add.sql"),
        (_, R::Take) => text!(sql, path = "bounded/take.sql"),
        (_, R::Collect) => text!(sql, path = "bounded/collect.sql"),
        (_, R::TakeElsewhere) => text!(sql, path = "bounded/take_elsewhere.sql"),
        (NAMED, R::Reset) => text!(sql, path = "counters/reset.sql"),
        (NAMED, R::Resize) => text!(sql, path = "counters/resize.sql"),
        (NAMED, R::Delete) => text!(sql, path = "counters/delete.sql"),
        (_, R::Drop) => text!(sql, path = "counters/drop.sql"),
        (NAMED, R::Get) => text!(sql, path = "counters/get.sql"),
        (RECORDS, R::Steps) => text!(sql, path = "cluster/record_steps.sql"),
        (RECORDS, R::Increment) => text!(sql, path = "records/increment.sql"),
        (RECORDS, R::Add) => text!(sql, path = "records/add.sql"),
        (_, R::AddMany) => text!(sql, path = "records/add_many.sql"),
        (RECORDS, R::Reset) if of_column => text!(sql, path = "column/reset.sql"),
        (RECORDS, R::Reset) => text!(sql, path = "records/reset.sql"),
        (_, R::Compact) if of_column => text!(sql, path = "column/compact.sql"),
        (_, R::Compact) => text!(sql, path = "records/compact.sql"),
        (_, R::Begin) => text!(sql, path = "records/begin.sql"),
        (_, R::Maintain) if of_column => text!(sql, path = "column/maintain.sql"),
        (_, R::Maintain) => text!(sql, path = "records/maintain.sql"),
        (_, R::Move) => text!(sql, path = "column/move.sql"),
        (_, R::Rollup) => text!(sql, path = "column/rollup.sql"),
        (RECORDS, R::Delete) => text!(sql, path = "records/delete.sql"),
        (RECORDS, R::Get) if of_column => text!(sql, path = "column/get.sql"),
        (RECORDS, R::Get) => text!(sql, path = "records/get.sql"),
        (_, of) => unreachable!("{of:?} is not in such a package"),
    }
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

/// A file that every package has, such as `create_procedures.sql`.
pub fn file(package: &Package, name: &str) -> String {
    let mut files = files(package).into_iter();
    files.find(|file| file.name == name).expect("every package has it").text
}

/// A SELECT that returns how the table in the current database, or that of the column, differs: a sentence, or NULL.
pub fn table_check(package: &Package) -> String {
    text!(Sql::of(package, Task::Replace), path = "files/_table_check.sql")
}

/// The name of a routine that a script creates, calls and drops, and of a table that is about to be dropped.
pub fn temporary(package: &Package) -> Ident {
    Ident::new(format!("_{}script", package.options.prefix.name())).expect("shorter than the names of other routines")
}

/// What the scripts and the program say of a table that is not that of the package.
pub(super) const TABLE_DIFFERS: &str =
    "the table is missing or differs: source create_tables.sql, or compare it with SHOW CREATE TABLE and ALTER it";
pub(super) const COLUMN_DIFFERS: &str =
    "the column is missing, generated or not an integer, or its table is not InnoDB or has another key: render again";
pub(super) const KEY_NOT_UNIQUE: &str =
    "the key is not unique: a roll-up would add the counts to several rows. Render it with a unique key";
pub(super) const NOT_KEPT: &str =
    "each roll-up would change a column with ON UPDATE CURRENT_TIMESTAMP: render again with it in --keep";
