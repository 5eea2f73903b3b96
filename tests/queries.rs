//! queries.sql: every operation as a plain statement, for applications that do not call routines.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::thread;

use mysql::prelude::Queryable;
use mysql::{Conn, Params, Row, TxOpts, Value};
use slotted::package::{Package, Pick, Slots};
use slotted::script::{self, Query};

use crate::support::{Module, Schema, Server, calls, error_of, file, keyed, repeatable};

pub fn promises(mut module: Module<'_>) {
    let mysql = |name: &str| name.starts_with("mysql");
    module
        .on_servers(every_query_has_the_parameters_of_its_comment)
        .on_servers(increments_by_query_are_exact)
        .on_servers(queries_need_only_the_table)
        .on_servers(queries_work_after_a_select_in_the_same_transaction)
        .on_servers(totals_are_exact_during_compactions_by_query)
        .on(mysql, an_increment_by_query_locks_one_record_and_no_gap);
}

/// The statements of a package by name.
struct Queries(BTreeMap<String, Query>);

impl Queries {
    fn of(package: &Package) -> Self {
        let text = file(package, "queries.sql");
        let queries = script::queries(&text);
        assert_eq!(queries.len(), text.matches("-- name: ").count(), "each name has a statement");
        Self(queries.into_iter().map(|query| (query.name.clone(), query)).collect())
    }

    fn run(&self, connection: &mut impl Queryable, name: &str, values: &[i64]) -> mysql::Result<()> {
        connection.exec_drop(&self.0[name].sql, Params::Positional(values.iter().map(|&n| Value::from(n)).collect()))
    }

    fn total(&self, connection: &mut impl Queryable, key: (i64, i64)) -> i64 {
        let total: Option<i64> = connection.exec_first(&self.0["get"].sql, key).expect("get");
        total.expect("a row, also for a record without slots")
    }

    /// Compacts a record in the steps that the comment in queries.sql describes.
    fn compact(&self, connection: &mut Conn, key: (i64, i64)) -> mysql::Result<()> {
        let slots: Vec<(i64, i64)> = connection.exec(&self.0["compact_slots"].sql, key)?;
        for (slot, count) in slots {
            let mut transaction = connection.start_transaction(TxOpts::default())?;
            self.run(&mut transaction, "add_to_slot", &[key.0, key.1, 0, count, count])?;
            self.run(&mut transaction, "add_to_slot", &[key.0, key.1, slot, -count, -count])?;
            transaction.commit()?;
        }
        self.run(connection, "compact_rest", &[key.0, key.1])
    }
}

fn variants() -> Vec<Package> {
    [Pick::Connection, Pick::Random].map(|pick| keyed(|options| options.pick = pick)).into()
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
        let package = keyed(|options| {
            options.key = key.parse().expect("a key");
            options.pick = pick;
            let same = if options.key.0.len() == 2 { "record_type=1" } else { "record_type=1,record_id=0x0001" };
            options.rollups = vec![format!("{same}:parents.id:n").parse().expect("a roll-up")];
        });
        let schema = with_table(server, &package);
        schema.run("CREATE TABLE parents (id VARCHAR(200) COLLATE utf8mb4_general_ci PRIMARY KEY, n BIGINT)");
        let mut connection = schema.connect();
        for (name, query) in Queries::of(&package).0 {
            let statement = connection.prep(&query.sql).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(usize::from(statement.num_params()), query.parameters.len(), "{name}");
            let values = vec![Value::from("12"); statement.num_params().into()];
            connection.exec::<Row, _, _>(&statement, Params::Positional(values)).expect(&name);
        }
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
        assert!(slots > 1 && least >= 0 && most < 100, "{slots} slots from {least} to {most}");
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
        let mut transaction = connection.start_transaction(TxOpts::default()).expect("a transaction");
        queries.run(&mut transaction, "reset_first", &[1, 1, 1000, 1000]).expect("reset_first");
        queries.run(&mut transaction, "reset_rest", &[1, 1]).expect("reset_rest");
        transaction.commit().expect("a commit");
        assert_eq!(queries.total(&mut connection, (1, 1)), 1000);

        let totals: Vec<(i64, i64, i64, i64)> = connection.query(&queries.0["totals"].sql).expect("totals");
        assert_eq!(totals.iter().map(|(_, record, _, total)| (*record, *total)).collect::<Vec<_>>(), [(1, 1000), (2, 1)]);
        queries.run(&mut connection, "delete", &[1, 1]).expect("delete");
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
        ("add_to_slot", vec![1, 1, 0, 7, 7], 8),
        ("reset_first", vec![1, 1, 7, 7], 7),
        ("reset_rest", vec![1, 1], 1),
        ("compact_rest", vec![1, 1], 1),
        ("delete", vec![1, 1], 0),
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
