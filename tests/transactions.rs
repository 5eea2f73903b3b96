//! Calls are part of the caller's transaction.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use mysql::Conn;
use mysql::prelude::Queryable;

use slotted::package::Slots;

use crate::support::{Module, Schema, Server, calls, error_of, keyed, package, variants};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_rollback_reverts_every_call)
        .on_servers(no_call_ends_the_transaction)
        .on_servers(a_rollback_to_a_savepoint_reverts_the_calls_after_it)
        .on_servers(totals_are_exact_at_serializable);
}

const CALLS: [&str; 7] = [
    "CALL counter_setup('new', NULL, 3, 7)",
    "CALL counter_increment('a')",
    "CALL counter_add('a', 5)",
    "CALL counter_reset('a', 99, TRUE)",
    "CALL counter_resize('a', 9)",
    "CALL counter_resize('a', 1)",
    "CALL counter_delete('a')",
];

fn ready(schema: &Schema<'_>) -> Conn {
    schema.install(&package(|_| {}));
    schema.run(
        "CALL counter_setup('a', NULL, 3, 10); CALL counter_increment('a'); \
         CREATE TABLE other (id INT PRIMARY KEY) ENGINE = InnoDB",
    );
    schema.connect()
}

fn a_rollback_reverts_every_call(server: &Server) {
    let schema = server.schema();
    let mut connection = ready(&schema);
    let table = package(|_| {}).options.table;
    let before = schema.rows(&table);
    for call in CALLS {
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection.query_drop("INSERT INTO other VALUES (1)").expect("a row");
        connection.query_drop(call).expect(call);
        // Other connections read the old rows before the commit.
        assert_eq!(schema.rows(&table), before, "{call}");
        connection.query_drop("ROLLBACK").expect("a rollback");
        assert_eq!(schema.rows(&table), before, "{call}");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM other"), 0, "{call}");
    }
    // A call that fails keeps the earlier changes of the transaction.
    for (_, package) in variants() {
        let schema = server.schema();
        schema.install(&package);
        schema.run("CALL counter_setup('a', NULL, NULL, 10)");
        let mut connection = schema.connect();
        connection.query_drop("START TRANSACTION").expect("a transaction");
        connection.query_drop("CALL counter_increment('a')").expect("an increment");
        assert_eq!(error_of(connection.query_drop("CALL counter_increment('unknown')")).0, 30003);
        connection.query_drop("COMMIT").expect("a commit");
        assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 11);
    }
}

fn no_call_ends_the_transaction(server: &Server) {
    for call in CALLS.into_iter().chain(["SELECT counter_get('a')", "CALL counter_increment('unknown')"]) {
        let schema = server.schema();
        let mut connection = ready(&schema);
        connection.query_drop("SET autocommit = 0").expect("autocommit");
        connection.query_drop("INSERT INTO other VALUES (1)").expect("a row");
        let _ = connection.query::<mysql::Row, _>(call);
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM other"), 0, "{call}: not committed");
        connection.query_drop("INSERT INTO other VALUES (2)").expect("a row");
        connection.query_drop("COMMIT").expect("a commit");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM other"), 2, "{call}");
    }
}

fn a_rollback_to_a_savepoint_reverts_the_calls_after_it(server: &Server) {
    let schema = server.schema();
    let mut connection = ready(&schema);
    for statement in [
        "START TRANSACTION",
        "CALL counter_increment('a')",
        "SAVEPOINT here",
        "CALL counter_add('a', 100)",
        "CALL counter_increment('a')",
        "ROLLBACK TO SAVEPOINT here",
        "CALL counter_increment('a')",
        "COMMIT",
    ] {
        connection.query_drop(statement).expect(statement);
    }
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 13);
}

/// Runs transactions of two increments at SERIALIZABLE in 16 sessions. Returns the number of transactions and the errors.
fn at_serializable(schema: &Schema<'_>, call: &str) -> (u64, Vec<u16>) {
    let committed = AtomicU64::new(0);
    let errors = thread::scope(|scope| {
        let sessions: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = schema.isolated("SERIALIZABLE");
                    let mut errors = Vec::new();
                    for _ in calls(60) {
                        let steps = ["START TRANSACTION", call, call, "COMMIT"];
                        match steps.iter().try_for_each(|step| connection.query_drop(step)) {
                            Ok(()) => _ = committed.fetch_add(1, SeqCst),
                            Err(error) => {
                                errors.push(error_of::<()>(Err(error)).0);
                                connection.query_drop("ROLLBACK").expect("a rollback");
                            }
                        }
                    }
                    errors
                })
            })
            .collect();
        sessions.into_iter().flat_map(|session| session.join().expect("a session")).collect()
    });
    (committed.into_inner(), errors)
}

fn totals_are_exact_at_serializable(server: &Server) {
    // A SELECT in a transaction locks at this level. Only the routines with slots per counter have one.
    let fixed = package(|options| options.slots = Slots::Fixed(4));
    let records = keyed(|_| {});
    let named = ["CALL counter_setup('a', NULL, 4, 0)", "CALL counter_increment('a')", "SELECT counter_get('a')"];
    let of_record = ["DO 0", "CALL slotted_counter_increment(1, 2)", "SELECT slotted_counter_get(1, 2)"];
    for (package, [setup, call, get], locks) in
        [(&package(|_| {}), named, true), (&fixed, named, false), (&records, of_record, false)]
    {
        let schema = server.schema();
        schema.install(package);
        schema.run(setup);
        let (committed, errors) = at_serializable(&schema, call);
        assert_eq!(schema.first::<u64>(get), 2 * committed);
        let documented = if locks { &[1213, 1205, 1020][..] } else { &[] };
        assert!(errors.iter().all(|number| documented.contains(number)), "{call}: {errors:?}");
        eprintln!("{}, SERIALIZABLE: {committed} transactions, {} errors, {}", server.version, errors.len(), package.options.slots);
    }
}
