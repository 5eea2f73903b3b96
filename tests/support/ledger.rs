//! What the calls of a load have added to each total, and the proof that no call is lost and that none counts twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, OnceLock};

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
        let page = std::fs::read_to_string(super::root().join("docs/guarantees.md")).expect("the page");
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

/// The sums of one total.
#[derive(Debug, Default)]
struct Sums {
    /// The total that the last check has read.
    checked: i64,
    /// The sum of the acknowledged amounts since then.
    acknowledged: i64,
    /// The sum of the positive amounts that may have counted since then.
    perhaps_added: i64,
    /// The sum of the negative amounts that may have counted since then.
    perhaps_taken: i64,
}

/// The number of calls by their result.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    pub acknowledged: u64,
    pub rolled_back: u64,
    /// By error.
    pub rejected: BTreeMap<String, u64>,
    /// By error.
    pub unknown: BTreeMap<String, u64>,
    /// The amounts that are missing in the totals. A transaction that is missing counts as 1 more.
    pub lost: u64,
    /// The amounts that the totals have in excess. A transaction that was rejected and exists counts as 1 more.
    pub doubled: u64,
}

impl Calls {
    /// The number of all calls.
    pub fn attempted(&self) -> u64 {
        let failed = self.rejected.values().chain(self.unknown.values()).sum::<u64>();
        self.acknowledged + self.rolled_back + failed
    }

    /// Adds other calls.
    pub fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.rolled_back += other.rolled_back;
        self.lost += other.lost;
        self.doubled += other.doubled;
        for (sums, more) in [
            (&mut self.rejected, &other.rejected),
            (&mut self.unknown, &other.unknown),
        ] {
            for (error, calls) in more {
                *sums.entry(error.clone()).or_default() += calls;
            }
        }
    }
}

#[derive(Debug, Default)]
struct State {
    sums: BTreeMap<Key, Sums>,
    calls: Calls,
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
        let mut state = self.state();
        match (fate, error) {
            (Fate::Counted, _) => state.calls.acknowledged += 1,
            (Fate::NotCounted, None) => state.calls.rolled_back += 1,
            (Fate::NotCounted, Some(error)) => *state.calls.rejected.entry(error).or_default() += 1,
            (Fate::Unknown, error) => *state.calls.unknown.entry(error.unwrap_or_default()).or_default() += 1,
        }
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

    /// Notes a call of a transaction that was rejected while the transaction continued.
    pub fn note_rejected(&self, error: String) {
        *self.state().calls.rejected.entry(error).or_default() += 1;
    }

    /// The number of acknowledged calls.
    pub fn acknowledged(&self) -> u64 {
        self.state().calls.acknowledged
    }

    /// The number of calls that an error has ended.
    pub fn failed(&self, error: &str) -> u64 {
        let state = self.state();
        let calls = |calls: &BTreeMap<String, u64>| calls.get(error).copied().unwrap_or_default();
        calls(&state.calls.rejected) + calls(&state.calls.unknown)
    }

    /// The calls since the last one of this function.
    pub fn take_calls(&self) -> Calls {
        std::mem::take(&mut self.state().calls)
    }

    /// Compares the totals, and the rows of the application, with the calls. Returns what differs. The next check starts
    /// with these totals.
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
        let missing: Vec<_> = state.committed.difference(rows).copied().collect();
        let unexpected: Vec<_> = rows.intersection(&state.rejected).copied().collect();
        state.calls.lost += missing.len() as u64;
        state.calls.doubled += unexpected.len() as u64;
        if !missing.is_empty() {
            problems.push(format!("committed transactions are missing: {missing:?}"));
        }
        if !unexpected.is_empty() {
            problems.push(format!("rejected transactions exist: {unexpected:?}"));
        }
        state.committed.clear();
        state.rejected.clear();

        for key in totals.keys() {
            state.sums.entry(*key).or_default();
        }
        let State { sums, calls, .. } = &mut *state;
        for (key, sums) in sums {
            let known = sums.checked + sums.acknowledged;
            let (least, most) = (known - sums.perhaps_taken, known + sums.perhaps_added);
            let total = totals.get(key).copied().unwrap_or_default();
            calls.lost += u64::try_from(least - total).unwrap_or_default();
            calls.doubled += u64::try_from(total - most).unwrap_or_default();
            if !(least..=most).contains(&total) {
                problems.push(format!(
                    "the total of {key:?} is {total}, expected {least} to {most}"
                ));
            }
            *sums = Sums {
                checked: total,
                ..Sums::default()
            };
        }
        problems
    }
}
