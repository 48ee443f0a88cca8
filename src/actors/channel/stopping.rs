//! Acknowledges on a channel's platform that a message stopped a statement in progress (docs/design/speaking.md S-15).

use super::channel_context::ChannelContext;
use crate::domain::event::Event;
use crate::domain::id::Seq;
use crate::journal::reader::Reader;

pub(super) fn acknowledge(message: Seq, channel: &ChannelContext) {
    let Some(platform) = channel.platform() else { return };
    let channel = channel.clone();
    tokio::spawn(async move {
        // The conversation may not have handled the message yet.
        let recorded = Reader::new(&*channel.context.store).event(&channel.key, message).await.ok().flatten();
        if let Some(Event::Said { message, .. }) = recorded.map(|recorded| recorded.event)
            && let Some(id) = message.id
        {
            platform.acknowledge_stop(&channel.key.channel, &id).await;
        }
    });
}
