//! Clusters of three nodes that all accept writes, Galera and Group Replication, with the SQL of `--cluster`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row};

use crate::once;
use crate::support::{
    Cluster, Module, NODES, SESSIONS as PROCESSES, Schema, Server, SetOnDrop, clusters, ends, error_of, has, parsed,
    run, run_all, sql_statements, until,
};

pub fn promises(mut module: Module<'_>) {
    // All promises of a cluster one after the other, so that it is started once.
    for cluster in clusters() {
        module
            .on_cluster(cluster, 1, nodes_that_join_have_the_package_and_its_totals)
            .on_cluster(cluster, NODES, the_sql_for_a_server_alone_is_rejected_and_creates_nothing)
            .on_cluster(cluster, NODES, the_nodes_differ_and_a_counter_has_a_slot_for_each)
            .on_cluster(cluster, NODES, three_nodes_count_exactly_and_no_call_conflicts)
            .on_cluster(cluster, NODES, a_stock_is_sold_once_on_three_nodes)
            .on_cluster(cluster, NODES, maintenance_in_a_transaction_is_rolled_back_with_it)
            .on_cluster(cluster, NODES, a_step_that_conflicts_is_repeated_at_most_20_times)
            .on_cluster(cluster, NODES, maintenance_ends_beside_the_writers_of_all_nodes)
            .on_cluster(cluster, NODES, an_operation_counts_once_on_all_nodes)
            .on_cluster(cluster, NODES, nodes_that_fail_return_and_no_acknowledged_count_is_lost);
    }
}

/// The number of connections of each node.
const SESSIONS: usize = 10;

/// The duration of the transactions.
const HOLD: Duration = Duration::from_millis(5);

/// The time between two calls of a connection. A node that falls behind cannot change the slots of others, and one that returns has to
/// apply the calls of the others faster than they come.
const PAUSE: Duration = Duration::from_millis(60);

/// The time that a call takes at most.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Installs packages by their words, such as `counters --cluster`.
fn install(schema: &Schema<'_>, packages: &[&str]) {
    packages.iter().for_each(|words| schema.install(&parsed(words)));
}

/// What the connections of a load have done with one statement.
#[derive(Debug, Default)]
struct Counted {
    /// The acknowledged calls: those that returned without an error.
    done: i64,
    /// The calls of which only the server knows whether they have counted.
    unknown: i64,
    /// The number of calls that failed, by the number of the error.
    failed: BTreeMap<u16, i64>,
}

/// The acknowledged calls of each node.
type Acknowledged = [AtomicI64; NODES];

/// The number of an error of the server. 0 if the connection is lost.
fn number_of(error: &mysql::Error) -> u16 {
    if let mysql::Error::MySqlError(error) = error { error.code } else { 0 }
}

/// Whether an error is one of a conflict with another node.
fn is_conflict(error: u16) -> bool {
    [1213, 3101, 1180].contains(&error)
}

/// Whether an error is one of a routine.
fn is_ours(error: u16) -> bool {
    (30001..=30099).contains(&error)
}

/// Whether a COMMIT with this error has certainly not counted: docs/routines.md. A node of Galera returns 1180 if it has lost the others.
fn is_rolled_back(error: u16, galera: bool) -> bool {
    [1020, 1047, 1205, 1213, 1290, 3101].contains(&error) || is_ours(error) || error == 1180 && !galera
}

/// Runs a statement, in a transaction or on its own. An error is `Err(true)` if it is that of a commit.
fn count(connection: &mut Conn, statement: &str, in_transaction: bool) -> Result<(), (bool, mysql::Error)> {
    if !in_transaction {
        return connection.query_drop(statement).map_err(|error| (true, error));
    }
    run_all(connection, &["START TRANSACTION", statement]).map_err(|error| (false, error))?;
    thread::sleep(HOLD);
    connection.query_drop("COMMIT").map_err(|error| (true, error))
}

/// Runs `work` while [`SESSIONS`] connections of each node run some statements in turn, with a pause after each. Every other connection
/// runs them in transactions. After a lost connection, they continue on the next node. Returns what came of each statement.
fn under_load(
    cluster: &Cluster,
    schema: &Schema<'_>,
    statements: &[&str],
    pause: Duration,
    work: impl FnOnce(&Acknowledged),
) -> Vec<Counted> {
    // A node can still have to create what the statements need.
    applied(cluster, schema);
    let options = |node: &Arc<Server>| node.options().db_name(Some(&schema.name)).read_timeout(Some(TIMEOUT));
    let (options, stop) = (cluster.nodes().iter().map(options).collect::<Vec<OptsBuilder>>(), AtomicBool::new(false));
    let acknowledged: Acknowledged = Default::default();
    let counted = Mutex::new(statements.iter().map(|_| Counted::default()).collect::<Vec<_>>());
    let session = |mut node: usize, number: usize| {
        let mut open: Option<Conn> = None;
        for at in (0..statements.len()).cycle().skip(number) {
            if stop.load(Relaxed) {
                return;
            }
            let connected = open.take().map_or_else(|| Conn::new(options[node].clone()), Ok);
            let result = connected.map_err(|error| (false, error));
            let result = result.and_then(|new| count(open.insert(new), statements[at], number % 2 == 1));
            thread::sleep(pause);
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            let Err((in_commit, error)) = result else {
                counted[at].done += 1;
                acknowledged[node].fetch_add(1, Relaxed);
                continue;
            };
            let error = number_of(&error);
            let is_unknown = in_commit && !is_rolled_back(error, cluster.is_galera());
            counted[at].unknown += i64::from(is_unknown);
            *counted[at].failed.entry(error).or_default() += 1;
            drop(counted);
            open = open.filter(|_| is_conflict(error) || is_ours(error));
            let rolled_back = |connection: &mut Conn| connection.query_drop("ROLLBACK").is_ok();
            if !open.as_mut().is_some_and(rolled_back) {
                (open, node) = (None, (node + 1) % NODES);
            }
        }
    };
    thread::scope(|scope| {
        for number in 0..NODES * SESSIONS {
            let session = &session;
            scope.spawn(move || session(number % NODES, number / NODES));
        }
        let _end = SetOnDrop(&stop);
        work(&acknowledged);
    });
    // A node executes a call whose client is gone, and one that drops the database before it has applied the last changes of the others
    // leaves the group.
    let calls =
        format!("SELECT COUNT(*) FROM {PROCESSES} AS sessions WHERE DB = '{}' AND COMMAND <> 'Sleep'", schema.name);
    for node in cluster.nodes() {
        let mut connection = node.connect();
        until("the calls end", || connection.query_first(&calls).expect(&calls) == Some(0));
    }
    applied(cluster, schema);
    let counted = counted.into_inner().expect("no session has panicked");
    for (statement, counted) in statements.iter().zip(&counted) {
        eprintln!("{}: {statement}: {counted:?}", schema.server.version);
    }
    counted
}

/// A connection to a node.
fn connect(cluster: &Cluster, node: usize, schema: &Schema<'_>) -> Conn {
    Conn::new(cluster.node(node).options().db_name(Some(&schema.name))).expect("a connection")
}

/// Waits until all nodes have applied what was committed.
fn applied(cluster: &Cluster, schema: &Schema<'_>) {
    total(cluster, schema, "SELECT 1");
}

/// What a query returns on each node, the same on all, after this node has applied what was committed.
#[track_caller]
fn total(cluster: &Cluster, schema: &Schema<'_>, query: &str) -> i64 {
    let of_node = |node| cluster.reader(node, &schema.name).query_first::<i64, _>(query).expect(query);
    let totals: Vec<_> = (0..cluster.nodes().len()).map(of_node).collect();
    assert!(totals.iter().all(|total| *total == totals[0]), "{query}: {totals:?}");
    totals[0].expect(query)
}

/// A node of Galera that is alone accepts the SQL for a server alone. The nodes that join it get this SQL, too: their calls conflict, and
/// status says so. With the SQL of `--cluster`, sessions that are older than the other nodes count in the slots of their node.
fn nodes_that_join_have_the_package_and_its_totals(cluster: &Cluster, schema: &Schema<'_>) {
    let words = if cluster.is_galera() { "counters" } else { "counters --cluster" };
    ends(schema, 0, &format!("install {words}"));
    install(schema, &["counters --table nodes --prefix node_ --cluster"]);
    schema.run("CALL counter_setup('hot', NULL, 99, 3); CALL node_setup('old', NULL, 21, 0)");
    let old: Vec<Conn> = (0..12).map(|_| schema.connect()).collect();
    cluster.start(NODES);
    assert_eq!(total(cluster, schema, "SELECT counter_get('hot')"), 3);
    for mut connection in old {
        connection.query_drop("CALL node_increment('old')").expect("an increment");
    }
    let elsewhere = "SELECT SUM(counter * (MOD(counter_id - @@GLOBAL.auto_increment_offset, @@GLOBAL.auto_increment_increment) <> 0))
                       FROM nodes";
    assert_eq!(schema.first::<(i64, i64)>(&format!("SELECT node_get('old'), ({elsewhere})")), (12, 0));
    has(&ends(schema, i32::from(cluster.is_galera()), "status"), &["--cluster"]);
    let increment = ["CALL counter_increment('hot')"];
    let counted = under_load(cluster, schema, &increment, Duration::ZERO, |_| thread::sleep(Duration::from_secs(1)));
    assert_eq!(counted[0].failed.is_empty(), !cluster.is_galera());
}

/// By the scripts in the client of the server, and by the tool.
fn the_sql_for_a_server_alone_is_rejected_and_creates_nothing(_: &Cluster, schema: &Schema<'_>) {
    for words in ["counters", "counters --slots 9", "slotted_counters", "bounded_counters"] {
        let package = parsed(words);
        let objects = || {
            let of_schema = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
                             UNION ALL SELECT ROUTINE_NAME FROM information_schema.ROUTINES
                             WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME NOT LIKE '%script'";
            schema.query::<String>(of_schema)
        };
        let is_rejected_by = |file: &str| {
            let said = schema.client().pipe(&[], &schema.file(&package, file));
            let error = said.stderr.contains("ERROR 30022 (45000)") && said.stderr.contains("--cluster");
            assert!(!said.success && error, "{words}, {file}: {said:?}");
        };
        is_rejected_by("setup.sql");
        has(&ends(schema, 2, &format!("install {words}")), &["--cluster"]);
        assert_eq!(objects(), Vec::<String>::new(), "{words}");
        schema.run(&schema.file(&package, "create_tables.sql"));
        is_rejected_by("create_procedures.sql");
        assert_eq!(objects(), [package.options.table.name()], "{words}");
        schema.run(&format!("DROP TABLE {}", package.options.table));
    }
}

/// The query is that of the page.
fn the_nodes_differ_and_a_counter_has_a_slot_for_each(cluster: &Cluster, schema: &Schema<'_>) {
    let query = &sql_statements("docs/clusters.md", "Compare the nodes")[0];
    let row = |connection: &mut Conn| connection.query_first::<Row, _>(query).expect(query).expect("a row");
    let rows: Vec<Row> = cluster.nodes().iter().map(|node| row(&mut node.connect())).collect();
    let all = |column: &str| rows.iter().map(|row| row.get::<i64, _>(column).expect(column)).collect::<BTreeSet<_>>();
    let of_page = (all("read_only"), all("remainder").len(), all("increment").len());
    assert_eq!(of_page, (BTreeSet::from([0]), NODES, 1), "{rows:?}");

    install(schema, &["counters --cluster"]);
    let increment: i64 = schema.first("SELECT @@GLOBAL.auto_increment_increment");
    assert!(increment >= 3 && all("increment").contains(&increment), "{rows:?}");
    // NULL is enough, whatever the number of nodes.
    schema.run("CALL counter_setup('hot', NULL, NULL, 3)");
    for (routine, arguments) in [("counter_setup", "'few', NULL, {}, 0"), ("counter_resize", "'hot', {}")] {
        let call = format!("CALL {routine}({})", arguments.replace("{}", &(increment - 1).to_string()));
        let error = (30018, format!("{routine}: this cluster needs at least {increment} slots"));
        assert_eq!(error_of(schema.connect().query_drop(call)), error);
    }
    let state = total(cluster, schema, "SELECT COUNT(*) * 10 + SUM(counter) FROM counters");
    assert_eq!(state, increment.max(5) * 10 + 3);
}

/// At full speed, with a total that the recipe of the page sets meanwhile.
fn three_nodes_count_exactly_and_no_call_conflicts(cluster: &Cluster, schema: &Schema<'_>) {
    let fixed = "counters --cluster --slots 99 --table fixed --prefix fixed_";
    let records = "slotted_counters --cluster --slots 99";
    install(schema, &["counters --cluster", fixed, records, "bounded_counters --cluster"]);
    schema.run(
        "CALL counter_setup('downloads', NULL, 99, 0); CALL fixed_setup('hot', NULL, NULL, 0);
         CALL bounded_counter_setup('stock', NULL, 99, 0)",
    );
    let all = [
        ("CALL counter_increment('downloads')", "SELECT counter_get('downloads')"),
        ("CALL fixed_increment('hot')", "SELECT fixed_get('hot')"),
        ("CALL slotted_counter_increment(1, 2)", "SELECT slotted_counter_get(1, 2)"),
        ("CALL bounded_counter_add('stock', 1)", "SELECT bounded_counter_get('stock')"),
    ];
    let counted = under_load(cluster, schema, &all.map(|(call, _)| call), Duration::ZERO, |_| {
        thread::sleep(Duration::from_secs(1));
        // At this speed, a reset conflicts. The recipe changes one slot of its node.
        let mut connection = schema.connect();
        run_all(&mut connection, &sql_statements("docs/clusters.md", "Maintenance")).expect("the recipe");
        let before: Option<i64> = connection.query_first("SELECT @total").expect("a total");
        schema.run(&format!("CALL counter_add('downloads', {})", before.expect("a total")));
        thread::sleep(Duration::from_secs(1));
    });
    for ((call, query), counted) in all.iter().zip(&counted) {
        assert!(counted.failed.is_empty() && counted.done > 0, "{call}: {counted:?}");
        assert_eq!(total(cluster, schema, query), counted.done, "{call}");
    }
}

/// The takes of all nodes want slot 1, where the stock is: they conflict, are repeated, and sell no piece twice.
fn a_stock_is_sold_once_on_three_nodes(cluster: &Cluster, schema: &Schema<'_>) {
    install(schema, &["bounded_counters --cluster"]);
    schema.run("CALL bounded_counter_setup('seats', NULL, 9, 150)");
    let left = "SELECT bounded_counter_get('seats')";
    let take = ["CALL bounded_counter_take('seats', 1)"];
    let counted = under_load(cluster, schema, &take, PAUSE, |_| {
        until("all are sold", || schema.first::<i64>(left) == 0);
    });
    assert_eq!((total(cluster, schema, left), counted[0].done), (0, 150));
    let failed = &counted[0].failed;
    assert!(failed.keys().all(|error| is_conflict(*error) || *error == 30016), "{failed:?}");
}

/// A counter of 99 slots with the total 5, and a record with the total 3.
fn of_both_kinds(schema: &Schema<'_>) {
    install(schema, &["counters --cluster", "slotted_counters --cluster --slots 99"]);
    schema.run("CALL counter_setup('hot', NULL, 99, 5); CALL slotted_counter_add(1, 2, 3)");
}

fn maintenance_in_a_transaction_is_rolled_back_with_it(cluster: &Cluster, schema: &Schema<'_>) {
    of_both_kinds(schema);
    // Counts above slot 33, which a resize moves to the lowest slot of its own node.
    schema.run("UPDATE counters SET counter = IF(counter_id > 33, 1, IF(counter_id = 1, -61, 0))");
    let state = "SELECT CAST(COUNT(*) * 10000 + COALESCE(SUM(counter), 0) * 100
                              + (SELECT COALESCE(SUM(`count`), 0) FROM slotted_counters) AS SIGNED) FROM counters";
    let home = "SELECT SUM(counter) FROM counters WHERE counter_id = 1 + MOD(@@auto_increment_offset - 1, @@auto_increment_increment)";
    for node in 0..NODES {
        for (call, after, moved) in [
            ("counter_resize('hot', 33)", 330_503, Some(66)),
            ("counter_reset('hot', 9, TRUE)", 990_903, None),
            ("counter_delete('hot')", 3, None),
            ("slotted_counter_reset(1, 2, 9)", 990_509, None),
            ("slotted_counter_delete(1, 2)", 990_500, None),
        ] {
            let mut connection = connect(cluster, node, schema);
            let mut query = |query: &str| {
                connection.query_first::<i64, _>(query).unwrap_or_else(|error| panic!("{query}: {error}"))
            };
            let at_home = query(home);
            query("START TRANSACTION");
            query(&format!("CALL {call}"));
            assert_eq!(query(state), Some(after), "{call}, node {node}");
            if let Some(moved) = moved {
                assert_eq!(query(home), at_home.map(|count| count + moved), "{call}, node {node}");
            }
            query("ROLLBACK");
            assert_eq!(total(cluster, schema, state), 990_503, "{call}, node {node}");
        }
    }
}

/// A trigger fails as a conflict does.
fn a_step_that_conflicts_is_repeated_at_most_20_times(_: &Cluster, schema: &Schema<'_>) {
    of_both_kinds(schema);
    let mut connection = schema.connect();
    for table in ["counters", "slotted_counters"] {
        let trigger = format!(
            "CREATE TRIGGER {table}_conflict BEFORE UPDATE ON {table} FOR EACH ROW
             IF @conflicts > 0 THEN SET @conflicts = @conflicts - 1; SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213; END IF"
        );
        connection.query_drop(&trigger).expect("a trigger");
    }
    for call in ["CALL counter_reset('hot', 9, FALSE)", "CALL slotted_counter_reset(1, 2, 9)"] {
        for (conflicts, begin, fails) in [(20, "DO 0", false), (21, "DO 0", true), (1, "START TRANSACTION", true)] {
            connection.query_drop(format!("SET @conflicts = {conflicts}")).expect("a variable");
            connection.query_drop(begin).expect(begin);
            let result = connection.query_drop(call);
            connection.query_drop("ROLLBACK").expect("a rollback");
            let what = format!("{call}, {conflicts} conflicts after {begin}: {result:?}");
            assert!(if fails { error_of(result).0 == 1213 } else { result.is_ok() }, "{what}");
        }
    }
}

/// One load for all kinds: what is kept is exact, and of what is reset or deleted nothing from before remains.
fn maintenance_ends_beside_the_writers_of_all_nodes(cluster: &Cluster, schema: &Schema<'_>) {
    schema.run(
        "CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB;
         INSERT INTO pages (id) VALUES (1), (2), (3), (4), (5)",
    );
    install(schema, &["slotted_counters --slots 99 --column pages.views --key 'id BIGINT' --cluster"]);
    of_both_kinds(schema);
    schema.run(
        "CALL counter_setup('kept', NULL, 99, 0); CALL counter_reset('hot', 1000000000, FALSE);
         CALL counter_setup('deleted', NULL, 99, 1000000000);
         CALL slotted_counter_add(1, 2, 1000000000); CALL slotted_counter_add(1, 3, 1000000000)",
    );
    let calls = [
        "CALL counter_increment('kept')",
        "CALL slotted_counter_increment(1, 1)",
        "CALL pages_views_increment(1 + MOD(CONNECTION_ID(), 5))",
        "CALL counter_increment('hot')",
        "CALL slotted_counter_increment(1, 2)",
        "CALL slotted_counter_increment(1, 3)",
        "CALL counter_increment('deleted')",
    ];
    let mut counted = under_load(cluster, schema, &calls, 3 * PAUSE, |_| {
        thread::sleep(Duration::from_millis(500));
        for (node, call) in [
            (0, "CALL counter_resize('kept', 33)"),
            (0, "CALL counter_resize('kept', 99)"),
            (0, "CALL slotted_counter_compact(1, 1)"),
            (0, "CALL pages_views_rollup(NULL)"),
            (1, "CALL pages_views_rollup(NULL)"),
            (2, "CALL pages_views_rollup(NULL)"),
            (0, "CALL counter_reset('hot', 7, TRUE)"),
            (0, "CALL slotted_counter_reset(1, 2, 7)"),
            (0, "CALL slotted_counter_delete(1, 3)"),
            (0, "CALL counter_delete('deleted')"),
        ] {
            // As a DBA does, who calls again after a conflict. A roll-up names the record that others have locked or changed.
            let mut connection = connect(cluster, node, schema);
            until(call, || {
                let Err(error) = connection.query_drop(call) else { return true };
                let is_locked = number_of(&error) == 1205 && call.contains("rollup");
                assert!(is_conflict(number_of(&error)) || is_locked, "{call}: {error}");
                false
            });
        }
        until("200 calls", || schema.first::<i64>("SELECT counter_get('kept')") >= 200);
    });
    // The counter of the last call is deleted.
    counted[6].failed.remove(&30003);
    let errors: Vec<_> = counted.iter().flat_map(|counted| &counted.failed).collect();
    assert!(errors.iter().all(|(error, _)| is_conflict(**error)), "{errors:?}");
    let done: Vec<i64> = counted.iter().map(|counted| counted.done).collect();
    let all = |query: &str| total(cluster, schema, query);
    assert_eq!(all("SELECT counter_get('kept')"), done[0]);
    let slots = "SELECT COUNT(*) * 1000 + MIN(counter_id) FROM counters WHERE counter_name = 'kept'";
    assert_eq!(all(slots), 99_001);
    assert_eq!(all("SELECT slotted_counter_get(1, 1)"), done[1]);
    assert_eq!(all("SELECT CAST(SUM(total) AS SIGNED) FROM pages_views_totals"), done[2]);
    assert!(all("SELECT CAST(SUM(views) AS SIGNED) FROM pages") > 0, "no roll-up has moved a count");
    // What was acknowledged before is lost, and what came after it is counted.
    assert!((7..7 + done[3]).contains(&all("SELECT counter_get('hot')")));
    assert!((7..7 + done[4]).contains(&all("SELECT slotted_counter_get(1, 2)")));
    assert!((0..done[5]).contains(&all("SELECT slotted_counter_get(1, 3)")));
    assert_eq!(all("SELECT COUNT(*) FROM counters WHERE counter_name = 'deleted'"), 0);
    // Without a load, each node moves what it has counted, and a compaction on any node leaves one slot.
    for node in 0..NODES {
        connect(cluster, node, schema).query_drop("CALL pages_views_rollup(NULL)").expect("a roll-up");
        applied(cluster, schema);
    }
    assert_eq!(all("SELECT COUNT(*) FROM pages_views WHERE `count` <> 0"), 0);
    assert_eq!(all("SELECT CAST(SUM(views) AS SIGNED) FROM pages"), done[2]);
    schema.run("CALL slotted_counter_compact(1, 1)");
    let slots = "SELECT COUNT(*) * 1000000 + SUM(`count`) FROM slotted_counters WHERE record_id = 1";
    assert_eq!(all(slots), 1_000_000 + done[1]);
}

/// As if the answer of each attempt was lost and another node got the next one, or all nodes at the same time.
fn an_operation_counts_once_on_all_nodes(cluster: &Cluster, schema: &Schema<'_>) {
    const OPERATIONS: u128 = 60;
    install(schema, &["counters --cluster"]);
    schema.run("CALL counter_setup('downloads', NULL, 99, 0)");
    run_all(&mut schema.connect(), &once::statements("CREATE TABLE")).expect("a table");
    applied(cluster, schema);
    let mut nodes: Vec<Conn> = (0..NODES).map(|node| connect(cluster, node, schema)).collect();
    // The default is 50 s, and on Galera some waits end only so.
    nodes.iter_mut().for_each(|node| run(node, "SET SESSION innodb_lock_wait_timeout = 1"));
    // Repeats an operation until it is acknowledged, or was counted by another attempt. Returns whether this attempt has counted.
    let repeat = |connection: &mut Conn, operation: &[String]| {
        let mut failed = None;
        until("the operation is acknowledged", || {
            failed = run_all(connection, operation).err();
            if failed.is_some() {
                connection.query_drop("ROLLBACK").expect("a rollback");
            }
            failed.as_ref().map(number_of).is_none_or(|number| number != 1205 && !is_conflict(number))
        });
        assert!(failed.as_ref().is_none_or(|error| number_of(error) == 1062), "{failed:?}");
        failed.is_none()
    };
    let mut counted = 0;
    for key in 0..OPERATIONS {
        let operation = &once::transaction(key);
        let attempts: Vec<bool> = if key % 2 == 0 {
            thread::scope(|scope| {
                let attempts: Vec<_> = nodes.iter_mut().map(|node| scope.spawn(|| repeat(node, operation))).collect();
                attempts.into_iter().map(|attempt| attempt.join().expect("an attempt")).collect()
            })
        } else {
            nodes.iter_mut().map(|node| repeat(node, operation)).collect()
        };
        counted += attempts.into_iter().filter(|counted| *counted).count();
    }
    assert_eq!(counted as u128, OPERATIONS);
    let state = "SELECT counter_get('downloads') * 1000 + (SELECT COUNT(*) FROM counter_operations)";
    assert_eq!(total(cluster, schema, state), OPERATIONS as i64 * 1001);
}

/// One is killed, as by a power failure, and starts again.
fn nodes_that_fail_return_and_no_acknowledged_count_is_lost(cluster: &Cluster, schema: &Schema<'_>) {
    const KILLED: usize = 1;
    install(schema, &["counters --cluster"]);
    schema.run("CALL counter_setup('hot', NULL, 99, 0)");
    let increment = ["CALL counter_increment('hot')"];
    // Waits until a node has counted more.
    let counts = |acknowledged: &Acknowledged, node: usize| {
        let before = acknowledged[node].load(Relaxed);
        until("20 counts", || acknowledged[node].load(Relaxed) > before + 20);
    };
    let failed = under_load(cluster, schema, &increment, PAUSE, |acknowledged| {
        counts(acknowledged, KILLED);
        let killed = cluster.crash_node(KILLED);
        counts(acknowledged, 0);
        cluster.return_node(KILLED, killed);
        counts(acknowledged, 0);
    });
    let failed = &failed[0];
    assert!(!failed.failed.keys().any(|error| is_ours(*error)), "{failed:?}");
    // A count of a transaction that was rolled back is none.
    let after = total(cluster, schema, "SELECT counter_get('hot')");
    assert!((failed.done..=failed.done + failed.unknown).contains(&after), "{after}: {failed:?}");
    let returned = under_load(cluster, schema, &increment, PAUSE, |acknowledged| counts(acknowledged, KILLED));
    assert_eq!(total(cluster, schema, "SELECT counter_get('hot')"), after + returned[0].done, "{returned:?}");
}
