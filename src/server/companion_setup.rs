//! Creates, changes and deletes companions while the server runs, in their files or in the store. Also tries them out.

mod changing;
mod checking;
mod fields;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex, Semaphore};

use self::fields::{changes, refused, tidied};
use self::written::Written;
use super::model_setup::{MOST_AT_A_TIME, busy, invalid, try_models};
use super::reload::Reloading;
use crate::actors::companion::pictures;
use crate::actors::runtime::context::ActorContext;
use crate::adapters::llm::openai::Dialects;
use crate::cards::small;
use crate::domain::common_words::common_words;
use crate::domain::id::{CompanionId, GuildId, id_of_title};
use crate::domain::lookalike::look_alike;
use crate::domain::names::SharedName;
use crate::domain::policy::names::CommonNames;
use crate::domain::policy::turn_taking::Voting;
use crate::domain::prompt::room::{decision_room, tokens};
use crate::domain::service::Service;
use crate::journal::key;
use crate::journal::reader::Reader;
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Refused};
use crate::ports::companion_setup::{
    CompanionChange, CompanionOptions, CompanionProfile, CompanionSetup, CompanionTrial, DefaultFields, DiscordPicture, Exported,
    Kept, NewCompanion, ProfileRoom, Revision, ServiceVoices,
};
use crate::ports::model_setup::Trial;
use crate::settings::companion::written::edited;
use crate::settings::companion::{Companion, check_id};
use crate::settings::roster::files::CompanionFiles;
use crate::settings::speech::BUILT_IN;
use crate::settings::{common_name_note, shared_names, silence_note};
use serde_json::json;

/// The longest id of a companion, in characters.
const MAX_ID_CHARS: usize = 32;
/// The length of the mark of a guild at the end of the ids of its own companions, in characters.
const MARK_CHARS: usize = 6;
/// Ids that are path segments of the API.
const RESERVED: [&str; 2] = ["options", "try"];
/// The longest message to a companion in a trial, in characters.
const MAX_MESSAGE_CHARS: usize = 4_000;
/// The timeout for reading the files of a companion.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Cached small pictures by companion and side length, each with the hash of its original. `None`: the original is sent instead.
type Squares = BTreeMap<(CompanionId, u32), (String, Option<Vec<u8>>)>;

/// The companions of a running server.
#[derive(Clone)]
pub(super) struct Setup {
    context: ActorContext,
    reloading: Arc<Reloading>,
    files: CompanionFiles,
    dialects: Dialects,
    trials: Arc<Semaphore>,
    squares: Arc<Mutex<Squares>>,
}

impl Setup {
    pub(super) fn new(context: ActorContext, reloading: Arc<Reloading>, files: CompanionFiles, dialects: Dialects) -> Self {
        Self { context, reloading, files, dialects, trials: Arc::new(Semaphore::new(MOST_AT_A_TIME)), squares: Arc::default() }
    }

    /// The id of a new companion with this name. That of a guild's own companion ends with a mark of the guild, so that it says nothing of others.
    async fn id_for(&self, name: &str, guild: Option<&GuildId>) -> Result<CompanionId, Refused> {
        let end =
            guild.map_or_else(String::new, |guild| format!("-{}", &pictures::hash(guild.as_str().as_bytes())[..MARK_CHARS]));
        let memberships = self.context.memberships.all();
        let in_rooms =
            memberships.iter().flat_map(|(_, membership)| membership.companions.iter().chain(membership.externals.keys()));
        let mut taken: Vec<String> = in_rooms.map(|id| id.as_str().to_lowercase()).collect();
        taken.extend(self.context.memberships.companions().keys().map(|id| id.as_str().to_lowercase()));
        taken.extend(Reader::new(&*self.context.store).companions().await?.keys().map(|id| id.as_str().to_lowercase()));
        let (files, name) = (self.files.clone(), name.to_owned());
        let id = blocking(move || {
            let is_taken = |id: &str| RESERVED.contains(&id) || taken.iter().any(|taken| taken == id) || files.has(id);
            let begin = id_of_title(&name, MAX_ID_CHARS - end.len(), "companion", |begin| is_taken(&format!("{begin}{end}")));
            format!("{begin}{end}")
        });
        id.await.map(CompanionId::from)
    }

    async fn existing(&self, id: &CompanionId) -> Result<Written, Refused> {
        // The id is untrusted and becomes part of a path.
        let none = || Refused::not_found(Detail::key("refusals.companion_gone"));
        check_id(id.as_str()).map_err(|_| none())?;
        self.written(id).await?.ok_or_else(none)
    }

    fn profile(&self, written: &Written) -> Result<CompanionProfile, Refused> {
        let (id, companion) = (written.id.clone(), written.fields()?);
        let server = &self.context.settings.server;
        let picture = self.context.pictures.path(&id);
        let discord_picture = match (&companion.picture_url, &picture) {
            (Some(url), _) => DiscordPicture::Shown { url: url.to_string() },
            (None, None) => DiscordPicture::None,
            (None, Some(_)) => match self.context.pictures.public_url(&id, server) {
                Some(url) => DiscordPicture::Shown { url: url.to_string() },
                None => DiscordPicture::NoPublicUrl,
            },
        };
        let rooms = self.rooms_of(&id);
        let warnings = self.warnings(&id);
        Ok(CompanionProfile {
            guild: self.context.memberships.companions().get(&id).and_then(|companion| companion.guild.clone()),
            revision: written.revision(),
            kept: self.kept(written),
            persona_elsewhere: written.persona_elsewhere(),
            picture,
            discord_picture,
            has_card: written.card.is_some(),
            warnings: warnings.iter().map(ToString::to_string).collect(),
            warning_codes: warnings.iter().map(Detail::why).collect(),
            rooms,
            companion,
            id,
        })
    }

    fn rooms_of(&self, id: &CompanionId) -> Vec<ProfileRoom> {
        let memberships = self.context.memberships.all().into_iter();
        let here = memberships.filter(|(_, membership)| membership.companions.contains(id) && !membership.is_external(id));
        let rooms = here.filter_map(|(channel, membership)| {
            let id = RoomId::of(&channel)?;
            Some(ProfileRoom { title: self.context.title_of(&channel, &membership), id })
        });
        rooms.collect()
    }

    fn warnings(&self, id: &CompanionId) -> Vec<Detail> {
        let companions = self.context.memberships.companions();
        let shared = shared_names(companions.values()).into_iter().filter(|shared| shared.first == *id || shared.second == *id);
        let warning = |SharedName { name, first, second }: SharedName| {
            let other = if first == *id { second } else { first };
            let text = format!("It shares the name {name:?} with {other}, so the two cannot be in rooms of one server.");
            Detail::from(text).coded("refusals.warn_shared_name", json!({ "name": name, "other": other }))
        };
        let mut warnings: Vec<_> = shared.map(warning).collect();
        if let Some(companion) = companions.get(id) {
            for other in companions.values().filter(|other| other.id != *id) {
                let pairs = companion.names().flat_map(|mine| other.names().map(move |theirs| (mine, theirs)));
                let mut alike =
                    pairs.filter(|(mine, theirs)| mine.to_lowercase() != theirs.to_lowercase() && look_alike(mine, theirs));
                if let Some((mine, theirs)) = alike.next() {
                    let text = format!(
                        "Its name {mine:?} looks like {theirs:?}, a name of {}: people cannot tell the two apart.",
                        other.id
                    );
                    let values = json!({ "name": mine, "taken": theirs, "other": other.id });
                    warnings.push(Detail::from(text).coded("refusals.warn_looks_alike", values));
                }
            }
            let prompt = &self.context.in_force().prompt;
            if companion.brief.is_none() && tokens(companion.persona.trim()) > decision_room(prompt).persona {
                let shorter = "Its persona is long: when it decides whether to speak, the AI is given a shorter version of it.";
                warnings.push(Detail::from(shorter).coded("refusals.warn_long_persona", json!({})));
            }
            warnings.extend(silence_note(companion).map(|note| {
                let values = json!({ "silence": companion.starts_after, "lull": companion.text_lull_timeout });
                Detail::from(note).coded("refusals.warn_short_silence", values)
            }));
            warnings.extend(
                common_name_note(companion, self.context.settings.names.common)
                    .map(|note| Detail::from(note).coded("refusals.warn_everyday_name", json!({ "name": companion.name }))),
            );
        }
        warnings
    }
}

#[async_trait]
impl CompanionSetup for Setup {
    async fn options(&self) -> Result<CompanionOptions, Refused> {
        let files = self.files.clone();
        let kept = blocking(move || {
            let path = files.folder().display().to_string();
            match (files.is_writable(None), files.are_built_in()) {
                (true, true) => Kept::BuiltIn { path },
                (true, false) => Kept::File { path, writable: true },
                (false, _) => Kept::Store { why: format!("{path} cannot be written"), instead_of: None },
            }
        });
        let kept = kept.await?;
        let settings = self.context.in_force();
        let services = settings
            .speech
            .services
            .iter()
            .filter(|(name, table)| table.api(name).is_ok_and(|api| api.serves(Service::SpeechSynthesis)));
        let mut voices: Vec<_> = services
            .map(|(name, table)| ServiceVoices { provider: name.clone(), voices: table.voice.iter().cloned().collect() })
            .collect();
        voices.push(ServiceVoices { provider: BUILT_IN.into(), voices: Vec::new() });
        for companion in self.context.memberships.companions().values() {
            let provider = companion.voice.provider.as_ref().unwrap_or(&settings.speech.synthesis);
            let service = voices.iter_mut().find(|service| service.provider == *provider);
            if let (Some(service), Some(voice)) = (service, &companion.voice.voice)
                && !service.voices.contains(voice)
            {
                service.voices.push(voice.clone());
            }
        }
        let defaults = &settings.companion_defaults;
        Ok(CompanionOptions {
            kept,
            models: self.context.pool.settings().names().collect(),
            voices,
            common_names: match settings.names.common {
                CommonNames::Vocative => common_words(),
                CommonNames::Anywhere => BTreeSet::new(),
            },
            decides_together: settings.turn_taking.voting == Voting::Together,
            defaults: DefaultFields {
                persona: defaults.persona.clone(),
                chattiness: defaults.chattiness.clone(),
                interjection: defaults.interjection,
                quiet_hours: defaults.quiet_hours,
            },
        })
    }

    async fn companion(&self, id: CompanionId) -> Result<CompanionProfile, Refused> {
        let written = self.existing(&id).await?;
        self.profile(&written)
    }

    async fn create(&self, new: NewCompanion) -> Result<CompanionProfile, Refused> {
        let setup = self.clone();
        uninterrupted(async move { setup.create_now(new).await }).await
    }

    async fn change(&self, id: CompanionId, change: CompanionChange) -> Result<CompanionProfile, Refused> {
        let setup = self.clone();
        uninterrupted(async move { setup.change_now(id, change).await }).await
    }

    async fn delete(&self, id: CompanionId, revision: Revision) -> Result<(), Refused> {
        let setup = self.clone();
        uninterrupted(async move { setup.delete_now(id, revision).await }).await
    }

    async fn try_out(&self, trial: CompanionTrial) -> Result<Trial, Refused> {
        let _place = self.trials.try_acquire().map_err(|_| busy())?;
        let CompanionTrial { companion, of, message } = trial;
        if message.as_ref().is_some_and(|message| message.chars().count() > MAX_MESSAGE_CHARS) {
            return Err(invalid("message", format!("is too long, at most {MAX_MESSAGE_CHARS} characters are allowed")));
        }
        let message = message.filter(|message| !message.trim().is_empty());
        let (id, text, now) = match of {
            Some(of) => {
                let written = self.existing(&of).await?;
                (of, written.whole_text()?, written.fields()?)
            }
            None => {
                (id_of_title(&companion.name, MAX_ID_CHARS, "companion", |_| false).into(), String::new(), Default::default())
            }
        };
        let text = edited(&text, &changes(&now, &tidied(companion))).map_err(|error| invalid("companion", error))?;
        let companion = self.draft(&id, &text)?;
        try_models(&self.context.in_force(), &companion, message, &self.dialects).await.map_err(refused)
    }

    async fn picture(&self, id: CompanionId, hash: String, size: Option<u32>) -> Result<Vec<u8>, Refused> {
        let none = || Refused::not_found(format!("{id} has no such picture"));
        self.context.pictures.hash(&id).filter(|found| **found == *hash).ok_or_else(none)?;
        if let Some(side) = size.and_then(small::side_for) {
            // Pictures are scaled one at a time, to limit the memory.
            let mut squares = self.squares.clone().lock_owned().await;
            let key = (id.clone(), side);
            let square = squares.get(&key).filter(|(of, _)| *of == hash).map(|(_, square)| square.clone());
            let square = if let Some(square) = square {
                square
            } else {
                let whole = self.picture(id.clone(), hash.clone(), None).await?;
                squares.retain(|(id, _), (of, _)| self.context.pictures.hash(id).is_some_and(|hash| *hash == **of));
                let of = hash.clone();
                // The lock is held until the picture is scaled, even if the client has disconnected by then.
                blocking(move || {
                    let square = small::square(&whole, side);
                    squares.insert(key, (of, square.clone()));
                    square
                })
                .await?
            };
            if let Some(square) = square {
                return Ok(square);
            }
        }
        let bytes = Reader::new(&*self.context.store).bytes(key::picture(&id)).await?.ok_or_else(none)?;
        // The picture may have been replaced meanwhile.
        if pictures::hash(&bytes).starts_with(&*hash) { Ok(bytes) } else { Err(none()) }
    }

    async fn exported(&self, id: CompanionId) -> Result<Exported, Refused> {
        let in_force = self.context.memberships.companions().get(&id).cloned();
        let Some(companion) = in_force else {
            self.existing(&id).await?;
            return Err(Refused::conflict(Detail::of("refusals.not_in_force", json!({ "companion": id }))));
        };
        let written = self.existing(&id).await?.fields()?;
        // A default value is not exported as the companion's own.
        let chattiness = written.chattiness.unwrap_or_default();
        let companion = Companion { chattiness, ..companion };
        let reader = Reader::new(&*self.context.store);
        Ok(Exported { companion, picture: reader.bytes(key::picture(&id)).await?, card: reader.bytes(key::card(&id)).await? })
    }
}

/// Runs work to its end, even if the client disconnects meanwhile.
async fn uninterrupted<T: Send + 'static>(work: impl Future<Output = Result<T, Refused>> + Send + 'static) -> Result<T, Refused> {
    tokio::spawn(work).await.unwrap_or_else(|error| Err(failed(&error)))
}

/// Reads files, which may be on a mount that does not respond.
async fn reading<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refused> {
    let late = |_| Refused::unavailable(Detail::key("refusals.folder_silent"));
    tokio::time::timeout(READ_TIMEOUT, blocking(work)).await.map_err(late)?
}

/// Runs file operations off the runtime's own threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refused> {
    tokio::task::spawn_blocking(work).await.map_err(|error| failed(&error))
}

fn failed(error: &tokio::task::JoinError) -> Refused {
    tracing::error!(%error, "a change of companions failed");
    Refused::broken(Detail::key("refusals.failed"))
}

#[cfg(test)]
mod tests;
