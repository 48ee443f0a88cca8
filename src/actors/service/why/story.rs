//! Tells what led to a decision, and what followed from it.

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
use crate::domain::id::Seq;
use crate::domain::moment::Moment;
use crate::domain::settlement::PendingReply;
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
            let course = Course::about(messages, is_yes, who, recorded, &before);
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
                event if event.cancels(&who.id) || event.pauses(&who.id) => {
                    dropped = newest.take().filter(|_| is_open).or(dropped);
                    is_open = false;
                }
                Event::Decided(decided) if decided.companions.contains(&who.id) && decided.ticket.is_some() => newest = None,
                _ => {}
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
        let course = Course::about(messages, true, who, recorded, &before);
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

/// The progress of a story after its decision.
struct Course {
    is_yes: bool,
    /// The round is closed, or none was held.
    is_over: bool,
    /// The companion wanted the floor, and another one got it.
    has_lost: bool,
    /// What the companion wants to say, or owes. It is about no message after a NO.
    reply: PendingReply,
    /// The reply that is owed, if it is to be spoken.
    spoken: Option<SpokenReply>,
    people: People,
    /// All messages that it was about were deleted.
    is_dropped: bool,
    /// Nothing more can follow.
    is_complete: bool,
}

impl Course {
    /// After a NO, nothing needs to be answered. Messages that were deleted before a YES need no answer either.
    fn about(messages: &[Seq], is_yes: bool, who: &Subject, decided: &Recorded, before: &[Recorded]) -> Self {
        let handled = || before.iter().filter(|earlier| !has_crossed(earlier, decided));
        let is_gone = |seq: &Seq| {
            handled().any(|earlier| matches!(&earlier.event, Event::Deleted { messages, .. } if messages.contains(seq)))
        };
        let messages = messages.iter().filter(|seq| is_yes && !is_gone(seq)).copied().collect();
        let mut people = People::default();
        before.iter().for_each(|earlier| people.note(&earlier.event));
        let reply = PendingReply { companion: who.id.clone(), ticket: None, messages };
        Self { is_yes, is_over: false, has_lost: false, reply, spoken: None, people, is_dropped: false, is_complete: false }
    }

    /// Whether the round is open, or the floor or the statement is still to come.
    fn is_in_progress(&self) -> bool {
        !self.is_complete && !self.is_dropped && !self.has_lost
    }

    fn follow(&mut self, recorded: &Recorded, who: &Subject) -> Vec<StoryLine> {
        let mut lines = Vec::new();
        self.people.note(&recorded.event);
        lines.extend(self.spoken.as_mut().and_then(|spoken| spoken.hear(recorded, &who.name)));
        let event = &recorded.event;
        let has_floor = self.reply.ticket.is_some();
        let is_about_another = event.reply().is_some_and(|ticket| self.reply.ticket != Some(ticket));
        if is_about_another || self.is_dropped && !matches!(event, Event::Said { .. }) {
            // The statement may have been posted in spite of the deletion. The conversation continues without it.
            let continues =
                matches!(event, Event::RoundClosed(_) | Event::RoundOpened(_) | Event::Evaluated(_) | Event::ReplyOwed { .. });
            self.is_complete |= self.is_dropped && continues;
            self.is_over |= self.is_complete;
            return lines;
        }
        let before = self.reply.messages.clone();
        let is_ended = self.reply.follow(event);
        let line = |event: &str, text: String| line(recorded, event, text);
        let name = &who.name;
        match event {
            Event::Said { message, reply: Some(_), .. } => {
                let text = if is_redacted(message) {
                    format!("{name} said something that was deleted since.")
                } else if let Some(spoken) = &self.spoken {
                    spoken.statement(message, name)
                } else {
                    format!("{name} said: “{}”", cut(&message.text))
                };
                lines.push(line("statement", text));
                self.is_complete = true;
            }
            // The companion speaks again, and the record does not say how this statement ended.
            Event::ReplyOwed { companion, .. } if has_floor && *companion == who.id => self.is_complete = true,
            Event::Deleted { .. } if is_ended && !self.has_lost => {
                self.is_dropped = true;
                // A companion that was waiting for its turn had said nothing.
                self.is_complete = self.is_over && !has_floor;
                let text = format!("All messages that it was about were deleted, and with them what {name} had not said yet.");
                lines.push(line("dropped", text));
            }
            Event::RoundClosed(closed) if !self.is_over => {
                self.is_over = true;
                self.is_complete = !self.is_yes;
                if closed.held.contains(&who.id) {
                    let text = format!("{name} wants to speak while another companion does: it waits until the floor is free.");
                    lines.push(line("held", text));
                } else if closed.selected.as_ref() == Some(&who.id) {
                    let delay = closed.speak_at.map(|at| at.since(recorded.at)).filter(|delay| !delay.is_zero());
                    lines.extend(delay.map(|delay| {
                        let text = format!(
                            "{name} waits {} before it speaks (turn_taking.turn_delay_secs); messages of that time are answered, too.",
                            secs(delay)
                        );
                        line("turn", text)
                    }));
                } else {
                    lines.extend(self.lose_floor(&closed.others, who).map(|text| line("floor_lost", text)));
                }
            }
            Event::HeldSelected { selected, others } if *selected != who.id && !has_floor => {
                lines.extend(self.lose_floor(others, who).map(|text| line("floor_lost", text)));
            }
            Event::Replanning { .. } => {
                let text = format!("More was said that concerns it, so {name} stopped and begins again once nobody says more.");
                lines.push(line("replanning", text));
            }
            Event::Replanned { messages, .. } => {
                let text = format!("{name} begins again, and answers {}.", messages_in_words(messages.len()));
                lines.push(line("replanned", text));
            }
            Event::ReplyExtended { messages, .. } => {
                let text = self.spoken.as_mut().map(|spoken| spoken.extended(messages, &before, name));
                lines.extend(text.map(|text| line("extended", text)));
            }
            Event::SentenceStarting { text, .. } => {
                lines.extend(self.spoken.as_mut().and_then(|spoken| spoken.started(recorded, text, name)));
            }
            Event::SentencePlayed { dropped: true, .. } => {
                let text =
                    format!("The voice of {name} stalled, and the rest of a sentence was left out (voice.stall_timeout_secs).");
                lines.push(line("stalled", text));
            }
            Event::Interrupted { interrupted, .. } => {
                let text = self.spoken.as_mut().map(|spoken| spoken.interrupted(interrupted, &self.people, name));
                lines.extend(text.map(|text| line("interrupted", text)));
            }
            Event::Cancelled { message, .. } if is_ended => {
                let text = match message {
                    Some(_) => "A person asked it to stop, so nothing was said (reply.stop_phrases).",
                    None => "Somebody pressed Stop, so nothing was said.",
                };
                lines.push(line("failed", text.to_owned()));
                self.is_complete = true;
            }
            Event::FloorExpired { .. } => {
                let text = format!(
                    "{name} wrote for too long and lost the floor to others (turn_taking.floor_timeout_secs). Its statement follows when it is ready."
                );
                lines.push(line("late", text));
            }
            Event::FloorTaken { .. } => {
                lines.push(line("respond", format!("The floor is free, and {name} posts its late statement.")));
            }
            Event::Decided(decided) if self.has_lost && decided.companions.contains(&who.id) => {
                let text = format!(
                    "{name} was considered again, with the answer {} ({}): decision {}.",
                    decided.decision, decided.reason, recorded.seq
                );
                lines.push(line("next", text));
                self.is_complete = true;
            }
            // It is asked again: the wish is gone, or belongs to that round's story.
            Event::Evaluated(evaluated) if evaluated.companion == who.id && !has_floor && self.is_over && !self.has_lost => {
                self.is_complete = true;
            }
            Event::ReplyOwed { companion, messages, modality, .. } if *companion == who.id => {
                self.spoken = (!modality.is_text()).then(|| SpokenReply::new(recorded));
                let aloud = if modality.is_text() { "" } else { " aloud" };
                let answers = messages_in_words(messages.len());
                let text = if self.has_lost {
                    format!(
                        "The companion that was selected before it made no statement, so {name} took over, and answers {answers}{aloud}."
                    )
                } else if messages.is_empty() {
                    format!("{name} got the floor, with nothing left to answer.")
                } else {
                    format!("{name} got the floor, and answers {answers}{aloud}.")
                };
                self.has_lost = false;
                lines.push(line("respond", text));
            }
            Event::ReplyFailed { error, .. } => {
                let text = if **error == *DELETED {
                    "All messages that it would have answered were deleted, so nothing was said.".to_owned()
                } else {
                    format!("No statement was made ({}). The messages are in the history all the same.", failed(error))
                };
                lines.push(line("failed", text));
                self.is_complete = true;
            }
            // What was heard is posted all the same.
            Event::Cleared | Event::Left { .. } if self.spoken.as_ref().is_some_and(SpokenReply::leaves_statement) => {
                lines.extend(moved(recorded, who));
            }
            Event::Cleared => {
                lines.push(line("cleared", "The room was cleared before anything was said.".into()));
                self.is_complete = true;
            }
            Event::Left { .. } if is_ended => {
                lines.push(line("moved", format!("{name} left the room before anything was said.")));
                self.is_complete = true;
            }
            event if !has_floor && event.pauses(&who.id) => {
                lines.push(line("moved", format!("An operator paused {name} before it spoke.")));
                self.is_complete = true;
            }
            _ => {}
        }
        lines
    }

    /// Another companion was selected. Says what that means, if this one wanted to speak.
    fn lose_floor(&mut self, others: &[Outvoted], who: &Subject) -> Option<String> {
        let lost = others.iter().find(|other| other.companion == who.id)?;
        self.has_lost = true;
        let due =
            lost.next_interjection_at.map(|next| format!("; by its count of messages alone it would be asked again at {next}"));
        Some(format!(
            "{} did not get the floor. Nothing settles for it, and its wish is kept for the next round{}.",
            who.name,
            due.unwrap_or_default()
        ))
    }
}

fn question<'a>(before: &'a [Recorded], decided: &Decided) -> Option<(&'a Recorded, &'a Evaluated)> {
    before.iter().rev().find_map(|recorded| {
        let Event::Evaluated(evaluated) = &recorded.event else { return None };
        (Some(evaluated.ticket) == decided.ticket).then_some((recorded, evaluated))
    })
}
