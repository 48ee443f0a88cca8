//! Reads response bodies up to a maximum length. The caller limits the total time.

use std::time::Duration;

use reqwest::Response;
use tokio::time::{Instant, timeout, timeout_at};

use super::failure::{Broken, Failures};
use crate::ports::language_model::NoAnswer;

/// The maximum number of bytes of an error's body that are read to find its message.
pub(in crate::adapters) const MAX_ERROR_BYTES: usize = 16 * 1024;

/// The content of a successful response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::adapters) enum Content {
    Json,
    Events,
    /// Neither.
    Other,
}

impl Content {
    /// Detects the content from the beginning of a body. The declared type decides only unclear cases. `None` if more of the body is needed.
    fn of(begin: &[u8], declared: &str) -> Option<Self> {
        let begin = begin.strip_prefix("\u{feff}".as_bytes()).unwrap_or(begin).trim_ascii_start();
        let fields: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
        match begin {
            [] => None,
            [b'{', ..] if is_lines(declared) => Some(Self::Events),
            [b'{' | b'[', ..] => Some(Self::Json),
            _ if fields.iter().any(|field| begin.starts_with(field)) => Some(Self::Events),
            _ if fields.iter().any(|field| field.starts_with(begin)) => None,
            [b'<', ..] => Some(Self::Other),
            _ => Some(Self::declared(declared)),
        }
    }

    fn declared(declared: &str) -> Self {
        match declared {
            declared if declared == "text/event-stream" || is_lines(declared) => Self::Events,
            declared if is_json(declared) => Self::Json,
            _ => Self::Other,
        }
    }
}

/// Reads the first bytes of a body, until its content type is clear. White space, which some servers send as a keep-alive, extends the deadline.
///
/// # Errors
/// Returns an error if the connection broke. `None` means that the deadline passed.
pub(in crate::adapters) async fn begin(
    response: &mut Response,
    declared: &str,
    first_by: Instant,
    idle: Duration,
) -> Result<(Content, Vec<u8>), Option<reqwest::Error>> {
    let (mut begin, mut by) = (Vec::new(), first_by);
    loop {
        if let Some(content) = Content::of(&begin, declared).or_else(|| (begin.len() > MAX_ERROR_BYTES).then_some(Content::Other))
        {
            return Ok((content, begin));
        }
        match timeout_at(by, response.chunk()).await.map_err(|_| None)?? {
            Some(chunk) => begin.extend_from_slice(&chunk),
            None => return Ok((Content::declared(declared), begin)),
        }
        by = first_by.max(Instant::now() + idle);
    }
}

/// Reads a body of at most `most` bytes. The time between chunks is limited to `idle`.
pub(in crate::adapters) async fn whole(
    response: Response,
    most: usize,
    idle: Duration,
    failures: &Failures,
) -> Result<Vec<u8>, NoAnswer> {
    rest(Vec::new(), response, most, idle, failures).await
}

/// Reads the rest of a body that begins with `body`. The limits are those of [`whole`].
pub(in crate::adapters) async fn rest(
    mut body: Vec<u8>,
    mut response: Response,
    most: usize,
    idle: Duration,
    failures: &Failures,
) -> Result<Vec<u8>, NoAnswer> {
    if let Some(error) = failures.of_compressed(response.headers()) {
        return Err(error);
    }
    loop {
        match timeout(idle, response.chunk()).await {
            Ok(Ok(Some(chunk))) if body.len() + chunk.len() > most => return Err(failures.in_answer(Broken::TooLong)),
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
            Ok(Ok(None)) => return Ok(body),
            Ok(Err(error)) => return Err(failures.of_connection(error)),
            Err(_) => return Err(failures.stalled(idle)),
        }
    }
}

/// Reads an error's body as far as it arrives in time. The status is sufficient without it.
pub(in crate::adapters) async fn of_error(mut response: Response, by: Instant) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < MAX_ERROR_BYTES
        && let Ok(Ok(Some(chunk))) = timeout_at(by, response.chunk()).await
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(MAX_ERROR_BYTES);
    body
}

/// The media type of a body, in lower case and without parameters. Empty if the response does not declare one.
pub(in crate::adapters) fn media_type(response: &Response) -> String {
    let named = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether each line of a body of this type is JSON.
fn is_lines(media_type: &str) -> bool {
    matches!(
        media_type,
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" | "application/jsonlines" | "application/x-jsonlines"
    )
}

/// Whether a body of this type is JSON.
pub(in crate::adapters) fn is_json(media_type: &str) -> bool {
    media_type == "application/json" || media_type.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_what_a_body_holds() {
        for (begin, declared, expected) in [
            (&b""[..], "application/json", None),
            (b" \r\n", "application/json", None),
            (b"\xef\xbb\xbf {\"id\"", "text/plain", Some(Content::Json)),
            (b"[{", "text/event-stream", Some(Content::Json)),
            (b"da", "", None),
            (b"data: {", "application/json", Some(Content::Events)),
            (b": keep-alive", "text/plain", Some(Content::Events)),
            (b"event: x", "application/octet-stream", Some(Content::Events)),
            (b"retry", "", None),
            (b"<html>", "text/event-stream", Some(Content::Other)),
            (b"Ollama is running", "text/plain", Some(Content::Other)),
            (b"hello", "application/json", Some(Content::Json)),
            (b"{\"id\"", "application/x-ndjson", Some(Content::Events)),
            (b"hello", "text/event-stream", Some(Content::Events)),
        ] {
            assert_eq!(Content::of(begin, declared), expected, "{} as {declared}", String::from_utf8_lossy(begin));
        }
    }
}
