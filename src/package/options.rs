//! The options of a package: one struct for the command line and the templates.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, ArgGroup, Args};

use super::column::{Columns, TableColumn};
use super::ident::{Definer, Ident, IdentError, Prefix};
use super::key::{Key, KeyColumn};
use super::values::{Collation, Family, Kind, Pick, Security, Slots};

/// The number of slots that `counter_setup` creates for NULL, as in the article of 2012.
pub const DEFAULT_SLOTS: u32 = 5;

/// The number of slots of a record: a prime number, and more than most servers have connections. Source: the measurement in
/// docs/dev/design-notes.md, "The default number of slots".
pub const RECORD_SLOTS: u32 = 521;

/// The number of slots of each counter of `counters-fixed`.
pub const FIXED_SLOTS: u32 = 20;

/// The name of a package, its help, and the options that it stands for.
type Named = (&'static str, &'static str, fn() -> Options);

/// The packages that have a name of their own.
const NAMED: [Named; 4] = [
    ("counters", "Counters with a name, each with its own number of slots", Options::default),
    ("counters-fixed", "The same with --slots 20: every counter has 20 slots", || Options {
        slots: Slots::Fixed(FIXED_SLOTS),
        ..Options::default()
    }),
    ("slotted_counters", "Counters of records, identified by key columns", Options::slotted_counters),
    (
        "bounded_counters",
        "Counters with a name that never fall below 0: stock, seats, quotas",
        Options::bounded_counters,
    ),
];

/// Reads the name of a package. Which of the packages it is decides [`Given`].
fn kind() -> impl TypedValueParser<Value = Kind> {
    let names = NAMED.map(|(name, help, _)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).map(|name| Options::named(&name).map_or(Kind::Counters, |options| options.kind))
}

/// The options of a package: what a command line says, over the defaults of the package that it names.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(next_help_heading = "Options of the package", group = ArgGroup::new("subject").multiple(true))]
#[group(requires = "subject")]
pub struct Options {
    /// The package [default with --column: slotted_counters]
    #[arg(value_name = "PACKAGE", group = "subject", help_heading = None, value_parser = kind())]
    pub kind: Kind,

    /// Whether its counters never fall below 0.
    #[arg(skip)]
    pub bounded: bool,

    /// The key columns of slotted_counters. Types: TINYINT, SMALLINT, MEDIUMINT, INT and BIGINT, each also UNSIGNED,
    /// CHAR(n), VARCHAR(n), BINARY(n), VARBINARY(n), DATE and DATETIME [default: record_type INT, record_id BIGINT]
    #[arg(long, value_name = "COLUMNS")]
    pub key: Key,

    /// The number of slots. per-counter: each counter has its own number, which each increment queries. N: every counter
    /// has N slots, and an increment needs no query [default: per-counter, for slotted_counters 521]
    #[arg(long, value_name = "per-counter|N")]
    pub slots: Slots,

    /// The slot selection
    #[arg(long, default_value_t = Pick::Connection)]
    pub pick: Pick,

    /// The name of the table [default: the name of the package]
    #[arg(long, value_name = "NAME", value_parser = Ident::own)]
    pub table: Ident,

    /// The beginning of the names of routines and views [default: counter_, for slotted_counters slotted_counter_]
    #[arg(long)]
    pub prefix: Prefix,

    /// The collation of names and text keys. Names need a collation of utf8mb4 [default: utf8mb4_bin for keys; for names, with
    /// which upper and lower case are equal, utf8mb4_0900_ai_ci on MySQL, utf8mb4_unicode_520_ci on MariaDB]
    #[arg(long, value_name = "COLLATION")]
    pub collation: Option<Collation>,

    /// The account whose privileges the routines run with
    #[arg(long, default_value_t = Security::Definer)]
    pub security: Security,

    /// The DEFINER of the routines and views, such as slotted@localhost. Also renders accounts.sql, which creates
    /// this account without a password, locked, and with the privileges that the routines need. Without this option, the
    /// definer is the account that sources the scripts
    #[arg(long, value_name = "USER@HOST")]
    pub definer: Option<Definer>,

    /// The family of servers that the SQL is for. install takes that of the server
    #[arg(long = "server", value_name = "SERVER", default_value = Family::Mysql.slug())]
    pub family: Family,

    /// The SQL for a Galera cluster or a group with several primaries, whose nodes all accept writes: each node has slots of its own,
    /// by auto_increment_increment and auto_increment_offset
    #[arg(long)]
    pub cluster: bool,

    /// A column of a table whose counts the package has, such as articles.views. The total of a record is the column and the counts
    /// of its slots, which a roll-up adds to the column. The key is the primary key of the table. Table and prefix are named
    /// after the column
    #[arg(long, value_name = "TABLE.COLUMN", group = "subject")]
    pub column: Option<TableColumn>,

    /// Columns with ON UPDATE CURRENT_TIMESTAMP that a roll-up does not change, separated by commas
    #[arg(long, value_name = "COLUMN,..", requires = "column")]
    pub keep: Columns,

    /// Do not render the function counter_get, for a server that rejects it from your account (1418, 1419)
    #[arg(long = "no-function", action = ArgAction::SetFalse)]
    pub function: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kind: Kind::Counters,
            bounded: false,
            key: Key(vec![KeyColumn::name()]),
            slots: Slots::PerCounter,
            pick: Pick::Connection,
            table: "counters".parse().expect("an identifier"),
            prefix: "counter_".parse().expect("a prefix"),
            collation: None,
            security: Security::Definer,
            definer: None,
            family: Family::Mysql,
            cluster: false,
            column: None,
            keep: Columns::default(),
            function: true,
        }
    }
}

/// The reason why options cannot be combined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// Not the words of a command line.
    #[error("'{0}' are not the options of a package")]
    Words(String),
    /// Random slots of bounded counters.
    #[error("--pick random cannot be used with bounded counters: the slot of a connection has its share of the total")]
    RandomOfBounded,
    /// Names in a character set that lacks characters.
    #[error("--collation {0} cannot be used with counters: expected a collation of utf8mb4, such as utf8mb4_bin")]
    CollationOfNamed(Collation),
    /// MySQL adds `_chk_1` to the name of the table for its CHECK.
    #[error("--table {0}: the name of a table of bounded_counters has at most 58 characters")]
    LongTable(String),
    /// A fixed number of slots of named bounded counters.
    #[error("--slots {0} cannot be used with bounded_counters: each counter has its own number of slots")]
    FixedOfBounded(u32),
    /// Per-counter slots for records, which do not store a number of slots.
    #[error("--slots per-counter cannot be used with slotted_counters: a record has no number of slots of its own")]
    PerRecord,
    /// A key for the package counters, whose key is counter_name.
    #[error("--key cannot be used with counters, whose key is counter_name: use the package slotted_counters")]
    KeyOfNamed,
    /// A column of the package counters, which has no records.
    #[error("--column cannot be used with counters: use the package slotted_counters")]
    ColumnOfNamed,
    /// A roll-up would assign a column twice. MySQL keeps the old value, and the counts are lost.
    #[error("the column '{0}' gets the counts: it cannot keep its value")]
    KeepsColumn(String),
    /// A roll-up would change the key of the row.
    #[error("the column '{0}' identifies a row: it cannot get the counts")]
    ColumnInKey(String),
    /// The names of a table and its column are not those of a package.
    #[error("--column {0}: the package cannot be named after it: use --table and --prefix")]
    ColumnName(TableColumn),
    /// A column of a table without the key of this table.
    #[error("--column {0} needs --key with the primary key of the table, such as --key 'id BIGINT'")]
    ColumnWithoutKey(TableColumn),
    /// The name of a routine or view is not an identifier.
    #[error("--prefix: {0}")]
    Prefix(IdentError),
    /// The table and a view have the same name.
    #[error("--table {0} is also the name of a view of the package: use another --table or --prefix")]
    TableIsView(String),
}

impl Options {
    /// The options that the name of a package stands for.
    pub fn named(name: &str) -> Option<Self> {
        let named = NAMED.into_iter().find(|(one, ..)| *one == name);
        named.map(|(.., options)| options())
    }

    /// The packages that have a name of their own.
    pub(super) fn all_named() -> impl Iterator<Item = Self> {
        NAMED.into_iter().map(|(.., options)| options())
    }

    /// The defaults of the package `slotted_counters`.
    pub fn slotted_counters() -> Self {
        Self {
            kind: Kind::SlottedCounters,
            key: "record_type INT, record_id BIGINT".parse().expect("a key"),
            slots: Slots::Fixed(RECORD_SLOTS),
            table: "slotted_counters".parse().expect("an identifier"),
            prefix: "slotted_counter_".parse().expect("a prefix"),
            ..Self::default()
        }
    }

    /// The defaults of the package `bounded_counters`.
    pub fn bounded_counters() -> Self {
        Self {
            bounded: true,
            table: "bounded_counters".parse().expect("an identifier"),
            prefix: "bounded_counter_".parse().expect("a prefix"),
            ..Self::default()
        }
    }

    /// The defaults of a package whose counts move into a column. None if it cannot be named after the column.
    pub fn of_column(column: &TableColumn) -> Option<Self> {
        let name = format!("{}_{}", column.table.name(), column.column.name());
        Some(Self {
            prefix: format!("{name}_").parse().ok()?,
            table: Ident::own(&name).ok()?,
            column: Some(column.clone()),
            ..Self::slotted_counters()
        })
    }

    /// The defaults of the package with these options.
    pub(super) fn defaults(&self) -> Self {
        match &self.column {
            Some(column) => Self::of_column(column).unwrap_or_else(Self::slotted_counters),
            None if self.bounded => Self::bounded_counters(),
            None => Self::named(self.kind.name()).expect("it has the name"),
        }
    }

    pub(super) fn check(&self) -> Result<(), OptionsError> {
        use OptionsError as E;
        if let Some(column) = &self.column {
            self.check_column(column)?;
        }
        match (self.kind, self.slots) {
            (Kind::SlottedCounters, Slots::PerCounter) => Err(E::PerRecord),
            (Kind::Counters, _) if self.key.0 != [KeyColumn::name()] => Err(E::KeyOfNamed),
            (Kind::Counters, _) if !self.collation().has_all_characters() => Err(E::CollationOfNamed(self.collation())),
            _ if self.bounded && self.table.name().len() > 58 => Err(E::LongTable(self.table.name().to_owned())),
            (Kind::Counters, Slots::Fixed(n)) if self.bounded => Err(E::FixedOfBounded(n)),
            _ if self.bounded && self.random() => Err(E::RandomOfBounded),
            _ => Ok(()),
        }
    }

    fn check_column(&self, column: &TableColumn) -> Result<(), OptionsError> {
        use OptionsError as E;
        // The names of columns are equal in any case of their letters.
        let is_column = |name: &Ident| name.name().to_lowercase() == column.column.name().to_lowercase();
        let unnamed = Self::slotted_counters();
        if self.kind == Kind::Counters {
            Err(E::ColumnOfNamed)
        } else if self.key.0.is_empty() {
            Err(E::ColumnWithoutKey(column.clone()))
        } else if self.keep.0.iter().any(is_column) {
            Err(E::KeepsColumn(column.column.name().to_owned()))
        } else if self.key.0.iter().any(|key| is_column(&key.name)) {
            Err(E::ColumnInKey(column.column.name().to_owned()))
        } else if Self::of_column(column).is_none() && (self.table == unnamed.table || self.prefix == unnamed.prefix) {
            Err(E::ColumnName(column.clone()))
        } else {
            Ok(())
        }
    }

    /// Whether each counter has its own number of slots.
    pub fn per_counter(&self) -> bool {
        self.slots == Slots::PerCounter
    }

    /// The collation of names and text keys.
    pub fn collation(&self) -> Collation {
        self.collation.clone().unwrap_or_else(|| self.default_collation())
    }

    /// Names ignore case, and unlike with utf8mb4_general_ci, characters of four bytes differ. On MySQL, an increment costs a quarter
    /// less with utf8mb4_0900_ai_ci than with utf8mb4_unicode_520_ci; MariaDB 10.11 does not know it. Source: docs/dev/design-notes.md.
    pub(super) fn default_collation(&self) -> Collation {
        let name = match (self.kind, self.family) {
            (Kind::SlottedCounters, _) => "utf8mb4_bin",
            (Kind::Counters, Family::Mysql) => "utf8mb4_0900_ai_ci",
            (Kind::Counters, Family::Mariadb) => "utf8mb4_unicode_520_ci",
        };
        name.parse().expect("a collation")
    }

    /// Whether the SQL is for MariaDB.
    pub fn mariadb(&self) -> bool {
        self.family == Family::Mariadb
    }

    /// Whether an increment selects its slot before it changes it.
    pub fn selects_slot(&self) -> bool {
        self.per_counter() || self.random()
    }

    /// Whether maintenance changes one slot in each statement, because nodes write all the time.
    pub fn in_steps(&self) -> bool {
        self.cluster && !self.bounded
    }

    /// Whether each increment selects a random slot.
    pub fn random(&self) -> bool {
        self.pick == Pick::Random
    }

    /// The number of slots that `counter_setup` creates for NULL.
    pub fn setup_slots(&self) -> u32 {
        match self.slots {
            Slots::PerCounter => DEFAULT_SLOTS,
            Slots::Fixed(n) => n,
        }
    }
}
