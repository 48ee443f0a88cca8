//! What may be cut out of an answer of a model.

use super::named::named;

named! {
    /// What was cut out of an answer.
    pub enum Trimmed {
        /// What the model thought aloud.
        Thought = "thought",
        /// A channel that is not the final one.
        Channel = "channel",
        /// The end of the turn, and what followed it.
        EndOfTurn = "end_of_turn",
        /// A line of somebody else, and what followed it.
        OtherSpeaker = "other_speaker",
        /// The companion's own name before its words.
        OwnName = "own_name",
        /// The form around the words: JSON.
        Form = "form",
        Decision = "decision",
        /// A call of a tool.
        ToolCall = "tool_call",
        /// What stands in the prompt word for word.
        Prompt = "prompt",
        /// Words that say that nothing is said.
        Silence = "silence",
    }
}
