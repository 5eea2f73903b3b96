//! `slotted install`: installs or upgrades a package in a database.

use askama::Template;
use clap::Args;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::connection::Connection;
use super::output::{in_line, note, out, outln};
use super::package::installed;
use super::{Outcome, hinted};
use crate::install::column::{self, Problem};
use crate::install::{self, InstallError, compare, preflight};
use crate::package::{Columns, Given, Ident, Package, Routine as R, TableColumn, shell_word};
use crate::render;
use crate::server::Version;

/// Install or upgrade a package in a database.
///
/// Executes a file that slotted generate renders: setup.sql, or create_procedures.sql if the table exists. Routines that are the same
/// are left out: their calls never fail during an upgrade. On MySQL, a routine that is replaced does not exist for a moment (1305), and
/// privileges on it are granted again. An existing table is never changed. At the end, calls the routines in a transaction that is rolled
/// back: what does not work is an error.
///
/// After an interruption, run the command again: it does what is left. Two installations at the same time wait for each other.
#[derive(Debug, Args)]
pub struct Install {
    /// Print the SQL for the client of the server, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    package: Given,

    #[command(flatten)]
    connection: Connection,
}

impl Install {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let Some(mut options) = self.package.0 else {
            return Err(hinted("no package is given", "name PACKAGE, or a column of a table with --column"));
        };
        let mut connection = self.connection.connect()?;
        let database = database(&mut connection)?;
        options.family = Version::of(&mut connection)?.family;
        if let Some(name) = options.column.as_ref().filter(|_| options.key.0.is_empty()) {
            let parent = column::parent(&mut connection, name)?.map_err(rejected)?;
            options.key = parent.key;
            options.collation = parent.collation.or(options.collation);
            if options.keep.0.is_empty() {
                options.keep = Columns(parent.on_update);
            }
        }
        if !self.package.1 && options.column.is_some() {
            let before = installed(&mut connection)?.into_iter().map(|one| one.package.options);
            let mut before = before.filter(|one| one.column == options.column && one.prefix == options.prefix);
            options.slots = before.next().map_or(options.slots, |one| one.slots);
        }
        let package = Package::new(options)?;
        if let Some(problem) = problem(&mut connection, &package)? {
            return Err(rejected(problem));
        }
        if self.dry_run {
            let states = compare::states(&mut connection, &package)?;
            let name = install::file(&package, &states).map_err(explained)?;
            out!("{}", render::file(&package, name))?;
            return Ok(Outcome::Fine);
        }
        let tried = install::install(&mut connection, &package, &mut |said| note!("{}", in_line(said)));
        let changed = match tried {
            // accounts.sql, which creates the definer, grants privileges on what an installation creates.
            Err(InstallError::Trial { error, .. }) if error.code == 1449 && package.options.definer.is_some() => {
                note!("warning: {}\n  {}", in_line(&error.message), help(1449).unwrap_or_default());
                true
            }
            tried => tried.map_err(explained)?,
        };
        let (name, database) = (package.name(), in_line(&database));
        let version = env!("CARGO_PKG_VERSION");
        if !changed {
            note!("{name} {version} in {database} is already installed; nothing to do");
            return Ok(Outcome::Fine);
        }
        note!("installed {name} {version} in {database}");
        if let Some(column) = &package.options.column {
            outln!("{}", next_steps(&package, column, &database)?)?;
        }
        Ok(Outcome::Fine)
    }
}

fn rejected(Problem { what, remedy }: Problem) -> anyhow::Error {
    hinted(format!("{}; nothing has been changed", in_line(&what)), remedy)
}

/// Why a package must not be installed, although the server would accept its files.
fn problem(connection: &mut Conn, package: &Package) -> anyhow::Result<Option<Problem>> {
    if let Some(problem) = preflight::version(connection)? {
        return Ok(Some(problem));
    }
    let Some(column) = &package.options.column else {
        return Ok(None);
    };
    if let Some(problem) = column::problems(connection, package)?.into_iter().next() {
        return Ok(Some(problem));
    }
    let same = |other: &TableColumn| other.to_string().to_lowercase() == column.to_string().to_lowercase();
    for other in installed(connection)? {
        let Some(of_other) = &other.package.options.column else {
            continue;
        };
        let view = other.package.package.name();
        let (what, remedy) = match (other.package.package == package.package, same(of_other)) {
            // The packages of `user.post_count` and `user_post.count`.
            (true, false) => (
                format!(
                    "the package of {of_other} has these names: it would move the counts of {of_other} into {column}"
                ),
                "choose another --table and --prefix, or uninstall the other package first",
            ),
            // Each of them would have a part of the counts.
            (false, true) => (
                format!("the package of the view {view} already counts {column}"),
                "give its --table and --prefix, or uninstall it first",
            ),
            _ => continue,
        };
        let remedy = remedy.to_owned();
        return Ok(Some(Problem { what, remedy }));
    }
    Ok(None)
}

/// What to change in the application whose column has counts.
fn next_steps(package: &Package, column: &TableColumn, database: &str) -> anyhow::Result<String> {
    #[derive(Template)]
    #[template(path = "next_steps.txt")]
    struct Steps<'a> {
        package: &'a Package,
        column: &'a TableColumn,
        table: String,
        name: String,
        row: String,
        arguments: String,
        increment: &'a Ident,
        rollup: &'a Ident,
        database: Ident,
        uninstall: String,
    }
    let key = &package.options.key.0;
    let row = key.iter().map(|column| format!("{} = ?", column.name.typed()));
    let routine = |routine| package.routine(routine).expect("a package with a column contains it");
    let of = column.to_string();
    let steps = Steps {
        package,
        column,
        table: column.table.typed(),
        name: column.column.typed(),
        row: row.collect::<Vec<_>>().join(" AND "),
        arguments: vec!["?"; key.len()].join(", "),
        increment: routine(R::Increment),
        rollup: routine(R::Rollup),
        database: Ident::stored(database),
        uninstall: format!("{} --database {}", shell_word(&of), shell_word(database)),
    };
    Ok(steps.render()?)
}

/// The current database.
pub(super) fn database(connection: &mut Conn) -> anyhow::Result<String> {
    let name: Option<Option<String>> = connection.query_first("SELECT DATABASE()")?;
    name.flatten()
        .ok_or_else(|| hinted("no database is selected", "add --database, or the name of the database to the URL"))
}

/// What to do about an error of the server.
fn help(code: u16) -> Option<&'static str> {
    Some(match code {
        1044 | 1142 | 1143 => {
            "grant the account in the message the privilege that it names: GRANT ... ON the database TO the account"
        }
        1227 => {
            "connect as an account with one of the privileges in the message, or as the one that installed the package"
        }
        1370 => {
            "grant the account in the message CREATE ROUTINE, ALTER ROUTINE and EXECUTE on the database; MariaDB runs routines without the roles of \
                 their definer"
        }
        1418 | 1419 => "run as an administrator: SET GLOBAL log_bin_trust_function_creators = ON; or add --no-function",
        1449 => {
            "source accounts.sql of slotted generate with the same options as an administrator: it creates the definer"
        }
        _ => return None,
    })
}

/// The error of an installation with what to do.
pub(super) fn explained(error: InstallError) -> anyhow::Error {
    let rest = "what has been done stays; run the command again: it does what is left";
    let hint = match &error {
        InstallError::Rejected { lost, .. } if !lost.is_empty() => {
            format!("the routine has lost its privileges; run as an administrator: {}", lost.join("; "))
        }
        InstallError::Rejected { error, .. } | InstallError::Trial { error, .. } => match help(error.code) {
            Some(help) => format!("{help}; {rest}"),
            None => rest.to_owned(),
        },
        InstallError::Check(_) => "no routine has been changed; correct it, and run the command again".to_owned(),
        InstallError::LostTable(table, _) => format!(
            "nothing has been changed; give the table its name again: RENAME TABLE ... TO {table}; or restore it from a backup; for an \
             empty table, run slotted uninstall first"
        ),
        InstallError::Differs(..) => {
            "nothing has been changed; correct it, run slotted install with the options of the package, which replaces routines, or source \
             uninstall.sql of slotted generate, which leaves in the table what it cannot move"
                .to_owned()
        }
        InstallError::HiddenGrants(..) => {
            "run as an administrator: GRANT SELECT ON mysql.procs_priv TO this account; or let an administrator install".to_owned()
        }
        InstallError::Locked => "run the command again when the other one has ended".to_owned(),
        InstallError::MySql(_) => rest.to_owned(),
    };
    hinted(in_line(&error.to_string()), hint)
}
