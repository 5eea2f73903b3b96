//! The tokens of a stored routine, in a script and as the server prints it.

use crate::script::{Dialect, tokens};

/// A stored routine as the server reads its CREATE statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    /// The account in `DEFINER = `, if the statement names one.
    definer: String,
    parameters: Vec<String>,
    returns: Vec<String>,
    data_access: String,
    security: String,
    comment: String,
    body: Vec<String>,
}

impl Stored {
    /// Parses a CREATE statement, of a script or of SHOW CREATE.
    pub(super) fn parse(statement: &str, dialect: Dialect) -> Option<Self> {
        let tokens = tokens(statement, dialect);
        let is = |at: usize, word: &str| {
            tokens
                .get(at)
                .is_some_and(|token: &String| token.eq_ignore_ascii_case(word))
        };
        let kind = (0..tokens.len()).find(|&at| is(at, "PROCEDURE") || is(at, "FUNCTION"))?;
        let definer = tokens[..kind].iter().skip_while(|token| *token != "=").skip(1);
        let (mut at, first) = (kind + 2, kind + 3);
        let mut depth = 0;
        while let Some(token) = tokens.get(at) {
            depth += i32::from(token == "(") - i32::from(token == ")");
            at += 1;
            if depth == 0 {
                break;
            }
        }
        let lower = |tokens: &[String]| {
            tokens
                .iter()
                .map(|token| token.to_lowercase())
                .collect::<Vec<_>>()
        };
        let mut stored = Self {
            definer: definer.cloned().collect(),
            parameters: lower(tokens.get(first..at.checked_sub(1)?)?),
            returns: Vec::new(),
            data_access: "CONTAINS SQL".into(),
            security: "DEFINER".into(),
            comment: String::new(),
            body: Vec::new(),
        };
        at += stored.read_characteristics(tokens.get(at..)?)?;
        stored.body = tokens[at..].to_vec();
        Some(stored)
    }

    /// Reads what stands between the parameters and the body. Returns the number of its tokens.
    fn read_characteristics(&mut self, tokens: &[String]) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = tokens.get(at..)?;
            let word = rest.first()?.to_uppercase();
            at += match word.as_str() {
                "RETURNS" => {
                    // MariaDB prints the display width of an integer.
                    self.returns = rest[1..2].iter().map(|token| token.to_lowercase()).collect();
                    let width = rest.get(2).is_some_and(|token| token == "(");
                    if width { 5 } else { 2 }
                }
                "MODIFIES" | "READS" => {
                    self.data_access = format!("{word} SQL DATA");
                    3
                }
                "CONTAINS" | "NO" => {
                    self.data_access = format!("{word} SQL");
                    2
                }
                "LANGUAGE" => 2,
                "NOT" => 2,
                "DETERMINISTIC" => 1,
                "SQL" => {
                    self.security = rest.get(2)?.to_uppercase();
                    3
                }
                "COMMENT" => {
                    self.comment = rest.get(1)?.trim_start_matches('\'').to_owned();
                    2
                }
                _ => break,
            };
        }
        Some(at)
    }

    pub(super) fn differences(&self, actual: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        let mut say = |differs: bool, text: &str| {
            if differs {
                differences.push(text.to_owned());
            }
        };
        say(
            !self.definer.is_empty() && self.definer != actual.definer,
            &format!(
                "the definer is {} instead of {}",
                actual.definer.replace('`', ""),
                self.definer.replace('`', "")
            ),
        );
        say(self.parameters != actual.parameters, "the parameters differ");
        say(self.returns != actual.returns, "the return type differs");
        say(
            self.data_access != actual.data_access,
            &format!("{} instead of {}", actual.data_access, self.data_access),
        );
        say(
            self.security != actual.security,
            &format!("SQL SECURITY {} instead of {}", actual.security, self.security),
        );
        say(self.comment != actual.comment, "the COMMENT differs");
        if self.body != actual.body {
            let exempt = without_set_statement(&self.body);
            say(
                true,
                if exempt == actual.body {
                    "the body has lost SET STATEMENT innodb_snapshot_isolation=OFF: calls can fail with error 1020"
                } else {
                    "the body differs"
                },
            );
        }
        differences
    }
}

/// The tokens of a body without each `SET STATEMENT ... FOR`.
fn without_set_statement(body: &[String]) -> Vec<String> {
    let mut rest = body.iter().peekable();
    let mut tokens = Vec::new();
    while let Some(token) = rest.next() {
        let statement = rest
            .peek()
            .is_some_and(|next| next.eq_ignore_ascii_case("STATEMENT"));
        if token.eq_ignore_ascii_case("SET") && statement {
            let _ = rest.by_ref().find(|token| token.eq_ignore_ascii_case("FOR"));
        } else {
            tokens.push(token.clone());
        }
    }
    tokens
}
