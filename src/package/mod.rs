//! The model of a package: options, names, errors and the list of objects. Pure: no I/O, no clock.

mod column;
mod error;
mod ident;
mod key;
mod options;
mod values;
mod words;

pub use column::{ColumnError, Columns, TableColumn};
pub use error::{Detail, MESSAGE_MAX, PackageError, Signal, Speaker, signal};
pub use ident::{Definer, IDENT_MAX, Ident, IdentError, Prefix, Roles, SqlStr, USER_MAX};
pub(crate) use ident::{literal, quoted};
pub use key::{Key, KeyColumn, KeyError, KeyType};
pub use options::{DEFAULT_SLOTS, FIXED_SLOTS, Options, OptionsError, RECORD_SLOTS};
pub use values::{Collation, Kind, Pick, Security, Servers, Slots, slot_count};
pub use words::Given;
pub(crate) use words::shell_word;

/// The maximum number of slots of a counter. A read sums all slots, so its time grows with their number.
pub const MAX_SLOTS: u32 = 10_000;

/// The maximum length of a counter's name, in characters.
pub const NAME_MAX: u32 = 100;

/// The length of the parameter `p_counter_name`, in characters. The parameter is wider than the column, because a server
/// without strict mode truncates an argument to the length of the parameter. With the wider parameter the routine can
/// detect and reject a name that is too long.
pub const NAME_PARAMETER: u32 = 255;

/// The maximum of `p_seconds` in `compact_idle`: a day, in seconds.
pub const SECONDS_MAX: u32 = 86_400;

/// The maximum of `p_records`: the records that a call of `compact_idle` compacts, or a batch of a roll-up has.
pub const RECORDS_MAX: u32 = 10_000;

/// The default of `p_records` in a roll-up: the records of a batch.
pub const BATCH: u32 = 1_000;

/// The maximum number of entries of `p_amounts` in `add_many`. All their rows are locked until the transaction ends.
pub const ENTRIES_MAX: u32 = 10_000;

/// The maximum length of a counter's description, in characters.
pub const DESCRIPTION_MAX: u32 = 255;

/// The length of the parameter `p_description` of bounded counters, which is wider than the column for the same reason as
/// `p_counter_name`.
pub const DESCRIPTION_PARAMETER: u32 = 1_000;

/// A routine of the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Routine {
    /// Signals an error. Private, as the next ones up to `Move`: only routines of the package call them.
    Fail,
    /// Rejects a name or a key that is not valid.
    Check,
    /// Rejects a number of slots that is not valid.
    CheckSlots,
    /// Rejects a counter that does not exist.
    Unknown,
    /// Adds to another slot than that of the connection.
    AddElsewhere,
    /// Creates the first slot of a record.
    First,
    /// Takes from other slots than that of the connection.
    TakeElsewhere,
    /// Decides whether a total is not enough.
    Reject,
    /// Says which counter does not exist.
    AddManyUnknown,
    /// Rejects a deletion that was interrupted.
    DeleteKilled,
    /// Whether maintenance changes one slot in each statement.
    InSteps,
    /// Changes one slot in each statement.
    Steps,
    /// Moves counts into a column of a parent table. A package has one for each roll-up.
    Move,
    /// Creates a counter with all its slots.
    Setup,
    /// Adds 1 to one slot.
    Increment,
    /// Adds any amount to one slot.
    Add,
    /// Adds amounts to many counters.
    AddMany,
    /// Takes an amount, if the counter has it.
    Take,
    /// Sets the total.
    Reset,
    /// Changes the number of slots.
    Resize,
    /// Folds all slots of a record into one row.
    Compact,
    /// Compacts the records whose totals do not change.
    CompactIdle,
    /// Moves the counts of all records into columns of parent tables.
    Rollup,
    /// Deletes a counter.
    Delete,
    /// A second name for [`Routine::Delete`], which the article of 2012 uses.
    Drop,
    /// Returns the total.
    Get,
}

/// Who calls a routine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// An application, and administrators.
    Application,
    /// Administrators.
    Admin,
    /// A routine that applications call.
    OfApplication,
    /// Another routine of the package.
    OfAdmin,
}

/// All routines in the order in which scripts create them, each with the end of its name and its callers.
const ROUTINES: [(Routine, &str, Caller); 26] = {
    use Caller::{Admin, Application, OfAdmin, OfApplication};
    use Routine as R;
    [
        (R::Fail, "fail", OfApplication),
        (R::Check, "check", OfApplication),
        (R::CheckSlots, "check_slots", OfAdmin),
        (R::Unknown, "unknown", OfApplication),
        (R::AddElsewhere, "add_elsewhere", OfApplication),
        (R::First, "first", OfAdmin),
        (R::TakeElsewhere, "take_elsewhere", OfApplication),
        (R::Reject, "reject", OfApplication),
        (R::AddManyUnknown, "add_many_unknown", OfApplication),
        (R::DeleteKilled, "delete_killed", OfAdmin),
        (R::InSteps, "in_steps", OfAdmin),
        (R::Steps, "steps", OfAdmin),
        (R::Move, "move", OfAdmin),
        (R::Setup, "setup", Admin),
        (R::Increment, "increment", Application),
        (R::Add, "add", Application),
        (R::AddMany, "add_many", Application),
        (R::Take, "take", Application),
        (R::Reset, "reset", Admin),
        (R::Resize, "resize", Admin),
        (R::Compact, "compact", Admin),
        (R::CompactIdle, "compact_idle", Admin),
        (R::Rollup, "rollup", Admin),
        (R::Delete, "delete", Admin),
        (R::Drop, "drop", Admin),
        (R::Get, "get", Application),
    ]
};

impl Routine {
    /// All routines, in the order in which scripts create them.
    pub fn all() -> impl Iterator<Item = Self> {
        ROUTINES.into_iter().map(|(routine, ..)| routine)
    }

    fn spec(self) -> (&'static str, Caller) {
        let spec = ROUTINES.iter().find(|(routine, ..)| *routine == self);
        let (_, suffix, caller) = spec.expect("every routine is in the table");
        (suffix, *caller)
    }

    /// The end of the routine's name, after the prefix.
    pub fn suffix(self) -> &'static str {
        self.spec().0
    }

    /// Whether only routines of the package call it. Its name begins with an underscore.
    pub fn is_private(self) -> bool {
        matches!(self.spec().1, Caller::OfApplication | Caller::OfAdmin)
    }

    /// Whether a package has it. None if no package of this kind has it.
    fn is_in(self, options: &Options) -> Option<bool> {
        let (named, bounded) = (options.kind == Kind::Counters, options.bounded);
        let (of_kind, included) = match self {
            Self::Fail
            | Self::Check
            | Self::Increment
            | Self::Add
            | Self::AddMany
            | Self::Reset
            | Self::Delete => (true, true),
            Self::CheckSlots
            | Self::Unknown
            | Self::AddElsewhere
            | Self::AddManyUnknown
            | Self::Resize
            | Self::Drop => (named, true),
            Self::First | Self::DeleteKilled | Self::Compact => (!named, true),
            Self::InSteps | Self::Steps => (!bounded, true),
            Self::Reject | Self::TakeElsewhere | Self::Take => (bounded, true),
            Self::Setup => (named || bounded, true),
            // A roll-up deletes the slots that have stayed 0.
            Self::CompactIdle => (!named, options.column.is_none()),
            Self::Rollup | Self::Move => (!named && !bounded, options.column.is_some()),
            Self::Get => (true, options.function),
        };
        of_kind.then_some(included)
    }

    /// The errors that the routine signals, in the order of their numbers. A private routine signals those of its callers.
    pub fn errors(self, options: &Options) -> Vec<PackageError> {
        use PackageError as E;
        let (named, bounded) = (options.kind == Kind::Counters, options.bounded);
        let (per_counter, of_column) = (options.per_counter(), options.column.is_some());
        // These have no argument that identifies a counter.
        let keyed = !matches!(self, Self::AddMany | Self::CompactIdle | Self::Rollup);
        let misfit = options.key.0.iter().any(|column| column.kind.is_limited());
        let is = |routines: &[Self]| routines.contains(&self);
        let errors = [
            (E::NameEmpty, named && keyed),
            (E::NameTooLong, named && keyed),
            (E::UnknownCounter, named && !is(&[Self::Setup])),
            (E::CounterExists, is(&[Self::Setup])),
            (
                E::SlotsOutOfRange,
                named && per_counter && is(&[Self::Setup, Self::Resize]),
            ),
            (
                E::SlotsFixed,
                named && !per_counter && is(&[Self::Setup, Self::Resize]),
            ),
            (E::AmountNull, is(&[Self::Add])),
            (
                E::TotalOutOfRange,
                is(&[Self::Get, Self::Resize]) || is(&[Self::Compact]) && !of_column,
            ),
            (E::KeyNull, !named && keyed),
            (E::KeyMisfit, !named && keyed && misfit),
            (E::SecondsOutOfRange, is(&[Self::CompactIdle])),
            (E::RecordsOutOfRange, is(&[Self::CompactIdle, Self::Rollup])),
            (
                E::TotalRejected,
                is(&[Self::Rollup]) || is(&[Self::Compact]) && of_column,
            ),
            (E::NotArray, is(&[Self::AddMany])),
            (E::EntryMisfit, is(&[Self::AddMany])),
            (E::NotEnough, is(&[Self::Take]) || bounded && is(&[Self::Add])),
            (E::AmountNotPositive, is(&[Self::Take])),
            (
                E::SlotsOfNodes,
                named && (is(&[Self::Setup]) || per_counter && is(&[Self::Resize])),
            ),
            (E::ValueNegative, bounded && is(&[Self::Setup, Self::Reset])),
            (E::EntryNegative, bounded && is(&[Self::AddMany])),
        ];
        let signalled = errors
            .into_iter()
            .filter(|(_, signals)| *signals && !self.is_private());
        signalled.map(|(error, _)| error).collect()
    }

    /// Whether the role of applications calls the routine. The role of administrators calls all of them. An application deletes the counts
    /// of its rows, with SQL SECURITY INVOKER by a trigger: otherwise it would need DELETE on the table of the slots.
    pub fn of_applications(self, options: &Options) -> bool {
        match self {
            Self::Delete => options.column.is_some() && options.security != Security::Invoker,
            _ => self.spec().1 == Caller::Application,
        }
    }

    /// The keyword after CREATE and DROP: PROCEDURE or FUNCTION.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Get => "FUNCTION",
            _ => "PROCEDURE",
        }
    }
}

/// A package: its options and the names of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The options that the package is rendered with.
    pub options: Options,
    /// The name of the view with a row per counter.
    pub totals: Ident,
    /// The name of the view with the version and the options.
    pub package: Ident,
    names: Vec<(Routine, Ident)>,
    absent: Vec<(Routine, Ident)>,
}

impl Package {
    /// The package whose options [`Options::arguments`] has written, as `counters --slots 20`.
    ///
    /// # Errors
    /// The text is not the words of a package and its options, or the options contradict each other.
    pub fn parse(arguments: &str) -> Result<Self, OptionsError> {
        Self::new(Options::parse(arguments)?)
    }

    /// Names every object of a package with these options.
    ///
    /// # Errors
    /// The options contradict each other, or a name is not an identifier.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        options.check()?;
        let name = |suffix: &str| options.prefix.join(suffix).map_err(OptionsError::Prefix);
        let (mut names, mut absent) = (Vec::new(), Vec::new());
        for (routine, suffix, _) in ROUTINES {
            let Some(included) = routine.is_in(&options) else {
                continue;
            };
            let list = if included { &mut names } else { &mut absent };
            let private = if routine.is_private() { "_" } else { "" };
            let name = format!("{private}{}{suffix}", options.prefix.name());
            list.push((routine, Ident::new(name).map_err(OptionsError::Prefix)?));
        }
        let (totals, package) = (name("totals")?, name("package")?);
        // Views and tables share a name space. Under lower_case_table_names = 1 or 2 their names ignore case.
        for view in [&totals, &package] {
            if view.name().to_lowercase() == options.table.name().to_lowercase() {
                return Err(OptionsError::TableIsView(view.name().to_owned()));
            }
        }
        Ok(Self {
            options,
            totals,
            package,
            names,
            absent,
        })
    }

    /// Whether a routine is the roll-up or serves it. A package without a column has none.
    pub fn serves_rollup(&self, routine: Routine) -> bool {
        self.options.column.is_some() && (routine == Routine::Rollup || routine.is_private())
    }

    /// The routines of the package with their names, in the order of creation.
    pub fn routines(&self) -> impl Iterator<Item = (Routine, &Ident)> {
        self.names.iter().map(|(routine, name)| (*routine, name))
    }

    /// The routines that a role needs EXECUTE on. With SQL SECURITY INVOKER, the caller of a routine also calls the private ones.
    pub fn granted(&self, admin: bool) -> impl Iterator<Item = (Routine, &Ident)> {
        let invoker = self.options.security == Security::Invoker;
        self.routines().filter(move |(routine, _)| {
            if routine.is_private() {
                invoker && (admin || routine.spec().1 == Caller::OfApplication)
            } else {
                admin || routine.of_applications(&self.options)
            }
        })
    }

    /// The routines that the package does not have, but that a package of this kind and prefix has with other options.
    pub fn absent(&self) -> impl Iterator<Item = (Routine, &Ident)> {
        self.absent.iter().map(|(routine, name)| (*routine, name))
    }

    /// The name of the EVENT that calls the roll-ups, also if the package does not have it; None if packages of this kind
    /// have no roll-ups.
    pub fn event(&self) -> Option<&Ident> {
        let mut routines = self.names.iter().chain(&self.absent);
        routines
            .find(|(routine, _)| *routine == Routine::Rollup)
            .map(|(_, name)| name)
    }

    /// The roles of `grants.sql`.
    pub fn roles(&self) -> Roles {
        Roles::of(&self.options.prefix)
    }

    /// The name of a routine; None if the package does not have the routine.
    pub fn routine(&self, routine: Routine) -> Option<&Ident> {
        self.names
            .iter()
            .find(|(r, _)| *r == routine)
            .map(|(_, name)| name)
    }

    /// The name of this package's folder in the output folder.
    pub fn folder(&self) -> &'static str {
        match (self.options.kind, self.options.slots) {
            (Kind::Counters, _) if self.options.bounded => "bounded_counters",
            (Kind::SlottedCounters, _) if self.options.bounded => "bounded_slotted_counters",
            (Kind::Counters, Slots::PerCounter) => "counters",
            (Kind::Counters, Slots::Fixed(_)) => "counters-fixed",
            (Kind::SlottedCounters, _) => "slotted_counters",
        }
    }
}

/// The packages whose files are committed under `generated/`.
pub fn committed() -> Vec<Package> {
    Options::all_named()
        .map(|options| Package::new(options).expect("committed options are sound"))
        .collect()
}
