//! Finds companions by name, and the choices for autocomplete.

use super::answering::Choice;
use super::interaction::{ChannelContext, Typing};
use super::quoting::verbatim;
use super::text::say;
use super::words::listed;
use super::{Answer, CommandHandler, registered};
use crate::ports::backend::room::{CompanionView, Room, RoomCompanion};

/// The limits of choices and of the characters in each (Discord's documentation, "Application Commands", "Application Command Option Choice").
const MOST_CHOICES: usize = 25;
const LONGEST_CHOICE: usize = 100;

impl CommandHandler {
    /// The companions that match the typed text: for `join`, those that are not in the room, for `companion` all, otherwise the room's members. A
    /// failed query counts as empty.
    pub(super) async fn choices(&self, typing: &Typing, here: &ChannelContext) -> Vec<Choice> {
        let at = typing.at.as_ref().unwrap_or(here);
        let present = self.room_or_future_room(at).await.ok().flatten().map(|room| room.companions).unwrap_or_default();
        let mut all = match typing.command.as_str() {
            registered::JOIN | registered::PROFILE => self.available(here).await.unwrap_or_default(),
            registered::OWN if here.user_may_manage_server() => {
                let own = self.visible(here).await.unwrap_or_default().into_iter().filter(|companion| companion.guild.is_some());
                own.map(as_member).collect()
            }
            registered::OWN => Vec::new(),
            _ => return offered(&present, &typing.typed),
        };
        all.retain(|companion| typing.command != registered::JOIN || !present.iter().any(|member| member.id == companion.id));
        offered(&all, &typing.typed)
    }

    /// The companions that may be in channels of this guild: those of the operator, and the guild's own.
    pub(super) async fn visible(&self, here: &ChannelContext) -> Result<Vec<CompanionView>, Answer> {
        let mut all = self.backend.rooms.companions().await?.companions;
        all.retain(|companion| companion.guild.as_ref().is_none_or(|guild| *guild == here.guild_id()));
        Ok(all)
    }

    /// The companions that may be in channels of this guild, as members without overrides.
    pub(super) async fn available(&self, here: &ChannelContext) -> Result<Vec<RoomCompanion>, Answer> {
        Ok(self.visible(here).await?.into_iter().map(as_member).collect())
    }

    /// The room of a channel, or the room that it becomes with its first message.
    pub(super) async fn room_or_future_room(&self, at: &ChannelContext) -> Result<Option<Room>, Answer> {
        match self.room(at).await? {
            Some(room) => Ok(Some(room)),
            None => self.future_room(at).await,
        }
    }

    /// The companion with this name that may be in channels of this guild.
    pub(super) async fn configured(&self, typed: &str, here: &ChannelContext) -> Result<RoomCompanion, Answer> {
        let all = self.available(here).await?;
        find(&all, typed).cloned().ok_or_else(|| {
            let known = listed(all.iter().take(MOST_CHOICES).map(|companion| &companion.name));
            Answer::Refused(say!(
                "There is no companion called “{typed}”. Available companions: {names}.",
                typed = verbatim(typed),
                names = known
            ))
        })
    }
}

/// Represents a companion as a member without overrides.
pub(super) fn as_member(companion: CompanionView) -> RoomCompanion {
    let CompanionView {
        id, name, aliases, interjection, quiet_hours, starts_after, max_turns, repetition, model, picture, ..
    } = companion;
    RoomCompanion {
        id,
        name,
        ai: true,
        about: None,
        aliases,
        interjection,
        quiet_hours,
        starts_after,
        max_turns,
        repetition,
        model,
        picture,
        ..RoomCompanion::default()
    }
}

/// The companion of a room with this name.
pub(super) fn member<'a>(room: &'a Room, typed: &str) -> Result<&'a RoomCompanion, Answer> {
    find(&room.companions, typed).ok_or_else(|| {
        let present = listed(room.companions.iter().map(|companion| &companion.name));
        Answer::Refused(say!(
            "“{typed}” is not in this channel. In this channel: {names}.",
            typed = verbatim(typed),
            names = present
        ))
    })
}

/// Finds a companion by id, name or alias, in this order.
pub(super) fn find<'a>(all: &'a [RoomCompanion], typed: &str) -> Option<&'a RoomCompanion> {
    let typed = typed.trim().to_lowercase();
    let matches = |text: &str| text.to_lowercase() == typed;
    all.iter()
        .find(|companion| companion.id.as_str() == typed)
        .or_else(|| all.iter().find(|companion| matches(companion.id.as_str()) || matches(&companion.name)))
        .or_else(|| all.iter().find(|companion| companion.aliases.iter().any(|alias| matches(alias))))
}

/// The companions that match the typed text: first those with a name or id that begins with it, then those with an alias that begins with it, then
/// those with a name, id or alias that contains it. Otherwise the order is kept.
pub(super) fn offered(all: &[RoomCompanion], typed: &str) -> Vec<Choice> {
    let typed = typed.trim().to_lowercase();
    let rank = |companion: &RoomCompanion| {
        let own = [companion.name.to_lowercase(), companion.id.as_str().to_lowercase()];
        let others: Vec<_> = companion.aliases.iter().map(|alias| alias.to_lowercase()).collect();
        if own.iter().any(|name| name.starts_with(&typed)) {
            Some(0)
        } else if others.iter().any(|name| name.starts_with(&typed)) {
            Some(1)
        } else {
            own.iter().chain(&others).any(|name| name.contains(&typed)).then_some(2)
        }
    };
    let mut found: Vec<_> = all.iter().filter_map(|companion| Some((rank(companion)?, companion))).collect();
    found.sort_by_key(|(rank, _)| *rank);
    let choice = |companion: &RoomCompanion| {
        let (name, id) = (&companion.name, companion.id.as_str());
        let shown = if name.to_lowercase() == id.to_lowercase() { name.to_string() } else { format!("{name} ({id})") };
        Choice { name: shown.chars().take(LONGEST_CHOICE).collect(), value: id.to_owned() }
    };
    let is_sendable = |choice: &Choice| !choice.name.trim().is_empty() && choice.value.chars().count() <= LONGEST_CHOICE;
    found.into_iter().map(|(_, companion)| choice(companion)).filter(is_sendable).take(MOST_CHOICES).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn names_that_begin_with_the_typed_text_are_first() {
        let all = [one("mira", "Mira", &["starling"]), one("aria", "Aria", &["ari", "Mi"]), one("bob", "Bartholomew", &[])];
        let offered = |typed: &str| offered(&all, typed).into_iter().map(|choice| choice.name).collect::<Vec<_>>();

        assert_eq!(offered(""), ["Mira", "Aria", "Bartholomew (bob)"]);
        assert_eq!(offered("MI"), ["Mira", "Aria"]);
        assert_eq!(offered("ar"), ["Aria", "Mira", "Bartholomew (bob)"]);
        assert_eq!(offered("bo"), ["Bartholomew (bob)"]);
        assert_eq!(offered("zed"), [""; 0]);
    }

    #[test]
    fn at_most_as_many_choices_are_offered_as_discord_shows() {
        let all: Vec<_> = (0..60).map(|number| one(&format!("c{number}"), &"ü".repeat(120), &[])).collect();

        let offered = offered(&all, "");

        assert_eq!(offered.len(), MOST_CHOICES);
        assert!(offered.iter().all(|choice| choice.name.chars().count() == LONGEST_CHOICE));
    }

    #[test]
    fn a_name_is_found_in_any_case() {
        let all = [one("mira", "Mira", &["star"]), one("star", "Vega", &[])];
        let found = |typed: &str| find(&all, typed).map(|companion| companion.id.to_string());

        assert_eq!(found("star").as_deref(), Some("star"), "an id takes precedence over an alias");
        assert_eq!(found(" MIRA ").as_deref(), Some("mira"));
        assert_eq!(found("vega").as_deref(), Some("star"));
        assert_eq!(found("mir"), None);
        assert_eq!(found(""), None);
    }

    pub fn one(id: &str, name: &str, aliases: &[&str]) -> RoomCompanion {
        RoomCompanion {
            id: id.into(),
            name: name.into(),
            ai: true,
            about: None,
            aliases: aliases.iter().map(|alias| (*alias).into()).collect(),
            interjection: "average".into(),
            repetition: true,
            ..RoomCompanion::default()
        }
    }
}
