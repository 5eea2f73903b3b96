//! What the accounts of grants.sql can do: the table in docs/reference.md, cell by cell.

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use slotted::package::{Kind, Package, Routine};

use crate::rollup::of_column;
use crate::support::{Module, Schema, Server, bounded, error_of, keyed, package, root};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(the_table_contains_each_routine)
        .on_servers(each_account_can_do_what_the_table_says)
        .on_servers(grants_to_an_account_that_does_not_exist_create_none);
}

/// A row of the table: the action, the packages, and what each account gets.
struct Cells {
    action: String,
    packages: String,
    of_accounts: [String; 2],
}

fn table() -> Vec<Cells> {
    let page = std::fs::read_to_string(root().join("docs/reference.md")).expect("the page");
    let (_, rows) = page.split_once("| action | packages | `'app'@'%'` | `'dba'@'%'` |\n|---|---|---|---|\n").expect("the table");
    let cells = |row: &str| {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
        let [action, packages, app, dba] = cells.try_into().expect(row);
        Cells { action, packages, of_accounts: [app, dba] }
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
            "bounded" => package.options.bounded,
            "records" => !named,
            "of a column" => column,
            other => panic!("{other}"),
        }
    }

    /// The statements of the action, with routines by the ends of their names.
    fn statements(&self, package: &Package) -> Vec<String> {
        let (table, prefix) = (&package.options.table, package.options.prefix.name());
        let count = if package.options.kind == Kind::Counters { "counter" } else { "`count`" };
        match &self.action[..] {
            "`get`, read the views" => {
                let views = [&package.totals, &package.package].map(|view| format!("SELECT * FROM {view}"));
                views.into_iter().chain([call(package, "get")]).collect()
            }
            "read the table" => vec![format!("SELECT * FROM {table}")],
            "change rows of the table" => vec![
                format!("DELETE FROM {table}"),
                format!("UPDATE {table} SET {count} = {count} + 1"),
                format!("INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0"),
            ],
            "call a private routine" => vec![format!("CALL _{prefix}fail(30003, 'text')")],
            "drop a routine" => vec![format!("DROP PROCEDURE {prefix}increment")],
            words => words.split(", ").map(|word| call(package, word.trim_matches('`'))).collect(),
        }
    }
}

/// A call of a routine by the end of its name, for the counter or record of [`set_up`].
fn call(package: &Package, word: &str) -> String {
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
        "add_many" => format!("CALL {prefix}add_many('[[{key}, 1]]')"),
        "get" => format!("SELECT {prefix}get({key})"),
        "reset" if named => format!("CALL {prefix}reset('a', 7, TRUE)"),
        "reset" => format!("CALL {prefix}reset({key}, 7)"),
        "setup" => format!("CALL {prefix}setup('new', NULL, NULL, 1)"),
        "resize" => format!("CALL {prefix}resize('a', NULL)").replace("NULL", if package.options.per_counter() { "5" } else { "NULL" }),
        "rollup" => format!("CALL {prefix}rollup(NULL)"),
        other => panic!("{other}"),
    }
}

/// A package of each kind. That of a column needs a table `articles`.
pub fn packages() -> [Package; 4] {
    [package(|_| {}), keyed(|_| {}), bounded(|_| {}), of_column("articles.views", "id BIGINT", |_| {})]
}

/// A named counter or a record with some counts.
fn set_up(schema: &Schema<'_>, package: &Package) {
    let (table, prefix) = (&package.options.table, package.options.prefix.name());
    let delete = format!("DELETE FROM {table}");
    schema.run(&match (package.options.kind, &package.options.column) {
        (Kind::Counters, _) => format!("{delete}; CALL {prefix}setup('a', NULL, NULL, 40)"),
        (_, Some(_)) => format!("REPLACE INTO articles VALUES (1, 10), (2, 20); {delete}; CALL {prefix}add(1, 30); CALL {prefix}add(2, 5)"),
        _ => format!("{delete}; CALL {prefix}add(1, 1, 40)"),
    });
}

/// The accounts in place of 'app'@'%' and 'dba'@'%', which are dropped at the end of the test.
struct Accounts<'a> {
    schema: &'a Schema<'a>,
    names: [String; 2],
}

impl<'a> Accounts<'a> {
    fn of(schema: &'a Schema<'a>) -> Self {
        let own = &schema.name["slotted_test_".len()..];
        let names = ["app", "dba"].map(|name| format!("{name}_{own}"));
        Self { schema, names }
    }

    fn grants(&self, package: &Package) -> String {
        let text = self.schema.file(package, "grants.sql");
        let text = text.replace("'app'@", &format!("'{}'@", self.names[0]));
        text.replace("'dba'@", &format!("'{}'@", self.names[1]))
    }

    fn connect(&self, name: &str) -> Conn {
        Conn::new(self.schema.options().user(Some(name)).pass(Some("secret"))).expect("the account may connect")
    }
}

impl Drop for Accounts<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            // Ignores errors: a second panic would abort the run and hide the first one.
            let _ = self.schema.connect().query_drop(format!("DROP USER '{name}'@'%'"));
        }
    }
}

fn each_account_can_do_what_the_table_says(server: &Server) {
    let table = table();
    assert_eq!(table.len(), 15);
    for mut package in packages() {
        let schema = server.schema();
        let accounts = Accounts::of(&schema);
        // As for production: the routines and views run as a locked account.
        package.options.definer = Some(format!("{}_d@localhost", accounts.names[0]).parse().expect("an account"));
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB");
        schema.install(&package);
        schema.run(&schema.file(&package, "accounts.sql"));
        for name in &accounts.names {
            schema.run(&format!("CREATE USER '{name}'@'%' IDENTIFIED BY 'secret'"));
        }
        let said = schema.client().pipe(&[], &accounts.grants(&package));
        assert!(said.success, "{said:?}");
        for row in table.iter().filter(|row| row.is_of(&package)) {
            for (name, wanted) in accounts.names.iter().zip(&row.of_accounts) {
                for statement in row.statements(&package) {
                    set_up(&schema, &package);
                    let called = accounts.connect(name).query::<Row, _>(&statement).map(|_| ());
                    let what = format!("{name}: {statement}");
                    match &wanted[..] {
                        "yes" => called.unwrap_or_else(|error| panic!("{what}: {error}")),
                        number => assert_eq!(error_of(called).0.to_string(), number, "{what}"),
                    }
                }
            }
        }
        let definer = package.options.definer.as_ref().expect("an account");
        schema.run(&format!("DROP USER {definer}"));
    }
}

/// MariaDB creates an account at GRANT, without a password, in a session without NO_AUTO_CREATE_USER.
fn grants_to_an_account_that_does_not_exist_create_none(server: &Server) {
    let (schema, package) = (server.schema(), package(|_| {}));
    schema.install(&package);
    let accounts = Accounts::of(&schema);
    let said = schema.client().pipe(&["--force"], &format!("SET sql_mode = '';\n{}", accounts.grants(&package)));
    assert!(!said.stderr.is_empty(), "{said:?}");
    let [app, dba] = &accounts.names;
    assert_eq!(schema.first::<u64>(&format!("SELECT COUNT(*) FROM mysql.user WHERE User IN ('{app}', '{dba}')")), 0);
}

/// No routine that is not private is missing in the table.
fn the_table_contains_each_routine() {
    let actions: Vec<String> = table().into_iter().map(|row| row.action).collect();
    for routine in Routine::all().filter(|routine| !routine.is_private()) {
        assert!(actions.iter().any(|action| action.contains(&format!("`{}`", routine.suffix()))), "{}", routine.suffix());
    }
}
