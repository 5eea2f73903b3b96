//! The table of a package, and the parts of statements on it.

use askama::Template;

use super::key::{Arguments, Key, text_type};
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
    pub(super) key: Key<'a>,
}

/// If less than this is left for each slot on average, the rest is put into slot 1.
pub(super) const FEW: u32 = 10;

/// How often a step is repeated, with pauses of 0.01 s. A node of Group Replication that is behind cannot change the slots of
/// other nodes, so that more tries do not help.
const STEP_TRIES: u32 = 20;

/// [`MAX_SLOTS`] as a limit.
const ALL: &str = "10000";

/// The same, and slot 0 of a bounded record.
const ALL_AND_FIRST: &str = "10001";

/// A condition of slot numbers, its LIMIT or empty, and what follows FOR UPDATE.
type Range<'a> = (&'a str, &'a str, &'a str);

/// Skips the slots that other transactions have locked.
const SKIP: &str = " SKIP LOCKED";

/// The lock on slots that a statement changes.
const FOR_UPDATE: &str = "FOR UPDATE";

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
        /// Gives a statement other settings on MariaDB.
        set_statement(settings) "shared/_set_statement.sql"
        /// The slot of this connection on a server that is not a cluster, as an expression.
        own_slot() "shared/_own_slot.sql"
        /// A random slot, as an expression. `random` is a number from 0 on and less than 1.
        any_slot(random, slots) "shared/_any_slot.sql"
        /// The number of slots that the nodes of a cluster can divide evenly, as an expression.
        usable_slots_of(slots) "shared/_usable_slots.sql"
        /// Sets `v_steps`: whether each slot is changed by a statement of its own.
        find_steps() "shared/_find_steps.sql"
        /// Sets `v_steps` to TRUE outside a transaction.
        steps_unless_transaction() "shared/_steps_unless_transaction.sql"
        /// Declares the handler of a step: it ends the block, so that the step is repeated.
        repeat_step() "shared/_repeat_step.sql"
        /// Executes statements for each slot `v_next`, from the highest on, and the first slot at last. They set `v_slot` to
        /// `v_next` when the step must not be repeated.
        in_steps(statements) "shared/_in_steps.sql"
        /// A step that deletes a slot.
        delete_slot() "shared/_delete_slot.sql"
        /// A step that sets a slot of a named counter.
        reset_slot() "counters/_reset_slot.sql"
        /// A step that sets a slot of a record.
        reset_slot_of_record() "slotted_counters/_reset_slot.sql"
        /// A step that moves the count of a slot of a record to the first one.
        compact_slot() "slotted_counters/_compact_slot.sql"
        /// Reads the slot that comes after `v_slot` into `v_next`, from the highest on.
        next_slot() "shared/_next_slot.sql"
        /// The slot of this connection on a node of a cluster, as an expression. `usable` is a number of usable slots.
        node_slot(usable) "shared/_node_slot.sql"
        /// Declares `v_slot`: the slot of this connection on a node of a cluster.
        slot_of_node() "shared/_slot_of_node.sql"
        /// Changes the slot of this connection of a named counter on a node of a cluster.
        update_on_node(change) "counters/_update_on_node.sql"
        /// Adds to the slot of this connection of a record on a node of a cluster.
        upsert_on_node(amount) "slotted_counters/_upsert_on_node.sql"
        /// Moves the counts of `slots`, a derived table, into the slot `into`, which is one of them.
        fold(slots, into) "shared/_fold.sql"
        /// Deletes those of `slots`, a derived table, that a fold has moved.
        delete_folded(slots) "slotted_counters/_delete_folded.sql"
        /// Deletes the retired slots that a fold has moved. `retired` is their number.
        delete_retired(retired) "counters/_delete_retired.sql"
        /// Deletes all slots of a counter or record.
        delete_slots() "shared/_delete_slots.sql"
        /// The numbers from 1 to `limit` and some more, as a derived table.
        numbers(limit) "shared/_numbers.sql"
        /// Creates a named counter. `most` is the maximum of `slots` as an expression that can be repeated.
        create_counter(most, slots, value, description) "counters/_create_counter.sql"
        /// Sets the total of a named counter.
        reset(value, restart) "counters/_reset.sql"
        /// Gives a slot of a named counter a negative number, which no increment selects.
        retire_slot(slot) "counters/_retire_slot.sql"
        /// Takes `p_amount` from `slots`, a derived table, and spreads what is left over them evenly, as a derived table. It is
        /// empty if the slots have less than the amount.
        spread(slots) "shared/_spread.sql"
        /// The slots with the numbers of the JSON array `v_filled`, as a derived table that locks them.
        filled_slots() "shared/_filled_slots.sql"
        /// Reads the numbers of the slots that are not 0 into `v_filled`.
        read_filled() "shared/_read_filled.sql"
        /// Takes `p_amount` from `slots`, a derived table, if they have it.
        take_from(slots) "shared/_take_from.sql"
        /// Takes `p_amount` from all slots, if they have it, and marks the counter as one without a negative slot.
        take_from_all() "counters/_take_from_all.sql"
        /// Deletes the mark of a counter without a negative slot.
        delete_mark() "counters/_delete_mark.sql"
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
        /// The sums of the amounts of a JSON array for each key, as a derived table. `check` also selects whether all entries
        /// of a key are valid.
        sums(source, check) "shared/_sums.sql"
        /// The condition that an entry of a JSON array is valid.
        entry_fits() "shared/_entry_fits.sql"
        /// Adds the amounts of a JSON array to the records, and creates the slots that do not exist.
        /// `check` rejects an entry that is not valid with error 1048.
        upsert_many(source, slot, check) "slotted_counters/_upsert_many.sql"
        /// Adds the amounts of a JSON array of names, slots and amounts to these slots of named counters, if all exist.
        update_many(source, slot, counters) "counters/_update_many.sql"
        /// Selects the number of counters in a JSON array, an array of their names, slots and amounts, and the first entry
        /// of an unknown counter. `slot` is the slot as an expression with `v_slots`, `into` may be empty. `check` also selects
        /// whether all entries are valid.
        many_slots(source, slot, into, check) "counters/_many_slots.sql"
        /// Selects the first entry of a JSON array whose counter does not exist, with a locking read.
        missing_counter(source) "counters/_missing_counter.sql"
        /// Takes an amount from a slot of a record, if the slot has it.
        take_slot(amount, slot) "slotted_counters/_take_slot.sql"
        /// Creates the row that a sum is put into.
        first_row() "slotted_counters/_first_row.sql"
        /// Sets the total of a bounded counter or record.
        reset_bounded(value, restart) "bounded/_reset.sql"
        /// Moves the counts of a bounded record to slot 0.
        fold_record() "bounded/_fold_record.sql"
        /// Deletes the slots of a bounded record whose count is 0.
        delete_empty() "bounded/_delete_empty.sql"
        /// Moves the count of a slot of a bounded counter to slot 1, and gives the slot the negative of its number.
        fold_slot(slot) "bounded/_fold_slot.sql"
        /// Deletes a slot of a bounded counter that was folded.
        delete_folded_slot(slot) "bounded/_delete_folded_slot.sql"
        /// Creates the missing slots of a bounded counter.
        grow(slots) "bounded/_grow.sql"
        /// Reads the amount of the slot of the connection into `v_have`. `own` is the condition for the rows of the counter.
        read_own_slot(own) "bounded/_read_own_slot.sql"
        /// The distance of a slot from that of the connection, as an expression. Those of other nodes are farther.
        distance(own, slots) "bounded/_distance.sql"
        /// The CREATE TABLE statement of named counters.
        create_counters() "counters/counters.sql"
        /// The CREATE TABLE statement of counters keyed by record.
        create_slotted_counters() "slotted_counters/slotted_counters.sql"
    }

    /// All slots of a counter or record, locked from the highest to the first, in the order of increments: an increment
    /// that does not find its slot locks slot 1 next. The retired slots are the last: a resize gives a slot a lower
    /// number, so that a slot cannot move past this subquery.
    pub(super) fn all_slots(&self) -> String {
        self.locked_slots(self.ranges(), FOR_UPDATE, false)
    }

    /// The same slots, and a row 0.
    pub(super) fn all_slots_and_mark(&self) -> String {
        self.locked_slots(self.ranges(), FOR_UPDATE, true)
    }

    fn ranges(&self) -> &'static [Range<'static>] {
        if self.bounded() {
            if self.keyed() {
                &[("= 0", "", ""), ("> 0", ALL, "")]
            } else {
                &[("= 1", "", ""), ("> 1", ALL, ""), ("< 1", "", "")]
            }
        } else if self.keyed() {
            &[("> 0", ALL, ""), ("= 0", "", "")]
        } else {
            &[("> 1", ALL, ""), ("= 1", "", ""), ("< 1", "", "")]
        }
    }

    /// The slot of the connection and another one, without those that other transactions have locked.
    pub(super) fn two_unlocked_slots(&self) -> String {
        self.locked_slots(
            &[("= v_slot", "", SKIP), ("= v_other", "", SKIP)],
            FOR_UPDATE,
            false,
        )
    }

    /// The slots that no other transaction has locked, and the first slot.
    pub(super) fn unlocked_slots(&self) -> String {
        let ranges: &[_] = if self.keyed() {
            &[("> 0", ALL, SKIP), ("= 0", "", "")]
        } else {
            &[("> 1", ALL, SKIP), ("= 1", "", "")]
        };
        self.locked_slots(ranges, FOR_UPDATE, false)
    }

    /// The slot of the connection in a routine, as an expression.
    pub(super) fn slot_of_call(&self) -> String {
        if self.options().random() {
            self.any_slot("RAND()", self.slots())
        } else {
            self.node_slot(self.usable_slots(self.slots()))
        }
    }

    /// The slot `v_next` and the first one.
    pub(super) fn next_and_first(&self) -> String {
        self.locked_slots(&[("= v_next", "", ""), ("= 0", "", "")], FOR_UPDATE, false)
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
        self.locked_slots(
            &[(&format!("= {into}"), "", ""), ("< 1", retired, "")],
            FOR_UPDATE,
            false,
        )
    }

    /// The slot of an UPDATE of many counters, as an expression: the lowest one of the node if its slot is retired, and slot 1 if
    /// a counter has fewer slots than there are nodes.
    pub(super) fn slot_of_try(&self) -> String {
        let nodes = self.nodes();
        format!(
            "CASE v_tries
  WHEN 1 THEN entries.slot
  WHEN 2 THEN 1 + MOD(entries.slot - 1, {nodes})
  ELSE 1
END"
        )
    }

    /// The condition of the lowest slots of all nodes.
    pub(super) fn lowest_slots(&self) -> String {
        format!("counter_id BETWEEN 1 AND {}", self.nodes())
    }

    /// The lowest slot of this node, as an expression. A counter with at least as many slots as nodes has it.
    pub(super) fn first_slot_of_node(&self) -> String {
        format!("{}MOD({}, {})", self.counted_from(), self.node(), self.nodes())
    }

    /// The slots of these ranges as a derived table that locks them range by range, each up to a limit. Each range is
    /// followed by a slot of the same counter, or is read downwards: reading to the end of a range locks the row after it,
    /// which can belong to another counter (seen on MySQL 9.7 and MariaDB 10.11). MariaDB can read a range as the whole
    /// counter, and then locks also the slots that a resize has just retired (seen on 11.8). A limit ends both. Without
    /// LIMIT, the server ignores ORDER BY here.
    /// `mark` adds a row 0 with the amount 0.
    fn locked_slots(&self, ranges: &[Range<'_>], lock: &str, mark: bool) -> String {
        #[derive(Template)]
        #[template(path = "shared/_locked_slots.sql")]
        struct Part<'a> {
            table: &'a Table<'a>,
            ranges: &'a [Range<'a>],
            lock: &'a str,
            mark: bool,
        }
        fragment(&Part {
            table: self,
            ranges,
            lock,
            mark,
        })
    }

    /// Exempts a change from innodb_snapshot_isolation of MariaDB.
    pub(super) fn over_snapshot(&self) -> String {
        self.set_statement("innodb_snapshot_isolation=OFF")
    }

    /// The same, and from sql_safe_updates: MariaDB rejects a change of many slots otherwise (1175).
    pub(super) fn over_checks(&self) -> String {
        self.set_statement("innodb_snapshot_isolation=OFF, sql_safe_updates=OFF")
    }

    /// The same for a read, of a package of bounded counters: in a trigger, MariaDB locks what a SELECT reads.
    pub(super) fn over_snapshot_of_read(&self) -> String {
        if self.bounded() {
            self.over_snapshot()
        } else {
            String::new()
        }
    }

    /// The slots of a bounded counter or record, the first one first: whoever holds it holds the counter together.
    pub(super) fn first_and_others(&self) -> String {
        self.locked_slots(self.ranges_from_first(), FOR_UPDATE, false)
    }

    /// The same with shared locks.
    pub(super) fn first_and_others_shared(&self) -> String {
        self.locked_slots(self.ranges_from_first(), "LOCK IN SHARE MODE", false)
    }

    fn ranges_from_first(&self) -> &'static [Range<'static>] {
        if self.keyed() {
            &[("= 0", "", ""), ("> 0", ALL, "")]
        } else {
            &[("= 1", "", ""), ("> 1", ALL, "")]
        }
    }

    /// The first slot and those that no other transaction has locked, or all if `v_all` is TRUE.
    pub(super) fn gathered_slots(&self) -> String {
        let unlocked = ("> 1\n       AND NOT v_all", ALL, SKIP);
        let all = ("> 1\n       AND v_all", ALL, "");
        self.locked_slots(&[("= 1", "", ""), unlocked, all], FOR_UPDATE, false)
    }

    /// The same with shared locks, and the first slot only if `v_first` is TRUE.
    pub(super) fn first_if_found_and_others(&self) -> String {
        let ranges = [
            ("= 0\n       AND v_first", "", ""),
            (">= v_first", ALL_AND_FIRST, ""),
        ];
        self.locked_slots(&ranges, "LOCK IN SHARE MODE", false)
    }

    /// How many numbers slots of a bounded record can have.
    pub(super) fn all_numbers(&self) -> String {
        (self.options().setup_slots() + 1).to_string()
    }

    /// Slot 1 and another slot.
    pub(super) fn first_and(&self, slot: &str) -> String {
        self.locked_slots(
            &[("= 1", "", ""), (&format!("= {slot}"), "", "")],
            FOR_UPDATE,
            false,
        )
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

    /// The slot that a statement without a routine selects, as an expression.
    pub(super) fn slot_expression(&self) -> String {
        match (self.options().random(), self.options().slots) {
            // The server evaluates RAND() in a WHERE clause for each row.
            (true, _) if !self.keyed() => self.any_slot("?", self.slots()),
            (true, _) => self.any_slot("RAND()", self.slots()),
            (false, Slots::PerCounter) => self.node_slot(self.slots()),
            (false, Slots::Fixed(_)) => self.node_slot(self.usable_slots(self.slots())),
        }
    }

    /// The slot of this connection among `v_slots`, the number of slots that a counter was found with. It is NULL if the
    /// counter was created after the snapshot of the transaction. Every counter has slot 1.
    pub(super) fn slot_of_found(&self) -> String {
        let slots = match self.options().slots {
            Slots::PerCounter => "v_slots".to_owned(),
            Slots::Fixed(n) => n.to_string(),
        };
        let slot = if self.options().random() {
            self.any_slot("RAND()", slots)
        } else {
            self.node_slot(self.usable_slots(slots))
        };
        format!("COALESCE({slot}, 1)")
    }

    /// A string of the character set and collation of the package.
    pub(super) fn varchar(&self, characters: u32) -> String {
        text_type(format!("VARCHAR({characters})"), &self.options().collation)
    }
}
