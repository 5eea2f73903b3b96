//! Reads the facts of a node.

use std::collections::BTreeMap;

use mysql::Conn;
use mysql::prelude::Queryable;

use super::{CannotSee, Cluster, Kind, Node, Table};
use crate::install::privileges::Privileges;
use crate::package::quoted;
use crate::server::{Flavour, Version};

/// The members of the group: MEMBER_ID, name, state, role and version.
/// Source: MySQL manual, "The replication_group_members Table".
const MEMBERS: &str = "
SELECT MEMBER_ID,
       CONCAT(MEMBER_HOST, ':', MEMBER_PORT),
       MEMBER_STATE,
       MEMBER_ROLE,
       MEMBER_VERSION
  FROM performance_schema.replication_group_members
 ORDER BY MEMBER_ID";

const CONFLICTS: &str = "
SELECT COUNT_CONFLICTS_DETECTED
  FROM performance_schema.replication_group_member_stats
 WHERE MEMBER_ID = @@server_uuid";

/// Reads the facts of a node, without its tables. Needs no privilege without a cluster and on Galera, and SELECT on
/// `performance_schema.*` in Group Replication.
///
/// # Errors
/// The connection fails. A missing privilege is no error, but in [`Node::cannot_see`].
pub fn node(connection: &mut Conn) -> mysql::Result<Node> {
    let version = Version::of(connection)?;
    let variables: BTreeMap<String, String> = pairs(
        connection,
        "SHOW GLOBAL VARIABLES
         WHERE Variable_name IN (
           'auto_increment_increment', 'auto_increment_offset', 'group_replication_group_name', 'hostname', 'performance_schema',
           'port', 'read_only', 'server_uuid', 'super_read_only', 'wsrep_node_name', 'wsrep_on')",
    )?;
    let status = pairs(
        connection,
        "SHOW GLOBAL STATUS
         WHERE Variable_name IN (
           'Threads_connected', 'wsrep_cluster_size', 'wsrep_cluster_state_uuid', 'wsrep_cluster_status', 'wsrep_gcomm_uuid',
           'wsrep_incoming_addresses', 'wsrep_local_bf_aborts', 'wsrep_local_cert_failures', 'wsrep_local_index',
           'wsrep_local_state_comment')",
    )?;
    let text = |name: &str| variables.get(name).cloned().unwrap_or_default();
    let number = |name: &str| -> u32 {
        status
            .get(name)
            .and_then(|value| value.parse().ok())
            .unwrap_or_default()
    };
    // MariaDB 11.8 has other values of read_only that also reject writes.
    let is_off = |name: &str| ["", "0", "OFF", "NO"].contains(&text(name).to_uppercase().as_str());
    let mut node = Node {
        name: format!("{}:{}", text("hostname"), text("port")),
        version: numbers(version),
        increment: text("auto_increment_increment").parse().unwrap_or(1),
        offset: text("auto_increment_offset").parse().unwrap_or(1),
        read_only: !(is_off("read_only") && is_off("super_read_only")),
        connected: number("Threads_connected").saturating_sub(1),
        ..Node::default()
    };
    if !is_off("wsrep_on") {
        let of = |name: &str| status.get(name).cloned().unwrap_or_default();
        node.name = Some(text("wsrep_node_name"))
            .filter(|name| !name.is_empty())
            .unwrap_or(node.name);
        node.certification = ["wsrep_local_bf_aborts", "wsrep_local_cert_failures"]
            .map(|name| (name.to_owned(), number(name).into()))
            .into();
        let (part, state) = (of("wsrep_cluster_status"), of("wsrep_local_state_comment"));
        let joined = part == "Primary";
        let size = number("wsrep_cluster_size").saturating_sub(arbitrators(&of("wsrep_incoming_addresses")));
        node.cluster = Some(Cluster {
            kind: Kind::Galera,
            id: of("wsrep_cluster_state_uuid"),
            member: of("wsrep_gcomm_uuid"),
            state: if joined { state } else { part },
            joined,
            size,
            writers: size,
            position: number("wsrep_local_index") + 1,
            versions: BTreeMap::new(),
        });
    } else if !text("group_replication_group_name").is_empty() {
        let group = Cluster {
            kind: Kind::GroupReplication,
            id: text("group_replication_group_name"),
            member: text("server_uuid"),
            ..Cluster::default()
        };
        read_group(connection, &mut node, group)?;
    }
    Ok(node)
}

/// The number of arbitrators in `wsrep_incoming_addresses`. `wsrep_cluster_size` counts them, but they have no data. Their
/// address is empty.
fn arbitrators(addresses: &str) -> u32 {
    let (empty, nodes): (Vec<_>, Vec<_>) = addresses.split(',').partition(|address| address.is_empty());
    // The address of this server is in the list, unless the list is not known.
    if nodes.is_empty() { 0 } else { empty.len() as u32 }
}

/// The facts of Group Replication.
fn read_group(connection: &mut Conn, node: &mut Node, mut group: Cluster) -> mysql::Result<()> {
    type Member = (String, String, String, String, String);
    let what = "the nodes of the group and its conflicts";
    let Some(members) = readable::<Member>(connection, node, MEMBERS, what)? else {
        return Ok(());
    };
    for (position, (id, name, state, role, version)) in members.into_iter().enumerate() {
        let online = state == "ONLINE";
        group.size += u32::from(online || state == "RECOVERING");
        group.writers += u32::from(online && role == "PRIMARY");
        if id == group.member {
            group.joined = online;
            group.state = state;
            group.position = position as u32 + 1;
            node.name.clone_from(&name);
        }
        if let Some(version) = Version::parse(&version) {
            group.versions.insert(name, numbers(version));
        }
    }
    node.cluster = Some(group);
    if let Some(rows) = readable::<u64>(connection, node, CONFLICTS, what)? {
        let conflicts = rows.into_iter().sum();
        node.certification
            .insert("COUNT_CONFLICTS_DETECTED".into(), conflicts);
    }
    Ok(())
}

/// The rows of a query on `performance_schema`. None if the account cannot read it, which is then in the list of what it cannot
/// see.
fn readable<T: mysql::prelude::FromRow>(
    connection: &mut Conn,
    node: &mut Node,
    query: &str,
    what: &str,
) -> mysql::Result<Option<Vec<T>>> {
    match connection.query(query) {
        Err(error) if denied(&error) => {
            let remedy = Privileges::read(connection)?.on("SELECT", "performance_schema.*");
            let what = format!("{what} of {}", node.name);
            if !node.cannot_see.iter().any(|one| one.remedy == remedy) {
                node.cannot_see.push(CannotSee { what, remedy });
            }
            Ok(None)
        }
        rows => rows.map(Some),
    }
}

impl Table {
    /// Reads the engine, the primary key and the counters.
    ///
    /// # Errors
    /// The connection fails. A missing privilege is no error, but in `cannot_see`.
    pub fn read(&mut self, connection: &mut Conn, cannot_see: &mut Vec<CannotSee>) -> mysql::Result<()> {
        self.read_properties(connection)?;
        if self.records || self.fixed.is_some() {
            return Ok(());
        }
        // A view of this name could call functions with the privileges of this account.
        let view: Option<u64> = connection.exec_first(
            "SELECT COUNT(*) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?",
            (&self.schema, &self.name),
        )?;
        if view != Some(0) {
            return Ok(());
        }
        let counters = connection.query(format!(
            "SELECT counter_name,
                    COUNT(*)
               FROM {}.{}
              WHERE counter_id > 0
              GROUP BY counter_name
              ORDER BY counter_name",
            quoted(&self.schema),
            quoted(&self.name)
        ));
        match counters {
            Err(error) if denied(&error) => {
                let what = format!("the slots of the counters in {}", self.subject());
                let remedy = Privileges::read(connection)?.on_schema("SELECT");
                let one = CannotSee { what, remedy };
                if !cannot_see.contains(&one) {
                    cannot_see.push(one);
                }
            }
            // The table (1146) or a column (1054) does not exist, which the comparison of the objects reports.
            Err(mysql::Error::MySqlError(error)) if [1146, 1054].contains(&error.code) => {}
            counters => {
                // The table of another package can have bytes that are no characters, and NULL.
                let rows: Vec<(Option<Vec<u8>>, u32)> = counters?;
                let text =
                    |bytes: Option<Vec<u8>>| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
                self.counters = rows
                    .into_iter()
                    .map(|(name, slots)| (text(name), slots))
                    .collect();
            }
        }
        Ok(())
    }

    /// Reads the engine, whether the table has a primary key, and the remainder of the node. The first two are not known if the
    /// account cannot see the table.
    ///
    /// # Errors
    /// The connection fails.
    pub fn read_properties(&mut self, connection: &mut Conn) -> mysql::Result<()> {
        let row: Option<(Option<String>, bool)> = connection.exec_first(
            "SELECT tables.ENGINE,
                    EXISTS (
                      SELECT *
                        FROM information_schema.STATISTICS AS indexes
                       WHERE indexes.TABLE_SCHEMA = tables.TABLE_SCHEMA
                         AND indexes.TABLE_NAME = tables.TABLE_NAME
                         AND indexes.INDEX_NAME = 'PRIMARY'
                    )
               FROM information_schema.TABLES AS tables
              WHERE tables.TABLE_SCHEMA = ?
                AND tables.TABLE_NAME = ?",
            (&self.schema, &self.name),
        )?;
        self.storage = row.and_then(|(engine, key)| Some((engine?, key)));
        Ok(())
    }
}

/// Whether a privilege is missing: on a table (1142), on a column (1143), PROCESS (1227), on a schema (1044).
/// Source: MySQL manual, "Server Error Message Reference".
pub(crate) fn denied(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(error) if [1142, 1143, 1227, 1044].contains(&error.code))
}

fn numbers(version: Version) -> String {
    let flavour = match version.flavour {
        Flavour::MySql => "MySQL",
        Flavour::MariaDb => "MariaDB",
    };
    format!("{flavour} {}.{}.{}", version.major, version.minor, version.patch)
}

fn pairs(connection: &mut Conn, query: &str) -> mysql::Result<BTreeMap<String, String>> {
    let rows: Vec<(String, String)> = connection.query(query)?;
    Ok(rows.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::arbitrators;

    #[test]
    fn arbitrators_have_no_address() {
        for (addresses, expected) in [
            ("127.0.0.1:3306,127.0.0.2:3306", 0),
            ("127.0.0.1:3306,127.0.0.2:3306,", 1),
            (",127.0.0.1:3306,,127.0.0.2:3306", 2),
            ("AUTO,AUTO", 0),
            ("", 0),
        ] {
            assert_eq!(arbitrators(addresses), expected, "{addresses}");
        }
    }
}
