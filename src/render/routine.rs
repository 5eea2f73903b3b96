//! The CREATE statements of routines, and the manual that each carries in its COMMENT.

use askama::Template;

use super::rollup::Rollup;
use super::table::{FEW, STEP_TRIES, Table};
use super::{filters, fragment};
use crate::package::{
    self, BATCH, DESCRIPTION_MAX, DESCRIPTION_PARAMETER, Detail, ENTRIES_MAX, IDENT_MAX, Ident, KeyColumn,
    KeyType, Kind, MAX_SLOTS, MESSAGE_MAX, NAME_MAX, NAME_PARAMETER, Package, PackageError as E, RECORDS_MAX,
    SECONDS_MAX, Servers, Signal, Speaker, SqlStr,
};

/// A routine that a template creates.
pub(super) struct RoutineText<'a> {
    pub(super) package: &'a Package,
    pub(super) of: package::Routine,
    pub(super) name: &'a Ident,
    /// The errors that it signals.
    pub(super) errors: Vec<E>,
    pub(super) table: Table<'a>,
}

/// A template each, with the routine only.
macro_rules! templates {
    ($(($kind:pat, $bounded:pat, $routine:pat) $(if $of_column:ident)? $path:literal)*) => {
        impl RoutineText<'_> {
            /// The CREATE statement of a routine of the package.
            pub(super) fn create(&self, routine: package::Routine) -> String {
                let (r, package, table) = (self, self.package, self.table);
                match (package.options.kind, package.options.bounded, routine) {
                    $(($kind, $bounded, $routine) $(if self.$of_column())? => {
                        #[derive(Template)]
                        #[template(path = $path)]
                        #[allow(dead_code, reason = "few templates use all three")]
                        struct Statement<'a> {
                            r: &'a RoutineText<'a>,
                            package: &'a Package,
                            table: Table<'a>,
                        }
                        fragment(&Statement { r, package, table })
                    })*
                    (kind, _, routine) => unreachable!("{} has no {routine:?}", kind.name()),
                }
            }
        }
    };
}

use package::Routine as R;
templates! {
    (_, _, R::Fail) "shared/fail.sql"
    (_, _, R::InSteps) "shared/in_steps.sql"
    (Kind::Counters, _, R::Check) "counters/counter_check.sql"
    (Kind::Counters, _, R::CheckSlots) "counters/counter_check_slots.sql"
    (Kind::Counters, _, R::Unknown) "counters/counter_unknown.sql"
    (Kind::Counters, _, R::AddElsewhere) "counters/counter_add_elsewhere.sql"
    (Kind::Counters, _, R::AddManyUnknown) "counters/counter_add_many_unknown.sql"
    (Kind::Counters, _, R::Steps) "counters/counter_steps.sql"
    (Kind::Counters, _, R::Setup) "counters/counter_setup.sql"
    (Kind::Counters, _, R::Increment) "counters/counter_increment.sql"
    (Kind::Counters, false, R::Add) "counters/counter_add.sql"
    (Kind::Counters, _, R::AddMany) "counters/counter_add_many.sql"
    (Kind::Counters, false, R::Reset) "counters/counter_reset.sql"
    (Kind::Counters, _, R::Resize) "counters/counter_resize.sql"
    (Kind::Counters, _, R::Delete) "counters/counter_delete.sql"
    (Kind::Counters, _, R::Drop) "counters/counter_drop.sql"
    (Kind::Counters, _, R::Get) "counters/counter_get.sql"
    (Kind::Counters, true, R::Reject) "bounded/counter_reject.sql"
    (Kind::Counters, true, R::TakeElsewhere) "bounded/counter_take_elsewhere.sql"
    (Kind::Counters, true, R::Add) "bounded/counter_add.sql"
    (Kind::Counters, true, R::Take) "bounded/counter_take.sql"
    (Kind::Counters, true, R::Reset) "bounded/counter_reset.sql"
    (Kind::SlottedCounters, _, R::Check) "slotted_counters/slotted_counter_check.sql"
    (Kind::SlottedCounters, _, R::First) "slotted_counters/slotted_counter_first.sql"
    (Kind::SlottedCounters, _, R::DeleteKilled) "slotted_counters/slotted_counter_delete_killed.sql"
    (Kind::SlottedCounters, _, R::Move) "slotted_counters/slotted_counter_move.sql"
    (Kind::SlottedCounters, _, R::Steps) "slotted_counters/slotted_counter_steps.sql"
    (Kind::SlottedCounters, _, R::Increment) "slotted_counters/slotted_counter_increment.sql"
    (Kind::SlottedCounters, _, R::Add) "slotted_counters/slotted_counter_add.sql"
    (Kind::SlottedCounters, _, R::AddMany) "slotted_counters/slotted_counter_add_many.sql"
    (Kind::SlottedCounters, _, R::Reset) "slotted_counters/slotted_counter_reset.sql"
    (Kind::SlottedCounters, _, R::Compact) if of_column "slotted_counters/column_compact.sql"
    (Kind::SlottedCounters, _, R::Compact) "slotted_counters/slotted_counter_compact.sql"
    (Kind::SlottedCounters, _, R::CompactIdle) "slotted_counters/slotted_counter_compact_idle.sql"
    (Kind::SlottedCounters, _, R::Rollup) "slotted_counters/slotted_counter_rollup.sql"
    (Kind::SlottedCounters, _, R::Delete) "slotted_counters/slotted_counter_delete.sql"
    (Kind::SlottedCounters, _, R::Get) "slotted_counters/slotted_counter_get.sql"
    (Kind::SlottedCounters, true, R::Reject) "bounded/record_reject.sql"
    (Kind::SlottedCounters, true, R::TakeElsewhere) "bounded/record_take_elsewhere.sql"
    (Kind::SlottedCounters, true, R::Setup) "bounded/record_setup.sql"
    (Kind::SlottedCounters, true, R::Take) "bounded/record_take.sql"
}

/// A part of a routine each: its template and its arguments.
macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $path:literal)*) => {
        $($(#[$doc])*
        pub(super) fn $name(&self $(, $argument: $type)*) -> String {
            #[derive(Template)]
            #[template(path = $path)]
            #[allow(dead_code, reason = "few templates use all three")]
            struct Part<'a> {
                r: &'a RoutineText<'a>,
                package: &'a Package,
                table: Table<'a>,
                $($argument: $type,)*
            }
            fragment(&Part { r: self, package: self.package, table: self.table $(, $argument)* })
        })*
    };
}

impl<'a> RoutineText<'a> {
    parts! {
        /// The beginning of the CREATE statement, up to the name. `kind` is PROCEDURE or FUNCTION.
        create_as(kind: &'a str) "shared/_create.sql"
        /// Rejects a name or a key that is not valid.
        check() "shared/_check.sql"
        /// Changes the slot of this connection of a named counter, such as by `+ 1`, or calls the routine for the rest. `condition`
        /// may be empty.
        count(change: &'a str, amount: &'a str, condition: &'a str) "counters/_count.sql"
        /// Deletes all slots of a record.
        delete_record() "slotted_counters/_delete.sql"
        /// Sets `v_new`: whether the snapshot of `v_total` is certainly new. `total` is the same sum as an expression.
        find_certainty(total: &'a str) "bounded/_certain.sql"
        /// Rejects a text that is not a JSON array, or an array that is too long.
        check_array() "shared/_check_array.sql"
    }

    /// Whether the counts of the package belong to a column.
    fn of_column(&self) -> bool {
        self.package.options.column.is_some()
    }

    /// The roll-up of the package, in its routines.
    fn rollup(&self) -> Rollup<'_> {
        self.table.rollup().expect("the package has a column")
    }

    pub(super) fn signal(&self, error: E) -> String {
        debug_assert!(
            self.of.is_private() || self.errors.contains(&error),
            "{} does not list {error:?}",
            self.name
        );
        self.signal_about(error, None)
    }

    /// The same. `name` is the variable with the name of the counter.
    pub(super) fn signal_named(&self, error: E, name: &str) -> String {
        self.signal_about(error, Some(name))
    }

    pub(super) fn signal_column(&self, error: E, column: impl AsRef<str>) -> String {
        self.signal_about(error, Some(column.as_ref()))
    }

    fn signal_about(&self, error: E, about: Option<&str>) -> String {
        #[derive(Template)]
        #[template(path = "shared/_signal.sql")]
        struct Statement<'a> {
            signal: Signal,
            /// The routine that signals for all routines.
            fail: &'a Ident,
        }
        let options = &self.package.options;
        let speaker = match self.speaker() {
            Some(routine) => Speaker::Named(routine.name()),
            // The longest name that a routine passes.
            None => Speaker::Parameter(options.prefix.name().chars().count() + "increment".len()),
        };
        let signal = package::signal(options, speaker, error, about);
        let fail = self.sibling(R::Fail);
        fragment(&Statement { signal, fail })
    }

    /// The routine that messages begin with. None for the one whose name is in `p_routine`.
    fn speaker(&self) -> Option<&Ident> {
        match self.of {
            R::Check | R::CheckSlots | R::Unknown | R::AddElsewhere | R::Steps => None,
            R::Reject | R::TakeElsewhere => Some(self.sibling(R::Take)),
            R::AddManyUnknown => Some(self.sibling(R::AddMany)),
            _ => Some(self.name),
        }
    }

    /// The same as an expression.
    fn speaker_text(&self) -> String {
        self.speaker()
            .map_or_else(|| "p_routine".into(), |name| SqlStr(name.name()).to_string())
    }

    /// The name of another routine of the package.
    fn sibling(&self, routine: package::Routine) -> &Ident {
        self.package
            .routine(routine)
            .expect("the kind of package has both")
    }
}

/// The manual.
impl RoutineText<'_> {
    /// Values of the key columns in an example, each as an SQL expression and as JSON.
    fn samples(&self) -> impl Iterator<Item = (String, String)> {
        let sample = |(column, number): (&KeyColumn, &str)| {
            let (sql, json): (String, String) = match column.kind {
                KeyType::Name => ("'downloads'".into(), "downloads".into()),
                KeyType::Integer(_, _, most) => {
                    let number = if most < 1000 { "12" } else { number };
                    return (number.into(), number.into());
                }
                KeyType::Date("DATE") => ("CURRENT_DATE".into(), "2026-12-31".into()),
                KeyType::Date(..) => ("NOW()".into(), "2026-12-31 23:59:59".into()),
                KeyType::Text(..) => ("'/'".into(), "/".into()),
                KeyType::Binary("BINARY", n) => (format!("REPEAT('x', {n})"), "78".repeat(n as usize)),
                KeyType::Binary(..) => ("'x'".into(), "78".into()),
            };
            (sql, format!("\"{json}\""))
        };
        let columns = self.table.key.columns().iter();
        columns.zip(["123", "456", "789"].into_iter().cycle()).map(sample)
    }

    /// The name of a counter in an example.
    fn counter(&self) -> &'static str {
        if self.package.options.bounded {
            "seats"
        } else {
            "downloads"
        }
    }

    /// Arguments that identify a counter in an example.
    fn example(&self) -> String {
        self.samples().map(|(sql, _)| sql).collect::<Vec<_>>().join(", ")
    }

    /// A JSON array with an entry.
    fn example_entries(&self) -> String {
        let values: Vec<_> = self.samples().map(|(_, json)| json).collect();
        format!("[[{}, 1]]", values.join(", "))
    }

    /// The errors, a line each.
    pub(super) fn manual_errors(&self) -> String {
        let line = |error: &E| {
            let (head, detail, tail) = error.sentence(&self.package.options);
            let detail = match detail {
                Detail::None => "",
                Detail::Name => "'...'",
                Detail::Slots | Detail::Column | Detail::Entry => "...",
                Detail::Left if self.table.keyed() => "... left",
                Detail::Left => "... left of '...'",
                Detail::Nodes => "...",
                Detail::Rejected => {
                    "the column cannot have the total of a record: the message of the server follows"
                }
            };
            format!("  {}  {head}{detail}{tail}", error.number())
        };
        let lines = self.errors.iter().map(line).collect::<Vec<_>>().join("\n");
        // One line for what most routines check.
        let [empty, long] = [E::NameEmpty, E::NameTooLong].map(|error| line(&error));
        lines.replace(
            &format!("{empty}\n{long}"),
            &format!("  30001, 30002  p_counter_name is NULL, empty or longer than {NAME_MAX} characters"),
        )
    }
}
