//! The servers that the tests run on.

use std::collections::BTreeMap;
use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use mysql::{Conn, Opts, OptsBuilder};
use slotted::package::Family;
use slotted::server::{PrivateServer, Program, Version, provided};

use super::{Client, Network, Schema, cluster};

/// The servers that the tests need, unless SLOTTED_TEST_URLS is set.
const WANTED: [&str; 3] = ["mysql-9.7", "mariadb-10.11", "mariadb-11.8"];

/// Whether only the promises of `scripts/test --quick` run: on one server, without clusters and programs beside the servers, with
/// shorter loads.
pub fn quick() -> bool {
    env::var_os("SLOTTED_TEST_QUICK").is_some()
}

/// Enough connections for the 250 clients of the article and the tests that run at the same time.
const ARGUMENTS: [&str; 1] = ["--max-connections=800"];

/// Set when the run ends, which ends the starts of servers.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// A server that the tests need, started on its first use.
pub struct Needed {
    /// The name, such as `mysql-9.7`.
    pub name: String,
    source: Source,
    started: OnceLock<Result<Arc<Server>, String>>,
}

enum Source {
    Program(Program),
    Url(Box<Opts>, Version),
    Missing(String),
}

/// A running server.
pub struct Server {
    pub version: Version,
    options: Opts,
    program: Option<Program>,
    private: Mutex<Option<PrivateServer>>,
    network: OnceLock<Box<Network>>,
}

/// All servers that the tests run on.
pub fn all() -> &'static [Needed] {
    static ALL: OnceLock<Vec<Needed>> = OnceLock::new();
    ALL.get_or_init(|| urls().map_or_else(of_programs, |urls| of_urls(&urls)))
}

fn urls() -> Option<String> {
    env::var("SLOTTED_TEST_URLS")
        .ok()
        .filter(|urls| !urls.trim().is_empty())
}

/// Whether the tests run on the servers of SLOTTED_TEST_URLS. Then no server is started.
pub fn given() -> bool {
    urls().is_some()
}

/// All servers of this run, started if they were not.
pub fn servers_of_this_run() -> Vec<Arc<Server>> {
    let started = all()
        .iter()
        .map(|needed| needed.get().unwrap_or_else(|why| panic!("{why}")));
    started.collect()
}

/// The name of the newest MariaDB of this run.
pub fn newest_mariadb() -> Option<&'static str> {
    let mariadbs = all().iter().filter(|needed| needed.name.starts_with("mariadb"));
    let number = |part: &str| part.parse::<u32>().unwrap_or(0);
    mariadbs
        .map(|needed| needed.name.as_str())
        .max_by_key(|name| name.split(['-', '.']).skip(1).map(number).collect::<Vec<_>>())
}

fn of_programs() -> Vec<Needed> {
    let mut installed: BTreeMap<_, _> = provided()
        .into_iter()
        .map(|program| (program.version.slug(), program))
        .collect();
    let needed = |name: &&str| {
        let missing = || {
            Source::Missing(format!(
                "{name} is not installed: run scripts/servers, or give the URLs of running servers in SLOTTED_TEST_URLS"
            ))
        };
        let source = installed.remove(*name).map_or_else(missing, Source::Program);
        Needed {
            name: name.to_string(),
            source,
            started: OnceLock::new(),
        }
    };
    let number = if quick() { 1 } else { WANTED.len() };
    WANTED[..number].iter().map(needed).collect()
}

fn of_urls(urls: &str) -> Vec<Needed> {
    let needed = |(number, url): (usize, &str)| {
        let version = || -> Result<(Opts, Version), Box<dyn std::error::Error>> {
            // The driver would leave TCP for a socket that the server names. That takes two connection IDs for a connection.
            let options: Opts = OptsBuilder::from_opts(Opts::from_url(url)?)
                .prefer_socket(false)
                .into();
            let version = Version::of(&mut Conn::new(options.clone())?)?;
            Ok((options, version))
        };
        let (name, source) = match version() {
            Ok((options, version)) => (version.slug(), Source::Url(Box::new(options), version)),
            Err(error) => (
                format!("server-{}", number + 1),
                Source::Missing(format!("server {} of SLOTTED_TEST_URLS: {error}", number + 1)),
            ),
        };
        Needed {
            name,
            source,
            started: OnceLock::new(),
        }
    };
    urls.split_whitespace().enumerate().map(needed).collect()
}

impl Needed {
    /// The program of the server, or the reason why it is missing. None for a server of SLOTTED_TEST_URLS.
    pub fn program(&self) -> Option<Result<&Program, &str>> {
        match &self.source {
            Source::Program(program) => Some(Ok(program)),
            Source::Missing(why) => Some(Err(why)),
            Source::Url(..) => None,
        }
    }

    /// The server, or the reason why it is missing.
    pub fn get(&self) -> Result<Arc<Server>, String> {
        self.started.get_or_init(|| self.start()).clone()
    }

    fn start(&self) -> Result<Arc<Server>, String> {
        let server = match &self.source {
            Source::Missing(why) => return Err(why.clone()),
            Source::Url(options, version) => Server {
                version: *version,
                options: options.as_ref().clone(),
                program: None,
                private: Mutex::new(None),
                network: OnceLock::new(),
            },
            Source::Program(program) => Server::start(program, &ARGUMENTS)?,
        };
        Ok(Arc::new(server))
    }
}

/// Stops the servers that this run has started.
pub fn stop_servers() {
    STOPPING.store(true, Ordering::Relaxed);
    for needed in all() {
        if let Some(Ok(server)) = needed.started.get() {
            server.stop();
        }
    }
    cluster::stop();
}

/// Runs a promise. If it fails, prints the last lines of the server's log.
pub fn with_server_log(server: &Server, promise: impl FnOnce()) {
    if let Err(panic) = panic::catch_unwind(AssertUnwindSafe(promise)) {
        eprintln!("{}", server.last_log_lines());
        panic::resume_unwind(panic);
    }
}

impl Server {
    /// Starts a private server, which is stopped when it is dropped.
    pub fn start(program: &Program, arguments: &[&str]) -> Result<Self, String> {
        let private =
            PrivateServer::start(program, arguments, &STOPPING).map_err(|error| error.to_string())?;
        Ok(Self {
            version: program.version,
            options: private.options().into(),
            program: Some(program.clone()),
            private: Mutex::new(Some(private)),
            network: OnceLock::new(),
        })
    }

    /// Ends the process and removes its folder, if this run has started the server.
    pub fn stop(&self) {
        self.private().take();
        if let Some(network) = self.network.get() {
            network.server.stop();
        }
    }

    /// A private server of the same version that listens on a port. All promises share it.
    pub fn network(&self) -> &Network {
        self.network.get_or_init(|| Box::new(Network::start(self, &[])))
    }

    /// Ends the process, as a power failure does. Its data directory remains.
    pub fn kill(&self) {
        self.private().as_mut().expect("a private server").kill();
    }

    /// Starts the server again on its data directory.
    pub fn start_again(&self, arguments: &[&str]) -> Result<(), String> {
        let program = self.program.as_ref().expect("a private server");
        let mut private = self.private();
        let private = private.as_mut().expect("a private server");
        let started = private.start_again(program, arguments, &STOPPING);
        started.map_err(|error| error.to_string())
    }

    /// The process ID and the folder of a server that this run has started.
    pub fn process(&self) -> (u32, PathBuf) {
        let private = self.private();
        let private = private.as_ref().expect("a private server");
        (private.process(), private.folder().to_owned())
    }

    fn private(&self) -> MutexGuard<'_, Option<PrivateServer>> {
        self.private
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The last lines of the log, with a heading. Empty for a server that this run has not started.
    pub fn last_log_lines(&self) -> String {
        let private = self.private();
        private.as_ref().map_or_else(String::new, |private| {
            format!(
                "last log lines of {}:\n{}",
                self.version,
                private.last_log_lines()
            )
        })
    }

    /// Whether this run has started the server.
    pub fn is_private(&self) -> bool {
        self.program.is_some()
    }

    pub fn is_mysql(&self) -> bool {
        self.version.family == Family::Mysql
    }

    /// Whether innodb_snapshot_isolation is on by default, as on MariaDB 11.8. Such a server rejects the change of a row
    /// that another connection has changed since the snapshot of the transaction (1020).
    pub fn has_snapshot_isolation(&self) -> bool {
        self.version.family == Family::Mariadb && (self.version.major, self.version.minor) >= (11, 7)
    }

    /// The options to connect as an account with all privileges.
    pub fn options(&self) -> OptsBuilder {
        OptsBuilder::from_opts(self.options.clone())
    }

    pub fn connect(&self) -> Conn {
        Conn::new(self.options()).expect("a connection")
    }

    /// The URL of the server, for `--url`.
    pub fn url(&self) -> String {
        let user = self.options.get_user().unwrap_or_default();
        self.url_of(user, self.options.get_pass())
    }

    /// The URL of the server for another account.
    pub fn url_of(&self, user: &str, password: Option<&str>) -> String {
        let password = password
            .map(|password| format!(":{password}"))
            .unwrap_or_default();
        match self.options.get_socket() {
            Some(socket) => format!("mysql://{user}{password}@localhost?socket={socket}"),
            None => {
                let (host, port) = (self.options.get_ip_or_hostname(), self.options.get_tcp_port());
                format!("mysql://{user}{password}@{host}:{port}")
            }
        }
    }

    /// Creates an empty schema, which is dropped at the end of the test.
    pub fn schema(&self) -> Schema<'_> {
        Schema::new(self)
    }

    /// The program of the server, which this run has started.
    #[track_caller]
    pub fn program(&self) -> &Program {
        self.program
            .as_ref()
            .expect("a private server: register the promise after private()")
    }

    /// A further private server of the same version, which is stopped when it is dropped.
    #[track_caller]
    pub fn another(&self, arguments: &[&str]) -> Self {
        Self::start(self.program(), arguments).expect("a server")
    }

    /// The path of the server program.
    #[track_caller]
    pub fn daemon(&self) -> PathBuf {
        self.program().path.clone()
    }

    /// A program of the server's package, such as mysqlslap.
    pub fn tool(&self, names: &[&str]) -> PathBuf {
        let folder = self.program.as_ref().and_then(|program| program.path.parent());
        let of_server = || {
            let files = names.iter().filter_map(|name| Some(folder?.join(name)));
            files.into_iter().find(|path| path.is_file())
        };
        // The absolute path, because the test of the documents creates programs of the same names.
        let on_path = || {
            let path = env::var_os("PATH").unwrap_or_default();
            env::split_paths(&path)
                .map(|folder| folder.join(names[0]))
                .find(|path| path.is_file())
        };
        of_server()
            .or_else(on_path)
            .unwrap_or_else(|| PathBuf::from(names[0]))
    }

    /// The server's program for logical dumps.
    pub fn dump(&self) -> PathBuf {
        self.tool(&[if self.is_mysql() {
            "mysqldump"
        } else {
            "mariadb-dump"
        }])
    }

    /// The program of the server's command-line client.
    pub fn client_program(&self) -> PathBuf {
        self.tool(&[if self.is_mysql() { "mysql" } else { "mariadb" }])
    }

    /// The server's command-line client.
    pub fn client(&self, schema: &str) -> Client {
        self.client_of(&self.options, schema)
    }

    /// The server's command-line client, with the options of another account.
    pub fn client_of(&self, options: &Opts, schema: &str) -> Client {
        Client::new(self.client_program(), options, schema)
    }
}
