//! The number of slots changes from every state, and after every interruption. Beside writers: exactness and races.

use slotted::package::Options;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(every_set_of_slots_is_resized_exactly)
        .on_servers(a_table_can_have_the_name_of_an_alias)
        .on_servers(an_interrupted_resize_is_completed_by_the_next_call)
        .on_servers(a_reset_or_a_delete_during_a_resize_misses_no_slot)
        .on_servers(maintenance_of_a_counter_waits_for_no_other_counter);
}

/// Creates the counter `a` anew, with these slots and counts.
fn fill(connection: &mut Conn, slots: impl IntoIterator<Item = (i64, i64)>) {
    let row = |(slot, count)| format!("('a', {slot}, 'what', '2026-01-01', {count})");
    let rows: Vec<_> = slots.into_iter().map(row).collect();
    run(connection, "DELETE FROM counters");
    run(connection, &format!("INSERT INTO counters VALUES {}", rows.join(", ")));
}

/// The numbers of slots of `a`, and its total. Each slot keeps what `fill` said of the counter.
fn state(connection: &mut Conn) -> (Vec<i64>, i64) {
    let same = "SUM(description <=> 'what' AND start_date = '2026-01-01') OVER () = COUNT(*) OVER ()";
    let rows = format!("SELECT counter_id, counter, {same} FROM counters WHERE counter_name = 'a' ORDER BY counter_id");
    let rows: Vec<(i64, i64, bool)> = connection.query(rows).expect("the slots");
    assert!(rows.iter().all(|row| row.2), "a slot with another description or start_date");
    (rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).sum())
}

fn resize(connection: &mut Conn, slots: i64) -> mysql::Result<()> {
    connection.query_drop(format!("CALL counter_resize('a', {slots})"))
}

/// The aliases of tables and derived tables in the routines.
fn a_table_can_have_the_name_of_an_alias(server: &Server) {
    for name in ["slot_1", "n", "locked", "folded", "summed", "spread", "amount"] {
        let table = |o: &mut Options| o.table = name.parse().expect("a table");
        for (package, take) in [(package(table), "add('a', -9)"), (bounded(table), "take('a', 9)")] {
            let schema = server.installed([&package]);
            let prefix = package.options.prefix.name();
            let calls = ["setup('a', NULL, 3, 9)", "increment('a')", take, "resize('a', 7)", "resize('a', 2)"];
            calls.iter().for_each(|call| schema.run(&format!("CALL {prefix}{call}")));
            assert_eq!(schema.first::<i64>(&format!("SELECT {prefix}get('a')")), 1, "{name}");
        }
    }
}

fn every_set_of_slots_is_resized_exactly(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
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
            let shown: (i64, i64) = schema.first("SELECT slots, total FROM counter_totals");
            // A negative slot belongs to no counter.
            assert_eq!(shown, (slots[slots.len() - 1], slots.iter().sum()), "{what}");
            resize(&mut connection, wanted).expect("a resize");
            let by_hand = retired.iter().filter(|(_, count)| *count != 0);
            let expected = by_hand.map(|(slot, _)| *slot).chain(1..=wanted).collect();
            assert_eq!(state(&mut connection), (expected, total), "{what}");
        }
    }
    run(&mut connection, "CALL counter_reset('a', 9, FALSE)");
    assert_eq!(state(&mut connection), ((1..=7).collect(), 9));
    // Slot 1 is deleted while the resize, which has found it, waits for a retired slot.
    fill(&mut connection, [(-9, 0), (1, 1), (2, 2), (3, 3)]);
    run(&mut connection, "START TRANSACTION");
    run(&mut connection, "SELECT * FROM counters WHERE counter_name = 'a' AND counter_id = -9 FOR UPDATE");
    let (resized, ()) = schema.while_waiting(&mut schema.connect(), &["CALL counter_resize('a', 2)"], || {
        run(&mut connection, "DELETE FROM counters WHERE counter_name = 'a' AND counter_id = 1");
        run(&mut connection, "COMMIT");
    });
    resized.expect("a resize that has found slot 1");
    let (slots, total) = state(&mut connection);
    assert_eq!((total, slots.contains(&3)), (5, true), "{slots:?}");
}

/// The resize waits for each slot in turn and is killed there.
fn an_interrupted_resize_is_completed_by_the_next_call(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    let mut connection = schema.connect();
    for (held, wanted) in (1..=8).flat_map(|held| [(held, 2), (held, 9)]) {
        fill(&mut connection, (1..=8).map(|slot| (slot, slot)));
        let slot = format!("counter_name = 'a' AND counter_id = {held}");
        let update = format!("UPDATE counters SET counter = counter + 100 WHERE {slot}");
        let mut holder = schema.after(&["START TRANSACTION", &update]);
        let (mut resizer, call) = (schema.connect(), format!("CALL counter_resize('a', {wanted})"));
        let kill = format!("KILL CONNECTION {}", resizer.connection_id());
        let (killed, ()) = schema.while_waiting(&mut resizer, &[&call], || schema.run(&kill));
        assert!(killed.is_err(), "held {held}, to {wanted}");
        let (slots, total) = state(&mut connection);
        assert_eq!(total, 36, "held {held}, {slots:?}");
        run(&mut holder, "COMMIT");
        // The killed session ends its last statement after the error has been returned.
        repeat(&mut connection, &[&call]);
        let expected = ((1..=wanted).collect(), 136);
        assert_eq!(state(&mut connection), expected, "held {held}: {killed:?} left {slots:?}");
    }
}

/// A counter is created, reset and deleted while two sessions resize it.
fn a_reset_or_a_delete_during_a_resize_misses_no_slot(server: &Server) {
    for (package, isolation) in
        [(package(|_| {}), "READ COMMITTED"), (package(|_| {}), "REPEATABLE READ"), (bounded(|_| {}), "READ COMMITTED")]
    {
        let (schema, resizes) = (server.installed([&package]), [(); 2].map(|()| AtomicU64::new(0)));
        let (prefix, table) = (package.options.prefix.name(), &package.options.table);
        let resize = |connection: &mut Conn, number: usize| {
            let resized = number_of(connection.query_drop(format!("CALL {prefix}resize('a', {})", [40, 2][number])));
            assert!([0, 30003, 1213, 1205, 1062].contains(&resized), "{resized}");
            resizes[number].fetch_add(u64::from(resized == 0), SeqCst);
        };
        // A count in every slot shows one that the reset misses. The read locks: a snapshot of MariaDB can lack a part of a commit.
        let fill = format!("UPDATE {table} SET counter = counter + 1000 WHERE counter_id > 0 ORDER BY counter_id DESC");
        let read = &format!("SELECT SUM(counter) FROM {table} WHERE counter_name = 'a' FOR UPDATE");
        let resets = beside([(); 2].map(|()| schema.isolated(isolation)), resize, || {
            let (mut connection, mut resets) = (schema.isolated(isolation), 0);
            for round in calls(120) {
                repeat(&mut connection, &[&format!("CALL {prefix}setup('a', NULL, 2, 7)")]);
                for value in round..round + 10 {
                    match run_all(&mut connection, &[&fill, &format!("CALL {prefix}reset('a', {value}, FALSE)")])
                        .and_then(|()| connection.query_first::<usize, _>(read))
                    {
                        Ok(total) => assert_eq!(total, Some(value), "{prefix}, {isolation}"),
                        Err(error) => {
                            repeatable(error);
                            continue;
                        }
                    }
                    resets += 1;
                }
                repeat(&mut connection, &[&format!("CALL {prefix}delete('a')")]);
                // A resize that has not ended deletes the slots with negative numbers.
                let left = format!("SELECT counter_id, counter FROM {table} WHERE counter_id > 0 OR counter <> 0");
                let left = schema.query::<(i64, i64)>(&left);
                assert!(left.is_empty(), "slots of a deleted counter: {left:?}");
            }
            resets
        });
        assert!(resets > 0 && resizes.into_iter().all(|resizes| resizes.into_inner() > 0));
        for call in ["setup('a', NULL, 2, 7)", "resize('a', 3)", "delete('a')"] {
            schema.run(&format!("CALL {prefix}{call}"));
        }
        assert_eq!(schema.first::<u64>(&format!("SELECT COUNT(*) FROM {table}")), 0, "{table}");
    }
}

fn maintenance_of_a_counter_waits_for_no_other_counter(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        schema.run("DELETE FROM counters");
        for name in ["a", "b", "c"] {
            schema.run(&format!("CALL counter_setup('{name}', NULL, 4, 5)"));
        }
        // The neighbours in the order of the primary key have all their slots locked.
        let _neighbours = schema.after(&[
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "START TRANSACTION",
            "UPDATE counters SET counter = 1 WHERE counter_name IN ('a', 'c')",
        ]);
        let mut connection = schema.isolated(isolation);
        run(&mut connection, "SET SESSION innodb_lock_wait_timeout = 2");
        let calls =
            "reset('b', 7, FALSE); resize('b', 9); resize('b', 2); increment('b'); delete('b'); setup('b', NULL, 3, 0)";
        for call in calls.split("; ") {
            run(&mut connection, &format!("CALL counter_{call}"));
        }
    }
}
