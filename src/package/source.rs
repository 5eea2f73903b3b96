//! A column of another table that has counts, and the part of its table that a statement moves.

use super::rollup::ident;
use super::{Ident, IdentError, KeyColumn, KeyType, Value, split_outside_quotes};

/// A table with counts that are moved into a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its database.
    pub schema: Ident,
    /// Its name.
    pub table: Ident,
    /// The column with the counts.
    pub column: Ident,
    /// All its columns.
    pub columns: Vec<SourceColumn>,
    /// The columns of its primary key, or of another unique key without NULL. Empty if it has neither.
    pub key: Vec<SourceColumn>,
    /// The name of the index of `key`.
    pub index: Option<Ident>,
    /// What is moved: the column, or what is left of it to a limit.
    pub limit: Option<Limit>,
}

/// A limit that a column does not exceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// Another column of the row.
    Column(Ident),
    /// The same number for all rows.
    Number(i64),
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Column(name) => name.fmt(f),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(number) => Ok(Self::Number(number)),
            Err(_) => ident(text).map(Self::Column).map_err(|error| error.to_string()),
        }
    }
}

/// A column of such a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceColumn {
    /// Its name.
    pub name: Ident,
    /// The data type in lower case, without a length, as in `DATA_TYPE` of `information_schema.COLUMNS`.
    pub kind: String,
    /// The whole type, as in `COLUMN_TYPE`.
    pub definition: String,
    /// The digits after the point of a DECIMAL.
    pub scale: u64,
    /// The collation of a string.
    pub collation: Option<String>,
    /// Whether it allows NULL.
    pub null: bool,
    /// The expression with which the server computes it from other columns.
    pub generated: Option<String>,
    /// Whether an UPDATE of another column changes it.
    pub on_update: bool,
    /// Whether the server rejects a negative value.
    pub unsigned: bool,
}

#[cfg(test)]
impl SourceColumn {
    /// An INT column with this name.
    pub(crate) fn int(name: Ident) -> Self {
        Self {
            name,
            kind: "int".into(),
            definition: "int".into(),
            scale: 0,
            collation: None,
            null: false,
            generated: None,
            on_update: false,
            unsigned: false,
        }
    }
}

/// How the values of a source column become values of a key column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// Different values stay different.
    Exact,
    /// Values that differ in the collation of the source can be equal in the collation of the package.
    Collation,
    /// The server would change the values.
    None,
}

const INTEGERS: [&str; 5] = ["tinyint", "smallint", "mediumint", "int", "bigint"];
const STRINGS: [&str; 8] = [
    "char",
    "varchar",
    "tinytext",
    "text",
    "mediumtext",
    "longtext",
    "enum",
    "set",
];
const BYTES: [&str; 6] = [
    "binary",
    "varbinary",
    "tinyblob",
    "blob",
    "mediumblob",
    "longblob",
];

impl SourceColumn {
    /// Whether all its values are integers.
    pub fn is_integer(&self) -> bool {
        INTEGERS.contains(&self.kind.as_str()) || self.kind == "decimal" && self.scale == 0
    }

    /// The reason why a counter cannot have its values, as the rest of a sentence. None if all its values are integers that a
    /// session writes.
    pub fn uncountable(&self) -> Option<String> {
        if self.generated.is_some() {
            Some("is a generated column".into())
        } else if self.is_integer() {
            None
        } else {
            Some(format!("is {}: a counter counts integers", self.kind))
        }
    }

    pub(crate) fn is_string(&self) -> bool {
        STRINGS.contains(&self.kind.as_str())
    }

    /// How its values become values of a key column of a package with this collation.
    pub fn conversion(&self, column: &KeyColumn, collation: &str) -> Conversion {
        let same = match &column.kind {
            KeyType::Integer("YEAR", ..) => self.kind == "year" || INTEGERS.contains(&self.kind.as_str()),
            KeyType::Integer(..) => self.is_integer() || self.kind == "year",
            KeyType::Date(name) => self.kind == name.to_lowercase(),
            KeyType::Uuid => self.kind == "uuid",
            KeyType::Binary("BINARY", _) => self.kind == "binary",
            KeyType::Binary(..) => BYTES.contains(&self.kind.as_str()),
            KeyType::Name | KeyType::Text(..) | KeyType::Enum(_) if self.is_string() => {
                return if self.collation.as_deref() == Some(collation) {
                    Conversion::Exact
                } else {
                    Conversion::Collation
                };
            }
            KeyType::Name | KeyType::Text(..) => {
                self.is_integer() || ["date", "uuid"].contains(&self.kind.as_str())
            }
            KeyType::Enum(_) => false,
        };
        if same { Conversion::Exact } else { Conversion::None }
    }

    /// The value as it is compared with [`placeholder`](Self::placeholder) and read from the server.
    pub(crate) fn comparable(&self) -> String {
        match self.kind.as_str() {
            // The servers sort them by number, and compare them with a string as strings.
            "enum" | "set" | "bit" => format!("({} + 0)", self.name),
            // An hour of the local time occurs twice a year.
            "timestamp" => format!("UNIX_TIMESTAMP({})", self.name),
            _ => self.name.to_string(),
        }
    }

    /// The parameter that such a value is bound to.
    pub(crate) fn placeholder(&self) -> String {
        match self.kind.as_str() {
            // A DECIMAL and a string are compared as DOUBLE.
            "decimal" => format!("CAST(? AS DECIMAL(65, {}))", self.scale),
            "timestamp" => "CAST(? AS DECIMAL(65, 6))".into(),
            _ => "?".into(),
        }
    }

    /// The value as a reader of a description sees it: an SQL literal.
    pub(crate) fn literal(&self) -> String {
        if self.is_integer() {
            self.name.to_string()
        } else if self.kind == "bit" {
            self.comparable()
        } else if BYTES.contains(&self.kind.as_str()) {
            format!("CONCAT('0x', HEX({}))", self.name)
        } else {
            format!("QUOTE(CONVERT({} USING utf8mb4))", self.name)
        }
    }
}

impl Source {
    /// A column by its name.
    pub fn column(&self, name: &Ident) -> Option<&SourceColumn> {
        let name = name.name().to_lowercase();
        self.columns
            .iter()
            .find(|column| column.name.name().to_lowercase() == name)
    }

    /// The table and its database.
    pub fn place(&self) -> String {
        format!("{}.{}", self.schema, self.table)
    }

    /// The column with its table and its database, for a reader.
    pub fn plain(&self) -> String {
        format!(
            "{}.{}.{}",
            self.schema.plain(),
            self.table.plain(),
            self.column.plain()
        )
    }

    /// The limit, as an expression. NULL if there is none.
    pub(crate) fn limit(&self) -> String {
        self.limit
            .as_ref()
            .map_or_else(|| "NULL".into(), Limit::to_string)
    }

    /// The value of the column after a move, as an expression: with it, a statement that takes from the row finds nothing.
    pub(crate) fn empty(&self) -> String {
        self.limit.as_ref().map_or_else(|| "0".into(), Limit::to_string)
    }

    /// Whether no two rows of the table have the same values in these columns.
    pub fn is_unique(&self, columns: &[&Ident]) -> bool {
        !self.key.is_empty() && self.key.iter().all(|column| columns.contains(&&column.name))
    }

    /// The parameters of [`Adopt::compared`](crate::render::Adopt::compared) for a value of the key: each column but the last occurs
    /// three times.
    pub(crate) fn bound<T: Clone>(&self, key: &[T]) -> Vec<T> {
        let Some((last, columns)) = key.split_last() else {
            return Vec::new();
        };
        let thrice = columns
            .iter()
            .flat_map(|value| [value.clone(), value.clone(), value.clone()]);
        thrice.chain([last.clone()]).collect()
    }
}

/// A place in `--from`: one to three names.
///
/// # Errors
/// A name is not an identifier.
pub fn names(text: &str) -> Result<Vec<Ident>, IdentError> {
    split_outside_quotes(text, '.').into_iter().map(ident).collect()
}

/// Where the value of a key column comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A column of the source.
    Column(Ident),
    /// The same value for all rows.
    Value(Value),
}

/// The origins of `--key`, written as `record_type=123,record_id=id` or `id`: each with the key column, if it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origins(pub Vec<(Option<Ident>, Origin)>);

impl std::str::FromStr for Origins {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = |text: &str| ident(text).map_err(|error| error.to_string());
        let origin = |text: &str| match text.parse::<Value>() {
            Ok(value) => Ok(Origin::Value(value)),
            Err(_) => name(text).map(Origin::Column),
        };
        let one = |part| match split_outside_quotes(part, '=')[..] {
            [given] => Ok((None, origin(given)?)),
            [column, given] => Ok((Some(name(column)?), origin(given)?)),
            _ => Err(format!("'{part}' is not COLUMN=COLUMN or COLUMN=VALUE")),
        };
        split_outside_quotes(text, ',')
            .into_iter()
            .map(one)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl Origins {
    /// The origin of each key column: those with a name first, the others in the order of the key. None gives a key column
    /// the source's column of the same name.
    ///
    /// # Errors
    /// A key column is unknown, has no origin or has two of them.
    pub fn of(given: Option<&Self>, key: &[KeyColumn], source: &Source) -> Result<Vec<Origin>, String> {
        let same = |one: &Ident, other: &Ident| one.name().to_lowercase() == other.name().to_lowercase();
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for (column, origin) in given.iter().flat_map(|given| &given.0) {
            match column {
                None => others.push(origin.clone()),
                Some(column) if named.iter().any(|(other, _)| same(other, column)) => {
                    return Err(format!("--key gives {} twice", column.plain()));
                }
                Some(column) if key.iter().all(|one| !same(&one.name, column)) => {
                    return Err(format!("the key has no column {}", column.plain()));
                }
                Some(column) => named.push((column.clone(), origin.clone())),
            }
        }
        let mut others = others.into_iter();
        let origins = key.iter().map(|column| {
            let by_name = named.iter().find(|(name, _)| same(name, &column.name));
            let origin = match by_name {
                Some((_, origin)) => Some(origin.clone()),
                None if given.is_none() => source
                    .column(&column.name)
                    .map(|one| Origin::Column(one.name.clone())),
                None => others.next(),
            };
            origin.ok_or_else(|| format!("no value for the key column {}", column.name.plain()))
        });
        let origins = origins.collect::<Result<Vec<_>, _>>()?;
        if others.next().is_some() {
            return Err("--key has more columns than the key of the package".into());
        }
        Ok(origins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(key: &[&str]) -> Source {
        let name = |name: &str| Ident::new(name).expect("a name");
        let column = |text: &str| SourceColumn::int(name(text));
        let key: Vec<_> = key.iter().map(|name| column(name)).collect();
        Source {
            schema: name("s"),
            table: name("t"),
            column: name("hits"),
            columns: key.clone(),
            key,
            index: None,
            limit: None,
        }
    }

    #[test]
    fn each_key_column_has_an_origin() {
        let key: super::super::Key = "kind INT, id BIGINT".parse().expect("a key");
        let origins = |text: &str| {
            let given: Origins = text.parse().expect(text);
            let origins = Origins::of(Some(&given), &key.0, &source(&["id"]))?;
            Ok::<_, String>(
                origins
                    .iter()
                    .map(|one| format!("{one:?}"))
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        };
        let expected = "Value(Integer(123)) Column(Ident(\"page\"))";
        for text in [
            "kind=123,id=page",
            "id=page, kind=123",
            "123,page",
            "kind=123,page",
        ] {
            assert_eq!(origins(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["page", "a=1,kind=2", "1,2,3", "kind=1,kind=2,page"] {
            assert!(origins(text).is_err(), "{text}");
        }
        assert!(Origins::of(None, &key.0, &source(&["id"])).is_err());
        assert!(Origins::of(None, &key.0, &source(&["ID", "kind"])).is_ok());
    }
}
