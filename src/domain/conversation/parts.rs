//! The parts of a conversation's state, besides gates, window and round.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::closing::Stage;
use super::super::id::Seq;
use super::super::message::Message;
use super::super::moment::Moment;

/// A statement that the next judgement of repetition considers. The window shares the message while it holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecentStatement {
    pub(super) seq: Seq,
    pub(super) message: Arc<Message>,
    /// A person spoke between the statement before it and this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) follows_person: bool,
}

pub(super) fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// One conversation in a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// When its first message was said.
    pub began_at: Moment,
    /// When its last message was said.
    pub last_at: Moment,
}

/// The counters that limit endless conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The number of statements that were selected after the newest human message.
    pub streak: u32,
    /// The number of statements since the conversation was opened.
    pub turns: u32,
    /// The number of judgements in a row that found repetition.
    pub detections: u32,
    /// The score of the last repetition judgement, in thousandths.
    pub repetition: u32,
    /// The stage that repetition forced last. `none` if the last judgement found none.
    #[serde(default, skip_serializing_if = "Stage::is_none")]
    pub forced: Stage,
    /// A statement whose call began under `forced` was posted, so that the next stage may be forced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_next_allowed: bool,
    pub(super) newest_human: Seq,
    /// The newest inbound event when the number of statements began at 0.
    #[serde(default)]
    pub(super) opened: Seq,
}
