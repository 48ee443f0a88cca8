//! Bounds the memory that responses use: how many long ones are built at once, and how many bytes may wait until clients read them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::response::{IntoResponse, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::problem::Problem;

/// Routes whose responses may be long.
const LONG_ROUTES: [&str; 4] = ["/api/decisions", "/api/rooms/{room}/history", "/api/usage", "/api/why"];

/// How many long responses are built at once. Other requests wait. A thousand decisions take some 10 MB until they are a response.
const MAX_CONCURRENT: usize = 4;

/// How many bytes of responses may wait to be read.
const MAX_UNREAD_BYTES: u32 = 48 << 20;

/// While fewer bytes may be added to them, no long response is even built.
const MOST_TO_BUILD_FOR: usize = 1 << 20;

/// A response up to this size, in bytes, is not counted: the limit on connections bounds how many there are.
const SHORT_BYTES: usize = 16 << 10;

/// When a refused client should try again: by then some responses may have been read.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(super) struct ResponseLimits {
    building: Semaphore,
    unread: Arc<Semaphore>,
}

/// The bytes of a response, counted until the last of them is sent.
struct Counted {
    bytes: Box<[u8]>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ResponseLimits {
    pub(super) fn new() -> Self {
        Self { building: Semaphore::new(MAX_CONCURRENT), unread: Arc::new(Semaphore::new(MAX_UNREAD_BYTES as usize)) }
    }

    /// A permit to build the response of this route, held until the response is counted. Short responses need none. Building takes many times the
    /// memory of a response, so one that would probably be refused is not built.
    pub(super) async fn permit(&self, route: &str) -> Result<Option<SemaphorePermit<'_>>, Problem> {
        if !LONG_ROUTES.contains(&route) {
            return Ok(None);
        }
        let permit = self.building.acquire().await.ok();
        if self.unread.available_permits() < MOST_TO_BUILD_FOR { Err(too_many_unread()) } else { Ok(permit) }
    }

    /// Counts a response until it is read, or replaces it by a 503 if too many bytes are unread already. A response that is longer than the whole
    /// limit is sent when there is no other. A streamed response, such as an export, holds little memory and is not counted.
    pub(super) async fn counted(&self, response: Response) -> Response {
        let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        let Some(bytes) = bytes.filter(|bytes| *bytes > SHORT_BYTES) else { return response };
        let permits = u32::try_from(bytes).unwrap_or(MAX_UNREAD_BYTES).min(MAX_UNREAD_BYTES);
        let Ok(permit) = self.unread.clone().try_acquire_many_owned(permits) else {
            return too_many_unread().into_response();
        };
        let (parts, body) = response.into_parts();
        // A copy has no spare capacity, which may be as much again.
        match to_bytes(body, bytes).await.map(|bytes| Box::from(&*bytes)) {
            Ok(bytes) => Response::from_parts(parts, Body::from(Bytes::from_owner(Counted { bytes, _permit: permit }))),
            // A body of known length is complete already.
            Err(error) => Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }
}

fn too_many_unread() -> Problem {
    let detail = format!(
        "{} MiB of responses are waiting to be read by clients; read them, request less at once, or try again",
        MAX_UNREAD_BYTES >> 20
    );
    Problem::unavailable(detail, RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn status(limits: &ResponseLimits, bytes: usize) -> (u16, Response) {
        let response = limits.counted(vec![b'x'; bytes].into_response()).await;
        (response.status().as_u16(), response)
    }

    #[tokio::test]
    async fn unread_responses_are_bounded_together_and_short_ones_are_always_sent() {
        let limits = ResponseLimits::new();
        let half = MAX_UNREAD_BYTES as usize / 2;

        let first_two = [status(&limits, half).await, status(&limits, half).await];
        let (refused, _) = status(&limits, SHORT_BYTES + 1).await;
        let (short, _) = status(&limits, SHORT_BYTES).await;
        let [(first, body), (second, rest)] = first_two;
        drop(body);
        let (later, _) = status(&limits, half).await;

        assert_eq!((first, second, refused, short, later), (200, 200, 503, 200, 200));
        drop(rest);
        assert_eq!(status(&limits, 3 * half).await.0, 200);
    }

    #[tokio::test]
    async fn a_long_response_that_would_be_refused_is_not_built() {
        let limits = ResponseLimits::new();
        let almost_all = limits.counted(vec![b'x'; MAX_UNREAD_BYTES as usize - MOST_TO_BUILD_FOR + 1].into_response()).await;

        let refused = limits.permit(LONG_ROUTES[0]).await.err().map(|problem| problem.status().as_u16());
        let short = limits.permit("/api/rooms").await.is_ok();
        drop(almost_all);

        assert_eq!((refused, short, limits.permit(LONG_ROUTES[0]).await.is_ok()), (Some(503), true, true));
    }

    #[tokio::test]
    async fn a_response_counts_until_its_last_byte_is_dropped() {
        let limits = ResponseLimits::new();
        let response = limits.counted(vec![b'x'; MAX_UNREAD_BYTES as usize].into_response()).await;
        let mut bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();

        let last = bytes.split_off(bytes.len() - 1);
        drop(bytes);

        assert_eq!(status(&limits, SHORT_BYTES + 1).await.0, 503);
        drop(last);
        assert_eq!(status(&limits, SHORT_BYTES + 1).await.0, 200);
    }
}
