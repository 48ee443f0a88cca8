//! A one-shot reply that is always sent: dropping it unused sends an error.

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::writer::WriteError;

type Answer<T, E> = Box<dyn FnOnce(Result<T, E>) + Send>;

/// The reply was dropped without an answer, for instance because its holder died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped;

/// Sends an answer to the caller. Dropped unused, it answers [`Dropped`].
pub struct Reply<T, E: From<Dropped> = WriteError> {
    answer: Option<Answer<T, E>>,
    since: Instant,
}

impl<T, E: From<Dropped>> Reply<T, E> {
    /// Answers by calling this closure, which must not block. Typically it casts a message to the caller.
    pub fn new(answer: impl FnOnce(Result<T, E>) + Send + 'static) -> Self {
        Self { answer: Some(Box::new(answer)), since: Instant::now() }
    }

    /// A reply whose answer is discarded.
    pub fn ignored() -> Self {
        Self { answer: None, since: Instant::now() }
    }

    /// When the request was made.
    pub const fn since(&self) -> Instant {
        self.since
    }

    pub fn send(mut self, answer: Result<T, E>) {
        if let Some(deliver) = self.answer.take() {
            deliver(answer);
        }
    }
}

impl<T: Send + 'static, E: From<Dropped> + Send + 'static> Reply<T, E> {
    /// A reply, and a receiver to wait for it.
    pub fn awaited() -> (Self, oneshot::Receiver<Result<T, E>>) {
        let (sender, receiver) = oneshot::channel();
        let reply = Self::new(move |answer| {
            // The caller may have stopped waiting.
            let _ = sender.send(answer);
        });
        (reply, receiver)
    }
}

impl<T, E: From<Dropped>> Drop for Reply<T, E> {
    fn drop(&mut self) {
        if let Some(deliver) = self.answer.take() {
            deliver(Err(Dropped.into()));
        }
    }
}
