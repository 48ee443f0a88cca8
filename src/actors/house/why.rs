//! The story of a decision, in plain words, as the record tells it; and what a companion waits for now.

mod round;
mod words;

use std::sync::Arc;

use super::ActorHouse;
use super::desk::{invalid, unread};
use super::reading::{Wanted, found, record, told_message};
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Decided, Evaluated, Event, Recorded};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::moment::Moment;
use crate::journal::place::Place;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::journal::residence::Residence;
use crate::ports::house::Refused;
use crate::ports::house::decisions::{PromptPart, StoryLine, WaitingFor, Why, WhyAt, WhyQuery};
use crate::ports::house::messages::HistoryMessage;
use crate::ports::house::room::RoomId;
use crate::ports::language_model::ModelRole;
use crate::settings::companion::Companion;
use round::Ballot;
use words::{
    asked_because, cut, decided_because, failure, line, messages_in_words, quoted, repeated, secs, settled, stage_changed,
};

/// Events that are read before a decision to find what led to it, and after it to find what became of it.
const BEFORE: usize = 2_048;
const AFTER: usize = 512;
/// Messages that a story quotes; of more, the newest.
const QUOTED: usize = 12;
/// Characters of a quotation.
const QUOTED_CHARS: usize = 200;

impl ActorHouse {
    pub(super) async fn tell_why(&self, query: WhyQuery) -> Result<Why, Refused> {
        let (place, residence) = self.room_of(&query.room)?;
        let companion = whose(&query, &residence)?;
        let settings = self.kit.residents.companion(&place.channel, &companion);
        let name = settings.as_ref().map_or_else(|| Arc::from(companion.as_str()), |settings| settings.name.clone());
        let asked = self.decision(&place, &companion, query.at).await.map_err(unread)?;
        if asked.is_none() && !residence.companions.contains(&companion) {
            return Err(Refused::NotFound(format!("{companion} is not in room {}", query.room)));
        }
        let mut why = match &asked {
            Some(recorded) => self.story(&place, &query.room, &residence, &companion, &name, recorded).await.map_err(unread)?,
            None => Why::default(),
        };
        if query.at.is_none() {
            let since = asked.as_ref().map_or(Seq::NONE, |recorded| recorded.seq);
            let attempts = self.attempts(&place, since, &companion, &name, residence.is_external(&companion)).await;
            why.story.extend(attempts.map_err(unread)?);
        }
        if query.at.is_none()
            && let Some(settings) = settings
        {
            why.waiting_for = self.waiting_for(&place, &residence, &companion, &settings).await.map_err(unread)?;
        }
        Ok(why)
    }

    async fn decision(&self, place: &Place, whose: &CompanionId, at: Option<WhyAt>) -> Result<Option<Recorded>, ReadError> {
        let after = match at {
            Some(WhyAt::Event(seq)) => Some(Seq(seq.0.saturating_sub(1))),
            Some(WhyAt::Moment(_)) | None => None,
        };
        let latest = match at {
            Some(WhyAt::Moment(moment)) => moment,
            Some(WhyAt::Event(_)) | None => Moment::from_micros(u64::MAX),
        };
        let wanted = Wanted { after, before: None, limit: 1, most: usize::MAX };
        let is_it = |recorded: &Recorded| match &recorded.event {
            Event::Decided(decided) if decided.companions.contains(whose) && recorded.at <= latest => vec![recorded.clone()],
            _ => Vec::new(),
        };
        Ok(found(&self.reader(), place, wanted, is_it).await?.pop())
    }

    async fn story(
        &self,
        place: &Place,
        room: &RoomId,
        residence: &Residence,
        companion: &CompanionId,
        name: &str,
        recorded: &Recorded,
    ) -> Result<Why, ReadError> {
        let Event::Decided(decided) = &recorded.event else { return Ok(Why::default()) };
        let reader = self.reader();
        let before = before(&reader, place, recorded.seq).await?;
        let question = question(&before, decided);
        let messages = question.map_or(&decided.messages, |(_, evaluated)| &evaluated.messages);
        let heard: Vec<HistoryMessage> =
            before.iter().filter(|recorded| messages.contains(&recorded.seq)).filter_map(told_message).collect();

        let mut story: Vec<StoryLine> = heard.iter().rev().take(QUOTED).rev().map(quoted).collect();
        if heard.len() > QUOTED {
            let text = format!("{} messages before these are left out here.", heard.len() - QUOTED);
            story.insert(0, StoryLine { at: heard[0].at, seq: None, event: "message".into(), text });
        }
        let from = heard.first().map_or(recorded.seq, |message| message.seq);
        let since = before.iter().filter(|earlier| earlier.seq >= from);
        let is_external = residence.is_external(companion);
        let told = |earlier: &Recorded| {
            failure(earlier, companion, name, is_external)
                .or_else(|| stage_changed(earlier, companion, name))
                .or_else(|| repeated(earlier))
        };
        story.extend(since.filter_map(told));
        if decided.reason == Reason::Closed && decided.ticket.is_none() {
            // What closed it may lie further back.
            let closed = before
                .iter()
                .rev()
                .filter(|earlier| earlier.seq < from)
                .find_map(|earlier| stage_changed(earlier, companion, name));
            story.extend(closed);
            story.sort_by_key(|line| line.seq);
        }
        let ballot = decided.vote.as_ref().map(|vote| Ballot::new(vote, &before, |id| self.name_in(place, id)));
        story.extend(ballot.as_ref().and_then(Ballot::opened));
        if let Some((asked, evaluated)) = question {
            story.push(line(asked, "evaluate", asked_because(name, evaluated)));
        }
        story.push(line(recorded, "decision", decided_because(name, decided)));
        if decided.decision == Decision::No {
            story.push(line(recorded, "silence", settled(name, decided.messages.len())));
        }
        if ballot.is_some() || decided.decision == Decision::Yes {
            let is_yes = decided.decision == Decision::Yes;
            story.extend(became(&reader, place, recorded.seq, companion, name, ballot, is_yes).await?);
        }
        let texts = heard.iter().map(|message| message.text.clone()).collect();
        let decision = Some(record(recorded, decided, companion, room, texts));
        let prompt = decided.call.as_ref().map(|call| call.prompt.iter().map(prompt_part).collect());
        Ok(Why { story, decision, waiting_for: None, prompt })
    }

    /// The newest attempts to ask a companion since its last decision that came to nothing, oldest first.
    async fn attempts(
        &self,
        place: &Place,
        since: Seq,
        companion: &CompanionId,
        name: &str,
        is_external: bool,
    ) -> Result<Vec<StoryLine>, ReadError> {
        let range = Range { after: since, before: None, limit: BEFORE, newest_first: true };
        let events = self.reader().events(place, range).await?;
        let failures = events.iter().filter_map(|recorded| failure(recorded, companion, name, is_external));
        let mut attempts: Vec<_> = failures.take(QUOTED).collect();
        attempts.reverse();
        Ok(attempts)
    }

    async fn waiting_for(
        &self,
        place: &Place,
        residence: &Residence,
        companion: &CompanionId,
        settings: &Companion,
    ) -> Result<Option<WaitingFor>, ReadError> {
        let look = self.stand(place).await?;
        let conversation = &look.conversation;
        let now = self.kit.clock.now();
        let nothing = |text: &str| Some(WaitingFor { text: text.into(), messages: None, lull_at: None, retry_at: None });
        if residence.is_paused(companion) {
            return Ok(nothing("an operator, who paused it and can let it go on"));
        }
        let Some(gate) = conversation.gate(companion) else { return Ok(nothing("something to be said")) };
        if conversation.floor().is_some_and(|floor| floor.companion == *companion) {
            return Ok(nothing("its own words: it is speaking"));
        }
        if conversation.turn().is_some_and(|turn| turn.candidate.companion == *companion) {
            return Ok(nothing("a moment before it speaks: it was selected"));
        }
        if gate.evaluation.is_some() {
            let whom =
                if gate.external { "the vote of the program that plays it" } else { "the model's answer: it is being asked" };
            return Ok(nothing(whom));
        }
        if gate.wish.is_some() {
            let missing = conversation.round().into_iter().flat_map(|round| round.missing());
            let missing: Vec<_> = missing.map(|id| self.name_in(place, id)).collect();
            let whom = if missing.is_empty() { "the floor".to_owned() } else { format!("the votes of {}", missing.join(", ")) };
            return Ok(nothing(&format!("{whom}: it wants to speak")));
        }
        if gate.is_closed() {
            let missing = u64::from(self.kit.settings.closing.reopen_after.saturating_sub(gate.heard_closed));
            let more = if missing == 1 { "one more human message".to_owned() } else { format!("{missing} more human messages") };
            let text = format!("{more}, its name, or a new conversation: it has ended this one");
            return Ok(Some(WaitingFor { text, messages: Some(missing), lull_at: None, retry_at: None }));
        }
        if let Some(retry_at) = gate.retry_at() {
            let secs = retry_at.since(now).as_secs_f64().ceil();
            let told = |because: &str| {
                let text = format!("another try in {secs} s, because {because}");
                Some(WaitingFor { text, messages: None, lull_at: None, retry_at: Some(retry_at.into()) })
            };
            if gate.external {
                return Ok(told("the program that plays it did not vote in time"));
            }
            let troubles = self.kit.pool.report().await.map(|pool| pool.troubles).unwrap_or_default();
            let trouble = troubles.iter().find(|trouble| trouble.role == ModelRole::Side);
            let why = trouble.map(|trouble| format!(": {}", trouble.detail)).unwrap_or_default();
            return Ok(told(&format!("the model gave no answer{why}")));
        }
        let interval = settings.temper().interval(0, 0);
        let missing = gate.next_interjection_at.unwrap_or(interval).saturating_sub(gate.message_counter).max(1);
        let more = if missing == 1 { "one more message".to_owned() } else { format!("{missing} more messages") };
        let text = match gate.lull_at {
            Some(lull_at) => format!("{more}, {} of quiet, or its name", secs(lull_at.since(now))),
            None => format!("{more}, or its name"),
        };
        Ok(Some(WaitingFor { text, messages: Some(missing), lull_at: gate.lull_at.map(Into::into), retry_at: None }))
    }
}

impl ActorHouse {
    /// What a companion is called in a channel.
    fn name_in(&self, place: &Place, id: &CompanionId) -> String {
        self.kit.residents.companion(&place.channel, id).map_or_else(|| id.to_string(), |settings| settings.name.to_string())
    }
}

fn prompt_part((part, tokens): &(Arc<str>, u64)) -> PromptPart {
    PromptPart { part: part.clone(), tokens: *tokens }
}

fn whose(query: &WhyQuery, residence: &Residence) -> Result<CompanionId, Refused> {
    let present = || residence.companions.iter().map(CompanionId::as_str).collect::<Vec<_>>().join(", ");
    match (&query.companion, residence.companions.len()) {
        // One that has left has a past here, too.
        (Some(companion), _) => Ok(companion.clone()),
        (None, 1) => Ok(residence.companions.iter().next().cloned().unwrap_or_else(|| "".into())),
        (None, 0) => Err(invalid("companion", format!("nobody lives in room {}; name a companion that did", query.room))),
        (None, _) => {
            Err(invalid("companion", format!("several companions live in room {}, name one of {}", query.room, present())))
        }
    }
}

/// The events before a decision, oldest first, as far as they are read.
async fn before(reader: &Reader<'_>, place: &Place, seq: Seq) -> Result<Vec<Recorded>, ReadError> {
    let range = Range { after: Seq::NONE, before: Some(seq), limit: BEFORE, newest_first: true };
    let mut events = reader.events(place, range).await?;
    events.reverse();
    Ok(events)
}

fn question<'a>(before: &'a [Recorded], decided: &Decided) -> Option<(&'a Recorded, &'a Evaluated)> {
    before.iter().rev().find_map(|recorded| match &recorded.event {
        Event::Evaluated(evaluated) if Some(evaluated.ticket) == decided.ticket => Some((recorded, evaluated)),
        _ => None,
    })
}

/// What became of a wish, or of a vote in a round.
async fn became(
    reader: &Reader<'_>,
    place: &Place,
    seq: Seq,
    companion: &CompanionId,
    name: &str,
    mut ballot: Option<Ballot<'_>>,
    is_yes: bool,
) -> Result<Vec<StoryLine>, ReadError> {
    let range = Range { after: seq, before: None, limit: AFTER, newest_first: false };
    let mut story = Vec::new();
    let mut owed = None;
    let mut is_over = ballot.is_none();
    for recorded in reader.events(place, range).await? {
        story.extend(stage_changed(&recorded, companion, name));
        if let Some(ballot) = ballot.as_mut().filter(|_| !is_over) {
            ballot.follow(&recorded);
        }
        match &recorded.event {
            Event::RoundClosed(closed) if !is_over => {
                is_over = true;
                story.extend(ballot.as_ref().map(|ballot| line(&recorded, "round", ballot.closed(closed))));
                if !is_yes {
                    break;
                }
            }
            // The next round: its own wish is told of there.
            Event::RoundOpened(_) if owed.is_none() => break,
            Event::ReplyOwed { companion: by, ticket, messages, .. } if by == companion && owed.is_none() => {
                owed = Some(*ticket);
                let text = format!("{name} got the floor, and answers {}.", messages_in_words(messages.len()));
                story.push(line(&recorded, "respond", text));
            }
            Event::Said { message, reply: Some(ticket), .. } if owed == Some(*ticket) => {
                story.push(line(&recorded, "statement", format!("{name} said: “{}”", cut(&message.text))));
                break;
            }
            Event::ReplyFailed { ticket, error, .. } if owed == Some(*ticket) => {
                let text = format!("No statement was made ({error}). What was heard is in the history all the same.");
                story.push(line(&recorded, "failed", text));
                break;
            }
            Event::Cleared => {
                story.push(line(&recorded, "cleared", "What was going on was dropped before anything was said.".into()));
                break;
            }
            _ => {}
        }
    }
    Ok(story)
}
