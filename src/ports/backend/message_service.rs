//! Messages of rooms that people and external companions post, edit and delete.

use std::sync::Arc;

use async_trait::async_trait;

use super::guest_service::Visit;
use super::messages::{Approver, CallView, Choice, Chosen, Drafted, Drafting, Edit, Greeting, Imported, Words};
use super::refused::Refused;
use super::room::RoomId;
use crate::domain::id::{CompanionId, PersonId, Seq, Ticket};
use crate::domain::message::{Author, ImportedMessage};
use crate::domain::vote::State;
use crate::inbound_events::InboundMessage;

/// Accepts messages, their edits and deletions, and controls the replies to them.
#[async_trait]
pub trait MessageService: Send + Sync + 'static {
    /// Accepts a person's message, or an event that a companion must acknowledge. It is committed when this returns. A repeated `id` returns the
    /// number of the first message with this `id`, whatever the text. Mentions are resolved here, including `@name` in the text.
    async fn say(&self, room: &RoomId, message: InboundMessage) -> Result<Seq, Refused>;

    /// The companion in the room's guild with this name, if there is one. People may have the same name, but readers can hardly distinguish them
    /// from the companion.
    async fn namesake(&self, room: &RoomId, name: &str) -> Result<Option<CompanionId>, Refused>;

    /// Replaces a message's text. Returns the number of the message.
    async fn edit(&self, room: &RoomId, seq: Seq, edit: Edit) -> Result<Seq, Refused>;

    /// Deletes a message from buffers and history. Returns the number of the message. Repeating it changes nothing.
    async fn delete(&self, room: &RoomId, seq: Seq) -> Result<Seq, Refused>;

    /// Stops the reply in progress of a companion (docs/design/speaking.md S-16). Returns [`Refused::Conflict`] if there is none, or if it is being
    /// posted.
    async fn stop_reply(&self, room: &RoomId, companion: &CompanionId) -> Result<(), Refused>;

    /// Requests a new answer in the place of the newest message of a room, which must be a companion's statement (docs/design/speaking.md S-17), or
    /// with `continues` its continuation (S-22). `by`: a person who may request it only if the statement answers that person. Returns
    /// [`Refused::Conflict`] if that is impossible.
    async fn answer_again(&self, room: &RoomId, statement: Seq, continues: bool, by: Option<&PersonId>) -> Result<(), Refused>;

    /// Makes another version of the newest statement stand, by its index (docs/design/speaking.md S-21). Returns [`Refused::Conflict`] if the statement
    /// is not the newest message.
    async fn stand(&self, room: &RoomId, statement: Seq, version: usize) -> Result<(), Refused>;

    /// A recent call of a tool (docs/design/tools.md), as this person may decide about it.
    async fn call(&self, room: &RoomId, call: Ticket, by: Approver) -> Result<CallView, Refused>;

    /// Confirms or declines the call of a tool for a person. Returns [`Refused::Conflict`] if it cannot be confirmed any more, or if the person has
    /// no right to it.
    async fn decide_call(&self, room: &RoomId, call: Ticket, by: Approver, is_confirmed: bool) -> Result<(), Refused>;

    /// Lets a companion speak next without a vote, or everybody once (docs/design/turn-taking.md T-24, T-25). It is committed when this returns.
    /// Returns [`Refused::Conflict`] if none of them can speak now.
    async fn choose(&self, room: &RoomId, choice: Choice) -> Result<Chosen, Refused>;

    /// Has a companion draft a message for a person (docs/design/speaking.md S-23). Nothing of it is on record but the usage of the model.
    /// For the guest of a visit, it counts as a message once nothing else forbids it.
    async fn draft(&self, room: &RoomId, drafting: Drafting, visit: Option<&Visit>) -> Result<Drafted, Refused>;

    /// Posts one of a companion's greetings, word for word, in a room without readable messages, or `anyway`. It is committed when this returns.
    /// Returns [`Refused::Conflict`] if the room has messages, or if the companion is paused.
    async fn greet(&self, room: &RoomId, greeting: Greeting) -> Result<Seq, Refused>;

    /// Writes a scene into the history. Companions read it, and none is asked about it.
    async fn set_scene(&self, room: &RoomId, from: Author, text: Arc<str>) -> Result<Seq, Refused>;

    /// Makes an imported chat the beginning of a room's history. Companions read the messages, and none is asked about them. Repeated, it continues
    /// where it was interrupted. Returns [`Refused::Conflict`] if the room has other messages.
    async fn import(&self, room: &RoomId, chat: Vec<ImportedMessage>, id: &str) -> Result<Imported, Refused>;

    /// Submits the vote of an external companion in the open round. The State counts when this returns.
    async fn vote(&self, room: &RoomId, state: State) -> Result<(), Refused>;

    /// Submits the statement of an external companion that was selected. It is committed when this returns.
    async fn speak(&self, room: &RoomId, words: Words) -> Result<Seq, Refused>;
}
