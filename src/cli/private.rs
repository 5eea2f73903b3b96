//! A private server for a command, removed when the command ends, also after Ctrl-C.

use anyhow::ensure;

use super::interrupt;
use super::output::{Outcome, note};
use crate::server::{self, PrivateServer, Program, StartError};

/// The binary log settings of a server with a replica, which are the defaults of MySQL. MariaDB has no binary log by
/// default, and without one it releases row locks before the commit is on disk.
const DURABLE: [&str; 3] = ["--log-bin", "--sync-binlog=1", "--server-id=1"];

/// Runs `work` with a private server that has durable settings and accepts `connections` and a few more. Stops the
/// server and removes its files when `work` returns, also with an error.
pub fn with_private_server(
    connections: u32,
    work: impl FnOnce(&Program, &PrivateServer) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    let program = server::find()?;
    note!("starting a private {} server ({})", program.version, program.path.display());
    let most = format!("--max-connections={}", connections + 10);
    let stop = interrupt::hold();
    let server = match PrivateServer::start(&program, &[&[most.as_str()], &DURABLE[..]].concat(), stop) {
        Err(StartError::Interrupted) => return Ok(reported(Outcome::Interrupted)),
        started => started?,
    };
    let worked = work(&program, &server);
    if worked.is_err() {
        note!("the last lines of the server's log:\n{}", server.last_log_lines());
    }
    let folder = server.folder().to_owned();
    drop(server);
    ensure!(!folder.exists(), "the server's folder could not be removed: {}", folder.display());
    worked.map(reported)
}

/// Tells the user that an interrupted command has cleaned up.
fn reported(outcome: Outcome) -> Outcome {
    if outcome == Outcome::Interrupted {
        note!("interrupted; the server is stopped and its files are removed");
    }
    outcome
}
