//! Reports as tables, bars, JSON and CSV. Pure.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_HORIZONTAL_ONLY};
use comfy_table::{CellAlignment, Table, TableStyle};
use serde_json::{Value, json};

use super::{Latency, Rejected, Setting, Summary};

/// The width of the longest bar, characters.
const BAR: usize = 48;

/// The result of a benchmark.
#[derive(Debug, Clone)]
pub struct Report {
    /// The server and the client, by property.
    pub environment: Vec<(&'static str, String)>,
    /// One for each setting.
    pub comparisons: Vec<Comparison>,
    /// What the account cannot measure.
    pub not_measured: Vec<NotMeasured>,
}

/// A contender or a figure that is not in the report.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NotMeasured {
    /// The name of the contender, or `sessions waiting`.
    pub what: String,
    /// The message of the server.
    pub because: String,
    /// What to do.
    pub remedy: String,
}

/// The result of all contenders for a setting.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The parameters of the loads.
    pub setting: Setting,
    /// One for each contender that was measured.
    pub summaries: Vec<Summary>,
}

/// A row for each contender, for a terminal.
pub fn table(comparison: &Comparison) -> String {
    drawn(comparison, UTF8_HORIZONTAL_ONLY, |heading| {
        // Two lines, because a terminal is narrow.
        heading
            .rsplit_once(' ')
            .map_or_else(|| heading.to_owned(), |(one, other)| format!("{one}\n{other}"))
    })
}

/// A row for each contender, in Markdown.
pub fn markdown(comparison: &Comparison) -> String {
    drawn(comparison, ASCII_MARKDOWN, str::to_owned)
}

/// A heading, and the cell of a contender. A column without cells is left out.
type Column = (&'static str, fn(&Setting, &Summary) -> Option<String>);

const COLUMNS: [Column; 15] = [
    ("lowest to highest", |_, one| {
        (one.rounds > 1).then(|| format!("{:.0} to {:.0}", one.least_per_second, one.most_per_second))
    }),
    ("of uncontended", |_, one| one.to_uncontended.map(percent)),
    ("to single-row", |_, one| one.to_single_row.map(times)),
    ("p50 ms", |_, one| one.increments.map(|of| ms(of.p50_ms))),
    ("p99 ms", |_, one| one.increments.map(|of| ms(of.p99_ms))),
    ("max ms", |_, one| one.increments.map(|of| ms(of.max_ms))),
    ("read p50 ms", |_, one| one.reads.map(|of| ms(of.p50_ms))),
    ("read p99 ms", |_, one| one.reads.map(|of| ms(of.p99_ms))),
    ("read max ms", |_, one| one.reads.map(|of| ms(of.max_ms))),
    ("server CPU us", |_, one| {
        one.server_cpu_us.map(|us| format!("{us:.0}"))
    }),
    ("row lock waits", |_, one| {
        one.row_lock_waits.map(|waits| waits.to_string())
    }),
    // On a private server, the number of waits is exact.
    ("sessions waiting", |_, one| {
        let sampled = one.waiting_sessions.filter(|_| one.row_lock_waits.is_none());
        sampled.map(|sessions| format!("{sessions:.1}"))
    }),
    ("behind ms", |_, one| one.behind_ms.map(|ms| format!("{ms:.0}"))),
    ("rejected", |setting, one| {
        (setting.nodes > 1 || !one.rejected.is_empty()).then(|| share(one.rejected_share))
    }),
    ("errors", |_, one| (!one.rejected.is_empty()).then(|| errors(one))),
];

/// A share of the uncontended case.
pub(super) fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

/// A ratio to another contender.
pub(super) fn times(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

fn ms(ms: f64) -> String {
    if ms < 1.0 {
        format!("{ms:.3}")
    } else {
        format!("{ms:.1}")
    }
}

/// The share of the rejected calls. A share above 0 is not rounded to 0.
pub(crate) fn share(of_calls: f64) -> String {
    let percent = of_calls * 100.0;
    if percent == 0.0 {
        "0 %".into()
    } else if percent < 0.1 {
        "<0.1 %".into()
    } else {
        format!("{percent:.1} %")
    }
}

/// Error numbers with their places, and how often the server returned each.
fn errors(one: &Summary) -> String {
    let each = one.rejected.iter().map(Rejected::to_string);
    each.collect::<Vec<_>>().join(", ")
}

/// The headings of the columns, and the cells of each contender. The first column has the names.
pub(crate) fn cells(Comparison { setting, summaries }: &Comparison) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let columns: Vec<_> = COLUMNS
        .iter()
        .filter(|(_, cell)| summaries.iter().any(|one| cell(setting, one).is_some()))
        .collect();
    let names = columns.iter().map(|(name, _)| *name);
    let row = |one: &Summary| {
        let figures = columns
            .iter()
            .map(|(_, cell)| cell(setting, one).unwrap_or_default());
        [one.name.to_owned(), format!("{:.0}", one.per_second)]
            .into_iter()
            .chain(figures)
            .collect()
    };
    (
        ["", unit(setting)].into_iter().chain(names).collect(),
        summaries.iter().map(row).collect(),
    )
}

fn drawn(comparison: &Comparison, style: TableStyle, heading: fn(&str) -> String) -> String {
    let (names, rows) = cells(comparison);
    let mut table = Table::new();
    table.load_style(style);
    table.set_header(names.into_iter().map(heading));
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// What is not in the report, why, and what to do. Empty if the report has all.
pub fn not_measured(report: &Report) -> String {
    let line = |one: &NotMeasured| {
        format!(
            "Not measured: {}\n  {}\n  {}\n",
            one.what, one.because, one.remedy
        )
    };
    report.not_measured.iter().map(line).collect()
}

/// The unit of the rates of a setting.
pub fn unit(setting: &Setting) -> &'static str {
    if setting.reads == 0.0 {
        if setting.amount == 1 {
            "increments/s"
        } else {
            "calls/s"
        }
    } else if setting.reads == 1.0 {
        "reads/s"
    } else {
        "calls/s"
    }
}

/// A bar for each contender, proportional to its rate.
pub fn bars(Comparison { summaries, .. }: &Comparison) -> String {
    let most = summaries.iter().map(|one| one.per_second).fold(0.0, f64::max);
    let width = summaries.iter().map(|one| one.name.len()).max().unwrap_or(0);
    let bar = |one: &Summary| {
        // In eighths of a character.
        let eighths = if most > 0.0 {
            (one.per_second / most * (BAR * 8) as f64).round() as usize
        } else {
            0
        };
        let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        format!(
            "{:width$}  {}{part} {:.0}/s\n",
            one.name,
            "█".repeat(eighths / 8),
            one.per_second
        )
    };
    summaries.iter().map(bar).collect()
}

/// The report as one JSON object.
pub fn json(report: &Report) -> Value {
    let environment = report
        .environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())));
    let comparisons = report
        .comparisons
        .iter()
        .map(|Comparison { setting, summaries }| {
            json!({
                "setting": {
                    "connections": setting.connections,
                    "nodes": setting.nodes,
                    "slots": setting.slots,
                    "counters": setting.counters,
                    "zipf": setting.zipf,
                    "hold_ms": hold_ms(setting),
                    "add_per_call": setting.amount,
                    "batch": setting.batch,
                    "read_ratio": setting.reads,
                    "connect_per_call": setting.connect,
                    "seconds": setting.duration.as_secs_f64(),
                },
                "contenders": summaries,
            })
        });
    json!({
        "environment": environment.collect::<serde_json::Map<_, _>>(),
        "comparisons": comparisons.collect::<Vec<_>>(),
        "not_measured": report.not_measured,
    })
}

fn hold_ms(setting: &Setting) -> Option<u64> {
    setting.hold.map(|hold| hold.as_millis() as u64)
}

/// A text of a server as a cell. A spreadsheet executes a cell that begins with one of these signs as a formula, but not after an
/// apostrophe. Source: OWASP, "CSV Injection".
fn text_cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    format!("{}{text}", if formula { "'" } else { "" })
}

/// A line of CSV for each contender and setting, after a header. A figure that was not measured is empty.
///
/// # Errors
/// Errors of the writer, which a buffer in memory does not have.
pub fn csv(report: &Report) -> Result<String, csv::Error> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    let environment = report.environment.iter();
    let load = [
        "connections",
        "slots",
        "counters",
        "zipf",
        "hold_ms",
        "add_per_call",
        "batch",
        "read_ratio",
        "connect_per_call",
        "seconds",
    ];
    let figures = [
        "contender",
        "rounds",
        "per_second",
        "least_per_second",
        "most_per_second",
        "to_uncontended",
        "to_single_row",
    ];
    let latencies = [
        "p50_ms",
        "p99_ms",
        "max_ms",
        "read_p50_ms",
        "read_p99_ms",
        "read_max_ms",
    ];
    let rest = [
        "server_cpu_us",
        "row_lock_waits",
        "waiting_sessions",
        "rejected",
        "done",
        "grown",
    ];
    let of_nodes = ["nodes", "rejected_share", "behind_ms"];
    let names = [&load[..], &figures, &latencies, &rest, &of_nodes].concat();
    csv.write_record(
        names
            .into_iter()
            .chain(environment.clone().map(|(name, _)| *name)),
    )?;
    for Comparison { setting, summaries } in &report.comparisons {
        for one in summaries {
            let figure = |figure: Option<f64>| figure.map_or_else(String::new, |figure| figure.to_string());
            let latency = |of: Option<Latency>| {
                [
                    of.map(|of| of.p50_ms),
                    of.map(|of| of.p99_ms),
                    of.map(|of| of.max_ms),
                ]
                .map(figure)
            };
            let mut record = vec![
                setting.connections.to_string(),
                setting.slots.to_string(),
                setting.counters.to_string(),
                setting.zipf.to_string(),
                hold_ms(setting).map_or_else(String::new, |ms| ms.to_string()),
                setting.amount.to_string(),
                setting.batch.to_string(),
                setting.reads.to_string(),
                setting.connect.to_string(),
                setting.duration.as_secs_f64().to_string(),
                one.name.to_owned(),
                one.rounds.to_string(),
                one.per_second.to_string(),
                one.least_per_second.to_string(),
                one.most_per_second.to_string(),
                figure(one.to_uncontended),
                figure(one.to_single_row),
            ];
            record.extend(latency(one.increments));
            record.extend(latency(one.reads));
            record.extend([
                figure(one.server_cpu_us),
                one.row_lock_waits
                    .map_or_else(String::new, |waits| waits.to_string()),
                figure(one.waiting_sessions),
                errors(one),
                one.done.to_string(),
                one.grown.to_string(),
            ]);
            record.extend([
                setting.nodes.to_string(),
                one.rejected_share.to_string(),
                figure(one.behind_ms),
            ]);
            record.extend(environment.clone().map(|(_, value)| text_cell(value)));
            csv.write_record(record)?;
        }
    }
    let bytes = csv.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
