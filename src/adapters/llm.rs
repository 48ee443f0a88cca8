//! Language models: any OpenAI-compatible endpoint, and the built-in rehearsal.

use std::sync::Arc;

use self::openai::Dialects;
use crate::domain::id::ModelName;
use crate::ports::language_model::{LanguageModel, ModelRole};
use crate::settings::Problem;
use crate::settings::models::{Models, Served};

pub mod moderation;
pub mod openai;
pub mod rehearsal;

/// The model that serves a role: the configured endpoint of the role, otherwise the other role's, otherwise `rehearsal`.
///
/// # Errors
/// Returns an error if the settings name an endpoint that cannot be used, or a key that cannot be read. A configured model is
/// never replaced by `rehearsal`.
pub fn serving(settings: &Models, role: ModelRole) -> Result<Arc<dyn LanguageModel>, Problem> {
    shared(settings, role, &role.into(), &Dialects::default())
}

/// The model that serves a role under a name. It shares its lessons with all models that use the same `dialects`.
///
/// # Errors
/// The same as for [`serving`].
pub fn shared(
    settings: &Models,
    role: ModelRole,
    name: &ModelName,
    dialects: &Dialects,
) -> Result<Arc<dyn LanguageModel>, Problem> {
    let Served { table, endpoint, limits } = settings.served(role, name);
    let Some(endpoint) = endpoint else {
        tracing::info!(
            role = role.as_str(),
            "no model is configured, so rehearsal answers; set models.main.base_url to use a real one"
        );
        return Ok(Arc::new(rehearsal::Rehearsal::new(&settings.rehearsal)));
    };
    let model = openai::OpenAi::new(&endpoint, &limits, &settings.authorities()?)
        .map_err(|problem| Problem { key: format!("{table}.{}", problem.key), ..problem })?;
    Ok(Arc::new(model.with_dialects(dialects)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::samples::models as defaults;

    #[test]
    fn without_an_endpoint_rehearsal_serves_and_its_identity_says_so() {
        let model = serving(&defaults(), ModelRole::Main).expect("always there");

        assert_eq!((&*model.identity().provider, &*model.identity().model), ("rehearsal", "rehearsal"));
    }

    #[test]
    fn an_unreadable_key_is_an_error_and_rehearsal_does_not_take_over() {
        let mut settings = defaults();
        settings.main.base_url = Some("http://127.0.0.1:1/v1".to_owned());
        settings.main.model = Some("m".to_owned());
        settings.main.api_key_file = Some("/nowhere/key".into());

        let problem = serving(&settings, ModelRole::Side).err().expect("a problem");

        assert_eq!(problem.key, "main.api_key_file");
    }
}
