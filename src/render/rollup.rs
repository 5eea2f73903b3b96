//! Roll-ups: the parts of statements that move the counts of slots into a column of a parent table, and that read both.

use askama::Template;

use super::table::Table;
use super::{filters, fragment};
use crate::package::{Ident, KeyColumn, KeyType, MESSAGE_MAX, Package, Rollup as Model, Value};

/// A roll-up as templates see it.
pub(super) struct Rollup<'a> {
    pub(super) model: &'a Model,
    /// The routine that moves the counts.
    pub(super) routine: &'a Ident,
    /// The key columns that rows of the parent table are found by.
    pub(super) records: Vec<&'a KeyColumn>,
    pub(super) table: Table<'a>,
}

/// A part of a statement each: a block of the template and its arguments.
macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*) $block:literal)*) => {
        $($(#[$doc])*
        pub(super) fn $name(&self $(, $argument: &str)*) -> String {
            #[derive(Template)]
            #[template(path = "slotted_counters/_rollup_parts.sql", block = $block)]
            #[allow(dead_code, reason = "few blocks use both")]
            struct Part<'a> { rollup: &'a Rollup<'a>, table: Table<'a> $(, $argument: &'a str)* }
            fragment(&Part { rollup: self, table: self.table $(, $argument)* }).trim().to_owned()
        })*
    };
}

impl<'a> Rollup<'a> {
    /// All roll-ups of a package.
    pub(super) fn all(package: &'a Package, table: Table<'a>) -> Vec<Self> {
        let rollup = |(model, routine): (&'a Model, &'a Ident)| Self {
            model,
            routine,
            records: model
                .records(&package.options.key)
                .expect("checked with the options"),
            table,
        };
        package.rollups().map(rollup).collect()
    }

    parts! {
        /// The condition that the arguments are a record of the roll-up, or empty.
        is_argument() "is_argument"
        /// The condition for a row of the parent table and the slots of its record.
        joined(slots) "joined"
        /// The condition for the row of the parent table of a record, whose key is in the arguments.
        parent_of_arguments() "parent_of_arguments"
        /// The condition for the slots of the record of a row of the parent table.
        slots_of_parent() "slots_of_parent"
        /// The condition for the records of the roll-up. `alias` is empty or ends with a point.
        in_same(alias) "in_same"
        /// The same, and another condition, which may be empty.
        same_where(condition) "same_where"
        /// The condition that two sets of slots have the same slot of a record of the roll-up.
        slot_of(target, source) "slot_of"
        /// The condition for the records of the roll-up from `p_first` to `p_last`.
        in_range(alias) "in_range"
        /// The condition that the records from `p_first` to `p_last` are one.
        one_record() "one_record"
        /// The condition that a record is beyond the one in the variables, in the direction of the sign.
        is_beyond(alias, sign, name, or_equal) "is_beyond"
        /// The condition that a record follows the one in the variables.
        follows(name) "follows"
        /// The condition that it follows or is the same.
        follows_or_equals(name) "follows_or_equals"
        /// The condition for the row of the parent table of the record in the variables.
        parent_of(name) "parent_of"
        /// The condition that the table has a CHECK, or that the column is in a unique index or a foreign key.
        has_constraint() "has_constraint"
        /// The condition for slots that this server moves, after AND, or empty. `alias` is empty or ends with a point.
        of_node(alias) "of_node"
        /// Sets the variables to the first record that meets a condition, which may be empty, or to NULL.
        next_record(name, condition) "next_record"
        /// FROM and WHERE for the slots of the records from `p_first` to `p_last` that have pending counts and a row, and that no other
        /// transaction has locked.
        pending() "pending"
        /// Selects these slots, each with the sum of its record.
        moved() "moved"
        /// Sets the variables to the last record of the batch that begins with the first.
        last_record() "last_record"
        /// Counts the records that have pending counts, those without a row, and those whose total is not in the range of the column.
        /// Locks the slots that have pending counts and the rows of their records, and waits for them.
        lock_rows() "lock_rows"
        /// Selects the records that have pending counts.
        pending_counts() "pending_counts"
        /// The assignments that move the counts.
        changes() "changes"
        /// The total of the column of the record in the arguments, as a subquery. `lock` is a locking clause or empty.
        column_of_arguments(lock) "column_of_arguments"
    }

    /// The column that the counts move into.
    pub(super) fn column(&self) -> String {
        format!("{}.{}", self.model.table.plain(), self.model.target.plain())
    }

    /// The pairs of a key column and the column of the parent table.
    pub(super) fn pairs(&self) -> Vec<(&'a KeyColumn, &'a Ident)> {
        self.records.iter().copied().zip(&self.model.ids).collect()
    }

    /// The key columns as records are compared and sorted.
    pub(super) fn values(&self, alias: &str) -> Vec<String> {
        let value = |column: &&KeyColumn| {
            let name = column.name.typed();
            match column.kind {
                // The servers sort an ENUM by the numbers of its values, and compare it by their texts.
                KeyType::Enum(_) => format!("CONCAT({alias}{name})"),
                _ => format!("{alias}{name}"),
            }
        };
        self.records.iter().map(value).collect()
    }

    /// The key column, if the record has one that the index sorts as the server compares it.
    pub(super) fn plain_record(&self) -> Option<String> {
        match self.records[..] {
            [column] if !matches!(column.kind, KeyType::Enum(_)) => Some(column.name.typed()),
            _ => None,
        }
    }

    /// The same, separated by commas.
    pub(super) fn sorted(&self) -> String {
        self.values("").join(", ")
    }

    /// The same with the names that they have in a derived table.
    pub(super) fn sorted_as(&self) -> String {
        let named = self.values("").into_iter().zip(self.bounds("record"));
        let named: Vec<_> = named.map(|(value, name)| format!("{value} AS {name}")).collect();
        named.join(", ")
    }

    /// The names in the derived table, separated by commas, each between two texts.
    pub(super) fn records_with(&self, before: &str, after: &str) -> String {
        let names = self.bounds("record").into_iter();
        let names: Vec<_> = names.map(|name| format!("{before}{name}{after}")).collect();
        names.join(", ")
    }

    /// The key columns that have one value in all records of the roll-up, each with the value.
    pub(super) fn given(&self) -> Vec<(&'a KeyColumn, &'a Value)> {
        let column = |name: &Ident| {
            self.table
                .key
                .columns()
                .iter()
                .find(|column| column.name == *name)
        };
        let given = |(name, value): &'a (Ident, Value)| Some((column(name)?, value));
        self.model.same.iter().filter_map(given).collect()
    }

    /// The columns of the key, each with its value in a row of the parent table.
    pub(super) fn key_of_parent(&self) -> Vec<(&'a Ident, String)> {
        let value = |column: &'a KeyColumn| {
            let given = self.given().into_iter().find(|(of, _)| of.name == column.name);
            let id = || self.pairs().into_iter().find(|(of, _)| of.name == column.name);
            let value = match given {
                Some((_, value)) => value.sql(),
                None => id()
                    .map(|(_, id)| format!("parent.{}", id.typed()))
                    .unwrap_or_default(),
            };
            (&column.name, value)
        };
        self.table.key.columns().iter().map(value).collect()
    }

    /// The beginning of a message about a record.
    pub(super) fn cannot_have(&self) -> String {
        format!("{} cannot have the total of ", self.column())
    }

    /// The variables of a record: the name, and a number if the record has several columns.
    pub(super) fn bounds(&self, name: &str) -> Vec<String> {
        match self.records.len() {
            1 => vec![name.to_owned()],
            several => (1..=several).map(|number| format!("{name}_{number}")).collect(),
        }
    }

    /// The key columns as records are compared, each with the variable.
    pub(super) fn compared(&self, alias: &str, name: &str) -> Vec<(String, String)> {
        self.values(alias).into_iter().zip(self.bounds(name)).collect()
    }

    /// The type of the variables of a record, if it has one column.
    pub(super) fn single_type(&self) -> Option<String> {
        match self.records[..] {
            [column] => Some(self.table.key.variable_type(column)),
            _ => None,
        }
    }

    /// The same, separated by commas.
    pub(super) fn bound_list(&self, name: &str) -> String {
        self.bounds(name).join(", ")
    }

    /// The declarations of the variables, each after `before`, as lines.
    pub(super) fn declarations(&self, name: &str, before: &str, after: &str) -> String {
        let types = self
            .records
            .iter()
            .map(|column| self.table.key.variable_type(column));
        let lines = self.bounds(name).into_iter().zip(types);
        lines
            .map(|(name, kind)| format!("{before}{name} {kind}{after}\n"))
            .collect()
    }

    /// A batch after the other.
    pub(super) fn batches(&self) -> String {
        #[derive(Template)]
        #[template(path = "slotted_counters/_rollup_batches.sql")]
        struct Part<'a> {
            rollup: &'a Rollup<'a>,
            table: Table<'a>,
        }
        fragment(&Part {
            rollup: self,
            table: self.table,
        })
    }

    /// The columns of the slots that identify a record of the roll-up, separated by commas. `alias` is empty or ends with a point.
    pub(super) fn record_list(&self, alias: &str) -> String {
        let names = self
            .records
            .iter()
            .map(|column| format!("{alias}{}", column.name.typed()));
        names.collect::<Vec<_>>().join(", ")
    }

    /// The record in the variables, as a text for a message.
    pub(super) fn record_text(&self, name: &str) -> String {
        self.text_of(self.bounds(name))
    }

    /// The record in the arguments, as a text for a message.
    pub(super) fn text_of_arguments(&self) -> String {
        let arguments = self.records.iter().map(|column| self.table.key.argument(column));
        self.text_of(arguments.collect())
    }

    fn text_of(&self, values: Vec<String>) -> String {
        let value = |(column, value): (&&KeyColumn, String)| match column.kind {
            KeyType::Binary(..) => format!("CONCAT('0x', HEX({value}))"),
            // MariaDB does not concatenate a text of ucs2 or latin1 with one of utf8mb4 (1271).
            _ if column.kind.is_text() && !self.table.key.collation().has_all_characters() => {
                format!("CONVERT({value} USING utf8mb4)")
            }
            _ => value,
        };
        let values: Vec<_> = self.records.iter().zip(values).map(value).collect();
        match &values[..] {
            [one] => one.clone(),
            several => format!("CONCAT_WS(', ', {})", several.join(", ")),
        }
    }

    /// The arguments that identify a record of the roll-up, separated by commas.
    pub(super) fn record_arguments(&self) -> String {
        let values = self.records.iter().map(|column| self.table.key.argument(column));
        values.collect::<Vec<_>>().join(", ")
    }

    /// The beginning of the names of its statements without a routine.
    pub(super) fn name(&self) -> String {
        format!("{}_{}", self.model.table.name(), self.model.target.name())
    }

    /// The records of the roll-up, for a text.
    pub(super) fn same_text(&self) -> String {
        match &self.model.same[..] {
            [] => String::new(),
            _ => format!(" with {}", self.in_same("").replace("\n  ", "")),
        }
    }
}
