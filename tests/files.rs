//! Files and output that a command writes.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use slotted::render;

use crate::advise::{printed, slotted};
use crate::support::{Module, Server, package};

pub fn promises(mut module: Module<'_>) {
    module
        .on_one_server(a_file_is_written_where_it_is)
        .plain(generate_writes_each_file_where_it_is);
}

/// Writes a page to a file.
fn bench(server: &Server, file: &Path) -> Output {
    let schema = server.schema();
    let file = file.to_str().expect("a path");
    slotted(&["bench", "--contenders", "single-row", "--connections", "1", "--seconds", "0.1", "--rounds", "1", "--html", file, "--url", &server.url(), "--database", &schema.name])
}

fn a_file_is_written_where_it_is(server: &Server) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    // A longer file with another mode, and links to it.
    fs::write(at("file"), "x".repeat(1_000_000)).expect("a file");
    fs::set_permissions(at("file"), fs::Permissions::from_mode(0o600)).expect("a mode");
    fs::hard_link(at("file"), at("hard")).expect("a link");
    symlink(at("file"), at("soft")).expect("a link");
    let before = fs::metadata(at("file")).expect("a file");
    for name in ["file", "hard", "soft"] {
        let output = bench(server, &at(name));
        assert!(printed(&output).contains("wrote "), "{name}: {}", printed(&output));
        let text = fs::read_to_string(at("file")).expect("a page");
        assert!(text.starts_with("<!") && text.trim_end().ends_with("</html>"), "{name}");
        let after = fs::symlink_metadata(at("file")).expect("a file");
        assert_eq!((after.ino(), after.mode(), after.nlink()), (before.ino(), before.mode(), 2), "{name}");
        fs::write(at("file"), "x".repeat(1_000_000)).expect("a file");
    }
    assert!(fs::symlink_metadata(at("soft")).expect("a link").is_symlink());
    symlink(at("target"), at("dangling")).expect("a link");
    bench(server, &at("dangling"));
    assert!(fs::metadata(at("target")).expect("a file").is_file());
    assert!(Command::new("mkfifo").arg(at("fifo")).status().expect("mkfifo").success());
    let fifo = at("fifo");
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).expect("a page")
    });
    let output = bench(server, &fifo);
    assert!(fs::symlink_metadata(&fifo).expect("a FIFO").file_type().is_fifo(), "{}", printed(&output));
    assert!(reader.join().expect("a reader").trim_end().ends_with("</html>"));
    // The device of a full disk, which is not replaced.
    symlink("/dev/full", at("full")).expect("a link");
    let output = bench(server, &at("full"));
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(printed(&output).contains("cannot write") && printed(&output).contains("No space left"), "{}", printed(&output));
    assert!(fs::metadata("/dev/full").expect("a device").file_type().is_char_device());
    let output = bench(server, &at("nowhere").join("page"));
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(!printed(&output).contains("single-row"), "{}", printed(&output));
}

fn generate_writes_each_file_where_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out/counters");
    let at = |name: &str| out.join(name);
    let generate = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slotted"));
        command.args(["generate", "counters", "--out", "out"]).args(more).current_dir(folder.path());
        command.output().expect("slotted runs")
    };
    let text = |name: &str| render::files(&package(|_| {})).into_iter().find(|file| file.name == name).expect(name).text;
    fs::create_dir_all(&out).expect("a folder");
    // A longer file with another mode and another owner, which only root can give away.
    fs::write(at("setup.sql"), "x".repeat(1_000_000)).expect("a file");
    fs::set_permissions(at("setup.sql"), fs::Permissions::from_mode(0o600)).expect("a mode");
    let _ = chown(at("setup.sql"), Some(65_534), None);
    fs::hard_link(at("setup.sql"), folder.path().join("hard")).expect("a link");
    let identity = || {
        let found = fs::symlink_metadata(at("setup.sql")).expect("a file");
        (found.ino(), found.mode(), found.uid(), found.nlink())
    };
    let before = identity();
    symlink(folder.path().join("target"), at("grants.sql")).expect("a link");
    let fifo = at("uninstall.sql");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).expect("a script")
    });
    let output = generate(&[]);
    assert!(output.status.success(), "{}", printed(&output));
    assert_eq!(identity(), before);
    assert_eq!(fs::read_to_string(folder.path().join("hard")).expect("a link"), text("setup.sql"));
    assert!(fs::symlink_metadata(at("grants.sql")).expect("a link").is_symlink());
    assert_eq!(fs::read_to_string(folder.path().join("target")).expect("its target"), text("grants.sql"));
    assert!(fs::symlink_metadata(&fifo).expect("a FIFO").file_type().is_fifo());
    assert_eq!(reader.join().expect("a reader"), text("uninstall.sql"));
    // Reading the FIFO would wait for a writer.
    let output = generate(&["--check"]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(printed(&output).contains("out/counters/uninstall.sql is not a file"), "{}", printed(&output));
    // If one file cannot be written, none is.
    fs::remove_file(&fifo).expect("a FIFO");
    fs::create_dir(&fifo).expect("a folder");
    fs::write(at("setup.sql"), "mine").expect("a file");
    let output = generate(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert_eq!(fs::read_to_string(at("setup.sql")).expect("a file"), "mine");
    // A device is not replaced and not read: /dev/zero has no end.
    fs::remove_dir(&fifo).expect("a folder");
    for (device, code) in [("/dev/zero", 0), ("/dev/full", 2)] {
        symlink(device, &fifo).expect("a link");
        let output = generate(&[]);
        assert_eq!(output.status.code(), Some(code), "{device}: {}", printed(&output));
        assert_eq!(printed(&output).contains("No space left"), code == 2, "{device}: {}", printed(&output));
        assert!(fs::metadata(device).expect("a device").file_type().is_char_device());
        fs::remove_file(&fifo).expect("a link");
    }
}
