//! queries.sql: the plain statements of a package count as its routines do, for applications that prepare them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;

use mysql::prelude::{FromRow, Queryable};
use mysql::{Params, Row, TxOpts, Value};
use slotted::package::{Kind, Package, Pick, Slots};
use slotted::script::{self, Query};

use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, bounded, calls, keyed, package, repeatable, variants};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(every_query_has_the_parameters_of_its_comment)
        .on_servers(queries_and_calls_count_in_the_same_rows)
        .on_servers(totals_are_exact_during_resizes)
        .on_servers(queries_work_after_a_select_in_the_same_transaction)
        .on_servers(a_json_escape_is_its_character_in_a_session_without_the_character)
        .on(|name| name.starts_with("mysql"), an_increment_locks_one_record_and_no_gap);
}

/// The statements of a package by name.
pub struct Queries(BTreeMap<String, Query>);

impl Queries {
    pub fn of(schema: &Schema<'_>, package: &Package) -> Self {
        let text = schema.file(package, "queries.sql");
        let queries = script::queries(&text);
        assert_eq!(queries.len(), text.matches("-- name: ").count(), "each name has a statement");
        Self(queries.into_iter().map(|query| (query.name.clone(), query)).collect())
    }

    /// Executes a statement with arguments by name, and returns the number of rows that it changed.
    pub fn change(&self, connection: &mut impl Queryable, name: &str, arguments: &[(&str, Value)]) -> mysql::Result<u64> {
        let query = &self.0[name];
        let value = |parameter: &String| {
            let argument = arguments.iter().find(|(name, _)| name == parameter);
            argument.unwrap_or_else(|| panic!("{name} needs {parameter}")).1.clone()
        };
        let values = query.parameters.iter().map(value).collect();
        Ok(connection.exec_iter(&query.sql, Params::Positional(values))?.affected_rows())
    }

    pub fn rows<R: FromRow>(&self, connection: &mut impl Queryable, name: &str, values: Vec<Value>) -> Vec<R> {
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

fn every_query_has_the_parameters_of_its_comment(server: &Server) {
    let key = "site BINARY(2), day DATE, `the url` VARCHAR(255)".parse().expect("a key");
    let mut packages: Vec<_> = variants().into_iter().map(|(_, package)| package).collect();
    packages.extend([
        package(|o| o.cluster = true),
        bounded(|_| {}),
        bounded(|o| o.cluster = true),
        keyed(|o| (o.key, o.pick) = (key, Pick::Random)),
        keyed(|o| o.cluster = true),
        of_column("articles.views", "id BIGINT", |_| {}),
    ]);
    for package in packages {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
        schema.install(&package);
        let mut connection = schema.connect();
        for (name, query) in Queries::of(&schema, &package).0 {
            let mut transaction = connection.start_transaction(TxOpts::default()).expect("a transaction");
            let statement = transaction.prep(&query.sql).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(usize::from(statement.num_params()), query.parameters.len(), "{name}");
            let value = |parameter: &String| Value::from(match &parameter[..] {
                "day" => "2026-12-31",
                "amounts" => "[]",
                _ => "12",
            });
            let values = query.parameters.iter().map(value).collect();
            transaction.exec::<Row, _, _>(&statement, Params::Positional(values)).expect(&name);
        }
    }
}

fn queries_and_calls_count_in_the_same_rows(server: &Server) {
    let records = keyed(|_| {});
    let mut packages: Vec<_> = variants().into_iter().map(|(_, package)| package).collect();
    packages.extend([bounded(|_| {}), keyed(|o| o.pick = Pick::Random), records]);
    for package in packages {
        let (schema, what) = (server.schema(), package.options.arguments());
        schema.install(&package);
        let queries = Queries::of(&schema, &package);
        let mut connection = schema.connect();
        let (prefix, named) = (package.options.prefix.name(), package.options.kind == Kind::Counters);
        let (key, of_key): (_, Vec<Value>) = if named { ("'downloads'", vec!["downloads".into()]) } else { ("123, 456", vec![123.into(), 456.into()]) };
        let total = |connection: &mut mysql::Conn| queries.rows::<Option<i64>>(connection, "get", of_key.clone()).remove(0);
        let mut slots = 20;
        if named {
            assert_eq!(total(&mut connection), None, "{what}: no counter");
            assert!(!queries.count(&mut connection, "downloads", 20).expect("increment"), "{what}: no counter");
            schema.run(&format!("CALL {prefix}setup({key}, NULL, 20, 5)"));
            if package.options.per_counter() {
                slots = queries.rows(&mut connection, "slots", of_key.clone()).remove(0);
            }
        } else {
            queries.exec(&mut connection, "add_many", vec!["[[123, 456, 2], [123, 456, 3], [9, 9, 1]]".into()]).expect("add_many");
        }
        for _ in 0..11 {
            // Each increment in its own connection, so that they use several slots.
            let mut connection = schema.connect();
            if named {
                assert!(queries.count(&mut connection, "Downloads", slots).expect("increment"), "{what}");
            } else {
                queries.exec(&mut connection, "increment", of_key.clone()).expect("increment");
            }
        }
        let arguments = [("counter_name", "downloads".into()), ("record_type", 123.into()), ("record_id", 456.into()), ("amount", 7.into()), ("slots", slots.into()), ("slot", 1.into())];
        assert!(queries.change(&mut connection, "add", &arguments).expect("add") > 0, "{what}");
        schema.run(&format!("CALL {prefix}increment({key})"));
        assert_eq!(total(&mut connection), Some(24), "{what}");
        assert_eq!(schema.first::<i64>(&format!("SELECT {prefix}get({key})")), 24, "{what}");
        let totals: Vec<Row> = queries.rows(&mut connection, "totals", Vec::new());
        assert!(totals.iter().any(|row| row.get::<i64, _>("total") == Some(24)), "{what}");
        if package.options.bounded {
            assert_eq!(queries.change(&mut connection, "take", &arguments).expect("take"), 1);
            assert_eq!(total(&mut connection), Some(17));
            let more = [("counter_name", "downloads".into()), ("amount", 18.into()), ("slots", slots.into())];
            assert_eq!(queries.change(&mut connection, "take", &more).expect("no error"), 0);
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
        let schema = server.schema();
        schema.install(&package);
        schema.run("CALL counter_setup('hot', NULL, 12, NULL)");
        let (queries, done, counted) = (&Queries::of(&schema, &package), AtomicBool::new(false), AtomicI64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut connection = schema.isolated(isolation);
                for slots in [5, 12, 1, 7].into_iter().cycle().take_while(|_| !done.load(SeqCst)) {
                    while let Err(error) = connection.exec_drop("CALL counter_resize('hot', ?)", (slots,)) {
                        repeatable(error);
                    }
                }
            });
            let write = || {
                let mut connection = schema.isolated(isolation);
                for _ in calls(200) {
                    while !queries.count(&mut connection, "hot", 12).map_err(repeatable).unwrap_or(false) {}
                    counted.fetch_add(1, SeqCst);
                }
            };
            let writers: Vec<_> = (0..16).map(|_| scope.spawn(write)).collect();
            let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            done.store(true, SeqCst);
            written.into_iter().for_each(|result| result.expect("a writer"));
        });
        assert_eq!(schema.first::<i64>("SELECT counter_get('hot')"), counted.into_inner(), "{isolation}");
    }
}

/// MariaDB 11.8 would reject the change of a row that has changed since the first read (1020).
fn queries_work_after_a_select_in_the_same_transaction(server: &Server) {
    // With one slot, the other connection and the transaction change the same row.
    let (records, fixed) = (keyed(|o| o.slots = Slots::Fixed(1)), package(|o| o.slots = Slots::Fixed(1)));
    let of_records = [("increment", vec![1.into(), 1.into()]), ("add", vec![1.into(), 1.into(), 1.into(), 1.into()]), ("add_many", vec!["[[1, 1, 1]]".into()])];
    let of_names = [("increment", vec!["a".into()]), ("add", vec![Value::from(1), "a".into()])];
    for (package, setup, call, statements) in [
        (records, "CALL slotted_counter_increment(1, 1)", "CALL slotted_counter_increment(1, 1)", of_records.to_vec()),
        (fixed, "CALL counter_setup('a', NULL, NULL, 1)", "CALL counter_increment('a')", of_names.to_vec()),
    ] {
        let schema = server.schema();
        schema.install(&package);
        schema.run(setup);
        let queries = Queries::of(&schema, &package);
        let (count, table) = (if package.options.kind == Kind::Counters { "counter" } else { "`count`" }, &package.options.table);
        for (number, (name, values)) in statements.into_iter().enumerate() {
            let mut connection = schema.isolated("REPEATABLE READ");
            connection.query_drop("START TRANSACTION").expect("a transaction");
            connection.query_drop(format!("SELECT * FROM {table}")).expect("a read");
            schema.run(call);
            queries.exec(&mut connection, name, values).unwrap_or_else(|error| panic!("{name}: {error}"));
            connection.query_drop("COMMIT").expect("a commit");
            assert_eq!(schema.first::<usize>(&format!("SELECT {count} FROM {table}")), 3 + 2 * number, "{name}");
        }
    }
}

/// JSON libraries write characters beyond ASCII as escapes. The session cannot have these characters, the key can.
fn a_json_escape_is_its_character_in_a_session_without_the_character(server: &Server) {
    let package = keyed(|o| o.key = "name VARCHAR(40)".parse().expect("a key"));
    let schema = server.schema();
    schema.install(&package);
    schema.run("CALL slotted_counter_add('\u{416}', 1)");
    let mut connection = schema.connect();
    connection.query_drop("SET NAMES latin1").expect("latin1");
    Queries::of(&schema, &package).exec(&mut connection, "add_many", vec![r#"[["\u0416", 5]]"#.into()]).expect("add_many");
    assert_eq!(schema.query::<(String, i64)>("SELECT name, total FROM slotted_counter_totals"), [("\u{416}".to_owned(), 6)]);
}

fn an_increment_locks_one_record_and_no_gap(server: &Server) {
    let package = keyed(|options| options.slots = Slots::Fixed(1));
    let schema = server.schema();
    schema.install(&package);
    schema.run("CALL slotted_counter_increment(1, 1); CALL slotted_counter_increment(1, 2)");
    let queries = Queries::of(&schema, &package);
    let mut connection = schema.isolated("REPEATABLE READ");
    connection.query_drop("START TRANSACTION").expect("a transaction");
    assert_eq!(queries.rows::<i64>(&mut connection, "get", vec![1.into(), 1.into()]), [1]);
    assert_eq!(schema.data_locks(), []);
    queries.exec(&mut connection, "increment", vec![1.into(), 1.into()]).expect("increment");
    let locks = schema.data_locks();
    let locks: Vec<_> = locks.iter().map(|(kind, mode)| (kind.as_str(), mode.as_str())).collect();
    assert_eq!(locks, [("RECORD", "X,REC_NOT_GAP"), ("TABLE", "IX")]);
}
