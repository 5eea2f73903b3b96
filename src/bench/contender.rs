//! The contenders: ways to count that others have published, the packages of Slotted, and what both are compared to.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use mysql::Value;

use super::Setting;
use crate::package::{self, Options, OptionsError, Package, Pick, Routine as R, Slots};
use crate::render;
use crate::script::{self, Query};

/// A way to count.
#[derive(Debug, Clone, Copy)]
pub struct Contender {
    /// The name in reports and in `--contenders`.
    pub name: &'static str,
    /// Whose design it is.
    pub kind: Kind,
    /// The colours of its line on a light and on a dark ground.
    pub colors: [&'static str; 2],
    /// One line for `--help`.
    pub description: &'static str,
    /// Its statements, from a file of templates/bench or from a package.
    statements: fn(&Setting) -> Result<Statements, OptionsError>,
}

/// Whose design a contender is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The uncontended case.
    Reference,
    /// A way to count without Slotted.
    Other,
    /// A package of Slotted.
    Ours,
    /// A part of our routines, which shows the cost of the rest. Measured only if `--contenders` names it.
    Part,
    /// Another task than an increment, or a server of a kind. Measured only if `--contenders` names it.
    Extra,
}

/// The statements of a contender.
#[derive(Debug, Clone)]
pub struct Statements {
    /// Create its tables and routines.
    pub setup: Vec<String>,
    /// Fills its tables. Runs once for each value of its parameters.
    pub fill: Option<Query>,
    /// Returns the number of slots that `increment` selects from. Each connection reads it once. None if the statement does
    /// not need it, or if it is [`Setting::slots`].
    pub slots: Option<Query>,
    /// Increments a counter.
    pub increment: Query,
    /// Reads a counter.
    pub read: Query,
    /// Sums all counters.
    pub total: String,
}

/// The text of a file of templates/bench.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../templates/bench/", $name))
    };
}

/// All contenders, in the order of a report.
pub static CONTENDERS: [Contender; 20] = [
    Contender {
        name: "uncontended",
        kind: Kind::Reference,
        colors: ["#59636e", "#9198a1"],
        description: "Each connection updates a row of its own",
        statements: |_| Ok(Statements::of_file(sql!("uncontended.sql"))),
    },
    Contender {
        name: "uncontended-call",
        kind: Kind::Part,
        colors: ["#59636e", "#9198a1"],
        description: "Part: the UPDATE of uncontended in a procedure",
        statements: |_| Ok(Statements::of_file(sql!("uncontended_call.sql"))),
    },
    Contender {
        name: "counters-call",
        kind: Kind::Part,
        colors: ["#0a7a83", "#39c5cf"],
        description: "Part: the UPDATE of a slot by counter name in a procedure; a read is a plain SUM",
        statements: |_| Statements::of_file_on_counters("counters_call", sql!("counters_call.sql")),
    },
    Contender {
        name: "counters-query",
        kind: Kind::Part,
        colors: ["#0969da", "#58a6ff"],
        description: "Part: the same after a SELECT of the number of slots; a read is a SUM in a function",
        statements: |_| Statements::of_file_on_counters("counters_query", sql!("counters_query.sql")),
    },
    Contender {
        name: "queries-call",
        kind: Kind::Part,
        colors: ["#1a7f37", "#56d364"],
        description: "Part: the statement of queries in a procedure",
        statements: Statements::of_queries_in_a_procedure,
    },
    Contender {
        name: "single-row",
        kind: Kind::Other,
        colors: ["#cf222e", "#ff7b72"],
        description: "One row for each counter",
        statements: |_| Ok(Statements::of_file(sql!("single_row.sql"))),
    },
    Contender {
        name: "published-upsert",
        kind: Kind::Other,
        colors: ["#bc4c00", "#ffa657"],
        description: "Schema and statement of The Slotted Counter Pattern (2022), with a surrogate id",
        statements: |_| Ok(Statements::of_file(sql!("published_upsert.sql"))),
    },
    Contender {
        name: "article-2012",
        kind: Kind::Other,
        colors: ["#9a6700", "#e3b341"],
        description: "The design of the 2012 article: COUNT(*) and a random slot",
        statements: |_| Ok(Statements::of_file(sql!("article_2012.sql"))),
    },
    Contender {
        name: "counters",
        kind: Kind::Ours,
        colors: ["#0969da", "#58a6ff"],
        description: "The package counters: each counter has its own number of slots",
        statements: |setting| Statements::of_counters(Options::default(), setting),
    },
    Contender {
        name: "counters-fixed",
        kind: Kind::Ours,
        colors: ["#0a7a83", "#39c5cf"],
        description: "The package counters with --slots N: every counter has the same number of slots",
        statements: |setting| {
            let options = Options {
                slots: Slots::Fixed(setting.slots),
                table: "counters_fixed".parse().expect("a name"),
                prefix: "counter_fixed_".parse().expect("a prefix"),
                ..Options::default()
            };
            Statements::of_counters(options, setting)
        },
    },
    Contender {
        name: "counters-random",
        kind: Kind::Ours,
        colors: ["#bf3989", "#ff80c8"],
        description: "The package counters with --pick random: each increment selects a random slot",
        statements: |setting| {
            let options = Options {
                pick: Pick::Random,
                table: "counters_random".parse().expect("a name"),
                prefix: "counter_random_".parse().expect("a prefix"),
                ..Options::default()
            };
            Statements::of_counters(options, setting)
        },
    },
    Contender {
        name: "slotted_counters",
        kind: Kind::Ours,
        colors: ["#8250df", "#c297ff"],
        description: "The package slotted_counters: a record has one or more key columns",
        statements: |setting| Statements::of_slotted_counters(Options::slotted_counters(), setting),
    },
    Contender {
        name: "queries",
        kind: Kind::Ours,
        colors: ["#1a7f37", "#56d364"],
        description: "The upsert of queries.sql, without a procedure",
        statements: |setting| Statements::of_queries(Options::slotted_counters(), "queries", setting),
    },
    Contender {
        name: "counters-plain",
        kind: Kind::Ours,
        colors: ["#6639ba", "#d2a8ff"],
        description: "The UPDATE of queries.sql of counters, without a procedure; the number of slots is a parameter",
        statements: |setting| Statements::of_queries(Options::default(), "counters_plain", setting),
    },
    Contender {
        name: "counters-fixed-plain",
        kind: Kind::Ours,
        colors: ["#116329", "#7ee787"],
        description: "The UPDATE of queries.sql of counters-fixed, without a procedure",
        statements: |setting| {
            let options = Options {
                slots: Slots::Fixed(setting.slots),
                ..Options::default()
            };
            Statements::of_queries(options, "counters_fixed_plain", setting)
        },
    },
    Contender {
        name: "counters-many",
        kind: Kind::Extra,
        colors: ["#bc4c00", "#ffa657"],
        description: "Batch: counter_add_many with --batch counts in a call",
        statements: |setting| {
            let options = Options {
                table: "counters_many".parse().expect("a name"),
                prefix: "counter_many_".parse().expect("a prefix"),
                ..Options::default()
            };
            let statements = Statements::of_counters(options, setting)?;
            Ok(statements.in_batches("counter_many_add_many"))
        },
    },
    Contender {
        name: "records-many",
        kind: Kind::Extra,
        colors: ["#bf3989", "#ff80c8"],
        description: "Batch: slotted_counter_add_many with --batch counts in a call",
        statements: |setting| {
            let options = Options {
                table: "records_many".parse().expect("a name"),
                prefix: "record_many_".parse().expect("a prefix"),
                ..Options::slotted_counters()
            };
            let statements = Statements::of_slotted_counters(options, setting)?;
            Ok(statements.in_batches("record_many_add_many"))
        },
    },
    Contender {
        name: "stock-row",
        kind: Kind::Extra,
        colors: ["#cf222e", "#ff7b72"],
        description: "Stock: one row for each counter, an UPDATE that takes only what is there",
        statements: |_| Ok(Statements::of_file(sql!("stock_row.sql"))),
    },
    Contender {
        name: "counter-take",
        kind: Kind::Extra,
        colors: ["#8250df", "#d2a8ff"],
        description: "Stock: bounded_counter_take",
        statements: |setting| {
            let options = Options {
                table: "stock_counters".parse().expect("a name"),
                prefix: "stock_".parse().expect("a prefix"),
                ..Options::bounded(package::Kind::Counters)
            };
            let mut statements = Statements::of_counters(options, setting)?;
            statements.fill = Some(query(
                "CALL stock_setup(?, NULL, ?, 1000000000000)",
                &["name", "slots"],
            ));
            statements.increment = query("CALL stock_take(?, ?)", &["name", "amount"]);
            statements.total = "SELECT -SUM(total) FROM stock_totals".into();
            Ok(statements)
        },
    },
    Contender {
        name: "record-take",
        kind: Kind::Extra,
        colors: ["#1a7f37", "#56d364"],
        description: "Stock: bounded_slotted_counter_take",
        statements: |setting| {
            let options = Options {
                table: "stock_records".parse().expect("a name"),
                prefix: "stock_record_".parse().expect("a prefix"),
                ..Options::bounded(package::Kind::SlottedCounters)
            };
            let mut statements = Statements::of_slotted_counters(options, setting)?;
            statements.fill = Some(query(
                "CALL stock_record_add(123, ?, 1000000000000)",
                &["counter"],
            ));
            statements.increment = query("CALL stock_record_take(123, ?, ?)", &["counter", "amount"]);
            statements.total = "SELECT -SUM(total) FROM stock_record_totals".into();
            Ok(statements)
        },
    },
];

/// The contenders as values of `--contenders`.
impl ValueEnum for Contender {
    fn value_variants<'a>() -> &'a [Self] {
        &CONTENDERS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.description))
    }
}

impl Contender {
    /// The contender with a name.
    pub fn named(name: &str) -> Option<Self> {
        CONTENDERS.into_iter().find(|contender| contender.name == name)
    }

    /// Its statements for a setting.
    ///
    /// # Errors
    /// A number of slots that the packages do not support.
    pub fn statements(&self, setting: &Setting) -> Result<Statements, OptionsError> {
        (self.statements)(setting)
    }
}

/// The values that a connection sends as parameters of a statement.
#[derive(Debug, Clone, Copy)]
pub struct Who {
    /// From 1.
    pub connection: u32,
    /// From 1.
    pub counter: u32,
    /// From 1.
    pub slot: u32,
    /// The number of slots of the counter.
    pub slots: u32,
}

impl Who {
    /// A connection that increments a counter. If the statement has the slot number as a parameter, the connection sends
    /// its own slot number, as the packages do with `--pick connection`.
    pub fn counting(connection: u32, counter: u32, setting: &Setting) -> Self {
        Self {
            connection,
            counter,
            slot: 1 + (connection - 1) % setting.slots,
            slots: setting.slots,
        }
    }
}

impl Statements {
    fn of_file(text: &str) -> Self {
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
            setup,
            fill,
            slots: None,
            increment: increment.expect("every contender increments"),
            read: read.expect("every contender reads"),
            total: total.expect("every contender has a total"),
        }
    }

    /// The same with the routine that adds to many counters.
    fn in_batches(self, routine: &str) -> Self {
        let parameter = if self.fill.is_some() {
            "names_amounts"
        } else {
            "records_amounts"
        };
        Self {
            increment: query(&format!("CALL {routine}(?)"), &[parameter]),
            ..self
        }
    }

    /// The counts that a call of `increment` adds.
    pub fn counts(&self, setting: &Setting) -> u32 {
        let batch = |parameter: &String| parameter.ends_with("_amounts");
        if self.increment.parameters.iter().any(batch) {
            setting.batch
        } else {
            1
        }
    }

    /// The routines of the package counters.
    fn of_counters(options: Options, setting: &Setting) -> Result<Self, OptionsError> {
        let package = Package::new(options)?;
        let routine = |suffix: &str| package.options.prefix.join(suffix).map_err(OptionsError::Prefix);
        Ok(Self {
            setup: setup_of(&package, setting)?,
            fill: Some(query(
                &format!("CALL {}(?, NULL, ?, 0)", routine("setup")?),
                &["name", "slots"],
            )),
            slots: None,
            increment: if setting.amount == 1 {
                query(&format!("CALL {}(?)", routine("increment")?), &["name"])
            } else {
                query(&format!("CALL {}(?, ?)", routine("add")?), &["name", "amount"])
            },
            read: query(&format!("SELECT {}(?)", routine("get")?), &["name"]),
            total: format!("SELECT COALESCE(SUM(total), 0) FROM {}", package.totals),
        })
    }

    /// A file with routines on a table of the package counters.
    fn of_file_on_counters(table: &str, text: &str) -> Result<Self, OptionsError> {
        let package = Package::new(Options {
            table: table.parse().expect("a name"),
            ..Options::default()
        })?;
        let mut statements = Self::of_file(text);
        let table = script::statements(&file_of(&package, "create_tables.sql"));
        statements.setup.splice(0..0, table);
        Ok(statements)
    }

    /// The routines of the package slotted_counters.
    fn of_slotted_counters(options: Options, setting: &Setting) -> Result<Self, OptionsError> {
        let package = Package::new(Options {
            slots: Slots::Fixed(setting.slots),
            ..options
        })?;
        let routine = |routine| package.routine(routine).expect("packages of records have it");
        Ok(Self {
            setup: setup_of(&package, setting)?,
            fill: None,
            slots: None,
            increment: if setting.amount == 1 {
                query(&format!("CALL {}(123, ?)", routine(R::Increment)), &["counter"])
            } else {
                query(
                    &format!("CALL {}(123, ?, ?)", routine(R::Add)),
                    &["counter", "amount"],
                )
            },
            read: query(&format!("SELECT {}(123, ?)", routine(R::Get)), &["counter"]),
            total: format!("SELECT COALESCE(SUM(total), 0) FROM {}", package.totals),
        })
    }

    /// The statements of queries.sql.
    fn of_queries(options: Options, table: &str, setting: &Setting) -> Result<Self, OptionsError> {
        let named = options.kind == package::Kind::Counters;
        let package = Package::new(Options {
            slots: if named {
                options.slots
            } else {
                Slots::Fixed(setting.slots)
            },
            table: table.parse().expect("a name"),
            ..options
        })?;
        let mut statements = script::queries(&file_of(&package, "queries.sql"));
        let mut take = |name: &str| {
            let at = statements.iter().position(|query| query.name == name);
            statements.swap_remove(at.expect("queries.sql has it"))
        };
        let count = if named { "counter" } else { "`count`" };
        let increment = if setting.amount == 1 { "increment" } else { "add" };
        let on_nodes = if setting.nodes > 1 { "_on_nodes" } else { "" };
        Ok(Self {
            setup: script::statements(&file_of(&package, "create_tables.sql")),
            fill: named.then(|| take("setup")),
            slots: (named && package.options.slots == Slots::PerCounter).then(|| take("slots")),
            increment: take(&format!("{increment}{on_nodes}")),
            read: take("get"),
            total: format!("SELECT COALESCE(SUM({count}), 0) FROM {}", package.options.table),
        })
    }

    /// The upsert of queries.sql in a procedure with no other statement. Each question mark becomes a parameter.
    fn of_queries_in_a_procedure(setting: &Setting) -> Result<Self, OptionsError> {
        let mut statements = Self::of_queries(Options::slotted_counters(), "queries_call", setting)?;
        let increment = &mut statements.increment;
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
        statements.setup.push(format!(
            "CREATE PROCEDURE queries_call_add(IN {} BIGINT) MODIFIES SQL DATA {body}",
            parameters.join(" BIGINT, IN ")
        ));
        increment.sql = format!(
            "CALL queries_call_add({})",
            vec!["?"; parameters.len()].join(", ")
        );
        Ok(statements)
    }
}

/// The statements of setup.sql. A load without reads does not call the function, which a server with a binary log accepts
/// only from some accounts (1419).
fn setup_of(package: &Package, setting: &Setting) -> Result<Vec<String>, OptionsError> {
    let package = Package::new(Options {
        function: setting.reads > 0.0,
        ..package.options.clone()
    })?;
    Ok(script::statements(&render::setup(&package)))
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

/// The values of a statement's parameters. `chosen` chooses the counters of a batch.
pub fn values(query: &Query, who: Who, setting: &Setting, mut chosen: impl FnMut() -> u32) -> Vec<Value> {
    let mut array = |entry: fn(u32, u32) -> String| {
        let entries: Vec<_> = (0..setting.batch)
            .map(|_| entry(chosen(), setting.amount))
            .collect();
        format!("[{}]", entries.join(",")).into()
    };
    let value = |parameter: &String| match parameter.as_str() {
        "connection" => who.connection.into(),
        "counter" | "record_id" => who.counter.into(),
        // A string, as an application sends it. A plain SUM is faster with a number in its place.
        "name" | "counter_name" => who.counter.to_string().into(),
        "slot" => who.slot.into(),
        "amount" => setting.amount.into(),
        "slots" => who.slots.into(),
        "record_type" => 123.into(),
        "names_amounts" => array(|counter, amount| format!("[\"{counter}\",{amount}]")),
        "records_amounts" => array(|counter, amount| format!("[123,{counter},{amount}]")),
        "description" => Value::NULL,
        "value" => 0.into(),
        other => unreachable!("no contender has a parameter {other}"),
    };
    query.parameters.iter().map(value).collect()
}

/// The parameters with which a table is filled: each value of each parameter of the statement.
pub fn filled_for(query: &Query, setting: &Setting) -> Vec<Who> {
    let all = |parameters: &[&str], most: u32| {
        let has = query
            .parameters
            .iter()
            .any(|one| parameters.contains(&one.as_str()));
        1..=if has { most } else { 1 }
    };
    let mut filled = Vec::new();
    for connection in all(&["connection"], setting.connections) {
        for counter in all(&["counter", "name", "counter_name"], setting.counters) {
            for slot in all(&["slot"], setting.slots) {
                filled.push(Who {
                    connection,
                    counter,
                    slot,
                    slots: setting.slots,
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
    fn connections_share_no_slot_if_there_are_enough_slots() {
        let setting = Setting {
            slots: 3,
            ..Setting::default()
        };
        let slots = (1..=7).map(|connection| Who::counting(connection, 1, &setting).slot);
        assert_eq!(slots.collect::<Vec<_>>(), [1, 2, 3, 1, 2, 3, 1]);
    }
}
