//! The demo works, its totals are correct, and it removes all its files and processes.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{Module, Server, root, write_program};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(a_missing_server_is_an_error_with_a_hint)
        .plain(a_failed_start_prints_the_log_of_the_server)
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

/// A temporary table of another server. A server that starts with this folder as its tmpdir would remove it.
const OF_ANOTHER_SERVER: &str = "#sql-temptable-1-1-1.MAD";

/// Asserts that the folder has only the file from before, and that no process has the folder in its command line.
fn assert_nothing_is_left(folder: &TempDir) {
    let left: Vec<_> = fs::read_dir(folder.path()).expect("the folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, [OF_ANOTHER_SERVER]);
    let needle = folder.path().display().to_string();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&command).contains(&needle), "process {} runs", process.path().display());
    }
}

fn short_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(OF_ANOTHER_SERVER), "rows").expect("a file");
    folder
}

fn text(output: &Output) -> (String, String) {
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn the_demo_runs_the_examples_and_checks_both_totals(server: &Server) {
    let daemon = server.daemon();
    let folder = short_folder();
    let output = demo(&daemon, &folder, &["--seconds", "1", "--connections", "8"]).output().expect("the demo runs");
    let (stdout, stderr) = text(&output);
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains(&format!("A private {} server", server.version)), "{stdout}");
    assert!(stdout.contains("| total |\n+-------+\n| 1005  |") || stdout.contains("|  1005 |"), "{stdout}");
    assert!(stdout.contains("call counter_reset('test2',1000,TRUE);\nQuery OK, 10 rows affected"), "{stdout}");
    assert_eq!(stdout.matches("exact.").count(), 2, "{stdout}");
    assert!(stdout.contains('\u{2588}'), "bars: {stdout}");
    for line in stdout.lines().filter(|line| line.ends_with("exact.")) {
        let numbers: Vec<u64> = line.split([' ', ',', ':']).filter_map(|word| word.parse().ok()).collect();
        assert!(numbers.len() == 2 && numbers[0] == numbers[1] && numbers[0] > 100, "{line}");
    }
    assert_nothing_is_left(&folder);
}

/// Reads the output of the demo until it contains `expected`.
fn wait_for(child: &mut Child, expected: &str) {
    let mut stdout = child.stdout.take().expect("a pipe");
    let (mut printed, mut byte) = (String::new(), [0]);
    while !printed.contains(expected) {
        assert_eq!(stdout.read(&mut byte).expect("output"), 1, "the demo ended before it printed {expected}: {printed}");
        printed.push(char::from(byte[0]));
    }
    // Reads the rest too, because a full pipe would block the demo.
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
}

fn interrupt(child: &Child) {
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(kill.success());
}

fn ctrl_c_removes_all_files_and_processes(server: &Server) {
    let daemon = server.daemon();
    // During the start of the server, during the examples, and under load.
    for moment in [None, Some("call counter_setup"), Some("connections increment for")] {
        let folder = short_folder();
        let mut child = demo(&daemon, &folder, &["--seconds", "60", "--connections", "8"]).spawn().expect("the demo");
        match moment {
            Some(text) => wait_for(&mut child, text),
            None => {
                let start = Instant::now();
                while fs::read_dir(folder.path()).expect("the folder").count() < 2 {
                    assert!(start.elapsed() < Duration::from_secs(60), "the demo creates no folder");
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        interrupt(&child);
        let output = child.wait_with_output().expect("the demo ends");
        assert_eq!(output.status.code(), Some(130), "{moment:?}: {}", text(&output).1);
        assert!(text(&output).1.contains("interrupted"), "{}", text(&output).1);
        assert_nothing_is_left(&folder);
    }
}

fn a_missing_server_is_an_error_with_a_hint() {
    let folder = short_folder();
    let output = demo(Path::new("/nowhere/mysqld"), &folder, &[]).output().expect("the demo runs");
    let (stdout, stderr) = text(&output);
    assert_eq!((output.status.code(), stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!("no_server", stderr);
    assert_nothing_is_left(&folder);
}

fn a_failed_start_prints_the_log_of_the_server() {
    let folder = short_folder();
    let fake = short_folder();
    let path = fake.path().join("mysqld");
    let script = "#!/bin/sh\ncase \"$*\" in *--version*) echo 'mysqld  Ver 9.7.0 for Linux' ;;\n\
                  *) echo 'the disk is full'; exit 1 ;; esac\n";
    write_program(&path, script);
    let output = demo(&path, &folder, &[]).output().expect("the demo runs");
    let (_, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("\nerror: ") && stderr.contains("the disk is full"), "{stderr}");
    assert_nothing_is_left(&folder);
}

fn the_program_needs_no_mysql_library() {
    let Ok(output) = Command::new("ldd").arg(env!("CARGO_BIN_EXE_slotted")).current_dir(root()).output() else {
        // macOS has no ldd. The test needs it.
        return;
    };
    let libraries = String::from_utf8_lossy(&output.stdout).to_lowercase();
    for library in ["mysql", "maria", "ssl", "crypto"] {
        assert!(!libraries.contains(library), "{libraries}");
    }
}
