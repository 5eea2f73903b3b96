//! Faults at random for a long time: `scripts/soak`.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::load::Load;
use super::{FAULTS, Fault, round, start};
use crate::support::Server;
use crate::support::ledger::Calls;

/// The duration of a fault.
const SECONDS: std::ops::Range<u64> = 3..12;

/// The minutes of SLOTTED_SOAK_MINUTES, which `scripts/soak` sets.
pub fn minutes() -> Option<f64> {
    let minutes = env::var("SLOTTED_SOAK_MINUTES").ok()?;
    Some(minutes.parse().unwrap_or_else(|_| panic!("SLOTTED_SOAK_MINUTES={minutes} is not a number")))
}

/// The seed of SLOTTED_SOAK_SEED, or a new one. It decides on the calls and the faults, but not on their times.
pub fn seed() -> u64 {
    match env::var("SLOTTED_SOAK_SEED") {
        Ok(seed) => seed.parse().unwrap_or_else(|_| panic!("SLOTTED_SOAK_SEED={seed} is not a number")),
        Err(_) => u64::from(rand::random::<u32>()),
    }
}

/// The calls in a line.
pub fn summary(calls: &Calls) -> String {
    format!(
        "{} calls, {} acknowledged, {} rolled back, rejected {:?}, unknown {:?}, lost {}, doubled {}",
        calls.attempted(),
        calls.acknowledged,
        calls.rolled_back,
        calls.rejected,
        calls.unknown,
        calls.lost,
        calls.doubled
    )
}

/// The calls of a fault, and how often it was injected.
#[derive(Default)]
struct Row {
    rounds: u64,
    calls: Calls,
}

/// Every fault in a random order, again and again. Writes a chapter of the report to the folder SLOTTED_SOAK_FOLDER.
pub fn soak(server: &Server) {
    let program = server.program();
    let minutes = minutes().expect("the minutes of the soak");
    let (begin, seed) = (Instant::now(), seed());
    let end = begin + Duration::from_secs_f64(minutes * 60.0);
    let mut random = StdRng::seed_from_u64(seed);
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut problems = Vec::new();
    let (long, _) = start(program, false);
    let load = Load::new(&long);
    let version = long.version;
    eprintln!("soak {version}: seed {seed}, {minutes} minutes");
    'soak: loop {
        let mut faults: Vec<&Fault> = FAULTS.iter().collect();
        faults.shuffle(&mut random);
        for fault in faults {
            let duration = Duration::from_secs(random.random_range(SECONDS));
            let round_seed = random.random();
            let (calls, wrong) = if fault.small_disk {
                let (server, disk) = start(program, true);
                let load = Load::new(&server);
                let wrong = round(&load, fault, disk.as_ref(), round_seed, duration);
                (load.ledger.take_calls(), wrong)
            } else {
                let wrong = round(&load, fault, None, round_seed, duration);
                // The binary logs of a long load need much space.
                if long.is_mysql() {
                    let mut connection = load.schema.connect();
                    for statement in ["FLUSH BINARY LOGS", "PURGE BINARY LOGS BEFORE NOW()"] {
                        connection.query_drop(statement).expect(statement);
                    }
                }
                (load.ledger.take_calls(), wrong)
            };
            let minute = begin.elapsed().as_secs_f64() / 60.0;
            eprintln!("soak {version}, minute {minute:.1}, {}: {}", fault.name, summary(&calls));
            for problem in &wrong {
                eprintln!("soak {version}, {}: {problem}", fault.name);
            }
            problems.extend(wrong.into_iter().map(|problem| format!("{}: {problem}", fault.name)));
            let row = rows.entry(fault.name).or_default();
            row.rounds += 1;
            row.calls.add(&calls);
            write(&version.slug(), &chapter(&version.to_string(), run_of(begin, seed, minutes), &rows, &problems));
            if Instant::now() >= end {
                break 'soak;
            }
        }
    }
    assert!(problems.is_empty(), "seed {seed}: {problems:#?}");
}

/// The sentence on the run.
fn run_of(begin: Instant, seed: u64, minutes: f64) -> String {
    let ran = begin.elapsed().as_secs_f64() / 60.0;
    format!("Seed {seed}. {ran:.0} of {minutes} minutes.")
}

/// A chapter of the report.
fn chapter(version: &str, run: String, rows: &BTreeMap<&str, Row>, problems: &[String]) -> String {
    let mut all = Row::default();
    for row in rows.values() {
        all.rounds += row.rounds;
        all.calls.add(&row.calls);
    }
    let errors = |errors: &BTreeMap<String, u64>| {
        let errors: Vec<_> = errors.iter().map(|(error, calls)| format!("{error}: {calls}")).collect();
        errors.join(", ")
    };
    let mut text = format!(
        "\n## {version}\n\n{run}\n\n| fault | rounds | calls | acknowledged | rolled back | rejected, by error | \
         unknown, by error | lost | doubled |\n|---|---|---|---|---|---|---|---|---|\n"
    );
    for (name, Row { rounds, calls }) in rows.iter().map(|(name, row)| (*name, row)).chain([("all", &all)]) {
        let (rejected, unknown) = (errors(&calls.rejected), errors(&calls.unknown));
        let _ = writeln!(
            text,
            "| {name} | {rounds} | {} | {} | {} | {rejected} | {unknown} | {} | {} |",
            calls.attempted(),
            calls.acknowledged,
            calls.rolled_back,
            calls.lost,
            calls.doubled
        );
    }
    let _ = writeln!(
        text,
        "\nChecks of the totals, the rows of the application, the slots and the roll-up: {}, of which {} found a difference.",
        all.rounds,
        problems.len()
    );
    for problem in problems {
        let _ = writeln!(text, "\n- {problem}");
    }
    text
}

fn write(server: &str, chapter: &str) {
    if let Some(folder) = env::var_os("SLOTTED_SOAK_FOLDER") {
        let file = PathBuf::from(folder).join(format!("{server}.md"));
        fs::write(&file, chapter).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}
