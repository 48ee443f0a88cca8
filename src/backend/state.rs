//! The current state of a room.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::ActorBackend;
use crate::actors::channel::folded::folded;
use crate::actors::messages::channel::Inspection;
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::runtime::actor_keys::SwitchboardKey;
use crate::actors::writer::requests::look;
use crate::domain::id::CompanionId;
use crate::domain::round::Round;
use crate::domain::turn::{OwedReply, Selected};
use crate::journal::channel_key::ChannelKey;
use crate::journal::membership::Membership;
use crate::journal::reader::{ReadError, RestoredSoFar};
use crate::ports::backend::state::{CompanionState, Doing, Floor, OutOfService, RoundState, TurnState};
use crate::settings::companion::Companion;

/// The current state of a channel, and why it is out of service, if it is.
pub(super) struct CurrentState {
    pub(super) inspection: Inspection,
    pub(super) out_of_service: Option<OutOfService>,
    /// Whether the record cannot be read to its end.
    pub(super) is_incomplete: bool,
}

impl ActorBackend {
    /// The current state of a channel: reported by the channel, or folded from the record if the channel is not running. A channel with pending
    /// work is woken.
    pub(super) async fn current_state(&self, channel_key: &ChannelKey) -> Result<CurrentState, ReadError> {
        if let Some(inspection) = look(&self.context, &channel_key.channel).await {
            return Ok(CurrentState { inspection, out_of_service: None, is_incomplete: false });
        }
        let RestoredSoFar { restored, wrong } = self.reader().restore_so_far(channel_key).await?;
        let snapshot = restored.snapshot.as_ref().map(|snapshot| snapshot.conversation.clone());
        // A record that crashes its channel may panic here, too.
        let conversation = catch_unwind(AssertUnwindSafe(|| folded(&self.context, channel_key, restored)));
        let mut out_of_service = self.out_of_service(channel_key).await;
        let conversation = conversation.unwrap_or_else(|_| {
            out_of_service.get_or_insert_with(fold_panicked);
            snapshot.unwrap_or_default()
        });
        if let Some(error) = &wrong {
            out_of_service.get_or_insert_with(|| incomplete(error)).detail.push_str("; the state up to there is shown");
        }
        // A channel whose record cannot be read is woken as well, so that it fails and is listed as suspended.
        if (wrong.is_some() || !conversation.is_at_rest())
            && let Some(switchboard) = self.context.directory.find(&SwitchboardKey())
        {
            // If the switchboard is being restarted, nothing is lost: accepted events are pending.
            let _ = switchboard.cast(SwitchboardMessage::Wake(channel_key.guild.clone(), channel_key.channel.clone()));
        }
        let inspection = Inspection { conversation, since: HashMap::new(), used_up: None, over_addresses: BTreeSet::new() };
        Ok(CurrentState { inspection, out_of_service, is_incomplete: wrong.is_some() })
    }

    pub(super) fn companion_state(
        &self,
        id: &CompanionId,
        settings: &Companion,
        membership: &Membership,
        inspection: &Inspection,
    ) -> CompanionState {
        let conversation = &inspection.conversation;
        let view = conversation.companions().find(|view| view.companion == id);
        let gate = view.as_ref().map(|view| view.gate);
        let paused = membership.is_paused(id) || gate.is_some_and(|gate| gate.paused);
        let doing = match view.as_ref().map(|view| view.doing) {
            Some(doing @ (Doing::Speaking | Doing::WaitingItsTurn)) => doing,
            _ if paused => Doing::Paused,
            doing => doing.unwrap_or(Doing::Listening),
        };
        let question = gate.and_then(|gate| gate.evaluation).filter(|_| doing == Doing::Asked);
        let floor = conversation.turns().owed_replies().find(|floor| doing == Doing::Speaking && floor.companion == *id);
        let ticket = question.map(|question| question.ticket).or(floor.map(|floor| floor.ticket));
        let trigger = match doing {
            Doing::Asked => question.map(|question| question.trigger),
            Doing::Speaking => floor.map(|floor| floor.trigger),
            Doing::WaitingItsTurn => conversation.turns().selected().map(|turn| turn.candidate.trigger),
            Doing::WantsToSpeak => gate.and_then(|gate| gate.wish.as_ref()).map(|wish| wish.trigger),
            Doing::BackOff => gate.and_then(|gate| gate.waiting).map(|waiting| waiting.trigger),
            Doing::Listening | Doing::Closing | Doing::Closed | Doing::Paused => None,
        };
        let since = ticket.map(|ticket| inspection.since.get(&ticket).copied().unwrap_or_else(|| self.context.clock.now()));
        let text_of = |entry: &crate::domain::window::Entry| entry.message.text.clone();
        CompanionState {
            id: id.clone(),
            name: settings.name.clone(),
            interjection: settings.interjection.as_str().into(),
            buffer: gate
                .map(|_| conversation.buffer(id).map(text_of).filter(|text| !text.is_empty()).collect())
                .unwrap_or_default(),
            message_count: gate.map_or(0, |gate| gate.message_counter),
            check_count: gate.map_or(0, |gate| gate.check_count),
            next_interjection_at: gate.and_then(|gate| gate.next_interjection_at),
            lull_at: gate.and_then(|gate| gate.lull_at).map(Into::into),
            lull_secs: settings.text_lull_timeout,
            doing,
            trigger,
            since: since.map(Into::into),
            retry_at: gate.and_then(|gate| gate.retry_at()).filter(|_| doing == Doing::BackOff).map(Into::into),
            paused,
            quiet_hours: settings.quiet_hours,
            closing: gate.map(|gate| gate.stage).unwrap_or_default(),
            heard_closed: gate.map_or(0, |gate| gate.heard_closed),
            reopen_after: self.context.settings.closing.reopen_after,
            turns: gate.map_or(0, |gate| gate.turns),
            max_turns: settings.max_turns,
            repetition: settings.repetition,
            model: settings.model.clone(),
            external: membership.is_external(id),
        }
    }
}

/// For a channel that is not suspended, but whose record cannot be folded.
fn fold_panicked() -> OutOfService {
    let detail = "the server panics when it restores the room from its record, which is a bug (see the log); the state of the last snapshot \
                  is shown"
        .to_owned();
    OutOfService { id: None, until: None, detail }
}

/// For a channel that is not suspended, but whose record cannot be read to its end.
fn incomplete(error: &ReadError) -> OutOfService {
    OutOfService { id: None, until: None, detail: format!("its record cannot be read to its end: {error}") }
}

pub(super) fn floor_state(floor: &OwedReply) -> Floor {
    Floor { companion: floor.companion.clone(), ticket: floor.ticket, due_at: floor.due_at.map(Into::into) }
}

pub(super) fn round_state(round: &Round) -> RoundState {
    RoundState {
        message_id: round.message,
        opened_at: round.opened_at.into(),
        deadline: round.deadline.into(),
        asked: round.asked.clone(),
        missing: round.missing().cloned().collect(),
        states: round.states().cloned().collect(),
    }
}

pub(super) fn turn_state(turn: &Selected) -> TurnState {
    let candidate = &turn.candidate;
    TurnState { companion: candidate.companion.clone(), trigger: candidate.trigger, speak_at: turn.speak_at.map(Into::into) }
}
