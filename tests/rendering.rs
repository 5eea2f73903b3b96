//! What is rendered: always the same, within the budgets of a review, and within the rules that the servers impose.

use std::collections::{BTreeMap, BTreeSet};

use mysql::prelude::Queryable;
use slotted::package::{Family, Package, Pick, Security, Slots, SqlStr, committed};
use slotted::render::{self, Format};
use slotted::script;

use crate::rollup::of_column;
use crate::support::{Module, Server, bounded, error_of, keyed, package, root};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(the_same_options_give_the_same_bytes)
        .plain(chosen_variants_are_as_reviewed)
        .plain(an_option_changes_only_its_own_words)
        .plain(a_random_slot_changes_only_the_lines_that_select_it)
        .plain(a_package_is_short_enough_to_be_reviewed)
        .plain(a_manual_has_at_most_15_lines_of_at_most_120_characters)
        .plain(the_numbers_of_errors_are_those_of_the_reference)
        .plain(a_manual_lists_the_numbers_that_its_routine_can_signal)
        .plain(sql_for_one_server_has_no_words_for_the_other)
        .plain(no_text_depends_on_the_meaning_of_a_backslash)
        .plain(no_routine_does_what_a_routine_must_not)
        .plain(no_statement_but_that_of_a_rollup_updates_several_tables)
        .plain(a_private_routine_comes_before_its_callers_and_says_that_it_is_private)
        .plain(scripts_need_no_client_command_but_delimiter)
        .on_servers(a_script_of_the_other_family_fails_at_its_first_statement);
}

/// Variants that together use every option, and that a reviewer can read as a whole.
fn chosen() -> Vec<(&'static str, Package)> {
    vec![
        (
            "counters_with_options",
            package(|o| {
                (o.slots, o.pick) = (Slots::Fixed(64), Pick::Random);
                (o.table, o.prefix) = ("hits$".parse().expect("a table"), "hit_".parse().expect("a prefix"));
                o.security = Security::Invoker;
                o.collation = "utf8mb4_bin".parse().ok();
                o.cluster = true;
            }),
        ),
        (
            "a_column",
            of_column("repositories.`download count`", "site BINARY(2), url VARCHAR(255)", |o| {
                (o.table, o.prefix) = ("downloads".parse().expect("a table"), "download_".parse().expect("a prefix"));
                o.keep = "`seen at`".parse().expect("a column");
                o.definer = Some("my counters@localhost".parse().expect("an account"));
                o.family = Family::Mariadb;
                o.slots = Slots::Fixed(7);
                o.function = false;
            }),
        ),
    ]
}

/// The committed packages, one of a column, and those of a cluster, for both families.
fn packages() -> Vec<Package> {
    let mut packages = committed();
    for family in [Family::Mysql, Family::Mariadb] {
        let more = [
            of_column("articles.views", "id BIGINT", |_| {}),
            package(|o| o.cluster = true),
            package(|o| (o.cluster, o.slots) = (true, Slots::Fixed(20))),
            keyed(|o| o.cluster = true),
        ];
        packages.extend(more.map(|package| package.of_family(family)));
    }
    packages
}

/// A routine as a script creates it.
struct Created {
    name: String,
    /// Up to the COMMENT.
    head: String,
    manual: String,
    /// The statement, or the lines between BEGIN and END.
    body: String,
}

/// The routines of a package in the order of setup.sql.
fn created(package: &Package) -> Vec<Created> {
    let statements = script::statements(&render::setup(package));
    statements.iter().filter_map(|statement| Created::of(statement)).collect()
}

impl Created {
    /// None for another statement. A quote in a COMMENT is doubled.
    fn of(statement: &str) -> Option<Self> {
        let (head, rest) = statement.split_once("\n  COMMENT '")?;
        let text = rest.replace("''", "\0\0");
        let end = text.find('\'').expect("the end of the COMMENT");
        let body = rest[end + 1..].trim();
        let block = body.strip_prefix("BEGIN\n").and_then(|body| body.strip_suffix("\nEND"));
        Some(Self {
            name: head.split('`').nth(if head.contains("DEFINER =") { 5 } else { 1 }).expect("a name").to_owned(),
            head: head.to_owned(),
            manual: rest[..end].replace("''", "'"),
            body: block.unwrap_or(body).to_owned(),
        })
    }

    /// The body without comments and strings.
    fn code(&self) -> String {
        let lines = self.body.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code));
        // Every other piece between apostrophes is a string.
        lines.collect::<Vec<_>>().join("\n").split('\'').step_by(2).collect::<Vec<_>>().join("''")
    }

    fn is_private(&self) -> bool {
        self.name.starts_with('_')
    }
}

fn the_same_options_give_the_same_bytes() {
    for (name, package) in chosen() {
        assert_eq!(render::files(&package), render::files(&package.clone()), "{name}");
    }
}

fn chosen_variants_are_as_reviewed() {
    for (name, package) in chosen() {
        // The other files are parts of setup.sql.
        let files = render::files(&package).into_iter().filter(|file| !file.name.starts_with("create_"));
        let text: String = files.map(|file| format!("==> {} <==\n{}\n", file.name, file.text)).collect();
        insta::assert_snapshot!(name, text);
    }
}

/// setup.sql without the options in its banner and in the view.
fn text(package: &Package) -> String {
    let setup = render::setup(package);
    let (_, text) = setup.split_once('\n').expect("a banner");
    text.replace(&SqlStr(package.options.arguments()).to_string(), "arguments")
}

fn an_option_changes_only_its_own_words() {
    let default = text(&package(|_| {}));
    for (option, package, word, replacement) in [
        ("--security", package(|o| o.security = Security::Invoker), "SECURITY DEFINER", "SECURITY INVOKER"),
        ("--collation", package(|o| o.collation = "utf8mb4_bin".parse().ok()), "utf8mb4_0900_ai_ci", "utf8mb4_bin"),
        ("--table", package(|o| o.table = "page_hits".parse().expect("a table")), "`counters`", "`page_hits`"),
    ] {
        assert!(default.contains(word), "{option}: {word}");
        let (expected, text) = (default.replace(word, replacement), text(&package));
        let first = text.lines().zip(expected.lines()).find(|(one, other)| one != other);
        assert!(text == expected, "{option} also changes: {first:#?}");
    }
    let without = text(&package(|o| o.function = false));
    let (before, rest) = default.split_once(";;\n\n-- Without SUPER").expect("the function is the last");
    let (_, after) = rest.split_once(";;\n").expect("the end of the script");
    assert!(without == format!("{before};;\n{after}"), "--no-function changes more");
}

/// RAND() in a WHERE is evaluated for each row, and would read or change any number of slots.
fn a_random_slot_changes_only_the_lines_that_select_it() {
    let random = |slots| text(&package(|o| (o.slots, o.pick) = (slots, Pick::Random)));
    let per_counter = text(&package(|_| {}))
        .replace("SELECT 1 + MOD(CONNECTION_ID(), MAX(counter_id))", "SELECT MAX(counter_id)")
        .replace(
            "   WHERE counter_name = p_counter_name;\n  UPDATE `counters`\n",
            "   WHERE counter_name = p_counter_name;\n  SET v_slot = 1 + FLOOR(RAND() * v_slot);\n  UPDATE `counters`\n",
        );
    assert_eq!(random(Slots::PerCounter), per_counter);
    let fixed = text(&package(|o| o.slots = Slots::Fixed(20)))
        .replace("BEGIN\n  UPDATE `counters`\n     SET counter = counter +", "BEGIN\n  DECLARE v_slot INT;\n\n  SET v_slot = 1 + FLOOR(RAND() * 20);\n  UPDATE `counters`\n     SET counter = counter +")
        .replace("counter_id = 1 + MOD(CONNECTION_ID(), 20)", "counter_id = v_slot");
    assert_eq!(random(Slots::Fixed(20)), fixed);
    let records = |pick| text(&keyed(|o| o.pick = pick));
    assert_eq!(records(Pick::Random), records(Pick::Connection).replace("MOD(CONNECTION_ID(), 521)", "FLOOR(RAND() * 521)"));
}

/// What a DBA reviews in an hour.
fn a_package_is_short_enough_to_be_reviewed() {
    let mut of_family = BTreeMap::new();
    for package in packages().into_iter().filter(|package| !package.options.cluster) {
        let (name, column) = (package.folder(), package.options.column.is_some());
        let most = match package.name() {
            "slotted_counters" if column => 420,
            "slotted_counters" => 260,
            "counters" => 380,
            "counters-fixed" => 360,
            _ => 560,
        };
        let lines = render::setup(&package).lines().count();
        assert!(lines <= most, "{name}: setup.sql has {lines} lines");
        if !column {
            let files = render::files(&package);
            *of_family.entry(package.options.family.slug()).or_insert(0) += files.iter().map(|file| file.text.lines().count()).sum::<usize>();
        }
        let routines = created(&package);
        let mut bodies: Vec<_> = routines.iter().map(|routine| routine.body.lines().count()).collect();
        bodies.sort_unstable();
        assert!(bodies[bodies.len() / 2] <= 12, "{name}: {bodies:?}");
        assert!(bodies.iter().all(|lines| *lines <= 100) && bodies.iter().filter(|lines| **lines > 60).count() <= 2, "{name}: {bodies:?}");
        let mut in_routines: BTreeMap<&str, usize> = BTreeMap::new();
        for routine in &routines {
            for line in routine.body.lines().map(str::trim).collect::<BTreeSet<_>>() {
                *in_routines.entry(line).or_default() += 1;
            }
        }
        let repeated = in_routines.values().filter(|routines| **routines > 3).count();
        assert!(repeated <= 25, "{name}: {repeated} lines are in more than three routines");
    }
    assert!(of_family.values().all(|lines| *lines <= 3600) && of_family.len() == 2, "{of_family:?}");
}

fn a_manual_has_at_most_15_lines_of_at_most_120_characters() {
    for package in packages() {
        for routine in created(&package) {
            let most = if routine.is_private() { 2 } else { 15 };
            let lines: Vec<_> = routine.manual.lines().collect();
            assert!(lines.len() <= most, "{} of {} has {} lines", routine.name, package.folder(), lines.len());
            let long = lines.iter().find(|line| line.len() > 120);
            assert_eq!(long, None, "{} of {}", routine.name, package.folder());
        }
    }
}

/// The numbers of errors in a text: five digits from 30001 to 30099.
fn numbers(text: &str) -> BTreeSet<u32> {
    let words = text.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).filter(|number| (30001..=30099).contains(number)).collect()
}

/// The number of an error and the words of its message do not change within a major version: an application whose driver has only the text
/// compares them.
fn the_numbers_of_errors_are_those_of_the_reference() {
    let page = std::fs::read_to_string(root().join("docs/reference.md")).expect("the page");
    let (_, rows) = page.split_once("| number | message | what to do |\n|---|---|---|\n").expect("the table");
    let rows: BTreeMap<u32, &str> = rows
        .lines()
        .take_while(|row| row.starts_with('|'))
        .map(|row| {
            let cells: Vec<_> = row.split(" | ").collect();
            (cells[0].trim_start_matches("| ").parse().expect("a number"), cells[1])
        })
        .collect();
    let scripts = packages().into_iter().flat_map(|package| [render::setup(&package), render::file(&package, "create_procedures.sql")]);
    let scripts = scripts.collect::<Vec<_>>().concat();
    assert_eq!(numbers(&scripts), rows.keys().copied().collect(), "docs/reference.md, Errors");
    // 30021 and 30022 have several messages.
    for (number, message) in rows.into_iter().filter(|(number, _)| *number < 30020) {
        let signals = [format!("fail`({number},"), format!("MYSQL_ERRNO = {number},")];
        let signal = |begin: &String| scripts.split(begin.as_str()).skip(1).map(|rest| rest.split(";\n").next().unwrap_or_default()).collect::<Vec<_>>();
        let texts = signals.iter().flat_map(signal).collect::<Vec<_>>().concat();
        // Words in capital letters are values of the call.
        let is_value = |word: &&str| word.chars().any(char::is_uppercase) && !word.chars().any(char::is_lowercase);
        let words: Vec<_> = message.split(' ').collect();
        for part in words.split(|word| is_value(word)).map(|part| part.join(" ")) {
            assert!(texts.contains(part.trim_matches([',', ':'])), "{number}: '{part}' is in none of {texts}");
        }
    }
}

fn a_manual_lists_the_numbers_that_its_routine_can_signal() {
    for package in packages() {
        let routines = created(&package);
        let mut can: BTreeMap<&str, BTreeSet<u32>> = routines.iter().map(|routine| (&routine.name[..], numbers(&routine.body))).collect();
        // A routine calls others, which call others.
        for _ in 0..3 {
            for routine in &routines {
                let called = can.iter().filter(|(name, _)| routine.body.contains(&format!("CALL `{name}`(")));
                let called: Vec<u32> = called.flat_map(|(_, numbers)| numbers).copied().collect();
                can.get_mut(&routine.name[..]).expect("it is there").extend(called);
            }
        }
        for routine in routines.iter().filter(|routine| !routine.is_private() && !routine.manual.starts_with("The same as")) {
            let manual = routine.manual.split_once("\nErrors: ").expect("the errors").1;
            let mut can = can[&routine.name[..]].clone();
            if routine.name.ends_with("_add") {
                // Of a bounded counter, it takes an amount that is at least 1.
                can.remove(&30017);
            }
            assert_eq!(numbers(manual), can, "{} of {}: {}", routine.name, package.folder(), package.options.arguments());
        }
    }
}

fn sql_for_one_server_has_no_words_for_the_other() {
    for package in packages() {
        let mariadb = package.options.mariadb();
        for file in render::files(&package) {
            let name = format!("{} of {}", file.name, package.folder());
            assert!(!file.text.contains("/*!") && !file.text.contains("/*M!"), "{name}");
            let others: &[&str] = if mariadb {
                &["server_uuid", "performance_schema", "SET_VAR"]
            } else {
                &["OR REPLACE PROCEDURE", "SET STATEMENT", "NOT ATOMIC", "innodb_snapshot_isolation,", "SET_VAR"]
            };
            let other = others.iter().find(|word| file.text.contains(**word));
            assert_eq!(other, None, "{name}");
        }
    }
    // The routines of counters are the same, apart from the settings of a statement.
    let [mysql, mariadb] = [Family::Mysql, Family::Mariadb].map(|family| created(&package(|_| {}).of_family(family)));
    for (mysql, mariadb) in mysql.iter().zip(&mariadb) {
        let code = mariadb.code().lines().filter(|line| !line.contains("SET STATEMENT")).collect::<Vec<_>>().join("\n");
        assert_eq!(mysql.code(), code, "{}", mysql.name);
    }
}

fn no_text_depends_on_the_meaning_of_a_backslash() {
    let quoted = package(|o| o.definer = Some("it's `my` \"account\"@%".parse().expect("an account")));
    for package in packages().into_iter().chain(chosen().into_iter().map(|(_, package)| package)).chain([quoted]) {
        for format in [Format::Client, Format::Plain] {
            for file in render::files_of(&package, format) {
                let line = file.text.lines().find(|line| line.contains('\\'));
                assert_eq!(line, None, "{} of {}", file.name, package.options.arguments());
            }
        }
    }
}

fn no_routine_does_what_a_routine_must_not() {
    let variants = packages().into_iter().chain(chosen().into_iter().map(|(_, package)| package));
    for routine in variants.flat_map(|package| created(&package)) {
        // A savepoint tells whether there is a transaction.
        let code = routine.code().replace("ROLLBACK TO SAVEPOINT", "").replace("RELEASE SAVEPOINT", "").replace("READ COMMITTED", "");
        for forbidden in ["START TRANSACTION", "COMMIT", "ROLLBACK", "GET_LOCK", "PREPARE", "EXECUTE", "TRUNCATE", "TEMPORARY", "SQLEXCEPTION", "CREATE ", "DROP ", "ALTER "] {
            assert!(!code.contains(forbidden), "{forbidden} in {}:\n{code}", routine.name);
        }
        // Session variables: only the server's own, which begin with two.
        assert!(!code.replace("@@", "").contains('@'), "{code}");
        // So that they hide no column.
        let declared = code.split("DECLARE ").skip(1).filter(|declared| !declared.lines().next().is_some_and(|line| line.contains("HANDLER") || line.contains("CURSOR")));
        for declared in declared {
            assert!(declared.trim_start_matches('`').starts_with("v_"), "{declared}");
        }
        for argument in routine.head.lines().filter_map(|line| line.trim_start().strip_prefix("IN ").or(line.trim_start().strip_prefix("OUT "))) {
            assert!(argument.trim_start_matches('`').starts_with("p_"), "{argument}");
        }
        // No result set: every SELECT that is a statement fills a variable.
        for statement in code.split(';') {
            let begin = ["THEN\n", "BEGIN\n", "ELSE\n", "REPEAT\n", "LOOP\n", "DO\n", "OFF FOR\n"].iter();
            let begin = begin.filter_map(|word| statement.rfind(word).map(|at| at + word.len())).max();
            let statement = statement[begin.unwrap_or(0)..].trim();
            assert!(!statement.starts_with("SELECT") || statement.contains("INTO v_") || statement.contains("INTO p_"), "{}: {statement}", routine.name);
        }
    }
}

/// On MariaDB, an UPDATE of several tables that waits while a table with triggers is renamed ends the server. A roll-up has one
/// for the table of its column.
fn no_statement_but_that_of_a_rollup_updates_several_tables() {
    let mut updates = 0;
    for package in packages().into_iter().filter(|package| package.options.column.is_none()) {
        for file in render::files(&package) {
            let lines: Vec<_> = file.text.lines().map(str::trim_start).collect();
            for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("UPDATE ")) {
                assert_eq!(*line, format!("UPDATE {}", package.options.table), "{}", file.name);
                assert!(lines[at + 1].starts_with("SET "), "{}: {}", file.name, lines[at + 1]);
                updates += 1;
            }
        }
    }
    assert!(updates > 20, "{updates}");
}

fn a_private_routine_comes_before_its_callers_and_says_that_it_is_private() {
    for package in packages() {
        let mut public = 0;
        for routine in created(&package) {
            assert_eq!(routine.manual.starts_with("Private. "), routine.is_private(), "{}", routine.name);
            assert!(!routine.is_private() || public == 0, "{} comes after a public routine", routine.name);
            public += usize::from(!routine.is_private());
        }
        assert!(public >= 6, "{public}");
    }
}

fn scripts_need_no_client_command_but_delimiter() {
    for package in packages() {
        for file in render::files(&package) {
            assert!(file.text.is_ascii(), "{}", file.name);
            assert!(file.text.ends_with(";\n"), "{}", file.name);
            assert!(!file.text.contains('\t') && !file.text.contains(" \n") && !file.text.contains("\n\n\n"), "{} of {}", file.name, package.folder());
            // The client reads a command at the beginning of a statement alone.
            for line in file.text.lines().filter(|line| !line.starts_with(' ')) {
                let word = line.split([' ', ';']).next().unwrap_or_default().to_lowercase();
                let client = ["source", "\\.", "use", "system", "\\!", "tee", "prompt", "warnings", "go", "ego"];
                assert!(!client.contains(&word.as_str()), "{}: {line}", file.name);
            }
        }
    }
}

fn a_script_of_the_other_family_fails_at_its_first_statement(server: &Server) {
    let mut connection = server.connect();
    for package in [package(|_| {}), keyed(|_| {}), bounded(|_| {}), of_column("articles.views", "id BIGINT", |_| {})] {
        for family in [Family::Mysql, Family::Mariadb] {
            let package = package.clone().of_family(family);
            for name in ["setup.sql", "create_procedures.sql", "uninstall.sql"] {
                let script = render::file(&package, name);
                let first = connection.query_drop(&script::statements(&script)[0]);
                if family == server.version.family {
                    first.expect(name);
                } else {
                    assert_eq!(error_of(first).0, 1193, "{name} of {}", package.folder());
                    let (before, _) = script.split_once("\nSET ").expect("the first statement");
                    assert!(before.contains("stops here (1193): render the package with --server"), "{before}");
                }
            }
        }
    }
}
