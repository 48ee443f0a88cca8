//! A service that examines what companions wrote before it is posted.

use std::sync::Arc;

use async_trait::async_trait;

use super::language_model::NoAnswer;

#[async_trait]
pub trait Moderation: Send + Sync + 'static {
    /// Why a text must not be posted, as the service's name of the category. `None`: it may be.
    ///
    /// # Errors
    /// There was no usable answer.
    async fn refusal_of(&self, text: &str) -> Result<Option<Arc<str>>, NoAnswer>;
}
