//! Races: the steps of two to four sessions in every order. The outcome is that of a serial order of the transactions.

use std::collections::BTreeMap;
use std::panic;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::{Kind, Package, Slots};

use crate::support::{Module, Schema, Server, bounded, bounded_keyed, error_of, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(concurrent_calls_of_counters_are_serializable)
        .on_servers(concurrent_calls_of_slotted_counters_are_serializable)
        .on_servers(concurrent_calls_of_bounded_counters_are_serializable)
        .on_servers(concurrent_calls_of_bounded_records_are_serializable);
}

/// A race: the calls of the first session before it, and its sessions. For records, the second session also runs these
/// calls, so that there are two slots. `||` separates the transactions of a session, `|` the steps of a transaction, and
/// a comma the statements of a step. `add 5` is a call of `counter_add` with the amount 5.
type Race = (&'static str, &'static [&'static str]);

const OF_COUNTERS: &[Race] = &[
    // One name is created twice.
    ("", &["setup 3 10", "setup 2 20"]),
    ("", &["begin, setup 3 10 | commit", "begin, setup 2 20 | commit", "get"]),
    ("", &["begin, setup 3 10 | rollback", "begin, setup 2 20 | commit", "increment"]),
    // A counter is deleted while it is used.
    ("setup 3 10", &["delete", "delete", "increment", "setup 2 20"]),
    ("setup 3 10", &["begin, delete | commit", "begin, increment | commit", "get"]),
    ("setup 3 10", &["begin, delete | rollback", "begin, increment | commit", "setup 2 20"]),
    ("setup 3 10", &["begin, delete | setup 2 50 | commit", "begin, increment | add 5 | commit"]),
    // The number of slots changes.
    ("setup 3 10", &["begin, resize 1 | commit", "begin, increment | add 5 | commit"]),
    ("setup 3 10", &["begin, resize 6 | commit", "begin, increment | add 5 | commit"]),
    ("setup 3 10", &["resize 1 || resize 4", "begin, increment | add 5 | commit"]),
    ("setup 3 10", &["resize 1", "begin, increment | commit", "reset 100", "get"]),
    ("setup 3 10", &["resize 1", "resize 6", "begin, increment | commit"]),
    ("setup 3 10", &["begin, resize 1 | commit", "begin, resize 6 | commit", "increment"]),
    ("setup 3 10", &["begin, resize 1 | commit", "begin, delete | commit", "increment"]),
    // The total is set.
    ("setup 3 10", &["begin, reset 100 | commit", "begin, increment | add 5 | commit", "get"]),
    ("setup 3 10", &["begin, reset 100 | commit", "begin, resize 1 | commit", "increment"]),
];

const OF_BOUNDED_COUNTERS: &[Race] = &[
    // The last ones of a stock are taken, and one is put back.
    ("setup 3 3", &["take 2", "take 2", "add 2", "get"]),
    ("setup 3 3", &["begin, take 2 | commit", "begin, take 2 | commit", "add 2"]),
    ("setup 3 3", &["begin, take 2 | rollback", "begin, take 2 | commit", "get"]),
    ("setup 3 90, take 1", &["begin, take 30 | take 30 | commit", "begin, take 50 | commit"]),
    ("setup 3 90, take 1", &["begin, take 50 | commit", "begin, resize 1 | commit", "take 50"]),
    ("setup 3 3", &["begin, reset 1 | commit", "begin, take 2 | commit", "add -1"]),
    ("setup 3 3", &["begin, resize 6 | commit", "begin, take 2 | take 1 | commit", "increment"]),
    ("setup 3 3", &["begin, delete | commit", "begin, take 2 | commit", "get"]),
];

const OF_RECORDS: &[Race] = &[
    ("", &["begin, increment | commit", "begin, increment | commit", "increment"]),
    ("add 10", &["begin, compact | commit", "begin, increment | add 5 | commit", "get"]),
    ("add 10", &["compact", "compact", "begin, increment | commit"]),
    // An increment that inserts its slot does not wait for a reset. A read can see the increment without the reset.
    ("add 10", &["begin, reset 100 | commit", "begin, increment | add 5 | commit", "increment"]),
    ("add 10", &["begin, delete | commit", "begin, increment | commit", "compact"]),
    ("add 10", &["begin, delete | rollback", "begin, increment | commit", "get"]),
];

const OF_BOUNDED_RECORDS: &[Race] = &[
    ("add 2", &["take 3", "take 3", "add 3", "get"]),
    ("add 2", &["begin, take 3 | commit", "begin, take 3 | commit", "add 3"]),
    ("add 2", &["begin, take 3 | rollback", "begin, take 3 | commit", "get"]),
    ("add 10", &["begin, compact | commit", "begin, take 15 | add 5 | commit", "get"]),
    ("add 10", &["begin, reset 3 | commit", "begin, take 15 | commit", "increment"]),
    ("add 10", &["begin, delete | commit", "begin, take 1 | commit", "add -2"]),
];

/// The remainders of the connection IDs of the sessions modulo 6. With 3 slots, the first and the third session have the
/// same slot, and with 6 slots all have different ones.
const SLOTS: [u32; 4] = [0, 1, 3, 4];

/// The time in which a step ends. If it does not, it waits for a lock, and ends after a step of another session. On a slow
/// machine, a step that waits for no lock can run together with the next one, which is an order like any other.
const PATIENCE: Duration = Duration::from_millis(40);

/// The time in which all steps of a race end, also on a slow machine.
const END: Duration = Duration::from_secs(120);

/// The races that run at the same time, because most of the time they wait.
const WORKERS: usize = 8;

/// The value that a statement returns, or the number of its error.
type Outcome = Result<Option<i64>, u16>;

/// The statements of a step, and whether a transaction begins with it.
type Step = (Vec<String>, bool);

/// A transaction of a race, whose steps have names.
struct Transaction {
    names: Vec<&'static str>,
    steps: Vec<Step>,
}

impl Transaction {
    fn new(text: &'static str, words: &Words) -> Self {
        let names: Vec<_> = text.split('|').map(str::trim).collect();
        let step = |(number, name): (usize, &&str)| (words.statements(name), number == 0);
        let steps = names.iter().enumerate().map(step).collect();
        Self { names, steps }
    }
}

/// What the words of a race stand for.
struct Words {
    /// The prefix of the routines.
    prefix: String,
    records: bool,
}

impl Words {
    /// The statements of words like `begin, add 5`.
    fn statements(&self, words: &str) -> Vec<String> {
        let Self { prefix, records } = self;
        let key = if *records { "1, 7" } else { "'a'" };
        let statement = |word: &str| {
            let (verb, arguments) = word.split_once(' ').unwrap_or((word, ""));
            match verb {
                "begin" => "START TRANSACTION".to_owned(),
                "commit" | "rollback" => verb.to_uppercase(),
                "get" => format!("SELECT {prefix}get({key})"),
                "setup" if !records => format!("CALL {prefix}setup({key}, NULL, {})", arguments.replace(' ', ", ")),
                "reset" if !records => format!("CALL {prefix}reset({key}, {arguments}, FALSE)"),
                _ if arguments.is_empty() => format!("CALL {prefix}{verb}({key})"),
                _ => format!("CALL {prefix}{verb}({key}, {arguments})"),
            }
        };
        words.split(',').map(str::trim).filter(|word| !word.is_empty()).map(statement).collect()
    }
}

/// Runs the statements of a step. Returns nothing if the server has rolled back the transaction, which has not counted.
fn run(connection: &mut Conn, statements: &[String]) -> Option<Vec<Outcome>> {
    let mut results = Vec::new();
    for statement in statements {
        match connection.query_first::<Option<i64>, _>(statement) {
            Ok(value) => results.push(Ok(value.flatten())),
            error => match error_of(error).0 {
                number if [1205, 1213].contains(&number) => {
                    connection.query_drop("ROLLBACK").expect("a rollback");
                    return None;
                }
                // The counter did not exist, and another session has created it before the call returned.
                1317 => results.push(Err(30003)),
                number => results.push(Err(number)),
            },
        }
    }
    Some(results)
}

/// A session that runs its steps in a thread of its own, so that a lock wait does not block the test.
struct Session {
    steps: mpsc::Sender<Step>,
    results: mpsc::Receiver<Option<Vec<Outcome>>>,
    ended: Vec<Option<Vec<Outcome>>>,
    waiting: usize,
}

impl Session {
    fn new(schema: &Schema<'_>, remainder: u32, isolation: &str) -> Self {
        let mut connection = schema.connect_with_id(remainder, 6);
        let isolation = format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}");
        connection.query_drop(isolation).expect("an isolation level");
        let (steps, todo) = mpsc::channel::<Step>();
        let (done, results) = mpsc::channel();
        thread::spawn(move || {
            let mut rolled_back = false;
            for (statements, begins) in todo {
                rolled_back &= !begins;
                // The other steps of this transaction would run outside a transaction.
                let result = if rolled_back { None } else { run(&mut connection, &statements) };
                rolled_back = result.is_none();
                if done.send(result).is_err() {
                    break;
                }
            }
        });
        Self { steps, results, ended: Vec::new(), waiting: 0 }
    }

    /// Sends a step. Waits until it has ended, unless an earlier step of the session waits for a lock.
    fn step(&mut self, step: &Step, patience: Duration) {
        self.collect(Duration::ZERO);
        let waits = self.waiting > 0;
        self.steps.send(step.clone()).expect("the session");
        self.waiting += 1;
        if !waits {
            self.collect(patience);
        }
    }

    fn collect(&mut self, patience: Duration) {
        while self.waiting > 0 {
            let Ok(result) = self.results.recv_timeout(patience) else { break };
            self.waiting -= 1;
            self.ended.push(result);
        }
    }

    /// The results of all steps.
    fn end(&mut self) -> Option<Vec<Option<Vec<Outcome>>>> {
        self.collect(END);
        (self.waiting == 0).then(|| std::mem::take(&mut self.ended))
    }
}

/// All orders of the steps of some sessions, as the numbers of the sessions.
fn orders(steps: &[usize]) -> Vec<Vec<usize>> {
    if steps.iter().all(|left| *left == 0) {
        return vec![Vec::new()];
    }
    let first = |session: usize| {
        let mut left = steps.to_vec();
        left[session] -= 1;
        orders(&left).into_iter().map(move |order| [&[session], &order[..]].concat())
    };
    (0..steps.len()).filter(|session| steps[*session] > 0).flat_map(first).collect()
}

/// The counters after a race, and the results of each transaction of each session. None: it was rolled back by the server.
#[derive(Clone, Debug, PartialEq)]
struct Ending {
    counters: Vec<(String, i64, i64)>,
    results: Vec<Vec<Option<Vec<Outcome>>>>,
}

/// A transaction of a race: its session, and its number in the session.
type Id = (usize, usize);

/// The sessions of a schema, and the race that they run.
struct Stage<'a> {
    schema: &'a Schema<'a>,
    table: String,
    words: Words,
    sessions: Vec<Session>,
}

impl Stage<'_> {
    /// Runs the steps in an order, and without the transactions that `skipped` names. Returns the ending, and the pairs of
    /// transactions of which the first one ended before the second one began.
    fn play(
        &mut self,
        before: &str,
        race: &[Vec<Transaction>],
        order: &[usize],
        skipped: &[Id],
        patience: Duration,
    ) -> Option<(Ending, Vec<(Id, Id)>)> {
        self.schema.run(&format!("DELETE FROM {}", self.table));
        let before = (self.words.statements(before), true);
        for session in &mut self.sessions[..if self.words.records { 2 } else { 1 }] {
            session.step(&before, END);
            let ended = session.end().expect("the calls before a race end");
            assert!(ended.iter().flatten().flatten().all(Result::is_ok), "{before:?}: {ended:?}");
        }
        let mut steps: Vec<_> = race
            .iter()
            .enumerate()
            .map(|(session, transactions)| {
                let played = transactions.iter().enumerate();
                let played = played.filter(move |(number, _)| !skipped.contains(&(session, *number)));
                played.flat_map(|(number, transaction)| transaction.steps.iter().map(move |step| (number, step)))
            })
            .collect();
        let mut pairs = Vec::new();
        for session in order {
            let Some((number, step)) = steps[*session].next() else { continue };
            if step.1 {
                for (other, transactions) in race.iter().enumerate().filter(|(other, _)| other != session) {
                    self.sessions[other].collect(Duration::ZERO);
                    let mut ended = self.sessions[other].ended.len();
                    for (of_other, transaction) in transactions.iter().enumerate() {
                        if !skipped.contains(&(other, of_other)) && ended >= transaction.steps.len() {
                            ended -= transaction.steps.len();
                            pairs.push(((other, of_other), (*session, number)));
                        } else {
                            break;
                        }
                    }
                }
            }
            self.sessions[*session].step(step, patience);
        }
        let mut results = Vec::new();
        for (number, transactions) in race.iter().enumerate() {
            let mut ended = self.sessions[number].end()?.into_iter();
            let result = |(transaction, steps): (usize, &Transaction)| {
                if skipped.contains(&(number, transaction)) {
                    return None;
                }
                let steps: Vec<_> = ended.by_ref().take(steps.steps.len()).collect();
                steps.into_iter().collect::<Option<Vec<_>>>().map(|results| results.concat())
            };
            results.push(transactions.iter().enumerate().map(result).collect());
        }
        // A compaction that runs together with a delete can leave a record with the total 0.
        let totals = format!("{}totals", self.words.prefix);
        let query = if self.words.records {
            format!("SELECT CONCAT(record_type, ', ', record_id), total, 0 FROM {totals} WHERE total <> 0")
        } else {
            format!("SELECT counter_name, total, IF(resize_incomplete, -1, slots) FROM {totals}")
        };
        Some((Ending { counters: self.schema.connect().query(&query).expect(&query), results }, pairs))
    }

    /// All serial orders of the transactions without the `skipped` ones, and their endings.
    fn serial(&mut self, before: &str, race: &[Vec<Transaction>], skipped: &[Id]) -> Vec<(Vec<Id>, Ending)> {
        let transactions: Vec<_> = (0..race.len())
            .map(|session| {
                let numbers = 0..race[session].len();
                numbers.filter(|number| !skipped.contains(&(session, *number))).collect::<Vec<_>>()
            })
            .collect();
        let counts: Vec<_> = transactions.iter().map(Vec::len).collect();
        let serial = |order: Vec<usize>| {
            let mut next = vec![0; race.len()];
            let (mut steps, mut serial) = (Vec::new(), Vec::new());
            for session in order {
                let number = transactions[session][next[session]];
                next[session] += 1;
                serial.push((session, number));
                steps.extend(vec![session; race[session][number].steps.len()]);
            }
            let (ending, _) = self.play(before, race, &steps, skipped, END).expect("a serial order ends");
            let complete = ending.results.iter().flatten().filter(|results| results.is_none()).count();
            assert_eq!(complete, skipped.len(), "a serial order has no deadlock");
            (serial, ending)
        };
        orders(&counts).into_iter().map(serial).collect()
    }

    /// Runs a race in every order. Returns the number of orders, and of those in which the server rolled back a transaction.
    fn race(&mut self, (before, sessions): &Race) -> (usize, usize) {
        let transactions = |session: &&'static str| {
            session.split("||").map(|text| Transaction::new(text, &self.words)).collect::<Vec<_>>()
        };
        let race: Vec<_> = sessions.iter().map(transactions).collect();
        let steps = |session: &Vec<Transaction>| session.iter().map(|transaction| transaction.steps.len()).sum();
        let counts: Vec<usize> = race.iter().map(steps).collect();
        let mut serial = BTreeMap::new();
        let mut rolled_back = 0;
        let orders = orders(&counts);
        for order in &orders {
            let mut names: Vec<_> =
                race.iter().map(|session| session.iter().flat_map(|transaction| &transaction.names)).collect();
            let steps: Vec<_> = order
                .iter()
                .map(|session| (["a", "b", "c", "d"][*session], names[*session].next().expect("a step")))
                .map(|(session, step)| format!("{session}: {step}"))
                .collect();
            let steps = steps.join("\n");
            // On MariaDB, a read at the moment of a commit can return a wrong total: docs/mariadb-reads.md. Not twice.
            let tries = if self.schema.server.is_mysql() || !sessions.contains(&"get") { 1 } else { 2 };
            for attempt in 1..=tries {
                let Some((ending, pairs)) = self.play(before, &race, order, &[], PATIENCE) else {
                    panic!("a step does not end after '{before}':\n{steps}");
                };
                let skipped: Vec<_> = (0..race.len())
                    .flat_map(|session| (0..race[session].len()).map(move |number| (session, number)))
                    .filter(|(session, number)| ending.results[*session][*number].is_none())
                    .collect();
                rolled_back += usize::from(!skipped.is_empty());
                let allowed =
                    serial.entry(skipped.clone()).or_insert_with(|| self.serial(before, &race, &skipped));
                // A transaction that began after the end of another one comes after it.
                let fits = |serial: &[Id]| {
                    let at = |id| serial.iter().position(|other| *other == id);
                    pairs.iter().all(|(first, second)| match (at(*first), at(*second)) {
                        (Some(first), Some(second)) => first < second,
                        _ => true,
                    })
                };
                if allowed.iter().any(|(serial, allowed)| *allowed == ending && fits(serial)) {
                    break;
                }
                assert!(attempt < tries, "no serial order has this ending after '{before}':\n{steps}\n{ending:?}");
            }
        }
        (orders.len(), rolled_back)
    }
}

fn are_serializable(server: &Server, package: &Package, races: &[Race], isolation: &str) {
    let todo = Mutex::new(races.iter());
    let (orders, rolled_back) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let worker = |_| {
            scope.spawn(|| {
                let schema = server.schema();
                schema.install(package);
                let mut stage = Stage {
                    schema: &schema,
                    table: package.options.table.to_string(),
                    words: Words {
                        prefix: package.options.prefix.name().to_owned(),
                        records: package.options.kind == Kind::SlottedCounters,
                    },
                    sessions: SLOTS.iter().map(|slot| Session::new(&schema, *slot, isolation)).collect(),
                };
                let next = || todo.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
                while let Some(race) = next() {
                    let counts = stage.race(race);
                    orders.fetch_add(counts.0, SeqCst);
                    rolled_back.fetch_add(counts.1, SeqCst);
                }
            })
        };
        let workers: Vec<_> = (0..WORKERS).map(worker).collect();
        // The message of a worker is that of the promise.
        workers.into_iter().for_each(|worker| worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
    });
    let (orders, rolled_back) = (orders.into_inner(), rolled_back.into_inner());
    eprintln!("{}, {isolation}: {orders} orders, {rolled_back} of them with a transaction that was rolled back", server.version);
}

/// The races at both isolation levels that servers have as a default.
fn all_are_serializable(server: &Server, package: &Package, races: &[Race]) {
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        are_serializable(server, package, races, isolation);
    }
}

fn concurrent_calls_of_counters_are_serializable(server: &Server) {
    all_are_serializable(server, &package(|_| {}), OF_COUNTERS);
}

fn concurrent_calls_of_slotted_counters_are_serializable(server: &Server) {
    all_are_serializable(server, &keyed(|options| options.slots = Slots::Fixed(3)), OF_RECORDS);
}

fn concurrent_calls_of_bounded_counters_are_serializable(server: &Server) {
    all_are_serializable(server, &bounded(|_| {}), OF_BOUNDED_COUNTERS);
}

fn concurrent_calls_of_bounded_records_are_serializable(server: &Server) {
    all_are_serializable(server, &bounded_keyed(|options| options.slots = Slots::Fixed(3)), OF_BOUNDED_RECORDS);
}
