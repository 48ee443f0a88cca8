//! Calls tools that the newest message asks for: dice, the time in a place, and reminders (docs/design/tools.md X-19).

use serde_json::{Value, json};

use super::kind::words;
use super::situation::printable;
use crate::domain::message::Role as Author;
use crate::domain::question_context::QuestionContext;
use crate::domain::text::one_line;
use crate::domain::trigger::Trigger;
use crate::ports::language_model::{Request, Role, ToolCall};

/// The call that a message of a person asks for, if its tool is offered.
pub(super) fn wanted(request: &Request, context: &QuestionContext) -> Option<ToolCall> {
    let newest = context.newest.last().filter(|line| line.from.role == Author::Person)?;
    let lower = newest.text.to_lowercase();
    let call = |name: &str, arguments: Value| {
        let is_offered = request.tools.iter().any(|tool| tool.name == name);
        is_offered.then(|| ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.to_string() })
    };
    let said = words(&lower);
    let has = |word: &str| said.contains(&word);
    if has("roll") {
        let dice = lower.split(|c: char| !c.is_ascii_alphanumeric() && !"+-%".contains(c)).find(|word| is_dice(word));
        let dice = dice.or_else(|| (has("dice") || has("die")).then_some("1d6"))?;
        return call("roll", json!({ "dice": dice }));
    }
    if has("remind") {
        let (minutes, text) = reminder(&newest.text)?;
        return call("remind", json!({ "action": "set", "in_minutes": minutes, "text": text }));
    }
    if has("time") && (has("what") || has("whats") || has("tell")) {
        let (_, place) = newest.text.rsplit_once(" in ")?;
        return call("time", json!({ "zone": place.trim_end_matches(|c: char| !c.is_alphanumeric()) }));
    }
    None
}

/// The minutes and the words of `remind me in ten minutes to feed the cat`.
fn reminder(text: &str) -> Option<(f64, String)> {
    const NUMBERS: [&str; 12] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let at = text.to_ascii_lowercase().find("remind me")?;
    let said: Vec<&str> = text.get(at + "remind me".len()..)?.split_whitespace().collect();
    let of = said.iter().position(|word| word.eq_ignore_ascii_case("in"))?;
    let (count, unit) = (said.get(of + 1)?.to_lowercase(), said.get(of + 2)?.to_lowercase());
    let word = NUMBERS.iter().position(|number| *number == count).map(|index| index as f64 + 1.0);
    let count = count.parse().ok().or(word).or((count == "a" || count == "an").then_some(1.0))?;
    let factor = match unit.trim_end_matches(|c: char| !c.is_alphabetic()).trim_end_matches('s') {
        "minute" => 1.0,
        "hour" => 60.0,
        "day" => 1_440.0,
        _ => return None,
    };
    let mut words = [&said[..of], &said[of + 3..]].concat();
    if words.first().is_some_and(|first| ["to", "about", "that"].contains(&first.to_lowercase().as_str())) {
        words.remove(0);
    }
    let text = words.join(" ").trim_end_matches(['.', '!', '?']).to_owned();
    (!text.is_empty()).then_some((count * factor, text))
}

/// What a companion says when a reminder is due. `None`: none is.
pub(super) fn reminded(trigger: Trigger, context: &QuestionContext) -> Option<String> {
    let newest = context.newest.last().filter(|_| trigger.acknowledges_events())?;
    let text = newest.text.strip_prefix(&*newest.from.name)?.strip_prefix(" wanted to be reminded: ")?;
    // A parser of answers would read these characters as a thought or an object.
    Some(format!("{}, your reminder: {}", printable(&newest.from.name), one_line(&text.replace(['<', '>', '{', '}'], ""), 300)))
}

fn is_dice(word: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    let Some((count, rest)) = word.split_once('d') else { return false };
    count.chars().all(is_digit) && rest.starts_with(|c| is_digit(c) || c == '%')
}

/// What the call at the end of the prompt has answered, as a statement. `None`: there is none.
pub(super) fn told(request: &Request) -> Option<String> {
    let last = request.messages.last().filter(|message| matches!(message.role, Role::Tool { .. }))?;
    let end: Value = serde_json::from_str(&last.words()).ok()?;
    let text = end["text"].as_str().unwrap_or_default();
    Some(match (end["tool"].as_str(), end["outcome"].as_str()) {
        (Some("remind"), Some("answered")) => format!("All right: {text}."),
        (Some("roll"), Some("answered")) => format!("I rolled {text}."),
        (_, Some("answered")) => format!("It is {text}."),
        (_, outcome) => format!("That did not work: {}.", if text.is_empty() { outcome.unwrap_or_default() } else { text }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reminder_is_read_from_what_people_say() {
        let read = |text: &str| reminder(text);
        let is = |minutes: f64, text: &str| Some((minutes, text.to_owned()));

        assert_eq!(read("Aria, remind me in ten minutes to feed the cat!"), is(10.0, "feed the cat"));
        assert_eq!(read("Remind me about tea in 2.5 hours, Aria"), is(150.0, "tea Aria"));
        assert_eq!(read("aria remind me to call Ben in a day."), is(1_440.0, "call Ben"));
        for text in [
            "remind me",
            "remind me to call Ben",
            "remind me in two minutes",
            "what did you remind me of in May?",
            "İ remind me in",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
