//! Finds the message for which a channel dies when it goes on from its record.
//!
//! A message that kills while it is handled is in flight. What goes on from a record goes on from everything in it that is still open, so
//! nothing is. Whoever comes after a channel that died there goes on in its mind first, with one message more each time: the one with which
//! that kills is in flight then, and is counted, and becomes a dead letter, like any other. Of two that kill only together the later one is: without it the
//! earlier does no harm.
//!
//! Over what a companion hangs that makes words of it, a question or a reply, is found the same way: the channel words it in its place.

use std::collections::BTreeSet;

use super::State;
use crate::domain::conversation::{Conversation, World};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::Message;
use crate::domain::moment::Moment;
use crate::domain::prompt::{self, Character, DecisionParts};
use crate::domain::trigger::Trigger;
use crate::domain::window;
use crate::journal::reader::Restored;

/// The newest of so many messages is looked for: more are hardly ever open, and all of it happens at a stroke.
const SUSPECTS: usize = 256;

impl State {
    /// Goes on from this record with one message more each time. Nothing comes of it, unless one of them kills.
    pub(super) fn try_one_by_one(&mut self, restored: &Restored) {
        let Restored { snapshot, events, skip, .. } = restored;
        let is_suspect = |recorded: &&Recorded| matches!(recorded.event, Event::Said { .. }) && !skip.contains(&recorded.seq);
        let mut suspects: Vec<Seq> = events.iter().rev().filter(is_suspect).take(SUSPECTS).map(|recorded| recorded.seq).collect();
        suspects.reverse();
        let Some(first) = suspects.first().and_then(|first| events.iter().position(|recorded| recorded.seq == *first)) else {
            return;
        };
        let mut before = snapshot.as_ref().map(|snapshot| snapshot.conversation.clone()).unwrap_or_default();
        self.with_world(|_, _, world| fold_all(&mut before, &events[..first], skip, world));
        let mut skip: BTreeSet<Seq> = skip.union(&suspects.iter().copied().collect()).copied().collect();
        // What kills without any of them is in the record before them, and none of theirs.
        self.with_world(|_, now, world| go_on_in_mind(before.clone(), now, &events[first..], &skip, world));
        for suspect in suspects {
            skip.remove(&suspect);
            self.in_flight.mark(suspect);
            self.with_world(|_, now, world| go_on_in_mind(before.clone(), now, &events[first..], &skip, world));
        }
        self.in_flight.clear();
    }

    /// Words what a prompt may show, with one message more each time, as a companion would.
    pub(super) fn try_words(&mut self) {
        let nobody = CompanionId::from("");
        let character = Character { id: &nobody, name: "", persona: "", chattiness: "", tier: "" };
        let entries: Vec<&window::Entry> = self.conversation.window().entries().collect();
        let messages: Vec<&Message> = entries.iter().map(|entry| &*entry.message).collect();
        for (at, entry) in entries.iter().enumerate() {
            self.in_flight.mark(entry.seq);
            let parts = DecisionParts {
                character,
                trigger: Trigger::Lull,
                message_count: 0,
                speaker: Some(&entry.message.from.name),
                summary: None,
                recent: &[],
                buffer: &messages[..=at],
                notes: &[],
            };
            drop(prompt::decision(&parts, &self.context.settings.prompt));
        }
        self.in_flight.clear();
        self.in_flight.end_prompt_search();
    }
}

fn go_on_in_mind(mut conversation: Conversation, now: Moment, events: &[Recorded], skip: &BTreeSet<Seq>, world: &mut World<'_>) {
    // What is used up in mind is not used up.
    let mut ledger = world.ledger.clone();
    let mut world = World {
        channel: world.channel,
        rules: world.rules,
        policies: world.policies,
        jitter: &mut *world.jitter,
        turn: &mut *world.turn,
        ledger: &mut ledger,
        summary_after: world.summary_after,
        tokens_per_day: world.tokens_per_day,
        is_unpostable: world.is_unpostable,
    };
    fold_all(&mut conversation, events, skip, &mut world);
    drop(conversation.resume(now, &mut world));
}

fn fold_all(conversation: &mut Conversation, events: &[Recorded], skip: &BTreeSet<Seq>, world: &mut World<'_>) {
    for recorded in events {
        if skip.contains(&recorded.seq) {
            conversation.pass_over(recorded);
        } else {
            conversation.fold(recorded, world);
        }
    }
}
