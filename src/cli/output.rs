//! Output of the commands: data on stdout, everything else on stderr. A reader that has ended, such as `head`, is no error:
//! the command completes its work, with the exit code that it has with a reader.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// As `print!`, for data. Use the macros.
///
/// # Errors
/// Errors of stdout except a closed pipe, such as a full disk.
pub fn to_stdout(text: Arguments<'_>) -> io::Result<()> {
    match io::stdout().write_fmt(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// As `eprint!`, but nothing fails. Use the macro.
pub fn to_stderr(text: Arguments<'_>) {
    // There is no other place where to report this error.
    let _ = io::stderr().write_fmt(text);
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
