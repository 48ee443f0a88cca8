//! Explains what a companion is waiting for now.

use std::sync::Arc;
use std::time::Duration;

use super::super::state::CurrentState;
use super::Scene;
use crate::actors::runtime::actor_keys::SwitchboardKey;
use crate::domain::budget::Budget;
use crate::domain::event::{Event, Recorded};
use crate::domain::gate::Gate;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::moment::Moment;
use crate::domain::round::Round;
use crate::domain::vote::Stance;
use crate::journal::reader::{Range, ReadError};
use crate::ports::backend::decisions::WaitingFor;
use crate::ports::backend::state::OutOfService;
use crate::settings::companion::Companion;
use crate::story::Subject;
use crate::story::words::{self, listed, span};

/// The number of events that are searched for the reason why a question got no answer.
const MAX_SEARCHED: usize = 256;

impl Scene<'_> {
    /// The conditions under which a companion is asked. `None` if its settings are unknown.
    pub(super) async fn waiting_for(&self, who: &Subject, current: &CurrentState) -> Option<WaitingFor> {
        let settings = who.settings.as_ref()?;
        let conversation = &current.inspection.conversation;
        let companion = &who.id;
        let now = self.backend.context.clock.now();
        let unsettled = conversation.gate(companion).map_or(0, |_| conversation.buffer(companion).count());
        let waits = |text: String| Some(WaitingFor { text, messages: None, lull_at: None, retry_at: None, unsettled });
        let says = |key: &str| waits(who.say(key, &[]));
        let says_in = |key: &str, until: Moment| waits(who.say(key, &[("time", &span(until.since(now), who.language))]));
        if self.backend.context.memberships.excludes(&self.membership, companion) {
            return says("why.waiting.excluded");
        }
        if self.membership.is_paused(companion) {
            return says("why.waiting.paused");
        }
        if let Some(OutOfService { until, .. }) = &current.out_of_service {
            return match (until, current.is_incomplete) {
                (Some(until), false) => says_in("why.waiting.suspended", until.0),
                (Some(until), true) => says_in("why.waiting.unreadable_until", until.0),
                (None, true) => says("why.waiting.unreadable"),
                (None, false) => says("why.waiting.failing"),
            };
        }
        let Some(gate) = conversation.gate(companion) else { return says("why.waiting.nothing_said") };
        if conversation.turns().owed_replies().any(|floor| floor.companion == *companion) {
            return says("why.waiting.speaking");
        }
        if let Some(turn) = conversation.turns().selected().filter(|turn| turn.candidate.companion == *companion) {
            return match turn.speak_at.filter(|at| *at > now) {
                Some(at) => says_in("why.waiting.speaks_in", at),
                None => says("why.waiting.speaks_soon"),
            };
        }
        if gate.evaluation.is_some() {
            return says(match (self.is_served(), gate.external) {
                (false, _) => "why.waiting.server",
                (true, true) => "why.waiting.program",
                (true, false) => "why.waiting.thinking",
            });
        }
        if gate.wish.is_some() {
            let is_of = |round: &&Round| round.states().any(|state| state.from == *companion && state.state == Stance::Speak);
            let round = conversation.turns().rounds().iter().find(is_of);
            let missing: Vec<_> = round.into_iter().flat_map(Round::missing).map(|id| self.name(id)).collect();
            if missing.is_empty() {
                return says("why.waiting.turn");
            }
            let names = listed(&missing, who.language);
            return waits(who.say("why.waiting.others", &[("names", &names), ("count", &missing.len())]));
        }
        if gate.is_closed() {
            let missing = u64::from(self.backend.context.settings.closing.reopen_after.saturating_sub(gate.heard_closed));
            let text = who.say("why.waiting.goodbye", &[("count", &missing)]);
            return Some(WaitingFor { text, messages: Some(missing), lull_at: None, retry_at: None, unsettled });
        }
        if let Some(retry_at) = gate.retry_at() {
            let text = self.retry(who, retry_at, now).await;
            return Some(WaitingFor { text, messages: None, lull_at: None, retry_at: Some(retry_at.into()), unsettled });
        }
        if gate.waiting.is_some() {
            // The companion's trigger has fired, but another companion is being asked, votes, or speaks.
            if let Some(until) = conversation.events_deferred_until().filter(|_| gate.owes_acknowledgement()) {
                return says_in("why.waiting.acknowledges", until);
            }
            let floor = conversation.turns().floor().map(|floor| &floor.companion);
            return match floor.or(conversation.turns().selected().map(|turn| &turn.candidate.companion)) {
                Some(busy) => waits(who.say("why.waiting.after", &[("busy", &self.name(busy))])),
                None if !conversation.turns().rounds().is_empty() => says("why.waiting.after_all"),
                None => says("why.waiting.soon"),
            };
        }
        let waiting = self.anything(who, gate, settings, now, unsettled);
        if let Some(quiet) = self.quiet(who, now) {
            return Some(WaitingFor { text: quiet.text, messages: None, ..waiting });
        }
        let limit = self.backend.context.settings.turn_taking.max_companion_streak;
        if conversation.tally().streak >= limit {
            return Some(WaitingFor { text: who.say("why.waiting.person", &[]), ..waiting });
        }
        Some(waiting)
    }

    /// Adds the budget to the text, if the companion was silent at its newest decision because a budget of the guild was used up,
    /// and that budget still is.
    pub(super) async fn once_allowed(
        &self,
        newest: Option<&Recorded>,
        waiting: Option<WaitingFor>,
    ) -> Result<Option<WaitingFor>, ReadError> {
        let budget = newest.and_then(|recorded| {
            let Event::Decided(decided) = &recorded.event else { return None };
            decided.used_up.map(|used_up| used_up.budget)
        });
        // A companion that is busy or paused, or waits for something else, does not wait for the budget.
        let (Some(budget @ (Budget::GuildStatements | Budget::GuildTokens)), Some(waiting)) =
            (budget, waiting.clone().filter(|waiting| waiting.messages.is_some()))
        else {
            return Ok(waiting);
        };
        let now = self.backend.context.clock.now();
        let caps = self.backend.caps(&self.channel_key.guild, now).await?;
        let (cap, key) = match budget {
            Budget::GuildTokens => (caps.tokens, "why.waiting.tokens"),
            _ => (caps.statements, "why.waiting.statements"),
        };
        // The budget may be free by now, or its limit may be greater.
        if !cap.is_used_up() {
            return Ok(Some(waiting));
        }
        let free =
            cap.free_at.map(|at| self.language.say("why.waiting.free", &[("time", &span(at.0.since(now), self.language))]));
        let sentences = [Some(self.language.say(key, &[])), free, Some(waiting.text)];
        Ok(Some(WaitingFor { text: sentences.into_iter().flatten().collect::<Vec<_>>().join(" "), ..waiting }))
    }

    /// The conditions under which an idle companion considers speaking.
    fn anything(&self, who: &Subject, gate: &Gate, settings: &Companion, now: Moment, unsettled: usize) -> WaitingFor {
        let interval = settings.policy().interval(0, 0);
        let missing = gate.next_interjection_at.unwrap_or(interval).saturating_sub(gate.message_counter).max(1);
        let left = gate.lull_at.or(gate.silence_at).map(|at| at.since(now));
        let time = span(left.unwrap_or_default(), who.language);
        let say = |key| who.say(key, &[("count", &missing), ("time", &time)]);
        let text = match left {
            Some(Duration::ZERO) if gate.lull_at.is_some() && !self.is_served() => say("why.waiting.server"),
            Some(_) if gate.lull_at.is_some() => say("why.waiting.lull"),
            Some(_) => format!("{} {}", say("why.waiting.messages"), say("why.waiting.silence")),
            None => say("why.waiting.messages"),
        };
        WaitingFor { text, messages: Some(missing), lull_at: gate.lull_at.map(Into::into), retry_at: None, unsettled }
    }

    async fn retry(&self, who: &Subject, retry_at: Moment, now: Moment) -> String {
        let left = retry_at.since(now).as_secs_f64().ceil();
        let key = match (left > 0.0, self.is_served()) {
            (true, _) => "why.waiting.retry",
            (false, true) => "why.waiting.retry_soon",
            (false, false) => "why.waiting.retry_server",
        };
        let retry = who.sentence(key, &[("time", &span(Duration::from_secs_f64(left), who.language))]);
        match self.last_error(&who.id).await {
            Some(error) => words::failed(who, &error).and(Some(retry)).text,
            None => retry.text,
        }
    }

    /// Why the newest question of a companion got no answer, if that is among the newest events.
    async fn last_error(&self, companion: &CompanionId) -> Option<Arc<str>> {
        let range = Range { after: Seq::NONE, before: None, limit: MAX_SEARCHED, newest_first: true };
        let events = self.entries(range).await.ok()?.events;
        events.into_iter().find_map(|recorded| {
            let Event::Unanswered { companion: whose, error, .. } = recorded.event else { return None };
            (whose == *companion).then_some(error)
        })
    }

    /// Whether a server is running, rather than only a command that reads its store.
    pub(super) fn is_served(&self) -> bool {
        self.backend.context.directory.find(&SwitchboardKey()).is_some()
    }
}
