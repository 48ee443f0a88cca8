//! Has the words of voice notes recognised, one note after the other, and journals them (docs/design/voice.md A-78).
//!
//! The record says which words are awaited. So nothing is lost with this channel, and words count once: the channel journals them only while it
//! awaits them.

use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::sleep;

use super::channel_context::ChannelContext;
use crate::actors::calls::recordings::{NoTranscript, transcribe};
use crate::actors::erasure::deletion::delete_messages;
use crate::actors::inbound::Inbound;
use crate::actors::messages::channel::{ChannelMessage, Transcript, Transcription};
use crate::actors::runtime::owned_task::OwnedTask;
use crate::actors::writer::requests::write_meta;
use crate::domain::conversation::Conversation;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{PersonId, Seq, Ward};
use crate::domain::message::{Message, Untranscribed};
use crate::journal::key;
use crate::journal::reader::Reader;
use crate::journal::record::{decode_bytes, encode_bytes};
use crate::ports::chat_platform::{ChatPlatform, NotRead, insist, voice_notes_notice};
use crate::ports::inbound_events::ChannelRef;
use crate::ports::store::Write;
use crate::telemetry::plain::Plain;

/// The number of attempts to read and recognise a note. They take half a minute, besides the time that they wait for a platform or a service.
const MAX_ATTEMPTS: u32 = 5;
/// The pause after the first attempt. Each further pause is twice as long as the previous one.
const PAUSE: Duration = Duration::from_secs(2);
/// The longest pause that a platform can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The note whose words are being recognised, or journaled.
#[derive(Default)]
pub(super) struct Transcriptions(Option<(Seq, OwnedTask)>);

impl Transcriptions {
    /// Begins with the oldest awaited note, unless one is in progress. Words that are not awaited any more are dropped.
    pub(super) fn follow(&mut self, conversation: &Conversation, channel: &ChannelContext) {
        let awaited = conversation.awaited_notes();
        if self.0.as_ref().is_none_or(|(note, _)| !awaited.contains(note)) {
            self.0 = awaited.first().map(|note| (*note, begin(*note, channel)));
        }
    }
}

fn begin(note: Seq, channel: &ChannelContext) -> OwnedTask {
    let channel = channel.clone();
    let task = tokio::spawn(async move {
        if let Some(transcription) = of_note(note, &channel).await {
            let _ = channel.actor.cast(ChannelMessage::Transcribed(Box::new(transcription)));
        }
    });
    task.into()
}

/// Journals the words of a note that are still awaited. The note of a person who has opted out is deleted instead.
pub(super) fn journal(transcription: Transcription, channel: &ChannelContext) {
    let Transcription { note, transcript } = transcription;
    if is_of_opted_out(&note, channel) {
        return delete(note.seq, channel);
    }
    log(&note, &transcript, channel);
    let event = Inbound::new((*channel.context).clone()).words_event(&channel_ref(channel), &note, transcript);
    event.into_iter().for_each(|event| channel.accept(event, None));
}

/// The outcome for a note. `None`: the note was deleted, or its author has opted out.
async fn of_note(note: Seq, channel: &ChannelContext) -> Option<Transcription> {
    let mut failures = 0_u32;
    let note = loop {
        match Reader::new(&*channel.context.store).event(&channel.key, note).await {
            Ok(recorded) => break recorded?,
            Err(error) => {
                failures += 1;
                if failures == MAX_ATTEMPTS {
                    tracing::error!(channel = %channel.shown(), message = %note, %error, "a voice note cannot be read from the record; it is tried again");
                }
                sleep(if failures < MAX_ATTEMPTS { PAUSE } else { LONGEST_PAUSE }).await;
            }
        }
    };
    let Event::Said { message, .. } = &note.event else { return None };
    if is_of_opted_out(&note, channel) {
        delete(note.seq, channel);
        return None;
    }
    // A recording that makes a decoder panic would otherwise be tried again at each start, and hold up the notes behind it.
    let words = AssertUnwindSafe(words_of(note.seq, message, channel)).catch_unwind().await;
    let transcript = words.unwrap_or_else(|_| {
        tracing::error!(channel = %channel.shown(), message = %note.seq, "recognising a voice note panicked");
        Err(Untranscribed::Failed)
    });
    Some(Transcription { note, transcript })
}

async fn words_of(note: Seq, message: &Message, channel: &ChannelContext) -> Result<Transcript, Untranscribed> {
    let (mut attempt, mut pause) = (1, PAUSE);
    loop {
        match attempt_once(note, message, channel).await {
            Ok(transcript) => return Ok(transcript),
            Err(Failed::Now(_, after)) if attempt < MAX_ATTEMPTS => {
                sleep(pause.max(after.unwrap_or_default()).min(LONGEST_PAUSE)).await;
                (attempt, pause) = (attempt + 1, pause * 2);
            }
            Err(Failed::Now(why, _) | Failed::Ever(why)) => return Err(why),
        }
    }
}

enum Failed {
    /// Another attempt may succeed, after this time if the platform asked for it. The reason counts if no attempt succeeds.
    Now(Untranscribed, Option<Duration>),
    Ever(Untranscribed),
}

impl From<NotRead> for Failed {
    fn from(error: NotRead) -> Self {
        tracing::debug!(%error, "a voice note cannot be read from its platform");
        match error {
            NotRead::Later { after, .. } => Self::Now(Untranscribed::Unreadable, after),
            NotRead::Never(_) => Self::Ever(Untranscribed::Unreadable),
        }
    }
}

async fn attempt_once(note: Seq, message: &Message, channel: &ChannelContext) -> Result<Transcript, Failed> {
    let ChannelContext { key, context, .. } = channel;
    let _place = context.calls.recordings().place().await.ok_or(Failed::Now(Untranscribed::Failed, None))?;
    let file = match (channel.platform(), &message.id) {
        (Some(platform), Some(id)) => {
            tell(&*platform, channel).await?;
            platform.voice_note(&key.channel, id).await?
        }
        (Some(_), None) => return Err(Failed::Ever(Untranscribed::Unreadable)),
        // On the page, people were told before they recorded it.
        (None, _) => match Reader::new(&*context.store).file(key, note, 0).await {
            Ok(file) => file.ok_or(Failed::Ever(Untranscribed::Unreadable))?.1,
            Err(_) => return Err(Failed::Now(Untranscribed::Unreadable, None)),
        },
    };
    let transcript = transcribe(context, &channel_ref(channel), &message.from.name, &file).await;
    transcript.map_err(|error| match error {
        NoTranscript::Now => Failed::Now(Untranscribed::Failed, None),
        NoTranscript::Ever(why) => Failed::Ever(why),
    })
}

/// Tells the people in a channel, once, that voice notes are recognised, and by whom. Until they are told, nothing is recognised.
async fn tell(platform: &dyn ChatPlatform, channel: &ChannelContext) -> Result<(), Failed> {
    let ChannelContext { key: channel_key, context, .. } = channel;
    let by = recognisers(channel);
    let key = key::note(None, &format!("voice notes/{}", channel_key.channel));
    let unavailable = |error: &dyn Display| {
        tracing::debug!(%error, "it is not known whether a channel was told about voice notes");
        Failed::Now(Untranscribed::Failed, None)
    };
    let told = context.store.get(key.clone()).await.map_err(|error| unavailable(&error))?;
    if told.and_then(|told| decode_bytes(&key, &told).ok()).is_some_and(|told| told == by.as_bytes()) {
        return Ok(());
    }
    let text = voice_notes_notice(&by, context.memberships.language(&channel_key.channel).as_deref());
    let nonce = format!("{}/voice-notes/{by}", channel_key.channel);
    insist(|| platform.announce(&channel_key.channel, &text, &nonce)).await.map_err(|error| {
        tracing::warn!(channel = %channel.shown(), %error, "voice notes are not recognised in this channel, because its people cannot be told");
        Failed::Ever(Untranscribed::Untold)
    })?;
    let written = write_meta(context, Ward(0), vec![Write::Put(key, encode_bytes(by.as_bytes()))]).await;
    written.map_err(|error| unavailable(&error))
}

/// Who recognises voice notes, for people.
fn recognisers(channel: &ChannelContext) -> String {
    let recognisers = channel.context.speech.recognition();
    let names = recognisers.with_words().map(|provider| match provider.service().host() {
        Some(host) => format!("{} ({host})", provider.service().provider()),
        None => provider.service().provider().to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn is_of_opted_out(note: &Recorded, channel: &ChannelContext) -> bool {
    let from = if let Event::Said { message, .. } = &note.event { Some(PersonId::from(&*message.from.id)) } else { None };
    from.is_some_and(|from| channel.context.opt_outs.holds(&channel.key.guild, &from))
}

/// Deletes a note in a task of its own, because the deletion waits for this channel.
fn delete(note: Seq, channel: &ChannelContext) {
    let channel = channel.clone();
    tokio::spawn(async move {
        if let Err(error) = delete_messages(&channel.context, &channel.key, &[note].into()).await {
            tracing::error!(channel = %channel.shown(), %error, "a voice note of somebody who wants to be ignored could not be deleted; a restart tries again");
        }
    });
}

fn channel_ref(channel: &ChannelContext) -> ChannelRef {
    ChannelRef { guild: channel.key.guild.clone(), channel: channel.key.channel.clone(), parent: None }
}

fn log(note: &Recorded, transcript: &Result<Transcript, Untranscribed>, channel: &ChannelContext) {
    let Event::Said { message, .. } = &note.event else { return };
    let secs = message.voice_note.as_ref().map(|note| note.ms as f64 / 1_000.0).unwrap_or_default();
    let (guild, channel, message) = (Plain(channel.key.guild.as_str()), channel.shown(), note.seq);
    match transcript {
        Ok(Transcript { provider, .. }) => {
            tracing::info!(%guild, %channel, %message, secs, %provider, "a voice note was transcribed")
        }
        Err(why) => tracing::info!(%guild, %channel, %message, secs, why = why.as_str(), "a voice note was not transcribed"),
    }
}
