//! Fuzzes hostile interactions, and the texts of answers.

use super::interaction::{self, Action};
use super::quoting;
use super::words;
use crate::fuzzing::{is_bounded, is_plain_line, text, texts};

pub fn interactions() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"id":"1","application_id":"9","token":"tell-nobody","type":2,"guild_id":"2","channel_id":"3","channel":{"id":"3","type":0,"parent_id":"4"},"member":{"user":{"id":"7"},"permissions":"16"},"app_permissions":"1024","data":{"id":"5","name":"tertulia","type":1,"options":[{"name":"join","type":1,"options":[{"name":"companion","type":3,"value":"aria"},{"name":"where","type":7,"value":"30"}]}],"resolved":{"channels":{"30":{"id":"30","type":0,"permissions":"0"}}}}}"#,
        r#"{"id":"1","application_id":"9","token":"tell-nobody","type":4,"channel_id":"3","user":{"id":"7"},"data":{"name":"tertulia","options":[{"name":"leave","type":1,"options":[{"name":"companion","type":3,"value":"ar","focused":true}]}]}}"#,
        r#"{"id":"1","application_id":"9","token":"tell-nobody","type":2,"channel_id":"3","user":{"id":"7"},"data":{"name":"tertulia","options":[{"name":"forget","type":2,"options":[{"name":"me","type":1,"options":[]}]}]}}"#,
        r#"{"id":"1","application_id":"9","token":"tell-nobody","type":2,"guild_id":"2","channel_id":"3","member":{"user":{"id":"7","username":"ana"},"nick":"Ana"},"data":{"name":"Ask a companion about this","type":3,"target_id":"30","resolved":{"messages":{"30":{"id":"30","channel_id":"3","author":{"id":"8","username":"bob"},"content":"hi"}}}}}"#,
        r#"{"id":"1","application_id":"9","token":"tell-nobody","type":3,"guild_id":"2","channel_id":"3","member":{"user":{"id":"7"}},"data":{"custom_id":"ask:1","component_type":3,"values":["aria"]}}"#,
        r#"{"id":"1","application_id":"9","token":"tell-nobody","type":3,"guild_id":"2","channel_id":"3","member":{"user":{"id":"7"},"roles":["5"]},"data":{"custom_id":"setup:who:0:3.1f","component_type":3,"values":["aria"]}}"#,
        r#"{"id":"1","application_id":"9","token":"tell-nobody","type":5,"guild_id":"2","channel_id":"3","member":{"user":{"id":"7"}},"data":{"custom_id":"own:luna:0123","components":[{"type":1,"components":[{"type":4,"custom_id":"name","value":"Luna"}]}]}}"#,
    ])
}

pub fn interaction(bytes: &[u8]) {
    let text = text(bytes);
    for shown in [quoting::name(&text), quoting::verbatim(&text)] {
        assert!(
            !shown.replace("\\\\", "").replace("\\<", "").contains('<') && is_plain_line(&shown),
            "{shown:?} contains markup"
        );
    }
    assert!(is_bounded(&words::fitted(&text), 2_000));
    match interaction::read(&text) {
        Ok(read) => {
            assert!(!format!("{read:?}").contains("tell-nobody"), "the token is in the debug output");
            let _ = (read.here.missing(), read.here.channel_ref(), read.here.guild_id());
            let typed = match &read.action {
                Action::Typing(typing) => typing.typed.as_str(),
                Action::Command(command) => command.label(),
                Action::Choose { companion, .. } => companion.as_str(),
                Action::Ask(_) | Action::Help { .. } | Action::Unknown { .. } => "",
            };
            assert!(is_bounded(typed, 100), "{} characters were typed", typed.chars().count());
        }
        Err(error) => {
            let message = error.to_string();
            assert!(is_bounded(&message, 200) && is_plain_line(&message) && !message.contains("tell-nobody"), "{message}");
        }
    }
}
