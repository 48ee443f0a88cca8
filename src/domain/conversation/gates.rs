//! The gates of those who are present, by id.

use std::collections::BTreeMap;
use std::ops::Index;

use serde::{Deserialize, Serialize, Serializer};

use super::super::gate::Gate;
use super::super::id::CompanionId;

/// A map as a sorted list: few gates are walked through many times for each message, and a tree has room for eleven in its smallest node.
///
/// On record it is a map.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "BTreeMap<CompanionId, Gate>")]
pub(super) struct Gates(Vec<(CompanionId, Gate)>);

impl Gates {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&CompanionId, &Gate)> {
        self.0.iter().map(|(companion, gate)| (companion, gate))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&CompanionId, &mut Gate)> {
        self.0.iter_mut().map(|(companion, gate)| (&*companion, gate))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &CompanionId> {
        self.iter().map(|(companion, _)| companion)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Gate> {
        self.iter().map(|(_, gate)| gate)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Gate> {
        self.iter_mut().map(|(_, gate)| gate)
    }

    /// Who has a gate like this, in the order of ids. Nearly always nobody: then nothing is allocated.
    #[inline]
    pub(super) fn whose(&self, is_like_this: impl Fn(&Gate) -> bool) -> Vec<CompanionId> {
        let mut companions = Vec::new();
        for (companion, _) in self.iter().filter(|(_, gate)| is_like_this(gate)) {
            companions.push(companion.clone());
        }
        companions
    }

    pub(super) fn contains_key(&self, companion: &CompanionId) -> bool {
        self.place(companion).is_ok()
    }

    pub(super) fn get(&self, companion: &CompanionId) -> Option<&Gate> {
        Some(&self.0[self.place(companion).ok()?].1)
    }

    pub(super) fn get_mut(&mut self, companion: &CompanionId) -> Option<&mut Gate> {
        let place = self.place(companion).ok()?;
        Some(&mut self.0[place].1)
    }

    /// The gate of a companion; if it has none, this one from now on.
    pub(super) fn get_or_insert(&mut self, companion: &CompanionId, new: Gate) -> &mut Gate {
        let place = self.place(companion).unwrap_or_else(|place| {
            self.0.reserve_exact(1);
            self.0.insert(place, (companion.clone(), new));
            place
        });
        &mut self.0[place].1
    }

    pub(super) fn remove(&mut self, companion: &CompanionId) {
        if let Ok(place) = self.place(companion) {
            self.0.remove(place);
        }
    }

    fn place(&self, companion: &CompanionId) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(companion))
    }
}

/// Of somebody who is known to be present.
impl Index<&CompanionId> for Gates {
    type Output = Gate;

    fn index(&self, companion: &CompanionId) -> &Gate {
        self.get(companion).expect("it is present")
    }
}

impl From<BTreeMap<CompanionId, Gate>> for Gates {
    fn from(gates: BTreeMap<CompanionId, Gate>) -> Self {
        Self(gates.into_iter().collect())
    }
}

impl Serialize for Gates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
