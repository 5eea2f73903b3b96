//! No acknowledged count is lost, and none counts twice, whatever happens to the server, the sessions and the table.
//!
//! A fault happens while sessions call all routines that count. Then the ledger of these calls is compared with each total:
//! acknowledged <= total <= acknowledged + unknown. Which errors are unknown, docs/guarantees.md says.

mod disk;
mod load;
mod soak;

use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::support::{Module, Server};
use disk::Disk;
use load::{LOST, Load};

pub fn promises(mut module: Module<'_>) {
    module
        .private()
        .on_servers(a_killed_server_loses_no_count)
        .on_servers(a_killed_session_loses_no_count)
        .on_servers(a_call_that_waits_too_long_for_a_lock_has_not_counted)
        .on_servers(connections_that_are_rejected_lose_no_count)
        .on_servers(a_read_only_server_rejects_calls_and_loses_no_count)
        .on_servers(a_global_read_lock_loses_no_count)
        .on_servers(a_rebuild_of_the_tables_loses_no_count)
        .on_servers(an_upgrade_of_the_package_loses_no_count)
        .on_servers(a_full_disk_loses_no_count);
    if soak::minutes().is_some() {
        module.on_servers(soak::soak);
    }
}

/// The duration of a fault in the tests of CI.
const DURATION: Duration = Duration::from_secs(2);

/// A fault.
pub struct Fault {
    /// For the report.
    name: &'static str,
    /// The errors that its calls return, in addition to those without a fault. docs/guarantees.md has each of them.
    errors: &'static [u16],
    /// Whether connections end.
    ends_connections: bool,
    /// innodb_lock_wait_timeout of the sessions, in seconds.
    lock_wait: u32,
    /// Whether the data directory of the server is on a small disk.
    small_disk: bool,
    /// What happens, once or several times.
    strike: fn(&mut Strike<'_>),
}

/// What a fault needs.
struct Strike<'a> {
    load: &'a Load<'a>,
    disk: Option<&'a Disk>,
    random: &'a mut StdRng,
    begin: Option<Instant>,
    duration: Duration,
}

const PLAIN: Fault =
    Fault { name: "", errors: &[], ends_connections: false, lock_wait: 50, small_disk: false, strike: |_| {} };

/// With FLUSH TABLES WITH READ LOCK, SET read_only or ALTER TABLE, calls reach the lock wait timeout: the statement waits for a
/// call that waits for a slot, and the transaction that has locked the slot waits for the statement.
static FAULTS: [Fault; 9] = [
    Fault { name: "SIGKILL of the server, restart", ends_connections: true, strike: kill_server, ..PLAIN },
    Fault {
        name: "KILL QUERY and KILL CONNECTION",
        errors: &[1317, 1105, 1927],
        ends_connections: true,
        strike: kill_sessions,
        ..PLAIN
    },
    Fault { name: "lock wait timeouts", lock_wait: 1, strike: hold_locks, ..PLAIN },
    Fault { name: "max_connections exhausted", errors: &[1040], strike: exhaust_connections, ..PLAIN },
    Fault { name: "read_only, super_read_only", errors: &[1290], lock_wait: 1, strike: switch_read_only, ..PLAIN },
    Fault { name: "FLUSH TABLES WITH READ LOCK", lock_wait: 1, strike: lock_globally, ..PLAIN },
    Fault { name: "ALTER TABLE, OPTIMIZE TABLE", errors: &[1412, 159], lock_wait: 1, strike: rebuild_tables, ..PLAIN },
    Fault { name: "upgrade of the package", errors: &[1305], strike: upgrade, ..PLAIN },
    Fault {
        name: "full disk",
        errors: &[1114],
        ends_connections: true,
        small_disk: true,
        strike: fill_disk,
        ..PLAIN
    },
];

fn a_killed_server_loses_no_count(server: &Server) {
    promise(server, &FAULTS[0]);
}

fn a_killed_session_loses_no_count(server: &Server) {
    promise(server, &FAULTS[1]);
}

fn a_call_that_waits_too_long_for_a_lock_has_not_counted(server: &Server) {
    promise(server, &FAULTS[2]);
}

fn connections_that_are_rejected_lose_no_count(server: &Server) {
    promise(server, &FAULTS[3]);
}

fn a_read_only_server_rejects_calls_and_loses_no_count(server: &Server) {
    promise(server, &FAULTS[4]);
}

fn a_global_read_lock_loses_no_count(server: &Server) {
    promise(server, &FAULTS[5]);
}

fn a_rebuild_of_the_tables_loses_no_count(server: &Server) {
    promise(server, &FAULTS[6]);
}

fn an_upgrade_of_the_package_loses_no_count(server: &Server) {
    promise(server, &FAULTS[7]);
}

fn a_full_disk_loses_no_count(server: &Server) {
    promise(server, &FAULTS[8]);
}

/// Runs a fault on a server of its own, and asserts that the ledger is right.
fn promise(server: &Server, fault: &'static Fault) {
    let program = server.program();
    let seed = soak::seed();
    let (server, disk) = start(program, fault.small_disk);
    let load = Load::new(&server);
    let problems = round(&load, fault, disk.as_ref(), seed, DURATION);
    let calls = load.ledger.take_calls();
    eprintln!("{}, {}: seed {seed}, {}", server.version, fault.name, soak::summary(&calls));
    assert!(problems.is_empty(), "seed {seed}: {problems:#?}\n{}", server.last_log_lines());
}

/// A private server, on a small disk or not.
fn start(program: &slotted::server::Program, small_disk: bool) -> (Server, Option<Disk>) {
    if small_disk {
        let (server, disk) = Disk::with_server(program);
        return (server, Some(disk));
    }
    (Server::start(program, &[]).expect("a server"), None)
}

/// A load, a fault and a check.
fn round(load: &Load<'_>, fault: &Fault, disk: Option<&Disk>, seed: u64, duration: Duration) -> Vec<String> {
    load.during(fault, seed, |random| {
        load.wait_for_calls(20);
        (fault.strike)(&mut Strike { load, disk, random, begin: None, duration });
        // The sessions go on after the fault.
        load.wait_for_calls(20);
    });
    load.check()
}

impl Strike<'_> {
    /// Whether the fault happens again. It happens at least once.
    fn again(&mut self) -> bool {
        let begin = self.begin.replace(self.begin.unwrap_or_else(Instant::now));
        begin.is_none_or(|begin| begin.elapsed() < self.duration)
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
            format!("SELECT COUNT(*) FROM slotted_counters WHERE record_type = 1 AND record_id >= {record} FOR UPDATE"),
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

fn exhaust_connections(strike: &mut Strike<'_>) {
    let mut administrator = strike.administrator();
    let normal: u32 = administrator.query_first("SELECT @@GLOBAL.max_connections").expect("a number").expect("a row");
    while strike.again() {
        run(&mut administrator, "SET GLOBAL max_connections = 12");
        let options = strike.load.schema.options().user(Some("app"));
        let mut connections = Vec::new();
        loop {
            match Conn::new(options.clone()) {
                Ok(connection) => connections.push(connection),
                Err(Error::MySqlError(error)) if error.code == 1040 => {
                    strike.load.until_error(1040, || {});
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        strike.pause(300);
        drop(connections);
        run(&mut administrator, &format!("SET GLOBAL max_connections = {normal}"));
        strike.calls(100);
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

fn rebuild_tables(strike: &mut Strike<'_>) {
    let mut administrator = strike.administrator();
    while strike.again() {
        let table = ["counters", "slotted_counters", "orders", "pages"][strike.random.random_range(0..4)];
        let statement = match strike.random.random_range(0..3) {
            0 => format!("ALTER TABLE {table} FORCE, ALGORITHM = INPLACE"),
            1 => format!("ALTER TABLE {table} FORCE, ALGORITHM = COPY"),
            _ => format!("OPTIMIZE TABLE {table}"),
        };
        is_deadlock(administrator.query_drop(&statement));
        strike.calls(30);
    }
}

fn upgrade(strike: &mut Strike<'_>) {
    while strike.again() {
        strike.load.upgrade();
        strike.calls(50);
    }
}

fn fill_disk(strike: &mut Strike<'_>) {
    let disk = strike.disk.expect("a small disk");
    let load = strike.load;
    let mut killed = false;
    while strike.again() || !killed {
        disk.fill();
        // A server that waits for space acknowledges no call. Others reject the calls that need space.
        let (mut before, mut stalled) = (load.ledger.acknowledged(), Instant::now());
        let rejected = load.ledger.failed("1114");
        let begin = Instant::now();
        while load.ledger.failed("1114") == rejected && stalled.elapsed() < Duration::from_millis(1500) {
            let acknowledged = load.ledger.acknowledged();
            if acknowledged != before {
                (before, stalled) = (acknowledged, Instant::now());
            }
            assert!(begin.elapsed() < load::TIMEOUT, "the disk is full and the calls go on");
            disk.fill();
            thread::sleep(Duration::from_millis(10));
        }
        let stalled = load.ledger.failed("1114") == rejected;
        let kill = stalled || strike.random.random_bool(0.5);
        if kill {
            load.server.kill();
            killed = true;
        }
        disk.free();
        if kill {
            load.server.start_again(&disk.arguments()).expect("the server starts again");
        }
        load.wait_for_calls(20);
    }
}
