//! A private throw-away server: own data directory, own socket, no network, gone when dropped.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mysql::{Conn, OptsBuilder};
use tempfile::TempDir;

use super::{Flavour, Program};

/// How long a server may take to answer. Seen: 1 s; this is for a machine under load.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The most bytes of a socket's path. Source: unix(7), sun_path has 108 with the end.
const SOCKET_MAX: usize = 107;

/// A server that runs until it is dropped. Then the process is ended and its folder removed: nothing in it is meant
/// to be kept.
#[derive(Debug)]
pub struct PrivateServer {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
    /// Removed when dropped, after the process has ended.
    _folder: TempDir,
}

/// Why a private server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Files or processes.
    #[error("could not start a private server: {0}")]
    Io(#[from] io::Error),
    /// The data directory could not be made.
    #[error("{program} could not make a data directory ({status}); it said:\n{log}")]
    Initialize {
        /// The server program.
        program: PathBuf,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// MariaDB without the SQL of its system tables.
    #[error(
        "found no mariadb_system_tables.sql that belongs to {0}: install the whole package mariadb-server-core"
    )]
    NoSystemTables(PathBuf),
    /// The server ended, or did not answer in time.
    #[error("{program} did not start: {reason}; it said:\n{log}")]
    NotUp {
        /// The server program.
        program: PathBuf,
        /// What was seen of it.
        reason: String,
        /// The last lines of its log.
        log: String,
    },
    /// The flag was set.
    #[error("interrupted")]
    Interrupted,
}

impl PrivateServer {
    /// Makes a data directory and starts a server with its defaults, but for paths, and `arguments` behind them.
    /// Setting `interrupted` gives up early.
    ///
    /// # Errors
    /// Where the program does not run, with the last lines that it logged.
    pub fn start(
        program: &Program,
        arguments: &[&str],
        interrupted: &AtomicBool,
    ) -> Result<Self, StartError> {
        let folder = short_folder()?;
        let (data, log, socket, temporary) = (
            folder.path().join("data"),
            folder.path().join("log"),
            folder.path().join("s"),
            folder.path().join("tmp"),
        );
        fs::create_dir(&temporary)?;
        let command = || -> io::Result<Command> {
            let mut command = Command::new(&program.path);
            command
                .arg("--no-defaults")
                .arg(format!("--datadir={}", data.display()))
                // MySQL and MariaDB remove every #sql* in their tmpdir when they start: in a shared one, also the
                // temporary tables of other servers, which then fail (seen: 1051 in a bootstrap beside a start).
                .arg(format!("--tmpdir={}", temporary.display()));
            if fs::metadata(folder.path())?.uid() == 0 {
                command.arg("--user=root");
            }
            // A process group of its own: Ctrl-C in the terminal is ours to handle, then we end the server.
            command.process_group(0).stdin(Stdio::null());
            let file = File::options().create(true).append(true).open(&log)?;
            command.stdout(file.try_clone()?).stderr(file);
            Ok(command)
        };

        let mut initialize = command()?;
        let script = match program.version.flavour {
            Flavour::MySql => {
                initialize.arg("--initialize-insecure");
                None
            }
            Flavour::MariaDb => {
                fs::create_dir(&data)?;
                initialize.arg("--bootstrap").stdin(Stdio::piped());
                Some(system_tables(program)?)
            }
        };
        let mut child = Running(initialize.spawn()?);
        if let (Some(script), Some(mut stdin)) = (script, child.0.stdin.take()) {
            // A server that gives up closes the pipe; its status and its log tell more than that.
            let _ = stdin.write_all(script.as_bytes());
        }
        let status = loop {
            if let Some(status) = child.0.try_wait()? {
                break status;
            }
            pause(interrupted)?;
        };
        if !status.success() {
            return Err(StartError::Initialize {
                program: program.path.clone(),
                status,
                log: last_lines(&log),
            });
        }

        let mut start = command()?;
        start.arg(format!("--socket={}", socket.display()));
        start.arg(format!("--pid-file={}", folder.path().join("pid").display()));
        // Debian's MySQL would look for a folder that only its full package makes.
        start.args(["--skip-networking", "--secure-file-priv="]);
        if program.version.flavour == Flavour::MySql {
            start.arg("--mysqlx=OFF");
        }
        start.args(arguments);
        let server = Self {
            child: start.spawn()?,
            socket,
            log,
            _folder: folder,
        };
        server.wait_until_up(program, interrupted)
    }

    fn wait_until_up(mut self, program: &Program, interrupted: &AtomicBool) -> Result<Self, StartError> {
        let start = Instant::now();
        let reason = loop {
            match Conn::new(self.options()) {
                Ok(_) => return Ok(self),
                Err(error) if start.elapsed() > START_TIMEOUT => break error.to_string(),
                Err(_) => {}
            }
            if let Some(status) = self.child.try_wait()? {
                break status.to_string();
            }
            pause(interrupted)?;
        };
        Err(StartError::NotUp {
            program: program.path.clone(),
            reason,
            log: self.last_log_lines(),
        })
    }

    /// How to connect, as the account root, which has no password here.
    pub fn options(&self) -> OptsBuilder {
        OptsBuilder::new()
            .user(Some("root"))
            .socket(Some(self.socket.display().to_string()))
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// What the server logged last.
    pub fn last_log_lines(&self) -> String {
        last_lines(&self.log)
    }

    /// The folder that is removed in the end.
    pub fn folder(&self) -> &Path {
        self._folder.path()
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A process that ends when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

fn end(child: &mut Child) {
    // Fails only where it has ended already. Nothing has to be flushed: the folder goes too.
    let _ = child.kill();
    let _ = child.wait();
}

fn pause(interrupted: &AtomicBool) -> Result<(), StartError> {
    if interrupted.load(Ordering::Relaxed) {
        return Err(StartError::Interrupted);
    }
    thread::sleep(Duration::from_millis(20));
    Ok(())
}

fn short_folder() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("slotted-");
    let folder = builder.tempdir()?;
    if folder.path().join("s").as_os_str().len() > SOCKET_MAX {
        builder.tempdir_in("/tmp")
    } else {
        Ok(folder)
    }
}

fn system_tables(program: &Program) -> Result<String, StartError> {
    let missing = || StartError::NoSystemTables(program.path.clone());
    let (folder, name) = program.system_tables().ok_or_else(missing)?;
    // The scripts expect a session like that of MariaDB's own installer.
    let mut script =
        String::from("create database if not exists mysql;\nuse mysql;\nSET @auth_root_socket=NULL;\n");
    for file in [
        format!("{name}_system_tables.sql"),
        format!("{name}_performance_tables.sql"),
        format!("{name}_system_tables_data.sql"),
        "maria_add_gis_sp_bootstrap.sql".into(),
        format!("{name}_sys_schema.sql"),
    ] {
        script += &fs::read_to_string(folder.join(file)).map_err(|_| missing())?;
    }
    Ok(script)
}

fn last_lines(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
