//! Monitoring: the queries of docs/operations.md with its account.

use mysql::Row;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(the_skew_is_that_of_the_counts_between_two_readings)
        .private()
        .on_servers(the_account_runs_the_queries_and_they_wait_for_no_transaction);
}

fn statements() -> Vec<String> {
    sql_statements("docs/operations.md", "Monitoring")
}

fn statement(part: &str) -> String {
    statements().into_iter().find(|statement| statement.contains(part)).expect(part)
}

/// The first row of a query, as soon as there is one. The servers refresh the lock waits only if nobody has read them for 0.1 s.
fn found(connection: &mut Conn, query: &str) -> Row {
    let mut found = None;
    until(query, || {
        thread::sleep(Duration::from_millis(100));
        found = connection.query_first(query).expect(query);
        found.is_some()
    });
    found.expect(query)
}

/// On a server of its own, because an account and the lock waits belong to all databases of a server.
fn the_account_runs_the_queries_and_they_wait_for_no_transaction(server: &Server) {
    let network = Network::start(server, &[]);
    let schema = Schema::named(&network.server, "mydb", "");
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)");
    let column = of_column("articles.views", "id BIGINT", |_| {});
    [package(|_| {}), keyed(|_| {}), bounded(|_| {}), column].iter().for_each(|package| schema.install(package));
    schema.run("CALL counter_setup('downloads', NULL, 4, NULL); CALL counter_add('downloads', 42); CALL slotted_counter_add(123, 456, 7); CALL articles_views_add(1, 3); CALL bounded_counter_setup('seats', NULL, 3, 100)");
    let (grants, queries): (Vec<_>, Vec<_>) =
        statements().into_iter().partition(|text| text.contains("GRANT ") || text.starts_with("CREATE USER"));
    let mut administrator = schema.connect();
    grants.iter().for_each(|grant| administrator.query_drop(grant).expect(grant));
    let mut account =
        Conn::new(schema.options().user(Some("monitor")).pass(Some("secret"))).expect("the account of the page");
    account.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a time-out");
    // A transaction that has locked all slots.
    let locks = ["UPDATE counters SET counter = counter + 1", "UPDATE slotted_counters SET count = count + 1"];
    let mut transaction = schema.after(&["BEGIN", locks[0], locks[1]]);
    for query in queries.iter().filter(|query| !query.contains("sys.")) {
        account.query_drop(query).unwrap_or_else(|error| panic!("{error} in {query}"));
    }
    assert_eq!((grants.len(), queries.len()), (11, 8), "{queries:?}");
    let metrics: Vec<(String, String, i64)> = account.query(statement("AS metric")).expect("the metrics");
    let metrics = metrics.iter().map(|(metric, name, value)| format!("{metric} {name} {value}"));
    let metrics: Vec<_> = metrics.filter(|line| !line.contains(" server ")).collect();
    let of_column = ["records_pending articles.views 1", "counts_pending articles.views 3"];
    assert_eq!(metrics, [&["total downloads 42", "left seats 100"], &of_column[..]].concat());
    // The account has no other privilege.
    for statement in ["CALL counter_increment('downloads')", "DELETE FROM counters"] {
        assert!(account.query_drop(statement).is_err(), "{statement}");
    }
    // A session that waits is counted, and listed with its slot and with the session that blocks it.
    let mut waiting = schema.connect();
    let slot = 1 + waiting.connection_id() % 4;
    let sessions = (waiting.connection_id(), transaction.connection_id());
    thread::scope(|scope| {
        scope.spawn(|| waiting.query_drop("CALL counter_increment('downloads')").expect("an increment"));
        let row = found(&mut account, &statement("INNODB_TRX"));
        assert_eq!((row.get("connection"), row.get(2)), (Some(sessions.0), Some(format!("'downloads', {slot}"))));
        let waits =
            format!("SELECT value FROM ({}) AS metrics WHERE metric LIKE '%current_waits'", statement("AS metric"));
        assert_eq!(account.query_first(waits).expect("a metric"), Some(1));
        let row = found(&mut administrator, &statement("sys."));
        assert_eq!((row.get("blocking_pid"), row.get("blocked")), (Some(sessions.1), Some(1)));
        transaction.query_drop("ROLLBACK").expect("a rollback");
    });
    // The account sees the counts, and gets what it needs to see the packages, and nothing else.
    let status = |code| {
        let url = schema.server.url_of("monitor", Some("secret"));
        exits(&mut slotted(&["status", "--url", &url, "--database", "mydb"]), code)
    };
    let said = status(2);
    assert!(said.contains("error: this account sees no package in the database mydb\n"), "{said}");
    let (_, grants) = said.split_once("run as an administrator: ").expect(&said);
    let (grants, _) = grants.split_once("; without a package, run slotted install").expect(&said);
    schema.run(grants);
    status(0);
}

fn the_skew_is_that_of_the_counts_between_two_readings(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    schema.run(
        "INSERT INTO counters (counter_name, counter_id, start_date, counter)
         VALUES ('a', 1, NOW(), 6), ('a', 2, NOW(), 1), ('a', 3, NOW(), 1), ('a', 4, NOW(), 0), ('a', -5, NOW(), 100)",
    );
    let mut connection = schema.connect();
    let mut read = |part: &str| connection.query_first::<Row, _>(statement(part)).expect(part);
    read("SET SESSION");
    read("TABLE earlier");
    schema.run("UPDATE counters SET counter = counter + 10 * counter_id WHERE counter_id IN (2, 3)");
    let row = read("AS skew").expect("a row");
    assert_eq!((row.get("slots"), row.get("used_slots"), row.get("counted")), (Some(4), Some(2), Some(50)));
    // Fewer connections than slots cannot use all of them.
    assert_eq!(row.get("skew"), Some(1.2));
    let _more = [(); 4].map(|()| schema.connect());
    assert_eq!(read("AS skew").expect("a row").get("skew"), Some(2.4));
}
