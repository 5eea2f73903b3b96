//! Registers promises as tests of the test runner.

use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};

use super::cluster::{self, Cluster};
use super::servers::{self, Needed, Server, with_server_log};

/// The tests of all promises.
#[derive(Default)]
pub struct Promises {
    of_servers: Vec<Trial>,
    of_clusters: Vec<Trial>,
}

/// The promises of one module.
pub struct Module<'a> {
    name: &'static str,
    trials: &'a mut Promises,
}

impl Promises {
    /// The registry for the promises of a module.
    pub fn of(&mut self, module: &'static str) -> Module<'_> {
        Module {
            name: module,
            trials: self,
        }
    }

    /// The tests in the order in which they run. Only one test at a time has a cluster, and waits much: those of clusters are
    /// spread evenly over the others, so that one thread runs them while the other threads run the others.
    pub fn into_trials(self) -> Vec<Trial> {
        let (of_servers, of_clusters) = (self.of_servers.len(), self.of_clusters.len());
        let mut clusters = self.of_clusters.into_iter();
        let mut trials = Vec::with_capacity(of_servers + of_clusters);
        for (number, trial) in (1..).zip(self.of_servers) {
            trials.push(trial);
            let due = of_clusters * number / of_servers - (trials.len() - number);
            trials.extend(clusters.by_ref().take(due));
        }
        trials.extend(clusters);
        trials
    }
}

/// A promise of this duration is printed with it.
const SLOW: Duration = Duration::from_secs(10);

/// Prints the duration of a promise that is slow.
struct Timed<'a>(&'a str, Instant);

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        if self.1.elapsed() >= SLOW {
            eprintln!("{} took {:.0} s", self.0, self.1.elapsed().as_secs_f64());
        }
    }
}

/// The name of a function without its module path.
fn name_of<F>(_: &F) -> &'static str {
    let path = std::any::type_name::<F>();
    path.rsplit("::").next().unwrap_or(path)
}

impl Module<'_> {
    /// A promise that needs no server.
    pub fn plain<F: Fn() + Send + 'static>(&mut self, promise: F) -> &mut Self {
        let name = format!("{}::{}", self.name, name_of(&promise));
        self.trials.of_servers.push(Trial::test(name.clone(), move || {
            let _timed = Timed(&name, Instant::now());
            promise();
            Ok(())
        }));
        self
    }

    /// A promise that is tested on every server.
    pub fn on_servers<F: Fn(&Server) + Copy + Send + 'static>(&mut self, promise: F) -> &mut Self {
        self.on(|_| true, promise)
    }

    /// A promise that is tested on the servers whose names, such as `mariadb-11.8`, match `chosen`.
    pub fn on<F>(&mut self, chosen: fn(&str) -> bool, promise: F) -> &mut Self
    where
        F: Fn(&Server) + Copy + Send + 'static,
    {
        for slot in servers::all().iter().filter(|slot| chosen(&slot.name)) {
            let server = slot.name.replace(['-', '.'], "_");
            let name = format!("{}::{}::{server}", self.name, name_of(&promise));
            self.trials.of_servers.push(Trial::test(name.clone(), move || {
                let _timed = Timed(&name, Instant::now());
                let server = slot.get().map_err(Failed::from)?;
                with_server_log(&server, || promise(&server));
                Ok(())
            }));
        }
        self
    }

    /// A promise that is tested on the cluster of a server.
    pub fn on_cluster<F>(&mut self, needed: &'static Needed, promise: F) -> &mut Self
    where
        F: Fn(&Cluster) + Copy + Send + 'static,
    {
        let name = format!("{}::{}::{}", self.name, name_of(&promise), cluster::name(needed));
        self.trials.of_clusters.push(Trial::test(name.clone(), move || {
            Ok(cluster::on_cluster(needed, |cluster| {
                let _timed = Timed(&name, Instant::now());
                promise(cluster);
            })?)
        }));
        self
    }
}
