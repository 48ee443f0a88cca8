//! Builds the prompt of a statement: the talk as turns, as models are trained to read it, followed by all parts that change from one statement to the
//! next (docs/adr/0013-statements-as-turns.md).

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::card::for_statement;
use super::data::{
    char_weight, cut_middle, escape_into, escaped_weight, plain_name, plain_words, unmarked_name, unseparated, weight,
};
use super::form::pass_form;
use super::frame::{System, block, paragraphs, quoted, sizes, system};
use super::line::{
    Reader, STAMP_WEIGHT, beginning, beginnings, cut_line, is_whole, kept_line_end, poll_line, poll_of, short_line,
};
use super::lore::lore;
use super::recalled::{self, Found};
use super::room::{SMALL, how_to_read_turns, is_small, statement_ending_weight, statement_name_weight};
use super::texts::{ABOUT_THEMSELVES, ELSEWHERE, FRAME_WEIGHT, LORE, MISSED, NEW, NOTE, OPENING, PEOPLE, REASON, SUMMARY};
use super::transcript::left_out;
use super::window::first_shown;
use super::{Character, Prompt, Said, Scene, StatementInput, Turn, tokens};
use crate::id::{PersonId, Seq};
use crate::message::{Author, Recalled, Role};
use crate::policy::prompt::Prompt as Words;

/// The maximum weight of all parts that change from one statement to the next.
const MAX_CHANGING_WEIGHT: usize = 4_000;
/// The weight of the marks around a turn in a model's template.
const TURN_WEIGHT: usize = 16;
/// An upper bound of the weight of the texts around a talk.
const MAX_FRAME_OF_TALK: usize = 100;
/// The number of newest messages that recalled ones never displace.
const KEPT: usize = 10;

/// The number of newest messages that a small prompt shows before it has a summary or recalled messages.
const KEPT_IN_SMALL: usize = 20;
/// How often the room of the parts that change is halved for these messages.
const MOST_HALVINGS: usize = 5;

/// The message with which the talk begins.
#[derive(Clone, Copy)]
enum Begin {
    /// The same message as before, as long as possible.
    Seldom,
    /// The oldest message that fits.
    AtOldest,
}

/// The form of the lines of a talk.
#[derive(Clone, Copy)]
struct Form<'a> {
    reader: Reader<'a>,
    /// Whether the lines are short, because the prompt is small.
    is_short: bool,
    /// All messages, which may be by namesakes.
    talk: &'a [&'a Said],
}

/// A message of the talk.
struct Item<'a> {
    said: &'a Said,
    /// Its line, or the companion's own text.
    text: String,
    is_own: bool,
    /// For own text: the lines that say that it was cut off, and what poll is below it.
    cut: String,
}

impl<'a> Item<'a> {
    /// A message with at most the weight `most`. None if that is impossible.
    fn new(said: &'a Said, begin: &str, form: Form<'_>, most: usize) -> Option<Self> {
        let message = &*said.message;
        let Form { reader, is_short, talk } = form;
        if !message.is_by(reader.id) {
            let from = &message.from;
            let is_namesake = |other: &Author| other.name == from.name && (other.role, &other.id) != (from.role, &from.id);
            let text = match is_short {
                true => short_line(said, reader, talk.iter().any(|other| is_namesake(&other.message.from)), most)?,
                false => [begin, &*kept_line_end(said, most)?].concat(),
            };
            return Some(Self { said, text, is_own: false, cut: String::new() });
        }
        let mut cut = message.cut.as_deref().map(|cut| cut_line(cut, &message.text, most / 4, is_short)).unwrap_or_default();
        cut.extend(poll_of(message).map(|poll| poll_line(poll, most / 4, is_short)));
        let room = most.checked_sub(weight(&cut))?;
        // Escaping may add a space to each mark.
        let text = match is_whole(said, room / 2) {
            true => said.line.get(&said.message, true, || plain_words(&message.text)).to_string(),
            false => plain_words(&cut_middle(&message.text, room / 2, char_weight)),
        };
        Some(Self { said, text, is_own: true, cut })
    }

    fn weight(&self) -> usize {
        weight(&self.text) + weight(&self.cut) + if self.is_own { 2 * TURN_WEIGHT } else { 0 }
    }
}

/// The prompt of a statement within its token budget.
///
/// The room of the talk depends only on the character and the settings. The parts that change from one statement to the next have a room of their
/// own. So the talk begins with the same message as long as possible.
pub(super) fn statement(
    character: &Character<'_>,
    scene: &Scene,
    statement: &StatementInput,
    ending: &str,
    words: &Words,
) -> Prompt {
    let mut talk = talk(character, scene, statement, words);
    let mut situation = situation(character, scene, statement, ending, words, &talk);
    for halvings in 0..if talk.system.left < SMALL { MOST_HALVINGS } else { 0 } {
        // In a small prompt, more messages are worth more than a stable beginning. The talk gets all room that the situation leaves.
        let taken = weight(&situation.text) + weight(&talk.note) + MAX_FRAME_OF_TALK;
        let room = (talk.system.left + talk.reserved + FRAME_WEIGHT).saturating_sub(taken);
        talk.shown = shown(&talk.talk, talk.new_from, form(&talk.talk, character, words), scene.dates(), room, Begin::AtOldest);
        let is_enough = talk.shown.len() >= KEPT_IN_SMALL.min(talk.talk.len());
        if !is_enough && halvings + 1 < MOST_HALVINGS {
            (talk.changing, talk.recall_room) = (talk.changing / 2, talk.recall_room / 2);
            talk.lore_room /= 2;
        }
        situation = self::situation(character, scene, statement, ending, words, &talk);
        if is_enough {
            break;
        }
    }
    let begin = talk.talk.len() - talk.shown.len();
    let new_from = talk.new_from.saturating_sub(begin);
    let note_at = talk.shown.len().saturating_sub(scene.words.depth());
    let turns = turns(&talk.shown, new_from, (&talk.note, note_at), &situation.text);
    let size = |items: &[Item<'_>]| items.iter().map(|item| tokens(&item.text) + tokens(&item.cut)).sum();
    let (before, after) = talk.shown.split_at(new_from);
    let sizes_of_talk =
        [("earlier_messages", size(before)), ("messages", size(after))].into_iter().filter(|(_, tokens)| *tokens > 0);
    let System { text: system, sizes, .. } = talk.system;
    Prompt {
        system,
        turns,
        sizes: sizes.into_iter().chain(sizes_of_talk).chain(situation.sizes).collect(),
        recalled: situation.recalled,
        lore: situation.lore,
    }
}

/// The parts that change from one statement to the next.
struct Situation {
    text: String,
    sizes: Vec<(&'static str, usize)>,
    recalled: Vec<Recalled>,
    lore: Vec<Arc<str>>,
}

fn situation(
    character: &Character<'_>,
    scene: &Scene,
    statement: &StatementInput,
    ending: &str,
    words: &Words,
    of: &Talk<'_>,
) -> Situation {
    let StatementInput { input, reason, summary_upto, left_out: unread, .. } = statement;
    let Talk { changing, talk, new_from, shown, recall_room, .. } = of;
    let (reader, zone) = (Reader { id: character.id, name: character.name }, &scene.zone);
    let is_own = |said: &Said| said.message.is_by(character.id);
    let has_missed = talk[input.recent.len()..*new_from].iter().any(|said| !is_own(said));
    let begin = talk.len() - shown.len();
    let new_from = new_from.saturating_sub(begin);

    let note = input.note(words);
    let note = cut_middle(note.as_deref().unwrap_or_default(), changing / 8, char_weight);
    let missing = unread + talk[..begin].iter().filter(|said| said.seq > *summary_upto).count();
    let summary = quoted(input.summary.as_deref(), changing / 2);
    let reason = quoted(reason.as_deref(), changing / 8);
    let [earlier, new] = [&talk[begin..begin + new_from], &talk[begin + new_from..]];
    let themselves = themselves(scene, &talk[begin..], changing / 4);
    let scene = scene.sentences(character.id, earlier, new, changing / 4);
    let found = Found { messages: &statement.recalled, notes: &statement.notes };
    let people_room = if statement.people.is_empty() { 0 } else { people_room(statement).min(recall_room / 2) };
    let elsewhere_weight = if statement.elsewhere.is_empty() { 0 } else { weight(ELSEWHERE) };
    let room = (recall_room - people_room).min(words.recall_tokens * 4).saturating_sub(elsewhere_weight);
    let (older, mut recalled) = recalled::recalled(found, &talk[begin..], reader, zone, room);
    let (people, about) =
        recalled::people(&statement.people, &recalled, &talk[begin..], zone, statement.page_tokens * 4, people_room);
    recalled.extend(about);
    let (world, entries) = lore(statement.lore.as_deref().unwrap_or_default(), of.lore_room);
    let heading = |text, heading| if str::is_empty(text) { "" } else { heading };
    let text = paragraphs(&[
        heading(&summary, SUMMARY),
        &block("summary", &summary),
        left_out(missing).trim_end(),
        heading(&older, recalled::heading(&statement.notes)),
        &block("older-messages", &older),
        heading(&people, PEOPLE),
        &block("people", &people),
        if recalled.iter().any(|of| of.here().is_none()) { ELSEWHERE } else { "" },
        heading(&themselves, ABOUT_THEMSELVES),
        &block("about-themselves", &themselves),
        heading(&world, LORE),
        &block("lore", &world),
        &scene,
        if has_missed { MISSED } else { "" },
        heading(&reason, REASON),
        &block("your-reason-to-speak", &reason),
        &note,
        ending,
    ]);
    let sizes = sizes(&[
        ("summary", &*summary),
        ("recalled", &older),
        ("people", &people),
        ("about_themselves", &themselves),
        ("lore", &world),
        ("scene", &scene),
        ("reason", &reason),
        ("notes", &note),
        ("question", ending),
    ]);
    Situation { text, sizes, recalled, lore: entries }
}

/// What the authors of these messages say of themselves, a line each, those who spoke last first.
fn themselves(scene: &Scene, talk: &[&Said], most: usize) -> String {
    let (mut lines, mut seen) = (String::new(), BTreeSet::new());
    let most = if scene.described.is_empty() { 0 } else { most.saturating_sub(weight(ABOUT_THEMSELVES)) };
    for from in talk.iter().rev().map(|said| &said.message.from).filter(|from| from.role == Role::Person) {
        let Some(text) = scene.described.get(&PersonId::from(&*from.id)).filter(|_| seen.insert(&*from.id)) else { continue };
        let mut line = "{\"from\":\"".to_owned();
        escape_into(&mut line, &plain_name(&from.name));
        line.push_str("\",\"text\":\"");
        let Some(room) = most.checked_sub(weight(&lines) + weight(&line) + 3) else { break };
        escape_into(&mut line, &cut_middle(text, room, escaped_weight));
        line.push_str("\"}\n");
        lines.push_str(&line);
    }
    lines
}

/// The maximum weight of notes about people: those about three of them.
const fn people_room(statement: &StatementInput) -> usize {
    statement.page_tokens * 4 * 3
}

/// A talk, and the part of it that is shown.
struct Talk<'a> {
    system: System,
    /// The maximum weight of the fixed texts at the end. The system message leaves room for them.
    reserved: usize,
    /// The maximum weight of the parts that change from one statement to the next.
    changing: usize,
    /// The room's note, as it stands within the talk.
    note: String,
    /// All messages that could be shown, oldest first.
    talk: Vec<&'a Said>,
    /// The index of the first new message.
    new_from: usize,
    shown: Vec<Item<'a>>,
    /// The maximum weight of recalled messages. 0 if the whole talk is shown.
    recall_room: usize,
    /// The maximum weight of entries of lorebooks.
    lore_room: usize,
}

fn talk<'a>(character: &Character<'_>, scene: &Scene, statement: &'a StatementInput, words: &Words) -> Talk<'a> {
    let StatementInput { input, left_out, .. } = statement;
    let pass = if statement.may_pass { weight(&pass_form(&unmarked_name(character.name))) } else { 0 };
    let reserved = statement_ending_weight(words, statement_name_weight(character.name, words)) + pass;
    let how_to_read = paragraphs(&[scene.audience(), how_to_read_turns(words)]);
    let system =
        system(character, &for_statement(character, words), &how_to_read, &scene.words, reserved, words.statement_tokens);
    let changing = (system.left / 3).min(MAX_CHANGING_WEIGHT);
    let note = note_of(scene, system.left / 8);
    let mut room = (system.left - changing).saturating_sub(weight(&note));
    let talk: Vec<&Said> = input.recent.iter().chain(&input.buffer).collect();
    let form = form(&talk, character, words);
    let is_own = |said: &&Said| said.message.is_by(character.id);
    let new_from = talk.iter().rposition(is_own).map_or(0, |own| own + 1).max(input.recent.len());
    let mut shown = self::shown(&talk, new_from, form, scene.dates(), room, Begin::Seldom);
    // Up to a quarter of the room may stay empty, because the talk keeps its first message for long.
    let beside_newest = |shown: &[Item<'_>], room: usize| {
        let kept: usize = shown.iter().rev().take(KEPT).map(Item::weight).sum();
        // A small prompt keeps a sixth of its room for what is looked up.
        room.saturating_sub((kept + MAX_FRAME_OF_TALK) * 4 / 3).max(room / 6)
    };
    let lore_room = statement.lore.as_ref().map_or(0, |_| (words.lore_tokens * 4).min(beside_newest(&shown, room)));
    if lore_room > 0 {
        // The room is reserved whether or not an entry is found, so that the talk keeps its first message for long.
        room -= lore_room;
        shown = self::shown(&talk, new_from, form, scene.dates(), room, Begin::Seldom);
    }
    let mut recall_room = (words.recall_tokens * 4 + people_room(statement)).min(room / 2);
    if shown.len() == talk.len() && *left_out == 0 && statement.elsewhere.is_empty() && !statement.is_anew {
        recall_room = 0;
    }
    if recall_room > 0 {
        recall_room = recall_room.min(beside_newest(&shown, room));
        shown = self::shown(&talk, new_from, form, scene.dates(), room - recall_room, Begin::Seldom);
    }
    Talk { system, reserved, changing, note, talk, new_from, shown, recall_room, lore_room }
}

fn form<'a>(talk: &'a [&'a Said], character: &Character<'a>, words: &Words) -> Form<'a> {
    Form { reader: Reader { id: character.id, name: character.name }, is_short: is_small(words), talk }
}

/// The message before which older ones may be recalled: the first one that a statement's prompt shows. None if nothing is recalled, because the whole
/// talk is shown or recall is turned off.
pub(super) fn recalls_before(character: &Character<'_>, scene: &Scene, statement: &StatementInput, words: &Words) -> Option<Seq> {
    let Talk { shown, recall_room, .. } = talk(character, scene, statement, words);
    shown.first().filter(|_| recall_room > 0).map(|item| item.said.seq)
}

/// The newest messages of a talk that are shown, oldest first.
fn shown<'a>(
    talk: &[&'a Said],
    new_from: usize,
    form: Form<'_>,
    zone: Option<&TimeZone>,
    room: usize,
    begin: Begin,
) -> Vec<Item<'a>> {
    let is_own = |said: &Said| said.message.is_by(form.reader.id);
    let times = talk.iter().filter(|said| !is_own(said)).map(|said| said.at);
    let mut begins = beginnings(times, zone).into_iter().rev();
    let (mut items, mut left) = (Vec::new(), room.saturating_sub(TURN_WEIGHT + OPENING.len() + STAMP_WEIGHT));
    for said in talk.iter().rev() {
        let begin = if is_own(said) { String::new() } else { begins.next().unwrap_or_default() };
        let item = Item::new(said, &begin, form, room / 2).filter(|item| item.weight() <= left);
        let Some(item) = item else { break };
        left -= item.weight();
        items.push(item);
    }
    items.reverse();
    let missing = talk.len() - items.len();
    let before = missing.checked_sub(1).map(|last| talk[last].seq);
    let numbers: Vec<_> = items.iter().map(|item| item.said.seq).collect();
    let weights: Vec<_> = items.iter().map(Item::weight).collect();
    let first = match begin {
        Begin::Seldom => first_shown(before, &numbers, &weights, room, new_from.saturating_sub(missing)),
        Begin::AtOldest => 0,
    };
    let mut shown = items.split_off(first);
    // The first line that is shown always has its time.
    if let Some(line) = shown.iter_mut().find(|item| !item.is_own && !form.is_short) {
        let end = kept_line_end(line.said, room / 2).unwrap_or_default();
        line.text = beginning(line.said.at, zone) + &end;
    }
    shown
}

/// The room's note with its heading, in at most this weight. Empty if there is none.
fn note_of(scene: &Scene, most: usize) -> String {
    let frame = weight(NOTE) + 2 * weight("</room-note>\n") + 4;
    let note = cut_middle(scene.words.note(), most.saturating_sub(frame), char_weight);
    if note.is_empty() {
        String::new()
    } else {
        format!("{NOTE}\n{}\n", block("room-note", &format!("{}\n", unseparated(&note))))
    }
}

/// The talk as alternating turns. The first and the last are user turns. The last one ends with the situation. The note stands before the message at
/// its index.
fn turns(shown: &[Item<'_>], new_from: usize, (note, note_at): (&str, usize), situation: &str) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut user = String::new();
    for (at, item) in shown.iter().enumerate() {
        if at == note_at {
            user.push_str(note);
        }
        if item.is_own {
            match turns.last_mut() {
                Some(Turn::Own(own)) if user.is_empty() => {
                    own.push_str("\n\n");
                    own.push_str(&item.text);
                }
                before => {
                    if before.is_none() && user.is_empty() {
                        user.push_str(OPENING);
                    }
                    turns.push(Turn::User(std::mem::take(&mut user)));
                    turns.push(Turn::Own(item.text.clone()));
                }
            }
            user.push_str(&item.cut);
        } else {
            if at == new_from {
                user.push_str(if user.is_empty() { "" } else { "\n" });
                user.push_str(NEW);
                user.push('\n');
            }
            user.push_str(&item.text);
        }
    }
    if note_at == shown.len() {
        user.push_str(note);
    }
    user.push_str(if user.is_empty() { "" } else { "\n" });
    user.push_str(situation);
    turns.push(Turn::User(user));
    turns
}
