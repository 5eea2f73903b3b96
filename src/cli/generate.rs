//! `slotted generate`: render packages into files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::flags::Flags;
use super::output::{Outcome, note, out, outln};
use crate::package::{self, Package};
use crate::render::{self, Format};

/// Render the SQL of a package.
///
/// Without PACKAGE, renders the four packages that have a name.
#[derive(Debug, Args)]
pub struct Generate {
    /// The output folder. Each package has its own folder in it, such as mysql/counters, or mysql/TABLE with --table or --column
    #[arg(long, value_name = "DIR", default_value = "generated")]
    out: PathBuf,

    /// Write no file. Print the names of the files in --out that differ, and exit with 1 if there are any
    #[arg(long)]
    check: bool,

    /// The format of the files. client: for the command-line client, with DELIMITER. plain: up.sql and down.sql as
    /// texts with many statements, for migration tools. statements: the same as JSON arrays with one statement each
    #[arg(long, value_name = "client|plain|statements", value_parser = format, default_value = "client")]
    format: Format,

    /// Write setup.sql to stdout, for example: slotted generate counters --stdout | mysql DATABASE. In another format, writes up.sql
    /// or up.json
    #[arg(long, requires = "subject", conflicts_with_all = ["out", "check"])]
    stdout: bool,

    #[command(flatten)]
    flags: Flags,
}

fn format(text: &str) -> Result<Format, String> {
    match text {
        "client" => Ok(Format::Client),
        "plain" => Ok(Format::Plain),
        "statements" => Ok(Format::Statements),
        _ => Err("expected client, plain or statements".into()),
    }
}

impl Generate {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let packages = match self.flags.options()? {
            Some(options) => vec![Package::new(options)?],
            None => package::committed(),
        };
        if self.stdout {
            for package in &packages {
                out!("{}", render::files_of(package, self.format)[0].text)?;
            }
            return Ok(Outcome::Fine);
        }
        let mut differ = false;
        for package in &packages {
            let folder = self.out.join(package.folder());
            if self.check {
                for file in differing(package, self.format, &folder)? {
                    differ = true;
                    outln!("{}", file.display())?;
                }
            } else {
                write(package, self.format, &folder)?;
            }
        }
        if !differ {
            return Ok(Outcome::Fine);
        }
        note!(
            "error: the files in {} differ from the rendered ones\n\
             hint: run it without --check, and review the differences: git diff shows them",
            self.out.display()
        );
        Ok(Outcome::Differs)
    }
}

/// Writes the files of a package. A file whose text is equal keeps its modification time.
fn write(package: &Package, format: Format, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for rendered in render::files_of(package, format) {
        let path = folder.join(rendered.name);
        if is_same(&path, &rendered.text) {
            note!("unchanged {}", path.display());
        } else {
            fs::write(&path, &rendered.text).with_context(|| format!("cannot write {}", path.display()))?;
            note!("wrote {}", path.display());
        }
    }
    Ok(())
}

/// The files that differ between a package and its folder, also those in the folder that do not belong to the package.
fn differing(package: &Package, format: Format, folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut differing = BTreeSet::new();
    for entry in folder.read_dir().into_iter().flatten() {
        differing.insert(entry?.path());
    }
    for file in render::files_of(package, format) {
        let path = folder.join(file.name);
        if is_same(&path, &file.text) {
            differing.remove(&path);
        } else {
            differing.insert(path);
        }
    }
    Ok(differing)
}

/// Whether a file has this text. Reading a FIFO would wait.
fn is_same(path: &Path, text: &str) -> bool {
    path.is_file() && fs::read(path).is_ok_and(|found| found == text.as_bytes())
}
