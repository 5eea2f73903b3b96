//! The bench: every contender counts exactly, and the server is left as it was.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use serde_json::Value;
use slotted::bench::{Contender, NAMES, Rounds, Setting, Target, run};
use slotted::script::Query;

use crate::support::{Module, Server};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(every_contender_counts_exactly)
        .on_servers(many_counters_and_transactions_are_counted_exactly)
        .on_servers(reads_and_amounts_are_counted_exactly)
        .on_servers(one_row_waits_for_row_locks_and_the_floor_does_not)
        .on_servers(lists_are_measured_crosswise_and_drawn)
        .on_servers(a_picture_that_cannot_be_written_is_refused_before_the_work)
        .on_servers(a_schema_that_is_there_already_is_left_alone)
        .on_servers(ctrl_c_leaves_no_schema_and_reports_what_it_has)
        .on_servers(ctrl_c_before_the_first_figure_leaves_the_picture_as_it_is)
        .on_servers(the_load_generator_is_not_the_limit)
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

fn check(comparison: &Value, rounds: u64) {
    let contenders = comparison["contenders"].as_array().expect("a list");
    assert_eq!(contenders.iter().map(|one| &one["name"]).collect::<Vec<_>>(), NAMES);
    for one in contenders {
        assert_eq!(one["rounds"], rounds, "{one}");
        let number = |name: &str| one[name].as_f64().unwrap_or_else(|| panic!("{name} of {one}"));
        assert_eq!(one["done"], one["grown"], "{one}");
        assert!(number("done") > 10.0 && number("per_second") > 10.0, "{one}");
        for calls in ["increments", "reads"] {
            let ms = |name: &str| one[calls][name].as_f64().unwrap_or(0.0);
            assert_eq!(one[calls].is_null(), calls == "reads" && comparison["setting"]["read_ratio"] == 0.0, "{one}");
            assert!(ms("p50_ms") <= ms("p99_ms") && ms("p99_ms") <= ms("max_ms"), "{one}");
        }
        assert!(number("to_floor") > 0.0 && number("to_single_row") > 0.0, "{one}");
        assert_eq!(one["name"] == "floor", one["to_floor"] == 1.0, "{one}");
        assert_eq!(one["name"] == "single-row", one["to_single_row"] == 1.0, "{one}");
        // The server of a URL is not ours.
        assert!(one["server_cpu_us"].is_null(), "{one}");
    }
}

// One after the other: there is one schema slotted_bench.
fn every_contender_counts_exactly(server: &Server) {
    let _alone = server.alone();
    let all = NAMES.join(",");
    let arguments = ["--json", "--contenders", &all, "--connections", "8", "--slots", "8", "--seconds", "0.2", "--rounds", "2"];
    let report = reported(&mut bench(server, &arguments));
    check(&report["comparisons"][0], 2);
    assert_eq!(report["environment"]["server"], server.version.to_string());
    assert!(report["environment"]["client"].as_str().is_some_and(|client| client.contains("the server's machine")));
    assert_eq!(report["comparisons"][0]["setting"]["connections"], 8);
    assert_eq!(schemas(server), 0, "it cleans up");
}

fn many_counters_and_transactions_are_counted_exactly(server: &Server) {
    let _alone = server.alone();
    let all = NAMES.join(",");
    let arguments = [
        "--json", "--contenders", &all, "--connections", "8", "--slots", "4", "--counters", "20", "--zipf", "1", "--hold", "2", "--seconds",
        "0.3", "--rounds", "1",
    ];
    check(&reported(&mut bench(server, &arguments))["comparisons"][0], 1);
}

fn reads_and_amounts_are_counted_exactly(server: &Server) {
    let _alone = server.alone();
    let all = NAMES.join(",");
    let arguments = [
        "--json", "--contenders", &all, "--connections", "8", "--slots", "4", "--read-ratio", "0.5", "--add-per-call", "7", "--seconds", "0.3",
        "--rounds", "1",
    ];
    let report = reported(&mut bench(server, &arguments));
    check(&report["comparisons"][0], 1);
    for one in report["comparisons"][0]["contenders"].as_array().expect("a list") {
        assert_eq!(one["done"].as_u64().expect("a number") % 7, 0, "{one}");
    }
}

fn one_row_waits_for_row_locks_and_the_floor_does_not(server: &Server) {
    let _alone = server.alone();
    let arguments = [
        "--json", "--contenders", "floor,single-row", "--connections", "8", "--hold", "2", "--seconds", "0.5", "--rounds",
        "1",
    ];
    let report = reported(&mut bench(server, &arguments));
    let waits = |at: usize| report["comparisons"][0]["contenders"][at]["row_lock_waits"].as_u64().expect("a number");
    assert!(waits(1) > 20 && waits(1) > 10 * waits(0), "{report}");
}

/// A list measures each number of connections with each number of slots, and the picture has a line per contender.
fn lists_are_measured_crosswise_and_drawn(server: &Server) {
    let _alone = server.alone();
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("picture.svg");
    let arguments = [
        "--csv", "--contenders", "floor,counters", "--connections", "1,4", "--slots", "2,8", "--seconds", "0.2",
        "--rounds", "1", "--svg", picture.to_str().expect("a path"),
    ];
    let output = bench(server, &arguments).output().expect("the bench runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut csv = csv::Reader::from_reader(output.stdout.as_slice());
    let names = csv.headers().expect("a head").clone();
    let rows: Vec<_> = csv.records().map(|record| record.expect("as many fields as names")).collect();
    let of = |row: &csv::StringRecord, name: &str| {
        let at = names.iter().position(|one| one == name).unwrap_or_else(|| panic!("{name} in {names:?}"));
        row[at].to_owned()
    };
    let settings: Vec<_> = rows.iter().map(|row| ["connections", "slots", "contender"].map(|name| of(row, name))).collect();
    let mut expected = Vec::new();
    for connections in ["1", "4"] {
        for slots in ["2", "8"] {
            expected.extend(["floor", "counters"].map(|name| [connections, slots, name].map(str::to_owned)));
        }
    }
    assert_eq!(settings, expected);
    for row in &rows {
        assert_eq!(of(row, "done"), of(row, "grown"));
        assert!(of(row, "per_second").parse::<f64>().expect("a number") > 1.0);
    }
    let picture = fs::read_to_string(&picture).expect("the picture");
    // Over connections for 2 and 8 slots, over slots for 1 and 4 connections.
    assert_eq!(picture.matches("<polyline").count(), 4 * 2, "{picture}");
    assert!(picture.contains(&format!("increments/s on {}", server.version)), "{picture}");
    let query = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'slotted\\_bench%'";
    assert_eq!(server.connect().query_first::<u64, _>(query).expect("schemata"), Some(0));
}

fn a_picture_that_cannot_be_written_is_refused_before_the_work(server: &Server) {
    let output = bench(server, &["--svg", "/no/such/folder/picture.svg"]).output().expect("the bench runs");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.starts_with("error: --svg: cannot write to /no/such/folder"), "{stderr}");
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

/// Starts a bench, and presses Ctrl-C so long after it has made its schema.
fn interrupted(server: &Server, after: Duration, arguments: &[&str]) -> Output {
    let child = bench(server, arguments).spawn().expect("the bench starts");
    let start = Instant::now();
    while schemas(server) == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "it makes no schema");
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(after);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    let output = child.wait_with_output().expect("the bench ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted; the schema slotted_bench is dropped"), "{stderr}");
    assert_eq!(schemas(server), 0);
    output
}

fn ctrl_c_leaves_no_schema_and_reports_what_it_has(server: &Server) {
    let _alone = server.alone();
    let arguments = ["--contenders", "floor,counters", "--connections", "4", "--seconds", "0.2", "--rounds", "1000"];
    // Beyond the warm-up.
    let output = interrupted(server, Duration::from_secs(5), &arguments);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("increments/s") && stdout.contains("counters"), "{stdout}");
}

fn ctrl_c_before_the_first_figure_leaves_the_picture_as_it_is(server: &Server) {
    let _alone = server.alone();
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("bench.svg");
    fs::write(&picture, "the last one").expect("a picture");
    let svg = picture.to_str().expect("UTF-8");
    let arguments = ["--contenders", "floor", "--connections", "4", "--seconds", "600", "--svg", svg];
    interrupted(server, Duration::from_millis(500), &arguments);
    assert_eq!(fs::read_to_string(&picture).expect("a picture"), "the last one");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
}

/// A statement that does nothing goes through much faster than the floor. Seen alone on two cores: docs/benchmark.md.
fn the_load_generator_is_not_the_limit(server: &Server) {
    let _alone = server.alone();
    let schema = server.schema();
    let setting = Setting { duration: Duration::from_secs(1), ..Setting::default() };
    let floor = Contender::named("floor", &setting).expect("a setting").expect("a floor");
    let nothing = Query { name: String::new(), parameters: Vec::new(), sql: "DO 0".into() };
    let nothing = Contender { increment: nothing, ..floor.clone() };
    let target = Target { options: schema.options().into(), process: None };
    let running = AtomicBool::new(false);
    // Makes the table.
    Rounds::prepare(vec![floor.clone()], target.clone(), setting.clone()).expect("a table");
    let rate = |contender| run(contender, &target, &setting, &running).expect("a load").rate();
    let (floor, nothing) = (rate(&floor), rate(&nothing));
    println!("{}: floor {floor:.0}/s, DO 0 {nothing:.0}/s, {:.1} times", server.version, nothing / floor);
    assert!(nothing > 2.0 * floor, "{nothing} {floor}");
}

fn without_a_url_the_server_is_private_and_gone_afterwards(server: &Server) {
    // A server that a URL names is not ours to start again.
    let Some(daemon) = server.daemon() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_slotted"));
    bench
        .args(["bench", "--contenders", "floor,queries", "--connections", "4", "--seconds", "0.5", "--rounds", "1"])
        .arg("--json")
        .env("SLOTTED_SERVER", daemon)
        .env("TMPDIR", folder.path());
    let report = reported(&mut bench);
    let environment = &report["environment"];
    assert_eq!(environment["server"], server.version.to_string());
    assert_eq!(environment["log_bin"], "ON");
    for one in report["comparisons"][0]["contenders"].as_array().expect("a list") {
        // Linux tells what a process has taken of its processors. A commit takes some microseconds on any of them.
        let cpu = one["server_cpu_us"].as_f64();
        assert_eq!(cpu.is_some(), cfg!(target_os = "linux"), "{one}");
        assert!(cpu.is_none_or(|us| us > 5.0 && us < 100_000.0), "{one}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}
