//! Installation by a DBA: the scripts run in the client, keep existing data, and give the documented privileges.

use std::io::Write;
use std::path::Path;

use rexpect::session::{PtySession, spawn_command};
use slotted::package::{Family, Package, Routine, Security, committed};
use slotted::render::{self, File, Task, plan};
use tempfile::NamedTempFile;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(setup_can_be_sourced_at_the_prompt_from_any_folder)
        .on_servers(setup_fails_if_the_table_exists_and_keeps_it)
        .on_servers(uninstall_keeps_the_table_for_the_routines_of_the_next_installation)
        .on_families(an_uninstallation_that_stops_at_any_statement_can_be_completed)
        .on_servers(a_table_that_differs_is_rejected_before_any_change)
        .on_servers(a_script_that_rejects_a_table_creates_nothing_after_it)
        .on_servers(counters_with_fewer_slots_than_the_routines_are_exact_and_get_the_others)
        .on_families(scripts_of_the_other_family_change_nothing)
        .on_servers(invoker_routines_run_with_the_privileges_of_the_caller)
        .on_servers(the_example_of_each_manual_runs_and_totals_are_integers)
        .private()
        .on(|name| name.starts_with("mysql"), without_the_function_that_the_server_rejects_all_the_rest_is_installed)
        .on_servers(a_read_only_server_rejects_the_account_of_the_routines)
        .on_servers(a_dump_is_restored_by_an_account_without_super);
}

fn works(schema: &Schema<'_>) {
    schema.run("CALL counter_setup('works', NULL, NULL, 41); CALL counter_increment('works')");
    assert_eq!(schema.first::<i64>("SELECT counter_get('works')"), 42);
    assert_eq!(schema.first::<i64>("SELECT total FROM counter_totals WHERE counter_name = 'works'"), 42);
    schema.run("CALL counter_delete('works')");
}

/// A script, and the client of the server at a terminal, in another folder.
fn prompt(schema: &Schema<'_>, text: &str) -> (NamedTempFile, PtySession) {
    let mut script = NamedTempFile::new().expect("a file");
    script.write_all(text.as_bytes()).expect("its text");
    let command = schema.client().command(&["--pager=cat"], Path::new("/"));
    (script, spawn_command(command, Some(60_000)).expect("a client at a terminal"))
}

fn setup_can_be_sourced_at_the_prompt_from_any_folder(server: &Server) {
    let (schema, package) = (server.schema(), package(|_| {}));
    let (script, mut prompt) = prompt(&schema, &schema.file(&package, "setup.sql"));
    for (line, answer) in [
        (&*format!("source {}", script.path().display()), "Query OK"),
        ("SELECT CONCAT('in', 'stalled');", "installed"),
        ("CALL counter_setup('typed', NULL, NULL, 1000);", "Query OK"),
        ("CALL counter_increment('typed');", "Query OK"),
        ("SELECT counter_get('typed') AS total;", "1001"),
        ("quit", "Bye"),
    ] {
        prompt.send_line(line).expect(line);
        prompt.exp_string(answer).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    assert_eq!(routines(&schema), package.routines().count() as u64);
    works(&schema);
}

/// At the prompt and with --force, the client goes on after the error. Even a setup.sql with other options changes nothing.
fn setup_fails_if_the_table_exists_and_keeps_it(server: &Server) {
    let (schema, plain) = (server.schema(), package(|_| {}));
    schema.install(&plain);
    schema.run("CALL counter_setup('kept', 'mine', 3, 12)");
    let before = (definitions(&schema), schema.rows(&plain.options.table));
    for package in [&plain, &package(|options| options.subject.set_slots(20))] {
        let setup = schema.file(package, "setup.sql");
        let script = format!("SET sql_mode = 'ANSI_QUOTES';\n{setup}\nSELECT @@sql_mode;\n");
        for (option, mode) in [("--batch", ""), ("--force", "ANSI_QUOTES\n")] {
            let said = schema.client().pipe(&[option, "--skip-column-names"], &script);
            assert!(said.stderr.contains("1050") && said.stderr.contains("already exists"), "{option}: {said:?}");
            assert_eq!((said.success, &*said.stdout), (option == "--force", mode), "{said:?}");
            assert!((definitions(&schema), schema.rows(&plain.options.table)) == before, "{option}: {said:?}");
        }
    }
    works(&schema);
}

/// The routines with their bodies, the tables and the views.
fn definitions(schema: &Schema<'_>) -> Vec<(String, String)> {
    schema.query(
        "SELECT ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()
         UNION ALL SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1, 2",
    )
}

/// The two scripts create the same objects as setup.sql.
fn uninstall_keeps_the_table_for_the_routines_of_the_next_installation(server: &Server) {
    let (other, package) = (server.schema(), package(|_| {}));
    let schema = server.installed([&package]);
    for name in ["create_tables.sql", "create_procedures.sql"] {
        other.run(&other.file(&package, name));
    }
    let created = definitions(&schema);
    assert_eq!(definitions(&other), created);
    schema.run("CALL counter_setup('kept', NULL, 3, 12)");
    let before = schema.rows(&package.options.table);
    for _ in 0..2 {
        schema.run(&schema.file(&package, "uninstall.sql"));
        assert_eq!(definitions(&schema), [("counters".to_owned(), "BASE TABLE".to_owned())]);
    }
    schema.run(&schema.file(&package, "create_procedures.sql"));
    assert_eq!((definitions(&schema), schema.rows(&package.options.table)), (created, before));
    works(&schema);
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
    let statements: Vec<_> = plan(&package.clone().of_family(server.version.family), Task::Remove)
        .into_iter()
        .flat_map(|step| step.statements)
        .collect();
    assert!(statements.len() > 10, "{}", statements.len());
    for done in 0..=statements.len() {
        schema.run("CALL articles_views_increment(1)");
        run_all(&mut schema.connect(), &statements[..done]).expect("uninstall.sql");
        schema.run(&uninstall);
        let tables = ["articles", "articles_views"].map(|name| (name.to_owned(), "BASE TABLE".to_owned()));
        assert_eq!(definitions(&schema), tables, "after {done} statements");
        assert_eq!(schema.first::<usize>("SELECT views FROM articles"), done + 1, "after {done} statements");
        schema.run(&create);
    }
}

/// By the script, and by the commands. Without the CHECK, a take succeeds although a negative slot makes the total too small. A column that
/// is added in the place of a lost one would have 0 in all rows.
fn a_table_that_differs_is_rejected_before_any_change(server: &Server) {
    let records =
        keyed(|options| options.subject = records("url VARCHAR(50), id BIGINT UNSIGNED".parse().expect("a key")));
    let (counters, stock) = (package(|_| {}), bounded(|_| {}));
    let [dropped, other] = if server.is_mysql() {
        ["DROP CHECK CHK", "ALTER CHECK CHK NOT ENFORCED"]
    } else {
        ["DROP CONSTRAINT CHK", "DROP CONSTRAINT CHK, ADD CHECK (counter_id >= 0)"]
    };
    let weaker = format!("{dropped}, ADD CHECK (counter >= -5)");
    for (package, change) in [
        (&counters, "ENGINE = MyISAM"),
        (&counters, "MODIFY counter_name VARCHAR(100) CHARACTER SET latin1 NOT NULL"),
        (&counters, "MODIFY counter_name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"),
        (&counters, "MODIFY counter_name VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci NOT NULL"),
        (&counters, "MODIFY counter BIGINT NULL"),
        (&counters, "MODIFY counter_id BIGINT NOT NULL"),
        (&counters, "RENAME COLUMN counter TO cnt"),
        (&counters, "DROP COLUMN start_date"),
        (&counters, "DROP PRIMARY KEY, ADD PRIMARY KEY (counter_id, counter_name)"),
        (&counters, "ADD UNIQUE KEY one (description)"),
        (&records, "MODIFY id BIGINT NOT NULL"),
        (&records, "MODIFY `count` BIGINT NULL"),
        (&records, "RENAME COLUMN `count` TO cnt"),
        (&records, "DROP PRIMARY KEY, ADD PRIMARY KEY (id, url, slot)"),
        (&records, "DROP PRIMARY KEY, ADD PRIMARY KEY (url(3), id, slot)"),
        (&stock, dropped),
        (&stock, &weaker),
        (&stock, other),
    ] {
        let (schema, table) = (server.installed([package]), &package.options.table);
        let check = "SELECT MAX(CONSTRAINT_NAME) FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = DATABASE() AND CONSTRAINT_TYPE = 'CHECK'";
        let check = format!("`{}`", schema.first::<Option<String>>(check).unwrap_or_default());
        schema.run(&with_collation(server, &format!("ALTER TABLE {table} {}", change.replace("CHK", &check))));
        let status = ends(&schema, 1, "status");
        schema.run(&schema.file(package, "uninstall.sql"));
        // A client at its prompt goes on after the error. Nothing follows but the settings of the session.
        let script = schema.client().pipe(&["--force"], &schema.file(package, "create_procedures.sql")).stderr;
        assert!(script.contains("ERROR 30022") && script.matches("ERROR").count() == 1, "{change}: {script}");
        let install = ends(&schema, 2, &format!("install {}", package.options.arguments()));
        for said in [status, script, install] {
            has(&said, &["differs: source create_tables.sql, or compare it with SHOW CREATE TABLE"]);
            assert!(!said.contains("ADD "), "{change}: {said}");
        }
        assert_eq!(routines(&schema), 0, "{change}");
        assert_eq!(definitions(&schema).iter().filter(|(_, kind)| kind == "VIEW").count(), 0, "{change}");
    }
    let script = server.schema().client().pipe(&[], &server.schema().file(&counters, "create_procedures.sql"));
    assert!(!script.success && script.stderr.contains("ERROR 30022"), "no table: {script:?}");
}

/// With --force and at the prompt, the client goes on after an error. In MySQL, the procedure of the check stays.
fn a_script_that_rejects_a_table_creates_nothing_after_it(server: &Server) {
    let stamped = "id BIGINT PRIMARY KEY, views INT NOT NULL, changed TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP";
    for (columns, key, why) in [
        ("id BIGINT NOT NULL, KEY (id), views INT NOT NULL", "id BIGINT", "the key is not unique"),
        ("id BIGINT PRIMARY KEY, views DOUBLE", "id BIGINT", "the column is missing"),
        ("id INT PRIMARY KEY, views INT", "id BIGINT", "has another key"),
        (stamped, "id BIGINT", "each roll-up would change a column with ON UPDATE CURRENT_TIMESTAMP"),
    ] {
        let schema = server.schema();
        schema.run(&format!("CREATE TABLE articles ({columns}) ENGINE = InnoDB"));
        let package = of_column("articles.views", key, |_| {});
        for name in ["setup.sql", "create_procedures.sql"] {
            let file = schema.file(&package, name);
            let said = schema.client().pipe(&["--force"], &file);
            assert!(said.stderr.contains("ERROR 30022") && said.stderr.contains(why), "{name}, {why}: {said:?}");
            assert_eq!(said.stderr.matches("ERROR").count(), 1, "{name}, {why}: {said:?}");
            let (script, mut prompt) = prompt(&schema, &file);
            prompt.send_line(&format!("source {}", script.path().display())).expect("source");
            prompt.exp_string("30022").expect("a rejection");
            prompt.send_line("SELECT CONCAT('af', 'ter');").expect("a query");
            prompt.exp_string("after").expect("the prompt goes on");
            let all = "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() UNION ALL
                       SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1";
            let check = if server.is_mysql() { &["_articles_views_script"][..] } else { &[] };
            assert_eq!(schema.query::<String>(all), [check, &["articles"]].concat(), "{name}, {why}");
        }
    }
}

/// Calls that do not find their slot use slot 1.
fn counters_with_fewer_slots_than_the_routines_are_exact_and_get_the_others(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    schema.run("CALL counter_setup('few', 'five slots', NULL, 12); CALL counter_setup('gap', NULL, 64, 7)");
    schema.run("DELETE FROM counters WHERE counter_name = 'gap' AND counter_id = 3");
    let fixed = package(|options| options.subject.set_slots(20));
    let create = schema.file(&fixed, "create_procedures.sql");
    // The resize of one counter waits for no transaction of another one.
    schema.run("CALL counter_setup('other', NULL, 64, 0)");
    let _other =
        schema.after(&["START TRANSACTION", "UPDATE counters SET counter = counter + 1 WHERE counter_name = 'other'"]);
    let resize = "CALL counter_resize('few', NULL); CALL counter_resize('gap', NULL)";
    for (script, slots) in [(&create[..], "5,63,64"), (resize, "20,20,64"), (&create, "20,20,64"), (resize, "20,20,64")]
    {
        schema.run(script);
        for slot in 0..20 {
            schema.connect_with_id(slot, 20).query_drop("CALL counter_increment('few')").expect("an increment");
        }
        let counters = "SELECT GROUP_CONCAT(slots ORDER BY counter_name) FROM (SELECT counter_name, COUNT(*) AS slots FROM counters GROUP BY 1) AS list";
        assert_eq!(schema.first::<String>(counters), slots);
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
    for package in [package(as_slotted), of_column("pages.views", "id BIGINT", as_slotted)] {
        for name in ["setup.sql", "accounts.sql", "grants.sql", "accounts.sql", "create_procedures.sql", "grants.sql"] {
            schema.run(&schema.file(&package, name));
        }
    }
    schema.run("CALL counter_setup('a', NULL, 10, 42); CALL pages_views_add(7, 42); SET GLOBAL read_only = 1");
    // The administrator may write, but not by a routine.
    for (account, statement) in [
        ("app", "CALL counter_increment('a')"),
        ("dba", "CALL counter_reset('a', 0, FALSE)"),
        ("app", "CALL pages_views_increment(7)"),
        ("root", "CALL counter_increment('a')"),
    ] {
        let mut connection = Conn::new(schema.options().user(Some(account))).expect("a connection");
        assert_eq!(error_of(connection.query_drop(statement)).0, 1290, "{account}: {statement}");
    }
    assert_eq!(schema.first::<(i64, i64)>("SELECT counter_get('a'), pages_views_get(7)"), (42, 42));
    let locked = error_of(Conn::new(server.options().user(Some("slotted"))).map(|_| ()));
    assert!([3118, 4151].contains(&locked.0), "{locked:?}");
    schema.run("SET GLOBAL read_only = 0");
}

/// Restores under another name what an administrator has dumped, with the privileges that docs/operations.md names.
fn a_dump_is_restored_by_an_account_without_super(server: &Server) {
    // An account of the routines and log_bin_trust_function_creators are of the whole server.
    let server = server.another(&["--log-bin", "--server-id=1"]);
    let schema = Schema::named(&server, "app", "");
    schema.run("CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT NOT NULL); INSERT INTO pages VALUES (7, 0)");
    let package = of_column("pages.views", "id BIGINT", as_slotted);
    ["setup.sql", "accounts.sql"].iter().for_each(|name| schema.run(&schema.file(&package, name)));
    schema.run("CALL pages_views_add(7, 41); CALL pages_views_rollup(NULL); CALL pages_views_add(7, 1)");
    let socket = mysql::Opts::from(server.options()).get_socket().expect("a socket").to_owned();
    let mut dump = std::process::Command::new(server.dump());
    dump.args(["--no-defaults", "--user=root", "--single-transaction", "--routines", "--events"]);
    let dump =
        dump.args(["--loose-set-gtid-purged=OFF", "--socket", &socket, "app"]).output().expect("the program runs");
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));

    // A server on which the account of the routines does not exist.
    let restored = Schema::named(&server, "restored", "");
    let definer = match (server.is_mysql(), server.version.major, server.version.minor) {
        (false, ..) => "SET USER",
        (true, 8, 0..=1) => "SET_USER_ID",
        _ => "SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER",
    };
    schema.run(&format!(
        "DROP USER slotted@localhost; CREATE USER dba@localhost; GRANT ALL PRIVILEGES ON restored.* TO dba@localhost;
         GRANT {definer} ON *.* TO dba@localhost"
    ));
    let client = server.client_of(&server.options().user(Some("dba")).into(), "restored");
    let dump = String::from_utf8(dump.stdout).expect("text");
    // The client stops at the function, which precedes all procedures. With --force, the function alone is missing.
    let routines = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
    for (options, wanted) in [(&[][..], 0), (&["--force"], package.routines().count() - 1)] {
        let said = client.pipe(options, &dump);
        assert!(said.stderr.contains("ERROR 1419"), "{said:?}");
        assert_eq!(restored.first::<usize>(routines), wanted, "{options:?}");
    }
    schema.run("SET GLOBAL log_bin_trust_function_creators = ON");
    let said = client.pipe(&[], &dump);
    assert!(said.success, "{said:?}");
    let error = error_of(restored.connect().query_drop("CALL pages_views_increment(7)"));
    assert_eq!(error.0, 1449, "{error:?}");
    restored.run(&schema.file(&package, "accounts.sql"));
    restored.run("CALL pages_views_increment(7); CALL pages_views_rollup(NULL)");
    assert_eq!(restored.first::<(i64, i64)>("SELECT pages_views_get(7), views FROM pages"), (43, 43));
}

/// The packages of the folder `generated/` of a family, and one of a column.
fn packages(family: Family) -> Vec<Package> {
    let of_column = of_column("articles.views", "id BIGINT", |_| {}).of_family(family);
    committed().into_iter().filter(|package| package.options.family == family).chain([of_column]).collect()
}

/// At the prompt, where the client goes on after an error.
fn scripts_of_the_other_family_change_nothing(server: &Server) {
    let schema = server.schema();
    schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB");
    for package in packages(if server.is_mysql() { Family::Mariadb } else { Family::Mysql }) {
        schema.run(&schema.file(&package, "create_tables.sql"));
        let before = definitions(&schema);
        let names = ["setup.sql", "create_procedures.sql", "uninstall.sql"];
        // Only a package of a column has statements of its family in uninstall.sql.
        let names = &names[..if package.options.column().is_some() { 3 } else { 2 }];
        for File { name, text } in render::files(&package).into_iter().filter(|file| names.contains(&file.name)) {
            let script = format!("SET sql_mode = 'ANSI_QUOTES';\n{text}\nSELECT @@sql_mode;\n");
            // setup.sql has a delimiter after each statement. It replaces nothing, but the prompt of a client would go on.
            let (option, mode) = if name == "setup.sql" { ("--batch", "") } else { ("--force", "ANSI_QUOTES\n") };
            let said = schema.client().pipe(&[option, "--skip-column-names"], &script);
            // The errors are those of the first SET, and of the last one, which finds no settings to restore.
            let errors = said.stderr.matches("ERROR").count();
            assert!(said.stderr.contains("ERROR 1193") && errors <= 2, "{name}: {said:?}");
            assert!(definitions(&schema) == before && said.stdout == mode, "{name}: {said:?}");
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
    assert_eq!((error.0, schema.first::<i64>("SELECT counter_get('a')")), (1142, 41), "{error:?}");
    schema.run(&grants(&schema, &package));
    app.connect().query_drop("CALL counter_increment('a')").expect("an increment");
    assert_eq!(schema.first::<i64>("SELECT counter_get('a')"), 42);
}

/// MySQL rejects CREATE FUNCTION from an account without SUPER, if the binary log is on.
fn without_the_function_that_the_server_rejects_all_the_rest_is_installed(server: &Server) {
    let schema = server.schema();
    let account = Account::new(&schema, "a", "ALL");
    let [with, without] = [true, false].map(|function| package(|options| options.function = function));
    let run = |package: &Package, name: &str| source(&mut account.connect(), &schema.file(package, name));
    assert_eq!(error_of(run(&with, "setup.sql")).0, 1419);
    assert_eq!(routines(&schema), without.routines().count() as u64);
    schema.run("CALL counter_setup('a', NULL, NULL, 41); CALL counter_increment('a')");
    assert_eq!(schema.first::<i64>("SELECT total FROM counter_totals"), 42);
    run(&without, "create_procedures.sql").expect("no statement is rejected");
    // A function that an administrator has created stays.
    let function = "FUNCTION counter_get() RETURNS INT DETERMINISTIC RETURN 7";
    schema.run(&format!("CREATE DEFINER = '{}'@'%' {function}", account.name));
    assert_eq!(error_of(run(&with, "create_procedures.sql")).0, 1419);
    assert_eq!((routines(&schema), schema.first("SELECT counter_get()")), (with.routines().count() as u64, 7));
}

/// The manual is the COMMENT of a routine. Libraries of typed languages read the type of a column from the server.
fn the_example_of_each_manual_runs_and_totals_are_integers(server: &Server) {
    for package in packages(server.version.family) {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT UNSIGNED) ENGINE = InnoDB; INSERT INTO articles VALUES (123, 0)");
        schema.install(&package);
        let totals = "SELECT TABLE_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND COLUMN_NAME = 'total'";
        assert_eq!(schema.query::<(String, String)>(totals), [(package.totals.name().to_owned(), "bigint".to_owned())]);
        let is_described = |(routine, _): &(Routine, _)| !routine.is_private() && *routine != Routine::Drop;
        for (routine, name) in package.routines().filter(is_described) {
            let of_routine = format!("ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME = '{}'", name.name());
            let manual = format!("SELECT ROUTINE_COMMENT FROM information_schema.ROUTINES WHERE {of_routine}");
            let manual: String = schema.first(&manual);
            has(&manual, &["\nParameters: ", "\nErrors: ", "\nExample: "]);
            let (_, example) = manual.rsplit_once("\nExample: ").expect("an example");
            // Each example except that of setup needs an existing counter.
            schema.run(&format!("DELETE FROM {}", package.options.table));
            if package.options.is_named() && routine != Routine::Setup {
                let setup = package.routine(Routine::Setup).expect("a routine");
                for name in ["downloads", "seats"] {
                    schema.run(&format!("CALL {setup}('{name}', NULL, NULL, 10)"));
                }
            }
            schema.connect().query_drop(example).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
}
