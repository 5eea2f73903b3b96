//! The servers, a schema for each test, and the servers' command-line clients.

mod account;
mod client;
mod cluster;
mod load;
mod promises;
mod schema;
mod servers;
mod tool;
pub mod transcript;

pub use account::{Account, grants};
pub use client::Client;
pub use cluster::{Cluster, NODES, clusters, free_ports};
pub use load::{SetOnDrop, at_once, beside, calls, cases, reads, repeat, repeatable, run, run_all, until};
pub use promises::{Module, Promises};
pub use schema::{SESSIONS, Schema, error_of, number_of, send, source};
pub use servers::{Network, Server, servers_of_this_run, stop_servers};
pub use tool::{ends, exits, has, interrupt, printed, rest_of_line, slotted};

pub use mysql::Conn;
pub use mysql::prelude::Queryable;
pub use rand::Rng;
pub use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
pub use std::thread;
pub use std::time::{Duration, Instant};

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use slotted::package::{Columns, Key, Options, Package, RECORD_SLOTS, Subject, TableColumn};
use slotted::script;

/// The value that a statement returns, or the number of its error.
pub type Outcome = Result<Option<i64>, u16>;

/// The folder of this crate.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A value of all threads, also after a promise has failed while it had it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a program, by another process: one that a thread starts at this moment would have the file open, which is then not executed.
pub fn write_program(path: &Path, text: &str) {
    let written = path.with_extension("text");
    std::fs::write(&written, text).expect("a file");
    let mut install = std::process::Command::new("install");
    let copied = install.args(["-m", "755"]).args([&written, path]).status();
    assert!(copied.expect("install runs").success(), "{} cannot be written", path.display());
}

/// The folder of programs that scripts/servers installs, such as `migration-tools`.
pub fn provided(name: &str) -> PathBuf {
    assert!(is_provided(name), "{name} is not installed: run scripts/servers {name}");
    slotted::server::cache_folder().expect("a home").join(name)
}

/// Whether scripts/servers has installed a program.
fn is_provided(name: &str) -> bool {
    slotted::server::cache_folder().is_some_and(|folder| folder.join(name).is_dir())
}

/// Waits until scripts/test, which installs programs while promises run, has installed a program.
fn wait_for(program: &str) -> Result<(), String> {
    let Some(folder) = std::env::var_os("SLOTTED_TEST_INSTALLING") else {
        return Ok(());
    };
    let result = Path::new(&folder).join(program);
    while !result.is_file() {
        std::thread::sleep(Duration::from_millis(200));
    }
    match std::fs::read_to_string(&result).unwrap_or_default().trim() {
        "0" => Ok(()),
        status => Err(format!("scripts/servers {program} exited with {status}")),
    }
}

/// The SQL blocks in a section of a document.
pub fn sql_blocks(page: &str, section: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join(page)).expect("the page");
    let (_, rest) = page.split_once(&format!("\n## {section}\n")).expect("the section");
    let blocks = rest.split("\n## ").next().into_iter().flat_map(|text| text.split("```sql\n").skip(1));
    blocks.filter_map(|block| Some(block.split("```").next()?.to_owned())).collect()
}

/// The head of the table of errors in docs/routines.md.
pub const ERRORS: &str = "number | message or cause | has it counted? | what to do";

/// The rows of the table of a document that has this head, each with its cells.
pub fn table(page: &str, head: &str) -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(root().join(page)).expect("the page");
    let (_, rows) = page.split_once(&format!("| {head} |\n|---|")).expect("the table");
    let cells = |row: &str| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    rows.lines().skip(1).take_while(|row| row.starts_with('|')).map(cells).collect()
}

/// The statements of the SQL blocks in a section of a document.
pub fn sql_statements(page: &str, section: &str) -> Vec<String> {
    sql_blocks(page, section).iter().flat_map(|block| script::statements(block)).collect()
}

/// A statement for MySQL with the collation that names have on the server.
pub fn with_collation(server: &Server, statement: &str) -> String {
    let names = if server.is_mysql() { "utf8mb4_0900_ai_ci" } else { "utf8mb4_unicode_520_ci" };
    statement.replace("utf8mb4_0900_ai_ci", names)
}

/// The package that these words of a command line describe.
pub fn parsed(words: &str) -> Package {
    #[derive(clap::Parser)]
    #[command(no_binary_name = true)]
    struct Words {
        #[command(flatten)]
        flags: slotted::cli::Flags,
    }
    let words: Words = clap::Parser::parse_from(shlex::split(words).expect(words));
    Package::new(words.flags.options().expect("options").expect("a package")).expect("options that fit")
}

/// Records with a key.
pub fn records(key: Key) -> Subject {
    Subject::Records { key, slots: RECORD_SLOTS }
}

fn changed(mut options: Options, change: impl FnOnce(&mut Options)) -> Package {
    change(&mut options);
    Package::new(options).expect("valid options")
}

/// An account of the routines.
pub fn as_slotted(options: &mut Options) {
    options.definer = Some("slotted@localhost".parse().expect("an account"));
}

/// The package counters with the default options, changed by `change`.
pub fn package(change: impl FnOnce(&mut Options)) -> Package {
    changed(Options::default(), change)
}

/// The package slotted_counters with the default options, changed by `change`.
pub fn keyed(change: impl FnOnce(&mut Options)) -> Package {
    changed(Options::slotted_counters(), change)
}

/// The package bounded_counters with the default options, changed by `change`.
pub fn bounded(change: impl FnOnce(&mut Options)) -> Package {
    changed(Options::bounded_counters(), change)
}

/// A package whose counts belong to a column.
pub fn of_column(column: &str, key: &str, change: impl FnOnce(&mut Options)) -> Package {
    let column: TableColumn = column.parse().expect("a column");
    changed(Options::of_column(column, key.parse().expect("a key"), Columns::default()), change)
}

/// The package counters with per-counter slots and with fixed slots.
pub fn variants() -> [Package; 2] {
    [package(|_| {}), package(|options| options.subject.set_slots(20))]
}
