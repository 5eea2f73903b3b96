//! Ctrl-C and SIGTERM, for all commands.
//!
//! A command that can end by itself looks at [`stop`]. Statements of its sessions that have not ended [`ORDERLY`] later are ended on
//! the server. A command that has not ended [`LAST`] later, for example because the server does not answer, ends without a result,
//! unless it [holds](hold) something that it must remove first.

use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::output::note;
use super::{Interrupted, Outcome};
use crate::connect;

/// The time in which a command ends by itself.
const ORDERLY: Duration = Duration::from_millis(250);

/// The time in which it ends with its statements ended.
const LAST: Duration = Duration::from_millis(600);

const INTERVAL: Duration = Duration::from_millis(20);

/// The time between two times that the statements are ended: the first one can come between two statements.
const REPEATED: Duration = Duration::from_millis(100);

static STOP: AtomicBool = AtomicBool::new(false);
/// The number of holds, and of those that a second Ctrl-C does not end.
static HELD: AtomicUsize = AtomicUsize::new(0);
static HELD_TWICE: AtomicUsize = AtomicUsize::new(0);

/// Handles Ctrl-C, SIGTERM and SIGHUP from now on. A second one ends the process at once.
///
/// # Errors
/// The system rejects the handler.
pub fn handle() -> anyhow::Result<()> {
    let handler = || {
        if !STOP.swap(true, Ordering::Relaxed) {
            thread::spawn(end);
        } else if HELD_TWICE.load(Ordering::Relaxed) == 0 {
            process::exit(Outcome::INTERRUPTED.into());
        }
    };
    ctrlc::set_handler(handler).context("cannot handle Ctrl-C")
}

/// The flag that is set when the command has to end.
pub fn stop() -> &'static AtomicBool {
    &STOP
}

/// Why the command has to end. None if it has not.
pub fn reason() -> Option<anyhow::Error> {
    STOP.load(Ordering::Relaxed).then(|| Interrupted.into())
}

/// While this value exists, a command that has to end is not ended before it has removed what it has created.
#[derive(Debug)]
pub struct Hold {
    twice: bool,
}

/// A hold. If `twice`, a second Ctrl-C does not end the command either.
pub fn hold(twice: bool) -> Hold {
    HELD.fetch_add(1, Ordering::Relaxed);
    HELD_TWICE.fetch_add(usize::from(twice), Ordering::Relaxed);
    Hold { twice }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
        HELD_TWICE.fetch_sub(usize::from(self.twice), Ordering::Relaxed);
    }
}

/// Ends the command if it does not do so itself.
fn end() {
    thread::sleep(ORDERLY);
    thread::spawn(|| {
        loop {
            connect::end_statements();
            thread::sleep(REPEATED);
        }
    });
    let mut begin = Instant::now();
    while begin.elapsed() < LAST {
        if HELD.load(Ordering::Relaxed) > 0 {
            begin = Instant::now();
        }
        thread::sleep(INTERVAL);
    }
    let unknown = "the server can still complete the statement that it executes";
    note!("{Interrupted}; {unknown}");
    process::exit(Outcome::INTERRUPTED.into());
}
