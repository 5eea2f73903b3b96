//! Where a server is, and who connects.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::error::Hinted;
use super::option_file::{Entry, incorrect};

/// The default port of MySQL and MariaDB.
pub(super) const PORT: u16 = 3306;

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

/// How a connection over TCP uses TLS. The names and the defaults are those of MySQL's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SslMode {
    /// Without TLS
    Disabled,
    /// With TLS if the server supports it
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

    /// How TCP uses TLS [default: PREFERRED, with --ssl-ca VERIFY_CA]
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
        let invalid = || incorrect(format!("in an option file: the value of {name} is not valid"));
        let text = || value.map(str::to_owned).ok_or_else(invalid);
        let on = || matches!(value.map(str::to_lowercase).as_deref(), None | Some("1" | "on" | "true"));
        match name.strip_prefix("loose-").unwrap_or(name) {
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
                return Err(incorrect(format!("in an option file: unknown option {name}")));
            }
        }
        Ok(settings)
    }

    /// The account and where the connection goes, for a message: `user@host:port` or `user@` and the path of a socket.
    pub fn account(&self) -> String {
        format!("{}@{}", self.user_name(), self.place())
    }

    /// The host and the port, or the path of the socket.
    pub(super) fn place(&self) -> String {
        match self.socket_path() {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.address(), self.port.unwrap_or(PORT)),
        }
    }

    /// The clients use the name of the account that runs them.
    pub(super) fn user_name(&self) -> String {
        let of_system = || ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        self.user.clone().or_else(of_system).unwrap_or_else(|| "root".into())
    }

    /// As MySQL's clients, which check the certificate if an authority is given.
    pub(super) fn mode(&self) -> SslMode {
        self.ssl_mode.unwrap_or(if self.ssl_ca.is_some() { SslMode::VerifyCa } else { SslMode::Preferred })
    }

    pub(super) fn address(&self) -> &str {
        self.host.as_deref().filter(|host| !host.is_empty()).unwrap_or("127.0.0.1")
    }

    /// The socket, as the clients choose it: the host `localhost` is the socket, unless a port or the protocol TCP is given.
    pub(super) fn socket_path(&self) -> Option<&Path> {
        let local = matches!(self.host.as_deref(), None | Some("" | "localhost"));
        if !local || self.tcp == Some(true) {
            return None;
        }
        self.socket.as_deref().or_else(|| {
            let sockets = SOCKETS.iter().map(Path::new);
            sockets.filter(|_| self.port.is_none()).find(|path| path.exists())
        })
    }
}
