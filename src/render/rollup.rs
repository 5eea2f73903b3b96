//! Roll-ups: the procedure, the EVENT and the plain statements that write totals into a column of a parent table.

use askama::Template;

use super::files::drop_first;
use super::routine::{Create, Routine};
use super::table::Table;
use super::{filters, fragment};
use crate::package::{
    BATCH, Ident, Interval, KeyColumn, KeyType, Package, PackageError as E, RECORDS_MAX, Rollup as Model,
};

/// A roll-up that a template creates.
pub(super) struct Rollup<'a> {
    pub(super) package: &'a Package,
    /// The name of the procedure and of the EVENT.
    pub(super) name: &'a Ident,
    pub(super) model: &'a Model,
    /// The key column that rows of the parent table are found by.
    pub(super) record: &'a KeyColumn,
    pub(super) table: Table<'a>,
}

#[derive(Template)]
#[template(path = "slotted_counters/slotted_counter_rollup.sql")]
struct Procedure<'a> {
    r: &'a Routine<'a>,
    rollup: &'a Rollup<'a>,
    table: Table<'a>,
}

#[derive(Template)]
#[template(path = "slotted_counters/slotted_counter_rollup_event.sql")]
struct Event<'a> {
    drop: String,
    rollup: &'a Rollup<'a>,
    every: &'a Interval,
}

/// A part of a statement each: a block of the template.
macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident $block:literal)*) => {
        $($(#[$doc])*
        pub(super) fn $name(&self) -> String {
            #[derive(Template)]
            #[template(path = "slotted_counters/_rollup_same.sql", block = $block)]
            struct Part<'a> { rollup: &'a Rollup<'a> }
            fragment(&Part { rollup: self })
        })*
    };
}

impl<'a> Rollup<'a> {
    /// All roll-ups of a package.
    pub(super) fn all(package: &'a Package, table: Table<'a>) -> Vec<Self> {
        let rollup = |(model, name): (&'a Model, &'a Ident)| Self {
            package,
            name,
            model,
            record: model
                .record(&package.options.key)
                .expect("checked with the options"),
            table,
        };
        package.rollups().map(rollup).collect()
    }

    parts! {
        /// The condition for the records of the roll-up.
        same "alone"
        /// The same before another condition.
        same_and "and"
    }

    /// The CREATE PROCEDURE statement.
    pub(super) fn procedure(&self) -> Create {
        let r = &Routine {
            package: self.package,
            name: self.name,
            errors: vec![E::RecordsOutOfRange],
            table: self.table,
        };
        Create {
            template: "slotted_counters/slotted_counter_rollup.sql",
            statement: fragment(&Procedure {
                r,
                rollup: self,
                table: self.table,
            }),
        }
    }

    /// The statements that create the EVENT.
    pub(super) fn event(&self, every: &Interval) -> String {
        fragment(&Event {
            drop: drop_first(self.package, "EVENT", self.name),
            rollup: self,
            every,
        })
    }

    /// The records of the roll-up, for the manual.
    fn same_text(&self) -> String {
        let same = self.same().replace("\n  ", "");
        if same.is_empty() {
            same
        } else {
            format!(" with {same}")
        }
    }

    /// A value of the key column as JSON can have it.
    fn as_json(&self, value: &str) -> String {
        match self.record.kind {
            KeyType::Binary(..) => format!("HEX({value})"),
            _ => value.to_owned(),
        }
    }

    /// The type of [`as_json`](Self::as_json).
    fn json_type(&self) -> String {
        match self.record.kind {
            KeyType::Binary(_, bytes) => format!("VARCHAR({})", 2 * bytes),
            KeyType::Text(_, characters) => format!("VARCHAR({characters})"),
            _ => self.record.kind.text(),
        }
    }

    /// The value back from JSON, to be compared with a column of the parent table.
    fn out_of_json(&self, value: &str) -> String {
        match self.record.kind {
            KeyType::Binary(..) => format!("UNHEX({value})"),
            KeyType::Text(..) => {
                format!(
                    "CONVERT({value} USING utf8mb4) COLLATE {}",
                    self.package.options.collation
                )
            }
            _ => value.to_owned(),
        }
    }
}
