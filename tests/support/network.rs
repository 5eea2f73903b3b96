//! Private servers that listen on a port.

use std::net::TcpListener;

use mysql::prelude::Queryable;
use rand::RngExt;

use super::Server;

/// Free ports of 127.0.0.1. They are below those that the kernel gives to outgoing connections, which could otherwise take
/// one before the server listens.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let mut random = rand::rng();
    let mut free = || loop {
        let port = random.random_range(10_000..30_000);
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return (port, listener);
        }
    };
    // No two are the same, because the listeners live until all are chosen.
    std::array::from_fn(|_| free()).map(|(port, _listener)| port)
}

/// A private server on a TCP port of 127.0.0.1.
pub struct Network {
    pub server: Server,
    pub port: String,
}

impl Network {
    pub fn start(server: &Server, arguments: &[&str]) -> Option<Self> {
        let program = server.program()?;
        let [port] = free_ports().map(|port| port.to_string());
        let number = format!("--port={port}");
        let network = ["--skip-networking=0", "--bind-address=127.0.0.1", &number];
        let server = Server::start(program, &[&network, arguments].concat()).expect("a server");
        Some(Self { server, port })
    }

    /// Creates an account with all privileges.
    pub fn account(&self, account: &str, password: &str, attributes: &str) {
        let mut connection = self.server.connect();
        let password = password.replace('\\', "\\\\").replace('\'', "''");
        connection
            .query_drop(format!(
                "CREATE USER {account} IDENTIFIED BY '{password}' {attributes}"
            ))
            .expect("an account");
        connection
            .query_drop(format!("GRANT ALL ON *.* TO {account} WITH GRANT OPTION"))
            .expect("privileges");
    }
}
