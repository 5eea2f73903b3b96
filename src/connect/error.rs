//! Errors that say what to do.

use std::error::Error;
use std::fmt::Display;

use mysql::DriverError;

/// An error with a hint, which says what to do. Neither contains a password.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Hinted {
    /// What happened.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl Hinted {
    /// An error with a hint.
    pub fn new(message: impl Display, hint: impl Into<String>) -> Self {
        Self { message: message.to_string(), hint: hint.into() }
    }
}

/// The message of an error without the type names of the driver.
pub fn cause(error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(error) => {
            format!("ERROR {} ({}): {}", error.code, error.state, error.message)
        }
        mysql::Error::IoError(error) => error.to_string(),
        mysql::Error::DriverError(DriverError::CouldNotConnect(Some((_, description, _)))) => description.clone(),
        mysql::Error::DriverError(DriverError::TlsNotSupported) => "the server does not support TLS".into(),
        mysql::Error::DriverError(error) => error.to_string(),
        // Of the system, such as TLS.
        mysql::Error::CodecError(error) => error.source().map_or_else(|| error.to_string(), ToString::to_string),
        other => other.to_string(),
    }
}
