//! The article of 2012 that the package comes from: its examples give the same results, and its load is counted exactly.

use slotted::package::Package;
use slotted::script;

use crate::support::transcript::{expected, printed, timeless};
use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(the_examples_of_the_article_give_its_results)
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
    let schema = server.installed([&package(|_| {})]);
    let transcript = transcript();
    let statements: Vec<_> = transcript.iter().map(|(statement, _)| *statement).collect();
    // start_date has a resolution of one second, and the reset must set a later one.
    let input = statements.join("\n").replace("call counter_reset", "DO SLEEP(1.1);\ncall counter_reset");
    let said = schema.client().pipe(&["-t", "-vvv"], &(input + "\n"));
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
    // counter_drop has removed test2 and no other counter.
    assert_eq!(schema.query::<String>("SELECT counter_name FROM counter_totals ORDER BY 1"), ["test1", "test3"]);
    let [before, after] = &start_dates[..] else { panic!("two tables of test2") };
    assert_eq!((before.len(), after.len()), (10, 10));
    assert!(before.iter().zip(after).all(|(before, after)| before < after), "{before:?} {after:?}");
}

/// Loads the data of the article with the client, as a DBA does.
fn insert_test_data(schema: &Schema<'_>, package: &Package) -> String {
    let said = schema.client().pipe(&["-t"], &schema.file(package, "test_insertdata.sql"));
    assert!(said.success, "{said:?}");
    said.stdout
}

/// The iterations of the load that run at once: each of 250 clients increments each counter once in an iteration.
const ITERATIONS: usize = 10;

/// The names as the article writes them in its calls, in another case than its data.
const LOADED: [&str; 4] = ["countername100", "countername500", "countername1000", "countername1499"];

fn the_load_of_the_article_is_counted_exactly(server: &Server) {
    let schema = server.schema();
    let package = package(|_| {});
    schema.install(&package);
    let said = insert_test_data(&schema, &package);
    assert!(said.contains("\n| Rows inserted | Avg. rows per counter |\n") && said.contains("analyze"), "{said}");
    let (counters, most, gaps, sizes): (u64, u64, u64, u64) = schema.first(
        "SELECT COUNT(*), MAX(slots), SUM(slots <> last), COUNT(DISTINCT slots) FROM (SELECT COUNT(*) AS slots, MAX(counter_id) AS last
           FROM counters WHERE counter_name LIKE 'counterName%' AND description LIKE 'counterDescription%' GROUP BY counter_name) AS counted",
    );
    assert_eq!((counters, gaps), (1500, 0));
    assert!(most <= 50 && sizes > 20, "{sizes} sizes up to {most}");
    // The article has 100 iterations. On a slow machine the load ends early.
    let mut iterations = 0;
    for _ in calls(100 / ITERATIONS) {
        increments(&schema);
        iterations += ITERATIONS as i64;
    }
    let totals = LOADED.map(|name| schema.first::<i64>(&format!("SELECT counter_get('{}')", name.to_uppercase())));
    assert_eq!(totals, [250 * iterations; 4]);
    assert_eq!(schema.first::<i64>("SELECT CAST(SUM(counter) AS SIGNED) FROM counters"), 1000 * iterations);

    // A second run replaces the counters of the script and no other counter.
    schema.run("CALL counter_setup('counterName01', NULL, 2, 41); CALL counter_setup('counterName9999', NULL, 2, 8)");
    insert_test_data(&schema, &package);
    let totals = "SELECT counter_get('counterName01'), COUNT(*), SUM(total) FROM counter_totals";
    assert_eq!(schema.first::<(i64, i64, i64)>(totals), (41, 1502, 49));
}

fn increments(schema: &Schema<'_>) {
    at_once(250, || {
        let mut connection = schema.connect();
        for name in LOADED.repeat(ITERATIONS) {
            run(&mut connection, &format!("call counter_increment('{name}')"));
        }
    });
}

fn the_demo_runs_the_statements_of_the_article() {
    let tour = script::statements(TOUR);
    let typed: Vec<_> = transcript().iter().map(|(statement, _)| statement.trim_end_matches(';').to_owned()).collect();
    assert_eq!(tour, typed);
}
