//! Parses the command line, runs the command, and returns its exit code.

use std::process::ExitCode;

use clap::Parser;
use slotted::cli::{Cli, hide_secrets};

fn main() -> ExitCode {
    let cli = Cli::parse();
    hide_secrets();
    cli.run()
}
