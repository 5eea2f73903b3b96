//! Closed-loop load: each connection sends its next statement when the one before has been answered.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts};

/// How much load, for how long.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Connections that all send at once.
    pub connections: usize,
    /// How long they send. A statement that is under way then is finished.
    pub duration: Duration,
}

/// What was seen of a load.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What was measured, as a report names it.
    pub name: String,
    /// Statements that the server has acknowledged.
    pub done: u64,
    /// From the first statement to the last answer.
    pub elapsed: Duration,
    /// Time of each statement, microseconds.
    pub latency: Histogram<u64>,
}

impl Measured {
    /// Statements a second.
    pub fn rate(&self) -> f64 {
        self.done as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The latency, in milliseconds, that the fraction `quantile` of the statements did not exceed.
    pub fn latency_ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1000.0
    }
}

/// Sends `statement`, prepared, over and over from all connections. Setting `interrupted` ends it early.
///
/// All connections are open before the first statement is sent.
///
/// # Errors
/// The first error of any connection; then all stop.
pub fn run(
    name: &str,
    options: &Opts,
    statement: &str,
    load: Load,
    interrupted: &AtomicBool,
) -> Result<Measured, mysql::Error> {
    let connections = (0..load.connections)
        .map(|_| Conn::new(options.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let barrier = Barrier::new(load.connections);
    let stop = AtomicBool::new(false);
    let work = |mut connection: Conn| -> Result<(Instant, Instant, Histogram<u64>), mysql::Error> {
        let mut latency = Histogram::new(3).expect("three digits are a valid precision");
        let prepared = connection.prep(statement);
        // Everybody gets here, with or without a statement: the others wait.
        barrier.wait();
        let prepared = prepared.inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        let begin = Instant::now();
        let mut last = begin;
        while last - begin < load.duration
            && !stop.load(Ordering::Relaxed)
            && !interrupted.load(Ordering::Relaxed)
        {
            connection
                .exec_drop(&prepared, ())
                .inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            let now = Instant::now();
            latency
                .record((now - last).as_micros() as u64)
                .expect("the histogram grows with the time");
            last = now;
        }
        Ok((begin, last, latency))
    };
    let results = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = connections
            .into_iter()
            .map(|connection| scope.spawn(move || work(connection)))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect::<Result<Vec<_>, _>>()
    })?;

    let begin = results.iter().map(|(begin, ..)| *begin).min();
    let end = results.iter().map(|(_, end, _)| *end).max();
    let elapsed = begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end - begin);
    let mut latency = Histogram::new(3).expect("three digits are a valid precision");
    for (.., one) in &results {
        latency.add(one).expect("histograms of one precision add up");
    }
    Ok(Measured {
        name: name.to_owned(),
        done: latency.len(),
        elapsed,
        latency,
    })
}
