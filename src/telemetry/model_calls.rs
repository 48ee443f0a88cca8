//! Records calls of language models, following the OpenTelemetry conventions for generative AI.

use std::collections::BTreeSet;

use opentelemetry::trace::SpanKind;
use opentelemetry::{Array, KeyValue, StringValue, Value};
use serde_json::json;

use super::attributes::{self as name, whole};
use super::instruments::{Instruments, error_label};
use super::plain::Plain;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::SpanRef;
use crate::domain::id::ChannelId;
use crate::domain::moment::Moment;
use crate::domain::price::Price;
use crate::domain::question_context::{Purpose, QuestionContext};
use crate::domain::raw_answer::Trimmed;
use crate::ports::language_model::{Answer, Identity, ModelRole, NoAnswer, Request, TokenUsage};

#[cfg(test)]
mod tests;

/// One question with all its requests, as seen by the actor that asked.
#[derive(Clone, Debug)]
pub struct CallFacts<'a> {
    /// The parent span: a decision, a judgement or a statement. `None` for work outside a turn, such as a summary.
    pub under: Option<SpanRef>,
    /// The channel, if the question was about one.
    pub channel: Option<&'a ChannelId>,
    pub request: &'a Request,
    pub identity: &'a Identity,
    pub outcome: Result<&'a Answer, &'a NoAnswer>,
    /// The number of requests until the answer or the failure.
    pub attempts: u32,
    /// How long it waited in the queue and between requests, in milliseconds.
    pub waited_ms: u64,
    /// The end minus the time that the model took. With only one request, this is the time when the request began.
    pub started: Moment,
    /// When the answer was complete, or the question failed.
    pub ended: Moment,
}

/// Records a call: `chat {model}`. The span contains the texts only if the recorder captures content.
pub fn record(recorder: &Recorder, facts: &CallFacts<'_>) -> Option<SpanRef> {
    measure(recorder.instruments(), facts);
    recorder.record(|| {
        let mut attributes = request_attributes(facts);
        attributes.extend(facts.outcome.into_iter().flat_map(answer_attributes));
        if recorder.captures_content() {
            attributes.extend(content(facts));
        }
        let (span, place) = (format!("chat {}", facts.identity.model), facts.under.map_or(Place::Alone, Place::Under));
        let error = facts.outcome.err().map(NoAnswer::code);
        let asked = FinishedSpan::new(span, place, (facts.started, facts.ended), attributes).failed(error);
        FinishedSpan { kind: SpanKind::Client, ..asked }
    })
}

/// Counts the cost of a question, at the price of the model that serves this role. It writes no span, because the calls have spans.
pub fn record_cost(recorder: &Recorder, identity: &Identity, role: ModelRole, usage: &TokenUsage, price: &Price) {
    let labels: [StringValue; 3] = [identity.model.clone().into(), role.as_str().into(), price.currency.clone().into()];
    recorder.instruments().model_cost.add(price.of(*usage).as_units(), labels);
}

/// Counts the text that was removed from an answer, by kind, and logs it: it is a sign of a wrong chat template. Votes are
/// frequent, so for them it is logged at debug level only.
pub fn record_trimmed(instruments: &Instruments, identity: &Identity, asked: &Request, trimmed: &BTreeSet<Trimmed>) {
    if trimmed.is_empty() {
        return;
    }
    trimmed.iter().for_each(|kind| instruments.answers_trimmed.add(1, [kind.as_str()]));
    let kinds = trimmed.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(",");
    let (endpoint, model, role) = (&*identity.endpoint, &*identity.model, asked.role.as_str());
    let companion = Plain(asked.companion.as_ref().map_or("", |companion| companion.id.as_str()));
    match asked.role {
        ModelRole::Main => tracing::info!(endpoint, model, role, %companion, kinds, "cut what is not said out of an answer"),
        ModelRole::Side => tracing::debug!(endpoint, model, role, %companion, kinds, "cut what is not said out of an answer"),
    }
}

/// The number of companions that one request asks, if there are several.
pub fn asked_together(request: &Request) -> Option<u32> {
    match &request.extensions.get::<QuestionContext>()?.purpose {
        Purpose::Votes { of } => u32::try_from(of.len()).ok().filter(|asked| *asked > 1),
        Purpose::Vote { .. }
        | Purpose::Statement { .. }
        | Purpose::Summary
        | Purpose::Notes
        | Purpose::Brief
        | Purpose::Caption
        | Purpose::Judgement => None,
    }
}

fn measure(instruments: &Instruments, facts: &CallFacts<'_>) {
    // A question that never left the queue was not a call. Otherwise a pool that sheds everything would look fast.
    if facts.attempts == 0 {
        return;
    }
    let labels = || -> [StringValue; 4] {
        let (provider, model) = (facts.identity.provider.clone(), facts.identity.model.clone());
        ["chat".into(), provider.into(), model.into(), facts.request.role.as_str().into()]
    };
    let with = |last: &'static str| -> [StringValue; 5] {
        let [operation, provider, model, role] = labels();
        [operation, provider, model, role, last.into()]
    };
    let error = facts.outcome.err().map_or("", |error| error_label(error.code()));
    let is_cut = match facts.outcome {
        Ok(answer) => answer.is_cut(),
        Err(no_answer) => matches!(no_answer, NoAnswer::OutOfTokens { .. }),
    };
    if is_cut {
        instruments.answers_cut.add(1, [facts.request.role.as_str()]);
    }
    let took = facts.ended.since(facts.started).as_secs_f64();
    instruments.model_duration.record(took, with(error));
    instruments.model_duration_before.record(took, with(error));
    let Ok(Answer { usage, time_to_first_chunk, .. }) = facts.outcome else { return };
    if let Some(time) = time_to_first_chunk {
        instruments.model_first_chunk.record(time.as_secs_f64(), labels());
    }
    let (read, written) = (usage.input_tokens, usage.output_tokens);
    instruments.model_input.record(read as f64, labels());
    instruments.model_output.record(written as f64, labels());
    instruments.model_tokens_before.record(read as f64, with("input"));
    instruments.model_tokens_before.record(written as f64, with("output"));
    let modality = if facts.request.is_text() { "text" } else { "unknown" };
    for (counter, tokens) in [
        (&instruments.tokens_input, Some(read)),
        (&instruments.tokens_cache_read, usage.cache_read_tokens),
        (&instruments.tokens_cache_write, usage.cache_write_tokens),
        (&instruments.tokens_output, Some(written)),
        (&instruments.tokens_reasoning, usage.reasoning_tokens),
    ] {
        // A reported 0 begins the series.
        tokens.into_iter().for_each(|tokens| counter.add(tokens, with(modality)));
    }
}

fn request_attributes(facts: &CallFacts<'_>) -> Vec<KeyValue> {
    let mut attributes = Vec::with_capacity(24);
    attributes.extend([
        KeyValue::new(name::GEN_AI_OPERATION_NAME, "chat"),
        KeyValue::new(name::GEN_AI_PROVIDER_NAME, facts.identity.provider.clone()),
        KeyValue::new(name::GEN_AI_REQUEST_MODEL, facts.identity.model.clone()),
        KeyValue::new(name::GEN_AI_REQUEST_MAX_TOKENS, i64::from(facts.request.max_tokens)),
        KeyValue::new(name::MODEL_ROLE, facts.request.role.as_str()),
        KeyValue::new(name::MODEL_ATTEMPTS, i64::from(facts.attempts)),
        KeyValue::new(name::MODEL_WAITED_MS, whole(facts.waited_ms)),
        KeyValue::new(name::GUILD_ID, facts.request.guild.to_string()),
    ]);
    attributes.extend(asked_together(facts.request).map(|asked| KeyValue::new(name::MODEL_ASKED_TOGETHER, i64::from(asked))));
    if let Some(channel) = facts.channel {
        attributes.extend([
            KeyValue::new(name::GEN_AI_CONVERSATION_ID, channel.to_string()),
            KeyValue::new(name::CHANNEL_ID, channel.to_string()),
        ]);
    }
    if let Some(companion) = &facts.request.companion {
        attributes.extend([
            KeyValue::new(name::GEN_AI_AGENT_ID, companion.id.to_string()),
            KeyValue::new(name::GEN_AI_AGENT_NAME, companion.name.clone()),
            KeyValue::new(name::COMPANION_ID, companion.id.to_string()),
        ]);
    }
    attributes
}

fn answer_attributes(answer: &Answer) -> impl Iterator<Item = KeyValue> {
    let reasons = answer.finish_reason.clone().map(|reason| Value::Array(Array::String(vec![reason.into()])));
    let usage = &answer.usage;
    let counts = [
        (name::GEN_AI_USAGE_INPUT_TOKENS, Some(usage.input_tokens)),
        (name::GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, usage.cache_read_tokens),
        (name::GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS, usage.cache_write_tokens),
        (name::GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS, usage.cache_write_tokens),
        (name::GEN_AI_USAGE_OUTPUT_TOKENS, Some(usage.output_tokens)),
        (name::GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, usage.reasoning_tokens),
    ];
    let counts = counts.into_iter().filter_map(|(name, tokens)| Some(KeyValue::new(name, whole(tokens?))));
    let first_chunk = answer.time_to_first_chunk;
    let others = [
        first_chunk.map(|_| KeyValue::new(name::GEN_AI_REQUEST_STREAM, true)),
        first_chunk.map(|time| KeyValue::new(name::GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, time.as_secs_f64())),
        answer.model.clone().map(|model| KeyValue::new(name::GEN_AI_RESPONSE_MODEL, model)),
        answer.response_id.clone().map(|id| KeyValue::new(name::GEN_AI_RESPONSE_ID, id)),
        reasons.map(|reasons| KeyValue::new(name::GEN_AI_RESPONSE_FINISH_REASONS, reasons)),
    ];
    counts.chain(others.into_iter().flatten())
}

fn content(facts: &CallFacts<'_>) -> Vec<KeyValue> {
    let message = |role: &str, text: &str| json!({ "role": role, "parts": [{ "type": "text", "content": text }] });
    let messages = &facts.request.messages;
    let input: Vec<_> = messages.iter().map(|prompt| message(prompt.role.as_str(), &prompt.words())).collect();
    // The prompt of a question that never left the queue was never built.
    let is_built = !messages.is_empty();
    let mut content: Vec<_> = is_built
        .then(|| KeyValue::new(name::GEN_AI_INPUT_MESSAGES, serde_json::Value::from(input).to_string()))
        .into_iter()
        .collect();
    if let Ok(answer) = facts.outcome {
        content.push(KeyValue::new(name::GEN_AI_OUTPUT_MESSAGES, json!([message("assistant", &answer.text())]).to_string()));
    }
    content
}
