//! Samples the lock waits of a server.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use serde::Serialize;

use crate::package::{Family, Package};
use crate::server::{Version, account};

/// A counter or row is reported if this number of sessions wait for it on average: one session waits half of the time.
pub(super) const WAITING: f64 = 0.5;

/// The time between two samples. The servers refresh INNODB_TRX only if no session has read it for 0.1 s: with a second reader, MariaDB
/// shows old waits. Source: MariaDB's documentation, "Information Schema INNODB_LOCK_WAITS Table"; MySQL source, `trx0i_s.cc`.
const PAUSE: Duration = Duration::from_millis(130);

/// The rows that transactions wait for, on MySQL. INNODB_TRX comes first because data_locks finds one lock by its id, and
/// contains a row for each lock of each transaction otherwise. With 262,144 locked rows, it takes 1.9 ms instead of 680 or more (MySQL 9.7).
const WAITS_MYSQL: &str = "
SELECT locks.OBJECT_SCHEMA,
       locks.OBJECT_NAME,
       locks.LOCK_DATA,
       transactions.trx_query
  FROM information_schema.INNODB_TRX AS transactions
  LEFT JOIN performance_schema.data_locks AS locks
    ON locks.ENGINE_LOCK_ID = transactions.trx_requested_lock_id
   AND locks.ENGINE = 'INNODB'
   AND locks.LOCK_TYPE = 'RECORD'
 WHERE transactions.trx_state = 'LOCK WAIT'";

/// The same from all locks.
const LOCKS_MYSQL: &str = "
SELECT locks.OBJECT_SCHEMA,
       locks.OBJECT_NAME,
       locks.LOCK_DATA,
       threads.PROCESSLIST_INFO
  FROM performance_schema.data_locks AS locks
 INNER JOIN performance_schema.threads AS threads
 USING (THREAD_ID)
 WHERE locks.LOCK_STATUS = 'WAITING'
   AND locks.LOCK_TYPE = 'RECORD'";

/// The rows that transactions wait for, on MariaDB, where one column contains schema and table: `schema`.`table`.
const WAITS_MARIADB: &str = "
SELECT '',
       locks.lock_table,
       locks.lock_data,
       transactions.trx_query
  FROM information_schema.INNODB_TRX AS transactions
 INNER JOIN information_schema.INNODB_LOCKS AS locks
    ON locks.lock_id = transactions.trx_requested_lock_id
 WHERE locks.lock_type = 'RECORD'";

/// What [`Watched::unseen`] says without the privileges, or if the server lists no wait.
const ROWS: &str = "the rows that sessions wait for";

/// The installed packages with their databases. None is a package that the account cannot read.
pub type Packages = [(String, Option<Package>)];

/// The database, the table and the key of [`Advice`]. None means several rows.
pub(super) type Place = (String, String, Option<String>);

/// The load of a server, its lock waits, and what to do about them.
#[derive(Debug, Default, Serialize)]
pub struct Watched {
    /// The maximum of Threads_connected without this connection.
    pub connected: u32,
    /// The maximum of Threads_running without this connection.
    pub running: u32,
    /// The average number of sessions of the whole server that wait for a row lock. Every account can see it.
    pub waiting: f64,
    /// What could not be seen, with the GRANT statement or a sentence that says what to do.
    #[serde(rename = "cannot_see")]
    pub unseen: BTreeMap<String, String>,
    /// What sessions wait for, most of them first.
    pub advice: Vec<Advice>,
    /// How often the waits could be read.
    #[serde(skip)]
    pub(super) samples: u32,
    /// The statement of each session that waited in a sample.
    #[serde(skip)]
    pub(super) waits: BTreeMap<Place, Vec<String>>,
}

/// What was seen of a counter or row, and the recommendation.
#[derive(Debug, Serialize)]
pub struct Advice {
    /// The database.
    pub database: String,
    /// The table.
    pub table: String,
    /// The values of the key, as the server prints them, for a counter without the slot.
    pub key: String,
    /// The average number of sessions that wait for it.
    pub waiting: f64,
    /// The statement with which most of them wait. Empty if the server does not show it.
    pub statement: String,
    /// The recommendation.
    pub sentence: String,
    /// The statement or the command that follows it.
    pub run: Option<String>,
}

/// The package of a table.
pub(super) fn package_of<'a>(packages: &'a Packages, database: &str, table: &str) -> Option<&'a Package> {
    let mut packages = packages.iter().filter(|(place, _)| place == database);
    packages.find_map(|(_, package)| package.as_ref().filter(|package| package.options.table.name() == table))
}

/// Observes a server for `duration`.
///
/// # Errors
/// The connection fails. A missing privilege is in [`Watched::unseen`].
pub fn watch(connection: &mut Conn, duration: Duration, packages: &Packages) -> mysql::Result<Watched> {
    let mut watched = Watched::default();
    let mariadb = Version::of(connection)?.family == Family::Mariadb;
    let query = if mariadb { WAITS_MARIADB } else { WAITS_MYSQL };
    let (begin, mut rounds) = (Instant::now(), 0);
    while rounds == 0 || begin.elapsed() < duration {
        // Without a pause before it, the first sample would be one that another session has taken.
        thread::sleep(PAUSE);
        rounds += 1;
        let waiting = watched.add_status(connection)?;
        let mut rows = connection.query(query);
        if !mariadb && is_useless(&rows, waiting) {
            rows = connection.query(LOCKS_MYSQL);
        }
        match rows {
            Ok(rows) => watched.add(rows, packages),
            // SELECT on a table (1142) or PROCESS (1227). Source: MySQL manual, "Server Error Message Reference".
            Err(mysql::Error::MySqlError(error)) if [1142, 1227].contains(&error.code) => {
                let account = account(connection)?;
                let mut remedy = format!("GRANT PROCESS ON *.* TO {account};");
                if !mariadb {
                    remedy += &format!(" GRANT SELECT ON performance_schema.* TO {account};");
                }
                watched.unseen.insert(ROWS.into(), remedy);
            }
            Err(error) => return Err(error),
        }
    }
    watched.waiting /= f64::from(rounds);
    if watched.waiting >= WAITING && watched.waits.is_empty() {
        let remedy = "run it again; MySQL lists no row with performance_schema = OFF";
        watched.unseen.entry(ROWS.into()).or_insert(remedy.into());
    }
    Ok(watched)
}

/// A column of [`WAITS_MYSQL`]. A name, a key or a statement can contain bytes that are not UTF-8.
type Value = Option<Vec<u8>>;
type Waits = Vec<(Value, Value, Value, Value)>;

/// Whether [`WAITS_MYSQL`] shows less than half of the waits: other sessions read INNODB_TRX so often that MySQL does not refresh it, or the
/// statement of a session contains a character that utf8mb3 lacks (3854).
fn is_useless(rows: &mysql::Result<Waits>, waiting: u32) -> bool {
    match rows {
        Ok(rows) => rows.iter().filter(|row| row.1.is_some()).count() * 2 < waiting as usize,
        Err(mysql::Error::MySqlError(error)) => error.code == 3854,
        Err(_) => false,
    }
}

impl Watched {
    /// Adds the sessions that wait now.
    fn add(&mut self, rows: Waits, packages: &Packages) {
        self.samples += 1;
        let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
        for (database, table, key, statement) in rows {
            // NULL if the lock does not exist any more, and while the server cannot read the page.
            let Some(mut key) = key.map(text) else {
                continue;
            };
            let [mut database, mut table, statement] =
                [database, table, statement].map(|value| value.map(text).unwrap_or_default());
            if let Some(names) = of_mariadb(&table).filter(|_| database.is_empty()) {
                (database, table) = names;
            }
            if package_of(packages, &database, &table).is_some() {
                // The last value of the primary key of a package is the slot.
                key.truncate(key.rfind(", ").unwrap_or(key.len()));
            }
            let place = (database, table, Some(key));
            self.waits.entry(place).or_default().push(statement);
        }
    }

    /// Adds the load, and returns the number of sessions that wait.
    fn add_status(&mut self, connection: &mut Conn) -> mysql::Result<u32> {
        let status: Vec<(String, u64)> = connection.query(
            "SHOW GLOBAL STATUS
             WHERE Variable_name IN ('Innodb_row_lock_current_waits', 'Threads_connected', 'Threads_running')",
        )?;
        // A number of waits that a server has counted down below 0 counts as 0.
        let status: BTreeMap<_, _> =
            status.into_iter().map(|(name, value)| (name, u32::try_from(value).unwrap_or(0))).collect();
        self.connected = self.connected.max(status["Threads_connected"].saturating_sub(1));
        self.running = self.running.max(status["Threads_running"].saturating_sub(1));
        let waiting = status["Innodb_row_lock_current_waits"];
        self.waiting += f64::from(waiting);
        Ok(waiting)
    }
}

/// The database and the table in a name of MariaDB such as `` `shop`.`pages` /* Partition `p0` */ ``.
fn of_mariadb(name: &str) -> Option<(String, String)> {
    let names = name.split(" /*").next()?.strip_prefix('`')?.strip_suffix('`')?;
    let (database, table) = names.split_once("`.`")?;
    Some((database.replace("``", "`"), table.replace("``", "`")))
}
