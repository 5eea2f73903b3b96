//! Frameworks of Python.

use crate::support::{Module, Server, package};

use super::{Application, counts_with, the_page_has};

pub fn promises(module: &mut Module<'_>) {
    module
        .plain(the_page_has_the_versions_and_the_settings_of_python)
        .on_families(a_team_counts_with_django)
        .on_families(a_team_counts_with_sqlalchemy)
        .on_families(django_keeps_and_truncates_the_slots_with_one_line)
        .on_families(alembic_ignores_the_slots_with_one_line)
        .on_families(a_truncating_test_with_sqlalchemy_names_the_slots);
}

fn the_page_has_the_versions_and_the_settings_of_python() {
    the_page_has(
        "frameworks_of_python",
        "==",
        &[("django", &["articles/migrations/0001_initial.py"]), ("sqlalchemy", &["migrations/env.py"])],
    );
}

fn a_team_counts_with_django(server: &Server) {
    counts_with(server, "django");
}

fn a_team_counts_with_sqlalchemy(server: &Server) {
    counts_with(server, "sqlalchemy");
}

fn django_keeps_and_truncates_the_slots_with_one_line(server: &Server) {
    let application = Application::new(server, "django");
    application.without("counted.py", "        slots_of(model, self)");
    // With the line, `run` passes both.
    let check = application.fails("sh run");
    assert!(check.contains("Delete model ArticleViews"), "{check}");
    let tests = application.fails("python manage.py test");
    assert!(tests.contains("FAIL: test_starts_at_zero"), "{tests}");
}

fn alembic_ignores_the_slots_with_one_line(server: &Server) {
    let application = Application::new(server, "sqlalchemy");
    application.runs("sed '/alembic downgrade/,$d' run | sh");
    let revision = "alembic revision --autogenerate -m Compared >/dev/null; cat migrations/versions/*_compared.py; rm migrations/versions/*_compared.py";
    application.runs("alembic check");
    // Without a connection, as docs/migrations.md says.
    let offline = application.fails("alembic upgrade head --sql");
    assert!(offline.contains("exec_driver_sql"), "{offline}");
    assert!(!application.runs(revision).contains("drop_table"));
    // The table of named counters, which no model counts with.
    application.schema.install(&package(|_| {}));
    assert!(application.fails("alembic check").contains("'counters'"));
    application.runs("echo 'Counter.tables.add(\"counters\")' >> articles.py; alembic check");
    application.without("migrations/env.py", "include_name");
    let check = application.fails("alembic check");
    assert!(check.contains("remove_table") && check.contains("articles_views"), "{check}");
    assert!(application.runs(revision).contains("op.drop_table('articles_views')"));
}

fn a_truncating_test_with_sqlalchemy_names_the_slots(server: &Server) {
    let application = Application::new(server, "sqlalchemy");
    application.runs("sed -i 's/, views.slots\\]/]/' test_articles.py");
    let tests = application.fails("sh run");
    assert!(tests.contains("FAIL: test_starts_at_zero"), "{tests}");
}
