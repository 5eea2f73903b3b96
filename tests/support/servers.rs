//! The servers that the tests run on.

use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mysql::{Conn, Opts, OptsBuilder};
use slotted::package::{Family, Package};
use slotted::server::{PrivateServer, Program, Version, provided};

use super::{Client, Schema, cluster, free_ports, locked};

/// The servers that the tests need, unless SLOTTED_TEST_URLS is set.
const WANTED: [&str; 3] = ["mysql-9.7", "mariadb-10.11", "mariadb-11.8"];

/// Enough connections for the 250 clients of the article and the tests that run at the same time.
const ARGUMENTS: [&str; 1] = ["--max-connections=800"];

/// Set when the run ends, which ends the starts of servers.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// A server that the tests need, started on its first use.
pub struct Needed {
    /// The name, such as `mysql-9.7`.
    pub name: String,
    /// Or why it is missing.
    started: OnceLock<Result<Arc<Server>, String>>,
}

/// A running server.
pub struct Server {
    pub version: Version,
    options: Opts,
    program: Option<Program>,
    private: Mutex<Option<PrivateServer>>,
    network: OnceLock<Box<Network>>,
}

/// A private server on a TCP port of 127.0.0.1.
pub struct Network {
    pub server: Server,
    pub port: String,
}

/// The release series in the name of a promise: `mysql-9.7`.
fn series(version: &Version) -> String {
    format!("{}-{}.{}", version.family.slug(), version.major, version.minor)
}

/// Whether only the promises of `scripts/test --quick` run: on one server, without clusters and other programs, with shorter loads.
pub fn quick() -> bool {
    env::var_os("SLOTTED_TEST_QUICK").is_some()
}

fn urls() -> String {
    env::var("SLOTTED_TEST_URLS").unwrap_or_default()
}

/// Whether the tests run on the servers of SLOTTED_TEST_URLS. Then no server is started.
pub fn given() -> bool {
    !urls().trim().is_empty()
}

/// Whether the run ends.
pub fn stopping() -> bool {
    STOPPING.load(Ordering::Relaxed)
}

/// All servers that the tests run on.
pub fn all() -> &'static [Needed] {
    static ALL: OnceLock<Vec<Needed>> = OnceLock::new();
    let of_url = |url: &str| {
        let server = Server::at(url).unwrap_or_else(|error| panic!("a server of SLOTTED_TEST_URLS: {error}"));
        Needed::new(&series(&server.version), Ok(Arc::new(server)).into())
    };
    let of_program = |name: &&str| Needed::new(name, OnceLock::new());
    let wanted = if quick() { &WANTED[..1] } else { &WANTED };
    ALL.get_or_init(|| match urls().split_whitespace().map(of_url).collect::<Vec<_>>() {
        none if none.is_empty() => wanted.iter().map(of_program).collect(),
        given => given,
    })
}

/// All servers of this run, started if they were not.
pub fn servers_of_this_run() -> Vec<Arc<Server>> {
    let started = all().iter().map(Needed::get);
    started.map(|server| server.expect("a server")).collect()
}

/// Whether a name is that of MySQL or of the newest MariaDB of this run, which comes last.
pub fn is_newest(name: &str) -> bool {
    let mariadb = all().iter().rfind(|needed| needed.name.starts_with("mariadb"));
    name.starts_with("mysql") || mariadb.is_some_and(|newest| newest.name == name)
}

impl Needed {
    fn new(name: &str, started: OnceLock<Result<Arc<Server>, String>>) -> Self {
        Self { name: name.to_owned(), started }
    }

    /// The program of the server, or the reason why there is none.
    pub fn program(&self) -> Result<Program, String> {
        let program = provided().into_iter().find(|program| series(&program.version) == self.name);
        let remedy = "run scripts/servers, or give the URLs of running servers in SLOTTED_TEST_URLS";
        program.ok_or_else(|| format!("{} is not installed: {remedy}", self.name))
    }

    /// The server, or the reason why it is missing.
    pub fn get(&self) -> Result<Arc<Server>, String> {
        let start = || Server::start(&self.program()?, &ARGUMENTS).map(Arc::new);
        self.started.get_or_init(start).clone()
    }
}

/// Stops the servers that this run has started.
pub fn stop_servers() {
    STOPPING.store(true, Ordering::Relaxed);
    let started = all().iter().filter_map(|needed| needed.started.get());
    started.flatten().for_each(|server| server.stop());
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
    /// The server of a URL.
    fn at(url: &str) -> Result<Self, Box<dyn std::error::Error>> {
        // The driver would leave TCP for a socket that the server names. That takes two connection IDs for a connection.
        let options: Opts = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false).into();
        let version = Version::of(&mut Conn::new(options.clone())?)?;
        Ok(Self { version, options, program: None, private: Mutex::new(None), network: OnceLock::new() })
    }

    /// Starts a private server, which is stopped when it is dropped.
    pub fn start(program: &Program, arguments: &[&str]) -> Result<Self, String> {
        let private = PrivateServer::start(program, arguments, &STOPPING).map_err(|error| error.to_string())?;
        let (version, options, program) = (program.version, private.options().into(), Some(program.clone()));
        Ok(Self { version, options, program, private: Mutex::new(Some(private)), network: OnceLock::new() })
    }

    /// Ends the process and removes its folder, if this run has started the server.
    pub fn stop(&self) {
        locked(&self.private).take();
        if let Some(network) = self.network.get() {
            network.server.stop();
        }
    }

    /// A private server of the same version that listens on a port. All promises share it.
    pub fn network(&self) -> &Network {
        self.network.get_or_init(|| Box::new(Network::start(self, &[])))
    }

    /// A further private server of the same version, which is stopped when it is dropped.
    #[track_caller]
    pub fn another(&self, arguments: &[&str]) -> Self {
        Self::start(self.program(), arguments).expect("a server")
    }

    /// Ends the process, as a power failure does. Its data directory remains.
    pub fn kill(&self) {
        locked(&self.private).as_mut().expect("a private server").kill();
    }

    /// Starts the server again on its data directory.
    pub fn start_again(&self, arguments: &[&str]) -> Result<(), String> {
        let mut private = locked(&self.private);
        let private = private.as_mut().expect("a private server");
        private.start_again(self.program(), arguments, &STOPPING).map_err(|error| error.to_string())
    }

    /// The folder of a server that this run has started.
    pub fn folder(&self) -> PathBuf {
        locked(&self.private).as_ref().expect("a private server").folder().to_owned()
    }

    /// The last lines of the log, with a heading. Empty for a server that this run has not started.
    pub fn last_log_lines(&self) -> String {
        let lines = locked(&self.private).as_ref().map(PrivateServer::last_log_lines);
        lines.map_or_else(String::new, |lines| format!("last log lines of {}:\n{lines}", self.version))
    }

    pub fn is_mysql(&self) -> bool {
        self.version.family == Family::Mysql
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
        let password = password.map_or_else(String::new, |password| format!(":{password}"));
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

    /// A schema with packages.
    pub fn installed<'a>(&self, packages: impl IntoIterator<Item = &'a Package>) -> Schema<'_> {
        let schema = self.schema();
        packages.into_iter().for_each(|package| schema.install(package));
        schema
    }

    /// The program of the server, which this run has started.
    #[track_caller]
    pub fn program(&self) -> &Program {
        self.program.as_ref().expect("a private server: register the promise after private()")
    }

    /// A program of the server's package, or of the PATH.
    fn tool(&self, of_mysql: &str, of_mariadb: &str) -> PathBuf {
        let name = if self.is_mysql() { of_mysql } else { of_mariadb };
        let own = self.program.as_ref().and_then(|program| program.path.parent()).map(PathBuf::from);
        // The absolute path, because the test of the documents creates programs of the same names.
        let path = env::var_os("PATH").unwrap_or_default();
        let mut files = own.into_iter().chain(env::split_paths(&path)).map(|folder| folder.join(name));
        files.find(|file| file.is_file()).unwrap_or_else(|| name.into())
    }

    /// The server's program for logical dumps.
    pub fn dump(&self) -> PathBuf {
        self.tool("mysqldump", "mariadb-dump")
    }

    /// The program of the server's command-line client.
    pub fn client_program(&self) -> PathBuf {
        self.tool("mysql", "mariadb")
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

impl Network {
    pub fn start(server: &Server, arguments: &[&str]) -> Self {
        let port = free_ports(1)[0].to_string();
        let number = format!("--port={port}");
        let network = ["--skip-networking=0", "--bind-address=127.0.0.1", &number];
        let server = server.another(&[&network, arguments].concat());
        Self { server, port }
    }
}
