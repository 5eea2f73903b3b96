//! Moves the counts of a row, a column or a table into a package.
//!
//! Each transaction locks rows of the source, adds their counts to the package, and sets them to 0. What is moved is therefore
//! known from the source itself: an interrupted move is completed by another one, and a repeated move adds what the source
//! has received meanwhile.

mod column;
mod comparisons;
mod row;
mod source;

pub use column::{Move, Sums};
pub use comparisons::{Comparisons, comparisons};
pub use row::{Moved, move_row};
pub use source::{Place, read};
pub(crate) use source::{checks, columns, expressions, key, views};

use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Params, Transaction, TxOpts};

use crate::connect::cause;
use crate::package::{Ident, Package, PackageError, Routine, SqlStr};

/// A move that is not possible, or has failed. What it has committed stays.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The connection fails, or the server rejects a statement.
    #[error("cannot {action}: {}", cause(.error))]
    Server {
        /// What the statement does.
        action: &'static str,
        /// The answer of the server.
        error: mysql::Error,
    },
    /// The move would change a count, or cannot be exact.
    #[error("{message}")]
    Rejected {
        /// The reason.
        message: String,
        /// What to do.
        hint: String,
    },
    /// Another session has changed rows in between.
    #[error("other sessions change the rows all the time")]
    Changed,
}

impl AdoptError {
    fn rejected(message: impl Into<String>, hint: impl Into<String>) -> Self {
        let (message, hint) = (message.into(), hint.into());
        Self::Rejected { message, hint }
    }

    fn number(&self) -> Option<u16> {
        match self {
            Self::Server {
                error: mysql::Error::MySqlError(error),
                ..
            } => Some(error.code),
            _ => None,
        }
    }

    /// Whether the transaction may succeed if it is repeated: deadlock, lock wait timeout, and the record has changed since
    /// the snapshot (innodb_snapshot_isolation of MariaDB).
    fn is_temporary(&self) -> bool {
        matches!(self, Self::Changed)
            || self
                .number()
                .is_some_and(|number| [1213, 1205, 1020].contains(&number))
    }

    /// What to do.
    pub fn hint(&self) -> String {
        match self {
            Self::Rejected { hint, .. } => hint.clone(),
            Self::Changed => "run the command again".into(),
            Self::Server { error: mysql::Error::MySqlError(error), .. } => match error.code {
                1142 | 1143 | 1370 | 1044 | 1045 | 1227 => {
                    "the account needs SELECT and UPDATE on the table of the column, and INSERT, SELECT and UPDATE on the table of \
                     slotted_counters, or EXECUTE on the routines of counters and SELECT on their views"
                }
                1264 | 1265 | 1366 | 1406 => {
                    "a value does not fit the package: render it with a --key that the column fits, or correct the row; run the \
                     command again: it moves what is left"
                }
                1213 | 1205 | 1020 => "end long transactions that write these rows, and run the command again: it moves what is left",
                _ => "remove the cause, and run the command again: it moves what is left",
            }
            .into(),
            Self::Server { .. } => "run the command again: it moves what is left".into(),
        }
    }
}

/// The result of a move.
pub type Result<T> = std::result::Result<T, AdoptError>;

/// Says what a statement does, if it fails.
trait Doing<T> {
    fn doing(self, action: &'static str) -> Result<T>;
}

impl<T> Doing<T> for mysql::Result<T> {
    fn doing(self, action: &'static str) -> Result<T> {
        self.map_err(|error| AdoptError::Server { action, error })
    }
}

/// The number of times that a transaction is tried.
const TRIES: u32 = 10;

/// Runs a transaction until the server does not roll it back, at most [`TRIES`] times. At REPEATABLE READ, the locks of its
/// first statement keep other sessions from inserting rows that its other statements would find.
fn complete<T>(connection: &mut Conn, mut work: impl FnMut(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
    let mut tries = 1;
    loop {
        let mut transaction = connection
            .start_transaction(TxOpts::default())
            .doing("start a transaction")?;
        let done = work(&mut transaction).and_then(|value| {
            transaction.commit().doing("commit")?;
            Ok(value)
        });
        match done {
            Err(error) if error.is_temporary() && tries < TRIES => {
                thread::sleep(Duration::from_millis(10) * tries);
                tries += 1;
            }
            done => return done,
        }
    }
}

/// The session settings that the statements rely on, also if the server has others: REPEATABLE READ, strict mode, and utf8mb4
/// for names.
///
/// # Errors
/// The connection fails.
pub fn prepare(connection: &mut Conn, package: &Package) -> mysql::Result<()> {
    connection.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    crate::render::session(package)
        .iter()
        .try_for_each(|statement| connection.query_drop(statement))
}

/// A counter that a row becomes.
struct Counter<'a> {
    name: &'a str,
    /// The description, which identifies the row.
    identity: Option<&'a str>,
    /// The number of slots of a new counter.
    slots: Option<u32>,
    /// Whether a counter of another row gets the count, too.
    into_existing: bool,
}

impl Counter<'_> {
    /// Adds a count to the counter, and creates the counter if it does not exist. Returns whether it did not.
    fn add(&self, transaction: &mut Transaction<'_>, package: &Package, amount: i64) -> Result<bool> {
        let query = format!(
            "SELECT description FROM {} WHERE counter_name = ?",
            package.totals
        );
        let existing: Option<Option<Vec<u8>>> = transaction
            .exec_first(query, (self.name,))
            .doing("query the counter")?;
        let existing = existing.map(|text| text.map(|text| String::from_utf8_lossy(&text).into_owned()));
        let Some(description) = existing else {
            let values = (self.name, self.identity, self.slots, amount);
            let created = call(transaction, package, Routine::Setup, values.into());
            return match created.doing("create the counter") {
                // Another session has created it, or an earlier row.
                Err(error) if error.number() == Some(PackageError::CounterExists.number()) => {
                    Err(AdoptError::Changed)
                }
                created => created.map(|()| true),
            };
        };
        if !self.into_existing && description.as_deref() != self.identity {
            let of = description.map_or("no description".into(), |text| {
                format!("the description {}", SqlStr(text))
            });
            return Err(AdoptError::rejected(
                format!(
                    "the counter {} was made for another row: it has {of}",
                    SqlStr(self.name)
                ),
                "choose another name, or add --into-existing to add the count to this counter",
            ));
        }
        if amount != 0 {
            let values = (self.name, amount);
            call(transaction, package, Routine::Add, values.into()).doing("add to the counter")?;
        }
        Ok(false)
    }
}

fn call(
    transaction: &mut Transaction<'_>,
    package: &Package,
    routine: Routine,
    values: Params,
) -> mysql::Result<()> {
    let name = package.routine(routine).expect("a routine of named counters");
    let count = match &values {
        Params::Positional(values) => values.len(),
        Params::Empty | Params::Named(_) => 0,
    };
    transaction.exec_drop(format!("CALL {name}({})", vec!["?"; count].join(", ")), values)
}

/// A name that the server has.
fn ident(name: &str) -> Ident {
    Ident::stored(name)
}
