//! The options of a package.

use std::fmt;
use std::str::FromStr;

use super::MAX_SLOTS;
use super::ident::{Ident, IdentError, Prefix};
use super::key::{Key, KeyColumn};
use super::rollup::{Interval, Rollup, RollupError};

/// The number of slots that `counter_setup(.., NULL, ..)` makes, as in the origin.
pub const DEFAULT_SLOTS: u32 = 5;

/// The number of slots that a counter of `slotted_counters` may grow to, as in seeds/000.
pub const RECORD_SLOTS: u32 = 100;

/// What a counter is found by, and how its slots come into being.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// By name; setup makes all slots.
    Counters,
    /// By the key columns of a record; a slot is made when it is first written.
    SlottedCounters,
}

impl Kind {
    /// What a package of the kind is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::SlottedCounters => "slotted_counters",
        }
    }
}

/// How many slots a counter has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slots {
    /// Each counter has its own number, looked up by each increment.
    PerCounter,
    /// Every counter has this many; saves the look-up.
    Fixed(u32),
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerCounter => f.write_str("per-counter"),
            Self::Fixed(n) => write!(f, "{n}"),
        }
    }
}

impl FromStr for Slots {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "per-counter" {
            return Ok(Self::PerCounter);
        }
        slot_count(text)
            .map(Self::Fixed)
            .map_err(|error| format!("{error}, or 'per-counter'"))
    }
}

/// Reads a number of slots.
///
/// # Errors
/// Anything that is not a whole number in 1..=[`MAX_SLOTS`].
pub fn slot_count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n) if (1..=MAX_SLOTS).contains(&n) => Ok(n),
        _ => Err(format!("a number of slots is 1 to {MAX_SLOTS}")),
    }
}

/// How an increment picks its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The connection's own slot: a transaction never holds two slots of one counter.
    Connection,
    /// A random slot for each increment, as in the origin.
    Random,
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connection => "connection",
            Self::Random => "random",
        })
    }
}

/// Whose privileges a routine runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// The creator's: an application needs EXECUTE and nothing else.
    Definer,
    /// The caller's: nothing breaks when the creator's account is gone.
    Invoker,
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sql().to_lowercase())
    }
}

impl Security {
    /// The word after SQL SECURITY.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Definer => "DEFINER",
            Self::Invoker => "INVOKER",
        }
    }
}

/// A collation of utf8mb4, which decides when two counter names are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collation(String);

impl fmt::Display for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Collation {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let plain = name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if plain && name.len() > "utf8mb4_".len() && name.starts_with("utf8mb4_") {
            return Ok(Self(name.to_owned()));
        }
        Err("a collation of utf8mb4 is needed, such as utf8mb4_general_ci or utf8mb4_bin".into())
    }
}

/// Everything that can be chosen when a package is rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which package.
    pub kind: Kind,
    /// What a counter is found by.
    pub key: Key,
    /// Slots per counter, or one number for all.
    pub slots: Slots,
    /// What NULL slots mean in `counter_setup`; None is [`DEFAULT_SLOTS`]. Not with fixed slots.
    pub default_slots: Option<u32>,
    /// How an increment picks its slot.
    pub pick: Pick,
    /// The table.
    pub table: Ident,
    /// What routine and view names begin with.
    pub prefix: Prefix,
    /// How names compare.
    pub collation: Collation,
    /// Whose privileges the routines run with.
    pub security: Security,
    /// Whether to make `counter_get`, which some servers refuse to unprivileged accounts (1419).
    pub function: bool,
    /// Where totals are written to; for slotted_counters.
    pub rollups: Vec<Rollup>,
    /// How often an EVENT calls each roll-up; None renders no EVENT.
    pub rollup_every: Option<Interval>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kind: Kind::Counters,
            key: Key(vec![KeyColumn::name()]),
            slots: Slots::PerCounter,
            default_slots: None,
            pick: Pick::Connection,
            table: "counters".parse().expect("an identifier"),
            prefix: "counter_".parse().expect("a prefix"),
            // utf8mb4_unicode_ci compares no better here, and on MySQL each row that is logged with such a key costs
            // 12 microseconds more (measured: an UPDATE takes 54 instead of 42).
            collation: "utf8mb4_general_ci".parse().expect("a collation"),
            security: Security::Definer,
            function: true,
            rollups: Vec::new(),
            rollup_every: None,
        }
    }
}

/// Why options cannot go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// A default for a number that is hard-coded.
    #[error("--default-slots {0} has no meaning with --slots {1}: every counter has {1}")]
    DefaultOfFixed(u32, u32),
    /// No number of slots is kept per record.
    #[error(
        "--slots per-counter has no meaning for slotted_counters: a record has no number of slots of its own"
    )]
    PerRecord,
    /// The package counters has the key counter_name.
    #[error(
        "--key has no meaning for counters, which are found by name: choose the package slotted_counters"
    )]
    KeyOfNamed,
    /// The package counters has no records.
    #[error("--rollup has no meaning for counters: choose the package slotted_counters")]
    RollupOfNamed,
    /// There is nothing that an EVENT could call.
    #[error("--rollup-every has no meaning without --rollup")]
    EveryOfNothing,
    /// A roll-up that does not go with the key.
    #[error("--rollup {0}: {1}")]
    Rollup(Box<Rollup>, RollupError),
    /// Two roll-ups would overwrite each other.
    #[error("--rollup {0}: another --rollup writes the same column")]
    RollupTwice(Box<Rollup>),
    /// The procedure of a roll-up would get a name that no server takes.
    #[error("--rollup names a procedure, {0}: choose a shorter --prefix")]
    RollupName(IdentError),
    /// A routine or view would get a name that no server takes.
    #[error("--prefix: {0}")]
    Prefix(IdentError),
    /// Table and view would have the same name.
    #[error("--table {0} is also the name of a view of the package: choose another --table or --prefix")]
    TableIsView(String),
}

impl Options {
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

    pub(super) fn check(&self) -> Result<(), OptionsError> {
        if self.rollups.is_empty() && self.rollup_every.is_some() {
            return Err(OptionsError::EveryOfNothing);
        }
        for (at, rollup) in self.rollups.iter().enumerate() {
            if self.kind == Kind::Counters {
                return Err(OptionsError::RollupOfNamed);
            }
            rollup
                .record(&self.key)
                .map_err(|error| OptionsError::Rollup(Box::new(rollup.clone()), error))?;
            if self.rollups[..at]
                .iter()
                .any(|other| other.suffix() == rollup.suffix())
            {
                return Err(OptionsError::RollupTwice(Box::new(rollup.clone())));
            }
        }
        match (self.kind, self.slots, self.default_slots) {
            (Kind::SlottedCounters, Slots::PerCounter, _) => Err(OptionsError::PerRecord),
            (Kind::Counters, ..) if self.key.0 != [KeyColumn::name()] => Err(OptionsError::KeyOfNamed),
            (_, Slots::Fixed(n), Some(default)) => Err(OptionsError::DefaultOfFixed(default, n)),
            _ => Ok(()),
        }
    }

    /// Whether each counter has its own number of slots.
    pub fn per_counter(&self) -> bool {
        self.slots == Slots::PerCounter
    }

    /// Whether each increment selects a random slot.
    pub fn random(&self) -> bool {
        self.pick == Pick::Random
    }

    /// What `counter_setup` makes when the number of slots is NULL.
    pub fn setup_slots(&self) -> u32 {
        match self.slots {
            Slots::PerCounter => self.default_slots.unwrap_or(DEFAULT_SLOTS),
            Slots::Fixed(n) => n,
        }
    }

    /// The name of the package and the arguments of `slotted generate` that give these options.
    pub fn arguments(&self) -> String {
        let (package, default) = match self.kind {
            Kind::Counters => ("counters", Self::default()),
            Kind::SlottedCounters => ("slotted_counters", Self::slotted_counters()),
        };
        let mut arguments = Vec::new();
        let mut say = |flag: &str, value: &str| {
            // A value that begins with a dash would be taken for a flag.
            let between = if value.starts_with('-') { '=' } else { ' ' };
            arguments.push(format!(" --{flag}{between}{}", shell_word(value)));
        };
        if self.key != default.key {
            say("key", &self.key.to_string());
        }
        if self.slots != default.slots {
            say("slots", &self.slots.to_string());
        }
        if let Some(n) = self.default_slots {
            say("default-slots", &n.to_string());
        }
        if self.pick != default.pick {
            say("pick", &self.pick.to_string());
        }
        if self.table != default.table {
            say("table", self.table.name());
        }
        if self.prefix != default.prefix {
            say("prefix", self.prefix.name());
        }
        if self.collation != default.collation {
            say("collation", &self.collation.to_string());
        }
        if self.security != default.security {
            say("security", &self.security.to_string());
        }
        for rollup in &self.rollups {
            say("rollup", &rollup.to_string());
        }
        if let Some(interval) = &self.rollup_every {
            say("rollup-every", &interval.to_string());
        }
        if !self.function {
            arguments.push(" --no-function".into());
        }
        format!("{package}{}", arguments.concat())
    }
}

/// A word as a POSIX shell reads it back.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
