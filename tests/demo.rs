//! The demo works, tells the truth and leaves nothing behind.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{Module, Server, root};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(the_demo_shows_the_tour_and_proves_both_totals)
        .on_servers(ctrl_c_removes_everything)
        .plain(without_a_server_the_demo_says_how_to_get_one)
        .plain(a_server_that_does_not_start_is_shown_with_its_log)
        .plain(the_program_needs_no_mysql_library);
}

/// The demo, with its temporary files in a folder of ours.
fn demo(server: &Path, folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    command.arg("demo").args(arguments).env("SLOTTED_SERVER", server).env("TMPDIR", folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A temporary table of another server, such as both servers remove where they look for their own.
const OF_ANOTHER_SERVER: &str = "#sql-temptable-1-1-1.MAD";

/// Nothing is left: no file but what was there before, no process that has the folder in its command line.
fn nothing_is_left(folder: &TempDir) {
    let left: Vec<_> = fs::read_dir(folder.path()).expect("the folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, [OF_ANOTHER_SERVER]);
    let needle = folder.path().display().to_string();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&command).contains(&needle), "still runs: {}", process.path().display());
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

fn the_demo_shows_the_tour_and_proves_both_totals(server: &Server) {
    // A server that a URL names is not ours to start again.
    let Some(daemon) = server.daemon() else { return };
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
    nothing_is_left(&folder);
}

/// Reads what the demo prints until it has printed `wanted`.
fn wait_for(child: &mut Child, wanted: &str) {
    let mut stdout = child.stdout.take().expect("a pipe");
    let (mut printed, mut byte) = (String::new(), [0]);
    while !printed.contains(wanted) {
        assert_eq!(stdout.read(&mut byte).expect("output"), 1, "the demo ended before it said {wanted}: {printed}");
        printed.push(char::from(byte[0]));
    }
    // Goes on to be read, so that the demo is not held up by a full pipe.
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
}

fn interrupt(child: &Child) {
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(kill.success());
}

fn ctrl_c_removes_everything(server: &Server) {
    let Some(daemon) = server.daemon() else { return };
    // While the server starts, in the tour, and under load.
    for moment in [None, Some("call counter_setup"), Some("connections increment at once")] {
        let folder = short_folder();
        let mut child = demo(&daemon, &folder, &["--seconds", "60", "--connections", "8"]).spawn().expect("the demo");
        match moment {
            Some(text) => wait_for(&mut child, text),
            None => {
                let start = Instant::now();
                while fs::read_dir(folder.path()).expect("the folder").count() < 2 {
                    assert!(start.elapsed() < Duration::from_secs(60), "the demo makes no folder");
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        interrupt(&child);
        let output = child.wait_with_output().expect("the demo ends");
        assert_eq!(output.status.code(), Some(130), "{moment:?}: {}", text(&output).1);
        assert!(text(&output).1.contains("interrupted"), "{}", text(&output).1);
        nothing_is_left(&folder);
    }
}

fn without_a_server_the_demo_says_how_to_get_one() {
    let folder = short_folder();
    let output = demo(Path::new("/nowhere/mysqld"), &folder, &[]).output().expect("the demo runs");
    let (stdout, stderr) = text(&output);
    assert_eq!((output.status.code(), stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!("no_server", stderr);
    nothing_is_left(&folder);
}

fn a_server_that_does_not_start_is_shown_with_its_log() {
    use std::os::unix::fs::PermissionsExt;
    let folder = short_folder();
    let fake = short_folder();
    let path = fake.path().join("mysqld");
    let script = "#!/bin/sh\ncase \"$*\" in *--version*) echo 'mysqld  Ver 9.7.0 for Linux' ;;\n\
                  *) echo 'the disk is full'; exit 1 ;; esac\n";
    fs::write(&path, script).expect("a program");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    let output = demo(&path, &folder, &[]).output().expect("the demo runs");
    let (_, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains("the disk is full"), "{stderr}");
    nothing_is_left(&folder);
}

fn the_program_needs_no_mysql_library() {
    let Ok(output) = Command::new("ldd").arg(env!("CARGO_BIN_EXE_slotted")).current_dir(root()).output() else {
        // No ldd, as on macOS: there is nothing to ask.
        return;
    };
    let libraries = String::from_utf8_lossy(&output.stdout).to_lowercase();
    for library in ["mysql", "maria", "ssl", "crypto"] {
        assert!(!libraries.contains(library), "{libraries}");
    }
}
