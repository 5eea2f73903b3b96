//! The page of a benchmark.

use askama::Template;

use super::{Bar, durability, property};
use crate::bench::{
    Comparison, Contender, GROUND, Kind, Layout, NotMeasured, Panel, Report, Setting, Summary,
};
use crate::bench::{cells, measured, on_nodes, panels, share, unit};
use crate::number::{count, rounded, separated, thousands};

#[derive(Template)]
#[template(path = "report/bench.html")]
struct Page<'a> {
    title: String,
    sentence: String,
    notes: Vec<String>,
    ground: [&'static str; 2],
    contenders: Vec<Contender>,
    /// The bars of the setting that the sentence is about.
    setting: String,
    unit: &'static str,
    bars: Vec<Bar>,
    /// Each for a wide and for a narrow screen.
    charts: Vec<(Panel, Panel)>,
    /// How each contender counts.
    ways: Vec<(&'static str, &'static str)>,
    tables: Vec<Figures>,
    environment: &'a [(&'static str, String)],
    rounds: usize,
    method: Vec<String>,
    limits: Vec<String>,
    not_measured: &'a [NotMeasured],
}

/// The table of a setting.
struct Figures {
    title: String,
    names: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// The page of a report, which must have a comparison.
pub fn page(report: &Report) -> String {
    let comparisons = &report.comparisons;
    let last = main(comparisons);
    let (Some(last), Some(first)) = (last, comparisons.first()) else {
        return String::new();
    };
    let rounds = last.summaries.iter().map(|one| one.rounds).max().unwrap_or(0);
    let contenders = measured(comparisons);
    let page = Page {
        title: format!("Counters on {}", property(&report.environment, "server")),
        sentence: sentence(last),
        notes: notes(last),
        ground: GROUND,
        setting: last.setting.to_string(),
        unit: unit(&last.setting),
        bars: bars(last),
        charts: panels(comparisons, Layout::WIDE)
            .into_iter()
            .zip(panels(comparisons, Layout::NARROW))
            .collect(),
        ways: contenders.iter().map(|one| (one.name, one.description)).collect(),
        contenders,
        tables: comparisons.iter().map(figures).collect(),
        environment: &report.environment,
        rounds,
        method: method(comparisons, &first.setting, rounds),
        limits: limits(report, &last.setting, rounds),
        not_measured: &report.not_measured,
    };
    let text = page.render().expect("a template of text renders");
    format!("{}\n", text.trim_end())
}

/// The comparison that the page begins with: the one with the most nodes, of these the one with the
/// most connections, and of these the one with the most slots.
fn main(comparisons: &[Comparison]) -> Option<&Comparison> {
    comparisons
        .iter()
        .max_by_key(|one| (one.setting.nodes, one.setting.connections, one.setting.slots))
}

/// The contenders that the sentence is about, as far as they were measured.
struct Found<'a> {
    row: Option<&'a Summary>,
    /// The first package in the order of the report.
    slots: Option<&'a Summary>,
    /// Of several packages, the one with the highest rate.
    fastest: Option<&'a Summary>,
    uncontended: Option<&'a Summary>,
    /// All contenders take from a stock.
    takes: bool,
}

impl<'a> Found<'a> {
    fn of(summaries: &'a [Summary]) -> Self {
        let named = |name: &str| summaries.iter().find(|one| one.name == name);
        let row = |name: &str| ["single-row", "stock-row"].contains(&name);
        let kind = |one: &Summary| Contender::named(one.name).map(|one| one.kind);
        let packages = || {
            summaries
                .iter()
                .filter(move |one| matches!(kind(one), Some(Kind::Ours | Kind::Extra)) && !row(one.name))
        };
        let stock = ["uncontended", "stock-row", "counter-take", "record-take"];
        Self {
            row: summaries.iter().find(|one| row(one.name)),
            slots: packages().next(),
            fastest: packages()
                .max_by(|one, other| one.per_second.total_cmp(&other.per_second))
                .filter(|_| packages().count() > 1),
            uncontended: named("uncontended"),
            takes: summaries.iter().all(|one| stock.contains(&one.name))
                && summaries.iter().any(|one| one.name != "uncontended"),
        }
    }
}

impl Found<'_> {
    /// Whether no contender is faster than the uncontended one. Sometimes one is, because rates vary.
    fn is_most(&self, summaries: &[Summary]) -> bool {
        let rates = summaries.iter().map(|one| one.per_second);
        self.uncontended
            .is_some_and(|most| most.per_second >= rates.fold(0.0, f64::max))
    }
}

/// What a manager needs to know: the rate of one row, of a counter with slots, and without lock waits.
fn sentence(Comparison { setting, summaries }: &Comparison) -> String {
    let found = Found::of(summaries);
    let rates: Vec<f64> = [found.row, found.slots, found.uncontended]
        .into_iter()
        .flatten()
        .map(|one| one.per_second)
        .collect();
    // Two digits, if they tell the rates apart.
    let digits = |digits| {
        let mut texts: Vec<_> = rates.iter().map(|&rate| rounded(rate, digits)).collect();
        texts.sort_unstable();
        texts.dedup();
        texts.len() == rates.len()
    };
    let digits = if digits(2) { 2 } else { 3 };
    let number = |one: &Summary| rounded(one.per_second, digits);
    let (before, after, of) = if found.takes {
        ("takes ", " times a second", "from")
    } else if unit(setting) == "increments/s" {
        ("counts ", " a second", "in")
    } else if unit(setting) == "reads/s" {
        ("reads a counter ", " times a second", "from")
    } else {
        ("answers ", " calls a second", "with")
    };
    let slots = format!("with {}", count(setting.slots.into(), "slot"));
    let server = if setting.nodes > 1 {
        format!("This cluster of {} nodes", setting.nodes)
    } else {
        "This server".into()
    };
    let said = match (found.row, found.slots) {
        (Some(row), Some(ours)) => {
            let (row, ours) = (number(row), number(ours));
            format!("{server} {before}{row}{after} {of} one row, and {ours} {slots}")
        }
        (Some(row), None) => format!("{server} {before}{}{after} {of} one row", number(row)),
        (None, Some(ours)) => format!("{server} {before}{}{after} {slots}", number(ours)),
        (None, None) => {
            let other = summaries.iter().find(|one| one.name != "uncontended");
            return match (other, found.uncontended) {
                (Some(other), _) => {
                    format!("{server} {before}{}{after} with {}.", number(other), other.name)
                }
                (None, Some(most)) => {
                    let server = server.replace("This", "this");
                    format!("Without lock waits, {server} {before}{}{after}.", number(most))
                }
                (None, None) => "Nothing was measured.".into(),
            };
        }
    };
    match found.uncontended {
        None => format!("{said}."),
        Some(most) if found.is_most(summaries) => format!("{said}. The most it can do is {}.", number(most)),
        Some(other) => format!("{said}. With a row for each connection, it is {}.", number(other)),
    }
}

/// The load of the sentence, and what its numbers are.
fn notes(Comparison { setting, summaries }: &Comparison) -> Vec<String> {
    let found = Found::of(summaries);
    let connections = count(setting.connections.into(), "connection");
    let did = if found.takes {
        "took from"
    } else if setting.reads == 0.0 {
        "incremented"
    } else {
        "used"
    };
    let counters = match setting.counters {
        1 => "one counter".to_owned(),
        many => count(many.into(), "counter"),
    };
    let at_once = if setting.connections == 1 {
        ""
    } else {
        " at the same time"
    };
    let each = match setting.hold {
        Some(hold) => format!("in transactions of {} ms", hold.as_millis()),
        None => "each call in a transaction of its own".into(),
    };
    let on_nodes = on_nodes(setting.nodes);
    let mut notes = vec![format!(
        "{connections}{on_nodes} {did} {counters}{at_once}, {each}."
    )];
    if setting.nodes > 1 {
        let rejected: Vec<_> = summaries
            .iter()
            .filter(|one| !one.rejected.is_empty())
            .map(|one| format!("{} of {}", share(one.rejected_share), one.name))
            .collect();
        notes.push(if rejected.is_empty() {
            "The cluster rejected no call.".into()
        } else {
            format!(
                "Of the calls, the cluster rejected {}. All others succeeded.",
                rejected.join(", ")
            )
        });
    }
    let mut names = Vec::new();
    names.extend(found.row.map(|one| format!("one row is {}", one.name)));
    if let Some(ours) = found.slots {
        let times = ours.to_single_row.map_or_else(String::new, |ratio| {
            format!(" ({} times as fast as one row)", rounded(ratio, 2))
        });
        let slots = count(setting.slots.into(), "slot");
        names.push(format!("the counter with {slots} is {}{times}", ours.name));
    }
    if found.uncontended.is_some() {
        let what = if found.is_most(summaries) {
            "the most"
        } else {
            "a row for each connection"
        };
        names.push(format!(
            "{what} is uncontended, where no connection waits for another one"
        ));
    }
    if let [all @ .., last] = names.as_slice() {
        let first = all.iter().map(|one| format!("{one}, ")).collect::<String>();
        let and = if all.is_empty() { "" } else { "and " };
        notes.push(format!("Below, {first}{and}{last}."));
    }
    let other = found
        .fastest
        .filter(|one| Some(one.name) != found.slots.map(|one| one.name));
    notes.extend(other.map(|one| {
        format!(
            "The fastest of the ways with slots is {}: {} a second.",
            one.name,
            rounded(one.per_second, 3)
        )
    }));
    notes
}

fn bars(Comparison { summaries, .. }: &Comparison) -> Vec<Bar> {
    let most = summaries
        .iter()
        .map(|one| one.per_second.max(one.most_per_second))
        .fold(1.0, f64::max);
    let bar = |one: &Summary| {
        let (least, fastest) = (one.least_per_second, one.most_per_second);
        let several = one.rounds > 1;
        Bar {
            name: one.name.to_owned(),
            class: one.name,
            length: 100.0 * one.per_second / most,
            spread: several.then(|| (100.0 * least / most, 100.0 * (fastest - least) / most)),
            value: rounded(one.per_second, 3),
            range: if several {
                format!("{} to {}", rounded(least, 3), rounded(fastest, 3))
            } else {
                String::new()
            },
        }
    };
    summaries.iter().map(bar).collect()
}

fn figures(comparison: &Comparison) -> Figures {
    let (mut names, mut rows) = cells(comparison);
    names[0] = "contender";
    // In a terminal, the numbers have no commas. Names and error numbers are no amounts.
    for row in &mut rows {
        for (cell, name) in row.iter_mut().zip(&names).skip(1) {
            if *name != "errors" {
                *cell = separated(cell);
            }
        }
    }
    Figures {
        title: comparison.setting.to_string(),
        names,
        rows,
    }
}

fn method(comparisons: &[Comparison], setting: &Setting, rounds: usize) -> Vec<String> {
    let all = || comparisons.iter().flat_map(|one| &one.summaries);
    let done: u64 = all().map(|one| one.done).sum();
    let grown: i64 = all().map(|one| one.grown).sum();
    let several = rounds > 1;
    let mut method = vec![
        "Each connection sends a call as a prepared statement, waits for the answer, and sends the next call.".to_owned(),
        format!(
            "Each contender counted for {} s in a round, after a warm-up of {} s. The contenders took turns, so that other \
             work of the machine affects all of them.",
            setting.duration.as_secs_f64(),
            setting.warm_up().as_secs_f64()
        ),
        format!(
            "{} measured, after one that is not in the figures. {}",
            if several { format!("{} were", count(rounds as u64, "round")) } else { "One round was".into() },
            if several {
                "A rate is the median of the rounds, and its spread goes from the slowest to the fastest round. A ratio \
                 is computed in each round."
            } else {
                "The figures have no spread."
            }
        ),
    ];
    if grown == done as i64 {
        let nodes = if comparisons.iter().any(|one| one.setting.nodes > 1) {
            " on each node of the cluster"
        } else {
            ""
        };
        method.push(format!(
            "After each load, the total must have grown by the acknowledged amount{nodes}. It has: {} in all measured rounds.",
            thousands(done as f64)
        ));
    }
    method.push(
        "p50 and p99 are the times that 50 % and 99 % of the calls do not exceed. Row lock waits are those of the whole \
         server."
            .to_owned(),
    );
    method
}

fn limits(report: &Report, setting: &Setting, rounds: usize) -> Vec<String> {
    let environment = &report.environment;
    let mut limits = vec![
        "Your application. Its transactions contain other statements, which also take time and locks."
            .to_owned(),
        format!(
            "The next run. The spread is that of {} in one run. Another run can differ by more, and ratios differ less \
             than rates.",
            count(rounds as u64, "round")
        ),
    ];
    if property(environment, "client").contains("the server's machine") {
        limits.push(
            "A network. The client ran on the server's machine: both share its CPU, and a call has a short way.".to_owned(),
        );
    } else {
        limits.push(
            "A shorter way to the server. The time of a call includes the network between this client and the server."
                .to_owned(),
        );
    }
    if setting.counters == 1 {
        limits.push(
            "Many counters. If the connections spread over many counters, they wait less for one row, and slots gain less."
                .to_owned(),
        );
    }
    if setting.hold.is_none() {
        limits.push(
            "Long transactions. Here an increment commits at once. In a transaction that lasts longer, its lock is held \
             longer, and slots gain more."
                .to_owned(),
        );
    }
    if setting.reads == 0.0 {
        limits.push("Reads. A read takes longer with more slots; --read-ratio measures it.".to_owned());
    }
    if setting.duration.as_secs_f64() < 10.0 {
        limits.push(format!(
            "Hours of load. A load of {} s ends before the server has to write much of its buffer pool.",
            setting.duration.as_secs_f64()
        ));
    }
    limits.extend(durability(environment));
    limits
}
