//! Runs the promises: which of them run at the same time, the progress, and what took long.
//!
//! The test runner starts a thread for each promise. The thread waits for a place in the lane of its promise, so that the
//! promises that wait for time-outs run while others compute.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Conclusion};

use super::promises::Promise;

/// A number of places. A promise runs when it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// A server by its number, for a promise that runs alone on it.
    Server(usize),
    /// A part of the processors.
    Computes,
    /// Almost nothing, because the promise waits.
    Waits,
    /// The cluster. There is one at a time, because three nodes take 0.6 to 2 GB.
    Cluster,
}

/// The number of lanes. More servers than this, which only SLOTTED_TEST_URLS can name, share lanes.
const LANES: usize = 12;

impl Lane {
    fn index(self) -> usize {
        match self {
            Self::Computes => 0,
            Self::Waits => 1,
            Self::Cluster => 2,
            Self::Server(number) => 3 + number % (LANES - 3),
        }
    }

    /// The number of promises of a lane that run at the same time, at the begin of the run.
    fn places(index: usize) -> usize {
        match index {
            // A promise waits a quarter of its time, for locks and for commits.
            0 => thread::available_parallelism().map_or(1, usize::from) + 1,
            1 => 2,
            _ => 1,
        }
    }
}

/// The run of this process.
static RUN: Mutex<Run> = Mutex::new(Run::new());
/// Notified at the end of the run.
static ENDED: Condvar = Condvar::new();

struct Run {
    /// The promises that have not come yet. The first places are taken when all are there, in the order of the promises.
    absent: usize,
    free: [usize; LANES],
    waiting: [BTreeMap<usize, Thread>; LANES],
    total: usize,
    failed: usize,
    /// The names of the promises that have run, and how long they took.
    done: Vec<(String, Duration)>,
    ended: bool,
}

impl Run {
    const fn new() -> Self {
        Self {
            absent: 0,
            free: [0; LANES],
            waiting: [const { BTreeMap::new() }; LANES],
            total: 0,
            failed: 0,
            done: Vec::new(),
            ended: false,
        }
    }

    /// Gives the free places of a lane to the first promises that wait for one.
    fn admit(&mut self, lane: usize) {
        while self.absent == 0 && self.free[lane] > 0 {
            let Some((_, thread)) = self.waiting[lane].pop_first() else {
                return;
            };
            self.free[lane] -= 1;
            thread.unpark();
        }
    }
}

fn run() -> MutexGuard<'static, Run> {
    RUN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Lets the others begin without a promise that waits for its program.
pub fn begin_without() {
    let mut state = run();
    state.absent = state.absent.saturating_sub(1);
    (0..LANES).for_each(|lane| state.admit(lane));
}

/// Starts no further promise.
pub fn stop() {
    run().absent = usize::MAX;
}

/// A place in each lane of a promise, until it is dropped.
pub struct Place<'a> {
    lanes: &'a [Lane],
    name: &'a str,
    begin: Instant,
}

impl<'a> Place<'a> {
    /// Waits for the places. Those with a lower number get theirs first. A promise that needs a program waits for it before.
    pub fn take(lanes: &'a [Lane], number: usize, name: &'a str, waits_for_program: bool) -> Self {
        for (at, lane) in lanes.iter().map(|lane| lane.index()).enumerate() {
            let mut state = run();
            state.waiting[lane].insert(number, thread::current());
            if at == 0 && !waits_for_program {
                state.absent = state.absent.saturating_sub(1);
            }
            (0..LANES).for_each(|lane| state.admit(lane));
            while state.waiting[lane].contains_key(&number) {
                drop(state);
                thread::park();
                state = run();
            }
        }
        Self {
            lanes,
            name,
            begin: Instant::now(),
        }
    }

    /// Runs a promise. Prints how to run it alone if it fails.
    pub fn run(self, promise: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        let result = panic::catch_unwind(AssertUnwindSafe(promise));
        if !matches!(result, Ok(Ok(()))) {
            run().failed += 1;
            eprintln!(
                "{} failed. To run it alone: scripts/test {}",
                self.name, self.name
            );
        }
        result.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = run();
        for lane in self.lanes.iter().map(|lane| lane.index()) {
            state.free[lane] += 1;
            state.admit(lane);
        }
        state.done.push((self.name.to_owned(), self.begin.elapsed()));
    }
}

/// Runs the promises that the arguments select.
pub fn promises(promises: Vec<Promise>, mut arguments: Arguments) -> Conclusion {
    let is_selected =
        |promise: &&Promise| promise.left_out.is_none() && is_selected(&arguments, &promise.name);
    let selected = promises.iter().filter(is_selected).count();
    let left_out = promises
        .iter()
        .filter(|promise| promise.left_out.is_some())
        .count();
    if left_out > 0 && !arguments.list {
        eprintln!(
            "{left_out} promises are ignored, because SLOTTED_TEST_URLS has no private server or program for them"
        );
    }
    let trials: Vec<_> = promises
        .into_iter()
        .enumerate()
        .map(|(number, promise)| promise.into_trial(number))
        .collect();
    let threads = *arguments.test_threads.get_or_insert(selected.max(2));
    {
        let mut state = run();
        (state.total, state.absent) = (selected, selected.min(threads));
        state.free = std::array::from_fn(Lane::places);
    }
    if arguments.list {
        return libtest_mimic::run(&arguments, trials);
    }
    let begin = Instant::now();
    let conclusion = thread::scope(|scope| {
        scope.spawn(|| print_progress(begin));
        let conclusion = libtest_mimic::run(&arguments, trials);
        run().ended = true;
        ENDED.notify_all();
        conclusion
    });
    if selected > 1 {
        print_times(begin);
    }
    conclusion
}

/// Whether the test runner runs a test.
fn is_selected(arguments: &Arguments, name: &str) -> bool {
    let matches = |filter: &String| {
        if arguments.exact {
            name == filter
        } else {
            name.contains(filter.as_str())
        }
    };
    arguments.filter.as_ref().is_none_or(matches) && !arguments.skip.iter().any(matches)
}

/// The interval of the lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);

/// Prints a line of progress in an interval, until the run has ended.
fn print_progress(begin: Instant) {
    let mut state = run();
    loop {
        let (next, timeout) = ENDED
            .wait_timeout(state, PROGRESS)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        state = next;
        if state.ended {
            return;
        }
        if timeout.timed_out() {
            let (done, total, failed) = (state.done.len(), state.total, state.failed);
            eprintln!(
                "promises: {done} of {total} done, {} left, {failed} failed, {}",
                total - done,
                minutes(begin.elapsed())
            );
        }
    }
}

/// Prints the phases of the run and the promises that took longest.
fn print_times(begin: Instant) {
    let mut done = std::mem::take(&mut run().done);
    done.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    eprintln!("\nThe promises that took longest:");
    for (name, took) in done.iter().take(20) {
        eprintln!("{:>7.1} s  {name}", took.as_secs_f64());
    }
    eprintln!("\nThe phases:");
    // scripts/test has measured those before the promises.
    for phase in std::env::var("SLOTTED_TEST_PHASES")
        .unwrap_or_default()
        .split_terminator(';')
    {
        eprintln!("  {}", phase.trim());
    }
    eprintln!("  promises {}", minutes(begin.elapsed()));
}

/// A duration as `3 min 5 s`.
fn minutes(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    if seconds < 60 {
        format!("{seconds} s")
    } else {
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}
