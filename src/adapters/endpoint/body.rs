//! Reads the bodies of responses, of bounded length. How long they may take altogether is up to the caller.

use std::time::Duration;

use reqwest::Response;
use tokio::time::{Instant, timeout, timeout_at};

use super::failure::{Broken, Failures};
use crate::ports::language_model::NoAnswer;

/// How much of an error's body is read to find its message.
pub(in crate::adapters) const MAX_ERROR_BYTES: usize = 16 * 1024;

/// A body of at most so many bytes, whose chunks are no further apart than `idle`.
pub(in crate::adapters) async fn whole(
    mut response: Response,
    most: usize,
    idle: Duration,
    failures: &Failures,
) -> Result<Vec<u8>, NoAnswer> {
    let mut body = Vec::new();
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

/// As much of an error's body as arrives in time. The status is enough without it.
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

/// The type of a body, in small letters and without parameters. Empty if the response does not name it.
pub(in crate::adapters) fn media_type(response: &Response) -> String {
    let named = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a body of this type is JSON.
pub(in crate::adapters) fn is_json(media_type: &str) -> bool {
    media_type == "application/json" || media_type.ends_with("+json")
}
