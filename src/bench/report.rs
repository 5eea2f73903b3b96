//! The report: a table for a terminal, and a page. Pure.

use askama::Template;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use super::chart;
use super::figures::{Report, Summary, thousands};

/// The length of the longest bar in a table, characters.
const BAR: usize = 12;

/// The heading of a column and its cell.
type Column = (&'static str, fn(&Summary) -> String);

/// A cell is empty if there is nothing to say.
const COLUMNS: [Column; 10] = [
    ("", |one| one.contender.clone()),
    ("connections", |one| one.connections.to_string()),
    ("increments/s", |one| thousands(one.per_second)),
    ("lowest to highest", |one| match one.rounds {
        1 => String::new(),
        _ => format!("{} to {}", thousands(one.lowest), thousands(one.highest)),
    }),
    ("of uncontended", |one| one.to_uncontended.map_or_else(String::new, |ratio| format!("{:.0} %", ratio * 100.0))),
    ("p50 ms", |one| format!("{:.2}", one.p50_ms)),
    ("p99 ms", |one| format!("{:.2}", one.p99_ms)),
    ("read ms", |one| format!("{:.2}", one.read_ms)),
    ("CPU us", |one| one.cpu_us.map_or_else(String::new, thousands)),
    ("retries", |one| if one.retries > 0 { one.retries.to_string() } else { String::new() }),
];

/// The headings and the rows. A column without any figure is left out.
fn columns(report: &Report) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let is_shown = |(_, cell): &&Column| report.results.iter().any(|one| !cell(one).is_empty());
    let shown: Vec<_> = COLUMNS.iter().filter(is_shown).collect();
    let row = |one| shown.iter().map(|(_, cell)| cell(one)).collect();
    (shown.iter().map(|(heading, _)| *heading).collect(), report.results.iter().map(row).collect())
}

/// The report in Markdown, with a bar for each rate.
pub fn table(report: &Report) -> String {
    let most = report.results.iter().map(|one| one.per_second).fold(1.0, f64::max);
    let bar = |one: &Summary| "█".repeat((one.per_second / most * BAR as f64).round() as usize);
    let (headings, rows) = columns(report);
    let numbers = headings.len();
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(headings.into_iter().chain([""]));
    for (row, one) in rows.into_iter().zip(&report.results) {
        table.add_row(row.into_iter().chain([bar(one)]));
    }
    for column in table.column_iter_mut().take(numbers).skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let environment: Vec<_> = report.environment.iter().map(|(name, value)| format!("{name} {value}")).collect();
    format!("{}\n{}\n\n{table}\n", environment.join(", "), report.setting())
}

/// The report as a page with the picture: one file, which loads nothing.
pub fn html(report: &Report) -> String {
    #[derive(Template)]
    #[template(path = "bench/page.html")]
    struct Page<'a> {
        report: &'a Report,
        picture: String,
        headings: Vec<&'static str>,
        rows: Vec<Vec<String>>,
    }
    let (headings, rows) = columns(report);
    let page = Page { report, picture: chart::svg(report), headings, rows };
    page.render().expect("a template that has only fields and pure methods renders")
}
