//! The recipes of the documents, while connections write: the SQL and the lines are those of the pages.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use rand::RngExt;
use slotted::package::Package;
use slotted::script;

use crate::documents;
use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, bounded, calls, error_of, file, keyed, package, repeatable, root, sql_blocks};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_hot_row_is_moved_and_moved_back_beside_old_and_new_writers)
        .on_servers(a_stock_row_beside_old_and_new_takers_is_never_sold_twice)
        .on_servers(a_table_of_slots_is_moved_while_writers_go_over)
        .on_servers(the_table_of_the_gem_is_moved_with_its_own_key)
        .on_servers(the_table_of_the_article_is_changed_under_callers)
        .on_servers(totals_of_many_records_read_only_their_slots)
        .on_servers(a_recount_under_writers_is_exact)
        .waits()
        .on_servers(a_call_is_repeated_until_it_succeeds)
        .private()
        .waits()
        .on_servers(each_way_to_call_the_roll_up_commits_without_autocommit);
}

const PAGE: &str = "docs/existing-tables.md";

/// The block of a page that is a file.
fn file_of_page(name: &str) -> String {
    let page = fs::read_to_string(root().join(PAGE)).expect("the page");
    let (_, rest) = page.split_once(&format!("-- {name}\n")).expect("the file");
    rest.split("```").next().unwrap_or_default().to_owned()
}

/// The line of a page that begins with `start`.
fn shell_line(page: &str, start: &str) -> String {
    let page = fs::read_to_string(root().join(page)).expect("the page");
    page.lines().find(|line| line.starts_with(start)).expect("the line").to_owned()
}

/// Runs a line of a page as a reader does.
fn run_line(schema: &Schema<'_>, line: &str) {
    documents::run(schema, documents::programs(schema).path(), root(), &line.replace("mydb", &schema.name), "the line");
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

/// Ends the workers, also if the work panics.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

type Worker<'a> = &'a (dyn Fn(&mut Conn) + Sync);

/// Runs `work` while each worker runs again and again on a connection of its own.
fn beside(schema: &Schema<'_>, workers: &[Worker<'_>], work: impl FnOnce(&mut Conn)) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in workers {
            scope.spawn(|| {
                let mut connection = schema.connect();
                while !done.load(SeqCst) {
                    worker(&mut connection);
                }
            });
        }
        let _end = End(&done);
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
    let writer = |statement| {
        let counted = &counted;
        move |connection: &mut Conn| {
            complete(connection, statement);
            counted.fetch_add(1, SeqCst);
        }
    };
    let (old, new) = (writer(old), writer(new));
    let workers = [&old as Worker<'_>, &new].repeat(8);
    let [to, back] = ["move-row.sql", "row-back.sql"].map(file_of_page);
    beside(&schema, &workers, |connection| {
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
        if complete(connection, "UPDATE stock SET qty = qty - 1 WHERE id = 1 AND qty >= 1").is_none() && connection.affected_rows() == 1 {
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
    let mut moves = BTreeMap::new();
    beside(&schema, &workers, |connection| {
        let end = Instant::now() + Duration::from_secs(60);
        for number in (0..3).cycle() {
            let error = complete(connection, [&part, &to, &back][number]);
            *moves.entry((number, error)).or_insert(0) += 1;
            let qty: i64 = connection.query_first("SELECT qty FROM stock").expect("the stock").expect("a row");
            assert!(qty >= 0, "{qty}");
            if sold.load(SeqCst) >= STOCK {
                break;
            }
            assert!(Instant::now() < end, "{sold:?} are sold");
        }
    });
    let left: i64 = schema.first("SELECT qty + bounded_counter_get('item 1') FROM stock");
    assert_eq!((sold.into_inner(), left), (STOCK, 0), "{moves:?}");
    eprintln!("{}: moves by their errors: {moves:?}", server.version);
}

/// The package of the page, with another key if there is one.
fn record_counters(key: Option<&str>) -> Package {
    keyed(|options| {
        options.table = "record_counters".parse().expect("a name");
        options.prefix = "record_counter_".parse().expect("a prefix");
        if let Some(key) = key {
            options.key = key.parse().expect("a key");
        }
    })
}

/// 12 writers go over to the routine one after the other while 100,000 rows are moved.
fn a_table_of_slots_is_moved_while_writers_go_over(server: &Server) {
    const RECORDS: usize = 200;
    let schema = server.schema();
    schema.run(&script::statements(&sql_blocks(PAGE, "A table of slots with an upsert")[0])[0]);
    schema.install(&record_counters(None));
    let numbers = (0..500).map(|n| format!("({n})")).collect::<Vec<_>>().join(", ");
    schema.run(&format!(
        "CREATE TABLE numbers (n INT PRIMARY KEY); INSERT INTO numbers VALUES {numbers};
         INSERT INTO slotted_counters (record_type, record_id, slot, count)
         SELECT 123, records.n, slots.n, 2 FROM numbers AS records JOIN numbers AS slots WHERE records.n < {RECORDS} ORDER BY slots.n"
    ));
    let counted: Vec<AtomicU64> = (0..RECORDS).map(|_| AtomicU64::new(1000)).collect();
    let over = AtomicU64::new(0);
    let writer = |number: u64| {
        let (counted, over) = (&counted, &over);
        move |connection: &mut Conn| {
            let record = rand::rng().random_range(0..RECORDS);
            let statement = if over.load(SeqCst) > number {
                format!("CALL record_counter_increment(123, {record})")
            } else {
                format!(
                    "INSERT INTO slotted_counters (record_type, record_id, slot, count) VALUES (123, {record}, RAND() * 600, 1) \
                     ON DUPLICATE KEY UPDATE count = count + 1"
                )
            };
            complete(connection, &statement);
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
    let mut connection = schema.connect();
    while schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters") > 0 {
        complete(&mut connection, &move_slots);
    }
    let counted: Vec<u64> = counted.into_iter().map(AtomicU64::into_inner).collect();
    assert_eq!(schema.query::<u64>("SELECT total FROM record_counter_totals ORDER BY record_id"), counted);
    eprintln!("{}: {} counts", server.version, counted.iter().sum::<u64>());
}

fn the_table_of_the_gem_is_moved_with_its_own_key(server: &Server) {
    let schema = server.schema();
    // As the migration of activerecord-slotted_counters creates it.
    schema.run(
        "CREATE TABLE slotted_counters (
           id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, counter_name VARCHAR(255), associated_record_type VARCHAR(255),
           associated_record_id INT, slot INT, count INT, created_at DATETIME(6) NOT NULL, updated_at DATETIME(6) NOT NULL,
           UNIQUE KEY (associated_record_id, associated_record_type, counter_name, slot)) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;
         INSERT INTO slotted_counters VALUES (1, 'comments_count', 'Article', 7, 3, 40, NOW(), NOW()), (2, 'comments_count', 'Article', 7, 9, 2, NOW(), NOW())",
    );
    let page = fs::read_to_string(root().join(PAGE)).expect("the page");
    let (_, key) = page.split_once("--key '").and_then(|(_, rest)| rest.split_once("--key '")).expect("the second key");
    schema.install(&record_counters(key.split('\'').next()));
    let columns = "associated_record_id, associated_record_type, counter_name";
    run(&mut schema.connect(), &file_of_page("move-slots.sql").replace("record_type, record_id", columns)).expect("the move");
    schema.run("CALL record_counter_increment(7, 'Article', 'comments_count')");
    assert_eq!(schema.first::<i64>("SELECT record_counter_get(7, 'Article', 'comments_count')"), 43);
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters"), 0);
}

fn the_table_of_the_article_is_changed_under_callers(server: &Server) {
    let schema = server.schema();
    let [create, alter] = &sql_blocks(PAGE, "The table of the 2012 article")[..] else { panic!("two blocks") };
    schema.run(create);
    schema.run(
        "DELIMITER ;;
         CREATE PROCEDURE counter_increment(IN p_counter_name VARCHAR(50))
         BEGIN
           DECLARE v_slots, v_slot INT;
           SELECT COUNT(*) INTO v_slots FROM counters WHERE counter_name = p_counter_name;
           SET v_slot = 1 + FLOOR(RAND() * v_slots);
           UPDATE counters SET counter = counter + 1 WHERE counter_name = p_counter_name AND counter_id = v_slot;
         END;;
         DELIMITER ;",
    );
    let (counted, rejected) = (AtomicU64::new(0), AtomicU64::new(0));
    let caller = |connection: &mut Conn| {
        match connection.query_drop("CALL counter_increment('test1')") {
            Ok(()) => _ = counted.fetch_add(1, SeqCst),
            Err(error) => {
                let (number, message) = error_of::<()>(Err(error));
                // 1305: MySQL drops the procedure before it creates it.
                assert!([1267, 1305].contains(&number), "{number}: {message}");
                rejected.fetch_add(1, SeqCst);
            }
        }
        thread::sleep(Duration::from_millis(1));
    };
    beside(&schema, &[&caller as Worker<'_>; 8], |connection| {
        thread::sleep(Duration::from_millis(200));
        let script = file(&package(|_| {}), "create_procedures.sql");
        let (number, message) = error_of(run(connection, &script));
        // The page shows the statement that the script prints.
        let cure = message.split_once(" Run: ").expect("a statement").1.trim_end_matches('\'').replace('`', "");
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace(';', "");
        assert_eq!((number, plain(&cure)), (1286, plain(alter)));
        run(&mut schema.connect(), alter).expect("ALTER TABLE");
        run(&mut schema.connect(), &script).expect("create_procedures.sql");
        thread::sleep(Duration::from_millis(200));
    });
    let counted = counted.into_inner();
    assert_eq!(schema.first::<u64>("SELECT counter_get('test1')"), 1005 + counted);
    eprintln!("{}: {counted} calls during the change counted, {rejected:?} rejected", server.version);
}

fn totals_of_many_records_read_only_their_slots(server: &Server) {
    let schema = server.schema();
    schema.install(&keyed(|_| {}));
    schema.run(
        "CREATE TABLE posts (id BIGINT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO posts VALUES (7), (9);
         CREATE TABLE names (name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY);
         INSERT INTO names VALUES ('name 7')",
    );
    let rows: Vec<_> = (1..=2000).map(|id| format!("(1, {id}, 0, 3), (1, {id}, 5, {id})")).collect();
    schema.run(&format!("INSERT INTO slotted_counters VALUES {}", rows.join(", ")));
    schema.install(&package(|_| {}));
    let names: Vec<_> = (1..=1000).map(|id| format!("('name {id}', 1, NULL, NOW(), {id})")).collect();
    schema.run(&format!("INSERT INTO counters VALUES {}; ANALYZE TABLE counters, slotted_counters", names.join(", ")));
    for (query, expected) in [
        ("SELECT total FROM slotted_counter_totals WHERE record_type = 1 AND record_id IN (7, 9) ORDER BY 1", vec![10, 12]),
        (
            "SELECT SUM(c.count) FROM posts LEFT JOIN slotted_counters AS c ON c.record_type = 1 \
             AND c.record_id = posts.id GROUP BY posts.id ORDER BY 1",
            vec![10, 12],
        ),
        (
            "SELECT SUM(c.counter) FROM names JOIN counters AS c \
             ON c.counter_name = names.name COLLATE utf8mb4_general_ci GROUP BY names.name",
            vec![7],
        ),
    ] {
        let mut connection = schema.connect();
        let before = super::surroundings::connection_reads(&mut connection);
        let totals: Vec<i64> = connection.query(query).expect(query);
        let reads = super::surroundings::connection_reads(&mut connection) - before;
        assert_eq!(totals, expected, "{query}");
        assert!(reads < 100, "{reads} reads: {query}");
    }
}

fn a_recount_under_writers_is_exact(server: &Server) {
    let schema = server.schema();
    schema.install(&record_counters(None));
    let [create, insert, drift, add] = &script::statements(&sql_blocks(PAGE, "Recount")[0])[..] else { panic!("four statements") };
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
    let counted: (u64, u64) = schema.first("SELECT COUNT(*), record_counter_get(123, 456) FROM comments WHERE post_id = 456");
    assert_eq!(counted.0, counted.1);
}

fn a_call_is_repeated_until_it_succeeds(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('visits', NULL, 8, 5)");
    let line = shell_line("docs/operations.md", "until mysql").replace("timeout = 5", "timeout = 1").replace("64", "4");
    let mut blocking = schema.connect();
    run(&mut blocking, "START TRANSACTION; UPDATE counters SET counter = counter + 1 WHERE counter_id = 8").expect("a lock");
    thread::scope(|scope| {
        let called = scope.spawn(|| run_line(&schema, &line));
        thread::sleep(Duration::from_millis(2500));
        assert!(!called.is_finished(), "the slot is locked");
        blocking.query_drop("COMMIT").expect("a commit");
    });
    assert_eq!(schema.first::<(u64, i64)>("SELECT slots, total FROM counter_totals"), (4, 6));
}

/// Otherwise the event runs, never commits, and the server reports no error.
fn each_way_to_call_the_roll_up_commits_without_autocommit(server: &Server) {
    let server = &server.another(&["--autocommit=0"]);
    let schema = server.schema();
    schema.run("SET autocommit = 1; CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 0)");
    schema.run("SET autocommit = 1; SET GLOBAL event_scheduler = ON");
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    let event = sql_blocks("docs/columns.md", "The roll-up").remove(0).replace("10 SECOND", "1 SECOND");
    let line = shell_line("docs/columns.md", "while sleep");
    let cron = shell_line("docs/columns.md", "* * * * *").replace("* * * * * ", "");
    let ways: [&dyn Fn(); 3] = [&|| run_line(&schema, &line), &|| run_line(&schema, &cron), &|| schema.run(&event)];
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
