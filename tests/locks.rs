//! What a call locks, and that it leaves the transaction of its caller open.

use std::sync::Barrier;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(concurrent_setups_of_one_name_create_one_counter)
        .on_servers(no_call_ends_the_transaction)
        .alone()
        .on_servers(a_call_that_counts_locks_the_slot_of_its_connection_and_reading_locks_none);
}

/// What the transactions have locked. MariaDB has only the number of rows, which it refreshes if no session has read it for 0.1 s.
fn locked(schema: &Schema<'_>, connection: &Conn) -> Vec<String> {
    if schema.server.is_mysql() {
        return schema.data_locks().into_iter().map(|(kind, mode)| format!("{kind} {mode}")).collect();
    }
    thread::sleep(Duration::from_millis(150));
    let id = connection.connection_id();
    let rows = format!("SELECT trx_rows_locked FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = {id}");
    schema.query::<u64>(&rows).iter().filter(|rows| **rows > 0).map(|rows| format!("{rows} rows")).collect()
}

fn a_call_that_counts_locks_the_slot_of_its_connection_and_reading_locks_none(server: &Server) {
    let one: &[&str] = if server.is_mysql() { &["RECORD X,REC_NOT_GAP", "TABLE IX"] } else { &["1 rows"] };
    let more = [bounded(|_| {}), keyed(|options| options.subject.set_slots(1))];
    for package in variants().into_iter().chain(more) {
        let (schema, prefix, table) =
            (server.installed([&package]), package.options.prefix.name(), &package.options.table);
        let counters = package.options.is_named();
        let (key, neighbour) = if counters { ("'a'", "'b'") } else { ("1, 1", "1, 2") };
        for key in [key, neighbour] {
            if counters {
                schema.run(&format!("CALL {prefix}setup({key}, NULL, NULL, 0); UPDATE {table} SET counter = 9"));
            } else {
                schema.run(&format!("CALL {prefix}increment({key})"));
            }
        }
        let get = format!("SELECT {prefix}get({key})");
        let (slot, count) = if counters { ("counter_id - 1", "counter") } else { ("slot", "`count`") };
        let slots = package.options.setup_slots();
        let own = format!("SELECT COUNT(*) FROM {table} WHERE {slot} = MOD(CONNECTION_ID(), {slots}) AND {count} <> 9");
        let take = package.options.is_bounded().then(|| format!("CALL {prefix}take({key}, 9)"));
        let count = [format!("CALL {prefix}increment({key})"), format!("CALL {prefix}add({key}, -3)")];
        for call in count.into_iter().chain(take) {
            let mut connection = schema.isolated("REPEATABLE READ");
            run(&mut connection, "START TRANSACTION");
            let view = format!("SELECT * FROM {}", package.totals);
            run_all(&mut connection, &[&view, &get, &format!("{get} INTO @total")]).expect("reads");
            assert_eq!(locked(&schema, &connection), [""; 0], "{get}");
            connection.query_drop(&call).expect(&call);
            assert_eq!(locked(&schema, &connection), one, "{call}");
            let own: Option<u32> = connection.query_first(&own).expect(&own);
            assert!(own > Some(0), "{call}: another slot than that of the connection");
            connection.query_drop("ROLLBACK").expect("a rollback");
        }
    }
}

fn concurrent_setups_of_one_name_create_one_counter(server: &Server) {
    const SESSIONS: usize = 16;
    let schema = server.installed([&package(|_| {})]);
    for round in 0..10 {
        let (barrier, created) = (Barrier::new(SESSIONS), AtomicUsize::new(0));
        at_once(SESSIONS, || {
            let mut connection = schema.connect();
            barrier.wait();
            match connection.exec_drop("CALL counter_setup(?, NULL, 20, 3)", (format!("c{round}"),)) {
                Ok(()) => _ = created.fetch_add(1, SeqCst),
                rejected => assert_eq!(error_of(rejected).0, 30004, "round {round}"),
            }
        });
        assert_eq!(created.into_inner(), 1, "round {round}");
    }
    assert_eq!(schema.first::<(u64, i64)>("SELECT COUNT(*), MIN(total) FROM counter_totals"), (10, 3));
}

/// With autocommit = 0, other connections see neither the row before a call nor what the call has changed, and COMMIT commits both.
fn no_call_ends_the_transaction(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; CREATE TABLE other (id INT PRIMARY KEY) ENGINE = InnoDB");
    let column = of_column("articles.views", "id INT", |_| {});
    [package(|_| {}), bounded(|_| {}), keyed(|_| {}), column].iter().for_each(|package| schema.install(package));
    let first = "INSERT INTO articles VALUES (1, 7); CALL articles_views_add(1, 2); INSERT INTO slotted_counters VALUES (1, 2, 0, 1), (1, 2, 3, 4); \
                 CALL counter_setup('a', NULL, 3, 10); CALL bounded_counter_setup('a', NULL, 3, 10)";
    let empty = "DELETE FROM articles; DELETE FROM articles_views; DELETE FROM slotted_counters; DELETE FROM counters; DELETE FROM bounded_counters";
    let calls = "counter_setup('new', NULL, 3, 7); counter_increment('a'); counter_add('a', 5); counter_increment('unknown'); \
                 counter_reset('a', 99, TRUE); counter_resize('a', 9); counter_resize('a', 1); counter_delete('a'); \
                 bounded_counter_take('a', 9); bounded_counter_take('a', 99); slotted_counter_add_many('[[1, 2, 3], [4, 5, 6]]'); \
                 slotted_counter_reset(1, 2, 9); slotted_counter_compact(1, 2); slotted_counter_delete(1, 2); \
                 articles_views_increment(1); articles_views_rollup(NULL); articles_views_compact(1); articles_views_reset(1, 1); \
                 articles_views_delete(1)";
    for (number, call) in calls.split("; ").enumerate() {
        schema.run(&format!("{empty}; {first}"));
        let tables = ["counters", "bounded_counters", "slotted_counters", "articles", "articles_views"];
        let rows = || tables.map(|table| schema.rows(&table.parse().expect("a table")));
        let before = rows();
        let mut connection = schema.connect();
        connection.query_drop(format!("SET autocommit = 0; INSERT INTO other VALUES ({number})")).expect("a row");
        let result = connection.query_drop(format!("CALL {call}"));
        assert_eq!(rows(), before, "{call}");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM other"), number as u64, "{call}: not committed");
        connection.query_drop("COMMIT").expect("a commit");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM other"), number as u64 + 1, "{call}");
        assert_eq!(rows() == before, result.is_err(), "{call}: {result:?}");
    }
}
