//! Recommends the number of slots of a counter from the lock waits of a server.

mod lock_data;
mod statement;
mod watch;

use std::collections::BTreeMap;

#[cfg(any(test, fuzzing))]
pub(crate) use statement::{counts, table};
pub use watch::watch;

pub use crate::cluster::CannotSee;

use crate::cluster::{self, Clash, Node};
use crate::package::{IDENT_MAX, Ident, Key, Kind, MAX_SLOTS, NAME_MAX, SqlStr, quoted, shell_word};

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

/// A row that sessions waited for, and that is not a slot of a named counter.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Row {
    /// The schema of the table.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The SQL condition that matches only this row, such as `id = 1`. Empty if it is not known.
    pub condition: String,
    /// The columns of the primary key.
    pub key: Vec<KeyColumn>,
    /// The columns that are incremented or decremented. Empty for a record of a package.
    pub columns: Vec<String>,
    /// Whether the statement decrements a column on the condition that it has enough.
    pub takes: bool,
    /// Whether the statement returns the new number, as a sequence does.
    pub sequence: bool,
    /// The average number of sessions that waited for the row.
    pub waiting: f64,
    /// The statement of one of these sessions.
    pub statement: String,
    /// The number of slots of the package, for a record of a package.
    pub slots: Option<u32>,
    /// The engine of the table, if it locks tables instead of rows.
    pub engine: Option<String>,
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
    /// Replace a column of several rows by a counter for each row.
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
    /// one with a probability of one in eight.
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
        let (least, rule) = if all <= active {
            (
                all,
                format!("four slots for each of {connected} connections{place}"),
            )
        } else {
            (
                active,
                format!("eight slots for each of {running} running sessions{place}"),
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
            tables
                .entry((&row.schema, &row.table, &row.columns))
                .or_default()
                .push(row);
        }
        for ((schema, table, _), rows) in tables {
            let (needed, rule) = self.needed(Some((schema, table)));
            let records = records(&rows, needed, &rule);
            match records {
                Some(records) => advice.push((rows.iter().map(|row| row.waiting).sum(), records)),
                None => advice.extend(rows.iter().map(|one| (one.waiting, one.advice(needed, &rule)))),
            }
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
                let place = |row: &Row| (row.schema.clone(), row.table.clone(), row.condition.clone());
                match all.rows.iter_mut().find(|one| place(one) == place(&row)) {
                    Some(one) => one.waiting += row.waiting,
                    None => all.rows.push(row),
                }
            }
        }
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

impl Row {
    fn advice(&self, needed: u32, rule: &str) -> Advice {
        let waits = waits(self.waiting);
        let (verdict, because, run) = match self.slots {
            Some(slots) if needed > slots => {
                let run = format!(
                    "-- Generate the package with --slots {needed}, and source its create_procedures.sql"
                );
                let because = format!("{waits}, and the package has {slots} slots. {needed} slots: {rule}");
                (Verdict::Grow(needed), because, run)
            }
            Some(_) => {
                let why = "but the slots are sufficient: find long transactions that hold them";
                (Verdict::Inspect, format!("{waits}, {why}"), String::new())
            }
            None => match self.obstacle() {
                Some(obstacle) => (
                    Verdict::Inspect,
                    format!("{waits}, {obstacle}"),
                    self.change_engine(),
                ),
                None => {
                    let because = format!("{waits}, with {}. {needed} slots: {rule}", self.statement);
                    (Verdict::Adopt(needed), because, self.adopt(needed))
                }
            },
        };
        Advice {
            subject: self.subject(),
            verdict,
            because,
            run,
            read_us: None,
        }
    }

    /// The statement that makes the engine lock rows. Empty if it does.
    fn change_engine(&self) -> String {
        self.engine.as_ref().map_or_else(String::new, |_| {
            format!(
                "ALTER TABLE {}.{} ENGINE = InnoDB;",
                quoted(&self.schema),
                quoted(&self.table)
            )
        })
    }

    /// The row as [`Advice::subject`].
    pub fn subject(&self) -> String {
        let place = if self.engine.is_some() {
            "all rows"
        } else if self.condition.is_empty() {
            "a row that is not known"
        } else {
            &self.condition
        };
        format!("{}.{}: {place}", self.schema, self.table)
    }

    /// The reason why a counter cannot replace the row.
    fn obstacle(&self) -> Option<String> {
        let statement = &self.statement;
        if let Some(engine) = &self.engine {
            Some(format!(
                "with {statement}. The engine {engine} locks the whole table for each statement"
            ))
        } else if self.columns.is_empty() {
            Some(format!(
                "with a statement that is not known to count: {statement}"
            ))
        } else if self.sequence {
            Some(format!(
                "with {statement}, which returns each number once. A counter of several rows cannot do this: use AUTO_INCREMENT, \
                 or CREATE SEQUENCE on MariaDB"
            ))
        } else if self.has_control() {
            Some(format!(
                "with {statement}. No command can name it: the table, a column or its key has characters of control"
            ))
        } else if self.condition.is_empty() && self.key.is_empty() {
            Some(format!(
                "with {statement}. The table has no primary key that finds the row: add one"
            ))
        } else if self.condition.is_empty() {
            Some(format!(
                "with {statement}. The row is not known: run slotted advise again"
            ))
        } else {
            None
        }
    }

    /// Whether a name or the condition has characters that a line of a shell does not have.
    fn has_control(&self) -> bool {
        let mut texts = [&self.schema, &self.table, &self.condition]
            .into_iter()
            .chain(&self.columns);
        texts.any(|text| text.contains(char::is_control))
    }

    /// The commands that replace the row by counters of this number of slots, one for each column.
    fn adopt(&self, slots: u32) -> String {
        let [schema, table] = [&self.schema, &self.table].map(|name| Ident::stored(name).plain());
        let place = format!("{schema}.{table}");
        let command = |column: &String| {
            let name = counter_name(&self.table, column, &self.condition);
            let mut run = format!(
                "slotted adopt --url URL --table {} --column {} --where {} --counter {} --slots {slots}",
                shell_word(&place),
                shell_word(column),
                shell_word(&self.condition),
                shell_word(&name),
            );
            if self.takes {
                run += &format!(
                    " --prefix bounded_counter_\n-- In place of the statement: CALL bounded_counter_take({}, amount); after: slotted install counters --bounded",
                    SqlStr(&name)
                );
            }
            run
        };
        self.columns.iter().map(command).collect::<Vec<_>>().join("\n")
    }
}

/// The name of the counter of a row. The servers compare names without case and accents, and a name has at most
/// [`NAME_MAX`] characters: a number that depends on the exact condition makes such names differ.
fn counter_name(table: &str, column: &str, condition: &str) -> String {
    let name = format!("{table}.{column} {condition}");
    let most = NAME_MAX as usize;
    let exact = |c: char| c.is_ascii() && !c.is_ascii_uppercase() && !c.is_ascii_control();
    if name.chars().count() <= most && condition.chars().all(exact) {
        return name;
    }
    // FNV-1a, of which every version of this program gets the same number.
    let hash = condition.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let number = format!(" #{hash:016x}");
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let begin: String = name.chars().map(printable).take(most - number.len()).collect();
    begin + &number
}

/// The recommendation for several rows of one table, if the package `slotted_counters` can have its key.
fn records(rows: &[&Row], needed: u32, rule: &str) -> Option<Advice> {
    let [first, _, ..] = rows else {
        return None;
    };
    let (table, schema) = (&first.table, &first.schema);
    let usable = rows
        .iter()
        .all(|row| row.slots.is_none() && row.obstacle().is_none());
    let ([column], false) = (first.columns.as_slice(), first.takes) else {
        return None;
    };
    let prefix = format!("{table}_{column}_");
    // The longest suffix of a name of the package is that of its roll-up's table, which also has the target.
    let simple = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let names = [schema, table, column]
        .into_iter()
        .chain(first.key.iter().map(|one| &one.name));
    if !usable || !names.into_iter().all(|name| simple(name)) || prefix.len() * 2 + 16 > IDENT_MAX {
        return None;
    }
    let key: Vec<String> = first.key.iter().map(KeyColumn::option).collect();
    let key = key.join(", ");
    key.parse::<Key>().ok()?;
    let columns: Vec<&str> = first.key.iter().map(|one| one.name.as_str()).collect();
    let columns = columns.join(", ");
    let mut options = format!(
        "slotted_counters --key {} --table {table}_{column} --prefix {prefix} --slots {needed}",
        shell_word(&key)
    );
    if let Some(collation) = first.key.iter().find_map(|one| one.collation.as_ref()) {
        options += &format!(" --collation {collation}");
    }
    let rollup = match first.key.as_slice() {
        [one] => format!(" --rollup {table}.{}:{column}", one.name),
        _ => String::new(),
    };
    let waiting: f64 = rows.iter().map(|row| row.waiting).sum();
    let mut run = format!(
        "-- A counter for each row of the table, in place of the column:\n\
         slotted install --url URL --database {schema} {options}{rollup}\n\
         -- In place of the statement: CALL {prefix}add({columns}, amount);\n"
    );
    run += &if rollup.is_empty() {
        format!(
            "-- Then move the counts of the column:\n\
             slotted adopt --url URL --database {schema} --from {table}.{column} --key {} --prefix {prefix}\n",
            shell_word(&columns)
        )
    } else {
        format!(
            "-- When no session writes the column any more, import its counts. CALL {prefix}rollup(NULL) writes the totals into it:\n\
             slotted generate {options}{rollup} --out {prefix}sql\n\
             mysql {schema} < {prefix}sql/slotted_counters/import.sql\n"
        )
    };
    run += "-- Or a counter for each of these rows:";
    for row in rows {
        run += &format!("\n{}", row.adopt(needed));
    }
    Some(Advice {
        subject: format!("{schema}.{table}: {column} of {} rows", rows.len()),
        verdict: Verdict::Records(needed),
        because: format!(
            "{}, with {}. {needed} slots: {rule}",
            waits(waiting),
            first.statement
        ),
        run,
        read_us: None,
    })
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
                Row {
                    schema: "shop".into(),
                    table: "pages".into(),
                    condition: "id = 1".into(),
                    columns: vec!["hits".into()],
                    waiting: 3.0,
                    ..Row::default()
                },
                Row {
                    schema: "shop".into(),
                    table: "stock".into(),
                    condition: "id = 42".into(),
                    columns: vec!["qty".into()],
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
                     --counter 'stock.qty id = 42' --slots 257 --prefix bounded_counter_\n\
                     -- In place of the statement: CALL bounded_counter_take('stock.qty id = 42', amount); after: slotted install counters --bounded";
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
        assert_eq!(server.counters[1].read_with(16), Some(55.0));
        let read = server.counters[2].read_with(257).expect("it was measured");
        assert!((read - 42.6).abs() < 0.1, "{read}");
    }
}
