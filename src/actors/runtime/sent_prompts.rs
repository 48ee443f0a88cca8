//! The prompts of the newest statements as they were sent, in memory only. Nothing of them is stored.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::domain::id::{GuildId, Ticket};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{Request, Role};

/// The most prompts of a room.
const MOST_OF_ROOM: usize = 10;
/// The most bytes of all prompts.
const MOST_BYTES: usize = 16 << 20;
/// The age from which a prompt is dropped.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// The number of times that words were erased when a prompt was built. It is kept with the request.
#[derive(Clone, Copy)]
pub struct Edition(u64);

/// A prompt as it was sent.
#[derive(Clone, Debug)]
pub struct SentPrompt {
    pub at: Moment,
    /// The name of the model in the settings.
    pub model: Arc<str>,
    /// The messages, each with its role. Pictures are left out.
    pub messages: Vec<(&'static str, Arc<str>)>,
}

struct Kept {
    channel_key: ChannelKey,
    ticket: Ticket,
    prompt: SentPrompt,
}

impl Kept {
    fn bytes(&self) -> usize {
        self.prompt.messages.iter().map(|(_, text)| text.len()).sum()
    }
}

/// The prompts, oldest first. Cheap to clone; all clones share them.
#[derive(Clone, Default)]
pub struct SentPrompts {
    kept: Arc<Mutex<VecDeque<Kept>>>,
    erased: Arc<AtomicU64>,
}

impl SentPrompts {
    /// Taken while a prompt is built, under the rewrite lock of its room.
    pub fn edition(&self) -> Edition {
        Edition(self.erased.load(Ordering::Acquire))
    }

    /// Keeps the prompt of a statement, unless words were erased since it was built.
    pub fn keep(&self, channel_key: &ChannelKey, ticket: Ticket, request: &Request, now: Moment) {
        let mut kept = self.kept.lock();
        if request.extensions.get::<Edition>().is_none_or(|edition| edition.0 != self.edition().0) {
            return;
        }
        let messages = request.messages.iter().map(|message| {
            let role = match message.role {
                Role::System => "system",
                Role::User | Role::Tool { .. } => "user",
                Role::Assistant { .. } => "assistant",
            };
            (role, Arc::from(&*message.words()))
        });
        let prompt = SentPrompt { at: now, model: request.model.to_string().into(), messages: messages.collect() };
        kept.push_back(Kept { channel_key: channel_key.clone(), ticket, prompt });
        kept.retain(|one| now.since(one.prompt.at) < KEPT);
        let of_room = kept.iter().filter(|one| one.channel_key == *channel_key).count();
        if of_room > MOST_OF_ROOM
            && let Some(oldest) = kept.iter().position(|one| one.channel_key == *channel_key)
        {
            kept.remove(oldest);
        }
        let mut bytes: usize = kept.iter().map(Kept::bytes).sum();
        while bytes > MOST_BYTES
            && let Some(oldest) = kept.pop_front()
        {
            bytes -= oldest.bytes();
        }
    }

    pub fn get(&self, channel_key: &ChannelKey, ticket: Ticket, now: Moment) -> Option<SentPrompt> {
        let kept = self.kept.lock();
        let found = kept.iter().rfind(|one| one.channel_key == *channel_key && one.ticket == ticket)?;
        (now.since(found.prompt.at) < KEPT).then(|| found.prompt.clone())
    }

    /// Drops the prompts of a room, because words of it are erased.
    pub fn forget(&self, channel_key: &ChannelKey) {
        self.drop_where(|of| of == channel_key);
    }

    /// Drops the prompts that were kept for long enough.
    pub fn expire(&self, now: Moment) {
        self.kept.lock().retain(|one| now.since(one.prompt.at) < KEPT);
    }

    /// Drops the prompts of a guild, because words in it are erased or a person has opted out.
    pub fn forget_guild(&self, guild: &GuildId) {
        self.drop_where(|of| of.guild == *guild);
    }

    fn drop_where(&self, is_dropped: impl Fn(&ChannelKey) -> bool) {
        self.erased.fetch_add(1, Ordering::Release);
        self.kept.lock().retain(|one| !is_dropped(&one.channel_key));
    }
}
