//! A private server for a command, gone when the command ends, also after Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use indicatif::ProgressBar;

use super::{Hinted, Outcome};
use crate::server::{self, PrivateServer, Program, StartError};

/// What a server with a replica has and MySQL has by default: a binary log that survives a crash. MariaDB has none by
/// default, and lets others at a row before the commit is on disk.
const DURABLE: &[&str] = &["--log-bin", "--sync-binlog=1", "--server-id=1"];

/// A flag that Ctrl-C sets.
///
/// # Errors
/// Where the system takes no handler.
pub fn on_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).context("cannot handle Ctrl-C")?;
    Ok(interrupted)
}

/// Runs `work` with a private server of durable settings, which takes so many connections of `work` and some more. In
/// the end the server is stopped and its files are gone, whatever `work` did.
///
/// # Errors
/// Where there is no server program, where it does not start, and those of `work`.
pub fn with_private_server(
    connections: u32,
    interrupted: &AtomicBool,
    work: impl FnOnce(&Program, &PrivateServer) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    on_private_server(&find()?, connections, interrupted, work)
}

/// The server program that a command uses unless it is given another.
///
/// # Errors
/// If there is no server program.
pub fn find() -> anyhow::Result<Program> {
    server::find().map_err(|error| {
        let (message, hint) = (error.to_string(), error.hint().to_owned());
        Hinted { message, hint }.into()
    })
}

/// The same as [`with_private_server`], with a given server program.
///
/// # Errors
/// If the server does not start, and errors of `work`.
pub fn on_private_server(
    program: &Program,
    connections: u32,
    interrupted: &AtomicBool,
    work: impl FnOnce(&Program, &PrivateServer) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    let spinner = ProgressBar::new_spinner();
    spinner.set_message(format!(
        "starting a private {} server ({})",
        program.version,
        program.path.display()
    ));
    spinner.enable_steady_tick(Duration::from_millis(100));
    let connections = format!("--max-connections={}", connections + 10);
    let started = PrivateServer::start(program, &[&[connections.as_str()], DURABLE].concat(), interrupted);
    spinner.finish_and_clear();
    let server = match started {
        Ok(server) => server,
        Err(StartError::Interrupted) => return Ok(said(Outcome::Interrupted)),
        Err(error) => return Err(error.into()),
    };
    let worked = work(program, &server);
    if worked.is_err() {
        eprintln!("the server's log ends with:\n{}", server.last_log_lines());
    }
    let folder = server.folder().to_owned();
    drop(server);
    ensure!(
        !folder.exists(),
        "the server's folder could not be removed: {}",
        folder.display()
    );
    worked.map(said)
}

fn said(outcome: Outcome) -> Outcome {
    if outcome == Outcome::Interrupted {
        eprintln!("interrupted; the server is stopped and its files are removed");
    }
    outcome
}
