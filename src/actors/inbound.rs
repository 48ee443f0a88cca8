//! Accepts inbound events: resolves the addressed companions, and lets the writer commit the event. The event is handled only
//! after the commit.

use std::sync::Arc;
use std::time::Duration;

use crate::actors::messages::channel::Transcript;
use crate::actors::messages::writer::{Accept, Accepted, Refused, Request, WriteError};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::{ask, writer_ref};
use crate::domain::address::{self, Incoming};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{ChannelId, CompanionId, PersonId, Seq};
use crate::domain::message::{Address, Author, Message, Modality, NoteWords, Quoted, Role, Untranscribed, VoiceNote};
use crate::domain::moment::Moment;
use crate::domain::stop_phrase::is_stop_phrase;
use crate::domain::voice::interruption::{Stop, Words};
use crate::domain::voice::segment::Kind;
use crate::domain::voice::words::WordLists;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::Reader;
use crate::ports::backend::room::VoiceNotes;
use crate::ports::inbound_events::{ChannelRef, InboundMessage, StoredFile};

/// How many accepted events of a channel can wait to be handled. At this limit, nothing is accepted for the channel until it has
/// caught up.
const MAX_WAITING: usize = 4_096;

/// The retry delay in the answer when a channel is at that limit.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A message that is accepted this much later than it was sent carries the time when it was sent.
const LATE: Duration = Duration::from_secs(2);

/// The message that another message answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replied {
    /// Its sequence number, if it is in the journal.
    pub seq: Option<Seq>,
    pub author: Arc<str>,
    pub role: Role,
    /// Its beginning, if it is not in the journal.
    pub quoted: Option<Quoted>,
}

/// Accepts inbound events. Cheap to clone.
#[derive(Clone)]
pub struct Inbound {
    pub(super) context: ActorContext,
}

impl Inbound {
    pub fn new(context: ActorContext) -> Self {
        Self { context }
    }

    /// Accepts a message. `replied` is the message that it answers, if any. The message is committed when this returns. `None`:
    /// the message is ignored because of `gate.foreign_bots`.
    ///
    /// # Errors
    /// Returns an error if the message was not accepted, or if it is unknown whether it was. Send it again with the same id.
    pub async fn say(
        &self,
        channel_key: &ChannelKey,
        message: InboundMessage,
        replied: Option<Replied>,
    ) -> Result<Option<Accepted>, Refused> {
        let (id, files) = (message.id.clone(), message.files.clone());
        let Some(event) = self.message_event(channel_key, message, replied) else { return Ok(None) };
        self.accept_with_files(channel_key, event, id, files).await.map(Some)
    }

    /// Accepts any inbound event.
    ///
    /// # Errors
    /// The same as for [`say`](Self::say).
    pub async fn accept(&self, channel_key: &ChannelKey, event: Event, id: Option<Arc<str>>) -> Result<Accepted, Refused> {
        self.accept_with_files(channel_key, event, id, Vec::new()).await
    }

    /// Accepts an inbound event with files, which are stored with it.
    ///
    /// # Errors
    /// The same as for [`say`](Self::say).
    pub async fn accept_with_files(
        &self,
        channel_key: &ChannelKey,
        event: Event,
        id: Option<Arc<str>>,
        files: Vec<StoredFile>,
    ) -> Result<Accepted, Refused> {
        if self.is_crowded(&ChannelActorKey(channel_key.channel.clone())) {
            return Err(Refused::Busy { retry_after: RETRY_AFTER });
        }
        self.check_room_for(channel_key, &files).await?;
        let channel_key = channel_key.clone();
        let accept = |reply| Request::Accept(Accept { channel_key, at: None, event, id, files, reply });
        ask(&writer_ref(&self.context)?, accept).await
    }

    /// Checks that the files fit, together with those that the channel has.
    async fn check_room_for(&self, channel_key: &ChannelKey, files: &[StoredFile]) -> Result<(), Refused> {
        if files.is_empty() {
            return Ok(());
        }
        let most_mb = self.context.settings.storage.room_files_mb;
        let stored = Reader::new(&*self.context.store).files(channel_key, Seq::NONE, Seq(u64::MAX)).await;
        let stored: u64 = stored.map_err(WriteError::from)?.iter().map(|(.., record)| record.bytes).sum();
        let bytes = files.iter().fold(stored, |sum, file| sum + file.bytes.len() as u64);
        if bytes > u64::from(most_mb) << 20 { Err(Refused::FilesFull { most_mb }) } else { Ok(()) }
    }

    /// Whether the channel has too many accepted events that are not handled yet.
    pub fn is_crowded(&self, channel: &ChannelActorKey) -> bool {
        self.context.directory.waiting(channel) >= MAX_WAITING
    }

    pub const fn context(&self) -> &ActorContext {
        &self.context
    }

    /// Returns the companions that an utterance addresses, and whether the utterance is a stop phrase. Aliases that apply only to
    /// speech are included.
    pub fn resolve_speech(&self, channel_ref: &ChannelRef, speaker: &Author, text: &str) -> (Address, bool) {
        let (memberships, guild) = (&self.context.memberships, &channel_ref.guild);
        let names = memberships.names(guild);
        let sounds = memberships.sounds(&channel_ref.channel);
        let is_companion = |id: &str| memberships.is_in_guild(guild, id);
        let incoming = Incoming { sounds: sounds.as_ref(), is_spoken: true, ..Incoming::new(speaker, text) };
        let address = names.as_deref().map(|names| address::resolve(names, is_companion, &incoming)).unwrap_or_default();
        let names = names.as_deref().into_iter().chain(&sounds);
        (address, is_stop_phrase(text, names, self.context.settings.reply.all_stop_phrases()))
    }

    /// Classifies the words of a partial transcript.
    pub fn words_of_partial(&self, channel_ref: &ChannelRef, speaker: &Author, text: &str) -> Words {
        let (address, _) = self.resolve_speech(channel_ref, speaker, text);
        Words::of(text, Kind::Words, address.companions, &self.word_lists(channel_ref), self.is_name(channel_ref))
    }

    /// The word lists for the language of a channel.
    pub fn word_lists(&self, channel_ref: &ChannelRef) -> WordLists {
        let language = self.context.memberships.language(&channel_ref.channel);
        self.context.in_force().speech.word_lists(language.as_deref()).clone()
    }

    /// Whether an utterance begins with a stop word.
    pub fn stop_word(&self, channel_ref: &ChannelRef, text: &str, lists: &WordLists) -> Stop {
        Stop::of(text, lists, self.is_name(channel_ref))
    }

    /// Whether a spoken word is the name of a companion.
    fn is_name(&self, channel_ref: &ChannelRef) -> impl Fn(&str) -> bool + use<> {
        let names = self.context.memberships.names(&channel_ref.guild);
        let sounds = self.context.memberships.sounds(&channel_ref.channel);
        move |name| names.as_deref().into_iter().chain(&sounds).any(|names| names.owner(name).is_some())
    }

    /// Which voice notes in a channel have their words recognised. On the page a person is told by whom before recording one.
    pub fn voice_notes(&self, channel: &ChannelId) -> VoiceNotes {
        let ActorContext { memberships, settings, speech, platforms, .. } = &self.context;
        match memberships.voice_notes(channel) {
            _ if !speech.recognition().recognise_words() => VoiceNotes::NoRecogniser,
            Some(true) => VoiceNotes::All,
            Some(false) => VoiceNotes::Off,
            None if platforms.is_written_here(channel) => VoiceNotes::All,
            None if settings.speech.voice_notes => VoiceNotes::Addressed,
            None => VoiceNotes::Off,
        }
    }

    /// Whether the words of a new voice note are recognised. `None`: nobody asked for that.
    fn words_of_note(
        &self,
        ChannelKey { guild, channel }: &ChannelKey,
        from: &Author,
        address: &Address,
        said_at: Option<Moment>,
    ) -> Option<NoteWords> {
        let ActorContext { memberships, settings, clock, opt_outs, .. } = &self.context;
        // Its words would not be answered any more.
        let is_stale = said_at.is_some_and(|said_at| clock.now().since(said_at) > settings.gate.stale_after());
        if from.role != Role::Person || is_stale || opt_outs.holds(guild, &PersonId::from(&*from.id)) {
            return None;
        }
        let is_to_companion = !address.companions.is_empty() || !address.others && memberships.present(channel).len() == 1;
        match self.voice_notes(channel) {
            VoiceNotes::All => Some(NoteWords::Awaited),
            _ if !is_to_companion => None,
            VoiceNotes::Addressed => Some(NoteWords::Awaited),
            VoiceNotes::Off => Some(NoteWords::Missing { note: None, why: Untranscribed::Off }),
            VoiceNotes::NoRecogniser => Some(NoteWords::Missing { note: None, why: Untranscribed::NoRecogniser }),
        }
    }

    /// The message with the words of a voice note, or the message that takes the note's place without them. It has the addresses of the note, and
    /// those that are spoken in it.
    pub fn words_event(
        &self,
        channel_ref: &ChannelRef,
        note: &Recorded,
        transcript: Result<Transcript, Untranscribed>,
    ) -> Option<Event> {
        let Event::Said { message, reply_to, said_at, .. } = &note.event else { return None };
        let VoiceNote { ms, .. } = **message.voice_note.as_ref()?;
        // The recording stays with the note.
        let mut words = Message { id: None, voice_note: None, attachments: Vec::new(), ..message.clone() };
        let state = match transcript {
            Ok(Transcript { text, provider, confidence }) => {
                let (address, asks_to_stop) = self.resolve_speech(channel_ref, &words.from, &text);
                words.address.companions.extend(address.companions);
                words.address.companions.sort();
                words.address.companions.dedup();
                let standing = words.address.standing;
                words.address = words.address.by(standing);
                (words.text, words.asks_to_stop) = (text, asks_to_stop);
                NoteWords::Heard { note: note.seq, provider, confidence }
            }
            Err(why) => NoteWords::Missing { note: Some(note.seq), why },
        };
        words.voice_note = Some(Box::new(VoiceNote { ms, words: Some(state) }));
        let said_at = said_at.unwrap_or(note.at);
        let said_at = Some(said_at).filter(|said_at| self.context.clock.now().since(*said_at) > LATE);
        Some(Event::Said { message: words, reply_to: *reply_to, reply: None, said_at })
    }

    fn message_event(&self, channel_key: &ChannelKey, inbound: InboundMessage, replied: Option<Replied>) -> Option<Event> {
        let memberships = &self.context.memberships;
        let is_companion = |id: &str| memberships.is_in_guild(&channel_key.guild, id);
        let names = memberships.names(&channel_key.guild);
        let resolved = |mention| names.as_deref().map_or(mention, |names| address::resolve_mention(names, mention));
        let mentions: Vec<&str> = inbound.mentions.iter().map(|mention| resolved(&**mention)).collect();
        let present: Vec<CompanionId> =
            if inbound.to_all { memberships.present(&channel_key.channel).into_keys().collect() } else { Vec::new() };
        let addressing = Incoming {
            mentions: &mentions,
            reply_to: replied.as_ref().map(|replied| (&*replied.author, replied.role)),
            to_all_of: &present,
            is_spoken: inbound.modality == Modality::Voice,
            names_narrow: !channel_key.guild.is_direct(),
            ..Incoming::new(&inbound.from, inbound.own_words.as_ref().unwrap_or(&inbound.text))
        };
        if !address::admits(self.context.in_force().gate.foreign_bots, is_companion, &addressing) {
            return None;
        }
        let address = names.as_deref().map(|names| address::resolve(names, is_companion, &addressing)).unwrap_or_default();
        let address = address.by(inbound.standing);
        let said_at = inbound.said_at.filter(|said_at| self.context.clock.now().since(*said_at) > LATE);
        let asks_to_stop = inbound.kind.is_none()
            && inbound.from.role == Role::Person
            && is_stop_phrase(addressing.text, names.as_deref(), self.context.settings.reply.all_stop_phrases());
        let voice_note = inbound.voice_note.map(|length| {
            let words = self.words_of_note(channel_key, &inbound.from, &address, said_at);
            Box::new(VoiceNote { ms: length.as_millis().try_into().unwrap_or(u64::MAX), words })
        });
        let InboundMessage { id, from, text, modality, lull_endpoint, kind, sender, attachments, background, .. } = inbound;
        let (reply_to, quoted) = replied.map(|replied| (replied.seq, replied.quoted)).unwrap_or_default();
        let message = Message {
            id,
            sender,
            modality,
            lull_endpoint,
            asks_to_stop,
            address,
            kind,
            attachments,
            voice_note,
            background,
            quoted: quoted.map(Box::new),
            ..Message::new(from, text)
        };
        Some(Event::Said { message, reply_to, reply: None, said_at })
    }
}
