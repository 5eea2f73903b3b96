//! The options of a package.

use std::borrow::Cow;

use super::column::{Columns, TableColumn};
use super::ident::{Definer, Ident, OptionsError, Prefix};
use super::key::{Key, KeyColumn};
use super::subject::Subject;
use super::values::{Collation, Family, Security, Slots};

/// The number of slots that `counter_setup` creates for NULL, as in the article of 2012.
pub const DEFAULT_SLOTS: u32 = 5;

/// The number of slots of a record: a prime number, and more than most servers have connections. Source: the measurement in
/// docs/dev/design-notes.md, "The default number of slots".
pub const RECORD_SLOTS: u32 = 521;

/// The number of slots of each counter of `counters-fixed`.
pub const FIXED_SLOTS: u32 = 20;

/// The options of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What the counters belong to.
    pub subject: Subject,
    /// The name of the table.
    pub table: Ident,
    /// The beginning of the names of routines and views.
    pub prefix: Prefix,
    /// The collation of names and text keys, if it is not the default.
    pub collation: Option<Collation>,
    /// The account whose privileges the routines run with.
    pub security: Security,
    /// The DEFINER of the routines and views. None: the account that creates them.
    pub definer: Option<Definer>,
    /// The family of servers that the SQL is for.
    pub family: Family,
    /// Whether all nodes of a cluster accept writes, and each has slots of its own.
    pub cluster: bool,
    /// Whether the package contains the function that returns the total.
    pub function: bool,
}

/// The name of a package, its help on the command line, and its options.
type Named = (&'static str, &'static str, fn() -> Options);

/// The options of the package `counters`.
impl Default for Options {
    fn default() -> Self {
        Self::of(Subject::Named { slots: Slots::PerCounter }, "counters", "counter_").expect("names")
    }
}

impl Options {
    /// The packages that have a name of their own.
    pub const NAMED: [Named; 4] = [
        ("counters", "Counters with a name, each with its own number of slots", Self::default),
        ("counters-fixed", "The same with --slots 20: every counter has 20 slots", Self::counters_fixed),
        ("slotted_counters", "Counters of records, identified by key columns", Self::slotted_counters),
        (
            "bounded_counters",
            "Counters with a name that never fall below 0: stock, seats, quotas",
            Self::bounded_counters,
        ),
    ];

    /// The options of a package that has a name of its own.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(one, ..)| *one == name).map(|(.., options)| options())
    }

    fn of(subject: Subject, table: &str, prefix: &str) -> Option<Self> {
        Some(Self {
            subject,
            table: Ident::own(table).ok()?,
            prefix: prefix.parse().ok()?,
            collation: None,
            security: Security::Definer,
            definer: None,
            family: Family::Mysql,
            cluster: false,
            function: true,
        })
    }

    /// The defaults of the package `slotted_counters`.
    pub fn slotted_counters() -> Self {
        let key = "record_type INT, record_id BIGINT".parse().expect("a key");
        let subject = Subject::Records { key, slots: RECORD_SLOTS };
        Self::of(subject, "slotted_counters", "slotted_counter_").expect("names")
    }

    /// The defaults of the package `bounded_counters`.
    pub fn bounded_counters() -> Self {
        Self::of(Subject::Bounded, "bounded_counters", "bounded_counter_").expect("names")
    }

    /// The defaults of the package `counters-fixed`.
    pub fn counters_fixed() -> Self {
        Self { subject: Subject::Named { slots: Slots::Fixed(FIXED_SLOTS) }, ..Self::default() }
    }

    /// The defaults of a package whose counts move into a column. If it cannot be named after the column, it has the names of
    /// `slotted_counters`, which [`Options::check`] rejects.
    pub fn of_column(column: TableColumn, key: Key, keep: Columns) -> Self {
        let name = format!("{}_{}", column.table.name(), column.column.name());
        let subject = Subject::Column { column, key, keep, slots: RECORD_SLOTS };
        let named = Self::of(subject.clone(), &name, &format!("{name}_"));
        named.unwrap_or_else(|| Self { subject, ..Self::slotted_counters() })
    }

    /// The defaults of the package with these options.
    pub(super) fn defaults(&self) -> Self {
        match &self.subject {
            Subject::Named { .. } => Self::default(),
            Subject::Bounded => Self::bounded_counters(),
            Subject::Records { .. } => Self::slotted_counters(),
            Subject::Column { column, key, keep, .. } => Self::of_column(column.clone(), key.clone(), keep.clone()),
        }
    }

    pub(super) fn check(&self) -> Result<(), OptionsError> {
        let table = self.table.name();
        let why = match &self.subject {
            Subject::Column { column, key, keep, .. } => return self.check_column(column, key, &keep.0),
            Subject::Records { .. } => return Ok(()),
            _ if !self.collation().has_all_characters() => format!(
                "--collation {} cannot be used with counters: expected a collation of utf8mb4, such as utf8mb4_bin",
                self.collation()
            ),
            // MySQL adds _chk_1 to the name of the table for its CHECK.
            Subject::Bounded if table.len() > 58 => {
                format!("--table {table}: the name of a table of bounded_counters has at most 58 characters")
            }
            _ => return Ok(()),
        };
        Err(OptionsError(why))
    }

    fn check_column(&self, column: &TableColumn, key: &Key, keep: &[Ident]) -> Result<(), OptionsError> {
        // The names of columns are equal in any case of their letters.
        let is_column = |name: &Ident| name.name().to_lowercase() == column.column.name().to_lowercase();
        let unnamed = Self::slotted_counters();
        let name = column.column.name();
        let why = if key.0.is_empty() {
            format!("--column {column} needs --key with the primary key of the table, such as --key 'id BIGINT'")
        } else if keep.iter().any(is_column) {
            // A roll-up would assign it twice. MySQL keeps the old value, and the counts are lost.
            format!("the column '{name}' gets the counts: it cannot keep its value")
        } else if key.0.iter().any(|key| is_column(&key.name)) {
            format!("the column '{name}' identifies a row: it cannot get the counts")
        } else if self.defaults().table == unnamed.table
            && (self.table == unnamed.table || self.prefix == unnamed.prefix)
        {
            format!("--column {column}: the package cannot be named after it: use --table and --prefix")
        } else {
            return Ok(());
        };
        Err(OptionsError(why))
    }

    /// The words after `slotted generate` that render these options, quoted for a POSIX shell.
    pub fn arguments(&self) -> String {
        let default = self.defaults();
        let name = self.subject.package();
        let fixed = self.is_named() && !self.per_counter();
        let mut arguments = if fixed { "counters" } else { name }.to_owned();
        let mut say = |flag: &str, differs: bool, value: &str| {
            if differs {
                // After a space, a value that begins with a dash would be parsed as a flag.
                let between = if value.starts_with('-') { '=' } else { ' ' };
                arguments += &format!(" --{flag}{between}{}", shell_word(value));
            }
        };
        let (definer, column, key) = (self.definer.as_ref(), self.column(), Key(self.key().to_vec()));
        say("key", column.is_some() || self.key() != default.key(), &key.to_string());
        say("slots", self.subject.slots() != default.subject.slots(), &self.subject.slots().to_string());
        say("table", self.table != default.table, self.table.name());
        say("prefix", self.prefix != default.prefix, self.prefix.name());
        say("collation", self.collation() != self.default_collation(), &self.collation().to_string());
        say("security", self.security != default.security, &self.security.to_string());
        say("definer", definer.is_some(), &definer.map(Definer::plain).unwrap_or_default());
        say("server", self.family != default.family, self.family.slug());
        say("column", column.is_some(), &column.map(TableColumn::to_string).unwrap_or_default());
        say("keep", !self.keep().is_empty(), &Columns(self.keep().to_vec()).to_string());
        if self.cluster {
            arguments += " --cluster";
        }
        if !self.function {
            arguments += " --no-function";
        }
        arguments
    }

    /// Whether the counters have names.
    pub fn is_named(&self) -> bool {
        matches!(self.subject, Subject::Named { .. } | Subject::Bounded)
    }

    /// Whether the counters never fall below 0.
    pub fn is_bounded(&self) -> bool {
        self.subject == Subject::Bounded
    }

    /// The columns that identify a counter.
    pub fn key(&self) -> &[KeyColumn] {
        match &self.subject {
            Subject::Named { .. } | Subject::Bounded => KeyColumn::of_named(),
            Subject::Records { key, .. } | Subject::Column { key, .. } => &key.0,
        }
    }

    /// The column whose counts are in the slots.
    pub fn column(&self) -> Option<&TableColumn> {
        match &self.subject {
            Subject::Column { column, .. } => Some(column),
            _ => None,
        }
    }

    /// The columns that a roll-up does not change.
    pub fn keep(&self) -> &[Ident] {
        match &self.subject {
            Subject::Column { keep, .. } => &keep.0,
            _ => &[],
        }
    }

    /// Whether each counter has its own number of slots.
    pub fn per_counter(&self) -> bool {
        self.subject.slots() == Slots::PerCounter
    }

    /// The collation of names and text keys.
    pub fn collation(&self) -> Collation {
        self.collation.clone().unwrap_or_else(|| self.default_collation())
    }

    /// Names ignore case, and unlike with utf8mb4_general_ci, characters of four bytes differ. On MySQL, an increment costs a quarter
    /// less with utf8mb4_0900_ai_ci than with utf8mb4_unicode_520_ci; MariaDB 10.11 does not know it. Source: docs/dev/design-notes.md.
    pub(super) fn default_collation(&self) -> Collation {
        let name = match (self.is_named(), self.family) {
            (false, _) => "utf8mb4_bin",
            (true, Family::Mysql) => "utf8mb4_0900_ai_ci",
            (true, Family::Mariadb) => "utf8mb4_unicode_520_ci",
        };
        name.parse().expect("a collation")
    }

    /// Whether the SQL is for MariaDB.
    pub fn mariadb(&self) -> bool {
        self.family == Family::Mariadb
    }

    /// Whether maintenance changes one slot in each statement, because nodes write all the time.
    pub fn in_steps(&self) -> bool {
        self.cluster && !self.is_bounded()
    }

    /// Whether maintenance of a record has a transaction of its own.
    pub fn in_transactions(&self) -> bool {
        !self.is_named() && (!self.cluster || self.column().is_some())
    }

    /// The number of slots that `counter_setup` creates for NULL.
    pub fn setup_slots(&self) -> u32 {
        match self.subject.slots() {
            Slots::PerCounter => DEFAULT_SLOTS,
            Slots::Fixed(n) => n,
        }
    }
}

/// A word of a command line, quoted for a shell if necessary.
pub(crate) fn shell_word(word: &str) -> Cow<'_, str> {
    let quoter = shlex::Quoter::new().allow_nul(true);
    quoter.quote(word).expect("NUL is the only character that can be rejected, and it is allowed")
}
