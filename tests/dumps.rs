//! Rows that move between MySQL and MariaDB, as docs/operations.md describes it.

use std::process::Command;

use mysql::prelude::Queryable;

use crate::support::{Module, Schema, Server, error_of, parsed, root, servers_of_this_run};

pub fn promises(mut module: Module<'_>) {
    module.on_servers(rows_of_a_dump_move_to_the_other_server);
}

/// The packages, the queries of their totals, and the calls after which these totals are `41`.
const PACKAGES: [(&str, &str, &str); 5] = [
    (
        "counters",
        "SELECT counter_get('\u{e9}\u{1F600}')",
        "CALL counter_setup('\u{e9}\u{1F600}', 'it''s', 7, 40); CALL counter_increment('\u{c9}\u{1F600}')",
    ),
    ("slotted_counters", "SELECT slotted_counter_get(1, 2)", "CALL slotted_counter_add(1, 2, 41)"),
    (
        "slotted_counters --key 'hash BINARY(4)' --table hashes --prefix hash_",
        "SELECT hash_get(0x00FF275C)",
        "CALL hash_add(0x00FF275C, 41)",
    ),
    (
        "--column articles.views --key 'url VARCHAR(50)'",
        "SELECT articles_views_get('/\u{4e2d}')",
        "INSERT INTO articles VALUES ('/\u{4e2d}', 30); CALL articles_views_add('/\u{4e2d}', 11)",
    ),
    (
        "bounded_counters",
        "SELECT bounded_counter_get('seats')",
        "CALL bounded_counter_setup('seats', NULL, 3, 50); CALL bounded_counter_take('seats', 9)",
    ),
];

/// A schema with the tables and the packages.
fn created(server: &Server) -> Schema<'_> {
    let schema = server.schema();
    let key = "url VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY";
    schema.run(&format!("CREATE TABLE articles ({key}, views BIGINT NOT NULL CHECK (views >= 0)) ENGINE = InnoDB"));
    PACKAGES.iter().for_each(|(words, ..)| schema.install(&parsed(words)));
    schema
}

/// The rows of a schema, dumped with the options of the page.
fn dump(schema: &Schema<'_>) -> String {
    let page = std::fs::read_to_string(root().join("docs/operations.md")).expect("the page");
    let (_, section) = page.split_once("## Between MySQL and MariaDB").expect("the section");
    let (_, command) = section.split_once("mysqldump ").expect("a dump");
    let (options, _) = command.split_once(" mydb`").expect("a dump of the database");
    let client = schema.client().command(&[], root());
    // The last argument names the schema.
    let account = client.get_args().take(client.get_args().len() - 1);
    let mut dump = Command::new(schema.server.dump());
    let output = dump.args(account).args(options.split(' ')).arg(&schema.name).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn rows_of_a_dump_move_to_the_other_server(server: &Server) {
    let schema = created(server);
    PACKAGES.iter().for_each(|(_, _, calls)| schema.run(calls));
    let rows = dump(&schema);
    for other in servers_of_this_run().iter().filter(|other| other.is_mysql() != server.is_mysql()) {
        let moved = created(other);
        let said = moved.client().pipe(&[], &rows);
        assert!(said.success, "to {}: {said:?}", other.version);
        for (words, query, _) in PACKAGES {
            let table = &parsed(words).options.table;
            assert_eq!(moved.rows(table), schema.rows(table), "to {}: {table}", other.version);
            assert_eq!(moved.first::<i64>(query), 41, "to {}: {query}", other.version);
        }
        moved.run("CALL counter_increment('\u{e9}\u{1F600}'); CALL articles_views_rollup(NULL); CALL articles_views_increment('/\u{4e2d}')");
        let totals = "SELECT counter_get('\u{e9}\u{1F600}'), views, articles_views_get(url) FROM articles";
        assert_eq!(moved.first::<(i64, i64, i64)>(totals), (42, 41, 42), "to {}", other.version);
        assert_eq!(error_of(moved.connect().query_drop("CALL bounded_counter_take('seats', 42)")).0, 30016);
    }
}
