//! `slotted advise`: the recommendations for counters and hot rows are correct, and their statements work.

use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;
use serde_json::Value;

use crate::support::{Module, Schema, Server, keyed, package, repeatable, measured};

pub fn promises(mut module: Module<'_>) {
    module
        .alone()
        .on_servers(recommended_changes_remove_the_lock_waits)
        .waits()
        .on_families(hot_records_are_reported)
        .waits()
        .on_families(rows_that_statements_with_characters_of_4_bytes_wait_for_are_reported)
        .waits()
        .on_servers(the_condition_of_a_hot_record_finds_it)
        .on_servers(advise_reads_a_counter_whose_resize_is_incomplete)
        .waits()
        .on_families(what_an_account_cannot_see_is_named_with_its_grant)
        .waits()
        .on_families(an_account_of_one_database_observes_this_database)
        .on_families(a_package_whose_view_cannot_be_read_is_named)
        .on_families(idle_counters_get_no_advice)
        .on_one_server(counters_with_the_ends_of_bigint_are_observed)
        .waits()
        .on_families(connections_of_all_urls_add_up)
        .waits()
        .on_families(a_watch_prints_a_line_for_each_change)
        .waits()
        .on_families(a_hot_stock_row_becomes_a_counter_to_take_from);
}

/// The number of sessions that increment the hot counter.
const SESSIONS: u32 = 24;

/// The duration of their transactions.
const HOLD: Duration = Duration::from_millis(5);

pub fn slotted(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slotted")).args(arguments).output().expect("slotted runs")
}

/// What a command printed, for an assertion.
pub fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The JSON object of an advise that recommends a change, and therefore exits with 1.
fn advised(url: &str, seconds: &str) -> Value {
    let output = slotted(&["advise", "--url", url, "--seconds", seconds, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", printed(&output)))
}

/// The same for the counters and rows of one schema.
pub fn advised_in(server: &Server, schema: &Schema<'_>, seconds: &str) -> Value {
    advised(&url(server, schema), seconds)
}

/// Runs `work` while sessions run the statements of `load`, each in transactions of `hold`. `load` has each statement with
/// its number of sessions.
pub fn under_load<T>(schema: &Schema<'_>, hold: Duration, load: &[(&str, u32)], work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for &(statement, sessions) in load {
            for _ in 0..sessions {
                let stop = &stop;
                scope.spawn(move || {
                    let mut connection = schema.connect();
                    while !stop.load(Ordering::Relaxed) {
                        if let Err(error) = transaction(&mut connection, statement, hold) {
                            repeatable(error);
                            connection.query_drop("ROLLBACK").expect("a rollback");
                        }
                    }
                });
            }
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn transaction(connection: &mut Conn, statement: &str, hold: Duration) -> mysql::Result<()> {
    connection.query_drop("START TRANSACTION")?;
    connection.query_drop(statement)?;
    thread::sleep(hold);
    connection.query_drop("COMMIT")
}

/// The recommendation for a counter or row.
fn of<'a>(report: &'a Value, schema: &Schema<'_>, subject: &str) -> &'a Value {
    let subject = format!("{}.{subject}", schema.ident().name());
    let found = report["advice"].as_array().expect("a list").iter().find(|one| one["subject"] == subject);
    found.unwrap_or_else(|| panic!("{subject} in {report:#}"))
}

fn recommended_changes_remove_the_lock_waits(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run(
        "CALL counter_setup('hot', NULL, 2, 0); CALL counter_setup('wide', NULL, 10000, 0);
         CALL counter_setup('it''s fine', NULL, 8, 0);
         CREATE TABLE pages (id INT PRIMARY KEY, hits BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO pages VALUES (7, 0)",
    );
    let load = [
        ("CALL counter_increment('hot')", SESSIONS),
        ("UPDATE pages SET hits = hits + 1 WHERE id = 7", 8),
        ("CALL counter_increment('wide')", 2),
        ("CALL counter_increment('it''s fine')", 1),
    ];
    let report = under_load(&schema, HOLD, &load, || {
        thread::sleep(Duration::from_millis(500));
        advised_in(server, &schema, "3")
    });

    let slots = |advice: &Value| advice["verdict"]["slots"].as_u64().expect("a number");
    let hot = of(&report, &schema, "counters: hot");
    assert_eq!(hot["verdict"]["do"], "grow", "{report:#}");
    assert!(slots(hot) >= u64::from(SESSIONS), "{hot}");
    assert!(hot["because"].as_str().expect("text").contains("rounded up to a prime"), "{hot}");
    let wide = of(&report, &schema, "counters: wide");
    assert_eq!(wide["verdict"]["do"], "shrink", "{report:#}");
    let [now, then] = [0, 1].map(|at| wide["read_us"][at].as_f64().expect("a number"));
    assert!(then < now, "a read of fewer slots takes less time: {wide}");
    let fine = of(&report, &schema, "counters: it's fine");
    assert_eq!((&fine["verdict"]["do"], &fine["run"]), (&"fine".into(), &"".into()), "{report:#}");
    let row = of(&report, &schema, "pages: id = 7");
    assert_eq!(row["verdict"]["do"], "adopt", "{report:#}");
    assert!(row["because"].as_str().expect("text").contains("UPDATE pages SET hits = hits + 1"), "{row}");

    // The statements and the command of the recommendations work.
    for advice in [hot, wide] {
        schema.run(advice["run"].as_str().expect("SQL"));
        let query = format!("SELECT COUNT(*) FROM counters WHERE counter_name = '{}'", if advice == hot { "hot" } else { "wide" });
        assert_eq!(schema.first::<u64>(&query), slots(advice));
    }
    let hits: i64 = schema.first("SELECT hits FROM pages");
    followed(server, &schema, row);
    let moved: (i64, u64) = schema.first("SELECT total, slots FROM counter_totals WHERE counter_name = 'pages.hits id = 7'");
    assert_eq!(moved, (hits, slots(row)));
    assert!(hits > 0);

    // With the recommended number of slots, the same load waits no longer.
    measured(|| {
        let calm = under_load(&schema, HOLD, &load[..1], || {
            thread::sleep(Duration::from_millis(300));
            let output = slotted(&["advise", "--url", &server.url(), "--seconds", "2", "--json"]);
            serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", printed(&output)))
        });
        let grows = of(&calm, &schema, "counters: hot")["verdict"]["do"] == "grow";
        if grows { Err(format!("{calm:#}")) } else { Ok(()) }
    });
}

fn hot_records_are_reported(server: &Server) {
    let schema = server.schema();
    schema.install(&keyed(|options| options.slots = slotted::package::Slots::Fixed(2)));
    let report = under_load(&schema, HOLD, &[("CALL slotted_counter_increment(1, 2)", SESSIONS)], || {
        thread::sleep(Duration::from_millis(300));
        advised_in(server, &schema, "2")
    });
    let record = of(&report, &schema, "slotted_counters: record_type = 1 AND record_id = 2");
    assert_eq!(record["verdict"]["do"], "grow", "{report:#}");
    assert!(record["because"].as_str().expect("text").contains("the package has 2 slots"), "{record}");
}

/// MySQL cannot return INNODB_TRX meanwhile (3854).
fn rows_that_statements_with_characters_of_4_bytes_wait_for_are_reported(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE pages (id INT PRIMARY KEY, hits INT NOT NULL) ENGINE=InnoDB; INSERT INTO pages VALUES (1, 0);");
    let update = "UPDATE pages SET hits = hits + 1 WHERE id = 1 -- \u{1f600}";
    let report = under_load(&schema, HOLD, &[(update, SESSIONS)], || {
        thread::sleep(Duration::from_millis(300));
        advised_in(server, &schema, "2")
    });
    let row = of(&report, &schema, "pages: id = 1");
    assert_eq!(row["verdict"]["do"], "adopt", "{report:#}");
}

fn the_condition_of_a_hot_record_finds_it(server: &Server) {
    let schema = server.schema();
    let uuid = if server.is_mysql() { "" } else { ", id UUID" };
    let key = format!("day DATE, moment DATETIME, season YEAR, kind ENUM('view', 'it''s'), token BINARY(2){uuid}");
    schema.install(&keyed(|options| {
        options.key = key.parse().expect("a key");
        options.slots = slotted::package::Slots::Fixed(2);
        if !server.is_mysql() {
            options.servers = slotted::package::Servers::Mariadb;
        }
    }));
    let uuid = if server.is_mysql() { "" } else { ", '6ba7b810-9dad-11d1-80b4-00c04fd430c8'" };
    let record = format!("'2026-11-23', '2026-11-23 23:59:58', 2026, 'it''s', x'00ff'{uuid}");
    let call = format!("CALL slotted_counter_increment({record})");
    let report = under_load(&schema, HOLD, &[(&call, SESSIONS)], || {
        thread::sleep(Duration::from_millis(300));
        advised_in(server, &schema, "2")
    });
    let subject = format!("{}.slotted_counters: ", schema.ident().name());
    let advice = report["advice"].as_array().expect("a list");
    let mut subjects = advice.iter().filter_map(|one| one["subject"].as_str()?.strip_prefix(&subject));
    let condition = subjects.next().unwrap_or_else(|| panic!("{report:#}"));
    assert!(condition.contains("day = '2026-11-23' AND moment = '2026-11-23 23:59:58'"), "{condition}");
    assert!(condition.contains("season = 2026 AND kind = 'it''s'"), "{condition}");
    let all: i64 = schema.first("SELECT SUM(count) FROM slotted_counters");
    let found: i64 = schema.first(&format!("SELECT SUM(count) FROM slotted_counters WHERE {condition}"));
    assert_eq!(found, all, "{condition}");
}

fn advise_reads_a_counter_whose_resize_is_incomplete(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('one', NULL, 3, 0); UPDATE counters SET counter_id = -3 WHERE counter_id = 3");
    let output = slotted(&["advise", "--url", &url(server, &schema), "--seconds", "0.5"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert!(printed(&output).contains(&format!("{}.counters: one", schema.ident().name())), "{}", printed(&output));
}

/// An account with some privileges, dropped at the end.
struct Account<'a> {
    schema: &'a Schema<'a>,
    name: String,
}

impl<'a> Account<'a> {
    fn new(schema: &'a Schema<'a>, number: usize, grants: &[&str]) -> Self {
        let name = format!("{}_{number}", schema.ident().name());
        schema.run(&format!("CREATE USER '{name}'@'%'"));
        for grant in grants {
            schema.run(&format!("GRANT {} TO '{name}'@'%'", grant.replace("{s}", schema.ident().name())));
        }
        Self { schema, name }
    }

    fn advise(&self, server: &Server, more: &[&str]) -> (Option<i32>, Value) {
        let url = server.url_of(&self.name, None);
        let output = slotted(&[&["advise", "--url", &url, "--seconds", "1", "--json"], more].concat());
        let report = serde_json::from_slice(&output.stdout);
        (output.status.code(), report.unwrap_or_else(|error| panic!("{error}: {}", printed(&output))))
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        self.schema.run(&format!("DROP USER '{}'@'%'", self.name));
    }
}

/// Each documented privilege alone, several, all of them, and none.
fn accounts(server: &Server) -> Vec<Vec<&'static str>> {
    let mut accounts = vec![
        vec![],
        vec!["PROCESS ON *.*"],
        vec!["SELECT ON *.*"],
        vec!["SELECT ON {s}.*"],
        vec!["EXECUTE ON {s}.*"],
        vec!["PROCESS ON *.*", "SELECT ON {s}.*"],
        vec!["PROCESS ON *.*", "SELECT ON *.*"],
    ];
    if server.is_mysql() {
        accounts.push(vec!["SELECT ON performance_schema.*"]);
        accounts.push(vec!["PROCESS ON *.*", "SELECT ON performance_schema.*"]);
        accounts.push(vec!["PROCESS ON *.*", "SELECT ON performance_schema.*", "SELECT ON {s}.*"]);
    }
    accounts
}

fn what_an_account_cannot_see_is_named_with_its_grant(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|options| options.slots = slotted::package::Slots::Fixed(2)));
    schema.run(
        "CALL counter_setup('hot', NULL, 2, 0);
         CREATE TABLE pages (id INT PRIMARY KEY, hits BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO pages VALUES (7, 0)",
    );
    let expected = [
        ("counters: hot", "grow"),
        ("slotted_counters: record_type = 1 AND record_id = 2", "grow"),
        ("pages: id = 7", "adopt"),
    ];
    let load = [
        ("CALL counter_increment('hot')", 8),
        ("CALL slotted_counter_increment(1, 2)", 8),
        ("UPDATE pages SET hits = hits + 1 WHERE id = 7", 4),
    ];
    let prefix = format!("{}.", schema.ident().name());
    under_load(&schema, Duration::from_millis(20), &load, || {
        thread::sleep(Duration::from_millis(300));
        for (number, grants) in accounts(server).iter().enumerate() {
            let account = Account::new(&schema, number, grants);
            for attempt in 0.. {
                let (code, report) = account.advise(server, &[]);
                let found = report["advice"].as_array().expect("a list");
                for (subject, verdict) in expected {
                    let subject = format!("{prefix}{subject}");
                    let advice = found.iter().find(|one| one["subject"] == subject);
                    let verdict_of = |one: &Value| one["verdict"]["do"].as_str().expect("a verdict").to_owned();
                    match advice.map(verdict_of).as_deref() {
                        Some(found) if found == verdict => {}
                        // What it does not know, it does not call fine.
                        Some("unknown") | None if code == Some(2) => {}
                        other => panic!("{grants:?}, {subject}: {other:?} in {report:#}"),
                    }
                }
                let unseen = report["cannot_see"].as_array().expect("a list");
                assert_eq!(unseen.is_empty(), code == Some(1), "{grants:?}: {report:#}");
                if unseen.is_empty() {
                    break;
                }
                assert!(attempt < 6, "{grants:?}: the remedies do not end: {report:#}");
                // The account gets what the report says, and nothing else.
                for one in unseen {
                    let remedy = one["remedy"].as_str().expect("a remedy");
                    let (statements, _) = remedy.rsplit_once(';').unwrap_or_else(|| panic!("{report:#}"));
                    schema.run(statements);
                }
            }
        }
    });
    // The same accounts when no session waits.
    for (number, grants) in accounts(server).iter().enumerate() {
        let account = Account::new(&schema, number, grants);
        let (code, report) = account.advise(server, &[]);
        let all = grants.contains(&"SELECT ON *.*") && grants.contains(&"PROCESS ON *.*");
        // Counters of other tests make the exit code 1, and tables that they drop meanwhile make it 2.
        let unseen = report["cannot_see"].as_array().expect("a list");
        let of_others = |one: &Value| {
            let what = one["what"].as_str().expect("text");
            what.starts_with("the table slotted_test_") && !what.contains(&prefix)
        };
        let complete = unseen.iter().all(of_others);
        assert!(if all { complete } else { code == Some(2) }, "{grants:?}: {report:#}");
        let found = report["advice"].as_array().expect("a list").iter();
        let changes = found.filter(|one| !["fine", "unknown"].contains(&one["verdict"]["do"].as_str().expect("a verdict")));
        let own = changes.filter(|one| one["subject"].as_str().expect("text").starts_with(&prefix));
        assert_eq!(own.count(), 0, "{grants:?}: {report:#}");
    }
}

fn an_account_of_one_database_observes_this_database(server: &Server) {
    let (schema, other) = (server.schema(), server.schema());
    for one in [&schema, &other] {
        one.install(&package(|_| {}));
        one.run("CALL counter_setup('hot', NULL, 2, 0)");
    }
    let mut grants = vec!["PROCESS ON *.*", "SELECT ON {s}.*"];
    if server.is_mysql() {
        grants.push("SELECT ON performance_schema.*");
    }
    let account = Account::new(&schema, 0, &grants);
    let load = [("CALL counter_increment('hot')", 8)];
    let (code, report) = under_load(&schema, Duration::from_millis(20), &load, || {
        under_load(&other, Duration::from_millis(20), &load, || {
            account.advise(server, &["--database", schema.ident().name()])
        })
    });
    assert_eq!(code, Some(1), "{report:#}");
    let advice = report["advice"].as_array().expect("a list");
    assert_eq!(advice.len(), 1, "{report:#}");
    assert_eq!(of(&report, &schema, "counters: hot")["verdict"]["do"], "grow");
}

/// An administrator reads the text of the view. Another account selects from it, for which the server needs the definer.
fn a_package_whose_view_cannot_be_read_is_named(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|options| options.definer = Some("'nobody'@'localhost'".parse().expect("an account"))));
    let output = slotted(&["advise", "--url", &url(server, &schema), "--seconds", "0.5"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let mut grants = vec!["PROCESS ON *.*", "SELECT ON {s}.*"];
    if server.is_mysql() {
        grants.push("SELECT ON performance_schema.*");
    }
    let account = Account::new(&schema, 0, &grants);
    let (code, report) = account.advise(server, &["--database", schema.ident().name()]);
    assert_eq!(code, Some(2), "{report:#}");
    let unseen = report["cannot_see"][0]["what"].as_str().expect("text");
    assert!(unseen.starts_with(&format!("the view {}.counter_package: ERROR 1", schema.ident().name())), "{report:#}");
    let remedy = report["cannot_see"][0]["remedy"].as_str().expect("text");
    assert!(remedy.starts_with("GRANT SHOW VIEW ON"), "{remedy}");
    schema.run(remedy);
    let (code, report) = account.advise(server, &["--database", schema.ident().name()]);
    assert_eq!(code, Some(0), "{report:#}");
}

fn idle_counters_get_no_advice(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('wide', NULL, 10000, 0)");
    let output = slotted(&["advise", "--url", &url(server, &schema), "--seconds", "0.5", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let wide = of(&report, &schema, "counters: wide");
    assert_eq!((&wide["verdict"]["do"], &wide["because"]), (&"fine".into(), &"its total did not change".into()), "{report:#}");
}

fn counters_with_the_ends_of_bigint_are_observed(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('far', NULL, 3, 0); UPDATE counters SET counter = -9223372036854775808");
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(700));
            schema.run("UPDATE counters SET counter = 9223372036854775807");
        });
        slotted(&["advise", "--url", &url(server, &schema), "--seconds", "2", "--json"])
    });
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", printed(&output)));
    assert_eq!(of(&report, &schema, "counters: far")["verdict"]["do"], "fine", "{report:#}");
}

fn connections_of_all_urls_add_up(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('hot', NULL, 2, 0)");
    let url = url(server, &schema);
    let load = [("CALL counter_increment('hot')", 8)];
    let report = under_load(&schema, Duration::from_millis(20), &load, || {
        let output = slotted(&["advise", "--url", &url, "--url", &url, "--seconds", "1", "--json"]);
        assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    });
    let hot = of(&report, &schema, "counters: hot");
    // Both URLs are the same server, whose sessions are those of two nodes to the command.
    assert!(report["watched"]["connected"].as_u64() >= Some(16), "{report:#}");
    assert!(hot["verdict"]["slots"].as_u64() >= Some(64), "{report:#}");
}

fn a_watch_prints_a_line_for_each_change(server: &Server) {
    use std::io::{BufRead, BufReader};
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('hot', NULL, 2, 0)");
    let subject = format!("{}.counters: hot", schema.ident().name());
    let start = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
        command.args(["advise", "--url", &url(server, &schema), "--seconds", "0.5", "--watch"]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("slotted runs")
    };
    let stop = |mut child: Child| {
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
    };
    let mut watch = start(&[]);
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    let load = [("CALL counter_increment('hot')", 8)];
    let hot = under_load(&schema, Duration::from_millis(20), &load, &mut next);
    assert!(hot.contains(&format!("Z {subject}: grow: on average")), "{hot}");
    let ended = next();
    assert!(ended.ends_with(&format!("Z {subject}: no recommendation any more")), "{ended}");
    stop(watch);

    let mut watch = start(&["--json"]);
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    for _ in 0..2 {
        let line = lines.next().expect("a line").expect("text");
        let object: Value = serde_json::from_str(&line).expect("an object in a line");
        assert!(object["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{line}");
        assert!(object["watched"]["samples"].as_u64() >= Some(1), "{line}");
    }
    stop(watch);
}

/// The URL of a schema, for `--url`.
pub fn url(server: &Server, schema: &Schema<'_>) -> String {
    let url = server.url();
    let (address, options) = url.split_once('?').map_or((url.as_str(), ""), |(address, options)| (address, options));
    format!("{}/{}?{options}", address.trim_end_matches('/'), schema.ident().name())
}

fn a_hot_stock_row_becomes_a_counter_to_take_from(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE stock (id INT PRIMARY KEY, qty BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO stock VALUES (42, 1000000)");
    let load = [("UPDATE stock SET qty = qty - 1 WHERE id = 42 AND qty >= 1", 8)];
    let report = under_load(&schema, HOLD, &load, || {
        thread::sleep(Duration::from_millis(500));
        advised_in(server, &schema, "2")
    });
    let row = of(&report, &schema, "stock: id = 42");
    let left: i64 = schema.first("SELECT qty FROM stock");
    let calls = followed(server, &schema, row);
    assert_eq!(calls.len(), 1, "{row}");
    schema.run(&calls[0]);
    assert_eq!(schema.first::<i64>("SELECT total FROM bounded_counter_totals"), left - 1);
}

/// Runs the commands of a recommendation as they are, and returns its calls.
pub fn followed(server: &Server, schema: &Schema<'_>, advice: &Value) -> Vec<String> {
    let url = format!("'{}'", url(server, schema));
    let lines = advice["run"].as_str().expect("commands");
    for line in lines.lines().filter(|line| line.starts_with("slotted ")) {
        let command = line.replacen("slotted", env!("CARGO_BIN_EXE_slotted"), 1).replace("URL", &url);
        let output = Command::new("sh").args(["-c", &command]).output().expect("sh runs");
        assert!(output.status.success(), "{line}: {}", printed(&output));
    }
    lines.lines().filter(|line| line.starts_with("CALL")).map(str::to_owned).collect()
}
