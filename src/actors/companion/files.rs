//! Reads the pictures and text files that a statement's prompt shows: those of messages that address the companion, and of the messages to which
//! these reply. In a room of the page with one companion, pictures without words are to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::history;
use crate::actors::recall::message_of;
use crate::actors::runtime::context::ActorContext;
use crate::cards::picture::Kind as Format;
use crate::cards::posted::{posted, still};
use crate::domain::attachment::{Attachment, Kind, MOST_FILES, MOST_TEXT_BYTES, with_lines};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Message, Role};
use crate::domain::prompt::{self, PromptInput, Said};
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::Reader;
use crate::ports::inbound_events::StoredFile;
use crate::ports::language_model::{Part, Request};

/// The time limit for all files of a prompt. Erasing messages of the channel waits meanwhile.
const WITHIN: Duration = Duration::from_secs(8);

/// The contents of files that were read for earlier prompts of the same statement. `None`: it cannot be read.
pub type Read = Arc<Mutex<BTreeMap<(Seq, Arc<str>), Option<StoredFile>>>>;

/// The files for a prompt.
#[derive(Default)]
pub struct Files {
    /// The line that describes each picture, and the picture.
    pictures: Vec<(String, StoredFile)>,
    /// The name of each text file, and its text.
    texts: Vec<(Arc<str>, String)>,
    /// The messages of these files.
    messages: Vec<Seq>,
}

impl Files {
    /// Reads the files, the newest first. Pictures are read only if the model is sent them; those that are hidden as spoilers never are. The caller
    /// holds the lock of the history.
    pub async fn read(
        input: &PromptInput,
        companion: &CompanionId,
        with_pictures: bool,
        is_shown: impl Fn(Seq) -> bool + Send,
        read: &Read,
        (context, channel_key): (&ActorContext, &ChannelKey),
    ) -> Self {
        let mut files = Self::default();
        let mut messages = BTreeMap::new();
        // On other platforms people may share pictures with each other alone.
        let is_only = context.platforms.of(&channel_key.channel).is_none()
            && context.memberships.get(&channel_key.channel).is_some_and(|membership| membership.companions.len() == 1);
        let is_wordless = |said: &&Said| {
            let Message { from, text, attachments, .. } = &*said.message;
            is_only && from.role == Role::Person && !attachments.is_empty() && *text == with_lines("", attachments)
        };
        let recent = input.recent.iter().rev().take_while(|said| *said.message.from.id != *companion.as_str());
        let to_it = input.buffer.iter().filter(|said| said.message.address.includes(companion) || is_wordless(said));
        for Said { seq, message, reply_to, .. } in recent.filter(is_wordless).chain(to_it) {
            messages.insert(*seq, message.clone());
            if let Some(replied) = reply_to.filter(|seq| is_shown(*seq)) {
                messages.extend(replied_message(replied, context, channel_key).await.map(|message| (replied, message)));
            }
        }
        let (mut tried, deadline) = (0, Instant::now() + WITHIN);
        for (seq, message) in messages.into_iter().rev() {
            for attachment in &message.attachments {
                let is_picture = attachment.kind == Kind::Image && with_pictures && !attachment.is_spoiler;
                // Without vision nothing is fetched from a platform.
                let is_text = is_text(attachment) && (with_pictures || attachment.stored().is_some());
                if tried == MOST_FILES || !is_picture && !is_text {
                    continue;
                }
                tried += 1;
                let known = read.lock().get(&(seq, attachment.id.clone())).cloned();
                let content = match known {
                    Some(content) => content,
                    None => {
                        let content = content(seq, &message, attachment, context, channel_key);
                        let content = timeout_at(deadline, content).await.ok().flatten();
                        read.lock().insert((seq, attachment.id.clone()), content.clone());
                        content
                    }
                };
                let Some(content) = content else { continue };
                if is_picture {
                    files.pictures.push((attachment.line(), content));
                } else if let Ok(text) = std::str::from_utf8(&content.bytes) {
                    files.texts.push((attachment.name.clone(), text.to_owned()));
                } else {
                    continue;
                }
                files.messages.push(seq);
            }
        }
        files
    }

    /// The part of the prompt with the text files, in at most a quarter of so many tokens.
    pub fn text(&self, tokens: usize) -> String {
        let texts: Vec<_> = self.texts.iter().map(|(name, text)| (&**name, &**text)).collect();
        prompt::files(&texts, tokens / 4)
    }

    /// Adds the text files and the pictures to the end of a prompt.
    pub fn add_to(self, request: Request, text: String) -> Request {
        let Self { pictures, mut messages, .. } = self;
        messages.sort_unstable();
        messages.dedup();
        let mut request = Request { files_of: messages, ..request };
        for (name, size) in [("files", prompt::tokens(&text)), ("pictures", pictures.len())] {
            if size > 0 {
                request.sizes.push((name, size));
            }
        }
        let text = Some(text).filter(|text| !text.is_empty()).map(|text| Part::Text(format!("\n\n{text}")));
        let pictures =
            pictures.into_iter().flat_map(|(line, picture)| [Part::Text(format!("\n{line}")), Part::Image(picture.into())]);
        request.ending_with(text.into_iter().chain(pictures))
    }
}

/// Whether a file may be text that fits. Platforms give any name and media type.
fn is_text(attachment: &Attachment) -> bool {
    let endings = [".txt", ".md", ".csv", ".json", ".log", ".toml", ".yaml", ".yml"];
    let name = attachment.name.to_lowercase();
    let is_text = attachment.media_type.starts_with("text/") || endings.iter().any(|ending| name.ends_with(ending));
    attachment.kind == Kind::File && is_text && attachment.bytes <= MOST_TEXT_BYTES as u64
}

/// The message that another one replies to. `None` if it cannot be read, or if its author opted out.
async fn replied_message(seq: Seq, context: &ActorContext, channel_key: &ChannelKey) -> Option<Arc<Message>> {
    let recorded = Reader::new(&*context.store).event(channel_key, seq).await.ok()??;
    let message = message_of(recorded)?.message;
    history::is_heard(&message.from, context, &channel_key.guild).then_some(message)
}

/// The content of a file of a message. `None` if it cannot be read.
pub async fn content(
    seq: Seq,
    message: &Message,
    attachment: &Attachment,
    context: &ActorContext,
    channel_key: &ChannelKey,
) -> Option<StoredFile> {
    let file = match attachment.stored() {
        Some(file) => Reader::new(&*context.store).file(channel_key, seq, file).await.ok()??,
        None => {
            let platform = context.platforms.of(&channel_key.channel)?;
            let read = platform.file(&channel_key.channel, message.id.as_deref()?, Some(attachment)).await;
            let bytes = read.inspect_err(|error| tracing::debug!(%error, "a file of a message cannot be read")).ok()?;
            StoredFile { media_type: attachment.media_type.clone(), bytes: bytes.into() }
        }
    };
    if attachment.kind != Kind::Image {
        return Some(file);
    }
    let (is_stored, bytes) = (attachment.stored().is_some(), file.bytes.to_vec());
    // Decoding takes long. A picture of a platform is checked here, and one in the store was checked before.
    let picture = move || {
        if is_stored {
            return still(Format::of(&bytes)?, bytes);
        }
        let posted = posted(bytes).ok()?;
        still(posted.kind, posted.bytes)
    };
    let (kind, bytes) = tokio::task::spawn_blocking(picture).await.ok()??;
    Some(StoredFile { media_type: kind.media_type().into(), bytes: bytes.into() })
}
