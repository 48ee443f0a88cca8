//! Tasks of operators: quarantined guilds, suspended channels and dead letters, backups, the deletion of a person's data, and readiness.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use serde_json::json;

use super::ActorBackend;
use super::errors::{invalid, unavailable};
use super::forget::{ANSWERS_ALONE, Remainder};
use super::quarantine::{CHANNEL_PREFIX, retried, retry_id, room_of};
use crate::actors::erasure::deletion::redact_messages;
use crate::actors::inbound::Inbound;
use crate::actors::messages::guilds::GuildsMessage;
use crate::actors::runtime::actor_keys::WriterKey;
use crate::domain::event::Event;
use crate::domain::filter::{ALL_FILTERED, FILTERED};
use crate::domain::id::{PersonId, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::record::encode;
use crate::journal::redaction::redact;
use crate::ports::backend::keeping::{
    BackedUp, Forget, Forgotten, Quarantine, QuarantinedGuild, Readiness, ReadyModel, ReadyModels, ReadyPart, SuspendedChannel,
};
use crate::ports::backend::maintenance_service::MaintenanceService;
use crate::ports::backend::reminder_service::ReminderService as _;
use crate::ports::backend::stamp::Stamp;
use crate::ports::backend::{Detail, Refused};
use crate::ports::gateway::Condition;
use crate::ports::language_model::ModelRole;
use crate::ports::store::Write;
use crate::ports::store::maintenance::{TemporaryCopy, is_backup_name};

#[async_trait]
impl MaintenanceService for ActorBackend {
    async fn quarantine(&self) -> Result<Quarantine, Refused> {
        let out_of_service = self.ask_guilds(GuildsMessage::OutOfService).await?;
        let guilds = out_of_service.guilds.into_iter().map(|entry| QuarantinedGuild {
            id: entry.guild,
            since: entry.since.into(),
            until: entry.until.into(),
            detail: entry.reason,
        });
        let channels = out_of_service.channels.into_iter().map(|entry| SuspendedChannel {
            id: format!("{CHANNEL_PREFIX}{}", entry.channel).into(),
            room: room_of(&entry.channel),
            guild: entry.guild,
            since: entry.since.into(),
            until: entry.until.into(),
            detail: entry.reason,
        });
        let mut messages = Vec::new();
        for ward in (0..=u8::MAX).map(Ward) {
            messages.extend(self.dead_letters_in(ward).await?);
        }
        messages.sort_by_key(|entry| entry.at);
        let companions = self.context.skipped_companions.lock().clone();
        let reload = self.context.failed_reload.lock().clone();
        Ok(Quarantine { guilds: guilds.collect(), channels: channels.collect(), messages, companions, reload })
    }

    async fn release(&self, entry: &str) -> Result<(), Refused> {
        if self.ask_guilds(|reply| GuildsMessage::Release(entry.into(), reply)).await? {
            return Ok(());
        }
        let Some(channel) = entry.strip_prefix(CHANNEL_PREFIX) else {
            return Err(Refused::not_found(format!("guild {entry} is not in quarantine")));
        };
        let was_suspended = self.ask_guilds(|reply| GuildsMessage::TryAgain(channel.into(), reply)).await?;
        if was_suspended { Ok(()) } else { Err(Refused::not_found(format!("channel {channel} is not suspended"))) }
    }

    async fn retry(&self, entry: &str) -> Result<(), Refused> {
        let (id, record) = self.entry(entry).await?;
        let channel_key = ChannelKey::new(&record.guild, &record.channel);
        if let Some(old) = self.reader().event(&channel_key, record.seq).await? {
            if !old.event.is_inbound() {
                let (seq, channel) = (record.seq, &record.channel);
                let detail =
                    format!("event {seq} of {channel} is not an inbound event, so it cannot be retried; drop it instead");
                return Err(Refused::conflict(Detail::from(detail).coded("refusals.not_retried", json!({}))));
            }
            // The id makes the retry idempotent: if this fails halfway and is repeated, the message is accepted only once.
            let retry_id: Arc<str> = retry_id(id.ward, id.no, id.seq).into();
            let (copy, inbound) = (retried(&old.event), Inbound::new(self.context.clone()));
            let files = self.reader().files_of(&channel_key, record.seq).await?;
            let accepted = inbound.accept_with_files(&channel_key, copy, Some(retry_id), files).await?;
            if let Event::Said { message, .. } = &old.event {
                let _lock = self.context.rewrite_locks.lock(&channel_key).await;
                // Edits and deletions on the platform must affect the copy from now on.
                if let Some(platform_id) = &message.id {
                    let key = key::message_id(id.ward, id.no, platform_id);
                    self.write_meta(id.ward, vec![Write::Put(key, encode(&accepted.seq))]).await?;
                }
                self.accept(&channel_key, Event::deleted(vec![old.seq]), None).await?;
                // Redacting the message closes its dead letter, too.
                let redacted = vec![redact(&old)];
                self.context.forget_words(&channel_key);
                return redact_messages(&self.context, &channel_key, &[old.seq], redacted, Vec::new())
                    .await
                    .map_err(Refused::from);
            }
        }
        self.hide(id, record).await
    }

    async fn drop_entry(&self, entry: &str) -> Result<(), Refused> {
        let (id, record) = self.entry(entry).await?;
        self.hide(id, record).await
    }

    async fn backup(&self, to: &str) -> Result<BackedUp, Refused> {
        if !Path::new(to).is_absolute() {
            // A relative path would start at the server's working directory, which the caller does not know.
            return Err(invalid(
                "to",
                format!("{to} is not an absolute path: name a new file on the server's machine, such as /backups/a.backup"),
            ));
        }
        if !is_backup_name(Path::new(to)) {
            // Old backups are found by their extension when they are deleted.
            let detail =
                format!("{to} is not a backup's name, which ends in .backup: name a new file such as /backups/monday.backup");
            return Err(invalid("to", detail));
        }
        let entries = self.maintenance.clone().backup(Path::new(to)).await?;
        Ok(BackedUp { to: to.to_owned(), entries })
    }

    async fn copy_for(&self, process: u32) -> Result<(BackedUp, Box<dyn Send + Sync>), Refused> {
        let TemporaryCopy { path, records, file } = self.maintenance.clone().copy_for(process).await?;
        Ok((BackedUp { to: path.to_string_lossy().into_owned(), entries: records }, file))
    }

    async fn forgettable(&self, forget: &Forget) -> Result<Forgotten, Refused> {
        let Forget { guild, person, answers } = forget;
        let (person, ward) = (PersonId::from(&**person), Ward::of(guild));
        let listed = self.reader().listed(guild, &person).await?;
        if listed.is_empty() && self.descriptions_of(guild, &person).is_empty() {
            return Err(self.nobody(guild, &person).await);
        }
        let mut forgotten = Forgotten::default();
        for (no, stretches) in listed {
            let Some(channel_key) = self.named(ward, no).await? else { continue };
            match self.count_in_channel(&channel_key, no, &person, &stretches, *answers, &mut forgotten).await {
                // Forgetting the person reports unreadable entries.
                Err(error) if !error.is_damage() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(forgotten)
    }

    async fn forget(&self, forget: Forget) -> Result<Forgotten, Refused> {
        let Forget { guild, person, answers } = forget;
        let person = PersonId::from(&*person);
        let ward = Ward::of(&guild);
        // First end the visits, so that the guest can post no more messages.
        let was_guest = self.forget_guest(&guild, &person).await? | self.forget_descriptions(&guild, &person).await?;
        let reminders = self.erase_reminders(&guild, None, &person).await;
        self.set_time_zone(&guild, &person, None).await?;
        let listed = self.reader().listed(&guild, &person).await?;
        let removal = self.context.told.removal(&guild, &person);
        let is_unknown = listed.is_empty() && !was_guest && removal.is_none() && matches!(reminders, Ok(0));
        let (mut forgotten, mut nameless, mut answering, mut illegible) = (Forgotten::default(), None, None, None);
        let names = self.names_in_notes(&guild, &person).await?;
        // An unreadable channel must not prevent the deletion in the others.
        let mut unreadable = None;
        for (no, stretches) in listed {
            let Some(channel_key) = self.named(ward, no).await? else {
                nameless.get_or_insert(no);
                continue;
            };
            match self.forget_in_channel(&channel_key, no, &person, stretches, answers, &mut forgotten).await {
                Ok(Remainder::Nothing) => {}
                Ok(Remainder::Owed) => drop(answering.get_or_insert(channel_key)),
                Ok(Remainder::Illegible(entries)) => {
                    let (_, total) = illegible.get_or_insert((channel_key, 0));
                    *total += entries;
                }
                Err(Refused::Damaged(detail)) => drop(unreadable.get_or_insert((channel_key, detail))),
                Err(refused) => return Err(refused),
            }
        }
        forgotten.notes += self.erase_notes_of(&guild, &person, &names).await?;
        if let Some(removal) = removal {
            self.write_meta(ward, vec![removal]).await?;
            self.context.told.remove(&guild, &person);
        }
        let (has_used, unreadable_usage) = self.forget_usage(&guild, &person).await?;
        forgotten.reminders = reminders?;
        if let Some((channel_key, detail)) = unreadable {
            let detail = format!(
                "the messages in {channel_key} cannot be deleted, or not completely: {detail}; everything readable in other channels is deleted; \
                 restore a backup or delete the room, and repeat this"
            );
            return Err(Refused::Damaged(detail.into()));
        }
        if let Some((channel_key, entries)) = illegible {
            let which = if entries == 1 {
                "1 entry cannot be read and may be this person's, or mention this person".to_owned()
            } else {
                format!("{entries} entries cannot be read and may be this person's, or mention this person")
            };
            return Err(Refused::damaged(format!(
                "{which}, the first in {channel_key}: everything readable is deleted; restore a backup or delete the room, and repeat this"
            )));
        }
        if let Some(key) = unreadable_usage {
            return Err(Refused::damaged(format!(
                "the guild's usage record {key} cannot be read and may name this person: everything readable is deleted; restore a backup"
            )));
        }
        if let Some(no) = nameless {
            return Err(Refused::damaged(format!(
                "this person said something in channel {} of ward {}, but the record of that channel's name is lost: the messages there are still \
                 on record; restore a backup with `tertulia history restore`, and repeat this",
                no.0, ward.0
            )));
        }
        if let Some(channel_key) = answering {
            return Err(unavailable(format!(
                "in {channel_key} a companion is still replying to this person's messages: nothing is deleted there yet; try again, or keep the \
                 answers"
            )));
        }
        if is_unknown && !has_used {
            return Err(match self.nobody(&guild, &person).await {
                Refused::NotFound(detail) if answers => Refused::not_found(format!("{detail}; {ANSWERS_ALONE}")),
                refused => refused,
            });
        }
        if !self.context.compaction_failed.load(Ordering::Relaxed) {
            forgotten.in_file_until = self.context.settings.storage.compacted_by(self.context.clock.now()).map(Stamp);
        }
        Ok(forgotten)
    }

    async fn readiness(&self) -> Readiness {
        let model = |role| {
            let identity = self.context.pool.identity(role);
            ReadyModel { provider: identity.provider.clone(), model: identity.model.clone() }
        };
        let part = |part: &str, ready: bool, detail: Detail| ReadyPart {
            part: part.into(),
            ready,
            detail: if ready { String::new() } else { detail.to_string() },
            why: if ready { Vec::new() } else { vec![detail.why()] },
            ..ReadyPart::default()
        };
        let pool = self.context.pool.report().await;
        let is_refusal = |code| [FILTERED, ALL_FILTERED].contains(&code);
        let failures = pool.as_ref().map(|pool| {
            // A refused message says nothing about the model. Its details are shown nevertheless, until the room is answered.
            let failing = pool.troubles.iter().filter(|trouble| !is_refusal(trouble.code));
            failing.map(|trouble| trouble.detail.as_str()).collect::<Vec<_>>().join("; ")
        });
        let refused = pool.iter().flat_map(|pool| &pool.troubles).filter(|trouble| is_refusal(trouble.code));
        let refused: Vec<ReadyPart> = refused
            .map(|trouble| ReadyPart {
                part: trouble.code.into(),
                ready: true,
                detail: trouble.detail.clone(),
                ..ReadyPart::default()
            })
            .collect();
        let models_detail = failures.map_or_else(|| Detail::key("refusals.no_model_now"), Detail::from);
        let not_stored = Detail::from("messages cannot be stored at the moment").coded("refusals.not_stored", json!({}));
        let mut parts = vec![
            part("store", self.context.directory.find(&WriterKey()).is_some(), not_stored),
            part("models", models_detail.is_empty(), models_detail),
        ];
        parts.extend(refused);
        if let Some(moderation) = &self.context.moderation {
            let meanwhile = self.context.in_force().safety.moderation_fails.meanwhile();
            let failed = moderation.failure().map(|code| format!("the service does not work ({code}): {meanwhile}"));
            let detail = failed.unwrap_or_else(|| format!("when the service does not answer, {meanwhile}"));
            parts.push(ReadyPart {
                part: "moderation".into(),
                ready: moderation.failure().is_none(),
                detail,
                ..ReadyPart::default()
            });
        }
        let mut is_held_up = false;
        for gateway in self.context.gateways.all() {
            let Condition { ready, detail, why, since, servers, invitation, blocks_readiness } = gateway.condition();
            is_held_up |= blocks_readiness;
            let part = gateway.name().into();
            parts.push(ReadyPart { part, ready, detail, why, since: since.map(Stamp), servers, invitation });
        }
        // The server accepts messages without a model, and companions answer once a model is available. Without a platform it still serves the
        // console, unless the settings require the platform.
        let ready = !is_held_up && parts.iter().filter(|part| &*part.part == "store").all(|part| part.ready);
        let models = ReadyModels { side: model(ModelRole::Side), main: model(ModelRole::Main) };
        Readiness { ready, parts, models: Some(models), ..Readiness::default() }
    }
}
