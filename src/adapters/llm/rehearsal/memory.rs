//! Finds what somebody said earlier, in the words of a question.

use frostem::Algorithm;

use super::kind::{Kind, listed};
use super::situation::{Situation, printable};
use super::topic::is_telling;
use crate::domain::id::Seq;
use crate::domain::message::Role;
use crate::domain::question_context::{Day, Earlier, Line, QuestionContext};
use crate::domain::recall::Corpus;
use crate::domain::recall::words::Words;
use crate::domain::text::one_line;
use crate::ports::language_model::Request;

/// The longest quotation, in characters.
const MAX_QUOTED: usize = 200;

/// What a person said earlier that the question of a person is about. None: nothing of what the model was given is.
pub(super) fn remembered(request: &Request, context: &QuestionContext, situation: &Situation) -> Option<String> {
    let question = context.newest.last().filter(|line| line.from.role == Role::Person)?;
    let Earlier(earlier) = request.extensions.get::<Earlier>()?;
    if situation.kind != Kind::Question {
        return None;
    }
    let words = Words::new(&[Algorithm::English]);
    let lower = question.text.to_lowercase();
    let telling: Vec<&str> = super::kind::words(&lower).into_iter().filter(|word| is_telling(word)).collect();
    let me = request.companion.as_ref().map(|companion| companion.name.to_lowercase()).unwrap_or_default();
    let query: Vec<_> = telling.iter().filter(|word| !listed(&me, word)).flat_map(|word| words.of(word)).collect();
    let is_told = |line: &Line| line.from.role == Role::Person && line.text != question.text && !Kind::of(&line.text).asks();
    let told: Vec<&(Line, Day)> = earlier.iter().filter(|(line, _)| is_told(line)).collect();
    let (mut corpus, mut reader) = (Corpus::default(), words.reader());
    for (at, (line, _)) in told.iter().enumerate() {
        corpus.push(Seq(at as u64), "", &line.text, &mut reader);
    }
    let scores = corpus.scores(&query);
    let (best, score) = scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    let (line, Day(day)) = told.get(best).filter(|_| *score > 0.0)?;
    // A parser of answers takes these characters for a thought or an object.
    let text = one_line(&line.text.replace(['<', '>', '{', '}'], ""), MAX_QUOTED);
    let who = if line.from.id == question.from.id {
        "You told me that".to_owned()
    } else {
        format!("{} said that", printable(&line.from.name))
    };
    Some(format!("{who} {day}: “{text}”"))
}
