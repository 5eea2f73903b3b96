//! The commands install, status and uninstall.

use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Child, Stdio};

use serde_json::Value;
use slotted::install;
use slotted::package::{Routine, SqlStr};

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_families(install_creates_each_package_and_does_nothing_the_second_time)
        .on_families(an_upgrade_keeps_what_the_command_line_does_not_say)
        .on_families(several_definers_are_named_with_the_command_that_leaves_one)
        .on_families(status_tells_differences_apart)
        .on_families(status_of_an_account_that_sees_a_part_is_incomplete)
        .on_one_server(status_prints_one_line_for_each_counter)
        .on_one_server(another_installation_replaces_what_differs_and_keeps_the_slots_of_a_column)
        .on_families(an_installation_that_is_killed_at_any_statement_is_completed_by_the_next)
        .on_one_server(twenty_installations_at_the_same_time_give_one_package)
        .on_families(the_trial_finds_what_fails_and_leaves_nothing)
        .on_families(a_definer_that_does_not_exist_is_rejected_before_anything_is_created)
        .on_families(each_missing_privilege_is_named_by_the_server_with_a_hint)
        .on_families(the_owner_of_one_schema_installs)
        .on(|name| name.starts_with("mysql"), privileges_that_cannot_be_kept_stop_an_upgrade)
        .on_one_server(every_error_is_as_reviewed)
        .on_one_server(uninstall_keeps_the_counts_unless_it_is_told_otherwise)
        .waits()
        .on(|name| name.starts_with("mysql"), an_upgrade_that_is_killed_while_it_waits_loses_nothing)
        .private()
        .on(|name| name.starts_with("mysql"), status_names_a_group_that_has_several_primaries_since_the_installation)
        .on_families(calls_go_on_while_an_upgrade_waits);
}

pub fn ends_as(account: &Account<'_>, schema: &Schema<'_>, code: i32, words: &str) -> String {
    let url = schema.server.url_of(&account.name, None);
    exits(schema.slotted(words).args(["--url", &url, "-D", &schema.name]), code)
}

fn start(schema: &Schema<'_>, words: &str) -> Child {
    schema.slotted(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("slotted runs")
}

/// What the command says that finds all objects as it would create them.
const INSTALLED: &str = "is already installed; nothing to do";

/// An account that upgrades names neither the definer nor the security. The DEFINER of the second package was written into the script.
fn an_upgrade_keeps_what_the_command_line_does_not_say(server: &Server) {
    let schema = server.schema();
    let account = format!("{}_d", schema.name);
    schema.run(&format!("CREATE USER {account}@localhost; GRANT ALL ON {}.* TO {account}@localhost", schema.ident()));
    let definer = format!("{account}@localhost");
    let more = format!("--slots 7 --security invoker --definer {definer} --collation utf8mb4_unicode_ci");
    ends(&schema, 0, &format!("install slotted_counters {more}"));
    let by_hand = schema.file(&package(|_| {}), "setup.sql");
    let by_hand = by_hand.replace("CREATE PROCEDURE `_counter_script`", "CREATE procedure `_counter_script`");
    let by_hand =
        by_hand.replace("SQL SECURITY DEFINER VIEW", &format!("DEFINER = {definer} SQL SECURITY DEFINER VIEW"));
    let of_definer = |text: String, kind: &str| {
        text.replace(&format!("CREATE {kind}"), &format!("CREATE DEFINER = {definer} {kind}"))
    };
    schema.run(&["PROCEDURE", "FUNCTION"].into_iter().fold(by_hand, of_definer));
    let definers = "SELECT DISTINCT CONCAT(DEFINER, ' ', SECURITY_TYPE) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() ORDER BY 1";
    let expected = [format!("{definer} DEFINER"), format!("{definer} INVOKER")];
    assert_eq!(schema.query::<String>(definers), expected);
    schema.run("DROP PROCEDURE counter_add; DROP PROCEDURE slotted_counter_add");
    let view: mysql::Row = schema.first("SHOW CREATE VIEW slotted_counter_package");
    let planted = view.get::<String, _>(1).expect("its statement").replace("invoker", "definer");
    schema.connect().query_drop(planted.replacen("CREATE", "CREATE OR REPLACE", 1)).expect("a view");
    has(&ends(&schema, 2, "install slotted_counters"), &["differ in SQL SECURITY", "add --security"]);
    for words in ["install slotted_counters --security invoker", "install counters"] {
        ends(&schema, 0, words);
        assert_eq!(schema.query::<String>(definers), expected, "{words}");
    }
    let options: String = schema.first("SELECT options FROM slotted_counter_package");
    has(&options, &[r#"["slots","7"]"#, r#""utf8mb4_unicode_ci""#, r#""invoker""#, r#"["definer","#]);
    schema.run(&format!("DROP USER {definer}"));
}

/// Until a person has chosen one, nothing is changed. A function with the name of a procedure of the package is not of the package.
fn several_definers_are_named_with_the_command_that_leaves_one(server: &Server) {
    let schema = server.schema();
    let name = &Account::new(&schema, "d", "ALL").name;
    ends(&schema, 0, "install counters");
    let change = |object: &str, column: usize| {
        let created: mysql::Row = schema.first(&format!("SHOW CREATE {object}"));
        let created: String = created.get(column).expect("its statement");
        let (head, rest) = created.split_once("DEFINER=").expect("a definer");
        let (_, rest) = rest.split_once(' ').expect("the rest");
        schema.after(&[&format!("DROP {object}"), &format!("{head}DEFINER = '{name}'@'%' {rest}")]);
    };
    schema.run(&format!("CREATE DEFINER = '{name}'@'%' FUNCTION counter_reset() RETURNS INT NO SQL RETURN 1"));
    ends(&schema, 0, "status");
    schema.run("DROP FUNCTION counter_reset");
    change("PROCEDURE counter_add", 2);
    has(&ends(&schema, 2, "install counters"), &["have several definers: ", "nothing has been changed", "--definer"]);
    let definer = format!("{name}@%");
    let definers = || {
        schema.query::<String>(
            "SELECT DEFINER FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()
              UNION SELECT DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()",
        )
    };
    assert_eq!((definers().len(), definers().contains(&definer)), (2, true));
    let said = ends(&schema, 1, "status");
    ends(&schema, 0, rest_of_line(&said, "of the database, run slotted "));
    ends(&schema, 0, "status");
    assert_eq!((definers().len(), definers().contains(&definer)), (1, false));
    // The options name the definer now.
    change("VIEW counter_totals", 1);
    let said = ends(&schema, 1, "status");
    has(&said, &["view counter_totals: differs: the definer is "]);
    ends(&schema, 0, rest_of_line(&said, "as the owner of the database: slotted "));
    ends(&schema, 0, "status");
}

/// By the command, and by a client of the server with the files that the command prints.
fn install_creates_each_package_and_does_nothing_the_second_time(server: &Server) {
    for words in [
        "counters",
        "counters --slots 20",
        "slotted_counters",
        "bounded_counters",
        "counters --security invoker --collation utf8mb4_bin --no-function",
        "slotted_counters --key 'url VARCHAR(200), day DATE' --prefix view_ --table views",
        "counters --cluster",
        "--column articles.views",
    ] {
        let install = format!("install {words}");
        let [schema, by_client] = [(); 2].map(|()| server.schema());
        for schema in [&schema, &by_client] {
            schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB");
        }
        let said = ends(&schema, 0, &install);
        has(&ends(&schema, 0, &install), &[INSTALLED]);
        what_is_printed_is_what_an_application_needs(&schema, &said);
        // Without options, the tool reads them from the view of the package.
        let status: Value = serde_json::from_str(&ends(&schema, 0, "status --json")).expect("JSON");
        assert_eq!((&status["same"], &status["schema_version"]), (&true.into(), &1.into()), "{status:#}");
        let arguments = status["packages"][0]["arguments"].as_str().expect("arguments");
        let package = parsed(arguments);
        // What is missing: all of setup.sql, and then one view.
        for procedures in [true, false] {
            let sql = ends(&by_client, 0, &format!("{install} --dry-run"));
            assert!(!procedures || by_client.file(&package, "setup.sql").ends_with(&sql), "{sql}");
            assert_eq!(sql.contains(&package.routine(Routine::Fail).expect("a name").to_string()), procedures, "{sql}");
            let said = by_client.client().pipe(&[], &sql);
            assert!(said.success, "{said:?}");
            has(&ends(&by_client, 0, &install), &[INSTALLED]);
            assert!(!ends(&by_client, 0, &format!("{install} --dry-run")).contains("CREATE"), "{words}");
            by_client.run(&format!("DROP VIEW {}", package.totals));
        }
    }
}

/// The statements that an installation has printed, as typed: those of an administrator, the grants, and those of the application.
fn what_is_printed_is_what_an_application_needs(schema: &Schema<'_>, said: &str) {
    assert!(said.lines().filter(|line| !line.starts_with("create ")).count() <= 24, "{said}");
    let application = Account::new(schema, "app", "USAGE");
    let lines = |start: &'static str| said.lines().map(str::trim).filter(move |line| line.starts_with(start));
    let setups = lines("CALL ").filter(|line| !line.contains('?') && !line.contains("_rollup("));
    let grants = lines("GRANT ").map(|line| line.replace("'app'@", &format!("'{}'@", application.name)));
    setups.map(str::to_owned).chain(grants).for_each(|statement| schema.run(&statement));
    let mut connection = application.connect();
    connection.query_drop(format!("USE {}", schema.ident())).expect("a privilege on the schema");
    let mut counted = 0;
    for line in lines("CALL ").chain(lines("SELECT ")).filter(|line| line.contains('?')) {
        let (name, more) = match () {
            () if line.contains("bounded") => ("'seats'", "1"),
            () if line.contains("counter_name") || line.contains(" counter_") => ("'downloads'", "1"),
            () if line.contains("view_") => ("'/'", "'2026-11-27'"),
            () => ("1", "1"),
        };
        let statement = line.replacen('?', name, 1).replace('?', more);
        connection.query_drop(&statement).unwrap_or_else(|error| panic!("{error} in {statement}: {said}"));
        counted += 1;
    }
    assert!(counted >= 2, "{said}");
}

fn status_tells_differences_apart(server: &Server) {
    let (schema, wanted) = (server.schema(), package(|_| {}).of_family(server.version.family));
    schema.install(&wanted);
    // Routines that are created again, in a session with a setting, with other words.
    let routines = [
        ("counter_add", "DO 0", ["counter + p_amount", "counter + 2 * p_amount"], "the body differs"),
        ("counter_resize", "DO 0", ["p_slots INT", "p_slots BIGINT"], "the parameters differ"),
        ("counter_delete", "SET sql_mode = ''", [""; 2], "sql_mode ''"),
        ("counter_drop", "SET collation_connection = utf8mb4_bin", [""; 2], "collation_connection utf8mb4_bin"),
        ("_counter_add_elsewhere", "SET character_set_client = latin1", [""; 2], "character_set_client latin1"),
        ("counter_reset", "DO 0", ["COMMENT '", "COMMENT 'by hand "], "the COMMENT differs"),
        ("counter_setup", "DO 0", ["COMMENT", "SQL SECURITY INVOKER COMMENT"], "SECURITY INVOKER instead of DEFINER"),
        ("_counter_fail", "DO 0", ["COMMENT", "READS SQL DATA COMMENT"], "READS SQL DATA instead of "),
        ("_counter_must_exist", "DO 0", ["COMMENT", "DETERMINISTIC COMMENT"], "DETERMINISTIC instead of NOT "),
    ];
    for (name, setting, [from, to], _) in routines {
        let created: mysql::Row = schema.first(&format!("SHOW CREATE PROCEDURE {name}"));
        let created = created.get::<String, _>(2).expect("its statement").replacen(from, to, 1);
        schema.after(&[&format!("DROP PROCEDURE {name}"), setting, &created]);
    }
    // A view of the number 1 is what mysqldump creates first, and what stays if the restore stops.
    schema.run(&format!(
        "DROP PROCEDURE counter_increment; CREATE OR REPLACE VIEW counter_package AS SELECT '0.0.9' AS version, '{}' AS options;
         CREATE OR REPLACE VIEW counter_totals AS SELECT 1 AS counter_name, 1 AS description, 1 AS start_date, 1 AS slots, 1 AS total",
        wanted.options.description()
    ));
    let status = ends(&schema, 1, "status");
    for (object, difference) in routines.map(|(name, .., difference)| (name, difference)).into_iter().chain([
        ("counter_increment", "missing"),
        ("counter_package", "version 0.0.9 instead of"),
        ("counter_totals", "the query differs"),
    ]) {
        let is_named = |line: &str| line.contains(&format!(" {object}: ")) && line.contains(difference);
        assert!(status.lines().any(is_named), "{object}: {difference}: {status}");
    }
    ends(&schema, 0, "install counters");
    ends(&schema, 0, "status");
}

fn status_of_an_account_that_sees_a_part_is_incomplete(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    let account = Account::new(&schema, "a", "SELECT");
    has(&ends_as(&account, &schema, 2, "status"), &["GRANT SELECT, SHOW VIEW"]);
    let mut hint = String::new();
    for more in ["SHOW VIEW", "EXECUTE"] {
        account.grant(more);
        let said = ends_as(&account, &schema, 2, "status");
        has(&said, &["procedure counter_add: this account cannot see it"]);
        assert!(!said.contains("missing"), "{more}: {said}");
        hint = said;
    }
    schema.run(rest_of_line(&hint, "To see it, run as an administrator: "));
    ends_as(&account, &schema, 0, "status");
}

fn status_prints_one_line_for_each_counter(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    for (name, slots, total) in [("a", 3, 7), ("b", 2, 30), ("c", 5, 0), ("d", 1, 6), ("e", 1, 5), ("f", 1, 4)] {
        schema.run(&format!("CALL counter_setup('{name}', NULL, {slots}, {total})"));
    }
    let said = ends(&schema, 0, "status");
    let (_, table) = said.split_once("objects are the same\n").expect("the objects");
    let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let lines: Vec<_> = words.filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["counter total slots", "b 30 2", "a 7 3", "d 6 1", "e 5 1", "f 4 1", "and 1 more"]);
    // The slots of a column contain what is pending.
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (7, 40)");
    ends(&schema, 0, "install --column articles.views");
    schema.run("CALL articles_views_add(7, 2); CALL articles_views_add(8, 1); CALL articles_views_add(8, -1)");
    let said = ends(&schema, 0, "status articles.views");
    has(&said, &["articles.views: 2 pending counts of 1 records\n", "counter  pending  slots"]);
    assert!(!said.contains(" more") && !said.lines().any(|line| line.trim_start().starts_with("8 ")), "{said}");
    schema.run("CALL articles_views_add_many('[[11, 1], [12, 1], [13, 1], [14, 1], [15, 1], [16, 1]]')");
    has(&ends(&schema, 0, "status articles.views"), &["and 2 more\n"]);
    let status: Value = serde_json::from_str(&ends(&schema, 0, "status articles.views --json")).expect("JSON");
    let counter = serde_json::json!({"name": "7", "pending": 2, "slots": 1});
    assert_eq!(status["packages"][0]["counters"][0], counter, "{status:#}");
}

fn another_installation_replaces_what_differs_and_keeps_the_slots_of_a_column(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    schema.run("CALL counter_setup('hits', NULL, 20, 7); CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    let said = ends(&schema, 0, "install counters --slots 20");
    assert!(said.contains("replace procedure counter_increment") && !said.contains("counter_drop"), "{said}");
    has(&ends(&schema, 0, "install counters --slots 20"), &[INSTALLED]);
    schema.run("CALL counter_increment('hits')");
    assert_eq!(schema.first::<u64>("SELECT counter_get('hits')"), 8);
    for (more, slots) in [("--slots 16", true), ("--no-function", true), ("--slots 521", false)] {
        ends(&schema, 0, &format!("install --column articles.views {more}"));
        let options: String = schema.first("SELECT options FROM articles_views_package");
        assert_eq!(options.contains(r#"["slots","16"]"#), slots, "{more}: {options}");
    }
}

/// The calls of different nodes would conflict. The plugin has the setting also without a group.
fn status_names_a_group_that_has_several_primaries_since_the_installation(server: &Server) {
    let server = server.another(&["--plugin-load-add=group_replication.so"]);
    let schema = server.schema();
    ends(&schema, 0, "install counters");
    schema.run("SET GLOBAL group_replication_single_primary_mode = OFF");
    let said = ends(&schema, 1, "status");
    has(&said, &["all nodes of this cluster accept writes"]);
    ends(&schema, 0, rest_of_line(&said, "run slotted "));
    ends(&schema, 0, "status");
}

/// The privileges of an account on routines.
fn routine_grants(schema: &Schema<'_>, user: &str) -> Vec<(String, String)> {
    let query = "SELECT Routine_name, CAST(Proc_priv AS CHAR) FROM mysql.procs_priv WHERE User = ? ORDER BY 1";
    schema.connect().exec(query, (user,)).expect("grants")
}

/// A panic of the tool stops it between two packets. The name of the account needs quotes.
fn an_installation_that_is_killed_at_any_statement_is_completed_by_the_next(server: &Server) {
    let (schema, wanted) = (server.schema(), package(|_| {}).of_family(server.version.family));
    let user = format!("it's `{}", std::process::id());
    let account = format!("'{}'@'localhost'", user.replace('\'', "''"));
    schema.run(&format!("CREATE USER {account}"));
    // Whether there was a statement at which it was killed.
    let is_killed_and_completed = |before: &str, at: usize| {
        schema.run(before);
        let (mut connection, mut said) = (schema.connect(), 0);
        let say = &mut |_: &str| {
            said += 1;
            if said > at {
                // A panic without its message.
                resume_unwind(Box::new("killed"));
            }
        };
        let killed = catch_unwind(AssertUnwindSafe(|| install::install(&mut connection, &wanted, say))).is_err();
        drop(connection);
        // The second time, there is nothing to do.
        let [first, second] = [(); 2].map(|()| install::install(&mut schema.connect(), &wanted, &mut |_| {}));
        assert!(first.is_ok() && matches!(second, Ok((false, false))), "{at}: {first:?}, {second:?}");
        killed
    };
    let nothing = format!("{}; DROP TABLE IF EXISTS counters", schema.file(&wanted, "uninstall.sql"));
    let statements = (0..).take_while(|at| is_killed_and_completed(&nothing, *at)).count();
    assert!(statements > 10, "{statements} statements");
    schema.run(&format!(
        "GRANT EXECUTE ON PROCEDURE counter_add TO {account} WITH GRANT OPTION; GRANT EXECUTE ON FUNCTION counter_get TO {account};
         GRANT ALTER ROUTINE ON PROCEDURE counter_reset TO {account}"
    ));
    let grants = routine_grants(&schema, &user);
    assert_eq!(grants.len(), 3);
    let old = "ALTER PROCEDURE counter_add COMMENT 'old'; ALTER FUNCTION counter_get COMMENT 'old'; DROP PROCEDURE counter_delete";
    let replaced = (0..).take_while(|at| {
        let killed = is_killed_and_completed(old, *at);
        assert_eq!(routine_grants(&schema, &user), grants, "killed at {at}");
        killed
    });
    assert!(replaced.count() > 2);
    schema.run(&format!("DROP USER {account}"));
}

fn twenty_installations_at_the_same_time_give_one_package(server: &Server) {
    let schema = server.schema();
    let running = Vec::from_iter((0..20).map(|_| start(&schema, "install slotted_counters")));
    let outputs = Vec::from_iter(running.into_iter().map(|one| one.wait_with_output().expect("the end")));
    assert!(outputs.iter().all(|output| output.status.success()), "{outputs:?}");
    let did_nothing = outputs.iter().filter(|output| printed(output).contains(INSTALLED));
    assert_eq!(did_nothing.count(), 19);
}

/// Waits until a session, which is none of the calls, waits for a transaction with a routine or for FLUSH TABLES WITH READ LOCK.
fn until_an_upgrade_waits(schema: &Schema<'_>) {
    let waiting = format!(
        "SELECT COUNT(*) FROM {SESSIONS} WHERE DB = DATABASE() AND STATE REGEXP '^Waiting for (stored|global|backup)' AND INFO NOT REGEXP '^(CALL|SELECT)'"
    );
    until("an upgrade waits", || schema.first::<u64>(&waiting) > 0);
}

/// The global read lock of a backup stops the other promises of a server. MariaDB replaces a routine that a transaction has used.
fn calls_go_on_while_an_upgrade_waits(server: &Server) {
    let server = &server.another(&[]);
    upgrade_waits_for(server, &["FLUSH TABLES WITH READ LOCK"], "SELECT counter_get('hits')", false);
    if server.is_mysql() {
        upgrade_waits_for(server, &TRANSACTION, TRANSACTION[1], false);
    }
}

/// MySQL gets DROP, CREATE and GRANT in one packet, and executes all when the transaction has ended. MariaDB has one statement.
fn an_upgrade_that_is_killed_while_it_waits_loses_nothing(server: &Server) {
    upgrade_waits_for(server, &TRANSACTION, TRANSACTION[1], true);
}

/// A transaction that has used the routine that is replaced.
const TRANSACTION: [&str; 2] = ["START TRANSACTION", "CALL counter_add('hits', 1)"];

/// Upgrades a routine while a session blocks it, and another one calls it. The tool can be killed while it waits.
fn upgrade_waits_for(server: &Server, blocks: &[&str], call: &str, kills: bool) {
    let schema = server.schema();
    let account = Account::new(&schema, "a", "USAGE");
    schema.install(&package(|_| {}));
    let grant = format!("GRANT EXECUTE ON PROCEDURE counter_add TO '{}'@'%'", account.name);
    schema.run(&format!(
        "{grant}; ALTER PROCEDURE counter_add COMMENT 'old'; CALL counter_setup('hits', NULL, 64, NULL)"
    ));
    let grants = routine_grants(&schema, &account.name);
    let (mut blocking, plants) = (schema.after(blocks), blocks == TRANSACTION && !kills);
    let (calls, longest) = (AtomicU64::new(0), AtomicU64::new(0));
    let part = |connection: &mut Conn, _| {
        let start = Instant::now();
        match connection.query_drop(call) {
            // MySQL has no routine between its DROP and its CREATE.
            Err(mysql::Error::MySqlError(error)) if error.code == 1305 => {}
            result => result.expect("a call during an upgrade"),
        }
        longest.fetch_max(start.elapsed().as_secs(), SeqCst);
        calls.fetch_add(1, SeqCst);
        thread::sleep(Duration::from_millis(20));
    };
    let said = beside([schema.connect()], part, || {
        let mut install = start(&schema, "install counters");
        let lines = BufReader::new(install.stderr.take().expect("a pipe")).lines();
        let mut lines = lines.map(|line| line.expect("a line"));
        let named = lines.find(|line| line.contains("waiting to ")).expect("a line about the wait");
        // It waits again, and calls end.
        until_an_upgrade_waits(&schema);
        let before = calls.load(SeqCst);
        until("calls go on", || calls.load(SeqCst) > before + 1);
        if kills {
            until_an_upgrade_waits(&schema);
            install.kill().expect("a signal");
        }
        schema.run(if plants { "ALTER PROCEDURE counter_reset COMMENT 'new'" } else { "DO 0" });
        run_all(&mut blocking, &["COMMIT", "UNLOCK TABLES"]).expect("no lock");
        let rest = lines.collect::<String>();
        let code = install.wait().expect("the end").code();
        assert_eq!(code, (!kills).then_some(i32::from(plants)), "{blocks:?}: {rest:?}");
        assert_eq!(rest.contains("warning: procedure counter_reset: differs"), plants, "{rest}");
        named
    });
    // A call waits behind a DROP until this has timed out, after 2 s. A machine under load takes longer.
    assert!(longest.load(SeqCst) < 20, "{blocks:?}: {longest:?} s");
    let blocker = format!("connection {} of ", blocking.connection_id());
    assert!(!server.is_mysql() || said.contains(&blocker), "{blocks:?}: {blocker}: {said}");
    if kills || plants {
        // It waits until the session of the killed one has ended.
        ends(&schema, 0, "install counters");
    }
    has(&ends(&schema, 0, "install counters"), &[INSTALLED]);
    assert_eq!(routine_grants(&schema, &account.name), grants, "{blocks:?}");
}

/// A column without a default, and a partition that is missing.
fn the_trial_finds_what_fails_and_leaves_nothing(server: &Server) {
    let failed = "the package is installed, but the trial of its routines failed at CALL `";
    for (package, change, error) in [
        ("counters", "ADD team INT NOT NULL", "ERROR 1364"),
        ("bounded_counters", "ADD team INT NOT NULL", "ERROR 1364"),
        ("slotted_counters", "ADD team INT NOT NULL", "ERROR 1364"),
        ("counters", "PARTITION BY LIST (counter_id) (PARTITION p VALUES IN (1, 2))", "ERROR 1526"),
    ] {
        let (schema, install) = (server.schema(), format!("install {package}"));
        ends(&schema, 0, &install);
        assert_eq!(schema.first::<u64>(&format!("SELECT COUNT(*) FROM {package}")), 0);
        schema.run(&format!("ALTER TABLE {package} {change}"));
        has(&ends(&schema, 2, &install), &[failed, error]);
        // A trigger would execute what its owner has written.
        schema.run(&format!("CREATE TRIGGER mine BEFORE INSERT ON {package} FOR EACH ROW SIGNAL SQLSTATE '45000'"));
        let why = format!("the table {package} has the trigger mine");
        has(&ends(&schema, 0, &install), &[&format!("the routines were not tried: {why}")]);
        has(&ends(&schema, 1, "status"), &[&format!("{why}\n    each call executes it: drop it, unless you need it")]);
    }
}

/// Each call would fail (1449).
fn a_definer_that_does_not_exist_is_rejected_before_anything_is_created(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    for package in ["counters", "--column articles.views"] {
        let definer = format!("{}_d@localhost", schema.name);
        let install = format!("install {package} --definer {definer}");
        let said = ends(&schema, 2, &install);
        has(&said, &[&format!("the definer {definer} does not exist; nothing has been changed")]);
        assert!(!said.contains("create "), "{said}");
        // An underscore would be a wildcard.
        has(&said, &[&format!("ON `{}`.* TO", schema.name.replace('_', "\\_"))]);
        schema.run(rest_of_line(&said, "hint: run as an administrator: "));
        let said = ends(&schema, 0, &install);
        if package.contains("column") {
            // Whoever may replace the roll-up would execute as the definer of its event.
            has(&said, &[" CREATE DEFINER = "]);
            let (_, event) = said.lines().find_map(|line| line.split_once(" EVENT ")).expect(&said);
            schema.after(&[&format!("CREATE EVENT {}", event.trim_end_matches(';'))]);
            has(&ends(&schema, 1, "status"), &[&format!(" instead of {definer}\n"), "ALTER DEFINER = "]);
            // Neither may the one whom its owner leaves out of the view of the package.
            let options: String = schema.first("SELECT options FROM articles_views_package");
            let planted = SqlStr(options.replace(&format!("[\"definer\",\"{definer}\"],"), ""));
            let view = format!("VIEW articles_views_package AS SELECT '0.1.0' AS version, {planted} AS options");
            schema.run(&format!("ALTER EVENT articles_views_rollup DO DO 0; CREATE OR REPLACE {view}"));
            has(&ends(&schema, 1, "status"), &["CREATE DEFINER = `"]);
        }
        schema.run(&format!("DROP USER {definer}"));
    }
}

fn each_missing_privilege_is_named_by_the_server_with_a_hint(server: &Server) {
    let install = "install counters --no-function";
    let mut all = vec!["CREATE", "CREATE VIEW", "CREATE ROUTINE", "SELECT", "INSERT", "UPDATE", "DELETE"];
    // MySQL needs it to drop a routine of the file. MariaDB has none.
    all.extend(server.is_mysql().then_some("ALTER ROUTINE"));
    for &missing in &all {
        let schema = server.schema();
        let account = Account::new(&schema, "a", "DROP");
        all.iter().filter(|one| **one != missing).for_each(|one| account.grant(one));
        let said = ends_as(&account, &schema, 2, install);
        let numbers = ["ERROR 1044", "ERROR 1142", "ERROR 1143", "ERROR 1370"];
        assert!(numbers.iter().any(|number| said.contains(number)), "{missing}: {said}");
        has(&said, &["it does what is left"]);
        if missing == "DELETE" {
            // The trial has created a counter before.
            assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM counters"), 0);
        }
        let grant = rest_of_line(&said, "hint: run as an administrator: ");
        schema.run(grant.split(';').next().expect("a statement"));
        (0..2).for_each(|_| _ = ends_as(&account, &schema, 0, install));
    }
    // For a definer of others (1227). MySQL has no CREATE OR REPLACE for routines: what is dropped before the error would stay away.
    let schema = server.schema();
    let account = Account::new(&schema, "a", "ALL");
    ends_as(&account, &schema, 0, install);
    let routines = "SELECT GROUP_CONCAT(ROUTINE_NAME ORDER BY 1) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    let before: String = schema.first(routines);
    let said = ends_as(&account, &schema, 2, &format!("{install} --definer root@localhost"));
    has(&said, &["ERROR 1227", "hint: connect as an account with one of the privileges"]);
    assert_eq!(schema.first::<String>(routines), before);
}

/// With a binary log, a server lets only an account with SUPER create a function.
fn the_owner_of_one_schema_installs(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    let account = Account::new(&schema, "a", "ALL");
    for package in ["counters", "bounded_counters", "slotted_counters", "--column articles.views"] {
        let mut install = format!("install {package}");
        if schema.first("SELECT @@log_bin AND NOT @@log_bin_trust_function_creators") {
            let said = ends_as(&account, &schema, 2, &install);
            has(&said, &["SET GLOBAL log_bin_trust_function_creators = ON; or add --no-function"]);
            install += " --no-function";
        }
        ends_as(&account, &schema, 0, &install);
    }
    ends_as(&account, &schema, 0, "status");
    for table in ["counters", "bounded_counters", "slotted_counters", "articles.views"] {
        ends_as(&account, &schema, 0, &format!("uninstall {table} --with-data --yes"));
    }
    assert_eq!(schema.objects(), 1);
}

/// An account that cannot read the privileges on a routine, and one that cannot grant them.
fn privileges_that_cannot_be_kept_stop_an_upgrade(server: &Server) {
    let schema = server.schema();
    let (account, caller) = (Account::new(&schema, "a", "ALL"), Account::new(&schema, "c", "USAGE"));
    let install = |code: i32, comment: &str, text: &str| {
        has(&ends_as(&account, &schema, code, "install counters --no-function"), &[text]);
        let query = "SELECT LEFT(ROUTINE_COMMENT, 3) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'counter_add'";
        assert_eq!(schema.first::<String>(query), comment);
    };
    install(0, "Add", "");
    let grant = format!("GRANT EXECUTE ON PROCEDURE counter_add TO '{}'@'%'", caller.name);
    schema.run(&format!("{grant}; ALTER PROCEDURE counter_add COMMENT 'old'"));
    install(2, "old", "GRANT SELECT ON mysql.procs_priv");
    schema.run(&format!("GRANT SELECT ON mysql.procs_priv TO '{}'@'%'", account.name));
    install(2, "old", "cannot grant the privileges on procedure counter_add again: ERROR 1");
    ["GRANT OPTION", "EXECUTE, ALTER ROUTINE"].iter().for_each(|more| account.grant(more));
    install(0, "Add", "");
    assert_eq!(routine_grants(&schema, &caller.name), [("counter_add".to_owned(), "Execute".to_owned())]);
}

fn every_error_is_as_reviewed(server: &Server) {
    let (schema, mut texts) = (server.schema(), String::new());
    let mut fails = |before: &str, words: &str| {
        schema.run(before);
        texts += &format!("$ slotted {words}\n{}\n", ends(&schema, 2, words).replace(&schema.name, "SCHEMA"));
    };
    fails("", "status");
    fails("", "uninstall counters");
    fails("CREATE TABLE counters (id INT PRIMARY KEY) ENGINE = InnoDB", "install counters");
    schema.run("DROP TABLE counters");
    schema.install(&package(|_| {}));
    fails("", "uninstall --with-data");
    fails("RENAME TABLE counters TO counters_old", "install counters");
    fails("RENAME TABLE counters_old TO counters; DROP VIEW counter_package", "status");
    ends(&schema, 0, "install counters");
    ends(&schema, 0, "install slotted_counters");
    fails("", "uninstall");
    fails(
        "DROP VIEW slotted_counter_package; CREATE OR REPLACE VIEW counter_package AS SELECT '0.0.1' AS version, '[[\"format\",\"9\"]]' AS options",
        "status",
    );
    for words in ["install counters", "status", "uninstall"] {
        let said = exits(schema.slotted(words).env("SLOTTED_URL", server.url()), 2);
        texts += &format!("$ slotted {words} (without a database)\n{said}\n");
    }
    insta::assert_snapshot!("errors", texts);
}

fn uninstall_keeps_the_counts_unless_it_is_told_otherwise(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    schema.run("CALL counter_setup('hits', NULL, NULL, 42)");
    has(&ends(&schema, 0, "uninstall"), &["the table counters is kept"]);
    ends(&schema, 0, "install counters");
    assert_eq!(schema.first::<u64>("SELECT counter_get('hits')"), 42);
    let count = "UPDATE counters SET counter = counter + 1 WHERE counter_id = 1";
    for (sum, answer, meanwhile, left) in
        [(42, "no", "DO 0", 3), (42, "counters", count, 1), (43, "counters", "DO 0", 0)]
    {
        ends(&schema, 0, "install counters");
        let mut command = schema.slotted("uninstall --with-data");
        command.stdin(Stdio::inherit());
        let mut terminal = rexpect::session::spawn_command(command, Some(60_000)).expect("a terminal");
        terminal.exp_string(&format!("whose counts have the sum {sum}. ")).expect("what is dropped");
        terminal.exp_string("Type the name of the table to drop it: ").expect("a question");
        schema.run(meanwhile);
        terminal.send_line(answer).expect("an answer");
        terminal.exp_eof().expect("the end");
        let tables = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()";
        assert_eq!(schema.first::<u64>(tables), left, "{answer}");
    }
}
