//! A bar that moves with the time while something runs.

use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Runs `work`, which will take about as long as `expected`, with a bar. `work` can set the bar's message.
pub fn during<T: Send>(expected: Duration, work: impl FnOnce(&ProgressBar) -> T + Send) -> T {
    let bar = ProgressBar::new(expected.as_millis() as u64);
    let style = ProgressStyle::with_template("{msg:28} {wide_bar} {elapsed}");
    bar.set_style(style.expect("a template that indicatif takes"));
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
