//! Closed-loop load: each connection sends its next statement after the answer to the previous one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder, Value};
use rand::Rng;

use super::contender::{Contender, Setting, Statement};
use super::figures::median;
use crate::connect::cause;
use crate::package::OptionsError;
use crate::server::Version;

/// The schema of a load.
pub const SCHEMA: &str = "slotted_bench";

/// Errors after which an application repeats its transaction.
/// Source: MySQL manual, "How to Minimize and Handle Deadlocks"; MariaDB's documentation of innodb_snapshot_isolation.
const TO_BE_REPEATED: [u16; 3] = [1213, 1205, 1020];

/// The placeholder `{random}` is a number from 1 to this one, another one at each place in each call.
const MOST_RANDOM: u32 = 1000;

/// How often the counter is read after a load.
const READS: usize = 11;

/// How long the connections increment before the measurement, at most. The first call of a connection takes longer, because each
/// connection parses each routine.
const WARM_UP: Duration = Duration::from_secs(1);

/// The result of a load.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The counts that the server has acknowledged, those of the warm-up included.
    pub acknowledged: u64,
    /// The growth of the total, which is the same.
    pub grown: i64,
    /// Counts per second, without the warm-up.
    pub per_second: f64,
    /// The time of each increment, or of its transaction, in microseconds, sorted.
    pub times: Vec<u32>,
    /// Increments that failed with 1213, 1205 or 1020, and were repeated.
    pub retries: u64,
    /// The median time of a read after the load, milliseconds.
    pub read_ms: f64,
    /// The CPU time of the server for a count, microseconds, with the warm-up. None if it is on another machine.
    pub cpu_us: Option<f64>,
}

/// Why a load has no result.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The schema exists, and is not touched.
    #[error("the schema {SCHEMA} already exists")]
    Exists,
    /// The package does not support the number of slots.
    #[error("{0}: {1}")]
    Options(String, OptionsError),
    /// An error of the server or of a connection, at a statement or an action.
    #[error("{}: {}", .0, cause(.1))]
    Server(String, mysql::Error),
    /// The total is not a number.
    #[error("{0}: the total is {1}, not a whole number")]
    NoTotal(String, String),
    /// Counts were lost, or counted twice: the statement of the total, the acknowledged counts, and the growth of the total.
    #[error("{0}: the total grew by {2}, but the server acknowledged {1}")]
    Lost(String, u64, i64),
}

/// Adds what has caused an error of the server.
pub(super) fn at(place: &str) -> impl Fn(mysql::Error) -> BenchError {
    move |error| BenchError::Server(place.to_owned(), error)
}

/// A connection that does not wait long for FLUSH TABLES WITH READ LOCK or LOCK TABLES of another session, so that Ctrl-C ends the load.
pub(super) fn connect(options: &Opts) -> Result<Conn, BenchError> {
    let mut connection = Conn::new(options.clone()).map_err(at("cannot connect"))?;
    connection.query_drop("SET SESSION lock_wait_timeout = 10").map_err(at("cannot connect"))?;
    Ok(connection)
}

/// Loads a server with a contender, in a schema that is created before and dropped afterwards. Setting `stop` ends the load early.
///
/// # Errors
/// The schema exists, the total differs from the acknowledged counts, and the first error of a statement after which an application
/// does not repeat its transaction.
pub fn run(server: &Opts, contender: &Contender, setting: &Setting, stop: &AtomicBool) -> Result<Measured, BenchError> {
    let created = connect(server)?.query_drop(format!("CREATE DATABASE {SCHEMA}"));
    created.map_err(|error| match error {
        mysql::Error::MySqlError(error) if error.code == 1007 => BenchError::Exists,
        error => at("cannot create the schema")(error),
    })?;
    let schema = OptsBuilder::from_opts(server.clone()).db_name(Some(SCHEMA)).into();
    let measured = measure(&schema, contender, setting, stop);
    // A new connection, because the server can have closed the first one during a long load.
    let drop = connect(server).and_then(|mut connection| {
        let dropped = connection.query_drop(format!("DROP DATABASE {SCHEMA}"));
        dropped.map_err(at("cannot drop the schema"))
    });
    let measured = measured?;
    drop.map(|()| measured)
}

/// Sets the contender up, loads it, and proves its total.
fn measure(schema: &Opts, contender: &Contender, setting: &Setting, stop: &AtomicBool) -> Result<Measured, BenchError> {
    let mut observer = connect(schema)?;
    let family = Version::of(&mut observer).map_err(at("cannot read the version"))?.family;
    let setup = contender.setup(setting, family);
    for statement in setup.map_err(|error| BenchError::Options(contender.name.clone(), error))? {
        observer.query_drop(&statement.sql).map_err(at(&statement.place))?;
    }
    let total_statement = contender.total.filled(1, setting);
    let before = total(&mut observer, &total_statement)?;
    let connections = (0..setting.connections).map(|_| connect(schema)).collect::<Result<Vec<_>, _>>()?;
    let process = process(&mut observer, schema);
    let used = cpu(process.as_deref());
    let counted = load(connections, contender, setting, stop).map_err(at(&contender.increment.place))?;
    let used = used.and_then(|used| Some(cpu(process.as_deref())? - used));
    let grown = total(&mut observer, &total_statement)? - before;
    let calls: usize = counted.iter().map(|one| one.warm_up + one.times.len()).sum();
    let acknowledged = calls as u64 * u64::from(contender.counts);
    if u64::try_from(grown) != Ok(acknowledged) {
        return Err(BenchError::Lost(total_statement.place, acknowledged, grown));
    }
    let read_ms = read(&mut observer, &contender.read.filled(1, setting))?;
    let begin = counted.iter().map(|one| one.begin).min();
    let end = counted.iter().map(|one| one.end).max();
    let elapsed = begin.zip(end).map_or(0.0, |(begin, end)| (end - begin).as_secs_f64());
    let retries = counted.iter().map(|one| one.retries).sum();
    let mut times: Vec<u32> = counted.into_iter().flat_map(|one| one.times).collect();
    times.sort_unstable();
    Ok(Measured {
        acknowledged,
        grown,
        per_second: times.len() as f64 * f64::from(contender.counts) / elapsed.max(1e-9),
        times,
        retries,
        read_ms,
        cpu_us: used.map(|used| used.as_secs_f64() * 1e6 / acknowledged as f64),
    })
}

/// The file of a server's process in /proc, if its socket shows that it is on this machine.
fn process(connection: &mut Conn, server: &Opts) -> Option<String> {
    server.get_socket()?;
    let file: String = connection.query_first("SELECT @@pid_file").ok()??;
    Some(format!("/proc/{}/stat", fs::read_to_string(file).ok()?.trim()))
}

/// The CPU time of a process, of its user and of the system.
/// Source: proc(5), fields 14 and 15 of /proc/PID/stat in ticks of 10 ms. The name in parentheses can contain spaces.
fn cpu(process: Option<&str>) -> Option<Duration> {
    let text = fs::read_to_string(process?).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().ok());
    Some(Duration::from_millis(10 * ticks.sum::<Option<u64>>()?))
}

fn total(connection: &mut Conn, statement: &Statement) -> Result<i64, BenchError> {
    let value: Option<Value> = connection.query_first(&statement.sql).map_err(at(&statement.place))?;
    let value = value.unwrap_or(Value::NULL);
    mysql::from_value_opt(value.clone()).map_err(|_| BenchError::NoTotal(statement.place.clone(), value.as_sql(true)))
}

/// The median time of a read, milliseconds.
fn read(connection: &mut Conn, statement: &Statement) -> Result<f64, BenchError> {
    let sender = Sender::new(connection, statement).map_err(at(&statement.place))?;
    let mut time = |_| {
        let begin = Instant::now();
        sender.send(connection).map_err(at(&statement.place))?;
        Ok(begin.elapsed().as_secs_f64() * 1e3)
    };
    (0..READS).map(&mut time).collect::<Result<Vec<_>, _>>().map(median)
}

/// What one connection has counted.
struct ConnectionResult {
    /// The increments of the warm-up.
    warm_up: usize,
    begin: Instant,
    end: Instant,
    times: Vec<u32>,
    retries: u64,
}

/// Increments from all connections. They are all open and have counted before the first one is measured. The first error that
/// is not to be repeated ends the load of all.
fn load(
    connections: Vec<Conn>,
    contender: &Contender,
    setting: &Setting,
    stop: &AtomicBool,
) -> Result<Vec<ConnectionResult>, mysql::Error> {
    let (all, ready) = (connections.len(), AtomicUsize::new(0));
    let failed = AtomicBool::new(false);
    let goes_on = || !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed);
    let fail = || failed.store(true, Ordering::Relaxed);
    let session = |number: u32, mut connection: Conn| {
        let increment = contender.increment.filled(number, setting);
        let warm_up = Sender::new(&mut connection, &increment).and_then(|sender| {
            let counted = count(&mut connection, &sender, setting, setting.duration.min(WARM_UP), goes_on)?;
            Ok((sender, counted.times.len()))
        });
        let (sender, warm_up) = warm_up.inspect_err(|_| fail())?;
        ready.fetch_add(1, Ordering::Relaxed);
        // No barrier: the others would wait for a thread that has failed, or that the system does not start.
        while ready.load(Ordering::Relaxed) < all && goes_on() {
            thread::sleep(Duration::from_millis(1));
        }
        let counted = count(&mut connection, &sender, setting, setting.duration, goes_on);
        counted.map(|counted| ConnectionResult { warm_up, ..counted }).inspect_err(|_| fail())
    };
    thread::scope(|scope| {
        let session = &session;
        let start = |(connection, number)| {
            let started = thread::Builder::new().spawn_scoped(scope, move || session(number, connection));
            started.inspect_err(|_| fail())
        };
        let threads: Vec<_> = connections.into_iter().zip(1..).map(start).collect();
        let join = |thread: io::Result<thread::ScopedJoinHandle<'_, _>>| {
            thread?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

/// The loop of one connection.
fn count(
    connection: &mut Conn,
    sender: &Sender,
    setting: &Setting,
    duration: Duration,
    goes_on: impl Fn() -> bool,
) -> Result<ConnectionResult, mysql::Error> {
    let begin = Instant::now();
    let mut counted = ConnectionResult { warm_up: 0, begin, end: begin, times: Vec::new(), retries: 0 };
    while counted.end - begin < duration && goes_on() {
        let result = match setting.hold {
            Some(hold) => transaction(connection, sender, hold),
            None => sender.send(connection),
        };
        let now = Instant::now();
        match result {
            Ok(()) => counted.times.push((now - counted.end).as_micros() as u32),
            Err(mysql::Error::MySqlError(error)) if TO_BE_REPEATED.contains(&error.code) => {
                counted.retries += 1;
                connection.query_drop("ROLLBACK")?;
            }
            Err(error) => return Err(error),
        }
        counted.end = now;
    }
    Ok(counted)
}

fn transaction(connection: &mut Conn, sender: &Sender, [before, after]: [Duration; 2]) -> Result<(), mysql::Error> {
    connection.query_drop("START TRANSACTION")?;
    thread::sleep(before);
    sender.send(connection)?;
    thread::sleep(after);
    connection.query_drop("COMMIT")
}

/// Sends a statement again and again.
enum Sender {
    Prepared(mysql::Statement),
    /// The parts between random numbers.
    Text(Vec<String>),
}

impl Sender {
    /// Prepares a statement on its connection, unless each call sends other numbers.
    fn new(connection: &mut Conn, statement: &Statement) -> Result<Self, mysql::Error> {
        let parts: Vec<_> = statement.sql.split("{random}").map(str::to_owned).collect();
        match &parts[..] {
            [sql] => connection.prep(sql).map(Self::Prepared),
            _ => Ok(Self::Text(parts)),
        }
    }

    fn send(&self, connection: &mut Conn) -> Result<(), mysql::Error> {
        match self {
            Self::Prepared(statement) => connection.exec_drop(statement, ()),
            Self::Text(parts) => {
                let mut random = rand::rng();
                let mut text = parts[0].clone();
                for part in &parts[1..] {
                    text += &random.random_range(1..=MOST_RANDOM).to_string();
                    text += part;
                }
                connection.query_drop(text)
            }
        }
    }
}
