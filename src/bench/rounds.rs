//! Contenders in rounds: they take turns, so that other work of the machine affects all of them.

use std::sync::atomic::{AtomicBool, Ordering};

use mysql::prelude::Queryable;
use mysql::{Conn, Opts};

use super::contender::{Contender, Setting};
use super::figures::{Report, Summary, median};
use super::load::{BenchError, Measured, at, connect, run};
use crate::server::Version;

/// The contender that the others are compared with.
const REFERENCE: &str = "uncontended";

/// A contender with a setting, and its loads.
struct Series<'a> {
    contender: &'a Contender,
    setting: &'a Setting,
    rounds: Vec<Measured>,
}

/// Loads a server with each contender in each setting, which differ in their connections only, once in each round. A round begins
/// with another contender than the one before. `begins` is called with the number of each round, from 1. Setting `stop` ends it early, with the loads that are
/// complete.
///
/// # Errors
/// Those of [`run`].
pub fn compare(
    server: &Opts,
    contenders: &[Contender],
    settings: &[Setting],
    rounds: u32,
    stop: &AtomicBool,
    mut begins: impl FnMut(u32),
) -> Result<Report, BenchError> {
    let environment = environment(&mut connect(server)?)?;
    let mut all: Vec<_> = settings
        .iter()
        .flat_map(|setting| contenders.iter().map(move |contender| Series { contender, setting, rounds: Vec::new() }))
        .collect();
    let number = all.len();
    for round in 0..rounds {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        begins(round + 1);
        for at in 0..number {
            let series = &mut all[(at + round as usize) % number];
            let measured = run(server, series.contender, series.setting, stop)?;
            if stop.load(Ordering::Relaxed) {
                break;
            }
            series.rounds.push(measured);
        }
    }
    let measured = all.iter().filter(|series| !series.rounds.is_empty());
    Ok(Report {
        environment,
        slots: settings[0].slots,
        work_ms: settings[0].hold.map(|[before, _]| before.as_millis() as u64),
        hold_ms: settings[0].hold.map(|[_, after]| after.as_millis() as u64),
        seconds: settings[0].duration.as_secs_f64(),
        results: measured.map(|series| series.summary(&all)).collect(),
    })
}

/// The properties of a server and of this machine.
///
/// # Errors
/// Errors of the server or of the connection.
fn environment(connection: &mut Conn) -> Result<Vec<(&'static str, String)>, BenchError> {
    const VARIABLES: [&str; 5] =
        ["version", "log_bin", "sync_binlog", "innodb_flush_log_at_trx_commit", "innodb_buffer_pool_size"];
    let failed = at("cannot read the settings of the server");
    let mut environment = vec![("server", Version::of(connection).map_err(&failed)?.to_string())];
    for name in VARIABLES {
        let value: Option<String> = connection.query_first(format!("SELECT @@GLOBAL.{name}")).map_err(&failed)?;
        environment.push((name, value.unwrap_or_default()));
    }
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    environment.push(("cores of the client", cores.to_string()));
    Ok(environment)
}

impl Series<'_> {
    fn summary(&self, all: &[Self]) -> Summary {
        let of = |figure: fn(&Measured) -> f64| self.rounds.iter().map(figure);
        let reference = all.iter().find(|other| other.contender.name == REFERENCE && other.setting == self.setting);
        let ratios = reference.map(|reference| {
            let pairs = self.rounds.iter().zip(&reference.rounds);
            pairs.map(|(one, other)| one.per_second / other.per_second).collect::<Vec<_>>()
        });
        Summary {
            contender: self.contender.name.clone(),
            connections: self.setting.connections,
            per_second: median(of(|one| one.per_second).collect()),
            lowest: of(|one| one.per_second).fold(f64::INFINITY, f64::min),
            highest: of(|one| one.per_second).fold(0.0, f64::max),
            to_uncontended: ratios.filter(|ratios| !ratios.is_empty()).map(median),
            p50_ms: median(of(|one| percentile(&one.times, 50)).collect()),
            p99_ms: median(of(|one| percentile(&one.times, 99)).collect()),
            read_ms: median(of(|one| one.read_ms).collect()),
            cpu_us: self.rounds.iter().map(|one| one.cpu_us).collect::<Option<_>>().map(median),
            retries: self.rounds.iter().map(|one| one.retries).sum(),
            acknowledged: self.rounds.iter().map(|one| one.acknowledged).sum(),
            grown: self.rounds.iter().map(|one| one.grown).sum(),
            rounds: self.rounds.len(),
        }
    }
}

/// A percentile of sorted microseconds, in milliseconds. 0 without any.
fn percentile(times: &[u32], percent: usize) -> f64 {
    let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(at).map_or(0.0, |&time| f64::from(time) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let times: Vec<u32> = (1..=200).map(|ms| ms * 1000).collect();
        assert_eq!([0, 50, 99, 100].map(|percent| percentile(&times, percent)), [1.0, 100.0, 198.0, 200.0]);
        assert_eq!((percentile(&times[..1], 99), percentile(&[], 50)), (1.0, 0.0));
    }
}
