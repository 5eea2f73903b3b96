//! The promises of slotted, kept on real servers.
//!
//! A promise that needs a server is a test per server: `locks::an_increment_locks_one_record::mysql_9_7`. The servers
//! are those that `scripts/servers` provides, or those of SLOTTED_TEST_URLS; each is started when the first test needs
//! it and ended with the run. Filters, `--list` and the rest work as with any Rust test.

mod support;

use libtest_mimic::Arguments;
use support::{Promises, stop_servers};

/// A module of promises each; `mod` and registration in one place.
macro_rules! promises {
    ($($module:ident)*) => {
        $(mod $module;)*

        fn promises() -> Promises {
            let mut promises = Promises::default();
            $($module::promises(promises.of(stringify!($module)));)*
            promises
        }
    };
}

promises! {
    advise
    article
    bad_input
    bench
    command_line
    demo
    documents
    exactness
    install
    locks
    queries
    rendering
    rollup
    slotted_counters
    surroundings
    transactions
}

fn main() {
    let arguments = Arguments::from_args();
    ctrlc::set_handler(|| {
        stop_servers();
        std::process::exit(130);
    })
    .expect("no other handler is set");
    let conclusion = libtest_mimic::run(&arguments, promises().into_trials());
    stop_servers();
    conclusion.exit();
}
