//! A contender: a way to count as a file of SQL, one of templates/bench or of the user. Pure.

use std::time::Duration;

use crate::package::{ENTRIES_MAX, Family, Options, OptionsError, Package};
use crate::render::{self, Task};
use crate::script;

/// The sections of a file, each after a line such as `-- setup`. All except the first contain one statement.
const SECTIONS: [&str; 4] = ["setup", "increment", "read", "total"];

/// The contenders of the program: name and text, in which the name replaces `{name}`. The first eight increment one counter by 1 and
/// can be compared with each other.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("uncontended", include_str!("../../templates/bench/uncontended.sql")),
    ("single-row", include_str!("../../templates/bench/single-row.sql")),
    ("published-upsert", include_str!("../../templates/bench/published-upsert.sql")),
    ("article-2012", include_str!("../../templates/bench/article-2012.sql")),
    ("counters", include_str!("../../templates/bench/counters.sql")),
    ("counters-fixed", include_str!("../../templates/bench/counters.sql")),
    ("slotted_counters", include_str!("../../templates/bench/slotted_counters.sql")),
    ("plain-statement", include_str!("../../templates/bench/plain-statement.sql")),
    ("stock-row", include_str!("../../templates/bench/stock-row.sql")),
    ("take", include_str!("../../templates/bench/take.sql")),
    ("batch", include_str!("../../templates/bench/batch.sql")),
];

/// The first line of a contender's file.
pub fn description(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches("-- ")
}

/// The parameters of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Connections that increment at the same time, from 1.
    pub connections: u32,
    /// Slots of a counter, from 1.
    pub slots: u32,
    /// The time that a transaction works before the increment, and between the increment and its commit. None is autocommit.
    pub hold: Option<[Duration; 2]>,
    /// The duration of the measurement. Statements that have begun by then complete.
    pub duration: Duration,
}

/// A way to count.
#[derive(Debug, Clone)]
pub struct Contender {
    /// The name in reports.
    pub name: String,
    /// The package that is installed before `setup`, of the line `-- package: NAME`.
    package: Option<Options>,
    /// The counts that a call of `increment` adds, of the line `-- counts: N`.
    pub counts: u32,
    setup: Vec<Statement>,
    /// Adds [`counts`](Self::counts).
    pub increment: Statement,
    /// Reads the counter.
    pub read: Statement,
    /// Returns a number that grows by the counts that were added.
    pub total: Statement,
}

/// A statement of a contender, with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Where it is, for messages: `single-row, statement 1 of -- increment`.
    pub place: String,
    /// The text.
    pub sql: String,
}

/// Why a file is no contender.
#[derive(Debug, thiserror::Error)]
#[error("{0}: {1}")]
pub struct ContenderError(String, String);

impl Contender {
    /// A contender of the program.
    pub fn built_in(name: &str) -> Option<Self> {
        let (name, text) = BUILT_IN.iter().find(|(one, _)| *one == name)?;
        let text = text.replace("{name}", name);
        Some(Self::parse(name, &text).expect("a file of templates/bench is valid"))
    }

    /// Parses a file.
    ///
    /// # Errors
    /// A section is missing or has the wrong number of statements, or a line of the head is not valid.
    pub fn parse(name: &str, text: &str) -> Result<Self, ContenderError> {
        let wrong = |reason| ContenderError(name.to_owned(), reason);
        let mut head = Vec::new();
        let mut sections: Vec<(&str, String)> = Vec::new();
        for line in text.lines() {
            let section =
                line.trim_end().strip_prefix("-- ").and_then(|name| SECTIONS.iter().find(|one| **one == name));
            match (section, sections.last_mut()) {
                (Some(section), _) => sections.push((section, String::new())),
                (None, Some((_, text))) => text.extend([line, "\n"]),
                (None, None) => head.push(line),
            }
        }
        let all = |section: &str| {
            let texts: Vec<_> = sections.iter().filter(|(name, _)| *name == section).collect();
            let [(_, text)] = texts[..] else {
                return Err(wrong(format!("{} sections -- {section} instead of one", texts.len())));
            };
            let place = |number| format!("{name}, statement {number} of -- {section}");
            let statements = script::statements(text).into_iter().zip(1..);
            Ok(statements.map(|(sql, number)| Statement { place: place(number), sql }).collect::<Vec<_>>())
        };
        let one = |section| match <[Statement; 1]>::try_from(all(section)?) {
            Ok([statement]) => Ok(statement),
            Err(all) => Err(wrong(format!("{} statements in -- {section} instead of one", all.len()))),
        };
        let value = |key| head.iter().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let package = value("-- package:").map(options).transpose().map_err(wrong)?;
        let counts = value("-- counts:").unwrap_or("1");
        let number = counts.parse().ok().filter(|number| (1..=ENTRIES_MAX).contains(number));
        let not_a_number = || wrong(format!("'{counts}' in -- counts: is not a number from 1 to {ENTRIES_MAX}"));
        let counts = number.ok_or_else(not_a_number)?;
        let mut increment = one("increment")?;
        increment.sql = increment.sql.replace("{entries}", &vec!["[123, {random}, 1]"; counts as usize].join(", "));
        let (setup, read, total) = (all("setup")?, one("read")?, one("total")?);
        Ok(Self { name: name.to_owned(), package, counts, setup, increment, read, total })
    }

    /// The statements that create its tables and rows: those of the package's setup.sql, then those of the file.
    ///
    /// # Errors
    /// The package does not support this number of slots.
    pub fn setup(&self, setting: &Setting, family: Family) -> Result<Vec<Statement>, OptionsError> {
        let mut all = Vec::new();
        if let Some(mut options) = self.package.clone() {
            options.family = family;
            if !options.per_counter() {
                options.subject.set_slots(setting.slots);
            }
            let place = format!("{}, in setup.sql of its package", self.name);
            let steps = render::plan(&Package::new(options)?, Task::Create);
            let statement = |sql| Statement { place: place.clone(), sql };
            all.extend(steps.into_iter().flat_map(|step| step.statements).map(statement));
        }
        all.extend(self.setup.iter().map(|statement| statement.filled(1, setting)));
        Ok(all)
    }
}

impl Statement {
    /// With the numbers of a connection, from 1, and of a setting in place of `{connection}`, `{connections}` and `{slots}`.
    #[must_use]
    pub fn filled(&self, connection: u32, setting: &Setting) -> Self {
        let number = |sql: &str, name: &str, number: u32| sql.replace(name, &number.to_string());
        let sql = number(&self.sql, "{connection}", connection);
        let sql = number(&sql, "{connections}", setting.connections);
        Self { place: self.place.clone(), sql: number(&sql, "{slots}", setting.slots) }
    }
}

/// A package of generated/. Its function, which reads a counter, is left out, because a server with a binary log accepts it only
/// from some accounts (1419).
fn options(package: &str) -> Result<Options, String> {
    let known = "counters, counters-fixed, slotted_counters or bounded_counters";
    let options = Options::named(package).ok_or_else(|| format!("the package {package} is unknown: use {known}"))?;
    Ok(Options { function: false, ..options })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "-- Two rows\n-- counts: 2\n\n-- setup\nCREATE TABLE t (a INT);\n-- A comment\nINSERT INTO t\nVALUES (0), (0);\n\
                        -- increment\nUPDATE t SET a = a + {slots};\n-- read\nSELECT a FROM t;\n-- total\nSELECT SUM(a) FROM t;\n";

    #[test]
    fn a_statement_knows_its_place_and_gets_the_numbers_of_its_connection() {
        let contender = Contender::parse("mine", FILE).expect("a contender");
        let setting = Setting { connections: 4, slots: 3, hold: None, duration: Duration::from_secs(1) };
        let setup = contender.setup(&setting, Family::Mysql).expect("statements");
        let places: Vec<_> = setup.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(places, ["mine, statement 1 of -- setup", "mine, statement 2 of -- setup"]);
        assert_eq!(contender.counts, 2);
        assert_eq!(contender.increment.filled(2, &setting).sql, "UPDATE t SET a = a + 3");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named() {
        for (from, to, error) in [
            ("-- total\n", "", "mine: 2 statements in -- read instead of one"),
            ("-- read\nSELECT a FROM t;\n", "", "mine: 0 sections -- read instead of one"),
            ("-- total", "-- setup", "mine: 2 sections -- setup instead of one"),
            ("counts: 2", "counts: 0", "mine: '0' in -- counts: is not a number from 1 to 10000"),
            ("counts: 2", "counts: 4294967295", "mine: '4294967295' in -- counts: is not a number from 1 to 10000"),
            ("-- counts: 2", "-- package: x", "mine: the package x is unknown: use "),
        ] {
            let found = Contender::parse("mine", &FILE.replace(from, to)).expect_err(to).to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
