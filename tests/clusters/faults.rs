//! Nodes that are killed, stopped or replaced while the connections of all nodes count.
//!
//! A call is acknowledged if it returns without an error. After some errors, nobody but the server knows whether it has
//! counted. After all others it has not, and the load repeats it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row, Value};

use super::{Call, Failures, HOLD, Step, count, printed_error, with_sessions};
use crate::once;
use crate::support::{Cluster, Schema, Server, package};

/// The time that a step of the cluster or of the load takes at most.
const TIMEOUT: Duration = Duration::from_secs(120);

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
        (mysql::Error::MySqlError(error), _) if [1020, 1205, 1213, 3101].contains(&error.code) => Then::Repeat,
        (mysql::Error::MySqlError(error), _) if error.code == 1180 && !galera => Then::Repeat,
        // The node accepts no writes.
        (mysql::Error::MySqlError(error), _) if [1047, 1290].contains(&error.code) => Then::RepeatOnAnotherNode,
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
    fn of(cluster: &Cluster, schema: &Schema<'_>) -> Self {
        schema.install(&package(|_| {}));
        schema.run("CALL counter_setup('hot', NULL, 99, 0)");
        (0..cluster.nodes().len()).for_each(|node| assert_eq!(total(cluster, node, schema), 0));
        let options = |node: &Arc<Server>| node.options().db_name(Some(&schema.name)).read_timeout(Some(TIMEOUT));
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
            let mut application = Application { load: self, node, connection: None };
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
        *self.failed.lock().expect("the failures").entry((step, error)).or_default() += 1;
    }

    /// Waits until a node has counted for a second more.
    fn wait_for_counts(&self, node: usize) {
        let (before, start) = (self.acknowledged[node].load(Relaxed), Instant::now());
        thread::sleep(Duration::from_secs(1));
        while self.acknowledged[node].load(Relaxed) == before {
            assert!(start.elapsed() < TIMEOUT, "node {node} does not count: {:?}", self.failed);
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asserts that no acknowledged count is lost, and that none that is rolled back has counted. Returns the total.
    fn check(&self, what: &str, cluster: &Cluster, schema: &Schema<'_>) {
        let totals: Vec<u64> = (0..self.nodes.len()).map(|node| total(cluster, node, schema)).collect();
        let acknowledged: Vec<u64> = self.acknowledged.iter().map(|counts| counts.load(Relaxed)).collect();
        let unknown = self.unknown.load(Relaxed);
        let failed = self.failed.lock().expect("the failures");
        let version = schema.server.version;
        eprintln!("{version}, {what}: acknowledged {acknowledged:?}, unknown {unknown}, totals {totals:?}, {failed:?}");
        let acknowledged: u64 = acknowledged.iter().sum();
        assert!((acknowledged..=acknowledged + unknown).contains(&totals[0]), "{what}");
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
            let connection = Conn::new(self.load.nodes[self.node].clone()).map_err(|error| (Step::Connect, error))?;
            self.connection = Some(connection);
        }
        let call: &Call<'_> = &|connection| connection.query_drop(INCREMENT);
        count(self.connection.as_mut().expect("a connection"), call, hold)
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
    while connection.exec_first::<u64, _, _>(sessions, (&schema.name,)).expect(sessions) != Some(0) {
        assert!(start.elapsed() < TIMEOUT, "the sessions of node {node} do not end");
        thread::sleep(Duration::from_millis(20));
    }
    let total = cluster.reader(node, &schema.name).query_first("SELECT counter_get('hot')");
    total.expect("a total").expect("the counter exists")
}

pub fn a_killed_node_returns_and_no_acknowledged_count_is_lost(cluster: &Cluster) {
    const KILLED: usize = 1;
    let first = cluster.node(0);
    let schema = first.schema();
    let load = Load::of(cluster, &schema);
    load.during(cluster, || {
        load.wait_for_counts(KILLED);
        let killed = cluster.crash_node(KILLED).expect("the others go on");
        load.wait_for_counts(0);
        cluster.return_node(KILLED, killed).expect("the node joins");
    });
    load.check("a killed node", cluster, &schema);
    load.during(cluster, || load.wait_for_counts(KILLED));
    load.check("after its return", cluster, &schema);
}

pub fn a_stopped_node_returns(cluster: &Cluster) {
    const STOPPED: usize = 2;
    let first = cluster.node(0);
    let schema = first.schema();
    let load = Load::of(cluster, &schema);
    load.during(cluster, || {
        load.wait_for_counts(STOPPED);
        cluster.freeze_node(STOPPED).expect("the others go on");
        load.wait_for_counts(0);
        cluster.thaw_node(STOPPED).expect("the node joins");
    });
    load.check("a stopped node", cluster, &schema);
    load.during(cluster, || load.wait_for_counts(STOPPED));
    load.check("after its return", cluster, &schema);
}

/// The nodes of Group Replication that are primaries.
fn primaries(cluster: &Cluster, nodes: &[usize]) -> Vec<usize> {
    let role =
        "SELECT MEMBER_ROLE = 'PRIMARY' FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid";
    let is_primary = |node: &usize| cluster.node(*node).connect().query_first(role).expect(role) == Some(true);
    nodes.iter().copied().filter(is_primary).collect()
}

/// Group Replication with one primary, which another node replaces.
pub fn a_new_primary_counts(cluster: &Cluster) {
    let last = cluster.node(2);
    let schema = last.schema();
    let load = Load::of(cluster, &schema);
    let switch = |to: &str| {
        let switch = format!("SELECT group_replication_switch_to_{to}");
        last.connect().query_drop(&switch).expect(&switch);
    };
    let uuid: Option<String> = cluster.node(0).connect().query_first("SELECT @@server_uuid").expect("a UUID");
    switch(&format!("single_primary_mode('{}')", uuid.expect("a UUID")));
    assert_eq!(primaries(cluster, &[0, 1, 2]), [0]);
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
    switch("multi_primary_mode()");
    assert_eq!(primaries(cluster, &[0, 1, 2]), [0, 1, 2]);
    load.during(cluster, || (0..3).for_each(|node| load.wait_for_counts(node)));
    load.check("after the switch back", cluster, &schema);
}

pub fn a_read_that_waits_has_the_counts_of_all_nodes(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    let _ = Load::of(cluster, &schema);
    let get = "SELECT counter_get('hot')";
    let mut reader = cluster.reader(1, &schema.name);
    // The node applies nothing until it is unlocked.
    let mut lock = cluster.node(1).connect();
    lock.query_drop("FLUSH TABLES WITH READ LOCK").expect("a lock");
    schema.run(INCREMENT);
    let options = cluster.node(1).options().db_name(Some(&schema.name));
    let stale: Option<u64> = Conn::new(options).expect("a connection").query_first(get).expect(get);
    assert_eq!(stale, Some(0), "a read that does not wait");
    let (sender, receiver) = mpsc::channel();
    let read = thread::spawn(move || {
        let total: Option<u64> = reader.query_first(get).expect(get);
        sender.send(total).expect("the test waits");
    });
    let early = receiver.recv_timeout(Duration::from_millis(500));
    lock.query_drop("UNLOCK TABLES").expect("no lock");
    assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout), "the read waits");
    assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(Some(1)));
    read.join().expect("a read");
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
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('downloads', NULL, 99, 0)");
    once::run(&mut schema.connect(), &once::statements("The table of keys")).expect("a table");
    let connect = |node| {
        // The node has the table.
        drop(cluster.reader(node, &schema.name));
        Conn::new(cluster.node(node).options().db_name(Some(&schema.name))).expect("a connection")
    };
    let mut nodes: Vec<Conn> = (0..cluster.nodes().len()).map(connect).collect();
    let mut counted = 0;
    for key in 0..OPERATIONS {
        let operation = once::transaction(key);
        counted += if key % 2 == 0 {
            thread::scope(|scope| {
                let attempts: Vec<_> =
                    nodes.iter_mut().map(|node| scope.spawn(|| repeat(node, &operation))).collect();
                attempts.into_iter().filter_map(|attempt| attempt.join().expect("an attempt").then_some(())).count()
            })
        } else {
            nodes.iter_mut().filter_map(|node| repeat(node, &operation).then_some(())).count()
        };
    }
    assert_eq!(counted as u128, OPERATIONS);
    let state = "SELECT counter_get('downloads'), (SELECT COUNT(*) FROM counter_operations)";
    for node in 0..nodes.len() {
        let state: Option<(u128, u128)> = cluster.reader(node, &schema.name).query_first(state).expect("a state");
        assert_eq!(state, Some((OPERATIONS, OPERATIONS)), "node {node}");
    }
}

/// A server that is no member replicates from one node, from here on.
fn replica_of(cluster: &Cluster, node: usize) -> Server {
    let source = cluster.node(node);
    let (arguments, position): (&[&str], _) = if cluster.is_galera() {
        (&["--server-id=9"], "SHOW MASTER STATUS")
    } else {
        (&["--server-id=9", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"], "SELECT @@GLOBAL.gtid_executed, 0")
    };
    let replica = source.another(arguments);
    let position: Option<Row> = source.connect().query_first(position).expect(position);
    let position = position.expect("a row");
    let (first, second): (String, u64) = (position.get(0).expect("a name"), position.get(1).expect("a number"));
    let from = |word: &str| format!("{word}_HOST = '127.0.0.1', {word}_PORT = {}, {word}_USER = 'root'", cluster.port(node));
    let statements = if cluster.is_galera() {
        let at = format!("MASTER_LOG_FILE = '{first}', MASTER_LOG_POS = {second}, MASTER_USE_GTID = no");
        vec![format!("CHANGE MASTER TO {}, {at}", from("MASTER"))]
    } else {
        let at = "SOURCE_PASSWORD = '', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1";
        vec![
            "RESET BINARY LOGS AND GTIDS".into(),
            format!("SET GLOBAL gtid_purged = '{first}'"),
            format!("CHANGE REPLICATION SOURCE TO {}, {at}", from("SOURCE")),
        ]
    };
    let mut connection = replica.connect();
    for statement in statements.iter().map(String::as_str).chain(["START REPLICA"]) {
        connection.query_drop(statement).expect(statement);
    }
    replica
}

pub fn a_replica_of_a_node_has_the_same_rows(cluster: &Cluster) {
    let replica = replica_of(cluster, 1);
    let source = cluster.node(1);
    let schema = source.schema();
    let load = Load::of(cluster, &schema);
    load.during(cluster, || load.wait_for_counts(1));
    // Otherwise, these statements conflict with the increments of the other nodes.
    total(cluster, 1, &schema);
    schema.run("CALL counter_resize('hot', 33); CALL counter_reset('hot', 5, 0); CALL counter_setup('other', NULL, 9, 3)");
    load.during(cluster, || load.wait_for_counts(1));
    // This counter is on the replica when all before it is.
    total(cluster, 1, &schema);
    schema.run("CALL counter_setup('last', NULL, NULL, 0)");
    let (start, mut connection) = (Instant::now(), replica.connect());
    let last = format!("SELECT 1 FROM {}.counters WHERE counter_name = 'last'", schema.ident());
    while !matches!(connection.query_first::<u8, _>(&last), Ok(Some(1))) {
        let status: Vec<Row> = connection.query("SHOW REPLICA STATUS").expect("the status");
        assert!(start.elapsed() < TIMEOUT, "{status:?}");
        thread::sleep(Duration::from_millis(20));
    }
    let rows = |connection: &mut Conn| -> Vec<Vec<Value>> {
        let rows = format!("SELECT * FROM {}.counters ORDER BY 1, 2", schema.ident());
        connection.query::<Row, _>(rows).expect("the rows").into_iter().map(Row::unwrap).collect()
    };
    let of_source = rows(&mut source.connect());
    assert!(of_source.len() > 33);
    assert_eq!(rows(&mut connection), of_source);
}
