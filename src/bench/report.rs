//! What was measured, for a terminal. Pure.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};

use super::Measured;

/// The width of the longest bar, characters.
const BAR: usize = 48;

/// A row per contender, each with its ratio to the first.
pub fn table(measured: &[Measured]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(["", "increments/s", "times", "p50 ms", "p99 ms", "max ms"]);
    let first = measured.first().map_or(f64::NAN, Measured::rate);
    for one in measured {
        table.add_row([
            one.name.clone(),
            format!("{:.0}", one.rate()),
            format!("{:.1}", one.rate() / first),
            format!("{:.1}", one.latency_ms(0.5)),
            format!("{:.1}", one.latency_ms(0.99)),
            format!("{:.1}", one.latency_ms(1.0)),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// A bar per contender, as long as its rate is high.
pub fn bars(measured: &[Measured]) -> String {
    let most = measured.iter().map(Measured::rate).fold(0.0, f64::max);
    let width = measured
        .iter()
        .map(|one| one.name.chars().count())
        .max()
        .unwrap_or(0);
    let bar = |one: &Measured| {
        // In eighths of a character.
        let eighths = if most > 0.0 {
            (one.rate() / most * (BAR * 8) as f64).round() as usize
        } else {
            0
        };
        let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        format!(
            "{:width$}  {}{part} {:.0}/s\n",
            one.name,
            "█".repeat(eighths / 8),
            one.rate()
        )
    };
    measured.iter().map(bar).collect()
}
