//! Parses the command line, runs the command, and returns its exit code.

use std::process::ExitCode;

use slotted::cli::Cli;

fn main() -> ExitCode {
    Cli::of_process().run()
}
