//! Calls tools that the newest message asks for: dice and the time in a place (docs/design/tools.md X-19).

use serde_json::{Value, json};

use super::kind::words;
use crate::domain::message::Role as Author;
use crate::domain::question_context::QuestionContext;
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
    if has("time") && (has("what") || has("whats") || has("tell")) {
        let (_, place) = newest.text.rsplit_once(" in ")?;
        return call("time", json!({ "zone": place.trim_end_matches(|c: char| !c.is_alphanumeric()) }));
    }
    None
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
        (Some("roll"), Some("answered")) => format!("I rolled {text}."),
        (_, Some("answered")) => format!("It is {text}."),
        (_, outcome) => format!("That did not work: {}.", if text.is_empty() { outcome.unwrap_or_default() } else { text }),
    })
}
