//! Registers promises as tests of the test runner.

use libtest_mimic::Trial;

use super::cluster::{self, Cluster};
use super::run::{self, Lane, Place};
use super::servers::{self, Needed, Server, with_server_log};

/// A promise and what it needs to run.
pub struct Promise {
    pub name: String,
    /// The lanes in which it takes a place, one after the other.
    pub lanes: Vec<Lane>,
    /// A program of `scripts/servers` that it runs.
    pub needs: Option<&'static str>,
    /// What it needs and this run does not have. The test runner names the promise as ignored.
    pub left_out: Option<&'static str>,
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

/// The modules that attack the tool or interrupt it. `scripts/test --quick` leaves them out.
const ATTACKS: [&str; 3] = ["ending::", "hostile::", "security::"];

impl Promises {
    /// The registry for the promises of a module.
    pub fn of(&mut self, module: &'static str) -> Module<'_> {
        Module {
            name: module,
            promises: self,
            needs: None,
            alone: false,
            waits: false,
            private: false,
        }
    }

    /// The promises of this run in the order in which they begin. The clusters begin first, because they end last. Those that need
    /// another program come late, because it can still be being installed.
    pub fn in_order(mut self) -> Vec<Promise> {
        let attacks = |promise: &Promise| ATTACKS.iter().any(|module| promise.name.starts_with(module));
        self.0
            .retain(|promise| !servers::quick() || promise.needs.is_none() && !attacks(promise));
        self.0.sort_by_key(|promise| {
            let has = |lane| promise.lanes.contains(&lane);
            match (has(Lane::Cluster), promise.needs) {
                (true, Some(_)) => 0,
                (true, None) => 1,
                (false, None) => 2,
                (false, Some(_)) => 3,
            }
        });
        self.0
    }
}

impl Promise {
    /// The test of the test runner. `number` is its place in the order.
    pub fn into_trial(self, number: usize) -> Trial {
        let left_out = self.left_out;
        let trial = Trial::test(self.name.clone(), move || {
            let installed = self.needs.map_or(Ok(()), |program| {
                run::begin_without();
                super::wait_for(program)
            });
            let place = Place::take(&self.lanes, number, &self.name, self.needs.is_some());
            Ok(place.run(|| installed.and_then(|()| (self.run)()))?)
        });
        match left_out {
            Some(needs) => trial.with_kind(needs).with_ignored_flag(true),
            None => trial,
        }
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
    /// see the sessions of all others. One of them runs on a server at a time.
    pub fn alone(&mut self) -> &mut Self {
        self.alone = true;
        self
    }

    /// The next promise waits most of its time, for locks, time-outs or a pause. It runs while others compute.
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

    /// What the next promise needs and this run does not have. Without SLOTTED_TEST_URLS, that is an error of the promise.
    fn left_out(&self) -> Option<&'static str> {
        if !servers::given() {
            None
        } else if self.private {
            Some("needs a private server")
        } else {
            self.needs
                .filter(|program| !super::is_provided(program))
                .map(|_| "needs another program")
        }
    }

    fn add(
        &mut self,
        name: String,
        lanes: Vec<Lane>,
        left_out: Option<&'static str>,
        run: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) {
        self.promises.0.push(Promise {
            name,
            lanes,
            needs: self.needs,
            left_out,
            run: Box::new(run),
        });
    }

    /// The lanes of the next promise.
    fn lanes(&mut self) -> Vec<Lane> {
        vec![if std::mem::take(&mut self.waits) {
            Lane::Waits
        } else {
            Lane::Computes
        }]
    }

    /// A promise that needs no server.
    pub fn plain<F: Fn() + Send + 'static>(&mut self, promise: F) -> &mut Self {
        let lanes = self.lanes();
        let left_out = self.left_out();
        self.add(
            format!("{}::{}", self.name, name_of(&promise)),
            lanes,
            left_out,
            move || {
                promise();
                Ok(())
            },
        );
        self
    }

    /// A promise that is tested on every server.
    pub fn on_servers<F: Fn(&Server) + Copy + Send + 'static>(&mut self, promise: F) -> &mut Self {
        self.on(|_| true, promise)
    }

    /// A promise of the tool, which asks all versions of a family the same. It is tested on MySQL and on the newest MariaDB.
    pub fn on_families<F: Fn(&Server) + Copy + Send + 'static>(&mut self, promise: F) -> &mut Self {
        self.on(
            |name| name.starts_with("mysql") || Some(name) == servers::newest_mariadb(),
            promise,
        )
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
        let lanes = self.lanes();
        let left_out = self.left_out();
        for (number, slot) in servers::all()
            .iter()
            .enumerate()
            .filter(|(_, slot)| chosen(&slot.name))
        {
            let server = slot.name.replace(['-', '.'], "_");
            let alone = self.alone.then_some(Lane::Server(number));
            let lanes = alone.into_iter().chain(lanes.iter().copied()).collect();
            self.add(
                format!("{}::{}::{server}", self.name, name_of(&promise)),
                lanes,
                left_out,
                move || {
                    let server = slot.get()?;
                    with_server_log(&server, || promise(&server));
                    Ok(())
                },
            );
        }
        self
    }

    /// A promise that is tested on the cluster of a server.
    pub fn on_cluster<F>(&mut self, needed: &'static Needed, promise: F) -> &mut Self
    where
        F: Fn(&Cluster) + Copy + Send + 'static,
    {
        self.on_nodes(needed, cluster::NODES, promise)
    }

    /// A promise that begins on the first node of the cluster of a server, and starts the others.
    pub fn on_first_node<F>(&mut self, needed: &'static Needed, promise: F) -> &mut Self
    where
        F: Fn(&Cluster) + Copy + Send + 'static,
    {
        self.on_nodes(needed, 1, promise)
    }

    fn on_nodes<F>(&mut self, needed: &'static Needed, nodes: usize, promise: F) -> &mut Self
    where
        F: Fn(&Cluster) + Copy + Send + 'static,
    {
        let name = format!("{}::{}::{}", self.name, name_of(&promise), cluster::name(needed));
        self.needs = cluster::program(needed);
        // Three nodes of Group Replication that fall behind fail more often: they have the place of another promise.
        let lanes = if self.needs.is_some() {
            vec![Lane::Cluster]
        } else {
            vec![Lane::Cluster, Lane::Computes]
        };
        self.add(name, lanes, None, move || {
            cluster::on_cluster(needed, nodes, promise)
        });
        self
    }
}
