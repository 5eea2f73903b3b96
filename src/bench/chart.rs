//! The rates as SVG: lines over the connections, or bars if there is one number of them. Pure.
//!
//! Not by plotters 0.3: its SVG has fixed colours instead of classes, so no dark mode, and its labels overlap.

use askama::Template;

use super::figures::{Report, Summary, thousands};

/// The left and the right end of the plot, in units of the picture, and the top and the height of the lines.
const LEFT: f64 = 120.0;
const RIGHT: f64 = 660.0;
const TOP: f64 = 76.0;
const PLOT: f64 = 260.0;
/// The height of a bar with its margin, and the least distance of two labels.
const ROW: f64 = 28.0;
const LABEL: f64 = 16.0;
/// The colours of the template. More lines have the same ones, and their names.
const COLORS: usize = 10;

#[derive(Default, Template)]
#[template(path = "bench/chart.svg")]
struct Chart {
    title: String,
    setting: String,
    height: f64,
    bars: Vec<Bar>,
    /// Horizontal lines with the rate.
    grid: Vec<(f64, String)>,
    /// The numbers of connections.
    places: Vec<(f64, String)>,
    lines: Vec<Line>,
}

struct Bar {
    color: usize,
    name: String,
    top: f64,
    width: f64,
    lowest: f64,
    highest: f64,
    text: String,
}

struct Line {
    color: usize,
    name: String,
    points: Vec<Point>,
    /// The height of the name at the last point.
    label: f64,
}

struct Point {
    x: f64,
    y: f64,
    lowest: f64,
    highest: f64,
}

impl Line {
    fn path(&self) -> String {
        let points: Vec<_> = self.points.iter().map(|point| format!("{},{}", point.x, point.y)).collect();
        points.join(" ")
    }
}

/// The picture of a report. It has the light or dark colours of the reader's system.
pub fn svg(report: &Report) -> String {
    let results = &report.results;
    let mut connections: Vec<u32> = results.iter().map(|one| one.connections).collect();
    connections.sort_unstable();
    connections.dedup();
    let server = report.environment.iter().find(|(name, _)| *name == "server");
    let mut chart = Chart {
        title: format!("Increments per second on {}", server.map_or("a server", |(_, server)| server)),
        setting: report.setting(),
        ..Chart::default()
    };
    if connections.len() > 1 {
        chart.lines(results, &connections);
    } else {
        chart.setting += &connections.first().map_or_else(String::new, |number| format!(", {number} connections"));
        chart.bars(results);
    }
    chart.render().expect("a template that has only fields and pure methods renders")
}

impl Chart {
    fn bars(&mut self, results: &[Summary]) {
        let most = results.iter().map(|one| one.highest).fold(1.0, f64::max);
        let length = |rate: f64| rounded(rate / most * (RIGHT - LEFT));
        let bar = |(at, one): (usize, &Summary)| Bar {
            color: at % COLORS,
            name: one.contender.clone(),
            top: TOP + ROW * at as f64,
            width: length(one.per_second),
            lowest: LEFT + length(one.lowest),
            highest: LEFT + length(one.highest),
            text: thousands(one.per_second),
        };
        self.bars = results.iter().enumerate().map(bar).collect();
        self.height = TOP + ROW * results.len() as f64 + 16.0;
    }

    fn lines(&mut self, results: &[Summary], connections: &[u32]) {
        let most = results.iter().map(|one| one.highest).fold(1.0, f64::max);
        let step = step(most);
        let marks = (most / step).ceil();
        let height = |rate: f64| rounded(TOP + PLOT - rate / (step * marks) * PLOT);
        let place = |number: u32| {
            let at = connections.iter().position(|&one| one == number).unwrap_or(0);
            rounded(LEFT + 20.0 + (RIGHT - LEFT - 40.0) * at as f64 / (connections.len() - 1) as f64)
        };
        self.grid = (0..=marks as u32)
            .map(|mark| (height(f64::from(mark) * step), thousands(f64::from(mark) * step)))
            .collect();
        self.places = connections.iter().map(|&number| (place(number), number.to_string())).collect();
        for one in results {
            let point = Point {
                x: place(one.connections),
                y: height(one.per_second),
                lowest: height(one.lowest),
                highest: height(one.highest),
            };
            match self.lines.iter_mut().find(|line| line.name == one.contender) {
                Some(line) => line.points.push(point),
                None => self.lines.push(Line {
                    color: self.lines.len() % COLORS,
                    name: one.contender.clone(),
                    points: vec![point],
                    label: 0.0,
                }),
            }
        }
        let last = |line: &Line| line.points.last().map_or(0.0, |point| point.y);
        self.lines.sort_by(|one, other| last(one).total_cmp(&last(other)));
        let mut above = 0.0;
        for line in &mut self.lines {
            line.label = last(line).max(above + LABEL);
            above = line.label;
        }
        self.height = above.max(TOP + PLOT) + 56.0;
    }
}

/// A tenth of a unit is less than a reader sees.
fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// The distance of the marks of an axis up to `most`: 1, 2 or 5 times a power of ten, at most six marks.
fn step(most: f64) -> f64 {
    let power = 10_f64.powf((most / 6.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| most / (step * power) <= 6.0);
    step.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn an_axis_has_few_round_marks() {
        assert_eq!([6.0, 7.0, 13.0, 4_321.0, 60_000.0].map(step), [1.0, 2.0, 5.0, 1_000.0, 10_000.0]);
    }
}
