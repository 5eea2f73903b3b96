//! The errors that the routines signal. This enum is the only source of the numbers and messages: the SIGNAL
//! statements, the manuals, the table of errors in the documents and the tests are generated from it.

use super::ident::SqlStr;
use super::{ENTRIES_MAX, Kind, MAX_SLOTS, NAME_MAX, Options, RECORDS_MAX, SECONDS_MAX, Slots};

/// The maximum length of a MESSAGE_TEXT, in characters. In strict mode a longer text raises error 1648 in place of
/// the signalled one. Source: MySQL manual, "SIGNAL Statement".
pub const MESSAGE_MAX: usize = 128;

/// An error that a routine signals, with SQLSTATE 45000. The value is the MYSQL_ERRNO, from 30001 to 30099: PyMySQL, aiomysql and MariaDB
/// Connector/J read the number as a signed 16-bit integer, so that a number above 32767 arrives as a negative one (measured).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PackageError {
    /// The counter's name is NULL, empty, or only spaces.
    NameEmpty = 30001,
    /// The counter's name is longer than the column.
    NameTooLong = 30002,
    /// No counter has this name.
    UnknownCounter = 30003,
    /// A counter has this name already.
    CounterExists = 30004,
    /// The number of slots is below 1, above [`MAX_SLOTS`], or NULL in a resize.
    SlotsOutOfRange = 30005,
    /// The number of slots is not the fixed one.
    SlotsFixed = 30006,
    /// The amount is NULL.
    AmountNull = 30007,
    /// The total exceeds the range of BIGINT.
    TotalOutOfRange = 30008,
    /// The argument for a key column is NULL.
    KeyNull = 30009,
    /// The argument for a key column is out of range, too long, or for BINARY too short.
    KeyMisfit = 30010,
    /// The number of seconds is NULL, negative, or above [`SECONDS_MAX`].
    SecondsOutOfRange = 30011,
    /// The number of records is below 1 or above [`RECORDS_MAX`].
    RecordsOutOfRange = 30012,
    /// The column of a roll-up cannot store a total, or a trigger of its table rejects it.
    TotalRejected = 30013,
    /// The argument is NULL, not JSON, not an array, or has more than [`ENTRIES_MAX`] entries.
    NotArray = 30014,
    /// An entry of the array is not a key and an amount.
    EntryMisfit = 30015,
    /// The total is less than the amount.
    NotEnough = 30016,
    /// The amount is NULL or less than 1.
    AmountNotPositive = 30017,
    /// The number of slots is less than the number of nodes of the cluster.
    SlotsOfNodes = 30018,
    /// The value is negative, of a bounded counter.
    ValueNegative = 30019,
    /// The amount of an entry is negative, of a bounded counter.
    EntryNegative = 30020,
}

/// The variable part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The message has no variable part.
    None,
    /// The counter's name in quotes, known when the routine is called.
    Name,
    /// The number of slots in the call.
    Slots,
    /// The name of a column, known when the package is rendered.
    Column,
    /// The position of an entry in the call, from 1.
    Entry,
    /// The total and the counter's name.
    Left,
    /// The number of nodes of the cluster.
    Nodes,
    /// The column, the record and the message of the server.
    Rejected,
}

impl PackageError {
    /// All errors, in the order of their numbers.
    pub const ALL: [Self; 20] = [
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
        Self::TotalRejected,
        Self::NotArray,
        Self::EntryMisfit,
        Self::NotEnough,
        Self::AmountNotPositive,
        Self::SlotsOfNodes,
        Self::ValueNegative,
        Self::EntryNegative,
    ];

    /// The MYSQL_ERRNO.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The message without the routine's name: the text before the variable part, the variable part, the text after it.
    pub fn sentence(self, options: &Options) -> (String, Detail, &'static str) {
        let plain = |text: String| (text, Detail::None, "");
        match self {
            Self::NameEmpty => plain("p_counter_name is NULL or empty".into()),
            Self::NameTooLong => plain(format!("p_counter_name is longer than {NAME_MAX} characters")),
            Self::UnknownCounter => ("unknown counter ".into(), Detail::Name, ""),
            Self::CounterExists if options.kind == Kind::SlottedCounters => {
                plain("the record already has a counter".into())
            }
            Self::CounterExists => ("counter ".into(), Detail::Name, " already exists"),
            Self::SlotsOutOfRange => {
                let head = format!("p_slots must be between 1 and {MAX_SLOTS}, not ");
                (head, Detail::Slots, "")
            }
            Self::SlotsOfNodes => {
                let head = "p_slots must be at least ".into();
                (head, Detail::Nodes, " on this cluster")
            }
            Self::SlotsFixed => {
                let fixed = match options.slots {
                    Slots::Fixed(n) => n.to_string(),
                    Slots::PerCounter => "N".into(),
                };
                let head = format!("p_slots must be NULL or {fixed}, not ");
                (head, Detail::Slots, "")
            }
            Self::AmountNull => plain("p_amount is NULL".into()),
            Self::TotalOutOfRange if options.kind == Kind::SlottedCounters => {
                plain("the total exceeds the range of BIGINT".into())
            }
            Self::TotalOutOfRange => {
                let tail = " exceeds the range of BIGINT";
                ("total of counter ".into(), Detail::Name, tail)
            }
            Self::KeyNull => ("column '".into(), Detail::Column, "' cannot be NULL"),
            Self::KeyMisfit => {
                let head = "value out of range or of wrong length for column '";
                (head.into(), Detail::Column, "'")
            }
            Self::SecondsOutOfRange => plain(format!("p_seconds must be between 0 and {SECONDS_MAX}")),
            Self::RecordsOutOfRange => plain(format!("p_records must be between 1 and {RECORDS_MAX}")),
            Self::TotalRejected => (String::new(), Detail::Rejected, ""),
            Self::NotArray => plain(format!(
                "p_amounts must be a JSON array of at most {ENTRIES_MAX} entries"
            )),
            Self::EntryMisfit | Self::EntryNegative => {
                let tail = match options.kind {
                    _ if self == Self::EntryNegative => " must have an amount of at least 0",
                    Kind::Counters => " must be an array of a name and an integer",
                    Kind::SlottedCounters => " must be an array of the key and an integer",
                };
                ("entry ".into(), Detail::Entry, tail)
            }
            Self::NotEnough => ("not enough: ".into(), Detail::Left, ""),
            Self::AmountNotPositive => plain("p_amount must be at least 1".into()),
            Self::ValueNegative => plain("p_value must be at least 0".into()),
        }
    }

    /// What the caller can do, for the table of errors in the documents.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::NameEmpty => "Pass a name with at least one character that is not a space.",
            Self::NameTooLong => "Pass a shorter name.",
            Self::UnknownCounter => "Create the counter with counter_setup, or correct the name.",
            Self::CounterExists => "Use the existing counter, or delete it first.",
            Self::SlotsOfNodes => {
                "Pass at least this number, or install the package with more slots: each node needs a slot of its own."
            }
            Self::SlotsFixed => "Pass NULL or that number, or install the package with per-counter slots.",
            Self::AmountNull => "Pass a number. 0 changes nothing.",
            Self::TotalOutOfRange => "Read SUM(counter) from the table, and reset the counter.",
            Self::KeyNull => "Pass a value for every column of the key.",
            Self::KeyMisfit => "Pass a value that the column can store.",
            Self::TotalRejected => {
                "The counts stay in the slots, and the other records are moved. Change the type of the column, or reset the record."
            }
            Self::NotArray => "Pass an array, in several calls if it is longer.",
            Self::NotEnough => "Take less, or put an amount in with bounded_counter_add.",
            Self::ValueNegative => "Pass 0 or a greater number: a bounded counter has no negative total.",
            Self::EntryNegative => "Take the amount with a call of bounded_counter_take.",
            Self::AmountNotPositive => "Pass a number from 1. To put an amount in, call bounded_counter_add.",
            Self::EntryMisfit => "Correct the entry. The first entry has the number 1.",
            Self::SlotsOutOfRange | Self::SecondsOutOfRange | Self::RecordsOutOfRange => {
                "Pass a number in this range."
            }
        }
    }
}

/// The parts of a SIGNAL statement.
pub struct Signal {
    /// The MYSQL_ERRNO.
    pub number: u16,
    /// The message as an SQL expression.
    pub message: String,
    /// Whether `message` must be assigned to a variable first: SIGNAL accepts only literals and variables.
    pub composed: bool,
}

/// Which routine a message begins with.
#[derive(Debug, Clone, Copy)]
pub enum Speaker<'a> {
    /// The routine with this name.
    Named(&'a str),
    /// The one whose name is in the parameter `p_routine`. The name has at most this number of characters.
    Parameter(usize),
}

/// The SIGNAL of `error` in a routine. `about` is the name of the column of an error about one, or the variable with the name of the
/// counter, which is `p_counter_name` if it is None. These names are truncated if the message would become longer than [`MESSAGE_MAX`].
pub fn signal(options: &Options, speaker: Speaker<'_>, error: PackageError, about: Option<&str>) -> Signal {
    let (head, detail, tail) = error.sentence(options);
    let (begin, head, routine) = match speaker {
        Speaker::Named(routine) => (None, format!("{routine}: {head}"), 0),
        Speaker::Parameter(length) => (Some("p_routine"), format!(": {head}"), length),
    };
    let room = MESSAGE_MAX.saturating_sub(routine + head.chars().count() + tail.chars().count());
    let text = |text: String| SqlStr(text).to_string();
    let mut parts: Vec<String> = begin.into_iter().map(ToOwned::to_owned).collect();
    match detail {
        Detail::None => parts.push(text(head + tail)),
        Detail::Column => {
            let column = about.expect("an error about a column names it");
            let column: String = column.chars().take(room).collect();
            parts.push(text(format!("{head}{column}{tail}")));
        }
        Detail::Name => {
            let name = about.unwrap_or("p_counter_name");
            parts.push(text(format!("{head}'")));
            parts.push(format!("LEFT({name}, {})", room.saturating_sub("''".len())));
            parts.push(text(format!("'{tail}")));
        }
        Detail::Left if options.kind == Kind::SlottedCounters => {
            parts.extend([text(head), "v_total".into(), text(" left".into())]);
        }
        Detail::Left => {
            let name = room.saturating_sub("-92233720368547758080000 left of ''".len());
            let name = format!("LEFT(p_counter_name, {name})");
            parts.extend([
                text(head),
                "v_total".into(),
                text(" left of '".into()),
                name,
                "''''".into(),
            ]);
        }
        Detail::Entry => parts.extend([text(head), "v_entry".into(), text(tail.into())]),
        Detail::Rejected => parts.extend([text(head), "v_rejected".into()]),
        Detail::Nodes => parts.extend([
            text(head),
            "@@GLOBAL.auto_increment_increment".into(),
            text(tail.into()),
        ]),
        Detail::Slots => parts.extend([text(head), "COALESCE(p_slots, 'NULL')".into()]),
    }
    let composed = parts.len() > 1;
    let message = if composed {
        format!("CONCAT({})", parts.join(", "))
    } else {
        parts.concat()
    };
    Signal {
        number: error.number(),
        message,
        composed,
    }
}
