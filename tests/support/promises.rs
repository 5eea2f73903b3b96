//! The promises of all modules: tests of the test runner, with a limit to how many run at the same time.
//!
//! The test runner starts a thread for each promise. The thread waits for a place, so that the promises that wait for locks and
//! time-outs run while others compute.

use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Conclusion, Trial};

use super::cluster::{self, Cluster};
use super::servers::{self, Needed, Server, given, quick, stopping, with_server_log};
use super::{Schema, is_provided, locked, wait_for};

/// How many promises of a kind run, and that one of them has ended.
type Limit = (Mutex<usize>, Condvar);

/// The promises that compute: one more than processors, because they wait a quarter of their time, for locks and for commits.
static COMPUTES: Limit = (Mutex::new(0), Condvar::new());

/// The promises that wait.
static WAITS: Limit = (Mutex::new(0), Condvar::new());

/// The promises that run alone on their servers: one at a time, from the first second, because they end last otherwise.
static ALONE: Limit = (Mutex::new(0), Condvar::new());

/// The promises of clusters that have not ended. They run in order, so that each cluster is started once; three nodes take 2 GB.
static OF_CLUSTERS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
static CLUSTER_IS_FREE: Condvar = Condvar::new();

/// The promises that have ended: how long they took, and their names.
static ENDED: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// The modules that attack the tool. `scripts/test --quick` leaves them out.
const ATTACKS: [&str; 2] = ["hostile::", "security::"];

/// A promise and what it needs to run.
struct Promise {
    name: String,
    waits: bool,
    alone: bool,
    of_cluster: bool,
    /// A program of `scripts/servers` that it runs.
    needs: Option<&'static str>,
    /// Whether this run does not have what it needs. The test runner names the promise as ignored.
    left_out: bool,
    run: Box<dyn FnOnce() -> Result<(), String> + Send>,
}

/// The promises of all modules.
#[derive(Default)]
pub struct Promises(Vec<Promise>);

/// The promises of one module.
pub struct Module<'a> {
    name: &'static str,
    promises: &'a mut Promises,
    needs: Option<&'static str>,
    alone: bool,
    waits: bool,
    private: bool,
}

/// Does some work, which does not panic, when fewer than `most` others of the kind do.
fn within<T>((running, ended): &Limit, most: usize, work: impl FnOnce() -> T) -> T {
    let place = ended.wait_while(locked(running), |running| *running >= most);
    *place.expect("no panic") += 1;
    let result = work();
    *locked(running) -= 1;
    ended.notify_one();
    result
}

impl Promises {
    /// The registry for the promises of a module.
    pub fn of(&mut self, module: &'static str) -> Module<'_> {
        Module { name: module, promises: self, needs: None, alone: false, waits: false, private: false }
    }

    /// Runs the promises that the arguments select. Those of clusters begin first, because they end last.
    pub fn run(mut self, mut arguments: Arguments) -> Conclusion {
        let attacks = |promise: &Promise| ATTACKS.iter().any(|module| promise.name.starts_with(module));
        self.0.retain(|promise| !quick() || promise.needs.is_none() && !attacks(promise));
        self.0.sort_by_key(|promise| !promise.of_cluster);
        let (mut selected, mut trials) = (0, Vec::new());
        for (number, promise) in self.0.into_iter().enumerate() {
            let (name, left_out) = (promise.name.clone(), promise.left_out);
            if is_selected(&arguments, &name) {
                selected += 1;
                locked(&OF_CLUSTERS).extend(promise.of_cluster.then_some(number));
            }
            let run = move || Ok(promise.run(number)?);
            trials.push(Trial::test(name, run).with_ignored_flag(left_out));
        }
        arguments.test_threads.get_or_insert(selected + 1);
        let conclusion = libtest_mimic::run(&arguments, trials);
        let mut ended = locked(&ENDED);
        ended.sort();
        if ended.len() > 1 {
            eprintln!("\nThe promises that took longest:");
            let longest = ended.iter().rev().take(20);
            longest.for_each(|(took, name)| eprintln!("{:>7.1} s  {name}", took.as_secs_f64()));
        }
        conclusion
    }
}

/// Whether the test runner runs a test.
fn is_selected(arguments: &Arguments, name: &str) -> bool {
    let matches = |filter: &String| name == filter || !arguments.exact && name.contains(filter.as_str());
    arguments.filter.as_ref().is_none_or(matches) && !arguments.skip.iter().any(matches)
}

impl Promise {
    /// Runs the promise when it has a place. `number` is its place in the order.
    fn run(self, number: usize) -> Result<(), String> {
        let installed = self.needs.map_or(Ok(()), wait_for);
        if self.of_cluster {
            let is_later = |left: &mut BTreeSet<usize>| left.first().is_some_and(|first| *first < number);
            drop(CLUSTER_IS_FREE.wait_while(locked(&OF_CLUSTERS), is_later));
        }
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let (limit, most) = match self {
            Self { alone: true, .. } => (&ALONE, 1),
            Self { waits: true, .. } => (&WAITS, 2),
            _ => (&COMPUTES, processors + 1),
        };
        let result = within(limit, most, || {
            while stopping() {
                thread::park();
            }
            let start = Instant::now();
            let result = panic::catch_unwind(AssertUnwindSafe(|| installed.and_then(|()| (self.run)())));
            locked(&ENDED).push((start.elapsed(), self.name.clone()));
            result
        });
        locked(&OF_CLUSTERS).remove(&number);
        CLUSTER_IS_FREE.notify_all();
        if !matches!(result, Ok(Ok(()))) {
            eprintln!("to run what failed alone: scripts/test {}", self.name);
        }
        result.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }
}

/// The name of a function without its module path.
fn name_of<F>(_: &F) -> &'static str {
    let path = std::any::type_name::<F>();
    path.rsplit("::").next().unwrap_or(path)
}

impl Module<'_> {
    /// The further promises of this module run a program of `scripts/servers`, such as `examples`.
    pub fn needs(&mut self, program: &'static str) -> &mut Self {
        self.needs = Some(program);
        self
    }

    /// The further promises of this module use something that exists once in a server, such as a schema with a given name, or
    /// see the sessions of all others. One of them runs at a time.
    pub fn alone(&mut self) -> &mut Self {
        self.alone = true;
        self
    }

    /// The further promises of this module wait most of their time, for locks, time-outs or a pause. They run while others compute.
    pub fn waits(&mut self) -> &mut Self {
        self.waits = true;
        self
    }

    /// The further promises need a private server: they start one or more, end one, or read the files or the time of its
    /// process. A change of global settings that others would notice needs one, too. With SLOTTED_TEST_URLS they are left out.
    pub fn private(&mut self) -> &mut Self {
        (self.private, self.alone) = (true, false);
        self
    }

    fn add(&mut self, name: String, of_cluster: bool, run: impl FnOnce() -> Result<(), String> + Send + 'static) {
        let Self { waits, alone, needs, .. } = *self;
        let is_missing = || self.private || needs.is_some_and(|program| !is_provided(program));
        self.promises.0.push(Promise {
            name: format!("{}::{name}", self.name),
            waits,
            alone,
            of_cluster,
            needs,
            left_out: given() && is_missing(),
            run: Box::new(run),
        });
    }

    /// A promise that needs no server.
    pub fn plain<F: Fn() + Send + 'static>(&mut self, promise: F) -> &mut Self {
        self.add(name_of(&promise).to_owned(), false, move || {
            promise();
            Ok(())
        });
        self
    }

    /// A promise that is tested on every server.
    pub fn on_servers<F: Fn(&Server) + Copy + Send + 'static>(&mut self, promise: F) -> &mut Self {
        self.on(|_| true, promise)
    }

    /// A promise of the tool, which asks all versions of a family the same. It is tested on MySQL and on the newest MariaDB.
    pub fn on_families<F: Fn(&Server) + Copy + Send + 'static>(&mut self, promise: F) -> &mut Self {
        self.on(servers::is_newest, promise)
    }

    /// A promise of the tool that does not depend on the server. It is tested on the first one.
    pub fn on_one_server<F: Fn(&Server) + Copy + Send + 'static>(&mut self, promise: F) -> &mut Self {
        self.on(|name| name == servers::all()[0].name, promise)
    }

    /// A promise that is tested on the servers whose names, such as `mariadb-11.8`, match `chosen`.
    pub fn on<F>(&mut self, chosen: fn(&str) -> bool, promise: F) -> &mut Self
    where
        F: Fn(&Server) + Copy + Send + 'static,
    {
        for needed in servers::all().iter().filter(|needed| chosen(&needed.name)) {
            let name = format!("{}::{}", name_of(&promise), needed.name.replace(['-', '.'], "_"));
            self.add(name, false, move || {
                let server = needed.get()?;
                with_server_log(&server, || promise(&server));
                Ok(())
            });
        }
        self
    }

    /// A promise that is tested on `nodes` nodes of the cluster of a server. The first one can ask for one node, and start the others.
    pub fn on_cluster<F>(&mut self, needed: &'static Needed, nodes: usize, promise: F) -> &mut Self
    where
        F: Fn(&Cluster, &Schema<'_>) + Copy + Send + 'static,
    {
        self.needs = cluster::program(needed);
        let name = format!("{}::{}", name_of(&promise), cluster::name(needed));
        self.add(name, true, move || cluster::on_cluster(needed, nodes, promise));
        self
    }
}
