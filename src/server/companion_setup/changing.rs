//! Writes companions, puts them into force, and deletes them. A change is made as a whole, or not at all.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::Setup;
use super::checking::{checked_card, checked_picture};
use super::fields::{changes, tidied};
use super::written::Written;
use crate::actors::membership::changes::update_membership;
use crate::actors::membership::memberships::MembershipLock;
use crate::actors::writer::requests::write_meta;
use crate::backend::lore::forget_companion;
use crate::domain::id::{CompanionId, GuildId, Ward};
use crate::journal::key;
use crate::journal::record::{CompanionRecord, encode, encode_bytes};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Refused};
use crate::ports::companion_setup::{CompanionChange, CompanionFields, CompanionProfile, NewCompanion, Revision};
use crate::ports::store::Write;
use crate::ports::store::key::Key;
use crate::server::model_setup::invalid;
use crate::server::reload::Turn;
use crate::settings::companion::written::{NewValue, edited};
use crate::settings::companion::{Companion, Override};
use crate::settings::roster::files::{CompanionFiles, Form, Found, is_unwritable};
use crate::settings::{InPlace, Overlay};

/// The data of a companion to write.
struct Draft {
    /// The contents of its file.
    text: String,
    /// A persona file, and its contents.
    persona: Option<(PathBuf, String)>,
    /// The contents of a single file that includes the persona.
    whole_text: String,
    picture: Override<Vec<u8>>,
    card: Override<Vec<u8>>,
}

impl Setup {
    pub(super) async fn create_now(&self, new: NewCompanion) -> Result<CompanionProfile, Refused> {
        let turn = self.reloading.turn().await;
        let NewCompanion { companion, copy_of, picture, card, room, guild } = new;
        let fields = tidied(companion);
        let source = match copy_of {
            Some(of) => Some(self.existing(&of).await?),
            None => None,
        };
        let (mut text, mut now) = match &source {
            Some(source) => (source.whole_text()?, source.fields()?),
            None => (String::new(), CompanionFields::default()),
        };
        if let Some(guild) = &guild {
            self.check_own(guild)?;
        }
        let id = self.id_for(&fields.name, guild.as_ref()).await?;
        // Ensures that the name is written even if it could be derived from the id.
        now.name = "".into();
        let mut keys = changes(&now, &fields);
        // A copy is the operator's.
        keys.extend([("id", None), ("guild", guild.map(|guild| NewValue::Text(guild.as_str().into())))]);
        text = edited(&text, &keys).map_err(|error| invalid("companion", error))?;
        let (copied_picture, copied_card) = source.map(|source| (source.picture, source.card)).unwrap_or_default();
        let (card, card_picture) = match card {
            Some(card) => checked_card(card.0).await.map(|(card, picture)| (Some(card), picture))?,
            None => (copied_card, None),
        };
        let picture = match picture {
            Some(picture) => Some(checked_picture(picture.0).await?),
            None => card_picture.or(copied_picture),
        };
        // Data of a former companion with this id must not become part of the new one.
        let [picture, card] = [picture, card].map(|bytes| bytes.map_or(Override::Reset, Override::Set));
        let draft = Draft { whole_text: text.clone(), text, persona: None, picture, card };
        self.put(&turn, &id, None, draft, room).await
    }

    pub(super) async fn change_now(&self, id: CompanionId, change: CompanionChange) -> Result<CompanionProfile, Refused> {
        let turn = self.reloading.turn().await;
        let CompanionChange { revision, companion, picture } = change;
        let written = self.existing(&id).await?;
        if written.revision() != revision {
            return Err(changed_meanwhile());
        }
        let (fields, mut now) = (tidied(companion), written.fields()?);
        let whole_text = edited(&written.whole_text()?, &changes(&now, &fields)).map_err(|error| invalid("companion", error))?;
        let persona = match (written.personas(), &fields.persona) {
            ([], _) => None,
            (_, new) if *new == now.persona => None,
            ([(path, _)], Some(new)) => Some((path.clone(), format!("{new}\n"))),
            ([(path, _)], None) => {
                let path = json!({ "path": path.display().to_string() });
                return Err(invalid("companion.persona", Detail::of("refusals.persona_in_file", path)));
            }
            (paths, _) => {
                let paths: Vec<_> = paths.iter().map(|(path, _)| path.display().to_string()).collect();
                let paths = json!({ "paths": paths.join(", ") });
                return Err(invalid("companion.persona", Detail::of("refusals.persona_in_files", paths)));
            }
        };
        if !written.personas().is_empty() {
            now.persona.clone_from(&fields.persona);
        }
        let text = edited(written.text(), &changes(&now, &fields)).map_err(|error| invalid("companion", error))?;
        let picture = match picture {
            Override::Set(picture) => Override::Set(checked_picture(picture.0).await?),
            Override::Reset => Override::Reset,
            Override::Keep => Override::Keep,
        };
        self.put(&turn, &id, Some(written), Draft { text, persona, whole_text, picture, card: Override::Keep }, None).await
    }

    /// Writes a companion, puts it into force, and adds it to a room. If it may not join the room, nothing is written.
    async fn put(
        &self,
        turn: &Turn,
        id: &CompanionId,
        before: Option<Written>,
        draft: Draft,
        room: Option<RoomId>,
    ) -> Result<CompanionProfile, Refused> {
        let companion = self.draft(id, &draft.whole_text)?;
        // With the lock, no companion is added to a guild between the check of its names and their change.
        let lock = self.context.memberships.lock().await;
        self.check_names(&companion)?;
        if let Some(guild) = &companion.guild {
            self.check_own_names(&companion, guild)?;
        }
        let joined = room.map(|room| self.check_room(&companion, &room)).transpose()?;
        let place = before
            .as_ref()
            .and_then(|before| before.found.as_ref())
            .map_or_else(|| self.files.path_of(id), |found| found.path.clone());
        let written = InPlace { place: place.display().to_string(), text: Ok(draft.whole_text.clone()) };
        self.check(turn, id, |overlay| drop(overlay.insert(id.clone(), Some(written)))).await?;
        let kept = self.write(id, before.as_ref(), &draft, companion.guild.as_ref()).await?;
        if draft.picture != Override::Keep {
            let picture = match &draft.picture {
                Override::Set(picture) => Some(&**picture),
                _ => None,
            };
            self.context.pictures.set(id, picture);
        }
        self.put_into_force(turn, &companion).await?;
        // If this cannot be stored, the profile does not list the room.
        if let Some((channel, membership)) = joined
            && let Err(error) = update_membership(&self.context, &lock, &channel, membership).await
        {
            tracing::warn!(companion = %id, room = %channel, %error, "a new companion is not in its room");
        }
        drop(lock);
        tracing::info!(companion = %id, kept, "a companion was written");
        let written = self.existing(id).await?;
        self.profile(&written)
    }

    /// Writes a companion to its file, or to the store if the file cannot be written, or if it is a guild's own. Returns the location.
    async fn write(
        &self,
        id: &CompanionId,
        before: Option<&Written>,
        draft: &Draft,
        guild: Option<&GuildId>,
    ) -> Result<String, Refused> {
        let mut writes = Vec::new();
        put_or_remove(&mut writes, key::picture(id), &draft.picture);
        put_or_remove(&mut writes, key::card(id), &draft.card);
        let is_in_file = before.is_some_and(|before| before.found.is_some() && before.record.is_none());
        if let Some(guild) = guild.filter(|_| !is_in_file) {
            let why = format!("it is the own companion of {guild}, whose managers made it");
            writes.push(Write::Put(key::companion(id), encode(&self.record(&draft.whole_text, why))));
            write_meta(&self.context, Ward(0), writes).await?;
            return Ok("the store".to_owned());
        }
        if let Some(record) = before.and_then(|before| before.record.as_ref()) {
            writes.push(Write::Put(key::companion(id), encode(&self.record(&draft.whole_text, record.why.to_string()))));
            write_meta(&self.context, Ward(0), writes).await?;
            return self.moved_to_file(id, before, draft).await;
        }
        let undo: Vec<_> = writes.iter().map(|write| undone(write, before)).collect();
        if !writes.is_empty() {
            write_meta(&self.context, Ward(0), writes).await?;
        }
        let found = before.and_then(|before| before.found.clone());
        let path = found.as_ref().map_or_else(|| self.files.path_of(id), |found| found.path.clone());
        let (files, of, text, persona) = (self.files.clone(), id.clone(), draft.text.clone(), draft.persona.clone());
        let outcome = super::blocking(move || write_files(&files, &of, found.as_ref(), &text, persona.as_ref())).await?;
        let Err(error) = outcome else { return Ok(path.display().to_string()) };
        let why = format!("{} cannot be written: {error}", path.display());
        if is_unwritable(&error) {
            let record = Write::Put(key::companion(id), encode(&self.record(&draft.whole_text, why)));
            let Err(error) = write_meta(&self.context, Ward(0), vec![record]).await else { return Ok("the store".to_owned()) };
            self.undo(undo).await;
            return Err(error.into());
        }
        self.undo(undo).await;
        Err(Refused::unavailable(Detail::of("refusals.not_written", json!({ "problem": why }))))
    }

    /// Moves a companion from the store to its file, if the file is now writable. Returns the location.
    async fn moved_to_file(&self, id: &CompanionId, before: Option<&Written>, draft: &Draft) -> Result<String, Refused> {
        let store = || Ok("the store".to_owned());
        let Some(before) = before.filter(|before| before.is_writable) else { return store() };
        let found = before.found.clone();
        if found.as_ref().is_some_and(|found| !found.personas.is_empty()) {
            // The persona would exist twice.
            return store();
        }
        let path = found.as_ref().map_or_else(|| self.files.path_of(id), |found| found.path.clone());
        let (files, of, text) = (self.files.clone(), id.clone(), draft.whole_text.clone());
        let written = super::blocking(move || write_files(&files, &of, found.as_ref(), &text, None)).await?;
        if let Err(error) = written {
            tracing::warn!(companion = %id, %error, "a companion stays in the store, because its file cannot be written");
            return store();
        }
        write_meta(&self.context, Ward(0), vec![Write::Remove(key::companion(id))]).await?;
        Ok(path.display().to_string())
    }

    async fn undo(&self, writes: Vec<Write>) {
        if !writes.is_empty() && write_meta(&self.context, Ward(0), writes).await.is_err() {
            tracing::error!("a picture that belongs to a change that failed stays in the store");
        }
    }

    fn record(&self, text: &str, why: String) -> CompanionRecord {
        CompanionRecord { text: text.into(), why: why.into(), at: self.context.clock.now() }
    }

    /// Reloads the companions, as at SIGHUP.
    async fn put_into_force(&self, turn: &Turn, companion: &Companion) -> Result<(), Refused> {
        let problems = self.reloading.reload(turn).await;
        // The picture's address depends on where the companion is stored, so it is not compared.
        let plain = |companion: &Companion| Companion { picture: None, ..companion.clone() };
        let in_force = self.context.memberships.companions().get(&companion.id).cloned();
        if in_force.is_some_and(|in_force| plain(&in_force) == plain(companion)) {
            return Ok(());
        }
        let values = json!({ "companion": companion.id, "problems": problems.join("; ") });
        Err(Refused::unavailable(Detail::of("refusals.not_in_force_yet", values)))
    }

    pub(super) async fn delete_now(&self, id: CompanionId, revision: Revision) -> Result<(), Refused> {
        let turn = self.reloading.turn().await;
        let written = self.existing(&id).await?;
        if written.revision() != revision {
            return Err(changed_meanwhile());
        }
        let lock = self.context.memberships.lock().await;
        let Written { found, record, .. } = &written;
        let counts_again = record.is_some() && found.is_some();
        let of = id.clone();
        let without = |overlay: &mut Overlay| {
            if counts_again { drop(overlay.remove(&of)) } else { drop(overlay.insert(of, None)) }
        };
        self.check(&turn, &id, without).await.map_err(|refused| match refused {
            Refused::Conflict(detail) => {
                Refused::conflict(Detail::of("refusals.companion_not_deleted", json!({ "companion": id, "problem": &*detail })))
            }
            other => other,
        })?;
        if counts_again {
            let removed = [key::companion(&id), key::picture(&id), key::card(&id)].map(Write::Remove);
            write_meta(&self.context, Ward(0), removed.into()).await?;
            self.context.pictures.set(&id, None);
            self.reloading.reload(&turn).await;
            drop(lock);
            return Ok(());
        }
        let moved = match found {
            None => None,
            Some(found) => {
                let (files, of, found) = (self.files.clone(), id.clone(), found.clone());
                let path = match found.form {
                    Form::BuiltIn => files.folder().to_owned(),
                    Form::File | Form::Folder => found.path.clone(),
                };
                let moved = super::blocking(move || files.move_away(&of, &found)).await?;
                moved.map_err(|error| not_removed(&id, &path, &error))?
            }
        };
        let removed = [key::companion(&id), key::picture(&id), key::card(&id)].map(Write::Remove);
        if let Err(error) = write_meta(&self.context, Ward(0), removed.into()).await {
            if let Some(moved) = moved {
                super::blocking(move || moved.put_back()).await?;
            }
            return Err(error.into());
        }
        self.context.pictures.set(&id, None);
        self.reloading.reload(&turn).await;
        self.leave_rooms(&lock, &id).await;
        forget_companion(&self.context, &id).await;
        drop(lock);
        if let Some(moved) = moved {
            super::blocking(move || moved.delete()).await?;
        }
        tracing::info!(companion = %id, "a companion was removed");
        Ok(())
    }

    /// Removes a deleted companion from its rooms, so that a new companion with the same id is not in them.
    async fn leave_rooms(&self, lock: &MembershipLock, id: &CompanionId) {
        for (channel, _) in self.context.memberships.all() {
            let Some(mut membership) = self.context.memberships.recorded(&channel) else { continue };
            // A thread inherits the members of its parent channel.
            if membership.inherits_from().is_some() || membership.is_external(id) || !membership.companions.remove(id) {
                continue;
            }
            membership.overrides.remove(id);
            if let Err(error) = update_membership(&self.context, lock, &channel, membership).await {
                tracing::warn!(companion = %id, room = %channel, %error, "a removed companion stays on the record of a room");
            }
        }
    }
}

/// Writes the files of a companion: both, or none.
fn write_files(
    files: &CompanionFiles,
    id: &CompanionId,
    found: Option<&Found>,
    text: &str,
    persona: Option<&(PathBuf, String)>,
) -> io::Result<()> {
    if let Some((path, persona)) = persona {
        files.write_persona(path, persona)?;
    }
    if found.is_some_and(|found| found.form != Form::BuiltIn && found.text == text) {
        return Ok(());
    }
    files.write(id, found, text).inspect_err(|_| {
        let before = persona.and_then(|(path, _)| found?.personas.iter().find(|(file, _)| file == path));
        if let Some((path, before)) = before
            && let Err(error) = files.write_persona(path, before)
        {
            tracing::error!(path = %path.display(), %error, "a persona stays changed, although the rest cannot be written");
        }
    })
}

fn put_or_remove(writes: &mut Vec<Write>, key: Key, change: &Override<Vec<u8>>) {
    match change {
        Override::Keep => {}
        Override::Reset => writes.push(Write::Remove(key)),
        Override::Set(bytes) => writes.push(Write::Put(key, encode_bytes(bytes))),
    }
}

/// The write that undoes `write`.
fn undone(write: &Write, before: Option<&Written>) -> Write {
    let (Write::Put(key, _) | Write::Remove(key)) = write;
    let bytes =
        before.and_then(|before| if *key == key::picture(&before.id) { before.picture.as_ref() } else { before.card.as_ref() });
    bytes.map_or_else(|| Write::Remove(key.clone()), |bytes| Write::Put(key.clone(), encode_bytes(bytes)))
}

fn changed_meanwhile() -> Refused {
    Refused::conflict(Detail::key("refusals.changed_meanwhile"))
}

fn not_removed(id: &CompanionId, path: &Path, error: &io::Error) -> Refused {
    if !is_unwritable(error) {
        return Refused::unavailable(format!("{} cannot be removed: {error}", path.display()));
    }
    let values = json!({ "companion": id, "path": path.display().to_string(), "error": error.to_string() });
    Refused::conflict(Detail::of("refusals.companion_not_removed", values))
}
