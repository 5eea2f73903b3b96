//! Frameworks of Ruby.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Module, Server, provided};

use super::Application;

pub fn promises(module: &mut Module<'_>) {
    module
        .on_families(a_team_counts_with_activerecord)
        .on_families(activerecord_needs_each_of_its_lines);
}

/// The application, and the line of a shell with which it has ActiveRecord and, as a team has them, the clients of its server.
fn application(server: &Server) -> (Application<'_>, String) {
    let application = Application::new(server, "activerecord");
    let bin = application.folder.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    // ActiveRecord executes them by these names on MariaDB, too.
    symlink(server.client_program(), bin.join("mysql")).expect("a link");
    symlink(server.dump(), bin.join("mysqldump")).expect("a link");
    let gems = provided("frameworks").join("ruby/usr/share/rubygems-integration/all");
    let settings = format!("export PATH=\"$PWD/bin:$PATH\" GEM_PATH='{}:'; ", gems.display());
    (application, settings)
}

fn a_team_counts_with_activerecord(server: &Server) {
    let (application, settings) = application(server);
    application.runs(&(settings + "sh run"));
    application.has_counted();
}

fn activerecord_needs_each_of_its_lines(server: &Server) {
    let (application, settings) = application(server);
    application.without("slotted_counter.rb", "      attr_readonly column");
    application.without("slotted_counter.rb", "      after_destroy {");
    application.without("fixtures/articles_views.yml", "#");
    fs::remove_file(application.folder.path().join("fixtures/articles_views.yml")).expect("a file");
    let edits = "sed -i 's/--events //' articles.rb; sed -i 's/articles articles_views]/articles]/' articles_test.rb; ";
    let printed = application.fails(&(settings + edits + "sh run"));
    for test in [
        "test_save_does_not_write_the_column",
        "test_the_counts_are_deleted_with_the_row",
        "test_structure.sql_has_the_routines_and_the_event",
        "test_fixtures_delete_what_other_tests_have_left_in_their_tables",
    ] {
        assert!(printed.contains(&format!("#{test} [")) || printed.contains(&format!("#{test}:")), "{test}: {printed}");
    }
}
