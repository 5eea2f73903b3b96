//! A progress bar for work of a known duration.

use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Runs `work` with a progress bar that is full after `expected`. `work` can set the message of the bar.
pub fn during<T: Send>(expected: Duration, work: impl FnOnce(&ProgressBar) -> T + Send) -> T {
    let bar = ProgressBar::new(expected.as_millis() as u64);
    let style = ProgressStyle::with_template("{msg:28} {wide_bar} {elapsed}");
    bar.set_style(style.expect("the template is valid"));
    let result = thread::scope(|scope| {
        let running = scope.spawn(|| work(&bar));
        let start = Instant::now();
        while !running.is_finished() {
            bar.set_position(start.elapsed().min(expected).as_millis() as u64);
            thread::sleep(Duration::from_millis(50));
        }
        running
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    bar.finish_and_clear();
    result
}
