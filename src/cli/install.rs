//! `slotted install`: installs or upgrades a package in a database.

use askama::Template;
use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts};

use super::connection::Connection;
use super::explained::explained;
use super::flags::Flags;
use super::output::{Outcome, hinted, in_line, note, out, outln, shown};
use super::package::installed;
use crate::install::{self, Problem, column, compare, definers, preflight};
use crate::package::{
    Columns, Definer, Ident, Options, Package, RECORD_SLOTS, Routine as R, Security, Slots, Subject, TableColumn,
    shell_word,
};
use crate::render;
use crate::server::Version;

const OWN_PRIVILEGES: &str = ", with all privileges of your account for its routines; for an account of their own, add --definer slotted@localhost";

/// Install or upgrade a package in a database.
///
/// Executes a file that slotted generate renders: setup.sql, or create_procedures.sql if the table exists. Routines that are the same
/// are left out: their calls never fail during an upgrade. On MySQL, a routine that is replaced does not exist for a moment (1305), and
/// privileges on it are granted again. An existing table is never changed. At the end, calls the routines in a transaction that is rolled
/// back, if this account is their definer: what does not work is an error.
///
/// After an interruption, run the command again: it does what is left. Two installations at the same time wait for each other.
#[derive(Debug, Args)]
pub struct Install {
    /// Print the SQL for the client of the server, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    flags: Flags,

    #[command(flatten)]
    connection: Connection,
}

impl Install {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let Some(options) = self.flags.options()? else {
            return Err(hinted("no package is given", "name PACKAGE, or a column of a table with --column"));
        };
        let (mut connection, database, again) = self.connection.connect_to_database()?;
        let package = Package::new(completed(options, &self.flags, &mut connection)?)?;
        problem(&mut connection, &package)?.map_or(Ok(()), |problem| Err(rejected(problem)))?;
        let name = format!("{} {}", package.own_name(), env!("CARGO_PKG_VERSION"));
        let place = in_line(&database);
        if self.dry_run {
            let states = compare::states(&mut connection, &package)?;
            if states.iter().all(|object| object.state == compare::State::Same) {
                note!("{name} in {place} is the same; nothing to do");
                return Ok(Outcome::Fine);
            }
            let steps = install::steps(&package, &states).map_err(|error| explained(error, &mut connection))?;
            let script = render::script(&steps);
            if shown(&script) != script {
                outln!(
                    "-- A name contains characters that a terminal executes, which are escaped here: let slotted install execute it."
                )?;
            }
            out!("{script}")?;
            return Ok(Outcome::Fine);
        }
        let _holder = holder(&package, again)?;
        let tried = install::install(&mut connection, &package, &mut |said| note!("{}", in_line(said)));
        let (changes, differs) = tried.map_err(|error| explained(error, &mut connection))?;
        if !changes {
            note!("{name} in {place} is already installed; nothing to do");
            return Ok(Outcome::Fine);
        }
        let own = package.options.definer.is_none() && package.options.security == Security::Definer;
        note!("installed {name} in {place}{}", if own { OWN_PRIVILEGES } else { "" });
        outln!("{}", next_steps(&package, &database)?)?;
        Ok(if differs { Outcome::Differs } else { Outcome::Fine })
    }
}

/// On MariaDB, CREATE VIEW executes functions of a view that the owner puts in the place of a table: another connection holds that of a column.
fn holder(package: &Package, again: Opts) -> anyhow::Result<Option<Conn>> {
    let Some(column) = package.options.column().filter(|_| package.options.mariadb()) else { return Ok(None) };
    let mut holder = Conn::new(again)?;
    let state = compare::hold(&mut holder, [&column.table])?;
    anyhow::ensure!(state == compare::State::Same, "{}: {state}", in_line(&column.to_string()));
    Ok(Some(holder))
}

/// The options with what the server says: its family, the key of the table, and what an installed package has.
fn completed(mut options: Options, flags: &Flags, connection: &mut Conn) -> anyhow::Result<Options> {
    options.family = Version::of(connection)?.family;
    if let Subject::Column { column, key, keep, .. } = &mut options.subject
        && key.0.is_empty()
    {
        let parent = column::parent(connection, column)?.map_err(rejected)?;
        *key = parent.key;
        options.collation = parent.collation.or(options.collation);
        if keep.0.is_empty() {
            *keep = Columns(parent.on_update);
        }
    }
    keep_installed(connection, &mut options, flags)?;
    Ok(options)
}

/// Keeps what the command line does not say of a package that is installed: its slots, collation and security, and the definer of its routines,
/// also one that was written into the scripts by hand. If there are several, or the routines have another security, a person chooses.
fn keep_installed(connection: &mut Conn, options: &mut Options, flags: &Flags) -> anyhow::Result<()> {
    let views = install::installed(connection, false)?;
    let mut before = views.into_iter().filter_map(|view| Some(view.package?.options));
    let names = |one: &Options| (one.prefix.clone(), one.table.clone(), one.is_named());
    let before = before.find(|one| names(one) == names(options));
    if let Some(before) = &before {
        // Of named counters, the name of the package says the slots.
        if let (None, false, Slots::Fixed(slots)) = (flags.slots, options.is_named(), before.subject.slots()) {
            options.subject.set_slots(slots);
        }
        if flags.collation.is_none() && options.column().is_none() {
            options.collation = before.collation.clone();
        }
    }
    let package = Package::new(options.clone())?;
    if let (None, Some(before)) = (flags.security, &before) {
        options.security = before.security;
        // Its owner can have changed them, and each caller would execute what he writes.
        if definers::have_other(connection, &package, before.security)? {
            let what = "the view of the package and its routines differ in SQL SECURITY".to_owned();
            return Err(rejected(Problem { what, remedy: "add --security".to_owned() }));
        }
    }
    if flags.definer.is_none() {
        options.definer = found_definer(connection, &package, before.and_then(|before| before.definer))?;
    }
    Ok(())
}

/// The definer of the routines, unless it is this account and the view of the package names none. The owner of the database can write any
/// account into the view, but not into a routine.
fn found_definer(connection: &mut Conn, package: &Package, named: Option<Definer>) -> anyhow::Result<Option<Definer>> {
    if let Some(problem) = definers::mixed(connection, package)? {
        return Err(rejected(problem));
    }
    let own = connection.query_first::<String, _>("SELECT CURRENT_USER()")?.and_then(|own| Definer::stored(&own));
    let found = definers::all(connection, package)?;
    let what = match (found.first(), &named) {
        (Some(Some(one)), Some(named)) if one == named => return Ok(Some(one.clone())),
        (Some(Some(one)), None) => return Ok(Some(one.clone()).filter(|one| Some(one) != own.as_ref())),
        (None, None) => return Ok(None),
        (Some(None), None) => "no option can name the definer of a routine, or this account cannot see it".to_owned(),
        (_, Some(named)) => {
            format!("the view of the package names the definer {}, and its routines do not", named.plain())
        }
    };
    Err(rejected(Problem { what, remedy: "add --definer".to_owned() }))
}

fn rejected(Problem { what, remedy }: Problem) -> anyhow::Error {
    hinted(format!("{}; nothing has been changed", in_line(&what)), remedy)
}

/// Why a package must not be installed, although the server would accept its files.
fn problem(connection: &mut Conn, package: &Package) -> anyhow::Result<Option<Problem>> {
    let server = preflight::version(connection)?.or(preflight::cluster(connection, package)?);
    if let Some(problem) = server.or(preflight::definer(connection, package)?) {
        return Ok(Some(problem));
    }
    let Some(column) = package.options.column() else { return Ok(None) };
    let same = |other: &TableColumn| other.to_string().to_lowercase() == column.to_string().to_lowercase();
    for (other, _) in installed(connection)? {
        let Some(of_other) = other.options.column() else {
            continue;
        };
        let view = other.description.name();
        let (what, remedy) = match (other.description == package.description, same(of_other)) {
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
        return Ok(Some(Problem { what, remedy: remedy.to_owned() }));
    }
    Ok(None)
}

/// What the account of the application needs, and what to change in the application.
fn next_steps(package: &Package, database: &str) -> anyhow::Result<String> {
    #[derive(Template)]
    #[template(path = "next_steps.txt")]
    struct Steps<'a> {
        package: &'a Package,
        o: &'a Options,
        row: String,
        keep: String,
        arguments: String,
        grants: Vec<String>,
        uninstall: String,
    }
    impl Steps<'_> {
        fn name(&self, routine: R) -> String {
            self.package.routine(routine).expect("the package contains it").typed()
        }
    }
    let (o, key) = (&package.options, package.options.key());
    let row = key.iter().map(|column| format!("{} = ?", column.name.typed()));
    let name = o.column().map(ToString::to_string).unwrap_or_default();
    let steps = Steps {
        package,
        o,
        row: row.collect::<Vec<_>>().join(" AND "),
        keep: Columns(o.keep().to_vec()).to_string(),
        arguments: vec!["?"; key.len()].join(", "),
        grants: grants(package, database),
        uninstall: format!("{} --database {}", shell_word(&name), shell_word(database)),
    };
    Ok(steps.render()?)
}

/// What the account of the application needs, for what it calls.
fn grants(package: &Package, database: &str) -> Vec<String> {
    let (o, place) = (&package.options, Ident::stored(database));
    // A job that adds many counts at once has an account of its own, with grants.sql.
    let called = package.of_applications().filter(|name| Some(*name) != package.routine(R::AddMany));
    let mut grants: Vec<_> = called.map(|name| format!("EXECUTE ON PROCEDURE {place}.{name}")).collect();
    grants.extend(package.routine(R::Get).map(|get| format!("EXECUTE ON FUNCTION {place}.{get}")));
    if o.column().is_some() || !o.function {
        grants.push(format!("SELECT ON {place}.{}", package.totals));
    }
    if o.security == Security::Invoker {
        grants.push(format!("SELECT, INSERT, UPDATE ON {place}.{}", o.table));
        grants.extend(o.column().map(|column| format!("SELECT ON {place}.{}", column.table)));
    }
    grants
}
