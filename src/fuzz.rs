//! What holds for every text that is parsed. Each target is a function that panics if it does not hold.
//!
//! The tests of this module try the texts in `tests/fuzz`, and texts that are spliced from them. `scripts/fuzz` searches for
//! other texts, guided by the branches that they reach.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;

use clap::ValueEnum;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::cli::options_of;
use crate::connect::Settings;
use crate::connect::option_file::{self, Entry, Line};
use crate::package::{
    Collation, Definer, Ident, Interval, Key, KeyType, Nodes, Options, Package, Prefix, Roles, Rollup,
    Servers, Slots, SourceColumn, SqlStr, Value, Variable, quoted,
};
use crate::render;
use crate::script::{self, Dialect, is_space, pieces, statements, tokens};
use crate::statement::{Table, Use, meaning, mentions, place};

/// A target and its name.
type Target = (&'static str, fn(&str));

/// All targets.
pub const TARGETS: [Target; 8] = [
    ("script", script),
    ("key", key),
    ("rollup", rollup),
    ("identifiers", identifiers),
    ("package", package),
    ("option_file", option_file),
    ("url", url),
    ("statement", statement),
];

/// Runs a target.
///
/// # Panics
/// There is no such target, or its property does not hold for the text.
pub fn run(target: &str, text: &[u8]) {
    let (_, property) = TARGETS
        .into_iter()
        .find(|(name, _)| *name == target)
        .unwrap_or_else(|| panic!("there is no target '{target}': expected one of {TARGETS:?}"));
    property(&String::from_utf8_lossy(text));
}

const DIALECTS: [Dialect; 2] = [
    Dialect {
        mariadb: false,
        version: 90_704,
    },
    Dialect {
        mariadb: true,
        version: 110_802,
    },
];

/// The pieces of a text that a server executes, without delimiters.
fn executed(text: &str) -> impl Iterator<Item = &str> {
    let executed = pieces(text).filter(|piece| !is_space(piece));
    executed
        .map(str::trim_end)
        .filter(|piece| !["", ";"].contains(piece))
}

fn script(text: &str) {
    assert_eq!(pieces(text).collect::<String>(), text);
    let found = statements(text);
    let mut rest = text;
    for statement in &found {
        assert_eq!(statement.trim(), statement);
        assert!(!statement.is_empty());
        let (_, after) = rest
            .split_once(statement.as_str())
            .expect("a part of the script, after the statement before it");
        rest = after;
    }
    // A -- is a comment at the end of a statement, but not before a delimiter.
    let minus = found.iter().any(|statement| statement.ends_with("--"));
    if !text.to_lowercase().contains("delimiter") && !minus {
        let of_statements: Vec<_> = found.iter().flat_map(|statement| executed(statement)).collect();
        assert_eq!(of_statements, executed(text).collect::<Vec<_>>());
    }
    // A delimiter that is in no statement.
    let delimiter = '\u{1}';
    if !text.contains(delimiter) && !minus {
        let joined = found.join(&format!("\n{delimiter}\n"));
        assert_eq!(statements(&format!("DELIMITER {delimiter}\n{joined}")), found);
    }
    for dialect in DIALECTS {
        for statement in &found {
            tokens(statement, dialect);
        }
        assert_eq!(tokens(&SqlStr(text).to_string(), dialect), [format!("'{text}")]);
        assert_eq!(tokens(&quoted(text), dialect), [quoted(text)]);
    }
    for query in script::queries(text) {
        assert!(!query.sql.is_empty());
    }
}

/// A text that is parsed and written is parsed to the same value.
fn round_trip<T: FromStr<Err: Debug> + PartialEq + Debug>(
    text: &str,
    written: impl Fn(&T) -> String,
) -> Option<T> {
    let value = text.parse().ok()?;
    let again = written(&value);
    match again.parse::<T>() {
        Ok(parsed) => assert_eq!(parsed, value, "{again}"),
        Err(error) => panic!("{again}: {error:?}"),
    }
    Some(value)
}

fn key(text: &str) {
    let Some(Key(columns)) = round_trip(text, Key::to_string) else {
        return;
    };
    for column in columns {
        assert_eq!(KeyType::parse(&column.kind.text()), Some(column.kind));
    }
}

fn rollup(text: &str) {
    round_trip(text, Rollup::to_string);
    if let Some(value) = round_trip(text, Value::to_string) {
        for dialect in DIALECTS {
            let sign = matches!(value, Value::Integer(n) if n < 0);
            assert_eq!(tokens(&value.sql(), dialect).len(), 1 + usize::from(sign));
        }
    }
}

fn identifiers(text: &str) {
    if let Some(ident) = round_trip(text, |ident: &Ident| ident.name().to_owned()) {
        for dialect in DIALECTS {
            for written in [ident.to_string(), ident.plain(), ident.typed()] {
                assert_eq!(tokens(&written, dialect).len(), 1, "{written}");
            }
        }
    }
    round_trip(text, |prefix: &Prefix| prefix.name().to_owned());
    round_trip(text, Definer::plain);
    round_trip(text, Roles::to_string);
    round_trip(text, Slots::to_string);
    round_trip(text, Variable::to_string);
    round_trip(text, Collation::to_string);
    round_trip(text, Interval::to_string);
}

/// The options in the lines of a text: the key, the table, the prefix, the definer, the roles, the roll-up and the servers. An
/// empty line is the default.
fn options(text: &str) -> Option<Options> {
    fn of<T: FromStr>(line: Option<&str>) -> Result<Option<T>, T::Err> {
        line.filter(|line| !line.is_empty()).map(str::parse).transpose()
    }
    let mut lines = text.split('\n');
    let mut options = Options::slotted_counters();
    options.key = of(lines.next()).ok()?.unwrap_or(options.key);
    options.table = of(lines.next()).ok()?.unwrap_or(options.table);
    options.prefix = of(lines.next()).ok()?.unwrap_or(options.prefix);
    options.definer = of(lines.next()).ok()?;
    options.roles = of(lines.next()).ok()?;
    options.rollups = of(lines.next()).ok()?.into_iter().collect();
    if let Some(name) = lines.next() {
        options.servers = Servers::from_str(name, true).ok()?;
    }
    Some(options)
}

/// The options with plain names in place of all names.
fn plain(options: &Options) -> Options {
    let mut names: BTreeMap<Ident, Ident> = BTreeMap::new();
    let mut rename = |name: &mut Ident| {
        let next = format!("name_{}", names.len());
        *name = names
            .entry(name.clone())
            .or_insert_with(|| next.parse().expect("a name"))
            .clone();
    };
    let mut options = options.clone();
    for column in &mut options.key.0 {
        rename(&mut column.name);
        column.parameter = format!("p_{}", column.name.name()).parse().expect("a name");
    }
    for rollup in &mut options.rollups {
        rollup.same.iter_mut().for_each(|(name, _)| rename(name));
        rename(&mut rollup.table);
        rollup.ids.iter_mut().for_each(&mut rename);
        rollup.keep.iter_mut().for_each(&mut rename);
        rename(&mut rollup.target);
    }
    rename(&mut options.table);
    options.prefix = "plain_".parse().expect("a prefix");
    options.definer = options.definer.map(|_| "a@b".parse().expect("an account"));
    options.roles = options.roles.map(|_| "a,b".parse().expect("two roles"));
    options
}

fn package(text: &str) {
    let Some(options) = options(text) else { return };
    let arguments = options.arguments();
    assert_eq!(Nodes::of_arguments(&arguments), options.nodes, "{arguments}");
    assert_eq!(options_of(&arguments).as_ref(), Some(&options), "{arguments}");
    let Ok(package) = Package::new(options) else {
        return;
    };
    let setup = statements(&render::setup(&package));
    for object in render::objects(&package) {
        for statement in object.statements() {
            assert!(setup.contains(&statement), "{statement}");
        }
    }
    // A name is one token wherever it is: it ends no comment and no string.
    let plain = Package::new(plain(&package.options)).expect("plain names are valid");
    for (file, plain) in render::files(&package).iter().zip(render::files(&plain)) {
        for dialect in DIALECTS {
            let count = |text: &str| -> Vec<usize> {
                let statements = statements(text);
                statements
                    .iter()
                    .map(|statement| tokens(statement, dialect).len())
                    .collect()
            };
            assert_eq!(count(&file.text), count(&plain.text), "{}", file.name);
        }
    }
}

fn option_file(text: &str) {
    let mut entries = Vec::new();
    for line in option_file::parse(text) {
        if let Ok(Line::Entry(entry)) = line {
            assert!(!entry.name.is_empty() && !entry.name.contains('_'));
            entries.push(entry);
        }
    }
    let _ = Settings::of_entries(&entries, "_eu");

    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\\' | '"' | '\'' => escaped.extend(['\\', c]),
            '\n' => escaped += "\\n",
            '\r' => escaped += "\\r",
            '\t' => escaped += "\\t",
            '\u{8}' => escaped += "\\b",
            _ => escaped.push(c),
        }
    }
    let expected = [Entry {
        group: "client".into(),
        name: "user".into(),
        value: Some(text.into()),
    }];
    let spaces = escaped.replace(' ', "\\s");
    for value in [
        format!("\"{escaped}\""),
        format!("'{escaped}' # a comment"),
        spaces.clone(),
    ] {
        // Without quotes, a # begins a comment, and white space around the value is not a part of it.
        if value == spaces
            && (text.contains('#') || spaces.trim_ascii() != spaces || spaces.contains('\u{b}'))
        {
            continue;
        }
        let file = format!("[client]\nuser = {value}\n");
        let read: Result<Vec<_>, _> = option_file::parse(&file).collect();
        let read = read.map(|lines| {
            let entries = lines.into_iter().map(|line| match line {
                Line::Entry(entry) => entry,
                other => panic!("{other:?}"),
            });
            entries.collect::<Vec<_>>()
        });
        assert_eq!(read.as_deref(), Ok(&expected[..]), "{file}");
    }
}

fn url(text: &str) {
    let _ = Settings::of_url(text);

    let secret = "qJ8xkV";
    if let Err(error) = Settings::of_url(&format!("mysql://user:{secret}{text}@host/db")) {
        assert!(!error.to_string().contains(secret), "{error}");
    }
    // A URL has no part that is a dot or two, also if they are encoded.
    let database = if [".", ".."].contains(&text) { "" } else { text };
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let (part, of_path) = (encoded(text), encoded(database));
    let url = format!("mysql://{part}:{part}@[::1]:3307/{of_path}?socket={part}");
    let settings = Settings::of_url(&url).expect("a URL with encoded parts");
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    assert_eq!(settings.host.as_deref(), Some("::1"));
    assert_eq!(settings.port, Some(3307));
    assert_eq!(settings.user, given(text));
    assert_eq!(settings.password.map(|secret| secret.0), given(text));
    assert_eq!(settings.database, given(database));
    assert_eq!(settings.socket, Some(text.into()));
}

fn statement(text: &str) {
    let Some((schema, name)) = place(text) else {
        Table {
            name: "t".into(),
            ..Table::default()
        }
        .compared(text, "c", &[]);
        return;
    };
    // Each name is a column, so that none is a variable.
    let mut names: Vec<_> = pieces(text)
        .map(|piece| piece.trim_matches('`').to_lowercase())
        .collect();
    names.sort();
    names.dedup();
    let column = |name: &String| Some(SourceColumn::int(Ident::new(name).ok()?));
    let table = Table {
        schema: schema.unwrap_or_else(|| "shop".into()),
        name,
        columns: names.iter().filter_map(column).collect(),
        unique: vec![vec!["id".into()]],
        ..Table::default()
    };
    let Ok(found) = meaning(text, &table) else { return };
    for change in &found.changes {
        assert!(mentions(text, &change.column), "{}", change.column);
        assert!(!found.sets.contains(&change.column));
        // What has no limit is not compared.
        let compared = !table.compared(text, &change.column, &[]).is_empty();
        assert!(change.of != Use::Adds || !compared, "{}", change.column);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use proptest::sample::{Index, select};
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    use super::*;

    /// The number of spliced texts. All targets together take about a minute.
    const CASES: u32 = 40_000;

    /// The texts of a target.
    fn corpus(target: &str) -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fuzz")
            .join(target);
        let files = folder
            .read_dir()
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        paths.sort();
        let text = |path| String::from_utf8_lossy(&std::fs::read(path).expect("a file")).into_owned();
        paths.iter().map(text).collect()
    }

    /// A tenth of the cases with `scripts/test --quick`.
    fn holds(target: &str, cases: u32) {
        let quick = std::env::var_os("SLOTTED_TEST_QUICK").is_some();
        let cases = if quick { cases / 10 } else { cases };
        let texts = corpus(target);
        assert!(!texts.is_empty());
        for text in &texts {
            run(target, text.as_bytes());
        }
        let parts = |text: &String| pieces(text).map(str::to_owned).collect::<Vec<_>>();
        let mut pool: Vec<String> = texts.iter().flat_map(parts).collect();
        pool.sort();
        pool.dedup();
        // Replaces pieces of a text with pieces of others.
        let changes = proptest::collection::vec((any::<Index>(), 0..3_usize, select(pool)), 0..6);
        let strategy = (select(texts), changes).prop_map(move |(text, changes)| {
            let mut parts = parts(&text);
            for (at, removed, piece) in changes {
                let at = at.index(parts.len() + 1);
                let end = parts.len().min(at + removed);
                parts.splice(at..end, [piece]);
            }
            parts.concat()
        });
        let config = Config {
            cases,
            failure_persistence: None,
            max_shrink_iters: 200,
            ..Config::default()
        };
        // The same texts in each run.
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        TestRunner::new_with_rng(config, random)
            .run(&strategy, |text| {
                run(target, text.as_bytes());
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn a_script_is_split_without_loss() {
        holds("script", CASES);
    }

    #[test]
    fn a_key_is_displayed_as_it_is_parsed() {
        holds("key", CASES);
    }

    #[test]
    fn a_rollup_is_displayed_as_it_is_parsed() {
        holds("rollup", CASES);
    }

    #[test]
    fn names_are_displayed_as_they_are_parsed() {
        holds("identifiers", CASES);
    }

    #[test]
    fn a_name_changes_no_statement_of_a_package() {
        holds("package", CASES / 50);
    }

    #[test]
    fn values_in_option_files_are_read_without_loss() {
        holds("option_file", CASES);
    }

    #[test]
    fn parts_of_urls_are_read_without_loss() {
        holds("url", CASES);
    }

    #[test]
    fn what_a_statement_counts_is_in_it() {
        holds("statement", CASES);
    }
}
