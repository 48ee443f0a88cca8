//! The questions and judgements in flight: the recipient of each, the attempts, and the timeout.

mod asking;
mod judging;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::channel_context::ChannelContext;
use crate::actors::messages::companion::CompanionMessage;
use crate::actors::messages::models::{CallId, Outcome};
use crate::actors::models::pause_before_asking_again;
use crate::domain::conversation::Conversation;
use crate::domain::id::{CompanionId, Ticket};
use crate::ports::language_model::NoAnswer;

/// How often a question is handed to its companion in all, when the companion loses it. The attempts take two seconds.
const MAX_ASK_ATTEMPTS: u32 = 43;
/// How much longer than the pool's own deadline a channel waits for an answer.
pub(super) const GRACE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Questions {
    asked: HashMap<Ticket, Asked>,
    /// When each question is given up, the oldest first. Those that were answered meanwhile are dropped from time to time.
    timeouts: VecDeque<(Instant, Ticket)>,
}

#[derive(Default)]
struct Asked {
    /// How often it was lost, or asked again for another reason.
    repeats: u32,
    /// Who has it now, as far as known.
    recipient: Option<Recipient>,
}

enum Recipient {
    /// A question for a companion, which hands it to the pool.
    Companion(CompanionId),
    /// A judgement, which the channel itself hands to the pool.
    Pool(CallId),
}

/// What an answer means for the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The question waits for it.
    Awaited,
    /// The pool was restarted before it asked. That is no failure of the model, so the question is asked again without a back-off.
    Lost,
    /// Nobody waits for it any longer. Its usage still counts.
    Unclaimed,
}

/// What is done about a question that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterLoss {
    AskAgain { pause: Duration },
    GiveUp,
}

impl Questions {
    /// Hands a question to its companion, if it is still open. True if its timeout starts now.
    pub(super) fn ask(&mut self, ticket: Ticket, conversation: &Conversation, channel: &ChannelContext) -> bool {
        let asked = asking::ask(ticket, conversation, channel);
        asked.is_some_and(|companion| self.note_asked(ticket, Recipient::Companion(companion), conversation, channel))
    }

    /// Asks how much the last statements repeat each other, if that judgement is still open. True if its timeout starts now.
    pub(super) fn judge(&mut self, ticket: Ticket, conversation: &Conversation, channel: &ChannelContext) -> bool {
        if !is_judgement_open(ticket, conversation) {
            return false;
        }
        let call = judging::ask(ticket, conversation, channel);
        self.note_asked(ticket, Recipient::Pool(call), conversation, channel)
    }

    fn note_asked(
        &mut self,
        ticket: Ticket,
        recipient: Recipient,
        conversation: &Conversation,
        channel: &ChannelContext,
    ) -> bool {
        let is_new = self.hand_over(ticket, recipient);
        if is_new {
            // A little longer than the pool's own timeout.
            let until = Instant::now() + channel.context.settings.models.side.timeout() + GRACE;
            self.start_timeout(ticket, until, |ticket| is_awaited(ticket, conversation));
        }
        is_new
    }

    /// Notes who has a question now. True if nobody had it before.
    fn hand_over(&mut self, ticket: Ticket, recipient: Recipient) -> bool {
        let is_new = !self.asked.contains_key(&ticket);
        self.asked.entry(ticket).or_default().recipient = Some(recipient);
        is_new
    }

    fn start_timeout(&mut self, ticket: Ticket, until: Instant, is_awaited: impl Fn(Ticket) -> bool) {
        if self.timeouts.len() == self.timeouts.capacity() {
            // Most of the questions were answered long ago.
            self.timeouts.retain(|(_, ticket)| is_awaited(*ticket));
        }
        self.timeouts.push_back((until, ticket));
    }

    /// The questions that companions have.
    pub(super) fn with_companions(&self) -> Vec<Ticket> {
        let has_companion = |asked: &Asked| matches!(asked.recipient, Some(Recipient::Companion(_)));
        self.asked.iter().filter(|(_, asked)| has_companion(asked)).map(|(ticket, _)| *ticket).collect()
    }

    /// A question was lost on its way to the pool, or with the pool.
    pub(super) fn lose(&mut self, ticket: Ticket) -> AfterLoss {
        let asked = self.asked.entry(ticket).or_default();
        asked.repeats += 1;
        if asked.repeats < MAX_ASK_ATTEMPTS {
            AfterLoss::AskAgain { pause: pause_before_asking_again(asked.repeats) }
        } else {
            AfterLoss::GiveUp
        }
    }

    /// Withdraws a question whose answer may be lost, so that it can be asked again: the first answer counts. False if no companion has it.
    pub(super) fn withdraw(&mut self, ticket: Ticket, channel: &ChannelContext) -> bool {
        let Some(asked) = self.asked.get_mut(&ticket) else { return false };
        let Some(recipient) = asked.recipient.take_if(|recipient| matches!(recipient, Recipient::Companion(_))) else {
            return false;
        };
        asked.repeats += 1;
        recipient.cancel(ticket, channel);
        true
    }

    /// Cancels a question or judgement whose answer is no longer wanted.
    pub(super) fn cancel(&mut self, ticket: Ticket, channel: &ChannelContext) {
        if let Some(recipient) = self.asked.remove(&ticket).and_then(|asked| asked.recipient) {
            recipient.cancel(ticket, channel);
        }
    }

    /// The answer to a question has arrived, or the reason why there is none.
    pub(super) fn answered(
        &mut self,
        ticket: Ticket,
        outcome: &Outcome,
        conversation: &Conversation,
        channel: &ChannelContext,
    ) -> Arrival {
        let is_open = is_open(ticket, conversation);
        if outcome.is_lost() && is_open {
            return Arrival::Lost;
        }
        if let Some(Asked { repeats: 1.., recipient: Some(recipient) }) = self.asked.remove(&ticket) {
            // It was asked more than once, and the first answer counts.
            recipient.cancel(ticket, channel);
        }
        if is_open { Arrival::Awaited } else { Arrival::Unclaimed }
    }

    /// The answer to a judgement has arrived, or the reason why there is none.
    pub(super) fn judged(&mut self, ticket: Ticket, outcome: &Outcome, conversation: &Conversation) -> Arrival {
        // Only this channel cancels, and it has noted that before.
        if matches!(outcome.result, Err(NoAnswer::Cancelled)) {
            return Arrival::Unclaimed;
        }
        let is_open = is_judgement_open(ticket, conversation);
        if outcome.is_lost() && is_open {
            // The pool has dropped the call.
            self.asked.entry(ticket).or_default().recipient = None;
            return Arrival::Lost;
        }
        self.asked.remove(&ticket);
        if is_open { Arrival::Awaited } else { Arrival::Unclaimed }
    }

    /// When the oldest question is given up.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.timeouts.front().map(|(until, _)| *until)
    }

    /// Takes the oldest timeout that is over. Its question may have been answered.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Option<Ticket> {
        self.next_timeout().filter(|until| *until <= now)?;
        self.timeouts.pop_front().map(|(_, ticket)| ticket)
    }

    /// Drops the oldest timeouts, as far as their questions are closed.
    pub(super) fn drop_closed_timeouts(&mut self, is_awaited: impl Fn(Ticket) -> bool) {
        while self.timeouts.front().is_some_and(|(_, ticket)| !is_awaited(*ticket)) {
            self.timeouts.pop_front();
        }
    }
}

impl Recipient {
    fn cancel(self, ticket: Ticket, channel: &ChannelContext) {
        match self {
            Self::Pool(call) => channel.context.pool.cancel(call),
            Self::Companion(companion) => {
                if let Some(actor) = channel.companion(&companion) {
                    // A companion that has stopped has cancelled it.
                    let _ = actor.cast(CompanionMessage::Cancel { channel: channel.key.channel.clone(), ticket });
                }
            }
        }
    }
}

/// Whether the conversation still waits for the answer to this question.
pub(super) fn is_open(ticket: Ticket, conversation: &Conversation) -> bool {
    conversation.open_questions().any(|(_, evaluation)| evaluation.ticket == ticket)
}

pub(super) fn is_judgement_open(ticket: Ticket, conversation: &Conversation) -> bool {
    conversation.turns().open_judgement().is_some_and(|(open, _)| open == ticket)
}

/// Whether this question or judgement is still open.
pub(super) fn is_awaited(ticket: Ticket, conversation: &Conversation) -> bool {
    is_open(ticket, conversation) || is_judgement_open(ticket, conversation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_question_is_asked_again_for_two_seconds() {
        let mut questions = Questions::default();
        assert!(questions.hand_over(Ticket(1), Recipient::Companion("aria".into())));

        let after: Vec<_> = (0..MAX_ASK_ATTEMPTS).map(|_| questions.lose(Ticket(1))).collect();

        let pauses = after.iter().map_while(|after| match after {
            AfterLoss::AskAgain { pause } => Some(*pause),
            AfterLoss::GiveUp => None,
        });
        assert_eq!(pauses.clone().count(), 42);
        assert_eq!(pauses.sum::<Duration>().as_millis(), 1_975);
        assert_eq!(after.last(), Some(&AfterLoss::GiveUp));
        assert!(!questions.hand_over(Ticket(1), Recipient::Companion("aria".into())), "its timeout runs already");
    }

    #[test]
    fn questions_for_companions_are_asked_again_and_judgements_are_not() {
        let mut questions = Questions::default();
        questions.hand_over(Ticket(1), Recipient::Companion("aria".into()));
        questions.hand_over(Ticket(2), Recipient::Pool(CallId(9)));
        questions.lose(Ticket(3));

        assert_eq!(questions.with_companions(), [Ticket(1)]);
    }

    #[test]
    fn timeouts_are_taken_in_their_order_once_they_are_over() {
        let (mut questions, start) = (Questions::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        for ticket in 1..=4 {
            questions.start_timeout(Ticket(ticket), after(ticket), |_| true);
        }

        assert_eq!(questions.take_overdue(start), None);
        assert_eq!(questions.take_overdue(after(2)), Some(Ticket(1)));
        assert_eq!(questions.take_overdue(after(2)), Some(Ticket(2)));
        assert_eq!(questions.take_overdue(after(2)), None);
        questions.drop_closed_timeouts(|ticket| ticket != Ticket(3));
        assert_eq!(questions.next_timeout(), Some(after(4)));
    }

    #[test]
    fn timeouts_of_closed_questions_do_not_pile_up() {
        let (mut questions, start) = (Questions::default(), Instant::now());

        for ticket in 1..=1_000 {
            questions.start_timeout(Ticket(ticket), start, |open| open.0 + 1 == ticket);
        }

        assert!(questions.timeouts.len() < 10, "{}", questions.timeouts.len());
    }
}
