//! Acknowledges on a channel's platform that a message stopped a statement in progress (docs/design/speaking.md S-15).

use super::channel_context::ChannelContext;
use crate::domain::id::Seq;
use crate::journal::reader::Reader;

pub(super) fn acknowledge(message: Seq, channel: &ChannelContext) {
    let Some(platform) = channel.platform() else { return };
    let channel = channel.clone();
    tokio::spawn(async move {
        // The conversation may not have handled the message yet.
        let message = Reader::new(&*channel.context.store).said(&channel.key, message).await.ok().flatten();
        if let Some(id) = message.and_then(|message| message.id) {
            platform.acknowledge_stop(&channel.key.channel, &id).await;
        }
    });
}
