//! Installation by a DBA: the scripts run in the client, keep existing data, and give the documented privileges.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::{Kind, Package, Routine, Security, Slots};
use slotted::render;

use crate::support::{Module, Schema, Server, error_of, package, root};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(setup_can_be_sourced_from_any_folder)
        .on_servers(setup_can_be_redirected_from_any_folder)
        .on_servers(setup_fails_if_the_table_exists_and_keeps_it)
        .on_servers(create_procedures_replaces_the_routines)
        .on_servers(the_two_scripts_create_the_same_objects_as_setup)
        .on_servers(scripts_restore_the_settings_of_the_session)
        .on_servers(uninstall_keeps_the_table)
        .on_servers(an_application_needs_only_execute)
        .on_servers(invoker_routines_run_with_the_privileges_of_the_caller)
        .on(|name| name.starts_with("mysql"), a_rejected_function_is_the_last_object_and_can_be_omitted)
        .on_servers(the_client_keeps_comments_for_mariadb)
        .on_servers(every_routine_has_its_manual)
        .on_servers(counter_package_returns_the_options);
}

fn file(package: &Package, name: &str) -> String {
    let files = render::files(package);
    files.into_iter().find(|file| file.name == name).expect("a file of the package").text
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
    assert_eq!(schema.first::<u64>("SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()"), 8);
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

    // With --force the client continues after the error. It replaces routines and views, and changes no row.
    let said = schema.client().pipe(&["--force"], &file(&package, "setup.sql"));
    assert!(said.stderr.contains("1050"), "{said:?}");
    assert_eq!(schema.rows(&package.options.table), before);
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

/// An account that is dropped at the end of the test.
struct Account<'a> {
    schema: &'a Schema<'a>,
    name: String,
}

impl<'a> Account<'a> {
    fn new(schema: &'a Schema<'a>) -> Self {
        let name = format!("app_{}", &schema.name["slotted_test_".len()..]);
        schema.run(&format!("CREATE USER '{name}'@'%' IDENTIFIED BY 'secret'"));
        Self { schema, name }
    }

    fn connect(&self) -> Conn {
        let options = self.schema.options().user(Some(&self.name)).pass(Some("secret"));
        Conn::new(options).expect("the account may connect")
    }

    /// Grants the role of grants.sql to the account.
    fn grant_role(&self, package: &Package) {
        let said = self.schema.client().pipe(&[], &file(package, "grants.sql"));
        assert!(said.success, "{said:?}");
        let (to, name) = (if self.schema.server.is_mysql() { "TO" } else { "FOR" }, &self.name);
        self.schema.run(&format!(
            "GRANT slotted_application TO '{name}'@'%'; SET DEFAULT ROLE slotted_application {to} '{name}'@'%'"
        ));
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        let mut connection = self.schema.connect();
        for statement in [
            format!("DROP USER '{}'@'%'", self.name),
            format!("REVOKE ALL PRIVILEGES ON {}.* FROM slotted_application", self.schema.ident()),
        ] {
            // Ignores errors: a second panic would abort the run and hide the first one.
            let _ = connection.query_drop(statement);
        }
    }
}

fn an_application_needs_only_execute(server: &Server) {
    let schema = server.schema();
    let package = package(|_| {});
    schema.install(&package);
    schema.run("CALL counter_setup('a', NULL, NULL, 41)");
    let account = Account::new(&schema);
    account.grant_role(&package);
    let mut connection = account.connect();
    connection.query_drop("CALL counter_increment('a')").expect("an increment");
    assert_eq!(connection.query_first::<i64, _>("SELECT counter_get('a')").expect("get"), Some(42));
    assert_eq!(connection.query_first::<i64, _>("SELECT total FROM counter_totals").expect("totals"), Some(42));
    assert!(connection.query_first::<String, _>("SELECT version FROM counter_package").expect("package").is_some());
    // The account has no privilege on the table.
    for statement in ["SELECT * FROM counters", "UPDATE counters SET counter = 0", "DELETE FROM counters"] {
        assert_eq!(error_of(connection.query_drop(statement)).0, 1142, "{statement}");
    }
    // The account can call the routines after an upgrade.
    let said = schema.client().pipe(&[], &file(&package, "create_procedures.sql"));
    assert!(said.success, "{said:?}");
    account.connect().query_drop("CALL counter_increment('a')").expect("an increment after the upgrade");
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 43);
}

fn invoker_routines_run_with_the_privileges_of_the_caller(server: &Server) {
    let schema = server.schema();
    let package = package(|options| options.security = Security::Invoker);
    schema.install(&package);
    schema.run("CALL counter_setup('a', NULL, NULL, 41)");
    let account = Account::new(&schema);
    schema.run(&format!("GRANT EXECUTE ON {}.* TO '{}'@'%'", schema.ident(), account.name));
    let error = error_of(account.connect().query_drop("CALL counter_increment('a')"));
    assert_eq!(error.0, 1142, "{error:?}");
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 41);
    account.grant_role(&package);
    account.connect().query_drop("CALL counter_increment('a')").expect("an increment");
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 42);
}

fn a_rejected_function_is_the_last_object_and_can_be_omitted(server: &Server) {
    let schema = server.schema();
    let account = Account::new(&schema);
    schema.run(&format!("GRANT ALL PRIVILEGES ON {}.* TO '{}'@'%'", schema.ident(), account.name));
    // MySQL rejects CREATE FUNCTION from an account without SUPER, if the binary log is on.
    let binary_log: (bool, bool) = schema.first("SELECT @@log_bin, @@log_bin_trust_function_creators");
    assert_eq!(binary_log, (true, false), "the defaults of MySQL");
    let mut connection = account.connect();
    let mut rejected = None;
    let package_with = package(|_| {});
    for statement in slotted::script::statements(&render::setup(&package_with)) {
        if let Err(error) = connection.query_drop(&statement) {
            rejected = Some(error_of::<()>(Err(error)).0);
            break;
        }
    }
    assert_eq!(rejected, Some(1419));
    // All other objects exist, and the view returns the total.
    connection.query_drop("CALL counter_setup('a', NULL, NULL, 41)").expect("setup");
    connection.query_drop("CALL counter_increment('a')").expect("an increment");
    assert_eq!(connection.query_first::<i64, _>("SELECT total FROM counter_totals").expect("totals"), Some(42));

    let without = package(|options| options.function = false);
    assert!(without.routine(Routine::Get).is_none());
    for statement in slotted::script::statements(&file(&without, "create_procedures.sql")) {
        connection.query_drop(&statement).expect("no statement is rejected");
    }
}

fn the_client_keeps_comments_for_mariadb(server: &Server) {
    // The clause is an executable comment. MySQL and MariaDB 11.8 store it, older versions of MariaDB do not.
    let schema = server.schema();
    let said = schema.client().pipe(&[], &file(&package(|_| {}), "setup.sql"));
    assert!(said.success, "{said:?}");
    let body: String = schema.first(
        "SELECT ROUTINE_DEFINITION FROM information_schema.ROUTINES \
         WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = 'counter_increment'",
    );
    if server.is_mysql() || server.has_snapshot_isolation() {
        assert!(body.contains("SET STATEMENT innodb_snapshot_isolation=OFF FOR"), "{body}");
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
            let headings: Vec<_> =
                manual.lines().filter(|line| !line.is_empty() && !line.starts_with(' ')).collect();
            let expected: &[_] = if kind == "FUNCTION" {
                &["Description", "Parameters", "Returns", "Errors", "Example"]
            } else {
                &["Description", "Parameters", "Errors", "Example"]
            };
            assert_eq!(headings, expected, "{name}");
            let (routine, _) = package.routines().find(|(_, ident)| ident.name() == name).expect("a routine");
            for error in routine.errors(&package.options) {
                assert!(manual.contains(&format!("\n  {}  ", error.number())), "{name}: {error:?}");
            }
            // The example in the manual works. Each example except that of setup needs an existing counter.
            let example = manual.lines().last().expect("an example").trim();
            let mut connection = schema.connect();
            connection.query_drop(format!("DELETE FROM {}", package.options.table)).expect("an empty table");
            if package.options.kind == Kind::Counters && routine != Routine::Setup {
                connection.query_drop("CALL counter_setup('downloads', NULL, NULL, NULL)").expect("setup");
            }
            connection.query::<mysql::Row, _>(example).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
}

fn counter_package_returns_the_options(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|options| {
        options.slots = Slots::Fixed(7);
        options.security = Security::Invoker;
    }));
    let row: (String, String, String, String, u32, String, String, String, String, String) =
        schema.first("SELECT * FROM counter_package");
    let of = |text: &str| text.to_owned();
    let expected = (
        of(env!("CARGO_PKG_VERSION")),
        of("counters"),
        of("counter_name VARCHAR(100)"),
        of("7"),
        7,
        of("connection"),
        of("counters"),
        of("counter_"),
        of("utf8mb4_general_ci"),
        of("invoker"),
    );
    assert_eq!(row, expected);
}
