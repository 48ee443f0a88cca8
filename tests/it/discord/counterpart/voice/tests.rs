//! Tests of the voice servers: every rule that they follow, checked with a bare client, and calls of scripted people.

mod calls;
pub mod client;
mod encryption;
mod identifying;
mod network;
mod resuming;

use std::collections::BTreeSet;

use super::super::Id;
use super::{Person, Rules, VoiceServer};

const GUILD: Id = Id(7_000);
const CHANNEL: Id = Id(7_001);
const ANA: Id = Id(9_001);
const BO: Id = Id(9_002);
const CY: Id = Id(9_003);

fn start() -> VoiceServer {
    VoiceServer::start(Rules::quick())
}

/// People in one call, when all of them can hear each other.
async fn call<const COUNT: usize>(voice: &VoiceServer, users: [Id; COUNT]) -> [Person; COUNT] {
    let mut people = Vec::new();
    for user in users {
        people.push(voice.join(GUILD, CHANNEL, user).await);
        voice.members(CHANNEL, people.len()).await;
    }
    for person in &people {
        person.grouped(COUNT).await;
    }
    voice.grouped(CHANNEL, COUNT).await;
    people.try_into().ok().expect("as many people as users")
}

/// Frames that differ from each other and from those of others.
fn frames(name: u8, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|index| [vec![0x78, name], index.to_be_bytes().to_vec(), vec![name; 40]].concat()).collect()
}

/// The frames that were heard, in any order and once each.
fn heard(frames: &[super::Heard]) -> BTreeSet<Vec<u8>> {
    frames.iter().map(|heard| heard.frame.clone()).collect()
}
