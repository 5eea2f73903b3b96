//! From a package to its files: the askama structs and what they ask of the model. Pure: no I/O, no clock, so the
//! same options give the same bytes.

use askama::Template;

use crate::package::{
    self, BATCH, DESCRIPTION_MAX, Detail, Ident, Interval, KeyColumn, KeyType, Kind, MAX_SLOTS, MESSAGE_MAX,
    NAME_MAX, NAME_PARAMETER, Options, Package, PackageError as E, Pick, RECORDS_MAX, Rollup, Routine,
    SECONDS_MAX, Security, Signal, Slots,
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

/// All files of a package.
pub fn files(package: &Package) -> Vec<File> {
    let c = &Context::of(package);
    let file = |name, text| File { name, text };
    let mut files = vec![
        file("setup.sql", setup(package)),
        file("create_tables.sql", text(&CreateTables { c })),
        file("create_procedures.sql", text(&CreateProcedures { c })),
        file("uninstall.sql", text(&Uninstall { c })),
        file("grants.sql", text(&Grants { c })),
    ];
    match package.options.kind {
        Kind::Counters => files.push(file("test_insertdata.sql", text(&TestInsertdata { c }))),
        Kind::SlottedCounters => {
            let c = &Context {
                plain: true,
                ..Context::of(package)
            };
            files.push(file("queries.sql", text(&Queries { c })));
        }
    }
    files
}

/// The one script that creates everything, `setup.sql`.
pub fn setup(package: &Package) -> String {
    text(&Setup {
        c: &Context::of(package),
    })
}

/// Renders; that ends with one line end, as a text file does.
fn text(template: &impl Template) -> String {
    let mut text = fragment(template);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Renders a part of a statement.
fn fragment(template: &impl Template) -> String {
    template
        .render()
        .expect("a template that has only fields and pure methods renders")
}

/// What every template can ask for.
struct Context<'a> {
    package: &'a Package,
    /// The object that the template creates.
    name: &'a Ident,
    /// What the object signals.
    errors: &'a [E],
    /// Whether arguments are those of a prepared statement, not parameters of a routine.
    plain: bool,
}

/// A struct a template, each with the context only.
macro_rules! templates {
    ($($name:ident $path:tt)*) => {
        $(#[derive(Template)]
        #[template(path = $path)]
        struct $name<'a> { c: &'a Context<'a> })*
    };
}

templates! {
    Setup "setup.sql"
    CreateTables "create_tables.sql"
    CreateProcedures "create_procedures.sql"
    Uninstall "uninstall.sql"
    Grants "grants.sql"
    TestInsertdata "test_insertdata.sql"
    Queries "queries.sql"
    Counters "counters.sql"
    CounterSetup "counter_setup.sql"
    CounterIncrement "counter_increment.sql"
    CounterAdd "counter_add.sql"
    CounterReset "counter_reset.sql"
    CounterResize "counter_resize.sql"
    CounterCompact "counter_compact.sql"
    SlottedCounters "slotted_counters.sql"
    FirstRow "_first_row.sql"
    CounterDelete "counter_delete.sql"
    CounterGet "counter_get.sql"
    CounterTotals "counter_totals.sql"
    CounterPackage "counter_package.sql"
}

#[derive(Template)]
#[template(path = "_signal.sql")]
struct SignalStatement {
    signal: Signal,
}

#[derive(Template)]
#[template(path = "_check_key.sql")]
struct CheckKey<'a> {
    c: &'a Context<'a>,
}

#[derive(Template)]
#[template(path = "_refuse_key.sql")]
struct RefuseKey<'a> {
    c: &'a Context<'a>,
}

#[derive(Template)]
#[template(path = "_count.sql")]
struct Count<'a> {
    c: &'a Context<'a>,
    amount: &'a str,
    check: bool,
}

#[derive(Template)]
#[template(path = "_last_slot.sql")]
struct LastSlot<'a> {
    c: &'a Context<'a>,
    variable: &'a str,
}

#[derive(Template)]
#[template(path = "_update_slot.sql")]
struct UpdateSlot<'a> {
    c: &'a Context<'a>,
    amount: &'a str,
    slot: &'a str,
}

#[derive(Template)]
#[template(path = "_upsert.sql")]
struct Upsert<'a> {
    c: &'a Context<'a>,
    amount: &'a str,
    slot: &'a str,
}

#[derive(Template)]
#[template(path = "_fold.sql")]
struct Fold<'a> {
    c: &'a Context<'a>,
    last: &'a str,
}

#[derive(Template)]
#[template(path = "_over_snapshot.sql")]
struct OverSnapshot {
    explained: bool,
}

#[derive(Template)]
#[template(path = "_numbers.sql")]
struct Numbers<'a> {
    c: &'a Context<'a>,
    limit: &'a str,
}

#[derive(Template)]
#[template(path = "_digits.sql")]
struct Digits<'a> {
    alias: &'a str,
}

#[derive(Template)]
#[template(path = "counter_compact_idle.sql")]
struct CounterCompactIdle<'a> {
    c: &'a Context<'a>,
    compact: &'a Ident,
}

#[derive(Template)]
#[template(path = "counter_rollup.sql")]
struct CounterRollup<'a> {
    c: &'a Context<'a>,
    rollup: &'a Rollup,
    record: &'a KeyColumn,
}

#[derive(Template)]
#[template(path = "counter_rollup_event.sql")]
struct CounterRollupEvent<'a> {
    c: &'a Context<'a>,
    every: &'a Interval,
}

#[derive(Template)]
#[template(path = "_routine.sql")]
struct RoutineScript<'a> {
    file: &'a str,
    kind: &'a str,
    name: &'a Ident,
    create: String,
}

/// The CREATE statement of a routine and the template that it comes from.
fn create(c: &Context<'_>, routine: Routine) -> (&'static str, String) {
    match routine {
        Routine::Setup => ("counter_setup.sql", fragment(&CounterSetup { c })),
        Routine::Increment => ("counter_increment.sql", fragment(&CounterIncrement { c })),
        Routine::Add => ("counter_add.sql", fragment(&CounterAdd { c })),
        Routine::Reset => ("counter_reset.sql", fragment(&CounterReset { c })),
        Routine::Resize => ("counter_resize.sql", fragment(&CounterResize { c })),
        Routine::Compact => ("counter_compact.sql", fragment(&CounterCompact { c })),
        Routine::CompactIdle => {
            let compact = c
                .package
                .routine(Routine::Compact)
                .expect("every package with one has the other");
            (
                "counter_compact_idle.sql",
                fragment(&CounterCompactIdle { c, compact }),
            )
        }
        Routine::Delete | Routine::Drop => ("counter_delete.sql", fragment(&CounterDelete { c })),
        Routine::Get => ("counter_get.sql", fragment(&CounterGet { c })),
    }
}

impl<'a> Context<'a> {
    /// For what belongs to the package as a whole.
    fn of(package: &'a Package) -> Self {
        Self {
            package,
            name: &package.options.table,
            errors: &[],
            plain: false,
        }
    }

    fn options(&self) -> &'a Options {
        &self.package.options
    }

    fn table(&self) -> &'a Ident {
        &self.options().table
    }

    fn per_counter(&self) -> bool {
        self.options().slots == Slots::PerCounter
    }

    fn random(&self) -> bool {
        self.options().pick == Pick::Random
    }

    /// The number of slots in an increment: what it looked up, or the hard-coded number.
    fn slots(&self) -> String {
        match self.options().slots {
            Slots::PerCounter => "v_slots".into(),
            Slots::Fixed(n) => n.to_string(),
        }
    }

    /// A string type with everything written out: with the database's default, a comparison of column and
    /// parameter would fail (1267) or could not use the key.
    fn name_type(&self, characters: u32) -> String {
        format!(
            "VARCHAR({characters}) CHARACTER SET utf8mb4 COLLATE {}",
            self.options().collation
        )
    }

    /// Goes before a change that does not depend on what the caller's transaction has read.
    ///
    /// MariaDB from 11.6.2 refuses it otherwise (1020, and the whole transaction is gone) where another
    /// connection has changed the row since this transaction's first SELECT; a comment to every other server.
    fn over_snapshot(&self) -> String {
        fragment(&OverSnapshot {
            explained: !self.plain,
        })
    }

    /// Refuses an argument for a key column that cannot be taken.
    fn check_key(&self) -> String {
        fragment(&CheckKey { c: self })
    }

    /// Says why there are no rows by a name: it cannot be one, or nobody has set it up.
    fn refuse_key(&self) -> String {
        fragment(&RefuseKey { c: self })
    }

    fn signal(&self, error: E) -> String {
        debug_assert!(
            self.errors.contains(&error),
            "{} does not list {error:?}",
            self.name
        );
        fragment(&SignalStatement {
            signal: package::signal(self.options(), self.name.name(), error, ""),
        })
    }

    fn signal_key(&self, error: E, column: &KeyColumn) -> String {
        let signal = package::signal(self.options(), self.name.name(), error, column.name.name());
        fragment(&SignalStatement { signal })
    }

    /// Whether counters are found by the key of a record, and a slot is made when it is first written.
    fn keyed(&self) -> bool {
        self.options().kind == Kind::SlottedCounters
    }

    fn package_name(&self) -> &'static str {
        self.options().kind.name()
    }

    /// What a manual calls that which is counted.
    fn subject(&self) -> &'static str {
        if self.keyed() { "record" } else { "counter" }
    }

    fn keys(&self) -> &'a [KeyColumn] {
        &self.options().key.0
    }

    /// The columns of the key, in the table or behind an alias with its dot, or each on a line of its own.
    fn key_columns(&self, line: &str) -> String {
        let names: Vec<_> = self.keys().iter().map(|column| column.name.typed()).collect();
        names.join(&if line.is_empty() {
            ", ".to_owned()
        } else {
            format!(",{line}")
        })
    }

    fn argument(&self, column: &KeyColumn) -> String {
        if self.plain {
            "?".to_owned()
        } else {
            column.parameter.typed()
        }
    }

    fn key_arguments(&self) -> String {
        let arguments: Vec<_> = self.keys().iter().map(|column| self.argument(column)).collect();
        arguments.join(", ")
    }

    /// The names of the key columns, for a comment.
    fn key_names(&self) -> String {
        self.keys()
            .iter()
            .map(|column| column.name.plain())
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// A local variable for a key column. Its name is as long as that of the parameter, which fits.
    fn key_variable(&self, column: &KeyColumn) -> String {
        Ident::new(format!("v_{}", column.name.name()))
            .expect("p_ fits")
            .typed()
    }

    fn key_variables(&self) -> String {
        self.keys()
            .iter()
            .map(|column| self.key_variable(column))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// As [`key_is`](Self::key_is), for the variables.
    fn key_is_variable(&self) -> String {
        let is = |column: &KeyColumn| format!("{} = {}", column.name.typed(), self.key_variable(column));
        self.keys().iter().map(is).collect::<Vec<_>>().join("\n   AND ")
    }

    /// The slot as an expression, on a server that is no cluster.
    fn slot_number(&self) -> String {
        let first = self.counted_from();
        let slots = self.slots();
        if self.random() {
            format!("{first}FLOOR(RAND() * {slots})")
        } else {
            format!("{first}MOD(CONNECTION_ID(), {slots})")
        }
    }

    fn last_slot_number(&self) -> u32 {
        self.options().setup_slots() - 1
    }

    /// The key column that a roll-up finds rows by.
    fn record(&self, rollup: &Rollup) -> &'a KeyColumn {
        rollup
            .record(&self.options().key)
            .expect("checked with the options")
    }

    /// The condition for the records of a roll-up, behind a WHERE that has one space before it.
    fn rollup_same_alone(&self, rollup: &Rollup) -> String {
        let is = |(name, value): &(Ident, package::Value)| format!("{} = {}", name.typed(), value.sql());
        rollup.same.iter().map(is).collect::<Vec<_>>().join("\n   AND ")
    }

    /// The same with an AND for what follows.
    fn rollup_same(&self, rollup: &Rollup) -> String {
        if rollup.same.is_empty() {
            String::new()
        } else {
            self.rollup_same_alone(rollup) + "\n   AND "
        }
    }

    /// A key column's value as JSON can have it.
    fn as_json(&self, column: &KeyColumn, value: &str) -> String {
        match column.kind {
            KeyType::Binary(..) => format!("HEX({value})"),
            _ => value.to_owned(),
        }
    }

    /// The type of what [`as_json`](Self::as_json) gives.
    fn json_type(&self, column: &KeyColumn) -> String {
        match column.kind {
            KeyType::Binary(_, bytes) => format!("VARCHAR({})", 2 * bytes),
            KeyType::Text(_, characters) => format!("VARCHAR({characters})"),
            _ => column.kind.text(),
        }
    }

    /// The value back from JSON, to be compared with a column of the application's table.
    fn out_of_json(&self, column: &KeyColumn, value: &str) -> String {
        match column.kind {
            KeyType::Binary(..) => format!("UNHEX({value})"),
            KeyType::Text(..) => format!(
                "CONVERT({value} USING utf8mb4) COLLATE {}",
                self.options().collation
            ),
            _ => value.to_owned(),
        }
    }

    fn rollup_same_text(&self, rollup: &Rollup) -> String {
        let same = self.rollup_same_alone(rollup).replace("\n  ", "");
        if same.is_empty() {
            same
        } else {
            format!(" with {same}")
        }
    }

    /// The condition for the rows of one counter, behind a WHERE that has one space before it.
    fn key_is(&self, alias: &str) -> String {
        let is = |column: &KeyColumn| format!("{alias}{} = {}", column.name.typed(), self.argument(column));
        self.keys().iter().map(is).collect::<Vec<_>>().join("\n   AND ")
    }

    /// A condition that is true where an argument for a key column cannot be taken.
    fn key_wrong(&self) -> String {
        let wrong = |column: &KeyColumn| {
            let null = format!("{} IS NULL", column.parameter.typed());
            std::iter::once(null).chain(column.misfit()).collect::<Vec<_>>()
        };
        self.keys()
            .iter()
            .flat_map(wrong)
            .collect::<Vec<_>>()
            .join("\n  OR ")
    }

    /// The opposite, true where every argument can be taken.
    fn key_fits(&self) -> String {
        let fits = |column: &KeyColumn| {
            column
                .fits()
                .unwrap_or_else(|| format!("{} IS NOT NULL", column.parameter.typed()))
        };
        self.keys().iter().map(fits).collect::<Vec<_>>().join("\n  AND ")
    }

    /// For each argument that may have been cut: that it is longer than its column.
    fn or_key_cut(&self) -> String {
        let cut = self.keys().iter().filter_map(KeyColumn::cut);
        cut.map(|condition| format!(" OR {condition}")).collect()
    }

    /// The parameters that name a counter, one a line, without a comma at the end.
    fn key_parameters(&self, mode: &str) -> String {
        let parameter = |column: &KeyColumn| {
            format!(
                "  {mode}{} {}",
                column.parameter.typed(),
                self.with_collation(column, column.kind.parameter())
            )
        };
        self.keys().iter().map(parameter).collect::<Vec<_>>().join(",\n")
    }

    fn column_type(&self, column: &KeyColumn) -> String {
        self.with_collation(column, column.kind.text())
    }

    fn with_collation(&self, column: &KeyColumn, name: String) -> String {
        if column.kind.is_text() {
            format!(
                "{name} CHARACTER SET utf8mb4 COLLATE {}",
                self.options().collation
            )
        } else {
            name
        }
    }

    /// A parameter in a manual, up to where its description begins.
    fn manual(&self, parameter: &str) -> String {
        let width = self
            .keys()
            .iter()
            .map(|column| column.parameter.typed().chars().count())
            .max()
            .unwrap_or(0);
        format!("  {parameter:width$}  ", width = width.max("p_restart".len()))
    }

    fn key_manual(&self) -> String {
        let line = |column: &KeyColumn| {
            let what = if self.keyed() {
                "which record"
            } else {
                "the name of the counter"
            };
            self.manual(&column.parameter.typed()) + what
        };
        self.keys().iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Arguments that name a counter in an example.
    fn key_example(&self) -> String {
        let examples = ["123", "456", "789"];
        let example = |(column, number): (&KeyColumn, &str)| match column.kind {
            KeyType::Name => "'downloads'".to_owned(),
            KeyType::Integer(_, _, most) => if most < 1000 { "12" } else { number }.to_owned(),
            KeyType::Text(..) => "'/'".to_owned(),
            KeyType::Binary("BINARY", n) => format!("REPEAT('x', {n})"),
            KeyType::Binary(..) => "'x'".to_owned(),
        };
        self.keys()
            .iter()
            .zip(examples.into_iter().cycle())
            .map(example)
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn slot_column(&self) -> &'static str {
        if self.keyed() { "slot" } else { "counter_id" }
    }

    fn count_column(&self) -> &'static str {
        // As in seeds/000; quoted, because it is also the name of a function.
        if self.keyed() { "`count`" } else { "counter" }
    }

    fn first_slot(&self) -> &'static str {
        if self.keyed() { "0" } else { "1" }
    }

    /// What a slot's number has before it where slots are counted from 1.
    fn counted_from(&self) -> &'static str {
        if self.keyed() { "" } else { "1 + " }
    }

    fn table_template(&self) -> &'static str {
        if self.keyed() {
            "slotted_counters.sql"
        } else {
            "counters.sql"
        }
    }

    fn upsert(&self, amount: &str, slot: impl AsRef<str>) -> String {
        fragment(&Upsert {
            c: self,
            amount,
            slot: slot.as_ref(),
        })
    }

    /// Makes the row that a sum is put into.
    fn first_row(&self) -> String {
        fragment(&FirstRow { c: self })
    }

    /// Moves the counts of all slots behind `last` into the first one, and deletes those slots.
    fn fold(&self, last: &str) -> String {
        fragment(&Fold { c: self, last })
    }

    /// Reads the highest slot of the counter; the variable stays NULL where there is no counter.
    fn last_slot(&self, variable: &str) -> String {
        fragment(&LastSlot { c: self, variable })
    }

    /// Counts in one slot.
    fn count_in(&self, amount: &str, slot: impl AsRef<str>) -> String {
        if self.keyed() {
            self.upsert(amount, slot)
        } else {
            fragment(&UpdateSlot {
                c: self,
                amount,
                slot: slot.as_ref(),
            })
        }
    }

    /// Picks a slot and counts in it. `check` looks at the key first, in one test with the slot's where it is good.
    fn count(&self, amount: &str, check: bool) -> String {
        fragment(&Count {
            c: self,
            amount,
            check,
        })
    }

    /// The numbers from 1 to `limit` and some more, as a SELECT.
    fn numbers(&self, limit: &str) -> String {
        fragment(&Numbers { c: self, limit })
    }

    fn digits(&self, alias: &str) -> String {
        fragment(&Digits { alias })
    }

    fn create_table(&self) -> String {
        if self.keyed() {
            fragment(&SlottedCounters { c: self })
        } else {
            fragment(&Counters { c: self })
        }
    }

    /// The lines of the manual about errors.
    fn errors(&self) -> String {
        let line = |error: &E| {
            let (head, detail, tail) = error.sentence(self.options());
            let detail = match detail {
                Detail::None => "",
                Detail::Name => "'...'",
                Detail::Slots => "...",
                Detail::Column => "...",
            };
            format!("  {}  {head}{detail}{tail}", error.number())
        };
        self.errors.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn pick_text(&self) -> &'static str {
        match self.options().pick {
            Pick::Connection => {
                "A connection always has the same slot: transactions that count the same twice cannot deadlock."
            }
            Pick::Random => "The slot is picked at random.",
        }
    }

    fn delete_names(&self) -> String {
        match (
            self.package.routine(Routine::Delete),
            self.package.routine(Routine::Drop),
        ) {
            (Some(delete), Some(drop)) => format!("{} and {} are the same.", delete.typed(), drop.typed()),
            _ => "Where none is there, nothing happens.".to_owned(),
        }
    }

    fn banner(&self) -> String {
        format!(
            "-- Generated by slotted {VERSION} from its templates. Do not edit: change a template or the options and run\n\
             --   slotted generate {}",
            self.options().arguments()
        )
    }

    /// Every routine and view as a script creates it. The function comes last: a server may refuse it to an
    /// account without privileges (1418, 1419), and then all the rest is there.
    fn routines_and_views(&self) -> Vec<String> {
        let procedures = self.package.routines().filter(|(r, _)| *r != Routine::Get);
        let function = self.package.routines().filter(|(r, _)| *r == Routine::Get);
        let script = |(routine, name): (Routine, &Ident)| {
            let errors = routine.errors(self.options());
            let c = Context {
                name,
                errors: &errors,
                ..Context::of(self.package)
            };
            let (file, create) = create(&c, routine);
            fragment(&RoutineScript {
                file,
                kind: routine.kind(),
                name,
                create,
            })
        };
        let mut scripts: Vec<String> = procedures.map(script).collect();
        for (rollup, name) in self.package.rollups() {
            let c = &Context {
                name,
                errors: &[E::RecordsOutOfRange],
                ..Context::of(self.package)
            };
            let record = self.record(rollup);
            scripts.push(fragment(&RoutineScript {
                file: "counter_rollup.sql",
                kind: "PROCEDURE",
                name,
                create: fragment(&CounterRollup { c, rollup, record }),
            }));
            if let Some(every) = &self.options().rollup_every {
                scripts.push(fragment(&CounterRollupEvent { c, every }));
            }
        }
        scripts.push(format!(
            "-- From templates/counter_totals.sql\n{}",
            fragment(&CounterTotals { c: self })
        ));
        scripts.push(format!(
            "-- From templates/counter_package.sql\n{}",
            fragment(&CounterPackage { c: self })
        ));
        scripts.extend(function.map(script));
        scripts
    }
}

mod filters {
    use std::fmt::Display;

    use crate::package::SqlStr;

    /// The text as an SQL string literal.
    #[askama::filter_fn]
    pub(super) fn sql_string(text: impl Display, _: &dyn askama::Values) -> askama::Result<SqlStr<String>> {
        Ok(SqlStr(text.to_string()))
    }
}
