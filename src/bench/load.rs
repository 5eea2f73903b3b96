//! Closed-loop load: each connection sends its next statement after the answer to the previous one.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder, Params, Statement};
use rand::RngExt;
use rand_distr::Zipf;

use super::contender::{Statements, Who, values};
use super::{Setting, Target};
use crate::connect::statement_hides_waits;

/// How often a transaction that waits looks for the end of the load.
const INTERVAL: Duration = Duration::from_millis(100);

/// The result of a load.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The sum of the increments that the server acknowledged. With [`Setting::hold`], of the committed ones.
    pub done: u64,
    /// From the first statement to the last answer.
    pub elapsed: Duration,
    /// The latency of each increment, or of its transaction with [`Setting::hold`], microseconds.
    pub increments: Histogram<u64>,
    /// The latency of each read, microseconds.
    pub reads: Histogram<u64>,
    /// The counts that a call adds.
    pub counts: u32,
    /// The growth of the contender's total on each node. It is [`done`](Self::done) if the contender counts exactly.
    pub grown: Vec<i64>,
    /// How long after the load the last node of a cluster has applied all its increments. None without a cluster.
    pub behind: Option<Duration>,
    /// Calls that the server rejected, by error number and place. They are not in `done`.
    pub rejected: BTreeMap<(u16, At), u64>,
    /// The growth of the status variable Innodb_row_lock_waits of all nodes. A server counts the waits of all sessions, so this
    /// is None if it is not a private one.
    pub row_lock_waits: Option<u64>,
    /// The mean number of connections that wait for a row lock. None if the account has no privilege to read it, or if the
    /// load is too short for so many connections.
    pub waiting: Option<f64>,
    /// The CPU time of the threads of all nodes. None if they are not private servers, or the system is not Linux.
    pub server_cpu: Option<Duration>,
}

/// Where a call was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum At {
    /// A statement, which in autocommit contains the commit.
    Statement,
    /// The COMMIT of a transaction.
    Commit,
}

impl Measured {
    /// Counts and reads a second.
    pub fn rate(&self) -> f64 {
        self.calls() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The server's CPU time for a count or a read, microseconds.
    pub fn server_cpu_us(&self) -> Option<f64> {
        Some(self.server_cpu?.as_secs_f64() * 1e6 / self.calls().max(1.0))
    }

    /// The number of calls, also of those that the server rejected, and of these alone.
    pub fn tried(&self) -> (u64, u64) {
        let rejected = self.rejected.values().sum();
        (self.increments.len() + self.reads.len() + rejected, rejected)
    }

    fn calls(&self) -> f64 {
        (self.increments.len() * u64::from(self.counts) + self.reads.len()) as f64
    }
}

/// The result of one connection.
struct Seen {
    /// Increments of the warm-up.
    warm: u64,
    begin: Instant,
    end: Instant,
    increments: Histogram<u64>,
    reads: Histogram<u64>,
    rejected: BTreeMap<(u16, At), u64>,
}

/// Errors after which an application repeats its transaction. 1213, 1180 and 3101 are also the errors of transactions that
/// fail certification on a cluster, and 1047 is that of a node that has left a Galera cluster.
/// Source: MySQL manual, "How to Minimize and Handle Deadlocks", "Server Error Message Reference"; MariaDB's documentation of
/// innodb_snapshot_isolation; Galera's documentation, "wsrep_ready".
const TO_BE_REPEATED: [u16; 6] = [1213, 1205, 1020, 1180, 3101, 1047];

/// Loads the server with the statements of a contender from all connections of the setting. Setting `interrupted` ends
/// the load early.
///
/// All connections are open and have counted for [`Setting::warm_up`] before the first measured statement. The
/// increments of the warm-up are in `done`, but not in the rate.
///
/// # Errors
/// The first error of a connection after which an application does not repeat its transaction. All connections stop then.
pub fn run(
    statements: &Statements,
    target: &Target,
    setting: &Setting,
    interrupted: &AtomicBool,
) -> Result<Measured, mysql::Error> {
    let nodes = &target.nodes[..setting.nodes as usize];
    let connections = nodes
        .iter()
        .cycle()
        .take(setting.connections as usize)
        .map(|node| Conn::new(node.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut observers = Vec::new();
    for (at, node) in target.nodes.iter().enumerate() {
        let on_node = connections.iter().skip(at).step_by(nodes.len());
        observers.push(Observer {
            connection: Conn::new(node.clone())?,
            ids: if at < nodes.len() {
                on_node.map(|connection| connection.connection_id()).collect()
            } else {
                Vec::new()
            },
        });
    }
    // On a cluster, these reads also wait for the tables of the contender, and for the backlog of an earlier one.
    let before = totals(statements, target, &mut observers)?;
    // One more than connections: this thread reads the server's CPU time when all connections are ready.
    let barrier = Barrier::new(connections.len() + 1);
    let stop = AtomicBool::new(false);
    let work = |number: u32, mut connection: Conn| -> Result<Seen, mysql::Error> {
        let node = &nodes[(number as usize - 1) % nodes.len()];
        let goes_on = || !stop.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed);
        let failed = |_: &mysql::Error| stop.store(true, Ordering::Relaxed);
        let count_for = |duration, connection: &mut Conn, prepared: &_| {
            count(
                statements, setting, number, node, connection, prepared, duration, goes_on,
            )
        };
        let warm = prepared(statements, setting, number, &mut connection).and_then(|prepared| {
            let seen = count_for(setting.warm_up(), &mut connection, &prepared)?;
            Ok((prepared, seen.increments.len()))
        });
        let warm = warm.inspect_err(failed);
        // A connection that failed gets here too, because the other connections wait for it.
        barrier.wait();
        let (prepared, warm) = warm?;
        let seen = count_for(setting.duration, &mut connection, &prepared);
        seen.map(|seen| Seen { warm, ..seen }).inspect_err(failed)
    };
    let (seen, waits, waiting, server_cpu) = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = connections
            .into_iter()
            .zip(1..)
            .map(|(connection, number)| scope.spawn(move || work(number, connection)))
            .collect();
        barrier.wait();
        let before = target.cpu_time();
        let waits = row_lock_waits(target, &mut observers);
        let goes_on = || !stop.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed);
        let waiting = waiting(&mut observers, setting, goes_on);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let seen = threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()?;
        let after = target.cpu_time();
        let server_cpu = before.zip(after).map(|(before, after)| after - before);
        Ok::<_, mysql::Error>((seen, waits?, waiting?, server_cpu))
    })?;

    let ended = Instant::now();
    let after = totals(statements, target, &mut observers)?;
    let behind = target.cluster.map(|_| ended.elapsed());
    let begin = seen.iter().map(|seen| seen.begin).min();
    let end = seen.iter().map(|seen| seen.end).max();
    let mut measured = Measured {
        done: seen
            .iter()
            .map(|one| one.warm + one.increments.len())
            .sum::<u64>()
            * u64::from(setting.amount)
            * u64::from(statements.counts(setting)),
        elapsed: begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end - begin),
        increments: histogram(),
        reads: histogram(),
        counts: statements.counts(setting),
        grown: after
            .iter()
            .zip(before)
            .map(|(after, before)| after - before)
            .collect(),
        behind,
        rejected: BTreeMap::new(),
        row_lock_waits: row_lock_waits(target, &mut observers)?
            .zip(waits)
            .map(|(after, before)| after - before),
        waiting,
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
        for (rejection, times) in one.rejected {
            *measured.rejected.entry(rejection).or_default() += times;
        }
    }
    Ok(measured)
}

/// A connection to a node that reads the totals and the waits.
struct Observer {
    connection: Conn,
    /// The connections of the load to this node.
    ids: Vec<u32>,
}

/// The contender's total on each node, with what was committed on any node before.
fn totals(
    statements: &Statements,
    target: &Target,
    observers: &mut [Observer],
) -> Result<Vec<i64>, mysql::Error> {
    let total = |connection: &mut Conn| {
        let total: Option<i64> = connection.query_first(&statements.total)?;
        Ok(total.expect("a sum is a row"))
    };
    let of_node = |observer: &mut Observer| match target.cluster {
        Some(cluster) => cluster.reading(&mut observer.connection, total),
        None => total(&mut observer.connection),
    };
    observers.iter_mut().map(of_node).collect()
}

fn row_lock_waits(target: &Target, observers: &mut [Observer]) -> Result<Option<u64>, mysql::Error> {
    if target.processes.is_empty() {
        return Ok(None);
    }
    let waits = |observer: &mut Observer| {
        let query = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'";
        let row: Option<(String, u64)> = observer.connection.query_first(query)?;
        Ok(row.map(|(_, waits)| waits))
    };
    observers.iter_mut().map(waits).sum()
}

impl Target {
    /// The CPU time of all nodes.
    fn cpu_time(&self) -> Option<Duration> {
        let times = self.processes.iter().map(|&process| cpu_time(process));
        times.reduce(|sum, time| Some(sum? + time?))?
    }
}

/// The time between two samples of the waiting connections. The servers refresh INNODB_TRX only if no session has read it for
/// 0.1 s. Source: MariaDB's documentation, "Information Schema INNODB_LOCK_WAITS Table"; the same code is in MySQL.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(130);

/// More connections than these are sampled less often. MariaDB also collects the locks that each connection waits for: a
/// sample of 64 connections that wait takes 0.6 ms of the processor, and one of 250 takes 11 ms. On MySQL it takes less than 1 ms.
const OFTEN_SAMPLED: f64 = 80.0;

/// The mean number of connections of the load that wait for a row lock. None if the account cannot read it, or if the samples
/// would take more than about a hundredth of the processor.
fn waiting(
    observers: &mut [Observer],
    setting: &Setting,
    goes_on: impl Fn() -> bool,
) -> Result<Option<f64>, mysql::Error> {
    let duration = setting.duration;
    let mut queries: Vec<_> = observers
        .iter_mut()
        .filter(|observer| !observer.ids.is_empty())
        .map(|observer| {
            let ids: Vec<_> = observer.ids.iter().map(u32::to_string).collect();
            let query = format!(
                "SELECT COUNT(*)
                   FROM information_schema.INNODB_TRX
                  WHERE trx_state = 'LOCK WAIT'
                    AND trx_mysql_thread_id IN ({})",
                ids.join(", ")
            );
            (&mut observer.connection, query)
        })
        .collect();
    // The sessions of such a load are not known.
    if setting.connect {
        return Ok(None);
    }
    let most = f64::from(setting.connections.div_ceil(setting.nodes));
    let pause = BETWEEN_SAMPLES.mul_f64((most / OFTEN_SAMPLED).powi(2).max(1.0));
    if pause > duration * 2 {
        return Ok(None);
    }
    let pause = pause.min(duration / 2);
    let begin = Instant::now();
    let (mut samples, mut waiting) = (0_u32, 0_u32);
    'samples: while begin.elapsed() + pause <= duration && goes_on() {
        thread::sleep(pause);
        let mut sample = 0;
        for (connection, query) in &mut queries {
            match connection.query_first::<u32, _>(&*query) {
                Err(error) if hides_waits(&error) => return Ok(None),
                Err(error) if statement_hides_waits(&error) => continue 'samples,
                counted => sample += counted?.unwrap_or(0),
            }
        }
        waiting += sample;
        samples += 1;
    }
    Ok((samples > 0).then(|| f64::from(waiting) / f64::from(samples)))
}

/// Whether a server rejects a query of the row lock waits because the account does not have the privilege PROCESS (1227).
/// Source: MySQL manual, "The INFORMATION_SCHEMA INNODB_TRX Table"; "Server Error Message Reference".
fn hides_waits(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(error) if error.code == 1227)
}

/// The error with which the server rejects a query of the row lock waits from this account. None if it accepts it.
///
/// # Errors
/// Other errors of the server or of the connection.
pub fn hidden_waits(connection: &mut Conn) -> Result<Option<mysql::Error>, mysql::Error> {
    // MySQL sends the error in the place of the first row.
    let query = "SELECT COUNT(*) FROM information_schema.INNODB_TRX";
    match connection.query_first::<u64, _>(query) {
        Err(error) if hides_waits(&error) => Ok(Some(error)),
        Err(error) if statement_hides_waits(&error) => Ok(None),
        result => result.map(|_| None),
    }
}

/// The CPU time of all threads of a process, in ticks of the system's clock, which are 10 ms on most systems.
/// Source: proc_pid_stat(5), utime and stime.
#[cfg(target_os = "linux")]
fn cpu_time(process: u32) -> Option<Duration> {
    let stat = procfs::process::Process::new(process.try_into().ok()?)
        .ok()?
        .stat()
        .ok()?;
    Some(Duration::from_secs_f64(
        (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
    ))
}

#[cfg(not(target_os = "linux"))]
fn cpu_time(_process: u32) -> Option<Duration> {
    None
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are a valid precision")
}

/// The prepared statements of one connection.
struct Prepared {
    increment: Statement,
    /// If the load has reads.
    read: Option<Statement>,
    /// The number of slots that `increment` selects from.
    slots: u32,
}

fn prepared(
    statements: &Statements,
    setting: &Setting,
    number: u32,
    connection: &mut Conn,
) -> Result<Prepared, mysql::Error> {
    let read = (setting.reads > 0.0).then(|| connection.prep(&statements.read.sql));
    // All counters have the same number of slots.
    let slots: Option<u32> = match &statements.slots {
        Some(query) => {
            let who = Who::counting(number, 1, setting);
            let values = Params::Positional(values(query, who, setting, || 1));
            connection.exec_first(&query.sql, values)?
        }
        None => None,
    };
    Ok(Prepared {
        increment: connection.prep(&statements.increment.sql)?,
        read: read.transpose()?,
        slots: slots.unwrap_or(setting.slots),
    })
}

/// The loop of one connection.
#[allow(clippy::too_many_arguments, reason = "a closure passes the rest")]
fn count(
    statements: &Statements,
    setting: &Setting,
    number: u32,
    node: &Opts,
    connection: &mut Conn,
    prepared: &Prepared,
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
        rejected: BTreeMap::new(),
    };
    while seen.end - begin < duration && goes_on() {
        let reads = setting.reads > 0.0 && random.random_bool(setting.reads);
        let mut chosen = || {
            if setting.counters == 1 {
                1
            } else {
                random.sample(zipf) as u32
            }
        };
        let who = Who {
            slots: prepared.slots,
            ..Who::counting(number, chosen(), setting)
        };
        let (statement, query) = match &prepared.read {
            Some(read) if reads => (read, &statements.read),
            _ => (&prepared.increment, &statements.increment),
        };
        let values = Params::Positional(values(query, who, setting, chosen));
        let fresh = if setting.connect {
            *connection = connect(node)?;
            Some(connection.prep(&query.sql)?)
        } else {
            None
        };
        let statement = fresh.as_ref().unwrap_or(statement);
        let result = match setting.hold {
            Some(hold) if !reads => transaction(connection, statement, values, hold, &goes_on),
            _ => connection
                .exec_drop(statement, values)
                .map_err(|error| (error, At::Statement)),
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
            Err((mysql::Error::MySqlError(error), at)) if TO_BE_REPEATED.contains(&error.code) => {
                *seen.rejected.entry((error.code, at)).or_default() += 1;
                if setting.hold.is_some() && !reads {
                    connection.query_drop("ROLLBACK")?;
                }
            }
            Err((error, _)) => return Err(error),
        }
        seen.end = now;
    }
    Ok(seen)
}

/// A new connection. MySQL ends a session some time after its client has left, so that there can be too many (1040).
/// It has no statement but those of the load.
fn connect(node: &Opts) -> Result<Conn, mysql::Error> {
    const TRIES: u32 = 5_000;
    let node = OptsBuilder::from_opts(node.clone()).init(Vec::<String>::new());
    for _ in 0..TRIES {
        match Conn::new(node.clone()) {
            Err(mysql::Error::MySqlError(error)) if error.code == 1040 => {
                thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
    Conn::new(node)
}

fn transaction(
    connection: &mut Conn,
    prepared: &Statement,
    values: Params,
    hold: Duration,
    goes_on: impl Fn() -> bool,
) -> Result<(), (mysql::Error, At)> {
    connection
        .query_drop("START TRANSACTION")
        .and_then(|()| connection.exec_drop(prepared, values))
        .map_err(|error| (error, At::Statement))?;
    let end = Instant::now() + hold;
    while goes_on() && Instant::now() < end {
        thread::sleep(INTERVAL.min(end.saturating_duration_since(Instant::now())));
    }
    connection
        .query_drop("COMMIT")
        .map_err(|error| (error, At::Commit))
}
