//! The roll-up: the parts of statements that move the counts of slots into a column of another table, and that read both.

use askama::Template;

use super::fragment;
use super::table::Table;
use crate::package::{Ident, KeyColumn, KeyType, Routine, TableColumn};

/// The column of a package as templates see it. Its table is `parent` in statements, and has the columns of the key.
#[derive(Clone, Copy)]
pub(super) struct Rollup<'a> {
    pub(super) parent: &'a Ident,
    pub(super) column: &'a Ident,
    /// The columns that a roll-up assigns to themselves.
    pub(super) keep: &'a [Ident],
    /// The routine that moves the counts.
    pub(super) routine: &'a Ident,
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

impl<'a> Table<'a> {
    /// The roll-up, if the counts of the package belong to a column.
    pub(super) fn rollup(self) -> Option<Rollup<'a>> {
        Rollup::of(self)
    }

    /// What the slots of a record have less than its total: the column, after a minus sign, or nothing.
    pub(super) fn less_column(&self) -> String {
        let column = self
            .rollup()
            .map(|rollup| rollup.column_of_arguments("FOR UPDATE"));
        column.map(|column| format!(" - {column}")).unwrap_or_default()
    }
}

impl<'a> Rollup<'a> {
    /// The roll-up of a package whose counts belong to a column.
    pub(super) fn of(table: Table<'a>) -> Option<Self> {
        let package = table.package;
        let TableColumn {
            table: parent,
            column,
        } = package.options.column.as_ref()?;
        Some(Self {
            parent,
            column,
            keep: &package.options.keep.0,
            routine: package.routine(Routine::Move)?,
            table,
        })
    }

    parts! {
        /// The condition for the records from `p_first` to `p_last`.
        in_range(alias) "in_range"
        /// The condition that a record is beyond the one in the variables, in the direction of the sign.
        is_beyond(alias, sign, name, or_equal) "is_beyond"
        /// The condition for slots that this server moves.
        of_node(alias) "of_node"
        /// Sets `v_first` to the first record that meets a condition, which may be empty, or to NULL.
        next_record(condition) "next_record"
        /// Sets `v_last` to the last record of the batch that begins with `v_first`.
        last_record() "last_record"
        /// FROM and WHERE for the slots of the records from `p_first` to `p_last` that have pending counts and a row, and that no other
        /// transaction has locked.
        pending() "pending"
        /// Selects these slots, each with the sum of its record.
        moved() "moved"
        /// Locks the slots that have pending counts and the rows of their records, and waits for them.
        lock_rows() "lock_rows"
        /// Selects the records that have pending counts.
        pending_counts() "pending_counts"
        /// The assignments that move the counts.
        changes() "changes"
        /// The total of the column of the record in the arguments, as a subquery. `lock` is a locking clause or empty.
        column_of_arguments(lock) "column_of_arguments"
    }

    fn key(&self) -> &'a [KeyColumn] {
        self.table.key.columns()
    }

    /// The pattern for each column of the key, whose name is `{}` in it.
    fn each(&self, pattern: &str) -> Vec<String> {
        let names = self.key().iter().map(|column| column.name.typed());
        names.map(|name| pattern.replace("{}", &name)).collect()
    }

    /// The same as a condition.
    pub(super) fn all(&self, pattern: &str) -> String {
        self.each(pattern).join("\n   AND ")
    }

    /// The same as a list.
    pub(super) fn list(&self, pattern: &str) -> String {
        self.each(pattern).join(", ")
    }

    /// The column with its table.
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.parent.plain(), self.column.plain())
    }

    /// The columns of the table that the package reads, as a list in SQL.
    pub(super) fn read(&self) -> String {
        let key = self.key().iter().map(|column| &column.name);
        sql_list(key.chain([self.column]).chain(self.keep))
    }

    /// The columns of the table that a roll-up assigns, as a list in SQL.
    pub(super) fn changed(&self) -> String {
        sql_list([self.column].into_iter().chain(self.keep))
    }

    /// The first column of the key.
    pub(super) fn first(&self) -> String {
        self.key()[0].name.typed()
    }

    /// Whether the key has one column.
    pub(super) fn single(&self) -> bool {
        self.key().len() == 1
    }

    /// The beginning of a message about a record.
    pub(super) fn cannot_have(&self) -> String {
        format!("{} cannot have the total of ", self.name())
    }

    /// The variables of a record: the name, and a number if the record has several columns.
    pub(super) fn bounds(&self, name: &str) -> Vec<String> {
        match self.key().len() {
            1 => vec![name.to_owned()],
            several => (1..=several).map(|number| format!("{name}_{number}")).collect(),
        }
    }

    /// The same as a list.
    pub(super) fn bound_list(&self, name: &str) -> String {
        self.bounds(name).join(", ")
    }

    /// The columns of the key, each with a variable.
    pub(super) fn compared(&self, pattern: &str, name: &str) -> Vec<(String, String)> {
        self.each(pattern).into_iter().zip(self.bounds(name)).collect()
    }

    /// The declarations of the variables, each after `before`, as lines.
    pub(super) fn declarations(&self, name: &str, before: &str, after: &str) -> String {
        let types = self.key().iter().map(|column| self.table.key.column_type(column));
        let lines = self.bounds(name).into_iter().zip(types);
        lines
            .map(|(name, kind)| format!("{before}{name} {kind}{after}\n"))
            .collect()
    }

    /// The record in values, as a text for a message.
    pub(super) fn text_of(&self, values: Vec<String>) -> String {
        let value = |(column, value): (&KeyColumn, String)| match column.kind {
            KeyType::Binary(..) => format!("CONCAT('0x', HEX({value}))"),
            // MariaDB does not concatenate a text of ucs2 or latin1 with one of utf8mb4 (1271).
            _ if column.kind.is_text() && !self.table.key.collation().has_all_characters() => {
                format!("CONVERT({value} USING utf8mb4)")
            }
            _ => value,
        };
        let values: Vec<_> = self.key().iter().zip(values).map(value).collect();
        match &values[..] {
            [one] => one.clone(),
            several => format!("CONCAT_WS(', ', {})", several.join(", ")),
        }
    }

    /// The record in the arguments, as a text for a message.
    pub(super) fn text_of_arguments(&self) -> String {
        let arguments = self.key().iter().map(|column| self.table.key.argument(column));
        self.text_of(arguments.collect())
    }

    /// The end of the names of its statements without a routine.
    pub(super) fn statement_name(&self) -> String {
        format!("{}_{}", self.parent.name(), self.column.name())
    }
}

/// Names in backticks with commas between them.
fn sql_list<'a>(names: impl Iterator<Item = &'a Ident>) -> String {
    names.map(Ident::to_string).collect::<Vec<_>>().join(", ")
}
