//! The sentences of a story, one for each event. The texts are in the crate `texts`, in the section `why` of each language.
//!
//! * `question`: the reason for a question.
//! * `course`: the consequences of a decision.
//! * `fate`: the outcome of a message for one companion.
//! * `aloud`: a spoken reply, and the part that was played.
//! * `round`: the votes and the selected speaker.
//! * `streak`: the number of consecutive statements of companions.

mod aloud;
mod course;
pub(crate) mod fate;
mod question;
pub(crate) mod round;
mod streak;
mod tools;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use super::Subject;
use crate::domain::attachment::Kind;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Decided, Event, Recorded, Segment};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Address, Author, Message, NoteWords, Role};
use crate::domain::note::Note;
use crate::domain::text::shortened;
use crate::journal::redaction::is_redacted;
use crate::ports::backend::decisions::StoryLine;
use crate::texts::Language;
use aloud::cut_off;
pub(crate) use course::{consequence, disclosed};
pub(crate) use question::question_line;
use streak::in_a_row;
pub(crate) use tools::{lapsed_call, tool_call};

/// A companion's name in the room.
pub(crate) type Name<'a> = &'a dyn Fn(&CompanionId) -> String;

/// The further processing of a speech segment, or of a voice note.
#[derive(Clone, Copy)]
pub(crate) enum HandingOver {
    /// The segment is noise or echo, so it becomes no message.
    Noise,
    Echo,
    /// The segment is part of the message with this number.
    Done(Seq),
    Cleared,
    Waiting,
    /// The words of the voice note are awaited.
    Transcribing,
    /// The search ended before the end of the record.
    Unknown,
}

/// The maximum length of a quotation, in characters.
const QUOTED_CHARS: usize = 200;

/// The setting with which an operator can influence the event of a sentence.
const SETTINGS: &[(&str, &str)] = &[
    ("why.asked.interjection", "interjection"),
    ("why.asked.lull", "text_lull_timeout"),
    ("why.asked.silence", "starts_after"),
    ("why.causes.max_turns", "turn_taking.max_turns"),
    ("why.causes.reopen_after", "closing.reopen_after"),
    ("why.course.asked_to_stop", "reply.stop_phrases"),
    ("why.course.disclosed", "safety.notice"),
    ("why.course.late", "turn_taking.floor_timeout_secs"),
    ("why.course.pause", "turn_taking.turn_delay_secs"),
    ("why.course.said_rest", "voice.max_spoken_chars"),
    ("why.course.stalled", "voice.stall_timeout_secs"),
    ("why.decided.stopped", "reply.stop_phrases"),
    ("why.episode.began", "closing.episode_idle_secs"),
    ("why.episode.over", "closing.episode_idle_secs"),
    ("why.interrupted.stop_word", "speech.words"),
    ("why.limits.addresses", "gate.addresses_per_minute"),
    ("why.limits.evaluations", "gate.evaluations_per_hour"),
    ("why.limits.guild_evaluations", "gate.guild_evaluations_per_hour"),
    ("why.limits.guild_statements", "gate.guild_statements_per_day"),
    ("why.limits.guild_tokens", "models.guild_tokens_per_day"),
    ("why.reasons.backchannel", "speech.words"),
    ("why.reasons.cancelled", "reply.stop_phrases"),
    ("why.reasons.event", "gate.acknowledgements_per_minute"),
    ("why.reasons.loop_guard", "turn_taking.max_companion_streak"),
    ("why.reasons.loop_guard_all", "turn_taking.max_companion_streak"),
    ("why.reasons.loop_guard_late", "turn_taking.max_companion_streak"),
    ("why.reasons.loop_guard_late_all", "turn_taking.max_companion_streak"),
    ("why.reasons.no_initiative", "quiet_hours"),
    ("why.reasons.other_addressed", "gate.skip_when_other_addressed"),
    ("why.reasons.overflow", "gate.max_buffer"),
    ("why.reasons.stale", "gate.stale_after_secs, gate.stale_address_after_secs"),
    ("why.rules.closed", "closing.reopen_after"),
    ("why.rules.guild_quiet", "gate.guild_quiet_hours"),
    ("why.rules.irrelevant", "gate.pre_gate_threshold"),
    ("why.rules.minors", "minors"),
    ("why.rules.quiet", "quiet_hours"),
    ("why.rules.room_quiet", "quiet_hours"),
    ("why.rules.unreadable", "models.side"),
    ("why.speech.noise", "speech.noise"),
    ("why.voice_note.no_recogniser", "speech.recognition"),
    ("why.voice_note.off", "speech.voice_notes"),
    ("why.voice_note.used_up", "speech.guild_minutes_per_day"),
    ("why.speech.waiting", "voice_lull_timeout, voice.address_timeout_secs"),
];

/// A sentence, and the setting with which an operator can influence its event.
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) setting: Option<&'static str>,
}

impl Told {
    pub(crate) fn new(language: Language, key: &str, values: &[(&str, &dyn Display)]) -> Self {
        let setting = SETTINGS.iter().find(|(of, _)| *of == key).map(|(_, setting)| *setting);
        Self { text: language.say(key, values), setting }
    }

    /// Appends another sentence.
    pub(crate) fn and(mut self, next: Option<Self>) -> Self {
        if let Some(next) = next {
            self.text = format!("{} {}", self.text, next.text);
            self.setting = self.setting.or(next.setting);
        }
        self
    }

    pub(crate) fn line(self, recorded: &Recorded, event: &str) -> StoryLine {
        let setting = self.setting.map(Into::into);
        StoryLine { at: recorded.at.into(), seq: Some(recorded.seq), event: event.into(), text: self.text, setting }
    }
}

impl Subject {
    /// A sentence about the companion with these values and `{name}`.
    pub(crate) fn sentence(&self, key: &str, values: &[(&str, &dyn Display)]) -> Told {
        Told::new(self.language, key, &[&[("name", &self.name as &dyn Display)][..], values].concat())
    }

    /// Like [`Subject::sentence`], without the setting.
    pub(crate) fn say(&self, key: &str, values: &[(&str, &dyn Display)]) -> String {
        self.sentence(key, values).text
    }
}

/// The author's name, or `Somebody` if it was deleted.
pub(crate) fn author(message: &Message, language: Language) -> String {
    name_of(&message.from, language)
}

fn name_of(person: &Author, language: Language) -> String {
    if person.name.is_empty() { language.say("why.somebody", &[]) } else { person.name.to_string() }
}

/// Quotes a message with its author and addressees. `None` if the event is not a message.
pub(crate) fn quoted(recorded: &Recorded, name: Name<'_>, language: Language) -> Option<StoryLine> {
    let Event::Said { message, .. } = &recorded.event else { return None };
    let mut who = author(message, language);
    if message.from.role == Role::Bot {
        who = language.say("why.program", &[("who", &who)]);
    }
    let (whom, text) = (addressees([message], name, language), cut(&message.text));
    let kind = message.kind.as_deref().unwrap_or_default();
    let key = match (whom.is_empty(), message.kind.is_some()) {
        _ if is_redacted(message) => "why.message.gone",
        _ if message.reminder.is_some() && message.background => "why.message.reminder_posted",
        _ if message.reminder.is_some() => "why.message.reminder",
        (true, false) => "why.message.said",
        (false, false) => "why.message.said_to",
        (true, true) => "why.message.event",
        (false, true) => "why.message.event_to",
    };
    let told = Told::new(language, key, &[("who", &who), ("whom", &whom), ("kind", &kind), ("text", &text)]);
    Some(told.and(cut_off(message, language)).line(recorded, "message"))
}

/// Quotes a note of another room, if it may be quoted. `None` if the event is no note.
pub(crate) fn noted_elsewhere(recorded: &Recorded, may_quote: &dyn Fn(&Note) -> bool, language: Language) -> Option<StoryLine> {
    let Event::Noted(note) = &recorded.event else { return None };
    let key = match (note.is_redacted(), may_quote(note)) {
        (true, _) => "why.recalled.note_gone",
        (false, true) => "why.recalled.noted_elsewhere",
        (false, false) => "why.recalled.note_hidden",
    };
    let line =
        Told::new(language, key, &[("who", &name_of(&note.said_by, language)), ("text", &note.text)]).line(recorded, "noted");
    // The page links only to messages of the same room.
    Some(StoryLine { seq: None, ..line })
}

/// Names the entries of lorebooks that were in the prompt of a statement. `None` if there were none.
pub(crate) fn lore(recorded: &Recorded, language: Language) -> Option<StoryLine> {
    let Event::Said { message, .. } = &recorded.event else { return None };
    let names: Vec<_> = message.lore.iter().map(|name| cut(name)).collect();
    let told = Told::new(language, "why.lore", &[("names", &listed(&names, language))]);
    (!names.is_empty()).then(|| told.line(recorded, "lore"))
}

/// Says that pictures which were posted since the companion's last statement were not in the prompt of this one. `None` if there are none.
pub(crate) fn unseen_pictures(recorded: &Recorded, before: &[Recorded], who: &Subject) -> Option<StoryLine> {
    let Event::Said { message: statement, .. } = &recorded.event else { return None };
    let said = before.iter().rev().filter(|earlier| earlier.seq < recorded.seq).filter_map(|earlier| {
        let Event::Said { message, .. } = &earlier.event else { return None };
        Some((earlier.seq, message))
    });
    let since = said.take_while(|(_, message)| message.from.role != Role::Companion || *message.from.id != *who.id.as_str());
    let unseen = since.filter(|(seq, _)| !statement.files_of.contains(seq)).flat_map(|(_, message)| &message.attachments);
    let count = unseen.filter(|file| file.kind == Kind::Image).count();
    (count > 0).then(|| who.sentence("why.unseen_pictures", &[("count", &count)]).line(recorded, "unseen_pictures"))
}

/// Quotes an older message or a note that was recalled for a statement. `None` if the event is neither.
pub(crate) fn recalled(recorded: &Recorded, language: Language) -> Option<StoryLine> {
    if let Event::Noted(note) = &recorded.event {
        let key = if note.is_redacted() { "why.recalled.note_gone" } else { "why.recalled.noted" };
        let line = Told::new(language, key, &[("who", &name_of(&note.said_by, language)), ("text", &note.text)]);
        return Some(line.line(recorded, "noted"));
    }
    let Event::Said { message, said_at, .. } = &recorded.event else { return None };
    let key = if is_redacted(message) { "why.recalled.gone" } else { "why.recalled.said" };
    let (who, text) = (author(message, language), cut(&message.text));
    let line = Told::new(language, key, &[("who", &who), ("text", &text)]).line(recorded, "recalled");
    Some(StoryLine { at: said_at.unwrap_or(recorded.at).into(), ..line })
}

/// The companions and others that these messages address. Empty without an addressee.
fn addressees<'a>(messages: impl IntoIterator<Item = &'a Message>, name: Name<'_>, language: Language) -> String {
    let (mut companions, mut others) = (BTreeSet::new(), false);
    for message in messages {
        companions.extend(&message.address.companions);
        others |= message.address.others;
    }
    let mut names: Vec<_> = companions.into_iter().map(name).collect();
    names.extend(others.then(|| language.say("why.somebody_else", &[])));
    listed(&names, language)
}

/// Joins names for a sentence: `Ana, Ben and Cleo`.
pub(crate) fn listed(names: &[String], language: Language) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => language.say("why.and", &[("before", &most.join(", ")), ("last", last)]),
    }
}

/// A question of this companion without an answer, or an external companion's missing vote.
pub(crate) fn failure(recorded: &Recorded, who: &Subject) -> Option<StoryLine> {
    let Event::Unanswered { companion, error, back_off, .. } = &recorded.event else { return None };
    (*companion == who.id).then(|| {
        let retry = who.sentence("why.errors.retry", &[("time", &span(*back_off, who.language))]);
        let setting = match &**error {
            "out_of_tokens" => Some("prompt.max_side_answer_tokens"),
            "too_long" => Some("prompt.decision_tokens"),
            "timeout" if !who.is_external => Some("models.side.timeout_secs"),
            _ => None,
        };
        Told { setting, ..failed(who, error).and(Some(retry)) }.line(recorded, "error")
    })
}

/// The reason why there is no answer. A code without a sentence is shown as it is.
pub(crate) fn failed(who: &Subject, error: &str) -> Told {
    let is_of_program = who.is_external && error == "timeout";
    let key = format!("why.errors.{}", if is_of_program { "external" } else { error });
    let told = who.sentence(&key, &[]);
    if told.text == key { who.sentence("why.errors.other", &[("code", &error)]) } else { told }
}

/// The reason why there is no statement.
pub(crate) fn statement_failed(who: &Subject, error: &str, category: Option<&str>) -> Told {
    let told = match category {
        Some(category) => who.sentence("why.errors.moderated", &[("category", &category)]),
        None => failed(who, error),
    };
    let setting = match error {
        "moderation_failed" => Some("safety.moderation_fails"),
        "out_of_tokens" | "only_thoughts" => Some("prompt.max_main_answer_tokens"),
        "too_long" => Some("prompt.statement_tokens"),
        "timeout" if !who.is_external => Some("models.main.timeout_secs"),
        _ => None,
    };
    Told { setting, ..told.and(Some(who.sentence("why.errors.silent", &[]))) }
}

/// The companion's decision and its reason. `before` are the events before it.
pub(crate) fn decision(who: &Subject, decided: &Decided, before: &[Recorded], name: Name<'_>) -> Told {
    let is_yes = decided.decision == Decision::Yes;
    let of = |yes, no, values: &[(&str, &dyn Display)]| who.sentence(if is_yes { yes } else { no }, values);
    let Some(call) = &decided.call else { return decision_without_model(who, decided, before, name) };
    match (decided.reason, &decided.why) {
        (Reason::Unreadable, _) => {
            let answer = if call.answer.is_empty() { "…".to_owned() } else { cut(&call.answer) };
            of("why.decided.unreadable_yes", "why.decided.unreadable_no", &[("answer", &answer)])
        }
        (Reason::Budget, _) => who.sentence("why.decided.over_budget", &[]),
        (_, Some(why)) => of("why.decided.yes_because", "why.decided.no_because", &[("reason", &cut(why))]),
        (_, None) => of("why.decided.yes", "why.decided.no", &[]),
    }
}

/// The loop guard kept these companions from speaking.
pub(crate) fn loop_guard(names: &[String], before: &[Recorded], language: Language) -> Told {
    let (count, is_late) = in_a_row(before);
    let key = match (names.len(), is_late) {
        (..=1, false) => "why.reasons.loop_guard",
        (..=1, true) => "why.reasons.loop_guard_late",
        (_, false) => "why.reasons.loop_guard_all",
        (_, true) => "why.reasons.loop_guard_late_all",
    };
    Told::new(language, key, &[("name", &listed(names, language)), ("count", &count)])
}

fn decision_without_model(who: &Subject, decided: &Decided, before: &[Recorded], name: Name<'_>) -> Told {
    let reason = decided.reason;
    if reason == Reason::External {
        let is_yes = decided.decision == Decision::Yes;
        return who.sentence(if is_yes { "why.decided.external_yes" } else { "why.decided.external_no" }, &[]);
    }
    if reason == Reason::Cancelled && decided.ticket.is_some() {
        return who.sentence("why.decided.stopped", &[]);
    }
    if reason == Reason::LoopGuard {
        return loop_guard(&[who.name.to_string()], before, who.language);
    }
    if decided.by_role {
        return who.sentence("why.reasons.by_role", &[]);
    }
    let addressed = before.iter().filter(|earlier| decided.messages.contains(&earlier.seq)).filter_map(|earlier| {
        let Event::Said { message, .. } = &earlier.event else { return None };
        (message.address != Address::default()).then_some(message)
    });
    let addressed: Vec<_> = addressed.collect();
    let count = if reason == Reason::OtherAddressed { addressed.len().max(1) } else { decided.messages.len() };
    let mut whom = addressees(addressed, name, who.language);
    if whom.is_empty() {
        whom = who.say("why.somebody_else", &[]);
    }
    who.sentence(&format!("why.reasons.{reason}"), &[("count", &count), ("whom", &whom)])
}

/// Quotes a speech segment with its speaker.
pub(crate) fn heard(segment: &Segment, language: Language) -> Told {
    let key = if segment.is_redacted() { "why.speech.gone" } else { "why.speech.heard" };
    Told::new(language, key, &[("who", &segment.from.name), ("text", &cut(&segment.text))])
}

/// A voice note, with who recognised its words or why they are missing. `None`: the message is none.
pub(crate) fn voice_note(message: &Message, language: Language) -> Option<Told> {
    let note = message.voice_note.as_ref().filter(|_| !is_redacted(message))?;
    let secs = (note.ms as f64 / 1_000.0).round();
    let sent = Told::new(language, "why.voice_note.sent", &[("who", &message.from.name), ("secs", &secs)]);
    Some(match &note.words {
        Some(NoteWords::Heard { provider, .. }) => {
            sent.and(Some(Told::new(language, "why.voice_note.heard", &[("service", provider)])))
        }
        Some(NoteWords::Missing { why, .. }) => sent.and(Some(Told::new(language, &format!("why.voice_note.{why}"), &[]))),
        Some(NoteWords::Awaited) | None => sent,
    })
}

/// The further processing of a speech segment, in words.
pub(crate) fn handed_over(handing_over: HandingOver, language: Language) -> (&'static str, Told) {
    let (event, key) = match handing_over {
        HandingOver::Done(message) => {
            return ("handed_over", Told::new(language, "why.speech.handed_over", &[("message", &message)]));
        }
        HandingOver::Noise => ("rule", "why.speech.noise"),
        HandingOver::Echo => ("rule", "why.speech.echo"),
        HandingOver::Cleared => ("cleared", "why.speech.cleared"),
        HandingOver::Waiting => ("waiting", "why.speech.waiting"),
        HandingOver::Transcribing => ("waiting", "why.speech.transcribing"),
        HandingOver::Unknown => ("waiting", "why.speech.unknown"),
    };
    (event, Told::new(language, key, &[]))
}

/// A change of the companion's closing stage, and its cause.
pub(crate) fn stage_changed(recorded: &Recorded, who: &Subject) -> Option<StoryLine> {
    let Event::StageChanged { companion, to, cause, .. } = &recorded.event else { return None };
    let told = || who.sentence(&format!("why.stages.{to}"), &[]).and(Some(who.sentence(&format!("why.causes.{cause}"), &[])));
    (*companion == who.id).then(|| told().line(recorded, "closing"))
}

/// The companion was paused or resumed, joined or left, or the room was cleared.
pub(crate) fn moved(recorded: &Recorded, who: &Subject) -> Option<StoryLine> {
    let is_own = |companion: &CompanionId| *companion == who.id;
    let key = match (&recorded.event, recorded.event.cancels(&who.id)) {
        (Event::Paused { companion: None, paused: true }, _) => "why.moved.all_paused",
        (Event::Paused { companion: None, paused: false }, _) => "why.moved.all_resumed",
        (Event::Paused { companion: Some(id), paused: true }, _) if is_own(id) => "why.moved.paused",
        (Event::Paused { companion: Some(id), paused: false }, _) if is_own(id) => "why.moved.resumed",
        (Event::Joined { companion, .. }, _) if is_own(companion) => "why.moved.joined",
        (Event::Cleared { .. }, _) => "why.moved.cleared",
        (_, true) => "why.moved.left",
        (_, false) => return None,
    };
    Some(who.sentence(key, &[]).line(recorded, "moved"))
}

/// The last statements were repetitive.
pub(crate) fn repeated(recorded: &Recorded, language: Language) -> Option<StoryLine> {
    let Event::RepetitionJudged { score, detections, .. } = &recorded.event else { return None };
    let score = decimal(format!("{score:.2}"), language);
    (*detections > 0).then(|| Told::new(language, "why.repeated", &[("score", &score)]).line(recorded, "repetition"))
}

/// Formats a duration: in seconds, with a tenth if it is short, otherwise in minutes, hours or days.
pub(crate) fn span(span: Duration, language: Language) -> String {
    let secs = span.as_secs_f64();
    let tenths = (secs * 10.0).round();
    let (key, count) = if secs < 9.95 && tenths % 10.0 > 0.0 {
        ("why.span.seconds", format!("{secs:.1}"))
    } else if secs < 120.0 {
        ("why.span.seconds", format!("{secs:.0}"))
    } else if secs < 2.0 * 3_600.0 {
        ("why.span.minutes", format!("{:.0}", secs / 60.0))
    } else if secs < 48.0 * 3_600.0 {
        ("why.span.hours", format!("{:.0}", secs / 3_600.0))
    } else {
        ("why.span.days", format!("{:.0}", secs / 86_400.0))
    };
    language.say(key, &[("count", &decimal(count, language))])
}

fn decimal(number: String, language: Language) -> String {
    match language {
        Language::English => number,
        Language::German | Language::Spanish => number.replace('.', ","),
    }
}

fn cut(text: &str) -> String {
    shortened(text, QUOTED_CHARS).into_owned()
}

#[cfg(test)]
mod tests;
