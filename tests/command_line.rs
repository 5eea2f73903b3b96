//! The command line: help, error messages, exit codes and output.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use slotted::render;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .plain(help_is_as_reviewed)
        .plain(invalid_arguments_are_rejected)
        .plain(check_names_the_files_that_differ_and_generate_writes_them)
        .plain(a_closed_pipe_is_no_error)
        .plain(stdout_is_setup_sql_and_the_command_in_its_banner_renders_it_again)
        .plain(an_old_cargo_is_told_which_rust_is_needed);
}

fn slotted(arguments: &[&str], folder: &Path) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    let output = command.args(arguments).current_dir(folder).env_remove("CLICOLOR_FORCE").output();
    let Output { status, stdout, stderr } = output.expect("slotted runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

fn help_is_as_reviewed() {
    let help = |arguments: &[&str]| {
        let (code, text, _) = slotted(arguments, root());
        assert!(code == Some(0) && text.lines().count() <= 90, "{arguments:?}: {text}");
        text
    };
    let of_all = help(&["--help"]);
    let (_, commands) = of_all.split_once("Commands:\n").expect("commands");
    for command in commands.lines().map_while(|line| line.split_whitespace().next()) {
        insta::assert_snapshot!(format!("help_{command}"), help(&[command, "--help"]));
    }
    insta::assert_snapshot!("help", of_all);
    assert_eq!(help(&["--version"]), format!("slotted {}\n", env!("CARGO_PKG_VERSION")));
}

fn invalid_arguments_are_rejected() {
    let long = "x".repeat(60);
    let cases = [
        "",
        "bench --connections 8,0",
        "advise --url mysql://a@b --host c",
        "advise --url 'mysql://user:12#s3cret@host/db'",
        "advise --url mysql://user:12/s3cret@host/db",
        "advise --url mysql://user:12?s3cret@host/db",
        "advise --url mysql://user:s3cret@host/db?ssl-mode=REQUIRED",
        "advise --url mysql://user:s3cret@host:port/db",
        "advise --url postgres://user:s3cret@host",
        "status --ssl-mode sometimes",
        "status --defaults-file a --no-defaults",
        // A command without a server has no host.
        "generate -h",
        "generate nothing",
        "generate --stdout",
        "generate counters --slots 0",
        "generate counters --slots 10001",
        "generate counters --pick first",
        "generate counters --stdout --check",
        "generate counters --stdout --out x",
        "generate counters --collation latin1_swedish_ci",
        "generate counters --collation 'utf8mb4_bin; DROP'",
        "generate counters --table 'my table'",
        "generate counters --table counter_totals",
        &format!("generate counters --prefix {long}"),
        "generate counters --key 'url VARCHAR(255)'",
        "generate slotted_counters --slots per-counter",
        "generate slotted_counters --key 'url TEXT'",
        &format!("generate --column {long}.views --key 'id INT'"),
        "generate --column articles.views",
        "generate --column articles",
        "generate counters --column articles.views --key 'id INT'",
        "generate --column articles.views --key 'id INT' --keep Views",
        "generate bounded_counters --slots 20",
        &format!("generate bounded_counters --table {}", "t".repeat(59)),
        "generate counters-fixed --slots per-counter",
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let mut printed = String::new();
    for words in cases {
        let arguments = shlex::split(words).expect(words);
        let (code, stdout, stderr) = slotted(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), folder.path());
        assert_eq!((code, &*stdout), (Some(2), ""), "{words}");
        // A password is not in an error.
        assert!(!stderr.contains("s3cret"), "{stderr}");
        printed += &format!("{}\n{}\n", format!("$ slotted {words}").trim_end(), stderr.trim_end());
    }
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "no file is written");
    insta::assert_snapshot!("rejected", printed);
}

fn check_names_the_files_that_differ_and_generate_writes_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| slotted(&[&["generate", "--out", "here"], arguments].concat(), folder.path());
    let differs = |files: &str| {
        let (code, stdout, stderr) = run(&["--check"]);
        assert_eq!((code, stdout.starts_with(files)), (Some(1), true), "{stdout}{stderr}");
        assert!(stderr.contains("hint: run it without --check, and review the differences"), "{stderr}");
    };
    differs("here/mysql/counters/create_procedures.sql\nhere/mysql/counters/create_tables.sql\n");
    assert_eq!(run(&[]).0, Some(0));
    assert_eq!(run(&["--check"]), (Some(0), String::new(), String::new()));
    let script = folder.path().join("here/mysql/counters/setup.sql");
    let rendered = fs::read_to_string(&script).expect("a script");
    for edited in [rendered.replace("COALESCE(p_slots, 5)", "COALESCE(p_slots, 6)"), format!("{rendered}\n")] {
        assert_ne!(edited, rendered);
        fs::write(&script, &edited).expect("an edit");
        differs("here/mysql/counters/setup.sql\n");
        assert_eq!(fs::read_to_string(&script).expect("a script"), edited, "--check writes no file");
        let (_, _, wrote) = run(&[]);
        assert_eq!(wrote.matches("wrote").count(), 1, "{wrote}");
        assert_eq!(fs::read_to_string(&script).expect("a script"), rendered);
    }
    fs::write(folder.path().join("here/mysql/counters/left_over.sql"), "SELECT 1;\n").expect("a file");
    differs("here/mysql/counters/left_over.sql");

    // Each package has a folder, which cannot have the name of a file.
    for (words, name) in [
        ("counters --slots 64", "counters-fixed"),
        ("slotted_counters --table hits", "hits"),
        ("--column pages.hits --key 'id INT'", "pages_hits"),
    ] {
        let words = shlex::split(words).expect(words);
        assert_eq!(run(&words.iter().map(String::as_str).collect::<Vec<_>>()).0, Some(0));
        assert!(folder.path().join("here/mysql").join(name).join("setup.sql").is_file(), "{name}");
    }
    let (code, _, stderr) = slotted(&["generate", "--out", "here/mysql/counters/setup.sql"], folder.path());
    let error = "error: cannot create the folder here/mysql/counters/setup.sql/mysql/counters: ";
    assert!(code == Some(2) && stderr.starts_with(error), "{stderr}");
}

/// `slotted generate counters --stdout | head -1`: a reader that has ended is no error.
fn a_closed_pipe_is_no_error() {
    let folder = tempfile::tempdir().expect("a folder");
    // The folder does not exist: all files differ.
    for (arguments, code) in [(["counters", "--stdout"], 0), (["counters", "--check"], 1)] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
        command.arg("generate").args(arguments).current_dir(folder.path()).stdout(writer);
        let output = command.output().expect("slotted runs");
        assert!(output.status.code() == Some(code) && !printed(&output).contains("panic"), "{}", printed(&output));
    }
}

fn stdout_is_setup_sql_and_the_command_in_its_banner_renders_it_again() {
    let words = "counters --table my$table --prefix a_$ --definer \"it's `my` account@%\" --collation utf8mb4_bin \
                 --security invoker --no-function";
    let setup = &render::files(&parsed(words))[0];
    let (_, line) = setup.text.lines().next().expect("a banner").split_once("To change it: ").expect("a command");
    let command = line.replacen("slotted", env!("CARGO_BIN_EXE_slotted"), 1);
    let output = Command::new("sh").arg("-c").arg(format!("{command} --stdout")).output().expect("a shell");
    assert_eq!(printed(&output), setup.text, "{line}");
}

/// What the scripts say before they begin.
fn an_old_cargo_is_told_which_rust_is_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("cache");
    // The answer of Debian 12.
    write_program(&folder.path().join("cargo"), "#!/bin/sh\n[ \"$*\" = --version ] && echo 'cargo 1.65.0'\n");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").expect("a path"));
    for script in ["scripts/demo", "scripts/test"] {
        let output = Command::new(root().join(script)).env("PATH", &path).env("SLOTTED_CACHE", &cache).output();
        let output = output.expect("the script runs");
        assert_eq!(output.status.code(), Some(2), "{script}");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "error: Rust 1.88 or later is needed, found 1.65.0\nhint: install it with rustup, for example: rustup update stable\n"
        );
        assert!(fs::read_dir(&cache).is_err(), "{script} has created the cache");
    }
}
