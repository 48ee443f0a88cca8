//! Notes for the watchers of a channel about things that are not on record: timers, counters, dropped replies.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::State;
use super::post_commit::PostCommitAction;
use crate::actors::runtime::hub::Live;
use crate::domain::conversation::Output;
use crate::domain::id::{CompanionId, Ticket};
use crate::ports::backend::stamp::rfc3339;

/// The counters that were published last, by companion: messages, checks, and the count for the next interjection.
#[derive(Default)]
pub(super) struct Shown(BTreeMap<CompanionId, (u64, u64, Option<u64>)>);

impl State {
    pub(super) fn show_note(&self, output: &Output) {
        if !self.context.hub.is_watched(&self.channel_key) {
            return;
        }
        match output {
            Output::LullArmed { companion, lull_at } => {
                self.show("lull_armed", companion, json!({ "lull_at": rfc3339(*lull_at) }));
            }
            Output::LullCancelled { companion } => self.show("lull_cancelled", companion, json!({})),
            _ => {}
        }
    }

    /// Shows that a wish to speak, a turn or a reply was dropped. The note comes after the events that announced it.
    pub(super) fn show_dropped(&mut self, companion: CompanionId, ticket: Option<Ticket>) {
        let action = PostCommitAction::ShowDropped { companion, ticket };
        match self.post_commit_actions.back_mut() {
            Some((_, actions)) => actions.push(action),
            None => self.run(action),
        }
    }

    pub(super) fn note_dropped(&self, companion: &CompanionId, ticket: Option<Ticket>) {
        if self.context.hub.is_watched(&self.channel_key) {
            self.show("dropped", companion, json!({ "ticket": ticket }));
        }
    }

    pub(super) fn show_counters(&mut self) {
        if !self.context.hub.is_watched(&self.channel_key) {
            return;
        }
        let mut shown = std::mem::take(&mut self.shown);
        for view in self.conversation.companions() {
            let gate = view.gate;
            let counters = (gate.message_counter, gate.check_count, gate.next_interjection_at);
            if shown.0.insert(view.companion.clone(), counters) != Some(counters) {
                let note = json!({
                    "message_count": counters.0,
                    "check_count": counters.1,
                    "next_interjection_at": counters.2,
                });
                self.show("counters", view.companion, note);
            }
        }
        self.shown = shown;
    }

    fn show(&self, event: &str, companion: &CompanionId, mut note: Value) {
        note["event"] = event.into();
        note["at"] = rfc3339(self.context.clock.now()).into();
        note["channel"] = self.channel_key.channel.as_str().into();
        note["companion"] = companion.as_str().into();
        self.context.hub.publish(&self.channel_key, Live::Note(note.to_string().into()));
    }
}
