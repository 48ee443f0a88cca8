//! Moderation of statements before they are posted.

use std::sync::Arc;

use async_trait::async_trait;

use super::language_model::NoAnswer;

#[async_trait]
pub trait Moderation: Send + Sync + 'static {
    /// The category for which the moderation service refuses a text, in the service's notation. `None`: the text is not refused.
    ///
    /// # Errors
    /// Returns an error if there was no usable answer.
    async fn refusal_of(&self, text: &str) -> Result<Option<Arc<str>>, NoAnswer>;
}
