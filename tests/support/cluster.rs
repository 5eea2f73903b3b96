//! Clusters of three nodes on 127.0.0.1 that all accept writes: Galera and Group Replication.

use std::panic::{self, AssertUnwindSafe};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::server::Program;

use super::cluster_plan::{ClusterPlan, JOINED};
use super::servers::{Needed, Server, all, quick};

/// The number of nodes.
pub const NODES: usize = 3;

/// The time until the nodes have a state. A machine under load takes much longer than an idle one.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The time that the nodes wait for one that does not answer. With the defaults, they expel a node of a machine under load.
const PATIENCE: Duration = Duration::from_secs(20);

/// The running cluster. There is at most one, because three nodes take 0.6 to 2 GB.
static RUNNING: Mutex<Option<Arc<Cluster>>> = Mutex::new(None);

/// A cluster that runs until it is dropped, which kills its nodes and removes their folders.
pub struct Cluster {
    plan: ClusterPlan,
    nodes: Mutex<[Option<Arc<Server>>; NODES]>,
}

/// The servers whose clusters the tests need. None with SLOTTED_TEST_URLS.
pub fn clusters() -> impl Iterator<Item = &'static Needed> {
    all()
        .iter()
        .filter(|needed| needed.program().is_some() && !quick())
}

/// The name in the names of tests, such as `galera_10_11`.
pub fn name(needed: &Needed) -> String {
    let of_cluster = needed
        .name
        .replace("mariadb-", "galera_")
        .replace("mysql-", "group_replication_");
    of_cluster.replace('.', "_")
}

/// The program of `scripts/servers` that the cluster needs beside the server.
pub fn program(needed: &Needed) -> Option<&'static str> {
    needed.name.starts_with("mariadb").then_some("galera")
}

/// Runs a promise on the cluster of a server, with at least `nodes` nodes: with one, the promise starts the others. The cluster is started
/// for the first promise that needs it, and stopped for the first one that needs another. A promise that fails can leave it in any state,
/// so the next one gets a new cluster.
pub fn on_cluster(needed: &Needed, nodes: usize, promise: impl FnOnce(&Cluster)) -> Result<(), String> {
    let program = needed.program().expect("a server of this run")?;
    let cluster = {
        let mut running = locked(&RUNNING);
        match running
            .take()
            .filter(|cluster| cluster.plan.program.version == program.version)
            .filter(|cluster| nodes == NODES || cluster.nodes().len() == nodes)
        {
            Some(cluster) => Arc::clone(running.insert(cluster)),
            None => {
                let start = Instant::now();
                let cluster = Arc::new(Cluster::new(program)?);
                cluster.start(nodes)?;
                eprintln!(
                    "{nodes} nodes of the cluster {} took {:.0} s to start",
                    name(needed),
                    start.elapsed().as_secs_f64()
                );
                Arc::clone(running.insert(cluster))
            }
        }
    };
    cluster.start(nodes)?;
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
    fn new(program: &Program) -> Result<Self, String> {
        Ok(Self {
            plan: ClusterPlan::new(program, NODES)?,
            nodes: Mutex::default(),
        })
    }

    /// Starts those of the first nodes that do not run, one after the other. Each is a member of the cluster before the next one.
    pub fn start(&self, nodes: usize) -> Result<(), String> {
        let stopped = |node: &usize| locked(&self.nodes)[*node].is_none();
        (0..nodes)
            .filter(stopped)
            .try_for_each(|node| self.start_node(node))
    }

    pub fn is_galera(&self) -> bool {
        self.plan.is_galera()
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
    /// Source: Galera's documentation, "wsrep_sync_wait"; MySQL manual, "Configuring Transaction Consistency Guarantees".
    pub fn reader(&self, node: usize, database: &str) -> Conn {
        let mut connection = self.node(node).connect();
        let wait = if self.is_galera() {
            "SET SESSION wsrep_sync_wait = 1"
        } else {
            "SET SESSION group_replication_consistency = 'BEFORE'"
        };
        connection.query_drop(wait).expect(wait);
        // The database can be as new as the rows.
        let exists = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?";
        assert_eq!(connection.exec_first(exists, (database,)).expect(exists), Some(1));
        connection.select_db(database).expect("the database");
        connection
    }

    /// Starts a node that does not run. It has no data, and gets them from the others. The first node of all creates the
    /// cluster.
    fn start_node(&self, node: usize) -> Result<(), String> {
        let mut nodes = locked(&self.nodes);
        let first = nodes.iter().all(Option::is_none);
        let arguments = self.plan.arguments(node, first);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let server = Server::start(&self.plan.program, &arguments)?;
        self.plan
            .join(server.options(), first)
            .map_err(|error| format!("{error}\n{}", server.last_log_lines()))?;
        nodes[node] = Some(Arc::new(server));
        drop(nodes);
        self.wait_until_joined(&self.nodes())
    }

    /// Ends a node as a power failure does. Returns the node with its data, for [`Self::return_node`], when the others have
    /// expelled it.
    pub fn crash_node(&self, node: usize) -> Result<Arc<Server>, String> {
        let killed = locked(&self.nodes)[node].take().expect("the node runs");
        self.expel(Duration::ZERO)?;
        killed.kill();
        self.wait_until_joined(&self.nodes())?;
        self.expel(PATIENCE)?;
        Ok(killed)
    }

    /// Starts a node of [`Self::crash_node`] again with its data. It gets what it has missed.
    pub fn return_node(&self, node: usize, server: Arc<Server>) -> Result<(), String> {
        let mut arguments = self.plan.arguments(node, false);
        if self.is_galera() {
            let position = self.position(&server, &arguments)?;
            arguments.push(format!("--wsrep-start-position={position}"));
        } else {
            // Otherwise, the node accepts writes until it is a member, and cannot join with them.
            arguments.push("--super-read-only=ON".into());
            // The group can have got a primary since. The server does not read what it has persisted, because of --no-defaults.
            let mode = "SELECT CONCAT('--loose-group-replication-single-primary-mode=', @@group_replication_single_primary_mode),
                               CONCAT('--loose-group-replication-enforce-update-everywhere-checks=',
                                      @@group_replication_enforce_update_everywhere_checks)";
            let mode: Option<(String, String)> = self.nodes()[0].connect().query_first(mode).expect(mode);
            arguments.extend(mode.map(<[String; 2]>::from).expect("a row"));
        }
        server.start_again(&arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
        if !self.is_galera() {
            let started = server.connect().query_drop("START GROUP_REPLICATION");
            started.map_err(|error| format!("{error}\n{}", server.last_log_lines()))?;
        }
        locked(&self.nodes)[node] = Some(server);
        self.wait_until_joined(&self.nodes())
    }

    /// Stops the process of a node, which then looks like a node without a network. Returns when the others have expelled it.
    pub fn freeze_node(&self, node: usize) -> Result<(), String> {
        let frozen = self.node(node);
        self.expel(Duration::ZERO)?;
        signal(&frozen, "-STOP")?;
        let mut others = self.nodes();
        others.retain(|node| !Arc::ptr_eq(node, &frozen));
        self.wait_until_joined(&others)
    }

    /// Continues the process of a node. Returns when the node is a member again.
    pub fn thaw_node(&self, node: usize) -> Result<(), String> {
        signal(&self.node(node), "-CONT")?;
        self.wait_until_joined(&self.nodes())?;
        self.expel(PATIENCE)
    }

    /// The position of the data of a node of Galera that does not run, as mariadbd-safe and the unit of systemd read it.
    fn position(&self, server: &Server, arguments: &[String]) -> Result<String, String> {
        let (_, folder) = server.process();
        let output = Command::new(&self.plan.program.path)
            .args(["--no-defaults", "--user=root"])
            .arg(format!("--datadir={}", folder.join("data").display()))
            .arg(format!("--socket={}", folder.join("s").display()))
            .args(arguments)
            .arg("--wsrep-recover")
            .output()
            .map_err(|error| error.to_string())?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let position = log.split("Recovered position: ").nth(1);
        let position = position.and_then(|rest| rest.split([',', '\n']).next());
        position.map(|position| position.trim().to_owned()).ok_or(log)
    }

    /// Sets the time that the nodes wait for one that does not answer, beside the 3 to 5 s after which they suspect it.
    fn expel(&self, patience: Duration) -> Result<(), String> {
        let seconds = patience.as_secs();
        let (suspect, inactive) = (3 + seconds, 6 + 2 * seconds);
        let statements: Vec<_> = if self.is_galera() {
            // None of the others may be longer than the time-out of an inactive node, so it is the first to grow.
            let options = [
                ("inactive", inactive),
                ("suspect", suspect),
                ("install", inactive),
                ("inactive", inactive),
            ];
            let set = |(name, seconds)| {
                if self.plan.program.version.major > 10 {
                    format!("SET GLOBAL wsrep_provider_evs_{name}_timeout = {seconds}")
                } else {
                    format!("SET GLOBAL wsrep_provider_options = 'evs.{name}_timeout=PT{seconds}S'")
                }
            };
            options.map(set).into()
        } else {
            vec![format!(
                "SET GLOBAL group_replication_member_expel_timeout = {seconds}"
            )]
        };
        for node in self.nodes() {
            let mut connection = node.connect();
            for statement in &statements {
                let set = connection.query_drop(statement);
                set.map_err(|error| format!("{statement}: {error}"))?;
            }
        }
        Ok(())
    }

    /// Waits until some nodes, and no others, are a cluster.
    fn wait_until_joined(&self, nodes: &[Arc<Server>]) -> Result<(), String> {
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
        self.plan.state(node.options())
    }

    /// The last lines of the logs of all nodes.
    fn last_log_lines(&self) -> String {
        let logs = self.nodes();
        let logs: Vec<_> = logs.iter().map(|node| node.last_log_lines()).collect();
        logs.join("\n")
    }
}

/// Sends a signal to the process of a server.
fn signal(server: &Server, signal: &str) -> Result<(), String> {
    let process = server.process().0.to_string();
    let status = Command::new("kill").args([signal, &process]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("kill {signal} {process}: {other:?}")),
    }
}
