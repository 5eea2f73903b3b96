//! Clusters of three nodes that all accept writes: Galera and Group Replication.

mod faults;
mod maintenance;
mod settings;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::Slots;

use crate::queries::Queries;
use crate::support::{Cluster, Module, clusters, keyed, package};

pub fn promises(mut module: Module<'_>) {
    // All promises of a cluster one after the other, so that it is started once.
    for cluster in clusters() {
        module
            // The first one, because the node gets all that the others have written.
            .on_cluster(cluster, a_node_that_joins_without_data_has_the_totals)
            .on_cluster(cluster, three_nodes_count_without_conflicts)
            .on_cluster(cluster, maintenance::a_resize_ends_under_load_and_keeps_the_counts)
            .on_cluster(cluster, maintenance::compactions_end_under_load_and_keep_the_counts)
            .on_cluster(cluster, maintenance::rollups_on_each_node_keep_the_counts)
            .on_cluster(cluster, maintenance::resets_and_deletes_end_under_load)
            .on_cluster(cluster, maintenance::the_query_of_the_page_compares_the_nodes)
            .on_cluster(cluster, maintenance::an_add_of_the_difference_sets_the_total_at_any_load)
            .on_cluster(cluster, maintenance::a_change_of_all_slots_in_a_transaction_is_one_change)
            .on_cluster(cluster, faults::a_read_that_waits_has_the_counts_of_all_nodes)
            .on_cluster(cluster, faults::an_operation_counts_once_on_all_nodes)
            .on_cluster(cluster, faults::a_replica_of_a_node_has_the_same_rows)
            .on_cluster(cluster, faults::a_killed_node_returns_and_no_acknowledged_count_is_lost)
            .on_cluster(cluster, faults::a_stopped_node_returns);
        if cluster.name.starts_with("mysql") {
            // Three nodes of Group Replication fall behind beside other promises, and more calls conflict.
            module.on_cluster(cluster, faults::a_new_primary_counts).last();
        }
        module.on_cluster(cluster, maintenance::a_resize_ends_at_full_speed);
        // The tool asks both versions of Galera the same.
        if cluster.name != "mariadb-10.11" {
            module
                .on_cluster(cluster, settings::sessions_of_a_single_primary_group_count_in_the_slots_of_their_node);
        }
    }
}

/// The number of connections of each node.
const SESSIONS: usize = 10;

/// The duration of a load that must not fail.
const LONG: Duration = Duration::from_secs(1);

/// The duration of a load that fails at once.
const SHORT: Duration = Duration::from_secs(1);

/// The time between two calls of a connection.
const PACE: Duration = Duration::from_millis(20);

/// The duration of the transactions.
const HOLD: Duration = Duration::from_millis(5);

/// What one connection does again and again.
type Call<'a> = dyn Fn(&mut Conn) -> mysql::Result<()> + Sync + 'a;

/// The step of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Connect,
    /// A statement that commits on its own.
    Autocommit,
    /// A statement in a transaction, before COMMIT.
    Statement,
    Commit,
}

/// The number of calls that failed, by step and by error.
type Failures = BTreeMap<(Step, String), u64>;

/// The number, the SQLSTATE and the message of an error.
fn printed_error(error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(error) => format!("{} {} {}", error.code, error.state, error.message),
        other => other.to_string(),
    }
}

/// What the connections of a load have done.
#[derive(Debug, Default)]
struct Counted {
    done: u64,
    failed: Failures,
}

/// One call: a transaction of `hold`, or a statement that commits on its own.
fn count(connection: &mut Conn, call: &Call<'_>, hold: Option<Duration>) -> Result<(), (Step, mysql::Error)> {
    let Some(hold) = hold else {
        return call(connection).map_err(|error| (Step::Autocommit, error));
    };
    let statements = |connection: &mut Conn| {
        connection.query_drop("START TRANSACTION")?;
        call(connection)
    };
    statements(connection).map_err(|error| (Step::Statement, error))?;
    thread::sleep(hold);
    connection.query_drop("COMMIT").map_err(|error| (Step::Commit, error))
}

/// Runs `work` while [`SESSIONS`] threads for each node run `session` with the number of the node and of the thread, and a
/// flag that ends them.
fn with_sessions<S: Send, T>(
    cluster: &Cluster,
    session: impl Fn(usize, usize, &AtomicBool) -> S + Sync,
    work: impl FnOnce() -> T,
) -> (T, Vec<S>) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut sessions = Vec::new();
        for node in 0..cluster.nodes().len() {
            for number in 0..SESSIONS {
                let (session, stop) = (&session, &stop);
                sessions.push(scope.spawn(move || session(node, number, stop)));
            }
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        let sessions: Vec<_> = sessions.into_iter().map(|session| session.join()).collect();
        let result = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (result, sessions.into_iter().map(|session| session.expect("a session")).collect())
    })
}

/// Runs `work` while [`SESSIONS`] connections of each node make a call. They fail if a connection is lost.
fn under_calls<T>(
    cluster: &Cluster,
    database: &str,
    call: &Call<'_>,
    hold: Option<Duration>,
    work: impl FnOnce() -> T,
) -> (T, Counted) {
    // A node can still have to create what the calls need.
    (0..cluster.nodes().len()).for_each(|node| drop(cluster.reader(node, database)));
    let session = |node: usize, _: usize, stop: &AtomicBool| {
        let mut connection = Conn::new(cluster.node(node).options().db_name(Some(database))).expect("a connection");
        let mut counted = Counted::default();
        while !stop.load(Ordering::Relaxed) {
            match count(&mut connection, call, hold) {
                Ok(()) => counted.done += 1,
                Err((step, error)) => {
                    *counted.failed.entry((step, printed_error(&error))).or_default() += 1;
                    connection.query_drop("ROLLBACK").expect("a rollback");
                }
            }
        }
        counted
    };
    let (result, sessions) = with_sessions(cluster, session, work);
    // A node that drops the database before it has applied the last changes of the others leaves the group.
    (0..cluster.nodes().len()).for_each(|node| drop(cluster.reader(node, database)));
    let mut all = Counted::default();
    for counted in sessions {
        all.done += counted.done;
        for (failure, times) in counted.failed {
            *all.failed.entry(failure).or_default() += times;
        }
    }
    (result, all)
}

/// Runs `work` while the connections of all nodes run a statement.
fn under_load<T>(
    cluster: &Cluster,
    database: &str,
    statement: &str,
    hold: Option<Duration>,
    work: impl FnOnce() -> T,
) -> (T, Counted) {
    under_calls(cluster, database, &|connection| connection.query_drop(statement), hold, work)
}

fn three_nodes_count_without_conflicts(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    let named = package(|_| {});
    let records = keyed(|options| options.slots = Slots::Fixed(99));
    schema.install(&named);
    schema.install(&records);
    schema.run(
        "CALL counter_setup('hot', NULL, 99, 0); CALL counter_setup('plain', NULL, 99, 0);
         CREATE TABLE pages (id INT PRIMARY KEY, hits BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO pages VALUES (1, 0)",
    );
    let fixed = first.schema();
    fixed.install(&package(|options| options.slots = Slots::Fixed(99)));
    fixed.run("CALL counter_setup('hot', NULL, NULL, 0)");
    let [of_names, of_records] = [named, records].map(|package| Queries::of(&package));
    let slots = of_names.slots(&mut schema.connect(), "plain").expect("the counter exists");
    let plain = |connection: &mut Conn| of_names.count_on_nodes(connection, "plain", slots).map(|exists| assert!(exists));
    let procedure = |connection: &mut Conn| connection.query_drop("CALL counter_increment('hot')");
    let loads: [(&str, &str, &Call<'_>, &str, bool); 6] = [
        ("counters", &schema.name, &procedure, "SELECT counter_get('hot')", false),
        ("queries.sql of counters", &schema.name, &plain, "SELECT counter_get('plain')", false),
        ("counters --slots 99", &fixed.name, &procedure, "SELECT counter_get('hot')", false),
        (
            "slotted_counters",
            &schema.name,
            &|connection| connection.query_drop("CALL slotted_counter_increment(1, 2)"),
            "SELECT slotted_counter_get(1, 2)",
            false,
        ),
        (
            "queries.sql of slotted_counters",
            &schema.name,
            &|connection| of_records.run(connection, "increment_on_nodes", &[1, 3]),
            "SELECT slotted_counter_get(1, 3)",
            false,
        ),
        (
            "a single row",
            &schema.name,
            &|connection| connection.query_drop("UPDATE pages SET hits = hits + 1 WHERE id = 1"),
            "SELECT hits FROM pages",
            true,
        ),
    ];
    for (what, database, call, total, fails) in loads {
        let mut done = 0;
        // So that no node is far behind: the conflicts do not depend on the speed.
        let call: &Call<'_> = &|connection| {
            thread::sleep(PACE);
            call(connection)
        };
        for hold in [None, Some(HOLD)] {
            let duration = if fails { SHORT } else { LONG };
            let ((), counted) = under_calls(cluster, database, call, hold, || thread::sleep(duration));
            eprintln!("{}, transactions of {hold:?}: {what}: {counted:?}", first.version);
            assert_eq!(!counted.failed.is_empty(), fails, "{what}, {hold:?}: {counted:?}");
            assert!(counted.done > 0, "{what}, {hold:?}: {counted:?}");
            done += counted.done;
        }
        for node in 0..cluster.nodes().len() {
            let counted: Option<u64> = cluster.reader(node, database).query_first(total).expect(total);
            assert_eq!(counted, Some(done), "{what}: {total} on node {node}");
        }
    }
}

fn a_node_that_joins_without_data_has_the_totals(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('hot', NULL, 99, 0)");
    cluster.stop_node(2).expect("the others go on");
    schema.run("CALL counter_add('hot', 3)");
    cluster.start_node(2).expect("the node joins");
    let total = |node| cluster.reader(node, &schema.name).query_first("SELECT counter_get('hot')").expect("a total");
    assert_eq!([0, 1, 2].map(total), [Some(3); 3]);
}
