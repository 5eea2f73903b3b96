//! The packages of a database, as their views describe them.

use clap::Args;
use mysql::Conn;

use super::output::{hinted, in_line, note};
use crate::install::{self, hint};
use crate::package::Package;

/// The package that a command is about.
#[derive(Debug, Clone, Args)]
pub struct Name {
    /// The package: its table, its column or its view, such as counters, articles.views or counter_package [default: the packages of the database]
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

impl Name {
    /// The package with this name, or all packages of the current database, with their versions, in the order of their names.
    pub fn packages(&self, connection: &mut Conn, database: &str) -> anyhow::Result<Vec<(Package, String)>> {
        let mut found = installed(connection)?;
        let what = self.name.as_ref().map_or(String::new(), |name| format!(" with the name {name}"));
        if let Some(name) = &self.name {
            found.retain(|(package, _)| {
                let column = package.options.column().map(ToString::to_string);
                let own = [package.options.table.name(), package.description.name()];
                own.contains(&name.as_str()) || column.as_ref() == Some(name)
            });
        }
        if found.is_empty() {
            let mut error = format!("the database {database} has no package{what}");
            let mut hint = String::new();
            if !hint::sees(connection)? {
                error = format!("this account sees no package{what} in the database {database}");
                hint = format!("{}; without a package, ", hint::sight(connection, false)?);
            }
            return Err(hinted(error, hint + "run slotted install PACKAGE, or give another --database"));
        }
        Ok(found)
    }
}

/// The packages of the current database with the versions of the tool that rendered them, in the order of their names. Another view with
/// such a name is left out, with a note.
pub fn installed(connection: &mut Conn) -> anyhow::Result<Vec<(Package, String)>> {
    let mut all = Vec::new();
    for one in install::installed(connection, false)? {
        let view = in_line(&one.view);
        let Some(version) = one.version else {
            let hint = hint::sight(connection, false)?;
            return Err(hinted(format!("this account cannot read the view {view}"), hint));
        };
        match one.package {
            Some(package) => all.push((package, version)),
            None => note!(
                "the view {view} does not describe a package of this version (it says version '{}'); install the package again, or drop the view",
                in_line(&version)
            ),
        }
    }
    Ok(all)
}
