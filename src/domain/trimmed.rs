//! The parts that may be removed from an answer of a model.

use super::named::named;

named! {
    /// A part that was removed from an answer.
    pub enum Trimmed {
        /// A thought of the model.
        Thought = "thought",
        /// A channel that is not the final one.
        Channel = "channel",
        /// The end of the turn, and the text after it.
        EndOfTurn = "end_of_turn",
        /// A line of another speaker, and the text after it.
        OtherSpeaker = "other_speaker",
        /// The companion's own name before its text.
        OwnName = "own_name",
        /// The JSON around the text.
        Form = "form",
        Decision = "decision",
        /// A call of a tool.
        ToolCall = "tool_call",
        /// A text that is copied from the prompt.
        Prompt = "prompt",
        /// A statement that there is nothing to say.
        Silence = "silence",
    }
}
