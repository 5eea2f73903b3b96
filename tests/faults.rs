//! No acknowledged count is lost, and none counts twice, whatever happens to the server, the sessions and the table.
//!
//! A fault happens while sessions call all routines that count, outside transactions and in transactions with a row of the application, and
//! one session resizes, compacts and rolls up. Then the ledger of these calls is compared with each total: acknowledged <= total <=
//! acknowledged + unknown. Which errors are unknown, docs/routines.md says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use mysql::{Error, OptsBuilder};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use slotted::package::Package;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .private()
        .on_servers(a_killed_server_loses_no_count)
        .on_servers(a_killed_session_loses_no_count)
        .on_servers(a_call_that_waits_too_long_for_a_lock_has_not_counted)
        .on_servers(a_read_only_server_rejects_calls_and_loses_no_count)
        .on_servers(an_upgrade_of_the_package_loses_no_count);
}

/// The duration of a fault.
const DURATION: Duration = Duration::from_secs(2);

/// The time that a call takes at most. A machine under load takes much longer than an idle one.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The sessions that count.
const SESSIONS: u64 = 8;

/// A counter: the prefix of its routines, and its key.
type Key = (&'static str, &'static str);

const COUNTERS: [Key; 3] = [("counter", "'a'"), ("counter", "'b'"), ("bounded_counter", "'c'")];
const RECORDS: [Key; 4] = [("pages_total", "1"), ("pages_total", "2"), ("pages_total", "3"), ("pages_total", "4")];

/// The slots of each named counter when the load has ended.
const SLOTS: u64 = 7;

/// The initial total of each.
const INITIAL: i64 = 1000;

/// The errors without a fault: lock wait timeouts on a slow machine, deadlocks with a resize or of transactions in different order.
const WITHOUT_FAULT: [u16; 2] = [1205, 1213];

/// The number of an error in the ledger for a connection that has ended.
const LOST: u16 = 2013;

/// The errors of the server after which a call may have counted.
const UNKNOWN: [u16; 3] = [1317, 1105, 1329];

/// What happens again and again while sessions count, through the connection of an administrator.
type Strike = fn(&Load<'_>, &mut Conn, &mut StdRng);

fn a_killed_server_loses_no_count(server: &Server) {
    promise(server, &[LOST], &[LOST], |load, _, random| {
        load.wait_for_calls(random.random_range(1..=300));
        load.until_error(LOST, || load.schema.server.kill());
        load.schema.server.start_again(&[]).expect("the server starts again");
        load.wait_for_calls(20);
    });
}

fn a_killed_session_loses_no_count(server: &Server) {
    // A session that is killed does not enter a handler, so that the number is that of the server or of a fallback.
    promise(server, &[LOST, 1317, 1105, 1329, 1305, 30021], &[LOST, 1317], |_, administrator, random| {
        let sessions = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'app'";
        let sessions: Vec<u64> = administrator.query(sessions).expect(sessions);
        for session in sessions {
            let kind = if random.random_bool(0.8) { "QUERY" } else { "CONNECTION" };
            // Fails if the session has ended.
            let _ = administrator.query_drop(format!("KILL {kind} {session}"));
            thread::sleep(Duration::from_millis(random.random_range(1..=8)));
        }
    });
}

fn a_call_that_waits_too_long_for_a_lock_has_not_counted(server: &Server) {
    promise(server, &[], &[1205], |load, administrator, _| {
        let mut lock = || {
            administrator.query_drop("START TRANSACTION").expect("a transaction");
            let rows = ["counters WHERE counter_name = 'b'", "pages_total WHERE id >= 3"];
            let mut locks = rows.map(|rows| format!("SELECT COUNT(*) FROM {rows} FOR UPDATE")).into_iter();
            // The victim of a deadlock with a transaction of the load has no locks.
            locks.all(|lock| match administrator.query_first::<u64, _>(&lock) {
                Err(Error::MySqlError(error)) if error.code == 1213 => false,
                locked => locked.map(|_| true).expect(&lock),
            })
        };
        load.until_error(1205, || while !lock() {});
        // Long enough that calls of several routines fail.
        (0..4).for_each(|_| load.until_error(1205, || {}));
        administrator.query_drop("ROLLBACK").expect("a rollback");
    });
}

/// Calls also reach the lock wait timeout: the switch waits for a call, which waits for a transaction, which waits for the switch.
fn a_read_only_server_rejects_calls_and_loses_no_count(server: &Server) {
    promise(server, &[1290], &[1290], |load, administrator, random| {
        let also_super = load.schema.server.is_mysql() && random.random_bool(0.5);
        let variable = if also_super { "super_read_only" } else { "read_only" };
        let mut set = |variable: &str| administrator.query_drop(format!("SET GLOBAL {variable}")).expect(variable);
        load.until_error(1290, || set(&format!("{variable} = ON")));
        thread::sleep(Duration::from_millis(random.random_range(1..=100)));
        set("read_only = OFF");
    });
}

fn an_upgrade_of_the_package_loses_no_count(server: &Server) {
    promise(server, &[1305], &[], |load, _, _| {
        for package in &load.packages {
            let script = load.schema.file(package, "create_procedures.sql");
            // It waits 2 s for open transactions (1205), and is sourced again then.
            load.wait_until("an upgrade", || match source(&mut load.schema.connect(), &script) {
                Err(Error::MySqlError(error)) if error.code == 1205 => false,
                done => done.map(|()| true).expect("create_procedures.sql"),
            });
        }
    });
}

/// Runs a load with a fault on a server of its own, and asserts that the ledger is right. Calls may return `errors` in addition to those
/// without a fault, and must have returned those of `until` at the end.
fn promise(server: &Server, errors: &'static [u16], until: &[u16], strike: Strike) {
    for number in WITHOUT_FAULT.iter().chain(errors).filter(|number| **number != LOST) {
        assert!(is_documented(*number), "{number} is not in docs/routines.md");
    }
    let seed = rand::random();
    let server = server.another(&[]);
    let new = Load::new(&server, errors);
    let (load, stop) = (&new, &AtomicBool::new(false));
    thread::scope(|scope| {
        let _stop = SetOnDrop(stop);
        for number in 0..=SESSIONS {
            scope.spawn(move || {
                let mut session = Session::new(load, number, seed);
                while !stop.load(SeqCst) {
                    if number == SESSIONS { session.maintain() } else { session.count() }
                }
            });
        }
        let (mut administrator, mut random) = (load.schema.connect(), StdRng::seed_from_u64(seed));
        load.wait_for_calls(20);
        let begin = Instant::now();
        let goes_on = || begin.elapsed() < DURATION || until.iter().any(|error| load.failed(*error) == 0);
        while goes_on() && !load.has_problems() {
            strike(load, &mut administrator, &mut random);
            load.wait_for_calls(random.random_range(1..=50));
        }
        // The sessions go on after the fault.
        load.wait_for_calls(20);
    });
    let problems = new.check();
    assert!(problems.is_empty(), "seed {seed}: {problems:#?}\n{}", server.last_log_lines());
}

/// Whether the table of errors in docs/routines.md says the same of an error.
fn is_documented(number: u16) -> bool {
    let said = if UNKNOWN.contains(&number) { "unknown" } else { "no" };
    let mut rows = table("docs/routines.md", ERRORS).into_iter();
    rows.any(|row| row[0].contains(&number.to_string()) && row[2] == said)
}

/// The amounts that a call or a transaction adds.
type Changes = Vec<(Key, i64)>;

#[derive(Default)]
struct Ledger {
    /// The row of the application that a transaction inserts, what it or a call adds, and whether that has counted. None: unknown.
    entries: Vec<(Option<u64>, Changes, Option<bool>)>,
    /// The number of calls that an error has ended, by error.
    failed: BTreeMap<u16, u64>,
    /// What contradicts the documents.
    problems: BTreeSet<String>,
}

/// A schema with the packages, and what the load has added to their totals.
struct Load<'a> {
    schema: Schema<'a>,
    /// The errors that a fault may return.
    errors: &'static [u16],
    ledger: Mutex<Ledger>,
    packages: [Package; 3],
    next_row: AtomicU64,
}

impl<'a> Load<'a> {
    /// Installs the packages as in production: no account of the routines or of the application has privileges of an administrator.
    fn new(server: &'a Server, errors: &'static [u16]) -> Self {
        let packages = [package(as_slotted), bounded(as_slotted), of_column("pages.total", "id BIGINT", as_slotted)];
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
        schema.run(&format!("GRANT EXECUTE, SELECT, INSERT, UPDATE ON {}.* TO app@localhost", schema.ident()));
        for (prefix, key) in COUNTERS {
            schema.run(&format!("CALL {prefix}_setup({key}, NULL, {SLOTS}, {INITIAL})"));
        }
        RECORDS.iter().for_each(|(_, id)| schema.run(&format!("INSERT INTO pages VALUES ({id}, {INITIAL})")));
        Self { schema, errors, ledger: Mutex::default(), packages, next_row: AtomicU64::new(1) }
    }

    fn ledger<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> T {
        act(&mut self.ledger.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// The number of calls that an error has ended.
    fn failed(&self, error: u16) -> u64 {
        self.ledger(|ledger| ledger.failed.get(&error).copied().unwrap_or_default())
    }

    /// Waits until the sessions have counted `calls` times more.
    fn wait_for_calls(&self, calls: usize) {
        let counted = |ledger: &mut Ledger| ledger.entries.iter().filter(|entry| entry.2 == Some(true)).count();
        let acknowledged = || self.ledger(counted);
        let before = acknowledged();
        self.wait_until("calls are acknowledged", || acknowledged() >= before + calls);
    }

    /// Does what makes calls fail, and waits until one has failed with this error.
    fn until_error(&self, error: u16, act: impl FnOnce()) {
        let before = self.failed(error);
        act();
        self.wait_until(&format!("a call fails: {error}"), || self.failed(error) > before);
    }

    /// Waits for a state, or for a problem, which the promise reports at its end.
    fn wait_until(&self, state: &str, reached: impl Fn() -> bool) {
        until(state, || reached() || self.has_problems());
    }

    fn has_problems(&self) -> bool {
        self.ledger(|ledger| !ledger.problems.is_empty())
    }

    /// Returns what is wrong: in the totals, the rows of the application, the slots after complete maintenance, and the column.
    fn check(self) -> BTreeSet<String> {
        // A session that was killed can still commit or roll back.
        let sessions = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'app'";
        self.wait_until("the sessions end", || self.schema.first::<u64>(sessions) == 0);
        let (schema, Ledger { entries, mut problems, .. }) = (self.schema, self.ledger.into_inner().expect("no panic"));
        let total = |key: Key| (key, schema.first::<i64>(&format!("SELECT {}_get({})", key.0, key.1)));
        let totals = || COUNTERS.into_iter().chain(RECORDS).map(total).collect::<BTreeMap<_, _>>();
        let (before, rows) = (totals(), schema.query::<u64>("SELECT id FROM orders"));

        // The least and the greatest total of each key. The row of a transaction tells whether it has committed.
        let mut limits: BTreeMap<_, _> = before.keys().map(|key| (*key, (INITIAL, INITIAL))).collect();
        let rows = BTreeSet::from_iter(rows);
        for (row, changes, counted) in entries {
            let exists = row.map(|row| rows.contains(&row));
            if exists.is_some() && counted.is_some() && exists != counted {
                problems.insert(format!("the transaction of row {row:?} exists: {exists:?}, counted: {counted:?}"));
            }
            let counted = counted.or(exists);
            for (key, amount) in changes.iter().filter(|_| counted != Some(false)) {
                let (least, most) = limits.entry(*key).or_default();
                *least += if counted.is_some() { *amount } else { 0.min(*amount) };
                *most += if counted.is_some() { *amount } else { 0.max(*amount) };
            }
        }
        for (key, total) in &before {
            let (least, most) = limits[key];
            if !(least..=most).contains(total) {
                problems.insert(format!("the total of {key:?} is {total}, not {least} to {most}"));
            }
        }

        // Maintenance that the fault has interrupted is completed by another call.
        COUNTERS.iter().for_each(|(prefix, key)| schema.run(&format!("CALL {prefix}_resize({key}, {SLOTS})")));
        schema.run("CALL pages_total_rollup(NULL)");
        RECORDS.iter().for_each(|(_, id)| schema.run(&format!("CALL pages_total_compact({id})")));
        let slots = ["counters", "bounded_counters"].map(|table| {
            let query = format!("SELECT COUNT(*), MIN(counter_id), MAX(counter_id) FROM {table}");
            schema.first::<(u64, i64, u64)>(&query)
        });
        if slots != [(2 * SLOTS, 1, SLOTS), (SLOTS, 1, SLOTS)] {
            problems.insert(format!("after a resize to {SLOTS} slots: {slots:?}"));
        }
        let pending: Vec<u64> = schema.query("SELECT id FROM pages WHERE total <> pages_total_get(id)");
        if !pending.is_empty() {
            problems.insert(format!("a roll-up has not moved the totals of {pending:?}"));
        }
        let after = totals();
        if after != before {
            problems.insert(format!("maintenance has changed {before:?} to {after:?}"));
        }
        problems
    }
}

/// One connection of the application, and what it does at random.
struct Session<'a> {
    load: &'a Load<'a>,
    options: OptsBuilder,
    random: StdRng,
    connection: Option<Conn>,
}

impl<'a> Session<'a> {
    fn new(load: &'a Load<'a>, number: u64, seed: u64) -> Self {
        let isolation = ["READ COMMITTED", "REPEATABLE READ"][number as usize % 2];
        let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}");
        let options = load.schema.options().user(Some("app")).read_timeout(Some(TIMEOUT));
        let options = options.init(vec![level, "SET SESSION innodb_lock_wait_timeout = 1".to_owned()]);
        Self { load, options, random: StdRng::seed_from_u64(seed ^ (number + 1)), connection: None }
    }

    /// The connection, or a new one. One in 30 is new, as with a pool that replaces its connections.
    fn connection(&mut self) -> Option<Conn> {
        let kept = self.connection.take().filter(|_| !self.random.random_ratio(1, 30));
        kept.or_else(|| {
            let failed = Conn::new(self.options.clone()).inspect_err(|error| _ = self.counted(false, error));
            failed.inspect_err(|_| thread::sleep(Duration::from_millis(5))).ok()
        })
    }

    /// Whether what returned an error has counted. `commits`: it is a COMMIT, or a statement outside a transaction.
    fn counted(&self, commits: bool, error: &Error) -> Option<bool> {
        let number = match error {
            // 1927: MariaDB says that the connection was killed.
            Error::MySqlError(error) if error.code != 1927 => error.code,
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
        if commits && unknown { None } else { Some(false) }
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
        let counted = match before {
            Ok(()) if rolls_back => Some(false),
            Ok(()) => connection.query_drop(last).map_or_else(|error| self.counted(true, &error), |()| Some(true)),
            Err(error) => self.counted(false, &error),
        };
        self.load.ledger(|ledger| ledger.entries.push((row, changes, counted)));
        let usable = counted == Some(true) || connection.query_drop("ROLLBACK").is_ok();
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
                Err(error) if matches!(&error, Error::MySqlError(error) if error.code == 1205) => {
                    _ = self.counted(false, &error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A random call, and what it adds.
    fn call(&mut self) -> (String, Changes) {
        let keys = if self.random.random_bool(0.5) { &COUNTERS[..] } else { &RECORDS };
        let mut any = || keys[self.random.random_range(0..keys.len())];
        let (key @ (prefix, of_key), many) = (any(), [any(), any(), any()]);
        let amount = self.random.random_range(1..=9);
        match self.random.random_range(0..4) {
            0 => (format!("CALL {prefix}_increment({of_key})"), vec![(key, 1)]),
            1 => (format!("CALL {prefix}_add({of_key}, -{amount})"), vec![(key, -amount)]),
            2 if keys == RECORDS => {
                let changes: Changes = many.into_iter().zip(amount..).collect();
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
        let (prefix, key) = COUNTERS[self.random.random_range(0..COUNTERS.len())];
        let call = match self.random.random_range(0..3) {
            0 => format!("CALL {prefix}_resize({key}, {})", self.random.random_range(2..=12)),
            1 => format!("CALL pages_total_compact({})", self.random.random_range(1..=RECORDS.len())),
            _ => "CALL pages_total_rollup(10)".to_owned(),
        };
        let result = connection.query_drop(call);
        let usable = result.inspect_err(|error| _ = self.counted(true, error)).is_ok() || connection.ping().is_ok();
        self.connection = usable.then_some(connection);
    }
}
