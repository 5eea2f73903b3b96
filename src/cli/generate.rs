//! `slotted generate`: render packages into files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use similar::TextDiff;

use super::Outcome;
use super::output::{note, out};
use crate::install::column::Parent;
use crate::package::{
    self, Collation, Columns, Definer, Ident, Interval, Key, Kind, Nodes, Options, Package, Pick, Prefix,
    Roles, Rollup, Security, Servers, Slots, TableColumn, Variable,
};
use crate::render::{self, Format};

/// The default of `--out`.
const OUT: &str = "generated";

/// Render the SQL of a package.
///
/// Without PACKAGE, renders four packages: counters, slotted_counters,
/// counters-fixed, which is counters with --slots 20, and bounded_counters, which is counters with --bounded.
#[derive(Debug, Args)]
pub struct Generate {
    /// The package to render [default with --column: slotted_counters]
    #[arg(group = "subject")]
    package: Option<Kind>,

    /// The output folder. Each package has its own folder in it: counters, slotted_counters, counters-fixed for counters with a
    /// fixed number of slots, or with --bounded bounded_counters or bounded_slotted_counters
    #[arg(long, value_name = "DIR", default_value = OUT)]
    out: PathBuf,

    /// Write no file. Print the differences from the files in --out, and exit with 1 if there are any
    #[arg(long)]
    check: bool,

    /// The format of the files. client: for the command-line client, with DELIMITER. plain: up.sql, down.sql and their parts as
    /// texts with many statements, for migration tools. statements: the same as JSON arrays with one statement each
    #[arg(long, value_name = "client|plain|statements", value_parser = format, default_value = "client")]
    format: Format,

    /// Write setup.sql to stdout, for example: slotted generate counters --stdout | mysql DATABASE. In another format, writes up.sql
    /// or up.json
    #[arg(long, requires = "subject", conflicts_with_all = ["out", "check"])]
    stdout: bool,

    #[command(flatten)]
    options: OptionFlags,
}

fn format(text: &str) -> Result<Format, String> {
    match text {
        "client" => Ok(Format::Client),
        "plain" => Ok(Format::Plain),
        "statements" => Ok(Format::Statements),
        _ => Err("expected client, plain or statements".into()),
    }
}

/// The options of a package. They require PACKAGE or --column.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of the package", group = ArgGroup::new("subject").multiple(true))]
pub(super) struct OptionFlags {
    /// Counters that never fall below 0: stock, seats, quotas. The table rejects a negative slot, and the routine take fails if the
    /// total is less than the amount. The table and the prefix begin with bounded_
    #[arg(long, requires = "subject")]
    bounded: bool,

    /// The key columns of slotted_counters. Types: TINYINT, SMALLINT, MEDIUMINT, INT and BIGINT, each also UNSIGNED,
    /// CHAR(n), VARCHAR(n), BINARY(n), VARBINARY(n), DATE, DATETIME, YEAR, ENUM(..), and on MariaDB UUID [default: record_type INT, record_id BIGINT]
    #[arg(long, value_name = "COLUMNS", requires = "subject")]
    key: Option<Key>,

    /// The number of slots. per-counter: each counter has its own number, which each increment queries. N: every counter
    /// has N slots, and an increment needs no query [default: per-counter, for slotted_counters 521]
    #[arg(long, value_name = "per-counter|N", requires = "subject")]
    slots: Option<Slots>,

    /// The number of slots that counter_setup creates for NULL [default: 5]
    #[arg(long, value_name = "N", requires = "subject", value_parser = package::slot_count)]
    default_slots: Option<u32>,

    /// The slot selection
    #[arg(long, requires = "subject", default_value_t = Pick::Connection)]
    pick: Pick,

    /// The number of nodes of a cluster that accept writes, if auto_increment_increment is 1 on them. 1 is for a server that is
    /// known to be alone: routines and statements are shorter and faster
    #[arg(long, value_name = "N", requires = "subject", value_parser = clap::value_parser!(u32).range(1..=100))]
    nodes: Option<u32>,

    /// The global variable whose value modulo N is different on each node
    #[arg(long, value_name = "NAME", requires = "nodes", default_value = "server_id")]
    node_variable: Variable,

    /// The name of the table [default: the name of the package]
    #[arg(long, value_name = "NAME", requires = "subject")]
    table: Option<Ident>,

    /// The beginning of the names of routines and views [default: counter_, for slotted_counters slotted_counter_]
    #[arg(long, requires = "subject")]
    prefix: Option<Prefix>,

    /// The collation of names and text keys. Names need a collation of utf8mb4 [default: utf8mb4_general_ci]
    #[arg(long, requires = "subject", value_name = "COLLATION")]
    collation: Option<Collation>,

    /// The account whose privileges the routines run with
    #[arg(long, requires = "subject", default_value_t = Security::Definer)]
    security: Security,

    /// The DEFINER of the routines, views and events, such as slotted@localhost. Also renders accounts.sql, which creates
    /// this account without a password, locked, and with the privileges that the routines need. Without this option, the
    /// definer is the account that sources the scripts
    #[arg(long, value_name = "USER@HOST", requires = "subject")]
    definer: Option<Definer>,

    /// The roles that grants.sql creates [default: the prefix and app, the prefix and admin]
    #[arg(long, value_name = "APPLICATION,ADMIN", requires = "subject")]
    roles: Option<Roles>,

    /// The servers that the SQL is for
    #[arg(long, value_name = "SERVER", requires = "subject", default_value_t = Servers::Both)]
    server: Servers,

    /// A column of a table whose counts the package has, such as articles.views. The total of a record is the column and the counts
    /// of its slots, which a roll-up adds to the column. The key is the primary key of the table. Table and prefix are named
    /// after the column
    #[arg(
        long,
        value_name = "TABLE.COLUMN",
        group = "subject",
        conflicts_with = "rollup"
    )]
    column: Option<TableColumn>,

    /// Columns with ON UPDATE CURRENT_TIMESTAMP that a roll-up does not change, separated by commas
    #[arg(long, value_name = "COLUMN,..", requires = "column")]
    keep: Vec<Columns>,

    /// The same as --column for a part of the records. Can be given several times.
    /// For example, record_type=123:repositories.id:download_count moves the counts of each record with record_type 123
    /// into the column download_count of the row of repositories whose id is the record_id
    #[arg(
        long,
        value_name = "COLUMN=VALUE,..:TABLE.ID_COLUMN:TOTAL_COLUMN",
        requires = "subject"
    )]
    rollup: Vec<Rollup>,

    /// Also render an EVENT that calls the roll-up at this interval, such as '10 SECOND'
    #[arg(long, value_name = "INTERVAL", requires = "subject")]
    rollup_every: Option<Interval>,

    /// Do not render the function counter_get, for a server that rejects it from your account (1418, 1419)
    #[arg(long, requires = "subject")]
    no_function: bool,
}

impl OptionFlags {
    /// The package that the options are of. Counts that belong to a column are keyed.
    pub(super) fn kind(&self, package: Option<Kind>) -> Option<Kind> {
        package.or_else(|| self.column.as_ref().map(|_| Kind::SlottedCounters))
    }

    /// The column whose table the options do not describe.
    pub(super) fn unknown_column(&self) -> Option<&TableColumn> {
        self.column.as_ref().filter(|_| self.key.is_none())
    }

    /// The same options with what the server says about the table of the column. `touch` lets ON UPDATE change its columns.
    pub(super) fn with_parent(mut self, parent: Parent, touch: bool) -> Self {
        self.key = Some(parent.key);
        self.collation = self.collation.or(parent.collation);
        if self.keep.is_empty() && !touch {
            self.keep = vec![Columns(parent.on_update)];
        }
        if parent.mariadb {
            self.server = Servers::Mariadb;
        }
        self
    }

    pub(super) fn options(self, kind: Kind) -> Options {
        let of_column = self
            .column
            .as_ref()
            .and_then(|column| Options::of_column(column).ok());
        let default = match of_column {
            _ if self.bounded => Options::bounded(kind),
            Some(of_column) => of_column,
            None => Options::of(kind),
        };
        // Without a key, the roll-up has no columns that identify a row, and the package is rejected.
        let no_key = Key(Vec::new());
        let keep = self.keep.into_iter().flat_map(|columns| columns.0).collect();
        let of_column = |column: TableColumn| column.rollup(self.key.as_ref().unwrap_or(&no_key), keep);
        let rollups = match self.column {
            Some(column) => vec![of_column(column)],
            None => self.rollup,
        };
        Options {
            kind,
            bounded: self.bounded,
            key: self.key.unwrap_or(default.key),
            slots: self.slots.unwrap_or(default.slots),
            default_slots: self.default_slots,
            pick: self.pick,
            nodes: self.nodes.map(|count| Nodes {
                count,
                variable: self.node_variable,
            }),
            table: self.table.unwrap_or(default.table),
            prefix: self.prefix.unwrap_or(default.prefix),
            collation: self.collation.unwrap_or(default.collation),
            security: self.security,
            definer: self.definer,
            roles: self.roles,
            servers: self.server,
            function: !self.no_function,
            rollups,
            rollup_every: self.rollup_every,
        }
    }
}

impl Generate {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let packages = match self.options.kind(self.package) {
            Some(package) => vec![Package::new(self.options.options(package))?],
            None => package::committed(),
        };
        if self.stdout {
            for package in &packages {
                let files = render::files_of(package, self.format);
                out!("{}", files[0].text)?;
            }
            return Ok(Outcome::Fine);
        }
        let mut outcome = Outcome::Fine;
        for package in &packages {
            let folder = self.out.join(package.folder());
            if self.check {
                let difference = difference(package, self.format, &folder)?;
                if !difference.is_empty() {
                    outcome = Outcome::Differs;
                    out!("{difference}")?;
                }
            } else {
                write(package, self.format, &folder)?;
            }
        }
        if outcome == Outcome::Differs {
            let arguments = packages[0].options.arguments();
            let package = if packages.len() == 1 {
                format!(" {arguments}")
            } else {
                String::new()
            };
            note!(
                "error: the files in {} differ from the rendered ones",
                self.out.display()
            );
            let format = match self.format {
                Format::Client => "",
                Format::Plain => " --format plain",
                Format::Statements => " --format statements",
            };
            let out = match self.out.to_string_lossy() {
                folder if folder == OUT => String::new(),
                folder => format!(" --out {}", shlex::try_quote(&folder).unwrap_or_default()),
            };
            note!("hint: run slotted generate{package}{out}{format}, and review the differences");
        }
        Ok(outcome)
    }
}

/// Writes the files of a package. A file whose text is equal keeps its modification time.
fn write(package: &Package, format: Format, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for rendered in render::files_of(package, format) {
        let path = folder.join(rendered.name);
        if fs::read(&path).is_ok_and(|old| old == rendered.text.as_bytes()) {
            note!("unchanged {}", path.display());
        } else {
            fs::write(&path, &rendered.text).with_context(|| format!("cannot write {}", path.display()))?;
            note!("wrote {}", path.display());
        }
    }
    Ok(())
}

/// The differences between a package and its folder as a unified diff, empty if there are none. Includes files in the
/// folder that do not belong to the package.
fn difference(package: &Package, format: Format, folder: &Path) -> anyhow::Result<String> {
    let mut expected: BTreeMap<PathBuf, String> = render::files_of(package, format)
        .into_iter()
        .map(|file| (folder.join(file.name), file.text))
        .collect();
    if let Ok(entries) = folder.read_dir() {
        for entry in entries {
            expected.entry(entry?.path()).or_default();
        }
    }
    let mut difference = String::new();
    for (path, text) in expected {
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            // Reading a FIFO waits, and a device can have no end.
            bail!("{} is not a file", path.display());
        }
        let old = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        if old != text {
            let name = path.display().to_string();
            let diff = TextDiff::from_lines(&old, &text);
            difference += &diff
                .unified_diff()
                .header(&name, &format!("{name} (rendered)"))
                .to_string();
        }
    }
    Ok(difference)
}
