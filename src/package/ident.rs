//! Names and strings on their way into SQL. Both quote themselves, so a template cannot forget to.

use std::fmt;
use std::str::FromStr;

/// The most characters that MySQL and MariaDB take in the name of a table, view, routine or column.
/// Source: MySQL manual, "Identifier Length Limits".
pub const IDENT_MAX: usize = 64;

/// Why a text cannot be an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentError {
    /// Nothing is left to name.
    #[error("a name must not be empty")]
    Empty,
    /// Longer than [`IDENT_MAX`] characters.
    #[error("a name has at most {IDENT_MAX} characters, and '{0}' has {1}")]
    TooLong(String, usize),
    /// A control character: servers take most of them, but no reviewer would see them.
    #[error("a name must not contain the control character U+{0:04X}")]
    Control(u32),
    /// Beyond U+FFFF, which the servers refuse in identifiers.
    #[error("a name must not contain '{0}': MySQL and MariaDB take only characters up to U+FFFF in names")]
    Supplementary(char),
    /// A trailing space, which the servers refuse.
    #[error("a name must not end with a space: '{0}'")]
    TrailingSpace(String),
}

/// An identifier. Its `Display` is the name in backticks, ready for a statement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ident(String);

impl Ident {
    /// Takes any name that both servers accept between backticks.
    ///
    /// # Errors
    /// Names that are empty, too long, end with a space, or have characters that servers refuse in names.
    /// Source: MySQL manual, "Schema Object Names".
    pub fn new(name: impl Into<String>) -> Result<Self, IdentError> {
        let name = name.into();
        check_characters(&name)?;
        if name.is_empty() {
            return Err(IdentError::Empty);
        }
        if name.ends_with(' ') {
            return Err(IdentError::TrailingSpace(name));
        }
        let length = name.chars().count();
        if length > IDENT_MAX {
            return Err(IdentError::TooLong(name, length));
        }
        Ok(Self(name))
    }

    /// The name itself, without quotes.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// As an option takes it: in backticks where it is more than letters, digits and underscores.
    pub fn plain(&self) -> String {
        if self.0.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            self.0.clone()
        } else {
            self.to_string()
        }
    }

    /// As a person would type it in an example: in backticks only where it may need them. A word without an
    /// underscore may be reserved on some server (add, drop).
    pub fn typed(&self) -> String {
        let word = |c: char| c.is_ascii_lowercase() || c == '_';
        if self.0.contains('_') && self.0.chars().all(word) {
            self.0.clone()
        } else {
            self.to_string()
        }
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0.replace('`', "``"))
    }
}

impl FromStr for Ident {
    type Err = IdentError;
    fn from_str(name: &str) -> Result<Self, IdentError> {
        Self::new(name)
    }
}

/// What routine and view names begin with. Empty is allowed, an end that is a space too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// The name of an object of the package.
    ///
    /// # Errors
    /// Where prefix and suffix together are no identifier.
    pub fn join(&self, suffix: &str) -> Result<Ident, IdentError> {
        Ident::new(format!("{}{suffix}", self.0))
    }

    /// The prefix itself, without quotes.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl FromStr for Prefix {
    type Err = IdentError;
    fn from_str(prefix: &str) -> Result<Self, IdentError> {
        check_characters(prefix)?;
        Ok(Self(prefix.to_owned()))
    }
}

fn check_characters(name: &str) -> Result<(), IdentError> {
    for c in name.chars() {
        if c.is_control() {
            return Err(IdentError::Control(c as u32));
        }
        if c as u32 > 0xFFFF {
            return Err(IdentError::Supplementary(c));
        }
    }
    Ok(())
}

/// A character string. Its `Display` is an SQL literal for the sql_mode that our scripts set, in which a
/// backslash escapes (no NO_BACKSLASH_ESCAPES).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlStr<T>(pub T);

impl<T: AsRef<str>> fmt::Display for SqlStr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}'",
            self.0.as_ref().replace('\\', "\\\\").replace('\'', "''")
        )
    }
}
