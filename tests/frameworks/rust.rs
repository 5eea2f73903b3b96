//! Frameworks of Rust.

use std::fs;

use crate::support::{Module, Server, provided, root};

use super::Application;

pub fn promises(module: &mut Module<'_>) {
    module
        .plain(the_page_has_the_versions_of_rust)
        .on_families(a_team_counts_with_sqlx)
        .on_families(a_team_counts_with_diesel)
        .on_families(diesel_drops_no_slots_with_one_line);
}

fn the_page_has_the_versions_of_rust() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (page, script) = (read("examples/frameworks/README.md"), read("scripts/servers"));
    for (framework, name) in [("sqlx", "sqlx"), ("diesel", "Diesel")] {
        let manifest = read(&format!("examples/frameworks/{framework}/Cargo.toml"));
        let (_, rest) = manifest.split_once(&format!("\n{framework} = {{ version = \"=")).expect("a version");
        let (version, _) = rest.split_once('"').expect("its end");
        assert!(page.contains(&format!("| {name} {version}")), "{name} {version}");
        assert!(framework != "diesel" || script.contains(&format!("diesel_cli@{version} ")), "{version} of the command");
    }
}

/// Uses the dependencies as they are compiled. ring is compiled again if variables change that cargo has set for this test.
const OFFLINE: &str = "unset $(env | grep -oE '^CARGO_(PKG|MANIFEST)_[A-Z_]*'); CARGO_NET_OFFLINE=true CARGO_INCREMENTAL=0 sh run";

/// The application with the versions that scripts/servers has compiled.
fn application<'a>(server: &'a Server, framework: &str) -> Application<'a> {
    let application = Application::new(server, framework);
    let lock = provided("frameworks").join("rust").join(framework).join("Cargo.lock");
    fs::copy(lock, application.folder.path().join("Cargo.lock")).expect("a copy");
    // cargo keeps the programs of each folder that it has compiled in.
    application.runs(r#"find "$CARGO_TARGET_DIR/debug" -depth -name '*articles[-_]*' -mmin +60 -exec rm -rf {} +"#);
    application
}

fn a_team_counts_with_sqlx(server: &Server) {
    let application = application(server, "sqlx");
    application.runs(OFFLINE);
    application.has_counted();
}

fn a_team_counts_with_diesel(server: &Server) {
    let application = application(server, "diesel");
    application.runs(OFFLINE);
    application.has_counted();
}

fn diesel_drops_no_slots_with_one_line(server: &Server) {
    let application = application(server, "diesel");
    let (name, port) = (&application.schema.name, &application.network.port);
    let program = provided("frameworks").join("rust/bin/diesel");
    let url = format!("mysql://{name}:secret@127.0.0.1:{port}/{name}");
    let diesel = format!("DATABASE_URL='{url}' '{}' migration", program.display());
    // The schema of Diesel stays the same, too.
    application.runs(&format!("sed -i '/^cargo/d' run; sh run; {diesel} run --locked-schema"));
    application.runs(&format!("{diesel} generate --diff-schema same; ! grep -r DROP migrations/*same"));
    application.without("diesel.toml", "except_tables");
    let drop = "grep 'DROP TABLE IF EXISTS `articles_views`' migrations/*other/up.sql";
    application.runs(&format!("{diesel} generate --diff-schema other; {drop}"));
}
