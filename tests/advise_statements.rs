//! `slotted advise` reads what statements do. Each statement gets advice that keeps the rule of the application: the sums are
//! exact, and a limit is never exceeded, before, during and after the advice is followed.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use serde_json::Value;

use crate::advise::{advised_in, printed, url};
use crate::support::{Module, Schema, Server, bounded, package, repeatable};

pub fn promises(mut module: Module<'_>) {
    module
        .alone()
        .waits()
        .on_servers(each_statement_gets_the_advice_that_keeps_its_rule)
        .waits()
        .on_families(the_waits_of_a_row_on_several_nodes_add_up);
}

/// A statement of an application, and what it does with the row 7 of the table `{t}`.
#[derive(Clone, Copy)]
struct Said {
    sql: &'static str,
    /// The values of its placeholders, if the driver prepares it.
    values: &'static [i64],
    /// What it adds to columns, if it changes a row.
    adds: &'static [(&'static str, i64)],
}

/// The rule of the application for a column.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// Each change counts.
    Sum,
    /// Its value does not fall below 0.
    Least,
    /// Its value does not exceed `LIMIT`.
    Most,
}

/// Statements for one row, and the advice.
enum Case {
    /// Counters replace the statements. The rules of the columns.
    Replaced(&'static [Said], &'static [(&'static str, Rule)]),
    /// The advice is to inspect, with a reason that contains this text.
    Inspect(&'static [&'static str], &'static str),
}

const fn said(sql: &'static str, adds: &'static [(&'static str, i64)]) -> Said {
    Said { sql, values: &[], adds }
}

const fn prepared(sql: &'static str, values: &'static [i64], adds: &'static [(&'static str, i64)]) -> Said {
    Said { sql, values, adds }
}

/// The limit of all rows, and the stock of a row before anything is taken.
const LIMIT: i64 = 60;

use Case::{Inspect, Replaced};
use Rule::{Least, Most, Sum};

const HITS: &[(&str, Rule)] = &[("hits", Sum)];
const STOCK: &[(&str, Rule)] = &[("stock", Least)];
const USED: &[(&str, Rule)] = &[("used", Most)];

const CASES: &[Case] = &[
    // Django: F()
    Replaced(&[said("UPDATE `{t}` SET `hits` = (`{t}`.`hits` + 1) WHERE `{t}`.`id` = 7", &[("hits", 1)])], HITS),
    Replaced(&[said("UPDATE `{t}` SET `hits` = (COALESCE(`{t}`.`hits`, 0) + 1) WHERE `{t}`.`id` = 7", &[("hits", 1)])], HITS),
    Replaced(&[said("UPDATE `{t}` SET `stock` = (`{t}`.`stock` - 2) WHERE (`{t}`.`id` = 7 AND `{t}`.`stock` >= 2)", &[("stock", -2)])], STOCK),
    Replaced(&[said("UPDATE `{t}` SET `used` = (`{t}`.`used` + 1) WHERE (`{t}`.`id` = 7 AND `{t}`.`used` < (`{t}`.`max_uses`))", &[("used", 1)])], USED),
    // ActiveRecord: increment_counter, update_counters with touch, update_all, upsert_all
    Replaced(&[said("UPDATE `{t}` SET `{t}`.`hits` = COALESCE(`{t}`.`hits`, 0) + 1 WHERE `{t}`.`id` = 7", &[("hits", 1)])], HITS),
    Replaced(
        &[said(
            "UPDATE `{t}` SET `{t}`.`hits` = COALESCE(`{t}`.`hits`, 0) - 1, `{t}`.`updated_at` = '2026-11-23 10:20:30' WHERE `{t}`.`id` = 7 /*application:Shop*/",
            &[("hits", -1)],
        )],
        HITS,
    ),
    Replaced(&[said("UPDATE `{t}` SET hits = hits + 1 WHERE `{t}`.`id` IN (7)", &[("hits", 1)])], HITS),
    Replaced(
        &[said("INSERT INTO `{t}` (`id`,`hits`) VALUES (7, 1) ON DUPLICATE KEY UPDATE `hits`=`{t}`.`hits`+VALUES(`hits`)", &[("hits", 1)])],
        HITS,
    ),
    // Eloquent: increment, decrement, upsert
    Replaced(
        &[said("update `{t}` set `hits` = `hits` + 1, `{t}`.`updated_at` = '2026-11-23 10:20:30' where `id` = 7", &[("hits", 1)])],
        HITS,
    ),
    Replaced(&[prepared("update `{t}` set `hits` = `hits` - 1, `{t}`.`updated_at` = NOW() where `id` = ?", &[7], &[("hits", -1)])], HITS),
    Replaced(
        &[said("insert into `{t}` (`id`, `hits`) values (7, 3) on duplicate key update `hits` = `hits` + values(`hits`)", &[("hits", 3)])],
        HITS,
    ),
    // Hibernate, JPQL and native
    Replaced(&[prepared("update {t} p1_0 set p1_0.hits=(p1_0.hits+1) where p1_0.id=?", &[7], &[("hits", 1)])], HITS),
    Replaced(
        &[prepared("/* update Page p set p.hits = p.hits + 1 */ update {t} set hits=(hits+?) where id=?", &[2, 7], &[("hits", 2)])],
        HITS,
    ),
    // Prisma, TypeORM, Sequelize, SQLAlchemy, Doctrine, Ecto
    Replaced(
        &[prepared("UPDATE `{s}`.`{t}` SET `hits` = (`{s}`.`{t}`.`hits` + ?) WHERE (`{s}`.`{t}`.`id` = ? AND 1=1)", &[1, 7], &[("hits", 1)])],
        HITS,
    ),
    Replaced(&[prepared("UPDATE `{t}` SET `hits` = hits + 1 WHERE `id` IN (?)", &[7], &[("hits", 1)])], HITS),
    Replaced(
        &[said("UPDATE `{t}` SET `hits` = `hits` + 1, `updated_at` = CURRENT_TIMESTAMP WHERE `id` = 7", &[("hits", 1)])],
        HITS,
    ),
    Replaced(&[said("UPDATE `{t}` SET `hits`=`hits`+ 1,`updated_at`='2026-11-23 10:20:30' WHERE `id` = 7", &[("hits", 1)])], HITS),
    Replaced(&[said("UPDATE {t} SET hits=({t}.hits + 1) WHERE {t}.id = 7", &[("hits", 1)])], HITS),
    Replaced(&[said("UPDATE {t} t0_ SET t0_.hits = t0_.hits + 1 WHERE t0_.id = 7", &[("hits", 1)])], HITS),
    Replaced(&[prepared("UPDATE `{t}` AS p0 SET p0.`hits` = p0.`hits` + ? WHERE (p0.`id` = ?)", &[5, 7], &[("hits", 5)])], HITS),
    // By hand
    Replaced(&[said("-- page view\nUPDATE {t} SET hits = IFNULL(hits, 0) + 1 WHERE id = 7 ORDER BY id LIMIT 1", &[("hits", 1)])], HITS),
    Replaced(&[said("# page view\nUPDATE LOW_PRIORITY IGNORE {t} SET hits = hits - -1 WHERE id = 7", &[("hits", 1)])], HITS),
    Replaced(&[said("UPDATE {t} SET `page hits` = `page hits` + 1 WHERE id = 7", &[("page hits", 1)])], &[("page hits", Sum)]),
    Replaced(&[said("UPDATE {t} SET title = IF(1, NULL, 'a = a + 1, where'), hits = 1 + hits WHERE id = 7", &[("hits", 1)])], HITS),
    Replaced(
        &[said("UPDATE {t} SET likes = likes + 1, hits = hits + 2 WHERE id = 7", &[("likes", 1), ("hits", 2)])],
        &[("likes", Sum), ("hits", Sum)],
    ),
    Replaced(&[said("UPDATE {t} SET hits = hits + 1 WHERE slug = 'seven'", &[("hits", 1)])], HITS),
    Replaced(&[said("UPDATE {t} SET hits = hits + 1 WHERE (a, b) = (1, 7)", &[("hits", 1)])], HITS),
    Replaced(&[said("UPDATE {t} SET hits = hits + 1 WHERE b = 7 AND a = 1", &[("hits", 1)])], HITS),
    Replaced(&[said("INSERT INTO {t} SET id = 7, hits = 1 ON DUPLICATE KEY UPDATE hits = {t}.hits + 1, updated_at = NOW()", &[("hits", 1)])], HITS),
    Replaced(&[said("CALL add_to_{t}(7)", &[("hits", 1)])], HITS),
    Replaced(&[said("INSERT INTO events_of_{t} (page) VALUES (7)", &[("hits", 1)])], HITS),
    // Stock
    Replaced(&[said("UPDATE {t} SET stock = stock - 1 WHERE id = 7 AND stock > 0", &[("stock", -1)])], STOCK),
    Replaced(&[said("UPDATE {t} SET stock = stock + -1 WHERE stock <> 0 AND id = 7", &[("stock", -1)])], STOCK),
    Replaced(&[said("UPDATE {t} SET stock = stock - 3 WHERE 3 <= {t}.stock AND id = 7", &[("stock", -3)])], STOCK),
    Replaced(&[said("UPDATE {t} SET stock = stock - 3 WHERE id = 7 AND stock - 3 >= 0", &[("stock", -3)])], STOCK),
    Replaced(&[prepared("UPDATE {t} SET stock = stock - ? WHERE id = ? AND stock >= ?", &[3, 7, 3], &[("stock", -3)])], STOCK),
    Replaced(&[said("CALL take_from_{t}(7, 2)", &[("stock", -2)])], STOCK),
    Replaced(&[said("UPDATE {t} SET qty = qty - 1 WHERE id = 7", &[("qty", -1)])], &[("qty", Least)]),
    Replaced(
        &[said(
            "UPDATE {t} SET stock = stock - 1, reserved = reserved + 1 WHERE id = 7 AND stock >= 1",
            &[("stock", -1), ("reserved", 1)],
        )],
        &[("stock", Least), ("reserved", Sum)],
    ),
    // A statement that neither reads nor writes the column.
    Replaced(
        &[
            said("UPDATE {t} SET hits = hits + 1 WHERE id = 7", &[("hits", 1)]),
            said("UPDATE {t} SET title = 'x' WHERE id = 7 AND version = 0", &[]),
        ],
        HITS,
    ),
    Replaced(
        &[
            said("UPDATE {t} SET stock = stock - 2 WHERE id = 7 AND stock >= 2", &[("stock", -2)]),
            said("UPDATE {t} SET stock = stock + 1 WHERE id = 7", &[("stock", 1)]),
        ],
        STOCK,
    ),
    Replaced(
        &[
            said(
                "UPDATE {t} SET stock = stock - 1, reserved = reserved + 1 WHERE id = 7 AND stock >= 1",
                &[("stock", -1), ("reserved", 1)],
            ),
            said(
                "UPDATE {t} SET stock = stock + 1, reserved = reserved - 1 WHERE id = 7 AND reserved >= 1",
                &[("stock", 1), ("reserved", -1)],
            ),
        ],
        &[("stock", Least), ("reserved", Least)],
    ),
    // Limits
    Replaced(&[said("UPDATE {t} SET used = used + 1 WHERE id = 7 AND used < max_uses", &[("used", 1)])], USED),
    Replaced(&[said("UPDATE {t} SET used = used + 2 WHERE id = 7 AND used + 2 <= max_uses", &[("used", 2)])], USED),
    Replaced(&[said("UPDATE {t} SET used = used + 2 WHERE id = 7 AND max_uses - used >= 2", &[("used", 2)])], USED),
    Replaced(&[said("UPDATE {t} SET used = used + 1 WHERE id = 7 AND used < 60", &[("used", 1)])], USED),
    Replaced(&[said("UPDATE {t} SET used = used + 3 WHERE id = 7 AND 60 >= used + 3", &[("used", 3)])], USED),
    Replaced(&[prepared("UPDATE {t} SET used = used + ? WHERE id = ? AND used + ? <= max_uses", &[2, 7, 2], &[("used", 2)])], USED),
    Replaced(
        &[
            said("UPDATE {t} SET used = used + 2 WHERE id = 7 AND used + 2 <= max_uses", &[("used", 2)]),
            said("UPDATE {t} SET used = used - 1 WHERE id = 7", &[("used", -1)]),
        ],
        USED,
    ),
    // What a counter cannot do, or what is not certain
    Inspect(&["UPDATE {t} SET used = used + 1 WHERE id = 7 AND state = 'open'"], "its WHERE also compares state"),
    Inspect(&["UPDATE {t} SET used = used + 1 WHERE id = 7 AND used < max_uses AND state = 'open'"], "its WHERE also compares state"),
    Inspect(&["UPDATE `{t}` SET `hits`=hits + 1 WHERE id = 7 AND `{t}`.`title` IS NULL"], "has the condition `{t}`.`title` IS NULL"),
    Inspect(&["UPDATE {t} SET hits = hits + 1, version = version + 1 WHERE id = 7 AND version = 0"], "also compares version"),
    Inspect(&["UPDATE {t} SET used = used + 1 WHERE id = 7 AND (used < max_uses OR max_uses IS NULL)"], "has the condition"),
    Inspect(&["UPDATE {t} SET used = used + 2 WHERE id = 7 AND used < max_uses"], "another limit than the amount"),
    Inspect(&["UPDATE {t} SET used = used + 1 WHERE id = 7 AND used < price"], "another limit than the amount"),
    Inspect(&["UPDATE {t} SET used = IF(used < max_uses, used + 1, used) WHERE id = 7"], "is not the column plus an amount"),
    Inspect(&["UPDATE {t} SET used = CASE WHEN used < 5 THEN used + 1 ELSE used END WHERE id = 7"], "is not the column plus an amount"),
    Inspect(&["INSERT INTO {t} (id, used) VALUES (7, 1) ON DUPLICATE KEY UPDATE used = IF(used < 5, used + 1, used)"], "is not the column plus"),
    Inspect(&["UPDATE {t} SET stock = GREATEST(stock - 1, 0) WHERE id = 7"], "is not the column plus an amount"),
    Inspect(&["UPDATE {t} SET stock = stock - 2 WHERE id = 7 AND stock >= 1"], "another limit than the amount"),
    Inspect(&["UPDATE {t} SET hits = hits + stock WHERE id = 7"], "depends on the column stock"),
    Inspect(&["UPDATE {t} SET hits = hits + 1, state = IF(hits > 100, 'hot', 'new') WHERE id = 7"], "state depends on the column hits"),
    Inspect(&["UPDATE {t} SET hits = hits + (SELECT 4) WHERE id = 7"], "is not the column plus an amount"),
    Inspect(&["UPDATE {t} JOIN (SELECT 7 AS page) AS chosen ON chosen.page = {t}.id SET {t}.hits = {t}.hits + 1"], "it reads other tables"),
    Inspect(&["UPDATE {t} SET hits = hits + 1 WHERE id IN (7, 8)"], "it can change several rows"),
    Inspect(&["UPDATE {t} SET hits = hits + 1"], "no WHERE"),
    Inspect(&["UPDATE {t} SET hits = hits + 1 WHERE id BETWEEN 7 AND 7"], "has the condition"),
    Inspect(&["UPDATE {t} SET hits = LAST_INSERT_ID(hits + 1) WHERE id = 7"], "use AUTO_INCREMENT"),
    Inspect(&["UPDATE {t} SET price = price + 1 WHERE id = 7"], "price is decimal: a counter counts integers"),
    Inspect(&["UPDATE {t} SET rating = rating + 1 WHERE id = 7"], "rating is double: a counter counts integers"),
    Inspect(&["UPDATE {t} SET note = note + 1 WHERE id = 7"], "note is longtext: a counter counts integers"),
    Inspect(&["UPDATE {t} SET checked = checked + 1 WHERE id = 7"], "a CHECK constraint limits the column checked"),
    Inspect(&["UPDATE {t} SET sold = sold + 1 WHERE id = 7"], "other data depends on the column sold: the generated column unsold = "),
    Inspect(&["UPDATE {t} SET listed = listed + 1 WHERE id = 7"], "other data depends on the column listed: the view full_{t}"),
    Inspect(
        &["INSERT INTO {t} (id, logged) VALUES (7, 1) ON DUPLICATE KEY UPDATE logged = logged + 1"],
        "the trigger log_of_{t} runs for each INSERT",
    ),
    Inspect(&["SELECT hits FROM {t} WHERE id = 7 FOR UPDATE"], "it is not known to count"),
    Inspect(
        &["UPDATE {t} SET hits = hits + 1 WHERE id = 7", "SELECT * FROM {t} WHERE id = 7 FOR UPDATE"],
        "it is not known to count",
    ),
    Inspect(
        &["UPDATE {t} SET hits = hits + 1 WHERE id = 7", "-- a report\nSELECT hits FROM {t} WHERE id = 7 FOR UPDATE"],
        "it is not known to count",
    ),
    Inspect(
        &["UPDATE {t} SET hits = hits + 1 WHERE id = 7", "UPDATE {t} SET title = 'it\\'s' WHERE id = 7"],
        "a backslash",
    ),
    Inspect(
        &["UPDATE {t} SET stock = stock - 1 WHERE id = 7 AND stock >= 1", "UPDATE {t} SET stock = stock - 1 WHERE id = 7"],
        "and another one does not",
    ),
    Inspect(
        &["UPDATE {t} SET used = used + 1 WHERE id = 7 AND used < 60", "UPDATE {t} SET used = used + 1 WHERE id = 7 AND used < 70"],
        "with two limits",
    ),
    Inspect(&["UPDATE {t} SET hits = hits + 1 WHERE id = 7", "UPDATE {t} SET hits = 0 WHERE id = 7"], "it sets hits"),
];

/// Statements of MariaDB.
const OF_MARIADB: &[Case] = &[
    Inspect(
        &["INSERT INTO {t} (id, hits) VALUES (7, 1) ON DUPLICATE KEY UPDATE hits = hits + 1 RETURNING hits"],
        "it returns the new value",
    ),
];

/// The statements of a case that are followed at a time, with 2 connections each.
const TOGETHER: usize = 20;

impl Case {
    fn statements(&self) -> Vec<(&'static str, &'static [i64])> {
        match self {
            Replaced(said, _) => said.iter().map(|said| (said.sql, said.values)).collect(),
            Inspect(statements, _) => statements.iter().map(|sql| (*sql, &[][..])).collect(),
        }
    }
}

fn named(sql: &str, schema: &Schema<'_>, table: &str) -> String {
    sql.replace("{t}", table).replace("{s}", schema.ident().name())
}

fn each_statement_gets_the_advice_that_keeps_its_rule(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&bounded(|_| {}));
    let cases: Vec<&Case> = if server.is_mysql() { CASES.iter().collect() } else { CASES.iter().chain(OF_MARIADB).collect() };
    let table = |at: usize| format!("pages{at}");
    for (at, case) in cases.iter().enumerate() {
        create(&schema, &table(at), &case.statements());
    }
    let report = advice_while_all_wait(server, &schema, &cases, table);
    let mut replaced = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let found = advice(&report, &schema, &table(at));
        let (verdict, run) = (found["verdict"]["do"].as_str(), found["run"].as_str().expect("text"));
        match case {
            Inspect(sql, reason) => {
                let because = found["because"].as_str().expect("text");
                let reason = named(reason, &schema, &table(at));
                assert!(verdict == Some("inspect") && because.contains(&reason), "{sql:?}: {found:#}");
                assert!(!run.contains("slotted adopt"), "{sql:?}: {found:#}");
            }
            Replaced(said, rules) => {
                // The server does not show the values of placeholders, unless it logs them.
                let conditional = run.starts_with("-- Only if ") && said.iter().any(|said| !said.values.is_empty());
                assert!(verdict == Some("adopt") || conditional, "{}: {found:#}", said[0].sql);
                let known = |name: &str| cases_of(run, name);
                assert_eq!(known("slotted adopt").len(), rules.len(), "{}: {found:#}", said[0].sql);
                replaced.push((table(at), *said, *rules, run.to_owned()));
            }
        }
    }
    assert!(cases.len() >= 60 && replaced.len() >= 40, "{} {}", cases.len(), replaced.len());
    for some in replaced.chunks(TOGETHER) {
        thread::scope(|scope| {
            let running: Vec<_> = some
                .iter()
                .map(|(table, said, rules, run)| scope.spawn(|| follow(server, &schema, table, said, rules, run)))
                .collect();
            for one in running {
                one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
    }
}

/// The lines of a text that begin with a word.
fn cases_of<'a>(run: &'a str, word: &str) -> Vec<&'a str> {
    run.lines().filter(|line| line.starts_with(word)).collect()
}

fn create(schema: &Schema<'_>, t: &str, statements: &[(&str, &[i64])]) {
    let mut script = format!(
        "CREATE TABLE {t} (
           id INT PRIMARY KEY, slug VARCHAR(9) UNIQUE, a INT, b INT, hits BIGINT NULL DEFAULT 0, likes INT NOT NULL DEFAULT 0,
           `page hits` INT NOT NULL DEFAULT 0, stock INT NOT NULL DEFAULT {LIMIT}, reserved INT NOT NULL DEFAULT 0,
           qty INT UNSIGNED NOT NULL DEFAULT {LIMIT}, used INT NOT NULL DEFAULT 0, max_uses INT NOT NULL DEFAULT {LIMIT},
           price DECIMAL(9, 2) NOT NULL DEFAULT 1, rating DOUBLE NOT NULL DEFAULT 0, note LONGTEXT, state VARCHAR(9) DEFAULT 'open',
           version INT NOT NULL DEFAULT 0, title VARCHAR(9), updated_at DATETIME(6), checked INT NOT NULL DEFAULT 0,
           sold INT NOT NULL DEFAULT 0, unsold INT UNSIGNED AS (max_uses - sold) STORED, listed INT NOT NULL DEFAULT 0,
           logged INT NOT NULL DEFAULT 0, UNIQUE (a, b), CHECK (checked <= max_uses)
         ) ENGINE = InnoDB;
         INSERT INTO {t} (id, slug, a, b) VALUES (6, 'six', 1, 6), (7, 'seven', 1, 7), (8, 'eight', 1, 8);"
    );
    let uses = |what: &str| statements.iter().any(|(sql, _)| sql.contains(what));
    if uses("add_to_") {
        script += &format!("CREATE PROCEDURE add_to_{t}(p_id INT) UPDATE {t} SET hits = hits + 1 WHERE id = p_id;");
    }
    if uses("take_from_") {
        script += &format!(
            "CREATE PROCEDURE take_from_{t}(p_id INT, p_amount INT)
               UPDATE {t} SET stock = stock - p_amount WHERE id = p_id AND stock >= p_amount;"
        );
    }
    if uses("listed") {
        script += &format!("CREATE VIEW full_{t} AS SELECT id FROM {t} WHERE listed >= max_uses;");
    }
    if uses("logged") {
        script += &format!(
            "CREATE TABLE log_{t} (page INT) ENGINE = InnoDB;
             CREATE TRIGGER log_of_{t} BEFORE INSERT ON {t} FOR EACH ROW INSERT INTO log_{t} VALUES (NEW.id);"
        );
    }
    if uses("events_of_") {
        script += &format!(
            "CREATE TABLE events_of_{t} (id INT AUTO_INCREMENT PRIMARY KEY, page INT) ENGINE = InnoDB;
             CREATE TRIGGER count_{t} AFTER INSERT ON events_of_{t} FOR EACH ROW
               UPDATE {t} SET hits = hits + 1 WHERE id = NEW.page;"
        );
    }
    schema.run(&script);
}

/// The report of advise while a session waits with each statement, because one transaction has locked the row 7 of each table.
fn advice_while_all_wait(server: &Server, schema: &Schema<'_>, cases: &[&Case], table: impl Fn(usize) -> String) -> Value {
    let mut holder = schema.connect();
    holder.query_drop("START TRANSACTION").expect("a transaction");
    for at in 0..cases.len() {
        holder.query_drop(format!("SELECT id FROM {} WHERE id = 7 FOR UPDATE", table(at))).expect("the lock");
    }
    thread::scope(|scope| {
        let mut waiting = 0;
        for (at, case) in cases.iter().enumerate() {
            for (sql, values) in case.statements() {
                waiting += 1;
                let sql = named(sql, schema, &table(at));
                scope.spawn(move || {
                    let mut connection = schema.connect();
                    connection.query_drop("START TRANSACTION").expect("a transaction");
                    match values {
                        [] => connection.query_drop(&sql),
                        values => connection.exec_drop(&sql, values.to_vec()),
                    }
                    .unwrap_or_else(|error| panic!("{sql}: {error}"));
                    connection.query_drop("ROLLBACK").expect("a rollback");
                });
            }
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let waits = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'";
            let end = Instant::now() + Duration::from_secs(30);
            while schema.first::<u64>(waits) < waiting && Instant::now() < end {
                thread::sleep(Duration::from_millis(110));
            }
            advised_in(server, schema, "0.5")
        }));
        holder.query_drop("ROLLBACK").expect("a rollback");
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The recommendation for the row 7 of a table. Of a lock on a unique index, MariaDB does not return the primary key.
fn advice(report: &Value, schema: &Schema<'_>, table: &str) -> Value {
    let subject = format!("{}.{table}: ", schema.ident().name());
    let of_table = |one: &&Value| one["subject"].as_str().is_some_and(|one| one.starts_with(&subject));
    let found: Vec<_> = report["advice"].as_array().expect("a list").iter().filter(of_table).collect();
    let [one] = found[..] else { panic!("{subject} {found:#?}") };
    one.clone()
}

/// Follows a recommendation to the letter while sessions execute the statements and, after it, the calls. Checks the rules.
fn follow(server: &Server, schema: &Schema<'_>, table: &str, said: &[Said], rules: &[(&str, Rule)], run: &str) {
    let stop = AtomicBool::new(false);
    let moved = AtomicBool::new(false);
    let done: Vec<AtomicI64> = said.iter().map(|_| AtomicI64::new(0)).collect();
    let calls = calls(run, schema, table, said);
    thread::scope(|scope| {
        for (at, one) in said.iter().enumerate() {
            let (stop, moved, done, calls) = (&stop, &moved, &done[at], &calls[at]);
            let sql = named(one.sql, schema, table);
            // The instances of the application that are not replaced go on with the statement.
            scope.spawn(move || {
                let mut connection = schema.connect();
                while !stop.load(SeqCst) {
                    let changed = match one.values {
                        [] => connection.query_drop(&sql),
                        values => connection.exec_drop(&sql, values.to_vec()),
                    };
                    match changed {
                        Ok(()) => _ = done.fetch_add(i64::from(has_changed(&mut connection, &sql)), SeqCst),
                        // The UNSIGNED column has too little.
                        Err(mysql::Error::MySqlError(error)) if [1690, 1264].contains(&error.code) => {}
                        Err(error) => _ = repeatable(error),
                    }
                    thread::sleep(Duration::from_millis(10));
                }
            });
            if one.adds.is_empty() {
                continue;
            }
            scope.spawn(move || {
                let mut connection = schema.connect();
                while !stop.load(SeqCst) {
                    if moved.load(SeqCst) {
                        done.fetch_add(i64::from(call(&mut connection, calls)), SeqCst);
                    }
                    thread::sleep(Duration::from_millis(6));
                }
            });
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            thread::sleep(Duration::from_millis(20));
            commands(server, schema, run);
            moved.store(true, SeqCst);
            let end = Instant::now() + Duration::from_secs(60);
            let waits = || said.iter().zip(&done).any(|(one, done)| !one.adds.is_empty() && done.load(SeqCst) == 0);
            while waits() && Instant::now() < end {
                thread::sleep(Duration::from_millis(10));
            }
            thread::sleep(Duration::from_millis(200));
        }));
        stop.store(true, SeqCst);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    commands(server, schema, run);
    let mut added: BTreeMap<&str, i64> = BTreeMap::new();
    for (one, done) in said.iter().zip(&done) {
        assert!(one.adds.is_empty() || done.load(SeqCst) > 0, "{}", one.sql);
        for (column, by) in one.adds {
            *added.entry(column).or_default() += by * done.load(SeqCst);
        }
    }
    for (column, rule) in rules {
        let row: i64 = schema.first(&format!("SELECT COALESCE(`{column}`, 0) FROM {table} WHERE id = 7"));
        let view = if *rule == Sum { "counter_totals" } else { "bounded_counter_totals" };
        let total: i64 = schema.first(&format!("SELECT total FROM {view} WHERE counter_name LIKE '{table}.{column} %'"));
        let added = added[column];
        match rule {
            Sum => assert_eq!((row, total), (0, added), "{column}: {}", said[0].sql),
            Least => {
                let before = if *column == "reserved" { 0 } else { LIMIT };
                assert_eq!((row, total), (0, before + added), "{column}: {}", said[0].sql);
                assert!(total >= 0, "{total} {column}: {}", said[0].sql);
            }
            Most => {
                assert_eq!((row, total), (LIMIT, LIMIT - added), "{column}: {}", said[0].sql);
                assert!(added <= LIMIT, "{added} {column}: {}", said[0].sql);
            }
        }
    }
}

/// Whether the last statement has changed the row. A call and an insert into another table do not tell.
fn has_changed(connection: &mut Conn, sql: &str) -> bool {
    connection.affected_rows() > 0 || sql.starts_with("CALL add_to")
}

/// The calls in place of each statement, with its amounts.
fn calls(run: &str, schema: &Schema<'_>, table: &str, said: &[Said]) -> Vec<Vec<String>> {
    let blocks: Vec<(&str, Vec<&str>)> = run
        .split("-- In place of ")
        .skip(1)
        .map(|block| (block.lines().next().unwrap_or_default(), cases_of(block, "CALL")))
        .collect();
    let of = |one: &Said| {
        if one.adds.is_empty() {
            return Vec::new();
        }
        let text = named(one.sql, schema, table).split_whitespace().collect::<Vec<_>>().join(" ");
        let block = blocks.iter().find(|(head, _)| blocks.len() == 1 || head.starts_with(&text));
        let (_, calls) = block.unwrap_or_else(|| panic!("{text} in {run}"));
        assert_eq!(calls.len(), one.adds.len(), "{run}");
        let amount = one.adds[0].1.abs().to_string();
        calls.iter().map(|call| call.replace("amount", &amount)).collect()
    };
    said.iter().map(of).collect()
}

/// Makes calls in one transaction. False if there is not enough.
fn call(connection: &mut Conn, calls: &[String]) -> bool {
    let mut all = || -> mysql::Result<()> {
        connection.query_drop("START TRANSACTION")?;
        calls.iter().try_for_each(|call| connection.query_drop(call))?;
        connection.query_drop("COMMIT")
    };
    match all() {
        Ok(()) => true,
        Err(error) => {
            match error {
                mysql::Error::MySqlError(error) if error.code == 30_016 => {}
                error => _ = repeatable(error),
            }
            connection.query_drop("ROLLBACK").expect("a rollback");
            false
        }
    }
}

/// Runs the commands of a recommendation as they are.
fn commands(server: &Server, schema: &Schema<'_>, run: &str) {
    let url = format!("'{}'", url(server, schema));
    for line in cases_of(run, "slotted ") {
        let command = line.replacen("slotted", env!("CARGO_BIN_EXE_slotted"), 1).replace("URL", &url);
        let output = Command::new("sh").args(["-c", &command]).output().expect("sh runs");
        assert!(output.status.success(), "{line}: {}", printed(&output));
    }
}

fn the_waits_of_a_row_on_several_nodes_add_up(server: &Server) {
    let schema = server.schema();
    create(&schema, "pages", &[]);
    let url = url(server, &schema);
    let mut holder = schema.connect();
    holder.query_drop("START TRANSACTION").expect("a transaction");
    holder.query_drop("SELECT id FROM pages WHERE id = 7 FOR UPDATE").expect("the lock");
    let mut witness = schema.connect();
    // Sessions that were opened before have lower ids; the server may still list them after they ended.
    let first = u64::from(witness.connection_id());
    let mut until = |opened: usize| {
        let end = Instant::now() + Duration::from_secs(60);
        let database = |row: &mysql::Row| row.get::<Option<String>, _>("db").flatten();
        let later = |row: &mysql::Row| row.get::<u64, _>("Id") > Some(first) && database(row).as_ref() == Some(&schema.name);
        let mut sessions = || witness.query::<mysql::Row, _>("SHOW FULL PROCESSLIST").expect("the sessions");
        while sessions().iter().filter(|row| later(row)).count() < opened {
            assert!(Instant::now() < end, "no {opened} sessions after session {first}");
            thread::sleep(Duration::from_millis(10));
        }
    };
    let report = thread::scope(|scope| {
        scope.spawn(|| schema.run("UPDATE pages SET hits = hits + 1 WHERE id = 7"));
        until(1);
        // The session waits for less than half of the time. Both URLs are the same server, as two nodes to the command.
        let running = scope.spawn(|| {
            let arguments = ["advise", "--url", &url, "--url", &url, "--seconds", "12", "--json"];
            Command::new(env!("CARGO_BIN_EXE_slotted")).args(arguments).output().expect("slotted runs")
        });
        // The time that a program takes to start is not a part of it.
        until(3);
        thread::sleep(Duration::from_millis(4_400));
        holder.query_drop("ROLLBACK").expect("a rollback");
        let output = running.join().expect("the command");
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", printed(&output)))
    });
    let waiting = report["watched"]["rows"][0]["waiting"].as_f64().unwrap_or_else(|| panic!("{report:#}"));
    assert!(waiting < 1.0, "each node has seen less than half of a session: {report:#}");
    assert_eq!(advice(&report, &schema, "pages")["verdict"]["do"], "adopt", "{report:#}");
}
