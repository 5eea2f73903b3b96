//! A row that sessions wait for: what their statements do with it, and the counters that can replace its columns.

use std::collections::{BTreeMap, BTreeSet};

use super::{Advice, KeyColumn, Verdict, waits};
use crate::package::{IDENT_MAX, Ident, Key, NAME_MAX, SqlStr, quoted, shell_word};
use crate::statement::{Amount, Change, Use, mentions};

/// A row that sessions waited for, and that is not a slot of a named counter.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Row {
    /// The schema of the table.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The SQL condition that matches only this row, such as `id = 1`. Empty if it is not known.
    pub condition: String,
    /// The columns of the primary key.
    pub key: Vec<KeyColumn>,
    /// What the sessions executed that waited for the row.
    pub statements: Vec<Said>,
    /// The reason why a counter cannot have a column, by the column.
    pub obstacles: BTreeMap<String, String>,
    /// The columns that the server sets to the current time with each UPDATE.
    pub on_update: Vec<String>,
    /// The average number of sessions that waited for the row.
    pub waiting: f64,
    /// The number of slots of the package, for a record of a package.
    pub slots: Option<u32>,
    /// The engine of the table, if it locks tables instead of rows.
    pub engine: Option<String>,
    /// The package `counters` of the schema that is not bounded.
    pub counters: Option<Installed>,
    /// The package `counters` of the schema that is bounded.
    pub bounded: Option<Installed>,
}

/// A statement that waited for a row, and what it does with the columns of the table.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Said {
    /// The statement, as the server returned it.
    pub text: String,
    /// The average number of sessions that waited with it.
    pub waiting: f64,
    /// The columns that it increments or decrements.
    pub changes: Vec<Change>,
    /// The other columns that it sets.
    pub sets: Vec<String>,
    /// What must be true for `changes`, and is not in the text.
    pub only_if: Option<String>,
    /// The reason why counters cannot replace it. None if they can.
    pub doubt: Option<String>,
}

/// An installed package of named counters.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Installed {
    /// The prefix of its routines.
    pub prefix: String,
    /// Whether it has fixed slots.
    pub fixed: bool,
}

/// What replaces the columns of a row, so that its rules hold before, during and after.
struct Plan<'a> {
    /// The columns that become counters, and how all statements use each.
    columns: BTreeMap<&'a str, Use>,
    /// The statements that counters replace.
    replaced: Vec<&'a Said>,
    /// What must be true, and is not known.
    only_if: BTreeSet<&'a str>,
    /// The columns that the replaced statements set, too.
    sets: BTreeSet<&'a str>,
}

impl Plan<'_> {
    /// The line that says which columns a call does not set.
    fn also_sets(&self) -> Option<String> {
        let sets: Vec<_> = self.sets.iter().copied().collect();
        (!sets.is_empty()).then(|| {
            format!(
                "-- The statement also sets {}, and a call does not. An UPDATE of the row waits as before.",
                sets.join(", ")
            )
        })
    }
}

impl Said {
    /// The statement in one line, for a reader.
    fn shown(&self) -> String {
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        let text: String = self.text.chars().map(printable).collect();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Row {
    /// Adds what another node, or a lock on another index, has observed of the same row.
    pub(super) fn add(&mut self, other: Self) {
        self.waiting += other.waiting;
        for said in other.statements {
            match self.statements.iter_mut().find(|one| one.text == said.text) {
                Some(one) => one.waiting += said.waiting,
                None => self.statements.push(said),
            }
        }
        self.obstacles.extend(other.obstacles);
    }

    /// Whether it is the same row.
    pub(super) fn is(&self, other: &Self) -> bool {
        (&self.schema, &self.table, &self.condition) == (&other.schema, &other.table, &other.condition)
    }

    pub(super) fn advice(&self, needed: u32, rule: &str) -> Advice {
        let waits = waits(self.waiting);
        let (verdict, because, run) = match self.slots {
            Some(slots) if needed > slots => {
                let run = format!(
                    "-- Generate the package with --slots {needed}, and source its create_procedures.sql"
                );
                let because = format!("{waits}, and the package has {slots} slots. {needed} slots: {rule}");
                (Verdict::Grow(needed), because, run)
            }
            Some(_) => {
                let why = "but the slots are sufficient: find long transactions that hold them";
                (Verdict::Inspect, format!("{waits}, {why}"), String::new())
            }
            None => match self.plan() {
                Err(obstacle) => (
                    Verdict::Inspect,
                    format!("{waits}, {obstacle}"),
                    self.change_engine(),
                ),
                Ok(plan) => {
                    let run = self.replace(&plan, needed);
                    if plan.only_if.is_empty() {
                        let because = format!("{waits}, with {}. {needed} slots: {rule}", self.statement());
                        (Verdict::Adopt(needed), because, run)
                    } else {
                        let only_if: Vec<_> = plan.only_if.iter().copied().collect();
                        let only_if = only_if.join(", and ");
                        let because = format!(
                            "{waits}, with {}. The server does not show its values: a counter can replace it only if {only_if}",
                            self.statement()
                        );
                        (Verdict::Inspect, because, format!("-- Only if {only_if}:\n{run}"))
                    }
                }
            },
        };
        Advice {
            subject: self.subject(),
            verdict,
            because,
            run,
            read_us: None,
        }
    }

    /// The statement that makes the engine lock rows. Empty if it does.
    fn change_engine(&self) -> String {
        self.engine.as_ref().map_or_else(String::new, |_| {
            format!(
                "ALTER TABLE {}.{} ENGINE = InnoDB;",
                quoted(&self.schema),
                quoted(&self.table)
            )
        })
    }

    /// The row as [`Advice::subject`].
    pub fn subject(&self) -> String {
        let place = if self.engine.is_some() {
            "all rows"
        } else if self.condition.is_empty() {
            "a row that is not known"
        } else {
            &self.condition
        };
        format!("{}.{}: {place}", self.schema, self.table)
    }

    /// The statement with which most sessions waited. One that counts, if there is one.
    fn statement(&self) -> String {
        let most = self.statements.iter().max_by(|one, other| {
            let counts = |said: &Said| !said.changes.is_empty();
            counts(one)
                .cmp(&counts(other))
                .then(one.waiting.total_cmp(&other.waiting))
        });
        most.map_or_else(|| "a statement that is not known".into(), Said::shown)
    }

    /// The counters that can replace the row.
    ///
    /// # Errors
    /// The reason why they cannot.
    fn plan(&self) -> Result<Plan<'_>, String> {
        let with =
            |said: &Said, why: &str| format!("with {}. A counter cannot replace it: {why}", said.shown());
        if let Some(engine) = &self.engine {
            return Err(format!(
                "with {}. The engine {engine} locks the whole table for each statement",
                self.statement()
            ));
        }
        let changes = || self.statements.iter().flat_map(|said| &said.changes);
        let counted: BTreeSet<&str> = changes().map(|change| change.column.as_str()).collect();
        for said in &self.statements {
            let uses = counted.is_empty() || counted.iter().any(|column| mentions(&said.text, column));
            if let Some(doubt) = said.doubt.as_ref().filter(|_| uses) {
                return Err(with(said, doubt));
            }
            // The value that it sets would be added to the counts.
            if let Some(column) = said.sets.iter().find(|column| counted.contains(column.as_str())) {
                return Err(with(
                    said,
                    &format!("it sets {column}, which other statements increment"),
                ));
            }
        }
        if counted.is_empty() {
            return Err(format!("with {}, which does not count", self.statement()));
        }
        if let Some(why) = counted.iter().find_map(|column| self.obstacles.get(*column)) {
            return Err(format!(
                "with {}. A counter cannot replace it: {why}",
                self.statement()
            ));
        }
        if self.condition.is_empty() {
            let why = if self.key.is_empty() {
                "The table has no primary key that finds the row: add one"
            } else {
                "The row is not known: run slotted advise again"
            };
            return Err(format!("with {}. {why}", self.statement()));
        }
        // A line of a shell does not have these characters.
        let mut texts = [&self.schema[..], &self.table, &self.condition]
            .into_iter()
            .chain(counted.iter().copied());
        if texts.any(|text| text.contains(char::is_control)) {
            return Err(format!(
                "with {}. No command can name it: the table, a column or its key has characters of control",
                self.statement()
            ));
        }
        let mut columns = BTreeMap::new();
        for column in counted {
            let of = used(changes().filter(|change| change.column == column));
            let of =
                of.map_err(|why| format!("with {}. A counter cannot replace it: {why}", self.statement()))?;
            columns.insert(column, of);
        }
        // A limit must not change: the counter would not follow it.
        let sets = |limit: &String| {
            self.statements
                .iter()
                .any(|said| said.sets.iter().any(|set| quoted(set) == *limit))
        };
        let limits = columns.values().filter_map(|of| match of {
            Use::Fills(limit) => Some(limit),
            _ => None,
        });
        let counts = |limit: &&String| columns.keys().any(|column| quoted(column) == **limit);
        if let Some(limit) = limits.clone().find(|limit| sets(limit) || counts(limit)) {
            return Err(format!(
                "with {}. A counter cannot replace it: the limit {limit} is not constant",
                self.statement()
            ));
        }
        let replaced: Vec<_> = self
            .statements
            .iter()
            .filter(|said| !said.changes.is_empty())
            .collect();
        let sets = replaced.iter().flat_map(|said| &said.sets).chain(&self.on_update);
        Ok(Plan {
            only_if: replaced
                .iter()
                .filter_map(|said| said.only_if.as_deref())
                .collect(),
            sets: sets.map(String::as_str).collect(),
            columns,
            replaced,
        })
    }

    /// The package that has the counter of a column: the prefix of its routines, and whether its slots are fixed.
    fn home(&self, of: &Use) -> (&str, bool) {
        let (package, default) = match of {
            Use::Adds => (&self.counters, "counter_"),
            Use::Takes | Use::Fills(_) => (&self.bounded, "bounded_counter_"),
        };
        match package {
            Some(package) => (&package.prefix, package.fixed),
            None => (default, false),
        }
    }

    /// The commands that move the counts, and the calls that replace the statements.
    fn replace(&self, plan: &Plan<'_>, slots: u32) -> String {
        let mut lines = Vec::new();
        let install = |options: &str| {
            format!(
                "slotted install counters{options} --url URL --database {}",
                shell_word(&self.schema)
            )
        };
        let bounded = |of: &Use| !matches!(of, Use::Adds);
        if self.counters.is_none() && plan.columns.values().any(|of| !bounded(of)) {
            lines.push(install(""));
        }
        if self.bounded.is_none() && plan.columns.values().any(bounded) {
            lines.push(install(" --bounded"));
        }
        lines.extend(
            plan.columns
                .iter()
                .map(|(column, of)| self.adopt(column, of, slots)),
        );
        let mut before = BTreeSet::new();
        for said in &plan.replaced {
            let mut calls: Vec<_> = said
                .changes
                .iter()
                .map(|change| self.call(change, &plan.columns[change.column.as_str()]))
                .collect();
            // A take that fails changes nothing.
            calls.sort_by_key(|(takes, _)| !takes);
            let calls: Vec<_> = calls.into_iter().map(|(_, call)| call).collect();
            if !before.insert(calls.clone()) {
                continue;
            }
            let of = if plan.replaced.len() > 1 {
                format!("of {}", said.shown())
            } else {
                "of the statement".to_owned()
            };
            let together = if calls.len() > 1 {
                ", in one transaction"
            } else {
                ""
            };
            lines.push(format!("-- In place {of}, for this row{together}:"));
            lines.extend(calls);
        }
        for (column, of) in &plan.columns {
            let get = || {
                format!(
                    "{}.{}({})",
                    quoted(&self.schema),
                    quoted(&format!("{}get", self.home(of).0)),
                    self.name(column)
                )
            };
            if let Use::Fills(limit) = of {
                lines.push(format!("-- Its {column} is then: {limit} - {}", get()));
            }
        }
        lines.extend(plan.also_sets());
        lines.join("\n")
    }

    /// The name of the counter of a column, as a string of SQL.
    fn name(&self, column: &str) -> SqlStr<String> {
        SqlStr(counter_name(&self.table, column, &self.condition))
    }

    /// The command that moves the count of a column.
    fn adopt(&self, column: &str, of: &Use, slots: u32) -> String {
        let (prefix, fixed) = self.home(of);
        let limit = match of {
            Use::Fills(limit) => format!(" --limit {}", shell_word(limit)),
            Use::Adds | Use::Takes => String::new(),
        };
        let slots = if fixed {
            String::new()
        } else {
            format!(" --slots {slots}")
        };
        let [schema, table] = [&self.schema, &self.table].map(|name| Ident::stored(name).plain());
        let place = format!("{schema}.{table}");
        format!(
            "slotted adopt --url URL --database {} --table {} --column {}{limit} --where {} --counter {}{slots} --prefix {}",
            shell_word(&self.schema),
            shell_word(&place),
            shell_word(column),
            shell_word(&self.condition),
            shell_word(&counter_name(&self.table, column, &self.condition)),
            shell_word(prefix),
        )
    }

    /// The call that replaces a change of a column, and whether it is a take.
    fn call(&self, change: &Change, of: &Use) -> (bool, String) {
        // What is left to a limit becomes less.
        let (minus, plus) = match (of, change.amount) {
            (Use::Fills(_), Amount::Number(number)) => (number > 0, number.abs().to_string()),
            (Use::Fills(_), amount) => (amount == Amount::Parameter, "amount".into()),
            (_, Amount::Number(number)) => (number < 0, number.abs().to_string()),
            (_, amount) => (amount == Amount::Minus, "amount".into()),
        };
        let (routine, amount) = match (of, minus) {
            (Use::Adds, false) if plus == "1" => ("increment", String::new()),
            (Use::Adds, _) => ("add", format!(", {}{plus}", if minus { "-" } else { "" })),
            (_, true) => ("take", format!(", {plus}")),
            (_, false) => ("add", format!(", {plus}")),
        };
        let name = quoted(&format!("{}{routine}", self.home(of).0));
        let call = format!(
            "CALL {}.{name}({}{amount});",
            quoted(&self.schema),
            self.name(&change.column)
        );
        (routine == "take", call)
    }
}

/// How all statements together use a column.
///
/// # Errors
/// The reason why they cannot use one counter.
fn used<'a>(changes: impl Iterator<Item = &'a Change> + Clone) -> Result<Use, String> {
    let uses: BTreeSet<&Use> = changes.clone().map(|change| &change.of).collect();
    let adds = changes.clone().filter(|change| change.of == Use::Adds);
    let column = changes
        .clone()
        .next()
        .map(|change| change.column.clone())
        .unwrap_or_default();
    let mut limited = uses.into_iter().filter(|of| **of != Use::Adds);
    let Some(of) = limited.next() else {
        return Ok(Use::Adds);
    };
    if limited.next().is_some() {
        return Err(format!("statements compare {column} with two limits"));
    }
    // Each amount must go away from the limit.
    let away = |amount: Amount| match (of, amount) {
        (Use::Fills(_), Amount::Number(number)) => number < 0,
        (_, Amount::Number(number)) => number > 0,
        (_, Amount::Parameter | Amount::Minus) => false,
    };
    if adds.clone().any(|change| !away(change.amount)) {
        return Err(format!(
            "a statement compares {column} with a limit, and another one does not"
        ));
    }
    Ok(of.clone())
}

/// The name of the counter of a row. The servers compare names without case and accents, and a name has at most
/// [`NAME_MAX`] characters: a number that depends on the exact condition makes such names differ.
fn counter_name(table: &str, column: &str, condition: &str) -> String {
    let name = format!("{table}.{column} {condition}");
    let most = NAME_MAX as usize;
    let exact = |c: char| c.is_ascii() && !c.is_ascii_uppercase() && !c.is_ascii_control();
    if name.chars().count() <= most && condition.chars().all(exact) {
        return name;
    }
    // FNV-1a, of which every version of this program gets the same number.
    let hash = condition.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let number = format!(" #{hash:016x}");
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let begin: String = name.chars().map(printable).take(most - number.len()).collect();
    begin + &number
}

/// The recommendations for the hot rows of a table: one for a column of several rows, and one for each other row.
pub(super) fn of_table(rows: &[&Row], needed: u32, rule: &str) -> Vec<(f64, Advice)> {
    let mut by_column: BTreeMap<Option<&str>, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        by_column.entry(row.column()).or_default().push(row);
    }
    let mut advice = Vec::new();
    for (column, rows) in by_column {
        let records = column.and_then(|column| records(column, &rows, needed, rule));
        match records {
            Some(records) => advice.push((rows.iter().map(|row| row.waiting).sum(), records)),
            None => advice.extend(rows.iter().map(|one| (one.waiting, one.advice(needed, rule)))),
        }
    }
    advice
}

impl Row {
    /// The only column that becomes a counter, if it has no limit.
    fn column(&self) -> Option<&str> {
        let plan = self
            .plan()
            .ok()
            .filter(|plan| self.slots.is_none() && plan.only_if.is_empty())?;
        let mut columns = plan.columns.into_iter();
        match (columns.next(), columns.next()) {
            (Some((column, Use::Adds)), None) => Some(column),
            _ => None,
        }
    }
}

/// The recommendation for a column of several rows of one table, if the package `slotted_counters` can have its key.
fn records(column: &str, rows: &[&Row], needed: u32, rule: &str) -> Option<Advice> {
    let [first, _, ..] = rows else {
        return None;
    };
    let (table, schema) = (&first.table, &first.schema);
    let prefix = format!("{table}_{column}_");
    let simple = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let names = [schema.as_str(), table, column]
        .into_iter()
        .chain(first.key.iter().map(|one| one.name.as_str()));
    // The longest name of the package has 16 characters after the prefix.
    if !names.into_iter().all(simple) || prefix.len() + 16 > IDENT_MAX {
        return None;
    }
    let key: Vec<String> = first.key.iter().map(KeyColumn::option).collect();
    key.join(", ").parse::<Key>().ok()?;
    let columns: Vec<&str> = first.key.iter().map(|one| one.name.as_str()).collect();
    let columns = columns.join(", ");
    let waiting: f64 = rows.iter().map(|row| row.waiting).sum();
    let mut run = format!(
        "-- The column stays the total, and slots hold what is pending:\n\
         slotted install --url URL --database {schema} --column {table}.{column} --slots {needed}\n\
         -- In place of the statement: CALL {prefix}add({columns}, amount);\n\
         -- Every few seconds: slotted rollup --url URL --database {schema} --every 10\n"
    );
    run += "-- Or a counter for each of these rows:";
    for row in rows {
        run += &format!("\n{}", row.adopt(column, &Use::Adds, needed));
    }
    if let Some(line) = rows.iter().find_map(|row| row.plan().ok()?.also_sets()) {
        run += &format!("\n{line}");
    }
    Some(Advice {
        subject: format!("{schema}.{table}: {column} of {} rows", rows.len()),
        verdict: Verdict::Records(needed),
        because: format!(
            "{}, with {}. {needed} slots: {rule}",
            waits(waiting),
            first.statement()
        ),
        run,
        read_us: None,
    })
}
