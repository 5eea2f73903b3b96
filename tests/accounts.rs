//! Accounts of promises, and what those of grants.sql can do: the table in docs/operations.md, cell by cell.

use mysql::Row;
use slotted::package::{Package, Routine};

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module.plain(the_table_contains_each_routine).on_servers(each_account_can_do_what_the_table_says);
}

/// A row of the table: the action, the packages, and what each account gets.
struct Cells {
    action: String,
    packages: String,
    of_accounts: [String; 2],
}

fn cells() -> Vec<Cells> {
    let rows = table("docs/operations.md", "action | packages | `'app'@'%'` | `'dba'@'%'`").into_iter();
    let cells = |row: Vec<String>| {
        let [action, packages, app, dba] = row.try_into().expect("four cells");
        Cells { action, packages, of_accounts: [app, dba] }
    };
    rows.map(cells).collect()
}

impl Cells {
    fn is_of(&self, package: &Package) -> bool {
        match &self.packages[..] {
            "all" => true,
            "all others" => package.options.column().is_none(),
            "named" => package.options.is_named(),
            "bounded" => package.options.is_bounded(),
            "records" => !package.options.is_named(),
            "of a column" => package.options.column().is_some(),
            other => panic!("{other}"),
        }
    }
    /// The statements of the action, with routines by the ends of their names.
    fn statements(&self, package: &Package) -> Vec<String> {
        let (table, prefix) = (&package.options.table, package.options.prefix.name());
        let count = if package.options.is_named() { "counter" } else { "`count`" };
        match &self.action[..] {
            "`get`, read the views" => {
                let views = [&package.totals, &package.description].map(|view| format!("SELECT * FROM {view}"));
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

/// A call of a routine by the end of its name, for the counter or record of the promise.
fn call(package: &Package, word: &str) -> String {
    let prefix = package.options.prefix.name();
    let named = package.options.is_named();
    let key = match (named, package.options.column()) {
        (true, _) => "'a'",
        (_, None) => "1, 1",
        _ => "1",
    };
    let arguments = match word {
        "get" => return format!("SELECT {prefix}get({key})"),
        "increment" | "delete" | "drop" | "compact" => key,
        "add" => &format!("{key}, 2"),
        "take" => &format!("{key}, 1"),
        "add_many" => &format!("'[[{key}, 1]]'"),
        "reset" if named => "'a', 7, TRUE",
        "reset" => &format!("{key}, 7"),
        "setup" => "'new', NULL, NULL, 1",
        "resize" => "'a', 5",
        "rollup" => "NULL",
        other => panic!("{other}"),
    };
    format!("CALL {prefix}{word}({arguments})")
}

/// A package of each kind. That of a column needs a table `articles`.
pub fn packages() -> [Package; 4] {
    [package(|_| {}), keyed(|_| {}), bounded(|_| {}), of_column("articles.views", "id BIGINT", |_| {})]
}

/// As for production: the routines and views run as a locked account. Each call is rolled back.
fn each_account_can_do_what_the_table_says(server: &Server) {
    let table = cells();
    assert_eq!(table.len(), 15);
    for mut package in packages() {
        let schema = server.schema();
        let (own, prefix) = (&schema.name, package.options.prefix.name());
        let definer = format!("{own}_d@localhost");
        package.options.definer = Some(definer.parse().expect("an account"));
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views BIGINT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 10), (2, 20)");
        schema.install(&package);
        let (file, other) = (schema.file(&package, "accounts.sql"), format!("{own}%\\"));
        let grant = &file[file.find("SET @").expect("a prepared GRANT")..];
        schema.run(&format!("{file}; CREATE DATABASE `{other}`; USE `{other}`; {grant}; DROP DATABASE `{other}`"));
        let on = schema.query::<String>(&format!("SELECT Db FROM mysql.db WHERE User = '{own}_d' ORDER BY LENGTH(Db)"));
        assert_eq!(on, [own, &other].map(|name| name.replace('\\', r"\\").replace('_', r"\_").replace('%', r"\%")));
        // MariaDB creates an account at GRANT, without a password, in a session without NO_AUTO_CREATE_USER.
        let early = schema.client().pipe(&["--force"], &format!("SET sql_mode = '';\n{}", grants(&schema, &package)));
        let created = format!("SELECT COUNT(*) FROM mysql.user WHERE User IN ('{own}_app', '{own}_dba')");
        assert_eq!(schema.first::<u64>(&created), 0, "{early:?}");
        let accounts = ["app", "dba"].map(|name| Account::new(&schema, name, "USAGE"));
        schema.run(&grants(&schema, &package));
        schema.run(&match (package.options.is_named(), package.options.column()) {
            (true, _) => format!("CALL {prefix}setup('a', NULL, NULL, 40)"),
            (_, Some(_)) => format!("CALL {prefix}add(1, 30); CALL {prefix}add(2, 5)"),
            _ => format!("CALL {prefix}add(1, 1, 40)"),
        });
        let locked = Conn::new(schema.options().user(Some(format!("{own}_d"))).pass(None::<&str>)).map(|_| ());
        assert!([3118, 4151].contains(&error_of(locked).0), "a client can connect as the definer");
        let mut sessions = accounts.each_ref().map(Account::connect);
        for row in table.iter().filter(|row| row.is_of(&package)) {
            for (session, wanted) in sessions.iter_mut().zip(&row.of_accounts) {
                for statement in row.statements(&package) {
                    session.query_drop("START TRANSACTION").expect("a transaction");
                    let called = session.query::<Row, _>(&statement).map(|_| ());
                    session.query_drop("ROLLBACK").expect("no change");
                    match &wanted[..] {
                        "yes" => called.unwrap_or_else(|error| panic!("{statement}: {error}")),
                        number => assert_eq!(error_of(called).0.to_string(), number, "{statement}"),
                    }
                }
            }
        }
        schema.run(&format!("DROP USER {definer}"));
    }
}

/// No routine that is not private is missing in the table.
fn the_table_contains_each_routine() {
    let actions: String = cells().into_iter().map(|row| row.action).collect();
    for routine in Routine::all().filter(|routine| !routine.is_private()) {
        assert!(actions.contains(&format!("`{}`", routine.suffix())), "{}", routine.suffix());
    }
}
