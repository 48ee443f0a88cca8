//! Builds queries from questions: their topical words, without function words and small talk.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use jiff::Zoned;
use jiff::civil::Date;

use super::days::named;
use super::words::{Word, Words, each_word, folded};
use crate::id::Seq;
use crate::moment::Moment;

/// The weights of a query's terms: small talk, the author's name in a question about the author, and words from the previous answer's recalled
/// messages in a question that refers to them. All other terms weigh 1.
const TALK: f32 = 0.5;
const AUTHOR: f32 = 0.3;
pub(super) const REFERENCE: f32 = 0.4;
/// A question with more topical words than this gets none from the previous answer's recalled messages.
const FEW: usize = 1;
/// The maximum number of a query's terms.
const MOST_TERMS: usize = 100;
/// A word with fewer letters has no variants.
const SHORTEST_VARIED: usize = 4;

/// The lists of a language in `words.txt`, which explains them.
pub(super) struct Lists {
    /// The name of the language's stemming algorithm, or `spaceless`.
    language: &'static str,
    /// The entries of each list, with their names.
    lists: HashMap<&'static str, Vec<Vec<&'static str>>>,
    /// Function words, and words of small talk.
    pub(super) words: HashSet<&'static str>,
    pub(super) talk: HashSet<&'static str>,
}

pub(super) static LISTS: LazyLock<Vec<Lists>> = LazyLock::new(|| {
    let sections = include_str!("words.txt").split("\n[").skip(1).filter_map(|section| section.split_once(']'));
    let entries = |words: &'static str| words.split(' ').map(|names| names.split('/').collect::<Vec<_>>()).collect::<Vec<_>>();
    let lists = |(language, lines): (_, &'static str)| {
        let lists: HashMap<_, _> =
            lines.lines().filter_map(|line| line.split_once(": ")).map(|(kind, words)| (kind, entries(words))).collect();
        let set = |kind| lists.get(kind).into_iter().flatten().flatten().copied().collect();
        Lists { language, words: set("words"), talk: set("talk"), lists }
    };
    sections.map(lists).collect()
});

impl Lists {
    /// The place of the entry in a list that has a name with this property.
    pub(super) fn place(&self, list: &str, is_named: impl Fn(&str) -> bool) -> Option<usize> {
        self.lists.get(list)?.iter().position(|names| names.iter().any(|name| is_named(name)))
    }
}

/// A word as it is written, in lower case.
pub(super) struct Surface {
    word: String,
    /// Without accents.
    pub(super) plain: String,
    /// Whether it is a run of a script without spaces.
    pub(super) is_spaceless: bool,
}

fn surface(text: &str) -> Vec<Surface> {
    let mut words = Vec::new();
    each_word(text, |word, is_spaceless| {
        let plain = folded(word);
        words.push(Surface { word: word.to_owned(), plain: plain.trim_end_matches("'s").to_owned(), is_spaceless });
    });
    words
}

/// The language in which a text seems to be written: that of most of its function words. `None` if none is clearly ahead.
pub fn language_of(text: &str) -> Option<&'static str> {
    let words = surface(text);
    let is_of = |lists: &Lists, word: &Surface| !word.is_spaceless && lists.words.contains(&*word.plain);
    let counts = LISTS.iter().map(|lists| (words.iter().filter(|word| is_of(lists, word)).count(), lists.language));
    let mut counts: Vec<_> = counts.collect();
    counts.sort_unstable();
    match counts[..] {
        [.., (second, _), (most, language)] if most > second + second / 4 => Some(language),
        _ => None,
    }
}

/// A query: weighted words, and days.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pub(super) terms: Vec<Term>,
    /// The days that are named.
    pub(super) days: Vec<Range<Moment>>,
    /// Exclusive upper bound of the searched messages. It excludes the question itself.
    pub before: Option<Seq>,
    /// All words of the question, also those without a topic.
    pub(super) words: HashSet<Word>,
    /// Whether the question contains a pronoun.
    has_pronoun: bool,
}

/// A word of a query.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) forms: Vec<Word>,
    pub(super) weight: f32,
    /// The word itself. If it does not occur, its variants are searched for. Empty: it has no variants.
    text: Box<str>,
}

impl Words {
    /// The query for questions, each with its author, which are asked `now`. The names in `addressed` do not count.
    pub fn query<'a>(&self, questions: impl IntoIterator<Item = (&'a str, &'a str)>, addressed: &[&str], now: &Zoned) -> Query {
        let mut query = Query::default();
        let names: HashSet<String> = addressed.iter().flat_map(|name| surface(name)).map(|name| name.plain).collect();
        let mut days = BTreeSet::new();
        for (author, text) in questions {
            let words = surface(text);
            let lists = self.lists_of(&words);
            self.add(author, &words, &names, &lists, &mut query);
            days.extend(named(&words, &lists, now.date()));
        }
        let micros = |date: Date| u64::try_from(date.to_zoned(now.time_zone().clone()).ok()?.timestamp().as_microsecond()).ok();
        let moment = |date| micros(date).map(Moment::from_micros);
        query.days = days.into_iter().filter_map(|day| Some(moment(day)?..moment(day.tomorrow().ok()?)?)).collect();
        query
    }

    /// The lists of the configured languages, and of those in which a text seems to be written.
    fn lists_of(&self, words: &[Surface]) -> Vec<&'static Lists> {
        let is_of = |lists: &Lists, word: &Surface| match word.is_spaceless {
            true => lists.language == "spaceless",
            false => lists.words.contains(&*word.plain) || lists.talk.contains(&*word.plain),
        };
        let count = |lists: &Lists| words.iter().filter(|word| is_of(lists, word)).count();
        let most = LISTS.iter().map(count).max().filter(|most| *most > 0);
        let is_used = |lists: &&Lists| self.languages.contains(&lists.language) || Some(count(lists)) == most;
        LISTS.iter().filter(is_used).collect()
    }

    fn add(&self, author: &str, words: &[Surface], names: &HashSet<String>, lists: &[&Lists], query: &mut Query) {
        let has = |list, word: &str| lists.iter().any(|lists| lists.place(list, |name| name == word).is_some());
        let mut reader = self.reader();
        for Surface { word, plain, is_spaceless } in words {
            let mut forms = Vec::new();
            reader.forms_of(word, *is_spaceless, &mut forms);
            query.words.extend(&forms);
            query.has_pronoun |= has("pronouns", plain);
            if names.contains(plain) || lists.iter().any(|lists| lists.words.contains(&**plain)) {
                continue;
            }
            let is_talk = is_laughter(plain) || lists.iter().any(|lists| lists.talk.contains(&**plain));
            let weight = if is_talk { TALK } else { 1.0 };
            match is_spaceless {
                // Each pair of characters counts by itself.
                true => forms.into_iter().for_each(|form| query.add(vec![form], weight, "")),
                false => query.add(forms, weight, plain),
            }
        }
        if words.iter().any(|word| has("author", &word.plain)) {
            let mut forms = Vec::new();
            reader.read(author, &mut forms);
            forms.into_iter().for_each(|form| query.add(vec![form], AUTHOR, ""));
        }
    }

    /// The forms of the words that differ from a word by one letter, or by two neighbouring letters that are exchanged. The first letter stays, because
    /// it is rarely wrong.
    pub(super) fn variants(&self, term: &Term) -> Vec<Word> {
        let letters: Vec<char> = term.text.chars().collect();
        if letters.len() < SHORTEST_VARIED || letters.iter().any(|letter| !letter.is_alphabetic()) {
            return Vec::new();
        }
        let alphabet = if letters[0].is_ascii() { 'a'..='z' } else { 'а'..='я' };
        let (mut reader, mut forms) = (self.reader(), Vec::new());
        let mut add = |parts: [&[char]; 3]| reader.forms_of(&parts.concat().iter().collect::<String>(), false, &mut forms);
        for at in 1..=letters.len() {
            let (before, after) = letters.split_at(at);
            for letter in alphabet.clone().map(Some).chain([None]) {
                add([before, letter.as_slice(), after]);
                add([before, letter.as_slice(), after.get(1..).unwrap_or_default()]);
            }
            if let [first, second, rest @ ..] = after {
                add([before, &[*second, *first], rest]);
            }
        }
        forms
    }
}

impl Query {
    /// Whether the query has words about a topic, or a day.
    pub(super) fn has_topic(&self) -> bool {
        !self.days.is_empty() || self.topics() > 0
    }

    /// Whether the question refers to the previous answer: it contains a pronoun, and few words of its own.
    pub(super) fn refers_back(&self) -> bool {
        self.has_pronoun && self.topics() <= FEW
    }

    /// The number of words about a topic.
    fn topics(&self) -> usize {
        self.terms.iter().filter(|term| term.weight != TALK && term.weight != AUTHOR).count()
    }

    pub(super) fn add(&mut self, forms: Vec<Word>, weight: f32, text: &str) {
        if self.terms.len() < MOST_TERMS && !self.terms.iter().any(|known| known.forms == forms) {
            self.terms.push(Term { forms, weight, text: text.into() });
        }
    }
}

/// Whether a word is written laughter, a drawn-out sound such as "hmm", or a smiley.
fn is_laughter(word: &str) -> bool {
    let letters: HashSet<char> = word.chars().collect();
    let is_smiley = |char| matches!(char, '❤' | '👀'..='👐' | '😀'..='🙏' | '🤌'..='🤯' | '🥰'..='🥺');
    let is_drawn_out = letters.len() == 1 || letters.len() == 2 && word.contains(['h', 'j', 'k', 'x', 'w']);
    word.contains(is_smiley) || word.chars().count() > 2 && is_drawn_out && !word.contains(|char: char| char.is_ascii_digit())
}
