//! `slotted completions` and `slotted man`: what a shell and `man` need to know about the commands.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::{Shell, generate};

use super::output::{note, out};
use super::{Cli, Outcome};

/// Print the completions of a shell.
///
/// bash: source <(slotted completions bash). zsh: slotted completions zsh > FOLDER/_slotted, with a folder of $fpath. fish: slotted
/// completions fish > ~/.config/fish/completions/slotted.fish.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    shell: Known,
}

/// A shell whose completions are tested.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

/// Write the manual pages into a folder.
///
/// Writes slotted.1 and a page for each command, such as slotted-install.1. man -l DIR/slotted.1 shows the first one.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder, which is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Completions {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let shell = match self.shell {
            Known::Bash => Shell::Bash,
            Known::Zsh => Shell::Zsh,
            Known::Fish => Shell::Fish,
        };
        let mut text = Vec::new();
        generate(shell, &mut Cli::command(), "slotted", &mut text);
        out!("{}", String::from_utf8_lossy(&text))?;
        Ok(Outcome::Fine)
    }
}

impl Man {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let folder = self.folder.display();
        fs::create_dir_all(&self.folder).with_context(|| format!("cannot create the folder {folder}"))?;
        clap_mangen::generate_to(Cli::command(), &self.folder)
            .with_context(|| format!("cannot write to the folder {folder}"))?;
        note!("wrote the manual pages into {folder}");
        Ok(Outcome::Fine)
    }
}
