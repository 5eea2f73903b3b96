//! Splits a script with DELIMITER into statements. A driver accepts one statement at a time and no DELIMITER. Pure.

/// The statements of a script as a command-line client sends them, without delimiters and without the comments before
/// them. A delimiter in quotes, backticks or a comment does not end a statement.
///
/// Source: MySQL manual, "mysql Client Commands" (delimiter) and "Comments". A backslash in a quoted string is an escape
/// character, as in the sql_mode that the rendered scripts set.
pub fn statements(script: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut delimiter = ";".to_owned();
    let mut statement = String::new();
    let mut rest = script;
    while let Some(c) = rest.chars().next() {
        if statement.is_empty() {
            let line = rest.lines().next().unwrap_or_default();
            let mut words = line.split_whitespace();
            if words
                .next()
                .is_some_and(|word| word.eq_ignore_ascii_case("delimiter"))
                && let Some(word) = words.next()
            {
                delimiter = word.to_owned();
                rest = &rest[line.len()..];
                continue;
            }
            let skipped = if c.is_whitespace() {
                c.len_utf8()
            } else {
                line_comment(rest)
            };
            if skipped > 0 {
                rest = &rest[skipped..];
                continue;
            }
        }
        if let Some(after) = rest.strip_prefix(delimiter.as_str()) {
            statements.push(std::mem::take(&mut statement));
            rest = after;
            continue;
        }
        let length = token(rest, c);
        statement.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    statements.push(statement);
    statements.retain_mut(|statement| {
        statement.truncate(statement.trim_end().len());
        !statement.is_empty()
    });
    statements
}

/// A named statement of `queries.sql`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The name in the comment `-- name: NAME`.
    pub name: String,
    /// The parameters in the comment `-- Parameters: A, B`, one for each question mark.
    pub parameters: Vec<String>,
    /// The statement, with question marks.
    pub sql: String,
}

/// The named statements of `queries.sql`. Each follows its comments `-- name: NAME` and `-- Parameters: A, B`.
pub fn queries(script: &str) -> Vec<Query> {
    let mut queries = Vec::new();
    for part in script.split("\n-- name: ").skip(1) {
        let (name, rest) = part.split_once('\n').unwrap_or((part, ""));
        let parameters = rest.lines().find_map(|line| line.strip_prefix("-- Parameters: "));
        let parameters = parameters.unwrap_or_default().split(", ");
        queries.extend(statements(rest).into_iter().next().map(|sql| {
            Query {
                name: name.trim().to_owned(),
                parameters: parameters
                    .filter(|parameter| !["none", ""].contains(parameter))
                    .map(str::to_owned)
                    .collect(),
                sql,
            }
        }));
    }
    queries
}

/// The length of a token, in bytes: a quoted string or name, a comment, or one character.
fn token(text: &str, first: char) -> usize {
    match first {
        '\'' | '"' | '`' => quoted(text, first),
        '/' if text.starts_with("/*") => text.find("*/").map_or(text.len(), |end| end + 2),
        _ => line_comment(text).max(first.len_utf8()),
    }
}

/// The length of a comment up to the end of the line, in bytes. 0 if the text does not begin with one.
fn line_comment(text: &str) -> usize {
    let dashes = text
        .strip_prefix("--")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
    if dashes || text.starts_with('#') {
        text.find('\n').unwrap_or(text.len())
    } else {
        0
    }
}

/// The length of a quoted string or name with its quotes, in bytes.
fn quoted(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        if c == '\\' && quote != '`' {
            characters.next();
        } else if c == quote {
            // A doubled quote is treated as the end of one string and the beginning of the next, with the same result.
            return at + quote.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::statements;

    #[test]
    fn a_delimiter_inside_quotes_names_and_comments_does_not_split() {
        let script = "SELECT ';', \"a\\\";\", 'it''s;' -- no; end\n , `;` /* ; */ FROM t; # ;\nSELECT 2";
        assert_eq!(
            statements(script),
            [
                "SELECT ';', \"a\\\";\", 'it''s;' -- no; end\n , `;` /* ; */ FROM t",
                "SELECT 2"
            ]
        );
    }

    #[test]
    fn the_delimiter_changes_and_changes_back() {
        let script =
            "-- first\nDROP x;\n\ndelimiter ;;\nCREATE x BEGIN a; b; END;;\nDELIMITER ;\nSELECT 1;\n";
        assert_eq!(
            statements(script),
            ["DROP x", "CREATE x BEGIN a; b; END", "SELECT 1"]
        );
    }

    #[test]
    fn an_unterminated_string_is_part_of_the_statement() {
        assert_eq!(statements("SELECT 'open"), ["SELECT 'open"]);
        assert_eq!(statements(" -- nothing\n;;\n"), Vec::<String>::new());
    }
}
