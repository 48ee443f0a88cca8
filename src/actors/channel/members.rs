//! Journals membership changes (joins, leaves, pauses and their ends), where the conversation differs from the memberships.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use super::channel_context::ChannelContext;
use crate::actors::inbound::Inbound;
use crate::actors::membership::changes;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::runtime::context::ActorContext;
use crate::domain::conversation::Conversation;
use crate::domain::event::Event;
use crate::domain::id::CompanionId;
use crate::telemetry::plain::Plain;

/// The pause before a change that could not be journaled is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Journals the missing changes in a task of its own. They return to the channel as inbound events.
pub(super) fn reconcile(conversation: &Conversation, channel: &ChannelContext) {
    let (memberships, id) = (&channel.context.memberships, &channel.key.channel);
    // A change in progress journals its own events. The channel reconciles again when the change is done.
    let is_changing = memberships.is_changing(id);
    let Some(membership) = memberships.get(id).filter(|_| !is_changing) else { return };
    if memberships.outdated(id).is_some() {
        follow_parent(channel);
        return;
    }
    // A companion that is no longer configured could be asked, but its statements would never be posted.
    let events = missing_events(conversation, &memberships.present(id), |companion| membership.is_paused(companion));
    if events.is_empty() {
        return;
    }
    let inbound = Inbound::new(ActorContext::clone(&channel.context));
    let channel = channel.clone();
    let change = memberships.begin_change(id);
    tokio::spawn(async move {
        for event in events {
            if let Err(error) = inbound.accept(&channel.key, event, None).await {
                drop(change);
                return reconcile_later(&channel, &error);
            }
        }
        drop(change);
        // Changes during this task were skipped, so the channel reconciles again. A channel that has stopped does so when it restarts.
        let _ = channel.actor.cast(ChannelMessage::MembershipChanged);
    });
}

/// The events that give the conversation these members. `present` maps each companion to whether it is external.
fn missing_events(
    conversation: &Conversation,
    present: &BTreeMap<CompanionId, bool>,
    is_paused: impl Fn(&CompanionId) -> bool,
) -> Vec<Event> {
    let mut events = Vec::new();
    // Leaves come first, to make room.
    for view in conversation.companions().filter(|view| !present.contains_key(view.companion)) {
        events.push(Event::Left { companion: view.companion.clone() });
    }
    for (companion, external) in present {
        let paused = is_paused(companion);
        let gate = conversation.gate(companion);
        if gate.is_none_or(|gate| gate.external != *external) {
            events.push(Event::Joined { companion: companion.clone(), external: *external });
        }
        if gate.is_some_and(|gate| gate.paused) != paused {
            events.push(Event::Paused { companion: Some(companion.clone()), paused });
        }
    }
    events
}

/// Applies the membership changes of the parent channel to this thread. They are journaled and stored together, so that the next change is compared
/// with the journaled members. `changes::update_thread` notifies the channel when it is done.
fn follow_parent(channel: &ChannelContext) {
    let channel = channel.clone();
    tokio::spawn(async move {
        if let Err(error) = changes::update_thread(&channel.context, &channel.key.channel).await {
            reconcile_later(&channel, &error);
        }
    });
}

/// Logs the error and schedules another reconciliation. A writer that is being restarted is available soon, and nothing else makes the channel
/// reconcile again while it runs.
fn reconcile_later(channel: &ChannelContext, error: &dyn Display) {
    tracing::warn!(channel = %Plain(channel.key.channel.as_str()), %error, "the channel's members could not be journaled; this is tried again");
    // A channel that has stopped reconciles when it restarts.
    drop(channel.actor.send_after(RETRY_PAUSE, || ChannelMessage::MembershipChanged));
}

#[cfg(test)]
mod tests {
    use super::super::tests::{channel_context, conversation_after};
    use super::*;

    #[tokio::test]
    async fn the_conversation_gets_the_members_that_it_lacks_and_loses_the_others_first() {
        let joined = |companion: &str, external| Event::Joined { companion: companion.into(), external };
        let paused = |companion: &str, paused| Event::Paused { companion: Some(companion.into()), paused };
        let (channel, _received) = channel_context().await;
        let [aria, ben, cleo, zed] = ["aria", "ben", "cleo", "zed"].map(|companion| joined(companion, false));
        let conversation = conversation_after(&channel, [aria, ben, paused("ben", true), cleo, zed]);
        let present = BTreeMap::from([("aria", false), ("ben", false), ("dora", false), ("zed", true)]);
        let present = present.into_iter().map(|(companion, external)| (companion.into(), external)).collect();

        let events = missing_events(&conversation, &present, |companion| companion.as_str() == "aria");

        let left = Event::Left { companion: "cleo".into() };
        assert_eq!(events, [left, paused("aria", true), paused("ben", false), joined("dora", false), joined("zed", true)]);
    }
}
