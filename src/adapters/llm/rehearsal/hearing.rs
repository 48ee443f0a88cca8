//! What the newest message is about, as far as simple rules can tell.

use crate::ports::language_model::Request;

/// The newest message, understood.
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
    /// Reads the newest message of a question.
    pub fn of(request: &Request) -> Self {
        let (speaker, text) = request.newest.as_ref().map_or(("", ""), |(speaker, text)| (&**speaker, &**text));
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let me = request.companion.as_ref().map_or(String::new(), |persona| persona.name.to_lowercase());
        let me: Vec<&str> = me.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let telling: Vec<&str> = words.iter().copied().filter(|word| is_telling(word) && !me.contains(word)).collect();
        let card = request.system.to_lowercase();
        let card: Vec<&str> = card.split(|c: char| !c.is_alphanumeric()).collect();
        Self {
            speaker: shown(speaker),
            kind: kind(text, &words),
            // Of equals the last: a noun comes after what describes it.
            word: telling.iter().max_by_key(|word| word.chars().count()).map(|word| as_spelled(text, word)),
            names_me: !me.is_empty() && words.windows(me.len()).any(|some| some == me),
            shared: telling.iter().find(|word| word.chars().count() > 4 && card.contains(word)).map(|word| (*word).to_owned()),
        }
    }
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
