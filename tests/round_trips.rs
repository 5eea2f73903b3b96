//! The questions of the tool to a server that is far away.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::advise::{printed, slotted};
use crate::support::{Module, Server};

pub fn promises(mut module: Module<'_>) {
    module.private().waits().on_families(an_installation_asks_few_questions);
}

/// The time from a question to its answer: 25 ms in each direction.
const DELAY: Duration = Duration::from_millis(25);

/// Forwards connections to a server with a delay in each direction.
struct Far {
    port: u16,
    /// How often a client has sent something after it had received something.
    questions: Arc<AtomicU32>,
}

impl Far {
    fn from(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let questions = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&questions);
        // It ends with the process of the tests.
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(&server)) else { continue };
                let of = |stream: &TcpStream| stream.try_clone().expect("a stream");
                let waits = Arc::new(AtomicU32::new(1));
                forward(of(&client), of(&server), Arc::clone(&counted), Arc::clone(&waits), true);
                forward(server, client, Arc::clone(&counted), waits, false);
            }
        });
        Self { port, questions }
    }
}

/// Forwards what a stream sends, in two threads, because what follows is read during the delay.
fn forward(mut from: TcpStream, mut to: TcpStream, questions: Arc<AtomicU32>, answered: Arc<AtomicU32>, asks: bool) {
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            if asks {
                questions.fetch_add(answered.swap(0, Relaxed), Relaxed);
            }
            if sender.send((Instant::now() + DELAY, bytes[..length].to_vec())).is_err() {
                return;
            }
            if !asks {
                answered.store(1, Relaxed);
            }
        }
    });
    thread::spawn(move || {
        for (at, bytes) in receiver {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

fn an_installation_asks_few_questions(server: &Server) {
    let network = server.network();
    let far = Far::from(format!("127.0.0.1:{}", network.port));
    let name = format!("far_{}", std::process::id());
    network.account(&format!("'{name}'@'%'"), "far", "");
    let schema = network.server.schema();
    let url = format!("mysql://{name}:far@127.0.0.1:{}/{}", far.port, schema.name);
    for (command, most) in [(&["install", "counters"][..], 100), (&["install", "counters"], 55), (&["status"], 55)] {
        let (before, start) = (far.questions.load(Relaxed), Instant::now());
        let output = slotted(&[command, &["--url", &url]].concat());
        assert_eq!(output.status.code(), Some(0), "{command:?}: {}", printed(&output));
        let questions = far.questions.load(Relaxed) - before;
        println!("{command:?}: {questions} questions, {:.1} s", start.elapsed().as_secs_f64());
        // 55 questions take less than 3 s.
        assert!(questions < most, "{command:?}: {questions} questions, {:?}", start.elapsed());
    }
}
