//! The command line: one file per command.

mod advise;
mod bench;
mod connection;
mod demo;
mod explained;
mod flags;
mod generate;
mod install;
mod interrupt;
mod output;
mod package;
mod private;
mod status;
mod uninstall;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::{Arg, ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::connect::{self, Hinted};
pub use flags::Flags;
pub use output::Outcome;
use output::{note, out};

/// Counters in MySQL and MariaDB that many connections increment at the same time.
#[derive(Debug, Parser)]
#[command(
    name = "slotted",
    version,
    arg_required_else_help = true,
    disable_help_flag = true,
    disable_help_subcommand = true,
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
    /// Print the completions of a shell, for example: source <(slotted completions bash).
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// `-pPASSWORD` as `--password=PASSWORD`: clap would read it as the flags -p, -P, -A and so on.
fn with_long_password(argument: OsString) -> OsString {
    match argument.to_str().and_then(|text| text.strip_prefix("-p")) {
        Some(password) if !password.is_empty() => format!("--password={password}").into(),
        _ => argument,
    }
}

impl Cli {
    /// The command line of this process. Prints help, and the errors of arguments, and ends the process then.
    pub fn of_process() -> Self {
        let arguments = env::args_os().map(with_long_password);
        let matches = Self::shown_command().get_matches_from(arguments);
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The command with its help: `-h` is the host, as in the clients of the servers, and an option takes one line. What a command
    /// says about itself after the first paragraph comes after its options.
    fn shown_command() -> clap::Command {
        let help = Arg::new("help").long("help").help("Print help").action(ArgAction::HelpShort).global(true);
        Self::command().arg(help).mut_subcommands(|command| {
            let text = command.get_long_about().map(ToString::to_string).unwrap_or_default();
            match text.split_once("\n\n") {
                Some((_, details)) => command.after_help(details.to_owned()),
                None => command,
            }
        })
    }

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
            Command::Completions { shell } => {
                let mut text = Vec::new();
                clap_complete::generate(shell, &mut Cli::shown_command(), "slotted", &mut text);
                out!("{}", String::from_utf8_lossy(&text))?;
                Ok(Outcome::Fine)
            }
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
    let interrupted = interrupt::stop().load(Ordering::Relaxed);
    let word = if interrupted { "interrupted" } else { "error" };
    note!("{word}: {}", output::in_line(&described(error)));
    if let Some(Hinted { hint, .. }) = error.downcast_ref() {
        note!("hint: {hint}");
    }
    if interrupted { Outcome::Interrupted } else { Outcome::Incomplete }.into()
}
