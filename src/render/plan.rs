//! A plan: the steps that create, replace or remove a package, as values. Scripts print them, migrations list them, an installation
//! executes them and status compares what exists with them.

use std::fmt;

use super::files::{COLUMN_DIFFERS, KEY_NOT_UNIQUE, NOT_KEPT, TABLE_DIFFERS, VERSION, routine};
use super::sql::Sql;
use super::{DDL_TIMEOUT, SQL_MODE, filters, text};
use crate::package::{DESCRIPTION_MAX, Ident, NAME_MAX, Options, Package, Routine as R};

/// What the steps are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Creates everything, and replaces nothing.
    Create,
    /// Creates or replaces the views and the routines of a table.
    Replace,
    /// Drops the views and the routines, after a last roll-up.
    Remove {
        /// Also the table, unless it has counts.
        with_table: bool,
    },
}

impl Task {
    /// Keeps the table.
    pub const REMOVE: Self = Self::Remove { with_table: false };
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Sets the session.
    Set,
    /// Restores the session.
    Restore,
    /// Rejects the server or a table.
    Check,
    /// Moves pending counts, or looks for counts before the table is dropped.
    Move,
    /// Says what the user has to do.
    Say,
    /// Creates and drops a function, because a server can reject it after the one that exists was dropped.
    Try,
    /// Creates or replaces the object.
    Create,
    /// Drops the object.
    Drop,
}

/// An object of a database. Its `Display` is as in `procedure counter_add`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The keyword after CREATE: TABLE, VIEW, PROCEDURE or FUNCTION.
    pub kind: &'static str,
    /// Its name.
    pub name: Ident,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.to_lowercase(), self.name.name())
    }
}

/// A step: statements that the server gets in one packet, so that it completes them if the client is killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it does.
    pub purpose: Purpose,
    /// What it creates, replaces or drops. None if that exists only during the script.
    pub object: Option<Object>,
    /// The statements, without delimiters.
    pub statements: Vec<String>,
    /// The comment before it in a script, which ends with a line end, or nothing.
    pub(super) comment: String,
}

/// The steps of a task, in order. The first one sets the session, and the last one restores it.
pub fn plan(package: &Package, task: Task) -> Vec<Step> {
    let sql = Sql::of(package, task);
    let comment = text!(sql, path = "files/_begin.sql", block = "comment");
    let begin = text!(sql, path = "files/_begin.sql", block = "statement");
    let mut steps = vec![Step::new(Purpose::Set, [begin]).after(comment)];
    match task {
        Task::Create | Task::Replace => create(sql, &mut steps),
        Task::Remove { .. } => remove(sql, &mut steps),
    }
    steps.push(Step::new(Purpose::Restore, [text!(sql, path = "files/_end.sql")]));
    steps
}

fn create(sql: Sql<'_>, steps: &mut Vec<Step>) {
    let package = sql.package;
    let o = &package.options;
    if !o.cluster || o.column().is_some() || sql.replaces() {
        let mut statements = block(sql, text!(sql, path = "files/_check.sql"));
        statements.extend((!o.mariadb()).then(|| format!("DROP PROCEDURE {}", sql.temporary())));
        let comment = "-- Rejects what the routines do not support, before anything else is created.".to_owned();
        steps.push(Step::new(Purpose::Check, statements).after(comment));
    }
    let creation = |kind, name, statement| Step::new(Purpose::Create, [statement]).of(kind, name);
    if !sql.replaces() {
        steps.push(creation("TABLE", &o.table, text!(sql, path = "files/_table.sql")));
    }
    let procedures = package.routines().filter(|(of, _)| *of != R::Get);
    steps.extend(procedures.map(|(of, name)| create_routine(Sql { name, ..sql }, of)));
    if sql.replaces() && !o.mariadb() {
        let say =
            "SELECT 'DROP PROCEDURE has removed the privileges on the routines: source grants.sql now' AS next_step";
        steps.push(Step::new(Purpose::Say, [say.to_owned()]));
    }
    steps.push(creation("VIEW", &package.totals, text!(sql, path = "files/_totals.sql")));
    steps.push(creation("VIEW", &package.package, text!(sql, path = "files/_package.sql")));
    if let Some(name) = package.routine(R::Get) {
        let comment = text!(sql, path = "files/_function.sql");
        let function = create_routine(Sql { name, ..sql }, R::Get);
        if sql.replaces() {
            let temporary = sql.temporary();
            let statements = [
                format!("DROP FUNCTION IF EXISTS {temporary}"),
                format!("CREATE FUNCTION {temporary}() RETURNS INT NO SQL RETURN 0"),
                format!("DROP FUNCTION {temporary}"),
            ];
            steps.extend([Step::new(Purpose::Try, statements).of(R::Get.kind(), name).after(comment), function]);
        } else {
            steps.push(function.after(comment));
        }
    }
}

/// MySQL has no CREATE OR REPLACE for routines.
fn create_routine(sql: Sql<'_>, of: R) -> Step {
    let drops = sql.replaces() && !sql.package.options.mariadb();
    let drop = drops.then(|| format!("DROP {} IF EXISTS {}", of.kind(), sql.name));
    Step::new(Purpose::Create, drop.into_iter().chain([routine(sql, of)])).of(of.kind(), sql.name)
}

fn remove(sql: Sql<'_>, steps: &mut Vec<Step>) {
    let package = sql.package;
    let moves = package.routine(R::Rollup).is_some();
    let drop = |kind: &'static str, name: &Ident| {
        Step::new(Purpose::Drop, [format!("DROP {kind} IF EXISTS {name}")]).of(kind, name)
    };
    if moves {
        // Not the private ones, which the roll-up calls.
        let called = package.routines().filter(|(of, _)| *of != R::Get && of.of_applications(&package.options));
        steps.extend(called.map(|(of, name)| drop(of.kind(), name)));
    }
    if moves || sql.with_table() {
        steps.push(Step::new(Purpose::Move, block(sql, text!(sql, path = "files/_move.sql"))));
    }
    let temporary = sql.temporary();
    if !package.options.mariadb() {
        steps.push(Step::new(Purpose::Drop, [format!("DROP PROCEDURE IF EXISTS {temporary}")]));
    }
    steps.extend(package.routines().map(|(of, name)| drop(of.kind(), name)));
    steps.extend([&package.totals, &package.package].map(|view| drop("VIEW", view)));
    if sql.with_table() {
        let table = format!("DROP TABLE IF EXISTS {temporary}");
        steps.push(Step::new(Purpose::Drop, [table]).of("TABLE", &package.options.table));
    }
}

/// The statements that execute a block. MySQL has blocks only in routines.
fn block(sql: Sql<'_>, block: String) -> Vec<String> {
    if sql.package.options.mariadb() {
        return vec![block];
    }
    let temporary = sql.temporary();
    vec![format!("DROP PROCEDURE IF EXISTS {temporary}"), block, format!("CALL {temporary}()")]
}

/// Steps as the client gets them: with delimiters, and comments that say what they do.
pub fn script(steps: &[Step]) -> String {
    let mut text = "DELIMITER ;;\n-- The client sends all up to the delimiter at once, so that the server stops at the first error, \
                    at the prompt as well.\n"
        .to_owned();
    for (step, next) in steps.iter().zip(steps.iter().skip(1).map(Some).chain([None])) {
        text += &step.comment;
        text += &step.statements.join(";\n");
        text += match (step.purpose, next.map(|next| next.purpose)) {
            (_, None) => ";\n",
            (_, Some(Purpose::Restore)) => ";;\nDELIMITER ;\n",
            (Purpose::Try, _) | (Purpose::Drop, Some(Purpose::Drop)) => ";\n",
            _ => ";\n\n",
        };
    }
    text
}

impl Step {
    fn new(purpose: Purpose, statements: impl IntoIterator<Item = String>) -> Self {
        Self { purpose, object: None, statements: statements.into_iter().collect(), comment: String::new() }
    }

    fn of(mut self, kind: &'static str, name: &Ident) -> Self {
        self.object = Some(Object { kind, name: name.clone() });
        self
    }

    fn after(mut self, comment: String) -> Self {
        self.comment = comment + "\n";
        self
    }

    /// What it does, such as `create procedure counter_add`, or `replace` if the object exists.
    pub fn action(&self, exists: bool) -> String {
        let of =
            |verb: &str| self.object.as_ref().map_or("drop a routine".to_owned(), |object| format!("{verb} {object}"));
        match self.purpose {
            Purpose::Set => "set the session".to_owned(),
            Purpose::Restore => "restore the session".to_owned(),
            Purpose::Check => "check the server and the table".to_owned(),
            Purpose::Move => "move the pending counts".to_owned(),
            Purpose::Say => "say what to do".to_owned(),
            Purpose::Try => "create a function".to_owned(),
            Purpose::Create => of(if exists { "replace" } else { "create" }),
            Purpose::Drop => of("drop"),
        }
    }

    /// The routine that it creates or replaces.
    pub fn routine(&self) -> Option<&Object> {
        self.object.as_ref().filter(|_| self.purpose == Purpose::Create && self.is_of_routine())
    }

    /// Whether it is for a procedure or a function of the package.
    pub fn is_of_routine(&self) -> bool {
        self.object.as_ref().is_some_and(|object| ["PROCEDURE", "FUNCTION"].contains(&object.kind))
    }

    /// Whether what it creates or drops exists only during the script.
    pub fn is_internal(&self) -> bool {
        self.object.is_none() || self.purpose == Purpose::Try
    }
}
