//! Renders a story as text: one step per line, wrapped, with terminal control characters escaped.

use std::fmt::Write as _;

use super::Why;
use crate::cli::visible::line as escaped;
use crate::ports::backend::decisions::{self, Brief, DecisionRecord, Outcome, StoryLine, WaitingFor};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::stamp::rfc3339;

/// The width of a line, in columns, if the terminal's width is not known.
const WIDTH: usize = 100;
/// The indent of a step's text, in columns: two, the time, and two more.
const INDENT: usize = 12;

/// The width of a line: from `COLUMNS`, else from the terminal, limited to 50 to 160.
pub(super) fn width(columns: Option<&str>, terminal: Option<usize>) -> usize {
    columns.and_then(|columns| columns.trim().parse().ok()).or(terminal).map_or(WIDTH, |columns| columns.clamp(50, 160))
}

pub(super) fn render(explanation: &decisions::Why, options: &Why, is_from_server: bool, width: usize) -> String {
    let mut page = Page { text: String::new(), width, day: String::new() };
    // Older servers do not send the room.
    let room = if explanation.room.is_empty() { options.room.as_str() } else { &*explanation.room };
    match &explanation.companion {
        Some(companion) => one_companion(&mut page, explanation, companion.as_str(), room, options.at.is_some()),
        None => all_companions(&mut page, explanation, options, room),
    }
    if !is_from_server {
        page.gap();
        page.wrap(0, "No server is running here. This was read from the store.");
    }
    page.text
}

fn one_companion(page: &mut Page, explanation: &decisions::Why, companion: &str, room: &str, is_of_a_time: bool) {
    let name = display_name(explanation.name.as_deref().unwrap_or(companion), companion);
    let about = explanation.message.map(|seq| format!(", message {seq}")).unwrap_or_default();
    let head = match &explanation.decision {
        Some(DecisionRecord { seq, .. }) => format!("{name} in {room}{about}, decision {seq}"),
        None if explanation.message.is_some() => format!("{name} in {room}{about}"),
        None if is_of_a_time => format!("{name} in {room}: no decision at that time"),
        None => format!("{name} in {room}: no decision yet"),
    };
    page.wrap(0, &head);
    page.story(&explanation.story);
    if let Some(brief) = explanation.companions.first().filter(|_| explanation.message.is_some()) {
        page.gap();
        page.wrap(0, &outcome(brief));
        // If there is a decision, the story contains this text.
        if explanation.decision.is_none() {
            page.wrap(2, &brief.text);
        }
    }
    if let Some(waiting) = explanation.waiting_for.as_ref().filter(|_| explanation.message.is_none()) {
        page.gap();
        page.wrap(0, &waits(waiting));
    }
    if let Some(DecisionRecord { decision, trigger, reason, more, .. }) = &explanation.decision {
        // The recorded trigger of such a decision has no meaning.
        let is_bookkeeping = matches!(&**reason, "closed" | "paused" | "overflow" | "stale");
        let trigger = if is_bookkeeping { String::new() } else { format!("{trigger}, ") };
        let trace = more.get("trace").and_then(|trace| trace.as_str()).map(|trace| format!(", trace {trace}"));
        let number = |key: &str| more.get(key).and_then(serde_json::Value::as_u64);
        let model = more.get("model").and_then(|model| model.as_str()).map(|model| {
            let millis = number("model_ms").unwrap_or_default();
            let [read, written] = ["input_tokens", "output_tokens"].map(|key| number(key).unwrap_or_default());
            match number("asked_together") {
                Some(asked) => format!(", {model}: {millis} ms, one call for {asked} companions"),
                None => format!(", {model}: {millis} ms, {read} tokens read, {written} written"),
            }
        });
        page.gap();
        page.wrap(0, &format!("{decision} ({trigger}{reason}){}{}", model.unwrap_or_default(), trace.unwrap_or_default()));
    }
}

fn all_companions(page: &mut Page, explanation: &decisions::Why, options: &Why, room: &str) {
    match explanation.message {
        Some(seq) => page.wrap(0, &format!("Message {seq} in {room}")),
        None => page.wrap(
            0,
            &format!(
                "The latest decision of each companion in {room}{}",
                if options.at.is_some() { " at that time" } else { "" }
            ),
        ),
    }
    page.story(&explanation.story);
    let mut briefs = explanation.companions.iter().peekable();
    while let Some(brief) = briefs.next() {
        let next = briefs.peek();
        page.gap();
        let head = match &brief.outcome {
            Some(_) => outcome(brief),
            None => display_name(&brief.name, brief.companion.as_str()),
        };
        let decision = brief.seq.map(|seq| format!(", decision {seq}")).unwrap_or_default();
        let at = brief.at.map(|at| format!(", {} UTC", rfc3339(at.0)[..19].replace('T', " "))).unwrap_or_default();
        page.wrap(0, &format!("{head}{decision}{at}"));
        // Of companions with the same text, the last one has it.
        if next.is_none_or(|next| brief.outcome.is_none() || next.text != brief.text) {
            page.wrap(2, &brief.text);
        }
        if let Some(waiting) = brief.waiting_for.as_ref().filter(|_| brief.outcome.is_none()) {
            page.wrap(2, &waits(waiting));
        }
    }
    let Some(brief) = explanation.companions.iter().find(|brief| brief.seq.is_some()) else { return };
    let option = match (&options.at, &options.message) {
        (Some(at), _) => format!(" --at '{at}'"),
        (None, Some(id)) => format!(" --message {id}"),
        (None, None) => String::new(),
    };
    page.gap();
    let room = if RoomId::parse(room).is_some() { room.to_owned() } else { format!("'{}'", room.replace('\'', "'\\''")) };
    page.wrap(0, &format!("For the whole story of one companion: tertulia why {room} {}{option}", brief.companion));
}

fn display_name(name: &str, id: &str) -> String {
    if name.to_lowercase() == id.to_lowercase() { name.to_owned() } else { format!("{name} ({id})") }
}

fn outcome(brief: &Brief) -> String {
    let outcome = match brief.outcome.unwrap_or(Outcome::Unknown) {
        Outcome::Answered => "answered it",
        Outcome::Speaking => "is about to answer it",
        Outcome::Failed => "wanted to answer it, but said nothing",
        Outcome::Silent => "stayed silent about it",
        Outcome::Waiting => "has not decided about it yet",
        Outcome::Own => "wrote it",
        Outcome::Deleted => "did not answer it: the message was deleted",
        Outcome::Cleared => "did not answer it: the room was cleared",
        Outcome::Left => "did not answer it: the companion left the room",
        Outcome::Absent => "was not in the room",
        Outcome::DeadLetter => "could not think about it: the message made the room fail",
        Outcome::Unknown => "has an outcome that this version does not know",
    };
    format!("{} {outcome}", display_name(&brief.name, brief.companion.as_str()))
}

fn waits(waiting: &WaitingFor) -> String {
    match waiting.unsettled {
        0 => waiting.text.clone(),
        count => format!("{} (messages that wait: {count})", waiting.text),
    }
}

/// The text so far.
struct Page {
    text: String,
    width: usize,
    /// The day of the last step.
    day: String,
}

impl Page {
    fn gap(&mut self) {
        self.text.push('\n');
    }

    fn story(&mut self, story: &[StoryLine]) {
        for line in story {
            let at = rfc3339(line.at.0);
            let (day, time) = at.split_once('T').unwrap_or((&at, ""));
            if day != self.day {
                self.day = day.to_owned();
                self.gap();
                self.wrap(2, &format!("{day} UTC"));
            }
            let time: String = time.chars().take(8).collect();
            let setting = line.setting.as_ref().map(|setting| format!(" [{setting}]")).unwrap_or_default();
            self.step(&format!("  {time:<8}  "), &format!("{}{setting}", line.text));
        }
    }

    fn wrap(&mut self, indent: usize, text: &str) {
        let indent = " ".repeat(indent);
        self.lines(&indent, &indent, text);
    }

    fn step(&mut self, lead: &str, text: &str) {
        self.lines(lead, &" ".repeat(INDENT), text);
    }

    fn lines(&mut self, lead: &str, rest: &str, text: &str) {
        let text = escaped(text);
        let room = self.width.saturating_sub(rest.len()).max(20);
        let mut lead = lead;
        for line in wrapped(&text, room) {
            // Writing to a String does not fail.
            let _ = writeln!(self.text, "{}{line}", escaped(lead));
            lead = rest;
        }
    }
}

/// Breaks a text into lines of at most this width. It breaks at spaces, and inside a word only if the word is longer than a line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        if used > 0 {
            lines.last_mut().expect("there is always a line").push(' ');
            used += 1;
        }
        for char in word.chars() {
            if used == width {
                lines.push(String::new());
                used = 0;
            }
            lines.last_mut().expect("there is always a line").push(char);
            used += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests;
