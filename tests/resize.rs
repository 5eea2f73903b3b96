//! The number of slots changes under load, from every state, and after every interruption.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::{Options, Pick, Slots};

use crate::support::{Module, Schema, Server, bounded, error_of, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(every_set_of_slots_is_resized_exactly)
        .on_servers(a_table_can_have_the_name_of_an_alias)
        .on_servers(a_killed_resize_is_completed_by_the_next_call)
        .on_servers(a_resize_gets_through_beside_transactions)
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
    let rows = connection.query("SELECT counter_id, counter FROM counters WHERE counter_name = 'a' ORDER BY counter_id");
    let rows: Vec<(i64, i64)> = rows.expect("the slots");
    (rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).sum())
}

/// The aliases of tables and derived tables in the routines.
fn a_table_can_have_the_name_of_an_alias(server: &Server) {
    for name in ["first", "existing", "slots", "locked", "sums", "found", "adding", "entries", "listed", "summed", "numbers", "spread", "pair"] {
        let table = |o: &mut Options| o.table = name.parse().expect("a table");
        for package in [package(table), bounded(table)] {
            let schema = server.schema();
            schema.install(&package);
            let prefix = package.options.prefix.name();
            let take = if package.options.bounded { format!("{prefix}take('a', 9)") } else { format!("{prefix}add('a', -9)") };
            let mut connection = schema.connect();
            for (call, total) in [
                (format!("{prefix}setup('a', NULL, 3, 5)"), 5),
                (format!("{prefix}add_many('[[\"a\", 4]]')"), 9),
                (format!("{prefix}increment('a')"), 10),
                (take, 1),
                (format!("{prefix}resize('a', 7)"), 1),
                (format!("{prefix}resize('a', 2)"), 1),
                (format!("{prefix}reset('a', 8, FALSE)"), 8),
            ] {
                connection.query_drop(format!("CALL {call}")).unwrap_or_else(|error| panic!("{name}: {error} in {call}"));
                let read: i64 = connection.query_first(format!("SELECT {prefix}get('a')")).expect("a total").expect("a row");
                assert_eq!(read, total, "{name}: {call}");
            }
        }
    }
}

fn every_set_of_slots_is_resized_exactly(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let mut connection = schema.connect();
    // What an interrupted resize can leave: retired slots, also of the number of a slot that was inserted again, and
    // retired slots whose counts have been moved.
    let retired: [&[(i64, i64)]; 4] = [&[], &[(-6, 600)], &[(-3, 300), (-2, 0)], &[(-10_000, -5), (-9_999, 0)]];
    let mut cases = 0;
    for subset in 0..32_i64 {
        let slots: Vec<_> = (1..=6).filter(|slot| *slot == 1 || subset & (1 << (slot - 2)) != 0).collect();
        for (wanted, retired) in (1..=7).flat_map(|wanted| retired.map(|retired| (wanted, retired))) {
            let values = rows(slots.iter().map(|slot| (*slot, *slot)).chain(retired.iter().copied()));
            connection.query_drop("DELETE FROM counters").expect("no counter");
            connection.query_drop(format!("INSERT INTO counters VALUES {values}")).expect("slots");
            let total = state(&mut connection).1;
            let complete = slots.len() as i64 == slots[slots.len() - 1] && retired.is_empty();
            let shown: (i64, i64, bool) = connection
                .query_first("SELECT slots, total, resize_incomplete FROM counter_totals")
                .expect("the view")
                .expect("a counter");
            assert_eq!(shown, (slots.len() as i64, total, !complete), "{slots:?}, {retired:?}");

            connection.exec_drop("CALL counter_resize('a', ?)", (wanted,)).expect("a resize");
            let expected = ((1..=wanted).collect(), total);
            assert_eq!(state(&mut connection), expected, "{slots:?}, {retired:?} to {wanted}");
            cases += 1;
        }
    }
    // A counter without slot 1 is unknown, as for an increment.
    connection.query_drop("DELETE FROM counters WHERE counter_id = 1").expect("no slot 1");
    let before = state(&mut connection);
    assert_eq!(error_of(connection.query_drop("CALL counter_resize('a', 3)")).0, 30003);
    assert_eq!(state(&mut connection), before);
    eprintln!("{}: {cases} cases", server.version);
}

fn a_killed_resize_is_completed_by_the_next_call(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let mut connection = schema.connect();
    let mut killer = schema.connect();
    // The resize waits for each slot in turn and is killed there: while it retires slots 8 to 3, and before it moves
    // the counts.
    for (held, wanted) in (1..=8).flat_map(|held| [(held, 2), (held, 9)]) {
        connection.query_drop("DELETE FROM counters").expect("no counter");
        connection.query_drop(format!("INSERT INTO counters VALUES {}", rows((1..=8).map(|slot| (slot, slot))))).expect("slots");
        let mut holder = schema.connect();
        holder.query_drop("START TRANSACTION").expect("a transaction");
        let hold = "UPDATE counters SET counter = counter + 100 WHERE counter_name = 'a' AND counter_id = ?";
        holder.exec_drop(hold, (held,)).expect("a count");
        let mut resizer = schema.connect();
        let session = resizer.connection_id();
        let call = thread::spawn(move || resizer.exec_drop("CALL counter_resize('a', ?)", (wanted,)));
        thread::sleep(Duration::from_millis(100));
        // Fails if the resize did not need the slot and has ended.
        let _ = killer.query_drop(format!("KILL CONNECTION {session}"));
        let killed = call.join().expect("the session");
        let (slots, total) = state(&mut connection);
        assert_eq!(total, 36, "held {held}, {slots:?}");
        holder.query_drop("COMMIT").expect("a commit");
        // The killed session ends its last statement after the error has been returned.
        let finished = loop {
            match connection.exec_drop("CALL counter_resize('a', ?)", (wanted,)) {
                Ok(()) => break state(&mut connection),
                Err(error) => assert_eq!(error_of::<()>(Err(error)).0, 1213),
            }
        };
        assert_eq!(finished, ((1..=wanted).collect(), 136), "held {held}: {killed:?} left {slots:?}");
    }
    // From the greatest number to 1, interrupted at any time.
    schema.run("CALL counter_reset('a', 7, FALSE); CALL counter_resize('a', 10000); UPDATE counters SET counter = 1");
    let mut kills = 0;
    for pause in [5, 20, 80, 320, 1000] {
        let mut resizer = schema.connect();
        let session = resizer.connection_id();
        let call = thread::spawn(move || resizer.query_drop("CALL counter_resize('a', 1)"));
        // KILL QUERY has no effect before the call begins.
        while !call.is_finished() {
            thread::sleep(Duration::from_millis(pause));
            let _ = killer.query_drop(format!("KILL QUERY {session}"));
        }
        kills += u32::from(call.join().expect("the session").is_err());
        assert_eq!(state(&mut connection).1, 10_000);
    }
    let (start, left) = (Instant::now(), state(&mut connection).0.len());
    connection.query_drop("CALL counter_resize('a', 1)").expect("a resize");
    assert_eq!(state(&mut connection), (vec![1], 10_000));
    assert!(kills > 0, "no resize was killed");
    eprintln!(
        "{}: 10,000 slots to 1, killed {kills} times; the last {left} rows in {:.1} s",
        server.version,
        start.elapsed().as_secs_f64()
    );
}

/// The transactions of a load, and what they do with the counter.
struct Load {
    isolation: &'static str,
    pick: Pick,
    calls: u64,
    pause: Duration,
}

fn a_resize_gets_through_beside_transactions(server: &Server) {
    let load = |isolation, pick, calls, pause| Load { isolation, pick, calls, pause: Duration::from_millis(pause) };
    for load in [
        load("REPEATABLE READ", Pick::Connection, 1, 0),
        load("REPEATABLE READ", Pick::Connection, 2, 5),
        load("READ COMMITTED", Pick::Connection, 1, 0),
        load("REPEATABLE READ", Pick::Random, 1, 0),
    ] {
        resize_beside(&load, &server.schema());
    }
}

fn resize_beside(load: &Load, schema: &Schema<'_>) {
    const WRITERS: usize = 16;
    schema.install(&package(|options| options.pick = load.pick));
    schema.run("CALL counter_setup('a', NULL, 100, 0); CREATE TABLE own (id INT PRIMARY KEY, n INT) ENGINE = InnoDB");
    let own: Vec<_> = (0..WRITERS).map(|writer| format!("({writer}, 0)")).collect();
    schema.run(&format!("INSERT INTO own VALUES {}", own.join(", ")));
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let errors = Mutex::new(BTreeMap::<u16, u64>::new());
    let mut failed = BTreeMap::<(i64, u16), u64>::new();
    let mut calls = 0;
    let rates = thread::scope(|scope| {
        // Stops the writers also if an assertion fails.
        let _stop = super::exactness::SetOnDrop(&stop);
        for writer in 0..WRITERS {
            let (stop, done, errors) = (&stop, &done, &errors);
            scope.spawn(move || {
                let mut connection = schema.isolated(load.isolation);
                while !stop.load(SeqCst) {
                    let transaction = (|| {
                        connection.query_drop("START TRANSACTION")?;
                        connection.query_drop(format!("UPDATE own SET n = n + 1 WHERE id = {writer}"))?;
                        for _ in 0..load.calls {
                            connection.query_drop("CALL counter_increment('a')")?;
                        }
                        thread::sleep(load.pause);
                        connection.query_drop("COMMIT")
                    })();
                    if let Err(error) = transaction {
                        *errors.lock().expect("errors").entry(error_of::<()>(Err(error)).0).or_default() += 1;
                        connection.query_drop("ROLLBACK").expect("a rollback");
                    } else {
                        done.fetch_add(1, SeqCst);
                    }
                }
            });
        }
        let rate = |(start, before): (Instant, u64)| (done.load(SeqCst) - before) as f64 / start.elapsed().as_secs_f64();
        let now = || (Instant::now(), done.load(SeqCst));
        let start = now();
        thread::sleep(Duration::from_secs(1));
        let before = rate(start);
        let start = now();
        let mut connection = schema.connect();
        for wanted in [20, 100, 5, 100, 1, 10, 1, 100].into_iter().cycle() {
            for attempt in 1.. {
                calls += 1;
                match connection.exec_drop("CALL counter_resize('a', ?)", (wanted,)) {
                    Ok(()) => break,
                    Err(error) => *failed.entry((wanted, error_of::<()>(Err(error)).0)).or_default() += 1,
                }
                assert!(attempt < 3, "a resize to {wanted} has failed {attempt} times: {failed:?}");
            }
            assert_eq!(state(&mut connection).0, (1..=wanted).collect::<Vec<_>>());
            if calls >= 8 && (calls >= 24 || start.0.elapsed() > Duration::from_secs(10)) {
                break;
            }
        }
        (before, rate(start))
    });
    let (done, errors) = (done.load(SeqCst), errors.into_inner().expect("errors"));
    assert_eq!(state(&mut schema.connect()).1, (done * load.calls) as i64);
    eprintln!(
        "{}, {}, pick {}, {} calls, pause {:?}: {calls} resizes, failed {failed:?}; {done} transactions, failed {errors:?}; \
         {:.0} a second before, {:.0} meanwhile",
        schema.server.version, load.isolation, load.pick, load.calls, load.pause, rates.0, rates.1
    );
    let failed: u64 = failed.values().sum();
    assert!(failed <= 1, "{failed} of {calls} resizes have failed");
    let errors: u64 = errors.values().sum();
    assert!(errors <= 1 + done / 1000, "{errors} transactions have failed");
}

fn a_reset_during_a_resize_sets_the_total(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('a', NULL, 30, 0)");
    for isolation in ["READ COMMITTED", "REPEATABLE READ"] {
        let stop = AtomicBool::new(false);
        let (resizes, deadlocks) = (AtomicU64::new(0), AtomicU64::new(0));
        let sums = thread::scope(|scope| {
            let _stop = super::exactness::SetOnDrop(&stop);
            scope.spawn(|| {
                let mut connection = schema.isolated(isolation);
                for wanted in [1, 30].into_iter().cycle() {
                    if stop.load(SeqCst) {
                        break;
                    }
                    match connection.exec_drop("CALL counter_resize('a', ?)", (wanted,)) {
                        Ok(()) => resizes.fetch_add(1, SeqCst),
                        Err(error) => deadlocks.fetch_add(u64::from(error_of::<()>(Err(error)).0 == 1213), SeqCst),
                    };
                }
            });
            let mut connection = schema.isolated(isolation);
            let mut check = schema.isolated("READ COMMITTED");
            let mut sums = 0;
            for value in crate::support::calls(2000) {
                // A count in every slot, so that a slot that the reset misses is seen.
                let ready = connection.query_drop("UPDATE counters SET counter = counter + 1000000 ORDER BY counter_id DESC");
                let reset = ready.and_then(|()| connection.exec_drop("CALL counter_reset('a', ?, FALSE)", (value,)));
                if let Err(error) = reset {
                    deadlocks.fetch_add(u64::from(error_of::<()>(Err(error)).0 == 1213), SeqCst);
                    continue;
                }
                // A locking read, because a read of MariaDB during a commit can be wrong: docs/mariadb-reads.md.
                let total = check.query_first("SELECT SUM(counter) FROM counters WHERE counter_name = 'a' FOR UPDATE");
                match total {
                    Ok(total) => assert_eq!(total, Some(value as i64), "{isolation}"),
                    Err(error) => assert_eq!(error_of::<()>(Err(error)).0, 1213),
                }
                sums += 1;
            }
            sums
        });
        assert!(sums > 0 && resizes.load(SeqCst) > 0);
        eprintln!("{}, {isolation}: {sums} resets, {resizes:?} resizes, {deadlocks:?} deadlocks", server.version);
    }
}

fn maintenance_of_a_counter_waits_for_no_other_counter(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|options| options.slots = Slots::Fixed(4)));
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        // The neighbours in the order of the primary key have all their slots locked.
        schema.run(
            "DELETE FROM counters; DELETE FROM slotted_counters; \
             CALL counter_setup('a', NULL, 4, 0); CALL counter_setup('b', NULL, 4, 5); CALL counter_setup('c', NULL, 4, 0); \
             INSERT INTO slotted_counters SELECT counter_id, 1, slots.number, 1 FROM counters \
              CROSS JOIN (SELECT 0 AS number UNION ALL SELECT 1 UNION ALL SELECT 3) AS slots WHERE counter_name = 'a'",
        );
        let mut neighbours = schema.isolated("READ COMMITTED");
        for statement in [
            "START TRANSACTION",
            "UPDATE counters SET counter = 1 WHERE counter_name IN ('a', 'c')",
            "UPDATE slotted_counters SET count = 2 WHERE record_type IN (1, 3)",
        ] {
            neighbours.query_drop(statement).expect(statement);
        }
        let mut connection = schema.isolated(isolation);
        connection.query_drop("SET SESSION innodb_lock_wait_timeout = 2").expect("a time");
        for call in [
            "CALL counter_reset('b', 7, FALSE)",
            "CALL counter_resize('b', 9)",
            "CALL counter_resize('b', 2)",
            "CALL counter_increment('b')",
            "CALL counter_delete('b')",
            "CALL counter_setup('b', NULL, 3, 0)",
            "CALL slotted_counter_compact(2, 1)",
            "CALL slotted_counter_reset(2, 1, 7)",
            "CALL slotted_counter_delete(2, 1)",
        ] {
            connection.query_drop(call).unwrap_or_else(|error| panic!("{isolation}, {call}: {error}"));
        }
    }
}
