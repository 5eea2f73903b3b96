//! Ctrl-C, SIGTERM and SIGHUP end the program at once, unless a command [holds](hold) something that it removes first: then it looks at
//! [`stop`].

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use super::output::Outcome;

static STOP: AtomicBool = AtomicBool::new(false);
static HELD: AtomicBool = AtomicBool::new(false);

/// Handles the signals from now on.
pub fn handle() -> anyhow::Result<()> {
    let handler = || {
        STOP.store(true, Ordering::SeqCst);
        if !HELD.load(Ordering::SeqCst) {
            process::exit(Outcome::Interrupted as i32);
        }
    };
    ctrlc::set_handler(handler).context("cannot handle Ctrl-C")
}

/// The flag that is set when the command has to end.
pub fn stop() -> &'static AtomicBool {
    &STOP
}

/// From now on, a signal does not end the program but sets the flag: the command removes what it has created.
pub fn hold() -> &'static AtomicBool {
    HELD.store(true, Ordering::SeqCst);
    &STOP
}
