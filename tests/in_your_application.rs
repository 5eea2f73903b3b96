//! What docs/in-your-application.md says about tests, archives, lists, retries and quotas.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::Slots;

use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, bounded_keyed, calls, error_of, keyed, package, repeatable, root, sql_blocks, sql_statements};

const PAGE: &str = "docs/in-your-application.md";

pub fn promises(mut module: Module<'_>) {
    module
        .plain(the_table_of_error_numbers_is_what_the_examples_read)
        .on_servers(a_test_that_rolls_back_leaves_nothing)
        .on_servers(a_test_that_truncates_leaves_nothing)
        .on_servers(reading_and_restarting_by_the_negative_loses_nothing)
        .on_servers(exactly_one_connection_sets_the_quota_of_a_day)
        .on_servers(a_list_reads_the_slots_of_its_rows_alone)
        .on_servers(the_errors_of_the_server_are_those_of_the_table)
        .private()
        .waits()
        .on_servers(repeating_the_transaction_loses_nothing_if_a_timeout_rolls_it_back)
        .on_servers(a_trigger_that_counts_rejects_no_transaction_that_began_with_a_read);
}

fn the_table_of_error_numbers_is_what_the_examples_read() {
    let page = std::fs::read_to_string(root().join(PAGE)).expect("the page");
    let (_, table) = page.split_once("| driver | number of the error |\n|---|---|\n").expect("the table");
    let files = [
        "python/with_pymysql.py",
        "python/with_mysql_connector.py",
        "node/with_mysql2.js",
        "php/with_pdo.php",
        "go/with_go_sql_driver.go",
        "java/WithMariadb.java",
        "ruby/with_mysql2.rb",
        "rust/with_mysql.rs",
    ];
    let rows: Vec<_> = table.lines().take_while(|line| line.starts_with("| ")).collect();
    assert_eq!(rows.len(), files.len());
    for (row, file) in rows.iter().zip(files) {
        let example = std::fs::read_to_string(root().join("examples").join(file)).expect("an example");
        for expression in row.split('`').skip(1).step_by(2) {
            assert!(example.contains(expression), "{file}: {expression}");
        }
    }
}

/// The database of the examples of the page.
fn application(server: &Server) -> Schema<'_> {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run(&first_block());
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    schema
}

/// The first SQL block of the page, which creates the tables.
fn first_block() -> String {
    let page = std::fs::read_to_string(root().join(PAGE)).expect("the page");
    let (_, rest) = page.split_once("```sql\n").expect("a block");
    rest.split("```").next().unwrap_or_default().to_owned()
}

fn a_test_that_rolls_back_leaves_nothing(server: &Server) {
    let schema = application(server);
    schema.install(&keyed(|_| {}));
    schema.run("CALL slotted_counter_add(1, 1, 5); CALL articles_views_add(2, 3)");
    let tables = ["counters", "articles", "articles_views", "slotted_counters"].map(|name| name.parse().expect("a table"));
    let rows = || tables.iter().map(|table| schema.rows(table)).collect::<Vec<_>>();
    let before = rows();
    let block = sql_blocks(PAGE, "Tests").remove(0);
    let more = "CALL slotted_counter_reset(1, 1, 9); CALL slotted_counter_delete(1, 1); CALL slotted_counter_increment(2, 2);\nROLLBACK";
    schema.run(&block.replace("ROLLBACK", more));
    assert_eq!(rows(), before);
    // The same calls change each of the tables.
    schema.run(&block.replace("ROLLBACK", &more.replace("ROLLBACK", "COMMIT")));
    for (after, before) in rows().iter().zip(&before) {
        assert_ne!(after, before);
    }
}

fn a_test_that_truncates_leaves_nothing(server: &Server) {
    let schema = application(server);
    let statements = sql_statements(PAGE, "Tests");
    let begin = statements.iter().position(|statement| statement.starts_with("TRUNCATE")).expect("a TRUNCATE");
    let total = || schema.first::<i64>("SELECT articles_views_get(1)");
    for statement in &statements[begin - 1..begin + 3] {
        schema.run(statement);
    }
    assert_eq!(total(), 40);
    // Without the table of the slots, the new row has the counts of the old one.
    schema.run("CALL articles_views_increment(1); TRUNCATE TABLE articles; INSERT INTO articles (title, views) VALUES ('One', 40)");
    assert_eq!(total(), 41);
}

/// Archives the total of `downloads` with these statements while 8 connections count. Returns what they have counted, and what
/// is in the archive and in the counter.
fn archived(server: &Server, statements: &[String]) -> (i64, i64) {
    let schema = application(server);
    schema.run("CALL counter_reset('downloads', 0, TRUE)");
    let [create, transaction @ ..] = statements else { panic!("no statement") };
    schema.run(create);
    let (counted, writers) = (AtomicU64::new(0), AtomicU64::new(8));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut connection = schema.connect();
                for _ in calls(150) {
                    match connection.query_drop("CALL counter_increment('downloads')").map_err(repeatable) {
                        Ok(()) => _ = counted.fetch_add(1, SeqCst),
                        Err(number) => eprintln!("{number}"),
                    }
                }
                writers.fetch_sub(1, SeqCst);
            });
        }
        scope.spawn(|| {
            let mut connection = schema.connect();
            let mut day = 0;
            while writers.load(SeqCst) > 0 || day == 0 {
                let dated = |statement: &String| statement.replace("'2026-11-25'", &format!("'2000-01-01' + INTERVAL {day} DAY"));
                match transaction.iter().try_for_each(|statement| connection.query_drop(dated(statement))) {
                    Ok(()) => day += 1,
                    Err(error) => {
                        repeatable(error);
                        connection.query_drop("ROLLBACK").expect("a rollback");
                    }
                }
            }
        });
    });
    let found = schema.first("SELECT CAST(SUM(downloads) + counter_get('downloads') AS SIGNED) FROM history");
    (counted.into_inner() as i64, found)
}

fn reading_and_restarting_by_the_negative_loses_nothing(server: &Server) {
    let statements = sql_statements(PAGE, "Read and restart");
    let without = statements.iter().map(|statement| {
        let view = "SELECT total INTO @downloads FROM counter_totals WHERE counter_name = 'downloads'";
        statement.replace("SELECT counter_get('downloads') INTO @downloads", view)
    });
    let without: Vec<_> = without.collect();
    assert_ne!(without, statements);
    for statements in [&statements, &without] {
        let (counted, found) = archived(server, statements);
        assert_eq!(counted, found, "{statements:?}");
    }
    // The page warns of the other form. How much it loses depends on the time.
    let reset = statements.iter().map(|statement| {
        statement.replace("CALL counter_add('downloads', -@downloads)", "CALL counter_reset('downloads', 0, TRUE)")
    });
    let reset: Vec<_> = reset.collect();
    assert_ne!(reset, statements);
    let (counted, found) = archived(server, &reset);
    assert!(found <= counted, "{found} of {counted}");
    eprintln!("{}: with counter_reset, {found} of {counted} were found", server.version);
}

fn exactly_one_connection_sets_the_quota_of_a_day(server: &Server) {
    let quotas = bounded_keyed(|options| {
        options.key = "user_id BIGINT, day DATE".parse().expect("a key");
        options.table = "quotas".parse().expect("a name");
        options.prefix = "quota_".parse().expect("a prefix");
    });
    let statements = sql_statements("docs/counts-by-day.md", "A limit per day");
    let [setup, take] = &statements[..] else { panic!("two statements: {statements:?}") };
    let of_day = |statement: &str, day: &str| statement.replace("CURRENT_DATE", day).replace("1000", "100");
    let schema = server.schema();
    schema.install(&quotas);
    for day in ["'2026-11-25'", "'2026-11-26'", "'2026-11-27'"] {
        let barrier = Barrier::new(16);
        let (sets, takes) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let mut connection = schema.connect();
                    barrier.wait();
                    match connection.query_drop(of_day(setup, day)) {
                        Ok(()) => _ = sets.fetch_add(1, SeqCst),
                        exists => assert_eq!(error_of(exists).0, 30004),
                    }
                    loop {
                        match connection.query_drop(of_day(take, day)) {
                            Ok(()) => _ = takes.fetch_add(1, SeqCst),
                            rejected => break assert_eq!(error_of(rejected).0, 30016),
                        }
                    }
                });
            }
        });
        assert_eq!((sets.into_inner(), takes.into_inner()), (1, 100), "{day}");
        assert_eq!(schema.first::<i64>(&format!("SELECT quota_get(7, {day})")), 0);
    }
}

/// The rows and keys that a query of this session reads.
fn reads(connection: &mut Conn, query: &str) -> u64 {
    let all = "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_key', 'Handler_read_next', 'Handler_read_prev', 'Handler_read_rnd_next')";
    let sum = |connection: &mut Conn| -> u64 {
        let rows: Vec<(String, u64)> = connection.query(all).expect("the status");
        rows.iter().map(|(_, value)| value).sum()
    };
    connection.query_drop(query).expect(query);
    let before = sum(connection);
    connection.query_drop(query).expect(query);
    sum(connection) - before
}

fn a_list_reads_the_slots_of_its_rows_alone(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL, KEY (views)) ENGINE = InnoDB");
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    schema.install(&keyed(|_| {}));
    let rows = |row: fn(u32) -> String| (0..1000).map(row).collect::<Vec<_>>().join(", ");
    schema.run(&format!("INSERT INTO articles VALUES {}", rows(|id| format!("({id}, {id})"))));
    let slots = rows(|id| format!("({id}, 0, 1), ({id}, 1, 2), ({id}, 2, 3)"));
    schema.run(&format!("INSERT INTO articles_views VALUES {slots}"));
    schema.run(&format!("INSERT INTO slotted_counters VALUES {}", slots.replace('(', "(1, ")));
    schema.run("ANALYZE TABLE articles, articles_views, slotted_counters");
    let mut connection = schema.connect();
    for query in [
        "SELECT id, articles_views_get(id) FROM articles ORDER BY views DESC LIMIT 10",
        "SELECT id, total FROM articles_views_totals WHERE id IN (990, 991, 992, 993, 994, 995, 996, 997, 998, 999)",
        "SELECT record_id, total FROM slotted_counter_totals WHERE record_type = 1 AND record_id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)",
    ] {
        let reads = reads(&mut connection, query);
        assert!(reads < 400, "{query}: {reads}");
    }
    let joined = "SELECT totals.total FROM articles JOIN articles_views_totals AS totals USING (id) ORDER BY articles.views DESC LIMIT 10";
    assert_eq!(reads(&mut connection, joined) > 2000, server.is_mysql(), "the warning of docs/columns.md");
}

fn the_errors_of_the_server_are_those_of_the_table(server: &Server) {
    let schema = application(server);
    let days = keyed(|options| options.key = "day DATE".parse().expect("a key"));
    schema.install(&days);
    schema.run("CALL counter_setup('many', NULL, 1000, 0); SET SESSION sql_mode = ''");
    let reference = std::fs::read_to_string(root().join("docs/reference.md")).expect("the page");
    let (_, table) = reference.split_once("| number | cause | what to do |\n").expect("the table");
    let listed = |number: u16| table.lines().take_while(|line| line.starts_with('|')).any(|line| line.contains(&number.to_string()));
    for (before, call, number) in [
        ("DO 0", "CALL counter_add('downloads', 9223372036854775808)", 1264),
        ("DO 0", "CALL counter_add('downloads', 'x')", 1366),
        ("DO 0", "CALL slotted_counter_increment('2026-02-30')", 1292),
        ("LOCK TABLES articles READ", "CALL counter_increment('downloads')", 1100),
        ("SET sql_big_selects = 0, max_join_size = 3", "SELECT counter_name, total FROM counter_totals", 1104),
        ("RENAME TABLE slotted_counters TO away", "CALL slotted_counter_increment('2026-11-25')", 1146),
    ] {
        let mut connection = schema.connect();
        connection.query_drop(before).expect(before);
        assert_eq!(error_of(connection.query_drop(call)).0, number, "{call}");
        assert!(listed(number), "{number}");
    }
    if server.is_mysql() && schema.first::<bool>("SELECT @@log_bin") {
        let mut connection = schema.isolated("READ COMMITTED");
        connection.query_drop("SET SESSION binlog_format = STATEMENT").expect("a format");
        assert_eq!(error_of(connection.query_drop("CALL counter_increment('downloads')")).0, 1665);
        assert!(listed(1665));
    }
    assert_eq!(schema.first::<i64>("SELECT counter_get('downloads')"), 1000);
}

fn repeating_the_transaction_loses_nothing_if_a_timeout_rolls_it_back(server: &Server) {
    let server = server.another(&["--innodb-rollback-on-timeout=ON", "--innodb-lock-wait-timeout=1"]);
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run(
        "CALL counter_setup('a', NULL, 5, 0); CALL counter_setup('b', NULL, 1, 0); \
         CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE = InnoDB",
    );
    let transaction = ["START TRANSACTION", "INSERT INTO orders VALUES ()", "CALL counter_add('a', 5)", "CALL counter_increment('b')", "COMMIT"];
    let totals = || schema.first::<(i64, i64, i64)>("SELECT (SELECT COUNT(*) FROM orders), counter_get('a'), counter_get('b')");
    let (mut holder, mut connection) = (schema.connect(), schema.connect());
    let times_out = |holder: &mut Conn, connection: &mut Conn| {
        holder.query_drop("START TRANSACTION").expect("a transaction");
        holder.query_drop("CALL counter_increment('b')").expect("an increment");
        let failed = transaction.iter().try_for_each(|statement| connection.query_drop(statement));
        assert_eq!(error_of(failed).0, 1205);
        holder.query_drop("ROLLBACK").expect("a rollback");
    };
    times_out(&mut holder, &mut connection);
    connection.query_drop("ROLLBACK").expect("a rollback");
    transaction.iter().for_each(|statement| connection.query_drop(statement).expect("a repeated transaction"));
    assert_eq!(totals(), (1, 5, 1));
    // The page warns of a repeated call: it commits alone.
    times_out(&mut holder, &mut connection);
    transaction[3..].iter().for_each(|statement| connection.query_drop(statement).expect("a repeated call"));
    assert_eq!(totals(), (1, 5, 2));
}

/// MariaDB turns a SELECT of a routine in a trigger into a locking read if it writes a binary log, and rejects a locking read of a row that
/// has changed since the snapshot (1020).
fn a_trigger_that_counts_rejects_no_transaction_that_began_with_a_read(server: &Server) {
    let server = server.another(&["--log-bin", "--server-id=1", "--log-bin-trust-function-creators=ON"]);
    if server.has_snapshot_isolation() {
        assert_eq!(server.connect().query_first("SELECT @@GLOBAL.innodb_snapshot_isolation").expect("a setting"), Some(true));
    }
    let fixed = package(|options| options.slots = Slots::Fixed(4));
    for (package, setup, call, get) in [
        (package(|_| {}), "CALL counter_setup('a', NULL, 4, 0)", "counter_increment('a')", "counter_get('a')"),
        (fixed, "CALL counter_setup('a', NULL, NULL, 0)", "counter_increment('a')", "counter_get('a')"),
        (keyed(|options| options.slots = Slots::Fixed(4)), "DO 0", "slotted_counter_increment(1, 1)", "slotted_counter_get(1, 1)"),
    ] {
        let schema = server.schema();
        schema.install(&package);
        schema.run(&format!(
            "{setup}; CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE = InnoDB; CREATE TABLE read_first (id INT) ENGINE = InnoDB; \
             CREATE TRIGGER counts AFTER INSERT ON orders FOR EACH ROW CALL {call}"
        ));
        let failed = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    let mut connection = schema.connect();
                    for _ in calls(15) {
                        for statement in ["START TRANSACTION", "SELECT COUNT(*) FROM read_first", "INSERT INTO orders VALUES ()", "COMMIT"] {
                            if let Err(error) = connection.query_drop(statement) {
                                eprintln!("{statement}: {error}");
                                failed.fetch_add(1, SeqCst);
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(failed.into_inner(), 0, "{call}");
        let (orders, total) = schema.first::<(i64, i64)>(&format!("SELECT COUNT(*), {get} FROM orders"));
        assert_eq!(orders, total, "{call}");
    }
}
