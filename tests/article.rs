//! The article of 2012 that the package comes from: its examples give the same results, and its load is counted exactly.

use std::process::Command;
use std::time::Instant;

use mysql::prelude::Queryable;
use slotted::package::{Package, Pick};
use slotted::script;

use crate::support::transcript::{expected, printed, timeless};
use crate::support::{self, Module, Schema, Server, package, root};

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(the_examples_of_the_article_give_its_results)
        .on_servers(random_selection_uses_several_slots)
        .on_servers(counter_drop_and_counter_delete_remove_one_counter)
        .plain(the_demo_runs_the_statements_of_the_article)
        .alone()
        .on_servers(the_load_of_the_article_is_counted_exactly);
}

const TRANSCRIPT: &str = include_str!("article/transcript.txt");
const TOUR: &str = include_str!("../templates/tour.sql");

/// The statements of the transcript, each with its result.
fn transcript() -> Vec<(&'static str, Vec<&'static str>)> {
    expected(TRANSCRIPT.lines().filter(|line| !line.starts_with('#')))
}

fn last_column(lines: &[String]) -> Vec<i64> {
    lines.iter().filter_map(|line| line.trim_end_matches([' ', '|']).rsplit(' ').next()?.parse().ok()).collect()
}

fn without_last_column(line: &str) -> String {
    let line = line.trim_end_matches('|');
    line[..line.rfind(['|', '+']).unwrap_or(line.len())].to_owned()
}

fn the_examples_of_the_article_give_its_results(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let transcript = transcript();
    let mut input = String::new();
    for (statement, _) in &transcript {
        // start_date has a resolution of one second, and the reset must set a later one.
        if statement.starts_with("call counter_reset") {
            input += "DO SLEEP(1.1);\n";
        }
        input += &format!("{statement}\n");
    }
    let said = schema.client().pipe(&["-t", "-vvv"], &input);
    assert!(said.success, "{said:?}");
    let mut answers = printed(&said.stdout);
    answers.retain(|(statement, _)| !statement.starts_with("DO SLEEP"));
    assert_eq!(answers.len(), transcript.len(), "{}", said.stdout);

    let mut start_dates = Vec::new();
    for ((statement, want), (echoed, got)) in transcript.iter().zip(&answers) {
        assert_eq!(statement.trim_end_matches(';'), echoed);
        if statement.starts_with("SELECT *") {
            start_dates.push(got.iter().filter_map(|line| line.split('|').nth(4)).skip(1).collect::<Vec<_>>());
        }
        let want: Vec<_> = want.iter().map(|line| timeless(line)).collect();
        let got: Vec<_> = got.iter().map(|line| timeless(line)).collect();
        // Before the first table of test2, increments have selected slots that differ from run to run.
        if statement.starts_with("SELECT *") && start_dates.len() == 1 {
            let left = |lines: &[String]| lines.iter().map(|l| without_last_column(l)).collect::<Vec<_>>();
            assert_eq!(left(&want), left(&got), "{statement}");
            assert_eq!(last_column(&got[3..13]).iter().sum::<i64>(), 1005, "{got:#?}");
        } else if !want.is_empty() {
            assert_eq!(want, got, "{statement}");
        }
    }
    let [before, after] = &start_dates[..] else { panic!("two tables of test2") };
    assert_eq!((before.len(), after.len()), (10, 10));
    assert!(before.iter().zip(after).all(|(before, after)| before < after), "{before:?} {after:?}");
}

fn random_selection_uses_several_slots(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|options| options.pick = Pick::Random));
    let mut connection = schema.connect();
    // Five increments select the same of ten slots with a probability of 1 in 10,000. Three rounds make a false failure
    // practically impossible.
    let used = |round: u32| -> u64 {
        let name = format!("test{round}");
        let mut connection = schema.connect();
        connection.exec_drop("CALL counter_setup(?, NULL, 10, 1000)", (&name,)).expect("setup");
        for _ in 0..5 {
            connection.exec_drop("CALL counter_increment(?)", (&name,)).expect("increment");
        }
        let total: Option<i64> = connection.exec_first("SELECT counter_get(?)", (&name,)).expect("get");
        assert_eq!(total, Some(1005));
        let used = "SELECT COUNT(*) FROM counters WHERE counter_name = ? AND counter MOD 1000 <> 0";
        connection.exec_first(used, (&name,)).expect("slots").expect("a count")
    };
    assert!((1..=3).any(|round| used(round) > 1));
    // No increment has inserted a slot outside of the range.
    let slots: (i64, i64) = connection
        .query_first("SELECT MIN(counter_id), MAX(counter_id) FROM counters")
        .expect("slots")
        .expect("a row");
    assert_eq!(slots, (1, 10));
}

fn counter_drop_and_counter_delete_remove_one_counter(server: &Server) {
    let schema = server.schema();
    schema.install(&package(|_| {}));
    let mut connection = schema.connect();
    for name in ["test1", "test2", "test3"] {
        connection.exec_drop("CALL counter_setup(?, NULL, 3, 7)", (name,)).expect("setup");
    }
    connection.query_drop("CALL counter_drop('test1')").expect("drop");
    connection.query_drop("CALL counter_delete('test3')").expect("delete");
    assert_eq!(schema.first::<(String, i64, i64)>("SELECT counter_name, slots, total FROM counter_totals").0, "test2");
    assert_eq!(schema.first::<i64>("SELECT COUNT(*) FROM counters"), 3);
}

/// Loads the data of the article with the client, as a DBA does.
fn insert_test_data(schema: &Schema<'_>, package: &Package) {
    let text = schema.file(package, "test_insertdata.sql");
    let start = Instant::now();
    let said = schema.client().pipe(&["-t"], &text);
    let took = start.elapsed();
    assert!(said.success, "{said:?}");
    eprintln!("{}: test_insertdata.sql took {took:?}", schema.server.version);
    let summary: Vec<_> = said.stdout.lines().rev().take(5).collect();
    assert_eq!(summary[3], "| Rows inserted | Avg. rows per counter |", "{}", said.stdout);
    assert!(said.stdout.contains("analyze"), "{}", said.stdout);

    let (counters, most, gaps): (u64, u64, u64) = schema.first(
        "SELECT COUNT(*), MAX(slots), SUM(slots <> last) FROM (SELECT COUNT(*) AS slots, MAX(counter_id) AS last \
         FROM counters GROUP BY counter_name) AS counted",
    );
    assert_eq!((counters, gaps), (1500, 0));
    assert!(most <= 50);
    let (one, sizes): (u64, u64) = schema.first(
        "SELECT COUNT(DISTINCT counter_name), COUNT(DISTINCT slots) FROM counter_totals \
         WHERE description LIKE 'counterDescription%' AND counter_name LIKE 'counterName%'",
    );
    assert_eq!(one, 1500);
    assert!(sizes > 20, "the numbers of slots are random: {sizes} different ones");
}

/// The iterations of the load that run at once: each of 250 clients increments each counter once in an iteration.
const ITERATIONS: usize = 10;

const LOADED: [&str; 4] = ["countername100", "countername500", "countername1000", "countername1499"];

fn the_load_of_the_article_is_counted_exactly(server: &Server) {
    let schema = server.schema();
    let package = package(|_| {});
    schema.install(&package);
    insert_test_data(&schema, &package);
    let calls: Vec<_> = LOADED.iter().map(|name| format!("call counter_increment('{name}')")).collect();
    // The article has 100 iterations. On a slow machine the load ends early.
    let mut iterations = 0;
    for _ in support::calls(100 / ITERATIONS) {
        if server.is_mysql() && server.is_private() {
            mysqlslap(&schema, &calls.join(";"));
        } else {
            // mysqlslap of MySQL 9.7 cannot log in to MariaDB, and opens all connections at once, for which the back_log of a server
            // on TCP is too small by default. So the test produces the same load itself.
            increments(&schema, &calls);
        }
        iterations += ITERATIONS as i64;
    }
    // The names as the article writes them, in another case than in the calls.
    let totals: (i64, i64, i64, i64) = schema.first(
        "SELECT counter_get('counterName100') AS cnt100, counter_get('counterName500') AS cnt500, \
         counter_get('counterName1000') AS cnt1000, counter_get('counterName1499') AS cnt1499",
    );
    let each = 250 * iterations;
    eprintln!("{}: {iterations} of 100 iterations of the load", server.version);
    assert_eq!(totals, (each, each, each, each));
    assert_eq!(schema.first::<i64>("SELECT CAST(SUM(counter) AS SIGNED) FROM counters"), 4 * each);

    // A second run replaces the counters of the script and no other counter.
    schema.run("CALL counter_setup('mine', NULL, 2, 41)");
    insert_test_data_again(&schema, &package);
}

fn insert_test_data_again(schema: &Schema<'_>, package: &Package) {
    let text = schema.file(package, "test_insertdata.sql");
    let said = schema.client().pipe(&[], &text);
    assert!(said.success, "{said:?}");
    assert_eq!(schema.first::<i64>("SELECT counter_get('mine')"), 41);
    assert_eq!(schema.first::<i64>("SELECT counter_get('counterName100')"), 0);
    assert_eq!(schema.first::<i64>("SELECT COUNT(*) FROM counter_totals"), 1501);
}

fn mysqlslap(schema: &Schema<'_>, query: &str) {
    let client = schema.client();
    let mut command: Command = client.command(&[], root());
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_owned()).collect();
    command = Command::new(schema.server.tool(&["mysqlslap"]));
    // Without the last argument: mysqlslap has another option for the schema.
    command.args(&arguments[..arguments.len() - 1]);
    command.args(["--concurrency=250", "--delimiter=;"]).arg(format!("--iterations={ITERATIONS}"));
    command.arg(format!("--create-schema={}", schema.name)).arg(format!("--query={query}"));
    let output = command.output().expect("mysqlslap runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    eprintln!("{}: {text}", schema.server.version);
}

fn increments(schema: &Schema<'_>, calls: &[String]) {
    std::thread::scope(|scope| {
        for _ in 0..250 {
            scope.spawn(|| {
                let mut connection = schema.connect();
                for _ in 0..ITERATIONS {
                    for call in calls {
                        connection.query_drop(call).expect("an increment");
                    }
                }
            });
        }
    });
}

fn the_demo_runs_the_statements_of_the_article() {
    let tour = script::statements(TOUR);
    let article: Vec<_> =
        transcript().iter().map(|(statement, _)| statement.trim_end_matches(';').to_owned()).collect();
    assert_eq!(tour, article);
}
