//! The settings in force while the server runs: those of files, those that were made on the page, and the models that were connected there. Each change
//! is kept in a file of the data folder first, then copied for standby nodes, then put into force.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tokio::sync::{Mutex, watch};

use super::kept_files::Copies;
use super::reload::{Reloading, Turn};
use super::{discord, speech};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::switchboard::replace_models;
use crate::adapters::llm::openai::Dialects;
use crate::adapters::tools::ToolSet;
use crate::ports::backend::keeping::FailedReload;
use crate::ports::backend::{Detail, Refused};
use crate::ports::companion_setup::CompanionSetup;
use crate::ports::store::maintenance::StoreMaintenance;
use crate::settings::connection::Connection;
use crate::settings::kept::{Kept, KeptFields, is_secret};
use crate::settings::safety::Safety;
use crate::settings::storage::Engine;
use crate::settings::{Loaded, Problem, Settings};

/// The settings of a running server.
pub(super) struct InForce {
    pub(super) context: ActorContext,
    pub(super) dialects: Dialects,
    /// The data folder.
    pub(super) data: PathBuf,
    /// Copies the files into the store, if there are standby nodes.
    pub(super) copies: Option<Copies>,
    pub(super) maintenance: Arc<dyn StoreMaintenance>,
    pub(super) reloading: Arc<Reloading>,
    /// What makes companions, for Discord's commands.
    pub(super) companions: Arc<dyn CompanionSetup>,
    /// The servers of tools.
    pub(super) tools: Arc<ToolSet>,
    pub(super) state: Arc<Mutex<State>>,
}

#[derive(Clone)]
pub(super) struct State {
    /// The settings without the connected models.
    pub(super) configured: Arc<Settings>,
    /// The models that were connected on the page.
    pub(super) connection: Option<Connection>,
    /// What was set on the page.
    pub(super) kept: Kept,
    pub(super) fields: KeptFields,
    /// The token with which Discord was set up. Its file may have another one meanwhile.
    pub(super) token: Option<SecretString>,
}

impl State {
    /// The settings with the connected models.
    pub(super) fn settings(&self) -> Settings {
        self.connection.as_ref().map_or_else(|| (*self.configured).clone(), |one| one.applied_to(&self.configured))
    }
}

impl InForce {
    pub(super) async fn state(&self) -> State {
        self.state.lock().await.clone()
    }

    /// Uses these models from now on. `None`: those of the settings.
    pub(super) async fn use_models(&self, connection: Option<Connection>) -> Result<(), Refused> {
        let secret = connection.as_ref().and_then(|Connection { api_key, extra_headers, extra_query, .. }| {
            let secrets = [
                ("api_key", api_key.is_some()),
                ("extra_headers", !extra_headers.is_empty()),
                ("extra_query", !extra_query.is_empty()),
            ];
            secrets.into_iter().find_map(|(field, is_set)| is_set.then_some(field))
        });
        self.check_shared(secret)?;
        let _turn = self.reloading.turn().await;
        let state = State { connection: connection.clone(), ..self.state().await };
        let settings = state.settings();
        settings.models.check().map_err(super::model_setup::refused)?;
        let models = super::models(&settings.models, &self.dialects).map_err(super::model_setup::refused)?;
        let (kept, context) = (connection.clone(), self.context.clone());
        self.change(
            move |data| write(kept.as_ref(), data),
            |data, before| write(before.connection.as_ref(), data),
            move |state| {
                state.connection = connection;
                replace_models(settings, models, &context);
            },
        )
        .await
    }

    /// Puts what changes at run time of these settings into force. `new` is kept for the next start.
    pub(super) async fn use_settings(&self, loaded: &Loaded, new: Option<Kept>) -> Result<(), Refused> {
        let secret = new.as_ref().and_then(|new| new.0.keys().find(|key| is_secret(key)));
        self.check_shared(secret.map(String::as_str))?;
        let before = self.state().await;
        let configured = Arc::new(before.configured.with_live(&loaded.settings));
        let (kept, fields) = (new.clone().unwrap_or_else(|| loaded.kept.clone()), loaded.fields.clone());
        let token = configured.discord.token().map_err(|problem| refused("discord.", problem))?;
        let is_same_token =
            token.as_ref().map(|token| token.expose_secret()) == before.token.as_ref().map(|token| token.expose_secret());
        let introduction =
            |Safety { operator, privacy, crisis_text, .. }: &Safety| (operator.clone(), privacy.clone(), crisis_text.clone());
        let is_same_discord = is_same_token && introduction(&before.configured.safety) == introduction(&configured.safety);
        let has_same_languages = before.configured.memory == configured.memory;
        let settings = State { configured: configured.clone(), ..before }.settings();
        let models = super::models(&settings.models, &self.dialects).map_err(|problem| refused("models.", problem))?;
        let speech = speech::speech(&settings).map_err(|problem| refused("", problem))?;
        let joined = match is_same_discord {
            true => None,
            false => {
                Some(discord::join(&self.context, &settings, &self.maintenance).map_err(|problem| refused("discord.", problem))?)
            }
        };
        if let Some(commands) = joined.as_ref().and_then(|joined| joined.commands.as_ref()) {
            commands.set_companions(self.companions.clone());
        }
        let (context, is_written) = (self.context.clone(), new.is_some());
        self.change(
            move |data| new.map_or(Ok(()), |kept| kept.write(data)),
            move |data, before| if is_written { before.kept.write(data) } else { Ok(()) },
            move |state| {
                if !has_same_languages {
                    context.recall.use_languages(&settings.memory);
                }
                context.speech.replace(&speech);
                context.memberships.use_defaults(settings.companion_defaults.clone());
                replace_models(settings, models, &context);
                if let Some(joined) = joined {
                    joined.put_in_force(&context);
                }
                (state.configured, state.kept, state.fields, state.token) = (configured, kept, fields, token);
            },
        )
        .await
    }

    /// Reads the settings files, variables' files and companions again, and puts them into force. What has errors stays as it was. Errors are logged,
    /// shown on the page and returned.
    pub(super) async fn read_again(&self, turn: &Turn) -> Vec<String> {
        let refused = match self.reloading.read(turn, None, |_| ()).await {
            Ok(loaded) => {
                let new = &loaded.settings.tools;
                // A new server is live only after the rights to its tools.
                match self.tools.prepare(new).map_err(|problem| self::refused("tools.", problem)) {
                    Ok(prepared) => {
                        let used = self.use_settings(&loaded, None).await;
                        used.map(|()| self.tools.use_settings(new, prepared)).err()
                    }
                    Err(refused) => Some(refused),
                }
            }
            // The companions cannot be read either, which is reported below.
            Err(_) => None,
        };
        let mut problems = self.reloading.reload(turn).await;
        if let Some(refused) = refused {
            let problem = refused.to_string();
            tracing::error!(problem, "the settings were not read again; they stay as they were");
            problems.insert(0, problem);
            let at = self.context.clock.now().into();
            *self.context.failed_reload.lock() = Some(FailedReload { at, problems: problems.clone() });
        }
        problems
    }

    /// Reads again at each signal, forever. Signals during a reload count as one, which is handled afterwards.
    pub(super) async fn read_at_each(&self, hang_up: &mut watch::Receiver<()>) {
        while hang_up.changed().await.is_ok() {
            let turn = self.reloading.turn().await;
            self.read_again(&turn).await;
        }
    }

    /// The last attempt to read the settings again, if it failed.
    pub(super) fn failed_reload(&self) -> Option<FailedReload> {
        self.context.failed_reload.lock().clone()
    }

    /// Refuses a secret that could not be shared with other nodes.
    fn check_shared(&self, secret: Option<&str>) -> Result<(), Refused> {
        let Settings { cluster, storage, .. } = &*self.context.settings;
        match secret.filter(|_| storage.engine == Engine::Postgres && cluster.secret_file.is_none()) {
            Some(field) => Err(Refused::invalid(field, Detail::key("refusals.secret_not_shared"))),
            None => Ok(()),
        }
    }

    /// Keeps a change, copies it, and puts it into force: as a whole or not at all, even if the client disconnects meanwhile. `undo` writes the
    /// file as it was before.
    async fn change(
        &self,
        write: impl FnOnce(&Path) -> io::Result<()> + Send + 'static,
        undo: impl FnOnce(&Path, &State) -> io::Result<()> + Send + 'static,
        put_in_force: impl FnOnce(&mut State) + Send + 'static,
    ) -> Result<(), Refused> {
        let (data, state, copies) = (self.data.clone(), self.state.clone(), self.copies.clone());
        let changing = tokio::spawn(async move {
            let mut state = state.lock().await;
            let folder = data.clone();
            let keeping = tokio::task::spawn_blocking(move || write(&folder));
            keeping.await.map_err(io::Error::other).flatten()?;
            if let Some(copies) = copies
                && let Err(error) = copies.update().await
            {
                let before = state.clone();
                let undoing = tokio::task::spawn_blocking(move || undo(&data, &before));
                undoing.await.map_err(io::Error::other).flatten()?;
                return Err(io::Error::other(error));
            }
            put_in_force(&mut state);
            Ok(())
        });
        let is_kept: io::Result<()> = changing.await.map_err(io::Error::other).flatten();
        is_kept.map_err(|error| {
            let values = json!({ "path": self.data.display().to_string(), "error": error.to_string() });
            Refused::unavailable(Detail::of("refusals.connection_not_kept", values))
        })
    }
}

/// Writes the connected models to the data folder, or removes them from it.
fn write(connection: Option<&Connection>, data: &Path) -> io::Result<()> {
    connection.map_or_else(|| Connection::remove(data), |connection| connection.write(data))
}

/// An error of the settings, named by its key.
fn refused(section: &str, Problem { key, message, code }: Problem) -> Refused {
    Refused::invalid(format!("{section}{key}"), Detail::from(message).with(code))
}
