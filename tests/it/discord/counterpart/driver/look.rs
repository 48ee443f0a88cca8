//! Reads back what happened, and waits for conditions.

use tokio::time::timeout;

use super::super::journal::{Answer, Post};
use super::super::messages::LOADING;
use super::super::{Answered, Id, Message, State};
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

    /// Waits until a condition holds.
    ///
    /// # Panics
    ///
    /// It does not hold in time. The message names what was awaited.
    pub async fn wait_for(&self, what: &str, holds: impl Fn(&State) -> bool) {
        self.until(what, |state| holds(state).then_some(())).await;
    }

    /// The bot's user. Its id is the application's.
    pub fn bot(&self) -> Id {
        self.look(|state| state.world.bot())
    }

    /// The bot's own role in a guild.
    pub fn bot_role(&self, guild: Id) -> Id {
        self.look(|state| state.world.guilds[&guild].members[&state.world.bot()].roles[0])
    }

    /// How many requests of a route arrived so far.
    pub fn requests(&self, route: &str) -> usize {
        self.look(|state| state.journal.requests_of(route).count())
    }

    /// How many IDENTIFYs arrived so far.
    pub fn identifies(&self) -> usize {
        self.look(|state| state.journal.identifies.len())
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
        let connected = |state: &State| state.gateway.sessions.values().filter(|session| session.connection.is_some()).count();
        self.wait_for("the sessions", |state| connected(state) == count).await;
    }

    /// Waits until at least so many RESUMEs were accepted.
    pub async fn resumes(&self, count: usize) {
        let accepted = |state: &State| state.journal.resumes.iter().filter(|resume| resume.replayed.is_some()).count();
        self.wait_for("the resumes", |state| accepted(state) >= count).await;
    }

    /// Waits until a message was written to a socket.
    pub async fn delivered(&self, message: Id) {
        self.wait_for("a delivery", |state| {
            let mut deliveries = state.journal.deliveries.iter().rev();
            deliveries.any(|delivery| delivery.message == Some(message) && !delivery.sent.is_empty())
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
        self.look(|state| answer(state, interaction)).map(|message| message.content)
    }

    /// Waits for the message that finally answers an interaction.
    pub async fn final_answer(&self, interaction: Id) -> Message {
        self.until("the words", |state| answer(state, interaction)).await
    }
}

fn answer(state: &State, interaction: Id) -> Option<Message> {
    let interaction = state.world.interactions.get(&interaction)?;
    let message = state.world.message(interaction.channel, interaction.original?)?;
    (interaction.answered == Answered::Fully && message.flags & LOADING == 0).then(|| message.clone())
}
