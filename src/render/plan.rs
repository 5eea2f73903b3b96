//! A plan: the steps that create, replace or remove a package, as values. Scripts print them, migrations list them, an installation
//! executes them and status compares what exists with them.

use super::routine;
use super::sql::{
    COLUMN_DIFFERS, DDL_TIMEOUT, KEY_NOT_UNIQUE, NOT_KEPT, SQL_MODE, Sql, TABLE_DIFFERS, VERSION, filters, text,
};
use super::step::{Purpose, Step, Task};
use crate::package::{DESCRIPTION_MAX, Ident, NAME_MAX, Options, Package, Routine as R};

/// What a script says to the one who sources it. An installation grants the privileges again itself.
const SOURCE_GRANTS: &str =
    "SELECT 'DROP PROCEDURE has removed the privileges on the routines: source grants.sql now' AS next_step;\n";

/// The steps of a task, in order. The first one sets the session, and the last one restores it.
pub fn plan(package: &Package, task: Task) -> Vec<Step> {
    let sql = Sql::of(package, task);
    let comment = text!(sql, path = "files/_begin.sql", block = "comment");
    let begin = text!(sql, path = "files/_begin.sql", block = "statement");
    let mut steps = vec![Step::new(Purpose::Set, [begin]).preceded_by(comment)];
    match task {
        Task::Create | Task::Replace => create(sql, &mut steps),
        Task::Remove | Task::RemoveAll => remove(sql, &mut steps),
    }
    steps.push(Step::new(Purpose::Restore, [text!(sql, path = "files/_end.sql")]));
    steps
}

fn create(sql: Sql<'_>, steps: &mut Vec<Step>) {
    let package = sql.package;
    let o = &package.options;
    if !o.cluster || o.column().is_some() || sql.replaces() {
        let mut block = block(sql, text!(sql, path = "files/_check.sql"));
        let comment = "-- Rejects what the routines do not support, before anything else is created.".to_owned();
        let check = Step::new(Purpose::Check, block.pop());
        if o.mariadb() {
            steps.push(check.preceded_by(comment));
        } else {
            let drop = Step::new(Purpose::Drop, [format!("DROP PROCEDURE {}", package.temporary())]);
            steps.extend([Step::new(Purpose::Try, block).preceded_by(comment), check, drop]);
        }
    }
    let creation = |kind, name, statement| Step::new(Purpose::Create, [statement]).of(kind, name);
    if !sql.replaces() {
        steps.push(creation("TABLE", &o.table, text!(sql, path = "files/_table.sql")));
    }
    let procedures = package.routines().filter(|(of, _)| *of != R::Get);
    steps.extend(procedures.map(|(of, name)| create_routine(Sql { name, ..sql }, of)));
    let totals = creation("VIEW", &package.totals, text!(sql, path = "files/_totals.sql"));
    steps.push(if sql.replaces() && !o.mariadb() { totals.preceded_by(SOURCE_GRANTS.to_owned()) } else { totals });
    steps.push(creation("VIEW", &package.description, text!(sql, path = "files/_package.sql")));
    if let Some(name) = package.routine(R::Get) {
        let comment = text!(sql, path = "files/_function.sql");
        let function = create_routine(Sql { name, ..sql }, R::Get);
        if sql.replaces() {
            let temporary = sql.package.temporary();
            let statements = [
                format!("DROP FUNCTION IF EXISTS {temporary}"),
                format!("CREATE{} FUNCTION {temporary}() RETURNS INT NO SQL RETURN 0", sql.definer()),
                format!("DROP FUNCTION {temporary}"),
            ];
            steps.extend([Step::new(Purpose::Try, statements).of(R::Get.kind(), name).preceded_by(comment), function]);
        } else {
            steps.push(function.preceded_by(comment));
        }
    }
}

/// MySQL has no CREATE OR REPLACE for routines.
fn create_routine(sql: Sql<'_>, of: R) -> Step {
    let drops = sql.replaces() && !sql.package.options.mariadb();
    let drop = drops.then(|| format!("DROP {} IF EXISTS {}", of.kind(), sql.name));
    Step::new(Purpose::Create, drop.into_iter().chain([routine::statement(sql, of)])).of(of.kind(), sql.name)
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
    let temporary = sql.package.temporary();
    if !package.options.mariadb() {
        steps.push(Step::new(Purpose::Drop, [format!("DROP PROCEDURE IF EXISTS {temporary}")]));
    }
    steps.extend(package.routines().map(|(of, name)| drop(of.kind(), name)));
    steps.extend([&package.totals, &package.description].map(|view| drop("VIEW", view)));
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
    let temporary = sql.package.temporary();
    vec![format!("DROP PROCEDURE IF EXISTS {temporary}"), block, format!("CALL {temporary}()")]
}

impl Sql<'_> {
    /// The steps of a task as the client gets them.
    pub(super) fn script(&self, task: Task) -> String {
        script(&plan(self.package, task))
    }
}

/// Steps as the client gets them: with delimiters, and comments that say what they do.
pub fn script(steps: &[Step]) -> String {
    let mut text = "DELIMITER ;;\n-- The client sends all up to the delimiter at once, so that the server stops at the first error, \
                    at the prompt as well.\n"
        .to_owned();
    for (step, next) in steps.iter().zip(steps.iter().skip(1).map(Some).chain([None])) {
        text += &step.before;
        text += &step.statements.join(";\n");
        text += match (step.purpose, next.map(|next| next.purpose)) {
            (_, None) => ";\n",
            (_, Some(Purpose::Restore)) => ";;\nDELIMITER ;\n",
            (Purpose::Try, _) | (Purpose::Check | Purpose::Drop, Some(Purpose::Drop)) => ";\n",
            _ => ";\n\n",
        };
    }
    text
}
