//! The parts that several prompts share, and the prompt of a decision, within its token budget.

use super::card::Card;
use super::data::{char_weight, cut_middle, escape_into, escaped_weight, unmarked_name, unseparated, weight};
use super::line::Reader;
use super::texts::{FRAME_WEIGHT, HOW_TO_READ, HOW_TO_READ_SHORT, MAX_SENTENCE_WEIGHT, NEW, ROLE_PLAY, ROOM, SHORT_SCENE_WEIGHT};
use super::transcript::transcript;
use super::{Character, Prompt, Said, Scene, tokens};
use crate::id::CompanionId;
use crate::policy;
use crate::room_words::RoomWords;
use crate::trigger::Trigger;

/// The parts of the system message that depend on the character.
pub(super) struct System {
    pub(super) text: String,
    pub(super) sizes: Vec<(&'static str, usize)>,
    /// The weight that it leaves for the rest of the prompt.
    pub(super) left: usize,
}

/// The system message of a prompt with this many tokens. The weight `reserved` is left for other fixed texts. Chattiness and tone each get at most a
/// quarter of the room that the card leaves, and so do the room's instructions, which stand below everything else.
pub(super) fn system(
    character: &Character<'_>,
    card: &Card<'_>,
    how_to_read: &str,
    room_words: &RoomWords,
    reserved: usize,
    tokens: usize,
) -> System {
    let opening = format!("You are {}.", unmarked_name(character.name));
    let fixed = weight(&opening) + weight(card.tier) + weight(how_to_read) + reserved + FRAME_WEIGHT;
    let room = (tokens * 4).saturating_sub(fixed + weight(&card.text));
    let chattiness = cut_middle(character.chattiness.trim(), room / 4, char_weight);
    let tone = cut_middle(card.tone, room / 4, char_weight);
    let (chattiness, tone) = (unseparated(&chattiness), unseparated(&tone));
    let of_room = of_room(room_words, room / 4);

    // Most cards begin with these words.
    let opening = if card.text.starts_with(&*opening) { "" } else { &opening };
    let personality =
        if chattiness.is_empty() { String::new() } else { format!("Your conversational personality: {chattiness}") };
    let tones = paragraphs(&[card.tier, &tone]);
    let parts = [
        ("instructions", how_to_read),
        (card.part, &*card.text),
        ("chattiness", &*chattiness),
        ("tone", &*tones),
        ("room", &*of_room),
    ];
    System {
        text: paragraphs(&[opening, &card.text, &personality, &tones, how_to_read, &of_room]),
        sizes: sizes(&parts),
        left: room - weight(&chattiness) - weight(&tone) - weight(&of_room),
    }
}

/// The style and the instructions of a room, in at most this weight.
pub(super) fn of_room(words: &RoomWords, most: usize) -> String {
    let style = if words.is_role_play() && weight(ROLE_PLAY) <= most { ROLE_PLAY } else { "" };
    let frame = weight(&paragraphs(&[ROLE_PLAY, ROOM, &block("room-instructions", "\n")])) + 2;
    let text = cut_middle(words.instructions(), most.saturating_sub(frame), char_weight);
    let instructions = if text.is_empty() { String::new() } else { format!("{}\n", unseparated(&text)) };
    let heading = if instructions.is_empty() { "" } else { ROOM };
    paragraphs(&[style, heading, &block("room-instructions", &instructions)])
}

/// The content of a decision's prompt.
pub(super) struct Shown<'a> {
    pub(super) summary: Option<&'a str>,
    /// Messages that are settled, and the companion's own.
    pub(super) earlier: &'a [&'a Said],
    /// The messages that the decision is about.
    pub(super) new: &'a [&'a Said],
    pub(super) note: &'a str,
    pub(super) scene: &'a Scene,
}

/// The prompt of a decision. The note gets at most a quarter of the room that the system message leaves. The scene gets an eighth, and less in a
/// short decision. The summary gets a quarter of the rest, and the messages get the remaining room.
pub(super) fn decision(
    character: &Character<'_>,
    card: &Card<'_>,
    shown: &Shown<'_>,
    ending: &str,
    words: &policy::prompt::Prompt,
) -> Prompt {
    let (how_to_read, scene_room) = match words.is_short() {
        true => (HOW_TO_READ_SHORT, SHORT_SCENE_WEIGHT),
        false => (HOW_TO_READ, usize::MAX),
    };
    let how_to_read = paragraphs(&[shown.scene.audience(), how_to_read]);
    let system = system(character, card, &how_to_read, &shown.scene.words, weight(ending), words.decision_tokens);
    question(system, shown, character.id, Some(Reader { id: character.id, name: character.name }), ending, scene_room)
}

/// The prompt of a decision after its system message. `first` is the companion that is asked, or the first of several. The scene weighs at most
/// `scene_room`, without the time.
pub(super) fn question(
    system: System,
    shown: &Shown<'_>,
    first: &CompanionId,
    reader: Option<Reader<'_>>,
    ending: &str,
    scene_room: usize,
) -> Prompt {
    let System { text: system, sizes: parts, left } = system;
    let note = cut_middle(shown.note, left / 4, char_weight);
    let scene = shown.scene.sentences(first, shown.earlier, shown.new, scene_room.min(left / 8));
    let left = left - weight(&note) - weight(&scene).min(left / 8);
    let summary = quoted(shown.summary, left / 4);
    let [earlier, new] = transcript([shown.earlier, shown.new], reader, shown.scene.dates(), left - weight(&summary));

    let heading = if new.is_empty() { "" } else { NEW };
    let user = paragraphs(&[
        &block("summary", &summary),
        &block("earlier-messages", &earlier),
        heading,
        &block("messages", &new),
        &scene,
        &note,
        ending,
    ]);
    let rest = [
        ("summary", &*summary),
        ("earlier_messages", &earlier),
        ("messages", &new),
        ("scene", &scene),
        ("notes", &note),
        ("question", ending),
    ];
    Prompt::new(system, user, parts.into_iter().chain(sizes(&rest)).collect())
}

/// The sentence for the trigger of the question. Empty for a lull (docs/design/gate.md G-27), and for triggers that have a note instead.
pub(super) fn context(trigger: Trigger, count: u64, speaker: Option<&str>, words: &policy::prompt::Prompt) -> String {
    let sentence = match trigger {
        Trigger::DirectAddress => words.direct_address.clone(),
        Trigger::Interjection => words.interjection.replace("{count}", &count.to_string()),
        Trigger::Turn => words.turn.replace("{name}", &unmarked_name(speaker.unwrap_or_default())),
        Trigger::Chosen => words.chosen.clone(),
        Trigger::Lull | Trigger::Silence | Trigger::Event => String::new(),
    };
    // A sentence may repeat a placeholder many times.
    cut_middle(&sentence, MAX_SENTENCE_WEIGHT, char_weight).into_owned()
}

/// A text as one line with a JSON string. Empty if there is no text.
pub(super) fn quoted(text: Option<&str>, most: usize) -> String {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return String::new() };
    let Some(room) = most.checked_sub(3) else { return String::new() };
    let text = cut_middle(text, room, escaped_weight);
    if text.is_empty() {
        return String::new();
    }
    let mut line = String::from("\"");
    escape_into(&mut line, &text);
    line.push_str("\"\n");
    line
}

/// Lines between delimiters. Empty if there are no lines.
pub(super) fn block(name: &str, lines: &str) -> String {
    if lines.is_empty() { String::new() } else { format!("<{name}>\n{lines}</{name}>") }
}

/// Joins the texts that are not empty, with empty lines between them.
pub(super) fn paragraphs(texts: &[&str]) -> String {
    texts.iter().copied().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// The estimated tokens of the parts that are not empty.
pub(super) fn sizes(parts: &[(&'static str, &str)]) -> Vec<(&'static str, usize)> {
    parts.iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (*name, tokens(text))).collect()
}
