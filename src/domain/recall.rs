//! Recall: full-text search in the older messages of a room (docs/design/memory.md). Pure: texts in, message numbers out.

#[cfg(test)]
mod tests;
pub mod words;

use std::collections::HashMap;

use super::id::Seq;
use words::{Word, WordReader};

/// BM25 parameters with their usual values: the saturation of repeated words (k1), and the penalty for long messages (b).
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.75;
/// The share of the better neighbour's score that is added to a message. An answer rarely repeats the words of its question.
const NEIGHBOUR: f32 = 0.5;

/// The number of bits of a word that are compared before the word itself.
const LAST_BITS: usize = 10;

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
    /// The end of its words in `Corpus::words`. They begin at the end of the previous message's words.
    end: u32,
}

/// A search result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The index in the corpus.
    pub index: usize,
    pub seq: Seq,
    pub score: f32,
}

impl Corpus {
    /// Adds the next message. The speaker's name counts as part of the text.
    pub fn push(&mut self, seq: Seq, speaker: &str, text: &str, words: &mut WordReader<'_>) {
        words.read(speaker, &mut self.words);
        words.read(text, &mut self.words);
        self.messages.push(Entry { seq, end: u32::try_from(self.words.len()).unwrap_or(u32::MAX) });
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

    /// All messages that contain one of these words, or whose neighbour does, best first. With equal scores, the newer one comes
    /// first.
    pub fn search(&self, query: &[Word]) -> Vec<Found> {
        let own = self.scores(query);
        let at = |index: Option<usize>| index.and_then(|index| own.get(index)).copied().unwrap_or_default();
        let mut found: Vec<Found> = (0..own.len())
            .map(|index| {
                let neighbour = at(index.checked_sub(1)).max(at(Some(index + 1)));
                Found { index, seq: self.messages[index].seq, score: own[index] + NEIGHBOUR * neighbour }
            })
            .filter(|found| found.score > 0.0)
            .collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.index.cmp(&a.index)));
        found
    }

    /// The BM25 score of each message, without neighbours.
    pub fn scores(&self, query: &[Word]) -> Vec<f32> {
        // The index of each word of the query.
        let mut terms: HashMap<Word, usize> = HashMap::new();
        for word in query {
            let next = terms.len();
            terms.entry(*word).or_insert(next);
        }
        // Most words are not in the query. A comparison of their last bits shows that fastest.
        let mut may_be = [false; 1 << LAST_BITS];
        query.iter().for_each(|word| may_be[last_bits(*word)] = true);
        let mut counts: Vec<(u32, u32, f32)> = Vec::new();
        let mut found_in = vec![0_u32; terms.len()];
        // The place where each word of the query is counted. Places before `of_message` belong to earlier messages.
        let mut places = vec![usize::MAX; terms.len()];
        let mut begin = 0;
        for (index, entry) in self.messages.iter().enumerate() {
            let of_message = counts.len();
            for word in &self.words[begin..entry.end as usize] {
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
        let all = self.messages.len() as f32;
        let average = (self.words.len() as f32 / all.max(1.0)).max(1.0);
        let weights: Vec<f32> =
            found_in.iter().map(|found| (1.0 + (all - *found as f32 + 0.5) / (*found as f32 + 0.5)).ln()).collect();
        let mut scores = vec![0.0; self.messages.len()];
        for (index, term, count) in counts {
            let index = index as usize;
            let begin = index.checked_sub(1).map_or(0, |before| self.messages[before].end);
            let length = (self.messages[index].end - begin) as f32;
            let damped = count + SATURATION * (1.0 - LENGTH + LENGTH * length / average);
            scores[index] += weights[term as usize] * count * (SATURATION + 1.0) / damped;
        }
        scores
    }
}
