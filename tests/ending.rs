//! Each command ends when it is told to, also while it waits.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use crate::advise::printed;
use crate::support::{Module, Schema, Server, package};

pub fn promises(mut module: Module<'_>) {
    module
        .waits()
        .plain(a_command_without_a_server_ends_when_it_is_told_to)
        .private()
        .waits()
        .on_servers(a_command_that_waits_on_the_server_ends_when_it_is_told_to)
        .waits()
        .on_one_server(a_command_ends_although_the_server_does_not_answer)
        .waits()
        .on_one_server(a_private_server_ends_with_its_command)
        .waits()
        .on_families(a_connection_that_the_server_has_closed_is_opened_again);
}

/// Longer than a command takes to end, which is a second, and shorter than what it waits for.
const SOON: Duration = Duration::from_secs(10);

fn command(server: &Server, schema: &Schema<'_>, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    command.args(arguments).args(["--url", &server.url(), "--database", &schema.name]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Whether a process handles SIGHUP, SIGINT and SIGTERM. One that has just begun ends at once.
fn handles_signals(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 0x4003 == 0x4003)
}

/// Sends a signal to a command when it is `ready`. Returns what it prints until it ends.
fn signalled(mut command: Command, signal: &str, ready: impl FnOnce()) -> Output {
    let started = command.spawn().expect("slotted runs");
    ready();
    let end = Instant::now() + Duration::from_secs(60);
    while !handles_signals(started.id()) {
        assert!(Instant::now() < end, "{command:?} does not handle signals");
        thread::sleep(Duration::from_millis(10));
    }
    let sent = Instant::now();
    assert!(Command::new("kill").args([signal, &started.id().to_string()]).status().expect("kill").success());
    let output = started.wait_with_output().expect("the end");
    assert_eq!(output.status.code(), Some(130), "{command:?}: {}", printed(&output));
    assert!(sent.elapsed() < SOON, "{command:?}: {:?}: {}", sent.elapsed(), printed(&output));
    output
}

/// The number of sessions of a server of its own that wait for a lock, beside those of the test.
fn waiting(witness: &mut Conn) -> usize {
    let rows: Vec<Row> = witness.query("SHOW FULL PROCESSLIST").expect("the sessions");
    let state = |row: &Row| row.get::<Option<String>, _>("State").flatten().unwrap_or_default();
    rows.iter().filter(|row| state(row).starts_with("Waiting for") && state(row).contains("lock")).count()
}

fn until_there_are(wanted: usize, witness: &mut Conn) {
    let end = Instant::now() + Duration::from_secs(30);
    while waiting(witness) != wanted {
        assert!(Instant::now() < end, "not {wanted} sessions wait");
        thread::sleep(Duration::from_millis(20));
    }
}

fn a_command_that_waits_on_the_server_ends_when_it_is_told_to(server: &Server) {
    // The locks stop all sessions of a server.
    let server = &server.another(&[]);
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run(
        "CALL counter_setup('hot', NULL, 8, 5);
         CREATE TABLE pages (id INT PRIMARY KEY, hits BIGINT NOT NULL);
         INSERT INTO pages VALUES (1, 7)",
    );
    let objects = "SELECT GROUP_CONCAT(ROUTINE_NAME ORDER BY 1) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    let before: String = schema.first(objects);
    let (mut blocking, mut witness) = (schema.connect(), schema.connect());
    for (lock, arguments) in [
        ("FLUSH TABLES WITH READ LOCK", &["install", "counters", "--bounded"][..]),
        ("FLUSH TABLES WITH READ LOCK", &["uninstall"]),
        ("FLUSH TABLES WITH READ LOCK", &["bench", "single-row"]),
        ("LOCK TABLES counters WRITE", &["status"]),
    ] {
        blocking.query_drop(lock).expect(lock);
        let ready = || until_there_are(1, &mut witness);
        let output = signalled(command(server, &schema, arguments), "-INT", ready);
        until_there_are(0, &mut witness);
        assert!(printed(&output).contains("interrupted"), "{arguments:?}: {}", printed(&output));
        blocking.query_drop("UNLOCK TABLES").expect("no lock");
        assert_eq!(schema.first::<String>(objects), before, "{arguments:?}");
        assert_eq!(schema.first::<i64>("SELECT hits + counter_get('hot') FROM pages"), 12, "{arguments:?}");
        let schemas: Vec<String> = witness.query("SHOW DATABASES LIKE 'slotted\\_bench%'").expect("schemas");
        assert_eq!(schemas, [""; 0], "{arguments:?}");
    }
}

fn a_command_ends_although_the_server_does_not_answer(server: &Server) {
    let server = &server.another(&[]);
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let mut blocking = schema.connect();
    let mut witness = schema.connect();
    blocking.query_drop("LOCK TABLES counters WRITE").expect("a lock");
    let signal = |signal: &str| {
        let sent = Command::new("kill").args([signal, &server.process().0.to_string()]).status();
        assert!(sent.expect("kill").success());
    };
    for sent in ["-INT", "-TERM"] {
        let output = signalled(command(server, &schema, &["status"]), sent, || {
            until_there_are(1, &mut witness);
            signal("-STOP");
        });
        signal("-CONT");
        assert!(printed(&output).contains("the server can still complete"), "{}", printed(&output));
        // The session ends on the server when this reads what its client has not sent.
        blocking.query_drop("UNLOCK TABLES").expect("no lock");
        until_there_are(0, &mut witness);
        blocking.query_drop("LOCK TABLES counters WRITE").expect("a lock");
    }
}

fn a_command_without_a_server_ends_when_it_is_told_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let package = folder.path().join("counters");
    fs::create_dir(&package).expect("a folder");
    // Writing it waits for a reader.
    assert!(Command::new("mkfifo").arg(package.join("setup.sql")).status().expect("mkfifo").success());
    let generate = |folder: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
        command.args(["generate", "counters", "--out"]).arg(folder);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    for signal in ["-INT", "-TERM", "-HUP"] {
        signalled(generate(folder.path()), signal, || thread::sleep(Duration::from_millis(500)));
    }
}

fn a_private_server_ends_with_its_command(server: &Server) {
    let program = server.program();
    for arguments in [
        &["demo", "--seconds", "300", "--connections", "4"][..],
        &["bench", "--seconds", "300", "--connections", "4", "--hold", "900"],
    ] {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
        command.args(arguments).env("TMPDIR", folder.path()).env("SLOTTED_SERVER", &program.path).current_dir(folder.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // It starts, or runs a load.
        let output = signalled(command, "-INT", || thread::sleep(Duration::from_secs(3)));
        assert!(printed(&output).contains("the server is stopped and its files are removed"), "{}", printed(&output));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "{arguments:?}");
    }
}

fn a_connection_that_the_server_has_closed_is_opened_again(server: &Server) {
    let server = &server.another(&[]);
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run(
        "CREATE TABLE pages (id INT PRIMARY KEY, hits BIGINT NOT NULL);
         INSERT INTO pages VALUES (1, 7), (2, 8)",
    );
    let mut witness = schema.connect();
    let own: u64 = witness.connection_id().into();
    // The first connection of a command is that with the lowest id. It is idle while others work.
    let mut close_the_first = |idle: &str| {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let rows: Vec<Row> = witness.query("SHOW FULL PROCESSLIST").expect("the sessions");
            let id = |row: &Row| row.get::<u64, _>("Id").unwrap_or_default();
            let mut others: Vec<_> = rows.iter().filter(|row| id(row) > own).collect();
            others.sort_by_key(|row| id(row));
            if let [first, _, ..] = others[..]
                && first.get::<String, _>("Command").as_deref() == Some("Sleep")
            {
                witness.query_drop(format!("KILL {}", id(first))).expect("a killed session");
                return;
            }
            assert!(Instant::now() < end, "no session of {idle}");
            thread::sleep(Duration::from_millis(5));
        }
    };
    let bench = ["bench", "single-row", "--seconds", "3", "--rounds", "1", "--connections", "2"];
    let started = command(server, &schema, &bench).spawn().expect("slotted runs");
    close_the_first("bench");
    let output = started.wait_with_output().expect("the end");
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert!(printed(&output).contains("single-row"), "{}", printed(&output));
    let schemas: Vec<String> = schema.connect().query("SHOW DATABASES LIKE 'slotted\\_bench%'").expect("schemas");
    assert_eq!(schemas, [""; 0]);
}
