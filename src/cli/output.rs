//! Output of the commands: data on stdout, everything else on stderr. A reader that has ended, such as `head`, is no error:
//! the command completes its work, with the exit code that it has with a reader.

use std::error::Error;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// The version of the structure of the JSON objects that commands print. It grows when a field changes its meaning or is removed, not
/// when one is added.
pub const JSON_VERSION: u32 = 1;

/// stdout cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the output")]
pub struct Unwritten(#[source] io::Error);

impl Unwritten {
    /// Whether an error is this one.
    pub fn is(error: &anyhow::Error) -> bool {
        let inner = |error: &(dyn Error + 'static)| {
            error
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref)
                .is_some_and(|inner| inner.is::<Self>())
        };
        error.chain().any(inner)
    }
}

/// As `print!`, for data. Use the macros.
///
/// # Errors
/// [`Unwritten`], such as on a full disk. A closed pipe is no error.
pub fn to_stdout(text: Arguments<'_>) -> io::Result<()> {
    match io::stdout().write_fmt(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| io::Error::new(error.kind(), Unwritten(error))),
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
