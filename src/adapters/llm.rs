//! Language models: any OpenAI-compatible endpoint, and the built-in rehearsal.

use std::sync::Arc;

use self::arrivals::Arrivals;
use crate::domain::id::ModelName;
use crate::ports::language_model::{LanguageModel, ModelRole};
use crate::settings::Problem;
use crate::settings::models::{Models, Served};

pub mod arrivals;
pub mod openai;
pub mod rehearsal;

/// The model that serves a role: the endpoint that is configured for it, else the other role's, else `rehearsal`.
///
/// # Errors
/// When the settings name an endpoint that cannot be used, or a key that cannot be read. A real model that is configured
/// is never replaced by `rehearsal`.
pub fn serving(settings: &Models, role: ModelRole) -> Result<Arc<dyn LanguageModel>, Problem> {
    with_crash_record(settings, role, &role.into(), None)
}

/// The model that serves a role under a name; a real model notes which answers arrive, so that one that kills the process again and again is
/// not asked for any more.
///
/// # Errors
/// As [`serving`].
pub fn with_crash_record(
    settings: &Models,
    role: ModelRole,
    name: &ModelName,
    arrivals: Option<Arc<Arrivals>>,
) -> Result<Arc<dyn LanguageModel>, Problem> {
    let Served { table, endpoint, limits } = settings.served(role, name);
    let Some(endpoint) = endpoint else {
        tracing::info!(
            role = role.as_str(),
            "no model is configured, so rehearsal answers; set models.main.base_url to use a real one"
        );
        return Ok(Arc::new(rehearsal::Rehearsal::new(&settings.rehearsal)));
    };
    let model = openai::OpenAi::new(&endpoint, &limits)
        .map_err(|problem| Problem { key: format!("{table}.{}", problem.key), ..problem })?;
    Ok(Arc::new(model.with_crash_record(arrivals)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::models::tests::defaults;

    #[test]
    fn without_an_endpoint_it_is_a_rehearsal_that_says_so() {
        let model = serving(&defaults(), ModelRole::Main).expect("always there");

        assert_eq!((&*model.identity().provider, &*model.identity().model), ("rehearsal", "rehearsal"));
    }

    #[test]
    fn a_key_that_cannot_be_read_is_no_reason_to_rehearse() {
        let mut settings = defaults();
        settings.main.base_url = Some("http://127.0.0.1:1/v1".to_owned());
        settings.main.model = Some("m".to_owned());
        settings.main.api_key_file = Some("/nowhere/key".into());

        let problem = serving(&settings, ModelRole::Side).err().expect("a problem");

        assert_eq!(problem.key, "main.api_key_file");
    }
}
