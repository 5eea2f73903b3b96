//! Finds the packages of a database.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::script::tokens;

/// A package as its view describes it.
#[derive(Debug)]
pub struct Installed {
    /// The database of the view.
    pub schema: String,
    /// The name of the view.
    pub view: String,
    /// None if this account cannot read the text of the view, which needs SHOW VIEW.
    pub description: Option<Description>,
}

/// What the view of a package says. Empty values if the view is not of a package.
#[derive(Debug)]
pub struct Description {
    /// The version of the tool that rendered the package.
    pub version: String,
    /// The arguments of `slotted generate`.
    pub arguments: String,
}

impl Installed {
    /// The version or the arguments.
    pub fn value(&self, column: &str) -> Option<&str> {
        let Description { version, arguments } = self.description.as_ref()?;
        match column {
            "version" => Some(version),
            "arguments" => Some(arguments),
            _ => None,
        }
    }
}

/// The packages of the current database, or of all databases, from their views such as `counter_package`.
///
/// The values are read from the text of the view: to select from it would execute the functions that a planted view calls, with the
/// privileges of the account of the connection.
///
/// # Errors
/// The connection fails.
pub fn installed(connection: &mut Conn, all: bool) -> mysql::Result<Vec<Installed>> {
    let place = if all { "TRUE" } else { "TABLE_SCHEMA = DATABASE()" };
    type View = (String, String, Option<Vec<u8>>);
    let views: Vec<View> = connection.query(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION
           FROM information_schema.VIEWS
          WHERE {place}
            AND TABLE_NAME LIKE '%package'
            AND 2 = (
              SELECT COUNT(*)
                FROM information_schema.COLUMNS AS one
               WHERE one.TABLE_SCHEMA = VIEWS.TABLE_SCHEMA
                 AND one.TABLE_NAME = VIEWS.TABLE_NAME
                 AND one.COLUMN_NAME IN ('version', 'arguments')
            )
          ORDER BY TABLE_SCHEMA, TABLE_NAME"
    ))?;
    let installed = views.into_iter().map(|(schema, view, query)| {
        let query = text(query.unwrap_or_default());
        let description = (!query.is_empty()).then(|| description(&tokens(&query)));
        Installed { schema, view, description }
    });
    Ok(installed.collect())
}

/// The strings that a query selects as `version` and as `arguments`: the last one before the name.
fn description(tokens: &[String]) -> Description {
    let value = |column: &str| {
        let end = tokens.windows(2).position(|pair| pair[0].eq_ignore_ascii_case("AS") && unquoted(&pair[1]) == column);
        let before = tokens[..end.unwrap_or(0)].iter().rev();
        let value = before.take_while(|token| *token != ",").find_map(|token| token.strip_prefix('\''));
        value.unwrap_or_default().to_owned()
    };
    Description { version: value("version"), arguments: value("arguments") }
}

/// The text of a definition. A client with the character set binary can create one whose bytes are no characters.
pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A name without backticks.
pub(super) fn unquoted(name: &str) -> String {
    let inner = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
    inner.map_or(name.to_owned(), |name| name.replace("``", "`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_the_view_of_a_package_are_read_from_its_text() {
        let read = |query: &str| {
            let Description { version, arguments } = description(&tokens(query));
            (version, arguments)
        };
        let query = "select cast(_utf8mb4'0.1.0' as char charset utf8mb4) AS `version`,\
                     cast('counters --table \\'a, b\\'' as char charset utf8mb4) AS `arguments`";
        assert_eq!(read(query), ("0.1.0".to_owned(), "counters --table 'a, b'".to_owned()));
        assert_eq!(read("select `f`() AS `version`,1 AS `arguments`"), (String::new(), String::new()));
    }
}
