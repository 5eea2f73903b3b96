//! Throughput as an SVG picture: a line for each contender over connections and over slots, or bars for a single setting.
//! Pure.
//!
//! Not by plotters 0.3: its SVG has fixed colours instead of classes, so no dark mode, and its labels overlap.

use std::fmt::Write;

use askama::Template;

use super::report::{Comparison, Report, unit};
use super::{CONTENDERS, Contender, Kind, Setting, Summary};

/// The width of the picture, and the left and right end of a plot, pixels.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 690.0;
/// The height of a plot, and of its panel with heading and axis.
const PLOT: f64 = 260.0;
const PANEL: f64 = PLOT + 100.0;
/// The height of the heading of the picture, and of a panel.
const HEAD: f64 = 80.0;
const TITLE: f64 = 30.0;
/// The height of a bar with its margin, and the minimum distance of two labels.
const ROW: f64 = 28.0;
const LABEL: f64 = 14.0;
/// The left and right end of the longest bar.
const BARS_LEFT: f64 = 160.0;
const BARS_RIGHT: f64 = 740.0;
/// The colours of the ground, light and dark.
const GROUND: [&str; 2] = ["#ffffff", "#0d1117"];

#[derive(Template)]
#[template(path = "bench/chart.svg")]
struct Chart {
    title: String,
    under: [String; 2],
    width: f64,
    height: f64,
    ground: [&'static str; 2],
    /// The contenders in the picture.
    contenders: Vec<Contender>,
    panels: Vec<Panel>,
}

struct Panel {
    title: String,
    top: f64,
    axis: String,
    /// Horizontal lines, with the rates that they stand for.
    grid: Vec<Mark>,
    /// Places on the horizontal axis, with the numbers that they stand for.
    places: Vec<Mark>,
    lines: Vec<Line>,
    bars: Vec<Bar>,
}

struct Mark {
    at: f64,
    text: String,
}

struct Line {
    contender: Contender,
    points: Vec<(f64, f64)>,
    label: f64,
}

struct Bar {
    name: &'static str,
    top: f64,
    width: f64,
    text: String,
}

impl Line {
    /// The points as the attribute of a polyline.
    fn path(&self) -> String {
        let mut path = String::new();
        for (x, y) in &self.points {
            let space = if path.is_empty() { "" } else { " " };
            write!(path, "{space}{x:.1},{y:.1}").expect("a string grows");
        }
        path
    }

    /// Ours are thick, the uncontended case is dashed, and parts are dotted.
    fn style(&self) -> &'static str {
        match self.contender.kind {
            Kind::Reference => "reference",
            Kind::Other => "other",
            Kind::Ours | Kind::Extra => "ours",
            Kind::Part => "part",
        }
    }
}

/// The picture of a report.
pub fn svg(report: &Report) -> String {
    let environment = |name: &str| {
        let found = report.environment.iter().find(|(one, _)| *one == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let comparisons = &report.comparisons;
    let panels = match comparisons.as_slice() {
        [one] => vec![bars(one)],
        _ => over(
            comparisons,
            "connections",
            |of| of.connections,
            |of| of.slots,
            |slots| format!("{slots} slot{}", if slots == 1 { "" } else { "s" }),
        )
        .into_iter()
        .chain(over(
            comparisons,
            "slots",
            |of| of.slots,
            |of| of.connections,
            |connections| {
                format!(
                    "{connections} connection{}",
                    if connections == 1 { "" } else { "s" }
                )
            },
        ))
        .collect(),
    };
    let mut top = HEAD;
    let mut placed = Vec::new();
    for mut panel in panels {
        panel.top = top;
        top += if panel.bars.is_empty() {
            PANEL
        } else {
            TITLE + ROW * panel.bars.len() as f64 + 20.0
        };
        placed.push(panel);
    }
    let unit = comparisons.first().map_or("", |one| unit(&one.setting));
    let chart = Chart {
        title: format!("{unit} on {} {}", environment("server"), load(comparisons)),
        under: [
            format!(
                "version {}, {}, log_bin {}, sync_binlog {}, innodb_flush_log_at_trx_commit {}",
                environment("version"),
                environment("isolation"),
                environment("log_bin"),
                environment("sync_binlog"),
                environment("innodb_flush_log_at_trx_commit"),
            ),
            format!(
                "{} cores, client {}",
                environment("cores of the client"),
                environment("client")
            ),
        ],
        width: WIDTH,
        height: top,
        ground: GROUND,
        contenders: drawn(comparisons),
        panels: placed,
    };
    let text = chart.render().expect("a template of text renders");
    format!("{}\n", text.trim_end())
}

/// The contenders that were measured, in the order of the table.
fn drawn(comparisons: &[Comparison]) -> Vec<Contender> {
    let measured = |name: &str| {
        comparisons
            .iter()
            .flat_map(|one| &one.summaries)
            .any(|summary| summary.name == name)
    };
    CONTENDERS
        .into_iter()
        .filter(|contender| measured(contender.name))
        .collect()
}

/// The part of the setting that all comparisons have in common.
fn load(comparisons: &[Comparison]) -> String {
    let Some(Comparison { setting, .. }) = comparisons.first() else {
        return String::new();
    };
    let mut text = if setting.counters == 1 {
        "(one hot counter".to_owned()
    } else {
        format!("({} counters, Zipf {}", setting.counters, setting.zipf)
    };
    match setting.hold {
        Some(hold) => text += &format!(", transactions of {} ms)", hold.as_millis()),
        None => text += ", autocommit)",
    }
    text
}

/// A panel for each value of `by`, if `x` has several values.
fn over(
    comparisons: &[Comparison],
    axis: &str,
    x: impl Fn(&Setting) -> u32,
    by: impl Fn(&Setting) -> u32,
    title: impl Fn(u32) -> String,
) -> Vec<Panel> {
    let distinct = |of: &dyn Fn(&Setting) -> u32| {
        let mut values: Vec<_> = comparisons.iter().map(|one| of(&one.setting)).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let places = distinct(&x);
    if places.len() < 2 {
        return Vec::new();
    }
    let panel = |value: u32| {
        let chosen: Vec<_> = comparisons
            .iter()
            .filter(|one| by(&one.setting) == value)
            .collect();
        // Equal steps, because numbers of connections and slots usually grow by factors.
        let across = |of: &Setting| {
            let at = places.iter().position(|&place| place == x(of)).unwrap_or(0);
            LEFT + 20.0 + (RIGHT - LEFT - 40.0) * at as f64 / (places.len() - 1) as f64
        };
        let rates = chosen
            .iter()
            .flat_map(|one| &one.summaries)
            .map(|one| one.per_second);
        let step = step(rates.fold(0.0, f64::max));
        let up = |rate: f64| PLOT - PLOT * rate / (5.0 * step);
        let mut lines = Vec::new();
        for contender in drawn(comparisons) {
            let mut points = Vec::new();
            for one in &chosen {
                let of = one
                    .summaries
                    .iter()
                    .find(|summary| summary.name == contender.name);
                points.extend(of.map(|summary| (across(&one.setting), up(summary.per_second))));
            }
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            if let Some(&(_, label)) = points.last() {
                lines.push(Line {
                    contender,
                    points,
                    label,
                });
            }
        }
        spread(&mut lines);
        Panel {
            title: title(value),
            top: 0.0,
            axis: axis.to_owned(),
            grid: (0..=5)
                .map(|n| Mark {
                    at: up(f64::from(n) * step),
                    text: thousands(f64::from(n) * step),
                })
                .collect(),
            places: chosen
                .iter()
                .map(|one| Mark {
                    at: across(&one.setting),
                    text: x(&one.setting).to_string(),
                })
                .collect(),
            lines,
            bars: Vec::new(),
        }
    };
    distinct(&by).into_iter().map(panel).collect()
}

fn bars(comparison: &Comparison) -> Panel {
    let most = comparison
        .summaries
        .iter()
        .map(|one| one.per_second)
        .fold(1.0, f64::max);
    let bar = |(row, one): (usize, &Summary)| Bar {
        name: one.name,
        top: TITLE + ROW * row as f64,
        width: (BARS_RIGHT - BARS_LEFT) * one.per_second / most,
        text: thousands(one.per_second),
    };
    Panel {
        title: comparison.setting.to_string(),
        top: 0.0,
        axis: String::new(),
        grid: Vec::new(),
        places: Vec::new(),
        lines: Vec::new(),
        bars: comparison.summaries.iter().enumerate().map(bar).collect(),
    }
}

/// The distance of two grid lines, a fifth of the axis: 1, 2, 2.5 or 5 times a power of ten.
fn step(most: f64) -> f64 {
    let least = (most / 5.0).max(1.0);
    let power = 10_f64.powf(least.log10().floor());
    let nice = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    nice.into_iter()
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power)
}

/// Moves labels apart that would overlap.
fn spread(lines: &mut [Line]) {
    lines.sort_by(|one, other| one.label.total_cmp(&other.label));
    for at in 1..lines.len() {
        lines[at].label = lines[at].label.max(lines[at - 1].label + LABEL);
    }
    let mut least = PLOT + LABEL;
    for line in lines.iter_mut().rev() {
        line.label = line.label.min(least);
        least = line.label - LABEL;
    }
}

/// A rate with a comma between thousands.
fn thousands(rate: f64) -> String {
    let digits = format!("{rate:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_round_numbers_and_room_for_all() {
        for (most, fifth) in [
            (0.0, 1.0),
            (5.0, 1.0),
            (5.1, 2.0),
            (8518.0, 2000.0),
            (12_000.0, 2500.0),
            (99.0, 20.0),
        ] {
            assert_eq!(step(most), fifth, "{most}");
        }
    }

    #[test]
    fn thousands_have_commas() {
        assert_eq!(
            [0.0, 999.4, 1000.0, 1_234_567.0].map(thousands),
            ["0", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn labels_keep_their_distance_and_stay_in_the_picture() {
        let line = |contender| Line {
            contender,
            points: Vec::new(),
            label: PLOT,
        };
        let mut lines: Vec<_> = CONTENDERS.into_iter().map(line).collect();
        spread(&mut lines);
        assert!(lines.windows(2).all(|two| two[1].label - two[0].label >= LABEL));
        assert!(
            lines
                .iter()
                .all(|line| line.label > 0.0 && line.label <= PLOT + LABEL)
        );
    }

    /// Source: WCAG 2.2, success criterion 1.4.3: text has a contrast of 4.5. The labels have the colours of their lines.
    #[test]
    fn colors_have_enough_contrast() {
        let luminance = |color: &str| {
            let channel = |at: usize| {
                let value = u8::from_str_radix(&color[at..at + 2], 16).expect("two digits");
                let value = f64::from(value) / 255.0;
                if value <= 0.04045 {
                    value / 12.92
                } else {
                    ((value + 0.055) / 1.055).powf(2.4)
                }
            };
            0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
        };
        for contender in CONTENDERS {
            for (color, ground) in contender.colors.into_iter().zip(GROUND) {
                let (one, other) = (luminance(color), luminance(ground));
                let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
                assert!(
                    contrast >= 4.5,
                    "{}: {color} on {ground} {contrast}",
                    contender.name
                );
            }
        }
    }
}
