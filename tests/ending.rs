//! Ctrl-C ends a command at once. What a command has made is removed before: `bench::ctrl_c_drops_the_schema` and
//! `demo::ctrl_c_removes_all_files_and_processes`.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Module, interrupt, slotted};

pub fn promises(mut module: Module<'_>) {
    module.plain(ctrl_c_ends_a_command_at_once);
}

/// The server accepts the connection, and never answers.
fn ctrl_c_ends_a_command_at_once() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("mysql://root@{}/db", listener.local_addr().expect("its number"));
        let mut command = slotted(&["status", "--url", &url]);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("slotted runs");
        let _connection = listener.accept().expect("a connection");
        let sent = Instant::now();
        interrupt(signal, process.id());
        // The exit code that shells give to Ctrl-C.
        assert_eq!(process.wait().expect("the end").code(), Some(130), "{signal}");
        assert!(sent.elapsed() < Duration::from_secs(10), "{signal}: {:?}", sent.elapsed());
    }
}
