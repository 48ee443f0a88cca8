//! Records calls to models in traces.

use std::time::Duration;

use crate::actors::channel::channel_context::ChannelContext;
use crate::actors::messages::models::Outcome;
use crate::ports::language_model::Request;
use crate::telemetry::model_calls::{self, CallFacts};
use crate::telemetry::trace::SpanRef;

/// Records a call that has ended. A call that belongs to no turn gets a trace of its own.
pub(in crate::actors::channel) fn record_call(
    under: Option<SpanRef>,
    asked: &Request,
    outcome: &Outcome,
    channel: &ChannelContext,
) {
    let ended = channel.machine_time();
    let facts = CallFacts {
        under,
        channel: Some(&channel.key.channel),
        request: asked,
        identity: &outcome.facts.identity,
        outcome: outcome.result.as_ref(),
        attempts: outcome.facts.attempts,
        waited_ms: outcome.facts.waited_ms,
        started: ended - Duration::from_millis(outcome.facts.model_ms),
        ended,
    };
    model_calls::record(&channel.context.recorder, &facts);
}

/// Records a completed call whose answer is no longer needed. Its turn was recorded before, so the call gets a trace of its own. A call that never
/// started is not recorded.
pub(in crate::actors::channel) fn record_late_call(asked: &Request, outcome: &Outcome, channel: &ChannelContext) {
    if outcome.facts.attempts > 0 {
        record_call(None, asked, outcome, channel);
    }
}
