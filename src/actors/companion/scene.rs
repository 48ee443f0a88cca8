//! The scene of a question: its place, its time and the companions present, as prompts describe it.

use std::sync::Arc;

use crate::actors::runtime::context::ActorContext;
use crate::domain::id::CompanionId;
use crate::domain::prompt::{Other, Place, Scene};
use crate::journal::channel_key::ChannelKey;

/// The scene in which these companions are asked.
pub(super) fn scene(context: &ActorContext, channel_key: &ChannelKey, asked: &[&CompanionId], is_call: bool) -> Scene {
    let ChannelKey { guild, channel, .. } = channel_key;
    let usual = &context.settings.companion_defaults.chattiness;
    let present = context.memberships.present(channel).into_keys().filter(|companion| !asked.contains(&companion));
    let others = present.filter_map(|companion| context.memberships.companion(channel, &companion));
    // The default chattiness is not specific to a companion.
    let about = |chattiness: Arc<str>| Some(chattiness).filter(|chattiness| chattiness != usual);
    let others = others.map(|other| Other { name: other.name, chattiness: about(other.chattiness) }).collect();
    let title = context.memberships.get(channel).and_then(|membership| context.title_of(channel, &membership));
    let topic = context.platforms.of(channel).and_then(|platform| platform.topic(channel)).map(Arc::from);
    let place = title.map(|title| Place { title, topic });
    let former = context.guests.read(|guests| guests.former(channel, context.clock.now()));
    let mut described = context.memberships.described(channel);
    described.retain(|person, _| !former.contains(person.as_shared()));
    let zone = context.in_force().prompt.zone_of(guild).clone();
    Scene {
        now: context.clock.now(),
        zone,
        others,
        is_call,
        place,
        has_minors: context.memberships.has_minors(channel),
        words: context.words_of(channel),
        described,
    }
}
