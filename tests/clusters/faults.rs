//! Nodes that are killed, stopped or replaced while the connections of all nodes count.
//!
//! A call is acknowledged if it returns without an error. After some errors, nobody but the server knows whether it has
//! counted. After all others it has not, and the load repeats it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use super::{
    Failures, HOLD, Step, TIMEOUT, applied, connect, count, package, printed_error, texts, totals,
    under_load, with_sessions,
};
use crate::once;
use crate::support::{Cluster, Schema, Server};

/// The time between two calls of a connection. A node that returns has to apply the calls of the others faster than they come.
const PAUSE: Duration = Duration::from_millis(50);

/// What an application does after an error.
enum Then {
    Repeat,
    RepeatOnAnotherNode,
    /// The call can have counted. Only an application that can accept the difference repeats it.
    NobodyKnows,
}

/// What an application does after an error of a call of which `step` has failed.
fn after(step: Step, error: &mysql::Error, galera: bool) -> Then {
    match (error, step) {
        // Conflicts. 1180 is one in Group Replication. A node of Galera returns it if it has lost the others.
        (mysql::Error::MySqlError(error), _) if [1020, 1205, 1213, 3101].contains(&error.code) => {
            Then::Repeat
        }
        (mysql::Error::MySqlError(error), _) if error.code == 1180 && !galera => Then::Repeat,
        // The node accepts no writes.
        (mysql::Error::MySqlError(error), _) if [1047, 1290].contains(&error.code) => {
            Then::RepeatOnAnotherNode
        }
        // Any other error, such as a lost connection, before the commit.
        (_, Step::Connect | Step::Statement) => Then::RepeatOnAnotherNode,
        _ => Then::NobodyKnows,
    }
}

/// The call of the loads.
const INCREMENT: &str = "CALL counter_increment('hot')";

/// What the connections of a load have done.
struct Load {
    galera: bool,
    nodes: Vec<OptsBuilder>,
    /// By node.
    acknowledged: Vec<AtomicU64>,
    unknown: AtomicU64,
    failed: Mutex<Failures>,
}

impl Load {
    /// Creates the counter, and waits until all nodes have it.
    fn of(cluster: &Cluster, schema: &Schema<'_>, words: &str) -> Self {
        schema.install(&package(words));
        schema.run("CALL counter_setup('hot', NULL, 99, 0)");
        (0..cluster.nodes().len()).for_each(|node| assert_eq!(total(cluster, node, schema), 0));
        let options = |node: &Arc<Server>| {
            node.options()
                .db_name(Some(&schema.name))
                .read_timeout(Some(TIMEOUT))
        };
        let nodes: Vec<_> = cluster.nodes().iter().map(options).collect();
        Self {
            galera: cluster.is_galera(),
            acknowledged: nodes.iter().map(|_| AtomicU64::new(0)).collect(),
            unknown: AtomicU64::new(0),
            failed: Mutex::default(),
            nodes,
        }
    }

    /// Runs `work` while the connections of all nodes count. Every other one counts in transactions.
    fn during<T>(&self, cluster: &Cluster, work: impl FnOnce() -> T) -> T {
        let session = |node: usize, number: usize, stop: &AtomicBool| {
            let hold = (number % 2 == 1).then_some(HOLD);
            let mut application = Application {
                load: self,
                node,
                connection: None,
            };
            while !stop.load(Relaxed) {
                application.count(hold, stop);
                thread::sleep(PAUSE);
            }
        };
        with_sessions(cluster, session, work).0
    }

    fn note(&self, step: Step, error: &mysql::Error) {
        let error = printed_error(error);
        assert!(!error.contains(" 45000 "), "an error of the package: {error}");
        *self
            .failed
            .lock()
            .expect("the failures")
            .entry((step, error))
            .or_default() += 1;
    }

    /// Waits until a node has counted for a second more.
    fn wait_for_counts(&self, node: usize) {
        let (before, start) = (self.acknowledged[node].load(Relaxed), Instant::now());
        thread::sleep(Duration::from_secs(1));
        while self.acknowledged[node].load(Relaxed) == before {
            assert!(
                start.elapsed() < TIMEOUT,
                "node {node} does not count: {:?}",
                self.failed
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asserts that no acknowledged count is lost, and that none that is rolled back has counted. Returns the total.
    fn check(&self, what: &str, cluster: &Cluster, schema: &Schema<'_>) {
        let totals: Vec<u64> = (0..self.nodes.len())
            .map(|node| total(cluster, node, schema))
            .collect();
        let acknowledged: Vec<u64> = self
            .acknowledged
            .iter()
            .map(|counts| counts.load(Relaxed))
            .collect();
        let unknown = self.unknown.load(Relaxed);
        let failed = self.failed.lock().expect("the failures");
        let version = schema.server.version;
        eprintln!(
            "{version}, {what}: acknowledged {acknowledged:?}, unknown {unknown}, totals {totals:?}, {failed:?}"
        );
        let acknowledged: u64 = acknowledged.iter().sum();
        assert!(
            (acknowledged..=acknowledged + unknown).contains(&totals[0]),
            "{what}"
        );
        assert!(totals.iter().all(|total| *total == totals[0]), "{what}");
    }
}

/// A connection of an application, which counts on one node as long as it can.
struct Application<'a> {
    load: &'a Load,
    node: usize,
    connection: Option<Conn>,
}

impl Application<'_> {
    /// Counts once: repeats the transaction after all errors after which it has certainly not counted.
    fn count(&mut self, hold: Option<Duration>, stop: &AtomicBool) {
        while !stop.load(Relaxed) {
            let Err((step, error)) = self.attempt(hold) else {
                self.load.acknowledged[self.node].fetch_add(1, Relaxed);
                return;
            };
            self.load.note(step, &error);
            match after(step, &error, self.load.galera) {
                Then::Repeat => self.roll_back(),
                Then::RepeatOnAnotherNode => self.change_node(),
                Then::NobodyKnows => {
                    self.load.unknown.fetch_add(1, Relaxed);
                    return self.change_node();
                }
            }
        }
    }

    fn attempt(&mut self, hold: Option<Duration>) -> Result<(), (Step, mysql::Error)> {
        if self.connection.is_none() {
            let connection =
                Conn::new(self.load.nodes[self.node].clone()).map_err(|error| (Step::Connect, error))?;
            self.connection = Some(connection);
        }
        count(self.connection.as_mut().expect("a connection"), INCREMENT, hold)
    }

    /// After a lock wait timeout, the transaction is still active.
    fn roll_back(&mut self) {
        let connection = self.connection.as_mut().expect("a connection");
        if connection.query_drop("ROLLBACK").is_err() {
            self.change_node();
        }
    }

    fn change_node(&mut self) {
        self.connection = None;
        self.node = (self.node + 1) % self.load.nodes.len();
        thread::sleep(Duration::from_millis(20));
    }
}

/// The total on a node when it has applied what was committed on any node, and all calls of the load have ended: a node
/// executes a call whose client is gone.
fn total(cluster: &Cluster, node: usize, schema: &Schema<'_>) -> u64 {
    let start = Instant::now();
    let mut connection = cluster.node(node).connect();
    let sessions = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = ?";
    while connection
        .exec_first::<u64, _, _>(sessions, (&schema.name,))
        .expect(sessions)
        != Some(0)
    {
        assert!(
            start.elapsed() < TIMEOUT,
            "the sessions of node {node} do not end"
        );
        thread::sleep(Duration::from_millis(20));
    }
    let total = cluster
        .reader(node, &schema.name)
        .query_first("SELECT counter_get('hot')");
    total.expect("a total").expect("the counter exists")
}

/// One is killed, as by a power failure, and starts again. Then another is stopped, as by a failure of the network, and continues.
pub fn nodes_that_fail_return_and_no_acknowledged_count_is_lost(cluster: &Cluster) {
    const KILLED: usize = 1;
    const STOPPED: usize = 2;
    let first = cluster.node(0);
    let schema = first.schema();
    let load = Load::of(cluster, &schema, "counters --cluster");
    load.during(cluster, || {
        load.wait_for_counts(KILLED);
        let killed = cluster.crash_node(KILLED).expect("the others go on");
        load.wait_for_counts(0);
        cluster.return_node(KILLED, killed).expect("the node joins");
        load.wait_for_counts(STOPPED);
        cluster.freeze_node(STOPPED).expect("the others go on");
        load.wait_for_counts(0);
        cluster.thaw_node(STOPPED).expect("the node joins");
    });
    load.check("a killed and a stopped node", cluster, &schema);
    load.during(cluster, || {
        [KILLED, STOPPED]
            .into_iter()
            .for_each(|node| load.wait_for_counts(node))
    });
    load.check("after their return", cluster, &schema);
}

/// The nodes of Group Replication that are primaries.
fn primaries(cluster: &Cluster, nodes: &[usize]) -> Vec<usize> {
    let role = "SELECT MEMBER_ROLE = 'PRIMARY' FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid";
    let is_primary =
        |node: &usize| cluster.node(*node).connect().query_first(role).expect(role) == Some(true);
    nodes.iter().copied().filter(is_primary).collect()
}

/// Another node replaces the primary. When all are primaries again, this SQL conflicts, status says so, and sessions that are older than
/// the change count in the slots of their node with the SQL of --cluster.
pub fn a_group_with_one_primary_has_the_sql_for_a_server_alone(cluster: &Cluster) {
    let (first, last) = (cluster.node(0), cluster.node(2));
    let schema = first.schema();
    schema.install(&package("counters --table nodes --prefix node_ --cluster"));
    schema.run("CALL node_setup('old', NULL, 21, 0)");
    let switch = |to: &str| {
        let switch = format!("SELECT group_replication_switch_to_{to}");
        last.connect().query_drop(&switch).expect(&switch);
    };
    let uuid: Option<String> = first
        .connect()
        .query_first("SELECT @@server_uuid")
        .expect("a UUID");
    switch(&format!("single_primary_mode('{}')", uuid.expect("a UUID")));
    assert_eq!(primaries(cluster, &[0, 1, 2]), [0]);
    let load = Load::of(cluster, &schema, "counters");
    // Not in the database yet: the load waits until the sessions of the database have ended.
    let mut old = cluster.node(1).connect();
    load.during(cluster, || {
        load.wait_for_counts(0);
        let killed = cluster.crash_node(0).expect("the others go on");
        let new = primaries(cluster, &[1, 2]);
        assert_eq!(new.len(), 1);
        load.wait_for_counts(new[0]);
        cluster.return_node(0, killed).expect("the node joins");
        assert_eq!(primaries(cluster, &[0, 1, 2]), new);
        load.wait_for_counts(new[0]);
    });
    load.check("a new primary", cluster, &schema);
    let (success, printed) = texts::tool(&schema, "status");
    assert!(success, "{printed}");
    switch("multi_primary_mode()");
    assert_eq!(primaries(cluster, &[0, 1, 2]), [0, 1, 2]);
    let (success, printed) = texts::tool(&schema, "status");
    assert!(!success && printed.contains("counters --cluster"), "{printed}");
    // Two slots, so that connections of several nodes certainly select the same one.
    schema.run("CALL counter_resize('hot', 2)");
    let conflicts = (0..10).any(|_| {
        let ((), counted) = under_load(cluster, &schema, &[INCREMENT], Duration::ZERO, || {
            thread::sleep(Duration::from_secs(1))
        });
        !counted[0].failed.is_empty()
    });
    assert!(conflicts);
    let settings = "SELECT @@SESSION.auto_increment_increment * 10 + @@GLOBAL.auto_increment_increment";
    assert_eq!(old.query_first(settings).expect(settings), Some(17));
    old.select_db(&schema.name).expect("the database");
    old.query_drop("CALL node_increment('old')")
        .expect("an increment");
    let of_node = "SELECT MOD(counter_id - 2, 7) FROM nodes WHERE counter = 1";
    assert_eq!(totals(cluster, &schema, of_node), [Some(0); 3]);
}

/// Repeats an operation until it is acknowledged, or was counted by another attempt. Returns whether this attempt has counted.
fn repeat(connection: &mut Conn, operation: &[String]) -> bool {
    let start = Instant::now();
    loop {
        match once::run(connection, operation) {
            Ok(()) => return true,
            Err(mysql::Error::MySqlError(error)) => {
                connection.query_drop("ROLLBACK").expect("a rollback");
                match error.code {
                    1062 => return false,
                    1180 | 1205 | 1213 | 3101 => assert!(start.elapsed() < TIMEOUT, "{error}"),
                    _ => panic!("{error}"),
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// As if the answer of each attempt was lost and another node got the next one, or all nodes at the same time.
pub fn an_operation_counts_once_on_all_nodes(cluster: &Cluster) {
    const OPERATIONS: u128 = 60;
    let schema = cluster.node(0);
    let schema = schema.schema();
    schema.install(&package("counters --cluster"));
    schema.run("CALL counter_setup('downloads', NULL, 99, 0)");
    once::run(&mut schema.connect(), &once::statements("The table of keys")).expect("a table");
    applied(cluster, &schema);
    let mut nodes: Vec<Conn> = (0..cluster.nodes().len())
        .map(|node| connect(cluster, node, &schema))
        .collect();
    for node in &mut nodes {
        // The default is 50 s, and on Galera some waits end only so.
        node.query_drop("SET SESSION innodb_lock_wait_timeout = 1")
            .expect("a time-out");
    }
    let mut counted = 0;
    for key in 0..OPERATIONS {
        let operation = once::transaction(key);
        counted += if key % 2 == 0 {
            thread::scope(|scope| {
                let attempts: Vec<_> = nodes
                    .iter_mut()
                    .map(|node| scope.spawn(|| repeat(node, &operation)))
                    .collect();
                attempts
                    .into_iter()
                    .filter_map(|attempt| attempt.join().expect("an attempt").then_some(()))
                    .count()
            })
        } else {
            nodes
                .iter_mut()
                .filter_map(|node| repeat(node, &operation).then_some(()))
                .count()
        };
    }
    assert_eq!(counted as u128, OPERATIONS);
    let state = "SELECT counter_get('downloads') * 1000 + (SELECT COUNT(*) FROM counter_operations)";
    assert_eq!(
        totals(cluster, &schema, state),
        [Some(OPERATIONS as i64 * 1001); 3]
    );
}
