//! The flags that describe a package. The documentation of a flag is its help.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{ArgGroup, Args};

use super::output::hinted;
use crate::package::{
    Collation, Columns, Definer, Family, Ident, Key, Options, Prefix, Security, Slots, Subject, TableColumn,
};

/// What a command line says of a package.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of the package", group = ArgGroup::new("subject").multiple(true))]
#[group(requires = "subject")]
pub struct Flags {
    /// The package [default with --column: slotted_counters]
    #[arg(value_name = "PACKAGE", group = "subject", help_heading = None, value_parser = names())]
    name: Option<String>,

    /// The key columns of slotted_counters. Types: TINYINT, SMALLINT, MEDIUMINT, INT and BIGINT, each also UNSIGNED,
    /// CHAR(n), VARCHAR(n), BINARY(n), VARBINARY(n), DATE and DATETIME [default: record_type INT, record_id BIGINT]
    #[arg(long, value_name = "COLUMNS")]
    key: Option<Key>,

    /// The number of slots. per-counter: each counter has its own number, which each increment queries. N: every counter
    /// has N slots, and an increment needs no query [default: per-counter, for slotted_counters 521]
    #[arg(long, value_name = "per-counter|N")]
    pub slots: Option<Slots>,

    /// The name of the table [default: the name of the package]
    #[arg(long, value_name = "NAME", value_parser = Ident::own)]
    table: Option<Ident>,

    /// The beginning of the names of routines and views [default: counter_, for slotted_counters slotted_counter_]
    #[arg(long)]
    prefix: Option<Prefix>,

    /// The collation of names and text keys. Names need a collation of utf8mb4 [default: utf8mb4_bin for keys; for names, with
    /// which upper and lower case are equal, utf8mb4_0900_ai_ci on MySQL, utf8mb4_unicode_520_ci on MariaDB]
    #[arg(long, value_name = "COLLATION")]
    pub collation: Option<Collation>,

    /// The account whose privileges the routines run with [default: definer]
    #[arg(long)]
    pub security: Option<Security>,

    /// The DEFINER of the routines and views, such as slotted@localhost. Also renders accounts.sql, which creates
    /// this account without a password, locked, and with the privileges that the routines need. Without this option, the
    /// definer is the account that sources the scripts
    #[arg(long, value_name = "USER@HOST")]
    pub definer: Option<Definer>,

    /// The family of servers that the SQL is for. install takes that of the server [default: mysql]
    #[arg(long = "server", value_name = "SERVER")]
    family: Option<Family>,

    /// The SQL for a Galera cluster or a group with several primaries, whose nodes all accept writes: each node has slots of its own,
    /// by auto_increment_increment and auto_increment_offset
    #[arg(long)]
    cluster: bool,

    /// A column of a table whose counts the package has, such as articles.views. The total of a record is the column and the counts of its
    /// slots, which a roll-up adds to the column. The key is the primary key of the table. Table and prefix are named after the column
    #[arg(long, value_name = "TABLE.COLUMN", group = "subject")]
    column: Option<TableColumn>,

    /// Columns with ON UPDATE CURRENT_TIMESTAMP that a roll-up does not change, separated by commas
    #[arg(long, value_name = "COLUMN,..", requires = "column")]
    keep: Option<Columns>,

    /// Do not render the function counter_get, for a server that rejects it from your account (1418, 1419)
    #[arg(long)]
    no_function: bool,
}

fn names() -> PossibleValuesParser {
    Options::NAMED.map(|(name, help, _)| PossibleValue::new(name).help(help)).into()
}

impl Flags {
    /// The options: what the flags say, over the defaults of the package that they name. None if they name neither a package nor a
    /// column. Without --key, a column has no key.
    ///
    /// # Errors
    /// A flag is not one of this package.
    pub fn options(&self) -> anyhow::Result<Option<Options>> {
        let mut options = match (self.name.as_deref(), &self.column) {
            (None, None) => return Ok(None),
            (None | Some("slotted_counters"), Some(column)) => {
                let key = self.key.clone().unwrap_or(Key(Vec::new()));
                Options::of_column(column.clone(), key, self.keep.clone().unwrap_or_default())
            }
            (Some(_), Some(_)) => {
                return Err(hinted("--column cannot be used with counters", "use the package slotted_counters"));
            }
            (Some(name), None) => Options::named(name).expect("one of the names"),
        };
        if let Some((problem, hint)) = self.problem(&options.subject) {
            return Err(hinted(problem, hint));
        }
        if let (Subject::Records { key, .. }, Some(given)) = (&mut options.subject, &self.key) {
            key.clone_from(given);
        }
        if let Some(Slots::Fixed(number)) = self.slots {
            options.subject.set_slots(number);
        }
        options.table = self.table.clone().unwrap_or(options.table);
        options.prefix = self.prefix.clone().unwrap_or(options.prefix);
        options.security = self.security.unwrap_or(options.security);
        options.family = self.family.unwrap_or(options.family);
        options.collation.clone_from(&self.collation);
        options.definer.clone_from(&self.definer);
        (options.cluster, options.function) = (self.cluster, !self.no_function);
        Ok(Some(options))
    }

    /// Why this subject has no such key or slots, and what to do.
    fn problem(&self, subject: &Subject) -> Option<(&'static str, &'static str)> {
        match (subject, self.slots) {
            (Subject::Named { .. } | Subject::Bounded, _) if self.key.is_some() => Some((
                "--key cannot be used with counters, whose key is counter_name",
                "use the package slotted_counters",
            )),
            (Subject::Bounded, Some(Slots::Fixed(_))) => Some((
                "--slots N cannot be used with bounded_counters",
                "omit it: each counter has its own number of slots",
            )),
            (Subject::Records { .. } | Subject::Column { .. }, Some(Slots::PerCounter)) => Some((
                "--slots per-counter cannot be used with slotted_counters",
                "give a number: a record has no number of slots of its own",
            )),
            (_, Some(Slots::PerCounter)) if self.name.as_deref() == Some("counters-fixed") => {
                Some(("counters-fixed has one number of slots for all counters", "use the package counters"))
            }
            _ => None,
        }
    }
}
