//! The commands install, status and uninstall.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use serde_json::Value;
use slotted::connect::Session;
use slotted::install::compare::{State, states};
use slotted::install::{InstallError, apply, plan};
use slotted::package::{Package, Security, Slots, committed};
use slotted::script;

use crate::exactness::SetOnDrop;
use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, file, bounded_keyed, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(install_creates_each_package_and_does_nothing_the_second_time)
        .on_servers(a_package_that_a_client_has_installed_is_the_same)
        .on_servers(status_tells_differences_apart)
        .on_families(an_installation_that_is_killed_at_any_step_is_completed_by_the_next)
        .on_servers(what_is_planted_in_the_table_of_an_upgrade_is_not_executed)
        .on_servers(twenty_installations_at_the_same_time_give_one_package)
        .on_servers(calls_of_unchanged_routines_never_fail_during_an_upgrade)
        .on_families(an_upgrade_that_is_killed_at_any_moment_leaves_all_routines_and_their_privileges)
        .on_servers(other_options_replace_and_drop_what_differs)
        .on_families(a_definer_that_does_not_exist_is_named)
        .on_families(all_problems_are_listed_and_nothing_is_changed)
        .on_servers(what_an_account_installs_by_its_role_works_or_its_own_privileges_are_asked_for)
        .on_families(objects_that_are_not_of_a_package_are_not_touched)
        .on_servers(every_error_is_as_reviewed)
        .on_families(a_dry_run_prints_a_script_for_the_client)
        .on_families(uninstall_keeps_the_counts_unless_it_is_told_otherwise)
        .private()
        .waits()
        .on_families(calls_go_on_while_an_upgrade_waits)
        .on(|name| name.starts_with("mysql"), a_partial_revoke_is_a_problem_that_is_listed)
        .on_families(a_read_only_server_is_named);
}

/// The tool in a schema.
fn slotted(schema: &Schema<'_>, arguments: &[&str]) -> Command {
    let url = schema.server.url();
    let (place, parameters) = url.split_once('?').unwrap_or((&url, ""));
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    let url = format!("{place}/{}?{parameters}", schema.name);
    command.args(arguments).env("SLOTTED_URL", url.trim_end_matches('?')).stdin(Stdio::null());
    command
}

fn run(schema: &Schema<'_>, arguments: &[&str]) -> Output {
    slotted(schema, arguments).output().expect("slotted runs")
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn succeeds(schema: &Schema<'_>, arguments: &[&str]) -> String {
    let output = run(schema, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", printed(&output));
    printed(&output)
}

/// The words of `Options::arguments` after a command.
fn words(command: &str, package: &Package) -> Vec<String> {
    let mut words = vec![command.to_owned()];
    words.extend(shlex::split(&package.options.arguments()).expect("words"));
    words
}

fn with(command: &str, package: &Package, schema: &Schema<'_>) -> Output {
    let words = words(command, package);
    run(schema, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Asserts that every object is the same.
#[track_caller]
fn is_complete(connection: &mut Conn, package: &Package) {
    for object in states(connection, package).expect("states") {
        assert_eq!(object.state, State::Same, "{object}");
    }
}

/// Packages with other options each.
fn packages() -> Vec<Package> {
    let mut packages = committed();
    packages.push(package(|options| {
        options.security = Security::Invoker;
        options.table = "my$table".parse().expect("a name");
        options.prefix = "a_".parse().expect("a prefix");
        options.collation = "utf8mb4_bin".parse().expect("a collation");
        options.function = false;
    }));
    packages.push(keyed(|options| {
        options.key = "url VARCHAR(200), day DATE".parse().expect("a key");
        options.prefix = "view_".parse().expect("a prefix");
        options.table = "views".parse().expect("a name");
    }));
    packages.push(of_column("parents.hits", "id BIGINT", |options| {
        (options.table, options.prefix) = ("hits".parse().expect("a name"), "hit_".parse().expect("a prefix"));
    }));
    packages.push(bounded_keyed(|options| options.security = Security::Invoker));
    packages
}

fn install_creates_each_package_and_does_nothing_the_second_time(server: &Server) {
    for package in packages() {
        let schema = server.schema();
        schema.run("CREATE TABLE parents (id BIGINT PRIMARY KEY, hits BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB; CREATE TABLE others LIKE parents");
        let output = with("install", &package, &schema);
        assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
        is_complete(&mut schema.connect(), &package);
        let again = with("install", &package, &schema);
        assert!(printed(&again).contains("is already installed; nothing to do"), "{}", printed(&again));
        // Without options, the tool reads them from the view of the package.
        let status: Value = serde_json::from_str(&succeeds(&schema, &["status", "--json"])).expect("JSON");
        assert_eq!(status["packages"][0]["arguments"], package.options.arguments());
        assert_eq!(status["same"], true, "{status:#}");
        assert_eq!(status["schema_version"], 1);
    }
}

fn a_package_that_a_client_has_installed_is_the_same(server: &Server) {
    for package in committed() {
        let schema = server.schema();
        let said = server.client(&schema.name).pipe(&[], &file(&package, "setup.sql"));
        assert!(said.success, "{}", said.stderr);
        is_complete(&mut schema.connect(), &package);
        let again = with("install", &package, &schema);
        assert!(printed(&again).contains("nothing to do"), "{}", printed(&again));
    }
}

/// The routine with a changed statement, as an administrator creates it by hand.
fn by_hand(schema: &Schema<'_>, package: &Package, name: &str, change: impl Fn(&str) -> String) {
    let create = script::statements(&file(package, "create_procedures.sql"))
        .into_iter()
        .find(|statement| statement.starts_with("CREATE") && statement.contains(&format!(" `{name}`")))
        .expect("the routine");
    let changed = change(&create);
    assert_ne!(changed, create, "{name}");
    let mut connection = schema.connect();
    connection.query_drop(format!("DROP PROCEDURE {name}")).expect("a routine");
    connection.query_drop(slotted::render::session(package).join(";")).expect("the settings");
    connection.query_drop(changed).expect("a routine");
}

fn status_tells_differences_apart(server: &Server) {
    let wanted = package(|_| {});
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    let state_of = |name: &str| {
        let states = states(&mut schema.connect(), &wanted).expect("states");
        states.into_iter().find(|object| object.name.name() == name).expect("the object").state
    };
    let expect = |name: &str, difference: &str| {
        match state_of(name) {
            State::Changed(differences) => {
                assert!(differences.iter().any(|one| one.contains(difference)), "{name}: {differences:?}");
            }
            other => panic!("{name}: {other:?}, expected {difference}"),
        }
        let status = run(&schema, &["status"]);
        assert_eq!(status.status.code(), Some(1), "{}", printed(&status));
        assert!(printed(&status).contains(name) && printed(&status).contains(difference), "{}", printed(&status));
        succeeds(&schema, &["install", "counters"]);
        is_complete(&mut schema.connect(), &wanted);
    };
    by_hand(&schema, &wanted, "counter_add", |text| text.replace("counter + p_amount", "counter + 2 * p_amount"));
    expect("counter_add", "the body differs");
    by_hand(&schema, &wanted, "counter_add", |text| text.replace("p_amount BIGINT", "p_amount INT"));
    expect("counter_add", "the parameters differ");
    schema.run("ALTER PROCEDURE counter_reset COMMENT 'by hand'");
    expect("counter_reset", "the COMMENT differs");
    schema.run("ALTER PROCEDURE counter_reset SQL SECURITY INVOKER");
    expect("counter_reset", "SQL SECURITY INVOKER instead of DEFINER");
    schema.run("ALTER PROCEDURE counter_reset READS SQL DATA");
    expect("counter_reset", "READS SQL DATA instead of MODIFIES SQL DATA");
    let mut connection = schema.connect();
    let created: mysql::Row = connection.query_first("SHOW CREATE PROCEDURE counter_delete").expect("a routine").expect("a row");
    let statement: String = created.get(2).expect("its statement");
    connection.query_drop("DROP PROCEDURE counter_delete").expect("a routine");
    connection.query_drop("SET sql_mode = ''").expect("a mode");
    connection.query_drop(&statement).expect("a routine");
    expect("counter_delete", "sql_mode ''");
    connection.query_drop("DROP PROCEDURE counter_delete").expect("a routine");
    connection.query_drop("SET sql_mode = DEFAULT, collation_connection = utf8mb4_bin").expect("settings");
    connection.query_drop(&statement).expect("a routine");
    expect("counter_delete", "collation_connection utf8mb4_bin");
    schema.run("DROP PROCEDURE counter_delete");
    assert_eq!(state_of("counter_delete"), State::Missing);
    assert!(printed(&run(&schema, &["status"])).contains("procedure counter_delete: missing"));
    succeeds(&schema, &["install", "counters"]);

    // A tool that removes comments also removes the exemption from error 1020.
    if server.has_snapshot_isolation() {
        by_hand(&schema, &wanted, "counter_increment", |text| {
            text.replace("/*M!101108 SET STATEMENT innodb_snapshot_isolation=OFF FOR */", "")
        });
        expect("counter_increment", "has lost SET STATEMENT");
    }
    // The version is in the view of the package, which is created last.
    let view: mysql::Row = connection.query_first("SHOW CREATE VIEW counter_package").expect("a view").expect("a row");
    let view: String = view.get(1).expect("its statement");
    let version = format!("'{}'", env!("CARGO_PKG_VERSION"));
    connection.query_drop(view.replacen("CREATE ", "CREATE OR REPLACE ", 1).replace(&version, "'0.0.9'")).expect("a view");
    expect("counter_package", "version 0.0.9 instead of");
    schema.run("CREATE OR REPLACE VIEW counter_totals AS SELECT 1 AS total");
    expect("counter_totals", "the query differs");

    let definer = format!("'slotted_gone_{}'@'localhost'", std::process::id());
    connection.query_drop(format!("CREATE USER {definer}")).expect("an account");
    by_hand(&schema, &wanted, "counter_add", |text| text.replacen("CREATE", &format!("CREATE DEFINER={definer}"), 1).replace(" /*M!100103 OR REPLACE */", ""));
    connection.query_drop(format!("DROP USER {definer}")).expect("an account");
    let dropped: Option<u64> = connection
        .exec_first("SELECT COUNT(*) FROM mysql.user WHERE User = ?", (format!("slotted_gone_{}", std::process::id()),))
        .expect("accounts");
    assert_eq!(dropped, Some(0), "the account is dropped");
    // Without --definer there is no accounts.sql: an installation corrects it.
    assert!(!printed(&run(&schema, &["status"])).contains("To create the definer"));
    expect("counter_add", "does not exist: calls fail with error 1449");
    schema.run("ALTER TABLE counters CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
    let status = run(&schema, &["status"]);
    assert!(printed(&status).contains("table counters: changed: "), "{}", printed(&status));
    assert_eq!(run(&schema, &["install", "counters"]).status.code(), Some(2));
}

/// The privileges of an account on routines.
fn routine_grants(connection: &mut Conn, user: &str) -> Vec<(String, String)> {
    connection
        .exec("SELECT Routine_name, CAST(Proc_priv AS CHAR) FROM mysql.procs_priv WHERE User = ? ORDER BY 1", (user,))
        .expect("grants")
}

fn an_installation_that_is_killed_at_any_step_is_completed_by_the_next(server: &Server) {
    let wanted = package(|_| {});
    let schema = server.schema();
    let user = format!("slotted_caller_{}", std::process::id());
    let mut connection = schema.connect();
    connection.query_drop(format!("CREATE USER '{user}'@'localhost'")).expect("an account");
    let killed_at = |at: usize| -> bool {
        let mut connection = Session::open(&schema.options().into()).expect("a session");
        let plan = plan(&mut connection, &wanted).expect("a plan");
        let mut done = 0;
        let result = apply(&mut connection, &plan, &AtomicBool::new(false), |_| {
            done += 1;
            if done > at { Err(InstallError::Locked) } else { Ok(()) }
        }, |_, _| {});
        // The connection ends here, as that of a killed process does.
        result.is_err()
    };
    let mut grants = Vec::new();
    for from_nothing in [true, false] {
        for at in 0.. {
            if from_nothing {
                schema.run("DROP TABLE IF EXISTS counters");
                let names: Vec<(String, String)> = connection
                    .query("SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()")
                    .expect("routines");
                for (kind, name) in names {
                    schema.run(&format!("DROP {kind} {name}"));
                }
                schema.run("DROP VIEW IF EXISTS counter_totals, counter_package");
            } else {
                // Two routines differ, one is missing.
                schema.run("ALTER PROCEDURE counter_add COMMENT 'old'");
                schema.run("ALTER FUNCTION counter_get COMMENT 'old'");
                schema.run("DROP PROCEDURE counter_delete");
            }
            let killed = killed_at(at);
            let mut next = Session::open(&schema.options().into()).expect("a session");
            let rest = plan(&mut next, &wanted).expect("a plan");
            apply(&mut next, &rest, &AtomicBool::new(false), |_| Ok(()), |_, _| {}).expect("the rest is installed");
            is_complete(&mut next, &wanted);
            let kept: u64 = schema.first("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'counter_upgrade'");
            assert_eq!(kept, 0, "killed at {at}");
            if from_nothing {
                if !killed {
                    for grant in ["EXECUTE ON PROCEDURE counter_add", "EXECUTE ON FUNCTION counter_get", "ALTER ROUTINE ON PROCEDURE counter_reset"] {
                        connection.query_drop(format!("GRANT {grant} TO '{user}'@'localhost' WITH GRANT OPTION")).expect("a grant");
                    }
                    grants = routine_grants(&mut connection, &user);
                    assert_eq!(grants.len(), 3);
                }
            } else {
                assert_eq!(routine_grants(&mut connection, &user), grants, "killed at {at}");
            }
            if !killed {
                assert!(at > 2, "{at} steps");
                break;
            }
        }
    }
    connection.query_drop(format!("DROP USER '{user}'@'localhost'")).expect("an account");
}

fn what_is_planted_in_the_table_of_an_upgrade_is_not_executed(server: &Server) {
    let planted = format!("slotted_planted_{}", std::process::id());
    let grant = format!("GRANT ALL ON *.* TO ''{planted}''@''localhost''");
    let columns = "routine_type VARCHAR(255), routine_name VARCHAR(255), user VARCHAR(255), host VARCHAR(255), privileges VARCHAR(255)";
    let row = |routine: &str, privileges: &str| {
        format!(
            "CREATE TABLE counter_upgrade ({columns}) ENGINE = InnoDB;
             INSERT INTO counter_upgrade VALUES ('PROCEDURE', '{routine}', '{planted}', 'localhost', '{privileges}')"
        )
    };
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    schema.run(&format!("CREATE USER '{planted}'@'localhost'; CREATE TABLE seen (n INT) ENGINE = InnoDB"));
    schema.run("CREATE PROCEDURE other() SELECT 1");
    let mut connection = schema.connect();
    connection
        .query_drop("CREATE FUNCTION look() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO seen VALUES (1); RETURN 1; END")
        .expect("a function");
    for (plant, drop) in [
        (
            format!("CREATE TABLE counter_upgrade (statement TEXT) ENGINE = InnoDB; INSERT INTO counter_upgrade VALUES ('{grant}')"),
            "TABLE",
        ),
        (row("counter_add", "Execute,ALL ON *.* TO CURRENT_USER() -- "), "TABLE"),
        (row("counter_add` TO root@localhost -- ", "Execute"), "TABLE"),
        (row("other", "Execute"), "TABLE"),
        ("CREATE VIEW counter_upgrade AS SELECT look() AS statement".to_owned(), "VIEW"),
    ] {
        schema.run(&plant);
        schema.run("ALTER PROCEDURE counter_add COMMENT 'old'");
        let output = slotted(&schema, &["install", "counters"]).output().expect("slotted runs");
        let comment: String = schema.first(
            "SELECT LEFT(ROUTINE_COMMENT, 3) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'counter_add'",
        );
        // MariaDB does not use the table.
        let (code, left) = if server.is_mysql() { (2, "old") } else { (0, "Des") };
        assert_eq!(output.status.code(), Some(code), "{plant}: {}", printed(&output));
        assert_eq!(comment, left, "{plant}");
        assert_eq!(printed(&output).contains("counter_upgrade is not the table"), server.is_mysql(), "{}", printed(&output));
        schema.run(&format!("DROP {drop} counter_upgrade"));
    }
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM seen"), 0);
    assert_eq!(routine_grants(&mut connection, &planted), []);
    let grants: Vec<String> = connection.query(format!("SHOW GRANTS FOR '{planted}'@'localhost'")).expect("grants");
    assert_eq!(grants.len(), 1, "{grants:?}");
    assert!(grants[0].starts_with("GRANT USAGE"), "{grants:?}");
    connection.query_drop(format!("DROP USER '{planted}'@'localhost'")).expect("an account");
}

fn twenty_installations_at_the_same_time_give_one_package(server: &Server) {
    let schema = server.schema();
    let running: Vec<_> = (0..20)
        .map(|_| {
            let mut command = slotted(&schema, &["install", "slotted_counters"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("slotted runs")
        })
        .collect();
    let mut did_nothing = 0;
    for one in running {
        let output = one.wait_with_output().expect("the end");
        assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
        did_nothing += u32::from(printed(&output).contains("nothing to do"));
    }
    assert_eq!(did_nothing, 19);
    is_complete(&mut schema.connect(), &keyed(|_| {}));
}

/// MySQL drops the routine, which waits for the transaction, and calls of all sessions wait behind the DROP.
/// The states in which a statement waits for a transaction that has used a routine, or for FLUSH TABLES WITH READ LOCK.
const WAITING: [&str; 3] = ["Waiting for stored", "Waiting for global", "Waiting for backup"];

/// Whether a session of this schema waits for a lock, and is none of the calls.
fn an_upgrade_waits(witness: &mut Conn, schema: &Schema<'_>) -> bool {
    // information_schema.PROCESSLIST fails if a statement of another session has a character of 4 bytes (3854).
    let rows: Vec<mysql::Row> = witness.query("SHOW FULL PROCESSLIST").expect("the sessions");
    rows.iter().any(|row| {
        let text = |name: &str| row.get::<Option<String>, _>(name).flatten().unwrap_or_default();
        let (state, info) = (text("State"), text("Info"));
        text("db") == schema.name && WAITING.iter().any(|one| state.starts_with(one)) && !info.starts_with("CALL") && !info.starts_with("SELECT")
    })
}

fn calls_go_on_while_an_upgrade_waits(server: &Server) {
    // A lock of all tables stops the other promises of a server.
    let server = &server.another(&[]);
    let schema = server.schema();
    let user = format!("slotted_calls_{}", std::process::id());
    succeeds(&schema, &["install", "counters"]);
    schema.run(&format!(
        "CALL counter_setup('hits', NULL, 64, NULL);
         CREATE USER '{user}'@'localhost'; GRANT EXECUTE ON PROCEDURE counter_add TO '{user}'@'localhost'"
    ));
    let grants = routine_grants(&mut schema.connect(), &user);
    // What mysqldump --single-transaction --routines executes, and a backup of the files.
    let dump = &["START TRANSACTION WITH CONSISTENT SNAPSHOT", "SHOW CREATE PROCEDURE counter_add"][..];
    let used = &["START TRANSACTION", "CALL counter_add('hits', 1)"][..];
    let backup = &["FLUSH TABLES WITH READ LOCK"][..];
    for (blocks, call) in [
        (used, "CALL counter_add('hits', 1)"),
        (dump, "CALL counter_add('hits', 1)"),
        (backup, "SELECT counter_get('hits')"),
    ] {
        // MariaDB replaces a routine that a transaction has used.
        if !server.is_mysql() && blocks != backup {
            continue;
        }
        let mut blocking = schema.connect();
        schema.run("ALTER PROCEDURE counter_add COMMENT 'old'");
        let mut witness = schema.connect();
        for statement in blocks {
            blocking.query_drop(statement).expect(statement);
        }
        let stop = AtomicBool::new(false);
        let calls: Vec<_> = (0..16).map(|_| AtomicU64::new(0)).collect();
        let longest = AtomicU64::new(0);
        let (status, said) = thread::scope(|scope| {
            let _stop = SetOnDrop(&stop);
            for calls in &calls {
                let mut connection = schema.connect();
                let (stop, longest) = (&stop, &longest);
                scope.spawn(move || {
                    while !stop.load(SeqCst) {
                        let start = Instant::now();
                        match connection.query_drop(call) {
                            // MySQL has no routine between its DROP and its CREATE.
                            Err(mysql::Error::MySqlError(error)) if error.code == 1305 => {}
                            result => result.expect("a call during an upgrade"),
                        }
                        longest.fetch_max(start.elapsed().as_millis() as u64, SeqCst);
                        calls.fetch_add(1, SeqCst);
                        thread::sleep(Duration::from_millis(20));
                    }
                });
            }
            let mut until_it_waits = || {
                let end = Instant::now() + Duration::from_secs(30);
                while !an_upgrade_waits(&mut witness, &schema) {
                    assert!(Instant::now() < end, "{blocks:?}: no upgrade waits");
                    thread::sleep(Duration::from_millis(20));
                }
            };
            let start = || {
                let mut command = slotted(&schema, &["install", "counters"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("slotted runs")
            };
            // Stopped while it waits, it leaves what was there.
            let stopped = start();
            until_it_waits();
            assert!(Command::new("kill").args(["-INT", &stopped.id().to_string()]).status().expect("kill").success());
            let output = stopped.wait_with_output().expect("the end");
            assert_eq!(output.status.code(), Some(130), "{blocks:?}: {}", printed(&output));
            assert_eq!(schema.first::<String>("SELECT ROUTINE_COMMENT FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'counter_add'"), "old");
            // Each caller completes calls while it waits.
            let mut install = start();
            until_it_waits();
            if server.is_mysql() {
                let limits = "SELECT DISTINCT VARIABLE_VALUE
                                FROM performance_schema.variables_by_thread
                                     JOIN performance_schema.threads USING (THREAD_ID)
                               WHERE VARIABLE_NAME = 'lock_wait_timeout'
                                 AND PROCESSLIST_DB = DATABASE()
                                 AND VARIABLE_VALUE <> @@GLOBAL.lock_wait_timeout";
                assert_eq!(schema.query::<String>(limits), ["2"], "{blocks:?}");
            }
            let before: Vec<_> = calls.iter().map(|calls| calls.load(SeqCst)).collect();
            let end = Instant::now() + Duration::from_secs(60);
            while calls.iter().zip(&before).any(|(calls, before)| calls.load(SeqCst) < before + 1) {
                assert!(Instant::now() < end, "{blocks:?}: a caller waits");
                thread::sleep(Duration::from_millis(20));
            }
            let mut lines = BufReader::new(install.stderr.take().expect("a pipe")).lines().map(|line| line.expect("a line"));
            let named = lines.find(|line| line.contains("waiting to ")).expect("a line about the wait");
            // It waits again.
            until_it_waits();
            blocking.query_drop("COMMIT").expect("a commit");
            blocking.query_drop("UNLOCK TABLES").expect("no lock");
            let rest: Vec<_> = lines.collect();
            (install.wait().expect("the end"), format!("{named}\n{}", rest.join("\n")))
        });
        assert_eq!(status.code(), Some(0), "{blocks:?}: {said}");
        // A call waits behind a DROP until this has timed out, after 2 s. A machine under load takes longer.
        let longest = longest.into_inner();
        eprintln!("{}, {blocks:?}: the longest call took {longest} ms", server.version);
        assert!(longest < 20_000, "{blocks:?}: {longest} ms");
        let blocker = format!("connection {} of ", blocking.connection_id());
        assert!(!server.is_mysql() || said.contains(&blocker), "{blocks:?}: {blocker}: {said}");
        is_complete(&mut schema.connect(), &package(|_| {}));
        assert_eq!(routine_grants(&mut schema.connect(), &user), grants, "{blocks:?}");
    }
    schema.run(&format!("DROP USER '{user}'@'localhost'"));
}

fn an_upgrade_that_is_killed_at_any_moment_leaves_all_routines_and_their_privileges(server: &Server) {
    let schema = server.schema();
    let user = format!("slotted_killed_{}", std::process::id());
    succeeds(&schema, &["install", "counters"]);
    let mut connection = schema.connect();
    let routines = "SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() ORDER BY 1, 2";
    let before: Vec<(String, String)> = connection.query(routines).expect("routines");
    connection.query_drop(format!("CREATE USER '{user}'@'localhost'")).expect("an account");
    for (kind, name) in &before {
        connection.query_drop(format!("GRANT EXECUTE ON {kind} {name} TO '{user}'@'localhost'")).expect("a grant");
    }
    let grants = routine_grants(&mut connection, &user);
    let change = |connection: &mut Conn| {
        for (kind, name) in &before {
            connection.query_drop(format!("ALTER {kind} {name} COMMENT 'Private. old'")).expect("another routine");
        }
    };
    change(&mut connection);
    let start = Instant::now();
    succeeds(&schema, &["install", "counters"]);
    let lasting = start.elapsed();
    let mut witness = schema.connect();
    for moment in 0..=10 {
        change(&mut connection);
        // The first one is killed while its DROP waits. The server executes it when the transaction has ended.
        let waits = moment == 0 && server.is_mysql();
        let mut idle = schema.connect();
        if waits {
            idle.query_drop("START TRANSACTION").expect("a transaction");
            idle.query_drop("CALL counter_add_many('[]')").expect("a call");
        }
        let mut install = slotted(&schema, &["install", "counters"]).stderr(Stdio::null()).spawn().expect("slotted runs");
        let end = Instant::now() + Duration::from_secs(30);
        while waits && !an_upgrade_waits(&mut witness, &schema) {
            assert!(Instant::now() < end, "no upgrade waits");
        }
        thread::sleep(lasting * moment / 10);
        install.kill().expect("a killed process");
        install.wait().expect("the end");
        drop(idle);
        // The server completes what it has received.
        let own = u64::from(connection.connection_id());
        let others = [own, witness.connection_id().into()];
        let id = |row: &mysql::Row| row.get::<u64, _>("Id").unwrap_or_default();
        let works = |row: &mysql::Row| row.get::<Option<String>, _>("db").flatten().as_ref() == Some(&schema.name) && !others.contains(&id(row));
        let end = Instant::now() + Duration::from_secs(30);
        while connection.query::<mysql::Row, _>("SHOW FULL PROCESSLIST").expect("the sessions").iter().any(works) {
            assert!(Instant::now() < end, "a session of the upgrade is left");
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(connection.query::<(String, String), _>(routines).expect("routines"), before, "killed at {moment} of 10");
        assert_eq!(routine_grants(&mut connection, &user), grants, "killed at {moment} of 10");
    }
    succeeds(&schema, &["install", "counters"]);
    is_complete(&mut connection, &package(|_| {}));
    connection.query_drop(format!("DROP USER '{user}'@'localhost'")).expect("an account");
}

fn calls_of_unchanged_routines_never_fail_during_an_upgrade(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    schema.run("CALL counter_setup('hits', NULL, 64, NULL)");
    let (stop, counted) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let _stop = SetOnDrop(&stop);
        for _ in 0..16 {
            let mut connection = schema.connect();
            let (stop, counted) = (&stop, &counted);
            scope.spawn(move || {
                while !stop.load(SeqCst) {
                    connection.query_drop("CALL counter_increment('hits')").expect("a call during an upgrade");
                    counted.fetch_add(1, SeqCst);
                    // So that the processors have time for the upgrades.
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        for _ in 0..10 {
            schema.run("ALTER PROCEDURE counter_add COMMENT 'old'");
            schema.run("ALTER FUNCTION counter_get COMMENT 'old'");
            let text = succeeds(&schema, &["install", "counters"]);
            assert!(text.contains("replace procedure counter_add") && !text.contains("counter_increment"), "{text}");
        }
    });
    assert!(counted.load(SeqCst) > 0);
    assert_eq!(schema.first::<u64>("SELECT counter_get('hits')"), counted.load(SeqCst));
}

fn other_options_replace_and_drop_what_differs(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    schema.run("CALL counter_setup('hits', NULL, 20, 7)");
    let text = succeeds(&schema, &["install", "counters", "--slots", "20"]);
    assert!(text.contains("replace procedure counter_increment"), "{text}");
    let fixed = package(|options| options.slots = Slots::Fixed(20));
    is_complete(&mut schema.connect(), &fixed);
    let text = succeeds(&schema, &["install", "counters", "--slots", "20", "--no-function"]);
    assert!(text.contains("drop function counter_get, of other options"), "{text}");
    assert_eq!(schema.first::<u64>("SELECT total FROM counter_totals"), 7);
    // Counters with fewer slots do not fit.
    let rejected = run(&schema, &["install", "counters", "--slots", "64"]);
    assert_eq!(rejected.status.code(), Some(2));
    assert!(printed(&rejected).contains("has fewer than 64 slots"), "{}", printed(&rejected));
    let mut connection = schema.connect();
    let changed = package(|options| (options.slots, options.function) = (Slots::Fixed(20), false));
    is_complete(&mut connection, &changed);
}

fn a_definer_that_does_not_exist_is_named(server: &Server) {
    let schema = server.schema();
    let definer = format!("slotted_none_{}@localhost", std::process::id());
    let arguments = ["install", "counters", "--definer", &definer];
    let said = format!("the definer {definer} does not exist: calls fail with error 1449 until it is created");
    let first = succeeds(&schema, &arguments);
    assert!(first.contains("installed counters") && first.contains(&said), "{first}");
    // Creating the objects again would not help.
    let second = succeeds(&schema, &arguments);
    assert!(second.contains("nothing to do"), "{second}");
    let status = run(&schema, &["status", "counters", "--definer", &definer]);
    assert_eq!(status.status.code(), Some(1));
    assert!(printed(&status).contains(&said), "{}", printed(&status));
    let of_view = printed(&run(&schema, &["status"]));
    assert!(of_view.contains("To create the definer: source accounts.sql of slotted generate counters --definer "), "{of_view}");
    assert!(!of_view.contains("To install what differs"), "{of_view}");
}

fn all_problems_are_listed_and_nothing_is_changed(server: &Server) {
    let schema = server.schema();
    let user = format!("slotted_weak_{}", std::process::id());
    let mut root = schema.connect();
    root.query_drop(format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'weak'")).expect("an account");
    root.query_drop(format!("GRANT INSERT ON {}.* TO '{user}'@'%'", schema.ident())).expect("a privilege");
    let url = server.url_of(&user, Some("weak"));
    let (place, parameters) = url.split_once('?').unwrap_or((&url, ""));
    let url = format!("{place}/{}?{parameters}", schema.name);
    let objects = "SELECT (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE())
                        + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())";
    let mut install = slotted(&schema, &["install", "counters", "--definer", "someone@localhost"]);
    let output = install.env("SLOTTED_URL", &url).output().expect("slotted runs");
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for problem in ["does not have CREATE, CREATE ROUTINE, ALTER ROUTINE, CREATE VIEW, DROP, SELECT", "for the definer someone@localhost", "GRANT CREATE, ", "nothing has been changed"] {
        assert!(text.contains(problem), "{problem} in {text}");
    }
    // The check of the function depends on the settings of the server.
    // Each version has another privilege for the definer.
    let named = ["SET USER ON", "SET_USER_ID ON", "SET_ANY_DEFINER ON"].iter().fold(text.clone(), |text, privilege| text.replace(privilege, "PRIVILEGE ON"));
    let named = named.replace(&schema.name, "SCHEMA").replace(&user, "USER");
    let lines = named.lines().collect::<Vec<_>>();
    let function = lines.iter().position(|line| line.contains("without SUPER cannot create the function"));
    let reviewed: Vec<_> = (0..lines.len()).filter(|at| function.is_none_or(|first| *at != first && *at != first + 1)).map(|at| lines[at]).collect();
    insta::assert_snapshot!("problems", reviewed.join("\n"));
    let trusted: String = root.query_first("SELECT @@GLOBAL.log_bin + 2 * @@GLOBAL.log_bin_trust_function_creators").expect("settings").expect("a row");
    assert_eq!(text.contains("without SUPER cannot create the function"), trusted.starts_with('1'), "{text}");
    assert_eq!(schema.first::<u64>(objects), 0);
    // What the problem asks for is enough.
    let arguments = ["install", "counters", "--no-function"];
    let install = || slotted(&schema, &arguments).env("SLOTTED_URL", &url).output().expect("slotted runs");
    let text = printed(&install());
    let remedy = text.lines().find(|line| line.trim().starts_with("GRANT ")).expect("a remedy");
    root.query_drop(remedy.trim().trim_end_matches(';')).expect("privileges");
    let output = install();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let count = slotted(&schema, &["status", "--json"]).env("SLOTTED_URL", &url).output().expect("slotted runs");
    assert_eq!(count.status.code(), Some(0), "{}", printed(&count));
    schema.run("CALL counter_setup('hits', NULL, NULL, 1); CALL counter_increment('hits')");
    let status = slotted(&schema, &["status"]).env("SLOTTED_URL", &url).output().expect("slotted runs");
    assert_eq!(status.status.code(), Some(0), "{}", printed(&status));
    // Without the privilege EVENT, a package without a roll-up is installed too.
    let arguments = ["install", "slotted_counters", "--no-function"];
    let output = slotted(&schema, &arguments).env("SLOTTED_URL", &url).output().expect("slotted runs");
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    // The server does not show routines to an account that has SELECT alone.
    root.query_drop(format!("CREATE USER '{user}_3'@'%' IDENTIFIED BY 'weak'")).expect("an account");
    root.query_drop(format!("GRANT SELECT ON {}.* TO '{user}_3'@'%'", schema.ident())).expect("a privilege");
    let reads = url.replacen(&user, &format!("{user}_3"), 1);
    let hidden = slotted(&schema, &["status"]).env("SLOTTED_URL", &reads).output().expect("slotted runs");
    assert!(printed(&hidden).contains("hidden") && !printed(&hidden).contains("missing"), "{}", printed(&hidden));
    // An account that is not the definer does not see the bodies.
    root.query_drop(format!("CREATE USER '{user}_2'@'%' IDENTIFIED BY 'weak'")).expect("an account");
    root.query_drop(format!("GRANT SELECT, EXECUTE ON {}.* TO '{user}_2'@'%'", schema.ident())).expect("a privilege");
    let url = url.replacen(&user, &format!("{user}_2"), 1);
    let hidden = slotted(&schema, &["status"]).env("SLOTTED_URL", &url).output().expect("slotted runs");
    assert_eq!(hidden.status.code(), Some(2), "{}", printed(&hidden));
    assert!(printed(&hidden).contains("hidden: this account cannot see it without "), "{}", printed(&hidden));
    for account in [format!("{user}_2"), format!("{user}_3"), user] {
        let _ = root.query_drop("SET SESSION sql_log_bin = 0");
        root.query_drop(format!("DROP PROCEDURE IF EXISTS {}.counter_setup", schema.ident())).expect("a routine");
        let _ = root.query_drop(format!("DROP USER '{account}'@'%'"));
    }
}

/// MariaDB executes a routine and a view without the roles of their definer, MySQL with its default roles.
fn what_an_account_installs_by_its_role_works_or_its_own_privileges_are_asked_for(server: &Server) {
    let schema = server.schema();
    let names = ["o", "a", "r"].map(|suffix| format!("{}_{suffix}", schema.name));
    let [owner, application, role] = &names;
    let (database, to) = (schema.ident(), if server.is_mysql() { "TO" } else { "FOR" });
    schema.run(&format!(
        "CREATE USER '{owner}'@'%'; CREATE USER '{application}'@'%'; CREATE ROLE {role}; GRANT ALL ON {database}.* TO {role};
         GRANT {role} TO '{owner}'@'%'; SET DEFAULT ROLE {role} {to} '{owner}'@'%';
         GRANT EXECUTE ON {database}.* TO '{application}'@'%'; CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL);
         INSERT INTO articles VALUES (7, 1)"
    ));
    let url = server.url_of(owner, None);
    let run = |arguments: &[&str]| {
        let output = slotted(&schema, arguments).args(["--url", &url, "--database", &schema.name]).output().expect("slotted runs");
        (output.status.code(), printed(&output))
    };
    let package = ["install", "--column", "articles.views", "--rollup-every", "1 HOUR", "--no-function"];
    let (code, said) = run(&package);
    if !server.is_mysql() {
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("nothing has been changed") && said.contains("only by a role"), "{said}");
        let objects = "SELECT (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE())
                            + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())";
        assert_eq!(schema.first::<u64>(objects), 1);
        // Routines with the privileges of the caller do not need them.
        let (code, said) = run(&["install", "counters", "--no-function", "--security", "invoker", "--dry-run"]);
        assert_eq!(code, Some(0), "{said}");
        let (_, said) = run(&package);
        schema.run(said.lines().find(|line| line.trim().starts_with("GRANT ")).expect("a remedy"));
        let (code, said) = run(&package);
        assert_eq!(code, Some(0), "{said}");
    } else {
        assert_eq!(code, Some(0), "{said}");
    }
    assert_eq!(run(&["status"]).0, Some(0));
    schema.run(&format!("GRANT SELECT ON articles_views_totals TO '{application}'@'%'"));
    let options = schema.options().user(Some(application)).pass(None::<&str>);
    let mut application = Conn::new(options).expect("a connection");
    application.query_drop("CALL articles_views_add(7, 41)").expect("an addition");
    application.query_drop("CALL articles_views_rollup(NULL)").expect("a roll-up");
    assert_eq!(application.query_first::<u64, _>("SELECT total FROM articles_views_totals WHERE id = 7").expect("a view"), Some(42));
    schema.run(&format!("DROP USER '{owner}'@'%', '{}_a'@'%'; DROP ROLE {role}", schema.name));
}

/// With partial_revokes, privileges on all databases can lack some on this one, and names of databases in GRANT are no patterns.
fn a_partial_revoke_is_a_problem_that_is_listed(server: &Server) {
    let server = server.another(&["--partial-revokes=ON"]);
    let schema = server.schema();
    schema.run(&format!(
        "CREATE USER 'weak'@'%'; GRANT ALL ON *.* TO 'weak'@'%';
         REVOKE INSERT, CREATE ROUTINE, CREATE VIEW ON {0}.* FROM 'weak'@'%'",
        schema.ident()
    ));
    let url = server.url_of("weak", None);
    let (place, parameters) = url.split_once('?').unwrap_or((&url, ""));
    let url = format!("{place}/{}?{parameters}", schema.name);
    let install = || slotted(&schema, &["install", "counters"]).env("SLOTTED_URL", &url).output().expect("slotted runs");
    let output = install();
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("nothing has been changed") && text.contains("does not have CREATE ROUTINE, INSERT, CREATE VIEW"), "{text}");
    assert_eq!(
        schema.first::<u64>(
            "SELECT (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE())
                  + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())"
        ),
        0
    );
    let remedy = text.lines().find(|line| line.trim().starts_with("GRANT ")).expect("a remedy");
    schema.run(remedy.trim().trim_end_matches(';'));
    let output = install();
    assert_eq!(output.status.code(), Some(0), "{remedy}: {}", printed(&output));
    schema.run("CALL counter_setup('hits', NULL, NULL, 1); CALL counter_increment('hits')");
}

fn a_read_only_server_is_named(server: &Server) {
    let replica = server.another(&["--read-only=ON"]);
    let schema = replica.schema();
    // This account has SUPER, which writes on a server that is read-only.
    succeeds(&schema, &["install", "counters"]);
    if replica.is_mysql() {
        schema.run("DROP PROCEDURE counter_add");
        replica.connect().query_drop("SET GLOBAL super_read_only = ON").expect("a setting");
        let output = run(&schema, &["install", "counters"]);
        assert!(printed(&output).contains("the server is read-only"), "{}", printed(&output));
        replica.connect().query_drop("SET GLOBAL super_read_only = OFF").expect("a setting");
    }
}

fn objects_that_are_not_of_a_package_are_not_touched(server: &Server) {
    let schema = server.schema();
    schema.run(
        "CREATE PROCEDURE counter_add (x INT) SELECT x; CREATE VIEW counter_totals AS SELECT 1 AS mine;
         CREATE TABLE counters (id INT PRIMARY KEY, hits INT) ENGINE = InnoDB; INSERT INTO counters VALUES (1, 42)",
    );
    let mine = || -> (u64, u64, u64) {
        (
            schema.first("SELECT hits FROM counters"),
            schema.first("SELECT mine FROM counter_totals"),
            schema.first("SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()"),
        )
    };
    let before = mine();
    let install = run(&schema, &["install", "counters"]);
    assert_eq!(install.status.code(), Some(2), "{}", printed(&install));
    for problem in ["other objects have the names of the package: table counters, view counter_totals, procedure counter_add", "choose another --table or --prefix"] {
        assert!(printed(&install).contains(problem), "{}", printed(&install));
    }
    let data = run(&schema, &["uninstall", "counters", "--with-data", "--yes"]);
    assert_eq!(data.status.code(), Some(2), "{}", printed(&data));
    let uninstall = succeeds(&schema, &["uninstall", "counters"]);
    assert!(uninstall.contains("kept procedure counter_add, which is not of a package"), "{uninstall}");
    assert_eq!(mine(), before);

    // A view in the place of the table.
    schema.run("RENAME TABLE counters TO mine; CREATE VIEW counters AS SELECT * FROM mine");
    let install = run(&schema, &["install", "counters"]);
    assert_eq!(install.status.code(), Some(2), "{}", printed(&install));
    assert!(printed(&install).contains("table counters, view counter_totals") && !printed(&install).contains("ALTER TABLE"), "{}", printed(&install));
    schema.run("DROP VIEW counters; RENAME TABLE mine TO counters");

    // Options that differ from those of the database name other objects.
    succeeds(&schema, &["install", "counters", "--table", "tt", "--prefix", "tt_"]);
    let other = run(&schema, &["uninstall", "counters", "--prefix", "tt_"]);
    assert!(printed(&other).contains("has the package with other options: counters --table tt --prefix tt_"), "{}", printed(&other));
    succeeds(&schema, &["uninstall", "--with-data", "--yes"]);
    assert_eq!(mine(), before);
}

/// The same on all servers.
fn every_error_is_as_reviewed(server: &Server) {
    let schema = server.schema();
    let mut texts = String::new();
    let mut fails = |arguments: &[&str], database: &str| {
        let url = server.url();
        let (place, parameters) = url.split_once('?').unwrap_or((&url, ""));
        let url = format!("{place}/{database}?{parameters}");
        let output = slotted(&schema, arguments).env("SLOTTED_URL", url).output().expect("slotted runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", printed(&output));
        let text = printed(&output).replace(&schema.name, "SCHEMA");
        texts += &format!("$ slotted {}\n{text}\n", arguments.join(" "));
    };
    for command in [&["install", "counters"][..], &["status"], &["uninstall"]] {
        fails(command, "");
    }
    fails(&["status"], &schema.name);
    fails(&["uninstall"], &schema.name);
    fails(&["install", "counters"], "mysql");
    schema.run("CREATE TABLE counters (id INT PRIMARY KEY) ENGINE = InnoDB; CREATE PROCEDURE counter_add () DO 0");
    fails(&["install", "counters"], &schema.name);
    fails(&["uninstall", "counters", "--with-data", "--yes"], &schema.name);
    schema.run("DROP TABLE counters; DROP PROCEDURE counter_add");
    succeeds(&schema, &["install", "counters"]);
    fails(&["uninstall", "--with-data"], &schema.name);
    fails(&["uninstall", "counters", "--slots", "20"], &schema.name);
    fails(&["install", "counters", "--server", if server.is_mysql() { "mariadb" } else { "mysql" }], &schema.name);
    succeeds(&schema, &["install", "slotted_counters"]);
    fails(&["uninstall"], &schema.name);
    schema.run("CREATE OR REPLACE VIEW counter_package AS SELECT '0.0.1' AS version, 'counters' AS package, 1 AS key_columns, 1 AS default_slots, 1 AS table_name, 1 AS prefix");
    fails(&["status"], &schema.name);
    let texts = texts.replace(&server.version.to_string(), "SERVER").replace("--server mysql", "--server OTHER").replace("--server mariadb", "--server OTHER");
    insta::assert_snapshot!("errors", texts);
}

fn a_dry_run_prints_a_script_for_the_client(server: &Server) {
    let schema = server.schema();
    let output = run(&schema, &["install", "counters", "--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let sql = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"), 0);
    let sourced = server.client(&schema.name).pipe(&[], &sql);
    assert!(sourced.success, "{}", sourced.stderr);
    is_complete(&mut schema.connect(), &package(|_| {}));
}

fn uninstall_keeps_the_counts_unless_it_is_told_otherwise(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    succeeds(&schema, &["install", "slotted_counters"]);
    schema.run("CALL counter_setup('hits', NULL, NULL, 42)");
    let both = run(&schema, &["uninstall"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(printed(&both).contains("has 2 packages"), "{}", printed(&both));
    succeeds(&schema, &["uninstall", "slotted_counters", "--with-data", "--yes"]);
    let text = succeeds(&schema, &["uninstall"]);
    assert!(text.contains("the table counters and its counts are kept"), "{text}");
    assert_eq!(schema.first::<u64>("SELECT SUM(counter) FROM counters"), 42);
    assert_eq!(run(&schema, &["status"]).status.code(), Some(2));
    succeeds(&schema, &["install", "counters"]);
    assert_eq!(schema.first::<u64>("SELECT counter_get('hits')"), 42);

    let rejected = run(&schema, &["uninstall", "--with-data"]);
    assert!(printed(&rejected).contains("there is no terminal to ask on"), "{}", printed(&rejected));
    for (answer, dropped) in [("no", false), ("counters", true)] {
        let mut command = slotted(&schema, &["uninstall", "--with-data"]);
        command.stdin(Stdio::inherit());
        let mut terminal = rexpect::session::spawn_command(command, Some(60_000)).expect("a terminal");
        terminal.exp_string("Counters: 1. Sum of their totals: 42.").expect("what is dropped");
        terminal.exp_string("Type the name of the table to drop it: ").expect("a question");
        terminal.send_line(answer).expect("an answer");
        terminal.exp_eof().expect("the end");
        let exists: u64 = schema.first("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'counters'");
        assert_eq!(exists == 0, dropped, "{answer}");
    }
}
