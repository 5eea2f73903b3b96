//! What an owner of a schema and other sessions can make an administrator do, and the page about security.

use std::fs;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use slotted::package::Options;

use crate::advise::{printed, slotted};
use crate::support::{Module, Schema, Server, error_of, file, package, root};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(the_page_names_promises_that_exist)
        .on_servers(an_owner_of_a_schema_gains_nothing_from_the_account_of_the_routines)
        .on_servers(routines_that_run_with_privileges_on_all_databases_are_reported);
}

/// The names in the page, such as `install::each_role_has_its_privileges_and_no_others`.
fn the_page_names_promises_that_exist() {
    let page = fs::read_to_string(root().join("docs/security.md")).expect("the page");
    let names: Vec<_> = page.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::")).collect();
    assert!(names.len() > 20, "{names:?}");
    for (module, name) in names {
        let mut texts = vec![fs::read_to_string(root().join(format!("tests/{module}.rs"))).expect(module)];
        for entry in fs::read_dir(root().join("tests").join(module)).into_iter().flatten() {
            texts.extend(fs::read_to_string(entry.expect("a file").path()));
        }
        assert!(texts.iter().any(|text| text.contains(&format!("fn {name}("))), "{module}::{name}");
        // Registered, not only written.
        let registered = |end| texts[0].contains(&format!("{name}{end}")) && !name.is_empty();
        assert!(registered(")\n") || registered(");"), "{module}::{name}");
    }
}

/// An account that connects, dropped at the end.
struct Account<'a> {
    schema: &'a Schema<'a>,
    name: String,
}

impl<'a> Account<'a> {
    fn new(schema: &'a Schema<'a>, suffix: &str) -> Self {
        let name = format!("{}_{suffix}", schema.name);
        schema.run(&format!("CREATE USER '{name}'@'%'"));
        Self { schema, name }
    }

    fn connect(&self) -> Conn {
        let options = OptsBuilder::from_opts(self.schema.options()).user(Some(&self.name)).pass(None::<&str>);
        Conn::new(options).expect("a connection")
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        self.schema.run(&format!("DROP USER IF EXISTS '{}'@'%'", self.name));
    }
}

/// The owner puts a view of a table of another schema, which the owner may only read, in the place of the table of the package. The
/// statements of a routine run as its definer.
fn an_owner_of_a_schema_gains_nothing_from_the_account_of_the_routines(server: &Server) {
    for by_administrator in [false, true] {
        let (schema, others) = (server.schema(), server.schema());
        let (owner, definer) = (Account::new(&schema, "o"), Account::new(&schema, "d"));
        let package = package(|options: &mut Options| {
            options.definer = (!by_administrator).then(|| format!("{}@%", definer.name).parse().expect("an account"));
        });
        others.install(&crate::support::package(|_| {}));
        schema.install(&package);
        if !by_administrator {
            schema.run(&file(&package, "accounts.sql"));
        }
        for schema in [&schema, &others] {
            schema.run("CALL counter_setup('a', NULL, 1, 5)");
        }
        schema.run(&format!("GRANT ALL ON {}.* TO '{}'@'%'", schema.ident(), owner.name));
        schema.run(&format!("GRANT SELECT ON {}.counters TO '{}'@'%'", others.ident(), owner.name));
        let mut owner = owner.connect();
        owner.query_drop("CALL counter_add('a', 1)").expect("an addition");
        owner.query_drop("DROP TABLE counters").expect("a table of the owner");
        owner
            .query_drop(format!("CREATE SQL SECURITY INVOKER VIEW counters AS SELECT * FROM {}.counters", others.ident()))
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
    }
}

/// Followed to the letter, the advice ends it, and calls do not fail meanwhile.
fn routines_that_run_with_privileges_on_all_databases_are_reported(server: &Server) {
    let schema = server.schema();
    let (definer, owner) = (Account::new(&schema, "d"), Account::new(&schema, "i"));
    let run_as = |url: &str, arguments: &[&str]| {
        let output = slotted(&[arguments, &["--url", url, "--database", &schema.name]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", printed(&output));
        printed(&output)
    };
    let run = |arguments: &[&str]| run_as(&server.url(), arguments);
    let is_noted = |text: &str| text.contains("note: the routines run as ") && text.contains(", which has privileges on all databases");
    let json = |arguments: &[&str]| serde_json::from_str::<serde_json::Value>(&run(arguments)).expect("JSON")["packages"][0]["note"].clone();
    let said = run(&["install", "counters"]);
    assert!(is_noted(&said), "{said}");
    let administrator: String = schema.first("SELECT CURRENT_USER()");
    assert!(said.contains(&format!("run as {administrator}, ")), "{said}");
    let status = run(&["status"]);
    assert!(is_noted(&status), "{status}");
    assert!(json(&["status", "--json"])["what"].is_string());
    schema.run("CALL counter_setup('hits', NULL, NULL, 1)");

    // The advice, with an account that no other promise has.
    let arguments = |line: &str| -> Vec<String> {
        let own = format!("{}@%", definer.name);
        line.split(' ').map(|word| word.replace("slotted@localhost", &own)).collect()
    };
    let after = |words: &str| said.lines().find_map(|line| Some(line.split_once(words)?.1.to_owned())).unwrap_or_else(|| panic!("{words}: {said}"));
    let folder = tempfile::tempdir().expect("a folder");
    let generated = std::process::Command::new(env!("CARGO_BIN_EXE_slotted"))
        .arg("generate")
        .args(arguments(&after("source accounts.sql of: slotted generate ")))
        .current_dir(folder.path())
        .output()
        .expect("slotted runs");
    assert!(generated.status.success(), "{}", printed(&generated));
    schema.run(&fs::read_to_string(folder.path().join("generated/counters/accounts.sql")).expect("a script"));
    let install = arguments(&after("and then run: slotted "));
    let said = run(&install.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(said.contains("replace procedure counter_increment") && !is_noted(&said) && !said.contains("warning"), "{said}");
    schema.run("CALL counter_increment('hits')");
    assert_eq!(schema.first::<u64>("SELECT counter_get('hits')"), 2);
    let status = run(&["status"]);
    assert!(!is_noted(&status) && json(&["status", "--json"]).is_null(), "{status}");

    // An account with privileges on this database alone, and routines with the privileges of their callers.
    run(&["uninstall", "--with-data", "--yes"]);
    schema.run(&format!("GRANT ALL ON {}.* TO '{}'@'%'", schema.ident(), owner.name));
    let url = server.url_of(&owner.name, None);
    for arguments in [&["install", "counters", "--no-function"][..], &["status"]] {
        let said = run_as(&url, arguments);
        assert!(!is_noted(&said), "{said}");
    }
    // Who may not read the privileges of another account gets no note.
    run(&["install", "counters", "--no-function", "--slots", "20"]);
    assert!(is_noted(&run(&["status"])));
    let said = printed(&slotted(&["status", "--url", &url, "--database", &schema.name]));
    assert!(said.contains("counters --slots 20") && !is_noted(&said), "{said}");
    let said = run(&["install", "counters", "--no-function", "--slots", "20", "--security", "invoker"]);
    assert!(!is_noted(&said) && !is_noted(&run(&["status"])), "{said}");
}
