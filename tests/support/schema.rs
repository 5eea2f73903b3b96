//! A schema for each test.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, OptsBuilder, Value};
use slotted::package::{Ident, Package};
use slotted::{render, script};

use super::{Client, Server, servers};

pub struct Schema<'a> {
    pub server: &'a Server,
    pub name: String,
    /// A connection that queries of the test share, because a new one takes much of the processor.
    shared: Mutex<Option<Conn>>,
}

/// The sessions of a server. PROCESSLIST of MySQL fails while the statement of a session has a character of 4 bytes (3854).
pub const SESSIONS: &str = "/*M!100000 information_schema.PROCESSLIST */ /*!80022 performance_schema.processlist */";

/// The number and the message of the error that the server returned.
#[track_caller]
pub fn error_of<T: std::fmt::Debug>(result: mysql::Result<T>) -> (u16, String) {
    match result {
        Err(mysql::Error::MySqlError(error)) => (error.code, error.message),
        other => panic!("expected an error of the server, got {other:?}"),
    }
}

/// The number of the error that the server returned, or 0.
#[track_caller]
pub fn number_of<T: std::fmt::Debug>(result: mysql::Result<T>) -> u16 {
    if result.is_ok() { 0 } else { error_of(result).0 }
}

/// Executes a script as the client does: what stands between two delimiters in one packet.
pub fn source(connection: &mut Conn, text: &str) -> mysql::Result<()> {
    script::statements(text).into_iter().try_for_each(|packet| send(connection, &packet))
}

/// Executes the statements of a packet, and returns the first error.
pub fn send(connection: &mut Conn, packet: &str) -> mysql::Result<()> {
    let mut results = connection.query_iter(packet)?;
    while let Some(result) = results.iter() {
        result.into_iter().try_for_each(|row| row.map(drop))?;
    }
    Ok(())
}

impl<'a> Schema<'a> {
    pub fn new(server: &'a Server) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self::named(server, &format!("slotted_test_{}_{number}", std::process::id()), "")
    }

    /// Creates a schema with a name, and with `more` after it in CREATE DATABASE.
    pub fn named(server: &'a Server, name: &str, more: &str) -> Self {
        let (name, shared) = (name.to_owned(), Mutex::new(None));
        let schema = Self { server, name, shared };
        let create = format!("CREATE DATABASE {} {more}", schema.ident());
        server.connect().query_drop(create).expect("a new schema");
        schema
    }

    pub fn ident(&self) -> Ident {
        Ident::new(&self.name).expect("a name for a schema")
    }

    pub fn options(&self) -> OptsBuilder {
        self.server.options().db_name(Some(&self.name))
    }

    pub fn connect(&self) -> Conn {
        // A server keeps some dozens of TCP connections that it has not accepted (back_log). The client of one that the kernel drops
        // waits for the first packet of the server without end.
        static OPENING: Mutex<()> = Mutex::new(());
        let _opening = servers::given().then(|| OPENING.lock());
        Conn::new(self.options()).expect("the server takes a connection")
    }

    /// A connection whose ID has a remainder: it selects the slot. The IDs of other connections are skipped.
    pub fn connect_with_id(&self, remainder: u32, modulus: u32) -> Conn {
        loop {
            let connection = self.connect();
            if connection.connection_id() % modulus == remainder {
                return connection;
            }
        }
    }

    /// A connection with an isolation level.
    pub fn isolated(&self, isolation: &str) -> Conn {
        let mut connection = self.connect();
        let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}");
        connection.query_drop(level).expect("isolation");
        connection
    }

    /// The type and mode of the locks that all transactions hold in this schema. Only on MySQL.
    pub fn data_locks(&self) -> Vec<(String, String)> {
        let query = "SELECT LOCK_TYPE, LOCK_MODE FROM performance_schema.data_locks WHERE OBJECT_SCHEMA = ? ORDER BY 1";
        self.connect().exec(query, (&self.name,)).expect("data_locks")
    }

    pub fn client(&self) -> Client {
        self.server.client(&self.name)
    }

    /// Installs a package with setup.sql for this server, through the driver.
    pub fn install(&self, package: &Package) {
        self.run(&self.file(package, "setup.sql"));
    }

    /// A file of a package for this server.
    pub fn file(&self, package: &Package, name: &str) -> String {
        let files = render::files(&package.clone().of_family(self.server.version.family));
        files.into_iter().find(|file| file.name == name).expect("every package has it").text
    }

    /// Runs a script through the driver.
    pub fn run(&self, text: &str) {
        source(&mut self.connect(), text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    }

    /// Runs a query over the shared connection, or over a new one while another thread uses it.
    pub fn query<T: FromRow>(&self, query: &str) -> Vec<T> {
        let mut shared = self.shared.try_lock().ok();
        let connection = shared.as_mut().and_then(|shared| shared.take());
        let mut connection = connection.unwrap_or_else(|| self.connect());
        // MySQL cannot return INNODB_TRX while the statement of a session has a character of 4 bytes (3854).
        let end = Instant::now() + Duration::from_secs(30);
        let rows = loop {
            match connection.query(query) {
                Err(mysql::Error::MySqlError(error)) if error.code == 3854 && Instant::now() < end => {
                    thread::sleep(Duration::from_millis(110));
                }
                rows => break rows.expect(query),
            }
        };
        if let Some(shared) = &mut shared {
            **shared = Some(connection);
        }
        rows
    }

    /// The first row of a query.
    pub fn first<T: FromRow>(&self, query: &str) -> T {
        let first = self.query(query).into_iter().next();
        first.unwrap_or_else(|| panic!("no row: {query}"))
    }

    /// The number of tables, views, routines and events.
    pub fn objects(&self) -> usize {
        self.first(
            "SELECT (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE())
                  + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())
                  + (SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE())",
        )
    }

    /// All rows of a table, in the order of its key.
    pub fn rows(&self, table: &Ident) -> Vec<Vec<Value>> {
        let rows: Vec<mysql::Row> = self.query(&format!("SELECT * FROM {table} ORDER BY 1, 2"));
        rows.into_iter().map(mysql::Row::unwrap).collect()
    }
}

impl Drop for Schema<'_> {
    fn drop(&mut self) {
        if let Ok(mut connection) = Conn::new(self.server.options()) {
            // A failed test can leave a connection in a transaction. DROP DATABASE must not wait for its locks long.
            let _ = connection.query_drop("SET SESSION lock_wait_timeout = 5");
            let _ = connection.query_drop(format!("DROP DATABASE {}", self.ident()));
        }
    }
}
