//! What is rendered: always the same, as committed, within the rules that the servers impose.

use slotted::package::{Detail, MESSAGE_MAX, Options, Package, PackageError, Pick, Security, Slots, committed, signal};
use slotted::{render, script};
use similar::TextDiff;

use crate::support::{Module, keyed, package, variants};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(the_same_options_give_the_same_bytes)
        .plain(variants_differ_from_the_committed_package_as_reviewed)
        .plain(error_texts_are_as_reviewed)
        .plain(a_message_fits_whatever_the_names)
        .plain(no_routine_does_what_a_routine_must_not)
        .plain(scripts_need_no_client_command_but_delimiter);
}

/// Everything that can be chosen, one at a time and some together.
fn chosen() -> Vec<(&'static str, Package)> {
    vec![
        ("pick_random", package(|o| o.pick = Pick::Random)),
        ("fixed_pick_random", package(|o| (o.slots, o.pick) = (Slots::Fixed(64), Pick::Random))),
        ("default_slots", package(|o| o.default_slots = Some(100))),
        ("security_invoker", package(|o| o.security = Security::Invoker)),
        ("no_function", package(|o| o.function = false)),
        ("collation_bin", package(|o| o.collation = "utf8mb4_bin".parse().expect("a collation"))),
        (
            "hostile_names",
            package(|o| {
                o.table = "my `table`".parse().expect("a table");
                o.prefix = "it's \\ my-".parse().expect("a prefix");
            }),
        ),
    ]
}

/// The same for counters keyed by record.
fn chosen_keyed() -> Vec<(&'static str, Package)> {
    vec![
        ("keyed_by_url", keyed(|o| o.key = "url VARCHAR(255)".parse().expect("a key"))),
        ("keyed_pick_random", keyed(|o| (o.pick, o.slots) = (Pick::Random, Slots::Fixed(7)))),
        (
            "rollup",
            keyed(|o| {
                o.rollups = ["record_type=123:repositories.id:download_count", "record_type=9:`my.pages`.id:views"]
                    .map(|rollup| rollup.parse().expect("a roll-up"))
                    .into();
                o.rollup_every = Some("1 MINUTE".parse().expect("an interval"));
            }),
        ),
        (
            "rollup_by_text",
            keyed(|o| {
                o.key = "site BINARY(2), url VARCHAR(255)".parse().expect("a key");
                o.rollups = vec!["site=0x0001:pages.url:views".parse().expect("a roll-up")];
                o.pick = Pick::Random;
                o.security = Security::Invoker;
            }),
        ),
        (
            "keyed_hostile",
            keyed(|o| {
                o.key = "`a``b` BINARY(16), `c, d` TINYINT UNSIGNED".parse().expect("a key");
                o.security = Security::Invoker;
            }),
        ),
    ]
}

fn all_files(package: &Package) -> String {
    render::files(package).into_iter().map(|file| format!("==> {} <==\n{}", file.name, file.text)).collect()
}

fn the_same_options_give_the_same_bytes() {
    for (name, package) in chosen().into_iter().chain(chosen_keyed()) {
        assert_eq!(render::files(&package), render::files(&package.clone()), "{name}");
    }
}

fn variants_differ_from_the_committed_package_as_reviewed() {
    let default = all_files(&package(|_| {}));
    let keyed = all_files(&Package::new(Options::slotted_counters()).expect("a package"));
    let named = chosen().into_iter().map(|(name, package)| (name, package, &default));
    for (name, package, default) in named.chain(chosen_keyed().into_iter().map(|(n, p)| (n, p, &keyed))) {
        let text = all_files(&package);
        let diff = TextDiff::from_lines(default, &text).unified_diff().context_radius(0).to_string();
        // Without the line numbers, which change with everything above them.
        let diff: Vec<_> = diff.lines().map(|line| if line.starts_with("@@") { "@@" } else { line }).collect();
        insta::assert_snapshot!(name, diff.join("\n"));
    }
}

fn error_texts_are_as_reviewed() {
    let options = Options { slots: Slots::Fixed(20), ..Options::default() };
    let line = |error: PackageError| {
        let (head, detail, tail) = error.sentence(&options);
        let detail = match detail {
            Detail::None => "",
            Detail::Name => "'NAME'",
            Detail::Slots => "SLOTS",
            Detail::Column => "COLUMN",
        };
        format!("{}  {head}{detail}{tail}\n       {}\n", error.number(), error.remedy())
    };
    insta::assert_snapshot!("error_texts", PackageError::ALL.map(line).concat());
    let mut numbers = PackageError::ALL.map(PackageError::number).to_vec();
    assert!(numbers.iter().all(|number| (50000..=51999).contains(number)));
    numbers.dedup();
    assert_eq!(numbers.len(), PackageError::ALL.len());
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
                Detail::Slots => i64::MIN.to_string().len(),
                Detail::Column => 10,
            };
            let length = routine.len() + ": ".len() + head.len() + named + tail.len();
            assert!(length <= MESSAGE_MAX, "{error:?} has {length}: {}", signal(&options, &routine, error, Some("column")).message);
        }
    }
}

/// Every routine of every variant.
fn routines() -> Vec<String> {
    let variants = variants().into_iter().map(|(_, package)| package);
    let chosen = chosen().into_iter().chain(chosen_keyed()).map(|(_, package)| package);
    variants
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
    assert!(routines.len() > 70, "{}", routines.len());
    for routine in routines {
        let code = code(&routine);
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
            "SKIP LOCKED",
            "CREATE ",
            "DROP ",
            "ALTER ",
        ] {
            assert!(!code.contains(forbidden), "{forbidden} in\n{code}");
        }
        // Only to see the end of a cursor: of a SELECT it would hide that there was no row.
        assert_eq!(code.contains("FOR NOT FOUND"), code.contains("CURSOR"), "{code}");
        // Session variables: only the server's own, which begin with two.
        assert!(!code.replace("@@", "").contains('@'), "{code}");
        let head = routine.split_once("\nBEGIN\n").expect("a head").0;
        assert!(!head.contains("OUT p_") && !head.contains("DEFINER ="), "{head}");
        // No result set: every SELECT that is a statement fills a variable.
        for statement in code.split(';') {
            let begin = ["THEN\n", "BEGIN\n", "ELSE\n", "REPEAT\n", "*/\n"]
                .iter()
                .filter_map(|word| statement.rfind(word).map(|at| at + word.len()))
                .max();
            let statement = statement[begin.unwrap_or(0)..].trim();
            assert!(!statement.starts_with("SELECT") || statement.contains("INTO v_"), "{statement}");
        }
        // RAND() picks a slot into a variable, never in a WHERE.
        for (at, _) in code.match_indices("RAND()") {
            let line = code[..at].rsplit('\n').next().unwrap_or_default();
            assert!(line.contains("SET v_slot ="), "{line}");
        }
    }
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
