//! A connection to a server: where it is, who connects, TLS, and errors that say what to do.

mod error;
pub mod option_file;
mod session;
mod url;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use mysql::{ClientIdentity, Conn, DriverError, Opts, OptsBuilder, SslOpts};

pub use error::{Hinted, cause};

use option_file::Entry;
use session::SESSION;

/// How long a TCP connection is tried.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The default port of MySQL and MariaDB.
const PORT: u16 = 3306;

/// The sockets that the packages of MySQL and MariaDB create.
const SOCKETS: [&str; 4] =
    ["/run/mysqld/mysqld.sock", "/var/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];

/// A value that no output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// How a connection over TCP uses TLS. The names and the default are those of MySQL's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
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
    /// As VERIFY_CA, and only if the certificate is for the host name
    VerifyIdentity,
}

/// What a source says about a connection: a URL, an option file, or options of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Settings {
    /// The host name or IP address [default: the socket, or 127.0.0.1]
    #[arg(short, long)]
    pub host: Option<String>,

    /// The TCP port [default: 3306]
    #[arg(short = 'P', long)]
    pub port: Option<u16>,

    /// The Unix socket
    #[arg(short = 'S', long, value_name = "FILE")]
    pub socket: Option<PathBuf>,

    /// The account [default: the name of your account on this machine]
    #[arg(short, long, value_name = "NAME")]
    pub user: Option<String>,

    /// The database
    #[arg(short = 'D', long, value_name = "NAME")]
    pub database: Option<String>,

    /// How TCP uses TLS [default: PREFERRED]
    #[arg(long, value_name = "MODE", ignore_case = true)]
    pub ssl_mode: Option<SslMode>,

    /// Certificates of authorities in PEM, in addition to the public authorities
    #[arg(long, value_name = "FILE")]
    pub ssl_ca: Option<PathBuf>,

    /// The certificate of the account in PEM, with --ssl-key
    #[arg(long, value_name = "FILE")]
    pub ssl_cert: Option<PathBuf>,

    /// The private key of --ssl-cert in PEM
    #[arg(long, value_name = "FILE")]
    pub ssl_key: Option<PathBuf>,

    /// The password of the account.
    #[arg(skip)]
    pub password: Option<Secret>,

    /// Whether TCP is used even for the host `localhost`.
    #[arg(skip)]
    pub tcp: Option<bool>,
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
        }
    }

    /// Sets an option of an option file. Returns whether there is such an option. The error does not contain the value.
    fn set(&mut self, name: &str, value: Option<&str>) -> Result<bool, Hinted> {
        let invalid = || option_file::incorrect(format!("in an option file: the value of {name} is not valid"));
        let text = || value.map(str::to_owned).ok_or_else(invalid);
        let on = || matches!(value.map(str::to_lowercase).as_deref(), None | Some("1" | "on" | "true"));
        match name {
            "host" => self.host = Some(text()?),
            "port" => self.port = Some(text()?.parse().map_err(|_| invalid())?),
            "socket" => self.socket = Some(text()?.into()),
            "protocol" => self.tcp = Some(text()?.eq_ignore_ascii_case("tcp")),
            "user" => self.user = Some(text()?),
            "password" => self.password = value.map(Secret::from),
            "database" => self.database = Some(text()?),
            "ssl-mode" => self.ssl_mode = Some(SslMode::from_str(&text()?, true).map_err(|_| invalid())?),
            "ssl-ca" => self.ssl_ca = Some(text()?.into()),
            "ssl-cert" => self.ssl_cert = Some(text()?.into()),
            "ssl-key" => self.ssl_key = Some(text()?.into()),
            // MariaDB's clients have these in place of ssl-mode.
            "skip-ssl" => self.ssl_mode = Some(SslMode::Disabled),
            // Whichever of the two lines comes first.
            "ssl" if on() => self.ssl_mode = self.ssl_mode.max(Some(SslMode::Required)),
            "ssl-verify-server-cert" if on() => self.ssl_mode = Some(SslMode::VerifyIdentity),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The settings in the groups that MySQL's and MariaDB's clients read, and in `[slotted]`. A later line overrides an earlier one.
    ///
    /// # Errors
    /// A value is not valid, or `[slotted]` has an unknown option. The other groups can have options of other programs.
    pub fn of_entries(entries: &[Entry]) -> Result<Self, Hinted> {
        let mut settings = Self::default();
        let read = ["client", "client-server", "client-mariadb", "slotted"];
        for Entry { group, name, value } in entries.iter().filter(|entry| read.contains(&entry.group.as_str())) {
            if !settings.set(name, value.as_deref())? && group == "slotted" {
                return Err(option_file::incorrect(format!("in an option file: unknown option {name}")));
            }
        }
        Ok(settings)
    }

    /// The account and where the connection goes, for a message: `user@host:port` or `user@` and the path of a socket.
    pub fn account(&self) -> String {
        format!("{}@{}", self.user_name(), self.place())
    }

    fn place(&self) -> String {
        match self.socket_path() {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.address(), self.port.unwrap_or(PORT)),
        }
    }

    /// The clients use the name of the account that runs them.
    fn user_name(&self) -> String {
        let of_system = || ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        self.user.clone().or_else(of_system).unwrap_or_else(|| "root".into())
    }

    fn address(&self) -> &str {
        self.host.as_deref().filter(|host| !host.is_empty()).unwrap_or("127.0.0.1")
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
        let mode = self.ssl_mode.unwrap_or_default();
        let verified = matches!(mode, SslMode::VerifyCa | SslMode::VerifyIdentity);
        // As the clients, which read both from one file if only one is named.
        let (cert, key) = (self.ssl_cert.as_ref(), self.ssl_key.as_ref());
        let identity = cert.or(key).zip(key.or(cert));
        let ssl = SslOpts::default()
            .with_root_cert_path(self.ssl_ca.clone())
            .with_client_identity(identity.map(|(cert, key)| ClientIdentity::new(cert.clone(), key.clone())))
            .with_danger_accept_invalid_certs(!verified)
            .with_danger_skip_domain_validation(mode == SslMode::VerifyCa);
        let builder = OptsBuilder::new()
            .ip_or_hostname(Some(self.address()))
            .tcp_port(self.port.unwrap_or(PORT))
            .tcp_connect_timeout(Some(TIMEOUT))
            .socket(socket.map(|path| path.display().to_string()))
            // The driver would leave a TCP connection, and with it TLS, for the socket that the server names.
            .prefer_socket(false)
            .user(Some(self.user_name()))
            .pass(self.password.as_ref().map(|Secret(password)| password.clone()))
            .db_name(self.database.clone())
            .init(vec![SESSION])
            .ssl_opts(Some(ssl).filter(|_| tls && socket.is_none()));
        builder.into()
    }

    /// Connects. Returns also the options for further connections to the same server.
    ///
    /// # Errors
    /// The server cannot be reached, or it rejects the login.
    pub fn connect(&self) -> Result<(Conn, Opts), Hinted> {
        let mode = self.ssl_mode.unwrap_or_default();
        let open = |tls| {
            let options = self.options(tls);
            Conn::new(options.clone()).map(|connection| (connection, options))
        };
        let opened = match open(mode != SslMode::Disabled) {
            Err(mysql::Error::DriverError(DriverError::TlsNotSupported)) if mode == SslMode::Preferred => open(false),
            opened => opened,
        };
        opened.map_err(|error| self.failed(&error))
    }
}
