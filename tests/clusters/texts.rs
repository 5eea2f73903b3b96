//! Which SQL a cluster has: that of `--cluster` if several nodes accept writes, otherwise that for a server alone.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use mysql::Row;
use mysql::prelude::Queryable;

use super::{package, totals, under_load};
use crate::support::{Cluster, Schema, sql_statements};

/// Runs a command of the tool on a node. Returns whether it has succeeded, and what it has printed.
pub fn tool(schema: &Schema<'_>, command: &str) -> (bool, String) {
    let words = command.split(' ');
    let place = ["--url", &schema.server.url(), "--database", &schema.name];
    let output = Command::new(env!("CARGO_BIN_EXE_slotted"))
        .args(words)
        .args(place)
        .output()
        .expect("slotted runs");
    let printed = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8(printed).expect("UTF-8"),
    )
}

/// A node of Galera that is alone accepts the SQL for a server alone. The nodes that join it get this SQL, too: their calls conflict, and
/// status says so.
pub fn nodes_that_join_have_the_package_and_its_totals(cluster: &Cluster) {
    let first = cluster.node(0);
    let schema = first.schema();
    let words = if cluster.is_galera() {
        "counters"
    } else {
        "counters --cluster"
    };
    let (success, printed) = tool(&schema, &format!("install {words}"));
    assert!(success, "{printed}");
    schema.run("CALL counter_setup('hot', NULL, 99, 3)");
    cluster.start(3).expect("the nodes join");
    assert_eq!(
        totals(cluster, &schema, "SELECT counter_get('hot')"),
        [Some(3); 3]
    );
    let (success, printed) = tool(&schema, "status");
    assert_eq!(
        (success, printed.contains("--cluster")),
        (!cluster.is_galera(), true),
        "{printed}"
    );
    let load = || std::thread::sleep(Duration::from_secs(1));
    let ((), counted) = under_load(
        cluster,
        &schema,
        &["CALL counter_increment('hot')"],
        Duration::ZERO,
        load,
    );
    assert_eq!(counted[0].failed.is_empty(), !cluster.is_galera());
}

/// By the scripts in the client of the server, and by the tool.
pub fn the_sql_for_a_server_alone_is_rejected_and_creates_nothing(cluster: &Cluster) {
    let first = cluster.node(0);
    for words in [
        "counters",
        "counters --slots 9",
        "slotted_counters",
        "bounded_counters",
    ] {
        let schema = first.schema();
        let package = package(words);
        let objects = || {
            let of_schema = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
                             UNION ALL SELECT ROUTINE_NAME FROM information_schema.ROUTINES
                             WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME NOT LIKE '%script'";
            schema.query::<String>(of_schema)
        };
        let rejected = |by: &str| {
            let (success, printed) = if by == "install" {
                tool(&schema, &format!("install {words}"))
            } else {
                let said = schema.client().pipe(&[], &schema.file(&package, by));
                (said.success, said.stderr)
            };
            assert!(
                !success && printed.contains("--cluster"),
                "{words}, {by}: {printed}"
            );
            assert!(
                by == "install" || printed.contains("ERROR 30022 (45000)"),
                "{words}, {by}: {printed}"
            );
        };
        rejected("setup.sql");
        rejected("install");
        assert_eq!(objects(), Vec::<String>::new(), "{words}");
        schema.run(&schema.file(&package, "create_tables.sql"));
        rejected("create_procedures.sql");
        assert_eq!(objects(), [package.options.table.name()], "{words}");
    }
}

pub fn the_query_of_the_page_compares_the_nodes(cluster: &Cluster) {
    let query = &sql_statements("docs/clusters.md", "Compare the nodes")[0];
    let row = |node: &std::sync::Arc<crate::support::Server>| -> Row {
        node.connect()
            .query_first(query)
            .expect("the query")
            .expect("a row")
    };
    let rows: Vec<Row> = cluster.nodes().iter().map(row).collect();
    let all = |column: &str| {
        rows.iter()
            .map(|row| row.get::<u64, _>(column).expect(column))
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(
        (all("read_only"), all("remainder").len()),
        (BTreeSet::from([0]), 3),
        "{rows:?}"
    );
    let increments = all("increment");
    assert!(
        increments.len() == 1 && increments.iter().all(|increment| *increment >= 3),
        "{rows:?}"
    );
}
