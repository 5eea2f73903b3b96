//! Ctrl-C, SIGTERM and SIGHUP end the program at once, unless a command [holds](hold) something that it removes first: then it looks at
//! [`stop`].

use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context;

use super::Outcome;

static STOP: AtomicBool = AtomicBool::new(false);
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Handles the signals from now on.
///
/// # Errors
/// The system rejects the handler.
pub fn handle() -> anyhow::Result<()> {
    let handler = || {
        STOP.store(true, Ordering::SeqCst);
        if HELD.load(Ordering::SeqCst) == 0 {
            process::exit(Outcome::INTERRUPTED.into());
        }
    };
    ctrlc::set_handler(handler).context("cannot handle Ctrl-C")
}

/// The flag that is set when the command has to end.
pub fn stop() -> &'static AtomicBool {
    &STOP
}

/// While this value exists, a signal does not end the program: the command removes what it has created.
#[derive(Debug)]
pub struct Hold(());

/// A hold.
pub fn hold() -> Hold {
    HELD.fetch_add(1, Ordering::SeqCst);
    Hold(())
}

impl Drop for Hold {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::SeqCst);
    }
}
