//! The nodes of a cluster, and the settings with which two nodes select the same slots. The rules are pure.

mod read;

use std::collections::BTreeMap;

use serde::Serialize;

pub(crate) use read::denied;
pub use read::node;

use crate::number::count;
use crate::package::{self, MAX_SLOTS, Package, Slots, SqlStr, literal, quoted};

/// What happens if two nodes select the same slot.
const SHARED: &str =
    "a transaction fails if another node changes its slot at the same time (errors 1213, 1180 and 3101)";

/// The number of counters or sessions in the text of a clash.
const NAMED: usize = 20;

/// A server, and what it knows of its cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    /// `wsrep_node_name`, or the host and the port.
    pub name: String,
    /// The family and the version, such as `MySQL 9.7.4`.
    pub version: String,
    /// None if the server is not configured for a cluster, or if the account cannot see it.
    pub cluster: Option<Cluster>,
    /// The global `auto_increment_increment`.
    pub increment: u32,
    /// The global `auto_increment_offset`.
    pub offset: u32,
    /// Whether `read_only` or `super_read_only` is on.
    pub read_only: bool,
    /// Threads_connected, without this connection.
    pub connected: u32,
    /// The transactions that the server has rejected since its start because of another node, by the name of the counter of
    /// the server.
    pub certification: BTreeMap<String, u64>,
    /// The tables of the packages.
    #[serde(skip)]
    pub tables: Vec<Table>,
    /// What the account cannot read.
    #[serde(skip)]
    pub cannot_see: Vec<CannotSee>,
}

/// The cluster of a node, as this node sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// Galera or Group Replication.
    pub kind: Kind,
    /// What is equal on all nodes of a cluster: `wsrep_cluster_state_uuid` or `group_replication_group_name`.
    pub id: String,
    /// What identifies the node: `wsrep_gcomm_uuid` or `server_uuid`.
    pub member: String,
    /// `wsrep_local_state_comment` or MEMBER_STATE.
    pub state: String,
    /// Whether the node is a part of the cluster that works.
    pub joined: bool,
    /// The number of nodes, without arbitrators.
    pub size: u32,
    /// The number of nodes that accept writes. On Galera, this is the number of nodes.
    pub writers: u32,
    /// The place of the node in the order of the identifications, from 1.
    pub position: u32,
    /// The versions of other nodes, by the names of the nodes. Only Group Replication has them.
    pub versions: BTreeMap<String, String>,
}

/// The kind of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Galera Cluster.
    #[default]
    Galera,
    /// MySQL Group Replication.
    GroupReplication,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Galera => "Galera Cluster",
            Self::GroupReplication => "Group Replication",
        })
    }
}

/// The table of a package on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// The schema.
    pub schema: String,
    /// The name of the table.
    pub name: String,
    /// The prefix of the routines.
    pub prefix: String,
    /// The version of the package. None if it is not known.
    pub version: Option<String>,
    /// Whether the slots of a counter are inserted by its increments, as in `slotted_counters`.
    pub records: bool,
    /// The number of slots in the routines. None if each counter has its own.
    pub fixed: Option<u32>,
    /// Whether an increment selects a random slot.
    pub random: bool,
    /// The engine and whether the table has a primary key. None if it is not known.
    pub storage: Option<(String, bool)>,
    /// Names and numbers of slots of the counters.
    pub counters: Vec<(String, u32)>,
}

/// Something that the account cannot read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CannotSee {
    /// What it is.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

/// A setting, a table or a version that does not fit the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Clash {
    /// The nodes or the table.
    pub subject: String,
    /// What was found, and what happens.
    pub because: String,
    /// The statements to run. A line that begins with `--` says where.
    pub run: String,
    /// False for a hint: nothing fails.
    pub alarm: bool,
}

/// The number of slots of a counter that the connections of one node use. 0 if all nodes use the same slots.
pub fn slots_per_node(slots: u32, increment: u32) -> u32 {
    slots / increment.max(1)
}

/// The number of slots as a multiple of an increment: rounded up, or down from [`MAX_SLOTS`].
pub(crate) fn multiple(slots: u32, increment: u32) -> u32 {
    let most = MAX_SLOTS - MAX_SLOTS % increment;
    slots.div_ceil(increment).saturating_mul(increment).min(most)
}

/// What is not known of the nodes that accept writes and were not read. None if all were read.
pub fn unseen(nodes: &[Node], what: &str) -> Option<CannotSee> {
    let group = Group::of(nodes)?;
    let unseen = group.writing.saturating_sub(group.writers.len() as u32);
    (unseen > 0).then(|| CannotSee {
        what: format!("{what} of {unseen} of the {} nodes of the cluster", group.size),
        remedy: "give one --url for each node".into(),
    })
}

/// Whether several nodes accept writes, also nodes that were not read.
pub fn several_write(nodes: &[Node]) -> bool {
    Group::of(nodes).is_some_and(|group| group.writing > 1)
}

/// The call that changes the number of slots of a counter.
pub(crate) fn resize(schema: &str, prefix: &str, counter: &str, slots: impl std::fmt::Display) -> String {
    format!(
        "CALL {}.{}({}, {slots});",
        quoted(schema),
        quoted(&format!("{prefix}resize")),
        literal(counter)
    )
}

/// The comment that begins the change of a number of slots in the routines. The files to source follow.
pub(crate) fn generate(fixed: u32, slots: u32) -> String {
    format!("-- The package has {fixed} fixed slots: generate it with --slots {slots}, and source")
}

/// What does not fit the cluster. Empty without a cluster, and if only one node accepts writes except for nodes that are not
/// members and for tables that are not replicated.
pub fn clashes(nodes: &[Node]) -> Vec<Clash> {
    let Some(group) = Group::of(nodes) else {
        return Vec::new();
    };
    let mut clashes = group.strangers(nodes);
    if group.writing > 1 {
        clashes.extend(group.settings());
    }
    clashes.extend(group.server_versions());
    clashes.extend(group.package_versions());
    for table in group.tables() {
        clashes.extend(group.storage(table));
        if group.writing > 1 {
            clashes.extend(group.slots(table));
        }
    }
    clashes
}

/// The cluster of the first node that has one.
struct Group<'a> {
    kind: Kind,
    id: &'a str,
    /// The number of nodes.
    size: u32,
    /// The number of nodes that accept writes.
    writing: u32,
    /// The nodes that were read, each once.
    nodes: Vec<&'a Node>,
    /// Those of them that accept writes.
    writers: Vec<&'a Node>,
}

impl<'a> Group<'a> {
    fn of(nodes: &'a [Node]) -> Option<Self> {
        let first = nodes
            .iter()
            .filter_map(|node| node.cluster.as_ref())
            .find(|cluster| cluster.joined)?;
        let mut group = Self {
            kind: first.kind,
            id: &first.id,
            size: 0,
            writing: 0,
            nodes: Vec::new(),
            writers: Vec::new(),
        };
        let mut seen = Vec::new();
        for node in nodes {
            let Some(cluster) = group
                .cluster(node)
                .filter(|one| !seen.contains(&one.member.as_str()))
            else {
                continue;
            };
            seen.push(&cluster.member);
            group.size = group.size.max(cluster.size);
            group.writing = group.writing.max(cluster.writers);
            group.nodes.push(node);
            if !node.read_only {
                group.writers.push(node);
            }
        }
        if group.kind == Kind::Galera {
            // The cluster does not know which nodes are read-only.
            let read_only = group.nodes.len() - group.writers.len();
            group.writing = group.writing.saturating_sub(read_only as u32);
        }
        Some(group)
    }

    /// What a node knows of this cluster. None if it is not in it.
    fn cluster(&self, node: &'a Node) -> Option<&'a Cluster> {
        let cluster = node.cluster.as_ref();
        cluster
            .filter(|cluster| cluster.joined && (cluster.kind, cluster.id.as_str()) == (self.kind, self.id))
    }

    /// Servers that are not nodes of the cluster of the others, and nodes that are read twice.
    fn strangers(&self, nodes: &'a [Node]) -> Vec<Clash> {
        let mut clashes = Vec::new();
        for node in nodes.iter().filter(|node| self.cluster(node).is_none()) {
            let state = node.cluster.as_ref().filter(|cluster| !cluster.joined);
            let state = state.map_or_else(String::new, |cluster| format!(" Its state is {}.", cluster.state));
            let others: Vec<_> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            clashes.push(Clash {
                subject: node.name.clone(),
                because: format!(
                    "it is not in the cluster of {}, so that neither has the counts of the other.{state}",
                    list(&others)
                ),
                run: match self.kind {
                    Kind::Galera => "-- Find the reason in its error log, and restart the server".into(),
                    Kind::GroupReplication => format!("-- On {}:\nSTART GROUP_REPLICATION;", node.name),
                },
                alarm: true,
            });
        }
        let members = nodes.iter().filter(|node| self.cluster(node).is_some()).count();
        if members > self.nodes.len() {
            clashes.push(Clash {
                subject: "the URLs".into(),
                because: format!("{members} URLs are those of {} nodes", self.nodes.len()),
                run: "-- Give one --url for each node".into(),
                alarm: false,
            });
        }
        clashes
    }

    /// Settings with which two nodes select the same slots.
    fn settings(&self) -> Vec<Clash> {
        let of = |nodes: &[&Node]| -> String {
            let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
            list(&names)
        };
        let clash = |nodes: &[&Node], because: String| Clash {
            subject: of(nodes),
            because: format!("{because}: {SHARED}"),
            run: self.spread(),
            alarm: true,
        };
        let few: Vec<_> = self
            .writers
            .iter()
            .copied()
            .filter(|node| node.increment < self.writing)
            .collect();
        if let Some(first) = few.first() {
            let because = format!(
                "auto_increment_increment is {}, but {} nodes accept writes, so that nodes select the same slots",
                first.increment, self.writing
            );
            return vec![clash(&few, because)];
        }
        let mut increments: BTreeMap<u32, Vec<&Node>> = BTreeMap::new();
        for node in &self.writers {
            increments.entry(node.increment).or_default().push(node);
        }
        if increments.len() > 1 {
            let each: Vec<_> = increments
                .iter()
                .map(|(increment, nodes)| format!("{increment} on {}", of(nodes)))
                .collect();
            let because = format!(
                "auto_increment_increment is {}, so that these nodes select the same slots",
                list(&each)
            );
            return vec![clash(&self.writers, because)];
        }
        let mut places: BTreeMap<u32, Vec<&Node>> = BTreeMap::new();
        for node in &self.writers {
            places.entry(node.offset % node.increment).or_default().push(node);
        }
        let same = places.into_iter().filter(|(_, nodes)| nodes.len() > 1);
        same.map(|(place, nodes)| {
            let each: Vec<_> = nodes
                .iter()
                .map(|node| format!("{} on {}", node.offset, node.name))
                .collect();
            let because = format!(
                "auto_increment_offset is {}. MOD(auto_increment_offset, {}) is {place} on these nodes, so that they select the \
                 same slots",
                list(&each),
                nodes[0].increment
            );
            clash(&nodes, because)
        })
        .collect()
    }

    /// The statements that give each node slots of its own.
    fn spread(&self) -> String {
        let others = self.writing as usize > self.writers.len();
        let names: Vec<_> = self.writers.iter().map(|node| node.name.as_str()).collect();
        if self.kind == Kind::Galera {
            let place = if others { "each node".into() } else { list(&names) };
            return format!(
                "-- On {place}, and in the option file:\nSET GLOBAL wsrep_auto_increment_control = ON;"
            );
        }
        // The default of group_replication_auto_increment_increment.
        let increment = self.size.max(7);
        let mut lines = Vec::new();
        for node in &self.writers {
            let position = self.cluster(node).map_or(1, |cluster| cluster.position);
            lines.push(format!("-- On {}:", node.name));
            lines.push(format!(
                "SET PERSIST auto_increment_increment = {increment}, PERSIST auto_increment_offset = {position};"
            ));
        }
        if others {
            lines.push("-- And on each other node what slotted status prints for it".into());
        }
        lines.join("\n")
    }

    /// Servers of different versions.
    fn server_versions(&self) -> Option<Clash> {
        let mut nodes: BTreeMap<&str, &str> = BTreeMap::new();
        for node in &self.nodes {
            let others = self
                .cluster(node)
                .into_iter()
                .flat_map(|cluster| &cluster.versions);
            nodes.extend(others.map(|(name, version)| (name.as_str(), version.as_str())));
        }
        nodes.extend(
            self.nodes
                .iter()
                .map(|node| (node.name.as_str(), node.version.as_str())),
        );
        let because = differing(nodes)?;
        Some(Clash {
            subject: "the servers".into(),
            because: format!("the nodes have different versions: {because}"),
            run: "-- Upgrade the servers with the lower version".into(),
            alarm: true,
        })
    }

    /// Packages of different versions.
    fn package_versions(&self) -> Vec<Clash> {
        let mut packages: BTreeMap<(&str, &str), BTreeMap<&str, &str>> = BTreeMap::new();
        for node in &self.nodes {
            for table in &node.tables {
                if let Some(version) = &table.version {
                    let nodes = packages.entry((&table.schema, &table.name)).or_default();
                    nodes.insert(&node.name, version);
                }
            }
        }
        let clash = |((schema, table), nodes)| {
            Some(Clash {
                subject: format!("{schema}.{table}"),
                because: format!(
                    "the nodes have different versions of the package: {}",
                    differing(nodes)?
                ),
                run: "-- Run slotted status with one --url for each node, and slotted install on the nodes that differ".into(),
                alarm: true,
            })
        };
        packages.into_iter().filter_map(clash).collect()
    }

    /// The tables, each once.
    fn tables(&self) -> Vec<&'a Table> {
        let mut tables: Vec<&Table> = Vec::new();
        for table in self.nodes.iter().flat_map(|node| &node.tables) {
            let same = |one: &&Table| (&one.schema, &one.name) == (&table.schema, &table.name);
            if !tables.iter().any(same) {
                tables.push(table);
            }
        }
        tables
    }

    /// A table that the cluster does not replicate.
    fn storage(&self, table: &Table) -> Option<Clash> {
        let (engine, key) = table.storage.as_ref()?;
        let alter = |change: &str| {
            format!(
                "ALTER TABLE {}.{} {change};",
                quoted(&table.schema),
                quoted(&table.name)
            )
        };
        let (because, run) = if engine != "InnoDB" {
            let then = match self.kind {
                Kind::Galera => "whose rows the cluster does not replicate: each node has other totals",
                Kind::GroupReplication => "in which the group rejects each change (error 3098)",
            };
            (
                format!("its engine is {engine}, {then}"),
                alter("ENGINE = InnoDB"),
            )
        } else if !key {
            let then = match self.kind {
                Kind::Galera => {
                    "the order of its rows can differ between the nodes, and DELETE is not supported"
                }
                Kind::GroupReplication => "the group rejects each change (error 3098)",
            };
            let columns = "-- With the columns of create_tables.sql:\n";
            (
                format!("it has no primary key: {then}"),
                columns.to_owned() + &alter("ADD PRIMARY KEY (...)"),
            )
        } else {
            return None;
        };
        Some(Clash {
            subject: table.subject(),
            because,
            run,
            alarm: true,
        })
    }

    /// Counters whose slots do not fit the number of nodes.
    fn slots(&self, table: &Table) -> Vec<Clash> {
        let increments = self.writers.iter().map(|node| node.increment);
        let increment = increments.max().unwrap_or(1).max(self.writing);
        let what_divides = "auto_increment_increment";
        let clash = |because: String, run: String, alarm| Clash {
            subject: table.subject(),
            because,
            run,
            alarm,
        };
        if table.random {
            let because =
                format!("an increment selects a random slot. Nodes select the same slots: {SHARED}");
            let run = "-- Install the package with --pick connection";
            return vec![clash(because, run.into(), true)];
        }
        let few = |what: &str| {
            format!("{what}, fewer than {what_divides} ({increment}). Nodes select the same slots: {SHARED}")
        };
        let rest = |what: &str| {
            format!(
                "{what}, no multiple of {what_divides} ({increment}). No node selects the slots after the last multiple"
            )
        };
        if let Some(slots) = table.fixed {
            let wanted = multiple(slots, increment);
            return match (slots < increment, table.records) {
                (true, true) => {
                    let run = format!(
                        "-- Generate the package with --slots {wanted}, and source its create_procedures.sql"
                    );
                    vec![clash(few(&format!("each record has {slots} slots")), run, true)]
                }
                (fewer, false) if wanted != slots => {
                    let what = format!("each counter has {slots} slots");
                    let because = if fewer { few(&what) } else { rest(&what) };
                    let run = format!("{} resize.sql and create_procedures.sql", generate(slots, wanted));
                    vec![clash(because, run, fewer)]
                }
                // A record has only the slots that its increments have inserted.
                _ => Vec::new(),
            };
        }
        let mut clashes = Vec::new();
        let (fewer, more): (Vec<_>, Vec<_>) = table
            .counters
            .iter()
            .filter(|(_, slots)| slots % increment != 0)
            .partition(|(_, slots)| *slots < increment);
        for (counters, alarm) in [(fewer, true), (more, false)] {
            let named = counters.iter().take(NAMED);
            let mut have: Vec<_> = named
                .clone()
                .map(|(name, slots)| format!("{} has {}", SqlStr(name), count((*slots).into(), "slot")))
                .collect();
            let mut run: Vec<_> = named
                .map(|(name, slots)| resize(&table.schema, &table.prefix, name, multiple(*slots, increment)))
                .collect();
            if counters.len() > NAMED {
                have.push(count((counters.len() - NAMED) as u64, "other counter"));
                run.push(
                    "-- Then run slotted status again, which prints the calls for the other counters".into(),
                );
            }
            let have = list(&have);
            if !counters.is_empty() {
                clashes.push(clash(
                    if alarm { few(&have) } else { rest(&have) },
                    run.join("\n"),
                    alarm,
                ));
            }
        }
        clashes
    }
}

impl Table {
    /// The table of a package in a schema, without what only the server knows.
    pub fn of(schema: &str, package: &Package) -> Self {
        let options = &package.options;
        let fixed = match options.slots {
            Slots::PerCounter => None,
            Slots::Fixed(slots) => Some(slots),
        };
        Self {
            schema: schema.to_owned(),
            name: options.table.name().to_owned(),
            prefix: options.prefix.name().to_owned(),
            records: options.kind == package::Kind::SlottedCounters,
            fixed,
            random: options.random(),
            ..Self::default()
        }
    }

    fn subject(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }
}

/// What the nodes have, by value. None if all have the same.
fn differing(nodes: BTreeMap<&str, &str>) -> Option<String> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (node, value) in nodes {
        values.entry(value).or_default().push(node);
    }
    let each: Vec<_> = values
        .iter()
        .map(|(value, nodes)| format!("{value} on {}", list(nodes)))
        .collect();
    (each.len() > 1).then(|| each.join(", "))
}

/// `a, b and c`.
fn list(words: &[impl AsRef<str>]) -> String {
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, kind: Kind, increment: u32, offset: u32) -> Node {
        Node {
            name: name.into(),
            version: "MySQL 9.7.4".into(),
            increment,
            offset,
            cluster: Some(Cluster {
                kind,
                id: "group".into(),
                member: name.into(),
                state: "ONLINE".into(),
                joined: true,
                size: 3,
                writers: 3,
                position: offset,
                versions: BTreeMap::new(),
            }),
            ..Node::default()
        }
    }

    fn three(kind: Kind, increment: u32) -> Vec<Node> {
        (1..=3)
            .map(|number| node(&format!("n{number}"), kind, increment, number))
            .collect()
    }

    fn galera() -> Vec<Node> {
        three(Kind::Galera, 3)
    }

    fn group() -> Vec<Node> {
        three(Kind::GroupReplication, 7)
    }

    fn with_table(mut nodes: Vec<Node>, table: Table) -> Vec<Node> {
        for node in &mut nodes {
            node.tables.push(Table {
                schema: "shop".into(),
                name: "counters".into(),
                prefix: "counter_".into(),
                ..table.clone()
            });
        }
        nodes
    }

    /// The subject, the statements and the kind of each clash.
    fn found(nodes: &[Node]) -> Vec<(String, String, bool)> {
        let clashes = clashes(nodes).into_iter();
        clashes
            .map(|clash| (clash.subject, clash.run, clash.alarm))
            .collect()
    }

    fn because(nodes: &[Node]) -> String {
        let clashes: Vec<_> = clashes(nodes).into_iter().map(|clash| clash.because).collect();
        clashes.join("\n")
    }

    #[test]
    fn nodes_with_slots_of_their_own_have_no_clash() {
        for nodes in [
            galera(),
            group(),
            Vec::new(),
            vec![Node::default(), Node::default()],
        ] {
            assert_eq!(clashes(&nodes), [], "{nodes:?}");
        }
    }

    #[test]
    fn an_increment_below_the_number_of_nodes_is_a_clash_on_one_node() {
        let control = "SET GLOBAL wsrep_auto_increment_control = ON;";
        let one = found(&three(Kind::Galera, 1)[..1]);
        assert_eq!(
            one,
            [(
                "n1".into(),
                format!("-- On each node, and in the option file:\n{control}"),
                true
            )]
        );
        let all = found(&three(Kind::Galera, 2));
        assert_eq!(all[0].0, "n1, n2 and n3");
        let mut group = group();
        group[1].increment = 1;
        let run = (1..=3).map(|number| {
            format!("-- On n{number}:\nSET PERSIST auto_increment_increment = 7, PERSIST auto_increment_offset = {number};\n")
        });
        let run = run.collect::<String>();
        assert_eq!(found(&group), [("n2".into(), run.trim_end().into(), true)]);
    }

    #[test]
    fn increments_and_offsets_that_select_the_same_slots_are_a_clash() {
        let mut nodes = group();
        nodes[2].offset = 8;
        assert_eq!(
            because(&nodes),
            format!(
                "auto_increment_offset is 1 on n1 and 8 on n3. MOD(auto_increment_offset, 7) is 1 on these nodes, so that they \
                 select the same slots: {SHARED}"
            )
        );
        assert_eq!(clashes(&nodes[..2]), []);
        nodes[2].increment = 14;
        assert!(because(&nodes).starts_with("auto_increment_increment is 7 on n1 and n2 and 14 on n3, "));
    }

    #[test]
    fn a_cluster_in_which_one_node_writes_has_no_clash() {
        let mut nodes = three(Kind::GroupReplication, 1);
        for node in &mut nodes {
            node.read_only = node.name != "n1";
            node.cluster.iter_mut().for_each(|cluster| cluster.writers = 1);
        }
        assert_eq!(clashes(&nodes), []);
        assert_eq!(unseen(&nodes[..1], ""), None);
        assert!(
            unseen(&nodes[1..], "").is_some(),
            "the node that writes was not read"
        );
        let mut galera = three(Kind::Galera, 1);
        galera[1].read_only = true;
        galera[2].read_only = true;
        assert_eq!(clashes(&galera), []);
        let alone = Node {
            increment: 2,
            offset: 2,
            ..Node::default()
        };
        assert_eq!(clashes(&[alone]), []);
    }

    #[test]
    fn nodes_that_were_not_read_are_counted_once() {
        let nodes = galera();
        assert_eq!(unseen(&nodes, "x"), None);
        let twice = [nodes[0].clone(), nodes[0].clone(), nodes[1].clone()];
        assert_eq!(
            unseen(&twice, "x").map(|one| one.what),
            Some("x of 1 of the 3 nodes of the cluster".into())
        );
        let hint = ("the URLs".into(), "-- Give one --url for each node".into(), false);
        assert_eq!(found(&twice), [hint]);
    }

    #[test]
    fn a_server_that_is_not_in_the_cluster_is_a_clash() {
        let mut nodes = group();
        nodes[2].cluster.iter_mut().for_each(|cluster| {
            cluster.joined = false;
            cluster.state = "ERROR".into();
        });
        let run = "-- On n3:\nSTART GROUP_REPLICATION;".to_owned();
        assert_eq!(found(&nodes), [("n3".into(), run, true)]);
        assert!(because(&nodes).ends_with("Its state is ERROR."));
        let mut other = galera();
        other[1]
            .cluster
            .iter_mut()
            .for_each(|cluster| cluster.id = "other".into());
        assert!(because(&other).starts_with("it is not in the cluster of n1 and n3, "));
    }

    #[test]
    fn versions_that_differ_are_a_clash() {
        let mut nodes = group();
        nodes[2].version = "MySQL 9.7.5".into();
        let expected = "the nodes have different versions: MySQL 9.7.4 on n1 and n2, MySQL 9.7.5 on n3";
        assert_eq!(because(&nodes), expected);
        // A node of Group Replication knows the versions of the others.
        let mut one = group().remove(0);
        let versions = [
            ("n1", "MySQL 9.7.4"),
            ("n2", "MySQL 9.7.4"),
            ("n3", "MySQL 9.7.5"),
        ];
        let versions = versions.map(|(name, version)| (name.to_owned(), version.to_owned()));
        one.cluster
            .iter_mut()
            .for_each(|cluster| cluster.versions = versions.clone().into());
        assert_eq!(because(&[one]), expected);
        let mut packages = with_table(
            galera(),
            Table {
                version: Some("0.1.0".into()),
                ..Table::default()
            },
        );
        assert_eq!(clashes(&packages), []);
        packages[1].tables[0].version = Some("0.2.0".into());
        assert!(because(&packages).ends_with("0.1.0 on n1 and n3, 0.2.0 on n2"));
    }

    #[test]
    fn counters_get_a_multiple_of_the_increment() {
        let counters = [("a", 2), ("b", 14), ("it's", 9_999), ("c", 8)];
        let table = Table {
            counters: counters.map(|(name, slots)| (name.to_owned(), slots)).into(),
            ..Table::default()
        };
        let shop = || "shop.counters".to_owned();
        let call = |name: &str, slots: u32| format!("CALL `shop`.`counter_resize`('{name}', {slots});");
        assert_eq!(
            found(&with_table(group(), table)),
            [
                (shop(), call("a", 7), true),
                // The maximum is 10,000.
                (
                    shop(),
                    format!("{}\n{}", call("it''s", 9_996), call("c", 14)),
                    false
                ),
            ]
        );
        assert_eq!(
            [slots_per_node(14, 7), slots_per_node(6, 7), slots_per_node(5, 1)],
            [2, 0, 5]
        );
    }

    #[test]
    fn slots_in_the_routines_and_random_slots_are_checked() {
        let fixed = |slots, records| {
            found(&with_table(
                group(),
                Table {
                    fixed: Some(slots),
                    records,
                    ..Table::default()
                },
            ))
        };
        let run = "-- The package has 20 fixed slots: generate it with --slots 21, and source resize.sql and create_procedures.sql";
        assert_eq!(fixed(20, false), [("shop.counters".into(), run.into(), false)]);
        assert!(fixed(6, false)[0].2 && fixed(6, true)[0].2);
        assert_eq!((fixed(21, false), fixed(521, true)), (vec![], vec![]));
        let random = Table {
            random: true,
            fixed: Some(20),
            ..Table::default()
        };
        let run = "-- Install the package with --pick connection";
        assert_eq!(
            found(&with_table(galera(), random)),
            [("shop.counters".into(), run.into(), true)]
        );
    }

    #[test]
    fn tables_that_are_not_replicated_are_a_clash() {
        let of = |engine: &str, key| Table {
            storage: Some((engine.into(), key)),
            ..Table::default()
        };
        assert_eq!(clashes(&with_table(galera(), of("InnoDB", true))), []);
        let run = "ALTER TABLE `shop`.`counters` ENGINE = InnoDB;".to_owned();
        assert_eq!(
            found(&with_table(galera(), of("Aria", true))),
            [("shop.counters".into(), run, true)]
        );
        assert!(because(&with_table(group(), of("InnoDB", false))).contains("error 3098"));
    }
}
