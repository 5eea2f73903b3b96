//! The completions and manual pages of the installed tool, loaded by the shells and by `man`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::Module;

pub fn promises(mut module: Module<'_>) {
    module
        .needs("shells")
        .plain(each_shell_loads_the_completions)
        .plain(each_command_has_a_manual_page);
}

/// The output of a program, which has to succeed and print no warning.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn slotted(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    command.args(arguments);
    command
}

fn each_shell_loads_the_completions() {
    let folder = tempfile::tempdir().expect("a folder");
    let complete = |shell: &str, script: &str| {
        let file = folder.path().join(if shell == "zsh" { "_slotted" } else { shell });
        fs::write(&file, run(&mut slotted(&["completions", shell]))).expect("a file");
        run(Command::new(shell).args(["-n"]).arg(&file));
        let flags: &[&str] = match shell {
            "bash" => &["--norc", "--noprofile", "-c"],
            "zsh" => &["-f", "-c"],
            _ => &["--no-config", "-c"],
        };
        run(Command::new(shell).args(flags).arg(script).current_dir(folder.path()).env("HOME", folder.path()))
    };
    // What a person types before the tab, and what the shell offers.
    let bash = complete(
        "bash",
        "source ./bash; complete -p slotted
         COMP_WORDS=(slotted bench --ma) COMP_CWORD=2; _slotted slotted --ma bench; echo \"offers ${COMPREPLY[*]}\"
         COMP_WORDS=(slotted uni) COMP_CWORD=1; _slotted slotted uni slotted; echo \"offers ${COMPREPLY[*]}\"",
    );
    assert!(bash.contains("-F _slotted") && bash.contains("offers --markdown") && bash.contains("offers uninstall"), "{bash}");
    let zsh = complete("zsh", "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; autoload +X _slotted; print $_comps[slotted]; functions _slotted");
    assert!(zsh.starts_with("_slotted\n") && zsh.contains("--markdown"), "{}", zsh.lines().next().unwrap_or_default());
    let fish = complete("fish", "source ./fish; complete -C 'slotted uni'; complete -C 'slotted bench --ma'");
    assert!(fish.contains("uninstall\t") && fish.contains("--markdown\t"), "{fish}");
}

fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    let output = slotted(&["man"]).arg(&pages).output().expect("slotted runs");
    assert!(output.status.success());
    let help = run(slotted(&["--help"]).env("COLUMNS", "200"));
    let commands = help.split_once("Commands:\n").and_then(|(_, rest)| rest.split_once("\n\n")).expect("commands").0;
    let names = commands.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let mut seen = 0;
    for page in ["slotted".to_owned()].into_iter().chain(names.map(|name| format!("slotted-{name}"))) {
        let path = pages.join(format!("{page}.1"));
        // A page without a date is a warning.
        run(Command::new("mandoc").args(["-T", "lint", "-W", "error"]).arg(&path));
        let text = shown(&path);
        assert!(text.contains("SYNOPSIS") && text.contains("OPTIONS"), "{page}: {text}");
        seen += 1;
    }
    assert!(seen > 10, "{seen} pages");
    let bench = shown(&pages.join("slotted-bench.1"));
    assert!(bench.contains("--connect-per-call") && bench.contains("SLOTTED_URL"), "{bench}");
}

fn shown(page: &Path) -> String {
    let printed = run(Command::new("mandoc").args(["-T", "utf8", "-O", "width=100"]).arg(page));
    // A letter that is printed twice is bold.
    printed.chars().fold(String::new(), |mut text, c| {
        if c == '\u{8}' {
            text.pop();
        } else {
            text.push(c);
        }
        text
    })
}
