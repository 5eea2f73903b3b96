//! The sessions that a command has open, and the end of their statements from other connections.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};

/// The sessions whose statements [`end_statements`] ends, by the order in which they were opened.
static OPEN: Mutex<BTreeMap<u64, (Opts, u32)>> = Mutex::new(BTreeMap::new());

/// Held while statements are ended.
static ENDING: Mutex<()> = Mutex::new(());

/// The time-out of a connection that ends a statement.
const TIMEOUT: Duration = Duration::from_secs(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection whose statements can be ended from another one: a statement that waits on the server goes on after its client
/// has left.
#[derive(Debug)]
pub struct Session {
    connection: Conn,
    options: Opts,
    number: u64,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// The connection fails.
    pub fn open(options: &Opts) -> mysql::Result<Self> {
        Ok(Self::of(Conn::new(options.clone())?, options.clone()))
    }

    pub(super) fn of(connection: Conn, options: Opts) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        lock(&OPEN).insert(number, (options.clone(), connection.connection_id()));
        Self {
            connection,
            options,
            number,
        }
    }

    /// The options for further connections to the same server.
    pub fn options(&self) -> &Opts {
        &self.options
    }

    /// The connection after a time in which it was idle. If the server or the network has closed it, it is opened again, without
    /// its locks, variables and settings.
    ///
    /// # Errors
    /// The connection fails.
    pub fn after_idle(&mut self) -> mysql::Result<&mut Conn> {
        if self.connection.ping().is_err() {
            let complete = !lock(&OPEN).contains_key(&self.number);
            *self = Self::open(&self.options)?;
            if complete {
                self.complete();
            }
        }
        Ok(&mut self.connection)
    }

    /// From now on, [`end_statements`] does not end the statements of this session: they complete what must not stay half done.
    pub fn complete(&mut self) {
        let _none_is_ended = lock(&ENDING);
        lock(&OPEN).remove(&self.number);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        lock(&OPEN).remove(&self.number);
    }
}

impl Deref for Session {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.connection
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.connection
    }
}

/// Ends the statements that the sessions of this process execute. A session that executes none goes on, and a server that takes no
/// connection is left out.
pub fn end_statements() {
    let _ending = lock(&ENDING);
    let mut servers: Vec<(Opts, Vec<u32>)> = Vec::new();
    for (options, id) in lock(&OPEN).values() {
        match servers.iter_mut().find(|(server, _)| server == options) {
            Some((_, ids)) => ids.push(*id),
            None => servers.push((options.clone(), vec![*id])),
        }
    }
    thread::scope(|scope| {
        for (options, ids) in servers {
            scope.spawn(move || {
                let options = OptsBuilder::from_opts(options)
                    .init(Vec::<String>::new())
                    .db_name(None::<String>)
                    .tcp_connect_timeout(Some(TIMEOUT))
                    .read_timeout(Some(TIMEOUT))
                    .write_timeout(Some(TIMEOUT));
                if let Ok(mut other) = Conn::new(options) {
                    for id in ids {
                        // A session that has ended meanwhile is an error.
                        let _ = other.query_drop(format!("KILL QUERY {id}"));
                    }
                }
            });
        }
    });
}
