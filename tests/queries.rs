//! queries.sql: every operation as a plain statement, for applications that do not call routines.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::thread;

use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, Params, Row, TxOpts, Value};
use slotted::package::{Package, Pick, Slots};
use slotted::script::{self, Query};

use crate::rollup::of_column;
use crate::support::{
    Module, Schema, Server, calls, error_of, file, keyed, package, repeatable, variants as named_variants,
};

pub fn promises(mut module: Module<'_>) {
    let mysql = |name: &str| name.starts_with("mysql");
    module
        .on_servers(every_query_has_the_parameters_of_its_comment)
        .on_servers(increments_by_query_are_exact)
        .on_servers(named_counters_by_query_need_only_the_table)
        .on_servers(totals_are_exact_during_resizes_by_query)
        .on_servers(queries_need_only_the_table)
        .on_servers(queries_work_after_a_select_in_the_same_transaction)
        .on_servers(totals_are_exact_during_compactions_by_query)
        .on_servers(a_json_escape_is_its_character_in_a_session_without_the_character)
        .on(mysql, an_increment_by_query_locks_one_record_and_no_gap);
}

/// JSON libraries write characters beyond ASCII as escapes. The session cannot have these characters, the key can.
fn a_json_escape_is_its_character_in_a_session_without_the_character(server: &Server) {
    for charset in ["utf8mb3", "latin1"] {
        let schema = server.schema();
        let (records, named) = (keyed(|o| o.key = "name VARCHAR(40)".parse().expect("a key")), package(|_| {}));
        schema.install(&records);
        schema.install(&named);
        schema.run("CALL counter_setup('Ж', NULL, 3, 1); CALL counter_setup('?', NULL, 3, 1); CALL slotted_counter_add('Ж', 1)");
        let mut connection = schema.connect();
        connection.query_drop(format!("SET NAMES {charset}")).expect(charset);
        let amounts = r#"[["\u0416", 5]]"#;
        Queries::of(&records).add_many(&mut connection, amounts);
        assert_eq!(schema.first::<String>("SELECT GROUP_CONCAT(name, SUM) FROM (SELECT name, CAST(SUM(`count`) AS CHAR) AS SUM FROM slotted_counters GROUP BY name) AS sums"), "Ж6");
        let (counters, with_slots, unknown): (i64, Value, i64) =
            Queries::of(&named).rows(&mut connection, "add_many_slots", vec![amounts.into()]).remove(0);
        assert_eq!((counters, unknown), (1, 0), "{charset}: {with_slots:?}");
    }
}

/// The statements of a package by name.
pub struct Queries(BTreeMap<String, Query>);

impl Queries {
    pub fn of(package: &Package) -> Self {
        let text = file(package, "queries.sql");
        let queries = script::queries(&text);
        assert_eq!(queries.len(), text.matches("-- name: ").count(), "each name has a statement");
        Self(queries.into_iter().map(|query| (query.name.clone(), query)).collect())
    }

    pub fn sql(&self, name: &str) -> &str {
        &self.0[name].sql
    }

    /// A statement with its values, to paste into a client.
    pub fn text(&self, name: &str, arguments: &[(&str, Value)]) -> String {
        let (sql, Params::Positional(values)) = self.values(name, arguments) else { return String::new() };
        let mut values = values.into_iter();
        // No comment of a statement has a question mark.
        let parts = sql.split('?').enumerate().map(|(number, part)| match number {
            0 => part.to_owned(),
            _ => values.next().expect("a value").as_sql(false) + part,
        });
        format!("-- {name}\n{};\n", parts.collect::<String>())
    }

    pub fn values(&self, name: &str, arguments: &[(&str, Value)]) -> (&str, Params) {
        let query = &self.0[name];
        let value = |parameter: &String| {
            let argument = arguments.iter().find(|(name, _)| name == parameter);
            argument.unwrap_or_else(|| panic!("{name} needs {parameter}")).1.clone()
        };
        (&query.sql, Params::Positional(query.parameters.iter().map(value).collect()))
    }

    /// Executes a statement with arguments by name, and returns the number of rows that it changed.
    pub fn change(&self, connection: &mut impl Queryable, name: &str, arguments: &[(&str, Value)]) -> mysql::Result<u64> {
        let (sql, values) = self.values(name, arguments);
        Ok(connection.exec_iter(sql, values)?.affected_rows())
    }

    /// The one value that a statement returns. None for NULL.
    fn number(&self, connection: &mut impl Queryable, name: &str, counter: &str) -> Option<i64> {
        let (sql, values) = self.values(name, &[("counter_name", counter.into())]);
        connection.exec_first::<Option<i64>, _, _>(sql, values).expect(name).expect("a row")
    }

    /// Increments a named counter in the steps that the comment in queries.sql describes. Returns whether it exists.
    pub fn count(&self, connection: &mut impl Queryable, counter: &str, slots: i64) -> mysql::Result<bool> {
        self.count_by("increment", connection, counter, slots)
    }

    /// The same on a node of a cluster.
    pub fn count_on_nodes(&self, connection: &mut impl Queryable, counter: &str, slots: i64) -> mysql::Result<bool> {
        let name = if self.0.contains_key("increment_on_nodes") { "increment_on_nodes" } else { "increment" };
        self.count_by(name, connection, counter, slots)
    }

    fn count_by(&self, name: &str, connection: &mut impl Queryable, counter: &str, slots: i64) -> mysql::Result<bool> {
        for slots in [slots, 1] {
            let arguments = [("counter_name", counter.into()), ("slots", slots.into()), ("random", random().into())];
            if self.change(connection, name, &arguments)? == 1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The number of slots that increments select from: a result, or the number in the statement.
    pub fn slots(&self, connection: &mut impl Queryable, counter: &str) -> Option<i64> {
        if self.0.contains_key("slots") { self.number(connection, "slots", counter) } else { Some(0) }
    }

    /// Resizes a named counter in the steps that the comment in queries.sql describes. `retired` is the number of slots
    /// that earlier attempts may have retired.
    fn resize(&self, connection: &mut Conn, counter: &str, slots: i64, retired: i64) -> mysql::Result<()> {
        let with = |slot: i64| [("counter_name", counter.into()), ("slot", slot.into()), ("slots", slots.into())];
        self.change(connection, "grow", &with(0))?;
        let highest = self.number(connection, "highest_slot", counter).expect("the counter exists");
        for slot in (slots + 1..=highest).rev() {
            self.change(connection, "retire_slot", &with(slot))?;
        }
        let retired = retired.max(highest - slots).max(0);
        let with = [("counter_name", counter.into()), ("retired", retired.into())];
        self.change(connection, "fold", &with)?;
        self.change(connection, "delete_retired", &with)?;
        Ok(())
    }

    /// Adds amounts to many counters in the steps that the comments in queries.sql describe.
    pub fn add_many(&self, connection: &mut Conn, amounts: &str) {
        if !self.0.contains_key("add_many_slots") {
            self.exec(connection, "add_many", vec![amounts.into()]).expect("add_many");
            return;
        }
        let found: Vec<(i64, String, i64)> = self.rows(connection, "add_many_slots", vec![amounts.into()]);
        let (counters, amounts, unknown) = found.into_iter().next().expect("a row");
        assert_eq!(unknown, 0);
        let arguments = [("amounts", amounts.into()), ("counters", counters.into())];
        // INSERT .. ON DUPLICATE KEY UPDATE reports 2 rows for each row that it updates.
        assert_eq!(self.change(connection, "add_many", &arguments).expect("add_many"), 2 * counters as u64);
    }

    pub fn rows<R: FromRow>(&self, connection: &mut impl Queryable, name: &str, values: Vec<Value>) -> Vec<R> {
        connection.exec(&self.0[name].sql, Params::Positional(values)).expect(name)
    }

    pub fn exec(&self, connection: &mut impl Queryable, name: &str, values: Vec<Value>) -> mysql::Result<()> {
        connection.exec_drop(&self.0[name].sql, Params::Positional(values))
    }

    pub fn run(&self, connection: &mut impl Queryable, name: &str, values: &[i64]) -> mysql::Result<()> {
        self.exec(connection, name, values.iter().map(|&n| Value::from(n)).collect())
    }

    fn total(&self, connection: &mut impl Queryable, key: (i64, i64)) -> i64 {
        let total: Option<i64> = connection.exec_first(&self.0["get"].sql, key).expect("get");
        total.expect("a row, also for a record without slots")
    }

    /// Compacts a record in the steps that the comment in queries.sql describes.
    fn compact(&self, connection: &mut Conn, key: (i64, i64)) -> mysql::Result<()> {
        self.run(connection, "first_slot", &[key.0, key.1])?;
        for name in ["compact", "compact_rest"] {
            self.run(connection, name, &[key.0, key.1].repeat(3))?;
        }
        Ok(())
    }
}

fn variants() -> Vec<Package> {
    [Pick::Connection, Pick::Random].map(|pick| keyed(|options| options.pick = pick)).into()
}

/// The parameter `random`.
fn random() -> f64 {
    rand::random_range(0.0..1.0)
}

/// A schema with the table and no routines.
fn with_table<'a>(server: &'a Server, package: &Package) -> Schema<'a> {
    let schema = server.schema();
    schema.run(&file(package, "create_tables.sql"));
    schema
}

fn every_query_has_the_parameters_of_its_comment(server: &Server) {
    let keys = ["record_type INT, record_id BIGINT", "record_type TINYINT, `the url` VARCHAR(255), record_id BINARY(2)"];
    for (key, pick) in keys.into_iter().zip([Pick::Connection, Pick::Random]) {
        check_parameters(server, &keyed(|options| (options.key, options.pick) = (key.parse().expect("a key"), pick)));
    }
    check_parameters(server, &of_column("parents.n", "id VARCHAR(200)", |_| {}));
    named_variants().iter().for_each(|(_, package)| check_parameters(server, package));
}

fn check_parameters(server: &Server, package: &Package) {
    let schema = with_table(server, package);
    schema.run("CREATE TABLE parents (id VARCHAR(200) COLLATE utf8mb4_general_ci PRIMARY KEY, n BIGINT)");
    executes_all(&mut schema.connect(), package);
}

/// Executes all statements of queries.sql, each in a transaction of its own that is rolled back.
pub fn executes_all(connection: &mut Conn, package: &Package) {
    for (name, query) in Queries::of(package).0 {
        let mut transaction = connection.start_transaction(TxOpts::default()).expect("a transaction");
        let statement = transaction.prep(&query.sql).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(usize::from(statement.num_params()), query.parameters.len(), "{name}");
        let values = vec![Value::from("12"); statement.num_params().into()];
        transaction.exec::<Row, _, _>(&statement, Params::Positional(values)).expect(&name);
        transaction.rollback().expect("a rollback");
    }
}

fn increments_by_query_are_exact(server: &Server) {
    for package in variants() {
        let queries = Queries::of(&package);
        let schema = server.schema();
        schema.install(&package);
        let mut connection = schema.connect();
        assert_eq!(queries.total(&mut connection, (123, 456)), 0, "a record without slots");
        for _ in 0..11 {
            // Each increment in its own connection, so that they use several slots.
            queries.run(&mut schema.connect(), "increment", &[123, 456]).expect("increment");
        }
        let sum = "SELECT CAST(SUM(count) AS SIGNED) FROM slotted_counters WHERE (record_type = 123 AND record_id = 456)";
        assert_eq!(schema.first::<i64>(sum), 11);
        assert_eq!(queries.total(&mut connection, (123, 456)), 11);
        // The routines and the queries use the same rows.
        assert_eq!(schema.first::<i64>("SELECT slotted_counter_get(123, 456)"), 11);
        schema.run("CALL slotted_counter_increment(123, 456)");
        assert_eq!(queries.total(&mut connection, (123, 456)), 12);
        let (slots, least, most): (u64, i64, i64) =
            schema.first("SELECT COUNT(*), MIN(slot), MAX(slot) FROM slotted_counters");
        assert!(slots > 1 && least >= 0 && most < 521, "{slots} slots from {least} to {most}");
    }
}

fn named_counters_by_query_need_only_the_table(server: &Server) {
    for (what, package) in named_variants() {
        let queries = Queries::of(&package);
        let schema = with_table(server, &package);
        let mut connection = schema.connect();
        let with = |value: i64| {
            let name = ("counter_name", Value::from("downloads"));
            let numbers = ["value", "amount", "restart"].map(|name| (name, Value::from(value)));
            let others = [("description", Value::NULL), ("slots", 20.into()), ("random", random().into())];
            [name].into_iter().chain(numbers).chain(others).collect::<Vec<_>>()
        };
        assert_eq!(queries.number(&mut connection, "get", "downloads"), None, "{what}: no counter");
        assert!(!queries.count(&mut connection, "downloads", 20).expect("increment"), "{what}: no counter");

        assert_eq!(queries.change(&mut connection, "setup", &with(5)).expect("setup"), 20, "{what}");
        assert_eq!(error_of(queries.change(&mut connection, "setup", &with(6))).0, 1062, "{what}");
        let slots = queries.slots(&mut connection, "downloads").expect("the counter exists");
        for _ in 0..11 {
            // Each increment in its own connection, so that they use several slots.
            assert!(queries.count(&mut schema.connect(), "Downloads", slots).expect("increment"), "{what}");
        }
        assert_eq!(queries.change(&mut connection, "add", &with(-7)).expect("add"), 1, "{what}");
        assert_eq!(queries.number(&mut connection, "get", "downloads"), Some(9), "{what}");
        let changed: i64 = schema.first("SELECT COUNT(*) FROM counters WHERE counter <> 0");
        assert!(changed > 2, "{what}: {changed} slots");
        let totals: Vec<Row> = connection.query(&queries.0["totals"].sql).expect("totals");
        let (name, total): (String, i64) =
            (totals[0].get("counter_name").expect("a name"), totals[0].get("total").expect("a total"));
        assert_eq!((name.as_str(), total, totals.len()), ("downloads", 9, 1), "{what}");

        queries.change(&mut connection, "reset", &with(1000)).expect("reset");
        assert_eq!(queries.number(&mut connection, "get", "downloads"), Some(1000), "{what}");
        assert_eq!(queries.change(&mut connection, "delete", &with(0)).expect("delete"), 20, "{what}");
        assert_eq!(queries.number(&mut connection, "get", "downloads"), None, "{what}");

        // The routines and the queries use the same rows.
        schema.run(&file(&package, "create_procedures.sql"));
        queries.change(&mut connection, "setup", &with(5)).expect("setup");
        schema.run("CALL counter_increment('downloads')");
        assert!(queries.count(&mut connection, "downloads", slots).expect("increment"), "{what}");
        assert_eq!(schema.first::<i64>("SELECT counter_get('downloads')"), 7, "{what}");
        if package.options.per_counter() {
            queries.resize(&mut connection, "downloads", 3, 0).expect("a resize");
            assert!(queries.count(&mut connection, "downloads", slots).expect("increment"), "{what}: earlier slots");
            let state: (i64, i64, i64) = schema.first("SELECT slots, total, resize_incomplete FROM counter_totals");
            assert_eq!(state, (3, 8, 0), "{what}");
            queries.resize(&mut connection, "downloads", 30, 0).expect("a resize");
            let state: (i64, i64, i64) = schema.first("SELECT slots, total, resize_incomplete FROM counter_totals");
            assert_eq!(state, (30, 8, 0), "{what}");
        }
    }
}

fn totals_are_exact_during_resizes_by_query(server: &Server) {
    const WRITERS: usize = 16;
    const CALLS: usize = 300;
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        let package = package(|_| {});
        let queries = &Queries::of(&package);
        let schema = server.schema();
        schema.install(&package);
        schema.run("CALL counter_setup('hot', NULL, 12, NULL)");
        let (done, counted, resizes) = (AtomicBool::new(false), AtomicI64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut connection = schema.isolated(isolation);
                for slots in [5, 12, 1, 7].into_iter().cycle() {
                    if done.load(SeqCst) {
                        break;
                    }
                    let mut retired = 0;
                    while let Err(error) = queries.resize(&mut connection, "hot", slots, retired) {
                        repeatable(error);
                        retired = 10_000;
                    }
                    let now = schema.first::<i64>("SELECT slots FROM counter_totals");
                    assert_eq!(now, slots, "{isolation}: after a resize without an error");
                    resizes.fetch_add(1, SeqCst);
                }
            });
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| {
                    let (schema, counted) = (&schema, &counted);
                    scope.spawn(move || {
                        let mut connection = schema.isolated(isolation);
                        for _ in calls(CALLS) {
                            loop {
                                match queries.count(&mut connection, "hot", 12) {
                                    Ok(exists) => break assert!(exists, "slot 1 always exists"),
                                    Err(error) => drop(repeatable(error)),
                                }
                            }
                            counted.fetch_add(1, SeqCst);
                        }
                    })
                })
                .collect();
            let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            done.store(true, SeqCst);
            written.into_iter().for_each(|result| result.expect("a writer"));
        });
        let total = queries.number(&mut schema.connect(), "get", "hot");
        assert_eq!(total, Some(counted.into_inner()), "{isolation}");
        let resizes = resizes.into_inner();
        eprintln!("{}, {isolation}: {total:?} increments by query, {resizes} resizes", server.version);
        assert!(resizes > 0);
    }
}

fn queries_need_only_the_table(server: &Server) {
    for package in variants() {
        let queries = Queries::of(&package);
        let schema = with_table(server, &package);
        let mut connection = schema.connect();
        queries.run(&mut connection, "add", &[1, 1, -5, -5]).expect("add");
        for _ in 0..3 {
            queries.run(&mut schema.connect(), "increment", &[1, 1]).expect("increment");
        }
        queries.run(&mut connection, "increment", &[1, 2]).expect("increment");
        assert_eq!(queries.total(&mut connection, (1, 1)), -2);

        queries.compact(&mut connection, (1, 1)).expect("compact");
        let rows: Vec<(i64, i64)> =
            connection.query("SELECT slot, count FROM slotted_counters WHERE record_id = 1").expect("rows");
        assert_eq!(rows, [(0, -2)]);

        queries.run(&mut schema.connect(), "increment", &[1, 1]).expect("increment");
        queries.run(&mut connection, "first_slot", &[1, 1]).expect("first_slot");
        queries.run(&mut connection, "reset", &[1, 1, 1000, 1, 1, 1, 1]).expect("reset");
        assert_eq!(queries.total(&mut connection, (1, 1)), 1000);

        let totals: Vec<(i64, i64, i64, i64)> = connection.query(&queries.0["totals"].sql).expect("totals");
        assert_eq!(totals.iter().map(|(_, record, _, total)| (*record, *total)).collect::<Vec<_>>(), [(1, 1000), (2, 1)]);
        queries.run(&mut connection, "delete", &[1; 6]).expect("delete");
        assert_eq!(queries.total(&mut connection, (1, 1)), 0);
        assert_eq!(queries.total(&mut connection, (1, 2)), 1);

        let result = connection.exec_drop(&queries.0["increment"].sql, (Value::NULL, 1));
        assert_eq!(error_of(result).0, 1048);
        let result = connection.exec_drop(&queries.0["increment"].sql, (i64::MAX, 1));
        assert_eq!(error_of(result).0, 1264);
    }
}

fn queries_work_after_a_select_in_the_same_transaction(server: &Server) {
    // With one slot, the other connections and the transaction change the same row.
    let package = keyed(|options| options.slots = Slots::Fixed(1));
    let queries = Queries::of(&package);
    for (name, values, total) in [
        ("increment", vec![1, 1], 2),
        ("add", vec![1, 1, 7, 7], 8),
        ("first_slot", vec![1, 1], 1),
        ("reset", vec![1, 1, 7, 1, 1, 1, 1], 7),
        ("compact", vec![1; 6], 1),
        ("compact_rest", vec![1; 6], 1),
        ("delete", vec![1; 6], 0),
    ] {
        let schema = with_table(server, &package);
        schema.run("INSERT INTO slotted_counters VALUES (1, 1, 0, 0), (1, 1, 5, 0)");
        let mut connection = schema.isolated("REPEATABLE READ");
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection.query_drop("SELECT * FROM slotted_counters").expect("a read");
        schema.run("UPDATE slotted_counters SET count = 1; UPDATE slotted_counters SET count = 0 WHERE slot = 5");
        queries.run(&mut connection, name, &values).unwrap_or_else(|error| panic!("{name}: {error}"));
        connection.query_drop("COMMIT").expect("a commit");
        assert_eq!(queries.total(&mut connection, (1, 1)), total, "{name}");
    }
}

fn totals_are_exact_during_compactions_by_query(server: &Server) {
    const WRITERS: i64 = 16;
    const CALLS: usize = 300;
    const RECORDS: i64 = 3;
    for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
        let package = keyed(|options| options.slots = Slots::Fixed(8));
        let queries = &Queries::of(&package);
        let schema = with_table(server, &package);
        let (done, counted, compactions) = (AtomicBool::new(false), AtomicI64::new(0), AtomicU64::new(0));
        let repeat = |call: &mut dyn FnMut() -> mysql::Result<()>| {
            while let Err(error) = call() {
                repeatable(error);
            }
        };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut connection = schema.isolated(isolation);
                    while !done.load(SeqCst) {
                        for record in 0..RECORDS {
                            repeat(&mut || queries.compact(&mut connection, (1, record)));
                            compactions.fetch_add(1, SeqCst);
                        }
                    }
                });
            }
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (schema, counted) = (&schema, &counted);
                    scope.spawn(move || {
                        let mut connection = schema.isolated(isolation);
                        for call in calls(CALLS) {
                            let key = [1, (writer + call as i64) % RECORDS];
                            repeat(&mut || queries.run(&mut connection, "increment", &key));
                            counted.fetch_add(1, SeqCst);
                        }
                    })
                })
                .collect();
            let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            done.store(true, SeqCst);
            written.into_iter().for_each(|result| result.expect("a writer"));
        });
        let mut connection = schema.connect();
        let total: i64 = (0..RECORDS).map(|record| queries.total(&mut connection, (1, record))).sum();
        assert_eq!(total, counted.into_inner(), "{isolation}");
        let compactions = compactions.into_inner();
        eprintln!("{}, {isolation}: {total} increments by query, {compactions} compactions", server.version);
        assert!(compactions > 0);
    }
}

fn an_increment_by_query_locks_one_record_and_no_gap(server: &Server) {
    for pick in [Pick::Connection, Pick::Random] {
        let package = keyed(|options| (options.pick, options.slots) = (pick, Slots::Fixed(1)));
        let queries = Queries::of(&package);
        let schema = with_table(server, &package);
        schema.run("INSERT INTO slotted_counters VALUES (1, 1, 0, 0), (1, 2, 0, 0)");
        let mut connection = schema.isolated("REPEATABLE READ");
        connection.query_drop("START TRANSACTION").expect("a transaction");
        assert_eq!(queries.total(&mut connection, (1, 1)), 0);
        assert_eq!(schema.data_locks(), []);
        queries.run(&mut connection, "increment", &[1, 1]).expect("increment");
        let locks = schema.data_locks();
        let locks: Vec<_> = locks.iter().map(|(kind, mode)| (kind.as_str(), mode.as_str())).collect();
        assert_eq!(locks, [("RECORD", "X,REC_NOT_GAP"), ("TABLE", "IX")]);
    }
}
