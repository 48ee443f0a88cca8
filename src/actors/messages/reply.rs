//! An answer that is owed: given exactly once, by being dropped if in no other way.

use std::fmt;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::writer::WriteError;

type Answer<T, E> = Box<dyn FnOnce(Result<T, E>) + Send>;

/// Nobody answers any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped;

/// Takes an answer to whoever asked. Dropped unused, it answers that it was [`Dropped`].
pub struct Reply<T, E: From<Dropped> = WriteError> {
    answer: Option<Answer<T, E>>,
    since: Instant,
}

impl<T, E: From<Dropped>> Reply<T, E> {
    /// Answers by calling this, which must not wait: typically it casts a message to whoever asked.
    pub fn new(answer: impl FnOnce(Result<T, E>) + Send + 'static) -> Self {
        Self { answer: Some(Box::new(answer)), since: Instant::now() }
    }

    /// To somebody who does not care.
    pub fn unheard() -> Self {
        Self { answer: None, since: Instant::now() }
    }

    /// Since when it is owed.
    pub const fn since(&self) -> Instant {
        self.since
    }

    /// Gives the answer.
    pub fn send(mut self, answer: Result<T, E>) {
        if let Some(deliver) = self.answer.take() {
            deliver(answer);
        }
    }
}

impl<T: Send + 'static, E: From<Dropped> + Send + 'static> Reply<T, E> {
    /// To somebody who waits for it.
    pub fn awaited() -> (Self, oneshot::Receiver<Result<T, E>>) {
        let (sender, receiver) = oneshot::channel();
        let reply = Self::new(move |answer| {
            // Whoever asked may have stopped waiting.
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

impl<T, E: From<Dropped>> fmt::Debug for Reply<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}
