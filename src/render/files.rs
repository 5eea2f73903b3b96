//! The files of a package: the scripts that a DBA sources, and the plain statements.

use std::fmt;

use askama::Template;

use super::key::Arguments;
use super::routine::RoutineText;
use super::table::Table;
use super::{filters, fragment};
use crate::package::{Ident, Kind, MAX_SLOTS, Options, Package, Roles, Routine as R, Security, Servers};
use crate::script;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name in the folder of the package.
    pub name: &'static str,
    /// All of it.
    pub text: String,
}

/// What an object of a package is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectKind {
    /// A table with counts.
    Table,
    /// A stored procedure.
    Procedure,
    /// A stored function.
    Function,
    /// An event of the event scheduler.
    Event,
    /// A view.
    View,
}

impl ObjectKind {
    /// The keyword after CREATE and DROP.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Table => "TABLE",
            Self::Procedure => "PROCEDURE",
            Self::Function => "FUNCTION",
            Self::Event => "EVENT",
            Self::View => "VIEW",
        }
    }

    /// Whether it is a procedure or a function.
    pub fn is_routine(self) -> bool {
        matches!(self, Self::Procedure | Self::Function)
    }
}

/// The keyword in lower case.
impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sql().to_lowercase())
    }
}

/// An object of a package, and how a script creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name.
    pub name: Ident,
    /// A part of a script, with DELIMITER.
    text: String,
}

impl Object {
    /// The statements that create it, and before them those that drop it, if the server cannot replace it.
    pub fn statements(&self) -> Vec<String> {
        script::statements(&self.text)
    }
}

/// The kind and the name, such as `procedure counter_add`.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name.name())
    }
}

/// All objects of a package, in the order in which they are created. The view with the version is the last one.
pub fn objects(package: &Package) -> Vec<Object> {
    let table = Table::of(package, Arguments::Parameters);
    let script = Script { package, table };
    let mut objects = vec![Object {
        kind: ObjectKind::Table,
        name: package.options.table.clone(),
        text: script.create_table() + ";",
    }];
    objects.extend(script.routines_and_views());
    let version = objects.iter().position(|object| object.name == package.package);
    let version = objects.remove(version.expect("every package has it"));
    objects.push(version);
    objects
}

/// The sql_mode that the server stores with each routine.
pub const SQL_MODE: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// How long a statement of a script or of an installation waits for transactions that have used an object, in seconds. New calls
/// of the object wait behind it. Source: MySQL manual, "Metadata Locking".
pub const DDL_TIMEOUT: u32 = 2;

/// A package as its files see it.
struct Script<'a> {
    package: &'a Package,
    table: Table<'a>,
}

/// The files: the name, the template, the packages that have it, and where its statements take values from.
macro_rules! files {
    ($($name:literal $path:literal [$($kind:ident)*] $source:ident $(if $condition:ident)?;)*) => {
        /// All files of a package.
        pub fn files(package: &Package) -> Vec<File> {
            let mut files = Vec::new();
            $(if [$(Kind::$kind),*].contains(&package.options.kind) $(&& $condition(&package.options))? {
                #[derive(Template)]
                #[template(path = $path)]
                #[allow(dead_code, reason = "few templates use all three")]
                struct Text<'a> {
                    script: &'a Script<'a>,
                    package: &'a Package,
                    table: Table<'a>,
                }
                let table = Table::of(package, Arguments::$source);
                let script = &Script { package, table };
                files.push(File { name: $name, text: text(&Text { script, package, table }) });
            })*
            files
        }
    };
}

files! {
    "setup.sql" "files/setup.sql" [Counters SlottedCounters] Parameters;
    "create_tables.sql" "files/create_tables.sql" [Counters SlottedCounters] Parameters;
    "create_procedures.sql" "files/create_procedures.sql" [Counters SlottedCounters] Parameters;
    "uninstall.sql" "files/uninstall.sql" [Counters SlottedCounters] Parameters;
    "grants.sql" "files/grants.sql" [Counters SlottedCounters] Parameters;
    "accounts.sql" "files/accounts.sql" [Counters SlottedCounters] Parameters if has_definer;
    "resize.sql" "files/resize.sql" [Counters] Parameters if has_fixed_slots;
    "test_insertdata.sql" "files/test_insertdata.sql" [Counters] Parameters;
    "queries.sql" "files/counter_queries.sql" [Counters] Placeholders;
    "queries.sql" "files/record_queries.sql" [SlottedCounters] Placeholders;
}

fn has_definer(options: &Options) -> bool {
    options.definer.is_some()
}

fn has_fixed_slots(options: &Options) -> bool {
    !options.per_counter()
}

/// A file that every package has, such as `create_procedures.sql`.
pub fn file(package: &Package, name: &str) -> String {
    let mut files = files(package).into_iter();
    files
        .find(|file| file.name == name)
        .expect("every package has it")
        .text
}

/// The one script that creates everything, `setup.sql`.
pub fn setup(package: &Package) -> String {
    file(package, "setup.sql")
}

/// Renders a file, which ends with one line end.
fn text(template: &impl Template) -> String {
    let mut text = fragment(template);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

#[derive(Template)]
#[template(path = "shared/counter_package.sql")]
struct PackageView<'a> {
    package: &'a Package,
}

#[derive(Template)]
#[template(path = "counters/counter_totals.sql")]
struct Totals<'a> {
    package: &'a Package,
    table: Table<'a>,
}

#[derive(Template)]
#[template(path = "slotted_counters/slotted_counter_totals.sql")]
struct RecordTotals<'a> {
    package: &'a Package,
    table: Table<'a>,
}

/// Drops and creates a routine.
#[derive(Template)]
#[template(path = "files/_routine.sql")]
struct Replace {
    drop: String,
    create: String,
}

/// Drops a routine before it is created, if the server cannot replace it.
fn drop_first(package: &Package, kind: &str, name: &Ident) -> String {
    #[derive(Template)]
    #[template(path = "shared/_drop.sql")]
    struct Drop<'a> {
        package: &'a Package,
        kind: &'a str,
        name: &'a Ident,
    }
    fragment(&Drop { package, kind, name })
}

impl Script<'_> {
    /// Drops what other options of the same prefix may have created.
    fn leftovers(&self) -> String {
        #[derive(Template)]
        #[template(path = "files/_leftovers.sql")]
        struct Leftovers<'a> {
            package: &'a Package,
        }
        fragment(&Leftovers {
            package: self.package,
        })
    }

    /// The command that renders the package again.
    fn command(&self) -> String {
        format!("slotted generate {}", self.package.options.arguments())
    }

    /// The CREATE TABLE statement.
    fn create_table(&self) -> String {
        match self.package.options.kind {
            Kind::Counters => self.table.create_counters(),
            Kind::SlottedCounters => self.table.create_slotted_counters(),
        }
    }

    /// The roles of `grants.sql`, and whether it is the role of administrators.
    fn grantees(&self) -> [(Ident, bool); 2] {
        let Roles { application, admin } = self.package.roles();
        [(application, false), (admin, true)]
    }

    /// The routines that `uninstall.sql` drops before the last roll-up, so that nothing counts after it. All of them without one.
    fn dropped_first(&self) -> Vec<(R, &Ident)> {
        let all = self.package.routines();
        all.filter(|(routine, _)| self.last_place(*routine).is_none())
            .collect()
    }

    /// The routines that it drops after the last roll-up, the roll-up first: as long as it exists, it can be called.
    fn dropped_last(&self) -> Vec<(R, &Ident)> {
        let mut routines: Vec<_> = self.package.routines().collect();
        routines.retain(|(routine, _)| self.last_place(*routine).is_some());
        routines.sort_by_key(|(routine, _)| self.last_place(*routine));
        routines
    }

    /// The place of a routine that is dropped after the last roll-up. With reset and get, a total that the column rejects can be corrected.
    fn last_place(&self, routine: R) -> Option<usize> {
        self.package.routine(R::Rollup)?;
        let last = [R::Rollup, R::Reset, R::Get];
        let private = routine.is_private().then_some(last.len());
        last.iter().position(|one| *one == routine).or(private)
    }

    /// The name of the routine that exists while `uninstall.sql` runs.
    fn last_rollup(&self) -> Ident {
        Ident::new(format!("_{}last", self.package.options.prefix.name()))
            .expect("shorter than the names of other routines")
    }

    /// Every view and routine as a script creates it. The function comes last: a server may reject it for an
    /// account without privileges (1418, 1419), and then all the rest is there.
    fn routines_and_views(&self) -> Vec<Object> {
        let (package, table) = (self.package, self.table);
        let replace = |(routine, name): (R, &Ident)| {
            let errors = routine.errors(&package.options);
            let create = RoutineText {
                package,
                of: routine,
                name,
                errors,
                table,
            }
            .create(routine);
            let drop = drop_first(package, routine.kind(), name);
            Object {
                kind: match routine {
                    R::Get => ObjectKind::Function,
                    _ => ObjectKind::Procedure,
                },
                name: name.clone(),
                text: fragment(&Replace { drop, create }),
            }
        };
        let (function, procedures): (Vec<_>, Vec<_>) =
            package.routines().partition(|(routine, _)| *routine == R::Get);
        let mut objects = Vec::new();
        let view = |name: &Ident, text| Object {
            kind: ObjectKind::View,
            name: name.clone(),
            text,
        };
        let totals = match package.options.kind {
            Kind::Counters => fragment(&Totals { package, table }),
            Kind::SlottedCounters => fragment(&RecordTotals { package, table }),
        };
        objects.push(view(&package.totals, totals));
        objects.push(view(&package.package, fragment(&PackageView { package })));
        objects.extend(procedures.into_iter().map(replace));
        objects.extend(function.into_iter().map(replace));
        objects
    }

    /// The same as a part of a script. Routines that follow each other share one DELIMITER.
    fn routines_and_views_text(&self) -> String {
        let objects = self.routines_and_views();
        let texts: Vec<_> = objects.iter().map(|object| object.text.trim_end()).collect();
        texts.join("\n\n").replace("DELIMITER ;\n\nDELIMITER ;;\n", "")
    }
}
