//! The number of slots changes from every state, and after every interruption. Beside writers: exactness and races.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
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
        .on_servers(an_interrupted_resize_is_completed_by_the_next_call)
        .on_servers(a_resize_that_waits_holds_slot_1_and_no_other_slot_that_stays)
        .on_servers(a_reset_during_a_resize_sets_the_total)
        .on_servers(maintenance_of_a_counter_waits_for_no_other_counter);
}

/// Creates the counter `a` anew, with these slots and counts.
fn fill(connection: &mut Conn, slots: impl IntoIterator<Item = (i64, i64)>) {
    let row = |(slot, count)| format!("('a', {slot}, NULL, '2026-01-01', {count})");
    let rows: Vec<_> = slots.into_iter().map(row).collect();
    run(connection, "DELETE FROM counters");
    run(connection, &format!("INSERT INTO counters VALUES {}", rows.join(", ")));
}

/// The numbers of slots of `a`, and its total.
fn state(connection: &mut Conn) -> (Vec<i64>, i64) {
    let rows =
        connection.query("SELECT counter_id, counter FROM counters WHERE counter_name = 'a' ORDER BY counter_id");
    let rows: Vec<(i64, i64)> = rows.expect("the slots");
    (rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).sum())
}

fn run(connection: &mut Conn, statement: &str) {
    connection.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
}

fn resize(connection: &mut Conn, slots: i64) -> mysql::Result<()> {
    connection.query_drop(format!("CALL counter_resize('a', {slots})"))
}

/// The aliases of tables and derived tables in the routines.
fn a_table_can_have_the_name_of_an_alias(server: &Server) {
    for name in ["slot_1", "n", "locked", "folded", "summed", "spread", "amount"] {
        let table = |o: &mut Options| o.table = name.parse().expect("a table");
        for (package, take) in [(package(table), "add('a', -9)"), (bounded(table), "take('a', 9)")] {
            let schema = server.schema();
            schema.install(&package);
            let prefix = package.options.prefix.name();
            for (call, total) in [
                ("setup('a', NULL, 3, 9)", 9),
                ("increment('a')", 10),
                (take, 1),
                ("resize('a', 7)", 1),
                ("resize('a', 2)", 1),
                ("reset('a', 8, FALSE)", 8),
            ] {
                schema.run(&format!("CALL {prefix}{call}"));
                let read: i64 = schema.first(&format!("SELECT {prefix}get('a')"));
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
    let retired: [&[(i64, i64)]; 4] = [&[], &[(-6, 0)], &[(-3, 0), (-2, 0)], &[(-10_000, -5), (-9_999, 0)]];
    for subset in 0..32_i64 {
        let has = |slot: &i64| *slot == 1 || subset & (1 << (slot - 2)) != 0;
        let slots: Vec<_> = (1..=6).filter(has).collect();
        for wanted in 1..=7 {
            let retired = retired[(subset + wanted) as usize % 4];
            let counts = slots.iter().map(|slot| (*slot, *slot));
            fill(&mut connection, counts.chain(retired.iter().copied()));
            let total = state(&mut connection).1;
            let what = format!("{slots:?}, {retired:?} to {wanted}");
            let shown: Option<(i64, i64)> =
                connection.query_first("SELECT slots, total FROM counter_totals").expect("the view");
            assert_eq!(shown, Some((slots[slots.len() - 1], total)), "{what}");
            resize(&mut connection, wanted).expect("a resize");
            let by_hand = retired.iter().filter(|(_, count)| *count != 0);
            let expected = by_hand.map(|(slot, _)| *slot).chain(1..=wanted).collect();
            assert_eq!(state(&mut connection), (expected, total), "{what}");
        }
    }
    // A counter without slot 1 is unknown.
    run(&mut connection, "DELETE FROM counters WHERE counter_id = 1");
    let before = state(&mut connection);
    assert_eq!(error_of(resize(&mut connection, 3)).0, 30003);
    assert_eq!(state(&mut connection), before);
}

/// The resize waits for each slot in turn and is killed there.
fn an_interrupted_resize_is_completed_by_the_next_call(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let (mut connection, mut killer) = (schema.connect(), schema.connect());
    for (held, wanted) in (1..=8).flat_map(|held| [(held, 2), (held, 9)]) {
        fill(&mut connection, (1..=8).map(|slot| (slot, slot)));
        let mut holder = schema.connect();
        run(&mut holder, "START TRANSACTION");
        run(
            &mut holder,
            &format!("UPDATE counters SET counter = counter + 100 WHERE counter_name = 'a' AND counter_id = {held}"),
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
        let expected = ((1..=wanted).collect(), 136);
        assert_eq!(state(&mut connection), expected, "held {held}: {killed:?} left {slots:?}");
    }
    // From the greatest number to 1, interrupted at some time.
    fill(&mut connection, (1..=10_000).map(|slot| (slot, 1)));
    let mut kills = 0;
    for pause in [3, 10, 30] {
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
        run(&mut holder, &format!("UPDATE {table} SET counter = 5 WHERE counter_name = 'a' AND counter_id = 5"));
        thread::scope(|scope| {
            let call = scope.spawn(|| run(&mut resizer, &format!("CALL {prefix}resize('a', 2)")));
            thread::sleep(Duration::from_millis(300));
            let slot = |slot| {
                format!(
                    "SELECT counter FROM {table} WHERE counter_name = 'a' AND counter_id = {slot} FOR UPDATE NOWAIT"
                )
            };
            let mut is_held = |number| other.query_drop(slot(number)).is_err();
            assert_eq!((is_held(1), is_held(2), is_held(8)), (true, false, true), "{table}");
            run(&mut holder, "COMMIT");
            call.join().expect("a resize");
        });
        let read: i64 = schema.first(&format!("SELECT {prefix}get('a')"));
        assert_eq!(read, 5, "{table}");
    }
}

fn a_reset_during_a_resize_sets_the_total(server: &Server) {
    let schema = &server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('a', NULL, 30, 0)");
    for isolation in ["READ COMMITTED", "REPEATABLE READ"] {
        let stop = &AtomicBool::new(false);
        let resize_until_the_end = move || {
            let (mut connection, mut resizes) = (schema.isolated(isolation), 0);
            while !stop.load(SeqCst) {
                match resize(&mut connection, [1, 30][resizes % 2]) {
                    Ok(()) => resizes += 1,
                    Err(error) => _ = repeatable(error),
                }
            }
            resizes
        };
        let (resizes, resets) = thread::scope(|scope| {
            let stopped = SetOnDrop(stop);
            let resizer = scope.spawn(resize_until_the_end);
            let (mut connection, mut resets) = (schema.isolated(isolation), 0);
            for value in calls(1000) {
                // A count in every slot, so that a slot that the reset misses is seen. The read locks, because a snapshot of
                // MariaDB can lack a commit: docs/guarantees.md.
                let mut set = || {
                    connection.query_drop(
                        "UPDATE counters SET counter = counter + 1000000 WHERE counter_id > 0 ORDER BY counter_id DESC",
                    )?;
                    connection.query_drop(format!("CALL counter_reset('a', {value}, FALSE)"))?;
                    connection.query_first("SELECT SUM(counter) FROM counters WHERE counter_name = 'a' FOR UPDATE")
                };
                match set() {
                    Ok(total) => {
                        assert_eq!(total, Some(value as i64), "{isolation}");
                        resets += 1;
                    }
                    Err(error) => _ = repeatable(error),
                }
            }
            drop(stopped);
            (resizer.join().expect("resizes"), resets)
        });
        eprintln!("{}, {isolation}: {resets} resets, {resizes} resizes", server.version);
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
        run(&mut neighbours, "UPDATE counters SET counter = 1 WHERE counter_name IN ('a', 'c')");
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
            connection.query_drop(call).unwrap_or_else(|error| panic!("{isolation}, {call}: {error}"));
        }
    }
}
