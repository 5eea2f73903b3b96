//! Parses, runs, and passes on the exit code; nothing else.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    slotted::cli::Cli::parse().run()
}
