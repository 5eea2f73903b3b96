//! The columns of the key in statements.

use std::fmt;

use askama::Template;

use super::fragment;
use crate::package::{Collation, Ident, KeyColumn, KeyType, NAME_MAX, Package};

/// Where a statement takes the values of the key columns from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arguments {
    /// The parameters of the routine.
    Parameters,
    /// The local variables of the routine.
    Variables,
    /// The question marks of a prepared statement.
    Placeholders,
}

/// The key of a package as statements write it.
#[derive(Clone, Copy)]
pub(super) struct KeyParts<'a> {
    columns: &'a [KeyColumn],
    collation: &'a Collation,
    source: Arguments,
}

/// A part of a statement each: a block of `shared/key.sql` and its arguments.
macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident($($argument:ident)?) $block:literal)*) => {
        $($(#[$doc])*
        pub(super) fn $name(&self $(, $argument: &str)?) -> String {
            #[derive(Template)]
            #[template(path = "shared/key.sql", block = $block)]
            struct Part<'a> { key: &'a KeyParts<'a> $(, $argument: &'a str)? }
            fragment(&Part { key: self $(, $argument)? })
        })*
    };
}

/// A part of a statement each, of one column: a block of `shared/key_column.sql` and its arguments.
macro_rules! column_parts {
    ($($(#[$doc:meta])* $name:ident($($argument:ident)?) $block:literal)*) => {
        $($(#[$doc])*
        pub(super) fn $name(&self, column: &KeyColumn $(, $argument: impl AsRef<str>)?) -> String {
            #[derive(Template)]
            #[template(path = "shared/key_column.sql", block = $block)]
            #[allow(dead_code, reason = "few blocks use all")]
            struct Part<'a> { key: &'a KeyParts<'a>, column: &'a KeyColumn, p: String $(, $argument: &'a str)? }
            let p = column.parameter.typed();
            fragment(&Part { key: self, column, p $(, $argument: $argument.as_ref())? }).trim().to_owned()
        })*
    };
}

impl<'a> KeyParts<'a> {
    column_parts! {
        /// A parameter in the character set of its column.
        converted() "converted"
        /// The condition that the character set of the column has all characters of a parameter.
        converts() "converts"
        /// A parameter as a value of its column.
        value() "value"
        /// The condition that a parameter fits its column.
        fits() "fits"
        /// The condition that it does not.
        misfit() "misfit"
        /// The condition that a value of JSON_TABLE() fits its column. `json` is the same value as JSON.
        json_fits(json) "json_fits"
        /// A value of JSON_TABLE() as a value of its column.
        json_value() "json_value"
    }

    pub(super) fn of(package: &'a Package, source: Arguments) -> Self {
        Self {
            columns: &package.options.key.0,
            collation: &package.options.collation,
            source,
        }
    }

    parts! {
        /// The columns, separated by commas.
        list() "list"
        /// The columns, a line each.
        lines() "lines"
        /// The arguments, separated by commas.
        arguments() "arguments"
        /// The arguments as the caller has passed them.
        raw_arguments() "raw_arguments"
        /// The condition for the rows of one counter, behind `   WHERE `.
        equals(alias) "equals"
        /// The condition that every argument is valid.
        valid() "valid"
        /// An OR for each argument that may equal a stored value although it does not fit.
        or_unfit() "or_unfit"
        /// An AND for each argument that may equal a stored value although it does not fit.
        and_fits() "and_fits"
        /// The declarations of the parameters.
        parameters(mode) "parameters"
        /// The declarations of the parameters of the routine that checks a key.
        checked_parameters(mode) "checked_parameters"
        /// The columns in JSON_TABLE(), a line each.
        json_columns() "json_columns"
        /// The same columns as JSON, a line each.
        json_values() "json_values"
        /// The condition that the values of JSON_TABLE() fit the columns.
        json_fits_all() "json_fits_all"
        /// The values of JSON_TABLE() with the names of the columns, separated by commas.
        json_list() "json_list"
        /// The parameters in the manual of a routine.
        manual() "manual"
    }

    pub(super) fn columns(&self) -> &'a [KeyColumn] {
        self.columns
    }

    /// Whether a statement takes the values from a caller, and is not part of a routine.
    pub(super) fn placeholders(&self) -> bool {
        self.source == Arguments::Placeholders
    }

    /// The same key with the values of local variables.
    pub(super) fn variables(&self) -> Self {
        Self {
            source: Arguments::Variables,
            ..*self
        }
    }

    pub(super) fn argument(&self, column: &KeyColumn) -> String {
        match self.source {
            Arguments::Parameters => self.value(column),
            Arguments::Placeholders => "?".to_owned(),
            // As long as the name of the parameter, which is a valid identifier.
            Arguments::Variables => Ident::new(format!("v_{}", column.name.name()))
                .expect("as long as the parameter")
                .typed(),
        }
    }

    /// The names of the columns, for a comment.
    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self.columns.iter().map(|column| column.name.plain()).collect();
        names.join(", ")
    }

    pub(super) fn column_type(&self, column: &KeyColumn) -> String {
        self.with_collation(column, column.kind.text())
    }

    pub(super) fn parameter_type(&self, column: &KeyColumn) -> String {
        self.with_all_characters(column, column.kind.parameter())
    }

    pub(super) fn checked_type(&self, column: &KeyColumn) -> String {
        let kind = column.kind.checked();
        if matches!(column.kind, KeyType::Date(_)) {
            kind + " CHARACTER SET utf8mb4"
        } else {
            self.with_all_characters(column, kind)
        }
    }

    pub(super) fn json_type(&self, column: &KeyColumn) -> String {
        self.with_all_characters(column, column.kind.json())
    }

    pub(super) fn collation(&self) -> &'a Collation {
        self.collation
    }

    /// Whether the character set of the column lacks characters that an argument can have.
    fn lacks_characters(&self, column: &KeyColumn) -> bool {
        column.kind.is_text() && !self.collation.has_all_characters()
    }

    /// The type of a value of a caller. A server without strict mode changes characters that its character set does not have to question
    /// marks, and such a key would count for another record.
    fn with_all_characters(&self, column: &KeyColumn, kind: String) -> String {
        if self.lacks_characters(column) {
            format!(
                "{kind} CHARACTER SET utf8mb4 COLLATE {}",
                self.collation.of_arguments()
            )
        } else {
            self.with_collation(column, kind)
        }
    }

    fn with_collation(&self, column: &KeyColumn, kind: impl fmt::Display) -> String {
        if column.kind.is_text() {
            text_type(kind, self.collation)
        } else {
            kind.to_string()
        }
    }
}

/// A string type with its character set and collation. With those of the database, a comparison of column and
/// parameter fails (1267) or does not use the key.
pub(super) fn text_type(kind: impl fmt::Display, collation: &Collation) -> String {
    format!("{kind} CHARACTER SET {} COLLATE {collation}", collation.charset())
}
