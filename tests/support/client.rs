//! The servers' own command-line clients.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mysql::Opts;

/// A command-line client and its arguments for one schema.
pub struct Client {
    program: PathBuf,
    arguments: Vec<OsString>,
    schema: String,
}

/// The result of a client.
#[derive(Debug)]
pub struct Said {
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Client {
    pub fn new(program: PathBuf, options: &Opts, schema: &str) -> Self {
        let mut arguments: Vec<OsString> = vec!["--no-defaults".into()];
        let mut say = |flag: &str, value: String| arguments.push(format!("--{flag}={value}").into());
        if let Some(user) = options.get_user() {
            say("user", user.to_owned());
        }
        if let Some(password) = options.get_pass() {
            say("password", password.to_owned());
        }
        match options.get_socket() {
            Some(socket) => say("socket", socket.to_owned()),
            None => {
                say("host", options.get_ip_or_hostname().into_owned());
                say("port", options.get_tcp_port().to_string());
            }
        }
        let schema = schema.to_owned();
        Self { program, arguments, schema }
    }

    /// The command with additional arguments, to run in a folder.
    pub fn command(&self, more: &[&str], folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        // As an option, because the name of a schema can begin with a dash.
        command.args(&self.arguments).args(more).arg(format!("--database={}", self.schema));
        command.current_dir(folder).env("TERM", "dumb");
        command
    }

    /// Runs the client with a text as its standard input.
    pub fn pipe(&self, more: &[&str], input: &str) -> Said {
        let mut child = self
            .command(more, super::root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                let remedy = "with SLOTTED_TEST_URLS, the clients of the servers must be on the PATH";
                panic!("{}: {error}: {remedy}", self.program.display())
            });
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_owned();
        // In a second thread, because the client writes its output while it reads.
        let writer = std::thread::spawn(move || {
            // A client that stops at an error closes the pipe, so a failed write is not an error.
            let _ = stdin.write_all(input.as_bytes());
        });
        let output = child.wait_with_output().expect("the client ends");
        writer.join().expect("the writer ends");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Said { success: output.status.success(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}
