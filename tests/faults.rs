//! No acknowledged count is lost, and none counts twice, whatever happens to the server, the sessions and the table.
//!
//! A fault happens while sessions call all routines that count. Then the ledger of these calls is compared with each total: acknowledged <=
//! total <= acknowledged + unknown. Which errors are unknown, docs/routines.md says.

mod load;

use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::support::{Module, Server};
use load::{LOST, Load, WITHOUT_FAULT, is_documented};

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

/// What happens again and again while sessions count.
type Strike = fn(&Load<'_>, &mut Conn, &mut StdRng);

fn a_killed_server_loses_no_count(server: &Server) {
    promise(server, &[LOST], &[LOST], kill_server);
}

fn a_killed_session_loses_no_count(server: &Server) {
    // A session that is killed does not enter a handler, so that the number is that of the server or of a fallback.
    promise(server, &[LOST, 1317, 1105, 1329, 30021], &[LOST, 1317], kill_sessions);
}

fn a_call_that_waits_too_long_for_a_lock_has_not_counted(server: &Server) {
    promise(server, &[], &[1205], hold_locks);
}

/// Calls also reach the lock wait timeout: the statement that switches waits for a call that waits for a slot, and the transaction that has
/// locked the slot waits for the statement.
fn a_read_only_server_rejects_calls_and_loses_no_count(server: &Server) {
    promise(server, &[1290], &[1290], switch_read_only);
}

fn an_upgrade_of_the_package_loses_no_count(server: &Server) {
    promise(server, &[1305], &[], |load, _, _| load.upgrade());
}

/// Runs a load with a fault on a server of its own, and asserts that the ledger is right. Calls may return `errors` in addition to those
/// without a fault, and must have returned those of `until` at the end.
fn promise(server: &Server, errors: &'static [u16], until: &[u16], strike: Strike) {
    for number in WITHOUT_FAULT.iter().chain(errors).filter(|number| **number != LOST) {
        assert!(is_documented(*number), "{number} is not in docs/routines.md");
    }
    let seed = rand::random();
    let server = server.another(&[]);
    let load = Load::new(&server, errors);
    load.during(seed, |random| {
        load.wait_for_calls(20);
        let (mut administrator, begin) = (load.schema.connect(), Instant::now());
        while begin.elapsed() < DURATION || until.iter().any(|error| load.failed(*error) == 0) {
            strike(&load, &mut administrator, random);
            load.wait_for_calls(random.random_range(1..=50));
        }
        // The sessions go on after the fault.
        load.wait_for_calls(20);
    });
    let problems = load.check();
    assert!(problems.is_empty(), "seed {seed}: {problems:#?}\n{}", server.last_log_lines());
}

fn pause(random: &mut StdRng, most: u64) {
    thread::sleep(Duration::from_millis(random.random_range(1..=most)));
}

fn run(connection: &mut Conn, statement: &str) {
    connection.query_drop(statement).unwrap_or_else(|error| panic!("{error} in\n{statement}"));
}

fn kill_server(load: &Load<'_>, _: &mut Conn, random: &mut StdRng) {
    load.wait_for_calls(random.random_range(1..=300));
    load.until_error(LOST, || load.server.kill());
    load.server.start_again(&[]).expect("the server starts again");
    load.wait_for_calls(20);
}

fn kill_sessions(_: &Load<'_>, administrator: &mut Conn, random: &mut StdRng) {
    let sessions = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'app'";
    let sessions: Vec<u64> = administrator.query(sessions).expect(sessions);
    for session in sessions {
        let kind = if random.random_bool(0.8) { "QUERY" } else { "CONNECTION" };
        match administrator.query_drop(format!("KILL {kind} {session}")) {
            // The session has ended.
            Err(Error::MySqlError(error)) if error.code == 1094 => {}
            result => result.expect("KILL"),
        }
        pause(random, 8);
    }
}

fn hold_locks(load: &Load<'_>, administrator: &mut Conn, _: &mut StdRng) {
    let locks = [
        "SELECT COUNT(*) FROM counters WHERE counter_name = 'b' FOR UPDATE",
        "SELECT COUNT(*) FROM pages_total WHERE id >= 5 FOR UPDATE",
    ];
    load.until_error(1205, || {
        // The victim of a deadlock with a transaction of the load has no locks.
        let mut lock = || {
            run(administrator, "START TRANSACTION");
            locks.iter().all(|lock| match administrator.query_first::<u64, _>(lock) {
                Err(Error::MySqlError(error)) if error.code == 1213 => false,
                locked => locked.map(|_| true).expect(lock),
            })
        };
        while !lock() {}
    });
    // Long enough that calls of several routines fail.
    (0..4).for_each(|_| load.until_error(1205, || {}));
    run(administrator, "ROLLBACK");
}

fn switch_read_only(load: &Load<'_>, administrator: &mut Conn, random: &mut StdRng) {
    let variable = if load.server.is_mysql() && random.random_bool(0.5) { "super_read_only" } else { "read_only" };
    load.until_error(1290, || run(administrator, &format!("SET GLOBAL {variable} = ON")));
    pause(random, 100);
    run(administrator, "SET GLOBAL read_only = OFF");
}
