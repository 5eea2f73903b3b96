//! What an owner of a schema and other sessions can make an administrator do, and the promises that pages name.

use std::fs;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .plain(pages_name_promises_that_exist)
        .on_families(an_owner_of_a_schema_gains_nothing_from_the_account_of_the_routines);
}

/// The names in the page, such as `hostile::nothing_that_is_planted_in_a_schema_is_executed`.
fn pages_name_promises_that_exist() {
    let page = |name: &str| fs::read_to_string(root().join(name)).expect("the page");
    let pages = ["docs/operations.md", "docs/where-it-runs.md"].map(page).concat();
    let names: Vec<_> = pages.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::")).collect();
    assert!(names.len() > 20, "{names:?}");
    for (module, name) in names {
        let text = fs::read_to_string(root().join(format!("tests/{module}.rs"))).expect(module);
        let ends = [")\n", ");", ",\n"];
        let is_registered = ends.iter().any(|end| text.contains(&format!("{name}{end}")));
        assert!(is_registered && text.contains(&format!("fn {name}(")), "{module}::{name}");
    }
}

/// The owner replaces the table of the package by a view of one that the owner may only read. A routine runs as its definer.
fn an_owner_of_a_schema_gains_nothing_from_the_account_of_the_routines(server: &Server) {
    for by_administrator in [false, true] {
        let (schema, others) = (server.schema(), server.schema());
        let (owner, definer) = (Account::new(&schema, "o", "ALL"), format!("{}_d@localhost", schema.name));
        let package = package(|options| {
            options.definer = (!by_administrator).then(|| definer.parse().expect("an account"));
        });
        others.install(&crate::support::package(|_| {}));
        schema.install(&package);
        if !by_administrator {
            schema.run(&schema.file(&package, "accounts.sql"));
        }
        [&schema, &others].iter().for_each(|schema| schema.run("CALL counter_setup('a', NULL, 1, 5)"));
        schema.run(&format!("GRANT SELECT ON {}.counters TO '{}'@'%'", others.ident(), owner.name));
        let mut owner = owner.connect();
        let view = format!("CREATE SQL SECURITY INVOKER VIEW counters AS SELECT * FROM {}.counters", others.ident());
        run_all(&mut owner, &["CALL counter_add('a', 1)", "DROP TABLE counters", &view]).expect("the owner may");
        let called = owner.query_drop("CALL counter_add('a', 100)");
        if by_administrator {
            // As the page says.
            called.expect("an addition by the administrator");
        } else {
            assert_eq!(error_of(called).0, 1356);
        }
        let total = if by_administrator { 105 } else { 5 };
        assert_eq!(others.first::<i64>("SELECT counter FROM counters"), total);
        schema.run(&format!("DROP USER IF EXISTS {definer}"));
    }
}
