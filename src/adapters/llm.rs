//! Language models: any OpenAI-compatible endpoint, and the built-in rehearsal.

use std::sync::Arc;

use crate::ports::language_model::{LanguageModel, ModelRole};
use crate::settings::Problem;
use crate::settings::models::Models;

pub mod openai;
pub mod rehearsal;

/// The model that serves a role: the endpoint that is configured for it, else the other role's, else `rehearsal`.
///
/// # Errors
/// When the settings name an endpoint that cannot be used, or a key that cannot be read. A real model that is configured
/// is never replaced by `rehearsal`.
pub fn serving(settings: &Models, role: ModelRole) -> Result<Arc<dyn LanguageModel>, Problem> {
    match settings.serving(role) {
        Some(endpoint) => Ok(Arc::new(openai::OpenAi::new(endpoint, settings.own(role))?)),
        None => Ok(Arc::new(rehearsal::Rehearsal::new(&settings.rehearsal))),
    }
}
