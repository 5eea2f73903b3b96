//! Maintenance of counters that all nodes increment.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use super::{Counted, TIMEOUT, applied, connect, is_conflict, package, printed_error, totals, under_load};
use crate::support::{Cluster, Schema, error_of};

/// The time between two calls of a connection. A node of a group that falls behind cannot change the slots of others.
const PAUSE: Duration = Duration::from_millis(60);

/// The number of calls of each kind, of which less than a hundredth may fail.
const ENOUGH: i64 = 400;

/// The number of calls of a routine until one succeeds.
const CALLS: usize = 20;

/// Calls a routine until it succeeds, as a DBA does.
fn repeated(schema: &Schema<'_>, call: &str) {
    let (mut connection, start) = (schema.connect(), Instant::now());
    for calls in 1..=CALLS {
        match connection.query_drop(call) {
            Ok(()) => return eprintln!("{call}: {calls} calls, {:.2} s", start.elapsed().as_secs_f64()),
            Err(error) => assert!(is_conflict(&printed_error(&error)), "{call}: {error}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{call} has failed {CALLS} times");
}

/// One load for all kinds: what is kept is exact, and of what is reset or deleted nothing from before remains.
pub fn maintenance_ends_beside_the_writers_of_all_nodes(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    schema.run(
        "CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB;
         INSERT INTO pages (id) VALUES (1), (2), (3), (4), (5)",
    );
    for words in [
        "counters",
        "slotted_counters --slots 99",
        "slotted_counters --slots 99 --column pages.views --key 'id BIGINT'",
    ] {
        schema.install(&package(&format!("{words} --cluster")));
    }
    schema.run(
        "CALL counter_setup('kept', NULL, 99, 0); CALL counter_setup('reset', NULL, 99, 1000000000);
         CALL counter_setup('deleted', NULL, 99, 1000000000);
         CALL slotted_counter_add(1, 2, 1000000000); CALL slotted_counter_add(1, 3, 1000000000)",
    );
    let calls = [
        "CALL counter_increment('kept')",
        "CALL slotted_counter_increment(1, 1)",
        "CALL pages_views_increment(1 + MOD(CONNECTION_ID(), 5))",
        "CALL counter_increment('reset')",
        "CALL slotted_counter_increment(1, 2)",
        "CALL slotted_counter_increment(1, 3)",
        "CALL counter_increment('deleted')",
    ];
    let rolled_up = AtomicU64::new(0);
    let ((), counted) = under_load(cluster, &schema, &calls, PAUSE, || {
        thread::sleep(Duration::from_millis(500));
        thread::scope(|scope| {
            for node in 0..cluster.nodes().len() {
                let (schema, rolled_up) = (&schema, &rolled_up);
                scope.spawn(move || {
                    let mut connection = connect(cluster, node, schema);
                    for _ in 0..3 {
                        thread::sleep(Duration::from_secs(1));
                        match connection.query_drop("CALL pages_views_rollup(NULL)") {
                            Ok(()) => drop(rolled_up.fetch_add(1, Relaxed)),
                            Err(error) => assert!(is_conflict(&printed_error(&error)), "{error}"),
                        }
                    }
                });
            }
            for call in [
                "CALL counter_resize('kept', 33)",
                "CALL counter_resize('kept', 99)",
                "CALL slotted_counter_compact(1, 1)",
                "CALL counter_reset('reset', 7, TRUE)",
                "CALL slotted_counter_reset(1, 2, 7)",
                "CALL slotted_counter_delete(1, 3)",
                "CALL counter_delete('deleted')",
            ] {
                repeated(&schema, call);
            }
        });
        let start = Instant::now();
        while schema.first::<i64>("SELECT counter_get('kept')") < ENOUGH && start.elapsed() < TIMEOUT {
            thread::sleep(Duration::from_millis(100));
        }
    });
    let done: Vec<i64> = counted.iter().map(|counted| counted.done).collect();
    let [kept, compacted, column, reset, reset_record, deleted_record, _] = done[..] else {
        unreachable!()
    };
    let failed = |counted: &Counted| {
        let failures = counted
            .failed
            .iter()
            .filter(|((_, error), _)| !error.ends_with("unknown counter 'deleted'"));
        for ((_, error), _) in failures.clone() {
            assert!(is_conflict(error), "{error}");
        }
        failures.map(|(_, times)| *times as i64).sum::<i64>()
    };
    let (failed, calls) = (counted.iter().map(failed).sum::<i64>(), done.iter().sum::<i64>());
    assert!(failed * 100 < calls, "{failed} of {calls} calls failed");
    assert!(rolled_up.into_inner() > 0, "no roll-up succeeded");
    let all = |query: &str| {
        let totals = totals(cluster, &schema, query);
        assert!(
            totals.iter().all(|total| *total == totals[0]),
            "{query}: {totals:?}"
        );
        totals[0].expect("a number")
    };
    assert_eq!(all("SELECT counter_get('kept')"), kept);
    assert_eq!(
        all("SELECT COUNT(*) * 1000 + MIN(counter_id) FROM counters WHERE counter_name = 'kept'"),
        99_001
    );
    assert_eq!(all("SELECT slotted_counter_get(1, 1)"), compacted);
    assert_eq!(
        all("SELECT CAST(SUM(total) AS SIGNED) FROM pages_views_totals"),
        column
    );
    // What was acknowledged before is lost, and what came after it is counted.
    assert!((7..7 + reset).contains(&all("SELECT counter_get('reset')")));
    assert!((7..7 + reset_record).contains(&all("SELECT slotted_counter_get(1, 2)")));
    assert!((0..deleted_record).contains(&all("SELECT slotted_counter_get(1, 3)")));
    assert_eq!(
        all("SELECT COUNT(*) FROM counters WHERE counter_name = 'deleted'"),
        0
    );
    // Without a load, each node moves what it has counted, and a compaction on any node leaves one slot.
    for node in 0..cluster.nodes().len() {
        connect(cluster, node, &schema)
            .query_drop("CALL pages_views_rollup(NULL)")
            .expect("a roll-up");
        applied(cluster, &schema);
    }
    assert_eq!(all("SELECT COUNT(*) FROM pages_views WHERE `count` <> 0"), 0);
    assert_eq!(all("SELECT CAST(SUM(views) AS SIGNED) FROM pages"), column);
    schema.run("CALL slotted_counter_compact(1, 1)");
    assert_eq!(
        all("SELECT COUNT(*) * 1000000 + SUM(`count`) FROM slotted_counters WHERE record_id = 1"),
        1_000_000 + compacted
    );
}

pub fn maintenance_in_a_transaction_is_rolled_back_with_it(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    schema.install(&package("counters --cluster"));
    schema.install(&package("slotted_counters --cluster --slots 99"));
    schema.run("CALL counter_setup('hot', NULL, 99, 5); CALL slotted_counter_add(1, 2, 3)");
    let state = "SELECT CAST(COUNT(*) * 10000 + COALESCE(SUM(counter), 0) * 100
                              + (SELECT COALESCE(SUM(`count`), 0) FROM slotted_counters) AS SIGNED) FROM counters";
    assert_eq!(totals(cluster, &schema, state), [Some(990_503); 3]);
    // Counts above slot 33, which a resize moves to the lowest slot of its own node.
    schema.run("UPDATE counters SET counter = 1 WHERE counter_id > 33; UPDATE counters SET counter = -61 WHERE counter_id = 1");
    applied(cluster, &schema);
    let home = "SELECT counter FROM counters WHERE counter_id = 1 + MOD(@@auto_increment_offset - 1, @@auto_increment_increment)";
    for node in 0..cluster.nodes().len() {
        let mut connection = connect(cluster, node, &schema);
        let before: Option<i64> = connection.query_first(home).expect(home);
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection
            .query_drop("CALL counter_resize('hot', 33)")
            .expect("a resize");
        assert_eq!(
            connection.query_first(home).expect(home),
            before.map(|before| before + 66),
            "node {node}"
        );
        connection.query_drop("ROLLBACK").expect("a rollback");
    }
    let mut connection = schema.connect();
    for (call, after) in [
        ("CALL counter_resize('hot', 33)", 330_503),
        ("CALL counter_reset('hot', 9, TRUE)", 990_903),
        ("CALL counter_delete('hot')", 3),
        ("CALL slotted_counter_reset(1, 2, 9)", 990_509),
        ("CALL slotted_counter_delete(1, 2)", 990_500),
    ] {
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection
            .query_drop(call)
            .unwrap_or_else(|error| panic!("{call}: {error}"));
        assert_eq!(connection.query_first(state).expect(state), Some(after), "{call}");
        connection.query_drop("ROLLBACK").expect("a rollback");
        assert_eq!(totals(cluster, &schema, state), [Some(990_503); 3], "{call}");
    }
}

/// A trigger fails as a conflict does.
pub fn a_step_that_conflicts_is_repeated_at_most_20_times(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    schema.install(&package("counters --cluster"));
    schema.install(&package("slotted_counters --cluster --slots 99"));
    schema.run("CALL counter_setup('hot', NULL, 9, 5); CALL slotted_counter_add(1, 2, 3)");
    let mut connection = schema.connect();
    for table in ["counters", "slotted_counters"] {
        let trigger = format!(
            "CREATE TRIGGER {table}_conflict BEFORE UPDATE ON {table} FOR EACH ROW
             IF @conflicts > 0 THEN SET @conflicts = @conflicts - 1; SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213; END IF"
        );
        connection.query_drop(&trigger).expect("a trigger");
    }
    for call in [
        "CALL counter_reset('hot', 9, FALSE)",
        "CALL slotted_counter_reset(1, 2, 9)",
    ] {
        connection.query_drop("SET @conflicts = 20").expect("a variable");
        connection
            .query_drop(call)
            .unwrap_or_else(|error| panic!("{call}: {error}"));
        connection.query_drop("SET @conflicts = 21").expect("a variable");
        assert_eq!(error_of(connection.query_drop(call)).0, 1213, "{call}");
        connection.query_drop("SET @conflicts = 1").expect("a variable");
        connection.query_drop("START TRANSACTION").expect("a transaction");
        assert_eq!(
            error_of(connection.query_drop(call)).0,
            1213,
            "{call} in a transaction"
        );
        connection.query_drop("ROLLBACK").expect("a rollback");
    }
}

pub fn a_counter_has_a_slot_for_each_node(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    schema.install(&package("counters --cluster"));
    let increment: u32 = schema.first("SELECT @@GLOBAL.auto_increment_increment");
    assert!(increment >= 3);
    let fewer = increment - 1;
    let error = error_of(
        schema
            .connect()
            .query_drop(format!("CALL counter_setup('few', NULL, {fewer}, 0)")),
    );
    assert_eq!(
        error,
        (
            30018,
            format!("counter_setup: this cluster needs at least {increment} slots")
        )
    );
    // NULL is enough, whatever the number of nodes.
    schema.run("CALL counter_setup('hot', NULL, NULL, 3)");
    let error = error_of(
        schema
            .connect()
            .query_drop(format!("CALL counter_resize('hot', {fewer})")),
    );
    assert_eq!(
        error,
        (
            30018,
            format!("counter_resize: this cluster needs at least {increment} slots")
        )
    );
    let state = "SELECT COUNT(*) * 10 + SUM(counter) FROM counters";
    assert_eq!(
        totals(cluster, &schema, state),
        [Some(i64::from(increment.max(5)) * 10 + 3); 3]
    );
}
