//! Turns in progress: open rounds, held votes, the selected companion, owed replies, and the newest statement.
//!
//! The events of a conversation move turns from one of these states to the next. The questions and wishes of companions are in their gates.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod bid;
pub mod bids;
mod owed_reply;
mod selected;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::owed_reply::{Judgement, OwedReply, PostedStatement, SpokenSentence};
pub use self::selected::{Candidate, HeldVote, Selected, Selection};
use super::event::RoundClosed;
use super::id::{CompanionId, Seq, Ticket, TurnId};
use super::moment::Moment;
use super::round::Round;
use super::settlement::Owed;

/// The turns in progress of one channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Turns {
    /// The open rounds, oldest first. Older snapshots have at most one.
    #[serde(default, alias = "round", deserialize_with = "one_or_many")]
    pub(super) rounds: Vec<Round>,
    #[serde(default, rename = "turn")]
    pub(super) selected: Option<Box<Selected>>,
    pub(super) floor: Option<Box<OwedReply>>,
    /// Replies that are written without the floor, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) late: Vec<OwedReply>,
    /// Votes that are held until the floor is free. The wish of each companion is in its gate.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) held: BTreeMap<CompanionId, HeldVote>,
    /// The newest statement, until it opens a round.
    #[serde(default, rename = "spoken")]
    pub(super) posted: Option<PostedStatement>,
}

impl Turns {
    /// The open rounds, oldest first.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// The open round about this event.
    pub fn round(&self, message: Seq) -> Option<&Round> {
        self.rounds.iter().find(|round| round.message == message)
    }

    /// The round that waits for this companion's State. A companion is asked in one round at a time.
    pub fn round_awaiting(&self, companion: &CompanionId) -> Option<&Round> {
        self.rounds.iter().find(|round| round.awaits(companion))
    }

    /// Whether a companion wants to speak and waits until the floor is free.
    pub fn is_held(&self, companion: &CompanionId) -> bool {
        self.held.contains_key(companion)
    }

    /// The companion that was selected and has not begun to speak.
    pub fn selected(&self) -> Option<&Selected> {
        self.selected.as_deref()
    }

    /// Whether this companion was selected and has not begun to speak.
    pub fn is_selected(&self, companion: &CompanionId) -> bool {
        self.selected().is_some_and(|selected| selected.candidate.companion == *companion)
    }

    /// The reply of the companion that has the floor.
    pub fn floor(&self) -> Option<&OwedReply> {
        self.floor.as_deref()
    }

    /// Whether a companion has the floor, or was selected and waits for its delay.
    pub fn is_floor_taken(&self) -> bool {
        self.floor.is_some() || self.selected.is_some()
    }

    /// The owed replies: that of the companion with the floor, then the late ones.
    pub fn owed_replies(&self) -> impl Iterator<Item = &OwedReply> {
        self.floor().into_iter().chain(&self.late)
    }

    /// The owed reply with this number.
    pub fn owed_reply(&self, ticket: Ticket) -> Option<&OwedReply> {
        self.owed_replies().find(|reply| reply.ticket == ticket)
    }

    pub(super) fn owed_reply_mut(&mut self, ticket: Ticket) -> Option<&mut OwedReply> {
        self.floor.as_deref_mut().into_iter().chain(&mut self.late).find(|reply| reply.ticket == ticket)
    }

    /// Removes an owed reply.
    pub(super) fn take_owed(&mut self, ticket: Ticket) -> Option<OwedReply> {
        if let Some(floor) = self.floor.take_if(|floor| floor.ticket == ticket) {
            return Some(*floor);
        }
        let index = self.late.iter().position(|late| late.ticket == ticket)?;
        Some(self.late.remove(index))
    }

    /// Whether a companion writes without the floor. It is not asked again until it has spoken.
    pub fn is_late(&self, companion: &CompanionId) -> bool {
        self.late.iter().any(|late| late.companion == *companion)
    }

    /// Takes the floor from its companion, whose reply becomes late.
    pub(super) fn expire_floor(&mut self, ticket: Ticket) {
        self.late.extend(self.floor.take_if(|floor| floor.ticket == ticket).map(|floor| *floor));
    }

    /// Gives the floor to a late reply.
    pub(super) fn take_floor(&mut self, ticket: Ticket) {
        if let Some(index) = self.late.iter().position(|late| late.ticket == ticket) {
            let reply = self.late.remove(index);
            self.floor = Some(Box::new(OwedReply { was_late: true, ..reply }));
        }
    }

    /// Opens a round. The newest statement is removed, unless it is being judged.
    pub(super) fn open_round(&mut self, round: Round) {
        self.forget_posted();
        self.rounds.push(round);
    }

    /// Closes a round. Votes of companions that wait for the floor are held. Returns the round's turn.
    pub(super) fn close_round(&mut self, closed: &RoundClosed) -> Option<TurnId> {
        let index = self.rounds.iter().position(|round| round.message == closed.message);
        let turn = index.and_then(|index| self.rounds.remove(index).turn);
        for state in closed.states.iter().filter(|state| closed.held.contains(&state.from)) {
            self.hold(HeldVote { state: state.clone(), opened: closed.message });
        }
        turn
    }

    /// Holds a vote until the floor is free.
    pub(super) fn hold(&mut self, vote: HeldVote) {
        self.held.insert(vote.state.from.clone(), vote);
    }

    /// Sets the selected companion.
    pub(super) fn select(&mut self, selected: Selected) {
        self.selected = Some(Box::new(selected));
    }

    /// Stops the current attempt of a reply. The next one starts at this time.
    pub(super) fn stop_attempt(&mut self, ticket: Ticket, until: Moment) {
        if let Some(reply) = self.owed_reply_mut(ticket) {
            reply.replan_at = Some(until);
            // A late text that waits for the floor is discarded, too.
            reply.text = None;
        }
    }

    /// Starts the next attempt of a reply. Returns whether the reply is owed.
    pub(super) fn begin_attempt(&mut self, owed: &Owed<'_>) -> bool {
        let Some(reply) = owed.replaces.and_then(|ticket| self.owed_reply_mut(ticket)) else { return false };
        (reply.ticket, reply.upto, reply.messages) = (owed.ticket, owed.upto, owed.messages.to_vec());
        reply.replan_at = None;
        reply.replans += 1;
        reply.sentences.clear();
        true
    }

    /// Adds a sentence of a spoken reply that is about to play. If the reply is generated again after a restart, its sentences are replaced.
    pub(super) fn start_sentence(&mut self, ticket: Ticket, sentence: u32, text: &Arc<str>) {
        let spoken = self.spoken_reply_mut(ticket).filter(|reply| reply.sentences.len() >= sentence as usize);
        if let Some(reply) = spoken {
            reply.sentences.truncate(sentence as usize);
            reply.sentences.push(SpokenSentence { text: text.clone(), heard: 0 });
        }
    }

    /// Sets the number of characters of a sentence that were heard.
    pub(super) fn note_heard(&mut self, ticket: Ticket, sentence: u32, heard: u32) {
        let reply = self.spoken_reply_mut(ticket);
        if let Some(sentence) = reply.and_then(|reply| reply.sentences.get_mut(sentence as usize)) {
            sentence.heard = heard;
        }
    }

    /// Removes the text of a sentence.
    pub(super) fn redact_sentence(&mut self, ticket: Ticket, sentence: u32) {
        let reply = self.spoken_reply_mut(ticket);
        if let Some(sentence) = reply.and_then(|reply| reply.sentences.get_mut(sentence as usize)) {
            *sentence = SpokenSentence { text: "".into(), heard: 0 };
        }
    }

    fn spoken_reply_mut(&mut self, ticket: Ticket) -> Option<&mut OwedReply> {
        self.floor.as_deref_mut().filter(|reply| reply.ticket == ticket)
    }

    /// Removes the reasons that a companion gave for speaking.
    pub(super) fn forget_reason(&mut self, companion: &CompanionId) {
        let mut selections = Vec::new();
        if let Some(Selected { candidate, selection, .. }) = self.selected.as_deref_mut() {
            candidate.forget_reason_of(companion);
            selections.push(selection);
        }
        for reply in self.floor.as_deref_mut().into_iter().chain(&mut self.late) {
            reply.why.take_if(|_| reply.companion == *companion);
            selections.push(&mut reply.selection);
        }
        let others = selections.into_iter().flat_map(|selection| &mut selection.others);
        others.for_each(|candidate| candidate.forget_reason_of(companion));
    }

    /// Sets the newest statement.
    pub(super) fn post(&mut self, posted: PostedStatement) {
        self.posted = Some(posted);
    }

    /// Updates the judgement of the newest statement.
    pub(super) fn judge(&mut self, judgement: Judgement) {
        self.posted.iter_mut().for_each(|posted| posted.judgement = judgement);
    }

    /// Removes the newest statement, because a later message or question exists. While it is being judged, it stays.
    pub(super) fn forget_posted(&mut self) {
        self.posted.take_if(|posted| !matches!(posted.judgement, Judgement::Asked(_)));
    }

    /// Marks a pending judgement as spoilt if it is about deleted messages, so that its answer is not stored.
    pub(super) fn spoil_judgement(&mut self, deleted: &[Seq]) {
        if let Some(posted) = &mut self.posted {
            posted.is_spoilt |= deleted.iter().any(|seq| *seq <= posted.message);
        }
    }

    /// The replies that answer one of these messages.
    pub(super) fn answers_to(&self, messages: &[Seq]) -> Vec<Ticket> {
        let answers = |reply: &&OwedReply| reply.messages.iter().any(|seq| messages.contains(seq));
        self.owed_replies().filter(answers).map(|reply| reply.ticket).collect()
    }

    /// The number of expected statements: that of the floor or the selected companion, the late ones, one for all held votes, and one for each open
    /// round in which a companion wants to speak.
    pub(super) fn expected_statements(&self) -> u32 {
        let of_rounds = self.rounds.iter().filter(|round| round.has_wishes()).count();
        (of_rounds + self.late.len()) as u32 + u32::from(self.is_floor_taken()) + u32::from(!self.held.is_empty())
    }

    /// Whether a model judges the newest statement for repetition.
    pub(super) fn is_being_judged(&self) -> bool {
        self.open_judgement().is_some()
    }

    /// The repetition question in flight, and the newest message that it is about.
    pub fn open_judgement(&self) -> Option<(Ticket, Seq)> {
        let posted = self.posted.as_ref()?;
        let Judgement::Asked(ticket) = posted.judgement else { return None };
        Some((ticket, posted.message))
    }

    /// The turn whose statement is being judged for repetition.
    pub fn judged_turn(&self) -> Option<TurnId> {
        self.posted.as_ref().filter(|_| self.is_being_judged()).and_then(|posted| posted.turn)
    }

    /// The turns of open rounds, of the selected companion, of owed replies and of a statement that is being judged.
    pub(super) fn ids(&self) -> impl Iterator<Item = TurnId> {
        let round_turns = self.rounds.iter().filter_map(|round| round.turn);
        let selected = self.selected().and_then(|selected| selected.selection.turn);
        let owed = self.owed_replies().filter_map(|reply| reply.selection.turn);
        round_turns.chain(selected).chain(owed).chain(self.judged_turn())
    }

    /// The deadlines of the selected companion and of owed replies.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = Moment> {
        let selected = self.selected().and_then(|selected| selected.speak_at);
        let floor = self.floor.iter().filter_map(|floor| floor.deadline());
        let late = self.late.iter().filter_map(|late| late.replan_at);
        floor.chain(selected).chain(late)
    }

    /// The reply of a companion that the Stop button cancels. None if it owes no reply, or only one that is being posted.
    pub fn stoppable_reply(&self, companion: &CompanionId) -> Option<&OwedReply> {
        self.owed_replies().find(|floor| floor.companion == *companion && !floor.is_posting)
    }

    /// Whether a companion was selected to acknowledge events and has not begun to speak.
    pub(crate) fn is_about_to_acknowledge(&self, companion: &CompanionId) -> bool {
        let candidate = self.selected.as_ref().map(|turn| &turn.candidate);
        candidate.is_some_and(|candidate| candidate.trigger.acknowledges_events() && candidate.companion == *companion)
    }
}

/// Deserialises a list, or the optional single value that older versions wrote.
pub(super) fn one_or_many<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany<T> {
        Many(Vec<T>),
        One(Option<T>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::Many(many) => many,
        OneOrMany::One(one) => one.into_iter().collect(),
    })
}
