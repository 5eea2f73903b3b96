//! A private server: a temporary data directory, a socket, no network. Removed when it is dropped.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mysql::{Conn, OptsBuilder};
use tempfile::TempDir;

use super::Program;
use crate::package::Family;

/// The timeout until a server accepts connections. A machine under load takes much longer than an idle one.
const START_TIMEOUT: Duration = Duration::from_secs(300);

/// The maximum length of a socket's path, in bytes. Source: unix(7): sun_path has 108 bytes with the terminating zero.
const SOCKET_MAX: usize = 107;

/// The files in the folder of a server.
const DATA: &str = "data";
const LOG: &str = "log";
const SOCKET: &str = "s";
const TEMPORARY: &str = "tmp";

/// A server that runs until it is dropped, which kills the process and removes its folder. The fields are dropped in this order.
#[derive(Debug)]
pub struct PrivateServer {
    process: Running,
    /// Removes the folder when dropped.
    folder: TempDir,
}

/// The reason why a private server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file or a process could not be created.
    #[error("cannot start a private server: {0}")]
    Io(#[from] io::Error),
    /// The server program could not create the data directory.
    #[error("{program} could not create a data directory ({status}). The last lines of its log:\n{log}")]
    Initialize {
        /// The server program.
        program: PathBuf,
        /// The exit status.
        status: ExitStatus,
        /// The last lines of the log.
        log: String,
    },
    /// The SQL files that create MariaDB's system tables are missing.
    #[error("no mariadb_system_tables.sql found for {0}: install the whole package mariadb-server-core")]
    NoSystemTables(PathBuf),
    /// The server ended, or did not accept connections in time.
    #[error("{program} did not start: {reason}. The last lines of its log:\n{log}")]
    NotUp {
        /// The server program.
        program: PathBuf,
        /// The exit status or the last error of a connection.
        reason: String,
        /// The last lines of the log.
        log: String,
    },
    /// The flag `interrupted` was set.
    #[error("interrupted")]
    Interrupted,
}

impl PrivateServer {
    /// Creates or copies a data directory, and starts a server with `arguments`. Stops when `interrupted` is set.
    ///
    /// # Errors
    /// The program fails, does not accept connections in time, or is interrupted.
    pub fn start(program: &Program, arguments: &[&str], interrupted: &AtomicBool) -> Result<Self, StartError> {
        let folder = short_folder()?;
        let data = folder.path().join(DATA);
        fs::create_dir(folder.path().join(TEMPORARY))?;
        let template = program.initialized_data();
        if let Some(template) = template.as_deref().filter(|template| template.is_dir()) {
            copy(template, &data)?;
            // The UUID of a MySQL server. Two servers with the same one do not replicate.
            let _ = fs::remove_file(data.join("auto.cnf"));
        } else {
            initialize(program, folder.path(), interrupted)?;
            if let Some(template) = template {
                keep(&data, &template);
            }
        }

        let process = spawn(program, folder.path(), arguments)?;
        let mut server = Self { process, folder };
        server.wait_until_up(program, interrupted)?;
        Ok(server)
    }

    /// Kills the process, as a power failure does. The data directory remains until this value is dropped.
    pub fn kill(&mut self) {
        self.process.end();
    }

    /// Starts a server that was killed again, on its data directory.
    ///
    /// # Errors
    /// The program does not accept connections in time, or is interrupted.
    pub fn start_again(
        &mut self,
        program: &Program,
        arguments: &[&str],
        interrupted: &AtomicBool,
    ) -> Result<(), StartError> {
        // A server that still runs would answer in place of the new one, and would not be stopped.
        self.process.end();
        self.process = spawn(program, self.folder(), arguments)?;
        self.wait_until_up(program, interrupted)
    }

    fn wait_until_up(&mut self, program: &Program, interrupted: &AtomicBool) -> Result<(), StartError> {
        let start = Instant::now();
        let reason = loop {
            match Conn::new(self.options()) {
                Ok(_) => return Ok(()),
                Err(error) if start.elapsed() > START_TIMEOUT => break error.to_string(),
                Err(_) => {}
            }
            if let Some(status) = self.process.0.try_wait()? {
                break status.to_string();
            }
            pause(interrupted)?;
        };
        Err(StartError::NotUp { program: program.path.clone(), reason, log: self.last_log_lines() })
    }

    /// The options to connect as root, which has no password on this server.
    pub fn options(&self) -> OptsBuilder {
        OptsBuilder::new().user(Some("root")).socket(Some(self.folder().join(SOCKET).display().to_string()))
    }

    /// The process ID of the server.
    pub fn process(&self) -> u32 {
        self.process.0.id()
    }

    /// The last lines of the server's log.
    pub fn last_log_lines(&self) -> String {
        last_lines(&self.folder().join(LOG))
    }

    /// The folder with all files of the server, which is removed when the server is dropped.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// A process that is killed when this value is dropped.
#[derive(Debug)]
struct Running(Child);

impl Running {
    fn end(&mut self) {
        // An error means that the process has already ended. What InnoDB has committed, the next start recovers.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// The command of a server with its files in a folder.
fn command(program: &Program, folder: &Path) -> io::Result<Command> {
    let mut command = Command::new(&program.path);
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", folder.join(DATA).display()))
        // A starting server removes all #sql* files of its tmpdir. In a shared tmpdir these can be temporary tables of
        // another server, whose statements then fail with 1051.
        .arg(format!("--tmpdir={}", folder.join(TEMPORARY).display()));
    if fs::metadata(folder)?.uid() == 0 {
        command.arg("--user=root");
    }
    // The terminal sends Ctrl-C to the process group of this program. The server must not receive it, because this program
    // stops the server.
    command.process_group(0).stdin(Stdio::null());
    let file = File::options().create(true).append(true).open(folder.join(LOG))?;
    command.stdout(file.try_clone()?).stderr(file);
    Ok(command)
}

/// Starts the process of a server.
fn spawn(program: &Program, folder: &Path, arguments: &[&str]) -> io::Result<Running> {
    let mut start = command(program, folder)?;
    start.arg(format!("--socket={}", folder.join(SOCKET).display()));
    start.arg(format!("--pid-file={}", folder.join("pid").display()));
    // Debian's MySQL has a default --secure-file-priv that only its full package creates.
    start.args(["--skip-networking", "--secure-file-priv="]);
    // The default of 10 s ends connections on a machine under load.
    start.arg("--connect-timeout=120");
    if program.version.family == Family::Mysql {
        start.arg("--mysqlx=OFF");
    }
    start.args(arguments).spawn().map(Running)
}

/// Creates the data directory.
fn initialize(program: &Program, folder: &Path, interrupted: &AtomicBool) -> Result<(), StartError> {
    let mut initialize = command(program, folder)?;
    let script = match program.version.family {
        Family::Mysql => {
            initialize.arg("--initialize-insecure");
            None
        }
        Family::Mariadb => {
            fs::create_dir(folder.join(DATA))?;
            initialize.arg("--bootstrap").stdin(Stdio::piped());
            Some(system_tables(program)?)
        }
    };
    let mut child = Running(initialize.spawn()?);
    if let (Some(script), Some(mut stdin)) = (script, child.0.stdin.take()) {
        // A server that fails closes the pipe. Its status and its log have the reason.
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
            log: last_lines(&folder.join(LOG)),
        });
    }
    Ok(())
}

/// Keeps a copy of an initialized data directory for the next private servers. They initialize their own if this fails.
fn keep(data: &Path, template: &Path) {
    let copied = template.with_extension(format!("copy-{}", std::process::id()));
    // A rename is atomic. It fails if another process has created the template in between.
    if copy(data, &copied).is_err() || fs::rename(&copied, template).is_err() {
        let _ = fs::remove_dir_all(&copied);
    }
}

/// Copies a folder with its files and folders.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            copy_file(&entry.path(), &to)?;
        }
    }
    Ok(())
}

/// Copies a file. Blocks of zeros become holes: 97 % of the data directory of a new MariaDB server, 77 % of MySQL's.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    // A comparison of whole blocks is fast in a debug build, too.
    const ZEROS: [u8; 4096] = [0; 4096];
    let (mut source, mut copy) = (File::open(from)?, File::create(to)?);
    let mut block = ZEROS;
    loop {
        match source.read(&mut block)? {
            0 => break,
            length if block[..length] == ZEROS[..length] => {
                copy.seek(SeekFrom::Current(length as i64))?;
            }
            length => copy.write_all(&block[..length])?,
        }
    }
    let metadata = source.metadata()?;
    copy.set_len(metadata.len())?;
    copy.set_permissions(metadata.permissions())
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
    match folder.path().join(SOCKET).as_os_str().len() {
        ..=SOCKET_MAX => Ok(folder),
        _ => builder.tempdir_in("/tmp"),
    }
}

fn system_tables(program: &Program) -> Result<String, StartError> {
    let missing = || StartError::NoSystemTables(program.path.clone());
    let (folder, name) = program.system_tables().ok_or_else(missing)?;
    // MariaDB's installer runs the scripts in a session with these settings.
    let mut script = String::from("create database if not exists mysql;\nuse mysql;\nSET @auth_root_socket=NULL;\n");
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
