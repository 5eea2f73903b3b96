//! Frameworks of Python.

use crate::support::{Module, Server};

use super::{Application, counts_with};

pub fn promises(module: &mut Module<'_>) {
    module
        .on_families(a_team_counts_with_django)
        .on_families(django_truncates_the_slots_with_one_line);
}

fn a_team_counts_with_django(server: &Server) {
    counts_with(server, "django");
}

fn django_truncates_the_slots_with_one_line(server: &Server) {
    let application = Application::new(server, "django");
    application.without("counted.py", "        slots_of(model, self)");
    let printed = application.fails("sed -i 's/^python manage.py makemigrations --check$//' run; sh run");
    assert!(printed.contains("FAIL: test_starts_at_zero"), "{printed}");
}
