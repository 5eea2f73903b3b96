//! Frameworks of Rust.

use std::fs;

use crate::support::{Module, Server, provided};

use super::Application;

pub fn promises(module: &mut Module<'_>) {
    module
        .on_families(a_team_counts_with_sqlx)
        .on_families(a_team_counts_with_diesel)
        .on_families(diesel_drops_no_slots_with_one_line);
}

/// The application with the versions that scripts/servers has compiled.
fn application<'a>(server: &'a Server, framework: &str) -> Application<'a> {
    let application = Application::new(server, framework);
    let lock = provided("frameworks").join("rust").join(framework).join("Cargo.lock");
    fs::copy(lock, application.folder.path().join("Cargo.lock")).expect("a copy");
    application
}

fn a_team_counts_with_sqlx(server: &Server) {
    let application = application(server, "sqlx");
    application.runs("CARGO_NET_OFFLINE=true sh run");
    application.has_counted();
}

fn a_team_counts_with_diesel(server: &Server) {
    let application = application(server, "diesel");
    application.runs("CARGO_NET_OFFLINE=true sh run");
    application.has_counted();
}

fn diesel_drops_no_slots_with_one_line(server: &Server) {
    let application = application(server, "diesel");
    let (name, port) = (&application.schema.name, &application.network.port);
    let diesel = provided("frameworks").join("rust/bin/diesel");
    let generate = format!(
        "{} migration generate --diff-schema --database-url mysql://{name}:secret@127.0.0.1:{port}/{name}",
        diesel.display()
    );
    application.runs("sed -i '/^cargo/d' run; sh run");
    application.runs(&format!("{} migration run --locked-schema --database-url mysql://{name}:secret@127.0.0.1:{port}/{name}", diesel.display()));
    application.runs(&format!("{generate} same; ! grep -r DROP migrations/*same"));
    application.without("diesel.toml", "except_tables");
    application.runs(&format!("{generate} other; grep 'DROP TABLE IF EXISTS `articles_views`' migrations/*other/up.sql"));
}
