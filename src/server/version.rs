//! The family and version of a server.

use std::fmt;

use mysql::prelude::Queryable;

use crate::package::Family;

/// The family and version of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// The server family.
    pub family: Family,
    /// The first number of the version.
    pub major: u16,
    /// The second number of the version.
    pub minor: u16,
    /// The third number of the version.
    pub patch: u16,
}

impl Version {
    /// Parses the result of `SELECT VERSION()` or the output of `mysqld --version`. None if it contains no version.
    pub fn parse(text: &str) -> Option<Self> {
        let family = if text.to_lowercase().contains("mariadb") { Family::Mariadb } else { Family::Mysql };
        let number = text
            .split_whitespace()
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.split('.').count() >= 3)?;
        let mut numbers = number.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
        Some(Self { family, major: numbers.next()?, minor: numbers.next()?, patch: numbers.next()? })
    }

    /// Queries the version of a server.
    ///
    /// # Errors
    /// The connection fails, or the version cannot be parsed.
    pub fn of(connection: &mut mysql::Conn) -> Result<Self, mysql::Error> {
        let text: String = connection.query_first("SELECT VERSION()")?.unwrap_or_default();
        Self::parse(&text).ok_or_else(|| std::io::Error::other(format!("unknown version '{text}'")).into())
    }
}

/// The family and the release series.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.{}", self.family, self.major, self.minor)
    }
}
