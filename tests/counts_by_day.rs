//! Counts by day: the SQL of docs/application.md archives and removes old days while connections count today.

use mysql::Row;
use slotted::package::Package;
use slotted::script;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(old_days_are_archived_and_deleted_while_connections_count)
        .on_servers(a_partition_of_old_days_is_dropped_while_connections_count);
}

const ARTICLES: u32 = 100;

fn package() -> Package {
    keyed(|options| {
        options.subject = records("article_id BIGINT, day DATE".parse().expect("a key"));
        options.table = "view_days".parse().expect("a name");
        options.prefix = "view_day_".parse().expect("a prefix");
    })
}

/// The blocks of the page: calls, reads, the account of the archive, the archive, and partitions.
fn blocks() -> [Vec<String>; 5] {
    let blocks = sql_blocks("docs/application.md", "Counts by day");
    let blocks: Vec<_> = blocks.iter().map(|block| script::statements(block)).collect();
    blocks.try_into().expect("five blocks")
}

/// Counts views of random articles on these days with some connections, while `meanwhile` runs. Returns the number of calls.
fn views(schema: &Schema<'_>, days: &[&str], meanwhile: impl FnOnce()) -> usize {
    let counted = AtomicUsize::new(0);
    let count = |connection: &mut Conn, writer| {
        let day = days[(writer + counted.fetch_add(1, SeqCst)) % days.len()];
        run(connection, &format!("CALL view_day_increment({}, {day})", rand::rng().random_range(0..ARTICLES)));
    };
    beside((0..8).map(|_| schema.connect()), count, || {
        meanwhile();
        until("calls are counted", || counted.load(SeqCst) >= 160);
    });
    counted.into_inner()
}

fn old_days_are_archived_and_deleted_while_connections_count(server: &Server) {
    let schema = server.installed([&package()]);
    let [_, reads, account, archive, _] = blocks();
    let [app, _dba, archivist] = ["app", "dba", "archive"].map(|name| Account::new(&schema, name, "USAGE"));
    schema.run(&grants(&schema, &package()));
    reads.iter().for_each(|read| drop(app.connect().query::<Row, _>(read).expect(read)));
    schema.run(&account.join(";\n").replace("'archive'@'localhost'", &format!("'{}'@'%'", archivist.name)));
    // Each article has 20 slots on days that are old and on days that are kept.
    for age in [400, 92, 91, 90, 1] {
        let row = |row| format!("({}, CURRENT_DATE - INTERVAL {age} DAY, {}, 1)", row / 20, row % 20);
        let rows: Vec<_> = (0..ARTICLES * 20).map(row).collect();
        schema.run(&format!("INSERT INTO view_days VALUES {}", rows.join(", ")));
    }
    let [isolation, store, delete] = &archive[..] else { panic!("{archive:?}") };
    let mut session = archivist.connect();
    run(&mut session, isolation);
    // The transaction of the archive locks nothing that it reads: first increments and those of a row do not wait.
    let yesterday = "CURRENT_DATE - INTERVAL 1 DAY";
    let mut writer = schema.impatient();
    for more in 0..2 {
        run(&mut session, "START TRANSACTION");
        run(&mut session, store);
        for article in 0..ARTICLES + 5 {
            run(&mut writer, &format!("CALL view_day_increment({article}, {yesterday})"));
        }
        run(&mut session, "COMMIT");
        assert_eq!(schema.query::<i64>("SELECT DISTINCT views FROM archived_days WHERE article_id < 100"), [20 + more]);
    }
    let counted = views(&schema, &["CURRENT_DATE"], || {
        // A transaction of another connection that counts today delays no deletion.
        let mut open = schema.after(&["START TRANSACTION", "CALL view_day_increment(0, CURRENT_DATE)"]);
        run(&mut session, "SET SESSION innodb_lock_wait_timeout = 5");
        let mut deletes = || {
            run(&mut session, delete);
            session.affected_rows()
        };
        let deleted = std::iter::repeat_with(&mut deletes).take_while(|rows| *rows > 0).sum::<u64>();
        assert_eq!(deleted, u64::from(3 * ARTICLES * 20));
        run(&mut open, "ROLLBACK");
    });
    let total = |when: &str| -> usize {
        schema.first(&format!("SELECT COALESCE(SUM(count), 0) FROM view_days WHERE day {when}"))
    };
    assert_eq!(total("= CURRENT_DATE"), counted);
    assert_eq!(total("< CURRENT_DATE - INTERVAL 90 DAY"), 0);
    let kept = (2 * ARTICLES * 20 + 2 * (ARTICLES + 5)) as usize;
    assert_eq!(total("BETWEEN CURRENT_DATE - INTERVAL 90 DAY AND CURRENT_DATE - INTERVAL 1 DAY"), kept);
}

fn a_partition_of_old_days_is_dropped_while_connections_count(server: &Server) {
    let schema = server.installed([&package()]);
    schema.run("CALL view_day_add(1, '2026-10-31', 1000)");
    let counted = views(&schema, &["'2026-11-01'", "'2026-11-30'", "'2026-12-01'", "'2027-02-03'"], || {
        let mut connection = schema.connect();
        run_all(&mut connection, &blocks()[4]).expect("the statements of the page");
    });
    let total: usize = schema.first("SELECT CAST(SUM(total) AS SIGNED) FROM view_day_totals");
    assert_eq!(total, counted);
    assert_eq!(schema.first::<i64>("SELECT view_day_get(1, '2026-10-31')"), 0);
    let names = "SELECT PARTITION_NAME FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'view_days' ORDER BY 1";
    assert_eq!(schema.query::<String>(names), ["p2026_11", "p2026_12", "p_next"]);
    // The scripts accept the table with its partitions.
    schema.run(&schema.file(&package(), "create_procedures.sql"));
}
