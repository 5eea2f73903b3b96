//! The documents are true: their examples run, their tables and figures agree with the code and the measurements.
//!
//! README and every page of docs/ and examples/ is a script. The test runs its blocks from top to bottom, as a reader would, in an
//! empty database `mydb`, in a folder that has `generated/`, with `mysql`, `mysqldump` and `slotted` on the PATH:
//!
//! - `sh`: commands, with the files and options of MySQL, which the test replaces on MariaDB. Those that begin with `scripts/` are steps of
//!   .ci/run instead, because they take minutes. A loop without an end runs once.
//! - `sql`: statements for the client. A block that begins with `-- NAME.sql` is a file that later commands source.
//! - `text`: a transcript if it begins with `mysql> `. Otherwise it is only shown.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use pulldown_cmark::{CodeBlockKind, Event, Options as Extensions, Parser, Tag, TagEnd};
use slotted::package::committed;

use crate::support::transcript::{expected, printed, timeless};
use crate::support::{Module, Schema, Server, keyed, package, root, with_collation, write_program};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(every_block_is_run_or_only_shown)
        .plain(every_command_exists_with_its_options)
        .plain(ci_runs_the_scripts_of_the_readme)
        .plain(every_link_has_a_target)
        .plain(the_crate_has_what_the_readme_shows)
        .plain(no_message_names_a_file_of_a_clone)
        .plain(every_range_of_the_readme_is_in_the_benchmark)
        .plain(the_error_table_has_the_errors_of_the_sql)
        .plain(the_option_table_has_every_option)
        .plain(the_command_table_has_every_command)
        .plain(the_file_table_has_every_file)
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
                    block = Some(Block { line: text[..range.start].lines().count() + 1, language, text: String::new() });
                }
                Event::End(TagEnd::CodeBlock) => blocks.extend(block.take()),
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|text| anchor(&text))),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => links.push(dest_url.into_string()),
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

/// All Markdown files in a folder and the folders in it.
fn in_folder(folder: &Path) -> Vec<Page> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let page = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => in_folder(&path),
        Some(extension) if extension == "md" => vec![Page::read(&path)],
        _ => Vec::new(),
    };
    paths.into_iter().flat_map(page).collect()
}

/// README, docs/ and examples/.
fn documents() -> Vec<Page> {
    let mut documents = vec![page("README.md")];
    documents.extend(in_folder(&root().join("docs")));
    documents.extend(in_folder(&root().join("examples")));
    documents
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
    let command = schema.client().command(&[], root());
    let mut words = vec![command.get_program().to_owned()];
    words.extend(command.get_args().map(ToOwned::to_owned));
    // The last one names the schema, as the commands do themselves.
    words.pop();
    let dump = schema.server.dump();
    let quoted = |word: &OsStr| format!("'{}'", word.to_string_lossy());
    let options: Vec<_> = words[1..].iter().map(|word| quoted(word)).collect();
    let with_options = |program: &OsStr| format!("{} {}", quoted(program), options.join(" "));
    for (name, command) in [
        ("mysql", with_options(&words[0])),
        ("mysqldump", with_options(dump.as_os_str())),
        ("slotted", quoted(OsStr::new(env!("CARGO_BIN_EXE_slotted")))),
    ] {
        let path = folder.path().join(name);
        write_program(&path, &format!("#!/bin/sh\nexec {command} \"$@\"\n"));
    }
    folder
}

fn every_example_runs(server: &Server) {
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
                _ if block.is_transcript() => play(&schema, &block.text, &place),
                _ => {}
            }
        }
    }
}

/// Runs a command of a shell. After one that pipes a script into the client, the routines of a package exist.
pub fn run(schema: &Schema<'_>, programs: &Path, folder: &Path, command: &str, place: &str) {
    let mut command = command.replace("while sleep 10;", "for once in 1;");
    if !schema.server.is_mysql() {
        command = command.replace("/mysql/", "/mariadb/");
        for package in ["counters", "slotted_counters"] {
            command = command.replace(&format!("slotted generate {package}"), &format!("slotted generate --server mariadb {package}"));
        }
    }
    let installed = || {
        schema.first::<u64>("SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()")
    };
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
        assert!(installed() >= 6, "{place}: {command} has installed nothing");
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

fn every_block_is_run_or_only_shown() {
    let mut count = BTreeMap::new();
    for page in documents() {
        for block in &page.blocks {
            let kind = match block.language.as_str() {
                "sh" | "sql" => block.language.as_str(),
                "text" if block.is_transcript() => "transcript",
                "text" => "shown",
                // tests/migrations.rs executes these.
                "console" | "python" | "js" | "ruby" if page.name() == "docs/migrations.md" => "migration",
                other => panic!("{}:{}: {other} is not run; write sh, sql or text", page.name(), block.line),
            };
            *count.entry(kind.to_owned()).or_insert(0) += 1;
        }
    }
    for kind in ["sh", "sql", "transcript"] {
        assert!(count[kind] >= 7, "{count:?}");
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
            let mut words = line.split_whitespace();
            match words.next() {
                // COMMAND stands for any.
                Some("slotted") => {
                    let Some(name) = words.next().filter(|name| *name != "COMMAND") else { continue };
                    let known = commands.get(name).unwrap_or_else(|| panic!("{}: {line}", page.name()));
                    let options = words.take_while(|word| *word != "|").filter(|word| word.starts_with("--"));
                    for option in options.map(|option| option.split('=').next().unwrap_or(option)) {
                        assert!(known.iter().any(|known| known == option), "{}: {option} in {line}", page.name());
                        seen += 1;
                    }
                }
                // SQL comments of migration tools begin with two dashes and a space.
                Some("--") => {}
                Some(option) if option.starts_with("--") => {
                    let option = option.split('=').next().unwrap_or(option);
                    assert!(commands.values().flatten().any(|known| known == option), "{}: {option}", page.name());
                    seen += 1;
                }
                Some(script) if script.starts_with("scripts/") => {
                    assert!(root().join(script).is_file(), "{}: {script}", page.name());
                    seen += 1;
                }
                _ => {}
            }
        }
    }
    assert!(seen >= 20, "{seen} options and scripts");
}

fn ci_runs_the_scripts_of_the_readme() {
    let ci = fs::read_to_string(root().join(".ci/run")).expect(".ci/run");
    let readme = page("README.md").text;
    for script in ["scripts/demo", "scripts/test"] {
        assert!(readme.contains(&format!("`{script}`")), "README does not name {script}");
        assert!(ci.contains(&format!("step {script}")), "CI does not run {script}");
    }
}

fn every_link_has_a_target() {
    let mut pages = documents();
    let top = fs::read_dir(root()).expect("the root").map(|entry| entry.expect("an entry").path());
    let top = top.filter(|path| path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("README.md"));
    pages.extend(top.map(|path| Page::read(&path)));
    pages.extend(in_folder(&root().join(".github")));
    let mut seen = 0;
    for page in &pages {
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
    let files: Vec<_> = listed.lines().collect();
    let readme = page("README.md");
    let local = readme.links.iter().filter(|link| !link.starts_with("https://") && !link.starts_with('#'));
    let mut seen = 0;
    for link in local {
        let path = link.split('#').next().unwrap_or_default();
        assert!(files.iter().any(|file| Path::new(file).starts_with(path)), "{link} is not in the crate");
        seen += 1;
    }
    assert!(seen >= 20, "{seen} links");
}

/// The parts of a line of Rust that are no comment for developers: code, and the comments that become --help.
fn shown(line: &str, of_commands: bool) -> bool {
    let line = line.trim_start();
    !line.starts_with("//") || of_commands && line.starts_with("///")
}

fn no_message_names_a_file_of_a_clone() {
    let mut folders = vec![root().join("src")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let of_commands = path.parent().is_some_and(|parent| parent.ends_with("cli"));
            let text = fs::read_to_string(&path).expect("a file of Rust");
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            for line in code.lines().filter(|line| shown(line, of_commands)) {
                let name = ["scripts/", "docs/", "generated/", "README", "CONTRIBUTING"].into_iter().find(|name| line.contains(name));
                // This one says whose file it is.
                let name = name.filter(|_| !line.contains("docs/columns.md of the repository"));
                assert_eq!(name, None, "{}: {line}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 1_000, "{seen} lines");
}

/// Figures with their range, `2.4 times (2.1 to 3.2)` or `77 % (73 to 121)`: each number as it is written, and whether
/// they are percentages.
fn ranges(text: &str) -> Vec<([&str; 3], bool)> {
    let range = |(at, _): (usize, &str)| {
        let (least, most) = text[at + 1..].split_once(')')?.0.split_once(" to ")?;
        let before = text[..at].trim_end();
        let percent = before.ends_with(" %");
        let before = before.trim_end_matches(" %").trim_end_matches(" times");
        let numbers = [before.rsplit([' ', '\n']).next()?, least, most];
        let numbers = numbers.map(|number| number.trim_end_matches(" %").trim_end_matches('x'));
        numbers.iter().all(|number| number.parse::<f64>().is_ok()).then_some((numbers, percent))
    };
    text.match_indices('(').filter_map(range).collect()
}

/// README may round them.
fn every_range_of_the_readme_is_in_the_benchmark() {
    let benchmark = page("docs/benchmark.md");
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let benchmark = ranges(&benchmark.text);
    let mut seen = 0;
    let readme = page("README.md");
    for (written, percent) in ranges(&readme.text) {
        let rounded = |(written, figure): (&str, &str)| {
            let decimals = written.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            (number(written) - number(figure)).abs() <= 0.5 * 0.1_f64.powi(decimals as i32) + 1e-9
        };
        let same = |(figure, unit): &([&str; 3], bool)| *unit == percent && written.into_iter().zip(*figure).all(rounded);
        assert!(benchmark.iter().any(same), "{} ({} to {}) is not in docs/benchmark.md", written[0], written[1], written[2]);
        seen += 1;
    }
    assert!(seen >= 2, "{seen} ranges");
}

/// The numbers from 30001 to 30099 in a text, each with its place.
fn numbers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let number = move |(at, _): (usize, &'static str)| Some((at, text.get(at..at + 5)?));
    let places = text.match_indices("300").map(|(at, _)| (at, ""));
    let of_package = |(_, number): &(usize, &str)| number.parse::<u32>().is_ok_and(|number| number > 30_000);
    places.filter(move |&(at, _)| !text[..at].ends_with(|c: char| c.is_ascii_digit())).filter_map(number).filter(of_package)
}

/// The message of a number in the SQL has the words of its row which are not those of a call, such as NAME.
fn the_error_table_has_the_errors_of_the_sql() {
    let on_nodes = package(|options| options.cluster = true);
    let of_column = crate::rollup::of_column("articles.views", "id BIGINT", |_| {});
    let packages = committed().into_iter().chain([on_nodes, of_column]);
    let rendered: String = packages.flat_map(|package| slotted::render::files(&package)).map(|file| file.text).collect();
    let reference = page("docs/reference.md");
    let rows = rows_between(&reference, "<!-- errors:", "<!-- end -->");
    let listed: BTreeSet<_> = rows.iter().filter_map(|row| row.split(' ').nth(1)).collect();
    assert_eq!(listed, numbers(&rendered).map(|(_, number)| number).collect());
    for row in rows {
        let mut cells = row.trim_start_matches("| ").split(" | ");
        let (number, message) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        let words: Vec<_> = message.split(' ').collect();
        let of_call = |word: &&str| word.trim_matches(['\'', ':', ',']).chars().all(char::is_uppercase);
        let own = words.split(of_call).max_by_key(|words| words.len()).unwrap_or_default().join(" ");
        let own = own.trim_end_matches([',', ':']);
        let says = |(at, _): (usize, &str)| rendered[at..].chars().take(300).collect::<String>().contains(own);
        assert!(numbers(&rendered).filter(|(_, one)| *one == number).any(says), "{number}: {own}");
    }
}

fn the_option_table_has_every_option() {
    let reference = page("docs/reference.md");
    let rows = rows_between(&reference, "## Options\n", "\n## ");
    let mut listed: Vec<_> = rows
        .iter()
        .filter_map(|line| line.strip_prefix("| `--"))
        .map(|line| format!("--{}", line.split('`').next().unwrap_or_default()))
        .collect();
    listed.sort();
    assert_eq!(listed, options(&slotted(&["generate", "--help"])));
}

fn the_command_table_has_every_command() {
    let reference = page("docs/reference.md");
    let rows = rows_between(&reference, "## Commands\n", "\n## ");
    let mut listed: Vec<_> = rows
        .iter()
        .filter_map(|line| line.strip_prefix("| `slotted "))
        .map(|line| line.split('`').next().unwrap_or_default().to_owned())
        .collect();
    listed.sort();
    assert_eq!(listed, commands().into_keys().collect::<Vec<_>>());
}

fn the_file_table_has_every_file() {
    let reference = page("docs/reference.md");
    let rows = rows_between(&reference, "### Files\n", "\n### ");
    for file in [package(|_| {}), keyed(|_| {})].iter().flat_map(slotted::render::files) {
        let row = format!("| `{}` |", file.name);
        assert!(rows.iter().any(|line| line.starts_with(&row)), "{}", file.name);
    }
}

fn readme_has_at_most_140_lines() {
    let lines = page("README.md").text.lines().count();
    assert!(lines <= 140, "{lines} lines");
}
