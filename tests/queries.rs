//! Plain statements: those of queries.sql count as the routines do, and reads need no function.

use std::collections::BTreeMap;

use mysql::prelude::FromRow;
use mysql::{Params, Row, TxOpts, Value};
use slotted::package::{Options, Package};
use slotted::script::statements;

use crate::accounts::packages;
use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(every_query_has_the_parameters_of_its_comment)
        .on_servers(queries_and_calls_count_in_the_same_rows)
        .on_servers(totals_are_exact_during_resizes)
        .on_servers(queries_after_a_select_in_the_same_transaction_work_and_lock_one_record)
        .on_servers(a_json_escape_is_its_character_in_a_session_without_the_character)
        .on_servers(each_read_has_its_form_without_the_function);
}

/// A named statement of queries.sql, with a question mark for each parameter.
struct Query {
    name: String,
    parameters: Vec<String>,
    sql: String,
}

/// The named statements of `queries.sql`. Each follows its comments `-- name: NAME` and `-- Parameters: A, B`.
fn queries(script: &str) -> Vec<Query> {
    let mut queries = Vec::new();
    for part in script.split("\n-- name: ").skip(1) {
        let (name, rest) = part.split_once('\n').unwrap_or((part, ""));
        let parameters = rest.lines().find_map(|line| line.strip_prefix("-- Parameters: "));
        let parameters = parameters.unwrap_or_default().split(", ");
        queries.extend(statements(rest).into_iter().next().map(|sql| Query {
            name: name.trim().to_owned(),
            parameters: parameters.filter(|parameter| !["none", ""].contains(parameter)).map(str::to_owned).collect(),
            sql,
        }));
    }
    queries
}

/// The statements of a package by name.
pub struct Queries(BTreeMap<String, Query>);

impl Queries {
    pub fn of(schema: &Schema<'_>, package: &Package) -> Self {
        let text = schema.file(package, "queries.sql");
        let queries = queries(&text);
        assert_eq!(queries.len(), text.matches("-- name: ").count(), "each name has a statement");
        Self(queries.into_iter().map(|query| (query.name.clone(), query)).collect())
    }

    /// Executes a statement with arguments by name, and returns the number of rows that it changed.
    fn change(&self, connection: &mut impl Queryable, name: &str, arguments: &[(&str, Value)]) -> mysql::Result<u64> {
        let query = &self.0[name];
        let value =
            |parameter: &String| arguments.iter().find(|(name, _)| name == parameter).expect(parameter).1.clone();
        let values = query.parameters.iter().map(value).collect();
        Ok(connection.exec_iter(&query.sql, Params::Positional(values))?.affected_rows())
    }

    fn rows<R: FromRow>(&self, connection: &mut impl Queryable, name: &str, values: Vec<Value>) -> Vec<R> {
        connection.exec(&self.0[name].sql, Params::Positional(values)).expect(name)
    }

    pub fn exec(&self, connection: &mut impl Queryable, name: &str, values: Vec<Value>) -> mysql::Result<()> {
        connection.exec_drop(&self.0[name].sql, Params::Positional(values))
    }

    /// Increments a named counter as the comments say, with the number of slots that the application has read. Returns whether it exists.
    pub fn count(&self, connection: &mut impl Queryable, counter: &str, slots: u64) -> mysql::Result<bool> {
        for slots in [slots, 1] {
            let slot = rand::random_range(1..=slots);
            let arguments = [("counter_name", counter.into()), ("slots", slots.into()), ("slot", slot.into())];
            if self.change(connection, "increment", &arguments)? == 1 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A value for each parameter of a counter or a record.
fn arguments(amount: i64) -> Vec<(&'static str, Value)> {
    let named = [("counter_name", "downloads".into()), ("slots", 20.into()), ("slot", 1.into())];
    let records = [("record_type", 123.into()), ("record_id", 456.into()), ("amounts", "[[123, 456, 1]]".into())];
    named.into_iter().chain(records).chain([("amount", amount.into())]).collect()
}

fn every_query_has_the_parameters_of_its_comment(server: &Server) {
    let key = "site BINARY(2), day DATE, `the url` VARCHAR(255)".parse().expect("a key");
    let more = [
        package(|o| o.cluster = true),
        bounded(|_| {}),
        bounded(|o| o.cluster = true),
        keyed(|o| o.subject = records(key)),
        keyed(|o| o.cluster = true),
        of_column("articles.views", "id BIGINT", |_| {}),
    ];
    for package in variants().into_iter().chain(more) {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
        schema.install(&package);
        let mut connection = schema.connect();
        for (name, query) in Queries::of(&schema, &package).0 {
            let mut transaction = connection.start_transaction(TxOpts::default()).expect("a transaction");
            let statement = transaction.prep(&query.sql).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(usize::from(statement.num_params()), query.parameters.len(), "{name}");
            let value = |parameter: &String| match &parameter[..] {
                "day" => "2026-12-31",
                "amounts" => "[]",
                _ => "12",
            };
            let values = query.parameters.iter().map(|parameter| value(parameter).into()).collect();
            transaction.exec::<Row, _, _>(&statement, Params::Positional(values)).expect(&name);
        }
    }
}

fn queries_and_calls_count_in_the_same_rows(server: &Server) {
    for package in variants().into_iter().chain([bounded(|_| {}), keyed(|_| {})]) {
        let (schema, what) = (server.installed([&package]), package.options.arguments());
        let (queries, mut connection) = (Queries::of(&schema, &package), schema.connect());
        let (prefix, named) = (package.options.prefix.name(), package.options.is_named());
        let (key, of_key): (_, Vec<Value>) =
            if named { ("'downloads'", vec!["downloads".into()]) } else { ("123, 456", vec![123.into(), 456.into()]) };
        let total = || queries.rows::<Option<i64>>(&mut schema.connect(), "get", of_key.clone()).remove(0);
        if named {
            assert_eq!(total(), None, "{what}: no counter");
            assert!(!queries.count(&mut connection, "downloads", 20).expect("increment"), "{what}: no counter");
            schema.run(&format!("CALL {prefix}setup({key}, NULL, 20, 5)"));
        } else {
            let amounts = "[[123, 456, 2], [123, 456, 3], [9, 9, 1]]";
            queries.exec(&mut connection, "add_many", vec![amounts.into()]).expect("add_many");
        }
        if package.options.per_counter() {
            assert_eq!(queries.rows::<u64>(&mut connection, "slots", of_key.clone()), [20], "{what}");
        }
        for _ in 0..11 {
            // Each increment in its own connection, so that they use several slots.
            let mut connection = schema.connect();
            if named {
                assert!(queries.count(&mut connection, "Downloads", 20).expect("increment"), "{what}");
            } else {
                queries.exec(&mut connection, "increment", of_key.clone()).expect("increment");
            }
        }
        assert!(queries.change(&mut connection, "add", &arguments(7)).expect("add") > 0, "{what}");
        schema.run(&format!("CALL {prefix}increment({key})"));
        assert_eq!((total(), schema.first(&format!("SELECT {prefix}get({key})"))), (Some(24), 24), "{what}");
        let totals: Vec<Row> = queries.rows(&mut connection, "totals", Vec::new());
        assert!(totals.iter().any(|row| row.get::<i64, _>("total") == Some(24)), "{what}");
        if package.options.is_bounded() {
            for (amount, taken, left) in [(7, 1, 17), (18, 0, 17)] {
                assert_eq!(queries.change(&mut connection, "take", &arguments(amount)).expect("take"), taken);
                assert_eq!(total(), Some(left));
            }
        }
        let count = if named { "counter" } else { "`count`" };
        let used: u64 = schema.first(&format!("SELECT COUNT(*) FROM {} WHERE {count} > 0", package.options.table));
        assert!(used > 2, "{what}: {used} slots");
    }
}

/// An application keeps the number of slots that it has read once.
fn totals_are_exact_during_resizes(server: &Server) {
    let package = package(|_| {});
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        let schema = server.installed([&package]);
        schema.run("CALL counter_setup('hot', NULL, 12, NULL)");
        let (queries, counted) = (&Queries::of(&schema, &package), AtomicI64::new(0));
        let write = || {
            let mut connection = schema.isolated(isolation);
            for _ in calls(200) {
                while !queries.count(&mut connection, "hot", 12).map_err(repeatable).unwrap_or(false) {}
                counted.fetch_add(1, SeqCst);
            }
        };
        let resize = |connection: &mut Conn, _| {
            for slots in [5, 12, 1, 7] {
                repeat(connection, &[&format!("CALL counter_resize('hot', {slots})")]);
            }
        };
        beside([schema.isolated(isolation)], resize, || at_once(16, write));
        assert_eq!(schema.first::<i64>("SELECT counter_get('hot')"), counted.into_inner(), "{isolation}");
    }
}

/// MariaDB 11.8 would reject the change of a row that has changed since the first read (1020).
fn queries_after_a_select_in_the_same_transaction_work_and_lock_one_record(server: &Server) {
    // With one slot, the other connection and the transaction change the same row.
    let one = |options: &mut Options| options.subject.set_slots(1);
    let (of_record, of_counter) = ("CALL slotted_counter_increment(123, 456)", "CALL counter_increment('downloads')");
    let setup = "CALL counter_setup('downloads', NULL, NULL, 0)";
    for (package, setup, call, names) in [
        (keyed(one), "DO 0", of_record, &["increment", "add", "add_many"][..]),
        (package(one), setup, of_counter, &["increment", "add"]),
    ] {
        let schema = server.installed([&package]);
        schema.run(&format!("{setup}; {call}"));
        let (queries, table) = (Queries::of(&schema, &package), &package.options.table);
        for (number, name) in names.iter().enumerate() {
            let mut connection = schema.isolated("REPEATABLE READ");
            connection.query_drop("START TRANSACTION").expect("a transaction");
            connection.query_drop(format!("SELECT * FROM {table}")).expect("a read");
            schema.run(call);
            queries.change(&mut connection, name, &arguments(1)).unwrap_or_else(|error| panic!("{name}: {error}"));
            if number == 0 && server.is_mysql() {
                let locks = schema.data_locks().into_iter().map(|(kind, mode)| kind + " " + &mode);
                assert_eq!(locks.collect::<Vec<_>>(), ["RECORD X,REC_NOT_GAP", "TABLE IX"]);
            }
            connection.query_drop("COMMIT").expect("a commit");
            let count = if names.len() == 2 { "counter" } else { "`count`" };
            assert_eq!(schema.first::<usize>(&format!("SELECT {count} FROM {table}")), 3 + 2 * number, "{name}");
        }
    }
}

/// JSON libraries write characters beyond ASCII as escapes. The session cannot have these characters, the key can.
fn a_json_escape_is_its_character_in_a_session_without_the_character(server: &Server) {
    let package = keyed(|o| o.subject = records("name VARCHAR(40)".parse().expect("a key")));
    let schema = server.installed([&package]);
    schema.run("CALL slotted_counter_add('\u{416}', 1)");
    let (queries, mut connection) = (Queries::of(&schema, &package), schema.connect());
    connection.query_drop("SET NAMES latin1").expect("latin1");
    queries.exec(&mut connection, "add_many", vec![r#"[["\u0416", 5]]"#.into()]).expect("add_many");
    let totals = schema.query::<(String, i64)>("SELECT name, total FROM slotted_counter_totals");
    assert_eq!(totals, [("\u{416}".to_owned(), 6)]);
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

/// For accounts without SUPER on a server with a binary log: the table of docs/migrations.md.
fn each_read_has_its_form_without_the_function(server: &Server) {
    let rows = table("docs/migrations.md", "with the function | without");
    assert_eq!(rows.len(), 6);
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 10), (2, 20), (3, 5)");
    packages().iter().for_each(|package| schema.install(package));
    schema.run(
        "CALL counter_setup('downloads', NULL, NULL, 41); CALL counter_increment('downloads'); CALL slotted_counter_add(123, 456, 7); \
         CALL bounded_counter_setup('seats', NULL, NULL, 8); CALL articles_views_add(1, 3); CALL articles_views_add(3, 1)",
    );
    let mut connection = schema.connect();
    for row in rows {
        let [with, without] = [0, 1].map(|cell| row[cell].trim_matches('`'));
        assert!(with.contains("_get(") && !without.contains("_get("), "{row:?}");
        let wanted = value(&mut connection, with);
        let is_zero = |value: &Value| [Value::NULL, Value::from("0")].contains(value);
        assert!(!wanted.iter().flatten().any(is_zero), "{with}: {wanted:?}");
        connection.query_drop("SET @total = NULL").expect("a variable");
        assert_eq!(value(&mut connection, without), wanted, "{without}");
    }
    let none = "SELECT COALESCE(SUM(total), 0) FROM slotted_counter_totals WHERE record_type = 9 AND record_id = 9";
    let page = std::fs::read_to_string(root().join("docs/migrations.md")).expect("the page");
    assert!(page.contains(&none.replace("record_type = 9 AND record_id = 9", "record_type = 123 AND record_id = 456")));
    assert_eq!(value(&mut connection, none), value(&mut connection, "SELECT slotted_counter_get(9, 9)"));
}
