//! Runs the target of src/fuzz.rs that the variable SLOTTED_FUZZ names.

#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<String> =
    LazyLock::new(|| std::env::var("SLOTTED_FUZZ").expect("SLOTTED_FUZZ is the name of a target"));

libfuzzer_sys::fuzz_target!(|text: &[u8]| slotted::fuzz::run(&TARGET, text));
