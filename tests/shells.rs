//! The completions and manual pages of the installed tool, loaded by the shells and by `man`.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::advise::printed;
use crate::support::{Module, copy_program};

pub fn promises(mut module: Module<'_>) {
    module
        .needs("shells")
        .plain(each_shell_loads_the_completions)
        .plain(each_command_has_a_manual_page)
        .plain(the_installed_tool_needs_nothing_of_a_clone);
}

/// The output of a program, which has to succeed and print no warning.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The tool as it is installed: alone in a folder, which is the current one, without the environment of the tests.
struct Installed(TempDir);

impl Installed {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        copy_program(Path::new(env!("CARGO_BIN_EXE_slotted")), &folder.path().join("slotted"));
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn slotted(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path().join("slotted"));
        command.args(arguments).env_clear().current_dir(self.path());
        command
    }

    /// The names of the commands.
    fn commands(&self) -> Vec<String> {
        let help = run(self.slotted(&["--help"]).env("COLUMNS", "200"));
        let commands = help.split_once("Commands:\n").and_then(|(_, rest)| rest.split_once("\n\n")).expect("commands").0;
        let names = commands.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        names.map(str::to_owned).collect()
    }
}

fn each_shell_loads_the_completions() {
    let installed = Installed::new();
    let folder = installed.path();
    let complete = |shell: &str, script: &str| {
        let file = folder.join(if shell == "zsh" { "_slotted" } else { shell });
        fs::write(&file, run(&mut installed.slotted(&["completions", shell]))).expect("a file");
        run(Command::new(shell).args(["-n"]).arg(&file));
        let flags: &[&str] = match shell {
            "bash" => &["--norc", "--noprofile", "-c"],
            "zsh" => &["-f", "-c"],
            _ => &["--no-config", "-c"],
        };
        run(Command::new(shell).args(flags).arg(script).current_dir(folder).env("HOME", folder))
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
    let installed = Installed::new();
    let pages = installed.path().join("man1");
    let output = installed.slotted(&["man"]).arg(&pages).output().expect("slotted runs");
    assert!(output.status.success());
    let names = installed.commands();
    let mut seen = 0;
    for page in ["slotted".to_owned()].into_iter().chain(names.iter().map(|name| format!("slotted-{name}"))) {
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

/// All files that texts name are written by the tool. `documents::no_message_names_a_file_of_a_clone` reads the texts themselves.
fn the_installed_tool_needs_nothing_of_a_clone() {
    let installed = Installed::new();
    let mut texts = String::new();
    let mut say = |arguments: &[&str], code: i32| {
        let output = installed.slotted(arguments).output().expect("slotted runs");
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(!text.is_empty() && !text.contains("panicked"), "{arguments:?}: {text}");
        texts += &text;
    };
    let commands = installed.commands();
    assert!(commands.len() > 10, "{commands:?}");
    // No server answers there.
    let url = "mysql://root@localhost/db?socket=%2Fnonexistent%2Fsocket";
    for command in &commands {
        say(&[command, "--help"], 0);
        say(&[command, "--no-such-option"], 2);
    }
    for command in ["install counters", "status", "uninstall", "advise", "bench"] {
        let words: Vec<_> = command.split(' ').chain(["--url", url]).collect();
        say(&words, 2);
    }
    for command in ["demo", "bench", "bench --nodes 3", "limits", "generate --check", "generate counters --definer a@b", "generate --check --out nowhere"] {
        let words: Vec<_> = command.split(' ').collect();
        let code = if command.contains("--check") { 1 } else if command.starts_with("generate") { 0 } else { 2 };
        say(&words, code);
    }
    // The sources and the folders of the clone: this one, and those that its texts could name.
    for name in [env!("CARGO_MANIFEST_DIR"), "scripts/", "templates/", "docs/", "examples/", "tests/", "src/", "README", "CONTRIBUTING"] {
        let line = texts.lines().find(|line| line.contains(name));
        assert_eq!(line, None, "{name}");
    }
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
