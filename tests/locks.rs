//! The locks of a call, and the deadlocks that they prevent.

use std::sync::Barrier;
use std::thread;

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use slotted::package::{Pick, Slots};

use crate::support::{Module, Schema, Server, error_of, package, variants};

pub fn promises(mut module: Module<'_>) {
    let mysql = |name: &str| name.starts_with("mysql");
    module
        .on(mysql, an_increment_locks_one_record_and_no_gap)
        .on(mysql, reading_locks_nothing)
        .on_servers(transactions_with_three_increments_never_deadlock)
        .on_servers(a_change_after_a_select_is_not_rejected)
        .on_servers(concurrent_setups_of_one_name_create_one_counter)
        .alone()
        .on_servers(an_increment_locks_one_row);
}

fn begin(schema: &Schema<'_>) -> Conn {
    let mut connection = schema.isolated("REPEATABLE READ");
    connection.query_drop("START TRANSACTION").expect("a transaction");
    connection
}

fn an_increment_locks_one_record_and_no_gap(server: &Server) {
    for (what, package) in variants() {
        let schema = server.schema();
        schema.install(&package);
        schema.run("CALL counter_setup('a', NULL, NULL, 0); CALL counter_setup('b', NULL, NULL, 0)");
        for call in ["CALL counter_increment('a')", "CALL counter_add('a', -3)"] {
            let mut connection = begin(&schema);
            connection.query_drop(call).expect(call);
            let locks = schema.data_locks();
            let locks: Vec<_> = locks.iter().map(|(kind, mode)| (kind.as_str(), mode.as_str())).collect();
            assert_eq!(locks, [("RECORD", "X,REC_NOT_GAP"), ("TABLE", "IX")], "{what}: {call}");
            connection.query_drop("ROLLBACK").expect("a rollback");
        }
    }
}

fn reading_locks_nothing(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('a', NULL, 10, 7)");
    let mut connection = begin(&schema);
    for read in ["SELECT counter_get('a')", "SELECT total FROM counter_totals", "DO counter_get('a')"] {
        connection.query_drop(read).expect(read);
        assert_eq!(schema.data_locks(), [], "{read}");
    }
    connection.query_drop("CALL counter_add('a', 0)").expect("an add of 0");
    assert_eq!(schema.data_locks(), []);
}

/// The number of rows that a connection's transaction has locked, from INNODB_TRX.
fn rows_locked(schema: &Schema<'_>, connection: &Conn) -> Option<u64> {
    let id = connection.connection_id();
    let query = format!("SELECT trx_rows_locked FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = {id}");
    // MariaDB refreshes this table only if no session has read it for 0.1 s.
    thread::sleep(std::time::Duration::from_millis(150));
    schema.query(&query).into_iter().next()
}

fn an_increment_locks_one_row(server: &Server) {
    // Another test that reads INNODB_TRX would prevent its refresh on MariaDB.
    for (what, package) in variants() {
        let schema = server.schema();
        schema.install(&package);
        schema.run("CALL counter_setup('a', NULL, NULL, 0)");
        let mut connection = begin(&schema);
        connection.query_drop("SELECT counter_get('a')").expect("a read");
        assert!(matches!(rows_locked(&schema, &connection), None | Some(0)), "{what}");
        connection.query_drop("CALL counter_increment('a')").expect("an increment");
        assert_eq!(rows_locked(&schema, &connection), Some(1), "{what}");
    }
}

fn transactions_with_three_increments_never_deadlock(server: &Server) {
    const CONNECTIONS: i64 = 32;
    const TRANSACTIONS: i64 = 40;
    for slots in [Slots::PerCounter, Slots::Fixed(20)] {
        let schema = server.schema();
        schema.install(&package(|options| (options.slots, options.pick) = (slots, Pick::Connection)));
        // With fewer slots than connections, several connections use the same slot.
        schema.run("CALL counter_setup('a', NULL, 20, 0)");
        let barrier = Barrier::new(CONNECTIONS as usize);
        thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let mut connection = schema.connect();
                    barrier.wait();
                    for _ in 0..TRANSACTIONS {
                        connection.query_drop("START TRANSACTION").expect("a transaction");
                        for _ in 0..3 {
                            connection.query_drop("CALL counter_increment('a')").expect("no deadlock");
                        }
                        connection.query_drop("COMMIT").expect("a commit");
                    }
                });
            }
        });
        let total: i64 = schema.first("SELECT counter_get('a')");
        assert_eq!(total, CONNECTIONS * TRANSACTIONS * 3);
    }
}

fn a_change_after_a_select_is_not_rejected(server: &Server) {
    let package = package(|_| {});
    // With one slot, the other connections and the transaction change the same row.
    let cases = [
        ("CALL counter_increment('a')", Some((1, 4))),
        ("CALL counter_add('a', -1)", Some((1, 2))),
        ("CALL counter_reset('a', 50, FALSE)", Some((1, 50))),
        ("CALL counter_resize('a', 2)", Some((2, 3))),
        ("CALL counter_delete('a')", None),
    ];
    for (call, expected) in cases {
        let schema = server.schema();
        // Installed with the client, which could remove the executable comment that the promise depends on.
        let said = schema.client().pipe(&[], &slotted::render::setup(&package));
        assert!(said.success, "{said:?}");
        schema.run("CALL counter_setup('a', NULL, 1, 0)");
        let mut connection = begin(&schema);
        connection.query_drop("SELECT counter_get('a')").expect("a read");
        schema.run("CALL counter_increment('a'); CALL counter_increment('a'); CALL counter_increment('a')");
        connection.query_drop(call).unwrap_or_else(|error| panic!("{call}: {error}"));
        connection.query_drop("COMMIT").expect("a commit");
        let row: Option<(i64, i64)> =
            schema.connect().query_first("SELECT slots, total FROM counter_totals").expect("a read");
        assert_eq!(row, expected, "{call}");
    }
    // A shrink from two slots, both of which have changed since the snapshot.
    let schema = server.schema();
    schema.install(&package);
    schema.run("CALL counter_setup('a', NULL, 2, 0)");
    let mut connection = begin(&schema);
    connection.query_drop("SELECT counter_get('a')").expect("a read");
    for _ in 0..2 {
        schema.run("CALL counter_increment('a')");
    }
    schema.run("UPDATE counters SET counter = counter + 1");
    connection.query_drop("CALL counter_resize('a', 1)").expect("a resize");
    connection.query_drop("COMMIT").expect("a commit");
    assert_eq!(schema.first::<(i64, i64)>("SELECT slots, total FROM counter_totals"), (1, 4));

    // Without the exemption of the routines, the server rejects the change.
    let mut connection = begin(&schema);
    connection.query_drop("SELECT counter_get('a')").expect("a read");
    schema.run("CALL counter_increment('a')");
    let plain = connection.query_drop("UPDATE counters SET counter = counter + 1");
    if server.has_snapshot_isolation() {
        assert_eq!(error_of(plain).0, 1020);
    } else {
        plain.expect("an update");
    }
}

fn concurrent_setups_of_one_name_create_one_counter(server: &Server) {
    const SESSIONS: usize = 16;
    let schema = server.schema();
    schema.install(&package(|_| {}));
    for round in 0..10 {
        let barrier = Barrier::new(SESSIONS);
        let results: Vec<_> = thread::scope(|scope| {
            let setups: Vec<_> = (0..SESSIONS)
                .map(|_| {
                    scope.spawn(|| {
                        let mut connection = schema.connect();
                        barrier.wait();
                        connection.exec_drop("CALL counter_setup(?, NULL, 20, 3)", (format!("c{round}"),))
                    })
                })
                .collect();
            setups.into_iter().map(|setup| setup.join().expect("a session")).collect()
        });
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "round {round}");
        for result in results.into_iter().filter(Result::is_err) {
            let (number, message) = error_of(result);
            assert_eq!(
                (number, message),
                (30004, format!("counter_setup: counter 'c{round}' already exists"))
            );
        }
    }
    let counters: Vec<Row> = schema.connect().query("SELECT * FROM counter_totals WHERE total = 3").expect("rows");
    assert_eq!(counters.len(), 10);
}
