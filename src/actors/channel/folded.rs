//! Folds a channel's journal into a conversation.

use crate::actors::runtime::context::ActorContext;
use crate::domain::budget::Ledger;
use crate::domain::conversation::{Conversation, NoteRules, World};
use crate::domain::id::{PersonId, TurnId};
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::Restored;

/// The conversation of a channel after it has read this journal, before it resumes. Uses up no budgets and has no effects.
pub fn folded(context: &ActorContext, channel_key: &ChannelKey, restored: Restored) -> Conversation {
    let mut conversation = restored.snapshot.map(|snapshot| snapshot.conversation).unwrap_or_default();
    let policies = context.memberships.policies(&channel_key.channel);
    let (mut ledger, settings) = (Ledger::default(), context.in_force());
    let allows = |person: &PersonId| context.may_be_noted(&channel_key.guild, person);
    let notes = NoteRules { after: settings.memory.notes_after, allows: &allows };
    let mut world = World {
        channel: &channel_key.channel,
        rules: settings.rules(&channel_key.guild, context.memberships.language(&channel_key.channel).as_deref()),
        policies: &policies,
        jitter: &mut || context.rng.jitter(),
        roll: &mut || Some(context.rng.fraction()),
        turn: &mut || TurnId(context.rng.id()),
        ledger: &mut ledger,
        summary: None,
        notes: context.takes_notes(channel_key).then_some(notes),
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
