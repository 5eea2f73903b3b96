//! Totals are exact under load, also while a resize inserts and deletes slots.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use rand::RngExt;
use slotted::package::{Package, Slots};

use crate::support::{Module, Schema, Server, bounded, bounded_keyed, calls, error_of, keyed, package, repeatable, variants};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(increments_of_64_connections_are_exact)
        .on_servers(a_resize_loses_no_increment_at_read_committed)
        .on_servers(concurrent_resizes_lose_no_increment)
        .on_servers(a_killed_call_takes_effect_or_returns_an_error)
        .on_servers(a_counter_deleted_during_a_resize_has_no_slots)
        .on_servers(a_resize_ends_in_an_old_snapshot)
        .on_servers(a_resize_meets_a_retired_slot_that_its_snapshot_does_not_have)
        .on_servers(a_counter_created_after_the_snapshot_can_be_incremented)
        .on_servers(a_setup_of_a_counter_created_after_the_snapshot_is_rejected)
        .on_servers(a_reset_to_the_total_that_a_counter_has_succeeds_beside_increments)
        .on_servers(a_reset_that_changes_nothing_ends)
        .on_servers(a_call_reports_the_same_rows_for_a_negative_total);
}

const WRITERS: usize = 64;
/// The most calls of each writer.
const CALLS: usize = 120;

/// The sums of the increments sent and acknowledged, positive and negative ones separately. A read is correct if its
/// result is between the sums that these allow.
#[derive(Default)]
struct Ledger {
    gains_sent: AtomicI64,
    gains_done: AtomicI64,
    losses_sent: AtomicI64,
    losses_done: AtomicI64,
}

impl Ledger {
    /// Runs a change by `amount`.
    fn change(&self, amount: i64, change: impl FnOnce()) {
        let (sent, done) = if amount >= 0 {
            (&self.gains_sent, &self.gains_done)
        } else {
            (&self.losses_sent, &self.losses_done)
        };
        sent.fetch_add(amount.abs(), SeqCst);
        change();
        done.fetch_add(amount.abs(), SeqCst);
    }

    /// Whether the result of `read` is between the sum of the acknowledged and the sum of the sent increments.
    fn holds(&self, read: impl FnOnce() -> i64) -> bool {
        let (gains_done, losses_done) = (self.gains_done.load(SeqCst), self.losses_done.load(SeqCst));
        let total = read();
        let (gains_sent, losses_sent) = (self.gains_sent.load(SeqCst), self.losses_sent.load(SeqCst));
        let (least, most) = (gains_done - losses_sent, gains_sent - losses_done);
        let holds = (least..=most).contains(&total);
        if !holds {
            eprintln!("read {total}, expected {least} to {most}");
        }
        holds
    }

    fn total(&self) -> i64 {
        self.gains_done.load(SeqCst) - self.losses_done.load(SeqCst)
    }
}

fn write(schema: &Schema<'_>, isolation: &str, ledger: &Ledger, deadlocks: &AtomicU64, repeated: &AtomicU64) -> u64 {
    let mut connection = schema.isolated(isolation);
    let mut random = rand::rng();
    // A resize and a transaction whose slot is deleted can deadlock. A call outside a transaction that waits for a lock
    // between them can become the victim. The server has rolled it back, and it is repeated.
    let repeat = |mut call: Box<dyn FnMut() -> mysql::Result<()> + '_>| {
        while let Err(error) = call() {
            repeatable(error);
            repeated.fetch_add(1, SeqCst);
        }
    };
    let mut done = 0;
    for _ in calls(CALLS) {
        done += 1;
        match random.random_range(0..10) {
            0..6 => ledger.change(1, || {
                repeat(Box::new(|| connection.query_drop("CALL counter_increment('hot')")));
            }),
            6..9 => {
                let amount = random.random_range(-5..=5);
                ledger.change(amount, || {
                    repeat(Box::new(|| connection.exec_drop("CALL counter_add('hot', ?)", (amount,))));
                });
            }
            _ => {
                // Rolled back, so no read may include it. A transaction whose slot is deleted can become the victim of
                // a deadlock with a resize, which rolls it back too.
                connection.query_drop("START TRANSACTION").expect("a transaction");
                if let Err(error) = connection.query_drop("CALL counter_add('hot', 1000000)") {
                    repeatable(error);
                    deadlocks.fetch_add(1, SeqCst);
                }
                connection.query_drop("ROLLBACK").expect("a rollback");
            }
        }
    }
    done
}

fn resize(schema: &Schema<'_>, isolation: &str, done: &AtomicBool, deadlocks: &AtomicU64) -> u64 {
    let mut connection = schema.isolated(isolation);
    let mut resizes = 0;
    for slots in [1, 64, 3, 20].into_iter().cycle() {
        match connection.exec_drop("CALL counter_resize('hot', ?)", (slots,)) {
            Ok(()) => resizes += 1,
            Err(error) => {
                repeatable(error);
                deadlocks.fetch_add(1, SeqCst);
            }
        }
        // Each number of slots is used at least once, also if the writers end early.
        if done.load(SeqCst) && resizes >= 4 {
            break;
        }
    }
    resizes
}

fn hammer(schema: &Schema<'_>, package: &Package, isolation: &str, what: &str, resizers: usize) {
    let ledger = Ledger::default();
    let (done, deadlocks, repeated) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    schema.install(package);
    schema.run("CALL counter_setup('hot', 'counted by 64 connections', 20, NULL)");
    let ((reads, torn), resizes, calls) = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut connection = schema.isolated(isolation);
            let (mut reads, mut torn) = (0, 0);
            while !done.load(SeqCst) {
                for query in
                    ["SELECT counter_get('hot')", "SELECT total FROM counter_totals WHERE counter_name = 'hot'"]
                {
                    let holds = ledger.holds(|| connection.query_first(query).expect("a read").expect("a total"));
                    reads += 1;
                    torn += u32::from(!holds);
                }
            }
            (reads, torn)
        });
        let resizers: Vec<_> = (0..resizers)
            .map(|_| scope.spawn(|| resize(schema, isolation, &done, &deadlocks)))
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| scope.spawn(|| write(schema, isolation, &ledger, &deadlocks, &repeated)))
            .collect();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, SeqCst);
        let resizes: u64 = resizers.into_iter().map(|resizer| resizer.join().expect("a resizer")).sum();
        let reads = reader.join().expect("the reader");
        let calls: u64 = written.into_iter().map(|result| result.expect("a writer")).sum();
        (reads, resizes, calls)
    });
    let total: i64 = schema.first("SELECT counter_get('hot')");
    assert_eq!(total, ledger.total());
    assert!(reads >= 10, "only {reads} reads");
    // On MariaDB a read during the commit of a resize can be wrong: docs/mariadb-reads.md.
    let torn_at_most = if schema.server.is_mysql() { 0 } else { 1 + reads / 100 };
    assert!(torn <= torn_at_most, "{torn} of {reads} reads were wrong");
    let repeated = repeated.load(SeqCst);
    assert!(repeated <= calls / 100, "{repeated} of {calls} calls outside a transaction were rolled back");
    if package.options.slots == Slots::PerCounter {
        // A resize also inserts missing slot numbers, which concurrent resizes can cause.
        schema.run("CALL counter_resize('hot', 20); CALL counter_resize('hot', 20)");
        assert_eq!(schema.first::<i64>("SELECT counter_get('hot')"), ledger.total());
    }
    let slots: (i64, i64) = schema.first("SELECT COUNT(*), MAX(counter_id) FROM counters");
    assert_eq!(slots, (20, 20));
    eprintln!(
        "{}, {what}, {isolation}: {calls} calls, {repeated} repeated, total {total}, {reads} reads, {torn} wrong, \
         {resizes} resizes, {} deadlocks",
        schema.server.version,
        deadlocks.load(SeqCst)
    );
}

fn increments_of_64_connections_are_exact(server: &Server) {
    for (what, package) in variants() {
        let resizers = usize::from(package.options.slots == Slots::PerCounter);
        hammer(&server.schema(), &package, "REPEATABLE READ", &what, resizers);
    }
}

fn a_resize_loses_no_increment_at_read_committed(server: &Server) {
    let package = package(|_| {});
    hammer(&server.schema(), &package, "READ COMMITTED", "slots per-counter, pick connection", 1);
}

fn concurrent_resizes_lose_no_increment(server: &Server) {
    let package = package(|_| {});
    for isolation in ["READ COMMITTED", "REPEATABLE READ"] {
        hammer(&server.schema(), &package, isolation, "three concurrent resizes", 3);
    }
}

fn a_counter_deleted_during_a_resize_has_no_slots(server: &Server) {
    const ROUNDS: usize = 300;
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for slots in [40, 2] {
            let (schema, done) = (&schema, &done);
            scope.spawn(move || {
                // At READ COMMITTED a read without locks can return rows that another connection then deletes.
                let mut connection = schema.isolated("READ COMMITTED");
                while !done.load(SeqCst) {
                    if let Err(error) = connection.exec_drop("CALL counter_resize('a', ?)", (slots,)) {
                        let (number, message) = error_of::<()>(Err(error));
                        assert!([30003, 1213, 1205].contains(&number), "{number}: {message}");
                    }
                }
            });
        }
        // Stops the other threads also if this one fails.
        let _done = SetOnDrop(&done);
        let mut connection = schema.connect();
        for _ in calls(ROUNDS) {
            connection.query_drop("CALL counter_setup('a', NULL, 2, 7)").expect("setup");
            thread::sleep(std::time::Duration::from_micros(500));
            while let Err(error) = connection.query_drop("CALL counter_delete('a')") {
                repeatable(error);
            }
            let left = connection.query::<i64, _>("SELECT counter_id FROM counters").expect("the table");
            assert!(left.is_empty(), "slots of a deleted counter: {left:?}");
        }
    });
}

pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn a_resize_ends_in_an_old_snapshot(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('a', NULL, 8, 5)");
    let mut old = schema.isolated("REPEATABLE READ");
    old.query_drop("START TRANSACTION").expect("a transaction");
    let seen: Option<i64> = old.query_first("SELECT counter_get('a')").expect("a read");
    assert_eq!(seen, Some(5));
    // Other connections shrink and increment the counter.
    schema.run("CALL counter_resize('a', 2); CALL counter_increment('a'); CALL counter_increment('a')");
    old.query_drop("CALL counter_resize('a', 1)").expect("a resize in an old snapshot");
    old.query_drop("COMMIT").expect("a commit");
    assert_eq!(schema.first::<(i64, i64)>("SELECT slots, total FROM counter_totals"), (1, 7));
}

/// Another resize has been interrupted since the snapshot, and a third one has inserted the slot again.
fn a_resize_meets_a_retired_slot_that_its_snapshot_does_not_have(server: &Server) {
    for package in [package(|_| {}), bounded(|_| {})] {
        let table = package.options.table.plain().to_owned();
        let prefix = package.options.prefix.name();
        let schema = server.schema();
        schema.install(&package);
        schema.run(&format!("CALL {prefix}setup('a', NULL, 3, 5)"));
        let mut old = schema.isolated("REPEATABLE READ");
        old.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT").expect("a transaction");
        let count = if package.options.bounded { 0 } else { 3 };
        schema.run(&format!(
            "INSERT INTO {table} (counter_name, counter_id, start_date, counter) VALUES ('a', -3, NOW(), {count})"
        ));
        old.query_drop(format!("CALL {prefix}resize('a', 2)")).expect("a resize in an old snapshot");
        old.query_drop("COMMIT").expect("a commit");
        schema.run(&format!("CALL {prefix}resize('a', 2)"));
        let state: (i64, i64, i64) = schema.first(&format!("SELECT slots, total, resize_incomplete FROM {prefix}totals"));
        assert_eq!(state, (2, 5 + count, 0), "{table}");
    }
}

fn a_counter_created_after_the_snapshot_can_be_incremented(server: &Server) {
    for (what, package) in variants() {
        let schema = server.schema();
        schema.install(&package);
        let mut old = schema.isolated("REPEATABLE READ");
        old.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT").expect("a transaction");
        schema.run("CALL counter_setup('young', NULL, NULL, NULL)");
        old.query_drop("CALL counter_increment('young')").expect(&what);
        old.query_drop("CALL counter_add('young', 4)").expect(&what);
        old.query_drop("CALL counter_add('young', 0)").expect(&what);
        old.query_drop("COMMIT").expect("a commit");
        assert_eq!(schema.first::<i64>("SELECT counter_get('young')"), 5, "{what}");
    }
}

/// MariaDB 11.8 would return 1020. An amount of 0 changes nothing, and its call is the first of the transaction.
fn a_setup_of_a_counter_created_after_the_snapshot_is_rejected(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&bounded(|_| {}));
    schema.install(&bounded_keyed(|_| {}));
    for (prefix, key, more) in [("counter", "'young'", ", NULL, NULL, 5"), ("bounded_counter", "'young'", ", NULL, NULL, 5"), ("bounded_slotted_counter", "1, 2", ", 5")] {
        let mut old = schema.isolated("REPEATABLE READ");
        old.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT").expect("a transaction");
        schema.run(&format!("CALL {prefix}_setup({key}{more})"));
        old.query_drop(format!("CALL {prefix}_add({key}, 0)")).expect(prefix);
        let (number, text) = error_of(old.query_drop(format!("CALL {prefix}_setup({key}{more})")));
        assert_eq!(number, 30004, "{prefix}: {text}");
        old.query_drop("COMMIT").expect("a commit");
        assert_eq!(schema.first::<i64>(&format!("SELECT {prefix}_get({key})")), 5, "{prefix}");
    }
}

/// A call and what it leaves: the number of rows and the total, before it and after it.
type Step = (&'static str, (u64, i64), (u64, i64));

/// One turn of a session with a counter of its own. Each call starts where the one before it ends.
const NAMED: [Step; 6] = [
    ("CALL counter_setup('{}', NULL, 20, 7)", (0, 0), (20, 7)),
    ("CALL counter_increment('{}')", (20, 7), (20, 8)),
    ("CALL counter_reset('{}', 90, FALSE)", (20, 8), (20, 90)),
    ("CALL counter_resize('{}', 50)", (20, 90), (50, 90)),
    ("CALL counter_resize('{}', 3)", (50, 90), (3, 90)),
    ("CALL counter_delete('{}')", (3, 90), (0, 0)),
];
const RECORDS: [Step; 3] = [
    ("CALL slotted_counter_increment(1, {})", (0, 0), (1, 1)),
    ("CALL slotted_counter_reset(1, {}, 9)", (1, 1), (2, 9)),
    ("CALL slotted_counter_delete(1, {})", (2, 9), (0, 0)),
];

/// KILL QUERY ends a call with error 1317. The call then has taken effect or not, and never in part. A call without an error
/// has taken effect.
fn a_killed_call_takes_effect_or_returns_an_error(server: &Server) {
    let schema = server.schema();
    let (named, records) = (package(|_| {}), keyed(|_| {}));
    schema.install(&named);
    schema.install(&records);
    let done = AtomicBool::new(false);
    let (calls_of_all, killed, effective) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let mut sessions = Vec::new();
        for number in 0..6 {
            let mut connection = schema.connect();
            sessions.push(connection.connection_id());
            let (schema, done) = (&schema, &done);
            let (calls_of_all, killed, effective) = (&calls_of_all, &killed, &effective);
            scope.spawn(move || {
                let mut check = schema.connect();
                let (steps, table, key): (&[Step], _, _) = if number % 2 == 0 {
                    (&NAMED, "counters", format!("counter_name = '{number}'"))
                } else {
                    (&RECORDS, "slotted_counters", format!("record_id = {number}"))
                };
                let count = if number % 2 == 0 { "counter" } else { "count" };
                let state = format!("SELECT COUNT(*), COALESCE(CAST(SUM({count}) AS SIGNED), 0) FROM {table} WHERE {key}");
                for (call, before, after) in steps.iter().cycle() {
                    if done.load(SeqCst) {
                        break;
                    }
                    let call = call.replace("{}", &number.to_string());
                    // A call that was killed before it took effect is repeated.
                    for attempt in 1.. {
                        calls_of_all.fetch_add(1, SeqCst);
                        let result = connection.query_drop(&call);
                        let now: (u64, i64) = check.query_first(&state).expect("the state").expect("a row");
                        // Slot 0 of a record is also the slot of one connection in 100.
                        let is = |expected: &(u64, i64)| now == *expected || number % 2 == 1 && now.1 == expected.1;
                        if let Err(error) = result {
                            let (number, message) = error_of::<()>(Err(error));
                            // MariaDB also returns 1105, "An error occurred in multi-table update". Calls for neighbouring
                            // keys can deadlock.
                            assert!([1317, 1105, 1213].contains(&number), "{call}, attempt {attempt}: {number} {message}");
                            killed.fetch_add(1, SeqCst);
                            effective.fetch_add(u64::from(is(after)), SeqCst);
                            // A resize that stops halfway leaves the right total.
                            assert!(is(before) || is(after) || now.1 == after.1, "{call}: {now:?}");
                        } else {
                            assert!(is(after), "{call} returned without an error: {now:?}");
                        }
                        if is(after) {
                            break;
                        }
                    }
                }
            });
        }
        let mut killer = schema.connect();
        for turn in calls(20_000) {
            let session = sessions[turn % sessions.len()];
            // Fails if the session has ended because its thread has failed.
            let _ = killer.query_drop(format!("KILL QUERY {session}"));
        }
        done.store(true, SeqCst);
    });
    let (killed, effective) = (killed.into_inner(), effective.into_inner());
    assert!(killed > 0, "no call was killed");
    eprintln!("{}: of {calls_of_all:?} calls, {killed} failed, of which {effective} had taken effect", server.version);
}

/// A reset that changes no row has to tell a counter that has the value from one that does not exist.
fn a_reset_to_the_total_that_a_counter_has_succeeds_beside_increments(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|_| {}));
    schema.run("CALL counter_setup('a', NULL, 5, 0); CALL slotted_counter_increment(1, 2)");
    for (key, restart) in [("counter_{}('a'", ", FALSE"), ("slotted_counter_{}(1, 2", "")] {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let _stop = SetOnDrop(&stop);
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut connection = schema.connect();
                    let [add, take] = [1, -1].map(|amount| format!("CALL {}, {amount})", key.replace("{}", "add")));
                    while !stop.load(SeqCst) {
                        for call in [&add, &take] {
                            connection.query_drop(call).expect(call);
                        }
                    }
                });
            }
            let mut connection = schema.connect();
            let reset = format!("CALL {}, 0{restart})", key.replace("{}", "reset"));
            for _ in calls(1000) {
                connection.query_drop(&reset).expect(&reset);
            }
        });
    }
}

fn a_reset_that_changes_nothing_ends(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|_| {}));
    schema.run(
        "CALL counter_setup('a', NULL, 5, 0); UPDATE counters SET start_date = '2026-01-01'; CALL slotted_counter_add(1, 2, 0)",
    );
    for call in ["counter_reset('a', 0, NULL)", "counter_reset('a', NULL, FALSE)", "slotted_counter_reset(1, 2, NULL)"] {
        let mut connection = schema.connect();
        let session = connection.connection_id();
        thread::scope(|scope| {
            let call = scope.spawn(move || connection.query_drop(format!("CALL {call}")));
            let end = Instant::now() + Duration::from_secs(10);
            while !call.is_finished() && Instant::now() < end {
                thread::sleep(Duration::from_millis(20));
            }
            if !call.is_finished() {
                schema.run(&format!("KILL {session}"));
            }
            call.join().expect("the session").expect("a reset");
        });
    }
}

/// The number itself depends on the server: MariaDB counts the rows of a SELECT .. INTO, too.
fn a_call_reports_the_same_rows_for_a_negative_total(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|options| options.slots = Slots::Fixed(1)));
    schema.run("CALL counter_setup('a', NULL, 4, 0); CALL slotted_counter_increment(1, 2)");
    let mut connection = schema.connect();
    for call in [
        "counter_add('a', {}20)",
        "counter_add_many('[[\"a\", {}20]]')",
        "counter_reset('a', {}7, FALSE)",
        "slotted_counter_add(1, 2, {}20)",
        "slotted_counter_add_many('[[1, 2, {}20]]')",
        "slotted_counter_reset(1, 2, {}7)",
    ] {
        let [positive, negative] = ["", "-"].map(|sign| {
            schema.run("CALL counter_reset('a', 0, FALSE); CALL slotted_counter_reset(1, 2, 0)");
            connection.query_drop(format!("CALL {}", call.replace("{}", sign))).expect(call);
            connection.affected_rows()
        });
        assert!(positive > 0 && positive == negative, "{call}: {positive}, {negative}");
    }
}
