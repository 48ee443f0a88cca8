//! Starts children, and starts them again when they die: one for one, within limits.
//!
//! ractor reports how children end and does nothing about it: its default handler takes the supervisor and all healthy
//! siblings down with the first child that fails. A supervising actor here embeds [`children::Children`] in its state, hands it
//! every supervision event and every [`Upkeep`](crate::actors::messages::supervision::Upkeep) message, and carries on with what it reports:
//!
//! ```ignore
//! async fn handle_supervisor_evt(&self, _: ActorRef<Msg>, event: SupervisionEvent, state: &mut State) -> Result<(), ActorProcessingErr> {
//!     if let Some(report) = state.children.observe(event) {
//!         if let Report::Escalate { escalation, .. } = report {
//!             return Err(escalation.into()); // fails as a whole: the supervisor above decides
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! How often and after which delay is decided in [`restarts`], without a runtime.

pub mod child;
pub mod children;
pub mod restarts;
