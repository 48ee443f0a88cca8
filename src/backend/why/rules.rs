//! Explains the rules that decide without asking a model, or that overrule its answer, and what the user can do about them.

use super::Scene;
use crate::domain::budget::{Budget, UsedUp};
use crate::domain::decision::Reason;
use crate::domain::event::{Decided, Recorded};
use crate::story::Subject;
use crate::story::words::{messages_in_words, secs};

impl Scene<'_> {
    /// The rule that decided, with its current settings, and what would lead to another decision.
    pub(super) fn rule(&self, who: &Subject, recorded: &Recorded, decided: &Decided) -> Option<String> {
        let settings = &self.backend.context.settings;
        let name = &who.name;
        Some(match decided.reason {
            Reason::OtherAddressed => format!(
                "Messages that are clearly meant for somebody else are ignored (gate.skip_when_other_addressed). To be asked, {name} \
                 must be named or answered, or the setting must be false."
            ),
            Reason::Budget => match &decided.used_up {
                Some(used_up) => self.used_up(who, recorded, used_up),
                None => "The record of this decision does not name the budget.".to_owned(),
            },
            Reason::Unpostable => "The platform rejected the last statement here, and would reject any other: the log and `/tertulia status` say \
                 why. Posting is tried again with the first statement after ten minutes, or once the bot's permissions here have changed."
                .to_owned(),
            Reason::LoopGuard => {
                let most = settings.turn_taking.max_companion_streak;
                format!(
                    "At most {most} statements of companions may follow each other without a person (turn_taking.max_companion_streak). A \
                     message by a person lets them continue; a greater number lets them talk longer, a smaller one stops them sooner."
                )
            }
            Reason::Closed => {
                let after = messages_in_words(settings.closing.reopen_after as usize);
                format!(
                    "It comes back when a person addresses it, after {after} by people (closing.reopen_after), or in a new conversation."
                )
            }
            Reason::Cancelled => "A message that is a stop phrase alone (reply.stop_phrases) cancels the statement that was about to answer, or ends \
                 the question whether to answer its author, and nobody is asked about the same words. With more words in it, the statement is begun again instead."
                .to_owned(),
            Reason::Backchannel => "Words like “mhm” that are spoken while a companion speaks (speech.words) settle at once. They count for nothing, \
                 and nobody is asked about them."
                .to_owned(),
            Reason::Paused => self.pause(who),
            Reason::Overflow => format!(
                "At most {} wait to be considered (gate.max_buffer), and the oldest settle first. {name} was not free to consider them: \
                 see what it waited for before.",
                messages_in_words(settings.gate.max_buffer)
            ),
            Reason::Stale => format!(
                "Messages that are older than {} are not answered any more (gate.stale_after_secs; a direct address waits {} over a restart, \
                 gate.stale_address_after_secs): no answer came in that time, or the server was down.",
                secs(settings.gate.stale_after()),
                secs(settings.gate.stale_address_after())
            ),
            Reason::Unreadable => {
                "A model has to answer with YES or NO, or in JSON with a decision. A companion that is addressed speaks all the same; other \
                 triggers count as NO. Another model (models.side) may follow better."
                    .to_owned()
            }
            Reason::Event => format!(
                "An event is acknowledged by the companion that it names, else by the one that spoke least recently. At most {} statements a \
                 minute acknowledge events (gate.acknowledgements_per_minute); further events wait, and are acknowledged together.",
                settings.gate.acknowledgements_per_minute
            ),
            Reason::ModelYes | Reason::ModelNo | Reason::External => return None,
        })
    }

    /// How to resume the companion, if it is still paused.
    fn pause(&self, who: &Subject) -> String {
        let room = &self.room;
        let own = self.membership.overrides.get(&who.id).is_some_and(|overrides| overrides.paused == Some(true));
        let own_way = format!("\"companions\": {{\"{}\": {{\"paused\": null}}}}", who.id);
        match (self.membership.paused, own) {
            (false, false) => "That pause is over: new messages are considered.".to_owned(),
            (true, false) => {
                format!("The whole room is paused: PATCH /api/rooms/{room} with {{\"paused\": false}} resumes it.")
            }
            (false, true) => format!("PATCH /api/rooms/{room} with {{{own_way}}} resumes it, or the page."),
            (true, true) => format!(
                "The whole room is paused, and {} itself, too: PATCH /api/rooms/{room} with {{\"paused\": false, {own_way}}} resumes it.",
                who.name
            ),
        }
    }

    /// The budget that was used up, as it was recorded.
    fn used_up(&self, who: &Subject, recorded: &Recorded, used_up: &UsedUp) -> String {
        let settings = &self.backend.context.settings;
        let gate = &settings.gate;
        let tokens = settings.models.guild_tokens_per_day.map_or_else(|| "none".to_owned(), |most| most.to_string());
        let (what, setting, most) = match used_up.budget {
            Budget::Evaluations => (
                format!("the hourly question budget of {} in this room", who.name),
                "gate.evaluations_per_hour",
                gate.evaluations_per_hour.to_string(),
            ),
            Budget::GuildEvaluations => (
                "the guild's hourly question budget".to_owned(),
                "gate.guild_evaluations_per_hour",
                gate.guild_evaluations_per_hour.to_string(),
            ),
            Budget::Addresses => (
                "the number of messages per minute in which one person may address companions".to_owned(),
                "gate.addresses_per_minute",
                gate.addresses_per_minute.to_string(),
            ),
            Budget::GuildStatements => (
                "the guild's daily statement budget".to_owned(),
                "gate.guild_statements_per_day",
                gate.guild_statements_per_day.to_string(),
            ),
            Budget::GuildTokens => ("the guild's daily token budget".to_owned(), "models.guild_tokens_per_day", tokens),
        };
        let free = match used_up.free_at {
            Some(at) => format!("One more was possible after {}, if nothing was used until then.", secs(at.since(recorded.at))),
            None => "This setting never allows any.".to_owned(),
        };
        format!("Used up: {what} ({setting}, {most} now). {free}")
    }
}
