//! Maps a position in a reply's audio to its text: which words were heard, and from where playback resumes (docs/design/voice.md ).
//!
//! Positions count from the reply's first sample. They depend only on the audio that was sent: pauses and repeats do not move them.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unicode_normalization::char::is_combining_mark;

use super::super::names::is_unspaced;
use super::pronounced::Pronounced;

/// The pace that is assumed while the duration of a sentence is unknown, in characters per second.
const CHARS_PER_SEC: u64 = 15;
/// How far playback steps back when it resumes, before it looks for the beginning of a word.
const STEP_BACK: Duration = Duration::from_millis(300);

/// The times of one word, counted from the sentence's first sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordTime {
    /// The byte offset of the word's end in the text.
    pub text_end: usize,
    pub start: Duration,
    pub end: Duration,
}

/// The sentences of a reply, how much audio of each was sent, and how far playback has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    sentences: Vec<Sentence>,
    /// The furthest position that was played (P).
    played: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sentence {
    text: Arc<str>,
    /// The times of the first words, ascending. Empty if the provider reports no word times: then times are estimated in proportion to the
    /// characters.
    words: Vec<WordTime>,
    sent: Duration,
    progress: Progress,
}

/// The playback progress of one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played<'a> {
    pub played: Duration,
    pub heard: &'a str,
    /// Whether the sentence will not be played any further.
    pub is_over: bool,
    /// Whether the synthesis of the sentence stalled, so that the rest was dropped.
    pub is_dropped: bool,
}

/// Whether a sentence's audio is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Progress {
    /// More audio may arrive.
    Open,
    /// All audio was sent, so the duration is known.
    Whole,
    /// The rest of the audio will not arrive.
    Dropped,
}

impl Script {
    /// Adds a sentence. The texts of the sentences are joined without a separator. Word times that do not fit the text are discarded.
    pub fn sentence(&mut self, text: impl Into<Arc<str>>, words: Vec<WordTime>) {
        let text = text.into();
        let words = if fits(&words, &text) { words } else { Vec::new() };
        self.sentences.push(Sentence { text, words, sent: Duration::ZERO, progress: Progress::Open });
    }

    /// Adds the times of the next words of a sentence. They are discarded if they do not fit the text and the times before them. First word times are
    /// also discarded if the sentence has already begun to play: the heard text never shrinks.
    pub fn words(&mut self, sentence: usize, words: &[WordTime]) {
        let starts = self.with_starts().nth(sentence);
        let is_begun = starts.is_some_and(|(start, sentence)| start < self.played && !sentence.sent.is_zero());
        let Some(sentence) = self.sentences.get_mut(sentence).filter(|of| !of.words.is_empty() || !is_begun) else { return };
        let all = [&sentence.words, words].concat();
        if fits(&all, &sentence.text) {
            sentence.words = all;
        }
    }

    /// Counts more audio of a sentence as sent. Ignored if the sentence is unknown, dropped or whole, or if a later sentence has audio already: audio
    /// arrives in the order of the sentences.
    pub fn audio(&mut self, sentence: usize, length: Duration) {
        if self.sentences.iter().skip(sentence.saturating_add(1)).any(|later| !later.sent.is_zero()) {
            return;
        }
        if let Some(sentence) = self.sentences.get_mut(sentence).filter(|sentence| sentence.progress == Progress::Open) {
            sentence.sent = sentence.sent.saturating_add(length);
        }
    }

    pub fn whole(&mut self, sentence: usize) {
        if let Some(sentence) = self.sentences.get_mut(sentence).filter(|sentence| sentence.progress == Progress::Open) {
            sentence.progress = Progress::Whole;
        }
    }

    /// Drops the rest of the first open sentence, because its synthesis stalls (docs/design/voice.md A-35). Returns its index.
    pub fn drop_stalled(&mut self) -> Option<usize> {
        let stalled = self.sentences.iter().position(|sentence| sentence.progress == Progress::Open)?;
        self.sentences[stalled].progress = Progress::Dropped;
        Some(stalled)
    }

    /// No more audio arrives: an open sentence with audio becomes whole, one without audio is dropped.
    pub fn finish(&mut self) {
        for sentence in self.sentences.iter_mut().filter(|sentence| sentence.progress == Progress::Open) {
            sentence.progress = if sentence.sent.is_zero() { Progress::Dropped } else { Progress::Whole };
        }
    }

    /// Records the playback position. The position is limited to the audio that was sent, and never moves back (docs/design/voice.md A-29). Returns
    /// the newly heard text.
    pub fn played(&mut self, position: Duration) -> String {
        let before = self.heard().len();
        self.played = position.min(self.sent()).max(self.played);
        // The sentences did not change, so the text heard before is a prefix of the text heard now.
        self.heard().get(before..).unwrap_or_default().to_owned()
    }

    pub fn sent(&self) -> Duration {
        self.sentences.iter().fold(Duration::ZERO, |sum, sentence| sum.saturating_add(sentence.sent))
    }

    /// The furthest position that was played.
    pub fn position(&self) -> Duration {
        self.played
    }

    pub fn is_played(&self) -> bool {
        self.played == self.sent()
    }

    /// The number of sentences that have begun to play.
    pub fn begun(&self) -> usize {
        self.with_starts().filter(|(start, sentence)| *start < self.played && !sentence.sent.is_zero()).count()
    }

    pub fn text(&self) -> String {
        self.sentences.iter().map(|sentence| &*sentence.text).collect()
    }

    /// The heard text (docs/design/voice.md A-30): the words of each sentence that end at or before the playback position.
    pub fn heard(&self) -> String {
        let is_begun = |(start, _): &(Duration, &Sentence)| *start <= self.played && !self.played.is_zero();
        let heard =
            |(start, sentence): (Duration, &'_ Sentence)| sentence.heard((self.played - start).min(sentence.sent)).to_owned();
        self.with_starts().take_while(is_begun).map(heard).collect()
    }

    /// The text that has no audio: the rest of the last sentence with audio, and all sentences after it.
    pub fn unspoken_end(&self) -> String {
        let last = self.sentences.iter().rposition(|sentence| !sentence.sent.is_zero()).unwrap_or(0);
        let unspoken = |sentence: &Sentence| sentence.text[sentence.heard(sentence.sent).len()..].to_owned();
        self.sentences.iter().skip(last).map(unspoken).collect()
    }

    /// The text that was not heard: the rest of the last sentence that began to play, and all sentences after it.
    pub fn unheard_end(&self) -> String {
        let is_begun = |(start, sentence): (Duration, &Sentence)| start < self.played && !sentence.sent.is_zero();
        let begun: Vec<_> = self.with_starts().map(is_begun).collect();
        let unheard = |(start, sentence): (Duration, &Sentence)| {
            let played = self.played.checked_sub(start).map(|played| played.min(sentence.sent));
            sentence.text[played.map_or(0, |played| sentence.heard(played).len())..].to_owned()
        };
        let last = begun.iter().rposition(|is_begun| *is_begun).unwrap_or(0);
        self.with_starts().skip(last).map(unheard).collect()
    }

    /// The position from which playback resumes (docs/design/voice.md A-31): the beginning of the last word, in this sentence or the one before, that
    /// begins at least 0.3 s before the playback position. If there is no such word, the beginning of this sentence.
    pub fn resume_from(&self) -> Duration {
        let latest = self.played.checked_sub(STEP_BACK);
        let is_begun = |(start, sentence): &(Duration, &Sentence)| *start < self.played && !sentence.sent.is_zero();
        let begun: Vec<_> = self.with_starts().filter(is_begun).collect();
        let newest = &begun[begun.len().saturating_sub(2)..];
        // Words without audio were not played.
        let begins = |(start, sentence): &(Duration, &Sentence)| {
            let (start, sent) = (*start, sentence.sent);
            sentence.words().into_iter().filter(move |word| word.start < sent).map(move |word| start.saturating_add(word.start))
        };
        let words = newest.iter().flat_map(begins);
        let word = latest.and_then(|latest| words.filter(|begin| *begin <= latest).max());
        word.or(newest.last().map(|(start, _)| *start)).unwrap_or(Duration::ZERO).min(self.played)
    }

    /// The index of the sentence that contains a position, and the offset of the position within that sentence.
    pub fn locate(&self, position: Duration) -> Option<(usize, Duration)> {
        let holds = |(_, (start, sentence)): &(usize, (Duration, &Sentence))| position < start.saturating_add(sentence.sent);
        let (number, (start, _)) = self.with_starts().enumerate().find(holds)?;
        Some((number, position.saturating_sub(start)))
    }

    pub fn sentence_text(&self, sentence: usize) -> Option<&Arc<str>> {
        self.sentences.get(sentence).map(|sentence| &sentence.text)
    }

    pub fn progress(&self) -> impl Iterator<Item = Played<'_>> {
        self.with_starts().map(|(start, sentence)| {
            let played = self.played.saturating_sub(start).min(sentence.sent);
            let is_over = sentence.progress != Progress::Open && played == sentence.sent;
            let heard = if self.played.is_zero() { "" } else { sentence.heard(played) };
            Played { played, heard, is_over, is_dropped: sentence.progress == Progress::Dropped }
        })
    }

    /// The sentences, each with its start position.
    fn with_starts(&self) -> impl Iterator<Item = (Duration, &Sentence)> {
        self.sentences.iter().scan(Duration::ZERO, |next, sentence| {
            let start = *next;
            *next = next.saturating_add(sentence.sent);
            Some((start, sentence))
        })
    }
}

impl Sentence {
    /// The text up to the last word that ends within the first `position` of the sentence.
    fn heard(&self, position: Duration) -> &str {
        if self.progress == Progress::Whole && position >= self.sent {
            return &self.text;
        }
        let is_heard = |word: &&WordTime| word.end <= position && !position.is_zero();
        let end = self.words().iter().filter(is_heard).map(|word| word.text_end).max();
        &self.text[..end.unwrap_or(0)]
    }

    /// The words with their times, from the provider or else estimated in proportion to the characters (docs/design/voice.md A-30). Words without a
    /// time from the provider are added once no more times can arrive.
    fn words(&self) -> Vec<WordTime> {
        let (timed, since) = self.words.last().map_or((0, Duration::ZERO), |last| (last.text_end, last.end));
        if !self.words.is_empty() && self.progress == Progress::Open {
            return self.words.clone();
        }
        // Only spoken characters take time.
        let mut rest = Pronounced::plain(self.text.get(timed..).unwrap_or_default());
        let chars = rest.text.chars().count() as u64;
        let duration = self.duration(Pronounced::plain(&self.text).text.chars().count() as u64).saturating_sub(since);
        let time = |char: u64| {
            // The quotient is at most the duration.
            let micros = duration.as_micros() * u128::from(char) / u128::from(chars.max(1));
            since.saturating_add(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
        };
        let estimated = |word: WordRange| WordTime { text_end: word.text_end, start: time(word.first), end: time(word.last) };
        let estimated = word_ranges(&rest.text).map(estimated).collect();
        let shown = rest.shown(estimated).into_iter().map(|word| WordTime { text_end: timed + word.text_end, ..word });
        self.words.iter().copied().chain(shown).collect()
    }

    /// The duration of the sentence: the length of the sent audio if the sentence is whole, else an estimate.
    fn duration(&self, chars: u64) -> Duration {
        match self.progress {
            Progress::Whole => self.sent,
            Progress::Open | Progress::Dropped => Duration::from_micros(chars * 1_000_000 / CHARS_PER_SEC).max(self.sent),
        }
    }
}

/// The position of a word in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordRange {
    /// The number of characters before the word.
    pub first: u64,
    /// The number of characters up to the end of the word.
    pub last: u64,
    /// The byte offset of the word's end.
    pub text_end: usize,
}

/// Splits a text into words: at white space, and in scripts without spaces at each character. Marks and punctuation belong to the word before them.
/// The rest of the text after a word splits into the same following words.
pub fn word_ranges(text: &str) -> impl Iterator<Item = WordRange> {
    let mut chars = (0_u64..).zip(text.char_indices()).peekable();
    std::iter::from_fn(move || {
        let (number, (at, c)) = chars.find(|(_, (_, c))| !c.is_whitespace())?;
        let mut word = WordRange { first: number, last: number + 1, text_end: at + c.len_utf8() };
        let mut before = c;
        while let Some((number, (at, c))) = chars.next_if(|(_, (_, c))| !c.is_whitespace() && !begins_word(before, *c)) {
            (word.last, word.text_end, before) = (number + 1, at + c.len_utf8(), c);
        }
        Some(word)
    })
}

/// Whether a character begins a word without white space before it.
fn begins_word(before: char, c: char) -> bool {
    (is_unspaced(c) || is_unspaced(before)) && c.is_alphanumeric() && !is_combining_mark(c)
}

/// Whether word times are ascending, and end at character boundaries of the text.
fn fits(words: &[WordTime], text: &str) -> bool {
    let is_ordered =
        words.is_sorted_by(|one, next| one.text_end < next.text_end && one.start <= next.start && one.end <= next.end);
    is_ordered && words.iter().all(|word| word.start <= word.end && word.text_end > 0 && text.is_char_boundary(word.text_end))
}

#[cfg(test)]
mod tests;
