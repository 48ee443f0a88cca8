//! Section `models.moderation`: the service that moderates statements before they are posted.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use super::{Problem, check_key_sources, parsed_base_url, read_key};

/// A service with OpenAI's API for moderation: `POST /moderations`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moderation {
    /// The base URL of the API, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// The model's name there. `None`: the service's own choice.
    pub model: Option<String>,
    /// The API key, only from the environment (`TERTULIA__MODELS__MODERATION__API_KEY`).
    pub api_key: Option<SecretString>,
    /// A file that contains only the key.
    pub api_key_file: Option<PathBuf>,
}

impl Moderation {
    pub(super) fn check(&self) -> Result<(), Problem> {
        parsed_base_url(&self.base_url)?;
        if self.model.as_ref().is_some_and(|model| !(1..=200).contains(&model.len())) {
            return Err(Problem::new(
                "model",
                "must be the name of the model at the service, 1 to 200 bytes; remove it for the service's own choice",
            ));
        }
        check_key_sources(self.api_key.as_ref(), self.api_key_file.as_deref())
    }

    /// The key from the settings or its file, if one is set.
    ///
    /// # Errors
    /// The same as for [`Endpoint::key`](super::Endpoint::key).
    pub fn key(&self) -> Result<Option<SecretString>, Problem> {
        read_key(self.api_key.as_ref(), self.api_key_file.as_deref())
    }
}
