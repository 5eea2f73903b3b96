//! The model of a package: options, names, errors and the list of objects. Pure: no I/O, no clock.

mod column;
mod description;
mod ident;
mod key;
mod options;
mod subject;
mod values;

pub use column::{Columns, TableColumn};
pub use ident::{Definer, IDENT_MAX, Ident, OptionsError, Prefix, SqlStr, USER_MAX};
pub(crate) use ident::{is_executed, literal};
pub use key::{Key, KeyColumn, KeyType, NAME_MAX, TAKEN};
pub(crate) use options::shell_word;
pub use options::{DEFAULT_SLOTS, FIXED_SLOTS, Options, RECORD_SLOTS};
pub use subject::Subject;
pub use values::{BATCH, Collation, DESCRIPTION_MAX, ENTRIES_MAX, Family, MAX_SLOTS, Security, Slots, slot_count};

/// A routine of the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Routine {
    /// Signals an error. Private, as the next ones up to `Move`: only routines of the package call them.
    Fail,
    /// Rejects a counter that does not exist.
    MustExist,
    /// Adds to another slot than that of the connection.
    AddElsewhere,
    /// Takes from several slots in one statement.
    Collect,
    /// Takes from other slots than that of the connection.
    TakeElsewhere,
    /// Changes one slot in each statement, on a node of a cluster.
    Steps,
    /// Begins a transaction, unless one is open.
    Begin,
    /// Moves the counts of a record into the column.
    Move,
    /// Resets or compacts a record.
    Maintain,
    /// Creates a counter with all its slots.
    Setup,
    /// Adds 1 to one slot.
    Increment,
    /// Adds any amount to one slot.
    Add,
    /// Adds amounts to many records.
    AddMany,
    /// Takes an amount, if the counter has it.
    Take,
    /// Sets the total.
    Reset,
    /// Changes the number of slots.
    Resize,
    /// Folds all slots of a record into one row.
    Compact,
    /// Moves the counts of all records into the column.
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
    /// Other routines of the package.
    Package,
}

/// The end of the name of a routine, its callers, and whether a package contains it.
type Spec = (Routine, &'static str, Caller, fn(&Options) -> bool);

/// All routines in the order in which scripts create them. The function comes last: a server can reject it for an account without privileges
/// (1418, 1419), and then all the rest is there.
const ROUTINES: [Spec; 21] = {
    use Caller::{Admin, Application};
    use Routine as R;
    [
        (R::Fail, "fail", Caller::Package, |_| true),
        (R::MustExist, "must_exist", Caller::Package, Options::is_named),
        (R::AddElsewhere, "add_elsewhere", Caller::Package, Options::is_named),
        (R::Collect, "collect", Caller::Package, Options::is_bounded),
        (R::TakeElsewhere, "take_elsewhere", Caller::Package, Options::is_bounded),
        (R::Steps, "steps", Caller::Package, Options::in_steps),
        (R::Begin, "begin", Caller::Package, Options::in_transactions),
        (R::Move, "move", Caller::Package, |o| o.column().is_some()),
        (R::Maintain, "maintain", Caller::Package, Options::in_transactions),
        (R::Setup, "setup", Admin, Options::is_named),
        (R::Increment, "increment", Application, |_| true),
        (R::Add, "add", Application, |_| true),
        (R::AddMany, "add_many", Application, |o| !o.is_named()),
        (R::Take, "take", Application, Options::is_bounded),
        (R::Reset, "reset", Admin, |_| true),
        (R::Resize, "resize", Admin, Options::is_named),
        (R::Compact, "compact", Admin, |o| !o.is_named()),
        (R::Rollup, "rollup", Admin, |o| o.column().is_some()),
        (R::Delete, "delete", Admin, |_| true),
        (R::Drop, "drop", Admin, Options::is_named),
        (R::Get, "get", Application, |o| o.function),
    ]
};

impl Routine {
    /// All routines, in the order in which scripts create them.
    pub fn all() -> impl Iterator<Item = Self> {
        ROUTINES.into_iter().map(|(routine, ..)| routine)
    }

    fn spec(self) -> Spec {
        ROUTINES.into_iter().find(|(routine, ..)| *routine == self).expect("every routine is in the table")
    }

    /// The end of the routine's name, after the prefix.
    pub fn suffix(self) -> &'static str {
        self.spec().1
    }

    /// Whether only routines of the package call it. Its name begins with an underscore.
    pub fn is_private(self) -> bool {
        self.spec().2 == Caller::Package
    }

    /// Whether applications call the routine. Administrators call all of them. An application deletes the counts of its rows, with
    /// SQL SECURITY INVOKER by a trigger: otherwise it would need DELETE on the table of the slots.
    pub fn of_applications(self, options: &Options) -> bool {
        match self {
            Self::Delete => options.column().is_some() && options.security != Security::Invoker,
            _ => self.spec().2 == Caller::Application,
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
    pub description: Ident,
    names: Vec<(Routine, Ident)>,
}

impl Package {
    /// Names every object of a package with these options.
    ///
    /// # Errors
    /// The options contradict each other, or a name is not an identifier.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        options.check()?;
        let name = |private: &str, suffix: &str| {
            let name = Ident::new(format!("{private}{}{suffix}", options.prefix.name()));
            name.map_err(|error| OptionsError(format!("--prefix: {error}")))
        };
        let mut names = Vec::new();
        for routine in Routine::all().filter(|routine| routine.spec().3(&options)) {
            names.push((routine, name(if routine.is_private() { "_" } else { "" }, routine.suffix())?));
        }
        let (totals, description) = (name("", "totals")?, name("", "package")?);
        // Views and tables share a name space. Under lower_case_table_names = 1 or 2 their names ignore case.
        let table = options.table.name().to_lowercase();
        if let Some(view) = [&totals, &description].into_iter().find(|view| view.name().to_lowercase() == table) {
            let why = "is also the name of a view of the package: use another --table or --prefix";
            return Err(OptionsError(format!("--table {} {why}", view.name())));
        }
        Ok(Self { options, totals, description, names })
    }

    /// The same package for a family of servers.
    #[must_use]
    pub fn of_family(mut self, family: Family) -> Self {
        self.options.family = family;
        self
    }

    /// The routines of the package with their names, in the order of creation.
    pub fn routines(&self) -> impl Iterator<Item = (Routine, &Ident)> {
        self.names.iter().map(|(routine, name)| (*routine, name))
    }

    /// The kinds and names of the routines as rows of SQL, with commas between them.
    pub(crate) fn names(&self) -> String {
        let row = |(routine, name): (Routine, &Ident)| format!("('{}', {})", routine.kind(), SqlStr(name.name()));
        self.routines().map(row).collect::<Vec<_>>().join(", ")
    }

    /// The procedures that applications call, and the private ones with SQL SECURITY INVOKER: then the caller needs EXECUTE on both.
    pub fn of_applications(&self) -> impl Iterator<Item = &Ident> {
        self.procedures(true)
    }

    /// The procedures that only administrators call.
    pub fn of_administrators(&self) -> impl Iterator<Item = &Ident> {
        self.procedures(false)
    }

    fn procedures(&self, of_applications: bool) -> impl Iterator<Item = &Ident> {
        let invoker = self.options.security == Security::Invoker;
        let of = move |routine: Routine| match routine {
            Routine::Get => false,
            _ if routine.is_private() => invoker && of_applications,
            _ => routine.of_applications(&self.options) == of_applications,
        };
        self.routines().filter(move |(routine, _)| of(*routine)).map(|(_, name)| name)
    }

    /// The name of the EVENT that calls the roll-up. None if the package has no column.
    pub fn event(&self) -> Option<&Ident> {
        self.routine(Routine::Rollup)
    }

    /// The name of a routine; None if the package does not have the routine.
    pub fn routine(&self, routine: Routine) -> Option<&Ident> {
        self.names.iter().find(|(r, _)| *r == routine).map(|(_, name)| name)
    }

    /// The name of a routine that a script creates, calls and drops, and of a table that is about to be dropped.
    pub fn temporary(&self) -> Ident {
        Ident::new(format!("_{}script", self.options.prefix.name())).expect("shorter than the names of other routines")
    }

    /// The folder of this package in the output folder, such as `mysql/counters`. With a table of another name, it is that name.
    pub fn folder(&self) -> String {
        format!("{}/{}", self.options.family.slug(), self.own_name())
    }

    /// The name that tells it from other packages in a database: that of the table, if it is not the default.
    pub fn own_name(&self) -> &str {
        let table = &self.options.table;
        let is_named = self.options.column().is_none() && *table == self.options.defaults().table;
        if is_named { self.options.subject.package() } else { table.name() }
    }
}

/// The packages whose files are committed under `generated/`, for each family.
pub fn committed() -> Vec<Package> {
    let packages = Options::NAMED.map(|(.., options)| Package::new(options()).expect("committed options are sound"));
    let families = [Family::Mysql, Family::Mariadb];
    packages.into_iter().flat_map(|package| families.map(|family| package.clone().of_family(family))).collect()
}
