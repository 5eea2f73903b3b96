//! Migration tools execute the lines of docs/migrations.md.

use std::fs;

use slotted::package::{Family, committed};
use slotted::render::{Format, files_of};

use crate::frameworks::Application;
use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .plain(the_statements_have_no_placeholder_and_no_delimiter)
        .on_servers(each_format_creates_and_drops_everything)
        .needs("migration-tools")
        .private()
        .on_families(each_tool_of_the_page_goes_up_and_down_and_up_again);
}

/// Executes a section of the page: writes its files, executes its commands, and the last two of them, up and down, twice.
fn follows(application: &Application<'_>, section: &str) {
    let schema = &application.schema;
    let page = fs::read_to_string(root().join("docs/migrations.md")).expect("the page");
    let (_, rest) = page.split_once(&format!("\n### {section}\n")).expect("the section");
    let mut text = rest.split("\n##").next().unwrap_or_default().to_owned();
    // The files of the page are those for MySQL.
    if schema.server.version.family == Family::Mariadb {
        text =
            text.replace("generate counters", "generate counters --server mariadb").replace("sql/mysql", "sql/mariadb");
    }
    let parts: Vec<_> = text.split("```").collect();
    let mut commands = Vec::new();
    for [before, block] in parts.as_chunks().0 {
        match (block.split_once('\n'), before.trim().lines().last().and_then(|line| line.strip_suffix("`:"))) {
            (Some(("console", block)), None) => commands.extend(block.lines()),
            (Some((_, block)), Some(file)) => write(application, file.trim_start_matches('`'), block),
            _ => panic!("{section}: a block without the name of its file"),
        }
    }
    let runs = |line: &str| application.runs(&format!("export DATABASE_URL={}\n{line}", application.url("mysql")));
    let [first @ .., up, down] = &commands[..] else { panic!("{section}: up and down") };
    first.iter().for_each(|command| runs(command));
    for _ in 0..2 {
        runs(&format!("{up}\nslotted status --url $DATABASE_URL"));
        runs(down);
        assert_eq!(schema.objects(), 1, "{section}: the tool leaves a table of its own");
    }
}

fn write(application: &Application<'_>, name: &str, text: &str) {
    let path = application.folder.path().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn each_tool_of_the_page_goes_up_and_down_and_up_again(server: &Server) {
    for section in ["dbmate", "sqlx", "Alembic"] {
        let application = Application::new(server, "migration-tools");
        // The account creates the function, and the binary log is on.
        application.schema.run(&format!("GRANT ALL ON *.* TO '{}'@'localhost'", application.schema.name));
        let url = application.url("mysql+pymysql");
        write(&application, "alembic.ini", &format!("[alembic]\nscript_location = .\nsqlalchemy.url = {url}\n"));
        write(
            &application,
            "env.py",
            "from alembic import context\nfrom sqlalchemy import create_engine\n\
             engine = create_engine(context.config.get_main_option('sqlalchemy.url'))\n\
             with engine.connect() as connection:\n    context.configure(connection=connection)\n    \
             with context.begin_transaction():\n        context.run_migrations()\n",
        );
        follows(&application, section);
    }
}

/// A placeholder of a driver or of a template in a migration tool.
fn the_statements_have_no_placeholder_and_no_delimiter() {
    for package in committed().iter().chain([&of_column("pages.views", "id BIGINT", |_| {})]) {
        for file in files_of(package, Format::Statements) {
            let statements: Vec<String> = serde_json::from_str(&file.text).expect("JSON");
            assert!(!statements.is_empty());
            for statement in statements {
                for word in ["%", "?", "{", "DELIMITER", ";;"] {
                    assert!(!statement.contains(word), "{word} in {} of {}: {statement}", file.name, package.folder());
                }
                // The path of a JSON value, $[0], is no placeholder.
                let placeholder = |next: char| next.is_alphanumeric() || "_:$".contains(next);
                let named = statement.split([':', '$']).skip(1).any(|rest| rest.starts_with(placeholder));
                assert!(!named, "a placeholder in {}: {statement}", file.name);
            }
        }
    }
}

fn each_format_creates_and_drops_everything(server: &Server) {
    let of_column = of_column("articles.views", "id BIGINT", |_| {}).of_family(server.version.family);
    let committed = committed().into_iter().filter(|package| package.options.family == server.version.family);
    for package in committed.chain([of_column]) {
        let schema = server.schema();
        schema.run("CREATE TABLE articles (id BIGINT PRIMARY KEY, views INT NOT NULL) ENGINE = InnoDB; INSERT INTO articles VALUES (1, 100)");
        let is_column = package.options.column().is_some();
        for format in [Format::Plain, Format::Statements] {
            let execute = |name: &str| {
                let files = files_of(&package, format);
                let file = files.iter().find(|file| file.name.starts_with(name)).expect("the file");
                let statements: Vec<String> = match format {
                    Format::Statements => serde_json::from_str(&file.text).expect("JSON"),
                    _ => vec![file.text.clone()],
                };
                let mut connection = schema.connect();
                statements.iter().for_each(|text| send(&mut connection, text).expect(text));
            };
            execute("up.");
            // The table of the application, that of the package, two views and the routines.
            assert_eq!(schema.objects(), 4 + package.routines().count(), "{format:?}");
            if is_column {
                schema.run("CALL articles_views_increment(1)");
            }
            execute("down.");
            assert_eq!(schema.objects(), 1, "{format:?}");
            // After a migration that has failed at once.
            execute("down.");
        }
        let wanted = if is_column { 102 } else { 100 };
        assert_eq!(schema.first::<i64>("SELECT views FROM articles"), wanted, "the last roll-up of down");
    }
}
