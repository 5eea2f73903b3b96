//! What a command returns: data on stdout, everything else on stderr, an exit code, or an error with a hint. A reader that has ended, such
//! as `head`, is no error: the command completes its work, with the exit code that it has with a reader.
//!
//! A server can return any character in a name or a message. A terminal would execute some of them, so they are written as JSON
//! writes them: U+001B is `\u001b`.

use std::fmt::{Arguments, Display};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use mysql::Value;

use crate::connect::Hinted;
use crate::package::is_executed;

/// The version of the structure of the JSON objects that commands print. It grows when a field changes its meaning or is removed, not
/// when one is added.
pub const JSON_VERSION: u32 = 1;

/// The result of a command, and its exit code. Commands print data to stdout and everything else to stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Success.
    Fine = 0,
    /// A difference was found, or a check failed.
    Differs = 1,
    /// The command failed, or the result does not contain everything that was asked for.
    Incomplete = 2,
    /// Ctrl-C stopped the command, and it has removed what it had created. Shells report Ctrl-C with this code.
    Interrupted = 130,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(outcome as u8)
    }
}

/// An error with a hint.
pub(super) fn hinted(message: impl Display, hint: impl Into<String>) -> anyhow::Error {
    Hinted::new(message, hint).into()
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match is_escaped(c) {
            true => shown += &format!("\\u{:04x}", u32::from(c)),
            false => shown.push(c),
        }
    }
    shown
}

/// A text for a terminal. Lines and tabs stay.
pub(super) fn shown(text: &str) -> String {
    escaped(text, |c| is_executed(c) && c != '\n' && c != '\t')
}

/// A name or a message of a server in a line of a text: it cannot begin a line of its own.
pub(super) fn in_line(text: &str) -> String {
    escaped(text, is_executed)
}

/// A value of a server, as its client prints it.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.as_sql(true),
    }
}

/// As `print!`, for data. A closed pipe is no error. Use the macros.
pub fn to_stdout(text: Arguments<'_>) -> io::Result<()> {
    match io::stdout().write_all(shown(&text.to_string()).as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(io::Error::other(format!("cannot write the output: {error}")))
        }
        _ => Ok(()),
    }
}

/// As `eprint!`, but nothing fails. Use the macro.
pub fn to_stderr(text: Arguments<'_>) {
    // There is no other place where to report this error.
    let _ = io::stderr().write_all(shown(&text.to_string()).as_bytes());
}

/// As `print!`, see [`to_stdout`].
macro_rules! out {
    ($($text:tt)*) => { $crate::cli::output::to_stdout(format_args!($($text)*)) };
}

/// As `println!`, see [`to_stdout`].
macro_rules! outln {
    ($($text:tt)*) => { $crate::cli::output::to_stdout(format_args!("{}\n", format_args!($($text)*))) };
}

/// As `eprintln!`, see [`to_stderr`].
macro_rules! note {
    ($($text:tt)*) => { $crate::cli::output::to_stderr(format_args!("{}\n", format_args!($($text)*))) };
}

pub(super) use {note, out, outln};
