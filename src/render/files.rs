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

/// The template of each routine, if necessary with a condition for the package.
macro_rules! templates {
    ($($pattern:pat $(if $condition:expr)? => $path:literal,)*) => {
        /// The CREATE statement of a routine of the package.
        pub(super) fn routine(sql: Sql<'_>, of: R) -> String {
            match (sql.package.options.is_named(), of) {
                $($pattern $(if $condition(&sql.package.options))? => text!(sql, path = $path),)*
                (_, of) => unreachable!("{of:?} is not in such a package"),
            }
        }
    };
}

const NAMED: bool = true;
const RECORDS: bool = false;
fn column(options: &Options) -> bool {
    options.column().is_some()
}

templates! {
    (_, R::Fail) => "counters/fail.sql",
    (NAMED, R::MustExist) => "counters/must_exist.sql",
    (NAMED, R::AddElsewhere) => "counters/add_elsewhere.sql",
    (NAMED, R::Steps) => "cluster/counter_steps.sql",
    (NAMED, R::Setup) => "counters/setup.sql",
    (NAMED, R::Increment) => "counters/increment.sql",
    (NAMED, R::Add) => "counters/add.sql",
    (_, R::Take) => "bounded/take.sql",
    (_, R::Collect) => "bounded/collect.sql",
    (_, R::TakeElsewhere) => "bounded/take_elsewhere.sql",
    (NAMED, R::Reset) => "counters/reset.sql",
    (NAMED, R::Resize) => "counters/resize.sql",
    (NAMED, R::Delete) => "counters/delete.sql",
    (_, R::Drop) => "counters/drop.sql",
    (NAMED, R::Get) => "counters/get.sql",
    (RECORDS, R::Steps) => "cluster/record_steps.sql",
    (RECORDS, R::Increment) => "records/increment.sql",
    (RECORDS, R::Add) => "records/add.sql",
    (_, R::AddMany) => "records/add_many.sql",
    (RECORDS, R::Reset) if column => "column/reset.sql",
    (RECORDS, R::Reset) => "records/reset.sql",
    (_, R::Compact) if column => "column/compact.sql",
    (_, R::Compact) => "records/compact.sql",
    (_, R::Begin) => "records/begin.sql",
    (_, R::Maintain) if column => "column/maintain.sql",
    (_, R::Maintain) => "records/maintain.sql",
    (_, R::Move) => "column/move.sql",
    (_, R::Rollup) => "column/rollup.sql",
    (RECORDS, R::Delete) => "records/delete.sql",
    (RECORDS, R::Get) if column => "column/get.sql",
    (RECORDS, R::Get) => "records/get.sql",
}

/// The files: the name, the template and the packages that contain it.
macro_rules! files {
    ($($name:literal $path:literal if $condition:expr;)*) => {
        /// All files of a package.
        pub fn files(package: &Package) -> Vec<File> {
            let mut files = Vec::new();
            let sql = Sql::of(package, Task::Create);
            $(if $condition(&package.options) {
                // A file ends with one line end.
                let text = text!(sql, path = $path).trim_end().to_owned() + "\n";
                files.push(File { name: $name, text });
            })*
            files
        }
    };
}

files! {
    "setup.sql" "files/setup.sql" if always;
    "create_tables.sql" "files/create_tables.sql" if always;
    "create_procedures.sql" "files/create_procedures.sql" if always;
    "uninstall.sql" "files/uninstall.sql" if always;
    "grants.sql" "files/grants.sql" if always;
    "accounts.sql" "files/accounts.sql" if |o: &Options| o.definer.is_some();
    "test_insertdata.sql" "files/test_insertdata.sql" if Options::is_named;
    "queries.sql" "files/queries_of_counters.sql" if Options::is_named;
    "queries.sql" "files/queries_of_records.sql" if |o: &Options| !o.is_named();
}

fn always(_: &Options) -> bool {
    true
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
