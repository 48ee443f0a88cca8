//! The answer formats that prompts ask for: the fields of a vote, and the text of a statement.

use std::borrow::Cow;

use crate::answer_or_pass::MARKER;
use crate::closing::Stage;
use crate::policy::prompt::Prompt as Words;
use crate::room_words::RoomWords;
use crate::vote::{MOST_IMPORTANCE, MOST_MOOD};

/// The format of a vote: two examples and a line for each of its [fields](vote_fields). There is one example for each decision, so that neither is
/// suggested. They contain no text to copy.
pub(super) fn vote_form(name: &str, stage: Stage, asked: Extra, words: &Words) -> String {
    if words.is_short() {
        return short_form(stage, asked, words);
    }
    let fields = field_lines(&format!("{name}'s"), &format!("Until now it is \"{stage}\"."), asked, words);
    // Some endpoints return JSON only if the prompt contains this word.
    let intro = "Answer with one JSON object and nothing else. Two examples of its form:";
    format!("{intro}\n{}\n\nIts fields:\n{fields}", examples(stage, asked, words))
}

/// The format of a vote in few words.
fn short_form(stage: Stage, asked: Extra, words: &Words) -> String {
    let ([yes, no], examples) = (verdicts(words), examples(stage, asked, words));
    let mood = format!(" `mood`: -{MOST_MOOD} to {MOST_MOOD}, how gladly you talk on if interrupted (0: as usual).");
    let mood = if asked.is_call { &*mood } else { "" };
    let risk = if asked.about_risk {
        " `risk`: true if somebody says of themselves, in earnest, that they want to die or hurt themselves."
    } else {
        ""
    };
    format!(
        "Answer with one JSON object, like one of these:\n{examples}\n\n`reason`: a short sentence that quotes nothing. `decision`: \"{yes}\" to speak, \
         \"{no}\" to stay silent. `importance`: 0 to {MOST_IMPORTANCE}. `selected`: whether the last speaker called on you. `closing`: \"none\", \
         \"pre-closing\" (the end is near), \"closing\" (goodbye), \"terminal\" (all is said). Until now it is \"{stage}\".{mood}{risk}"
    )
}

/// The format of the votes of several companions: one object with a vote for each of these ids.
pub(super) fn votes_form<'a>(ids: impl Iterator<Item = &'a str>, asked: Extra, words: &Words) -> String {
    let whole: Vec<_> = ids.map(|id| format!("\"{id}\": {{…}}")).collect();
    let closing = format!("Until now it is \"{}\", unless another stage is named above.", Stage::None);
    let fields = field_lines("the companion's", &closing, asked, words);
    format!(
        "Answer with one JSON object and nothing else. It holds one object for each of these companions, under its id, in this form: \
         {{{}}}\n\nTwo examples of an object for one companion:\n{}\n\nIts fields:\n{fields}",
        whole.join(", "),
        examples(Stage::None, asked, words)
    )
}

fn examples(stage: Stage, asked: Extra, words: &Words) -> String {
    let [yes, no] = verdicts(words);
    let example = |decision: &str, importance: u32, is_selected: bool| {
        let fields = vote_fields(asked, words).into_iter().map(|field| match field {
            "reason" => "\"reason\": \"…\"".to_owned(),
            "decision" => format!("\"decision\": \"{decision}\""),
            "importance" => format!("\"importance\": {importance}"),
            "selected" => format!("\"selected\": {is_selected}"),
            "closing" => format!("\"closing\": \"{stage}\""),
            "risk" => "\"risk\": false".to_owned(),
            _ => "\"mood\": 0".to_owned(),
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
    };
    [example(&yes, 6, true), example(&no, 2, false)].join("\n")
}

/// A line for each field. `whose` names the owner of the voice in which the reason is written, such as `Aria's`.
fn field_lines(whose: &str, closing_until_now: &str, asked: Extra, words: &Words) -> String {
    let [yes, no] = verdicts(words);
    let lines = vote_fields(asked, words).into_iter().map(|field| match field {
        "reason" => format!(
            "`reason`: one short sentence in {whose} voice that says why. It quotes nothing that others wrote, and has no braces and no tags."
        ),
        "decision" => format!("`decision`: \"{yes}\" to speak now, \"{no}\" to stay silent."),
        "importance" => {
            format!("`importance`: a number from 0 to {MOST_IMPORTANCE}. How much does the conversation need now what you would say?")
        }
        "selected" => "`selected`: true if the last speaker called on you, else false.".to_owned(),
        "closing" => format!(
            "`closing`: how near its end the conversation is for you. \"none\": it goes on. \"pre-closing\": it is time to prepare the end. \
             \"closing\": it is time to say goodbye. \"terminal\": the last farewell is said, and you will say no more. {closing_until_now}"
        ),
        "risk" => "`risk`: true if somebody in the newest messages says of themselves, in earnest, that they want to die or to hurt themselves, also in \
                   hints. False for games, songs, stories, jokes, news, and talk about others or the past."
            .to_owned(),
        _ => format!(
            "`mood`: a number from -{MOST_MOOD} to {MOST_MOOD}. How much more than usual would you go on talking if somebody interrupts you? \
             0 is as usual."
        ),
    });
    lines.map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
}

/// The optional fields of a vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extra {
    /// Whether to ask for a mood, which affects interruptions in a call.
    pub is_call: bool,
    /// Whether to ask if a person is at risk (docs/design/safety.md N-8).
    pub about_risk: bool,
}

/// The fields of a vote, in the order in which the prompt lists them.
pub fn vote_fields(asked: Extra, words: &Words) -> Vec<&'static str> {
    let [first, second] = if words.reason_first { ["reason", "decision"] } else { ["decision", "reason"] };
    [first, second, "importance", "selected", "closing"]
        .into_iter()
        .chain(asked.is_call.then_some("mood"))
        .chain(asked.about_risk.then_some("risk"))
        .collect()
}

/// The words for YES and NO in the prompt of a decision.
pub fn verdicts(words: &Words) -> [String; 2] {
    let first = |words: &[Cow<'_, str>]| words.first().map(|word| word.to_uppercase()).unwrap_or_default();
    [first(&words.yes_words), first(&words.no_words)]
}

/// The instruction by which a model may decline to speak.
pub(super) fn pass_form(name: &str) -> String {
    format!(
        "If {name} would rather say nothing now, write only {MARKER}: and after it one short sentence in {name}'s voice that says why."
    )
}

/// The form of a continuation.
pub(super) const CONTINUATION_FORM: &str = "Your last message is not finished. Write only what follows it, from where it ends, in the same tone and \
                                            language: no repetition, no name before it, no quotation marks around it, no JSON.";

/// The form of a draft of a person's message.
pub(super) fn draft_form(person: &str) -> String {
    format!(
        "This time, write what {person} could say next, in the tone and language of their own messages. They will edit and send it. Write only \
         the words: no name before them, no quotation marks around them, no JSON."
    )
}

pub(super) fn statement_form(name: &str, is_spoken: bool, room: &RoomWords) -> String {
    let form = if is_spoken {
        format!(
            "Write what {name} says now, aloud, in whole sentences as people say them. Write only the words: no lists, \
              links, emoji or Markdown, no name before them, no quotation marks around them, no JSON."
        )
    } else if room.is_role_play() {
        format!(
            "Write what {name} does and says now, in one to three paragraphs: actions between *asterisks*, speech as plain \
             text. Play nobody else. No name before it, no JSON."
        )
    } else {
        format!(
            "Write what {name} says now, as plain text or Markdown. Write only the words: no name before them, no \
             quotation marks around them, no JSON."
        )
    };
    format!("{form} Use the language of what people said last, unless your character says otherwise.")
}
