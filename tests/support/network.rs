//! Private servers that listen on a port.

use mysql::prelude::Queryable;

use super::{Server, free_ports};

/// A private server on a TCP port of 127.0.0.1.
pub struct Network {
    pub server: Server,
    pub port: String,
}

impl Network {
    pub fn start(server: &Server, arguments: &[&str]) -> Self {
        let port = free_ports(1)[0].to_string();
        let number = format!("--port={port}");
        let network = ["--skip-networking=0", "--bind-address=127.0.0.1", &number];
        let server = server.another(&[&network, arguments].concat());
        Self { server, port }
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
