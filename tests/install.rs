//! Installation by a DBA: the scripts run in the client, keep existing data, and give the documented privileges.

use std::fs::File;
use std::io::Write;
use std::process::{Output, Stdio};

use mysql::Conn;
use mysql::prelude::Queryable;
use slotted::package::{Family, Kind, Options, Package, Routine, Security, Slots, committed};
use slotted::{render, script};

use crate::accounts::{Account, grants};
use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, error_of, keyed, package, with_collation};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(setup_can_be_sourced_and_redirected_from_any_folder)
        .on_servers(setup_fails_if_the_table_exists_and_keeps_it)
        .on_servers(uninstall_keeps_the_table_for_the_routines_of_the_next_installation)
        .on_families(an_uninstallation_that_stops_at_any_statement_can_be_completed)
        .on_servers(create_procedures_rejects_another_table_before_any_change)
        .on_servers(counters_with_fewer_slots_than_the_routines_are_exact_and_get_the_others)
        .on_families(scripts_of_the_other_family_change_nothing)
        .on_servers(invoker_routines_run_with_the_privileges_of_the_caller)
        .on(|name| name.starts_with("mysql"), without_the_function_that_the_server_rejects_all_the_rest_is_installed)
        .on_servers(every_routine_has_its_manual)
        .on_servers(totals_of_views_are_integers)
        .private()
        .on_servers(a_read_only_server_rejects_the_account_of_the_routines)
        .on_servers(a_dump_is_restored_by_an_account_without_super);
}

fn works(schema: &Schema<'_>) {
    schema.run("CALL counter_setup('works', NULL, NULL, 41); CALL counter_increment('works')");
    assert_eq!(schema.first::<i64>("SELECT counter_get('works')"), 42);
    assert_eq!(schema.first::<i64>("SELECT total FROM counter_totals WHERE counter_name = 'works'"), 42);
    schema.run("CALL counter_delete('works')");
}

/// A script in a folder in which the client does not run.
fn on_disk(schema: &Schema<'_>, package: &Package, name: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(schema.file(package, name).as_bytes()).expect("its text");
    file
}

fn redirect(schema: &Schema<'_>, package: &Package) -> Output {
    let (script, elsewhere) = (on_disk(schema, package, "setup.sql"), tempfile::tempdir().expect("a folder"));
    let mut command = schema.client().command(&[], elsewhere.path());
    command.stdin(Stdio::from(File::open(script.path()).expect("the script"))).output().expect("the client runs")
}

fn setup_can_be_sourced_and_redirected_from_any_folder(server: &Server) {
    let (schema, package) = (server.schema(), package(|_| {}));
    let (script, elsewhere) = (on_disk(&schema, &package, "setup.sql"), tempfile::tempdir().expect("a folder"));
    let command = schema.client().command(&["--pager=cat"], elsewhere.path());
    let mut prompt = rexpect::session::spawn_command(command, Some(60_000)).expect("a client at a terminal");
    let mut typed = |line: &str, answer: &str| {
        prompt.send_line(line).expect(line);
        prompt.exp_string(answer).unwrap_or_else(|error| panic!("{line}: {error}"));
    };
    typed(&format!("source {}", script.path().display()), "Query OK");
    typed("SELECT CONCAT('in', 'stalled');", "installed");
    typed("CALL counter_setup('typed', NULL, NULL, 1000);", "Query OK");
    typed("CALL counter_increment('typed');", "Query OK");
    typed("SELECT counter_get('typed') AS total;", "1001");
    typed("quit", "Bye");
    assert_eq!(routines(&schema), package.routines().count() as u64);
    works(&schema);

    let schema = server.schema();
    let output = redirect(&schema, &package);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    works(&schema);
}

fn setup_fails_if_the_table_exists_and_keeps_it(server: &Server) {
    let schema = server.schema();
    let package = package(|_| {});
    schema.install(&package);
    schema.run("CALL counter_setup('kept', 'mine', 3, 12)");
    let before = schema.rows(&package.options.table);
    let output = redirect(&schema, &package);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("1050") && said.contains("already exists"), "{said}");
    assert_eq!(schema.rows(&package.options.table), before);

    // At the prompt and with --force, the client goes on after the error. Even a setup.sql with other options changes nothing.
    let created = definitions(&schema);
    let fixed = crate::support::package(|o| o.slots = Slots::Fixed(20));
    for other in [&package, &fixed] {
        let script = format!(
            "SET sql_mode = 'ANSI_QUOTES';\n{}\nSELECT CONCAT('mode ', @@sql_mode);\n",
            schema.file(other, "setup.sql")
        );
        let said = schema.client().pipe(&["--force", "--skip-column-names"], &script);
        assert!(said.stderr.contains("1050") && said.stdout == "mode ANSI_QUOTES\n", "{said:?}");
        assert_eq!(definitions(&schema), created, "{said:?}");
        assert_eq!(schema.rows(&package.options.table), before);
    }
    works(&schema);

    // The same for a table with other columns.
    let schema = server.schema();
    schema.run("CREATE TABLE counters (id INT PRIMARY KEY); INSERT INTO counters VALUES (7)");
    assert!(!redirect(&schema, &package).status.success());
    assert_eq!((schema.first::<i64>("SELECT id FROM counters"), routines(&schema)), (7, 0));
}

fn definitions(schema: &Schema<'_>) -> Vec<(String, String)> {
    schema.query(
        "SELECT ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()
         UNION ALL SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1, 2",
    )
}

/// The two scripts create the same objects as setup.sql.
fn uninstall_keeps_the_table_for_the_routines_of_the_next_installation(server: &Server) {
    let (schema, other) = (server.schema(), server.schema());
    let package = package(|_| {});
    let source = |schema: &Schema<'_>, name: &str| {
        let said = schema.client().pipe(&[], &schema.file(&package, name));
        assert!(said.success, "{name}: {said:?}");
    };
    source(&schema, "setup.sql");
    source(&other, "create_tables.sql");
    source(&other, "create_procedures.sql");
    let created = definitions(&schema);
    assert_eq!(definitions(&other), created);
    schema.run("CALL counter_setup('kept', NULL, 3, 12)");
    let before = schema.rows(&package.options.table);
    for _ in 0..2 {
        source(&schema, "uninstall.sql");
        assert_eq!(definitions(&schema), [("counters".to_owned(), "BASE TABLE".to_owned())]);
    }
    source(&schema, "create_procedures.sql");
    assert_eq!((definitions(&schema), schema.rows(&package.options.table)), (created, before));
    works(&schema);
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

/// The number of routines without the one with which a script rejects a server or a table on MySQL. After a rejection, it stays.
fn routines(schema: &Schema<'_>) -> u64 {
    schema.first(r"SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME NOT LIKE '\_%\_script'")
}

fn an_uninstallation_that_stops_at_any_statement_can_be_completed(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id INT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 0)");
    let package = of_column("articles.views", "id INT", |_| {});
    schema.install(&package);
    let [uninstall, create] = ["uninstall.sql", "create_procedures.sql"].map(|name| schema.file(&package, name));
    let statements = script::statements(&uninstall);
    assert!(statements.len() > 10, "{}", statements.len());
    for done in 0..=statements.len() {
        schema.run("CALL articles_views_increment(1)");
        let mut connection = schema.connect();
        for statement in &statements[..done] {
            connection.query_drop(statement).expect(statement);
        }
        drop(connection);
        schema.run(&uninstall);
        let tables = [("articles", "BASE TABLE"), ("articles_views", "BASE TABLE")]
            .map(|(name, kind)| (name.to_owned(), kind.to_owned()));
        assert_eq!(definitions(&schema), tables, "after {done} statements");
        assert_eq!(schema.first::<u64>("SELECT views FROM articles"), done as u64 + 1, "after {done} statements");
        schema.run(&create);
    }
}

fn create_procedures_rejects_another_table_before_any_change(server: &Server) {
    let counters = package(|_| {});
    let records = keyed(|options| options.key = "url VARCHAR(50), id BIGINT UNSIGNED".parse().expect("a key"));
    for (package, change) in [
        (&counters, "ENGINE = MyISAM"),
        (&counters, "MODIFY counter_name VARCHAR(100) CHARACTER SET latin1 NOT NULL"),
        (&counters, "MODIFY counter_name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"),
        (&counters, "MODIFY counter_name VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci NOT NULL"),
        (&counters, "MODIFY counter BIGINT NULL"),
        (&counters, "MODIFY counter_id BIGINT NOT NULL"),
        (&counters, "DROP COLUMN start_date"),
        (&counters, "DROP PRIMARY KEY, ADD PRIMARY KEY (counter_id, counter_name)"),
        (&counters, "ADD UNIQUE KEY one (description)"),
        (&records, "MODIFY id BIGINT NOT NULL"),
        (&records, "MODIFY `count` BIGINT NULL"),
        (&records, "DROP PRIMARY KEY, ADD PRIMARY KEY (id, url, slot)"),
    ] {
        let schema = server.schema();
        let script = schema.file(package, "create_procedures.sql");
        let rejected = |why: &str| {
            let (number, message) = source(&mut schema.connect(), &script).expect_err(why);
            assert!(
                number == 30022 && message.contains("source create_tables.sql, or compare it"),
                "{why}: {number}: {message}"
            );
            // A client at its prompt goes on after the error. Nothing follows but the settings of the session.
            let said = schema.client().pipe(&["--force"], &script);
            assert!(said.stderr.contains("30022") && said.stderr.matches("ERROR").count() == 1, "{why}: {said:?}");
            assert_eq!(routines(&schema), 0, "{why}");
            assert_eq!(
                schema.first::<u64>("SELECT COUNT(*) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()"),
                0,
                "{why}"
            );
        };
        rejected("no table");
        schema.run(&schema.file(package, "create_tables.sql"));
        schema.run(&with_collation(server, &format!("ALTER TABLE {} {change}", package.options.table)));
        rejected(change);
        schema.run(&format!("DROP TABLE {}; {}", package.options.table, schema.file(package, "create_tables.sql")));
        schema.run(&script);
        assert_eq!(routines(&schema), package.routines().count() as u64);
    }
}

/// Calls that do not find their slot use slot 1, so that the order of the scripts does not matter.
fn counters_with_fewer_slots_than_the_routines_are_exact_and_get_the_others(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.run("CALL counter_setup('few', 'five slots', NULL, 12); CALL counter_setup('gap', NULL, 64, 7)");
    schema.run("DELETE FROM counters WHERE counter_name = 'gap' AND counter_id = 3");
    let fixed = package(|options| options.slots = Slots::Fixed(20));
    let (resize, create) = (schema.file(&fixed, "resize.sql"), schema.file(&fixed, "create_procedures.sql"));
    for (script, slots) in [(&create, "[5,63]"), (&resize, "[20,64]"), (&create, "[20,64]"), (&resize, "[20,64]")] {
        schema.run(script);
        for slot in 0..20 {
            schema.connect_with_id(slot, 20).query_drop("CALL counter_increment('few')").expect("an increment");
        }
        let counters = "SELECT JSON_ARRAYAGG(slots) FROM (SELECT COUNT(*) AS slots FROM counters GROUP BY counter_name ORDER BY counter_name) AS list";
        assert_eq!(schema.first::<String>(counters).replace(' ', ""), slots);
    }
    assert_eq!(schema.first::<(i64, i64)>("SELECT counter_get('few'), counter_get('gap')"), (12 + 4 * 20, 7));
    let described = "SELECT COUNT(DISTINCT description, start_date) FROM counters WHERE counter_name = 'few'";
    assert_eq!(schema.first::<u64>(described), 1);
}

/// The routines run as an account without SUPER, in place of the administrator that has installed them.
fn a_read_only_server_rejects_the_account_of_the_routines(server: &Server) {
    let server = server.another(&[]);
    let schema = server.schema();
    schema.run("CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL); INSERT INTO pages VALUES (7, 0); CREATE USER app, dba");
    let definer = |options: &mut Options| options.definer = Some("slotted@localhost".parse().expect("an account"));
    for package in [package(definer), of_column("pages.views", "id BIGINT", definer)] {
        for name in ["setup.sql", "accounts.sql", "grants.sql", "accounts.sql", "create_procedures.sql", "grants.sql"] {
            schema.run(&schema.file(&package, name));
        }
    }
    let call = |account: &str, call: &str| {
        let connection = Conn::new(schema.options().user(Some(account)));
        connection.expect("a connection").query_drop(call)
    };
    for (account, statement) in [
        ("dba", "CALL counter_setup('a', NULL, 10, 41)"),
        ("dba", "CALL counter_resize('a', 3)"),
        ("app", "CALL counter_increment('a')"),
        ("app", "CALL pages_views_add(7, 42)"),
        ("dba", "CALL pages_views_rollup(NULL)"),
    ] {
        call(account, statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    schema.run("SET GLOBAL read_only = 1");
    for (account, statement) in [
        ("app", "CALL counter_increment('a')"),
        ("dba", "CALL counter_reset('a', 0, FALSE)"),
        ("app", "CALL pages_views_increment(7)"),
    ] {
        let error = error_of(call(account, statement));
        assert_eq!(error.0, 1290, "{statement}: {error:?}");
    }
    assert_eq!(
        schema.first::<(i64, i64, i64)>("SELECT counter_get('a'), pages_views_get(7), views FROM pages"),
        (42, 42, 42)
    );
    // No client can connect as the account.
    let locked = Conn::new(server.options().user(Some("slotted")));
    assert!(
        matches!(&locked, Err(mysql::Error::MySqlError(error)) if [3118, 4151].contains(&error.code)),
        "{locked:?}"
    );
    schema.run("SET GLOBAL read_only = 0");
}

/// Restores under another name what an administrator has dumped, with the privileges that docs/operations.md names.
fn a_dump_is_restored_by_an_account_without_super(server: &Server) {
    // An account of the routines and log_bin_trust_function_creators are of the whole server.
    let functions: &[&str] = if server.is_mysql() { &["--log-bin-trust-function-creators=ON"] } else { &[] };
    let server = server.another(functions);
    let schema = Schema::named(&server, "app", "");
    schema.run("CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL); INSERT INTO pages VALUES (7, 0)");
    let keyed = of_column("pages.views", "id BIGINT", |options| {
        options.definer = Some("slotted@localhost".parse().expect("an account"))
    });
    for name in ["setup.sql", "accounts.sql"] {
        schema.run(&schema.file(&keyed, name));
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
    restored.run(&schema.file(&keyed, "accounts.sql"));
    restored.run("CALL pages_views_increment(7); CALL pages_views_rollup(NULL)");
    assert_eq!(restored.first::<(i64, i64)>("SELECT pages_views_get(7), views FROM pages"), (43, 43));
}

/// At the prompt, where the client goes on after an error.
fn scripts_of_the_other_family_change_nothing(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    let mut packages = committed();
    packages.push(of_column("articles.views", "id BIGINT", |_| {}));
    for package in packages {
        let other = if server.is_mysql() { Family::Mariadb } else { Family::Mysql };
        let package = package.of_family(other);
        // The table is the same for both.
        schema.run(&render::file(&package, "create_tables.sql"));
        let before = definitions(&schema);
        let rolls_up = package.options.column.is_some();
        for name in
            ["setup.sql", "create_procedures.sql", "uninstall.sql"].into_iter().take(if rolls_up { 3 } else { 2 })
        {
            let script =
                format!("SET sql_mode = 'ANSI_QUOTES';\n{}\nSELECT @@sql_mode;\n", render::file(&package, name));
            // setup.sql has a delimiter after each statement. It replaces nothing, but the prompt of a client would go on.
            let (options, mode) = if name == "setup.sql" { ("--batch", "") } else { ("--force", "ANSI_QUOTES\n") };
            let said = schema.client().pipe(&[options, "--skip-column-names"], &script);
            // Those of the first SET, and of the last one, which finds no settings to restore.
            assert!(
                said.stderr.contains("ERROR 1193") && said.stderr.matches("ERROR").count() <= 2,
                "{name}: {said:?}"
            );
            assert_eq!((definitions(&schema), said.stdout.as_str()), (before.clone(), mode), "{name}");
        }
        schema.run(&format!("DROP TABLE {}", package.options.table));
    }
}

fn invoker_routines_run_with_the_privileges_of_the_caller(server: &Server) {
    let schema = server.schema();
    let (app, _dba) = (Account::new(&schema, "app", "EXECUTE"), Account::new(&schema, "dba", "USAGE"));
    let package = package(|options| options.security = Security::Invoker);
    schema.install(&package);
    schema.run("CALL counter_setup('a', NULL, NULL, 41)");
    let error = error_of(app.connect().query_drop("CALL counter_increment('a')"));
    assert_eq!(error.0, 1142, "{error:?}");
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 41);
    schema.run(&grants(&schema, &package));
    app.connect().query_drop("CALL counter_increment('a')").expect("an increment");
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 42);
}

/// MySQL rejects CREATE FUNCTION from an account without SUPER, if the binary log is on.
fn without_the_function_that_the_server_rejects_all_the_rest_is_installed(server: &Server) {
    let schema = server.schema();
    let account = Account::new(&schema, "a", "ALL");
    let [with, without] = [true, false].map(|function| package(|options| options.function = function));
    let all = with.routines().count() as u64;
    let rejected = |name: &str, left: u64| {
        let (number, message) = source(&mut account.connect(), &schema.file(&with, name)).expect_err("the function");
        assert_eq!((number, routines(&schema)), (1419, left), "{name}: {message}");
    };
    rejected("setup.sql", all - 1);
    schema.run("CALL counter_setup('a', NULL, NULL, 41); CALL counter_increment('a')");
    assert_eq!(schema.first::<i64>("SELECT total FROM counter_totals"), 42);
    source(&mut account.connect(), &schema.file(&without, "create_procedures.sql")).expect("no statement is rejected");
    // A function that an administrator has created stays.
    schema.run(&format!(
        "CREATE DEFINER = '{}'@'%' FUNCTION counter_get() RETURNS INT DETERMINISTIC RETURN 7",
        account.name
    ));
    rejected("create_procedures.sql", all);
    assert_eq!(schema.first::<i64>("SELECT counter_get()"), 7);
}

/// Typed libraries read the type of a column from the server.
fn totals_of_views_are_integers(server: &Server) {
    let mut packages = committed();
    packages.push(of_column("articles.views", "id BIGINT", |_| {}));
    for package in packages {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT UNSIGNED) ENGINE = InnoDB");
        schema.install(&package);
        let query = "SELECT TABLE_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND COLUMN_NAME = 'total'";
        assert_eq!(schema.query::<(String, String)>(query), [(package.totals.name().to_owned(), "bigint".into())]);
    }
}

/// What each routine says in its COMMENT, and that its example works.
fn every_routine_has_its_manual(server: &Server) {
    let mut packages =
        Vec::from_iter(committed().into_iter().filter(|package| package.options.family == server.version.family));
    packages.push(of_column("articles.views", "id BIGINT", |_| {}));
    for package in packages {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (123, 0)");
        schema.install(&package);
        let query =
            "SELECT ROUTINE_NAME, ROUTINE_COMMENT FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
        let manuals: Vec<(String, String)> = schema.query(query);
        assert_eq!(manuals.len(), package.routines().count());
        for (name, manual) in manuals {
            let (routine, _) = package.routines().find(|(_, ident)| ident.name() == name).expect("a routine");
            assert!(manual.lines().count() <= 15 && manual.lines().all(|line| line.len() <= 120), "{name}: {manual}");
            if routine.is_private() {
                assert!(
                    name.starts_with('_') && manual.starts_with("Private. ") && manual.lines().count() <= 2,
                    "{name}: {manual}"
                );
                continue;
            }
            if routine == Routine::Drop {
                continue;
            }
            for part in ["\nParameters: ", "\nErrors: ", "\nExample: "] {
                assert!(manual.contains(part), "{name}: {part}: {manual}");
            }
            // Each example except that of setup needs an existing counter.
            let (_, example) = manual.rsplit_once("\nExample: ").expect("an example");
            schema.run(&format!("DELETE FROM {}", package.options.table));
            if package.options.kind == Kind::Counters && routine != Routine::Setup {
                let setup = package.routine(Routine::Setup).expect("a routine");
                for name in ["downloads", "seats"] {
                    schema.run(&format!("CALL {setup}('{name}', NULL, NULL, 10)"));
                }
            }
            schema.connect().query_drop(example).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
}
