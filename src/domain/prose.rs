//! Extracts the brief of a persona, and the summary of a conversation, from the answer of a model.

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

/// The summary. `None` if the answer is none, or refuses to write one.
pub fn clean_summary(text: &str) -> Option<String> {
    let words = raw_answer::prose(text)?.trim().to_owned();
    let begin = words.to_lowercase().replace('’', "'");
    let is_refusal = words.len() < MAX_REFUSAL && REFUSALS.iter().any(|refusal| begin.starts_with(refusal));
    (!is_refusal).then_some(words)
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
            assert_eq!(clean_summary(text).as_deref(), Some("They talked."), "{text}");
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
            assert_eq!(clean_summary(text), None, "{text}");
        }
    }
}
