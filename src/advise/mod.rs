//! How many slots a counter needs: what a server was seen to do, and what follows from it.

mod watch;

pub use watch::{WatchError, watch};

use crate::package::{Kind, MAX_SLOTS, NAME_MAX, SqlStr};

/// Sessions that wait for one counter or one row at a moment, on average, from which on something should be done: half
/// of the time somebody waits.
const WAITING: f64 = 0.5;

/// Up to so many slots, reading them costs nothing that a reader notices, and nothing is said of them.
const FEW_SLOTS: u32 = 16;

/// From so many slots on, the time to read them, less that for one, tells what a slot costs; with fewer it is noise.
const MANY_SLOTS: u32 = 32;

/// What a slot costs on reading where it could not be measured, microseconds. Source: README, "How many slots?": 0.5 on
/// MySQL 9.7, 0.3 on MariaDB 11.8.
const SLOT_US: f64 = 0.5;

/// What was seen of a server.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Watched {
    /// How long it was watched.
    pub seconds: f64,
    /// How often the waiting sessions were looked at.
    pub samples: u32,
    /// The most sessions that were connected at once, without our own.
    pub connected: u32,
    /// The most sessions that were working or waiting at once, without our own.
    pub running: u32,
    /// How often a row lock was waited for meanwhile, on the whole server.
    pub row_lock_waits: u64,
    /// How long those that have ended did, added up over sessions, milliseconds.
    pub row_lock_ms: u64,
    /// Counters of the package `counters`.
    pub counters: Vec<Counter>,
    /// Records of packages keyed by record that somebody waited for, and single rows that somebody counts in.
    pub rows: Vec<Row>,
}

/// A counter, and what happened to it.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Counter {
    /// The schema of its table.
    pub schema: String,
    /// Its table.
    pub table: String,
    /// What the names of its routines begin with.
    pub prefix: String,
    /// Its name.
    pub name: String,
    /// How many slots it has.
    pub slots: u32,
    /// Whether the routines have the number of slots in them.
    pub fixed: bool,
    /// How an increment picks its slot.
    pub pick: String,
    /// How many slots changed.
    pub busy_slots: u32,
    /// By how much all slots changed, signs left aside.
    pub counted: u64,
    /// How much more than the average slot the busiest changed, as a factor; 0 where nothing did.
    pub skew: f64,
    /// Sessions that waited for a slot of it at a moment, on average.
    pub waiting: f64,
    /// How long it takes to read it over this connection, microseconds, a median.
    pub read_us: f64,
    /// The same for one of its slots.
    pub read_one_us: f64,
}

/// A row that is no slot of a named counter, and that sessions waited for.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Row {
    /// The schema of its table.
    pub schema: String,
    /// Its table.
    pub table: String,
    /// What is true of it alone, as SQL: `id = 1`.
    pub condition: String,
    /// The column that is counted up; None where it is a record of a package.
    pub column: Option<String>,
    /// Sessions that waited for it at a moment, on average.
    pub waiting: f64,
    /// The statement of one of them.
    pub statement: String,
    /// How many slots the package has where it is a record of one.
    pub slots: Option<u32>,
}

/// What should be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase", tag = "do", content = "slots")]
pub enum Verdict {
    /// Nothing.
    Fine,
    /// Its slots are enough and yet it is waited for: look at what holds them.
    Look,
    /// More slots, so many.
    Grow(u32),
    /// Fewer slots, so many.
    Shrink(u32),
    /// A single row should become a counter of so many slots.
    Adopt(u32),
}

/// What to do about one counter or row, and why.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Advice {
    /// The counter, as `schema.table: name`, or the row.
    pub subject: String,
    /// What to do.
    pub verdict: Verdict,
    /// What was seen, and which rule gave the number.
    pub because: String,
    /// What to run: SQL, or a command. Empty where nothing is to be done.
    pub run: String,
    /// What it takes to read the counter now and then, microseconds over this connection; None where it was not
    /// measured, and the second where it is not known.
    pub read_us: Option<(f64, Option<f64>)>,
}

impl Watched {
    /// The number of slots that this server's load needs, and the rule that gave it.
    ///
    /// Connections that were opened in one go have numbers in a row, and a slot for each of them would do. Those of a
    /// pool that opens and closes them as it needs have any number: n of them keep 0.88 n of 4 n slots busy, which is
    /// 4 n (1 - e^(-1/4)), and 0.63 n of n slots. Where most connections are idle that would be many slots to read for
    /// nothing; eight times the sessions that are at work leaves an increment one chance in eight to meet another. The
    /// number is prime, so that connections numbered in steps, as those of drivers that open two at a time are, spread
    /// over all slots and not over every second one.
    pub fn needed(&self) -> (u32, String) {
        let (all, at_work) = (self.connected.saturating_mul(4), self.running.saturating_mul(8));
        let (least, rule) = if all <= at_work {
            (
                all,
                format!("four slots for each of {} connections", self.connected),
            )
        } else {
            (
                at_work,
                format!("eight slots for each of {} sessions at work", self.running),
            )
        };
        (prime_from(least.max(2)), format!("{rule}, rounded up to a prime"))
    }

    /// What to do about each counter and row, what matters most first.
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
    /// As advice names it: `schema.table: name`.
    pub fn subject(&self) -> String {
        format!("{}.{}: {}", self.schema, self.table, self.name)
    }

    fn advice(&self, needed: u32, rule: &str, counted: bool) -> Advice {
        let waits = format!("{:.1} sessions wait for it on average", self.waiting);
        let (verdict, because) = if self.waiting >= WAITING && needed > self.slots {
            let because = format!("{waits}, with {} of {} slots in use", self.busy_slots, self.slots);
            (Verdict::Grow(needed), format!("{because}; {needed}: {rule}"))
        } else if self.waiting >= WAITING {
            let why = if self.pick == "random" {
                "install the package with the pick by connection, so that a connection always has the same slot"
            } else {
                "somebody holds its slots: look for long transactions, and for resets or resizes all the time"
            };
            (
                Verdict::Look,
                format!("{waits}, but {} slots are enough ({rule}): {why}", self.slots),
            )
        } else if self.slots > FEW_SLOTS && self.slots / 2 > needed && counted {
            let because = format!("{} slots, and {waits}", self.slots);
            (Verdict::Shrink(needed), format!("{because}; {needed}: {rule}"))
        } else if self.counted == 0 {
            (Verdict::Fine, "nothing was counted while we watched".into())
        } else {
            (Verdict::Fine, waits)
        };
        let run = match verdict {
            Verdict::Grow(slots) | Verdict::Shrink(slots) => {
                let call = format!(
                    "CALL {}.{}({}, {slots});",
                    quoted(&self.schema),
                    quoted(&format!("{}resize", self.prefix)),
                    SqlStr(&self.name)
                );
                if self.fixed {
                    format!(
                        "-- The routines have {} slots in them: generate and install them with --slots {slots}\n{call}",
                        self.slots
                    )
                } else {
                    call
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

    /// What reading it will take with another number of slots: what was measured, and so much for each slot more or less.
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
        let waits = format!("{:.1} sessions wait for it on average", self.waiting);
        let subject = format!("{}.{}: {}", self.schema, self.table, self.condition);
        let (verdict, because, run) = match (&self.column, self.slots) {
            (Some(column), _) => {
                let name: String = format!("{}.{} {}", self.table, column, self.condition)
                    .chars()
                    .take(NAME_MAX as usize)
                    .collect();
                let run = format!(
                    "slotted adopt --url URL --table {} --column {} --where {} --counter {} --slots {needed}",
                    shell(&format!("{}.{}", self.schema, self.table)),
                    shell(column),
                    shell(&self.condition),
                    shell(&name),
                );
                let because = format!("{waits}, to run {}; {needed}: {rule}", self.statement);
                (Verdict::Adopt(needed), because, run)
            }
            (None, Some(slots)) if needed > slots => {
                let run = format!(
                    "-- generate the package with --slots {needed}, and source its create_procedures.sql"
                );
                let because = format!("{waits}, and the package has {slots} slots; {needed}: {rule}");
                (Verdict::Grow(needed), because, run)
            }
            _ => {
                let why = "but the slots are enough: somebody holds them, look for long transactions";
                (Verdict::Look, format!("{waits}, {why}"), String::new())
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

/// The smallest prime that is not less, as far as slots go.
fn prime_from(least: u32) -> u32 {
    let prime = |n: u32| (2..n).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    (least..)
        .find(|&n| prime(n))
        .filter(|&n| n <= MAX_SLOTS)
        .unwrap_or(MAX_SLOTS)
}

/// An identifier between backticks.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A word of a command line, quoted for a shell where it has to be.
fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The column that a statement counts up, `c` of `SET c = c + 1` or `c = 1 + c`; None where it does not.
fn counted_column(statement: &str) -> Option<String> {
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
        let counts =
            is(at + 1, "=") && (is(at + 2, set) && is(at + 3, "+") || is(at + 3, "+") && is(at + 4, set));
        counts.then(|| set.clone())
    })
}

/// Words and signs, without backticks, and without what stands before a dot.
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

/// The values of a locked key, as the servers print them: `'downloads', 3`. None where it is no list of values.
fn key_values(lock_data: &str) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut rest = lock_data.trim();
    while !rest.is_empty() {
        let end = if let Some(text) = rest.strip_prefix('\'') {
            let mut end = None;
            let mut characters = text.char_indices().peekable();
            while let Some((at, c)) = characters.next() {
                if c == '\'' && characters.next_if(|(_, next)| *next == '\'').is_none() {
                    end = Some(at + 2);
                    break;
                }
            }
            end?
        } else {
            rest.find(',').unwrap_or(rest.len())
        };
        values.push(rest[..end].trim().to_owned());
        rest = rest[end..].trim_start().trim_start_matches(',').trim_start();
    }
    (!values.is_empty() && !values.iter().any(|value| value.contains("supremum"))).then_some(values)
}

/// The text of a quoted value.
fn unquoted(value: &str) -> Option<String> {
    let inner = value.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.replace("''", "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_count_are_told_from_others() {
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
            ("UPDATE t SET c = d + 1", None),
            ("UPDATE t SET c = 5 WHERE c = 4", None),
            ("SELECT c = c + 1 FROM t", None),
            ("", None),
        ] {
            assert_eq!(counted_column(statement).as_deref(), column, "{statement}");
        }
    }

    #[test]
    fn keys_are_read_as_servers_print_them() {
        let values = |text| key_values(text).unwrap_or_default();
        assert_eq!(values("'downloads', 3"), ["'downloads'", "3"]);
        assert_eq!(values("123, 456, 7"), ["123", "456", "7"]);
        assert_eq!(values("'it''s, well', 1"), ["'it''s, well'", "1"]);
        assert_eq!(unquoted("'it''s'").as_deref(), Some("it's"));
        assert_eq!(key_values("supremum pseudo-record"), None);
        assert_eq!(key_values("'cut"), None);
        assert_eq!(key_values(""), None);
    }

    fn watched(connected: u32, running: u32) -> Watched {
        Watched {
            connected,
            running,
            ..Watched::default()
        }
    }

    #[test]
    fn the_number_is_a_prime_that_fits_connections_and_sessions_at_work() {
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

    #[test]
    fn advice_says_what_to_run() {
        let counter = |name: &str, slots, waiting, counted| Counter {
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
        };
        let server = Watched {
            counters: vec![
                counter("fine", 20, 0.1, 5),
                counter("few", 6, 9.0, 5),
                counter("it's many", 1000, 0.0, 5),
                counter("held", 500, 9.0, 5),
            ],
            rows: vec![Row {
                schema: "shop".into(),
                table: "pages".into(),
                condition: "id = 1".into(),
                column: Some("hits".into()),
                waiting: 3.0,
                ..Row::default()
            }],
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
        assert_eq!(
            advice,
            [
                of(
                    "shop.counters: few",
                    Verdict::Grow(257),
                    "CALL `shop`.`counter_resize`('few', 257);"
                ),
                of("shop.counters: held", Verdict::Look, ""),
                of("shop.pages: id = 1", Verdict::Adopt(257), adopt),
                of(
                    "shop.counters: it's many",
                    Verdict::Shrink(257),
                    "CALL `shop`.`counter_resize`('it''s many', 257);"
                ),
                of("shop.counters: fine", Verdict::Fine, ""),
            ]
        );
        // Of 6 slots nobody knows what one costs; of 1,000, they cost 10 together.
        assert_eq!(server.counters[1].read_with(16), 55.0);
        assert!((server.counters[2].read_with(257) - 42.6).abs() < 0.1);
    }
}
