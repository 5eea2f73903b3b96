//! Clusters of three nodes on 127.0.0.1 that all accept writes: Galera and Group Replication.

use std::net::TcpListener;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use rand::Rng;
use slotted::package::Family;
use slotted::server::Program;

use super::servers::{Needed, Server, all, given, is_newest, quick};
use super::{Schema, locked};

/// The number of nodes.
pub const NODES: usize = 3;

/// The time until the nodes have a state. A machine under load takes much longer than an idle one.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The seconds that the nodes wait for one that does not answer. With the defaults, they expel a node of a machine under load.
const PATIENCE: u32 = 20;

/// The options of a node of Galera, with small buffers for one machine. The time-outs are those of [`PATIENCE`]: [`Cluster::expel`].
const OF_GALERA: &str = "--innodb-buffer-pool-size=64M --innodb-log-file-size=32M --max-connections=100 \
    --log-bin=binlog --log-slave-updates=ON --binlog-format=ROW --innodb-autoinc-lock-mode=2 --wsrep-on=ON \
    --wsrep-cluster-name=slotted --wsrep-sst-method=rsync --wsrep-provider-options=gcache.size=32M;\
    evs.suspect_timeout=PT23S;evs.inactive_timeout=PT46S;evs.install_timeout=PT46S;repl.causal_read_timeout=PT120S;";

/// The options of a node of Group Replication. The variables of the plugin are "loose", because the plugin is loaded after they are read.
const OF_GROUP_REPLICATION: &str = "--innodb-buffer-pool-size=64M --innodb-log-buffer-size=2M \
    --innodb-redo-log-capacity=64M --performance-schema-digests-size=200 \
    --performance-schema-events-statements-history-long-size=10 --max-connections=100 --report-host=127.0.0.1 \
    --gtid-mode=ON --enforce-gtid-consistency=ON --plugin-load-add=group_replication.so \
    --loose-group-replication-group-name=6ba7b810-9dad-11d1-80b4-00c04fd430c8 \
    --loose-group-replication-start-on-boot=OFF --loose-group-replication-single-primary-mode=OFF \
    --loose-group-replication-enforce-update-everywhere-checks=ON \
    --loose-group-replication-message-cache-size=134217728 --loose-group-replication-member-expel-timeout=20";

/// The running cluster. There is at most one.
static RUNNING: Mutex<Option<Arc<Cluster>>> = Mutex::new(None);

/// A cluster that runs until it is dropped, which kills its nodes and removes their folders.
pub struct Cluster {
    /// The server program of the nodes.
    program: Program,
    /// Of each node: of the group, of the server, and two of the state transfer of Galera.
    ports: Vec<[u16; 4]>,
    nodes: Mutex<[Option<Arc<Server>>; NODES]>,
}

/// The servers whose clusters the tests need: one of each kind. None with SLOTTED_TEST_URLS.
pub fn clusters() -> impl Iterator<Item = &'static Needed> {
    let run = !given() && !quick();
    all().iter().filter(move |needed| run && is_newest(&needed.name))
}

/// The name in the names of tests, such as `galera_11_8`.
pub fn name(needed: &Needed) -> String {
    let of_kind = needed.name.replace("mariadb", "galera");
    of_kind.replace("mysql", "group_replication").replace(['-', '.'], "_")
}

/// The program of `scripts/servers` that the cluster needs beside the server.
pub fn program(needed: &Needed) -> Option<&'static str> {
    needed.name.starts_with("mariadb").then_some("galera")
}

/// Runs a promise on the cluster of a server, with at least `nodes` nodes, and with a schema of the first one. The cluster is started for
/// the first promise that needs it, and stopped for the first one that needs another. A promise that fails can leave it in any state, so
/// the next one gets a new cluster.
pub fn on_cluster(needed: &Needed, nodes: usize, promise: impl FnOnce(&Cluster, &Schema<'_>)) -> Result<(), String> {
    let program = needed.program()?;
    let running = locked(&RUNNING).take().filter(|cluster| cluster.program.version == program.version);
    let cluster = running.unwrap_or_else(|| Arc::new(Cluster::new(program)));
    *locked(&RUNNING) = Some(Arc::clone(&cluster));
    let result = panic::catch_unwind(AssertUnwindSafe(|| {
        cluster.start(nodes);
        promise(&cluster, &cluster.node(0).schema());
    }));
    if let Err(panic) = result {
        cluster.nodes().iter().for_each(|node| eprintln!("{}", node.last_log_lines()));
        stop();
        panic::resume_unwind(panic);
    }
    Ok(())
}

/// Stops the running cluster.
pub fn stop() {
    if let Some(cluster) = locked(&RUNNING).take() {
        // A promise can have the cluster, too, if the run ends with Ctrl-C.
        cluster.nodes().iter().for_each(|node| node.stop());
    }
}

impl Cluster {
    fn new(mut program: Program) -> Self {
        if program.version.family == Family::Mariadb {
            program.path.set_file_name("mariadbd-galera");
        }
        let ports = free_ports(4 * NODES);
        let ports = ports.chunks(4).map(|ports| ports.try_into().expect("4 ports"));
        Self { program, ports: ports.collect(), nodes: Mutex::default() }
    }

    /// Starts those of the first nodes that do not run, one after the other. Each is a member of the cluster before the next one. They have
    /// no data, and get them from the others. The first node of all creates the cluster.
    pub fn start(&self, nodes: usize) {
        for node in 0..nodes {
            if locked(&self.nodes)[node].is_none() {
                let first = self.nodes().is_empty();
                let arguments = self.arguments(node, first);
                let server = Server::start(&self.program, &arguments.split(' ').collect::<Vec<_>>()).expect("a node");
                self.join(node, Arc::new(server), first);
            }
        }
    }

    pub fn is_galera(&self) -> bool {
        self.program.version.family == Family::Mariadb
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
        connection.query_drop("SELECT 1 FROM information_schema.SCHEMATA LIMIT 1").expect("a wait");
        connection.select_db(database).expect("the database");
        connection
    }

    /// Ends a node as a power failure does. Returns it with its data, for [`Self::return_node`], when the others have expelled it.
    pub fn crash_node(&self, node: usize) -> Arc<Server> {
        let killed = locked(&self.nodes)[node].take().expect("the node runs");
        self.expel(0);
        killed.kill();
        self.wait_until_joined();
        self.expel(PATIENCE);
        killed
    }

    /// Starts a node of [`Self::crash_node`] again with its data. It gets what it has missed.
    pub fn return_node(&self, node: usize, server: Arc<Server>) {
        // Otherwise, the node of a group accepts writes until it is a member, and cannot join with them.
        let more = if self.is_galera() { "" } else { " --super-read-only=ON" };
        let arguments = self.arguments(node, false) + more;
        server.start_again(&arguments.split(' ').collect::<Vec<_>>()).expect("the node starts");
        self.join(node, server, false);
    }

    /// The options of the server of a node, from 0.
    fn arguments(&self, node: usize, first: bool) -> String {
        let [port, of_server, second, third] = self.ports[node];
        let of_group: Vec<_> = self.ports.iter().map(|[port, ..]| format!("127.0.0.1:{port}")).collect();
        let (all, number, host) = (of_group.join(","), node + 1, "127.0.0.1");
        let of_server = format!("--server-id={number} --port={of_server} --skip-networking=0 --bind-address={host}");
        if self.is_galera() {
            let new = if first { " --wsrep-new-cluster" } else { "" };
            format!(
                "{of_server} {OF_GALERA}gmcast.listen_addr=tcp://{host}:{port};ist.recv_addr={host}:{second}{new} \
                 --wsrep-cluster-address=gcomm://{all} --wsrep-node-name=node{number} \
                 --wsrep-node-address={host}:{port} --wsrep-sst-receive-address={host}:{third}"
            )
        } else {
            format!(
                "{of_server} {OF_GROUP_REPLICATION} --loose-group-replication-local-address={host}:{port} \
                 --loose-group-replication-group-seeds={all}"
            )
        }
    }

    /// Makes a server that runs a member of the group. A server of Galera joins when it starts.
    fn join(&self, node: usize, server: Arc<Server>, first: bool) {
        let statements = [
            // The account of the data directory has no password, and all privileges on a connection from 127.0.0.1.
            "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root', SOURCE_PASSWORD = '' FOR CHANNEL 'group_replication_recovery'",
            &format!("SET GLOBAL group_replication_bootstrap_group = {first}"),
            "START GROUP_REPLICATION",
            "SET GLOBAL group_replication_bootstrap_group = OFF",
        ];
        locked(&self.nodes)[node] = Some(Arc::clone(&server));
        if !self.is_galera() {
            let mut connection = server.connect();
            statements.into_iter().for_each(|statement| connection.query_drop(statement).expect(statement));
        }
        self.wait_until_joined();
    }

    /// Sets the seconds that the nodes wait for one that does not answer, in addition to the 3 to 5 s after which they suspect it.
    fn expel(&self, seconds: u32) {
        let (suspect, inactive) = (3 + seconds, 6 + 2 * seconds);
        let statements = if self.is_galera() {
            // None of the others may be longer than the time-out of an inactive node, so it is the first to grow.
            let options = [("inactive", inactive), ("suspect", suspect), ("install", inactive), ("inactive", inactive)];
            options.map(|(name, seconds)| format!("SET GLOBAL wsrep_provider_evs_{name}_timeout = {seconds}")).to_vec()
        } else {
            vec![format!("SET GLOBAL group_replication_member_expel_timeout = {seconds}")]
        };
        for node in self.nodes() {
            let mut connection = node.connect();
            statements.iter().for_each(|statement| connection.query_drop(statement).expect(statement));
        }
    }

    /// Waits until the nodes that run, and no others, are a cluster.
    fn wait_until_joined(&self) {
        let (start, nodes) = (Instant::now(), self.nodes());
        loop {
            let states: Vec<_> = nodes.iter().map(|node| self.state(node)).collect();
            if states.iter().all(|state| *state == Ok((nodes.len(), true))) {
                return;
            }
            assert!(start.elapsed() < TIMEOUT, "the nodes are no cluster: {states:?}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// The number of nodes of the cluster that a node sees, and whether it has all data. Each call has a connection of its own: a node of
    /// Galera that begins to receive the data of another one ends its connections.
    fn state(&self, node: &Server) -> Result<(usize, bool), String> {
        let query = if self.is_galera() {
            "SELECT MAX(IF(VARIABLE_NAME = 'wsrep_cluster_size', VARIABLE_VALUE, 0)), MAX(VARIABLE_VALUE = 'Synced')
               FROM information_schema.GLOBAL_STATUS
              WHERE VARIABLE_NAME IN ('wsrep_cluster_size', 'wsrep_local_state_comment')"
        } else {
            "SELECT COUNT(*), SUM(MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE') = 1
               FROM performance_schema.replication_group_members"
        };
        let state = Conn::new(node.options()).and_then(|mut connection| connection.query_first(query));
        state.map_err(|error| error.to_string()).map(|state| state.unwrap_or_default())
    }
}

/// Free ports of 127.0.0.1, below those of outgoing connections, which could otherwise take one before the server listens.
pub fn free_ports(number: usize) -> Vec<u16> {
    let free = || loop {
        let port = rand::rng().random_range(10_000..30_000);
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return (port, listener);
        }
    };
    // No two are the same, because the listeners live until all are chosen.
    let free: Vec<_> = (0..number).map(|_| free()).collect();
    free.into_iter().map(|(port, _listener)| port).collect()
}
