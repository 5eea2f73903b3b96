//! The bench proves each total, leaves nothing on the server, and touches nothing that it has not created.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use slotted::bench::BUILT_IN;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .plain(what_cannot_be_measured_or_written_is_said_before_the_load)
        // The schema slotted_bench exists once.
        .alone()
        .on_servers(every_contender_counts_exactly)
        .on_families(the_owner_of_the_schema_needs_no_other_privilege)
        .on_one_server(an_increment_after_a_deadlock_is_repeated_and_counted)
        .on_one_server(a_list_of_connections_is_measured_and_drawn)
        .on_one_server(the_example_of_the_documents_is_a_contender)
        .on_one_server(a_statement_that_fails_and_a_total_that_differs_are_named)
        .on_one_server(a_schema_that_exists_is_not_touched)
        .on_one_server(ctrl_c_drops_the_schema)
        .on_one_server(a_thread_that_does_not_start_ends_the_load)
        .private()
        .on_one_server(without_a_server_a_private_one_is_started_and_removed);
}

const SHORT: [&str; 8] = ["--connections", "4", "--slots", "4", "--seconds", "0.1", "--rounds", "1"];

fn bench(arguments: &[&str]) -> Command {
    let mut command = slotted(&[&["bench"], arguments].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn on(server: &Server, arguments: &[&str]) -> Output {
    let output = bench(&[&["--json", "--url", &server.url()], arguments].concat()).output().expect("the bench runs");
    assert_eq!(schemas(server), 0, "{}", printed(&output));
    output
}

fn schemas(server: &Server) -> u64 {
    let query = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'slotted\\_bench%'";
    server.connect().query_first(query).expect("schemata").expect("a row")
}

/// The results of a report, each of which counted something, and exactly.
fn results(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", printed(output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["schema_version"], 1);
    let results = report["results"].as_array().expect("a list").clone();
    for one in &results {
        let number = |name: &str| one[name].as_f64().unwrap_or_else(|| panic!("{name} of {one}"));
        assert!(number("acknowledged") > 0.0 && number("grown") == number("acknowledged"), "{one}");
        assert!(number("lowest") > 0.0 && number("lowest") <= number("per_second"), "{one}");
        assert!(number("per_second") <= number("highest") && number("p50_ms") <= number("p99_ms"), "{one}");
        assert!(number("read_ms") > 0.0, "{one}");
    }
    results
}

fn names(results: &[Value]) -> Vec<&str> {
    results.iter().map(|one| one["contender"].as_str().expect("a name")).collect()
}

/// Measures a contender of the user.
fn with_file(server: &Server, name: &str, text: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a file");
    on(server, &[&["--contender", &path.display().to_string()], &SHORT[..]].concat())
}

/// Measures one row, with one change of the text.
fn changed(server: &Server, from: &str, to: &str) -> Output {
    let text = "-- setup\nCREATE TABLE mine (n BIGINT NOT NULL) ENGINE = InnoDB;\nINSERT INTO mine VALUES (0);\n\n\
                -- increment\nUPDATE mine SET n = n + 1;\n\n-- read\nSELECT n FROM mine;\n\n-- total\nSELECT SUM(n) FROM mine;\n";
    assert!(text.contains(from), "{from}");
    with_file(server, "mine.sql", &text.replace(from, to))
}

fn every_contender_counts_exactly(server: &Server) {
    let all: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    let measured = results(&on(server, &[&all[..], &SHORT].concat()));
    assert_eq!(names(&measured), all);
    let batch = measured.iter().find(|one| one["contender"] == "batch").expect("a batch");
    assert_eq!(batch["acknowledged"].as_u64().expect("a number") % 100, 0, "{batch}");

    for wait in ["--hold", "--work"] {
        let held = results(&on(server, &[&["stock-row", "take", wait, "5"], &SHORT[..]].concat()));
        assert_eq!(names(&held), ["stock-row", "take"]);
        assert!(held.iter().all(|one| one["p50_ms"].as_f64() >= Some(5.0)), "{held:?}");
    }
}

/// On a server with a binary log, such an account cannot create functions (1419).
fn the_owner_of_the_schema_needs_no_other_privilege(server: &Server) {
    let root = |statement: &str| server.connect().query_drop(statement).expect(statement);
    root("CREATE USER bench_owner@'%' IDENTIFIED BY 'secret'");
    let url = server.url_of("bench_owner", Some("secret"));
    let run = || bench(&[&["--json", "--url", &url], &SHORT[..]].concat()).output().expect("the bench runs");
    let denied = run();
    root("GRANT ALL ON slotted_bench.* TO bench_owner@'%'");
    let output = run();
    root("DROP USER bench_owner@'%'");
    assert_eq!(denied.status.code(), Some(2), "{}", printed(&denied));
    assert!(printed(&denied).contains("hint: GRANT ALL ON slotted_bench.* to the account"), "{}", printed(&denied));
    assert_eq!((results(&output).len(), schemas(server)), (8, 0), "{}", printed(&output));
}

fn an_increment_after_a_deadlock_is_repeated_and_counted(server: &Server) {
    let trigger = "INSERT INTO mine VALUES (0);\nDELIMITER //\nCREATE TRIGGER rejects BEFORE UPDATE ON mine FOR EACH ROW\n\
                   IF RAND() < 0.5 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213; END IF//\nDELIMITER ;";
    let results = results(&changed(server, "INSERT INTO mine VALUES (0);", trigger));
    assert!(results[0]["retries"].as_u64() > Some(0), "{results:?}");
}

/// Each contender has a line, and one number of connections is drawn as bars.
fn a_list_of_connections_is_measured_and_drawn(server: &Server) {
    let folder = tempfile::tempdir().expect("a folder");
    let [svg, html] = ["a.svg", "a.html"].map(|name| folder.path().join(name).display().to_string());
    let short = ["uncontended", "single-row", "--seconds", "0.1", "--rounds", "2", "--svg", &svg, "--html", &html];
    for (connections, expected, shapes) in [("4,1", &[1, 1, 4, 4][..], [2, 4, 0]), ("2", &[2, 2], [0, 0, 2])] {
        let results = results(&on(server, &[&short[..], &["--connections", connections]].concat()));
        let measured: Vec<_> = results.iter().map(|one| one["connections"].as_u64().expect("a number")).collect();
        let contenders = ["uncontended", "single-row"].repeat(expected.len() / 2);
        assert_eq!((&measured[..], names(&results)), (expected, contenders));
        assert_eq!((results[0]["to_uncontended"].as_f64(), results[0]["rounds"].as_u64()), (Some(1.0), Some(2)));
        let [svg, html] = [&svg, &html].map(|path| fs::read_to_string(path).expect("a picture"));
        assert!(svg.starts_with("<svg") && html.contains(svg.trim_end()), "{html}");
        assert!(svg.contains(&format!("Increments per second on {}", server.version)), "{svg}");
        assert!(svg.contains("median of 2 rounds of 0.1 s"), "{svg}");
        assert_eq!(["<polyline", "<circle", "<rect"].map(|shape| svg.matches(shape).count()), shapes, "{svg}");
    }
}

fn the_example_of_the_documents_is_a_contender(server: &Server) {
    let page = fs::read_to_string(root().join("docs/benchmark.md")).expect("the page");
    let example = page.split("```").find(|block| block.contains("\n-- increment\n")).expect("an example");
    let output = with_file(server, "example.sql", example.trim_start_matches("text\n"));
    assert_eq!(names(&results(&output)), ["example"]);
}

/// No server is asked.
fn what_cannot_be_measured_or_written_is_said_before_the_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = folder.path().join("new.svg").display().to_string();
    for (arguments, error) in [
        (["take", "batch", "take"], "error: two contenders have the name take\n"),
        (["take", "--svg", "/nowhere/a.svg"], "error: cannot write /nowhere/a.svg: No such file or directory"),
        (["take", "--html", "/"], "error: cannot write /: Is a directory"),
        (["--svg=same", "--html=same", "take"], "error: --html and --svg name the same file\n"),
        (["take", "--svg", &new], "error: cannot connect to 127.0.0.1:1: "),
    ] {
        let url = ["--url", "mysql://root@127.0.0.1:1/"];
        let output = bench(&[&url[..], &arguments].concat()).output().expect("the bench runs");
        assert!(output.status.code() == Some(2) && printed(&output).starts_with(error), "{}", printed(&output));
    }
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

/// Memory for the stacks of five threads. They do not wait for those that the system does not start.
fn a_thread_that_does_not_start_ends_the_load(server: &Server) {
    let mut limited = Command::new("timeout");
    let bench = [env!("CARGO_BIN_EXE_slotted"), "bench", "single-row", "--connections", "20", "--url", &server.url()];
    limited
        .args(["--signal=KILL", "60", "sh", "-c", "ulimit -v 6000000; exec \"$@\"", "sh"])
        .args(bench)
        .args(&SHORT[4..]);
    let output = limited.env("RUST_MIN_STACK", "1000000000").output().expect("the bench runs");
    assert_eq!((output.status.code(), schemas(server)), (Some(2), 0), "{}", printed(&output));
    assert!(printed(&output).contains("Resource temporarily unavailable"), "{}", printed(&output));
}

fn a_statement_that_fails_and_a_total_that_differs_are_named(server: &Server) {
    for (from, to, code, error) in [
        ("INTO mine", "INTO yours", 2, "error: mine, statement 2 of -- setup: ERROR 1146 (42S02): "),
        ("UPDATE mine", "UPDATE yours", 2, "error: mine, statement 1 of -- increment: ERROR 1146 (42S02): "),
        ("SELECT n FROM mine", "SELECT n FROM yours", 2, "error: mine, statement 1 of -- read: ERROR 1146 (42S02): "),
        ("SUM(n)", "'many'", 2, "statement 1 of -- total: the total is 'many', not a whole number"),
        ("SUM(n)", "0", 1, "error: mine, statement 1 of -- total: the total grew by "),
        ("n = n + 1", "n = n + 2", 1, "error: mine, statement 1 of -- total: the total grew by "),
    ] {
        let output = changed(server, from, to);
        assert!(output.status.code() == Some(code) && output.stdout.is_empty(), "{}", printed(&output));
        assert!(printed(&output).contains(error), "{}", printed(&output));
    }
}

fn a_schema_that_exists_is_not_touched(server: &Server) {
    let run = |statement: &str| server.connect().query_drop(statement).expect(statement);
    run("CREATE DATABASE slotted_bench");
    run("CREATE TABLE slotted_bench.mine (n INT)");
    let output = bench(&[&["--url", &server.url()], &SHORT[..]].concat()).output().expect("the bench runs");
    let tables: Vec<String> = server.connect().query("SHOW TABLES IN slotted_bench").expect("its tables");
    run("DROP DATABASE slotted_bench");
    assert_eq!((output.status.code(), tables), (Some(2), vec!["mine".to_owned()]));
    let message = "error: the schema slotted_bench already exists\nhint: if a killed bench has left it: DROP DATABASE slotted_bench\n";
    assert!(printed(&output).ends_with(message), "{}", printed(&output));
}

/// During the set-up, and under load.
fn ctrl_c_drops_the_schema(server: &Server) {
    for after in [0, 2] {
        let arguments = ["counters", "--connections", "4", "--seconds", "600", "--hold", "10", "--url", &server.url()];
        let child = bench(&arguments).spawn().expect("the bench starts");
        until("the schema exists", || schemas(server) > 0);
        thread::sleep(Duration::from_secs(after));
        interrupt("-INT", child.id());
        let output = child.wait_with_output().expect("the bench ends");
        assert_eq!((output.status.code(), schemas(server)), (Some(130), 0), "{}", printed(&output));
        let said = "interrupted; the schema slotted_bench has been dropped\n";
        assert!(printed(&output).ends_with(said), "{}", printed(&output));
    }
}

fn without_a_server_a_private_one_is_started_and_removed(server: &Server) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = bench(&[&["single-row", "counters-fixed"], &SHORT[..]].concat());
    command
        .arg("--json")
        .env("SLOTTED_SERVER", &server.program().path)
        .env("TMPDIR", folder.path())
        .env_remove("SLOTTED_URL");
    let output = command.output().expect("the bench runs");
    let measured = results(&output);
    assert_eq!(names(&measured), ["single-row", "counters-fixed"]);
    assert!(measured.iter().all(|one| one["cpu_us"].as_f64() > Some(0.0)), "{measured:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let durable =
        ["server", "log_bin", "sync_binlog", "innodb_flush_log_at_trx_commit"].map(|name| &report["environment"][name]);
    assert_eq!(durable, [&server.version.to_string(), "1", "1", "1"]);
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}
