//! The recipes of the documents, while connections write: the SQL and the lines are those of the pages.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use rand::RngExt;
use slotted::package::{Options, Package, Slots};
use slotted::script;

use crate::documents;
use crate::exactness::SetOnDrop;
use crate::rollup::of_column;
use crate::support::{
    Module, Schema, Server, bounded, calls, error_of, keyed, package, repeatable, root, sql_blocks, with_collation,
};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_hot_row_is_moved_and_moved_back_beside_old_and_new_writers)
        .on_servers(a_stock_row_beside_old_and_new_takers_is_never_sold_twice)
        .on_servers(a_table_of_slots_is_moved_while_writers_go_over)
        .on_servers(the_table_of_the_article_is_changed_under_callers)
        .on_servers(totals_of_many_records_read_only_their_slots)
        .on_servers(a_recount_under_writers_is_exact)
        .on_servers(reading_and_restarting_by_the_negative_loses_nothing)
        .private()
        .waits()
        .on_servers(each_way_to_call_the_roll_up_commits_without_autocommit)
        .on_servers(a_trigger_that_counts_rejects_no_transaction_that_began_with_a_read);
}

const PAGE: &str = "docs/existing-tables.md";

/// The block of a page that is a file.
fn file_of_page(name: &str) -> String {
    let page = fs::read_to_string(root().join(PAGE)).expect("the page");
    let (_, rest) = page.split_once(&format!("-- {name}\n")).expect("the file");
    rest.split("```").next().unwrap_or_default().to_owned()
}

/// Runs the line of the page about columns that begins with `start`, as a reader does.
fn run_line(schema: &Schema<'_>, start: &str) {
    let page = fs::read_to_string(root().join("docs/columns.md")).expect("the page");
    let line = page.lines().find(|line| line.starts_with(start)).expect("the line");
    let line = line.trim_start_matches("* ").replace("mydb", &schema.name);
    documents::run(schema, documents::programs(schema).path(), root(), &line, "the line");
}

/// Runs statements until the first error.
fn run(connection: &mut Conn, text: &str) -> mysql::Result<()> {
    script::statements(text).iter().try_for_each(|statement| connection.query_drop(statement))
}

/// Runs a transaction again until the server does not roll it back. Returns the number of an error of a package.
fn complete(connection: &mut Conn, text: &str) -> Option<u16> {
    loop {
        let error = run(connection, text).err()?;
        connection.query_drop("ROLLBACK").expect("a rollback");
        match error {
            mysql::Error::MySqlError(error) if error.code >= 30_000 => return Some(error.code),
            error => _ = repeatable(error),
        }
    }
}

type Worker<'a> = &'a (dyn Fn(&mut Conn) + Sync);

/// Runs `work` while each worker runs again and again on a connection of its own.
fn beside(schema: &Schema<'_>, workers: &[Worker<'_>], work: impl FnOnce(&mut Conn)) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in workers {
            // Before `work` begins.
            let (mut connection, done) = (schema.connect(), &done);
            scope.spawn(move || {
                while !done.load(SeqCst) {
                    worker(&mut connection);
                }
            });
        }
        let _end = SetOnDrop(&done);
        work(&mut schema.connect());
    });
}

fn a_hot_row_is_moved_and_moved_back_beside_old_and_new_writers(server: &Server) {
    let schema = server.schema();
    let [create, statements] = &sql_blocks(PAGE, "A hot row")[..2] else { panic!("two blocks") };
    schema.run(create);
    schema.install(&keyed(|options| {
        options.key = "page_id BIGINT".parse().expect("a key");
        options.table = "page_hits".parse().expect("a name");
        options.prefix = "page_hit_".parse().expect("a prefix");
    }));
    let [old, new, total] = &script::statements(statements)[..] else { panic!("{statements}") };
    let counted = AtomicU64::new(1000);
    let write = |connection: &mut Conn, statement| {
        complete(connection, statement);
        counted.fetch_add(1, SeqCst);
    };
    let (old, new) = (|connection: &mut Conn| write(connection, old), |connection: &mut Conn| write(connection, new));
    let [to, back] = ["move-row.sql", "row-back.sql"].map(file_of_page);
    beside(&schema, &[&old as Worker<'_>, &new].repeat(8), |connection| {
        for number in calls(60) {
            assert_eq!(complete(connection, if number % 3 == 2 { &back } else { &to }), None);
        }
    });
    let counted = counted.into_inner();
    assert_eq!(schema.first::<u64>(total), counted);
    complete(&mut schema.connect(), &to);
    assert_eq!(schema.first::<(i64, u64)>("SELECT hits, page_hit_get(1) FROM pages"), (0, counted));
    complete(&mut schema.connect(), &back);
    assert_eq!(schema.first::<(u64, i64)>("SELECT hits, page_hit_get(1) FROM pages"), (counted, 0));
}

fn a_stock_row_beside_old_and_new_takers_is_never_sold_twice(server: &Server) {
    const STOCK: i64 = 3_000;
    let schema = server.schema();
    schema.run(&sql_blocks(PAGE, "A stock row")[0]);
    schema.install(&bounded(|_| {}));
    schema.run(&format!("UPDATE stock SET qty = {STOCK}; CALL bounded_counter_setup('item 1', NULL, 17, 0)"));
    let sold = AtomicI64::new(0);
    let old = |connection: &mut Conn| {
        if complete(connection, "UPDATE stock SET qty = qty - 1 WHERE id = 1 AND qty >= 1").is_none()
            && connection.affected_rows() == 1
        {
            sold.fetch_add(1, SeqCst);
            if rand::rng().random_ratio(1, 10) {
                complete(connection, "UPDATE stock SET qty = qty + 1 WHERE id = 1");
                sold.fetch_sub(1, SeqCst);
            }
        }
    };
    let new = |connection: &mut Conn| match complete(connection, "CALL bounded_counter_take('item 1', 1)") {
        None => _ = sold.fetch_add(1, SeqCst),
        Some(error) => {
            assert_eq!(error, 30_016);
            old(connection);
        }
    };
    let workers = [&old as Worker<'_>, &new].repeat(8);
    let [to, back] = ["move-stock.sql", "stock-back.sql"].map(file_of_page);
    let part = to.replace("SELECT qty", "SELECT LEAST(qty, 100)");
    assert_ne!(part, to);
    beside(&schema, &workers, |connection| {
        let end = Instant::now() + Duration::from_secs(60);
        for number in (0..3).cycle() {
            complete(connection, [&part, &to, &back][number]);
            let qty: i64 = connection.query_first("SELECT qty FROM stock").expect("the stock").expect("a row");
            assert!(qty >= 0, "{qty}");
            if sold.load(SeqCst) >= STOCK {
                break;
            }
            assert!(Instant::now() < end, "{sold:?} are sold");
        }
    });
    let left: i64 = schema.first("SELECT qty + bounded_counter_get('item 1') FROM stock");
    assert_eq!((sold.into_inner(), left), (STOCK, 0));
}

/// The package of the page.
fn record_counters() -> Package {
    keyed(|options| {
        options.table = "record_counters".parse().expect("a name");
        options.prefix = "record_counter_".parse().expect("a prefix");
    })
}

/// 12 writers go over to the routine one after the other while 20,000 rows are moved.
fn a_table_of_slots_is_moved_while_writers_go_over(server: &Server) {
    const RECORDS: usize = 40;
    let schema = server.schema();
    schema.run(&script::statements(&sql_blocks(PAGE, "A table of slots with an upsert")[0])[0]);
    schema.install(&record_counters());
    let slots: Vec<_> =
        (0..500).flat_map(|slot| (0..RECORDS).map(move |record| format!("(123, {record}, {slot}, 2)"))).collect();
    schema.run(&format!(
        "INSERT INTO slotted_counters (record_type, record_id, slot, count) VALUES {}",
        slots.join(", ")
    ));
    let counted: Vec<AtomicU64> = (0..RECORDS).map(|_| AtomicU64::new(1000)).collect();
    let over = AtomicU64::new(0);
    let writer = |number: u64| {
        let (counted, over) = (&counted, &over);
        move |connection: &mut Conn| {
            let record = rand::rng().random_range(0..RECORDS);
            let old = "INSERT INTO slotted_counters (record_type, record_id, slot, count) VALUES (123, {record}, RAND() * 600, 1) \
                       ON DUPLICATE KEY UPDATE count = count + 1";
            let statement =
                if over.load(SeqCst) > number { "CALL record_counter_increment(123, {record})" } else { old };
            complete(connection, &statement.replace("{record}", &record.to_string()));
            counted[record].fetch_add(1, SeqCst);
            thread::sleep(Duration::from_millis(2));
        }
    };
    let writers: Vec<_> = (0..12).map(writer).collect();
    let workers: Vec<Worker<'_>> = writers.iter().map(|writer| writer as _).collect();
    let move_slots = file_of_page("move-slots.sql");
    beside(&schema, &workers, |connection| {
        for number in 1..=12 {
            over.store(number, SeqCst);
            thread::sleep(Duration::from_millis(50));
            complete(connection, &move_slots);
        }
    });
    while schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters") > 0 {
        complete(&mut schema.connect(), &move_slots);
    }
    let counted: Vec<u64> = counted.into_iter().map(AtomicU64::into_inner).collect();
    assert_eq!(schema.query::<u64>("SELECT total FROM record_counter_totals ORDER BY record_id"), counted);
}

fn the_table_of_the_article_is_changed_under_callers(server: &Server) {
    let schema = server.schema();
    let [create, alter] = &sql_blocks(PAGE, "The table of the 2012 article")[..] else { panic!("two blocks") };
    schema.run(create);
    schema.run(
        "DELIMITER ;;
         CREATE PROCEDURE counter_increment(IN p_counter_name VARCHAR(50))
         UPDATE counters SET counter = counter + 1 WHERE counter_name = p_counter_name AND counter_id = 1 + MOD(CONNECTION_ID(), 2);;
         DELIMITER ;",
    );
    let counted = AtomicU64::new(0);
    let caller = |connection: &mut Conn| {
        match connection.query_drop("CALL counter_increment('test1')") {
            Ok(()) => _ = counted.fetch_add(1, SeqCst),
            // 1305: MySQL drops the procedure before it creates it.
            rejected => assert!([1267, 1305].contains(&error_of(rejected).0)),
        }
        thread::sleep(Duration::from_millis(1));
    };
    beside(&schema, &[&caller as Worker<'_>; 8], |connection| {
        thread::sleep(Duration::from_millis(200));
        let script = schema.file(&package(|_| {}), "create_procedures.sql");
        let (number, message) = error_of(run(connection, &script));
        assert_eq!(number, 30022, "{message}");
        run(&mut schema.connect(), &with_collation(server, alter)).expect("ALTER TABLE");
        run(&mut schema.connect(), &script).expect("create_procedures.sql");
        thread::sleep(Duration::from_millis(200));
    });
    assert_eq!(schema.first::<u64>("SELECT counter_get('test1')"), 1005 + counted.into_inner());
}

/// The rows that a query reads when it is executed again, and its totals.
fn reads(schema: &Schema<'_>, query: &str) -> (u64, Vec<i64>) {
    let mut connection = schema.connect();
    let mut read = || -> (u64, Vec<i64>) {
        let totals = connection.query(query).expect(query);
        let status: Vec<(String, u64)> =
            connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'").expect("the status");
        (status.iter().map(|(_, value)| value).sum(), totals)
    };
    let [(first, _), (both, totals)] = [read(), read()];
    (both - first, totals)
}

fn totals_of_many_records_read_only_their_slots(server: &Server) {
    let schema = server.schema();
    schema.install(&keyed(|_| {}));
    schema.install(&package(|_| {}));
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL, KEY (views)) ENGINE = InnoDB");
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    let rows = |row: fn(u32) -> String| (1..=1000).map(row).collect::<Vec<_>>().join(", ");
    schema.run(&format!("INSERT INTO articles VALUES {}", rows(|id| format!("({id}, {id})"))));
    schema.run(&format!("INSERT INTO articles_views VALUES {}", rows(|id| format!("({id}, 0, 1), ({id}, 5, 2)"))));
    schema.run(&format!(
        "INSERT INTO slotted_counters VALUES {}",
        rows(|id| format!("(1, {id}, 0, 3), (1, {id}, 5, {id})"))
    ));
    schema.run(&format!("INSERT INTO counters VALUES {}", rows(|id| format!("('name {id}', 1, NULL, NOW(), {id})"))));
    schema.run(
        "CREATE TABLE names (name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY);
         INSERT INTO names VALUES ('name 7'); ANALYZE TABLE articles, articles_views, counters, slotted_counters",
    );
    for (query, expected) in [
        (
            "SELECT total FROM slotted_counter_totals WHERE record_type = 1 AND record_id IN (7, 9) ORDER BY 1",
            vec![10, 12],
        ),
        ("SELECT total FROM articles_views_totals WHERE id IN (7, 9) ORDER BY 1", vec![10, 12]),
        ("SELECT articles_views_get(id) FROM articles ORDER BY views DESC LIMIT 2", vec![1003, 1002]),
        (
            "SELECT SUM(c.counter) FROM names JOIN counters AS c \
             ON c.counter_name = names.name COLLATE utf8mb4_0900_ai_ci GROUP BY names.name",
            vec![7],
        ),
    ] {
        let (reads, totals) = reads(&schema, &with_collation(server, query));
        assert_eq!(totals, expected, "{query}");
        assert!(reads < 100, "{reads} reads: {query}");
    }
}

fn a_recount_under_writers_is_exact(server: &Server) {
    let schema = server.schema();
    schema.install(&record_counters());
    let [create, insert, drift, add] = &script::statements(&sql_blocks(PAGE, "Recount")[0])[..] else {
        panic!("four statements")
    };
    schema.run(create);
    // The drift: comments that were not counted, and counts without a comment.
    schema.run(&format!("{insert}; CALL record_counter_add(123, 456, 40)"));
    let transaction = "START TRANSACTION; INSERT INTO comments (post_id) VALUES (456); CALL record_counter_increment(123, 456); COMMIT";
    let writer = |connection: &mut Conn| _ = complete(connection, transaction);
    beside(&schema, &[&writer as Worker<'_>; 6], |connection| {
        // One of the recounts finds the drift, all others find none.
        for _ in calls(200) {
            run(connection, &format!("{drift}; {add}")).expect("the correction");
        }
    });
    let counted: (u64, u64) =
        schema.first("SELECT COUNT(*), record_counter_get(123, 456) FROM comments WHERE post_id = 456");
    assert_eq!(counted.0, counted.1);
}

/// With the function, and with the view where the function cannot be created.
fn reading_and_restarting_by_the_negative_loses_nothing(server: &Server) {
    let view = "SELECT total INTO @downloads FROM counter_totals WHERE counter_name = 'downloads'";
    let page = sql_blocks("docs/application.md", "Read and restart").concat();
    let of_view = page.replace("SELECT counter_get('downloads') INTO @downloads", view);
    assert_ne!(of_view, page);
    for text in [page, of_view] {
        let schema = server.schema();
        schema.install(&package(|_| {}));
        schema.run("CALL counter_setup('downloads', NULL, NULL, 0)");
        let (create, archive) = text.split_once("START TRANSACTION").expect("a transaction");
        schema.run(create);
        let counted = AtomicI64::new(0);
        let count = |connection: &mut Conn| {
            complete(connection, "CALL counter_increment('downloads')");
            counted.fetch_add(1, SeqCst);
        };
        beside(&schema, &[&count as Worker<'_>; 8], |connection| {
            for day in calls(200) {
                let dated = archive.replace("'2026-11-25'", &format!("'2000-01-01' + INTERVAL {day} DAY"));
                complete(connection, &format!("START TRANSACTION{dated}"));
            }
        });
        let found: i64 = schema.first("SELECT CAST(SUM(downloads) + counter_get('downloads') AS SIGNED) FROM history");
        assert_eq!(counted.into_inner(), found, "{text}");
    }
}

/// Otherwise the event runs, never commits, and the server reports no error.
fn each_way_to_call_the_roll_up_commits_without_autocommit(server: &Server) {
    let server = &server.another(&["--autocommit=0"]);
    let schema = server.schema();
    schema.run("SET autocommit = 1; CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 0)");
    schema.run("SET autocommit = 1; SET GLOBAL event_scheduler = ON");
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    let event = sql_blocks("docs/columns.md", "The roll-up").remove(0).replace("10 SECOND", "1 SECOND");
    let ways: [&dyn Fn(); 3] =
        [&|| run_line(&schema, "while sleep"), &|| run_line(&schema, "* * * * *"), &|| schema.run(&event)];
    for (way, total) in ways.iter().zip(1..) {
        schema.run("SET autocommit = 1; CALL articles_views_increment(1)");
        way();
        let end = Instant::now() + Duration::from_secs(10);
        while schema.connect().query_first("SELECT views FROM articles").expect("a column") != Some(total) {
            assert!(Instant::now() < end, "the roll-up {total} does not commit");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// MariaDB with a binary log turns a SELECT in a trigger into a locking read, and rejects one of a row that has changed since the snapshot
/// (1020). Only the routines with slots per counter have a SELECT: they can deadlock there.
fn a_trigger_that_counts_rejects_no_transaction_that_began_with_a_read(server: &Server) {
    let server = server.another(&["--log-bin", "--server-id=1", "--log-bin-trust-function-creators=ON"]);
    let fixed = |options: &mut Options| options.slots = Slots::Fixed(4);
    for (package, setup, key, locks) in [
        (package(|_| {}), "CALL counter_setup('a', NULL, 4, 0)", "'a'", !server.is_mysql()),
        (package(fixed), "CALL counter_setup('a', NULL, 4, 0)", "'a'", false),
        (keyed(fixed), "DO 0", "1, 1", false),
    ] {
        let (schema, prefix) = (server.schema(), package.options.prefix.name());
        schema.install(&package);
        schema.run(&format!(
            "{setup}; CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE = InnoDB; CREATE TABLE read_first (id INT) ENGINE = InnoDB; \
             CREATE TRIGGER counts AFTER INSERT ON orders FOR EACH ROW CALL {prefix}increment({key})"
        ));
        let count = || {
            let mut connection = schema.connect();
            for _ in calls(15) {
                if let Err(error) = run(
                    &mut connection,
                    "START TRANSACTION; SELECT COUNT(*) FROM read_first; INSERT INTO orders VALUES (); COMMIT",
                ) {
                    assert!(locks, "{prefix}: {error}");
                    repeatable(error);
                    connection.query_drop("ROLLBACK").expect("a rollback");
                }
            }
        };
        thread::scope(|scope| (0..12).for_each(|_| _ = scope.spawn(count)));
        let (orders, total) = schema.first::<(i64, i64)>(&format!("SELECT COUNT(*), {prefix}get({key}) FROM orders"));
        assert_eq!(orders, total, "{prefix}");
    }
}
