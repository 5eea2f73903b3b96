//! A connection to a server: where it is, who connects, TLS, and errors that say what to do.

mod error;
pub mod option_file;
mod session;
mod settings;
mod url;

use std::time::Duration;

use mysql::{ClientIdentity, Conn, DriverError, Opts, OptsBuilder, SslOpts};

pub use error::{Hinted, cause};
use session::SESSION;
use settings::PORT;
pub use settings::{Secret, Settings, SslMode};

/// How long a TCP connection is tried.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Settings {
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

    /// Why a connection with these settings failed, and what to do.
    fn failed(&self, error: &mysql::Error) -> Hinted {
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
