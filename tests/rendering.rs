//! What is rendered: always the same, within the budgets of a review, and within the rules that the servers impose.

use std::collections::{BTreeMap, BTreeSet};

use slotted::package::{Family, Package, SqlStr, TAKEN, committed};
use slotted::render::{self, Format, Task};

use crate::support::{ERRORS, Module, parsed as package, table};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(chosen_variants_are_as_reviewed)
        .plain(an_option_changes_only_its_own_words)
        .plain(a_package_is_short_enough_to_be_reviewed)
        .plain(a_key_column_has_no_name_of_the_package)
        .plain(a_manual_has_at_most_15_lines_and_says_whether_its_routine_is_private)
        .plain(the_numbers_of_errors_are_those_of_the_reference)
        .plain(a_manual_lists_the_numbers_that_its_routine_can_signal)
        .plain(sql_for_one_server_has_no_words_for_the_other)
        .plain(no_routine_does_what_a_routine_must_not)
        .plain(scripts_need_no_client_command_but_delimiter_and_no_backslash);
}

/// Variants that together use every option, and that a reviewer can read as a whole.
fn chosen() -> [(&'static str, Package); 2] {
    let counters =
        "counters --slots 64 --table hits$ --prefix hit_ --collation utf8mb4_bin --security invoker --cluster";
    let column = "--column 'repositories.`download count`' --key 'site BINARY(2), url VARCHAR(255)' --keep '`seen at`' --slots 7 \
                  --table downloads --prefix download_ --definer 'my counters@localhost' --server mariadb --no-function";
    [("counters_with_options", package(counters)), ("a_column", package(column))]
}

/// The committed packages, one of a column, and those of a cluster, for both families.
fn packages() -> Vec<Package> {
    let column = "--column articles.views --key 'id BIGINT'";
    let more = [column, "counters --cluster", "counters --cluster --slots 20", "slotted_counters --cluster"];
    let of_family = |family| more.map(|words| package(words).of_family(family));
    committed().into_iter().chain([Family::Mysql, Family::Mariadb].into_iter().flat_map(of_family)).collect()
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
    let steps = render::plan(package, Task::Create);
    steps.iter().flat_map(|step| &step.statements).filter_map(|statement| Created::of(statement)).collect()
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
    let setup = &render::files(package)[0];
    let (_, text) = setup.text.split_once('\n').expect("a banner");
    text.replace(&SqlStr(package.options.description()).to_string(), "options")
}

fn an_option_changes_only_its_own_words() {
    let default = text(&package("counters"));
    for (option, word, replacement) in [
        ("--security invoker", "SECURITY DEFINER", "SECURITY INVOKER"),
        ("--collation utf8mb4_bin", "utf8mb4_0900_ai_ci", "utf8mb4_bin"),
        ("--table page_hits", "`counters`", "`page_hits`"),
    ] {
        assert!(default.contains(word), "{option}: {word}");
        let (expected, text) = (default.replace(word, replacement), text(&package(&format!("counters {option}"))));
        let first = text.lines().zip(expected.lines()).find(|(one, other)| one != other);
        assert!(text == expected, "{option} also changes: {first:#?}");
    }
    let without = text(&package("counters --no-function"));
    let (before, rest) = default.split_once(";\n\n-- Without SUPER").expect("the function is the last");
    let (_, after) = rest.split_once(";;\n").expect("the end of the script");
    assert!(without == format!("{before};;\n{after}"), "--no-function changes more");
}

/// The names that a key column cannot have: a parameter would be declared twice, or a column.
fn a_key_column_has_no_name_of_the_package() {
    let packages = ["slotted_counters --key 'zz INT'", "--column t.n --key 'zz INT'"]
        .map(|words| ["", " --cluster"].map(|cluster| package(&format!("{words}{cluster}"))));
    let mut names = BTreeSet::from(["slot", "count", "slots", "total", "entry", "array", "amount"].map(str::to_owned));
    for routine in packages.iter().flatten().flat_map(created).filter(|routine| routine.head.contains("p_zz")) {
        let words = routine.head.split(|c: char| !c.is_alphanumeric() && c != '_');
        names.extend(words.filter_map(|word| word.strip_prefix("p_")).filter(|name| *name != "zz").map(str::to_owned));
        let variables = routine.body.split(|c: char| !c.is_alphanumeric() && c != '_');
        let keys: BTreeSet<_> = variables.filter(|word| word.starts_with("v_key_")).collect();
        assert!(keys.iter().all(|name| *name == "v_key_zz"), "{}: {keys:?}", routine.name);
    }
    assert_eq!(names.into_iter().collect::<Vec<_>>(), TAKEN);
}

/// What a DBA reviews in an hour.
fn a_package_is_short_enough_to_be_reviewed() {
    for package in packages().into_iter().filter(|package| !package.options.cluster) {
        let name = package.folder();
        let most = match package.options.subject.package() {
            "slotted_counters" if package.options.column().is_some() => 400,
            "slotted_counters" => 249,
            "counters" => 347,
            "counters-fixed" => 332,
            _ => 460,
        };
        let lines = render::files(&package)[0].text.lines().count();
        assert!(lines <= most, "{name}: setup.sql has {lines} lines");
        let routines = created(&package);
        let mut bodies: Vec<_> = routines.iter().map(|routine| routine.body.lines().count()).collect();
        bodies.sort_unstable();
        let median = (bodies[(bodies.len() - 1) / 2] + bodies[bodies.len() / 2]) / 2;
        assert!(median <= 12 && bodies.last() <= Some(&60), "{name}: {bodies:?}");
        let mut in_routines: BTreeMap<&str, usize> = BTreeMap::new();
        for line in routines.iter().flat_map(|routine| routine.body.lines().map(str::trim).collect::<BTreeSet<_>>()) {
            *in_routines.entry(line).or_default() += 1;
        }
        let repeated = in_routines.values().filter(|routines| **routines > 3).count();
        assert!(repeated <= 25, "{name}: {repeated} lines are in more than three routines");
    }
}

/// Private routines come before their callers.
fn a_manual_has_at_most_15_lines_and_says_whether_its_routine_is_private() {
    for package in packages() {
        let routines = created(&package);
        let first_public = routines.iter().position(|routine| !routine.is_private()).expect("public routines");
        assert!(routines.len() - first_public >= 6, "{}", package.folder());
        for (number, Created { name, manual, .. }) in routines.iter().enumerate() {
            let is_private = number < first_public;
            let says = name.starts_with('_') == is_private && manual.starts_with("Private. ") == is_private;
            let fits = manual.lines().count() <= if is_private { 3 } else { 15 };
            assert!(says && fits && manual.lines().all(|line| line.len() <= 120), "{name}: {manual}");
        }
    }
}

/// The numbers of errors in a text: five digits from 30001 to 30099.
fn numbers(text: &str) -> BTreeSet<u32> {
    let words = text.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).filter(|number| (30001..=30099).contains(number)).collect()
}

/// Neither a number nor the words of its message change within a major version: an application may have only the text to compare.
fn the_numbers_of_errors_are_those_of_the_reference() {
    let table = table("docs/routines.md", ERRORS);
    let rows = table.iter().filter_map(|row| Some((row[0].parse::<u32>().ok()?, &row[1])));
    let rows: BTreeMap<_, _> = rows.filter(|(number, _)| *number > 30000).collect();
    let scripts: String = packages().iter().flat_map(render::files).map(|file| file.text).collect();
    assert_eq!(numbers(&scripts), rows.keys().copied().collect(), "docs/routines.md, Errors");
    for (number, message) in rows {
        let mut signals = vec![format!("fail`({number},"), format!("MYSQL_ERRNO = {number},")];
        signals.extend((number == 30022).then(|| "\n  THEN '".to_owned()));
        let signal = |begin| scripts.split(begin).skip(1).filter_map(|rest: &str| rest.split(";\n").next());
        let texts: String = signals.iter().flat_map(|begin| signal(begin.as_str())).collect();
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
        let own = routines.iter().map(|routine| (&routine.name[..], numbers(&routine.body)));
        let mut can: BTreeMap<&str, BTreeSet<u32>> = own.collect();
        // A routine calls others, which call others.
        for _ in 0..3 {
            for routine in &routines {
                let called = can.iter().filter(|(name, _)| routine.body.contains(&format!("CALL `{name}`(")));
                let called: Vec<u32> = called.flat_map(|(_, numbers)| numbers).copied().collect();
                can.get_mut(&routine.name[..]).expect("it is there").extend(called);
            }
        }
        let is_described = |routine: &&Created| !routine.is_private() && !routine.manual.starts_with("The same as");
        for routine in routines.iter().filter(is_described) {
            let manual = routine.manual.split_once("\nErrors: ").expect("the errors").1;
            let mut can = can[&routine.name[..]].clone();
            if routine.name.ends_with("_add") {
                // Of a bounded counter, it takes an amount that is at least 1.
                can.remove(&30017);
            }
            if ["_reset", "_delete"].iter().any(|end| routine.name.ends_with(end)) {
                // Of a column, only compact moves counts.
                can.remove(&30013);
            }
            assert_eq!(numbers(manual), can, "{} of {}", routine.name, package.options.arguments());
        }
    }
}

fn sql_for_one_server_has_no_words_for_the_other() {
    for package in packages() {
        let mariadb = package.options.mariadb();
        for file in render::files(&package) {
            let name = format!("{} of {}", file.name, package.folder());
            assert!(!file.text.contains("/*!") && !file.text.contains("/*M!"), "{name}");
            if ["setup.sql", "create_procedures.sql", "uninstall.sql"].contains(&file.name) {
                assert!(file.text.contains("stops here (1193): render the package with --server"), "{name}");
            }
            let others: &[&str] = if mariadb {
                &["server_uuid", "performance_schema", "SET_VAR"]
            } else {
                &["OR REPLACE PROCEDURE", "SET STATEMENT", "NOT ATOMIC", "innodb_snapshot_isolation,"]
            };
            let other = others.iter().find(|word| file.text.contains(**word));
            assert_eq!(other, None, "{name}");
        }
    }
    // The routines of counters are the same, apart from the settings of a statement.
    let [mysql, mariadb] =
        [Family::Mysql, Family::Mariadb].map(|family| created(&package("counters").of_family(family)));
    let is_other = |routine: &Created| routine.name == "counter_reset";
    for (mysql, mariadb) in mysql.iter().zip(&mariadb).filter(|(mysql, _)| !is_other(mysql)) {
        let code = mariadb.code().lines().filter(|line| !line.contains("SET STATEMENT")).collect::<Vec<_>>().join("\n");
        assert_eq!(mysql.code(), code, "{}", mysql.name);
    }
}

fn no_routine_does_what_a_routine_must_not() {
    let variants = packages().into_iter().chain(chosen().into_iter().map(|(_, package)| package));
    for routine in variants.flat_map(|package| created(&package)) {
        // A savepoint tells whether there is a transaction.
        let code = routine.code().replace("ROLLBACK TO SAVEPOINT", "").replace("RELEASE SAVEPOINT", "");
        let mut forbidden = "GET_LOCK|PREPARE|EXECUTE|TRUNCATE|TEMPORARY|CREATE |DROP |ALTER |STRAIGHT_JOIN|FORCE INDEX|SET_VAR|/*|information_schema".to_owned();
        // What moves the counts of a column, or changes all slots of a record, begins a transaction if the caller has none.
        let moves = ["begin", "move", "maintain", "rollup"].iter().any(|end| routine.name.ends_with(end));
        if !moves {
            forbidden += "|START TRANSACTION|COMMIT|ROLLBACK|SQLEXCEPTION";
        }
        let found = forbidden.split('|').find(|word| code.replace("READ COMMITTED", "").contains(word));
        assert_eq!(found, None, "{}:\n{code}", routine.name);
        // Session variables: only the server's own, which begin with two.
        assert!(!code.replace("@@", "").contains('@'), "{code}");
        // So that they hide no column.
        let is_variable =
            |text: &&str| !text.lines().next().is_some_and(|line| line.contains("HANDLER") || line.contains("CURSOR"));
        let variables = code.split("DECLARE ").skip(1).filter(is_variable).map(|text| (text, "v_"));
        let lines = routine.head.lines().map(str::trim_start);
        let arguments = lines.filter_map(|line| line.strip_prefix("IN ").or(line.strip_prefix("OUT ")));
        for (name, begin) in variables.chain(arguments.map(|text| (text, "p_"))) {
            assert!(name.trim_start_matches('`').starts_with(begin), "{name}");
        }
        // No result set: every SELECT that is a statement fills a variable.
        for statement in code.split(';') {
            let begin = ["THEN\n", "BEGIN\n", "ELSE\n", "REPEAT\n", "LOOP\n", "DO\n", "OFF FOR\n"].iter();
            let begin = begin.filter_map(|word| statement.rfind(word).map(|at| at + word.len())).max();
            let statement = statement[begin.unwrap_or(0)..].trim();
            let fills = ["INTO v_", "INTO p_"].iter().any(|into| statement.contains(into));
            assert!(fills || !statement.starts_with("SELECT"), "{}: {statement}", routine.name);
        }
    }
}

fn scripts_need_no_client_command_but_delimiter_and_no_backslash() {
    let quoted = package(r#"counters --definer "it's `my` account@%""#);
    for package in packages().into_iter().chain(chosen().into_iter().map(|(_, package)| package)).chain([quoted]) {
        for file in [Format::Client, Format::Plain].into_iter().flat_map(|format| render::files_of(&package, format)) {
            let (name, text) = (format!("{} of {}", file.name, package.folder()), &file.text);
            // What it means depends on the mode NO_BACKSLASH_ESCAPES.
            assert!(text.is_ascii() && !text.contains('\\'), "{name}");
            assert!(text.ends_with(";\n") && !text.contains('\t') && !text.contains(" \n"), "{name}");
            assert!(!text.contains("\n\n\n") || !package.options.function, "{name}");
            // The client reads a command at the beginning of a statement alone.
            for line in text.lines().filter(|line| !line.starts_with(' ')) {
                let word = line.split([' ', ';']).next().unwrap_or_default().to_lowercase();
                let client = ["source", "use", "system", "tee", "prompt", "warnings", "go", "ego"];
                assert!(!client.contains(&word.as_str()), "{name}: {line}");
            }
        }
    }
}
