//! The command line: help, error messages, exit codes and output.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use slotted::package::committed;
use slotted::render;

use crate::support::{Module, package, root};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(help_is_as_reviewed)
        .plain(h_is_the_host_and_help_the_help)
        .plain(invalid_arguments_are_rejected)
        .plain(the_committed_files_are_up_to_date)
        .plain(check_fails_if_a_file_differs)
        .plain(generate_writes_only_files_that_differ)
        .plain(stdout_is_setup_sql)
        .plain(a_closed_pipe_is_no_error)
        .plain(the_command_in_the_banner_renders_the_file_again);
}

fn slotted(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slotted"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("CLICOLOR_FORCE")
        .output()
        .expect("slotted runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// The commands of `slotted --help`.
const COMMANDS: [&str; 7] = ["generate", "install", "status", "uninstall", "demo", "bench", "advise"];

fn help_is_as_reviewed() {
    let help = |arguments: &[&str]| {
        let output = slotted(arguments, root());
        assert!(output.status.success());
        text(&output.stdout)
    };
    let of_all = help(&["--help"]);
    let listed = of_all.split_once("Commands:\n").expect("commands").1.lines().take_while(|line| !line.is_empty());
    let listed: Vec<_> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(listed, COMMANDS);
    insta::assert_snapshot!("help", of_all);
    for command in COMMANDS {
        let text = help(&[command, "--help"]);
        assert!(text.lines().count() <= 90, "{command}: {} lines", text.lines().count());
        insta::assert_snapshot!(format!("help_{command}"), text);
    }
    let version = slotted(&["--version"], root());
    assert_eq!(text(&version.stdout), format!("slotted {}\n", env!("CARGO_PKG_VERSION")));
    // Without a command, slotted fails.
    assert_eq!(slotted(&[], root()).status.code(), Some(2));
}

/// As in the clients of the servers. A command without a server has neither.
fn h_is_the_host_and_help_the_help() {
    for command in ["install", "status", "uninstall", "advise", "bench"] {
        let help = text(&slotted(&[command, "--help"], root()).stdout);
        for option in ["-h, --host", "-P, --port", "-S, --socket", "-u, --user", "-p, --password", "-D, --database"] {
            assert!(help.contains(option), "{command}: {option}: {help}");
        }
    }
    let output = slotted(&["status", "-h", "no.such.host.invalid"], root());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: cannot connect to no.such.host.invalid:3306: "), "{}", text(&output.stderr));
    assert_eq!(slotted(&["generate", "-h"], root()).status.code(), Some(2));
}

fn invalid_arguments_are_rejected() {
    let long = "x".repeat(60);
    let cases: &[&[&str]] = &[
        &["bench", "--connections", "8,0"],
        &["advise", "--url", "mysql://a@b", "--host", "c"],
        &["advise", "--url", "mysql://a@b", "--url", "mysql://a@c"],
        &["status", "--ssl-mode", "sometimes"],
        &["status", "--defaults-file", "a", "--no-defaults"],
        &["generate", "nothing"],
        &["generate", "--slots", "20"],
        &["generate", "--stdout"],
        &["generate", "counters", "--slots", "0"],
        &["generate", "counters", "--slots", "10001"],
        &["generate", "counters", "--slots", "many"],
        &["generate", "counters", "--pick", "first"],
        &["generate", "counters", "--stdout", "--check"],
        &["generate", "counters", "--stdout", "--out", "x"],
        &["generate", "counters", "--collation", "latin1_swedish_ci"],
        &["generate", "counters", "--collation", "utf8mb4_bin; DROP"],
        &["generate", "counters", "--table", ""],
        &["generate", "counters", "--table", "my table"],
        &["generate", "counters", "--prefix", "it's_"],
        &["generate", "counters", "--table", "counter_totals"],
        &["generate", "counters", "--prefix", &long],
        &["generate", "counters", "--key", "url VARCHAR(255)"],
        &["generate", "slotted_counters", "--slots", "per-counter"],
        &["generate", "slotted_counters", "--key", "url TEXT"],
        &["generate", "slotted_counters", "--key", "url VARCHAR(800)"],
        &["generate", "slotted_counters", "--key", "a INT, a INT"],
        &["generate", "--column", &format!("{long}.views"), "--key", "id INT"],
        &["generate", "--column", "articles.views"],
        &["generate", "--column", "articles"],
        &["generate", "counters", "--column", "articles.views", "--key", "id INT"],
        &["generate", "--column", "articles.views", "--key", "id INT", "--keep", "Views"],
        &["generate", "bounded_counters", "--slots", "20"],
        &["generate", "counters-fixed", "--slots", "per-counter"],
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let mut printed = String::new();
    for arguments in cases {
        let output = slotted(arguments, folder.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        printed += &format!("$ slotted {arguments:?}\n{}\n", text(&output.stderr).trim_end());
    }
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "no file is written");
    insta::assert_snapshot!("rejected", printed);
}

fn the_committed_files_are_up_to_date() {
    let output = slotted(&["generate", "--check"], root());
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}

fn check_fails_if_a_file_differs() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = || slotted(&["generate", "--check", "--out", "here"], folder.path());
    // The folder does not exist.
    let output = check();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("here/mysql/counters/create_procedures.sql\nhere/mysql/counters/create_tables.sql\n"));

    assert!(slotted(&["generate", "--out", "here"], folder.path()).status.success());
    assert!(check().status.success());
    let script = folder.path().join("here/mysql/counters/setup.sql");
    let rendered = fs::read_to_string(&script).expect("a script");
    let edits: [(&str, String); 2] =
        [("a changed line", rendered.replace("COALESCE(p_slots, 5)", "COALESCE(p_slots, 6)")), ("one more line", format!("{rendered}\n"))];
    for (edit, text_with_edit) in edits {
        assert_ne!(text_with_edit, rendered);
        fs::write(&script, &text_with_edit).expect("an edit");
        let output = check();
        assert_eq!(output.status.code(), Some(1), "{edit}");
        assert_eq!(text(&output.stdout), "here/mysql/counters/setup.sql\n");
        assert!(text(&output.stderr).contains("hint: run it without --check, and review the differences"), "{}", text(&output.stderr));
        assert_eq!(fs::read_to_string(&script).expect("a script"), text_with_edit, "--check writes no file");
    }
    fs::write(&script, &rendered).expect("the rendered text");
    fs::write(folder.path().join("here/mysql/counters/left_over.sql"), "SELECT 1;\n").expect("a file");
    let output = check();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("left_over.sql"));
}

fn generate_writes_only_files_that_differ() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(slotted(&["generate"], folder.path()).status.success());
    for package in committed() {
        let out = folder.path().join("generated").join(package.folder());
        for file in render::files(&package) {
            assert_eq!(fs::read_to_string(out.join(file.name)).expect("a file"), file.text);
        }
    }
    let again = slotted(&["generate"], folder.path());
    assert!(!text(&again.stderr).contains("wrote"), "{}", text(&again.stderr));

    // One package with options, into another folder.
    let arguments = ["generate", "counters", "--slots", "64", "--out", "mine"];
    assert!(slotted(&arguments, folder.path()).status.success());
    let script = fs::read_to_string(folder.path().join("mine/mysql/counters-fixed/setup.sql")).expect("a script");
    assert!(script.contains("CONNECTION_ID()") && script.contains("64"), "{script}");

    // A folder that cannot be created is an error.
    fs::write(folder.path().join("file"), "").expect("a file");
    let output = slotted(&["generate", "--out", "file"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: cannot create the folder file/mysql/counters: "));
}

fn stdout_is_setup_sql() {
    let output = slotted(&["generate", "counters", "--stdout"], root());
    assert!(output.status.success());
    assert_eq!(text(&output.stdout), render::setup(&package(|_| {})));
    assert_eq!(text(&output.stderr), "");
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
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("panic"), "{}", text(&output.stderr));
    }
}

fn the_command_in_the_banner_renders_the_file_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let hostile = [
        "generate",
        "counters",
        "--stdout",
        "--table",
        "my$table",
        "--prefix",
        "a_$",
        "--definer",
        "it's `my` account@%",
        "--collation",
        "utf8mb4_bin",
        "--security",
        "invoker",
        "--no-function",
    ];
    let first = text(&slotted(&hostile, folder.path()).stdout);
    let (_, line) = first.lines().next().expect("a banner").split_once("To change it: ").expect("a command");
    let command = line.replacen("slotted", env!("CARGO_BIN_EXE_slotted"), 1);
    let output = Command::new("sh").arg("-c").arg(format!("{command} --stdout")).output().expect("a shell");
    assert_eq!(text(&output.stdout), first, "{line}");
}
