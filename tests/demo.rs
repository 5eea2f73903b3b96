//! The demo shows counters, proves its totals, and leaves nothing.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::{Module, Server, write_program};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(a_server_that_is_missing_or_does_not_start_is_an_error_that_says_why)
        .plain(the_program_needs_no_mysql_library)
        .private()
        .on_families(the_demo_runs_the_examples_and_checks_both_totals)
        .on_one_server(ctrl_c_removes_all_files_and_processes);
}

/// The demo, with `folder` as the folder of temporary files.
fn demo(server: &Path, folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    command.arg("demo").args(arguments).env("SLOTTED_SERVER", server).env("TMPDIR", folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Asserts that the folder is empty, and that no process has it in its command line.
fn assert_nothing_is_left(folder: &TempDir) {
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
    let needle = folder.path().display().to_string();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&command).contains(&needle), "process {} runs", process.path().display());
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn the_demo_runs_the_examples_and_checks_both_totals(server: &Server) {
    let folder = tempfile::tempdir().expect("a folder");
    let output =
        demo(&server.daemon(), &folder, &["--seconds", "1", "--connections", "8"]).output().expect("the demo runs");
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", text(&output.stderr));
    for expected in [
        &format!("A private {} server", server.version),
        "| total |\n+-------+\n| 1005  |",
        "The rows are the slots of the counter.",
        "call counter_reset('test2',1000,TRUE);\nQuery OK, 10 rows affected",
        "\u{2588}",
    ] {
        assert!(stdout.contains(expected), "{expected}: {stdout}");
    }
    let exact: Vec<_> = stdout.lines().filter(|line| line.ends_with("exact.")).collect();
    assert_eq!(exact.len(), 2, "{stdout}");
    for line in exact {
        let numbers: Vec<u64> = line.split([' ', ',', ':']).filter_map(|word| word.parse().ok()).collect();
        assert!(matches!(numbers[..], [counted, total] if counted == total && total > 0), "{line}");
    }
    assert_nothing_is_left(&folder);
}

/// During the examples, and under load.
fn ctrl_c_removes_all_files_and_processes(server: &Server) {
    for moment in ["call counter_setup", "connections increment for"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child =
            demo(&server.daemon(), &folder, &["--seconds", "60", "--connections", "8"]).spawn().expect("the demo");
        let mut stdout = child.stdout.take().expect("a pipe");
        let (mut printed, mut byte) = (String::new(), [0]);
        while !printed.contains(moment) {
            assert_eq!(stdout.read(&mut byte).expect("output"), 1, "the demo ended before {moment}: {printed}");
            printed.push(char::from(byte[0]));
        }
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
        // A full pipe would block the demo.
        std::io::copy(&mut stdout, &mut std::io::sink()).expect("the rest");
        let output = child.wait_with_output().expect("the demo ends");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{moment}: {stderr}");
        assert!(stderr.ends_with("interrupted; the server is stopped and its files are removed\n"), "{stderr}");
        assert_nothing_is_left(&folder);
    }
}

fn a_server_that_is_missing_or_does_not_start_is_an_error_that_says_why() {
    let (folder, fake) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let failed = |server: &Path| {
        let Output { status, stdout, stderr } = demo(server, &folder, &[]).output().expect("the demo runs");
        assert_eq!((status.code(), &*text(&stdout)), (Some(2), ""));
        assert_nothing_is_left(&folder);
        text(&stderr)
    };
    insta::assert_snapshot!("no_server", failed(Path::new("/nowhere/mysqld")));
    let path = fake.path().join("mysqld");
    let version = "case \"$*\" in *--version*) echo 'mysqld  Ver 9.7.0 for Linux' ;;";
    write_program(&path, &format!("#!/bin/sh\n{version} *) echo 'the disk is full'; exit 1 ;; esac\n"));
    let stderr = failed(&path);
    assert!(stderr.contains("\nerror: ") && stderr.contains("the disk is full"), "{stderr}");
}

fn the_program_needs_no_mysql_library() {
    let output = Command::new("ldd").arg(env!("CARGO_BIN_EXE_slotted")).output().expect("ldd runs");
    let libraries = text(&output.stdout).to_lowercase();
    for library in ["mysql", "maria", "ssl", "crypto"] {
        assert!(!libraries.contains(library), "{libraries}");
    }
}
