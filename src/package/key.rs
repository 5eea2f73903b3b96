//! The key that identifies a counter: a name, or the columns given with `--key`.

use std::str::FromStr;
use std::sync::LazyLock;

use super::ident::{Ident, OptionsError};

/// The maximum length of a counter's name, in characters.
pub const NAME_MAX: u32 = 100;

/// A column of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// The name of the column.
    pub name: Ident,
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

/// The beginning of the names of variables for the columns.
const VARIABLE: &str = "v_key_";

const INTEGERS: [[&str; 2]; 5] = [
    ["TINYINT", "TINYINT UNSIGNED"],
    ["SMALLINT", "SMALLINT UNSIGNED"],
    ["MEDIUMINT", "MEDIUMINT UNSIGNED"],
    ["INT", "INT UNSIGNED"],
    ["BIGINT", "BIGINT UNSIGNED"],
];
const DATES: [&str; 2] = ["DATE", "DATETIME"];
const TEXTS: [&str; 2] = ["CHAR", "VARCHAR"];
const BINARIES: [&str; 2] = ["BINARY", "VARBINARY"];

/// The names of the other columns of the table, the view and JSON_TABLE, and after `p_`, of the other parameters of the routines that have
/// the key. A promise compares them with the SQL.
pub const TAKEN: [&str; 12] =
    ["amount", "array", "count", "entry", "idle", "left", "rejected", "slot", "slots", "step", "total", "value"];

impl KeyType {
    /// None if the text is not a type of a key column.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let words: Vec<_> = text.split_whitespace().map(str::to_uppercase).collect();
        let plain = words.join(" ").replace("INTEGER", "INT");
        let find = |names: &[&'static str], name: &str| names.iter().copied().find(|one| *one == name);
        let integer = find(INTEGERS.as_flattened(), &plain).map(Self::Integer);
        if let Some(simple) = integer.or_else(|| find(&DATES, &plain).map(Self::Date)) {
            return Some(simple);
        }
        let (name, length) = plain.strip_suffix(')')?.split_once('(')?;
        let (name, length) = (name.trim(), length.trim().parse().ok().filter(|n| (1..=3072).contains(n))?);
        let text = find(&TEXTS, name).map(|name| Self::Text(name, length));
        text.or_else(|| find(&BINARIES, name).map(|name| Self::Binary(name, length)))
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
        static NAME: LazyLock<[KeyColumn; 1]> =
            LazyLock::new(|| [KeyColumn { name: Ident::stored("counter_name"), kind: KeyType::Name }]);
        &*NAME
    }

    /// The name of the routines' parameter for the column: `p_` and the column's name.
    pub(crate) fn parameter(&self) -> Ident {
        Ident::stored(format!("p_{}", self.name.name()))
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
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let columns = split_outside_backticks(text, |c| c == ',').into_iter().map(KeyColumn::from_str);
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let names: Vec<_> = columns.iter().map(|column| column.name.name().to_lowercase()).collect();
        if let Some(at) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
            return Err(OptionsError(format!("two key columns have the name '{}'", columns[at].name.name())));
        }
        Ok(Self(columns))
    }
}

impl FromStr for KeyColumn {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let text = text.trim();
        let name = split_outside_backticks(text, char::is_whitespace)[0];
        let Some(kind) = KeyType::parse(&text[name.len()..]) else {
            return Err(OptionsError(format!(
                "'{text}' is not a key column: expected a name and a type, which is TINYINT, SMALLINT, MEDIUMINT, INT or BIGINT, \
                 each also UNSIGNED, CHAR(n), VARCHAR(n), BINARY(n), VARBINARY(n), DATE or DATETIME"
            )));
        };
        let name: Ident = name.parse()?;
        let lower: Vec<char> = name.name().to_ascii_lowercase().chars().collect();
        // In a routine, a parameter or variable precedes a column of the same name, which MySQL 9.7 compares without accents. Source: MySQL
        // manual, "Local Variable Scope and Resolution".
        let begins = |s: &str| s.len() <= lower.len() && s.chars().zip(&lower).all(|(a, b)| a == *b || !b.is_ascii());
        let why = if TAKEN.iter().any(|name| name.len() == lower.len() && begins(name)) {
            "the package has a column or parameter of this name"
        } else if begins("p_") || begins("v_") {
            "parameters and variables of the routines begin with p_ and v_"
        } else {
            // The longest name that a routine has for it.
            Ident::new(format!("{VARIABLE}{}", name.name()))?;
            return Ok(Self { name, kind });
        };
        Err(OptionsError(format!("a key column cannot be named '{}': {why}", name.name())))
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let column = |column: &KeyColumn| format!("{} {}", column.name.plain(), column.kind.text());
        f.write_str(&self.0.iter().map(column).collect::<Vec<_>>().join(", "))
    }
}

/// Splits at each separator that is not between backticks.
pub(super) fn split_outside_backticks(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c| {
        quoted ^= c == '`';
        is_separator(c) && !quoted
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parsed_and_displayed() {
        for (text, written) in [
            ("record_type INT, record_id BIGINT", "record_type INT, record_id BIGINT"),
            (" url  varchar( 255 ) ", "url VARCHAR(255)"),
            ("a\tinteger unsigned,b Binary(16)", "a INT UNSIGNED, b BINARY(16)"),
            ("`a, (b';` CHAR(3), `c``d` TINYINT", "`a, (b';` CHAR(3), `c``d` TINYINT"),
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
        let type_is_invalid =
            ["", "a", "a TEXT", "a VARCHAR", "a VARCHAR(0)", "a INT(11)", "a INT b", "`a INT", "a INT,,b INT"];
        let long = format!("{} INT", "n".repeat(63));
        for (keys, why) in [
            (&type_is_invalid[..], "is not a key column"),
            (&["slot INT", "Slöt INT", "ſlot INT"], "t': the package has"),
            (&["id INT, P_id INT", "ṕ_id INT", "ṽ_sum INT"], ": parameters"),
            (&["`v_total` INT"], "'v_total': parameters"),
            (&["a INT, A INT"], "two key columns have the name 'A'"),
            (&["`a ` INT", "` a` INT"], "begin or end with a space"),
            (&[&long], "has at most 64 characters"),
        ] {
            for key in keys {
                let error = key.parse::<Key>().expect_err(key).to_string();
                assert!(error.contains(why), "{key}: {error}");
            }
        }
    }
}
