//! The servers' own command-line clients.

use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use mysql::Opts;

/// A command-line client and its arguments for one schema.
pub struct Client {
    program: PathBuf,
    arguments: Vec<String>,
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
        let mut arguments = vec!["--no-defaults".to_owned()];
        arguments.extend(options.get_user().map(|user| format!("--user={user}")));
        arguments.extend(options.get_pass().map(|password| format!("--password={password}")));
        if let Some(socket) = options.get_socket() {
            arguments.push(format!("--socket={socket}"));
        } else {
            let (host, port) = (options.get_ip_or_hostname(), options.get_tcp_port());
            arguments.extend([format!("--host={host}"), format!("--port={port}")]);
        }
        Self { program, arguments, schema: schema.to_owned() }
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
        // A pipe would need a thread, because the client writes its output while it reads.
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(input.as_bytes()).and_then(|()| file.rewind()).expect("its text");
        let output = self.command(more, super::root()).stdin(file).output();
        // With SLOTTED_TEST_URLS, the clients of the servers must be on the PATH.
        let output = output.unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Said { success: output.status.success(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}
