//! Makes the side model take notes, in a task of its own, at the lowest priority (docs/design/memory.md).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use ractor::ActorStatus;

use super::channel_context::ChannelContext;
use super::traces;
use crate::actors::companion::history;
use crate::actors::erasure::deletion::erase_notes;
use crate::actors::messages::channel::{ChannelMessage, Taken};
use crate::actors::messages::companion::HistoryRange;
use crate::actors::messages::models::Outcome;
use crate::domain::event::NotesTaken;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::memory::{self, Batch};
use crate::domain::message::Role;
use crate::domain::note::{MOST_ABOUT, Note};
use crate::domain::priority::Priority;
use crate::domain::prompt::{self, Said};
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::journal::reader::Reader;
use crate::ports::language_model::{LazyRequest, ModelRole, NoAnswer, Request};

/// The maximum number of earlier notes in a prompt.
const MOST_KNOWN: usize = 30;

/// Requests notes about the events after one number and up to another. The result is [`ChannelMessage::NotesTaken`].
pub(super) fn take_notes(after: Seq, upto: Seq, channel: &ChannelContext) {
    let channel = channel.clone();
    tokio::spawn(async move {
        let permit = channel.context.pool.summary_permit(&channel.key.guild, channel.context.recorder.instruments()).await;
        // A channel that has stopped takes notes when it runs again.
        if channel.actor.get_status() >= ActorStatus::Stopping {
            return;
        }
        let range = HistoryRange { after, before: upto.next() };
        let taken = match permit {
            Some(_) => Box::pin(ask_for_notes(range, &channel)).await,
            None => None,
        };
        let (taken, outcome) = taken.unwrap_or_default();
        let _ = channel.actor.cast(ChannelMessage::NotesTaken { taken, outcome });
    });
}

/// What the prompt shows.
#[derive(Default)]
struct Shown {
    messages: Vec<Said>,
    known: Vec<(Seq, Arc<Note>)>,
    /// The names of people who turned notes off, or opted out.
    unnoted: Vec<Arc<str>>,
    /// The newest event that was read, and the number of messages up to it.
    upto: Seq,
    count: u64,
}

/// Requests notes about as many of the oldest messages as fit into the prompt. `None` if they cannot be read, or are being redacted.
async fn ask_for_notes(range: HistoryRange, channel: &ChannelContext) -> Option<(Option<Taken>, Option<Box<Outcome>>)> {
    let ChannelContext { key: channel_key, context, .. } = channel;
    let base = Request::new(ModelRole::Side, channel_key.guild.clone(), context.settings.prompt.max_side_answer_tokens);
    let words = context.pool.fitting(&context.settings.prompt, &base, 1);
    let Shown { messages, upto, count, .. } = read(&range, words.summary_tokens, channel).await?;
    if !messages.iter().any(|said| said.message.from.role == Role::Person) {
        let nothing = NotesTaken { upto, messages: count, made: 0, dropped: BTreeMap::new() };
        return Some((Some((Vec::new(), nothing)), None));
    }
    let shown = Arc::new(Mutex::new(Shown::default()));
    let request = LazyRequest::later(base.clone(), {
        let (channel, shown) = (channel.clone(), shown.clone());
        move || {
            let (channel, shown, range, base) = (channel.clone(), shown.clone(), range.clone(), base.clone());
            async move {
                let words = channel.context.pool.fitting(&channel.context.settings.prompt, &base, 1);
                let read = read(&range, words.summary_tokens, &channel).await?;
                let zone = words.zone_of(&channel.key.guild);
                let prompt = prompt::notes(&read.messages, &read.known, zone, &words);
                let newest = Line::newest_of(read.messages.iter().map(|said| &*said.message));
                *shown.lock() = read;
                Some(base.asking(prompt).with(QuestionContext { purpose: Purpose::Notes, newest }))
            }
        }
    });
    forget_oldest(channel).await;
    // While the journal is being redacted, the request does not occupy the model.
    drop(history::lock(context, channel_key).await?);
    let outcome = context.pool.answer(request.clone(), Priority::Summary, context.pool.deadline(ModelRole::Side), None).await;
    let Shown { messages, known, unnoted, upto, count } = std::mem::take(&mut *shown.lock());
    traces::record_call(None, &request.newest(), &outcome, channel);
    let companions: Vec<CompanionId> = context.memberships.present(&channel_key.channel).into_keys().collect();
    let words = context.recall.words();
    let in_force = context.in_force();
    let zone = in_force.prompt.zone_of(&channel_key.guild);
    let batch = Batch { messages: &messages, known: &known, unnoted: &unnoted, companions: &companions, words: &words, zone };
    let (notes, dropped) = match &outcome.result {
        Ok(answer) => memory::read(&answer.text(), &batch),
        // The same messages would be refused again.
        Err(NoAnswer::Filtered { .. }) => (Vec::new(), BTreeMap::new()),
        Err(_) => return Some((None, Some(Box::new(outcome)))),
    };
    let taken = NotesTaken { upto, messages: count, made: 0, dropped };
    Some((Some((notes, taken)), Some(Box::new(outcome))))
}

/// The messages to take notes from, and earlier notes by their authors. Excludes messages of bots, and of people who turned notes off.
async fn read(range: &HistoryRange, prompt_tokens: usize, channel: &ChannelContext) -> Option<Shown> {
    let ChannelContext { key: channel_key, context, .. } = channel;
    let _lock = history::lock(context, channel_key).await?;
    // A guest in the room may read the notes in answers. Messages from before the guest's invitation are read in a call of their own.
    let hidden = channel.hidden_upto();
    let is_hidden = range.after < hidden;
    let before = if is_hidden { range.before.min(hidden.next()) } else { range.before };
    let range = &HistoryRange { after: range.after, before };
    // Half of the prompt. The rest is for the frame of each message, the earlier notes and the instructions.
    let (mut messages, upto) = history::read_oldest(context, channel_key, range, prompt_tokens / 2).await?;
    let count = messages.len() as u64;
    // Nothing that a tool answered from outside becomes a note (docs/design/tools.md X-13).
    let is_from_outside = |said: &Said| said.message.calls.iter().any(|call| call.is_external);
    messages.retain(|said| said.message.from.role != Role::Bot && !is_from_outside(said));
    let is_unnoted = |said: &mut Said| !context.author_may_be_noted(&channel_key.guild, &said.message.from);
    let unnoted = messages.extract_if(.., is_unnoted).map(|said| said.message.from.name.clone()).collect();
    let known = Reader::new(&*context.store).notes(channel_key, Seq::NONE).await.ok()?;
    let is_by_speaker = |note: &Note| messages.iter().any(|said| said.message.from.id == note.said_by.id);
    let mut known: Vec<_> = known.into_iter().filter(|(_, note)| is_by_speaker(note)).collect();
    known.retain(|(_, note)| is_hidden || note.sources.iter().all(|source| *source > hidden));
    known.drain(..known.len().saturating_sub(MOST_KNOWN));
    Some(Shown { messages, known, unnoted, upto, count })
}

/// Erases the oldest notes about each subject that has more than [`MOST_ABOUT`].
async fn forget_oldest(channel: &ChannelContext) {
    let ChannelContext { key: channel_key, context, .. } = channel;
    let Ok(notes) = Reader::new(&*context.store).notes(channel_key, Seq::NONE).await else { return };
    let mut about: BTreeMap<Option<(Role, Arc<str>)>, usize> = BTreeMap::new();
    let mut extra = Vec::new();
    for (seq, note) in notes.iter().rev() {
        let count = about.entry(note.about.as_ref().map(|about| (about.role, about.id.clone()))).or_default();
        *count += 1;
        if *count > MOST_ABOUT {
            extra.push(*seq);
        }
    }
    if !extra.is_empty()
        && let Err(error) = erase_notes(context, channel_key, |seq, _| extra.contains(&seq)).await
    {
        tracing::warn!(channel = %channel.shown(), %error, "old notes could not be erased");
    }
}
