//! What was measured, for people and for programs. Pure.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_HORIZONTAL_ONLY};
use comfy_table::{CellAlignment, Table, TableStyle};
use serde_json::{Value, json};

use super::{Setting, Summary};

/// The width of the longest bar, characters.
const BAR: usize = 48;

/// A row per contender, for a terminal.
pub fn table(summaries: &[Summary]) -> String {
    drawn(summaries, UTF8_HORIZONTAL_ONLY)
}

/// The same as Markdown has it.
pub fn markdown(summaries: &[Summary]) -> String {
    drawn(summaries, ASCII_MARKDOWN)
}

fn drawn(summaries: &[Summary], style: TableStyle) -> String {
    // A ratio that nobody has gets no column.
    let floor = summaries.iter().any(|one| one.to_floor.is_some());
    let single_row = summaries.iter().any(|one| one.to_single_row.is_some());
    let refused = summaries.iter().any(|one| !one.refused.is_empty());
    let chosen = |cells: [String; 8]| -> Vec<String> {
        let there = [true, true, floor, single_row, true, true, true, refused];
        cells
            .into_iter()
            .zip(there)
            .filter_map(|(cell, there)| there.then_some(cell))
            .collect()
    };
    let mut table = Table::new();
    table.load_style(style);
    table.set_header(chosen(
        [
            "",
            "increments/s",
            "of the floor",
            "times one row",
            "p50 ms",
            "p99 ms",
            "max ms",
            "refused",
        ]
        .map(str::to_owned),
    ));
    let ratio = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
    for one in summaries {
        let refused = one
            .refused
            .iter()
            .map(|(error, times)| format!("{error}: {times}"));
        table.add_row(chosen([
            one.name.to_owned(),
            format!("{:.0}", one.per_second),
            ratio(one.to_floor),
            ratio(one.to_single_row),
            format!("{:.1}", one.p50_ms),
            format!("{:.1}", one.p99_ms),
            format!("{:.1}", one.max_ms),
            refused.collect::<Vec<_>>().join(", "),
        ]));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// A bar per contender, as long as its rate is high.
pub fn bars(summaries: &[Summary]) -> String {
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

/// Everything that is known of a comparison, as one JSON object.
pub fn json(environment: &[(&str, String)], setting: &Setting, summaries: &[Summary]) -> Value {
    let environment = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())));
    json!({
        "environment": environment.collect::<serde_json::Map<_, _>>(),
        "setting": {
            "connections": setting.connections,
            "slots": setting.slots,
            "counters": setting.counters,
            "zipf": setting.zipf,
            "hold_ms": setting.hold.map(|hold| hold.as_millis() as u64),
            "seconds": setting.duration.as_secs_f64(),
        },
        "contenders": summaries,
    })
}
