//! The tokens of a stored routine, in a script and as the server prints it.

use crate::script::tokens;

/// A stored routine as the server reads its CREATE statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stored {
    /// The account in `DEFINER = `, or nothing.
    definer: String,
    parameters: Vec<String>,
    returns: String,
    deterministic: String,
    data_access: String,
    security: String,
    comment: String,
    body: Vec<String>,
}

impl Stored {
    /// Parses a CREATE statement, of a script or of SHOW CREATE.
    pub(super) fn parse(statement: &str) -> Option<Self> {
        let tokens = tokens(statement);
        let tokens: Vec<_> = tokens.iter().map(String::as_str).collect();
        let kind = tokens.iter().position(|token| ["PROCEDURE", "FUNCTION"].contains(token))?;
        let (before, [_, _, parameters @ ..]) = tokens.split_at(kind) else {
            return None;
        };
        let mut depth = 0;
        let end = parameters.iter().position(|token| {
            depth += i32::from(token.trim() == "(") - i32::from(*token == ")");
            depth == 0
        })?;
        let mut stored = Self {
            definer: before.iter().skip_while(|token| **token != "=").skip(1).copied().collect(),
            parameters: parameters[..end].iter().map(|token| token.to_lowercase()).collect(),
            deterministic: "NOT DETERMINISTIC".into(),
            data_access: "CONTAINS SQL".into(),
            security: "DEFINER".into(),
            ..Self::default()
        };
        let body = stored.read_characteristics(&parameters[end + 1..]);
        // MySQL stores the semicolon after a body of one statement.
        stored.body = body.strip_suffix(&[";"]).unwrap_or(body).iter().map(|token| (*token).to_owned()).collect();
        Some(stored)
    }

    /// Reads what stands between the parameters and the body. Returns the body.
    fn read_characteristics<'a>(&mut self, mut rest: &'a [&'a str]) -> &'a [&'a str] {
        loop {
            let (part, text, after) = match rest {
                // MariaDB prints the display width of an integer.
                ["RETURNS", kind, "(", _, ")", after @ ..] | ["RETURNS", kind, after @ ..] => {
                    (&mut self.returns, kind.to_lowercase(), after)
                }
                [access @ ("MODIFIES" | "READS"), "SQL", "DATA", after @ ..] => {
                    (&mut self.data_access, format!("{access} SQL DATA"), after)
                }
                [access @ ("CONTAINS" | "NO"), "SQL", after @ ..] => {
                    (&mut self.data_access, format!("{access} SQL"), after)
                }
                ["SQL", "SECURITY", word, after @ ..] => (&mut self.security, (*word).to_owned(), after),
                ["COMMENT", literal, after @ ..] => (&mut self.comment, (*literal).to_owned(), after),
                ["DETERMINISTIC", after @ ..] => (&mut self.deterministic, "DETERMINISTIC".to_owned(), after),
                ["LANGUAGE" | "NOT", _, after @ ..] => {
                    rest = after;
                    continue;
                }
                body => return body,
            };
            *part = text;
            rest = after;
        }
    }

    pub(super) fn differences(&self, found: &Self) -> Vec<String> {
        let instead = |what: &str, wanted: &str, found: &str| {
            (wanted != found).then(|| format!("{what}{found} instead of {wanted}").replace('`', ""))
        };
        let differences = [
            instead("the definer is ", &self.definer, &found.definer).filter(|_| !self.definer.is_empty()),
            (self.parameters != found.parameters).then(|| "the parameters differ".into()),
            (self.returns != found.returns).then(|| "the return type differs".into()),
            instead("", &self.deterministic, &found.deterministic),
            instead("", &self.data_access, &found.data_access),
            instead("SQL SECURITY ", &self.security, &found.security),
            (self.comment != found.comment).then(|| "the COMMENT differs".into()),
            (self.body != found.body).then(|| "the body differs".into()),
        ];
        differences.into_iter().flatten().collect()
    }
}
