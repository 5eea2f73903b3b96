//! The recipes of the documents, while connections write: the SQL and the lines are those of the pages.

use std::fs;

use slotted::package::{Options, Package};
use slotted::script;

use crate::documents;
use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
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

const COLUMNS: &str = "docs/columns.md";
const STOCK: &str = "docs/stock.md";
const MIGRATIONS: &str = "docs/migrations.md";

fn text(page: &str) -> String {
    fs::read_to_string(root().join(page)).expect("the page")
}

/// What is between two texts of a page.
fn between(page: &str, begin: &str, end: &str) -> String {
    let (_, rest) = page.split_once(begin).expect(begin);
    rest.split(end).next().unwrap_or_default().to_owned()
}

/// The statements of a block in a section of a page.
fn statements<const N: usize>(page: &str, section: &str, block: usize) -> [String; N] {
    script::statements(&sql_blocks(page, section)[block]).try_into().expect(section)
}

/// The block of a page that is a file.
fn file(page: &str, name: &str) -> String {
    between(&text(page), &format!("-- {name}\n"), "```")
}

/// Runs a transaction again until the server does not roll it back. Returns the number of an error of a package.
fn complete(connection: &mut Conn, text: &str) -> Option<u16> {
    loop {
        let error = source(connection, text).err()?;
        connection.query_drop("ROLLBACK").expect("a rollback");
        match error {
            mysql::Error::MySqlError(error) if error.code >= 30_000 => return Some(error.code),
            error => _ = repeatable(error),
        }
    }
}

/// The package of records with this table.
fn records(table: &str, prefix: &str, key: Option<&str>) -> Package {
    keyed(|options| {
        options.table = table.parse().expect("a name");
        options.prefix = prefix.parse().expect("a prefix");
        key.into_iter().for_each(|key| options.subject = crate::support::records(key.parse().expect("a key")));
    })
}

fn a_stock_row_beside_old_and_new_takers_is_never_sold_twice(server: &Server) {
    const PIECES: i64 = 3_000;
    let schema = server.installed([&bounded(|_| {})]);
    schema.run(&sql_blocks(STOCK, "Move a stock row")[0]);
    schema.run(&format!("UPDATE stock SET qty = {PIECES}"));
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
    let take = |connection: &mut Conn, taker: usize| if taker < 8 { old(connection) } else { new(connection) };
    let [to, back] = ["move-stock.sql", "stock-back.sql"].map(|name| file(STOCK, name));
    let part = to.replace("SELECT qty", "SELECT LEAST(qty, 100)");
    assert_ne!(part, to);
    beside((0..16).map(|_| schema.connect()), take, || {
        let (mut connection, end) = (schema.connect(), Instant::now() + Duration::from_secs(60));
        for number in (0..3).cycle() {
            complete(&mut connection, [&part, &to, &back][number]);
            let qty: i64 = connection.query_first("SELECT qty FROM stock").expect("the stock").expect("a row");
            assert!(qty >= 0, "{qty}");
            if sold.load(SeqCst) >= PIECES {
                break;
            }
            assert!(Instant::now() < end, "{sold:?} are sold");
        }
    });
    let left: i64 = schema.first("SELECT qty + bounded_counter_get('item 1') FROM stock");
    assert_eq!((sold.into_inner(), left), (PIECES, 0));
}

/// 12 writers go over to the routine one after the other while 20,000 rows are moved.
fn a_table_of_slots_is_moved_while_writers_go_over(server: &Server) {
    const RECORDS: usize = 40;
    let schema = server.schema();
    // As in the article "The Slotted Counter Pattern".
    schema.run(
        "CREATE TABLE slotted_counters (
           id INT AUTO_INCREMENT PRIMARY KEY, record_type INT NOT NULL, record_id INT NOT NULL, slot INT NOT NULL DEFAULT 0,
           `count` INT, UNIQUE KEY records_and_slots (record_type, record_id, slot)
         ) ENGINE = InnoDB",
    );
    schema.install(&records("record_counters", "record_counter_", None));
    let slots = (0..500 * RECORDS).map(|row| format!("(123, {}, {}, 2)", row % RECORDS, row / RECORDS));
    let slots = slots.collect::<Vec<_>>().join(", ");
    schema.run(&format!("INSERT INTO slotted_counters (record_type, record_id, slot, count) VALUES {slots}"));
    let counted: Vec<AtomicU64> = (0..RECORDS).map(|_| AtomicU64::new(1000)).collect();
    let over = AtomicUsize::new(0);
    let old = "INSERT INTO slotted_counters (record_type, record_id, slot, count) VALUES (123, {record}, RAND() * 600, 1) \
               ON DUPLICATE KEY UPDATE count = count + 1";
    let write = |connection: &mut Conn, number: usize| {
        let record = rand::rng().random_range(0..RECORDS);
        let statement = if over.load(SeqCst) > number { "CALL record_counter_increment(123, {record})" } else { old };
        complete(connection, &statement.replace("{record}", &record.to_string()));
        counted[record].fetch_add(1, SeqCst);
        thread::sleep(Duration::from_millis(2));
    };
    let move_slots = file(MIGRATIONS, "move-slots.sql");
    beside((0..12).map(|_| schema.connect()), write, || {
        for number in 1..=12 {
            over.store(number, SeqCst);
            thread::sleep(Duration::from_millis(50));
            complete(&mut schema.connect(), &move_slots);
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
    let [alter] = &statements("docs/operations.md", "Upgrade", 0);
    schema.run(
        "CREATE TABLE counters (
           counter_name VARCHAR(50), counter_id INT, description VARCHAR(100), start_date DATETIME NOT NULL, counter INT NOT NULL,
           PRIMARY KEY (counter_name, counter_id)
         ) ENGINE = InnoDB DEFAULT CHARSET = latin1;
         INSERT INTO counters VALUES ('test1', 1, 'first', '2012-05-02 07:44:49', 1000), ('test1', 2, 'first', '2012-05-02 07:44:49', 5);
         CREATE PROCEDURE counter_increment(IN p_counter_name VARCHAR(50))
         UPDATE counters SET counter = counter + 1 WHERE counter_name = p_counter_name AND counter_id = 1 + MOD(CONNECTION_ID(), 2)",
    );
    let counted = AtomicU64::new(0);
    let caller = |connection: &mut Conn, _| {
        match connection.query_drop("CALL counter_increment('test1')") {
            Ok(()) => _ = counted.fetch_add(1, SeqCst),
            // 1305: MySQL drops the procedure before it creates it.
            rejected => assert!([1267, 1305].contains(&error_of(rejected).0)),
        }
        thread::sleep(Duration::from_millis(1));
    };
    beside((0..8).map(|_| schema.connect()), caller, || {
        thread::sleep(Duration::from_millis(200));
        let script = schema.file(&package(|_| {}), "create_procedures.sql");
        let (number, message) = error_of(source(&mut schema.connect(), &script));
        assert_eq!(number, 30022, "{message}");
        source(&mut schema.connect(), &with_collation(server, alter)).expect("ALTER TABLE");
        source(&mut schema.connect(), &script).expect("create_procedures.sql");
        thread::sleep(Duration::from_millis(200));
    });
    schema.run("CALL counter_resize('test1', 8)");
    assert_eq!(schema.first::<u64>("SELECT counter_get('test1')"), 1005 + counted.into_inner());
}

fn totals_of_many_records_read_only_their_slots(server: &Server) {
    let schema = server.installed(&[keyed(|_| {}), bounded(|_| {})]);
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL, KEY (views)) ENGINE = InnoDB");
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    for (table, row) in [
        ("articles", "(ID, ID)"),
        ("articles_views", "(ID, 0, 1), (ID, 5, 2)"),
        ("slotted_counters", "(1, ID, 0, 3), (1, ID, 5, ID)"),
        ("bounded_counters", "('event ID', 1, NULL, NOW(), ID)"),
    ] {
        let rows: Vec<_> = (1..=1000).map(|id| row.replace("ID", &id.to_string())).collect();
        schema.run(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
    }
    schema.run(
        "CREATE TABLE events (code VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY, title INT);
         INSERT INTO events VALUES ('event 7', 1), ('event x', 2);
         ANALYZE TABLE articles, articles_views, bounded_counters, slotted_counters",
    );
    let report = sql_blocks(STOCK, "Report")[1].replace("SELECT events.title, ", "SELECT ").replace(';', "");
    for (query, expected) in [
        ("SELECT total FROM slotted_counter_totals WHERE record_type = 1 AND record_id IN (7, 9) ORDER BY 1", [10, 12]),
        ("SELECT total FROM articles_views_totals WHERE id IN (7, 9) ORDER BY 1", [10, 12]),
        ("SELECT articles_views_get(id) FROM articles ORDER BY views DESC LIMIT 2", [1003, 1002]),
        (&sql_statements(COLUMNS, "Reads")[1].replace("title, ", ""), [1003, 1002]),
        (&format!("{report} ORDER BY 1 DESC"), [7, 0]),
    ] {
        let (query, mut connection) = (with_collation(server, query), schema.connect());
        // The rows that the connection has read, after it has executed the query.
        let mut read = || {
            assert_eq!(connection.query::<i64, _>(&query).expect(&query), expected, "{query}");
            reads(&mut connection)
        };
        let reads = read().abs_diff(read());
        assert!(reads < 100, "{reads} reads: {query}");
    }
}

fn a_recount_under_writers_is_exact(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 7)");
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    let [create, insert, drift, add] = &statements(COLUMNS, "Recount", 0);
    // The drift: comments that were not counted, and counts without a comment.
    schema.run(&format!("{create}; {insert}; CALL articles_views_add(1, 40)"));
    let counts =
        "START TRANSACTION; INSERT INTO comments (article_id) VALUES (1); CALL articles_views_increment(1); COMMIT";
    let writer = |connection: &mut Conn, _| _ = complete(connection, counts);
    beside((0..6).map(|_| schema.connect()), writer, || {
        let mut connection = schema.connect();
        // One of the recounts finds the drift, all others find none.
        for _ in calls(200) {
            source(&mut connection, &format!("{drift}; {add}")).expect("the correction");
        }
    });
    assert_eq!(schema.first::<i64>("SELECT COUNT(*) - articles_views_get(1) FROM comments WHERE article_id = 1"), 0);
}

/// With the function, and with the view where the function cannot be created.
fn reading_and_restarting_by_the_negative_loses_nothing(server: &Server) {
    let view = "SELECT total INTO @downloads FROM counter_totals WHERE counter_name = 'downloads'";
    let page = sql_blocks("docs/application.md", "Read and restart").concat();
    let of_view = page.replace("SELECT counter_get('downloads') INTO @downloads", view);
    assert_ne!(of_view, page);
    for text in [page, of_view] {
        let schema = server.installed([&package(|_| {})]);
        schema.run("CALL counter_setup('downloads', NULL, NULL, 0)");
        let (create, archive) = text.split_at(text.find("START TRANSACTION").expect("a transaction"));
        schema.run(create);
        let counted = AtomicI64::new(0);
        let count = |connection: &mut Conn, _| {
            complete(connection, "CALL counter_increment('downloads')");
            counted.fetch_add(1, SeqCst);
        };
        beside((0..8).map(|_| schema.connect()), count, || {
            let mut connection = schema.connect();
            for day in calls(200) {
                let day = format!("'2000-01-01' + INTERVAL {day} DAY");
                complete(&mut connection, &archive.replace("'2026-11-25'", &day));
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
    schema.run(
        "SET autocommit = 1; SET GLOBAL event_scheduler = ON;
         CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB;
         INSERT INTO articles VALUES (1, 0)",
    );
    schema.install(&of_column("articles.views", "id BIGINT", |_| {}));
    let page = text(COLUMNS);
    // As a reader runs them, in the database of the test.
    let folder = tempfile::tempdir().expect("a folder");
    let blocks = sql_blocks(COLUMNS, "The roll-up");
    std::fs::write(folder.path().join("rollup.sql"), &blocks[1]).expect("the file of the page");
    let shell = |begin, end| {
        let line = between(&page, begin, end).replace("mydb", &schema.name);
        documents::run(&schema, documents::programs(&schema).path(), folder.path(), &line, begin);
    };
    let event = blocks[0].replace("10 SECOND", "1 SECOND");
    let ways: [&dyn Fn(); 3] =
        [&|| shell("while sleep 10; do", "; done"), &|| shell("* * * * *", "`"), &|| schema.run(&event)];
    for (way, total) in ways.iter().zip(1..) {
        schema.run("SET autocommit = 1; CALL articles_views_increment(1)");
        way();
        let views = || schema.connect().query_first("SELECT views FROM articles").expect("a column");
        until(&format!("the roll-up {total} commits"), || views() == Some(total));
    }
}

/// MariaDB with a binary log turns a SELECT in a trigger into a locking read, and rejects one of a row that has changed since the snapshot
/// (1020). Only the routines with slots per counter have a SELECT: they can deadlock there.
fn a_trigger_that_counts_rejects_no_transaction_that_began_with_a_read(server: &Server) {
    let server = server.another(&["--log-bin", "--server-id=1", "--log-bin-trust-function-creators=ON"]);
    let fixed = |options: &mut Options| options.subject.set_slots(4);
    for (package, setup, key, locks) in [
        (package(|_| {}), "CALL counter_setup('a', NULL, 4, 0)", "'a'", !server.is_mysql()),
        (package(fixed), "CALL counter_setup('a', NULL, 4, 0)", "'a'", false),
        (keyed(fixed), "DO 0", "1, 1", false),
    ] {
        let (schema, prefix) = (server.installed([&package]), package.options.prefix.name());
        schema.run(&format!(
            "{setup}; CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE = InnoDB; CREATE TABLE read_first (id INT) ENGINE = InnoDB; \
             CREATE TRIGGER counts AFTER INSERT ON orders FOR EACH ROW CALL {prefix}increment({key})"
        ));
        let insert = "START TRANSACTION; SELECT COUNT(*) FROM read_first; INSERT INTO orders VALUES (); COMMIT";
        let count = || {
            let mut connection = schema.connect();
            for error in calls(15).filter_map(|_| source(&mut connection, insert).err()) {
                assert!(locks, "{prefix}: {error}");
                repeatable(error);
            }
        };
        at_once(12, count);
        let drift = format!("SELECT COUNT(*) - {prefix}get({key}) FROM orders");
        assert_eq!(schema.first::<i64>(&drift), 0, "{prefix}");
    }
}
