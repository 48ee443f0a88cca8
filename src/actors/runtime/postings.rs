//! Counts the parts of statements that are being posted, so that an orderly shutdown waits for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Counts postings in progress. Once it is closed, no new posting begins.
#[derive(Clone, Debug)]
pub struct Postings(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    count: usize,
}

/// Guard of a posting in progress. Hold it until the result is journaled.
#[derive(Debug)]
pub struct Posting(Postings);

impl Default for Postings {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }
}

impl Postings {
    /// Begins a posting. `None`: the server is shutting down.
    pub fn begin(&self) -> Option<Posting> {
        let is_begun = self.0.send_if_modified(|state| {
            state.count += usize::from(!state.is_closed);
            !state.is_closed
        });
        is_begun.then(|| Posting(self.clone()))
    }

    /// Rejects new postings, and waits for those in progress. A posting that takes longer than `at_most` has an unknown outcome;
    /// the next start looks it up.
    pub async fn close(&self, at_most: Duration) {
        let mut states = self.0.subscribe();
        self.0.send_modify(|state| state.is_closed = true);
        if timeout(at_most, states.wait_for(|state| state.count == 0)).await.is_err() {
            tracing::info!("a platform has not answered yet; whether it posted a part is looked up after the next start");
        }
    }
}

impl Drop for Posting {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_has_begun_is_waited_for_and_nothing_more_begins() {
        let postings = Postings::default();
        let posting = postings.begin().unwrap();
        let closing = tokio::spawn({
            let postings = postings.clone();
            async move { postings.close(Duration::from_secs(3)).await }
        });
        tokio::task::yield_now().await;

        let late = postings.begin().is_none();
        let waits = !closing.is_finished();
        drop(posting);
        closing.await.unwrap();

        assert!(late && waits);
    }

    #[tokio::test(start_paused = true)]
    async fn a_platform_that_does_not_answer_is_not_waited_for_any_longer() {
        let postings = Postings::default();
        let _posting = postings.begin();
        let began = tokio::time::Instant::now();

        postings.close(Duration::from_secs(3)).await;

        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }
}
