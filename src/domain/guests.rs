//! Invitations to a room, and their guests: admission, names, and daily limits.
//!
//! An invitation is a link with a secret. A guest is one browser that joined with it, under a name that is unique in the guild.
//! Only hashes of secrets and cookies are stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::id::{ChannelId, GuildId, Seq};
use super::lookalike::look_alike;
use super::moment::Moment;

/// The maximum number of guests per invitation, including former ones.
pub const MOST_GUESTS: u8 = 20;

/// The maximum number of open invitations per room.
pub const MOST_OPEN: usize = 20;

/// How long an ended invitation is kept, with the names of its guests.
const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

const DAY_SECS: u64 = 24 * 60 * 60;

/// The default of a setting that is on.
pub const fn yes() -> bool {
    true
}

/// The limits of guests per day (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The number of messages, typed or said in a call as text: 1 to 1,000,000.
    pub messages_per_day: u64,
    /// The number of minutes with an open microphone: 0 to 100,000.
    pub voice_minutes_per_day: u64,
    /// The number of tokens that models use in the room from a guest's message to the next one by another person: 1,000 to
    /// 10,000,000,000.
    pub tokens_per_day: u64,
}

/// The use of a limited resource by a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Message,
    Voice(Duration),
    Tokens(u64),
}

/// The reason why a guest's use is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// The visit has ended.
    NotHere,
    UsedUp(UsedUp),
}

/// The limit that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedUp {
    Messages,
    Voice,
    Tokens,
}

/// The use on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedToday {
    /// The number of the day since 1970.
    day: u64,
    pub messages: u64,
    pub voice_ms: u64,
    pub tokens: u64,
}

impl UsedToday {
    /// The use on the day of `now`. It is zero if `self` is of another day.
    pub fn on(self, now: Moment) -> Self {
        let day = now.as_micros() / 1_000_000 / DAY_SECS;
        if self.day == day { self } else { Self { day, ..Self::default() } }
    }

    fn add(&mut self, amount: Amount) {
        let (sum, more) = match amount {
            Amount::Message => (&mut self.messages, 1),
            Amount::Voice(time) => (&mut self.voice_ms, u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            Amount::Tokens(tokens) => (&mut self.tokens, tokens),
        };
        *sum = sum.saturating_add(more);
    }

    /// The limit that refuses this use. Without remaining tokens, everything that costs tokens is refused.
    fn used_up(&self, amount: Amount, bounds: &Bounds) -> Option<UsedUp> {
        match amount {
            Amount::Message | Amount::Voice(_) if self.tokens >= bounds.tokens_per_day => Some(UsedUp::Tokens),
            Amount::Message => (self.messages >= bounds.messages_per_day).then_some(UsedUp::Messages),
            Amount::Voice(_) => (self.voice_ms >= bounds.voice_minutes_per_day.saturating_mul(60_000)).then_some(UsedUp::Voice),
            // The tokens were already used.
            Amount::Tokens(_) => None,
        }
    }
}

/// A link for joining one room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    pub guild: GuildId,
    pub channel: ChannelId,
    /// The hash of the link's secret.
    secret: Arc<str>,
    pub made_at: Moment,
    /// The room's newest event when the invitation was made. Guests can read only later events.
    pub from: Seq,
    /// `None` if the invitation does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Moment>,
    pub most_guests: u8,
    /// Whether companions may use what was said before it, while its guests are in the room. Older invitations have no such field.
    #[serde(default = "yes")]
    pub knows_before: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Moment>,
    /// The use of all its guests together, including former ones.
    #[serde(default)]
    pub used: UsedToday,
    #[serde(default)]
    pub guests: Vec<Guest>,
}

/// A browser that joined with an invitation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// The hash of its cookie.
    cookie: Arc<str>,
    pub name: Arc<str>,
    pub joined_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_at: Option<Moment>,
    /// When an operator removed the guest, who has no place since, and cannot come back with this invitation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Moment>,
    #[serde(default)]
    pub used: UsedToday,
    /// `None` if another person was active in the room since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speaking: Option<Speaking>,
}

/// Marks a guest as the last active person in a room. Tokens that models use there are charged to this guest until another
/// person says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speaking {
    /// The tokens used before this moment are already counted.
    pub since: Moment,
    /// The room's newest event at that moment.
    pub after: Seq,
}

/// The guest to whom the tokens used in a room are charged.
#[derive(Clone, Debug)]
pub struct Speaker {
    pub cookie: Arc<str>,
    pub name: Arc<str>,
    pub speaking: Speaking,
}

/// The tokens that models used for a guest, and whether further ones are charged.
#[derive(Clone, Debug)]
pub struct UsedFor {
    pub speaker: Speaker,
    pub tokens: u64,
    /// `None` if another person has spoken since.
    pub next: Option<Speaking>,
}

/// The properties of a new invitation.
#[derive(Clone, Debug)]
pub struct InvitationPlan {
    pub guild: GuildId,
    pub channel: ChannelId,
    pub secret: Arc<str>,
    pub from: Seq,
    pub ends_at: Option<Moment>,
    /// 1 to [`MOST_GUESTS`].
    pub most_guests: u8,
    pub knows_before: bool,
}

/// A guest's stay in a room, while the invitation is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The id of the invitation.
    pub invitation: Arc<str>,
    /// The hash of the guest's cookie.
    pub cookie: Arc<str>,
    pub guild: GuildId,
    pub channel: ChannelId,
    /// The guest's name, which is also the identity in the room.
    pub name: Arc<str>,
    /// The guest can read events after this one.
    pub from: Seq,
    pub joined_at: Moment,
    pub ends_at: Option<Moment>,
}

/// A person who opened a link and asks to join.
#[derive(Clone, Debug)]
pub struct Newcomer {
    pub name: Arc<str>,
    /// The hash of a new cookie.
    pub cookie: Arc<str>,
    /// The hashes of the cookies in this browser. A previous owner of a name may use it again.
    pub former: Vec<Arc<str>>,
}

/// The reason why a person cannot join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotLetIn {
    /// The invitation does not exist, has ended, or was revoked.
    NotOpen,
    /// The invitation has its maximum number of guests.
    Full,
    /// Another member of the guild has or had this name or a look-alike, or this guest has another name in the room.
    NameTaken,
}

impl Invitation {
    pub fn is_open(&self, now: Moment) -> bool {
        self.revoked_at.is_none() && self.ends_at.is_none_or(|ends_at| now < ends_at)
    }

    /// Whether the invitation has its maximum number of guests.
    pub fn is_full(&self) -> bool {
        self.guests.iter().filter(|guest| guest.removed_at.is_none()).count() >= usize::from(self.most_guests)
    }

    /// The end of the invitation. `None` while it is open.
    fn ended_at(&self, now: Moment) -> Option<Moment> {
        self.revoked_at.or(self.ends_at.filter(|ends_at| *ends_at <= now))
    }
}

/// All invitations, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invitations(BTreeMap<Arc<str>, Invitation>);

impl Invitations {
    pub fn get(&self, id: &str) -> Option<&Invitation> {
        self.0.get(id)
    }

    /// Inserts an invitation from the store.
    pub fn restore(&mut self, id: Arc<str>, invitation: Invitation) {
        self.0.insert(id, invitation);
    }

    /// The invitations to a room, newest first.
    pub fn of_room(&self, channel: &ChannelId) -> Vec<(Arc<str>, &Invitation)> {
        let mut of_room: Vec<_> =
            self.0.iter().filter(|(_, one)| one.channel == *channel).map(|(id, one)| (id.clone(), one)).collect();
        of_room.sort_by_key(|(_, one)| std::cmp::Reverse(one.made_at));
        of_room
    }

    /// Whether a room has an open invitation.
    pub fn has_open(&self, channel: &ChannelId, now: Moment) -> bool {
        self.0.values().any(|one| one.channel == *channel && one.is_open(now))
    }

    /// The newest event of a room that prompts must not show, because a guest with `knows_before: false` is there. `Seq::NONE` if there is none.
    pub fn hidden_upto(&self, channel: &ChannelId, now: Moment) -> Seq {
        let is_here = |one: &Invitation| one.is_open(now) && one.guests.iter().any(|guest| guest.left_at.is_none());
        let hiding = self.0.values().filter(|one| one.channel == *channel && !one.knows_before && is_here(one));
        hiding.map(|one| one.from).max().unwrap_or(Seq::NONE)
    }

    /// Adds an invitation. Returns false if the room already has [`MOST_OPEN`] open ones.
    pub fn add(&mut self, id: Arc<str>, new: InvitationPlan, now: Moment) -> bool {
        let InvitationPlan { guild, channel, secret, from, ends_at, most_guests, knows_before } = new;
        let open = self.of_room(&channel).iter().filter(|(_, one)| one.is_open(now)).count();
        if open >= MOST_OPEN {
            return false;
        }
        let (used, guests) = (UsedToday::default(), Vec::new());
        let most_guests = most_guests.clamp(1, MOST_GUESTS);
        let new = Invitation {
            guild,
            channel,
            secret,
            made_at: now,
            from,
            ends_at,
            most_guests,
            knows_before,
            revoked_at: None,
            used,
            guests,
        };
        self.0.insert(id, new);
        true
    }

    /// The open invitation with this secret.
    pub fn with_secret(&self, secret: &str, now: Moment) -> Option<(&Arc<str>, &Invitation)> {
        self.0.iter().find(|(_, one)| *one.secret == *secret && one.is_open(now))
    }

    /// Whether a guest of the guild has or had this name or a look-alike. Guests with one of the cookies `former` are ignored.
    pub fn is_taken(&self, guild: &GuildId, name: &str, former: &[Arc<str>]) -> bool {
        let mut guests = self.0.values().filter(|one| one.guild == *guild).flat_map(|one| &one.guests);
        guests.any(|guest| !former.contains(&guest.cookie) && look_alike(&guest.name, name))
    }

    /// Whether a guest of the guild has or had exactly this name.
    pub fn include(&self, guild: &GuildId, name: &str) -> bool {
        let mut guests = self.0.values().filter(|one| one.guild == *guild).flat_map(|one| &one.guests);
        guests.any(|guest| *guest.name == *name)
    }

    /// Whether one of these cookies belongs to a present or former guest with exactly this name.
    pub fn had(&self, guild: &GuildId, name: &str, former: &[Arc<str>]) -> bool {
        let mut guests = self.0.values().filter(|one| one.guild == *guild).flat_map(|one| &one.guests);
        guests.any(|guest| former.contains(&guest.cookie) && *guest.name == *name)
    }

    /// Admits a person. A guest who returns with the same invitation keeps the name and the recorded use.
    pub fn join(&mut self, secret: &str, newcomer: Newcomer, now: Moment) -> Result<Visit, NotLetIn> {
        let Newcomer { name, cookie, former } = newcomer;
        let id = self.with_secret(secret, now).ok_or(NotLetIn::NotOpen)?.0.clone();
        let guild = self.0.get(&id).ok_or(NotLetIn::NotOpen)?.guild.clone();
        if self.is_taken(&guild, &name, &former) {
            return Err(NotLetIn::NameTaken);
        }
        let invitation = self.0.get_mut(&id).ok_or(NotLetIn::NotOpen)?;
        let is_full = invitation.is_full();
        match invitation.guests.iter_mut().find(|guest| former.contains(&guest.cookie)) {
            Some(guest) if guest.removed_at.is_some() => return Err(NotLetIn::NotOpen),
            // A guest cannot change the name within a room.
            Some(guest) if guest.name != name => return Err(NotLetIn::NameTaken),
            Some(guest) => {
                guest.cookie = cookie.clone();
                guest.left_at = None;
            }
            None if is_full => return Err(NotLetIn::Full),
            None => {
                let used = UsedToday::default();
                invitation.guests.push(Guest {
                    cookie: cookie.clone(),
                    name,
                    joined_at: now,
                    left_at: None,
                    removed_at: None,
                    used,
                    speaking: None,
                });
            }
        }
        self.visit(&cookie, now).ok_or(NotLetIn::NotOpen)
    }

    /// The name that this browser has already chosen for the invitation with this secret.
    pub fn name_chosen(&self, secret: &str, former: &[Arc<str>], now: Moment) -> Option<Arc<str>> {
        let (_, invitation) = self.with_secret(secret, now)?;
        let mut guests = invitation.guests.iter().filter(|guest| guest.removed_at.is_none());
        guests.find(|guest| former.contains(&guest.cookie)).map(|guest| guest.name.clone())
    }

    /// The name that this browser chose last in the guild.
    pub fn last_name(&self, guild: &GuildId, former: &[Arc<str>]) -> Option<Arc<str>> {
        let guests = self.0.values().filter(|one| one.guild == *guild).flat_map(|one| &one.guests);
        let own = guests.filter(|guest| former.contains(&guest.cookie));
        own.max_by_key(|guest| guest.joined_at).map(|guest| guest.name.clone())
    }

    /// The visit of the guest with this cookie, while it lasts.
    pub fn visit(&self, cookie: &str, now: Moment) -> Option<Visit> {
        let (id, invitation, guest) = self.guest(cookie)?;
        (invitation.is_open(now) && guest.left_at.is_none()).then(|| Visit {
            invitation: id.clone(),
            cookie: guest.cookie.clone(),
            guild: invitation.guild.clone(),
            channel: invitation.channel.clone(),
            name: guest.name.clone(),
            from: invitation.from,
            joined_at: guest.joined_at,
            ends_at: invitation.ends_at,
        })
    }

    fn guest(&self, cookie: &str) -> Option<(&Arc<str>, &Invitation, &Guest)> {
        self.0.iter().find_map(|(id, one)| Some((id, one, one.guests.iter().find(|guest| *guest.cookie == *cookie)?)))
    }

    fn guest_mut(&mut self, cookie: &str) -> Option<(&Arc<str>, &mut UsedToday, &mut Guest)> {
        self.0
            .iter_mut()
            .find_map(|(id, one)| Some((id, &mut one.used, one.guests.iter_mut().find(|guest| *guest.cookie == *cookie)?)))
    }

    /// The guest to whom the tokens used in a room are charged.
    pub fn speaker(&self, channel: &ChannelId) -> Option<Speaker> {
        let mut guests = self.0.values().filter(|one| one.channel == *channel).flat_map(|one| &one.guests);
        guests.find_map(|guest| {
            let (cookie, name) = (guest.cookie.clone(), guest.name.clone());
            guest.speaking.map(|speaking| Speaker { cookie, name, speaking })
        })
    }

    /// The channels of a guild with invitations.
    pub fn channels(&self, guild: &GuildId) -> BTreeSet<ChannelId> {
        self.0.values().filter(|one| one.guild == *guild).map(|one| one.channel.clone()).collect()
    }

    /// What the guests of a guild used on the day of `now`, by name. Guests who used nothing are left out.
    pub fn used_by(&self, guild: &GuildId, now: Moment) -> BTreeMap<Arc<str>, UsedToday> {
        let mut sums = BTreeMap::<_, UsedToday>::new();
        for guest in self.0.values().filter(|one| one.guild == *guild).flat_map(|one| &one.guests) {
            let used = guest.used.on(now);
            if used != UsedToday::default().on(now) {
                let sum = sums.entry(guest.name.clone()).or_insert_with(|| UsedToday::default().on(now));
                sum.messages = sum.messages.saturating_add(used.messages);
                sum.voice_ms = sum.voice_ms.saturating_add(used.voice_ms);
                sum.tokens = sum.tokens.saturating_add(used.tokens);
            }
        }
        sums
    }

    /// Charges tokens to a guest, unless they are already counted. Returns the changed invitation.
    pub fn count(&mut self, used: &UsedFor, now: Moment) -> Option<Arc<str>> {
        let (id, all, guest) = self.guest_mut(&used.speaker.cookie)?;
        if guest.speaking != Some(used.speaker.speaking) {
            return None;
        }
        guest.speaking = used.next;
        for sum in [all, &mut guest.used] {
            *sum = sum.on(now);
            sum.add(Amount::Tokens(used.tokens));
        }
        Some(id.clone())
    }

    /// Charges further tokens in the room to this guest. Returns the changed invitations.
    fn speaks(&mut self, cookie: &str, speaking: Speaking) -> BTreeSet<Arc<str>> {
        let Some(channel) = self.guest(cookie).map(|(_, one, _)| one.channel.clone()) else { return BTreeSet::new() };
        let mut changed = BTreeSet::new();
        for (id, one) in self.0.iter_mut().filter(|(_, one)| one.channel == channel) {
            for guest in &mut one.guests {
                let now = (*guest.cookie == *cookie).then_some(speaking);
                if guest.speaking != now {
                    guest.speaking = now;
                    changed.insert(id.clone());
                }
            }
        }
        changed
    }

    /// Ends a guest's visit. Returns the changed invitation.
    pub fn leave(&mut self, cookie: &str, now: Moment) -> Option<Arc<str>> {
        let (id, _, guest) = self.guest_mut(cookie)?;
        guest.left_at.get_or_insert(now);
        Some(id.clone())
    }

    /// The names of a room's guests whose visits have ended.
    pub fn former(&self, channel: &ChannelId, now: Moment) -> BTreeSet<Arc<str>> {
        let guests = |is_here: bool| {
            let of_room = self.0.values().filter(|one| one.channel == *channel);
            let all = of_room.flat_map(|one| one.guests.iter().map(|guest| (one.is_open(now) && guest.left_at.is_none(), guest)));
            all.filter(move |(is_in, _)| *is_in == is_here).map(|(_, guest)| guest.name.clone()).collect::<BTreeSet<_>>()
        };
        &guests(false) - &guests(true)
    }

    /// Ends an invitation to this room, and the visits of its guests. Returns false if there is no such invitation.
    pub fn revoke(&mut self, channel: &ChannelId, id: &str, now: Moment) -> bool {
        let Some(invitation) = self.0.get_mut(id).filter(|one| one.channel == *channel) else { return false };
        invitation.revoked_at.get_or_insert(now);
        true
    }

    /// Ends the visit of the guest of this name, who cannot come back with the invitation, and frees the place. Returns false if there is no such guest.
    pub fn remove_guest(&mut self, channel: &ChannelId, id: &str, name: &str, now: Moment) -> bool {
        let invitation = self.0.get_mut(id).filter(|one| one.channel == *channel);
        let Some(guest) = invitation.and_then(|one| one.guests.iter_mut().find(|guest| *guest.name == *name)) else {
            return false;
        };
        guest.left_at.get_or_insert(now);
        guest.removed_at.get_or_insert(now);
        true
    }

    /// Counts a guest's use at this moment, after this event. Refuses it if the visit has ended, or if a limit is used up by the
    /// guest or by all guests of the invitation together. Returns the changed invitations.
    pub fn consume_quota(
        &mut self,
        cookie: &str,
        amount: Amount,
        [each, together]: [&Bounds; 2],
        at: Speaking,
    ) -> Result<BTreeSet<Arc<str>>, NotTaken> {
        let now = at.since;
        let is_here = self.visit(cookie, now).is_some();
        let (id, all, guest) = self.guest_mut(cookie).filter(|_| is_here).ok_or(NotTaken::NotHere)?;
        (*all, guest.used) = (all.on(now), guest.used.on(now));
        let used_up = guest.used.used_up(amount, each).or_else(|| all.used_up(amount, together));
        if let Some(used_up) = used_up {
            return Err(NotTaken::UsedUp(used_up));
        }
        all.add(amount);
        guest.used.add(amount);
        let mut changed = BTreeSet::from([id.clone()]);
        changed.extend(self.speaks(cookie, at));
        Ok(changed)
    }

    /// Removes the invitations to a deleted room. Returns their ids.
    pub fn remove_room(&mut self, channel: &ChannelId) -> BTreeSet<Arc<str>> {
        self.remove(|one| one.channel == *channel)
    }

    /// Removes the invitations that ended long ago. Returns their ids.
    pub fn remove_old(&mut self, now: Moment) -> BTreeSet<Arc<str>> {
        self.remove(|one| one.ended_at(now).is_some_and(|ended_at| now.since(ended_at) > REMEMBERED))
    }

    fn remove(&mut self, is_gone: impl Fn(&Invitation) -> bool) -> BTreeSet<Arc<str>> {
        let gone: BTreeSet<_> = self.0.iter().filter(|(_, one)| is_gone(one)).map(|(id, _)| id.clone()).collect();
        self.0.retain(|id, _| !gone.contains(id));
        gone
    }

    /// Removes the guests of a guild with this name, and ends their visits. The invitation's total use does not change. Returns
    /// the changed invitations.
    pub fn forget(&mut self, guild: &GuildId, name: &str) -> BTreeSet<Arc<str>> {
        let mut changed = BTreeSet::new();
        for (id, one) in self.0.iter_mut().filter(|(_, one)| one.guild == *guild) {
            let before = one.guests.len();
            one.guests.retain(|guest| *guest.name != *name);
            if one.guests.len() < before {
                changed.insert(id.clone());
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { messages_per_day: 3, voice_minutes_per_day: 1, tokens_per_day: 1_000 };
    const WIDE: Bounds = Bounds { messages_per_day: 100, voice_minutes_per_day: 100, tokens_per_day: 100_000 };
    const NOON: Moment = Moment::from_micros(1_777_636_800_000_000);

    fn after(secs: u64) -> Moment {
        NOON + Duration::from_secs(secs)
    }

    fn lobby() -> Invitations {
        let mut all = Invitations::default();
        assert!(all.add("one".into(), new("lobby", "secret", Some(after(3_600)), 3), NOON));
        all
    }

    fn new(channel: &str, secret: &str, ends_at: Option<Moment>, most_guests: u8) -> InvitationPlan {
        InvitationPlan {
            guild: "home".into(),
            channel: channel.into(),
            secret: secret.into(),
            from: Seq(7),
            ends_at,
            most_guests,
            knows_before: true,
        }
    }

    fn at(since: Moment) -> Speaking {
        Speaking { since, after: Seq(9) }
    }

    fn newcomer(name: &str, cookie: &str, former: &[&str]) -> Newcomer {
        Newcomer { name: name.into(), cookie: cookie.into(), former: former.iter().map(|one| (*one).into()).collect() }
    }

    #[test]
    fn a_guest_is_in_the_room_until_the_invitation_ends() {
        let mut all = lobby();

        let visit = all.join("secret", newcomer("Ben", "b", &[]), after(1)).unwrap();

        assert_eq!((&*visit.name, visit.channel.as_str(), visit.from), ("Ben", "lobby", Seq(7)));
        assert_eq!(all.visit("b", after(3_599)), Some(visit));
        assert_eq!(all.visit("b", after(3_600)), None);
        assert_eq!(all.join("secret", newcomer("Cleo", "c", &[]), after(3_600)), Err(NotLetIn::NotOpen));
        assert_eq!(all.join("guess", newcomer("Cleo", "c", &[]), after(1)), Err(NotLetIn::NotOpen));
    }

    #[test]
    fn revoking_ends_the_visits() {
        let mut all = lobby();
        all.join("secret", newcomer("Ben", "b", &[]), NOON).unwrap();

        assert!(!all.revoke(&"attic".into(), "one", after(1)), "of another room");
        assert!(all.visit("b", after(2)).is_some());
        assert!(all.revoke(&"lobby".into(), "one", after(2)));

        assert_eq!(all.visit("b", after(2)), None);
        assert_eq!(all.consume_quota("b", Amount::Message, [&BOUNDS, &WIDE], at(after(2))), Err(NotTaken::NotHere));
        assert_eq!(all.join("secret", newcomer("Ben", "b2", &["b"]), after(3)), Err(NotLetIn::NotOpen));
    }

    #[test]
    fn a_name_is_taken_once_in_a_guild_also_by_one_that_looks_like_it() {
        let mut all = lobby();
        assert!(all.add("two".into(), new("attic", "other", None, 3), NOON));
        all.join("secret", newcomer("Ben", "b", &[]), NOON).unwrap();

        let refused = [("secret", "Ben"), ("secret", "bEn"), ("other", "B\u{435}n")]
            .map(|(secret, name)| all.join(secret, newcomer(name, "m", &[]), NOON).unwrap_err());

        assert_eq!(refused, [NotLetIn::NameTaken; 3]);
        all.leave("b", after(1));
        assert_eq!(all.join("secret", newcomer("Ben", "m", &[]), after(2)), Err(NotLetIn::NameTaken), "of somebody who left");
        assert!(all.join("other", newcomer("Ben", "b2", &["b"]), after(2)).is_ok(), "the same browser, in another room");
    }

    #[test]
    fn who_comes_back_has_the_same_name_and_what_was_used() {
        let mut all = lobby();
        all.join("secret", newcomer("Ben", "b", &[]), NOON).unwrap();
        for _ in 0..3 {
            all.consume_quota("b", Amount::Message, [&BOUNDS, &WIDE], at(NOON)).unwrap();
        }
        all.leave("b", after(1));

        assert_eq!(all.visit("b", after(1)), None);
        assert_eq!(all.join("secret", newcomer("Max", "b2", &["b"]), after(2)), Err(NotLetIn::NameTaken));
        assert_eq!(all.name_chosen("secret", &["b".into()], after(2)).as_deref(), Some("Ben"));
        all.join("secret", newcomer("Ben", "b2", &["b"]), after(2)).unwrap();
        assert_eq!(all.visit("b", after(2)), None, "the cookie before is no longer valid");
        assert_eq!(all.consume_quota("b", Amount::Message, [&BOUNDS, &WIDE], at(after(2))), Err(NotTaken::NotHere));
        assert_eq!(
            all.consume_quota("b2", Amount::Message, [&BOUNDS, &WIDE], at(after(2))),
            Err(NotTaken::UsedUp(UsedUp::Messages))
        );
    }

    #[test]
    fn an_invitation_has_a_number_of_guests_with_those_who_left() {
        let mut all = lobby();
        for (name, cookie) in [("Ben", "b"), ("Cleo", "c"), ("Dora", "d")] {
            all.join("secret", newcomer(name, cookie, &[]), NOON).unwrap();
            all.leave(cookie, NOON);
        }

        assert_eq!(all.join("secret", newcomer("Emil", "e", &[]), NOON), Err(NotLetIn::Full));
    }

    #[test]
    fn a_removed_guest_is_out_and_leaves_a_place_but_not_the_name() {
        let mut all = Invitations::default();
        assert!(all.add("one".into(), new("lobby", "secret", None, 1), NOON));
        all.join("secret", newcomer("Ben", "b", &[]), NOON).unwrap();

        assert!(
            !all.remove_guest(&"attic".into(), "one", "Ben", after(1))
                && !all.remove_guest(&"lobby".into(), "one", "Max", after(1))
        );
        assert!(all.remove_guest(&"lobby".into(), "one", "Ben", after(1)));

        assert_eq!(all.visit("b", after(1)), None);
        assert_eq!(all.join("secret", newcomer("Ben", "b2", &["b"]), after(2)), Err(NotLetIn::NotOpen));
        assert_eq!(all.name_chosen("secret", &["b".into()], after(2)), None);
        assert_eq!(all.join("secret", newcomer("Ben", "m", &[]), after(2)), Err(NotLetIn::NameTaken), "of somebody else");
        assert!(all.join("secret", newcomer("Cleo", "c", &[]), after(2)).is_ok());
        // The operator may invite the same person again.
        assert!(all.add("two".into(), new("lobby", "other", None, 1), NOON));
        assert_eq!(all.last_name(&"home".into(), &["b".into()]).as_deref(), Some("Ben"));
        assert!(all.join("other", newcomer("Ben", "b3", &["b"]), after(3)).is_ok());
    }

    #[test]
    fn what_guests_use_is_bounded_for_each_and_for_all_of_an_invitation() {
        let mut all = Invitations::default();
        assert!(all.add("one".into(), new("lobby", "secret", None, 3), NOON));
        for (name, cookie) in [("Ben", "b"), ("Cleo", "c")] {
            all.join("secret", newcomer(name, cookie, &[]), NOON).unwrap();
        }
        let together = Bounds { messages_per_day: 5, ..WIDE };
        let mut say = |cookie: &str, now| all.consume_quota(cookie, Amount::Message, [&BOUNDS, &together], at(now)).map(drop);

        let of_ben = [0; 4].map(|_| say("b", NOON));
        let of_cleo = [0; 3].map(|_| say("c", NOON));

        assert_eq!(of_ben, [Ok(()), Ok(()), Ok(()), Err(NotTaken::UsedUp(UsedUp::Messages))]);
        assert_eq!(of_cleo, [Ok(()), Ok(()), Err(NotTaken::UsedUp(UsedUp::Messages))], "the link has none left");
        assert_eq!(say("b", after(DAY_SECS)), Ok(()), "on the next day");
    }

    #[test]
    fn who_has_used_up_the_tokens_says_nothing_more() {
        let mut all = lobby();
        all.join("secret", newcomer("Ben", "b", &[]), NOON).unwrap();
        let mut take = |amount| {
            if let Amount::Tokens(tokens) = amount {
                let speaker = all.speaker(&"lobby".into()).expect("Ben speaks");
                return all.count(&UsedFor { speaker, tokens, next: None }, NOON).map(drop).ok_or(NotTaken::NotHere);
            }
            all.consume_quota("b", amount, [&BOUNDS, &WIDE], at(NOON)).map(drop)
        };

        assert_eq!(take(Amount::Voice(Duration::from_secs(59))), Ok(()));
        assert_eq!(take(Amount::Voice(Duration::from_secs(1))), Ok(()));
        assert_eq!(take(Amount::Voice(Duration::from_secs(1))), Err(NotTaken::UsedUp(UsedUp::Voice)));
        assert_eq!(take(Amount::Tokens(5_000)), Ok(()));
        assert_eq!([Amount::Message, Amount::Voice(Duration::ZERO)].map(take), [Err(NotTaken::UsedUp(UsedUp::Tokens)); 2]);
    }

    #[test]
    fn what_models_use_counts_once_for_the_visit_that_used_something_last() {
        let mut all = lobby();
        assert!(all.add("two".into(), new("lobby", "other", None, 3), NOON));
        all.join("secret", newcomer("Ben", "b", &[]), NOON).unwrap();
        all.join("other", newcomer("Ben", "c", &["b"]), NOON).unwrap();
        let used = |all: &Invitations| [all.get("one"), all.get("two")].map(|one| one.unwrap().used.tokens);

        all.consume_quota("b", Amount::Message, [&BOUNDS, &WIDE], at(after(1))).unwrap();
        let speaker = all.speaker(&"lobby".into()).unwrap();
        let first = UsedFor { speaker, tokens: 7, next: Some(at(after(2))) };
        assert!(all.count(&first, after(2)).is_some() && all.count(&first, after(2)).is_none());
        assert_eq!(used(&all), [7, 0], "by the same browser with the same name, by another link");

        all.consume_quota("c", Amount::Message, [&BOUNDS, &WIDE], at(after(3))).unwrap();
        let speaker = all.speaker(&"lobby".into()).unwrap();
        assert_eq!((&*speaker.cookie, speaker.speaking), ("c", at(after(3))));
        assert!(all.count(&UsedFor { speaker, tokens: 5, next: None }, after(4)).is_some());
        assert_eq!((used(&all), all.speaker(&"lobby".into()).is_none()), ([7, 5], true));
    }

    #[test]
    fn a_room_has_few_open_invitations_and_old_ones_are_removed() {
        let mut all = Invitations::default();
        for number in 0..MOST_OPEN {
            let secret = format!("s{number}");
            assert!(all.add(secret.clone().into(), new("lobby", &secret, Some(after(60)), 1), NOON));
        }

        assert!(!all.add("more".into(), new("lobby", "more", None, 1), NOON));
        assert!(all.add("later".into(), new("lobby", "later", None, 1), after(60)));
        assert!(all.remove_old(after(61)).is_empty());
        assert_eq!(all.remove_old(after(60) + REMEMBERED + Duration::from_secs(1)).len(), MOST_OPEN);
        assert_eq!(all.remove_room(&"lobby".into()), BTreeSet::from(["later".into()]));
        assert_eq!(all, Invitations::default());
    }

    #[test]
    fn a_person_who_is_forgotten_has_no_visit_and_no_name_any_more() {
        let mut all = lobby();
        all.join("secret", newcomer("Ben", "b", &[]), NOON).unwrap();
        all.consume_quota("b", Amount::Message, [&BOUNDS, &WIDE], at(NOON)).unwrap();

        assert_eq!(all.forget(&"home".into(), "Ben"), BTreeSet::from(["one".into()]));

        assert_eq!(all.visit("b", NOON), None);
        assert_eq!(all.get("one").unwrap().used.messages, 1);
        assert!(!format!("{all:?}").contains("Ben"));
    }
}
