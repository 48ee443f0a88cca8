//! Faults of calls that tests inject.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::Id;
use super::sessions::Seat;

/// All active faults.
#[derive(Default)]
pub struct Faults {
    /// How many of the next RESUMEs are refused.
    pub failing_resumes: usize,
    /// The network from the server to a member.
    pub downlinks: BTreeMap<Seat, Network>,
    /// The network from a member to the server.
    pub uplinks: BTreeMap<Seat, Network>,
    /// What others are told when a member begins to speak.
    pub speaking: BTreeMap<Seat, Speaking>,
    /// Members whose next commit message is garbled.
    pub garbled_commits: Vec<Seat>,
}

impl Faults {
    /// Whether there is one left of something that is counted. Counts down.
    pub fn take(left: &mut usize) -> bool {
        let is_left = *left > 0;
        *left = left.saturating_sub(1);
        is_left
    }
}

/// What a network does to datagrams. Each decision is drawn from a generator with the seed of the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Network {
    /// The share of datagrams that are dropped, from 0 to 1.
    pub loss: f64,
    /// The share of datagrams that arrive 45 ms late, behind later ones.
    pub reordering: f64,
    /// How much later every datagram arrives.
    pub delay: Duration,
}

/// What others are told when a member begins or ceases to speak (op 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speaking {
    #[default]
    Honest,
    /// The event names another user.
    Names(Id),
    /// No event comes.
    Missing,
    /// The event comes later.
    Late(Duration),
}
