//! Splits a script with DELIMITER into statements, because a driver accepts no DELIMITER, and a statement into tokens. Pure.

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
            if words.next().is_some_and(|word| word.eq_ignore_ascii_case("delimiter"))
                && let Some(word) = words.next()
            {
                delimiter = word.to_owned();
                rest = &rest[line.len()..];
                continue;
            }
            let skipped = if space(c) { c.len_utf8() } else { line_comment(rest) };
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

/// The tokens of a statement as a server reads it: without comments, and with string literals as one quote and their value, and with a space before a parenthesis
/// that does not follow a word at once. Two
/// statements with the same tokens are the same statement to the server. An executable comment or a hint, which no package contains, is one token.
pub fn tokens(statement: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || "_@$".contains(c);
    let mut tokens: Vec<String> = Vec::new();
    let (mut rest, mut before) = (statement, ' ');
    while let Some(c) = rest.chars().next() {
        let length = if is_word(c) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { token(rest, c) };
        let (text, following) = rest.split_at(length);
        let is_executed = ["/*!", "/*M!", "/*+"].iter().any(|begin| text.starts_with(begin));
        let is_skipped = space(c) || text.starts_with("/*") || line_comment(text) > 0;
        if let Some(value) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
            let value = unescaped(value);
            match tokens.last_mut().filter(|_| before == c) {
                // A doubled quote is the end of one literal and the beginning of the next.
                Some(literal) => literal.extend(["'", value.as_str()]),
                None => tokens.push(format!("'{value}")),
            }
        } else if c == '`' && before == '`' {
            // The same for a doubled backtick in a name.
            tokens.last_mut().expect("a name").push_str(text);
        } else if c == '(' && !is_word(before) {
            // After a space, `SUM (a)` calls a stored function of this name.
            tokens.push(" (".into());
        } else if is_executed || !is_skipped {
            tokens.push(text.to_owned());
        }
        (rest, before) = (following, c);
    }
    tokens
}

/// The value of a string literal without its quotes.
fn unescaped(text: &str) -> String {
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let escaped = if c == '\\' { characters.next() } else { None };
        match escaped {
            None => value.push(c),
            Some('n') => value.push('\n'),
            Some('t') => value.push('\t'),
            Some('r') => value.push('\r'),
            Some('0') => value.push('\0'),
            Some('Z') => value.push('\u{1a}'),
            Some('b') => value.push('\u{8}'),
            // For a pattern of LIKE, these two keep their backslash.
            Some(next @ ('%' | '_')) => value.extend([c, next]),
            Some(next) => value.push(next),
        }
    }
    value
}

/// The length of a token, in bytes: a quoted string or name, a comment, or one character.
fn token(text: &str, first: char) -> usize {
    match first {
        '\'' | '"' | '`' => quoted(text, first),
        // The asterisk of /* is not the one of */.
        '/' if text.starts_with("/*") => text[2..].find("*/").map_or(text.len(), |end| end + 4),
        _ => line_comment(text).max(first.len_utf8()),
    }
}

/// White space to the servers. To them, that of Unicode is a part of a name.
fn space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// The length of a comment up to the end of the line, in bytes. 0 if the text does not begin with one.
fn line_comment(text: &str) -> usize {
    let dashes = text.strip_prefix("--").is_some_and(|rest| rest.is_empty() || rest.starts_with(space));
    if dashes || text.starts_with('#') { text.find('\n').unwrap_or(text.len()) } else { 0 }
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
    use proptest::prelude::*;

    use super::{statements, tokens};
    use crate::package::{Ident, SqlStr};

    #[test]
    fn tokens_are_those_that_the_server_reads() {
        let of = |statement: &str| tokens(statement).join("|");
        let call = "DROP `a b` -- no\n UPDATE t /* no */ SET a = 'it''s' # no\n /*!80000 LIMIT 1 */";
        assert_eq!(of(call), "DROP|`a b`|UPDATE|t|SET|a|=|'it's|/*!80000 LIMIT 1 */");
        // A server prints a COMMENT with other escapes than the statement had.
        let (rendered, printed) = ("'a\nb \\\\ ''c'''", "'a\\nb \\\\ \\'c\\''");
        assert_eq!(of(rendered), of(printed));
        // U+00A0 is a part of a name.
        assert_ne!(tokens("SET a = NOW\u{a0}()"), tokens("SET a = NOW()"));
        assert_eq!(tokens("DO\x0b\t1 --\x0c no"), tokens("DO 1"));
        assert_ne!(tokens("SELECT SUM (a)"), tokens("SELECT SUM(a)"));
        assert_ne!(tokens("SELECT SUM/**/(a)"), tokens("SELECT SUM(a)"));
    }

    #[test]
    fn a_delimiter_inside_quotes_names_and_comments_does_not_split() {
        let one = "SELECT ';', \"a\\\";\", 'it''s;' -- no; end\n , `;` /* ; */ FROM t";
        assert_eq!(statements(&format!("{one}; # ;\nSELECT 2")), [one, "SELECT 2"]);
        assert_eq!(statements("SELECT 'open"), ["SELECT 'open"]);
        assert_eq!(statements(" -- nothing\n;;\n"), Vec::<String>::new());
        assert_eq!(statements("SELECT 1 /*/; */; SELECT 2"), ["SELECT 1 /*/; */", "SELECT 2"]);
    }

    proptest! {
        #[test]
        fn a_script_is_split_only_at_its_delimiter(texts in prop::collection::vec(any::<String>(), 1..5)) {
            let given: Vec<_> = texts.iter().map(|text| {
                let comment = text.replace(['\n', '*'], " ");
                format!("SELECT {} /* ;{comment}*/ -- ;{comment}\nFROM {}", SqlStr(text), Ident::stored(text))
            }).collect();
            let script = given.join(";\n");
            prop_assert_eq!(&statements(&script), &given);
            let script = format!("DELIMITER $$\n{}\n$$", given.join("\n$$\n"));
            prop_assert_eq!(&statements(&script), &given);
        }

        #[test]
        fn a_string_is_one_token(text: String) {
            prop_assert_eq!(tokens(&SqlStr(&text).to_string()), [format!("'{text}")]);
        }
    }
}
