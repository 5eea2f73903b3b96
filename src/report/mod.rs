//! Reports as pages: HTML files that explain themselves, with everything that they show inside. Pure.

mod bench;

pub use bench::page as bench_page;

/// The properties of the server and of the client that a page lists.
type Environment<'a> = &'a [(&'static str, String)];

/// A row of a chart of bars. The lengths are in percent of the longest one.
struct Bar {
    name: String,
    /// Sets the colour.
    class: &'static str,
    length: f64,
    /// The left end and the length of its spread.
    spread: Option<(f64, f64)>,
    value: String,
    range: String,
}

/// The value of a property, or an empty text.
fn property<'a>(environment: Environment<'a>, name: &str) -> &'a str {
    let found = environment.iter().find(|(one, _)| *one == name);
    found.map_or("", |(_, value)| value.as_str())
}

/// What a figure of this server does not hold for, because of its settings.
fn durability(environment: Environment<'_>) -> Option<String> {
    let flushed = property(environment, "innodb_flush_log_at_trx_commit");
    let logged = property(environment, "log_bin");
    let synced = property(environment, "sync_binlog");
    let log = (flushed != "1").then(|| format!("innodb_flush_log_at_trx_commit is {flushed}"));
    let binlog = (logged == "ON" && synced != "1").then(|| format!("sync_binlog is {synced}"));
    let found: Vec<_> = log.into_iter().chain(binlog).collect();
    (!found.is_empty()).then(|| {
        format!(
            "Commits that survive a crash of the machine: {}. With 1, each commit waits for the disk, locks are held longer, \
             and one row counts slower.",
            found.join(", and ")
        )
    })
}
