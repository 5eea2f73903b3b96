//! `slotted completions`: what a shell needs to know about the commands.

use clap::Args;
use clap_complete::{Shell, generate};

use super::output::out;
use super::{Cli, Outcome};

/// Print the completions of a shell, for example: source <(slotted completions bash).
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut text = Vec::new();
        generate(self.shell, &mut Cli::shown_command(), "slotted", &mut text);
        out!("{}", String::from_utf8_lossy(&text))?;
        Ok(Outcome::Fine)
    }
}
