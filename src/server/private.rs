//! A private server: a temporary data directory, a socket, no network. Removed when it is dropped.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mysql::{Conn, OptsBuilder};
use tempfile::TempDir;

use super::find::Program;
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
    /// None after [`Self::kill`].
    process: Option<Running>,
    /// Removes the folder when dropped.
    folder: TempDir,
}

/// The reason why a private server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file or a process could not be created.
    #[error("cannot start a private server: {0}")]
    Io(#[from] io::Error),
    /// The server program failed, or files of its package are missing.
    #[error("{0}")]
    Failed(String),
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
        let mut server = Self { process: None, folder };
        server.start_again(program, arguments, interrupted)?;
        Ok(server)
    }

    /// Kills the process, as a power failure does. The data directory remains until this value is dropped.
    pub fn kill(&mut self) {
        self.process = None;
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
        self.kill();
        let (options, start) = (self.options(), Instant::now());
        let process = self.process.insert(spawn(program, self.folder.path(), arguments)?);
        let reason = loop {
            match Conn::new(options.clone()) {
                Ok(_) => return Ok(()),
                Err(error) if start.elapsed() > START_TIMEOUT => break error.to_string(),
                Err(_) => {}
            }
            if let Some(status) = process.0.try_wait()? {
                break status.to_string();
            }
            pause(interrupted)?;
        };
        Err(failed(program, self.folder(), &format!("did not start: {reason}")))
    }

    /// The options to connect as root, which has no password on this server.
    pub fn options(&self) -> OptsBuilder {
        OptsBuilder::new().user(Some("root")).socket(Some(self.folder().join(SOCKET).display().to_string()))
    }

    /// The last lines of the server's log.
    pub fn last_log_lines(&self) -> String {
        last_lines(self.folder())
    }

    /// The folder with all files of the server, which is removed when the server is dropped.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// A process that is killed when this value is dropped.
#[derive(Debug)]
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that the process has already ended. What InnoDB has committed, the next start recovers.
        let _ = self.0.kill();
        let _ = self.0.wait();
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
    // The terminal sends Ctrl-C to the process group of this program. The server must not receive it, because this program stops the server.
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
        return Err(failed(program, folder, &format!("could not create a data directory ({status})")));
    }
    Ok(())
}

fn failed(program: &Program, folder: &Path, what: &str) -> StartError {
    let (program, log) = (program.path.display(), last_lines(folder));
    StartError::Failed(format!("{program} {what}. The last lines of its log:\n{log}"))
}

/// Keeps a copy of an initialized data directory for the next private servers. They initialize their own if this fails.
fn keep(data: &Path, template: &Path) {
    let copied = template.with_extension(format!("copy-{}", std::process::id()));
    // A rename is atomic. It fails if another process has created the template in between.
    if copy(data, &copied).is_err() || fs::rename(&copied, template).is_err() {
        let _ = fs::remove_dir_all(&copied);
    }
}

/// Copies a folder. Blocks of zeros become holes: 97 % of the data directory of a new MariaDB server, 77 % of MySQL's. A template exists
/// only on the systems of `scripts/servers`, whose cp has the option.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut command = Command::new("cp");
    // As the server, cp does not receive Ctrl-C.
    command.args(["--recursive", "--sparse=always"]).args([from, to]).process_group(0);
    let copied = command.status()?.success();
    copied.then_some(()).ok_or_else(|| io::Error::other(format!("cannot copy {}", from.display())))
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

/// The script that creates MariaDB's system tables, from the SQL files of its package. Their names begin with mysql before MariaDB 11.
fn system_tables(program: &Program) -> Result<String, StartError> {
    let real = program.path.canonicalize()?;
    let roots = [&program.path, &real].into_iter().filter_map(|path| path.parent()?.parent());
    let shares = roots.flat_map(|root| ["share", "share/mariadb", "share/mysql"].map(|share| root.join(share)));
    let mut of_names = shares.flat_map(|folder| ["mariadb", "mysql"].map(|name| (folder.clone(), name)));
    let found = of_names.find(|(folder, name)| folder.join(format!("{name}_system_tables.sql")).is_file());
    let missing = || {
        let program = program.path.display();
        let files = "no mariadb_system_tables.sql found for";
        StartError::Failed(format!("{files} {program}: install the whole package mariadb-server-core"))
    };
    let (folder, name) = found.ok_or_else(missing)?;
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

/// The last lines of the log in the folder of a server.
fn last_lines(folder: &Path) -> String {
    let text = fs::read(folder.join(LOG)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
