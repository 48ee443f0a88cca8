//! Who lives in a channel: how that is stored, lived by, put on record and told to the guild; and how a thread or a direct message becomes
//! a room by itself.
//!
//! A thread, or a forum post, lives by the channel that it is in until somebody changes the thread itself: what changes there holds in the
//! thread at once. On record in the thread it comes when the thread is awake or wakes, or before the next thing that is said in it.

use serde_json::json;

use crate::actors::inbound::Inbound;
use crate::actors::membership::memberships::MembershipLock;
use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::guilds::GuildsMessage;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer;
use crate::actors::messages::writer::{DeleteChannel, MetaWriteError, WriteError, WriterMessage};
use crate::actors::runtime::actor_keys::{ChannelActorKey, GuildKey, GuildsKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::hub::Live;
use crate::actors::writer::requests::{send_to_writer, write_meta};
use crate::domain::event::Event;
use crate::domain::id::{ChannelId, CompanionId, GuildId, Ward};
use crate::domain::names::SharedName;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::membership::{self, Membership};
use crate::journal::record::{RoomRecord, encode};
use crate::ports::inbound_events::ChannelRef;
use crate::ports::store::Write;
use crate::telemetry::plain::Plain;

/// Why a residence could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// Two companions of the guild would share a name. Nothing changed.
    #[error("{0}; two companions of one guild cannot share a name")]
    SharedName(#[from] SharedName),
    /// It was not stored, or may not have been.
    #[error("who lives in the channel cannot be stored: {0}")]
    Metadata(#[from] MetaWriteError),
    /// Who comes and who goes could not be put on record. It holds all the same, and the channel makes up for it.
    #[error("who lives in the channel cannot be put on record: {0}")]
    Journal(#[from] writer::Refused),
}

/// Stores a residence, lives by it from now on, and lets the channel and those of its threads know that live by it.
///
/// # Errors
/// [`MembershipError`].
pub async fn update_membership(
    context: &ActorContext,
    lock: &MembershipLock,
    channel: &ChannelId,
    membership: Membership,
) -> Result<(), MembershipError> {
    let (context, channel) = (context.clone(), channel.clone());
    to_the_end(lock, async move { change(&context, &channel, membership).await }).await
}

async fn change(context: &ActorContext, channel: &ChannelId, mut membership: Membership) -> Result<(), MembershipError> {
    context.memberships.allows(channel, &membership)?;
    // What was said while nobody lived there was not for them, and is not read after a downtime either.
    if context.memberships.get(channel).is_some_and(|before| before.companions.is_empty()) && !membership.companions.is_empty() {
        membership.moved_in_again = Some(context.clock.now());
    }
    store_membership(context, channel, &membership).await?;
    let before = context.memberships.outdated(channel).map(|(recorded, _)| recorded).or_else(|| context.memberships.get(channel));
    let change = context.memberships.begin_change(channel);
    context.memberships.put(channel, membership.clone())?;
    // On record before anybody can say something here: who comes later has not heard what was said before. What is missed here for a
    // failure, the channel makes up for.
    let channel_key = ChannelKey::new(&membership.guild, channel);
    let recorded = record(context, &channel_key, news(before.as_ref(), &membership)).await;
    drop(change);
    tell_guild(context, &membership.guild, channel);
    tell_threads(context, channel).await;
    Ok(recorded?)
}

/// Takes a room away, with its history: it is nobody's then. In threads that live by it nobody lives any more. One that is no room changes
/// nothing; a thread or a direct message becomes one again by what is said there.
///
/// # Errors
/// [`MembershipError::Metadata`]: the room is still there, perhaps without its history.
pub async fn close(context: &ActorContext, lock: &MembershipLock, channel: &ChannelId) -> Result<(), MembershipError> {
    let (context, channel) = (context.clone(), channel.clone());
    to_the_end(lock, async move { end(&context, &channel).await }).await
}

async fn end(context: &ActorContext, channel: &ChannelId) -> Result<(), MembershipError> {
    let Some(membership) = context.memberships.take(channel) else { return Ok(()) };
    let channel_key = ChannelKey::new(&membership.guild, channel);
    if let Some(guild) = context.directory.find(&GuildKey(channel_key.guild.clone())) {
        // A guild that is gone has taken its channels along. What the channel still has on its way is refused by the writer once the
        // journal is deleted.
        let _ = guild.cast(GuildMessage::Close(channel.clone()));
    }
    if let Err(error) = take_away(context, &channel_key).await {
        // It fitted before; if it does not any more, it does not after the next start either.
        drop(context.memberships.put(channel, membership));
        return Err(error.into());
    }
    // Whoever watches looks up whether the room is still there.
    context.hub.publish(&channel_key, Live::Note(json!({ "event": "closed", "channel": channel }).to_string().into()));
    tell_threads(context, channel).await;
    Ok(())
}

/// Whoever waits for a change may go away, as a connection does that ends; what is lived by and what is stored must not part for that.
async fn to_the_end(
    lock: &MembershipLock,
    change: impl Future<Output = Result<(), MembershipError>> + Send + 'static,
) -> Result<(), MembershipError> {
    let lock = lock.clone();
    let changed = tokio::spawn(async move {
        let _lock = lock;
        change.await
    });
    // One that panicked may have come to anything.
    changed.await.unwrap_or(Err(MembershipError::Metadata(WriteError::Unknown.into())))
}

/// A channel is gone for good where it was, and its threads with it: what was said in them is deleted. One that is no room changes nothing.
///
/// # Errors
/// As [`close`]; the same again goes on where it failed.
pub async fn gone(context: &ActorContext, guild: &GuildId, channel: &ChannelId) -> Result<(), MembershipError> {
    let lock = context.memberships.lock().await;
    let mut rooms = context.memberships.threads_of(channel);
    rooms.push(channel.clone());
    for room in rooms {
        if context.memberships.get(&room).is_some_and(|membership| membership.guild == *guild) {
            close(context, &lock, &room).await?;
        }
    }
    Ok(())
}

/// Whether somebody lives in a channel, or would as soon as something is said there: in the channel that a thread is in, or in a direct
/// message by the settings.
pub fn would_open(context: &ActorContext, channel_ref: &ChannelRef) -> bool {
    match context.memberships.has_members(&channel_ref.channel) {
        Some(has_members) => has_members,
        None => default_membership(context, channel_ref).is_some_and(|membership| context.memberships.would_have_members(&membership)),
    }
}

/// Makes a thread or a direct message a room, if somebody would live in it; of a thread that was asleep it puts on record who came and went
/// meanwhile. Comes before whatever is said there is accepted. Whether somebody lives there.
///
/// # Errors
/// [`MembershipError`]; the same again goes on where it failed.
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
            enter(context, channel, None, membership).await?;
        }
        (None, None) => {}
    }
    Ok(context.memberships.has_members(channel).unwrap_or(false))
}

/// Puts on record in a thread what changed in the channel that it is in, if it lives by it and anything did.
///
/// # Errors
/// [`MembershipError`]; the same again goes on where it failed.
pub async fn update_thread(context: &ActorContext, thread: &ChannelId) -> Result<(), MembershipError> {
    let lock = context.memberships.lock().await;
    catch_up(context, &lock, thread).await
}

/// The residence that a channel without one would have: a thread that of the channel that it is in, a direct message what the settings
/// say. None for any other channel.
pub fn default_membership(context: &ActorContext, channel_ref: &ChannelRef) -> Option<Membership> {
    let empty = Membership::empty(channel_ref.guild.clone(), context.clock.now());
    if channel_ref.guild.is_direct() {
        let companions = direct_companions(context, &channel_ref.channel);
        return Some(Membership { companions, ..empty });
    }
    let parent = channel_ref.parent.as_ref()?;
    let lived =
        context.memberships.get(parent).filter(|lived| lived.guild == channel_ref.guild && lived.inherits_from().is_none())?;
    Some(Membership { within: Some(parent.clone()), ..empty.like(Some(&lived)) })
}

/// Who answers in direct messages.
fn direct_companions(context: &ActorContext, channel: &ChannelId) -> std::collections::BTreeSet<CompanionId> {
    let cast = context.memberships.companions();
    // Its section of the settings goes by its name.
    let is_discord = context.platforms.name(channel) == "discord";
    match context.settings.discord.direct_companions.as_ref().filter(|_| is_discord) {
        Some(ids) => ids.iter().filter(|id| cast.contains_key(*id)).cloned().collect(),
        None => cast.keys().next().cloned().into_iter().collect(),
    }
}

/// Puts on record in a thread what changed in the channel that it is in.
async fn catch_up(context: &ActorContext, _: &MembershipLock, thread: &ChannelId) -> Result<(), MembershipError> {
    match context.memberships.outdated(thread) {
        Some((recorded, membership)) => enter(context, thread, Some(&recorded), membership).await,
        None => Ok(()),
    }
}

/// Puts on record first, and stores then: what fails is done again as a whole, and who comes twice came once.
async fn enter(
    context: &ActorContext,
    channel: &ChannelId,
    before: Option<&Membership>,
    membership: Membership,
) -> Result<(), MembershipError> {
    let guild = membership.guild.clone();
    let change = context.memberships.begin_change(channel);
    record(context, &ChannelKey::new(&guild, channel), news(before, &membership)).await?;
    store_membership(context, channel, &membership).await?;
    context.memberships.put(channel, membership)?;
    drop(change);
    tell_guild(context, &guild, channel);
    Ok(())
}

/// Those that are awake learn at once, the others when something is said in them.
async fn tell_threads(context: &ActorContext, channel: &ChannelId) {
    for thread in context.memberships.inheriting_from(channel) {
        let Some((recorded, membership)) = context.memberships.outdated(&thread) else { continue };
        if context.directory.find(&ChannelActorKey(thread.clone())).is_none() {
            continue;
        }
        if let Err(error) = enter(context, &thread, Some(&recorded), membership).await {
            let (channel, thread) = (Plain(channel.as_str()), Plain(thread.as_str()));
            tracing::warn!(%channel, %thread, %error, "a thread goes by what was, until something is said in it");
        }
    }
}

async fn record(context: &ActorContext, channel_key: &ChannelKey, news: Vec<Event>) -> Result<(), writer::Refused> {
    let inbound = Inbound::new(context.clone());
    for event in news {
        inbound.accept(channel_key, event, None).await?;
    }
    Ok(())
}

/// What happened when one residence followed another. Whoever leaves makes room first.
fn news(before: Option<&Membership>, after: &Membership) -> Vec<Event> {
    // Whoever was external and is not any more is somebody else, and the other way round.
    let stays = |of: &Membership, in_other: &Membership, companion: &CompanionId| {
        in_other.companions.contains(companion) && of.is_external(companion) == in_other.is_external(companion)
    };
    let lived = |companion: &CompanionId| before.is_some_and(|before| stays(after, before, companion));
    let mut news = Vec::new();
    if let Some(before) = before {
        let gone = before.companions.iter().filter(|companion| !stays(before, after, companion));
        news.extend(gone.map(|companion| Event::Left { companion: companion.clone() }));
    }
    for companion in after.companions.iter().filter(|companion| !lived(companion)) {
        news.push(Event::Joined { companion: companion.clone(), external: after.is_external(companion) });
    }
    let is_room_changed = before.is_some_and(|before| before.paused) != after.paused;
    if is_room_changed {
        news.push(Event::Paused { companion: None, paused: after.paused });
    }
    for companion in &after.companions {
        let was = before.is_some_and(|before| lived(companion) && before.is_paused(companion));
        let is = if is_room_changed { after.paused } else { was };
        if is != after.is_paused(companion) {
            news.push(Event::Paused { companion: Some(companion.clone()), paused: !is });
        }
    }
    news
}

/// The residence first: a room of the directory always has one.
async fn store_membership(context: &ActorContext, channel: &ChannelId, membership: &Membership) -> Result<(), MetaWriteError> {
    let channel_key = ChannelKey::new(&membership.guild, channel);
    let record = RoomRecord { room: channel.clone(), guild: membership.guild.clone(), created_at: membership.created_at };
    write_meta(context, channel_key.ward(), vec![Write::Put(membership::key(&channel_key), encode(membership))]).await?;
    write_meta(context, Ward(0), vec![Write::Put(key::room(channel), encode(&record))]).await
}

/// The history first: as long as a part is left, the room is found, and can be taken away again.
async fn take_away(context: &ActorContext, channel_key: &ChannelKey) -> Result<(), MetaWriteError> {
    let (reply, done) = Reply::awaited();
    send_to_writer(context, WriterMessage::DeleteChannel(DeleteChannel { channel_key: channel_key.clone(), reply }))?;
    done.await.unwrap_or(Err(WriteError::Unknown))?;
    // A residence that nothing leads to does no harm, and is written over when the room is made again.
    write_meta(context, Ward(0), vec![Write::Remove(key::room(&channel_key.channel))]).await?;
    write_meta(context, channel_key.ward(), vec![Write::Remove(membership::key(channel_key))]).await
}

/// Lets a guild know that who lives in a channel has changed. A guild that is not there is opened, and reads it then.
fn tell_guild(context: &ActorContext, guild: &GuildId, channel: &ChannelId) {
    let told = context
        .directory
        .find(&GuildKey(guild.clone()))
        .is_some_and(|actor| actor.cast(GuildMessage::MembershipChanged(Some(channel.clone()))).is_ok());
    if !told && let Some(guilds) = context.directory.find(&GuildsKey()) {
        // A supervisor that is gone is back soon; the channel reads who lives there when it is woken.
        let _ = guilds.cast(GuildsMessage::Open(guild.clone(), Some(channel.clone())));
    }
}
