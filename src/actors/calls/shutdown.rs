//! What happens to spoken replies when the server stops in order.

use crate::actors::messages::channel::ChannelMessage;
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::drained;
use crate::domain::conversation::Notice;
use crate::domain::voice::interruption::Input as Heard;
use crate::journal::channel_key::ChannelKey;
use crate::telemetry::plain::Plain;

/// Ends what companions say, before the actors stop: what was heard becomes the statement. A reply of which nothing was heard stays owed.
pub async fn shut_down(context: &ActorContext) {
    for call in context.calls.all() {
        let Some(ticket) = call.reply() else { continue };
        let told = Notice::Reply { ticket, told: Heard::ShutDown };
        context.directory.hand_over(&ChannelActorKey(call.channel().clone()), ChannelMessage::Voice(told));
        let channel_key = ChannelKey::new(&call.channel_ref().guild, call.channel());
        if let Err(error) = drained(context, &channel_key).await {
            tracing::warn!(channel = %Plain(call.channel().as_str()), %error, "how far a spoken reply was heard is not on record");
        }
    }
}
