//! The commands bench and limits: each contender counts exactly, and the server has no schema or file of them afterwards.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use serde_json::Value;
use slotted::bench::{CONTENDERS, Contender, Kind, Rounds, Setting, Statements, Target, run};
use slotted::script::Query;

use crate::support::{Module, Server, measured};

pub fn promises(mut module: Module<'_>) {
    // What the bench measures depends on the server. Its options, formats and progress do not.
    module
        .plain(limits_rejects_options_before_the_work)
        .on_one_server(a_picture_that_cannot_be_written_is_rejected_before_the_work)
        .alone()
        .on_servers(every_contender_counts_exactly)
        .on_families(many_counters_transactions_reads_and_amounts_are_counted_exactly)
        .on_families(calls_that_open_a_connection_each_are_counted_exactly)
        .on_one_server(the_report_has_the_slowest_and_the_fastest_round)
        .on_one_server(lists_are_measured_crosswise_and_drawn)
        .on_one_server(csv_has_one_header_also_if_calls_were_rejected)
        .waits()
        .on_one_server(without_a_terminal_the_progress_is_lines)
        .on_families(an_account_with_only_its_own_schemas_measures_what_it_can)
        .on_families(an_account_that_cannot_create_schemas_is_told_the_grant)
        .on_families(the_limits_of_an_account_are_explained)
        .waits()
        .on_families(only_waits_of_the_own_sessions_are_reported)
        .on_one_server(a_closed_pipe_does_not_change_the_result)
        .on_one_server(an_existing_schema_is_not_changed)
        .on_one_server(several_urls_without_a_cluster_are_rejected)
        .waits()
        .on_one_server(ctrl_c_drops_the_schema_and_reports_the_finished_rounds)
        .on_one_server(ctrl_c_before_the_first_figure_does_not_change_the_picture)
        .on_one_server(the_load_generator_is_not_the_limit)
        .private()
        .waits()
        .on_families(without_a_url_only_a_single_row_waits_and_the_server_is_removed_afterwards)
        .on_one_server(limits_measures_each_load_on_a_private_server)
        .on_one_server(ctrl_c_ends_limits_without_a_report);
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

/// The names of the contenders that `select` accepts.
fn names(select: impl Fn(Kind) -> bool) -> Vec<&'static str> {
    CONTENDERS.iter().filter(|contender| select(contender.kind)).map(|contender| contender.name).collect()
}

/// The JSON object on stdout.
fn reported(command: &mut Command) -> Value {
    let output = command.output().expect("the bench runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

fn check(comparison: &Value, expected: &[&str]) {
    let contenders = comparison["contenders"].as_array().expect("a list");
    assert_eq!(contenders.iter().map(|one| &one["name"]).collect::<Vec<_>>(), expected);
    for one in contenders {
        assert_eq!(one["rounds"], 1, "{one}");
        let number = |name: &str| one[name].as_f64().unwrap_or_else(|| panic!("{name} of {one}"));
        assert_eq!(one["done"], one["grown"], "{one}");
        assert!(number("done") > 0.0 && number("per_second") > 0.0, "{one}");
        // One round is the slowest and the fastest.
        assert_eq!(one["least_per_second"], one["per_second"], "{one}");
        assert_eq!(one["most_per_second"], one["per_second"], "{one}");
        for calls in ["increments", "reads"] {
            let ms = |name: &str| one[calls][name].as_f64().unwrap_or(0.0);
            assert_eq!(one[calls].is_null(), calls == "reads" && comparison["setting"]["read_ratio"] == 0.0, "{one}");
            assert!(ms("p50_ms") <= ms("p99_ms") && ms("p99_ms") <= ms("max_ms"), "{one}");
        }
        assert!(number("to_uncontended") > 0.0 && number("to_single_row") > 0.0, "{one}");
        assert_eq!(one["name"] == "uncontended", one["to_uncontended"] == 1.0, "{one}");
        assert_eq!(one["name"] == "single-row", one["to_single_row"] == 1.0, "{one}");
        // Only a private server has a known process.
        assert!(one["server_cpu_us"].is_null(), "{one}");
    }
}

// One test at a time, because all use the schema slotted_bench.
fn every_contender_counts_exactly(server: &Server) {
    let all = names(|_| true);
    let list = all.join(",");
    let arguments = ["--json", "--contenders", &list, "--connections", "4", "--slots", "4", "--seconds", "0.1", "--rounds", "1"];
    let report = reported(&mut bench(server, &arguments));
    check(&report["comparisons"][0], &all);
    assert_eq!(report["environment"]["server"], server.version.to_string());
    assert!(report["environment"]["client"].as_str().is_some_and(|client| client.contains("the server's machine")));
    assert_eq!(report["comparisons"][0]["setting"]["connections"], 4);
    assert_eq!(schemas(server), 0);
}

fn many_counters_transactions_reads_and_amounts_are_counted_exactly(server: &Server) {
    let arguments = [
        "--json", "--connections", "8", "--slots", "2", "--counters", "20", "--zipf", "1", "--hold", "2",
        "--read-ratio", "0.5", "--add-per-call", "7", "--seconds", "0.1", "--rounds", "1",
    ];
    let report = reported(&mut bench(server, &arguments));
    // Parts are measured only if they are named.
    check(&report["comparisons"][0], &names(|kind| !matches!(kind, Kind::Part | Kind::Extra)));
    for one in report["comparisons"][0]["contenders"].as_array().expect("a list") {
        assert_eq!(one["done"].as_u64().expect("a number") % 7, 0, "{one}");
    }
}

/// A first call of a connection parses the routines, and its connection number selects another slot.
fn calls_that_open_a_connection_each_are_counted_exactly(server: &Server) {
    let arguments = [
        "--json", "--connect-per-call", "--connections", "4", "--slots", "7", "--seconds", "0.2", "--rounds", "1", "--contenders",
        "uncontended,single-row,counters,counters-single,slotted_counters",
    ];
    let report = reported(&mut bench(server, &arguments));
    check(&report["comparisons"][0], &["uncontended", "single-row", "counters", "counters-single", "slotted_counters"]);
    assert_eq!(report["comparisons"][0]["setting"]["connect_per_call"], true);
}

fn the_report_has_the_slowest_and_the_fastest_round(server: &Server) {
    let arguments = ["--contenders", "uncontended", "--connections", "4", "--seconds", "0.1", "--rounds", "4"];
    let report = reported(&mut bench(server, &[&arguments[..], &["--json"]].concat()));
    let one = &report["comparisons"][0]["contenders"][0];
    let [least, median, most] = ["least_per_second", "per_second", "most_per_second"].map(|name| one[name].as_f64());
    // The rates of two rounds are never the same.
    assert!(least < median && median < most && least > Some(0.0), "{one}");

    let output = bench(server, &arguments).output().expect("the bench runs");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = table.lines().find(|line| line.trim_start().starts_with("uncontended")).unwrap_or_else(|| panic!("{table}"));
    let words: Vec<_> = row.split_whitespace().take(5).collect();
    let ["uncontended", median, least, "to", most] = words[..] else { panic!("{row}") };
    let [least, median, most] = [least, median, most].map(|rate| rate.parse::<u64>().expect("a rate"));
    assert!(least <= median && median <= most, "{row}");
}

/// A list measures each number of connections with each number of slots, and the picture has a line for each contender.
fn lists_are_measured_crosswise_and_drawn(server: &Server) {
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("picture.svg");
    let arguments = [
        "--csv", "--contenders", "uncontended,counters", "--connections", "1,4", "--slots", "2,8", "--seconds",
        "0.1", "--rounds", "1", "--svg", picture.to_str().expect("a path"),
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
            expected.extend(["uncontended", "counters"].map(|name| [connections, slots, name].map(str::to_owned)));
        }
    }
    assert_eq!(settings, expected);
    for row in &rows {
        assert_eq!(of(row, "done"), of(row, "grown"));
        assert!(of(row, "per_second").parse::<f64>().expect("a number") > 0.0);
    }
    let picture = fs::read_to_string(&picture).expect("the picture");
    // Two panels over connections, for 2 and 8 slots. Two panels over slots, for 1 and 4 connections.
    assert_eq!(picture.matches("<polyline").count(), 4 * 2, "{picture}");
    assert!(picture.contains(&format!("increments/s on {}", server.version)), "{picture}");
    let query = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'slotted\\_bench%'";
    assert_eq!(server.connect().query_first::<u64, _>(query).expect("schemata"), Some(0));
}

fn csv_has_one_header_also_if_calls_were_rejected(server: &Server) {
    let arguments = [
        "--csv", "--contenders", "uncontended,single-row", "--connections", "1,2", "--slots", "2", "--seconds", "0.3", "--rounds", "1",
    ];
    let started = bench(server, &arguments).spawn().expect("the bench runs");
    // Half of the calls of one contender in the second setting. The first setting, and the other contender, have no error.
    let trigger = "CREATE TRIGGER slotted_bench_2.rejects BEFORE UPDATE ON slotted_bench_2.single_row FOR EACH ROW
                   IF RAND() < 0.5 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213; END IF";
    let mut connection = server.connect();
    let end = Instant::now() + Duration::from_secs(30);
    while let Err(error) = connection.query_drop(trigger) {
        assert!(Instant::now() < end, "{error}");
        thread::sleep(Duration::from_millis(5));
    }
    let output = started.wait_with_output().expect("the end");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().filter(|line| line.contains("per_second")).count(), 1, "{text}");
    let mut csv = csv::Reader::from_reader(output.stdout.as_slice());
    let names = csv.headers().expect("a head").clone();
    let at = |name: &str| names.iter().position(|one| one == name).unwrap_or_else(|| panic!("{name} in {names:?}"));
    let fields = ["connections", "contender", "rejected", "rejected_share"].map(at);
    let rows: Vec<_> = csv.records().map(|record| record.expect("as many fields as names")).collect();
    let found: Vec<_> = rows.iter().map(|row| fields.map(|field| row[field].to_owned())).collect();
    let [of_one @ .., rejected] = &found[..] else { panic!("{text}") };
    assert_eq!(of_one, [["1", "uncontended", "", "0"], ["1", "single-row", "", "0"], ["2", "uncontended", "", "0"]], "{text}");
    assert_eq!(rejected[..2], ["2", "single-row"], "{text}");
    assert!(rejected[2].contains("1213"), "{text}");
    assert!((0.2..0.8).contains(&rejected[3].parse::<f64>().expect("a number")), "{text}");
    for row in &rows {
        assert_eq!(row[at("done")], row[at("grown")], "{text}");
    }
}

/// Without a terminal, the progress is lines: at most one in five seconds, and the last one.
fn without_a_terminal_the_progress_is_lines(server: &Server) {
    let arguments =
        ["--contenders", "uncontended,single-row,queries", "--connections", "2", "--hold", "50", "--seconds", "1.5", "--rounds", "1"];
    let output = bench(server, &arguments).output().expect("the bench runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("] 3 of 3: creating queries\n"), "{stderr}");
    let lines: Vec<(u32, &str)> = stderr
        .lines()
        .filter_map(|line| {
            let (elapsed, message) = line.strip_prefix('[')?.split_once(" s of about 15 s] ")?;
            Some((elapsed.trim().parse().expect("seconds"), message))
        })
        .collect();
    assert_eq!(lines.first(), Some(&(0, "warm-up: uncontended")), "{stderr}");
    let (last, message) = lines.last().expect("a line");
    assert!(*last >= 12 && *message == "round 1: queries", "{stderr}");
    // The elapsed times are rounded.
    let but_the_last = &lines[..lines.len() - 1];
    assert!(lines.len() > 2 && but_the_last.windows(2).all(|two| two[1].0 - two[0].0 >= 4), "{stderr}");
}

/// An account of this test.
struct Account<'a> {
    server: &'a Server,
    name: &'static str,
}

impl<'a> Account<'a> {
    fn new(server: &'a Server, name: &'static str, grants: &[&str]) -> Self {
        let account = Self { server, name };
        account.run(&format!("DROP USER IF EXISTS {name}@'%'"));
        account.run(&format!("CREATE USER {name}@'%' IDENTIFIED BY 'secret'"));
        grants.iter().for_each(|grant| account.run(&format!("GRANT {grant} TO {name}@'%'")));
        account
    }

    fn run(&self, statement: &str) {
        self.server.connect().query_drop(statement).expect(statement);
    }

    fn bench(&self, arguments: &[&str]) -> Command {
        let url = self.server.url();
        let (_, place) = url.split_once('@').expect("an account");
        let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
        command.args(["bench", "--url", &format!("mysql://{}:secret@{place}", self.name)]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The error of a bench that fails without a change.
    fn error(&self, arguments: &[&str]) -> String {
        let output = self.bench(arguments).output().expect("the bench runs");
        assert_eq!((output.status.code(), schemas(self.server)), (Some(2), 0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        self.run(&format!("DROP USER {}@'%'", self.name));
    }
}

const OWN_SCHEMAS: &str = "ALL ON `slotted\\_bench%`.*";
const ONE_SHORT_ROUND: [&str; 6] = ["--connections", "4", "--seconds", "0.1", "--rounds", "1"];

/// An account without SUPER cannot create functions on a server with a binary log. Only reads need them.
fn an_account_with_only_its_own_schemas_measures_what_it_can(server: &Server) {
    let account = Account::new(server, "slotted_bench_own", &[OWN_SCHEMAS]);
    let settings = server.connect().query_first("SELECT @@log_bin, @@log_bin_trust_function_creators");
    let (log_bin, trusted): (bool, bool) = settings.expect("settings").expect("a row");
    let functions = !log_bin || trusted;
    let by_default = names(|kind| !matches!(kind, Kind::Part | Kind::Extra));
    let waiting = "sessions waiting";
    let missing = |report: &Value, name: &str| {
        let list = report["not_measured"].as_array().expect("a list");
        list.iter().find(|one| one["what"] == name).cloned()
    };

    let report = reported(account.bench(&ONE_SHORT_ROUND).arg("--json"));
    check(&report["comparisons"][0], &by_default);
    let hidden = missing(&report, waiting).expect("PROCESS is missing");
    assert!(hidden["because"].as_str().is_some_and(|because| because.contains("PROCESS")), "{hidden}");
    assert_eq!(hidden["remedy"], "GRANT PROCESS ON *.* TO 'slotted_bench_own'@'%';");
    assert!(report["comparisons"][0]["contenders"][0]["waiting_sessions"].is_null());
    assert_eq!(report["not_measured"].as_array().map(Vec::len), Some(1));

    account.run("GRANT PROCESS ON *.* TO slotted_bench_own@'%'");
    let reads = ["--read-ratio", "0.5", "--contenders", "uncontended,counters,slotted_counters,queries,counters-query"];
    let report = reported(account.bench(&ONE_SHORT_ROUND).args(reads).arg("--json"));
    assert_eq!(missing(&report, waiting), None);
    let contenders = report["comparisons"][0]["contenders"].as_array().expect("a list");
    assert!(contenders[0]["waiting_sessions"].is_number(), "{report}");
    for name in ["uncontended", "counters", "slotted_counters", "queries", "counters-query"] {
        let measured = contenders.iter().any(|one| one["name"] == name);
        let calls_a_function = !["uncontended", "queries"].contains(&name);
        assert_eq!(measured, functions || !calls_a_function, "{name} {report}");
        let rejected = missing(&report, name);
        assert_eq!(rejected.is_some(), !measured, "{name} {report}");
        if let Some(rejected) = rejected {
            assert!(rejected["because"].as_str().is_some_and(|because| because.contains("SUPER")), "{rejected}");
            assert_eq!(rejected["remedy"], "an administrator can run: SET GLOBAL log_bin_trust_function_creators = ON;");
        }
    }
    // The other formats have it too. In CSV there is no place for it.
    for format in [None, Some("--markdown"), Some("--csv")] {
        let output = account.bench(&[&ONE_SHORT_ROUND[..], &reads].concat()).args(format).output().expect("the bench runs");
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let (text, other) = if format == Some("--csv") { (stderr, stdout) } else { (stdout, stderr) };
        assert_eq!(text.contains("Not measured: counters\n"), !functions, "{text}");
        assert!(!other.contains("Not measured"), "{other}");
    }
    if !functions {
        let stderr = account.error(&[&ONE_SHORT_ROUND[..], &["--read-ratio", "1", "--contenders", "counters"]].concat());
        assert!(stderr.contains("\nerror: no contender can be created. counters: "), "{stderr}");
        assert!(stderr.ends_with("hint: an administrator can run: SET GLOBAL log_bin_trust_function_creators = ON;\n"), "{stderr}");
    }
}

fn an_account_that_cannot_create_schemas_is_told_the_grant(server: &Server) {
    let schema = server.schema();
    let of_schema = format!("ALL ON {}.*", schema.ident());
    let account = Account::new(server, "slotted_bench_denied", &[&of_schema]);
    let stderr = account.error(&["--database", schema.ident().name()]);
    assert!(stderr.starts_with("error: cannot create the schema slotted_bench: ERROR 1044 (42000): "), "{stderr}");
    assert!(stderr.ends_with("\nhint: GRANT ALL ON `slotted\\_bench%`.* TO 'slotted_bench_denied'@'%';\n"), "{stderr}");
    // The statement of the hint is sufficient.
    account.run(stderr.rsplit_once("hint: ").expect("a hint").1.trim().trim_end_matches(';'));
    reported(account.bench(&ONE_SHORT_ROUND).args(["--json", "--contenders", "uncontended"]));
}

fn the_limits_of_an_account_are_explained(server: &Server) {
    let account = Account::new(server, "slotted_bench_limited", &[OWN_SCHEMAS]);
    let raised = "raise the limit with ALTER USER 'slotted_bench_limited'@'%' WITH MAX_USER_CONNECTIONS\n";
    account.run("ALTER USER slotted_bench_limited@'%' WITH MAX_USER_CONNECTIONS 5");
    let stderr = account.error(&ONE_SHORT_ROUND);
    assert!(stderr.starts_with("error: slotted_bench_limited@% may have 5 connections at the same time\nhint: "), "{stderr}");
    assert!(stderr.contains("the bench needs 6, ") && stderr.ends_with(raised), "{stderr}");

    // Enough, but other programs have some of them.
    account.run("ALTER USER slotted_bench_limited@'%' WITH MAX_USER_CONNECTIONS 6");
    let options = server.options().user(Some("slotted_bench_limited")).pass(Some("secret"));
    let other = mysql::Conn::new(options).expect("a connection");
    let stderr = account.error(&[&ONE_SHORT_ROUND[..], &["--contenders", "uncontended"]].concat());
    drop(other);
    assert!(stderr.contains("\nerror: uncontended: ERROR 1226 (42000): "), "{stderr}");
    assert!(stderr.ends_with(raised), "{stderr}");
}

/// The waits are those of the own connections, also while other sessions wait.
fn only_waits_of_the_own_sessions_are_reported(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE hot (id INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO hot VALUES (1)");
    measured(|| {
        let mut holder = schema.connect();
        holder.query_drop("BEGIN").and_then(|()| holder.query_drop("SELECT id FROM hot FOR UPDATE")).expect("a lock");
        let report = thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| schema.connect().query_drop("SELECT id FROM hot FOR UPDATE"));
            }
            let arguments = [
                "--json", "--contenders", "uncontended,single-row", "--connections", "8", "--hold", "5", "--seconds", "1",
                "--rounds", "1",
            ];
            let report = reported(&mut bench(server, &arguments));
            holder.query_drop("ROLLBACK").expect("an end of the lock");
            report
        });
        let contenders = report["comparisons"][0]["contenders"].as_array().expect("a list").clone();
        for one in contenders {
            // The server counts the waits of all sessions.
            assert!(one["row_lock_waits"].is_null(), "{one}");
            let waiting = one["waiting_sessions"].as_f64().expect("a number");
            // One of 8 connections has the lock of the single row, and 7 wait.
            let expected = if one["name"] == "single-row" { 4.0..=7.0 } else { 0.0..=0.5 };
            if !expected.contains(&waiting) {
                return Err(format!("{waiting} sessions wait: {one}"));
            }
        }
        Ok(())
    });
}

/// `slotted bench | head -1`: a reader that has ended is no error.
fn a_closed_pipe_does_not_change_the_result(server: &Server) {
    let arguments = [&ONE_SHORT_ROUND[..], &["--contenders", "uncontended"]].concat();
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    for format in [None, Some("--json"), Some("--csv"), Some("--markdown")] {
        let output = bench(server, &arguments).args(format).stdout(closed()).output().expect("the bench runs");
        assert!(output.status.success(), "{format:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(schemas(server), 0);
    }
    let mut command = bench(server, &arguments);
    let output = command.stderr(closed()).output().expect("the bench runs");
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("uncontended"));
    // Nobody reads the error, and the exit code is that of an error.
    server.connect().query_drop("CREATE DATABASE slotted_bench").expect("a schema");
    let status = bench(server, &arguments).stderr(closed()).status().expect("the bench runs");
    server.connect().query_drop("DROP DATABASE slotted_bench").expect("a drop");
    assert_eq!(status.code(), Some(2));
}

fn a_picture_that_cannot_be_written_is_rejected_before_the_work(server: &Server) {
    let output = bench(server, &["--svg", "/no/such/folder/picture.svg"]).output().expect("the bench runs");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.starts_with("error: --svg: cannot write to /no/such/folder"), "{stderr}");
}

fn several_urls_without_a_cluster_are_rejected(server: &Server) {
    let output = bench(server, &["--url", &server.url()]).output().expect("the bench runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), schemas(server)), (Some(2), 0), "{stderr}");
    assert!(stderr.contains(" is not a node of a cluster\nhint: for a server without a cluster"), "{stderr}");
}

fn an_existing_schema_is_not_changed(server: &Server) {
    server.connect().query_drop("CREATE DATABASE slotted_bench").expect("a schema");
    let output = bench(server, &[]).output().expect("the bench runs");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        stderr,
        "error: the schema slotted_bench already exists\n\
         hint: if a killed bench has left it: DROP DATABASE slotted_bench\n"
    );
    assert_eq!(schemas(server), 1);
    server.connect().query_drop("DROP DATABASE slotted_bench").expect("a drop");
}

/// Starts a bench and interrupts it, `after` it has created its schema.
fn interrupted(server: &Server, after: Duration, arguments: &[&str]) -> Output {
    let child = bench(server, arguments).spawn().expect("the bench starts");
    let start = Instant::now();
    while schemas(server) == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "no schema");
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(after);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    let output = child.wait_with_output().expect("the bench ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted; the schema slotted_bench has been dropped"), "{stderr}");
    assert_eq!(schemas(server), 0);
    output
}

fn ctrl_c_drops_the_schema_and_reports_the_finished_rounds(server: &Server) {
    let arguments = ["--contenders", "uncontended,counters", "--connections", "2", "--seconds", "0.1", "--rounds", "1000"];
    // After the first round, which is not measured, and the second one. A slow machine needs more time for them.
    let reports = [5, 20, 80].map(Duration::from_secs).into_iter().map(|after| {
        let output = interrupted(server, after, &arguments);
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    let lists = |report: &String, name: &str| report.lines().any(|line| line.split_whitespace().next() == Some(name));
    let report = reports.into_iter().find(|report| lists(report, "uncontended") && lists(report, "counters"));
    assert!(report.is_some_and(|report| report.contains("increments/s")));
}

fn ctrl_c_before_the_first_figure_does_not_change_the_picture(server: &Server) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["bench.svg", "bench.html"].map(|name| folder.path().join(name));
    for file in &files {
        fs::write(file, "the last one").expect("a file");
    }
    let [svg, html] = files.each_ref().map(|file| file.to_str().expect("UTF-8"));
    let arguments =
        ["--contenders", "uncontended", "--connections", "4", "--seconds", "600", "--svg", svg, "--html", html];
    interrupted(server, Duration::from_millis(500), &arguments);
    for file in &files {
        assert_eq!(fs::read_to_string(file).expect("a file"), "the last one");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 2);
}

/// A statement without work is much faster than the uncontended `UPDATE`.
fn the_load_generator_is_not_the_limit(server: &Server) {
    let schema = server.schema();
    let setting = Setting { connections: 16, duration: Duration::from_millis(300), ..Setting::default() };
    let contender = Contender::named("uncontended").expect("a contender");
    let uncontended = contender.statements(&setting).expect("statements");
    let increment = Query { name: String::new(), parameters: Vec::new(), sql: "DO 0".into() };
    let nothing = Statements { increment, ..uncontended.clone() };
    let target = Target::server(schema.options(), None);
    let running = AtomicBool::new(false);
    // Creates the table.
    Rounds::prepare(vec![contender], target.clone(), setting.clone()).expect("a table");
    let rate = |statements| run(statements, &target, &setting, &running).expect("a load").rate();
    measured(|| {
        let mut ratios = [(); 5].map(|()| rate(&nothing) / rate(&uncontended));
        ratios.sort_by(f64::total_cmp);
        println!("{}: DO 0 to uncontended {ratios:.1?} times", server.version);
        if ratios[2] > 2.0 { Ok(()) } else { Err(format!("DO 0 to uncontended: {ratios:?}")) }
    });
}

fn without_a_url_only_a_single_row_waits_and_the_server_is_removed_afterwards(server: &Server) {
    let daemon = server.daemon();
    measured(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bench = Command::new(env!("CARGO_BIN_EXE_slotted"));
        bench
            .args(["bench", "--contenders", "uncontended,queries,single-row", "--connections", "8", "--hold", "2"])
            .args(["--seconds", "0.5", "--rounds", "1", "--json"])
            .env("SLOTTED_SERVER", &daemon)
            .env("TMPDIR", folder.path());
        let report = reported(&mut bench);
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
        let environment = &report["environment"];
        assert_eq!(environment["server"], server.version.to_string());
        assert_eq!(environment["log_bin"], "ON");
        for one in report["comparisons"][0]["contenders"].as_array().expect("a list") {
            // No other load runs on a private server: the row lock waits are those of the contender.
            let waits = one["row_lock_waits"].as_u64().expect("a number");
            assert!(one["waiting_sessions"].is_number(), "{one}");
            if (waits > 0) != (one["name"] == "single-row") {
                return Err(format!("only single-row waits: {one}"));
            }
            // Only Linux reports the CPU time of a process. A commit takes some microseconds.
            let cpu = one["server_cpu_us"].as_f64();
            assert_eq!(cpu.is_some(), cfg!(target_os = "linux"), "{one}");
            if cpu.is_some_and(|us| !(5.0..100_000.0).contains(&us)) {
                return Err(format!("the CPU time is in microseconds: {one}"));
            }
        }
        Ok(())
    });
}

fn limits(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    command.arg("limits").args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn limits_rejects_options_before_the_work() {
    let cases: [(&[&str], &str); 3] = [
        (&["--server", "/no/such/mysqld"], "error: --server: /no/such/mysqld is not a server program\nhint: "),
        (&["--server", "/bin/sh"], "error: --server: /bin/sh is not a server program\nhint: "),
        (&["--loads", "all"], "error: invalid value 'all' for '--loads"),
    ];
    for (arguments, error) in cases {
        let output = limits(arguments).output().expect("limits runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with(error), "{stderr}");
    }
}

fn limits_measures_each_load_on_a_private_server(server: &Server) {
    let daemon = server.daemon();
    let folder = tempfile::tempdir().expect("a folder");
    let out = tempfile::tempdir().expect("a folder");
    let report = out.path().join("limits.md");
    let daemon = daemon.to_str().expect("UTF-8");
    let arguments = [
        "--server", daemon, "--loads", "connections-1,reads", "--runs", "1", "--rounds", "1", "--seconds", "0.3",
        "--out", report.to_str().expect("UTF-8"),
    ];
    let output = limits(&arguments).env("TMPDIR", folder.path()).output().expect("limits runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(output.stdout.is_empty());
    assert!(stderr.contains(&format!("run 1 of 1, {}: 1 connection\n", server.version)), "{stderr}");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);

    let report = fs::read_to_string(report).expect("a report");
    let (head, sections) = report.split_once("\n## ").expect("sections");
    assert!(head.contains("1 run of the median over the 1 round of a run"), "{head}");
    let tables: Vec<Vec<Vec<&str>>> = sections
        .split("\n## ")
        .map(|section| {
            let lines = section.lines().filter(|line| line.starts_with('|'));
            lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
        })
        .collect();
    assert_eq!(tables.len(), 2, "{report}");
    for rows in &tables {
        assert_eq!(rows[0], ["", "to", &server.version.to_string()]);
    }
    let rows: Vec<_> = tables.iter().flat_map(|rows| &rows[2..]).collect();
    // 2 contenders to single-row, 2 to counters-call.
    assert_eq!(rows.len(), 2 + 2, "{report}");
    for row in rows {
        assert_ne!(row[0], row[1]);
        let figures: Vec<f64> = row[2]
            .split([' ', '(', ')'])
            .filter_map(|word| word.strip_suffix('x'))
            .map(|figure| figure.parse().expect("a ratio"))
            .collect();
        let [median, least, most] = figures[..] else { panic!("{row:?}") };
        // 0.00x is possible: another process can hold up a load for most of its time.
        assert!(median == least && median == most, "one run: {row:?}");
    }
}

fn ctrl_c_ends_limits_without_a_report(server: &Server) {
    let daemon = server.daemon();
    let (folder, out) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let report = out.path().join("limits.md");
    fs::write(&report, "the last one").expect("a report");
    let (daemon, path) = (daemon.to_str().expect("UTF-8"), report.to_str().expect("UTF-8"));
    let arguments = ["--server", daemon, "--loads", "connections-1", "--seconds", "600", "--out", path];
    let child = limits(&arguments).env("TMPDIR", folder.path()).spawn().expect("limits starts");
    let start = Instant::now();
    while fs::read_dir(folder.path()).expect("the folder").count() == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "no private server");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    let output = child.wait_with_output().expect("limits ends");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_to_string(&report).expect("a report"), "the last one");
    assert_eq!(fs::read_dir(out.path()).expect("the folder").count(), 1);
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}
