//! Searches the older messages of a room for words of the newest ones (docs/design/memory.md). The search index of a room stays
//! in memory while the room is in use.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Zoned;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::Instant;

use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::domain::memory::sensitive_topics;
use crate::domain::message::{Author, Message, Recalled, Role};
use crate::domain::note::Note;
use crate::domain::prompt::{Said, tokens};
use crate::domain::recall::words::{Word, WordReader, Words};
use crate::domain::recall::{Corpus, Found};
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Journal, Range, ReadError, Reader};
use crate::journal::record::{Searched, decode_searched};
use crate::journal::redaction::is_redacted;
use crate::ports::store::key::Key;
use crate::ports::store::{Store, Value};
use crate::settings::memory::Memory;

/// An index that was unused for this long is dropped by the next sweep. Sweeps are this far apart.
const KEPT: Duration = Duration::from_secs(60);
/// The number of events that are read per page, and of pages that are indexed at the same time.
const PAGE: usize = 1_024;
const PAGES_AT_ONCE: usize = 3;
/// A search runs on a blocking thread if the index has more bytes than this, or if more than one page is new.
const LARGE: usize = 256 << 10;
/// The estimated tokens of a message besides its text: name and punctuation.
const FRAME_TOKENS: usize = 8;
/// The number of matches that are read at the same time.
const AT_ONCE: usize = 8;
/// A lookup takes no further match once it has this many messages, neighbours included.
const MOST_READ: usize = 96;

/// The range of events that a lookup searches.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// Exclusive lower bound: the newest `clear`, or the last expired event.
    pub after: Seq,
    /// Exclusive upper bound.
    pub before: Seq,
    /// Notes of messages up to this one are not used: the newest `clear`.
    pub notes_after: Seq,
}

/// A question for which older messages are looked up.
pub struct Question<'a> {
    pub messages: &'a [Arc<Message>],
    /// Names of companions. They only address a companion, so they are not searched for.
    pub names: &'a [&'a str],
    /// The messages that were recalled for the previous answer, best match first.
    pub recalled: Vec<Seq>,
    /// The present, on the calendar of the room.
    pub now: Zoned,
    /// The people who take part, each with the name.
    pub people: BTreeMap<Arc<str>, Arc<str>>,
    /// Notes of other rooms.
    pub elsewhere: Vec<(Recalled, Arc<Note>)>,
    /// The events that are searched.
    pub stretch: Stretch,
}

/// The search indexes of rooms. Cheap to clone; all clones share them.
#[derive(Clone)]
pub struct Recall {
    words: Arc<RwLock<Arc<Words>>>,
    window: usize,
    most_bytes: usize,
    rooms: Arc<Mutex<Rooms>>,
    forgotten: Arc<AtomicU64>,
}

#[derive(Default)]
struct Rooms {
    known: HashMap<ChannelKey, Kept>,
    /// Whether the task that removes unused indexes is running.
    is_swept: bool,
}

/// The search index of one room.
struct Kept {
    index: Arc<AsyncMutex<Index>>,
    used: Instant,
    bytes: usize,
}

#[derive(Default)]
struct Index {
    corpus: Corpus,
    /// The newest event in the index.
    upto: Seq,
    /// The notes of the room, in the order of their corpus.
    notes: Vec<(Seq, Arc<Note>)>,
    of_notes: Corpus,
    /// The newest `clear`, as far as the notes are known.
    cleared: Option<Seq>,
}

/// What was found, the best first. Each matching message is followed by its neighbours.
#[derive(Clone, Debug, Default)]
pub struct Older {
    pub messages: Vec<Said>,
    pub notes: Vec<(Recalled, Arc<Note>)>,
    /// Notes about the people who take part: those made at a person's request first, then the newest.
    pub people: Vec<(Recalled, Arc<Note>)>,
}

impl Recall {
    pub fn new(settings: &Memory) -> Self {
        Self {
            words: Arc::new(RwLock::new(Arc::new(Words::new(&settings.algorithms())))),
            window: settings.recall_window,
            most_bytes: settings.cache_mb << 20,
            rooms: Arc::default(),
            forgotten: Arc::default(),
        }
    }

    /// Returns the messages and notes that have the most words in common with a question, best match first. Each matching message is
    /// followed by its neighbours. Nothing is found for a question without a topic. Messages are added until they have about
    /// `max_tokens` tokens in all. Messages whose author fails `is_heard` are left out, and so are notes that fail `is_usable`. The
    /// caller must hold the rewrite lock of the channel, so that nothing is erased in the meantime.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read.
    pub async fn like(
        &self,
        Question { messages, names, recalled, now, people, elsewhere, stretch }: Question<'_>,
        channel_key: &ChannelKey,
        store: &dyn Store,
        is_heard: impl Fn(&Author) -> bool,
        is_usable: impl Fn(&Note) -> bool,
        max_tokens: usize,
    ) -> Result<Older, ReadError> {
        let questions = messages.iter().map(|message| (&*message.from.name, &*message.text));
        let words = self.words();
        let mut query = words.query(questions.clone(), names, &now);
        let others = messages.iter().map(|message| &*message.from.name).chain(people.values().map(|name| &**name));
        let touched = Touched::new(questions.map(|(_, text)| text), names.iter().copied().chain(others), &words);
        query.before = Some(stretch.before);
        let journal = Reader::new(store).journal(channel_key).await?;
        let touched_by = words.clone();
        let found = self.search(channel_key, &journal, move |Index { corpus, notes, of_notes, .. }| {
            corpus.add_recalled(&recalled, &mut query, &words);
            let mut of_notes = Cow::Borrowed(of_notes);
            if !elsewhere.is_empty() {
                let all = of_notes.to_mut();
                let mut reader = words.reader();
                elsewhere.iter().for_each(|(_, note)| add_note(all, Seq::NONE, note, &mut reader));
            }
            let own = notes.iter().map(|(seq, note)| (Recalled::Here(*seq), note.clone()));
            let notes: Vec<_> = own.chain(elsewhere).collect();
            let found_notes: Vec<_> = of_notes.matches(&query, &words).into_iter().map(|index| notes[index].clone()).collect();
            let is_about_one = |note: &Note| {
                let about = note.about.as_ref().filter(|about| about.role == Role::Person && people.contains_key(&about.id));
                // Hearsay and sensitive notes are shown only if they match the query.
                about.is_some() && !note.is_hearsay() && sensitive_topics(&note.text).is_empty()
            };
            let mut about: Vec<_> = notes.iter().rev().filter(|(_, note)| is_about_one(note)).cloned().collect();
            about.sort_by_key(|(_, note)| (!note.asked, Reverse(note.said_at)));
            let own = notes.iter().filter(|(of, _)| of.here().is_some());
            let replaced: HashSet<Seq> = own.filter_map(|(_, note)| note.replaces).collect();
            let (mut passages, mut known) = (Vec::new(), HashSet::new());
            for Found { index, .. } in corpus.search(&query, &words) {
                let is_new = |seq: &Seq| *seq > stretch.after && *seq < stretch.before && known.insert(*seq);
                let passage = corpus.passage(index, &query, &words).filter_map(|at| corpus.seq(at)).filter(is_new);
                passages.push(passage.collect::<Vec<Seq>>());
                if known.len() >= MOST_READ {
                    break;
                }
            }
            (passages, found_notes, about, replaced)
        });
        let read = async |passage: Vec<Seq>| {
            let (Some(first), Some(last)) = (passage.iter().min(), passage.iter().max()) else {
                return Ok::<_, ReadError>(Vec::new());
            };
            let range =
                Range { after: Seq(first.0.saturating_sub(1)), before: Some(last.next()), limit: PAGE, newest_first: false };
            let said = journal.legible(range).await?.events.into_iter().filter_map(message_of);
            let mut said: Vec<Said> = said.filter(|said| passage.contains(&said.seq) && is_heard(&said.message.from)).collect();
            touched.keep(&mut said, passage.first().copied(), &touched_by);
            // The match itself comes first, as in the passage.
            said.sort_by_key(|said| passage.iter().position(|seq| *seq == said.seq));
            Ok(said)
        };
        let (passages, mut notes, mut people, replaced) = found.await?;
        // Excludes notes from before a `clear`.
        let is_within = |note: &Note| note.sources.iter().all(|source| *source > stretch.notes_after);
        let is_in_force = |(of, note): &(Recalled, Arc<Note>)| {
            of.here().is_none_or(|seq| !replaced.contains(&seq) && is_within(note)) && is_usable(note)
        };
        notes.retain(|one| is_in_force(one) && touched.has(&one.1.text, &one.1.said_by.name, &touched_by));
        people.retain(is_in_force);
        let mut passages = pin!(stream::iter(passages).map(read).buffered(AT_ONCE));
        let (mut used, mut messages) = (0, Vec::new());
        while used < max_tokens
            && let Some(said) = passages.try_next().await?
        {
            used += said.iter().map(|said| tokens(&said.message.text) + FRAME_TOKENS).sum::<usize>();
            messages.extend(said);
        }
        Ok(Older { messages, notes, people })
    }

    /// The notes of a room that are in force: not those that were replaced, and none from before its newest `clear`. The caller holds the rewrite lock of the
    /// room.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read.
    pub async fn notes(&self, channel_key: &ChannelKey, store: &dyn Store) -> Result<Vec<(Seq, Arc<Note>)>, ReadError> {
        let index = self.index(channel_key);
        let mut index = index.lock().await;
        index.read_notes(&Reader::new(store).journal(channel_key).await?, &self.words()).await?;
        self.count(channel_key, index.bytes());
        let replaced: HashSet<Seq> = index.notes.iter().filter_map(|(_, note)| note.replaces).collect();
        let is_in_force = |(seq, note): &&(Seq, Arc<Note>)| {
            !replaced.contains(seq) && note.sources.iter().all(|source| Some(*source) > index.cleared)
        };
        Ok(index.notes.iter().filter(is_in_force).cloned().collect())
    }

    /// The splitter of texts into words, with the languages that it can stem.
    pub fn words(&self) -> Arc<Words> {
        self.words.read().clone()
    }

    /// Stems the words of these languages from now on, and drops all indexes.
    pub fn use_languages(&self, settings: &Memory) {
        *self.words.write() = Arc::new(Words::new(&settings.algorithms()));
        self.rooms.lock().known.clear();
    }

    /// Drops the index of a room, because some of its messages were changed or erased.
    pub fn forget(&self, channel_key: &ChannelKey) {
        self.forgotten.fetch_add(1, Ordering::Release);
        self.rooms.lock().known.remove(channel_key);
    }

    /// The number of times that messages or notes were changed or erased, in any room.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Acquire)
    }

    async fn search<T: Send + 'static>(
        &self,
        channel_key: &ChannelKey,
        journal: &Journal<'_>,
        search: impl FnOnce(&Index) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let index = self.index(channel_key);
        let mut index = index.lock_owned().await;
        index.read_notes(journal, &self.words()).await?;
        let new = self.new_messages(&index, journal).await?;
        let (is_large, window) = (index.corpus.bytes() > LARGE || new.pages.len() > 1, self.window);
        let work = move || {
            new.add_to(&mut index, window);
            (search(&index), index.bytes())
        };
        let (found, bytes) = if is_large { finished(spawn_blocking(work)).await } else { work() };
        self.count(channel_key, bytes);
        Ok(found)
    }

    fn index(&self, channel_key: &ChannelKey) -> Arc<AsyncMutex<Index>> {
        let mut rooms = self.rooms.lock();
        let kept = rooms.known.entry(channel_key.clone()).or_insert_with(|| Kept {
            index: Arc::default(),
            used: Instant::now(),
            bytes: 0,
        });
        kept.used = Instant::now();
        kept.index.clone()
    }

    /// Records the size of a room's index. If the indexes together exceed the limit, drops the least recently used ones.
    fn count(&self, channel_key: &ChannelKey, bytes: usize) {
        let mut rooms = self.rooms.lock();
        if let Some(kept) = rooms.known.get_mut(channel_key) {
            (kept.bytes, kept.used) = (bytes, Instant::now());
        }
        let mut sum: usize = rooms.known.values().map(|kept| kept.bytes).sum();
        while sum > self.most_bytes
            && let Some((oldest, bytes)) =
                rooms.known.iter().min_by_key(|(_, kept)| kept.used).map(|(key, kept)| (key.clone(), kept.bytes))
        {
            rooms.known.remove(&oldest);
            sum -= bytes;
        }
        if !std::mem::replace(&mut rooms.is_swept, true) {
            tokio::spawn(sweep(self.rooms.clone()));
        }
    }

    /// Reads and indexes the messages since `index.upto`, and none before the newest `clear`, until there are `recall_window` of them. Several pages
    /// are indexed at the same time, while the next one is read.
    async fn new_messages(&self, index: &Index, journal: &Journal<'_>) -> Result<New, ReadError> {
        let mut new = New { pages: Vec::new(), upto: index.upto, begins_anew: false };
        let (mut indexing, mut next, mut count) = (VecDeque::new(), Some(None), 0);
        while !new.begins_anew {
            while let Some(before) = next.filter(|_| indexing.len() < PAGES_AT_ONCE) {
                let events = journal.stored(Range { after: index.upto, before, limit: PAGE, newest_first: true }).await?;
                next = (events.len() == PAGE).then(|| events.last().and_then(|(key, _)| key.last_number()).map(Seq));
                if events.is_empty() {
                    break;
                }
                let words = self.words();
                indexing.push_back(spawn_blocking(move || Page::new(&events, &words)));
            }
            let Some(page) = indexing.pop_front() else { break };
            let page = finished(page).await;
            count += page.corpus.len();
            new.upto = new.upto.max(page.newest);
            new.begins_anew = page.is_clear || count >= self.window;
            new.pages.push(page);
        }
        Ok(new)
    }
}

/// What a question touches. Something sensitive is shown only to a question that touches it.
struct Touched {
    sensitive: BTreeSet<&'static str>,
    topic: HashSet<Word>,
}

impl Touched {
    /// `names` are no words about a topic.
    fn new<'a>(texts: impl Iterator<Item = &'a str>, names: impl IntoIterator<Item = &'a str>, words: &Words) -> Self {
        let mut touched = Self { sensitive: BTreeSet::new(), topic: HashSet::new() };
        for text in texts {
            touched.sensitive.extend(sensitive_topics(text));
            touched.topic.extend(words.topic(text));
        }
        for name in names {
            touched.topic = &touched.topic - &words.topic(name);
        }
        touched
    }

    /// Whether a text that matches the question may be shown: it touches it by a sensitive topic, or by a word.
    fn has(&self, text: &str, author: &str, words: &Words) -> bool {
        let sensitive = sensitive_topics(text);
        let has_word = || (&words.topic(text) - &words.topic(author)).iter().any(|word| self.topic.contains(word));
        sensitive.is_empty() || !sensitive.is_disjoint(&self.sensitive) || has_word()
    }

    /// Leaves out of a passage what may not be shown. A neighbour of the match may be about a sensitive topic of the question or of the match.
    fn keep(&self, passage: &mut Vec<Said>, match_seq: Option<Seq>, words: &Words) {
        if passage.iter().all(|said| sensitive_topics(&said.message.text).is_empty()) {
            return;
        }
        let is_match = |said: &Said| Some(said.seq) == match_seq;
        passage.retain(|said| !is_match(said) || self.has(&said.message.text, &said.message.from.name, words));
        let matching = passage.iter().find(|said| is_match(said)).map(|said| sensitive_topics(&said.message.text));
        let touched: BTreeSet<&str> = self.sensitive.iter().copied().chain(matching.into_iter().flatten()).collect();
        passage.retain(|said| {
            let sensitive = sensitive_topics(&said.message.text);
            is_match(said) || sensitive.is_empty() || !sensitive.is_disjoint(&touched)
        });
    }
}

/// A page of messages, indexed.
struct Page {
    corpus: Corpus,
    newest: Seq,
    /// Whether the page has a `clear`. The corpus begins after it.
    is_clear: bool,
}

impl Page {
    /// Indexes the events of a page, which has the newest one first.
    fn new(events: &[(Key, Value)], words: &Words) -> Self {
        let (mut corpus, mut reader) = (Corpus::default(), words.reader());
        let (mut newest, mut is_clear, mut json) = (Seq::NONE, false, Vec::new());
        for (key, value) in events.iter().rev() {
            let Some(seq) = key.last_number().map(Seq) else { continue };
            newest = seq;
            match decode_searched(key, value, &mut json) {
                // Opt-outs are applied to the search results, not to the index, because people can opt in again.
                Ok(Searched::Words { at, name, text }) if !text.is_empty() => corpus.push(seq, at, &name, &text, &mut reader),
                Ok(Searched::Cleared) => (corpus, is_clear) = (Corpus::default(), true),
                Ok(Searched::Words { .. } | Searched::Other) | Err(_) => {}
            }
        }
        Self { corpus, newest, is_clear }
    }
}

/// Waits for a blocking task. A panic in the task is resumed in the caller, as if the work had run there.
async fn finished<T>(work: JoinHandle<T>) -> T {
    work.await.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

/// The new messages of a room, indexed.
struct New {
    /// The newest page first.
    pages: Vec<Page>,
    upto: Seq,
    /// Whether the old content of the index is dropped, because a `clear` or the window excludes it.
    begins_anew: bool,
}

impl New {
    fn add_to(self, index: &mut Index, window: usize) {
        if self.begins_anew {
            index.corpus = Corpus::default();
        }
        self.pages.into_iter().rev().for_each(|page| index.corpus.append(page.corpus));
        index.corpus.keep_newest(window);
        index.upto = self.upto;
    }
}

impl Index {
    /// Reads the notes that are new.
    async fn read_notes(&mut self, journal: &Journal<'_>, words: &Words) -> Result<(), ReadError> {
        let newest = self.notes.last().map_or(Seq::NONE, |(seq, _)| *seq);
        let (notes, cleared) = journal.notes_and_clear(newest).await?;
        self.cleared = self.cleared.max(cleared);
        let mut word_reader = words.reader();
        for (seq, note) in &notes {
            // The note's age is that of its newest source.
            let said = note.sources.last().copied().unwrap_or(*seq);
            add_note(&mut self.of_notes, said, note, &mut word_reader);
        }
        self.notes.extend(notes);
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.corpus.bytes() + self.of_notes.bytes()
    }
}

/// Adds a note to a corpus. The names of its author and of the one it is about count as part of the text.
fn add_note(corpus: &mut Corpus, seq: Seq, note: &Note, words: &mut WordReader<'_>) {
    let about = note.about.as_ref().filter(|_| note.is_hearsay()).map_or("", |about| &*about.name);
    corpus.push(seq, note.said_at, &format!("{} {about}", note.said_by.name), &note.text, words);
}

/// Drops indexes that were not used for a while. Ends when none are left.
async fn sweep(rooms: Arc<Mutex<Rooms>>) {
    loop {
        tokio::time::sleep(KEPT).await;
        let mut rooms = rooms.lock();
        rooms.known.retain(|_, kept| kept.used.elapsed() < KEPT);
        if rooms.known.is_empty() {
            rooms.known.shrink_to_fit();
            rooms.is_swept = false;
            return;
        }
    }
}

/// Returns the message of an event, unless it was deleted. A voice note whose words follow is none: the message with its words is.
pub fn message_of(recorded: Recorded) -> Option<Said> {
    let Recorded { seq, at, event: Event::Said { message, said_at, .. }, .. } = recorded else { return None };
    let at = said_at.unwrap_or(at).min(at);
    (!is_redacted(&message) && !message.awaits_words()).then(|| Said::new(seq, at, Arc::new(message)))
}
