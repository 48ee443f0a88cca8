//! Reads back what happened, and waits for conditions.

use tokio::time::timeout;

use super::super::id::Id;
use super::super::journal::{Answer, Post};
use super::super::state::State;
use super::Counterpart;
use crate::harness::PATIENCE;

impl Counterpart {
    /// Reads the state under its lock.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.shared.look(look)
    }

    /// Waits until the closure finds something in the state.
    ///
    /// # Panics
    ///
    /// Nothing is found in time. The message names what was awaited.
    pub async fn until<T>(&self, what: &str, look: impl FnMut(&State) -> Option<T>) -> T {
        match timeout(PATIENCE, self.shared.until(look)).await {
            Ok(seen) => seen,
            Err(_) => panic!("timed out waiting for {what}"),
        }
    }

    /// What the application has posted so far.
    pub fn posts(&self) -> Vec<Post> {
        self.look(|state| state.journal.posts.clone())
    }

    /// Waits for the first post in a channel.
    pub async fn post_in(&self, channel: Id) -> Post {
        self.posts_in(channel, 1).await.remove(0)
    }

    /// Waits until a channel has at least so many posts.
    pub async fn posts_in(&self, channel: Id, count: usize) -> Vec<Post> {
        self.until("a post", |state| {
            let posts = state.journal.posts.iter().filter(|post| post.channel == channel);
            let posts: Vec<Post> = posts.cloned().collect();
            (posts.len() >= count).then_some(posts)
        })
        .await
    }

    /// Waits until exactly so many sessions are connected.
    pub async fn sessions(&self, count: usize) {
        self.until("the sessions", |state| {
            let sessions = state.gateway.sessions.values();
            (sessions.filter(|session| session.connection.is_some()).count() == count).then_some(())
        })
        .await;
    }

    /// Waits until at least so many RESUMEs were accepted.
    pub async fn resumes(&self, count: usize) {
        self.until("the resumes", |state| {
            let accepted = state.journal.resumes.iter().filter(|resume| resume.replayed.is_some());
            (accepted.count() >= count).then_some(())
        })
        .await;
    }

    /// Waits until a message was written to a socket.
    pub async fn delivered(&self, message: Id) {
        self.until("a delivery", |state| {
            let mut deliveries = state.journal.deliveries.iter().rev();
            deliveries.any(|delivery| delivery.message == Some(message) && !delivery.sent.is_empty()).then_some(())
        })
        .await;
    }

    /// Waits for the first answer to an interaction.
    pub async fn answer_to(&self, interaction: Id) -> Answer {
        self.until("an answer", |state| state.journal.answers.iter().find(|answer| answer.interaction == interaction).cloned())
            .await
    }

    /// The current text of an interaction's first answer. None while the answer is deferred.
    pub fn answered_text(&self, interaction: Id) -> Option<String> {
        self.look(|state| {
            let interaction = state.world.interactions.get(&interaction)?;
            let message = state.world.message(interaction.channel, interaction.original?)?;
            (message.flags & super::super::messages::LOADING == 0).then(|| message.content.clone())
        })
    }
}
