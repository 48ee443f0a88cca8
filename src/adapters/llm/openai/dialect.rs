//! Learns which optional parameters an endpoint refuses, and leaves them out from then on.

use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::StatusCode;

use crate::ports::language_model::{AnswerFormat, Identity};

/// What one endpoint supports, as far as it is known.
#[derive(Debug)]
pub(super) struct Dialect {
    identity: Identity,
    without_stream_options: AtomicBool,
    completion_tokens: AtomicBool,
    without_temperature: AtomicBool,
    without_json: AtomicBool,
    without_schema: AtomicBool,
}

/// How a request names the form of the answer, the plainest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// Only in the text of the prompt.
    Text,
    /// `response_format` says that it is a JSON object.
    Object,
    /// `response_format` holds a JSON schema.
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

    const fn plainer(self) -> Self {
        match self {
            Self::Schema => Self::Object,
            Self::Object | Self::Text => Self::Text,
        }
    }
}

/// The parameters of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
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
    /// A dialect of an endpoint that has refused nothing yet.
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

    /// The parameters to use now for an answer of this form.
    pub fn current(&self, wanted: Form) -> Parameters {
        let most = match (self.without_json.load(Ordering::Relaxed), self.without_schema.load(Ordering::Relaxed)) {
            (true, _) => Form::Text,
            (false, true) => Form::Object,
            (false, false) => Form::Schema,
        };
        Parameters {
            stream_options: !self.without_stream_options.load(Ordering::Relaxed),
            completion_tokens: self.completion_tokens.load(Ordering::Relaxed),
            temperature: !self.without_temperature.load(Ordering::Relaxed),
            form: wanted.min(most),
        }
    }

    /// The parameters for another attempt after a refusal: plainer ones that were not tried yet, if there are any.
    ///
    /// A refusal that names a parameter is remembered. JSON is also given up if the refusal does not name it, for servers that do not say what
    /// they refuse. If that attempt succeeds, [`worked`](Self::worked) remembers it.
    pub fn plainer(&self, parameters: Parameters, status: StatusCode, refusal: &[u8]) -> Option<Parameters> {
        let refusal = String::from_utf8_lossy(refusal);
        let (is_refusal, is_not_found) = (matches!(status.as_u16(), 400 | 422), status == StatusCode::NOT_FOUND);
        let has_form = parameters.form > Form::Text;
        if has_form && (is_refusal || is_not_found) && names_json(&refusal) {
            self.give_up(parameters.form);
            return Some(Parameters { form: parameters.form.plainer(), ..parameters });
        }
        if is_refusal && parameters.stream_options && refusal.contains("stream_options") {
            self.without_stream_options.store(true, Ordering::Relaxed);
            return Some(Parameters { stream_options: false, ..parameters });
        }
        if is_refusal && !parameters.completion_tokens && wants_completion_tokens(&refusal) {
            self.completion_tokens.store(true, Ordering::Relaxed);
            return Some(Parameters { completion_tokens: true, ..parameters });
        }
        if is_refusal && parameters.temperature && refusal.contains("temperature") {
            self.without_temperature.store(true, Ordering::Relaxed);
            return Some(Parameters { temperature: false, ..parameters });
        }
        // A router reports 404 when none of its servers supports the request.
        let may_be_json = is_refusal || (is_not_found && refusal.to_ascii_lowercase().contains("json"));
        (has_form && may_be_json).then_some(Parameters { form: parameters.form.plainer(), ..parameters })
    }

    /// Records that these parameters were accepted for an answer of this form. If they have a plainer form, the endpoint refuses the other one.
    pub fn worked(&self, wanted: Form, parameters: Parameters) {
        for form in [Form::Schema, Form::Object].into_iter().filter(|form| *form <= wanted && *form > parameters.form) {
            self.give_up(form);
        }
    }

    fn give_up(&self, form: Form) {
        let (without, plainer) = match form {
            Form::Text => return,
            Form::Object => (&self.without_json, "the endpoint refuses response_format, so JSON is requested only in the prompt"),
            Form::Schema => (&self.without_schema, "the endpoint refuses a JSON schema, so JSON is requested without one"),
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

/// Whether a refusal demands the other parameter. A limit that is too high is refused by its name too, and another name would not help then.
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

        let first = dialect.plainer(dialect.current(Form::Text), StatusCode::BAD_REQUEST, refusal);
        let second = dialect.plainer(dialect.current(Form::Text), StatusCode::BAD_REQUEST, refusal);

        let plainer = Parameters { stream_options: true, completion_tokens: true, temperature: true, form: Form::Text };
        assert_eq!((first, second), (Some(plainer), None));
        assert_eq!(dialect.current(Form::Text), plainer);
    }

    #[test]
    fn a_limit_that_is_too_high_changes_nothing() {
        let dialect = dialect();

        let plainer = dialect.plainer(
            dialect.current(Form::Text),
            StatusCode::BAD_REQUEST,
            br#"{"error":{"message":"max_tokens is too large: 99999"}}"#,
        );

        assert_eq!(plainer, None);
    }

    #[test]
    fn a_refusal_that_names_json_is_remembered_and_another_one_is_only_retried() {
        for (status, refusal, is_retried, is_remembered) in [
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

            let plainer = dialect.plainer(dialect.current(Form::Object), status, refusal.as_bytes());

            assert_eq!(plainer.map(|parameters| parameters.form), is_retried.then_some(Form::Text), "{status} {refusal}");
            assert_eq!(dialect.current(Form::Object).form == Form::Object, !is_remembered, "{status} {refusal}");
        }
    }

    #[test]
    fn a_text_answer_is_never_requested_as_json() {
        let dialect = dialect();

        let plainer = dialect.plainer(dialect.current(Form::Text), StatusCode::BAD_REQUEST, b"response_format");

        assert_eq!((dialect.current(Form::Text).form, plainer), (Form::Text, None));
        assert_eq!(dialect.current(Form::Object).form, Form::Object);
    }

    #[test]
    fn a_schema_is_given_up_before_json() {
        let dialect = dialect();
        let refused = |parameters, refusal: &str| dialect.plainer(parameters, StatusCode::BAD_REQUEST, refusal.as_bytes());

        let object =
            refused(dialect.current(Form::Schema), "response_format.type json_schema is unknown").expect("plainer parameters");
        let after_schema = (dialect.current(Form::Schema).form, dialect.current(Form::Object).form);
        let text = refused(object, "bad request").expect("plainer parameters");
        dialect.worked(Form::Schema, text);

        assert_eq!((object.form, text.form), (Form::Object, Form::Text));
        assert_eq!(after_schema, (Form::Object, Form::Object));
        assert_eq!(dialect.current(Form::Schema).form, Form::Text);
    }
}
