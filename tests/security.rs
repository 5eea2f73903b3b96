//! What an owner of a schema and other sessions can make an administrator do, and the promises that pages name.

use std::fs;

use mysql::prelude::Queryable;
use slotted::package::Options;

use crate::accounts::Account;
use crate::support::{Module, Server, error_of, package, root};

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
        let mut texts = vec![fs::read_to_string(root().join(format!("tests/{module}.rs"))).expect(module)];
        for entry in fs::read_dir(root().join("tests").join(module)).into_iter().flatten() {
            texts.extend(fs::read_to_string(entry.expect("a file").path()));
        }
        assert!(texts.iter().any(|text| text.contains(&format!("fn {name}("))), "{module}::{name}");
        // Registered, not only written.
        let registered = |end| texts[0].contains(&format!("{name}{end}")) && !name.is_empty();
        assert!(registered(")\n") || registered(");") || registered(",\n"), "{module}::{name}");
    }
}

/// The owner puts a view of a table of another schema, which the owner may only read, in the place of the table of the package. The
/// statements of a routine run as its definer.
fn an_owner_of_a_schema_gains_nothing_from_the_account_of_the_routines(server: &Server) {
    for by_administrator in [false, true] {
        let (schema, others) = (server.schema(), server.schema());
        let (owner, definer) = (Account::new(&schema, "o", "ALL"), format!("{}_d", schema.name));
        let package = package(|options: &mut Options| {
            options.definer = (!by_administrator).then(|| format!("{definer}@localhost").parse().expect("an account"));
        });
        others.install(&crate::support::package(|_| {}));
        schema.install(&package);
        if !by_administrator {
            schema.run(&schema.file(&package, "accounts.sql"));
        }
        for schema in [&schema, &others] {
            schema.run("CALL counter_setup('a', NULL, 1, 5)");
        }
        schema.run(&format!("GRANT SELECT ON {}.counters TO '{}'@'%'", others.ident(), owner.name));
        let mut owner = owner.connect();
        owner.query_drop("CALL counter_add('a', 1)").expect("an addition");
        owner.query_drop("DROP TABLE counters").expect("a table of the owner");
        owner
            .query_drop(format!(
                "CREATE SQL SECURITY INVOKER VIEW counters AS SELECT * FROM {}.counters",
                others.ident()
            ))
            .expect("a view");
        let called = owner.query_drop("CALL counter_add('a', 100)");
        if by_administrator {
            // As the page says.
            called.expect("an addition by the administrator");
        } else {
            let error = error_of(called);
            assert_eq!(error.0, 1356, "{error:?}");
        }
        let total = if by_administrator { 105 } else { 5 };
        assert_eq!(others.first::<i64>("SELECT counter FROM counters"), total);
        schema.run(&format!("DROP USER IF EXISTS {definer}@localhost"));
    }
}
