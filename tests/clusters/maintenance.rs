//! Maintenance of counters that all nodes increment.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::{Conn, Row};
use mysql::prelude::Queryable;
use slotted::package::Slots;

use super::{Call, Counted, HOLD, under_calls, under_load};
use crate::rollup::of_column;
use crate::support::{Cluster, Schema, keyed, package, sql_statements};

/// The calls of a load, of which less than a hundredth may fail.
const CALLS: u64 = 3_000;

/// The time between two calls of a connection. The nodes of a group fall behind without it, and a node that is behind cannot
/// change the slots of others.
const PACE: Duration = Duration::from_millis(60);

/// The maximum number of calls of a routine until one succeeds.
const REPEATS: usize = 20;

/// The errors of a conflict with another node.
const CONFLICTS: [&str; 3] = ["1213 ", "3101 ", "1180 "];

/// Calls a routine until it succeeds, as a DBA does.
fn repeated(schema: &Schema<'_>, call: &str) {
    let mut connection = schema.connect();
    let start = Instant::now();
    for calls in 1..=REPEATS {
        match connection.query_drop(call) {
            Ok(()) => {
                eprintln!("{call}: {calls} calls, {:.2} s", start.elapsed().as_secs_f64());
                return;
            }
            Err(mysql::Error::MySqlError(error)) if [1213, 3101, 1180].contains(&error.code) => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("{call}: {error}"),
        }
    }
    panic!("{call} has failed {REPEATS} times");
}

/// Calls a routine on all nodes at the same time, as docs/clusters.md says, and then on one node after the other until a call succeeds.
fn on_all_nodes(cluster: &Cluster, schema: &Schema<'_>, call: &str) {
    let start = Instant::now();
    let nodes = cluster.nodes();
    let options = nodes.iter().map(|node| node.options().db_name(Some(&schema.name)));
    let mut connections: Vec<_> = options.map(|options| Conn::new(options).expect("a connection")).collect();
    let at_once = thread::scope(|scope| {
        let calls: Vec<_> = connections.iter_mut().map(|node| scope.spawn(|| node.query_drop(call).is_ok())).collect();
        calls.into_iter().map(|one| one.join().expect("no panic")).collect::<Vec<_>>()
    });
    let mut succeeded = at_once.contains(&true);
    for node in (0..connections.len()).cycle() {
        if succeeded {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(300), "{call} has not succeeded");
        thread::sleep(Duration::from_millis(100));
        succeeded = connections[node].query_drop(call).is_ok();
    }
    eprintln!("{call}: {at_once:?}, {:.1} s", start.elapsed().as_secs_f64());
}

/// A call that begins with a pause.
fn paced(statement: &str, pace: Duration) -> Box<Call<'_>> {
    Box::new(move |connection| {
        thread::sleep(pace);
        connection.query_drop(statement)
    })
}

/// Runs `work` under a load. The load goes on until it has made enough calls, of which only conflicts may fail.
fn under_enough_calls(
    cluster: &Cluster,
    schema: &Schema<'_>,
    call: &Call<'_>,
    hold: Option<Duration>,
    work: impl FnOnce(),
) -> Counted {
    let total = |schema: &Schema<'_>| schema.first::<u64>("SELECT CAST(SUM(total) AS UNSIGNED) FROM totals");
    let ((), counted) = under_calls(cluster, &schema.name, call, hold, || {
        thread::sleep(Duration::from_millis(500));
        work();
        let (start, before) = (Instant::now(), total(schema));
        while total(schema) < before + CALLS && start.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(200));
        }
    });
    let failed: u64 = counted.failed.values().sum();
    eprintln!("{}, transactions of {hold:?}: {counted:?}", cluster.node(0).version);
    for (_, error) in counted.failed.keys() {
        assert!(CONFLICTS.iter().any(|conflict| error.starts_with(conflict)), "{counted:?}");
    }
    assert!(failed * 100 < counted.done, "{failed} of {} calls failed: {counted:?}", counted.done + failed);
    counted
}

/// The total on each node, after it has applied all changes.
fn totals(cluster: &Cluster, schema: &Schema<'_>, query: &str) -> Vec<Option<i64>> {
    let total = |node| cluster.reader(node, &schema.name).query_first(query).expect(query);
    (0..cluster.nodes().len()).map(total).collect()
}

pub fn a_resize_ends_under_load_and_keeps_the_counts(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('hot', NULL, 99, 0); CREATE VIEW totals AS SELECT total FROM counter_totals");
    let mut done = 0;
    for hold in [None, Some(HOLD)] {
        let counted = under_enough_calls(cluster, &schema, &*paced("CALL counter_increment('hot')", PACE), hold, || {
            repeated(&schema, "CALL counter_resize('hot', 33)");
            repeated(&schema, "CALL counter_resize('hot', 99)");
        });
        done += counted.done as i64;
        assert_eq!(totals(cluster, &schema, "SELECT counter_get('hot')"), [Some(done); 3]);
        let slots = "SELECT slots FROM counter_totals WHERE resize_incomplete = 0";
        assert_eq!(totals(cluster, &schema, slots), [Some(99); 3]);
    }
}

/// A busy node of a group is seconds behind. It cannot change slots of other nodes, but each node retires its own.
pub fn a_resize_ends_at_full_speed(cluster: &Cluster) {
    let schema = cluster.node(0);
    let schema = schema.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('hot', NULL, 99, 0); CREATE VIEW totals AS SELECT total FROM counter_totals");
    let mut done = 0;
    for hold in [None, Some(HOLD)] {
        let call = paced("CALL counter_increment('hot')", Duration::ZERO);
        let counted = under_enough_calls(cluster, &schema, &*call, hold, || {
            thread::sleep(Duration::from_millis(1500));
            for slots in [33, 99] {
                on_all_nodes(cluster, &schema, &format!("CALL counter_resize('hot', {slots})"));
            }
        });
        done += counted.done as i64;
        assert_eq!(totals(cluster, &schema, "SELECT counter_get('hot')"), [Some(done); 3]);
        let slots = "SELECT slots FROM counter_totals WHERE resize_incomplete = 0";
        assert_eq!(totals(cluster, &schema, slots), [Some(99); 3]);
    }
}

pub fn compactions_end_under_load_and_keep_the_counts(cluster: &Cluster) {
    let schema = cluster.node(0);
    let schema = schema.schema();
    schema.install(&keyed(|options| options.slots = Slots::Fixed(99)));
    schema.run("CREATE VIEW totals AS SELECT total FROM slotted_counter_totals");
    schema.run("CALL slotted_counter_increment(1, 2)");
    let mut done = 1;
    // Without a pause, a compaction leaves the slots of other nodes that are ahead.
    for (hold, pace) in [(None, PACE), (None, Duration::ZERO), (Some(HOLD), Duration::ZERO)] {
        let call = paced("CALL slotted_counter_increment(1, 2)", pace);
        let compact = || repeated(&schema, "CALL slotted_counter_compact(1, 2)");
        let counted = under_enough_calls(cluster, &schema, &*call, hold, compact);
        done += counted.done as i64;
        assert_eq!(totals(cluster, &schema, "SELECT slotted_counter_get(1, 2)"), [Some(done); 3]);
    }
    // Without a load, a compaction on any node leaves one slot.
    schema.run("CALL slotted_counter_compact(1, 2)");
    assert_eq!(totals(cluster, &schema, "SELECT COUNT(*) FROM slotted_counters"), [Some(1); 3]);
}

/// Each node moves the slots that it writes itself, under a load of all nodes.
pub fn rollups_on_each_node_keep_the_counts(cluster: &Cluster) {
    const PAGES: i64 = 5;
    let schema = cluster.node(0);
    let schema = schema.schema();
    schema.run("CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB");
    schema.install(&of_column("pages.views", "id BIGINT", |options| options.slots = Slots::Fixed(99)));
    schema.run("INSERT INTO pages (id) VALUES (1), (2), (3), (4), (5); CREATE VIEW totals AS SELECT total FROM pages_views_totals");
    let call = format!("CALL pages_views_increment(1 + MOD(CONNECTION_ID(), {PAGES}))");
    let [done, rejected] = [const { AtomicU64::new(0) }; 2];
    let counted = under_enough_calls(cluster, &schema, &*paced(&call, Duration::ZERO), None, || {
        thread::scope(|scope| {
            for node in 0..cluster.nodes().len() {
                let (schema, done, rejected) = (&schema, &done, &rejected);
                scope.spawn(move || {
                    // Not a reader: a transaction of its session waits until its node has applied all changes of the others.
                    let mut connection = Conn::new(cluster.node(node).options().db_name(Some(&schema.name))).expect("a connection");
                    for _ in 0..4 {
                        thread::sleep(Duration::from_secs(2));
                        match connection.query_drop("CALL pages_views_rollup(NULL)") {
                            Ok(()) => done.fetch_add(1, SeqCst),
                            Err(mysql::Error::MySqlError(error)) if [1213, 3101, 1180].contains(&error.code) => rejected.fetch_add(1, SeqCst),
                            Err(error) => panic!("node {node}: {error}"),
                        };
                    }
                });
            }
        });
    });
    let failed: u64 = counted.failed.values().sum();
    let (done, rejected) = (done.into_inner(), rejected.into_inner());
    eprintln!("{}: {done} roll-ups, {rejected} conflicts, {failed} of {} calls failed", cluster.node(0).version, counted.done + failed);
    assert!(failed * 1000 <= counted.done, "{failed} of {} calls failed", counted.done + failed);
    assert!(done > 0, "no roll-up of {rejected} succeeded");
    let sum = "SELECT CAST(SUM(pages_views_get(id)) AS SIGNED) FROM pages";
    assert_eq!(totals(cluster, &schema, sum), [Some(counted.done as i64); 3]);
    // Without a load, calls on each node move all counts. A call skips rows that a change of another node locks at this moment.
    let pending = || totals(cluster, &schema, "SELECT COUNT(*) FROM pages_views WHERE count <> 0");
    for _ in 0..10 {
        for node in cluster.nodes() {
            let mut connection = Conn::new(node.options().db_name(Some(&schema.name))).expect("a connection");
            connection.query_drop("CALL pages_views_rollup(NULL)").expect("a roll-up");
        }
        if pending() == [Some(0); 3] {
            break;
        }
    }
    assert_eq!(pending(), [Some(0); 3]);
    assert_eq!(totals(cluster, &schema, "SELECT CAST(SUM(views) AS SIGNED) FROM pages"), [Some(counted.done as i64); 3]);
}

pub fn resets_and_deletes_end_under_load(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|options| options.slots = Slots::Fixed(99)));
    schema.run("CALL counter_setup('hot', NULL, 99, 0)");
    let of_counters = ("CALL counter_increment('hot')", "SELECT counter_get('hot')", "counter_", "'hot'");
    let of_records = ("CALL slotted_counter_increment(1, 2)", "SELECT slotted_counter_get(1, 2)", "slotted_counter_", "1, 2");
    for (increment, total, prefix, key) in [of_counters, of_records] {
        for hold in [None, Some(HOLD)] {
            // More than all calls of the load.
            repeated(&schema, &format!("CALL {prefix}add({key}, 1000000000)"));
            let restart = if prefix == "counter_" { ", TRUE" } else { "" };
            let ((), counted) = under_calls(cluster, &schema.name, &*paced(increment, PACE), hold, || {
                thread::sleep(Duration::from_millis(500));
                repeated(&schema, &format!("CALL {prefix}reset({key}, 7{restart})"));
                thread::sleep(Duration::from_millis(500));
            });
            let left = totals(cluster, &schema, total);
            assert!(left.iter().all(|one| *one == left[0]), "{increment}, {hold:?}: {left:?}");
            // What was acknowledged before the reset is lost, and what came after it is counted.
            let left = left[0].expect("a total");
            assert!((8..7 + counted.done as i64).contains(&left), "{increment}, {hold:?}: {left}: {counted:?}");
        }
        let (_, counted) = under_calls(cluster, &schema.name, &*paced(increment, PACE), None, || {
            thread::sleep(Duration::from_millis(500));
            repeated(&schema, &format!("CALL {prefix}delete({key})"));
        });
        for (_, error) in counted.failed.keys() {
            let unknown = prefix == "counter_" && error.starts_with("30003 ");
            assert!(unknown || CONFLICTS.iter().any(|conflict| error.starts_with(conflict)), "{counted:?}");
        }
    }
    assert_eq!(totals(cluster, &schema, "SELECT COUNT(*) FROM counters"), [Some(0); 3]);
}

pub fn the_query_of_the_page_compares_the_nodes(cluster: &Cluster) {
    let query = &sql_statements("docs/clusters.md", "Compare the nodes")[0];
    let rows = cluster.nodes().iter().map(|node| node.connect().query_first::<Row, _>(query).expect("the query").expect("a row")).collect::<Vec<_>>();
    let all = |column: &str| rows.iter().map(|row| row.get::<u64, _>(column).expect(column)).collect::<BTreeSet<_>>();
    assert_eq!((all("read_only"), all("remainder").len()), (BTreeSet::from([0]), 3), "{rows:?}");
    let increments = all("increment");
    assert!(increments.len() == 1 && increments.iter().all(|increment| *increment >= 3), "{rows:?}");
}

/// At full speed, the nodes of a group are seconds behind, and a reset fails.
pub fn an_add_of_the_difference_sets_the_total_at_any_load(cluster: &Cluster) {
    let schema = cluster.node(0);
    let schema = schema.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|options| options.slots = Slots::Fixed(99)));
    schema.run("CALL counter_setup('hot', NULL, 99, 0)");
    for (prefix, key) in [("counter_", "'hot'"), ("slotted_counter_", "1, 2")] {
        // More than all calls of the load.
        schema.run(&format!("CALL {prefix}add({key}, 1000000000)"));
        let increment = format!("CALL {prefix}increment({key})");
        let ((), counted) = under_load(cluster, &schema.name, &increment, None, || {
            thread::sleep(Duration::from_secs(2));
            schema.run(&format!("CALL {prefix}add({key}, 7 - {prefix}get({key}))"));
            thread::sleep(Duration::from_millis(500));
        });
        assert!(counted.failed.is_empty(), "{counted:?}");
        let left = totals(cluster, &schema, &format!("SELECT {prefix}get({key})"));
        assert!(left.iter().all(|one| *one == left[0]), "{left:?}");
        let left = left[0].expect("a total");
        assert!((8..7 + counted.done as i64).contains(&left), "{left}: {counted:?}");
    }
}

pub fn a_change_of_all_slots_in_a_transaction_is_one_change(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|options| options.slots = Slots::Fixed(99)));
    schema.run("CALL counter_setup('hot', NULL, 99, 5); CALL slotted_counter_add(1, 2, 3)");
    let state = "SELECT CAST(CONCAT(COUNT(*), 1, SUM(counter), 1, (SELECT SUM(count) FROM slotted_counters)) AS SIGNED) FROM counters";
    let before = totals(cluster, &schema, state);
    let mut connection = schema.connect();
    for call in [
        "CALL counter_resize('hot', 33)",
        "CALL counter_reset('hot', 9, TRUE)",
        "CALL counter_delete('hot')",
        "CALL slotted_counter_reset(1, 2, 9)",
        "CALL slotted_counter_delete(1, 2)",
    ] {
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection.query_drop(call).unwrap_or_else(|error| panic!("{call}: {error}"));
        connection.query_drop("ROLLBACK").expect("a rollback");
        assert_eq!(totals(cluster, &schema, state), before, "{call}");
    }
    schema.run("CALL counter_reset('hot', 9, TRUE); CALL slotted_counter_reset(1, 2, 4)");
    assert_eq!(totals(cluster, &schema, "SELECT counter_get('hot') * 10 + slotted_counter_get(1, 2)"), [Some(94); 3]);
    schema.run("CALL counter_delete('hot'); CALL slotted_counter_delete(1, 2)");
    let rows = "SELECT (SELECT COUNT(*) FROM counters) + (SELECT COUNT(*) FROM slotted_counters)";
    assert_eq!(totals(cluster, &schema, rows), [Some(0); 3]);
}
