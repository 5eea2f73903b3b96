//! What is rendered: always the same, as committed, within the rules that the servers impose.

use slotted::package::{Detail, MESSAGE_MAX, Options, Package, PackageError, Pick, Security, Servers, Slots, Speaker, committed, signal, SqlStr};
use slotted::render::Format;
use slotted::{render, script};

use crate::rollup::of_column;
use crate::support::{Module, bounded, bounded_keyed, keyed, package, variants};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(the_same_options_give_the_same_bytes)
        .plain(no_text_depends_on_the_meaning_of_a_backslash)
        .plain(chosen_variants_are_as_reviewed)
        .plain(an_option_changes_only_its_own_words)
        .plain(error_texts_are_as_reviewed)
        .plain(a_message_fits_whatever_the_names)
        .plain(no_routine_does_what_a_routine_must_not)
        .plain(no_statement_but_that_of_a_rollup_updates_several_tables)
        .plain(a_private_routine_comes_before_its_callers_and_says_that_it_is_private)
        .plain(sql_for_one_server_has_no_words_for_the_other)
        .plain(scripts_need_no_client_command_but_delimiter);
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
                o.collation = "utf8mb4_bin".parse().expect("a collation");
            }),
        ),
        (
            "a_column",
            of_column("repositories.`download count`", "id BIGINT", |o| {
                (o.table, o.prefix) = ("downloads".parse().expect("a table"), "download_".parse().expect("a prefix"));
                o.keep = "`seen at`".parse().expect("a column");
                o.definer = Some("my counters@localhost".parse().expect("an account"));
                o.servers = Servers::Mariadb;
                o.function = false;
            }),
        ),
        (
            "a_column_by_text",
            of_column("pages.views", "site BINARY(2), `c, d` TINYINT UNSIGNED, url VARCHAR(255)", |o| {
                (o.pick, o.slots) = (Pick::Random, Slots::Fixed(7));
                o.security = Security::Invoker;
                o.servers = Servers::Mysql;
            }),
        ),
        (
            "bounded_records",
            bounded_keyed(|o| {
                o.key = "tenant INT UNSIGNED, plan VARCHAR(20)".parse().expect("a key");
                o.slots = Slots::Fixed(31);
                (o.table, o.prefix) = ("quotas".parse().expect("a table"), "quota_".parse().expect("a prefix"));
                o.security = Security::Invoker;
            }),
        ),
    ]
}

/// A word of the scripts and its replacement.
type Replacement = (&'static str, &'static str);

/// The options that replace words of the scripts.
fn worded() -> Vec<(&'static str, Package, Vec<Replacement>)> {
    vec![
        (
            "--security",
            package(|o| o.security = Security::Invoker),
            vec![("SECURITY DEFINER", "SECURITY INVOKER"), ("CAST('definer' ", "CAST('invoker' ")],
        ),
        (
            "--collation",
            package(|o| o.collation = "utf8mb4_bin".parse().expect("a collation")),
            vec![("utf8mb4_general_ci", "utf8mb4_bin")],
        ),
        (
            "--table",
            package(|o| o.table = "page_hits".parse().expect("a table")),
            vec![("`counters`", "`page_hits`"), ("CAST('counters' AS CHAR CHARSET utf8mb4) AS table_name", "CAST('page_hits' AS CHAR CHARSET utf8mb4) AS table_name")],
        ),
    ]
}

fn the_same_options_give_the_same_bytes() {
    for (name, package) in chosen() {
        assert_eq!(render::files(&package), render::files(&package.clone()), "{name}");
    }
}

fn no_text_depends_on_the_meaning_of_a_backslash() {
    let quoted = package(|o| o.definer = Some("it's `my` \"account\"@%".parse().expect("an account")));
    for package in committed().into_iter().chain(chosen().into_iter().map(|(_, package)| package)).chain([quoted]) {
        for format in [Format::Client, Format::Plain] {
            for file in render::files_of(&package, format) {
                let line = file.text.lines().find(|line| line.contains('\\'));
                assert_eq!(line, None, "{} of {}", file.name, package.options.arguments());
            }
        }
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

fn an_option_changes_only_its_own_words() {
    // Without the banner and the column of the view that have the options.
    let body = |package: &Package| {
        let setup = render::setup(package);
        let arguments = format!("{} AS CHAR CHARSET utf8mb4) AS arguments", SqlStr(package.options.arguments()));
        setup.split_once("\n--\n").expect("a banner").1.replace(&arguments, "arguments")
    };
    let default = body(&package(|_| {}));
    for (option, package, words) in worded() {
        let mut expected = default.clone();
        for (word, replacement) in words {
            assert!(expected.contains(word), "{option}: {word}");
            expected = expected.replace(word, replacement);
        }
        let text = body(&package);
        let first = text.lines().zip(expected.lines()).find(|(one, other)| one != other);
        assert!(text == expected, "{option} also changes: {first:#?}");
    }
    let without = body(&package(|o| o.function = false));
    let begin = default.find("-- With a binary log").expect("the check of the privileges");
    let end = default.find("-- If the table exists").expect("the first object");
    let default = format!("{}{}", &default[..begin], &default[end..]);
    let function = default.find("\n/*!80000 DROP FUNCTION").expect("the function is the last");
    let end = default[function..].find("DELIMITER ;\n\n").expect("its end") + function;
    assert_eq!(without, format!("{}{}", &default[..function], &default[end..]), "--no-function also changes more");
}

/// The number of an error and the beginning of its message, `routine: kind`, do not change within a major version: an application whose
/// driver has only the text compares them. A line of the snapshots may be added, and the text after a beginning may change.
fn error_texts_are_as_reviewed() {
    let options = Options { slots: Slots::Fixed(20), ..Options::default() };
    let line = |error: PackageError| {
        let (head, detail, tail) = error.sentence(&options);
        let detail = match detail {
            Detail::None => "",
            Detail::Name => "'NAME'",
            Detail::Slots => "SLOTS",
            Detail::Column => "COLUMN",
            Detail::Entry => "N",
            Detail::Left => "TOTAL left of 'NAME'",
            Detail::Nodes => "NODES",
            Detail::Rejected => "COLUMN cannot have the total of RECORD: MESSAGE",
        };
        format!("{}  {head}{detail}{tail}\n       {}\n", error.number(), error.remedy())
    };
    insta::assert_snapshot!("error_texts", PackageError::ALL.map(line).concat());
    insta::assert_snapshot!("error_beginnings", error_beginnings().concat());
    let mut numbers = PackageError::ALL.map(PackageError::number).to_vec();
    assert!(numbers.iter().all(|number| (30001..=30099).contains(number)));
    numbers.dedup();
    assert_eq!(numbers.len(), PackageError::ALL.len());
}

/// The beginnings of the messages of all kinds of packages, as the routines signal them.
fn error_beginnings() -> Vec<String> {
    let mut packages = committed();
    packages.extend([bounded_keyed(|_| {}), of_column("articles.views", "id BIGINT", |_| {})]);
    let of = |error: PackageError| {
        let beginning = |package: &Package| {
            let message = signal(&package.options, Speaker::Named("ROUTINE"), error, Some("COLUMN")).message;
            // The first string of the expression. A quote in it is doubled.
            let text = message.trim_start_matches("CONCAT(").trim_start_matches('\'').replace("''", "\0");
            let text = text.split('\'').next().unwrap_or_default().replace('\0', "'");
            format!("{}  {}...\n", error.number(), text.split("COLUMN").next().unwrap_or_default())
        };
        let signals = |package: &&Package| {
            package.routines().any(|(routine, _)| routine.errors(&package.options).contains(&error))
        };
        let mut lines: Vec<_> = packages.iter().filter(signals).map(beginning).collect();
        lines.sort();
        lines.dedup();
        lines
    };
    PackageError::ALL.into_iter().flat_map(of).collect()
}

fn a_message_fits_whatever_the_names() {
    let routine = "r".repeat(64);
    for error in PackageError::ALL {
        for slots in [Slots::PerCounter, Slots::Fixed(10_000)] {
            let options = Options { slots, ..Options::default() };
            let (head, detail, tail) = error.sentence(&options);
            let named = match detail {
                Detail::None => 0,
                // At least some characters of the name have to be seen.
                Detail::Name => 10 + 2,
                // The routine that signals truncates the message.
                Detail::Rejected => 0,
                Detail::Nodes => u16::MAX.to_string().len(),
                Detail::Slots => i64::MIN.to_string().len(),
                Detail::Column => 10,
                Detail::Entry => "10000".len(),
                Detail::Left => "-92233720368547758080000 left of ''".len() + 10,
            };
            let length = routine.len() + ": ".len() + head.len() + named + tail.len();
            assert!(length <= MESSAGE_MAX, "{error:?} has {length}: {}", signal(&options, Speaker::Named(&routine), error, Some("column")).message);
        }
    }
}

/// Every routine of every variant.
fn routines() -> Vec<String> {
    let variants = variants().into_iter().map(|(_, package)| package);
    let chosen = chosen().into_iter().map(|(_, package)| package);
    let others = [bounded(|o| o.servers = Servers::Mysql), bounded_keyed(|o| o.servers = Servers::Mariadb)];
    variants
        .chain(others)
        .chain(chosen)
        .chain(committed())
        .flat_map(|package| script::statements(&render::setup(&package)))
        .filter(|statement| statement.contains("\nBEGIN\n"))
        .collect()
}

/// The code of a routine without comments and strings.
fn code(routine: &str) -> String {
    let body = routine.split_once("\nBEGIN\n").expect("a body").1;
    let lines: Vec<_> = body.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code)).collect();
    // Every other piece between apostrophes is a string.
    lines.join("\n").split('\'').step_by(2).collect::<Vec<_>>().join("''")
}

fn no_routine_does_what_a_routine_must_not() {
    let routines = routines();
    assert!(routines.len() > 60, "{}", routines.len());
    for routine in routines {
        // A savepoint tells whether there is a transaction, and is released.
        let code = code(&routine);
        let savepoints = code.matches("SAVEPOINT slotted_steps;").count();
        let ends = ["RELEASE SAVEPOINT slotted_steps;", "ROLLBACK TO SAVEPOINT slotted_steps;"].map(|end| code.matches(end).count());
        assert_eq!(savepoints, 2 * ends.iter().sum::<usize>(), "{code}");
        let code = code.replace("SAVEPOINT slotted_steps", "");
        for forbidden in [
            "START TRANSACTION",
            "COMMIT",
            "ROLLBACK",
            "SAVEPOINT",
            "GET_LOCK",
            "PREPARE",
            "EXECUTE",
            "TRUNCATE",
            "TEMPORARY",
            "SQLEXCEPTION",
            "CREATE ",
            "DROP ",
            "ALTER ",
        ] {
            // A roll-up outside a transaction has one of its own.
            let own = code.contains("AS moved\n") && ["START TRANSACTION", "COMMIT", "ROLLBACK", "SQLEXCEPTION"].contains(&forbidden);
            assert!(own || !code.contains(forbidden), "{forbidden} in\n{code}");
        }
        // A sum that skips locked slots would lose counts. A roll-up moves what it has locked, and a take skips the slots that it does
        // not take from.
        let rollup = code.contains("AS moved\n");
        assert_eq!(code.contains("SKIP LOCKED"), rollup || code.contains("p_taken = TRUE"), "{code}");
        // Only to see the end of a cursor: of a SELECT it would hide that there was no row.
        assert!(!code.contains("FOR NOT FOUND") || code.contains("CURSOR"), "{code}");
        // Session variables: only the server's own, which begin with two.
        assert!(!code.replace("@@", "").contains('@'), "{code}");
        let head = routine.split_once("BEGIN\n").expect("a head").0;
        // So that they hide no column: the name of a key column cannot begin so.
        for declared in code.split("DECLARE ").skip(1).filter(|declared| !["CURSOR", "HANDLER"].iter().any(|kind| declared.lines().next().is_some_and(|line| line.contains(kind)))) {
            assert!(declared.trim_start_matches('`').starts_with("v_"), "{declared}");
        }
        for argument in head.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("IN ").or(line.strip_prefix("OUT "))) {
            assert!(argument.trim_start_matches('`').starts_with("p_"), "{argument}");
        }
        let told = ["in_steps`(", "_move", "_take_elsewhere`("].iter().any(|name| head.contains(name));
        assert!(!head.contains("OUT p_") || told, "{head}");
        // No result set: every SELECT that is a statement fills a variable.
        for statement in code.split(';') {
            let begin = ["THEN\n", "BEGIN\n", "ELSE\n", "REPEAT\n", "*/\n", "OFF FOR\n"]
                .iter()
                .filter_map(|word| statement.rfind(word).map(|at| at + word.len()))
                .max();
            let statement = statement[begin.unwrap_or(0)..].trim();
            assert!(!statement.starts_with("SELECT") || statement.contains("INTO v_"), "{statement}");
        }
        // RAND() picks a slot into a variable or an array, never in a WHERE.
        for (at, _) in code.match_indices("RAND()") {
            let line = code[..at].rsplit('\n').next().unwrap_or_default();
            assert!(["SET v_slot =", "JSON_ARRAY(", "VALUES (", "SELECT "].iter().any(|begin| line.contains(begin)), "{line}");
        }
    }
}

/// On MariaDB, an UPDATE of several tables that waits while a table with triggers is renamed ends the server. A roll-up has one
/// for the table of its column.
fn no_statement_but_that_of_a_rollup_updates_several_tables() {
    let mut updates = 0;
    let fixed = package(|o| o.slots = Slots::Fixed(20));
    for package in [package(|_| {}), fixed, keyed(|_| {}), bounded(|_| {}), bounded_keyed(|_| {})] {
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
    for package in [package(|_| {}), keyed(|_| {}), bounded(|_| {}), bounded_keyed(|_| {})] {
        let mut public = 0;
        for object in render::objects(&package).iter().filter(|object| object.kind.is_routine()) {
            let statements = object.statements();
            let create = statements.last().expect("a statement");
            let private = object.name.name().starts_with('_');
            assert_eq!(create.contains("COMMENT 'Private."), private, "{object}");
            assert!(!private || public == 0, "{object} comes after a public routine");
            public += usize::from(!private);
        }
        assert!(public >= 8, "{public}");
    }
}

fn sql_for_one_server_has_no_words_for_the_other() {
    for package in [bounded(|o| o.servers = Servers::Mysql), bounded_keyed(|o| o.servers = Servers::Mariadb)] {
        for file in render::files(&package) {
            assert!(!file.text.contains("/*"), "{}", file.name);
        }
    }
    let everything = |servers| {
        let mut texts = String::new();
        for package in [package(|o| o.servers = servers), keyed(|o| o.servers = servers)] {
            texts.extend(render::files(&package).into_iter().map(|file| file.text));
        }
        texts
    };
    let exempt = "SET STATEMENT innodb_snapshot_isolation=OFF FOR";
    let both = everything(Servers::Both);
    assert!(both.contains(&format!("/*M!101108 {exempt} */")) && both.contains("/*!80000 DROP PROCEDURE"));
    let mysql = everything(Servers::Mysql);
    assert!(!mysql.contains("/*") && !mysql.contains("SET STATEMENT") && !mysql.contains("OR REPLACE PROCEDURE"));
    let mariadb = everything(Servers::Mariadb);
    assert!(!mariadb.contains("/*") && mariadb.contains(exempt) && mariadb.contains("CREATE OR REPLACE PROCEDURE"));
    // All three have the same statements.
    let plain = |text: &str| -> Vec<String> {
        // The tables of a locking clause.
        let shared = "LOCK IN SHARE MODE";
        let text = text.replace(&format!("/*!80000 FOR SHARE OF slot_1 */ /*M!100000 {shared} */"), shared);
        let text = text.replace("FOR SHARE OF slot_1", shared);
        let text = ["existing", "slot_1"].iter().fold(text, |text, table| {
            text.replace(&format!(" /*!80000 OF {table} */"), "").replace(&format!(" OF {table}"), "")
        });
        let text = text.replace("/*!80000 transaction_read_only */ /*M!100000 tx_read_only */", "tx_read_only");
        let text = text.replace("transaction_read_only", "tx_read_only");
        let lines = text.lines().map(|line| line.trim().to_owned());
        let own = ["--", "/*", "DROP", "SET STATEMENT", "CREATE", "CAST('both'", "CAST('mysql'", "CAST('mariadb'"];
        let of_both = |line: &String| !own.iter().any(|word| line.starts_with(word)) && !line.ends_with("AS arguments;");
        lines.filter(|line| !line.is_empty() && of_both(line)).collect()
    };
    assert_eq!(plain(&both), plain(&mysql));
    assert_eq!(plain(&both), plain(&mariadb));
}

fn scripts_need_no_client_command_but_delimiter() {
    for package in committed() {
        for file in render::files(&package) {
            assert!(file.text.is_ascii(), "{}", file.name);
            assert!(file.text.ends_with(";\n") || file.text.ends_with("*/\n"), "{}", file.name);
            assert!(!file.text.contains('\t') && !file.text.contains(" \n"), "{}", file.name);
            for line in file.text.lines() {
                let word = line.trim_start().split([' ', ';']).next().unwrap_or_default().to_lowercase();
                let client = ["source", "\\.", "use", "system", "\\!", "tee", "prompt", "warnings", "go", "ego"];
                assert!(!client.contains(&word.as_str()), "{}: {line}", file.name);
            }
        }
    }
}
