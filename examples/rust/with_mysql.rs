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
use rand::Rng;

const UNKNOWN_COUNTER: u16 = 30003;
const NOT_ENOUGH: u16 = 30016;
// The server has counted nothing. In Group Replication, add 1180. On Galera, a COMMIT with error 1180 may have counted.
const REPEAT: [u16; 5] = [1213, 1205, 1020, 3101, 30021];
const ATTEMPTS: u32 = 10;

enum Failure {
    /// It is unknown whether COMMIT has succeeded. Close the connection.
    MayHaveCounted(mysql::Error),
    Other(mysql::Error),
}

impl From<mysql::Error> for Failure {
    fn from(error: mysql::Error) -> Self {
        Self::Other(error)
    }
}

impl Failure {
    /// The message and the exit code.
    fn explain(&self) -> (String, u8) {
        match self {
            Self::MayHaveCounted(error) => (format!("may have counted: {error}"), 4),
            Self::Other(error) if number(error) == UNKNOWN_COUNTER => (format!("unknown counter: {error}"), 3),
            Self::Other(error) if number(error) == NOT_ENOUGH => (format!("sold out: {error}"), 5),
            Self::Other(error) if is_lost(error) => (format!("connection lost: {error}"), 4),
            Self::Other(error) => (error.to_string(), 1),
        }
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

/// Repeats a transaction after the errors of REPEAT. After any error but MayHaveCounted, nothing has counted.
fn in_transaction(connection: &mut Conn, work: impl Fn(&mut Conn) -> mysql::Result<()>) -> Result<(), Failure> {
    for attempt in 1.. {
        let mut committing = false;
        let result = connection.query_drop("BEGIN").and_then(|()| work(connection)).and_then(|()| {
            committing = true;
            connection.query_drop("COMMIT")
        });
        let Err(error) = result else { break };
        let repeat = REPEAT.contains(&number(&error));
        if committing && !repeat {
            return Err(Failure::MayHaveCounted(error));
        }
        // After error 1205, the transaction is still open.
        if !is_lost(&error) {
            connection.query_drop("ROLLBACK")?;
        }
        if !repeat || attempt == ATTEMPTS {
            return Err(error.into());
        }
        eprintln!("repeat after error {}", number(&error));
        thread::sleep(Duration::from_millis(rand::rng().random_range(0..10 << attempt)));
    }
    Ok(())
}

/// Named counter and stock: an order, its count and its seats are committed together, or none of them.
fn place_order(connection: &mut Conn, seats: u32, counter: &str) -> Result<(), Failure> {
    in_transaction(connection, |connection| {
        connection.exec_drop("INSERT INTO orders (seats) VALUES (?)", (seats,))?;
        // Last and in this order in all transactions, because each call locks a slot until COMMIT.
        connection.exec_drop("CALL counter_increment(?)", (counter,))?;
        // If fewer are left, the call takes none and fails with NOT_ENOUGH.
        connection.exec_drop("CALL bounded_counter_take(?, ?)", ("seats", seats))
    })
}

fn seats_left(connection: &mut Conn) -> mysql::Result<i64> {
    let total = connection.query_first("SELECT bounded_counter_get('seats')")?;
    Ok(total.expect("a SELECT without FROM returns a row"))
}

/// Named counter: one total.
fn total(connection: &mut Conn, counter: &str) -> mysql::Result<i64> {
    let total = connection.exec_first("SELECT counter_get(?)", (counter,))?;
    Ok(total.expect("a SELECT without FROM returns a row"))
}

/// Named counters: the totals of several in one query.
fn totals(connection: &mut Conn, counters: &[&str]) -> mysql::Result<Vec<(String, i64)>> {
    let places = vec!["?"; counters.len()].join(", ");
    // The total of the view is a DECIMAL without a fraction, which can be read as an integer.
    let query = "SELECT counter_name, total FROM counter_totals WHERE counter_name IN";
    connection.exec(format!("{query} ({places}) ORDER BY counter_name"), counters.to_vec())
}

/// Column: in place of UPDATE articles SET views = views + 1. Outside a transaction, the call commits by itself.
fn view_article(connection: &mut Conn, id: u64) -> mysql::Result<()> {
    connection.exec_drop("CALL articles_views_increment(?)", (id,))
}

/// Column: the value up to the last roll-up, and the exact total. Nothing, if there is no such article.
fn views(connection: &mut Conn, id: u64) -> mysql::Result<Option<(u64, i64)>> {
    connection.exec_first("SELECT views, articles_views_get(id) FROM articles WHERE id = ?", (id,))
}

type Sums = Arc<Mutex<BTreeMap<String, i64>>>;

/// In memory: sums counts, and adds the sums to the counters once a second. A crash loses the sums of this second.
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
                    eprintln!("flush failed: {}", error.explain().0);
                }
            }
        });
        Self { sums, stop, thread }
    }

    fn count(&self, counter: &str, amount: i64) {
        add(&self.sums, counter, amount);
    }

    fn close(self) -> Result<(), Failure> {
        drop(self.stop);
        self.thread.join().expect("the thread does not panic");
        flush(&self.sums)
    }
}

fn add(sums: &Sums, counter: &str, amount: i64) {
    let mut sums = sums.lock().expect("no thread has panicked");
    *sums.entry(counter.to_owned()).or_default() += amount;
}

fn flush(sums: &Sums) -> Result<(), Failure> {
    let taken = std::mem::take(&mut *sums.lock().expect("no thread has panicked"));
    if taken.is_empty() {
        return Ok(());
    }
    // A new connection: the server closes one that is idle for long, and threads cannot share one.
    let result = connect().map_err(Failure::from).and_then(|mut connection| {
        in_transaction(&mut connection, |connection| {
            // In the order of the names, so that two processes do not deadlock.
            taken.iter().try_for_each(|sum| connection.exec_drop("CALL counter_add(?, ?)", sum))
        })
    });
    // If nothing has counted, the next flush adds the sums, unless one of the counters does not exist.
    if let Err(Failure::Other(error)) = &result
        && number(error) != UNKNOWN_COUNTER
    {
        taken.iter().for_each(|(counter, amount)| add(sums, counter, *amount));
    }
    result
}

fn run(counter: &str) -> Result<(), Failure> {
    let mut connection = connect()?;
    place_order(&mut connection, 2, counter)?;
    println!("orders: {}", total(&mut connection, counter)?);
    println!("seats left: {}", seats_left(&mut connection)?);

    view_article(&mut connection, 1)?;
    if let Some((column, total)) = views(&mut connection, 1)? {
        println!("views: {total} ({column} in the column)");
    }

    let counts = Counts::new();
    for impression in 0..1000 {
        counts.count("impressions", 1);
        if impression % 10 == 0 {
            counts.count("clicks", 1);
        }
    }
    counts.close()?;
    for (name, count) in totals(&mut connection, &["clicks", "impressions"])? {
        println!("{name}: {count}");
    }
    Ok(())
}

fn main() -> ExitCode {
    let counter = env::args().nth(1);
    let Err(failure) = run(counter.as_deref().unwrap_or("orders")) else {
        return ExitCode::SUCCESS;
    };
    let (message, code) = failure.explain();
    eprintln!("{message}");
    ExitCode::from(code)
}
