//! How the nodes of a cluster start: the options of their servers, and how they join.

use std::net::TcpListener;

use mysql::prelude::Queryable;
use mysql::{Conn, Opts};
use rand::RngExt;
use slotted::package::Family;
use slotted::server::Program;

/// The options of a node of Galera. The buffers are small: all nodes run on one machine.
const OF_MARIADB: [&str; 10] = [
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M",
    "--max-connections=100",
    "--log-bin=binlog",
    "--log-slave-updates=ON",
    "--binlog-format=ROW",
    "--innodb-autoinc-lock-mode=2",
    "--wsrep-on=ON",
    "--wsrep-cluster-name=slotted",
    "--wsrep-sst-method=rsync",
];

/// The time-outs are longer than the defaults, with which a node of a machine under load is expelled.
const OF_PROVIDER: &str = "gcache.size=32M;evs.suspect_timeout=PT23S;evs.inactive_timeout=PT46S;\
                           evs.install_timeout=PT46S;repl.causal_read_timeout=PT120S";

/// The options of a node of Group Replication. The variables of the plugin are "loose", because the plugin is loaded after they are read.
const OF_MYSQL: [&str; 14] = [
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-buffer-size=2M",
    "--innodb-redo-log-capacity=64M",
    "--performance-schema-digests-size=200",
    "--performance-schema-events-statements-history-long-size=10",
    "--max-connections=100",
    "--report-host=127.0.0.1",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--plugin-load-add=group_replication.so",
    "--loose-group-replication-single-primary-mode=OFF",
    "--loose-group-replication-enforce-update-everywhere-checks=ON",
    "--loose-group-replication-message-cache-size=134217728",
    "--loose-group-replication-member-expel-timeout=20",
];

/// The name of the group, which is a UUID.
const GROUP: &str = "--loose-group-replication-group-name=6ba7b810-9dad-11d1-80b4-00c04fd430c8";

/// How to start the nodes of a cluster on 127.0.0.1.
pub struct ClusterPlan {
    /// The server program of the nodes.
    pub program: Program,
    /// Of each node: of the group, of the server, and two of the state transfer of Galera.
    ports: Vec<[u16; 4]>,
}

/// The state of a node that belongs to its cluster and has all data, see [`ClusterPlan::state`].
pub const JOINED: &str = "joined";

impl ClusterPlan {
    /// A cluster of a number of nodes of a server program. MariaDB's program for nodes of Galera is in its folder.
    pub fn new(program: &Program, nodes: usize) -> Result<Self, String> {
        let mut program = program.clone();
        if program.version.family == Family::Mariadb {
            program.path.set_file_name("mariadbd-galera");
            if !program.path.is_file() {
                return Err(format!(
                    "Galera is not installed for {}: {} does not exist",
                    program.version,
                    program.path.display()
                ));
            }
        }
        Ok(Self {
            program,
            ports: free_ports(4 * nodes)
                .chunks(4)
                .map(|ports| [ports[0], ports[1], ports[2], ports[3]])
                .collect(),
        })
    }

    /// Whether it is Galera, and not Group Replication.
    pub fn is_galera(&self) -> bool {
        self.program.version.family == Family::Mariadb
    }

    /// The options of the server of a node, from 0. The first node that runs creates the cluster.
    pub fn arguments(&self, node: usize, first: bool) -> Vec<String> {
        let [port, of_server, second, third] = self.ports[node];
        let all: Vec<_> = self
            .ports
            .iter()
            .map(|[port, ..]| format!("127.0.0.1:{port}"))
            .collect();
        let (all, number) = (all.join(","), node + 1);
        let (fixed, own): (&[&str], Vec<String>) = if self.is_galera() {
            let mut own = vec![
                format!("--wsrep-cluster-address=gcomm://{all}"),
                format!("--wsrep-node-name=node{number}"),
                format!("--wsrep-node-address=127.0.0.1:{port}"),
                format!("--wsrep-sst-receive-address=127.0.0.1:{third}"),
                format!(
                    "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{port};\
                         ist.recv_addr=127.0.0.1:{second};{OF_PROVIDER}"
                ),
            ];
            own.extend(first.then(|| "--wsrep-new-cluster".into()));
            (&OF_MARIADB, own)
        } else {
            let own = vec![
                GROUP.into(),
                format!("--loose-group-replication-local-address=127.0.0.1:{port}"),
                format!("--loose-group-replication-group-seeds={all}"),
                "--loose-group-replication-start-on-boot=OFF".into(),
            ];
            (&OF_MYSQL, own)
        };
        let network = [
            format!("--server-id={number}"),
            format!("--port={of_server}"),
            "--skip-networking=0".into(),
            "--bind-address=127.0.0.1".into(),
        ];
        fixed
            .iter()
            .map(|argument| (*argument).to_owned())
            .chain(network)
            .chain(own)
            .collect()
    }

    /// Makes a new server of MySQL a member of the group, or of a new group if it is the first one. A server of Galera joins
    /// when it starts.
    pub fn join(&self, server: impl Into<Opts>, first: bool) -> Result<(), String> {
        if self.is_galera() {
            return Ok(());
        }
        let mut connection = Conn::new(server.into()).map_err(|error| error.to_string())?;
        let bootstrap = format!("SET GLOBAL group_replication_bootstrap_group = {first}");
        let statements = [
            // The account of the data directory has no password, and all privileges on a connection from 127.0.0.1.
            "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root', SOURCE_PASSWORD = '' FOR CHANNEL 'group_replication_recovery'",
            &bootstrap,
            "START GROUP_REPLICATION",
            "SET GLOBAL group_replication_bootstrap_group = OFF",
        ];
        let joined = statements
            .into_iter()
            .try_for_each(|statement| connection.query_drop(statement));
        joined.map_err(|error| format!("{error}: the server needs the plugin group_replication"))
    }

    /// The number of nodes of the cluster that a node sees, and its own state. Each call has a connection of its own: a node of
    /// Galera that begins to receive the data of another one ends its connections.
    pub fn state(&self, server: impl Into<Opts>) -> Result<(usize, String), String> {
        let mut connection = Conn::new(server.into()).map_err(|error| error.to_string())?;
        let query = if self.is_galera() {
            "SELECT (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_cluster_size'),
                        IF(VARIABLE_VALUE = 'Synced', 'joined', VARIABLE_VALUE)
                   FROM information_schema.GLOBAL_STATUS
                  WHERE VARIABLE_NAME = 'wsrep_local_state_comment'"
        } else {
            "SELECT (SELECT COUNT(*) FROM performance_schema.replication_group_members),
                        IF(MEMBER_STATE = 'ONLINE', 'joined', MEMBER_STATE)
                   FROM performance_schema.replication_group_members
                  WHERE MEMBER_ID = @@server_uuid"
        };
        let state: mysql::Result<Option<(usize, String)>> = connection.query_first(query);
        state
            .map_err(|error| error.to_string())?
            .ok_or_else(|| "no cluster".into())
    }
}

/// Free ports of 127.0.0.1. They are below those that the kernel gives to outgoing connections, which could otherwise take
/// one before the server listens.
pub fn free_ports(number: usize) -> Vec<u16> {
    let mut random = rand::rng();
    let mut free = || loop {
        let port = random.random_range(10_000..30_000);
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return (port, listener);
        }
    };
    // No two are the same, because the listeners live until all are chosen.
    let free: Vec<_> = (0..number).map(|_| free()).collect();
    free.into_iter().map(|(port, _listener)| port).collect()
}
