//! Messages that kill whoever handles them, so that it can be tested what becomes of them.

use std::cell::Cell;

use super::Conversation;
use crate::domain::message::Message;

/// In a text: it kills whoever takes it in, from outside or from the record.
pub(crate) const TAKEN_IN: &str = "poison-taken-in";
/// In a text: it kills whoever goes on while it is unsettled.
pub(crate) const GONE_ON: &str = "poison-gone-on";
/// In a text: it kills whoever is woken while it is unsettled, or goes on from its record.
pub(crate) const WOKEN: &str = "poison-woken";

/// In a text: it kills whoever makes words of it for a model.
pub(crate) const WORDED: &str = "poison-worded";

thread_local! {
    /// Nearly no test has any: nobody else looks for it.
    static IS_ABOUT: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn is_taken_in(message: &Message) {
    if message.text.contains("poison-") {
        IS_ABOUT.set(true);
        die_of(TAKEN_IN, [&*message.text]);
    }
}

pub(crate) fn is_worded(text: &str) {
    if IS_ABOUT.get() {
        die_of(WORDED, [text]);
    }
}

pub(super) fn is_there(kind: &str, conversation: &Conversation) {
    if IS_ABOUT.get() {
        let buffers = conversation.gates.iter().map(|(companion, gate)| conversation.window.buffer(companion, gate.cursor));
        die_of(kind, buffers.flatten().map(|entry| &*entry.message.text));
    }
}

fn die_of<'a>(kind: &str, texts: impl IntoIterator<Item = &'a str>) {
    if texts.into_iter().any(|text| text.contains(kind)) {
        // Without a word on stderr: there are many.
        std::panic::resume_unwind(Box::new(format!("died of {kind}, as the test wants it")));
    }
}
