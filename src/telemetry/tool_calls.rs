//! Records calls of tools, following the OpenTelemetry conventions for generative AI. Arguments and answers are never recorded here.

use opentelemetry::KeyValue;

use super::attributes::{self as name, whole};
use super::plain::Plain;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::SpanRef;
use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;
use crate::domain::tools::built_in::BuiltIn;
use crate::domain::tools::{CallOutcome, ToolAnswered};

/// Records a call: `execute_tool {tool}`, the metrics, and a log line. `under` is the span of its reply, unless that has ended.
pub fn record(
    recorder: &Recorder,
    under: Option<SpanRef>,
    (guild, channel): (&GuildId, &ChannelId),
    answered: &ToolAnswered,
    times: (Moment, Moment),
) {
    let (outcome, ms, bytes) = (answered.answer.outcome, answered.answer.ms, answered.answer.bytes);
    // The names of external tools have no bound.
    let label = BuiltIn::of(&answered.tool).map_or("external", BuiltIn::as_str);
    recorder.instruments().tool_calls.add(1, [label, outcome.as_str()]);
    recorder.instruments().tool_call_duration.record(ms as f64 / 1_000.0, [label]);
    let (guild, room, tool) = (Plain(guild.as_str()), Plain(channel.as_str()), Plain(&answered.tool));
    let companion = Plain(answered.companion.as_str());
    tracing::info!(%guild, channel = %room, %companion, %tool, outcome = outcome.as_str(), ms, bytes, "a companion has called a tool");
    recorder.record(|| {
        let attributes = vec![
            KeyValue::new(name::GEN_AI_OPERATION_NAME, "execute_tool"),
            KeyValue::new(name::GEN_AI_TOOL_NAME, answered.tool.clone()),
            KeyValue::new(name::GEN_AI_TOOL_TYPE, if label == "external" { "extension" } else { "function" }),
            KeyValue::new(name::GEN_AI_TOOL_CALL_ID, format!("call_{}", answered.call.0)),
            KeyValue::new(name::GEN_AI_CONVERSATION_ID, channel.to_string()),
            KeyValue::new(name::GEN_AI_AGENT_ID, answered.companion.to_string()),
            KeyValue::new(name::TOOL_ANSWER_BYTES, whole(usize::try_from(bytes).unwrap_or(usize::MAX))),
        ];
        let place = under.map_or(Place::Alone, Place::Under);
        let error = (outcome != CallOutcome::Answered).then_some(outcome.as_str());
        let span = FinishedSpan::new(format!("execute_tool {}", answered.tool), place, times, attributes);
        span.failed(error)
    });
}
