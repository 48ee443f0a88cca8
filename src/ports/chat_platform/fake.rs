//! A fake platform in memory. A test makes it reject requests, delay them, or lose their responses. It serves the channels of the console.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::{Capabilities, ChatPlatform, NotRead, NotSent, Part};
use crate::backend::room::is_of_console;
use crate::domain::id::{ChannelId, GuildId, Ticket};
use crate::domain::tools::built_in::Poll;

/// The duration of a request.
pub const TAKES: Duration = Duration::from_millis(500);
/// After this time, a sent request no longer arrives.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The outcome of the next request.
#[derive(Clone, Debug)]
pub enum Fate {
    /// The part is posted, and the response times out.
    Silent,
    /// The part is not posted.
    Fails(NotSent),
    /// The part is posted, and the call never returns.
    Hangs,
    /// The part is posted, and the call panics.
    Panics,
}

/// A fake platform in memory.
#[derive(Default)]
pub struct FakePlatform {
    posted: Mutex<Vec<(String, Part)>>,
    fates: Mutex<VecDeque<Fate>>,
    unreadable: Mutex<Option<NotRead>>,
    typed: Mutex<usize>,
    longest: Mutex<Option<usize>>,
    is_forgetful: Mutex<bool>,
    is_blind: Mutex<bool>,
    is_unpostable: Mutex<bool>,
    public: Mutex<BTreeSet<ChannelId>>,
    acknowledged: Mutex<Vec<String>>,
    announced: Mutex<Vec<(String, String)>>,
    polls: Mutex<BTreeMap<Ticket, Poll>>,
    loses_polls: Mutex<bool>,
    newest: Mutex<usize>,
}

impl FakePlatform {
    /// The names and texts of the posted parts, in order.
    pub fn posted(&self) -> Vec<(String, String)> {
        lock(&self.posted).iter().map(|(_, part)| (part.name.to_string(), part.text.to_string())).collect()
    }

    /// The notice below each posted part.
    pub fn notices(&self) -> Vec<Option<Arc<str>>> {
        lock(&self.posted).iter().map(|(_, part)| part.notice.clone()).collect()
    }

    /// The picture with which each part was posted.
    pub fn pictures(&self) -> Vec<Option<Arc<str>>> {
        lock(&self.posted).iter().map(|(_, part)| part.picture.clone()).collect()
    }

    /// The nonce of each posted part.
    pub fn nonces(&self) -> Vec<Arc<str>> {
        lock(&self.posted).iter().map(|(_, part)| part.nonce.clone()).collect()
    }

    /// Sets the outcomes of the next requests, in order.
    pub fn will(&self, fates: impl IntoIterator<Item = Fate>) {
        lock(&self.fates).extend(fates);
    }

    /// Makes reading fail.
    pub fn hides(&self, why: NotRead) {
        *lock(&self.unreadable) = Some(why);
    }

    /// Limits the length of parts, in UTF-16 code units.
    pub fn takes_at_most(&self, units: usize) {
        *lock(&self.longest) = Some(units);
    }

    /// Makes `newest` return nothing.
    pub fn forgets(&self) {
        *lock(&self.is_forgetful) = true;
    }

    /// Makes `find` find nothing.
    pub fn loses_sight(&self) {
        *lock(&self.is_blind) = true;
    }

    /// Sets the result of `is_unpostable` for every channel.
    pub fn takes_nothing(&self, is_unpostable: bool) {
        *lock(&self.is_unpostable) = is_unpostable;
    }

    /// Sets the channels that everybody can read.
    pub fn opens(&self, public: impl IntoIterator<Item = ChannelId>) {
        *lock(&self.public) = public.into_iter().collect();
    }

    /// The messages whose stop was acknowledged.
    pub fn acknowledged(&self) -> Vec<String> {
        lock(&self.acknowledged).clone()
    }

    /// The messages of the server itself, in order.
    pub fn announced(&self) -> Vec<String> {
        lock(&self.announced).iter().map(|(_, text)| text.clone()).collect()
    }

    /// Makes requests for polls arrive nowhere, without an end.
    pub fn loses_polls(&self) {
        *lock(&self.loses_polls) = true;
    }

    /// The questions of the posted polls, in order.
    pub fn polls(&self) -> Vec<Arc<str>> {
        lock(&self.polls).values().map(|poll| poll.question.clone()).collect()
    }

    /// The number of typing indicators that were shown.
    pub fn typed(&self) -> usize {
        *lock(&self.typed)
    }

    fn post(&self, part: &Part) -> Arc<str> {
        let mut posted = lock(&self.posted);
        // The ids of deleted parts are not used again.
        let mut newest = lock(&self.newest);
        *newest += 1;
        let id = newest.to_string();
        posted.push((id.clone(), part.clone()));
        id.into()
    }
}

#[async_trait]
impl ChatPlatform for FakePlatform {
    fn name(&self) -> &'static str {
        "console"
    }

    fn serves(&self, channel: &ChannelId) -> bool {
        is_of_console(channel)
    }

    fn capabilities(&self) -> Capabilities {
        let longest_part = lock(&self.longest).unwrap_or(2_000);
        Capabilities {
            longest_part,
            request_timeout: REQUEST_TIMEOUT,
            typing_shows: Some(Duration::from_secs(10)),
            is_written_here: true,
        }
    }

    fn is_public(&self, channel: &ChannelId) -> bool {
        lock(&self.public).contains(channel)
    }

    fn newest(&self, _: &ChannelId, _: &[Arc<str>]) -> Option<Arc<str>> {
        lock(&self.posted).last().map(|(id, _)| id.as_str().into()).filter(|_| !*lock(&self.is_forgetful))
    }

    async fn send(&self, part: &Part) -> Result<Arc<str>, NotSent> {
        // The request arrives after half of the time. A caller that is killed then does not get the response.
        tokio::time::sleep(TAKES / 2).await;
        let fate = lock(&self.fates).pop_front();
        let answer = match fate {
            None => Ok(self.post(part)),
            Some(Fate::Silent) => {
                self.post(part);
                tokio::time::sleep(REQUEST_TIMEOUT).await;
                Err(NotSent::Unknown { detail: "no answer".into(), within: Duration::ZERO })
            }
            Some(Fate::Fails(why)) => Err(why),
            Some(Fate::Hangs) => {
                self.post(part);
                std::future::pending().await
            }
            Some(Fate::Panics) => {
                self.post(part);
                panic!("as the test wants it")
            }
        };
        tokio::time::sleep(TAKES / 2).await;
        answer
    }

    async fn post_poll(&self, _: &ChannelId, call: Ticket, poll: &Poll) -> Result<(), NotSent> {
        if *lock(&self.loses_polls) {
            std::future::pending::<()>().await;
        }
        lock(&self.polls).insert(call, poll.clone());
        Ok(())
    }

    async fn acknowledge_stop(&self, _: &ChannelId, message: &str) {
        lock(&self.acknowledged).push(message.to_owned());
    }

    async fn announce(&self, _: &ChannelId, text: &str, nonce: &str) -> Result<(), NotSent> {
        tokio::time::sleep(TAKES).await;
        if let Some(Fate::Fails(why)) = lock(&self.fates).pop_front() {
            return Err(why);
        }
        let mut announced = lock(&self.announced);
        if announced.iter().all(|(known, _)| known != nonce) {
            announced.push((nonce.to_owned(), text.to_owned()));
        }
        Ok(())
    }

    async fn change(
        &self,
        _: &GuildId,
        _: &ChannelId,
        id: &str,
        text: Option<&str>,
        notice: Option<&str>,
    ) -> Result<(), NotSent> {
        if let Some(Fate::Fails(why)) = lock(&self.fates).pop_front() {
            return Err(why);
        }
        let mut posted = lock(&self.posted);
        match text {
            Some(text) => posted
                .iter_mut()
                .filter(|(posted, _)| posted == id)
                .for_each(|(_, part)| (part.text, part.notice) = (text.into(), notice.map(Into::into))),
            None => posted.retain(|(posted, _)| posted != id),
        }
        Ok(())
    }

    async fn find(&self, part: &Part, after: Option<&str>, taken: &BTreeSet<Arc<str>>) -> Result<Option<Arc<str>>, NotRead> {
        tokio::time::sleep(TAKES).await;
        if let Some(why) = lock(&self.unreadable).clone() {
            return Err(why);
        }
        if *lock(&self.is_blind) {
            return Ok(None);
        }
        let after = after.map_or(0, |after| after.parse::<usize>().unwrap_or_default());
        let posted = lock(&self.posted);
        let matches = |(id, found): &&(String, Part)| {
            let is_later = id.parse::<usize>().is_ok_and(|id| id > after);
            is_later && !taken.contains(id.as_str()) && found.text == part.text && found.name == part.name
        };
        Ok(posted.iter().find(matches).map(|(id, _)| id.as_str().into()))
    }

    fn is_unpostable(&self, _: &ChannelId) -> bool {
        *lock(&self.is_unpostable)
    }

    async fn typing(&self, _: &GuildId, _: &ChannelId) {
        *lock(&self.typed) += 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    mutex.lock()
}
