//! The statements that move the counts of a column into a package.

use askama::Template;

use super::key::Arguments;
use super::table::Table;
use super::{filters, fragment};
use crate::package::{DESCRIPTION_MAX, Ident, NAME_MAX, Origin, Package, Source, SourceColumn, SqlStr};

/// Where the counters of the rows of a source are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// In records: the value of each key column.
    Records(Vec<Origin>),
    /// In named counters.
    Named {
        /// The name of the counter of a row, as an expression. None is made from the key of the row.
        name: Option<String>,
        /// The column whose values identify the counters and are kept as descriptions, or None if each row has its own
        /// counter, whose description is made from the key of the row.
        design: Option<(Ident, Ident)>,
    },
}

/// A source and its target.
pub struct Adopt<'a> {
    table: Table<'a>,
    source: &'a Source,
    target: &'a Target,
}

/// A statement each: its template and its arguments. A condition has parameters.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*) $path:literal)*) => {
        $($(#[$doc])*
        pub fn $name(&self $(, $argument: &str)*) -> String {
            #[derive(Template)]
            #[template(path = $path)]
            #[allow(dead_code, reason = "few templates use all of them")]
            struct Statement<'a> { adopt: &'a Adopt<'a>, table: Table<'a>, source: &'a Source $(, $argument: &'a str)* }
            fragment(&Statement { adopt: self, table: self.table, source: self.source $(, $argument)* })
        })*
    };
}

impl<'a> Adopt<'a> {
    /// The statements for a package, a source and a target of the kind of the package.
    pub fn new(package: &'a Package, source: &'a Source, target: &'a Target) -> Self {
        let table = Table::of(package, Arguments::Placeholders);
        Self {
            table,
            source,
            target,
        }
    }

    statements! {
        /// Selects the number of rows, the number of those with a count, and the sums of the source and of the package, in one
        /// snapshot.
        sums() "adopt/sums.sql"
        /// Selects the key of one row: that at an offset in the order of the key, or DESC.
        next(condition, direction, offset) "adopt/next.sql"
        /// Sets the counts of rows to 0, or to their limit.
        zero(condition) "adopt/zero.sql"
        /// Locks the rows of a range, and selects the name, the description and the count of each.
        rows(range) "adopt/rows.sql"
        /// Locks the row of a condition, and selects its count, its limit, its description and its key.
        row(condition) "adopt/row.sql"
        /// The condition for the rows that compare with a value of the key as `>`, `>=` or `<=` say. [`Source::bound`] orders its
        /// parameters.
        compared(operator) "adopt/compared.sql"
        /// Selects a name that is too long.
        long_name() "adopt/long_name.sql"
    }

    /// Locks the rows of a range, and adds their counts to the records. If no record exists, it can insert them, which takes
    /// less time.
    pub fn upsert(&self, range: &str, inserts: bool) -> String {
        #[derive(Template)]
        #[template(path = "adopt/upsert.sql")]
        struct Statement<'a> {
            adopt: &'a Adopt<'a>,
            source: &'a Source,
            table: &'a Table<'a>,
            range: &'a str,
            inserts: bool,
        }
        fragment(&Statement {
            adopt: self,
            source: self.source,
            table: &self.table,
            range,
            inserts,
        })
    }

    /// Selects the number of rows that have a count and NULL in one of these columns.
    pub fn no_key(&self, columns: &[&Ident]) -> String {
        #[derive(Template)]
        #[template(path = "adopt/no_key.sql")]
        struct Statement<'a> {
            source: &'a Source,
            columns: &'a [&'a Ident],
        }
        fragment(&Statement {
            source: self.source,
            columns,
        })
    }

    /// Selects two keys of the source that are one key of the package, if there are any.
    pub fn collision(&self) -> String {
        #[derive(Template)]
        #[template(path = "adopt/collision.sql")]
        struct Statement<'a> {
            source: &'a Source,
            targets: Vec<String>,
            groups: Vec<&'a Ident>,
            example: String,
        }
        let collation = &self.table.package.options.collation;
        let text = |value: &str| {
            format!(
                "CONVERT({value} USING {}) COLLATE {collation}",
                collation.charset()
            )
        };
        let of_column = |name: &Ident| match self.source.column(name) {
            Some(SourceColumn {
                collation: Some(_), ..
            }) => text(&name.to_string()),
            _ => name.to_string(),
        };
        let (targets, groups): (_, Vec<&Ident>) = match self.target {
            Target::Records(_) => {
                let columns = self.origin_columns();
                (columns.iter().copied().map(of_column).collect(), columns)
            }
            Target::Named {
                design: Some((name, _)),
                ..
            } => (vec![text(&name.to_string())], vec![name]),
            Target::Named { .. } => (vec![text(&self.name())], Vec::new()),
        };
        let shown: Vec<_> = if groups.is_empty() {
            self.source.key.iter().map(|column| &column.name).collect()
        } else {
            groups.clone()
        };
        let shown: Vec<_> = shown
            .iter()
            .map(|column| format!("CONVERT({column} USING utf8mb4)"))
            .collect();
        let example = format!("CAST(CONCAT_WS(', ', {}) AS BINARY)", shown.join(", "));
        fragment(&Statement {
            source: self.source,
            targets,
            groups,
            example,
        })
    }

    /// The columns of the source that have the key of a record.
    pub fn origin_columns(&self) -> Vec<&'a Ident> {
        let Target::Records(origins) = self.target else {
            return Vec::new();
        };
        let column = |origin: &'a Origin| match origin {
            Origin::Column(name) => Some(name),
            Origin::Value(_) => None,
        };
        origins.iter().filter_map(column).collect()
    }

    fn from(&self) -> String {
        let index = self.source.index.as_ref();
        let index = index
            .map(|index| format!(" FORCE INDEX ({index})"))
            .unwrap_or_default();
        self.source.place() + &index
    }

    /// The values of the key columns.
    fn values(&self) -> Vec<String> {
        let Target::Records(origins) = self.target else {
            return Vec::new();
        };
        let value = |origin: &Origin| match origin {
            Origin::Column(name) => format!("source.{name}"),
            Origin::Value(value) => value.sql(),
        };
        origins.iter().map(value).collect()
    }

    /// The columns that the server would set to the current time.
    fn unchanged(&self) -> Vec<&'a Ident> {
        let columns = self.source.columns.iter().filter(|column| column.on_update);
        columns.map(|column| &column.name).collect()
    }

    /// The description of the counter of the row that a condition finds, as an expression.
    fn identity_of(&self, condition: &str) -> String {
        if self.source.key.is_empty() {
            let place = self.source.place();
            let text = format!("Moved from {place}.{}, where {condition}", self.source.column);
            return limited(&SqlStr(&text).to_string());
        }
        self.identity()
    }

    /// The name of the counter of a row, as an expression.
    fn name(&self) -> String {
        match self.target {
            Target::Named { name: Some(name), .. } => format!("CONVERT({name} USING utf8mb4)"),
            _ => {
                let beginning = format!("{}.{} ", self.source.table.name(), self.source.column.name());
                let plain = |column: &SourceColumn| format!("{} = ", column.name.plain());
                self.of_key(&beginning, " AND ", plain)
            }
        }
    }

    /// The description of the counter of a row, as an expression.
    fn identity(&self) -> String {
        match self.target {
            Target::Named {
                design: Some((_, description)),
                ..
            } => description.to_string(),
            _ => {
                let beginning = format!("Moved from {}.{}, ", self.source.place(), self.source.column);
                limited(&self.of_key(&beginning, ", ", |column| format!("{} = ", column.name)))
            }
        }
    }

    /// A text with the key of a row, as an expression.
    fn of_key(&self, beginning: &str, between: &str, name: impl Fn(&SourceColumn) -> String) -> String {
        let mut before = beginning;
        let mut parts = Vec::new();
        for column in &self.source.key {
            parts.push(SqlStr(format!("{before}{}", name(column))).to_string());
            parts.push(column.literal());
            before = between;
        }
        format!("CONCAT({})", parts.join(", "))
    }
}

/// A description of any length, as an expression.
fn limited(text: &str) -> String {
    #[derive(Template)]
    #[template(path = "adopt/identity.sql")]
    struct Part<'a> {
        text: &'a str,
    }
    fragment(&Part { text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::Options;

    fn column(name: &str) -> SourceColumn {
        SourceColumn::int(Ident::new(name).expect("a name"))
    }

    #[test]
    fn a_condition_has_a_parameter_for_each_value() {
        let package = Package::new(Options::default()).expect("a package");
        let target = Target::Records(Vec::new());
        let name = |name: &str| Ident::new(name).expect("a name");
        for (key, operator, condition, bound) in [
            (&["a"][..], ">", "`a` > ?", &[0][..]),
            (
                &["a", "b"],
                ">=",
                "`a` >= ? AND (`a` > ? OR `a` = ? AND `b` >= ?)",
                &[0, 0, 0, 1],
            ),
            (
                &["a", "b"],
                "<=",
                "`a` <= ? AND (`a` < ? OR `a` = ? AND `b` <= ?)",
                &[0, 0, 0, 1],
            ),
            (
                &["a", "b", "c"],
                ">",
                "`a` >= ? AND (`a` > ? OR `a` = ? AND `b` >= ? AND (`b` > ? OR `b` = ? AND `c` > ?))",
                &[0, 0, 0, 1, 1, 1, 2],
            ),
        ] {
            let key: Vec<_> = key.iter().map(|name| column(name)).collect();
            let source = Source {
                schema: name("s"),
                table: name("t"),
                column: name("hits"),
                columns: key.clone(),
                key,
                index: None,
                limit: None,
            };
            assert_eq!(
                Adopt::new(&package, &source, &target).compared(operator),
                condition
            );
            let values: Vec<_> = (0..source.key.len()).collect();
            assert_eq!(source.bound(&values), bound);
        }
    }
}
