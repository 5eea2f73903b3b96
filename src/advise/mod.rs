//! Recommends the number of slots of a counter from the lock waits of a server.

mod lock_data;
mod watch;

pub use watch::{WatchError, watch};

use crate::package::{Kind, MAX_SLOTS, NAME_MAX, SqlStr, shell_word};

/// A change is recommended from this average number of sessions that wait for one counter or row. At 0.5 a session waits
/// half of the time.
const WAITING: f64 = 0.5;

/// Shrinking is never recommended for this number of slots or less: the read would hardly become faster.
const FEW_SLOTS: u32 = 16;

/// The time of a slot is computed from the measured reads only from this number of slots on. With fewer slots it is
/// smaller than the variation of the reads.
const MANY_SLOTS: u32 = 32;

/// The time that each slot adds to a read, in microseconds, if it was not measured. MySQL 9.7 needs 0.5, MariaDB 11.8
/// needs 0.3. Source: docs/benchmark.md, the time of a read by slots.
const SLOT_US: f64 = 0.5;

/// The observed load of a server.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Watched {
    /// The observed time, in seconds.
    pub seconds: f64,
    /// The number of times that the lock waits were queried.
    pub samples: u32,
    /// The maximum of Threads_connected, without this connection.
    pub connected: u32,
    /// The maximum of Threads_running, without this connection.
    pub running: u32,
    /// The row lock waits on the whole server that began in this time.
    pub row_lock_waits: u64,
    /// The total duration of the row lock waits that ended in this time, in milliseconds.
    pub row_lock_ms: u64,
    /// The counters of the package `counters`.
    pub counters: Vec<Counter>,
    /// The records that sessions waited for, and the single rows that sessions increment and waited for.
    pub rows: Vec<Row>,
}

/// A named counter and its observed load.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Counter {
    /// The schema of the table.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The prefix of the package's routines.
    pub prefix: String,
    /// The name of the counter.
    pub name: String,
    /// The number of slots.
    pub slots: u32,
    /// Whether the package has fixed slots.
    pub fixed: bool,
    /// The slot selection of the package.
    pub pick: String,
    /// The number of slots whose count changed.
    pub busy_slots: u32,
    /// The sum of the absolute changes of all slots.
    pub counted: u64,
    /// The change of the busiest slot divided by the average change of a slot. 0 if no slot changed.
    pub skew: f64,
    /// The average number of sessions that waited for a slot of the counter.
    pub waiting: f64,
    /// The median time of a read over this connection, in microseconds.
    pub read_us: f64,
    /// The median time to read one slot, in microseconds.
    pub read_one_us: f64,
}

/// A row that sessions waited for, and that is not a slot of a named counter.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Row {
    /// The schema of the table.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The SQL condition that matches only this row, such as `id = 1`.
    pub condition: String,
    /// The column that is incremented or decremented. None for a record of a package.
    pub column: Option<String>,
    /// Whether the statement decrements the column on the condition that it has enough.
    pub takes: bool,
    /// The average number of sessions that waited for the row.
    pub waiting: f64,
    /// The statement of one of these sessions.
    pub statement: String,
    /// The number of slots of the package, for a record of a package.
    pub slots: Option<u32>,
}

/// The recommended change. The numbers are numbers of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase", tag = "do", content = "slots")]
pub enum Verdict {
    /// No change.
    Fine,
    /// The number of slots is sufficient, but sessions wait: find the transactions that hold the locks.
    Inspect,
    /// Increase the number of slots.
    Grow(u32),
    /// Decrease the number of slots.
    Shrink(u32),
    /// Replace the single row by a counter.
    Adopt(u32),
}

/// The recommendation for one counter or row.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Advice {
    /// The counter, as `schema.table: name`, or the row, as `schema.table: condition`.
    pub subject: String,
    /// The recommended change.
    pub verdict: Verdict,
    /// The observation, and the rule for the number of slots.
    pub because: String,
    /// The SQL or the command to run. Empty if there is none.
    pub run: String,
    /// The time of a read, and its estimate after a change of the number of slots, in microseconds. None for a row.
    pub read_us: Option<(f64, Option<f64>)>,
}

impl Watched {
    /// The number of slots that this server's load needs, and the rule that it follows from.
    ///
    /// Connections that are opened one after the other have consecutive ids, and use as many slots as there are
    /// connections. The ids of a pool that opens and closes connections are random. Then n connections use 0.63 n of n
    /// slots, and 0.88 n of 4 n slots, which is 4 n (1 - e^(-1/4)). Therefore the rule is four slots for each connection.
    ///
    /// If most connections are idle, eight slots for each running session are sufficient: an increment meets another
    /// one with a probability of one in eight.
    ///
    /// The number is a prime. Some drivers open two connections at a time, so that a pool has only every second id. With
    /// a prime these connections use all slots.
    pub fn needed(&self) -> (u32, String) {
        let (all, running) = (self.connected.saturating_mul(4), self.running.saturating_mul(8));
        let (least, rule) = if all <= running {
            (
                all,
                format!("four slots for each of {} connections", self.connected),
            )
        } else {
            (
                running,
                format!("eight slots for each of {} running sessions", self.running),
            )
        };
        (prime_from(least.max(2)), format!("{rule}, rounded up to a prime"))
    }

    /// The recommendations for all counters and rows. Changes come first, the one with the most waiting sessions at the top.
    pub fn advice(&self) -> Vec<Advice> {
        let (needed, rule) = self.needed();
        let counted = self.counters.iter().any(|one| one.counted > 0);
        let mut advice: Vec<_> = self
            .counters
            .iter()
            .map(|one| (one.waiting, one.advice(needed, &rule, counted)))
            .chain(
                self.rows
                    .iter()
                    .map(|one| (one.waiting, one.advice(needed, &rule))),
            )
            .collect();
        advice.sort_by(|(one, a), (other, b)| {
            let nothing = |advice: &Advice| advice.verdict == Verdict::Fine;
            nothing(a).cmp(&nothing(b)).then(other.total_cmp(one))
        });
        advice.into_iter().map(|(_, advice)| advice).collect()
    }
}

impl Counter {
    /// The counter as [`Advice::subject`].
    pub fn subject(&self) -> String {
        format!("{}.{}: {}", self.schema, self.table, self.name)
    }

    fn advice(&self, needed: u32, rule: &str, counted: bool) -> Advice {
        let waits = waits(self.waiting);
        let (verdict, because) = if self.waiting >= WAITING && needed > self.slots {
            let because = format!("{waits}, {} of {} slots are in use", self.busy_slots, self.slots);
            (
                Verdict::Grow(needed),
                format!("{because}. {needed} slots: {rule}"),
            )
        } else if self.waiting >= WAITING {
            let why = if self.pick == "random" {
                "install the package with --pick connection, so that a transaction holds one slot"
            } else {
                "find long transactions that hold its slots, and frequent resets or resizes"
            };
            (
                Verdict::Inspect,
                format!("{waits}, but {} slots are sufficient ({rule}): {why}", self.slots),
            )
        } else if self.slots > FEW_SLOTS && self.slots / 2 > needed && counted {
            let because = format!("{} slots, and {waits}", self.slots);
            (
                Verdict::Shrink(needed),
                format!("{because}. {needed} slots: {rule}"),
            )
        } else if self.counted == 0 {
            (Verdict::Fine, "its total did not change".into())
        } else {
            (Verdict::Fine, waits)
        };
        let run = match verdict {
            Verdict::Grow(slots) | Verdict::Shrink(slots) => {
                let resize = |to: String| {
                    format!(
                        "CALL {}.{}({}, {to});",
                        quoted(&self.schema),
                        quoted(&format!("{}resize", self.prefix)),
                        SqlStr(&self.name)
                    )
                };
                let generate = || {
                    format!(
                        "-- The package has {} fixed slots: generate it with --slots {slots}, and source",
                        self.slots
                    )
                };
                match (self.fixed, &verdict) {
                    (false, _) => resize(slots.to_string()),
                    (true, Verdict::Grow(_)) => {
                        format!("{} resize.sql and create_procedures.sql", generate())
                    }
                    (true, _) => format!("{} create_procedures.sql\n{}", generate(), resize("NULL".into())),
                }
            }
            _ => String::new(),
        };
        let then = match verdict {
            Verdict::Grow(slots) | Verdict::Shrink(slots) => Some(self.read_with(slots)),
            _ => None,
        };
        Advice {
            subject: self.subject(),
            verdict,
            because,
            run,
            read_us: Some((self.read_us, then)),
        }
    }

    /// Estimates the time of a read with another number of slots, in microseconds: the measured time, plus or minus the
    /// time of each slot more or less.
    fn read_with(&self, slots: u32) -> f64 {
        let each = if self.slots < MANY_SLOTS {
            SLOT_US
        } else {
            (self.read_us - self.read_one_us).max(0.0) / f64::from(self.slots - 1)
        };
        self.read_us + each * (f64::from(slots) - f64::from(self.slots))
    }
}

impl Row {
    fn advice(&self, needed: u32, rule: &str) -> Advice {
        let waits = waits(self.waiting);
        let subject = format!("{}.{}: {}", self.schema, self.table, self.condition);
        let (verdict, because, run) = match (&self.column, self.slots) {
            (Some(column), _) => {
                let name: String = format!("{}.{} {}", self.table, column, self.condition)
                    .chars()
                    .take(NAME_MAX as usize)
                    .collect();
                let mut run = format!(
                    "slotted adopt --url URL --table {} --column {} --where {} --counter {} --slots {needed}",
                    shell_word(&format!("{}.{}", self.schema, self.table)),
                    shell_word(column),
                    shell_word(&self.condition),
                    shell_word(&name),
                );
                if self.takes {
                    let name = SqlStr(&name);
                    run.push_str(&format!(
                        "\n-- In place of the statement: CALL counter_take({name}, amount);"
                    ));
                }
                let because = format!("{waits}, with {}. {needed} slots: {rule}", self.statement);
                (Verdict::Adopt(needed), because, run)
            }
            (None, Some(slots)) if needed > slots => {
                let run = format!(
                    "-- Generate the package with --slots {needed}, and source its create_procedures.sql"
                );
                let because = format!("{waits}, and the package has {slots} slots. {needed} slots: {rule}");
                (Verdict::Grow(needed), because, run)
            }
            _ => {
                let why = "but the slots are sufficient: find long transactions that hold them";
                (Verdict::Inspect, format!("{waits}, {why}"), String::new())
            }
        };
        Advice {
            subject,
            verdict,
            because,
            run,
            read_us: None,
        }
    }
}

/// The observation in [`Advice::because`].
fn waits(sessions: f64) -> String {
    format!("on average {sessions:.1} sessions wait for it")
}

/// The smallest prime that is greater than or equal to `least`, at most [`MAX_SLOTS`].
fn prime_from(least: u32) -> u32 {
    let prime = |n: u32| (2..n).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    (least..)
        .find(|&n| prime(n))
        .filter(|&n| n <= MAX_SLOTS)
        .unwrap_or(MAX_SLOTS)
}

/// An identifier in backticks. Unlike [`crate::package::Ident`] it accepts every name that a server returns.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// What a statement does with a column.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    column: String,
    /// Whether it decrements the column on the condition that the column has enough.
    takes: bool,
}

/// The column that a statement increments or decrements: `c` of `SET c = c + 1`, `c = 1 + c` or `c = c - 1`. None if it does
/// neither.
fn counted(statement: &str) -> Option<Counted> {
    let words = words(statement);
    let is = |at: usize, word: &str| words.get(at).is_some_and(|one| one.eq_ignore_ascii_case(word));
    let begins = is(0, "UPDATE") || is(0, "INSERT");
    let name = |at: usize| {
        words
            .get(at)
            .filter(|word| word.chars().all(|c| c.is_alphanumeric() || c == '_'))
    };
    (0..words.len()).filter(|_| begins).find_map(|at| {
        let set = name(at)?;
        let less = is(at + 2, set) && is(at + 3, "-");
        let counts = less || is(at + 3, "+") && (is(at + 2, set) || is(at + 4, set));
        // c >= ?, or ? <= c
        let compared = |word: usize| {
            is(word, set)
                && (is(word + 1, ">")
                    || is(word.wrapping_sub(1), "<")
                    || is(word.wrapping_sub(1), "=") && is(word.wrapping_sub(2), "<"))
        };
        (is(at + 1, "=") && counts).then(|| Counted {
            column: set.clone(),
            takes: less && (at + 4..words.len()).any(compared),
        })
    })
}

/// The names and signs of a statement, without backticks and without the qualifier before a dot.
fn words(statement: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut inside = false;
    let mut qualified = false;
    for c in statement.chars() {
        if c == '`' || c.is_whitespace() {
            inside = inside && c == '`';
        } else if c == '.' {
            qualified = true;
        } else if c.is_alphanumeric() || c == '_' || c == '$' {
            match words.last_mut() {
                Some(word) if inside && !qualified => word.push(c),
                Some(word) if qualified => *word = c.to_string(),
                _ => words.push(c.to_string()),
            }
            (inside, qualified) = (true, false);
        } else {
            words.push(c.to_string());
            (inside, qualified) = (false, false);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incremented_columns_are_found() {
        for (statement, column) in [
            ("UPDATE t SET c = c + 1 WHERE id = 1", Some("c")),
            (
                "update `shop`.`pages` set `hits`=`hits`+1,seen=NOW() where id=?",
                Some("hits"),
            ),
            (
                "UPDATE pages p SET seen = NOW(), p.hits = p.hits + 3",
                Some("hits"),
            ),
            ("UPDATE t SET c = 1 + c", Some("c")),
            (
                "INSERT INTO t VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1",
                Some("n"),
            ),
            ("UPDATE stock SET qty = qty - 1 WHERE id = 42", Some("qty")),
            ("UPDATE t SET c = d + 1", None),
            ("UPDATE t SET c = 5 WHERE c = 4", None),
            ("SELECT c = c + 1 FROM t", None),
            ("", None),
        ] {
            let found = counted(statement);
            assert_eq!(
                found.as_ref().map(|found| found.column.as_str()),
                column,
                "{statement}"
            );
            assert!(found.is_none_or(|found| !found.takes), "{statement}");
        }
    }

    #[test]
    fn takes_are_found() {
        for statement in [
            "UPDATE stock SET qty = qty - 1 WHERE id = 42 AND qty >= 1",
            "update shop.stock s set s.qty = s.qty - ?, seen = now() where s.qty>? and id=?",
            "UPDATE stock SET qty = qty - 1 WHERE 1 <= qty AND id = 42",
            "UPDATE `stock` SET `qty` = `qty` - 1 WHERE 0 < `qty`",
        ] {
            let expected = Counted {
                column: "qty".into(),
                takes: true,
            };
            assert_eq!(counted(statement), Some(expected), "{statement}");
        }
    }

    fn watched(connected: u32, running: u32) -> Watched {
        Watched {
            connected,
            running,
            ..Watched::default()
        }
    }

    #[test]
    fn the_number_of_slots_is_a_prime_for_the_connections_or_the_running_sessions() {
        for (connected, running, slots) in [
            (0, 0, 2),
            (64, 64, 257),
            (64, 2, 17),
            (1000, 5, 41),
            (90_000, 90_000, 10_000),
            (24, 5, 41),
        ] {
            assert_eq!(
                watched(connected, running).needed().0,
                slots,
                "{connected} {running}"
            );
        }
    }

    fn counter(name: &str, slots: u32, waiting: f64, counted: u64) -> Counter {
        Counter {
            schema: "shop".into(),
            table: "counters".into(),
            prefix: "counter_".into(),
            name: name.into(),
            slots,
            busy_slots: slots,
            pick: "connection".into(),
            waiting,
            counted,
            read_us: 50.0,
            read_one_us: 40.0,
            ..Counter::default()
        }
    }

    #[test]
    fn fixed_slots_need_other_routines() {
        let run = |slots, waiting| {
            let fixed = Counter {
                fixed: true,
                ..counter("a", slots, waiting, 5)
            };
            let server = Watched {
                counters: vec![fixed],
                ..watched(64, 64)
            };
            server.advice().remove(0).run
        };
        assert_eq!(
            run(6, 9.0),
            "-- The package has 6 fixed slots: generate it with --slots 257, and source resize.sql and create_procedures.sql"
        );
        assert_eq!(
            run(1000, 0.0),
            "-- The package has 1000 fixed slots: generate it with --slots 257, and source create_procedures.sql\n\
             CALL `shop`.`counter_resize`('a', NULL);"
        );
    }

    #[test]
    fn advice_has_the_statement_to_run() {
        let server = Watched {
            counters: vec![
                counter("fine", 20, 0.1, 5),
                counter("few", 6, 9.0, 5),
                counter("it's many", 1000, 0.0, 5),
                counter("held", 500, 9.0, 5),
            ],
            rows: vec![
                Row {
                    schema: "shop".into(),
                    table: "pages".into(),
                    condition: "id = 1".into(),
                    column: Some("hits".into()),
                    waiting: 3.0,
                    ..Row::default()
                },
                Row {
                    schema: "shop".into(),
                    table: "stock".into(),
                    condition: "id = 42".into(),
                    column: Some("qty".into()),
                    takes: true,
                    waiting: 2.0,
                    ..Row::default()
                },
            ],
            ..watched(64, 64)
        };
        let advice: Vec<_> = server
            .advice()
            .into_iter()
            .map(|one| (one.subject, one.verdict, one.run))
            .collect();
        let of = |subject: &str, verdict, run: &str| (subject.to_owned(), verdict, run.to_owned());
        let adopt = "slotted adopt --url URL --table shop.pages --column hits --where 'id = 1' \
                     --counter 'pages.hits id = 1' --slots 257";
        let stock = "slotted adopt --url URL --table shop.stock --column qty --where 'id = 42' \
                     --counter 'stock.qty id = 42' --slots 257\n\
                     -- In place of the statement: CALL counter_take('stock.qty id = 42', amount);";
        assert_eq!(
            advice,
            [
                of(
                    "shop.counters: few",
                    Verdict::Grow(257),
                    "CALL `shop`.`counter_resize`('few', 257);"
                ),
                of("shop.counters: held", Verdict::Inspect, ""),
                of("shop.pages: id = 1", Verdict::Adopt(257), adopt),
                of("shop.stock: id = 42", Verdict::Adopt(257), stock),
                of(
                    "shop.counters: it's many",
                    Verdict::Shrink(257),
                    "CALL `shop`.`counter_resize`('it''s many', 257);"
                ),
                of("shop.counters: fine", Verdict::Fine, ""),
            ]
        );
        // With 6 slots the default time of a slot applies. With 1,000 slots the measured time is 10 us for all of them.
        assert_eq!(server.counters[1].read_with(16), 55.0);
        assert!((server.counters[2].read_with(257) - 42.6).abs() < 0.1);
    }
}
