//! The errors that the routines signal. This enum is the only source of their numbers and words: the SIGNALs in
//! the templates, the table in README and the tests are made from it.

use super::ident::SqlStr;
use super::{Kind, MAX_SLOTS, NAME_MAX, Options, RECORDS_MAX, SECONDS_MAX, Slots};

/// The most characters of a MESSAGE_TEXT. Beyond it strict mode replaces the error by 1648.
/// Source: MySQL manual, "SIGNAL Statement".
pub const MESSAGE_MAX: usize = 128;

/// One kind of error that a routine signals, with SQLSTATE 45000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PackageError {
    /// The counter's name is NULL, empty, or only spaces.
    NameEmpty,
    /// The counter's name does not fit the column.
    NameTooLong,
    /// No counter has this name.
    UnknownCounter,
    /// A counter has this name already.
    CounterExists,
    /// The number of slots is NULL where it may not be, below 1, or above the limit.
    SlotsOutOfRange,
    /// Another number of slots than the one that is hard-coded.
    SlotsFixed,
    /// The amount is NULL.
    AmountNull,
    /// The total does not fit BIGINT.
    TotalOutOfRange,
    /// A key column's argument is NULL.
    KeyNull,
    /// A key column's argument does not fit the column.
    KeyMisfit,
    /// The seconds to wait are NULL, negative, or more than a day.
    SecondsOutOfRange,
    /// The number of records is below 1 or above the limit.
    RecordsOutOfRange,
}

/// What a message names of the call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The text says it all.
    None,
    /// The counter's name, in quotes.
    Name,
    /// The number of slots that was asked for.
    Slots,
    /// A key column, known when the package is rendered.
    Column,
}

impl PackageError {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::NameEmpty,
        Self::NameTooLong,
        Self::UnknownCounter,
        Self::CounterExists,
        Self::SlotsOutOfRange,
        Self::SlotsFixed,
        Self::AmountNull,
        Self::TotalOutOfRange,
        Self::KeyNull,
        Self::KeyMisfit,
        Self::SecondsOutOfRange,
        Self::RecordsOutOfRange,
    ];

    /// The MYSQL_ERRNO. 50000 to 51999 are reserved for third parties (MySQL source, `errmsg` ranges).
    pub fn number(self) -> u16 {
        match self {
            Self::NameEmpty => 50001,
            Self::NameTooLong => 50002,
            Self::UnknownCounter => 50003,
            Self::CounterExists => 50004,
            Self::SlotsOutOfRange => 50005,
            Self::SlotsFixed => 50006,
            Self::AmountNull => 50007,
            Self::TotalOutOfRange => 50008,
            Self::KeyNull => 50009,
            Self::KeyMisfit => 50010,
            Self::SecondsOutOfRange => 50011,
            Self::RecordsOutOfRange => 50012,
        }
    }

    /// The message behind the routine's name: text, what is named of the call, text.
    pub fn sentence(self, options: &Options) -> (String, Detail, &'static str) {
        let plain = |text: String| (text, Detail::None, "");
        match self {
            Self::NameEmpty => plain("the counter name is NULL or empty".into()),
            Self::NameTooLong => plain(format!("the counter name is longer than {NAME_MAX} characters")),
            Self::UnknownCounter => ("unknown counter ".into(), Detail::Name, ""),
            Self::CounterExists => ("there already is a counter ".into(), Detail::Name, ""),
            Self::SlotsOutOfRange => (format!("slots must be 1 to {MAX_SLOTS}, not "), Detail::Slots, ""),
            Self::SlotsFixed => {
                let fixed = match options.slots {
                    Slots::Fixed(n) => n.to_string(),
                    Slots::PerCounter => "N".into(),
                };
                (format!("slots are fixed at {fixed}, not "), Detail::Slots, "")
            }
            Self::AmountNull => plain("the amount is NULL".into()),
            Self::TotalOutOfRange if options.kind == Kind::SlottedCounters => {
                plain("the total is beyond BIGINT".into())
            }
            Self::TotalOutOfRange => ("the total is beyond BIGINT for counter ".into(), Detail::Name, ""),
            Self::KeyNull => (String::new(), Detail::Column, " is NULL"),
            Self::KeyMisfit => (String::new(), Detail::Column, " does not fit its column"),
            Self::SecondsOutOfRange => plain(format!("seconds must be 0 to {SECONDS_MAX}")),
            Self::RecordsOutOfRange => plain(format!("records must be 1 to {RECORDS_MAX}")),
        }
    }

    /// What the caller can do about it; for the table in README.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::NameEmpty => "Give a name with at least one character that is not a space.",
            Self::NameTooLong => "Give a shorter name.",
            Self::UnknownCounter => "Create it with counter_setup, or correct the name.",
            Self::CounterExists => "Use the existing one, or delete it first.",
            Self::SlotsOutOfRange => "Give a number in the range.",
            Self::SlotsFixed => "Give NULL or that number, or install the package with slots per counter.",
            Self::AmountNull => "Give a number; 0 changes nothing.",
            Self::TotalOutOfRange => {
                "Read the total from counter_totals, which is DECIMAL, and reset the counter."
            }
            Self::KeyNull => "Give a value for every column of the key.",
            Self::KeyMisfit => "Give a value that the column can hold.",
            Self::SecondsOutOfRange | Self::RecordsOutOfRange => "Give a number in the range.",
        }
    }
}

/// A SIGNAL as a template writes it.
pub struct Signal {
    /// The MYSQL_ERRNO.
    pub number: u16,
    /// An SQL expression for the message: a literal, or one that names what was asked for.
    pub message: String,
    /// Whether `message` has to go through a variable, because SIGNAL takes only literals and variables.
    pub composed: bool,
}

/// The SIGNAL of `error` in the routine `routine`, about the key column `column` where it is about one. The name of a
/// counter is cut where the message would become longer than [`MESSAGE_MAX`].
pub fn signal(options: &Options, routine: &str, error: PackageError, column: &str) -> Signal {
    let (head, detail, tail) = error.sentence(options);
    let head = format!("{routine}: {head}");
    let number = error.number();
    let room = MESSAGE_MAX.saturating_sub(head.chars().count() + tail.chars().count() + 2);
    match detail {
        Detail::None => Signal {
            number,
            message: SqlStr(head + tail).to_string(),
            composed: false,
        },
        Detail::Name => Signal {
            number,
            message: format!(
                "CONCAT({}, LEFT(p_counter_name, {room}), {})",
                SqlStr(format!("{head}'")),
                SqlStr(format!("'{tail}"))
            ),
            composed: true,
        },
        Detail::Column => {
            let message: String = format!("{head}{column}{tail}")
                .chars()
                .take(MESSAGE_MAX)
                .collect();
            Signal {
                number,
                message: SqlStr(message).to_string(),
                composed: false,
            }
        }
        Detail::Slots => Signal {
            number,
            message: format!("CONCAT({}, COALESCE(p_slots, 'NULL'))", SqlStr(head)),
            composed: true,
        },
    }
}
