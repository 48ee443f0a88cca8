//! Says what a companion is waiting for now.

use std::sync::Arc;

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
use crate::ports::language_model::{ModelRole, NoAnswer};
use crate::settings::companion::Companion;
use crate::story::Subject;
use crate::story::words::{messages_in_words, secs};

/// How many events are searched for the reason why a question got no answer.
const MAX_SEARCHED: usize = 256;

impl Scene<'_> {
    /// What must happen before a companion is asked. None if its settings are not known.
    pub(super) async fn waiting_for(&self, who: &Subject, current: &CurrentState) -> Option<WaitingFor> {
        let settings = who.settings.as_ref()?;
        let conversation = &current.inspection.conversation;
        let companion = &who.id;
        let now = self.backend.context.clock.now();
        let unsettled = conversation.gate(companion).map_or(0, |_| conversation.buffer(companion).count());
        let nothing =
            |text: &str| Some(WaitingFor { text: text.into(), messages: None, lull_at: None, retry_at: None, unsettled });
        if self.membership.is_paused(companion) {
            return nothing("an operator, who paused it and can resume it");
        }
        if let Some(OutOfService { until, .. }) = &current.out_of_service {
            let why = if current.is_incomplete { "its record cannot be read" } else { "it crashed repeatedly" };
            return nothing(&match until.map(|until| secs(until.0.since(now))) {
                Some(left) => format!(
                    "its room, which is out of service: {why}. The room is restarted in {left}, or when an operator releases it \
                     (GET /api/quarantine)"
                ),
                None if current.is_incomplete => {
                    "its room, which is out of service: its record cannot be read; `tertulia history verify` says what is wrong"
                        .to_owned()
                }
                None => {
                    "its room, which is out of service: the server panics when it restores the room from its record; see the log"
                        .to_owned()
                }
            });
        }
        let Some(gate) = conversation.gate(companion) else { return nothing("the first message") };
        if conversation.turns().owed_replies().any(|floor| floor.companion == *companion) {
            return nothing("the end of its own statement: it is speaking");
        }
        if let Some(turn) = conversation.turns().selected().filter(|turn| turn.candidate.companion == *companion) {
            let text = match turn.speak_at.map(|at| at.since(now)).filter(|left| !left.is_zero()) {
                Some(left) => format!("{} before it speaks: it was selected", secs(left)),
                None => "a moment before it speaks: it was selected".to_owned(),
            };
            return nothing(&text);
        }
        if gate.evaluation.is_some() {
            return nothing(match (self.is_served(), gate.external) {
                (false, _) => "the server: its open question is asked again once the server runs",
                (true, true) => "the vote of the program that plays it",
                (true, false) => "the model's answer: it is being asked",
            });
        }
        if gate.wish.is_some() {
            let is_of = |round: &&Round| round.states().any(|state| state.from == *companion && state.state == Stance::Speak);
            let round = conversation.turns().rounds().iter().find(is_of);
            let missing: Vec<_> = round.into_iter().flat_map(Round::missing).map(|id| self.name(id)).collect();
            let what = if missing.is_empty() { "the floor".to_owned() } else { format!("the votes of {}", missing.join(", ")) };
            return nothing(&format!("{what}: it wants to speak"));
        }
        if gate.is_closed() {
            let missing = u64::from(self.backend.context.settings.closing.reopen_after.saturating_sub(gate.heard_closed));
            let more = if missing == 1 { "one more human message".to_owned() } else { format!("{missing} more human messages") };
            let text = format!("{more}, its name, or a new conversation: it has ended this one");
            return Some(WaitingFor { text, messages: Some(missing), lull_at: None, retry_at: None, unsettled });
        }
        if let Some(retry_at) = gate.retry_at() {
            let text = self.retry(who, gate, retry_at, now).await;
            return Some(WaitingFor { text, messages: None, lull_at: None, retry_at: Some(retry_at.into()), unsettled });
        }
        if gate.waiting.is_some() {
            // Its trigger has fired, but another companion is being asked, votes, or speaks.
            let floor = conversation.turns().floor().map(|floor| &floor.companion);
            let busy = floor.or(conversation.turns().selected().map(|turn| &turn.candidate.companion));
            if let Some(until) = conversation.events_deferred_until().filter(|_| gate.owes_acknowledgement()) {
                let left = secs(until.since(now));
                return nothing(&format!(
                    "its name, or {left} until it acknowledges an event (gate.acknowledgements_per_minute)"
                ));
            }
            return nothing(&match busy {
                Some(busy) => format!("{} to finish speaking; it may be asked then", self.name(busy)),
                None if !conversation.turns().rounds().is_empty() => "the end of the round; it may be asked then".to_owned(),
                None => "its turn to be asked".to_owned(),
            });
        }
        Some(self.anything(gate, settings, now, unsettled))
    }

    /// The same, if the companion was silent at its newest decision because a budget of the guild was used up, and it still is.
    pub(super) async fn once_allowed(
        &self,
        newest: Option<&Recorded>,
        waiting: Option<WaitingFor>,
    ) -> Result<Option<WaitingFor>, ReadError> {
        let budget = newest.and_then(|recorded| {
            let Event::Decided(decided) = &recorded.event else { return None };
            decided.used_up.map(|used_up| used_up.budget)
        });
        // This does not apply to a companion that is busy or paused, or waits for something else.
        let (Some(budget @ (Budget::GuildStatements | Budget::GuildTokens)), Some(waiting)) =
            (budget, waiting.clone().filter(|waiting| waiting.messages.is_some()))
        else {
            return Ok(waiting);
        };
        let now = self.backend.context.clock.now();
        let caps = self.backend.caps(&self.channel_key.guild, now).await?;
        let (cap, what) = match budget {
            Budget::GuildTokens => (caps.tokens, "the guild's daily token budget (models.guild_tokens_per_day)"),
            _ => (caps.statements, "the guild's daily statement budget (gate.guild_statements_per_day)"),
        };
        // The budget may be free by now, or its limit may be greater.
        if !cap.is_used_up() {
            return Ok(Some(waiting));
        }
        let free = cap.free_at.map_or_else(|| "which is 0".to_owned(), |at| format!("free again in {}", secs(at.0.since(now))));
        let text = format!("{what}, {free}; then for {}", waiting.text);
        Ok(Some(WaitingFor { text, ..waiting }))
    }

    /// What would make an idle companion consider speaking.
    fn anything(&self, gate: &Gate, settings: &Companion, now: Moment, unsettled: usize) -> WaitingFor {
        let interval = settings.policy().interval(0, 0);
        let missing = gate.next_interjection_at.unwrap_or(interval).saturating_sub(gate.message_counter).max(1);
        let more = if missing == 1 { "one more message".to_owned() } else { format!("{missing} more messages") };
        let text = match gate.lull_at.map(|lull_at| lull_at.since(now)) {
            Some(left) if left.is_zero() && !self.is_served() => {
                "the server: the pause was long enough, and the companion is asked once the server runs".to_owned()
            }
            Some(left) => format!("{more}, {} of quiet, or its name", secs(left)),
            None => match gate.silence_at.map(|silence_at| silence_at.since(now)) {
                Some(left) => format!("{more}, {} of silence, after which it may start a conversation, or its name", secs(left)),
                None => format!("{more}, or its name"),
            },
        };
        WaitingFor { text, messages: Some(missing), lull_at: gate.lull_at.map(Into::into), retry_at: None, unsettled }
    }

    async fn retry(&self, who: &Subject, gate: &Gate, retry_at: Moment, now: Moment) -> String {
        let seconds = retry_at.since(now).as_secs_f64().ceil();
        let when = if seconds > 0.0 {
            format!("another try in {seconds} s")
        } else if self.is_served() {
            "another try at any moment".to_owned()
        } else {
            "another try once the server runs".to_owned()
        };
        if gate.external {
            return format!("{when}, because the program that plays it did not vote in time");
        }
        if self.last_error(&who.id).await.is_some_and(|error| &*error == NoAnswer::NoPrompt.code()) {
            return format!("{when}, because the prompt could not be built, which is a bug of this program; see the log");
        }
        let failures = self.backend.context.pool.report().await.map(|pool| pool.troubles).unwrap_or_default();
        let model = who.settings.as_ref().map_or_else(|| ModelRole::Side.into(), |settings| settings.model.side.clone());
        let failure = failures.iter().find(|failure| failure.role == ModelRole::Side && failure.name == model);
        let why = failure.map(|failure| format!(" ({})", failure.in_our_words)).unwrap_or_default();
        format!("{when}, because the model gave no answer{why}")
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

    /// Whether a server is running, and not only a command that reads its store.
    pub(super) fn is_served(&self) -> bool {
        self.backend.context.directory.find(&SwitchboardKey()).is_some()
    }

    /// What an unsettled message waits for, given what its companion waits for.
    pub(super) fn still_waits(unsettled: usize, waiting: &WaitingFor) -> String {
        let together =
            if unsettled > 1 { format!(", together with {}", messages_in_words(unsettled - 1)) } else { String::new() };
        format!("It is not settled yet{together}. It waits for {}.", waiting.text)
    }
}
