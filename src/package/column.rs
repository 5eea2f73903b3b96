//! A column of another table whose counts are in the slots until a roll-up moves them.

use std::fmt;
use std::str::FromStr;

use super::key::split_outside_backticks;
use super::{Ident, IdentError};

/// A column of a table, written as `articles.views`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// The table.
    pub table: Ident,
    /// The column.
    pub column: Ident,
}

/// The reason why a text is not a column of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    /// Not two names.
    #[error("'{0}' is not a column of a table: expected TABLE.COLUMN")]
    Form(String),
    /// The name of the table or the column is not an identifier.
    #[error("{0}")]
    Name(#[from] IdentError),
}

impl FromStr for TableColumn {
    type Err = ColumnError;

    fn from_str(text: &str) -> Result<Self, ColumnError> {
        let [table, column] = split_outside_backticks(text, '.')[..] else {
            return Err(ColumnError::Form(text.to_owned()));
        };
        Ok(Self { table: ident(table)?, column: ident(column)? })
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
    type Err = IdentError;

    fn from_str(text: &str) -> Result<Self, IdentError> {
        let names = split_outside_backticks(text, ',').into_iter().map(ident);
        names.collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(Ident::plain).collect::<Vec<_>>().join(","))
    }
}

/// Reads a name, in backticks or not.
pub(super) fn ident(text: &str) -> Result<Ident, IdentError> {
    let text = text.trim();
    match text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
        Some(quoted) => Ident::new(quoted.replace("``", "`")),
        None => Ident::new(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_parsed_and_displayed() {
        for text in ["articles.views", "`my.pages`.`views,all`", "t.`a``b`"] {
            assert_eq!(text.parse::<TableColumn>().map(|column| column.to_string()), Ok(text.into()));
        }
        for text in ["", "articles", "a.b.c"] {
            assert_eq!(text.parse::<TableColumn>(), Err(ColumnError::Form(text.into())));
        }
        assert_eq!("a.".parse::<TableColumn>(), Err(ColumnError::Name(IdentError::Empty)));
        let columns = "changed, `seen at`,`a,b`".parse::<Columns>();
        assert_eq!(columns.map(|names| names.to_string()), Ok("changed,`seen at`,`a,b`".into()));
    }
}
