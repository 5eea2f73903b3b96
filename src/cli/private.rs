//! A private server for a command, removed when the command ends, also after Ctrl-C.

use anyhow::ensure;

use super::output::note;
use super::{Outcome, hinted, interrupt, progress};
use crate::server::{self, PrivateCluster, PrivateServer, Program, StartError};

/// The binary log settings of a server with a replica, which are the defaults of MySQL. MariaDB has no binary log by
/// default, and without one it releases row locks before the commit is on disk.
const DURABLE: &[&str] = &["--log-bin", "--sync-binlog=1", "--server-id=1"];

/// Runs `work` with a private server that has durable settings and accepts `connections` and a few more. Stops the
/// server and removes its files when `work` returns, also with an error.
///
/// # Errors
/// There is no server program, the server does not start, its folder cannot be removed, or `work` fails.
pub fn with_private_server(
    connections: u32,
    work: impl FnOnce(&Program, &PrivateServer) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    on_private_server(&find()?, connections, work)
}

/// The server program that a command uses unless it is given another.
///
/// # Errors
/// If there is no server program.
pub fn find() -> anyhow::Result<Program> {
    server::find().map_err(|error| hinted(&error, error.hint()))
}

/// The same as [`with_private_server`], with a given server program.
///
/// # Errors
/// If the server does not start, and errors of `work`.
pub fn on_private_server(
    program: &Program,
    connections: u32,
    work: impl FnOnce(&Program, &PrivateServer) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    let message = format!(
        "starting a private {} server ({})",
        program.version,
        program.path.display()
    );
    let connections = most_connections(connections);
    let arguments = [&[connections.as_str()], DURABLE].concat();
    let _hold = interrupt::hold();
    let started = progress::waiting(&message, || {
        PrivateServer::start(program, &arguments, interrupt::stop())
    });
    while_running(started, std::slice::from_ref, |server| work(program, server))
}

/// Runs `work` with the nodes of a private cluster that each accept `connections` and a few more. Otherwise the same as
/// [`with_private_server`]. The nodes have the defaults of their clusters: Galera writes no binary log.
///
/// # Errors
/// There is no server program, a node does not start or join, a folder cannot be removed, or `work` fails.
pub fn with_private_cluster(
    nodes: u32,
    connections: u32,
    work: impl FnOnce(&[PrivateServer]) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    let program = find()?;
    let message = format!(
        "starting a private cluster of {nodes} nodes of {}",
        program.version
    );
    let connections = most_connections(connections);
    let _hold = interrupt::hold();
    let started = progress::waiting(&message, || {
        PrivateCluster::start(&program, nodes as usize, &[&connections], interrupt::stop())
    });
    while_running(started, PrivateCluster::nodes, |cluster| work(cluster.nodes()))
}

fn most_connections(connections: u32) -> String {
    format!("--max-connections={}", connections + 10)
}

/// Runs `work` with what was started, stops its servers, and checks that their folders are removed.
fn while_running<T>(
    started: Result<T, StartError>,
    servers: impl Fn(&T) -> &[PrivateServer],
    work: impl FnOnce(&T) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    let running = match started {
        Ok(running) => running,
        Err(StartError::Interrupted) => return Ok(reported(Outcome::Interrupted)),
        Err(error) => return Err(error.into()),
    };
    let worked = work(&running);
    if worked.is_err() {
        for server in servers(&running) {
            note!("the last lines of the server's log:\n{}", server.last_log_lines());
        }
    }
    let folders: Vec<_> = servers(&running)
        .iter()
        .map(|server| server.folder().to_owned())
        .collect();
    drop(running);
    for folder in folders {
        ensure!(
            !folder.exists(),
            "the server's folder could not be removed: {}",
            folder.display()
        );
    }
    worked.map(reported)
}

/// Tells the user that an interrupted command has cleaned up.
fn reported(outcome: Outcome) -> Outcome {
    if outcome == Outcome::Interrupted {
        note!("interrupted; the server is stopped and its files are removed");
    }
    outcome
}
