//! Counts by day: the SQL of docs/counts-by-day.md removes old days while connections count today.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

use mysql::prelude::Queryable;
use rand::RngExt;
use slotted::package::Package;

use crate::support::{Module, Schema, Server, calls, keyed, sql_statements};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(old_days_are_deleted_while_connections_count)
        .on_servers(a_partition_of_old_days_is_dropped_while_connections_count);
}

const PAGE: &str = "docs/counts-by-day.md";
const PAGES: u32 = 100;
const WRITERS: usize = 8;

fn package() -> Package {
    keyed(|options| {
        options.key = "page_id BIGINT, day DATE".parse().expect("a key");
        options.table = "page_views".parse().expect("a name");
        options.prefix = "page_view_".parse().expect("a prefix");
    })
}

/// Counts views of random pages on one of these days with some connections, while `meanwhile` runs. No call returns an
/// error. Returns the number of calls.
fn views(schema: &Schema<'_>, days: &[&str], meanwhile: impl FnOnce()) -> u64 {
    let (counted, done) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (counted, done) = (&counted, &done);
            scope.spawn(move || {
                let mut connection = schema.connect();
                for call in calls(1000) {
                    if done.load(SeqCst) && call > 20 {
                        break;
                    }
                    let (page, day) = (rand::rng().random_range(0..PAGES), days[(writer + call) % days.len()]);
                    connection.query_drop(format!("CALL page_view_increment({page}, {day})")).expect("an increment");
                    counted.fetch_add(1, SeqCst);
                }
            });
        }
        meanwhile();
        done.store(true, SeqCst);
    });
    counted.into_inner()
}

fn old_days_are_deleted_while_connections_count(server: &Server) {
    let schema = server.schema();
    schema.install(&package());
    // Each page has 20 slots on days that are old and on days that are kept.
    for age in [400, 92, 91, 90, 1] {
        let rows: Vec<_> = (0..PAGES * 20)
            .map(|row| format!("({}, CURRENT_DATE - INTERVAL {age} DAY, {}, 1)", row / 20, row % 20))
            .collect();
        schema.run(&format!("INSERT INTO page_views VALUES {}", rows.join(", ")));
    }
    let remove = sql_statements(PAGE, "Delete old days");
    let [isolation, delete] = &remove[..] else { panic!("two statements, not {}", remove.len()) };
    let counted = views(&schema, &["CURRENT_DATE"], || {
        let mut connection = schema.connect();
        // A transaction of another connection that counts today delays no deletion.
        let mut open = schema.connect();
        open.query_drop("START TRANSACTION").expect("a transaction");
        open.query_drop("CALL page_view_increment(0, CURRENT_DATE)").expect("an increment");
        connection.query_drop("SET SESSION innodb_lock_wait_timeout = 5").expect("a timeout");
        connection.query_drop(isolation).expect("an isolation level");
        let mut deleted = 0;
        loop {
            connection.query_drop(delete).expect("a deletion");
            match connection.affected_rows() {
                0 => break,
                rows => deleted += rows,
            }
        }
        assert_eq!(deleted, u64::from(3 * PAGES * 20));
        open.query_drop("ROLLBACK").expect("a rollback");
    });
    let total = |when: &str| -> u64 {
        schema.first(&format!("SELECT COALESCE(SUM(count), 0) FROM page_views WHERE day {when}"))
    };
    assert_eq!(total("= CURRENT_DATE"), counted);
    assert_eq!(total("< CURRENT_DATE - INTERVAL 90 DAY"), 0);
    assert_eq!(
        total("BETWEEN CURRENT_DATE - INTERVAL 90 DAY AND CURRENT_DATE - INTERVAL 1 DAY"),
        u64::from(2 * PAGES * 20)
    );
}

fn a_partition_of_old_days_is_dropped_while_connections_count(server: &Server) {
    let schema = server.schema();
    schema.install(&package());
    schema.run("CALL page_view_add(1, '2026-10-31', 1000)");
    let counted = views(&schema, &["'2026-11-01'", "'2026-11-30'", "'2026-12-01'", "'2027-02-03'"], || {
        let mut connection = schema.connect();
        for statement in sql_statements(PAGE, "Partitions") {
            connection.query_drop(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    });
    let total: u64 = schema.first("SELECT CAST(SUM(total) AS SIGNED) FROM page_view_totals");
    assert_eq!(total, counted);
    assert_eq!(schema.first::<i64>("SELECT page_view_get(1, '2026-10-31')"), 0);
    let partitions = "SELECT COUNT(*) FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = DATABASE() AND PARTITION_NAME IN ('p2026_11', 'p2026_12', 'p_next')";
    assert_eq!(schema.first::<u64>(partitions), 3);
    // The scripts accept the table with its partitions.
    schema.run(&schema.file(&package(), "create_procedures.sql"));
}
