//! Observes the lock waits of a server. Only reads.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::lock_data::{key_values, literal, unquoted};
use super::{Counter, Kind, Row, WAITING, Watched, counted, quoted};
use crate::server::{Flavour, Version};

/// The number of reads of each counter, of which the median time is taken.
const READS: usize = 20;

/// The rows that transactions wait for, on MySQL. DISTINCT, because a wait with several blocking locks has several rows.
/// Source: MySQL manual, "The data_lock_waits Table".
const WAITS_MYSQL: &str = "
SELECT DISTINCT
       locks.OBJECT_SCHEMA,
       locks.OBJECT_NAME,
       locks.INDEX_NAME,
       locks.LOCK_DATA,
       CAST(waits.REQUESTING_ENGINE_TRANSACTION_ID AS CHAR)
  FROM performance_schema.data_lock_waits AS waits
  JOIN performance_schema.data_locks AS locks
    ON locks.ENGINE_LOCK_ID = waits.REQUESTING_ENGINE_LOCK_ID
   AND locks.ENGINE = waits.ENGINE
 WHERE locks.LOCK_TYPE = 'RECORD'";

/// The rows that transactions wait for, on MariaDB, which has schema and table in one column: `schema`.`table`.
const WAITS_MARIADB: &str = "
SELECT DISTINCT
       '',
       locks.lock_table,
       locks.lock_index,
       locks.lock_data,
       CAST(waits.requesting_trx_id AS CHAR)
  FROM information_schema.INNODB_LOCK_WAITS AS waits
  JOIN information_schema.INNODB_LOCKS AS locks
    ON locks.lock_id = waits.requested_lock_id
 WHERE locks.lock_type = 'RECORD'";

/// The reason why a server could not be observed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A privilege is missing.
    #[error("the account has no privilege to read the lock waits: {0}")]
    Privilege(#[source] mysql::Error),
    /// Another error of the server or of the connection.
    #[error(transparent)]
    MySql(#[from] mysql::Error),
}

/// A row that a transaction waits for, with the names and values that the server returns.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Waited {
    schema: String,
    table: String,
    index: String,
    key: Vec<String>,
}

/// Schema, table, index and key of a requested lock, and the transaction that requests it.
type Wait = (
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    String,
);

/// An installed package, as its view counter_package describes it.
struct Package {
    schema: String,
    table: String,
    prefix: String,
    kind: Kind,
    slots: u32,
    fixed: bool,
    pick: String,
}

/// The counts of all slots, by counter name and slot number.
type Slots = BTreeMap<String, BTreeMap<u32, i64>>;

/// Observes a server for `duration`, or until `interrupted` is set.
///
/// # Errors
/// A privilege is missing, or a query or the connection fails.
pub fn watch(
    connection: &mut Conn,
    duration: Duration,
    interrupted: &AtomicBool,
) -> Result<Watched, WatchError> {
    let version = Version::of(connection)?;
    // MariaDB refreshes its tables of locks only if no session has read them for 0.1 s. More frequent queries would
    // return old rows. Source: MariaDB's documentation, "Information Schema INNODB_LOCK_WAITS Table".
    let (waits, pause) = match version.flavour {
        Flavour::MySql => (WAITS_MYSQL, Duration::from_millis(50)),
        Flavour::MariaDb => (WAITS_MARIADB, Duration::from_millis(130)),
    };
    let packages = packages(connection)?;
    let named: Vec<_> = packages
        .iter()
        .filter(|package| package.kind == Kind::Counters)
        .collect();
    let mut before = Vec::new();
    for package in &named {
        before.push(slots(connection, package)?);
    }
    let status = status(connection)?;
    let mut watched = Watched::default();
    let mut waiting: HashMap<Waited, u32> = HashMap::new();
    let mut statements: HashMap<Waited, String> = HashMap::new();
    let begin = Instant::now();
    while watched.samples == 0 || begin.elapsed() < duration && !interrupted.load(Ordering::Relaxed) {
        let rows: Vec<Wait> = connection.query(waits).map_err(privilege)?;
        watched.samples += 1;
        for (schema, table, index, key, transaction) in rows {
            let Some(row) = waited(schema, table, index, key) else {
                continue;
            };
            let of_package = packages
                .iter()
                .any(|one| (&one.schema, &one.table) == (&row.schema, &row.table));
            let found = statements
                .get(&row)
                .is_some_and(|statement| counted(statement).is_some());
            if !of_package && !found {
                let query = "SELECT trx_query FROM information_schema.INNODB_TRX WHERE trx_id = ?";
                let statement: Option<Option<String>> =
                    connection.exec_first(query, (transaction,)).map_err(privilege)?;
                if let Some(statement) = statement.flatten() {
                    statements.insert(row.clone(), statement);
                }
            }
            *waiting.entry(row).or_default() += 1;
        }
        let now = self::status(connection)?;
        let of = |name: &str| now.get(name).copied().unwrap_or_default() as u32;
        watched.connected = watched.connected.max(of("Threads_connected").saturating_sub(1));
        watched.running = watched.running.max(of("Threads_running").saturating_sub(1));
        thread::sleep(pause.min(duration.saturating_sub(begin.elapsed())));
    }
    watched.seconds = begin.elapsed().as_secs_f64();
    let after = self::status(connection)?;
    let grown = |name: &str| {
        let of = |status: &HashMap<String, u64>| status.get(name).copied().unwrap_or_default();
        of(&after).saturating_sub(of(&status))
    };
    watched.row_lock_waits = grown("Innodb_row_lock_waits");
    watched.row_lock_ms = grown("Innodb_row_lock_time");

    let average = |times: u32| f64::from(times) / f64::from(watched.samples);
    for (package, before) in named.iter().zip(&before) {
        for (name, now) in slots(connection, package)? {
            let of_counter = waiting.iter().filter(|(row, _)| {
                let name_of = row.key.first().and_then(|value| unquoted(value));
                (&row.schema, &row.table) == (&package.schema, &package.table)
                    && name_of.as_ref() == Some(&name)
            });
            let times: u32 = of_counter.map(|(_, times)| times).sum();
            let Some((read_us, read_one_us)) = if_exists(read_times(connection, package, &name))? else {
                continue;
            };
            let changes: Vec<u64> = now
                .iter()
                .map(|(slot, count)| {
                    let old = before.get(&name).and_then(|slots| slots.get(slot)).copied();
                    old.unwrap_or(0).abs_diff(*count)
                })
                .collect();
            let counted: u64 = changes.iter().sum();
            let most = changes.iter().copied().max().unwrap_or_default();
            watched.counters.push(Counter {
                schema: package.schema.clone(),
                table: package.table.clone(),
                prefix: package.prefix.clone(),
                name,
                slots: now.len() as u32,
                fixed: package.fixed,
                pick: package.pick.clone(),
                busy_slots: changes.iter().filter(|&&change| change > 0).count() as u32,
                counted,
                skew: if counted == 0 {
                    0.0
                } else {
                    most as f64 * changes.len() as f64 / counted as f64
                },
                waiting: average(times),
                read_us,
                read_one_us,
            });
        }
    }
    watched.rows = rows(connection, &packages, &waiting, &statements, average)?;
    Ok(watched)
}

/// Converts an error, and recognizes a missing privilege: on a table (1142), PROCESS (1227), on a schema (1044).
/// Source: MySQL manual, "Server Error Message Reference".
fn privilege(error: mysql::Error) -> WatchError {
    match error {
        mysql::Error::MySqlError(ref server) if [1142, 1227, 1044].contains(&server.code) => {
            WatchError::Privilege(error)
        }
        error => error.into(),
    }
}

fn waited(
    schema: Option<String>,
    table: Option<String>,
    index: Option<String>,
    key: Option<String>,
) -> Option<Waited> {
    let (mut schema, mut table) = (schema?, table?);
    if schema.is_empty() {
        let both = table.strip_prefix('`')?.strip_suffix('`')?;
        let (one, other) = both.split_once("`.`")?;
        (schema, table) = (one.replace("``", "`"), other.replace("``", "`"));
    }
    Some(Waited {
        schema,
        table,
        index: index?,
        key: key_values(&key?)?,
    })
}

fn status(connection: &mut Conn) -> Result<HashMap<String, u64>, mysql::Error> {
    let rows: Vec<(String, u64)> = connection.query(
        "SHOW GLOBAL STATUS
         WHERE Variable_name IN ('Innodb_row_lock_time', 'Innodb_row_lock_waits', 'Threads_connected', 'Threads_running')",
    )?;
    Ok(rows.into_iter().collect())
}

/// The packages of all schemas. Their views counter_package are recognized by the columns, because the prefix is an option.
fn packages(connection: &mut Conn) -> Result<Vec<Package>, mysql::Error> {
    let views: Vec<(String, String)> = connection.query(
        "SELECT TABLE_SCHEMA, TABLE_NAME
           FROM information_schema.COLUMNS
          WHERE TABLE_NAME LIKE '%package'
            AND COLUMN_NAME IN ('key_columns', 'default_slots', 'table_name', 'prefix', 'pick')
          GROUP BY TABLE_SCHEMA, TABLE_NAME
         HAVING COUNT(*) = 5",
    )?;
    let mut packages = Vec::new();
    for (schema, view) in views {
        let query = format!(
            "SELECT package, slots, default_slots, pick, table_name, prefix FROM {}.{}",
            quoted(&schema),
            quoted(&view)
        );
        let row: Option<(String, String, u32, String, String, String)> =
            if_exists(connection.query_first(query))?.flatten();
        packages.extend(
            row.map(|(package, slots, default_slots, pick, table, prefix)| Package {
                schema,
                table,
                prefix,
                kind: Kind::from_str(&package, false).unwrap_or(Kind::Counters),
                slots: default_slots,
                fixed: slots.parse::<u32>().is_ok(),
                pick,
            }),
        );
    }
    Ok(packages)
}

/// None if the schema (1049), the table (1146) or a table of the view (1356) does not exist. Other sessions can drop it
/// after it was listed. Source: MySQL manual, "Server Error Message Reference".
fn if_exists<T>(result: Result<T, mysql::Error>) -> Result<Option<T>, mysql::Error> {
    match result {
        Err(mysql::Error::MySqlError(error)) if [1049, 1146, 1356].contains(&error.code) => Ok(None),
        result => result.map(Some),
    }
}

/// The counts of all slots that increments select. A slot that a resize has retired has a negative number.
fn slots(connection: &mut Conn, package: &Package) -> Result<Slots, mysql::Error> {
    let rows: Option<Vec<(String, u32, i64)>> = if_exists(connection.query(format!(
        "SELECT counter_name, counter_id, counter FROM {}.{} WHERE counter_id > 0",
        quoted(&package.schema),
        quoted(&package.table)
    )))?;
    let mut slots = Slots::new();
    for (name, slot, count) in rows.unwrap_or_default() {
        slots.entry(name).or_default().insert(slot, count);
    }
    Ok(slots)
}

/// The median times to read a counter, and to read one slot of it, in microseconds.
fn read_times(connection: &mut Conn, package: &Package, name: &str) -> Result<(f64, f64), mysql::Error> {
    let table = format!("{}.{}", quoted(&package.schema), quoted(&package.table));
    let mut median = |condition: &str| -> Result<f64, mysql::Error> {
        let read = connection.prep(format!(
            "SELECT SUM(counter) FROM {table} WHERE counter_name = ?{condition}"
        ))?;
        let mut times = Vec::new();
        for _ in 0..READS {
            let begin = Instant::now();
            connection.exec_drop(&read, (name,))?;
            times.push(begin.elapsed());
        }
        times.sort_unstable();
        connection.close(read)?;
        Ok(times[READS / 2].as_secs_f64() * 1e6)
    };
    Ok((median("")?, median(" AND counter_id = 1")?))
}

/// The rows that sessions waited for and that are not slots of named counters: records of a package, and single rows
/// that a statement increments.
fn rows(
    connection: &mut Conn,
    packages: &[Package],
    waiting: &HashMap<Waited, u32>,
    statements: &HashMap<Waited, String>,
    average: impl Fn(u32) -> f64,
) -> Result<Vec<Row>, mysql::Error> {
    let mut rows: BTreeMap<(String, String, String), Row> = BTreeMap::new();
    for (waited, &times) in waiting {
        let package = packages
            .iter()
            .find(|one| (&one.schema, &one.table) == (&waited.schema, &waited.table));
        let statement = statements.get(waited).cloned().unwrap_or_default();
        let counted = counted(&statement);
        let record = match package.map(|package| package.kind) {
            Some(Kind::Counters) => continue,
            // The last column of the primary key is the slot, which is not part of the record's key.
            Some(Kind::SlottedCounters) => 1,
            None if counted.is_none() => continue,
            None => 0,
        };
        let columns: Vec<(String, String, String)> = connection.exec(
            "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE
               FROM information_schema.STATISTICS
               JOIN information_schema.COLUMNS USING (TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME)
              WHERE TABLE_SCHEMA = ?
                AND TABLE_NAME = ?
                AND INDEX_NAME = ?
              ORDER BY SEQ_IN_INDEX",
            (&waited.schema, &waited.table, &waited.index),
        )?;
        // A table without a primary key has a hidden one, which a condition cannot use.
        if columns.len() <= record {
            continue;
        }
        let pairs = columns[..columns.len() - record].iter().zip(&waited.key);
        let condition = pairs
            .map(|((name, data_type, column_type), value)| {
                format!("{name} = {}", literal(value, data_type, column_type))
            })
            .collect::<Vec<_>>()
            .join(" AND ");
        let key = (waited.schema.clone(), waited.table.clone(), condition.clone());
        let row = rows.entry(key).or_insert_with(|| Row {
            schema: waited.schema.clone(),
            table: waited.table.clone(),
            condition,
            takes: counted.as_ref().is_some_and(|counted| counted.takes),
            column: counted.map(|counted| counted.column),
            statement: statement.split_whitespace().collect::<Vec<_>>().join(" "),
            slots: package.map(|package| package.slots),
            waiting: 0.0,
        });
        row.waiting += average(times);
    }
    Ok(rows.into_values().filter(|row| row.waiting >= WAITING).collect())
}
