//! Counts with the crate mysql. examples/README.md has the settings, the output and the rules for errors.

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use rand::RngExt;

const UNKNOWN_COUNTER: u16 = 30003;
// The server has counted nothing. In Group Replication, add 1180. On Galera, a COMMIT with error 1180 may have counted.
const REPEAT: [u16; 4] = [1213, 1205, 1020, 3101];
const ATTEMPTS: u32 = 10;

/// Why the program ends.
enum Failure {
    Lost(String),
    Other(mysql::Error),
}

impl From<mysql::Error> for Failure {
    fn from(error: mysql::Error) -> Self {
        if is_lost(&error) { Self::Lost(error.to_string()) } else { Self::Other(error) }
    }
}

/// An error of the network, or of a connection that was lost before.
fn is_lost(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::IoError(_) | mysql::Error::DriverError(_) | mysql::Error::CodecError(_))
}

/// The number of an error of the server, or 0.
fn number(error: &mysql::Error) -> u16 {
    match error {
        mysql::Error::MySqlError(error) => error.code,
        _ => 0,
    }
}

fn connect() -> mysql::Result<Conn> {
    let setting = |name: &str| env::var(format!("SLOTTED_{name}")).ok();
    let port = setting("PORT").and_then(|port| port.parse().ok());
    // caching_sha2_password without TLS: the driver fetches the public key of the server. With TLS: .ssl_opts(...)
    let settings = OptsBuilder::new()
        .ip_or_hostname(setting("HOST"))
        .tcp_port(port.unwrap_or(3306))
        .user(setting("USER"))
        .pass(setting("PASSWORD"))
        .db_name(setting("DATABASE"))
        .tcp_connect_timeout(Some(Duration::from_secs(10)))
        // By default, the driver changes to the socket of a server on this machine.
        .prefer_socket(false);
    Conn::new(settings)
}

/// Executes work in a transaction, and repeats the transaction if the server has rolled it back.
fn in_transaction(connection: &mut Conn, work: impl Fn(&mut Conn) -> mysql::Result<()>) -> Result<(), Failure> {
    for attempt in 1.. {
        let mut counted = "has not counted";
        let result = connection.query_drop("BEGIN").and_then(|()| work(connection)).and_then(|()| {
            counted = "may have counted";
            connection.query_drop("COMMIT")
        });
        let Err(error) = result else { break };
        if is_lost(&error) {
            return Err(Failure::Lost(format!("the transaction {counted}: {error}")));
        }
        // After error 1205, the transaction is still open.
        connection.query_drop("ROLLBACK")?;
        if !REPEAT.contains(&number(&error)) || attempt == ATTEMPTS {
            return Err(error.into());
        }
        eprintln!("repeat after error {}", number(&error));
        thread::sleep(Duration::from_millis(rand::rng().random_range(0..10 << attempt)));
    }
    Ok(())
}

fn place_order(connection: &mut Conn, item: &str, counter: &str) -> Result<(), Failure> {
    in_transaction(connection, |connection| {
        connection.exec_drop("INSERT INTO orders (item) VALUES (?)", (item,))?;
        // Last, because the slot stays locked until COMMIT.
        connection.exec_drop("CALL counter_increment(?)", (counter,))
    })
}

fn total(connection: &mut Conn, counter: &str) -> mysql::Result<i64> {
    let total = connection.exec_first("SELECT counter_get(?)", (counter,))?;
    Ok(total.expect("a SELECT without FROM has a row"))
}

fn totals(connection: &mut Conn, counters: &[&str]) -> mysql::Result<BTreeMap<String, i64>> {
    let places = vec!["?"; counters.len()].join(", ");
    // The total of the view is a DECIMAL without a fraction, which can be read as an integer.
    let query = format!("SELECT counter_name, total FROM counter_totals WHERE counter_name IN ({places})");
    let rows: Vec<(String, i64)> = connection.exec(query, counters.to_vec())?;
    Ok(rows.into_iter().collect())
}

type Sums = Arc<Mutex<BTreeMap<String, i64>>>;

/// Sums counts in memory, and adds the sums to the counters once a second. A crash loses the sums of this second.
struct Counts {
    sums: Sums,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Counts {
    fn new() -> Self {
        let (stop, stopped) = mpsc::channel();
        let sums = Sums::default();
        let of_thread = Arc::clone(&sums);
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = flush(&of_thread) {
                    eprintln!("flush failed: {error}");
                }
            }
        });
        Self { sums, stop, thread }
    }

    fn count(&self, counter: &str, amount: i64) {
        add(&self.sums, counter, amount);
    }

    fn close(self) -> mysql::Result<()> {
        drop(self.stop);
        self.thread.join().expect("the thread does not panic");
        flush(&self.sums)
    }
}

fn add(sums: &Sums, counter: &str, amount: i64) {
    let mut sums = sums.lock().expect("no thread has panicked");
    *sums.entry(counter.to_owned()).or_default() += amount;
}

fn flush(sums: &Sums) -> mysql::Result<()> {
    let taken = std::mem::take(&mut *sums.lock().expect("no thread has panicked"));
    if taken.is_empty() {
        return Ok(());
    }
    let mut committing = false;
    // A new connection: the server closes one that is idle for long, and threads cannot share one.
    let result = connect().and_then(|mut connection| {
        // One transaction: all sums count, or none. In the order of the names, so that two processes do not deadlock.
        connection.query_drop("START TRANSACTION")?;
        for sum in &taken {
            connection.exec_drop("CALL counter_add(?, ?)", sum)?;
        }
        committing = true;
        connection.query_drop("COMMIT")
    });
    // If the connection is lost in COMMIT, the sums may have counted.
    if let Err(error) = &result
        && (REPEAT.contains(&number(error)) || !committing && number(error) != UNKNOWN_COUNTER)
    {
        taken.iter().for_each(|(counter, amount)| add(sums, counter, *amount));
    }
    result
}

fn run(counter: &str) -> Result<(), Failure> {
    let mut connection = connect()?;
    place_order(&mut connection, "a book", counter)?;
    println!("total of the counter: {}", total(&mut connection, counter)?);

    let counts = Counts::new();
    for view in 0..1000 {
        counts.count("views", 1);
        if view % 10 == 0 {
            counts.count("clicks", 1);
        }
    }
    counts.close()?;
    for (name, count) in totals(&mut connection, &["views", "clicks"])? {
        println!("{name} {count}");
    }
    Ok(())
}

fn main() -> ExitCode {
    let counter = env::args().nth(1);
    match run(counter.as_deref().unwrap_or("orders")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Lost(error)) => {
            eprintln!("connection lost: {error}");
            ExitCode::from(4)
        }
        Err(Failure::Other(error)) => {
            let unknown = number(&error) == UNKNOWN_COUNTER;
            eprintln!("{}{error}", if unknown { "unknown counter: " } else { "" });
            ExitCode::from(if unknown { 3 } else { 1 })
        }
    }
}
