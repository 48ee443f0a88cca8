//! Starts children, and restarts those that die: one for one, within limits.
//!
//! ractor reports how children end, and restarts nothing. Its default handler stops the supervisor and all healthy siblings when the first child
//! fails. Here, a supervisor embeds [`children::Children`] in its state. `reports_children!` passes every supervision event to it, and the supervisor
//! passes every [`Upkeep`](crate::actors::messages::supervision::Upkeep) message. The supervisor handles the reports that are returned. If it returns
//! an escalation as an error, it fails as a whole, and the supervisor above decides.
//!
//! [`restarts`] decides how often and after which delay a child is restarted. It needs no runtime.

pub mod backoff;
pub mod child;
pub mod children;
pub mod restarts;

/// The handler of supervision events of an actor whose state has `children` and `handle_report`.
macro_rules! reports_children {
    ($message:ty) => {
        async fn handle_supervisor_evt(
            &self,
            _: ractor::ActorRef<$message>,
            event: ractor::SupervisionEvent,
            state: &mut Self::State,
        ) -> Result<(), ractor::ActorProcessingErr> {
            let report = state.children.observe(event);
            state.handle_report(report)
        }
    };
}
pub(crate) use reports_children;
