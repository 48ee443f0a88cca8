//! Learns which optional parameters an endpoint refuses, so that it is asked without them from then on.

use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::StatusCode;

use crate::ports::language_model::{AnswerFormat, Identity};

/// What one endpoint understands, as far as it has said.
#[derive(Debug)]
pub(super) struct Dialect {
    identity: Identity,
    without_stream_options: AtomicBool,
    completion_tokens: AtomicBool,
    without_temperature: AtomicBool,
    without_json: AtomicBool,
    without_schema: AtomicBool,
}

/// How an endpoint is told the form of an answer, the plainest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// In the words of the prompt alone.
    Text,
    /// `response_format` says that it is a JSON object.
    Object,
    /// `response_format` holds a JSON schema.
    Schema,
}

impl Form {
    /// That of a request.
    pub const fn of(format: &AnswerFormat) -> Self {
        match format {
            AnswerFormat::Text => Self::Text,
            AnswerFormat::JsonObject => Self::Object,
            AnswerFormat::JsonSchema { .. } => Self::Schema,
        }
    }

    const fn plainer(self) -> Self {
        match self {
            Self::Schema => Self::Object,
            Self::Object | Self::Text => Self::Text,
        }
    }
}

/// The parameters of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spoken {
    /// `stream_options`, which older servers do not know.
    pub stream_options: bool,
    /// `max_completion_tokens` in place of `max_tokens`, which newer models of OpenAI demand.
    pub completion_tokens: bool,
    /// `temperature`, which reasoning models refuse.
    pub temperature: bool,
    /// `response_format`, which many servers and models do not know, or not with a schema.
    pub form: Form,
}

impl Dialect {
    /// Nothing was refused yet.
    pub fn of(identity: Identity) -> Self {
        Self {
            identity,
            without_stream_options: AtomicBool::default(),
            completion_tokens: AtomicBool::default(),
            without_temperature: AtomicBool::default(),
            without_json: AtomicBool::default(),
            without_schema: AtomicBool::default(),
        }
    }

    /// How to ask now for an answer of this form.
    pub fn now(&self, wanted: Form) -> Spoken {
        let most = match (self.without_json.load(Ordering::Relaxed), self.without_schema.load(Ordering::Relaxed)) {
            (true, _) => Form::Text,
            (false, true) => Form::Object,
            (false, false) => Form::Schema,
        };
        Spoken {
            stream_options: !self.without_stream_options.load(Ordering::Relaxed),
            completion_tokens: self.completion_tokens.load(Ordering::Relaxed),
            temperature: !self.without_temperature.load(Ordering::Relaxed),
            form: wanted.min(most),
        }
    }

    /// How to ask again after a refusal of what was `spoken`: in a plainer way that was not tried yet, if there is one.
    ///
    /// A refusal that names a parameter is remembered. JSON is also given up without being named, for servers that do not say what
    /// they refuse; whether that was it shows when it [`worked`](Self::worked).
    pub fn plainer(&self, spoken: Spoken, status: StatusCode, refusal: &[u8]) -> Option<Spoken> {
        let refusal = String::from_utf8_lossy(refusal);
        let (is_refusal, is_not_found) = (matches!(status.as_u16(), 400 | 422), status == StatusCode::NOT_FOUND);
        let has_form = spoken.form > Form::Text;
        if has_form && (is_refusal || is_not_found) && names_json(&refusal) {
            self.give_up(spoken.form);
            return Some(Spoken { form: spoken.form.plainer(), ..spoken });
        }
        if is_refusal && spoken.stream_options && refusal.contains("stream_options") {
            self.without_stream_options.store(true, Ordering::Relaxed);
            return Some(Spoken { stream_options: false, ..spoken });
        }
        if is_refusal && !spoken.completion_tokens && wants_completion_tokens(&refusal) {
            self.completion_tokens.store(true, Ordering::Relaxed);
            return Some(Spoken { completion_tokens: true, ..spoken });
        }
        if is_refusal && spoken.temperature && refusal.contains("temperature") {
            self.without_temperature.store(true, Ordering::Relaxed);
            return Some(Spoken { temperature: false, ..spoken });
        }
        // A router finds nothing when none of its servers can do what is asked for.
        let may_be_json = is_refusal || (is_not_found && refusal.to_ascii_lowercase().contains("json"));
        (has_form && may_be_json).then_some(Spoken { form: spoken.form.plainer(), ..spoken })
    }

    /// Takes note that a request for an answer of this form was accepted in these words: in a plainer form, it was the form that was
    /// refused.
    pub fn worked(&self, wanted: Form, spoken: Spoken) {
        for form in [Form::Schema, Form::Object].into_iter().filter(|form| *form <= wanted && *form > spoken.form) {
            self.give_up(form);
        }
    }

    fn give_up(&self, form: Form) {
        let (without, plainer) = match form {
            Form::Text => return,
            Form::Object => (&self.without_json, "the endpoint refuses response_format, so it is asked for JSON in words alone"),
            Form::Schema => (&self.without_schema, "the endpoint refuses a JSON schema, so it is asked for JSON without one"),
        };
        if !without.swap(true, Ordering::Relaxed) {
            let Identity { endpoint, model, .. } = &self.identity;
            tracing::info!(%endpoint, %model, "{plainer}");
        }
    }
}

fn names_json(refusal: &str) -> bool {
    let refusal = refusal.to_ascii_lowercase();
    ["response_format", "json_object", "json_schema", "json mode", "structured output"].iter().any(|name| refusal.contains(name))
}

/// A limit that is too high is refused by its name too; another name would not help then.
fn wants_completion_tokens(refusal: &str) -> bool {
    let unknown =
        ["unsupported", "not supported", "unrecognized", "unknown", "not permitted", "Unsupported", "Unrecognized", "Unknown"];
    refusal.contains("max_completion_tokens")
        || (refusal.contains("max_tokens") && unknown.iter().any(|word| refusal.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect() -> Dialect {
        Dialect::of(Identity { provider: "p".into(), model: "m".into(), endpoint: "http://here".into() })
    }

    #[test]
    fn each_parameter_is_given_up_once() {
        let dialect = dialect();
        let refusal = br#"{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}"#;

        let first = dialect.plainer(dialect.now(Form::Text), StatusCode::BAD_REQUEST, refusal);
        let second = dialect.plainer(dialect.now(Form::Text), StatusCode::BAD_REQUEST, refusal);

        let plainer = Spoken { stream_options: true, completion_tokens: true, temperature: true, form: Form::Text };
        assert_eq!((first, second), (Some(plainer), None));
        assert_eq!(dialect.now(Form::Text), plainer);
    }

    #[test]
    fn a_limit_that_is_too_high_changes_nothing() {
        let dialect = dialect();

        let plainer = dialect.plainer(
            dialect.now(Form::Text),
            StatusCode::BAD_REQUEST,
            br#"{"error":{"message":"max_tokens is too large: 99999"}}"#,
        );

        assert_eq!(plainer, None);
    }

    #[test]
    fn json_is_given_up_where_it_is_named_and_only_tried_without_where_it_is_not() {
        for (status, refusal, asks_again, remembers) in [
            (400, "'response_format' is not supported", true, true),
            (404, "No endpoints found that support response_format", true, true),
            (422, "JSON mode is off", true, true),
            (400, "bad request", true, false),
            (404, "no json here", true, false),
            (404, "no such model", false, false),
            (401, "response_format", false, false),
            (500, "response_format", false, false),
        ] {
            let dialect = dialect();
            let status = StatusCode::from_u16(status).expect("a status");

            let plainer = dialect.plainer(dialect.now(Form::Object), status, refusal.as_bytes());

            assert_eq!(plainer.map(|spoken| spoken.form), asks_again.then_some(Form::Text), "{status} {refusal}");
            assert_eq!(dialect.now(Form::Object).form == Form::Object, !remembers, "{status} {refusal}");
        }
    }

    #[test]
    fn what_is_not_to_be_json_is_never_asked_for_as_json() {
        let dialect = dialect();

        let plainer = dialect.plainer(dialect.now(Form::Text), StatusCode::BAD_REQUEST, b"response_format");

        assert_eq!((dialect.now(Form::Text).form, plainer), (Form::Text, None));
        assert_eq!(dialect.now(Form::Object).form, Form::Object);
    }

    #[test]
    fn a_schema_is_given_up_before_json_is() {
        let dialect = dialect();
        let refused = |spoken, refusal: &str| dialect.plainer(spoken, StatusCode::BAD_REQUEST, refusal.as_bytes());

        let object = refused(dialect.now(Form::Schema), "response_format.type json_schema is unknown").expect("a plainer way");
        let after_schema = (dialect.now(Form::Schema).form, dialect.now(Form::Object).form);
        let text = refused(object, "bad request").expect("a plainer way");
        dialect.worked(Form::Schema, text);

        assert_eq!((object.form, text.form), (Form::Object, Form::Text));
        assert_eq!(after_schema, (Form::Object, Form::Object));
        assert_eq!(dialect.now(Form::Schema).form, Form::Text);
    }
}
