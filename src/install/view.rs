//! The query of a view as text. Pure.
//!
//! A server stores the query of a view in a form of its own: with qualified names, `count(0)` for `COUNT(*)`, and on MySQL with
//! each operation in parentheses. Two queries are compared in one normal form of both texts. This creates no view, works on a
//! read-only server, and executes nothing that a view of the schema calls.

use std::collections::BTreeMap;

use crate::script::{Dialect, tokens};

/// The operations whose operands are in parentheses on one server and without on another, from those that bind least.
/// Source: MySQL manual, "Operator Precedence".
const OPERATORS: [&[&str]; 5] = [
    &["or"],
    &["and"],
    &["=", "<>", "<", ">", "<=", ">="],
    &["+", "-"],
    &["*", "/"],
];

/// The operators that are each other's negation.
const NEGATED: [(&str, &str); 3] = [("=", "<>"), ("<", ">="), (">", "<=")];

/// The words of a query that are no part of an expression.
const KEYWORDS: [&str; 12] = [
    "select", "from", "where", "group", "by", "union", "all", "as", ",", "having", "order", "limit",
];

/// The database and the table whose names a server adds to the columns of a query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Qualifiers<'a> {
    pub schema: &'a str,
    pub table: &'a str,
    /// Whether the server ignores the case of their names.
    pub ignores_case: bool,
}

impl Qualifiers<'_> {
    fn is(&self, one: &str, other: &str) -> bool {
        one == other || self.ignores_case && one.to_lowercase() == other.to_lowercase()
    }
}

/// The query of a view, rendered or as a server stores it, in a normal form. A name that is qualified by anything but the database and
/// the table keeps its qualifiers.
pub(super) fn normal(query: &str, of: Qualifiers<'_>, dialect: Dialect) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut rest = tokens(query, dialect).into_iter().peekable();
    while let Some(token) = rest.next() {
        if !is_word(&token) {
            match words.last_mut() {
                // Signs are tokens of one character.
                Some(sign) if ["<=", ">=", "<>"].contains(&format!("{sign}{token}").as_str()) => {
                    sign.push_str(&token)
                }
                _ => words.push(token),
            }
            continue;
        }
        let mut path = vec![token];
        while rest.next_if(|next| next == ".").is_some() {
            path.extend(rest.next());
        }
        let names: Vec<String> = path
            .iter()
            .map(|part| unquoted(part).unwrap_or_else(|| part.clone()))
            .collect();
        let is_table = words.last().is_some_and(|word| word == "from" || word == "join");
        let own = match &names[..] {
            [schema, _] if is_table => of.is(schema, of.schema),
            [schema, _, _] => of.is(schema, of.schema),
            _ => false,
        };
        let names = &names[usize::from(own)..];
        words.push(match names {
            [table, column] if !is_table && of.is(table, of.table) => bare(column),
            names => names.iter().map(|name| bare(name)).collect::<Vec<_>>().join("."),
        });
        if is_table {
            // The servers omit AS before the alias of a table.
            rest.next_if(|next| next.eq_ignore_ascii_case("as"));
        }
    }
    let mut parser = Parser {
        words: &words,
        at: 0,
        depth: 0,
    };
    let mut text = parser.query();
    // What is not a query in the form of this parser stays as it is.
    text.extend(words[parser.at..].iter().cloned());
    text.join(" ")
}

/// Whether a token is a name, a keyword or a number.
fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c == '`' || c == '_' || c.is_alphanumeric())
}

/// The name in backticks.
fn unquoted(token: &str) -> Option<String> {
    let name = token.strip_prefix('`')?.strip_suffix('`')?;
    Some(name.replace("``", "`"))
}

/// A name that is a word as a script writes it without quotes. Another one keeps a quote, so that it is not one of the signs.
fn bare(name: &str) -> String {
    let name = name.to_lowercase();
    match name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        true => name,
        false => format!("`{name}"),
    }
}

/// An expression.
enum Expression {
    /// A name, a literal, a call or a subquery.
    Text(String),
    /// The operator and its operands.
    Operation(String, Vec<Expression>),
}

impl Expression {
    /// With parentheses around each operation.
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Operation(operator, operands) => {
                let operands: Vec<_> = operands.iter().map(Self::text).collect();
                format!("({})", operands.join(&format!(" {operator} ")))
            }
        }
    }

    /// The servers store a negation of comparisons as other comparisons.
    fn negated(self) -> Self {
        match self {
            Self::Operation(operator, operands) => {
                let other = NEGATED.iter().find_map(|(one, other)| match operator.as_str() {
                    operator if operator == *one => Some(*other),
                    operator if operator == *other => Some(*one),
                    _ => None,
                });
                match (other, operator.as_str()) {
                    (Some(other), _) => Self::Operation(other.to_owned(), operands),
                    (None, "and" | "or") => {
                        let other = if operator == "and" { "or" } else { "and" };
                        let operands = operands.into_iter().map(Self::negated).collect();
                        Self::Operation(other.to_owned(), operands)
                    }
                    _ => Self::Text(format!("not {}", Self::Operation(operator, operands).text())),
                }
            }
            Self::Text(text) => Self::Text(format!("not {text}")),
        }
    }
}

/// The depth to which an expression is read, in levels. A view that is not of a package can be deeper than the stack of this program.
const DEPTH: usize = 400;

/// Reads the words of a query up to the parenthesis that ends it.
struct Parser<'a> {
    words: &'a [String],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn word(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    fn next_if(&mut self, word: &str) -> bool {
        let is = self.word() == Some(word);
        self.at += usize::from(is);
        is
    }

    /// A query, or the arguments of a call.
    fn query(&mut self) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        while let Some(word) = self.word().filter(|word| *word != ")") {
            if KEYWORDS.contains(&word) {
                texts.push(word.to_owned());
                self.at += 1;
                continue;
            }
            let text = self.expression(0).text();
            match &texts[..] {
                // The servers add an alias to a column.
                [.., before, name, keyword]
                    if keyword == "as" && *name == text && [",", "select"].contains(&before.as_str()) =>
                {
                    texts.pop();
                }
                _ => texts.push(text),
            }
        }
        texts
    }

    /// An expression of operators from a level on.
    fn expression(&mut self, level: usize) -> Expression {
        self.depth += 1;
        let expression = if self.depth > DEPTH {
            let word = self.words.get(self.at).cloned();
            self.at += usize::from(word.is_some());
            Expression::Text(word.unwrap_or_default())
        } else {
            self.operation(level)
        };
        self.depth -= 1;
        expression
    }

    fn operation(&mut self, level: usize) -> Expression {
        let Some(operators) = OPERATORS.get(level) else {
            return self.operand();
        };
        // NOT binds less than a comparison, and closer than AND.
        if level == 2 && self.next_if("not") {
            return self.expression(level).negated();
        }
        let mut left = self.expression(level + 1);
        while let Some(operator) = self.word().filter(|word| operators.contains(word)) {
            let operator = operator.to_owned();
            self.at += 1;
            let right = self.expression(level + 1);
            let logical = level < 2;
            let flat = |one| match one {
                Expression::Operation(other, operands) if logical && other == operator => operands,
                one => vec![one],
            };
            let operands = [flat(left), flat(right)].into_iter().flatten().collect();
            left = Expression::Operation(operator, operands);
        }
        left
    }

    fn operand(&mut self) -> Expression {
        let Some(word) = self.word().filter(|word| *word != ")").map(str::to_owned) else {
            return Expression::Text(String::new());
        };
        self.at += 1;
        if word == "(" {
            if self.word() == Some("select") {
                let query = self.query().join(" ");
                self.next_if(")");
                return Expression::Text(format!("({query})"));
            }
            let inner = self.expression(0);
            if self.next_if(")") {
                return inner;
            }
            // Not an operation in parentheses.
            let rest = self.query().join(" ");
            self.next_if(")");
            return Expression::Text(format!("({} {rest})", inner.text()));
        }
        if word == "-" {
            return Expression::Text(format!("-{}", self.expression(OPERATORS.len()).text()));
        }
        if is_word(&word) && self.next_if("(") {
            let mut arguments = self.query().join(" ");
            self.next_if(")");
            if word == "count" && arguments == "0" {
                arguments = "*".into();
            }
            return Expression::Text(format!("{word}({arguments})"));
        }
        Expression::Text(word)
    }
}

/// The values of a view that has nothing but values, as the view of a package, by the names of its columns. None is NULL. None if
/// the query is another one.
pub(super) fn values(query: &str, dialect: Dialect) -> Option<BTreeMap<String, Option<String>>> {
    let tokens = tokens(query, dialect);
    let (select, list) = tokens.split_first()?;
    if !select.eq_ignore_ascii_case("select") {
        return None;
    }
    let value = |item: &[String]| match item {
        [column @ .., keyword, name] if keyword.eq_ignore_ascii_case("as") => {
            let value = match column {
                [value] => value,
                [cast, open, value, kind @ .., close] => {
                    let kind = kind.join(" ");
                    let is_text = kind.eq_ignore_ascii_case("as char charset utf8mb4")
                        || kind.eq_ignore_ascii_case("as char ( 288 ) charset utf8mb4");
                    let is_cast = cast.eq_ignore_ascii_case("cast") && open == "(" && close == ")";
                    (is_text && is_cast).then_some(value)?
                }
                _ => return None,
            };
            let number = value.bytes().all(|digit| digit.is_ascii_digit());
            let value = match value.strip_prefix('\'') {
                Some(text) => Some(text.to_owned()),
                None if number => Some(value.clone()),
                None if value.eq_ignore_ascii_case("null") => None,
                None => return None,
            };
            Some((
                unquoted(name).unwrap_or_else(|| name.clone()).to_lowercase(),
                value,
            ))
        }
        _ => None,
    };
    list.split(|token| token == ",").map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: Dialect = Dialect {
        mariadb: false,
        version: 90_704,
    };

    fn of(query: &str) -> String {
        let of = Qualifiers {
            schema: "d",
            table: "t",
            ignores_case: false,
        };
        normal(query, of, MYSQL)
    }

    #[test]
    fn the_query_of_a_view_is_the_one_that_the_servers_store() {
        let rendered = "SELECT `b``c`, COUNT(IF(id > 0, 1, NULL)) AS n, 'it''s' AS s,\n -- no\n MIN(id) <> 1 OR MAX(id) <> COUNT(*) AS i\n  FROM `t`\n GROUP BY `b``c`";
        let mysql = r"select `d`.`t`.`b``c` AS `b``c`,count(if((`d`.`t`.`id` > 0),1,NULL)) AS `n`,'it\'s' AS `s`,((min(`d`.`t`.`id`) <> 1) or (max(`d`.`t`.`id`) <> count(0))) AS `i` from `d`.`t` group by `d`.`t`.`b``c`";
        let mariadb = r"select `d`.`t`.`b``c` AS `b``c`,count(if(`d`.`t`.`id` > 0,1,NULL)) AS `n`,'it\'s' AS `s`,min(`d`.`t`.`id`) <> 1 or max(`d`.`t`.`id`) <> count(0) AS `i` from `d`.`t` group by `d`.`t`.`b``c`";
        assert_eq!(of(rendered), of(mysql));
        assert_eq!(of(rendered), of(mariadb));
        for (text, other) in [
            ("`d`.`t`", "`e`.`t`"),
            ("`d`.`t`", "`d`.`u`"),
            ("group by", "where 1 group by"),
            ("min(`d`.`t`.`id`)", "min((2 * `d`.`t`.`id`))"),
            ("<> 1) or (max", "<> (1 or max"),
            ("'it\\'s'", "'its'"),
            ("`i`", "`j`"),
            ("count(0)", "count(1)"),
            ("AS `b``c`", "AS `b`"),
            ("`d`.`t`.`id` > 0", "`d`.`t`.`id` > '0'"),
        ] {
            let changed = mysql.replacen(text, other, 1);
            assert_ne!(changed, mysql, "{text}");
            assert_ne!(of(rendered), of(&changed), "{other}");
        }
    }

    #[test]
    fn a_query_with_subqueries_is_the_one_that_the_servers_store() {
        let rendered = "SELECT 1 AS a, parent.`id` AS b, (SELECT COUNT(*) FROM `t` AS slots WHERE slots.a = 1 AND slots.b = parent.`id`) AS n,
            COALESCE(CAST(COALESCE(parent.h, 0) + COALESCE((SELECT SUM(slots.c) FROM `t` AS slots WHERE slots.a = 1), 0) AS SIGNED), 0) AS total
            FROM `p` AS parent UNION ALL SELECT a, b, COUNT(*) AS n, 0 AS total FROM `t` WHERE NOT (a = 1 AND b = -5) AND NOT (a = 2) GROUP BY a";
        let mysql = "select 1 AS `a`,`parent`.`id` AS `b`,(select count(0) from `d`.`t` `slots` where ((`slots`.`a` = 1) and (`slots`.`b` = `parent`.`id`))) AS `n`,coalesce(cast((coalesce(`parent`.`h`,0) + coalesce((select sum(`slots`.`c`) from `d`.`t` `slots` where (`slots`.`a` = 1)),0)) as signed),0) AS `total` from `d`.`p` `parent` union all select `d`.`t`.`a` AS `a`,`d`.`t`.`b` AS `b`,count(0) AS `n`,0 AS `total` from `d`.`t` where (((`d`.`t`.`a` <> 1) or (`d`.`t`.`b` <> -(5))) and (`d`.`t`.`a` <> 2)) group by `d`.`t`.`a`";
        let mariadb = "select 1 AS `a`,`parent`.`id` AS `b`,(select count(0) from `d`.`t` `slots` where `slots`.`a` = 1 and `slots`.`b` = `parent`.`id`) AS `n`,coalesce(cast(coalesce(`parent`.`h`,0) + coalesce((select sum(`slots`.`c`) from `d`.`t` `slots` where `slots`.`a` = 1),0) as signed),0) AS `total` from `d`.`p` `parent` union all select `d`.`t`.`a` AS `a`,`d`.`t`.`b` AS `b`,count(0) AS `n`,0 AS `total` from `d`.`t` where (`d`.`t`.`a` <> 1 or `d`.`t`.`b` <> -5) and `d`.`t`.`a` <> 2 group by `d`.`t`.`a`";
        assert_eq!(of(rendered), of(mysql));
        assert_eq!(of(rendered), of(mariadb));
        for (text, other) in [
            ("`d`.`p` `parent`", "`e`.`p` `parent`"),
            ("`d`.`t` `slots`", "`d`.`p` `slots`"),
            ("union all", "union"),
            ("or", "and"),
            (" <> 2", " <> 3"),
            ("`parent`.`h`,0) + ", "`parent`.`h`,0) - "),
            (
                "(`d`.`t`.`a` <> 1 or `d`.`t`.`b` <> -5)",
                "`d`.`t`.`a` <> 1 or `d`.`t`.`b` <> -5",
            ),
            ("`slots`.`b`", "`parent`.`b`"),
        ] {
            let changed = mariadb.replacen(text, other, 1);
            assert_ne!(changed, mariadb, "{text}");
            assert_ne!(of(rendered), of(&changed), "{other}");
        }
        // Any text ends.
        for text in [
            "",
            ")",
            "select (",
            "select ((a",
            "not not",
            "a ) b",
            "select - - (",
            "in (1,2) between",
        ] {
            of(text);
        }
        for text in ["(", "f(", "not ", "- ", "(select "] {
            of(&text.repeat(10_000));
        }
    }

    #[test]
    fn the_values_of_a_view_are_read_from_its_text() {
        let found =
            values(r"select '0.1\'\\' AS `version`,5 AS `n`,NULL AS `Definer`", MYSQL).expect("values");
        assert_eq!(found["version"].as_deref(), Some(r"0.1'\"));
        assert_eq!(found["n"].as_deref(), Some("5"));
        assert_eq!(found["definer"], None);
        let typed = "select cast('0.1' as char charset utf8mb4) AS `version`,cast(NULL as char(288) charset utf8mb4) AS `definer`";
        let found = values(typed, MYSQL).expect("values");
        assert_eq!(found["version"].as_deref(), Some("0.1"));
        assert_eq!(found["definer"], None);
        for query in [
            "select `f`() AS `a`",
            "select 1 AS `a` from `t`",
            "select (1) AS `a`",
            "select cast(`f`() as char charset utf8mb4) AS `a`",
            "select cast('a' as char charset latin1) AS `a`",
            "select `cast`('a' as char charset utf8mb4) AS `a`",
            "",
            "select",
            "with x as (select 1)",
        ] {
            assert_eq!(values(query, MYSQL), None, "{query}");
        }
    }
}
