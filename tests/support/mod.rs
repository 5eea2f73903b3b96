//! Servers by flavour, a schema per test, the servers' own clients.

mod client;
mod promises;
mod schema;
mod servers;
pub mod transcript;

pub use client::Client;
pub use promises::{Module, Promises};
pub use schema::{Schema, error_of, refused};
pub use servers::{Server, stop_servers};

use slotted::package::{Options, Package, Pick, Slots};

/// Where this crate is.
pub fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A package with the default options but for what `change` does.
pub fn package(change: impl FnOnce(&mut Options)) -> Package {
    let mut options = Options::default();
    change(&mut options);
    Package::new(options).expect("options of a test are sound")
}

/// The package slotted_counters, in the same way.
pub fn keyed(change: impl FnOnce(&mut Options)) -> Package {
    let mut options = Options::slotted_counters();
    change(&mut options);
    Package::new(options).expect("options of a test are sound")
}

/// The package with slots per counter and with hard-coded slots, each with both ways to pick one.
pub fn variants() -> Vec<(String, Package)> {
    let mut variants = Vec::new();
    for slots in [Slots::PerCounter, Slots::Fixed(20)] {
        for pick in [Pick::Connection, Pick::Random] {
            let package = package(|options| (options.slots, options.pick) = (slots, pick));
            variants.push((format!("slots {slots}, pick {pick}"), package));
        }
    }
    variants
}
