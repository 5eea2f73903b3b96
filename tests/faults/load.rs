//! The load: sessions that call all routines which count, outside transactions and in transactions with a row of the application, and one
//! session that resizes, compacts and rolls up; and the ledger of what they have counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use slotted::package::Package;
use slotted::script;

use super::Fault;
use crate::exactness::SetOnDrop;
use crate::rollup::of_column;
use crate::support::{Schema, Server, package, root};

/// The sessions that count.
const SESSIONS: u64 = 8;

/// The keys of the named counters and of the records, with the prefix of their routines.
const COUNTERS: [Key; 3] = [("counter", "'a'"), ("counter", "'b'"), ("counter", "'c'")];
const RECORDS: [Key; 6] =
    [("pages_total", "1"), ("pages_total", "2"), ("pages_total", "3"), ("pages_total", "4"), ("pages_total", "5"), ("pages_total", "6")];

/// The slots of each named counter when the load has ended.
const SLOTS: u64 = 7;

/// The initial total of each.
const INITIAL: i64 = 1000;

/// The time until a state is reached. A machine under load takes much longer than an idle one.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The errors that the load returns without a fault: lock wait timeouts on a slow machine, deadlocks with a resize and of
/// transactions that count in different order.
pub const WITHOUT_FAULT: [u16; 2] = [1205, 1213];

/// The name of an error in the ledger for a connection that has ended.
pub const LOST: &str = "lost connection";

type Key = (&'static str, &'static str);

/// The amounts that a call or a transaction adds.
type Changes = Vec<(Key, i64)>;

/// Whether a call has counted.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Counted,
    NotCounted,
    Unknown,
}

/// The errors of the server after which a call may have counted.
const UNKNOWN: [u16; 3] = [1317, 1105, 1329];

/// Whether the table "Errors and retry" of docs/guarantees.md says the same of an error.
pub fn is_documented(number: u16) -> bool {
    let page = std::fs::read_to_string(root().join("docs/guarantees.md")).expect("the page");
    let (_, section) = page.split_once("\n## Errors and retry\n").expect("the section");
    let mut rows = section.split("\n## ").next().unwrap_or_default().lines().filter_map(|row| row.split_once(" | "));
    let said = if UNKNOWN.contains(&number) { "unknown" } else { "no" };
    rows.any(|(numbers, rest)| numbers.contains(&number.to_string()) && rest.starts_with(said))
}

#[derive(Default)]
struct Ledger {
    /// Of each key: what is acknowledged, what may have been added and what may have been subtracted.
    sums: BTreeMap<Key, [i64; 3]>,
    acknowledged: u64,
    /// The number of calls that an error has ended, by error.
    failed: BTreeMap<String, u64>,
    /// The rows of transactions that the server has acknowledged, and of those that have not committed.
    committed: BTreeSet<u64>,
    rejected: BTreeSet<u64>,
    /// The transactions that may have committed. Their rows tell whether they have.
    undecided: BTreeMap<u64, Changes>,
    /// What contradicts the documents.
    problems: BTreeSet<String>,
}

impl Ledger {
    /// Notes a call, or a transaction with the row of the application that it inserts.
    fn note(&mut self, row: Option<u64>, changes: Changes, fate: Fate) {
        self.acknowledged += u64::from(fate == Fate::Counted);
        match (fate, row) {
            (Fate::Counted, Some(row)) => _ = self.committed.insert(row),
            (Fate::NotCounted, Some(row)) => _ = self.rejected.insert(row),
            (Fate::Unknown, Some(row)) => {
                self.undecided.insert(row, changes);
                return;
            }
            (_, None) => {}
        }
        for (key, amount) in changes {
            let place = match fate {
                Fate::Counted => 0,
                Fate::NotCounted => continue,
                Fate::Unknown => 1 + usize::from(amount < 0),
            };
            self.sums.entry(key).or_default()[place] += amount;
        }
    }

    /// Compares the totals, and the rows of the application, with the calls.
    fn check(&mut self, totals: &BTreeMap<Key, i64>, rows: &BTreeSet<u64>) {
        for (row, changes) in std::mem::take(&mut self.undecided) {
            self.note(Some(row), changes, if rows.contains(&row) { Fate::Counted } else { Fate::NotCounted });
        }
        let missing: Vec<_> = self.committed.difference(rows).collect();
        let unexpected: Vec<_> = rows.intersection(&self.rejected).collect();
        if !missing.is_empty() || !unexpected.is_empty() {
            self.problems.insert(format!("transactions: {missing:?} are missing, {unexpected:?} exist"));
        }
        for (key, total) in totals {
            let [acknowledged, added, subtracted] = self.sums[key];
            if !(acknowledged + subtracted..=acknowledged + added).contains(total) {
                self.problems.insert(format!("the total of {key:?} is {total}: {:?}", self.sums[key]));
            }
        }
    }
}

/// A schema with both packages, and what the load has added to their totals.
pub struct Load<'a> {
    pub server: &'a Server,
    pub schema: Schema<'a>,
    ledger: Mutex<Ledger>,
    packages: [Package; 2],
    next_row: AtomicU64,
}

impl<'a> Load<'a> {
    /// Installs the packages as a production server has them: the routines and the application have accounts without
    /// privileges of an administrator.
    pub fn new(server: &'a Server) -> Self {
        let definer = || Some("slotted@localhost".parse().expect("an account"));
        let packages =
            [package(|options| options.definer = definer()), of_column("pages.total", "id BIGINT", |options| options.definer = definer())];
        let schema = server.schema();
        schema.run(
            "CREATE TABLE pages (id BIGINT PRIMARY KEY, total BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB;
             CREATE TABLE orders (id BIGINT PRIMARY KEY, note VARCHAR(200) NOT NULL) ENGINE = InnoDB;
             CREATE USER IF NOT EXISTS app@localhost",
        );
        for package in &packages {
            schema.install(package);
            schema.run(&schema.file(package, "accounts.sql"));
        }
        schema.run(&format!("GRANT EXECUTE, SELECT, INSERT, UPDATE, LOCK TABLES ON {}.* TO app@localhost", schema.ident()));
        COUNTERS.iter().for_each(|(_, name)| schema.run(&format!("CALL counter_setup({name}, NULL, {SLOTS}, 0)")));
        RECORDS.iter().for_each(|(_, id)| schema.run(&format!("INSERT INTO pages (id) VALUES ({id})")));
        let mut ledger = Ledger::default();
        for key in COUNTERS.into_iter().chain(RECORDS) {
            schema.run(&format!("CALL {}_add({}, {INITIAL})", key.0, key.1));
            ledger.note(None, vec![(key, INITIAL)], Fate::Counted);
        }
        Self { server, schema, ledger: Mutex::new(ledger), packages, next_row: AtomicU64::new(1) }
    }

    fn ledger<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> T {
        act(&mut self.ledger.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// The number of calls that an error has ended.
    pub fn failed(&self, error: &str) -> u64 {
        self.ledger(|ledger| ledger.failed.get(error).copied().unwrap_or_default())
    }

    /// Replaces the routines and views, as an upgrade does.
    pub fn upgrade(&self) {
        for package in &self.packages {
            let mut connection = self.schema.connect();
            for statement in script::statements(&self.schema.file(package, "create_procedures.sql")) {
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
                        options: options.init(vec![
                            format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"),
                            format!("SET SESSION innodb_lock_wait_timeout = {}", fault.lock_wait),
                        ]),
                        random: StdRng::seed_from_u64(seed ^ (number + 1)),
                        connection: None,
                    };
                    while !stop.load(SeqCst) {
                        if number == SESSIONS { session.maintain() } else { session.count() }
                    }
                });
            }
            let _stop = SetOnDrop(&stop);
            strike(&mut StdRng::seed_from_u64(seed));
        });
    }

    /// Waits until the sessions have counted `calls` times more.
    pub fn wait_for_calls(&self, calls: u64) {
        let acknowledged = || self.ledger(|ledger| ledger.acknowledged);
        let before = acknowledged();
        self.wait_until("calls are acknowledged", || acknowledged() >= before + calls);
    }

    /// Does what makes calls fail, and waits until one has failed with this error.
    pub fn until_error(&self, error: impl ToString, act: impl FnOnce()) {
        let error = error.to_string();
        let before = self.failed(&error);
        act();
        self.wait_until(&format!("a call fails: {error}"), || self.failed(&error) > before);
    }

    /// Waits for a state.
    fn wait_until(&self, state: &str, reached: impl Fn() -> bool) {
        let start = Instant::now();
        while !reached() {
            assert!(start.elapsed() < TIMEOUT, "timeout: {state}; {:?}", self.ledger(|ledger| ledger.problems.clone()));
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns what is wrong: in the totals and the rows of the application, in the slots after the maintenance was completed,
    /// and in the column of the roll-up.
    pub fn check(&self) -> BTreeSet<String> {
        let mut connection = self.schema.connect();
        // A session that was killed can still commit or roll back.
        let sessions = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'app'";
        self.wait_until("the sessions end", || self.schema.first::<u64>(sessions) == 0);
        let rows: Vec<u64> = connection.query("SELECT id FROM orders").expect("the rows of the application");
        let totals = self.totals();
        self.ledger(|ledger| ledger.check(&totals, &rows.into_iter().collect()));
        let mut problems = self.ledger(|ledger| std::mem::take(&mut ledger.problems));

        // Maintenance that the fault has interrupted is completed by another call.
        let resizes = COUNTERS.map(|(_, name)| format!("counter_resize({name}, {SLOTS})"));
        let compacts = RECORDS.map(|(_, id)| format!("pages_total_compact({id})"));
        for call in resizes.into_iter().chain(["pages_total_rollup(NULL)".to_owned()]).chain(compacts) {
            connection.query_drop(format!("CALL {call}")).expect(&call);
        }
        let slots = "SELECT counter_name, COUNT(*), MIN(counter_id), MAX(counter_id) FROM counters GROUP BY counter_name";
        let slots: Vec<(String, u64, i64, u64)> = connection.query(slots).expect(slots);
        if slots.len() != COUNTERS.len() || slots.iter().any(|(_, slots, first, last)| (*slots, *first, *last) != (SLOTS, 1, SLOTS)) {
            problems.insert(format!("after a resize to {SLOTS} slots: {slots:?}"));
        }
        let pending: Vec<(u64, i64)> = connection.query("SELECT id, total FROM pages WHERE total <> pages_total_get(id)").expect("the pages");
        if !pending.is_empty() {
            problems.insert(format!("a roll-up has not moved the totals of {pending:?}"));
        }
        if self.totals() != totals {
            problems.insert(format!("maintenance has changed {totals:?} to {:?}", self.totals()));
        }
        problems
    }

    fn totals(&self) -> BTreeMap<Key, i64> {
        let total = |key: Key| (key, self.schema.first(&format!("SELECT {}_get({})", key.0, key.1)));
        COUNTERS.into_iter().chain(RECORDS).map(total).collect()
    }
}

/// One connection of the application, and what it does at random.
struct Session<'a> {
    load: &'a Load<'a>,
    fault: &'a Fault,
    options: OptsBuilder,
    random: StdRng,
    connection: Option<Conn>,
}

impl Session<'_> {
    /// The connection, or a new one. One in 30 is new, as with a pool that replaces its connections.
    fn connection(&mut self) -> Option<Conn> {
        let kept = self.connection.take().filter(|_| !self.random.random_ratio(1, 30));
        kept.or_else(|| {
            let failed = Conn::new(self.options.clone()).inspect_err(|error| _ = self.fate(false, error));
            failed.inspect_err(|_| thread::sleep(Duration::from_millis(5))).ok()
        })
    }

    /// Whether what returned an error has counted. `commits`: it is a COMMIT, or a statement outside a transaction.
    fn fate(&self, commits: bool, error: &mysql::Error) -> Fate {
        let (name, unknown, allowed) = match error {
            // 1927: MariaDB says that the connection was killed.
            mysql::Error::MySqlError(error) if error.code != 1927 => {
                let allowed = WITHOUT_FAULT.contains(&error.code) || self.fault.errors.contains(&error.code);
                (error.code.to_string(), UNKNOWN.contains(&error.code), allowed)
            }
            _ => (LOST.to_owned(), true, self.fault.ends_connections),
        };
        self.load.ledger(|ledger| {
            *ledger.failed.entry(name).or_default() += 1;
            if !allowed {
                ledger.problems.insert(format!("no error of this fault: {error}"));
            }
        });
        // A transaction that was not committed is rolled back, whatever the error.
        if commits && unknown { Fate::Unknown } else { Fate::NotCounted }
    }

    /// One call outside a transaction, or one transaction.
    fn count(&mut self) {
        let Some(mut connection) = self.connection() else { return };
        let usable = match self.random.random_range(0..10) {
            0..6 => {
                let (call, changes) = self.call();
                let result = connection.query_drop(&call);
                self.end(None, changes, result, &mut connection)
            }
            6..9 => self.transaction(&mut connection, true),
            _ => self.transaction(&mut connection, false),
        };
        self.connection = usable.then_some(connection);
    }

    /// Notes the result of a COMMIT or of a statement outside a transaction. Returns whether the connection still works.
    fn end(&self, row: Option<u64>, changes: Changes, result: mysql::Result<()>, connection: &mut Conn) -> bool {
        let fate = result.as_ref().map_or_else(|error| self.fate(true, error), |()| Fate::Counted);
        self.load.ledger(|ledger| ledger.note(row, changes, fate));
        result.is_ok() || connection.query_drop("ROLLBACK").is_ok()
    }

    /// A transaction with a row of the application. Returns whether the connection still works.
    fn transaction(&mut self, connection: &mut Conn, commits: bool) -> bool {
        let row = self.load.next_row.fetch_add(1, SeqCst);
        let mut changes = Changes::new();
        let mut statements = || {
            connection.query_drop("START TRANSACTION")?;
            connection.query_drop(format!("INSERT INTO orders VALUES ({row}, REPEAT('-', 200))"))?;
            for _ in 0..self.random.random_range(1..=3) {
                let (call, amounts) = self.call();
                match connection.query_drop(&call) {
                    Ok(()) => changes.extend(amounts),
                    // The call has changed nothing, and the earlier changes of the transaction remain.
                    Err(mysql::Error::MySqlError(error)) if error.code == 1205 => _ = self.fate(false, &mysql::Error::MySqlError(error)),
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        let result = statements();
        if result.is_ok() && commits {
            let result = connection.query_drop("COMMIT");
            return self.end(Some(row), changes, result, connection);
        }
        if let Err(error) = &result {
            self.fate(false, error);
        }
        self.load.ledger(|ledger| ledger.note(Some(row), changes, Fate::NotCounted));
        connection.query_drop("ROLLBACK").is_ok()
    }

    fn key(&mut self) -> Key {
        let keys = if self.random.random_bool(0.5) { &COUNTERS[..] } else { &RECORDS };
        keys[self.random.random_range(0..keys.len())]
    }

    /// A random call, and what it adds.
    fn call(&mut self) -> (String, Changes) {
        let key = self.key();
        let (prefix, of_key) = key;
        let amount = self.random.random_range(1..=9);
        match self.random.random_range(0..4) {
            0 => (format!("CALL {prefix}_increment({of_key})"), vec![(key, 1)]),
            1 => (format!("CALL {prefix}_add({of_key}, -{amount})"), vec![(key, -amount)]),
            2 if prefix != "counter" => {
                let changes: Changes = (0..3).map(|_| RECORDS[self.random.random_range(0..RECORDS.len())]).zip(amount..).collect();
                let entries: Vec<_> = changes.iter().map(|((_, id), amount)| format!("[{id}, {amount}]")).collect();
                (format!("CALL {prefix}_add_many('[{}]')", entries.join(", ")), changes)
            }
            _ => (format!("CALL {prefix}_add({of_key}, {amount})"), vec![(key, amount)]),
        }
    }

    /// One call of maintenance. It does not change a total.
    fn maintain(&mut self) {
        thread::sleep(Duration::from_millis(20));
        let Some(mut connection) = self.connection() else { return };
        let (counter, record) = (COUNTERS[self.random.random_range(0..3)].1, RECORDS[self.random.random_range(0..6)].1);
        let call = match self.random.random_range(0..3) {
            0 => format!("CALL counter_resize({counter}, {})", self.random.random_range(2..=12)),
            1 => format!("CALL pages_total_compact({record})"),
            _ => "CALL pages_total_rollup(10)".to_owned(),
        };
        let result = connection.query_drop(call);
        let usable = result.inspect_err(|error| _ = self.fate(true, error)).is_ok() || connection.ping().is_ok();
        self.connection = usable.then_some(connection);
    }
}
