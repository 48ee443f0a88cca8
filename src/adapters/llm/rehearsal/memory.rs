//! Finds an earlier message that shares words with a question.

use std::sync::LazyLock;

use frostem::Algorithm;
use jiff::tz::TimeZone;

use super::kind::Kind;
use super::situation::{Situation, printable};
use crate::domain::id::Seq;
use crate::domain::message::Role;
use crate::domain::moment::Moment;
use crate::domain::question_context::{Day, Earlier, Line, QuestionContext};
use crate::domain::recall::Corpus;
use crate::domain::recall::words::Words;
use crate::domain::text::one_line;
use crate::ports::language_model::Request;

static ENGLISH: LazyLock<Words> = LazyLock::new(|| Words::new(&[Algorithm::English]));

/// The longest quotation, in characters.
const MAX_QUOTED: usize = 200;

/// An earlier message of a person about the topic of a person's question. `None`: the prompt contains no such message.
pub(super) fn remembered(request: &Request, context: &QuestionContext, situation: &Situation) -> Option<String> {
    let question = context.newest.last().filter(|line| line.from.role == Role::Person)?;
    let Earlier(earlier) = request.extensions.get::<Earlier>()?;
    if situation.kind != Kind::Question {
        return None;
    }
    let words = &*ENGLISH;
    let me = request.companion.as_ref().map(|companion| &*companion.name).unwrap_or_default();
    let now = Moment::ZERO.zoned(&TimeZone::UTC);
    let query = words.query([("", &*question.text)], &[me], &now);
    let is_told = |line: &Line| line.from.role == Role::Person && line.text != question.text && !Kind::of(&line.text).asks();
    let told: Vec<&(Line, Day)> = earlier.iter().filter(|(line, _)| is_told(line)).collect();
    let (mut corpus, mut reader) = (Corpus::default(), words.reader());
    for (at, (line, _)) in told.iter().enumerate() {
        corpus.push(Seq(at as u64), Moment::ZERO, "", &line.text, &mut reader);
    }
    // A message that only stands beside one about the topic is no answer.
    let scores = corpus.scores(&query, words);
    let best = corpus.search(&query, words).find(|found| scores[found.index] > 0.0)?;
    let (line, Day(day)) = told.get(best.index)?;
    // A parser of answers would read these characters as a thought or an object.
    let text = one_line(&line.text.replace(['<', '>', '{', '}'], ""), MAX_QUOTED);
    let who = if line.from.id == question.from.id {
        "You told me that".to_owned()
    } else {
        format!("{} said that", printable(&line.from.name))
    };
    Some(format!("{who} {day}: “{text}”"))
}
