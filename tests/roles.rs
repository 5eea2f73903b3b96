//! What the roles of grants.sql can do: the table in docs/reference.md, cell by cell.

use mysql::prelude::Queryable;
use mysql::Row;
use slotted::package::{Kind, Package, Routine, Slots};

use crate::advise::{printed, slotted};
use crate::install::Account;
use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, bounded, bounded_keyed, error_of, keyed, package, root};

pub fn promises(mut module: Module<'_>) {
    module.on_one_server(the_table_of_roles_has_each_routine);
    module.on_servers(each_role_can_do_what_the_table_says);
}

/// A row of the table: the action, the packages, and what each role gets.
struct Cells {
    action: String,
    packages: String,
    of_roles: [String; 2],
}

fn table() -> Vec<Cells> {
    let page = std::fs::read_to_string(root().join("docs/reference.md")).expect("the page");
    let (_, rows) = page.split_once("| action | packages | `_app` | `_admin` |\n|---|---|---|---|\n").expect("the table");
    let cells = |row: &str| {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
        let [action, packages, app, admin] = cells.try_into().expect(row);
        Cells { action, packages, of_roles: [app, admin] }
    };
    rows.lines().take_while(|row| row.starts_with('|')).map(cells).collect()
}

impl Cells {
    fn is_of(&self, package: &Package) -> bool {
        let named = package.options.kind == Kind::Counters;
        let column = package.options.column.is_some();
        match &self.packages[..] {
            "all" => true,
            "all others" => !column,
            "named" => named,
            "named, bounded" => named || package.options.bounded,
            "bounded" => package.options.bounded,
            "records" => !named,
            "records without a column" => !named && !column,
            "of a column" => column,
            other => panic!("{other}"),
        }
    }

    /// The statements of the action, with routines by their last words.
    fn statements(&self, package: &Package) -> Vec<String> {
        let (table, prefix) = (&package.options.table, package.options.prefix.name());
        let named = package.options.kind == Kind::Counters;
        let routine = |word| call(package, word);
        match &self.action[..] {
            "`get`, read the views" => {
                vec![routine("get"), format!("SELECT * FROM {}", package.totals), format!("SELECT * FROM {}", package.package)]
            }
            "read the table of the slots, also in a join" => vec![
                format!("SELECT * FROM {table}"),
                format!("SELECT id, views + COALESCE(SUM(`count`), 0) FROM articles LEFT JOIN {table} USING (id) GROUP BY id, views"),
            ],
            "read the table of the slots" => vec![format!("SELECT * FROM {table}")],
            "change rows of the table of the slots" => {
                vec![format!("DELETE FROM {table}"), format!("UPDATE {table} SET {0} = {0} + 1", if named { "counter" } else { "`count`" }), format!("INSERT INTO {table} SELECT * FROM nothing")]
            }
            "delete a row of the application, whose [trigger](columns.md#deleted-rows) deletes the counts" => vec!["DELETE FROM articles WHERE id = 2".into()],
            "call a private routine" => vec![format!("CALL _{prefix}fail(1317, 'text')")],
            "drop a routine" => vec![format!("DROP PROCEDURE {prefix}increment")],
            "`delete`, with `--security invoker` 1370" => vec![routine("delete")],
            words => words.split(", ").map(|word| routine(word.trim_matches('`'))).collect(),
        }
    }
}

/// A call of a routine by the end of its name, for the counter or record of [`set_up`].
pub fn call(package: &Package, word: &str) -> String {
    let prefix = package.options.prefix.name();
    let named = package.options.kind == Kind::Counters;
    let key = match (named, &package.options.column) {
        (true, _) => "'a'",
        (_, None) => "1, 1",
        _ => "1",
    };
    match word {
        "increment" | "delete" | "drop" | "compact" => format!("CALL {prefix}{word}({key})"),
        "add" => format!("CALL {prefix}add({key}, 2)"),
        "take" => format!("CALL {prefix}take({key}, 1)"),
        "add_many" => format!("CALL {prefix}add_many('[[{}, 1]]')", key.replace('\'', "\"")),
        "get" => format!("SELECT {prefix}get({key})"),
        "reset" if named => format!("CALL {prefix}reset('a', 7, TRUE)"),
        "reset" => format!("CALL {prefix}reset({key}, 7)"),
        "setup" if named => format!("CALL {prefix}setup('new', NULL, NULL, 1)"),
        "setup" => format!("CALL {prefix}setup(9, 9, 1)"),
        "resize" => format!("CALL {prefix}resize('a', 5)"),
        "compact_idle" => format!("CALL {prefix}compact_idle(0, NULL)"),
        "rollup" => format!("CALL {prefix}rollup(NULL)"),
        other => panic!("{other}"),
    }
}

/// A package of each kind.
pub fn packages() -> [Package; 6] {
    let column = of_column("articles.views", "id BIGINT", |_| {});
    [package(|_| {}), package(|options| options.slots = Slots::Fixed(5)), keyed(|_| {}), bounded(|_| {}), bounded_keyed(|_| {}), column]
}

/// A named counter or a record with some counts.
pub fn set_up(schema: &Schema<'_>, package: &Package) {
    let prefix = package.options.prefix.name();
    match package.options.kind {
        Kind::Counters => {
            // After a deletion by an administrator.
            schema.run(&format!("DELETE FROM {}; CALL {prefix}setup('a', NULL, NULL, 40)", package.options.table));
        }
        Kind::SlottedCounters if package.options.column.is_some() => {
            schema.run(&format!("REPLACE INTO articles VALUES (1, 10), (2, 20); CALL {prefix}add(1, 30); CALL {prefix}add(2, 5)"));
        }
        Kind::SlottedCounters => schema.run(&format!("DELETE FROM {}; CALL {prefix}add(1, 1, 40)", package.options.table)),
    }
}

fn each_role_can_do_what_the_table_says(server: &Server) {
    let table = table();
    assert_eq!(table.len(), 18);
    let mut cells = 0;
    for package in packages() {
        let schema = server.schema();
        let account = Account::new(&schema);
        let mut options = package.options.clone();
        // As for production. MySQL rejects a view if its definer has no role and the account has one (1356).
        options.definer = Some(format!("{}_d@localhost", account.name).parse().expect("an account"));
        let package = Package::new(options).expect("valid options");
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB; CREATE TABLE nothing (id INT)");
        schema.install(&package);
        schema.run(&account.renamed(&package, "accounts.sql"));
        if package.options.column.is_some() {
            let of_page = crate::support::sql_statements("docs/columns.md", "Deleted rows").remove(0);
            schema.run(&of_page.replace("views_pending", package.options.table.name()));
        }
        // What an application has on its own table.
        schema.run(&format!("GRANT SELECT, DELETE ON articles TO '{}'@'%'", account.name));
        let roles = account.roles();
        for (role, at) in [(&roles.application, 0), (&roles.admin, 1)] {
            account.grant_role(&package, role);
            for row in table.iter().filter(|row| row.is_of(&package)) {
                let what = format!("{role}: {}: {}", package.options.table, row.action);
                cells += 1;
                if row.action == "`slotted status`" {
                    let url = server.url_of(&account.name, Some("secret"));
                    let output = slotted(&["status", "--url", &url, "--database", &schema.name]);
                    assert_eq!(format!("exit code {}", output.status.code().unwrap_or_default()), row.of_roles[at], "{what}: {}", printed(&output));
                    continue;
                }
                for statement in row.statements(&package) {
                    set_up(&schema, &package);
                    let called = account.connect().query::<Row, _>(&statement);
                    match &row.of_roles[at][..] {
                        "yes" => _ = called.unwrap_or_else(|error| panic!("{what}: {statement}: {error}")),
                        number => assert_eq!(error_of(called.map(|_| ())).0.to_string(), number, "{what}: {statement}"),
                    }
                }
            }
            if package.options.column.is_some() {
                set_up(&schema, &package);
                account.connect().query_drop("DELETE FROM articles WHERE id = 2").expect("a deletion");
                assert_eq!(schema.first::<i64>("SELECT articles_views_get(2)"), 0, "the trigger");
            }
        }
        schema.run(&format!("DROP ROLE {}, {}", roles.application, roles.admin));
    }
    eprintln!("{}: {cells} cells", server.version);
}

/// No routine that is not private is missing in the table.
fn the_table_of_roles_has_each_routine(_: &Server) {
    let actions: Vec<String> = table().into_iter().map(|row| row.action).collect();
    for routine in Routine::all().filter(|routine| !routine.is_private()) {
        assert!(actions.iter().any(|action| action.contains(&format!("`{}`", routine.suffix()))), "{}", routine.suffix());
    }
}
