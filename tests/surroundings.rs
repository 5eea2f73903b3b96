//! Unusual identifiers, sql_modes, collations and cluster settings.

use slotted::package::{Ident, Package};

use crate::queries::Queries;
use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(columns_and_definers_may_have_special_characters)
        .on_servers(every_sql_mode_installs_equal_routines)
        .on_servers(every_default_collation_works_and_uses_the_key)
        .on_servers(increments_of_a_session_go_into_its_temporary_table_of_the_same_name)
        .private()
        .on_servers(a_node_of_a_cluster_keeps_its_counts_in_its_slots)
        .on_servers(the_server_lives_through_a_schema_change_beside_each_routine);
}

/// Installs counters with the client, as a DBA does, in a session with a setting.
fn client_installs(schema: &Schema<'_>, setting: &str) {
    let said = schema.client().pipe(&[], &format!("{setting};\n{}", schema.file(&package(|_| {}), "setup.sql")));
    assert!(said.success, "{setting}: {said:?}");
}

/// Calls every routine and reads every view of counters.
fn tour(schema: &Schema<'_>, session: &str) {
    let mut connection = schema.connect();
    for statement in [
        session,
        "CALL counter_setup('a counter', 'what', 40, 40)",
        "CALL counter_increment('a counter')",
        "CALL counter_increment('A COUNTER')",
        "CALL counter_add('a counter', -3)",
        "CALL counter_resize('a counter', 50)",
        "CALL counter_resize('a counter', 7)",
        "SELECT counter_get('a counter'), total, options INTO @get, @total, @options FROM counter_totals, counter_package",
        "CALL counter_reset('a counter', 5, TRUE)",
        "CALL counter_delete('a counter')",
        "CALL counter_setup('b', NULL, NULL, NULL)",
        "CALL counter_drop('b')",
    ] {
        connection.query_drop(statement).unwrap_or_else(|error| panic!("{session:?}: {statement}: {error}"));
    }
    let row: Option<(i64, i64, String)> = connection.query_first("SELECT @get, @total, @options").expect("a row");
    let options = package(|options| options.family = schema.server.version.family).options.description();
    assert_eq!(row, Some((39, 39, options)), "{session:?}");
}

/// Names of a table of an application and its columns, as the server stores them. A definer can have any name, too.
fn columns_and_definers_may_have_special_characters(server: &Server) {
    for (schema_name, names) in [
        ("my-app db", ["my table", "my id", "view count"]),
        ("quote'\"s `x`", ["it's \"quoted\" `", "'", "semi;;colon"]),
        ("caf\u{e9} \u{4e2d}", ["z\u{e4}hler\\", "\u{e9}", "100%s{}$1# -- comment"]),
    ] {
        let schema = Schema::named(server, schema_name, "");
        let [table, id, column] = names.map(|name| name.parse::<Ident>().expect("a name"));
        schema.run(&format!("CREATE TABLE {table} ({id} INT PRIMARY KEY, {column} INT NOT NULL) ENGINE = InnoDB; INSERT INTO {table} VALUES (7, 100)"));
        let package = of_column(&format!("{table}.{column}"), &format!("{id} INT"), |options| {
            (options.table, options.prefix) = ("hits".parse().expect("a table"), "hit_".parse().expect("a prefix"));
            options.definer = Some("it's `my` \"account\"@localhost".parse().expect("an account"));
        });
        let source = |name: &str| {
            let said = schema.client().pipe(&[], &schema.file(&package, name));
            assert!(said.success, "{name}: {said:?}");
        };
        // The privileges of the account need the table.
        ["create_tables.sql", "accounts.sql"].iter().for_each(|name| source(name));
        schema.run("DROP TABLE hits");
        source("setup.sql");
        schema.run("CALL hit_increment(7); CALL hit_add_many('[[7, 40]]')");
        let stored: (i64, i64, String) = schema.first("SELECT hit_get(7), total, options FROM hit_totals, hit_package");
        let options = package.clone().of_family(server.version.family).options.description();
        assert_eq!(stored, (141, 141, options));
        ["create_procedures.sql", "uninstall.sql"].iter().for_each(|name| source(name));
        assert_eq!(schema.first::<i64>(&format!("SELECT {column} FROM {table}")), 141);
        schema.run(&format!("DROP USER {}", package.options.definer.as_ref().expect("an account")));
    }
}

fn every_sql_mode_installs_equal_routines(server: &Server) {
    let mut modes = vec!["", "ANSI", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "TRADITIONAL"];
    if !server.is_mysql() {
        modes.extend(["ORACLE", "MSSQL"]);
    }
    let mut expected = None;
    for mode in modes {
        let (schema, set) = (server.schema(), format!("SET SESSION sql_mode = '{mode}'"));
        client_installs(&schema, &set);
        // What the server stores with each routine.
        let routines: Vec<(String, String, String, String, String)> = schema.query(
            "SELECT ROUTINE_NAME, SQL_MODE, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, ROUTINE_DEFINITION
               FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() ORDER BY 1",
        );
        assert_eq!(&routines, expected.get_or_insert(routines.clone()), "{mode}");
        tour(&schema, &set);
    }
}

fn every_default_collation_works_and_uses_the_key(server: &Server) {
    let mut collations = vec!["latin1_swedish_ci", "utf8mb4_bin", "utf8mb4_general_ci"];
    collations.push(if server.is_mysql() { "utf8mb4_0900_as_cs" } else { "utf8mb4_uca1400_nopad_ai_ci" });
    for collation in collations {
        let (character_set, _) = collation.split_once('_').expect("a character set");
        let name = format!("slotted_collation_{}", std::process::id());
        let schema = Schema::named(server, &name, &format!("CHARACTER SET {character_set} COLLATE {collation}"));
        let names = format!("SET NAMES {character_set} COLLATE {collation}");
        client_installs(&schema, &names);
        ["SET NAMES latin1", "SET NAMES utf8mb4", &names].iter().for_each(|session| tour(&schema, session));
        reads_by_key(&schema, &names);
        // After a change of the default collation, replaced routines work with the existing table.
        let other = if collation == "utf8mb4_bin" { "utf8mb4_general_ci" } else { "utf8mb4_bin" };
        schema.run(&format!("ALTER DATABASE CHARACTER SET utf8mb4 COLLATE {other}; DELETE FROM counters"));
        schema.run(&schema.file(&package(|_| {}), "create_procedures.sql"));
        tour(&schema, &names);
        reads_by_key(&schema, &names);
    }
}

/// Asserts that an increment of a counter with many slots, among other counters, reads only a few rows.
fn reads_by_key(schema: &Schema<'_>, session: &str) {
    let mut connection = schema.after(&[session]);
    for name in ["hot", "hotter", "a", "z"] {
        connection.exec_drop("CALL counter_setup(?, NULL, 1000, 0)", (name,)).expect("setup");
    }
    let mut reads_after = |statement: &str| {
        run(&mut connection, statement);
        reads(&mut connection)
    };
    let increment = "CALL counter_increment('hot')";
    let [start, counted, end] = [increment, increment, "DO 0"].map(&mut reads_after);
    // SHOW STATUS reads rows, too.
    let increment = (counted - start) - (end - counted);
    // By the key an increment reads 3 rows on MariaDB and 5 on MySQL. A scan reads 1,000 or 4,000.
    assert!(increment <= 8, "{session}: an increment reads {increment} rows");
}

/// As docs/guarantees.md says. MySQL cannot open a temporary table twice in a statement (1137).
fn increments_of_a_session_go_into_its_temporary_table_of_the_same_name(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    schema.run("CALL counter_setup('a', NULL, 5, 40); CREATE TABLE copied LIKE counters; INSERT INTO copied SELECT * FROM counters");
    let mut connection = schema.after(&[
        "CREATE TEMPORARY TABLE counters LIKE copied",
        "INSERT INTO counters SELECT * FROM copied",
        "CALL counter_increment('a')",
    ]);
    let resized = connection.query_drop("CALL counter_resize('a', 3)");
    assert_eq!(resized.is_err(), server.is_mysql(), "{resized:?}");
    assert_eq!(schema.first::<(i64, i64)>("SELECT total, slots FROM counter_totals"), (40, 5));
}

/// A cluster sets auto_increment_increment to its number of nodes, auto_increment_offset to that of the node. The server is each in turn.
fn a_node_of_a_cluster_keeps_its_counts_in_its_slots(server: &Server) {
    let server = &server.another(&[]);
    for package in ["counters --cluster", "counters --cluster --slots 40", "slotted_counters --cluster --slots 40"] {
        let package = parsed(package);
        let (schema, arguments) = (server.installed([&package]), package.options.arguments());
        let be_node = |node: u64, nodes: u64| {
            schema
                .run(&format!("SET GLOBAL auto_increment_increment = {nodes}, GLOBAL auto_increment_offset = {node}"));
        };
        let (named, per_counter) = (package.options.is_named(), package.options.per_counter());
        let (prefix, table) = (package.options.prefix.name(), &package.options.table);
        let (key, slot, count) =
            if named { ("'hot'", "counter_id - 1", "counter") } else { ("7, 7", "slot", "`count`") };
        let queries = Queries::of(&schema, &package);
        for (node, nodes) in [(1, 3), (3, 3), (6, 7)] {
            let what = format!("{arguments}: node {node} of {nodes}");
            be_node(node, nodes);
            if named {
                schema.run(&format!("CALL {prefix}setup({key}, NULL, 40, 0)"));
            }
            let mut counted = 0;
            for slots in if per_counter { &[9, 33, 7, 40][..] } else { &[40] } {
                if per_counter {
                    schema.run(&format!("CALL {prefix}resize({key}, {slots})"));
                }
                for _ in 0..7 {
                    let counts = [format!("CALL {prefix}increment({key})"), format!("CALL {prefix}add({key}, 2)")];
                    let mut connection = schema.after(&counts.each_ref().map(String::as_str));
                    counted += 3;
                    // The statement of queries.sql.
                    if !named {
                        queries.exec(&mut connection, "increment", vec![7.into(), 7.into()]).expect(&what);
                        counted += 1;
                    } else if *slots == 40 {
                        assert!(queries.count(&mut connection, "hot", 40).expect("a count"), "{what}");
                        counted += 1;
                    }
                }
                let elsewhere =
                    format!("SELECT COUNT(*) FROM {table} WHERE {count} <> 0 AND MOD({slot}, {nodes}) <> {node} - 1");
                assert_eq!(schema.first::<u64>(&elsewhere), 0, "{what}, {slots} slots");
            }
            assert_eq!(schema.first::<i64>(&format!("SELECT {prefix}get({key})")), counted, "{what}");
            schema.run(&format!("CALL {prefix}delete({key})"));
        }
        be_node(1, 1);
        // Fewer slots than nodes: a node without a slot of its own counts as well.
        if named {
            schema.run("CALL counter_setup('hot', NULL, 40, 5)");
            be_node(41, 41);
            schema.run("CALL counter_increment('hot')");
            assert_eq!(schema.first::<i64>("SELECT counter_get('hot')"), 6, "{arguments}");
            let few = schema.connect().query_drop("CALL counter_setup('few', NULL, 40, 0)");
            assert_eq!(error_of(few).0, 30018, "{arguments}");
            be_node(1, 1);
        }
    }
}

/// A tool copies a table by triggers, and renames the copy. MariaDB ends if an UPDATE of several tables waits for the RENAME (11.8.9).
fn the_server_lives_through_a_schema_change_beside_each_routine(server: &Server) {
    let server = &server.another(&[]);
    let named = "increment('a'); add('a', -2); reset('a', 5, TRUE); resize('a', 2); resize('a', 9); delete('a'); setup('c', NULL, 5, 0)";
    let records = "increment(1, 1); add_many('[[1, 1, 1], [1, 2, 2]]'); reset(1, 1, 5); compact(1, 1); delete(1, 1)";
    let taking = "add('a', 2); add('a', -2); take('a', 1); take('a', 30)";
    let column = (of_column("articles.views", "id BIGINT", |_| {}), "rollup(NULL); compact(1); reset(1, 3)");
    for (package, calls) in [(package(|_| {}), named), (keyed(|_| {}), records), (bounded(|_| {}), taking), column] {
        calls.split("; ").for_each(|call| is_called_beside_a_schema_change(server, &package, call));
    }
}

/// Runs a call while its table, or that of its column, is renamed.
fn is_called_beside_a_schema_change(server: &Server, package: &Package, call: &str) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT); INSERT INTO articles VALUES (1, 1)");
    schema.install(package);
    let (table, prefix) = (package.options.table.name(), package.options.prefix.name());
    schema.run(&match table {
        "articles_views" => "CALL articles_views_add(1, 5)".to_owned(),
        "slotted_counters" => format!("INSERT INTO {table} VALUES (1, 1, 1, 15), (1, 1, 3, 16), (1, 2, 4, 7)"),
        _ => format!("CALL {prefix}setup('a', NULL, 5, 37); CALL {prefix}setup('b', NULL, 5, 7)"),
    });
    let table = table.strip_suffix("_views").unwrap_or(table);
    schema.run(&format!("CREATE TABLE copied LIKE {table}; INSERT INTO copied SELECT * FROM {table}"));
    let of_copied = "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'copied'";
    let new = format!(
        "SELECT GROUP_CONCAT('NEW.`', COLUMN_NAME, '`' ORDER BY ORDINAL_POSITION) FROM information_schema.COLUMNS {of_copied}"
    );
    let same = format!(
        "SELECT GROUP_CONCAT(COLUMN_NAME, ' = OLD.', COLUMN_NAME SEPARATOR ' AND ') FROM information_schema.STATISTICS {of_copied}"
    );
    let delete = format!("DELETE IGNORE FROM copied WHERE {}", schema.first::<String>(&same));
    let replace = format!("REPLACE INTO copied VALUES ({})", schema.first::<String>(&new));
    for (event, action) in
        [("INSERT", &replace), ("DELETE", &delete), ("UPDATE", &format!("BEGIN {delete}; {replace}; END"))]
    {
        schema.after(&[&format!("CREATE TRIGGER on_{event} AFTER {event} ON {table} FOR EACH ROW {action}")]);
    }
    let mut reader = schema.after(&["START TRANSACTION", "SELECT COUNT(*) FROM copied"]);
    let rename = [format!("RENAME TABLE {table} TO renamed, copied TO {table}")];
    let (renamed, called) = schema.while_waiting(&mut schema.connect(), &rename, || {
        let call = [format!("CALL {prefix}{call}")];
        schema.while_waiting(&mut schema.connect(), &call, || run(&mut reader, "COMMIT")).0
    });
    renamed.and(called).expect(call);
    assert_eq!(schema.first::<u64>("SELECT 1"), 1, "{call}");
    if table == "articles" {
        schema.run("CALL articles_views_rollup(NULL)");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM articles_views WHERE count <> 0"), 0, "{call}");
    }
}
