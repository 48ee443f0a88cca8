//! Learns which request parameters an endpoint refuses for a model, and avoids them from then on. Lessons expire after a day.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::context::Context;
use crate::domain::answer_end::AnswerEnd;
use crate::ports::language_model::{AnswerFormat, Identity, READS_NO_PICTURES};

/// How long a lesson is used. Servers are updated, and a refusal may have been a mistake.
pub(super) const LEARNT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The token limit for an endpoint that refuses a higher one.
const SHORT_ANSWER: u32 = 1_000;

/// Words of refusals that are about pictures.
const NAMES_OF_PICTURES: [&str; 7] =
    ["image", "vision", "picture", "multimodal", "multi-modal", "mmproj", "content must be a string"];
/// Words of refusals of all pictures.
const REFUSALS_OF_PICTURES: [&str; 9] = [
    "support",
    "not a multimodal",
    "mmproj",
    "vision",
    "modalit",
    "text-only",
    "text only",
    "must be a string",
    "missing data required",
];

/// The maximum number of unknown finish reasons that are logged.
const MOST_UNKNOWN_ENDS: usize = 16;

/// The features that one endpoint supports for one model, as far as they are known.
#[derive(Debug)]
pub(super) struct Dialect {
    pub identity: Identity,
    pub context: Context,
    /// Whether the endpoint's list of models says that the model reads pictures.
    pub lists_pictures: Mutex<Option<bool>>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The lessons, with the time when each was learnt.
    lessons: BTreeMap<Lesson, Instant>,
    /// The forms in which an answer arrived.
    accepted: BTreeSet<Form>,
    /// The unknown finish reasons that were logged.
    unknown_ends: BTreeSet<String>,
}

/// The dialects of all models of a process, by URL and model, so that several clients of one model share their lessons.
#[derive(Clone, Default)]
pub struct Dialects(Arc<Mutex<ByModel>>);

type ByModel = BTreeMap<(String, Arc<str>), Arc<Dialect>>;

impl Dialects {
    /// The dialect of a model at this URL.
    pub(super) fn of(&self, url: String, identity: &Identity) -> Arc<Dialect> {
        let mut all = self.0.lock();
        all.entry((url, identity.model.clone())).or_insert_with(|| Arc::new(Dialect::of(identity.clone()))).clone()
    }
}

/// How a request specifies the form of the answer, the plainest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// Only in the text of the prompt.
    Text,
    /// `response_format` requests a JSON object.
    Object,
    /// `response_format` contains a JSON schema.
    Schema,
}

impl Form {
    /// The form for a request.
    pub const fn of(format: &AnswerFormat) -> Self {
        match format {
            AnswerFormat::Text => Self::Text,
            AnswerFormat::JsonObject => Self::Object,
            AnswerFormat::JsonSchema { .. } => Self::Schema,
        }
    }
}

/// A feature that an endpoint refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lesson {
    Stream,
    StreamOptions,
    MaxTokens,
    LongAnswers,
    Temperature,
    System,
    Schema,
    Json,
    Pictures,
    Tools,
}

impl Lesson {
    const fn in_words(self) -> &'static str {
        match self {
            Self::Stream => "answers come in one piece, because the endpoint refuses to stream",
            Self::StreamOptions => "tokens are not asked for in streams, because the endpoint refuses stream_options",
            Self::MaxTokens => "the limit of tokens is sent as max_completion_tokens, because the endpoint refuses max_tokens",
            Self::LongAnswers => "answers may have 1,000 tokens, because the endpoint refuses a higher limit",
            Self::Temperature => "the temperature is left to the endpoint, because it refuses one",
            Self::System => "instructions come with the first message, because the endpoint refuses the role system",
            Self::Schema => "JSON is requested without a schema, because the endpoint refuses one",
            Self::Pictures => READS_NO_PICTURES,
            Self::Tools => "no tools are offered, because the endpoint or the model refuses them",
            Self::Json => "JSON is requested only in the prompt, because the endpoint refuses response_format",
        }
    }
}

/// The parameters of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    /// Whether the answer is streamed, which some models refuse.
    pub stream: bool,
    /// `stream_options`, which older servers do not know.
    pub stream_options: bool,
    /// `max_completion_tokens` instead of `max_tokens`, which newer models of OpenAI demand.
    pub completion_tokens: bool,
    /// The maximum number of tokens of the answer.
    pub limit: u32,
    /// `temperature`, which reasoning models refuse.
    pub temperature: bool,
    /// The role `system`, which some templates do not know.
    pub system: bool,
    /// Pictures, which many models do not read.
    pub pictures: bool,
    /// `tools`, and messages of calls, which many models and templates do not know.
    pub tools: bool,
    /// `response_format`, which many servers and models do not know, or not with a schema.
    pub form: Form,
}

/// A request in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub parameters: Parameters,
    /// The lessons to learn if it succeeds.
    lessons: Vec<Lesson>,
}

impl Attempt {
    /// The same with other parameters, and with a lesson to learn if it succeeds.
    fn without(&self, lesson: impl Into<Option<Lesson>>, parameters: Parameters) -> Self {
        Self { parameters, lessons: self.lessons.iter().copied().chain(lesson.into()).collect() }
    }
}

impl Dialect {
    /// A dialect of an endpoint that has refused nothing yet.
    pub fn of(identity: Identity) -> Self {
        Self { identity, context: Context::default(), lists_pictures: Mutex::default(), known: Mutex::default() }
    }

    /// The first attempt for an answer of this form and of at most `max_tokens` tokens.
    pub fn first(&self, wanted: Form, max_tokens: u32) -> Attempt {
        let lessons = self.lessons();
        let refuses = |lesson| lessons.contains(&lesson);
        let most = match (refuses(Lesson::Json), refuses(Lesson::Schema)) {
            (true, _) => Form::Text,
            (false, true) => Form::Object,
            (false, false) => Form::Schema,
        };
        let parameters = Parameters {
            stream: !refuses(Lesson::Stream),
            stream_options: !refuses(Lesson::StreamOptions),
            completion_tokens: refuses(Lesson::MaxTokens),
            limit: if refuses(Lesson::LongAnswers) { max_tokens.min(SHORT_ANSWER) } else { max_tokens },
            temperature: !refuses(Lesson::Temperature),
            system: !refuses(Lesson::System),
            pictures: !refuses(Lesson::Pictures),
            tools: !refuses(Lesson::Tools),
            form: wanted.min(most),
        };
        Attempt { parameters, lessons: Vec::new() }
    }

    /// The next attempt after a refusal, in a form that was not tried yet. `None`: there is no such form. Features that the
    /// refusal names are changed first. The form is also simplified if the refusal does not name it, for servers that do not say
    /// what they refuse.
    ///
    /// `status` is `None` for an error inside a successful response that names none.
    pub fn next(&self, attempt: &Attempt, status: Option<u16>, refusal: &str) -> Option<Attempt> {
        let refusal = refusal.to_lowercase();
        let says = |known: &[&str]| known.iter().any(|known| refusal.contains(known));
        let parameters = attempt.parameters;
        if parameters.limit > SHORT_ANSWER && refuses_limit(&refusal) {
            let short = Parameters { limit: SHORT_ANSWER, ..parameters };
            // A long prompt or a nearly exhausted credit says nothing about the next request.
            let is_lasting = status != Some(402) && !says(&["context", "prompt", "inputs", "messages", "per minute", "afford"]);
            return Some(attempt.without(is_lasting.then_some(Lesson::LongAnswers), short));
        }
        if matches!(status, Some(401 | 402 | 408 | 429)) {
            return None;
        }
        if parameters.pictures
            && matches!(status, Some(400 | 404 | 413 | 415 | 422 | 500 | 501) | None)
            && says(&NAMES_OF_PICTURES)
        {
            let plain = Parameters { pictures: false, ..parameters };
            // One picture that cannot be read says nothing about the next one.
            let is_lasting = says(&REFUSALS_OF_PICTURES);
            return Some(attempt.without(is_lasting.then_some(Lesson::Pictures), plain));
        }
        if parameters.tools && matches!(status, Some(400 | 404 | 422 | 500 | 501) | None) && says(&NAMES_OF_TOOLS) {
            let plain = Parameters { tools: false, ..parameters };
            // One tool whose description is refused says nothing about others.
            let is_lasting = !says(&["schema", "function.", "invalid tool"]);
            return Some(attempt.without(is_lasting.then_some(Lesson::Tools), plain));
        }
        let is_refusal = matches!(status, Some(400 | 422) | None);
        let is_passing = matches!(status, Some(502..=504 | 529));
        let has_form = parameters.form > Form::Text;
        if has_form && says(&["json_validate_failed", "failed_generation", "failed to generate json", "failed to validate json"])
        {
            // The model's output had the wrong form this time only.
            return Some(attempt.without(None, Parameters { form: Form::Text, ..parameters }));
        }
        if has_form && says(&NAMES_OF_FORMS) {
            return attempt_with_plainer_form(attempt);
        }
        if !is_passing && parameters.stream && refuses_stream(&refusal) {
            return Some(attempt.without(Lesson::Stream, Parameters { stream: false, ..parameters }));
        }
        if is_refusal && parameters.stream && parameters.stream_options && says(&["stream_options"]) {
            return Some(attempt.without(Lesson::StreamOptions, Parameters { stream_options: false, ..parameters }));
        }
        if is_refusal && !parameters.completion_tokens && wants_completion_tokens(&refusal) {
            return Some(attempt.without(Lesson::MaxTokens, Parameters { completion_tokens: true, ..parameters }));
        }
        if is_refusal && parameters.temperature && says(&["temperature"]) {
            return Some(attempt.without(Lesson::Temperature, Parameters { temperature: false, ..parameters }));
        }
        if !is_passing && parameters.system && says(&NAMES_OF_SYSTEM) {
            return Some(attempt.without(Lesson::System, Parameters { system: false, ..parameters }));
        }
        let may_be_form = match status {
            Some(400 | 422) => true,
            // A router reports 404 if none of its servers supports the request.
            Some(404) | None => says(&["json", "schema", "format"]),
            // The failure may also be temporary.
            Some(500 | 501) => !self.known.lock().accepted.contains(&parameters.form),
            _ => false,
        };
        if has_form && may_be_form {
            return attempt_with_plainer_form(attempt);
        }
        // A server that knows only text may not say what it refuses.
        if parameters.tools && matches!(status, Some(400 | 404 | 422 | 500 | 501)) {
            return Some(attempt.without(None, Parameters { tools: false, ..parameters }));
        }
        let may_be_pictures = parameters.pictures && matches!(status, Some(400 | 413 | 415 | 422));
        may_be_pictures.then(|| attempt.without(None, Parameters { pictures: false, ..parameters }))
    }

    /// Records that an answer arrived. The refusals before it become lessons.
    pub fn worked(&self, attempt: &Attempt) {
        let mut known = self.known.lock();
        known.accepted.insert(attempt.parameters.form);
        for lesson in &attempt.lessons {
            if known.lessons.insert(*lesson, Instant::now()).is_none() {
                let Identity { endpoint, model, .. } = &self.identity;
                tracing::info!(%endpoint, %model, "{}", lesson.in_words());
            }
        }
    }

    /// Logs an unknown finish reason, once.
    pub fn ended(&self, reason: &str) {
        let mut known = self.known.lock();
        let is_new = AnswerEnd::of(reason) == AnswerEnd::Other && known.unknown_ends.len() < MOST_UNKNOWN_ENDS;
        if is_new && known.unknown_ends.insert(reason.to_owned()) {
            let Identity { endpoint, model, .. } = &self.identity;
            tracing::warn!(%endpoint, %model, reason, "answers end with a finish_reason that is not known: one without a whole sentence at its end counts as cut");
        }
    }

    /// Whether pictures were refused.
    pub fn refuses_pictures(&self) -> bool {
        self.lessons().contains(&Lesson::Pictures)
    }

    /// The lessons, in words.
    pub fn in_words(&self) -> Vec<Cow<'static, str>> {
        let lessons = self.lessons().into_iter().map(|lesson| Cow::Borrowed(lesson.in_words()));
        lessons.chain(self.context.in_words().map(Cow::Owned)).collect()
    }

    fn lessons(&self) -> BTreeSet<Lesson> {
        let mut known = self.known.lock();
        known.lessons.retain(|_, learnt| learnt.elapsed() < LEARNT_FOR);
        known.lessons.keys().copied().collect()
    }
}

fn attempt_with_plainer_form(attempt: &Attempt) -> Option<Attempt> {
    let parameters = attempt.parameters;
    match parameters.form {
        Form::Schema => Some(attempt.without(Lesson::Schema, Parameters { form: Form::Object, ..parameters })),
        Form::Object => Some(attempt.without(Lesson::Json, Parameters { form: Form::Text, ..parameters })),
        Form::Text => None,
    }
}

/// Words of refusals of tools. Templates that know none fail at the messages of calls, before they fail at other roles.
const NAMES_OF_TOOLS: [&str; 6] = ["tool", "function call", "function_call", "jinja", "template", "alternat"];

const NAMES_OF_FORMS: [&str; 10] = [
    "response_format",
    "response format",
    "json_object",
    "json_schema",
    "json schema",
    "json mode",
    "structured output",
    "guided",
    "grammar",
    "response schema",
];

/// Phrases with which templates refuse the role `system`. Consecutive messages of one role are joined, so a complaint about
/// alternating roles also refers to it.
const NAMES_OF_SYSTEM: [&str; 14] = [
    "system role",
    "system message",
    "system prompt",
    "system instruction",
    "developer instruction",
    "'system'",
    "\"system\"",
    "`system`",
    "role system",
    "role: system",
    "alternat",
    "user and assistant",
    "jinja",
    "template",
];

/// Whether a refusal is about streaming: it names the parameter, or says that streaming is not available.
fn refuses_stream(refusal: &str) -> bool {
    let mut words = refusal.split(|c: char| !c.is_alphanumeric() && c != '_');
    let names = words.any(|word| matches!(word, "stream" | "streaming" | "streamed"));
    let denies = [
        "support",
        "allow",
        "verif",
        "permitted",
        "not implemented",
        "disabled",
        "enabled",
        "must be false",
        "cannot",
        "unavailable",
    ];
    names && (is_parameter(refusal, "stream") || denies.iter().any(|word| refusal.contains(word)))
}

/// Whether an error in JSON names this parameter as the invalid one.
fn is_parameter(refusal: &str, name: &str) -> bool {
    let compact: String = refusal.chars().filter(|c| !c.is_whitespace()).collect();
    compact.contains(&format!("\"param\":\"{name}\""))
}

/// Whether a refusal demands `max_completion_tokens` instead of `max_tokens`. A refusal of a limit that is too high names the
/// parameter, too, and another parameter would not help then.
fn wants_completion_tokens(refusal: &str) -> bool {
    let unknown = ["unsupported", "not supported", "unrecognized", "unknown", "not permitted"];
    refusal.contains("max_completion_tokens")
        || (refusal.contains("max_tokens") && unknown.iter().any(|word| refusal.contains(word)))
}

/// Whether a refusal says that the token limit is too high: for the model, for the room after the prompt, or for the credit.
fn refuses_limit(refusal: &str) -> bool {
    let says = |known: &[&str]| known.iter().any(|known| refusal.contains(known));
    let names = says(&[
        "max_tokens",
        "max_completion_tokens",
        "max_new_tokens",
        "max tokens",
        "draft tokens",
        "in the completion",
        "maximum tokens you requested",
    ]);
    let is_too_high = [
        "too large",
        "too high",
        "at most",
        "less than",
        "must be <=",
        "exceed",
        "maximum",
        "fewer",
        "can only afford",
        "supports up to",
        "invalid max_tokens value",
        "out of range",
    ];
    names && says(&is_too_high) || says(&["request too large"]) && says(&["tokens per minute"])
}

#[cfg(test)]
mod tests;
