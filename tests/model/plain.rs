//! The statements of queries.sql in the model: how an application executes them, and what they do to the counters.

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use slotted::package::Package;

use super::{AGAIN, CHECK, Call, Counter, Counters, FIXED, Form, Found, Key, Kind, NODES, Outcome, Read};
use crate::queries::Queries;
use crate::support::error_of;

/// One statement of the several that change the number of slots, or that compact a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Grow(i64),
    /// Retires or removes the highest slot.
    Shrink,
    Fold(i64),
    DeleteRetired(i64),
    FirstSlot,
    Compact,
    CompactRest,
}

/// A call that statements of queries.sql do in place of a routine.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    pub call: Call,
    /// The number of slots that the application has kept: any number is exact.
    pub slots: i64,
    pub on_nodes: bool,
}

/// The statements of a package.
pub(super) struct Statements {
    queries: Queries,
    kind: Kind,
}

impl Statements {
    pub fn of(package: &Package, kind: Kind) -> Self {
        Self { queries: Queries::of(package), kind }
    }

    /// The statement that returns all totals.
    pub fn totals(&self) -> &str {
        self.queries.sql("totals")
    }

    /// Executes the statements of a call, as the comments of queries.sql describe it. Adds them to the script.
    pub fn execute(&self, connection: &mut Conn, plain: &Plain, script: &mut String) -> Outcome {
        Execution { statements: self, connection, plain, script }.call()
    }
}

struct Execution<'a> {
    statements: &'a Statements,
    connection: &'a mut Conn,
    plain: &'a Plain,
    script: &'a mut String,
}

type Arguments<'a> = Vec<(&'a str, Value)>;

/// The values of a key.
fn key_values(kind: Kind, key: Key) -> Arguments<'static> {
    let number = |text: &str| text.parse::<i64>().map_or(Value::NULL, Value::from);
    match kind.form {
        Form::PerCounter | Form::Fixed if key == "NULL" => vec![("counter_name", Value::NULL)],
        Form::PerCounter | Form::Fixed => vec![("counter_name", key.trim_matches('\'').into())],
        Form::Records => ["record_type", "record_id"].into_iter().zip(key.split(", ").map(number)).collect(),
        Form::Column => vec![("id", number(key))],
    }
}

fn number(value: Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(number.into()),
        Value::UInt(number) => Some(number.into()),
        Value::Bytes(text) => Some(String::from_utf8_lossy(&text).parse().expect("a number")),
        _ => None,
    }
}

impl Execution<'_> {
    fn rows(&mut self, name: &str, arguments: &[(&str, Value)]) -> Result<Vec<Row>, u16> {
        let (sql, values) = self.statements.queries.values(name, arguments);
        *self.script += &self.statements.queries.text(name, arguments);
        self.connection.exec(sql, values).map_err(|error| error_of::<()>(Err(error)).0)
    }

    /// Executes a statement, and returns the number of rows that it changed.
    fn change(&mut self, name: &str, key: Key, arguments: &[(&'static str, Value)]) -> Result<u64, u16> {
        let mut all = key_values(self.statements.kind, key);
        all.extend(arguments.iter().cloned());
        *self.script += &self.statements.queries.text(name, &all);
        match self.statements.queries.change(self.connection, name, &all) {
            Ok(rows) => Ok(rows),
            error => Err(match error_of(error).0 {
                4025 => CHECK,
                number => number,
            }),
        }
    }

    fn value(&mut self, name: &str, key: Key) -> Result<Option<i128>, u16> {
        let rows = self.rows(name, &key_values(self.statements.kind, key))?;
        Ok(rows.into_iter().next().and_then(|row| number(row.unwrap().remove(0))))
    }

    /// The name of a statement that selects a slot.
    fn of_slot(&self, name: &str) -> String {
        let suffix = if self.plain.on_nodes { "_on_nodes" } else { "" };
        format!("{name}{suffix}")
    }

    fn add(&mut self, name: &str, key: Key, amount: Option<i64>) -> Outcome {
        let name = self.of_slot(name);
        if self.statements.kind.records() {
            return self.change(&name, key, &[("amount", amount.into())]).map(|_| None);
        }
        // The last number that always has its slots.
        let nodes = if self.statements.kind.nodes { NODES } else { 1 };
        for slots in [self.plain.slots, nodes, 1] {
            if self.change(&name, key, &[("amount", amount.into()), ("slots", slots.into())])? == 1 {
                return Ok(None);
            }
        }
        if amount == Some(0) { Ok(None) } else { Err(30003) }
    }

    fn add_many(&mut self, entries: &[(Key, i64)]) -> Outcome {
        let amounts = Value::from(super::entries(entries));
        if self.statements.kind.records() {
            return self.change("add_many", "", &[("amounts", amounts)]).map(|_| None);
        }
        // As often as an application would: a snapshot of a transaction finds the same slots again.
        for _ in 0..2 {
            let mut found = self.rows("add_many_slots", &[("amounts", amounts.clone())])?.remove(0).unwrap();
            let (unknown, slots, counters) = (found.remove(2), found.remove(1), found.remove(0));
            if number(unknown) == Some(1) {
                return Err(30003);
            }
            let expected = number(counters.clone()).expect("a number");
            let changed = self.change("add_many", "NULL", &[("amounts", slots), ("counters", counters)])?;
            // INSERT .. ON DUPLICATE KEY UPDATE reports 2 rows for each row that it updates.
            if i128::from(changed) == 2 * expected {
                return Ok(None);
            }
        }
        Err(AGAIN)
    }

    fn take(&mut self, key: Key, amount: i64) -> Outcome {
        let name = self.of_slot("take");
        let with = |more: Option<(&'static str, Value)>| [("amount", amount.into())].into_iter().chain(more).collect::<Vec<_>>();
        if self.change(&name, key, &with(Some(("slots", self.plain.slots.into()))))? == 1 {
            return Ok(None);
        }
        let arguments: Vec<_> = key_values(self.statements.kind, key).into_iter().chain(with(None)).collect();
        for slot in self.rows("slots_to_take_from", &arguments)? {
            let slot = slot.unwrap().remove(0);
            if self.change("take_from_slot", key, &with(Some(("slot", slot))))? == 1 {
                return Ok(None);
            }
        }
        Err(30016)
    }

    /// Removes a slot of a named counter. A retired slot of an earlier resize is deleted first.
    fn shrink(&mut self, key: Key, slot: i128) -> Outcome {
        let name = if self.statements.kind.bounded { "remove_slot" } else { "retire_slot" };
        let arguments = [("slot", Value::from(slot as i64))];
        if let Err(number) = self.change(name, key, &arguments) {
            if number != 1062 {
                return Err(number);
            }
            self.delete_retired(key)?;
            self.change(name, key, &arguments)?;
        }
        Ok(None)
    }

    fn delete_retired(&mut self, key: Key) -> Outcome {
        if !self.statements.kind.bounded {
            self.change("fold", key, &[("retired", 10_000.into())])?;
        }
        self.change("delete_retired", key, &[("retired", 10_000.into())])?;
        Ok(None)
    }

    fn first_slot(&mut self, key: Key) -> Outcome {
        if self.statements.kind.records() {
            self.change("first_slot", key, &[])?;
        }
        Ok(None)
    }

    fn call(&mut self) -> Outcome {
        let kind = self.statements.kind;
        match self.plain.call.clone() {
            Call::Setup(key, slots, value) => {
                let arguments = [("description", Value::NULL), ("value", value.into()), ("slots", slots.into())];
                match self.change("setup", key, &arguments) {
                    Err(1062) => return Err(30004),
                    result => result?,
                };
            }
            Call::Increment(key) => return self.add("increment", key, Some(1)),
            Call::Add(key, amount) => return self.add("add", key, amount),
            Call::AddMany(entries) => return self.add_many(&entries),
            Call::Take(key, amount) => return self.take(key, amount),
            Call::Reset(key, value, restart) => {
                self.first_slot(key)?;
                self.change("reset", key, &[("value", value.into()), ("restart", restart.into())])?;
            }
            Call::Delete(key) => {
                self.first_slot(key)?;
                if self.change("delete", key, &[])? == 0 && !kind.records() {
                    return Err(30003);
                }
            }
            Call::Resize(key, slots) => {
                self.change("grow", key, &[("slots", slots.into())])?;
                let highest = self.value("highest_slot", key)?.ok_or(30003u16)?;
                for slot in (i128::from(slots) + 1..=highest).rev() {
                    self.shrink(key, slot)?;
                }
                return self.delete_retired(key);
            }
            Call::Compact(key) => {
                for name in ["first_slot", "compact", "compact_rest"] {
                    self.change(name, key, &[])?;
                }
            }
            Call::Get(key) => {
                return match self.value("get", key)? {
                    None => Err(30003),
                    total => Ok(total),
                };
            }
            Call::Part(key, Part::Shrink) => match self.value("highest_slot", key)? {
                Some(highest) if highest > 1 => return self.shrink(key, highest),
                _ => {}
            },
            Call::Part(key, part) => {
                let (name, arguments) = match part {
                    Part::Grow(slots) => ("grow", vec![("slots", Value::from(slots))]),
                    Part::Fold(slots) => ("fold", vec![("retired", slots.into())]),
                    Part::DeleteRetired(slots) => ("delete_retired", vec![("retired", slots.into())]),
                    Part::Compact => ("compact", Vec::new()),
                    Part::CompactRest => ("compact_rest", Vec::new()),
                    Part::FirstSlot | Part::Shrink => ("first_slot", Vec::new()),
                };
                self.change(name, key, &arguments)?;
            }
            call @ (Call::CompactIdle | Call::Rollup(_) | Call::Row(..)) => panic!("no statement: {call:?}"),
        }
        Ok(None)
    }
}

impl Call {
    /// A call that statements of queries.sql can do, and that the comments there do not exclude.
    pub(super) fn by_statements(self, kind: Kind) -> Option<Self> {
        match self {
            Self::AddMany(_) if kind.bounded => None,
            // The statement does not validate the values.
            Self::AddMany(entries) if kind.records() && entries.iter().any(|(key, _)| kind.key_error(key).is_some()) => None,
            Self::Setup(..) if kind.records() && !kind.bounded => None,
            Self::Take(_, amount) if amount < 1 => None,
            Self::Resize(key, slots) => Some(Self::Resize(key, slots.max(1))),
            Self::CompactIdle | Self::Rollup(_) | Self::Row(..) => None,
            call => Some(call),
        }
    }
}

impl Kind {
    /// What the statements of a call do to the counters. `before` is what the server had, and `found` the result of the server,
    /// which only decides whether the slot of a connection has enough.
    pub(super) fn plain(self, counters: &mut Counters, plain: &Plain, before: &Read, found: Outcome) -> Outcome {
        if let Some(result) = self.without_row(&plain.call) {
            return result;
        }
        let zero = || Counter { total: 0, slots: None, row: None };
        match &plain.call {
            Call::Setup(_, slots, value) if !self.records() => {
                let slots = if self.form == Form::Fixed { Some(FIXED) } else { *slots };
                if slots.is_none_or(|slots| slots < 1) {
                    return Ok(None);
                }
                if self.bounded && value.is_some_and(|value| value < 0) {
                    return Err(CHECK);
                }
                let Call::Setup(key, _, value) = plain.call else { unreachable!() };
                if counters.contains_key(key) {
                    return Err(30004);
                }
                counters.insert(key.to_owned(), Counter { total: value.unwrap_or(0).into(), slots, row: None });
                Ok(None)
            }
            Call::Setup(key, _, value) => match *value {
                None => Err(1048),
                Some(value) if value < 0 => Err(CHECK),
                Some(_) if before.get(*key).is_some_and(|found| found.first.is_some()) => Err(30004),
                Some(value) => {
                    let counter = counters.entry((*key).to_owned()).or_insert_with(zero);
                    (counter.total, counter.slots) = (counter.total + i128::from(value), None);
                    Ok(None)
                }
            },
            Call::Add(key, None) if self.records() || counters.contains_key(*key) => Err(1048),
            Call::Add(_, None) => Err(30003),
            Call::Add(key, Some(0)) => {
                if self.records() {
                    counters.entry((*key).to_owned()).or_insert_with(zero).slots = None;
                }
                Ok(None)
            }
            // The slot does not have it.
            Call::Add(_, Some(amount)) if self.bounded && *amount < 0 && found == Err(CHECK) => found,
            Call::Add(key, Some(amount)) => self.change(counters, key, |total| Ok(total + i128::from(*amount))),
            Call::Take(key, amount) => {
                if before.get(*key).is_none_or(|found| found.most < i128::from(*amount)) {
                    return Err(30016);
                }
                self.change(counters, key, |total| Ok(total - i128::from(*amount)))
            }
            Call::Reset(key, value, _) => {
                if self.records() {
                    counters.entry((*key).to_owned()).or_insert_with(zero).slots = None;
                }
                match counters.get_mut(*key) {
                    Some(_) if self.bounded && value.is_some_and(|value| value < 0) => return Err(CHECK),
                    Some(counter) => counter.total = value.unwrap_or(0).into(),
                    None => {}
                }
                Ok(None)
            }
            // On nodes, no statement checks that each node has a slot.
            Call::Resize(key, slots) => {
                counters.get_mut(*key).ok_or(30003u16)?.slots = Some(*slots);
                Ok(None)
            }
            Call::Compact(key) => {
                counters.entry((*key).to_owned()).or_insert_with(zero).slots = Some(1);
                Ok(None)
            }
            Call::Get(key) => match counters.get(*key) {
                None if !self.records() => Err(30003),
                counter => Ok(Some(counter.map_or(0, |counter| counter.total))),
            },
            Call::Part(key, Part::FirstSlot) => {
                counters.entry((*key).to_owned()).or_insert_with(zero).slots = None;
                Ok(None)
            }
            Call::Part(key, part) => {
                let empty = |found: &Found| found.first.is_none() && found.most == 0 && found.least == 0;
                if matches!(part, Part::CompactRest) && self.form == Form::Records && before.get(*key).is_some_and(empty) {
                    counters.remove(*key);
                }
                if let Some(counter) = counters.get_mut(*key) {
                    counter.slots = None;
                }
                Ok(None)
            }
            call => self.call(counters, call, found),
        }
    }

    /// The result for a key that no row can have: these statements do not validate it.
    pub(super) fn without_row(self, call: &Call) -> Option<Outcome> {
        if let Call::AddMany(entries) = call {
            return entries.iter().any(|(key, _)| self.key_error(key).is_some()).then_some(Err(30003));
        }
        let error = self.key_error(call.key()?)?;
        Some(match call {
            // Only these insert the key.
            Call::Setup(_, slots, _) if !self.records() => {
                let inserts = self.form == Form::Fixed || slots.is_some_and(|slots| slots > 0);
                if inserts { Err(1048) } else { Ok(None) }
            }
            Call::Take(..) => Err(30016),
            Call::Get(_) if self.records() => Ok(Some(0)),
            Call::Part(_, Part::Compact | Part::CompactRest) => Ok(None),
            _ if self.records() => Err(if error == 30010 { 1264 } else { 1048 }),
            Call::Part(..) | Call::Reset(..) | Call::Add(_, Some(0)) => Ok(None),
            _ => Err(30003),
        })
    }
}
