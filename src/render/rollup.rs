//! Roll-ups: the parts of the procedure and of the plain statements that write totals into a column of a parent table.

use askama::Template;

use super::routine::Routine;
use super::table::Table;
use super::{filters, fragment};
use crate::package::{
    Ident, KeyColumn, KeyType, Package, PackageError as E, RECORDS_MAX, Rollup as Model, Servers,
};

/// A roll-up as templates see it.
pub(super) struct Rollup<'a> {
    pub(super) package: &'a Package,
    /// The table of the totals that the roll-up has written.
    pub(super) written: &'a Ident,
    pub(super) model: &'a Model,
    /// The key column that rows of the parent table are found by.
    pub(super) record: &'a KeyColumn,
    pub(super) table: Table<'a>,
}

/// A part of a statement each: a block of the template.
macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident $block:literal)*) => {
        $($(#[$doc])*
        pub(super) fn $name(&self) -> String {
            #[derive(Template)]
            #[template(path = "slotted_counters/_rollup_parts.sql", block = $block)]
            struct Part<'a> { rollup: &'a Rollup<'a> }
            fragment(&Part { rollup: self })
        })*
    };
}

impl<'a> Rollup<'a> {
    /// All roll-ups of a package.
    pub(super) fn all(package: &'a Package, table: Table<'a>) -> Vec<Self> {
        let rollup = |(model, written): (&'a Model, &'a Ident)| Self {
            package,
            written,
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
        same "same"
        /// The same before another condition.
        same_and "same_and"
        /// The condition that the column of `parent` has counts that `written` does not have.
        not_imported "not_imported"
        /// The changes of a batch as a table.
        changes "changes"
    }

    /// The CREATE TABLE statement of the totals that the roll-up has written.
    pub(super) fn create_written(&self) -> String {
        #[derive(Template)]
        #[template(path = "slotted_counters/slotted_counter_rollup_written.sql")]
        struct Written<'a> {
            rollup: &'a Rollup<'a>,
        }
        fragment(&Written { rollup: self })
    }

    /// A batch after the other: the totals are read, compared and written.
    pub(super) fn batches(&self, r: &Routine<'_>) -> String {
        #[derive(Template)]
        #[template(path = "slotted_counters/_rollup_batches.sql")]
        struct Part<'a> {
            r: &'a Routine<'a>,
            rollup: &'a Rollup<'a>,
            package: &'a Package,
            table: Table<'a>,
        }
        fragment(&Part {
            r,
            rollup: self,
            package: self.package,
            table: self.table,
        })
    }

    /// The column that the totals are written to.
    pub(super) fn column(&self) -> String {
        format!("{}.{}", self.model.table.plain(), self.model.target.plain())
    }

    /// The column of a row of the parent table that identifies the record.
    pub(super) fn parent_id(&self) -> String {
        format!("parent.{}", self.model.id.typed())
    }

    /// The columns of the key, each with its value; `record` is the value of the remaining one.
    pub(super) fn key_values(&self, record: impl AsRef<str>) -> Vec<(&Ident, String)> {
        let value = |column: &'a KeyColumn| {
            let given = self.model.same.iter().find(|(name, _)| *name == column.name);
            let value = given.map_or_else(|| record.as_ref().to_owned(), |(_, value)| value.sql());
            (&column.name, value)
        };
        self.table.key.columns().iter().map(value).collect()
    }

    /// The records of the roll-up, for a text.
    pub(super) fn same_text(&self) -> String {
        let same = self.same().replace("\n  ", "");
        if same.is_empty() {
            same
        } else {
            format!(" with {same}")
        }
    }

    /// The key column as the records are compared and sorted.
    pub(super) fn record_value(&self) -> String {
        let column = self.record.name.typed();
        match self.record.kind {
            // The servers sort an ENUM by the numbers of its values, and compare it by their texts.
            KeyType::Enum(_) => format!("CONCAT({column})"),
            _ => column,
        }
    }

    /// A value of the key column as JSON can have it.
    fn as_json(&self, value: &str) -> String {
        match self.record.kind {
            KeyType::Binary(..) => format!("HEX({value})"),
            KeyType::Date(..) | KeyType::Uuid => format!("CAST({value} AS CHAR)"),
            _ => value.to_owned(),
        }
    }

    /// The type of [`as_json`](Self::as_json).
    fn json_type(&self) -> String {
        match self.record.kind {
            KeyType::Integer("YEAR", ..) => "INT".to_owned(),
            KeyType::Binary(_, bytes) => format!("VARCHAR({})", 2 * bytes),
            KeyType::Date(..) | KeyType::Uuid => "CHAR(36)".to_owned(),
            KeyType::Text(_, characters) => format!("VARCHAR({characters})"),
            _ => self.record.kind.variable(),
        }
    }

    /// The value back from JSON, to be compared with a column of the parent table.
    fn out_of_json(&self, value: &str) -> String {
        match self.record.kind {
            KeyType::Binary(..) => format!("UNHEX({value})"),
            KeyType::Date(..) | KeyType::Uuid => format!("CAST({value} AS {})", self.record.kind.text()),
            KeyType::Text(..) | KeyType::Enum(_) => {
                format!(
                    "CONVERT({value} USING utf8mb4) COLLATE {}",
                    self.package.options.collation
                )
            }
            _ => value.to_owned(),
        }
    }
}
