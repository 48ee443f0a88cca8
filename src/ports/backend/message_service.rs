//! Messages of rooms: what people and external companions post, edit and delete.

use async_trait::async_trait;

use super::messages::{Edit, Greeting, Words};
use super::refused::Refused;
use super::room::RoomId;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::vote::State;
use crate::inbound_events::InboundMessage;

/// Accepts messages and their changes, and what concerns the replies to them.
#[async_trait]
pub trait MessageService: Send + Sync + 'static {
    /// Accepts a person's message, or an event that a companion must acknowledge. It is committed when this returns. The same `id` again returns
    /// the first number, whatever the text. Mentions are resolved here, including `@name` in the text.
    async fn say(&self, room: &RoomId, message: InboundMessage) -> Result<Seq, Refused>;

    /// The companion in the room's guild that has this name, if there is one. People by that name are accepted, and hard to tell from it.
    async fn namesake(&self, room: &RoomId, name: &str) -> Result<Option<CompanionId>, Refused>;

    /// Replaces a message's text; returns the number of the message.
    async fn edit(&self, room: &RoomId, seq: Seq, edit: Edit) -> Result<Seq, Refused>;

    /// Deletes a message from buffers and history; returns the number of the message. Deleting it again changes nothing.
    async fn delete(&self, room: &RoomId, seq: Seq) -> Result<Seq, Refused>;

    /// Stops the reply that a companion is making (docs/design/speaking.md S-16). If there is none, or it is being posted, that is a
    /// [`Refused::Conflict`].
    async fn stop_reply(&self, room: &RoomId, companion: &CompanionId) -> Result<(), Refused>;

    /// Deletes the newest message of a room, a companion's statement, and has the companion answer again (docs/design/speaking.md S-17). Where that
    /// is impossible, it is a [`Refused::Conflict`].
    async fn try_again(&self, room: &RoomId, statement: Seq) -> Result<(), Refused>;

    /// Has a companion say one of its greetings, word for word, in a room where nothing can be read yet. It is committed when this returns. Where
    /// something was said, or the companion is paused, it is a [`Refused::Conflict`].
    async fn greet(&self, room: &RoomId, greeting: Greeting) -> Result<Seq, Refused>;

    /// Submits the vote of an external companion in the open round. Its State counts when this returns.
    async fn vote(&self, room: &RoomId, state: State) -> Result<(), Refused>;

    /// Submits the statement of an external companion that was selected. It is committed when this returns.
    async fn speak(&self, room: &RoomId, words: Words) -> Result<Seq, Refused>;
}
