//! The report: a table for a terminal, and a page. Pure.

use askama::Template;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use super::figures::{Report, Summary};
use super::{chart, thousands};

/// The length of the longest bar in a table, characters.
const BAR: usize = 12;

/// The headings of the columns.
const HEADINGS: [&str; 9] = [
    "",
    "connections",
    "increments/s",
    "lowest to highest",
    "of uncontended",
    "p50 ms",
    "p99 ms",
    "read ms",
    "retries",
];

/// The headings and the rows. A column without any figure is left out.
fn columns(report: &Report) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let rows: Vec<_> = report.results.iter().map(cells).collect();
    let shown: Vec<_> = (0..HEADINGS.len()).filter(|&at| rows.iter().any(|row| !row[at].is_empty())).collect();
    let row = |row: &[String; HEADINGS.len()]| shown.iter().map(|&at| row[at].clone()).collect();
    (shown.iter().map(|&at| HEADINGS[at]).collect(), rows.iter().map(row).collect())
}

/// The cells of a row, as the headings. Empty if there is nothing to say.
fn cells(one: &Summary) -> [String; HEADINGS.len()] {
    let range = format!("{} to {}", thousands(one.lowest), thousands(one.highest));
    let ratio = one.to_uncontended.map(|ratio| format!("{:.0} %", ratio * 100.0));
    [
        one.contender.clone(),
        one.connections.to_string(),
        thousands(one.per_second),
        if one.rounds > 1 { range } else { String::new() },
        ratio.unwrap_or_default(),
        format!("{:.2}", one.p50_ms),
        format!("{:.2}", one.p99_ms),
        format!("{:.2}", one.read_ms),
        if one.retries > 0 { one.retries.to_string() } else { String::new() },
    ]
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
    format!("{}\n{}\n\n{table}\n", report.environment_line(), report.setting())
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
