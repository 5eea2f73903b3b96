//! The number of slots changes under load, from every state, and after every interruption.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::Options;

use crate::exactness::SetOnDrop;
use crate::support::{Module, Server, bounded, calls, error_of, package, repeatable};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(every_set_of_slots_is_resized_exactly)
        .on_servers(a_table_can_have_the_name_of_an_alias)
        .on_servers(a_resize_beside_16_writers_loses_no_count_and_fails_no_caller)
        .on_servers(an_interrupted_resize_is_completed_by_the_next_call)
        .on_servers(a_resize_that_waits_holds_slot_1_and_no_other_slot_that_stays)
        .on_servers(growth_beside_a_delete_leaves_no_counter_without_slot_1)
        .on_servers(calls_count_in_a_snapshot_of_another_number_of_slots)
        .on_servers(a_reset_during_a_resize_sets_the_total)
        .on_servers(maintenance_of_a_counter_waits_for_no_other_counter);
}

/// Rows of the counter `a`, as VALUES.
fn rows(slots: impl IntoIterator<Item = (i64, i64)>) -> String {
    let row = |(slot, count)| format!("('a', {slot}, NULL, '2026-01-01', {count})");
    slots.into_iter().map(row).collect::<Vec<_>>().join(", ")
}

/// The numbers of slots of `a`, and its total.
fn state(connection: &mut Conn) -> (Vec<i64>, i64) {
    let rows = connection
        .query("SELECT counter_id, counter FROM counters WHERE counter_name = 'a' ORDER BY counter_id");
    let rows: Vec<(i64, i64)> = rows.expect("the slots");
    (
        rows.iter().map(|row| row.0).collect(),
        rows.iter().map(|row| row.1).sum(),
    )
}

fn run(connection: &mut Conn, statement: &str) {
    connection
        .query_drop(statement)
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

fn resize(connection: &mut Conn, slots: i64) -> mysql::Result<()> {
    connection.query_drop(format!("CALL counter_resize('a', {slots})"))
}

/// The number of the error of a call, or 0.
fn number(result: mysql::Result<()>) -> u16 {
    result.map_or_else(|error| error_of::<()>(Err(error)).0, |()| 0)
}

/// The aliases of tables and derived tables in the routines.
fn a_table_can_have_the_name_of_an_alias(server: &Server) {
    for name in ["slot_1", "n", "locked", "folded", "summed", "spread", "amount"] {
        let table = |o: &mut Options| o.table = name.parse().expect("a table");
        for package in [package(table), bounded(table)] {
            let schema = server.schema();
            schema.install(&package);
            let prefix = package.options.prefix.name();
            let take = if package.options.bounded {
                "take('a', 9)"
            } else {
                "add('a', -9)"
            };
            let mut connection = schema.connect();
            for (call, total) in [
                ("setup('a', NULL, 3, 9)", 9),
                ("increment('a')", 10),
                (take, 1),
                ("resize('a', 7)", 1),
                ("resize('a', 2)", 1),
                ("reset('a', 8, FALSE)", 8),
            ] {
                run(&mut connection, &format!("CALL {prefix}{call}"));
                let read: i64 = connection
                    .query_first(format!("SELECT {prefix}get('a')"))
                    .expect("a total")
                    .expect("a row");
                assert_eq!(read, total, "{name}: {call}");
            }
        }
    }
}

fn every_set_of_slots_is_resized_exactly(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let mut connection = schema.connect();
    // Negative slots: what an interrupted resize leaves, whose counts have been moved, and one that was written by hand.
    let retired: [&[(i64, i64)]; 4] = [
        &[],
        &[(-6, 0)],
        &[(-3, 0), (-2, 0)],
        &[(-10_000, -5), (-9_999, 0)],
    ];
    for subset in 0..32_i64 {
        let slots: Vec<_> = (1..=6)
            .filter(|slot| *slot == 1 || subset & (1 << (slot - 2)) != 0)
            .collect();
        for wanted in 1..=7 {
            let retired = retired[(subset + wanted) as usize % 4];
            let values = rows(
                slots
                    .iter()
                    .map(|slot| (*slot, *slot))
                    .chain(retired.iter().copied()),
            );
            run(&mut connection, "DELETE FROM counters");
            run(&mut connection, &format!("INSERT INTO counters VALUES {values}"));
            let total = state(&mut connection).1;
            resize(&mut connection, wanted).expect("a resize");
            let by_hand = retired
                .iter()
                .filter(|(_, count)| *count != 0)
                .map(|(slot, _)| *slot);
            let expected = (by_hand.chain(1..=wanted).collect(), total);
            assert_eq!(
                state(&mut connection),
                expected,
                "{slots:?}, {retired:?} to {wanted}"
            );
        }
    }
    // A counter without slot 1 is unknown.
    run(&mut connection, "DELETE FROM counters WHERE counter_id = 1");
    let before = state(&mut connection);
    assert_eq!(number(resize(&mut connection, 3)), 30003);
    assert_eq!(state(&mut connection), before);
}

fn an_interrupted_resize_is_completed_by_the_next_call(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let (mut connection, mut killer) = (schema.connect(), schema.connect());
    // The resize waits for each slot in turn and is killed there.
    for (held, wanted) in (1..=8).flat_map(|held| [(held, 2), (held, 9)]) {
        run(&mut connection, "DELETE FROM counters");
        run(
            &mut connection,
            &format!(
                "INSERT INTO counters VALUES {}",
                rows((1..=8).map(|slot| (slot, slot)))
            ),
        );
        let mut holder = schema.connect();
        run(&mut holder, "START TRANSACTION");
        run(
            &mut holder,
            &format!(
                "UPDATE counters SET counter = counter + 100 WHERE counter_name = 'a' AND counter_id = {held}"
            ),
        );
        let mut resizer = schema.connect();
        let session = resizer.connection_id();
        let call = thread::spawn(move || resize(&mut resizer, wanted));
        thread::sleep(Duration::from_millis(60));
        // Fails if the resize did not need the slot and has ended.
        let _ = killer.query_drop(format!("KILL CONNECTION {session}"));
        let killed = call.join().expect("the session");
        let (slots, total) = state(&mut connection);
        assert_eq!(total, 36, "held {held}, {slots:?}");
        run(&mut holder, "COMMIT");
        // The killed session ends its last statement after the error has been returned.
        while let Err(error) = resize(&mut connection, wanted) {
            repeatable(error);
        }
        assert_eq!(
            state(&mut connection),
            ((1..=wanted).collect(), 136),
            "held {held}: {killed:?} left {slots:?}"
        );
    }
    // From the greatest number to 1, interrupted at any time.
    schema.run(
        "CALL counter_reset('a', 7, FALSE); CALL counter_resize('a', 10000); UPDATE counters SET counter = 1",
    );
    let mut kills = 0;
    for pause in [3, 10, 30, 100, 300, 1000] {
        let mut resizer = schema.connect();
        let session = resizer.connection_id();
        let call = thread::spawn(move || resize(&mut resizer, 1));
        // KILL QUERY has no effect before the call begins.
        while !call.is_finished() {
            thread::sleep(Duration::from_millis(pause));
            let _ = killer.query_drop(format!("KILL QUERY {session}"));
        }
        kills += u32::from(call.join().expect("the session").is_err());
        assert_eq!(state(&mut connection).1, 10_000);
    }
    resize(&mut connection, 1).expect("a resize");
    assert_eq!(state(&mut connection), (vec![1], 10_000));
    assert!(kills > 0, "no resize was killed");
    // What a resize between its statements leaves is no slot in the view, and the next resize deletes it.
    schema.run("INSERT INTO counters VALUES ('a', -3, NULL, NOW(), 0)");
    assert_eq!(
        schema.first::<(i64, i64)>("SELECT slots, total FROM counter_totals"),
        (1, 10_000)
    );
    resize(&mut connection, 4).expect("a resize");
    assert_eq!(state(&mut connection), (vec![1, 2, 3, 4], 10_000));
}

/// Half of the writers count in transactions of three calls, and each level of isolation has half of them.
fn a_resize_beside_16_writers_loses_no_count_and_fails_no_caller(server: &Server) {
    const WRITERS: usize = 16;
    let schema = &server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('a', NULL, NULL, 0)");
    let (stop, counted, done) = (&AtomicBool::new(false), &AtomicI64::new(0), &AtomicU64::new(0));
    let failed = &Mutex::new(BTreeMap::<(&str, u16), u64>::new());
    let fail = |what, error| *failed.lock().expect("errors").entry((what, error)).or_default() += 1;
    let resizes = thread::scope(|scope| {
        // Stops the writers also if an assertion fails.
        let _stop = SetOnDrop(stop);
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut connection = schema.isolated(["REPEATABLE READ", "READ COMMITTED"][writer % 2]);
                let transactions = writer % 4 > 1;
                while !stop.load(SeqCst) {
                    let mut change = || {
                        if transactions {
                            connection.query_drop("START TRANSACTION")?;
                            connection.query_drop("SELECT counter_get('a')")?;
                        }
                        for amount in [1, 7, -3].into_iter().take(if transactions { 3 } else { 1 }) {
                            connection.query_drop(format!("CALL counter_add('a', {amount})"))?;
                        }
                        connection.query_drop("COMMIT")
                    };
                    match change() {
                        Ok(()) => {
                            counted.fetch_add(if transactions { 5 } else { 1 }, SeqCst);
                            done.fetch_add(1, SeqCst);
                        }
                        Err(error) => {
                            fail(
                                if transactions { "transaction" } else { "call" },
                                repeatable(error),
                            );
                            run(&mut connection, "ROLLBACK");
                        }
                    }
                }
            });
        }
        let mut resizers = ["REPEATABLE READ", "READ COMMITTED"].map(|isolation| schema.isolated(isolation));
        let mut resizes = 0;
        for round in calls(60) {
            let connection = &mut resizers[round % 2];
            for wanted in [2, 20, 3, 8] {
                while let Err(error) = resize(connection, wanted) {
                    fail("resize", repeatable(error));
                }
                assert_eq!(state(connection).0, (1..=wanted).collect::<Vec<_>>());
                resizes += 1;
            }
        }
        resizes
    });
    let (done, failed) = (done.load(SeqCst), failed.lock().expect("errors").clone());
    eprintln!(
        "{}: {resizes} resizes, {done} changes, failed {failed:?}",
        server.version
    );
    assert_eq!(
        state(&mut schema.connect()),
        ((1..=8).collect(), counted.load(SeqCst))
    );
    let count = |what| {
        failed
            .iter()
            .filter(|((of, _), _)| *of == what)
            .map(|(_, count)| count)
            .sum::<u64>()
    };
    assert!(
        count("call") + count("transaction") <= 1 + done / 1000,
        "{failed:?} of {done}"
    );
    assert!(count("resize") <= 1 + resizes / 20, "{failed:?} of {resizes}");
}

/// Slot 1 first, as other calls that lock several slots: they queue there and do not deadlock.
fn a_resize_that_waits_holds_slot_1_and_no_other_slot_that_stays(server: &Server) {
    for package in [package(|_| {}), bounded(|_| {})] {
        let schema = server.schema();
        schema.install(&package);
        let (table, prefix) = (&package.options.table, package.options.prefix.name());
        schema.run(&format!("CALL {prefix}setup('a', NULL, 8, 0)"));
        let (mut holder, mut other, mut resizer) = (schema.connect(), schema.connect(), schema.connect());
        run(&mut holder, "START TRANSACTION");
        run(
            &mut holder,
            &format!("UPDATE {table} SET counter = 5 WHERE counter_name = 'a' AND counter_id = 5"),
        );
        thread::scope(|scope| {
            let call = scope.spawn(|| run(&mut resizer, &format!("CALL {prefix}resize('a', 2)")));
            thread::sleep(Duration::from_millis(300));
            let slot = |slot| {
                format!(
                    "SELECT counter FROM {table} WHERE counter_name = 'a' AND counter_id = {slot} FOR UPDATE NOWAIT"
                )
            };
            let mut is_held = |number| other.query_drop(slot(number)).is_err();
            assert_eq!(
                (is_held(1), is_held(2), is_held(8)),
                (true, false, true),
                "{table}"
            );
            run(&mut holder, "COMMIT");
            call.join().expect("a resize");
        });
        let read: i64 = schema.first(&format!("SELECT {prefix}get('a')"));
        assert_eq!(read, 5, "{table}");
    }
}

/// At READ COMMITTED, the insertion of slots could come after the DELETE.
fn growth_beside_a_delete_leaves_no_counter_without_slot_1(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let mut sessions = [0; 3].map(|_| schema.isolated("READ COMMITTED"));
    let [setup, grow, delete] = &mut sessions;
    let mut met = BTreeMap::<(u16, u16), u32>::new();
    for round in calls(300) {
        run(setup, "DELETE FROM counters");
        run(setup, "CALL counter_setup('a', NULL, 2, 3)");
        let barrier = Barrier::new(2);
        let result = thread::scope(|scope| {
            let growth = scope.spawn(|| {
                barrier.wait();
                number(resize(grow, 200))
            });
            barrier.wait();
            thread::sleep(Duration::from_micros(round as u64 * 37 % 1500));
            let deleted = number(delete.query_drop("CALL counter_delete('a')"));
            (growth.join().expect("a resize"), deleted)
        });
        *met.entry(result).or_default() += 1;
        let slots = state(setup).0;
        assert!(
            slots.is_empty() || slots.contains(&1),
            "{result:?} left {slots:?}"
        );
    }
    eprintln!("{}: {met:?}", server.version);
    let expected = [0, 30003, 1213];
    assert!(
        met.keys()
            .all(|(growth, deleted)| expected.contains(growth) && expected.contains(deleted)),
        "{met:?}"
    );
}

fn calls_count_in_a_snapshot_of_another_number_of_slots(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('a', NULL, 5, 0)");
    let mut old = schema.isolated("REPEATABLE READ");
    let mut total = 0;
    for wanted in [8, 3, 8, 1, 12] {
        run(&mut old, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
        schema.run(&format!(
            "CALL counter_resize('a', {wanted}); CALL counter_increment('a')"
        ));
        run(&mut old, "CALL counter_increment('a')");
        run(&mut old, "CALL counter_add('a', 5)");
        run(&mut old, "COMMIT");
        total += 7;
        assert_eq!(state(&mut old), ((1..=wanted).collect(), total));
        // Maintenance in an old snapshot changes what is committed.
        run(&mut old, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
        schema.run(&format!(
            "CALL counter_resize('a', {}); CALL counter_increment('a')",
            15 - wanted
        ));
        resize(&mut old, wanted).expect("a resize");
        run(&mut old, "COMMIT");
        total += 1;
        assert_eq!(state(&mut old), ((1..=wanted).collect(), total));
    }
    run(&mut old, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    schema.run("CALL counter_resize('a', 4); CALL counter_increment('a')");
    run(&mut old, "CALL counter_reset('a', 9, FALSE)");
    run(&mut old, "COMMIT");
    assert_eq!(state(&mut old), (vec![1, 2, 3, 4], 9));
}

fn a_reset_during_a_resize_sets_the_total(server: &Server) {
    let schema = &server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('a', NULL, 30, 0)");
    for isolation in ["READ COMMITTED", "REPEATABLE READ"] {
        let stop = &AtomicBool::new(false);
        let (resizes, resets) = thread::scope(|scope| {
            let stopped = SetOnDrop(stop);
            let resizer = scope.spawn(move || {
                let mut connection = schema.isolated(isolation);
                let mut resizes = 0;
                for wanted in [1, 30].into_iter().cycle() {
                    if stop.load(SeqCst) {
                        break;
                    }
                    match resize(&mut connection, wanted) {
                        Ok(()) => resizes += 1,
                        Err(error) => _ = repeatable(error),
                    }
                }
                resizes
            });
            let mut connection = schema.isolated(isolation);
            let mut resets = 0;
            for value in calls(1000) {
                // A count in every slot, so that a slot that the reset misses is seen.
                let ready = connection.query_drop("UPDATE counters SET counter = counter + 1000000 WHERE counter_id > 0 ORDER BY counter_id DESC");
                match ready
                    .and_then(|()| connection.query_drop(format!("CALL counter_reset('a', {value}, FALSE)")))
                {
                    Ok(()) => {
                        // A locking read, because a snapshot of MariaDB can lack a commit: docs/mariadb-reads.md.
                        let total = connection.query_first(
                            "SELECT SUM(counter) FROM counters WHERE counter_name = 'a' FOR UPDATE",
                        );
                        match total {
                            Ok(total) => assert_eq!(total, Some(value as i64), "{isolation}"),
                            Err(error) => _ = repeatable(error),
                        }
                        resets += 1;
                    }
                    Err(error) => _ = repeatable(error),
                }
            }
            drop(stopped);
            (resizer.join().expect("resizes"), resets)
        });
        eprintln!(
            "{}, {isolation}: {resets} resets, {resizes} resizes",
            server.version
        );
        assert!(resets > 0 && resizes > 0);
    }
}

fn maintenance_of_a_counter_waits_for_no_other_counter(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        schema.run("DELETE FROM counters");
        for name in ["a", "b", "c"] {
            schema.run(&format!("CALL counter_setup('{name}', NULL, 4, 5)"));
        }
        // The neighbours in the order of the primary key have all their slots locked.
        let mut neighbours = schema.isolated("READ COMMITTED");
        run(&mut neighbours, "START TRANSACTION");
        run(
            &mut neighbours,
            "UPDATE counters SET counter = 1 WHERE counter_name IN ('a', 'c')",
        );
        let mut connection = schema.isolated(isolation);
        run(&mut connection, "SET SESSION innodb_lock_wait_timeout = 2");
        for call in [
            "CALL counter_reset('b', 7, FALSE)",
            "CALL counter_resize('b', 9)",
            "CALL counter_resize('b', 2)",
            "CALL counter_increment('b')",
            "CALL counter_delete('b')",
            "CALL counter_setup('b', NULL, 3, 0)",
        ] {
            connection
                .query_drop(call)
                .unwrap_or_else(|error| panic!("{isolation}, {call}: {error}"));
        }
    }
}
