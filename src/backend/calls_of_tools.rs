//! Shows calls of tools, and accepts what people decide about those that need a confirmation (docs/design/tools.md ).

use std::collections::BTreeSet;
use std::iter::once;

use serde_json::json;

use super::ActorBackend;
use super::external::{answered, call as asked};
use crate::actors::companion::tools;
use crate::actors::messages::channel::ChannelMessage;
use crate::domain::id::Ticket;
use crate::domain::tools::{CAUSE, Cause, KnownCall, Offered, Right, Standing, ToolCalled, Who, may_confirm, permission};
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::messages::{Approver, CallView};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Refused};

/// What a person may do with a call.
struct Verdict {
    right: Right,
    may_decide: bool,
    /// Whether its cause still has the right to it.
    is_permitted: bool,
}

impl ActorBackend {
    pub(super) async fn call_of_tool(&self, room: &RoomId, call: Ticket, by: Approver) -> Result<CallView, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let conversation = self.current_state(&channel_key).await?.inspection.conversation;
        let known = conversation.call(call).cloned().ok_or_else(|| no_call(room, call))?;
        let is_open = known.is_open(self.context.clock.now());
        // What cannot be called any more can be decided about by nobody.
        let verdict = if is_open { self.verdict(&channel_key, &known.called, by).await.ok() } else { None };
        let KnownCall { called, confirmed, answer, .. } = known;
        Ok(CallView {
            call,
            companion: called.companion,
            tool: called.tool,
            arguments: called.arguments,
            asked_by: called.cause.as_ref().map(|cause| conversation.person(&cause.person).name),
            cause: called.cause.map(|cause| cause.person),
            may_decide: verdict.as_ref().is_some_and(|verdict| verdict.may_decide),
            approvers: verdict.map(|verdict| verdict.right.approvers).unwrap_or_default(),
            is_open,
            until: called.until.map(Into::into),
            confirmed,
            outcome: answer.map(|answer| answer.outcome.as_str().into()),
        })
    }

    pub(super) async fn decide_call(&self, room: &RoomId, call: Ticket, by: Approver, is_confirmed: bool) -> Result<(), Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let conversation = self.current_state(&channel_key).await?.inspection.conversation;
        let known = match conversation.call(call) {
            Some(known) if known.is_open(self.context.clock.now()) => known,
            Some(known) if known.confirmed.is_some() => return Err(Refused::conflict(Detail::key("refusals.call_decided"))),
            None if !conversation.has_given(call) => return Err(no_call(room, call)),
            _ => return Err(Refused::conflict(Detail::key("refusals.call_not_open"))),
        };
        let person = by.who.as_ref().map(|who| who.person.clone());
        let Verdict { right, may_decide, is_permitted } = self.verdict(&channel_key, &known.called, by).await?;
        let who = known.called.cause.as_ref().map(|cause| conversation.person(&cause.person).name);
        if !may_decide {
            return Err(Refused::conflict(match (&*right.approvers, who) {
                ([], _) => Detail::key("refusals.call_for_operators"),
                ([only], Some(who)) if **only == *CAUSE => Detail::of("refusals.call_for_cause", json!({ "who": who })),
                _ => Detail::key("refusals.no_right_to_call"),
            }));
        }
        if is_confirmed && !is_permitted {
            let values = json!({ "who": who.unwrap_or_default(), "tool": known.called.tool });
            return Err(Refused::conflict(Detail::of("refusals.right_lost", values)));
        }
        let channel = self.running(&channel_key).await?;
        answered(asked(|reply| channel.cast(ChannelMessage::ConfirmCall { call, by: person, is_confirmed, reply })).await)
    }

    /// Looks up the rights to a call as they are now.
    async fn verdict(&self, channel_key: &ChannelKey, called: &ToolCalled, by: Approver) -> Result<Verdict, Refused> {
        let memberships = &self.context.memberships;
        let is_present = memberships.present(&channel_key.channel).contains_key(&called.companion);
        let companion = memberships.companion(&channel_key.channel, &called.companion).filter(|_| is_present);
        let offered = companion.into_iter().flat_map(|companion| tools::tools_of(&companion, &channel_key.guild, &self.context));
        // It is confirmed as it was when the model asked for it.
        let is_as_offered = |offered: &Offered| {
            let is_same_version = called.version.is_empty() || offered.version == called.version;
            offered.name == called.tool && offered.effect == called.effect && is_same_version
        };
        let offered = offered.map(|(_, offered)| offered).find(is_as_offered);
        let gone = || Refused::conflict(Detail::of("refusals.tool_gone", json!({ "tool": called.tool })));
        let offered = offered.ok_or_else(gone)?;
        let people: BTreeSet<&Who> = called.cause.iter().chain(&by.who).collect();
        let found = tools::standings(people, once(&offered), channel_key, &self.context).await;
        let standing = |who: &Who| found.get(who).cloned().unwrap_or_default();
        let own = by.who.as_ref().map(standing).unwrap_or_default();
        let own = Standing { is_operator: own.is_operator || by.is_operator, roles: by.roles.or(own.roles) };
        let may_decide = match &by.who {
            Some(who) => may_confirm(&offered.right, called.cause.as_ref(), who, &own),
            None => own.is_operator,
        };
        // What the cause may do may have changed since.
        let cause = Cause { by: called.cause.clone(), authors: called.cause.iter().cloned().map(Some).collect() };
        let is_permitted = permission(&offered, &cause, false, standing).is_ok();
        Ok(Verdict { right: offered.right, may_decide, is_permitted })
    }
}

fn no_call(room: &RoomId, call: Ticket) -> Refused {
    Refused::not_found(Detail::of("refusals.no_call", json!({ "call": call, "room": room })))
}
