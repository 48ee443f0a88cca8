//! A statement on its way to a platform: part by part, each sent at most once, whatever dies in between.
//!
//! We journal `PartRecord::Sending` before sending. A part without a recorded result is looked up on the platform: after 1.5 s, and again
//! until it can no longer arrive. If it is not there then, it is sent again. After a part whose outcome stays unknown nothing more is sent.
//! Stopped softly, it finishes the part that is on its way.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout};

use crate::actors::messages::channel::{ChannelMessage, Delivered};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{OutboxWrite, Record, WriteError, WriterMessage};
use crate::actors::runtime::actor_keys::WriterKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Sort;
use crate::domain::id::Ticket;
use crate::domain::moment::Moment;
use crate::domain::split::split;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::{OutboxRecord, PartRecord, Used};
use crate::ports::chat_platform::{ChatPlatform, NotRead, NotSent, Part};
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::instruments::platform_label;
use crate::telemetry::plain::Plain;

/// What of a statement could not be sent for so long is given up.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long after its answer was lost a part is looked for, the first time; then it takes four times as long each time. A part that is there is
/// found soon, and the channel's other statements wait no longer; that it is not there is certain only once it can arrive no more.
const FIRST_LOOK: Duration = Duration::from_millis(1_500);
/// The pause before a part is tried again, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, unless the platform asks for more.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The actor.
pub struct Delivery;

/// What is to be delivered.
pub struct Arguments {
    /// Where.
    pub channel_key: ChannelKey,
    /// Since when that channel is on record: one that is deleted and comes back counts its replies anew.
    pub since: Moment,
    /// The reply's number.
    pub ticket: Ticket,
    /// What is on record of it, with the words.
    pub owed: OutboxRecord,
    /// The platform's ids of the channel's newest messages on record.
    pub on_record: Vec<Arc<str>>,
    /// Under which name the companion speaks.
    pub name: Arc<str>,
    /// Where its picture is, if it has one.
    pub picture: Option<Arc<str>>,
    /// What writing the words used, to go on record with the first part.
    pub used: Vec<Used>,
    /// Where to.
    pub platform: Arc<dyn ChatPlatform>,
    /// True: what has not left yet shall not leave any more.
    pub stop: watch::Receiver<bool>,
    /// Held while it is under way: of a channel's statements one after the other is, lest the same words of two be taken for each other.
    pub lane: Arc<Mutex<()>>,
    /// Who is told what came of it.
    pub channel: ActorRef<ChannelMessage>,
    /// What it works with.
    pub context: ActorContext,
}

/// What a delivery is told, by itself.
pub struct Deliver;

/// What it keeps.
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
        let _lane = delivery.lane.clone().lock_owned().await;
        let texts = split(delivery.owed.text.as_deref().unwrap_or_default(), delivery.platform.capabilities().longest_part);
        delivery.doubt_what_is_anothers().await;
        delivery.owed.parts.resize(texts.len(), PartRecord::Owed);
        let error = match AssertUnwindSafe(delivery.send_all(&texts)).catch_unwind().await {
            Ok(error) => error?,
            Err(_panic) => delivery.broke_off().await?,
        };
        let delivered = delivery.outcome(&texts, error);
        delivery.channel.cast(ChannelMessage::Delivered { ticket: delivery.ticket, delivered: Box::new(delivered) })?;
        myself.stop(None);
        Ok(())
    }
}

impl Arguments {
    /// Sends what was not sent yet. The code of what kept it from sending all of it.
    async fn send_all(&mut self, texts: &[String]) -> Result<Option<&'static str>, WriteError> {
        let began = Instant::now();
        for (index, text) in texts.iter().enumerate() {
            let part = self.part(index, text);
            let mut pauses = RetryDelays { began, next: FIRST_PAUSE };
            // When a part that was on its way before cannot arrive any more is known only from now on.
            let mut looks = Looks::new(self.platform.capabilities().request_timeout);
            loop {
                let wait = match self.owed.parts[index].clone() {
                    PartRecord::Sent { .. } => break,
                    // What comes after it makes no sense alone.
                    PartRecord::Unconfirmed => return Ok(None),
                    PartRecord::Sending { after } => self.look(index, &part, after.as_deref(), &mut looks).await?,
                    PartRecord::Owed if *self.stop.borrow() => return Ok(Some("cancelled")),
                    PartRecord::Owed if began.elapsed() > PATIENCE => {
                        return Ok(Some(self.give_up()));
                    }
                    PartRecord::Owed => match self.send(index, &part, &mut looks).await? {
                        Ok(wait) => wait,
                        Err(code) => return Ok(Some(code)),
                    },
                };
                let Some(wait) = wait else { continue };
                if !pauses.pause(wait, &mut self.stop).await {
                    if matches!(self.owed.parts[index], PartRecord::Sending { .. }) {
                        self.note(index, PartRecord::Unconfirmed).await?;
                        self.count("unconfirmed");
                        return Ok(None);
                    }
                    return Ok(Some(self.give_up()));
                }
            }
        }
        Ok(None)
    }

    /// Sending panicked, and would again: what was on its way stays so, and the rest is not sent.
    async fn broke_off(&mut self) -> Result<Option<&'static str>, WriteError> {
        tracing::error!(channel = %Plain(self.channel_key.channel.as_str()), "sending a statement panicked; what is left of it is not sent");
        let Some(index) = self.owed.parts.iter().position(|part| matches!(part, PartRecord::Sending { .. })) else {
            self.count("failed");
            return Ok(Some("unreachable"));
        };
        self.note(index, PartRecord::Unconfirmed).await?;
        self.count("unconfirmed");
        Ok(None)
    }

    /// Sends a part that has certainly not been posted. How long to wait before it is tried again; an error is for good.
    async fn send(
        &mut self,
        index: usize,
        part: &Part,
        looks: &mut Looks,
    ) -> Result<Result<Option<Wait>, &'static str>, WriteError> {
        let after = self.newest_before(index, part);
        self.note(index, PartRecord::Sending { after }).await?;
        let began = Instant::now();
        // No request takes nearly as long; one that never ends must not hold up its channel for good.
        let sent = timeout(PATIENCE, self.platform.send(part)).await;
        let hangs = |_| Err(NotSent::Unknown { detail: "the platform's adapter hangs".into(), within: Duration::ZERO });
        match sent.unwrap_or_else(hangs) {
            Ok(id) => {
                let took = began.elapsed();
                self.note(index, PartRecord::Sent { id }).await?;
                // Whoever dies before it is on record finds the part, and counts it then.
                self.context.recorder.instruments().sent(self.label(), "posted", took);
                Ok(Ok(None))
            }
            Err(NotSent::Later { after, detail }) => {
                tracing::debug!(channel = %Plain(self.channel_key.channel.as_str()), detail, "a part of a statement has to wait");
                // On record it stays on its way, which costs a look after a crash.
                self.owed.parts[index] = PartRecord::Owed;
                Ok(Ok(Some(Wait(after))))
            }
            Err(NotSent::Unknown { detail, within }) => {
                *looks = Looks::new(within);
                tracing::warn!(channel = %Plain(self.channel_key.channel.as_str()), detail, "nobody knows whether a part of a statement was posted; it is looked for");
                Ok(Ok(None))
            }
            Err(NotSent::Refused(detail) | NotSent::Unpostable(detail)) => {
                // Whoever runs the server is told by the platform, once for a channel.
                tracing::debug!(channel = %Plain(self.channel_key.channel.as_str()), detail, "the platform refused a statement");
                self.owed.parts[index] = PartRecord::Owed;
                self.count("failed");
                Ok(Err("refused"))
            }
        }
    }

    /// Looks for a part that may have been posted: soon, and again until it must have arrived. Then it is certain whether it is there.
    async fn look(
        &mut self,
        index: usize,
        part: &Part,
        after: Option<&str>,
        looks: &mut Looks,
    ) -> Result<Option<Wait>, WriteError> {
        let is_certain = looks.wait().await;
        let found = timeout(PATIENCE, self.find(part, after)).await;
        let hangs = |_| Err(NotRead::Later { after: None, detail: "the platform's adapter hangs".into() });
        let (found, outcome) = match found.unwrap_or_else(hangs) {
            Ok(Some(id)) => (PartRecord::Sent { id }, Some("posted")),
            Ok(None) if !is_certain => return Ok(None),
            Ok(None) => (PartRecord::Owed, None),
            Err(NotRead::Later { after, .. }) => return Ok(Some(Wait(after))),
            Err(NotRead::Never(detail)) => {
                tracing::warn!(channel = %Plain(self.channel_key.channel.as_str()), detail, "it cannot be known whether a statement was posted; it is not sent again");
                (PartRecord::Unconfirmed, Some("unconfirmed"))
            }
        };
        self.note(index, found).await?;
        outcome.into_iter().for_each(|outcome| self.count(outcome));
        Ok(None)
    }

    /// The message that a part is, if it was posted. The same words may have been said before.
    async fn find(&self, part: &Part, after: Option<&str>) -> Result<Option<Arc<str>>, NotRead> {
        let mut taken = BTreeSet::new();
        loop {
            let Some(id) = self.platform.find(part, after, &taken).await? else { return Ok(None) };
            match self.is_anothers(&id).await {
                Ok(false) => return Ok(Some(id)),
                Ok(true) if taken.insert(id) => {}
                Ok(true) => return Err(NotRead::Never("the platform finds nothing but what is something else".to_owned())),
                Err(error) => return Err(NotRead::Later { after: None, detail: error.to_string() }),
            }
        }
    }

    /// Whether a message is another statement's, or nobody's: what is on record is not this one's, which would be on record with it.
    async fn is_anothers(&self, id: &str) -> Result<bool, ReadError> {
        Ok(Reader::new(&*self.context.store).message(&self.channel_key, id).await?.is_some())
    }

    /// A part that was taken for a message that is on record by now was mistaken for it, so that nobody knows where it is.
    async fn doubt_what_is_anothers(&mut self) {
        for index in 0..self.owed.parts.len() {
            if let PartRecord::Sent { id } = &self.owed.parts[index]
                // One that cannot be read is put on record as it is, which is refused.
                && self.is_anothers(id).await.unwrap_or(false)
            {
                self.owed.parts[index] = PartRecord::Sending { after: None };
            }
        }
    }

    /// The newest message that was there before a part left.
    fn newest_before(&self, index: usize, part: &Part) -> Option<Arc<str>> {
        let before = self.owed.parts[..index].iter().rev().find_map(|earlier| match earlier {
            PartRecord::Sent { id } => Some(id.clone()),
            _ => None,
        });
        before.or_else(|| self.platform.newest(&part.channel, &self.on_record))
    }

    /// Puts on record how far a part has come.
    async fn note(&mut self, index: usize, part: PartRecord) -> Result<(), WriteError> {
        self.owed.parts[index] = part;
        let (reply, committed) = Reply::awaited();
        let record = Record {
            channel_key: self.channel_key.clone(),
            at: self.context.clock.now(),
            made: Vec::new(),
            quiet: None,
            snapshot: None,
            outbox: vec![OutboxWrite::Put(self.ticket, self.owed.clone())],
            usage: std::mem::take(&mut self.used),
            reply,
        };
        match self.context.directory.find(&WriterKey()) {
            Some(writer) => drop(writer.cast(WriterMessage::Record(record))),
            None => drop(record),
        }
        committed.await.unwrap_or(Err(WriteError::Unknown)).map(drop)
    }

    /// What is left is not sent any more: the code of why.
    fn give_up(&self) -> &'static str {
        if *self.stop.borrow() {
            return "cancelled";
        }
        self.count("failed");
        tracing::warn!(channel = %Plain(self.channel_key.channel.as_str()), "the platform did not take a statement for too long; what is left of it is not sent");
        "unreachable"
    }

    fn count(&self, outcome: &'static str) {
        self.context.recorder.instruments().platform_sends.add(1, [self.label(), outcome]);
    }

    fn label(&self) -> &'static str {
        platform_label(self.platform.name())
    }

    fn part(&self, index: usize, text: &str) -> Part {
        Part {
            guild: self.channel_key.guild.clone(),
            channel: self.channel_key.channel.clone(),
            companion: self.owed.companion.clone(),
            name: self.name.clone(),
            picture: self.picture.clone(),
            text: text.into(),
            nonce: format!("{}@{}#{}.{index}", self.channel_key.channel, self.since.as_micros(), self.ticket).into(),
        }
    }

    fn outcome(&self, texts: &[String], error: Option<&'static str>) -> Delivered {
        let left = |part: &&PartRecord| matches!(part, PartRecord::Sent { .. } | PartRecord::Unconfirmed);
        let posted = self.owed.parts.iter().take_while(left).count();
        let text = if posted == texts.len() { self.owed.text.clone() } else { Some(texts[..posted].join("\n").into()) };
        let ids = self.owed.parts.iter().filter_map(|part| match part {
            PartRecord::Sent { id } => Some(id.clone()),
            _ => None,
        });
        Delivered {
            text: text.unwrap_or_else(|| "".into()),
            ids: ids.collect(),
            is_unconfirmed: self.owed.parts.contains(&PartRecord::Unconfirmed),
            error,
        }
    }
}

/// When a part is looked for whose fate is not known.
struct Looks {
    /// What has not arrived by then never will.
    arrives_by: Instant,
    next: Duration,
}

impl Looks {
    /// For a part that arrives within this time from now, or never.
    fn new(within: Duration) -> Self {
        Self { arrives_by: Instant::now() + within, next: FIRST_LOOK }
    }

    /// Waits for the next look. Whether what is not there then never will be.
    async fn wait(&mut self) -> bool {
        let now = Instant::now();
        let at = (now + self.next).min(self.arrives_by).max(now + FIRST_LOOK);
        self.next = self.next.saturating_mul(4);
        tokio::time::sleep_until(at).await;
        Instant::now() >= self.arrives_by
    }
}

/// How long the platform asked to be left alone, if it did.
struct Wait(Option<Duration>);

struct RetryDelays {
    began: Instant,
    next: Duration,
}

impl RetryDelays {
    /// Waits, unless it took too long already or is wanted no more: false.
    async fn pause(&mut self, Wait(asked): Wait, stop: &mut watch::Receiver<bool>) -> bool {
        let pause = asked.unwrap_or_default().max(self.next);
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        if *stop.borrow() || self.began.elapsed() + pause > PATIENCE {
            return false;
        }
        tokio::select! {
            biased;
            // A channel that is gone takes this actor along.
            _ = stop.changed() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }
}
