//! The page of recommendations.

use askama::Template;

use super::{Bar, Environment, property};
use crate::advise::{Advice, CannotSee, Verdict, Watched};
use crate::bench::GROUND;
use crate::number::{count, rounded, thousands};

/// The number of bars and of counters in the table, at most.
const BARS: usize = 20;
const COUNTERS: usize = 100;

/// The characters of a name in the sentence, at most.
const NAME: usize = 40;

/// What the page is about.
#[derive(Debug, Clone, Copy)]
pub struct Advised<'a> {
    /// The server and the client, by property.
    pub environment: &'a [(&'static str, String)],
    /// The observed load.
    pub watched: &'a Watched,
    /// The recommendations for it.
    pub advice: &'a [Advice],
    /// The tables of counters whose engine is not InnoDB.
    pub not_innodb: &'a [String],
    /// Says what to do, such as `grow to 257 slots`.
    pub action: fn(Verdict) -> String,
}

#[derive(Template)]
#[template(path = "report/advise.html")]
struct Page<'a> {
    title: String,
    sentence: String,
    notes: Vec<String>,
    ground: [&'static str; 2],
    /// Those with the most sessions, of `waits` counters and rows.
    bars: Vec<Bar>,
    waits: usize,
    cannot_see: &'a [CannotSee],
    not_innodb: &'a [String],
    changes: Vec<Change<'a>>,
    /// The cells of each counter.
    counters: Vec<[String; 8]>,
    more: usize,
    environment: Environment<'a>,
    method: Vec<String>,
    limits: Vec<String>,
}

/// A recommended change.
struct Change<'a> {
    advice: &'a Advice,
    action: String,
    read: Option<String>,
}

/// The page of recommendations.
pub fn page(of: &Advised<'_>) -> String {
    let mut counters: Vec<_> = of.watched.counters.iter().collect();
    counters.sort_by(|one, other| {
        let waiting = other.waiting.total_cmp(&one.waiting);
        waiting.then(other.counted.cmp(&one.counted))
    });
    let more = counters.len().saturating_sub(COUNTERS);
    let cells = counters.iter().take(COUNTERS).map(|one| {
        let advice = of.about(&one.subject());
        let read = advice.and_then(|advice| advice.read_us);
        [
            one.subject(),
            thousands(one.slots.into()),
            thousands(one.busy_slots.into()),
            format!("{:.1}", one.skew),
            thousands(one.counted as f64 / of.watched.seconds.max(1e-9)),
            format!("{:.1}", one.waiting),
            read.map_or_else(String::new, |(now, _)| thousands(now)),
            advice.map_or_else(String::new, |advice| (of.action)(advice.verdict)),
        ]
    });
    let page = Page {
        title: format!("Waits for counters on {}", property(of.environment, "server")),
        sentence: of.sentence(),
        notes: of.notes(),
        ground: GROUND,
        bars: of.bars(),
        waits: of.waits().len(),
        cannot_see: &of.watched.cannot_see,
        not_innodb: of.not_innodb,
        changes: of.changes().map(|advice| of.change(advice)).collect(),
        counters: cells.collect(),
        more,
        environment: of.environment,
        method: of.method(),
        limits: of.limits(),
    };
    let text = page.render().expect("a template of text renders");
    format!("{}\n", text.trim_end())
}

/// A name at the end of a sentence. A name can have hundreds of characters.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => format!("{name}."),
    }
}

impl<'a> Advised<'a> {
    /// The recommendations that change something.
    fn changes(&self) -> impl Iterator<Item = &'a Advice> {
        self.advice.iter().filter(|one| one.verdict.is_change())
    }

    fn about(&self, subject: &str) -> Option<&'a Advice> {
        self.advice.iter().find(|one| one.subject == subject)
    }

    /// The counters and rows that sessions waited for, as long as one decimal shows it. The first one has the most sessions.
    fn waits(&self) -> Vec<(String, f64)> {
        let counters = self
            .watched
            .counters
            .iter()
            .map(|one| (one.subject(), one.waiting));
        let rows = self.watched.rows.iter().map(|one| (one.subject(), one.waiting));
        let mut waits: Vec<_> = counters
            .chain(rows)
            .filter(|(_, waiting)| *waiting >= 0.05)
            .collect();
        waits.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        waits
    }

    fn seconds(&self) -> String {
        rounded(self.watched.seconds, 2).trim_end_matches(".0").to_owned()
    }

    /// What a manager needs to know.
    fn sentence(&self) -> String {
        let watched = self.watched;
        let all = watched.counters.len() + watched.rows.len();
        let seconds = self.seconds();
        let waits = self.waits();
        let mut sentence = match waits.as_slice() {
            [(first, _), rest @ ..] => {
                let which = if rest.is_empty() { ":" } else { ", most often for" };
                format!(
                    "Sessions wait for {} of {all} counters and rows{which} {}",
                    waits.len(),
                    shortened(first)
                )
            }
            [] if !watched.cannot_see.is_empty() => {
                let what: Vec<_> = watched.cannot_see.iter().map(|one| one.what.as_str()).collect();
                format!(
                    "No session was seen waiting in {seconds} s, but this could not be observed: {}.",
                    what.join(", ")
                )
            }
            [] if watched.row_lock_waits == 0 => format!("No session waited for a row lock in {seconds} s."),
            [] => format!("No session was seen waiting for a counter in {seconds} s."),
        };
        if !waits.is_empty() && !watched.cannot_see.is_empty() {
            sentence += " Not everything could be observed.";
        }
        let changes = self.changes().count() + self.not_innodb.len();
        sentence += &match changes {
            0 => " No change is recommended.".to_owned(),
            1 => " One change is recommended.".to_owned(),
            many => format!(" {many} changes are recommended."),
        };
        sentence
    }

    fn notes(&self) -> Vec<String> {
        let watched = self.watched;
        let (needed, rule) = watched.needed(None);
        let mut notes = vec![format!(
            "In {} s, at most {} were connected, and at most {} were running. The server had {}, of {} s in total.",
            self.seconds(),
            count(watched.connected.into(), "session"),
            thousands(watched.running.into()),
            count(watched.row_lock_waits, "row lock wait"),
            rounded(watched.row_lock_ms as f64 / 1000.0, 3),
        )];
        if !self.advice.is_empty() {
            notes.push(format!(
                "A hot counter of this server needs {}: {rule}.",
                count(needed.into(), "slot")
            ));
        }
        notes
    }

    fn bars(&self) -> Vec<Bar> {
        let waits = self.waits();
        let most = waits.first().map_or(1.0, |(_, waiting)| *waiting);
        let bar = |(subject, waiting): (String, f64)| {
            let advice = self.about(&subject);
            let changes = advice.is_some_and(|one| one.verdict.is_change());
            Bar {
                name: subject,
                class: if changes { "changes" } else { "stays" },
                length: 100.0 * waiting / most,
                spread: None,
                value: format!("{waiting:.1}"),
                range: advice.map_or_else(String::new, |one| (self.action)(one.verdict)),
            }
        };
        waits.into_iter().take(BARS).map(bar).collect()
    }

    fn change(&self, advice: &'a Advice) -> Change<'a> {
        let read = match advice.read_us {
            Some((now, Some(then))) => Some(format!(
                "A read takes {} us, and about {} us after the change.",
                thousands(now),
                thousands(then)
            )),
            _ => None,
        };
        let mut action = (self.action)(advice.verdict);
        if let Some(first) = action.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        Change { advice, action, read }
    }

    fn method(&self) -> Vec<String> {
        vec![
            format!(
                "The row lock waits of the server were queried {} in {} s. The number of waiting sessions of a counter is the \
                 average of these queries.",
                count(self.watched.samples.into(), "time"),
                self.seconds()
            ),
            "Slots in use, skew and counts per second are the difference of the slots at the beginning and at the end. The \
             skew is the busiest slot divided by the average slot."
                .to_owned(),
            "The time of a read is the median of several reads over this connection.".to_owned(),
            "The number of slots follows from a rule: four slots for each connection, or eight for each running session if \
             that is less, rounded up to a prime."
                .to_owned(),
            "Nothing was changed.".to_owned(),
        ]
    }

    fn limits(&self) -> Vec<String> {
        vec![
            format!("Other loads. These are {} s. Repeat it while the server has its usual load.", self.seconds()),
            "Waits that are shorter than the time between two queries. The number of row lock waits of the server has them \
             too."
                .to_owned(),
            "Rows for which no session waited.".to_owned(),
            "The gain of a change. slotted bench measures it, on a server of your choice.".to_owned(),
        ]
    }
}
