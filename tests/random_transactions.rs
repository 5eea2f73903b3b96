//! Random transactions of many connections on few counters: routines, statements of queries.sql, savepoints, two isolation levels,
//! and maintenance. Each ends, no slot of a bounded counter is negative at any time, and the totals are what was acknowledged.
//! Resets and deletes are left out: they make the sum depend on the order.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Value};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use slotted::package::{Kind, Nodes, Package, Slots};

use crate::queries::Queries;
use crate::support::{Module, Schema, Server, bounded, bounded_keyed, cases, error_of, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(random_transactions_without_resets_of_counters_add_up)
        .on_servers(random_transactions_without_resets_of_records_add_up)
        .on_servers(random_transactions_without_resets_of_bounded_counters_add_up)
        .on_servers(random_transactions_without_resets_of_bounded_records_add_up);
}

const CONNECTIONS: u64 = 12;
const COUNTERS: usize = 3;
const VALUE: i64 = 20;

/// A transaction that takes longer deadlocks with others again and again. A lock wait of this load takes less than a second.
const LONGEST: Duration = Duration::from_secs(20);

/// The errors that a call can return here: a deadlock, and too little in a bounded counter.
const EXPECTED: [u16; 2] = [1213, 30016];

/// What a statement adds to the counters.
type Amounts = [i64; COUNTERS];

struct Load<'a> {
    package: &'a Package,
    queries: Queries,
}

impl Load<'_> {
    fn named(&self) -> bool {
        self.package.options.kind == Kind::Counters
    }

    fn key(&self, counter: usize) -> String {
        if self.named() { format!("'c{counter}'") } else { format!("9, {counter}") }
    }

    fn call(&self, routine: &str, counter: usize, arguments: &str) -> String {
        format!("CALL {}{routine}({}{arguments})", self.package.options.prefix.name(), self.key(counter))
    }

    fn create(&self, schema: &Schema<'_>) {
        for counter in 0..COUNTERS {
            schema.run(&match (self.named(), self.package.options.bounded) {
                (true, _) => self.call("setup", counter, &format!(", NULL, 7, {VALUE}")),
                (false, true) => self.call("setup", counter, &format!(", {VALUE}")),
                (false, false) => self.call("add", counter, &format!(", {VALUE}")),
            });
        }
    }

    fn total(&self, schema: &Schema<'_>, counter: usize) -> i64 {
        schema.first(&format!("SELECT {}get({})", self.package.options.prefix.name(), self.key(counter)))
    }

    /// A statement of queries.sql. Returns what it added.
    fn query(&self, connection: &mut Conn, random: &mut StdRng, counter: usize) -> mysql::Result<i64> {
        let amount = random.random_range(1..9);
        let name = ["increment", "add"][random.random_range(0..2)];
        let arguments = [
            ("counter_name", Value::from(format!("c{counter}"))),
            ("record_type", 9.into()),
            ("record_id", counter.into()),
            ("amount", amount.into()),
            ("slots", random.random_range(1..8).into()),
        ];
        // A named counter can have fewer slots now: then the statement changes no row.
        let rows = self.queries.change(connection, name, &arguments)?;
        Ok(if rows == 0 { 0 } else if name == "add" { amount } else { 1 })
    }

    /// A random statement. Returns what it added.
    fn run(&self, connection: &mut Conn, random: &mut StdRng) -> mysql::Result<Amounts> {
        let mut added = [0; COUNTERS];
        let counter = random.random_range(0..COUNTERS);
        let amount = random.random_range(1..9);
        let (call, sum) = match random.random_range(0..100) {
            0..25 => (self.call("increment", counter, ""), 1),
            25..40 => (self.call("add", counter, &format!(", {amount}")), amount),
            40..55 => (self.call("add", counter, &format!(", {}", -amount)), -amount),
            55..65 if self.package.options.bounded => {
                (self.call("take", counter, &format!(", {}", 3 * amount)), -3 * amount)
            }
            55..72 => {
                added[counter] = self.query(connection, random, counter)?;
                return Ok(added);
            }
            72..82 => {
                let other = (counter + 1) % COUNTERS;
                let entry = |counter: usize, amount: i64| format!("[{}, {amount}]", self.key(counter).replace('\'', "\""));
                let entries = format!("[{}, {}]", entry(counter, amount), entry(other, 2));
                connection.query_drop(format!("CALL {}add_many('{entries}')", self.package.options.prefix.name()))?;
                added[counter] = amount;
                added[other] = 2;
                return Ok(added);
            }
            82..88 if self.named() => (self.call("resize", counter, &format!(", {}", random.random_range(3..14))), 0),
            82..88 => (self.call("compact", counter, ""), 0),
            _ => (format!("SELECT {}get({})", self.package.options.prefix.name(), self.key(counter)), 0),
        };
        connection.query_drop(call)?;
        added[counter] = sum;
        Ok(added)
    }

    /// A transaction, or one statement outside of one. Returns what was acknowledged.
    fn transaction(&self, connection: &mut Conn, random: &mut StdRng) -> mysql::Result<Amounts> {
        let plus = |one: Amounts, other: Amounts| std::array::from_fn(|counter| one[counter] + other[counter]);
        if random.random_bool(0.4) {
            return self.run(connection, random);
        }
        connection.query_drop("START TRANSACTION")?;
        let (mut pending, mut saved) = ([0; COUNTERS], None);
        for _ in 0..random.random_range(1..5) {
            match (random.random_range(0..10), saved) {
                (0, _) => {
                    connection.query_drop("SAVEPOINT here")?;
                    saved = Some(pending);
                }
                (1, Some(before)) => {
                    connection.query_drop("ROLLBACK TO SAVEPOINT here")?;
                    pending = before;
                }
                _ => match self.run(connection, random) {
                    Ok(added) => pending = plus(pending, added),
                    // The transaction goes on: a call that was rejected has changed nothing.
                    Err(mysql::Error::MySqlError(error)) if error.code == 30016 => {}
                    Err(error) => return Err(error),
                },
            }
        }
        if random.random_bool(0.2) {
            connection.query_drop("ROLLBACK")?;
            return Ok([0; COUNTERS]);
        }
        connection.query_drop("COMMIT")?;
        Ok(pending)
    }
}

fn add_up(server: &Server, package: &Package) {
    let schema = server.schema();
    schema.install(package);
    let load = Load { package, queries: Queries::of(package) };
    load.create(&schema);
    let acknowledged: [AtomicI64; COUNTERS] = std::array::from_fn(|_| AtomicI64::new(VALUE));
    let errors = Mutex::new(BTreeMap::<(u16, String), u64>::new());
    let (done, negative) = (AtomicBool::new(false), AtomicI64::new(0));
    let work = |seed: u64| {
        let mut random = StdRng::seed_from_u64(seed);
        let mut connection = schema.connect();
        let level = ["REPEATABLE READ", "READ COMMITTED"][seed as usize % 2];
        connection.query_drop(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).expect("a level");
        for _ in 0..cases(160) {
            let start = Instant::now();
            match load.transaction(&mut connection, &mut random) {
                Ok(added) => (0..COUNTERS).for_each(|one| _ = acknowledged[one].fetch_add(added[one], SeqCst)),
                Err(error) => {
                    connection.query_drop("ROLLBACK").expect("a rollback");
                    let (code, message) = error_of::<()>(Err(error));
                    let message = if EXPECTED.contains(&code) { String::new() } else { message };
                    *errors.lock().expect("errors").entry((code, message)).or_default() += 1;
                }
            }
            assert!(start.elapsed() < LONGEST, "a transaction took {:?}", start.elapsed());
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let lowest = format!(
                "SELECT COALESCE(MIN({}), 0) FROM {}",
                if load.named() { "counter" } else { "`count`" },
                package.options.table
            );
            while package.options.bounded && !done.load(SeqCst) {
                negative.fetch_min(schema.first(&lowest), SeqCst);
                thread::sleep(Duration::from_millis(20));
            }
        });
        let callers: Vec<_> = (0..CONNECTIONS).map(|seed| scope.spawn(move || work(seed))).collect();
        let results: Vec<_> = callers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, SeqCst);
        assert!(results.iter().all(Result::is_ok), "a caller has failed");
    });
    let errors = errors.into_inner().expect("errors");
    eprintln!("{}, {}: errors {errors:?}", server.version, package.options.table);
    assert!(errors.keys().all(|(code, _)| EXPECTED.contains(code)), "{errors:?}");
    assert_eq!(negative.into_inner(), 0, "a slot was negative");
    let totals: [i64; COUNTERS] = std::array::from_fn(|counter| load.total(&schema, counter));
    assert_eq!(totals, acknowledged.map(AtomicI64::into_inner));
}

/// A single server, and one of three nodes.
fn servers() -> [Option<Nodes>; 2] {
    [None, Some(Nodes { count: 3, variable: "server_id".parse().expect("a variable") })]
}

/// With nodes, maintenance outside a transaction changes one slot in each statement, as on a node of a cluster.
fn random_transactions_without_resets_of_counters_add_up(server: &Server) {
    for nodes in servers() {
        add_up(server, &package(|options| options.nodes = nodes));
    }
}

fn random_transactions_without_resets_of_records_add_up(server: &Server) {
    for nodes in servers() {
        add_up(
            server,
            &keyed(|options| {
                options.slots = Slots::Fixed(7);
                options.nodes = nodes;
            }),
        );
    }
}

fn random_transactions_without_resets_of_bounded_counters_add_up(server: &Server) {
    add_up(server, &bounded(|_| {}));
}

fn random_transactions_without_resets_of_bounded_records_add_up(server: &Server) {
    add_up(server, &bounded_keyed(|options| options.slots = Slots::Fixed(7)));
}
