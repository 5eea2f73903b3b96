//! Packages with `--no-function`, for accounts without SUPER on a server with a binary log: the table of docs/migrations.md.

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use crate::accounts::packages;
use crate::support::{Module, Server, root};

pub fn promises(mut module: Module<'_>) {
    module.on_servers(each_read_has_its_form_without_the_function);
}

/// The rows that a statement returns, or the value that it assigns.
fn value(connection: &mut Conn, statement: &str) -> Vec<Vec<Value>> {
    let mut query = statement;
    if statement.contains("@total") {
        connection.query_drop(statement).expect(statement);
        query = "SELECT @total";
    }
    connection.query_map(query, Row::unwrap).expect(query)
}

fn each_read_has_its_form_without_the_function(server: &Server) {
    let page = std::fs::read_to_string(root().join("docs/migrations.md")).expect("the page");
    let (_, table) = page.split_once("| with the function | without |\n|---|---|\n").expect("the table");
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 10), (2, 20), (3, 5)");
    packages().iter().for_each(|package| schema.install(package));
    schema.run(
        "CALL counter_setup('downloads', NULL, NULL, 41); CALL counter_increment('downloads'); CALL slotted_counter_add(123, 456, 7); \
         CALL bounded_counter_setup('seats', NULL, NULL, 8); CALL articles_views_add(1, 3); CALL articles_views_add(3, 1)",
    );
    let mut connection = schema.connect();
    let mut rows = 0;
    for row in table.lines().take_while(|row| row.starts_with('|')) {
        let code: Vec<_> = row.split('`').skip(1).step_by(2).collect();
        let [with, without] = code[..] else { panic!("{row}") };
        assert!(with.contains("_get(") && !without.contains("_get("), "{row}");
        let wanted = value(&mut connection, with);
        let is_zero = |value: &Value| [Value::NULL, Value::from("0")].contains(value);
        assert!(!wanted.iter().flatten().any(is_zero), "{with}: {wanted:?}");
        connection.query_drop("SET @total = NULL").expect("a variable");
        assert_eq!(value(&mut connection, without), wanted, "{without}");
        rows += 1;
    }
    assert_eq!(rows, 6);
    // A record without rows.
    let none = "SELECT COALESCE(SUM(total), 0) FROM slotted_counter_totals WHERE record_type = 9 AND record_id = 9";
    assert!(page.contains(&none.replace("record_type = 9 AND record_id = 9", "record_type = 123 AND record_id = 456")));
    assert_eq!(value(&mut connection, none), value(&mut connection, "SELECT slotted_counter_get(9, 9)"));
}
