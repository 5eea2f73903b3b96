//! The slots of sessions that were open before the group changed its mode.

use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::support::{Cluster, Schema, Server, package};

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
    let _restore = Restore::new(cluster);
    let several = SeveralPrimaries(&first);
    let single = "SELECT group_replication_switch_to_single_primary_mode(@@server_uuid)";
    let _: Option<String> = first.connect().query_first(single).expect(single);
    for node in &nodes {
        wait_for(node, "SELECT @@group_replication_single_primary_mode = 1");
    }
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
}
