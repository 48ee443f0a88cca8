//! What a question is about: its words without those that say nothing about a topic.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use jiff::Zoned;

use super::days::named;
use super::words::{Word, Words, each_word, folded, pairs};
use crate::moment::Moment;

/// The weights of words of talk without a topic, of the author's name if the author asks about itself, and of words of what was recalled before if
/// the question refers to that. Other words have the weight 1.
const TALK: f32 = 0.5;
const AUTHOR: f32 = 0.3;
const BEFORE: f32 = 0.4;
/// A question with more words about its topic needs no others.
const FEW: usize = 3;
/// A word with fewer letters has no variants.
const SHORTEST_VARIED: usize = 4;

type List = HashSet<&'static str>;

/// The lists of a language in `words.txt`, which explains them.
#[derive(Default)]
pub(super) struct Lists {
    /// The name of the language's stemming algorithm, or `spaceless`.
    pub(super) language: &'static str,
    words: List,
    talk: List,
    author: List,
    before: List,
    /// The names of the days before today, by distance.
    pub(super) relative: [List; 3],
    pub(super) weekdays: Vec<Vec<&'static str>>,
    pub(super) months: Vec<Vec<&'static str>>,
    pub(super) days: List,
    pub(super) ago: List,
    pub(super) numbers: Vec<&'static str>,
}

pub(super) static LISTS: LazyLock<Vec<Lists>> = LazyLock::new(|| {
    let sections = include_str!("words.txt").split("\n[").skip(1).filter_map(|section| section.split_once(']'));
    sections.map(|(language, lines)| lists(language, lines)).collect()
});

fn lists(language: &'static str, lines: &'static str) -> Lists {
    let of =
        |kind: &str| lines.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(": ")).unwrap_or_default().split(' ');
    let set = |kind: &str| of(kind).collect::<List>();
    let ordered = |kind: &str| of(kind).map(|names| names.split('/').collect()).collect();
    Lists {
        language,
        words: set("words"),
        talk: set("talk"),
        author: set("author"),
        before: set("before"),
        relative: ["day-0", "day-1", "day-2"].map(set),
        weekdays: ordered("weekdays"),
        months: ordered("months"),
        days: set("days"),
        ago: set("ago"),
        numbers: of("numbers").collect(),
    }
}

impl Lists {
    /// The words without a topic.
    pub(super) fn without_topic(&self) -> impl Iterator<Item = &'static str> {
        self.words.iter().chain(&self.talk).copied()
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

/// What is searched for.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pub(super) terms: Vec<Term>,
    /// The days that are named.
    pub(super) days: Vec<Range<Moment>>,
    /// All words of the question, also those without a topic.
    pub(super) words: HashSet<Word>,
    /// Whether the question refers to what was named before.
    refers_back: bool,
}

/// A word of a query.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) forms: Vec<Word>,
    pub(super) weight: f32,
    /// The word itself, of which variants are searched for if it does not occur. Empty if it has none.
    text: Box<str>,
}

impl Term {
    const fn has_topic(&self) -> bool {
        self.weight != TALK && self.weight != AUTHOR
    }
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
        let moment = |date: jiff::civil::Date| date.to_zoned(now.time_zone().clone()).ok().and_then(|day| Moment::of(&day));
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
        let is_used =
            |lists: &&Lists| self.languages.iter().any(|language| *language == lists.language) || Some(count(lists)) == most;
        LISTS.iter().filter(is_used).collect()
    }

    fn add(&self, author: &str, words: &[Surface], names: &HashSet<String>, lists: &[&Lists], query: &mut Query) {
        let is_in = |list: fn(&Lists) -> &List, word: &str| lists.iter().any(|lists| list(lists).contains(word));
        let mut reader = self.reader();
        for Surface { word, plain, is_spaceless } in words {
            let mut forms = Vec::new();
            match is_spaceless {
                true => pairs(word, &mut forms),
                false => reader.forms(word, &mut forms),
            }
            query.words.extend(&forms);
            query.refers_back |= is_in(|lists| &lists.before, plain);
            if names.contains(plain) || is_in(|lists| &lists.words, plain) {
                continue;
            }
            let weight = if is_laughter(plain) || is_in(|lists| &lists.talk, plain) { TALK } else { 1.0 };
            match is_spaceless {
                // Each pair of characters counts by itself.
                true => forms.into_iter().for_each(|form| query.add(vec![form], weight, "")),
                false => query.add(forms, weight, plain),
            }
        }
        if words.iter().any(|word| is_in(|lists| &lists.author, &word.plain)) {
            let mut forms = Vec::new();
            surface(author).iter().for_each(|name| reader.forms(&name.word, &mut forms));
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
        let alphabet = match letters[0] {
            'a'..='z' => 'a'..='z',
            'α'..='ω' => 'α'..='ω',
            'а'..='я' => 'а'..='я',
            _ => return Vec::new(),
        };
        let (mut reader, mut forms) = (self.reader(), Vec::new());
        let mut add = |parts: [&[char]; 3]| reader.forms(&parts.concat().iter().collect::<String>(), &mut forms);
        for at in 1..=letters.len() {
            let (before, after) = letters.split_at(at);
            alphabet.clone().for_each(|letter| add([before, &[letter], after]));
            if let [_, rest @ ..] = after {
                add([before, &[], rest]);
                alphabet.clone().for_each(|letter| add([before, &[letter], rest]));
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
    pub fn has_topic(&self) -> bool {
        !self.days.is_empty() || self.terms.iter().any(Term::has_topic)
    }

    /// Whether the question refers to what was named before and says little about it.
    pub(super) fn refers_back(&self) -> bool {
        self.refers_back && self.terms.iter().filter(|term| term.has_topic()).count() <= FEW
    }

    /// Adds the words of a message that was recalled before.
    pub(super) fn add_before(&mut self, words: impl Iterator<Item = Word>) {
        words.for_each(|word| self.add(vec![word], BEFORE, ""));
    }

    fn add(&mut self, forms: Vec<Word>, weight: f32, text: &str) {
        if !forms.is_empty() && !self.terms.iter().any(|known| known.forms == forms) {
            self.terms.push(Term { forms, weight, text: text.into() });
        }
    }
}

/// Whether a word is written laughter, a drawn-out sound such as "hmm", or a smiley.
fn is_laughter(word: &str) -> bool {
    let letters: HashSet<char> = word.chars().collect();
    let is_smiley = |char: &char| matches!(char, '\u{2764}' | '\u{1f440}'..='\u{1f450}' | '\u{1f600}'..='\u{1f64f}' | '\u{1f90c}'..='\u{1f92f}' | '\u{1f970}'..='\u{1f97a}');
    let is_drawn_out = letters.len() == 1 || letters.len() == 2 && word.contains(['h', 'j', 'k', 'x', 'w']);
    letters.iter().any(is_smiley)
        || word.chars().count() > 2 && is_drawn_out && !word.contains(|char: char| char.is_ascii_digit())
}
