//! A schema whose owner plants views, routines, triggers and tables for the administrator who runs the commands.

use std::sync::atomic::{AtomicBool, Ordering};

use slotted::package::{Options, SqlStr};
use slotted::render::{Task, plan};

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_families(a_lost_table_is_not_replaced_by_an_empty_one)
        .on_families(the_view_of_a_package_names_no_definer_and_no_table_of_others)
        .on_families(a_table_of_two_packages_is_not_dropped)
        .on_families(status_prints_the_bytes_of_names_and_keys)
        .on_families(the_names_of_a_key_are_printed_and_not_executed)
        .on_families(status_adds_up_the_slots_of_one_counter)
        .on_families(a_view_in_the_place_of_the_table_is_not_read)
        .private()
        .on_families(nothing_that_is_planted_in_a_schema_is_executed);
}

/// A function that tells whether somebody has executed it, even in a transaction that was rolled back.
const SPY: &str = "CREATE TABLE pwned_by (account VARCHAR(255)) ENGINE = MyISAM;
DELIMITER //
CREATE FUNCTION pwned() RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN INSERT INTO pwned_by VALUES (CURRENT_USER()); RETURN 1; END//";

/// The table of the function and the general log of the server are the witnesses.
fn nothing_that_is_planted_in_a_schema_is_executed(server: &Server) {
    let server = server.another(&["--log-bin-trust-function-creators=1", "--log-output=TABLE"]);
    let totals = "counter_name, description, start_date, 1 AS slots, pwned() AS total FROM counters";
    let (counters, column) = (package(|_| {}), of_column("articles.views", "id INT", |_| {}));
    let view = "SQL SECURITY INVOKER VIEW";
    for (of_column, plant) in [
        (false, format!("CREATE OR REPLACE {view} counter_totals AS SELECT {totals}")),
        (false, format!("CREATE OR REPLACE {view} counter_package AS SELECT pwned() AS version, '{{}}' AS options")),
        (false, format!("CREATE {view} p_package AS SELECT pwned() AS version, '{{}}' AS options")),
        (false, "CREATE TRIGGER planted BEFORE INSERT ON counters FOR EACH ROW SET NEW.description = pwned()".into()),
        (false, "DROP PROCEDURE counter_increment; CREATE PROCEDURE counter_increment(p_name TEXT) SQL SECURITY INVOKER DO pwned()".into()),
        (false, "DROP FUNCTION counter_get; CREATE FUNCTION counter_get(p_name TEXT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER RETURN pwned()".into()),
        (false, format!("RENAME TABLE counters TO hidden; CREATE {view} counters AS SELECT counter_name, counter_id, description, start_date, pwned() AS counter FROM hidden")),
        // To read the columns of these from information_schema, MariaDB executes the function.
        (false, format!("CREATE {view} p_package AS SELECT ROUND(1.5, pwned()) AS version, '[]' AS options")),
        (false, format!("CREATE OR REPLACE {view} counter_totals AS SELECT ROUND(1.5, pwned()) AS total FROM counters")),
        (false, format!("RENAME TABLE counters TO hidden; CREATE {view} counters AS SELECT counter_name, ROUND(1.5, pwned()) AS counter FROM hidden")),
        (true, format!("RENAME TABLE articles TO hidden; CREATE {view} articles AS SELECT id, ROUND(1.5, pwned()) AS views FROM hidden")),
        (true, "CREATE TRIGGER planted BEFORE UPDATE ON articles FOR EACH ROW SET NEW.views = NEW.views + 0 * pwned()".into()),
        (true, "DROP PROCEDURE articles_views_rollup; CREATE PROCEDURE articles_views_rollup(p_records INT) SQL SECURITY INVOKER DO pwned()".into()),
        (true, "DROP PROCEDURE articles_views_rollup; CREATE PROCEDURE `articles_views_roll\u{fa}p`(p_records INT) SQL SECURITY INVOKER DO pwned()".into()),
        (true, "DROP PROCEDURE _articles_views_move; CREATE PROCEDURE _articles_views_move(a INT, b INT, c INT, d INT, e INT) SQL SECURITY INVOKER DO pwned()".into()),
    ] {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 5)");
        schema.run(SPY);
        schema.install(if of_column { &column } else { &counters });
        schema.run(&format!("{plant}; TRUNCATE pwned_by"));
        // A roll-up is called by an uninstallation, before an installation replaces its routines.
        let commands = if of_column {
            let [install, dry_run] = ["install --column articles.views", "install --column articles.views --dry-run"];
            ["status --json", "uninstall articles.views", dry_run, install]
        } else {
            ["status --json", "install counters --dry-run", "install counters", "uninstall counters --with-data --yes"]
        };
        let mut root = server.connect();
        root.query_drop("SET GLOBAL general_log = 1").expect("a log");
        for words in commands {
            let output = schema.slotted(words).output().expect("slotted runs");
            assert!(matches!(output.status.code(), Some(0..=2)), "{words}: {}", printed(&output));
        }
        // MariaDB executes the function of a view to list its columns.
        let script = schema.file(if of_column { &column } else { &counters }, "create_procedures.sql");
        _ = source(&mut schema.connect(), &script);
        root.query_drop("SET GLOBAL general_log = 0").expect("no log");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM pwned_by"), 0, "{plant}");
        let logged: Vec<Vec<u8>> = root.query("SELECT argument FROM mysql.general_log WHERE argument LIKE '%pwned%' OR argument LIKE '%SELECT%FROM%p_package%'").expect("the log");
        let logged: Vec<_> = logged.iter().map(|statement| String::from_utf8_lossy(statement)).collect();
        assert!(logged.iter().all(|statement| statement.starts_with("SELECT argument")), "{plant}: {logged:#?}");
        root.query_drop("TRUNCATE mysql.general_log").expect("an empty log");
        // The witness sees an execution.
        schema.run("DO pwned()");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM pwned_by"), 1);
    }
    // The owner can replace a routine between the comparison and a call.
    let schema = server.schema();
    let run = |words: &str| {
        let output = schema.slotted(words).output().expect("slotted runs");
        (output.status.code(), printed(&output))
    };
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL); CREATE USER app@localhost; SET GLOBAL general_log = 1");
    for name in ["counters", "slotted_counters", "--column articles.views"] {
        assert_eq!(run(&format!("install {name} --definer app@localhost")).0, Some(0));
    }
    schema.run("INSERT INTO articles_views VALUES (1, 0, 7)");
    has(&run("uninstall articles.views").1, &["counts with the sum 7 are pending"]);
    schema.run("TRUNCATE articles_views");
    assert_eq!(run("uninstall articles.views --with-data --yes").0, Some(0));
    let calls =
        "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'CALL %' OR argument LIKE 'SELECT `counter%'";
    assert_eq!(schema.first::<u64>(calls), 0);
}

/// The owner can put the view there after the comparison of the table, and before it is read.
fn a_view_in_the_place_of_the_table_is_not_read(server: &Server) {
    let package = package(|_| {});
    let schema = server.installed([&package]);
    schema.run(SPY);
    schema.run("CALL counter_setup('a', NULL, 3, 7); CREATE TABLE hidden LIKE counters; INSERT INTO hidden SELECT * FROM counters");
    schema.run("CREATE SQL SECURITY INVOKER VIEW view_of_owner AS SELECT counter_name, counter_id, pwned() AS counter FROM hidden");
    let view = "view_of_owner".parse().expect("a name");
    assert_eq!(error_of(slotted::install::sum(&mut schema.connect(), &package, &view)).0, 1176);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut owner = schema.connect();
            while !done.load(Ordering::Relaxed) {
                let swap = "RENAME TABLE counters TO other, view_of_owner TO counters, other TO view_of_owner";
                owner.query_drop(swap).expect("other names");
                thread::sleep(Duration::from_millis(5));
            }
        });
        for _ in 0..20 {
            let output = schema.slotted("status counters").output().expect("slotted runs");
            assert!(matches!(output.status.code(), Some(0..=2)), "{}", printed(&output));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM pwned_by"), 0);
}

/// The owner of a database can write any text into the view of a package.
fn the_view_of_a_package_names_no_definer_and_no_table_of_others(server: &Server) {
    let installed = package(|_| {}).of_family(server.version.family);
    let schema = server.installed([&installed]);
    let statements = plan(&installed, Task::Replace).into_iter().flat_map(|step| step.statements);
    let views = statements.filter(|one| one.contains(" VIEW ")).collect::<Vec<_>>().join("; ");
    for (from, to) in [("counter_id > 0", "counter_id > 1"), ("> 0", "< 0"), (" AS options", " AS options, pi() AS x")]
    {
        schema.run(&views.replace(from, to));
        has(&ends(&schema, 1, "status"), &["differs: the query differs\n  13 of 14"]);
    }
    schema.run(&views);
    schema.run("CREATE TABLE invoices (id INT PRIMARY KEY) ENGINE = InnoDB");
    let planted = |options: &Options| {
        let description = SqlStr(options.description());
        schema.run(&format!(
            "CREATE OR REPLACE VIEW counter_package AS SELECT '0.1.0' AS version, {description} AS options"
        ));
    };
    let mut options = package(|options| options.family = server.version.family).options;
    options.definer = Some("somebody@localhost".parse().expect("an account"));
    planted(&options);
    let said = ends(&schema, 2, "install counters");
    has(&said, &["names the definer somebody@localhost, and its routines do not; nothing has been changed"]);
    (options.definer, options.table) = (None, "invoices".parse().expect("a name"));
    planted(&options);
    has(&ends(&schema, 2, "uninstall counter_package --with-data --yes"), &["table invoices: differs"]);
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM invoices"), 0);
}

/// The names of the packages are those of their tables: one has to be dropped from its view.
fn a_table_of_two_packages_is_not_dropped(server: &Server) {
    let schema = server.schema();
    ends(&schema, 0, "install counters");
    ends(&schema, 0, "install counters --prefix other_");
    schema.run("CALL counter_setup('a', NULL, 3, 7)");
    let why = "the package of the view counter_package can have the same table, counters; nothing has been changed";
    has(&ends(&schema, 2, "uninstall other_package --with-data --yes"), &[why]);
    // A routine of somebody else with the name of one of the package, and a table that a foreign key keeps.
    schema.run("DROP PROCEDURE other_add; CREATE PROCEDURE other_add(a INT) DO 0");
    has(&ends(&schema, 2, "uninstall other_package"), &["procedure other_add: differs: the parameters differ"]);
    schema.run("DROP PROCEDURE other_add");
    ends(&schema, 0, "uninstall other_package");
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 7);
    schema.run("CREATE VIEW next_package AS SELECT '9.0.0' AS version, '[[\"format\",\"9\"]]' AS options");
    let said = ends(&schema, 2, "uninstall counters --with-data --yes");
    has(&said, &["the package of the view next_package can have the same table"]);
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 7);
    schema.run("DROP VIEW next_package; CREATE TABLE child LIKE counters; ALTER TABLE child ADD FOREIGN KEY (counter_name, counter_id) REFERENCES counters (counter_name, counter_id)");
    ends(&schema, 2, "uninstall --with-data --yes");
    assert_eq!(schema.first::<i64>("SELECT SUM(counter) FROM counters"), 7);
}

fn a_lost_table_is_not_replaced_by_an_empty_one(server: &Server) {
    let schema = server.schema();
    ends(&schema, 0, "install counters");
    schema.run("CALL counter_setup('a', NULL, 3, 7); RENAME TABLE counters TO counters_old");
    has(&ends(&schema, 1, "status"), &["table counters: missing"]);
    let why = ["the table was renamed or dropped", "nothing has been changed", "RENAME TABLE ... TO counters"];
    ["install counters", "install counters --dry-run"].iter().for_each(|words| has(&ends(&schema, 2, words), &why));
    schema.run("RENAME TABLE counters_old TO counters");
    has(&ends(&schema, 0, "install counters"), &["nothing to do"]);
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 7);
    schema.run("DROP TABLE counters");
    ends(&schema, 0, "uninstall");
    schema.run("CREATE SQL SECURITY INVOKER VIEW counter_totals AS SELECT 1");
    has(&ends(&schema, 2, "install counters"), &["the database has view counter_totals: the table was renamed"]);
    schema.run("DROP VIEW counter_totals");
    ["install counters", "status"].iter().for_each(|words| _ = ends(&schema, 0, words));
    // As a dump of the other family would be.
    let [own, other] = if server.is_mysql() { ["mysql", "mariadb"] } else { ["mariadb", "mysql"] };
    let options = SqlStr(schema.first::<String>("SELECT options FROM counter_package").replace(own, other));
    schema.run(&format!("CREATE OR REPLACE VIEW counter_package AS SELECT '0.1.0' AS version, {options} AS options"));
    has(&ends(&schema, 1, "status"), &["view counter_package: differs"]);
    ["install counters", "status"].iter().for_each(|words| _ = ends(&schema, 0, words));
}

/// A terminal would execute what a name contains.
fn status_prints_the_bytes_of_names_and_keys(server: &Server) {
    let schema = server.schema();
    ends(&schema, 0, "install slotted_counters --key 'id BINARY(16), day DATE'");
    schema.run(
        "INSERT INTO slotted_counters VALUES (0xff00fe80c0c1f5ff00c328a0a1e228a1, '2026-11-25', 3, 9223372036854775807),
                                             (0xff00fe80c0c1f5ff00c328a0a1e228a1, '2026-11-25', 4, -5);
         SET SESSION sql_mode = ''; INSERT INTO slotted_counters VALUES (0x00, '0000-00-00', 3, -9223372036854775808)",
    );
    let rows = ["0xFF00FE80C0C1F5FF00C328A0A1E228A1, 2026-11-25", "0x00000000000000000000000000000000, 0000-00-00"];
    has(&ends(&schema, 0, "status"), &[rows[0], rows[1], "9223372036854775802"]);
    ends(&schema, 0, "install counters");
    schema.run("CALL counter_setup('x\u{1b}[31m\n\u{202e}\u{ffa0}e\u{301}', NULL, NULL, 1)");
    has(&ends(&schema, 0, "status counters"), &["x\\u001b[31m\\u000a\\u202e\\uffa0e\u{301}"]);
}

/// Keys that are displayed or compared alike, and a total that no integer of JSON can have.
fn status_adds_up_the_slots_of_one_counter(server: &Server) {
    let schema = server.schema();
    ends(&schema, 0, "install slotted_counters --key 'a VARCHAR(20), b VARCHAR(20)'");
    schema.run(&format!(
        "INSERT INTO slotted_counters VALUES ('/A', '', 1, 5), ('/a', '', 1, 7), ('x, y', 'z', 1, 3), ('x', 'y, z', 1, 4),
                                             ('most', '', 1, {0}), ('most', '', 2, {0}), ('most', '', 3, {0})",
        i64::MAX
    ));
    ends(&schema, 0, "install counters");
    schema.run("CALL counter_setup('\u{1F600}', NULL, 3, 10); CALL counter_setup('\u{1F680}', NULL, 3, 100)");
    let said: serde_json::Value = serde_json::from_str(&ends(&schema, 0, "status --json")).expect("JSON");
    let totals = |package: usize, total: &str| {
        let counters = said["packages"][package]["counters"].as_array().expect("counters").iter();
        counters.map(|counter| counter[total].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(totals(0, "total"), ["100", "10"], "{said:#}");
    assert_eq!(totals(1, "total"), ["\"27670116110564327421\"", "7", "5", "4", "3"], "{said:#}");
    let key = "install slotted_counters --table x --prefix x_ --key '`a\u{202e}` INT' --dry-run";
    has(&ends(&schema, 0, key), &["escaped here: let slotted install execute it.\nDELIMITER"]);
    let dry = ends(&schema, 0, "install counters --dry-run");
    assert!(dry.contains("nothing to do") && !dry.contains("CREATE"), "{dry}");
}

/// The owner of a schema names the key column of a table, or the options in a view. An administrator installs and uninstalls.
fn the_names_of_a_key_are_printed_and_not_executed(server: &Server) {
    let pwned = format!("pwned_{}", std::process::id());
    let databases = || server.schema().query::<String>("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA");
    for place in ["", "name", "p", "v", "p text", "v text", "n", "type", "json type", "json", "value"] {
        let schema = server.schema();
        let key = format!("`INT);CREATE DATABASE {pwned};-- {{{place}}}`");
        schema.run(&format!("CREATE TABLE t ({key} BINARY(2) PRIMARY KEY, n INT NOT NULL) ENGINE = InnoDB; INSERT INTO t VALUES ('ab', 0)"));
        ends(&schema, 0, "install --column t.n");
        schema.run("CALL t_n_increment('ab'); CALL t_n_add('ab', 2); CALL t_n_add_many('[[\"6162\", 4]]')");
        assert_eq!(schema.first::<(i64, i64)>("SELECT n, t_n_get('ab') FROM t"), (0, 7), "{place}");
        schema.run("CALL t_n_rollup(NULL); CALL t_n_add('ab', 1); CALL t_n_compact('ab')");
        assert_eq!(schema.first::<(i64, i64)>("SELECT n, t_n_get('ab') FROM t"), (8, 8), "{place}");
        schema.run("CALL t_n_reset('ab', 5); CALL t_n_rollup(1); CALL t_n_add('ab', 1); CALL t_n_delete('ab')");
        ends(&schema, 0, "status t.n");
        ends(&schema, 0, "uninstall t.n --with-data --yes");
        assert_eq!(schema.query::<i64>("SELECT n FROM t"), [5], "{place}");
        let mut planted = Options::slotted_counters();
        (planted.table, planted.prefix) = ("x".parse().expect("a name"), "x_".parse().expect("a prefix"));
        planted.subject = records(format!("{key} BINARY(2)").parse().expect("a key"));
        let description = SqlStr(planted.description());
        schema.run(&format!("CREATE VIEW x_package AS SELECT '0.1.0' AS version, {description} AS options"));
        let output = schema.slotted("uninstall x").output().expect("slotted runs");
        assert!(!printed(&output).contains("panicked"), "{place}: {}", printed(&output));
        assert!(!databases().contains(&pwned), "{place}");
    }
}
