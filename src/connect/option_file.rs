//! Option files of MySQL's and MariaDB's clients. Their syntax is not that of an INI file: it has escape sequences in values,
//! options without a value, `!include` and group suffixes, which the crates for INI files do not read.
//!
//! Source: MySQL manual, "Using Option Files"; MariaDB manual, "Configuring MariaDB with Option Files".

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// How deep `!include` and `!includedir` can be nested. The servers' clients have the same limit.
const DEPTH_MAX: usize = 10;

/// An option of a group: its name with dashes, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The group, without brackets.
    pub group: String,
    /// The name, in which `_` is written as `-`, and without the prefix `loose-`.
    pub name: String,
    /// None for an option without a value, such as `skip-ssl`.
    pub value: Option<String>,
}

/// A line of an option file that cannot be parsed, or a file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OptionFileError {
    /// A file cannot be read.
    #[error("cannot read the option file {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A line cannot be parsed.
    #[error("cannot parse line {line} of the option file {}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// Files include each other.
    #[error("the option file {} is included more than {DEPTH_MAX} levels deep", .path.display())]
    Depth {
        /// The file.
        path: PathBuf,
    },
}

/// The files that the clients read by default, in their order.
pub fn default_files() -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/my.cnf"), PathBuf::from("/etc/mysql/my.cnf")];
    let home = |variable: &str, name: &str| env::var_os(variable).map(|folder| Path::new(&folder).join(name));
    files.extend(home("MYSQL_HOME", "my.cnf"));
    files.extend(home("MARIADB_HOME", "my.cnf"));
    files.extend(home("HOME", ".my.cnf"));
    files
}

/// The options of a file and of the files that it includes, in their order. Calls `ignored` for a file that every account
/// of the machine can write, and ignores the file, as the servers' clients do.
///
/// # Errors
/// The file cannot be read or parsed.
pub fn read(path: &Path, ignored: &mut dyn FnMut(&Path)) -> Result<Vec<Entry>, OptionFileError> {
    let mut entries = Vec::new();
    read_into(path, 0, &mut entries, ignored)?;
    Ok(entries)
}

fn read_into(
    path: &Path,
    depth: usize,
    entries: &mut Vec<Entry>,
    ignored: &mut dyn FnMut(&Path),
) -> Result<(), OptionFileError> {
    let failed = |error| OptionFileError::Read {
        path: path.to_owned(),
        error,
    };
    if depth > DEPTH_MAX {
        return Err(OptionFileError::Depth {
            path: path.to_owned(),
        });
    }
    if world_writable(path).map_err(failed)? {
        ignored(path);
        return Ok(());
    }
    let bytes = fs::read(path).map_err(failed)?;
    for line in parse(&String::from_utf8_lossy(&bytes)) {
        match line {
            Ok(Line::Entry(entry)) => entries.push(entry),
            Ok(Line::Include(file)) => read_into(Path::new(&file), depth + 1, entries, ignored)?,
            Ok(Line::IncludeFolder(folder)) => {
                for file in configuration_files(Path::new(&folder))? {
                    read_into(&file, depth + 1, entries, ignored)?;
                }
            }
            Err(line) => {
                return Err(OptionFileError::Line {
                    path: path.to_owned(),
                    line,
                });
            }
        }
    }
    Ok(())
}

/// The files of a folder that `!includedir` reads: those whose names end with `.cnf`, in the order of their names.
fn configuration_files(folder: &Path) -> Result<Vec<PathBuf>, OptionFileError> {
    let failed = |error| OptionFileError::Read {
        path: folder.to_owned(),
        error,
    };
    let entries = folder.read_dir().map_err(failed)?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut files = paths.map_err(failed)?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "cnf"));
    files.sort();
    Ok(files)
}

#[cfg(unix)]
fn world_writable(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = fs::metadata(path)?;
    Ok(metadata.is_file() && metadata.permissions().mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn world_writable(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// A line that is neither empty nor a comment nor a group.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Entry(Entry),
    Include(String),
    IncludeFolder(String),
}

/// The lines of a file. An error is the number of a line that cannot be parsed.
pub(crate) fn parse(text: &str) -> impl Iterator<Item = Result<Line, usize>> {
    let mut group: Option<String> = None;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let line = trimmed(line);
        if line.is_empty() || line.starts_with(['#', ';']) {
            return None;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some((name, _)) = rest.split_once(']') else {
                return Some(Err(number));
            };
            group = Some(name.trim().to_owned());
            return None;
        }
        if let Some(directive) = line.strip_prefix('!') {
            let (word, path) = directive
                .split_once(char::is_whitespace)
                .unwrap_or((directive, ""));
            return Some(match (word, path.trim()) {
                (_, "") => Err(number),
                ("include", path) => Ok(Line::Include(path.into())),
                ("includedir", path) => Ok(Line::IncludeFolder(path.into())),
                _ => Err(number),
            });
        }
        let line = without_comment(line);
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name, Some(value_of(value))),
            None => (line, None),
        };
        let name = trimmed(name).replace('_', "-");
        let name = name.strip_prefix("loose-").unwrap_or(&name).to_owned();
        Some(match &group {
            Some(group) if !name.is_empty() => Ok(Line::Entry(Entry {
                group: group.clone(),
                name,
                value,
            })),
            _ => Err(number),
        })
    })
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
    let quotes = |quote: &char| text.len() > 1 && text.starts_with(*quote) && text.ends_with(*quote);
    let text = match QUOTES.iter().any(quotes) {
        true => &text[1..text.len() - 1],
        false => text,
    };
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

#[cfg(test)]
mod tests {
    use super::{Line, parse};

    fn entries(text: &str) -> Vec<String> {
        parse(text)
            .map(|line| match line {
                Ok(Line::Entry(entry)) => format!(
                    "{} {} {}",
                    entry.group,
                    entry.name,
                    entry.value.as_deref().unwrap_or("-")
                ),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn values_are_read_as_the_clients_read_them() {
        let text = "# a comment\n; another\n[client]\nuser = root # an account\npassword=\"a#b 'c' \\\\ \\s\" # quoted\n\
                    ssl_mode=required\nloose-skip-ssl # a=b\n[slotted_eu]\npassword='p#q;r'\nhost=  \n";
        assert_eq!(
            entries(text),
            [
                "client user root",
                "client password a#b 'c' \\  ",
                "client ssl-mode required",
                "client skip-ssl -",
                "slotted_eu password p#q;r",
                "slotted_eu host ",
            ]
        );
    }

    #[test]
    fn a_line_outside_a_group_is_an_error() {
        assert_eq!(
            entries("user=root\n[client\n!includedir\n!include /a b\n"),
            ["Err(1)", "Err(2)", "Err(3)", "Ok(Include(\"/a b\"))"]
        );
    }
}
