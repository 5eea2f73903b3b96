//! The files of a package: the scripts that a DBA sources, and the plain statements.

use askama::Template;

use super::plan::{Task, plan, script};
use super::sql::Sql;
use super::{filters, fragment};
use crate::package::{
    BATCH, DESCRIPTION_MAX, ENTRIES_MAX, Ident, KeyColumn, KeyType, MAX_SLOTS, NAME_MAX, Options, Package,
    Routine as R, Security,
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
                $($pattern $(if $condition(&sql.package.options))? => {
                    #[derive(Template)]
                    #[template(path = $path)]
                    #[allow(dead_code, reason = "few templates use both")]
                    struct Text<'a> { sql: Sql<'a>, o: &'a Options }
                    fragment(&Text { sql, o: &sql.package.options })
                })*
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
            let o = &package.options;
            let script = &Script { package };
            $(if $condition(o) {
                #[derive(Template)]
                #[template(path = $path)]
                #[allow(dead_code, reason = "few templates use all")]
                struct Text<'a> {
                    script: &'a Script<'a>,
                    package: &'a Package,
                    sql: Sql<'a>,
                    o: &'a Options,
                }
                let sql = Sql { package, name: &o.table, replaces: false };
                files.push(File { name: $name, text: text(&Text { script, package, sql, o }) });
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
    #[derive(Template)]
    #[template(path = "files/_table_check.sql")]
    struct Check<'a> {
        script: &'a Script<'a>,
        o: &'a Options,
    }
    let (script, o) = (&Script { package }, &package.options);
    fragment(&Check { script, o })
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

/// Renders a file, which ends with one line end.
fn text(template: &impl Template) -> String {
    let mut text = fragment(template);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// A package as its files see it.
pub(super) struct Script<'a> {
    pub(super) package: &'a Package,
}

impl Script<'_> {
    /// The first line of each file.
    pub(super) fn banner(&self) -> String {
        let arguments = self.package.options.arguments();
        format!("-- Generated by slotted {VERSION}. To change it: slotted generate {arguments}")
    }

    /// The steps of a task as the client gets them.
    fn steps(&self, task: Task) -> String {
        script(&plan(self.package, task))
    }

    pub(super) fn temporary(&self) -> Ident {
        temporary(self.package)
    }

    /// The columns of the table: the name, the type and the collation as information_schema has them, and whether NULL is allowed.
    pub(super) fn columns(&self) -> Vec<String> {
        let o = &self.package.options;
        let others: &[&str] = match o.is_named() {
            true => &["counter_id int NOT NULL", "start_date datetime NOT NULL", "counter bigint NOT NULL"],
            false => &["slot smallint unsigned NOT NULL", "count bigint NOT NULL"],
        };
        let description = o.is_named().then(|| format!("description varchar({DESCRIPTION_MAX}) {}", o.collation()));
        let others = others.iter().map(|&column| column.to_owned());
        self.key_columns().into_iter().chain(others).chain(description).collect()
    }

    /// The same of the key.
    pub(super) fn key_columns(&self) -> Vec<String> {
        let o = &self.package.options;
        let column = |column: &KeyColumn| {
            let collation = if column.kind.is_text() { format!(" {}", o.collation()) } else { String::new() };
            format!("{} {}{collation} NOT NULL", column.name.name(), column.kind.text().to_lowercase())
        };
        o.key().iter().map(column).collect()
    }

    /// The columns that a roll-up assigns.
    fn assigned(&self) -> String {
        let o = &self.package.options;
        let column = o.column().into_iter().map(|column| &column.column);
        let names = column.chain(o.keep()).map(Ident::to_string);
        names.collect::<Vec<_>>().join(", ")
    }

    /// The names of the columns of the primary key, with commas between them.
    pub(super) fn primary_key(&self) -> String {
        let slot = if self.package.options.is_named() { "counter_id" } else { "slot" };
        let key = self.package.options.key().iter().map(|column| column.name.name());
        key.chain([slot]).collect::<Vec<_>>().join(",")
    }
}
