//! Asks the moderation service, and knows whether it worked the last time.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::timeout;

use crate::ports::language_model::NoAnswer;
use crate::ports::moderation::Moderation;

/// The timeout of a trial.
const TRIAL: Duration = Duration::from_secs(10);

pub struct Moderator {
    service: Arc<dyn Moderation>,
    failure: Mutex<Option<&'static str>>,
}

impl Moderator {
    pub fn new(service: Arc<dyn Moderation>) -> Self {
        Self { service, failure: Mutex::default() }
    }

    /// The category for which the service refuses a text. `None`: the text is not refused.
    ///
    /// # Errors
    /// Returns an error if there was no usable answer within this time.
    pub async fn refusal_of(&self, text: &str, within: Duration) -> Result<Option<Arc<str>>, NoAnswer> {
        let answer = timeout(within, self.service.refusal_of(text)).await;
        let answer = answer.unwrap_or(Err(NoAnswer::TimedOut { after: within }));
        // The full error may quote the text.
        *self.failure.lock() = answer.as_ref().err().map(NoAnswer::code);
        answer
    }

    /// Sends a sample to the service.
    ///
    /// # Errors
    /// The same as for [`Self::refusal_of`].
    pub async fn try_out(&self) -> Result<(), NoAnswer> {
        self.refusal_of("Hello!", TRIAL).await.map(drop)
    }

    /// The code of the last request's error. `None`: it had an answer, or there was no request.
    pub fn failure(&self) -> Option<&'static str> {
        *self.failure.lock()
    }
}
