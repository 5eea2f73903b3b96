//! Roll-ups: the counts of slots move into a column of another table, which has the totals.

use std::fmt;
use std::str::FromStr;

use super::key::{Key, KeyColumn, KeyType, split_outside_quotes};
use super::{Ident, IdentError, SqlStr};

/// A column that the counts of the slots move into, written as `record_type=123:repositories.id:download_count`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollup {
    /// The key columns that have one value in all records of this roll-up, each with the value.
    pub same: Vec<(Ident, Value)>,
    /// The parent table.
    pub table: Ident,
    /// The columns of the parent table that are equal to the remaining key columns, in the order of these.
    pub ids: Vec<Ident>,
    /// The column of the parent table that the counts move into.
    pub target: Ident,
    /// The columns of the parent table that a roll-up does not change although they have ON UPDATE CURRENT_TIMESTAMP.
    pub keep: Vec<Ident>,
}

/// A column of a table, written as `articles.views`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// The table.
    pub table: Ident,
    /// The column.
    pub column: Ident,
}

impl FromStr for TableColumn {
    type Err = RollupError;

    fn from_str(text: &str) -> Result<Self, RollupError> {
        let [table, column] = split_outside_quotes(text, '.')[..] else {
            return Err(RollupError::NoTableColumn(text.to_owned()));
        };
        Ok(Self {
            table: ident(table)?,
            column: ident(column)?,
        })
    }
}

impl fmt::Display for TableColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.table.plain(), self.column.plain())
    }
}

impl TableColumn {
    /// The roll-up into the column. The key columns of the package have the names and the types of those of the table.
    pub fn rollup(self, key: &Key, keep: Vec<Ident>) -> Rollup {
        Rollup {
            same: Vec::new(),
            table: self.table,
            ids: key.0.iter().map(|column| column.name.clone()).collect(),
            target: self.column,
            keep,
        }
    }
}

/// The value of a key column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// The value of an integer column.
    Integer(i128),
    /// The value of a CHAR, VARCHAR, ENUM, DATE, DATETIME or UUID column.
    Text(String),
    /// The value of a BINARY or VARBINARY column.
    Binary(Vec<u8>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(n) => n.fmt(f),
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Binary(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// The reason why a roll-up cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RollupError {
    /// A syntax error.
    #[error(
        "'{0}' is not a roll-up: expected COLUMN=VALUE,..:TABLE.ID_COLUMN,..:TOTAL_COLUMN, \
         or without values TABLE.ID_COLUMN,..:TOTAL_COLUMN; :KEPT_COLUMN,.. can follow"
    )]
    Form(String),
    /// Not a column of a table.
    #[error("'{0}' is not a column of a table: expected TABLE.COLUMN")]
    NoTableColumn(String),
    /// The name of a table or column is not an identifier.
    #[error("{0}")]
    Name(#[from] IdentError),
    /// A value that is neither a number, nor a string, nor bytes.
    #[error("'{0}' is not a value: expected a number, a 'string', or 0x and hexadecimal digits")]
    Value(String),
    /// The key does not have this column.
    #[error("the key has no column '{0}'")]
    NoColumn(String),
    /// The value is not in the range of the column, or has another type.
    #[error("the value {0} does not fit the key column '{1}', which is {2}")]
    Misfit(Value, String, String),
    /// The number of key columns without a value is not that of the columns which identify a row.
    #[error(
        "expected a value for each key column but the {2} that identify a row of '{0}': {1} columns have no value"
    )]
    Left(String, usize, usize),
    /// A roll-up would assign a column twice. MySQL keeps the old value, and the counts are lost.
    #[error("the column '{0}' gets the counts: it cannot keep its value")]
    KeepsTarget(String),
    /// A roll-up would change the key of the row.
    #[error("the column '{0}' identifies a row: it cannot get the counts")]
    TargetInKey(String),
}

/// Names of columns, written with commas between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(pub Vec<Ident>);

impl FromStr for Columns {
    type Err = IdentError;

    fn from_str(text: &str) -> Result<Self, IdentError> {
        idents(text).map(Self)
    }
}

impl FromStr for Rollup {
    type Err = RollupError;

    fn from_str(text: &str) -> Result<Self, RollupError> {
        let form = || RollupError::Form(text.to_owned());
        let mut parts = split_outside_quotes(text, ':');
        let has_values = split_outside_quotes(parts[0], '=').len() > 1;
        let same = if has_values { parts.remove(0) } else { "" };
        let (place, target, keep) = match parts[..] {
            [place, target] => (place, target, None),
            [place, target, keep] => (place, target, Some(keep)),
            _ => return Err(form()),
        };
        let same = split_outside_quotes(same, ',')
            .into_iter()
            .filter(|_| has_values)
            .map(|pair| match split_outside_quotes(pair, '=')[..] {
                [column, value] => Ok((ident(column)?, value.parse()?)),
                _ => Err(form()),
            })
            .collect::<Result<_, _>>()?;
        let [table, ids] = split_outside_quotes(place, '.')[..] else {
            return Err(form());
        };
        Ok(Self {
            same,
            table: ident(table)?,
            ids: idents(ids)?,
            target: ident(target)?,
            keep: keep.map_or(Ok(Vec::new()), idents)?,
        })
    }
}

/// Reads names that commas separate.
fn idents(text: &str) -> Result<Vec<Ident>, IdentError> {
    split_outside_quotes(text, ',').into_iter().map(ident).collect()
}

/// Reads a name, in backticks or not.
pub(super) fn ident(text: &str) -> Result<Ident, IdentError> {
    let text = text.trim();
    match text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
        Some(quoted) => Ident::new(quoted.replace("``", "`")),
        None => Ident::new(text),
    }
}

impl FromStr for Value {
    type Err = RollupError;

    fn from_str(text: &str) -> Result<Self, RollupError> {
        let text = text.trim();
        let wrong = || RollupError::Value(text.to_owned());
        if let Some(quoted) = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
            return Ok(Self::Text(quoted.replace("''", "'")));
        }
        if let Some(digits) = text
            .strip_prefix("0x")
            .filter(|digits| digits.is_ascii() && digits.len() % 2 == 0)
        {
            let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong());
            return (0..digits.len())
                .step_by(2)
                .map(byte)
                .collect::<Result<_, _>>()
                .map(Self::Binary);
        }
        text.parse().map(Self::Integer).map_err(|_| wrong())
    }
}

/// Whether a text has a digit for each 0 of the form, a hexadecimal digit for each x, and the other characters.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text.chars().zip(form.chars()).all(|(c, form)| match form {
            '0' => c.is_ascii_digit(),
            'x' => c.is_ascii_hexdigit(),
            _ => c == form,
        })
}

impl Value {
    /// The value as an SQL literal.
    pub fn sql(&self) -> String {
        match self {
            Self::Text(text) => SqlStr(text).to_string(),
            _ => self.to_string(),
        }
    }

    fn fits(&self, kind: &KeyType) -> bool {
        match (self, kind) {
            (Self::Integer(n), KeyType::Integer(_, least, most)) => (least..=most).contains(&n),
            (Self::Text(text), KeyType::Text(_, most)) => text.chars().count() <= *most as usize,
            (Self::Text(text), KeyType::Enum(values)) => values.contains(text),
            (Self::Text(text), KeyType::Date("DATE")) => has_form(text, "0000-00-00"),
            (Self::Text(text), KeyType::Date(..)) => has_form(text, "0000-00-00 00:00:00"),
            (Self::Text(text), KeyType::Uuid) => has_form(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
            (Self::Binary(bytes), KeyType::Binary("BINARY", n)) => bytes.len() == *n as usize,
            (Self::Binary(bytes), KeyType::Binary(_, most)) => bytes.len() <= *most as usize,
            _ => false,
        }
    }
}

impl Rollup {
    /// The remaining key columns, whose values are those of [`ids`](Self::ids).
    ///
    /// # Errors
    /// A value does not fit its key column, the number of key columns without a value is another one, or the column that gets the
    /// counts is also one of the others.
    pub fn records<'a>(&self, key: &'a Key) -> Result<Vec<&'a KeyColumn>, RollupError> {
        let given = |column: &KeyColumn| self.same.iter().any(|(name, _)| *name == column.name);
        // The names of columns are equal in any case of their letters.
        let is_target = |name: &Ident| name.name().to_lowercase() == self.target.name().to_lowercase();
        if self.keep.iter().any(is_target) {
            return Err(RollupError::KeepsTarget(self.target.name().to_owned()));
        }
        if self.ids.iter().any(is_target) {
            return Err(RollupError::TargetInKey(self.target.name().to_owned()));
        }
        for (name, value) in &self.same {
            let column = key.0.iter().find(|column| column.name == *name);
            let column = column.ok_or_else(|| RollupError::NoColumn(name.name().to_owned()))?;
            if !value.fits(&column.kind) {
                return Err(RollupError::Misfit(
                    value.clone(),
                    name.name().to_owned(),
                    column.kind.text(),
                ));
            }
        }
        let left: Vec<_> = key.0.iter().filter(|column| !given(column)).collect();
        if left.is_empty() || left.len() != self.ids.len() {
            let table = self.table.name().to_owned();
            return Err(RollupError::Left(table, left.len(), self.ids.len()));
        }
        Ok(left)
    }

    /// Whether a record can be of both roll-ups: no key column has a value in each of them and these differ. `equal` compares two
    /// texts of a key column.
    pub fn overlaps(&self, other: &Self, key: &Key, mut equal: impl FnMut(&str, &str) -> bool) -> bool {
        self.same.iter().all(|(name, one)| {
            let of_other = other.same.iter().find(|(of, _)| of == name);
            let kind = key
                .0
                .iter()
                .find(|column| column.name == *name)
                .map(|column| &column.kind);
            match (one, of_other.map(|(_, value)| value), kind) {
                (_, None, _) => true,
                (Value::Text(one), Some(Value::Text(other)), Some(KeyType::Uuid)) => {
                    one.eq_ignore_ascii_case(other)
                }
                (Value::Text(one), Some(Value::Text(other)), Some(kind)) if kind.is_text() => {
                    equal(one, other)
                }
                (_, Some(other), _) => one == other,
            }
        })
    }

    /// The columns of the parent table that identify a row, and those that a roll-up reads, as a list in SQL.
    pub fn ids_and_target(&self) -> String {
        sql_list(self.ids.iter().chain([&self.target]).chain(&self.keep))
    }

    /// The columns of the parent table that a roll-up assigns, as a list in SQL.
    pub fn changed(&self) -> String {
        sql_list([&self.target].into_iter().chain(&self.keep))
    }

    /// The column, if the key of the package is the key of the parent table.
    pub fn column(&self, key: &Key) -> Option<TableColumn> {
        let same_key = key.0.iter().map(|column| &column.name).eq(&self.ids);
        (self.same.is_empty() && same_key).then(|| TableColumn {
            table: self.table.clone(),
            column: self.target.clone(),
        })
    }
}

/// With a space after each colon: some migration tools take a colon before a name for a placeholder.
impl fmt::Display for Rollup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same: Vec<_> = self
            .same
            .iter()
            .map(|(name, value)| format!("{}={value}", name.plain()))
            .collect();
        if !same.is_empty() {
            write!(f, "{}: ", same.join(","))?;
        }
        let (ids, target) = (list(&self.ids), self.target.plain());
        write!(f, "{}.{ids}: {target}", self.table.plain())?;
        if !self.keep.is_empty() {
            write!(f, ": {}", list(&self.keep))?;
        }
        Ok(())
    }
}

/// Names in backticks with commas between them.
fn sql_list<'a>(names: impl Iterator<Item = &'a Ident>) -> String {
    names.map(Ident::to_string).collect::<Vec<_>>().join(", ")
}

/// Names with commas between them.
pub(super) fn list(names: &[Ident]) -> String {
    names.iter().map(Ident::plain).collect::<Vec<_>>().join(",")
}

/// The interval of an EVENT: a number and a unit, `SECOND` to `DAY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval(u32, &'static str);

impl FromStr for Interval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [&str; 4] = ["SECOND", "MINUTE", "HOUR", "DAY"];
        let interval = || {
            let (number, unit) = text.trim().split_once(char::is_whitespace)?;
            let number = number.parse().ok().filter(|n| (1..=9999).contains(n))?;
            let unit = unit.trim().to_uppercase();
            let unit = UNITS
                .into_iter()
                .find(|singular| *singular == unit || format!("{singular}S") == unit)?;
            Some(Self(number, unit))
        };
        interval().ok_or_else(|| {
            "expected a number and a unit, such as '30 SECOND', '1 MINUTE', '6 HOUR' or '1 DAY'".into()
        })
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        text.parse().expect("a key")
    }

    #[test]
    fn rollups_are_parsed_and_displayed() {
        for (text, key_text, record) in [
            (
                "record_type=123: repositories.id: download_count",
                "record_type INT, record_id BIGINT",
                "record_id",
            ),
            ("pages.url: views", "url VARCHAR(255)", "url"),
            (
                "kind='a:b''c',x=0x00ff: `my.pages`.id: `views,all`",
                "kind CHAR(9), x BINARY(2), id INT",
                "id",
            ),
            ("b=-5: t.a: n", "a INT, b TINYINT", "a"),
            ("pages.url: views: changed,`seen at`", "url VARCHAR(255)", "url"),
            (
                "kind=1: pages.site,url: views",
                "site INT, kind INT, url VARCHAR(255)",
                "site url",
            ),
        ] {
            let rollup: Rollup = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(rollup.to_string(), text);
            let without_spaces = text.replace(": ", ":");
            assert_eq!(without_spaces.parse().as_ref(), Ok(&rollup));
            assert_eq!(
                rollup.records(&key(key_text)).map(|columns| {
                    let names: Vec<_> = columns.iter().map(|column| column.name.name()).collect();
                    names.join(" ")
                }),
                Ok(record.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_rollups_are_rejected() {
        for text in [
            "",
            "a",
            "a:b",
            "a.b",
            "a=1:b:c",
            "a=1:b.c.d:e",
            "a:b.c:d",
            "a=1:b.c:d:e:f",
            "a=1,b:b.c:d",
        ] {
            assert!(
                matches!(text.parse::<Rollup>(), Err(RollupError::Form(_))),
                "{text}"
            );
        }
        for text in [
            "a=x:b.c:d",
            "a=:b.c:d",
            "a=0x1:b.c:d",
            "a=0xzz:b.c:d",
            "a=1.5:b.c:d",
        ] {
            assert!(
                matches!(text.parse::<Rollup>(), Err(RollupError::Value(_))),
                "{text}"
            );
        }
        assert!(matches!(
            "a.:b".parse::<Rollup>(),
            Err(RollupError::Name(IdentError::Empty))
        ));
        let key = key("a TINYINT, b CHAR(2), c BINARY(2)");
        let record = |text: &str| text.parse::<Rollup>().expect(text).records(&key).map(|_| ());
        assert_eq!(record("x=1:t.id:n"), Err(RollupError::NoColumn("x".into())));
        assert_eq!(record("a=1:t.id:n"), Err(RollupError::Left("t".into(), 2, 1)));
        assert_eq!(
            record("a=1,b='x',c=0x0000:t.id:n"),
            Err(RollupError::Left("t".into(), 0, 1))
        );
        for text in [
            "a=128:t.id:n",
            "a='1':t.id:n",
            "b='xyz':t.id:n",
            "b=1:t.id:n",
            "c=0x00:t.id:n",
        ] {
            assert!(matches!(record(text), Err(RollupError::Misfit(..))), "{text}");
        }
    }

    #[test]
    fn intervals_are_parsed_and_displayed() {
        for (text, written) in [
            ("1 MINUTE", "1 MINUTE"),
            (" 30  seconds ", "30 SECOND"),
            ("6 Hour", "6 HOUR"),
        ] {
            assert_eq!(
                text.parse::<Interval>().map(|interval| interval.to_string()),
                Ok(written.into())
            );
        }
        for text in [
            "",
            "1",
            "MINUTE",
            "0 MINUTE",
            "-1 MINUTE",
            "1 FORTNIGHT",
            "1 MINUTE; DROP TABLE t",
        ] {
            assert!(text.parse::<Interval>().is_err(), "{text}");
        }
    }
}
