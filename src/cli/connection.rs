//! What commands with a server share: the options of a connection, which are those of the clients of the servers, and a time.

use std::env;
use std::fs::File;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts};

use super::output::{hinted, note};
use crate::connect::{Secret, Settings, option_file};

/// The environment variable with the URL.
const URL: &str = "SLOTTED_URL";

/// The server and the account.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection, as in mysql")]
pub struct Connection {
    #[command(flatten)]
    settings: Settings,

    /// The password; without a value, asks for it [default: that of the URL or option file, or MYSQL_PWD]
    #[arg(short, long, num_args = 0..=1, require_equals = true)]
    password: Option<Option<Secret>>,

    /// mysql://user:password@host:port/database, with special characters percent-encoded: # is %23 [default: SLOTTED_URL]
    #[arg(long, conflicts_with_all = ["host", "port", "socket", "user", "defaults_file", "no_defaults"])]
    url: Option<Secret>,

    /// Read only this option file, and not ~/.my.cnf and the others of the clients
    #[arg(long, value_name = "FILE", conflicts_with = "no_defaults")]
    defaults_file: Option<PathBuf>,

    /// Read no option file
    #[arg(long)]
    no_defaults: bool,
}

impl Connection {
    /// Whether the command line or SLOTTED_URL names a server.
    pub fn is_given(&self) -> bool {
        self.url.is_some() || self.has_place() || env::var_os(URL).is_some()
    }

    fn has_place(&self) -> bool {
        let Settings { host, port, socket, user, .. } = &self.settings;
        host.is_some() || port.is_some() || socket.is_some() || user.is_some() || self.defaults_file.is_some()
    }

    /// Connects to a database. Returns also its name, and the options for further connections.
    pub fn connect_to_database(&self) -> anyhow::Result<(Conn, String, Opts)> {
        let (mut connection, options) = self.open()?;
        let database: Option<String> = connection.query_first("SELECT DATABASE()")?.flatten();
        let hint = "add --database, or the name of the database to the URL";
        let database = database.ok_or_else(|| hinted("no database is selected", hint))?;
        Ok((connection, database, options))
    }

    /// The options for several connections, which one connection has tried.
    pub fn options(&self) -> anyhow::Result<Opts> {
        Ok(self.open()?.1)
    }

    /// Connects. Returns also the options for further connections.
    pub fn open(&self) -> anyhow::Result<(Conn, Opts)> {
        let mut settings = self.settings()?;
        if let Some(None) = self.password {
            settings.password = Some(ask(&settings)?);
        }
        for file in [&settings.ssl_ca, &settings.ssl_cert, &settings.ssl_key].into_iter().flatten() {
            File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        }
        Ok(settings.connect()?)
    }

    /// The settings from all sources. What the command line says comes first, then the URL or the option files.
    fn settings(&self) -> anyhow::Result<Settings> {
        let mut given = self.settings.clone();
        given.password = self.password.clone().flatten();
        let of_environment = || env::var(URL).ok().filter(|_| !self.has_place());
        let url = self.url.as_ref().map(|Secret(url)| url.clone()).or_else(of_environment);
        let source = match url {
            Some(url) => Settings::of_url(&url)?,
            None => self.of_files()?,
        };
        let variable = Settings { password: env::var("MYSQL_PWD").ok().map(Secret), ..Settings::default() };
        Ok(given.or(source).or(variable))
    }

    fn of_files(&self) -> anyhow::Result<Settings> {
        let files = match &self.defaults_file {
            _ if self.no_defaults => Vec::new(),
            Some(file) => vec![file.clone()],
            None => option_file::default_files(),
        };
        let mut entries = Vec::new();
        for file in files {
            match option_file::read(&file)? {
                Some(read) => entries.extend(read),
                None => note!(
                    "warning: the option file {} is ignored, because every account of this machine can write it",
                    file.display()
                ),
            }
        }
        Ok(Settings::of_entries(&entries)?)
    }
}

fn ask(settings: &Settings) -> anyhow::Result<Secret> {
    let asked = rpassword::prompt_password(format!("Password of {}: ", settings.account()));
    asked.map(Secret).map_err(|error| {
        let message = format!("cannot read the password: {error}");
        hinted(message, "without a terminal, use an option file or MYSQL_PWD")
    })
}

/// Parses a time in seconds.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.1..=3600.0).contains(number));
    number.ok_or_else(|| "a number of seconds from 0.1 to 3600 is needed".into())
}
