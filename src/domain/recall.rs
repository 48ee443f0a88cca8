//! Recall: full-text search in the older messages of a room (docs/design/memory.md). Pure: texts in, message numbers out.

mod days;
#[cfg(test)]
mod tests;
mod topic;
pub mod words;

use std::collections::{HashMap, HashSet};

use super::id::Seq;
use super::moment::Moment;
pub use topic::{Query, language_of};
use topic::{REFERENCE, Term};
use words::{Word, WordReader, Words};

/// BM25 parameters with their usual values: the saturation of repeated words (k1), and the penalty for long messages (b).
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.75;
/// The share of the better neighbour's score that is added to a message. An answer rarely repeats the words of its question.
const NEIGHBOUR: f32 = 0.5;
/// The weight of a variant of a word.
const VARIANT: f32 = 0.7;
/// The number of unknown words whose variants are looked up.
const MOST_VARIED: usize = 8;
/// The share of its score that a message keeps if it only asks.
const ASKS: f32 = 0.15;
/// Messages with a smaller share of the best score are left out.
const LEAST: f32 = 0.2;
/// The number of recalled messages whose words are added to a query.
const MOST_REFERENCES: usize = 4;
/// The words about a topic by which a message counts in full for a day that is named.
const FULL: usize = 8;

/// The number of bits of a word that are compared before the word itself.
const LAST_BITS: usize = 16;

const fn last_bits(word: Word) -> usize {
    word as usize & ((1 << LAST_BITS) - 1)
}

/// The words of messages, as hashes.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    messages: Vec<Entry>,
    /// The words of all messages, one message after the other.
    words: Vec<Word>,
}

/// A message of a corpus.
#[derive(Clone, Copy, Debug)]
struct Entry {
    seq: Seq,
    at: Moment,
    /// The end of its words in `Corpus::words`. They begin at the end of the previous message's words.
    end: u32,
    /// The number of its first words that are the speaker's name.
    name: u16,
    /// Whether it only asks.
    asks: bool,
}

/// A search result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The index in the corpus.
    pub index: usize,
    pub score: f32,
}

impl Corpus {
    /// Adds the next message. The speaker's name counts as part of the text.
    pub fn push(&mut self, seq: Seq, at: Moment, speaker: &str, text: &str, words: &mut WordReader<'_>) {
        let begin = self.words.len();
        words.read(speaker, &mut self.words);
        let name = u16::try_from(self.words.len() - begin).unwrap_or(u16::MAX);
        words.read(text, &mut self.words);
        let end = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        self.messages.push(Entry { seq, at, end, name, asks: only_asks(text) });
    }

    /// Appends the messages of another corpus.
    pub fn append(&mut self, other: Self) {
        let before = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        self.words.extend(other.words);
        let moved = other.messages.into_iter().map(|entry| Entry { end: entry.end.saturating_add(before), ..entry });
        self.messages.extend(moved);
    }

    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The number of a message.
    pub fn seq(&self, index: usize) -> Option<Seq> {
        self.messages.get(index).map(|entry| entry.seq)
    }

    /// Removes the oldest messages so that `most` are left, once there are more than an eighth too many.
    pub fn keep_newest(&mut self, most: usize) {
        // The tolerance avoids moving all messages with every new one.
        let Some(extra) = self.messages.len().checked_sub(most + most / 8).filter(|extra| *extra > 0) else { return };
        let extra = extra + most / 8;
        let gone = self.messages[extra - 1].end;
        self.messages.drain(..extra);
        self.words.drain(..gone as usize);
        self.messages.iter_mut().for_each(|entry| entry.end -= gone);
    }

    /// The memory use, in bytes.
    pub fn bytes(&self) -> usize {
        self.messages.capacity() * size_of::<Entry>() + self.words.capacity() * size_of::<Word>()
    }

    /// The words of a message's text about a topic.
    fn topic(&self, index: usize, words: &Words) -> impl Iterator<Item = Word> {
        let begin = index.checked_sub(1).map_or(0, |before| self.messages[before].end) as usize;
        let Entry { end, name, .. } = self.messages[index];
        let text = &self.words[(begin + usize::from(name)).min(end as usize)..end as usize];
        text.iter().copied().filter(|word| !words.without_topic.contains(word))
    }

    /// A message, and its neighbours that say something new.
    pub fn passage(&self, index: usize, query: &Query, words: &Words) -> impl Iterator<Item = usize> {
        let neighbours = [index.checked_sub(1), Some(index + 1).filter(|next| *next < self.len())].into_iter().flatten();
        [index].into_iter().chain(neighbours.filter(move |at| self.beyond(*at, query, words).next().is_some()))
    }

    /// The words of a message about a topic that the query does not have. Without any, the message says nothing new.
    fn beyond(&self, index: usize, query: &Query, words: &Words) -> impl Iterator<Item = Word> {
        self.topic(index, words).filter(|word| !query.words.contains(word))
    }

    /// Adds the topical words of the messages that were recalled for the previous answer, if the query refers to them.
    pub fn add_recalled(&self, recalled: &[Seq], query: &mut Query, words: &Words) {
        if query.refers_back() {
            let indexes = recalled
                .iter()
                .take(MOST_REFERENCES)
                .filter_map(|seq| self.messages.binary_search_by_key(seq, |entry| entry.seq).ok());
            let recalled: Vec<Word> = indexes.flat_map(|index| self.topic(index, words)).collect();
            recalled.into_iter().for_each(|word| query.add(vec![word], REFERENCE, ""));
        }
    }

    /// Messages with words of the query, or whose neighbour has them, best first. With equal scores, the newer one comes first. Messages that say
    /// nothing beyond the query or beyond a better message are left out. Nothing is found without a topic.
    pub fn search<'a>(&'a self, query: &'a Query, words: &'a Words) -> impl Iterator<Item = Found> + 'a {
        let own = if query.has_topic() { self.scores(query, words) } else { Vec::new() };
        let at = |index: Option<usize>| index.and_then(|index| own.get(index)).copied().unwrap_or_default();
        let mut found: Vec<Found> = (0..own.len())
            .map(|index| {
                let neighbour = at(index.checked_sub(1)).max(at(Some(index + 1)));
                let asks = if self.messages[index].asks { ASKS } else { 1.0 };
                Found { index, score: (own[index] + NEIGHBOUR * neighbour) * asks }
            })
            .filter(|found| found.score > 0.0)
            .collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.index.cmp(&a.index)));
        let least = found.first().map_or(0.0, |best| best.score * LEAST);
        found.truncate(found.partition_point(|found| found.score >= least));
        let mut known = HashSet::new();
        found.into_iter().filter(move |found| {
            let mut new: Vec<Word> = self.beyond(found.index, query, words).collect();
            new.sort_unstable();
            !new.is_empty() && known.insert(new)
        })
    }

    /// The messages with words of the query, best first. Their neighbours do not count.
    pub fn matches(&self, query: &Query, words: &Words) -> Vec<usize> {
        let scores = if query.has_topic() { self.scores(query, words) } else { Vec::new() };
        let least = scores.iter().copied().fold(0.0, f32::max) * LEAST;
        let mut found: Vec<usize> = (0..scores.len()).filter(|index| scores[*index] > 0.0 && scores[*index] >= least).collect();
        found.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]).then(other.cmp(one)));
        found
    }

    /// The BM25 score of each message, without neighbours.
    pub fn scores(&self, query: &Query, words: &Words) -> Vec<f32> {
        let mut scores = vec![0.0; self.messages.len()];
        let forms: Vec<(&[Word], f32)> = query.terms.iter().map(|term| (&*term.forms, term.weight)).collect();
        let found_in = self.add_scores(&forms, query.before, &mut scores);
        let missing = query.terms.iter().zip(found_in).filter(|(_, found)| *found == 0).map(|(term, _)| term).take(MOST_VARIED);
        let variants: Vec<_> = missing.map(|term: &Term| (words.variants(term), term.weight * VARIANT)).collect();
        if variants.iter().any(|(forms, _)| !forms.is_empty()) {
            let variants: Vec<_> = variants.iter().map(|(forms, weight)| (&**forms, *weight)).collect();
            self.add_scores(&variants, query.before, &mut scores);
        }
        for day in &query.days {
            let of_day = || (0..self.messages.len()).filter(|index| day.contains(&self.messages[*index].at));
            let weight = self.rarity(of_day().count() as u32);
            for index in of_day() {
                let topic = self.topic(index, words).take(FULL).count();
                scores[index] += weight * (1.0 + topic as f32 / FULL as f32) / 2.0;
            }
        }
        scores
    }

    /// The weight of what occurs in so many messages.
    fn rarity(&self, found_in: u32) -> f32 {
        let (all, found) = (self.messages.len() as f32, found_in as f32);
        (1.0 + (all - found + 0.5) / (found + 0.5)).ln()
    }

    /// Adds the BM25 score of each message for terms, each with its forms and its weight. Returns in how many messages each term occurs.
    fn add_scores(&self, query: &[(&[Word], f32)], before: Option<Seq>, scores: &mut [f32]) -> Vec<u32> {
        let mut terms: HashMap<Word, usize> = HashMap::new();
        // Most words are not in the query. A comparison of their last bits shows that fastest.
        let mut may_be = vec![false; 1 << LAST_BITS];
        for (term, (forms, _)) in query.iter().enumerate() {
            for word in *forms {
                terms.entry(*word).or_insert(term);
                may_be[last_bits(*word)] = true;
            }
        }
        let mut counts: Vec<(u32, u32, f32)> = Vec::new();
        let mut found_in = vec![0_u32; query.len()];
        // The place where each term is counted. Places before `of_message` belong to earlier messages.
        let mut places = vec![usize::MAX; query.len()];
        let mut begin = 0;
        for (index, entry) in self.messages.iter().enumerate() {
            let of_message = counts.len();
            let is_older = before.is_none_or(|before| entry.seq < before);
            for word in self.words[begin..entry.end as usize].iter().filter(|_| is_older) {
                let Some(term) = Some(word).filter(|word| may_be[last_bits(**word)]).and_then(|word| terms.get(word)) else {
                    continue;
                };
                let place = places[*term];
                if place != usize::MAX && place >= of_message {
                    counts[place].2 += 1.0;
                } else {
                    places[*term] = counts.len();
                    found_in[*term] += 1;
                    counts.push((index as u32, *term as u32, 1.0));
                }
            }
            begin = entry.end as usize;
        }
        let average = (self.words.len() as f32 / (self.messages.len() as f32).max(1.0)).max(1.0);
        let weights: Vec<f32> = found_in.iter().zip(query).map(|(found, (_, weight))| self.rarity(*found) * weight).collect();
        for (index, term, count) in counts {
            let index = index as usize;
            let begin = index.checked_sub(1).map_or(0, |before| self.messages[before].end);
            let length = (self.messages[index].end - begin) as f32;
            let damped = count + SATURATION * (1.0 - LENGTH + LENGTH * length / average);
            scores[index] += weights[term as usize] * count * (SATURATION + 1.0) / damped;
        }
        found_in
    }
}

/// Whether a text is one question and nothing else.
fn only_asks(text: &str) -> bool {
    let text = text.trim_end();
    text.ends_with(['?', '？', '؟']) && !text.contains(['.', '!', '。', '！', '\n'])
}
