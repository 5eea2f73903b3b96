//! The package that a command is about: the one that its options describe, or those that a database has.

use anyhow::Context;
use clap::Args;
use mysql::Conn;

use super::hinted;
use crate::connect::cause;
use crate::install::compare::{self, Installed};
use crate::package::{Given, OptionsError, Package};

/// A package, or all packages of the database.
#[derive(Debug, Clone, Args)]
pub struct Chosen {
    #[command(flatten)]
    given: Given,
}

/// A package with the version that a database has, if it has one.
pub struct Found {
    pub package: Package,
    pub version: Option<String>,
    /// The options in the view of the package.
    pub arguments: Option<String>,
}

impl Chosen {
    /// The packages of the current database, in the order of their names.
    ///
    /// # Errors
    /// The options contradict each other, or the database has none or one that cannot be read.
    pub fn packages(&self, connection: &mut Conn, database: &str) -> anyhow::Result<Vec<Found>> {
        let installed = compare::installed(connection, false)?;
        if let Some(options) = self.given.0.clone() {
            // The package of a column has the names of the column, if no option gives others. Its view has the other options.
            if let Some(column) = options.column.as_ref().filter(|_| options.key.0.is_empty()) {
                let view = options.prefix.join("package")?;
                let own = installed.into_iter().find(|one| one.view == view.name());
                let own = own.map(found).transpose()?;
                let own = own.filter(|own| own.package.options.column.as_ref() == Some(column));
                let hint = "run slotted install --column, or give the options with which it was installed";
                let none = || {
                    hinted(
                        format!("the database {database} has no package of {column}"),
                        hint,
                    )
                };
                return Ok(vec![own.ok_or_else(none)?]);
            }
            let package = Package::new(options)?;
            let view = package.package.name();
            let installed = installed.iter().find(|one| one.view == view);
            let value = |name| Some(installed?.value(name)?.to_owned());
            return Ok(vec![Found {
                package,
                version: value("version"),
                arguments: value("arguments"),
            }]);
        }
        if installed.is_empty() {
            return Err(hinted(
                format!("the database {database} has no package"),
                "run slotted install, give another --database, or name the package if its view is missing",
            ));
        }
        installed.into_iter().map(found).collect()
    }
}

fn found(installed: Installed) -> anyhow::Result<Found> {
    let view = &installed.view;
    let other_options = "name the package with its options, such as: counters --slots 20";
    if let Some(error) = &installed.error {
        let hint = match error {
            mysql::Error::MySqlError(error) if error.code == 1449 => {
                "create the definer, or name the package with its options: slotted install replaces the view"
            }
            _ => "name the package with its options",
        };
        return Err(hinted(
            format!("the view {view} cannot be read: {}", cause(error)),
            hint,
        ));
    }
    let Some(version) = installed.value("version") else {
        return Err(hinted(
            format!("the view {view} does not have the version and the options of a package"),
            other_options,
        ));
    };
    let arguments = installed.value("arguments");
    let package = match Package::parse(arguments.unwrap_or_default()) {
        Err(OptionsError::Words(_)) => {
            return Err(hinted(
                format!(
                    "the view {view} is of version {version}, which does not have all options of the package"
                ),
                other_options,
            ));
        }
        package => package.with_context(|| format!("the options in the view {view}"))?,
    };
    Ok(Found {
        package,
        version: Some(version.to_owned()),
        arguments: arguments.map(str::to_owned),
    })
}
