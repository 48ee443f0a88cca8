//! The gates of the companions in a channel, by id.

use std::collections::BTreeMap;
use std::ops::Index;

use serde::{Deserialize, Serialize, Serializer};

use super::super::closing::Stage;
use super::super::gate::{Evaluation, Gate};
use super::super::id::{CompanionId, Ticket};
use super::super::message::Message;
use super::super::voice::interruption::Words;
use super::ending::is_call;

/// A sorted list that replaces a map. There are few gates, and they are iterated many times per message. The smallest node of a tree has room for
/// eleven.
///
/// It is serialised as a map.
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

    /// The companions whose gates match, in the order of ids. The result is usually empty, and then nothing is allocated.
    #[inline]
    pub(super) fn companions_where(&self, matches: impl Fn(&Gate) -> bool) -> Vec<CompanionId> {
        let mut companions = Vec::new();
        for (companion, _) in self.iter().filter(|(_, gate)| matches(gate)) {
            companions.push(companion.clone());
        }
        companions
    }

    pub(super) fn contains_key(&self, companion: &CompanionId) -> bool {
        self.index_of(companion).is_ok()
    }

    pub(super) fn get(&self, companion: &CompanionId) -> Option<&Gate> {
        Some(&self.0[self.index_of(companion).ok()?].1)
    }

    pub(super) fn get_mut(&mut self, companion: &CompanionId) -> Option<&mut Gate> {
        let index = self.index_of(companion).ok()?;
        Some(&mut self.0[index].1)
    }

    /// The gate of a companion. Inserts `new` if it has none.
    pub(super) fn get_or_insert(&mut self, companion: &CompanionId, new: Gate) -> &mut Gate {
        let index = self.index_of(companion).unwrap_or_else(|index| {
            self.0.reserve_exact(1);
            self.0.insert(index, (companion.clone(), new));
            index
        });
        &mut self.0[index].1
    }

    pub(super) fn remove(&mut self, companion: &CompanionId) {
        if let Ok(index) = self.index_of(companion) {
            self.0.remove(index);
        }
    }

    fn index_of(&self, companion: &CompanionId) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(companion))
    }

    /// Applies the start of a conversation by a companion. No other companion starts one before the next human message.
    pub(super) fn apply_started(&mut self) {
        for gate in self.values_mut() {
            gate.may_start = false;
            gate.silence_at = None;
            gate.waiting.take_if(|waiting| !waiting.trigger.needs_a_message());
        }
    }

    /// Whether questions are asked in rounds. A single built-in companion needs no vote.
    pub(super) fn holds_rounds(&self) -> bool {
        self.len() > 1 || self.values().any(|gate| gate.external)
    }

    pub(super) fn question(&self, ticket: Ticket) -> Option<(CompanionId, Evaluation)> {
        self.iter().find_map(|(companion, gate)| {
            let evaluation = gate.evaluation.filter(|evaluation| evaluation.ticket == ticket)?;
            Some((companion.clone(), evaluation))
        })
    }

    /// Ends the minimum stages of the companions that a human's message addresses.
    pub(super) fn lift_minimum_of_called(&mut self, message: &Message) {
        for (_, gate) in self.iter_mut().filter(|(companion, _)| is_call(message, companion)) {
            gate.minimum_stage = Stage::None;
        }
    }

    /// Removes absent companions from the addressees.
    pub(super) fn to_those_present(&self, mut words: Words) -> Words {
        words.addressed.retain(|companion| self.contains_key(companion));
        words
    }
}

/// Panics if the companion is not in the channel.
impl Index<&CompanionId> for Gates {
    type Output = Gate;

    fn index(&self, companion: &CompanionId) -> &Gate {
        self.get(companion).expect("the companion is in the channel")
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
