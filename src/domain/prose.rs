//! Extracts the brief of a persona, and the summary of a conversation, from the answer of a model.

use unicode_segmentation::UnicodeSegmentation as _;

use super::message::Message;
use super::raw_answer;
use super::text::is_blank;

/// The beginnings of refusals, and the maximum length of a refusal in bytes.
const REFUSALS: [&str; 36] = [
    "i'm sorry",
    "i am sorry",
    "sorry,",
    "i can't",
    "i cannot",
    "i'm not able",
    "i am not able",
    "i'm unable",
    "as an ai",
    "es tut mir leid",
    "tut mir leid",
    "leider kann ich",
    "entschuldigung",
    "ich kann dabei nicht",
    "ich kann das nicht",
    "ich kann diese",
    "als ki",
    "lo siento",
    "lamento",
    "no puedo",
    "como modelo",
    "como ia",
    "je suis désolé",
    "désolé",
    "je ne peux pas",
    "en tant qu'ia",
    "en tant que modèle",
    "desculpe",
    "sinto muito",
    "não posso",
    "申し訳",
    "すみません",
    "ごめんなさい",
    "抱歉",
    "对不起",
    "對不起",
];
const MAX_REFUSAL: usize = 200;

/// The maximum length, in bytes, of what precedes the name in a line of the talk, such as a time.
const MAX_BEFORE_NAME: usize = 20;
/// The minimum length, in bytes, of the beginning of a message that counts as the message.
const MIN_BEGINNING: usize = 16;

/// The summary of these messages. `None` if the answer is none, refuses to write one, or mostly repeats the messages.
pub fn clean_summary<'a>(text: &str, messages: impl IntoIterator<Item = &'a Message>) -> Option<String> {
    let summary = raw_answer::prose(text)?.trim().to_owned();
    let begin = summary.to_lowercase().replace('’', "'");
    let is_refusal = summary.len() < MAX_REFUSAL && REFUSALS.iter().any(|refusal| begin.starts_with(refusal));
    let messages: Vec<_> = messages.into_iter().map(|message| (words(&message.from.name), words(&message.text))).collect();
    let lines: Vec<_> = summary.lines().map(words).filter(|line| !line.is_empty()).collect();
    let copied = lines.iter().filter(|line| messages.iter().any(|(name, text)| is_message(line, name, text))).count();
    (!is_refusal && copied * 2 <= lines.len()).then_some(summary)
}

/// Whether a line of a summary is this message, with or without its author's name.
fn is_message(line: &str, name: &str, text: &str) -> bool {
    let after_name = line.find(name).filter(|at| *at <= MAX_BEFORE_NAME).map_or(line, |at| line[at + name.len()..].trim_start());
    !text.is_empty() && (after_name == text || after_name.len() >= MIN_BEGINNING && text.starts_with(after_name))
}

/// The words of a text in lower case, without the signs around them.
fn words(text: &str) -> String {
    text.unicode_words().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The brief of a persona, without the model's thoughts, with at most this number of bytes. `None` if no visible text is left.
pub fn clean_brief(text: &str, max_bytes: usize) -> Option<String> {
    let visible = raw_answer::prose(text)?;
    let visible = visible.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    let mut bytes = 0;
    let kept: String = visible
        .skip_while(|c| c.is_whitespace())
        .take_while(|c| {
            bytes += c.len_utf8();
            bytes <= max_bytes
        })
        .collect();
    let kept = kept.trim_end();
    (!is_blank(kept)).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{message, person};

    #[test]
    fn a_brief_has_no_thoughts_and_is_bounded() {
        assert_eq!(clean_brief("<think>Short.</think>\nYou are Aria.", 100).as_deref(), Some("You are Aria."));
        assert_eq!(
            clean_brief("Here is the description:\n{\"description\": \"You are Aria.\"}", 100).as_deref(),
            Some("You are Aria.")
        );
        assert_eq!(clean_brief("éé and more", 3).as_deref(), Some("é"));
        assert_eq!(clean_brief("<think>Short.</think>\n", 100), None);
    }

    #[test]
    fn a_summary_is_prose_and_no_refusal() {
        for text in [
            "<think>hm</think>They talked.",
            "Here is the summary:\n\nThey talked.",
            "Here is the summary:\n```json\n{\"summary\": \"They talked.\"}\n```",
        ] {
            assert_eq!(clean_summary(text, []).as_deref(), Some("They talked."), "{text}");
        }
        for text in [
            "{\"who\":\"#4\",\"role\":\"person\",\"from\":\"Ana\",\"text\":\"Hi\"}",
            "{\"from\":\"Ana\",\"text\":\"Hi\"}\n{\"from\":\"Bob\",\"text\":\"Ho\"}",
            "{\"decision\": \"NO\"}",
            "I'm sorry, but I can't do that.",
            "Es tut mir leid, aber dabei kann ich nicht helfen.",
            "Lo siento, pero no puedo ayudar con eso.",
            "Je suis désolé, mais je ne peux pas vous aider.",
            "申し訳ありませんが、お手伝いできません。",
            "抱歉，我无法协助。",
            "<think>Hm.</think>",
        ] {
            assert_eq!(clean_summary(text, []), None, "{text}");
        }
    }

    #[test]
    fn a_summary_does_not_repeat_the_talk() {
        let talk = [
            ("Ana", "Where is the boat?"),
            ("Ben", "It left at six, I think."),
            ("小蝶", "港は六時に開く。"),
            ("Ana", "Then we wait here until the next one comes,\nall of us."),
        ];
        let messages = talk.map(|(name, text)| message(person(name), text));

        for summary in [
            "Ana: Where is the boat?\nBen: It left at six, I think.",
            "**Ana:** Where is the boat?\n\n- Ben: “It left at six, I think.”\n小蝶：港は六時に開く。",
            "[22:10] Ana: where is the boat\nBen: It left at six, I think.\nThey wait.",
            "Where is the boat?\nIt left at six, I think.",
            "Ana: Then we wait here until the next",
        ] {
            assert_eq!(clean_summary(summary, &messages), None, "{summary}");
        }
        for summary in [
            "Ana asked where the boat is. Ben said that it left.",
            "They missed the boat.\nBen: It left at six, I think.",
            "Ana: asked where the boat is.\nBen: said that it left at six.",
            "Ana asked: “Where is the boat?”",
        ] {
            assert_eq!(clean_summary(summary, &messages).as_deref(), Some(summary));
        }
    }
}
