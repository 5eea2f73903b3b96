//! Migration tools execute the lines of docs/migrations.md.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use mysql::prelude::Queryable;
use slotted::package::{Family, committed};
use slotted::render::{Format, files_of};
use tempfile::TempDir;

use crate::rollup::of_column;
use crate::support::{Module, Network, Schema, Server, provided, root};

pub fn promises(mut module: Module<'_>) {
    module
        .plain(the_statements_have_no_placeholder_and_no_delimiter)
        .on_servers(each_format_creates_and_drops_everything)
        .needs("migration-tools")
        .private()
        .on_families(dbmate_goes_up_and_down)
        .on_families(sqlx_goes_up_and_down)
        .on_families(alembic_goes_up_and_down);
}

/// The blocks of a section of docs/migrations.md: the name of a file before a block, its language and its text.
fn blocks(section: &str) -> Vec<(Option<String>, String, String)> {
    let page = fs::read_to_string(root().join("docs/migrations.md")).expect("the page");
    let (_, rest) = page.split_once(&format!("\n### {section}\n")).expect("the section");
    let text = rest.split("\n## ").next().unwrap_or_default().split("\n### ").next().unwrap_or_default();
    let mut blocks = Vec::new();
    let mut before = "";
    for (at, part) in text.split("```").enumerate() {
        if at % 2 == 0 {
            before = part.trim().lines().last().unwrap_or_default();
            continue;
        }
        let (language, text) = part.split_once('\n').expect("a language");
        let file = before.strip_prefix('`').and_then(|line| line.strip_suffix("`:"));
        blocks.push((file.map(str::to_owned), language.to_owned(), text.to_owned()));
    }
    blocks
}

/// A folder of an application, and its database, whose account has the same name.
struct Application<'a> {
    folder: TempDir,
    network: &'a Network,
    schema: Schema<'a>,
}

impl<'a> Application<'a> {
    fn new(server: &'a Server) -> Self {
        let network = server.network();
        let schema = network.server.schema();
        network.account(&format!("'{}'@'localhost'", schema.name), "secret", "");
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, network, schema }
    }

    /// The files of the page are those for MySQL.
    fn of_server(&self, text: &str) -> String {
        match self.schema.server.version.family {
            Family::Mysql => text.to_owned(),
            Family::Mariadb => text.replace("generate counters", "generate counters --server mariadb").replace("sql/mysql", "sql/mariadb"),
        }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{0}:secret@127.0.0.1:{1}/{0}", self.schema.name, self.network.port)
    }

    fn shell(&self, script: &str) -> Output {
        let tools = provided("migration-tools");
        let tool = Path::new(env!("CARGO_BIN_EXE_slotted")).parent().expect("a folder").to_owned();
        let folders = [tool, tools.join("bin"), tools.join("venv/bin"), tools.join("node_modules/.bin")];
        let system = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&system))).expect("a path");
        Command::new("sh")
            .args(["-ec", script])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env("DATABASE_URL", self.url("mysql"))
            .stdin(Stdio::null())
            .output()
            .expect("a shell")
    }

    fn runs(&self, script: &str) {
        let output = self.shell(script);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{script}\n{}{}", text(&output.stdout), text(&output.stderr));
    }

    fn status(&self) -> Option<i32> {
        self.shell(&format!("slotted status --url {}", self.url("mysql"))).status.code()
    }

    fn objects(&self) -> u64 {
        self.schema.first(
            "SELECT (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE 'counter%')
                  + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())",
        )
    }

    /// Executes a section of the page: writes its files, executes its commands, and then the last two, up and down, and up again.
    fn follows(&self, section: &str) {
        let mut commands = Vec::new();
        for (file, language, text) in blocks(section) {
            match (file, language.as_str()) {
                (Some(file), _) => self.write(&file, &self.of_server(&text)),
                (None, "console") => commands.push(self.of_server(&text)),
                (None, language) => panic!("{section}: a block in {language} without the name of its file"),
            }
        }
        let down = commands.pop().expect("down");
        let up = commands.pop().expect("up");
        commands.iter().for_each(|command| self.runs(command));
        for _ in 0..2 {
            self.runs(&up);
            assert_eq!(self.status(), Some(0), "{section}");
            self.runs(&down);
            assert_eq!(self.objects(), 0, "{section}");
        }
        self.runs(&up);
        assert_eq!(self.status(), Some(0), "{section}");
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
                let named = statement.char_indices().any(|(at, c)| {
                    // The path of a JSON value, $[0], is no placeholder.
                    [':', '$'].contains(&c)
                        && statement[at + 1..].starts_with(|next: char| next.is_alphanumeric() || "_:$".contains(next))
                });
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
        let objects = || -> usize {
            schema.first(
                "SELECT (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE())
                      + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE())",
            )
        };
        // The table, two views and the routines.
        let all = 3 + package.routines().count();
        let text = |format, name: &str| {
            let file = files_of(&package, format).into_iter().find(|file| file.name == name);
            file.expect("the file").text
        };
        // One text, all results of which are read.
        let plain = |name: &str| {
            let mut connection = schema.connect();
            let mut results = connection.query_iter(text(Format::Plain, name)).expect("the first statement");
            while let Some(result) = results.iter() {
                for row in result {
                    row.expect("a statement");
                }
            }
        };
        let each = |name: &str| {
            let mut connection = schema.connect();
            let statements: Vec<String> = serde_json::from_str(&text(Format::Statements, name)).expect("JSON");
            for statement in statements {
                connection.query_drop(&statement).unwrap_or_else(|error| panic!("{error} in {statement}"));
            }
        };
        for (up, down, execute) in [("up.sql", "down.sql", &plain as &dyn Fn(&str)), ("up.json", "down.json", &each)] {
            execute(up);
            assert_eq!(objects(), 1 + all, "{up}");
            if package.options.column.is_some() {
                schema.run("CALL articles_views_increment(1)");
            }
            execute(down);
            assert_eq!(objects(), 1, "{down}");
            // After a migration that has failed at once.
            execute(down);
        }
        let wanted = if package.options.column.is_some() { 102 } else { 100 };
        assert_eq!(schema.first::<i64>("SELECT views FROM articles"), wanted, "the last roll-up of down");
    }
}

fn dbmate_goes_up_and_down(server: &Server) {
    let application = Application::new(server);
    application.follows("dbmate");
}

fn sqlx_goes_up_and_down(server: &Server) {
    let application = Application::new(server);
    application.follows("sqlx");
}

fn alembic_goes_up_and_down(server: &Server) {
    let application = Application::new(server);
    application.write("alembic.ini", &format!("[alembic]\nscript_location = .\nsqlalchemy.url = {}\n", application.url("mysql+pymysql")));
    application.write(
        "env.py",
        "from alembic import context\nfrom sqlalchemy import create_engine\n\
         engine = create_engine(context.config.get_main_option('sqlalchemy.url'))\n\
         with engine.connect() as connection:\n    context.configure(connection=connection)\n    \
         with context.begin_transaction():\n        context.run_migrations()\n",
    );
    application.follows("Alembic");
}
