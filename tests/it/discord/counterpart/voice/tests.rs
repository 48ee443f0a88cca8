//! Tests of the voice servers: what they refuse. What they do otherwise, the tests of calls show.

pub mod client;
mod identifying;

use super::super::Id;
use super::{Rules, VoiceServer};

const GUILD: Id = Id(7_000);
const CHANNEL: Id = Id(7_001);
const ANA: Id = Id(9_001);
const BO: Id = Id(9_002);

fn start() -> VoiceServer {
    VoiceServer::start(Rules::quick())
}
