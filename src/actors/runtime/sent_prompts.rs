//! The prompts of the newest statements as they were sent, in memory only. Nothing of them is stored.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::domain::id::{GuildId, Ticket};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::messages::{PromptMessage, PromptText};
use crate::ports::language_model::{Request, Role};

/// The most prompts of a room.
const MOST_OF_ROOM: usize = 10;
/// The most bytes of all prompts.
const MOST_BYTES: usize = 16 << 20;
/// The age from which a prompt is dropped.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// The number of times that words were erased when a prompt was built. It is kept with the request.
#[derive(Clone, Copy, PartialEq)]
pub struct Edition(u64);

struct Kept {
    channel_key: ChannelKey,
    ticket: Ticket,
    prompt: PromptText,
    bytes: usize,
}

#[derive(Default)]
struct Prompts {
    /// Oldest first.
    kept: VecDeque<Kept>,
    erased: u64,
}

impl Prompts {
    /// Drops the prompts that were kept for long enough, and the oldest ones over the limit of bytes.
    fn shrink(&mut self, now: Moment) {
        let mut bytes: usize = self.kept.iter().map(|one| one.bytes).sum();
        while let Some(oldest) = self.kept.front().filter(|one| bytes > MOST_BYTES || now.since(one.prompt.at.0) >= KEPT) {
            bytes -= oldest.bytes;
            self.kept.pop_front();
        }
    }
}

/// Cheap to clone; all clones share the prompts.
#[derive(Clone, Default)]
pub struct SentPrompts(Arc<Mutex<Prompts>>);

impl SentPrompts {
    /// Taken while a prompt is built, under the rewrite lock of its room.
    pub fn edition(&self) -> Edition {
        Edition(self.0.lock().erased)
    }

    /// Keeps the prompt of a statement, unless words were erased since it was built.
    pub fn keep(&self, channel_key: &ChannelKey, ticket: Ticket, request: &Request, now: Moment) {
        let mut prompts = self.0.lock();
        if request.extensions.get() != Some(&Edition(prompts.erased)) {
            return;
        }
        let messages = request.messages.iter().map(|message| {
            let role = match message.role {
                Role::Tool { .. } => Role::User.as_str(),
                _ => message.role.as_str(),
            };
            PromptMessage { role: role.into(), text: Arc::from(&*message.words()) }
        });
        let prompt = PromptText { at: now.into(), model: request.model.to_string().into(), messages: messages.collect() };
        let bytes = prompt.messages.iter().map(|message| message.text.len()).sum();
        let mut of_room = (0..prompts.kept.len()).filter(|index| prompts.kept[*index].channel_key == *channel_key);
        if let (Some(oldest), true) = (of_room.next(), of_room.count() + 1 >= MOST_OF_ROOM) {
            prompts.kept.remove(oldest);
        }
        prompts.kept.push_back(Kept { channel_key: channel_key.clone(), ticket, prompt, bytes });
        prompts.shrink(now);
    }

    pub fn get(&self, channel_key: &ChannelKey, ticket: Ticket, now: Moment) -> Option<PromptText> {
        let prompts = self.0.lock();
        let found = prompts.kept.iter().rfind(|one| one.channel_key == *channel_key && one.ticket == ticket)?;
        (now.since(found.prompt.at.0) < KEPT).then(|| found.prompt.clone())
    }

    /// Drops the prompts of a room, because words of it are erased.
    pub fn forget(&self, channel_key: &ChannelKey) {
        self.drop_where(|of| of == channel_key);
    }

    /// Drops the prompts that were kept for long enough.
    pub fn expire(&self, now: Moment) {
        self.0.lock().shrink(now);
    }

    /// Drops the prompts of a guild, because words in it are erased or a person has opted out.
    pub fn forget_guild(&self, guild: &GuildId) {
        self.drop_where(|of| of.guild == *guild);
    }

    fn drop_where(&self, is_dropped: impl Fn(&ChannelKey) -> bool) {
        let mut prompts = self.0.lock();
        prompts.erased += 1;
        prompts.kept.retain(|one| !is_dropped(&one.channel_key));
    }
}
