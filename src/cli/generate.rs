//! `slotted generate`: packages to files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use similar::TextDiff;

use super::Outcome;
use crate::package::{self, Collation, Ident, Interval, Key, Options, Package, Prefix, Rollup, Slots};
use crate::render;

/// Render the SQL of a package.
///
/// Without PACKAGE, renders all packages that are committed in this repository: counters, counters-fixed, which is
/// counters with --slots 20, and slotted_counters. The same options always give the same bytes.
#[derive(Debug, Args)]
pub struct Generate {
    /// The package to render
    package: Option<PackageName>,

    /// The folder that gets a folder per package: counters, counters-fixed where slots are hard-coded, slotted_counters
    #[arg(long, value_name = "DIR", default_value = "generated")]
    out: PathBuf,

    /// Write nothing; print what differs from the files in --out and exit with 1 if anything does
    #[arg(long)]
    check: bool,

    /// Write setup.sql to stdout, to be piped into a client: slotted generate counters --stdout | mysql DATABASE
    #[arg(long, requires = "package", conflicts_with_all = ["out", "check"])]
    stdout: bool,

    #[command(flatten)]
    options: OptionFlags,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PackageName {
    /// Counters that have a name; setup makes their slots
    Counters,
    /// Counters of records, found by key columns; a slot is made when it is first written
    #[value(name = "slotted_counters")]
    SlottedCounters,
}

/// What a package can be rendered with; these flags need PACKAGE.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of the package")]
struct OptionFlags {
    /// The columns that a counter of slotted_counters is found by [default: record_type INT, record_id BIGINT]
    #[arg(long, value_name = "COLUMNS", requires = "package")]
    key: Option<Key>,

    /// per-counter: each counter has its own number of slots. A number: every counter has that many, which saves each
    /// increment a look-up [default: per-counter; slotted_counters: 100]
    #[arg(long, value_name = "per-counter|N", requires = "package")]
    slots: Option<Slots>,

    /// How many slots counter_setup makes when it is given NULL [default: 5]
    #[arg(long, value_name = "N", requires = "package", value_parser = package::slot_count)]
    default_slots: Option<u32>,

    /// How an increment picks its slot
    #[arg(long, requires = "package", default_value = "connection")]
    pick: Pick,

    /// The name of the table [default: the name of the package]
    #[arg(long, value_name = "NAME", requires = "package")]
    table: Option<Ident>,

    /// What the names of routines and views begin with [default: counter_ or slotted_counter_]
    #[arg(long, requires = "package")]
    prefix: Option<Prefix>,

    /// How names compare; a collation of utf8mb4
    #[arg(long, requires = "package", default_value = "utf8mb4_general_ci")]
    collation: Collation,

    /// Whose privileges the routines run with
    #[arg(long, requires = "package", default_value = "definer")]
    security: Security,

    /// Also render a procedure that writes totals into a column of your table; may be given several times. For the key
    /// record_type, record_id: record_type=123:repositories.id:download_count writes the totals of the records that have
    /// record_type 123 into download_count of the row of repositories whose id is the record_id
    #[arg(
        long,
        value_name = "COLUMN=VALUE,..:TABLE.ID_COLUMN:TOTAL_COLUMN",
        requires = "package"
    )]
    rollup: Vec<Rollup>,

    /// Also render an EVENT that calls each roll-up that often, such as '1 MINUTE'
    #[arg(long, value_name = "INTERVAL", requires = "rollup")]
    rollup_every: Option<Interval>,

    /// Leave counter_get out, for servers that refuse functions to this account (1418, 1419)
    #[arg(long, requires = "package")]
    no_function: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Pick {
    /// Always the same slot for one connection: transactions that count one counter twice cannot deadlock
    Connection,
    /// A random slot for each increment
    Random,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Security {
    /// The creator's: an application needs EXECUTE alone
    Definer,
    /// The caller's: nothing breaks when the creator's account is dropped
    Invoker,
}

impl OptionFlags {
    fn options(self, package: PackageName) -> Options {
        let default = match package {
            PackageName::Counters => Options::default(),
            PackageName::SlottedCounters => Options::slotted_counters(),
        };
        Options {
            kind: default.kind,
            key: self.key.unwrap_or(default.key),
            slots: self.slots.unwrap_or(default.slots),
            default_slots: self.default_slots,
            pick: match self.pick {
                Pick::Connection => package::Pick::Connection,
                Pick::Random => package::Pick::Random,
            },
            table: self.table.unwrap_or(default.table),
            prefix: self.prefix.unwrap_or(default.prefix),
            collation: self.collation,
            security: match self.security {
                Security::Definer => package::Security::Definer,
                Security::Invoker => package::Security::Invoker,
            },
            function: !self.no_function,
            rollups: self.rollup,
            rollup_every: self.rollup_every,
        }
    }
}

impl Generate {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let packages = match self.package {
            Some(package) => vec![Package::new(self.options.options(package))?],
            None => package::committed(),
        };
        if self.stdout {
            for package in &packages {
                io::stdout().write_all(render::setup(package).as_bytes())?;
            }
            return Ok(Outcome::Fine);
        }
        let mut outcome = Outcome::Fine;
        for package in &packages {
            let folder = self.out.join(package.folder());
            if self.check {
                let difference = difference(package, &folder)?;
                if !difference.is_empty() {
                    outcome = Outcome::Differs;
                    print!("{difference}");
                }
            } else {
                write(package, &folder)?;
            }
        }
        if outcome == Outcome::Differs {
            let arguments = packages[0].options.arguments();
            let package = if self.package.is_some() {
                format!(" {arguments}")
            } else {
                String::new()
            };
            eprintln!("error: {} is stale", self.out.display());
            eprintln!("hint: slotted generate{package}, and review the difference");
        }
        Ok(outcome)
    }
}

/// Writes the files of a package; those that are the same already keep their time.
fn write(package: &Package, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for file in render::files(package) {
        let path = folder.join(file.name);
        let same = fs::read(&path).is_ok_and(|old| old == file.text.as_bytes());
        if !same {
            fs::write(&path, &file.text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        eprintln!(
            "{} {}",
            if same { "unchanged" } else { "wrote    " },
            path.display()
        );
    }
    Ok(())
}

/// What differs between a package and its folder, as a unified diff; empty where nothing does. A file that the
/// package does not have differs too.
fn difference(package: &Package, folder: &Path) -> anyhow::Result<String> {
    let mut wanted: BTreeMap<PathBuf, String> = render::files(package)
        .into_iter()
        .map(|file| (folder.join(file.name), file.text))
        .collect();
    if let Ok(entries) = folder.read_dir() {
        for entry in entries {
            wanted.entry(entry?.path()).or_default();
        }
    }
    let mut difference = String::new();
    for (path, text) in wanted {
        let there = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        if there != text {
            let name = path.display().to_string();
            let diff = TextDiff::from_lines(&there, &text);
            difference += &diff
                .unified_diff()
                .header(&name, &format!("{name} (rendered)"))
                .to_string();
        }
    }
    Ok(difference)
}
