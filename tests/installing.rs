//! The commands install, status and uninstall.

use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use serde_json::Value;
use slotted::install;
use slotted::install::compare::{State, states};
use slotted::package::{Package, Slots};
use slotted::server::Version;

use crate::accounts::Account;
use crate::advise::{printed, url};
use crate::exactness::SetOnDrop;
use crate::support::{Module, SESSIONS, Schema, Server, keyed, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(install_creates_each_package_and_does_nothing_the_second_time)
        .on_families(status_tells_differences_apart)
        .on_families(status_of_an_account_that_sees_a_part_is_incomplete)
        .on_one_server(status_prints_one_line_for_each_counter)
        .on_one_server(another_installation_replaces_what_differs_and_keeps_the_slots_of_a_column)
        .on_families(an_installation_that_is_killed_at_any_statement_is_completed_by_the_next)
        .on(
            |name| name.starts_with("mysql"),
            an_upgrade_that_is_killed_while_it_waits_leaves_all_routines_and_their_privileges,
        )
        .on_one_server(twenty_installations_at_the_same_time_give_one_package)
        .on_families(the_trial_finds_what_fails_and_leaves_nothing)
        .on_families(each_missing_privilege_is_named_by_the_server_with_a_hint)
        .on_families(the_owner_of_one_schema_installs)
        .on(|name| name.starts_with("mysql"), privileges_that_cannot_be_kept_stop_an_upgrade)
        .on_one_server(every_error_is_as_reviewed)
        .on_families(a_dry_run_prints_the_file_for_the_client)
        .on_one_server(uninstall_keeps_the_counts_unless_it_is_told_otherwise)
        .private()
        .on(|name| name.starts_with("mysql"), a_group_with_several_primaries_needs_slots_of_nodes)
        .waits()
        .on_families(calls_go_on_while_an_upgrade_waits);
}

/// The tool in a schema, as the administrator.
pub fn slotted(schema: &Schema<'_>, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    command.args(arguments).env("SLOTTED_URL", url(schema.server, schema)).stdin(Stdio::null());
    command
}

/// Runs a command, asserts its exit code, and returns what it prints. A terminal can print it: it has no control characters, and none that
/// change the direction.
pub fn ends(schema: &Schema<'_>, code: i32, arguments: &[&str]) -> String {
    let output = slotted(schema, arguments).output().expect("slotted runs");
    let said = printed(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    let executed = |c: char| c.is_control() && c != '\n' && c != '\t' || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!said.contains(executed), "{arguments:?}: {said:?}");
    said
}

fn succeeds(schema: &Schema<'_>, arguments: &[&str]) -> String {
    ends(schema, 0, arguments)
}

/// The exit code of a command of an account, and what it prints.
fn run_as(account: &Account<'_>, schema: &Schema<'_>, arguments: &[&str]) -> (Option<i32>, String) {
    let url = schema.server.url_of(&account.name, None);
    let output =
        slotted(schema, arguments).args(["--url", &url, "--database", &schema.name]).output().expect("slotted runs");
    (output.status.code(), printed(&output))
}

fn start(schema: &Schema<'_>, arguments: &[&str]) -> Child {
    slotted(schema, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("slotted runs")
}

fn is_complete(connection: &mut Conn, package: &Package) {
    let package = package.clone().of_family(Version::of(connection).expect("a version").family);
    for object in states(connection, &package).expect("states") {
        assert_eq!(object.state, State::Same, "{object}");
    }
}

/// Runs a check until it is true.
fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_true() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn install_creates_each_package_and_does_nothing_the_second_time(server: &Server) {
    for (number, words) in [
        "counters",
        "counters --slots 20",
        "slotted_counters",
        "bounded_counters",
        "counters --security invoker --collation utf8mb4_bin --no-function",
        "slotted_counters --key 'url VARCHAR(200), day DATE' --prefix view_ --table views",
        "counters --cluster",
        "--column articles.views",
    ]
    .into_iter()
    .enumerate()
    {
        let install = shlex::split(&format!("install {words}")).expect("words");
        let install = Vec::from_iter(install.iter().map(String::as_str));
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB");
        succeeds(&schema, &install);
        assert!(succeeds(&schema, &install).contains("is already installed; nothing to do"), "{words}");
        // Without options, the tool reads them from the view of the package.
        let status: Value = serde_json::from_str(&succeeds(&schema, &["status", "--json"])).expect("JSON");
        assert_eq!((&status["same"], &status["schema_version"]), (&true.into(), &1.into()), "{status:#}");
        let arguments = status["packages"][0]["arguments"].as_str().expect("arguments");
        let package = Package::parse(arguments).expect(arguments);
        is_complete(&mut schema.connect(), &package);
        // The same with setup.sql in a client.
        if number < 4 {
            let schema = server.schema();
            let said = schema.client().pipe(&[], &schema.file(&package, "setup.sql"));
            assert!(said.success, "{}", said.stderr);
            assert!(succeeds(&schema, &install).contains("is already installed; nothing to do"), "{words}");
        }
    }
}

/// Creates a routine again in a session with a setting, with other words.
fn by_hand(schema: &Schema<'_>, name: &str, setting: &str, [from, to]: [&str; 2]) {
    let mut connection = schema.connect();
    let created: mysql::Row =
        connection.query_first(format!("SHOW CREATE PROCEDURE {name}")).expect(name).expect("a row");
    let created: String = created.get(2).expect("its statement");
    assert!(created.contains(from), "{name}: {created}");
    for statement in [&format!("DROP PROCEDURE {name}"), setting, &created.replace(from, to)] {
        connection.query_drop(statement).expect(statement);
    }
}

fn status_tells_differences_apart(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    by_hand(&schema, "counter_add", "DO 0", ["counter + p_amount", "counter + 2 * p_amount"]);
    by_hand(&schema, "counter_resize", "DO 0", ["p_slots INT", "p_slots BIGINT"]);
    by_hand(&schema, "counter_delete", "SET sql_mode = ''", [""; 2]);
    by_hand(&schema, "counter_drop", "SET collation_connection = utf8mb4_bin", [""; 2]);
    let view: mysql::Row = schema.first("SHOW CREATE VIEW counter_package");
    let view: String = view.get(1).expect("its statement");
    let version = format!("'{}'", env!("CARGO_PKG_VERSION"));
    schema.run(&view.replacen("CREATE ", "CREATE OR REPLACE ", 1).replace(&version, "'0.0.9'"));
    // The view is what mysqldump creates first, and what stays if the restore stops.
    schema.run(
        "ALTER PROCEDURE counter_reset COMMENT 'by hand'; ALTER PROCEDURE counter_setup SQL SECURITY INVOKER;
         ALTER PROCEDURE _counter_fail READS SQL DATA; DROP PROCEDURE counter_increment;
         CREATE OR REPLACE VIEW counter_totals AS SELECT 1 AS counter_name, 1 AS description, 1 AS start_date, 1 AS slots, 1 AS total",
    );
    let status = ends(&schema, 1, &["status"]);
    for (object, difference) in [
        ("counter_add", "the body differs"),
        ("counter_resize", "the parameters differ"),
        ("counter_delete", "sql_mode ''"),
        ("counter_drop", "collation_connection utf8mb4_bin"),
        ("counter_package", "version 0.0.9 instead of"),
        ("counter_reset", "the COMMENT differs"),
        ("counter_setup", "SQL SECURITY INVOKER instead of DEFINER"),
        ("_counter_fail", "READS SQL DATA instead of "),
        ("counter_increment", "missing"),
        ("counter_totals", "the columns differ"),
    ] {
        let is_named = |line: &str| line.contains(&format!(" {object}: ")) && line.contains(difference);
        assert!(status.lines().any(is_named), "{object}: {difference}: {status}");
    }
    succeeds(&schema, &["install", "counters"]);
    is_complete(&mut schema.connect(), &package(|_| {}));
    succeeds(&schema, &["status"]);
    schema.run("ALTER TABLE counters CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
    assert!(ends(&schema, 1, &["status"]).contains("table counters: differs: "));
    let said = ends(&schema, 2, &["install", "counters"]);
    assert!(
        said.contains("error: the table is missing or differs: ")
            && said.contains("hint: no routine has been changed; correct it"),
        "{said}"
    );
}

fn status_of_an_account_that_sees_a_part_is_incomplete(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    let account = Account::new(&schema, "a", "SELECT");
    let (code, said) = run_as(&account, &schema, &["status"]);
    assert!(code == Some(2) && said.contains("GRANT SHOW VIEW"), "{said}");
    for more in ["SHOW VIEW", "EXECUTE"] {
        account.grant(more);
        let (code, said) = run_as(&account, &schema, &["status"]);
        assert!(
            code == Some(2)
                && said.contains("procedure counter_add: this account cannot see it")
                && !said.contains("missing"),
            "{more}: {said}"
        );
    }
    let all = if server.is_mysql() { "SHOW_ROUTINE ON *.*" } else { "SELECT ON mysql.proc" };
    schema.run(&format!("GRANT {all} TO '{}'@'%'", account.name));
    let (code, said) = run_as(&account, &schema, &["status"]);
    assert_eq!(code, Some(0), "{said}");
}

fn status_prints_one_line_for_each_counter(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    schema.run("CALL counter_setup('a', NULL, 3, 7); CALL counter_setup('b', NULL, 2, 30); CALL counter_setup('c', NULL, NULL, 0)");
    let said = succeeds(&schema, &["status"]);
    let (_, table) = said.split_once("objects are the same\n").expect("the objects");
    let cells: Vec<Vec<_>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|cells: &Vec<_>| !cells.is_empty())
        .collect();
    assert_eq!(cells, [["counter", "total", "slots"], ["b", "30", "2"], ["a", "7", "3"], ["c", "0", "5"]], "{said}");
    // The slots of a column contain what is pending.
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (7, 40)");
    succeeds(&schema, &["install", "--column", "articles.views"]);
    schema.run("CALL articles_views_add(7, 2)");
    let said = succeeds(&schema, &["status", "articles.views"]);
    assert!(
        said.contains("articles.views: 2 pending counts of 1 records\n") && said.contains("counter  pending  slots"),
        "{said}"
    );
    let status: Value =
        serde_json::from_str(&succeeds(&schema, &["status", "articles.views", "--json"])).expect("JSON");
    assert_eq!(
        status["packages"][0]["counters"][0],
        serde_json::json!({"name": "7", "pending": 2, "slots": 1}),
        "{status:#}"
    );
}

fn another_installation_replaces_what_differs_and_keeps_the_slots_of_a_column(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    schema.run("CALL counter_setup('hits', NULL, 20, 7); CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    let text = succeeds(&schema, &["install", "counters", "--slots", "20"]);
    assert!(text.contains("replace procedure counter_increment") && !text.contains("counter_drop"), "{text}");
    is_complete(&mut schema.connect(), &package(|options| options.slots = Slots::Fixed(20)));
    schema.run("CALL counter_increment('hits')");
    assert_eq!(schema.first::<u64>("SELECT counter_get('hits')"), 8);
    for (more, slots) in [(&["--slots", "16"][..], true), (&["--no-function"], true), (&["--slots", "521"], false)] {
        succeeds(&schema, &[&["install", "--column", "articles.views"], more].concat());
        let arguments: String = schema.first("SELECT arguments FROM articles_views_package");
        assert_eq!(arguments.contains("--slots 16"), slots, "{more:?}: {arguments}");
    }
}

/// Its calls on different nodes would conflict. The plugin says so without a group.
fn a_group_with_several_primaries_needs_slots_of_nodes(server: &Server) {
    let server = server
        .another(&["--plugin-load-add=group_replication.so", "--loose-group-replication-single-primary-mode=OFF"]);
    let schema = server.schema();
    let said = ends(&schema, 2, &["install", "counters"]);
    assert!(said.contains("error: this group has several primaries") && said.contains("--cluster"), "{said}");
    // It became one after the installation.
    schema.run("SET GLOBAL group_replication_single_primary_mode = ON");
    succeeds(&schema, &["install", "counters"]);
    schema.run("SET GLOBAL group_replication_single_primary_mode = OFF");
    let said = ends(&schema, 1, &["status"]);
    assert!(
        said.contains("all nodes of this cluster accept writes")
            && said.contains("run slotted install counters --cluster\n"),
        "{said}"
    );
    succeeds(&schema, &["install", "counters", "--cluster"]);
    succeeds(&schema, &["status"]);
}

/// The privileges of an account on routines.
fn routine_grants(connection: &mut Conn, user: &str) -> Vec<(String, String)> {
    let query = "SELECT Routine_name, CAST(Proc_priv AS CHAR) FROM mysql.procs_priv WHERE User = ? ORDER BY 1";
    connection.exec(query, (user,)).expect("grants")
}

/// A panic of the tool stops it between two packets. The name of the account needs quotes.
fn an_installation_that_is_killed_at_any_statement_is_completed_by_the_next(server: &Server) {
    let wanted = package(|_| {}).of_family(server.version.family);
    let schema = server.schema();
    let user = format!("it's `{}", std::process::id());
    let account = format!("'{}'@'localhost'", user.replace('\'', "''"));
    let mut connection = schema.connect();
    connection.query_drop(format!("CREATE USER {account}")).expect("an account");
    let killed_at = |at: usize| {
        let (mut connection, mut said) = (schema.connect(), 0);
        let say = &mut |_: &str| {
            said += 1;
            if said > at {
                // A panic without its message.
                resume_unwind(Box::new("killed"));
            }
        };
        catch_unwind(AssertUnwindSafe(|| install::install(&mut connection, &wanted, say))).is_err()
    };
    let completed_at = |before: &str, at: usize| {
        schema.run(before);
        let killed = killed_at(at);
        install::install(&mut schema.connect(), &wanted, &mut |_| {}).expect("the rest is installed");
        is_complete(&mut schema.connect(), &wanted);
        killed
    };
    let nothing = format!("{}; DROP TABLE IF EXISTS counters", schema.file(&wanted, "uninstall.sql"));
    let statements = (0..).take_while(|at| completed_at(&nothing, *at)).count();
    assert!(statements > 10, "{statements} statements");
    for grant in [
        "EXECUTE ON PROCEDURE counter_add",
        "EXECUTE ON FUNCTION counter_get",
        "ALTER ROUTINE ON PROCEDURE counter_reset",
    ] {
        connection.query_drop(format!("GRANT {grant} TO {account} WITH GRANT OPTION")).expect("a grant");
    }
    let grants = routine_grants(&mut connection, &user);
    assert_eq!(grants.len(), 3);
    // Two routines differ, one is missing.
    let old = "ALTER PROCEDURE counter_add COMMENT 'old'; ALTER FUNCTION counter_get COMMENT 'old'; DROP PROCEDURE counter_delete";
    let kept = |at: &usize| {
        let killed = completed_at(old, *at);
        assert_eq!(routine_grants(&mut connection, &user), grants, "killed at {at}");
        killed
    };
    assert!((0..).take_while(kept).count() > 2);
    connection.query_drop(format!("DROP USER {account}")).expect("an account");
}

fn twenty_installations_at_the_same_time_give_one_package(server: &Server) {
    let schema = server.schema();
    let running = Vec::from_iter((0..20).map(|_| start(&schema, &["install", "slotted_counters"])));
    let did_nothing = running.into_iter().filter_map(|one| {
        let output = one.wait_with_output().expect("the end");
        assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
        printed(&output).contains("nothing to do").then_some(())
    });
    assert_eq!(did_nothing.count(), 19);
    is_complete(&mut schema.connect(), &keyed(|_| {}));
}

/// The states in which a statement waits for a transaction that has used a routine, or for FLUSH TABLES WITH READ LOCK.
const WAITING: [&str; 3] = ["Waiting for stored", "Waiting for global", "Waiting for backup"];

/// Waits until a session of this schema waits for a lock that is none of the calls.
fn until_an_upgrade_waits(schema: &Schema<'_>) {
    // information_schema.PROCESSLIST fails if a statement of another session has a character of 4 bytes (3854).
    until("an upgrade waits", || {
        schema.query::<mysql::Row>("SHOW FULL PROCESSLIST").iter().any(|row| {
            let text = |name: &str| row.get::<Option<String>, _>(name).flatten().unwrap_or_default();
            let (state, info) = (text("State"), text("Info"));
            text("db") == schema.name
                && WAITING.iter().any(|one| state.starts_with(one))
                && !info.starts_with("CALL")
                && !info.starts_with("SELECT")
        })
    });
}

/// The global read lock of a backup stops the other promises of a server.
fn calls_go_on_while_an_upgrade_waits(server: &Server) {
    let server = &server.another(&[]);
    let schema = server.schema();
    let account = Account::new(&schema, "a", "USAGE");
    succeeds(&schema, &["install", "counters"]);
    schema.run(&format!(
        "CALL counter_setup('hits', NULL, 64, NULL); GRANT EXECUTE ON PROCEDURE counter_add TO '{}'@'%'",
        account.name
    ));
    let grants = routine_grants(&mut schema.connect(), &account.name);
    let mut blockers = vec![(&["FLUSH TABLES WITH READ LOCK"][..], "SELECT counter_get('hits')")];
    // MariaDB replaces a routine that a transaction has used.
    if server.is_mysql() {
        blockers.push((&["START TRANSACTION", "CALL counter_add('hits', 1)"], "CALL counter_add('hits', 1)"));
    }
    for (blocks, call) in blockers {
        let mut blocking = schema.connect();
        schema.run("ALTER PROCEDURE counter_add COMMENT 'old'");
        blocks.iter().for_each(|statement| blocking.query_drop(statement).expect("a lock"));
        let (stop, longest, calls) = (AtomicBool::new(false), AtomicU64::new(0), [const { AtomicU64::new(0) }; 4]);
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
            // Each caller completes calls while it waits.
            let mut install = start(&schema, &["install", "counters"]);
            until_an_upgrade_waits(&schema);
            let before = calls.each_ref().map(|calls| calls.load(SeqCst));
            until("each caller goes on", || {
                calls.iter().zip(&before).all(|(calls, before)| calls.load(SeqCst) > *before)
            });
            let mut lines =
                BufReader::new(install.stderr.take().expect("a pipe")).lines().map(|line| line.expect("a line"));
            let named = lines.find(|line| line.contains("waiting to ")).expect("a line about the wait");
            // It waits again.
            until_an_upgrade_waits(&schema);
            blocking.query_drop("COMMIT").expect("a commit");
            blocking.query_drop("UNLOCK TABLES").expect("no lock");
            let rest: Vec<_> = lines.collect();
            (install.wait().expect("the end"), format!("{named}\n{}", rest.join("\n")))
        });
        assert_eq!(status.code(), Some(0), "{blocks:?}: {said}");
        // A call waits behind a DROP until this has timed out, after 2 s. A machine under load takes longer.
        let longest = longest.into_inner();
        assert!(longest < 20_000, "{blocks:?}: {longest} ms");
        let blocker = format!("connection {} of ", blocking.connection_id());
        assert!(!server.is_mysql() || said.contains(&blocker), "{blocks:?}: {blocker}: {said}");
        is_complete(&mut schema.connect(), &package(|_| {}));
        assert_eq!(routine_grants(&mut schema.connect(), &account.name), grants, "{blocks:?}");
    }
}

/// MySQL gets DROP, CREATE and GRANT in one packet, and executes all of them when the transaction has ended. MariaDB replaces a routine in
/// one statement.
fn an_upgrade_that_is_killed_while_it_waits_leaves_all_routines_and_their_privileges(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    let account = Account::new(&schema, "a", "USAGE");
    schema.run(&format!(
        "GRANT EXECUTE ON PROCEDURE counter_setup TO '{}'@'%'; ALTER PROCEDURE counter_setup COMMENT 'old'",
        account.name
    ));
    let state = || {
        let routines: u64 =
            schema.first("SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()");
        (routines, routine_grants(&mut schema.connect(), &account.name))
    };
    let before = state();
    let mut idle = schema.connect();
    idle.query_drop("START TRANSACTION").expect("a transaction");
    idle.query_drop("CALL counter_setup('idle', NULL, 1, NULL)").expect("a call");
    let mut install = start(&schema, &["install", "counters"]);
    until_an_upgrade_waits(&schema);
    install.kill().expect("a signal");
    install.wait().expect("the end");
    drop(idle);
    // One session is that of the query.
    let sessions = format!("SELECT COUNT(*) FROM {SESSIONS} WHERE DB = DATABASE()");
    until("the session of the upgrade ends", || schema.first::<u64>(&sessions) == 1);
    assert_eq!(state(), before);
    succeeds(&schema, &["install", "counters"]);
    is_complete(&mut schema.connect(), &package(|_| {}));
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
        let said = ends(&schema, 2, &["install", package]);
        assert!(
            said.contains("the package is installed, but the trial of its routines failed at CALL `")
                && said.contains(error),
            "{change}: {said}"
        );
    }
    for package in ["counters", "bounded_counters", "slotted_counters"] {
        let schema = server.schema();
        let arguments = ["install", package];
        succeeds(&schema, &arguments);
        assert_eq!(schema.first::<u64>(&format!("SELECT COUNT(*) FROM {package}")), 0);
        // A trigger would execute what its owner has written.
        schema.run(&format!("CREATE TRIGGER mine BEFORE INSERT ON {package} FOR EACH ROW SIGNAL SQLSTATE '45000'"));
        let said = succeeds(&schema, &arguments);
        assert!(
            said.contains(&format!("the routines were not tried: the table {package} has the trigger mine")),
            "{said}"
        );
    }
    let schema = server.schema();
    let definer = format!("slotted_none_{}@localhost", std::process::id());
    let said = succeeds(&schema, &["install", "counters", "--definer", &definer]);
    assert!(
        said.contains("warning: The user specified as a definer") && said.contains("source accounts.sql"),
        "{said}"
    );
}

fn each_missing_privilege_is_named_by_the_server_with_a_hint(server: &Server) {
    let all = ["CREATE", "CREATE VIEW", "CREATE ROUTINE", "SELECT", "INSERT", "UPDATE", "DELETE"];
    for missing in all {
        let schema = server.schema();
        let rest: Vec<_> = all.into_iter().filter(|one| *one != missing).collect();
        let account = Account::new(&schema, "a", &format!("DROP, ALTER ROUTINE, {}", rest.join(", ")));
        let arguments = ["install", "counters", "--no-function"];
        let (code, said) = run_as(&account, &schema, &arguments);
        assert_eq!(code, Some(2), "{missing}: {said}");
        let numbers = ["ERROR 1044", "ERROR 1142", "ERROR 1143", "ERROR 1370"];
        assert!(numbers.iter().any(|number| said.contains(number)), "{missing}: {said}");
        assert!(
            said.contains("hint: grant the account in the message") && said.contains("it does what is left"),
            "{missing}: {said}"
        );
        if missing == "DELETE" {
            // The trial has created a counter before.
            assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM counters"), 0);
        }
        account.grant(missing);
        let (code, said) = run_as(&account, &schema, &arguments);
        assert_eq!(code, Some(0), "{missing}: {said}");
        assert_eq!(run_as(&account, &schema, &arguments).0, Some(0));
    }
    // For a definer of others (1227), and for the definer itself (1370 or 1142).
    let schema = server.schema();
    let account = Account::new(&schema, "a", "ALL");
    let (code, said) =
        run_as(&account, &schema, &["install", "counters", "--no-function", "--definer", "root@localhost"]);
    assert!(
        code == Some(2)
            && said.contains("ERROR 1227")
            && said.contains("hint: connect as an account with one of the privileges"),
        "{said}"
    );
}

/// With a binary log, MySQL lets only an account with SUPER create a function.
fn the_owner_of_one_schema_installs(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    let account = Account::new(&schema, "a", "ALL");
    for package in [&["counters"][..], &["bounded_counters"], &["slotted_counters"], &["--column", "articles.views"]] {
        let (mut code, mut said) = run_as(&account, &schema, &[&["install"], package].concat());
        if server.is_mysql() {
            assert_eq!(code, Some(2), "{said}");
            assert!(
                said.contains("SET GLOBAL log_bin_trust_function_creators = ON") && said.contains("--no-function"),
                "{said}"
            );
            (code, said) = run_as(&account, &schema, &[&["install", "--no-function"], package].concat());
        }
        assert_eq!(code, Some(0), "{said}");
    }
    assert_eq!(run_as(&account, &schema, &["status"]).0, Some(0));
    for table in ["counters", "bounded_counters", "slotted_counters", "articles.views"] {
        let (code, said) = run_as(&account, &schema, &["uninstall", table, "--with-data", "--yes"]);
        assert_eq!(code, Some(0), "{said}");
    }
    assert_eq!(
        schema.first::<u64>("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"),
        1
    );
}

/// An account that cannot read the privileges on a routine, and one that cannot grant them.
fn privileges_that_cannot_be_kept_stop_an_upgrade(server: &Server) {
    let schema = server.schema();
    let (account, caller) = (Account::new(&schema, "a", "ALL"), Account::new(&schema, "c", "USAGE"));
    let install = |wanted: i32, comment: &str, text: &str| {
        let (code, said) = run_as(&account, &schema, &["install", "counters", "--no-function"]);
        assert!(code == Some(wanted) && said.contains(text), "{said}");
        let query = "SELECT LEFT(ROUTINE_COMMENT, 3) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'counter_add'";
        assert_eq!(schema.first::<String>(query), comment);
    };
    install(0, "Add", "");
    schema.run(&format!(
        "GRANT EXECUTE ON PROCEDURE counter_add TO '{}'@'%'; ALTER PROCEDURE counter_add COMMENT 'old'",
        caller.name
    ));
    install(2, "old", "GRANT SELECT ON mysql.procs_priv");
    schema.run(&format!("GRANT SELECT ON mysql.procs_priv TO '{}'@'%'", account.name));
    install(2, "old", "cannot keep the privileges to replace procedure counter_add: ERROR 1");
    account.grant("GRANT OPTION");
    account.grant("EXECUTE, ALTER ROUTINE");
    install(0, "Add", "");
    assert_eq!(routine_grants(&mut schema.connect(), &caller.name), [("counter_add".to_owned(), "Execute".to_owned())]);
}

fn every_error_is_as_reviewed(server: &Server) {
    let schema = server.schema();
    let mut texts = String::new();
    let mut fails = |arguments: &[&str]| {
        let text = ends(&schema, 2, arguments).replace(&schema.name, "SCHEMA");
        texts += &format!("$ slotted {}\n{text}\n", arguments.join(" "));
    };
    fails(&["status"]);
    fails(&["uninstall", "counters"]);
    schema.run("CREATE TABLE counters (id INT PRIMARY KEY) ENGINE = InnoDB");
    fails(&["install", "counters"]);
    schema.run("DROP TABLE counters");
    succeeds(&schema, &["install", "counters"]);
    fails(&["uninstall", "--with-data"]);
    schema.run("RENAME TABLE counters TO counters_old");
    fails(&["install", "counters"]);
    schema.run("RENAME TABLE counters_old TO counters; DROP VIEW counter_package");
    fails(&["status"]);
    succeeds(&schema, &["install", "counters"]);
    succeeds(&schema, &["install", "slotted_counters"]);
    fails(&["uninstall"]);
    schema.run("DROP VIEW slotted_counter_package; CREATE OR REPLACE VIEW counter_package AS SELECT '0.0.1' AS version, 'counters --gone' AS arguments");
    fails(&["status"]);
    for command in [&["install", "counters"][..], &["status"], &["uninstall"]] {
        let output = slotted(&schema, command).env("SLOTTED_URL", server.url()).output().expect("slotted runs");
        texts += &format!("$ slotted {} (without a database)\n{}\n", command.join(" "), printed(&output));
    }
    insta::assert_snapshot!("errors", texts);
}

fn a_dry_run_prints_the_file_for_the_client(server: &Server) {
    let schema = server.schema();
    let wanted = package(|_| {});
    for name in ["setup.sql", "create_procedures.sql"] {
        let sql = succeeds(&schema, &["install", "counters", "--dry-run"]);
        assert_eq!(sql, schema.file(&wanted, name));
        let sourced = schema.client().pipe(&[], &sql);
        assert!(sourced.success, "{}", sourced.stderr);
        is_complete(&mut schema.connect(), &wanted);
    }
}

fn uninstall_keeps_the_counts_unless_it_is_told_otherwise(server: &Server) {
    let schema = server.schema();
    succeeds(&schema, &["install", "counters"]);
    schema.run("CALL counter_setup('hits', NULL, NULL, 42)");
    let text = succeeds(&schema, &["uninstall"]);
    assert!(text.contains("the table counters is kept"), "{text}");
    assert_eq!(schema.first::<u64>("SELECT SUM(counter) FROM counters"), 42);
    succeeds(&schema, &["install", "counters"]);
    assert_eq!(schema.first::<u64>("SELECT counter_get('hits')"), 42);
    for (answer, dropped) in [("no", false), ("counters", true)] {
        let mut command = slotted(&schema, &["uninstall", "--with-data"]);
        command.stdin(Stdio::inherit());
        let mut terminal = rexpect::session::spawn_command(command, Some(60_000)).expect("a terminal");
        terminal.exp_string("The sum of its counts is 42.").expect("what is dropped");
        terminal.exp_string("Type the name of the table to drop it: ").expect("a question");
        terminal.send_line(answer).expect("an answer");
        terminal.exp_eof().expect("the end");
        let tables: u64 =
            schema.first("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()");
        assert_eq!(tables == 0, dropped, "{answer}");
    }
}
