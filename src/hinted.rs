//! An error that says what to do.

use std::fmt::Display;

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
