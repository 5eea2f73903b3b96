//! What the calls of a load have added to each total, and the proof that no call is lost and that none counts twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, OnceLock};

use crate::support::root;

/// A counter or a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Counter(u32),
    Record(u32),
}

/// The amounts that a call or a transaction adds. A take adds a negative amount.
pub type Changes = Vec<(Key, i64)>;

/// Whether a call has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Counted,
    NotCounted,
    Unknown,
}

/// The numbers of the errors in the table "Errors and retry" of docs/guarantees.md, and what the table says about the call.
/// Errors that only a cluster returns are not included.
pub fn documented() -> &'static BTreeMap<u16, Fate> {
    static DOCUMENTED: OnceLock<BTreeMap<u16, Fate>> = OnceLock::new();
    DOCUMENTED.get_or_init(|| {
        let page = std::fs::read_to_string(root().join("docs/guarantees.md")).expect("the page");
        let (_, section) = page.split_once("\n## Errors and retry\n").expect("the section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let mut fates = BTreeMap::new();
        for row in section
            .lines()
            .filter(|line| line.starts_with("| ") && !line.contains("(clusters.md"))
        {
            let cells: Vec<_> = row.split(" | ").collect();
            let fate = match cells.get(1) {
                Some(cell) if cell.starts_with("unknown") => Fate::Unknown,
                Some(cell) if cell.starts_with("no") => Fate::NotCounted,
                _ => continue,
            };
            let numbers = cells[0].split(|c: char| !c.is_ascii_digit());
            let numbers: Vec<u16> = numbers
                .filter(|digits| digits.len() >= 3)
                .flat_map(str::parse)
                .collect();
            let numbers = match numbers[..] {
                [first, last] if cells[0] == format!("| {first} to {last}") => (first..=last).collect(),
                _ => numbers,
            };
            for number in numbers {
                // An error with several causes, such as 1317, is unknown if it is with one of them.
                let known = fates.entry(number).or_insert(fate);
                if fate == Fate::Unknown {
                    *known = fate;
                }
            }
        }
        assert!(fates.len() > 20, "the table of errors: {fates:?}");
        fates
    })
}

/// The sums of the amounts of one total.
#[derive(Debug, Default)]
struct Sums {
    acknowledged: i64,
    /// The sum of the positive amounts that may have counted.
    perhaps_added: i64,
    /// The sum of the negative amounts that may have counted.
    perhaps_taken: i64,
}

#[derive(Debug, Default)]
struct State {
    sums: BTreeMap<Key, Sums>,
    /// The number of acknowledged calls.
    acknowledged: u64,
    /// The number of calls that an error has ended, by error.
    failed: BTreeMap<String, u64>,
    /// The transactions that the server has acknowledged: their rows exist.
    committed: BTreeSet<u64>,
    /// The transactions that were rejected or rolled back: their rows do not exist.
    rejected: BTreeSet<u64>,
    /// The transactions that may have committed. Their rows tell whether they have.
    undecided: BTreeMap<u64, Changes>,
}

/// What the calls of a load have added to each total.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<State>);

impl Ledger {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Notes a call, or a transaction with the row of the application that it inserts. `error` is the error that ended it.
    pub fn note(&self, row: Option<u64>, changes: Changes, fate: Fate, error: Option<String>) {
        if let Some(error) = error {
            self.note_error(error);
        }
        let mut state = self.state();
        state.acknowledged += u64::from(fate == Fate::Counted);
        match (fate, row) {
            (Fate::Counted, Some(row)) => drop(state.committed.insert(row)),
            (Fate::NotCounted, Some(row)) => drop(state.rejected.insert(row)),
            (Fate::Unknown, Some(row)) => {
                state.undecided.insert(row, changes);
                return;
            }
            (_, None) => {}
        }
        for (key, amount) in changes {
            let sums = state.sums.entry(key).or_default();
            match fate {
                Fate::Counted => sums.acknowledged += amount,
                Fate::NotCounted => {}
                Fate::Unknown if amount > 0 => sums.perhaps_added += amount,
                Fate::Unknown => sums.perhaps_taken -= amount,
            }
        }
    }

    /// Notes an error of a call, also of one whose transaction continued.
    pub fn note_error(&self, error: String) {
        *self.state().failed.entry(error).or_default() += 1;
    }

    /// The number of acknowledged calls.
    pub fn acknowledged(&self) -> u64 {
        self.state().acknowledged
    }

    /// The number of calls that an error has ended.
    pub fn failed(&self, error: &str) -> u64 {
        self.state().failed.get(error).copied().unwrap_or_default()
    }

    /// Compares the totals, and the rows of the application, with the calls. Returns what differs.
    pub fn check(&self, totals: &BTreeMap<Key, i64>, rows: &BTreeSet<u64>) -> Vec<String> {
        let mut state = self.state();
        let mut problems = Vec::new();
        for (row, changes) in std::mem::take(&mut state.undecided) {
            if rows.contains(&row) {
                state.committed.insert(row);
                for (key, amount) in changes {
                    state.sums.entry(key).or_default().acknowledged += amount;
                }
            } else {
                state.rejected.insert(row);
            }
        }
        let missing: Vec<_> = state.committed.difference(rows).collect();
        if !missing.is_empty() {
            problems.push(format!("committed transactions are missing: {missing:?}"));
        }
        let unexpected: Vec<_> = rows.intersection(&state.rejected).collect();
        if !unexpected.is_empty() {
            problems.push(format!("rejected transactions exist: {unexpected:?}"));
        }
        for (key, total) in totals {
            let sums = &state.sums[key];
            let (least, most) = (sums.acknowledged - sums.perhaps_taken, sums.acknowledged + sums.perhaps_added);
            if !(least..=most).contains(total) {
                problems.push(format!("the total of {key:?} is {total}, expected {least} to {most}"));
            }
        }
        problems
    }
}
