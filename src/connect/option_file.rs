//! Option files of MySQL's and MariaDB's clients. Their syntax is not that of an INI file: it has escape sequences in values and
//! options without a value, which the crates for INI files do not read. Files that a file includes are not read.
//!
//! Source: MySQL manual, "Using Option Files"; MariaDB manual, "Configuring MariaDB with Option Files".

use std::fmt::Display;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::error::Hinted;

/// An option of a group: its name with dashes, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The group, without brackets.
    pub group: String,
    /// The name, in which `_` is written as `-`.
    pub name: String,
    /// None for an option without a value, such as `skip-ssl`.
    pub value: Option<String>,
}

/// An option file that cannot be used.
pub(super) fn incorrect(error: impl Display) -> Hinted {
    Hinted::new(error, "correct the file, or use --no-defaults")
}

/// The files that the clients read by default and that exist, in their order.
pub fn default_files() -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/my.cnf"), PathBuf::from("/etc/mysql/my.cnf")];
    let of_folder = |variable: &str, name: &str| env::var_os(variable).map(|folder| Path::new(&folder).join(name));
    files.extend(of_folder("MYSQL_HOME", "my.cnf"));
    files.extend(of_folder("MARIADB_HOME", "my.cnf"));
    files.extend(of_folder("HOME", ".my.cnf"));
    files.retain(|file| file.exists());
    files
}

/// The options of a file, in their order. None for a file that every account of the machine can write: the clients of the servers ignore it.
///
/// # Errors
/// The file cannot be read or parsed.
pub fn read(path: &Path) -> Result<Option<Vec<Entry>>, Hinted> {
    let file = path.display();
    let failed = |error| incorrect(format!("cannot read the option file {file}: {error}"));
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_file() && metadata.permissions().mode() & 0o002 != 0 {
        return Ok(None);
    }
    let bytes = fs::read(path).map_err(failed)?;
    let entries = parse(&String::from_utf8_lossy(&bytes));
    entries.map(Some).map_err(|line| incorrect(format!("cannot parse line {line} of the option file {file}")))
}

/// The options of a text. An error is the number of a line that cannot be parsed.
fn parse(text: &str) -> Result<Vec<Entry>, usize> {
    let mut entries = Vec::new();
    let mut group: Option<&str> = None;
    for (line, number) in text.lines().zip(1..usize::MAX) {
        let line = trimmed(line);
        if line.is_empty() || line.starts_with(['#', ';', '!']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let (name, _) = rest.split_once(']').ok_or(number)?;
            group = Some(name.trim());
            continue;
        }
        let line = without_comment(line);
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name, Some(value_of(value))),
            None => (line, None),
        };
        let name = trimmed(name).replace('_', "-");
        let group = group.filter(|_| !name.is_empty()).ok_or(number)?.to_owned();
        entries.push(Entry { group, name, value });
    }
    Ok(entries)
}

/// A line without its comment. A `#` begins a comment unless it is in quotes, in which a backslash escapes a quote.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in line.char_indices() {
        match quote {
            None if c == '#' => return &line[..at],
            None if QUOTES.contains(&c) => quote = Some(c),
            Some(open) if c == open && !escaped => quote = None,
            _ => {}
        }
        escaped = quote.is_some() && c == '\\' && !escaped;
    }
    line
}

const QUOTES: [char; 2] = ['\'', '"'];

/// A text without white space around it. The clients do not trim other white space than that of ASCII.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}')
}

/// A value without its quotes, and with its escape sequences replaced.
fn value_of(text: &str) -> String {
    let text = trimmed(text);
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let text = QUOTES.into_iter().find_map(quoted).unwrap_or(text);
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        match characters.next() {
            Some('b') => value.push('\u{8}'),
            Some('t') => value.push('\t'),
            Some('n') => value.push('\n'),
            Some('r') => value.push('\r'),
            Some('s') => value.push(' '),
            Some(escaped @ ('\\' | '\'' | '"')) => value.push(escaped),
            Some(other) => value.extend(['\\', other]),
            None => value.push('\\'),
        }
    }
    value
}
