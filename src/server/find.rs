//! Finds server programs on this machine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Version;
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

/// The reason why there is no server program.
#[derive(Debug, thiserror::Error)]
pub enum NoServer {
    /// No folder has a server program.
    #[error(
        "no mysqld or mariadbd found: {SERVER_VARIABLE} is not set, and neither the PATH nor the cache has a server"
    )]
    Nowhere,
    /// The file of the environment variable is not a server program, or does not run.
    #[error("{SERVER_VARIABLE} is {0}, which is not a server program that runs on this machine")]
    NotRunnable(PathBuf),
}

impl NoServer {
    /// The ways to install a server program.
    pub fn hint(&self) -> &'static str {
        "install a server program in one of these ways. It does not have to run as a service.\n\
         \x20 Debian, Ubuntu  apt-get install mariadb-server-core\n\
         \x20 macOS           brew install mysql, or: brew install mariadb\n\
         \x20 container       run slotted in the image mysql:9.7 or mariadb:11.8\n\
         Or give the path of a server program: SLOTTED_SERVER=/path/to/mysqld"
    }
}

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
        (folder.parent()? == provided_folder()?).then(|| folder.join("data"))
    }

    /// The folder with the SQL files that create MariaDB's system tables, and the beginning of the names of these files.
    pub(super) fn system_tables(&self) -> Option<(PathBuf, &'static str)> {
        let real = self.path.canonicalize().ok()?;
        let roots = [&self.path, &real].into_iter().filter_map(|path| path.parent()?.parent());
        let shares = roots.flat_map(|root| ["share", "share/mariadb", "share/mysql"].map(|share| root.join(share)));
        let of_names = shares.flat_map(|folder| ["mariadb", "mysql"].map(|name| (folder.clone(), name)));
        of_names.into_iter().find(|(folder, name)| folder.join(format!("{name}_system_tables.sql")).is_file())
    }
}

/// The server program of the environment variable SLOTTED_SERVER. If the variable is not set, the first server program
/// of the PATH, of the folders of packages, and of `scripts/servers`.
///
/// # Errors
/// There is no server program, or the one of SLOTTED_SERVER does not run.
pub fn find() -> Result<Program, NoServer> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(OTHER_FOLDERS.map(PathBuf::from));
    choose(env::var_os(SERVER_VARIABLE).map(PathBuf::from), folders, provided)
}

fn choose(
    named: Option<PathBuf>,
    folders: impl Iterator<Item = PathBuf>,
    provided: impl FnOnce() -> Vec<Program>,
) -> Result<Program, NoServer> {
    if let Some(path) = named {
        return Program::at(&path).ok_or(NoServer::NotRunnable(path));
    }
    let program = programs(folders).next().or_else(|| provided().into_iter().next());
    program.ok_or(NoServer::Nowhere)
}

/// The folder with a folder for each server that `scripts/servers` has installed.
fn provided_folder() -> Option<PathBuf> {
    Some(cache_folder()?.join("servers"))
}

/// The folder of what `scripts/servers` installs. An empty variable is as good as none, as for a shell.
pub fn cache_folder() -> Option<PathBuf> {
    let folder = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("SLOTTED_CACHE")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("slotted")))
        .or_else(|| Some(folder("HOME")?.join(".cache/slotted")))
}

/// The servers that `scripts/servers` has installed, MySQL first, newest first.
pub fn provided() -> Vec<Program> {
    let entries = provided_folder().and_then(|folder| folder.read_dir().ok());
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn program(folder: &Path, name: &str, version: &str) -> PathBuf {
        let (path, text) = (folder.join(name), folder.join(format!("{name}.text")));
        fs::write(&text, format!("#!/bin/sh\necho '{name}  Ver {version} for Linux'\n")).expect("a file");
        // Linux does not execute a file that a process which another thread starts has open for writing.
        let mut install = Command::new("install");
        let copied = install.args(["-m", "755"]).args([&text, &path]).status();
        assert!(copied.expect("install runs").success());
        fs::remove_file(text).expect("a file");
        path
    }

    #[test]
    fn the_environment_variable_precedes_the_path_and_the_path_precedes_installed_servers() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = program(folder.path(), "named", "8.4.1");
        let on_path = folder.path().join("bin");
        fs::create_dir(&on_path).expect("a folder");
        program(&on_path, "mariadbd", "11.4.2-MariaDB");
        let provided = || vec![Program { path: "cache".into(), version: Version::parse("9.7.4").expect("a version") }];
        let folders = || std::iter::once(on_path.clone());
        let slug = |found: Result<Program, NoServer>| found.expect("a server").version.slug();
        assert_eq!(slug(choose(Some(named), folders(), provided)), "mysql-8.4");
        assert_eq!(slug(choose(None, folders(), provided)), "mariadb-11.4");
        assert_eq!(slug(choose(None, std::iter::empty(), provided)), "mysql-9.7");
    }

    #[test]
    fn without_a_server_there_is_an_error() {
        let error = choose(None, std::iter::empty(), Vec::new).expect_err("no server");
        assert!(error.to_string().contains("no mysqld or mariadbd"), "{error}");
        // A server in the variable that does not run is an error, also if there are other servers.
        let error = choose(Some("/nowhere/mysqld".into()), std::iter::empty(), Vec::new).expect_err("no server");
        assert!(error.to_string().contains("/nowhere/mysqld"), "{error}");
    }
}
