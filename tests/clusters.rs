//! Clusters of three nodes that all accept writes: Galera and Group Replication.

mod bench;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;
use serde_json::Value;
use slotted::package::Slots;

use crate::advise::{printed, slotted};
use crate::support::{Cluster, Module, clusters, error_of, keyed, package};

pub fn promises(mut module: Module<'_>) {
    // All promises of a cluster one after the other, so that it is started once.
    for cluster in clusters() {
        module
            .on_cluster(cluster, three_nodes_count_without_conflicts)
            .on_cluster(cluster, advise_with_one_url_says_that_it_sees_one_node)
            .on_cluster(cluster, bench::bench_counts_failures_by_code_and_proves_the_totals_on_every_node)
            .on_cluster(cluster, bench::bench_reads_the_total_of_every_node)
            .on_cluster(cluster, bench::bench_draws_rates_and_rejected_calls_over_the_nodes)
            .on_cluster(cluster, bench::bench_with_one_url_measures_one_node)
            .on_cluster(cluster, bench::bench_needs_no_other_privileges_on_a_cluster)
            .on_cluster(cluster, bench::bench_rejects_urls_that_are_not_different_nodes)
            .on_cluster(cluster, bench::bench_starts_a_private_cluster)
            .on_cluster(cluster, a_node_that_joins_again_has_the_totals);
    }
}

/// The number of connections of each node.
const SESSIONS: usize = 10;

/// The duration of a load that must not fail.
const LONG: Duration = Duration::from_secs(5);

/// The duration of a load that fails at once.
const SHORT: Duration = Duration::from_secs(1);

/// The duration of the transactions.
const HOLD: Duration = Duration::from_millis(5);

/// What the connections of a load have done.
#[derive(Debug, Default)]
struct Counted {
    done: u64,
    /// The number of calls that failed with an error.
    failed: BTreeMap<(u16, String), u64>,
}

/// One call: a transaction of `hold`, or a statement that commits on its own.
fn count(connection: &mut Conn, statement: &str, hold: Option<Duration>) -> mysql::Result<()> {
    let Some(hold) = hold else {
        return connection.query_drop(statement);
    };
    connection.query_drop("START TRANSACTION")?;
    connection.query_drop(statement)?;
    thread::sleep(hold);
    connection.query_drop("COMMIT")
}

/// Runs `work` while the connections of all nodes run a statement.
fn under_load<T>(
    cluster: &Cluster,
    database: &str,
    statement: &str,
    hold: Option<Duration>,
    work: impl FnOnce() -> T,
) -> (T, Counted) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut sessions = Vec::new();
        for node in cluster.nodes() {
            for _ in 0..SESSIONS {
                let options = node.options().db_name(Some(database));
                let stop = &stop;
                sessions.push(scope.spawn(move || {
                    let mut connection = Conn::new(options).expect("a connection");
                    let mut counted = Counted::default();
                    while !stop.load(Ordering::Relaxed) {
                        match count(&mut connection, statement, hold) {
                            Ok(()) => counted.done += 1,
                            Err(error) => {
                                *counted.failed.entry(error_of::<()>(Err(error))).or_default() += 1;
                                connection.query_drop("ROLLBACK").expect("a rollback");
                            }
                        }
                    }
                    counted
                }));
            }
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        let mut all = Counted::default();
        for session in sessions {
            let counted = session.join().expect("a connection");
            all.done += counted.done;
            for (error, times) in counted.failed {
                *all.failed.entry(error).or_default() += times;
            }
        }
        (result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), all)
    })
}

fn three_nodes_count_without_conflicts(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|options| options.slots = Slots::Fixed(99)));
    schema.run(
        "CALL counter_setup('hot', NULL, 99, 0);
         CREATE TABLE pages (id INT PRIMARY KEY, hits BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO pages VALUES (1, 0)",
    );
    for (statement, total, fails) in [
        ("CALL counter_increment('hot')", "SELECT counter_get('hot')", false),
        ("CALL slotted_counter_increment(1, 2)", "SELECT slotted_counter_get(1, 2)", false),
        ("UPDATE pages SET hits = hits + 1 WHERE id = 1", "SELECT hits FROM pages", true),
    ] {
        let mut done = 0;
        for hold in [None, Some(HOLD)] {
            let duration = if fails { SHORT } else { LONG };
            let ((), counted) = under_load(cluster, &schema.name, statement, hold, || thread::sleep(duration));
            eprintln!("{}, transactions of {hold:?}: {statement}: {counted:?}", first.version);
            assert_eq!(!counted.failed.is_empty(), fails, "{statement}, {hold:?}: {counted:?}");
            assert!(counted.done > 0, "{statement}, {hold:?}: {counted:?}");
            done += counted.done;
        }
        for node in 0..cluster.nodes().len() {
            let counted: Option<u64> = cluster.reader(node, &schema.name).query_first(total).expect(total);
            assert_eq!(counted, Some(done), "{total} on node {node}");
        }
    }
}

fn advise_with_one_url_says_that_it_sees_one_node(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    schema.install(&package(|_| {}));
    // auto_increment_increment is 3 on Galera and 7 in Group Replication, so a node has two slots or one.
    schema.run("CALL counter_setup('hot', NULL, 7, 0)");
    let nodes = cluster.nodes();
    let urls: Vec<_> = nodes.iter().flat_map(|node| ["--url".to_owned(), node.url()]).collect();
    let advise = |urls: &[String]| {
        let urls: Vec<_> = urls.iter().map(String::as_str).collect();
        let output = slotted(&[&["advise", "--seconds", "2", "--json"], urls.as_slice()].concat());
        let report = serde_json::from_slice(&output.stdout);
        let report: Value = report.unwrap_or_else(|error| panic!("{error}: {}", printed(&output)));
        (output.status.code(), report)
    };
    let call = "CALL counter_increment('hot')";
    let hold = Some(Duration::from_millis(20));
    let ((one, all), _) = under_load(cluster, &schema.name, call, hold, || {
        thread::sleep(Duration::from_millis(500));
        (advise(&urls[..2]), advise(&urls))
    });

    let (code, report) = one;
    assert_eq!(code, Some(2), "{report:#}");
    let unseen = "the connections and the lock waits of 2 of the 3 nodes of the cluster";
    assert_eq!(report["cannot_see"][0]["what"], unseen, "{report:#}");
    assert_eq!(report["watched"]["connected"], SESSIONS, "{report:#}");

    let (code, report) = all;
    assert_eq!(code, Some(1), "{report:#}");
    assert!(report["cannot_see"].as_array().is_some_and(Vec::is_empty), "{report:#}");
    assert_eq!(report["watched"]["connected"], nodes.len() * SESSIONS, "{report:#}");
    let hot = &report["advice"][0];
    assert_eq!(hot["subject"], format!("{}.counters: hot", schema.name), "{report:#}");
    // The first prime after 4 slots for each of 30 connections.
    assert_eq!(hot["verdict"]["slots"], 127, "{report:#}");
}

fn a_node_that_joins_again_has_the_totals(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('hot', NULL, 99, 0)");
    let total = |node| {
        let mut reader = cluster.reader(node, &schema.name);
        reader.query_first::<u64, _>("SELECT counter_get('hot')").expect("a total")
    };
    cluster.kill_node(2).expect("the others go on");
    schema.run("CALL counter_add('hot', 3)");
    cluster.start_node(2).expect("the node joins");
    assert_eq!(total(2), Some(3));
    cluster.stop_node(1).expect("the others go on");
    schema.run("CALL counter_add('hot', 4)");
    cluster.start_node(1).expect("the node joins");
    assert_eq!([0, 1, 2].map(total), [Some(7); 3]);
}
