//! Counting once: with the SQL of docs/application.md, an operation that is repeated until it is acknowledged counts once.

use mysql::Error;
use slotted::script;

use crate::support::*;

pub fn promises(mut module: Module<'_>) {
    module
        .on_servers(a_repeated_operation_counts_once_whatever_is_killed)
        .on_servers(a_repeated_operation_waits_for_the_open_transaction)
        .on_servers(the_clean_up_deletes_only_old_keys_and_delays_no_operation);
}

/// The key in the transaction of the page.
const KEY_OF_PAGE: &str = "x'019364F1C8007A31B0C25E9F4D6A7B80'";

/// The statements of the block of the page that begins with a word.
pub fn statements(begin: &str) -> Vec<String> {
    let blocks = sql_blocks("docs/application.md", "Counting once");
    script::statements(blocks.iter().find(|block| block.starts_with(begin)).expect("a block"))
}

/// The transaction of the page, with another operation key.
pub fn transaction(key: u128) -> Vec<String> {
    let transaction = statements("START TRANSACTION");
    assert!(transaction[1].contains(KEY_OF_PAGE), "{transaction:?}");
    transaction.iter().map(|statement| statement.replace(KEY_OF_PAGE, &format!("x'{key:032X}'"))).collect()
}

/// A schema with the package, the counter and the table of the page.
fn installed(server: &Server) -> Schema<'_> {
    let schema = server.installed([&package(|_| {})]);
    schema.run("CALL counter_setup('downloads', NULL, 100, 0)");
    run_all(&mut schema.connect(), &statements("CREATE TABLE")).expect("a table");
    schema
}

/// The total, and the number of operation keys.
fn state(schema: &Schema<'_>) -> (u64, u64) {
    schema.first("SELECT counter_get('downloads'), (SELECT COUNT(*) FROM counter_operations)")
}

const CALLERS: usize = 12;
/// The number for a connection that has ended.
const LOST: u16 = 2013;
/// Of this number of operations, one gets no answer to its first COMMIT.
const UNANSWERED: usize = 8;

/// Callers repeat their operations until they are acknowledged, as the page says, while connections and statements are killed.
fn a_repeated_operation_counts_once_whatever_is_killed(server: &Server) {
    let schema = installed(server);
    let sessions: Vec<_> = (0..CALLERS).map(|_| AtomicU32::new(0)).collect();
    let [attempts, acknowledged, counted_before, killed] = [(); 4].map(|()| AtomicU64::new(0));
    let done = AtomicBool::new(false);
    let connect = |caller: usize| {
        let connection = schema.connect();
        sessions[caller].store(connection.connection_id(), SeqCst);
        connection
    };
    // The answer to the first COMMIT of an operation can get lost.
    let operation = |caller: usize, mut unanswered: bool, statements: &[String]| {
        let mut connection = connect(caller);
        loop {
            attempts.fetch_add(1, SeqCst);
            let number = match run_all(&mut connection, statements) {
                Ok(()) if !std::mem::take(&mut unanswered) => break,
                Ok(()) => 0,
                Err(Error::MySqlError(error)) => error.code,
                Err(_) => LOST,
            };
            killed.fetch_add(u64::from([1317, 1927, LOST, 3169].contains(&number)), SeqCst);
            match number {
                1062 => {
                    counted_before.fetch_add(1, SeqCst);
                    break;
                }
                1105 | 1205 | 1213 | 1317 | 1329 | 30021 if connection.query_drop("ROLLBACK").is_ok() => {}
                // The session is killed: 1927 on MariaDB, 3169 on MySQL.
                0 | LOST | 1105 | 1205 | 1213 | 1317 | 1329 | 1927 | 3169 | 30021 => connection = connect(caller),
                number => panic!("error {number}"),
            }
        }
        acknowledged.fetch_add(1, SeqCst);
    };
    // A kill for each three attempts, so that a slow machine has as many for each attempt. It fails if the session has ended.
    let kill = || {
        let mut connection = schema.connect();
        for (kills, what) in (1..).zip(["CONNECTION", "QUERY"].into_iter().cycle()) {
            while attempts.load(SeqCst) < 3 * kills {
                if done.load(SeqCst) {
                    return;
                }
                thread::sleep(Duration::from_micros(200));
            }
            let session = sessions[rand::rng().random_range(0..CALLERS)].load(SeqCst);
            let _ = connection.query_drop(format!("KILL {what} {session}"));
        }
    };
    let call = |caller: usize| {
        calls(60).for_each(|call| operation(caller, call % UNANSWERED == 0, &transaction(rand::rng().random())))
    };
    thread::scope(|scope| {
        scope.spawn(kill);
        let (_done, call) = (SetOnDrop(&done), &call);
        thread::scope(|scope| (0..CALLERS).for_each(|caller| _ = scope.spawn(move || call(caller))));
    });
    let (operations, counted_before) = (acknowledged.into_inner(), counted_before.into_inner());
    assert_eq!(state(&schema), (operations, operations));
    assert!(killed.into_inner() > 0, "no KILL has ended an attempt");
    assert!(counted_before >= operations / UNANSWERED as u64, "{counted_before} of {operations}");
}

fn a_repeated_operation_waits_for_the_open_transaction(server: &Server) {
    let schema = installed(server);
    let (mut first, mut second) = (schema.connect(), schema.impatient());
    for (key, end, expected, total) in [(1, "COMMIT", 1062, 1), (2, "ROLLBACK", 0, 2)] {
        let statements = transaction(key);
        let mut repeat = || {
            let number = number_of(run_all(&mut second, &statements));
            run(&mut second, "ROLLBACK");
            number
        };
        run_all(&mut first, &statements[..statements.len() - 1]).expect("an open transaction");
        assert_eq!(repeat(), 1205, "it waits");
        first.query_drop(end).expect(end);
        assert_eq!(repeat(), expected, "{end}");
        assert_eq!(state(&schema), (total, total), "{end}");
    }
}

fn the_clean_up_deletes_only_old_keys_and_delays_no_operation(server: &Server) {
    const OLD: u128 = 3500;
    const KEPT: u128 = 50;
    const LOCKED: u128 = 7;
    let schema = installed(server);
    let [mut connection, mut open, mut caller] = [(); 3].map(|()| schema.connect());
    run_all(&mut connection, &statements("DELIMITER")).expect("a procedure and an event");
    // The event of a server whose scheduler is on calls the procedure at once.
    schema.run("ALTER EVENT counter_operations_clean_up DISABLE");
    let clean_up = |session: &mut Conn| session.query_drop("CALL counter_operations_clean_up()").expect("a clean-up");
    // The first call sets the isolation level of the session.
    clean_up(&mut connection);
    for (keys, age) in [(LOCKED..LOCKED + OLD, 25), (2 * OLD..2 * OLD + KEPT, 23)] {
        let rows = keys.map(|key| format!("(x'{key:032X}', CURRENT_TIMESTAMP - INTERVAL {age} HOUR)"));
        schema.run(&format!("INSERT INTO counter_operations VALUES {}", rows.collect::<Vec<_>>().join(", ")));
    }
    // A transaction that has inserted its key, and one that has locked an old key, delay no clean-up.
    run_all(&mut open, &transaction(1)[..3]).expect("an open transaction");
    let lock = format!("SELECT operation FROM counter_operations WHERE operation = x'{LOCKED:032X}' FOR UPDATE");
    run(&mut open, &lock);
    let patience = "SET SESSION innodb_lock_wait_timeout = 5";
    [&mut connection, &mut caller].into_iter().for_each(|session| run(session, patience));
    // In a transaction, which keeps the locks of the clean-up. No operation waits for them.
    connection.query_drop("START TRANSACTION").expect("a transaction");
    clean_up(&mut connection);
    run_all(&mut caller, &transaction(2)).expect("an operation");
    connection.query_drop("COMMIT").expect("a commit");
    assert_eq!(state(&schema), (1, KEPT as u64 + 2));
    open.query_drop("COMMIT").expect("a commit");
    clean_up(&mut connection);
    assert_eq!(state(&schema), (2, KEPT as u64 + 2));
}
