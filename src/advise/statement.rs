//! Recognizes a statement that only counts.

use crate::script::tokens;

/// The servers cut a longer statement, whose end could be a condition. Source: MySQL source, `TRX_I_S_TRX_QUERY_MAX_LEN`.
const COMPLETE: usize = 900;

/// A table, the column that a statement counts in, and the columns of its WHERE. All names are in lower case.
pub struct Counted {
    pub table: String,
    pub column: String,
    pub key: Vec<String>,
}

/// What a statement counts if it is exactly `UPDATE t SET c = c + n WHERE key = value [AND ..]`, with plus or minus, parentheses,
/// the table before a column, and 0 in place of NULL. None for any other statement, which a person has to judge.
pub fn counted(statement: &str) -> Option<Counted> {
    let tokens = tokens(statement).into_iter().map(|token| token.to_lowercase());
    let tokens: Vec<_> = tokens.filter(|token| !["(", ")"].contains(&token.trim())).collect();
    let is_qualifier = |at: usize| tokens.get(at + 1).is_some_and(|next| next == ".") && name(&tokens[at]).is_some();
    let words = (0..tokens.len()).filter(|&at| tokens[at] != "." && !is_qualifier(at));
    let words: Vec<&str> = words.map(|at| tokens[at].as_str()).collect();
    let ["update", table, "set", column, "=", rest @ ..] = &words[..] else {
        return None;
    };
    // Active Record writes `c = COALESCE(c, 0) + 1`.
    let (["coalesce" | "ifnull", same, ",", "0", rest @ ..] | [same, rest @ ..]) = rest else {
        return None;
    };
    let ["+" | "-", amount, "where", key @ ..] = rest else {
        return None;
    };
    let key = key.split(|word| *word == "and").map(|condition| match condition {
        [key, "=", value] | [key, "=", "-", value] if is_value(value) => name(key),
        _ => None,
    });
    let key = key.collect::<Option<Vec<_>>>()?;
    let (table, column) = (name(table)?, name(column)?);
    let is_amount = *amount == "?" || is_integer(amount);
    let counts = name(same)? == column && is_amount && statement.len() <= COMPLETE;
    counts.then_some(Counted { table, column, key })
}

/// The name that a token is, without its backticks.
fn name(token: &str) -> Option<String> {
    match token.strip_prefix('`') {
        Some(rest) => Some(rest.strip_suffix('`')?.replace("``", "`")),
        None => token.starts_with(|c: char| c.is_alphabetic() || c == '_').then(|| token.into()),
    }
}

fn is_integer(token: &str) -> bool {
    token.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a token is a constant: a number, a string, or a parameter.
fn is_value(token: &str) -> bool {
    token == "?" || token.starts_with('\'') || token.starts_with("0x") || is_integer(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_only_counts_is_recognized_and_any_other_is_left_to_a_person() {
        let count = "UPDATE t SET c = c + 1 WHERE id = 7";
        let long = format!("{count} AND a = '{}'", "x".repeat(COMPLETE));
        let counts = [
            ("UPDATE t SET c = c + 1 WHERE id = 7", "t.c by id"),
            ("update T set C=C-25 where Id=-7", "t.c by id"),
            ("UPDATE t SET c = c + ? WHERE b = ? AND a = 'it''s # x'", "t.c by b, a"),
            ("UPDATE `a t` SET `c` = (`a t`.`c` + 1) WHERE (`a t`.`id` = 7)", "a t.c by id"),
            ("UPDATE `t` SET `t`.`c` = COALESCE(`t`.`c`, 0) + 1 WHERE `t`.`id` = 1", "t.c by id"),
            ("UPDATE s.t SET t.c = s.t.c + 1 WHERE t.id = 0xff /* app */ -- x", "t.c by id"),
            ("UPDATE t SET `a``b` = `a``b` + 1 WHERE `größe` = 7", "t.a`b by größe"),
        ];
        let others = [
            "",
            "UPDATE t SET c = c + 1",
            "UPDATE t SET c = d + 1 WHERE id = 7",
            "UPDATE t SET c = c + 1.5 WHERE id = 7",
            "UPDATE t SET c = COALESCE(c, 5) + 1 WHERE id = 7",
            "UPDATE t SET c = (c + 1) * 2 WHERE id = 7",
            "UPDATE t SET c = c + 1, d = NOW() WHERE id = 7",
            "UPDATE t SET c = c - 2 WHERE id = 7 AND c >= 2",
            "UPDATE t SET c = c + 1 WHERE id = 7 OR id = 8",
            "UPDATE t SET c = c + 1 WHERE id = planted()",
            "UPDATE t SET c = c + 1 WHERE id = \"other\"",
            "UPDATE t SET c = c + 1 WHERE id = 7 LIMIT 1",
            "UPDATE t SET c = c + 1 WHERE id = 7 /*!80000 AND c < 9 */",
            "INSERT INTO t VALUES (7, 1) ON DUPLICATE KEY UPDATE c = c + 1",
            &format!("{count}; DROP TABLE t"),
            &long,
        ];
        for (statement, expected) in counts.into_iter().chain(others.map(|other| (other, ""))) {
            let found =
                counted(statement).map(|found| format!("{}.{} by {}", found.table, found.column, found.key.join(", ")));
            assert_eq!(found.unwrap_or_default(), expected, "{statement}");
        }
    }
}
