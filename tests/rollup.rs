//! Roll-ups write totals into a column of a parent table. Idle records are compacted.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::{Row, Value};
use mysql::prelude::Queryable;
use rand::RngExt;
use slotted::package::{Package, Servers};

use crate::queries::Queries;
use crate::support::{Module, Schema, Server, calls, error_of, file, keyed, repeatable};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_rollup_after_the_last_increment_is_exact)
        .on_servers(a_rollup_writes_only_rows_that_differ)
        .on_servers(the_next_call_completes_an_aborted_rollup)
        .on_servers(a_rollup_uses_all_columns_of_the_key)
        .on_servers(a_rollup_writes_the_totals_of_every_key_type)
        .on_servers(a_rollup_neither_waits_for_slots_nor_locks_them)
        .on_servers(a_rollup_skips_locked_rows_and_delays_no_writer)
        .on_servers(a_rollup_overwrites_no_counts_that_are_not_imported)
        .on_servers(a_cut_over_at_any_time_loses_no_count)
        .on_servers(a_batch_of_long_keys_is_complete)
        .on_servers(other_options_leave_no_rollup)
        .waits()
        .on_servers(the_event_calls_the_rollup)
        .on_servers(invalid_arguments_are_rejected_and_change_nothing)
        .waits()
        .on_servers(only_idle_records_are_compacted)
        .on_servers(a_batch_reads_only_its_own_records)
        .alone()
        .on_servers(concurrent_rollups_never_overwrite_a_newer_total);
}

const CALL: &str = "CALL slotted_counter_rollup";

/// The table of the totals that the roll-up has written.
const WRITTEN: &str = "slotted_counter_rollup_repositories_download_count";

/// The error of a roll-up that would overwrite counts.
const NOT_IMPORTED: u16 = 30013;

fn package() -> Package {
    keyed(|options| {
        options.rollups = vec!["record_type=123:repositories.id:download_count".parse().expect("a roll-up")];
    })
}

/// A schema with the package and a parent table with the ids 1 to `rows`.
fn installed(server: &Server, rows: u32) -> Schema<'_> {
    let schema = server.schema();
    schema.install(&package());
    schema.run(
        "CREATE TABLE repositories (id BIGINT PRIMARY KEY, name VARCHAR(30) NOT NULL, download_count INT NOT NULL \
         DEFAULT 0) ENGINE = InnoDB; CREATE TABLE written (id BIGINT) ENGINE = InnoDB",
    );
    let rows: Vec<_> = (1..=rows).map(|id| format!("({id}, 'name {id}')")).collect();
    for rows in rows.chunks(10_000) {
        schema.run(&format!("INSERT INTO repositories (id, name) VALUES {}", rows.join(", ")));
    }
    schema.run("CREATE TRIGGER writes AFTER UPDATE ON repositories FOR EACH ROW INSERT INTO written VALUES (NEW.id)");
    schema
}

/// The totals in the parent table that are not 0.
fn columns(schema: &Schema<'_>) -> Vec<(i64, i64)> {
    let query = "SELECT id, download_count FROM repositories WHERE download_count <> 0 ORDER BY id";
    schema.connect().query(query).expect("columns")
}

/// The number of roll-ups on this server that wait for a lock. Only one test at a time may query it: MariaDB refreshes
/// INNODB_TRX only if no session has read it for 0.1 s.
fn lock_waits(schema: &Schema<'_>) -> u64 {
    schema.first(
        "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE \
         '%rollup%'",
    )
}

/// Calls the roll-up. Returns the number of rows that it has written, which a trigger counts.
fn roll_up(schema: &Schema<'_>, records: &str) -> u64 {
    let written = "SELECT COUNT(*) FROM written";
    let before: u64 = schema.first(written);
    schema.run(&format!("{CALL}({records})"));
    schema.first::<u64>(written) - before
}

const WRONG: &str = "SELECT COUNT(*) FROM repositories WHERE download_count <> slotted_counter_get(123, id)";

fn a_rollup_after_the_last_increment_is_exact(server: &Server) {
    const ROWS: u32 = 100_000;
    const WRITERS: usize = 32;
    const CALLS: usize = 250;
    let schema = installed(server, ROWS);
    let (done, counted, deadlocks) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let roller = scope.spawn(|| {
            let mut connection = schema.connect();
            while !done.load(SeqCst) {
                connection.query_drop(format!("{CALL}(NULL)")).expect("a roll-up");
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = schema.connect();
                    let mut random = rand::rng();
                    for _ in calls(CALLS) {
                        counted.fetch_add(1, SeqCst);
                        // 99 of 100 calls increment 1 % of the records.
                        let hot = random.random_bool(0.99);
                        let record = random.random_range(1..=if hot { ROWS / 100 } else { ROWS });
                        while let Err(error) =
                            connection.exec_drop("CALL slotted_counter_increment(123, ?)", (record,))
                        {
                            deadlocks.fetch_add(u64::from(repeatable(error) == 1213), SeqCst);
                        }
                    }
                })
            })
            .collect();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, SeqCst);
        roller.join().expect("the roll-up");
        written.into_iter().for_each(|result| result.expect("a writer"));
    });
    assert_eq!(deadlocks.into_inner(), 0, "a roll-up locks no slot");
    let meanwhile: u64 = schema.first("SELECT COUNT(*) FROM written");
    assert!(meanwhile > 0, "the roll-up has run concurrently with the increments");

    let last = roll_up(&schema, "NULL");
    let records: u64 = schema.first("SELECT COUNT(*) FROM slotted_counter_totals");
    assert_eq!(schema.first::<u64>(WRONG), 0);
    let sum: u64 = schema.first("SELECT CAST(SUM(download_count) AS UNSIGNED) FROM repositories");
    assert_eq!(sum, counted.into_inner());
    assert_eq!(roll_up(&schema, "NULL"), 0, "no row differs");
    eprintln!(
        "{}: {sum} increments of {records} records of {ROWS}, {meanwhile} rows written under load, {last} by the last call",
        server.version
    );
}

fn a_rollup_writes_only_rows_that_differ(server: &Server) {
    for batch in ["NULL", "1", "2", "3", "10000"] {
        let schema = installed(server, 9);
        schema.run("UPDATE repositories SET download_count = 77 WHERE id NOT IN (2, 4, 9)");
        schema.run("CALL slotted_counter_add(123, 2, 5); CALL slotted_counter_add(123, 4, 77)");
        schema.run("CALL slotted_counter_add(123, 9, -8); CALL slotted_counter_increment(123, 2)");
        // Records without a row in the parent table: an unknown id, and another record_type.
        schema.run("CALL slotted_counter_add(123, 500, 9); CALL slotted_counter_add(124, 3, 9)");
        assert_eq!(roll_up(&schema, batch), 3, "{batch}");
        let mut connection = schema.connect();
        let rows: Vec<(i64, i64)> =
            connection.query("SELECT id, download_count FROM repositories WHERE download_count <> 77").expect("rows");
        assert_eq!(rows, [(2, 6), (9, -8)], "{batch}: rows without a record keep their value");
        assert_eq!(roll_up(&schema, batch), 0);
        schema.run("CALL slotted_counter_reset(123, 4, 0); UPDATE repositories SET download_count = -9 WHERE id = 9");
        assert_eq!(roll_up(&schema, batch), 2);
        assert_eq!(schema.first::<(i64, i64)>("SELECT MIN(download_count), MAX(download_count) FROM repositories"), (-8, 77));
    }
    assert_eq!(roll_up(&installed(server, 3), "NULL"), 0, "there is no record");
}

fn the_next_call_completes_an_aborted_rollup(server: &Server) {
    let schema = installed(server, 9);
    for record in 1..=9 {
        schema.run(&format!("CALL slotted_counter_add(123, {record}, {record})"));
    }
    // With batches of two records, the second row of the third batch fails.
    schema.run("UPDATE slotted_counters SET count = 3000000000 WHERE record_id = 6");
    let failed = schema.connect().query_drop(format!("{CALL}(2)"));
    assert_eq!(error_of(failed).0, 1264, "download_count is INT");
    let mut connection = schema.connect();
    let written: Vec<i64> = connection.query("SELECT id FROM repositories WHERE download_count <> 0").expect("rows");
    assert_eq!(written, [1, 2, 3, 4], "the complete batches");
    schema.run("UPDATE slotted_counters SET count = 6 WHERE record_id = 6");
    assert_eq!(roll_up(&schema, "2"), 5);
    assert_eq!(schema.first::<u64>(WRONG), 0);
}

fn a_rollup_uses_all_columns_of_the_key(server: &Server) {
    let package = keyed(|options| {
        options.key = "site BINARY(2), url VARCHAR(100), kind TINYINT".parse().expect("a key");
        options.rollups = ["site=0x0001,kind=1:pages.url:views", "site=0x0001,kind=2:pages.url:`likes, all`"]
            .map(|rollup| rollup.parse().expect("a roll-up"))
            .into();
    });
    let schema = server.schema();
    schema.install(&package);
    schema.run(
        "CREATE TABLE pages (url VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, \
         views BIGINT, `likes, all` BIGINT) ENGINE = InnoDB",
    );
    schema.run("INSERT INTO pages VALUES ('/', NULL, NULL), ('/about', 0, NULL), ('/it''s', 4, NULL)");
    for (site, url, kind, amount) in
        [(1, "/", 1, 10), (1, "/", 2, 20), (2, "/", 1, 99), (1, "/ABOUT", 1, 30), (1, "/it''s", 2, 40)]
    {
        schema.run(&format!("CALL slotted_counter_add(0x000{site}, '{url}', {kind}, {amount})"));
    }
    for batch in ["1", "NULL"] {
        schema.run(&format!("{CALL}({batch})"));
        let mut connection = schema.connect();
        let rows: Vec<(String, Option<i64>, Option<i64>)> =
            connection.query("SELECT * FROM pages ORDER BY url").expect("rows");
        let rows: Vec<_> = rows.iter().map(|(url, views, likes)| (url.as_str(), *views, *likes)).collect();
        assert_eq!(
            rows,
            [("/", Some(10), Some(20)), ("/about", Some(30), None), ("/it's", Some(4), Some(40))],
            "{batch}"
        );
    }
}

fn a_rollup_writes_the_totals_of_every_key_type(server: &Server) {
    let values = |values: &[&'static str]| values.to_vec();
    for (kind, values) in [
        ("TINYINT UNSIGNED", values(&["0", "7", "255"])),
        ("BIGINT UNSIGNED", values(&["0", "7", "18446744073709551615"])),
        ("YEAR", values(&["1999", "2026", "2155"])),
        ("DATE", values(&["'2026-11-23'", "'1999-12-31'", "'2026-01-01'"])),
        ("DATETIME", values(&["'2026-11-23 10:00:00'", "'1999-12-31 23:59:59'", "'2026-11-23 10:00:01'"])),
        // By text, the order is another one.
        ("ENUM('z','b','it''s','a')", values(&["'b'", "'a'", "'z'", "'it''s'"])),
        ("VARCHAR(20)", values(&["'b'", "'a'", "'it''s'"])),
        ("BINARY(2)", values(&["0x0001", "0xff00"])),
        ("UUID", values(&["'6ccd780c-baba-1026-9564-5b8c656024db'", "'00000000-0000-1000-0000-00000000000f'"])),
    ] {
        if kind == "UUID" && server.is_mysql() {
            continue;
        }
        let package = keyed(|options| {
            options.key = format!("site {kind}, record {kind}").parse().expect("a key");
            options.rollups = vec![format!("site={}:parents.id:n", values[0]).parse().expect("a roll-up")];
            options.servers = if kind == "UUID" { Servers::Mariadb } else { Servers::Both };
        });
        let schema = server.schema();
        schema.install(&package);
        let text = if kind.starts_with("ENUM") || kind.starts_with("VARCHAR") {
            "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
        } else {
            ""
        };
        schema.run(&format!("CREATE TABLE parents (id {kind} {text} PRIMARY KEY, n BIGINT NOT NULL DEFAULT 0)"));
        for (at, value) in values.iter().enumerate() {
            schema.run(&format!("INSERT INTO parents (id) VALUES ({value})"));
            schema.run(&format!("CALL slotted_counter_add({}, {value}, {})", values[0], 10 + at));
            schema.run(&format!("CALL slotted_counter_add({}, {value}, 500)", values[1]));
        }
        for more in [0, 100] {
            // Batches of one record.
            schema.run("CALL slotted_counter_rollup(1)");
            for (at, value) in values.iter().enumerate() {
                let total: usize = schema.first(&format!("SELECT n FROM parents WHERE id = {value}"));
                assert_eq!(total, 10 + at + more, "{kind}: {value}");
                schema.run(&format!("CALL slotted_counter_add({}, {value}, 100)", values[0]));
            }
        }
        // The statements of queries.sql do the same.
        let queries = Queries::of(&package);
        let mut connection = schema.connect();
        let least = if kind.starts_with("ENUM") { "MIN(CONCAT(id))" } else { "MIN(id)" };
        let first: Option<Value> = connection.query_first(format!("SELECT {least} FROM parents")).expect("a value");
        let page: Vec<(Value, i64)> = queries.rows(&mut connection, "rollup_parents_n_page", vec![first.expect("a row")]);
        let mut totals: Vec<_> = page.iter().map(|(_, total)| *total).collect();
        totals.sort_unstable();
        let expected: Vec<_> = (0..values.len() as i64).map(|at| 210 + at).collect();
        assert_eq!(totals, expected, "{kind}: {page:?}");
        // An idle record is compacted.
        schema.run("CALL slotted_counter_compact_idle(0, NULL)");
        assert_eq!(schema.first::<usize>("SELECT COUNT(*) FROM slotted_counters"), 2 * values.len(), "{kind}");
    }
}

fn a_rollup_neither_waits_for_slots_nor_locks_them(server: &Server) {
    let schema = installed(server, 9);
    schema.run("CALL slotted_counter_add(123, 1, 5); CALL slotted_counter_add(123, 2, 5)");
    let mut writer = schema.connect();
    writer.query_drop("START TRANSACTION").expect("a transaction");
    writer.query_drop("CALL slotted_counter_increment(123, 1)").expect("an increment");
    for isolation in ["REPEATABLE READ", "READ COMMITTED", "SERIALIZABLE"] {
        let mut roller = schema.isolated(isolation);
        roller.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a time-out");
        schema.run("UPDATE repositories SET download_count = 0");
        roller.query_drop(format!("{CALL}(NULL)")).expect("no wait");
        assert_eq!(columns(&schema), [(1, 5), (2, 5)], "{isolation}");
    }
}

fn a_rollup_skips_locked_rows_and_delays_no_writer(server: &Server) {
    for (rows, id) in [(2, "PRIMARY KEY"), (3, "NOT NULL UNIQUE"), (9, "PRIMARY KEY"), (2000, "NOT NULL UNIQUE")] {
        let schema = server.schema();
        schema.install(&package());
        let primary = if id == "PRIMARY KEY" { "" } else { "number INT AUTO_INCREMENT PRIMARY KEY," };
        schema.run(&format!(
            "CREATE TABLE repositories ({primary} id BIGINT {id}, name VARCHAR(30), download_count INT) ENGINE = InnoDB"
        ));
        let ids: Vec<_> = (1..=rows).map(|id| format!("({id})")).collect();
        schema.run(&format!("INSERT INTO repositories (id) VALUES {}", ids.join(", ")));
        schema.run("INSERT INTO slotted_counters SELECT 123, id, 0, 5 FROM repositories");
        let mut owner = schema.connect();
        owner.query_drop("START TRANSACTION").expect("a transaction");
        owner.query_drop("UPDATE repositories SET name = 'mine' WHERE id = 2").expect("an update");
        for batch in ["1", "NULL"] {
            let mut roller = schema.connect();
            roller.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a time-out");
            roller.query_drop(format!("{CALL}({batch})")).expect("no wait");
            assert_eq!(columns(&schema).len(), rows - 1, "{rows} rows: all but the locked one");
            let mut writer = schema.connect();
            writer.query_drop("SET SESSION innodb_lock_wait_timeout = 1").expect("a time-out");
            writer.query_drop("UPDATE repositories SET name = 'other' WHERE id <> 2 LIMIT 1").expect("no wait");
        }
        owner.query_drop("COMMIT").expect("a commit");
        schema.run(&format!("{CALL}(NULL)"));
        assert_eq!(columns(&schema).len(), rows, "{rows} rows");
    }
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "the condition is false for 60 s");
        // MariaDB refreshes its tables of transactions only if no session has read them for 0.1 s.
        thread::sleep(Duration::from_millis(150));
    }
}

fn concurrent_rollups_never_overwrite_a_newer_total(server: &Server) {
    let schema = installed(server, 9);
    schema.run("CALL slotted_counter_add(123, 2, 5); CALL slotted_counter_add(123, 3, 5)");
    let mut other = schema.connect();
    other.query_drop("START TRANSACTION").expect("a transaction");
    other.query_drop(format!("INSERT INTO {WRITTEN} VALUES (2, 6)")).expect("an insert");
    thread::scope(|scope| {
        // The roll-up has read the total 5 and waits for the row of the other one, which has read 6 and writes it.
        let first = scope.spawn(|| schema.run(&format!("{CALL}(NULL)")));
        wait_until(|| lock_waits(&schema) == 1);
        schema.run("CALL slotted_counter_increment(123, 2)");
        other.query_drop("UPDATE repositories SET download_count = 6 WHERE id = 2").expect("an update");
        other.query_drop("COMMIT").expect("a commit");
        first.join().expect("the roll-up");
    });
    assert_eq!(columns(&schema), [(2, 6), (3, 5)]);
}

fn the_event_calls_the_rollup(server: &Server) {
    let package = keyed(|options| {
        options.rollups = vec!["record_type=123:repositories.id:download_count".parse().expect("a roll-up")];
        options.rollup_every = Some("1 SECOND".parse().expect("an interval"));
    });
    let schema = server.schema();
    schema.run("CREATE TABLE repositories (id BIGINT PRIMARY KEY, download_count INT NOT NULL DEFAULT 0)");
    schema.run("INSERT INTO repositories VALUES (1, 0)");
    schema.install(&package);
    let scheduler: String = schema.first("SELECT @@GLOBAL.event_scheduler");
    schema.run("SET GLOBAL event_scheduler = ON");
    let status = "SELECT STATUS FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()";
    assert_eq!(schema.first::<String>(status), "DISABLED", "until the import");
    schema.run(&file(&package, "import.sql"));
    schema.run(&file(&package, "create_procedures.sql"));
    assert_eq!(schema.first::<String>(status), "ENABLED", "an upgrade keeps the event enabled");
    for total in [1, 2] {
        schema.run("CALL slotted_counter_increment(123, 1)");
        wait_until(|| schema.first::<i64>("SELECT download_count FROM repositories") == total);
    }
    schema.run(&format!("SET GLOBAL event_scheduler = {scheduler}"));
    schema.run(&file(&package, "uninstall.sql"));
    let left = "SELECT (SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()) \
                + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())";
    assert_eq!(schema.first::<u64>(left), 0);
}

fn other_options_leave_no_rollup(server: &Server) {
    let with = keyed(|options| {
        options.rollups = package().options.rollups;
        options.rollup_every = Some("1 HOUR".parse().expect("an interval"));
    });
    let without = keyed(|options| options.function = false);
    let left = "SELECT CONCAT((SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()), ' ', \
                (SELECT GROUP_CONCAT(ROUTINE_NAME) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = \
                DATABASE() AND ROUTINE_NAME REGEXP 'get$|rollup$'))";
    let any = "SELECT (SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()) \
               + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())";
    for end in ["create_procedures.sql", "uninstall.sql"] {
        let schema = installed(server, 1);
        schema.run(&file(&with, "create_procedures.sql"));
        assert_eq!(schema.first::<String>(left), "1 slotted_counter_get,slotted_counter_rollup");
        schema.run(&file(&package(), "create_procedures.sql"));
        assert_eq!(schema.first::<String>(left), "0 slotted_counter_get,slotted_counter_rollup", "no event");
        schema.run(&file(&with, "create_procedures.sql"));
        schema.run(&file(&without, end));
        assert_eq!(schema.first::<u64>(any), if end == "uninstall.sql" { 0 } else { without.routines().count() as u64 }, "{end}");
    }
}

fn a_rollup_overwrites_no_counts_that_are_not_imported(server: &Server) {
    for (key, same, ids) in [
        ("record_type INT, record_id BIGINT", "record_type=123:", ["1", "2", "3", "4", "5"]),
        ("url VARCHAR(255)", "", ["'/'", "'/it''s'", "'/\u{fc}'", "''", "'/5'"]),
        ("id BINARY(2), site TINYINT UNSIGNED", "site=200:", ["0x0001", "0x2700", "0x5c5c", "0xffff", "0x0005"]),
    ] {
        let package = keyed(|options| {
            options.key = key.parse().expect("a key");
            options.rollups = vec![format!("{same}articles.id:views").parse().expect("a roll-up")];
        });
        let schema = server.schema();
        schema.install(&package);
        let column = package.options.rollups[0].record(&package.options.key).expect("a column").kind.text();
        schema.run(&format!(
            "CREATE TABLE articles (id {column} PRIMARY KEY, views BIGINT) ENGINE = InnoDB \
             CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
        ));
        for (id, views) in ids.iter().zip(["50000", "7", "0", "NULL", "-5"]) {
            schema.run(&format!("INSERT INTO articles VALUES ({id}, {views})"));
        }
        let call = |routine: &str, id: usize, more: &str| {
            let key = package.options.key.0.iter().map(|column| match column.name.name() {
                "record_type" => "123",
                "site" => "200",
                _ => ids[id - 1],
            });
            let key: Vec<_> = key.collect();
            schema.run(&format!("CALL slotted_counter_{routine}({}{more})", key.join(", ")));
        };
        let views = || {
            let list = ids.join(", ");
            let query = format!("SELECT views FROM articles ORDER BY FIELD(id, {list})");
            schema.connect().query::<Option<i64>, _>(query).expect("views")
        };
        let roll_up = || schema.connect().query_drop(format!("{CALL}(NULL)"));
        let rejected = || assert_eq!(error_of(roll_up()).0, NOT_IMPORTED, "{key}");
        let import = || schema.run(&file(&package, "import.sql"));
        let imported = |expected: [i64; 5]| {
            roll_up().expect("a roll-up");
            assert_eq!(views(), expected.map(Some), "{key}");
        };
        let before = views();
        for id in [1, 3, 4] {
            call("increment", id, "");
            let _ = roll_up();
        }
        rejected();
        assert_eq!(views(), before, "{key}: nothing has changed");
        import();
        import();
        imported([50_001, 7, 1, 1, -5]);
        // A writer of the column that does not call the routines yet.
        schema.run(&format!("UPDATE articles SET views = views + 2 WHERE id = {}", ids[0]));
        call("add", 1, ", 100");
        rejected();
        import();
        imported([50_103, 7, 1, 1, -5]);
        // Counts that go down.
        call("add", 1, ", -50000");
        call("reset", 2, ", 3");
        call("delete", 3, "");
        call("add", 3, ", -1");
        imported([103, 3, -1, 1, -5]);
        call("add", 3, ", 1");
        imported([103, 3, 0, 1, -5]);
        // The count of a column that was not imported equals the total by chance.
        call("delete", 4, "");
        schema.run("DELETE FROM slotted_counter_rollup_articles_views WHERE total = 1");
        call("increment", 4, "");
        imported([103, 3, 0, 1, -5]);
        call("increment", 4, "");
        rejected();
        import();
        imported([103, 3, 0, 3, -5]);
        // The counters are right, and the column is not.
        schema.run(&format!("UPDATE articles SET views = 900 WHERE id = {}", ids[1]));
        rejected();
        schema.run(&format!("UPDATE articles SET views = 0 WHERE id = {}", ids[1]));
        imported([103, 3, 0, 3, -5]);
    }
}

fn a_batch_of_long_keys_is_complete(server: &Server) {
    const RECORDS: u32 = 3000;
    let package = keyed(|options| {
        options.key = "url VARCHAR(700)".parse().expect("a key");
        options.rollups = vec!["pages.url:views".parse().expect("a roll-up")];
    });
    let schema = server.schema();
    schema.install(&package);
    schema.run("CREATE TABLE pages (url VARCHAR(700) COLLATE utf8mb4_general_ci PRIMARY KEY, views BIGINT) CHARSET utf8mb4");
    let urls: Vec<_> = (0..RECORDS).map(|number| format!("(CONCAT(REPEAT('/page', 138), {number}), 0, 1)")).collect();
    schema.run(&format!("INSERT INTO slotted_counters VALUES {}", urls.join(", ")));
    schema.run("INSERT INTO pages SELECT url, NULL FROM slotted_counters");
    schema.run("CALL slotted_counter_rollup(10000)");
    assert_eq!(schema.first::<u32>("SELECT COUNT(*) FROM pages WHERE views = 1"), RECORDS);
}

/// Writers of a column go over to the routines one after the other. A roll-up and the import at any time lose no count.
fn a_cut_over_at_any_time_loses_no_count(server: &Server) {
    const ROWS: usize = 10_000;
    const WRITERS: usize = 16;
    let package = keyed(|options| {
        options.key = "article_id BIGINT".parse().expect("a key");
        options.rollups = vec!["articles.id:views".parse().expect("a roll-up")];
    });
    // The documented order, and an import when the first writers have gone over.
    for imports in [&[WRITERS][..], &[2, 9, WRITERS]] {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB");
        let rows: Vec<_> = (1..=ROWS).map(|id| format!("({id}, {})", id * 7 % 50)).collect();
        schema.run(&format!("INSERT INTO articles VALUES {}", rows.join(", ")));
        schema.install(&package);
        let (moved, done) = (AtomicUsize::new(0), AtomicBool::new(false));
        let counted: Vec<_> = (0..=ROWS).map(|_| AtomicU64::new(0)).collect();
        let (mut rejected, mut rolled) = (0, 0);
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (schema, moved, done, counted) = (&schema, &moved, &done, &counted);
                scope.spawn(move || {
                    let mut connection = schema.connect();
                    let mut random = rand::rng();
                    while !done.load(SeqCst) {
                        let hot = random.random_bool(0.8);
                        let id = random.random_range(1..=if hot { 5 } else { ROWS });
                        let statement = if moved.load(SeqCst) > writer {
                            format!("CALL slotted_counter_increment({id})")
                        } else {
                            format!("UPDATE articles SET views = views + 1 WHERE id = {id}")
                        };
                        match connection.query_drop(statement) {
                            Ok(()) => counted[id].fetch_add(1, SeqCst),
                            Err(error) => u64::from(repeatable(error)),
                        };
                        // Leaves the roll-up and the import a part of the processor.
                        thread::sleep(Duration::from_millis(5));
                    }
                });
            }
            let mut connection = schema.connect();
            for now in 1..=WRITERS {
                moved.store(now, SeqCst);
                thread::sleep(Duration::from_millis(100));
                if imports.contains(&now) {
                    schema.run(&file(&package, "import.sql"));
                }
                match connection.query_drop(format!("{CALL}(NULL)")) {
                    Ok(()) => rolled += 1,
                    Err(error) => {
                        assert_eq!(error_of::<()>(Err(error)).0, NOT_IMPORTED);
                        rejected += 1;
                    }
                }
            }
            done.store(true, SeqCst);
        });
        // The last UPDATE of a writer can be later than the import.
        schema.run(&file(&package, "import.sql"));
        schema.run(&format!("{CALL}(NULL)"));
        let mut connection = schema.connect();
        let views: Vec<(usize, u64)> = connection.query("SELECT id, views FROM articles").expect("views");
        let lost: Vec<_> = views
            .iter()
            .filter(|(id, views)| *views != (id * 7 % 50) as u64 + counted[*id].load(SeqCst))
            .collect();
        assert!(lost.is_empty(), "{lost:?}");
        let calls: u64 = counted.iter().map(|count| count.load(SeqCst)).sum();
        eprintln!(
            "{}, import after {imports:?} of {WRITERS} writers: {calls} counts of {ROWS} rows, {rejected} roll-ups rejected, {rolled} not",
            server.version
        );
        assert!(imports.len() > 1 || rejected >= WRITERS - 1, "no roll-up before the import");
    }
}

fn invalid_arguments_are_rejected_and_change_nothing(server: &Server) {
    let schema = installed(server, 3);
    schema.run("CALL slotted_counter_add(123, 2, 5)");
    schema.run("INSERT INTO slotted_counters VALUES (123, 2, 200, 1), (123, 2, 201, 1)");
    let tables = ["repositories", "slotted_counters"].map(|table| table.parse().expect("a name"));
    let before = tables.each_ref().map(|table| schema.rows(table));
    let rollup = "slotted_counter_rollup";
    let idle = "slotted_counter_compact_idle";
    for mode in ["DEFAULT", "''"] {
        let mut connection = schema.connect();
        connection.query_drop(format!("SET SESSION sql_mode = {mode}")).expect("a mode");
        for (routine, arguments, number, message) in [
            (rollup, "0", 30012, "p_records must be between 1 and 10000"),
            (rollup, "-1", 30012, "p_records must be between 1 and 10000"),
            (rollup, "10001", 30012, "p_records must be between 1 and 10000"),
            (idle, "NULL, 1", 30011, "p_seconds must be between 0 and 86400"),
            (idle, "-1, 1", 30011, "p_seconds must be between 0 and 86400"),
            (idle, "86401, 1", 30011, "p_seconds must be between 0 and 86400"),
            (idle, "0, 0", 30012, "p_records must be between 1 and 10000"),
            (idle, "0, 10001", 30012, "p_records must be between 1 and 10000"),
        ] {
            let got = error_of(connection.query::<Row, _>(format!("CALL {routine}({arguments})")));
            assert_eq!(got, (number, format!("{routine}: {message}")), "{mode}: {arguments}");
            assert_eq!(tables.each_ref().map(|table| schema.rows(table)), before, "{mode}: {routine}({arguments})");
        }
    }
    schema.run("DROP TABLE repositories");
    assert_eq!(error_of(schema.connect().query_drop(format!("{CALL}(NULL)"))).0, 1146, "no such table");
}

fn only_idle_records_are_compacted(server: &Server) {
    let schema = server.schema();
    schema.install(&keyed(|_| {}));
    let rows: Vec<_> = (1..=5).flat_map(|record| [0, 7, 9].map(|slot| format!("(1, {record}, {slot}, {record})"))).collect();
    schema.run(&format!("INSERT INTO slotted_counters VALUES (1, 9, 4, 4), {}", rows.join(", ")));
    let busy = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut connection = schema.connect();
            while busy.load(SeqCst) {
                connection.query_drop("CALL slotted_counter_increment(1, 3)").expect("an increment");
                thread::sleep(Duration::from_millis(5));
            }
        });
        let spread = "SELECT COUNT(*) FROM slotted_counter_totals WHERE slots > 1";
        schema.run("CALL slotted_counter_compact_idle(2, 2)");
        assert_eq!(schema.first::<u64>(spread), 3, "at most p_records are compacted");
        schema.run("CALL slotted_counter_compact_idle(2, NULL)");
        busy.store(false, SeqCst);
        assert_eq!(schema.first::<u64>(spread), 1, "the record that is incremented is not compacted");
    });
    let mut connection = schema.connect();
    let totals: Vec<(i64, i64, i64)> = connection
        .query("SELECT record_id, slots, total FROM slotted_counter_totals WHERE record_id <> 3 ORDER BY record_id")
        .expect("totals");
    assert_eq!(totals, [(1, 1, 3), (2, 1, 6), (4, 1, 12), (5, 1, 15), (9, 1, 4)]);
    assert!(schema.first::<u64>("SELECT COUNT(*) FROM slotted_counters WHERE record_id = 3") > 2);
}

fn a_batch_reads_only_its_own_records(server: &Server) {
    let schema = installed(server, 2000);
    schema.run("INSERT INTO slotted_counters SELECT 123, id, 0, 1 FROM repositories");
    schema.run("INSERT INTO slotted_counters SELECT 200, id, 0, 1 FROM repositories");
    schema.run("ANALYZE TABLE slotted_counters; ANALYZE TABLE repositories");
    let mut connection = schema.connect();
    // The 2,000 records are 20 batches. If each batch read all following records, the call would read over 20,000 rows.
    connection.query_drop(format!("{CALL}(100)")).expect("a call");
    connection.query_drop("FLUSH STATUS").expect("flush");
    connection.query_drop(format!("{CALL}(100)")).expect("a call");
    let rows: Vec<(String, u64)> = connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'").expect("status");
    let reads: u64 = rows.iter().map(|(_, count)| count).sum();
    // For each record, a read to find the batch, one for the sum, two in temporary tables, and one in the parent table.
    assert!(reads < 16_000, "{reads} reads for 2,000 records");
}
