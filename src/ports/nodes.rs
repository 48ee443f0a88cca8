//! The servers that share a store.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

/// The servers that share a store, as one of them sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodesView {
    /// What holds the store: `sled` or `postgres`.
    pub engine: Arc<str>,
    /// The name of the node that answers.
    pub this: Arc<str>,
    /// The parts of all guilds, each with the node that runs its channels.
    pub partitions: Vec<Partition>,
    /// The nodes that are running, ordered by name.
    pub nodes: Vec<Node>,
    /// Why the database cannot be read now. What is shown is from before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Arc<str>>,
}

/// A part of all guilds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Partition {
    pub id: u32,
    /// The name of the node that owns it. None: it was given back, and the next node takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Arc<str>>,
    /// The owner's `cluster.address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Arc<str>>,
    /// How often its owner has changed. It also grows when the owner's writer is restarted.
    pub term: u64,
    /// Whether the node that answers owns it.
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
    /// For how many seconds this node has seen no sign of life of it.
    pub silent_secs: u64,
}

impl NodesView {
    /// The partition that another node owns, as far as is known now.
    pub fn active(&self) -> Option<&Partition> {
        let is_others = |partition: &&Partition| partition.owner.is_some() && !partition.is_own;
        self.partitions.iter().find(is_others).filter(|_| self.problem.is_none())
    }
}

/// Knows the servers that share this server's store.
pub trait Nodes: Send + Sync + 'static {
    fn nodes(&self) -> NodesView;
}

/// For tests: no node is known.
#[cfg(any(test, feature = "samples"))]
pub struct NoNodes;

#[cfg(any(test, feature = "samples"))]
impl Nodes for NoNodes {
    fn nodes(&self) -> NodesView {
        NodesView { engine: "sled".into(), this: "test".into(), ..NodesView::default() }
    }
}
