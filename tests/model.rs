//! Random sequences of calls and of the statements of queries.sql, compared with a model: a map of totals, and a copy of it for
//! each savepoint.
//!
//! The sequences are the same in each run. SLOTTED_MODEL_CASES runs more of them, and SLOTTED_MODEL_SEED runs others.

mod plain;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::fmt::Debug;
use std::panic;
use std::thread;

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseResult, TestError, TestRng, TestRunner};
use slotted::package::{Options, Package, Slots};

use self::plain::{Part, Plain, Statements};
use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, bounded, bounded_keyed, cases, error_of, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(counters_equal_the_model)
        .on_servers(counters_with_fixed_slots_equal_the_model)
        .on_servers(slotted_counters_equal_the_model)
        .on_servers(columns_equal_the_model)
        .on_servers(bounded_counters_equal_the_model)
        .on_servers(bounded_records_equal_the_model)
        .on_servers(interleaved_small_amounts_in_existing_counters_equal_the_model)
        .on_servers(interleaved_small_amounts_in_existing_counters_with_fixed_slots_equal_the_model)
        .on_servers(interleaved_small_amounts_in_slotted_counters_without_deletes_equal_the_model)
        .on_servers(interleaved_small_amounts_in_existing_bounded_counters_equal_the_model)
        .on_servers(interleaved_small_amounts_in_existing_bounded_records_equal_the_model)
        .private()
        .on_servers(routines_on_a_node_equal_the_model)
        .on_servers(interleaved_small_amounts_on_nodes_without_resets_and_deletes_equal_the_model);
}

/// The sequences of a promise in a test run, for each of two packages. They take a few seconds.
const CASES: u32 = 30;

/// The interleaved sequences of a promise. Each waits for some locks for a second.
const INTERLEAVED_CASES: u32 = 16;

/// The fixed number of slots in the model.
const FIXED: i64 = 4;

const ISOLATION_LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// The value of auto_increment_increment on a node of a cluster.
const NODES: i64 = 3;

/// The key columns as arguments of a call: a name, or the columns of a record. Some are not valid.
type Key = &'static str;

const NAMES: [Key; 3] = ["'a'", "'b'", "NULL"];
const RECORDS: [Key; 4] = ["1, 7", "1, 8", "NULL, 7", "3000000000, 7"];
const ROWS: [Key; 4] = ["1", "2", "3", "NULL"];

/// The largest value of the column: INT UNSIGNED.
const LARGEST: i128 = u32::MAX as i128;

/// The ends of BIGINT, and half of it.
const EXTREMES: [i64; 6] = [i64::MIN, i64::MIN + 1, -(1 << 62), 1 << 62, i64::MAX - 1, i64::MAX];

/// Stands for an outcome that queries.sql documents, and that is not an error: the statements have to be executed again.
const AGAIN: u16 = 0;

/// The error of a bounded slot that would be negative. MariaDB has another number.
const CHECK: u16 = 3819;

#[derive(Clone, Debug)]
enum Call {
    Setup(Key, Option<i64>, Option<i64>),
    Increment(Key),
    Add(Key, Option<i64>),
    AddMany(Vec<(Key, i64)>),
    Take(Key, i64),
    Reset(Key, Option<i64>, bool),
    Resize(Key, i64),
    Compact(Key),
    CompactIdle,
    Delete(Key),
    Get(Key),
    Rollup(Option<i64>),
    /// A statement of queries.sql that no routine does alone.
    Part(Key, Part),
    /// A statement of the application that changes the row of the column.
    Row(Key, Change),
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Add(i64),
    Delete,
    Replace(Option<i64>),
}

impl Call {
    /// The key, if there is exactly one.
    fn key(&self) -> Option<Key> {
        match self {
            Self::AddMany(_) | Self::CompactIdle | Self::Rollup(_) => None,
            Self::Setup(key, ..)
            | Self::Increment(key)
            | Self::Add(key, _)
            | Self::Take(key, _)
            | Self::Reset(key, ..)
            | Self::Resize(key, _)
            | Self::Compact(key)
            | Self::Delete(key)
            | Self::Get(key)
            | Self::Part(key, _)
            | Self::Row(key, _) => Some(key),
        }
    }

    /// The amounts and values.
    fn amounts(&self) -> Vec<i64> {
        match self {
            Self::Increment(_) => vec![1],
            Self::Setup(_, _, amount) | Self::Add(_, amount) | Self::Reset(_, amount, _) => amount.iter().copied().collect(),
            Self::AddMany(entries) => entries.iter().map(|(_, amount)| *amount).collect(),
            Self::Take(_, amount) => vec![*amount],
            _ => Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Call(Call),
    Plain(Plain),
    /// Begins a transaction, perhaps with a snapshot that is older than its first statement.
    Begin(bool),
    Commit,
    Rollback,
    Savepoint(&'static str),
    RollbackTo(&'static str),
    Release(&'static str),
}

/// A step and the number of the connection that runs it. A transaction stays on its connection.
type Steps = Vec<(usize, Step)>;

/// The value that a statement returns, or the number of its error.
type Outcome = Result<Option<i128>, u16>;

/// A counter of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counter {
    total: i128,
    /// The number of slots, if it is known: that of a record only after a compaction.
    slots: Option<i64>,
    /// The column, if its row exists: a part of the total.
    row: Option<i128>,
}

type Counters = BTreeMap<String, Counter>;

/// What the rows of a counter have on the server.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    total: i128,
    /// The counts of its slots.
    least: i128,
    most: i128,
    /// The count of slot 0, which belongs to no connection.
    first: Option<i128>,
    row: Option<i128>,
}

type Read = BTreeMap<String, Found>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    PerCounter,
    Fixed,
    Records,
    Column,
}

#[derive(Clone, Copy, Debug)]
struct Kind {
    form: Form,
    bounded: bool,
    /// Outside a transaction, maintenance of unbounded counters changes one slot in each statement, as on a node of a cluster.
    nodes: bool,
}

const COUNTERS: Kind = Kind { form: Form::PerCounter, bounded: false, nodes: false };
const FIXED_COUNTERS: Kind = Kind { form: Form::Fixed, ..COUNTERS };
const SLOTTED_COUNTERS: Kind = Kind { form: Form::Records, ..COUNTERS };
const COLUMNS: Kind = Kind { form: Form::Column, ..COUNTERS };
const BOUNDED_COUNTERS: Kind = Kind { bounded: true, ..COUNTERS };
const BOUNDED_RECORDS: Kind = Kind { bounded: true, ..SLOTTED_COUNTERS };

/// The entries of an add_many.
fn entries(entries: &[(Key, i64)]) -> String {
    let json = |key: Key| key.replace('\'', "\"").replace("NULL", "null");
    let entries: Vec<_> = entries.iter().map(|(key, amount)| format!("[{}, {amount}]", json(key))).collect();
    format!("[{}]", entries.join(", "))
}

impl Kind {
    fn package(self) -> Package {
        let change = |options: &mut Options| {
            if self.form != Form::PerCounter {
                options.slots = Slots::Fixed(FIXED as u32);
            }
        };
        match self.form {
            Form::PerCounter | Form::Fixed if self.bounded => bounded(change),
            Form::PerCounter | Form::Fixed => package(change),
            Form::Records if self.bounded => bounded_keyed(change),
            Form::Records => keyed(change),
            Form::Column => of_column("articles.views", "id BIGINT", change),
        }
    }

    fn records(self) -> bool {
        matches!(self.form, Form::Records | Form::Column)
    }

    /// The keys that are valid, and then others.
    fn keys(self) -> &'static [Key] {
        match self.form {
            Form::PerCounter | Form::Fixed => &NAMES,
            Form::Records => &RECORDS,
            Form::Column => &ROWS,
        }
    }

    /// The error of a key that is not valid.
    fn key_error(self, key: Key) -> Option<u16> {
        match key {
            "NULL" if !self.records() => Some(30001),
            "NULL" | "NULL, 7" => Some(30009),
            "3000000000, 7" => Some(30010),
            _ => None,
        }
    }

    /// The slots that a setup of named counters creates, if the number is an argument.
    fn slots_argument(self) -> Option<i64> {
        (self.form == Form::PerCounter).then_some(4)
    }

    /// The error of a number of slots that a counter cannot have.
    fn slots_error(self, slots: i64) -> Option<u16> {
        match slots {
            ..1 => Some(30005),
            _ if self.nodes && slots < NODES => Some(30018),
            _ => None,
        }
    }

    /// The counters of a new sequence.
    fn first(self) -> Counters {
        let rows = [("1", Some(10)), ("2", None), ("3", None)].into_iter().filter(|_| self.form == Form::Column);
        let counter = |row: Option<i128>| Counter { total: row.unwrap_or(0), slots: None, row };
        rows.map(|(key, row)| (key.to_owned(), counter(row))).collect()
    }

    /// Takes an amount, if the total is enough.
    fn take(self, counters: &mut Counters, key: Key, amount: i128) -> Outcome {
        self.change(counters, key, |total| if total < amount { Err(30016) } else { Ok(total - amount) })
    }

    /// Changes a total. A record without rows has the total 0.
    fn change(self, counters: &mut Counters, key: Key, change: impl Fn(i128) -> Result<i128, u16>) -> Outcome {
        let before = match counters.get(key) {
            None if !self.records() => return Err(30003),
            counter => counter.map_or(0, |counter| counter.total),
        };
        let total = change(before)?;
        if total != before {
            let counter = counters.entry(key.to_owned()).or_insert(Counter { total, slots: None, row: None });
            counter.total = total;
            if self.records() {
                counter.slots = None;
            }
        }
        Ok(None)
    }

    /// Moves the pending counts of a record into its column, if this can have the total.
    fn move_pending(counter: &mut Counter) -> Result<(), u16> {
        match &mut counter.row {
            Some(row) if *row != counter.total => {
                if !(0..=LARGEST).contains(&counter.total) {
                    return Err(30013);
                }
                *row = counter.total;
            }
            _ => {}
        }
        Ok(())
    }

    /// What the statement of an application does to the row of a column.
    fn row(counter: &mut Counter, change: Change) -> Outcome {
        let column = counter.row.unwrap_or(0);
        match change {
            Change::Add(_) if counter.row.is_none() => {}
            Change::Add(amount) if column + i128::from(amount) < 0 => return Err(1264),
            Change::Add(amount) => {
                counter.row = Some(column + i128::from(amount));
                counter.total += i128::from(amount);
            }
            Change::Delete => (counter.row, counter.total) = (None, counter.total - column),
            Change::Replace(value) => {
                let value = value.unwrap_or(0).into();
                (counter.row, counter.total) = (Some(value), counter.total - column + value);
            }
        }
        Ok(None)
    }

    /// The error of a call whose arguments no counter can have.
    fn rejected(self, call: &Call) -> Option<u16> {
        match call {
            Call::Resize(_, slots) if self.slots_error(*slots).is_some() => return self.slots_error(*slots),
            _ => {}
        }
        if let Some(error) = call.key().and_then(|key| self.key_error(key)) {
            return Some(error);
        }
        match call {
            Call::AddMany(entries) if entries.iter().any(|(key, _)| self.key_error(key).is_some()) => Some(30015),
            Call::AddMany(entries) if self.bounded && entries.iter().any(|(_, amount)| *amount < 0) => Some(30020),
            Call::Add(_, None) => Some(30007),
            _ => None,
        }
    }

    /// What a call does to the counters, and what it returns. After an error, the counters are as before. On nodes, only the server
    /// knows which counts of a record a node has written itself: it moves no others.
    fn call(self, counters: &mut Counters, call: &Call, found: Outcome) -> Outcome {
        let records = self.records();
        if let Some(error) = self.rejected(call) {
            return Err(error);
        }
        match call {
            Call::AddMany(entries) => {
                let mut sums: BTreeMap<Key, i128> = BTreeMap::new();
                entries.iter().for_each(|(key, amount)| *sums.entry(key).or_default() += i128::from(*amount));
                let mut after = counters.clone();
                for (key, amount) in sums {
                    self.change(&mut after, key, |total| Ok(total + amount))?;
                }
                *counters = after;
                Ok(None)
            }
            Call::CompactIdle => {
                // One slot cannot have a total that exceeds BIGINT.
                counters.values_mut().for_each(|counter| counter.slots = i64::try_from(counter.total).is_ok().then_some(1));
                Ok(None)
            }
            Call::Reset(_, Some(value), _) if self.bounded && *value < 0 => Err(30019),
            Call::Setup(_, _, Some(value)) if self.bounded && records && *value < 0 => Err(30019),
            Call::Setup(key, _, _) if records && counters.contains_key(*key) => Err(30004),
            Call::Setup(key, _, value) if records => {
                counters.insert(key.to_string(), Counter { total: value.unwrap_or(0).into(), slots: None, row: None });
                Ok(None)
            }
            Call::Setup(key, slots, value) => {
                let slots = match self.form {
                    Form::Fixed if slots.is_some_and(|slots| slots != FIXED) => return Err(30006),
                    Form::Fixed => FIXED,
                    _ => slots.unwrap_or(5),
                };
                if let Some(error) = self.slots_error(slots) {
                    return Err(error);
                }
                if self.bounded && value.is_some_and(|value| value < 0) {
                    return Err(30019);
                }
                if counters.contains_key(*key) {
                    return Err(30004);
                }
                let counter = Counter { total: value.unwrap_or(0).into(), slots: Some(slots), row: None };
                counters.insert(key.to_string(), counter);
                Ok(None)
            }
            Call::Increment(key) => self.change(counters, key, |total| Ok(total + 1)),
            Call::Add(_, None) => Err(30007),
            Call::Add(key, Some(amount)) if self.bounded && *amount < 0 => self.take(counters, key, -i128::from(*amount)),
            Call::Add(key, Some(amount)) => self.change(counters, key, |total| Ok(total + i128::from(*amount))),
            Call::Take(_, amount) if *amount < 1 => Err(30017),
            Call::Take(key, amount) => self.take(counters, key, (*amount).into()),
            Call::Reset(key, value, _) if records => {
                let counter = counters.entry(key.to_string()).or_insert(Counter { total: 0, slots: None, row: None });
                (counter.total, counter.slots) = (value.unwrap_or(0).into(), None);
                // A value that the column cannot have stays pending.
                let _ = Self::move_pending(counter);
                Ok(None)
            }
            Call::Reset(key, value, _) => self.change(counters, key, |_| Ok(value.unwrap_or(0).into())),
            Call::Resize(key, slots) => {
                counters.get_mut(*key).ok_or(30003u16)?.slots = Some(*slots);
                Ok(None)
            }
            Call::Compact(_) | Call::Rollup(_) if self.form == Form::Column && self.nodes => {
                counters.values_mut().for_each(|counter| _ = Self::move_pending(counter));
                if found == Err(30013) { found } else { Ok(None) }
            }
            Call::Compact(key) if self.form == Form::Column => {
                counters.get_mut(*key).map_or(Ok(()), Self::move_pending)?;
                Ok(None)
            }
            Call::Rollup(_) => {
                let moved: Vec<_> = counters.values_mut().map(Self::move_pending).collect();
                moved.into_iter().collect::<Result<(), u16>>()?;
                Ok(None)
            }
            Call::Row(key, change) => Self::row(counters.get_mut(*key).expect("a row of the model"), *change),
            Call::Compact(key) => {
                if let Some(counter) = counters.get_mut(*key) {
                    counter.slots = Some(1);
                }
                Ok(None)
            }
            Call::Delete(key) if self.form == Form::Column => {
                let counter = counters.get_mut(*key).expect("a row of the model");
                counter.total = counter.row.unwrap_or(0);
                Ok(None)
            }
            Call::Delete(key) => match counters.remove(*key) {
                None if !records => Err(30003),
                _ => Ok(None),
            },
            Call::Get(key) => match counters.get(*key).map(|counter| counter.total) {
                None if !records => Err(30003),
                Some(total) if i64::try_from(total).is_err() => Err(30008),
                total => Ok(Some(total.unwrap_or(0))),
            },
            Call::Part(..) => panic!("no routine: {call:?}"),
        }
    }

    fn statement(self, step: &Step) -> String {
        let prefix = match self.form {
            Form::PerCounter | Form::Fixed if self.bounded => "bounded_counter",
            Form::PerCounter | Form::Fixed => "counter",
            Form::Records if self.bounded => "bounded_slotted_counter",
            Form::Records => "slotted_counter",
            Form::Column => "articles_views",
        };
        let or_null = |number: &Option<i64>| number.map_or("NULL".to_owned(), |number| number.to_string());
        let call = match step {
            Step::Call(call) => call,
            Step::Plain(plain) => panic!("several statements: {plain:?}"),
            Step::Begin(false) => return "START TRANSACTION".to_owned(),
            Step::Begin(true) => return "START TRANSACTION WITH CONSISTENT SNAPSHOT".to_owned(),
            Step::Commit => return "COMMIT".to_owned(),
            Step::Rollback => return "ROLLBACK".to_owned(),
            Step::Savepoint(name) => return format!("SAVEPOINT {name}"),
            Step::RollbackTo(name) => return format!("ROLLBACK TO SAVEPOINT {name}"),
            Step::Release(name) => return format!("RELEASE SAVEPOINT {name}"),
        };
        match call {
            Call::Setup(key, _, value) if self.records() => {
                format!("CALL {prefix}_setup({key}, {})", or_null(value))
            }
            Call::Setup(key, slots, value) => {
                format!("CALL {prefix}_setup({key}, NULL, {}, {})", or_null(slots), or_null(value))
            }
            Call::Increment(key) => format!("CALL {prefix}_increment({key})"),
            Call::Add(key, amount) => format!("CALL {prefix}_add({key}, {})", or_null(amount)),
            Call::AddMany(list) => format!("CALL {prefix}_add_many('{}')", entries(list)),
            Call::Take(key, amount) => format!("CALL {prefix}_take({key}, {amount})"),
            Call::Reset(key, value, _) if self.records() => {
                format!("CALL {prefix}_reset({key}, {})", or_null(value))
            }
            Call::Reset(key, value, restart) => {
                format!("CALL {prefix}_reset({key}, {}, {restart})", or_null(value))
            }
            Call::Resize(key, slots) => format!("CALL {prefix}_resize({key}, {slots})"),
            Call::Compact(key) => format!("CALL {prefix}_compact({key})"),
            Call::CompactIdle => format!("CALL {prefix}_compact_idle(0, NULL)"),
            Call::Delete(key) => format!("CALL {prefix}_delete({key})"),
            Call::Get(key) => format!("SELECT {prefix}_get({key})"),
            Call::Rollup(batch) => format!("CALL {prefix}_rollup({})", or_null(batch)),
            Call::Row(key, Change::Add(amount)) => {
                format!("UPDATE articles SET views = COALESCE(views, 0) + ({amount}) WHERE id = {key}")
            }
            Call::Row(key, Change::Delete) => format!("DELETE FROM articles WHERE id = {key}"),
            Call::Row(key, Change::Replace(value)) => {
                format!("REPLACE INTO articles (id, views) VALUES ({key}, {})", or_null(value))
            }
            Call::Part(..) => panic!("no routine: {call:?}"),
        }
    }

    /// The totals and the numbers of slots that a view or the statement `totals` returns: -1 if a resize is incomplete.
    fn totals(self, connection: &mut Conn, query: &str) -> BTreeMap<String, (i64, i64)> {
        let total = |row: Row| {
            let number = |column: &str| row.get::<i64, _>(column).unwrap_or_else(|| panic!("{column} in {row:?}"));
            let key = match self.form {
                Form::PerCounter | Form::Fixed => format!("'{}'", row.get::<String, _>("counter_name").expect("a name")),
                Form::Records => format!("{}, {}", number("record_type"), number("record_id")),
                Form::Column => number("id").to_string(),
            };
            let incomplete = !self.records() && number("resize_incomplete") != 0;
            (key, (number("total"), if incomplete { -1 } else { number("slots") }))
        };
        connection.query_map(query, total).expect(query).into_iter().collect()
    }

    /// What the rows of a connection have.
    fn read(self, connection: &mut Conn, table: &str) -> Read {
        let query = match self.form {
            Form::PerCounter | Form::Fixed => format!(
                "SELECT CONCAT('\\'', counter_name, '\\''), CAST(SUM(counter) AS CHAR), MIN(counter), MAX(counter), NULL, NULL \
                 FROM {table} GROUP BY counter_name"
            ),
            Form::Records => format!(
                "SELECT CONCAT(record_type, ', ', record_id), CAST(SUM(count) AS CHAR), MIN(count), MAX(count), MAX(IF(slot = 0, count, NULL)), NULL \
                 FROM {table} GROUP BY record_type, record_id"
            ),
            Form::Column => format!(
                "SELECT CAST(id AS CHAR), CAST(SUM(count) AS CHAR), MIN(count), MAX(count), MAX(first), MAX(view) FROM ( \
                 SELECT id, count, IF(slot = 0, count, NULL) AS first, NULL AS view FROM {table} \
                 UNION ALL SELECT id, COALESCE(views, 0), NULL, COALESCE(views, 0) FROM articles \
                 UNION ALL SELECT 1, 0, NULL, NULL UNION ALL SELECT 2, 0, NULL, NULL UNION ALL SELECT 3, 0, NULL, NULL) AS parts GROUP BY id"
            ),
        };
        let found = |(key, total, least, most, first, row): (String, String, i64, i64, Option<i64>, Option<i64>)| {
            let total = total.parse().expect("a number");
            (key, Found { total, least: least.into(), most: most.into(), first: first.map(i128::from), row: row.map(i128::from) })
        };
        connection.query_map(&query, found).expect(&query).into_iter().collect()
    }

    /// Calls, with the weight of the ends of BIGINT among amounts.
    fn calls(self, extremes: u32) -> BoxedStrategy<Call> {
        let keys = self.keys();
        let key = move || prop_oneof![12 => Just(keys[0]), 6 => Just(keys[1]), 1 => prop::sample::select(keys[2..].to_vec())];
        // A column cannot have a negative total.
        let least = if self.form == Form::Column { -60i64 } else { -20 };
        let extreme = || prop::sample::select(EXTREMES.to_vec());
        let value = move || prop::option::weighted(0.9, prop_oneof![40 => least / 4..100, extremes => extreme()]);
        let amount = move || prop::option::weighted(0.95, prop_oneof![40 => least..60, extremes => extreme()]);
        let entry = move || (key(), prop_oneof![60 => -5i64..20, extremes => extreme()]);
        let changes = prop_oneof![
            4 => key().prop_map(Call::Increment),
            4 => (key(), amount()).prop_map(|(key, amount)| Call::Add(key, amount)),
            3 => prop::collection::vec(entry(), 0..4).prop_map(Call::AddMany),
            2 => (key(), value(), any::<bool>())
                .prop_map(|(key, value, restart)| Call::Reset(key, value, restart)),
            1 => key().prop_map(Call::Delete),
            2 => key().prop_map(Call::Get),
        ]
        .boxed();
        let setup = |slots: BoxedStrategy<Option<i64>>| {
            (key(), slots, value()).prop_map(|(key, slots, value)| Call::Setup(key, slots, value)).boxed()
        };
        let take = (key(), prop_oneof![5 => -1i64..2, 30 => 1i64..40, extremes => extreme()])
            .prop_map(|(key, amount)| Call::Take(key, amount))
            .boxed();
        let compact = prop_oneof![4 => key().prop_map(Call::Compact), 1 => Just(Call::CompactIdle)].boxed();
        let mut weighted = vec![(10, changes)];
        if self.bounded {
            weighted.push((4, take));
        }
        weighted.push(match self.form {
            Form::PerCounter => {
                let resize = (key(), 0i64..9).prop_map(|(key, slots)| Call::Resize(key, slots));
                (2, prop_oneof![1 => setup(prop::option::of(0i64..8).boxed()), 2 => resize].boxed())
            }
            Form::Fixed => (2, setup(prop::option::of(FIXED - 1..=FIXED).boxed())),
            Form::Records if self.bounded => (2, prop_oneof![1 => setup(Just(None).boxed()), 3 => compact].boxed()),
            Form::Records => (2, compact),
            Form::Column => {
                let row = prop_oneof![
                    4 => (-5i64..20).prop_map(Change::Add),
                    1 => Just(Change::Delete),
                    2 => prop::option::weighted(0.8, 0i64..100).prop_map(Change::Replace),
                ];
                let rows = (prop::sample::select(ROWS[..3].to_vec()), row).prop_map(|(key, change)| Call::Row(key, change));
                let rollup = prop::option::of(1i64..4).prop_map(Call::Rollup);
                (8, prop_oneof![2 => rollup, 1 => key().prop_map(Call::Compact), 2 => rows].boxed())
            }
        });
        prop::strategy::Union::new_weighted(weighted).boxed()
    }

    /// Calls that only depend on the totals of existing counters. Those of bounded counters subtract only by a take.
    fn interleaved_calls(self) -> BoxedStrategy<Call> {
        let keys = self.keys();
        let least: i64 = if self.bounded { 0 } else { -30 };
        let key = move || prop_oneof![24 => Just(keys[0]), 6 => Just(keys[1]), 1 => prop::sample::select(keys[2..].to_vec())];
        let more = match self.form {
            Form::Records => key().prop_map(Call::Compact).boxed(),
            Form::Fixed => key().prop_map(Call::Get).boxed(),
            _ => (key(), 1i64..9).prop_map(|(key, slots)| Call::Resize(key, slots)).boxed(),
        };
        let take = if self.bounded {
            (key(), 1i64..40).prop_map(|(key, amount)| Call::Take(key, amount)).boxed()
        } else {
            (key(), -40i64..0).prop_map(|(key, amount)| Call::Add(key, Some(amount))).boxed()
        };
        let add = prop::option::weighted(0.95, least..60);
        prop_oneof![
            5 => key().prop_map(Call::Increment),
            3 => (key(), add).prop_map(|(key, amount)| Call::Add(key, amount)),
            2 => prop::collection::vec((key(), least / 3..20), 1..3).prop_map(Call::AddMany),
            5 => take,
            2 * u32::from(!self.nodes) => (key(), 0i64..100).prop_map(|(key, value)| Call::Reset(key, Some(value), false)),
            3 => key().prop_map(Call::Get),
            4 => more,
        ]
        .boxed()
    }

    /// Calls that statements of queries.sql do, some of them alone.
    fn statements(self, calls: BoxedStrategy<Call>) -> BoxedStrategy<Plain> {
        let keys = self.keys();
        let key = move || prop_oneof![12 => Just(keys[0]), 6 => Just(keys[1]), 1 => prop::sample::select(keys[2..].to_vec())];
        let slots = 1i64..9;
        let part = match self.form {
            Form::PerCounter if self.bounded => prop_oneof![
                1 => slots.clone().prop_map(Part::Grow),
                2 => Just(Part::Shrink),
                1 => slots.clone().prop_map(Part::DeleteRetired),
            ]
            .boxed(),
            Form::PerCounter => prop_oneof![
                1 => slots.clone().prop_map(Part::Grow),
                2 => Just(Part::Shrink),
                1 => slots.clone().prop_map(Part::Fold),
                1 => slots.clone().prop_map(Part::DeleteRetired),
            ]
            .boxed(),
            _ => prop::sample::select(vec![Part::FirstSlot, Part::Compact, Part::CompactRest]).boxed(),
        };
        let parts = (key(), part).prop_map(|(key, part)| Call::Part(key, part));
        let calls = calls.prop_filter_map("no statement", move |call| call.by_statements(self)).boxed();
        let calls = if self.form == Form::Fixed { calls } else { prop_oneof![4 => calls, 1 => parts].boxed() };
        (calls, slots, any::<bool>()).prop_map(|(call, slots, on_nodes)| Plain { call, slots, on_nodes }).boxed()
    }

    /// The calls and transactions of three connections, in any order.
    fn interleaved_steps(self) -> impl Strategy<Value = Steps> {
        let calls = self.interleaved_calls();
        let call = prop_oneof![calls.clone().prop_map(Step::Call), self.statements(calls).prop_map(Step::Plain)].boxed();
        let ends = vec![Step::RollbackTo("s1"), Step::RollbackTo("s1"), Step::RollbackTo("s2"), Step::Release("s1")];
        let name = prop::sample::select(vec!["s1", "s1", "s1", "s2"]);
        let saved = (name, prop::collection::vec(call.clone(), 0..3), prop::sample::select(ends)).prop_map(|(name, mut steps, end)| {
            steps.insert(0, Step::Savepoint(name));
            steps.push(end);
            steps
        });
        let part = prop_oneof![2 => call.clone().prop_map(|call| vec![call]), 1 => saved];
        let end = prop_oneof![3 => Just(Step::Commit), 1 => Just(Step::Rollback)];
        let transaction = (any::<bool>(), prop::collection::vec(part, 1..4), end).prop_map(|(snapshot, parts, end)| {
            let parts = parts.into_iter().flatten();
            [Step::Begin(snapshot)].into_iter().chain(parts).chain([end]).collect::<Vec<_>>()
        });
        let work = prop_oneof![1 => call.prop_map(|call| vec![call]), 1 => transaction];
        let programs = prop::array::uniform3(prop::collection::vec(work, 0..4));
        (programs, prop::collection::vec(0..CONNECTIONS, 40)).prop_map(|(programs, order)| {
            let mut programs = programs.map(|program| program.into_iter().flatten());
            // At the end what is left: a connection has at most three transactions of 14 steps.
            let order = order.into_iter().chain((0..CONNECTIONS).cycle().take(CONNECTIONS * 3 * 14));
            order.filter_map(|connection| Some((connection, programs[connection].next()?))).collect()
        })
    }

    /// Steps in any order. A part of the sequences has totals near the ends of BIGINT.
    fn steps(self) -> impl Strategy<Value = Steps> {
        let steps = |extremes: u32| {
            let calls = self.calls(extremes);
            let name = || prop::sample::select(vec!["s1", "s2"]);
            let step = prop_oneof![
                16 => calls.clone().prop_map(Step::Call),
                8 => self.statements(calls).prop_map(Step::Plain),
                3 => any::<bool>().prop_map(Step::Begin),
                1 => Just(Step::Commit),
                1 => Just(Step::Rollback),
                2 => name().prop_map(Step::Savepoint),
                2 => name().prop_map(Step::RollbackTo),
                1 => name().prop_map(Step::Release),
            ];
            prop::collection::vec((0..CONNECTIONS, step), 1..40)
        };
        prop_oneof![5 => steps(1), 1 => steps(20)]
    }
}

/// The connections of a sequence. Most of them select different slots, so that a counter has counts in several slots.
const CONNECTIONS: usize = 3;

/// A transaction: its state, and a copy of the state for each savepoint.
struct Transaction<T> {
    now: T,
    savepoints: Vec<(&'static str, T)>,
}

/// Controls the transaction of a connection. `begin` is the state of a new one. Returns the state that is committed.
fn control<T: Clone>(open: &mut Option<Transaction<T>>, step: &Step, begin: T) -> Result<Option<T>, u16> {
    let mut committed = None;
    match (step, &mut *open) {
        (Step::Begin(_), _) => {
            committed = open.take();
            *open = Some(Transaction { now: begin, savepoints: Vec::new() });
        }
        (Step::Commit, _) => committed = open.take(),
        (Step::Rollback, _) => *open = None,
        // Outside a transaction, the savepoint ends with its statement.
        (Step::Savepoint(_) | Step::Call(_) | Step::Plain(_), None) => {}
        (Step::Savepoint(name), Some(Transaction { now, savepoints })) => {
            savepoints.retain(|(other, _)| other != name);
            savepoints.push((name, now.clone()));
        }
        (Step::RollbackTo(_) | Step::Release(_), None) => return Err(1305),
        (Step::RollbackTo(name), Some(Transaction { now, savepoints })) => {
            let at = savepoints.iter().position(|(other, _)| other == name).ok_or(1305u16)?;
            savepoints.truncate(at + 1);
            *now = savepoints[at].1.clone();
        }
        (Step::Release(name), Some(Transaction { savepoints, .. })) => {
            let at = savepoints.iter().position(|(other, _)| other == name).ok_or(1305u16)?;
            savepoints.truncate(at);
        }
        (Step::Call(_) | Step::Plain(_), Some(_)) => {}
    }
    Ok(committed.map(|transaction| transaction.now))
}

/// The model of transactions that run one after the other.
struct Model {
    kind: Kind,
    committed: Counters,
    open: Option<Transaction<Counters>>,
    /// The connection of the open transaction.
    connection: usize,
}

impl Model {
    fn new(kind: Kind) -> Self {
        Self { kind, committed: kind.first(), open: None, connection: 0 }
    }

    /// The counters that the connection of the next step reads.
    fn counters(&self) -> &Counters {
        self.open.as_ref().map_or(&self.committed, |open| &open.now)
    }

    /// What a step returns that has returned `found`. `before` is what the rows had.
    fn step(&mut self, connection: usize, step: &Step, before: &Read, found: Outcome) -> Outcome {
        self.connection = connection;
        let (Step::Call(call) | Step::Plain(Plain { call, .. })) = step else {
            let begin = self.counters().clone();
            if let Some(counters) = control(&mut self.open, step, begin)? {
                self.committed = counters;
            }
            return Ok(None);
        };
        let counters = self.open.as_mut().map_or(&mut self.committed, |open| &mut open.now);
        // Maintenance returns 30008 for a total that one slot cannot have.
        let exceeds = match call {
            Call::Get(_) | Call::Delete(_) | Call::Rollup(_) | Call::Row(..) => false,
            Call::Compact(_) if self.kind.form == Form::Column && matches!(step, Step::Call(_)) => false,
            _ => matches!(found, Err(1264 | 1690 | 30008)),
        };
        if exceeds && (call.amounts().into_iter().any(|amount| large(amount.into())) || has_large(before)) {
            // The count of a slot exceeds BIGINT. Maintenance can have changed a part of the slots: the total is as before.
            counters.values_mut().for_each(|counter| counter.slots = None);
            // In steps, the reset of a column has set the other slots to 0 before it fails (docs/guarantees.md).
            if let (Call::Reset(key, ..), Step::Call(_), true, None) = (call, step, self.kind.nodes, &self.open) {
                let (counter, found) = (self.committed.get_mut(*key).expect("a record"), before[*key]);
                counter.total = found.row.unwrap_or(0) + found.first.unwrap_or(0);
            }
            return found;
        }
        if self.kind.form == Form::Column && self.kind.nodes {
            counters.iter_mut().for_each(|(key, counter)| counter.row = before[key].row);
        }
        match step {
            Step::Plain(plain) => self.kind.plain(counters, plain, before, found),
            _ => self.kind.call(counters, call, found),
        }
    }
}

/// Whether two or three such numbers can exceed BIGINT.
fn large(number: i128) -> bool {
    number.unsigned_abs() >= 1 << 61
}

fn has_large(read: &Read) -> bool {
    read.values().any(|found| [found.total, found.least, found.most].into_iter().any(large))
}

/// What a call adds to a total, or the total that it sets.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Add(i64),
    Set(i64),
}

impl Effect {
    fn of(call: &Call) -> Vec<(Key, Self)> {
        match call {
            Call::Increment(key) => vec![(key, Self::Add(1))],
            Call::Add(key, Some(amount)) => vec![(key, Self::Add(*amount))],
            Call::AddMany(entries) => entries.iter().map(|(key, amount)| (*key, Self::Add(*amount))).collect(),
            Call::Take(key, amount) => vec![(key, Self::Add(-amount))],
            Call::Reset(key, value, _) => vec![(key, Self::Set(value.unwrap_or(0)))],
            _ => Vec::new(),
        }
    }
}

/// Effects by the number of their statement. The statements are serializable in the order in which they end, because
/// their locks remain until the end of the transaction.
type Effects = BTreeMap<usize, Vec<(Key, Effect)>>;

/// The model of transactions whose statements are interleaved.
struct Interleaved {
    kind: Kind,
    isolation: Isolation,
    committed: Effects,
    open: [Option<Transaction<Effects>>; CONNECTIONS],
    statements: usize,
}

/// The transactions whose open effects a total includes.
#[derive(Clone, Copy, PartialEq)]
enum Sees {
    Committed,
    Own(usize),
    /// Without the amounts that other transactions have taken and not committed.
    OwnAndTakes(usize),
    All,
}

impl Interleaved {
    fn new(kind: Kind, isolation: Isolation) -> Self {
        Self { kind, isolation, committed: Effects::new(), open: Default::default(), statements: 0 }
    }

    fn total(&self, key: Key, sees: Sees) -> i128 {
        let mut visible = self.committed.clone();
        for (number, open) in self.open.iter().enumerate() {
            for (statement, effects) in open.iter().flat_map(|open| &open.now) {
                let is_take = effects.iter().all(|(_, effect)| matches!(effect, Effect::Add(amount) if *amount < 0));
                let sees = match sees {
                    Sees::Committed => false,
                    Sees::Own(connection) => connection == number,
                    Sees::OwnAndTakes(connection) => connection == number || is_take,
                    Sees::All => true,
                };
                if sees {
                    visible.insert(*statement, effects.clone());
                }
            }
        }
        let of_key = visible.into_values().flatten().filter(|(other, _)| *other == key);
        of_key.fold(0, |total, (_, effect)| match effect {
            Effect::Add(amount) => total + i128::from(amount),
            Effect::Set(value) => value.into(),
        })
    }

    /// What a step returns that has returned `found`.
    fn step(&mut self, connection: usize, step: &Step, found: Outcome) -> Outcome {
        self.statements += 1;
        let (call, plain) = match step {
            Step::Call(call) => (call, false),
            Step::Plain(plain) => (&plain.call, true),
            _ => {
                if let Some(effects) = control(&mut self.open[connection], step, Effects::new())? {
                    self.committed.extend(effects);
                }
                return Ok(None);
            }
        };
        let isolation = self.isolation[connection];
        match found {
            // The call waits for another transaction. It has changed nothing.
            Err(1205) => return found,
            Err(number) if number == 1213 || number == 1020 && isolation == "SERIALIZABLE" => {
                self.open[connection] = None;
                return found;
            }
            // Another transaction has removed slots that the snapshot has, or has added them and not committed.
            Err(AGAIN) if plain => return found,
            _ => {}
        }
        let rejected = if plain { self.kind.without_row(call) } else { self.kind.rejected(call).map(Err) };
        if let Some(result) = rejected {
            return result;
        }
        // A read and the decision of a take depend on the time of the snapshot.
        let snapshot = isolation == "REPEATABLE READ" && self.open[connection].is_some();
        match call {
            Call::Add(_, None) => return Err(1048),
            Call::Get(_) if snapshot && found.is_ok() => return found,
            Call::Get(key) if isolation == "READ UNCOMMITTED" => return Ok(Some(self.total(key, Sees::All))),
            Call::Get(key) => return Ok(Some(self.total(key, Sees::Own(connection)))),
            Call::Take(key, amount) => {
                let short = |sees: Sees| self.total(key, sees) < (*amount).into();
                // A statement takes from one slot.
                if found == Err(30016) && (plain || snapshot || short(Sees::Own(connection))) || short(Sees::OwnAndTakes(connection)) {
                    return Err(30016);
                }
            }
            _ => {}
        }
        let effects = self.open[connection].as_mut().map_or(&mut self.committed, |open| &mut open.now);
        effects.insert(self.statements, Effect::of(call));
        Ok(None)
    }
}

/// The isolation levels of the connections.
type Isolation = [&'static str; CONNECTIONS];

struct Connections {
    callers: Vec<Conn>,
    observer: Conn,
}

impl Connections {
    fn new(schema: &Schema<'_>) -> Self {
        // With 4 slots, they select the slots 1, 2 and 3 of a record.
        let callers = [1, 2, 7].map(|remainder| schema.connect_with_id(remainder, 12)).into();
        Self { callers, observer: schema.connect() }
    }

    /// Ends all transactions and deletes all counters.
    fn restart(&mut self, kind: Kind, table: &str, isolation: Isolation) {
        for (caller, isolation) in self.callers.iter_mut().zip(isolation) {
            caller.query_drop("ROLLBACK").expect("a rollback");
            let isolation = format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}");
            caller.query_drop(isolation).expect("an isolation level");
        }
        self.observer.query_drop(format!("DELETE FROM {table}")).expect("no rows");
        if kind.form == Form::Column {
            self.observer.query_drop("DELETE FROM articles").expect("no rows");
            self.observer.query_drop("INSERT INTO articles (id, views) VALUES (1, 10)").expect("a row");
        }
    }

    /// Runs a step, and adds it to the script.
    fn run(&mut self, subject: &Subject, connection: usize, step: &Step, script: &mut Script) -> Outcome {
        script.of(connection);
        let caller = &mut self.callers[connection];
        let statement = match step {
            Step::Plain(plain) => return subject.statements.execute(caller, plain, &mut script.text),
            step => subject.kind.statement(step),
        };
        script.text += &format!("{statement};\n");
        match caller.query_first::<Option<i64>, _>(&statement) {
            Ok(value) => Ok(value.flatten().map(i128::from)),
            error => Err(error_of(error).0),
        }
    }
}

/// What a model is compared with.
struct Subject {
    kind: Kind,
    statements: Statements,
    table: String,
    /// The statement that reads the view of the totals.
    view: String,
}

impl Subject {
    fn new(kind: Kind, package: &Package) -> Self {
        let view = format!("SELECT * FROM {}totals", package.options.prefix.name());
        Self { kind, statements: Statements::of(package, kind), table: package.options.table.to_string(), view }
    }

    /// Installs a package, and the table of its column.
    fn install<'a>(&self, server: &'a Server, package: &Package) -> Schema<'a> {
        let schema = server.schema();
        if self.kind.form == Form::Column {
            schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT UNSIGNED NULL) ENGINE = InnoDB");
        }
        schema.install(package);
        schema
    }

    /// Compares the rows that a connection reads with the counters of the model, and returns them.
    fn compare_rows(&self, connection: &mut Conn, model: &Counters) -> Result<Read, String> {
        let read = self.kind.read(connection, &self.table);
        let equal = |(key, counter): (&String, &Counter)| {
            read.get(key).is_some_and(|found| {
                // The row of a column has what the node of the server has moved.
                let row = self.kind.nodes || found.row == counter.row;
                found.total == counter.total && row && (!self.kind.bounded || found.least >= 0)
            })
        };
        if read.len() == model.len() && model.iter().all(equal) { Ok(read) } else { Err(format!("{read:?}")) }
    }

    /// Compares what the view or the statement `totals` returns with the counters of the model.
    fn compare_totals(&self, connection: &mut Conn, query: &str, model: &Counters) -> Result<(), String> {
        let found = self.kind.totals(connection, query);
        let of_column = self.kind.form == Form::Column;
        // A column has a total for each of its rows.
        let model: Vec<_> = model.iter().filter(|(_, counter)| !of_column || counter.row.is_some()).collect();
        let equal = |(key, counter): &(&String, &Counter)| {
            found.get(*key).is_some_and(|(total, slots)| {
                // A total beyond the range of BIGINT is shown as the end of the range.
                i128::from(*total) == counter.total.clamp(i64::MIN.into(), i64::MAX.into())
                    && counter.slots.is_none_or(|expected| of_column || expected == *slots)
            })
        };
        if found.len() == model.len() && model.iter().all(equal) { Ok(()) } else { Err(format!("totals and slots {found:?}")) }
    }
}

/// The statements of a sequence, to paste into a client.
struct Script {
    text: String,
    connection: usize,
}

impl Script {
    fn new(isolation: Isolation) -> Self {
        let levels = isolation.iter().enumerate();
        let text = levels.map(|(number, level)| format!("-- connection {number}: SET SESSION TRANSACTION ISOLATION LEVEL {level};\n"));
        Self { text: text.collect(), connection: 0 }
    }

    /// Begins the statements of a connection.
    fn of(&mut self, connection: usize) {
        if connection != self.connection {
            self.text += &format!("-- connection {connection}:\n");
            self.connection = connection;
        }
    }

    /// The failure of a sequence at its last statement.
    fn fails(&self, what: &str, found: impl Debug, expected: impl Debug) -> TestCaseError {
        TestCaseError::fail(format!("{}-- {what}: {found:?}, expected {expected:?}", self.text))
    }
}

/// Runs the sequence on the server and in the model, and compares them after each step.
fn run(connections: &mut Connections, subject: &Subject, isolation: Isolation, steps: &Steps) -> TestCaseResult {
    let kind = subject.kind;
    connections.restart(kind, &subject.table, isolation);
    let mut model = Model::new(kind);
    let mut script = Script::new(isolation);
    let mut before = kind.read(&mut connections.observer, &subject.table);
    // Most calls of named counters need one.
    let setup =
        (!kind.records()).then(|| (0, Step::Call(Call::Setup(NAMES[0], kind.slots_argument(), Some(10)))));
    for (connection, step) in setup.iter().chain(steps).chain(&[(0, Step::Rollback)]) {
        let connection = if model.open.is_some() { model.connection } else { *connection };
        let found = connections.run(subject, connection, step, &mut script);
        let expected = model.step(connection, step, &before, found);
        if found != expected {
            return Err(script.fails("result", found, expected));
        }
        let caller = &mut connections.callers[connection];
        before = match subject.compare_rows(caller, model.counters()) {
            Ok(read) => read,
            Err(found) => return Err(script.fails("rows", found, model.counters())),
        };
        if let Err(found) = subject.compare_totals(caller, &subject.view, model.counters()) {
            return Err(script.fails("view", found, model.counters()));
        }
        // No call commits: another connection reads the counters as they were before the transaction.
        if let Err(found) = subject.compare_totals(&mut connections.observer, subject.statements.totals(), &model.committed) {
            return Err(script.fails("committed", found, &model.committed));
        }
    }
    Ok(())
}

/// A number from the environment.
fn setting(name: &str) -> Option<u64> {
    env::var(name).ok().map(|number| number.parse().unwrap_or_else(|_| panic!("{name} is not a number: {number}")))
}

/// Runs sequences until one fails, and prints the shortest one that fails.
fn sequences<S: Strategy>(cases: u32, seed: u64, strategy: S, test: impl Fn(S::Value) -> TestCaseResult) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    // A sequence that waits for locks takes seconds.
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 5000,
        max_shrink_time: 60_000,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    match runner.run(&strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(reason, _)) => {
            panic!("the shortest sequence with SLOTTED_MODEL_SEED={} that fails:\n{reason}", first_seed())
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

fn first_seed() -> u64 {
    setting("SLOTTED_MODEL_SEED").unwrap_or(1)
}

/// A server whose routines run as on a node of a cluster.
fn node(server: &Server) -> Server {
    server.another(&[&format!("--auto-increment-increment={NODES}")])
}

fn equals_the_model(server: &Server, kind: Kind) {
    let cases = setting("SLOTTED_MODEL_CASES").map_or(cases(CASES), |cases| cases as u32);
    let package = kind.package();
    let subject = Subject::new(kind, &package);
    let schema = subject.install(server, &package);
    let connections = RefCell::new(Connections::new(&schema));
    let isolation = prop::array::uniform3(prop::sample::select(ISOLATION_LEVELS.to_vec()));
    sequences(cases, first_seed(), (isolation, kind.steps()), |(isolation, steps)| {
        run(&mut connections.borrow_mut(), &subject, isolation, &steps)
    });
}

/// Maintenance outside a transaction has steps there.
fn routines_on_a_node_equal_the_model(server: &Server) {
    let server = node(server);
    for kind in [COUNTERS, FIXED_COUNTERS, SLOTTED_COUNTERS, COLUMNS, BOUNDED_COUNTERS, BOUNDED_RECORDS] {
        equals_the_model(&server, Kind { nodes: true, ..kind });
    }
}

/// Runs statements of three connections one after the other. A statement that waits for a lock ends with an error.
fn run_interleaved(connections: &mut Connections, subject: &Subject, isolation: Isolation, steps: &Steps) -> TestCaseResult {
    let kind = subject.kind;
    connections.restart(kind, &subject.table, isolation);
    let mut model = Interleaved::new(kind, isolation);
    let mut script = Script::new(isolation);
    let setup = |key| match kind {
        Kind { form: Form::Records, bounded: false, .. } => Call::Add(key, Some(30)),
        _ => Call::Setup(key, kind.slots_argument(), Some(30)),
    };
    let keys = &kind.keys()[..2];
    for key in keys {
        let found = connections.run(subject, 0, &Step::Call(setup(key)), &mut script);
        assert_eq!(found, Ok(None));
        model.statements += 1;
        model.committed.insert(model.statements, vec![(key, Effect::Set(30))]);
    }
    let commits = (0..CONNECTIONS).map(|connection| (connection, Step::Commit));
    for (connection, step) in steps.iter().cloned().chain(commits) {
        let found = connections.run(subject, connection, &step, &mut script);
        if let Err(error) = found {
            script.text += &format!("-- error {error}\n");
        }
        let expected = model.step(connection, &step, found);
        if found != expected {
            return Err(script.fails("result", found, expected));
        }
    }
    // A call that has waited for a lock can have changed a part of the slots. A second call completes the work.
    for key in keys {
        let call = match kind.form {
            Form::PerCounter => Call::Resize(key, 3),
            Form::Fixed => continue,
            Form::Records | Form::Column => Call::Compact(key),
        };
        let found = connections.run(subject, 0, &Step::Call(call), &mut script);
        assert_eq!(found, Ok(None), "{}", script.text);
    }
    let slots = match kind.form {
        Form::PerCounter => 3,
        Form::Fixed => FIXED,
        Form::Records | Form::Column => 1,
    };
    let counter = |key: &Key| {
        let total = model.total(key, Sees::Committed);
        (key.to_string(), Counter { total, slots: Some(slots), row: None })
    };
    let expected: Counters = keys.iter().map(counter).collect();
    let rows = subject.compare_rows(&mut connections.observer, &expected).map(|_| ());
    match rows.and_then(|()| subject.compare_totals(&mut connections.observer, &subject.view, &expected)) {
        Ok(()) => Ok(()),
        Err(found) => Err(script.fails("counters", found, expected)),
    }
}

/// The workers that run interleaved sequences at the same time, because most of the time they wait for locks.
const WORKERS: u64 = 12;

/// Each worker has one of the kinds.
fn interleaved_equals_the_model(server: &Server, kinds: &[Kind]) {
    let all = setting("SLOTTED_MODEL_CASES").map_or(cases(INTERLEAVED_CASES), |cases| cases as u32);
    thread::scope(|scope| {
        let worker = |number: u64| {
            scope.spawn(move || {
                let kind = kinds[number as usize % kinds.len()];
                let package = kind.package();
                let subject = Subject::new(kind, &package);
                let schema = subject.install(server, &package);
                let mut connections = Connections::new(&schema);
                for caller in &mut connections.callers {
                    caller.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a timeout");
                }
                let connections = RefCell::new(connections);
                let isolation = prop::array::uniform3(prop::sample::select(ISOLATION_LEVELS.to_vec()));
                let seed = first_seed() * WORKERS + number;
                let strategy = (isolation, kind.interleaved_steps());
                sequences(all.div_ceil(WORKERS as u32), seed, strategy, |(isolation, steps)| {
                    run_interleaved(&mut connections.borrow_mut(), &subject, isolation, &steps)
                });
            })
        };
        let workers: Vec<_> = (0..WORKERS).map(worker).collect();
        // The message of a worker is that of the promise.
        workers.into_iter().for_each(|worker| worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
    });
}

fn counters_equal_the_model(server: &Server) {
    equals_the_model(server, COUNTERS);
}

fn counters_with_fixed_slots_equal_the_model(server: &Server) {
    equals_the_model(server, FIXED_COUNTERS);
}

fn slotted_counters_equal_the_model(server: &Server) {
    equals_the_model(server, SLOTTED_COUNTERS);
}

fn columns_equal_the_model(server: &Server) {
    equals_the_model(server, COLUMNS);
}

fn bounded_counters_equal_the_model(server: &Server) {
    equals_the_model(server, BOUNDED_COUNTERS);
}

fn bounded_records_equal_the_model(server: &Server) {
    equals_the_model(server, BOUNDED_RECORDS);
}

fn interleaved_small_amounts_in_existing_counters_equal_the_model(server: &Server) {
    interleaved_equals_the_model(server, &[COUNTERS]);
}

fn interleaved_small_amounts_in_existing_counters_with_fixed_slots_equal_the_model(server: &Server) {
    interleaved_equals_the_model(server, &[FIXED_COUNTERS]);
}

fn interleaved_small_amounts_in_slotted_counters_without_deletes_equal_the_model(server: &Server) {
    interleaved_equals_the_model(server, &[SLOTTED_COUNTERS]);
}

fn interleaved_small_amounts_in_existing_bounded_counters_equal_the_model(server: &Server) {
    interleaved_equals_the_model(server, &[BOUNDED_COUNTERS]);
}

fn interleaved_small_amounts_in_existing_bounded_records_equal_the_model(server: &Server) {
    interleaved_equals_the_model(server, &[BOUNDED_RECORDS]);
}

/// Outside a transaction, a reset that waits for a lock has set a part of the slots (docs/guarantees.md).
fn interleaved_small_amounts_on_nodes_without_resets_and_deletes_equal_the_model(server: &Server) {
    let kinds = [COUNTERS, SLOTTED_COUNTERS, BOUNDED_COUNTERS, BOUNDED_RECORDS];
    interleaved_equals_the_model(&node(server), &kinds.map(|kind| Kind { nodes: true, ..kind }));
}
