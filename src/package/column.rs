//! A column of another table whose counts are in the slots until a roll-up moves them.

use std::fmt;
use std::str::FromStr;

use super::ident::{Ident, OptionsError};
use super::key::split_outside_backticks;

/// A column of a table, written as `articles.views`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// The table.
    pub table: Ident,
    /// The column.
    pub column: Ident,
}

impl FromStr for TableColumn {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let [table, column] = split_outside_backticks(text, |c| c == '.')[..] else {
            return Err(OptionsError(format!("'{text}' is not a column of a table: expected TABLE.COLUMN")));
        };
        Ok(Self { table: table.parse()?, column: column.parse()? })
    }
}

impl fmt::Display for TableColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.table.plain(), self.column.plain())
    }
}

/// Names of columns, written with commas between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns(pub Vec<Ident>);

impl FromStr for Columns {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let names = split_outside_backticks(text, |c| c == ',').into_iter().map(Ident::from_str);
        names.collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(Ident::plain).collect::<Vec<_>>().join(","))
    }
}
