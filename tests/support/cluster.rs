//! Clusters of three nodes on 127.0.0.1 that all accept writes: Galera and Group Replication.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::server::{Cluster as Kind, ClusterPlan, JOINED, Program};

use super::servers::{Needed, Server, all};

/// The number of nodes.
pub const NODES: usize = 3;

/// The time until the nodes have a state. A machine under load takes much longer than an idle one.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The running cluster. There is at most one, because three nodes take 0.6 to 2 GB.
static RUNNING: Mutex<Option<Arc<Cluster>>> = Mutex::new(None);

/// The promises that have come for a cluster, and those that have left it. They take turns in the order in which they come,
/// which is that of their registration: a mutex alone would change between the clusters.
static TURNS: Mutex<(u32, u32)> = Mutex::new((0, 0));
static LEFT: Condvar = Condvar::new();

/// Held by the promise whose turn it is.
struct Turn;

impl Turn {
    fn wait() -> Self {
        let mut turns = locked(&TURNS);
        let own = turns.0;
        turns.0 += 1;
        drop(LEFT.wait_while(turns, |turns| turns.1 != own));
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        locked(&TURNS).1 += 1;
        LEFT.notify_all();
    }
}

/// A cluster that runs until it is dropped, which kills its nodes and removes their folders.
pub struct Cluster {
    plan: ClusterPlan,
    nodes: Mutex<[Option<Arc<Server>>; NODES]>,
}

/// The servers whose clusters the tests need. None with SLOTTED_TEST_URLS.
pub fn clusters() -> impl Iterator<Item = &'static Needed> {
    all().iter().filter(|needed| needed.program().is_some())
}

/// The name in the names of tests, such as `galera_10_11`.
pub fn name(needed: &Needed) -> String {
    let of_cluster = needed
        .name
        .replace("mariadb-", "galera_")
        .replace("mysql-", "group_replication_");
    of_cluster.replace('.', "_")
}

/// Runs a promise on the cluster of a server. The cluster is started for the first promise that needs it, and stopped for the
/// first one that needs another. A promise that fails can leave it in any state, so the next one gets a new cluster.
pub fn on_cluster(needed: &Needed, promise: impl FnOnce(&Cluster)) -> Result<(), String> {
    let _turn = Turn::wait();
    let program = needed.program().expect("a server of this run")?;
    let cluster = {
        let mut running = locked(&RUNNING);
        match running
            .take()
            .filter(|cluster| cluster.plan.program.version == program.version)
        {
            Some(cluster) => Arc::clone(running.insert(cluster)),
            None => {
                let start = Instant::now();
                let cluster = Arc::new(Cluster::start(program)?);
                eprintln!(
                    "the cluster {} took {:.0} s to start",
                    name(needed),
                    start.elapsed().as_secs_f64()
                );
                Arc::clone(running.insert(cluster))
            }
        }
    };
    if let Err(panic) = panic::catch_unwind(AssertUnwindSafe(|| promise(&cluster))) {
        eprintln!("{}", cluster.last_log_lines());
        stop();
        panic::resume_unwind(panic);
    }
    Ok(())
}

/// Stops the running cluster.
pub fn stop() {
    if let Some(cluster) = locked(&RUNNING).take() {
        // A promise can have the cluster, too, if the run ends with Ctrl-C.
        for node in locked(&cluster.nodes).iter_mut() {
            node.take().inspect(|node| node.stop());
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Cluster {
    /// Starts three nodes, one after the other, and waits until they are a cluster.
    fn start(program: &Program) -> Result<Self, String> {
        let cluster = Self {
            plan: ClusterPlan::new(program, NODES)?,
            nodes: Mutex::default(),
        };
        for node in 0..NODES {
            cluster.start_node(node)?;
        }
        Ok(cluster)
    }

    pub fn kind(&self) -> Kind {
        self.plan.kind()
    }

    /// The nodes that run.
    pub fn nodes(&self) -> Vec<Arc<Server>> {
        locked(&self.nodes).iter().flatten().cloned().collect()
    }

    /// A node that runs.
    pub fn node(&self, node: usize) -> Arc<Server> {
        locked(&self.nodes)[node].clone().expect("the node runs")
    }

    /// A connection to a node whose reads wait until the node has applied what was committed on any node before.
    pub fn reader(&self, node: usize, database: &str) -> Conn {
        let options = self.node(node).options().db_name(Some(database));
        let mut connection = Conn::new(options).expect("a connection");
        let wait = self.kind().wait_for_others();
        connection.query_drop(&wait).expect(&wait);
        connection
    }

    /// Starts a node that does not run. It has no data, and gets them from the others. The first node of all creates the
    /// cluster.
    pub fn start_node(&self, node: usize) -> Result<(), String> {
        let mut nodes = locked(&self.nodes);
        let first = nodes.iter().all(Option::is_none);
        let arguments = self.plan.arguments(node, first);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let server = Server::start(&self.plan.program, &arguments)?;
        self.plan
            .join(&mut server.connect(), first)
            .map_err(|error| format!("{error}\n{}", server.last_log_lines()))?;
        nodes[node] = Some(Arc::new(server));
        drop(nodes);
        self.wait_until_joined()
    }

    /// Ends a node as a power failure does. Returns when the others have expelled it.
    pub fn kill_node(&self, node: usize) -> Result<(), String> {
        let killed = locked(&self.nodes)[node].take().expect("the node runs");
        killed.stop();
        self.wait_until_joined()
    }

    /// Shuts a node down, so that it leaves the cluster.
    pub fn stop_node(&self, node: usize) -> Result<(), String> {
        let stopped = locked(&self.nodes)[node].take().expect("the node runs");
        stopped
            .connect()
            .query_drop("SHUTDOWN")
            .map_err(|error| error.to_string())?;
        self.wait_until_joined()
    }

    /// Waits until the nodes that run, and no others, are a cluster.
    fn wait_until_joined(&self) -> Result<(), String> {
        let nodes = self.nodes();
        let start = Instant::now();
        loop {
            let states: Vec<_> = nodes.iter().map(|node| self.state(node)).collect();
            let expected = (nodes.len(), JOINED.to_owned());
            if states.iter().all(|state| state.as_ref() == Ok(&expected)) {
                return Ok(());
            }
            if start.elapsed() > TIMEOUT {
                let logs = self.last_log_lines();
                return Err(format!(
                    "the nodes are no cluster after {TIMEOUT:?}: {states:?}\n{logs}"
                ));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// The number of nodes of the cluster that a node sees, and its own state.
    fn state(&self, node: &Server) -> Result<(usize, String), String> {
        let mut connection = Conn::new(node.options()).map_err(|error| error.to_string())?;
        self.plan.state(&mut connection)
    }

    /// The last lines of the logs of all nodes.
    fn last_log_lines(&self) -> String {
        let logs = self.nodes();
        let logs: Vec<_> = logs.iter().map(|node| node.last_log_lines()).collect();
        logs.join("\n")
    }
}
