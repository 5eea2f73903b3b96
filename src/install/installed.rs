//! Finds the packages of a database.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::package::{Options, Package};
use crate::script::tokens;
use crate::server::Version;

/// A package as its view describes it.
#[derive(Debug)]
pub struct Installed {
    /// The database of the view.
    pub schema: String,
    /// The name of the view.
    pub view: String,
    /// The version of the tool that rendered the package, or an empty text. None if this account lacks SHOW VIEW.
    pub version: Option<String>,
    /// None if this version of the tool cannot read what the view says.
    pub package: Option<Package>,
}

/// The packages of the current database, or of all databases, from their views such as `counter_package`.
///
/// The values are read from the text of the view: to select from it, on MariaDB also to list its columns, would execute what it calls.
pub fn installed(connection: &mut Conn, all: bool) -> mysql::Result<Vec<Installed>> {
    let place = if all { "TRUE" } else { "TABLE_SCHEMA = DATABASE()" };
    type View = (String, String, Option<Vec<u8>>);
    let views: Vec<View> = connection.query(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION
           FROM information_schema.VIEWS
          WHERE {place}
            AND TABLE_NAME LIKE '%package'
          ORDER BY TABLE_SCHEMA, TABLE_NAME"
    ))?;
    // A dump can come from the other family: its routines differ, and the next installation replaces them.
    let family = Version::of(connection)?.family;
    let installed = |(schema, view, query): View| {
        // Without SHOW VIEW, the server returns no text.
        let tokens = tokens(&text(query.unwrap_or_default()));
        let options = selected(&tokens, "options").and_then(|text| Options::described(&text));
        let package = options
            .and_then(|options| Package::new(Options { family, ..options }).ok())
            .filter(|package| package.description.name().to_lowercase() == view.to_lowercase());
        // As an owner can write any text there, it has at most the length of a version.
        let version = |tokens| selected(tokens, "version").unwrap_or_default().chars().take(20).collect();
        let version = (!tokens.is_empty()).then(|| version(&tokens));
        let is_package = tokens.is_empty() || ["version", "options"].iter().all(|name| alias(&tokens, name).is_some());
        is_package.then_some(Installed { schema, view, version, package })
    };
    Ok(views.into_iter().filter_map(installed).collect())
}

/// The place of a name that a query gives to a value.
fn alias(tokens: &[String], name: &str) -> Option<usize> {
    tokens.windows(2).position(|pair| pair[0].eq_ignore_ascii_case("AS") && pair[1].trim_matches('`') == name)
}

/// The string that a query selects under a name: the last one before the name.
fn selected(tokens: &[String], name: &str) -> Option<String> {
    let before = tokens[..alias(tokens, name)?].iter().rev();
    before.take_while(|token| *token != ",").find_map(|token| token.strip_prefix('\'')).map(str::to_owned)
}

/// The text of a definition. A client with the character set binary can create one whose bytes are no characters.
pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
