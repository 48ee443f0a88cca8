//! Explains the outcome of a person's speech in a voice call, or of a voice note: the message that contains the words, or why no message does.

use super::Scene;
use super::finding::Search;
use crate::domain::event::{Event, Recorded, Segment};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::voice::segment::Kind;
use crate::journal::reader::ReadError;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{StoryLine, Why};
use crate::story::words::{HandingOver, Told, handed_over, heard, voice_note};

impl Scene<'_> {
    /// The outcome of the message, or the segment of speech, with this number or id.
    pub(super) async fn said(&self, id: &str, companion: Option<CompanionId>) -> Result<Why, Refused> {
        let (recorded, first, (decisive, course)) = match self.segment(id).await? {
            Some((recorded, segment)) => {
                let course = match segment.kind {
                    Kind::Noise => (recorded.clone(), HandingOver::Noise),
                    Kind::Echo => (recorded.clone(), HandingOver::Echo),
                    Kind::Words | Kind::Backchannel => self.course_of(&recorded, HandingOver::Waiting).await?,
                };
                let first = heard(&segment, self.language).line(&recorded, "segment");
                (recorded, first, course)
            }
            None => match self.awaited_note(id).await? {
                Some((recorded, first)) => {
                    let course = self.course_of(&recorded, HandingOver::Transcribing).await?;
                    (recorded, first, course)
                }
                None => {
                    let recorded = self.message_of(id).await?;
                    if !matches!(&recorded.event, Event::Said { message, .. } if message.background) {
                        return self.message(id, companion).await;
                    }
                    let told = Told::new(self.language, "why.message.background", &[]).line(&recorded, "background");
                    let story = self.quoted(&recorded).into_iter().chain([told]).collect();
                    return Ok(Why { message: Some(recorded.seq), story, ..Why::default() });
                }
            },
        };
        let (event, told) = handed_over(course, self.language);
        let story = vec![first, told.line(&decisive, event)];
        if let HandingOver::Done(message) = course {
            let mut why = self.message(&message.to_string(), companion).await?;
            why.story.splice(..0, story);
            return Ok(why);
        }
        Ok(Why { message: Some(recorded.seq), story, ..Why::default() })
    }

    async fn segment(&self, id: &str) -> Result<Option<(Recorded, Segment)>, ReadError> {
        let reader = self.reader();
        let seq = match id.parse().ok().map(Seq) {
            Some(seq) => Some(seq),
            None => reader.message(&self.channel_key, id).await?,
        };
        let Some(seq) = seq else { return Ok(None) };
        let recorded = match reader.event(&self.channel_key, seq).await {
            // A number may also be an id. The explanation of the message with that id mentions unreadable events.
            Err(ReadError::Illegible { .. }) => None,
            read => read?,
        };
        Ok(recorded.and_then(|recorded| match &recorded.event {
            Event::Segment(segment) => Some((recorded.clone(), Segment::clone(segment))),
            _ => None,
        }))
    }

    /// The voice note with this number or id whose words come in another message, and the line about it.
    async fn awaited_note(&self, id: &str) -> Result<Option<(Recorded, StoryLine)>, Refused> {
        let recorded = self.message_of(id).await?;
        let line = match &recorded.event {
            Event::Said { message, .. } if message.awaits_words() => {
                voice_note(message, self.language).map(|told| told.line(&recorded, "voice_note"))
            }
            _ => None,
        };
        Ok(line.map(|line| (recorded, line)))
    }

    /// The outcome of a segment with words or of a voice note, and the event that shows it. `open`: no event shows it.
    async fn course_of(&self, segment: &Recorded, open: HandingOver) -> Result<(Recorded, HandingOver), ReadError> {
        let (mut search, mut cleared) = (Search::after(segment.seq), None);
        while let Some(events) = search.next(self).await? {
            for recorded in events {
                match &recorded.event {
                    Event::Said { message, .. } if message.sources().any(|source| source == segment.seq) => {
                        return Ok((segment.clone(), HandingOver::Done(recorded.seq)));
                    }
                    Event::Cleared { .. } => drop(cleared.get_or_insert(recorded)),
                    _ => {}
                }
            }
        }
        Ok(match cleared {
            _ if !search.is_read => (segment.clone(), HandingOver::Unknown),
            Some(cleared) => (cleared, HandingOver::Cleared),
            None => (segment.clone(), open),
        })
    }
}
