//! Checks decisions: each settles once, for a reason that the record shows.

use super::floor::HeldVote;
use super::{Closing, Record, Seat};
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Decided, Recorded};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::round::message_id;
use crate::domain::trigger::Trigger;
use crate::domain::vote::Stance;

impl Record<'_> {
    pub(super) fn decided(&mut self, recorded: &Recorded, decided: &Decided) {
        self.reach_reason(decided.reason);
        let least_streak = self.stage.plan.rules.least_streak;
        if decided.reason == Reason::LoopGuard && self.longest_streak() < least_streak {
            self.violate(format_args!("the loop guard trips after {} of {least_streak}: {recorded:?}", self.longest_streak()));
        }
        self.check_form(recorded, decided);
        for companion in &decided.companions {
            self.check_reason(recorded, decided, companion);
            if decided.decision == Decision::No {
                self.check_declined_events(recorded, decided, companion);
            }
            if decided.trigger == Trigger::Silence && decided.ticket.is_none() {
                self.check_silence(recorded, companion, &decided.messages);
            }
            let now = self.when(recorded.seq);
            let is_engaged = |seat: &Seat| seat.asked.is_some() || seat.has_wish;
            if decided.reason == Reason::Cancelled
                && let Some(seat) = self.seats.get(companion).filter(|seat| is_engaged(seat))
            {
                let is_beside = !decided.settles_by_cursor() && !decided.messages.iter().any(|seq| seat.about.contains(seq));
                self.retracted(recorded, decided, companion, is_beside);
            }
            let Some(seat) = self.seats.get_mut(companion) else {
                self.violate(format_args!("{companion} is not present: {recorded:?}"));
                continue;
            };
            seat.has_fired = false;
            if let Some(ticket) = decided.ticket {
                match seat.asked.take_if(|(asked, _)| *asked == ticket) {
                    // No model has read the messages after the question.
                    Some((_, upto)) if decided.upto > upto && decided.reason != Reason::Cancelled => {
                        self.violate(format_args!("{companion} settles messages that it was not asked about: {recorded:?}"));
                        continue;
                    }
                    Some(_) => {}
                    None => {
                        self.violate(format_args!("{companion} was not asked, or has decided already: {recorded:?}"));
                        continue;
                    }
                }
            }
            if decided.ticket.is_some() && decided.reason != Reason::Cancelled {
                seat.back_off = None;
            }
            if decided.decision == Decision::No && !decided.settles_by_cursor() {
                // An address over the budget is declined alone. So is what was taken back, if others said something.
                self.calls.retain(|(who, seq, _)| who != companion || !decided.messages.contains(seq));
                let before = seat.unsettled.len();
                seat.unsettled.retain(|seq| !decided.messages.contains(seq));
                let settled = before - seat.unsettled.len();
                // A dead letter is unsettled for nobody here.
                if let Some(last) = decided.messages.last().filter(|_| seat.unsettled.is_empty()) {
                    seat.cursor = seat.cursor.max(*last);
                }
                let handled: Vec<_> = decided.messages.iter().copied().filter(|seq| *seq <= recorded.handled).collect();
                if settled != self.without_skipped(&handled).len() {
                    self.violate(format_args!("{companion} declines messages that it must not settle: {recorded:?}"));
                }
                continue;
            }
            if decided.ticket.is_some() || !decided.reason.leaves_counters_alone() {
                seat.pause = None;
            }
            if decided.reason == Reason::Event {
                self.acknowledging(recorded, decided, companion);
                continue;
            }
            if decided.decision == Decision::Yes {
                seat.wants_to_start = decided.trigger == Trigger::Silence;
                seat.has_wish = decided.vote.is_some() || self.floor.is_some() || !self.due.is_empty();
                if !seat.has_wish {
                    (self.alone, self.due, self.is_due_unsure) = (Some(companion.clone()), vec![companion.clone()], false);
                } else if decided.vote.is_none() {
                    self.stage.reach("vote held: asked alone");
                    let held = HeldVote::without_vote(companion, decided.trigger, seat.message, now);
                    self.held.insert(companion.clone(), held);
                }
                continue;
            }
            self.calls.retain(|(who, seq, _)| who != companion || *seq > decided.upto);
            let settles: Vec<Seq> = seat.unsettled.iter().copied().take_while(|seq| *seq <= decided.upto).collect();
            seat.unsettled.retain(|seq| *seq > decided.upto);
            seat.cursor = seat.cursor.max(decided.upto);
            if self.held.contains_key(companion) && matches!(decided.reason, Reason::LoopGuard | Reason::Budget) {
                self.stage.reach("held vote refused");
            }
            seat.is_unsure &= !seat.unsettled.is_empty();
            seat.about.retain(|seq| *seq > decided.upto);
            if decided.reason == Reason::Stale {
                // A question about nothing but stale messages ends with them.
                seat.asked.take_if(|(_, upto)| *upto <= decided.upto);
            }
            // A stop phrase that takes something back is handled afterwards.
            let handled: Vec<_> = decided.messages.iter().copied().filter(|seq| *seq <= recorded.handled).collect();
            if self.without_skipped(&settles) != self.without_skipped(&handled) {
                self.violate(format_args!("for {companion} {settles:?} must settle: {recorded:?}"));
            }
        }
    }

    /// What a decision for this reason says, and what it cannot say.
    fn check_form(&self, recorded: &Recorded, decided: &Decided) {
        let (is_yes, is_answer) = (decided.decision == Decision::Yes, decided.ticket.is_some());
        let is_its = match decided.reason {
            Reason::ModelYes => is_yes && is_answer,
            Reason::ModelNo | Reason::Filtered => !is_yes && is_answer,
            // An addressed companion answers all the same.
            Reason::Unreadable => is_yes == (decided.trigger == Trigger::DirectAddress) && is_answer,
            Reason::External => is_answer,
            Reason::Event => is_yes && !is_answer && decided.trigger == Trigger::Event,
            // A companion that would speak may lack the budget, too.
            Reason::Budget => {
                !is_yes && decided.used_up.is_some() && (decided.settles_by_cursor() || decided.messages.len() == 1)
            }
            Reason::Closed => !is_yes,
            Reason::Irrelevant => !is_yes && !is_answer && decided.relevance.is_some(),
            Reason::OtherAddressed
            | Reason::NoInitiative
            | Reason::Unpostable
            | Reason::LoopGuard
            | Reason::Paused
            | Reason::Overflow
            | Reason::Stale
            | Reason::Backchannel => !is_yes && !is_answer,
            Reason::Cancelled => !is_yes,
            Reason::Risk => !is_yes && decided.at_risk.is_some(),
        };
        let is_for_one =
            decided.companions.len() == 1 || matches!(decided.reason, Reason::Closed | Reason::Paused | Reason::Backchannel);
        let votes = |stance: Stance| if is_yes { stance == Stance::Speak } else { stance == Stance::Listen };
        let round = decided.companions.first().and_then(|companion| self.seats.get(companion)?.round);
        let is_open = |message: &Seq| self.rounds.iter().any(|round| round.message == *message);
        let round = round.filter(is_open).map(message_id);
        let is_its_vote = match &decided.vote {
            Some(vote) => is_answer && votes(vote.state) && round.as_ref() == Some(&vote.message_id),
            None => true,
        };
        let is_vote_missing = is_answer && round.is_some() && decided.vote.is_none() && decided.reason != Reason::Cancelled;
        if !is_its || !is_for_one || !is_its_vote || is_vote_missing {
            self.violate(format_args!("no decision has this form: {recorded:?}"));
        }
    }

    /// Whether the reason holds for this companion, as far as the record shows.
    fn check_reason(&mut self, recorded: &Recorded, decided: &Decided, companion: &CompanionId) {
        if decided.ticket.is_none() && decided.settles_by_cursor() && !decided.reason.leaves_counters_alone() {
            self.check_addresses(recorded, companion, decided.upto, decided.trigger);
        }
        let Some(seat) = self.seats.get(companion) else { return };
        let rules = &self.stage.plan.rules;
        let settles = || seat.unsettled.iter().copied().filter(|seq| *seq <= decided.upto);
        let left_out = self.skipped.len();
        let is_right = match decided.reason {
            Reason::Paused => seat.paused,
            Reason::External => seat.is_external,
            Reason::ModelYes | Reason::ModelNo | Reason::Unreadable => !seat.is_external,
            // No filter refuses anything in the simulation, and nobody is at risk.
            Reason::Filtered | Reason::Risk => false,
            Reason::Closed => match &decided.vote {
                Some(vote) => vote.closing == Closing::Terminal,
                // A companion that is alone states its stage with its answer; the change of the stage follows.
                None if decided.ticket.is_some() => self.rounds.iter().all(|round| !round.voters.contains(companion)),
                None => seat.stage == Closing::Terminal,
            },
            // An overflow makes room for at most one more message.
            Reason::Overflow => {
                let (before, after) = (seat.unsettled.len(), seat.unsettled.len() - settles().count());
                before + left_out >= rules.least_buffer && after + 1 + left_out >= rules.least_buffer
            }
            Reason::Stale => settles().all(|seq| {
                let said_at = self.received.get(&seq).map(|received| received.at);
                said_at.is_none_or(|at| recorded.at.since(at).as_secs_f64() > rules.least_stale_after)
            }),
            Reason::OtherAddressed => {
                let is_elsewhere = |seq: Seq| {
                    self.received.get(&seq).is_none_or(|received| match decided.trigger {
                        Trigger::Lull => received.address.is_elsewhere(companion),
                        _ => !received.address.includes(companion),
                    })
                };
                rules.skips_calls && matches!(decided.trigger, Trigger::Lull | Trigger::Turn) && settles().all(is_elsewhere)
            }
            Reason::Irrelevant => {
                let is_addressed =
                    |seq: Seq| self.received.get(&seq).is_some_and(|received| received.address.includes(companion));
                rules.skips_irrelevant
                    && matches!(decided.trigger, Trigger::Lull | Trigger::Interjection | Trigger::Turn)
                    && !settles().any(is_addressed)
            }
            // The statement is about an event.
            Reason::Event => {
                let is_event = |seq: &Seq| self.received.get(seq).is_none_or(|received| received.is_event);
                decided.messages.iter().any(is_event) || left_out > 0
            }
            // A retraction is checked with the phrase.
            Reason::Cancelled => {
                seat.asked.is_some()
                    || seat.has_wish
                    || self.is_settled_by_stop(decided, companion)
                    || self.is_taken_back(decided, companion)
            }
            // Rooms with voice calls have their own checks, and no companion has quiet hours.
            Reason::Backchannel | Reason::NoInitiative => false,
            Reason::Budget | Reason::Unpostable | Reason::LoopGuard => true,
        };
        if !is_right {
            self.violate(format_args!("{companion} has no reason for {}: {recorded:?}", decided.reason));
        }
    }

    fn reach_reason(&self, reason: Reason) {
        self.stage.reach(match reason {
            Reason::ModelYes => "decided: YES",
            Reason::ModelNo => "decided: NO",
            Reason::Unreadable => "decided: unreadable",
            Reason::Filtered => "decided: filtered",
            Reason::Risk => "decided: risk",
            Reason::External => "decided: external",
            Reason::Event => "decided: event",
            Reason::OtherAddressed => "decided: other addressed",
            Reason::NoInitiative => "decided: no initiative",
            Reason::Irrelevant => "decided: irrelevant",
            Reason::Budget => "decided: budget",
            Reason::Unpostable => "decided: unpostable",
            Reason::LoopGuard => "decided: loop guard",
            Reason::Closed => "decided: closed",
            Reason::Paused => "decided: paused",
            Reason::Overflow => "decided: overflow",
            Reason::Stale => "decided: stale",
            Reason::Cancelled => "decided: cancelled",
            Reason::Backchannel => "decided: backchannel",
        });
    }
}
