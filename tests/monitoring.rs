//! Monitoring: the queries of docs/monitoring.md with its account.

use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use crate::rollup::of_column;
use crate::support::{Module, Network, Schema, Server, keyed, package, sql_statements};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(the_skew_is_that_of_the_counts_between_two_readings)
        .private()
        .on_servers(the_account_runs_the_queries_and_they_wait_for_no_transaction);
}

const PAGE: &str = "docs/monitoring.md";

/// The statement of a section that contains `part`.
fn statement(section: &str, part: &str) -> String {
    let found = sql_statements(PAGE, section).into_iter().find(|statement| statement.contains(part));
    found.unwrap_or_else(|| panic!("no statement with {part} in {section}"))
}

/// The first row of a query, as soon as there is one. The servers refresh the lock waits only every 0.1 s.
fn found(connection: &mut Conn, query: &str) -> Row {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        if let Some(found) = connection.query_first(query).expect(query) {
            return found;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("no row: {query}");
}

/// On a server of its own, because an account and the lock waits belong to all databases of a server.
fn the_account_runs_the_queries_and_they_wait_for_no_transaction(server: &Server) {
    let network = Network::start(server, &[]);
    let schema = Schema::named(&network.server, "mydb", "");
    schema.install(&package(|_| {}));
    schema.install(&keyed(|_| {}));
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)");
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    schema.run("CALL counter_setup('downloads', NULL, 4, NULL); CALL counter_add('downloads', 42); CALL slotted_counter_add(123, 456, 7)");
    let mut administrator = schema.connect();
    sql_statements(PAGE, "The account")
        .iter()
        .for_each(|statement| administrator.query_drop(statement).expect(statement));
    let mut account =
        Conn::new(schema.options().user(Some("monitor")).pass(Some("secret"))).expect("the account of the page");
    account.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a time-out");
    // A transaction that has locked all slots.
    let mut transaction = schema.connect();
    for statement in
        ["BEGIN", "UPDATE counters SET counter = counter + 1", "UPDATE slotted_counters SET count = count + 1"]
    {
        transaction.query_drop(statement).expect("locks");
    }
    let sections = ["Totals", "Pending counts", "Skew", "Lock waits", "Calls over time"]
        .map(|section| sql_statements(PAGE, section));
    let queries: Vec<_> = sections.concat().into_iter().filter(|statement| !statement.contains("sys.")).collect();
    for query in &queries {
        account.query_drop(query).unwrap_or_else(|error| panic!("{error} in {query}"));
    }
    assert!(queries.len() >= 15, "{queries:?}");
    // The account has no other privilege.
    for statement in ["CALL counter_increment('downloads')", "DELETE FROM counters"] {
        assert!(account.query_drop(statement).is_err(), "{statement}");
    }
    // A session that waits is listed with its slot and with the session that blocks it.
    let mut waiting = schema.connect();
    let slot = 1 + waiting.connection_id() % 4;
    let sessions = (waiting.connection_id(), transaction.connection_id());
    thread::scope(|scope| {
        scope.spawn(|| waiting.query_drop("CALL counter_increment('downloads')").expect("an increment"));
        let row = found(&mut account, &statement("Lock waits", "INNODB_TRX"));
        assert_eq!((row.get("connection"), row.get(2)), (Some(sessions.0), Some(format!("'downloads', {slot}"))));
        let row = found(&mut schema.connect(), &statement("Lock waits", "sys."));
        assert_eq!((row.get("blocking_pid"), row.get("blocked")), (Some(sessions.1), Some(1)));
        transaction.query_drop("ROLLBACK").expect("a rollback");
    });
}

fn the_skew_is_that_of_the_counts_between_two_readings(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|_| {}));
    schema.run(
        "INSERT INTO counters (counter_name, counter_id, start_date, counter)
         VALUES ('a', 1, NOW(), 6), ('a', 2, NOW(), 1), ('a', 3, NOW(), 1), ('a', 4, NOW(), 0), ('a', -5, NOW(), 100);
         INSERT INTO slotted_counters (record_type, record_id, slot, count)
         VALUES (123, 1, 0, 6), (123, 1, 3, 2), (123, 1, 5, 0), (123, 1, 500, 0), (124, 1, 0, 7)",
    );
    let mut connection = schema.connect();
    let named: Vec<(String, u32, u32, f64)> = connection.query(statement("Skew", "FROM counters")).expect("the skew");
    assert_eq!(named, [("a".to_owned(), 4, 3, 3.0)]);
    let records: Vec<(u32, u32, u32, u32, f64)> =
        connection.query(statement("Skew", "FROM slotted_counters")).expect("the skew");
    assert_eq!(records, [(123, 1, 4, 2, 3.0)]);
    let mut rows = Vec::new();
    for statement in sql_statements(PAGE, "Skew").iter().skip_while(|statement| !statement.starts_with("SET SESSION")) {
        let found: Vec<Row> = connection.query(statement).expect(statement);
        rows.extend(found);
        if statement.starts_with("CREATE") {
            schema.run("UPDATE counters SET counter = counter + 10 * counter_id WHERE counter_id IN (2, 3)");
        }
    }
    let row = rows.last().expect("a row");
    assert_eq!((row.get("slots"), row.get("used_slots"), row.get("counted")), (Some(4), Some(2), Some(50)));
    assert_eq!(row.get("skew"), Some(2.4));
}
