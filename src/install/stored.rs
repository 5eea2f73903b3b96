//! The tokens of a stored routine, in a script and as the server prints it.

use crate::script::tokens;

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
    pub(super) fn parse(statement: &str) -> Option<Self> {
        let tokens = tokens(statement);
        let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token: &String| token.eq_ignore_ascii_case(word));
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
        let lower = |tokens: &[String]| tokens.iter().map(|token| token.to_lowercase()).collect::<Vec<_>>();
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
        // MySQL stores the one after a body of one statement.
        stored.body.pop_if(|last| last == ";");
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
        let instead =
            |what: &str, found: &str, wanted: &str| format!("{what}{found} instead of {wanted}").replace('`', "");
        let differences = [
            (!self.definer.is_empty() && self.definer != actual.definer)
                .then(|| instead("the definer is ", &actual.definer, &self.definer)),
            (self.parameters != actual.parameters).then(|| "the parameters differ".into()),
            (self.returns != actual.returns).then(|| "the return type differs".into()),
            (self.data_access != actual.data_access).then(|| instead("", &actual.data_access, &self.data_access)),
            (self.security != actual.security).then(|| instead("SQL SECURITY ", &actual.security, &self.security)),
            (self.comment != actual.comment).then(|| "the COMMENT differs".into()),
            (self.body != actual.body).then(|| "the body differs".into()),
        ];
        differences.into_iter().flatten().collect()
    }
}
