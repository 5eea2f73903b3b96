//! The demo shows counters, proves its totals, and leaves nothing.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::*;

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
    let mut command = slotted(&[&["demo"], arguments].concat());
    command.env("SLOTTED_SERVER", server).env("TMPDIR", folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
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

fn the_demo_runs_the_examples_and_checks_both_totals(server: &Server) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut demo = demo(&server.program().path, &folder, &["--seconds", "1", "--connections", "8"]);
    let output = demo.output().expect("the demo runs");
    let stdout = printed(&output);
    assert!(output.status.success(), "{stdout}");
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
        let mut demo = demo(&server.program().path, &folder, &["--seconds", "60", "--connections", "8"]);
        let mut child = demo.spawn().expect("the demo");
        let mut stdout = child.stdout.take().expect("a pipe");
        let (mut shown, mut byte) = (String::new(), [0]);
        while !shown.contains(moment) {
            assert_eq!(stdout.read(&mut byte).expect("output"), 1, "the demo ended before {moment}: {shown}");
            shown.push(char::from(byte[0]));
        }
        interrupt("-INT", child.id());
        // A full pipe would block the demo.
        std::io::copy(&mut stdout, &mut std::io::sink()).expect("the rest");
        let output = child.wait_with_output().expect("the demo ends");
        let said = printed(&output);
        assert_eq!(output.status.code(), Some(130), "{moment}: {said}");
        assert!(said.ends_with("interrupted; the server is stopped and its files are removed\n"), "{said}");
        assert_nothing_is_left(&folder);
    }
}

fn a_server_that_is_missing_or_does_not_start_is_an_error_that_says_why() {
    let (folder, fake) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let failed = |variables: &[(&str, &Path)]| {
        let mut demo = demo(Path::new(""), &folder, &[]);
        let output = demo.envs(variables.iter().copied()).output().expect("the demo runs");
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]));
        assert_nothing_is_left(&folder);
        printed(&output)
    };
    let path = fake.path().join("mysqld");
    let version = "case \"$*\" in *--version*) echo 'mysqld  Ver 9.7.0 for Linux' ;;";
    write_program(&path, &format!("#!/bin/sh\n{version} *) echo 'the disk is full'; exit 1 ;; esac\n"));
    // The variable precedes the PATH, and the PATH precedes the servers of scripts/servers.
    let (nowhere, fake) = (Path::new("/nowhere"), fake.path());
    for (server, folder) in [(&*path, nowhere), (Path::new(""), fake)] {
        has(&failed(&[("SLOTTED_SERVER", server), ("PATH", folder)]), &["\nerror: ", "the disk is full"]);
    }
    insta::assert_snapshot!("no_server", failed(&[("SLOTTED_SERVER", &nowhere.join("mysqld")), ("PATH", fake)]));
    let none = failed(&[("PATH", nowhere), ("SLOTTED_CACHE", nowhere)]);
    has(&none, &["no mysqld or mariadbd found: SLOTTED_SERVER is not set"]);
}

fn the_program_needs_no_mysql_library() {
    let output = Command::new("ldd").arg(env!("CARGO_BIN_EXE_slotted")).output().expect("ldd runs");
    let libraries = printed(&output).to_lowercase();
    let database = ["mysql", "maria", "ssl", "crypto"].into_iter().find(|library| libraries.contains(library));
    assert!(output.status.success() && database.is_none(), "{libraries}");
}
