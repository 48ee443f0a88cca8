//! Which companion is meant, and what is offered while somebody types a name.

use std::sync::Arc;

use super::answering::Choice;
use super::interaction::{Typing, Where};
use super::words::{listed, verbatim};
use super::{Desk, Said, registered};
use crate::domain::id::CompanionId;
use crate::ports::backend::room::{CompanionView, Room, RoomCompanion};

/// As many choices as Discord shows, and characters of each (Discord's documentation, "Application Commands", "Application Command Option
/// Choice").
const MOST_CHOICES: usize = 25;
const LONGEST_CHOICE: usize = 100;

/// Somebody who can be chosen by name.
pub(super) trait Named {
    fn id(&self) -> &CompanionId;
    fn name(&self) -> &Arc<str>;
    fn aliases(&self) -> &[Arc<str>];
}

impl Named for CompanionView {
    fn id(&self) -> &CompanionId {
        &self.id
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn aliases(&self) -> &[Arc<str>] {
        &self.aliases
    }
}

impl Named for RoomCompanion {
    fn id(&self) -> &CompanionId {
        &self.id
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn aliases(&self) -> &[Arc<str>] {
        &self.aliases
    }
}

impl Desk {
    /// Whoever could be meant so far. Nobody, if that cannot be told at the moment.
    pub(super) async fn choices(&self, typing: &Typing, here: &Where) -> Vec<Choice> {
        let at = typing.at.as_ref().unwrap_or(here);
        let present = self.living(at).await.ok().flatten().map(|room| room.companions).unwrap_or_default();
        if typing.command != registered::JOIN {
            return offered(&present, &typing.typed);
        }
        let all = self.backend.companions().await.map(|all| all.companions).unwrap_or_default();
        let absent: Vec<_> = all.into_iter().filter(|one| !present.iter().any(|there| there.id == one.id)).collect();
        offered(&absent, &typing.typed)
    }

    /// Who lives in a channel, or would as soon as something is said there.
    pub(super) async fn living(&self, at: &Where) -> Result<Option<Room>, Said> {
        match self.room(at).await? {
            Some(room) => Ok(Some(room)),
            None => self.would_be(at).await,
        }
    }

    /// The companion of this server that goes by this name.
    pub(super) async fn configured(&self, typed: &str) -> Result<CompanionView, Said> {
        let all = self.backend.companions().await?.companions;
        called(&all, typed).cloned().ok_or_else(|| {
            let known = listed(all.iter().take(MOST_CHOICES).map(|one| &one.name));
            Said::Refused(format!("There is no companion called “{}”. There are: {known}.", verbatim(typed)))
        })
    }
}

/// A companion as it lives where nobody changed anything about it.
pub(super) fn as_member(one: CompanionView) -> RoomCompanion {
    let CompanionView { id, name, aliases, interjection, .. } = one;
    RoomCompanion { id, name, aliases, external: false, interjection, paused: false }
}

/// The companion of a room that goes by this name.
pub(super) fn member<'a>(room: &'a Room, typed: &str) -> Result<&'a RoomCompanion, Said> {
    called(&room.companions, typed).ok_or_else(|| {
        let present = listed(room.companions.iter().map(|one| &one.name));
        Said::Refused(format!("“{}” is not in this channel. Who is: {present}.", verbatim(typed)))
    })
}

/// Whoever goes by this id, name or alias, in this order.
pub(super) fn called<'a, T: Named>(all: &'a [T], typed: &str) -> Option<&'a T> {
    let typed = typed.trim().to_lowercase();
    let is = |text: &str| text.to_lowercase() == typed;
    all.iter()
        .find(|one| one.id().as_str() == typed)
        .or_else(|| all.iter().find(|one| is(one.id().as_str()) || is(one.name())))
        .or_else(|| all.iter().find(|one| one.aliases().iter().any(|alias| is(alias))))
}

/// Whoever has what was typed in a name of theirs; first those whose name begins so, then those with a name that does, then the rest; in the
/// order that they came in.
pub(super) fn offered<T: Named>(all: &[T], typed: &str) -> Vec<Choice> {
    let typed = typed.trim().to_lowercase();
    let rank = |one: &T| {
        let own = [one.name().to_lowercase(), one.id().as_str().to_lowercase()];
        let others: Vec<_> = one.aliases().iter().map(|alias| alias.to_lowercase()).collect();
        if own.iter().any(|name| name.starts_with(&typed)) {
            Some(0)
        } else if others.iter().any(|name| name.starts_with(&typed)) {
            Some(1)
        } else {
            own.iter().chain(&others).any(|name| name.contains(&typed)).then_some(2)
        }
    };
    let mut found: Vec<_> = all.iter().filter_map(|one| Some((rank(one)?, one))).collect();
    found.sort_by_key(|(rank, _)| *rank);
    let choice = |one: &T| {
        let (name, id) = (one.name(), one.id().as_str());
        let shown = if name.to_lowercase() == id.to_lowercase() { name.to_string() } else { format!("{name} ({id})") };
        Choice { name: shown.chars().take(LONGEST_CHOICE).collect(), value: id.to_owned() }
    };
    let is_sendable = |choice: &Choice| !choice.name.trim().is_empty() && choice.value.chars().count() <= LONGEST_CHOICE;
    found.into_iter().map(|(_, one)| choice(one)).filter(is_sendable).take(MOST_CHOICES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_begins_so_comes_first() {
        let all = [one("mira", "Mira", &["starling"]), one("aria", "Aria", &["ari", "Mi"]), one("bob", "Bartholomew", &[])];
        let offered = |typed: &str| offered(&all, typed).into_iter().map(|choice| choice.name).collect::<Vec<_>>();

        assert_eq!(offered(""), ["Mira", "Aria", "Bartholomew (bob)"]);
        assert_eq!(offered("MI"), ["Mira", "Aria"]);
        assert_eq!(offered("ar"), ["Aria", "Mira", "Bartholomew (bob)"]);
        assert_eq!(offered("bo"), ["Bartholomew (bob)"]);
        assert_eq!(offered("zed"), [""; 0]);
    }

    #[test]
    fn no_more_is_offered_than_discord_shows() {
        let all: Vec<_> = (0..60).map(|number| one(&format!("c{number}"), &"ü".repeat(120), &[])).collect();

        let offered = offered(&all, "");

        assert_eq!(offered.len(), MOST_CHOICES);
        assert!(offered.iter().all(|choice| choice.name.chars().count() == LONGEST_CHOICE));
    }

    #[test]
    fn a_name_is_found_however_it_is_written() {
        let all = [one("mira", "Mira", &["star"]), one("star", "Vega", &[])];
        let found = |typed: &str| called(&all, typed).map(|one| one.id.to_string());

        assert_eq!(found("star").as_deref(), Some("star"), "an id goes before an alias");
        assert_eq!(found(" MIRA ").as_deref(), Some("mira"));
        assert_eq!(found("vega").as_deref(), Some("star"));
        assert_eq!(found("mir"), None);
        assert_eq!(found(""), None);
    }

    fn one(id: &str, name: &str, aliases: &[&str]) -> RoomCompanion {
        RoomCompanion {
            id: id.into(),
            name: name.into(),
            aliases: aliases.iter().map(|alias| (*alias).into()).collect(),
            external: false,
            interjection: "average".into(),
            paused: false,
        }
    }
}
