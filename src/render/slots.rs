//! The slots of a counter or record as a derived table that locks them in an order.

use askama::Template;

use super::fragment;
use super::table::Table;
use crate::package::MAX_SLOTS;

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

impl Table<'_> {
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
}
