//! The load: sessions that call all routines which count, outside transactions and in transactions with a row of the application, and one
//! session that resizes, compacts and rolls up; and the ledger of what they have counted.

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

use crate::exactness::SetOnDrop;
use crate::rollup::of_column;
use crate::support::{Schema, Server, package, root};

/// The sessions that count.
const SESSIONS: u64 = 8;

/// The keys of the named counters and of the records, with the prefix of their routines.
const COUNTERS: [Key; 3] = [("counter", "'a'"), ("counter", "'b'"), ("counter", "'c'")];
const RECORDS: [Key; 6] = [
    ("pages_total", "1"),
    ("pages_total", "2"),
    ("pages_total", "3"),
    ("pages_total", "4"),
    ("pages_total", "5"),
    ("pages_total", "6"),
];

/// The slots of each named counter when the load has ended.
const SLOTS: u64 = 7;

/// The initial total of each.
const INITIAL: i64 = 1000;

/// The time until a state is reached. A machine under load takes much longer than an idle one.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The errors that the load returns without a fault: lock wait timeouts on a slow machine, deadlocks with a resize and of
/// transactions that count in different order.
pub const WITHOUT_FAULT: [u16; 2] = [1205, 1213];

/// The number of an error in the ledger for a connection that has ended.
pub const LOST: u16 = 2013;

type Key = (&'static str, &'static str);

/// The amounts that a call or a transaction adds.
type Changes = Vec<(Key, i64)>;

/// Whether a call has counted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Counted,
    NotCounted,
    Unknown,
}

/// The errors of the server after which a call may have counted.
const UNKNOWN: [u16; 3] = [1317, 1105, 1329];

/// Whether the table of errors in docs/routines.md says the same of an error.
pub fn is_documented(number: u16) -> bool {
    let page = std::fs::read_to_string(root().join("docs/routines.md")).expect("the page");
    let said = if UNKNOWN.contains(&number) { "unknown" } else { "no" };
    let mut rows = page.lines().map(|row| row.split(" | ").collect::<Vec<_>>());
    rows.any(|row| row[0].contains(&number.to_string()) && row.get(2) == Some(&said))
}

#[derive(Default)]
struct Ledger {
    /// The calls, and the transactions with the row of the application that they insert.
    entries: Vec<(Option<u64>, Changes, Fate)>,
    acknowledged: u64,
    /// The number of calls that an error has ended, by error.
    failed: BTreeMap<u16, u64>,
    /// What contradicts the documents.
    problems: BTreeSet<String>,
}

impl Ledger {
    fn note(&mut self, row: Option<u64>, changes: Changes, fate: Fate) {
        self.acknowledged += u64::from(fate == Fate::Counted);
        self.entries.push((row, changes, fate));
    }

    /// Compares the totals, and the rows of the application, with the entries. The row tells whether a transaction has committed.
    fn check(&mut self, totals: &BTreeMap<Key, i64>, rows: &BTreeSet<u64>) {
        // Of each key: what is acknowledged, what may have been added and what may have been subtracted.
        let mut sums = BTreeMap::<Key, [i64; 3]>::new();
        for (row, changes, fate) in &self.entries {
            let exists = row.map(|row| rows.contains(&row));
            let counted = match fate {
                Fate::Unknown => exists,
                fate => Some(*fate == Fate::Counted),
            };
            if exists.is_some() && exists != counted {
                self.problems.insert(format!("the transaction of row {row:?} is {fate:?}"));
            }
            for (key, amount) in changes {
                let place = counted.map_or(1 + usize::from(*amount < 0), |_| 0);
                sums.entry(*key).or_default()[place] += if counted == Some(false) { 0 } else { *amount };
            }
        }
        for (key, total) in totals {
            let [acknowledged, added, subtracted] = sums[key];
            if !(acknowledged + subtracted..=acknowledged + added).contains(total) {
                self.problems.insert(format!("the total of {key:?} is {total}: {:?}", sums[key]));
            }
        }
    }
}

/// A schema with both packages, and what the load has added to their totals.
pub struct Load<'a> {
    pub server: &'a Server,
    pub schema: Schema<'a>,
    /// The errors that a fault may return.
    errors: &'static [u16],
    ledger: Mutex<Ledger>,
    packages: [Package; 2],
    next_row: AtomicU64,
}

impl<'a> Load<'a> {
    /// Installs the packages as a production server has them: the routines and the application have accounts without
    /// privileges of an administrator.
    pub fn new(server: &'a Server, errors: &'static [u16]) -> Self {
        let definer = || Some("slotted@localhost".parse().expect("an account"));
        let packages =
            [package(|o| o.definer = definer()), of_column("pages.total", "id BIGINT", |o| o.definer = definer())];
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
        schema.run(&format!(
            "GRANT EXECUTE, SELECT, INSERT, UPDATE, LOCK TABLES ON {}.* TO app@localhost",
            schema.ident()
        ));
        COUNTERS.iter().for_each(|(_, name)| schema.run(&format!("CALL counter_setup({name}, NULL, {SLOTS}, 0)")));
        RECORDS.iter().for_each(|(_, id)| schema.run(&format!("INSERT INTO pages (id) VALUES ({id})")));
        let mut ledger = Ledger::default();
        for key in COUNTERS.into_iter().chain(RECORDS) {
            schema.run(&format!("CALL {}_add({}, {INITIAL})", key.0, key.1));
            ledger.note(None, vec![(key, INITIAL)], Fate::Counted);
        }
        Self { server, schema, errors, ledger: Mutex::new(ledger), packages, next_row: AtomicU64::new(1) }
    }

    fn ledger<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> T {
        act(&mut self.ledger.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// The number of calls that an error has ended.
    pub fn failed(&self, error: u16) -> u64 {
        self.ledger(|ledger| ledger.failed.get(&error).copied().unwrap_or_default())
    }

    /// Replaces the routines and views, as an upgrade does. The script waits 2 s for open transactions (1205), and is sourced again then.
    pub fn upgrade(&self) {
        for package in &self.packages {
            let script = script::statements(&self.schema.file(package, "create_procedures.sql"));
            self.wait_until("an upgrade", || {
                let mut connection = self.schema.connect();
                match script.iter().try_for_each(|statement| connection.query_drop(statement)) {
                    Err(mysql::Error::MySqlError(error)) if error.code == 1205 => false,
                    done => done.map(|()| true).expect("create_procedures.sql"),
                }
            });
        }
    }

    /// Runs `strike` while the sessions count.
    pub fn during(&self, seed: u64, strike: impl FnOnce(&mut StdRng)) {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for number in 0..=SESSIONS {
                let stop = &stop;
                scope.spawn(move || {
                    let isolation = ["READ COMMITTED", "REPEATABLE READ"][number as usize % 2];
                    let options = self.schema.options().user(Some("app")).read_timeout(Some(TIMEOUT));
                    let mut session = Session {
                        load: self,
                        options: options.init(vec![
                            format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"),
                            "SET SESSION innodb_lock_wait_timeout = 1".to_owned(),
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
    pub fn until_error(&self, error: u16, act: impl FnOnce()) {
        let before = self.failed(error);
        act();
        self.wait_until(&format!("a call fails: {error}"), || self.failed(error) > before);
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
        let slots =
            "SELECT counter_name, COUNT(*), MIN(counter_id), MAX(counter_id) FROM counters GROUP BY counter_name";
        let slots: Vec<(String, u64, i64, u64)> = connection.query(slots).expect(slots);
        if slots.len() != COUNTERS.len()
            || slots.iter().any(|(_, slots, first, last)| (*slots, *first, *last) != (SLOTS, 1, SLOTS))
        {
            problems.insert(format!("after a resize to {SLOTS} slots: {slots:?}"));
        }
        let pending: Vec<(u64, i64)> =
            connection.query("SELECT id, total FROM pages WHERE total <> pages_total_get(id)").expect("the pages");
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
        let number = match error {
            // 1927: MariaDB says that the connection was killed.
            mysql::Error::MySqlError(error) if error.code != 1927 => error.code,
            _ => LOST,
        };
        let unknown = number == LOST || UNKNOWN.contains(&number);
        let allowed = WITHOUT_FAULT.contains(&number) || self.load.errors.contains(&number);
        self.load.ledger(|ledger| {
            *ledger.failed.entry(number).or_default() += 1;
            if !allowed {
                ledger.problems.insert(format!("no error of this fault: {error}"));
            }
        });
        // A transaction that was not committed is rolled back, whatever the error.
        if commits && unknown { Fate::Unknown } else { Fate::NotCounted }
    }

    /// One call outside a transaction, or a transaction with a row of the application. One transaction in four is rolled back.
    fn count(&mut self) {
        let Some(mut connection) = self.connection() else { return };
        let row = self.random.random_bool(0.4).then(|| self.load.next_row.fetch_add(1, SeqCst));
        let rolls_back = row.is_some() && self.random.random_bool(0.25);
        let mut changes = Changes::new();
        let (last, before) = match row {
            Some(row) => ("COMMIT".to_owned(), self.transaction(row, &mut changes, &mut connection)),
            None => {
                let (call, amounts) = self.call();
                changes = amounts;
                (call, Ok(()))
            }
        };
        let fate = match before {
            Ok(()) if rolls_back => Fate::NotCounted,
            Ok(()) => connection.query_drop(last).map_or_else(|error| self.fate(true, &error), |()| Fate::Counted),
            Err(error) => self.fate(false, &error),
        };
        self.load.ledger(|ledger| ledger.note(row, changes, fate));
        let usable = fate == Fate::Counted || connection.query_drop("ROLLBACK").is_ok();
        self.connection = usable.then_some(connection);
    }

    /// A transaction before its COMMIT.
    fn transaction(&mut self, row: u64, changes: &mut Changes, connection: &mut Conn) -> mysql::Result<()> {
        connection.query_drop("START TRANSACTION")?;
        connection.query_drop(format!("INSERT INTO orders VALUES ({row}, REPEAT('-', 200))"))?;
        for _ in 0..self.random.random_range(1..=3) {
            let (call, amounts) = self.call();
            match connection.query_drop(&call) {
                Ok(()) => changes.extend(amounts),
                // The call has changed nothing, and the earlier changes of the transaction remain.
                Err(mysql::Error::MySqlError(error)) if error.code == 1205 => {
                    _ = self.fate(false, &mysql::Error::MySqlError(error))
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A random call, and what it adds.
    fn call(&mut self) -> (String, Changes) {
        let keys = if self.random.random_bool(0.5) { &COUNTERS[..] } else { &RECORDS };
        let key @ (prefix, of_key) = keys[self.random.random_range(0..keys.len())];
        let amount = self.random.random_range(1..=9);
        match self.random.random_range(0..4) {
            0 => (format!("CALL {prefix}_increment({of_key})"), vec![(key, 1)]),
            1 => (format!("CALL {prefix}_add({of_key}, -{amount})"), vec![(key, -amount)]),
            2 if prefix != "counter" => {
                let changes: Changes =
                    (0..3).map(|_| RECORDS[self.random.random_range(0..RECORDS.len())]).zip(amount..).collect();
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
