//! Where and when a companion is asked, as its prompts tell it.

use crate::actors::runtime::context::ActorContext;
use crate::domain::id::CompanionId;
use crate::domain::prompt::{Other, Scene};
use crate::journal::channel_key::ChannelKey;

/// The scene in which these companions are asked.
pub(super) fn scene(context: &ActorContext, channel_key: &ChannelKey, asked: &[&CompanionId], is_call: bool) -> Scene {
    let ChannelKey { guild, channel, .. } = channel_key;
    let usual = &context.settings.companion_defaults.chattiness;
    let present = context.memberships.present(channel).into_keys().filter(|companion| !asked.contains(&companion));
    let others = present.filter_map(|companion| context.memberships.companion(channel, &companion));
    // What all companions have by default says nothing of one.
    let about = |chattiness: std::sync::Arc<str>| Some(chattiness).filter(|chattiness| chattiness != usual);
    let others = others.map(|other| Other { name: other.name, chattiness: about(other.chattiness) }).collect();
    Scene { now: context.clock.now(), zone: context.settings.prompt.zone_of(guild).clone(), others, is_call }
}
