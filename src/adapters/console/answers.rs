//! Bounds the memory of answers: how many long ones are made at once, and how many bytes of them may wait until their clients read them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::response::{IntoResponse, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::problem::Problem;

/// Routes whose answers may be long.
const LONG: [&str; 4] = ["/api/decisions", "/api/rooms/{room}/history", "/api/usage", "/api/why"];

/// So many of them are made at once; others wait for their turn.
const MADE_AT_ONCE: usize = 8;

/// So many bytes of answers may be unread.
const MOST_UNREAD: u32 = 48 << 20;

/// An answer up to this size is always sent: connections bound how many there are.
const SHORT: usize = 16 << 10;

/// After this time somebody may have read.
const PAUSE: Duration = Duration::from_secs(1);

/// What answers may take.
pub(super) struct Answers {
    making: Semaphore,
    unread: Arc<Semaphore>,
}

/// An answer's bytes, counted until the last of them left.
struct Counted {
    bytes: Bytes,
    _share: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answers {
    pub(super) fn new() -> Self {
        Self { making: Semaphore::new(MADE_AT_ONCE), unread: Arc::new(Semaphore::new(MOST_UNREAD as usize)) }
    }

    /// A turn to make the answer of this route, kept until the answer is counted. Short ones need none.
    pub(super) async fn turn(&self, route: &str) -> Option<SemaphorePermit<'_>> {
        if LONG.contains(&route) { self.making.acquire().await.ok() } else { None }
    }

    /// Counts an answer until it is read, or refuses it where too much is unread already. One that is longer than all may be together is sent
    /// when there is no other. An answer that is made as it is read, such as an export, holds little and is left alone.
    pub(super) async fn counted(&self, response: Response) -> Response {
        let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        let Some(bytes) = bytes.filter(|bytes| *bytes > SHORT) else { return response };
        let share = u32::try_from(bytes).unwrap_or(MOST_UNREAD).min(MOST_UNREAD);
        let Ok(share) = self.unread.clone().try_acquire_many_owned(share) else {
            let detail = format!(
                "answers of {} MiB were not read yet by those who asked for them; read them, ask for less at once, or try again",
                MOST_UNREAD >> 20
            );
            return Problem::unavailable(detail, PAUSE).into_response();
        };
        let (parts, body) = response.into_parts();
        match to_bytes(body, bytes).await {
            Ok(bytes) => Response::from_parts(parts, Body::from(Bytes::from_owner(Counted { bytes, _share: share }))),
            // A body of known length is there already.
            Err(error) => Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn status(answers: &Answers, bytes: usize) -> (u16, Response) {
        let response = answers.counted(vec![b'x'; bytes].into_response()).await;
        (response.status().as_u16(), response)
    }

    #[tokio::test]
    async fn answers_that_nobody_reads_are_bounded_together_and_short_ones_are_always_sent() {
        let answers = Answers::new();
        let half = MOST_UNREAD as usize / 2;

        let held = [status(&answers, half).await, status(&answers, half).await];
        let (refused, _) = status(&answers, SHORT + 1).await;
        let (short, _) = status(&answers, SHORT).await;
        let [(first, body), (second, rest)] = held;
        drop(body);
        let (later, _) = status(&answers, half).await;

        assert_eq!((first, second, refused, short, later), (200, 200, 503, 200, 200));
        drop(rest);
        assert_eq!(status(&answers, 3 * half).await.0, 200);
    }

    #[tokio::test]
    async fn an_answer_counts_until_its_last_byte_is_let_go() {
        let answers = Answers::new();
        let response = answers.counted(vec![b'x'; MOST_UNREAD as usize].into_response()).await;
        let mut bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();

        let last = bytes.split_off(bytes.len() - 1);
        drop(bytes);

        assert_eq!(status(&answers, SHORT + 1).await.0, 503);
        drop(last);
        assert_eq!(status(&answers, SHORT + 1).await.0, 200);
    }
}
