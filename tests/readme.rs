//! README is true to the letter: its SQL and its commands run, its tables are what the code has.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use slotted::package::{Detail, Options, PackageError};

use crate::support::transcript::{expected, printed, timeless};
use crate::support::{Module, Schema, Server, keyed, package, root};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(every_statement_answers_as_printed)
        .on_servers(every_statement_of_the_documents_runs)
        .on_servers(every_command_runs)
        .plain(the_error_table_is_the_enum)
        .plain(the_option_table_has_every_option)
        .plain(files_and_links_exist);
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("README.md")
}

/// The contents of all fenced blocks of a language.
fn blocks(readme: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        if let Some(fence) = line.strip_prefix("```") {
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            if fence == language {
                blocks.push(block.join("\n"));
            }
        }
    }
    blocks
}

fn every_statement_answers_as_printed(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    schema.install(&keyed(|_| {}));
    let readme = readme();
    let transcripts: Vec<_> =
        blocks(&readme, "text").into_iter().filter(|block| block.starts_with("mysql> ")).collect();
    assert!(transcripts.len() >= 6, "{transcripts:#?}");
    let text = transcripts.join("\n");
    let wanted = expected(text.lines());
    let input: String = wanted.iter().map(|(statement, _)| format!("{statement}\n")).collect();
    let said = schema.client().pipe(&["-t", "-vvv"], &input);
    assert!(said.success, "{said:?}");
    let got = printed(&said.stdout);
    assert_eq!(got.len(), wanted.len(), "{}", said.stdout);
    for ((statement, wanted), (_, got)) in wanted.iter().zip(&got) {
        let line = |line: &str| {
            // README says that MariaDB counts rows otherwise.
            let rows = line.starts_with("Query OK") && !server.is_mysql();
            if rows { "Query OK".to_owned() } else { timeless(line) }
        };
        let wanted: Vec<_> = wanted.iter().map(|text| line(text)).collect();
        let got: Vec<_> = got.iter().map(|text| line(text)).collect();
        assert_eq!(wanted, got, "{statement}");
    }
    for block in blocks(&readme, "sql") {
        schema.run(&block);
    }
}

/// All documents beside the README.
fn documents() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs")).expect("docs").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn every_statement_of_the_documents_runs(server: &Server) {
    for document in documents() {
        let text = fs::read_to_string(document).expect("a document");
        let schema = server.schema();
        schema.install(&package(|_| {}));
        for block in blocks(&text, "sql") {
            schema.run(&block);
        }
    }
}

/// A folder with `mysql` and `slotted` in it, as a reader has them on the PATH, logged in to this server.
fn programs(schema: &Schema<'_>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let command = schema.client().command(&[], root());
    let mut words = vec![command.get_program().to_owned()];
    words.extend(command.get_args().map(ToOwned::to_owned));
    // The last one names the schema, which README's command does itself.
    words.pop();
    let quoted: Vec<_> = words.iter().map(|word| format!("'{}'", word.to_string_lossy())).collect();
    for (name, command) in
        [("mysql", quoted.join(" ")), ("slotted", format!("'{}'", env!("CARGO_BIN_EXE_slotted")))]
    {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\nexec {command} \"$@\"\n")).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    folder
}

fn every_command_runs(server: &Server) {
    let ci = fs::read_to_string(root().join(".ci/run")).expect(".ci/run");
    let commands = blocks(&readme(), "sh");
    let commands: Vec<_> = commands.iter().flat_map(|block| block.lines()).collect();
    assert!(commands.len() >= 7, "{commands:#?}");
    for command in commands {
        if command.starts_with("scripts/") {
            assert!(ci.contains(&format!("step {command}")), "CI does not run {command}");
            continue;
        }
        // Each in a schema `mydb` of its own, and in a folder that has what a clone has.
        let schema = Schema::named(server, "mydb", "");
        let programs = programs(&schema);
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink(root().join("generated"), folder.path().join("generated")).expect("a link");
        let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap_or_default());
        let output = Command::new("bash")
            .args(["-o", "pipefail", "-ec", command])
            .env("PATH", path)
            .current_dir(folder.path())
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        if command.contains("mysql mydb") {
            let routines = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'mydb'";
            assert!(schema.first::<u64>(routines) >= 6, "{command}");
        }
    }
}

fn the_error_table_is_the_enum() {
    let readme = readme();
    let (_, rest) = readme.split_once("<!-- errors:").expect("a mark");
    let (table, _) = rest.split_once("<!-- end -->").expect("a mark");
    let rows: Vec<_> = table.lines().skip(3).collect();
    let row = |error: PackageError| {
        let (head, detail, tail) = error.sentence(&Options::default());
        let detail = match detail {
            Detail::None => "",
            Detail::Name => "'NAME'",
            Detail::Slots => "SLOTS",
            Detail::Column => "COLUMN",
        };
        format!("| {} | {head}{detail}{tail} | {} |", error.number(), error.remedy())
    };
    assert_eq!(rows, PackageError::ALL.map(row));
}

fn the_option_table_has_every_option() {
    let help = Command::new(env!("CARGO_BIN_EXE_slotted")).args(["generate", "-h"]).output().expect("help");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let mut options: Vec<_> = help
        .split([' ', '\n'])
        .filter(|word| word.starts_with("--") && word.len() > 2 && *word != "--help")
        .map(|word| word.trim_end_matches([',', ':']).to_owned())
        .collect();
    options.sort();
    options.dedup();
    let readme = readme();
    let mut listed: Vec<_> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `--"))
        .map(|line| format!("--{}", line.split('`').next().unwrap_or_default()))
        .collect();
    listed.sort();
    assert_eq!(listed, options);
}

fn files_and_links_exist() {
    let readme = readme();
    for document in documents().into_iter().chain([root().join("README.md")]) {
        let text = fs::read_to_string(&document).expect("a document");
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| !link.is_empty() && !link.starts_with("https:")) {
            assert!(document.parent().expect("a folder").join(link).exists(), "{link} in {}", document.display());
        }
    }
    for file in [package(|_| {}), keyed(|_| {})].iter().flat_map(slotted::render::files) {
        assert!(readme.contains(&format!("| `{}` |", file.name)), "{}", file.name);
    }
}
