//! Counters in MySQL and MariaDB that thousands of connections increment at once.
//!
//! The rooms of the house; data flows from the first to the last:
//! - [`package`]: the model. Options, names, errors, the list of objects. Pure.
//! - [`render`]: package to files, through the templates. Pure.
//! - [`script`]: splits a script with DELIMITER into statements for a driver. Pure.
//! - [`server`]: a connection, its flavour and version; finding server programs; private throw-away servers.
//! - [`bench`]: load from many connections, and what it measured.
//! - [`advise`]: how many slots a server's counters need, from what it was seen to do.
//! - [`cli`]: one file per command, its flags and calls into the rooms above, and what commands share.

pub mod advise;
pub mod bench;
pub mod cli;
pub mod package;
pub mod render;
pub mod script;
pub mod server;
