//! The values of options, and their limits. The documentation of a value is its help on the command line.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

/// The maximum number of slots of a counter. A read sums all slots, so its time grows with their number.
pub const MAX_SLOTS: u32 = 10_000;

/// The default of `p_slots` in a roll-up: the slots after which a transaction ends.
pub const BATCH: u32 = 100;

/// The maximum number of entries of `p_amounts` in `add_many`. All their rows are locked until the transaction ends.
pub const ENTRIES_MAX: u32 = 10_000;

/// The maximum length of a counter's description, in characters.
pub const DESCRIPTION_MAX: u32 = 255;

/// The number of slots of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slots {
    /// Each counter has its own number, which each increment queries.
    PerCounter,
    /// Every counter has this number, which is written into the routines.
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
        slot_count(text).map(Self::Fixed).map_err(|error| format!("{error}, or 'per-counter'"))
    }
}

/// Parses a number of slots.
///
/// # Errors
/// The text is not an integer between 1 and [`MAX_SLOTS`].
pub fn slot_count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n) if (1..=MAX_SLOTS).contains(&n) => Ok(n),
        _ => Err(format!("expected a number of slots between 1 and {MAX_SLOTS}")),
    }
}

/// SQL SECURITY of the routines: the account whose privileges they run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Security {
    /// The account that created the routines. An application needs only EXECUTE.
    Definer,
    /// The account that calls. The routines continue to work when the account that created them is dropped.
    Invoker,
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sql().to_lowercase())
    }
}

impl Security {
    /// The keyword after SQL SECURITY.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Definer => "DEFINER",
            Self::Invoker => "INVOKER",
        }
    }
}

/// The family of servers. The SQL for one is rejected by the other before anything is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub enum Family {
    /// MySQL and its builds, from 8.0 on.
    Mysql,
    /// MariaDB, from 10.11.8 on.
    Mariadb,
}

impl Family {
    /// The value of the option, and the name of the folder under `generated/`.
    pub fn slug(self) -> &'static str {
        match self {
            Self::Mysql => "mysql",
            Self::Mariadb => "mariadb",
        }
    }
}

/// The name of the product.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mysql => "MySQL",
            Self::Mariadb => "MariaDB",
        })
    }
}

/// The character set that has the characters of all others.
const ALL_CHARACTERS: &str = "utf8mb4";

/// The collation by which counter names and text keys are compared. Its name begins with its character set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collation(String);

impl Collation {
    /// The character set.
    pub fn charset(&self) -> &str {
        self.0.split('_').next().unwrap_or_default()
    }

    /// Whether the character set has all characters.
    pub fn has_all_characters(&self) -> bool {
        self.charset() == ALL_CHARACTERS
    }

    /// The collation of a session and of arguments, whose character set has all characters.
    pub fn of_arguments(&self) -> &str {
        if self.has_all_characters() { &self.0 } else { "utf8mb4_bin" }
    }
}

impl fmt::Display for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Collation {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        // Source: MySQL manual, "Impermissible Client Character Sets".
        if ["ucs2_", "utf16_", "utf16le_", "utf32_"].iter().any(|charset| name.starts_with(charset)) {
            return Err(format!("no connection can have the character set of {name}: use one of utf8mb4"));
        }
        let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if plain && name.split_once('_').is_some_and(|(charset, rest)| !charset.is_empty() && !rest.is_empty()) {
            return Ok(Self(name.to_owned()));
        }
        Err("expected the name of a collation, such as utf8mb4_bin or latin1_swedish_ci".into())
    }
}
