//! What the counters of a package belong to.

use super::column::{Columns, TableColumn};
use super::key::Key;
use super::values::Slots;

/// What the counters of a package belong to, with what only such counters have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Counters with a name. counter_setup creates their slots.
    Named {
        /// Of each counter.
        slots: Slots,
    },
    /// Counters with a name that never fall below 0. Each has its own number of slots.
    Bounded,
    /// Counters of records, identified by key columns. The first increment of a slot inserts the slot.
    Records {
        /// The columns that identify a record.
        key: Key,
        /// Of each record.
        slots: u32,
    },
    /// Counts of records that a roll-up moves into a column of another table.
    Column {
        /// The column.
        column: TableColumn,
        /// A unique key of its table.
        key: Key,
        /// The columns with ON UPDATE CURRENT_TIMESTAMP, which a roll-up does not change.
        keep: Columns,
        /// Of each record.
        slots: u32,
    },
}

impl Subject {
    /// The name of the packages with such counters.
    pub fn package(&self) -> &'static str {
        match self {
            Self::Named { slots: Slots::PerCounter } => "counters",
            Self::Named { slots: Slots::Fixed(_) } => "counters-fixed",
            Self::Bounded => "bounded_counters",
            Self::Records { .. } | Self::Column { .. } => "slotted_counters",
        }
    }

    /// The number of slots of a counter.
    pub fn slots(&self) -> Slots {
        match self {
            Self::Named { slots } => *slots,
            Self::Bounded => Slots::PerCounter,
            Self::Records { slots, .. } | Self::Column { slots, .. } => Slots::Fixed(*slots),
        }
    }

    /// Gives all counters a number of slots. Bounded counters have numbers of their own.
    pub fn set_slots(&mut self, number: u32) {
        match self {
            Self::Named { slots } => *slots = Slots::Fixed(number),
            Self::Bounded => {}
            Self::Records { slots, .. } | Self::Column { slots, .. } => *slots = number,
        }
    }
}
