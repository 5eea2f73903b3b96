//! The model: what a package is. Options, names, errors and the list of objects. Pure.

mod error;
mod ident;
mod key;
mod options;
mod rollup;

pub use error::{Detail, MESSAGE_MAX, PackageError, Signal, signal};
pub use ident::{IDENT_MAX, Ident, IdentError, Prefix, SqlStr};
pub use key::{Key, KeyColumn, KeyError, KeyType};
pub use options::{
    Collation, DEFAULT_SLOTS, Kind, Options, OptionsError, Pick, RECORD_SLOTS, Security, Slots, slot_count,
};
pub use rollup::{Interval, Rollup, RollupError, Value};

/// The most slots of a counter. Reading sums them all: 512 take about 85 microseconds of server time.
pub const MAX_SLOTS: u32 = 10_000;

/// The most characters of a counter's name.
pub const NAME_MAX: u32 = 100;

/// The characters of a name parameter. Wider than the column, because a server in a non-strict mode cuts an
/// argument silently to the parameter: a cut name must still be seen to be too long.
pub const NAME_PARAMETER: u32 = 255;

/// The longest time that `compact_idle` watches for: a day.
pub const SECONDS_MAX: u32 = 86_400;

/// The most records that a call of `compact_idle` compacts, and that a batch of a roll-up has.
pub const RECORDS_MAX: u32 = 10_000;

/// The records of a batch of a roll-up where it is given NULL.
pub const BATCH: u32 = 1_000;

/// The most characters of a counter's description.
pub const DESCRIPTION_MAX: u32 = 255;

/// A routine of the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Routine {
    /// Creates a counter with all its slots.
    Setup,
    /// Adds 1 to one slot.
    Increment,
    /// Adds any amount to one slot.
    Add,
    /// Sets the total.
    Reset,
    /// Changes the number of slots.
    Resize,
    /// Puts all counts of a record into one row.
    Compact,
    /// Compacts the records that nobody counts.
    CompactIdle,
    /// Removes a counter.
    Delete,
    /// Removes a counter, under the name that the origin's transcript uses.
    Drop,
    /// Reads the total.
    Get,
}

impl Routine {
    /// All routines, in the order in which scripts create them.
    pub const ALL: [Self; 10] = [
        Self::Setup,
        Self::Increment,
        Self::Add,
        Self::Reset,
        Self::Resize,
        Self::Compact,
        Self::CompactIdle,
        Self::Delete,
        Self::Drop,
        Self::Get,
    ];

    /// What its name ends with.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Increment => "increment",
            Self::Add => "add",
            Self::Reset => "reset",
            Self::Resize => "resize",
            Self::Compact => "compact",
            Self::CompactIdle => "compact_idle",
            Self::Delete => "delete",
            Self::Drop => "drop",
            Self::Get => "get",
        }
    }

    /// What it signals, in the order of the numbers.
    pub fn errors(self, options: &Options) -> Vec<PackageError> {
        use PackageError as E;
        if self == Self::CompactIdle {
            return vec![E::SecondsOutOfRange, E::RecordsOutOfRange];
        }
        if options.kind == Kind::SlottedCounters {
            let own: &[E] = match self {
                Self::Add => &[E::AmountNull],
                Self::Get | Self::Compact => &[E::TotalOutOfRange],
                _ => &[],
            };
            let misfit = options.key.0.iter().any(|column| column.misfit().is_some());
            let key: &[E] = if misfit {
                &[E::KeyNull, E::KeyMisfit]
            } else {
                &[E::KeyNull]
            };
            return [own, key].concat();
        }
        let own: &[E] = match (self, options.slots) {
            (Self::Setup, Slots::PerCounter) => &[E::CounterExists, E::SlotsOutOfRange],
            (Self::Setup, Slots::Fixed(_)) => &[E::CounterExists, E::SlotsFixed],
            (Self::Increment | Self::Reset | Self::Delete | Self::Drop, _) => &[E::UnknownCounter],
            (Self::Add, _) => &[E::UnknownCounter, E::AmountNull],
            (Self::Resize | Self::Compact | Self::CompactIdle, _) => {
                &[E::UnknownCounter, E::SlotsOutOfRange, E::TotalOutOfRange]
            }
            (Self::Get, _) => &[E::UnknownCounter, E::TotalOutOfRange],
        };
        [&[E::NameEmpty, E::NameTooLong], own].concat()
    }

    /// PROCEDURE or FUNCTION.
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
    /// How it was asked for.
    pub options: Options,
    /// The view with a row per counter.
    pub totals: Ident,
    /// The view with the version and the options.
    pub package: Ident,
    names: Vec<(Routine, Ident)>,
    rollups: Vec<Ident>,
}

impl Package {
    /// Names every object of a package with these options.
    ///
    /// # Errors
    /// Options that contradict each other, or names that no server would take.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        options.check()?;
        let name = |suffix: &str| options.prefix.join(suffix).map_err(OptionsError::Prefix);
        let mut names = Vec::new();
        for routine in Routine::ALL {
            let named = options.kind == Kind::Counters;
            let there = match routine {
                Routine::Setup | Routine::Drop => named,
                Routine::Resize => named && options.slots == Slots::PerCounter,
                Routine::Compact | Routine::CompactIdle => !named,
                Routine::Get => options.function,
                Routine::Increment | Routine::Add | Routine::Reset | Routine::Delete => true,
            };
            if there {
                names.push((routine, name(routine.suffix())?));
            }
        }
        let procedure = |rollup: &Rollup| {
            options
                .prefix
                .join(&rollup.suffix())
                .map_err(OptionsError::RollupName)
        };
        let rollups = options.rollups.iter().map(procedure).collect::<Result<_, _>>()?;
        let (totals, package) = (name("totals")?, name("package")?);
        // A view and a table share one name space, and on some systems names ignore case.
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
            rollups,
        })
    }

    /// The roll-ups, each with the name of its procedure, which is also that of its EVENT.
    pub fn rollups(&self) -> impl Iterator<Item = (&Rollup, &Ident)> {
        self.options.rollups.iter().zip(&self.rollups)
    }

    /// The routines of the package with their names, in the order of creation.
    pub fn routines(&self) -> impl Iterator<Item = (Routine, &Ident)> {
        self.names.iter().map(|(routine, name)| (*routine, name))
    }

    /// The name of a routine; None where the package has none of this kind.
    pub fn routine(&self, routine: Routine) -> Option<&Ident> {
        self.names
            .iter()
            .find(|(r, _)| *r == routine)
            .map(|(_, name)| name)
    }

    /// The folder of this package below the output folder.
    pub fn folder(&self) -> &'static str {
        match (self.options.kind, self.options.slots) {
            (Kind::Counters, Slots::PerCounter) => "counters",
            (Kind::Counters, Slots::Fixed(_)) => "counters-fixed",
            (Kind::SlottedCounters, _) => "slotted_counters",
        }
    }
}

/// The packages whose files are committed under `generated/`.
pub fn committed() -> Vec<Package> {
    let fixed = Options {
        slots: Slots::Fixed(20),
        ..Options::default()
    };
    [Options::default(), fixed, Options::slotted_counters()]
        .map(|options| Package::new(options).expect("committed options are sound"))
        .into()
}
