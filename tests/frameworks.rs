//! The frameworks of examples/frameworks, as a team uses them: from an empty folder and an empty database, with an account that has
//! privileges on this database alone. On MySQL, the binary log is on, so that this account creates no function and no trigger.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .needs("frameworks")
        .plain(the_page_has_the_versions_of_the_frameworks)
        .private()
        .on_families(a_team_counts_with_activerecord)
        .on_families(a_team_counts_with_django)
        .on_families(a_team_counts_with_drizzle)
        .on_families(a_team_counts_with_sqlalchemy);
}

/// The folder of an application, and its database, whose account has the same name.
pub struct Application<'a> {
    program: &'static str,
    pub folder: TempDir,
    network: &'a Network,
    pub schema: Schema<'a>,
}

impl<'a> Application<'a> {
    /// An empty folder and an empty database. Its account may also create the database of tests, whose name begins with `test_`.
    pub fn new(server: &'a Server, program: &'static str) -> Self {
        let network = server.network();
        let schema = network.server.schema();
        let (name, database) = (&schema.name, schema.name.replace('_', "\\_"));
        schema.run(&format!(
            "CREATE USER '{name}'@'localhost' IDENTIFIED BY 'secret'; GRANT ALL ON `{database}`.* TO '{name}'@'localhost'; \
             GRANT ALL ON `test\\_{database}`.* TO '{name}'@'localhost'"
        ));
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("bin")).expect("a folder");
        // ActiveRecord executes the clients of its server by these names on MariaDB, too.
        let clients = [(server.client_program(), "bin/mysql"), (server.dump(), "bin/mysqldump")];
        for (target, name) in clients.into_iter().chain([(provided(program).join("node_modules"), "node_modules")]) {
            symlink(target, folder.path().join(name)).expect("a link");
        }
        Self { program, folder, network, schema }
    }

    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{0}:secret@127.0.0.1:{1}/{0}", self.schema.name, self.network.port)
    }

    /// Executes a script of a shell in the folder, whose exit code is 0.
    #[track_caller]
    pub fn runs(&self, script: &str) {
        let programs = provided(self.program);
        let tool = Path::new(env!("CARGO_BIN_EXE_slotted")).parent().expect("a folder");
        let mut folders = vec![tool.to_owned(), self.folder.path().join("bin")];
        folders.extend(["bin", "venv/bin", "node_modules/.bin"].map(|folder| programs.join(folder)));
        let system = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&system))).expect("a path");
        let output = Command::new("timeout")
            .args(["900", "sh", "-ec", script])
            .current_dir(self.folder.path())
            .envs([("SLOTTED_HOST", "127.0.0.1"), ("SLOTTED_PORT", &self.network.port), ("SLOTTED_PASSWORD", "secret")])
            .envs([("SLOTTED_USER", &self.schema.name), ("SLOTTED_DATABASE", &self.schema.name)])
            .env("SLOTTED_SERVER", if self.network.server.is_mysql() { "mysql" } else { "mariadb" })
            .env("PATH", path)
            .env("GEM_PATH", format!("{}:", programs.join("ruby/usr/share/rubygems-integration/all").display()))
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{script}\n{}{}", text(&output.stdout), text(&output.stderr));
    }
}

/// Drops the database that a framework has created for its tests, if it was interrupted.
impl Drop for Application<'_> {
    fn drop(&mut self) {
        let _ =
            self.network.server.connect().query_drop(format!("DROP DATABASE IF EXISTS `test_{}`", self.schema.name));
    }
}

/// The file `run` of a framework succeeds. It leaves the whole package, one article, whose total is 3, and no counts of others.
fn counts_with(server: &Server, framework: &str) {
    let application = Application::new(server, "frameworks");
    let schema = &application.schema;
    if server.is_mysql() {
        let (binary_log, trusted): (bool, bool) = schema.first("SELECT @@log_bin, @@log_bin_trust_function_creators");
        assert!(binary_log && !trusted, "an ordinary account can create functions");
    }
    let (source, url) = (root().join("examples/frameworks").join(framework), application.url("mysql"));
    application.runs(&format!("cp -r '{}/.' .\nsh run\nslotted status --url {url}", source.display()));
    let totals = "SELECT title, total FROM articles JOIN articles_views_totals USING (id)";
    assert_eq!(schema.query::<(String, i64)>(totals), [("Kept".to_owned(), 3)]);
    let others = "SELECT COUNT(*) FROM articles_views WHERE id NOT IN (SELECT id FROM articles)";
    assert_eq!(schema.first::<u64>(others), 0);
}

fn a_team_counts_with_activerecord(server: &Server) {
    counts_with(server, "activerecord");
}

fn a_team_counts_with_django(server: &Server) {
    counts_with(server, "django");
}

fn a_team_counts_with_drizzle(server: &Server) {
    counts_with(server, "drizzle");
}

fn a_team_counts_with_sqlalchemy(server: &Server) {
    counts_with(server, "sqlalchemy");
}

/// The table of the frameworks in examples/README.md has the versions that scripts/servers installs.
fn the_page_has_the_versions_of_the_frameworks() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (page, script) = (read("examples/README.md").to_lowercase(), read("scripts/servers"));
    let (_, function) = script.split_once("provide_frameworks() {\n").expect("the function");
    let lists = function.split("=(").skip(2).take(2).filter_map(|list| list.split(')').next());
    let wanted: Vec<_> = lists.flat_map(|list| list.split([' ', '"'])).filter(|word| !word.is_empty()).collect();
    assert!(wanted.len() > 6, "{wanted:?}");
    for package in wanted {
        let (name, version) = package.rsplit_once(['=', '@']).expect("a version");
        // The table has the name as its project writes it, without extras.
        let name = name.split(['[', '=']).next().unwrap_or_default().to_lowercase();
        assert!(page.contains(&format!("{name} {version}")), "{package}");
    }
}
