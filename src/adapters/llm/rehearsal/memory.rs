//! Finds an earlier message that shares words with a question.

use frostem::Algorithm;

use super::kind::{Kind, listed, words};
use super::situation::{Situation, printable};
use crate::domain::id::Seq;
use crate::domain::message::Role;
use crate::domain::question_context::{Day, Earlier, Line, QuestionContext};
use crate::domain::recall::Corpus;
use crate::domain::recall::words::Words;
use crate::domain::text::one_line;
use crate::ports::language_model::Request;

/// The longest quotation, in characters.
const MAX_QUOTED: usize = 200;

/// Words of more than two letters that do not identify the topic of a question.
const COMMON: &str = "the your our his her their its this that these which what any some about like love hate prefer play buy two three four \
    five you she they them who when where why how are was were been does did has have had can could shall should will would may might must and \
    but than then for from into off out over with without not yes all along again ever never just also too very there here now soon lately \
    today tonight tomorrow yesterday after before during while because every each more most bit chance couple day days end evening fact kind \
    last lot morning moment month night number one ones part people person place point reason same side sort thing things time times way week \
    weekend word words year years remember know tell told said say saying think gave give get got mean meant please anybody anyone somebody";

/// An earlier message of a person about the topic of a person's question. `None`: the prompt contains no such message.
pub(super) fn remembered(request: &Request, context: &QuestionContext, situation: &Situation) -> Option<String> {
    let question = context.newest.last().filter(|line| line.from.role == Role::Person)?;
    let Earlier(earlier) = request.extensions.get::<Earlier>()?;
    if situation.kind != Kind::Question {
        return None;
    }
    let (forms, lower) = (Words::new(&[Algorithm::English]), question.text.to_lowercase());
    let me = request.companion.as_ref().map(|companion| companion.name.to_lowercase()).unwrap_or_default();
    let is_telling = |word: &&str| word.chars().count() > 2 && !listed(COMMON, word) && !listed(&me, word);
    let query: Vec<_> = words(&lower).into_iter().filter(is_telling).flat_map(|word| forms.of(word)).collect();
    let is_told = |line: &Line| line.from.role == Role::Person && line.text != question.text && !Kind::of(&line.text).asks();
    let told: Vec<&(Line, Day)> = earlier.iter().filter(|(line, _)| is_told(line)).collect();
    let (mut corpus, mut reader) = (Corpus::default(), forms.reader());
    for (at, (line, _)) in told.iter().enumerate() {
        corpus.push(Seq(at as u64), "", &line.text, &mut reader);
    }
    let scores = corpus.scores(&query);
    let (best, score) = scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    let (line, Day(day)) = told.get(best).filter(|_| *score > 0.0)?;
    // A parser of answers would read these characters as a thought or an object.
    let text = one_line(&line.text.replace(['<', '>', '{', '}'], ""), MAX_QUOTED);
    let who = if line.from.id == question.from.id {
        "You told me that".to_owned()
    } else {
        format!("{} said that", printable(&line.from.name))
    };
    Some(format!("{who} {day}: “{text}”"))
}
