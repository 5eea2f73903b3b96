//! Closed-loop load: each connection sends its next statement when the one before has been answered.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, Params, Statement};
use rand::RngExt;
use rand_distr::Zipf;

use super::Setting;
use super::contender::{Contender, Who, values};

/// What was seen of a load.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What was measured, as a report names it.
    pub name: &'static str,
    /// Increments that the server has acknowledged, committed ones where they are held.
    pub done: u64,
    /// From the first statement to the last answer.
    pub elapsed: Duration,
    /// Time of each, microseconds.
    pub latency: Histogram<u64>,
    /// How much the contender's own total has grown meanwhile: [`done`](Self::done), or it cannot count.
    pub grown: i64,
    /// Increments that the server has refused, by the number of the error. They are not counted as done.
    pub refused: BTreeMap<u16, u64>,
}

impl Measured {
    /// Increments a second.
    pub fn rate(&self) -> f64 {
        self.done as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The latency, in milliseconds, that the fraction `quantile` of the increments did not exceed.
    pub fn latency_ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1000.0
    }
}

/// What one connection has seen.
struct Seen {
    begin: Instant,
    end: Instant,
    latency: Histogram<u64>,
    refused: BTreeMap<u16, u64>,
}

/// Errors after which a transaction is repeated; an application has to expect them.
/// Source: MySQL manual, "How to Minimize and Handle Deadlocks"; MariaDB's documentation of innodb_snapshot_isolation.
const TO_BE_REPEATED: [u16; 3] = [1213, 1205, 1020];

/// Lets all connections count, each in a loop, for as long as the setting says. Setting `interrupted` ends it early.
///
/// All connections are open before the first statement is sent.
///
/// # Errors
/// The first error of any connection that is none to be repeated; then all stop.
pub fn run(
    contender: &Contender,
    options: &Opts,
    setting: &Setting,
    interrupted: &AtomicBool,
) -> Result<Measured, mysql::Error> {
    let connections = (0..setting.connections)
        .map(|_| Conn::new(options.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let before = total(contender, options)?;
    let barrier = Barrier::new(connections.len());
    let stop = AtomicBool::new(false);
    let work = |number: u32, mut connection: Conn| -> Result<Seen, mysql::Error> {
        let prepared = connection.prep(&contender.increment.sql);
        // Everybody gets here, with or without a statement: the others wait.
        barrier.wait();
        let prepared = prepared.inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        let goes_on = || !stop.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed);
        let seen = count(contender, setting, number, &mut connection, &prepared, goes_on);
        seen.inspect_err(|_| stop.store(true, Ordering::Relaxed))
    };
    let seen = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = connections
            .into_iter()
            .zip(1..)
            .map(|(connection, number)| scope.spawn(move || work(number, connection)))
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    })?;

    let begin = seen.iter().map(|seen| seen.begin).min();
    let end = seen.iter().map(|seen| seen.end).max();
    let mut measured = Measured {
        name: contender.name,
        done: 0,
        elapsed: begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end - begin),
        latency: histogram(),
        grown: total(contender, options)? - before,
        refused: BTreeMap::new(),
    };
    for one in seen {
        measured
            .latency
            .add(one.latency)
            .expect("histograms of one precision add up");
        for (error, times) in one.refused {
            *measured.refused.entry(error).or_default() += times;
        }
    }
    measured.done = measured.latency.len();
    Ok(measured)
}

fn total(contender: &Contender, options: &Opts) -> Result<i64, mysql::Error> {
    let total: Option<i64> = Conn::new(options.clone())?.query_first(&contender.total)?;
    Ok(total.expect("a sum is a row"))
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are a valid precision")
}

/// The loop of one connection.
fn count(
    contender: &Contender,
    setting: &Setting,
    number: u32,
    connection: &mut Conn,
    prepared: &Statement,
    goes_on: impl Fn() -> bool,
) -> Result<Seen, mysql::Error> {
    let mut random = rand::rng();
    let zipf = Zipf::new(f64::from(setting.counters), setting.zipf).expect("checked with the flags");
    let begin = Instant::now();
    let mut seen = Seen {
        begin,
        end: begin,
        latency: histogram(),
        refused: BTreeMap::new(),
    };
    while seen.end - begin < setting.duration && goes_on() {
        let counter = if setting.counters == 1 {
            1
        } else {
            random.sample(zipf) as u32
        };
        let who = Who {
            connection: number,
            counter,
            slot: 1,
        };
        let values = Params::Positional(values(&contender.increment, who, setting));
        let result = match setting.hold {
            None => connection.exec_drop(prepared, values),
            Some(hold) => transaction(connection, prepared, values, hold),
        };
        let now = Instant::now();
        match result {
            Ok(()) => seen
                .latency
                .record((now - seen.end).as_micros() as u64)
                .expect("the histogram grows with the time"),
            Err(mysql::Error::MySqlError(error)) if TO_BE_REPEATED.contains(&error.code) => {
                *seen.refused.entry(error.code).or_default() += 1;
                if setting.hold.is_some() {
                    connection.query_drop("ROLLBACK")?;
                }
            }
            Err(error) => return Err(error),
        }
        seen.end = now;
    }
    Ok(seen)
}

fn transaction(
    connection: &mut Conn,
    prepared: &Statement,
    values: Params,
    hold: Duration,
) -> Result<(), mysql::Error> {
    connection.query_drop("START TRANSACTION")?;
    connection.exec_drop(prepared, values)?;
    thread::sleep(hold);
    connection.query_drop("COMMIT")
}
