//! Monitoring: the queries of docs/monitoring.md with its account.

use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use slotted::package::committed;

use crate::rollup::of_column;
use crate::support::{Module, Network, Schema, Server, keyed, package, sql_statements};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(the_skew_omits_row_0_and_negative_slots)
        .on_servers(two_readings_show_only_what_was_counted_between_them)
        .private()
        .on_servers(the_account_runs_the_queries_and_they_wait_for_no_transaction)
        .on_servers(a_waiting_session_is_listed_with_its_slot_and_the_session_that_blocks);
}

const PAGE: &str = "docs/monitoring.md";
/// The time after which a test gives up.
const LONG: Duration = Duration::from_secs(60);

/// The statements of the SQL blocks in a section of the page.
fn statements(section: &str) -> Vec<String> {
    sql_statements(PAGE, section)
}

/// The statement of a section that contains `part`.
fn statement(section: &str, part: &str) -> String {
    let found = statements(section).into_iter().find(|statement| statement.contains(part));
    found.unwrap_or_else(|| panic!("no statement with {part} in {section}"))
}

/// The database of the page with its counters and its account, on a server of its own, because an account belongs to
/// all databases of a server.
struct Monitored {
    network: Network,
}

impl Monitored {
    fn start(server: &Server) -> Self {
        Self { network: Network::start(server, &[]) }
    }

    fn schema(&self) -> Schema<'_> {
        let schema = Schema::named(&self.network.server, "mydb", "");
        schema.install(&package(|_| {}));
        schema.install(&keyed(|_| {}));
        schema.run(
            "CALL counter_setup('downloads', NULL, 4, NULL);
             CALL counter_add('downloads', 42);
             CALL slotted_counter_add(123, 456, 7);
             CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0);",
        );
        schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
        let mut administrator = schema.connect();
        for statement in statements("The account") {
            administrator.query_drop(&statement).expect(&statement);
        }
        schema
    }

    /// A connection of the account.
    fn account(&self, schema: &Schema<'_>) -> Conn {
        let options = schema.options().user(Some("monitor")).pass(Some("secret"));
        let mut account = Conn::new(options).expect("the account of the page");
        account.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a time-out");
        account
    }
}

/// A transaction that has locked all slots.
fn locked(schema: &Schema<'_>) -> Conn {
    let mut connection = schema.connect();
    connection.query_drop("BEGIN").expect("a transaction");
    connection.query_drop("UPDATE counters SET counter = counter + 1").expect("locks");
    connection.query_drop("UPDATE slotted_counters SET count = count + 1").expect("locks");
    connection
}

fn the_account_runs_the_queries_and_they_wait_for_no_transaction(server: &Server) {
    let monitored = Monitored::start(server);
    let schema = monitored.schema();
    let mut transaction = locked(&schema);
    let mut account = monitored.account(&schema);
    let mut run = 0;
    for section in ["Totals", "Pending counts", "Skew", "Lock waits", "Calls over time"] {
        for statement in statements(section).iter().filter(|statement| !statement.contains("sys.")) {
            account.query_drop(statement).unwrap_or_else(|error| panic!("{error} in {statement}"));
            run += 1;
        }
    }
    assert!(run >= 15, "{run} statements");
    transaction.query_drop("ROLLBACK").expect("a rollback");
    // The account has no other privilege.
    let call = account.query_drop("CALL counter_increment('downloads')");
    assert!(call.is_err(), "{call:?}");
    let delete = account.query_drop("DELETE FROM counters");
    assert!(delete.is_err(), "{delete:?}");
}

/// Repeats `query` until it returns something. The servers refresh the lock waits only every 0.1 s.
fn found<T>(what: &str, mut query: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = query() {
            return found;
        }
        assert!(begin.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(200));
    }
}

fn a_waiting_session_is_listed_with_its_slot_and_the_session_that_blocks(server: &Server) {
    let monitored = Monitored::start(server);
    let schema = monitored.schema();
    let mut transaction = locked(&schema);
    let (mut account, mut waiting) = (monitored.account(&schema), schema.connect());
    let slot = 1 + waiting.connection_id() % 4;
    let sessions = (waiting.connection_id(), transaction.connection_id());
    thread::scope(|scope| {
        scope.spawn(|| waiting.query_drop("CALL counter_increment('downloads')").expect("an increment"));
        let who = statement("Lock waits", "INNODB_TRX");
        let row: Row = found("no session waits", || account.query_first(&who).expect(&who));
        assert_eq!(row.get::<u32, _>("connection"), Some(sessions.0));
        assert_eq!(row.get::<String, _>(2), Some(format!("'downloads', {slot}")));
        let blocks = statement("Lock waits", "sys.");
        let row: Row = found("no session blocks", || schema.connect().query_first(&blocks).expect(&blocks));
        assert_eq!((row.get("blocking_pid"), row.get("blocked")), (Some(sessions.1), Some(1)));
        transaction.query_drop("ROLLBACK").expect("a rollback");
    });
}

fn the_skew_omits_row_0_and_negative_slots(server: &Server) {
    let schema = server.schema();
    for package in committed().iter().filter(|package| package.folder() != "counters-fixed") {
        schema.install(package);
    }
    schema.run(
        "INSERT INTO counters (counter_name, counter_id, start_date, counter)
         VALUES ('a', 0, NOW(), 0), ('a', 1, NOW(), 6), ('a', 2, NOW(), 1), ('a', 3, NOW(), 1), ('a', 4, NOW(), 0),
                ('a', -5, NOW(), 100);
         INSERT INTO slotted_counters (record_type, record_id, slot, count)
         VALUES (123, 1, 0, 6), (123, 1, 3, 2), (123, 1, 5, 0), (123, 1, 500, 0), (124, 1, 0, 7);",
    );
    let named: Vec<(String, u32, u32, f64)> = schema.connect().query(statement("Skew", "FROM counters")).expect("the skew");
    assert_eq!(named, [("a".to_owned(), 4, 3, 3.0)]);
    let records: Vec<(u32, u32, u32, u32, f64)> =
        schema.connect().query(statement("Skew", "FROM slotted_counters")).expect("the skew");
    assert_eq!(records, [(123, 1, 4, 2, 3.0)]);
}

fn two_readings_show_only_what_was_counted_between_them(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('downloads', NULL, 4, 1000000);");
    let mut connection = schema.connect();
    for statement in statements("Skew").iter().skip_while(|statement| !statement.starts_with("SET SESSION")) {
        let rows: Vec<Row> = connection.query(statement).expect(statement);
        if statement.starts_with("CREATE") {
            schema.run("UPDATE counters SET counter = counter + 10 * counter_id WHERE counter_id IN (2, 3);");
        }
        if let Some(row) = rows.first() {
            assert_eq!((row.get("slots"), row.get("used_slots"), row.get("counted")), (Some(4), Some(2), Some(50)));
            assert_eq!(row.get("skew"), Some(2.4));
            return;
        }
    }
    panic!("no row");
}
