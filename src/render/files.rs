//! The files of a package: the scripts that a DBA sources, and the plain statements.

use askama::Template;

use super::sql::Sql;
use super::{filters, fragment};
use crate::package::{
    BATCH, DESCRIPTION_MAX, ENTRIES_MAX, Ident, KeyColumn, KeyType, Kind, MAX_SLOTS, NAME_MAX, Options, Package,
    Routine as R, Security,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

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

/// A template each, and what renders it: a condition for the package, and for the routine that it creates.
macro_rules! templates {
    ($($(#[$doc:meta])* fn $name:ident { $($pattern:pat $(if $condition:expr)? => $path:literal,)* })*) => {
        $($(#[$doc])*
        fn $name(sql: Sql<'_>, of: (Kind, bool, R)) -> String {
            match of {
                $($pattern $(if $condition(&sql.package.options))? => {
                    #[derive(Template)]
                    #[template(path = $path)]
                    #[allow(dead_code, reason = "few templates use both")]
                    struct Text<'a> { sql: Sql<'a>, o: &'a Options }
                    fragment(&Text { sql, o: &sql.package.options })
                })*
                (kind, ..) => unreachable!("{} has no such template", kind.name()),
            }
        })*
    };
}

use Kind::{Counters, SlottedCounters as Records};
fn column(options: &Options) -> bool {
    options.column.is_some()
}

templates! {
    /// The CREATE statement of a routine of the package.
    fn routine {
        (_, _, R::Fail) => "counters/fail.sql",
        (Counters, _, R::MustExist) => "counters/must_exist.sql",
        (Counters, _, R::AddElsewhere) => "counters/add_elsewhere.sql",
        (Counters, _, R::Steps) => "cluster/counter_steps.sql",
        (Counters, _, R::Setup) => "counters/setup.sql",
        (Counters, _, R::Increment) => "counters/increment.sql",
        (Counters, _, R::Add) => "counters/add.sql",
        (_, _, R::Take) => "bounded/take.sql",
        (_, _, R::Collect) => "bounded/collect.sql",
        (_, _, R::TakeElsewhere) => "bounded/take_elsewhere.sql",
        (Counters, _, R::Reset) => "counters/reset.sql",
        (Counters, _, R::Resize) => "counters/resize.sql",
        (Counters, _, R::Delete) => "counters/delete.sql",
        (_, _, R::Drop) => "counters/drop.sql",
        (Counters, _, R::Get) => "counters/get.sql",
        (Records, _, R::Steps) => "cluster/record_steps.sql",
        (Records, _, R::Increment) => "records/increment.sql",
        (Records, _, R::Add) => "records/add.sql",
        (_, _, R::AddMany) => "records/add_many.sql",
        (Records, _, R::Reset) if column => "column/reset.sql",
        (Records, _, R::Reset) => "records/reset.sql",
        (_, _, R::Compact) if column => "column/compact.sql",
        (_, _, R::Compact) => "records/compact.sql",
        (_, _, R::Begin) => "records/begin.sql",
        (_, _, R::Maintain) if column => "column/maintain.sql",
        (_, _, R::Maintain) => "records/maintain.sql",
        (_, _, R::Move) => "column/move.sql",
        (_, _, R::Rollup) => "column/rollup.sql",
        (Records, _, R::Delete) => "records/delete.sql",
        (Records, _, R::Get) if column => "column/get.sql",
        (Records, _, R::Get) => "records/get.sql",
    }
}

/// The files: the name, the template and the packages that contain it.
macro_rules! files {
    ($($name:literal $path:literal if $condition:expr;)*) => {
        /// All files of a package. `with_table`: uninstall.sql also drops the table, unless it has counts.
        pub(super) fn all(package: &Package, with_table: bool) -> Vec<File> {
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
                    with_table: bool,
                }
                let sql = Sql { package, name: &o.table, replaces: false };
                files.push(File { name: $name, text: text(&Text { script, package, sql, o, with_table }) });
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
    "test_insertdata.sql" "files/test_insertdata.sql" if |o: &Options| o.kind == Counters;
    "queries.sql" "files/queries_of_counters.sql" if |o: &Options| o.kind == Counters;
    "queries.sql" "files/queries_of_records.sql" if |o: &Options| o.kind == Records;
}

/// All files of a package.
pub fn files(package: &Package) -> Vec<File> {
    all(package, false)
}

fn always(_: &Options) -> bool {
    true
}

/// A file that every package has, such as `create_procedures.sql`.
pub fn file(package: &Package, name: &str) -> String {
    let mut files = files(package).into_iter();
    files.find(|file| file.name == name).expect("every package has it").text
}

/// The one script that creates everything, `setup.sql`.
pub fn setup(package: &Package) -> String {
    file(package, "setup.sql")
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

/// What the scripts and the program say of a table that is not that of the package.
const TABLE_DIFFERS: &str =
    "the table is missing or differs: source create_tables.sql, or compare it with SHOW CREATE TABLE and ALTER it";
const COLUMN_DIFFERS: &str =
    "the column is missing, generated or not an integer, or its table is not InnoDB or has another key: render again";
const KEY_NOT_UNIQUE: &str =
    "the key is not unique: a roll-up would add the counts to several rows. Render it with a unique key";
const NOT_KEPT: &str =
    "each roll-up would change a column with ON UPDATE CURRENT_TIMESTAMP: render again with it in --keep";

/// Renders a file, which ends with one line end.
fn text(template: &impl Template) -> String {
    let mut text = fragment(template);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// A package as its files see it.
struct Script<'a> {
    package: &'a Package,
}

impl Script<'_> {
    /// The command that renders the package again.
    fn command(&self) -> String {
        format!("slotted generate {}", self.package.options.arguments())
    }

    /// The statements that create or replace the procedures, without a delimiter.
    fn procedures(&self, replaces: &bool) -> Vec<String> {
        let all = self.package.routines().filter(|(routine, _)| *routine != R::Get);
        all.map(|one| self.create(one, *replaces)).collect()
    }

    /// The same of the function, if the package contains it.
    fn function(&self, replaces: &bool) -> Option<String> {
        let get = self.package.routine(R::Get)?;
        Some(self.create((R::Get, get), *replaces))
    }

    fn create(&self, (of, name): (R, &Ident), replaces: bool) -> String {
        let (package, options) = (self.package, &self.package.options);
        routine(Sql { package, name, replaces }, (options.kind, options.bounded, of))
    }

    /// The name of the routine that a script creates, calls and drops.
    fn temporary(&self) -> Ident {
        Ident::new(format!("_{}script", self.package.options.prefix.name()))
            .expect("shorter than the names of other routines")
    }

    /// The columns of the table: the name, the type and the collation as information_schema has them, and whether NULL is allowed.
    fn columns(&self) -> Vec<String> {
        let o = &self.package.options;
        let others: &[&str] = match o.kind {
            Counters => &["counter_id int NOT NULL", "start_date datetime NOT NULL", "counter bigint NOT NULL"],
            Records => &["slot smallint unsigned NOT NULL", "count bigint NOT NULL"],
        };
        let description =
            (o.kind == Counters).then(|| format!("description varchar({DESCRIPTION_MAX}) {} NULL", o.collation()));
        let others = others.iter().map(|&column| column.to_owned());
        self.key_columns().into_iter().chain(others).chain(description).collect()
    }

    /// The same of the key.
    fn key_columns(&self) -> Vec<String> {
        let o = &self.package.options;
        let column = |column: &KeyColumn| {
            let collation = if column.kind.is_text() { format!(" {}", o.collation()) } else { String::new() };
            format!("{} {}{collation} NOT NULL", column.name.name(), column.kind.text().to_lowercase())
        };
        o.key.0.iter().map(column).collect()
    }

    /// The columns that a roll-up assigns.
    fn assigned(&self) -> String {
        let o = &self.package.options;
        let column = o.column.iter().map(|column| &column.column);
        let names = column.chain(&o.keep.0).map(Ident::to_string);
        names.collect::<Vec<_>>().join(", ")
    }

    /// The names of the columns of the primary key, with commas between them.
    fn primary_key(&self) -> String {
        let slot = if self.package.options.kind == Counters { "counter_id" } else { "slot" };
        let key = self.package.options.key.0.iter().map(|column| column.name.name());
        key.chain([slot]).collect::<Vec<_>>().join(",")
    }
}
