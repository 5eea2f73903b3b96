//! The page of bench: legible on a telephone and on a screen, light and dark, with everything that they show inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use slotted::bench::{
    At, CONTENDERS, Comparison, Kind, Latency, NotMeasured, Rejected, Report, Setting, Summary,
};
use slotted::report;

use crate::support::{Module, Server};

pub fn promises(mut module: Module<'_>) {
    module
        .needs("browser")
        .alone()
        .plain(pages_are_legible_on_every_screen)
        .plain(the_check_of_pages_finds_faults)
        .plain(pages_load_nothing)
        .plain(a_benchmark_begins_with_what_was_measured)
        .on_families(commands_write_pages);
}

/// The widths of a small and of a usual telephone, of a tablet, and of a window on a screen, in pixels.
const WIDTHS: [u32; 4] = [320, 360, 820, 1400];

/// A browser without a window.
fn browser() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program| program.is_file())
        .unwrap_or_else(|| panic!("no Chromium is installed: run scripts/servers browser, or install it yourself"))
}

/// The lines that tests/report/check.html writes for pages, in the light or in the dark colours of the browser.
fn findings(pages: &[(&str, String)], widths: &[u32], dark: bool) -> Vec<String> {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;");
    let mut frames = String::new();
    for (name, page) in pages {
        for width in widths {
            frames += &format!(
                "<iframe title=\"{name}\" style=\"width:{width}px;height:740px\" srcdoc=\"{}\"></iframe>\n",
                escaped(page)
            );
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let document = folder.path().join("check.html");
    fs::write(&document, include_str!("report/check.html").replace("<!-- frames -->", &frames)).expect("a file");
    let mut command = Command::new(browser());
    // In a container and for root, Chromium has no sandbox. It opens only this file.
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]);
    command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
    if dark {
        command.arg("--force-dark-mode");
    }
    command.arg("--dump-dom").arg(format!("file://{}", document.display())).stdin(Stdio::null());
    let output = command.output().expect("the browser runs");
    let dom = String::from_utf8_lossy(&output.stdout);
    let lines = dom.rsplit_once("<pre id=\"findings\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (lines, _) = lines.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    lines.lines().map(str::to_owned).collect()
}

/// A summary as a server of two cores has it. `rate` is that of the median.
fn summary(name: &'static str, rate: f64, rounds: usize) -> Summary {
    let calls = (rate * 3.0) as u64;
    Summary {
        name,
        per_second: rate,
        least_per_second: rate * 0.87,
        most_per_second: rate * 1.09,
        to_uncontended: Some(0.8),
        to_single_row: Some(3.3),
        increments: Some(Latency { p50_ms: 0.912, p99_ms: 12.4, max_ms: 1234.5 }),
        reads: None,
        rejected: vec![
            Rejected { error: 1205, at: At::Statement, calls: 3 },
            Rejected { error: 3101, at: At::Commit, calls: 12 },
        ],
        rejected_share: 0.0123,
        behind_ms: None,
        server_cpu_us: Some(189.0),
        row_lock_waits: Some(calls / 2),
        waiting_sessions: Some(31.4),
        done: calls,
        grown: calls as i64,
        rounds,
    }
}

fn environment() -> Vec<(&'static str, String)> {
    [
        ("server", "MariaDB 10.11.14"),
        ("version", "10.11.14-MariaDB-0+deb12u2-log-with-a-long-name-of-its-distribution"),
        ("isolation", "REPEATABLE-READ"),
        ("log_bin", "ON"),
        ("sync_binlog", "0"),
        ("innodb_flush_log_at_trx_commit", "2"),
        ("innodb_buffer_pool_size", "134217728"),
        ("cores of the client", "2"),
        ("client", "at counters.production.example.com, over TCP"),
        ("time", "2026-11-23 22:40:12 UTC"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

/// A report of these contenders, in which the rates grow with the connections, and of which each has a rate of its own.
fn benchmark(connections: &[u32], slots: &[u32], wanted: impl Fn(Kind) -> bool, rate: f64, rounds: usize) -> Report {
    let mut comparisons = Vec::new();
    for &connections in connections {
        for &slots in slots {
            let setting = Setting { connections, slots, ..Setting::default() };
            let busy = f64::from(connections).powf(0.4);
            let rates = CONTENDERS.iter().enumerate().filter(|(_, one)| wanted(one.kind)).map(|(at, one)| {
                let waits = if one.name == "single-row" { busy } else { 1.0 };
                // Two of three are close together, so that their labels would cover each other.
                summary(one.name, rate * busy / waits * (1.0 - 0.04 * (at / 3 * 3) as f64), rounds)
            });
            comparisons.push(Comparison { setting: setting.clone(), summaries: rates.collect() });
        }
    }
    Report { environment: environment(), comparisons, not_measured: not_measured() }
}

/// A report of a cluster, in which one row has more rejected calls with more nodes, and the others have none.
fn on_nodes(most: u32) -> Report {
    let mut report = benchmark(&[30], &[99], usual, 4123.0, 3);
    let one = report.comparisons.remove(0);
    for nodes in 1..=most {
        let mut comparison = one.clone();
        comparison.setting.nodes = nodes;
        for summary in &mut comparison.summaries {
            summary.behind_ms = Some(12.0);
            if summary.name == "single-row" {
                summary.rejected_share = 1.0 - 1.0 / f64::from(nodes);
            } else {
                summary.rejected.clear();
                summary.rejected_share = 0.0;
            }
        }
        report.comparisons.push(comparison);
    }
    report.environment.insert(1, ("cluster", format!("Group Replication, {most} nodes")));
    report
}

/// What an account without privileges cannot measure.
fn not_measured() -> Vec<NotMeasured> {
    vec![NotMeasured {
        what: "sessions waiting".into(),
        because: "ERROR 1227 (42000): Access denied; you need (at least one of) the PROCESS privilege(s) for this operation".into(),
        remedy: "GRANT PROCESS ON *.* TO 'monitor'@'a-host.example.com';".into(),
    }]
}

fn usual(kind: Kind) -> bool {
    !matches!(kind, Kind::Part | Kind::Extra)
}

/// One of each kind, and the extremes: all contenders, many settings, large and small figures, one round.
fn pages() -> Vec<(&'static str, String)> {
    let many = [1, 2, 3, 4, 8, 16, 32, 64, 128, 250, 500, 1000];
    let mut slow = benchmark(&[64], &[1], |kind| kind == Kind::Other, 7.0, 3);
    slow.comparisons[0].setting.counters = 100_000;
    slow.comparisons[0].setting.hold = Some(Duration::from_millis(10_000));
    let pages = vec![
        ("one setting", report::bench_page(&benchmark(&[64], &[100], usual, 9123.0, 3))),
        ("connections", report::bench_page(&benchmark(&[1, 8, 64, 250], &[100], usual, 812.0, 5))),
        ("many settings", report::bench_page(&benchmark(&many, &[1, 512, 10_000], |_| true, 123_456.0, 3))),
        ("one round", report::bench_page(&benchmark(&[64], &[8, 100], usual, 9_876_543.0, 1))),
        ("slow", report::bench_page(&slow)),
        ("nodes", report::bench_page(&on_nodes(9))),
    ];
    // For the eyes of a developer.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    fs::create_dir_all(&folder).expect("a folder");
    for (name, page) in &pages {
        fs::write(folder.join(format!("{}.html", name.replace(' ', "-"))), page).expect("a page");
    }
    pages
}

fn pages_are_legible_on_every_screen() {
    let pages = pages();
    for dark in [false, true] {
        let lines = findings(&pages, &WIDTHS, dark);
        let (checked, found): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.starts_with("checked "));
        assert!(found.is_empty(), "{}", found.join("\n"));
        assert_eq!(checked.len(), pages.len() * WIDTHS.len());
        for line in checked {
            let texts: u32 = line.split(' ').nth(1).and_then(|texts| texts.parse().ok()).expect("a number");
            assert!(texts > 20 && line.ends_with(if dark { "dark" } else { "light" }), "{line}");
        }
    }
}

/// Without this, a check that finds nothing would not be noticed.
fn the_check_of_pages_finds_faults() {
    let faults = [
        ("a wide box", "the page is wider than the window", "<div style='width:900px'>a</div>"),
        ("a box outside", "outside of the window", "<p style='position:absolute;left:-20px'>some text</p>"),
        ("two texts", "covers", "<p style='position:absolute'>a text</p><p style='position:absolute'>another text</p>"),
        ("a small box", "cut off", "<p style='width:40px;overflow:hidden;white-space:nowrap'>some long text</p>"),
        ("a small picture", "cut off", "<svg viewBox='0 0 50 50' width='50'><text x='30' y='20'>some text</text></svg>"),
        ("two labels", "covers", "<svg viewBox='0 0 90 90' width='90'><text y='20'>a text</text><text y='25'>a text</text></svg>"),
        ("a long text", "wider than its box", "<p style='width:40px;white-space:nowrap'>some long text</p>"),
        ("small text", "text of 6.0 px", "<svg viewBox='0 0 200 50' width='100'><text y='20' font-size='12px'>a</text></svg>"),
        ("grey text", "a contrast of", "<p style='color:#777;background:#888'>some text</p>"),
    ];
    let pages = faults.map(|(name, _, body)| (name, format!("<!DOCTYPE html><body>{body}")));
    let found = findings(&pages, &[360], false);
    for (name, what, _) in faults {
        let fault = format!("{name}, 360 px: {what}");
        assert!(found.iter().any(|line| line.starts_with(&fault)), "{name}: {found:#?}");
    }
}

fn pages_load_nothing() {
    for (name, page) in pages() {
        for forbidden in ["http://", "https://", "src=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(forbidden), "{name}: {forbidden}");
        }
    }
}

/// The sentence at the top, which says only what was measured.
fn a_benchmark_begins_with_what_was_measured() {
    let sentence = |summaries: Vec<Summary>, change: &dyn Fn(&mut Setting)| {
        let mut setting = Setting::default();
        change(&mut setting);
        let small = Comparison {
            setting: Setting { connections: 1, ..setting.clone() },
            summaries: vec![summary("single-row", 1.0, 1)],
        };
        let comparisons = vec![Comparison { setting, summaries }, small];
        let page = report::bench_page(&Report { environment: environment(), comparisons, not_measured: not_measured() });
        let (_, rest) = page.split_once("<h1>").expect("a heading");
        rest.split_once("</h1>").expect("an end").0.to_owned()
    };
    let one = |name, rate| summary(name, rate, 3);
    let same = |_: &mut Setting| ();
    for (summaries, expected) in [
        (
            vec![one("uncontended", 9123.0), one("single-row", 2412.0), one("counters", 7934.0)],
            "This server counts 2,400 a second in one row, and 7,900 with 100 slots. The most it can do is 9,100.",
        ),
        (
            vec![one("uncontended", 7940.0), one("single-row", 2412.0), one("counters", 7934.0)],
            "This server counts 2,410 a second in one row, and 7,930 with 100 slots. The most it can do is 7,940.",
        ),
        (
            vec![one("uncontended", 7000.0), one("single-row", 2412.0), one("counters-fixed", 7934.0)],
            "This server counts 2,400 a second in one row, and 7,900 with 100 slots. With a row for each connection, it is 7,000.",
        ),
        (
            vec![one("single-row", 2412.0), one("counters", 7934.0), one("counters-fixed", 9000.0)],
            "This server counts 2,400 a second in one row, and 7,900 with 100 slots.",
        ),
        (vec![one("single-row", 2412.0)], "This server counts 2,400 a second in one row."),
        (vec![one("queries", 2412.0)], "This server counts 2,400 a second with 100 slots."),
        (vec![one("uncontended", 2412.0)], "Without lock waits, this server counts 2,400 a second."),
        (vec![one("published-upsert", 2412.0)], "This server counts 2,400 a second with published-upsert."),
        (
            vec![one("stock-row", 142.0), one("counter-take", 2599.0)],
            "This server takes 140 times a second from one row, and 2,600 with 100 slots.",
        ),
    ] {
        assert_eq!(sentence(summaries, &same), expected);
    }
    let two = || vec![one("single-row", 2412.0), one("counters", 7934.0)];
    assert_eq!(
        sentence(two(), &|setting| setting.reads = 1.0),
        "This server reads a counter 2,400 times a second from one row, and 7,900 with 100 slots."
    );
    assert_eq!(
        sentence(two(), &|setting| setting.reads = 0.5),
        "This server answers 2,400 calls a second with one row, and 7,900 with 100 slots."
    );
}

/// A page is created before the work, and has the figures of this server.
fn commands_write_pages(server: &Server) {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    let written = |arguments: &[&str], heading: &str| {
        let command = |path: &Path| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
            command.arg(arguments[0]).args(["--url", &server.url()]).args(&arguments[1..]).arg("--html").arg(path);
            command.output().expect("slotted runs")
        };
        let output = command(Path::new("/no/such/folder/page.html"));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.starts_with("error: --html: cannot write to /no/such/folder"), "{stderr}");
        let output = command(&page);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains(&format!("wrote {}", page.display())), "{stderr}");
        let text = fs::read_to_string(&page).expect("a page");
        assert!(text.contains(&format!("{heading} on {}</p>", server.version)), "{text}");
        text
    };
    let bench = ["bench", "--contenders", "uncontended,single-row,counters", "--connections", "1,4", "--slots", "4"];
    let page = written(&[&bench[..], &["--seconds", "0.2", "--rounds", "2"]].concat(), "Counters");
    assert!(page.contains("<h1>This server counts ") && page.contains(" with 4 slots"), "{page}");
    assert_eq!(page.matches("class=\"ends\"").count(), 3, "{page}");
}
