//! The progress of work on stderr: a bar on a terminal, and lines elsewhere, such as in the log of a CI job.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::output::note;

/// The minimum time between two lines, except for the last one.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// The progress of running work. Threads can share it.
pub struct Progress {
    bar: ProgressBar,
    scale: Scale,
    begin: Instant,
    /// None if the bar is visible.
    lines: Option<Mutex<Lines>>,
}

/// What is known about the end of the work.
#[derive(Clone, Copy)]
enum Scale {
    Unknown,
    /// The expected duration.
    About(Duration),
    /// The number of units.
    Units(u64),
}

#[derive(Default)]
struct Lines {
    printed: Option<Instant>,
    /// Whether something has changed after the last line.
    pending: bool,
}

/// Runs `work` of an unknown duration.
pub fn waiting<T: Send>(message: &str, work: impl FnOnce() -> T + Send) -> T {
    let progress = Progress::new(ProgressBar::new_spinner(), Scale::Unknown);
    progress.message(message);
    progress.follow(|_| work())
}

/// Runs `work` that takes about `expected`.
pub fn during<T: Send>(expected: Duration, work: impl FnOnce(&Progress) -> T + Send) -> T {
    let bar = ProgressBar::new(expected.as_millis() as u64);
    let template = format!(
        "{{msg:28}} {{wide_bar}} {{elapsed}} of about {:.0}s",
        expected.as_secs_f64()
    );
    bar.set_style(style(&template));
    Progress::new(bar, Scale::About(expected)).follow(work)
}

/// Runs `work` of `total` units, of which it reports the completed ones with [`Progress::advance`].
pub fn counted<T: Send>(total: u64, work: impl FnOnce(&Progress) -> T + Send) -> T {
    let bar = ProgressBar::new(total);
    bar.set_style(style(
        "{msg:28} {wide_bar} {human_pos} of {human_len}, {per_sec}, {eta} left",
    ));
    Progress::new(bar, Scale::Units(total)).follow(work)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is valid")
}

impl Progress {
    fn new(bar: ProgressBar, scale: Scale) -> Self {
        // Without a terminal, the bar is hidden.
        let lines = bar.is_hidden().then(Mutex::default);
        Self {
            bar,
            scale,
            begin: Instant::now(),
            lines,
        }
    }

    /// Sets the text about the current part of the work.
    pub fn message(&self, text: &str) {
        self.bar.set_message(text.to_owned());
        self.changed();
    }

    /// Reports that `units` more are done.
    pub fn advance(&self, units: u64) {
        self.bar.inc(units);
        self.changed();
    }

    fn follow<T: Send>(self, work: impl FnOnce(&Self) -> T + Send) -> T {
        let result = thread::scope(|scope| {
            let running = scope.spawn(|| work(&self));
            while !running.is_finished() {
                if let Scale::About(expected) = self.scale {
                    self.bar
                        .set_position(self.begin.elapsed().min(expected).as_millis() as u64);
                } else {
                    self.bar.tick();
                }
                self.print(false);
                thread::sleep(Duration::from_millis(50));
            }
            running
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        self.print(true);
        self.bar.finish_and_clear();
        result
    }

    fn changed(&self) {
        if let Some(lines) = &self.lines {
            lines.lock().unwrap_or_else(PoisonError::into_inner).pending = true;
            self.print(false);
        }
    }

    /// Prints a line if something has changed, and the time for the next line or the end has come.
    fn print(&self, end: bool) {
        let Some(lines) = &self.lines else { return };
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        let due = lines.printed.is_none_or(|at| at.elapsed() >= BETWEEN_LINES);
        if lines.pending && (due || end) {
            let (done, message) = (self.bar.position(), self.bar.message());
            note!("{}", line(self.scale, self.begin.elapsed(), done, &message));
            lines.printed = Some(Instant::now());
            lines.pending = false;
        }
    }
}

/// A line about work that has run for `elapsed`, and has `done` units if they are known.
fn line(scale: Scale, elapsed: Duration, done: u64, message: &str) -> String {
    let seconds = elapsed.as_secs_f64();
    match scale {
        Scale::Unknown => format!("[{seconds:>4.0} s] {message}"),
        Scale::About(expected) => {
            format!(
                "[{seconds:>4.0} s of about {:.0} s] {message}",
                expected.as_secs_f64()
            )
        }
        Scale::Units(total) => {
            let rate = done as f64 / seconds.max(1e-9);
            let mut line = format!("[{seconds:>4.0} s] {done} of {total}");
            if (1..total).contains(&done) {
                let left = (total - done) as f64 / rate;
                line += &format!(", {rate:.0}/s, about {left:.0} s left");
            }
            format!("{line}: {message}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_elapsed_and_the_remaining_time() {
        let line = |scale, seconds, done| line(scale, Duration::from_secs(seconds), done, "rows");
        assert_eq!(line(Scale::Unknown, 2, 0), "[   2 s] rows");
        let about = Scale::About(Duration::from_secs(96));
        assert_eq!(line(about, 12, 0), "[  12 s of about 96 s] rows");
        let units = Scale::Units(5000);
        assert_eq!(line(units, 0, 0), "[   0 s] 0 of 5000: rows");
        assert_eq!(
            line(units, 10, 2000),
            "[  10 s] 2000 of 5000, 200/s, about 15 s left: rows"
        );
        assert_eq!(line(units, 25, 5000), "[  25 s] 5000 of 5000: rows");
    }

    #[test]
    fn work_of_known_units_returns_its_result() {
        let sum = counted(3, |progress| {
            progress.message("threads");
            thread::scope(|scope| {
                (0..3).for_each(|_| drop(scope.spawn(|| progress.advance(1))));
            });
            progress.bar.position()
        });
        assert_eq!(sum, 3);
    }
}
