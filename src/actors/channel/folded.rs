//! A conversation as its record says, for whoever is not its channel.

use crate::actors::runtime::context::ActorContext;
use crate::domain::budget::Ledger;
use crate::domain::conversation::{Conversation, Rules, World};
use crate::domain::id::TurnId;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::Restored;

/// What a channel has in mind when it has read this, before it goes on. Nothing is used up by it, and nothing follows.
pub fn folded(context: &ActorContext, channel_key: &ChannelKey, restored: Restored) -> Conversation {
    let mut conversation = restored.snapshot.map(|snapshot| snapshot.conversation).unwrap_or_default();
    let policies = context.memberships.policies(&channel_key.channel);
    let mut ledger = Ledger::default();
    let mut world = World {
        channel: &channel_key.channel,
        rules: Rules::from(&*context.settings),
        policies: &policies,
        jitter: &mut || context.rng.jitter(),
        turn: &mut || TurnId(context.rng.id()),
        ledger: &mut ledger,
        summary_after: None,
        tokens_per_day: None,
        is_unpostable: false,
    };
    for recorded in &restored.events {
        if restored.skip.contains(&recorded.seq) {
            conversation.skip(recorded);
        } else {
            conversation.fold(recorded, &mut world);
        }
    }
    conversation
}
