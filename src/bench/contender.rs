//! A contender: a way to count as a file of SQL, one of templates/bench or of the user. Pure.

use std::fmt::Display;

use super::Setting;
use crate::package::{ENTRIES_MAX, Family, Options, OptionsError, Package};
use crate::render::{self, Task};
use crate::script;

/// The sections of a file, each after a line such as `-- setup`. All except the first contain one statement.
const SECTIONS: [&str; 4] = ["setup", "increment", "read", "total"];

/// The names and texts of files of templates/bench. The name of the contender replaces `{name}`.
macro_rules! built_in {
    ($($name:literal $file:literal)*) => {
        &[$(($name, include_str!(concat!("../../templates/bench/", $file)))),*]
    };
}

/// The contenders of the program: name and text. The first eight increment one counter by 1 and can be compared with each other.
pub const BUILT_IN: &[(&str, &str)] = built_in! {
    "uncontended" "uncontended.sql"
    "single-row" "single-row.sql"
    "published-upsert" "published-upsert.sql"
    "article-2012" "article-2012.sql"
    "counters" "counters.sql"
    "counters-fixed" "counters.sql"
    "slotted_counters" "slotted_counters.sql"
    "plain-statement" "plain-statement.sql"
    "stock-row" "stock-row.sql"
    "take" "take.sql"
    "batch" "batch.sql"
};

/// The first line of a contender's file.
pub fn description(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches("-- ")
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
    /// Where it is, for messages: `single-row, line 12, in -- increment`.
    pub place: String,
    /// The text.
    pub sql: String,
}

/// Why a file is no contender.
#[derive(Debug, thiserror::Error)]
pub enum ContenderError {
    /// A section is missing.
    #[error("{0}: the section -- {1} is missing")]
    Missing(String, &'static str),
    /// A section begins twice.
    #[error("{0}, line {1}: the section -- {2} begins a second time")]
    Twice(String, usize, &'static str),
    /// A section does not contain exactly one statement.
    #[error("{0}, line {1}: the section -- {2} contains {3} statements instead of one")]
    Statements(String, usize, &'static str, usize),
    /// The package is unknown.
    #[error("{0}: the package {1} is unknown: use counters, counters-fixed, slotted_counters or bounded_counters")]
    Package(String, String),
    /// The number of counts is not a number.
    #[error("{0}: '{1}' in -- counts: is not a number from 1 to {ENTRIES_MAX}")]
    Counts(String, String),
}

/// The text of a section and the number of its first line.
type Section = Option<(usize, String)>;

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
        let (head, sections) = sections(name, text)?;
        let value = |key: &str| head.iter().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let package = value("-- package:").map(|package| {
            options(package).ok_or_else(|| ContenderError::Package(name.to_owned(), package.to_owned()))
        });
        let counts = value("-- counts:").unwrap_or("1");
        let [setup, increment, read, total] = SECTIONS;
        let of = |section| statements(name, section, &sections);
        let one = |section| match <[Statement; 1]>::try_from(of(section)?.1) {
            Ok([statement]) => Ok(statement),
            Err(all) => Err(ContenderError::Statements(name.to_owned(), of(section)?.0, section, all.len())),
        };
        let number = counts.parse().ok().filter(|number| (1..=ENTRIES_MAX).contains(number));
        let counts = number.ok_or_else(|| ContenderError::Counts(name.to_owned(), counts.to_owned()))?;
        let mut increment = one(increment)?;
        let entries = vec!["[123, {random}, 1]"; counts as usize].join(", ");
        increment.sql = increment.sql.replace("{entries}", &entries);
        Ok(Self {
            name: name.to_owned(),
            package: package.transpose()?,
            counts,
            setup: of(setup)?.1,
            increment,
            read: one(read)?,
            total: one(total)?,
        })
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
        let of_file = self.setup.iter().map(|statement| statement.filled(1, setting));
        all.extend(of_file);
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
fn options(package: &str) -> Option<Options> {
    let options = match package {
        "counters" => Options::default(),
        "counters-fixed" => Options::counters_fixed(),
        "slotted_counters" => Options::slotted_counters(),
        "bounded_counters" => Options::bounded_counters(),
        _ => return None,
    };
    Some(Options { function: false, ..options })
}

/// The lines before the first section, and the sections in the order of [`SECTIONS`].
fn sections<'a>(name: &str, text: &'a str) -> Result<(Vec<&'a str>, [Section; 4]), ContenderError> {
    let (mut head, mut sections) = (Vec::new(), [const { None }; 4]);
    let mut current = None;
    for (line, number) in text.lines().zip(1..) {
        let begins = |section: &&str| line.trim_end().strip_prefix("-- ") == Some(*section);
        if let Some(at) = SECTIONS.iter().position(begins) {
            if sections[at].is_some() {
                return Err(ContenderError::Twice(name.to_owned(), number, SECTIONS[at]));
            }
            sections[at] = Some((number, String::new()));
            current = Some(at);
        } else if let Some((_, text)) = current.and_then(|at| sections[at].as_mut()) {
            text.push_str(line);
            text.push('\n');
        } else {
            head.push(line);
        }
    }
    Ok((head, sections))
}

/// The line of a section and its statements.
fn statements(
    name: impl Display,
    section: &'static str,
    sections: &[Section; 4],
) -> Result<(usize, Vec<Statement>), ContenderError> {
    let at = SECTIONS.iter().position(|one| *one == section).expect("a section");
    let Some((line, text)) = &sections[at] else {
        return Err(ContenderError::Missing(name.to_string(), section));
    };
    let mut from = 0;
    let statement = |sql: String| {
        // A statement is a part of the text. Only comments and delimiters are between two of them.
        let begin = from + text[from..].find(&sql).expect("a statement is in its script");
        from = begin + sql.len();
        let line = line + 1 + text[..begin].matches('\n').count();
        let place = format!("{name}, line {line}, in -- {section}");
        Statement { place, sql }
    };
    Ok((*line, script::statements(text).into_iter().map(statement).collect()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const FILE: &str = "-- Two rows\n-- counts: 2\n\n-- setup\nCREATE TABLE t (a INT);\n-- A comment\nINSERT INTO t\nVALUES (0), (0);\n\
                        -- increment\nUPDATE t SET a = a + {slots};\n-- read\nSELECT a FROM t;\n-- total\nSELECT SUM(a) FROM t;\n";

    #[test]
    fn all_built_in_files_are_valid() {
        for (name, text) in BUILT_IN {
            let contender = Contender::built_in(name).expect(name);
            assert_eq!(contender.name, *name);
            assert!(!description(text).is_empty(), "{name}");
        }
    }

    #[test]
    fn a_statement_knows_its_line_and_gets_the_numbers_of_its_connection() {
        let contender = Contender::parse("mine", FILE).expect("a contender");
        let setting = Setting { connections: 4, slots: 3, hold: None, duration: Duration::from_secs(1) };
        let setup = contender.setup(&setting, Family::Mysql).expect("statements");
        let places: Vec<_> = setup.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(places, ["mine, line 5, in -- setup", "mine, line 7, in -- setup"]);
        assert_eq!(contender.counts, 2);
        assert_eq!(contender.increment.filled(2, &setting).sql, "UPDATE t SET a = a + 3");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named() {
        for (text, error) in [
            (FILE.replace("-- total\n", ""), "mine, line 11: the section -- read contains 2 statements instead of one"),
            (FILE.replace("-- read\nSELECT a FROM t;\n", ""), "mine: the section -- read is missing"),
            (FILE.replace("-- total", "-- setup"), "mine, line 13: the section -- setup begins a second time"),
            (FILE.replace("counts: 2", "counts: 0"), "mine: '0' in -- counts: is not a number from 1 to 10000"),
            (
                FILE.replace("counts: 2", "counts: 4294967295"),
                "mine: '4294967295' in -- counts: is not a number from 1 to 10000",
            ),
            (FILE.replace("-- counts: 2", "-- package: x"), "mine: the package x is unknown: use "),
        ] {
            let found = Contender::parse("mine", &text).expect_err(&text).to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
