//! Invitations to rooms, and the limits of guests.
//!
//! The models' usage in a room counts for the visit that used something last, until another person says something.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tokio::sync::watch;

use super::ActorBackend;
use super::errors::invalid;
use super::usage::{end_of_millisecond, tokens_of};
use crate::actors::companion::pictures::hash;
use crate::actors::membership::guests::change;
use crate::domain::event::Event;
use crate::domain::guests::{
    Guest, InvitationPlan, MOST_GUESTS, MOST_OPEN, Newcomer, NotLetIn, NotTaken, Speaking, UsedFor, UsedToday, UsedUp,
};
use crate::domain::id::{GuildId, PersonId, Seq};
use crate::domain::lookalike::shapes;
use crate::domain::message::Role;
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::Range;
use crate::ports::backend::guest_service::{
    Amount, Ends, GuestService, InvitationView, KnownCompanion, NewInvitation, Preview, PreviewedRoom, Visit,
};
use crate::ports::backend::messages::RunBy;
use crate::ports::backend::reminder_service::ReminderService as _;
use crate::ports::backend::room::RoomId;
use crate::ports::backend::room_service::RoomService as _;
use crate::ports::backend::stamp::Stamp;
use crate::ports::backend::usage::GuestUsage;
use crate::ports::backend::{Detail, Refused};
use crate::ports::store::StoreError;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The number of events per read.
const PAGE: usize = 512;

/// The number of entries of the index of persons per read.
const PERSONS_PAGE: usize = 64;

#[async_trait]
impl GuestService for ActorBackend {
    async fn invite(&self, room: &RoomId, new: NewInvitation) -> Result<(InvitationView, SecretString), Refused> {
        let (channel_key, _) = self.room_of(room)?;
        if !room.is_of_console() {
            let platform = self.platform(room);
            return Err(Refused::conflict(Detail::of("refusals.invite_there", json!({ "room": room, "platform": platform }))));
        }
        if !(1..=MOST_GUESTS).contains(&new.most_guests) {
            return Err(invalid(
                "most_guests",
                Detail::of("refusals.range", json!({ "value": new.most_guests, "least": 1, "most": MOST_GUESTS })),
            ));
        }
        let now = self.context.clock.now();
        let (secret, id) = (self.secret(), format!("{:016x}", self.context.rng.id() as u64));
        let invitation = InvitationPlan {
            guild: channel_key.guild.clone(),
            channel: channel_key.channel.clone(),
            secret: hash(secret.expose_secret().as_bytes()).into(),
            from: self.reader().head(&channel_key).await?.last,
            ends_at: match new.ends {
                Ends::Day => Some(now + DAY),
                Ends::Week => Some(now + DAY * 7),
                Ends::Never => None,
            },
            most_guests: new.most_guests,
            knows_before: new.knows_before,
        };
        let added = change(&self.context, move |all| {
            let mut changed = all.remove_old(now);
            let id: Arc<str> = id.into();
            if !all.add(id.clone(), invitation, now) {
                return (None, changed);
            }
            let view = all.get(&id).map(|invitation| InvitationView::of(&id, invitation, now));
            changed.insert(id);
            (view, changed)
        });
        self.clear_descriptions(room).await?;
        let view = added.await?.ok_or_else(|| {
            Refused::conflict(Detail::of(
                "refusals.too_many_invitations",
                json!({ "room": self.name_of(room), "most": MOST_OPEN }),
            ))
        })?;
        Ok((view, secret))
    }

    async fn invitations(&self, room: &RoomId) -> Result<Vec<InvitationView>, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let now = self.context.clock.now();
        let all = |all: &crate::domain::guests::Invitations| {
            all.of_room(&channel_key.channel)
                .into_iter()
                .map(|(id, invitation)| InvitationView::of(&id, invitation, now))
                .collect()
        };
        Ok(self.context.guests.read(all))
    }

    async fn revoke(&self, room: &RoomId, id: &str) -> Result<(), Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let (now, id) = (self.context.clock.now(), Arc::<str>::from(id));
        let ChannelKey { guild, channel } = channel_key.clone();
        let guests: Vec<_> = self.context.guests.read(|all| {
            let revoked = all.of_room(&channel).into_iter().filter(|(other, _)| *other == id);
            revoked.flat_map(|(_, invitation)| &invitation.guests).map(|guest| PersonId::from(&*guest.name)).collect()
        });
        let revoked = change(&self.context, move |all| {
            let is_known = all.revoke(&channel_key.channel, &id, now);
            (is_known, BTreeSet::from_iter(is_known.then_some(id)))
        });
        if revoked.await? {
            self.clear_descriptions(room).await?;
            for guest in guests {
                self.erase_reminders(&guild, Some(room), &guest).await?;
            }
            Ok(())
        } else {
            Err(Refused::not_found(Detail::of("refusals.no_such_invitation", json!({ "room": self.name_of(room) }))))
        }
    }

    async fn remove_guest(&self, room: &RoomId, id: &str, name: &str) -> Result<(), Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let guild = channel_key.guild.clone();
        let (now, id, guest) = (self.context.clock.now(), Arc::<str>::from(id), name.to_owned());
        let removed = change(&self.context, move |all| {
            let is_known = all.remove_guest(&channel_key.channel, &id, &guest, now);
            (is_known, BTreeSet::from_iter(is_known.then_some(id)))
        });
        let is_known = removed.await?;
        self.clear_descriptions(room).await?;
        if is_known {
            self.erase_reminders(&guild, Some(room), &PersonId::from(name)).await?;
        }
        let gone =
            || Refused::not_found(Detail::of("refusals.no_such_guest", json!({ "name": name, "room": self.name_of(room) })));
        is_known.then_some(()).ok_or_else(gone)
    }

    async fn look(&self, secret: &str, cookies: &[String]) -> Result<Preview, Refused> {
        let (now, hashed, former) = (self.context.clock.now(), hash(secret.as_bytes()), hashes(cookies));
        let found = self.context.guests.read(|all| {
            let (_, invitation) = all.with_secret(&hashed, now)?;
            let is_own = |guest: &Guest| guest.removed_at.is_some() && all.had(&invitation.guild, &guest.name, &former);
            let is_removed = invitation.guests.iter().any(is_own);
            let name = all.name_chosen(&hashed, &former, now);
            let channel_key = ChannelKey::new(&invitation.guild, &invitation.channel);
            let before = all.last_name(&invitation.guild, &former);
            Some((channel_key, invitation.ends_at, name, before, invitation.is_full(), is_removed))
        });
        let (channel_key, ends_at, name, before, is_full, is_removed) = found.ok_or_else(not_open)?;
        if is_removed {
            return Err(Refused::not_found(Detail::key("refusals.guest_removed")));
        }
        if is_full && name.is_none() {
            return Err(full());
        }
        let room = RoomId::of(&channel_key.channel).ok_or_else(not_open)?;
        // No invitation to a room with a pending deletion is open.
        let view = self.room_of(&room).map_err(|_| not_open())?;
        let view = self.room_view(room, &view.1).await?;
        let companions = view.companions.into_iter().map(KnownCompanion::from).collect();
        let room = PreviewedRoom { id: view.id, title: view.title, companions };
        let run_by = RunBy::from(&self.context.in_force().safety);
        let takes_notes = self.context.takes_notes(&channel_key);
        let name_is_fixed = name.is_some();
        Ok(Preview { room, ends_at: ends_at.map(Into::into), name: name.or(before), name_is_fixed, run_by, takes_notes })
    }

    async fn join(&self, secret: &str, name: Arc<str>, cookies: &[String]) -> Result<(Visit, SecretString), Refused> {
        let (now, hashed, former) = (self.context.clock.now(), hash(secret.as_bytes()), hashes(cookies));
        let found = self.context.guests.read(|all| {
            let (_, invitation) = all.with_secret(&hashed, now)?;
            Some((invitation.guild.clone(), invitation.channel.clone(), all.had(&invitation.guild, &name, &former)))
        });
        let (guild, channel, is_own) = found.ok_or_else(not_open)?;
        if self.context.memberships.get(&channel).is_none() {
            return Err(not_open());
        }
        if let Some(companion) = self.context.memberships.names(&guild).and_then(|names| names.namesake(&name).cloned()) {
            let known = self.context.memberships.companion(&channel, &companion);
            let companion = known.map_or_else(|| companion.to_string().into(), |companion| companion.name.clone());
            return Err(invalid("name", Detail::of("refusals.name_of_companion", json!({ "companion": companion }))));
        }
        if !is_own && self.has_spoken(&guild, &name).await? {
            return Err(taken());
        }
        let cookie = self.secret();
        let newcomer = Newcomer { name, cookie: hash(cookie.expose_secret().as_bytes()).into(), former };
        let joined = change(&self.context, move |all| {
            let joined = all.join(&hashed, newcomer, now);
            let changed = joined.iter().map(|visit| visit.invitation.clone()).collect();
            (joined, changed)
        });
        match joined.await? {
            Ok(visit) => Ok((visit, cookie)),
            Err(NotLetIn::NotOpen) => Err(not_open()),
            Err(NotLetIn::NameTaken) => Err(taken()),
            Err(NotLetIn::Full) => Err(full()),
        }
    }

    fn is_guests_name(&self, room: &RoomId, name: &str) -> bool {
        let Some(membership) = self.context.memberships.get(&room.channel()) else { return false };
        self.context.guests.read(|all| all.is_taken(&membership.guild, name, &[]))
    }

    fn visit(&self, cookie: &str) -> Option<Visit> {
        let (hashed, now) = (hash(cookie.as_bytes()), self.context.clock.now());
        let visit = self.context.guests.read(|all| all.visit(&hashed, now))?;
        self.has_room(&visit).then_some(visit)
    }

    fn is_open(&self, visit: &Visit) -> bool {
        let now = self.context.clock.now();
        self.context.guests.read(|all| all.visit(&visit.cookie, now)).is_some() && self.has_room(visit)
    }

    fn was_removed(&self, cookies: &[String]) -> bool {
        let (former, rooms) = (hashes(cookies), self.context.memberships.all());
        self.context.guests.read(|all| {
            let invitations = rooms.iter().flat_map(|(channel, _)| all.of_room(channel));
            let guests = invitations.flat_map(|(_, one)| one.guests.iter().map(|guest| (&one.guild, guest)));
            let own = guests.filter(|(guild, guest)| all.had(guild, &guest.name, &former)).map(|(_, guest)| guest);
            own.max_by_key(|guest| guest.left_at).is_some_and(|guest| guest.removed_at.is_some())
        })
    }

    async fn leave(&self, visit: &Visit) -> Result<(), Refused> {
        let (now, cookie) = (self.context.clock.now(), visit.cookie.clone());
        let left = change(&self.context, move |all| ((), all.leave(&cookie, now).into_iter().collect()));
        left.await?;
        match RoomId::of(&visit.channel) {
            Some(room) => {
                self.clear_descriptions(&room).await?;
                self.erase_reminders(&visit.guild, Some(&room), &PersonId::from(&*visit.name)).await.map(drop)
            }
            None => Ok(()),
        }
    }

    async fn consume_quota(&self, visit: &Visit, amount: Amount) -> Result<(), Refused> {
        let now = self.context.clock.now();
        let after = self.reader().head(&ChannelKey::new(&visit.guild, &visit.channel)).await?.last;
        let at = Speaking { since: now, after };
        let used = self.used_for_speaker(&ChannelKey::new(&visit.guild, &visit.channel), Moment::ZERO, at).await?;
        let (cookie, bounds) = (visit.cookie.clone(), self.context.in_force().guests.clone());
        let taken = change(&self.context, move |all| {
            let mut changed: BTreeSet<_> = used.and_then(|used| all.count(&used, now)).into_iter().collect();
            let taken = all.consume_quota(&cookie, amount, [&bounds.each, &bounds.together], at);
            changed.extend(taken.iter().flatten().cloned());
            (taken, changed)
        });
        match taken.await? {
            Ok(_) => Ok(()),
            Err(NotTaken::NotHere) => Err(Refused::conflict(Detail::key("refusals.visit_ended"))),
            Err(NotTaken::UsedUp(used_up)) => {
                let text = match used_up {
                    UsedUp::Messages => "refusals.messages_used_up",
                    UsedUp::Voice => "refusals.calls_used_up",
                    UsedUp::Tokens => "refusals.answers_used_up",
                };
                let until_midnight = Duration::from_secs(DAY.as_secs() - now.as_micros() / 1_000_000 % DAY.as_secs());
                let detail = Detail::of(text, json!({ "at": Stamp::from(now + until_midnight) }));
                Err(Refused::TooMany { detail, retry_after: until_midnight })
            }
        }
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.context.guests.edition()
    }
}

impl ActorBackend {
    /// Forgets the guests of a guild with this name. Returns whether there were any.
    pub(super) async fn forget_guest(&self, guild: &GuildId, person: &PersonId) -> Result<bool, Refused> {
        let (guild, name) = (guild.clone(), person.as_shared().clone());
        let forgotten = change(&self.context, move |all| {
            let changed = all.forget(&guild, &name);
            (!changed.is_empty(), changed)
        });
        forgotten.await.map_err(Refused::from)
    }

    /// Removes what guests whose visits have ended wrote of themselves.
    async fn clear_descriptions(&self, room: &RoomId) -> Result<(), Refused> {
        let (channel, now) = (room.channel(), self.context.clock.now());
        let described = self.context.memberships.described(&channel);
        let former = self.context.guests.read(|all| all.former(&channel, now));
        for person in described.into_keys().filter(|person| former.contains(person.as_shared())) {
            self.describe(room, &person, None).await?;
        }
        Ok(())
    }

    /// The usage of the guests of a guild today, including tokens that are not charged yet.
    pub(super) async fn used_by_guests(&self, guild: &GuildId, now: Moment) -> Result<Vec<GuestUsage>, Refused> {
        let mut all = self.context.guests.read(Clone::clone);
        let midnight = now - Duration::from_micros(now.as_micros() % (DAY.as_secs() * 1_000_000));
        for channel in all.channels(guild) {
            let at = Speaking { since: end_of_millisecond(now), after: Seq::NONE };
            if let Some(used) = self.used_for_speaker(&ChannelKey::new(guild, &channel), midnight, at).await? {
                all.count(&used, now);
            }
        }
        let view = |(name, used): (_, UsedToday)| {
            let (messages, voice_secs, tokens) = (used.messages, used.voice_ms / 1_000, used.tokens);
            GuestUsage { name, messages, voice_secs, tokens }
        };
        Ok(all.used_by(guild, now).into_iter().map(view).collect())
    }

    /// The models' usage from one moment to another in a room for the guest who used something last there.
    async fn used_for_speaker(&self, channel_key: &ChannelKey, from: Moment, at: Speaking) -> Result<Option<UsedFor>, Refused> {
        let Some(speaker) = self.context.guests.read(|all| all.speaker(&channel_key.channel)) else { return Ok(None) };
        let (mut after, mut ended_at) = (speaker.speaking.after, None);
        while ended_at.is_none() {
            let range = Range { after, before: None, limit: PAGE, newest_first: false };
            let page = self.reader().legible(channel_key, range).await?;
            ended_at = page.events.iter().find_map(|recorded| match &recorded.event {
                Event::Said { message, .. } if message.from.role == Role::Person && message.from.id != speaker.name => {
                    Some(recorded.at)
                }
                _ => None,
            });
            after = page.last.unwrap_or(after);
            if page.looked_at() < PAGE {
                break;
            }
        }
        let mut tokens = 0_u64;
        let until = ended_at.unwrap_or(at.since);
        self.reader()
            .usage(&channel_key.guild, speaker.speaking.since.max(from), Some(until), |record| {
                if record.channel == channel_key.channel {
                    tokens = tokens.saturating_add(tokens_of(&record));
                }
                ControlFlow::Continue(())
            })
            .await?;
        Ok(Some(UsedFor { speaker, tokens, next: ended_at.is_none().then_some(at) }))
    }

    /// Whether the room of a visit exists. A room whose deletion can be undone counts, too.
    fn has_room(&self, visit: &Visit) -> bool {
        let memberships = &self.context.memberships;
        memberships.get(&visit.channel).is_some() || memberships.deleted_at(&visit.channel).is_some()
    }

    /// Whether the guild's record has a person with this name, or with one that looks like it.
    async fn has_spoken(&self, guild: &GuildId, name: &str) -> Result<bool, StoreError> {
        let (mut from, end) = (key::all_persons(guild), key::all_persons(guild).end());
        let (wanted, mut last) = (shapes(name), None);
        loop {
            let page = self.context.store.scan(from, end.clone(), false, PERSONS_PAGE).await?;
            let Some((newest, _)) = page.last() else { return Ok(false) };
            from = key::successor(newest);
            for (found, _) in &page {
                let person = key::person_named_in(guild, found);
                if person == last {
                    continue;
                }
                if person.as_ref().is_some_and(|person| shapes(person.as_str()).iter().any(|shape| wanted.contains(shape))) {
                    return Ok(true);
                }
                last = person;
            }
            // A person with many messages has many entries, so they are skipped.
            if let Some(person) = &last {
                from = from.max(key::person_entries(guild, person).end());
            }
        }
    }

    /// 256 random bits, in hexadecimal digits.
    fn secret(&self) -> SecretString {
        format!("{:032x}{:032x}", self.context.rng.id(), self.context.rng.id()).into()
    }
}

fn hashes(cookies: &[String]) -> Vec<Arc<str>> {
    cookies.iter().map(|cookie| hash(cookie.as_bytes()).into()).collect()
}

fn not_open() -> Refused {
    Refused::not_found(Detail::key("refusals.invitation_gone"))
}

fn full() -> Refused {
    Refused::conflict(Detail::key("refusals.invitation_full"))
}

fn taken() -> Refused {
    invalid("name", Detail::key("refusals.name_taken"))
}
