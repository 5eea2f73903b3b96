//! The command line: one file per command.

mod advise;
mod bench;
mod connection;
mod demo;
mod generate;
mod install;
mod interrupt;
mod output;
mod package;
mod private;
mod shell;
mod status;
mod uninstall;

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::connect;
use output::note;

/// Counters in MySQL and MariaDB that many connections increment at the same time.
#[derive(Debug, Parser)]
#[command(
    name = "slotted",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Generate(generate::Generate),
    Install(install::Install),
    Status(status::Status),
    Uninstall(uninstall::Uninstall),
    Demo(demo::Demo),
    Bench(bench::Bench),
    Advise(advise::Advise),
    Completions(shell::Completions),
    Man(shell::Man),
}

/// The result of a command that did not fail. Commands print data to stdout and everything else to stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Success. Exit code 0.
    Fine,
    /// A difference was found, or a check failed. Exit code 1.
    Differs,
    /// The result does not contain everything that was asked for. Exit code 2.
    Incomplete,
    /// Ctrl-C stopped the command, and it has removed its files. Exit code 130, as shells report Ctrl-C.
    Interrupted,
}

impl Outcome {
    const INTERRUPTED: u8 = 130;
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => ExitCode::SUCCESS,
            Outcome::Differs => ExitCode::from(1),
            Outcome::Incomplete => ExitCode::from(FAILED),
            Outcome::Interrupted => ExitCode::from(Outcome::INTERRUPTED),
        }
    }
}

/// An error with a hint, which says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Hinted {
    message: String,
    hint: String,
}

/// An error with a hint.
fn hinted(message: impl Display, hint: impl Into<String>) -> anyhow::Error {
    let (message, hint) = (message.to_string(), hint.into());
    Hinted { message, hint }.into()
}

/// Asks on the terminal for a text, which confirms that data is to be deleted. Returns whether it is `expected`.
///
/// # Errors
/// There is no terminal.
fn confirmed(question: &str, expected: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(hinted(
            "there is no terminal to ask on; nothing has been changed",
            "add --yes to delete the data without a question",
        ));
    }
    eprint!("Type {question}: ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let confirmed = answer.trim() == expected;
    if !confirmed {
        note!("the answer is not {expected}; nothing has been changed");
    }
    Ok(confirmed)
}

/// Ctrl-C stopped a command that has nothing to remove.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

/// The exit code of a command that failed.
pub const FAILED: u8 = 2;

impl Cli {
    /// Runs the command. Prints an error and its hint to stderr.
    pub fn run(self) -> ExitCode {
        let result = interrupt::handle().and_then(|()| self.command.run());
        result.map_or_else(|error| exit_code(&error), ExitCode::from)
    }
}

impl Command {
    fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Command::Generate(generate) => generate.run(),
            Command::Install(install) => install.run(),
            Command::Status(status) => status.run(),
            Command::Uninstall(uninstall) => uninstall.run(),
            Command::Demo(demo) => demo.run(),
            Command::Bench(bench) => bench.run(),
            Command::Advise(advise) => advise.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }
    }
}

/// An error and its causes, those of the driver without its type names.
fn described(error: &anyhow::Error) -> String {
    let causes = error.chain().map(|one| match one.downcast_ref() {
        Some(error) => connect::cause(error),
        None => one.to_string(),
    });
    let mut causes: Vec<_> = causes.collect();
    causes.dedup();
    causes.join(": ")
}

/// Prints an error and its hint. An error after Ctrl-C is what the command could not complete.
fn exit_code(error: &anyhow::Error) -> ExitCode {
    let reason = interrupt::reason();
    let text = described(error);
    match &reason {
        _ if error.is::<Interrupted>() => note!("{error}"),
        Some(reason) => note!("{reason}: {text}"),
        None => note!("error: {text}"),
    }
    if let Some(Hinted { hint, .. }) = error.downcast_ref() {
        note!("hint: {hint}");
    }
    match reason {
        Some(_) => Outcome::Interrupted.into(),
        None => ExitCode::from(FAILED),
    }
}

/// Runs this program again without passwords in its arguments, if it has any: other accounts of the machine can read the
/// arguments of a process. Returns if there is nothing to hide. A program cannot change its own arguments in safe Rust.
#[cfg(unix)]
pub fn hide_secrets() {
    use std::os::unix::process::CommandExt;

    let arguments: Option<Vec<String>> = std::env::args_os().map(|one| one.into_string().ok()).collect();
    let hidden = arguments.as_deref().and_then(connection::without_secrets);
    if let (Some(hidden), Ok(program)) = (hidden, std::env::current_exe()) {
        let mut command = std::process::Command::new(program);
        let (name, rest) = hidden
            .arguments
            .split_first()
            .expect("the name of the program is no option");
        // Returns only if the system cannot start the program. The arguments then stay as they are.
        let _ = command.arg0(name).args(rest).envs(hidden.environment).exec();
    }
}

/// Does nothing: on this system, other accounts cannot read the arguments of a process.
#[cfg(not(unix))]
pub fn hide_secrets() {}
