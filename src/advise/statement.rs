//! Reads what a statement counts, as applications and the libraries of Django, Rails, Laravel, Hibernate, Prisma and others
//! write it. Pure.
//!
//! Not by a parser of SQL: a server returns the first 1,024 characters of a statement, with variables of routines and
//! placeholders. Source: MySQL manual, "The INFORMATION_SCHEMA INNODB_TRX Table".

use crate::script::{self, is_space, pieces};

/// The server truncates a statement to this length, in bytes. Its condition can be incomplete then.
const STATEMENT_MAX: usize = 1_024;

/// What a statement does with the columns of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// The columns that it increments or decrements.
    pub columns: Vec<String>,
    /// Whether it decrements a column on the condition that the column has enough.
    pub takes: bool,
    /// Whether it returns the new number with LAST_INSERT_ID, as a sequence does.
    pub sequence: bool,
    /// The condition after WHERE, without qualifiers. None if there is none, or if it has placeholders.
    pub condition: Option<String>,
}

/// A word, a sign or a string of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    /// A name without its quotes.
    text: String,
    /// Whether the name was in quotes.
    quoted: bool,
    /// The number of its piece.
    piece: usize,
}

impl Word {
    fn is(&self, text: &str) -> bool {
        !self.quoted && self.text.eq_ignore_ascii_case(text)
    }

    fn is_name(&self) -> bool {
        self.quoted || self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// The words of the pieces of a statement.
fn words(pieces: &[&str]) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if is_space(piece) {
            continue;
        }
        // With the SQL mode ANSI_QUOTES, double quotes are around names.
        let quote = piece.chars().next().filter(|c| ['`', '"'].contains(c));
        let text = match quote {
            Some(quote) => piece.trim_matches(quote).to_owned(),
            None => (*piece).to_owned(),
        };
        let doubled = quote == Some('`') && at > 0 && pieces[at - 1].starts_with('`');
        match words.last_mut().filter(|_| doubled) {
            Some(name) => name.text = format!("{}`{text}", name.text),
            None => words.push(Word {
                text,
                quoted: quote.is_some(),
                piece: at,
            }),
        }
    }
    words
}

/// What a statement counts. None if it counts nothing.
pub fn counts(statement: &str) -> Option<Counts> {
    let pieces: Vec<&str> = pieces(statement).collect();
    let words = words(&pieces);
    let is = |at: usize, text: &str| words.get(at).is_some_and(|word| word.is(text));
    let (begin, update) = if is(0, "UPDATE") {
        (top(&words, 0, &["SET"])? + 1, true)
    } else if is(0, "INSERT") || is(0, "WITH") {
        let of = |at: &usize| {
            let words = ["ON", "DUPLICATE", "KEY", "UPDATE"];
            words.iter().enumerate().all(|(n, word)| is(at + n, word))
        };
        ((0..words.len()).find(of)? + 4, false)
    } else {
        return None;
    };
    let end = top(&words, begin, &["WHERE", "ORDER", "LIMIT", "RETURNING", ";"]).unwrap_or(words.len());
    let condition = words
        .get(end)
        .filter(|word| update && word.is("WHERE"))
        .map(|_| &words[end + 1..]);
    let mut counts = Counts::default();
    for assignment in split(&words[begin..end], &[","]) {
        let Some(equals) = assignment.iter().position(|word| word.is("=")) else {
            continue;
        };
        let (target, value) = (&assignment[..equals], &assignment[equals + 1..]);
        let Some(name) = path(target).map(|word| word.text.clone()) else {
            continue;
        };
        let Some(found) = change(&name, value) else {
            continue;
        };
        counts.sequence |= found.sequence;
        counts.takes |=
            found.less && (found.bounded || condition.is_some_and(|words| compared(&name, words)));
        counts.columns.push(name);
    }
    if counts.columns.is_empty() {
        return None;
    }
    // A string without an end takes the space, too.
    let ends = script::pieces(&format!("{statement} "))
        .last()
        .is_some_and(is_space);
    // The server truncates the statement before it replaces a character of 4 bytes by a question mark.
    let length = statement.len() + 3 * statement.matches('?').count();
    if let Some(words) = condition.filter(|_| ends && length < STATEMENT_MAX) {
        let until = top(words, 0, &["ORDER", "LIMIT", "RETURNING", ";"]).unwrap_or(words.len());
        // Of a statement that is truncated or no SQL, the rest can have another meaning than these words in the statement.
        let same = |condition: &String| {
            let pieces: Vec<&str> = script::pieces(condition).collect();
            text(&self::words(&pieces), &pieces).as_ref() == Some(condition)
        };
        counts.condition = text(&words[..until], &pieces).filter(same);
    }
    Some(counts)
}

/// Whether a condition has nothing but comparisons of these columns with literals, joined by AND. Only such a condition of another
/// session may be executed: a function, a variable or a subquery would run with the privileges of this account.
pub fn compares(condition: &str, columns: &[String]) -> bool {
    let pieces: Vec<&str> = pieces(condition).collect();
    compares_all(&words(&pieces), &|name: &Word| {
        name.is_name()
            && columns
                .iter()
                .any(|column| column.eq_ignore_ascii_case(&name.text))
    })
}

fn compares_all(words: &[Word], is_column: &impl Fn(&Word) -> bool) -> bool {
    let words = bare(words);
    let parts = split(words, &["AND"]);
    if parts.len() > 1 {
        return parts.into_iter().all(|part| compares_all(part, is_column));
    }
    let sign = |word: &Word| ["=", "<", ">", "!"].iter().any(|sign| word.is(sign));
    match words {
        [name, is, null] if is.is("IS") && null.is("NULL") => is_column(name),
        [name, is, not, null] if is.is("IS") && not.is("NOT") && null.is("NULL") => is_column(name),
        [name, is_in, list @ ..] if is_in.is("IN") && list.first().is_some_and(|word| word.is("(")) => {
            is_column(name)
                && bare(list).len() < list.len()
                && split(bare(list), &[","]).into_iter().all(is_literal)
        }
        [name, first, rest @ ..] if is_column(name) && sign(first) => is_literal(match rest {
            [second, rest @ ..] if sign(second) => rest,
            rest => rest,
        }),
        [rest @ .., last, name] if is_column(name) && sign(last) => is_literal(match rest {
            [rest @ .., second] if sign(second) => rest,
            rest => rest,
        }),
        _ => false,
    }
}

/// Whether words are a number or a string.
fn is_literal(words: &[Word]) -> bool {
    let digits = |word: &Word| word.text.bytes().all(|c| c.is_ascii_digit());
    let hex = |word: &Word| {
        let digits = word.text.strip_prefix("0x");
        digits.is_some_and(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()))
    };
    let string = |word: &Word| {
        !word.quoted && word.text.len() > 1 && word.text.starts_with('\'') && word.text.ends_with('\'')
    };
    let number = match words {
        [sign, number @ ..] if sign.is("-") || sign.is("+") => number,
        number => number,
    };
    match number {
        [] => false,
        [one] if hex(one) => true,
        number
            if number
                .iter()
                .all(|word| !word.quoted && (digits(word) || word.is("."))) =>
        {
            true
        }
        // A string with a doubled quote has several pieces.
        _ => words.iter().all(string),
    }
}

/// The schema, if it is given, and the table of `UPDATE t`, `INSERT INTO t` or `REPLACE INTO t`.
pub fn table(statement: &str) -> Option<(Option<String>, String)> {
    let pieces: Vec<&str> = pieces(statement).collect();
    let words = words(&pieces);
    let verbs = ["UPDATE", "INSERT", "REPLACE"];
    let options = ["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE", "INTO"];
    let rest = match words.split_first() {
        Some((verb, rest)) if verbs.iter().any(|one| verb.is(one)) => rest,
        _ => return None,
    };
    let skipped = |word: &&Word| options.iter().any(|option| word.is(option));
    let names = &rest[rest.iter().take_while(skipped).count()..];
    let name = |at: usize| {
        names
            .get(at)
            .filter(|word| word.is_name())
            .map(|word| word.text.clone())
    };
    if names.get(1).is_some_and(|word| word.is(".")) {
        Some((Some(name(0)?), name(2)?))
    } else {
        Some((None, name(0)?))
    }
}

/// The position of the first of these words outside parentheses.
fn top(words: &[Word], from: usize, of: &[&str]) -> Option<usize> {
    let mut depth = 0;
    (from..words.len()).find(|&at| {
        let word = &words[at];
        depth += i32::from(word.is("(")) - i32::from(word.is(")"));
        depth == 0 && of.iter().any(|one| word.is(one))
    })
}

/// The parts of words between separators outside parentheses.
fn split<'a>(words: &'a [Word], separators: &[&str]) -> Vec<&'a [Word]> {
    let mut parts = Vec::new();
    let mut rest = words;
    while let Some(at) = top(rest, 0, separators) {
        parts.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    parts.push(rest);
    parts
}

/// Words without the parentheses around all of them.
fn bare(words: &[Word]) -> &[Word] {
    let around =
        words.first().is_some_and(|word| word.is("(")) && top(words, 0, &[")"]) == Some(words.len() - 1);
    if around {
        bare(&words[1..words.len() - 1])
    } else {
        words
    }
}

/// The last name of `name`, `table.name` or `schema.table.name`.
fn path(words: &[Word]) -> Option<&Word> {
    let is_path = words.len() % 2 == 1
        && words.iter().enumerate().all(|(at, word)| match at % 2 {
            0 => word.is_name(),
            _ => word.is("."),
        });
    words.last().filter(|_| is_path)
}

/// The arguments of a call of one of these functions.
fn call<'a>(words: &'a [Word], of: &[&str]) -> Option<Vec<&'a [Word]>> {
    let [name, parameters @ ..] = words else {
        return None;
    };
    let inside = bare(parameters);
    let whole = of.iter().any(|one| name.is(one)) && inside.len() < parameters.len();
    whole.then(|| split(inside, &[","]))
}

/// The column of `c`, `COALESCE(c, 0)` or `IFNULL(c, 0)`.
fn column(words: &[Word]) -> Option<&Word> {
    let words = bare(words);
    match call(words, &["COALESCE", "IFNULL", "NVL"]).as_deref() {
        Some([column, zero]) if matches!(bare(zero), [zero] if zero.is("0")) => self::column(column),
        Some(_) => None,
        None => path(words),
    }
}

/// How an expression changes a column.
#[derive(Debug, Clone, Copy, Default)]
struct Change {
    less: bool,
    /// Whether the result is never less than 0.
    bounded: bool,
    sequence: bool,
}

/// How an expression changes a column: `c + 1`, `1 + c`, `COALESCE(t.c, 0) - 1`, `GREATEST(c - 1, 0)`,
/// `LAST_INSERT_ID(c + 1)`. None if its value is not the column plus or minus something else.
fn change(name: &str, words: &[Word]) -> Option<Change> {
    let words = bare(words);
    if let Some([inside]) = call(words, &["LAST_INSERT_ID"]).as_deref() {
        return change(name, inside).map(|found| Change {
            sequence: true,
            ..found
        });
    }
    if let Some([one, other]) = call(words, &["GREATEST"]).as_deref() {
        let zero = |words: &[Word]| matches!(bare(words), [zero] if zero.is("0"));
        let inside = if zero(one) { other } else { one };
        return change(name, inside)
            .filter(|_| zero(one) || zero(other))
            .map(|found| Change {
                bounded: true,
                ..found
            });
    }
    let (mut own, mut more, mut less) = (0, 0, 0);
    for (negative, term) in terms(words) {
        if !negative && column(term).is_some_and(|word| word.text.eq_ignore_ascii_case(name)) && own == 0 {
            own += 1;
            continue;
        }
        if mentions(name, term) {
            return None;
        }
        *(if negative { &mut less } else { &mut more }) += 1;
    }
    (own == 1 && more + less > 0).then_some(Change {
        less: more == 0,
        ..Change::default()
    })
}

/// The terms of a sum, each with whether it is subtracted.
fn terms(words: &[Word]) -> Vec<(bool, &[Word])> {
    let mut terms: Vec<(bool, &[Word])> = Vec::new();
    let (mut negative, mut rest) = (false, words);
    while let Some(at) = top(rest, 0, &["+", "-"]) {
        if at > 0 {
            terms.push((negative, &rest[..at]));
            negative = false;
        }
        negative ^= rest[at].is("-");
        rest = &rest[at + 1..];
    }
    terms.push((negative, rest));
    terms
}

/// Whether words contain a column of this row with this name. `VALUES(c)` and `new.c` of an upsert are the values of the
/// inserted row.
fn mentions(name: &str, words: &[Word]) -> bool {
    (0..words.len()).any(|at| {
        let word = &words[at];
        let before = |n: usize, text: &str| at >= n && words[at - n].is(text);
        let inserted = before(1, "(") && (before(2, "VALUES") || before(2, "VALUE")) || before(1, ".");
        word.is_name() && word.text.eq_ignore_ascii_case(name) && !inserted
    })
}

/// Whether a condition compares the column with the least value that it needs: `c >= ?`, `? <= c`, `c > 0`, `c <> 0`.
fn compared(name: &str, words: &[Word]) -> bool {
    let is = |at: usize, text: &str| words.get(at).is_some_and(|word| word.is(text));
    (0..words.len()).any(|at| {
        let own = words[at].is_name() && words[at].text.eq_ignore_ascii_case(name);
        let not = is(at + 1, "<") && is(at + 2, ">") || is(at + 1, "!");
        // The comparison before a qualified name is before its qualifiers.
        let mut first = at;
        while first >= 2 && is(first - 1, ".") {
            first -= 2;
        }
        let less = |n: usize| first >= n && is(first - n, "<");
        let before = less(1) || less(2) && is(first - 1, "=");
        own && (is(at + 1, ">") || not || before)
    })
}

/// The text of words, without the qualifiers of names. None if it has placeholders, or ends the statement.
fn text(words: &[Word], pieces: &[&str]) -> Option<String> {
    let (first, last) = (words.first()?, words.last()?);
    let qualifies = |at: usize| words.get(at + 1).is_some_and(|next| next.is(".")) && words[at].is_name();
    let mut text = String::new();
    let mut next = first.piece;
    for (at, word) in words.iter().enumerate() {
        if word.is("?") || word.is(";") {
            return None;
        }
        let between = &pieces[next..word.piece];
        if between.iter().any(|piece| is_space(piece)) && !text.is_empty() && !text.ends_with(' ') {
            text.push(' ');
        }
        // A name with a doubled quote has several pieces.
        let until = words.get(at + 1).map_or(last.piece + 1, |word| word.piece);
        let own: String = pieces[word.piece..until]
            .iter()
            .filter(|piece| !is_space(piece))
            .copied()
            .collect();
        next = (word.piece..until)
            .find(|&at| is_space(pieces[at]))
            .unwrap_or(until);
        let dot = word.is(".") && at > 0 && qualifies(at - 1);
        if !qualifies(at) && !dot {
            text += &own;
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{compares, counts, table};

    /// Statements as libraries write them, and the columns that they count.
    const COUNTING: [(&str, &str); 38] = [
        ("UPDATE t SET c = c + 1 WHERE id = 1", "c"),
        (
            "update `shop`.`pages` set `hits`=`hits`+1,seen=NOW() where id=?",
            "hits",
        ),
        ("UPDATE pages p SET seen = NOW(), p.hits = p.hits + 3", "hits"),
        ("UPDATE t SET c = 1 + c", "c"),
        (
            "INSERT INTO t VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1",
            "n",
        ),
        // Django: F(), and a list of fields
        (
            "UPDATE `pages` SET `hits` = (`pages`.`hits` + 1) WHERE `pages`.`id` = 7",
            "hits",
        ),
        (
            "UPDATE `pages` SET `hits` = (COALESCE(`pages`.`hits`, 0) + 1) WHERE `pages`.`id` = 7",
            "hits",
        ),
        (
            "UPDATE `pages` SET `stock` = (`pages`.`stock` - 2) WHERE (`pages`.`id` = 7 AND `pages`.`stock` >= 2)",
            "stock",
        ),
        // Rails: increment_counter, update_counters with a time stamp, upsert_all, update_all
        (
            "UPDATE `pages` SET `pages`.`hits` = COALESCE(`pages`.`hits`, 0) + 1 WHERE `pages`.`id` = 7",
            "hits",
        ),
        (
            "UPDATE `pages` SET `pages`.`hits` = COALESCE(`pages`.`hits`, 0) - 1, `pages`.`updated_at` = '2026-11-23 10:20:30' WHERE `pages`.`id` = 7 /*application:Shop*/",
            "hits",
        ),
        (
            "INSERT INTO `pages` (`id`,`hits`) VALUES (7, 1) ON DUPLICATE KEY UPDATE `hits`=`pages`.`hits`+VALUES(`hits`)",
            "hits",
        ),
        (
            "UPDATE `pages` SET hits = hits + 1 WHERE `pages`.`id` IN (7)",
            "hits",
        ),
        // Laravel
        (
            "update `pages` set `hits` = `hits` + 1, `pages`.`updated_at` = '2026-11-23 10:20:30' where `id` = 7",
            "hits",
        ),
        (
            "insert into `pages` (`id`, `hits`) values (7, 1) on duplicate key update `hits` = `hits` + values(`hits`)",
            "hits",
        ),
        // Hibernate, JPQL and native
        ("update Page p1_0 set hits=(p1_0.hits+1) where p1_0.id=7", "hits"),
        (
            "/* update Page p set p.hits = p.hits + 1 */ update pages set hits=(hits+1) where id=?",
            "hits",
        ),
        // Prisma, TypeORM, Sequelize, Knex
        (
            "UPDATE `shop`.`Page` SET `hits` = (`shop`.`Page`.`hits` + ?) WHERE (`shop`.`Page`.`id` = ? AND 1=1)",
            "hits",
        ),
        ("UPDATE `page` SET `hits` = hits + 1 WHERE `id` IN (7)", "hits"),
        (
            "UPDATE `page` SET `hits` = `hits` + 1, `updatedAt` = CURRENT_TIMESTAMP WHERE `id` = 7",
            "hits",
        ),
        (
            "UPDATE `Pages` SET `hits`=`hits`+ 1,`updatedAt`='2026-11-23 10:20:30' WHERE `id` = 7",
            "hits",
        ),
        // SQLAlchemy, Doctrine, GORM, Ecto
        (
            "UPDATE pages SET hits=(pages.hits + 1) WHERE pages.id = 7",
            "hits",
        ),
        (
            "UPDATE pages SET hits = hits + 1, version = version + 1 WHERE id = 7 AND version = 3",
            "hits version",
        ),
        (
            "UPDATE `pages` SET `hits`=hits + 1,`updated_at`='2026-11-23 10:20:30.123' WHERE id = 7 AND `pages`.`deleted_at` IS NULL",
            "hits",
        ),
        (
            "UPDATE `pages` AS p0 SET p0.`hits` = p0.`hits` + 1 WHERE (p0.`id` = 7)",
            "hits",
        ),
        // By hand
        ("UPDATE t SET hits = (t.hits + 1)", "hits"),
        (
            "-- page view\nUPDATE pages SET hits = IFNULL(hits, 0) + 1 WHERE id = 7 LIMIT 1",
            "hits",
        ),
        (
            "# page view\nUPDATE LOW_PRIORITY IGNORE pages SET hits = hits - -1 WHERE id = 7",
            "hits",
        ),
        (
            "UPDATE pages SET `page hits` = `page hits` + 1 WHERE id = 7",
            "page hits",
        ),
        ("UPDATE pages SET `a``b` = `a``b` + 1 WHERE id = 7", "a`b"),
        ("UPDATE pages SET \"hits\" = \"hits\" + 1 WHERE id = 7", "hits"),
        (
            "UPDATE pages JOIN sites ON sites.id = pages.site SET pages.hits = pages.hits + 1 WHERE pages.id = 7",
            "hits",
        ),
        (
            "UPDATE pages SET title = 'a = a + 1, where', hits = hits + 1 WHERE id = 7",
            "hits",
        ),
        (
            "UPDATE pages SET hits = hits + (SELECT n FROM steps) WHERE id = 7",
            "hits",
        ),
        (
            "INSERT INTO pages (id, hits) VALUES (7, 1) AS new ON DUPLICATE KEY UPDATE hits = pages.hits + new.hits",
            "hits",
        ),
        (
            "INSERT INTO pages SET id = 7, hits = 1 ON DUPLICATE KEY UPDATE hits = hits + VALUE(hits), seen = NOW()",
            "hits",
        ),
        ("update pages set hits=hits+1 where k= NAME_CONST('a',1)", "hits"),
        (
            "UPDATE pages SET likes = likes + 1, hits = hits + 1 WHERE id = 7",
            "likes hits",
        ),
        ("UPDATE stock SET qty = qty - 1 WHERE id = 42", "qty"),
    ];

    #[test]
    fn counting_statements_are_read() {
        for (statement, columns) in COUNTING {
            let found = counts(statement).map(|found| found.columns.join(" "));
            assert_eq!(found.as_deref(), Some(columns), "{statement}");
        }
    }

    #[test]
    fn other_statements_count_nothing() {
        for statement in [
            "UPDATE t SET c = d + 1",
            "UPDATE t SET c = 5 WHERE c = 4",
            "UPDATE t SET c = c * 2 + 1",
            "UPDATE t SET c = c + c",
            "UPDATE t SET c = 1 - c",
            "UPDATE t SET c = CONCAT(c, '+ 1')",
            "UPDATE t SET d = 'c = c + 1'",
            "SELECT c = c + 1 FROM t",
            "SELECT * FROM t WHERE id = 1 FOR UPDATE",
            "DELETE FROM t WHERE c = c + 1",
            "INSERT INTO t VALUES (1, 1)",
            "UPDATE t SET",
            "UPDATE t SET c = (",
            "",
        ] {
            assert_eq!(counts(statement), None, "{statement}");
        }
    }

    #[test]
    fn takes_are_found() {
        for (statement, takes) in [
            ("UPDATE stock SET qty = qty - 1 WHERE id = 42 AND qty >= 1", true),
            (
                "update shop.stock s set s.qty = s.qty - ?, seen = now() where s.qty>? and id=?",
                true,
            ),
            (
                "UPDATE stock SET qty = qty - 1 WHERE 1 <= stock.qty AND id = 42",
                true,
            ),
            ("UPDATE `stock` SET `qty` = `qty` - 1 WHERE 0 < `qty`", true),
            ("UPDATE stock SET qty = qty + -1 WHERE id = 42 AND qty <> 0", true),
            ("UPDATE stock SET qty = GREATEST(qty - 1, 0) WHERE id = 42", true),
            ("UPDATE stock SET qty = GREATEST(0, qty - 1) WHERE id = 42", true),
            ("UPDATE stock SET qty = qty - 1 WHERE id = 42", false),
            ("UPDATE stock SET qty = qty + 1 WHERE id = 42 AND qty >= 1", false),
            (
                "UPDATE stock SET qty = qty - 1 WHERE id = 42 AND sold < qty + 1",
                true,
            ),
        ] {
            assert_eq!(
                counts(statement).map(|found| found.takes),
                Some(takes),
                "{statement}"
            );
        }
    }

    #[test]
    fn tables_are_found() {
        let of = |statement| {
            let (schema, table) = table(statement)?;
            Some(schema.map_or(table.clone(), |schema| format!("{schema}/{table}")))
        };
        for (statement, expected) in [
            ("UPDATE pages SET hits = hits + 1", Some("pages")),
            (
                "/* a */ update low_priority ignore `my shop`.`pages` p set p.hits = 1",
                Some("my shop/pages"),
            ),
            ("INSERT IGNORE INTO shop.pages VALUES (1)", Some("shop/pages")),
            ("SELECT 1", None),
            ("UPDATE", None),
        ] {
            assert_eq!(of(statement).as_deref(), expected, "{statement}");
        }
    }

    #[test]
    fn sequences_are_found() {
        let found = counts("UPDATE seq SET id = LAST_INSERT_ID(id + 1)").expect("a count");
        assert!(found.sequence);
    }

    #[test]
    fn only_comparisons_of_columns_with_literals_are_executed() {
        let columns = ["id", "a b", "name", "deleted_at"].map(str::to_owned);
        for (condition, executed) in [
            ("id = 7", true),
            ("(id >= 7.5)", true),
            ("`a b`<>'x.y' AND id = 7", true),
            ("(7 = id AND (name = 'it''s' AND id != -3))", true),
            ("id IN (7, 8) AND deleted_at IS NULL", true),
            ("deleted_at IS NOT NULL", true),
            ("id = 0x1F", true),
            ("1 <= id", true),
            ("spy() = 0", false),
            ("id = 7 AND SLEEP(0) = 0", false),
            ("id = 7 OR id = 8", false),
            ("id = @x", false),
            ("id = @@max_connections", false),
            ("id = (SELECT 1)", false),
            ("id IN (SELECT 1)", false),
            ("id IN (spy())", false),
            ("id = CURRENT_USER", false),
            ("secret = 7", false),
            ("id = name", false),
            ("id = 7 + SLEEP(1)", false),
            ("id = -", false),
            ("name = \"x\"", false),
            ("id", false),
            ("", false),
        ] {
            assert_eq!(compares(condition, &columns), executed, "{condition}");
        }
    }

    #[test]
    fn a_truncated_statement_has_no_condition() {
        let statement =
            |spaces: usize| format!("UPDATE t SET c = c +{}1 WHERE id = 1234", " ".repeat(spaces));
        let condition = |statement: &str| counts(statement).expect("it counts").condition;
        let short = statement(1).len();
        assert_eq!(condition(&statement(1_024 - short)).as_deref(), Some("id = 1234"));
        assert_eq!(condition(&statement(1_025 - short)), None);
    }

    #[test]
    fn a_condition_has_no_qualifiers_and_no_placeholders() {
        for (statement, condition) in [
            (
                "UPDATE t SET c = c + 1 WHERE t.id = 7 AND `t`.`a b`<>'x.y' LIMIT 1",
                Some("id = 7 AND `a b`<>'x.y'"),
            ),
            (
                "UPDATE t SET c = c + 1 WHERE (shop.t.id >= 7.5) ORDER BY id",
                Some("(id >= 7.5)"),
            ),
            ("UPDATE t SET c = c + 1 WHERE 7 = t . id", Some("7 = id")),
            ("UPDATE t SET c = c + 1 WHERE id = ?", None),
            (
                "UPDATE t SET c = c + 1 WHERE note = 'why?';",
                Some("note = 'why?'"),
            ),
            (
                "UPDATE t SET c = c + 1 WHERE `a``b` = 1 /* x */ AND d = 2",
                Some("`a``b` = 1 AND d = 2"),
            ),
            ("UPDATE t SET c = c + 1", None),
            ("UPDATE t SET c = c + 1 WHERE (id = 7; DELETE FROM t)", None),
            (
                "UPDATE t SET c = c + 1 WHERE id = 7 -- by its key",
                Some("id = 7"),
            ),
            ("UPDATE t SET c = c + 1 WHERE name = 'it''s trunca", None),
            ("UPDATE t SET c = c + 1 WHERE 1 <= t.", None),
            ("UPDATE t SET c = c + 1 WHERE a b..c = .5", None),
            ("UPDATE t SET c = c + 1 WHERE t.c > .5", Some("c > .5")),
        ] {
            let found = counts(statement).and_then(|found| found.condition);
            assert_eq!(found.as_deref(), condition, "{statement}");
        }
    }
}
