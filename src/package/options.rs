//! The options of a package.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

use super::MAX_SLOTS;
use super::ident::{Definer, IDENT_MAX, Ident, IdentError, Prefix, Roles};
use super::key::{Key, KeyColumn, KeyType};
use super::rollup::{Interval, Rollup, RollupError, TableColumn, list};

/// The number of slots that `counter_setup` creates for NULL, as in the article of 2012.
pub const DEFAULT_SLOTS: u32 = 5;

/// The number of slots of a record: a prime number, and more than most servers have connections. Source: the measurement in
/// docs/design-notes.md, "The default number of slots".
pub const RECORD_SLOTS: u32 = 521;

// The enums of this file are also the values of options on the command line, and their documentation is the help.

/// The package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Kind {
    /// Counters with a name. counter_setup creates their slots.
    Counters,
    /// Counters of records, identified by key columns. The first increment of a slot inserts the slot.
    SlottedCounters,
}

impl Kind {
    /// The name of the package.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::SlottedCounters => "slotted_counters",
        }
    }
}

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
        slot_count(text)
            .map(Self::Fixed)
            .map_err(|error| format!("{error}, or 'per-counter'"))
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

/// The slot selection of an increment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pick {
    /// A connection increments the same slot of a counter in every call, so transactions that increment one counter
    /// several times cannot deadlock.
    Connection,
    /// Each increment selects a random slot.
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

/// The number of a node for its slots, on a cluster whose nodes have no auto_increment_increment of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// The number of nodes that accept writes.
    pub count: u32,
    /// The global variable whose value modulo `count` is different on each node.
    pub variable: Variable,
}

impl Nodes {
    /// The nodes in the arguments of a package, as in its view counter_package. None without `--nodes`.
    pub fn of_arguments(arguments: &str) -> Option<Self> {
        // A name in quotes can contain the flag.
        let words = shlex::split(arguments)?;
        let value = |flag: &str| {
            let mut words = words.iter();
            words.find(|word| *word == flag)?;
            words.next()
        };
        Some(Self {
            count: value("--nodes")?.parse().ok()?,
            variable: value("--node-variable")?.parse().ok()?,
        })
    }
}

/// The name of a system variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable(String);

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Variable {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.is_empty() && name.len() <= IDENT_MAX && name.chars().all(plain) {
            return Ok(Self(name.to_ascii_lowercase()));
        }
        Err("expected the name of a system variable, such as server_id".into())
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

/// The servers that the SQL is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Servers {
    /// MySQL and MariaDB. What only one of them executes is in executable comments.
    Both,
    /// MySQL only. The SQL has no statement of MariaDB.
    Mysql,
    /// MariaDB only, from 10.11.8 on. The SQL has no executable comment, which some tools remove.
    Mariadb,
}

impl Servers {
    /// The words after CREATE that replace an existing routine or event, which only MariaDB supports.
    pub fn or_replace(self) -> &'static str {
        match self {
            Self::Both => " /*M!100103 OR REPLACE */",
            Self::Mysql => "",
            Self::Mariadb => " OR REPLACE",
        }
    }

    /// The table of a locking clause. MySQL requires it if the statement also reads a table function (3569). MariaDB does
    /// not support it.
    pub fn of(self, table: &str) -> String {
        match self {
            Self::Both => format!(" /*!80000 OF {table} */"),
            Self::Mysql => format!(" OF {table}"),
            Self::Mariadb => String::new(),
        }
    }
}

impl Servers {
    /// The locking clause for shared locks on the rows of a table. The same as for [`Servers::of`].
    pub fn share(self, table: &str) -> String {
        match self {
            Self::Both => format!("/*!80000 FOR SHARE OF {table} */ /*M!100000 LOCK IN SHARE MODE */"),
            Self::Mysql => format!("FOR SHARE OF {table}"),
            Self::Mariadb => "LOCK IN SHARE MODE".to_owned(),
        }
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Both => "both",
            Self::Mysql => "mysql",
            Self::Mariadb => "mariadb",
        })
    }
}

/// The character set that has the characters of all others.
const ALL_CHARACTERS: &str = "utf8mb4";

/// The collation by which counter names and text keys are compared. Its name begins with its character set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collation(String);

impl Collation {
    /// Whether comparisons distinguish trailing spaces (NO PAD).
    pub fn keeps_spaces(&self) -> bool {
        self.0.contains("_0900_") || self.0.contains("nopad")
    }

    /// Whether two texts may be equal, as far as that is known without a server: their letters differ in case only, if the
    /// collation does not distinguish it.
    pub fn may_equal(&self, one: &str, other: &str) -> bool {
        let compared = |text: &str| {
            let text = if self.keeps_spaces() {
                text
            } else {
                text.trim_end_matches(' ')
            };
            if self.0.ends_with("_bin") || self.0.ends_with("_cs") {
                text.to_owned()
            } else {
                text.to_lowercase()
            }
        };
        compared(one) == compared(other)
    }

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
        if self.has_all_characters() {
            &self.0
        } else {
            "utf8mb4_bin"
        }
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
        let plain = name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if plain
            && name
                .split_once('_')
                .is_some_and(|(charset, rest)| !charset.is_empty() && !rest.is_empty())
        {
            return Ok(Self(name.to_owned()));
        }
        Err("expected the name of a collation, such as utf8mb4_general_ci or latin1_swedish_ci".into())
    }
}

/// The options that a package is rendered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The package.
    pub kind: Kind,
    /// Whether no total falls below 0: the table rejects a negative slot.
    pub bounded: bool,
    /// The columns that identify a counter.
    pub key: Key,
    /// Per-counter slots, or a fixed number.
    pub slots: Slots,
    /// The number of slots that `counter_setup` creates for NULL. None is [`DEFAULT_SLOTS`]. Must be None with fixed slots.
    pub default_slots: Option<u32>,
    /// The slot selection.
    pub pick: Pick,
    /// How a node of a cluster is told from the others. None reads auto_increment_increment and auto_increment_offset.
    pub nodes: Option<Nodes>,
    /// The name of the table.
    pub table: Ident,
    /// The beginning of routine and view names.
    pub prefix: Prefix,
    /// The collation of names and text keys.
    pub collation: Collation,
    /// SQL SECURITY of the routines.
    pub security: Security,
    /// The DEFINER of the routines, views and events. None is the account that sources the scripts.
    pub definer: Option<Definer>,
    /// The names of the roles of `grants.sql`. None derives them from the prefix.
    pub roles: Option<Roles>,
    /// The servers that the SQL is for.
    pub servers: Servers,
    /// Whether the function `counter_get` is created. Some servers reject it from unprivileged accounts (1418, 1419).
    pub function: bool,
    /// The columns that counts move into, only for slotted_counters.
    pub rollups: Vec<Rollup>,
    /// The interval of the EVENT that calls the roll-ups. None renders no EVENT.
    pub rollup_every: Option<Interval>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kind: Kind::Counters,
            bounded: false,
            key: Key(vec![KeyColumn::name()]),
            slots: Slots::PerCounter,
            default_slots: None,
            pick: Pick::Connection,
            nodes: None,
            table: "counters".parse().expect("an identifier"),
            prefix: "counter_".parse().expect("a prefix"),
            // utf8mb4_general_ci, because an UPDATE by a key of utf8mb4_unicode_ci takes more time on MySQL.
            collation: "utf8mb4_general_ci".parse().expect("a collation"),
            security: Security::Definer,
            definer: None,
            roles: None,
            servers: Servers::Both,
            function: true,
            rollups: Vec::new(),
            rollup_every: None,
        }
    }
}

/// The reason why options cannot be combined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// A default number of slots together with a fixed number.
    #[error("--default-slots {0} cannot be used with --slots {1}: every counter has {1} slots")]
    DefaultOfFixed(u32, u32),
    /// Random slots on nodes that are to have slots of their own.
    #[error("--nodes cannot be used with --pick random: a random slot can be the slot of another node")]
    RandomOfNodes,
    /// Fewer slots than nodes.
    #[error("--nodes {1} needs at least {1} slots, not {0}: each node needs a slot of its own")]
    SlotsOfNodes(u32, u32),
    /// Random slots of bounded counters.
    #[error(
        "--pick random cannot be used with --bounded: the slot of a connection has its share of the total"
    )]
    RandomOfBounded,
    /// Names in a character set that lacks characters.
    #[error(
        "--collation {0} cannot be used with counters: expected a collation of utf8mb4, such as utf8mb4_bin"
    )]
    CollationOfNamed(Collation),
    /// A fixed number of slots of named bounded counters.
    #[error("--slots {0} cannot be used with counters --bounded: each counter has its own number of slots")]
    FixedOfBounded(u32),
    /// A roll-up of bounded counters.
    #[error(
        "--column and --rollup cannot be used with --bounded: the amount that can be taken is in the slots, not in a column"
    )]
    RollupOfBounded,
    /// Per-counter slots for records, which do not store a number of slots.
    #[error(
        "--slots per-counter cannot be used with slotted_counters: a record has no number of slots of its own"
    )]
    PerRecord,
    /// A key for the package counters, whose key is counter_name.
    #[error(
        "--key cannot be used with counters, whose key is counter_name: use the package slotted_counters"
    )]
    KeyOfNamed,
    /// A roll-up of the package counters, which has no records.
    #[error("--column and --rollup cannot be used with counters: use the package slotted_counters")]
    RollupOfNamed,
    /// An EVENT without a roll-up to call.
    #[error("--rollup-every cannot be used without --column or --rollup")]
    EveryOfNothing,
    /// A roll-up that does not match the key.
    #[error("--rollup {0}: {1}")]
    Rollup(Box<Rollup>, RollupError),
    /// Two roll-ups write the same column.
    #[error("--rollup {0}: another --rollup writes the same column")]
    RollupTwice(Box<Rollup>),
    /// Two roll-ups have the same records, whose totals would have the counts of both columns.
    #[error(
        "--rollup {0}: the records of --rollup {1} can be the same: give them values that differ in one column of the key"
    )]
    RollupOverlaps(Box<Rollup>, Box<Rollup>),
    /// The names of a table and its column are too long for those of a package.
    #[error("--column {0}: the package cannot be named after it: {1}. Use --table and --prefix")]
    ColumnName(TableColumn, IdentError),
    /// A column of a table without the key of this table.
    #[error("--column {0} needs --key with the primary key of the table, such as --key 'id BIGINT'")]
    ColumnWithoutKey(TableColumn),
    /// The name of a routine or view is not an identifier.
    #[error("--prefix: {0}")]
    Prefix(IdentError),
    /// The name of a routine ends the executable comment that it is in.
    #[error(
        "the name {0} contains */, which ends an executable comment: use --server mysql or --server mariadb"
    )]
    EndOfComment(Ident),
    /// A type that MySQL does not have.
    #[error(
        "the key column '{0}' cannot be UUID, which MySQL does not have: use BINARY(16), or --server mariadb"
    )]
    UuidOnMysql(String),
    /// The table and a view have the same name.
    #[error("--table {0} is also the name of a view of the package: use another --table or --prefix")]
    TableIsView(String),
}

impl Options {
    /// The defaults of a package.
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::Counters => Self::default(),
            Kind::SlottedCounters => Self::slotted_counters(),
        }
    }

    /// The defaults of a package of bounded counters.
    pub fn bounded(kind: Kind) -> Self {
        let default = Self::of(kind);
        Self {
            bounded: true,
            table: Ident::new(format!("bounded_{}", default.table.name())).expect("an identifier"),
            prefix: format!("bounded_{}", default.prefix.name())
                .parse()
                .expect("a prefix"),
            ..default
        }
    }

    /// The column that all counts move into, if the key of the package is that of its table.
    pub fn column(&self) -> Option<TableColumn> {
        match &self.rollups[..] {
            [rollup] => rollup.column(&self.key),
            _ => None,
        }
    }

    /// Two roll-ups that have the same records. `equal` compares two texts of the key.
    pub fn overlap(&self, mut equal: impl FnMut(&str, &str) -> bool) -> Option<(&Rollup, &Rollup)> {
        let pairs = self.rollups.iter().enumerate();
        pairs
            .flat_map(|(at, other)| self.rollups[..at].iter().map(move |one| (one, other)))
            .find(|(one, other)| one.overlaps(other, &self.key, &mut equal))
    }

    /// The defaults of a package whose counts move into a column.
    ///
    /// # Errors
    /// The names of the table and the column are too long together.
    pub fn of_column(column: &TableColumn) -> Result<Self, IdentError> {
        let name = format!("{}_{}", column.table.name(), column.column.name());
        Ok(Self {
            prefix: format!("{name}_").parse()?,
            table: Ident::new(name)?,
            ..Self::slotted_counters()
        })
    }

    /// The defaults of the package with these options.
    fn defaults(&self) -> Self {
        if let Some(of_column) = self.column().and_then(|column| Self::of_column(&column).ok()) {
            of_column
        } else if self.bounded {
            Self::bounded(self.kind)
        } else {
            Self::of(self.kind)
        }
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

    pub(super) fn check(&self) -> Result<(), OptionsError> {
        let uuid = self.key.0.iter().find(|column| column.kind == KeyType::Uuid);
        if let Some(column) = uuid.filter(|_| self.servers != Servers::Mariadb) {
            return Err(OptionsError::UuidOnMysql(column.name.name().to_owned()));
        }
        if self.rollups.is_empty() && self.rollup_every.is_some() {
            return Err(OptionsError::EveryOfNothing);
        }
        for (at, rollup) in self.rollups.iter().enumerate() {
            if self.kind == Kind::Counters {
                return Err(OptionsError::RollupOfNamed);
            }
            if self.bounded {
                return Err(OptionsError::RollupOfBounded);
            }
            if rollup.ids.is_empty() {
                let (table, column) = (rollup.table.clone(), rollup.target.clone());
                return Err(OptionsError::ColumnWithoutKey(TableColumn { table, column }));
            }
            rollup
                .records(&self.key)
                .map_err(|error| OptionsError::Rollup(Box::new(rollup.clone()), error))?;
            if self.rollups[..at]
                .iter()
                .any(|other| (&other.table, &other.target) == (&rollup.table, &rollup.target))
            {
                return Err(OptionsError::RollupTwice(Box::new(rollup.clone())));
            }
        }
        if let Some((one, other)) = self.overlap(|one, other| self.collation.may_equal(one, other)) {
            return Err(OptionsError::RollupOverlaps(
                Box::new(other.clone()),
                Box::new(one.clone()),
            ));
        }
        let unnamed = Self::slotted_counters();
        if let Some(column) = self.column()
            && (self.table == unnamed.table || self.prefix == unnamed.prefix)
            && let Err(error) = Self::of_column(&column)
        {
            return Err(OptionsError::ColumnName(column, error));
        }
        if self.kind == Kind::Counters && !self.collation.has_all_characters() {
            return Err(OptionsError::CollationOfNamed(self.collation.clone()));
        }
        if self.bounded && self.random() {
            return Err(OptionsError::RandomOfBounded);
        }
        if let Some(nodes) = &self.nodes {
            if self.random() {
                return Err(OptionsError::RandomOfNodes);
            }
            if self.setup_slots() < nodes.count {
                return Err(OptionsError::SlotsOfNodes(self.setup_slots(), nodes.count));
            }
        }
        match (self.kind, self.slots, self.default_slots) {
            (Kind::SlottedCounters, Slots::PerCounter, _) => Err(OptionsError::PerRecord),
            (Kind::Counters, ..) if self.key.0 != [KeyColumn::name()] => Err(OptionsError::KeyOfNamed),
            (Kind::Counters, Slots::Fixed(n), _) if self.bounded => Err(OptionsError::FixedOfBounded(n)),
            (_, Slots::Fixed(n), Some(default)) => Err(OptionsError::DefaultOfFixed(default, n)),
            _ => Ok(()),
        }
    }

    /// Whether each counter has its own number of slots.
    pub fn per_counter(&self) -> bool {
        self.slots == Slots::PerCounter
    }

    /// Whether the server can be a node of a cluster, on which maintenance of unbounded counters changes one slot in each statement.
    pub fn steps(&self) -> bool {
        !self.bounded && self.nodes.as_ref().is_none_or(|nodes| nodes.count > 1)
    }

    /// The number of nodes of the cluster, as an expression. It is 1 on a single server.
    pub(crate) fn node_count(&self) -> String {
        match &self.nodes {
            Some(nodes) => nodes.count.to_string(),
            None => "@@GLOBAL.auto_increment_increment".into(),
        }
    }

    /// Whether each increment selects a random slot.
    pub fn random(&self) -> bool {
        self.pick == Pick::Random
    }

    /// The number of slots that `counter_setup` creates for NULL.
    pub fn setup_slots(&self) -> u32 {
        match self.slots {
            Slots::PerCounter => self.default_slots.unwrap_or(DEFAULT_SLOTS),
            Slots::Fixed(n) => n,
        }
    }

    /// The arguments of `slotted generate` that render these options, quoted for a POSIX shell.
    pub fn arguments(&self) -> String {
        let default = self.defaults();
        let mut arguments = Vec::new();
        if self.bounded {
            arguments.push(" --bounded".to_owned());
        }
        let mut say = |flag: &str, value: &str| {
            // After a space, a value that begins with a dash would be parsed as a flag.
            let between = if value.starts_with('-') { '=' } else { ' ' };
            arguments.push(format!(" --{flag}{between}{}", shell_word(value)));
        };
        let column = self.column();
        if self.key != default.key || column.is_some() {
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
        if let Some(nodes) = &self.nodes {
            say("nodes", &nodes.count.to_string());
            say("node-variable", &nodes.variable.to_string());
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
        if let Some(definer) = &self.definer {
            say("definer", &definer.plain());
        }
        if let Some(roles) = &self.roles {
            say("roles", &roles.to_string());
        }
        if self.servers != default.servers {
            say("server", &self.servers.to_string());
        }
        match column {
            Some(column) => {
                say("column", &column.to_string());
                if !self.rollups[0].keep.is_empty() {
                    say("keep", &list(&self.rollups[0].keep));
                }
            }
            None => {
                for rollup in &self.rollups {
                    say("rollup", &rollup.to_string());
                }
            }
        }
        if let Some(interval) = &self.rollup_every {
            say("rollup-every", &interval.to_string());
        }
        if !self.function {
            arguments.push(" --no-function".into());
        }
        format!("{}{}", self.kind.name(), arguments.concat())
    }
}

/// A word of a command line, quoted for a shell if necessary.
pub(crate) fn shell_word(word: &str) -> Cow<'_, str> {
    let quoter = shlex::Quoter::new().allow_nul(true);
    quoter
        .quote(word)
        .expect("NUL is the only character that can be rejected, and it is allowed")
}
