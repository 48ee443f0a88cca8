//! Explains the rules that decide without asking a model, or that overrule its answer, and what the user can do about them.

use serde_json::json;

use super::Scene;
use crate::domain::budget::{Budget, UsedUp};
use crate::domain::decision::Reason;
use crate::domain::event::{Decided, Recorded};
use crate::domain::moment::Moment;
use crate::domain::policy::quiet_hours::QuietHours;
use crate::domain::relevance::Estimate;
use crate::ports::backend::decisions::StoryLine;
use crate::story::Subject;
use crate::story::words::{Told, span};

/// The estimate of the pre-gate, and its features.
fn estimate(who: &Subject, estimate: &Estimate) -> Told {
    let (logit, threshold) = (format!("{:.2}", estimate.logit), format!("{:.2}", estimate.threshold));
    let estimated = who.sentence("why.rules.irrelevant", &[("logit", &logit), ("threshold", &threshold)]);
    let Some(mut parts) = estimate.parts() else { return estimated };
    parts.sort_by(|(_, one), (_, other)| other.abs().total_cmp(&one.abs()));
    let features: Vec<_> = parts.iter().map(|(feature, part)| format!("{feature} {part:+.2}")).collect();
    estimated.and(Some(who.sentence("why.rules.features", &[("features", &features.join(", "))])))
}

impl Scene<'_> {
    /// The change of circumstances or settings that would lead to another decision, with the current settings.
    pub(super) fn rule(&self, who: &Subject, recorded: &Recorded, decided: &Decided) -> Option<StoryLine> {
        let told = match decided.reason {
            Reason::Budget => self.used_up(who, recorded, decided.used_up.as_ref()?)?,
            Reason::Closed => who.sentence("why.rules.closed", &[("count", &self.backend.context.settings.closing.reopen_after)]),
            Reason::Paused => return self.pause(who, recorded),
            Reason::NoInitiative => self.quiet(who, recorded.at)?,
            Reason::Irrelevant => estimate(who, decided.relevance.as_deref()?),
            reason @ (Reason::Unpostable | Reason::LoopGuard | Reason::Unreadable) => {
                who.sentence(&format!("why.rules.{reason}"), &[])
            }
            _ => return None,
        };
        Some(told.line(recorded, "rule"))
    }

    /// Why a companion speaks only when spoken to at this time, with the current settings.
    pub(super) fn quiet(&self, who: &Subject, at: Moment) -> Option<Told> {
        let (settings, guild) = (self.backend.context.in_force(), &self.channel_key.guild);
        if self.backend.context.memberships.has_minors(&self.channel_key.channel) {
            return Some(who.sentence("why.rules.minors", &[]));
        }
        let policies = self.backend.context.memberships.policies(&self.channel_key.channel);
        let [own, of_room] = policies.get(&who.id)?.quiet_hours;
        let of_guild = settings.gate.guild_quiet_hours.get(guild).copied().unwrap_or_default();
        let zone = settings.prompt.zone_of(guild);
        let (key, hours) = [("why.rules.quiet", own), ("why.rules.room_quiet", of_room), ("why.rules.guild_quiet", of_guild)]
            .into_iter()
            .find(|(_, hours)| hours.include(at, zone))?;
        let key_of_when = if hours == QuietHours::Always { "why.quiet.always" } else { "why.quiet.hours" };
        Some(who.sentence(key, &[("when", &who.say(key_of_when, &[("hours", &hours)]))]))
    }

    /// A line saying that the pause continues, and the request that ends it.
    fn pause(&self, who: &Subject, recorded: &Recorded) -> Option<StoryLine> {
        let own = self.membership.overrides.get(&who.id).is_some_and(|overrides| overrides.paused == Some(true));
        let of_companion = json!({ &*who.id.to_string(): { "paused": null } });
        let (key, change) = match (self.membership.paused, own) {
            (false, false) => return None,
            (true, false) => ("why.rules.room_paused", json!({ "paused": false })),
            (false, true) => ("why.rules.own_paused", json!({ "companions": of_companion })),
            (true, true) => ("why.rules.both_paused", json!({ "paused": false, "companions": of_companion })),
        };
        let setting = Some(format!("PATCH /api/rooms/{} {change}", self.room).into());
        Some(StoryLine { setting, ..who.sentence(key, &[]).line(recorded, "rule") })
    }

    /// The exhausted budget, as recorded. `None` if that limit does not exist any more.
    fn used_up(&self, who: &Subject, recorded: &Recorded, used_up: &UsedUp) -> Option<Told> {
        let settings = self.backend.context.in_force();
        let most = match used_up.budget {
            Budget::Evaluations => settings.gate.evaluations_per_hour.to_string(),
            Budget::GuildEvaluations => settings.gate.guild_evaluations_per_hour.to_string(),
            Budget::Addresses => settings.gate.addresses_per_minute.to_string(),
            Budget::GuildStatements => settings.gate.guild_statements_per_day.to_string(),
            Budget::GuildTokens => settings.models.guild_tokens_per_day?.to_string(),
        };
        let free = |at: Moment| who.sentence("why.rules.free_later", &[("time", &span(at.since(recorded.at), who.language))]);
        let limit = who.sentence(&format!("why.limits.{}", used_up.budget), &[("count", &most)]);
        Some(limit.and(used_up.free_at.map(free)))
    }
}
