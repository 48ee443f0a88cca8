//! Messages that kill the actor that handles them, for tests of dead letters.

use std::cell::Cell;

use super::Conversation;
use crate::message::Message;

/// A text that kills the actor when it applies the message, as an inbound event or from the journal.
pub const TAKEN_IN: &str = "poison-taken-in";
/// A text that kills the actor when the conversation advances while the message is unsettled.
pub const GONE_ON: &str = "poison-gone-on";
/// A text that makes the building of a prompt with the message panic.
pub const WORDED: &str = "poison-worded";

thread_local! {
    /// Whether this thread has seen a poisoned message. Few tests use any, so the others skip the search.
    static HAS_POISON: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn check_applied(message: &Message) {
    if message.text.contains("poison-") {
        HAS_POISON.set(true);
        panic_on(TAKEN_IN, [&*message.text]);
    }
}

pub(crate) fn check_prompt_text(text: &str) {
    if HAS_POISON.get() {
        panic_on(WORDED, [text]);
    }
}

pub(super) fn check_unsettled(conversation: &Conversation) {
    if HAS_POISON.get() {
        let buffers = conversation.gates.iter().map(|(companion, gate)| conversation.window.buffer(companion, gate.cursor));
        panic_on(GONE_ON, buffers.flatten().map(|entry| &*entry.message.text));
    }
}

fn panic_on<'a>(kind: &str, texts: impl IntoIterator<Item = &'a str>) {
    if texts.into_iter().any(|text| text.contains(kind)) {
        // Prints nothing on stderr, because there are many.
        std::panic::resume_unwind(Box::new(format!("killed by {kind}, as the test intends")));
    }
}
