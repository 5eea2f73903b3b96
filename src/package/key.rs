//! The key that identifies a counter: a name, or the columns given with `--key`.

use std::str::FromStr;
use std::sync::LazyLock;

use super::NAME_MAX;
use super::ident::{IDENT_MAX, Ident, IdentError};

/// A column of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// The name of the column.
    pub name: Ident,
    /// The name of the routines' parameter for the column: `p_` and the column's name.
    pub parameter: Ident,
    /// The data type.
    pub kind: KeyType,
}

/// The data type of a key column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyType {
    /// The name of a counter of the package `counters`.
    Name,
    /// An integer: the type in SQL.
    Integer(&'static str),
    /// DATE or DATETIME: the type in SQL.
    Date(&'static str),
    /// CHAR or VARCHAR, and its length in characters.
    Text(&'static str, u32),
    /// BINARY or VARBINARY, and its length in bytes.
    Binary(&'static str, u32),
}

/// The reason why a text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A column without a type, or with a type that is not supported in a key.
    #[error(
        "'{0}' is not a key column: expected a name and a type, which is TINYINT, SMALLINT, MEDIUMINT, INT or BIGINT, \
         each also UNSIGNED, CHAR(n), VARCHAR(n), BINARY(n), VARBINARY(n), DATE or DATETIME"
    )]
    Column(String),
    /// The name of the column is not an identifier.
    #[error("{0}")]
    Name(#[from] IdentError),
    /// The package has a column or parameter of this name.
    #[error("a key column cannot be named '{0}': the package has a column or parameter of this name")]
    Taken(String),
    /// A parameter or a variable of a routine would hide the column.
    #[error("a key column cannot be named '{0}': parameters and variables of the routines begin with p_ and v_")]
    Hidden(String),
    /// Two columns have the same name.
    #[error("two key columns have the name '{0}'")]
    Twice(String),
    /// The key is longer than InnoDB allows. Source: MySQL manual, "InnoDB Limits".
    #[error("the key has up to {0} bytes, but InnoDB allows at most 3072")]
    TooLong(u64),
}

/// The beginning of the names of variables for the columns.
const VARIABLE: &str = "v_key_";

const INTEGERS: [&str; 10] = [
    "TINYINT",
    "SMALLINT",
    "MEDIUMINT",
    "INT",
    "BIGINT",
    "TINYINT UNSIGNED",
    "SMALLINT UNSIGNED",
    "MEDIUMINT UNSIGNED",
    "INT UNSIGNED",
    "BIGINT UNSIGNED",
];
const DATES: [&str; 2] = ["DATE", "DATETIME"];
const TEXTS: [&str; 2] = ["CHAR", "VARCHAR"];
const BINARIES: [&str; 2] = ["BINARY", "VARBINARY"];

/// The names of the other columns of the table, the view and JSON_TABLE, and after `p_`, of the other parameters of the routines that have
/// the key. A promise compares them with the SQL.
pub const TAKEN: [&str; 11] =
    ["amount", "array", "count", "entry", "idle", "rejected", "slot", "slots", "step", "total", "value"];

impl KeyType {
    /// None if the text is not a type of a key column.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let words: Vec<_> = text.split_whitespace().map(str::to_uppercase).collect();
        let plain = words.join(" ").replace("INTEGER", "INT");
        let find = |names: &[&'static str], name: &str| names.iter().copied().find(|one| *one == name);
        if let Some(integer) = find(&INTEGERS, &plain) {
            return Some(Self::Integer(integer));
        }
        if let Some(date) = find(&DATES, &plain) {
            return Some(Self::Date(date));
        }
        let (name, rest) = text.trim().split_once('(')?;
        let inner = rest.strip_suffix(')')?;
        let name = name.trim().to_uppercase();
        let length: u32 = inner.trim().parse().ok().filter(|n| (1..=3072).contains(n))?;
        let text = find(&TEXTS, &name).map(|name| Self::Text(name, length));
        text.or_else(|| find(&BINARIES, &name).map(|name| Self::Binary(name, length)))
    }

    /// The maximum number of bytes in an index. A character of utf8mb4 has up to four.
    fn bytes(&self) -> u64 {
        match self {
            Self::Name => u64::from(NAME_MAX) * 4,
            Self::Integer(_) | Self::Date(_) => 8,
            Self::Text(_, characters) => u64::from(*characters) * 4,
            Self::Binary(_, bytes) => u64::from(*bytes),
        }
    }

    /// The type of the column in SQL.
    pub fn text(&self) -> String {
        match self {
            Self::Name => format!("VARCHAR({NAME_MAX})"),
            Self::Integer(name) | Self::Date(name) => (*name).to_owned(),
            Self::Text(name, n) | Self::Binary(name, n) => format!("{name}({n})"),
        }
    }

    /// Whether the type has a character set and a collation.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Name | Self::Text(..))
    }
}

impl KeyColumn {
    /// The key of counters with a name.
    pub(crate) fn of_named() -> &'static [Self] {
        static NAME: LazyLock<[KeyColumn; 1]> = LazyLock::new(|| {
            let [name, parameter] = ["counter_name", "p_counter_name"].map(Ident::stored);
            [KeyColumn { name, parameter, kind: KeyType::Name }]
        });
        &*NAME
    }

    /// The name of a variable for the column: `v_key_` and the column's name. No other variable begins with `v_key_`.
    pub(crate) fn variable(&self) -> Ident {
        Ident::stored(format!("{VARIABLE}{}", self.name.name()))
    }

    /// The column, its parameter or its variable as a text of a message.
    pub(crate) fn shown(&self, name: String) -> String {
        match self.kind {
            KeyType::Binary(..) => format!("HEX({name})"),
            _ => name,
        }
    }
}

/// The columns of a key, written as `record_type INT, record_id BIGINT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(pub Vec<KeyColumn>);

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut columns: Vec<KeyColumn> = Vec::new();
        for column in split_outside_backticks(text, ',') {
            let wrong = || KeyError::Column(column.trim().to_owned());
            let (name, kind) = split_name(column).ok_or_else(wrong)?;
            let kind = KeyType::parse(kind).ok_or_else(wrong)?;
            let lower = name.to_lowercase();
            if TAKEN.contains(&lower.as_str()) {
                return Err(KeyError::Taken(name));
            }
            // In a routine, a parameter or variable precedes a column of the same name. Source: MySQL manual, "Local Variable Scope and
            // Resolution".
            if lower.starts_with("p_") || lower.starts_with("v_") {
                return Err(KeyError::Hidden(name));
            }
            if columns.iter().any(|column| column.name.name().to_lowercase() == lower) {
                return Err(KeyError::Twice(name));
            }
            let (parameter, variable) = (format!("p_{name}"), format!("{VARIABLE}{name}"));
            let length = variable.chars().count();
            if length > IDENT_MAX {
                return Err(IdentError::TooLong(variable, length).into());
            }
            columns.push(KeyColumn { name: Ident::new(name)?, parameter: Ident::new(parameter)?, kind });
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

/// Splits at each separator that is not between backticks.
pub(super) fn split_outside_backticks(text: &str, separator: char) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c| {
        quoted ^= c == '`';
        c == separator && !quoted
    })
    .collect()
}

/// The name of a column, in backticks or not, and the rest of its definition.
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
    fn keys_are_parsed_and_displayed() {
        for (text, written) in [
            ("record_type INT, record_id BIGINT", "record_type INT, record_id BIGINT"),
            (" url  varchar( 255 ) ", "url VARCHAR(255)"),
            ("a integer unsigned,b Binary(16)", "a INT UNSIGNED, b BINARY(16)"),
            ("`a, b` CHAR(3), `c``d` TINYINT", "`a, b` CHAR(3), `c``d` TINYINT"),
            ("page BIGINT, day date", "page BIGINT, day DATE"),
            ("a datetime , b varbinary(3)", "a DATETIME, b VARBINARY(3)"),
        ] {
            let key: Key = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(key.to_string(), written);
            assert_eq!(key.to_string().parse(), Ok(key));
        }
    }

    #[test]
    fn invalid_keys_are_rejected() {
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
            "a DATETIME(6)",
            "a TIMESTAMP",
            "a ENUM('b')",
            "a YEAR",
            "a UUID",
        ] {
            assert!(matches!(text.parse::<Key>(), Err(KeyError::Column(_))), "{text}");
        }
        assert_eq!("slot INT".parse::<Key>(), Err(KeyError::Taken("slot".into())));
        assert_eq!("id INT, P_id INT".parse::<Key>(), Err(KeyError::Hidden("P_id".into())));
        assert_eq!("`v_total` INT".parse::<Key>(), Err(KeyError::Hidden("v_total".into())));
        assert_eq!("a INT, A INT".parse::<Key>(), Err(KeyError::Twice("A".into())));
        assert_eq!("a VARCHAR(768)".parse::<Key>(), Err(KeyError::TooLong(3076)));
        assert!(["`a ` INT", "` a` INT"].iter().all(|key| matches!(key.parse::<Key>(), Err(KeyError::Name(_)))));
        assert!(matches!(format!("{} INT", "n".repeat(63)).parse::<Key>(), Err(KeyError::Name(_))));
    }
}

#[cfg(test)]
mod properties {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::Key;

    const TYPES: [&str; 6] = ["BIGINT", "int unsigned", "VARCHAR( 99 )", "BINARY(16)", "date", "DATETIME"];

    proptest! {
        #[test]
        fn a_key_is_displayed_as_it_is_parsed(
            columns in prop::collection::btree_map(r"k[a-z_]{0,8}|`[a-z,(';é][a-z ,(';é]{0,8}``[A-Z]`", select(&TYPES[..]), 1..5)
        ) {
            let columns: Vec<_> = columns.iter().map(|(name, kind)| format!("{name}  {kind}")).collect();
            let key: Key = columns.join(" ,").parse().expect("a key");
            prop_assert_eq!(key.0.len(), columns.len());
            prop_assert_eq!(key.to_string().parse(), Ok(key));
        }
    }
}
