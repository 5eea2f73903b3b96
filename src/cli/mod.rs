//! The command line: one file per command.

mod adopt;
mod advise;
mod bench;
mod demo;
mod generate;
mod limits;
mod private;
mod progress;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Counters in MySQL and MariaDB that thousands of connections increment at once.
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
    Demo(demo::Demo),
    Bench(bench::Bench),
    Limits(limits::Limits),
    Advise(advise::Advise),
    Adopt(adopt::Adopt),
}

/// How a command ended. Data went to stdout, everything else to stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it was asked to; exit code 0.
    Fine,
    /// It looked, and something differs or a check failed; exit code 1.
    Differs,
    /// The user stopped it, and it has cleaned up; exit code 130, as a shell has it for Ctrl-C.
    Interrupted,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => ExitCode::SUCCESS,
            Outcome::Differs => ExitCode::from(1),
            Outcome::Interrupted => ExitCode::from(130),
        }
    }
}

/// An error with what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Hinted {
    message: String,
    hint: String,
}

/// The exit code where a command could not do what it was asked to.
pub const FAILED: u8 = 2;

impl Cli {
    /// Runs the command; where it could not, says why and what to do on stderr.
    pub fn run(self) -> ExitCode {
        let result = match self.command {
            Command::Generate(generate) => generate.run(),
            Command::Demo(demo) => demo.run(),
            Command::Bench(bench) => bench.run(),
            Command::Limits(limits) => limits.run(),
            Command::Advise(advise) => advise.run(),
            Command::Adopt(adopt) => adopt.run(),
        };
        result.map_or_else(
            |error| {
                eprintln!("error: {error:#}");
                if let Some(Hinted { hint, .. }) = error.downcast_ref() {
                    eprintln!("hint: {hint}");
                }
                ExitCode::from(FAILED)
            },
            ExitCode::from,
        )
    }
}
