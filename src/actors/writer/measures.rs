//! The metrics of journaled events. Each event is counted once, after it was committed.
//!
//! Events that are in flight to the store when the writer dies may be stored without being counted. No event is counted twice.

use std::sync::Arc;

use crate::actors::messages::writer::Request;
use crate::domain::decision::Reason;
use crate::domain::event::{Event, Recorded};
use crate::domain::message::Message;
use crate::ports::chat_platform::Platforms;
use crate::telemetry::instruments::{Instruments, NONE, platform_label};

/// Counts a request's events, which are committed.
pub(super) fn committed(request: &Request, events: &[Arc<Recorded>], platforms: &Platforms, instruments: &Instruments) {
    let (Some(channel_key), false) = (request.channel_key(), events.is_empty()) else { return };
    instruments.journal_events.add(events.len() as u64, NONE);
    if let Some(sent_at) = request.sent_at() {
        instruments.append_duration.record(sent_at.elapsed().as_secs_f64(), NONE);
    }
    for recorded in events {
        match &recorded.event {
            Event::Said { message, .. } => {
                instruments.messages.add(1, [platform_label(platforms.name(&channel_key.channel)), role_label(message)]);
                if message.reminder.is_some() {
                    instruments.reminders.add(1, [if message.background { "posted" } else { "due" }]);
                }
            }
            Event::Disclosed(disclosed) if !disclosed.owed.again => {
                instruments.notices.add(disclosed.owed.people.len() as u64, [disclosed.owed.occasion.as_str()]);
            }
            Event::Noted(note) => instruments.notes.add(1, [if note.asked { "asked" } else { "made" }]),
            Event::ReminderSet(_) => instruments.reminders.add(1, ["set"]),
            Event::RemindersCancelled { reminders, erased } => {
                instruments.reminders.add(reminders.len() as u64, [if *erased { "erased" } else { "cancelled" }]);
            }
            Event::NotesTaken(taken) => {
                taken.dropped.iter().for_each(|(why, count)| instruments.notes.add(u64::from(*count), [why.as_str()]));
            }
            Event::Evaluated(evaluated) => instruments.evaluations.add(1, [evaluated.trigger.as_str()]),
            Event::Segment(segment) => {
                instruments.voice_segments.add(1, [segment.kind.as_str()]);
                instruments.voice_segment_delay.record(recorded.at.since(segment.ended).as_secs_f64(), NONE);
            }
            Event::Interrupted { interrupted, .. } => {
                instruments.voice_interruptions.add(1, [interrupted.verdict.as_str()]);
            }
            _ => {}
        }
    }
    if let (Request::HandOver(_), Some(first)) = (request, events.first())
        && let Event::Said { message: Message { speech: Some(speech), .. }, .. } = &first.event
    {
        instruments.voice_hand_overs.add(1, [speech.handed_over.as_str()]);
    }
    // All companions that a round would have asked are refused in one step, so in one request. That counts as one trip.
    if events.iter().any(|recorded| is_loop_guard(&recorded.event)) {
        instruments.loop_guard_trips.add(1, NONE);
    }
}

const fn role_label(message: &Message) -> &'static str {
    if message.is_event() { "event" } else { message.from.role.as_str() }
}

fn is_loop_guard(event: &Event) -> bool {
    matches!(event, Event::Decided(decided) if decided.reason == Reason::LoopGuard)
}
