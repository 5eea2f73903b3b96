//! Counters in MySQL and MariaDB that many connections increment at the same time.

pub mod advise;
pub mod bench;
pub mod cli;
pub mod connect;
pub mod install;
pub mod package;
pub mod render;
pub mod script;
pub mod server;
