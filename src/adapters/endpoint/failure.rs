//! Describes the failures of an endpoint: what occurred and how to fix it, never with a key.

use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{CONTENT_ENCODING, DATE, HeaderMap, LOCATION, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use serde_json::value::RawValue;

use super::told::{Fault, Told};
use crate::domain::text::{self, spaced};
use crate::http_client::{Failed, is_no_tls, is_of_unknown_authority, tls_error};
use crate::ports::language_model::NoAnswer;

/// The maximum wait that is reported. The caller has its own timeout.
pub(super) const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);

/// The number of characters of an unreadable answer that are shown.
const MAX_SHOWN_CHARS: usize = 60;

/// The number of bytes of an unreadable answer or an error message that are stored. It is larger than the shown part, so that a key at its end is
/// recognised.
pub(super) const MAX_KEPT_BYTES: usize = 4_096;

/// The number of characters of a server's message that are shown.
const MAX_MESSAGE_CHARS: usize = 300;

/// The number of characters of the name of a compression that are shown.
const MAX_CODING_CHARS: usize = 20;

/// The number of characters of a failure that are shown in total.
const MAX_DETAIL_CHARS: usize = 600;

/// Why a request or its answer cannot be used.
#[derive(Debug, PartialEq)]
pub(in crate::adapters) enum Broken {
    /// The answer is too long.
    TooLong,
    /// The answer does not follow the protocol. The text describes it, and quotes nothing of it.
    Unreadable(String),
    /// The answer is not JSON, or has the wrong structure. The fields are the parse error and the beginning of the answer, which may contain the key.
    Garbled(String, String),
    /// The answer is an error.
    Told(Box<Told>),
    /// The model used up its token limit before the first word. The text advises how to fix it.
    OutOfTokens(String),
    /// The model declined to answer. The text is its answer.
    Declined(String),
    /// A filter withheld the whole answer. The text is the endpoint's explanation.
    Withheld(String),
    /// The answer consists of reasoning only, and ended with `stop`.
    OnlyThoughts,
    /// The answer repeats the same text without an end.
    Endless,
    /// The request cannot be serialised.
    Request(String),
    /// The answer is audio that cannot be used. The text describes it and how to fix it.
    Audio(String),
}

impl Broken {
    /// An answer that cannot be parsed, with the parse error.
    pub fn garbled(why: String, body: &[u8]) -> Self {
        Self::Garbled(why, String::from_utf8_lossy(&body[..body.len().min(MAX_KEPT_BYTES)]).into_owned())
    }

    /// An error answer with this message, and a status if it has one.
    pub fn failed(status: Option<u16>, message: String) -> Self {
        Self::Told(Box::new(Told { status, message, ..Told::default() }))
    }
}

/// The API that an endpoint should have, for advice in errors.
#[derive(Clone, Copy)]
pub(in crate::adapters) struct Api {
    name: &'static str,
    /// The usual end of its base URL.
    usual: Option<&'static str>,
}

/// The API that many servers are compatible with.
pub(in crate::adapters) const OPENAI: Api = Api { name: "an OpenAI-compatible API", usual: Some("/v1") };

/// Describes the failures of one endpoint.
pub(in crate::adapters) struct Failures {
    endpoint: Arc<str>,
    /// The key, and other texts that are never shown.
    secrets: Vec<SecretString>,
    api: Api,
}

impl Failures {
    /// For an endpoint with an API of its own.
    pub fn new(endpoint: Arc<str>, key: Option<SecretString>) -> Self {
        Self { endpoint, secrets: key.into_iter().collect(), api: Api { name: "the API of this service", usual: None } }
    }

    /// For an endpoint with this API.
    pub fn with_api(self, api: Api) -> Self {
        Self { api, ..self }
    }

    /// Adds secrets that are never shown.
    pub fn with_secrets(mut self, secrets: impl IntoIterator<Item = SecretString>) -> Self {
        self.secrets.extend(secrets);
        self
    }

    /// A response whose status is not a success.
    pub fn of_status(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> NoAnswer {
        if status.is_redirection() {
            let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
            // The query may contain data of the request, such as names of people.
            let to = to.split(['?', '#']).next().unwrap_or_default();
            return self.refused(format!(
                "{status}: it redirects to {to}; redirects are not followed, set base_url to where the API is"
            ));
        }
        match compression(headers) {
            None => self.of_told(&Told::by(status, headers, body)),
            Some(coding) => self.of_fault(&Told::by(status, headers, b""), Some(format!("its message is compressed ({coding})"))),
        }
    }

    /// An error message of the endpoint.
    pub fn of_told(&self, told: &Told) -> NoAnswer {
        let words = Some(&told.message).filter(|message| !message.is_empty());
        self.of_fault(told, words.map(|message| self.quoted(message)))
    }

    fn of_fault(&self, told: &Told, words: Option<String>) -> NoAnswer {
        let status = &told.status;
        let reason = |status: u16| StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let named = status.map(|status| format!("{status} {}", reason(status).unwrap_or_default()).trim_end().to_owned());
        let detail = [named, words].into_iter().flatten().collect::<Vec<_>>().join(": ");
        let endpoint = self.endpoint.clone();
        let advised = |advice: &str| self.shown(&format!("{detail} ({advice})"));
        let usual = |and: &str| self.api.usual.map(|end| format!(", which usually ends in {end}{and}")).unwrap_or_default();
        match told.fault() {
            Fault::Credit => NoAnswer::NoCredit { endpoint, detail: advised("add credit to the account, or use another one") },
            Fault::Key => NoAnswer::KeyRejected { endpoint, detail: advised("check the key") },
            Fault::Path => NoAnswer::UnknownModel { endpoint, detail: advised(&format!("check base_url{}", usual(""))) },
            Fault::Model => {
                NoAnswer::UnknownModel { endpoint, detail: advised(&format!("check base_url{} and model", usual(","))) }
            }
            Fault::Api => NoAnswer::UnknownModel { endpoint, detail: advised("take a model that has the chat completions API") },
            Fault::Account => {
                NoAnswer::KeyRejected { endpoint, detail: advised("change what the account allows there, or take another model") }
            }
            Fault::Plan => {
                let advice = "the account's plan does not include this; change the plan, or take another model";
                NoAnswer::UnknownModel { endpoint, detail: advised(advice) }
            }
            Fault::Content => self.filtered(detail),
            Fault::Loading => NoAnswer::Loading { endpoint, detail: self.shown(&detail) },
            Fault::Load if *status == Some(500) => {
                self.overloaded(format!("{detail} (its own log may tell why)"), told.retry_after)
            }
            Fault::Load => self.overloaded(detail, told.retry_after),
            Fault::Request => self.refused(detail),
        }
    }

    /// A failed or broken connection.
    pub fn of_connection(&self, error: impl Into<Failed>) -> NoAnswer {
        let error = error.into();
        let reason = error.reason.clone();
        self.unreachable(if is_of_unknown_authority(&error) {
            format!("{reason}; for models and speech alone, name a PEM file with this one in models.ca_file")
        } else if is_no_tls(&error) {
            "it does not speak TLS; should base_url begin with http://?".to_owned()
        } else if tls_error(&error).is_some() {
            reason
        } else if error.is_connect {
            format!("{reason}; is the server running, and is base_url right?")
        } else {
            format!("the connection broke: {reason}")
        })
    }

    /// A response whose body is compressed in a way that is not read.
    pub fn of_compressed(&self, headers: &HeaderMap) -> Option<NoAnswer> {
        let coding = compression(headers)?;
        Some(self.in_answer(Broken::Unreadable(format!(
            "it is compressed ({coding}), although no compression is accepted; have the endpoint, or the proxy before it, send it uncompressed"
        ))))
    }

    /// A stream that paused for too long.
    pub fn stalled(&self, idle: Duration) -> NoAnswer {
        self.unreachable(format!("the answer stopped halfway for {:.1} s", idle.as_secs_f64()))
    }

    /// An endpoint that answers requests more slowly than they arrive.
    pub fn behind(&self) -> NoAnswer {
        self.overloaded("it answers more slowly than people speak; use a faster server or a smaller model".to_owned(), None)
    }

    /// A stream that ended before the answer was complete.
    pub fn cut(&self) -> NoAnswer {
        self.unreachable("the answer was cut off halfway".to_owned())
    }

    /// A WebSocket that the endpoint closed, or whose connection broke.
    pub fn closed(&self, code: Option<u16>, reason: &str) -> NoAnswer {
        let shown = code.map(|code| format!(" with {code}")).unwrap_or_default();
        let reason = if reason.is_empty() { String::new() } else { format!(": {}", self.quoted(reason)) };
        let detail = format!("the connection ended{shown}{reason}");
        match code {
            // The request is at fault (RFC 6455, 7.4.1).
            Some(1002 | 1003 | 1007 | 1008) => self.refused(detail),
            _ => self.unreachable(detail),
        }
    }

    /// A successful response of another type.
    pub fn not_an_answer(&self, media_type: &str, expected: &str, begin: &[u8]) -> NoAnswer {
        let sent = if media_type.is_empty() { "something without a content type".to_owned() } else { shortened(media_type, 100) };
        let usual = self.api.usual.map(|end| format!(" (usually …{end})")).unwrap_or_default();
        let name = self.api.name;
        let words = Told::of(begin).message;
        let words = if words.is_empty() { words } else { format!(" ({})", self.quoted(&words)) };
        self.refused(format!("it sent {sent}{words} where {expected} was expected; does base_url lead to {name}{usual}?"))
    }

    /// A successful response whose content cannot be used.
    pub fn in_answer(&self, broken: Broken) -> NoAnswer {
        match broken {
            Broken::TooLong => self.refused(format!("its answer is too long; is this {}?", self.api.name)),
            Broken::Unreadable(what) => self.refused(format!("its answer cannot be read: {what}")),
            Broken::Garbled(why, begin) => {
                let shown = shortened(&self.without_key(&begin), MAX_SHOWN_CHARS);
                self.refused(format!("its answer cannot be read: {}", self.quoted(&format!("{why} in {shown:?}"))))
            }
            Broken::Audio(why) => self.refused(why),
            Broken::Request(why) => {
                let detail = self.shown(&format!("the request cannot be written: {why}"));
                NoAnswer::Unsendable { endpoint: self.endpoint.clone(), detail }
            }
            Broken::Told(told) => self.of_told(&told),
            Broken::Withheld(why) => self.filtered(why),
            Broken::Declined(words) => self.filtered(format!("the model declined to answer: {}", self.quoted(&words))),
            Broken::OnlyThoughts => self.refused(
                "the model only thought: its whole answer came as a thought (reasoning_content); turn thinking on in its chat template, or the \
                 server's parser of thoughts off"
                    .to_owned(),
            ),
            Broken::Endless => self.refused(
                "the model wrote the same words again and again; use a larger model, or set a penalty for repetition".to_owned(),
            ),
            Broken::OutOfTokens(why) => NoAnswer::OutOfTokens { endpoint: self.endpoint.clone(), detail: self.shown(&why) },
        }
    }

    /// An unknown voice.
    pub fn unknown_voice(&self, message: &str) -> NoAnswer {
        self.refused(format!("{} (set [voice] voice of the companion to the id of a voice)", self.quoted(message)))
    }

    fn unreachable(&self, detail: String) -> NoAnswer {
        NoAnswer::Unreachable { endpoint: self.endpoint.clone(), detail: self.shown(&detail) }
    }

    fn overloaded(&self, detail: String, retry_after: Option<Duration>) -> NoAnswer {
        NoAnswer::Overloaded { endpoint: self.endpoint.clone(), detail: self.shown(&detail), retry_after }
    }

    fn filtered(&self, detail: String) -> NoAnswer {
        NoAnswer::Filtered { endpoint: self.endpoint.clone(), detail: self.shown(&detail) }
    }

    fn refused(&self, detail: String) -> NoAnswer {
        NoAnswer::Refused { endpoint: self.endpoint.clone(), detail: self.shown(&detail) }
    }

    /// The server's message in quotation marks, because it may quote people.
    fn quoted(&self, message: &str) -> String {
        format!("“{}”", shortened(&self.without_key(message), MAX_MESSAGE_CHARS))
    }

    fn shown(&self, detail: &str) -> String {
        shortened(&self.without_key(detail), MAX_DETAIL_CHARS)
    }

    /// Removes the key. This happens before the text is shortened, so that no part of the key remains.
    fn without_key(&self, text: &str) -> String {
        let secrets = self.secrets.iter().filter(|secret| !secret.expose_secret().is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret.expose_secret(), "***"))
    }
}

/// The coding of a body that [`crate::http_client`] does not decode.
fn compression(headers: &HeaderMap) -> Option<String> {
    Some(shortened(&String::from_utf8_lossy(headers.get(CONTENT_ENCODING)?.as_bytes()), MAX_CODING_CHARS))
}

/// The string in a JSON value. `None` if the value is not a string.
pub(in crate::adapters) fn text_in(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// One line of at most `max_chars` characters, without control characters and invisible ones.
pub(in crate::adapters) fn shortened(text: &str, max_chars: usize) -> String {
    spaced(&text::shortened(text, max_chars))
}

/// Parses `Retry-After`: seconds, or a date by the server's own clock (RFC 9110, 10.2.3).
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let delay = match text.parse::<f64>() {
        Ok(secs) => Duration::try_from_secs_f64(secs).ok()?,
        Err(_) => {
            let moment = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp());
            let sent = moment(headers.get(DATE)?.to_str().ok()?)?;
            Duration::try_from(moment(text)?.duration_since(sent)).unwrap_or_default()
        }
    };
    Some(delay.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use reqwest::header::HeaderValue;
    use reqwest::{Method, Url};

    use super::*;
    use crate::http_client::{Client, builder};

    fn failures() -> Failures {
        Failures::new("http://here".into(), Some("sk-secret".to_owned().into()))
    }

    fn wait_for(retry_after: &'static str, date: Option<&'static str>) -> Option<Duration> {
        let mut headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(retry_after))]);
        headers.extend(date.map(|date| (DATE, HeaderValue::from_static(date))));
        super::retry_after(&headers)
    }

    #[test]
    fn a_wait_in_seconds_or_as_a_date_is_parsed_and_capped() {
        let date = Some("Wed, 21 Oct 2015 07:28:00 GMT");

        let waits = [
            wait_for("7", None),
            wait_for("0.5", None),
            wait_for("Wed, 21 Oct 2015 07:28:30 GMT", date),
            wait_for("Wed, 21 Oct 2015 07:27:00 GMT", date),
            wait_for("99999", None),
            wait_for("soon", date),
            wait_for("-1", None),
        ];

        let secs = waits.map(|wait| wait.map(|wait| wait.as_secs_f64()));
        assert_eq!(secs, [Some(7.0), Some(0.5), Some(30.0), Some(0.0), Some(600.0), None, None]);
    }

    #[test]
    fn a_key_that_the_server_echoes_is_hidden_even_where_the_message_is_cut() {
        let body = format!("{{\"error\":{{\"message\":\"{} wrong key sk-secret\"}}}}", "x".repeat(270));

        let error = failures().of_status(StatusCode::UNAUTHORIZED, &HeaderMap::new(), body.as_bytes());

        assert!(!error.to_string().contains("sk-"), "{error}");
        assert!(error.to_string().chars().count() < 400);
    }

    #[test]
    fn a_key_in_an_unreadable_answer_is_hidden_even_where_it_is_cut() {
        let body = format!("{} sk-secret", "x".repeat(50));

        let error = failures().in_answer(Broken::garbled("not JSON".to_owned(), body.as_bytes()));

        assert!(!error.to_string().contains("sk-"), "{error}");
    }

    #[tokio::test]
    async fn a_connection_that_fails_tells_what_to_do() {
        let untrusted = crate::http_client::samples::untrusted_server();
        let url = untrusted.clone();
        let plain = url.as_str().replace("https", "http");
        let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
        let told = async |url: &str| {
            let url: Url = format!("{url}?name=Ana").parse().expect("a URL");
            let client = Client::new(&url, builder(&url, &[]), None).expect("a client");
            let error = client.send(client.request(Method::GET, url)).await.expect_err("no connection");
            failures().of_connection(error).to_string()
        };

        let unknown = told(untrusted.as_str()).await;
        let absent = told(&format!("http://{closed}/v1")).await;
        let cut = told(&plain).await;

        assert!(unknown.contains("in models.ca_file") && !unknown.contains("is the server running"), "{unknown}");
        assert!(absent.ends_with("is the server running, and is base_url right?"), "{absent}");
        assert!(cut.contains("the connection broke") && !cut.contains("Ana"), "{cut}");
    }

    #[test]
    fn each_status_has_the_right_error_code() {
        let codes = [400, 422, 307, 402, 401, 403, 404, 408, 429, 500, 502, 503, 529].map(|status| {
            let status = StatusCode::from_u16(status).expect("a status");
            failures().of_status(status, &HeaderMap::new(), b"").code()
        });

        let (refused, rejected, overloaded) = (["refused"; 3], ["key_rejected"; 2], ["overloaded"; 6]);
        assert_eq!(codes.as_slice(), [&refused[..], &["no_credit"], &rejected, &["unknown_model"], &overloaded].concat());
    }
}
