//! The documents are true: their examples run, their tables and figures agree with the code and the measurements.
//!
//! README and every page of docs/ and examples/ is a script. The test runs its blocks from top to bottom, as a reader would, in an
//! empty database `mydb`, in a folder that has `generated/`, with `mysql`, `mysqldump` and `slotted` on the PATH:
//!
//! - `sh`: commands, with the files and options of MySQL, which the test replaces on MariaDB. Those that begin with `scripts/` are steps of
//!   .ci/run instead, because they take minutes. A loop without an end runs once.
//! - `sql`: statements for the client. A block that begins with `-- NAME.sql` is a file that later commands source.
//! - `text`: a transcript if it begins with `mysql> `. Otherwise it is only shown.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use pulldown_cmark::{CodeBlockKind, Event, Options as Extensions, Parser, Tag, TagEnd};

use crate::support::transcript::{expected, printed, timeless};
use crate::support::{Module, Schema, Server, keyed, package, root, with_collation, write_program};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(every_command_exists_with_its_options)
        .plain(every_link_has_a_target)
        .plain(the_crate_has_what_the_readme_shows)
        .plain(no_message_names_a_file_of_a_clone)
        .plain(every_range_of_the_readme_is_in_the_benchmark)
        .plain(the_reference_lists_every_command_option_and_file)
        .plain(readme_has_at_most_140_lines)
        .alone()
        .on_servers(every_example_runs);
}

/// A document, as a Markdown renderer sees it.
struct Page {
    path: PathBuf,
    text: String,
    blocks: Vec<Block>,
    code: Vec<String>,
    links: Vec<String>,
    anchors: Vec<String>,
}

/// A fenced block.
struct Block {
    line: usize,
    language: String,
    text: String,
}

impl Page {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (mut blocks, mut code, mut links) = (Vec::new(), Vec::new(), Vec::new());
        let (mut block, mut heading, mut anchors) = (None, None, Vec::new());
        for (event, range) in Parser::new_ext(&text, Extensions::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => language.into_string(),
                        CodeBlockKind::Indented => "an indented block".to_owned(),
                    };
                    block =
                        Some(Block { line: text[..range.start].lines().count() + 1, language, text: String::new() });
                }
                Event::End(TagEnd::CodeBlock) => blocks.extend(block.take()),
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|text| anchor(&text))),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    links.push(dest_url.into_string())
                }
                Event::Text(part) if block.is_some() => {
                    block.iter_mut().for_each(|block| block.text.push_str(&part));
                }
                Event::Text(part) => heading.iter_mut().for_each(|heading| heading.push_str(&part)),
                Event::Code(part) => {
                    heading.iter_mut().for_each(|heading| heading.push_str(&part));
                    code.push(part.into_string());
                }
                _ => {}
            }
        }
        Self { path: path.to_owned(), text, blocks, code, links, anchors }
    }

    fn name(&self) -> String {
        self.path.strip_prefix(root()).unwrap_or(&self.path).display().to_string()
    }
}

impl Block {
    /// The name of the file that a block of SQL is.
    fn file(&self) -> Option<&str> {
        self.text.lines().next()?.strip_prefix("-- ").filter(|name| name.ends_with(".sql"))
    }

    fn is_transcript(&self) -> bool {
        self.language == "text" && self.text.starts_with("mysql> ")
    }
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The files in a folder and the folders in it whose names end with `extension`.
fn files_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let found = |path: PathBuf| if path.is_dir() { files_in(&path, extension) } else { vec![path] };
    paths.into_iter().flat_map(found).filter(|path| path.extension().is_some_and(|own| own == extension)).collect()
}

/// README, docs/ and examples/.
fn documents() -> Vec<Page> {
    let folders = ["docs", "examples"].map(|folder| files_in(&root().join(folder), "md"));
    folders.concat().iter().map(|path| Page::read(path)).chain([page("README.md")]).collect()
}

fn page(name: &str) -> Page {
    Page::read(&root().join(name))
}

/// The rows of a table, without those that are its head.
fn rows_between<'a>(page: &'a Page, begin: &str, end: &str) -> Vec<&'a str> {
    let (_, rest) = page.text.split_once(begin).unwrap_or_else(|| panic!("{begin} in {}", page.name()));
    let (table, _) = rest.split_once(end).unwrap_or_else(|| panic!("{end} in {}", page.name()));
    table.lines().filter(|line| line.starts_with("| ")).skip(1).collect()
}

/// A folder with `mysql` and `slotted` in it, as a reader has them on the PATH, logged in to this server.
pub fn programs(schema: &Schema<'_>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let (command, dump) = (schema.client().command(&[], root()), schema.server.dump());
    let quoted = |word: &OsStr| format!("'{}'", word.to_string_lossy());
    // The last argument names the schema, as the commands do themselves.
    let account: Vec<_> = command.get_args().map(quoted).collect();
    let account = account[..account.len() - 1].join(" ");
    for (name, program, arguments) in [
        ("mysql", command.get_program(), &account[..]),
        ("mysqldump", dump.as_os_str(), &account),
        ("slotted", OsStr::new(env!("CARGO_BIN_EXE_slotted")), ""),
    ] {
        write_program(&folder.path().join(name), &format!("#!/bin/sh\nexec {} {arguments} \"$@\"\n", quoted(program)));
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
        for block in &page.blocks {
            let place = format!("{}:{}", page.name(), block.line);
            match block.language.as_str() {
                "sh" => {
                    for command in block.text.lines().filter(|line| !line.starts_with("scripts/")) {
                        run(&schema, programs.path(), folder.path(), command, &place);
                    }
                }
                "sql" if let Some(name) = block.file() => {
                    fs::write(folder.path().join(name), &block.text).expect("a file");
                }
                "sql" => {
                    let said = schema.client().pipe(&[], &with_collation(server, &block.text));
                    assert!(said.success, "{place}: {}", said.stderr);
                }
                "text" if block.is_transcript() => play(&schema, &block.text, &place),
                "text" => continue,
                // tests/migrations.rs executes these.
                "console" | "python" | "js" | "ruby" if page.name() == "docs/migrations.md" => continue,
                other => panic!("{place}: {other} is not run; write sh, sql or text"),
            }
            *ran.entry(block.language.clone()).or_default() += 1;
        }
    }
    assert!(ran.len() == 3 && ran.values().all(|blocks| *blocks >= 7), "{ran:?}");
}

/// Runs a command of a shell. After one that pipes a script into the client, the routines of a package exist.
pub fn run(schema: &Schema<'_>, programs: &Path, folder: &Path, command: &str, place: &str) {
    let mut command = command.replace("while sleep 10;", "for once in 1;");
    if !schema.server.is_mysql() {
        command = command.replace("/mysql/", "/mariadb/");
        for package in ["counters", "slotted_counters"] {
            command = command.replace(
                &format!("slotted generate {package}"),
                &format!("slotted generate --server mariadb {package}"),
            );
        }
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-ec", &command])
        .env("PATH", path)
        .env("SLOTTED_URL", super::advise::url(schema.server, schema))
        .current_dir(folder)
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{place}: {command}: {}", String::from_utf8_lossy(&output.stderr));
    if command.contains("mysql mydb") {
        let routines =
            schema.first::<u64>("SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()");
        assert!(routines >= 6, "{place}: {command} has installed nothing");
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
        let line = |line: &str| {
            // docs/reference.md, "Affected rows": MariaDB counts them differently.
            let rows = line.starts_with("Query OK") && !schema.server.is_mysql();
            if rows { "Query OK".to_owned() } else { timeless(line) }
        };
        let wanted: Vec<_> = wanted.iter().map(|text| line(text)).collect();
        let got: Vec<_> = got.iter().map(|text| line(text)).collect();
        assert_eq!(wanted, got, "{place}: {statement}");
    }
}

fn slotted(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_slotted")).args(arguments).output().expect("slotted");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The options in a help text.
fn options(help: &str) -> Vec<String> {
    let mut options: Vec<_> = help
        .split([' ', '\n'])
        .filter(|word| word.starts_with("--") && word.len() > 2 && *word != "--help")
        // An optional value follows in brackets: --password[=<PASSWORD>].
        .map(|word| word.split('[').next().unwrap_or(word).trim_end_matches([',', ':', '.', ';']).to_owned())
        .collect();
    options.sort();
    options.dedup();
    options
}

/// The commands of `slotted`, each with its options.
fn commands() -> BTreeMap<String, Vec<String>> {
    let help = slotted(&["--help"]);
    let (_, commands) = help.split_once("Commands:\n").expect("a list of commands");
    let names = commands.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    // The help does not list it.
    names.chain(["completions"]).map(|name| (name.to_owned(), options(&slotted(&[name, "--help"])))).collect()
}

fn every_command_exists_with_its_options() {
    let commands = commands();
    let mut seen = 0;
    for page in documents() {
        let lines = page.blocks.iter().filter(|block| !block.is_transcript()).flat_map(|block| block.text.lines());
        for line in lines.chain(page.code.iter().map(String::as_str)) {
            let words: Vec<_> = line.split_whitespace().take_while(|word| *word != "|").collect();
            let (known, words) = match words[..] {
                // It stands for any.
                ["slotted", "COMMAND", ..] => continue,
                ["slotted", name, ..] => {
                    let options = commands.get(name).unwrap_or_else(|| panic!("{}: {line}", page.name()));
                    (options.iter().collect::<Vec<_>>(), &words[2..])
                }
                // A comment of SQL begins with two dashes and a space.
                [option, ..] if option.starts_with("--") && option != "--" => {
                    (commands.values().flatten().collect(), &words[..1])
                }
                [script, ..] if script.starts_with("scripts/") => {
                    assert!(root().join(script).is_file(), "{}: {script}", page.name());
                    continue;
                }
                _ => continue,
            };
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap_or(option);
                assert!(known.iter().any(|known| *known == option), "{}: {option} in {line}", page.name());
                seen += 1;
            }
        }
    }
    assert!(seen >= 20, "{seen} options");
}

fn every_link_has_a_target() {
    let mut paths = files_in(&root().join(".github"), "md");
    paths.extend(["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name)));
    let pages = documents().into_iter().chain(paths.iter().map(|path| Page::read(path)));
    let mut seen = 0;
    for page in pages {
        for link in page.links.iter().filter(|link| !link.starts_with("https://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
            let target = if path.is_empty() { page.path.clone() } else { page.path.with_file_name("").join(path) };
            assert!(target.exists(), "{}: {link}", page.name());
            let found = anchor.is_empty() || Page::read(&target).anchors.iter().any(|known| known == anchor);
            assert!(found, "{}: no heading for {link}", page.name());
            seen += 1;
        }
    }
    assert!(seen >= 30, "{seen} links");
}

fn the_crate_has_what_the_readme_shows() {
    let mut command = Command::new(env!("CARGO"));
    command.args(["package", "--list", "--allow-dirty", "--offline", "--manifest-path"]).arg(root().join("Cargo.toml"));
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).expect("UTF-8");
    let readme = page("README.md");
    let mut seen = 0;
    for link in readme.links.iter().filter(|link| !link.starts_with("https://") && !link.starts_with('#')) {
        let path = link.split('#').next().unwrap_or_default();
        assert!(listed.lines().any(|file| Path::new(file).starts_with(path)), "{link} is not in the crate");
        seen += 1;
    }
    assert!(seen >= 20, "{seen} links");
}

/// The comments of a command become its --help.
fn no_message_names_a_file_of_a_clone() {
    let mut seen = 0;
    for path in files_in(&root().join("src"), "rs") {
        let of_commands = path.parent().is_some_and(|parent| parent.ends_with("cli"));
        let text = fs::read_to_string(&path).expect("a file of Rust");
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let shown = |line: &&str| !line.starts_with("//") || of_commands && line.starts_with("///");
        for line in code.lines().map(str::trim_start).filter(shown) {
            // This one says whose file it is.
            let line = line.replace("docs/columns.md of the repository", "");
            let name = ["scripts/", "docs/", "generated/", "README", "CONTRIBUTING"]
                .into_iter()
                .find(|name| line.contains(name));
            assert_eq!(name, None, "{}: {line}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 1_000, "{seen} lines");
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
    let (readme, benchmark) = (page("README.md"), page("docs/benchmark.md"));
    let (written, benchmark) = (ranges(&readme.text), ranges(&benchmark.text));
    for (numbers, percent) in &written {
        let rounded = |(written, figure): (&&str, &&str)| {
            let decimals = written.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            format!("{:.decimals$}", figure.parse::<f64>().expect("a number")) == **written
        };
        let same = |(figures, unit): &([&str; 3], bool)| unit == percent && numbers.iter().zip(figures).all(rounded);
        assert!(benchmark.iter().any(same), "{numbers:?} are not in docs/benchmark.md");
    }
    assert!(written.len() >= 2, "{written:?}");
}

/// The words in the first cells of a table of the reference that begin with `start`.
fn listed(page: &Page, begin: &str, start: &str) -> Vec<String> {
    let rows = rows_between(page, begin, begin.split_inclusive(' ').next().expect("a heading"));
    let cells = rows.iter().filter_map(|row| row.strip_prefix("| `")?.strip_prefix(start)?.split('`').next());
    let mut listed: Vec<_> = cells.map(str::to_owned).collect();
    listed.sort();
    listed
}

fn the_reference_lists_every_command_option_and_file() {
    let reference = page("docs/reference.md");
    assert_eq!(listed(&reference, "\n## Commands\n", "slotted "), commands().into_keys().collect::<Vec<_>>());
    let generate: Vec<_> =
        options(&slotted(&["generate", "--help"])).iter().map(|option| option.replacen("--", "", 1)).collect();
    assert_eq!(listed(&reference, "\n## Options\n", "--"), generate);
    let files = listed(&reference, "\n### Files\n", "");
    for file in [package(|_| {}), keyed(|_| {})].iter().flat_map(slotted::render::files) {
        assert!(files.contains(&file.name.to_string()), "{}", file.name);
    }
}

fn readme_has_at_most_140_lines() {
    let lines = page("README.md").text.lines().count();
    assert!(lines <= 140, "{lines} lines");
}
