//! Checks whether a change of companions could be put into force. The check comes before anything is written.

use serde_json::json;

use super::Setup;
use super::fields::refused;
use super::written::read;
use crate::actors::membership::memberships::{CompanionSet, ReloadError};
use crate::cards;
use crate::cards::picture;
use crate::domain::id::{ChannelId, CompanionId, GuildId};
use crate::domain::lookalike::look_alike;
use crate::domain::names::SharedName;
use crate::journal::membership::Membership;
use crate::ports::backend::room::{MOST_IN_A_ROOM, RoomId};
use crate::ports::backend::{Detail, Refused};
use crate::server::model_setup::invalid;
use crate::server::reload::{Turn, without_models};
use crate::settings::companion::Companion;
use crate::settings::{Overlay, checked};

impl Setup {
    /// The companion that a file with this text describes.
    pub(super) fn draft(&self, id: &CompanionId, text: &str) -> Result<Companion, Refused> {
        let companion = checked(read(text)?, id, &self.context.in_force())
            .map_err(|problems| problems.into_iter().next().map_or_else(|| invalid("companion", "cannot be used"), refused))?;
        let models = [companion.model.clone()].into_iter().flat_map(|model| [model.main, model.side]);
        match models.into_iter().find(|model| !self.context.pool.has(model)) {
            None => Ok(companion),
            Some(model) => Err(invalid("companion.model", Detail::of("refusals.no_model", json!({ "model": model })))),
        }
    }

    /// Checks that the companions can be put into force after `change`. In the overlay, `change` replaces companion `id` by a new text, or removes
    /// it with `None`. It may also change other entries.
    pub(super) async fn check(
        &self,
        turn: &Turn,
        id: &CompanionId,
        change: impl FnOnce(&mut Overlay) + Send,
    ) -> Result<(), Refused> {
        let mut loaded = self.reloading.read(turn, None, change).await.map_err(|problems| {
            Refused::conflict(Detail::of("refusals.settings_errors", json!({ "problems": problems.join("; ") })))
        })?;
        if loaded.left_out.contains(id) {
            let problems: Vec<_> = loaded.broken.iter().map(ToString::to_string).collect();
            return Err(Refused::conflict(Detail::of("refusals.settings_errors", json!({ "problems": problems.join("; ") }))));
        }
        let companions = self.reloading.with_kept(&mut loaded);
        if let Some(other) = without_models(&self.context, &companions) {
            return Err(Refused::conflict(Detail::of("refusals.new_model", json!({ "companion": other.id }))));
        }
        self.context.memberships.allows_companions(&companions).map_err(|error| Refused::conflict(error.to_string()))
    }

    /// Checks that no other companion in its guilds has a name of this companion.
    pub(super) fn check_names(&self, companion: &Companion) -> Result<(), Refused> {
        let mut companions = CompanionSet::clone(&self.context.memberships.companions());
        companions.insert(companion.id.clone(), companion.clone());
        match self.context.memberships.allows_companions(&companions) {
            Err(ReloadError::SharedName(shared)) if [&shared.first, &shared.second].contains(&&companion.id) => {
                Err(taken(companion, shared))
            }
            // Errors of other companions are reported by the check of the whole.
            _ => Ok(()),
        }
    }

    /// Checks that a guild may have another companion of its own.
    pub(super) fn check_own(&self, guild: &GuildId) -> Result<(), Refused> {
        let companions = self.context.memberships.companions();
        let count = companions.values().filter(|companion| companion.guild.as_ref() == Some(guild)).count();
        let most = self.context.settings.discord.own_companions;
        if count < most as usize {
            return Ok(());
        }
        Err(Refused::conflict(Detail::of("refusals.own_companions", json!({ "most": most }))))
    }

    /// Checks that people of a guild can tell its own companion from all others that may be in its channels.
    pub(super) fn check_own_names(&self, companion: &Companion, guild: &GuildId) -> Result<(), Refused> {
        let companions = self.context.memberships.companions();
        for other in companions.values().filter(|other| other.id != companion.id && other.is_of(guild)) {
            let is_alike = |taken: &str| is_same(&companion.name, taken) || look_alike(&companion.name, taken);
            if other.names().any(is_alike) {
                let values = json!({ "name": companion.name, "other": other.name });
                return Err(invalid("companion.name", Detail::of("refusals.companion_name_taken", values)));
            }
        }
        Ok(())
    }

    /// Checks that a new companion can join a room. Returns the room's membership with the companion.
    pub(super) fn check_room(&self, companion: &Companion, room: &RoomId) -> Result<(ChannelId, Membership), Refused> {
        let channel = room.channel();
        let membership = self.context.memberships.get(&channel);
        let mut membership =
            membership.ok_or_else(|| Refused::not_found(Detail::of("refusals.no_room", json!({ "room": room }))))?;
        membership.companions.insert(companion.id.clone());
        membership.stands_alone = membership.within.is_some();
        let count = membership.companions.len();
        if count > MOST_IN_A_ROOM {
            let values = json!({ "count": count, "most": MOST_IN_A_ROOM });
            return Err(Refused::conflict(Detail::of("refusals.too_many_companions", values)));
        }
        let mut cast = CompanionSet::clone(&self.context.memberships.companions());
        cast.insert(companion.id.clone(), companion.clone());
        let allowed = self.context.memberships.allows_with(&channel, &membership, &cast);
        allowed.map_err(|shared| taken(companion, shared))?;
        Ok((channel, membership))
    }
}

/// The error for a name that another companion has.
fn taken(companion: &Companion, shared: SharedName) -> Refused {
    let SharedName { name, first, second } = shared;
    let other = if first == companion.id { second } else { first };
    let is_alias = companion.aliases.iter().any(|alias| is_same(alias, &name)) && !is_same(&companion.name, &name);
    let field = if is_alias { "companion.aliases" } else { "companion.name" };
    invalid(field, Detail::of("refusals.companion_name_taken", json!({ "name": name, "other": other })))
}

fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// The picture, if a companion can have it.
pub(super) async fn checked_picture(bytes: Vec<u8>) -> Result<Vec<u8>, Refused> {
    let outcome = super::blocking(move || picture::check(&bytes).map(|_| bytes)).await?;
    outcome.map_err(|error| invalid("picture", error.to_string()))
}

/// A character card, and the picture around it if a companion can have that picture.
pub(super) async fn checked_card(bytes: Vec<u8>) -> Result<(Vec<u8>, Option<Vec<u8>>), Refused> {
    let outcome = super::blocking(move || {
        let card = cards::read(&bytes)?;
        let picture = card.picture.filter(|picture| picture::check(picture).is_ok());
        Ok::<_, cards::NotACard>((bytes, picture))
    });
    outcome.await?.map_err(|error| invalid("card", error.to_string()))
}
