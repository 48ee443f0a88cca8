//! The models that an endpoint has: `GET /models`.

use reqwest::{Method, StatusCode};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::OpenAi;
use crate::adapters::endpoint::body::{self, MAX_ERROR_BYTES};
use crate::adapters::endpoint::failure::{Broken, shortened, text_in};
use crate::adapters::endpoint::fields::fields;
use crate::adapters::endpoint::first::First;
use crate::adapters::endpoint::service::Service;
use crate::adapters::endpoint::told::Told;
use crate::ports::language_model::NoAnswer;

/// The maximum number of names in the result.
const MOST_NAMES: usize = 2_000;
/// The maximum number of entries that are read.
const MOST_ENTRIES: usize = 10_000;
/// The maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 200;
/// The maximum size of a list. A longer list is rejected.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A list of models.
#[derive(Deserialize)]
struct List<'a> {
    /// `null` means an empty list.
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
    /// The name of the field in other APIs of Ollama and Google.
    #[serde(borrow)]
    models: Option<&'a RawValue>,
}

impl OpenAi {
    /// The names of the endpoint's models, in alphabetical order.
    ///
    /// # Errors
    /// Returns an error if the endpoint cannot be reached, refuses the request, or has no such list.
    pub async fn names(&self) -> Result<Vec<String>, NoAnswer> {
        let by = Instant::now() + self.first_token_timeout;
        timeout_at(by, self.names_by(by)).await.unwrap_or(Err(NoAnswer::TimedOut { after: self.first_token_timeout }))
    }

    /// Learns this model's context size, and whether it reads pictures, from the list of models, if the list contains them.
    pub(super) async fn read_listed(&self) {
        let by = Instant::now() + self.first_token_timeout;
        let Ok(Ok(body)) = timeout_at(by, self.list(by)).await else { return };
        let Ok(entries) = entries(&body) else { return };
        let own = || entries.iter().filter(|entry| name(entry).as_deref() == Some(&*self.identity.model));
        *self.dialect.lists_pictures.lock() = own().find_map(|entry| reads_pictures(entry));
        if let Some(size) = own().find_map(|entry| context(entry)) {
            self.dialect.context.is_listed(size, &self.identity);
        }
    }

    async fn names_by(&self, by: Instant) -> Result<Vec<String>, NoAnswer> {
        let mut names = read(&self.list(by).await?).map_err(|error| self.service.failures.in_answer(error))?;
        names.sort_unstable();
        names.dedup();
        names.truncate(MOST_NAMES);
        Ok(names)
    }

    async fn list(&self, by: Instant) -> Result<Vec<u8>, NoAnswer> {
        let Service { http, headers, failures, .. } = &self.service;
        let sent = http.send(http.request(Method::GET, self.service.beneath("models")).headers(headers.clone())).await;
        let response = sent.map_err(|broke| failures.of_connection(broke))?;
        let (status, headers) = (response.status(), response.headers().clone());
        if status != StatusCode::OK {
            let body = body::of_error(response, by).await;
            return Err(failures.of_status(status, &headers, &body));
        }
        body::whole(response, MAX_BYTES, self.idle_timeout, failures).await
    }
}

/// The names in a list. Entries without a name are left out.
fn read(body: &[u8]) -> Result<Vec<String>, Broken> {
    let names = entries(body)?.into_iter().filter_map(name);
    Ok(names.map(|name| shortened(&name, MAX_NAME_CHARS)).collect())
}

/// The entries of a list: an array, or an object that contains it.
fn entries(body: &[u8]) -> Result<Vec<&RawValue>, Broken> {
    let garbled = |why: String| Broken::garbled(format!("the list of models: {why}"), body);
    let sent: &RawValue = serde_json::from_slice(body).map_err(|error| garbled(error.to_string()))?;
    let list = if sent.get().starts_with('[') {
        Some(sent)
    } else {
        let list: List<'_> = serde_json::from_str(sent.get()).map_err(|error| garbled(error.to_string()))?;
        list.data.filter(|data| data.get() != "null" || list.models.is_none()).or(list.models)
    };
    let Some(list) = list else {
        let told = Told::in_json(sent);
        let is_error = sent.get().len() <= MAX_ERROR_BYTES && !matches!(told.message.chars().next(), None | Some('{'));
        return Err(if is_error { Broken::Told(Box::new(told)) } else { garbled("it holds none".to_owned()) });
    };
    let entries: Option<First<&RawValue, MOST_ENTRIES>> =
        serde_json::from_str(list.get()).map_err(|error| garbled(error.to_string()))?;
    Ok(entries.into_iter().flat_map(|entries| entries.0).collect())
}

/// The context size, by the field names that servers use for it. The size of the loaded model takes precedence over the size that
/// it could have.
fn context(entry: &RawValue) -> Option<u64> {
    let names = ["loaded_context_length", "max_model_len", "context_length", "context_window", "max_context_length", "n_ctx"];
    let found = fields(entry.get(), names).ok()?.into_iter().flatten().find_map(|value| value.get().parse().ok());
    found.or_else(|| fields(entry.get(), ["meta"]).ok()?.into_iter().flatten().find_map(context))
}

/// Whether the model reads pictures, by the field names that servers use for it. `None` if the entry does not say.
fn reads_pictures(entry: &RawValue) -> Option<bool> {
    let entry: Value = serde_json::from_str(entry.get()).ok()?;
    let names_pictures = |listed: &Value| {
        let words = listed.as_array()?.iter().filter_map(Value::as_str);
        Some(words.map(str::to_lowercase).any(|word| ["image", "vision", "multimodal"].contains(&&*word)))
    };
    let inputs = [&entry["architecture"]["input_modalities"], &entry["input_modalities"], &entry["capabilities"]];
    inputs.into_iter().find_map(names_pictures).or_else(|| entry["capabilities"]["vision"].as_bool())
}

fn name(entry: &RawValue) -> Option<String> {
    let name = text_in(entry).or_else(|| {
        let named = fields(entry.get(), ["id", "name", "model"]).ok()?;
        named.into_iter().flatten().find_map(|value| text_in(value).or_else(|| number_in(value)))
    });
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn number_in(value: &RawValue) -> Option<String> {
    value.get().parse::<u64>().ok().map(|number| number.to_string())
}

/// A field that is present, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_the_forms_of_many_servers_are_read() {
        for (body, expected) in [
            (r#"{"object":"list","data":[{"id":"b"},{"id":"a","object":"model"}]}"#, &["b", "a"][..]),
            (r#"[{"id":"a"},{"name":"b"},"c"]"#, &["a", "b", "c"]),
            (r#"{"models":[{"name":"llama3:8b","model":"llama3:8b"}]}"#, &["llama3:8b"]),
            (r#"{"data":null,"models":[{"model":"a"}]}"#, &["a"]),
            (r#"{"data":[{"id":7},{"object":"model"},{"id":null},null,{"id":"  "}]}"#, &["7"]),
            (r#"{"object":"list","data":null}"#, &[]),
            (r#"{"data":[]}"#, &[]),
        ] {
            assert_eq!(read(body.as_bytes()).expect("a list"), expected, "{body}");
        }
    }

    #[test]
    fn what_is_no_list_is_told() {
        let detail = |body: &str| match read(body.as_bytes()) {
            Err(Broken::Told(told)) => told.message,
            Err(Broken::Garbled(why, begin)) => format!("{why} in {begin}"),
            other => panic!("{other:?}"),
        };

        assert_eq!(
            detail(r#"{"error":"Unexpected endpoint or method. (GET /models)"}"#),
            "Unexpected endpoint or method. (GET /models)"
        );
        assert_eq!(detail(r#"{"detail":"Not Found"}"#), "Not Found");
        for body in ["<html>", "{}", r#"{"data":{"a":1}}"#, r#"{"version":"1.2"}"#, ""] {
            assert!(detail(body).contains("the list of models"), "{body}: {}", detail(body));
        }
    }
}
