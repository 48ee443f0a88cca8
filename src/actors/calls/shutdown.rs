//! Ends spoken replies during an orderly shutdown.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::call::SharedCall;
use crate::actors::messages::channel::{ChannelMessage, Received};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::{drained, look};
use crate::domain::conversation::Notice;
use crate::domain::id::Ticket;
use crate::domain::voice::interruption;
use crate::journal::channel_key::ChannelKey;
use crate::telemetry::plain::Plain;

/// How long to wait for the platforms to post the unheard rest of replies. The remainder is posted after the next start.
const POSTED_WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ends all spoken replies before the actors stop. The unheard rest of a reply is posted as text. A reply that was not heard at all stays owed.
pub async fn shut_down(context: &ActorContext) {
    let mut ended = Vec::new();
    for call in context.calls.all() {
        let Some(ticket) = call.read(|call| call.reply()) else { continue };
        let told = Notice::Reply { ticket, told: interruption::Input::ShutDown };
        context.directory.hand_over(&ChannelActorKey(call.channel().clone()), ChannelMessage::Received(Received::Voice(told)));
        ended.push((call, ticket));
    }
    let deadline = Instant::now() + POSTED_WITHIN;
    for (call, ticket) in ended {
        let channel_key = ChannelKey::new(&call.channel_ref().guild, call.channel());
        if let Err(error) = drained(context, &channel_key).await {
            tracing::warn!(channel = %Plain(call.channel().as_str()), %error, "how far a spoken reply was heard is not on record");
        }
        while is_being_posted(context, &call, ticket).await && Instant::now() < deadline {
            sleep(LOOK_EVERY).await;
        }
    }
}

async fn is_being_posted(context: &ActorContext, call: &SharedCall, ticket: Ticket) -> bool {
    let look = look(context, call.channel()).await;
    look.is_some_and(|look| look.conversation.turns().owed_reply(ticket).is_some_and(|floor| floor.is_posting))
}
