//! The bench on a cluster: rejected calls, totals on every node, and the picture over the number of nodes.

use std::fs;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use mysql::prelude::Queryable;
use serde_json::Value;
use slotted::bench::{Contender, Rounds, Setting, Statements, Target, run};
use slotted::server::Cluster as Kind;

use crate::advise::{printed, slotted};
use crate::support::Cluster;

/// Every way to count of the packages that does not select random slots.
const OURS: [&str; 6] =
    ["counters", "counters-plain", "counters-fixed", "counters-fixed-plain", "slotted_counters", "queries"];

const SHORT: [&str; 8] = ["--connections", "12", "--slots", "99", "--seconds", "0.4", "--rounds", "1"];

fn urls(cluster: &Cluster) -> Vec<String> {
    cluster.nodes().iter().flat_map(|node| ["--url".to_owned(), node.url()]).collect()
}

/// The report of a bench on the nodes of these URLs.
fn bench(urls: &[String], arguments: &[&str]) -> Value {
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let output = slotted(&[&["bench", "--json"], urls.as_slice(), &SHORT, arguments].concat());
    let report = serde_json::from_slice(&output.stdout);
    report.unwrap_or_else(|error| panic!("{error}: {}", printed(&output)))
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or_else(|| panic!("{name} of {of}"))
}

pub fn bench_counts_failures_by_code_and_proves_the_totals_on_every_node(cluster: &Cluster) {
    let others = ["single-row", "counters-random"];
    let galera = cluster.kind() == Kind::Galera;
    let certification: &[u64] = if galera { &[1213] } else { &[1213, 1180, 3101] };
    for (hold, ours) in [(&[][..], &OURS[..]), (&["--hold", "5"], &["uncontended", "counters", "queries"])] {
        let contenders = [&others, ours].concat();
        let report = bench(&urls(cluster), &[&["--contenders", &contenders.join(",")], hold].concat());
        assert!(report["environment"]["cluster"].as_str().is_some_and(|one| one.ends_with(", 3 nodes")), "{report:#}");
        let comparison = &report["comparisons"][0];
        assert_eq!(comparison["setting"]["nodes"], 3, "{report:#}");
        let measured = comparison["contenders"].as_array().expect("a list");
        assert_eq!(measured.len(), contenders.len(), "{report:#}");
        for one in measured {
            // The bench fails if the total of a node differs.
            assert!(number(one, "done") > 0 && one["done"] == one["grown"], "{one}");
            let rejected = one["rejected"].as_array().expect("a list");
            let share = one["rejected_share"].as_f64().expect("a number");
            assert!(one["behind_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{one}");
            let conflicts = others.iter().any(|name| one["name"] == *name);
            assert_eq!((rejected.is_empty(), share == 0.0), (!conflicts, !conflicts), "{hold:?}: {one}");
            for error in rejected {
                assert!(certification.contains(&number(error, "error")) && number(error, "calls") > 0, "{one}");
                assert!(!hold.is_empty() || error["at"] == "statement", "without a transaction there is no COMMIT: {one}");
            }
            if one["name"] == "single-row" {
                let at_commit = rejected.iter().any(|error| error["at"] == "commit");
                assert_eq!(at_commit, !hold.is_empty(), "{one}");
                assert!(share > 0.2 && share < 1.0, "{one}");
            }
        }
    }
}

/// The total of a node that lies is not that of the others.
pub fn bench_reads_the_total_of_every_node(cluster: &Cluster) {
    let (first, nodes) = (cluster.node(0), cluster.nodes());
    let schema = first.schema();
    let target = Target {
        nodes: nodes.iter().map(|node| node.options().db_name(Some(&schema.name)).into()).collect(),
        cluster: Some(cluster.kind()),
        processes: Vec::new(),
    };
    let setting = Setting { connections: 3, nodes: 3, ..Setting::default() };
    let contender = Contender::named("uncontended").expect("a contender");
    let statements = contender.statements(&setting).expect("statements");
    Rounds::prepare(vec![contender], target.clone(), setting.clone()).expect("a table");
    // The others have the schema a little later.
    let table = format!("SELECT COUNT(*) FROM {}.uncontended", schema.name);
    for node in &nodes {
        let rows = cluster.kind().reading(&mut node.connect(), |connection| connection.query_first::<u64, _>(&table));
        assert_eq!(rows.expect("a table"), Some(3));
    }
    let third: String = nodes[2].connect().query_first("SELECT @@pid_file").expect("a file").expect("a row");
    let total = format!("SELECT SUM(counter) * IF(@@pid_file = '{third}', 2, 1) FROM uncontended");
    let measured = run(&Statements { total, ..statements }, &target, &setting, &AtomicBool::new(false)).expect("a load");
    let done = measured.done as i64;
    assert_eq!((done > 0, measured.grown), (true, vec![done, done, 2 * done]));
}

pub fn bench_draws_rates_and_rejected_calls_over_the_nodes(cluster: &Cluster) {
    let folder = tempfile::tempdir().expect("a folder");
    let [svg, html] = ["bench.svg", "bench.html"].map(|name| folder.path().join(name));
    let files = ["--svg", svg.to_str().expect("UTF-8"), "--html", html.to_str().expect("UTF-8")];
    let load = ["--contenders", "single-row,counters", "--nodes", "1,2,3"];
    let report = bench(&urls(cluster), &[&load[..], &files].concat());
    let comparisons = report["comparisons"].as_array().expect("a list");
    let nodes: Vec<_> = comparisons.iter().map(|one| &one["setting"]["nodes"]).collect();
    assert_eq!(nodes, [1, 2, 3], "{report:#}");
    // One row is a matter of waiting as long as only one node writes it.
    let of_row = |at: usize| comparisons[at]["contenders"][0]["rejected_share"].as_f64().expect("a share");
    assert!(of_row(0) == 0.0 && of_row(1) > 0.1 && of_row(2) > 0.1, "{report:#}");
    let picture = fs::read_to_string(&svg).expect("the picture");
    assert_eq!(picture.matches("<polyline").count(), 2 * 2, "{picture}");
    assert!(picture.contains("rejected calls in percent of all calls, 12 connections, 99 slots"), "{picture}");
    let page = fs::read_to_string(&html).expect("the page");
    for text in ["This cluster of 3 nodes counts ", "12 connections on 3 nodes incremented ", "% of single-row. "] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

pub fn bench_with_one_url_measures_one_node(cluster: &Cluster) {
    let report = bench(&urls(cluster)[2..4], &["--contenders", "single-row,counters"]);
    assert!(report["environment"]["cluster"].is_null(), "{report:#}");
    let comparison = &report["comparisons"][0];
    assert_eq!(comparison["setting"]["nodes"], 1);
    for one in comparison["contenders"].as_array().expect("a list") {
        assert!(number(one, "done") > 0 && one["rejected_share"] == 0.0 && one["behind_ms"].is_null(), "{one}");
    }
}

pub fn bench_needs_no_other_privileges_on_a_cluster(cluster: &Cluster) {
    let account = "slotted_bench_nodes@'%'";
    let run = |statement: &str| cluster.node(0).connect().query_drop(statement).expect(statement);
    run(&format!("CREATE USER {account} IDENTIFIED BY 'secret'"));
    run(&format!("GRANT ALL ON `slotted\\_bench%`.* TO {account}"));
    for node in cluster.nodes() {
        // Waits until the node has the account.
        let query = "SELECT COUNT(*) FROM mysql.db WHERE User = 'slotted_bench_nodes'";
        let rows = cluster.kind().reading(&mut node.connect(), |connection| connection.query_first::<u64, _>(query));
        assert_eq!(rows.expect("the privileges"), Some(1));
    }
    let urls: Vec<_> = urls(cluster).iter().map(|url| url.replace("//root@", "//slotted_bench_nodes:secret@")).collect();
    let report = bench(&urls, &["--contenders", "uncontended,counters"]);
    run(&format!("DROP USER {account}"));
    let measured = report["comparisons"][0]["contenders"].as_array().map(Vec::len);
    assert_eq!((measured, &report["not_measured"][0]["what"]), (Some(2), &Value::from("sessions waiting")), "{report:#}");
}

pub fn bench_rejects_urls_that_are_not_different_nodes(cluster: &Cluster) {
    let url = cluster.node(0).url();
    let fails = |arguments: &[&str], message: &str| {
        let output = slotted(&[&["bench"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
        assert!(printed(&output).contains(message), "{}", printed(&output));
    };
    fails(&["--url", &url, "--url", &url], "are the same node");
    fails(&["--url", &url, "--nodes", "2"], "error: --nodes 2 with 1 URL\nhint: give one --url for each node");
    let read_only = |value: bool| {
        let statement = format!("SET GLOBAL read_only = {value}");
        cluster.node(1).connect().query_drop(&statement).expect(&statement);
    };
    read_only(true);
    let result = std::panic::catch_unwind(|| fails(&["--url", &url, "--url", &cluster.node(1).url()], "is read-only"));
    read_only(false);
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Without a URL, the bench starts the nodes, and removes them.
pub fn bench_starts_a_private_cluster(cluster: &Cluster) {
    let folder = tempfile::tempdir().expect("a folder");
    let node = cluster.node(0);
    let output = Command::new(env!("CARGO_BIN_EXE_slotted"))
        .args(["bench", "--json", "--nodes", "2", "--contenders", "counters"])
        .args(SHORT)
        .env("SLOTTED_SERVER", node.daemon().with_file_name(if node.is_mysql() { "mysqld" } else { "mariadbd" }))
        .env("TMPDIR", folder.path())
        .output()
        .expect("the bench runs");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", printed(&output)));
    assert_eq!(report["comparisons"][0]["setting"]["nodes"], 2, "{report:#}");
    assert_eq!(report["comparisons"][0]["contenders"][0]["rejected_share"], 0.0, "{report:#}");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}
