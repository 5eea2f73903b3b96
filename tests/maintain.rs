//! The commands that change a counter or record: `slotted resize`, `reset`, `compact` and `delete`.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use crate::advise::{printed, slotted};
use crate::support::{Module, Schema, Server, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_families(the_commands_change_a_counter_and_a_record)
        .on_families(a_command_that_cannot_succeed_changes_nothing)
        .private()
        .waits()
        .on_families(a_command_repeats_a_call_until_it_succeeds)
        .waits()
        .on_servers(an_interrupted_command_ends_its_call_on_the_server);
}

/// Runs a command in the database of the schema. Returns its exit code, and what it has printed.
fn run(server: &Server, schema: &Schema<'_>, arguments: &[&str]) -> (Option<i32>, String) {
    let output = slotted(&[arguments, &["--url", &server.url(), "--database", &schema.name]].concat());
    (output.status.code(), printed(&output))
}

fn the_commands_change_a_counter_and_a_record(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|options| options.key = "site BINARY(2), id INT".parse().expect("a key")));
    schema.run(
        "CALL counter_setup('hits of page 1', NULL, 20, 5);
         INSERT INTO slotted_counters VALUES ('ab', -7, 520, 4), ('ab', -7, 5, 3), ('ab', -7, 1, 1)",
    );
    let name = "hits of page 1";
    for (arguments, done, query, wanted) in [
        (&["resize", name, "7"][..], "7 slots, total 5", "SELECT CONCAT(slots, ' ', total) FROM counter_totals", "7 5"),
        (&["reset", name, "--value", "-2"], "7 slots, total -2", "SELECT counter_get('hits of page 1')", "-2"),
        (&["compact", "0x6162", "-7"], "1 slots, total 8", "SELECT GROUP_CONCAT(slot, ' ', count) FROM slotted_counters", "0 8"),
        (&["reset", "ab", "-7"], "1 slots, total 0", "SELECT slotted_counter_get('ab', -7)", "0"),
        (&["delete", "0x6162", "-7", "--yes"], "no slots", "SELECT COUNT(*) FROM slotted_counters", "0"),
        (&["delete", name, "--yes"], "no slots", "SELECT COUNT(*) FROM counters", "0"),
    ] {
        let (code, said) = run(server, &schema, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {said}");
        assert!(said.contains(&format!("after:  {done}\n")), "{arguments:?}: {said}");
        assert_eq!(schema.first::<String>(&format!("SELECT CAST(({query}) AS CHAR)")), wanted, "{arguments:?}: {said}");
    }
}

fn a_command_repeats_a_call_until_it_succeeds(server: &Server) {
    let server = &server.another(&["--innodb-lock-wait-timeout=1"]);
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('hot', NULL, 8, 5)");
    let mut blocking = schema.connect();
    blocking.query_drop("START TRANSACTION").expect("a transaction");
    blocking.query_drop("UPDATE counters SET counter = counter + 1 WHERE counter_id = 8").expect("a lock");
    let (gave_up, (code, said)) = thread::scope(|scope| {
        let gave_up = run(server, &schema, &["resize", "hot", "4", "--timeout", "0.5"]);
        let resize = scope.spawn(|| run(server, &schema, &["resize", "hot", "4"]));
        thread::sleep(Duration::from_millis(2500));
        blocking.query_drop("COMMIT").expect("a commit");
        (gave_up, resize.join().expect("a command"))
    });
    assert_eq!(gave_up.0, Some(2), "{}", gave_up.1);
    assert!(gave_up.1.contains("the time of --timeout is over: no call has succeeded") && gave_up.1.contains("hint: "), "{}", gave_up.1);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("by 1 call "), "{said}");
    assert!(said.contains("after:  4 slots, total 6\n"), "{said}");
}

fn a_command_that_cannot_succeed_changes_nothing(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&package(|options| {
        options.table = "others".parse().expect("a name");
        options.prefix = "other_".parse().expect("a prefix");
    }));
    schema.install(&keyed(|_| {}));
    schema.run("CALL counter_setup('hot', NULL, 8, 5); CALL slotted_counter_add(1, 2, 3)");
    let bytes = || schema.first::<String>(
        "SELECT CONCAT_WS('; ', (SELECT GROUP_CONCAT(counter_id, ' ', counter, ' ', start_date ORDER BY counter_id) FROM counters),
                (SELECT GROUP_CONCAT(slot, ' ', count) FROM slotted_counters))",
    );
    let before = bytes();
    for (arguments, message) in [
        (&["resize", "hot", "4"][..], "give --prefix with one of: counter_, other_"),
        (&["resize", "hot", "4", "--prefix", "other_"], "has no counter hot"),
        (&["resize", "hot", "0", "--prefix", "counter_"], "expected a number of slots between 1 and 10000"),
        (&["reset", "1", "2", "3"], "with a key of 3 values"),
        (&["reset", "1", "3"], "has no record 1, 3"),
        (&["reset", "1", "2", "--restart"], "a record has no start_date"),
        (&["compact", "hot", "--prefix", "counter_"], "has a routine compact"),
        (&["delete", "hot", "--prefix", "counter_"], "add --yes"),
    ] {
        let (code, said) = run(server, &schema, arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: {said}");
        assert_eq!(bytes(), before, "{arguments:?}: {said}");
    }
}

fn an_interrupted_command_ends_its_call_on_the_server(server: &Server) {
    // No other session of this server waits for a lock.
    let server = &server.another(&[]);
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|_| {}));
    schema.run("CALL counter_setup('hot', NULL, 8, 5); INSERT INTO slotted_counters VALUES (1, 7, 0, 3), (1, 7, 8, 2)");
    let mut blocking = schema.connect();
    blocking.query_drop("START TRANSACTION").expect("a transaction");
    blocking.query_drop("UPDATE counters SET counter = counter + 1 WHERE counter_id = 1").expect("a lock");
    blocking.query_drop("UPDATE slotted_counters SET count = count + 1 WHERE slot = 0").expect("a lock");
    for arguments in [
        &["resize", "hot", "4"][..],
        &["reset", "hot", "--value", "7"],
        &["delete", "hot", "--yes"],
        &["reset", "1", "7"],
        &["compact", "1", "7"],
        &["delete", "1", "7", "--yes"],
    ] {
        for signal in ["-INT", "-TERM"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
            command.args(arguments).args(["--url", &server.url(), "--database", &schema.name]);
            let started = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("slotted runs");
            let waits = |wanted: u64| {
                let waiting = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'";
                let end = Instant::now() + Duration::from_secs(30);
                while schema.first::<u64>(waiting) != wanted {
                    assert!(Instant::now() < end, "{arguments:?}: not {wanted} sessions wait");
                    // InnoDB refreshes this table if it was not read for 100 ms.
                    thread::sleep(Duration::from_millis(200));
                }
            };
            waits(1);
            let sent = Instant::now();
            assert!(Command::new("kill").args([signal, &started.id().to_string()]).status().expect("kill").success());
            let output = started.wait_with_output().expect("the end");
            assert_eq!(output.status.code(), Some(130), "{arguments:?}: {}", printed(&output));
            // The call would wait for 50 s.
            assert!(sent.elapsed() < Duration::from_secs(10), "{arguments:?}: {:?}", sent.elapsed());
            waits(0);
        }
    }
    blocking.query_drop("ROLLBACK").expect("a rollback");
    assert_eq!(schema.first::<i64>("SELECT counter_get('hot')"), 5);
    assert_eq!(schema.first::<i64>("SELECT slotted_counter_get(1, 7)"), 5);
}
