//! Finds the message that kills a channel when it resumes from its record.
//!
//! A message that kills its handler is in flight, so it is known. A channel that resumes continues everything that is open in its record, so no
//! single message is in flight. After such a death the successor first does a dry run: it resumes copies of the conversation, with one message
//! more each time. A message that kills the dry run is in flight, is counted, and becomes a dead letter like any other. Of two messages that
//! kill only together, the later one becomes the dead letter: without it the earlier one does no harm.
//!
//! A message that makes a companion hang while it builds a prompt is found the same way: the channel builds the prompts in the companion's place.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;

use super::channel_context::ChannelContext;
use super::folded::fold_all;
use super::world::ChannelWorld;
use crate::actors::runtime::in_flight::InFlight;
use crate::domain::closing::Stage;
use crate::domain::conversation::{Conversation, World};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::moment::Moment;
use crate::domain::prompt::{self, Character, DecisionParts, Said, Scene};
use crate::domain::trigger::Trigger;
use crate::domain::window;
use crate::journal::reader::Restored;
use crate::settings::prompt::Prompt as Templates;

/// How many of the newest messages are tried. More are hardly ever open, and the dry run blocks the channel while it runs.
const MAX_SUSPECTS: usize = 256;

/// Resumes copies of this record, with one message more each time. It has no effect, unless one of the messages kills.
pub(super) fn resume(restored: &Restored, in_flight: &InFlight, now: Moment, world: &mut ChannelWorld, channel: &ChannelContext) {
    let Restored { snapshot, events, skip, .. } = restored;
    let is_suspect = |recorded: &&Recorded| matches!(recorded.event, Event::Said { .. }) && !skip.contains(&recorded.seq);
    let mut suspects: Vec<Seq> = events.iter().rev().filter(is_suspect).take(MAX_SUSPECTS).map(|recorded| recorded.seq).collect();
    suspects.reverse();
    let Some(first) = suspects.first().and_then(|first| events.iter().position(|recorded| recorded.seq == *first)) else {
        return;
    };
    let mut before = snapshot.as_ref().map(|snapshot| snapshot.conversation.clone()).unwrap_or_default();
    world.with(channel, |world| fold_all(&mut before, &events[..first], skip, world));
    let mut skip: BTreeSet<Seq> = skip.union(&suspects.iter().copied().collect()).copied().collect();
    // First without any of the suspects. A death here is caused by the record before them.
    world.with(channel, |world| resume_copy(before.clone(), now, &events[first..], &skip, world));
    for suspect in suspects {
        skip.remove(&suspect);
        in_flight.mark(suspect);
        world.with(channel, |world| resume_copy(before.clone(), now, &events[first..], &skip, world));
    }
    in_flight.clear();
}

/// Builds prompts as a companion would, with one message of the window more each time.
pub(super) fn build_prompts(conversation: &Conversation, in_flight: &InFlight, templates: &Templates) {
    let no_companion = CompanionId::from("");
    let character = Character { id: &no_companion, name: "", persona: "", brief: None, chattiness: "", tier: "", tone: "" };
    let entries: Vec<&window::Entry> = conversation.window().entries().collect();
    let messages: Vec<Said> = entries.iter().map(|entry| entry.said()).collect();
    let scene = Scene { now: Moment::ZERO, zone: TimeZone::UTC, others: Vec::new(), is_call: false };
    for (at, entry) in entries.iter().enumerate() {
        in_flight.mark(entry.seq);
        let parts = DecisionParts {
            character,
            scene: &scene,
            trigger: Trigger::Lull,
            stage: Stage::None,
            message_count: 0,
            minutes: 0,
            speaker: Some(&entry.message.from.name),
            summary: None,
            recent: &[],
            buffer: &messages[..=at],
            is_repetitive: false,
        };
        drop(prompt::vote(&parts, templates));
    }
    in_flight.clear();
    in_flight.end_prompt_search();
}

fn resume_copy(mut conversation: Conversation, now: Moment, events: &[Recorded], skip: &BTreeSet<Seq>, world: &mut World<'_>) {
    // A dry run must not use up budgets.
    let mut ledger = world.ledger.clone();
    let mut world = World {
        channel: world.channel,
        rules: world.rules,
        policies: world.policies,
        jitter: &mut *world.jitter,
        roll: &mut *world.roll,
        turn: &mut *world.turn,
        ledger: &mut ledger,
        summary: world.summary,
        tokens_per_day: world.tokens_per_day,
        is_unpostable: world.is_unpostable,
    };
    fold_all(&mut conversation, events, skip, &mut world);
    drop(conversation.resume(now, &mut world));
}
