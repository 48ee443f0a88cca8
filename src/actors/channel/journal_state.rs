//! The channel's view of its journal: the known events, the batches in flight to the writer, and the actions to run after their commits.

use std::collections::VecDeque;

use super::channel_context::ChannelContext;
use super::post_commit::PostCommitAction;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Committed, OutboxWrite, Quiet, Record, Request};
use crate::domain::conversation::Conversation;
use crate::domain::event::{Event, Made};
use crate::domain::id::{Seq, Ticket};
use crate::domain::moment::Moment;
use crate::journal::record::{OutboxRecord, Used};

/// Number of events between two snapshots. It limits the number of events to fold after a restart.
const EVENTS_PER_SNAPSHOT: u32 = 128;

pub(super) struct JournalState {
    /// The newest event that this channel knows. Events are dispatched in the order of their numbers.
    newest: Seq,
    /// The batches that are not known to be committed, oldest first, with the actions to run after their commits.
    uncommitted: VecDeque<(u64, Vec<PostCommitAction>)>,
    /// The number of batches sent.
    batches: u64,
    /// Whether the journal does not state yet that the channel is at rest.
    is_pending: bool,
    since_snapshot: u32,
}

/// A batch of the channel's own events, with everything that is recorded or done with them.
pub(super) struct Batch {
    pub(super) made: Vec<Made>,
    pub(super) actions: Vec<PostCommitAction>,
    pub(super) usage: Vec<Used>,
    /// The time of the batch if it has no events. Otherwise the conversation's clock is used.
    pub(super) now: Moment,
    /// Records that the channel is at rest.
    pub(super) is_quiet: bool,
    /// Stores a snapshot, even if there were few events since the previous one.
    pub(super) falls_asleep: bool,
    /// Something is being posted that a restart finds in the events after the snapshot only.
    pub(super) is_posting: bool,
}

/// The journal contains events that were never dispatched to this channel, because the writer died before it dispatched them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {found} was dispatched after event {known}; the events in between were not dispatched")]
pub(super) struct MissedEvents {
    known: Seq,
    found: Seq,
}

impl JournalState {
    pub(super) fn new() -> Self {
        Self { newest: Seq::NONE, uncommitted: VecDeque::new(), batches: 0, is_pending: true, since_snapshot: 0 }
    }

    /// Sets the event up to which the journal was read, and the number of folded events.
    pub(super) fn restore(&mut self, newest: Seq, folded: usize) {
        (self.newest, self.since_snapshot) = (newest, folded as u32);
    }

    /// Updates the newest known event. If there is a gap before these events, the writer died before it dispatched the missing ones. Then the channel
    /// fails, and its successor reads them from the journal.
    pub(super) fn note_journaled(&mut self, first: Seq, last: Seq) -> Result<(), MissedEvents> {
        if first > self.newest.next() {
            return Err(MissedEvents { known: self.newest, found: first });
        }
        self.note_newest(last);
        Ok(())
    }

    /// Updates the newest known event, without a check for gaps. Earlier events may have been read with the journal.
    pub(super) fn note_newest(&mut self, seq: Seq) {
        self.newest = self.newest.max(seq);
    }

    /// Counts inbound events that are being handled.
    pub(super) fn note_received(&mut self, events: usize) {
        self.is_pending = true;
        self.since_snapshot += events as u32;
    }

    /// Whether the next batch records that the channel is at rest. The end of a silence makes events in a channel that was at rest.
    pub(super) fn becomes_quiet(&mut self, made: &[Made], is_at_rest: bool) -> bool {
        self.is_pending |= !made.is_empty();
        self.is_pending && is_at_rest
    }

    /// Whether no batch is in flight.
    pub(super) fn is_committed(&self) -> bool {
        self.uncommitted.is_empty()
    }

    /// The actions of the newest batch in flight. None if there is no batch in flight.
    pub(super) fn newest_actions(&mut self) -> Option<&mut Vec<PostCommitAction>> {
        self.uncommitted.back_mut().map(|(_, actions)| actions)
    }

    /// Takes the actions of the oldest batch, if batches up to this number are committed and it is one of them.
    pub(super) fn take_committed(&mut self, batch: u64) -> Option<Vec<PostCommitAction>> {
        let is_committed = self.uncommitted.front().is_some_and(|(number, _)| *number <= batch);
        if is_committed { self.uncommitted.pop_front().map(|(_, actions)| actions) } else { None }
    }

    /// Sends a batch of events to the writer. The actions run once it is committed.
    pub(super) fn record(&mut self, batch: Batch, conversation: &Conversation, channel: &ChannelContext) {
        let Batch { made, actions, usage, now, is_quiet, falls_asleep, is_posting } = batch;
        let snapshot = (!is_posting && self.is_snapshot_due(made.len(), falls_asleep)).then(|| Box::new(conversation.clone()));
        self.is_pending &= !is_quiet;
        let record = Record {
            channel_key: channel.key.clone(),
            // Usage without events happened now. The conversation's clock may show a much earlier time.
            at: if made.is_empty() { now } else { conversation.clock() },
            quiet: is_quiet.then(|| Quiet { handled: conversation.handled(), due: conversation.wakes_at() }),
            snapshot,
            outbox: made.iter().flat_map(|made| outbox_writes(&made.event)).collect(),
            usage,
            reply: self.add(actions, channel),
            made,
        };
        channel.send_to_writer(Request::Record(record));
    }

    /// Removes a reply that is no longer owed from the outbox.
    pub(super) fn remove_from_outbox(&mut self, ticket: Ticket, conversation: &Conversation, channel: &ChannelContext) {
        let empty = Record::new(channel.key.clone(), conversation.clock(), self.add(Vec::new(), channel));
        let record = Record { outbox: vec![OutboxWrite::Remove(ticket)], ..empty };
        channel.send_to_writer(Request::Record(record));
    }

    /// Counts the events of a batch. Returns whether the batch stores a snapshot.
    fn is_snapshot_due(&mut self, events: usize, falls_asleep: bool) -> bool {
        self.since_snapshot += events as u32;
        let is_due = falls_asleep || self.since_snapshot >= EVENTS_PER_SNAPSHOT;
        if is_due {
            self.since_snapshot = 0;
        }
        is_due
    }

    /// Adds a batch. Returns the reply for the writer.
    fn add(&mut self, actions: Vec<PostCommitAction>, channel: &ChannelContext) -> Reply<Committed> {
        let batch = self.number(actions);
        channel.reply(move |result| Some(ChannelMessage::Recorded { batch, result }))
    }

    fn number(&mut self, actions: Vec<PostCommitAction>) -> u64 {
        self.batches += 1;
        self.uncommitted.push_back((self.batches, actions));
        self.batches
    }
}

fn outbox_writes(event: &Event) -> Vec<OutboxWrite> {
    match event {
        Event::ReplyOwed { companion, ticket, trigger, messages, upto, .. } => {
            vec![OutboxWrite::Put(*ticket, OutboxRecord::new(companion.clone(), *trigger, messages.clone(), *upto))]
        }
        Event::Replanned { companion, ticket, next, trigger, messages, upto }
        | Event::ReplyExtended { companion, ticket, next, trigger, messages, upto } => {
            let owed = OutboxRecord::new(companion.clone(), *trigger, messages.clone(), *upto);
            vec![OutboxWrite::Remove(*ticket), OutboxWrite::Put(*next, owed)]
        }
        Event::ReplyFailed { ticket, .. } | Event::Cancelled { ticket: Some(ticket), .. } => vec![OutboxWrite::Remove(*ticket)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_with_a_gap_before_them_were_missed() {
        let mut journal = JournalState::new();
        journal.restore(Seq(7), 0);

        assert_eq!(journal.note_journaled(Seq(8), Seq(9)), Ok(()));
        assert_eq!(journal.note_journaled(Seq(5), Seq(6)), Ok(()), "these were read with the record");
        assert_eq!(journal.note_journaled(Seq(11), Seq(11)), Err(MissedEvents { known: Seq(9), found: Seq(11) }));
        assert_eq!(journal.note_journaled(Seq(10), Seq(11)), Ok(()));
    }

    #[test]
    fn a_committed_batch_gives_the_actions_of_those_before_it_too() {
        let mut journal = JournalState::new();
        let ask = |ticket| vec![PostCommitAction::Ask { tickets: vec![Ticket(ticket)] }];
        let tickets = |actions: Vec<PostCommitAction>| {
            let tickets = |action| match action {
                PostCommitAction::Ask { tickets } => tickets,
                _ => panic!("another action"),
            };
            actions.into_iter().flat_map(tickets).map(|ticket| ticket.0).collect::<Vec<_>>()
        };
        assert!(journal.newest_actions().is_none());
        let (_, second, third) = (journal.number(ask(1)), journal.number(ask(2)), journal.number(ask(3)));
        journal.newest_actions().unwrap().extend(ask(4));

        let committed: Vec<_> = std::iter::from_fn(|| journal.take_committed(second)).map(tickets).collect();

        assert_eq!(committed, [[1], [2]]);
        assert!(!journal.is_committed());
        assert_eq!(journal.take_committed(third).map(tickets), Some(vec![3, 4]));
        assert!(journal.is_committed());
    }

    #[test]
    fn a_snapshot_is_due_after_so_many_events_and_when_the_channel_falls_asleep() {
        let mut journal = JournalState::new();
        journal.restore(Seq(100), 100);
        journal.note_received(20);

        assert!(!journal.is_snapshot_due(7, false));
        assert!(journal.is_snapshot_due(1, false));
        assert!(!journal.is_snapshot_due(127, false));
        assert!(journal.is_snapshot_due(0, true));
        assert!(!journal.is_snapshot_due(1, false));
    }

    #[test]
    fn a_channel_that_is_on_record_as_being_at_rest_is_recorded_so_again_after_the_next_event() {
        let mut journal = JournalState::new();

        assert!(!journal.becomes_quiet(&[], false));
        assert!(journal.becomes_quiet(&[], true));
        journal.is_pending = false;
        assert!(!journal.becomes_quiet(&[], true));
        journal.note_received(1);
        assert!(journal.becomes_quiet(&[], true));
    }
}
