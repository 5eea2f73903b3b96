//! A connection to a server: where it is, who connects, TLS, and errors that say what to do.

mod error;
pub mod option_file;
mod settings;
mod url;

use std::time::Duration;

use mysql::{ClientIdentity, Conn, DriverError, Opts, OptsBuilder, SslOpts};

pub use error::{Hinted, cause};
use settings::PORT;
pub use settings::{Secret, Settings, SslMode};

/// How long a TCP connection is tried.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What the tool depends on in a session, whatever the defaults of the server are. A change that is not committed is lost at
/// the end (autocommit), a limit truncates results (sql_select_limit, group_concat_max_len), DDL of others can last for a day
/// (lock_wait_timeout), a mode changes the text of views and strings (sql_mode), and a short idle time ends the session during a load
/// (wait_timeout). The time zone stays that of the server, as in an application that does not set one: start_date is a DATETIME.
/// Source: MySQL manual, "Server System Variables"; MariaDB documentation, "Server System Variables".
const SESSION: &str = "\
SET NAMES utf8mb4 COLLATE utf8mb4_general_ci,
    SESSION autocommit = 1,
    SESSION completion_type = 'NO_CHAIN',
    SESSION foreign_key_checks = 1,
    SESSION group_concat_max_len = 16777216,
    SESSION lock_wait_timeout = 10,
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

impl Settings {
    fn options(&self, tls: bool) -> Opts {
        let socket = self.socket_path();
        let mode = self.mode();
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
        let mode = self.mode();
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
