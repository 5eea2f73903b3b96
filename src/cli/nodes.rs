//! The server of the bench, or the nodes of a cluster.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};

use super::hinted;
use crate::bench::{Setting, Target};
use crate::server::{Cluster, Node};

/// The time until a schema appears on all nodes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Connections to all nodes of a cluster, or to one server.
pub(super) struct Nodes {
    pub all: Vec<Conn>,
    options: Vec<Opts>,
    /// None for one server, which may be a node of a cluster.
    pub cluster: Option<Cluster>,
    /// The process ids of private servers.
    processes: Vec<u32>,
}

impl Nodes {
    /// The nodes of these connections.
    ///
    /// # Errors
    /// Several connections that do not lead to different nodes of one cluster that all accept writes.
    pub fn new(all: Vec<(Conn, Opts)>, processes: Vec<u32>) -> anyhow::Result<Self> {
        let (mut all, options): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let cluster = if all.len() > 1 {
            Some(cluster_of(&mut all, &options)?)
        } else {
            None
        };
        Ok(Self {
            all,
            options,
            cluster,
            processes,
        })
    }

    /// The connection that creates and drops the schemas.
    pub fn first(&mut self) -> &mut Conn {
        &mut self.all[0]
    }

    /// # Errors
    /// A setting needs more nodes than there are.
    pub fn check_number(&self, settings: &[Setting]) -> anyhow::Result<()> {
        let given = self.all.len();
        match settings.iter().find(|setting| setting.nodes as usize > given) {
            Some(setting) => Err(hinted(
                format!(
                    "--nodes {} with {given} URL{}",
                    setting.nodes,
                    if given == 1 { "" } else { "s" }
                ),
                "give one --url for each node of the cluster",
            )),
            None => Ok(()),
        }
    }

    /// Waits until all nodes have a schema that the first one has.
    ///
    /// # Errors
    /// A node does not have it in time, Ctrl-C, and errors of the servers.
    pub fn wait_for(&mut self, schema: &str, interrupted: &AtomicBool) -> anyhow::Result<()> {
        let start = Instant::now();
        for (connection, options) in self.all.iter_mut().zip(&self.options).skip(1) {
            let query = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?";
            while connection.exec_first::<String, _, _>(query, (schema,))?.is_none() {
                if interrupted.load(Ordering::Relaxed) {
                    anyhow::bail!("interrupted");
                }
                if start.elapsed() > TIMEOUT {
                    return Err(hinted(
                        format!(
                            "the schema {schema} does not appear on {} in {} s",
                            place(options),
                            TIMEOUT.as_secs()
                        ),
                        "check that the node receives the changes of the others",
                    ));
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// The nodes as the target of a load.
    pub fn target(&self, schema: &str) -> Target {
        let with_schema = |options: &Opts| {
            OptsBuilder::from_opts(options.clone())
                .db_name(Some(schema))
                .into()
        };
        Target {
            nodes: self.options.iter().map(with_schema).collect(),
            cluster: self.cluster,
            processes: self.processes.clone(),
        }
    }

    /// The properties of the first node, the cluster and the client that the figures depend on.
    ///
    /// # Errors
    /// Errors of the server.
    pub fn environment(&mut self) -> anyhow::Result<Vec<(&'static str, String)>> {
        let mut environment = super::bench::environment(self.first())?;
        if let Some(cluster) = self.cluster {
            let nodes = format!("{cluster}, {} nodes", self.all.len());
            environment.insert(1, ("cluster", nodes));
        }
        Ok(environment)
    }
}

/// The cluster of several nodes.
fn cluster_of(all: &mut [Conn], options: &[Opts]) -> anyhow::Result<Cluster> {
    let one_server = "for a server without a cluster, or behind a proxy, give one --url";
    let mut nodes: Vec<(Node, String)> = Vec::new();
    for (connection, options) in all.iter_mut().zip(options) {
        let place = place(options);
        let Some(node) = Node::of(connection)? else {
            return Err(hinted(format!("{place} is not a node of a cluster"), one_server));
        };
        for (other, at) in &nodes {
            if other.cluster != node.cluster {
                return Err(hinted(
                    format!("{at} and {place} are nodes of different clusters"),
                    "give the URLs of the nodes of one cluster",
                ));
            }
            if other.node == node.node {
                return Err(hinted(
                    format!("{at} and {place} are the same node"),
                    format!("give one --url for each node; {one_server}"),
                ));
            }
        }
        if connection.query_first("SELECT @@GLOBAL.read_only")? == Some(true) {
            return Err(hinted(
                format!("{place} is read-only"),
                "the bench writes on all nodes: give the URLs of the nodes that accept writes",
            ));
        }
        nodes.push((node, place));
    }
    Ok(nodes[0].0.kind)
}

/// Where a connection goes, for a message.
fn place(options: &Opts) -> String {
    match options.get_socket() {
        Some(socket) => socket.to_owned(),
        None => format!("{}:{}", options.get_ip_or_hostname(), options.get_tcp_port()),
    }
}
