//! Statements, sessions that execute them at the same time, and what these wait for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use std::{panic, thread};

use mysql::Conn;
use mysql::prelude::Queryable;

use super::{SESSIONS, Schema, error_of, servers};

/// Runs a statement, which succeeds.
#[track_caller]
pub fn run(connection: &mut Conn, statement: &str) {
    connection.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// Runs statements until the first error.
pub fn run_all(connection: &mut Conn, statements: &[impl AsRef<str>]) -> mysql::Result<()> {
    statements.iter().try_for_each(|statement| connection.query_drop(statement.as_ref()))
}

/// The number of an error after which a caller repeats its transaction: a deadlock (1213) or a lock wait timeout (1205),
/// which occurs on a machine that is overloaded for a minute. Fails on any other error.
pub fn repeatable(error: mysql::Error) -> u16 {
    let (number, message) = error_of::<()>(Err(error));
    assert!([1213, 1205].contains(&number), "{number}: {message}");
    if number == 1205 {
        eprintln!("{message}");
    }
    number
}

/// Runs a statement, or a transaction, until the server does not choose it as the victim of a deadlock. Returns how often it was one.
pub fn repeat(connection: &mut Conn, statements: &[&str]) -> u64 {
    let mut repeated = 0;
    while let Err(error) = run_all(connection, statements) {
        repeatable(error);
        run(connection, "ROLLBACK");
        repeated += 1;
    }
    repeated
}

/// The rows that a session has read.
pub fn reads(connection: &mut Conn) -> u64 {
    let status: Vec<(String, u64)> = connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'").expect("the status");
    status.iter().filter(|(name, _)| name != "Handler_read_rnd_deleted").map(|(_, rows)| rows).sum()
}

/// Sets a flag when it is dropped, so that other threads stop also if this one fails.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Runs `work` while each of these sessions does its part again and again, with its number from 0.
pub fn beside<T>(
    sessions: impl IntoIterator<Item = Conn>,
    part: impl Fn(&mut Conn, usize) + Sync,
    work: impl FnOnce() -> T,
) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for (number, mut connection) in sessions.into_iter().enumerate() {
            let (part, done) = (&part, &done);
            scope.spawn(move || {
                while !done.load(SeqCst) {
                    part(&mut connection, number);
                }
            });
        }
        let _done = SetOnDrop(&done);
        work()
    })
}

/// Runs `work` at the same time in a number of threads. The message of one that fails is that of the promise.
pub fn at_once(threads: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
    });
}

/// Runs a check until it is true.
#[track_caller]
pub fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !is_true() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The numbers of the calls of one connection under load: `most` calls, or as many as a slow machine completes in
/// [`LOAD_TIME`], a quarter of it for `scripts/test --quick`, but at least a tenth. No promise depends on this number.
pub fn calls(most: usize) -> impl Iterator<Item = usize> {
    let end = Instant::now() + LOAD_TIME / if servers::quick() { 4 } else { 1 };
    (0..most).take_while(move |call| *call < most / 10 || Instant::now() < end)
}

/// The time after which a load ends early. A load of all calls takes some seconds on a machine without other work.
const LOAD_TIME: Duration = Duration::from_millis(2500);

/// The number of random cases: a quarter of `all` with `scripts/test --quick`.
pub fn cases(all: u32) -> u32 {
    if servers::quick() { all / 4 } else { all }
}

impl Schema<'_> {
    /// A connection that has executed statements, such as those that lock something in a transaction.
    #[track_caller]
    pub fn after(&self, statements: &[&str]) -> Conn {
        let mut connection = self.connect();
        statements.iter().for_each(|statement| run(&mut connection, statement));
        connection
    }

    /// A connection that waits for a lock for 1 s at most.
    pub fn impatient(&self) -> Conn {
        self.after(&["SET SESSION innodb_lock_wait_timeout = 1"])
    }

    /// Whether a session waits for the lock of a row or of a table. INNODB_TRX is not refreshed while others read it, InnoDB's status is.
    pub fn waits(&self, session: u32) -> bool {
        let state = format!("SELECT COUNT(*) FROM {SESSIONS} WHERE ID = {session} AND STATE LIKE '%metadata lock%'");
        let (_, _, status): (String, String, String) = self.first("SHOW ENGINE INNODB STATUS");
        let thread = format!(" thread id {session},");
        let of_session = |text: &str| text.contains(&thread) && text.contains("\nLOCK WAIT ");
        status.split("---TRANSACTION").skip(1).any(of_session) || self.first::<u64>(&state) == 1
    }

    /// Runs `meanwhile` while a session waits in one of some statements. Returns what they return, and what `meanwhile` does.
    #[track_caller]
    pub fn while_waiting<T>(
        &self,
        connection: &mut Conn,
        statements: &[impl AsRef<str> + Sync],
        meanwhile: impl FnOnce() -> T,
    ) -> (mysql::Result<()>, T) {
        let (session, what) = (connection.connection_id(), statements[0].as_ref());
        thread::scope(|scope| {
            let call = scope.spawn(|| run_all(connection, statements));
            until(what, || self.waits(session) || call.is_finished());
            assert!(!call.is_finished(), "{what} does not wait: {:?}", call.join());
            let result = meanwhile();
            (call.join().expect("a session"), result)
        })
    }

    /// Runs `work` while the statements of a session are killed every few microseconds. Asserts that a KILL has hit: `work` counts that.
    pub fn under_kills(&self, session: u32, within: u64, work: impl FnOnce(&AtomicU64)) {
        let hits = AtomicU64::new(0);
        let kill = |killer: &mut Conn, _| {
            run(killer, &format!("KILL QUERY {session}"));
            thread::sleep(Duration::from_micros(rand::random_range(0..within)));
        };
        beside([self.connect()], kill, || work(&hits));
        assert!(hits.into_inner() > 0, "no KILL has ended a call");
    }
}
