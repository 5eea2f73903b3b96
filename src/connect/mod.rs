//! A connection to a server: where it is, who connects, TLS, and errors that say what to do.

mod error;
pub mod option_file;
mod session;
mod url;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use mysql::{ClientIdentity, Conn, DriverError, Opts, OptsBuilder, SslOpts};

pub use error::{ConnectError, cause};
pub use session::{Session, end_statements};
pub use url::UrlError;

use option_file::Entry;

/// The time-out for a connection without an option.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// What the tool depends on in a session, whatever the defaults of the server are. A change that is not committed is lost at
/// the end (autocommit), a limit truncates results (sql_select_limit, group_concat_max_len), a mode changes the text of views and of strings
/// (sql_mode), and a short idle time ends the session during a load (wait_timeout). The time zone stays that of the server, as in the
/// sessions of an application that does not set one: start_date is a DATETIME.
/// Source: MySQL manual, "Server System Variables"; MariaDB documentation, "Server System Variables".
const SESSION: &str = "\
SET NAMES utf8mb4 COLLATE utf8mb4_general_ci,
    SESSION autocommit = 1,
    SESSION completion_type = 'NO_CHAIN',
    SESSION foreign_key_checks = 1,
    SESSION group_concat_max_len = 16777216,
    SESSION max_join_size = 18446744073709551615,
    SESSION sql_auto_is_null = 0,
    SESSION sql_big_selects = 1,
    SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION',
    SESSION sql_safe_updates = 0,
    SESSION sql_select_limit = 18446744073709551615,
    SESSION unique_checks = 1,
    SESSION wait_timeout = 28800
    /*!80000 , SESSION max_execution_time = 0,
    SESSION transaction_isolation = 'REPEATABLE-READ',
    SESSION transaction_read_only = 0 */
    /*M!100300 , SESSION check_constraint_checks = 1,
    SESSION idle_readonly_transaction_timeout = 0,
    SESSION idle_transaction_timeout = 0,
    SESSION idle_write_transaction_timeout = 0,
    SESSION max_statement_time = 0,
    SESSION tx_isolation = 'REPEATABLE-READ',
    SESSION tx_read_only = 0 */";

/// The default port of MySQL and MariaDB.
const PORT: u16 = 3306;

/// How often a connection that is being opened looks for Ctrl-C.
const INTERVAL: Duration = Duration::from_millis(20);

/// The sockets that the packages of MySQL and MariaDB create.
const SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

/// A value that no output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// How a connection over TCP uses TLS. The names and the default are those of MySQL's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SslMode {
    /// Without TLS
    Disabled,
    /// With TLS if the server supports it
    #[default]
    Preferred,
    /// With TLS
    Required,
    /// With TLS, and only if an authority has signed the certificate of the server
    VerifyCa,
    /// As verify-ca, and only if the certificate is for the host name
    VerifyIdentity,
}

impl SslMode {
    fn parse(text: &str) -> Option<Self> {
        Self::from_str(&text.replace('_', "-"), true).ok()
    }
}

/// What a source says about a connection: a URL, an option file, or options of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// A host name or an IP address.
    pub host: Option<String>,
    /// A TCP port.
    pub port: Option<u16>,
    /// A Unix socket.
    pub socket: Option<PathBuf>,
    /// Whether TCP is used also for the host `localhost`.
    pub tcp: Option<bool>,
    /// The account.
    pub user: Option<String>,
    /// The password of the account.
    pub password: Option<Secret>,
    /// The default database.
    pub database: Option<String>,
    /// How TLS is used.
    pub ssl_mode: Option<SslMode>,
    /// A file with certificates of authorities, in PEM. Public authorities are also accepted.
    pub ssl_ca: Option<PathBuf>,
    /// A file with the certificate of the client, in PEM.
    pub ssl_cert: Option<PathBuf>,
    /// A file with the private key of the client, in PEM.
    pub ssl_key: Option<PathBuf>,
    /// The time-out for the connection, including the login.
    pub timeout: Option<Duration>,
}

/// An option whose value is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The option is unknown.
    #[error("unknown option {0}")]
    Unknown(String),
    /// The value cannot be parsed. The message does not contain it.
    #[error("the value of {0} is not valid")]
    Value(String),
}

impl Settings {
    /// These settings, and those of `other` for what they do not say.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            host: self.host.or(other.host),
            port: self.port.or(other.port),
            socket: self.socket.or(other.socket),
            tcp: self.tcp.or(other.tcp),
            user: self.user.or(other.user),
            password: self.password.or(other.password),
            database: self.database.or(other.database),
            ssl_mode: self.ssl_mode.or(other.ssl_mode),
            ssl_ca: self.ssl_ca.or(other.ssl_ca),
            ssl_cert: self.ssl_cert.or(other.ssl_cert),
            ssl_key: self.ssl_key.or(other.ssl_key),
            timeout: self.timeout.or(other.timeout),
        }
    }

    /// Sets an option of an option file or a parameter of a URL.
    ///
    /// # Errors
    /// The option is unknown, or its value is not valid.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), SettingError> {
        let invalid = || SettingError::Value(name.to_owned());
        let text = || value.map(str::to_owned).ok_or_else(invalid);
        let path = || text().map(PathBuf::from);
        let enabled = || match value.map(str::to_lowercase).as_deref() {
            None | Some("1" | "on" | "true") => Ok(true),
            Some("0" | "off" | "false") => Ok(false),
            Some(_) => Err(invalid()),
        };
        match name {
            "host" => self.host = Some(text()?),
            "port" => self.port = Some(text()?.parse().map_err(|_| invalid())?),
            "socket" => self.socket = Some(path()?),
            "protocol" => self.tcp = Some(text()?.eq_ignore_ascii_case("tcp")),
            "user" => self.user = Some(text()?),
            "password" => self.password = value.map(|value| Secret(value.to_owned())),
            "database" => self.database = Some(text()?),
            "ssl-mode" => self.ssl_mode = Some(SslMode::parse(&text()?).ok_or_else(invalid)?),
            "ssl-ca" => self.ssl_ca = Some(path()?),
            "ssl-cert" => self.ssl_cert = Some(path()?),
            "ssl-key" => self.ssl_key = Some(path()?),
            "connect-timeout" => self.timeout = Some(seconds(&text()?).ok_or_else(invalid)?),
            // MariaDB's clients have these three in place of ssl-mode.
            "ssl" | "skip-ssl" => {
                let tls = enabled()? == (name == "ssl");
                self.ssl_mode = Some(if tls { SslMode::Required } else { SslMode::Disabled });
            }
            "ssl-verify-server-cert" => {
                if enabled()? {
                    self.ssl_mode = Some(SslMode::VerifyIdentity);
                }
            }
            _ => return Err(SettingError::Unknown(name.to_owned())),
        }
        Ok(())
    }

    /// The settings in the groups that MySQL's and MariaDB's clients read, and in `[slotted]`. With a suffix, also the
    /// groups whose names end with it. A later line overrides an earlier one.
    ///
    /// # Errors
    /// A value is not valid, or `[slotted]` has an unknown option. The other groups can have options of other programs.
    pub fn of_entries(entries: &[Entry], suffix: &str) -> Result<Self, SettingError> {
        let mut settings = Self::default();
        for Entry { group, name, value } in entries {
            let without = group.strip_suffix(suffix).unwrap_or(group);
            let ours = [group.as_str(), without].contains(&"slotted");
            let shared = ["client", "client-server", "client-mariadb"];
            if !ours && !shared.contains(&group.as_str()) && !shared.contains(&without) {
                continue;
            }
            match settings.set(name, value.as_deref()) {
                Err(SettingError::Unknown(_)) if !ours => {}
                result => result?,
            }
        }
        Ok(settings)
    }

    /// The settings in a URL.
    ///
    /// # Errors
    /// The URL cannot be parsed, or has an unknown parameter. The message does not contain the URL.
    pub fn of_url(url: &str) -> Result<Self, UrlError> {
        url::parse(url)
    }

    /// Where the connection goes, for a message: `host:port` or the path of a socket.
    pub fn place(&self) -> String {
        match self.socket_path() {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.address(), self.port.unwrap_or(PORT)),
        }
    }

    /// The account, for a message.
    pub fn account(&self) -> String {
        format!("{}@{}", self.user_name(), self.place())
    }

    fn user_name(&self) -> String {
        let of_system = || {
            ["USER", "LOGNAME"]
                .into_iter()
                .find_map(|name| std::env::var(name).ok())
        };
        // The clients use the name of the account that runs them.
        self.user
            .clone()
            .or_else(of_system)
            .unwrap_or_else(|| "root".into())
    }

    fn address(&self) -> &str {
        self.host
            .as_deref()
            .filter(|host| !host.is_empty())
            .unwrap_or("127.0.0.1")
    }

    /// The socket, as the clients choose it: the host `localhost` is the socket, unless a port or the protocol TCP is
    /// given.
    fn socket_path(&self) -> Option<&Path> {
        let local = matches!(self.host.as_deref(), None | Some("" | "localhost"));
        if !local || self.tcp == Some(true) {
            return None;
        }
        self.socket.as_deref().or_else(|| {
            let sockets = SOCKETS.iter().map(Path::new);
            sockets.filter(|_| self.port.is_none()).find(|path| path.exists())
        })
    }

    fn options(&self, tls: bool) -> Opts {
        let socket = self.socket_path();
        let builder = OptsBuilder::new()
            .ip_or_hostname(Some(self.address()))
            .tcp_port(self.port.unwrap_or(PORT))
            .socket(socket.map(|path| path.display().to_string()))
            // The driver would leave a TCP connection, and with it TLS, for the socket that the server names.
            .prefer_socket(false)
            .user(Some(self.user_name()))
            .pass(self.password.as_ref().map(|Secret(password)| password.clone()))
            .db_name(self.database.clone())
            .init(vec![SESSION])
            .ssl_opts(Some(self.tls()).filter(|_| tls && socket.is_none()));
        builder.into()
    }

    fn tls(&self) -> SslOpts {
        let mode = self.ssl_mode.unwrap_or_default();
        let verified = matches!(mode, SslMode::VerifyCa | SslMode::VerifyIdentity);
        let identity = self.ssl_cert.clone().zip(self.ssl_key.clone());
        SslOpts::default()
            .with_root_cert_path(self.ssl_ca.clone())
            .with_client_identity(identity.map(|(certificate, key)| ClientIdentity::new(certificate, key)))
            .with_danger_accept_invalid_certs(!verified)
            .with_danger_skip_domain_validation(mode == SslMode::VerifyCa)
    }

    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached before the time-out, the login fails, or `interrupted` is set.
    pub fn connect(&self, interrupted: &AtomicBool) -> Result<Session, ConnectError> {
        for file in [&self.ssl_ca, &self.ssl_cert, &self.ssl_key]
            .into_iter()
            .flatten()
        {
            std::fs::File::open(file).map_err(|error| ConnectError::File {
                path: file.clone(),
                error,
            })?;
        }
        if self.ssl_cert.is_some() != self.ssl_key.is_some() {
            return Err(ConnectError::HalfIdentity);
        }
        let mode = self.ssl_mode.unwrap_or_default();
        let options = self.options(mode != SslMode::Disabled);
        let end = Instant::now() + self.timeout.unwrap_or(TIMEOUT);
        match self.open(options, end, interrupted) {
            Err(ConnectError::Driver { error, .. })
                if mode == SslMode::Preferred
                    && matches!(error, mysql::Error::DriverError(DriverError::TlsNotSupported)) =>
            {
                self.open(self.options(false), end, interrupted)
            }
            result => result,
        }
    }

    /// Connects in a thread. The driver has no time-out for the resolution of the host name and for the login, and cannot be
    /// interrupted.
    fn open(&self, options: Opts, end: Instant, interrupted: &AtomicBool) -> Result<Session, ConnectError> {
        let (sender, receiver) = mpsc::channel();
        let opened = options.clone();
        thread::spawn(move || sender.send(Conn::new(opened)));
        loop {
            match receiver.recv_timeout(INTERVAL) {
                Ok(Ok(connection)) => return Ok(Session::of(connection, options)),
                Ok(Err(error)) => {
                    return Err(ConnectError::Driver {
                        place: self.place(),
                        account: self.account(),
                        password: self.password.is_some(),
                        error,
                    });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ConnectError::Ended { place: self.place() });
                }
                Err(RecvTimeoutError::Timeout) if interrupted.load(Ordering::Relaxed) => {
                    return Err(ConnectError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() >= end => {
                    return Err(ConnectError::Timeout {
                        place: self.place(),
                        after: self.timeout.unwrap_or(TIMEOUT),
                    });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// A number of seconds, from 0.1 to an hour.
pub fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.parse().ok().filter(|number| (0.1..=3600.0).contains(number));
    seconds.map(Duration::from_secs_f64)
}

#[cfg(test)]
mod tests {
    use super::option_file::Entry;
    use super::{Secret, Settings, SslMode};

    fn entry(group: &str, name: &str, value: &str) -> Entry {
        Entry {
            group: group.into(),
            name: name.into(),
            value: Some(value.into()),
        }
    }

    #[test]
    fn groups_with_the_suffix_and_ours_are_read() {
        let entries = [
            entry("client", "user", "a"),
            entry("mysqldump", "user", "b"),
            entry("client_eu", "host", "eu"),
            entry("client", "quick", "1"),
            entry("slotted_eu", "user", "c"),
        ];
        let plain = Settings::of_entries(&entries, "").expect("valid options");
        assert_eq!((plain.user.as_deref(), plain.host), (Some("a"), None));
        let eu = Settings::of_entries(&entries, "_eu").expect("valid options");
        assert_eq!((eu.user.as_deref(), eu.host.as_deref()), (Some("c"), Some("eu")));
        let unknown = Settings::of_entries(&[entry("slotted", "quick", "1")], "");
        assert_eq!(unknown.expect_err("an error").to_string(), "unknown option quick");
    }

    #[test]
    fn a_password_is_not_in_debug_output() {
        let settings = Settings {
            password: Some(Secret("hunter2".into())),
            ssl_mode: SslMode::parse("VERIFY_CA"),
            ..Settings::default()
        };
        assert_eq!(settings.ssl_mode, Some(SslMode::VerifyCa));
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
