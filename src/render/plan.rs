//! A plan: the steps that create, replace or remove a package, as values. Scripts print them, migrations list them, an installation
//! executes them and status compares what exists with them.

use std::fmt;

use askama::Template;

use super::files::{COLUMN_DIFFERS, KEY_NOT_UNIQUE, NOT_KEPT, Script, TABLE_DIFFERS, VERSION, routine, temporary};
use super::sql::Sql;
use super::{DDL_TIMEOUT, SQL_MODE, filters, fragment};
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
    let planner = Planner { package, task, replaces: task == Task::Replace };
    let mut steps = vec![planner.begin()];
    match task {
        Task::Create | Task::Replace => planner.create(&mut steps),
        Task::Remove { with_table } => planner.remove(with_table, &mut steps),
    }
    steps.push(Step::new(Purpose::Restore, [planner.end()]));
    steps
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

/// Renders a template of a step, or a block of one.
macro_rules! text {
    ($planner:expr, $($template:tt)*) => {{
        #[derive(Template)]
        #[template($($template)*)]
        #[allow(dead_code, reason = "few templates use all")]
        struct Text<'a> {
            script: &'a Script<'a>,
            package: &'a Package,
            sql: Sql<'a>,
            o: &'a Options,
            replaces: bool,
            with_table: bool,
        }
        let Planner { package, task, replaces } = *$planner;
        let (o, script) = (&package.options, &Script { package });
        let sql = Sql { package, name: &o.table, replaces };
        let with_table = task == Task::Remove { with_table: true };
        fragment(&Text { script, package, sql, o, replaces, with_table })
    }};
}

struct Planner<'a> {
    package: &'a Package,
    task: Task,
    replaces: bool,
}

impl Planner<'_> {
    fn begin(&self) -> Step {
        let comment = text!(self, path = "files/_begin.sql", block = "comment");
        Step::new(Purpose::Set, [text!(self, path = "files/_begin.sql", block = "statement")]).after(comment)
    }

    fn end(&self) -> String {
        text!(self, path = "files/_end.sql")
    }

    fn create(&self, steps: &mut Vec<Step>) {
        let package = self.package;
        let o = &package.options;
        if !o.cluster || o.column().is_some() || self.replaces {
            let mut statements = self.block(text!(self, path = "files/_check.sql"));
            statements.extend((!o.mariadb()).then(|| format!("DROP PROCEDURE {}", self.temporary())));
            let comment = "-- Rejects what the routines do not support, before anything else is created.".to_owned();
            steps.push(Step::new(Purpose::Check, statements).after(comment));
        }
        if !self.replaces {
            steps.push(self.creation("TABLE", &o.table, text!(self, path = "files/_table.sql")));
        }
        let procedures = package.routines().filter(|(of, _)| *of != R::Get);
        steps.extend(procedures.map(|(of, name)| self.routine(of, name)));
        if self.replaces && !o.mariadb() {
            let say = "SELECT 'DROP PROCEDURE has removed the privileges on the routines: source grants.sql now' AS next_step";
            steps.push(Step::new(Purpose::Say, [say.to_owned()]));
        }
        steps.push(self.creation("VIEW", &package.totals, text!(self, path = "files/_totals.sql")));
        steps.push(self.creation("VIEW", &package.package, text!(self, path = "files/_package.sql")));
        self.function(steps);
    }

    fn creation(&self, kind: &'static str, name: &Ident, statement: String) -> Step {
        Step::new(Purpose::Create, [statement]).of(kind, name)
    }

    /// MySQL has no CREATE OR REPLACE for routines.
    fn routine(&self, of: R, name: &Ident) -> Step {
        let (package, kind) = (self.package, of.kind());
        let drops = self.replaces && !package.options.mariadb();
        let mut statements = vec![routine(Sql { package, name, replaces: self.replaces }, of)];
        if drops {
            statements.insert(0, format!("DROP {kind} IF EXISTS {name}"));
        }
        Step::new(Purpose::Create, statements).of(kind, name)
    }

    fn function(&self, steps: &mut Vec<Step>) {
        let Some(name) = self.package.routine(R::Get) else {
            return;
        };
        let comment = text!(self, path = "files/_function.sql");
        let function = self.routine(R::Get, name);
        if self.replaces {
            let temporary = self.temporary();
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

    fn remove(&self, with_table: bool, steps: &mut Vec<Step>) {
        let package = self.package;
        let moves = package.routine(R::Rollup).is_some();
        let drop = |kind: &'static str, name: &Ident| {
            Step::new(Purpose::Drop, [format!("DROP {kind} IF EXISTS {name}")]).of(kind, name)
        };
        if moves {
            // Not the private ones, which the roll-up calls.
            let called = package.routines().filter(|(of, _)| *of != R::Get && of.of_applications(&package.options));
            steps.extend(called.map(|(of, name)| drop(of.kind(), name)));
        }
        if moves || with_table {
            steps.push(Step::new(Purpose::Move, self.block(text!(self, path = "files/_move.sql"))));
        }
        let temporary = self.temporary();
        if !package.options.mariadb() {
            steps.push(Step::new(Purpose::Drop, [format!("DROP PROCEDURE IF EXISTS {temporary}")]));
        }
        steps.extend(package.routines().map(|(of, name)| drop(of.kind(), name)));
        steps.extend([&package.totals, &package.package].map(|view| drop("VIEW", view)));
        if with_table {
            let table = format!("DROP TABLE IF EXISTS {temporary}");
            steps.push(Step::new(Purpose::Drop, [table]).of("TABLE", &package.options.table));
        }
    }

    /// The statements that execute a block. MySQL has blocks only in routines.
    fn block(&self, block: String) -> Vec<String> {
        if self.package.options.mariadb() {
            return vec![block];
        }
        let temporary = self.temporary();
        vec![format!("DROP PROCEDURE IF EXISTS {temporary}"), block, format!("CALL {temporary}()")]
    }

    fn temporary(&self) -> Ident {
        temporary(self.package)
    }
}
