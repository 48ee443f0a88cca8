//! Shows the growing draft of a reply to the watchers of its channel (docs/design/speaking.md S-4).

use std::sync::Arc;

use serde_json::json;

use super::reply::Arguments;
use crate::actors::runtime::hub::{Hub, Live};
use crate::domain::id::{CompanionId, Ticket};
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::clock::Clock;

/// A draft, and how much of it was published.
pub(super) struct DraftView {
    hub: Hub,
    clock: Arc<dyn Clock>,
    channel_key: ChannelKey,
    companion: CompanionId,
    ticket: Ticket,
    text: String,
    /// The number of published bytes of the text, and the number of the newest watcher at that time. `None`: the whole text must be published.
    published: Option<(usize, u64)>,
}

impl DraftView {
    /// An empty draft.
    pub(super) fn new(reply: &Arguments) -> Self {
        Self {
            hub: reply.context.hub.clone(),
            clock: reply.context.clock.clone(),
            channel_key: reply.channel_key.clone(),
            companion: reply.companion.clone(),
            ticket: reply.ticket,
            text: String::new(),
            published: None,
        }
    }

    /// Appends text.
    pub(super) fn push(&mut self, more: &str) {
        self.text.push_str(more);
    }

    /// Clears the text, because the answer starts again.
    pub(super) fn restart(&mut self) {
        self.text.clear();
        self.published = None;
    }

    /// Publishes the new text. If a watcher has joined since the last call, publishes the whole text to all watchers.
    pub(super) fn show(&mut self) {
        let Some(newest) = self.hub.newest_watcher(&self.channel_key) else {
            self.published = None;
            return;
        };
        let published = self.published.filter(|(_, known)| *known == newest).map(|(published, _)| published);
        if published == Some(self.text.len()) || self.text.is_empty() {
            return;
        }
        let draft = json!({
            "event": "draft",
            "at": rfc3339(self.clock.now()),
            "channel": self.channel_key.channel,
            "companion": self.companion,
            "ticket": self.ticket,
            "whole": published.is_none(),
            "text": &self.text[published.unwrap_or(0)..],
        });
        self.hub.publish(&self.channel_key, Live::Note(draft.to_string().into()));
        self.published = Some((self.text.len(), newest));
    }
}

#[cfg(test)]
mod tests {
    use crate::samples::lobby;
    use serde_json::Value;

    use super::*;
    use crate::actors::runtime::hub::Watcher;
    use crate::adapters::system::SystemClock;

    fn shown(hub: &Hub, channel_key: &ChannelKey) -> DraftView {
        let (hub, channel_key) = (hub.clone(), channel_key.clone());
        DraftView {
            hub,
            clock: Arc::new(SystemClock),
            channel_key,
            companion: "aria".into(),
            ticket: Ticket(3),
            text: String::new(),
            published: None,
        }
    }

    async fn next(watcher: &mut Watcher) -> (bool, String) {
        let (_, Live::Note(json)) = watcher.next().await.unwrap() else { panic!("a draft is published as a note") };
        let note: Value = serde_json::from_str(&json).unwrap();
        (note["whole"].as_bool().unwrap(), note["text"].as_str().unwrap().to_owned())
    }

    fn add_and_show(shown: &mut DraftView, more: &str) {
        shown.push(more);
        shown.show();
    }

    #[tokio::test]
    async fn watchers_get_new_text_and_those_who_join_later_get_the_whole() {
        let (hub, channel_key) = (Hub::new(), lobby());
        let mut first = hub.watch(Some(&channel_key));
        let mut shown = shown(&hub, &channel_key);

        add_and_show(&mut shown, "Once");
        add_and_show(&mut shown, " upön");
        let mut second = hub.watch(Some(&channel_key));
        add_and_show(&mut shown, " a");
        add_and_show(&mut shown, " time");
        shown.restart();
        add_and_show(&mut shown, "No");

        for (whole, text) in [(true, "Once"), (false, " upön")] {
            assert_eq!(next(&mut first).await, (whole, text.to_owned()));
        }
        for (whole, text) in [(true, "Once upön a"), (false, " time"), (true, "No")] {
            assert_eq!(next(&mut first).await, (whole, text.to_owned()));
            assert_eq!(next(&mut second).await, (whole, text.to_owned()));
        }
    }

    #[tokio::test]
    async fn a_watcher_who_comes_after_nobody_watched_gets_the_whole_draft() {
        let (hub, channel_key) = (Hub::new(), lobby());
        let mut shown = shown(&hub, &channel_key);
        let first = hub.watch(Some(&channel_key));
        add_and_show(&mut shown, "Once");
        drop(first);

        let mut second = hub.watch(Some(&channel_key));
        add_and_show(&mut shown, " more");

        assert_eq!(next(&mut second).await, (true, "Once more".to_owned()));
    }
}
