//! Renders a story as text: one step per line, wrapped, with terminal control characters escaped.

use std::fmt::Write as _;

use serde::Deserialize;

use super::Why;
use crate::cli::visible::line as escaped;

/// The width of a line, in columns, when the terminal's width is not known.
const WIDTH: usize = 100;
/// The indent of a step's text, in columns: two, the time, and two more.
const INDENT: usize = 12;

/// The part of the answer of `/api/why` that is rendered.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Explanation {
    companion: Option<String>,
    name: Option<String>,
    message: Option<u64>,
    #[serde(default)]
    story: Vec<Line>,
    decision: Option<Decision>,
    waiting_for: Option<Waiting>,
    #[serde(default)]
    companions: Vec<Brief>,
}

#[derive(Debug, Deserialize)]
struct Line {
    at: String,
    text: String,
}

#[derive(Debug, Deserialize)]
struct Decision {
    seq: u64,
    decision: String,
    trigger: String,
    reason: String,
    trace: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Waiting {
    text: String,
    #[serde(default)]
    unsettled: u64,
}

#[derive(Debug, Deserialize)]
struct Brief {
    companion: String,
    name: String,
    outcome: Option<String>,
    text: String,
    seq: Option<u64>,
    at: Option<String>,
    waiting_for: Option<Waiting>,
}

impl Explanation {
    pub(super) fn parse(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }
}

/// The width of a line: from `COLUMNS`, else from the terminal, limited to 50 to 160.
pub(super) fn width(columns: Option<&str>, terminal: Option<usize>) -> usize {
    columns.and_then(|columns| columns.trim().parse().ok()).or(terminal).map_or(WIDTH, |columns| columns.clamp(50, 160))
}

pub(super) fn render(explanation: &Explanation, options: &Why, is_from_server: bool, width: usize) -> String {
    let mut page = Page { text: String::new(), width, day: String::new() };
    match &explanation.companion {
        Some(companion) => one_companion(&mut page, explanation, companion, &options.room),
        None => all_companions(&mut page, explanation, options),
    }
    if !is_from_server {
        page.gap();
        page.wrap(0, "No server is running here. This was read from the store.");
    }
    page.text
}

fn one_companion(page: &mut Page, explanation: &Explanation, companion: &str, room: &str) {
    let name = display_name(explanation.name.as_deref().unwrap_or(companion), companion);
    let about = explanation.message.map(|seq| format!(", message {seq}")).unwrap_or_default();
    let head = match &explanation.decision {
        Some(Decision { seq, decision, trigger, reason, .. }) => {
            // Nothing triggers such a decision. Its recorded trigger has no meaning.
            let is_bookkeeping = matches!(reason.as_str(), "closed" | "paused" | "overflow" | "stale");
            let trigger = if is_bookkeeping { String::new() } else { format!("{trigger}, ") };
            format!("{name} in {room}{about}, decision {seq}: {decision} ({trigger}{reason})")
        }
        None if explanation.message.is_some() => format!("{name} in {room}{about}"),
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
    if let Some(trace) = explanation.decision.as_ref().and_then(|decision| decision.trace.as_ref()) {
        page.gap();
        page.wrap(0, &format!("trace {trace}"));
    }
}

fn all_companions(page: &mut Page, explanation: &Explanation, options: &Why) {
    let room = &options.room;
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
    for brief in &explanation.companions {
        page.gap();
        let head = match &brief.outcome {
            Some(_) => outcome(brief),
            None => display_name(&brief.name, &brief.companion),
        };
        let decision = brief.seq.map(|seq| format!(", decision {seq}")).unwrap_or_default();
        let at =
            brief.at.as_deref().map(|at| format!(", {} UTC", at.get(..19).unwrap_or(at).replace('T', " "))).unwrap_or_default();
        page.wrap(0, &format!("{head}{decision}{at}"));
        page.wrap(2, &brief.text);
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
    page.wrap(0, &format!("For the whole story of one companion: tertulia why {room} {}{option}", brief.companion));
}

fn display_name(name: &str, id: &str) -> String {
    if name.to_lowercase() == id.to_lowercase() { name.to_owned() } else { format!("{name} ({id})") }
}

fn outcome(brief: &Brief) -> String {
    let outcome = match brief.outcome.as_deref().unwrap_or_default() {
        "answered" => "answered it",
        "speaking" => "is about to answer it",
        "failed" => "wanted to answer it, but made no statement",
        "silent" => "stayed silent about it",
        "waiting" => "has not decided about it yet",
        "own" => "wrote it",
        "taken_back" => "did not answer it: the message was deleted",
        "cleared" => "did not answer it: the room was cleared",
        "left" => "did not answer it: the companion left the room",
        "absent" => "was not in the room",
        "set_aside" => "did not consider it: the message is a dead letter",
        _ => "has an outcome that this version does not know",
    };
    format!("{} {outcome}", display_name(&brief.name, &brief.companion))
}

fn waits(waiting: &Waiting) -> String {
    let unsettled = match waiting.unsettled {
        0 => String::new(),
        1 => "One message is unsettled. ".to_owned(),
        count => format!("{count} messages are unsettled. "),
    };
    format!("{unsettled}It waits for {}.", waiting.text)
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

    fn story(&mut self, story: &[Line]) {
        for line in story {
            let (day, time) = line.at.split_once('T').unwrap_or((line.at.as_str(), ""));
            if day != self.day {
                self.day = day.to_owned();
                self.gap();
                self.wrap(2, &format!("{day} UTC"));
            }
            let time: String = time.chars().take(8).collect();
            self.step(&format!("  {time:<8}  "), &line.text);
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
