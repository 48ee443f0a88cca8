//! What the newest message is about and what came before it, as far as simple rules can tell.

use crate::domain::message::Role;
use crate::ports::language_model::{Line, Request};

/// The newest message, understood, and the run of companions' statements that it ends.
#[derive(Debug)]
pub(super) struct Hearing {
    /// Who spoke, short and on one line.
    pub speaker: String,
    /// What kind of message it is.
    pub kind: Kind,
    /// The word that it seems to be about.
    pub word: Option<String>,
    /// It names the companion.
    pub names_me: bool,
    /// A word of it that is also in the companion's card.
    pub shared: Option<String>,
    /// Another companion said it.
    pub by_companion: bool,
    /// How many statements companions made in a row since somebody else spoke.
    pub streak: usize,
    /// The companion is among those who made them.
    pub has_spoken: bool,
    /// It has said goodbye in one of them.
    pub has_parted: bool,
    /// Whoever else spoke last said goodbye, or thanks.
    pub is_left: bool,
    /// The word that whoever else spoke last was talking about.
    pub topic: Option<String>,
    /// What was said lately, in lower case: not to be said again.
    pub said: Vec<String>,
}

/// What kind of message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Greeting,
    Thanks,
    Goodbye,
    Question,
    Remark,
}

const GREETINGS: [&str; 9] = ["hi", "hello", "hey", "hola", "morning", "evening", "greetings", "howdy", "hiya"];
const THANKS: [&str; 6] = ["thanks", "thank", "thx", "ty", "cheers", "gracias"];
const GOODBYES: [&str; 8] = ["bye", "goodbye", "goodnight", "night", "gn", "cya", "farewell", "later"];
const ASKING: [&str; 17] = [
    "who", "what", "when", "where", "why", "how", "which", "can", "could", "should", "would", "does", "do", "did", "is", "are",
    "anyone",
];

/// Words that a message is never about, and words of instructions that a card shares with any talk.
const EMPTY: &str = " about after again against almost already also always another anybody anyone anything around asked away \
    because been before being better between both bring came cannot channel character come companion conversation could coming \
    does doing done down each either else enough even ever every everybody everyone everything feel find first from \
    getting give going gonna good gotta great group guess guys have having hear here hers himself into itself just keep kind \
    know last least less like little look looking made make makes many maybe mean message might more most much must myself \
    name need neither never next nobody none nothing often okay once only other others people person please pretty probably quite rather \
    really right said same says shall should since small some somebody someone something sometimes somewhere soon still such sure \
    take talk talking tell than that thats them then there these they thing things think this those though thought through \
    today together told tomorrow tonight took trying under until upon used very want wants wasn well went were what whatever \
    when where whether which while whom whose will with within without word words would wouldn yeah yesterday your yours yourself ";

impl Hearing {
    /// Reads the newest messages of a question.
    pub fn of(request: &Request) -> Self {
        let newest = request.newest.last();
        let (speaker, text) = newest.map_or(("", ""), |line| (&*line.from.name, &*line.text));
        let lower = text.to_lowercase();
        let words = words(&lower);
        let me = request.companion.as_ref().map_or(String::new(), |persona| persona.name.to_lowercase());
        let me = self::words(&me);
        let telling: Vec<&str> = words.iter().copied().filter(|word| is_telling(word) && !me.contains(word)).collect();
        let card = request.system.to_lowercase();
        let card: Vec<&str> = card.split(|c: char| !c.is_alphanumeric()).collect();

        let is_mine = |line: &Line| request.companion.as_ref().is_some_and(|persona| *line.from.id == *persona.id.as_str());
        let is_statement = |line: &&Line| line.from.role == Role::Companion;
        let run: Vec<&Line> = request.newest.iter().rev().take_while(is_statement).collect();
        let other = request.newest.iter().rev().nth(run.len()).map_or("", |line| &*line.text);
        Self {
            speaker: shown(speaker),
            kind: kind(text, &words),
            word: word_of(text, &telling),
            names_me: !me.is_empty() && words.windows(me.len()).any(|some| some == me),
            shared: telling.iter().find(|word| word.chars().count() > 4 && card.contains(word)).map(|word| (*word).to_owned()),
            by_companion: newest.is_some_and(|line| is_statement(&line) && !is_mine(line)),
            streak: run.len(),
            has_spoken: run.iter().any(|line| is_mine(line)),
            has_parted: run.iter().any(|line| is_mine(line) && is_goodbye(&line.text)),
            is_left: is_leaving(other),
            topic: topic(other, &me),
            said: request.newest.iter().map(|line| line.text.to_lowercase()).collect(),
        }
    }
}

/// Whether somebody takes leave with these words.
pub(super) fn is_goodbye(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = words(&lower);
    words.iter().any(|word| ["bye", "goodbye", "goodnight", "farewell"].contains(word))
        || words.windows(2).any(|pair| pair == ["good", "night"] || pair == ["take", "care"])
}

fn is_leaving(text: &str) -> bool {
    let lower = text.to_lowercase();
    matches!(kind(text, &words(&lower)), Kind::Thanks | Kind::Goodbye)
}

fn topic(text: &str, me: &[&str]) -> Option<String> {
    let lower = text.to_lowercase();
    let telling: Vec<&str> = words(&lower).into_iter().filter(|word| is_telling(word) && !me.contains(word)).collect();
    word_of(text, &telling)
}

/// Of telling words the longest; of equals the last, because a noun comes after what describes it.
fn word_of(text: &str, telling: &[&str]) -> Option<String> {
    telling.iter().max_by_key(|word| word.chars().count()).map(|word| as_spelled(text, word))
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

fn kind(text: &str, words: &[&str]) -> Kind {
    let begins = |list: &[&str]| words.iter().take(2).any(|word| list.contains(word));
    let short = words.len() <= 6;
    if text.contains(['?', '？']) || words.first().is_some_and(|word| ASKING.contains(word)) {
        Kind::Question
    } else if short && words.iter().any(|word| THANKS.contains(word)) {
        Kind::Thanks
    } else if short && (begins(&GREETINGS) || words.contains(&"hello")) && !words.contains(&"night") {
        Kind::Greeting
    } else if short && words.iter().any(|word| GOODBYES.contains(word)) {
        Kind::Goodbye
    } else {
        Kind::Remark
    }
}

fn is_telling(word: &str) -> bool {
    let length = word.chars().count();
    (4..=24).contains(&length) && word.chars().all(char::is_alphabetic) && !EMPTY.contains(&format!(" {word} "))
}

/// A word as it was written, where that is a name: not at the beginning, and not in capitals throughout.
fn as_spelled(text: &str, lower: &str) -> String {
    let written = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).skip(1);
    let mut name = written.filter(|word| word.to_lowercase() == lower && word.chars().any(char::is_lowercase));
    name.next().unwrap_or(lower).to_owned()
}

/// A name from outside as it may stand inside one of our sentences.
fn shown(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).take(32).collect();
    let name = name.trim();
    if name.is_empty() { "somebody".to_owned() } else { name.to_owned() }
}
