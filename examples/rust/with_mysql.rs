//! Counts with the crate mysql. A sale needs `in_transaction`, `place_order` and `seats_left`: each order takes its seats once, even
//! while sessions are killed. `view_article` and `views` count in a column, `Counts` counts in memory. To run it: examples/README.md.

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{OptsBuilder, Pool, PoolConstraints, PoolOpts, Transaction, TxOpts};
use rand::Rng;

const UNKNOWN_COUNTER: u16 = 30003;
const NOT_ENOUGH: u16 = 30016;
const DUPLICATE: u16 = 1062;
// 1305: a savepoint that does not exist any more, because error 1213 has rolled back the whole transaction.
// 1105, 1317, 1329: KILL QUERY. 1969: max_statement_time of MariaDB. 1927, 3169: KILL.
const REPEAT: [u16; 13] = [1020, 1105, 1180, 1205, 1213, 1305, 1317, 1329, 1927, 1969, 3101, 3169, 30021];
const ATTEMPTS: u32 = 10;

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

fn connect() -> mysql::Result<Pool> {
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
        .prefer_socket(false)
        // By default, the pool opens ten connections.
        .pool_opts(PoolOpts::new().with_constraints(PoolConstraints::new_const::<1, 100>()));
    Pool::new(settings)
}

/// 32 hexadecimal digits.
fn new_request() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Repeats a transaction after the errors of REPEAT, and on another connection after a lost one, whose COMMIT may have succeeded.
/// So work begins with the INSERT of a unique request, and DUPLICATE means that an earlier attempt has counted.
fn in_transaction(pool: &Pool, work: impl Fn(&mut Transaction) -> mysql::Result<()>) -> mysql::Result<()> {
    for attempt in 1.. {
        let result = pool.start_transaction(TxOpts::default()).and_then(|mut transaction| {
            // After an error, the transaction is dropped, which sends ROLLBACK. After error 1205 it is still open.
            work(&mut transaction)?;
            transaction.commit()
        });
        match result {
            Err(error) if number(&error) == DUPLICATE => break,
            Err(error) if attempt < ATTEMPTS && (is_lost(&error) || REPEAT.contains(&number(&error))) => {
                eprintln!("repeat after error {}", number(&error));
                thread::sleep(Duration::from_millis(rand::rng().random_range(0..10 << attempt)));
            }
            result => return result,
        }
    }
    Ok(())
}

/// Named counter and stock: an order, its count and its seats are committed together, or none of them. An order that is sent again
/// with the same request is the same order.
fn place_order(pool: &Pool, request: &str, seats: u32, counter: &str) -> mysql::Result<()> {
    in_transaction(pool, |transaction| {
        transaction.exec_drop("INSERT INTO orders (request, seats) VALUES (?, ?)", (request, seats))?;
        // Last and in this order in all transactions, because each call locks a slot until COMMIT.
        transaction.exec_drop("CALL counter_increment(?)", (counter,))?;
        // If fewer are left, the call takes none and fails with NOT_ENOUGH.
        transaction.exec_drop("CALL bounded_counter_take(?, ?)", ("seats", seats))
    })
}

fn seats_left(pool: &Pool) -> mysql::Result<i64> {
    let total = pool.get_conn()?.query_first("SELECT bounded_counter_get('seats')")?;
    Ok(total.expect("a SELECT without FROM returns a row"))
}

/// Named counter: one total.
fn total(pool: &Pool, counter: &str) -> mysql::Result<i64> {
    let total = pool.get_conn()?.exec_first("SELECT counter_get(?)", (counter,))?;
    Ok(total.expect("a SELECT without FROM returns a row"))
}

/// Named counters: the totals of several in one query.
fn totals(pool: &Pool, counters: &[&str]) -> mysql::Result<Vec<(String, i64)>> {
    let places = vec!["?"; counters.len()].join(", ");
    // The total of the view is a DECIMAL without a fraction, which can be read as an integer.
    let query = "SELECT counter_name, total FROM counter_totals WHERE counter_name IN";
    pool.get_conn()?.exec(format!("{query} ({places}) ORDER BY counter_name"), counters.to_vec())
}

/// Column: in place of UPDATE articles SET views = views + 1. Outside a transaction, the call commits by itself.
fn view_article(pool: &Pool, id: u64) -> mysql::Result<()> {
    pool.get_conn()?.exec_drop("CALL articles_views_increment(?)", (id,))
}

/// Column: the value up to the last roll-up, and the exact total. Nothing, if there is no such article.
fn views(pool: &Pool, id: u64) -> mysql::Result<Option<(u64, i64)>> {
    pool.get_conn()?.exec_first("SELECT views, articles_views_get(id) FROM articles WHERE id = ?", (id,))
}

type Sums = BTreeMap<String, i64>;

/// The operation and the sums of a flush that has not succeeded yet.
type Batch = Option<(String, Sums)>;

/// In memory: sums counts, and adds the sums to the counters once a second. A crash loses the sums of this second.
struct Counts {
    pool: Pool,
    sums: Arc<Mutex<Sums>>,
    stop: Sender<()>,
    thread: JoinHandle<Batch>,
}

impl Counts {
    fn new(pool: &Pool) -> Self {
        let (stop, stopped) = mpsc::channel();
        let sums = Arc::<Mutex<Sums>>::default();
        let (of_thread, pool_of_thread) = (Arc::clone(&sums), pool.clone());
        let thread = thread::spawn(move || {
            let mut batch = None;
            while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = flush(&pool_of_thread, &of_thread, &mut batch) {
                    eprintln!("flush failed: {error}");
                }
            }
            batch
        });
        Self { pool: pool.clone(), sums, stop, thread }
    }

    fn count(&self, counter: &str, amount: i64) {
        let mut sums = self.sums.lock().expect("no thread has panicked");
        *sums.entry(counter.to_owned()).or_default() += amount;
    }

    fn close(self) -> mysql::Result<()> {
        drop(self.stop);
        let mut batch = self.thread.join().expect("the thread does not panic");
        // What an earlier flush has left, and the last counts.
        flush(&self.pool, &self.sums, &mut batch)?;
        flush(&self.pool, &self.sums, &mut batch)
    }
}

/// After an error, the next flush repeats the operation, which counts once.
fn flush(pool: &Pool, sums: &Mutex<Sums>, batch: &mut Batch) -> mysql::Result<()> {
    let take = || (new_request(), std::mem::take(&mut *sums.lock().expect("no thread has panicked")));
    let (operation, taken) = batch.get_or_insert_with(take);
    let result = if taken.is_empty() {
        Ok(())
    } else {
        in_transaction(pool, |transaction| {
            let insert = "INSERT INTO counter_operations (operation) VALUES (UNHEX(?))";
            transaction.exec_drop(insert, (&*operation,))?;
            // In the order of the names, so that two processes do not deadlock.
            taken.iter().try_for_each(|sum| transaction.exec_drop("CALL counter_add(?, ?)", sum))
        })
    };
    if result.as_ref().err().is_none_or(|error| number(error) == UNKNOWN_COUNTER) {
        *batch = None;
    }
    result
}

fn run(counter: &str, orders: u32) -> mysql::Result<()> {
    let pool = &connect()?;
    for _ in 0..orders {
        place_order(pool, &new_request(), 2, counter)?;
    }
    println!("orders: {}", total(pool, counter)?);
    println!("seats left: {}", seats_left(pool)?);

    view_article(pool, 1)?;
    if let Some((column, total)) = views(pool, 1)? {
        println!("views: {total} ({column} in the column)");
    }

    let counts = Counts::new(pool);
    for impression in 0..1000 {
        counts.count("impressions", 1);
        if impression % 10 == 0 {
            counts.count("clicks", 1);
        }
    }
    counts.close()?;
    for (name, count) in totals(pool, &["clicks", "impressions"])? {
        println!("{name}: {count}");
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().collect();
    let orders = arguments.get(2).and_then(|orders| orders.parse().ok()).unwrap_or(1);
    let Err(error) = run(arguments.get(1).map_or("orders", String::as_str), orders) else {
        return ExitCode::SUCCESS;
    };
    let (meaning, code) = match number(&error) {
        UNKNOWN_COUNTER => ("unknown counter: ", 3),
        NOT_ENOUGH => ("sold out: ", 5),
        _ if is_lost(&error) => ("connection lost: ", 4),
        _ => ("", 1),
    };
    eprintln!("{meaning}{error}");
    ExitCode::from(code)
}
