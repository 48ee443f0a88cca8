//! The statements of external companions: the reply that each fulfils, and the caller that waits for its number.

use ractor::RpcReplyPort;

use crate::actors::messages::turn_taking_manager::VoteError;
use crate::domain::conversation::Conversation;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::round::message_id;
use crate::domain::turn::OwedReply;

#[derive(Default)]
pub(super) struct ExternalCompanions {
    /// The external companion that holds the floor, or held it last.
    selected: Option<Selected>,
    /// The caller whose statement has not been accepted.
    waiter: Option<(Ticket, StatementWaiter)>,
}

/// An external companion that holds the floor, or held it last.
struct Selected {
    companion: CompanionId,
    ticket: Ticket,
    opened: Seq,
    has_spoken: bool,
}

/// A caller that waits for the number of an external companion's statement.
pub(super) struct StatementWaiter(RpcReplyPort<Result<Seq, VoteError>>);

impl ExternalCompanions {
    /// Records that an external companion holds the floor. Its program sends the statement.
    pub(super) fn select(&mut self, floor: &OwedReply) {
        let (companion, opened) = (floor.companion.clone(), floor.selection.opened);
        self.selected = Some(Selected { companion, ticket: floor.ticket, opened, has_spoken: floor.is_posting });
    }

    /// The ticket of the reply that a statement for this message fulfils.
    pub(super) fn ticket_for(
        &self,
        from: &CompanionId,
        answered_id: &str,
        conversation: &Conversation,
    ) -> Result<Ticket, VoteError> {
        let from = from.clone();
        if !is_external(&from, conversation) {
            return Err(VoteError::NotExternal { from });
        }
        let is_for = |seq: Seq| message_id(seq) == answered_id;
        let not_selected = |from| Err(VoteError::NotSelected { from, message_id: answered_id.to_owned() });
        if let Some(floor) = conversation.turns().floor().filter(|floor| floor.companion == from) {
            return match floor {
                _ if !is_for(floor.selection.opened) && !is_for(floor.upto) && !is_for(conversation.handled()) => {
                    not_selected(from)
                }
                floor if floor.is_posting => Err(VoteError::Twice { from }),
                floor => Ok(floor.ticket),
            };
        }
        match &self.selected {
            Some(last) if last.companion == from && is_for(last.opened) && last.has_spoken => Err(VoteError::Twice { from }),
            Some(last) if last.companion == from && is_for(last.opened) => Err(VoteError::TooLate { from }),
            _ => not_selected(from),
        }
    }

    /// Keeps the caller until its statement is accepted.
    pub(super) fn wait(&mut self, ticket: Ticket, reply: RpcReplyPort<Result<Seq, VoteError>>) {
        self.waiter = Some((ticket, StatementWaiter(reply)));
    }

    /// Takes the caller that waits for the number of this reply's statement, which is being posted. None if no caller waits.
    pub(super) fn take_waiter(&mut self, ticket: Ticket) -> Option<StatementWaiter> {
        if let Some(selected) = self.selected.as_mut().filter(|selected| selected.ticket == ticket) {
            selected.has_spoken = true;
        }
        self.waiter.take_if(|(waits_for, _)| *waits_for == ticket).map(|(_, waiter)| waiter)
    }

    /// Takes the caller whose statement was not accepted. None if there is none.
    pub(super) fn take_rejected(&mut self) -> Option<StatementWaiter> {
        self.waiter.take().map(|(_, waiter)| waiter)
    }
}

impl StatementWaiter {
    /// Answers the caller, which may have stopped waiting.
    pub(super) fn answer(self, answer: Result<Seq, VoteError>) {
        let _ = self.0.send(answer);
    }
}

pub(super) fn is_external(companion: &CompanionId, conversation: &Conversation) -> bool {
    conversation.gate(companion).is_some_and(|gate| gate.external)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::oneshot;

    use super::super::tests::{channel_context, conversation_after};
    use super::*;
    use crate::domain::event::Event;

    #[tokio::test]
    async fn a_statement_without_the_floor_is_rejected_with_the_reason() {
        let (channel, _received) = channel_context().await;
        let joined = |companion: &str, external| Event::Joined { companion: companion.into(), external };
        let conversation = conversation_after(&channel, [joined("aria", false), joined("zed", true)]);
        let mut external = ExternalCompanions::default();
        let not_selected = |id: &str| Err(VoteError::NotSelected { from: "zed".into(), message_id: id.into() });

        assert_eq!(external.ticket_for(&"aria".into(), "7", &conversation), Err(VoteError::NotExternal { from: "aria".into() }));
        assert_eq!(external.ticket_for(&"zed".into(), "7", &conversation), not_selected("7"));
        external.select(&floor(1));
        assert_eq!(external.ticket_for(&"zed".into(), "7", &conversation), Err(VoteError::TooLate { from: "zed".into() }));
        assert!(external.take_waiter(Ticket(1)).is_none());
        assert_eq!(external.ticket_for(&"zed".into(), "7", &conversation), Err(VoteError::Twice { from: "zed".into() }));
        assert_eq!(external.ticket_for(&"zed".into(), "8", &conversation), not_selected("8"));
    }

    #[tokio::test]
    async fn the_caller_waits_until_its_own_statement_is_posted_or_rejected() {
        let mut external = ExternalCompanions::default();
        let (sender, answer) = oneshot::channel();
        external.wait(Ticket(1), RpcReplyPort::from(sender));

        assert!(external.take_waiter(Ticket(2)).is_none());
        external.take_waiter(Ticket(1)).unwrap().answer(Ok(Seq(9)));

        assert_eq!(answer.await, Ok(Ok(Seq(9))));
        assert!(external.take_rejected().is_none());
    }

    /// A floor of zed, for the message 7.
    fn floor(ticket: u64) -> OwedReply {
        let selection = json!({ "opened": 7, "selected_at": 7, "others": [] });
        let floor = json!({
            "companion": "zed", "ticket": ticket, "trigger": "lull", "messages": [], "upto": 7, "why": null, "selection": selection,
        });
        serde_json::from_value(floor).unwrap()
    }
}
