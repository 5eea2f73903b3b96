//! What is measured side by side: the ways to count that others have published, ours, and the floor below all of them.

use mysql::Value;

use super::Setting;
use crate::package::{Options, OptionsError, Package, Pick, Slots};
use crate::render;
use crate::script::{self, Query};

/// A way to count.
#[derive(Debug, Clone)]
pub struct Contender {
    /// As a report names it.
    pub name: &'static str,
    /// Statements that make its tables and routines.
    pub setup: Vec<String>,
    /// What fills its tables, once for each value of its parameters.
    pub fill: Option<Query>,
    /// The statement that counts.
    pub increment: Query,
    /// The statement that reads one counter.
    pub read: Query,
    /// The statement that sums everything up.
    pub total: String,
}

/// The names of all contenders, in the order of a report.
pub const NAMES: [&str; 13] = [
    "floor",
    "floor-call",
    "counters-call",
    "counters-look",
    "queries-call",
    "single-row",
    "published-upsert",
    "article-2012",
    "counters",
    "counters-fixed",
    "counters-random",
    "slotted_counters",
    "queries",
];

/// Those that are measured only where they are asked for: parts of our procedures, which say what the rest could gain.
pub const PARTS: [&str; 2] = ["counters-look", "queries-call"];

/// Which connection counts which counter, for the parameters of a statement.
#[derive(Debug, Clone, Copy)]
pub struct Who {
    /// From 1.
    pub connection: u32,
    /// From 1.
    pub counter: u32,
    /// From 1.
    pub slot: u32,
}

impl Who {
    /// A connection that counts a counter, where it picks the slot itself: as the package does, each has one of its own
    /// while there are enough.
    pub fn counting(connection: u32, counter: u32, setting: &Setting) -> Self {
        Self {
            connection,
            counter,
            slot: 1 + (connection - 1) % setting.slots,
        }
    }
}

impl Contender {
    /// The contender of a name; None where there is none.
    ///
    /// # Errors
    /// A number of slots that no package takes.
    pub fn named(name: &str, setting: &Setting) -> Result<Option<Self>, OptionsError> {
        let file = |name, text| Some(Self::of_file(name, text));
        Ok(match name {
            "floor" => file("floor", include_str!("../../templates/bench/floor.sql")),
            "floor-call" => file("floor-call", include_str!("../../templates/bench/floor_call.sql")),
            "counters-call" => Some(Self::of_counters_file(
                "counters-call",
                "counters_call",
                include_str!("../../templates/bench/counters_call.sql"),
            )?),
            "counters-look" => Some(Self::of_counters_file(
                "counters-look",
                "counters_look",
                include_str!("../../templates/bench/counters_look.sql"),
            )?),
            "queries-call" => Some(Self::of_queries_in_a_procedure(setting)?),
            "single-row" => file("single-row", include_str!("../../templates/bench/single_row.sql")),
            "published-upsert" => file(
                "published-upsert",
                include_str!("../../templates/bench/published_upsert.sql"),
            ),
            "article-2012" => file(
                "article-2012",
                include_str!("../../templates/bench/article_2012.sql"),
            ),
            "counters" => Some(Self::of_counters("counters", Options::default(), setting)?),
            "counters-fixed" => {
                let options = Options {
                    slots: Slots::Fixed(setting.slots),
                    table: "counters_fixed".parse().expect("a name"),
                    prefix: "counter_fixed_".parse().expect("a prefix"),
                    ..Options::default()
                };
                Some(Self::of_counters("counters-fixed", options, setting)?)
            }
            "counters-random" => {
                let options = Options {
                    pick: Pick::Random,
                    table: "counters_random".parse().expect("a name"),
                    prefix: "counter_random_".parse().expect("a prefix"),
                    ..Options::default()
                };
                Some(Self::of_counters("counters-random", options, setting)?)
            }
            "slotted_counters" => {
                let package = Package::new(Options {
                    slots: Slots::Fixed(setting.slots),
                    ..Options::slotted_counters()
                })?;
                Some(Self {
                    name: "slotted_counters",
                    setup: script::statements(&render::setup(&package)),
                    fill: None,
                    increment: if setting.amount == 1 {
                        query("CALL slotted_counter_increment(123, ?)", &["counter"])
                    } else {
                        query("CALL slotted_counter_add(123, ?, ?)", &["counter", "amount"])
                    },
                    read: query("SELECT slotted_counter_get(123, ?)", &["counter"]),
                    total: "SELECT COALESCE(SUM(total), 0) FROM slotted_counter_totals".into(),
                })
            }
            "queries" => Some(Self::of_queries("queries", "queries", setting)?),
            _ => None,
        })
    }

    fn of_file(name: &'static str, text: &str) -> Self {
        let (mut setup, mut fill, mut increment, mut read, mut total) = (Vec::new(), None, None, None, None);
        for query in script::queries(text) {
            match query.name.as_str() {
                "fill" => fill = Some(query),
                "increment" => increment = Some(query),
                "read" => read = Some(query),
                "total" => total = Some(query.sql),
                _ => setup.push(query.sql),
            }
        }
        Self {
            name,
            setup,
            fill,
            increment: increment.expect("every contender increments"),
            read: read.expect("every contender reads"),
            total: total.expect("every contender has a total"),
        }
    }

    fn of_counters(name: &'static str, options: Options, setting: &Setting) -> Result<Self, OptionsError> {
        let package = Package::new(options)?;
        let routine = |suffix: &str| package.options.prefix.join(suffix).map_err(OptionsError::Prefix);
        Ok(Self {
            name,
            setup: script::statements(&render::setup(&package)),
            fill: Some(query(
                &format!("CALL {}(?, NULL, ?, 0)", routine("setup")?),
                &["name", "slots"],
            )),
            increment: if setting.amount == 1 {
                query(&format!("CALL {}(?)", routine("increment")?), &["name"])
            } else {
                query(&format!("CALL {}(?, ?)", routine("add")?), &["name", "amount"])
            },
            read: query(&format!("SELECT {}(?)", routine("get")?), &["name"]),
            total: format!("SELECT COALESCE(SUM(total), 0) FROM {}", package.totals),
        })
    }

    /// A file that works on a table of the package.
    fn of_counters_file(name: &'static str, table: &str, text: &str) -> Result<Self, OptionsError> {
        let package = Package::new(Options {
            table: table.parse().expect("a name"),
            ..Options::default()
        })?;
        let mut contender = Self::of_file(name, text);
        let table = script::statements(&file_of(&package, "create_tables.sql"));
        contender.setup.splice(0..0, table);
        Ok(contender)
    }

    /// The statements of queries.sql.
    fn of_queries(name: &'static str, table: &str, setting: &Setting) -> Result<Self, OptionsError> {
        let package = Package::new(Options {
            slots: Slots::Fixed(setting.slots),
            table: table.parse().expect("a name"),
            ..Options::slotted_counters()
        })?;
        let statements = script::queries(&file_of(&package, "queries.sql"));
        let named = |name: &str, parameters: &[&str]| {
            let found = statements.iter().find(|query| query.name == name);
            query(&found.expect("queries.sql has it").sql, parameters)
        };
        Ok(Self {
            name,
            setup: script::statements(&file_of(&package, "create_tables.sql")),
            fill: None,
            increment: if setting.amount == 1 {
                named("increment", &["record type", "counter"])
            } else {
                named("add", &["record type", "counter", "amount", "amount"])
            },
            read: named("get", &["record type", "counter"]),
            total: format!("SELECT COALESCE(SUM(`count`), 0) FROM {}", package.options.table),
        })
    }

    /// The same upsert in a procedure that has nothing else, each of its question marks a parameter.
    fn of_queries_in_a_procedure(setting: &Setting) -> Result<Self, OptionsError> {
        let mut contender = Self::of_queries("queries-call", "queries_call", setting)?;
        let increment = &mut contender.increment;
        let parameters: Vec<_> = (1..=increment.parameters.len())
            .map(|n| format!("p_{n}"))
            .collect();
        let mut body = String::new();
        for (part, parameter) in increment
            .sql
            .split('?')
            .zip(parameters.iter().map(String::as_str).chain([""]))
        {
            body.push_str(part);
            body.push_str(parameter);
        }
        contender.setup.push(format!(
            "CREATE PROCEDURE queries_call_add(IN {} BIGINT) MODIFIES SQL DATA {body}",
            parameters.join(" BIGINT, IN ")
        ));
        increment.sql = format!(
            "CALL queries_call_add({})",
            vec!["?"; parameters.len()].join(", ")
        );
        Ok(contender)
    }
}

fn file_of(package: &Package, name: &str) -> String {
    let files = render::files(package);
    let file = files.into_iter().find(|file| file.name == name);
    file.expect("the package has this file").text
}

fn query(sql: &str, parameters: &[&str]) -> Query {
    Query {
        name: String::new(),
        parameters: parameters.iter().map(|&parameter| parameter.to_owned()).collect(),
        sql: sql.to_owned(),
    }
}

/// The values of a statement's parameters.
pub fn values(query: &Query, who: Who, setting: &Setting) -> Vec<Value> {
    let value = |parameter: &String| match parameter.as_str() {
        "connection" => who.connection.into(),
        "counter" => who.counter.into(),
        // As an application sends it. By a number, a bare SUM was read faster than any application does: docs/benchmark.md.
        "name" => who.counter.to_string().into(),
        "slot" => who.slot.into(),
        "amount" => setting.amount.into(),
        "slots" => setting.slots.into(),
        "record type" => 123.into(),
        other => unreachable!("no contender has a parameter {other}"),
    };
    query.parameters.iter().map(value).collect()
}

/// For whom a table is filled: each value of each parameter that the statement has.
pub fn filled_for(query: &Query, setting: &Setting) -> Vec<Who> {
    let all = |parameters: &[&str], most: u32| {
        let there = query
            .parameters
            .iter()
            .any(|one| parameters.contains(&one.as_str()));
        1..=if there { most } else { 1 }
    };
    let mut filled = Vec::new();
    for connection in all(&["connection"], setting.connections) {
        for counter in all(&["counter", "name"], setting.counters) {
            for slot in all(&["slot"], setting.slots) {
                filled.push(Who {
                    connection,
                    counter,
                    slot,
                });
            }
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_picks_its_slot_has_one_of_its_own_while_there_are_enough() {
        let setting = Setting {
            slots: 3,
            ..Setting::default()
        };
        let slots = (1..=7).map(|connection| Who::counting(connection, 1, &setting).slot);
        assert_eq!(slots.collect::<Vec<_>>(), [1, 2, 3, 1, 2, 3, 1]);
    }
}
