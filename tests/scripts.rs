//! What the scripts say before they begin.

use std::fs;
use std::process::Command;

use crate::support::{Module, root, write_program};

pub fn promises(mut module: Module<'_>) {
    module.plain(an_old_cargo_is_told_which_rust_is_needed);
}

fn an_old_cargo_is_told_which_rust_is_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("cache");
    // The answer of Debian 12.
    write_program(&folder.path().join("cargo"), "#!/bin/sh\n[ \"$*\" = --version ] && echo 'cargo 1.65.0'\n");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").expect("a path"));
    for script in ["scripts/demo", "scripts/test"] {
        let output = Command::new(root().join(script)).env("PATH", &path).env("SLOTTED_CACHE", &cache).output();
        let output = output.expect("the script runs");
        assert_eq!(output.status.code(), Some(2), "{script}");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "error: Rust 1.88 or later is needed, found 1.65.0\nhint: install it with rustup, for example: rustup update stable\n"
        );
        assert!(fs::read_dir(&cache).is_err(), "{script} has created the cache");
    }
}
