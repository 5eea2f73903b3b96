//! Unusual identifiers, sql_modes, collations and cluster settings.

use std::cell::RefCell;
use std::thread;
use std::time::{Duration, Instant};

use mysql::Row;
use mysql::prelude::Queryable;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use slotted::package::{Ident, Kind, Package, Routine, Slots, SqlStr};
use slotted::render;

use crate::queries::Queries;
use crate::rollup::of_column;
use crate::support::{Module, SESSIONS, Schema, Server, bounded, bounded_keyed, cases, error_of, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(columns_and_definers_may_have_special_characters)
        .on_servers(every_sql_mode_installs_equal_routines)
        .on_servers(every_default_collation_works_and_uses_the_key)
        .on_servers(safe_updates_reject_no_call)
        .on_servers(a_temporary_table_with_the_name_of_the_table_has_the_counts_of_its_session)
        .on_servers(the_server_returns_quoted_identifiers_and_strings_unchanged)
        .private()
        .on(|name| name.starts_with("mysql"), a_rollup_of_a_session_with_temporary_tables_does_not_end_the_server)
        .on_servers(nodes_of_a_cluster_use_different_slots)
        .on_servers(nodes_of_a_cluster_maintain_counters_in_steps)
        .on_servers(the_server_lives_through_a_schema_change_beside_each_routine);
}

/// Installs a package with the client, as a DBA does.
fn client_installs(schema: &Schema<'_>, package: &Package, client_options: &[&str]) {
    let script = format!("{}\nSELECT 'installed' AS proof;\n", render::setup(package));
    let said = schema.client().pipe(client_options, &script);
    assert!(said.success && said.stdout.contains("installed"), "{said:?}");
}

fn call(package: &Package, routine: Routine, arguments: &str) -> String {
    let name = package.routine(routine).expect("a routine of the package");
    let verb = if routine == Routine::Get { "SELECT" } else { "CALL" };
    format!("{verb} {name}({arguments})")
}

/// Uses every routine and every view.
fn tour(schema: &Schema<'_>, package: &Package, session: &[&str]) {
    let mut connection = schema.connect();
    for statement in session {
        connection.query_drop(statement).expect(statement);
    }
    let mut run = |routine, arguments: &str| {
        let call = call(package, routine, arguments);
        connection.query::<Row, _>(&call).unwrap_or_else(|error| panic!("{session:?}: {call}: {error}"));
    };
    run(Routine::Setup, "'a counter', 'what', NULL, 40");
    run(Routine::Increment, "'a counter'");
    run(Routine::Increment, "'A COUNTER'");
    run(Routine::Add, "'a counter', -3");
    if package.options.slots == Slots::PerCounter {
        run(Routine::Resize, "'a counter', 30");
        run(Routine::Resize, "'a counter', 7");
    }
    let total: Option<i64> = connection.query_first(call(package, Routine::Get, "'a counter'")).expect("get");
    assert_eq!(total, Some(39), "{session:?}");
    let total: Option<i64> =
        connection.query_first(format!("SELECT total FROM {}", package.totals)).expect("the view");
    assert_eq!(total, Some(39));
    let table: Option<String> =
        connection.query_first(format!("SELECT table_name FROM {}", package.package)).expect("the view");
    assert_eq!(table.as_deref(), Some(package.options.table.name()));
    let mut run = |routine, arguments: &str| {
        connection.query_drop(call(package, routine, arguments)).expect("a call");
    };
    run(Routine::Reset, "'a counter', 5, TRUE");
    run(Routine::Delete, "'a counter'");
    run(Routine::Setup, "'b', NULL, NULL, NULL");
    run(Routine::Drop, "'b'");
}

/// Names of a table of an application and its columns, as the server stores them. A definer can have any name, too.
fn columns_and_definers_may_have_special_characters(server: &Server) {
    for (schema_name, table, id, column) in [
        ("my-app db", "my table", "my id", "view count"),
        ("`back`tick`", "`", "`i`", "`co`unt`er`"),
        ("quote'\"s", "it's \"quoted\"", "'", "semi;;colon"),
        ("back\\slash", "back\\slash", "\\", "-- comment"),
        ("caf\u{e9} \u{4e2d}", "z\u{e4}hler", "\u{e9}", "100%s{}$1#"),
    ] {
        let schema = Schema::named(server, schema_name, "");
        let ident = |name: &str| name.parse::<Ident>().expect("a name");
        let [table, id, column] = [table, id, column].map(ident);
        schema.run(&format!("CREATE TABLE {table} ({id} INT PRIMARY KEY, {column} INT NOT NULL); INSERT INTO {table} VALUES (7, 100)"));
        let package = of_column(&format!("{table}.{column}"), &format!("{id} INT"), |options| {
            (options.table, options.prefix) = ("hits".parse().expect("a table"), "hit_".parse().expect("a prefix"));
        });
        client_installs(&schema, &package, &[]);
        schema.run("CALL hit_increment(7); CALL hit_add_many('[[7, 40]]')");
        assert_eq!(schema.first::<(i64, i64)>("SELECT hit_get(7), total FROM hit_totals"), (141, 141));
        for file in render::files(&package) {
            if ["create_procedures.sql", "uninstall.sql"].contains(&file.name) {
                let said = schema.client().pipe(&[], &file.text);
                assert!(said.success, "{}: {said:?}", file.name);
            }
        }
        assert_eq!(schema.first::<i64>(&format!("SELECT {column} FROM {table}")), 141);
    }
}

/// The sql_mode, character set, collation and body that the server stores for each routine.
fn installed(schema: &Schema<'_>) -> Vec<(String, String, String, String, String)> {
    schema
        .connect()
        .query(
            "SELECT ROUTINE_NAME, SQL_MODE, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, ROUTINE_DEFINITION \
             FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() ORDER BY 1",
        )
        .expect("the routines")
}

fn every_sql_mode_installs_equal_routines(server: &Server) {
    let schema = server.schema();
    let plain = package(|_| {});
    client_installs(&schema, &plain, &[]);
    let expected = installed(&schema);
    assert_eq!(expected.len(), plain.routines().count());
    let mut modes = vec!["", "ANSI_QUOTES", "ANSI", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "TRADITIONAL"];
    if !server.is_mysql() {
        modes.extend(["ORACLE", "MSSQL"]);
    }
    for mode in modes {
        let schema = server.schema();
        let set = format!("SET SESSION sql_mode = '{mode}'");
        let script = format!("{set};\nSELECT @@SESSION.sql_mode AS mode;\n{}\nSELECT @@SESSION.sql_mode AS mode;\n", render::setup(&plain));
        let said = schema.client().pipe(&["--skip-column-names"], &script);
        assert!(said.success, "{mode}: {said:?}");
        let modes: Vec<_> = said.stdout.lines().collect();
        assert!(modes.len() == 2 && modes[0] == modes[1], "the mode is restored: {modes:?}");
        assert_eq!(installed(&schema), expected, "{mode}");
        tour(&schema, &plain, &[&set]);
    }
}

fn every_default_collation_works_and_uses_the_key(server: &Server) {
    let mut collations = vec!["latin1_swedish_ci", "utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci"];
    collations.extend(if server.is_mysql() {
        vec!["utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs"]
    } else {
        vec!["utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_nopad_ai_ci"]
    });
    for collation in collations {
        let character_set = collation.split('_').next().expect("a character set");
        let name = format!("slotted_collation_{}", std::process::id());
        let schema = Schema::named(server, &name, &format!("CHARACTER SET {character_set} COLLATE {collation}"));
        let package = package(|_| {});
        let names = format!("SET NAMES {character_set} COLLATE {collation}");
        let client_option = format!("--init-command={names}");
        client_installs(&schema, &package, &[&client_option]);
        for session in [names.as_str(), "SET NAMES latin1", "SET NAMES utf8mb4"] {
            tour(&schema, &package, &[session]);
        }
        reads_by_key(&schema, &names);

        // After a change of the default collation, replaced routines work with the existing table.
        let other = if collation == "utf8mb4_bin" { "utf8mb4_general_ci" } else { "utf8mb4_bin" };
        schema.run(&format!("ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {other}; DELETE FROM counters"));
        let said = schema.client().pipe(&[], &render::files(&package)[2].text);
        assert!(said.success, "{said:?}");
        tour(&schema, &package, &[&names]);
        reads_by_key(&schema, &names);
    }
}

/// Asserts that an increment of a counter with many slots, among other counters, reads only a few rows.
fn reads_by_key(schema: &Schema<'_>, session: &str) {
    let mut connection = schema.connect();
    connection.query_drop(session).expect(session);
    for name in ["hot", "hotter", "a", "z"] {
        connection.exec_drop("CALL counter_setup(?, NULL, 1000, 0)", (name,)).expect("setup");
    }
    let before = [connection_reads(&mut connection), connection_reads(&mut connection)];
    // The reads of SHOW STATUS.
    let of_status = before[1] - before[0];
    connection.query_drop("CALL counter_increment('hot')").expect("warm-up");
    let start = connection_reads(&mut connection);
    connection.query_drop("CALL counter_increment('hot')").expect("an increment");
    let reads = connection_reads(&mut connection) - start - of_status;
    // By the key an increment reads 3 rows on MariaDB and 5 on MySQL. A scan reads 1,000 or 4,000.
    assert!(reads <= 8, "{session}: an increment reads {reads} rows");
}

pub fn connection_reads(connection: &mut mysql::Conn) -> i64 {
    let rows: Vec<(String, i64)> = connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'").expect("status");
    rows.iter().filter(|(name, _)| name != "Handler_read_rnd_deleted").map(|(_, count)| count).sum()
}

/// A session with sql_safe_updates rejects a change of rows that are not chosen by a key (1175).
fn safe_updates_reject_no_call(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|_| {}));
    let more_slots = "INSERT INTO slotted_counters SELECT record_type, record_id, slot + 1, 5 FROM slotted_counters";
    let mut connection = schema.connect();
    for statement in [
        "SET SESSION sql_safe_updates = 1",
        "CALL counter_setup('a', NULL, 20, 40)",
        "CALL counter_increment('a')",
        "CALL counter_resize('a', 5)",
        "CALL counter_add('a', 1)",
        "CALL counter_resize('a', 30)",
        "CALL slotted_counter_increment(1, 2)",
        more_slots,
        "CALL slotted_counter_compact(1, 2)",
        more_slots,
        "CALL slotted_counter_compact_idle(0, NULL)",
    ] {
        connection.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    assert_eq!(schema.first::<(i64, i64)>("SELECT counter_get('a'), slotted_counter_get(1, 2)"), (42, 11));
    for statement in [
        "CALL counter_reset('a', 7, TRUE)",
        "CALL counter_delete('a')",
        "CALL slotted_counter_reset(1, 2, 3)",
        "CALL slotted_counter_delete(1, 2)",
    ] {
        connection.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// As docs/guarantees.md says.
fn a_temporary_table_with_the_name_of_the_table_has_the_counts_of_its_session(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 100)");
    schema.install(&package(|_| {}));
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    schema.run(
        "CALL counter_setup('a', NULL, 5, 40); CALL articles_views_add(1, 5); CREATE TABLE counters_copy AS SELECT * FROM counters; \
         CREATE TABLE copied LIKE counters; CREATE TABLE articles_copied LIKE articles",
    );
    let mut connection = schema.connect();
    let mut run = |statement: &str| connection.query_drop(statement);
    run("CREATE TEMPORARY TABLE counters LIKE copied").expect("a temporary table");
    run("INSERT INTO counters SELECT * FROM counters_copy").expect("its slots");
    run("CALL counter_increment('a')").expect("an increment");
    for call in ["add_many('[[\"a\", 1]]')", "resize('a', 3)", "reset('a', 9, FALSE)", "delete('a')"] {
        let called = run(&format!("CALL counter_{call}"));
        if server.is_mysql() {
            assert_eq!(error_of(called).0, 1137, "{call}");
        } else {
            called.expect(call);
        }
    }
    run("DROP TEMPORARY TABLE counters").expect("a table");
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 40);
    if !server.is_mysql() {
        run("CREATE TEMPORARY TABLE articles LIKE articles_copied").expect("a temporary table");
        run("INSERT INTO articles VALUES (1, 0)").expect("a row");
        run("CALL articles_views_rollup(NULL)").expect("a roll-up");
        assert_eq!(schema.first::<i64>("SELECT articles_views_get(1)"), 100);
    }
}

/// MySQL 9.7.4 crashes if a statement with SET_VAR that a routine has executed before cannot open a temporary table twice.
fn a_rollup_of_a_session_with_temporary_tables_does_not_end_the_server(server: &Server) {
    let server = server.another(&[]);
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 100)");
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    schema.run("CREATE TABLE articles_copied LIKE articles; CREATE TABLE articles_views_copied LIKE articles_views");
    for call in ["rollup(NULL)", "compact(1)"] {
        for (table, row) in [("articles", "(1, 0)"), ("articles_views", "(1, 1, 1)")] {
            let mut connection = schema.connect();
            let mut run = |statement: &str| connection.query_drop(statement);
            run("CALL articles_views_add(1, 5)").expect("an addition");
            let call = format!("CALL articles_views_{call}");
            run(&call).expect("before");
            run("CALL articles_views_add(1, 5)").expect("an addition");
            run(&format!("CREATE TEMPORARY TABLE {table} LIKE {table}_copied")).expect("a temporary table");
            run(&format!("INSERT INTO {table} VALUES {row}")).expect("a row");
            for _ in 0..2 {
                assert_eq!(error_of(run(&call)).0, 1137, "{call}, {table}");
            }
        }
    }
    assert_eq!(schema.first::<i64>("SELECT articles_views_get(1)"), 140);
}

/// Sets the variables that a multi-primary cluster sets on its nodes: auto_increment_increment is the number of nodes,
/// and auto_increment_offset is different on each node. They are global, so the server is each node in turn.
fn nodes_of_a_cluster_use_different_slots(server: &Server) {
    let server = &server.another(&[]);
    for slots in [20, 2] {
        let packages = [
            package(|_| {}),
            package(|options| options.slots = Slots::Fixed(slots)),
            keyed(|options| options.slots = Slots::Fixed(slots)),
        ];
        for package in packages {
            let what = format!("{} of {} slots", package.options.table, slots);
            let schema = server.schema();
            schema.install(&package);
            let keyed = package.options.kind == Kind::SlottedCounters;
            let (key, slot, count) = if keyed { ("7, 7", "slot", "`count`") } else { ("'hot'", "counter_id", "counter") };
            if !keyed {
                schema.run(&call(&package, Routine::Setup, &format!("'hot', NULL, {slots}, NULL")));
            }
            let counts = || -> Vec<(i64, i64)> {
                let query = format!("SELECT {slot}, {count} FROM {} ORDER BY 1", package.options.table);
                let rows: Vec<(i64, i64)> = schema.connect().query(query).expect("the slots");
                rows.into_iter().filter(|(_, count)| *count > 0).collect()
            };
            let queries = Queries::of(&package);
            let mut others: Vec<(i64, i64)> = Vec::new();
            // Sessions that are older than the cluster have an increment of 1.
            let mut connections: Vec<_> = (0..7).map(|_| schema.connect()).collect();
            for node in 1..=3 {
                schema.run(&format!(
                    "SET GLOBAL auto_increment_increment = 3; SET GLOBAL auto_increment_offset = {node}"
                ));
                for connection in &mut connections {
                    connection.query_drop(call(&package, Routine::Increment, key)).expect(&what);
                    connection.query_drop(call(&package, Routine::Add, &format!("{key}, 2"))).expect(&what);
                    if keyed {
                        queries.run(connection, if package.options.random() { "increment" } else { "increment_on_nodes" }, &[7, 7]).expect(&what);
                    } else {
                        let slots = queries.slots(connection, "hot").expect("the counter exists");
                        assert!(queries.count_on_nodes(connection, "hot", slots).expect("a count"), "{what}: slot");
                    }
                    if keyed {
                        let error = error_of(connection.query_drop(call(&package, Routine::Increment, "7, NULL")));
                        assert_eq!(error.0, 30009, "{what}: {error:?}");
                    }
                }
                let all = counts();
                assert_eq!(all.iter().map(|(_, count)| count).sum::<i64>(), node * 28, "{what}");
                // With two slots, three nodes cannot use different slots.
                if slots > 3 {
                    assert!(all.len() > others.len(), "{what}: node {node} has no slot of its own: {all:?}");
                    assert!(others.iter().all(|one| all.contains(one)), "{what}: node {node}: {others:?}, then {all:?}");
                }
                others = all;
            }
            schema.run("SET GLOBAL auto_increment_increment = 1; SET GLOBAL auto_increment_offset = 1");
        }
    }
}

/// On a single server that is each node in turn, so that no step conflicts. A counter has a gap if a node has retired its
/// slots and the others have not.
fn nodes_of_a_cluster_maintain_counters_in_steps(server: &Server) {
    let server = &server.another(&[]);
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let fixed = server.schema();
    fixed.install(&package(|options| options.slots = Slots::Fixed(5)));
    let state = |schema: &Schema<'_>| -> (i64, u64, u64) {
        schema.first("SELECT CAST(total AS SIGNED), slots, resize_incomplete FROM counter_totals")
    };
    let be_node = |increment: u64, offset: u64| {
        schema.run(&format!(
            "SET GLOBAL auto_increment_increment = {increment}; SET GLOBAL auto_increment_offset = {offset}"
        ));
    };
    for (nodes, offsets) in [(3, vec![1, 2, 3]), (7, vec![1, 3, 7, 6])] {
        for offset in offsets {
            let node = format!("node {offset} of {nodes}");
            be_node(nodes, offset);
            schema.run("CALL counter_setup('hot', NULL, 40, 5)");
            let count = || {
                for mut connection in (0..9).map(|_| schema.connect()) {
                    for call in ["increment('hot')", "add('hot', 3)", r#"add_many('[["hot", 6]]')"#] {
                        connection.query_drop(format!("CALL counter_{call}")).unwrap_or_else(|error| panic!("{node}: {call}: {error}"));
                    }
                }
            };
            for slots in [9, 33, 7, 8, 40] {
                schema.run("CALL counter_reset('hot', 5, FALSE)");
                // This node has retired its slots, and the others have not.
                schema.run(&format!(
                    "UPDATE counters SET counter_id = -counter_id WHERE counter_id > {slots} AND MOD(counter_id - {offset}, {nodes}) = 0"
                ));
                count();
                let others = format!(
                    "SELECT COUNT(*) FROM counters WHERE counter > IF(counter_id = 1, 5, 0) AND MOD(counter_id + {nodes} - {offset}, {nodes}) <> 0"
                );
                assert_eq!(schema.first::<u64>(&others), 0, "{node}, {slots} slots");
                schema.run(&format!("CALL counter_resize('hot', {slots})"));
                assert_eq!(state(&schema), (95, slots, 0), "{node}");
                count();
                assert_eq!(state(&schema), (185, slots, 0), "{node}");
                assert_eq!(schema.first::<u64>(&others), 0, "{node}, {slots} slots");
            }
            schema.run("UPDATE counters SET counter_id = -counter_id WHERE counter_id = 40; CALL counter_reset('hot', 12, TRUE)");
            assert_eq!(state(&schema).0, 12, "{node}");
            schema.run("CALL counter_delete('hot')");
            assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM counters"), 0, "{node}");

            // Fewer slots than nodes, as a package with fixed slots can have.
            be_node(1, 1);
            fixed.run("CALL counter_setup('few', NULL, NULL, 5)");
            be_node(nodes, offset);
            fixed.run("INSERT INTO counters SELECT counter_name, -12, description, start_date, 7 FROM counters WHERE counter_id = 1");
            fixed.run("INSERT INTO counters SELECT counter_name, 12, description, start_date, 8 FROM counters WHERE counter_id = 1");
            fixed.run("CALL counter_resize('few', NULL)");
            assert_eq!(state(&fixed), (20, 5, 0), "{node}");
            fixed.run("CALL counter_delete('few')");
        }
    }

    // A resize moves a retired slot into the lowest slot of its node, which the reset has already reached or not.
    be_node(3, 3);
    schema.run("CALL counter_setup('hot', NULL, 9, 5); UPDATE counters SET counter_id = -9, counter = 40 WHERE counter_name = 'hot' AND counter_id = 9");
    let mut holder = schema.connect();
    holder.query_drop("START TRANSACTION").expect("a transaction");
    let lock = "SELECT counter FROM counters WHERE counter_name = 'hot' AND counter_id = 2 FOR UPDATE";
    assert_eq!(holder.query_first(lock).expect("a lock"), Some(0));
    schema.run("UPDATE counters SET counter = 1 WHERE counter_name = 'hot' AND counter_id = 3");
    std::thread::scope(|scope| {
        let reset = scope.spawn(|| schema.run("CALL counter_reset('hot', 100, FALSE)"));
        while schema.first::<i64>("SELECT counter FROM counters WHERE counter_name = 'hot' AND counter_id = 3") != 0 {
            assert!(!reset.is_finished(), "the reset waits for slot 2");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        schema.run("CALL counter_resize('hot', 8)");
        holder.query_drop("COMMIT").expect("a commit");
        reset.join().expect("a reset");
    });
    assert_eq!(state(&schema), (100, 8, 0));
}

fn the_server_returns_quoted_identifiers_and_strings_unchanged(server: &Server) {
    let connection = RefCell::new(server.connect());
    connection.borrow_mut().query_drop("SET NAMES utf8mb4").expect("names");
    // Without leading spaces, which servers remove from an alias. They keep them in the name of a table or routine.
    let identifier = "[^\\p{Cc}\u{10000}-\u{10FFFF}\\s][^\\p{Cc}\u{10000}-\u{10FFFF}]{0,40}[^\\p{Cc}\u{10000}-\u{10FFFF} ]";
    let string = any::<String>();
    let mut runner = TestRunner::new(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() });
    let result = runner.run(&(identifier, string), |(name, text)| {
        // It ends an executable comment, and is rejected.
        prop_assume!(!name.contains("*/"));
        let mut connection = connection.borrow_mut();
        let ident = Ident::new(&name).map_err(|error| TestCaseError::fail(format!("{name:?}: {error}")))?;
        let query = format!("SELECT named.{ident} FROM (SELECT {} AS {ident}) AS named", SqlStr(&text));
        let rows: Vec<Row> = connection
            .query(&query)
            .map_err(|error| TestCaseError::fail(format!("{query}: {error}")))?;
        prop_assert_eq!(rows[0].columns_ref()[0].name_str(), name.as_str());
        prop_assert_eq!(rows[0].get::<String, _>(0), Some(text));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// A tool for schema changes copies the rows of a table by triggers, and renames the copy at the end. MariaDB ends if an UPDATE of
/// several tables waits for the RENAME (10.11.19, 11.8.9).
fn the_server_lives_through_a_schema_change_beside_each_routine(server: &Server) {
    let server = &server.another(&[]);
    let named = [
        "increment('a')", "add('a', 2)", "add('a', -2)", "add_many('[[\"a\", 1], [\"b\", 2]]')", "reset('a', 5, TRUE)",
        "resize('a', 2)", "resize('a', 9)", "delete('a')", "setup('c', NULL, 5, 0)",
    ];
    let records = [
        "increment(1, 1)", "add(1, 1, -2)", "add_many('[[1, 1, 1], [1, 2, 2]]')", "reset(1, 1, 5)", "compact(1, 1)",
        "compact_idle(0, 10)", "delete(1, 1)",
    ];
    let packages: [(Package, &[&str], &[&str]); 4] = [
        (package(|_| {}), &named, &[]),
        (keyed(|_| {}), &records, &[]),
        (bounded(|_| {}), &named, &["take('a', 1)", "take('a', 30)"]),
        (bounded_keyed(|_| {}), &records, &["take(1, 1, 2)", "take(1, 1, 30)"]),
    ];
    for (package, calls, more) in packages {
        for call in calls.iter().chain(more) {
            let call = format!("CALL {}{call}", package.options.prefix.name());
            changes_beside(server, &package, &call, &package.options.table);
        }
    }
    // The table of the slots, and that of the column.
    for table in ["articles_views", "articles"] {
        for call in ["rollup(NULL)", "rollup(1)", "compact(1)", "reset(1, 5)"] {
            let call = format!("CALL articles_views_{call}");
            changes_beside(server, &of_column("articles.views", "id BIGINT", |_| {}), &call, &table.parse().expect("a name"));
        }
    }
}

/// Runs a call while its table is renamed.
fn changes_beside(server: &Server, package: &Package, call: &str, table: &Ident) {
    let schema = server.schema();
    let of_column = package.options.column.is_some();
    if of_column {
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5), (2, 6)");
    }
    schema.install(package);
    let prefix = package.options.prefix.name();
    let records = package.options.kind == Kind::SlottedCounters;
    if of_column {
        schema.run("INSERT INTO articles_views VALUES (1, 1, 15), (1, 3, 16), (2, 4, 7)");
    } else if records {
        schema.run(&format!("INSERT INTO {table} VALUES (1, 1, 1, 15), (1, 1, 3, 16), (1, 2, 4, 7)"));
    } else {
        schema.run(&format!("CALL {prefix}setup('a', NULL, 5, 37); CALL {prefix}setup('b', NULL, 5, 7)"));
    }
    let (columns, key) = if *table == package.options.table && of_column {
        ("id, slot, `count`", 2)
    } else if of_column {
        ("id, views", 1)
    } else if records {
        ("record_type, record_id, slot, `count`", 3)
    } else {
        ("counter_name, counter_id, description, start_date, counter", 2)
    };
    let key = columns.split(", ").take(key);
    let same = key.map(|column| format!("{column} = OLD.{column}")).collect::<Vec<_>>().join(" AND ");
    let new = columns.split(", ").map(|column| format!("NEW.{column}")).collect::<Vec<_>>().join(", ");
    let mut connection = schema.connect();
    for statement in [
        format!("CREATE TABLE copied LIKE {table}"),
        format!("INSERT INTO copied SELECT * FROM {table}"),
        format!("CREATE TRIGGER inserted AFTER INSERT ON {table} FOR EACH ROW REPLACE INTO copied ({columns}) VALUES ({new})"),
        format!("CREATE TRIGGER deleted AFTER DELETE ON {table} FOR EACH ROW DELETE IGNORE FROM copied WHERE {same}"),
        format!(
            "CREATE TRIGGER updated AFTER UPDATE ON {table} FOR EACH ROW \
             BEGIN DELETE IGNORE FROM copied WHERE {same}; REPLACE INTO copied ({columns}) VALUES ({new}); END"
        ),
    ] {
        connection.query_drop(&statement).expect(&statement);
    }
    let mut reader = schema.connect();
    reader.query_drop("START TRANSACTION").expect("a transaction");
    reader.query_drop("SELECT COUNT(*) FROM copied").expect("a read");
    let until_waiting = |sessions: u64| {
        let query = format!(
            "SELECT COUNT(*) FROM {SESSIONS} \
             WHERE DB = '{}' AND STATE LIKE 'Waiting for table metadata lock%'",
            schema.name
        );
        let start = Instant::now();
        while schema.first::<u64>(&query) < sessions {
            assert!(start.elapsed() < Duration::from_secs(60), "{call}: {sessions} sessions do not wait");
            thread::sleep(Duration::from_millis(10));
        }
    };
    thread::scope(|scope| {
        let rename = format!("RENAME TABLE {table} TO renamed, copied TO {table}");
        let renamed = scope.spawn(|| schema.connect().query_drop(rename));
        until_waiting(1);
        let called = scope.spawn(move || connection.query_drop(call));
        until_waiting(2);
        reader.query_drop("COMMIT").expect("a commit");
        renamed.join().expect("a session").unwrap_or_else(|error| panic!("{call}: RENAME: {error}"));
        match called.join().expect("a session") {
            Err(mysql::Error::MySqlError(error)) if of_column && error.code == 1213 => eprintln!("{}: {call}: {error}", server.version),
            called => called.unwrap_or_else(|error| panic!("{call}: {error}")),
        }
    });
    assert_eq!(schema.first::<u64>("SELECT 1"), 1, "{call}");
    if of_column && !call.contains("reset") {
        assert_eq!(schema.first::<(i64, i64)>("SELECT articles_views_get(1), articles_views_get(2)"), (36, 13), "{call}");
    }
}
