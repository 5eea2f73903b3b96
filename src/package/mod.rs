//! The model of a package: options, names, errors and the list of objects. Pure: no I/O, no clock.

mod error;
mod ident;
mod key;
mod options;
mod rollup;

pub use error::{Detail, MESSAGE_MAX, PackageError, Signal, Speaker, signal, signal_by};
pub use ident::{Definer, IDENT_MAX, Ident, IdentError, Prefix, Roles, SqlStr, USER_MAX};
pub(crate) use ident::{literal, quoted};
pub use key::{Key, KeyColumn, KeyError, KeyType};
pub(crate) use options::shell_word;
pub use options::{
    Collation, DEFAULT_SLOTS, Kind, Nodes, Options, OptionsError, Pick, RECORD_SLOTS, Security, Servers,
    Slots, Variable, slot_count,
};
pub use rollup::{Columns, Interval, Rollup, RollupError, TableColumn, Value};

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

impl Routine {
    /// All routines, in the order in which scripts create them.
    pub const ALL: [Self; 26] = [
        Self::Fail,
        Self::Check,
        Self::CheckSlots,
        Self::Unknown,
        Self::AddElsewhere,
        Self::First,
        Self::TakeElsewhere,
        Self::Reject,
        Self::AddManyUnknown,
        Self::DeleteKilled,
        Self::InSteps,
        Self::Steps,
        Self::Move,
        Self::Setup,
        Self::Increment,
        Self::Add,
        Self::AddMany,
        Self::Take,
        Self::Reset,
        Self::Resize,
        Self::Compact,
        Self::CompactIdle,
        Self::Rollup,
        Self::Delete,
        Self::Drop,
        Self::Get,
    ];

    /// The end of the routine's name, after the prefix.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Check => "check",
            Self::CheckSlots => "check_slots",
            Self::Unknown => "unknown",
            Self::AddElsewhere => "add_elsewhere",
            Self::First => "first",
            Self::Reject => "reject",
            Self::TakeElsewhere => "take_elsewhere",
            Self::AddManyUnknown => "add_many_unknown",
            Self::DeleteKilled => "delete_killed",
            Self::InSteps => "in_steps",
            Self::Steps => "steps",
            Self::Move => "move",
            Self::Setup => "setup",
            Self::Increment => "increment",
            Self::Add => "add",
            Self::AddMany => "add_many",
            Self::Take => "take",
            Self::Reset => "reset",
            Self::Resize => "resize",
            Self::Compact => "compact",
            Self::CompactIdle => "compact_idle",
            Self::Rollup => "rollup",
            Self::Delete => "delete",
            Self::Drop => "drop",
            Self::Get => "get",
        }
    }

    /// Whether only routines of the package call it. Its name begins with an underscore.
    pub fn is_private(self) -> bool {
        matches!(
            self,
            Self::Fail
                | Self::Check
                | Self::CheckSlots
                | Self::Unknown
                | Self::AddElsewhere
                | Self::First
                | Self::Reject
                | Self::TakeElsewhere
                | Self::AddManyUnknown
                | Self::DeleteKilled
                | Self::InSteps
                | Self::Steps
                | Self::Move
        )
    }

    /// The errors that the routine signals, in the order of their numbers. A private routine signals those of its callers.
    pub fn errors(self, options: &Options) -> Vec<PackageError> {
        use PackageError as E;
        let mut errors = self.errors_unbounded(options);
        if options.bounded {
            let more: &[E] = match self {
                Self::Setup if options.kind == Kind::SlottedCounters => &[E::CounterExists, E::ValueNegative],
                Self::Setup | Self::Reset => &[E::ValueNegative],
                Self::Add => &[E::NotEnough],
                Self::AddMany => &[E::EntryNegative],
                _ => &[],
            };
            // The server rejects the sum of slots that exceeds the range.
            errors.retain(|error| {
                matches!(self, Self::Get | Self::Compact | Self::Resize) || *error != E::TotalOutOfRange
            });
            errors.extend(more);
            errors.sort_by_key(|error| error.number());
        }
        errors
    }

    fn errors_unbounded(self, options: &Options) -> Vec<PackageError> {
        use PackageError as E;
        if self.is_private() {
            return Vec::new();
        }
        match self {
            Self::CompactIdle => return vec![E::SecondsOutOfRange, E::RecordsOutOfRange],
            Self::Rollup => return vec![E::RecordsOutOfRange, E::TotalRejected],
            Self::AddMany if options.kind == Kind::SlottedCounters => {
                return vec![E::NotArray, E::EntryMisfit];
            }
            Self::AddMany => return vec![E::UnknownCounter, E::NotArray, E::EntryMisfit],
            _ => {}
        }
        if options.kind == Kind::SlottedCounters {
            let own: &[E] = match self {
                Self::Add => &[E::AmountNull],
                Self::Take => &[E::NotEnough, E::AmountNotPositive],
                Self::Compact if options.column().is_some() => &[E::TotalRejected],
                Self::Get | Self::Compact => &[E::TotalOutOfRange],
                _ => &[],
            };
            let misfit = options.key.0.iter().any(|column| column.kind.is_limited());
            let key: &[E] = if misfit {
                &[E::KeyNull, E::KeyMisfit]
            } else {
                &[E::KeyNull]
            };
            let mut errors = [own, key].concat();
            errors.sort_by_key(|error| error.number());
            return errors;
        }
        let own: &[E] = match (self, options.slots) {
            (Self::Setup, Slots::PerCounter) => &[E::CounterExists, E::SlotsOutOfRange, E::SlotsOfNodes],
            (Self::Setup, Slots::Fixed(_)) => &[E::CounterExists, E::SlotsFixed, E::SlotsOfNodes],
            (Self::Increment | Self::Reset | Self::Delete | Self::Drop, _) => &[E::UnknownCounter],
            (Self::Add, _) => &[E::UnknownCounter, E::AmountNull],
            (Self::Take, _) => &[E::UnknownCounter, E::NotEnough, E::AmountNotPositive],
            (Self::Resize, Slots::Fixed(_)) => &[E::UnknownCounter, E::SlotsFixed, E::TotalOutOfRange],
            (Self::Resize, Slots::PerCounter) => &[
                E::UnknownCounter,
                E::SlotsOutOfRange,
                E::TotalOutOfRange,
                E::SlotsOfNodes,
            ],
            (Self::Compact | Self::CompactIdle | Self::Rollup | Self::AddMany, _) => {
                &[E::UnknownCounter, E::SlotsOutOfRange, E::TotalOutOfRange]
            }
            (Self::Get, _) => &[E::UnknownCounter, E::TotalOutOfRange],
            _ => unreachable!("private routines have no errors of their own"),
        };
        [&[E::NameEmpty, E::NameTooLong], own].concat()
    }

    /// Whether the role of applications calls the routine. The role of administrators calls all of them. An application deletes the counts
    /// of its rows, with SQL SECURITY INVOKER by a trigger: otherwise it would need DELETE on the table of the slots.
    pub fn of_applications(self, options: &Options) -> bool {
        match self {
            Self::Increment | Self::Add | Self::AddMany | Self::Take | Self::Get => true,
            Self::Delete => options.column().is_some() && options.security != Security::Invoker,
            _ => false,
        }
    }

    /// Whether a routine that applications call calls it.
    fn serves_applications(self) -> bool {
        matches!(
            self,
            Self::Fail
                | Self::Check
                | Self::Unknown
                | Self::AddElsewhere
                | Self::Reject
                | Self::TakeElsewhere
                | Self::AddManyUnknown
        )
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
    /// Names every object of a package with these options.
    ///
    /// # Errors
    /// The options contradict each other, or a name is not an identifier.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        options.check()?;
        let name = |suffix: &str| options.prefix.join(suffix).map_err(OptionsError::Prefix);
        let private = |suffix: &str| {
            Ident::new(format!("_{}{suffix}", options.prefix.name())).map_err(OptionsError::Prefix)
        };
        let (mut names, mut absent) = (Vec::new(), Vec::new());
        for routine in Routine::ALL {
            let named = options.kind == Kind::Counters;
            let (of_kind, included) = match routine {
                Routine::Fail | Routine::Check => (true, true),
                Routine::CheckSlots | Routine::Unknown | Routine::AddElsewhere | Routine::AddManyUnknown => {
                    (named, true)
                }
                Routine::First | Routine::DeleteKilled => (!named, true),
                Routine::InSteps | Routine::Steps => (!options.bounded, options.steps()),
                Routine::Reject | Routine::TakeElsewhere | Routine::Take => (options.bounded, true),
                Routine::Setup => (named || options.bounded, true),
                Routine::Resize | Routine::Drop => (named, true),
                Routine::Compact => (!named, true),
                // A roll-up deletes the slots that have stayed 0.
                Routine::CompactIdle => (!named, options.column().is_none()),
                Routine::Rollup | Routine::Move => (!named && !options.bounded, !options.rollups.is_empty()),
                Routine::Get => (true, options.function),
                Routine::Increment | Routine::Add | Routine::AddMany | Routine::Reset | Routine::Delete => {
                    (true, true)
                }
            };
            if of_kind {
                let list = if included { &mut names } else { &mut absent };
                let name = if routine.is_private() {
                    private(routine.suffix())
                } else {
                    name(routine.suffix())
                };
                list.push((routine, name?));
                if routine == Routine::Move {
                    for number in 2..=options.rollups.len() {
                        list.push((routine, private(&format!("{}_{number}", routine.suffix()))?));
                    }
                }
            }
        }
        // MySQL drops a routine in an executable comment before it creates it.
        let dropped = names
            .iter()
            .filter(|(routine, _)| !routine.is_private())
            .map(|(_, name)| name);
        // MariaDB tries a change of a column in one.
        let tried = options
            .rollups
            .iter()
            .flat_map(|rollup| rollup.ids.iter().chain([&rollup.table, &rollup.target]));
        let ends = |name: &&Ident| name.name().contains("*/");
        // accounts.sql gives the definer a role in one.
        let of_definer = options.definer.iter().flat_map(Definer::parts);
        let role = options.definer.as_ref().and(options.roles.as_ref());
        let accounts = of_definer.chain(role.map(|roles| &roles.application));
        let ending = dropped.chain(tried).chain(accounts).find(ends);
        if options.servers == Servers::Both
            && let Some(name) = ending
        {
            return Err(OptionsError::EndOfComment(name.clone()));
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

    /// Whether a routine is the roll-up or serves it. A package without roll-ups has none.
    pub fn serves_rollups(&self, routine: Routine) -> bool {
        !self.options.rollups.is_empty() && (routine == Routine::Rollup || routine.is_private())
    }

    /// The roll-ups, each with the name of the routine that moves its counts.
    pub fn rollups(&self) -> impl Iterator<Item = (&Rollup, &Ident)> {
        let moves = self.routines().filter(|(routine, _)| *routine == Routine::Move);
        self.options.rollups.iter().zip(moves.map(|(_, name)| name))
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
                invoker && (admin || routine.serves_applications())
            } else {
                admin || routine.of_applications(&self.options)
            }
        })
    }

    /// The routines that the package does not have, but that a package of this kind and prefix has with other options.
    pub fn absent(&self) -> impl Iterator<Item = (Routine, &Ident)> {
        self.absent.iter().map(|(routine, name)| (*routine, name))
    }

    /// The beginning of the names of the routines that move the counts of the second roll-up and of further ones, before the number.
    /// None if packages of this kind have no roll-ups.
    pub fn further_moves(&self) -> Option<String> {
        self.event()?;
        Some(format!(
            "_{}{}_",
            self.options.prefix.name(),
            Routine::Move.suffix()
        ))
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
        let roles = &self.options.roles;
        roles.clone().unwrap_or_else(|| Roles::of(&self.options.prefix))
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
    let fixed = Options {
        slots: Slots::Fixed(20),
        ..Options::default()
    };
    let bounded = Options::bounded(Kind::Counters);
    [Options::default(), fixed, Options::slotted_counters(), bounded]
        .map(|options| Package::new(options).expect("committed options are sound"))
        .into()
}
