//! The state that decides when a conversation ends: the episode, the counters, and the statements that are judged for repetition
//! (docs/design/closing.md).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::closing::{Cause, Stage};
use super::super::id::{CompanionId, Seq};
use super::super::message::Message;
use super::super::moment::Moment;
use super::super::repetition::{self, Repeated};
use super::Rules;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ClosingState {
    #[serde(default)]
    pub(super) tally: Tally,
    /// The newest statements since the conversation began or reopened, oldest first. Their number is limited to what a judgement of repetition uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) recent_statements: Vec<RecentStatement>,
    pub(super) episode: Option<Episode>,
    /// The companions whose closing stage the newest message ended, with that stage and the cause, until that is journaled.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) opened_again: BTreeMap<CompanionId, (Stage, Cause)>,
}

impl ClosingState {
    /// Adds a statement to those that the next judgement considers.
    pub(super) fn remember_statement(&mut self, seq: Seq, message: Arc<Message>) {
        let follows_person = self.recent_statements.last().is_some_and(|last| last.seq < self.tally.newest_human);
        if self.recent_statements.len() == repetition::REMEMBERED_STATEMENTS {
            self.recent_statements.remove(0);
        }
        self.recent_statements.reserve_exact(1);
        self.recent_statements.push(RecentStatement { seq, message, follows_person });
    }

    pub(super) fn edit_recent_statement(&mut self, seq: Seq, text: &Arc<str>) {
        if let Some(statement) = self.recent_statements.iter_mut().find(|statement| statement.seq == seq) {
            Arc::make_mut(&mut statement.message).edit(text.clone(), &[]);
        }
    }

    pub(super) fn replace_recent_statement(&mut self, seq: Seq, message: &Message) {
        if let Some(statement) = self.recent_statements.iter_mut().find(|statement| statement.seq == seq) {
            statement.message = Arc::new(message.clone());
        }
    }

    /// Drops deleted statements. If a person spoke before one of them, the next statement counts as following a person.
    pub(super) fn delete_recent_statements(&mut self, deleted: &[Seq]) {
        let mut follows_person = false;
        self.recent_statements.retain_mut(|statement| {
            statement.follows_person |= follows_person;
            let is_deleted = deleted.contains(&statement.seq);
            follows_person = is_deleted && statement.follows_person;
            !is_deleted
        });
    }

    /// Whether a message at `now` begins a new episode.
    pub(super) fn begins_episode(&self, now: Moment, rules: Rules<'_>) -> bool {
        self.episode.is_none_or(|episode| now.since(episode.last_at) >= rules.closing.episode_idle())
    }

    /// Whether a person spoke between the judged statements. The side model judges all of them, the lexical judge a window of them.
    pub(super) fn did_person_interrupt(&self, is_by_model: bool) -> bool {
        let window = if is_by_model { repetition::MOST_STATEMENTS } else { self.repeated().window };
        self.recent_statements.iter().rev().take(window.saturating_sub(1)).any(|statement| statement.follows_person)
    }

    /// The lexical repetition score of the newest statements.
    pub(super) fn repeated(&self) -> Repeated {
        repetition::newest(&self.recent_texts(), self.tally.is_asked_for)
    }

    /// The non-empty texts of the newest statements, oldest first.
    pub(super) fn recent_texts(&self) -> Vec<&str> {
        self.recent_statements.iter().map(|statement| &*statement.message.text).filter(|text| !text.is_empty()).collect()
    }
}

/// A statement that the next judgement of repetition considers. The window shares the message while it holds the message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecentStatement {
    pub(super) seq: Seq,
    pub(super) message: Arc<Message>,
    /// A person spoke between the statement before it and this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) follows_person: bool,
}

/// One conversation in a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// When its first message was accepted.
    pub began_at: Moment,
    /// When its last message was accepted.
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
    /// The stage that repetition forced last. `none` if the last judgement found no repetition.
    #[serde(default, skip_serializing_if = "Stage::is_none")]
    pub forced: Stage,
    /// A statement whose call began under `forced` was posted, so the next stage may be forced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_next_allowed: bool,
    /// The judged statements began with an answer to a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_asked_for: bool,
    pub(super) newest_human: Seq,
    /// The newest inbound event at the time when `turns` was reset to 0.
    #[serde(default)]
    pub(super) opened: Seq,
}
