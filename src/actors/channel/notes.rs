//! Notes for the watchers of a channel about state that is not journaled: timers, counters, dropped replies.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::channel_context::ChannelContext;
use crate::actors::runtime::hub::Live;
use crate::domain::conversation::{Conversation, Output};
use crate::domain::id::{CompanionId, Ticket};
use crate::ports::backend::stamp::rfc3339;

/// The state that the watchers of a channel have received.
#[derive(Default)]
pub(super) struct Notes {
    /// The counters that were published last, by companion: messages, checks, and the count for the next interjection.
    counters: BTreeMap<CompanionId, (u64, u64, Option<u64>)>,
}

impl Notes {
    /// Shows the counters that have changed.
    pub(super) fn show_counters(&mut self, conversation: &Conversation, channel: &ChannelContext) {
        if !is_watched(channel) {
            return;
        }
        for view in conversation.companions() {
            let gate = view.gate;
            let counters = (gate.message_counter, gate.check_count, gate.next_interjection_at);
            if self.counters.insert(view.companion.clone(), counters) != Some(counters) {
                let note = json!({
                    "message_count": counters.0,
                    "check_count": counters.1,
                    "next_interjection_at": counters.2,
                });
                show("counters", view.companion, note, channel);
            }
        }
    }
}

/// Shows a timer that was set or cancelled.
pub(super) fn show_timer(output: &Output, channel: &ChannelContext) {
    if !is_watched(channel) {
        return;
    }
    match output {
        Output::LullArmed { companion, lull_at } => {
            show("lull_armed", companion, json!({ "lull_at": rfc3339(*lull_at) }), channel);
        }
        Output::LullCancelled { companion } => show("lull_cancelled", companion, json!({}), channel),
        _ => {}
    }
}

/// Shows that a wish to speak, a turn or a reply was dropped.
pub(super) fn show_dropped(companion: &CompanionId, ticket: Option<Ticket>, channel: &ChannelContext) {
    if is_watched(channel) {
        show("dropped", companion, json!({ "ticket": ticket }), channel);
    }
}

fn is_watched(channel: &ChannelContext) -> bool {
    channel.context.hub.is_watched(&channel.key)
}

fn show(event: &str, companion: &CompanionId, mut note: Value, channel: &ChannelContext) {
    note["event"] = event.into();
    note["at"] = rfc3339(channel.machine_time()).into();
    note["channel"] = channel.key.channel.as_str().into();
    note["companion"] = companion.as_str().into();
    channel.context.hub.publish(&channel.key, Live::Note(note.to_string().into()));
}
