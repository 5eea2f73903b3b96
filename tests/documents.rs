//! The documents are true: their examples run, their tables and figures agree with the code and the measurements.
//!
//! README and every page of docs/ and examples/ is a script. The test runs its blocks from top to bottom, as a reader would, in an
//! empty database `mydb`, in a folder that has `generated/`, with `mysql`, `mysqldump` and `slotted` on the PATH:
//! - `sh`: commands of MySQL, which the test changes on MariaDB, and comments for readers. Those of `scripts/` are steps of .ci/run. A loop without an end runs once.
//! - `sql`: statements for the client. A block that begins with `-- NAME.sql` is a file that later commands source.
//! - `text`: a transcript if it begins with `mysql> `. Otherwise it is only shown.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use pulldown_cmark::{CodeBlockKind, Event, Options as Extensions, Parser, Tag, TagEnd};

use crate::support::transcript::{expected, printed, timeless};
use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .plain(every_command_exists_with_its_options)
        .plain(every_link_has_a_target)
        .plain(the_crate_has_what_the_readme_shows)
        .plain(no_message_names_a_file_of_a_clone)
        .plain(every_range_of_the_readme_is_in_the_benchmark)
        .plain(the_reference_lists_every_command_option_and_file)
        .plain(the_documents_are_short_and_readme_names_each)
        .alone()
        .on_servers(every_example_runs);
}

/// A document, as a Markdown renderer sees it.
struct Page {
    name: String,
    text: String,
    /// Each with its place, its language and its text.
    blocks: Vec<[String; 3]>,
    code: Vec<String>,
    links: Vec<String>,
    anchors: Vec<String>,
}

fn page(name: &str) -> Page {
    let text = fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (mut blocks, mut code, mut links, mut anchors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut block, mut heading) = (None::<[String; 3]>, String::new());
    for (event, range) in Parser::new_ext(&text, Extensions::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let place = format!("{name}:{}", text[..range.start].lines().count() + 1);
                let CodeBlockKind::Fenced(language) = kind else { panic!("{place}: indented") };
                block = Some([place, language.into_string(), String::new()]);
            }
            Event::End(TagEnd::CodeBlock) => blocks.extend(block.take()),
            Event::Start(Tag::Heading { .. }) => heading.clear(),
            Event::End(TagEnd::Heading(_)) => anchors.push(anchor(&heading)),
            Event::Start(Tag::Link { dest_url: to, .. } | Tag::Image { dest_url: to, .. }) => {
                links.push(to.into_string())
            }
            Event::Text(part) => block.as_mut().map_or(&mut heading, |[_, _, text]| text).push_str(&part),
            Event::Code(part) => {
                heading.push_str(&part);
                code.push(part.into_string());
            }
            _ => {}
        }
    }
    Page { name: name.to_owned(), text, blocks, code, links, anchors }
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-").replace(|c: char| !c.is_alphanumeric() && !"-_".contains(c), "")
}

/// The files in a folder of the repository and the folders in it whose names end with `extension`.
fn files_in(folder: &str, extension: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).expect(folder).map(|entry| entry.expect(folder));
    let found = |entry: fs::DirEntry| {
        let name = format!("{folder}/{}", entry.file_name().display());
        if entry.path().is_dir() { files_in(&name, extension) } else { vec![name] }
    };
    let mut names: Vec<_> = entries.flat_map(found).filter(|name| name.ends_with(extension)).collect();
    names.sort();
    names
}

/// The pages in a folder and the folders in it.
fn pages(folder: &str) -> impl Iterator<Item = Page> {
    files_in(folder, ".md").into_iter().map(|name| page(&name))
}

/// README, docs/ and examples/.
fn documents() -> impl Iterator<Item = Page> {
    pages("docs").chain(pages("examples")).chain([page("README.md")])
}

/// A folder with `mysql` and `slotted` in it, as a reader has them on the PATH, logged in to this server.
pub fn programs(schema: &Schema<'_>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let (command, dump) = (schema.client().command(&[], root()), schema.server.dump());
    let quoted = |word: &OsStr| format!("'{}'", word.to_string_lossy());
    // The last argument names the schema, as the commands do themselves.
    let account: Vec<_> = command.get_args().map(quoted).collect();
    let account = account[..account.len() - 1].join(" ");
    let own = OsStr::new(env!("CARGO_BIN_EXE_slotted"));
    let programs = [("mysql", command.get_program(), &account[..]), ("mysqldump", dump.as_os_str(), &account)];
    for (name, program, arguments) in programs.into_iter().chain([("slotted", own, "")]) {
        // Without this folder, in which a client that is not installed would call itself.
        let text = format!("#!/bin/sh\nPATH=\"${{PATH#*:}}\" exec {} {arguments} \"$@\"\n", quoted(program));
        write_program(&folder.path().join(name), &text);
    }
    folder
}

fn every_example_runs(server: &Server) {
    let mut ran: BTreeMap<String, u32> = BTreeMap::new();
    for page in documents() {
        let schema = Schema::named(server, "mydb", "");
        let programs = programs(&schema);
        let folder = tempfile::tempdir().expect("a folder");
        symlink(root().join("generated"), folder.path().join("generated")).expect("a link");
        for [place, language, text] in &page.blocks {
            let file =
                text.strip_prefix("-- ").and_then(|text| text.lines().next()).filter(|name| name.ends_with(".sql"));
            match language.as_str() {
                "sh" => {
                    for command in text.lines().filter(|line| !line.starts_with("scripts/")) {
                        run(&schema, programs.path(), folder.path(), command, place);
                    }
                }
                "sql" if let Some(name) = file => fs::write(folder.path().join(name), text).expect("a file"),
                "sql" => {
                    let said = schema.client().pipe(&[], &with_collation(server, text));
                    assert!(said.success, "{place}: {}", said.stderr);
                }
                "text" if text.starts_with("mysql> ") => play(&schema, text, place),
                "text" => continue,
                "console" | "python" | "js" | "ruby" if page.name == "docs/migrations.md" => continue,
                other => panic!("{place}: {other} is not run; write sh, sql or text"),
            }
            *ran.entry(language.clone()).or_default() += 1;
        }
    }
    assert!(ran.len() == 3 && ran.values().all(|blocks| *blocks >= 7), "{ran:?}");
}

/// Runs a command of a shell. After one that sources a script, the routines of a package exist.
pub fn run(schema: &Schema<'_>, programs: &Path, folder: &Path, command: &str, place: &str) {
    let command = command.split(" # ").next().unwrap_or_default();
    let mut command = command.replace("while sleep 10;", "for once in 1;");
    if !schema.server.is_mysql() {
        command = command.replace("/mysql/", "/mariadb/").replace("--server mysql", "--server mariadb");
        if !command.contains("--server") && !command.contains("--check") {
            command = command.replace("slotted generate", "slotted generate --server mariadb");
        }
    }
    let mut shell = Command::new("bash");
    shell.args(["-o", "pipefail", "-ec", &command]).current_dir(folder);
    shell.env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default()));
    let output = shell.env("SLOTTED_URL", schema.url()).output().expect("a shell");
    assert!(output.status.success(), "{place}: {command}: {}", String::from_utf8_lossy(&output.stderr));
    if command.contains("mysql mydb < ") && !command.contains("create_tables.sql") {
        let query = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()";
        assert!(schema.first::<u64>(query) >= 6, "{place}: {command} has installed nothing");
    }
}

/// Runs the statements of a transcript and compares the answers.
fn play(schema: &Schema<'_>, transcript: &str, place: &str) {
    let wanted = expected(transcript.lines());
    let input: String = wanted.iter().map(|(statement, _)| format!("{statement}\n")).collect();
    let said = schema.client().pipe(&["-t", "-vvv"], &input);
    assert!(said.success, "{place}: {said:?}");
    let got = printed(&said.stdout);
    assert_eq!(got.len(), wanted.len(), "{place}: {}", said.stdout);
    for ((statement, wanted), (_, got)) in wanted.iter().zip(&got) {
        // MariaDB counts affected rows differently: docs/routines.md.
        let is_exact = |line: &str| schema.server.is_mysql() || !line.starts_with("Query OK");
        let line = |line: &str| if is_exact(line) { timeless(line) } else { "Query OK".to_owned() };
        let wanted: Vec<_> = wanted.iter().copied().map(line).collect();
        let got: Vec<_> = got.iter().map(String::as_str).map(line).collect();
        assert_eq!(wanted, got, "{place}: {statement}");
    }
}

fn slotted(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_slotted")).args(arguments).output().expect("slotted");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The options in a help text. An optional value follows in brackets: --password[=<PASSWORD>].
fn options(help: &str) -> BTreeSet<String> {
    let words = help.split([' ', '\n', '[']).map(|word| word.trim_end_matches([',', ':', '.', ';']));
    words.filter(|word| word.len() > 2 && word.starts_with("--") && *word != "--help").map(str::to_owned).collect()
}

/// The commands of `slotted`, each with its options. Its help does not list completions.
fn commands() -> BTreeMap<String, BTreeSet<String>> {
    let help = slotted(&["--help"]);
    let (_, commands) = help.split_once("Commands:\n").expect("a list of commands");
    let names = commands.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    names.chain(["completions"]).map(|name| (name.to_owned(), options(&slotted(&[name, "--help"])))).collect()
}

fn every_command_exists_with_its_options() {
    let commands = commands();
    let all = commands.values().flatten().cloned().collect();
    let mut seen = 0;
    for page in documents() {
        let shown = page.blocks.iter().filter(|[_, _, text]| !text.starts_with("mysql> "));
        let lines = shown.flat_map(|[_, _, text]| text.lines());
        for line in lines.chain(page.code.iter().map(String::as_str)) {
            let words: Vec<_> = line.split_whitespace().take_while(|word| *word != "|").collect();
            let known = match words[..] {
                [script, ..] if script.starts_with("scripts/") => {
                    assert!(root().join(script).is_file(), "{}: {script}", page.name);
                    continue;
                }
                ["slotted", "COMMAND", ..] => continue,
                ["slotted", name, ..] => commands.get(name).unwrap_or_else(|| panic!("{}: {line}", page.name)),
                // A comment of SQL begins with two dashes and a space.
                [option, ..] if option.starts_with("--") && option != "--" => &all,
                _ => continue,
            };
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap_or(option);
                assert!(known.contains(option), "{}: {option} in {line}", page.name);
                seen += 1;
            }
        }
    }
    assert!(seen >= 20, "{seen} options");
}

fn every_link_has_a_target() {
    let others = ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(page);
    for page in documents().chain(pages(".github")).chain(others) {
        for link in page.links.iter().filter(|link| !link.starts_with("https://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
            let file = Path::new(&page.name).with_file_name(path);
            let target = if path.is_empty() { &page.name } else { file.to_str().expect("UTF-8") };
            assert!(root().join(target).exists(), "{}: {link}", page.name);
            let found = anchor.is_empty() || self::page(target).anchors.iter().any(|known| known == anchor);
            assert!(found, "{}: no heading for {link}", page.name);
        }
    }
}

fn the_crate_has_what_the_readme_shows() {
    let arguments = ["package", "--list", "--allow-dirty", "--offline"];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).expect("UTF-8");
    for link in page("README.md").links.iter().filter(|link| !link.starts_with("https://")) {
        let path = link.split('#').next().unwrap_or_default();
        assert!(listed.lines().any(|file| Path::new(file).starts_with(path)), "{link} is not in the crate");
    }
}

/// The comments of a command become its --help.
fn no_message_names_a_file_of_a_clone() {
    for name in files_in("src", ".rs") {
        let text = fs::read_to_string(root().join(&name)).expect("a file of Rust");
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let shown = |line: &&str| !line.starts_with("//") || name.starts_with("src/cli/") && line.starts_with("///");
        for line in code.lines().map(str::trim_start).filter(shown) {
            let line = line.replace("docs/columns.md of the repository", "");
            let names = ["scripts/", "docs/", "generated/", "README", "CONTRIBUTING"];
            assert!(!names.iter().any(|name| line.contains(name)), "{name}: {line}");
        }
    }
}

/// Figures with their range, `2.4 times (2.1 to 3.2)` or `77 % (73 to 121)`: each number as it is written, and whether they are percentages.
fn ranges(text: &str) -> Vec<([&str; 3], bool)> {
    let range = |(at, _): (usize, &str)| {
        let (least, most) = text[at + 1..].split_once(')')?.0.split_once(" to ")?;
        let figure = text[..at].trim_end();
        let number = figure.trim_end_matches(" %").trim_end_matches(" times").rsplit([' ', '\n']).next()?;
        let numbers = [number, least, most];
        numbers.iter().all(|number| number.parse::<f64>().is_ok()).then_some((numbers, figure.ends_with('%')))
    };
    text.match_indices('(').filter_map(range).collect()
}

/// README may round them.
fn every_range_of_the_readme_is_in_the_benchmark() {
    let (readme, benchmark) = (page("README.md").text, page("docs/benchmark.md").text);
    let (written, measured) = (ranges(&readme), ranges(&benchmark));
    let rounded = |(written, figure): (&&str, &&str)| {
        let decimals = written.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        format!("{:.decimals$}", figure.parse::<f64>().expect("a number")) == **written
    };
    for (numbers, percent) in &written {
        let same = |(figures, unit): &([&str; 3], bool)| unit == percent && numbers.iter().zip(figures).all(rounded);
        assert!(measured.iter().any(same), "{numbers:?} are not in docs/benchmark.md");
    }
    assert!(written.len() >= 2, "{written:?}");
}

/// The words in the first cells of the tables of a section that begin with `start`.
fn listed(page: &Page, heading: &str, start: &str) -> BTreeSet<String> {
    let (_, section) = page.text.split_once(&format!("\n## {heading}\n")).expect("the section");
    let rows = section.split("\n## ").next().unwrap_or_default().lines();
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.strip_prefix(start)?.split('`').next());
    cells.map(str::to_owned).collect()
}

fn the_reference_lists_every_command_option_and_file() {
    let reference = page("docs/routines.md");
    assert!(listed(&reference, "Commands", "slotted ").iter().eq(commands().keys()));
    let generate = options(&slotted(&["generate", "--help"]));
    assert!(listed(&reference, "Options", "--").iter().map(|option| format!("--{option}")).eq(generate));
    let files = listed(&reference, "Files", "");
    for file in [package(|_| {}), keyed(|_| {})].iter().flat_map(slotted::render::files) {
        assert!(files.contains(file.name), "{}", file.name);
    }
}

fn the_documents_are_short_and_readme_names_each() {
    let (readme, docs) = (page("README.md"), pages("docs").collect::<Vec<_>>());
    let lines = |page: &Page| page.text.lines().count();
    let long = readme.text.lines().find(|line| line.chars().count() > 110);
    assert!(lines(&readme) <= 140 && long.is_none(), "README: {} lines, {long:?}", lines(&readme));
    let of_users = docs.iter().filter(|page| !page.name.starts_with("docs/dev/")).count();
    let all = docs.iter().map(lines).sum::<usize>();
    assert!(of_users == 10 && all <= 2_500, "{of_users} pages in docs/, {all} lines with docs/dev");
    let (_, list) = readme.text.split_once("\n## Pages\n").expect("a list of pages");
    for page in docs {
        assert!(list.contains(&format!("]({})", page.name)), "README does not name {}", page.name);
    }
    // What runs on a clean clone is what a reader is told to run.
    let ci = fs::read_to_string(root().join(".ci/run")).expect("the script");
    for script in ci.lines().filter_map(|line| line.strip_prefix("step scripts/")) {
        let name = format!("scripts/{}", script.split(' ').next().unwrap_or_default());
        assert!(readme.text.contains(&name), "README does not name {name}");
    }
    // docs/guarantees.md says the same, with links from its folder.
    let (_, promised) = readme.text.split_once("\n## Guarantees\n\n").expect("the guarantees");
    let promised = promised.split("\n\n").next().unwrap_or_default().replace("docs/guarantees.md", "");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let same = words(&page("docs/guarantees.md").text).contains(&words(&promised.replace("docs/", "")));
    assert!(same, "docs/guarantees.md does not say: {promised}");
}
