//! A story as text: one step a line, wrapped, with nothing in it that a terminal would obey.

use std::fmt::Write as _;

use serde::Deserialize;

use super::Why;
use crate::cli::visible::line as harmless;

/// Columns of a line where the terminal does not say.
const WIDTH: usize = 100;
/// Columns before the words of a step: two, the time, two more.
const INDENT: usize = 12;

/// What `/api/why` answers, as far as it is told.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Told {
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

impl Told {
    pub(super) fn read(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }
}

/// Columns of a line, as `COLUMNS` says it, else the terminal, within reason.
pub(super) fn width(columns: Option<&str>, terminal: Option<usize>) -> usize {
    columns.and_then(|columns| columns.trim().parse().ok()).or(terminal).map_or(WIDTH, |columns| columns.clamp(50, 160))
}

/// The story as text.
pub(super) fn tell(told: &Told, asked: &Why, is_served: bool, width: usize) -> String {
    let mut page = Page { text: String::new(), width, day: String::new() };
    match &told.companion {
        Some(companion) => one(&mut page, told, companion, &asked.room),
        None => everybody(&mut page, told, asked),
    }
    if !is_served {
        page.gap();
        page.wrap(0, "No server runs here: this is what the store tells.");
    }
    page.text
}

fn one(page: &mut Page, told: &Told, companion: &str, room: &str) {
    let called = called(told.name.as_deref().unwrap_or(companion), companion);
    let about = told.message.map(|seq| format!(", message {seq}")).unwrap_or_default();
    let head = match &told.decision {
        Some(Decision { seq, decision, trigger, reason, .. }) => {
            // Nothing triggered these: the trigger on record is a formality.
            let is_bookkeeping = matches!(reason.as_str(), "closed" | "paused" | "overflow" | "stale");
            let trigger = if is_bookkeeping { String::new() } else { format!("{trigger}, ") };
            format!("{called} in {room}{about}, decision {seq}: {decision} ({trigger}{reason})")
        }
        None if told.message.is_some() => format!("{called} in {room}{about}"),
        None => format!("{called} in {room}: nothing was decided yet"),
    };
    page.wrap(0, &head);
    page.story(&told.story);
    if let Some(brief) = told.companions.first().filter(|_| told.message.is_some()) {
        page.gap();
        page.wrap(0, &outcome(brief));
        // Of a decision, the story has told the rest.
        if told.decision.is_none() {
            page.wrap(2, &brief.text);
        }
    }
    if let Some(waiting) = told.waiting_for.as_ref().filter(|_| told.message.is_none()) {
        page.gap();
        page.wrap(0, &waits(waiting));
    }
    if let Some(trace) = told.decision.as_ref().and_then(|decision| decision.trace.as_ref()) {
        page.gap();
        page.wrap(0, &format!("trace {trace}"));
    }
}

fn everybody(page: &mut Page, told: &Told, asked: &Why) {
    let room = &asked.room;
    match told.message {
        Some(seq) => page.wrap(0, &format!("Message {seq} in {room}")),
        None => page.wrap(
            0,
            &format!("Everybody in {room}: the newest decision of each{}", if asked.at.is_some() { " then" } else { "" }),
        ),
    }
    page.story(&told.story);
    for brief in &told.companions {
        page.gap();
        let told_as = match &brief.outcome {
            Some(_) => outcome(brief),
            None => called(&brief.name, &brief.companion),
        };
        let decision = brief.seq.map(|seq| format!(", decision {seq}")).unwrap_or_default();
        let at =
            brief.at.as_deref().map(|at| format!(", {} UTC", at.get(..19).unwrap_or(at).replace('T', " "))).unwrap_or_default();
        page.wrap(0, &format!("{told_as}{decision}{at}"));
        page.wrap(2, &brief.text);
        if let Some(waiting) = brief.waiting_for.as_ref().filter(|_| brief.outcome.is_none()) {
            page.wrap(2, &waits(waiting));
        }
    }
    let Some(brief) = told.companions.iter().find(|brief| brief.seq.is_some()) else { return };
    let option = match (&asked.at, &asked.message) {
        (Some(at), _) => format!(" --at '{at}'"),
        (None, Some(id)) => format!(" --message {id}"),
        (None, None) => String::new(),
    };
    page.gap();
    page.wrap(0, &format!("The whole story of one of them: tertulia why {room} {}{option}", brief.companion));
}

fn called(name: &str, id: &str) -> String {
    if name.to_lowercase() == id.to_lowercase() { name.to_owned() } else { format!("{name} ({id})") }
}

fn outcome(brief: &Brief) -> String {
    let outcome = match brief.outcome.as_deref().unwrap_or_default() {
        "answered" => "answered it",
        "speaking" => "is about to answer it",
        "failed" => "wanted to answer it, and no statement was made",
        "silent" => "stayed silent on it",
        "waiting" => "has not decided about it yet",
        "own" => "said it",
        "taken_back" => "never got to answer it: it was taken back or forgotten",
        "cleared" => "never got to answer it: the room was cleared",
        "left" => "never got to answer it: it left",
        "absent" => "was not there",
        "set_aside" => "never considered it: it was set aside",
        _ => "is not told of",
    };
    format!("{} {outcome}", called(&brief.name, &brief.companion))
}

fn waits(waiting: &Waiting) -> String {
    let heard = match waiting.unsettled {
        0 => String::new(),
        1 => "It has heard one message that is not settled. ".to_owned(),
        count => format!("It has heard {count} messages that are not settled. "),
    };
    format!("{heard}It waits for {}.", waiting.text)
}

/// The text in the making.
struct Page {
    text: String,
    width: usize,
    /// The day that the last step was told of.
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
        let text = harmless(text);
        let room = self.width.saturating_sub(rest.len()).max(20);
        let mut lead = lead;
        for line in wrapped(&text, room) {
            // Writing to a text cannot fail.
            let _ = writeln!(self.text, "{}{line}", harmless(lead));
            lead = rest;
        }
    }
}

/// Breaks a text at spaces into lines of so many characters; what has no space is broken anywhere.
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
            lines.last_mut().expect("there is always one").push(' ');
            used += 1;
        }
        for char in word.chars() {
            if used == width {
                lines.push(String::new());
                used = 0;
            }
            lines.last_mut().expect("there is always one").push(char);
            used += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests;
