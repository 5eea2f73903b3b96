//! Frameworks of Node.js.

use crate::support::{Module, Server};

use super::{Application, counts_with, the_page_has};

pub fn promises(module: &mut Module<'_>) {
    module
        .plain(the_page_has_the_versions_and_the_settings_of_node)
        .on_families(a_team_counts_with_typeorm)
        .on_families(a_team_counts_with_sequelize)
        .on_families(a_team_counts_with_drizzle)
        .on_one_server(typeorm_loses_no_count_with_four_lines)
        .on_one_server(sequelize_loses_no_count_with_two_lines)
        .on_one_server(drizzle_kit_pushes_and_pulls_with_two_lines);
}

fn the_page_has_the_versions_and_the_settings_of_node() {
    the_page_has(
        "frameworks_of_node",
        "@",
        &[
            ("typeorm", &["articles.test.js"]),
            ("sequelize", &["articles.test.js"]),
            ("drizzle", &["articles.test.js", "schema.js", "drizzle.config.js"]),
        ],
    );
}

fn a_team_counts_with_typeorm(server: &Server) {
    counts_with(server, "typeorm");
}

fn a_team_counts_with_sequelize(server: &Server) {
    counts_with(server, "sequelize");
}

fn a_team_counts_with_drizzle(server: &Server) {
    counts_with(server, "drizzle");
}

/// Asserts that a test of the framework fails without the only line of a file that contains a text.
#[track_caller]
fn fails_without(server: &Server, framework: &str, file: &str, line: &str, test: &str) {
    let application = Application::new(server, framework);
    application.without(file, line);
    let printed = application.fails("sh run");
    assert!(failed(&printed, test), "{line}\n{printed}");
}

fn failed(printed: &str, test: &str) -> bool {
    printed.lines().any(|line| line.trim_start().starts_with("not ok") && line.ends_with(test))
}

fn typeorm_loses_no_count_with_four_lines(server: &Server) {
    let without = |file, line, test| fails_without(server, "typeorm", file, line, test);
    without("counted.js", "update: false", "the column is not written");
    without("counted.js", "synchronize: false", "dropSchema and synchronize leave the counters");
    without("articles.test.js", "TRUNCATE TABLE articles_views", "a deleted row has no counts");
    // With dropSchema, synchronize creates the tables of entities again, and no others.
    let application = Application::new(server, "typeorm");
    let printed = application.fails("sed -i 's/migrationsRun: true/synchronize: true/' articles.test.js; sh run");
    assert!(failed(&printed, "views are counted"), "{printed}");
}

fn sequelize_loses_no_count_with_two_lines(server: &Server) {
    let without = |file, line, test| fails_without(server, "sequelize", file, line, test);
    without("counted.js", "set() {", "the column is not written");
    without("articles.test.js", "TRUNCATE TABLE articles_views", "sync leaves the counts");
}

fn drizzle_kit_pushes_and_pulls_with_two_lines(server: &Server) {
    let without = |file, line, test| fails_without(server, "drizzle", file, line, test);
    without("drizzle.config.js", "tablesFilter", "push leaves the counts");
    without("schema.js", "exports.articlePackage", "push leaves the counts");
    // The schema that is pulled has the views, and can be loaded.
    let application = Application::new(server, "drizzle");
    application.runs("sh run");
    let url = "mysql://$SLOTTED_USER:$SLOTTED_PASSWORD@$SLOTTED_HOST:$SLOTTED_PORT/$SLOTTED_DATABASE";
    application.runs(&format!("drizzle-kit pull --dialect mysql --url {url} --out pulled"));
    let pulled = application.runs("tsx pulled/schema.ts; cat pulled/schema.ts");
    assert!(pulled.contains("articlesViewsPackage") && pulled.contains("articlesViewsTotals"), "{pulled}");
}
