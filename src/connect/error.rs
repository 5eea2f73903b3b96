//! Errors that say what to do, and why a connection failed.

use std::error::Error;
use std::fmt::Display;

use mysql::DriverError;

use super::Settings;

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

impl Settings {
    /// Why a connection with these settings failed, and what to do.
    pub(super) fn failed(&self, error: &mysql::Error) -> Hinted {
        Hinted::new(format!("cannot connect to {}: {}", self.place(), cause(error)), self.hint(error))
    }

    fn hint(&self, error: &mysql::Error) -> String {
        let certificate = "give the certificate of the authority that signed the server's certificate with --ssl-ca; --ssl-mode VERIFY_CA does not check \
             the host name, and REQUIRED checks no certificate";
        match error {
            mysql::Error::MySqlError(error) => match error.code {
                1045 | 1698 if self.password.is_none() => {
                    format!("{} needs a password: add -p, which asks for it", self.account())
                }
                1044 | 1049 => "create the database, name another one with -D, or grant the account privileges on it".into(),
                3159 | 4031 => "the server requires TLS: use --ssl-mode REQUIRED".into(),
                1045 | 1698 | 1130 => "check --user and --password, and the host from which the account may connect; an account with REQUIRE SSL needs \
                         --ssl-mode REQUIRED, one with REQUIRE X509 --ssl-cert and --ssl-key"
                    .into(),
                _ => "the server says why; --host, --port, --socket and --url connect to another one".into(),
            },
            mysql::Error::DriverError(DriverError::UnknownAuthPlugin(plugin)) => format!(
                "check --user: MySQL answers with any plugin if the account does not exist. The plugin {plugin} of an account is not \
                 supported: ALTER USER ... IDENTIFIED WITH caching_sha2_password BY ..."
            ),
            mysql::Error::DriverError(DriverError::TlsNotSupported) => {
                "enable TLS on the server, or use --ssl-mode DISABLED if you trust the network".into()
            }
            mysql::Error::TlsError(_) => certificate.into(),
            mysql::Error::CodecError(error) if error.to_string().contains("certificate") => certificate.into(),
            _ => "check that the server is running; --host and --port, --socket or --url say where it is, and --user who connects".into(),
        }
    }
}
