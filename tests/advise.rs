//! `slotted advise` names what sessions wait for, and its recommendation ends the waits.

use std::process::Stdio;

use serde_json::Value;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        // On MariaDB, a second reader of INNODB_TRX sees old waits.
        .alone()
        .on_servers(a_hot_counter_needs_more_slots_and_then_no_session_waits)
        .on_families(a_hot_record_needs_a_package_with_more_slots)
        .on_families(several_counters_with_few_waits_are_not_the_counter_of_this_name)
        .on_servers(a_hot_row_is_counted_by_slots_or_left_to_a_person)
        .on_families(an_account_sees_its_part_and_the_grant_for_the_rest)
        .on_families(what_is_planted_is_not_executed_and_its_control_characters_are_escaped);
}

/// The number of sessions that increment a hot counter, and the duration of their transactions.
const SESSIONS: usize = 24;
const HOLD: Duration = Duration::from_millis(20);

/// The exit code and the JSON object of an observation.
fn advised(url: &str) -> (Option<i32>, Value) {
    let output = slotted(&["advise", "--url", url, "--seconds", "2", "--json"]).output().expect("slotted runs");
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|error| panic!("{error}: {}", printed(&output))))
}

/// What is said about a table that sessions wait for.
fn of<'a>(report: &'a Value, table: &str) -> &'a Value {
    let found = report["advice"].as_array().expect("a list").iter().find(|one| one["table"] == table);
    found.unwrap_or_else(|| panic!("{table}: {report:#}"))
}

/// Runs `work` while each statement of `load` is executed by its number of sessions, in transactions of [`HOLD`].
fn under_load<T>(schema: &Schema<'_>, load: &[(&str, usize)], work: impl FnOnce() -> T) -> T {
    let statements: Vec<_> = load.iter().flat_map(|(statement, sessions)| vec![*statement; *sessions]).collect();
    let session = |connection: &mut Conn, number: usize| {
        let begun = run_all(connection, &["START TRANSACTION", statements[number]]);
        thread::sleep(HOLD);
        run(connection, if begun.is_ok() { "COMMIT" } else { "ROLLBACK" });
        let _ = begun.map_err(repeatable);
    };
    beside(statements.iter().map(|_| schema.connect()), session, || {
        thread::sleep(Duration::from_millis(300));
        work()
    })
}

fn a_hot_counter_needs_more_slots_and_then_no_session_waits(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    schema.run("CALL counter_setup('it''s hot', NULL, 2, 0); CALL counter_setup('calm', NULL, 8, 0)");
    // MySQL does not refresh INNODB_TRX for a monitor that reads it more often than ten times a second, nor for other sessions.
    let readers = if server.is_mysql() { 2 } else { 0 };
    let load = [
        ("CALL counter_increment('it''s hot')", SESSIONS),
        ("CALL counter_increment('calm')", 1),
        ("SELECT COUNT(*) FROM information_schema.INNODB_TRX", readers),
    ];
    let observe = || under_load(&schema, &load, || advised(&schema.url()));
    let (code, report) = observe();
    assert_eq!((code, report["advice"].as_array().map(Vec::len)), (Some(1), Some(1)), "{report:#}");
    let hot = of(&report, "counters");
    assert!(hot["waiting"].as_f64() > Some(15.0) && report["waiting"].as_f64() > Some(15.0), "{report:#}");
    assert!(hot["statement"].as_str().expect("text").contains("counter") && hot["key"] == "'it''s hot'", "{hot}");
    let sentence = hot["sentence"].as_str().expect("text");
    assert!(
        sentence.contains("instead of 2 (4 for each of ")
            && sentence
                .ends_with(" prime): if slotted status finds no difference, call, as the owner of the database,"),
        "{hot}"
    );
    schema.run(hot["run"].as_str().expect("a statement"));
    let slots: u32 = schema.first("SELECT COUNT(*) FROM counters WHERE counter_name = 'it''s hot'");
    assert!(slots >= 89 && sentence.starts_with(&format!("{slots} slots")), "{slots}: {hot}");
    // Other work on the machine disturbs a measurement.
    let disturbed: Vec<_> = (0..5).map(|_| observe()).take_while(|(code, _)| *code != Some(0)).collect();
    assert!(disturbed.len() < 5, "{disturbed:#?}");
}

fn a_hot_record_needs_a_package_with_more_slots(server: &Server) {
    let schema = server.installed([&keyed(|options| options.subject.set_slots(2))]);
    let load = [("CALL slotted_counter_increment(1, 2)", SESSIONS)];
    let (_, report) = under_load(&schema, &load, || advised(&schema.url()));
    let hot = of(&report, "slotted_counters");
    let [key, sentence, run] = ["key", "sentence", "run"].map(|name| hot[name].as_str().expect("text"));
    assert!(key == "1, 2" && sentence.ends_with(": install them as the owner of the database with"), "{hot}");
    let installs = run.starts_with("slotted install slotted_counters --slots ");
    assert!(installs && run.ends_with(&format!(" --database {}", schema.name)), "{hot}");
    let slots: usize = run.split(' ').find_map(|word| word.parse().ok()).expect("a number");
    // Some sessions are between two transactions, so that the number of sessions is a few too low.
    let needed = 4 * SESSIONS;
    assert!((needed / 2..=needed + 1).contains(&slots), "{hot}");
}

/// Each counter has a wait now and then.
fn several_counters_with_few_waits_are_not_the_counter_of_this_name(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    schema.run("CALL counter_setup('several rows', NULL, 2, 0)");
    (0..100).for_each(|number| schema.run(&format!("CALL counter_setup('{number}', NULL, 1, 0)")));
    let load = [("CALL counter_increment(FLOOR(RAND() * 100))", SESSIONS)];
    let (_, report) = under_load(&schema, &load, || advised(&schema.url()));
    let several = of(&report, "counters");
    let left = several["sentence"].as_str().is_some_and(|sentence| sentence.starts_with("look at it: "));
    assert!(several["key"] == "several rows" && several["run"].is_null() && left, "{several}");
}

fn a_hot_row_is_counted_by_slots_or_left_to_a_person(server: &Server) {
    let schema = server.schema();
    for table in ["pages", "stock", "pair", "loose"] {
        schema.run(&format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, qty BIGINT NOT NULL, b INT NOT NULL) ENGINE = InnoDB;
             INSERT INTO {table} VALUES (7, 1000000, 0)"
        ));
    }
    // Its hot row has no key.
    schema.run("ALTER TABLE loose DROP PRIMARY KEY, ADD KEY (id)");
    let load = [
        ("UPDATE pages SET qty = (pages.qty + 1) WHERE pages.id = 7", 8),
        ("UPDATE stock SET qty = qty - 2 WHERE id = 7 AND qty >= 2", 6),
        ("UPDATE pair SET qty = qty + 1, b = 1 WHERE id = 7", 6),
        ("UPDATE loose SET qty = qty + 1 WHERE id = 7", 6),
        // MySQL does not list the waits meanwhile (3854).
        ("DO SLEEP(0.02) /* \u{1f600} */", 1),
    ];
    let (code, report) = under_load(&schema, &load, || advised(&schema.url()));
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(report["advice"][0]["table"], "pages", "the most waiting sessions come first: {report:#}");
    let install = format!("slotted install --database {} --column pages.qty", schema.name);
    for (table, (statement, _)) in ["pages", "stock", "pair", "loose"].into_iter().zip(load) {
        let (row, counted) = (of(&report, table), table == "pages");
        assert_eq!((&row["statement"], row["run"].as_str()), (&statement.into(), counted.then_some(&*install)));
        let left = row["sentence"].as_str().expect("text").starts_with("look at it: docs/columns.md ");
        assert_eq!(left, !counted, "{row}");
    }
    let arguments: Vec<_> = install.split(' ').skip(1).collect();
    exits(&mut slotted(&[&arguments[..], &["--url", &server.url()]].concat()), 0);
}

/// An account that knows nothing of the table, or the table and not that it belongs to a package.
fn an_account_sees_its_part_and_the_grant_for_the_rest(server: &Server) {
    ["USAGE", "SELECT", "EVENT"].iter().for_each(|known| grants_for(server, known));
}

fn grants_for(server: &Server, known: &str) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let account = Account::new(&schema, "a", known);
    let url = server.url_of(&account.name, None);
    schema.run("CREATE TABLE pages (id INT PRIMARY KEY, hits INT NOT NULL); INSERT INTO pages VALUES (7, 0)");
    let said = exits(&mut slotted(&["advise", "--seconds", "0.1", "--url", &url]), 2);
    assert!(!said.contains("needs a change") && said.contains("GRANT PROCESS ON *.*"), "{said}");
    under_load(&schema, &[("UPDATE pages SET hits = hits + 1 WHERE id = 7", 8)], || {
        // The account gets what the report says, and nothing else.
        // A row of an account that has wildcards is not extended, but its privileges are granted on this database.
        let more = if known == "EVENT" { ", EVENT" } else { "" };
        let place = schema.name.replace('_', "\\_");
        for grant in ["GRANT PROCESS ON *.*", &format!("GRANT SELECT, SHOW VIEW{more} ON `{place}`"), ""] {
            let (code, report) = advised(&url);
            assert!(report["waiting"].as_f64() > Some(1.0), "{report:#}");
            let row = report["advice"].as_array().expect("a list").iter().find(|row| row["database"] == *schema.name);
            let seen = (row.is_some(), row.is_some_and(|row| row["run"].is_string()));
            assert_eq!(seen, (!grant.contains("PROCESS"), grant.is_empty()), "{report:#}");
            // Without --database, the rows of other promises are in the report.
            let mut unseen = report["cannot_see"].as_object().expect("an object").iter();
            let own = unseen.find(|(what, _)| !what.starts_with("the table") || what.contains(&schema.name));
            let remedy = own.map_or("", |(_, remedy)| remedy.as_str().expect("text"));
            assert_eq!((remedy.is_empty(), remedy.starts_with(grant)), (grant.is_empty(), true), "{report:#}");
            assert!(grant.is_empty() || code == Some(2), "{report:#}");
            schema.run(remedy);
        }
    });
}

/// A function is planted in a view that looks like that of a package, in a name, in a key and in the statements of a session.
fn what_is_planted_is_not_executed_and_its_control_characters_are_escaped(server: &Server) {
    let schema = server.installed([&package(|_| {})]);
    let (executed, shown) =
        if server.is_mysql() { ("\u{1b}[2J", "\\u001b[2J") } else { ("\u{202e}\u{61c}", "\\u202e\\u061c") };
    let name = format!("x'' OR planted() OR ''{executed}");
    schema.run(&format!(
        "CREATE TABLE executed (id INT);
         CREATE TABLE `pa``.``ges` (name VARCHAR(60) PRIMARY KEY, hits INT NOT NULL) CHARACTER SET utf8mb4;
         INSERT INTO `pa``.``ges` VALUES ('{name}', 0);
         CALL counter_setup('{name}', NULL, 2, 0);
         DELIMITER //
         CREATE FUNCTION planted() RETURNS INT DETERMINISTIC BEGIN INSERT INTO executed VALUES (1); RETURN 7; END//
         DELIMITER ;
         CREATE VIEW zz_package AS SELECT planted() AS version, 'counters' AS package, '' AS key_columns, planted() AS default_slots,
           'pa`.`ges' AS table_name, 'zz_' AS prefix, 'counters --slots planted()' AS arguments"
    ));
    let call = format!("CALL counter_increment('{name}')");
    let update = format!("UPDATE `pa``.``ges` SET hits = hits + 1 WHERE name = '{name}'");
    let url = schema.url();
    let (text, report) = under_load(&schema, &[(&call, 8), (&update, 8)], || {
        (exits(&mut slotted(&["advise", "--url", &url, "--seconds", "1"]), 1), advised(&url).1)
    });
    assert!(text.contains(shown) && text.contains("counter_resize`(_utf8mb4 X'"), "{text}");
    assert!(text.contains(&format!("{}.pa`.`ges ('x'' OR planted()", schema.name)), "{text}");
    let (row, counter) = (of(&report, "pa`.`ges"), of(&report, "counters"));
    assert_eq!([&row["key"], &counter["key"]], [&format!("'{name}'"); 2], "{report:#}");
    assert!(row["run"].as_str().is_some_and(|run| run.ends_with("--column '`pa``.``ges`.hits'")), "{row}");
    schema.run(counter["run"].as_str().expect("a statement"));
    assert!(schema.first::<u32>("SELECT COUNT(*) FROM counters") >= 29, "{counter}");
    // Before the command ends, the owner puts a view in the place of a table that sessions have waited for.
    let mut command = slotted(&["advise", "--url", &url, "--seconds", "5"]);
    let watching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("slotted runs");
    let slot = format!("UPDATE counters SET counter = counter + 1 WHERE counter_name = '{name}' AND counter_id = 1");
    under_load(&schema, &[(&slot, 8)], || thread::sleep(Duration::from_secs(2)));
    schema.run("RENAME TABLE counters TO hidden; CREATE SQL SECURITY INVOKER VIEW counters AS SELECT * FROM hidden WHERE planted()");
    let output = watching.wait_with_output().expect("the end");
    assert!(printed(&output).contains(".counters ('x'' OR planted()"), "{}", printed(&output));
    assert_eq!(schema.first::<u32>("SELECT COUNT(*) FROM executed"), 0);
}
