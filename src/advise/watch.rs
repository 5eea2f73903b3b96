//! Observes the lock waits of a server. Only reads.

use std::collections::{BTreeMap, HashMap, btree_map, hash_map};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::lock_data::{key_values, literal, unquoted};
use super::{CannotSee, Counter, Installed, KeyColumn, Kind, Row, Said, WAITING, Watched};
use crate::adopt;
use crate::cluster::{self, Node, Table, denied};
use crate::connect::{cause, statement_hides_waits};
use crate::install::compare;
use crate::install::privileges::Privileges;
use crate::package::{Ident, Nodes, Prefix, quoted, shell_word};
use crate::server::{Flavour, Version};
use crate::statement::{self, meaning};

/// The number of reads of each counter, of which the median time is taken.
const READS: usize = 20;

/// The number of counters whose reads are timed, those with the most waiting sessions.
const TIMED: usize = 20;

/// Of a table with more slots than this, only the counters that sessions wait for are read.
const MOST_SLOTS: usize = 100_000;

/// The time between two queries of the lock waits. The servers refresh INNODB_TRX only if no session has read it for 0.1 s.
/// Source: MariaDB's documentation, "Information Schema INNODB_LOCK_WAITS Table"; MySQL source, `trx0i_s.cc`.
const PAUSE: Duration = Duration::from_millis(130);

/// The rows that transactions wait for, on MySQL. INNODB_TRX comes first, because data_locks finds one lock by its id, but
/// has a row for each lock of each transaction otherwise. data_lock_waits has a row for each pair of transactions in a
/// queue, which are 20,100 for 200 waiting sessions. Source: docs/design-notes.md, "What advise costs".
const WAITS_MYSQL: &str = "
SELECT locks.OBJECT_SCHEMA,
       locks.OBJECT_NAME,
       locks.INDEX_NAME,
       locks.LOCK_DATA,
       transactions.trx_query
  FROM information_schema.INNODB_TRX AS transactions
STRAIGHT_JOIN performance_schema.data_locks AS locks
    ON locks.ENGINE_LOCK_ID = transactions.trx_requested_lock_id
   AND locks.ENGINE = 'INNODB'
 WHERE transactions.trx_state = 'LOCK WAIT'
   AND locks.LOCK_TYPE = 'RECORD'";

/// The rows that transactions wait for, on MySQL, if INNODB_TRX cannot be read (see [`statement_hides_waits`]). The server reads
/// all locks for it.
const WAITS_OF_LOCKS: &str = "
SELECT locks.OBJECT_SCHEMA,
       locks.OBJECT_NAME,
       locks.INDEX_NAME,
       locks.LOCK_DATA,
       sessions.INFO
  FROM performance_schema.data_locks AS locks
  LEFT JOIN performance_schema.processlist AS sessions
    ON PS_THREAD_ID(sessions.ID) = locks.THREAD_ID
 WHERE locks.LOCK_STATUS = 'WAITING'
   AND locks.LOCK_TYPE = 'RECORD'
   AND locks.ENGINE = 'INNODB'";

/// The rows that transactions wait for, on MariaDB, which has schema and table in one column: `schema`.`table`.
const WAITS_MARIADB: &str = "
SELECT '',
       locks.lock_table,
       locks.lock_index,
       locks.lock_data,
       transactions.trx_query
  FROM information_schema.INNODB_TRX AS transactions
 INNER JOIN information_schema.INNODB_LOCKS AS locks
    ON locks.lock_id = transactions.trx_requested_lock_id
 WHERE locks.lock_type = 'RECORD'";

/// The state of a session that waits for a lock of a table whose engine does not lock rows.
/// Source: MySQL manual, "General Thread States".
const TABLE_WAIT: &[u8] = b"Waiting for table level lock";

/// The number of different statements that are kept for a row.
const STATEMENTS: usize = 100;

/// A row that a transaction waits for, with the names and values that the server returns.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Waited {
    schema: String,
    table: String,
    /// None if the session waits for the whole table.
    index: Option<String>,
    /// None for the end of an index, and for a page that is not in memory.
    key: Option<Vec<String>>,
}

/// How often transactions waited for a row, and how often with each statement.
#[derive(Debug, Default)]
struct Seen {
    times: u32,
    statements: BTreeMap<String, u32>,
}

/// An installed package, as its view counter_package describes it.
struct Package {
    schema: String,
    table: String,
    prefix: String,
    kind: Kind,
    version: String,
    slots: u32,
    fixed: bool,
    pick: String,
    nodes: Option<Nodes>,
    bounded: bool,
}

impl Package {
    fn table(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.table))
    }
}

/// The counts of all slots, by counter name and slot number.
type Slots = BTreeMap<String, BTreeMap<i64, i64>>;

/// A connection that observes, and what it cannot see.
struct Observer<'a> {
    connection: &'a mut Conn,
    version: Version,
    privileges: Privileges,
    /// The only schema to observe.
    only: Option<String>,
    cannot_see: Vec<CannotSee>,
}

/// Observes a server for `duration`, or until `interrupted` is set. With a current database, observes only the counters and
/// rows of this database.
///
/// # Errors
/// The connection fails. A missing privilege is no error, but in [`Watched::cannot_see`].
pub fn watch(
    connection: &mut Conn,
    duration: Duration,
    interrupted: &AtomicBool,
) -> Result<Watched, mysql::Error> {
    let mut observer = Observer {
        version: Version::of(connection)?,
        privileges: Privileges::read(connection)?,
        only: connection
            .query_first::<Option<String>, _>("SELECT DATABASE()")?
            .flatten(),
        connection,
        cannot_see: Vec::new(),
    };
    observer.watch(duration, interrupted)
}

impl Observer<'_> {
    fn watch(&mut self, duration: Duration, interrupted: &AtomicBool) -> Result<Watched, mysql::Error> {
        let mut watched = Watched {
            sees_waits: self.sees_waits()?,
            ..Watched::default()
        };
        let mut node = self.node()?;
        watched.nodes = node.cluster.as_ref().map_or(1, |cluster| cluster.size.max(1));
        self.sees_tables();
        let packages = self.packages()?;
        let named: Vec<_> = packages
            .iter()
            .filter(|package| package.kind == Kind::Counters)
            .collect();
        let mut before = Vec::new();
        for package in &named {
            before.push(self.slots(package)?);
        }
        let status = self.status()?;
        let mut waits: HashMap<Waited, Seen> = HashMap::new();
        // The first sample is not that of another session.
        thread::sleep(PAUSE);
        let begin = Instant::now();
        while watched.samples == 0 || begin.elapsed() < duration && !interrupted.load(Ordering::Relaxed) {
            let asked = Instant::now();
            if watched.sees_waits {
                self.sample(&mut waits)?;
            }
            watched.query_ms = watched.query_ms.max(asked.elapsed().as_secs_f64() * 1000.0);
            watched.samples += 1;
            let now = self.status()?;
            let of = |name: &str| now.get(name).copied().unwrap_or_default() as u32;
            watched.connected = watched.connected.max(of("Threads_connected").saturating_sub(1));
            watched.running = watched.running.max(of("Threads_running").saturating_sub(1));
            thread::sleep(PAUSE.min(duration.saturating_sub(begin.elapsed())));
        }
        watched.seconds = begin.elapsed().as_secs_f64();
        let after = self.status()?;
        let grown = |name: &str| {
            let of = |status: &HashMap<String, u64>| status.get(name).copied().unwrap_or_default();
            of(&after).saturating_sub(of(&status))
        };
        watched.row_lock_waits = grown("Innodb_row_lock_waits");
        watched.row_lock_ms = grown("Innodb_row_lock_time");
        let average = |times: u32| f64::from(times) / f64::from(watched.samples);
        for (package, before) in named.iter().zip(before) {
            let counters = self.counters(package, before, &waits, average)?;
            watched.counters.extend(counters);
        }
        self.time_reads(&mut watched.counters)?;
        watched.rows = self.rows(&packages, &waits, average)?;
        node.tables = self.tables(&node, &packages, &watched.counters)?;
        watched.servers.push(node);
        watched.connected_to_node = watched.connected;
        watched.running_on_node = watched.running;
        watched.cannot_see = std::mem::take(&mut self.cannot_see);
        Ok(watched)
    }

    fn mariadb(&self) -> bool {
        self.version.flavour == Flavour::MariaDb
    }

    fn cannot_see(&mut self, what: impl Into<String>, remedy: impl Into<String>) {
        let one = CannotSee {
            what: what.into(),
            remedy: remedy.into(),
        };
        if !self.cannot_see.contains(&one) {
            self.cannot_see.push(one);
        }
    }

    /// Whether the account can read the lock waits, and whether the server has them.
    fn sees_waits(&mut self) -> Result<bool, mysql::Error> {
        let mut missing = Vec::new();
        let tables: &[(&str, &str, &str)] = if self.mariadb() {
            &[("information_schema.INNODB_TRX", "PROCESS", "*.*")]
        } else {
            &[
                ("information_schema.INNODB_TRX", "PROCESS", "*.*"),
                ("performance_schema.data_locks", "SELECT", "performance_schema.*"),
            ]
        };
        for (table, privilege, place) in tables {
            // The error can come with the rows.
            let rows: mysql::Result<Vec<u8>> =
                self.connection.query(format!("SELECT 1 FROM {table} LIMIT 1"));
            match rows {
                Err(error) if denied(&error) => missing.push(self.privileges.on(privilege, place)),
                Err(error) if statement_hides_waits(&error) => {}
                other => drop(other?),
            }
        }
        if !missing.is_empty() {
            self.cannot_see("the row lock waits", missing.join(" "));
            return Ok(false);
        }
        let on: Option<u8> = if self.mariadb() {
            Some(1)
        } else {
            self.connection.query_first("SELECT @@performance_schema")?
        };
        if on == Some(0) {
            let waiting: Result<Option<u64>, _> = self.connection.query_first(
                "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'",
            );
            let waiting = match waiting {
                Err(error) if statement_hides_waits(&error) => String::new(),
                waiting => format!(
                    ", and {} transactions wait for a row lock now",
                    waiting?.unwrap_or_default()
                ),
            };
            self.cannot_see(
                format!("the row lock waits: performance_schema is OFF{waiting}"),
                "set performance_schema = ON in my.cnf, and restart the server",
            );
        }
        Ok(on != Some(0))
    }

    /// The server and its cluster.
    fn node(&mut self) -> Result<Node, mysql::Error> {
        let mut node = cluster::node(self.connection)?;
        for one in std::mem::take(&mut node.cannot_see) {
            self.cannot_see(one.what, one.remedy);
        }
        Ok(node)
    }

    /// The tables of packages, as the rules of a cluster need them. Empty without a cluster.
    fn tables(
        &mut self,
        node: &Node,
        packages: &[Package],
        counters: &[Counter],
    ) -> Result<Vec<Table>, mysql::Error> {
        let mut tables = Vec::new();
        for package in packages.iter().filter(|_| node.cluster.is_some()) {
            let of_package = counters
                .iter()
                .filter(|counter| (&counter.schema, &counter.table) == (&package.schema, &package.table));
            let records = package.kind == Kind::SlottedCounters;
            let mut table = Table {
                schema: package.schema.clone(),
                name: package.table.clone(),
                prefix: package.prefix.clone(),
                version: Some(package.version.clone()),
                records,
                fixed: (records || package.fixed).then_some(package.slots),
                nodes: package.nodes.clone(),
                remainder: None,
                random: package.pick == "random",
                storage: None,
                counters: of_package
                    .map(|counter| (counter.name.clone(), counter.slots))
                    .collect(),
            };
            table.read_properties(self.connection)?;
            tables.push(table);
        }
        Ok(tables)
    }

    /// Whether the account can read all tables that it has to observe.
    fn sees_tables(&mut self) {
        if self.privileges.has_global(&["SELECT"]) || self.only.is_some() && self.privileges.has("SELECT") {
            return;
        }
        let (what, remedy) = match &self.only {
            Some(name) => (
                format!("all tables of the database {name}"),
                self.privileges.on_schema("SELECT"),
            ),
            None => (
                "all tables of the server".to_owned(),
                format!(
                    "{} Or observe one database with --database.",
                    self.privileges.on("SELECT", "*.*")
                ),
            ),
        };
        self.cannot_see(what, remedy);
    }

    /// None if the account cannot read the object, which is then in the list of what it cannot see, or if another session
    /// has dropped it since it was listed: the schema (1049), the table (1146) or the column (1054).
    /// Source: MySQL manual, "Server Error Message Reference".
    fn readable<T>(
        &mut self,
        what: &str,
        schema: &str,
        result: Result<T, mysql::Error>,
    ) -> Result<Option<T>, mysql::Error> {
        match result {
            Err(mysql::Error::MySqlError(error)) if [1049, 1146, 1054].contains(&error.code) => Ok(None),
            Err(error) if denied(&error) => {
                let remedy = self.privileges.on("SELECT", &format!("{}.*", quoted(schema)));
                self.cannot_see(what, remedy);
                Ok(None)
            }
            // The table is not as the package creates it.
            Err(mysql::Error::MySqlError(error)) => {
                let what = format!(
                    "{what}: ERROR {} ({}): {}",
                    error.code, error.state, error.message
                );
                let remedy = format!(
                    "slotted status --database {} says what differs",
                    shell_word(schema)
                );
                self.cannot_see(what, remedy);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Adds the transactions that wait now.
    fn sample(&mut self, waits: &mut HashMap<Waited, Seen>) -> Result<(), mysql::Error> {
        let query = if self.mariadb() {
            WAITS_MARIADB
        } else {
            WAITS_MYSQL
        };
        // A name, a key or a statement can have bytes that are not UTF-8.
        let mut read = |query| {
            self.connection
                .query_map(query, |(a, b, c, d, e)| [a, b, c, d, e])
        };
        let rows: Vec<[Option<Vec<u8>>; 5]> = match read(query) {
            Err(error) if statement_hides_waits(&error) => read(WAITS_OF_LOCKS)?,
            rows => rows?,
        };
        for row in rows {
            let [schema, table, index, key, statement] =
                row.map(|value| value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
            let Some(row) = waited(schema, table, index, key) else {
                continue;
            };
            self.add(waits, row, statement);
        }
        // information_schema.PROCESSLIST can fail like INNODB_TRX; SHOW PROCESSLIST does not.
        let sessions: Vec<mysql::Row> = self.connection.query("SHOW FULL PROCESSLIST")?;
        for session in sessions {
            let text = |column| {
                session
                    .get::<Option<Vec<u8>>, _>(column)
                    .flatten()
                    .unwrap_or_default()
            };
            if text("State") != TABLE_WAIT {
                continue;
            }
            let (current, statement) = (text("db"), text("Info"));
            let statement = String::from_utf8_lossy(&statement).into_owned();
            let Some((schema, table)) = statement::place(&statement) else {
                continue;
            };
            let row = Waited {
                schema: schema.unwrap_or_else(|| String::from_utf8_lossy(&current).into_owned()),
                table,
                index: None,
                key: None,
            };
            self.add(waits, row, Some(statement));
        }
        Ok(())
    }

    /// Adds a session that waits.
    fn add(&self, waits: &mut HashMap<Waited, Seen>, row: Waited, statement: Option<String>) {
        if self.only.as_ref().is_some_and(|only| *only != row.schema) {
            return;
        }
        let seen = waits.entry(row).or_default();
        seen.times += 1;
        let Some(statement) = statement else { return };
        let known = seen.statements.contains_key(&statement);
        if known || seen.statements.len() < STATEMENTS {
            *seen.statements.entry(statement).or_default() += 1;
        }
    }

    fn status(&mut self) -> Result<HashMap<String, u64>, mysql::Error> {
        let rows: Vec<(String, u64)> = self.connection.query(
            "SHOW GLOBAL STATUS
             WHERE Variable_name IN ('Innodb_row_lock_time', 'Innodb_row_lock_waits', 'Threads_connected', 'Threads_running')",
        )?;
        Ok(rows.into_iter().collect())
    }

    /// The packages of all schemas, or of the one to observe.
    fn packages(&mut self) -> Result<Vec<Package>, mysql::Error> {
        let mut packages = Vec::new();
        for mut installed in compare::installed(self.connection, self.only.is_none())? {
            let (schema, view) = (installed.schema.clone(), installed.view.clone());
            match installed.error.take() {
                // Without the definer of a view (1449), the server tells some accounts only that they have no access (1045).
                Some(error) if !denied(&error) => {
                    let remedy = self.privileges.on("SHOW VIEW", &format!("{}.*", quoted(&schema)));
                    self.cannot_see(format!("the view {schema}.{view}: {}", cause(&error)), remedy);
                }
                Some(error) => {
                    self.readable(&format!("the view {schema}.{view}"), &schema, Err::<(), _>(error))?;
                }
                None => {}
            }
            let value = |column: &str| installed.value(column).unwrap_or_default().to_owned();
            // A view with other values is not of a package.
            let Ok(kind) = Kind::from_str(&value("package"), false) else {
                continue;
            };
            let table = value("table_name");
            // What a statement of a recommendation names is a name of a package.
            if Ident::new(&table).is_err() || value("prefix").parse::<Prefix>().is_err() {
                continue;
            }
            if !self.stores_rows(&schema, &table)? {
                continue;
            }
            packages.push(Package {
                version: value("version"),
                schema,
                table,
                prefix: value("prefix"),
                kind,
                slots: value("default_slots").parse().unwrap_or(1),
                fixed: value("slots").parse::<u32>().is_ok(),
                pick: value("pick"),
                nodes: Nodes::of_arguments(&value("arguments")),
                bounded: value("arguments")
                    .split(' ')
                    .any(|argument| argument == "--bounded"),
            });
        }
        Ok(packages)
    }

    /// Whether a table stores rows. A view of this name could call functions with the privileges of this account.
    fn stores_rows(&mut self, schema: &str, table: &str) -> Result<bool, mysql::Error> {
        let found: Option<u64> = self.connection.exec_first(
            "SELECT COUNT(*)
               FROM information_schema.TABLES
              WHERE TABLE_SCHEMA = ?
                AND TABLE_NAME = ?
                AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')",
            (schema, table),
        )?;
        Ok(found != Some(0))
    }

    /// The counts of all slots that increments select. A slot that a resize has retired has a negative number. None if the
    /// table has too many slots.
    fn slots(&mut self, package: &Package) -> Result<Option<Slots>, mysql::Error> {
        let rows = self.connection.query(format!(
            "SELECT {SLOT} FROM {} WHERE counter_id > 0 LIMIT {}",
            package.table(),
            MOST_SLOTS + 1
        ));
        let what = format!("the table {}.{}", package.schema, package.table);
        let rows: Vec<SlotRow> = self.readable(&what, &package.schema, rows)?.unwrap_or_default();
        Ok((rows.len() <= MOST_SLOTS).then(|| of_rows(rows)))
    }

    /// The counters of a package that were observed.
    fn counters(
        &mut self,
        package: &Package,
        before: Option<Slots>,
        waits: &HashMap<Waited, Seen>,
        average: impl Fn(u32) -> f64,
    ) -> Result<Vec<Counter>, mysql::Error> {
        let mut waiting: BTreeMap<String, u32> = BTreeMap::new();
        for (row, seen) in waits {
            if (&row.schema, &row.table) == (&package.schema, &package.table)
                && let Some(name) = row.key.iter().flatten().next().and_then(|value| unquoted(value))
            {
                *waiting.entry(name).or_default() += seen.times;
            }
        }
        let now = match &before {
            Some(_) => self.slots(package)?.unwrap_or_default(),
            None => {
                let mut rows = Vec::new();
                for name in waiting.keys() {
                    let query = format!(
                        "SELECT {SLOT} FROM {} WHERE counter_name = ? AND counter_id > 0",
                        package.table()
                    );
                    rows.extend(self.connection.exec::<SlotRow, _, _>(query, (name,))?);
                }
                of_rows(rows)
            }
        };
        let counter = |(name, now): (String, BTreeMap<i64, i64>)| {
            let changes: Vec<u64> = now
                .iter()
                .map(|(slot, count)| {
                    let old = before
                        .as_ref()
                        .map(|before| before.get(&name)?.get(slot).copied());
                    old.map_or(0, |old| old.unwrap_or(0).abs_diff(*count))
                })
                .collect();
            let counted = changes.iter().copied().fold(0, u64::saturating_add);
            let most = changes.iter().copied().max().unwrap_or_default();
            Counter {
                schema: package.schema.clone(),
                table: package.table.clone(),
                prefix: package.prefix.clone(),
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
                waiting: average(waiting.get(&name).copied().unwrap_or_default()),
                read_us: None,
                name,
            }
        };
        Ok(now.into_iter().map(counter).collect())
    }

    /// Measures the reads of the counters that sessions wait for or increment.
    fn time_reads(&mut self, counters: &mut [Counter]) -> Result<(), mysql::Error> {
        counters.sort_by(|one, other| {
            let of = |counter: &Counter| (counter.waiting, counter.counted);
            of(other)
                .partial_cmp(&of(one))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let busy = |counter: &&mut Counter| counter.waiting > 0.0 || counter.counted > 0;
        for counter in counters.iter_mut().filter(busy).take(TIMED) {
            let times = read_times(self.connection, counter);
            let what = format!("the table {}.{}", counter.schema, counter.table);
            counter.read_us = self.readable(&what, &counter.schema, times)?;
        }
        Ok(())
    }

    /// The rows that sessions waited for and that are not slots of named counters: records of a package, and rows of other
    /// tables.
    fn rows(
        &mut self,
        packages: &[Package],
        waits: &HashMap<Waited, Seen>,
        average: impl Fn(u32) -> f64,
    ) -> Result<Vec<Row>, mysql::Error> {
        let mut rows: BTreeMap<(String, String, String), Row> = BTreeMap::new();
        let mut unseen: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let mut keys: HashMap<(&str, &str, Option<&str>), Key> = HashMap::new();
        for (waited, seen) in waits {
            let package = packages
                .iter()
                .find(|one| (&one.schema, &one.table) == (&waited.schema, &waited.table));
            if package.is_some_and(|package| package.kind == Kind::Counters) {
                continue;
            }
            let place = (
                waited.schema.as_str(),
                waited.table.as_str(),
                waited.index.as_deref(),
            );
            let key = match keys.entry(place) {
                hash_map::Entry::Occupied(known) => known.into_mut(),
                hash_map::Entry::Vacant(unknown) => unknown.insert(self.key(waited)?),
            };
            let key = &*key;
            if key.table.columns.is_empty() {
                *unseen.entry((place.0, place.1)).or_default() += seen.times;
                continue;
            }
            let condition = self
                .condition(waited, key, package.is_some())?
                .unwrap_or_default();
            let statements: Vec<Said> = seen
                .statements
                .iter()
                .map(|(text, times)| said(text, average(*times), &key.table))
                .collect();
            let columns = statements
                .iter()
                .flat_map(|said| &said.changes)
                .map(|change| &change.column);
            let obstacles = columns
                .filter_map(|name| Some((name.clone(), key.table.obstacle(name)?)))
                .collect();
            let on_update = key.table.columns.iter().filter(|column| column.on_update);
            let installed = |bounded: bool| {
                let of_schema = packages.iter().find(|one| {
                    one.schema == waited.schema && one.kind == Kind::Counters && one.bounded == bounded
                });
                of_schema.map(|one| Installed {
                    prefix: one.prefix.clone(),
                    fixed: one.fixed,
                })
            };
            let row = Row {
                schema: waited.schema.clone(),
                table: waited.table.clone(),
                condition,
                key: key.primary.clone(),
                statements,
                obstacles,
                on_update: on_update.map(|column| column.name.name().to_owned()).collect(),
                slots: package.map(|package| package.slots),
                engine: key.engine.clone(),
                waiting: average(seen.times),
                counters: installed(false),
                bounded: installed(true),
            };
            match rows.entry((row.schema.clone(), row.table.clone(), row.condition.clone())) {
                btree_map::Entry::Occupied(mut same) => same.get_mut().add(row),
                btree_map::Entry::Vacant(place) => _ = place.insert(row),
            }
        }
        for ((schema, table), times) in unseen {
            let waiting = average(times);
            if waiting >= WAITING {
                let remedy = self.privileges.on("SELECT", &format!("{}.*", quoted(schema)));
                self.cannot_see(
                    format!(
                        "the table {schema}.{table}, for whose rows {waiting:.1} sessions wait on average"
                    ),
                    remedy,
                );
            }
        }
        Ok(rows.into_values().collect())
    }

    /// The columns of a table and of the index of a lock. Empty if the account cannot see the table.
    fn key(&mut self, waited: &Waited) -> Result<Key, mysql::Error> {
        let place = (&waited.schema, &waited.table);
        let columns: Vec<(String, String, String, Option<String>)> = self.connection.exec(
            "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, COLLATION_NAME
               FROM information_schema.COLUMNS
              WHERE TABLE_SCHEMA = ?
                AND TABLE_NAME = ?
              ORDER BY ORDINAL_POSITION",
            place,
        )?;
        // An index on an expression has no column.
        let indexes: Vec<(String, Option<String>, bool)> = self.connection.exec(
            "SELECT INDEX_NAME, COLUMN_NAME, NON_UNIQUE = 0
               FROM information_schema.STATISTICS
              WHERE TABLE_SCHEMA = ?
                AND TABLE_NAME = ?
              ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX",
            place,
        )?;
        let columns: Vec<KeyColumn> = columns
            .into_iter()
            .map(|(name, data_type, column_type, collation)| KeyColumn {
                name,
                data_type,
                column_type,
                collation,
            })
            .collect();
        let of = |index: &str| -> Vec<KeyColumn> {
            let names = indexes.iter().filter(|(name, ..)| name == index);
            names
                .filter_map(|(_, name, _)| columns.iter().find(|column| Some(&column.name) == name.as_ref()))
                .cloned()
                .collect()
        };
        let unique = indexes
            .chunk_by(|one, next| one.0 == next.0)
            .filter(|index| index[0].2)
            .filter_map(|index| index.iter().map(|(_, name, _)| name.clone()).collect())
            .collect();
        let (index, primary) = (of(waited.index.as_deref().unwrap_or_default()), of("PRIMARY"));
        let rest = primary.iter().filter(|column| !index.contains(column)).cloned();
        let engine: Option<Option<String>> = match waited.index {
            Some(_) => None,
            None => self.connection.exec_first(
                "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?",
                place,
            )?,
        };
        Ok(Key {
            engine: engine.flatten(),
            entries: index.iter().cloned().chain(rest).collect(),
            index,
            primary,
            table: self.table(waited, unique)?,
        })
    }

    /// What the meaning of a statement depends on.
    fn table(&mut self, waited: &Waited, unique: Vec<Vec<String>>) -> Result<statement::Table, mysql::Error> {
        let (schema, name) = (&waited.schema, &waited.table);
        let checks = adopt::checks(self.connection, schema, name)?;
        // An INSERT that updates a row does not run the triggers AFTER INSERT.
        let triggers: Vec<(String, bool)> = self.connection.exec(
            "SELECT TRIGGER_NAME, EVENT_MANIPULATION = 'INSERT'
               FROM information_schema.TRIGGERS
              WHERE EVENT_OBJECT_SCHEMA = ?
                AND EVENT_OBJECT_TABLE = ?
                AND (EVENT_MANIPULATION = 'UPDATE' OR EVENT_MANIPULATION = 'INSERT' AND ACTION_TIMING = 'BEFORE')",
            (schema, name),
        )?;
        let (insert_triggers, triggers): (Vec<_>, Vec<_>) =
            triggers.into_iter().partition(|(_, inserts)| *inserts);
        let names = |triggers: Vec<(String, bool)>| triggers.into_iter().map(|(name, _)| name).collect();
        Ok(statement::Table {
            schema: schema.clone(),
            name: name.clone(),
            columns: adopt::columns(self.connection, schema, name)?,
            unique,
            one_row: self.matches(waited, "TRUE", false)?,
            checks,
            expressions: adopt::expressions(self.connection, schema, name)?,
            triggers: names(triggers),
            insert_triggers: names(insert_triggers),
            views: adopt::views(self.connection, schema)?,
        })
    }

    /// The condition that finds a locked row, by its primary key, or by a unique key if the server returns only its values.
    /// None if the table has no such key, or if the condition does not find one row.
    fn condition(
        &mut self,
        waited: &Waited,
        key: &Key,
        record: bool,
    ) -> Result<Option<String>, mysql::Error> {
        let Some(values) = &waited.key else {
            return Ok(None);
        };
        let columns = if values.len() == key.entries.len() {
            // The last column of the primary key of a package is the slot, which is not part of the record's key.
            &key.primary[..key.primary.len().saturating_sub(usize::from(record))]
        } else if values.len() == key.index.len() {
            &key.index
        } else {
            return Ok(None);
        };
        let mut condition = Vec::new();
        for column in columns {
            let Some(at) = key.entries.iter().position(|entry| entry == column) else {
                return Ok(None);
            };
            let value = literal(&values[at], &column.data_type, &column.column_type);
            condition.push(format!("{} = {value}", self.name(&column.name)?));
        }
        let condition = condition.join(" AND ");
        let found = !condition.is_empty() && self.matches(waited, &condition, record)?;
        Ok(found.then_some(condition))
    }

    /// Whether a condition matches one row, or the slots of a record.
    fn matches(&mut self, waited: &Waited, condition: &str, record: bool) -> Result<bool, mysql::Error> {
        let query = format!(
            "/*M!100100 SET STATEMENT max_statement_time = 2 FOR */
             SELECT /*+ MAX_EXECUTION_TIME(2000) */ COUNT(*) FROM (SELECT 1 FROM {}.{} WHERE {condition} LIMIT 2) AS found",
            quoted(&waited.schema),
            quoted(&waited.table)
        );
        match self.connection.query_first::<u64, _>(query) {
            // Another session has dropped the table, or the query takes too long.
            Err(mysql::Error::MySqlError(error)) if !denied(&mysql::Error::MySqlError(error.clone())) => {
                Ok(false)
            }
            Err(error) if denied(&error) => Ok(true),
            found => Ok(found?.is_some_and(|rows| rows == 1 || record && rows > 0)),
        }
    }

    /// A name as a condition needs it, in backticks if it is a reserved word of this server or has special characters.
    fn name(&mut self, name: &str) -> Result<String, mysql::Error> {
        let simple = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.chars().all(simple) && !name.starts_with(|c: char| c.is_ascii_digit()) {
            let query = format!("SELECT {name} FROM (SELECT 1 AS {}) AS names", quoted(name));
            match self.connection.prep(query) {
                Ok(statement) => {
                    self.connection.close(statement)?;
                    return Ok(name.to_owned());
                }
                Err(mysql::Error::MySqlError(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(quoted(name))
    }
}

/// The keys and the columns of a table that has waiting sessions.
struct Key {
    primary: Vec<KeyColumn>,
    /// The columns of the index of the lock.
    index: Vec<KeyColumn>,
    /// The columns of an entry of this index: those of the primary key follow.
    entries: Vec<KeyColumn>,
    /// What the meaning of a statement depends on.
    table: statement::Table,
    /// The engine, if sessions wait for the whole table.
    engine: Option<String>,
}

/// The name, the slot and the count of a row, of whatever type the columns of a table are that is not as the package creates it.
const SLOT: &str = "LEFT(counter_name, 255), CAST(counter_id AS SIGNED), CAST(counter AS SIGNED)";

type SlotRow = (Option<Vec<u8>>, Option<i64>, Option<i64>);

/// What a statement does with the row that it waits for.
fn said(text: &str, waiting: f64, table: &statement::Table) -> Said {
    let said = Said {
        text: text.to_owned(),
        waiting,
        ..Said::default()
    };
    match meaning(text, table) {
        Ok(meaning) => Said {
            changes: meaning.changes,
            sets: meaning.sets,
            only_if: meaning.only_if,
            ..said
        },
        Err(doubt) => Said {
            doubt: Some(doubt),
            ..said
        },
    }
}

fn of_rows(rows: Vec<SlotRow>) -> Slots {
    let mut slots = Slots::new();
    for (name, slot, count) in rows {
        let name = String::from_utf8_lossy(&name.unwrap_or_default()).into_owned();
        let of_name = slots.entry(name).or_default();
        of_name.insert(slot.unwrap_or_default(), count.unwrap_or_default());
    }
    slots
}

fn waited(
    schema: Option<String>,
    table: Option<String>,
    index: Option<String>,
    key: Option<String>,
) -> Option<Waited> {
    let (mut schema, mut table) = (schema?, table?);
    if schema.is_empty() {
        // A partition is in a comment after the name.
        let names = table.split(" /*").next()?;
        let both = names.strip_prefix('`')?.strip_suffix('`')?;
        let (one, other) = both.split_once("`.`")?;
        (schema, table) = (one.replace("``", "`"), other.replace("``", "`"));
    }
    Some(Waited {
        schema,
        table,
        index: Some(index?),
        key: key.as_deref().and_then(key_values),
    })
}

/// The median times to read a counter, and to read one slot of it, in microseconds.
fn read_times(connection: &mut Conn, counter: &Counter) -> Result<(f64, f64), mysql::Error> {
    let table = format!("{}.{}", quoted(&counter.schema), quoted(&counter.table));
    let mut median = |condition: &str| -> Result<f64, mysql::Error> {
        let read = connection.prep(format!(
            "SELECT SUM(counter) FROM {table} WHERE counter_name = ?{condition}"
        ))?;
        let mut times = Vec::new();
        for _ in 0..READS {
            let begin = Instant::now();
            connection.exec_drop(&read, (&counter.name,))?;
            times.push(begin.elapsed());
        }
        times.sort_unstable();
        connection.close(read)?;
        Ok(times[READS / 2].as_secs_f64() * 1e6)
    };
    Ok((median("")?, median(" AND counter_id = 1")?))
}
