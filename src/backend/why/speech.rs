//! Explains the outcome of a person's speech in a voice call: the message that contains it, or why no message does.

use super::Scene;
use super::finding::Search;
use crate::domain::event::{Event, Recorded, Segment};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::voice::segment::Kind;
use crate::journal::reader::ReadError;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::Why;
use crate::story::words::{HandingOver, handed_over, heard};

impl Scene<'_> {
    /// The outcome of the message, or the segment of speech, with this number or id.
    pub(super) async fn said(&self, id: &str, companion: Option<CompanionId>) -> Result<Why, Refused> {
        let Some((recorded, segment)) = self.segment(id).await? else {
            return self.message(id, companion).await;
        };
        let (decisive, course) = match segment.kind {
            Kind::Noise => (recorded.clone(), HandingOver::Noise),
            Kind::Echo => (recorded.clone(), HandingOver::Echo),
            Kind::Words | Kind::Backchannel => self.course_of(&recorded).await?,
        };
        let (event, told) = handed_over(course, self.language);
        let story = vec![heard(&segment, self.language).line(&recorded, "segment"), told.line(&decisive, event)];
        if let HandingOver::Done(message) = course {
            let mut why = self.message(&message.to_string(), companion).await?;
            why.story.splice(..0, story);
            return Ok(why);
        }
        Ok(Why { message: Some(recorded.seq), story, ..Why::default() })
    }

    async fn segment(&self, id: &str) -> Result<Option<(Recorded, Segment)>, ReadError> {
        let reader = self.reader();
        let by_id = async || reader.message(&self.channel_key, id).await;
        let Some(seq) = (match id.parse().ok().map(Seq) {
            Some(seq) => Some(seq),
            None => by_id().await?,
        }) else {
            return Ok(None);
        };
        let recorded = match reader.event(&self.channel_key, seq).await {
            // A number may also be an id. The explanation of the message with that id mentions unreadable events.
            Err(ReadError::Illegible { .. }) => None,
            read => read?,
        };
        Ok(recorded.and_then(|recorded| match &recorded.event {
            Event::Segment(segment) => {
                let segment = Segment::clone(segment);
                Some((recorded, segment))
            }
            _ => None,
        }))
    }

    /// The outcome of a segment with words, and the event that shows it.
    async fn course_of(&self, segment: &Recorded) -> Result<(Recorded, HandingOver), ReadError> {
        let (mut search, mut cleared) = (Search::after(segment.seq), None);
        while let Some(events) = search.next(self).await? {
            for recorded in events {
                match &recorded.event {
                    Event::Said { message, .. }
                        if message.speech.as_ref().is_some_and(|speech| speech.segments.contains(&segment.seq)) =>
                    {
                        return Ok((segment.clone(), HandingOver::Done(recorded.seq)));
                    }
                    Event::Cleared => drop(cleared.get_or_insert(recorded)),
                    _ => {}
                }
            }
        }
        Ok(match cleared {
            _ if !search.is_read => (segment.clone(), HandingOver::Unknown),
            Some(cleared) => (cleared, HandingOver::Cleared),
            None => (segment.clone(), HandingOver::Waiting),
        })
    }
}
