//! Recommends the number of slots of a counter from the lock waits of a server.

mod lock_data;
mod row;
mod watch;

use std::collections::BTreeMap;

pub use row::{Installed, Row, Said};
pub use watch::watch;

pub use crate::cluster::CannotSee;

use crate::cluster::{self, Clash, Node};
use crate::package::{Kind, MAX_SLOTS};

/// A change is recommended from this average number of sessions that wait for one counter or row. At 0.5 a session waits
/// half of the time.
const WAITING: f64 = 0.5;

/// Shrinking is never recommended for this number of slots or less, and no number less than it because sessions are idle: the
/// read would hardly become faster.
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
    /// The longest time of a query of the lock waits, in milliseconds.
    pub query_ms: f64,
    /// The maximum of Threads_connected, without this connection. Of a cluster, the sum of the observed nodes.
    pub connected: u32,
    /// The maximum of Threads_running, without this connection. Of a cluster, the sum of the observed nodes.
    pub running: u32,
    /// The row lock waits on the whole server that began in this time.
    pub row_lock_waits: u64,
    /// The total duration of the row lock waits that ended in this time, in milliseconds.
    pub row_lock_ms: u64,
    /// The maximum of Threads_connected of one node. Without a cluster, the same as `connected`.
    pub connected_to_node: u32,
    /// The maximum of Threads_running of one node. Without a cluster, the same as `running`.
    pub running_on_node: u32,
    /// Whether the row lock waits could be observed.
    pub sees_waits: bool,
    /// The number of nodes of the cluster. 1 without a cluster.
    pub nodes: u32,
    /// The servers that were observed.
    pub servers: Vec<Node>,
    /// What could not be observed.
    pub cannot_see: Vec<CannotSee>,
    /// The counters of the package `counters`.
    pub counters: Vec<Counter>,
    /// The records and the rows of other tables that sessions waited for.
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
    /// The median time of a read over this connection, and of a read of one slot, in microseconds. None if it was not
    /// measured.
    pub read_us: Option<(f64, f64)>,
}

/// A column of a primary key, as in `information_schema.COLUMNS`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KeyColumn {
    /// COLUMN_NAME.
    pub name: String,
    /// DATA_TYPE.
    pub data_type: String,
    /// COLUMN_TYPE.
    pub column_type: String,
    /// COLLATION_NAME.
    pub collation: Option<String>,
}

/// The recommended change, of which there is one for each counter, row and table. The numbers are numbers of slots.
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
    /// Replace columns of a row by counters.
    Adopt(u32),
    /// Replace a column of several rows by a counter for each row. Another way to store such counts is another variant, which
    /// `row::of_table` chooses.
    Records(u32),
    /// Correct a setting or a table that does not fit the cluster.
    Correct,
    /// The lock waits could not be observed.
    Unknown,
}

impl Verdict {
    /// Whether it recommends to change or to inspect something.
    pub fn is_change(self) -> bool {
        !matches!(self, Self::Fine | Self::Unknown)
    }
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
    /// one with a probability of one in eight. The samples miss sessions that run for a short time, so that these are at least
    /// [`FEW_SLOTS`], if there are as many connections.
    ///
    /// The number is a prime. Some drivers open two connections at a time, so that a pool has only every second id. With
    /// a prime these connections use all slots.
    ///
    /// On a node of a cluster, a connection selects every slot whose number differs by `auto_increment_increment`. The rule
    /// therefore gives the slots of the node with the most connections. A table of a package with `--nodes` divides its slots by
    /// the number of nodes. `place` is the schema and the table; None is any other table.
    pub fn needed(&self, place: Option<(&str, &str)>) -> (u32, String) {
        let tables = self.servers.iter().flat_map(|server| &server.tables);
        let mut of_package = tables.filter(|one| Some((one.schema.as_str(), one.name.as_str())) == place);
        let nodes = of_package.find_map(|table| table.nodes.as_ref());
        let increment = self.servers.iter().map(|server| server.increment).max();
        let shared = match nodes {
            Some(nodes) => Some((nodes.count, "the number of nodes")),
            None => increment.map(|increment| (increment, "auto_increment_increment")),
        };
        let shared = shared.filter(|(count, _)| *count > 1);
        let (connected, running, place) = match shared {
            Some(_) => (self.connected_to_node, self.running_on_node, " of a node"),
            None => (self.connected, self.running, ""),
        };
        let (all, active) = (connected.saturating_mul(4), running.saturating_mul(8));
        let (least, rule) = if all <= active.max(FEW_SLOTS) {
            (
                all,
                format!("four slots for each of {connected} connections{place}"),
            )
        } else if active >= FEW_SLOTS {
            (
                active,
                format!("eight slots for each of {running} running sessions{place}"),
            )
        } else {
            (
                FEW_SLOTS,
                format!("at least {FEW_SLOTS} slots for {connected} connections{place}"),
            )
        };
        let (slots, rule) = (prime_from(least.max(2)), format!("{rule}, rounded up to a prime"));
        match shared {
            Some((count, what)) => (
                cluster::multiple(slots.saturating_mul(count), count),
                format!("{rule}, times {what} ({count})"),
            ),
            None => (slots, rule),
        }
    }

    /// The recommendations for all counters and rows. Changes come first, the one with the most waiting sessions at the top.
    pub fn advice(&self) -> Vec<Advice> {
        let of_counter = |one: &Counter| {
            let (needed, rule) = self.needed(Some((&one.schema, &one.table)));
            (one.waiting, one.advice(needed, &rule, self.sees_waits))
        };
        let mut advice: Vec<_> = self.counters.iter().map(of_counter).collect();
        let mut tables: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
        for row in &self.rows {
            tables.entry((&row.schema, &row.table)).or_default().push(row);
        }
        for ((schema, table), rows) in tables {
            let (needed, rule) = self.needed(Some((schema, table)));
            advice.extend(row::of_table(&rows, needed, &rule));
        }
        let clashes = cluster::clashes(&self.servers)
            .into_iter()
            .filter(|clash| clash.alarm);
        advice.extend(clashes.map(|clash| (f64::INFINITY, clash.into())));
        advice.sort_by(|(one, a), (other, b)| {
            let change = |advice: &Advice| advice.verdict.is_change();
            change(b).cmp(&change(a)).then(other.total_cmp(one))
        });
        advice.into_iter().map(|(_, advice)| advice).collect()
    }

    /// The load of several nodes of a cluster, which have the same data. The connections and the lock waits of all nodes add
    /// up, the counts are those of the first node.
    pub fn of_nodes(nodes: Vec<Self>) -> Self {
        let mut nodes = nodes.into_iter();
        let mut all = nodes.next().unwrap_or_default();
        for node in nodes {
            all.seconds = all.seconds.max(node.seconds);
            all.samples = all.samples.min(node.samples);
            all.query_ms = all.query_ms.max(node.query_ms);
            all.connected += node.connected;
            all.running += node.running;
            all.connected_to_node = all.connected_to_node.max(node.connected_to_node);
            all.running_on_node = all.running_on_node.max(node.running_on_node);
            all.servers.extend(node.servers);
            all.row_lock_waits += node.row_lock_waits;
            all.row_lock_ms += node.row_lock_ms;
            all.sees_waits &= node.sees_waits;
            all.nodes = all.nodes.max(node.nodes);
            for one in node.cannot_see {
                if !all.cannot_see.contains(&one) {
                    all.cannot_see.push(one);
                }
            }
            for counter in node.counters {
                let same = all
                    .counters
                    .iter_mut()
                    .find(|one| one.subject() == counter.subject());
                match same {
                    Some(one) => one.waiting += counter.waiting,
                    None => all.counters.push(counter),
                }
            }
            for row in node.rows {
                match all.rows.iter_mut().find(|one| one.is(&row)) {
                    Some(one) => one.add(row),
                    None => all.rows.push(row),
                }
            }
        }
        all.rows.retain(|row| row.waiting >= WAITING);
        all.cannot_see.extend(cluster::unseen(
            &all.servers,
            "the connections and the lock waits",
        ));
        all
    }
}

impl From<Clash> for Advice {
    fn from(clash: Clash) -> Self {
        Self {
            subject: clash.subject,
            verdict: Verdict::Correct,
            because: clash.because,
            run: clash.run,
            read_us: None,
        }
    }
}

impl Counter {
    /// The counter as [`Advice::subject`].
    pub fn subject(&self) -> String {
        format!("{}.{}: {}", self.schema, self.table, self.name)
    }

    fn advice(&self, needed: u32, rule: &str, sees_waits: bool) -> Advice {
        let waits = waits(self.waiting);
        let (verdict, because) = if !sees_waits {
            (Verdict::Unknown, "the row lock waits cannot be observed".into())
        } else if self.waiting >= WAITING && needed > self.slots {
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
        } else if self.slots > FEW_SLOTS && self.slots / 2 > needed && self.counted > 0 {
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
                let resize = |to: String| cluster::resize(&self.schema, &self.prefix, &self.name, to);
                let generate = || cluster::generate(self.slots, slots);
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
            Verdict::Grow(slots) | Verdict::Shrink(slots) => self.read_with(slots),
            _ => None,
        };
        Advice {
            subject: self.subject(),
            verdict,
            because,
            run,
            read_us: self.read_us.map(|(now, _)| (now, then)),
        }
    }

    /// Estimates the time of a read with another number of slots, in microseconds: the measured time, plus or minus the
    /// time of each slot more or less.
    fn read_with(&self, slots: u32) -> Option<f64> {
        let (all, one) = self.read_us?;
        let each = if self.slots < MANY_SLOTS {
            SLOT_US
        } else {
            (all - one).max(0.0) / f64::from(self.slots - 1)
        };
        Some(all + each * (f64::from(slots) - f64::from(self.slots)))
    }
}

impl KeyColumn {
    /// The column as in the option `--key`. MariaDB returns integer types with a display width.
    fn option(&self) -> String {
        let integer = self.data_type.ends_with("int");
        let kind = match (integer, self.column_type.split_once('(')) {
            (true, Some((name, rest))) => {
                let unsigned = if rest.contains("unsigned") {
                    " unsigned"
                } else {
                    ""
                };
                format!("{name}{unsigned}")
            }
            _ => self.column_type.clone(),
        };
        let kind = if integer { kind.to_uppercase() } else { kind };
        format!("{} {kind}", self.name)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Amount, Change, Use};

    fn watched(connected: u32, running: u32) -> Watched {
        Watched {
            connected,
            running,
            sees_waits: true,
            ..Watched::default()
        }
    }

    #[test]
    fn the_number_of_slots_is_a_prime_for_the_connections_or_the_running_sessions() {
        for (connected, running, slots) in [
            (0, 0, 2),
            (64, 64, 257),
            (64, 2, 17),
            (64, 0, 17),
            (64, 1, 17),
            (3, 0, 13),
            (1000, 5, 41),
            (90_000, 90_000, 10_000),
            (24, 5, 41),
        ] {
            assert_eq!(
                watched(connected, running).needed(None).0,
                slots,
                "{connected} {running}"
            );
        }
    }

    fn row(table: &str, column: &str, of: Use, number: i64, waiting: f64) -> Row {
        let change = Change {
            column: column.into(),
            of,
            amount: Amount::Number(number),
        };
        Row {
            schema: "shop".into(),
            table: table.into(),
            condition: "id = 7".into(),
            statements: vec![Said {
                text: "UPDATE".into(),
                waiting,
                changes: vec![change],
                ..Said::default()
            }],
            waiting,
            ..Row::default()
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
            read_us: Some((50.0, 40.0)),
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
                row("pages", "hits", Use::Adds, 1, 3.0),
                row("stock", "qty", Use::Takes, -2, 2.0),
                row("coupons", "used", Use::Fills("`max_uses`".into()), 1, 1.0),
            ],
            ..watched(64, 64)
        };
        let advice: Vec<_> = server
            .advice()
            .into_iter()
            .map(|one| (one.subject, one.verdict, one.run))
            .collect();
        let of = |subject: &str, verdict, run: &str| (subject.to_owned(), verdict, run.to_owned());
        let adopt = |table: &str, column: &str, prefix: &str| {
            format!(
                "slotted adopt --url URL --database shop --table shop.{table} --column {column} --where 'id = 7' \
                 --counter '{table}.{} id = 7' --slots 257 --prefix {prefix}\n-- In place of the statement, for this row:\n",
                column.split(' ').next().unwrap_or_default()
            )
        };
        let install = "slotted install counters --bounded --url URL --database shop\n";
        let pages =
            adopt("pages", "hits", "counter_") + "CALL `shop`.`counter_increment`('pages.hits id = 7');";
        let stock = adopt("stock", "qty", "bounded_counter_")
            + "CALL `shop`.`bounded_counter_take`('stock.qty id = 7', 2);";
        let coupons = adopt("coupons", "used --limit '`max_uses`'", "bounded_counter_")
            + "CALL `shop`.`bounded_counter_take`('coupons.used id = 7', 1);\n\
               -- Its used is then: `max_uses` - `shop`.`bounded_counter_get`('coupons.used id = 7')";
        let (stock, coupons) = (install.to_owned() + &stock, install.to_owned() + &coupons);
        let pages = format!("slotted install counters --url URL --database shop\n{pages}");
        assert_eq!(
            advice,
            [
                of(
                    "shop.counters: few",
                    Verdict::Grow(257),
                    "CALL `shop`.`counter_resize`('few', 257);"
                ),
                of("shop.counters: held", Verdict::Inspect, ""),
                of("shop.pages: id = 7", Verdict::Adopt(257), &pages),
                of("shop.stock: id = 7", Verdict::Adopt(257), &stock),
                of("shop.coupons: id = 7", Verdict::Adopt(257), &coupons),
                of(
                    "shop.counters: it's many",
                    Verdict::Shrink(257),
                    "CALL `shop`.`counter_resize`('it''s many', 257);"
                ),
                of("shop.counters: fine", Verdict::Fine, ""),
            ]
        );
        // With 6 slots the default time of a slot applies. With 1,000 slots the measured time is 10 us for all of them.
        assert_eq!(server.counters[1].read_with(16), Some(55.0));
        let read = server.counters[2].read_with(257).expect("it was measured");
        assert!((read - 42.6).abs() < 0.1, "{read}");
    }
}
