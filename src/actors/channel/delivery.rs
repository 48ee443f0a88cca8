//! Posts a statement on a platform, part by part. Each part is sent at most once, even if the process or the platform fails in between.
//!
//! We journal `PartRecord::Sending` before sending. A part without a recorded result is looked up on the platform: after 1.5 s, and again until it
//! can no longer arrive. If it is not found by then, it is sent again. If the outcome of a part remains unknown, no further part is sent. A delivery
//! that is stopped finishes the part that is being sent, and so does a server that stops.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout};

use crate::actors::messages::channel::{ChannelMessage, Delivered};
use crate::actors::messages::writer::{OutboxWrite, Record, Request, WriteError};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Sort;
use crate::actors::writer::requests::{ask, writer_ref};
use crate::domain::id::Ticket;
use crate::domain::moment::Moment;
use crate::domain::split::split;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::{OutboxRecord, PartRecord, Used};
use crate::ports::chat_platform::{ChatPlatform, NotRead, NotSent, Part, insist};
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::instruments::platform_label;
use crate::telemetry::plain::Plain;

/// The error codes of statements that the platform did not accept. No model error has one of these codes.
///
/// The platform refused this statement.
const POST_REFUSED: &str = "post_refused";
/// The platform refuses every statement in the channel until its settings on the platform change.
pub const UNPOSTABLE: &str = "unpostable";
/// The platform could not be reached, or accepted no part for too long.
pub const UNDELIVERED: &str = "undelivered";

/// How long a delivery tries to send its parts before it gives up the remaining ones. Also the time limit of one request.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long after a lost answer a part is first looked up. Each further lookup waits four times as long. A posted part is found soon, so the
/// channel's other statements do not wait long. It is certain that a part was not posted only once it can no longer arrive.
const FIRST_LOOKUP: Duration = Duration::from_millis(1_500);
/// The pause before a part is tried again. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, unless the platform asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub struct Delivery;

pub struct Arguments {
    pub channel_key: ChannelKey,
    /// When the channel's journal began. It is part of the nonces, because a channel that is deleted and returns counts its tickets from the start.
    pub since: Moment,
    pub ticket: Ticket,
    /// The outbox record of the statement, with its text.
    pub owed: OutboxRecord,
    /// The platform's ids of the channel's newest journaled messages.
    pub on_record: Vec<Arc<str>>,
    /// The name under which the companion posts.
    pub name: Arc<str>,
    /// The URL of the companion's picture, if it has one.
    pub picture: Option<Arc<str>>,
    /// The usage of the calls that wrote the statement. It is recorded with the first part.
    pub used: Vec<Used>,
    pub platform: Arc<dyn ChatPlatform>,
    /// True: parts that were not sent must not be sent.
    pub stop: watch::Receiver<bool>,
    /// Held while the delivery runs, so that a channel's statements are posted one after another. Otherwise parts of two statements with the same
    /// text could be mistaken for each other.
    pub delivery_lock: Arc<Mutex<()>>,
    /// Receives [`ChannelMessage::Delivered`].
    pub channel: ActorRef<ChannelMessage>,
    pub context: ActorContext,
}

/// The only message of a delivery, which the delivery sends to itself.
pub struct Deliver;

pub struct State {
    arguments: Arguments,
    _counted: Counted,
}

impl Actor for Delivery {
    type Msg = Deliver;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<Deliver>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let counted = arguments.context.recorder.instruments().actors.one([Sort::Delivery.as_str()]);
        myself.cast(Deliver)?;
        Ok(State { arguments, _counted: counted })
    }

    async fn handle(&self, myself: ActorRef<Deliver>, _: Deliver, state: &mut State) -> Result<(), ActorProcessingErr> {
        let delivery = &mut state.arguments;
        let _delivery_lock = delivery.delivery_lock.clone().lock_owned().await;
        let notice = delivery.owed.notice.as_ref().map_or(0, |notice| notice.text.encode_utf16().count());
        let longest = delivery.platform.capabilities().longest_part.saturating_sub(notice);
        let mut texts = split(delivery.owed.text.as_deref().unwrap_or_default(), longest);
        if texts.is_empty() && delivery.owed.notice.is_some() {
            // The words were spoken, and only the notice is posted.
            texts.push(String::new());
        }
        delivery.recheck_parts_on_record().await;
        delivery.owed.parts.resize(texts.len(), PartRecord::Owed);
        if !delivery.owed.written.former.is_empty() {
            delivery.replace_former(&texts).await?;
        }
        let error = match AssertUnwindSafe(delivery.send_all(&texts)).catch_unwind().await {
            Ok(error) => error?,
            Err(_panic) => delivery.handle_panic().await?,
        };
        let delivered = delivery.outcome(&texts, error);
        delivery.channel.cast(ChannelMessage::Delivered { ticket: delivery.ticket, delivered: Box::new(delivered) })?;
        myself.stop(None);
        Ok(())
    }
}

impl Arguments {
    /// Edits the post of the statement that this one replaces, if both have one part. Otherwise deletes its parts, each until the platform confirms it
    /// or refuses too often. If the platform keeps one of them, this statement takes no other one's place. After a restart this is repeated, which
    /// changes nothing.
    async fn replace_former(&mut self, texts: &[String]) -> Result<(), WriteError> {
        let is_begun = self.owed.parts.iter().any(|part| *part != PartRecord::Owed);
        if texts.is_empty() || is_begun || *self.stop.borrow() {
            return Ok(());
        }
        // A server that stops leaves the former statement until it can send this one.
        let Some(_posting) = self.context.postings.begin() else { return Ok(()) };
        // From now on, a restart finds the text, the versions and the posts to change.
        self.journal_part(0, PartRecord::Owed).await?;
        let Self { platform, channel_key: ChannelKey { guild, channel }, owed, .. } = &*self;
        if let ([id], [text]) = (&owed.written.former[..], texts) {
            let id = id.clone();
            let notice = owed.notice.as_ref().map(|notice| &*notice.text);
            if insist(|| platform.change(guild, channel, &id, Some(text.as_str()), notice)).await.is_ok() {
                self.journal_part(0, PartRecord::Sent { id }).await?;
                self.count("posted");
                return Ok(());
            }
        }
        for id in &owed.written.former {
            if let Err(error) = insist(|| platform.change(guild, channel, id, None, None)).await {
                tracing::warn!(channel = %Plain(channel.as_str()), %error, "a replaced statement could not be deleted; delete it by hand");
                self.owed.written = owed.written.clone().beside_former();
                break;
            }
        }
        Ok(())
    }

    /// Sends the parts that were not sent. Returns the error code if not all of them could be sent. If a part stays unconfirmed, the rest is not
    /// sent, and there is no error code.
    async fn send_all(&mut self, texts: &[String]) -> Result<Option<&'static str>, WriteError> {
        let began = Instant::now();
        for (index, text) in texts.iter().enumerate() {
            let part = self.part(index, text, index + 1 == texts.len());
            let mut retry_delays = RetryDelays { began, next: FIRST_PAUSE };
            // The time of a part that was sent before a restart is unknown, so the time within which it can arrive counts from now.
            let mut lookups = Lookups::new(self.platform.capabilities().request_timeout);
            loop {
                let wait = match self.owed.parts[index].clone() {
                    PartRecord::Sent { .. } => break,
                    // The parts after it make no sense alone.
                    PartRecord::Unconfirmed => return Ok(None),
                    PartRecord::Sending { after } => self.look_up(index, &part, after.as_deref(), &mut lookups).await?,
                    PartRecord::Owed if *self.stop.borrow() => return Ok(Some("cancelled")),
                    PartRecord::Owed if began.elapsed() > PATIENCE => {
                        return Ok(Some(self.give_up()));
                    }
                    PartRecord::Owed => match self.send(index, &part, &mut lookups).await? {
                        Ok(wait) => wait,
                        Err(code) => return Ok(Some(code)),
                    },
                };
                let Some(wait) = wait else { continue };
                if !retry_delays.pause(wait, &mut self.stop).await {
                    if matches!(self.owed.parts[index], PartRecord::Sending { .. }) {
                        self.journal_part(index, PartRecord::Unconfirmed).await?;
                        self.count("unconfirmed");
                        return Ok(None);
                    }
                    return Ok(Some(self.give_up()));
                }
            }
        }
        Ok(None)
    }

    /// Handles a panic while sending, which would repeat. The part that was being sent becomes unconfirmed, and the rest is not sent.
    async fn handle_panic(&mut self) -> Result<Option<&'static str>, WriteError> {
        tracing::error!(channel = %Plain(self.channel_key.channel.as_str()), "sending a statement panicked; its remaining parts are not sent");
        let Some(index) = self.owed.parts.iter().position(|part| matches!(part, PartRecord::Sending { .. })) else {
            self.count("failed");
            return Ok(Some(UNDELIVERED));
        };
        self.journal_part(index, PartRecord::Unconfirmed).await?;
        self.count("unconfirmed");
        Ok(None)
    }

    /// Sends a part that is known not to be posted. Returns how long to wait before the next attempt (`None`: continue at once), or the code of a
    /// permanent error.
    async fn send(
        &mut self,
        index: usize,
        part: &Part,
        lookups: &mut Lookups,
    ) -> Result<Result<Option<Wait>, &'static str>, WriteError> {
        let Some(_posting) = self.context.postings.begin() else { return Ok(Ok(Some(Wait(None)))) };
        let after = self.newest_before(index, part);
        self.journal_part(index, PartRecord::Sending { after }).await?;
        let began = Instant::now();
        // No request takes nearly this long. A request that never ends must not block its channel forever.
        let sent = timeout(PATIENCE, self.platform.send(part)).await;
        let hangs = |_| Err(NotSent::Unknown { detail: "the platform's adapter hangs".into(), within: Duration::ZERO });
        match sent.unwrap_or_else(hangs) {
            Ok(id) => {
                let took = began.elapsed();
                self.journal_part(index, PartRecord::Sent { id }).await?;
                // If the process dies before this is journaled, the part is found and counted after the restart.
                self.context.recorder.instruments().sent(self.label(), "posted", took);
                Ok(Ok(None))
            }
            Err(NotSent::Later { after, detail }) => {
                tracing::debug!(channel = %Plain(self.channel_key.channel.as_str()), detail, "a part of a statement has to wait");
                // In the journal it stays `Sending`, which costs one lookup after a crash.
                self.owed.parts[index] = PartRecord::Owed;
                Ok(Ok(Some(Wait(after))))
            }
            Err(NotSent::Unknown { detail, within }) => {
                *lookups = Lookups::new(within);
                tracing::warn!(
                    channel = %Plain(self.channel_key.channel.as_str()),
                    detail,
                    "a part of a statement was sent without a confirmation; it is looked up on the platform"
                );
                Ok(Ok(None))
            }
            Err(error @ (NotSent::Refused(_) | NotSent::Unpostable(_))) => {
                // The platform's adapter reports this to the operator, once per channel.
                tracing::debug!(channel = %Plain(self.channel_key.channel.as_str()), %error, "the platform refused a statement");
                self.owed.parts[index] = PartRecord::Owed;
                self.count("failed");
                Ok(Err(if matches!(error, NotSent::Unpostable(_)) { UNPOSTABLE } else { POST_REFUSED }))
            }
        }
    }

    /// Waits for the next lookup of a part that may have been posted, and looks it up. Once the part can no longer arrive, the result is certain.
    async fn look_up(
        &mut self,
        index: usize,
        part: &Part,
        after: Option<&str>,
        lookups: &mut Lookups,
    ) -> Result<Option<Wait>, WriteError> {
        let is_certain = lookups.wait().await;
        let found = timeout(PATIENCE, self.find(part, after)).await;
        let hangs = |_| Err(NotRead::Later { after: None, detail: "the platform's adapter hangs".into() });
        let (found, outcome) = match found.unwrap_or_else(hangs) {
            Ok(Some(id)) => (PartRecord::Sent { id }, Some("posted")),
            Ok(None) if !is_certain => return Ok(None),
            Ok(None) => (PartRecord::Owed, None),
            Err(NotRead::Later { after, .. }) => return Ok(Some(Wait(after))),
            Err(NotRead::Never(detail)) => {
                tracing::warn!(
                    channel = %Plain(self.channel_key.channel.as_str()),
                    detail,
                    "whether a statement was posted cannot be found out; it is not sent again"
                );
                (PartRecord::Unconfirmed, Some("unconfirmed"))
            }
        };
        self.journal_part(index, found).await?;
        outcome.into_iter().for_each(|outcome| self.count(outcome));
        Ok(None)
    }

    /// The id of the message that a part was posted as. None if it was not found. Earlier messages can have the same text.
    async fn find(&self, part: &Part, after: Option<&str>) -> Result<Option<Arc<str>>, NotRead> {
        let mut taken = BTreeSet::new();
        loop {
            let Some(id) = self.platform.find(part, after, &taken).await? else { return Ok(None) };
            match self.is_on_record(&id).await {
                Ok(false) => return Ok(Some(id)),
                Ok(true) if taken.insert(id) => {}
                Ok(true) => {
                    return Err(NotRead::Never("the platform finds only messages that are on record as others".to_owned()));
                }
                Err(error) => return Err(NotRead::Later { after: None, detail: error.to_string() }),
            }
        }
    }

    /// Whether a message is already journaled. Then it is not a part of this statement, whose messages are journaled only together with it.
    async fn is_on_record(&self, id: &str) -> Result<bool, ReadError> {
        Ok(Reader::new(&*self.context.store).message(&self.channel_key, id).await?.is_some())
    }

    /// Resets parts that were matched with a message that is journaled by now. They were matched wrongly, and must be looked up again.
    async fn recheck_parts_on_record(&mut self) {
        for index in 0..self.owed.parts.len() {
            if let PartRecord::Sent { id } = &self.owed.parts[index]
                // The post of a replaced statement is on record as that one's.
                && !self.owed.written.former.contains(id)
                // If the message cannot be read, the part keeps its id, and journaling it will be refused.
                && self.is_on_record(id).await.unwrap_or(false)
            {
                self.owed.parts[index] = PartRecord::Sending { after: None };
            }
        }
    }

    /// The newest message in the channel before a part is sent.
    fn newest_before(&self, index: usize, part: &Part) -> Option<Arc<str>> {
        let before = self.owed.parts[..index].iter().rev().find_map(|earlier| match earlier {
            PartRecord::Sent { id } => Some(id.clone()),
            _ => None,
        });
        before.or_else(|| self.platform.newest(&part.channel, &self.on_record))
    }

    /// Journals the state of a part.
    async fn journal_part(&mut self, index: usize, part: PartRecord) -> Result<(), WriteError> {
        self.owed.parts[index] = part;
        let (outbox, usage) = (vec![OutboxWrite::Put(self.ticket, self.owed.clone())], std::mem::take(&mut self.used));
        let record = |reply| Record { outbox, usage, ..Record::new(self.channel_key.clone(), self.context.clock.now(), reply) };
        ask(&writer_ref(&self.context)?, |reply| Request::Record(record(reply))).await.map(drop)
    }

    /// Gives up the remaining parts. Returns the error code.
    fn give_up(&self) -> &'static str {
        if *self.stop.borrow() {
            return "cancelled";
        }
        self.count("failed");
        tracing::warn!(
            channel = %Plain(self.channel_key.channel.as_str()),
            "the platform did not take a statement for too long; its remaining parts are not sent"
        );
        UNDELIVERED
    }

    fn count(&self, outcome: &'static str) {
        self.context.recorder.instruments().platform_sends.add(1, [self.label(), outcome]);
    }

    fn label(&self) -> &'static str {
        platform_label(self.platform.name())
    }

    fn part(&self, index: usize, text: &str, is_last: bool) -> Part {
        Part {
            guild: self.channel_key.guild.clone(),
            channel: self.channel_key.channel.clone(),
            companion: self.owed.companion.clone(),
            name: self.name.clone(),
            picture: self.picture.clone(),
            text: text.into(),
            notice: self.owed.notice.as_ref().filter(|_| is_last).map(|notice| notice.text.clone()),
            nonce: format!("{}@{}#{}.{index}", self.channel_key.channel, self.since.as_micros(), self.ticket).into(),
        }
    }

    fn outcome(&self, texts: &[String], error: Option<&'static str>) -> Delivered {
        let is_sent = |part: &&PartRecord| matches!(part, PartRecord::Sent { .. } | PartRecord::Unconfirmed);
        let posted = self.owed.parts.iter().take_while(is_sent).count();
        let text = if posted == texts.len() { self.owed.text.clone() } else { Some(texts[..posted].join("\n").into()) };
        // A message without words is no part of the statement, which may be edited.
        let ids = self.owed.parts.iter().zip(texts).filter_map(|(part, text)| match part {
            PartRecord::Sent { id } if !text.is_empty() => Some(id.clone()),
            _ => None,
        });
        let disclosed = match (&self.owed.notice, self.owed.parts.last()) {
            (Some(notice), Some(PartRecord::Sent { id })) => Some((notice.owed.clone(), id.clone())),
            _ => None,
        };
        Delivered {
            text: text.unwrap_or_else(|| "".into()),
            ids: ids.collect(),
            is_unconfirmed: self.owed.parts.contains(&PartRecord::Unconfirmed),
            error,
            disclosed,
            written: self.owed.written.clone(),
        }
    }
}

/// The times of the lookups of a part whose outcome is unknown.
struct Lookups {
    /// A part that has not arrived by this time will never arrive.
    arrives_by: Instant,
    next: Duration,
}

impl Lookups {
    /// The lookups of a part that arrives within this time from now, or never.
    fn new(within: Duration) -> Self {
        Self { arrives_by: Instant::now() + within, next: FIRST_LOOKUP }
    }

    /// Waits for the next lookup. Returns whether a part that is not found then will never arrive.
    async fn wait(&mut self) -> bool {
        let now = Instant::now();
        let at = (now + self.next).min(self.arrives_by).max(now + FIRST_LOOKUP);
        self.next = self.next.saturating_mul(4);
        tokio::time::sleep_until(at).await;
        Instant::now() >= self.arrives_by
    }
}

/// How long the platform asked to wait. None if it did not ask.
struct Wait(Option<Duration>);

struct RetryDelays {
    began: Instant,
    next: Duration,
}

impl RetryDelays {
    /// Waits before the next attempt. Returns false if the attempts took too long, or the delivery was stopped.
    async fn pause(&mut self, Wait(asked): Wait, stop: &mut watch::Receiver<bool>) -> bool {
        let pause = asked.unwrap_or_default().max(self.next);
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        if *stop.borrow() || self.began.elapsed() + pause > PATIENCE {
            return false;
        }
        tokio::select! {
            biased;
            // If the channel stops, this actor is stopped with it.
            _ = stop.changed() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }
}
