//! The options of a connection, which all commands with a server share.

use std::env;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{hinted, interrupt};
use crate::connect::{ConnectError, Secret, Session, Settings, SslMode, UrlError, option_file};
use crate::package::Ident;

/// The environment variable with the URL.
const URL: &str = "SLOTTED_URL";

/// The environment variable with the value of `--password`, which [`without_secrets`] sets.
const PASSWORD: &str = "SLOTTED_ARGUMENT_PASSWORD";

/// The server and the account. Without --url, the options of the my.cnf files of MySQL's and MariaDB's clients apply, from
/// the groups [client] and [slotted].
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// The server, as mysql://user:password@host:port/database, with special characters percent-encoded (# is %23).
    /// Parameters: socket, ssl-mode, ssl-ca, ssl-cert, ssl-key, connect-timeout, as in mysql://root@localhost/db?socket=/run/mysqld/mysqld.sock.
    /// advise, bench, status, resize, reset, compact and delete accept one --url for each node of a cluster
    /// [env: SLOTTED_URL, with spaces between several URLs]
    #[arg(
        long,
        conflicts_with_all = ["host", "port", "socket", "user", "defaults_file", "defaults_group_suffix", "no_defaults"]
    )]
    url: Vec<Secret>,

    /// Read only this option file
    #[arg(long, value_name = "FILE", conflicts_with = "no_defaults")]
    defaults_file: Option<PathBuf>,

    /// Also read groups whose names end with this text: _eu reads [client_eu] and [slotted_eu]
    #[arg(long, value_name = "TEXT")]
    defaults_group_suffix: Option<String>,

    /// Read no option file
    #[arg(long)]
    no_defaults: bool,

    /// The host name or IP address [default: the socket, or 127.0.0.1]
    #[arg(long)]
    host: Option<String>,

    /// The TCP port [default: 3306]
    #[arg(long)]
    port: Option<u16>,

    /// The Unix socket
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,

    /// The account [default: the name of your account on this machine]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// The password. Without a value, asks for it on the terminal; --password= is none [default: the password of the URL or the
    /// option file; if it has none, SLOTTED_PASSWORD, or MYSQL_PWD]
    #[arg(long, num_args = 0..=1, require_equals = true)]
    password: Option<Option<Secret>>,

    /// The database of the package
    #[arg(long, value_name = "NAME")]
    database: Option<Ident>,

    /// Whether a TCP connection uses TLS, and how it checks the certificate of the server [default: preferred]
    #[arg(long, value_name = "MODE")]
    ssl_mode: Option<SslMode>,

    /// Certificates of authorities that verify-ca and verify-identity accept, in PEM, in addition to the public authorities
    #[arg(long, value_name = "FILE")]
    ssl_ca: Option<PathBuf>,

    /// The certificate of the client, in PEM
    #[arg(long, value_name = "FILE", requires = "ssl_key")]
    ssl_cert: Option<PathBuf>,

    /// The private key of the client, in PEM
    #[arg(long, value_name = "FILE", requires = "ssl_cert")]
    ssl_key: Option<PathBuf>,

    /// The time-out for the connection, in seconds [default: 10]
    #[arg(long, value_name = "S", value_parser = timeout)]
    connect_timeout: Option<Duration>,
}

fn timeout(text: &str) -> Result<Duration, String> {
    crate::connect::seconds(text).ok_or_else(|| "a number of seconds from 0.1 to 3600 is needed".into())
}

/// What a URL needs that cannot be parsed.
const ENCODE: &str = "percent-encode the special characters of user and password: # is %23, / is %2F, ? is %3F, @ is %40, \
    : is %3A, % is %25; or use --host, --user and --password";

impl Connection {
    /// Whether the command line or SLOTTED_URL names a server.
    pub fn is_given(&self) -> bool {
        !self.url.is_empty() || self.has_place() || env::var_os(URL).is_some()
    }

    fn has_place(&self) -> bool {
        self.host.is_some()
            || self.port.is_some()
            || self.socket.is_some()
            || self.user.is_some()
            || self.defaults_file.is_some()
            || self.defaults_group_suffix.is_some()
    }

    /// Connects, and asks for a password that is missing.
    ///
    /// # Errors
    /// An option is not valid, there are several URLs, or the connection fails.
    pub fn connect(&self) -> anyhow::Result<Session> {
        let mut settings = self.settings()?;
        if settings.len() > 1 {
            return Err(hinted(
                format!(
                    "this command connects to one server, but there are {} URLs",
                    settings.len()
                ),
                "give one --url",
            ));
        }
        self.connect_with(settings.remove(0))
    }

    /// Connects to each URL, the nodes of a cluster.
    ///
    /// # Errors
    /// An option is not valid, or a connection fails.
    pub fn connect_all(&self) -> anyhow::Result<Vec<Session>> {
        let settings = self.settings()?.into_iter();
        settings.map(|settings| self.connect_with(settings)).collect()
    }

    fn connect_with(&self, mut settings: Settings) -> anyhow::Result<Session> {
        let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if let Some(None) = &self.password {
            settings.password = Some(ask(&settings)?);
        }
        let connected = match settings.connect(interrupt::stop()) {
            Err(error) if error.needs_password() && terminal => {
                settings.password = Some(ask(&settings)?);
                settings.connect(interrupt::stop())
            }
            connected => connected,
        };
        connected.map_err(|error| match error {
            ConnectError::Interrupted => super::Interrupted.into(),
            error => {
                let hint = error.hint();
                hinted(error, hint)
            }
        })
    }

    /// The settings from all sources, one for each server. What the command line says comes first, then the URL or the
    /// option files.
    fn settings(&self) -> anyhow::Result<Vec<Settings>> {
        let password = |name: &str| env::var(name).ok().map(Secret);
        let given = Settings {
            host: self.host.clone(),
            port: self.port,
            socket: self.socket.clone(),
            tcp: None,
            user: self.user.clone(),
            password: self.password.clone().flatten().or_else(|| password(PASSWORD)),
            database: self.database.as_ref().map(|name| name.name().to_owned()),
            ssl_mode: self.ssl_mode,
            ssl_ca: self.ssl_ca.clone(),
            ssl_cert: self.ssl_cert.clone(),
            ssl_key: self.ssl_key.clone(),
            timeout: self.connect_timeout,
        };
        let urls: Vec<String> = if !self.url.is_empty() {
            self.url.iter().map(|Secret(url)| url.clone()).collect()
        } else if self.has_place() {
            Vec::new()
        } else {
            env::var(URL).map_or_else(
                |_| Vec::new(),
                |urls| urls.split_whitespace().map(str::to_owned).collect(),
            )
        };
        let sources = if urls.is_empty() {
            vec![self.of_files()?]
        } else {
            urls.iter().map(|url| of_url(url)).collect::<Result<_, _>>()?
        };
        let variables = Settings {
            password: password("SLOTTED_PASSWORD").or_else(|| password("MYSQL_PWD")),
            ..Settings::default()
        };
        Ok(sources
            .into_iter()
            .map(|source| given.clone().or(source).or(variables.clone()))
            .collect())
    }

    fn of_files(&self) -> anyhow::Result<Settings> {
        let files = match &self.defaults_file {
            _ if self.no_defaults => Vec::new(),
            Some(file) => vec![file.clone()],
            None => {
                let mut files = option_file::default_files();
                files.retain(|file| file.exists());
                files
            }
        };
        let mut entries = Vec::new();
        for file in &files {
            let mut ignored = |path: &std::path::Path| {
                eprintln!(
                    "warning: the option file {} is ignored, because every account of this machine can write it",
                    path.display()
                );
            };
            let read = option_file::read(file, &mut ignored);
            entries.extend(read.map_err(|error| hinted(error, "correct the file, or use --no-defaults"))?);
        }
        let suffix = self.defaults_group_suffix.as_deref().unwrap_or_default();
        Settings::of_entries(&entries, suffix)
            .map_err(|error| hinted(error, "correct the option file, or use --no-defaults"))
    }
}

fn of_url(url: &str) -> anyhow::Result<Settings> {
    Settings::of_url(url).map_err(|error| {
        let hint = match &error {
            UrlError::Parameter(_) | UrlError::Unknown => {
                "the parameters are socket, ssl-mode, ssl-ca, ssl-cert, ssl-key and connect-timeout; a ? in a password is %3F"
            }
            _ => ENCODE,
        };
        hinted(error, hint)
    })
}

fn ask(settings: &Settings) -> anyhow::Result<Secret> {
    let asked = rpassword::prompt_password(format!("Password of {}: ", settings.account()));
    asked.map(Secret).map_err(|error| {
        hinted(
            format!("cannot read the password: {error}"),
            "without a terminal, use an option file, SLOTTED_PASSWORD or SLOTTED_URL",
        )
    })
}

/// The command line of this program without secrets, and the environment that has them instead.
#[derive(Debug, PartialEq, Eq)]
pub struct Hidden {
    /// All arguments, with the name of the program.
    pub arguments: Vec<String>,
    /// Names and values.
    pub environment: Vec<(&'static str, String)>,
}

/// Moves the values of `--url` and `--password` from the arguments of this process into its environment: other accounts of
/// the machine can read the arguments, for example with ps. None if the arguments have neither.
pub fn without_secrets(arguments: &[String]) -> Option<Hidden> {
    let (mut rest, mut environment, mut urls) = (Vec::new(), Vec::new(), Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            rest.push(argument.clone());
            break;
        }
        if let Some(password) = argument.strip_prefix("--password=") {
            environment.push((PASSWORD, password.to_owned()));
        } else if let Some(url) = argument.strip_prefix("--url=") {
            urls.push(url);
        } else if argument == "--url" {
            urls.extend(arguments.next().map(String::as_str));
        } else {
            rest.push(argument.clone());
        }
    }
    rest.extend(arguments.cloned());
    if !urls.is_empty() {
        let urls: Vec<_> = urls.into_iter().map(without_spaces).collect();
        environment.push((URL, urls.join(" ")));
    }
    (!environment.is_empty()).then_some(Hidden {
        arguments: rest,
        environment,
    })
}

/// A URL with its white space percent-encoded: spaces separate the URLs in the environment.
fn without_spaces(url: &str) -> String {
    let mut text = String::with_capacity(url.len());
    for c in url.chars() {
        if c.is_whitespace() {
            let mut bytes = [0; 4];
            text.extend(
                c.encode_utf8(&mut bytes)
                    .bytes()
                    .map(|byte| format!("%{byte:02X}")),
            );
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn secrets_leave_the_arguments() {
        let arguments = [
            "slotted",
            "bench",
            "--url",
            "mysql://a:b c\u{a0}@d",
            "--url=mysql://d",
            "--password=d",
            "--rounds",
            "1",
        ];
        let hidden = without_secrets(&arguments.map(str::to_owned)).expect("secrets");
        assert_eq!(hidden.arguments, ["slotted", "bench", "--rounds", "1"]);
        assert_eq!(
            hidden.environment,
            [
                ("SLOTTED_ARGUMENT_PASSWORD", "d".to_owned()),
                ("SLOTTED_URL", "mysql://a:b%20c%C2%A0@d mysql://d".to_owned())
            ]
        );
        assert_eq!(
            without_secrets(&["slotted", "--password"].map(str::to_owned)),
            None
        );
    }
}
