//! The JSON schema of the answer to a question: a vote, or the votes of several companions.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::domain::closing::Stage;
use crate::domain::prompt::{self, Extra};
use crate::domain::vote::{MOST_IMPORTANCE, MOST_MOOD};
use crate::ports::language_model::AnswerFormat;
use crate::settings::prompt::Prompt;

/// What a schema depends on: the optional fields, whether the reason comes first, and the words for YES and NO.
type Fields = (Extra, bool, [String; 2]);

/// The most schemas that are kept: one for each combination of fields, in a few languages.
const KEPT: usize = 16;

/// One JSON object with the fields of a vote (docs/design/turn-taking.md T-5). All of them are required, in the order of the prompt.
pub(super) fn vote_format(asked: Extra, words: &Prompt) -> AnswerFormat {
    AnswerFormat::JsonSchema { name: "vote".to_owned(), schema: vote_schema(asked, words) }
}

/// One JSON object with a vote for each of these companions, by companion id.
pub(super) fn votes_format<'a>(ids: impl Iterator<Item = &'a str>, asked: Extra, words: &Prompt) -> AnswerFormat {
    let vote = vote_schema(asked, words);
    let votes: BTreeMap<_, _> = ids.map(|id| (id, &*vote)).collect();
    let schema = json!({
        "type": "object",
        "required": votes.keys().collect::<Vec<_>>(),
        "properties": votes,
        "additionalProperties": false,
    });
    AnswerFormat::JsonSchema { name: "votes".to_owned(), schema: schema.into() }
}

fn vote_schema(asked: Extra, words: &Prompt) -> Arc<Value> {
    // The settings rarely change.
    static NEWEST: Mutex<Vec<(Fields, Arc<Value>)>> = Mutex::new(Vec::new());
    let of = (asked, words.reason_first, prompt::verdicts(words));
    let mut newest = NEWEST.lock();
    if let Some((_, schema)) = newest.iter().find(|(fields, _)| *fields == of) {
        return schema.clone();
    }
    let schema = Arc::new(new_vote_schema(asked, words));
    if newest.len() == KEPT {
        newest.remove(0);
    }
    newest.push((of, schema.clone()));
    schema
}

fn new_vote_schema(asked: Extra, words: &Prompt) -> Value {
    let fields = prompt::vote_fields(asked, words);
    let property = |field: &str| match field {
        "decision" => json!({ "type": "string", "enum": prompt::verdicts(words) }),
        "importance" => json!({ "type": "number", "minimum": 0, "maximum": MOST_IMPORTANCE }),
        "selected" | "risk" => json!({ "type": "boolean" }),
        "closing" => json!({ "type": "string", "enum": Stage::ALL }),
        "mood" => json!({ "type": "number", "minimum": -MOST_MOOD, "maximum": MOST_MOOD }),
        _ => json!({ "type": "string" }),
    };
    json!({
        "type": "object",
        "properties": fields.iter().map(|field| (*field, property(field))).collect::<BTreeMap<_, _>>(),
        "required": fields,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::defaults;

    #[test]
    fn the_schema_of_a_vote_binds_what_the_prompt_asks_for() {
        let words = Prompt { yes_words: vec!["ja".into(), "yes".into()], ..defaults().prompt.clone() };
        let schema = |is_call| match vote_format(Extra { is_call, about_risk: is_call }, &words) {
            AnswerFormat::JsonSchema { schema, .. } => schema,
            format => panic!("{format:?}"),
        };

        let (text, call) = (schema(false), schema(true));

        let properties = &text["properties"];
        assert_eq!(properties["decision"]["enum"], json!(["JA", "NO"]));
        assert_eq!((&properties["importance"]["minimum"], &properties["importance"]["maximum"]), (&json!(0), &json!(10.0)));
        assert_eq!(text["required"], json!(["reason", "decision", "importance", "selected", "closing"]));
        assert!(properties.get("mood").is_none(), "{properties}");
        assert_eq!(call["properties"]["mood"], json!({ "type": "number", "minimum": -0.2, "maximum": 0.2 }));
        assert_eq!(call["properties"]["risk"], json!({ "type": "boolean" }));
        assert_eq!(call["required"].as_array().map(Vec::len), call["properties"].as_object().map(serde_json::Map::len));
    }

    #[test]
    fn the_schema_of_several_votes_requires_one_for_each_companion() {
        let AnswerFormat::JsonSchema { schema, .. } =
            votes_format(["aria", "bruno"].into_iter(), Extra { is_call: true, about_risk: false }, &defaults().prompt)
        else {
            panic!("it has a schema")
        };

        assert_eq!((&schema["required"], &schema["additionalProperties"]), (&json!(["aria", "bruno"]), &json!(false)));
        assert_eq!(schema["properties"]["bruno"], *vote_schema(Extra { is_call: true, about_risk: false }, &defaults().prompt));
    }
}
