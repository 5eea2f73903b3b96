//! Closed-loop load: each connection sends its next statement when the one before has been answered.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Statement};
use rand::RngExt;
use rand_distr::Zipf;

use super::contender::{Contender, Who, values};
use super::{Setting, Target};

/// What was seen of a load.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What was measured, as a report names it.
    pub name: &'static str,
    /// What the increments that the server has acknowledged add up to, committed ones where they are held.
    pub done: u64,
    /// From the first statement to the last answer.
    pub elapsed: Duration,
    /// Time of each increment, with its transaction where it is held, microseconds.
    pub increments: Histogram<u64>,
    /// Time of each read, microseconds.
    pub reads: Histogram<u64>,
    /// How much the contender's own total has grown meanwhile: [`done`](Self::done), or it cannot count.
    pub grown: i64,
    /// Increments that the server has refused, by the number of the error. They are not counted as done.
    pub refused: BTreeMap<u16, u64>,
    /// How often a row lock was waited for meanwhile, by anybody on the server. Source: MySQL manual, status variable
    /// Innodb_row_lock_waits.
    pub row_lock_waits: u64,
    /// What the server took meanwhile of the time of its processors, all its threads, waiting for none; None where its
    /// process is not ours, or not on Linux.
    pub server_cpu: Option<Duration>,
}

impl Measured {
    /// Increments and reads a second.
    pub fn rate(&self) -> f64 {
        self.calls() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// What a call cost the server of the time of its processors, microseconds.
    pub fn server_cpu_us(&self) -> Option<f64> {
        Some(self.server_cpu?.as_secs_f64() * 1e6 / self.calls().max(1.0))
    }

    fn calls(&self) -> f64 {
        (self.increments.len() + self.reads.len()) as f64
    }
}

/// What one connection has seen.
struct Seen {
    /// Increments before the clock started.
    warm: u64,
    begin: Instant,
    end: Instant,
    increments: Histogram<u64>,
    reads: Histogram<u64>,
    refused: BTreeMap<u16, u64>,
}

/// Errors after which a transaction is repeated; an application has to expect them.
/// Source: MySQL manual, "How to Minimize and Handle Deadlocks"; MariaDB's documentation of innodb_snapshot_isolation.
const TO_BE_REPEATED: [u16; 3] = [1213, 1205, 1020];

/// Lets all connections count, each in a loop, for as long as the setting says. Setting `interrupted` ends it early.
///
/// All connections are open, and have counted for [`Setting::warm_up`], before the first statement that is measured. What
/// they have counted so is in `done` and not in the rate.
///
/// # Errors
/// The first error of any connection that is none to be repeated; then all stop.
pub fn run(
    contender: &Contender,
    target: &Target,
    setting: &Setting,
    interrupted: &AtomicBool,
) -> Result<Measured, mysql::Error> {
    let connections = (0..setting.connections)
        .map(|_| Conn::new(target.options.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut observer = Conn::new(target.options.clone())?;
    let before = total(contender, &mut observer)?;
    // One more than connections: the clock of the server's processors is read when they are ready.
    let barrier = Barrier::new(connections.len() + 1);
    let stop = AtomicBool::new(false);
    let work = |number: u32, mut connection: Conn| -> Result<Seen, mysql::Error> {
        let goes_on = || !stop.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed);
        let failed = |_: &mysql::Error| stop.store(true, Ordering::Relaxed);
        let count_for = |duration, connection: &mut Conn, statements: &_| {
            count(
                contender, setting, number, connection, statements, duration, goes_on,
            )
        };
        let warm = prepared(contender, &mut connection).and_then(|statements| {
            let seen = count_for(setting.warm_up(), &mut connection, &statements)?;
            Ok((statements, seen.increments.len()))
        });
        let warm = warm.inspect_err(failed);
        // Everybody gets here, with or without a statement: the others wait.
        barrier.wait();
        let (statements, warm) = warm?;
        let seen = count_for(setting.duration, &mut connection, &statements);
        seen.map(|seen| Seen { warm, ..seen }).inspect_err(failed)
    };
    let (seen, waits, server_cpu) = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = connections
            .into_iter()
            .zip(1..)
            .map(|(connection, number)| scope.spawn(move || work(number, connection)))
            .collect();
        barrier.wait();
        let before = target.process.and_then(processor_time);
        let waits = row_lock_waits(&mut observer);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let seen = threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()?;
        let after = target.process.and_then(processor_time);
        let server_cpu = before.zip(after).map(|(before, after)| after - before);
        Ok::<_, mysql::Error>((seen, waits?, server_cpu))
    })?;

    let begin = seen.iter().map(|seen| seen.begin).min();
    let end = seen.iter().map(|seen| seen.end).max();
    let mut measured = Measured {
        name: contender.name,
        done: seen
            .iter()
            .map(|one| one.warm + one.increments.len())
            .sum::<u64>()
            * u64::from(setting.amount),
        elapsed: begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end - begin),
        increments: histogram(),
        reads: histogram(),
        grown: total(contender, &mut observer)? - before,
        refused: BTreeMap::new(),
        row_lock_waits: row_lock_waits(&mut observer)? - waits,
        server_cpu,
    };
    for one in seen {
        let sums = [
            (&mut measured.increments, one.increments),
            (&mut measured.reads, one.reads),
        ];
        for (sum, histogram) in sums {
            sum.add(histogram).expect("histograms of one precision add up");
        }
        for (error, times) in one.refused {
            *measured.refused.entry(error).or_default() += times;
        }
    }
    Ok(measured)
}

fn total(contender: &Contender, connection: &mut Conn) -> Result<i64, mysql::Error> {
    let total: Option<i64> = connection.query_first(&contender.total)?;
    Ok(total.expect("a sum is a row"))
}

fn row_lock_waits(connection: &mut Conn) -> Result<u64, mysql::Error> {
    let row: Option<(String, u64)> =
        connection.query_first("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'")?;
    Ok(row.map_or(0, |(_, waits)| waits))
}

/// What all threads of a process have taken of the time of its processors, by the clock of the system: its ticks are 10
/// milliseconds on most. Source: proc_pid_stat(5), utime and stime.
#[cfg(target_os = "linux")]
fn processor_time(process: u32) -> Option<Duration> {
    let stat = procfs::process::Process::new(process.try_into().ok()?)
        .ok()?
        .stat()
        .ok()?;
    Some(Duration::from_secs_f64(
        (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
    ))
}

#[cfg(not(target_os = "linux"))]
fn processor_time(_process: u32) -> Option<Duration> {
    None
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are a valid precision")
}

/// The statements of one connection.
fn prepared(contender: &Contender, connection: &mut Conn) -> Result<(Statement, Statement), mysql::Error> {
    Ok((
        connection.prep(&contender.increment.sql)?,
        connection.prep(&contender.read.sql)?,
    ))
}

/// The loop of one connection.
fn count(
    contender: &Contender,
    setting: &Setting,
    number: u32,
    connection: &mut Conn,
    (increment, read): &(Statement, Statement),
    duration: Duration,
    goes_on: impl Fn() -> bool,
) -> Result<Seen, mysql::Error> {
    let mut random = rand::rng();
    let zipf = Zipf::new(f64::from(setting.counters), setting.zipf).expect("checked with the flags");
    let begin = Instant::now();
    let mut seen = Seen {
        warm: 0,
        begin,
        end: begin,
        increments: histogram(),
        reads: histogram(),
        refused: BTreeMap::new(),
    };
    while seen.end - begin < duration && goes_on() {
        let counter = if setting.counters == 1 {
            1
        } else {
            random.sample(zipf) as u32
        };
        let who = Who::counting(number, counter, setting);
        let reads = setting.reads > 0.0 && random.random_bool(setting.reads);
        let (statement, query) = if reads {
            (read, &contender.read)
        } else {
            (increment, &contender.increment)
        };
        let values = Params::Positional(values(query, who, setting));
        let result = match setting.hold {
            Some(hold) if !reads => transaction(connection, statement, values, hold),
            _ => connection.exec_drop(statement, values),
        };
        let now = Instant::now();
        let histogram = if reads {
            &mut seen.reads
        } else {
            &mut seen.increments
        };
        match result {
            Ok(()) => histogram
                .record((now - seen.end).as_micros() as u64)
                .expect("the histogram grows with the time"),
            Err(mysql::Error::MySqlError(error)) if TO_BE_REPEATED.contains(&error.code) => {
                *seen.refused.entry(error.code).or_default() += 1;
                if setting.hold.is_some() && !reads {
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
