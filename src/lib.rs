//! Counters in MySQL and MariaDB that many connections increment at the same time.
//!
//! The modules, in the direction in which the data flows:
//! - [`package`]: the model of a package: options, names, errors, the list of objects. Pure.
//! - [`render`]: renders a package into files with the templates. Pure.
//! - [`script`]: splits a script with DELIMITER into the statements for a driver. Pure.
//! - [`server`]: the family and version of a server, server programs, and private servers.
//! - [`connect`]: a connection to a server: URL, option files, TLS, time-out, errors that say what to do.
//! - [`bench`]: the load of many connections, and its measurement.
//! - [`advise`]: what the sessions of a server wait for, and what to do about it.
//! - [`install`]: installs a package, and compares an installed one.
//! - [`cli`]: the commands, one file each, which call the modules above.

pub mod advise;
pub mod bench;
pub mod cli;
pub mod connect;
pub mod install;
pub mod package;
pub mod render;
pub mod script;
pub mod server;
