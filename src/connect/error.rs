//! Why a connection failed, and what to do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use mysql::DriverError;

/// A connection that failed. No message contains a password.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server did not answer in time.
    #[error("{place} did not answer within {} s", .after.as_secs_f64())]
    Timeout {
        /// The address or the socket.
        place: String,
        /// The time-out.
        after: Duration,
    },
    /// The flag was set.
    #[error("interrupted")]
    Interrupted,
    /// The driver panicked.
    #[error("the connection to {place} ended in the driver")]
    Ended {
        /// The address or the socket.
        place: String,
    },
    /// A file of a certificate or a key cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A certificate without its key, or a key without its certificate.
    #[error("--ssl-cert and --ssl-key must be given together")]
    HalfIdentity,
    /// The driver or the server rejected the connection.
    #[error("cannot connect to {place}: {}", cause(.error))]
    Driver {
        /// The address or the socket.
        place: String,
        /// The user and the place.
        account: String,
        /// Whether a password was given.
        password: bool,
        /// The cause.
        error: mysql::Error,
    },
}

/// The message of an error without the type names of the driver.
pub fn cause(error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(error) => {
            format!("ERROR {} ({}): {}", error.code, error.state, error.message)
        }
        mysql::Error::IoError(error) => error.to_string(),
        mysql::Error::DriverError(DriverError::CouldNotConnect(Some((_, description, _)))) => {
            description.clone()
        }
        mysql::Error::DriverError(DriverError::TlsNotSupported) => "the server does not support TLS".into(),
        mysql::Error::DriverError(error) => error.to_string(),
        mysql::Error::CodecError(error) => of_stream(&error.to_string()).to_owned(),
        other => other.to_string(),
    }
}

impl ConnectError {
    /// Whether the account has a password, and none was given.
    pub fn needs_password(&self) -> bool {
        matches!(self, Self::Driver { error: mysql::Error::MySqlError(error), password: false, .. } if error.code == 1045)
    }

    /// What to do.
    pub fn hint(&self) -> String {
        match self {
            Self::Timeout { place, .. } => {
                format!(
                    "check that a server listens on {place} and that no firewall is between; --connect-timeout changes the time"
                )
            }
            Self::Interrupted => "run the command again".into(),
            Self::Ended { .. } => "report the command and the version of the server".into(),
            Self::File { .. } => "give a file that this account can read".into(),
            Self::HalfIdentity => "give both files, in PEM".into(),
            Self::Driver {
                place,
                account,
                password,
                error,
            } => of_driver(place, account, *password, error),
        }
    }
}

fn of_driver(place: &str, account: &str, password: bool, error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(error) => match error.code {
            1045 if !password => format!("{account} needs a password: add --password, which asks for it"),
            1045 => "check user and password, and the host from which the account may connect; with REQUIRE SSL or require_secure_transport, the \
                     account needs --ssl-mode required"
                .into(),
            1044 | 1049 => "create the database, give another one with --database, or grant the account privileges on it".into(),
            1040 | 1203 | 1226 => "wait until other connections have ended, or raise max_connections".into(),
            1129 => "run on the server: TRUNCATE TABLE performance_schema.host_cache (MySQL) or FLUSH HOSTS (MariaDB)".into(),
            1130 => "create an account for the host from which you connect".into(),
            3159 | 4031 => "the server requires TLS: use --ssl-mode required".into(),
            _ => "see the message of the server".into(),
        },
        mysql::Error::TlsError(error) => certificate_hint(&error.to_string()),
        mysql::Error::CodecError(error) if error.to_string().contains("certificate") => {
            certificate_hint(&error.to_string())
        }
        mysql::Error::DriverError(DriverError::TlsNotSupported) => {
            "enable TLS on the server, or use --ssl-mode disabled if the network is trusted".into()
        }
        mysql::Error::DriverError(DriverError::UnknownAuthPlugin(plugin)) => {
            format!(
                "check the user: MySQL answers with any plugin if the account does not exist. If it exists, its plugin {plugin} is not \
                 supported: ALTER USER ... IDENTIFIED WITH caching_sha2_password BY ..."
            )
        }
        _ => format!("check that the server is running, and that {place} is its address or socket"),
    }
}

/// The error of rustls in an error of the stream, without the words of the driver.
fn of_stream(message: &str) -> &str {
    let message = message.strip_prefix("IO error: `").unwrap_or(message);
    message.strip_suffix('\'').unwrap_or(message)
}

fn certificate_hint(message: &str) -> String {
    let message = message.to_lowercase();
    if ["unknownissuer", "badsignature"]
        .iter()
        .any(|cause| message.contains(cause))
    {
        "give the certificate of the authority that signed the server's certificate with --ssl-ca".into()
    } else if message.contains("notvalidforname") || message.contains("not valid for name") {
        "connect to the host name in the certificate, or use --ssl-mode verify-ca".into()
    } else {
        "check the certificates; --ssl-mode required encrypts without a check of the server's certificate"
            .into()
    }
}
