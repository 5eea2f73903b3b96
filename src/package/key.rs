//! The key that a counter is found by: a name, or columns of your choice.

use std::str::FromStr;

use super::ident::{IDENT_MAX, Ident, IdentError};
use super::{NAME_MAX, NAME_PARAMETER};

/// A column of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// The column.
    pub name: Ident,
    /// The parameter of the routines.
    pub parameter: Ident,
    /// What it holds.
    pub kind: KeyType,
}

/// What a key column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyType {
    /// The name of a counter of the package `counters`.
    Name,
    /// A whole number: its type in SQL, and the range. Source: MySQL manual, "Integer Types".
    Integer(&'static str, i128, i128),
    /// CHAR or VARCHAR of so many characters.
    Text(&'static str, u32),
    /// BINARY or VARBINARY of so many bytes.
    Binary(&'static str, u32),
}

/// Why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A column without a type, or with one that a key cannot have.
    #[error(
        "'{0}' is no key column: a name and TINYINT, SMALLINT, MEDIUMINT, INT or BIGINT, each also UNSIGNED, \
         CHAR(n), VARCHAR(n), BINARY(n) or VARBINARY(n) are needed"
    )]
    Column(String),
    /// A name that no server takes.
    #[error("{0}")]
    Name(#[from] IdentError),
    /// A name that the package has another use for.
    #[error("a key column cannot have the name '{0}', which the package uses itself")]
    Taken(String),
    /// Two columns of one name.
    #[error("two key columns have the name '{0}'")]
    Twice(String),
    /// More than InnoDB takes in a key. Source: MySQL manual, "InnoDB Limits".
    #[error("the key would have up to {0} bytes, and InnoDB takes at most 3072")]
    TooLong(u64),
}

const INTEGERS: [(&str, u32); 5] = [
    ("TINYINT", 8),
    ("SMALLINT", 16),
    ("MEDIUMINT", 24),
    ("INT", 32),
    ("BIGINT", 64),
];
const UNSIGNED: [&str; 5] = [
    "TINYINT UNSIGNED",
    "SMALLINT UNSIGNED",
    "MEDIUMINT UNSIGNED",
    "INT UNSIGNED",
    "BIGINT UNSIGNED",
];
const TEXTS: [&str; 2] = ["CHAR", "VARCHAR"];
const BINARIES: [&str; 2] = ["BINARY", "VARBINARY"];

/// What the tables and parameters of the package are called besides the key.
const TAKEN: [&str; 4] = ["slot", "count", "amount", "value"];

impl KeyType {
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<_> = text.split_whitespace().map(str::to_uppercase).collect();
        let words: Vec<_> = words
            .iter()
            .map(|word| if word == "INTEGER" { "INT" } else { word })
            .collect();
        if let [integer] | [integer, "UNSIGNED"] = words[..]
            && let Some(at) = INTEGERS.iter().position(|(name, _)| *name == integer)
        {
            let (name, bits) = INTEGERS[at];
            return Some(if words.len() == 1 {
                Self::Integer(name, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
            } else {
                Self::Integer(UNSIGNED[at], 0, (1 << bits) - 1)
            });
        }
        let (name, rest) = text.trim().split_once('(')?;
        let length: u32 = rest
            .trim()
            .strip_suffix(')')?
            .trim()
            .parse()
            .ok()
            .filter(|n| (1..=3072).contains(n))?;
        let name = name.trim().to_uppercase();
        let known = |names: [&'static str; 2]| names.into_iter().find(|known| *known == name);
        known(TEXTS)
            .map(|name| Self::Text(name, length))
            .or_else(|| known(BINARIES).map(|name| Self::Binary(name, length)))
    }

    /// The most bytes that it takes in a key; a character of utf8mb4 has up to four.
    fn bytes(&self) -> u64 {
        match self {
            Self::Name => u64::from(NAME_MAX) * 4,
            Self::Integer(..) => 8,
            Self::Text(_, characters) => u64::from(*characters) * 4,
            Self::Binary(_, bytes) => u64::from(*bytes),
        }
    }

    /// As a reader knows the type.
    pub fn text(&self) -> String {
        match self {
            Self::Name => format!("VARCHAR({NAME_MAX})"),
            Self::Integer(name, ..) => (*name).to_owned(),
            Self::Text(name, n) | Self::Binary(name, n) => format!("{name}({n})"),
        }
    }

    /// The type of the parameter: wide enough that an argument which does not fit the column can be seen. A server
    /// in a non-strict mode cuts it silently to the parameter, and a cut key would count for another record.
    pub fn parameter(&self) -> String {
        match self {
            Self::Name => format!("VARCHAR({NAME_PARAMETER})"),
            Self::Integer(name, ..) if name.starts_with("BIGINT") => (*name).to_owned(),
            Self::Integer(..) => "BIGINT".to_owned(),
            Self::Text(_, n) => format!("VARCHAR({})", n + 1),
            Self::Binary(_, n) => format!("VARBINARY({})", n + 1),
        }
    }

    /// Whether it has a character set and a collation.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Name | Self::Text(..))
    }
}

impl KeyColumn {
    /// The key of the package `counters`.
    pub fn name() -> Self {
        let ident = |name: &str| Ident::new(name).expect("a plain name");
        Self {
            name: ident("counter_name"),
            parameter: ident("p_counter_name"),
            kind: KeyType::Name,
        }
    }

    /// A condition that is true where the argument does not fit the column; None where every argument fits. It is
    /// unknown for NULL.
    pub fn misfit(&self) -> Option<String> {
        self.compared("NOT BETWEEN", ">", "<>")
    }

    /// The opposite of [`KeyColumn::misfit`], unknown for NULL too.
    pub fn fits(&self) -> Option<String> {
        self.compared("BETWEEN", "<=", "=")
    }

    /// The argument compared with what the column can hold: a number with its range, a length with the most that there
    /// may be, or with the only one.
    fn compared(&self, range: &str, most: &str, only: &str) -> Option<String> {
        let p = self.parameter.typed();
        match &self.kind {
            KeyType::Integer(name, ..) if name.starts_with("BIGINT") => None,
            KeyType::Name => Some(format!("CHAR_LENGTH({p}) {most} {NAME_MAX}")),
            KeyType::Integer(_, least, greatest) => Some(format!("{p} {range} {least} AND {greatest}")),
            KeyType::Text(_, n) => Some(format!("CHAR_LENGTH({p}) {most} {n}")),
            // BINARY is filled up when it is stored, and the argument would not be found again.
            KeyType::Binary("BINARY", n) => Some(format!("LENGTH({p}) {only} {n}")),
            KeyType::Binary(_, n) => Some(format!("LENGTH({p}) {most} {n}")),
        }
    }

    /// A condition that is true where the argument does not fit the column, but may equal a value in it: a server that
    /// is not strict cuts a string to its parameter, and what is left may differ only in spaces at the end.
    pub fn cut(&self) -> Option<String> {
        match &self.kind {
            KeyType::Name | KeyType::Text(..) => self.misfit(),
            KeyType::Integer(..) | KeyType::Binary(..) => None,
        }
    }
}

/// The columns of a key, as `record_type INT, record_id BIGINT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(pub Vec<KeyColumn>);

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut columns: Vec<KeyColumn> = Vec::new();
        for column in split_outside_quotes(text, ',') {
            let wrong = || KeyError::Column(column.trim().to_owned());
            let (name, kind) = split_name(column).ok_or_else(wrong)?;
            let kind = KeyType::parse(kind).ok_or_else(wrong)?;
            let lower = name.to_lowercase();
            if TAKEN.contains(&lower.as_str()) {
                return Err(KeyError::Taken(name));
            }
            if columns
                .iter()
                .any(|column| column.name.name().to_lowercase() == lower)
            {
                return Err(KeyError::Twice(name));
            }
            let parameter = format!("p_{name}");
            if parameter.chars().count() > IDENT_MAX {
                let length = name.chars().count() + 2;
                return Err(IdentError::TooLong(parameter, length).into());
            }
            columns.push(KeyColumn {
                name: Ident::new(name)?,
                parameter: Ident::new(parameter)?,
                kind,
            });
        }
        let bytes = columns.iter().map(|column| column.kind.bytes()).sum::<u64>() + 4;
        if bytes > 3072 {
            return Err(KeyError::TooLong(bytes));
        }
        Ok(Self(columns))
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let column = |column: &KeyColumn| format!("{} {}", column.name.plain(), column.kind.text());
        f.write_str(&self.0.iter().map(column).collect::<Vec<_>>().join(", "))
    }
}

/// Splits where the separator is not between backticks or single quotes.
pub(super) fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut quote = None;
    text.split(|c| {
        match quote {
            None if "`'".contains(c) => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
        c == separator && quote.is_none()
    })
    .collect()
}

/// The name of a column, in backticks or a plain word, and what is behind it.
fn split_name(column: &str) -> Option<(String, &str)> {
    let column = column.trim_start();
    if let Some(rest) = column.strip_prefix('`') {
        // The first backtick that is not doubled ends the name.
        let mut characters = rest.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            if c == '`' && characters.next_if(|(_, next)| *next == '`').is_none() {
                return Some((rest[..at].replace("``", "`"), &rest[at + 1..]));
            }
        }
        return None;
    }
    let end = column.find(char::is_whitespace)?;
    Some((column[..end].to_owned(), &column[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_written() {
        for (text, written) in [
            (
                "record_type INT, record_id BIGINT",
                "record_type INT, record_id BIGINT",
            ),
            (" url  varchar( 255 ) ", "url VARCHAR(255)"),
            ("a integer unsigned,b Binary(16)", "a INT UNSIGNED, b BINARY(16)"),
            ("`a, b` CHAR(3), `c``d` TINYINT", "`a, b` CHAR(3), `c``d` TINYINT"),
        ] {
            let key: Key = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(key.to_string(), written);
            assert_eq!(key.to_string().parse(), Ok(key));
        }
    }

    #[test]
    fn what_cannot_be_a_key_is_refused() {
        for text in [
            "",
            "a",
            "a TEXT",
            "a VARCHAR",
            "a VARCHAR(0)",
            "a INT(11)",
            "a FLOAT",
            "a INT b",
            "`a INT",
            "a INT,,b INT",
        ] {
            assert!(matches!(text.parse::<Key>(), Err(KeyError::Column(_))), "{text}");
        }
        assert_eq!("slot INT".parse::<Key>(), Err(KeyError::Taken("slot".into())));
        assert_eq!("a INT, A INT".parse::<Key>(), Err(KeyError::Twice("A".into())));
        assert_eq!("a VARCHAR(768)".parse::<Key>(), Err(KeyError::TooLong(3076)));
        assert!(matches!("`a ` INT".parse::<Key>(), Err(KeyError::Name(_))));
        assert!(matches!(
            format!("{} INT", "n".repeat(63)).parse::<Key>(),
            Err(KeyError::Name(_))
        ));
    }

    #[test]
    fn integers_have_the_range_of_their_type() {
        let range = |text| match KeyType::parse(text) {
            Some(KeyType::Integer(_, least, most)) => (least, most),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(range("TINYINT"), (-128, 127));
        assert_eq!(range("INT"), (i32::MIN.into(), i32::MAX.into()));
        assert_eq!(range("BIGINT UNSIGNED"), (0, u64::MAX.into()));
    }
}
