//! The table of a package, and the parts of statements on it.

use askama::Template;

use super::key::{Arguments, Key, text_type};
use super::rollup::Rollup;
use super::{filters, fragment};
use crate::package::{
    DESCRIPTION_MAX, ENTRIES_MAX, IDENT_MAX, Ident, Kind, MAX_SLOTS, NAME_MAX, Options, Package, Routine,
    Servers, Slots,
};

/// The table of a package as statements see it.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) package: &'a Package,
    pub(super) name: &'a Ident,
    pub(super) key: Key<'a>,
}

/// If less than this is left for each slot on average, the rest is put into slot 1.
pub(super) const FEW: u32 = 10;

/// How often a step is repeated, with pauses of 0.01 s. A node of Group Replication that is behind cannot change the slots of
/// other nodes, so that more tries do not help.
pub(super) const STEP_TRIES: u32 = 20;

/// A part of the slots of a counter that a statement locks.
#[derive(Clone, Copy)]
struct Range<'a> {
    slots: Slot<'a>,
    /// A further condition, or empty.
    condition: &'a str,
    /// Whether to skip the slots that other transactions have locked.
    skip: bool,
}

/// The numbers of the slots of a range.
#[derive(Clone, Copy)]
enum Slot<'a> {
    /// The slot with this number.
    One(&'a str),
    /// The same, with a limit that keeps conditions on the result apart from it.
    OneApart(&'a str),
    /// The slots after this number, read downwards.
    After(&'a str),
    /// The slots from this number on, read upwards.
    From(&'a str),
    /// The retired slots, at most this number or all.
    Retired(Option<&'a str>),
}

impl<'a> Range<'a> {
    fn of(slots: Slot<'a>) -> Self {
        Self {
            slots,
            condition: "",
            skip: false,
        }
    }

    fn one(number: &'a str) -> Self {
        Self::of(Slot::One(number))
    }

    fn after(number: &'a str) -> Self {
        Self::of(Slot::After(number))
    }

    fn only_if(self, condition: &'a str) -> Self {
        Self { condition, ..self }
    }

    fn skip_locked(self) -> Self {
        Self { skip: true, ..self }
    }

    /// The comparison with the number of a slot.
    fn comparison(&self) -> String {
        match self.slots {
            Slot::One(number) | Slot::OneApart(number) => format!("= {number}"),
            Slot::After(number) => format!("> {number}"),
            Slot::From(number) => format!(">= {number}"),
            Slot::Retired(_) => "< 1".into(),
        }
    }

    fn descending(&self) -> bool {
        matches!(self.slots, Slot::After(_))
    }

    /// The maximum number of slots, if the range must end before the next row of the index.
    fn limit(&self) -> Option<String> {
        match self.slots {
            Slot::One(_) => None,
            Slot::Retired(limit) => limit.map(ToOwned::to_owned),
            Slot::OneApart(_) => Some("1".to_owned()),
            Slot::After(_) => Some(MAX_SLOTS.to_string()),
            // Slot 0 of a record, too.
            Slot::From(_) => Some((MAX_SLOTS + 1).to_string()),
        }
    }
}

/// How a statement locks slots.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    /// It changes them.
    Update,
    /// It reads them.
    Share,
}

impl Lock {
    fn changes(self) -> bool {
        self == Self::Update
    }
}

/// A column of a package's table.
pub(super) struct Column {
    pub(super) name: Ident,
    /// The type in SQL, without the character set.
    pub(super) kind: String,
    /// Whether the type has a character set and a collation.
    pub(super) text: bool,
    /// Whether NULL is allowed.
    pub(super) null: bool,
}

impl Column {
    /// The type as in `COLUMN_TYPE` of `information_schema.COLUMNS`, which has the values of an ENUM as they are.
    pub(super) fn column_type(&self) -> String {
        let (name, values) = self.kind.split_at(self.kind.find('(').unwrap_or(self.kind.len()));
        name.to_lowercase() + values
    }
}

/// A part of a statement each: its template and its arguments.
macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*) $path:literal)*) => {
        $($(#[$doc])*
        pub(super) fn $name(&self $(, $argument: impl AsRef<str>)*) -> String {
            #[derive(Template)]
            #[template(path = $path)]
            #[allow(dead_code, reason = "numbers depend on no table")]
            struct Part<'a> { table: &'a Table<'a> $(, $argument: &'a str)* }
            fragment(&Part { table: self $(, $argument: $argument.as_ref())* })
        })*
    };
}

impl<'a> Table<'a> {
    pub(super) fn of(package: &'a Package, source: Arguments) -> Self {
        Self {
            package,
            name: &package.options.table,
            key: Key::of(package, source),
        }
    }

    parts! {
        /// Sets a variable to TRUE outside a transaction.
        outside_transaction(variable) "shared/_outside_transaction.sql"
        /// Gives a statement other settings on MariaDB.
        set_statement(settings) "shared/_set_statement.sql"
        /// The slot of this connection on a server that is not a cluster, as an expression.
        own_slot(slots) "shared/_own_slot.sql"
        /// A random slot, as an expression. `random` is a number from 0 on and less than 1.
        any_slot(random, slots) "shared/_any_slot.sql"
        /// The number of slots that the nodes of a cluster can divide evenly, as an expression.
        usable_slots_of(slots) "shared/_usable_slots.sql"
        /// The slot of this connection on any server and node, as an expression. `usable` is a number of usable slots.
        slot_on_any_server(slots, usable) "shared/_slot.sql"
        /// The slot of this connection on a node of a cluster, as an expression. `usable` is a number of usable slots.
        node_slot(usable) "shared/_node_slot.sql"
        /// Gives a slot of a named counter a negative number, which no increment selects.
        retire_slot(slot) "counters/_retire_slot.sql"
        /// Moves the counts of the retired slots of a named counter to the slot `into`. `retired` is their number.
        fold(into, retired) "counters/_fold.sql"
        /// Moves the count of a slot of a bounded counter to slot 1, and gives the slot a negative number.
        remove_slot(slot) "bounded/_remove_slot.sql"
        /// Deletes the retired slots whose counts have been moved. `retired` is their number.
        delete_retired(retired) "counters/_delete_retired.sql"
        /// Deletes all slots of a counter or record.
        delete_slots() "shared/_delete_slots.sql"
        /// The numbers from 1 to `limit` and some more, as a derived table.
        numbers(limit) "shared/_numbers.sql"
        /// Creates a named counter. `most` is the maximum of `slots` as an expression that can be repeated.
        create_counter(most, slots, value, description) "counters/_create_counter.sql"
        /// Selects the totals of all named counters.
        counter_totals() "counters/_totals.sql"
        /// Selects the totals of all records.
        record_totals() "slotted_counters/_totals.sql"
        /// Inserts the missing slots of the counters that `chosen` selects, a condition of the rows `first` and `numbers`.
        insert_slots(chosen) "counters/_insert_slots.sql"
        /// Selects the slots that are missing, of all counters. Locks no existing slot exclusively.
        missing_slots() "counters/_missing_slots.sql"
        /// Reads the highest slot of a named counter; the variable stays NULL if there is no counter. `lock` is a locking
        /// clause or empty.
        last_slot(variable, lock) "counters/_last_slot.sql"
        /// Changes a slot of a named counter, such as by `+ 1`, if it meets the condition, which may be empty.
        update_slot(change, slot, condition) "counters/_update_slot.sql"
        /// Adds to a slot of a record, and creates it if it does not exist.
        upsert(amount, slot) "slotted_counters/_upsert.sql"
        /// The entries of a JSON array as a derived table. `check` also selects the values as JSON, to compare them.
        entries(source, check) "shared/_entries.sql"
        /// The condition that an entry of a JSON array is valid.
        entry_fits() "shared/_entry_fits.sql"
        /// Selects the first entry of a JSON array whose counter does not exist, with a locking read.
        missing_counter(source) "counters/_missing_counter.sql"
        /// Creates the row that a sum is put into.
        first_row() "slotted_counters/_first_row.sql"
        /// Reads the amount of the slot of the connection into `v_have`. `own` is the condition for the rows of the counter.
        read_own_slot(own) "bounded/_read_own_slot.sql"
        /// The distance of a slot from that of the connection, as an expression. Those of other nodes are farther.
        distance(own, slots) "bounded/_distance.sql"
        /// Sets the total of a named counter that has `v_slots` slots.
        reset(value, restart) "counters/_reset.sql"
        /// Sets the total of a counter or record. Each row counts twice in the number of rows that the statement reports.
        reset_upsert(value, restart) "shared/_reset.sql"
        /// Moves the counts of `slots`, a derived table, to slot 0 of a record.
        fold_record(slots) "slotted_counters/_fold.sql"
        /// Deletes the slots of a record whose count is 0, but not slot 0.
        delete_empty() "slotted_counters/_delete_empty.sql"
        /// Selects the number of counters in a JSON array that change, an array of their names, slots and amounts, and whether
        /// one is unknown. `into` may be empty: otherwise, also the first entry that is not valid.
        many_slots(source, into) "counters/_many_slots.sql"
        /// Adds the amounts of a JSON array of names, slots and amounts to these slots of named counters, if all exist.
        update_many(source, slot, counters) "counters/_update_many.sql"
        /// Adds the amounts of a JSON array to the records, and creates the slots that do not exist.
        upsert_many(source, slot) "slotted_counters/_upsert_many.sql"
        /// The slot of an addition to many counters, as an expression: that of the connection, then the lowest one of its node.
        slot_of_try() "counters/_slot_of_try.sql"
        /// The condition of the lowest slots of all nodes.
        lowest_slots() "counters/_lowest_slots.sql"
        /// Takes an amount from a slot of a record, if the slot has it.
        take_slot(amount, slot) "bounded/_take_slot.sql"
        /// The CREATE TABLE statement of named counters.
        create_counters() "counters/counters.sql"
        /// The CREATE TABLE statement of counters keyed by record.
        create_slotted_counters() "slotted_counters/slotted_counters.sql"
    }

    /// All slots of a counter or record, locked in the order of its routines. Whoever holds the first slot holds all of them: the
    /// servers lock a row that the whole key selects before the ranges. The slots of an unbounded counter follow from the highest
    /// on, as increments go that do not find their slot. The retired ones are the last, because a resize gives a slot a lower number.
    pub(super) fn all_slots(&self) -> String {
        let [first, others] = self.first_then_others();
        let retired = Range::of(Slot::Retired(None));
        match self.keyed() {
            true => self.locked_slots(&[first, others], Lock::Update),
            false => self.locked_slots(&[first, others, retired], Lock::Update),
        }
    }

    /// The slot of the connection in a routine, as an expression.
    pub(super) fn slot_of_call(&self) -> String {
        self.slot_among(&self.slots())
    }

    /// The slot of the connection among `slots`, an expression.
    fn slot_among(&self, slots: &str) -> String {
        match &self.options().nodes {
            _ if self.options().random() => self.any_slot("RAND()", slots),
            Some(nodes) if nodes.count == 1 => self.own_slot(slots),
            Some(_) => self.node_slot(self.usable_slots(slots)),
            None => self.slot_on_any_server(slots, self.usable_slots(slots)),
        }
    }

    /// The number of nodes of the cluster, as an expression.
    pub(super) fn nodes(&self) -> String {
        self.options().node_count()
    }

    /// A number that is different on each node, as a summand.
    pub(super) fn node(&self) -> String {
        match &self.options().nodes {
            Some(nodes) => format!("@@GLOBAL.{}", nodes.variable),
            None => "@@GLOBAL.auto_increment_offset - 1".into(),
        }
    }

    /// The number of slots that the nodes of a cluster can divide evenly, as an expression.
    pub(super) fn usable_slots(&self, slots: impl AsRef<str>) -> String {
        let nodes = self.options().nodes.as_ref();
        match (nodes, slots.as_ref().parse::<u32>()) {
            (Some(nodes), Ok(slots)) if slots >= nodes.count => (slots - slots % nodes.count).to_string(),
            _ => self.usable_slots_of(slots),
        }
    }

    /// The slot `into` and the retired slots. `retired` is their number.
    pub(super) fn retired_slots(&self, into: &str, retired: &str) -> String {
        let retired = Range::of(Slot::Retired(Some(retired)));
        self.locked_slots(&[Range::one(into), retired], Lock::Update)
    }

    /// The slots of these ranges as a derived table that locks them range by range, each up to a limit. Each range is
    /// followed by a slot of the same counter, or is read downwards: reading to the end of a range locks the row after it,
    /// which can belong to another counter (seen on MySQL 9.7 and MariaDB 10.11). MariaDB can read a range as the whole
    /// counter, and then locks also the slots that a resize has just retired (seen on 11.8). A limit ends both. Without
    /// LIMIT, the server ignores ORDER BY here.
    fn locked_slots(&self, ranges: &[Range<'_>], lock: Lock) -> String {
        #[derive(Template)]
        #[template(path = "shared/_locked_slots.sql")]
        struct Part<'a> {
            table: &'a Table<'a>,
            ranges: &'a [Range<'a>],
            lock: Lock,
        }
        fragment(&Part {
            table: self,
            ranges,
            lock,
        })
    }

    /// Exempts a statement from innodb_snapshot_isolation of MariaDB. In a trigger, MariaDB also locks what a SELECT reads.
    pub(super) fn over_snapshot(&self) -> String {
        self.set_statement("innodb_snapshot_isolation=OFF")
    }

    /// The same, and from sql_safe_updates: MariaDB rejects a change of many slots otherwise (1175).
    pub(super) fn over_checks(&self) -> String {
        self.set_statement("innodb_snapshot_isolation=OFF, sql_safe_updates=OFF")
    }

    /// Whether the SQL is also for MariaDB.
    pub(super) fn mariadb(&self) -> bool {
        self.options().servers != Servers::Mysql
    }

    /// The text before or after statements that only MariaDB executes.
    pub(super) fn only_mariadb(&self, place: &str) -> &'static str {
        match (self.options().servers, place) {
            (Servers::Both, "begin") => "/*M!100000 ",
            (Servers::Both, _) => " */",
            _ => "",
        }
    }

    /// The text before or after a statement that only MySQL executes. A package for MariaDB has none.
    pub(super) fn only_mysql(&self, place: &str) -> &'static str {
        match (self.options().servers, place) {
            (Servers::Both, "begin") => "/*!80000 ",
            (Servers::Both, _) => " */",
            _ => "",
        }
    }

    /// A hint that makes MySQL find the rows of a join by the index: a scan would lock more rows. The settings of MariaDB for this are
    /// `join_cache_level=0, max_seeks_for_key=1`. The hypergraph optimizer of MySQL 9.7 scans nevertheless, and such an `UPDATE` changes rows
    /// that it has read before it locks them.
    pub(super) fn by_index(&self) -> &'static str {
        match self.options().servers {
            Servers::Mariadb => "",
            _ => {
                " /*+ SET_VAR(max_seeks_for_key = 1) SET_VAR(optimizer_switch = 'hypergraph_optimizer=off') NO_BNL() */"
            }
        }
    }

    /// The roll-ups of the package.
    pub(super) fn rollups(self) -> Vec<Rollup<'a>> {
        Rollup::all(self.package, self)
    }

    /// What the slots of a record have less than its total: the column of its roll-up, after a minus sign, or nothing.
    pub(super) fn less_columns(&self) -> String {
        let less = |rollup: &Rollup<'_>| format!(" - {}", rollup.column_of_arguments("FOR UPDATE"));
        self.rollups().iter().map(less).collect()
    }

    /// The names of the parameters of [`Rollup::column_of_arguments`] in a statement without a routine, each with a comma.
    pub(super) fn column_parameters(&self) -> String {
        let names = |rollup: &Rollup<'_>| {
            let given = rollup.given().into_iter().map(|(column, _)| column);
            let columns = rollup.records.iter().copied().chain(given);
            columns
                .map(|column| format!("{}, ", column.name.plain()))
                .collect::<String>()
        };
        self.rollups().iter().map(names).collect()
    }

    /// Whether the server can be a node of a cluster.
    pub(super) fn on_nodes(&self) -> bool {
        self.options().nodes.as_ref().is_none_or(|nodes| nodes.count > 1)
    }

    /// The slots of a record or a bounded counter, the first one first.
    pub(super) fn first_and_others(&self) -> String {
        self.locked_slots(&self.first_then_others(), Lock::Update)
    }

    /// The same with shared locks.
    pub(super) fn first_and_others_shared(&self) -> String {
        self.locked_slots(&self.first_then_others(), Lock::Share)
    }

    /// The same for a statement that changes the other slots only. MariaDB would apply this condition to the part of the first slot,
    /// find that it has no row, and not lock it first (seen on 10.11 and 11.8).
    pub(super) fn first_apart_and_others(&self) -> String {
        let first = self.first_slot();
        let first_apart = Range::of(Slot::OneApart(first));
        self.locked_slots(&[first_apart, Range::after(first)], Lock::Update)
    }

    fn first_then_others(&self) -> [Range<'static>; 2] {
        let first = self.first_slot();
        [Range::one(first), Range::after(first)]
    }

    /// The first slot and those that no other transaction has locked, or all if `v_all` is TRUE.
    pub(super) fn gathered_slots(&self) -> String {
        let unlocked = Range::after("1").only_if("NOT v_all").skip_locked();
        let all = Range::after("1").only_if("v_all");
        self.locked_slots(&[Range::one("1"), unlocked, all], Lock::Update)
    }

    /// The slots with shared locks, and the first slot first if `v_before` is TRUE.
    pub(super) fn first_if_found_and_others(&self) -> String {
        let first = Range::one("0").only_if("v_before");
        self.locked_slots(&[first, Range::of(Slot::From("v_before"))], Lock::Share)
    }

    /// How many numbers slots of a bounded record can have.
    pub(super) fn all_numbers(&self) -> String {
        (self.options().setup_slots() + 1).to_string()
    }

    /// The first slot and another one.
    pub(super) fn first_and(&self, slot: &str) -> String {
        self.locked_slots(&[Range::one(self.first_slot()), Range::one(slot)], Lock::Update)
    }

    /// Two slots, each if no other transaction has locked it.
    pub(super) fn unlocked_pair(&self, one: &str, other: &str) -> String {
        self.locked_slots(
            &[Range::one(one).skip_locked(), Range::one(other).skip_locked()],
            Lock::Update,
        )
    }

    /// Whether maintenance changes one slot in each statement on the nodes of a cluster.
    pub(super) fn in_steps(&self) -> bool {
        self.package.routine(Routine::InSteps).is_some()
    }

    /// The slot that a resize moves counts to.
    pub(super) fn home(&self) -> &'static str {
        if self.in_steps() { "v_home" } else { "1" }
    }

    /// The distance of the slots that a resize removes.
    pub(super) fn step(&self) -> &'static str {
        if self.in_steps() { "v_step" } else { "1" }
    }

    pub(super) fn bounded(&self) -> bool {
        self.options().bounded
    }

    /// The name of the CHECK of a table of bounded counters. In MySQL, it is unique in the schema.
    pub(super) fn not_negative(&self) -> Ident {
        const END: &str = "_not_negative";
        let table = self.name.name().chars().take(IDENT_MAX - END.len());
        Ident::new(table.chain(END.chars()).collect::<String>()).expect("at most as long as an identifier")
    }

    fn options(&self) -> &'a Options {
        &self.package.options
    }

    pub(super) fn keyed(&self) -> bool {
        self.options().kind == Kind::SlottedCounters
    }

    /// What the rows of a counter stand for.
    pub(super) fn subject(&self) -> &'static str {
        if self.keyed() { "record" } else { "counter" }
    }

    /// The column that has the number of the slot.
    pub(super) fn slot(&self) -> &'static str {
        if self.keyed() { "slot" } else { "counter_id" }
    }

    /// The column that has the count of the slot.
    pub(super) fn count(&self) -> &'static str {
        // Quoted, because it is also the name of a function.
        if self.keyed() { "`count`" } else { "counter" }
    }

    /// The number of the first slot.
    pub(super) fn first_slot(&self) -> &'static str {
        if self.keyed() { "0" } else { "1" }
    }

    /// What the number of a slot has before it if slots are counted from 1.
    fn counted_from(&self) -> &'static str {
        if self.keyed() && !self.bounded() {
            ""
        } else {
            "1 + "
        }
    }

    /// The number of slots that an increment selects from: the variable of the routine, the parameter of the statement,
    /// or the fixed number.
    pub(super) fn slots(&self) -> String {
        self.fixed_slots_or("v_slots")
    }

    /// The number of slots that a resize gives to a counter.
    pub(super) fn slots_wanted(&self) -> String {
        self.fixed_slots_or("p_slots")
    }

    /// A number that is at least the number of slots wanted, as an expression that can be repeated.
    pub(super) fn most_slots(&self) -> String {
        match self.slots_wanted() {
            parameter if parameter == "?" => MAX_SLOTS.to_string(),
            slots => slots,
        }
    }

    fn fixed_slots_or(&self, name: &str) -> String {
        match self.options().slots {
            Slots::PerCounter if self.key.placeholders() => "?".to_owned(),
            Slots::PerCounter => name.to_owned(),
            Slots::Fixed(n) => n.to_string(),
        }
    }

    /// The columns, in the order of the table.
    pub(super) fn columns(&self) -> Vec<Column> {
        let column = |name: &str, kind: String, text: bool, null: bool| Column {
            name: Ident::new(name).expect("a plain name"),
            kind,
            text,
            null,
        };
        let number = |name: &str, kind: &str| column(name, kind.into(), false, false);
        let key = self.package.options.key.0.iter().map(|key| Column {
            name: key.name.clone(),
            kind: key.kind.text(),
            text: key.kind.is_text(),
            null: false,
        });
        let others = match self.options().kind {
            Kind::Counters => vec![
                number("counter_id", "INT"),
                column("description", format!("VARCHAR({DESCRIPTION_MAX})"), true, true),
                number("start_date", "DATETIME"),
                number("counter", "BIGINT"),
            ],
            Kind::SlottedCounters => vec![number("slot", "INT"), number("count", "BIGINT")],
        };
        key.chain(others).collect()
    }

    /// The columns of the primary key: the key and the slot.
    pub(super) fn key_columns(&self) -> Vec<Ident> {
        let columns = self.columns().into_iter().map(|column| column.name);
        columns.take(self.package.options.key.0.len() + 1).collect()
    }

    /// The number of the last slot of a record.
    pub(super) fn last_slot_number(&self) -> u32 {
        self.options().setup_slots() - 1
    }

    /// The slots that statements without a routine select: the end of their names, where they are used, and the slot as an
    /// expression.
    pub(super) fn plain_slots(&self) -> Vec<(&'static str, &'static str, String)> {
        // The server evaluates RAND() in a WHERE clause for each row.
        let random = || self.any_slot(if self.keyed() { "RAND()" } else { "?" }, self.slots());
        let on_nodes = || match self.options().slots {
            Slots::PerCounter => self.node_slot(self.slots()),
            Slots::Fixed(_) => self.node_slot(self.usable_slots(self.slots())),
        };
        match &self.options().nodes {
            _ if self.options().random() => vec![("", "", random())],
            None => vec![
                ("", ", on a single server", self.own_slot(self.slots())),
                ("_on_nodes", ", on any server and cluster", on_nodes()),
            ],
            Some(nodes) if nodes.count == 1 => vec![("", "", self.own_slot(self.slots()))],
            Some(_) => vec![("", "", on_nodes())],
        }
    }

    /// The parameter of a statement without a routine for the number of slots, behind the others.
    pub(super) fn slots_parameter(&self) -> &'static str {
        if self.options().per_counter() {
            ", slots"
        } else {
            ""
        }
    }

    /// The parameter of a statement without a routine for a random number, behind the others.
    pub(super) fn random_parameter(&self) -> &'static str {
        if self.options().random() { ", random" } else { "" }
    }

    /// The slot of this connection among `v_slots`, the number of slots that a counter was found with. It is NULL if the
    /// counter was created after the snapshot of the transaction.
    pub(super) fn slot_of_found(&self) -> String {
        self.slot_among("v_slots")
    }

    /// A string of the character set and collation of the package.
    pub(super) fn varchar(&self, characters: u32) -> String {
        text_type(format!("VARCHAR({characters})"), &self.options().collation)
    }
}
