//! Changes the membership of a channel: stores it, applies it, journals it and notifies the guild. Also turns a thread or a
//! direct message into a room.
//!
//! A thread or a forum post inherits the membership of its parent channel until the thread's own membership is changed. A change
//! of the parent applies to the thread at once. It is journaled in the thread at once if the thread is running, otherwise when
//! the thread is woken or before its next message.

use std::time::Duration;

use crate::actors::inbound::Inbound;
use crate::actors::membership::guests;
use crate::actors::membership::memberships::MembershipLock;
use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::guilds::GuildsMessage;
use crate::actors::messages::writer;
use crate::actors::messages::writer::{DeleteChannel, Request, WriteError};
use crate::actors::runtime::actor_keys::{ChannelActorKey, GuildKey, GuildsKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::hub::Live;
use crate::actors::writer::requests::{ask, fence, write_meta, writer_ref};
use crate::domain::event::Event;
use crate::domain::id::{ChannelId, CompanionId, GuildId, Ward};
use crate::domain::moment::Moment;
use crate::domain::names::SharedName;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::membership::{self, Membership};
use crate::journal::record::{RoomRecord, encode};
use crate::ports::inbound_events::ChannelRef;
use crate::ports::store::Write;
use crate::telemetry::plain::Plain;

/// How long the deletion of a room can be undone.
pub const UNDO: Duration = Duration::from_secs(60);

/// The longest delay of a pending deletion after a start, whatever the clock says. Also the pause between two attempts of a
/// failed deletion.
const PAUSE: Duration = Duration::from_secs(10);

/// How many times the deletion of a room is attempted while the store fails.
const DELETION_ATTEMPTS: u32 = 60;

/// Why a membership could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// Two companions of the guild would share a name. Nothing changed.
    #[error("{0}; two companions of one guild cannot share a name")]
    SharedName(#[from] SharedName),
    /// The membership was not stored, or it is unknown whether it was.
    #[error("the membership of the channel cannot be stored: {0}")]
    Metadata(#[from] WriteError),
    /// The change could not be journaled. It is in effect nevertheless, and the channel journals it later.
    #[error("the change of the channel's membership cannot be put on record: {0}")]
    Journal(#[from] writer::Refused),
}

/// Stores a membership, applies it, and notifies the channel and the threads that inherit from it.
pub async fn update_membership(
    context: &ActorContext,
    lock: &MembershipLock,
    channel: &ChannelId,
    membership: Membership,
) -> Result<(), MembershipError> {
    let (context, channel) = (context.clone(), channel.clone());
    run_to_completion(lock, async move { change(&context, &channel, membership).await }).await
}

/// Hides a room and stores that it is deleted. The room and its history are removed after [`UNDO`]. Returns the time of the
/// removal.
///
/// # Errors
/// [`MembershipError::Metadata`]: nothing is deleted, and the room is unchanged.
pub async fn begin_deletion(
    context: &ActorContext,
    lock: &MembershipLock,
    channel: &ChannelId,
    membership: Membership,
) -> Result<Moment, MembershipError> {
    let (context, channel) = (context.clone(), channel.clone());
    run_to_completion(lock, async move {
        // Fails now if the journal could not be deleted later.
        fence(&context, &ChannelKey::new(&membership.guild, &channel)).await?;
        let at = context.clock.now() + UNDO;
        hide_or_show(&context, &channel, Membership { deleted_at: Some(at), ..membership }).await?;
        delete_later(&context, &channel, at, UNDO);
        Ok(at)
    })
    .await
}

/// Restores a room whose deletion is pending. The room continues from its journal.
///
/// # Errors
/// [`MembershipError::Metadata`]: the deletion is still pending.
pub async fn undo_deletion(
    context: &ActorContext,
    lock: &MembershipLock,
    channel: &ChannelId,
    membership: Membership,
) -> Result<(), MembershipError> {
    let (context, channel) = (context.clone(), channel.clone());
    run_to_completion(lock, async move { hide_or_show(&context, &channel, Membership { deleted_at: None, ..membership }).await })
        .await
}

/// Stores a membership, and hides or shows the room according to its `deleted_at`. Threads keep their members until the room is
/// removed.
async fn hide_or_show(context: &ActorContext, channel: &ChannelId, membership: Membership) -> Result<(), MembershipError> {
    let channel_key = ChannelKey::new(&membership.guild, channel);
    let put =
        |membership| write_meta(context, channel_key.ward(), vec![Write::Put(membership::key(&channel_key), encode(membership))]);
    if let Err(error) = put(&membership).await {
        let before = context.memberships.recorded(channel);
        let is_as_before = match &before {
            Some(before) => put(before).await.is_ok(),
            None => false,
        };
        // The store may contain the deletion. So the room is hidden in memory as well; it can be restored from there.
        if is_as_before || membership.deleted_at.is_none() {
            return Err(error.into());
        }
    }
    let is_hidden = membership.deleted_at.is_some();
    context.memberships.put(channel, membership)?;
    if is_hidden {
        close(context, &channel_key);
    } else {
        notify_guild(context, &channel_key.guild, channel);
    }
    Ok(())
}

/// Deletes a room at the time `at`, or after `most` if that is earlier, unless the deletion is undone before.
pub fn delete_later(context: &ActorContext, channel: &ChannelId, at: Moment, most: Duration) {
    let (context, channel) = (context.clone(), channel.clone());
    tokio::spawn(async move {
        // The clock may have been set in the meantime.
        tokio::time::sleep(at.since(context.clock.now()).min(most)).await;
        for attempt in 1..=DELETION_ATTEMPTS {
            let lock = context.memberships.lock().await;
            if context.memberships.deleted_at(&channel) != Some(at) {
                return;
            }
            let room = Plain(channel.as_str());
            let Err(error) = delete_room(&context, &lock, &channel).await else {
                return tracing::info!(%room, "a room was deleted with its history");
            };
            tracing::warn!(%room, %error, attempt, "a room cannot be deleted; it stays hidden, and is deleted at the next start at the latest");
            drop(lock);
            tokio::time::sleep(PAUSE).await;
        }
    });
}

/// Resumes the deletions that were pending when the server ended. Overdue rooms are deleted at once.
pub async fn resume_deletions(context: &ActorContext) {
    for (channel, at) in context.memberships.all_deleting() {
        let lock = context.memberships.lock().await;
        if at > context.clock.now() || delete_room(context, &lock, &channel).await.is_err() {
            delete_later(context, &channel, at, PAUSE);
        }
    }
}

async fn change(context: &ActorContext, channel: &ChannelId, mut membership: Membership) -> Result<(), MembershipError> {
    context.memberships.allows(channel, &membership)?;
    // Messages from the time without members are not for the new members. Messages that were missed during a downtime are not
    // read either.
    if context.memberships.get(channel).is_some_and(|before| before.companions.is_empty()) && !membership.companions.is_empty() {
        membership.moved_in_again = Some(context.clock.now());
    }
    store_membership(context, channel, &membership).await?;
    let before = context.memberships.outdated(channel).map(|(recorded, _)| recorded).or_else(|| context.memberships.get(channel));
    let change = context.memberships.begin_change(channel);
    context.memberships.put(channel, membership.clone())?;
    // Journaled before the next message is accepted here, because new members do not see earlier messages. If this fails, the
    // channel journals the change later.
    let channel_key = ChannelKey::new(&membership.guild, channel);
    let recorded = record(context, &channel_key, events(context, before.as_ref(), &membership)).await;
    drop(change);
    notify_guild(context, &membership.guild, channel);
    update_threads(context, channel).await;
    Ok(recorded?)
}

/// Deletes a room with its history. Threads that inherit from it lose their members. Has no effect on a channel that is no room.
/// A thread or a direct message becomes a room again with its next message.
///
/// # Errors
/// [`MembershipError::Metadata`]: the room still exists, perhaps without its history.
pub async fn delete_room(context: &ActorContext, lock: &MembershipLock, channel: &ChannelId) -> Result<(), MembershipError> {
    let (context, channel) = (context.clone(), channel.clone());
    run_to_completion(lock, async move { delete(&context, &channel).await }).await
}

async fn delete(context: &ActorContext, channel: &ChannelId) -> Result<(), MembershipError> {
    let Some(membership) = context.memberships.remove(channel) else { return Ok(()) };
    let channel_key = ChannelKey::new(&membership.guild, channel);
    close(context, &channel_key);
    context.forget_words(&channel_key);
    guests::remove_room(context, channel).await?;
    if let Err(error) = delete_stored(context, &channel_key).await {
        // The membership was valid before. If it no longer is, it could not be loaded at the next start either.
        drop(context.memberships.put(channel, membership));
        return Err(error.into());
    }
    update_threads(context, channel).await;
    Ok(())
}

/// Stops a channel and its call, and closes its views.
fn close(context: &ActorContext, channel_key: &ChannelKey) {
    if let Some(guild) = context.directory.find(&GuildKey(channel_key.guild.clone())) {
        // If the guild is being restarted, its channels have ended with it. Once the journal is deleted, the writer rejects the
        // channel's requests that are still in flight.
        let _ = guild.cast(GuildMessage::Close(channel_key.channel.clone()));
    }
    context.hub.publish(channel_key, Live::Closed);
}

/// Runs a change in its own task. A cancelled caller, for example after its connection ended, must not leave the memberships in
/// memory different from those in the store.
async fn run_to_completion<T: Send + 'static>(
    lock: &MembershipLock,
    change: impl Future<Output = Result<T, MembershipError>> + Send + 'static,
) -> Result<T, MembershipError> {
    let lock = lock.clone();
    let changed = tokio::spawn(async move {
        let _lock = lock;
        change.await
    });
    // The result of a change that panicked is unknown.
    changed.await.unwrap_or(Err(MembershipError::Metadata(WriteError::Unknown)))
}

/// Deletes the rooms of a channel and its threads after the channel was deleted on its platform. Channels that are no rooms are
/// ignored.
///
/// # Errors
/// The same as for [`delete_room`]. A retry continues where it failed.
pub async fn gone(context: &ActorContext, guild: &GuildId, channel: &ChannelId) -> Result<(), MembershipError> {
    let lock = context.memberships.lock().await;
    let mut rooms = context.memberships.threads_of(channel);
    rooms.push(channel.clone());
    for room in rooms {
        if context.memberships.recorded(&room).is_some_and(|membership| membership.guild == *guild) {
            delete_room(context, &lock, &room).await?;
        }
    }
    Ok(())
}

/// Whether a channel has members, or would have some with its first message: a thread through its parent channel, a direct
/// message through the settings.
pub fn would_open(context: &ActorContext, channel_ref: &ChannelRef) -> bool {
    match context.memberships.has_members(&channel_ref.channel) {
        Some(has_members) => has_members,
        None => {
            default_membership(context, channel_ref).is_some_and(|membership| context.memberships.would_have_members(&membership))
        }
    }
}

/// Makes a thread or a direct message a room, if it would have members. In an existing thread, journals the changes that it has
/// inherited in the meantime. Call this before a message is accepted there. Returns whether the channel has members.
///
/// # Errors
/// [`MembershipError`]. A retry continues where it failed.
pub async fn ensure_room(context: &ActorContext, channel_ref: &ChannelRef) -> Result<bool, MembershipError> {
    let channel = &channel_ref.channel;
    if !would_open(context, channel_ref) {
        return Ok(false);
    }
    if context.memberships.get(channel).is_some() && context.memberships.outdated(channel).is_none() {
        return Ok(true);
    }
    let lock = context.memberships.lock().await;
    match (context.memberships.get(channel), default_membership(context, channel_ref)) {
        (Some(_), _) => catch_up(context, &lock, channel).await?,
        (None, Some(membership)) => {
            context.memberships.allows(channel, &membership)?;
            record_and_store(context, channel, None, membership).await?;
        }
        (None, None) => {}
    }
    Ok(context.memberships.has_members(channel).unwrap_or(false))
}

/// Journals the parent channel's changes in a thread that inherits from it. Does nothing if there are none.
///
/// # Errors
/// [`MembershipError`]. A retry continues where it failed.
pub async fn update_thread(context: &ActorContext, thread: &ChannelId) -> Result<(), MembershipError> {
    let lock = context.memberships.lock().await;
    catch_up(context, &lock, thread).await
}

/// The membership that a channel would get with its first message: a thread gets that of its parent channel, a direct message the
/// one from the settings. `None` for any other channel, and for a channel whose deletion is pending.
pub fn default_membership(context: &ActorContext, channel_ref: &ChannelRef) -> Option<Membership> {
    if context.memberships.deleted_at(&channel_ref.channel).is_some() {
        return None;
    }
    let empty = Membership::empty(channel_ref.guild.clone(), context.clock.now());
    if channel_ref.guild.is_direct() {
        let companions = direct_companions(context, &channel_ref.channel);
        return Some(Membership { companions, ..empty });
    }
    let parent = channel_ref.parent.as_ref()?;
    let inherited = context
        .memberships
        .get(parent)
        .filter(|inherited| inherited.guild == channel_ref.guild && inherited.inherits_from().is_none())?;
    Some(Membership { within: Some(parent.clone()), ..empty.like(Some(&inherited)) })
}

/// The companions that answer in direct messages.
fn direct_companions(context: &ActorContext, channel: &ChannelId) -> std::collections::BTreeSet<CompanionId> {
    let cast = context.memberships.companions();
    // The setting belongs to the Discord section, so it applies only to Discord.
    let is_discord = context.platforms.name(channel) == "discord";
    match context.settings.discord.direct_companions.as_ref().filter(|_| is_discord) {
        Some(ids) => ids.iter().filter(|id| cast.contains_key(*id)).cloned().collect(),
        // Own companions of guilds do not speak elsewhere.
        None => {
            cast.values().find(|companion| companion.guild.is_none()).map(|companion| companion.id.clone()).into_iter().collect()
        }
    }
}

async fn catch_up(context: &ActorContext, _: &MembershipLock, thread: &ChannelId) -> Result<(), MembershipError> {
    match context.memberships.outdated(thread) {
        Some((recorded, membership)) => record_and_store(context, thread, Some(&recorded), membership).await,
        None => Ok(()),
    }
}

/// Journals a membership first, and stores it then. A retry after a failure in between repeats both steps. A companion that joins
/// twice counts once.
async fn record_and_store(
    context: &ActorContext,
    channel: &ChannelId,
    before: Option<&Membership>,
    membership: Membership,
) -> Result<(), MembershipError> {
    let guild = membership.guild.clone();
    let change = context.memberships.begin_change(channel);
    record(context, &ChannelKey::new(&guild, channel), events(context, before, &membership)).await?;
    store_membership(context, channel, &membership).await?;
    context.memberships.put(channel, membership)?;
    drop(change);
    notify_guild(context, &guild, channel);
    Ok(())
}

/// Running threads are updated at once, the others with their next message.
async fn update_threads(context: &ActorContext, channel: &ChannelId) {
    for thread in context.memberships.threads_of(channel) {
        let is_running = context.directory.find(&ChannelActorKey(thread.clone())).is_some();
        // Threads that no longer inherit are notified, too: whether there are minors depends on the parent channel.
        if let Some(guild) = context.memberships.guild_of(&thread).filter(|_| is_running) {
            notify_guild(context, &guild, &thread);
        }
    }
    for thread in context.memberships.inheriting_from(channel) {
        let Some((recorded, membership)) = context.memberships.outdated(&thread) else { continue };
        if context.directory.find(&ChannelActorKey(thread.clone())).is_none() {
            continue;
        }
        if let Err(error) = record_and_store(context, &thread, Some(&recorded), membership).await {
            let (channel, thread) = (Plain(channel.as_str()), Plain(thread.as_str()));
            tracing::warn!(
                %channel,
                %thread,
                %error,
                "a thread could not be updated after a change of its parent channel; it is updated with its next message"
            );
        }
    }
}

async fn record(context: &ActorContext, channel_key: &ChannelKey, events: Vec<Event>) -> Result<(), writer::Refused> {
    let inbound = Inbound::new(context.clone());
    for event in events {
        inbound.accept(channel_key, event, None).await?;
    }
    Ok(())
}

/// The events that turn one membership into another. Excluded companions are left out.
fn events(context: &ActorContext, before: Option<&Membership>, after: &Membership) -> Vec<Event> {
    for companion in after.companions.iter().filter(|companion| context.memberships.excludes(after, companion)) {
        tracing::info!(guild = %after.guild, companion = %Plain(companion.as_str()), "a companion takes no part in a room: it is for adults and there are minors, or it belongs to another guild");
    }
    let admitted = |membership| context.memberships.admitted(membership);
    differences(before.map(admitted).as_ref(), &admitted(after))
}

/// The events that turn one membership into another. Companions leave before others join.
fn differences(before: Option<&Membership>, after: &Membership) -> Vec<Event> {
    // A companion that becomes external, or is no longer external, counts as another companion.
    let is_same_in = |other: &Membership, one: &Membership, companion: &CompanionId| {
        other.companions.contains(companion) && one.is_external(companion) == other.is_external(companion)
    };
    let was_member = |companion: &CompanionId| before.is_some_and(|before| is_same_in(before, after, companion));
    let mut events = Vec::new();
    if let Some(before) = before {
        let left = before.companions.iter().filter(|companion| !is_same_in(after, before, companion));
        events.extend(left.map(|companion| Event::Left { companion: companion.clone() }));
    }
    for companion in after.companions.iter().filter(|companion| !was_member(companion)) {
        events.push(Event::Joined { companion: companion.clone(), external: after.is_external(companion) });
    }
    let is_room_changed = before.is_some_and(|before| before.paused) != after.paused;
    if is_room_changed {
        events.push(Event::Paused { companion: None, paused: after.paused });
    }
    for companion in &after.companions {
        let was_paused = before.is_some_and(|before| was_member(companion) && before.is_paused(companion));
        // Pausing or resuming the room pauses or resumes each companion in it.
        let is_paused = if is_room_changed { after.paused } else { was_paused };
        if is_paused != after.is_paused(companion) {
            events.push(Event::Paused { companion: Some(companion.clone()), paused: !is_paused });
        }
    }
    events
}

/// Stores the membership first, so that every listed room has one.
async fn store_membership(context: &ActorContext, channel: &ChannelId, membership: &Membership) -> Result<(), WriteError> {
    let channel_key = ChannelKey::new(&membership.guild, channel);
    let record = RoomRecord { room: channel.clone(), guild: membership.guild.clone(), created_at: membership.created_at };
    write_meta(context, channel_key.ward(), vec![Write::Put(membership::key(&channel_key), encode(membership))]).await?;
    write_meta(context, Ward(0), vec![Write::Put(key::room(channel), encode(&record))]).await
}

/// Deletes the history first. As long as a part of it is left, the room is listed, and can be deleted again.
async fn delete_stored(context: &ActorContext, channel_key: &ChannelKey) -> Result<(), WriteError> {
    let delete = |reply| Request::DeleteChannel(DeleteChannel { channel_key: channel_key.clone(), reply });
    ask(&writer_ref(context)?, delete).await?;
    // If this is interrupted here, the membership of an unlisted room remains. It does no harm, and is overwritten when the room
    // is created again.
    write_meta(context, Ward(0), vec![Write::Remove(key::room(&channel_key.channel))]).await?;
    write_meta(context, channel_key.ward(), vec![Write::Remove(membership::key(channel_key))]).await
}

/// Notifies a guild that the membership of a channel has changed. A guild that is not running is started, and reads the membership then.
fn notify_guild(context: &ActorContext, guild: &GuildId, channel: &ChannelId) {
    let is_sent = context
        .directory
        .find(&GuildKey(guild.clone()))
        .is_some_and(|actor| actor.cast(GuildMessage::MembershipChanged(Some(channel.clone()))).is_ok());
    if !is_sent && let Some(guilds) = context.directory.find(&GuildsKey()) {
        // A supervisor that is being restarted is back soon. The channel reads its membership when it is woken.
        let _ = guilds.cast(GuildsMessage::Open(guild.clone(), Some(channel.clone())));
    }
}
