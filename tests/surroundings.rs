//! Unusual identifiers, sql_modes, collations and cluster settings.

use std::cell::RefCell;
use std::thread;
use std::time::{Duration, Instant};

use mysql::Row;
use mysql::prelude::Queryable;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use slotted::package::{Ident, Kind, Package, Slots, SqlStr};

use crate::queries::Queries;
use crate::rollup::of_column;
use crate::support::{Module, SESSIONS, Schema, Server, bounded, cases, error_of, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(columns_and_definers_may_have_special_characters)
        .on_servers(every_sql_mode_installs_equal_routines)
        .on_servers(every_default_collation_works_and_uses_the_key)
        .on_servers(safe_updates_reject_no_call)
        .on_servers(increments_of_a_session_go_into_its_temporary_table_of_the_same_name)
        .on_servers(the_server_returns_quoted_identifiers_and_strings_unchanged)
        .private()
        .on_servers(nodes_of_a_cluster_use_different_slots)
        .on_servers(a_node_of_a_cluster_keeps_its_counts_in_its_slots)
        .on_servers(the_server_lives_through_a_schema_change_beside_each_routine);
}

/// Installs a package with the client, as a DBA does.
fn client_installs(schema: &Schema<'_>, package: &Package, client_options: &[&str]) {
    let script = format!("{}\nSELECT 'installed' AS proof;\n", schema.file(package, "setup.sql"));
    let said = schema.client().pipe(client_options, &script);
    assert!(said.success && said.stdout.contains("installed"), "{said:?}");
}

/// Calls every routine and reads every view of counters.
fn tour(schema: &Schema<'_>, session: &[&str]) {
    let mut connection = schema.connect();
    for statement in session.iter().copied().chain([
        "CALL counter_setup('a counter', 'what', 40, 40)",
        "CALL counter_increment('a counter')",
        "CALL counter_increment('A COUNTER')",
        "CALL counter_add('a counter', -3)",
        "CALL counter_resize('a counter', 50)",
        "CALL counter_resize('a counter', 7)",
    ]) {
        connection.query_drop(statement).unwrap_or_else(|error| panic!("{session:?}: {statement}: {error}"));
    }
    let row: Option<(i64, i64, String)> = connection.query_first("SELECT counter_get('a counter'), total, arguments FROM counter_totals, counter_package").expect("a row");
    let arguments = if schema.server.is_mysql() { "counters" } else { "counters --server mariadb" };
    assert_eq!(row, Some((39, 39, arguments.to_owned())), "{session:?}");
    for statement in ["CALL counter_reset('a counter', 5, TRUE)", "CALL counter_delete('a counter')", "CALL counter_setup('b', NULL, NULL, NULL)", "CALL counter_drop('b')"] {
        connection.query_drop(statement).expect(statement);
    }
}

/// Names of a table of an application and its columns, as the server stores them. A definer can have any name, too.
fn columns_and_definers_may_have_special_characters(server: &Server) {
    for (schema_name, table, id, column) in [
        ("my-app db", "my table", "my id", "view count"),
        ("quote'\"s `x`", "it's \"quoted\" `", "'", "semi;;colon"),
        ("caf\u{e9} \u{4e2d}", "z\u{e4}hler\\", "\u{e9}", "100%s{}$1# -- comment"),
    ] {
        let schema = Schema::named(server, schema_name, "");
        let ident = |name: &str| name.parse::<Ident>().expect("a name");
        let [table, id, column] = [table, id, column].map(ident);
        schema.run(&format!("CREATE TABLE {table} ({id} INT PRIMARY KEY, {column} INT NOT NULL) ENGINE = InnoDB; INSERT INTO {table} VALUES (7, 100)"));
        let package = of_column(&format!("{table}.{column}"), &format!("{id} INT"), |options| {
            (options.table, options.prefix) = ("hits".parse().expect("a table"), "hit_".parse().expect("a prefix"));
            options.definer = Some("it's `my` \"account\"@localhost".parse().expect("an account"));
        });
        let definer = package.options.definer.as_ref().expect("an account");
        // The privileges of the account need the table.
        schema.run(&schema.file(&package, "create_tables.sql"));
        schema.run(&schema.file(&package, "accounts.sql"));
        schema.run("DROP TABLE hits");
        client_installs(&schema, &package, &[]);
        schema.run("CALL hit_increment(7); CALL hit_add_many('[[7, 40]]')");
        assert_eq!(schema.first::<(i64, i64)>("SELECT hit_get(7), total FROM hit_totals"), (141, 141));
        for name in ["create_procedures.sql", "uninstall.sql"] {
            let said = schema.client().pipe(&[], &schema.file(&package, name));
            assert!(said.success, "{name}: {said:?}");
        }
        assert_eq!(schema.first::<i64>(&format!("SELECT {column} FROM {table}")), 141);
        schema.run(&format!("DROP USER {definer}"));
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
        let script = format!("{set};\nSELECT @@SESSION.sql_mode AS mode;\n{}\nSELECT @@SESSION.sql_mode AS mode;\n", schema.file(&plain, "setup.sql"));
        let said = schema.client().pipe(&["--skip-column-names"], &script);
        assert!(said.success, "{mode}: {said:?}");
        let modes: Vec<_> = said.stdout.lines().collect();
        assert!(modes.len() == 2 && modes[0] == modes[1], "the mode is restored: {modes:?}");
        assert_eq!(installed(&schema), expected, "{mode}");
        tour(&schema, &[&set]);
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
            tour(&schema, &[session]);
        }
        reads_by_key(&schema, &names);

        // After a change of the default collation, replaced routines work with the existing table.
        let other = if collation == "utf8mb4_bin" { "utf8mb4_general_ci" } else { "utf8mb4_bin" };
        schema.run(&format!("ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {other}; DELETE FROM counters"));
        let said = schema.client().pipe(&[], &schema.file(&package, "create_procedures.sql"));
        assert!(said.success, "{said:?}");
        tour(&schema, &[&names]);
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
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 0), (2, 0)");
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    let mut connection = schema.connect();
    for statement in [
        "SET SESSION sql_safe_updates = 1",
        "CALL counter_setup('a', NULL, 20, 40)",
        "CALL counter_increment('a')",
        "CALL counter_resize('a', 5)",
        "CALL counter_add('a', 1)",
        "CALL counter_resize('a', 30)",
        "CALL slotted_counter_increment(1, 2)",
        "INSERT INTO slotted_counters SELECT record_type, record_id, MOD(slot + 1, 521), 5 FROM slotted_counters",
        "CALL slotted_counter_compact(1, 2)",
        "CALL articles_views_add_many('[[1, 5], [2, 7]]')",
        "CALL articles_views_rollup(NULL)",
        "CALL articles_views_add(1, 1)",
        "CALL articles_views_compact(1)",
    ] {
        connection.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    assert_eq!(schema.first::<(i64, i64, i64)>("SELECT counter_get('a'), slotted_counter_get(1, 2), SUM(views) FROM articles"), (42, 6, 13));
    for statement in [
        "CALL counter_reset('a', 7, TRUE)",
        "CALL counter_delete('a')",
        "CALL slotted_counter_reset(1, 2, 3)",
        "CALL slotted_counter_delete(1, 2)",
        "CALL articles_views_reset(1, 3)",
        "CALL articles_views_delete(1)",
    ] {
        connection.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// As docs/guarantees.md says. MySQL cannot open a temporary table twice in a statement (1137).
fn increments_of_a_session_go_into_its_temporary_table_of_the_same_name(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('a', NULL, 5, 40); CREATE TABLE copied LIKE counters");
    let mut connection = schema.connect();
    let mut run = |statement: &str| connection.query_drop(statement);
    run("INSERT INTO copied SELECT * FROM counters").expect("its slots");
    run("CREATE TEMPORARY TABLE counters LIKE copied").expect("a temporary table");
    run("INSERT INTO counters SELECT * FROM copied").expect("its slots");
    run("CALL counter_increment('a')").expect("an increment");
    let resized = run("CALL counter_resize('a', 3)");
    if server.is_mysql() {
        assert_eq!(error_of(resized).0, 1137);
    } else {
        resized.expect("a resize");
    }
    assert_eq!(schema.first::<(i64, i64)>("SELECT total, slots FROM counter_totals"), (40, 5));
}

/// Sets the variables that a multi-primary cluster sets on its nodes: auto_increment_increment is the number of nodes,
/// and auto_increment_offset is different on each node. They are global, so the server is each node in turn.
fn be_node(schema: &Schema<'_>, nodes: u64, node: u64) {
    schema.run(&format!("SET GLOBAL auto_increment_increment = {nodes}; SET GLOBAL auto_increment_offset = {node}"));
}

fn nodes_of_a_cluster_use_different_slots(server: &Server) {
    let server = &server.another(&[]);
    for package in [
        package(|o| o.cluster = true),
        package(|o| (o.cluster, o.slots) = (true, Slots::Fixed(20))),
        keyed(|o| (o.cluster, o.slots) = (true, Slots::Fixed(20))),
    ] {
        let (schema, what) = (server.schema(), package.options.arguments());
        schema.install(&package);
        let (named, prefix) = (package.options.kind == Kind::Counters, package.options.prefix.name());
        let (key, slot, count) = if named { ("'hot'", "counter_id", "counter") } else { ("7, 7", "slot", "`count`") };
        be_node(&schema, 3, 1);
        if named {
            schema.run(&format!("CALL {prefix}setup({key}, NULL, 20, NULL)"));
        }
        let queries = Queries::of(&schema, &package);
        let mut others: Vec<(i64, i64)> = Vec::new();
        for node in 1..=3 {
            be_node(&schema, 3, node);
            for _ in 0..7 {
                let mut connection = schema.connect();
                connection.query_drop(format!("CALL {prefix}increment({key})")).expect(&what);
                connection.query_drop(format!("CALL {prefix}add({key}, 2)")).expect(&what);
                if named {
                    assert!(queries.count(&mut connection, "hot", 20).expect("a count"), "{what}");
                } else {
                    queries.exec(&mut connection, "increment", vec![7.into(), 7.into()]).expect(&what);
                }
            }
            let all: Vec<(i64, i64)> = schema.query(&format!("SELECT {slot}, {count} FROM {} WHERE {count} > 0 ORDER BY 1", package.options.table));
            assert_eq!(all.iter().map(|(_, count)| count).sum::<i64>(), node as i64 * 28, "{what}");
            assert!(all.len() > others.len() && others.iter().all(|one| all.contains(one)), "{what}: node {node}: {others:?}, then {all:?}");
            others = all;
        }
        be_node(&schema, 1, 1);
    }
}

/// On a single server that is each node in turn, so that no step conflicts.
fn a_node_of_a_cluster_keeps_its_counts_in_its_slots(server: &Server) {
    let server = &server.another(&[]);
    let (schema, fixed) = (server.schema(), server.schema());
    schema.install(&package(|o| o.cluster = true));
    fixed.install(&package(|o| (o.cluster, o.slots) = (true, Slots::Fixed(5))));
    be_node(&fixed, 1, 1);
    fixed.run("CALL counter_setup('few', NULL, NULL, 5)");
    for (nodes, node) in [(3, 1), (3, 3), (7, 6)] {
        let what = format!("node {node} of {nodes}");
        be_node(&schema, nodes, node);
        schema.run("CALL counter_setup('hot', NULL, 40, 5)");
        for slots in [9, 33, 7, 40] {
            schema.run("CALL counter_reset('hot', 5, FALSE)");
            let count = || (0..9).for_each(|_| schema.connect().query_drop("CALL counter_add('hot', 3)").expect(&what));
            count();
            schema.run(&format!("CALL counter_resize('hot', {slots})"));
            count();
            assert_eq!(schema.first::<(i64, u64)>("SELECT total, slots FROM counter_totals"), (59, slots), "{what}");
            let elsewhere = format!("SELECT COUNT(*) FROM counters WHERE counter > IF(counter_id = 1, 5, 0) AND MOD(counter_id - {node}, {nodes}) <> 0 OR counter_id < 1");
            assert_eq!(schema.first::<u64>(&elsewhere), 0, "{what}, {slots} slots");
        }
        schema.run("CALL counter_delete('hot')");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM counters"), 0, "{what}");
        // Fewer slots than nodes: a node without a slot of its own counts as well.
        fixed.run("CALL counter_increment('few')");
    }
    assert_eq!(error_of(schema.connect().query_drop("CALL counter_setup('few', NULL, 6, 0)")).0, 30018);
    assert_eq!(fixed.first::<i64>("SELECT counter_get('few')"), 8);
}

fn the_server_returns_quoted_identifiers_and_strings_unchanged(server: &Server) {
    let connection = RefCell::new(server.connect());
    connection.borrow_mut().query_drop("SET NAMES utf8mb4").expect("names");
    // Without leading spaces, which servers remove from an alias. They keep them in the name of a table or routine.
    let identifier = "[^\\p{Cc}\u{10000}-\u{10FFFF}\\s][^\\p{Cc}\u{10000}-\u{10FFFF}]{0,40}[^\\p{Cc}\u{10000}-\u{10FFFF} ]";
    let string = any::<String>();
    let mut runner = TestRunner::new(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() });
    let result = runner.run(&(identifier, string), |(name, text)| {
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
    let named = ["increment('a')", "add('a', -2)", "reset('a', 5, TRUE)", "resize('a', 2)", "resize('a', 9)", "delete('a')", "setup('c', NULL, 5, 0)"];
    let records = ["increment(1, 1)", "add_many('[[1, 1, 1], [1, 2, 2]]')", "reset(1, 1, 5)", "compact(1, 1)", "delete(1, 1)"];
    let taking = ["add('a', 2)", "add('a', -2)", "take('a', 1)", "take('a', 30)"];
    let packages: [(Package, &[&str]); 3] = [(package(|_| {}), &named), (keyed(|_| {}), &records), (bounded(|_| {}), &taking)];
    for (package, calls) in packages {
        for call in calls {
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
    let until_waiting = |sessions: u64, ended: &dyn Fn() -> bool| {
        let query = format!(
            "SELECT COUNT(*) FROM {SESSIONS} \
             WHERE DB = '{}' AND STATE LIKE 'Waiting for table metadata lock%'",
            schema.name
        );
        let start = Instant::now();
        while schema.first::<u64>(&query) < sessions && !ended() {
            assert!(start.elapsed() < Duration::from_secs(60), "{call}: {sessions} sessions do not wait");
            thread::sleep(Duration::from_millis(10));
        }
    };
    thread::scope(|scope| {
        let rename = format!("RENAME TABLE {table} TO renamed, copied TO {table}");
        let renamed = scope.spawn(|| schema.connect().query_drop(rename));
        until_waiting(1, &|| false);
        let called = scope.spawn(move || connection.query_drop(call));
        // On MariaDB, a roll-up fails at once (1205).
        until_waiting(2, &|| of_column && called.is_finished());
        reader.query_drop("COMMIT").expect("a commit");
        renamed.join().expect("a session").unwrap_or_else(|error| panic!("{call}: RENAME: {error}"));
        match called.join().expect("a session") {
            Err(mysql::Error::MySqlError(error)) if of_column && [1205, 1213].contains(&error.code) => eprintln!("{}: {call}: {error}", server.version),
            called => called.unwrap_or_else(|error| panic!("{call}: {error}")),
        }
    });
    assert_eq!(schema.first::<u64>("SELECT 1"), 1, "{call}");
    if of_column && !call.contains("reset") {
        assert_eq!(schema.first::<(i64, i64)>("SELECT articles_views_get(1), articles_views_get(2)"), (36, 13), "{call}");
    }
}
