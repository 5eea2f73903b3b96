//! Throughput as SVG: a line for each contender over nodes, connections and slots, or bars for a single setting. Of clusters
//! also the rejected calls. As one picture, and as panels for a page. Pure.
//!
//! Not by plotters 0.3: its SVG has fixed colours instead of classes, so no dark mode, and its labels overlap.

use std::fmt::Write;

use askama::Template;

use super::report::{Comparison, Report, unit};
use super::{CONTENDERS, Contender, Kind, Setting, Summary, on_nodes};
use crate::number::thousands;

/// The height of the heading of the picture, and of a panel.
const HEAD: f64 = 80.0;
const TITLE: f64 = 36.0;
/// The space below a plot, for the axis.
const AXIS: f64 = 64.0;
/// The height of a bar with its margin, and the minimum distance of two labels.
const ROW: f64 = 28.0;
const LABEL: f64 = 15.0;
/// The width of a digit in a label of an axis.
const DIGIT: f64 = 7.0;
/// The left and right end of the longest bar.
const BARS_LEFT: f64 = 160.0;
const BARS_RIGHT: f64 = 600.0;
/// The colours of the ground, light and dark.
pub(crate) const GROUND: [&str; 2] = ["#ffffff", "#0d1117"];

/// The marks of the contenders, so that colour is not the only difference. Each is an SVG path around 0,0.
const MARKS: [&str; 8] = [
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
    "M-3.5,-3.5H3.5V3.5H-3.5Z",
    "M0,-5L5,0L0,5L-5,0Z",
    "M0,-4.5L4.5,3.5H-4.5Z",
    "M0,4.5L4.5,-3.5H-4.5Z",
    "M-4,-4L4,4M-4,4L4,-4",
    "M-5,0H5M0,-5V5",
    "M-5,-2H5V2H-5Z",
];

/// The measures of a drawing, in units of its viewBox. A page shows it at about this size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    width: f64,
    /// The left end of a plot, at least.
    left: f64,
    /// The right end of a plot. The labels of the lines are to the right of it.
    right: f64,
    /// The distance of the first and the last place from the ends of the plot.
    margin: f64,
    /// The height of a plot, if it has few lines.
    plot: f64,
    /// The labels of the lines are letters, because there is no room for names.
    letters: bool,
}

impl Layout {
    /// For a screen of a computer.
    pub(crate) const WIDE: Self = Self {
        width: 860.0,
        left: 72.0,
        right: 690.0,
        margin: 20.0,
        plot: 260.0,
        letters: false,
    };
    /// For a telephone.
    pub(crate) const NARROW: Self = Self {
        width: 328.0,
        left: 0.0,
        right: 300.0,
        margin: 14.0,
        plot: 240.0,
        letters: true,
    };
}

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
    /// With the distance of each from the top.
    panels: Vec<(f64, Panel)>,
}

/// Lines or bars. Its origin is the top left corner of the plot.
#[derive(Template)]
#[template(path = "bench/_panel.svg")]
pub(crate) struct Panel {
    /// The part of the setting that all points have in common.
    pub(crate) title: String,
    /// The unit of the vertical axis.
    pub(crate) unit: &'static str,
    /// The property on the horizontal axis.
    pub(crate) over: &'static str,
    /// The distances on the horizontal axis are those of the numbers.
    pub(crate) to_scale: bool,
    pub(crate) width: f64,
    pub(crate) height: f64,
    left: f64,
    right: f64,
    plot: f64,
    /// Horizontal lines, with the rates that they stand for.
    grid: Vec<Mark>,
    /// Places on the horizontal axis, with the numbers that they stand for.
    places: Vec<Mark>,
    pub(crate) lines: Vec<Line>,
    bars: Vec<Bar>,
}

struct Mark {
    at: f64,
    text: String,
}

pub(crate) struct Line {
    pub(crate) contender: Contender,
    pub(crate) mark: &'static str,
    /// The letter or the name.
    pub(crate) text: String,
    points: Vec<Point>,
    label: f64,
}

/// A point, and the vertical ends of its spread.
struct Point {
    x: f64,
    y: f64,
    spread: Option<[f64; 2]>,
}

struct Bar {
    name: &'static str,
    top: f64,
    width: f64,
    spread: Option<[f64; 2]>,
    text: String,
    range: String,
}

impl Line {
    /// The points as the attribute of a polyline.
    fn path(&self) -> String {
        let mut path = String::new();
        for Point { x, y, .. } in &self.points {
            let space = if path.is_empty() { "" } else { " " };
            write!(path, "{space}{x:.1},{y:.1}").expect("a string grows");
        }
        path
    }

    /// Ours are thick, the uncontended case is dashed, and parts are dotted.
    pub(crate) fn style(&self) -> &'static str {
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
    let cluster = match environment("cluster") {
        "" => String::new(),
        cluster => format!("{cluster}, "),
    };
    let all = match comparisons.as_slice() {
        [one] => vec![bars(one)],
        _ => panels(comparisons, Layout::WIDE),
    };
    let mut top = HEAD;
    let mut placed = Vec::new();
    for panel in all {
        let height = TITLE + panel.height;
        placed.push((top, panel));
        top += height;
    }
    let unit = comparisons.first().map_or("", |one| unit(&one.setting));
    let chart = Chart {
        title: format!("{unit} on {} {}", environment("server"), load(comparisons)),
        under: [
            format!(
                "{}version {}, {}, log_bin {}, sync_binlog {}, innodb_flush_log_at_trx_commit {}",
                cluster,
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
        width: Layout::WIDE.width,
        height: top,
        ground: GROUND,
        contenders: measured(comparisons),
        panels: placed,
    };
    let text = chart.render().expect("a template of text renders");
    format!("{}\n", text.trim_end())
}

/// A property on the horizontal axis.
struct Axis {
    name: &'static str,
    number: fn(&Setting) -> u32,
    /// The other properties that a panel is about.
    by: fn(&Setting) -> [u32; 2],
    /// Their values.
    title: fn(&Setting) -> String,
}

const AXES: [Axis; 3] = [
    Axis {
        name: "nodes",
        number: |of| of.nodes,
        by: |of| [of.connections, of.slots],
        title: |of| format!("{}, {}", connections(of), slots(of)),
    },
    Axis {
        name: "connections",
        number: |of| of.connections,
        by: |of| [of.nodes, of.slots],
        title: |of| format!("{}{}", slots(of), on_nodes(of.nodes)),
    },
    Axis {
        name: "slots",
        number: |of| of.slots,
        by: |of| [of.nodes, of.connections],
        title: |of| format!("{}{}", connections(of), on_nodes(of.nodes)),
    },
];

fn slots(Setting { slots, .. }: &Setting) -> String {
    format!("{slots} slot{}", if *slots == 1 { "" } else { "s" })
}

fn connections(Setting { connections, .. }: &Setting) -> String {
    format!(
        "{connections} connection{}",
        if *connections == 1 { "" } else { "s" }
    )
}

/// A property on the vertical axis.
struct Figure {
    unit: &'static str,
    of: fn(&Summary) -> f64,
    /// The lowest and the highest value, if there are several rounds.
    spread: fn(&Summary) -> Option<[f64; 2]>,
}

/// The unit of the rejected calls.
const REJECTED: &str = "percent of all calls";

/// The lines over nodes, connections and slots. A property that has only one value has no panel.
pub(crate) fn panels(comparisons: &[Comparison], layout: Layout) -> Vec<Panel> {
    let mut figures = vec![Figure {
        unit: comparisons.first().map_or("", |one| unit(&one.setting)),
        of: |one| one.per_second,
        spread,
    }];
    if comparisons.iter().any(|one| one.setting.nodes > 1) {
        figures.push(Figure {
            unit: REJECTED,
            of: |one| one.rejected_share * 100.0,
            spread: |_| None,
        });
    }
    AXES.iter()
        .flat_map(|axis| figures.iter().map(move |figure| (axis, figure)))
        .flat_map(|(axis, figure)| over(comparisons, layout, axis, figure))
        .collect()
}

/// The contenders that were measured, in the order of the table.
pub(crate) fn measured(comparisons: &[Comparison]) -> Vec<Contender> {
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

/// The slowest and the fastest round, if there are several.
fn spread(of: &Summary) -> Option<[f64; 2]> {
    (of.rounds > 1).then_some([of.least_per_second, of.most_per_second])
}

/// The number that an axis has to reach.
fn most(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, f64::max)
}

/// The values of a property, in ascending order.
fn distinct<T: Ord>(comparisons: &[Comparison], of: impl Fn(&Setting) -> T) -> Vec<T> {
    let mut values: Vec<_> = comparisons.iter().map(|one| of(&one.setting)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

impl Panel {
    /// Whether its points are medians of the rounds.
    pub(crate) fn has_rates(&self) -> bool {
        self.unit != REJECTED
    }

    /// The heading in a picture, whose title has the unit of the rates.
    fn heading(&self) -> String {
        if self.has_rates() {
            self.title.clone()
        } else {
            format!("rejected calls in {REJECTED}, {}", self.title)
        }
    }
}

/// A panel for each value of the other properties, if the one on the axis has several values.
fn over(comparisons: &[Comparison], layout: Layout, axis: &Axis, figure: &Figure) -> Vec<Panel> {
    let x = axis.number;
    let places = distinct(comparisons, x);
    if places.len() < 2 {
        return Vec::new();
    }
    let contenders = measured(comparisons);
    let plot = layout.plot.max(LABEL * contenders.len() as f64);
    let panel = |value: [u32; 2]| {
        let chosen: Vec<_> = comparisons
            .iter()
            .filter(|one| (axis.by)(&one.setting) == value)
            .collect();
        let summaries = chosen.iter().flat_map(|one| &one.summaries);
        let step = step(most(summaries.flat_map(|one| {
            let [_, highest] = (figure.spread)(one).unwrap_or_default();
            [(figure.of)(one), highest]
        })));
        let up = |rate: f64| plot - plot * rate / (5.0 * step);
        let grid: Vec<_> = (0..=5)
            .map(|n| Mark {
                at: up(f64::from(n) * step),
                text: thousands(f64::from(n) * step),
            })
            .collect();
        let digits = grid.iter().map(|mark| mark.text.len()).max().unwrap_or(0);
        let left = layout.left.max(DIGIT * digits as f64 + 14.0);
        // Equal steps, because numbers of connections and slots usually grow by factors.
        let distance = (layout.right - left - 2.0 * layout.margin) / (places.len() - 1) as f64;
        let across = |of: &Setting| {
            let at = places.iter().position(|&place| place == x(of)).unwrap_or(0);
            left + layout.margin + distance * at as f64
        };
        // The contenders are a little apart, so that their spreads do not cover each other.
        let apart = (distance / 2.0).min(2.0 * layout.margin - 6.0) / contenders.len() as f64;
        let apart = apart.min(5.0);
        let mut lines = Vec::new();
        for (at, &contender) in contenders.iter().enumerate() {
            let aside = apart * (at as f64 - (contenders.len() - 1) as f64 / 2.0);
            let mut points = Vec::new();
            for one in &chosen {
                let of = one
                    .summaries
                    .iter()
                    .find(|summary| summary.name == contender.name);
                points.extend(of.map(|summary| Point {
                    x: across(&one.setting) + aside,
                    y: up((figure.of)(summary)),
                    spread: (figure.spread)(summary).map(|ends| ends.map(up)),
                }));
            }
            points.sort_by(|one, other| one.x.total_cmp(&other.x));
            if let Some(label) = points.last().map(|point| point.y) {
                lines.push(Line {
                    contender,
                    mark: MARKS[at % MARKS.len()],
                    text: if layout.letters {
                        letter(at)
                    } else {
                        contender.name.to_owned()
                    },
                    points,
                    label,
                });
            }
        }
        move_apart(&mut lines, plot);
        // As many numbers as there is room for.
        let digits = places
            .iter()
            .map(|place| place.to_string().len())
            .max()
            .unwrap_or(0);
        let every = ((DIGIT * digits as f64 + 8.0) / distance).ceil().max(1.0) as usize;
        Panel {
            title: chosen
                .first()
                .map_or_else(String::new, |one| (axis.title)(&one.setting)),
            unit: figure.unit,
            over: axis.name,
            to_scale: places
                .windows(3)
                .all(|three| three[2] - three[1] == three[1] - three[0]),
            width: layout.width,
            height: plot + AXIS,
            left,
            right: layout.right,
            plot,
            grid,
            places: chosen
                .iter()
                .filter(|one| {
                    let at = places.iter().position(|&place| place == x(&one.setting));
                    at.is_some_and(|at| (places.len() - 1 - at).is_multiple_of(every))
                })
                .map(|one| Mark {
                    at: across(&one.setting),
                    text: x(&one.setting).to_string(),
                })
                .collect(),
            lines,
            bars: Vec::new(),
        }
    };
    distinct(comparisons, axis.by).into_iter().map(panel).collect()
}

/// A, B, and so on.
fn letter(at: usize) -> String {
    char::from(b'A' + (at % 26) as u8).to_string()
}

fn bars(comparison: &Comparison) -> Panel {
    let summaries = comparison.summaries.iter();
    let most = most(summaries.map(|one| one.per_second.max(one.most_per_second))).max(1.0);
    let along = |rate: f64| (BARS_RIGHT - BARS_LEFT) * rate / most;
    let bar = |(row, one): (usize, &Summary)| Bar {
        name: one.name,
        top: ROW * row as f64,
        width: along(one.per_second),
        spread: spread(one).map(|ends| ends.map(along)),
        text: thousands(one.per_second),
        range: spread(one).map_or_else(String::new, |[least, most]| {
            format!("{} to {}", thousands(least), thousands(most))
        }),
    };
    Panel {
        title: comparison.setting.to_string(),
        unit: unit(&comparison.setting),
        over: "",
        to_scale: true,
        width: Layout::WIDE.width,
        height: ROW * comparison.summaries.len() as f64 + 12.0,
        left: BARS_LEFT,
        right: BARS_RIGHT,
        plot: 0.0,
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
fn move_apart(lines: &mut [Line], plot: f64) {
    lines.sort_by(|one, other| one.label.total_cmp(&other.label));
    for at in 1..lines.len() {
        lines[at].label = lines[at].label.max(lines[at - 1].label + LABEL);
    }
    let mut least = plot;
    for line in lines.iter_mut().rev() {
        line.label = line.label.min(least);
        least = line.label - LABEL;
    }
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
    fn labels_keep_their_distance_and_stay_in_the_picture() {
        let plot = LABEL * CONTENDERS.len() as f64;
        let line = |contender| Line {
            contender,
            mark: MARKS[0],
            text: String::new(),
            points: Vec::new(),
            label: plot,
        };
        let mut lines: Vec<_> = CONTENDERS.into_iter().map(line).collect();
        move_apart(&mut lines, plot);
        assert!(lines.windows(2).all(|two| two[1].label - two[0].label >= LABEL));
        assert!(lines.iter().all(|line| line.label > 0.0 && line.label <= plot));
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
