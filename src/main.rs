//! Parses the command line, runs the command, and returns its exit code.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    slotted::cli::Cli::parse().run()
}
