//! Starts children, and restarts those that die: one for one, within limits.
//!
//! ractor reports how children end, and restarts nothing. Its default handler stops the supervisor and all healthy siblings when the first
//! child fails. Here, a supervisor embeds [`children::Children`] in its state. It passes every supervision event and every
//! [`Upkeep`](crate::actors::messages::supervision::Upkeep) message to it, and handles the reports that it returns:
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
//! [`restarts`] decides how often and after which delay a child is restarted. It needs no runtime.

pub mod backoff;
pub mod child;
pub mod children;
pub mod restarts;
