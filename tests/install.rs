//! Installation by a DBA: the scripts run in the client, keep existing data, and give the documented privileges.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::{Ident, Kind, Options, Package, Roles, Routine, Security, Servers, Slots};
use slotted::script;
use slotted::server::PrivateServer;

use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, calls, error_of, file, keyed, package, root};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(setup_can_be_sourced_from_any_folder)
        .on_servers(setup_can_be_redirected_from_any_folder)
        .on_servers(setup_fails_if_the_table_exists_and_keeps_it)
        .on_servers(create_procedures_replaces_the_routines)
        .on_servers(the_two_scripts_create_the_same_objects_as_setup)
        .on_servers(scripts_restore_the_settings_of_the_session)
        .on_servers(uninstall_keeps_the_table)
        .on_families(an_uninstallation_that_stops_at_any_statement_can_be_completed)
        .on_servers(create_procedures_stops_before_any_change_at_another_table)
        .on_servers(create_procedures_stops_before_any_change_at_counters_with_fewer_slots)
        .on_servers(an_upgrade_and_another_number_of_slots_lose_no_increment)
        .on_servers(each_role_has_its_privileges_and_no_others)
        .on_servers(sql_for_one_server_installs_on_it)
        .on_servers(invoker_routines_run_with_the_privileges_of_the_caller)
        .on(|name| name.starts_with("mysql"), a_function_that_would_be_rejected_stops_setup_and_can_be_omitted)
        .on_servers(the_client_keeps_comments_for_mariadb)
        .on_servers(every_routine_has_its_manual)
        .on_servers(counter_package_returns_the_options)
        .on_servers(totals_of_views_are_integers_that_are_not_null)
        .private()
        .on_servers(a_read_only_server_rejects_the_account_of_the_routines)
        .on_servers(a_dump_is_restored_by_an_account_without_super);
}

fn committed(name: &str) -> String {
    root().join("generated/counters").join(name).display().to_string()
}

fn works(schema: &Schema<'_>) {
    schema.run("CALL counter_setup('works', NULL, NULL, 41); CALL counter_increment('works')");
    assert_eq!(schema.first::<i64>("SELECT counter_get('works')"), 42);
    assert_eq!(schema.first::<i64>("SELECT total FROM counter_totals WHERE counter_name = 'works'"), 42);
    schema.run("CALL counter_delete('works')");
}

fn setup_can_be_sourced_from_any_folder(server: &Server) {
    let schema = server.schema();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let command = schema.client().command(&["--pager=cat"], elsewhere.path());
    let mut prompt = rexpect::session::spawn_command(command, Some(60_000)).expect("a client at a terminal");
    let mut typed = |line: &str, answer: &str| {
        prompt.send_line(line).expect(line);
        prompt.exp_string(answer).unwrap_or_else(|error| panic!("{line}: {error}"));
    };
    typed(&format!("source {}", committed("setup.sql")), "Query OK");
    typed("SELECT CONCAT('in', 'stalled');", "installed");
    typed("CALL counter_setup('typed', NULL, NULL, 1000);", "Query OK");
    typed("CALL counter_increment('typed');", "Query OK");
    typed("SELECT counter_get('typed') AS total;", "1001");
    typed("quit", "Bye");
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()"), package(|_| {}).routines().count() as u64);
    works(&schema);
}

fn redirect(schema: &Schema<'_>, script: &str, folder: &Path) -> std::process::Output {
    let script = File::open(script).expect("the script");
    let mut command = schema.client().command(&[], folder);
    command.stdin(Stdio::from(script)).output().expect("the client runs")
}

fn setup_can_be_redirected_from_any_folder(server: &Server) {
    let schema = server.schema();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let output = redirect(&schema, &committed("setup.sql"), elsewhere.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    works(&schema);
}

fn setup_fails_if_the_table_exists_and_keeps_it(server: &Server) {
    let schema = server.schema();
    let package = package(|_| {});
    schema.install(&package);
    schema.run("CALL counter_setup('kept', 'mine', 3, 12)");
    let before = schema.rows(&package.options.table);
    let output = redirect(&schema, &committed("setup.sql"), root());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("1050") && said.contains("already exists"), "{said}");
    assert_eq!(schema.rows(&package.options.table), before);

    // At the prompt and with --force, the client continues after the error. Also a setup.sql with other options changes nothing.
    let routines = "SELECT GROUP_CONCAT(CONCAT(ROUTINE_NAME, SHA2(ROUTINE_DEFINITION, 256), LAST_ALTERED) ORDER BY ROUTINE_NAME)
                      FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    let of_routines = || {
        let mut connection = schema.connect();
        connection.query_drop("SET SESSION group_concat_max_len = 100000").expect("a setting");
        connection.query_first::<String, _>(routines).expect(routines)
    };
    let fixed = crate::support::package(|o| o.slots = Slots::Fixed(20));
    let (created, read_only) = (of_routines(), if server.is_mysql() { "transaction_read_only" } else { "tx_read_only" });
    for (other, before_it) in [(&package, 0), (&fixed, 0), (&package, 1)] {
        let script = format!(
            "SET SESSION {read_only} = {before_it};\n{}\nSELECT CONCAT('read only: ', IF(@@SESSION.{read_only}, 1, 0));\n",
            file(other, "setup.sql")
        );
        let said = schema.client().pipe(&["--force", "--skip-column-names"], &script);
        assert!(said.stderr.contains("1050") || before_it == 1, "{said:?}");
        assert!(said.stderr.contains("1792"), "{said:?}");
        assert!(said.stdout.contains(&format!("read only: {before_it}")), "{said:?}");
        assert_eq!(of_routines(), created, "{said:?}");
        assert_eq!(schema.rows(&package.options.table), before);
    }
    works(&schema);

    // setup.sql also keeps a table with other columns, and creates no routine.
    let schema = server.schema();
    schema.run("CREATE TABLE counters (id INT PRIMARY KEY); INSERT INTO counters VALUES (7)");
    assert!(!redirect(&schema, &committed("setup.sql"), root()).status.success());
    assert_eq!(schema.first::<i64>("SELECT id FROM counters"), 7);
    let routines = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    assert_eq!(schema.first::<u64>(routines), 0);
}

fn create_procedures_replaces_the_routines(server: &Server) {
    let schema = server.schema();
    let first = package(|_| {});
    schema.install(&first);
    schema.run("CALL counter_setup('kept', NULL, 20, 12)");
    let second = package(|options| options.slots = Slots::Fixed(20));
    for package in [&second, &second, &first] {
        let said = schema.client().pipe(&[], &file(package, "create_procedures.sql"));
        assert!(said.success, "{said:?}");
        assert_eq!(schema.first::<String>("SELECT slots FROM counter_package"), package.options.slots.to_string());
        assert_eq!(schema.first::<i64>("SELECT counter_get('kept')"), 12);
        works(&schema);
    }
}

fn definitions(schema: &Schema<'_>) -> Vec<(String, String)> {
    schema
        .connect()
        .query(
            "SELECT ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES \
             WHERE ROUTINE_SCHEMA = DATABASE() \
             UNION ALL SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1, 2",
        )
        .expect("the objects")
}

fn the_two_scripts_create_the_same_objects_as_setup(server: &Server) {
    let (one, two) = (server.schema(), server.schema());
    let package = package(|_| {});
    // Both with the client, because some clients remove the comments of a body.
    for (schema, name) in [(&one, "setup.sql"), (&two, "create_tables.sql"), (&two, "create_procedures.sql")] {
        let said = schema.client().pipe(&[], &file(&package, name));
        assert!(said.success, "{said:?}");
    }
    assert_eq!(definitions(&one), definitions(&two));
    works(&two);
}

fn scripts_restore_the_settings_of_the_session(server: &Server) {
    let package = package(|_| {});
    let settings = "SELECT @@sql_mode, @@character_set_client, @@character_set_results, \
                    @@character_set_connection, @@collation_connection;\n";
    for session in [
        "",
        "SET NAMES latin1; SET sql_mode = 'ANSI_QUOTES';\n",
        "SET NAMES utf8mb4 COLLATE utf8mb4_bin; SET character_set_results = NULL; SET sql_mode = '';\n",
    ] {
        let schema = server.schema();
        let scripts = ["setup.sql", "create_procedures.sql", "uninstall.sql"].map(|name| file(&package, name));
        let input = format!("{session}{settings}{}", scripts.map(|script| script + settings).concat());
        let said = schema.client().pipe(&["--skip-column-names"], &input);
        assert!(said.success, "{said:?}");
        let lines: Vec<_> = said.stdout.lines().collect();
        assert_eq!(lines.len(), 4, "{said:?}");
        assert!(lines.iter().all(|line| *line == lines[0]), "{lines:#?}");
    }
}

fn uninstall_keeps_the_table(server: &Server) {
    let schema = server.schema();
    let package = package(|_| {});
    schema.install(&package);
    schema.run("CALL counter_setup('kept', NULL, 3, 12)");
    let before = schema.rows(&package.options.table);
    for _ in 0..2 {
        let said = schema.client().pipe(&[], &file(&package, "uninstall.sql"));
        assert!(said.success, "{said:?}");
    }
    assert_eq!(definitions(&schema), [("counters".to_owned(), "BASE TABLE".to_owned())]);
    assert_eq!(schema.rows(&package.options.table), before);
    let said = schema.client().pipe(&[], &file(&package, "create_procedures.sql"));
    assert!(said.success, "{said:?}");
    assert_eq!(schema.first::<i64>("SELECT counter_get('kept')"), 12);
}

/// Runs a script until the first error of the server.
fn source(connection: &mut Conn, text: &str) -> Result<(), (u16, String)> {
    for statement in slotted::script::statements(text) {
        if let Err(error) = connection.query_drop(&statement) {
            return Err(error_of::<()>(Err(error)));
        }
    }
    Ok(())
}

fn routines(schema: &Schema<'_>) -> u64 {
    schema.first("SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()")
}

/// Each problem is reported with the statement that cures it.
/// As the comment of the script says: with roll-ups after create_procedures.sql, because the script calls one.
fn an_uninstallation_that_stops_at_any_statement_can_be_completed(server: &Server) {
    let with_column = of_column("articles.views", "id INT", |_| {});
    for package in [package(|_| {}), with_column] {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 0)");
        schema.install(&package);
        let rolls_up = package.options.column.is_some();
        let [uninstall, create] = ["uninstall.sql", "create_procedures.sql"].map(|name| file(&package, name));
        let again = if rolls_up { "Source create_procedures.sql and the script again" } else { "Source the script again" };
        assert!(uninstall.contains(again), "{uninstall}");
        let statements = script::statements(&uninstall);
        assert!(statements.len() > 15, "{}", statements.len());
        for done in 0..=statements.len() {
            if rolls_up {
                schema.run("CALL articles_views_increment(1)");
            }
            let mut connection = schema.connect();
            for statement in &statements[..done] {
                connection.query_drop(statement).expect(statement);
            }
            drop(connection);
            if rolls_up {
                schema.run(&create);
            }
            schema.run(&uninstall);
            let left: u64 = schema.first(
                "SELECT (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())
                      + (SELECT COUNT(*) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE())",
            );
            assert_eq!(left, 0, "after {done} statements");
            if rolls_up {
                assert_eq!(schema.first::<u64>("SELECT views FROM articles"), done as u64 + 1, "after {done} statements");
            }
            schema.run(&create);
        }
    }
}

fn create_procedures_stops_before_any_change_at_another_table(server: &Server) {
    let counters = package(|_| {});
    let records = keyed(|options| {
        options.key = "url VARCHAR(50), id BIGINT UNSIGNED".parse().expect("a key");
    });
    let cases: [(&Package, &[&str]); 12] = [
        (&counters, &["ENGINE = MyISAM"]),
        (&counters, &["MODIFY counter_name VARCHAR(100) CHARACTER SET latin1 NOT NULL"]),
        (&counters, &["MODIFY counter_name VARCHAR(100) CHARACTER SET utf8mb3 NOT NULL"]),
        (&counters, &["MODIFY counter_name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"]),
        (&counters, &["MODIFY counter_name VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL"]),
        (&counters, &["MODIFY counter BIGINT NULL", "MODIFY counter_id BIGINT NOT NULL"]),
        (&counters, &["DROP COLUMN start_date", "DROP PRIMARY KEY, ADD PRIMARY KEY (counter_id, counter_name)"]),
        (&counters, &["DROP PRIMARY KEY, ADD PRIMARY KEY (counter_name(20), counter_id)"]),
        (&counters, &["ADD UNIQUE KEY one (description)"]),
        (&records, &["MODIFY id BIGINT NOT NULL"]),
        (&records, &["MODIFY id INT UNSIGNED NOT NULL", "MODIFY `count` BIGINT NULL"]),
        (&records, &["DROP PRIMARY KEY, ADD PRIMARY KEY (id, url, slot)"]),
    ];
    for (package, changes) in cases {
        let schema = server.schema();
        let mut connection = schema.connect();
        let script = file(package, "create_procedures.sql");
        let missing = source(&mut schema.connect(), &script).expect_err("no table");
        assert_eq!(missing.0, 1286, "{missing:?}");
        assert!(missing.1.contains("does not exist in this database. Source create_tables.sql"), "{missing:?}");
        source(&mut connection, &file(package, "create_tables.sql")).expect("the table");
        let table = &package.options.table;
        for change in changes {
            connection.query_drop(format!("ALTER TABLE {table} {change}")).expect(change);
        }
        // A client at its prompt continues after an error, and so does this one. It changes nothing, too.
        let said = schema.client().pipe(&["--force"], &format!("{script}CREATE TABLE writable (id INT);\n"));
        assert!(said.stderr.contains("1286") && said.stderr.contains("1792"), "{said:?}");
        assert_eq!(routines(&schema), 0, "{said:?}");
        assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM writable"), 0);
        let mut cures = 0;
        while let Err((number, message)) = source(&mut schema.connect(), &script) {
            assert_eq!((number, routines(&schema)), (1286, 0), "{changes:?}: {message}");
            let (problem, cure) = message.split_once(" Run: ").unwrap_or_else(|| panic!("{message}"));
            let cure = cure.trim_end_matches('\'');
            eprintln!("{}: {problem} Run: {cure}", server.version);
            connection.query_drop(cure).unwrap_or_else(|error| panic!("{error}: {cure}"));
            cures += 1;
            assert!(cures <= changes.len(), "{changes:?}: {message}");
        }
        assert!(cures > 0, "not seen: {changes:?}");
        assert_eq!(routines(&schema), package.routines().count() as u64);
    }
}

fn create_procedures_stops_before_any_change_at_counters_with_fewer_slots(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('few', 'five slots', NULL, 12); CALL counter_setup('gap', NULL, 64, 7)");
    schema.run("DELETE FROM counters WHERE counter_name = 'gap' AND counter_id = 3");
    let before = definitions(&schema);
    let fixed = package(|options| options.slots = Slots::Fixed(20));
    let mut connection = schema.connect();
    let script = file(&fixed, "create_procedures.sql");
    let error = source(&mut schema.connect(), &script).expect_err("fewer slots");
    assert_eq!(error.0, 1286, "{error:?}");
    let problem = "counter 'few' has fewer than 20 slots. Source resize.sql, which gives every counter 20 slots";
    assert!(error.1.contains(problem), "{error:?}");
    assert_eq!(definitions(&schema), before);
    for _ in 0..2 {
        source(&mut connection, &file(&fixed, "resize.sql")).expect("missing slots");
        source(&mut connection, &script).expect("the routines");
    }
    let counters = "SELECT JSON_ARRAYAGG(slots) FROM (SELECT slots FROM counter_totals ORDER BY counter_name) AS list";
    assert_eq!(schema.first::<String>(counters).replace(' ', ""), "[20,64]");
    schema.run("CALL counter_resize('gap', NULL); CALL counter_resize('few', 20)");
    assert_eq!(schema.first::<String>(counters).replace(' ', ""), "[20,20]");
    assert_eq!(schema.first::<(i64, i64)>("SELECT counter_get('few'), counter_get('gap')"), (12, 7));
    let described = "SELECT COUNT(DISTINCT description, start_date) FROM counters WHERE counter_name = 'few'";
    assert_eq!(schema.first::<u64>(described), 1);
}

/// Callers repeat a call that MySQL rejects between DROP and CREATE (1305). MariaDB replaces a routine in one statement.
fn an_upgrade_and_another_number_of_slots_lose_no_increment(server: &Server) {
    let schema = server.schema();
    let sizes = [20, 64].map(|slots| package(|options| options.slots = Slots::Fixed(slots)));
    schema.install(&sizes[0]);
    schema.run("CALL counter_setup('hot', NULL, NULL, 0)");
    let done = AtomicBool::new(false);
    let (counted, rejected) = (AtomicU64::new(0), AtomicU64::new(0));
    let upgrades = std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut connection = schema.connect();
                while !done.load(Relaxed) {
                    match connection.query_drop("CALL counter_increment('hot')") {
                        Ok(()) => counted.fetch_add(1, Relaxed),
                        Err(error) => {
                            let (number, message) = error_of::<()>(Err(error));
                            assert!(number == 1305 && server.is_mysql(), "{number}: {message}");
                            rejected.fetch_add(1, Relaxed)
                        }
                    };
                }
            });
        }
        let mut connection = schema.connect();
        let mut upgrades = 0;
        let upgraded = calls(20).try_for_each(|number| {
            let package = &sizes[(number + 1) % 2];
            upgrades += 1;
            source(&mut connection, &file(package, "resize.sql"))?;
            source(&mut connection, &file(package, "create_procedures.sql"))
        });
        done.store(true, Relaxed);
        upgraded.expect("the scripts");
        upgrades
    });
    eprintln!("{}: {upgrades} upgrades, {counted:?} calls counted, {rejected:?} rejected (1305)", server.version);
    assert_eq!(schema.first::<u64>("SELECT counter_get('hot')"), counted.into_inner());
}

/// An account and two roles that are dropped at the end of the test.
pub struct Account<'a> {
    pub schema: &'a Schema<'a>,
    pub name: String,
}

impl<'a> Account<'a> {
    pub fn new(schema: &'a Schema<'a>) -> Self {
        let name = format!("app_{}", &schema.name["slotted_test_".len()..]);
        schema.run(&format!("CREATE USER '{name}'@'%' IDENTIFIED BY 'secret'"));
        Self { schema, name }
    }

    /// The roles of a package for this account. Other tests use the same server, so they have names of their own.
    pub fn roles(&self) -> Roles {
        let role = |end: &str| format!("{}_{end}", self.name).parse().expect("a name");
        Roles { application: role("counts"), admin: role("manages") }
    }

    /// A text of the package with these roles in place of its own.
    pub fn with_roles(&self, package: &Package, text: &str) -> String {
        let (own, roles) = (package.roles(), self.roles());
        let text = text.replace(&own.application.to_string(), &roles.application.to_string());
        text.replace(&own.admin.to_string(), &roles.admin.to_string())
    }

    /// A file of the package with these roles.
    pub fn renamed(&self, package: &Package, name: &str) -> String {
        self.with_roles(package, &file(package, name))
    }

    pub fn connect(&self) -> Conn {
        let options = self.schema.options().user(Some(&self.name)).pass(Some("secret"));
        Conn::new(options).expect("the account may connect")
    }

    /// Sources grants.sql and grants one of its roles to the account.
    pub fn grant_role(&self, package: &Package, role: &Ident) {
        let said = self.schema.client().pipe(&[], &self.renamed(package, "grants.sql"));
        assert!(said.success, "{said:?}");
        let (to, name) = (if self.schema.server.is_mysql() { "TO" } else { "FOR" }, &self.name);
        self.schema.run(&format!("GRANT {role} TO '{name}'@'%'; SET DEFAULT ROLE {role} {to} '{name}'@'%'"));
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        let mut connection = self.schema.connect();
        let Roles { application, admin } = self.roles();
        for statement in [format!("DROP USER '{}'@'%'", self.name), format!("DROP ROLE IF EXISTS {application}, {admin}")] {
            // Ignores errors: a second panic would abort the run and hide the first one.
            let _ = connection.query_drop(statement);
        }
    }
}

/// Calls and the role that may make them: each call is an error of privileges for the others.
const OF_ROLES: [(&str, bool); 11] = [
    ("CALL counter_increment('a')", true),
    ("CALL counter_add('a', 2)", true),
    ("SELECT counter_get('a')", true),
    ("SELECT total FROM counter_totals", true),
    ("SELECT version FROM counter_package", true),
    ("CALL counter_setup('b', NULL, NULL, NULL)", false),
    ("CALL counter_resize('b', 7)", false),
    ("CALL counter_reset('b', 7, TRUE)", false),
    ("CALL counter_drop('b')", false),
    ("CALL counter_setup('c', NULL, NULL, NULL)", false),
    ("CALL counter_delete('c')", false),
];

fn each_role_has_its_privileges_and_no_others(server: &Server) {
    let schema = server.schema();
    // In GRANT ... ON a_b.*, the underscore is a pattern that also matches this name.
    let similar = Schema::named(server, &schema.name.replacen('_', "x", 1), "");
    let account = Account::new(&schema);
    let package = package(|_| {});
    let Roles { application, admin } = account.roles();
    for schema in [&schema, &similar] {
        schema.install(&package);
        schema.run("CALL counter_setup('a', NULL, NULL, 0); CREATE PROCEDURE other() SELECT 1");
    }
    let rejected = |connection: &mut Conn, call: &str| {
        let result = connection.query::<mysql::Row, _>(call);
        assert!(result.is_err(), "allowed: {call}");
        let error = error_of(result);
        // Privileges of a table, of a routine, of a schema.
        assert!([1142, 1370, 1044].contains(&error.0), "{call}: {error:?}");
    };
    let mut counted = 0;
    for role in [&application, &admin] {
        account.grant_role(&package, role);
        for upgraded in [false, true] {
            if upgraded {
                let said = schema.client().pipe(&[], &file(&package, "create_procedures.sql"));
                assert!(said.success, "{said:?}");
                if server.is_mysql() {
                    // A session may keep the privileges of a role until the next change of any privilege.
                    let granted = format!("SELECT COUNT(*) FROM mysql.procs_priv WHERE USER = '{}'", role.name());
                    assert_eq!(schema.first::<u64>(&granted), 0);
                    source(&mut schema.connect(), &account.renamed(&package, "grants.sql")).expect("the privileges again");
                }
            }
            let mut connection = account.connect();
            for (call, of_both) in OF_ROLES {
                if of_both || role == &admin {
                    connection.query_drop(call).unwrap_or_else(|error| panic!("{role}: {call}: {error}"));
                } else {
                    rejected(&mut connection, call);
                }
            }
            counted += 3;
            for call in [
                "SELECT * FROM counters",
                "UPDATE counters SET counter = 0",
                "DELETE FROM counters",
                "CALL other()",
                "CREATE TABLE mine (id INT)",
            ] {
                rejected(&mut connection, call);
            }
            for call in ["CALL {}.counter_increment('a')", "SELECT {}.counter_get('a')", "SELECT * FROM {}.counter_totals"] {
                rejected(&mut connection, &call.replace("{}", &similar.ident().to_string()));
            }
        }
    }
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), counted);
    assert_eq!(similar.first::<i64>("SELECT counter_get('a')"), 0);
}

/// The routines run as an account without SUPER, in place of the administrator that has installed them.
fn a_read_only_server_rejects_the_account_of_the_routines(server: &Server) {
    // read_only is a setting of the whole server, so this test has one of its own.
    let private = PrivateServer::start(server.program(), &["--event-scheduler=ON"], &AtomicBool::new(false)).expect("a server");
    let mut connection = Conn::new(private.options()).expect("a connection");
    let mut run = |text: &str| source(&mut connection, text).unwrap_or_else(|error| panic!("{error:?}: {text}"));
    run("CREATE DATABASE app; USE app; CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL);
         INSERT INTO pages VALUES (7, 0)");
    let definer = |options: &mut Options| options.definer = Some("slotted@localhost".parse().expect("an account"));
    let named = package(definer);
    let keyed = of_column("pages.views", "id BIGINT", definer);
    run("CREATE USER app@localhost");
    for package in [&named, &keyed] {
        for name in ["setup.sql", "accounts.sql", "grants.sql", "accounts.sql", "create_procedures.sql", "grants.sql"] {
            run(&file(package, name));
        }
        let Roles { application, admin } = package.roles();
        run(&format!("GRANT {application} TO app@localhost; GRANT {admin} TO app@localhost"));
    }
    let as_role = |role: &Ident| {
        let mut connection = Conn::new(private.options().user(Some("app"))).expect("a connection");
        for statement in [format!("SET ROLE {role}"), "USE app".to_owned()] {
            connection.query_drop(&statement).expect(&statement);
        }
        connection
    };
    as_role(&named.roles().admin).query_drop("CALL counter_setup('a', NULL, 10, 41)").expect("setup");
    as_role(&named.roles().admin).query_drop("CALL counter_resize('a', 3)").expect("resize");
    as_role(&named.roles().application).query_drop("CALL counter_increment('a')").expect("an increment");
    as_role(&keyed.roles().application).query_drop("CALL pages_views_add(7, 42)").expect("an increment");
    as_role(&keyed.roles().admin).query_drop("CALL pages_views_compact(7)").expect("compact");
    let mut administrator = Conn::new(private.options().db_name(Some("app"))).expect("a connection");
    assert_eq!(administrator.query_first::<i64, _>("SELECT views FROM pages").expect("views"), Some(42));
    administrator.query_drop("SET GLOBAL read_only = 1").expect("read_only");
    for (role, call) in [
        (&named.roles().application, "CALL counter_increment('a')"),
        (&named.roles().admin, "CALL counter_reset('a', 0, FALSE)"),
        (&keyed.roles().application, "CALL pages_views_increment(7)"),
    ] {
        let error = error_of(as_role(role).query_drop(call));
        assert_eq!(error.0, 1290, "{call}: {error:?}");
    }
    let totals = "SELECT CAST(counter_get('a') AS SIGNED), CAST(pages_views_get(7) AS SIGNED)";
    assert_eq!(administrator.query_first::<(i64, i64), _>(totals).expect("totals"), Some((42, 42)));
    // No client can connect as the account.
    let locked = Conn::new(private.options().user(Some("slotted")));
    assert!(matches!(&locked, Err(mysql::Error::MySqlError(error)) if [3118, 4151].contains(&error.code)), "{locked:?}");
}

/// Restores under another name what an administrator has dumped, with the privileges that docs/operations.md names.
fn a_dump_is_restored_by_an_account_without_super(server: &Server) {
    // Roles, an account of the routines and log_bin_trust_function_creators are of the whole server.
    let functions: &[&str] = if server.is_mysql() { &["--log-bin-trust-function-creators=ON"] } else { &[] };
    let server = server.another(functions);
    let schema = Schema::named(&server, "app", "");
    schema.run("CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL); INSERT INTO pages VALUES (7, 0)");
    let keyed = of_column("pages.views", "id BIGINT", |options| options.definer = Some("slotted@localhost".parse().expect("an account")));
    for name in ["setup.sql", "accounts.sql"] {
        schema.run(&file(&keyed, name));
    }
    schema.run("CALL pages_views_add(7, 41); CALL pages_views_rollup(NULL); CALL pages_views_add(7, 1)");
    let options = mysql::Opts::from(server.options());
    let mut dump = std::process::Command::new(server.dump());
    dump.args(["--no-defaults", "--user=root", "--single-transaction", "--routines", "--events"]);
    dump.args(["--loose-set-gtid-purged=OFF", "app"]);
    dump.arg(format!("--socket={}", options.get_socket().expect("a socket")));
    let dump = dump.output().expect("the program runs");
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));

    // A server on which the account of the routines does not exist.
    let restored = Schema::named(&server, "restored", "");
    let definer = if server.is_mysql() { "SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER" } else { "SET USER" };
    schema.run(&format!(
        "DROP USER slotted@localhost; CREATE USER dba@localhost; GRANT ALL PRIVILEGES ON restored.* TO dba@localhost;
         GRANT {definer} ON *.* TO dba@localhost"
    ));
    let account = server.options().user(Some("dba"));
    let client = server.client_of(&account.into(), "restored");
    let said = client.pipe(&[], &String::from_utf8(dump.stdout).expect("text"));
    assert!(said.success, "{said:?}");
    let error = error_of(restored.connect().query_drop("CALL pages_views_increment(7)"));
    assert_eq!(error.0, 1449, "{error:?}");
    restored.run(&file(&keyed, "accounts.sql"));
    restored.run("CALL pages_views_increment(7); CALL pages_views_rollup(NULL)");
    assert_eq!(restored.first::<(i64, i64)>("SELECT pages_views_get(7), views FROM pages"), (43, 43));
}

fn sql_for_one_server_installs_on_it(server: &Server) {
    let schema = server.schema();
    let servers = if server.is_mysql() { Servers::Mysql } else { Servers::Mariadb };
    let package = package(|options| options.servers = servers);
    schema.install(&package);
    works(&schema);
    source(&mut schema.connect(), &file(&package, "create_procedures.sql")).expect("an upgrade");
    works(&schema);
    let body = "SELECT ROUTINE_DEFINITION FROM information_schema.ROUTINES \
                WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'counter_increment'";
    let exempt = schema.first::<String>(body).contains("SET STATEMENT innodb_snapshot_isolation=OFF FOR");
    assert_eq!(exempt, !server.is_mysql());
    let records = keyed(|options| options.servers = servers);
    schema.install(&records);
    schema.run("CALL slotted_counter_increment(1, 2); CALL slotted_counter_compact(1, 2)");
    assert_eq!(schema.first::<i64>("SELECT slotted_counter_get(1, 2)"), 1);
}

fn invoker_routines_run_with_the_privileges_of_the_caller(server: &Server) {
    let schema = server.schema();
    let account = Account::new(&schema);
    let package = package(|options| {
        options.security = Security::Invoker;
    });
    schema.install(&package);
    schema.run("CALL counter_setup('a', NULL, NULL, 41)");
    schema.run(&format!("GRANT EXECUTE ON {}.* TO '{}'@'%'", schema.ident(), account.name));
    let error = error_of(account.connect().query_drop("CALL counter_increment('a')"));
    assert_eq!(error.0, 1142, "{error:?}");
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 41);
    account.grant_role(&package, &account.roles().application);
    account.connect().query_drop("CALL counter_increment('a')").expect("an increment");
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 42);
}

fn a_function_that_would_be_rejected_stops_setup_and_can_be_omitted(server: &Server) {
    let schema = server.schema();
    let account = Account::new(&schema);
    schema.run(&format!("GRANT ALL PRIVILEGES ON {}.* TO '{}'@'%'", schema.ident(), account.name));
    // MySQL rejects CREATE FUNCTION from an account without SUPER, if the binary log is on.
    let binary_log: (bool, bool) = schema.first("SELECT @@log_bin, @@log_bin_trust_function_creators");
    assert_eq!(binary_log, (true, false), "the defaults of MySQL");
    let with = package(|_| {});
    for name in ["setup.sql", "create_procedures.sql"] {
        let error = source(&mut account.connect(), &file(&with, name)).expect_err("rejected");
        assert!(error.0 == 1286 && error.1.contains("cannot create the function counter_get"), "{error:?}");
        assert!(error.1.contains("SET GLOBAL log_bin_trust_function_creators = ON"), "{error:?}");
        assert_eq!(definitions(&schema), []);
    }
    let without = package(|options| options.function = false);
    assert!(without.routine(Routine::Get).is_none());
    let mut connection = account.connect();
    source(&mut connection, &file(&without, "setup.sql")).expect("no statement is rejected");
    connection.query_drop("CALL counter_setup('a', NULL, NULL, 41)").expect("setup");
    connection.query_drop("CALL counter_increment('a')").expect("an increment");
    assert_eq!(connection.query_first::<i64, _>("SELECT total FROM counter_totals").expect("totals"), Some(42));
    // Without the function, the scripts drop one that other options have created.
    schema.run(&file(&with, "create_procedures.sql"));
    assert_eq!(routines(&schema), with.routines().count() as u64);
    schema.run(&file(&without, "create_procedures.sql"));
    assert_eq!(routines(&schema), without.routines().count() as u64);
}

fn the_client_keeps_comments_for_mariadb(server: &Server) {
    // The clause is an executable comment, which MySQL stores. MariaDB stores its content.
    let schema = server.schema();
    let said = schema.client().pipe(&[], &file(&package(|_| {}), "setup.sql"));
    assert!(said.success, "{said:?}");
    let body: String = schema.first(
        "SELECT ROUTINE_DEFINITION FROM information_schema.ROUTINES \
         WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'counter_increment'",
    );
    assert!(body.contains("SET STATEMENT innodb_snapshot_isolation=OFF FOR"), "{body}");
}

/// Typed libraries read the type of a column from the server.
fn totals_of_views_are_integers_that_are_not_null(server: &Server) {
    for package in crate::roles::packages() {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT UNSIGNED) ENGINE = InnoDB");
        schema.install(&package);
        let query = "SELECT TABLE_NAME, DATA_TYPE, IS_NULLABLE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND COLUMN_NAME = 'total'";
        let totals = package.totals.name().to_owned();
        assert_eq!(schema.query::<(String, String, String)>(query), [(totals, "bigint".into(), "NO".into())]);
    }
}

fn every_routine_has_its_manual(server: &Server) {
    for package in slotted::package::committed() {
        let schema = server.schema();
        schema.install(&package);
        let manuals: Vec<(String, String, String)> = schema
            .connect()
            .query(
                "SELECT ROUTINE_NAME, ROUTINE_TYPE, ROUTINE_COMMENT FROM information_schema.ROUTINES \
                 WHERE ROUTINE_SCHEMA = DATABASE()",
            )
            .expect("the routines");
        assert_eq!(manuals.len(), package.routines().count());
        for (name, kind, manual) in manuals {
            let (routine, _) = package.routines().find(|(_, ident)| ident.name() == name).expect("a routine");
            if routine.is_private() {
                assert!(name.starts_with('_') && manual.starts_with("Private. "), "{name}: {manual}");
                continue;
            }
            let headings: Vec<_> =
                manual.lines().filter(|line| !line.is_empty() && !line.starts_with(' ')).collect();
            if routine == Routine::Drop {
                assert_eq!(headings, ["Description"], "{name}");
                continue;
            }
            let expected: &[_] = if kind == "FUNCTION" {
                &["Description", "Parameters", "Returns", "Errors", "Example"]
            } else {
                &["Description", "Parameters", "Errors", "Example"]
            };
            assert_eq!(headings, expected, "{name}");
            for error in routine.errors(&package.options) {
                let mut errors = manual.lines().skip_while(|line| *line != "Errors");
                let number = error.number().to_string();
                let found = errors.any(|line| line.trim().split("  ").next().unwrap_or("").split(", ").any(|one| one == number));
                assert!(found, "{name}: {error:?}");
            }
            // The example in the manual works. Each example except that of setup needs an existing counter.
            // That of compact_idle compares the counts of now with those of 60 s later. A pause of 0 s is as good.
            let example = manual.lines().last().expect("an example").trim().replace("_idle(60,", "_idle(0,");
            let mut connection = schema.connect();
            connection.query_drop(format!("DELETE FROM {}", package.options.table)).expect("an empty table");
            if package.options.kind == Kind::Counters && routine != Routine::Setup {
                for name in ["downloads", "signups", "seats", "tickets"] {
                    let setup = package.routine(Routine::Setup).expect("a routine");
                    connection.query_drop(format!("CALL {setup}('{name}', NULL, NULL, 10)")).expect("setup");
                }
            }
            if package.options.kind == Kind::SlottedCounters && routine == Routine::Take {
                connection.query_drop("CALL slotted_counter_add(123, 456, 10)").expect("add");
            }
            connection.query::<mysql::Row, _>(&example).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
}

fn counter_package_returns_the_options(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|options| {
        options.slots = Slots::Fixed(7);
        options.security = Security::Invoker;
    }));
    let row: Vec<Option<String>> = schema.rows(&"counter_package".parse().expect("a view"))[0]
        .iter()
        .map(|value| mysql::from_value_opt(value.clone()).ok())
        .collect();
    let of = |text: &str| Some(text.to_owned());
    let expected = [
        of(env!("CARGO_PKG_VERSION")),
        of("counters"),
        of("counter_name VARCHAR(100)"),
        of("7"),
        of("7"),
        of("connection"),
        of("counters"),
        of("counter_"),
        of("utf8mb4_general_ci"),
        of("invoker"),
        None,
        of("both"),
        of("counters --slots 7 --security invoker"),
    ];
    assert_eq!(row, expected);
    // A column that is NOT NULL has the default '', which tools that write code from the schema do not quote.
    let untyped: u64 = schema.first(
        "SELECT COUNT(*) FROM information_schema.COLUMNS
          WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'counter_package' AND IS_NULLABLE = 'NO' AND DATA_TYPE <> 'int'",
    );
    assert_eq!(untyped, 0);
}
