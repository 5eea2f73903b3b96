//! Clusters of three nodes that all accept writes, Galera and Group Replication, with the SQL of `--cluster`.

mod faults;
mod maintenance;
mod texts;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::Package;
use slotted::script;

use crate::support::{Cluster, Module, Schema, clusters, sql_statements};

pub fn promises(mut module: Module<'_>) {
    // All promises of a cluster one after the other, so that it is started once.
    for cluster in clusters() {
        module
            .on_first_node(cluster, texts::nodes_that_join_have_the_package_and_its_totals)
            .on_cluster(
                cluster,
                texts::the_sql_for_a_server_alone_is_rejected_and_creates_nothing,
            )
            .on_cluster(cluster, texts::the_query_of_the_page_compares_the_nodes)
            .on_cluster(cluster, three_nodes_count_exactly_and_no_call_conflicts)
            .on_cluster(cluster, a_stock_is_sold_once_on_three_nodes)
            .on_cluster(cluster, maintenance::a_counter_has_a_slot_for_each_node)
            .on_cluster(
                cluster,
                maintenance::maintenance_in_a_transaction_is_rolled_back_with_it,
            )
            .on_cluster(
                cluster,
                maintenance::a_step_that_conflicts_is_repeated_at_most_20_times,
            )
            .on_cluster(
                cluster,
                maintenance::maintenance_ends_beside_the_writers_of_all_nodes,
            )
            .on_cluster(cluster, faults::an_operation_counts_once_on_all_nodes)
            .on_cluster(
                cluster,
                faults::nodes_that_fail_return_and_no_acknowledged_count_is_lost,
            );
        if cluster.name.starts_with("mysql") {
            module.on_cluster(
                cluster,
                faults::a_group_with_one_primary_has_the_sql_for_a_server_alone,
            );
        }
    }
}

/// The number of connections of each node.
const SESSIONS: usize = 10;

/// The duration of the transactions.
const HOLD: Duration = Duration::from_millis(5);

/// The errors of a conflict with another node.
const CONFLICTS: [&str; 3] = ["1213 ", "3101 ", "1180 "];

/// The time that a step of a promise takes at most.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A package by its words, such as `counters --cluster`.
fn package(words: &str) -> Package {
    Package::parse(words).expect(words)
}

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

/// Whether a printed error is one of a conflict.
fn is_conflict(error: &str) -> bool {
    CONFLICTS.iter().any(|conflict| error.starts_with(conflict))
}

/// Runs a statement: in a transaction of `hold`, or on its own.
fn count(connection: &mut Conn, statement: &str, hold: Option<Duration>) -> Result<(), (Step, mysql::Error)> {
    let Some(hold) = hold else {
        return connection
            .query_drop(statement)
            .map_err(|error| (Step::Autocommit, error));
    };
    let begun = connection
        .query_drop("START TRANSACTION")
        .and_then(|()| connection.query_drop(statement));
    begun.map_err(|error| (Step::Statement, error))?;
    thread::sleep(hold);
    connection
        .query_drop("COMMIT")
        .map_err(|error| (Step::Commit, error))
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
        stop.store(true, Relaxed);
        let sessions: Vec<_> = sessions.into_iter().map(|session| session.join()).collect();
        let result = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (
            result,
            sessions
                .into_iter()
                .map(|session| session.expect("a session"))
                .collect(),
        )
    })
}

/// What the sessions of a load have done with one statement.
#[derive(Debug, Default)]
struct Counted {
    done: i64,
    failed: Failures,
}

/// Runs `work` while the sessions of all nodes run some statements in turn, with a pause after each. Every other session runs them in
/// transactions. Returns what came of each statement.
fn under_load<T>(
    cluster: &Cluster,
    schema: &Schema<'_>,
    statements: &[&str],
    pause: Duration,
    work: impl FnOnce() -> T,
) -> (T, Vec<Counted>) {
    // A node can still have to create what the statements need.
    applied(cluster, schema);
    let session = |node: usize, number: usize, stop: &AtomicBool| {
        let mut connection = connect(cluster, node, schema);
        let hold = (number % 2 == 1).then_some(HOLD);
        let mut counted: Vec<Counted> = statements.iter().map(|_| Counted::default()).collect();
        for at in (0..statements.len()).cycle().skip(number) {
            if stop.load(Relaxed) {
                break;
            }
            match count(&mut connection, statements[at], hold) {
                Ok(()) => counted[at].done += 1,
                Err((step, error)) => {
                    *counted[at]
                        .failed
                        .entry((step, printed_error(&error)))
                        .or_default() += 1;
                    connection.query_drop("ROLLBACK").expect("a rollback");
                }
            }
            thread::sleep(pause);
        }
        counted
    };
    let (result, sessions) = with_sessions(cluster, session, work);
    // A node that drops the database before it has applied the last changes of the others leaves the group.
    applied(cluster, schema);
    let mut all: Vec<Counted> = statements.iter().map(|_| Counted::default()).collect();
    for (at, counted) in sessions
        .into_iter()
        .flat_map(|session| session.into_iter().enumerate())
    {
        all[at].done += counted.done;
        for (failure, times) in counted.failed {
            *all[at].failed.entry(failure).or_default() += times;
        }
    }
    for (statement, counted) in statements.iter().zip(&all) {
        eprintln!(
            "{}: {statement}: {} calls, failed {:?}",
            schema.server.version, counted.done, counted.failed
        );
    }
    (result, all)
}

/// A connection to a node.
fn connect(cluster: &Cluster, node: usize, schema: &Schema<'_>) -> Conn {
    Conn::new(cluster.node(node).options().db_name(Some(&schema.name))).expect("a connection")
}

/// Waits until all nodes have applied what was committed.
fn applied(cluster: &Cluster, schema: &Schema<'_>) {
    totals(cluster, schema, "SELECT 1");
}

/// What a query returns on each node after this node has applied what was committed.
fn totals(cluster: &Cluster, schema: &Schema<'_>, query: &str) -> Vec<Option<i64>> {
    let total = |node| {
        cluster
            .reader(node, &schema.name)
            .query_first(query)
            .expect(query)
    };
    (0..cluster.nodes().len()).map(total).collect()
}

/// A statement of queries.sql with the values of its parameters.
fn plain(schema: &Schema<'_>, package: &Package, name: &str, values: &[(&str, &str)]) -> String {
    let queries = script::queries(&schema.file(package, "queries.sql"));
    let query = queries.into_iter().find(|query| query.name == name).expect(name);
    let value = |parameter: &String| {
        values
            .iter()
            .find(|(name, _)| name == parameter)
            .expect(parameter)
            .1
    };
    query
        .parameters
        .iter()
        .fold(query.sql, |sql, parameter| sql.replacen('?', value(parameter), 1))
}

/// At full speed, with a total that the recipe of the page sets meanwhile.
fn three_nodes_count_exactly_and_no_call_conflicts(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    let named = package("counters --cluster");
    let records = package("slotted_counters --cluster --slots 99");
    let fixed = package("counters --cluster --slots 99 --table fixed --prefix fixed_");
    for package in [&named, &records, &fixed, &package("bounded_counters --cluster")] {
        schema.install(package);
    }
    schema.run(
        "CALL counter_setup('downloads', NULL, 99, 0); CALL counter_setup('plain', NULL, 99, 0);
         CALL fixed_setup('hot', NULL, NULL, 0); CALL bounded_counter_setup('stock', NULL, 99, 0)",
    );
    let plain_named = plain(
        &schema,
        &named,
        "increment",
        &[("counter_name", "'plain'"), ("slots", "99")],
    );
    let plain_record = plain(
        &schema,
        &records,
        "increment",
        &[("record_type", "1"), ("record_id", "3")],
    );
    let all = [
        (
            "CALL counter_increment('downloads')",
            "SELECT counter_get('downloads')",
        ),
        (&plain_named, "SELECT counter_get('plain')"),
        ("CALL fixed_increment('hot')", "SELECT fixed_get('hot')"),
        (
            "CALL slotted_counter_increment(1, 2)",
            "SELECT slotted_counter_get(1, 2)",
        ),
        (&plain_record, "SELECT slotted_counter_get(1, 3)"),
        (
            "CALL bounded_counter_add('stock', 1)",
            "SELECT bounded_counter_get('stock')",
        ),
    ];
    let ((), counted) = under_load(
        cluster,
        &schema,
        &all.map(|(call, _)| call),
        Duration::ZERO,
        || {
            thread::sleep(Duration::from_secs(1));
            // At this speed, a reset conflicts. The recipe changes one slot of its node.
            let mut connection = schema.connect();
            for statement in sql_statements("docs/clusters.md", "Maintenance") {
                connection.query_drop(&statement).expect(&statement);
            }
            let before: Option<i64> = connection.query_first("SELECT @total").expect("a total");
            schema.run(&format!(
                "CALL counter_add('downloads', {})",
                before.expect("a total")
            ));
            thread::sleep(Duration::from_secs(1));
        },
    );
    for ((call, total), counted) in all.iter().zip(&counted) {
        assert!(
            counted.failed.is_empty() && counted.done > 0,
            "{call}: {counted:?}"
        );
        assert_eq!(totals(cluster, &schema, total), [Some(counted.done); 3], "{call}");
    }
}

/// The takes of all nodes want slot 1, where the stock is: they conflict, are repeated, and sell no piece twice.
fn a_stock_is_sold_once_on_three_nodes(cluster: &Cluster) {
    const PIECES: u64 = 150;
    let first = cluster.node(0);
    let schema = first.schema();
    schema.install(&package("bounded_counters --cluster"));
    schema.run(&format!("CALL bounded_counter_setup('seats', NULL, 9, {PIECES})"));
    applied(cluster, &schema);
    let [sold, repeated] = [const { AtomicU64::new(0) }; 2];
    let start = Instant::now();
    with_sessions(
        cluster,
        |node, number, _| {
            let mut connection = connect(cluster, node, &schema);
            if number > 2 {
                return;
            }
            loop {
                assert!(start.elapsed() < TIMEOUT, "{sold:?} of {PIECES} are sold");
                match connection.query_drop("CALL bounded_counter_take('seats', 1)") {
                    Ok(()) => sold.fetch_add(1, Relaxed),
                    Err(mysql::Error::MySqlError(error)) if error.code == 30016 => break,
                    Err(error) => {
                        assert!(is_conflict(&printed_error(&error)), "{error}");
                        thread::sleep(Duration::from_millis(5));
                        repeated.fetch_add(1, Relaxed)
                    }
                };
            }
        },
        || (),
    );
    eprintln!(
        "{}: {sold:?} sold, {repeated:?} conflicts, {:?}",
        first.version,
        start.elapsed()
    );
    assert_eq!(
        totals(cluster, &schema, "SELECT bounded_counter_get('seats')"),
        [Some(0); 3]
    );
    assert_eq!(sold.into_inner(), PIECES);
}
