//! The prompt that asks several companions at once whether they want to speak (docs/design/turn-taking.md T-23).

use std::collections::{BTreeMap, BTreeSet};

use super::card::for_decision;
use super::data::{unmarked_name, weight};
use super::form::{Extra, votes_form};
use super::frame::{self, System, context, of_room, paragraphs, system};
use super::line::tag_of;
use super::note::choose_note;
use super::texts::{HOW_TO_READ_TOGETHER, TOGETHER};
use super::{Character, Prompt, PromptInput, RECENT_TURNS, Said, Scene, tokens};
use crate::closing::Stage;
use crate::id::Seq;
use crate::message::Role;
use crate::policy::prompt::Prompt as Words;
use crate::room_words::RoomWords;

/// A companion that is asked together with others, with the input of its own question.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub character: Character<'a>,
    pub input: &'a PromptInput,
}

/// The prompt for the votes of several companions. [`parts`](crate::vote::together::parts) splits the answer.
///
/// It begins with the part that is the same in every such prompt. Then it describes the companions in their order, and shows the conversation once.
/// It ends with a line for each companion, with its question, and the answer format. The prompt has at most `prompt.decision_tokens` for each
/// companion.
pub fn votes(asked: &[Asked<'_>], scene: &Scene, words: &Words) -> Prompt {
    let Some(first) = asked.first() else { return Prompt::new(String::new(), String::new(), Vec::new()) };
    let (earlier, new) = messages(asked);
    let form = votes_form(
        asked.iter().map(|one| one.character.id.as_str()),
        Extra { is_call: scene.is_call, about_risk: asked.iter().any(|one| one.input.about_risk) },
        words,
    );
    let questions: Vec<String> = asked.iter().map(|one| question(one, &new, words)).collect();
    let ending = paragraphs(&["What each of them is asked, as if it were asked alone:", &questions.join("\n"), &form]);
    let of_room = of_room(&scene.words, words.decision_tokens / 2);
    let instructions = paragraphs(&[TOGETHER, scene.audience(), HOW_TO_READ_TOGETHER, &of_room]);
    let fixed = weight(&instructions) + weight(&form);
    let described = asked.iter().zip(&questions).map(|(one, question)| {
        let card = for_decision(&one.character, words);
        system(&one.character, &card, "", &RoomWords::default(), fixed + weight(question), words.decision_tokens)
    });
    let shown = frame::Shown { summary: first.input.summary.as_deref(), earlier: &earlier, new: &new, note: "", scene };
    frame::question(joined(instructions, asked, described), &shown, first.character.id, None, &ending, usize::MAX)
}

/// The messages that the companions would see if asked alone, each once. The first list has those before the oldest message that is new to a
/// companion, the second list the others.
fn messages<'a>(asked: &[Asked<'a>]) -> (Vec<&'a Said>, Vec<&'a Said>) {
    let shown = asked.iter().flat_map(|one| {
        let recent = &one.input.recent[one.input.recent.len().saturating_sub(RECENT_TURNS)..];
        recent.iter().chain(&one.input.buffer)
    });
    let by_number: BTreeMap<Seq, &Said> = shown.map(|said| (said.seq, said)).collect();
    let first_new = asked.iter().flat_map(new_to).min();
    by_number.into_values().partition(|said| first_new.is_none_or(|first| said.seq < first))
}

/// The numbers of the messages that are new to a companion. Its own statements are not.
fn new_to<'a>(one: &Asked<'a>) -> impl Iterator<Item = Seq> + use<'a> {
    let id = one.character.id;
    one.input.buffer.iter().filter(move |said| !said.message.is_by(id)).map(|said| said.seq)
}

/// Joins the parts into one system message: the shared parts, then each companion's own.
fn joined(instructions: String, asked: &[Asked<'_>], described: impl Iterator<Item = System>) -> System {
    let sizes = vec![("instructions", tokens(&instructions))];
    let mut joined = System { text: instructions, sizes, left: usize::MAX };
    for (one, System { text, sizes, left }) in asked.iter().zip(described) {
        let id = one.character.id;
        joined.text += &format!("\n\n<companion id=\"{id}\">\n{}\n</companion>", within_its_part(&text, asked));
        joined.left = joined.left.min(left);
        for (part, size) in sizes {
            match joined.sizes.iter_mut().find(|(known, _)| *known == part) {
                Some((_, sum)) => *sum += size,
                None => joined.sizes.push((part, size)),
            }
        }
    }
    joined
}

/// Prevents a description from imitating a question or an answer for a companion. Where a description quotes an id as the questions and the answer do
/// (`"aria" (`, `"aria":`), the quotation marks become single ones.
fn within_its_part(text: &str, asked: &[Asked<'_>]) -> String {
    let mut text = text.to_owned();
    for one in asked {
        let named = format!("\"{}\"", one.character.id);
        let is_address = |(at, _): &(usize, &str)| text[at + named.len()..].trim_start().starts_with(['(', ':', '=']);
        let found: Vec<usize> = text.match_indices(&named).filter(is_address).map(|(at, _)| at).collect();
        for at in found {
            text.replace_range(at..at + named.len(), &format!("'{}'", one.character.id));
        }
    }
    text
}

/// The line with the question to one companion.
fn question(one: &Asked<'_>, new: &[&Said], words: &Words) -> String {
    let Asked { character, input } = one;
    let mut sentences = vec![context(input.trigger, input.message_count, input.speaker.as_deref(), words)];
    let own_new: BTreeSet<Seq> = new_to(one).collect();
    let is_all_new = new.iter().all(|said| said.message.is_by(character.id) || own_new.contains(&said.seq));
    if !is_all_new {
        let known = new.iter().take_while(|said| !own_new.contains(&said.seq)).count();
        sentences.push(match new.len() - known {
            0 => "None of the messages that were just said is new to you.".to_owned(),
            newest => format!("Only the last {newest} of the messages that were just said are new to you."),
        });
    }
    if input.stage != Stage::None {
        sentences.push(format!("Your `closing` until now is \"{}\".", input.stage));
    }
    let note = choose_note(input.trigger, Stage::None, input.is_repetitive).map(|note| note.sentence(input.minutes, words));
    sentences.extend(note.map(|note| note.to_string()));
    sentences.push(words.question_for(input.trigger).to_owned());
    sentences.retain(|sentence| !sentence.is_empty());
    format!(
        "- \"{}\" ({}; `who` of your own messages: \"#{}\"): {}",
        character.id,
        unmarked_name(character.name),
        tag_of(Role::Companion, character.id.as_str()),
        sentences.join(" ")
    )
}
