//! What the newest message is about and what came before it, as far as simple rules can tell.

use super::kind::{Kind, is_brief, is_for_all, is_goodbye, words};
use super::topic::topic;
use crate::domain::message::Role;
use crate::domain::question_context::{Line, QuestionContext};
use crate::ports::language_model::Request;

/// The newest message, understood, and the run of companions' statements that it ends.
#[derive(Debug)]
pub(super) struct Hearing {
    /// Who spoke, short and on one line.
    pub speaker: String,
    /// What kind of message it is.
    pub kind: Kind,
    /// It speaks to the whole room.
    pub is_for_all: bool,
    /// It is so short that nobody has to answer.
    pub is_brief: bool,
    /// It names the companion.
    pub names_me: bool,
    /// A word of it that is also in the companion's card.
    pub shared: Option<String>,
    /// Another companion said it.
    pub by_companion: bool,
    /// How many statements companions made in a row since somebody else spoke.
    pub streak: usize,
    /// It has said goodbye in one of them.
    pub has_parted: bool,
    /// Somebody has said goodbye in one of them: the talk is over.
    pub is_over: bool,
    /// What kind of message whoever else spoke last has written.
    pub opening: Kind,
    /// The word that it was about. Companions stay with what a person brought up.
    pub word: Option<String>,
    /// What was said lately, in lower case: not to be said again.
    pub said: Vec<String>,
}

/// Words of instructions that a card shares with any talk.
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
    pub fn of(request: &Request, context: &QuestionContext) -> Self {
        let newest = context.newest.last();
        let (speaker, text) = newest.map_or(("", ""), |line| (&*line.from.name, &*line.text));
        let lower = text.to_lowercase();
        let words = words(&lower);
        let me = request.companion.as_ref().map_or(String::new(), |companion| companion.name.to_lowercase());
        let me = self::words(&me);
        let names = names(request, context);
        let is_telling = |word: &&&str| is_telling(word) && !names.iter().any(|name| name == **word);
        let card = request.system().to_lowercase();
        let card: Vec<&str> = card.split(|c: char| !c.is_alphanumeric()).collect();

        let is_mine = |line: &Line| request.companion.as_ref().is_some_and(|companion| *line.from.id == *companion.id.as_str());
        let is_statement = |line: &&Line| line.from.role == Role::Companion;
        let run: Vec<&Line> = context.newest.iter().rev().take_while(is_statement).collect();
        let other = context.newest.iter().rev().nth(run.len()).map_or("", |line| &*line.text);
        Self {
            speaker: shown(speaker),
            kind: Kind::of(text),
            is_for_all: is_for_all(text),
            is_brief: is_brief(text),
            names_me: !me.is_empty() && words.windows(me.len()).any(|some| some == me),
            shared: words.iter().filter(is_telling).find(|word| card.contains(word)).map(|word| (*word).to_owned()),
            by_companion: newest.is_some_and(|line| is_statement(&line) && !is_mine(line)),
            streak: run.len(),
            has_parted: run.iter().any(|line| is_mine(line) && is_goodbye(&line.text)),
            is_over: run.iter().any(|line| is_goodbye(&line.text)),
            opening: Kind::of(other),
            word: topic(other, &names),
            said: context.newest.iter().map(|line| line.text.to_lowercase()).collect(),
        }
    }

    /// Whoever else spoke last took leave, or gave thanks.
    pub fn is_left(&self) -> bool {
        matches!(self.opening, Kind::Thanks | Kind::Goodbye)
    }
}

/// What everybody is called, as far as it is known, word by word.
fn names(request: &Request, context: &QuestionContext) -> Vec<String> {
    let authors = context.newest.iter().flat_map(|line| [line.from.name.to_string(), line.from.id.to_string()]);
    let me = request.companion.iter().flat_map(|companion| [companion.name.to_string(), companion.id.as_str().to_owned()]);
    let lower: Vec<String> = authors.chain(me).map(|name| name.to_lowercase()).collect();
    lower.iter().flat_map(|name| words(name)).map(str::to_owned).collect()
}

fn is_telling(word: &str) -> bool {
    let length = word.chars().count();
    (5..=24).contains(&length) && word.chars().all(char::is_alphabetic) && !EMPTY.contains(&format!(" {word} "))
}

/// A name from outside as it may stand inside one of our sentences: without what an answer's reader takes for a thought or an object.
fn shown(name: &str) -> String {
    let is_plain = |c: &char| !c.is_control() && !matches!(c, '<' | '>' | '{' | '}');
    let name: String = name.chars().filter(is_plain).take(32).collect();
    let name = name.trim();
    if name.is_empty() { "somebody".to_owned() } else { name.to_owned() }
}
