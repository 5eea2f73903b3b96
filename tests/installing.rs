//! The commands install, status and uninstall.

use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use serde_json::Value;
use slotted::install;
use slotted::install::compare::{State, states};
use slotted::package::{Package, Security, Slots, committed};
use slotted::script;
use slotted::server::Version;

use crate::exactness::SetOnDrop;
use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(install_creates_each_package_and_does_nothing_the_second_time)
        .on_servers(a_package_that_a_client_has_installed_is_the_same)
        .on_families(status_tells_differences_apart)
        .on_families(status_of_an_account_that_sees_a_part_is_incomplete)
        .on_one_server(status_prints_one_line_for_each_counter)
        .on_one_server(a_column_keeps_its_number_of_slots_unless_another_is_given)
        .on_families(an_installation_that_is_killed_at_any_statement_is_completed_by_the_next)
        .on_families(twenty_installations_at_the_same_time_give_one_package)
        .on_families(calls_of_unchanged_routines_never_fail_during_an_upgrade)
        .on_families(an_upgrade_that_is_killed_at_any_moment_leaves_all_routines_and_their_privileges)
        .on_families(other_options_replace_what_differs)
        .on_families(the_trial_finds_what_fails_and_leaves_nothing)
        .on_families(each_missing_privilege_is_named_by_the_server_with_a_hint)
        .on_families(the_owner_of_one_schema_installs)
        .on(|name| name.starts_with("mysql"), privileges_that_cannot_be_kept_stop_an_upgrade)
        .on_families(every_error_is_as_reviewed)
        .on_families(a_dry_run_prints_the_file_for_the_client)
        .on_families(uninstall_keeps_the_counts_unless_it_is_told_otherwise)
        .private()
        .on(|name| name.starts_with("mysql"), a_group_with_several_primaries_needs_slots_of_nodes)
        .waits()
        .on_families(calls_go_on_while_an_upgrade_waits)
        .on(|name| name.starts_with("mysql"), an_upgrade_keeps_privileges_on_a_server_that_requires_primary_keys);
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

fn is_complete(connection: &mut Conn, package: &Package) {
    let package = package.clone().of_family(Version::of(connection).expect("a version").family);
    for object in states(connection, &package).expect("states") {
        assert_eq!(object.state, State::Same, "{object}");
    }
}

/// The packages for a server that have a name.
fn named(server: &Server) -> Vec<Package> {
    committed().into_iter().filter(|package| package.options.family == server.version.family).collect()
}

/// Packages with other options each.
fn packages(server: &Server) -> Vec<Package> {
    let mut packages = named(server);
    packages.push(package(|options| {
        options.security = Security::Invoker;
        options.collation = "utf8mb4_bin".parse().ok();
        options.function = false;
    }));
    packages.push(keyed(|options| {
        options.key = "url VARCHAR(200), day DATE".parse().expect("a key");
        options.prefix = "view_".parse().expect("a prefix");
        options.table = "views".parse().expect("a name");
    }));
    packages.push(package(|options| options.cluster = true));
    packages.push(of_column("articles.views", "id BIGINT", |_| {}));
    packages.into_iter().map(|package| package.of_family(server.version.family)).collect()
}

fn install_creates_each_package_and_does_nothing_the_second_time(server: &Server) {
    for package in packages(server) {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB");
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
    for package in named(server) {
        let schema = server.schema();
        let said = server.client(&schema.name).pipe(&[], &schema.file(&package, "setup.sql"));
        assert!(said.success, "{}", said.stderr);
        is_complete(&mut schema.connect(), &package);
        let again = with("install", &package, &schema);
        assert!(printed(&again).contains("nothing to do"), "{}", printed(&again));
    }
}

/// The routine with a changed statement, as an administrator creates it by hand.
fn by_hand(schema: &Schema<'_>, package: &Package, name: &str, change: impl Fn(&str) -> String) {
    let create = script::statements(&schema.file(package, "create_procedures.sql"))
        .into_iter()
        .find(|statement| statement.starts_with("CREATE") && statement.contains(&format!(" `{name}`")))
        .expect("the routine");
    let changed = change(&create);
    assert_ne!(changed, create, "{name}");
    let mut connection = schema.connect();
    connection.query_drop(format!("DROP PROCEDURE {name}")).expect("a routine");
    let script = script::statements(&schema.file(package, "create_procedures.sql"));
    // The settings that the server stores with a routine.
    connection.query_drop(&script[0]).expect("settings");
    connection.query_drop(changed).expect("a routine");
}

fn status_tells_differences_apart(server: &Server) {
    let wanted = package(|_| {}).of_family(server.version.family);
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    let state_of = |name: &str| {
        let states = states(&mut schema.connect(), &wanted).expect("states");
        states.into_iter().find(|object| object.name == name).expect("the object").state
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

    let view: mysql::Row = connection.query_first("SHOW CREATE VIEW counter_package").expect("a view").expect("a row");
    let view: String = view.get(1).expect("its statement");
    let version = format!("'{}'", env!("CARGO_PKG_VERSION"));
    connection.query_drop(view.replacen("CREATE ", "CREATE OR REPLACE ", 1).replace(&version, "'0.0.9'")).expect("a view");
    expect("counter_package", "version 0.0.9 instead of");
    // What mysqldump creates first, and what stays if the restore stops.
    schema.run("CREATE OR REPLACE VIEW counter_totals AS SELECT 1 AS counter_name, 1 AS description, 1 AS start_date, 1 AS slots, 1 AS total");
    expect("counter_totals", "the columns differ");
    schema.run("ALTER TABLE counters CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
    let status = run(&schema, &["status"]);
    assert!(status.status.code() == Some(1) && printed(&status).contains("table counters: differs: "), "{}", printed(&status));
    let rejected = run(&schema, &["install", "counters"]);
    let said = printed(&rejected);
    assert!(rejected.status.code() == Some(2) && said.contains("error: the table is missing or differs: "), "{said}");
    assert!(said.contains("hint: no routine has been changed; correct it"), "{said}");
}

/// A private account of a schema, which is dropped at the end of the promise.
struct Account<'a> {
    schema: &'a Schema<'a>,
    name: String,
}

impl<'a> Account<'a> {
    fn new(schema: &'a Schema<'a>, privileges: &str) -> Self {
        let name = format!("{}_a", schema.name);
        schema.run(&format!("CREATE USER '{name}'@'%'; GRANT {privileges} ON {}.* TO '{name}'@'%'", schema.ident()));
        Self { schema, name }
    }

    fn grant(&self, privileges: &str) {
        self.schema.run(&format!("GRANT {privileges} ON {}.* TO '{}'@'%'", self.schema.ident(), self.name));
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let url = self.schema.server.url_of(&self.name, None);
        let output = slotted(self.schema, arguments).args(["--url", &url, "--database", &self.schema.name]).output().expect("slotted runs");
        (output.status.code(), printed(&output))
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        let _ = self.schema.connect().query_drop(format!("DROP USER '{}'@'%'", self.name));
    }
}

fn status_of_an_account_that_sees_a_part_is_incomplete(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    let account = Account::new(&schema, "SELECT");
    let (code, said) = account.run(&["status"]);
    assert!(code == Some(2) && said.contains("GRANT SHOW VIEW"), "{said}");
    for more in ["SHOW VIEW", "EXECUTE"] {
        account.grant(more);
        let (code, said) = account.run(&["status"]);
        assert!(code == Some(2) && said.contains("procedure counter_add: this account cannot see it") && !said.contains("missing"), "{more}: {said}");
    }
    let all = if server.is_mysql() { "SHOW_ROUTINE ON *.*" } else { "SELECT ON mysql.proc" };
    schema.run(&format!("GRANT {all} TO '{}'@'%'", account.name));
    let (code, said) = account.run(&["status"]);
    assert_eq!(code, Some(0), "{said}");
}

fn status_prints_one_line_for_each_counter(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    schema.run("CALL counter_setup('a', NULL, 3, 7); CALL counter_setup('b', NULL, 2, 30); CALL counter_setup('c', NULL, NULL, 0)");
    let said = succeeds(&schema, &["status"]);
    let (_, table) = said.split_once("objects are the same\n").expect("the objects");
    let cells: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).filter(|cells: &Vec<_>| !cells.is_empty()).collect();
    assert_eq!(cells, [["counter", "total", "slots"], ["b", "30", "2"], ["a", "7", "3"], ["c", "0", "5"]], "{said}");
    // The slots of a column contain what is pending.
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (7, 40)");
    succeeds(&schema, &["install", "--column", "articles.views"]);
    schema.run("CALL articles_views_add(7, 2)");
    let said = succeeds(&schema, &["status", "articles.views"]);
    assert!(said.contains("articles.views: 2 pending counts of 1 records\n") && said.contains("counter  pending  slots"), "{said}");
    let status: Value = serde_json::from_str(&succeeds(&schema, &["status", "articles.views", "--json"])).expect("JSON");
    assert_eq!(status["packages"][0]["counters"][0], serde_json::json!({"name": "7", "pending": 2, "slots": 1}), "{status:#}");
}

fn a_column_keeps_its_number_of_slots_unless_another_is_given(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    let arguments = |more: &[&str]| {
        succeeds(&schema, &[&["install", "--column", "articles.views"], more].concat());
        schema.first::<String>("SELECT arguments FROM articles_views_package")
    };
    assert!(arguments(&["--slots", "16"]).contains("--slots 16"));
    assert!(arguments(&["--no-function"]).contains("--slots 16"));
    assert!(!arguments(&["--slots", "521"]).contains("--slots"));
}

/// Its calls on different nodes would conflict. The plugin says so without a group.
fn a_group_with_several_primaries_needs_slots_of_nodes(server: &Server) {
    let server = server.another(&["--plugin-load-add=group_replication.so", "--loose-group-replication-single-primary-mode=OFF"]);
    let schema = server.schema();
    let rejected = run(&schema, &["install", "counters"]);
    let said = printed(&rejected);
    assert!(rejected.status.code() == Some(2) && said.contains("error: this group has several primaries") && said.contains("--cluster"), "{said}");
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()"), 0);
    // It became one after the installation.
    schema.run("SET GLOBAL group_replication_single_primary_mode = ON");
    succeeds(&schema, &["install", "counters"]);
    succeeds(&schema, &["status"]);
    schema.run("SET GLOBAL group_replication_single_primary_mode = OFF");
    let status = run(&schema, &["status"]);
    let said = printed(&status);
    assert!(status.status.code() == Some(1) && said.contains("all nodes of this cluster accept writes"), "{said}");
    assert!(said.contains("run slotted install counters --cluster\n"), "{said}");
    succeeds(&schema, &["install", "counters", "--cluster"]);
    succeeds(&schema, &["status"]);
}

/// The privileges of an account on routines.
fn routine_grants(connection: &mut Conn, user: &str) -> Vec<(String, String)> {
    connection
        .exec("SELECT Routine_name, CAST(Proc_priv AS CHAR) FROM mysql.procs_priv WHERE User = ? ORDER BY 1", (user,))
        .expect("grants")
}

/// The connection of a killed process ends between two packets. The name of the account needs quotes.
fn an_installation_that_is_killed_at_any_statement_is_completed_by_the_next(server: &Server) {
    let wanted = package(|_| {}).of_family(server.version.family);
    let schema = server.schema();
    let user = format!("it''s `{}", std::process::id());
    let mut connection = schema.connect();
    connection.query_drop(format!("CREATE USER '{user}'@'localhost'")).expect("an account");
    let killed_at = |at: usize| -> bool {
        let mut connection = schema.connect();
        let mut said = 0;
        let say = &mut |_: &str| {
            said += 1;
            if said > at {
                // A panic without its message.
                resume_unwind(Box::new("killed"));
            }
        };
        let result = catch_unwind(AssertUnwindSafe(|| install::install(&mut connection, &wanted, say)));
        result.map(|result| result.expect("an installation")).is_err()
    };
    let mut grants = Vec::new();
    for from_nothing in [true, false] {
        for at in 0.. {
            if from_nothing {
                schema.run(&schema.file(&wanted, "uninstall.sql"));
                schema.run("DROP TABLE IF EXISTS counters");
            } else {
                // Two routines differ, one is missing.
                schema.run("ALTER PROCEDURE counter_add COMMENT 'old'");
                schema.run("ALTER FUNCTION counter_get COMMENT 'old'");
                schema.run("DROP PROCEDURE counter_delete");
            }
            let killed = killed_at(at);
            install::install(&mut schema.connect(), &wanted, &mut |_| {}).expect("the rest is installed");
            is_complete(&mut connection, &wanted);
            if !from_nothing {
                assert_eq!(routine_grants(&mut connection, &user.replace("''", "'")), grants, "killed at {at}");
            } else if !killed {
                for grant in ["EXECUTE ON PROCEDURE counter_add", "EXECUTE ON FUNCTION counter_get", "ALTER ROUTINE ON PROCEDURE counter_reset"] {
                    connection.query_drop(format!("GRANT {grant} TO '{user}'@'localhost' WITH GRANT OPTION")).expect("a grant");
                }
                grants = routine_grants(&mut connection, &user.replace("''", "'"));
                assert_eq!(grants.len(), 3);
            }
            if !killed {
                assert!(at > 2, "{at} statements");
                break;
            }
        }
    }
    connection.query_drop(format!("DROP USER '{user}'@'localhost'")).expect("an account");
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
            assert_ne!(output.status.code(), Some(0), "{blocks:?}: {}", printed(&output));
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
    let routines = r"SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()
                       AND ROUTINE_NAME NOT LIKE '\_%\_script' ORDER BY 1, 2";
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
            idle.query_drop("CALL counter_setup('idle', NULL, 1, NULL)").expect("a call");
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

fn other_options_replace_what_differs(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    schema.run("CALL counter_setup('hits', NULL, 20, 7)");
    let text = succeeds(&schema, &["install", "counters", "--slots", "20"]);
    assert!(text.contains("replace procedure counter_increment") && !text.contains("counter_drop"), "{text}");
    is_complete(&mut schema.connect(), &package(|options| options.slots = Slots::Fixed(20)));
    schema.run("CALL counter_increment('hits')");
    assert_eq!(schema.first::<u64>("SELECT counter_get('hits')"), 8);
}

/// A column without a default, a partition that is missing, and a definer that does not exist.
fn the_trial_finds_what_fails_and_leaves_nothing(server: &Server) {
    let list = "PARTITION BY LIST (counter_id) (PARTITION p VALUES IN (1, 2))";
    for (package, table, change, error) in [
        ("counters", "counters", "ADD team INT NOT NULL", "ERROR 1364"),
        ("slotted_counters", "slotted_counters", "ADD team INT NOT NULL", "ERROR 1364"),
        ("counters", "counters", list, "ERROR 1526"),
    ] {
        let schema = server.schema();
        succeeds(&schema, &["install", package]);
        schema.run(&format!("ALTER TABLE {table} {change}"));
        let output = run(&schema, &["install", package]);
        let said = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{change}: {said}");
        assert!(said.contains("the package is installed, but the trial of its routines failed at CALL `") && said.contains(error), "{change}: {said}");
    }
    for package in ["counters", "bounded_counters", "slotted_counters"] {
        let schema = server.schema();
        let arguments = ["install", package];
        succeeds(&schema, &arguments);
        assert_eq!(schema.first::<u64>(&format!("SELECT COUNT(*) FROM {package}")), 0);
        // A trigger would execute what its owner has written.
        schema.run(&format!("CREATE TRIGGER mine BEFORE INSERT ON {package} FOR EACH ROW SIGNAL SQLSTATE '45000'"));
        let said = succeeds(&schema, &arguments);
        assert!(said.contains(&format!("the routines were not tried: the table {package} has the trigger mine")), "{said}");
    }
    let schema = server.schema();
    let definer = format!("slotted_none_{}@localhost", std::process::id());
    let said = succeeds(&schema, &["install", "counters", "--definer", &definer]);
    assert!(said.contains("warning: The user specified as a definer") && said.contains("source accounts.sql"), "{said}");
    // Without --definer, somebody else has to create it.
    schema.run("DROP PROCEDURE counter_add");
    let said = printed(&run(&schema, &["install", "counters", "--definer", "root@localhost"]));
    assert!(said.contains("replace procedure counter_increment"), "{said}");
}

fn each_missing_privilege_is_named_by_the_server_with_a_hint(server: &Server) {
    let all = ["CREATE", "CREATE VIEW", "CREATE ROUTINE", "SELECT", "INSERT", "UPDATE", "DELETE"];
    for missing in all {
        let schema = server.schema();
        let rest: Vec<_> = all.into_iter().filter(|one| *one != missing).collect();
        let account = Account::new(&schema, &format!("DROP, ALTER ROUTINE, {}", rest.join(", ")));
        let arguments = ["install", "counters", "--no-function"];
        let (code, said) = account.run(&arguments);
        assert_eq!(code, Some(2), "{missing}: {said}");
        let numbers = ["ERROR 1044", "ERROR 1142", "ERROR 1143", "ERROR 1370"];
        assert!(numbers.iter().any(|number| said.contains(number)), "{missing}: {said}");
        assert!(said.contains("hint: grant the account in the message") && said.contains("it does what is left"), "{missing}: {said}");
        if missing == "DELETE" {
            // The trial has created a counter before.
            assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM counters"), 0);
        }
        account.grant(missing);
        let (code, said) = account.run(&arguments);
        assert_eq!(code, Some(0), "{missing}: {said}");
        assert_eq!(account.run(&arguments).0, Some(0));
    }
    // For a definer of others (1227), and for the definer itself (1370 or 1142).
    let schema = server.schema();
    let account = Account::new(&schema, "ALL");
    let (code, said) = account.run(&["install", "counters", "--no-function", "--definer", "root@localhost"]);
    assert!(code == Some(2) && said.contains("ERROR 1227") && said.contains("hint: connect as an account with one of the privileges"), "{said}");
}

/// With a binary log, MySQL lets only an account with SUPER create a function.
fn the_owner_of_one_schema_installs(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    let account = Account::new(&schema, "ALL");
    for package in [&["counters"][..], &["bounded_counters"], &["slotted_counters"], &["--column", "articles.views"]] {
        let (code, said) = account.run(&[&["install"], package].concat());
        if server.is_mysql() {
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains("SET GLOBAL log_bin_trust_function_creators = ON") && said.contains("--no-function"), "{said}");
            let (code, said) = account.run(&[&["install", "--no-function"], package].concat());
            assert_eq!(code, Some(0), "{said}");
        } else {
            assert_eq!(code, Some(0), "{said}");
        }
    }
    assert_eq!(account.run(&["status"]).0, Some(0));
    for table in ["counters", "bounded_counters", "slotted_counters", "articles.views"] {
        let (code, said) = account.run(&["uninstall", table, "--with-data", "--yes"]);
        assert_eq!(code, Some(0), "{said}");
    }
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"), 1);
}

/// An account that cannot read the privileges on a routine, and one that cannot grant them.
fn privileges_that_cannot_be_kept_stop_an_upgrade(server: &Server) {
    let schema = server.schema();
    let account = Account::new(&schema, "ALL");
    let arguments = ["install", "counters", "--no-function"];
    let install = || {
        let (code, said) = account.run(&arguments);
        (code, said, schema.first::<String>("SELECT LEFT(ROUTINE_COMMENT, 3) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'counter_add'"))
    };
    assert_eq!(account.run(&arguments).0, Some(0));
    let caller = format!("{}_c", schema.name);
    schema.run(&format!("CREATE USER '{caller}'@'%'; GRANT EXECUTE ON PROCEDURE counter_add TO '{caller}'@'%'; ALTER PROCEDURE counter_add COMMENT 'old'"));
    let (code, said, comment) = install();
    assert!(code == Some(2) && said.contains("this account cannot read them") && said.contains("GRANT SELECT ON mysql.procs_priv"), "{said}");
    assert_eq!(comment, "old");
    schema.run(&format!("GRANT SELECT ON mysql.procs_priv TO '{}'@'%'", account.name));
    let (code, said, comment) = install();
    assert!(code == Some(2) && said.contains("cannot keep the privileges to replace procedure counter_add: ERROR 1"), "{said}");
    assert_eq!(comment, "old");
    account.grant("GRANT OPTION");
    account.grant("EXECUTE, ALTER ROUTINE");
    let (code, said, comment) = install();
    assert!(code == Some(0) && comment == "Add", "{said}");
    assert!(routine_grants(&mut schema.connect(), &caller).contains(&("counter_add".into(), "Execute".into())));
    schema.run(&format!("DROP USER '{caller}'@'%'"));
}

fn an_upgrade_keeps_privileges_on_a_server_that_requires_primary_keys(server: &Server) {
    let server = server.another(&["--sql-require-primary-key=ON"]);
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    schema.run("CREATE USER app; GRANT EXECUTE ON PROCEDURE counter_add TO app; ALTER PROCEDURE counter_add COMMENT 'old'");
    let said = succeeds(&schema, &["install", "counters"]);
    assert!(said.contains("replace procedure counter_add"), "{said}");
    assert_eq!(routine_grants(&mut schema.connect(), "app"), [("counter_add".to_owned(), "Execute".to_owned())]);
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
    fails(&["uninstall", "counters"], &schema.name);
    schema.run("CREATE TABLE counters (id INT PRIMARY KEY) ENGINE = InnoDB");
    fails(&["install", "counters"], &schema.name);
    schema.run("DROP TABLE counters");
    succeeds(&schema, &["install", "counters"]);
    fails(&["uninstall", "--with-data"], &schema.name);
    schema.run("RENAME TABLE counters TO counters_old");
    fails(&["install", "counters"], &schema.name);
    schema.run("RENAME TABLE counters_old TO counters; DROP VIEW counter_package");
    fails(&["status"], &schema.name);
    succeeds(&schema, &["install", "counters"]);
    succeeds(&schema, &["install", "slotted_counters"]);
    fails(&["uninstall"], &schema.name);
    schema.run("DROP VIEW slotted_counter_package; CREATE OR REPLACE VIEW counter_package AS SELECT '0.0.1' AS version, 'counters --gone' AS arguments");
    fails(&["status"], &schema.name);
    insta::assert_snapshot!("errors", texts);
}

fn a_dry_run_prints_the_file_for_the_client(server: &Server) {
    let schema = server.schema();
    let wanted = package(|_| {}).of_family(server.version.family);
    for name in ["setup.sql", "create_procedures.sql"] {
        let output = run(&schema, &["install", "counters", "--dry-run"]);
        assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
        let sql = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(sql, schema.file(&wanted, name));
        let sourced = server.client(&schema.name).pipe(&[], &sql);
        assert!(sourced.success, "{}", sourced.stderr);
        is_complete(&mut schema.connect(), &wanted);
    }
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
    assert!(text.contains("the table counters is kept"), "{text}");
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
        terminal.exp_string("The sum of its counts is 42.").expect("what is dropped");
        terminal.exp_string("Type the name of the table to drop it: ").expect("a question");
        terminal.send_line(answer).expect("an answer");
        terminal.exp_eof().expect("the end");
        let exists: u64 = schema.first("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'counters'");
        assert_eq!(exists == 0, dropped, "{answer}");
    }
}
