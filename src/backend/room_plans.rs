//! Validates the plans and patches of rooms in requests.

use serde_json::json;

use super::ActorBackend;
use super::errors::invalid;
use super::suggestions::folded;
use crate::actors::membership::memberships::external_companion;
use crate::domain::id::CompanionId;
use crate::domain::lookalike::look_alike;
use crate::journal::membership::{External, Membership};
use crate::ports::backend::room::{Invited, MOST_IN_A_ROOM, Override, RoomId, RoomPlan};
use crate::ports::backend::{Detail, Refused};
use crate::settings::companion::{Companion, Overrides};
use crate::settings::console;

impl ActorBackend {
    pub(super) fn check_plan(&self, plan: &RoomPlan, existing: Option<&Membership>, room: &RoomId) -> Result<(), Refused> {
        if let Some(existing) = existing.filter(|existing| existing.guild != plan.guild) {
            return Err(Refused::conflict(format!(
                "room {} belongs to guild {}, which cannot change; name that guild, or create another room",
                self.name_of(room),
                existing.guild
            )));
        }
        // On other platforms, the platform determines the guild, so it is not checked.
        if self.is_written_here(room) {
            console::check_room_name(plan.guild.as_str())
                .map_err(|message| invalid("guild", message.strip_prefix("= ").unwrap_or(&message)))?;
        }
        if let Override::Set(language) = &plan.language
            && let Some(message) = self.context.in_force().speech.problem_of(language)
        {
            return Err(invalid("language", message.strip_prefix("= ").unwrap_or(&message)));
        }
        let cast = self.context.memberships.companions();
        let new = || Membership::empty(plan.guild.clone(), self.context.clock.now());
        let membership = existing.cloned().unwrap_or_else(new);
        for (index, invited) in plan.companions.iter().enumerate() {
            let field = format!("companions[{index}]");
            let is_elsewhere = cast.get(&invited.id).is_some_and(|companion| !companion.is_of(&plan.guild));
            let is_new = !membership.companions.contains(&invited.id) && !invited.external;
            if is_elsewhere && is_new {
                let values = json!({ "id": invited.id });
                return Err(invalid(field, Detail::of("refusals.other_guild", values)));
            }
            if is_new {
                self.check_adults(&membership, &invited.id).map_err(Refused::conflict)?;
            }
            if invited.external && !self.is_written_here(room) {
                let id = &invited.id;
                let detail = format!(
                    "{id} is external, and external companions cannot be in channels of {} yet; name one of this server's companions, or add {id} to \
                     a room of the console",
                    self.platform(room)
                );
                return Err(Refused::conflict(format!("{field}: {detail}")));
            }
            match (invited.external, cast.contains_key(&invited.id)) {
                (false, true) => {}
                // The stored room takes precedence over a companion that was configured later.
                (true, true) if existing.is_some_and(|existing| existing.is_external(&invited.id)) => {}
                (true, true) => {
                    let detail = format!(
                        "{field}: {id} is one of this server's companions and cannot be external; leave external out, or choose another id",
                        id = invited.id
                    );
                    let detail = Detail::from(detail).coded("refusals.not_external", json!({ "id": invited.id }));
                    return Err(Refused::conflict(detail));
                }
                (true, false) => self.check_external(&field, invited)?,
                (false, false) => {
                    let configured = cast.keys().map(CompanionId::as_str).collect::<Vec<_>>().join(", ");
                    let id = &invited.id;
                    let detail = format!(
                        "there is no companion {id}, there are {configured}; an external companion is given as {{\"id\": \"{id}\", \"external\": \
                         true}}"
                    );
                    return Err(invalid(field, Detail::from(detail).coded("refusals.no_companion", json!({ "id": id }))));
                }
            }
        }
        if plan.companions.len() > MOST_IN_A_ROOM {
            let count = plan.companions.len();
            return Err(invalid(
                "companions",
                Detail::of("refusals.too_many_companions", json!({ "count": count, "most": MOST_IN_A_ROOM })),
            ));
        }
        Ok(())
    }

    /// Rejects a title that looks the same as the name of another room of the console.
    pub(super) fn check_title(&self, title: &str, room: Option<&RoomId>) -> Result<(), Refused> {
        let memberships = &self.context.memberships;
        let listed = memberships.all().into_iter().map(|(channel, _)| (channel, None));
        let deleting = memberships.all_deleting().into_iter().map(|(channel, at)| (channel, Some(at)));
        let others = listed.chain(deleting).filter_map(|(channel, at)| Some((RoomId::of(&channel)?, at)));
        let mut others = others.filter(|(other, _)| Some(other) != room && self.is_written_here(other));
        let is_equal = |name: &str| folded(name) == folded(title);
        match others.find(|(other, _)| is_equal(&self.name_of(other)) || is_equal(other.as_str())) {
            Some((other, Some(at))) => Err(Refused::conflict(self.being_deleted(&other, at))),
            Some((other, None)) => {
                Err(Refused::conflict(Detail::of("refusals.room_exists", json!({ "room": self.name_of(&other) }))))
            }
            None => Ok(()),
        }
    }

    pub(super) fn check_models(&self, overrides: &Overrides, id: &str) -> Result<(), Refused> {
        let models = &self.context.settings.models;
        match overrides.model.chosen().find_map(|(role, name)| Some((role, models.problem_of(role, name)?))) {
            None => Ok(()),
            Some((role, problem)) => {
                let message = problem.strip_prefix("= ").unwrap_or(&problem).to_owned();
                Err(invalid(format!("companions.{id}.model.{}", role.as_str()), message))
            }
        }
    }

    fn check_external(&self, field: &str, invited: &Invited) -> Result<(), Refused> {
        let Some((id, external)) = as_external(invited.clone()) else { return Ok(()) };
        let problems = match external_companion(&id, &external, &self.context.in_force().companion_defaults) {
            Ok(companion) => return self.check_looks(field, &companion),
            Err(problems) => problems,
        };
        match problems.into_iter().next() {
            None => Ok(()),
            Some(problem) => {
                let message = problem.message.strip_prefix("= ").unwrap_or(&problem.message);
                Err(invalid(format!("{field}.{}", problem.key), Detail::from(message).with(problem.code)))
            }
        }
    }

    /// Rejects an external companion whose name looks like that of one of this server's companions, in any room. A companion with the same id is
    /// not compared here: shared names within the guild are checked when the membership is stored.
    fn check_looks(&self, field: &str, external: &Companion) -> Result<(), Refused> {
        for ours in self.context.memberships.companions().values() {
            for (name, taken) in external.names().flat_map(|name| ours.names().map(move |taken| (name, taken))) {
                if external.id != ours.id && look_alike(name, taken) {
                    let detail = format!(
                        "{field}: {name:?}, a name of {}, looks like {taken:?}, a name of this server's companion {}; choose another name",
                        external.id, ours.id
                    );
                    let values = json!({ "name": name, "taken": taken, "other": ours.id });
                    return Err(Refused::conflict(Detail::from(detail).coded("refusals.looks_alike", values)));
                }
            }
        }
        Ok(())
    }
}

pub(super) fn as_external(invited: Invited) -> Option<(CompanionId, External)> {
    invited.external.then_some((invited.id, External { name: invited.name, aliases: invited.aliases }))
}
