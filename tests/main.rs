//! The promises of slotted, tested on real servers.
//!
//! A promise that needs a server is one test for each server: `locks::no_call_ends_the_transaction::mysql_9_7`. The servers
//! are those of `scripts/servers`, or those of SLOTTED_TEST_URLS. A server of `scripts/servers` is started for the first
//! test that needs it, and stopped at the end of the run. Filters, `--list` and the other arguments of Rust tests work.
//! SLOTTED_TEST_QUICK leaves out what `scripts/test --quick` leaves out.

mod support;

use libtest_mimic::Arguments;
use support::{Promises, stop_servers};

/// Declares the modules of promises and registers their promises.
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
    accounts add_many advise article bad_input bench bounded clusters columns command_line connect counts_by_day
    demo documents exactness examples faults frameworks hostile install installing locks migrations
    model monitoring once queries races recipes rendering replication resize rollup security
    server_defaults slotted_counters surroundings
}

fn main() {
    ctrlc::set_handler(|| {
        stop_servers();
        std::process::exit(130);
    })
    .expect("the handler is installed once");
    let conclusion = promises().run(Arguments::from_args());
    stop_servers();
    conclusion.exit();
}
