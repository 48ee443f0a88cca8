//! The only node of a store that no other server can open.

use crate::ports::nodes::{Node, Nodes, NodesView, Partition};
use crate::settings::cluster::Cluster;

pub(super) struct SingleNode(NodesView);

impl SingleNode {
    pub(super) fn of(settings: &Cluster) -> Self {
        let (name, address) = (settings.name(), settings.address.as_deref().map(Into::into));
        let partition = Partition { id: 0, owner: Some(name.as_str().into()), address: address.clone(), term: 1, is_own: true };
        let version = env!("CARGO_PKG_VERSION").into();
        let node = Node { name: name.as_str().into(), address, version, is_owner: true, silent_secs: 0 };
        let (partitions, nodes) = (vec![partition], vec![node]);
        Self(NodesView { engine: "sled".into(), this: name.into(), partitions, nodes, problem: None })
    }
}

impl Nodes for SingleNode {
    fn nodes(&self) -> NodesView {
        self.0.clone()
    }
}
