//! Tells what led to a decision, and what followed from it.

use std::collections::BTreeSet;

use super::aloud::{People, SpokenReply};
use super::round::Ballot;
use super::rows::question_sentence;
use super::rules::in_a_row;
use super::sentences::{
    cut, decision_sentence, failed, failure, line, messages_in_words, moved, repeated, secs, settled, stage_changed,
};
use super::{Scene, Subject};
use crate::actors::messages::channel::Inspection;
use crate::actors::service::reading::record;
use crate::domain::conversation::DELETED;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Decided, Evaluated, Event, Outvoted, Recorded, order_of_handling};
use crate::domain::id::{Seq, Ticket};
use crate::domain::moment::Moment;
use crate::journal::reader::{Range, ReadError};
use crate::journal::redaction::is_redacted;
use crate::ports::backend::decisions::{PromptPart, StoryLine, Why};

/// How many events are read before a decision to find what led to it, and after it to find what followed from it.
const BEFORE: usize = 2_048;
const AFTER: usize = 512;
/// How many messages a story quotes, and how many attempts it shows. If there are more, the newest.
const MAX_QUOTED: usize = 12;
/// How many starts of the server a story shows. If there are more, the first.
const MAX_STARTS: usize = 4;

impl Scene<'_> {
    pub(super) async fn story(&self, who: &Subject, recorded: &Recorded) -> Result<Why, ReadError> {
        let Event::Decided(decided) = &recorded.event else { return Ok(Why::default()) };
        let before = self.before(recorded.seq).await?;
        let question = question(&before, decided);
        let messages = question.map_or(&decided.messages, |(_, evaluated)| &evaluated.messages);
        let is_message = |earlier: &&Recorded| matches!(earlier.event, Event::Said { .. }) && messages.contains(&earlier.seq);
        let considered: Vec<&Recorded> = before.iter().filter(is_message).collect();

        let mut story: Vec<StoryLine> =
            considered.iter().rev().take(MAX_QUOTED).rev().filter_map(|message| self.quoted(message)).collect();
        if considered.len() > MAX_QUOTED {
            let text = format!("{} messages before these are left out here.", considered.len() - MAX_QUOTED);
            story.insert(0, StoryLine { at: considered[0].at.into(), seq: None, event: "message".into(), text });
        }
        story.splice(..0, considered.first().and_then(|first| self.episode(first, &before)));
        let from = considered.first().map_or(recorded.seq, |message| message.seq);
        let to_line = |earlier: &Recorded| {
            failure(earlier, who)
                .or_else(|| stage_changed(earlier, who))
                .or_else(|| moved(earlier, who))
                .or_else(|| repeated(earlier))
        };
        story.extend(before.iter().filter(|earlier| earlier.seq >= from).filter_map(to_line));
        if matches!(decided.reason, Reason::Closed | Reason::Paused) && decided.ticket.is_none() {
            // The event that silenced it may be earlier.
            let earlier = before.iter().rev().filter(|earlier| earlier.seq < from);
            let silenced = earlier.filter_map(|earlier| {
                if decided.reason == Reason::Closed {
                    return stage_changed(earlier, who);
                }
                let Event::Paused { paused: true, .. } = earlier.event else { return None };
                moved(earlier, who)
            });
            story.extend(silenced.take(1));
        }
        story.sort_by_key(|line| line.seq);
        let ballot = decided.vote.as_ref().map(|vote| Ballot::new(vote, &before, |id| self.name(id)));
        story.extend(ballot.as_ref().and_then(Ballot::opened));
        if let Some((asked, evaluated)) = question {
            story.push(line(asked, "evaluate", question_sentence(who, asked, evaluated, &before)));
        }
        if decided.reason == Reason::LoopGuard {
            story.push(line(recorded, "loop_guard", in_a_row(&before)));
        }
        story.push(line(recorded, "decision", decision_sentence(&who.name, decided)));
        if decided.decision == Decision::No {
            story.push(line(recorded, "silence", settled(&who.name, decided.messages.len())));
        }
        story.extend(self.rule(who, recorded, decided, &before).map(|text| line(recorded, "rule", text)));
        let is_yes = decided.decision == Decision::Yes;
        let mut in_progress = false;
        if ballot.is_some() || is_yes {
            let course = Course::about(messages, is_yes, recorded, &before);
            let (lines, is_open) = self.consequences(recorded, &before, who, ballot, course).await?;
            story.extend(lines);
            in_progress = is_open;
        }
        in_order(&mut story);
        let last = story.iter().map(|line| line.at.0).max();
        let end = if in_progress { last.max(Some(self.backend.context.clock.now())) } else { last };
        if let Some(end) = end {
            self.add_starts(&mut story, end).await?;
        }
        let texts = considered.iter().filter_map(|earlier| {
            let Event::Said { message, .. } = &earlier.event else { return None };
            (!is_redacted(message)).then(|| message.text.clone())
        });
        let decision = Some(record(recorded, decided, &who.id, &self.room, texts.collect()));
        let prompt = decided
            .call
            .as_ref()
            .map(|call| call.prompt.iter().map(|(part, tokens)| PromptPart { part: part.clone(), tokens: *tokens }).collect());
        Ok(Why { story, decision, prompt, ..Why::default() })
    }

    /// What happened since a decision, oldest first: failed attempts, an open or dropped question, the messages of the newest question, and that the
    /// companion was paused or resumed, joined or left.
    pub(super) async fn since(&self, since: Seq, who: &Subject) -> Result<Vec<StoryLine>, ReadError> {
        let range = Range { after: since, before: None, limit: BEFORE, newest_first: true };
        let mut events = self.entries(range).await?.events;
        events.reverse();
        let mut newest: Option<(&Recorded, &Evaluated)> = None;
        let mut dropped = None;
        let mut is_open = false;
        let mut tried = Vec::new();
        for recorded in &events {
            tried.extend(failure(recorded, who));
            // Without a decision, the story begins with the companion's join, which is not worth a line.
            let is_first_join = since == Seq::NONE && matches!(recorded.event, Event::Joined { .. });
            tried.extend(moved(recorded, who).filter(|_| !is_first_join));
            match &recorded.event {
                Event::Evaluated(evaluated) if evaluated.companion == who.id => {
                    newest = Some((recorded, evaluated));
                    is_open = true;
                }
                Event::Unanswered { companion, .. } if *companion == who.id => is_open = false,
                Event::ReplyOwed { companion, again: Some(_), .. } if *companion == who.id => {
                    let text = format!("Somebody pressed Try again: its message was deleted, and {} answers again.", who.name);
                    tried.push(line(recorded, "respond", text));
                }
                event if is_dropped_by(event, who) => {
                    dropped = newest.take().filter(|_| is_open).or(dropped);
                    is_open = false;
                }
                Event::Decided(decided) if decided.companions.contains(&who.id) && decided.ticket.is_some() => newest = None,
                Event::Said { .. }
                | Event::Edited { .. }
                | Event::Deleted { .. }
                | Event::Joined { .. }
                | Event::Left { .. }
                | Event::Paused { .. }
                | Event::Cleared
                | Event::VoiceJoined { .. }
                | Event::VoiceLeft { .. }
                | Event::Segment(_)
                | Event::CaughtUp { .. }
                | Event::JitterDrawn { .. }
                | Event::LullFired { .. }
                | Event::SilenceFired { .. }
                | Event::VoiceQuiet { .. }
                | Event::EventsDeferred { .. }
                | Event::EventsReleased
                | Event::BackOffEnded { .. }
                | Event::DeadlinesExtended { .. }
                | Event::AddressRefused { .. }
                | Event::RoundOpened(_)
                | Event::Evaluated(_)
                | Event::Decided(_)
                | Event::Unanswered { .. }
                | Event::StageChanged { .. }
                | Event::RoundClosed(_)
                | Event::RepetitionAsked { .. }
                | Event::ReplyExtended { .. }
                | Event::SentenceStarting { .. }
                | Event::SentencePlayed { .. }
                | Event::Interrupted { .. }
                | Event::Replanning { .. }
                | Event::Replanned { .. }
                | Event::Cancelled { .. }
                | Event::FloorExpired { .. }
                | Event::FloorTaken { .. }
                | Event::HeldSelected { .. }
                | Event::RepetitionJudged { .. }
                | Event::ReplyOwed { .. }
                | Event::ReplyFailed { .. }
                | Event::Summarised { .. } => {}
            }
        }
        tried.drain(..tried.len().saturating_sub(MAX_QUOTED));
        for (asked, evaluated, was_open) in
            dropped.map(|(asked, of)| (asked, of, true)).into_iter().chain(newest.map(|(asked, of)| (asked, of, is_open)))
        {
            let messages = events.iter().filter(|earlier| evaluated.messages.contains(&earlier.seq));
            tried.extend(
                messages.rev().take(MAX_QUOTED).collect::<Vec<_>>().into_iter().rev().filter_map(|message| self.quoted(message)),
            );
            if was_open {
                tried.push(line(asked, "evaluate", question_sentence(who, asked, evaluated, &events)));
            }
        }
        tried.sort_by_key(|line| line.seq);
        let now = self.backend.context.clock.now();
        self.add_starts(&mut tried, now).await?;
        Ok(tried)
    }

    /// The events before a decision, oldest first, as far as they are read.
    pub(super) async fn before(&self, seq: Seq) -> Result<Vec<Recorded>, ReadError> {
        let range = Range { after: Seq::NONE, before: Some(seq), limit: BEFORE, newest_first: true };
        let mut events = self.entries(range).await?.events;
        events.reverse();
        Ok(events)
    }

    /// A line saying that a new conversation began with this message, if one did.
    fn episode(&self, first: &Recorded, before: &[Recorded]) -> Option<StoryLine> {
        let earlier = before.iter().rev().filter(|earlier| earlier.seq < first.seq);
        let last = earlier.into_iter().find(|earlier| matches!(earlier.event, Event::Said { .. }))?;
        let quiet = first.at.since(last.at);
        let text = format!("A new conversation began: nothing had been said for {} (closing.episode_idle_secs).", secs(quiet));
        let is_new = quiet >= self.backend.context.settings.closing.episode_idle();
        is_new.then(|| StoryLine { seq: Some(first.seq), ..line(first, "episode", text) })
    }

    /// A line saying that the conversation of a decision is over, if it is.
    pub(super) fn over_since(&self, decided: &Recorded, inspection: &Inspection) -> Option<StoryLine> {
        let idle = self.backend.context.settings.closing.episode_idle();
        let now = self.backend.context.clock.now();
        let (began_at, last_at) = inspection.conversation.episode().map(|episode| (episode.began_at, episode.last_at))?;
        let (at, text) = if began_at > decided.at {
            (began_at, "A new conversation began, and nothing was decided in it yet.".to_owned())
        } else if now.since(last_at) >= idle {
            let quiet = secs(idle);
            (last_at + idle, format!("The conversation was over: nothing had been said for {quiet} (closing.episode_idle_secs)."))
        } else {
            return None;
        };
        Some(StoryLine { at: at.into(), seq: None, event: "episode".into(), text })
    }

    /// What followed from a wish to speak, or from a vote in a round, in the order in which the channel handled it; and whether it is still in
    /// progress.
    async fn consequences(
        &self,
        recorded: &Recorded,
        before: &[Recorded],
        who: &Subject,
        mut ballot: Option<Ballot<'_>>,
        mut course: Course,
    ) -> Result<(Vec<StoryLine>, bool), ReadError> {
        let range = Range { after: recorded.seq, before: None, limit: AFTER, newest_first: false };
        let mut later: Vec<_> = before.iter().filter(|earlier| has_crossed(earlier, recorded)).cloned().collect();
        let page = self.entries(range).await?;
        let is_all = page.looked_at() < AFTER && page.illegible.is_empty();
        later.extend(page.events);
        order_of_handling(&mut later);
        let mut story = Vec::new();
        let mut newest = recorded.seq;
        for recorded in later {
            newest = newest.max(recorded.seq);
            story.extend(stage_changed(&recorded, who));
            if let Some(ballot) = ballot.as_mut() {
                ballot.follow(&recorded);
            }
            if let Event::RoundClosed(closed) = &recorded.event
                && !course.is_over
            {
                story.extend(ballot.as_ref().map(|ballot| line(&recorded, "round", ballot.closed(closed))));
            }
            // The line comes after everything that was handled before it, whatever the numbers of the events are.
            story.extend(course.follow(&recorded, who).into_iter().map(|line| StoryLine { seq: Some(newest), ..line }));
            if course.is_complete {
                break;
            }
        }
        Ok((story, is_all && course.is_in_progress()))
    }

    /// The last line about what followed from a wish to speak.
    pub(super) async fn outcome_line(
        &self,
        recorded: &Recorded,
        decided: &Decided,
        who: &Subject,
    ) -> Result<Option<StoryLine>, ReadError> {
        let before = self.before(recorded.seq).await?;
        let messages = question(&before, decided).map_or(&decided.messages, |(_, evaluated)| &evaluated.messages);
        // The last line has the result.
        let course = Course::about(messages, true, recorded, &before);
        Ok(self.consequences(recorded, &before, who, None, course).await?.0.pop())
    }

    /// Adds the starts of the server between the first message or question of a story and its end.
    async fn add_starts(&self, story: &mut Vec<StoryLine>, last: Moment) -> Result<(), ReadError> {
        let begins = |line: &&StoryLine| matches!(&*line.event, "message" | "round_opened" | "evaluate" | "error");
        let Some(first) = story.iter().find(begins).map(|line| line.at.0) else { return Ok(()) };
        for start in self.reader().starts(first, last, MAX_STARTS).await? {
            let index = story.iter().rposition(|line| line.at.0 <= start).map_or(0, |at| at + 1);
            let effect = match index.checked_sub(1).map(|at| &*story[at].event) {
                Some("evaluate" | "round_opened") => ": the open question was asked again",
                Some("decision" | "rule") => ": it continued from there",
                Some("round" | "turn") => ": its turn was kept",
                Some("respond" | "held_back" | "extended") => ": the statement was started again",
                Some("speaking" | "interrupted" | "stalled") => ": what had been heard became the statement",
                Some("message") => ": unsettled messages were kept",
                _ => "",
            };
            let text = format!("The server was restarted{effect}.");
            story.insert(index, StoryLine { at: start.into(), seq: None, event: "restart".into(), text });
        }
        Ok(())
    }
}

/// Sorts a story: lines about recorded events by their numbers, because clocks can be set back, and other lines by their time.
pub(super) fn in_order(story: &mut Vec<StoryLine>) {
    let (mut ordered, others): (Vec<_>, Vec<_>) = std::mem::take(story).into_iter().partition(|line| line.seq.is_some());
    // The line about a new conversation comes before that of its first message.
    ordered.sort_by_key(|line| (line.seq, &*line.event != "episode"));
    for other in others {
        let index = ordered.iter().rposition(|line| line.at.0 <= other.at.0).map_or(0, |at| at + 1);
        ordered.insert(index, other);
    }
    *story = ordered;
}

/// Whether an inbound event is on record before an event of the channel, but was handled after it.
fn has_crossed(earlier: &Recorded, made: &Recorded) -> bool {
    earlier.event.is_inbound() && earlier.seq > made.handled && earlier.seq < made.seq
}

/// Whether this event drops the open question of a companion.
fn is_dropped_by(event: &Event, who: &Subject) -> bool {
    match event {
        Event::Left { companion } => *companion == who.id,
        Event::Paused { companion, paused: true } => companion.as_ref().is_none_or(|id| *id == who.id),
        Event::Cleared => true,
        Event::Said { .. }
        | Event::Edited { .. }
        | Event::Deleted { .. }
        | Event::Joined { .. }
        | Event::Paused { .. }
        | Event::VoiceJoined { .. }
        | Event::VoiceLeft { .. }
        | Event::Segment(_)
        | Event::CaughtUp { .. }
        | Event::JitterDrawn { .. }
        | Event::LullFired { .. }
        | Event::SilenceFired { .. }
        | Event::VoiceQuiet { .. }
        | Event::EventsDeferred { .. }
        | Event::EventsReleased
        | Event::BackOffEnded { .. }
        | Event::DeadlinesExtended { .. }
        | Event::AddressRefused { .. }
        | Event::RoundOpened(_)
        | Event::Evaluated(_)
        | Event::Decided(_)
        | Event::Unanswered { .. }
        | Event::StageChanged { .. }
        | Event::RoundClosed(_)
        | Event::RepetitionAsked { .. }
        | Event::ReplyExtended { .. }
        | Event::SentenceStarting { .. }
        | Event::SentencePlayed { .. }
        | Event::Interrupted { .. }
        | Event::Replanning { .. }
        | Event::Replanned { .. }
        | Event::Cancelled { .. }
        | Event::FloorExpired { .. }
        | Event::FloorTaken { .. }
        | Event::HeldSelected { .. }
        | Event::RepetitionJudged { .. }
        | Event::ReplyOwed { .. }
        | Event::ReplyFailed { .. }
        | Event::Summarised { .. } => false,
    }
}

/// The progress of a story after its decision.
#[derive(Default)]
struct Course {
    is_yes: bool,
    /// The round is closed, or none was held.
    is_over: bool,
    /// The companion wanted the floor, and another one got it.
    has_lost: bool,
    owed: Option<Ticket>,
    /// The reply that is owed, if it is to be spoken.
    spoken: Option<SpokenReply>,
    people: People,
    /// The messages that it is about, without those that were deleted since.
    about: BTreeSet<Seq>,
    /// All of these messages were deleted.
    is_dropped: bool,
    /// Nothing more can follow.
    is_complete: bool,
}

impl Course {
    /// After a NO, nothing needs to be answered. Messages that were deleted before a YES need no answer either.
    fn about(messages: &[Seq], is_yes: bool, decided: &Recorded, before: &[Recorded]) -> Self {
        let handled = || before.iter().filter(|earlier| !has_crossed(earlier, decided));
        let is_gone = |seq: &Seq| {
            handled().any(|earlier| matches!(&earlier.event, Event::Deleted { messages, .. } if messages.contains(seq)))
        };
        let about = messages.iter().filter(|seq| is_yes && !is_gone(seq)).copied().collect();
        let mut people = People::default();
        before.iter().for_each(|earlier| people.note(&earlier.event));
        Self { about, people, is_yes, ..Self::default() }
    }

    /// Whether the round is open, or the floor or the statement is still to come.
    fn is_in_progress(&self) -> bool {
        !self.is_complete && !self.is_dropped && !self.has_lost
    }

    fn follow(&mut self, recorded: &Recorded, who: &Subject) -> Vec<StoryLine> {
        let name = &who.name;
        let mut lines = Vec::new();
        self.people.note(&recorded.event);
        lines.extend(self.spoken.as_mut().and_then(|spoken| spoken.hear(recorded, name)));
        match &recorded.event {
            Event::Said { message, reply: Some(ticket), .. } if self.owed == Some(*ticket) => {
                let text = if is_redacted(message) {
                    format!("{name} said something that was deleted since.")
                } else if let Some(spoken) = &self.spoken {
                    spoken.statement(message, name)
                } else {
                    format!("{name} said: “{}”", cut(&message.text))
                };
                lines.push(line(recorded, "statement", text));
                self.is_complete = true;
            }
            // The statement may have been posted in spite of the deletion. The conversation continues without it.
            Event::RoundClosed(_) | Event::RoundOpened(_) | Event::Evaluated(_) | Event::ReplyOwed { .. } if self.is_dropped => {
                self.is_over = true;
                self.is_complete = true;
            }
            _ if self.is_dropped => {}
            // The companion speaks again, and the record does not say how this statement ended.
            Event::ReplyOwed { companion, .. } if self.owed.is_some() && *companion == who.id => self.is_complete = true,
            Event::Deleted { messages, .. } if self.about.iter().any(|seq| messages.contains(seq)) => {
                self.about.retain(|seq| !messages.contains(seq));
                if self.about.is_empty() && !self.has_lost {
                    self.is_dropped = true;
                    // A companion that was waiting for its turn had said nothing.
                    self.is_complete = self.is_over && self.owed.is_none();
                    let text =
                        format!("All messages that it was about were deleted, and with them what {name} had not said yet.");
                    lines.push(line(recorded, "dropped", text));
                }
            }
            Event::RoundClosed(closed) if !self.is_over => {
                self.is_over = true;
                self.is_complete = !self.is_yes;
                if closed.held.contains(&who.id) {
                    let text = format!("{name} wants to speak while another companion does: it waits until the floor is free.");
                    lines.push(line(recorded, "held", text));
                } else if closed.selected.as_ref() == Some(&who.id) {
                    let delay = closed.speak_at.map(|at| at.since(recorded.at)).filter(|delay| !delay.is_zero());
                    lines.extend(delay.map(|delay| {
                        let text = format!(
                            "{name} waits {} before it speaks (turn_taking.turn_delay_secs); messages of that time are answered, too.",
                            secs(delay)
                        );
                        line(recorded, "turn", text)
                    }));
                } else if let Some(other) = closed.others.iter().find(|other| other.companion == who.id) {
                    self.has_lost = true;
                    lines.push(floor_lost(recorded, name, other));
                }
            }
            Event::HeldSelected { selected, others } => {
                let other = others.iter().find(|other| other.companion == who.id);
                if let Some(other) = other.filter(|_| *selected != who.id && self.owed.is_none()) {
                    self.has_lost = true;
                    lines.push(floor_lost(recorded, name, other));
                }
            }
            Event::Replanning { ticket, .. } if self.owed == Some(*ticket) => {
                let text = format!("More was said that concerns it, so {name} stopped and begins again once nobody says more.");
                lines.push(line(recorded, "replanning", text));
            }
            Event::Replanned { ticket, next, messages, .. } if self.owed == Some(*ticket) => {
                self.owed = Some(*next);
                self.about = messages.iter().copied().collect();
                let text = format!("{name} begins again, and answers {}.", messages_in_words(messages.len()));
                lines.push(line(recorded, "replanned", text));
            }
            Event::ReplyExtended { ticket, next, messages, .. } if self.owed == Some(*ticket) => {
                self.owed = Some(*next);
                let text = self.spoken.as_mut().map(|spoken| spoken.extended(messages, &self.about, name));
                lines.extend(text.map(|text| line(recorded, "extended", text)));
                self.about = messages.iter().copied().collect();
            }
            Event::SentenceStarting { ticket, text, .. } if self.owed == Some(*ticket) => {
                lines.extend(self.spoken.as_mut().and_then(|spoken| spoken.started(recorded, text, name)));
            }
            Event::SentencePlayed { ticket, dropped: true, .. } if self.owed == Some(*ticket) => {
                let text =
                    format!("The voice of {name} stalled, and the rest of a sentence was left out (voice.stall_timeout_secs).");
                lines.push(line(recorded, "stalled", text));
            }
            Event::Interrupted { ticket, interrupted, .. } if self.owed == Some(*ticket) => {
                let text = self.spoken.as_mut().map(|spoken| spoken.interrupted(interrupted, &self.people, name));
                lines.extend(text.map(|text| line(recorded, "interrupted", text)));
            }
            Event::Cancelled { companion, ticket, message, .. }
                if *companion == who.id
                    && (self.owed.is_some() && self.owed == *ticket || self.owed.is_none() && ticket.is_none()) =>
            {
                let text = match message {
                    Some(_) => "A person asked it to stop, so nothing was said (reply.stop_phrases).",
                    None => "Somebody pressed Stop, so nothing was said.",
                };
                let text = text.to_owned();
                lines.push(line(recorded, "failed", text));
                self.is_complete = true;
            }
            Event::FloorExpired { ticket, .. } if self.owed == Some(*ticket) => {
                let text = format!(
                    "{name} wrote for too long and lost the floor to others (turn_taking.floor_timeout_secs). Its statement follows when it is ready."
                );
                lines.push(line(recorded, "late", text));
            }
            Event::FloorTaken { ticket, .. } if self.owed == Some(*ticket) => {
                lines.push(line(recorded, "respond", format!("The floor is free, and {name} posts its late statement.")));
            }
            Event::Decided(decided) if self.has_lost && decided.companions.contains(&who.id) => {
                let text = format!(
                    "{name} was considered again, with the answer {} ({}): decision {}.",
                    decided.decision, decided.reason, recorded.seq
                );
                lines.push(line(recorded, "next", text));
                self.is_complete = true;
            }
            // It is asked again: the wish is gone, or belongs to that round's story.
            Event::Evaluated(evaluated)
                if evaluated.companion == who.id && self.owed.is_none() && self.is_over && !self.has_lost =>
            {
                self.is_complete = true;
            }
            Event::ReplyOwed { companion: by, ticket, messages, modality, .. } if *by == who.id && self.owed.is_none() => {
                self.owed = Some(*ticket);
                self.spoken = (!modality.is_text()).then(|| SpokenReply::new(recorded));
                let aloud = if modality.is_text() { "" } else { " aloud" };
                self.about = messages.iter().copied().collect();
                let text = if self.has_lost {
                    format!(
                        "The companion that was selected before it made no statement, so {name} took over, and answers {}{aloud}.",
                        messages_in_words(messages.len())
                    )
                } else if messages.is_empty() {
                    format!("{name} got the floor, with nothing left to answer.")
                } else {
                    format!("{name} got the floor, and answers {}{aloud}.", messages_in_words(messages.len()))
                };
                self.has_lost = false;
                lines.push(line(recorded, "respond", text));
            }
            Event::ReplyFailed { ticket, error, .. } if self.owed == Some(*ticket) => {
                let text = if **error == *DELETED {
                    "All messages that it would have answered were deleted, so nothing was said.".to_owned()
                } else {
                    format!("No statement was made ({}). The messages are in the history all the same.", failed(error))
                };
                lines.push(line(recorded, "failed", text));
                self.is_complete = true;
            }
            // What was heard is posted all the same.
            Event::Cleared | Event::Left { .. } if self.spoken.as_ref().is_some_and(SpokenReply::leaves_statement) => {
                lines.extend(moved(recorded, who));
            }
            Event::Cleared => {
                lines.push(line(recorded, "cleared", "The room was cleared before anything was said.".into()));
                self.is_complete = true;
            }
            Event::Left { companion } if *companion == who.id => {
                lines.push(line(recorded, "moved", format!("{name} left the room before anything was said.")));
                self.is_complete = true;
            }
            Event::Paused { companion, paused: true }
                if self.owed.is_none() && companion.as_ref().is_none_or(|id| *id == who.id) =>
            {
                lines.push(line(recorded, "moved", format!("An operator paused {name} before it spoke.")));
                self.is_complete = true;
            }
            Event::Said { .. }
            | Event::Edited { .. }
            | Event::Deleted { .. }
            | Event::Joined { .. }
            | Event::Left { .. }
            | Event::Paused { .. }
            | Event::VoiceJoined { .. }
            | Event::VoiceLeft { .. }
            | Event::Segment(_)
            | Event::CaughtUp { .. }
            | Event::JitterDrawn { .. }
            | Event::LullFired { .. }
            | Event::SilenceFired { .. }
            | Event::VoiceQuiet { .. }
            | Event::EventsDeferred { .. }
            | Event::EventsReleased
            | Event::BackOffEnded { .. }
            | Event::DeadlinesExtended { .. }
            | Event::AddressRefused { .. }
            | Event::RoundOpened(_)
            | Event::Evaluated(_)
            | Event::Decided(_)
            | Event::Unanswered { .. }
            | Event::StageChanged { .. }
            | Event::RoundClosed(_)
            | Event::RepetitionAsked { .. }
            | Event::ReplyExtended { .. }
            | Event::SentenceStarting { .. }
            | Event::SentencePlayed { .. }
            | Event::Interrupted { .. }
            | Event::Replanning { .. }
            | Event::Replanned { .. }
            | Event::Cancelled { .. }
            | Event::FloorExpired { .. }
            | Event::FloorTaken { .. }
            | Event::RepetitionJudged { .. }
            | Event::ReplyOwed { .. }
            | Event::ReplyFailed { .. }
            | Event::Summarised { .. } => {}
        }
        lines
    }
}

fn floor_lost(recorded: &Recorded, name: &str, lost: &Outvoted) -> StoryLine {
    let due = lost.next_interjection_at.map(|next| format!("; by its count of messages alone it would be asked again at {next}"));
    let text = format!(
        "{name} did not get the floor. Nothing settles for it, and its wish is kept for the next round{}.",
        due.unwrap_or_default()
    );
    line(recorded, "floor_lost", text)
}

fn question<'a>(before: &'a [Recorded], decided: &Decided) -> Option<(&'a Recorded, &'a Evaluated)> {
    before.iter().rev().find_map(|recorded| {
        let Event::Evaluated(evaluated) = &recorded.event else { return None };
        (Some(evaluated.ticket) == decided.ticket).then_some((recorded, evaluated))
    })
}
