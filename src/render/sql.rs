//! What the templates of statements call: the names of a package, its key, and the texts in which the families of servers differ.

use super::step::Task;
use crate::package::{Collation, DESCRIPTION_MAX, Ident, KeyColumn, KeyType, Package, Routine, Slots};

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The sql_mode that the server stores with each routine. Without NO_ZERO_DATE: a roll-up changes rows of users, which can contain zero dates.
pub const SQL_MODE: &str = "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION";

/// How long a statement of a script or of an installation waits for transactions that have used an object, in seconds. New calls
/// of the object wait behind it. Source: MySQL manual, "Metadata Locking".
pub const DDL_TIMEOUT: u32 = 2;

/// What the scripts and the program say of a table that is not that of the package.
pub(super) const TABLE_DIFFERS: &str =
    "the table is missing or differs: source create_tables.sql, or compare it with SHOW CREATE TABLE and ALTER it";
pub(super) const COLUMN_DIFFERS: &str =
    "the column is missing, generated or not an integer, or its table is not InnoDB or has another key: render again";
pub(super) const KEY_NOT_UNIQUE: &str =
    "the key is not unique: a roll-up would add the counts to several rows. Render it with a unique key";
pub(super) const NOT_KEPT: &str =
    "each roll-up would change a column with ON UPDATE CURRENT_TIMESTAMP: render again with it in --keep";

/// A package as a template sees it.
#[derive(Clone, Copy)]
pub(super) struct Sql<'a> {
    pub(super) package: &'a Package,
    /// The routine that the template creates, or the table.
    pub(super) name: &'a Ident,
    /// What its statement is for.
    pub(super) task: Task,
}

impl<'a> Sql<'a> {
    pub(super) fn of(package: &'a Package, task: Task) -> Self {
        Self { package, name: &package.options.table, task }
    }

    /// Whether the object can exist.
    pub(super) fn replaces(&self) -> bool {
        self.task == Task::Replace
    }

    /// Whether the table is dropped, too.
    pub(super) fn with_table(&self) -> bool {
        self.task == Task::RemoveAll
    }

    /// The name of a routine of the package.
    pub(super) fn routine(&self, routine: Routine) -> &'a Ident {
        let name = self.package.routine(routine);
        name.expect("the package contains each routine that its templates call")
    }

    /// The beginning of the statement that creates the routine, up to its name. MySQL has no CREATE OR REPLACE for routines.
    pub(super) fn create(&self, kind: &str) -> String {
        let or_replace = if self.replaces() && self.package.options.mariadb() { " OR REPLACE" } else { "" };
        format!("CREATE{or_replace}{} {kind} {}", self.definer(), self.name)
    }

    /// The DEFINER clause, after a space, or nothing.
    pub(super) fn definer(&self) -> String {
        let definer = self.package.options.definer.as_ref();
        definer.map_or_else(String::new, |definer| format!(" DEFINER = {definer}"))
    }

    /// The columns of the key, each as in `pattern`: `{}` is the name, `{name}` without backticks, `{p}` the parameter, `{v}` a variable, `{text}`, `{p text}` and `{v text}` the
    /// same in a message, `{type}` the type of all, `{n}` the number of the column from 0 on. Of an entry of `add_many`, `{json type}` is the type that `JSON_TABLE` reads,
    /// `{json}` the value as it must be in the JSON, and `{value}` that of the column.
    pub(super) fn key(&self, pattern: &str, separator: &str) -> String {
        let columns = self.package.options.key().iter().enumerate();
        let column = |(number, column)| {
            // One pass over the pattern, in which each second part is a place: a name, which can contain {value}, is printed and not searched.
            let parts = pattern.split(['{', '}']).enumerate();
            let text = |(at, part): (usize, &str)| match at % 2 {
                0 => part.to_owned(),
                _ => self.of_column(number, column, part),
            };
            parts.map(text).collect::<String>()
        };
        columns.map(column).collect::<Vec<_>>().join(separator)
    }

    fn of_column(&self, number: usize, column: &KeyColumn, place: &str) -> String {
        let [kind, json, value] = self.of_entry(number, column);
        match place {
            "" => column.name.to_string(),
            "name" => column.name.name().to_owned(),
            "p" => column.parameter().typed(),
            "v" => column.variable().typed(),
            "text" => column.shown(column.name.to_string()),
            "p text" => column.shown(column.parameter().typed()),
            "v text" => column.shown(column.variable().typed()),
            "n" => number.to_string(),
            // With the collation of the database, a comparison of a column and its parameter fails (1267) or does not use the key.
            "type" if column.kind.is_text() => text_type(&column.kind.text(), &self.package.options.collation()),
            "type" => column.kind.text(),
            "json type" => kind,
            "json" => json,
            "value" => value,
            _ => unreachable!("no template has {{{place}}}"),
        }
    }

    fn of_entry(&self, number: usize, column: &KeyColumn) -> [String; 3] {
        let (name, mariadb) = (column.name.to_string(), self.package.options.mariadb());
        let of_text = |kind: &str| text_type(kind, &self.package.options.collation());
        match column.kind {
            // JSON_EQUALS distinguishes a character and its escape sequence, such as \u00e4.
            KeyType::Text(..) if mariadb => [
                // A character that the column lacks is an error of the INSERT, not a question mark.
                "TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin".to_owned(),
                format!("JSON_EXTRACT(array, '$[{number}]')"),
                name,
            ],
            // JSON_TABLE removes trailing spaces from a CHAR.
            KeyType::Text(_, length) => [of_text(&format!("VARCHAR({length})")), name.clone(), name],
            KeyType::Date(kind) => [kind.to_owned(), format!("CAST({name} AS CHAR)"), name],
            KeyType::Binary(kind, length) => {
                let digits = format!("VARCHAR({}) CHARACTER SET utf8mb4", 2 * length);
                let value = format!("UNHEX({name})");
                // The server pads a value that is too short with zeros.
                match kind {
                    "BINARY" => [digits, format!("RPAD({name}, {}, '.')", 2 * length), value],
                    _ => [digits, name, value],
                }
            }
            KeyType::Name | KeyType::Integer(_) => [column.kind.text(), name.clone(), name],
        }
    }

    /// A text of the collation of the package.
    pub(super) fn varchar(&self, characters: u32) -> String {
        text_type(&format!("VARCHAR({characters})"), &self.package.options.collation())
    }

    /// The fixed number of slots, or that of the counter, which is in a variable.
    pub(super) fn slots(&self, variable: &str) -> String {
        match self.package.options.subject.slots() {
            Slots::PerCounter => variable.to_owned(),
            Slots::Fixed(slots) => slots.to_string(),
        }
    }

    /// Values of the key in an example, in SQL.
    pub(super) fn example(&self) -> String {
        self.samples("'", "x'")
    }

    /// The same between other quotes, such as those of JSON.
    pub(super) fn samples(&self, quote: &str, bytes: &str) -> String {
        let text = |text: &str| format!("{quote}{text}{quote}");
        let sample = |(column, number): (&KeyColumn, &str)| match column.kind {
            KeyType::Name if self.package.options.is_bounded() => text("seats"),
            KeyType::Name => text("downloads"),
            KeyType::Integer("TINYINT" | "TINYINT UNSIGNED") => "12".to_owned(),
            KeyType::Integer(_) => number.to_owned(),
            KeyType::Date("DATE") => text("2026-12-31"),
            KeyType::Date(_) => text("2026-12-31 23:59:59"),
            KeyType::Text(..) => text("/"),
            KeyType::Binary(_, length) => format!("{bytes}{}{}", "0a".repeat(length as usize), quote),
        };
        let columns = self.package.options.key().iter();
        let samples = columns.zip(["123", "456", "789"].into_iter().cycle()).map(sample);
        samples.collect::<Vec<_>>().join(", ")
    }

    /// What MySQL does not have before a statement. Most exempt the statement
    /// - by innodb_snapshot_isolation from error 1020: MariaDB from 11.6.2 on rejects a change of a row that has changed since the first
    ///   SELECT of the transaction. Source: MariaDB's documentation, "innodb_snapshot_isolation"
    /// - by sql_safe_updates from error 1175, which MySQL does not raise in routines.
    pub(super) fn on_mariadb<'b>(&self, text: &'b str) -> &'b str {
        if self.package.options.mariadb() { text } else { "" }
    }

    /// The first line of each file.
    pub(super) fn banner(&self) -> String {
        let arguments = self.package.options.arguments();
        format!("-- Generated by slotted {VERSION}. To change it: slotted generate {arguments}")
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

    /// The same for the key.
    pub(super) fn key_columns(&self) -> Vec<String> {
        let o = &self.package.options;
        let column = |column: &KeyColumn| {
            let collation = if column.kind.is_text() { format!(" {}", o.collation()) } else { String::new() };
            format!("{} {}{collation} NOT NULL", column.name.name(), column.kind.text().to_lowercase())
        };
        o.key().iter().map(column).collect()
    }

    /// The names of the columns of the primary key, with commas between them.
    pub(super) fn primary_key(&self) -> String {
        let slot = if self.package.options.is_named() { "counter_id" } else { "slot" };
        let key = self.package.options.key().iter().map(|column| column.name.name());
        key.chain([slot]).collect::<Vec<_>>().join(",")
    }
}

fn text_type(kind: &str, collation: &Collation) -> String {
    format!("{kind} CHARACTER SET {} COLLATE {collation}", collation.charset())
}

/// Renders a template, or a block of one, for an object of a package.
macro_rules! text {
    ($sql:expr, $($template:tt)*) => {{
        #[derive(askama::Template)]
        #[template($($template)*)]
        #[allow(dead_code, reason = "few templates use all")]
        struct Text<'a> {
            sql: Sql<'a>,
            package: &'a Package,
            o: &'a Options,
        }
        let sql: Sql<'_> = $sql;
        let text = Text { sql, package: sql.package, o: &sql.package.options };
        askama::Template::render(&text).expect("a template that has only fields and pure methods renders")
    }};
}
pub(super) use text;

pub(super) mod filters {
    use std::fmt::Display;

    use crate::package::SqlStr;

    /// The text as an SQL string literal.
    #[askama::filter_fn]
    pub fn sql_string(text: impl Display, _: &dyn askama::Values) -> askama::Result<SqlStr<String>> {
        Ok(SqlStr(text.to_string()))
    }
}
