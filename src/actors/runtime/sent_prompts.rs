//! The prompts of the newest statements as they were sent, in memory only. Nothing of them is stored.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
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

/// The prompts, oldest first.
#[derive(Default)]
struct Prompts {
    kept: VecDeque<Kept>,
    /// The number of those of each room.
    of_room: HashMap<ChannelKey, usize>,
    bytes: usize,
}

impl Prompts {
    fn push(&mut self, one: Kept) {
        self.bytes += one.bytes();
        *self.of_room.entry(one.channel_key.clone()).or_default() += 1;
        self.kept.push_back(one);
    }

    fn remove(&mut self, index: usize) {
        let Some(one) = self.kept.remove(index) else { return };
        self.bytes -= one.bytes();
        if let Entry::Occupied(mut count) = self.of_room.entry(one.channel_key) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Drops the prompts that were kept for long enough, and the oldest ones over the limit of bytes.
    fn shrink(&mut self, now: Moment) {
        while self.kept.front().is_some_and(|one| self.bytes > MOST_BYTES || now.since(one.prompt.at) >= KEPT) {
            self.remove(0);
        }
    }

    fn drop_where(&mut self, is_dropped: impl Fn(&ChannelKey) -> bool) {
        for index in (0..self.kept.len()).rev() {
            if is_dropped(&self.kept[index].channel_key) {
                self.remove(index);
            }
        }
    }
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

/// Cheap to clone; all clones share the prompts.
#[derive(Clone, Default)]
pub struct SentPrompts {
    prompts: Arc<Mutex<Prompts>>,
    erased: Arc<AtomicU64>,
}

impl SentPrompts {
    /// Taken while a prompt is built, under the rewrite lock of its room.
    pub fn edition(&self) -> Edition {
        Edition(self.erased.load(Ordering::Acquire))
    }

    /// Keeps the prompt of a statement, unless words were erased since it was built.
    pub fn keep(&self, channel_key: &ChannelKey, ticket: Ticket, request: &Request, now: Moment) {
        let mut prompts = self.prompts.lock();
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
        prompts.push(Kept { channel_key: channel_key.clone(), ticket, prompt });
        if prompts.of_room.get(channel_key).is_some_and(|count| *count > MOST_OF_ROOM)
            && let Some(oldest) = prompts.kept.iter().position(|one| one.channel_key == *channel_key)
        {
            prompts.remove(oldest);
        }
        prompts.shrink(now);
    }

    pub fn get(&self, channel_key: &ChannelKey, ticket: Ticket, now: Moment) -> Option<SentPrompt> {
        let prompts = self.prompts.lock();
        let found = prompts.kept.iter().rfind(|one| one.channel_key == *channel_key && one.ticket == ticket)?;
        (now.since(found.prompt.at) < KEPT).then(|| found.prompt.clone())
    }

    /// Drops the prompts of a room, because words of it are erased.
    pub fn forget(&self, channel_key: &ChannelKey) {
        self.drop_where(|of| of == channel_key);
    }

    /// Drops the prompts that were kept for long enough.
    pub fn expire(&self, now: Moment) {
        self.prompts.lock().shrink(now);
    }

    /// Drops the prompts of a guild, because words in it are erased or a person has opted out.
    pub fn forget_guild(&self, guild: &GuildId) {
        self.drop_where(|of| of.guild == *guild);
    }

    fn drop_where(&self, is_dropped: impl Fn(&ChannelKey) -> bool) {
        self.erased.fetch_add(1, Ordering::Release);
        self.prompts.lock().drop_where(is_dropped);
    }
}
