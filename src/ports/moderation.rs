//! Moderation of statements before they are posted.

use std::sync::Arc;

use async_trait::async_trait;

use super::language_model::NoAnswer;

#[async_trait]
pub trait Moderation: Send + Sync + 'static {
    /// The category for which a text is refused, as the service names it. `None`: it is not refused.
    ///
    /// # Errors
    /// There was no usable answer.
    async fn refusal_of(&self, text: &str) -> Result<Option<Arc<str>>, NoAnswer>;
}
