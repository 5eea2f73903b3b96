//! The bench: every contender counts exactly, and the server is left as it was.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use serde_json::Value;
use slotted::bench::NAMES;

use crate::support::{Module, Server};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(every_contender_counts_exactly)
        .on_servers(many_counters_and_transactions_are_counted_exactly)
        .on_servers(a_schema_that_is_there_already_is_left_alone)
        .on_servers(ctrl_c_leaves_no_schema_and_reports_what_it_has)
        .on_servers(without_a_url_the_server_is_private_and_gone_afterwards);
}

/// The bench on the server that the tests run on.
fn bench(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    command.args(["bench", "--url", &server.url()]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn schemas(server: &Server) -> u64 {
    let query = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'slotted_bench'";
    server.connect().query_first(query).expect("schemata").expect("a row")
}

/// The one JSON object that it has printed.
fn reported(command: &mut Command) -> Value {
    let output = command.output().expect("the bench runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

fn check(report: &Value, rounds: u64) {
    let names: Vec<_> = report["contenders"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, NAMES);
    for one in report["contenders"].as_array().expect("a list") {
        assert_eq!(one["rounds"], rounds, "{one}");
        let number = |name: &str| one[name].as_f64().unwrap_or_else(|| panic!("{name} of {one}"));
        assert_eq!(one["done"], one["grown"], "{one}");
        assert!(number("done") > 10.0 && number("per_second") > 10.0, "{one}");
        assert!(number("p50_ms") <= number("p99_ms") && number("p99_ms") <= number("max_ms"), "{one}");
        assert!(number("to_floor") > 0.0 && number("to_single_row") > 0.0, "{one}");
    }
    assert_eq!(report["contenders"][0]["to_floor"], 1.0);
    assert_eq!(report["contenders"][1]["to_single_row"], 1.0);
}

// One after the other: there is one schema slotted_bench.
fn every_contender_counts_exactly(server: &Server) {
    let _alone = server.alone();
    let arguments = ["--json", "--connections", "8", "--slots", "8", "--seconds", "0.2", "--rounds", "2"];
    let report = reported(&mut bench(server, &arguments));
    check(&report, 2);
    assert_eq!(report["environment"]["server"], server.version.to_string());
    assert_eq!(report["setting"]["connections"], 8);
    assert_eq!(schemas(server), 0, "it cleans up");
}

fn many_counters_and_transactions_are_counted_exactly(server: &Server) {
    let _alone = server.alone();
    let arguments = [
        "--json", "--connections", "8", "--slots", "4", "--counters", "20", "--zipf", "1", "--hold", "2", "--seconds",
        "0.3", "--rounds", "1",
    ];
    check(&reported(&mut bench(server, &arguments)), 1);
}

fn a_schema_that_is_there_already_is_left_alone(server: &Server) {
    let _alone = server.alone();
    server.connect().query_drop("CREATE DATABASE slotted_bench").expect("a schema");
    let output = bench(server, &[]).output().expect("the bench runs");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        stderr,
        "error: there already is a schema slotted_bench\n\
         hint: where a bench was killed it is left over: DROP DATABASE slotted_bench\n"
    );
    assert_eq!(schemas(server), 1);
    server.connect().query_drop("DROP DATABASE slotted_bench").expect("a drop");
}

fn ctrl_c_leaves_no_schema_and_reports_what_it_has(server: &Server) {
    let _alone = server.alone();
    let arguments = ["--contenders", "floor,counters", "--connections", "4", "--seconds", "0.2", "--rounds", "1000"];
    let child = bench(server, &arguments).spawn().expect("the bench starts");
    let start = Instant::now();
    while schemas(server) == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "it makes no schema");
        thread::sleep(Duration::from_millis(20));
    }
    // Beyond the warm-up.
    thread::sleep(Duration::from_secs(5));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    let output = child.wait_with_output().expect("the bench ends");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("increments/s") && stdout.contains("counters"), "{stdout}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("interrupted; the schema slotted_bench is dropped"), "{stderr}");
    assert_eq!(schemas(server), 0);
}

fn without_a_url_the_server_is_private_and_gone_afterwards(server: &Server) {
    // A server that a URL names is not ours to start again.
    let Some(daemon) = server.daemon() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["bench", "--contenders", "floor,queries", "--connections", "4", "--seconds", "0.2", "--rounds", "1"];
    let output = Command::new(env!("CARGO_BIN_EXE_slotted"))
        .args(arguments)
        .env("SLOTTED_SERVER", daemon)
        .env("TMPDIR", folder.path())
        .output()
        .expect("the bench runs");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains(&format!("server {}", server.version)) && stdout.contains("log_bin ON"), "{stdout}");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}
