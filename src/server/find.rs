//! Finds server programs on this machine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::version::Version;
use crate::connect::Hinted;
use crate::package::Family;

/// The environment variable with the path of the server program.
const SERVER_VARIABLE: &str = "SLOTTED_SERVER";

/// The file names of server programs. A package of MariaDB can also install `mysqld`, as a link.
const NAMES: [&str; 2] = ["mysqld", "mariadbd"];

/// The folders that packages install servers into and that are often missing in the PATH.
const OTHER_FOLDERS: [&str; 5] =
    ["/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/mysql/bin", "/opt/homebrew/bin"];

/// A server program.
#[derive(Debug, Clone)]
pub struct Program {
    /// The path of mysqld or mariadbd.
    pub path: PathBuf,
    /// The output of its `--version`.
    pub version: Version,
}

/// The ways to install a server program.
const INSTALL: &str = "install a server program in one of these ways. It does not have to run as a service.\n\
     \x20 Debian, Ubuntu  apt-get install mariadb-server-core\n\
     \x20 macOS           brew install mysql, or: brew install mariadb\n\
     \x20 container       run slotted in the image mysql:9.7 or mariadb:11.8\n\
     Or give the path of a server program: SLOTTED_SERVER=/path/to/mysqld";

impl Program {
    /// Runs a program with `--version`. None if it does not run or is not a server program.
    pub fn at(path: &Path) -> Option<Self> {
        let mut command = Command::new(path);
        let output = command.args(["--no-defaults", "--version"]).stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        // The text before "Ver" is the program's path, which may contain digits.
        let version = Version::parse(text.split_once("Ver ")?.1)?;
        let path = path.to_owned();
        Some(Self { path, version })
    }

    /// The initialized data directory that private servers copy, which the first one creates: a copy takes less time
    /// than an initialization. None for a server that `scripts/servers` has not installed.
    pub(super) fn initialized_data(&self) -> Option<PathBuf> {
        let folder = self.path.parent()?.parent()?;
        folder.starts_with(cache_folder()?).then(|| folder.join("data"))
    }
}

/// The server program of the environment variable SLOTTED_SERVER. If the variable is not set, the first server program
/// of the PATH, of the folders of packages, and of `scripts/servers`.
///
/// # Errors
/// There is no server program, or the one of SLOTTED_SERVER does not run.
pub fn find() -> Result<Program, Hinted> {
    if let Some(path) = variable(SERVER_VARIABLE) {
        let problem = "which is not a server program that runs on this machine";
        let error = || Hinted::new(format!("{SERVER_VARIABLE} is {}, {problem}", path.display()), INSTALL);
        return Program::at(&path).ok_or_else(error);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(OTHER_FOLDERS.map(PathBuf::from));
    let program = programs(folders).next().or_else(|| provided().into_iter().next());
    let nowhere = format!("{SERVER_VARIABLE} is not set, and neither the PATH nor the cache has a server");
    program.ok_or_else(|| Hinted::new(format!("no mysqld or mariadbd found: {nowhere}"), INSTALL))
}

/// The path in an environment variable. An empty one is as good as none, as for a shell.
fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folder of what `scripts/servers` installs.
pub fn cache_folder() -> Option<PathBuf> {
    variable("SLOTTED_CACHE")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("slotted")))
        .or_else(|| Some(variable("HOME")?.join(".cache/slotted")))
}

/// The servers that `scripts/servers` has installed, MySQL first, newest first.
pub fn provided() -> Vec<Program> {
    let entries = cache_folder().and_then(|folder| folder.join("servers").read_dir().ok());
    let folders = entries.into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let mut found: Vec<_> = programs(folders).collect();
    found.sort_by_key(|Program { version, .. }| {
        let newest_first = std::cmp::Reverse((version.major, version.minor, version.patch));
        (version.family == Family::Mariadb, newest_first)
    });
    found
}

/// The server programs of folders, in their order.
fn programs(folders: impl Iterator<Item = PathBuf>) -> impl Iterator<Item = Program> {
    let files = folders.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    files.filter(|path| path.is_file()).filter_map(|path| Program::at(&path))
}
