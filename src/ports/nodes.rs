//! The nodes that share a store.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

/// The nodes that share a store, as seen by one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodesView {
    /// The storage engine: `sled` or `postgres`.
    pub engine: Arc<str>,
    /// The name of the node that created this view.
    pub this: Arc<str>,
    /// The partitions of the guilds, each with the node that runs its channels.
    pub partitions: Vec<Partition>,
    /// The running nodes, ordered by name.
    pub nodes: Vec<Node>,
    /// Why the database cannot be read at present. The other fields then show an earlier state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Arc<str>>,
}

/// A partition of the guilds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Partition {
    pub id: u32,
    /// The name of the owning node. `None`: the partition was released, and the next node takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Arc<str>>,
    /// The owner's `cluster.address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Arc<str>>,
    /// The number of changes of ownership. It also grows when the owner's writer is restarted.
    pub term: u64,
    /// Whether the node that created this view owns the partition.
    #[serde(skip)]
    pub is_own: bool,
}

/// A running node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Node {
    pub name: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Arc<str>>,
    pub version: Arc<str>,
    pub is_owner: bool,
    /// The seconds since this node last saw a heartbeat of the other node: the owner sends one every second, the others every ten seconds.
    pub silent_secs: u64,
}

impl NodesView {
    /// The partition that another node owns. `None` if there is none, or while the database cannot be read.
    pub fn active(&self) -> Option<&Partition> {
        let is_others = |partition: &&Partition| partition.owner.is_some() && !partition.is_own;
        self.partitions.iter().find(is_others).filter(|_| self.problem.is_none())
    }
}

/// Lists the nodes that share this server's store.
pub trait Nodes: Send + Sync + 'static {
    fn nodes(&self) -> NodesView;
}

/// For tests: knows no other node.
#[cfg(any(test, feature = "samples"))]
pub struct NoNodes;

#[cfg(any(test, feature = "samples"))]
impl Nodes for NoNodes {
    fn nodes(&self) -> NodesView {
        NodesView { engine: "sled".into(), this: "test".into(), ..NodesView::default() }
    }
}
