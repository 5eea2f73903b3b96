//! Settings, tables and versions that do not fit a cluster are found by `status`, with the statements that correct
//! them.

use std::process::Output;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::Conn;
use serde_json::Value;

use crate::advise::{printed, slotted, url};
use crate::support::{Cluster, Schema, Server, error_of, package};

/// The variables that the promises change.
const CHANGED: &str = "SELECT @@GLOBAL.auto_increment_increment, @@GLOBAL.auto_increment_offset";

/// Sets the variables of all nodes back when it is dropped.
struct Restore<'a>(&'a Cluster, Vec<(u32, u32)>);

impl<'a> Restore<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        let nodes = cluster.nodes();
        let values = nodes.iter().map(|node| {
            let values = node.connect().query_first(CHANGED).expect("variables");
            values.expect("a row")
        });
        let values = values.collect();
        Self(cluster, values)
    }
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        for (node, (increment, offset)) in self.0.nodes().iter().zip(&self.1) {
            let statements = if self.0.is_galera() {
                vec!["SET GLOBAL wsrep_auto_increment_control = ON".to_owned()]
            } else {
                vec![
                    "RESET PERSIST IF EXISTS auto_increment_increment".to_owned(),
                    "RESET PERSIST IF EXISTS auto_increment_offset".to_owned(),
                    format!("SET GLOBAL auto_increment_increment = {increment}, GLOBAL auto_increment_offset = {offset}"),
                ]
            };
            for statement in statements {
                if let Err(error) = Conn::new(node.options()).and_then(|mut node| node.query_drop(&statement)) {
                    eprintln!("{statement}: {error}");
                }
            }
        }
    }
}

/// The arguments for the nodes of a cluster.
fn urls(nodes: &[Arc<Server>], schema: &Schema<'_>) -> Vec<String> {
    nodes.iter().flat_map(|node| ["--url".to_owned(), url(node, schema)]).collect()
}

fn run(command: &[&str], urls: &[String]) -> Output {
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    slotted(&[command, urls.as_slice()].concat())
}

/// The exit code and the report of a command with `--json`.
fn report(command: &[&str], urls: &[String]) -> (Option<i32>, Value) {
    let output = run(&[command, &["--json"]].concat(), urls);
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|error| panic!("{error}: {}", printed(&output))))
}

fn status(urls: &[String]) -> (Option<i32>, Value) {
    report(&["status"], urls)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value:#}"))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field}: {value:#}"))
}

/// The clash with these words, which `status` finds with exit code 1 if it is an alarm.
#[track_caller]
fn clash(urls: &[String], words: &str) -> Value {
    let (code, found) = status(urls);
    let clash = list(&found["clashes"]).iter().find(|one| text(one, "because").contains(words));
    let clash = clash.unwrap_or_else(|| panic!("no '{words}' in {found:#}"));
    let plain = run(&["status"], urls);
    assert!(printed(&plain).contains(text(clash, "because")), "{}", printed(&plain));
    if clash["alarm"] == true {
        assert_eq!(code, Some(1), "{found:#}");
    }
    clash.clone()
}

/// Asserts that all is well: exit code 0, and no clash except for hints.
#[track_caller]
fn is_fine(urls: &[String]) -> Value {
    let (code, found) = status(urls);
    assert_eq!(code, Some(0), "{found:#}");
    found
}

/// Runs what a clash says, on the nodes that the comments before the statements name.
fn correct(clash: &Value, urls: &[String], cluster: &Cluster, schema: &Schema<'_>) {
    let (_, found) = status(urls);
    let names: Vec<_> = list(&found["nodes"]).iter().map(|node| text(node, "name").to_owned()).collect();
    let mut place = Vec::new();
    let mut statements = 0;
    for line in text(clash, "run").lines() {
        if line.starts_with("--") {
            place = (0..names.len()).filter(|&node| line.contains(&names[node])).collect();
            continue;
        }
        for &node in if place.is_empty() { &[0][..] } else { &place } {
            let options = cluster.node(node).options().db_name(Some(&schema.name));
            let mut connection = Conn::new(options).expect("a connection");
            for statement in line.split_inclusive(';') {
                connection.query_drop(statement).unwrap_or_else(|error| panic!("{error}: {statement}"));
                statements += 1;
            }
        }
    }
    assert!(statements > 0, "{clash:#}");
}

/// A schema of the first node with a counter of enough slots.
fn schema(first: &Server) -> Schema<'_> {
    let schema = first.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('hot', NULL, 105, 0)");
    schema
}

/// Waits until the nodes have applied what was committed.
fn applied(cluster: &Cluster, schema: &Schema<'_>) {
    for node in 0..cluster.nodes().len() {
        let _: Option<u8> = cluster.reader(node, &schema.name).query_first("SELECT 1").expect("a read");
    }
}

/// A connection whose changes stay on its node.
fn alone(cluster: &Cluster, node: usize, schema: &Schema<'_>) -> Conn {
    let mut connection = Conn::new(cluster.node(node).options().db_name(Some(&schema.name))).expect("a connection");
    let off = if cluster.is_galera() { "SET SESSION wsrep_on = OFF" } else { "SET SESSION sql_log_bin = OFF" };
    connection.query_drop(off).expect(off);
    connection
}

/// The value of auto_increment_increment on the nodes of the tests: 3 on Galera, and 7 in Group Replication.
fn increment(cluster: &Cluster) -> u32 {
    if cluster.is_galera() { 3 } else { 7 }
}

pub fn status_compares_the_nodes(cluster: &Cluster) {
    let (nodes, first) = (cluster.nodes(), cluster.node(0));
    let schema = schema(&first);
    applied(cluster, &schema);
    let urls = urls(&nodes, &schema);
    let open: Vec<_> = nodes.iter().map(|node| (node.connect(), node.connect())).collect();
    let found = is_fine(&urls);
    assert!(found["connections"].as_u64() >= Some(6), "{found:#}");
    drop(open);
    assert_eq!(list(&found["nodes"]).len(), 3, "{found:#}");
    for node in list(&found["nodes"]) {
        assert_eq!(node["cluster"]["size"], 3, "{found:#}");
        assert_eq!(node["increment"], increment(cluster), "{found:#}");
        let rejected = node["certification"].as_object().expect("counters");
        let expected = if cluster.is_galera() { 2 } else { 1 };
        assert_eq!(rejected.len(), expected, "{found:#}");
    }
    let counter = &found["packages"][0]["counters"][0];
    assert_eq!((&counter["slots"], &counter["slots_per_node"]), (&105.into(), &(105 / increment(cluster)).into()), "{found:#}");

    // One URL does not show the settings of the others.
    let (code, one) = status(&urls[..2]);
    assert_eq!(code, Some(2), "{one:#}");
    let unseen = "the packages, the versions and the settings of 2 of the 3 nodes of the cluster";
    assert_eq!(one["cannot_see"][0]["what"], unseen, "{one:#}");

    // An object that differs on one node.
    alone(cluster, 2, &schema).query_drop("DROP PROCEDURE counter_add").expect("a routine");
    let output = run(&["status"], &urls);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    let name = text(&found["nodes"][2], "name");
    assert!(printed(&output).contains(&format!("{name}: procedure counter_add: missing")), "{}", printed(&output));
    let (_, differs) = status(&urls);
    let objects = list(&differs["packages"][0]["other_nodes"][1]["objects"]).iter();
    assert_eq!(objects.filter(|object| object["state"] == "missing").count(), 1, "{differs:#}");

    // A version of the package that differs on one node.
    let mut second = alone(cluster, 1, &schema);
    let view: mysql::Row = second.query_first("SHOW CREATE VIEW counter_package").expect("a view").expect("a row");
    let view: String = view.get(1).expect("its statement");
    let version = format!("'{}'", env!("CARGO_PKG_VERSION"));
    let other = view.replacen("CREATE ", "CREATE OR REPLACE ", 1).replace(&version, "'0.0.9'");
    second.query_drop(other).expect("a view");
    let versions = clash(&urls, "different versions of the package");
    let name = text(&found["nodes"][1], "name");
    assert!(text(&versions, "because").contains(&format!("0.0.9 on {name}, 0.1.0 on")), "{versions:#}");
    // The other nodes apply DROP DATABASE, also without these objects.
}

pub fn nodes_that_share_slots_are_found(cluster: &Cluster) {
    let (nodes, first) = (cluster.nodes(), cluster.node(0));
    let schema = schema(&first);
    applied(cluster, &schema);
    let urls = urls(&nodes, &schema);
    let _restore = Restore::new(cluster);
    is_fine(&urls);
    let set = |node: usize, statement: &str| {
        cluster.node(node).connect().query_drop(format!("SET GLOBAL {statement}")).expect(statement);
    };
    let offset: u32 = first.connect().query_first("SELECT @@GLOBAL.auto_increment_offset").expect("a variable").expect("a row");
    let few = "but 3 nodes accept writes, so that nodes select the same slots";

    // All nodes select all slots. One node is sufficient to see it.
    for node in 0..nodes.len() {
        set(node, if cluster.is_galera() { "wsrep_auto_increment_control = OFF" } else { "auto_increment_increment = 1" });
    }
    let one = clash(&urls[..2], few);
    assert!(text(&one, "because").starts_with("auto_increment_increment is 1"), "{one:#}");
    let all = clash(&urls, few);
    correct(&all, &urls, cluster, &schema);
    is_fine(&urls);

    // One node selects all slots.
    set(1, "auto_increment_increment = 1");
    correct(&clash(&urls, few), &urls, cluster, &schema);
    is_fine(&urls);

    // Two nodes select the same slots, as in Group Replication with server_id 1 and 8.
    let same = offset + increment(cluster);
    set(1, &format!("auto_increment_offset = {same}"));
    let found = clash(&urls, "so that they select the same slots");
    assert!(text(&found, "because").contains(&format!("MOD(auto_increment_offset, {})", increment(cluster))), "{found:#}");
    correct(&found, &urls, cluster, &schema);
    is_fine(&urls);

    // The increments differ.
    set(2, &format!("auto_increment_increment = {}", increment(cluster) + 1));
    correct(&clash(&urls, "so that these nodes select the same slots"), &urls, cluster, &schema);
    is_fine(&urls);
}

pub fn slots_that_do_not_fit_the_nodes_are_found(cluster: &Cluster) {
    let (nodes, first) = (cluster.nodes(), cluster.node(0));
    let schema = schema(&first);
    applied(cluster, &schema);
    let urls = urls(&nodes, &schema);
    let increment = increment(cluster);
    let few = "Nodes select the same slots";

    // As counters that are older than the cluster: counter_setup rejects such a number.
    schema.run("CALL counter_setup('it''s small', NULL, NULL, 0); DELETE FROM counters WHERE counter_name LIKE '%small' AND counter_id > 2");
    applied(cluster, &schema);
    let found = clash(&urls, few);
    assert!(text(&found, "because").contains("'it''s small' has 2 slots, fewer than"), "{found:#}");
    let (_, shared) = status(&urls);
    let counters = list(&shared["packages"][0]["counters"]).iter();
    let small = counters.clone().find(|one| one["name"] == "it's small").expect("the counter");
    assert_eq!(small["slots_per_node"], 0, "{shared:#}");
    correct(&found, &urls, cluster, &schema);
    applied(cluster, &schema);
    is_fine(&urls);
    let slots = "SELECT COUNT(*) FROM counters WHERE counter_name = 'it''s small' AND counter_id > 0";
    assert_eq!(schema.first::<u32>(slots), increment);

    // A hint changes no exit code.
    schema.run("CALL counter_setup('odd', NULL, 107, 0)");
    applied(cluster, &schema);
    let hint = clash(&urls, "No node selects the slots after the last multiple");
    assert_eq!(hint["alarm"], false, "{hint:#}");
    is_fine(&urls);
    correct(&hint, &urls, cluster, &schema);
    applied(cluster, &schema);
    let slots = "SELECT COUNT(*) FROM counters WHERE counter_name = 'odd' AND counter_id > 0";
    assert_eq!(schema.first::<u32>(slots), 107_u32.next_multiple_of(increment));

    // Numbers of slots in the routines, and random slots. An installation warns of them.
    for (arguments, words) in [
        (&["counters", "--slots", "2"][..], few),
        (&["slotted_counters", "--slots", "2"], few),
        (&["counters", "--pick", "random"], "an increment selects a random slot"),
        (&["counters", "--slots", "107"], "No node selects the slots after the last multiple"),
    ] {
        let schema = first.schema();
        let urls = self::urls(&nodes, &schema);
        let output = run(&[&["install"], arguments].concat(), &urls[..2]);
        assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
        assert!(printed(&output).contains(words), "{}", printed(&output));
        applied(cluster, &schema);
        clash(&urls, words);
    }
    let fine = first.schema();
    let urls = self::urls(&nodes, &fine);
    let output = run(&["install", "counters", "--default-slots", "105"], &urls[..2]);
    assert!(!printed(&output).contains("warning: ") && !printed(&output).contains("hint: "), "{}", printed(&output));
    applied(cluster, &fine);
    is_fine(&urls);

    // Tables that a cluster does not replicate.
    let mut changes = vec![("DROP PRIMARY KEY", "it has no primary key")];
    if cluster.is_galera() {
        changes.push(("ENGINE = Aria", "its engine is Aria"));
    }
    for (change, words) in changes {
        schema.run(&format!("ALTER TABLE counters {change}"));
        applied(cluster, &schema);
        clash(&self::urls(&nodes, &schema), words);
        let add = schema.connect().query_drop("CALL counter_add('hot', 5)");
        if !cluster.is_galera() {
            assert_eq!(error_of(add).0, 3098, "{change}");
        } else if change.starts_with("ENGINE") {
            add.expect("a call");
            let total = "SELECT total FROM counter_totals WHERE counter_name = 'hot'";
            let totals = [0, 1].map(|node| cluster.reader(node, &schema.name).query_first::<u64, _>(total).expect(total));
            assert_ne!(totals[0], totals[1], "{change}");
        }
    }
}

/// Waits until a condition holds on a node.
fn wait_for(node: &Server, query: &str) {
    let start = Instant::now();
    while node.connect().query_first::<bool, _>(query).expect(query) != Some(true) {
        assert!(start.elapsed() < Duration::from_secs(60), "{query}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Changes the group to several primaries again, if a promise fails in between.
struct SeveralPrimaries<'a>(&'a Server);

impl SeveralPrimaries<'_> {
    fn switch(&self) {
        let function = "SELECT group_replication_switch_to_multi_primary_mode()";
        let single: Option<bool> = self.0.connect().query_first("SELECT @@group_replication_single_primary_mode").expect("a mode");
        if single == Some(true) {
            let _: Option<String> = self.0.connect().query_first(function).expect(function);
        }
    }
}

impl Drop for SeveralPrimaries<'_> {
    fn drop(&mut self) {
        self.switch();
    }
}

pub fn sessions_of_a_single_primary_group_count_in_the_slots_of_their_node(cluster: &Cluster) {
    if cluster.is_galera() {
        return;
    }
    let (nodes, first) = (cluster.nodes(), cluster.node(0));
    let schema = schema(&first);
    applied(cluster, &schema);
    let urls = urls(&nodes, &schema);
    let _restore = Restore::new(cluster);
    let several = SeveralPrimaries(&first);
    let single = "SELECT group_replication_switch_to_single_primary_mode(@@server_uuid)";
    let _: Option<String> = first.connect().query_first(single).expect(single);
    for node in &nodes {
        wait_for(node, "SELECT @@group_replication_single_primary_mode = 1");
    }
    // One node writes, with all slots.
    let found = is_fine(&urls);
    assert!(list(&found["clashes"]).is_empty(), "{found:#}");
    is_fine(&urls[..2]);
    let mut open = Conn::new(nodes[1].options().db_name(Some(&schema.name))).expect("a session");
    several.switch();
    for node in &nodes {
        wait_for(node, "SELECT @@GLOBAL.super_read_only = 0 AND @@GLOBAL.auto_increment_increment = 7");
    }
    let kept: Option<(u32, u32)> = open.query_first("SELECT @@auto_increment_increment, @@auto_increment_offset").expect("settings");
    assert_eq!(kept, Some((1, 1)));
    // The routines read the global ones.
    open.query_drop("CALL counter_setup('old', NULL, 21, 0); ").expect("a counter");
    open.query_drop("CALL counter_increment('old')").expect("an increment");
    let of_node = "SELECT MOD(counter_id - @@GLOBAL.auto_increment_offset, 7) FROM counters WHERE counter_name = 'old' AND counter = 1";
    assert_eq!(open.query_first(of_node).expect("the slot"), Some(0));
    applied(cluster, &schema);
    is_fine(&urls);
}

pub fn what_an_account_cannot_see_of_a_cluster_is_named(cluster: &Cluster) {
    let (nodes, first) = (cluster.nodes(), cluster.node(0));
    let schema = schema(&first);
    let name = format!("{}_app", schema.name);
    // An account that reads the definitions of routines, and the counters only after the remedy.
    let routines = if cluster.is_galera() { "SELECT ON mysql.proc" } else { "SHOW_ROUTINE ON *.*" };
    schema.run(&format!(
        "CREATE USER '{name}'@'%'; GRANT EXECUTE, SHOW VIEW ON {0}.* TO '{name}'@'%'; GRANT SELECT ON {0}.counter_package TO '{name}'@'%';
         GRANT SELECT ON {0}.counter_totals TO '{name}'@'%'; GRANT {routines} TO '{name}'@'%'",
        schema.name
    ));
    applied(cluster, &schema);
    let urls: Vec<_> = urls(&nodes, &schema).iter().map(|url| url.replacen("root", &name, 1)).collect();
    for attempt in 0.. {
        let (code, found) = status(&urls);
        let unseen = list(&found["cannot_see"]);
        if unseen.is_empty() {
            assert!(attempt > 0, "{found:#}");
            assert_eq!(code, Some(0), "{found:#}");
            assert_eq!(found["nodes"][0]["cluster"]["size"], 3, "{found:#}");
            break;
        }
        assert_ne!(code, Some(0), "{found:#}");
        assert!(attempt < 3, "the remedies do not end: {found:#}");
        for one in unseen {
            schema.run(text(one, "remedy"));
        }
        applied(cluster, &schema);
    }
    schema.run(&format!("DROP USER '{name}'@'%'"));
}
