//! The tool, as a process.

use std::process::{Command, Output, Stdio};

use super::Schema;

/// The tool with arguments.
pub fn slotted(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// What a command printed, for an assertion.
pub fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command, asserts its exit code, and returns what it prints, which has no characters that control a terminal.
#[track_caller]
pub fn exits(command: &mut Command, code: i32) -> String {
    let output = command.output().expect("slotted runs");
    let said = printed(&output);
    assert_eq!(output.status.code(), Some(code), "{command:?}: {said}");
    let executed = |c: char| c.is_control() && c != '\n' && c != '\t' || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!said.contains(executed), "{command:?}: {said:?}");
    said
}

/// Runs the words of a command line in a schema, as the administrator, asserts the exit code, and returns what is printed.
#[track_caller]
pub fn ends(schema: &Schema<'_>, code: i32, words: &str) -> String {
    exits(&mut schema.slotted(words), code)
}

/// Asserts that what a command has printed contains each of the texts.
#[track_caller]
pub fn has(said: &str, texts: &[&str]) {
    let missing = texts.iter().find(|text| !said.contains(**text));
    assert_eq!(missing, None, "{said}");
}

/// The rest of the line after these words, such as a statement that a hint names.
#[track_caller]
pub fn rest_of_line<'a>(said: &'a str, words: &str) -> &'a str {
    let (_, rest) = said.split_once(words).unwrap_or_else(|| panic!("{words}: {said}"));
    rest.lines().next().unwrap_or_default()
}

/// Interrupts a process, as Ctrl-C does.
pub fn interrupt(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().expect("kill").success());
}

impl Schema<'_> {
    /// The URL of the schema, for `--url`.
    pub fn url(&self) -> String {
        let url = self.server.url();
        let (address, options) = url.split_once('?').unwrap_or((&url, ""));
        format!("{}/{}?{options}", address.trim_end_matches('/'), self.name)
    }

    /// The tool with the words of a command line, as the administrator.
    pub fn slotted(&self, words: &str) -> Command {
        let words = shlex::split(words).expect(words);
        let mut command = slotted(&words.iter().map(String::as_str).collect::<Vec<_>>());
        command.env("SLOTTED_URL", self.url());
        command
    }
}
