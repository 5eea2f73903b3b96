//! A small disk for a data directory: a file system in memory.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::Command;

use slotted::server::Program;

use crate::support::Server;

/// The free space of the disk when a new server has its data on it.
const FREE: u64 = 48 << 20;

/// Settings that keep the data of a new server small.
fn small(program: &Program) -> &'static str {
    if program.version.slug().starts_with("mysql") {
        "--innodb-redo-log-capacity=16M"
    } else {
        "--innodb-log-file-size=16M"
    }
}

/// A mounted file system with the data directory of a server. It is unmounted when it is dropped.
pub struct Disk {
    folder: PathBuf,
    arguments: [String; 2],
}

impl Disk {
    /// Starts a server whose data directory is on a small disk.
    pub fn with_server(program: &Program) -> (Server, Self) {
        let server = Server::start(program, &[small(program)]).expect("a server");
        let (_, folder) = server.process();
        server.kill();
        let data = folder.join("data");
        let folder = folder.join("disk");
        std::fs::create_dir(&folder).expect("a folder");
        let used = output(Command::new("du").args(["--summarize", "--bytes"]).arg(&data));
        let used: u64 = used.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).expect("a size");
        let size = format!("size={}", used + FREE);
        output(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder));
        let disk = Self {
            arguments: [small(program).into(), format!("--datadir={}", folder.join("data").display())],
            folder,
        };
        // Without holes: a page that the server has already written needs no space.
        output(Command::new("cp").args(["--archive", "--sparse=never"]).arg(&data).arg(&disk.folder));
        server.start_again(&disk.arguments()).expect("the server starts on the disk");
        (server, disk)
    }

    /// The arguments of the server.
    pub fn arguments(&self) -> [&str; 2] {
        self.arguments.each_ref().map(String::as_str)
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    /// Fills the disk.
    pub fn fill(&self) {
        let mut ballast = File::options().create(true).append(true).open(self.ballast()).expect("a file");
        for block in [&[1; 1 << 20][..], &[1; 4096]] {
            loop {
                match ballast.write_all(block) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    /// Frees the space that [`Self::fill`] has taken.
    pub fn free(&self) {
        std::fs::remove_file(self.ballast()).expect("the file");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Detaches the file system, which the server may still use.
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
    }
}

/// The output of a command that succeeds.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {message}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
