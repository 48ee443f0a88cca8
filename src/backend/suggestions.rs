//! Error messages for missing items, which list the existing ones.

use std::collections::BTreeSet;

use serde_json::json;
use unicode_normalization::UnicodeNormalization as _;

use super::ActorBackend;
use super::errors::no_room;
use crate::actors::runtime::context::ActorContext;
use crate::domain::id::{GuildId, PersonId};
use crate::domain::text::{is_invisible, is_joining};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::membership::Membership;
use crate::journal::reader::Reader;
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Refused};

/// The number of existing ids that a message lists.
const MAX_NAMED: usize = 10;
/// The number of people that are searched for a similar id.
const MAX_SEARCHED: usize = 2_000;

/// Checks that a guild has a room or has used anything.
///
/// # Errors
/// Returns [`Refused::NotFound`] with the existing guilds if it has neither.
pub async fn check_guild(context: &ActorContext, guild: &GuildId) -> Result<(), Refused> {
    let has_members = context.memberships.all().into_iter().map(|(_, membership)| membership.guild);
    let mut guilds: BTreeSet<String> = has_members.map(|guild| guild.to_string()).collect();
    if guilds.contains(guild.as_str()) {
        return Ok(());
    }
    guilds.extend(Reader::new(&*context.store).guilds_with_usage().await?.iter().map(ToString::to_string));
    if guilds.contains(guild.as_str()) {
        return Ok(());
    }
    let instead = instead(guild.as_str(), &guilds, "GET /api/rooms");
    Err(Refused::not_found(format!("there is no guild {guild}: no room belongs to it, and it never used anything; {instead}")))
}

impl ActorBackend {
    /// An existing room. If it does not exist, the error lists others, but not for a channel of another platform: the caller may be a user there,
    /// who must not learn about other rooms.
    pub(super) fn room_to_read(&self, room: &RoomId) -> Result<(ChannelKey, Membership), Refused> {
        let is_known = self.context.memberships.recorded(&room.channel()).is_some();
        self.room_of(room).map_err(|refused| match refused {
            Refused::NotFound(_) if !is_known && self.is_written_here(room) => self.unknown_room(room.as_str()),
            refused => refused,
        })
    }

    /// The room with this id or title, ignoring case.
    pub(super) fn room_named(&self, name: &str) -> Result<RoomId, Refused> {
        let memberships = &self.context.memberships;
        if let Some(id) = RoomId::parse(name)
            && (memberships.recorded(&id.channel()).is_some() || !self.is_written_here(&id))
        {
            return self.room_of(&id).map(|_| id);
        }
        let wanted = folded(name.trim());
        let deleting = memberships.all_deleting().into_iter().map(|(channel, _)| channel);
        let rooms = memberships.all().into_iter().map(|(channel, _)| channel).chain(deleting);
        let mut rooms = rooms.filter_map(|channel| RoomId::of(&channel)).filter(|room| folded(&self.name_of(room)) == wanted);
        match (rooms.next(), rooms.next()) {
            (Some(room), None) => self.room_of(&room).map(|_| room),
            (None, _) => Err(self.unknown_room(name)),
            (Some(one), Some(other)) => Err(Refused::not_found(format!(
                "several rooms have the name {name}; give the id of one, such as {one} or {other}"
            ))),
        }
    }

    /// The error for an unknown room. It lists the rooms in which people write through this server.
    fn unknown_room(&self, name: &str) -> Refused {
        let rooms = self.context.memberships.all().into_iter().filter_map(|(channel, _)| RoomId::of(&channel));
        let rooms = rooms.filter(|room| self.is_written_here(room)).map(|room| with_id(&self.name_of(&room), &room)).collect();
        Refused::not_found(no_room(name, &format!("; {}", instead(name, &rooms, "GET /api/rooms"))))
    }

    /// The error that a guild's record contains nothing of a person, or that there is no such guild.
    pub(super) async fn nobody(&self, guild: &GuildId, person: &PersonId) -> Refused {
        if let Err(refused) = check_guild(&self.context, guild).await {
            return refused;
        }
        match self.people_of(guild).await {
            Ok(people) if people.is_empty() => {
                let id = person.as_str();
                let detail = format!("no message of {id} in {guild} is on record, nor of anybody else there");
                Refused::not_found(Detail::from(detail).coded("refusals.nobody", json!({ "person": id })))
            }
            Ok(people) => {
                let id = person.as_str();
                let detail = format!(
                    "no message of {id} in {guild} is on record; {}",
                    instead(id, &people, "`tertulia history export` lists all; ids from Discord look like discord:1234")
                );
                Refused::not_found(Detail::from(detail).coded("refusals.nobody", json!({ "person": id })))
            }
            Err(refused) => refused,
        }
    }

    /// The people with messages in a guild, at most [`MAX_SEARCHED`].
    async fn people_of(&self, guild: &GuildId) -> Result<BTreeSet<String>, Refused> {
        let (mut from, end) = (key::all_persons(guild), key::all_persons(guild).end());
        let mut people = BTreeSet::new();
        while people.len() < MAX_SEARCHED {
            let found = self.context.store.scan(from, end.clone(), false, 1).await?;
            let Some((key, _)) = found.first() else { break };
            let Some(person) = key::person_named_in(guild, key) else { break };
            from = key::person_entries(guild, &person).end();
            people.insert(person.to_string());
        }
        Ok(people)
    }
}

fn with_id(title: &str, room: &RoomId) -> String {
    if title == room.as_str() { room.to_string() } else { format!("{title} ({room})") }
}

/// A name in a normalised form, for comparisons that ignore case and the composition of characters.
pub(super) fn folded(name: &str) -> String {
    name.nfkc().filter(|c| !is_invisible(*c) && !is_joining(*c)).collect::<String>().to_lowercase()
}

/// Names the most similar id, or lists the existing ones.
fn instead(requested: &str, existing: &BTreeSet<String>, more: &str) -> String {
    let alike = |candidate: &str| strsim::normalized_damerau_levenshtein(&requested.to_lowercase(), &candidate.to_lowercase());
    if let Some(nearest) = existing.iter().max_by(|a, b| alike(a).total_cmp(&alike(b))).filter(|nearest| alike(nearest) > 0.6) {
        return format!("did you mean {nearest}?");
    }
    let named: Vec<_> = existing.iter().take(MAX_NAMED).map(String::as_str).collect();
    match existing.len() {
        0 => "there is none".to_owned(),
        count if count > MAX_NAMED => format!("there are {} and {} more ({more})", named.join(", "), count - MAX_NAMED),
        1 => format!("there is {}", named[0]),
        _ => format!("there are {}", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_a_similar_id_or_lists_the_existing_ones() {
        let known = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();

        assert_eq!(instead("hoem", &known(&["attic", "home"]), "-"), "did you mean home?");
        assert_eq!(instead("ANA", &known(&["Ana", "Ben"]), "-"), "did you mean Ana?");
        assert_eq!(instead("zzz", &known(&["Ana", "Ben"]), "-"), "there are Ana, Ben");
        assert_eq!(instead("zzz", &known(&["Ana"]), "-"), "there is Ana");
        assert_eq!(instead("zzz", &known(&[]), "-"), "there is none");
        let many: Vec<_> = (0..12).map(|number| format!("p{number:02}")).collect();
        let many = many.into_iter().collect();
        assert!(instead("zzz", &many, "a list").ends_with("p09 and 2 more (a list)"));
    }
}
