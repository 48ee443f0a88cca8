//! Tells what became of something that a person said in a voice call: in which message it is, or why in none.

use super::Scene;
use super::finding::Search;
use super::sentences::{cut, line};
use crate::domain::event::{Event, Recorded, Segment};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::voice::segment::Kind;
use crate::journal::reader::ReadError;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{StoryLine, Why};

/// What followed a segment.
enum Course {
    /// It is in the message with this number.
    HandedOver(Seq),
    Cleared(Box<Recorded>),
    Waiting,
    /// The search ended before the record did.
    Unknown,
}

impl Scene<'_> {
    /// What happened to the message, or to the segment of speech, with this number or id.
    pub(super) async fn said(&self, id: &str, companion: Option<CompanionId>) -> Result<Why, Refused> {
        let Some((recorded, segment)) = self.segment(id).await? else {
            return self.message(id, companion).await;
        };
        let mut told = vec![heard(&recorded, &segment)];
        let course = match fate_of_kind(&segment) {
            Some(fate) => {
                told.push(line(&recorded, "rule", fate.to_owned()));
                return Ok(Why { message: Some(recorded.seq), story: told, ..Why::default() });
            }
            None => self.course_of(recorded.seq).await?,
        };
        let text = match course {
            Course::HandedOver(message) => {
                told.push(line(&recorded, "handed_over", format!("It was handed over as a part of message {message}.")));
                let mut why = self.message(&message.to_string(), companion).await?;
                why.story.splice(..0, told);
                return Ok(why);
            }
            Course::Cleared(cleared) => {
                let text = "The room was cleared before it was handed over, so it became no message.".to_owned();
                told.push(line(&cleared, "cleared", text));
                return Ok(Why { message: Some(recorded.seq), story: told, ..Why::default() });
            }
            Course::Waiting => {
                "It is not handed over yet. It becomes a message at the end of the voice lull (voice_lull_timeout), or earlier if it addresses a \
                 companion (voice.address_timeout_secs)."
            }
            Course::Unknown => "Its message was not found in the events that follow it.",
        };
        told.push(line(&recorded, "waiting", text.to_owned()));
        Ok(Why { message: Some(recorded.seq), story: told, ..Why::default() })
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
            // A number may be an id, too. The message of that id says what cannot be read.
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

    async fn course_of(&self, segment: Seq) -> Result<Course, ReadError> {
        let (mut search, mut cleared) = (Search::after(segment), None);
        while let Some(events) = search.next(self).await? {
            for recorded in events {
                match &recorded.event {
                    Event::Said { message, .. }
                        if message.speech.as_ref().is_some_and(|speech| speech.segments.contains(&segment)) =>
                    {
                        return Ok(Course::HandedOver(recorded.seq));
                    }
                    Event::Cleared => drop(cleared.get_or_insert(Box::new(recorded))),
                    _ => {}
                }
            }
        }
        Ok(if search.is_read { cleared.map_or(Course::Waiting, Course::Cleared) } else { Course::Unknown })
    }
}

/// Quotes a segment with the person who said it.
fn heard(recorded: &Recorded, segment: &Segment) -> StoryLine {
    let text = if segment.is_redacted() {
        "Somebody said something in the voice call. It has been deleted since.".to_owned()
    } else {
        format!("{} said in the voice call: “{}”", segment.from.name, cut(&segment.text))
    };
    line(recorded, "segment", text)
}

/// Why a segment is no message, if it is none.
const fn fate_of_kind(segment: &Segment) -> Option<&'static str> {
    match segment.kind {
        Kind::Noise => Some(
            "It counts as noise, because it has less than 0.3 s of voice, or because its recogniser takes it for no speech. Noise is no message.",
        ),
        Kind::Echo => Some(
            "It counts as echo, because a companion had just said nearly the same aloud: the microphone heard the loudspeaker. Echo is no message; \
             headphones help.",
        ),
        Kind::Words | Kind::Backchannel => None,
    }
}
