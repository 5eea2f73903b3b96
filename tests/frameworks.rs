//! The frameworks of examples/frameworks, as a team uses them: from an empty folder and an empty database, with an account that has
//! privileges on this database alone. On MySQL, the binary log is on, so that this account creates no function and no trigger.

mod node;
mod python;
mod ruby;
mod rust;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use mysql::prelude::Queryable;
use tempfile::TempDir;

use crate::support::{Module, Network, Schema, Server, provided, root};

pub fn promises(mut module: Module<'_>) {
    let module = module.needs("frameworks").private();
    node::promises(module);
    python::promises(module);
    ruby::promises(module);
    rust::promises(module);
}

/// The folder of an application with a framework, and its database, whose account has the same name.
struct Application<'a> {
    folder: TempDir,
    network: &'a Network,
    schema: Schema<'a>,
}

impl<'a> Application<'a> {
    /// A copy of a folder of examples/frameworks, and an empty database. The account has privileges on this database and on the
    /// one of the same name after `test_`, which some frameworks create for their tests.
    fn new(server: &'a Server, framework: &str) -> Self {
        let network = server.network();
        let schema = network.server.schema();
        if server.is_mysql() {
            let (binary_log, trusted): (bool, bool) = schema.first("SELECT @@log_bin, @@log_bin_trust_function_creators");
            assert!(binary_log && !trusted, "an ordinary account can create functions");
        }
        let (name, database) = (&schema.name, schema.name.replace('_', "\\_"));
        schema.run(&format!(
            "CREATE USER '{name}'@'localhost' IDENTIFIED BY 'secret'; GRANT ALL ON `{database}`.* TO '{name}'@'localhost'; \
             GRANT ALL ON `test\\_{database}`.* TO '{name}'@'localhost'"
        ));
        let folder = tempfile::tempdir().expect("a folder");
        copy(&root().join("examples/frameworks").join(framework), folder.path());
        let packages = provided("frameworks").join("node/node_modules");
        std::os::unix::fs::symlink(packages, folder.path().join("node_modules")).expect("a link");
        Self { folder, network, schema }
    }

    /// Executes a script of a shell in the folder. Returns whether its exit code is 0, and what it has printed.
    fn shell(&self, script: &str) -> (bool, String) {
        let frameworks = provided("frameworks");
        let tool = Path::new(env!("CARGO_BIN_EXE_slotted")).parent().expect("a folder").to_owned();
        let folders = [tool, frameworks.join("python/venv/bin"), frameworks.join("node/node_modules/.bin")];
        let system = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&system))).expect("a path");
        let output = Command::new("timeout")
            .args(["900", "sh", "-ec", script])
            .current_dir(self.folder.path())
            .envs([("SLOTTED_HOST", "127.0.0.1"), ("SLOTTED_PORT", &self.network.port), ("SLOTTED_PASSWORD", "secret")])
            .envs([("SLOTTED_USER", &self.schema.name), ("SLOTTED_DATABASE", &self.schema.name)])
            .env("PATH", path)
            // As in scripts/servers: the dependencies are compiled there.
            .env("CARGO_TARGET_DIR", frameworks.join("rust/target"))
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
    }

    #[track_caller]
    fn runs(&self, script: &str) -> String {
        let (success, printed) = self.shell(script);
        assert!(success, "{script}\n{printed}");
        printed
    }

    #[track_caller]
    fn fails(&self, script: &str) -> String {
        let (success, printed) = self.shell(script);
        assert!(!success, "{script} did not fail\n{printed}");
        printed
    }

    /// Deletes the only line of a file that contains a text: the setting without which a tool drops the counters.
    #[track_caller]
    fn without(&self, file: &str, text: &str) {
        let path = self.folder.path().join(file);
        let before = fs::read_to_string(&path).expect("a file");
        let after: Vec<_> = before.lines().filter(|line| !line.contains(text)).collect();
        assert_eq!(after.len() + 1, before.lines().count(), "{text} in {file}");
        fs::write(&path, after.join("\n") + "\n").expect("a file");
    }

    /// Asserts what the file `run` of each framework leaves: the whole package, one article, whose total is 3, and no counts of
    /// other articles.
    #[track_caller]
    fn has_counted(&self) {
        let url = format!("mysql://{0}:secret@127.0.0.1:{1}/{0}", self.schema.name, self.network.port);
        self.runs(&format!("slotted status --url {url}"));
        let totals = "SELECT title, total FROM articles JOIN articles_views_totals USING (id)";
        assert_eq!(self.schema.query::<(String, i64)>(totals), [("Kept".to_owned(), 3)]);
        let others = "SELECT COUNT(*) FROM articles_views WHERE id NOT IN (SELECT id FROM articles)";
        assert_eq!(self.schema.first::<u64>(others), 0);
    }
}

/// Drops the database that a framework has created for its tests, if it was interrupted.
impl Drop for Application<'_> {
    fn drop(&mut self) {
        let _ = self.network.server.connect().query_drop(format!("DROP DATABASE IF EXISTS `test_{}`", self.schema.name));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// The promise of each framework: its file `run` ends with the exit code 0, and the counts are right.
fn counts_with(server: &Server, framework: &str) {
    let application = Application::new(server, framework);
    application.runs("sh run");
    application.has_counted();
}

/// Asserts of a list in scripts/servers, and of the row of each framework in the table of examples/frameworks/README.md: the table has the
/// versions that are installed, and what it has in code is in the file to copy or in others of the folder.
fn the_page_has(list: &str, before_version: &str, frameworks: &[(&str, &[&str])]) {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (page, script) = (read("examples/frameworks/README.md"), read("scripts/servers"));
    let (_, function) = script.split_once(&format!("{list}() {{\n")).expect("the function");
    let (_, wanted) = function.split_once("wanted=(").expect("the list");
    let wanted: Vec<_> = wanted.split(')').next().unwrap_or_default().split([' ', '"']).filter(|word| !word.is_empty()).collect();
    assert!(wanted.len() > 3, "{wanted:?}");
    for package in wanted {
        let (name, version) = package.split_once(before_version).expect("a version");
        // The table has the name as its project writes it, without extras.
        let name = name.split('[').next().unwrap_or_default().to_lowercase();
        assert!(page.to_lowercase().contains(&format!("{name} {version}")), "{package}");
    }
    for (framework, others) in frameworks {
        let of = |name: &str| read(&format!("examples/frameworks/{framework}/{name}"));
        let example = page.lines().find_map(|line| line.split_once(&format!("]({framework}/counted.")));
        let (kind, settings) = example.and_then(|(_, rest)| rest.split_once(')')).expect("a row");
        let text: String = others.iter().map(|name| of(name)).chain([of(&format!("counted.{kind}"))]).collect();
        for code in settings.split('`').skip(1).step_by(2) {
            assert!(text.contains(code.trim_end_matches("()")), "{framework}: {code}");
        }
    }
}
