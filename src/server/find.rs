//! Server programs on this machine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Flavour, Version};

/// The environment variable that names the server program to use.
pub const SERVER_VARIABLE: &str = "SLOTTED_SERVER";

/// What a server program can be called. MariaDB's package also installs `mysqld`, as a link.
const NAMES: [&str; 2] = ["mysqld", "mariadbd"];

/// Where packages put servers that is not on everybody's PATH.
const OTHER_FOLDERS: [&str; 6] = [
    "/usr/sbin",
    "/usr/libexec",
    "/usr/local/sbin",
    "/usr/local/mysql/bin",
    "/opt/homebrew/bin",
    "/usr/local/bin",
];

/// A server program.
#[derive(Debug, Clone)]
pub struct Program {
    /// mysqld or mariadbd.
    pub path: PathBuf,
    /// What it says it is.
    pub version: Version,
}

/// Why there is no server program.
#[derive(Debug, thiserror::Error)]
pub enum NoServer {
    /// None of the places has one.
    #[error(
        "found no mysqld or mariadbd: not in {SERVER_VARIABLE}, not on the PATH, and scripts/servers has made none"
    )]
    Nowhere,
    /// The environment names something that does not run.
    #[error("{SERVER_VARIABLE} is {0}, which is no server program that runs here")]
    NotRunnable(PathBuf),
}

impl NoServer {
    /// How to get one.
    pub fn hint(&self) -> &'static str {
        "get a server program, no service is needed, in one of these ways:\n\
         \x20 Debian, Ubuntu  scripts/servers, or: apt-get install mariadb-server-core\n\
         \x20 macOS           brew install mysql, or: brew install mariadb\n\
         \x20 container       run slotted in an image that has one: mysql:9.7 or mariadb:11.8\n\
         or name one: SLOTTED_SERVER=/path/to/mysqld"
    }
}

impl Program {
    /// Asks a program what it is; None where it does not run or is no server.
    pub fn at(path: &Path) -> Option<Self> {
        let output = Command::new(path)
            .args(["--no-defaults", "--version"])
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        // Up to "Ver" stands the program's path, which may have numbers in it.
        let version = Version::parse(text.split_once("Ver ")?.1)?;
        Some(Self {
            path: path.to_owned(),
            version,
        })
    }

    /// A client program that belongs to this server: beside it, or on the PATH.
    pub fn client(&self, names: &[&str]) -> Option<PathBuf> {
        let beside = self.path.parent()?;
        let folders = std::iter::once(beside.to_owned()).chain(path_folders());
        first_file(folders, names).next()
    }

    /// The folder with the SQL that makes MariaDB's system tables, and how the names of these files begin.
    pub(super) fn system_tables(&self) -> Option<(PathBuf, &'static str)> {
        let real = self.path.canonicalize().ok()?;
        let mut folders = Vec::new();
        for path in [&self.path, &real] {
            if let Some(root) = path.parent().and_then(Path::parent) {
                folders.extend(["share", "share/mariadb", "share/mysql"].map(|share| root.join(share)));
            }
        }
        folders.iter().find_map(|folder| {
            let name = ["mariadb", "mysql"]
                .into_iter()
                .find(|name| folder.join(format!("{name}_system_tables.sql")).is_file())?;
            Some((folder.clone(), name))
        })
    }
}

/// The first server program of: the environment variable SLOTTED_SERVER, the PATH and the usual folders, what
/// `scripts/servers` made.
///
/// # Errors
/// Where there is none.
pub fn find() -> Result<Program, NoServer> {
    let folders = path_folders().chain(OTHER_FOLDERS.map(PathBuf::from));
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
    first_file(folders, &NAMES)
        .find_map(|path| Program::at(&path))
        .or_else(|| provided().into_iter().next())
        .ok_or(NoServer::Nowhere)
}

/// The servers that `scripts/servers` made, MySQL first, newest first.
pub fn provided() -> Vec<Program> {
    let cache = env::var_os("SLOTTED_CACHE")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("XDG_CACHE_HOME")?).join("slotted")))
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache/slotted")));
    let Some(entries) = cache.and_then(|cache| cache.join("servers").read_dir().ok()) else {
        return Vec::new();
    };
    let folders = entries.flatten().map(|entry| entry.path().join("bin"));
    let mut programs: Vec<_> = first_file(folders, &NAMES)
        .filter_map(|path| Program::at(&path))
        .collect();
    programs.sort_by_key(|program| {
        let Version {
            flavour,
            major,
            minor,
        } = program.version;
        (flavour == Flavour::MariaDb, std::cmp::Reverse((major, minor)))
    });
    programs
}

fn path_folders() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).collect::<Vec<_>>().into_iter()
}

fn first_file(folders: impl Iterator<Item = PathBuf>, names: &[&str]) -> impl Iterator<Item = PathBuf> {
    folders
        .flat_map(move |folder| {
            names
                .iter()
                .map(move |name| folder.join(name))
                .collect::<Vec<_>>()
        })
        .filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(folder: &Path, name: &str, version: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(
            &path,
            format!("#!/bin/sh\necho '{name}  Ver {version} for Linux'\n"),
        )
        .expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        path
    }

    #[test]
    fn the_named_server_wins_then_the_path_then_what_was_provided() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = program(folder.path(), "named", "8.4.1");
        let on_path = folder.path().join("bin");
        fs::create_dir(&on_path).expect("a folder");
        program(&on_path, "mariadbd", "11.4.2-MariaDB");
        let provided = || {
            vec![Program {
                path: "cache".into(),
                version: Version::parse("9.7.4").expect("a version"),
            }]
        };
        let folders = || std::iter::once(on_path.clone());
        let slug = |found: Result<Program, NoServer>| found.expect("a server").version.slug();
        assert_eq!(slug(choose(Some(named), folders(), provided)), "mysql-8.4");
        assert_eq!(slug(choose(None, folders(), provided)), "mariadb-11.4");
        assert_eq!(slug(choose(None, std::iter::empty(), provided)), "mysql-9.7");
    }

    #[test]
    fn without_a_server_the_error_says_how_to_get_one() {
        let error = choose(None, std::iter::empty(), Vec::new).expect_err("no server");
        assert!(error.to_string().contains("no mysqld or mariadbd"), "{error}");
        for way in ["apt-get install", "brew install", "mysql:9.7", "SLOTTED_SERVER"] {
            assert!(error.hint().contains(way), "{way}");
        }
        // What is named and does not run is not passed over.
        let error =
            choose(Some("/nowhere/mysqld".into()), std::iter::empty(), Vec::new).expect_err("no server");
        assert!(error.to_string().contains("/nowhere/mysqld"), "{error}");
    }
}
