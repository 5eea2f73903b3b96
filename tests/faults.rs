//! No acknowledged count is lost, and none counts twice, whatever happens to the server, the sessions and the table.
//!
//! A fault happens while sessions call all routines that count. Then the ledger of these calls is compared with each total:
//! acknowledged <= total <= acknowledged + unknown. Which errors are unknown, docs/guarantees.md says.

mod ledger;
mod load;

use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::support::{Module, Server};
use load::{LOST, Load};

pub fn promises(mut module: Module<'_>) {
    module
        .private()
        .on_servers(a_killed_server_loses_no_count)
        .on_servers(a_killed_session_loses_no_count)
        .on_servers(a_call_that_waits_too_long_for_a_lock_has_not_counted)
        .on_servers(a_read_only_server_rejects_calls_and_loses_no_count)
        .on_servers(a_global_read_lock_loses_no_count)
        .on_servers(an_upgrade_of_the_package_loses_no_count);
}

/// The duration of a fault.
const DURATION: Duration = Duration::from_secs(2);

/// A fault.
pub struct Fault {
    /// The errors that its calls return, in addition to those without a fault. docs/guarantees.md has each of them.
    errors: &'static [u16],
    /// Whether connections end.
    ends_connections: bool,
    /// innodb_lock_wait_timeout of the sessions, in seconds.
    lock_wait: u32,
    /// What happens, once or several times.
    strike: fn(&mut Strike<'_>),
}

/// What a fault needs.
struct Strike<'a> {
    load: &'a Load<'a>,
    random: &'a mut StdRng,
    begin: Option<Instant>,
}

const PLAIN: Fault = Fault { errors: &[], ends_connections: false, lock_wait: 50, strike: |_| {} };

fn a_killed_server_loses_no_count(server: &Server) {
    promise(server, &Fault { ends_connections: true, strike: kill_server, ..PLAIN });
}

fn a_killed_session_loses_no_count(server: &Server) {
    promise(server, &Fault { errors: &[1317, 1105, 1927], ends_connections: true, strike: kill_sessions, ..PLAIN });
}

fn a_call_that_waits_too_long_for_a_lock_has_not_counted(server: &Server) {
    promise(server, &Fault { lock_wait: 1, strike: hold_locks, ..PLAIN });
}

/// With SET read_only and FLUSH TABLES WITH READ LOCK, calls reach the lock wait timeout: the statement waits for a call that waits for a
/// slot, and the transaction that has locked the slot waits for the statement.
fn a_read_only_server_rejects_calls_and_loses_no_count(server: &Server) {
    // The compaction of a record of a column reports 1290 as 30013, with the message of the server.
    promise(server, &Fault { errors: &[1290, 30013], lock_wait: 1, strike: switch_read_only, ..PLAIN });
}

fn a_global_read_lock_loses_no_count(server: &Server) {
    promise(server, &Fault { lock_wait: 1, strike: lock_globally, ..PLAIN });
}

fn an_upgrade_of_the_package_loses_no_count(server: &Server) {
    promise(server, &Fault { errors: &[1305], strike: upgrade, ..PLAIN });
}

/// Runs a load with a fault on a server of its own, and asserts that the ledger is right.
fn promise(server: &Server, fault: &Fault) {
    let seed = rand::random();
    let server = server.another(&[]);
    let load = Load::new(&server);
    load.during(fault, seed, |random| {
        load.wait_for_calls(20);
        (fault.strike)(&mut Strike { load: &load, random, begin: None });
        // The sessions go on after the fault.
        load.wait_for_calls(20);
    });
    let problems = load.check();
    assert!(problems.is_empty(), "seed {seed}: {problems:#?}\n{}", server.last_log_lines());
}

impl Strike<'_> {
    /// Whether the fault happens again. It happens at least once.
    fn again(&mut self) -> bool {
        let begin = self.begin.replace(self.begin.unwrap_or_else(Instant::now));
        begin.is_none_or(|begin| begin.elapsed() < DURATION)
    }

    /// Waits for a random number of calls.
    fn calls(&mut self, most: u64) {
        self.load.wait_for_calls(self.random.random_range(1..=most));
    }

    /// Waits for a random time.
    fn pause(&mut self, most: u64) {
        thread::sleep(Duration::from_millis(self.random.random_range(1..=most)));
    }

    /// A connection of an administrator.
    fn administrator(&self) -> Conn {
        self.load.schema.connect()
    }
}

fn run(connection: &mut Conn, statement: &str) {
    connection.query_drop(statement).unwrap_or_else(|error| panic!("{error} in\n{statement}"));
}

/// Whether a statement was the victim of a deadlock with the load. Fails on any other error.
fn is_deadlock(result: mysql::Result<()>) -> bool {
    match result {
        Err(Error::MySqlError(error)) if error.code == 1213 => true,
        result => result.map(|()| false).expect("a statement"),
    }
}

fn kill_server(strike: &mut Strike<'_>) {
    while strike.again() {
        strike.calls(300);
        strike.load.until_error(LOST, || strike.load.server.kill());
        strike.load.server.start_again(&[]).expect("the server starts again");
        strike.load.wait_for_calls(20);
    }
}

fn kill_sessions(strike: &mut Strike<'_>) {
    let mut administrator = strike.administrator();
    let sessions = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'app'";
    let seen = |strike: &Strike<'_>| strike.load.ledger.failed("1317") > 0 && strike.load.ledger.failed(LOST) > 0;
    while strike.again() || !seen(strike) {
        let sessions: Vec<u64> = administrator.query(sessions).expect(sessions);
        for session in sessions {
            let kind = if strike.random.random_bool(0.8) { "QUERY" } else { "CONNECTION" };
            match administrator.query_drop(format!("KILL {kind} {session}")) {
                // The session has ended.
                Err(Error::MySqlError(error)) if error.code == 1094 => {}
                result => result.expect("KILL"),
            }
            strike.pause(8);
        }
    }
}

fn hold_locks(strike: &mut Strike<'_>) {
    let mut administrator = strike.administrator();
    while strike.again() {
        let record = strike.random.random_range(1..10);
        let locks = [
            "SELECT COUNT(*) FROM counters WHERE counter_name = 'counter 1' FOR UPDATE".to_owned(),
            format!("SELECT COUNT(*) FROM pages_total WHERE id >= {record} FOR UPDATE"),
        ];
        strike.load.until_error(1205, || {
            // The victim of a deadlock with a transaction of the load has no locks.
            while {
                run(&mut administrator, "START TRANSACTION");
                // query_drop() would ignore an error that comes after the columns of the result.
                locks.iter().any(|lock| is_deadlock(administrator.query_first::<u64, _>(lock).map(drop)))
            } {}
        });
        // Long enough that calls of several routines fail.
        for _ in 0..4 {
            strike.load.until_error(1205, || {});
        }
        run(&mut administrator, "ROLLBACK");
        strike.calls(50);
    }
}

fn switch_read_only(strike: &mut Strike<'_>) {
    let mut administrator = strike.administrator();
    while strike.again() {
        let variable =
            if strike.load.server.is_mysql() && strike.random.random_bool(0.5) { "super_read_only" } else { "read_only" };
        strike.load.until_error(1290, || run(&mut administrator, &format!("SET GLOBAL {variable} = ON")));
        strike.pause(100);
        run(&mut administrator, "SET GLOBAL read_only = OFF");
        strike.calls(100);
    }
}

fn lock_globally(strike: &mut Strike<'_>) {
    let mut administrator = strike.administrator();
    while strike.again() {
        run(&mut administrator, "FLUSH TABLES WITH READ LOCK");
        strike.pause(300);
        run(&mut administrator, "UNLOCK TABLES");
        strike.calls(100);
    }
}

fn upgrade(strike: &mut Strike<'_>) {
    while strike.again() {
        strike.load.upgrade();
        strike.calls(50);
    }
}
