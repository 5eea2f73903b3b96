//! The load: sessions that call all routines which count, outside transactions and in transactions with a row of the
//! application, and one session that resizes, compacts and rolls up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use slotted::package::Package;
use slotted::script;

use super::Fault;
use super::ledger::{Changes, Fate, Key, Ledger, documented};
use crate::exactness::SetOnDrop;
use crate::rollup::of_column;
use crate::support::{Schema, Server, file, package};

/// The sessions that count.
const SESSIONS: u64 = 8;

/// The number of named counters, and of records.
const COUNTERS: u32 = 3;
const RECORDS: u32 = 24;

/// The slots of each named counter when the load has ended.
const SLOTS: u64 = 7;

/// The initial total of each.
const INITIAL: i64 = 1000;

/// The time until a state is reached. A machine under load takes much longer than an idle one.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// The errors that the load returns without a fault: lock wait timeouts on a slow machine, deadlocks with a resize and of
/// transactions that count in different order.
/// The compaction of a record of a column reports an error that its list does not contain, such as 1290 or 1105, as 30013.
const WITHOUT_FAULT: [u16; 3] = [1205, 1213, 30013];

/// The name of an error in the ledger for a connection that has ended.
pub const LOST: &str = "lost connection";

/// The part of a transaction that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A connection, or a statement of a transaction before its COMMIT.
    BeforeCommit,
    /// A COMMIT, or a statement outside a transaction.
    Commit,
}

/// A schema with both packages, and what the load has added to their totals.
pub struct Load<'a> {
    pub server: &'a Server,
    pub schema: Schema<'a>,
    pub ledger: Ledger,
    packages: [Package; 2],
    next_row: AtomicU64,
    /// What contradicts the documents.
    problems: Mutex<BTreeSet<String>>,
}

impl<'a> Load<'a> {
    /// Installs the packages as a production server has them: the routines and the application have accounts without
    /// privileges of an administrator.
    pub fn new(server: &'a Server) -> Self {
        let definer = || Some("slotted@localhost".parse().expect("an account"));
        let packages = [
            package(|options| options.definer = definer()),
            of_column("pages.total", "id BIGINT", |options| options.definer = definer()),
        ];
        let schema = server.schema();
        schema.run(
            "CREATE TABLE pages (id BIGINT PRIMARY KEY, total BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB;
             CREATE TABLE orders (id BIGINT PRIMARY KEY, note VARCHAR(200) NOT NULL) ENGINE = InnoDB;
             CREATE USER IF NOT EXISTS app@localhost",
        );
        for package in &packages {
            schema.install(package);
            schema.run(&file(package, "accounts.sql"));
        }
        schema.run(&format!("GRANT EXECUTE, SELECT, INSERT, UPDATE, LOCK TABLES ON {}.* TO app@localhost", schema.ident()));
        for counter in 0..COUNTERS {
            schema.run(&format!("CALL counter_setup('counter {counter}', NULL, {SLOTS}, 0)"));
        }
        for record in 1..=RECORDS {
            schema.run(&format!("INSERT INTO pages (id) VALUES ({record})"));
        }
        let load = Self {
            server,
            schema,
            ledger: Ledger::default(),
            packages,
            next_row: AtomicU64::new(1),
            problems: Mutex::default(),
        };
        for key in (0..COUNTERS).map(Key::Counter).chain((1..=RECORDS).map(Key::Record)) {
            let (prefix, arguments) = arguments(key);
            load.schema.run(&format!("CALL {prefix}_add({arguments}, {INITIAL})"));
            load.ledger.note(None, vec![(key, INITIAL)], Fate::Counted, None);
        }
        load
    }

    /// Replaces the routines and views, as an upgrade does.
    pub fn upgrade(&self) {
        for package in &self.packages {
            let script = file(package, "create_procedures.sql");
            let mut connection = self.schema.connect();
            for statement in script::statements(&script) {
                // The script waits 2 s for open transactions, and is sourced again then. The session keeps its settings here.
                let start = Instant::now();
                loop {
                    match connection.query_drop(&statement) {
                        Err(mysql::Error::MySqlError(error)) if error.code == 1205 && start.elapsed() < TIMEOUT => {}
                        done => break done.unwrap_or_else(|error| panic!("{error} in\n{statement}")),
                    }
                }
            }
        }
    }

    /// Runs `strike` while the sessions count.
    pub fn during(&self, fault: &Fault, seed: u64, strike: impl FnOnce(&mut StdRng)) {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for number in 0..=SESSIONS {
                let stop = &stop;
                scope.spawn(move || {
                    let isolation = ["READ COMMITTED", "REPEATABLE READ"][number as usize % 2];
                    let options = self.schema.options().user(Some("app")).read_timeout(Some(TIMEOUT));
                    let mut session = Session {
                        load: self,
                        fault,
                        repeatable: isolation == "REPEATABLE READ",
                        options: options.init(vec![
                            format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"),
                            format!("SET SESSION innodb_lock_wait_timeout = {}", fault.lock_wait),
                        ]),
                        random: StdRng::seed_from_u64(seed ^ (number + 1)),
                        connection: None,
                    };
                    while !stop.load(SeqCst) {
                        if number == SESSIONS {
                            session.maintain();
                        } else {
                            session.count();
                        }
                    }
                });
            }
            let _stop = SetOnDrop(&stop);
            strike(&mut StdRng::seed_from_u64(seed));
        });
    }

    /// Waits until the sessions have counted `calls` times more.
    pub fn wait_for_calls(&self, calls: u64) {
        let before = self.ledger.acknowledged();
        self.wait_until("calls are acknowledged", || self.ledger.acknowledged() >= before + calls);
    }

    /// Does what makes calls fail, and waits until one has failed with this error.
    pub fn until_error(&self, error: impl ToString, act: impl FnOnce()) {
        let error = error.to_string();
        let before = self.ledger.failed(&error);
        act();
        self.wait_until(&format!("a call fails: {error}"), || self.ledger.failed(&error) > before);
    }

    /// Waits for a state.
    pub fn wait_until(&self, state: &str, reached: impl Fn() -> bool) {
        let start = Instant::now();
        while !reached() {
            assert!(start.elapsed() < TIMEOUT, "timeout: {state}; {:?}; {:#?}", self.problems, self.sessions());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The sessions of the server, for a message.
    fn sessions(&self) -> mysql::Result<Vec<String>> {
        let query = "SELECT CONCAT_WS(' ', ID, USER, STATE, INFO) FROM information_schema.PROCESSLIST";
        Conn::new(self.schema.options())?.query(query)
    }

    fn problem(&self, problem: String) {
        self.problems.lock().expect("the problems").insert(problem);
    }

    /// Asserts nothing, but returns what is wrong: in the totals and the rows of the application, in the slots after the
    /// maintenance was completed, and in the column of the roll-up.
    pub fn check(&self) -> Vec<String> {
        // A session that was killed can still commit or roll back.
        let mut connection = self.schema.connect();
        let sessions = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'app'";
        let start = Instant::now();
        while connection.query_first::<u64, _>(sessions).expect(sessions) != Some(0) {
            assert!(start.elapsed() < TIMEOUT, "the sessions of the load do not end");
            thread::sleep(Duration::from_millis(5));
        }
        let rows = connection.query("SELECT id FROM orders").expect("the rows of the application");
        let mut problems = std::mem::take(&mut *self.problems.lock().expect("the problems"));
        let totals = self.totals(&mut connection);
        problems.extend(self.ledger.check(&totals, &rows.into_iter().collect()));
        connection.query_drop("DELETE FROM orders").expect("an empty table");

        // Maintenance that the fault has interrupted is completed by another call.
        for counter in 0..COUNTERS {
            let resize = format!("CALL counter_resize('counter {counter}', {SLOTS})");
            connection.query_drop(&resize).expect(&resize);
        }
        let slots = "SELECT counter_name, slots, resize_incomplete FROM counter_totals";
        let slots: Vec<(String, u64, u64)> = connection.query(slots).expect(slots);
        if slots.len() != COUNTERS as usize || slots.iter().any(|(_, slots, incomplete)| (*slots, *incomplete) != (SLOTS, 0)) {
            problems.insert(format!("after a resize to {SLOTS} slots: {slots:?}"));
        }
        connection.query_drop("CALL pages_total_rollup(NULL)").expect("a roll-up");
        let stale = "SELECT id, total FROM pages WHERE total <> pages_total_get(id)";
        let stale: Vec<(u64, i64)> = connection.query(stale).expect(stale);
        if !stale.is_empty() {
            problems.insert(format!("a roll-up has not written the totals of {stale:?}"));
        }
        for record in 1..=RECORDS {
            let compact = format!("CALL pages_total_compact({record})");
            connection.query_drop(&compact).expect(&compact);
        }
        let after = self.totals(&mut connection);
        if after != totals {
            problems.insert(format!("maintenance has changed {totals:?} to {after:?}"));
        }
        problems.into_iter().collect()
    }

    fn totals(&self, connection: &mut Conn) -> BTreeMap<Key, i64> {
        let mut totals = BTreeMap::new();
        for key in (0..COUNTERS).map(Key::Counter).chain((1..=RECORDS).map(Key::Record)) {
            let (prefix, arguments) = arguments(key);
            let get = format!("SELECT {prefix}_get({arguments})");
            totals.insert(key, connection.query_first(&get).expect(&get).expect("a total"));
        }
        totals
    }
}

/// The prefix of the routines for a key, and the arguments that identify it.
fn arguments(key: Key) -> (&'static str, String) {
    match key {
        Key::Counter(number) => ("counter", format!("'counter {number}'")),
        Key::Record(number) => ("pages_total", number.to_string()),
    }
}

/// What a statement without an error has changed: KILL QUERY can end an UPDATE of MariaDB without an error.
fn changed(connection: &Conn, statement: &str, changes: Changes) -> Changes {
    if statement.contains("UPDATE pages") && connection.affected_rows() == 0 { Changes::new() } else { changes }
}

/// One connection of the application, and what it does at random.
struct Session<'a> {
    load: &'a Load<'a>,
    fault: &'a Fault,
    /// Whether its transactions lock the gaps between rows.
    repeatable: bool,
    options: OptsBuilder,
    random: StdRng,
    connection: Option<Conn>,
}

impl Session<'_> {
    /// The connection, or a new one. One in 30 is new, as with a pool that replaces its connections.
    fn connection(&mut self) -> Option<Conn> {
        let kept = self.connection.take().filter(|_| !self.random.random_ratio(1, 30));
        kept.or_else(|| {
            // Errors of the server are noted. A server that does not run is not an error of a call.
            let failed = Conn::new(self.options.clone()).inspect_err(|error| match error {
                mysql::Error::MySqlError(_) => self.reject(error),
                _ => drop(self.fate(Step::BeforeCommit, error)),
            });
            failed.inspect_err(|_| thread::sleep(Duration::from_millis(5))).ok()
        })
    }

    fn reject(&self, error: &mysql::Error) {
        let (_, error) = self.fate(Step::BeforeCommit, error);
        self.load.ledger.note_error(error);
    }

    /// Whether a call that returned an error has counted, as docs/guarantees.md says, and the name of the error.
    fn fate(&self, step: Step, error: &mysql::Error) -> (Fate, String) {
        let mysql::Error::MySqlError(server_error) = error else {
            if !self.fault.ends_connections {
                self.load.problem(format!("a connection was lost: {error}"));
            }
            let fate = if step == Step::Commit { Fate::Unknown } else { Fate::NotCounted };
            return (fate, LOST.into());
        };
        let number = server_error.code;
        let documented = documented().get(&number).copied();
        if documented.is_none() || !(WITHOUT_FAULT.contains(&number) || self.fault.errors.contains(&number)) {
            self.load.problem(format!("{step:?}: error {number} is not documented for this fault: {server_error}"));
        }
        // A transaction that was not committed is rolled back, whatever the error.
        let fate = if step == Step::Commit { documented.unwrap_or(Fate::Unknown) } else { Fate::NotCounted };
        (fate, number.to_string())
    }

    /// One call outside a transaction, or one transaction.
    fn count(&mut self) {
        let Some(mut connection) = self.connection() else { return };
        let usable = match self.random.random_range(0..10) {
            0..6 => {
                let (call, changes) = self.call();
                let result = connection.query_drop(&call);
                // After an error, the number of rows says nothing.
                let changes = if result.is_ok() { changed(&connection, &call, changes) } else { changes };
                self.note(None, changes, result, &mut connection)
            }
            6..9 => self.transaction(&mut connection, "COMMIT"),
            _ => self.transaction(&mut connection, "ROLLBACK"),
        };
        self.connection = usable.then_some(connection);
    }

    /// Notes the result of a COMMIT or of a statement outside a transaction. Returns whether the connection still works.
    fn note(&self, row: Option<u64>, changes: Changes, result: mysql::Result<()>, connection: &mut Conn) -> bool {
        let Err(error) = result else {
            self.load.ledger.note(row, changes, Fate::Counted, None);
            return true;
        };
        let (fate, error) = self.fate(Step::Commit, &error);
        self.load.ledger.note(row, changes, fate, Some(error));
        connection.query_drop("ROLLBACK").is_ok()
    }

    /// A transaction with a row of the application. Returns whether the connection still works.
    fn transaction(&mut self, connection: &mut Conn, end: &str) -> bool {
        let row = self.load.next_row.fetch_add(1, SeqCst);
        let mut changes = Changes::new();
        let mut statements = || {
            connection.query_drop("START TRANSACTION")?;
            connection.query_drop(format!("INSERT INTO orders VALUES ({row}, REPEAT('-', 200))"))?;
            for _ in 0..self.random.random_range(1..=3) {
                let counted = if self.repeatable && self.random.random_ratio(1, 10) {
                    self.reset(connection).map(|change| vec![change])
                } else {
                    let (call, amounts) = self.call();
                    connection.query_drop(&call).map(|()| changed(connection, &call, amounts))
                };
                match counted {
                    Ok(amounts) => changes.extend(amounts),
                    // The call has changed nothing, and the earlier changes of the transaction remain.
                    Err(mysql::Error::MySqlError(error)) if error.code == 1205 => {
                        self.reject(&mysql::Error::MySqlError(error));
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        match statements() {
            Err(error) => {
                let (fate, error) = self.fate(Step::BeforeCommit, &error);
                self.load.ledger.note(Some(row), changes, fate, Some(error));
                connection.query_drop("ROLLBACK").is_ok()
            }
            Ok(()) if end == "COMMIT" => {
                let result = connection.query_drop(end);
                self.note(Some(row), changes, result, connection)
            }
            Ok(()) => {
                self.load.ledger.note(Some(row), changes, Fate::NotCounted, None);
                connection.query_drop(end).is_ok()
            }
        }
    }

    /// Resets a total, and returns what this adds to it: the transaction locks the slots and the gaps between them and the row of the
    /// column, and reads them first. At READ COMMITTED, another session could insert a slot between the two statements. The query reads downwards: a
    /// resize gives a slot a lower number.
    fn reset(&mut self, connection: &mut Conn) -> mysql::Result<(Key, i64)> {
        let (key, slots, column) = if self.random.random_bool(0.5) {
            let record = self.random.random_range(1..=RECORDS);
            let key = format!("id = {record}");
            let order = "id DESC, slot DESC";
            let slots = format!("SELECT count AS amount FROM pages_total WHERE {key} ORDER BY {order}");
            (Key::Record(record), slots, format!(" UNION ALL (SELECT total FROM pages WHERE id = {record} FOR UPDATE)"))
        } else {
            let counter = self.random.random_range(0..COUNTERS);
            let key = format!("counter_name = 'counter {counter}'");
            let order = "counter_name DESC, counter_id DESC";
            (Key::Counter(counter), format!("SELECT counter AS amount FROM counters WHERE {key} ORDER BY {order}"), String::new())
        };
        let before: Option<Option<i64>> = connection.query_first(format!(
            "/*M!101108 SET STATEMENT innodb_snapshot_isolation=OFF FOR */
             SELECT CAST(SUM(amount) AS SIGNED) FROM (({slots} LIMIT 20000 FOR UPDATE){column}) AS locked"
        ))?;
        let (prefix, arguments) = arguments(key);
        let restart = if prefix == "counter" { ", FALSE" } else { "" };
        connection.query_drop(format!("CALL {prefix}_reset({arguments}, {INITIAL}{restart})"))?;
        Ok((key, INITIAL - before.flatten().unwrap_or_default()))
    }

    /// A random call, and what it adds.
    fn call(&mut self) -> (String, Changes) {
        let named = self.random.random_bool(0.5);
        let mut key = || {
            if named {
                Key::Counter(self.random.random_range(0..COUNTERS))
            } else {
                Key::Record(self.random.random_range(1..=RECORDS))
            }
        };
        let keys = [key(), key(), key()];
        let (prefix, arguments) = arguments(keys[0]);
        let amount = self.random.random_range(1..=9);
        match self.random.random_range(0..5) {
            // A program that has not been changed yet.
            4 if let Key::Record(record) = keys[0] => {
                // MariaDB 11.8 returns 1020 for a row that has changed since the snapshot, whoever changed it.
                let exempt = "/*M!101108 SET STATEMENT innodb_snapshot_isolation=OFF FOR */";
                (format!("{exempt} UPDATE pages SET total = total + {amount} WHERE id = {record}"), vec![(keys[0], amount)])
            }
            0 => (format!("CALL {prefix}_increment({arguments})"), vec![(keys[0], 1)]),
            1 => (format!("CALL {prefix}_add({arguments}, {amount})"), vec![(keys[0], amount)]),
            2 => (format!("CALL {prefix}_add({arguments}, -{amount})"), vec![(keys[0], -amount)]),
            _ => {
                let changes: Changes = keys.into_iter().zip(amount..).collect();
                let entry = |(key, amount): &(Key, i64)| match key {
                    Key::Counter(number) => format!(r#"["counter {number}", {amount}]"#),
                    Key::Record(number) => format!("[{number}, {amount}]"),
                };
                let entries: Vec<_> = changes.iter().map(entry).collect();
                (format!("CALL {prefix}_add_many('[{}]')", entries.join(", ")), changes)
            }
        }
    }

    /// One call of maintenance. It does not change a total.
    fn maintain(&mut self) {
        thread::sleep(Duration::from_millis(20));
        let Some(mut connection) = self.connection() else { return };
        let (counter, record) = (self.random.random_range(0..COUNTERS), self.random.random_range(1..=RECORDS));
        let call = match self.random.random_range(0..3) {
            0 => format!("CALL counter_resize('counter {counter}', {})", self.random.random_range(2..=12)),
            1 => format!("CALL pages_total_compact({record})"),
            _ => "CALL pages_total_rollup(10)".to_owned(),
        };
        let result = connection.query_drop(call);
        let usable = result.inspect_err(|error| drop(self.fate(Step::Commit, error))).is_ok() || connection.ping().is_ok();
        self.connection = usable.then_some(connection);
    }
}
