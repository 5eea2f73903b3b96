//! Why a package cannot be installed or uninstalled.

use mysql::MySqlError;
use serde::Serialize;

use crate::connect::cause;

/// The time to wait for another installation in the same database, in seconds.
pub(super) const LOCK_TIMEOUT: u32 = 600;

/// Why a package cannot be installed or uninstalled.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The connection fails.
    #[error("{}", cause(.0))]
    MySql(#[from] mysql::Error),
    /// The server rejects a statement.
    #[error("cannot {action}: ERROR {} ({}): {}", .error.code, .error.state, .error.message)]
    Rejected {
        /// What the statement does, such as `create procedure counter_add`.
        action: String,
        /// The answer of the server.
        error: MySqlError,
        /// The privileges that the routine had, and that the server did not grant again.
        lost: Vec<String>,
    },
    /// A script rejects the server or a table, and says what to do.
    #[error("{0}")]
    Check(String),
    /// The table with the counts does not exist, but the database has other objects of the package.
    #[error("the table {0} does not exist, but the database has {1}: the table was renamed or dropped")]
    LostTable(String, String),
    /// The counts of a table that is to be dropped have changed.
    #[error("the counts of the table {0} have the sum {1} instead of {2}; it is kept")]
    Counts(String, String, String),
    /// The counts of a column with this sum are pending, and this account does not call the roll-up of this name.
    #[error("counts with the sum {0} are pending, and this account is not the definer of {1}")]
    Pending(String, String),
    /// What an uninstallation would read or call is not that of the package.
    #[error("{0}: {1}")]
    Differs(String, String),
    /// MySQL would drop a routine with privileges that this account cannot read.
    #[error("MySQL removes the privileges on {0} when it is replaced, and this account cannot read them: {1}")]
    HiddenGrants(String, String),
    /// The package is installed, but its routines do not work.
    #[error("the package is installed, but the trial of its routines failed at {statement}: ERROR {} ({}): {}", .error.code, .error.state, .error.message)]
    Trial {
        /// The statement of the trial.
        statement: String,
        /// The answer of the server.
        error: MySqlError,
    },
    /// Another session installs a package in this database.
    #[error("another installation in this database has not ended within {LOCK_TIMEOUT} s")]
    Locked,
}

/// What keeps a package from being installed or from working, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The problem.
    #[serde(rename = "problem")]
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl Problem {
    pub(super) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}
