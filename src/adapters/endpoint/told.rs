//! Parses an endpoint's error messages, in the formats that servers use, and classifies the cause.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::value::RawValue;

use super::failure::{MAX_KEPT_BYTES, MAX_RETRY_AFTER, retry_after, text_in};
use super::fields::fields;
use super::first::First;
use crate::domain::text::first_bytes;

/// The maximum depth of nested errors. Routers wrap the errors of other servers, whose message is JSON in a string.
const MAX_DEPTH: u8 = 8;

/// The maximum number of list entries that are read, and of messages that are shown.
const MOST_ENTRIES: usize = 4;

/// The error message of an endpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::adapters) struct Told {
    /// The HTTP status of the response. For a successful response, the status that the error names.
    pub status: Option<u16>,
    pub message: String,
    /// The types and codes of the error, in lower case.
    pub codes: Vec<String>,
    /// The wait that the endpoint asks for before a retry.
    pub retry_after: Option<Duration>,
}

/// The cause of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::adapters) enum Fault {
    /// The account has no credit.
    Credit,
    /// The key is wrong.
    Key,
    /// The address is wrong: the API has another path.
    Path,
    /// The name of the model is wrong, or the address.
    Model,
    /// The model has another API.
    Api,
    /// The account may not use this model in its current configuration.
    Account,
    /// The account's plan does not include the model, or what is asked of it.
    Plan,
    /// A filter refuses the content.
    Content,
    /// The endpoint is temporarily unavailable.
    Load,
    /// The endpoint is loading the model.
    Loading,
    /// The request is wrong.
    Request,
}

impl Told {
    /// The error in a response whose status is not a success.
    pub fn by(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let told = Self::of(body);
        let told = Self { status: Some(status.as_u16()), retry_after: retry_after(headers).or(told.retry_after), ..told };
        let is_long = told.status == Some(429) && told.retry_after.is_none() && told.says(LONG_LIMITS);
        Self { retry_after: told.retry_after.or(is_long.then_some(MAX_RETRY_AFTER)), ..told }
    }

    /// The error in a body. If the body is not JSON, its text is the message.
    pub fn of(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<&RawValue>(body) else {
            let text = String::from_utf8_lossy(&body[..body.len().min(MAX_KEPT_BYTES)]);
            // An HTML page is for browsers.
            let message = if text.trim_start().starts_with('<') { String::new() } else { text.trim().to_owned() };
            return Self { message, ..Self::default() };
        };
        Self::in_json(value)
    }

    /// The error in a JSON value.
    pub fn in_json(value: &RawValue) -> Self {
        let mut found = Found::default();
        found.read(value, MAX_DEPTH);
        let mut message = found.words.join(": ");
        if message.is_empty() && !matches!(value.get(), "{}" | "[]" | "\"\"") {
            value.get().clone_into(&mut message);
        }
        message.truncate(first_bytes(&message, MAX_KEPT_BYTES).len());
        let named = || found.codes.iter().find_map(|code| named_status(code));
        Self { status: found.status.or_else(named), message, codes: found.codes, retry_after: found.retry_after }
    }

    /// The message and all codes.
    pub fn words(&self) -> String {
        [&self.message].into_iter().chain(&self.codes).map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    fn says(&self, known: &[&str]) -> bool {
        let words = self.message.to_lowercase();
        known.iter().any(|known| words.contains(known))
    }

    /// Classifies the cause by the known codes and words of the error, or else by its status.
    pub fn fault(&self) -> Fault {
        let says = |known: &[&str]| self.says(known);
        let is = |known: &[&str]| self.codes.iter().any(|code| known.contains(&&**code));
        match self.status {
            Some(400 | 409 | 425 | 429 | 500 | 503) | None if says(LOADING_WORDS) && !says(LOADING_FAILED_WORDS) => {
                Fault::Loading
            }
            Some(400..=499) | None if says(OTHER_API_WORDS) || is(OTHER_API) => Fault::Api,
            Some(400..=499) | None if says(ACCOUNT_WORDS) => Fault::Account,
            Some(400 | 403..=428) | None if says(PLAN_WORDS) && !is(NO_CREDIT) && !says(NO_CREDIT_WORDS) => Fault::Plan,
            Some(400 | 403 | 405..=428 | 430..=501) | None if is(CONTENT) || says(CONTENT_WORDS) => Fault::Content,
            // Limits of concurrent requests, or of requests per minute, are temporary, even if the code says otherwise.
            _ if self.status == Some(402) || is(NO_CREDIT) && !says(PASSES) => Fault::Credit,
            Some(400..=499) | None if says(NO_CREDIT_WORDS) && self.retry_after.is_none() && !says(PASSES) => Fault::Credit,
            _ if is(NO_MODEL) => Fault::Model,
            Some(401 | 403) => Fault::Key,
            Some(429) => Fault::Load,
            _ if is(WRONG_KEY) || says(WRONG_KEY_WORDS) => Fault::Key,
            Some(405) => Fault::Path,
            Some(400..=499) | None if says(WRONG_PATH_WORDS) => Fault::Path,
            Some(404) => Fault::Model,
            Some(400..=499) | None if says(NO_MODEL_WORDS) => Fault::Model,
            // Groq returns 498 if a tier has no capacity.
            Some(408 | 425 | 498 | 500..) => Fault::Load,
            None if !says(TOO_LONG_WORDS) => Fault::Load,
            _ => Fault::Request,
        }
    }
}

const NO_CREDIT: &[&str] = &[
    "insufficient_quota",
    "insufficient_credits",
    "insufficient_balance",
    "insufficient_funds",
    "exceeded_current_quota_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "payment_required",
    "credits_exhausted",
    "credit_required",
    "arrearage",
    "insufficient_user_quota",
    "pre_consume_token_quota_failed",
    // Zhipu.
    "1113",
];
const NO_CREDIT_WORDS: &[&str] = &[
    "insufficient credit",
    "insufficient balance",
    "insufficient account balance",
    "insufficient funds",
    "insufficient_quota",
    "not enough credit",
    "out of credit",
    "used all available credits",
    "credits are depleted",
    "credit limit",
    "spending limit",
    "no credits",
    "more credits",
    "add credit",
    "credit balance is too low",
    "exceeded your current quota",
    "payment required",
    "account balance",
    "余额不足",
    "欠费",
];
/// Words of temporary limits.
const PASSES: &[&str] =
    &["concurrent", "per minute", "per second", "per hour", "rate limit", "too many requests", "retry in", "try again in"];

/// Words of limits that last longer than minutes.
const LONG_LIMITS: &[&str] =
    &["per day", "per-day", "daily", "per week", "weekly", "per month", "monthly", "free tier limit", "free_tier", "free quota"];

const LOADING_WORDS: &[&str] = &[
    "loading model",
    "model is loading",
    "model loading",
    "currently loading",
    "still loading",
    "is being loaded",
    "model is starting",
    "model is warming up",
    "cold start",
];

/// Waiting does not help if a model could not be loaded.
const LOADING_FAILED_WORDS: &[&str] =
    &["error loading", "fail", "unable", "could not", "cannot", "can't", "terminated", "out of memory", "not enough memory"];

const OTHER_API: &[&str] = &["operationnotsupported", "unsupported_api_for_model"];
const OTHER_API_WORDS: &[&str] = &[
    "v1/responses",
    "responses api",
    "not a chat model",
    "use v1/completions",
    "operation does not work with the specified model",
    "does not support chat",
    "not support chat completion",
    "not a chat completion model",
    "no chat template",
    "chat template is not",
];

const ACCOUNT_WORDS: &[&str] = &[
    "data policy",
    "must be verified",
    "verify your organization",
    "verify organization",
    "account is not verified",
    "verify your account",
    "verify your email",
    "accept the terms",
    "agree to the terms",
    "gated model",
    "gated repo",
    "is gated",
];

const PLAN_WORDS: &[&str] = &[
    "your plan",
    "current plan",
    "subscription plan",
    "free plan",
    "paid plan",
    "pro plan",
    "plan does not",
    "plan doesn't",
    "your tier",
    "current tier",
    "usage tier",
    "free tier",
    "paid tier",
    "higher tier",
    "your subscription does not",
    "your subscription doesn't",
    "requires a subscription",
    "require a subscription",
    "subscription required",
    "active subscription",
    "upgrade your account",
    "upgrade your subscription",
    "upgrade to a paid",
];

/// Codes of refusals because of the content.
const CONTENT: &[&str] = &[
    "content_filter",
    "content_filter_error",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "data_inspection_failed",
    "datainspectionfailed",
    "prohibited_content",
    "sensitive_words_detected",
    "moderation_blocked",
    "content_moderation_error",
    "contentfilter",
    "safety_check_failed",
    // Zhipu.
    "1301",
];
const CONTENT_WORDS: &[&str] = &[
    "content management policy",
    "content exists risk",
    "inappropriate content",
    "flagged by moderation",
    "moderation",
    "was flagged",
    "response was filtered",
    "response filtered",
    "blocked for reason",
    "due to safety",
    "blocked due to",
    // xAI answers like this with 403.
    "i can't help with",
    "i can’t help with",
    "i cannot help with",
    "been flagged",
    "content filter",
    "content_filter",
    "content policy",
    "content policies",
    "usage policy",
    "usage policies",
    "safety system",
    "prohibited content",
    "prohibited_content",
    "prohibited use",
    "harmful content",
    "unsafe content",
    "sensitive content",
    "sensitive information",
    "considered high risk",
    "blocked by safety",
    "safety settings",
    "不安全或敏感",
    "敏感内容",
    "内容安全",
    "违规",
];

const WRONG_KEY: &[&str] = &[
    "invalid_api_key",
    "api_key_invalid",
    "invalid_authentication",
    "invalid_authentication_error",
    "authentication_error",
    "incorrect_api_key_error",
    "unauthorized",
    "unauthenticated",
    "access_token_type_unsupported",
];
const WRONG_KEY_WORDS: &[&str] = &[
    "api key not valid",
    "api key not found",
    "api key expired",
    "api key provided",
    "invalid api key",
    "invalid api_key",
    "invalid api-key",
    "no api key",
    "missing api key",
    "missing or invalid authorization",
    "missing authentication",
    "invalid authentication",
    "invalid access token",
    "invalid bearer token",
    "authentication failed",
    "no auth credentials",
];

const WRONG_PATH_WORDS: &[&str] = &[
    "unexpected endpoint",
    "unknown endpoint",
    "invalid url (",
    "unknown request url",
    "cannot post /",
    "cannot get /",
    "no route",
    "route not found",
    "endpoint not found",
    "path not found",
    "page not found",
    "resource not found",
    "file not found",
    "method not allowed",
];

const NO_MODEL: &[&str] = &["model_not_found", "model_not_supported", "unknown_model", "invalid_model", "deploymentnotfound"];
const NO_MODEL_WORDS: &[&str] = &[
    "model not exist",
    "model not found",
    "is not a valid model",
    "no such model",
    "unknown model",
    "invalid model",
    "no models loaded",
    "no model loaded",
];

/// Words of errors after which a repeated request fails again. Used where there is no status.
const TOO_LONG_WORDS: &[&str] = &["context", "too long", "too large", "exceeds", "invalid", "not supported", "unsupported"];

/// The status that an error type stands for, for a successful response that names no status.
fn named_status(code: &str) -> Option<u16> {
    Some(match code {
        "invalid_request_error" | "badrequesterror" | "bad_request" | "invalid_argument" | "failed_precondition" => 400,
        "permission_denied" | "permission_error" => 403,
        "not_found_error" | "notfounderror" | "not_found" => 404,
        "rate_limit_error" | "rate_limit_exceeded" | "resource_exhausted" | "too_many_requests" => 429,
        "overloaded_error" | "unavailable" | "service_unavailable" => 503,
        _ => return None,
    })
}

/// The data found in an error.
#[derive(Default)]
struct Found {
    words: Vec<String>,
    codes: Vec<String>,
    status: Option<u16>,
    retry_after: Option<Duration>,
}

impl Found {
    fn read(&mut self, value: &RawValue, depth: u8) {
        let Some(deeper) = depth.checked_sub(1) else { return };
        match value.get().as_bytes().first() {
            Some(b'"') => self.say(text_in(value).unwrap_or_default(), deeper),
            Some(b'[') => self.read_all(value, deeper),
            Some(b'{') => self.read_object(value, deeper),
            _ => {}
        }
    }

    fn read_all(&mut self, list: &RawValue, depth: u8) {
        let entries: Option<First<&RawValue, MOST_ENTRIES>> = serde_json::from_str(list.get()).ok();
        entries.into_iter().flat_map(|entries| entries.0).for_each(|entry| self.read(entry, depth));
    }

    fn read_object(&mut self, value: &RawValue, depth: u8) {
        let object = value.get();
        let codes = fields(object, ["code", "status", "type", "error_type", "reason", "param"]).unwrap_or_default();
        let [status_code] = fields(object, ["status_code"]).unwrap_or_default();
        for code in [codes[0], codes[1], status_code].into_iter().flatten() {
            let number = code.get().trim_matches('"').parse().ok();
            self.status = self.status.or(number.filter(|status| (400..=599).contains(status)));
        }
        for code in codes.into_iter().flatten() {
            let code = text_in(code).unwrap_or_else(|| code.get().to_owned());
            if self.codes.len() < 4 * MOST_ENTRIES && code.len() <= 100 {
                self.codes.push(code.to_lowercase());
            }
        }
        // The first one comes from `RetryInfo` of Google's APIs.
        for delay in fields(object, ["retryDelay", "retry_after"]).unwrap_or_default().into_iter().flatten() {
            let secs = delay.get().trim_matches('"').trim_end_matches('s').parse().ok();
            let wait = secs.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
            self.retry_after = self.retry_after.or(wait.map(|wait| wait.min(MAX_RETRY_AFTER)));
        }
        let names = ["error", "errors", "message", "msg", "detail", "error_message", "error_msg", "metadata", "raw"];
        fields(object, names).unwrap_or_default().into_iter().flatten().for_each(|told| self.read(told, depth));
        if let Ok([Some(details)]) = fields(object, ["details"]) {
            // Details repeat the message, or are meant for programs.
            let words = std::mem::take(&mut self.words);
            self.read(details, depth);
            if !words.is_empty() {
                self.words = words;
            }
        }
    }

    /// Adds a message, unless it is known already. A message that is JSON is the error of another server.
    fn say(&mut self, text: String, depth: u8) {
        let text = text.trim();
        let before = self.words.len();
        if text.starts_with(['{', '['])
            && let Ok(inner) = serde_json::from_str(text)
        {
            self.read(inner, depth);
            if self.words.len() > before {
                return;
            }
        }
        let is_known = self.words.iter().any(|known| known.contains(text));
        if !text.is_empty() && !is_known && self.words.len() < MOST_ENTRIES {
            self.words.push(first_bytes(text, MAX_KEPT_BYTES).to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
