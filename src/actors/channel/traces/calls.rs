//! What is told of calls of models, as far as the pool knows them.

use std::time::Duration;

use crate::actors::messages::models::Outcome;
use crate::actors::runtime::context::ActorContext;
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::Request;
use crate::telemetry::model_calls::{self, CallFacts};
use crate::telemetry::trace::SpanRef;

/// A call has ended. One that was made for no turn is a trace of its own.
pub(in crate::actors::channel) fn tell_call(
    under: Option<SpanRef>,
    asked: &Request,
    outcome: &Outcome,
    channel_key: &ChannelKey,
    context: &ActorContext,
) {
    let ended = context.clock.now();
    let facts = CallFacts {
        under,
        channel: Some(&channel_key.channel),
        request: asked,
        identity: &outcome.facts.identity,
        outcome: outcome.result.as_ref(),
        attempts: outcome.facts.attempts,
        waited_ms: outcome.facts.waited_ms,
        started: ended - Duration::from_millis(outcome.facts.model_ms),
        ended,
    };
    model_calls::record(&context.recorder, &facts);
}

/// A call has ended for which nobody waits any more. Its turn is told by now, so it is a trace of its own; one that was never begun is
/// nothing.
pub(in crate::actors::channel) fn tell_late_call(
    asked: &Request,
    outcome: &Outcome,
    channel_key: &ChannelKey,
    context: &ActorContext,
) {
    if outcome.facts.attempts > 0 {
        tell_call(None, asked, outcome, channel_key, context);
    }
}
