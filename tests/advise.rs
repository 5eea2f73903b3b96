//! `slotted advise`: the recommendations for counters and hot rows are correct, and their statements work.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mysql::Conn;
use mysql::prelude::Queryable;
use serde_json::Value;

use crate::support::{Module, Schema, Server, keyed, package, repeatable, measured};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(recommended_changes_remove_the_lock_waits)
        .on_servers(hot_records_are_reported)
        .on_servers(the_condition_of_a_hot_record_finds_it)
        .on_servers(advise_reads_a_counter_whose_resize_is_incomplete)
        .on_servers(advise_needs_only_select_and_process)
        .on_servers(a_hot_stock_row_becomes_a_counter_to_take_from);
}

/// The number of sessions that increment the hot counter, in transactions of 5 ms.
const SESSIONS: u32 = 24;

fn slotted(arguments: &[&str]) -> Output {
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

/// Runs `work` while sessions run the statements of `load`, each in transactions of 5 ms. `load` has each statement with
/// its number of sessions.
fn under_load<T>(schema: &Schema<'_>, load: &[(&str, u32)], work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for &(statement, sessions) in load {
            for _ in 0..sessions {
                let stop = &stop;
                scope.spawn(move || {
                    let mut connection = schema.connect();
                    while !stop.load(Ordering::Relaxed) {
                        if let Err(error) = transaction(&mut connection, statement) {
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

fn transaction(connection: &mut Conn, statement: &str) -> mysql::Result<()> {
    connection.query_drop("START TRANSACTION")?;
    connection.query_drop(statement)?;
    thread::sleep(Duration::from_millis(5));
    connection.query_drop("COMMIT")
}

/// The recommendation for a counter or row.
fn of<'a>(report: &'a Value, schema: &Schema<'_>, subject: &str) -> &'a Value {
    let subject = format!("{}.{subject}", schema.ident().name());
    let found = report["advice"].as_array().expect("a list").iter().find(|one| one["subject"] == subject);
    found.unwrap_or_else(|| panic!("{subject} in {report:#}"))
}

fn recommended_changes_remove_the_lock_waits(server: &Server) {
    let _alone = server.alone();
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run(
        "CALL counter_setup('hot', NULL, 2, 0); CALL counter_setup('wide', NULL, 2000, 0);
         CALL counter_setup('it''s fine', NULL, 8, 0);
         CREATE TABLE pages (id INT PRIMARY KEY, hits BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO pages VALUES (7, 0)",
    );
    let load = [
        ("CALL counter_increment('hot')", SESSIONS),
        ("UPDATE pages SET hits = hits + 1 WHERE id = 7", 8),
        ("CALL counter_increment('wide')", 2),
        ("CALL counter_increment('it''s fine')", 1),
    ];
    let report = under_load(&schema, &load, || {
        thread::sleep(Duration::from_millis(500));
        advised(&server.url(), "3")
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
    let url = format!("'{}'", url(server, &schema));
    let line = row["run"].as_str().expect("a command").replacen("slotted", env!("CARGO_BIN_EXE_slotted"), 1);
    let output = Command::new("sh").args(["-c", &line.replace("URL", &url)]).output().expect("sh runs");
    assert!(output.status.success(), "{line}: {}", printed(&output));
    let moved: (i64, u64) = schema.first("SELECT total, slots FROM counter_totals WHERE counter_name = 'pages.hits id = 7'");
    assert_eq!(moved, (hits, slots(row)));
    assert!(hits > 0);

    // With the recommended number of slots, the same load waits no longer.
    measured(|| {
        let calm = under_load(&schema, &load[..1], || {
            thread::sleep(Duration::from_millis(300));
            let output = slotted(&["advise", "--url", &server.url(), "--seconds", "2", "--json"]);
            serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", printed(&output)))
        });
        let grows = of(&calm, &schema, "counters: hot")["verdict"]["do"] == "grow";
        if grows { Err(format!("{calm:#}")) } else { Ok(()) }
    });

    // The bench confirms that the recommended number is sufficient and the old one is not. It uses transactions of 20 ms,
    // because shorter ones are limited by the processor, which other tests use at the same time.
    let ratio = |slots: &str| {
        let connections = SESSIONS.to_string();
        let arguments = [
            "bench", "--url", &server.url(), "--json", "--contenders", "uncontended,counters", "--connections", &connections,
            "--slots", slots, "--hold", "20", "--seconds", "1", "--rounds", "3",
        ];
        let output = slotted(&arguments);
        assert!(output.status.success(), "{}", printed(&output));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["comparisons"][0]["contenders"][1]["to_uncontended"].as_f64().expect("a ratio")
    };
    measured(|| {
        let (few, advised) = (ratio("2"), ratio(&slots(hot).to_string()));
        let shown = format!("of uncontended with 2 slots {few:.2}, with {} slots {advised:.2}", slots(hot));
        println!("{}: {shown}", server.version);
        if few < advised { Ok(()) } else { Err(shown) }
    });
}

fn hot_records_are_reported(server: &Server) {
    let _alone = server.alone();
    let schema = server.schema();
    schema.install(&keyed(|options| options.slots = slotted::package::Slots::Fixed(2)));
    let report = under_load(&schema, &[("CALL slotted_counter_increment(1, 2)", SESSIONS)], || {
        thread::sleep(Duration::from_millis(300));
        advised(&server.url(), "2")
    });
    let record = of(&report, &schema, "slotted_counters: record_type = 1 AND record_id = 2");
    assert_eq!(record["verdict"]["do"], "grow", "{report:#}");
    assert!(record["because"].as_str().expect("text").contains("the package has 2 slots"), "{record}");
}

fn the_condition_of_a_hot_record_finds_it(server: &Server) {
    let _alone = server.alone();
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
    let report = under_load(&schema, &[(&call, SESSIONS)], || {
        thread::sleep(Duration::from_millis(300));
        advised(&server.url(), "2")
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
    let _alone = server.alone();
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('one', NULL, 3, 0); UPDATE counters SET counter_id = -3 WHERE counter_id = 3");
    let output = slotted(&["advise", "--url", &server.url(), "--seconds", "0.5"]);
    // Recommendations for counters of other tests make the exit code 1.
    assert!([Some(0), Some(1)].contains(&output.status.code()), "{}", printed(&output));
    assert!(printed(&output).contains(&format!("{}.counters: one", schema.ident().name())), "{}", printed(&output));
}

fn advise_needs_only_select_and_process(server: &Server) {
    let _alone = server.alone();
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('one', NULL, 3, 0)");
    let name = schema.ident().name().to_owned();
    schema.run(&format!("CREATE USER '{name}'@'%'; GRANT SELECT ON *.* TO '{name}'@'%'"));
    let url = server.url().replacen("root", &name, 1);
    let advise = || slotted(&["advise", "--url", &url, "--seconds", "0.5"]);
    let without = advise();
    schema.run(&format!("GRANT PROCESS ON *.* TO '{name}'@'%'"));
    let with = advise();
    schema.run(&format!("DROP USER '{name}'@'%'"));

    // Recommendations for counters of other tests make the exit code 1.
    assert!([Some(0), Some(1)].contains(&with.status.code()), "{}", printed(&with));
    assert!(printed(&with).contains(&format!("{name}.counters: one")), "{}", printed(&with));
    if !server.is_mysql() {
        // On MySQL, SELECT on *.* is sufficient to read the lock waits.
        assert_eq!(without.status.code(), Some(2), "{}", printed(&without));
        assert!(printed(&without).contains(&format!("hint: GRANT PROCESS ON *.* TO '{name}'@'%'")), "{}", printed(&without));
    }
}

/// The URL of a schema, for `--url`.
pub fn url(server: &Server, schema: &Schema<'_>) -> String {
    let url = server.url();
    let (address, options) = url.split_once('?').map_or((url.as_str(), ""), |(address, options)| (address, options));
    format!("{}/{}?{options}", address.trim_end_matches('/'), schema.ident().name())
}

fn a_hot_stock_row_becomes_a_counter_to_take_from(server: &Server) {
    let _alone = server.alone();
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CREATE TABLE stock (id INT PRIMARY KEY, qty BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO stock VALUES (42, 1000000)");
    let load = [("UPDATE stock SET qty = qty - 1 WHERE id = 42 AND qty >= 1", 8)];
    let report = under_load(&schema, &load, || {
        thread::sleep(Duration::from_millis(500));
        advised(&server.url(), "2")
    });
    let row = of(&report, &schema, "stock: id = 42");
    let run = row["run"].as_str().expect("a command").to_owned();
    let (adopt, take) = run.split_once("\n-- In place of the statement: ").unwrap_or_else(|| panic!("{report:#}"));
    let left: i64 = schema.first("SELECT qty FROM stock");
    let url = format!("'{}'", url(server, &schema));
    let line = adopt.replacen("slotted", env!("CARGO_BIN_EXE_slotted"), 1).replace("URL", &url);
    let output = Command::new("sh").args(["-c", &line]).output().expect("sh runs");
    assert!(output.status.success(), "{line}: {}", printed(&output));
    schema.run(&take.replace("amount", "2"));
    assert_eq!(schema.first::<i64>("SELECT total FROM counter_totals"), left - 2);
}
