//! Counting once: with the SQL of docs/counting-once.md, an operation that is repeated until it is acknowledged counts once.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use rand::RngExt;

use super::exactness::SetOnDrop;
use crate::support::{Module, SESSIONS, Schema, Server, bounded, calls, error_of, package, sql_statements};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_repeated_operation_counts_once_whatever_is_killed)
        .on_servers(a_repeated_operation_waits_for_the_open_transaction)
        .on_servers(a_rejected_call_leaves_no_operation_key)
        .on_servers(the_clean_up_deletes_only_old_keys_and_delays_no_operation);
}

/// The key in the transaction of the page.
const KEY_OF_PAGE: &str = "x'019364F1C8007A31B0C25E9F4D6A7B80'";

pub fn statements(section: &str) -> Vec<String> {
    sql_statements("docs/counting-once.md", section)
}

/// The transaction of the page, with another operation key.
pub fn transaction(key: u128) -> Vec<String> {
    let transaction = statements("The transaction");
    assert!(transaction.iter().any(|statement| statement.contains(KEY_OF_PAGE)), "{transaction:?}");
    transaction.iter().map(|statement| statement.replace(KEY_OF_PAGE, &format!("x'{key:032X}'"))).collect()
}

/// A schema with the package, the counter and the table of the page.
fn installed(server: &Server) -> Schema<'_> {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('downloads', NULL, 100, 0)");
    run(&mut schema.connect(), &statements("The table of keys")).expect("a table");
    schema
}

pub fn run(connection: &mut Conn, statements: &[String]) -> mysql::Result<()> {
    statements.iter().try_for_each(|statement| connection.query_drop(statement))
}

/// The total, and the number of operation keys.
fn state(schema: &Schema<'_>) -> (u64, u64) {
    schema.first("SELECT counter_get('downloads'), (SELECT COUNT(*) FROM counter_operations)")
}

const CALLERS: usize = 12;
/// Of this number of operations, one gets no answer to its first COMMIT.
const UNANSWERED: usize = 8;

/// The callers of a load, whose connections are killed.
struct Load<'a> {
    schema: &'a Schema<'a>,
    sessions: Vec<AtomicU32>,
    attempts: AtomicU64,
    /// The number of operations that were acknowledged.
    acknowledged: AtomicU64,
    /// The number of operations that an attempt without an answer had counted.
    counted_before: AtomicU64,
    /// The attempts without an answer, by error. 0 stands for a lost connection.
    errors: Mutex<BTreeMap<u16, u64>>,
}

impl<'a> Load<'a> {
    /// Repeats the operations of all callers until they are acknowledged, while connections and statements are killed.
    fn run(schema: &'a Schema<'a>, most: usize, statements: impl Fn(u128) -> Vec<String> + Sync) -> Self {
        let load = Self {
            schema,
            sessions: (0..CALLERS).map(|_| AtomicU32::new(0)).collect(),
            attempts: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            counted_before: AtomicU64::new(0),
            errors: Mutex::default(),
        };
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let _done = SetOnDrop(&done);
            scope.spawn(|| load.kill(&done));
            let call = |caller: usize| {
                for call in calls(most) {
                    load.operation(caller, call % UNANSWERED == 0, &statements(rand::rng().random()));
                }
            };
            let callers: Vec<_> = (0..CALLERS).map(|caller| scope.spawn(move || call(caller))).collect();
            callers.into_iter().for_each(|caller| caller.join().expect("a caller"));
        });
        load
    }

    /// Kills a session for each three attempts, so that a slow machine has as many kills for each attempt.
    fn kill(&self, done: &AtomicBool) {
        let mut connection = self.schema.connect();
        for kills in 1.. {
            while self.attempts.load(SeqCst) < 3 * kills {
                if done.load(SeqCst) {
                    return;
                }
                thread::sleep(Duration::from_micros(200));
            }
            let session = self.sessions[rand::rng().random_range(0..CALLERS)].load(SeqCst);
            let what = if kills % 2 == 0 { "CONNECTION" } else { "QUERY" };
            // Fails if the session has ended.
            let _ = connection.query_drop(format!("KILL {what} {session}"));
        }
    }

    fn connect(&self, caller: usize) -> Conn {
        let connection = self.schema.connect();
        self.sessions[caller].store(connection.connection_id(), SeqCst);
        connection
    }

    /// What the page tells an application to do. If `unanswered`, the answer to the first COMMIT gets lost.
    fn operation(&self, caller: usize, mut unanswered: bool, statements: &[String]) {
        let mut connection = self.connect(caller);
        loop {
            self.attempts.fetch_add(1, SeqCst);
            let result = run(&mut connection, statements);
            let number = match &result {
                Ok(()) if unanswered => 0,
                Ok(()) => break,
                Err(Error::MySqlError(error)) => error.code,
                Err(_) => 0,
            };
            if number == 1062 {
                self.counted_before.fetch_add(1, SeqCst);
                break;
            }
            unanswered = unanswered && result.is_err();
            *self.errors.lock().expect("the errors").entry(number).or_default() += 1;
            match number {
                // The session is killed: 1927 on MariaDB, 3169 on MySQL.
                0 | 1927 | 3169 => connection = self.connect(caller),
                1105 | 1205 | 1213 | 1317 => {
                    if connection.query_drop("ROLLBACK").is_err() {
                        connection = self.connect(caller);
                    }
                }
                _ => panic!("{result:?}"),
            }
        }
        self.acknowledged.fetch_add(1, SeqCst);
    }
}

fn a_repeated_operation_counts_once_whatever_is_killed(server: &Server) {
    let schema = installed(server);
    let load = Load::run(&schema, 60, transaction);
    let operations = load.acknowledged.load(SeqCst);
    assert_eq!(state(&schema), (operations, operations), "{:?}", load.errors);
    let counted_before = load.counted_before.load(SeqCst);
    assert!(counted_before >= operations / UNANSWERED as u64, "{counted_before} of {operations}");
    // Without keys, the same callers count more than once.
    let plain = Load::run(&schema, 10, |_| vec!["CALL counter_add('downloads', 1)".to_owned()]);
    let (total, _) = state(&schema);
    eprintln!(
        "{}: {operations} operations in {} attempts, {counted_before} counted by an attempt without an answer, {:?}; without \
         keys, {} operations counted {}, {:?}",
        server.version,
        load.attempts.load(SeqCst),
        load.errors,
        plain.acknowledged.load(SeqCst),
        total - operations,
        plain.errors
    );
}

/// Waits until a session executes a statement that begins with INSERT. Another transaction has the key, so it waits.
fn until_it_inserts(schema: &Schema<'_>, session: u32) {
    let begin = Instant::now();
    let query = format!("SELECT COUNT(*) FROM {SESSIONS} WHERE ID = {session} AND INFO LIKE 'INSERT%'");
    while schema.first::<u64>(&query) == 0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "the session does not insert");
        thread::sleep(Duration::from_millis(5));
    }
}

fn a_repeated_operation_waits_for_the_open_transaction(server: &Server) {
    let schema = installed(server);
    for (key, end, counted, total) in [(1, "COMMIT", true, 1), (2, "ROLLBACK", false, 2)] {
        let statements = transaction(key);
        let (last, open) = statements.split_last().expect("a transaction");
        assert_eq!(last, "COMMIT");
        let mut first = schema.connect();
        run(&mut first, open).expect("an open transaction");
        let mut second = schema.connect();
        second.query_drop("SET SESSION innodb_lock_wait_timeout = 600").expect("a time");
        let session = second.connection_id();
        let repeated = thread::scope(|scope| {
            let repeated = scope.spawn(|| {
                let result = run(&mut second, &statements);
                second.query_drop("ROLLBACK").expect("a rollback");
                result
            });
            until_it_inserts(&schema, session);
            assert!(!repeated.is_finished(), "the second transaction does not wait");
            first.query_drop(end).expect(end);
            repeated.join().expect("a session")
        });
        if counted {
            assert_eq!(error_of(repeated).0, 1062);
        } else {
            repeated.expect("the first transaction has not counted");
        }
        assert_eq!(state(&schema), (total, total), "{end}");
    }
}

fn a_rejected_call_leaves_no_operation_key(server: &Server) {
    let schema = installed(server);
    schema.install(&bounded(|_| {}));
    schema.run("CALL bounded_counter_setup('downloads', NULL, 100, 0)");
    let state = || -> (u64, u64) {
        schema.first("SELECT bounded_counter_get('downloads'), (SELECT COUNT(*) FROM counter_operations)")
    };
    let take: Vec<_> = transaction(1)
        .iter()
        .map(|statement| statement.replace("CALL counter_add('downloads', 1)", "CALL bounded_counter_take('downloads', 2)"))
        .collect();
    let mut connection = schema.connect();
    assert_eq!(error_of(run(&mut connection, &take)).0, 30016);
    connection.query_drop("ROLLBACK").expect("a rollback");
    assert_eq!(state(), (0, 0));
    schema.run("CALL bounded_counter_add('downloads', 3)");
    run(&mut connection, &take).expect("the same key");
    assert_eq!(error_of(run(&mut connection, &take)).0, 1062);
    connection.query_drop("ROLLBACK").expect("a rollback");
    assert_eq!(state(), (1, 1));
}

fn the_clean_up_deletes_only_old_keys_and_delays_no_operation(server: &Server) {
    const OLD: u64 = 3500;
    const KEPT: u64 = 50;
    const LOCKED: u128 = 7;
    let schema = installed(server);
    let mut connection = schema.connect();
    run(&mut connection, &statements("Clean-up")).expect("a procedure and an event");
    // The event of a server whose scheduler is on calls the procedure at once.
    schema.run("ALTER EVENT counter_operations_clean_up DISABLE");
    // The first call sets the isolation level of the session.
    connection.query_drop("CALL counter_operations_clean_up()").expect("a clean-up");
    for (rows, age) in [(OLD, "25 HOUR"), (KEPT, "23 HOUR")] {
        let keys: Vec<_> = (0..rows)
            .map(|row| if (row, age) == (0, "25 HOUR") { LOCKED } else { rand::rng().random() })
            .map(|key| format!("(x'{key:032X}', CURRENT_TIMESTAMP - INTERVAL {age})"))
            .collect();
        schema.run(&format!("INSERT INTO counter_operations VALUES {}", keys.join(", ")));
    }
    // A transaction that has inserted its key, and one that has locked an old key, delay no clean-up.
    let mut open = schema.connect();
    let transactions = [transaction(rand::rng().random()), transaction(rand::rng().random())];
    let (commit, statements) = transactions[0].split_last().expect("a transaction");
    run(&mut open, statements).expect("an open transaction");
    open.query_drop(format!("SELECT operation FROM counter_operations WHERE operation = x'{LOCKED:032X}' FOR UPDATE")).expect("a lock");
    let mut caller = schema.connect();
    for connection in [&mut connection, &mut caller] {
        connection.query_drop("SET SESSION innodb_lock_wait_timeout = 5").expect("a time");
    }
    // In a transaction, which keeps the locks of the clean-up. No operation waits for them.
    connection.query_drop("START TRANSACTION").expect("a transaction");
    connection.query_drop("CALL counter_operations_clean_up()").expect("a clean-up");
    run(&mut caller, &transactions[1]).expect("an operation");
    connection.query_drop("COMMIT").expect("a commit");
    assert_eq!(state(&schema), (1, KEPT + 2));
    open.query_drop(commit).expect("a commit");
    connection.query_drop("CALL counter_operations_clean_up()").expect("a clean-up");
    assert_eq!(state(&schema), (2, KEPT + 2));
}
