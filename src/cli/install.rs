//! `slotted install`: installs or upgrades a package in a database.

use clap::Args;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::connection::Connection;
use super::output::{in_line, note, out};
use super::{Outcome, hinted, interrupt};
use crate::install::compare::{self, ObjectState, State};
use crate::install::preflight::Problem;
use crate::install::{self, InstallError, Plan, column, definer, preflight};
use crate::package::{Columns, Given, Options, Package, Routine, Servers, TableColumn};

/// Install or upgrade a package in a database.
///
/// First compares the database with the package and checks the server and the account. If there is a problem, prints all
/// problems with their remedies and changes nothing. Then creates what is missing and replaces what differs, statement by
/// statement. Objects that are the same are not touched: calls of these routines never fail during an upgrade. On MySQL, a
/// routine that is replaced does not exist for a moment (1305), and privileges on it are granted again. The table is never
/// changed.
///
/// After an interruption, run the command again: it does what is left. Two installations at the same time wait for each other.
#[derive(Debug, Args)]
pub struct Install {
    /// Let roll-ups change columns with ON UPDATE CURRENT_TIMESTAMP. Without --touch and --keep, no such column changes
    #[arg(long, requires = "column", conflicts_with = "keep")]
    touch: bool,

    /// Print the SQL for the client of the server, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Create an empty table if the database has routines of the package, but not their table
    #[arg(long)]
    new_table: bool,

    #[command(flatten)]
    package: Given,

    #[command(flatten)]
    connection: Connection,
}

/// The package of another column that has the names of this one, as of `user.post_count` and `user_post.count`.
fn other_column(connection: &mut Conn, package: &Package) -> anyhow::Result<Option<Problem>> {
    let Some(column) = &package.options.column else {
        return Ok(None);
    };
    let installed = compare::installed(connection, false)?;
    let same = installed.iter().find(|one| one.view == package.package.name());
    let other = same.and_then(|one| Options::parse(one.value("arguments")?).ok()?.column);
    let differs = |other: &TableColumn| other.to_string().to_lowercase() != column.to_string().to_lowercase();
    Ok(other.filter(differs).map(|other| Problem {
        what: format!(
            "the database has the package of {other} with these names: it would move the counts of {other} into {column}"
        ),
        remedy: "choose another --table and --prefix, or uninstall the other package first".into(),
    }))
}

impl Install {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let Some(mut options) = self.package.0 else {
            return Err(hinted(
                "no package is given",
                "name PACKAGE, or a column of a table with --column",
            ));
        };
        let mut connection = self.connection.connect()?;
        let database = database(&mut connection)?;
        if let Some(name) = options.column.as_ref().filter(|_| options.key.0.is_empty()) {
            match column::parent(&mut connection, name)? {
                Ok(parent) => {
                    options.key = parent.key;
                    options.collation = parent.collation.unwrap_or(options.collation);
                    if options.keep.0.is_empty() && !self.touch {
                        options.keep = Columns(parent.on_update);
                    }
                    if parent.mariadb {
                        options.servers = Servers::Mariadb;
                    }
                }
                Err(problem) => {
                    let message = format!(
                        "cannot install the package of {name}; nothing has been changed\n  {}",
                        problem.what
                    );
                    return Err(hinted(message, problem.remedy));
                }
            }
        }
        let package = Package::new(options)?;
        if !self.dry_run {
            install::lock(&mut connection).map_err(explained)?;
        }
        let plan = install::plan(&mut connection, &package).map_err(explained)?;
        let name = format!(
            "{} {} in {database}",
            package.options.kind.name(),
            env!("CARGO_PKG_VERSION")
        );
        let mut problems = preflight::check(&mut connection, &package, &plan).map_err(explained)?;
        if !self.new_table {
            problems.extend(preflight::lost_table(&package, &plan.states));
        }
        problems.extend(other_column(&mut connection, &package)?);
        if !problems.is_empty() {
            let mut message = format!("cannot install {name}; nothing has been changed");
            for problem in &problems {
                message += &format!("\n  {}\n    {}", in_line(&problem.what), in_line(&problem.remedy));
            }
            let hint = "solve all problems above, and run the command again";
            return Err(hinted(message, hint));
        }
        for clash in preflight::clashes(&mut connection, &package, &database).map_err(explained)? {
            let kind = if clash.alarm { "warning" } else { "hint" };
            note!(
                "{kind}: {}: {}\n  {}",
                clash.subject,
                clash.because,
                clash.run.replace('\n', "\n  ")
            );
        }
        for warning in preflight::warnings(&mut connection, &package)? {
            note!("warning: {}\n  {}", warning.what, warning.remedy);
        }
        if plan.steps.is_empty() {
            note!("{name} is already installed; nothing to do");
            warnings(&mut connection, &package, &plan.states)?;
            return Ok(Outcome::Fine);
        }
        if self.dry_run {
            out!("{}", script(&plan))?;
            return Ok(Outcome::Fine);
        }
        let report = |step: &install::Step| {
            note!("{}", step.action);
            Ok(())
        };
        install::apply(&mut connection, &plan, interrupt::stop(), report, waits).map_err(explained)?;
        note!("installed {name}");
        if let Some(column) = &package.options.column {
            out!("{}", next_steps(&package, column, &database))?;
        }
        let states = compare::states(&mut connection, &package)?;
        warnings(&mut connection, &package, &states)?;
        Ok(Outcome::Fine)
    }
}

/// What to change in the application whose column has counts.
fn next_steps(package: &Package, column: &TableColumn, database: &str) -> String {
    let routine = |routine| package.routine(routine).map(|name| name.typed());
    let [increment, rollup] =
        [Routine::Increment, Routine::Rollup].map(|one| routine(one).unwrap_or_default());
    let key = &package.options.key.0;
    let row: Vec<_> = key
        .iter()
        .map(|column| format!("{} = ?", column.name.typed()))
        .collect();
    let (row, arguments) = (row.join(" AND "), vec!["?"; key.len()].join(", "));
    let (table, name) = (column.table.plain(), column.column.typed());
    let read = match routine(Routine::Get) {
        Some(get) => format!("SELECT {get}({arguments})"),
        None => format!("SELECT total FROM {} WHERE {row}", package.totals.typed()),
    };
    let repeated = "every few seconds, from an EVENT, cron or a loop of a shell, outside a transaction";
    format!(
        "In the application, replace\n  UPDATE {table} SET {name} = {name} + 1 WHERE {row}\nby\n  CALL {increment}({arguments})\n\
         Both count at the same time, so that the parts of the application can change one after the other.\n\
         Read the exact total with\n  {read}\n\
         {column} is the total up to the last roll-up:\n  CALL {rollup}(NULL)\n  {repeated}\n\
         The account of the application needs EXECUTE on the routines: GRANT EXECUTE ON {database}.* TO its account, or the role in grants.sql of\n  \
         slotted generate {}\n\
         To undo it, put the UPDATE back, and then run with the same connection\n  slotted uninstall --column {} --database {database}\n",
        package.options.arguments(),
        crate::package::shell_word(&column.to_string()),
    )
}

/// What an installation does not correct: a table that somebody has changed, a definer that does not exist, and one that can do more than
/// the routines need.
fn warnings(connection: &mut Conn, package: &Package, states: &[ObjectState]) -> anyhow::Result<()> {
    let mut no_definer = false;
    for object in states {
        let State::Changed(differences) = &object.state else {
            continue;
        };
        // All objects have the same definer, which one line names.
        if !(no_definer && object.lacks_definer() && differences.len() == 1) {
            note!("warning: {object}: {}", in_line(&differences.join("; ")));
        }
        no_definer |= object.lacks_definer();
    }
    if no_definer && package.options.definer.is_some() {
        note!(
            "hint: accounts.sql creates the definer and grants it what the routines need: slotted generate {}",
            package.options.arguments()
        );
    }
    if let Some(Problem { what, remedy }) = definer::note(connection, package)? {
        note!("note: {}\n  {remedy}", in_line(&what));
    }
    Ok(())
}

/// Says that a step waits for open transactions.
pub(super) fn waits(step: &install::Step, users: &str) {
    let users = if users.is_empty() {
        "this account or server does not show them"
    } else {
        users
    };
    note!(
        "waiting to {}: other sessions have used it or lock all tables: {}; to continue, end them with COMMIT, UNLOCK TABLES or KILL",
        step.action,
        in_line(users)
    );
}

/// The current database.
pub(super) fn database(connection: &mut Conn) -> anyhow::Result<String> {
    let name: Option<Option<String>> = connection.query_first("SELECT DATABASE()")?;
    name.flatten().ok_or_else(|| {
        hinted(
            "no database is selected",
            "add --database, or the name of the database to the URL",
        )
    })
}

/// The statements of a plan for a command-line client.
fn script(plan: &Plan) -> String {
    let mut text = String::from("DELIMITER ;;\n");
    for statement in &plan.session {
        text += &format!("{statement};;\n");
    }
    for step in &plan.steps {
        text += &format!("\n-- {}\n", step.action);
        for statement in &step.statements {
            text += &format!("{statement};;\n");
        }
    }
    text + "DELIMITER ;\n"
}

/// The error of an installation with what to do.
pub(super) fn explained(error: InstallError) -> anyhow::Error {
    let hint = match &error {
        InstallError::Rejected { error, .. } if error.code == 1227 => {
            "what the command has done stays; connect as the account that installed the package or as an administrator, and run the \
             command again: it does what is left"
        }
        InstallError::Stopped(_) => {
            "what the command has done stays; run the command again: it does what is left"
        }
        InstallError::Rejected { error, .. } if error.code == 1317 => {
            "what the command has done stays; run the command again: it does what is left"
        }
        InstallError::Rejected { .. } => {
            "what the command has done stays; remove the cause, and run the command again: it does what is left"
        }
        InstallError::Locked => "run the command again when the other one has ended",
        InstallError::Foreign { .. } => "nothing was changed; read what it has, and rename or drop it",
        InstallError::MySql(_) | InstallError::Name(_) => "run the command again: it does what is left",
    };
    hinted(error, hint)
}
