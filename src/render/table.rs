//! The table of a package, and the parts of statements on it.

use askama::Template;

use super::key::{Arguments, KeyParts, text_type};
use super::{filters, fragment};
use crate::package::{
    DESCRIPTION_MAX, ENTRIES_MAX, IDENT_MAX, Ident, Kind, MAX_SLOTS, NAME_MAX, Options, Package, Servers,
    Slots,
};

/// The table of a package as statements see it.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) package: &'a Package,
    pub(super) name: &'a Ident,
    pub(super) key: KeyParts<'a>,
}

/// The number of nodes of the cluster, as an expression.
pub(super) const NODES: &str = "@@GLOBAL.auto_increment_increment";

/// If less than this is left for each slot on average, the rest is put into slot 1.
pub(super) const FEW: u32 = 10;

/// How often a step is repeated, with pauses of 0.01 s. A node of Group Replication that is behind cannot change the slots of
/// other nodes, so that more tries do not help.
pub(super) const STEP_TRIES: u32 = 20;

/// A column of a package's table.
pub(super) struct SlotColumn {
    pub(super) name: Ident,
    /// The type in SQL, without the character set.
    pub(super) kind: String,
    /// Whether the type has a character set and a collation.
    pub(super) text: bool,
    /// Whether NULL is allowed.
    pub(super) null: bool,
}

impl SlotColumn {
    /// The type as in `COLUMN_TYPE` of `information_schema.COLUMNS`.
    pub(super) fn column_type(&self) -> String {
        self.kind.to_lowercase()
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
            key: KeyParts::of(package, source),
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
        usable_slots(slots) "shared/_usable_slots.sql"
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
        /// Creates the row that a sum is put into.
        first_row() "slotted_counters/_first_row.sql"
        /// Reads the amount of the slot of the connection into `v_have`. `own` is the condition for the rows of the counter.
        read_own_slot(own) "bounded/_read_own_slot.sql"
        /// The distance of a slot from that of the connection, as an expression. Those of other nodes are farther.
        distance(own, slots) "bounded/_distance.sql"
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
        /// Takes an amount from a slot of a record, if the slot has it.
        take_slot(amount, slot) "bounded/_take_slot.sql"
        /// The CREATE TABLE statement of named counters.
        create_counters() "counters/counters.sql"
        /// The CREATE TABLE statement of counters keyed by record.
        create_slotted_counters() "slotted_counters/slotted_counters.sql"
    }

    /// The slot of the connection in a routine, as an expression.
    pub(super) fn slot_of_call(&self) -> String {
        self.slot_among(&self.slots())
    }

    /// The slot of the connection among `slots`, an expression.
    fn slot_among(&self, slots: &str) -> String {
        if self.options().random() {
            self.any_slot("RAND()", slots)
        } else {
            self.slot_on_any_server(slots, self.usable_slots(slots))
        }
    }

    /// The number of nodes of the cluster, as an expression. It is 1 on a single server.
    pub(super) fn nodes(&self) -> &'static str {
        NODES
    }

    /// A number that is different on each node, as a summand.
    pub(super) fn node(&self) -> &'static str {
        "@@GLOBAL.auto_increment_offset - 1"
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

    /// How many numbers slots of a bounded record can have.
    pub(super) fn all_numbers(&self) -> String {
        (self.options().setup_slots() + 1).to_string()
    }

    /// The slot that a resize moves counts to.
    pub(super) fn home(&self) -> &'static str {
        if self.bounded() { "1" } else { "v_home" }
    }

    /// The distance of the slots that a resize removes.
    pub(super) fn step(&self) -> &'static str {
        if self.bounded() { "1" } else { "v_step" }
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
    pub(super) fn columns(&self) -> Vec<SlotColumn> {
        let column = |name: &str, kind: String, text: bool, null: bool| SlotColumn {
            name: Ident::new(name).expect("a plain name"),
            kind,
            text,
            null,
        };
        let number = |name: &str, kind: &str| column(name, kind.into(), false, false);
        let key = self.package.options.key.0.iter().map(|key| SlotColumn {
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
        if self.options().random() {
            // The server evaluates RAND() in a WHERE clause for each row.
            let random = if self.keyed() { "RAND()" } else { "?" };
            return vec![("", "", self.any_slot(random, self.slots()))];
        }
        let on_nodes = match self.options().slots {
            Slots::PerCounter => self.node_slot(self.slots()),
            Slots::Fixed(_) => self.node_slot(self.usable_slots(self.slots())),
        };
        vec![
            ("", ", on a single server", self.own_slot(self.slots())),
            ("_on_nodes", ", on any server and cluster", on_nodes),
        ]
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
